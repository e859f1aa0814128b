//! Arguments of `verify`.

use super::OutputArgs;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
DIR is what 'run --out', 'sweep --out' or 'reproduce --report' has written. Its
manifest.json has the lab, the options, the seeds, the program and the SHA-256
of each file. The command runs the same again in a directory of its own, and
compares each file to the octet; it needs nothing else, and changes nothing in
DIR. Files that the manifest does not name are left alone.

States of a file:
  same         as the manifest says, and the same in the new run
  changed      no longer what the manifest says
  missing      the manifest names it, and it is not there
  differs      unchanged, but the new run has other octets
  not made     unchanged, but the new run does not make it
  new          only the new run makes it

Exit codes:
  0  all files are the same
  1  a file is not, or the new run failed
  2  wrong usage: no manifest, or one that cannot be read
  6  no file has changed, and nothing can run again: results of real time

Examples:
  aerostat run two-hosts -q -o csv --out results
  aerostat verify results
  aerostat verify results -o json
  aerostat verify results --no-run")]
pub(crate) struct VerifyArgs {
    /// Directory of results
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Compare the files with the manifest only; run nothing
    #[arg(long)]
    pub(crate) no_run: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Show files that are not the same, and say nothing else
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
