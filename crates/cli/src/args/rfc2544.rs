//! Arguments of `rfc2544`.

use super::{LabArgs, OutputArgs};
use aerostat_proto::Duration;
use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
#[command(after_help = "\
Sends the load of a flow of 'kind: load' with 'arrivals: periodic' through the
lab, again and again, in virtual time: each trial is a run of its own, and
repeats to the byte. 'load:' of the file does not count here; other loads are
left out, and flows of other kinds go on beside. Trials run at the same time on
all processors. RFC 2544 asks for trials of at least 60 s; shorter ones find
queues that have not filled yet. Latency is the one-way delay at the throughput,
between the stacks of the two hosts. Progress goes to standard error.
Exit code 0: done; 3: Ctrl-C, no throughput was found for some size, or warnings
of the lab; 2: wrong usage.

Examples:
  aerostat rfc2544 rfc2544
  aerostat rfc2544 rfc2544 --traffic switch --frames 64,512,1518
  aerostat rfc2544 rfc2544 --test throughput --duration 10s \\
      --resolution 0.01
  aerostat rfc2544 rfc2544 --set routers.r.forwarding=50000pps \\
      -o json")]
pub(crate) struct Rfc2544Args {
    #[command(flatten)]
    pub(crate) lab: LabArgs,
    /// Name of the flow under 'traffic:'; can be left out if there is one of kind load
    #[arg(long, value_name = "NAME")]
    pub(crate) traffic: Option<String>,
    /// Sizes of frames, octets with check sequence: 64,512,1518; by default those of the file
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) frames: Vec<u64>,
    /// Length of a trial in virtual time
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = length)]
    pub(crate) duration: Duration,
    /// Resolution of the search for the throughput, per cent of the link: 0.0001 to 50
    #[arg(long, value_name = "PERCENT", default_value = "0.1", value_parser = steps)]
    pub(crate) resolution: u64,
    /// Tests to be made; by default all
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LIST")]
    pub(crate) test: Vec<Rfc2544Test>,
    /// Trials at the same time; by default as many as there are processors
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Tell nothing of trials
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// The tests of RFC 2544 §26.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rfc2544Test {
    /// Highest load without a loss, and the latency there
    Throughput,
    /// Frame loss rate from 100 % in steps of 10 %
    Loss,
    /// Longest burst without a loss
    Burst,
}

fn length(text: &str) -> Result<Duration, String> {
    let time = aerostat_lab::units::duration(text)?;
    let range = Duration::from_millis(1)..=Duration::from_secs(600);
    match range.contains(&time) {
        true => Ok(time),
        false => Err("expected 1ms to 600s".to_owned()),
    }
}

/// Steps of the search.
fn steps(text: &str) -> Result<u64, String> {
    let per_cent: f64 = text
        .parse()
        .map_err(|_| "expected per cent, such as 0.1".to_owned())?;
    match (1e-4..=50.0).contains(&per_cent) {
        true => Ok((100.0 / per_cent).ceil() as u64),
        false => Err("expected 0.0001 to 50".to_owned()),
    }
}
