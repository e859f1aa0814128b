//! Arguments of `run`.

use super::*;

#[derive(Debug, Args)]
#[command(after_help = "\
The story of the run goes to standard error, the results to standard output:
short tables for people; with -o json one document with everything; with -o
jsonl a row of any table on each line; with -o csv one table. Ctrl-C ends the
run and shows the results so far; the exit code is 3 then. Links under
'capture:' in the lab file are recorded in LAB.pcapng in the current directory,
or in the directory of --pcap.

Examples:
  aerostat run campus
  aerostat run campus --set mpoa=false --until 20s
  aerostat run campus --table vcs
  aerostat run campus --wide
  aerostat run campus -q -o csv --out results
  aerostat run campus --seed 7 -o json
  aerostat run campus --seeds 1-8 --table flows -o csv
  aerostat run campus --sweep mpoa=true,false --seeds 1-3 -o json
  aerostat run two-hosts --pcap captures --quiet
  aerostat run campus --plot drawings
  aerostat run two-hosts --trace --until 1s -q | grep SETUP
  aerostat run campus --view campus.html
  aerostat run campus --view campus.html --follow voice:100
  aerostat run campus --events campus.jsonl --sample 50ms
  aerostat run - < mine.atm.yml")]
pub(crate) struct RunArgs {
    /// Lab file (NAME.atm.yml), name of a lab of the program ('aerostat labs'), or - for standard input; if left out,
    /// the only lab file of the directory
    #[arg(default_value = ".", hide_default_value = true, add = names::files())]
    pub(crate) lab: PathBuf,
    /// Change a value of the file, for example mpoa=false; checked like the file
    #[arg(long, value_name = "PATH=VALUE")]
    pub(crate) set: Vec<Override>,
    /// Seed of all random streams, instead of the file's
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = seed)]
    pub(crate) seed: Option<u64>,
    /// A run for each of these seeds: 1-8, or 1,5,20-29
    #[arg(long, value_name = "LIST", allow_hyphen_values = true, conflicts_with_all = ["seed", "schema"])]
    pub(crate) seeds: Option<String>,
    /// A run for each of these values of the file, as with --set; several --sweep give all combinations
    #[arg(long, value_name = "PATH=VALUE,VALUE...", conflicts_with = "schema")]
    pub(crate) sweep: Vec<String>,
    /// With --seeds or --sweep: runs at the same time; by default as many as there are processors
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// When the run ends (20s), instead of the file's time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) until: Option<String>,
    /// Write one pcapng file per node into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) pcap: Option<PathBuf>,
    /// Draw delays, and levels and windows over time, into this directory, or the first drawing into this SVG file
    #[arg(long, value_name = "FILE.svg|DIR")]
    pub(crate) plot: Option<PathBuf>,
    /// Record single cells instead of whole PDUs
    #[arg(long)]
    pub(crate) cells: bool,
    /// Write everything that a picture of the run needs, in time: JSON lines (docs/events.md); - is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
    /// Write the run as a page for a browser, with all it needs: the network in time, messages, plots, tables
    #[arg(long, value_name = "FILE.html")]
    pub(crate) view: Option<PathBuf>,
    /// Time between two samples of counters and levels in --events and --view, 100ms by default
    #[arg(long, value_name = "TIME", value_parser = sample)]
    pub(crate) sample: Option<Duration>,
    /// Show the way of this packet in --events and --view, too, as 'aerostat follow' does; several times for several
    #[arg(long, value_name = "FLOW[:N]")]
    pub(crate) follow: Vec<String>,
    #[command(flatten)]
    pub(crate) results: ResultArgs,
    /// Print the JSON Schema of the results
    #[arg(long, conflicts_with_all = ["lab", "set"])]
    pub(crate) schema: bool,
    /// Show the messages of all protocols on all links, as a ladder between the lines of the story, instead of the
    /// tables for people; with -o json, jsonl or csv, --table or --wide the ladder goes to standard error
    #[arg(long, conflicts_with_all = ["seeds", "sweep"])]
    pub(crate) trace: bool,
    /// Say at the end on standard error how many events the run had, and how many cells were events of their own, and
    /// why (docs/results.md)
    #[arg(long, conflicts_with_all = ["seeds", "sweep"])]
    pub(crate) work: bool,
    /// Tell no story
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Say once a second how far the run is, also where standard error is no terminal
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) progress: bool,
    /// This is one of several runs, and ends with the process that has started it
    #[arg(long, hide = true)]
    pub(crate) one_of_several: bool,
}

/// A seed in the syntax of the lab file.
pub(super) fn seed(text: &str) -> Result<u64, String> {
    let seed = text.parse();
    seed.map_err(|_| format!("a seed is a whole number of 0 to {}", u64::MAX))
}
