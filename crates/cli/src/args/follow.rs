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
docs/follow.md explains the output.

Examples:
  aerostat follow campus voice:100
  aerostat follow two-subnets ping
  aerostat follow campus urku-basso:4000 --set mpoa=false
  aerostat follow policed-tcp unshaped:20 -o json
  aerostat follow --schema")]
pub(crate) struct FollowArgs {
    /// Lab file (NAME.atm.yml), name of a lab of the program ('aerostat labs'), or - for standard input
    #[arg(required_unless_present = "schema", add = names::files())]
    pub(crate) lab: Option<PathBuf>,
    /// Name of the flow, and the number of the packet; without a number, the first
    #[arg(value_name = "FLOW[:N]", required_unless_present = "schema")]
    pub(crate) packet: Option<String>,
    /// Change a value of the file, for example mpoa=false; checked like the file
    #[arg(long, value_name = "PATH=VALUE")]
    pub(crate) set: Vec<Override>,
    /// Seed of all random streams, instead of the file's
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = super::seed)]
    pub(crate) seed: Option<u64>,
    /// Show no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Print the JSON Schema of the document
    #[arg(long, conflicts_with_all = ["lab", "packet", "set"])]
    pub(crate) schema: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
