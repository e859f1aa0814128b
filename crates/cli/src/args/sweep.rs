//! Arguments of `sweep`.

use crate::names;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Runs a lab in virtual time for all combinations of the values of --set, or for
each row of --points, and with each seed, and writes one table: a row for each
run, flow and phase. All points are checked before the first run. With --out the
runs that have ended are kept, also after Ctrl-C, a crash or a full disk: the
same command does the rest alone. A run counts as done if the lab with its
changes, the seed and the version of the program are the same.
--mean has a row for each point and flow: means over the seeds, half the width
of their 95 % confidence interval (COLUMN_ci95, Student's t; empty for one seed)
and the number of seeds (n).
Exit code 0: done; 1: failed, for example on a full disk; 2: wrong usage, or a
point that the lab does not allow, before any run; 3: runs failed or have
warnings, or Ctrl-C.

Examples:
  aerostat sweep two-subnets --seeds 1-20 \\
      --set links.s1-s2.delay=5us,1ms,5ms
  aerostat sweep one-elan --seeds 1-20 --mean -o csv \\
      --set links.s1-s2.loss=0,1e-5,1e-4
  aerostat sweep one-elan --points points.csv --out results.parquet
  aerostat sweep campus --set mpoa=true,false --seeds 1-8 \\
      --per run --out campus
  aerostat sweep one-elan --plot delay.svg \\
      --set links.s1-s2.delay=5us,1ms,5ms")]
pub(crate) struct SweepArgs {
    /// Lab file (NAME.atm.yml), name of a lab of the program ('aerostat labs'), or - for standard input; if left out,
    /// the only lab file of the directory
    #[arg(default_value = ".", hide_default_value = true, add = names::files())]
    pub(crate) lab: PathBuf,
    /// Values of a key of the file; several --set give all combinations; commas in brackets or quotation marks do not
    /// count
    #[arg(long, value_name = "PATH=VALUE,VALUE...")]
    pub(crate) set: Vec<String>,
    /// Points from a CSV file (a column for each key) or a JSON file (a list of objects)
    #[arg(long, value_name = "FILE")]
    pub(crate) points: Option<PathBuf>,
    /// A run for each of these seeds: 1-8, or 1,5,20-29
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub(crate) seeds: Option<String>,
    /// When runs end (20s), instead of the file's time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) until: Option<String>,
    /// Runs at the same time; by default as many as there are processors
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Subject of a row
    #[arg(long, value_enum, default_value_t)]
    pub(crate) per: Per,
    /// Rows of this table of the results instead of flows, such as links or queues
    #[arg(long, value_name = "NAME", conflicts_with = "per", add = names::tables())]
    pub(crate) table: Option<String>,
    /// Means over the seeds with 95 % confidence intervals
    #[arg(long)]
    pub(crate) mean: bool,
    /// Form of the table; by default csv with --out DIR, and table without --out
    #[arg(short, long, value_enum)]
    pub(crate) output: Option<SweepForm>,
    /// All columns of a table for people, not only those that fit 80 columns
    #[arg(long)]
    pub(crate) wide: bool,
    /// Write the table into this file (.csv, .jsonl or .parquet) or directory, and keep the runs beside it
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) out: Option<PathBuf>,
    /// With --out: do all runs again
    #[arg(long, requires = "out")]
    pub(crate) again: bool,
    #[command(flatten)]
    pub(crate) plot: PlotArgs,
    /// Say nothing about progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Drawings of a sweep.
#[derive(Clone, Debug, Args)]
pub(crate) struct PlotArgs {
    /// Draw columns over a key into this SVG file, or several drawings into this directory
    #[arg(long, value_name = "FILE.svg|DIR")]
    pub(crate) plot: Option<PathBuf>,
    /// The key on the horizontal axis; by default the first that varies
    #[arg(long, value_name = "PATH", requires = "plot")]
    pub(crate) x: Option<String>,
    /// Columns to draw; by default throughput_mbps, and into a directory also delays and losses
    #[arg(long, value_name = "COLUMN", value_delimiter = ',', requires = "plot")]
    pub(crate) y: Vec<String>,
    /// Draw two keys as a map, with the value as colour and number
    #[arg(long, requires = "plot")]
    pub(crate) map: bool,
}

/// Subject of a row of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Per {
    /// A flow of a run, in one phase
    #[default]
    Flow,
    /// A run: sums and means over its flows
    Run,
}

/// Forms of the table of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SweepForm {
    /// Columns for people
    Table,
    /// Comma-separated values with a header line
    Csv,
    /// One JSON object per row and line
    Jsonl,
    /// Apache Parquet, for --out
    Parquet,
}

impl SweepForm {
    /// The form that the end of a file's name stands for.
    pub(crate) fn of_extension(extension: &str) -> Option<Self> {
        match extension {
            "csv" => Some(Self::Csv),
            "jsonl" => Some(Self::Jsonl),
            "parquet" => Some(Self::Parquet),
            _ => None,
        }
    }

    /// The end of a file's name.
    pub(crate) const fn extension(self) -> &'static str {
        match self {
            Self::Table => "txt",
            Self::Csv => "csv",
            Self::Jsonl => "jsonl",
            Self::Parquet => "parquet",
        }
    }
}
