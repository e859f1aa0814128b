//! Arguments of the commands that write results: `run`, `up` and `down`.

use super::OutputArgs;
use crate::names;
use clap::Args;
use std::path::PathBuf;

/// Options of commands that write several tables.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TableArgs {
    /// Only this table, such as ingress or mpc.ingress
    #[arg(long, value_name = "NAME")]
    pub(crate) table: Option<String>,
    /// With -o csv or -o jsonl: write each table into a file of its own in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// Selection of results, their form, and their place.
#[derive(Clone, Debug, Args)]
pub(crate) struct ResultArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Only this table of the results, such as flows, vcs or queues (docs/results.md has them all)
    #[arg(long, value_name = "NAME", add = names::tables())]
    pub(crate) table: Option<String>,
    /// Write all results into this directory: a file per table with -o csv and -o jsonl
    #[arg(long, value_name = "DIR", conflicts_with = "table")]
    pub(crate) out: Option<PathBuf>,
}
