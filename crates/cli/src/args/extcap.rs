//! Arguments of `extcap`, whose names Wireshark has chosen.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Wireshark and tshark call this by themselves, if a link to the program with the
name aerostat-extcap is in their extcap folder ('tshark -G folders'); the Debian
package has it there. Each link of each running lab of the user is an interface
then, aerostat.LAB.LINK, and aerostat.LAB is all links of a lab.

Examples:
  tshark -D
  tshark -i aerostat.two-subnets.urku-s1
  aerostat extcap --extcap-interfaces
  aerostat extcap --extcap-dlts --extcap-interface aerostat.two-subnets")]
pub(crate) struct ExtcapArgs {
    /// List the interfaces
    #[arg(long)]
    pub(crate) extcap_interfaces: bool,
    /// List the link types of an interface
    #[arg(long)]
    pub(crate) extcap_dlts: bool,
    /// List the options of an interface
    #[arg(long)]
    pub(crate) extcap_config: bool,
    /// Capture on an interface
    #[arg(long, requires = "fifo")]
    pub(crate) capture: bool,
    /// The interface
    #[arg(long, value_name = "NAME")]
    pub(crate) extcap_interface: Option<String>,
    /// Named pipe of the capture
    #[arg(long, value_name = "FILE")]
    pub(crate) fifo: Option<PathBuf>,
    /// Version of the caller, which makes no difference
    #[arg(long, value_name = "VERSION")]
    pub(crate) extcap_version: Option<String>,
    /// A filter of the caller; only an empty one is possible
    #[arg(long, value_name = "FILTER")]
    pub(crate) extcap_capture_filter: Option<String>,
    /// Record both ends of each link
    #[arg(long)]
    pub(crate) both_ends: bool,
    /// Record single cells instead of whole PDUs
    #[arg(long)]
    pub(crate) cells: bool,
}
