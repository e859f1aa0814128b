//! Arguments of `ping`, `pingall` and `iperf`.

use super::{OutputArgs, RunningLab};
use crate::names;
use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
A kernel host runs the system's ping (Debian package iputils-ping), an embedded
host its own program. Ctrl-C shows what has been found so far.
Exit code 0: every request was answered; 3: some were not, or Ctrl-C; 1: none
was answered.

Examples:
  aerostat ping urku sello
  aerostat ping -c 20 -i 0.1 urku 10.2.0.20
  aerostat ping urku sello -o json")]
pub(crate) struct PingArgs {
    /// Host that asks
    #[arg(add = names::hosts())]
    pub(crate) from: String,
    /// Host, router or IPv4 address that is asked
    #[arg(add = names::hosts())]
    pub(crate) to: String,
    #[command(flatten)]
    pub(crate) how: PingHow,
    #[command(flatten)]
    pub(crate) which: RunningLab,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// How hosts are asked.
#[derive(Debug, Args)]
pub(crate) struct PingHow {
    /// Requests to each
    #[arg(short, long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) count: u32,
    /// Seconds between requests, 0.002 to 60
    #[arg(short, long, value_name = "S", default_value = "0.2", value_parser = interval)]
    pub(crate) interval: f64,
    /// Octets of data in a request
    #[arg(short, long, value_name = "OCTETS", default_value_t = 56, value_parser = clap::value_parser!(u16).range(..=65_507))]
    pub(crate) size: u16,
}

fn interval(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected seconds".to_owned())?;
    if (0.002..=60.0).contains(&seconds) {
        Ok(seconds)
    } else {
        Err("expected 0.002 to 60 seconds".to_owned())
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Every host pings every other one, at most 64 pairs at a time.
Ctrl-C shows what has been found so far.
Exit code 0: every request was answered; 3: some were not, or Ctrl-C; 1: for
some pair none was answered.

Examples:
  aerostat pingall
  aerostat pingall -c 1 -o json")]
pub(crate) struct PingallArgs {
    #[command(flatten)]
    pub(crate) how: PingHow,
    #[command(flatten)]
    pub(crate) which: RunningLab,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Sends over TCP from A to B for some seconds. Two kernel hosts run the system's
iperf3, two embedded hosts their own programs. Ctrl-C shows what has been
transferred so far.
Exit code 0: done; 3: Ctrl-C; 1: no connection, or it broke.

Examples:
  aerostat iperf urku sello
  aerostat iperf -t 10 urku sello -o json")]
pub(crate) struct IperfArgs {
    /// Host that sends
    #[arg(add = names::hosts())]
    pub(crate) from: String,
    /// Host that receives
    #[arg(add = names::hosts())]
    pub(crate) to: String,
    /// Seconds
    #[arg(short, long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) time: u64,
    /// TCP port of the receiver
    #[arg(short, long, default_value_t = 5201, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: u16,
    #[command(flatten)]
    pub(crate) which: RunningLab,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
