//! Arguments of `follow`.

use super::OutputArgs;
use crate::names;
use aerostat_lab::Override;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Runs the lab in virtual time until the packet is made, and then once more with
an eye on it. Both runs are to the byte those of 'aerostat run'. The stages are
those of the last cell of each PDU that carried the packet; their sum is the
delay of the packet in the results. N is its number in the order of sending,
from 1. Packets of all flows under 'traffic:' can be followed: datagrams,
segments of TCP with data, echo requests, also of telephones and loads.
With --lab the packets are those of a running lab: one in N is marked where it
enters, and each link tells when it is sent and when it arrives.
docs/follow.md explains the output.

Examples:
  aerostat follow campus voice:100
  aerostat follow two-subnets ping
  aerostat follow --lab campus --from urku --to basso
  aerostat follow --lab campus --one-in 1000 --count 20 -o jsonl
  aerostat follow campus urku-basso:4000 --set mpoa=false
  aerostat follow policed-tcp unshaped:20 -o json
  aerostat follow --schema")]
pub(crate) struct FollowArgs {
    /// Lab file (NAME.atm.yml), name of a lab of the program ('aerostat labs'), or - for standard input
    #[arg(value_name = "LAB", required_unless_present_any = ["schema", "lab"], add = names::files())]
    pub(crate) file: Option<PathBuf>,
    /// Name of the flow, and the number of the packet; without a number, the first
    #[arg(value_name = "FLOW[:N]", required_unless_present_any = ["schema", "lab"])]
    pub(crate) packet: Option<String>,
    /// Change a value of the file, for example mpoa=false; checked like the file
    #[arg(long, value_name = "PATH=VALUE")]
    pub(crate) set: Vec<Override>,
    /// Seed of all random streams, instead of the file's
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = super::seed)]
    pub(crate) seed: Option<u64>,
    /// Follow packets of this running lab
    #[arg(long, value_name = "NAME", add = names::labs(), conflicts_with_all = ["file", "packet", "set", "seed", "schema"])]
    pub(crate) lab: Option<String>,
    /// With --lab: packets of this sender, an end system or an IP address
    #[arg(long, value_name = "HOST", requires = "lab")]
    pub(crate) from: Option<String>,
    /// With --lab: packets for this receiver
    #[arg(long, value_name = "HOST", requires = "lab")]
    pub(crate) to: Option<String>,
    /// With --lab: follow one packet in N
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) one_in: u64,
    /// With --lab: number of packets, then it ends
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) count: u64,
    /// Show no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Print the JSON Schema of the document
    #[arg(long, conflicts_with_all = ["file", "packet", "set"])]
    pub(crate) schema: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
