//! Arguments of `atptest`.

use super::{OutputArgs, RunningLab};
use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
#[command(after_help = "\
Runs the tests of ATP's report (University of Hawaii, 1999) in virtual time: two
hosts that take no time of their own, at OC-3 lines of one switch. Each transfer
is a run of its own, and repeats to the byte. The receiver compares every octet.
With --between, or --serve and --connect, it runs them in real time between two
hosts of a running lab, over the lab's links. Programs of a busy machine run
late: a throughput is over the longer of the receiver's time and the sender's
without the round trip, and a latency is the median of five.
  throughput   messages of up to 1 MiB from memory to memory, in packets of 9180
               octets (Table 2): Mbit/s at the receiver
  latency      a message there and back (Table 3): from its first octet given to
               ATP to its last octet taken
  correctness  up to 409 465 packets of 10 octets, 4 of them header (Table 1):
               Mbit/s; the slowest test, some minutes
The columns report_min and report_max have what the report prints for the same
octets, with its own hosts; they stay empty with other octets, another MTU,
losses or rules. 'loss' is the probability that a cell is lost on the receiver's
link; in real time the lab has it. Labs with programs of 'atp:' have all other
figures (docs/lab-file.md). Progress goes to standard error. One server serves
both rules, and every test.
Exit code 0: every octet arrived; 3: some did not, or Ctrl-C; 2: wrong usage.

Examples:
  aerostat atptest
  aerostat atptest --test throughput,latency --profile report,adaptive
  aerostat atptest --octets 1048576 --loss 0,0.0001,0.001 --profile adaptive
  aerostat atptest --test correctness --octets 2456789 -o json
  aerostat atptest --between urku,sello --profile report,adaptive
  aerostat exec sello -- aerostat atptest --serve
  aerostat exec urku -- aerostat atptest --connect ADDRESS --test latency")]
pub(crate) struct AtptestArgs {
    /// Tests to be made
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "throughput"
    )]
    pub(crate) test: Vec<AtptestTest>,
    /// Rules of both ends
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "report"
    )]
    pub(crate) profile: Vec<AtptestProfile>,
    /// Octets of the transfers; by default those of the report
    #[arg(long, value_delimiter = ',', value_name = "LIST", value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    pub(crate) octets: Vec<u64>,
    /// Octets of a packet with its header of 4; by default 9180, and 10 in the test correctness
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(5..))]
    pub(crate) mtu: Option<u16>,
    /// Probabilities that a cell is lost, 0 to 1
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_value = "0", value_parser = probability)]
    pub(crate) loss: Vec<f64>,
    /// Seed of the losses
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    /// In real time: from host A to host B of a running lab
    #[arg(long, value_delimiter = ',', value_name = "A,B", num_args = 1, conflicts_with_all = ["loss", "seed"])]
    pub(crate) between: Vec<String>,
    /// In real time: the receiver, at this address of the host that AEROSTAT_ATM names, or at a free one; until Ctrl-C
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "",
        conflicts_with_all = ["loss", "seed", "between", "test", "profile", "octets"])]
    pub(crate) serve: Option<String>,
    /// In real time: the sender, from the host that AEROSTAT_ATM names to a receiver
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["loss", "seed", "between", "serve"])]
    pub(crate) connect: Option<String>,
    #[command(flatten)]
    pub(crate) which: RunningLab,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Tell nothing of transfers
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

aerostat_wire::named! {
    /// A test of the report.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
    pub(crate) enum AtptestTest {
        Throughput = "throughput",
        Latency = "latency",
        Correctness = "correctness",
    }
    /// Rules of ATP.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
    pub(crate) enum AtptestProfile {
        Report = "report",
        Adaptive = "adaptive",
    }
}

fn probability(text: &str) -> Result<f64, String> {
    let value = text.parse().ok();
    let value = value.filter(|value| (0.0..=1.0).contains(value));
    value.ok_or_else(|| "a probability is 0 to 1".to_owned())
}
