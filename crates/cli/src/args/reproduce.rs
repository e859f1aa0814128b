//! Arguments of `reproduce`.

use super::OutputArgs;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Runs labs in virtual time and sets their results beside the numbers that five
papers print (docs/reproduce.md). Entries are called PAPER/TABLE: 'list' shows
them, 'all' is every entry, and PAPER is all of its entries. A row is 'ok' or a
'miss' by the rule in column 'rule'; 'calibration' if a parameter was fitted
from it, and 'shown' if nothing is claimed. Entries with a random part run with
each of --seeds; the row has the median, and its range in 'low' and 'high'. Labs
and catalogue are in labs/papers.
--calibrate fits the parameters of the entries again and writes all parameters
into a file for --parameters.
'quick' is some rows of each paper that take less than a minute.
--compare lists the rows whose model is not that of a file that -o csv has
written, such as labs/papers/results.csv; exit code 3: there is one.
--assumed halves and doubles each value of the labs that no paper and no fit
gives, and lists the rows of papers whose result then changes.
With --keep the rows that are finished are kept, also after Ctrl-C or a crash:
the same command does the rest alone. A row counts as finished if the lab with
its changes, the seed and the program (version and commit) are the same.
--catalogue takes all files of labs/papers from another folder: rules, rows and
labs can be changed without a new build.
--live also runs the rows that depend on the TCP of the hosts between Linux
kernels, in real time: columns 'live...' beside the model, which stays that of
virtual time, and all settings of the kernels. It needs root and a machine that
does little else.
Exit code 0: every row with a rule is ok; 3: a row is a miss, or Ctrl-C; 2:
wrong usage; 5: no privilege for --live.

Examples:
  aerostat reproduce list
  aerostat reproduce sara/1 atp
  aerostat reproduce all --seeds 1-10 -o json
  aerostat reproduce quick --compare labs/papers/results.csv
  aerostat reproduce all --report report
  aerostat reproduce all --keep runs.jsonl -q -o csv > results.csv
  aerostat reproduce thesis/5.4 --live
  aerostat reproduce sara --assumed
  aerostat reproduce sara --calibrate parameters.yml")]
pub(crate) struct ReproduceArgs {
    /// Entries: PAPER, PAPER/TABLE, "PAPER/TABLE: ROW", all, quick or list
    #[arg(value_name = "ENTRY", default_value = "list")]
    pub(crate) entries: Vec<String>,
    /// Seeds of entries with a random part: 1-10, or 1,5,20-29; by default 1 to 3, or as many as the entry says
    #[arg(long, value_name = "LIST")]
    pub(crate) seeds: Option<String>,
    /// Runs at the same time; by default as many as there are processors
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// Fit the parameters of these entries and write them into this file
    #[arg(long, value_name = "FILE")]
    pub(crate) calibrate: Option<PathBuf>,
    /// Parameters from this file
    #[arg(long, value_name = "FILE")]
    pub(crate) parameters: Option<PathBuf>,
    /// List the rows whose model is not that of this file, in the place of the results
    #[arg(long, value_name = "FILE", conflicts_with_all = ["calibrate", "assumed"])]
    pub(crate) compare: Option<PathBuf>,
    /// Halve and double each assumed or chosen value, and list the rows whose result changes
    #[arg(long, conflicts_with_all = ["calibrate", "live", "report"])]
    pub(crate) assumed: bool,
    /// Entries, labs, parameters and printed values from this folder, which has the files of labs/papers
    #[arg(long, value_name = "DIR")]
    pub(crate) catalogue: Option<PathBuf>,
    /// Keep values of rows in this file as they are finished; a later call with it runs the others alone
    #[arg(long, value_name = "FILE")]
    pub(crate) keep: Option<PathBuf>,
    /// Printed values from this file
    #[arg(long, value_name = "FILE")]
    pub(crate) printed: Option<PathBuf>,
    /// Write a report into this directory: index.html with tables, drawings, labs and parameters, and a file per
    /// drawing
    #[arg(long, value_name = "DIR", conflicts_with = "calibrate")]
    pub(crate) report: Option<PathBuf>,
    /// Run the rows that need another TCP between Linux kernels in real time, too
    #[arg(long, conflicts_with = "calibrate")]
    pub(crate) live: bool,
    /// With --live: how often each of these rows runs
    #[arg(long, value_name = "N", default_value_t = 3, requires = "live", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) live_runs: u16,
    /// With --live: seconds of each stream, instead of those of the lab
    #[arg(long, value_name = "SECONDS", requires = "live", value_parser = clap::value_parser!(u16).range(1..=3600))]
    pub(crate) live_seconds: Option<u16>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Tell nothing of runs, except a line each half a minute if they take long
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
