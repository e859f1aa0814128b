//! Arguments of `explain`.

use super::OutputArgs;
use clap::{Args, ValueHint};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
The ladder has the messages of signalling, ILMI, LANE, ATMARP, NHRP and MPOA;
the story tells who asked, and who refused and why; then come the rules that are
broken, each with its clause. --rules lists all rules. Files are pcap and pcapng
of SUNATM, RFC 1483, Classical IP, ERF, Ethernet, Linux cooked and raw IP, with
NHRP over GRE (DMVPN), and ATM over MPLS and L2TPv3. Raw cells that GNS3 wrote
under a wrong link type are put together; --repair writes them as a file that
Wireshark reads. A rule is named only if the file shows that it is broken: an
answer is missed if the capture goes on for as long as the answer may take.

Exit codes:
  0  no rule is broken
  1  a rule is broken
  2  wrong usage, or no capture: the message has the offset
  3  no rule is broken in what was read, and something was not read

Examples:
  aerostat explain dmvpn.pcapng
  aerostat explain --rules
  aerostat explain gns3.pcap --repair cells.pcapng
  aerostat explain dmvpn.pcapng -o json | jq '.findings[].clause'
  aerostat explain captures/s1.pcapng --messages 0")]
pub(crate) struct ExplainArgs {
    /// Capture, pcap or pcapng, or - for standard input
    #[arg(required_unless_present = "rules", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// List the rules and their clauses
    #[arg(long, conflicts_with_all = ["file", "repair"])]
    pub(crate) rules: bool,
    /// Write raw cells under a wrong link type as PDUs that Wireshark reads
    #[arg(long, value_name = "FILE.pcapng", value_hint = ValueHint::FilePath)]
    pub(crate) repair: Option<PathBuf>,
    /// Most messages of the ladder; 0 for none
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) messages: usize,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
