//! Arguments of `oam`.

use super::{OutputArgs, RunningLab};
use crate::names;
use aerostat_wire::Vc;
use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "\
Examples:
  aerostat oam ping alice 8.35
  aerostat oam ping alice 8.35 --segment"
)]
pub(crate) struct OamArgs {
    #[command(subcommand)]
    pub(crate) command: OamCommand,
}

/// Functions of operation and maintenance.
#[derive(Debug, Subcommand)]
pub(crate) enum OamCommand {
    /// Send loopback cells (I.610, F5) on a connection of a running lab
    Ping(OamPingArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
A loopback cell needs no IP: it tests the cells of a connection, as the \"ATM
ping\" of a DSL modem does. End to end, the adapter at the other end of the
connection answers; with --segment, the switch at the end of the first link.
Links over ATM over TCP carry no such cells. The exit code is 0 if every cell
came back, 3 if some did not, and 1 if none did.

Examples:
  aerostat oam ping alice 8.35
  aerostat oam ping alice 8.35 --segment -c 10 -i 0.2
  aerostat oam ping alice 8.35 -o json | jq '.rows[].rtt_us'")]
pub(crate) struct OamPingArgs {
    /// The host or router that sends
    #[arg(add = names::hosts())]
    pub(crate) host: String,
    /// The connection, by its VPI.VCI there ('aerostat inspect HOST vc')
    #[arg(value_parser = aerostat_lab::label)]
    pub(crate) vc: Vc,
    /// The other end of the link answers, instead of that of the connection
    #[arg(long)]
    pub(crate) segment: bool,
    /// Cells to send
    #[arg(short, long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) count: u32,
    /// Seconds between cells, 0.01 to 3600
    #[arg(short, long, default_value_t = 1.0, value_parser = seconds)]
    pub(crate) interval: f64,
    /// Seconds to wait for an answer, 0.01 to 3600
    #[arg(short = 'W', long, default_value_t = 5.0, value_parser = seconds)]
    pub(crate) timeout: f64,
    #[command(flatten)]
    pub(crate) which: RunningLab,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

fn seconds(text: &str) -> Result<f64, String> {
    let value: Option<f64> = text.parse().ok();
    value
        .filter(|value| (0.01..=3600.0).contains(value))
        .ok_or_else(|| "expected seconds from 0.01 to 3600".to_owned())
}
