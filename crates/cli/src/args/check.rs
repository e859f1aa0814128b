//! Arguments of `check`.

use super::RunningLab;
use crate::names;
use aerostat_lab::{Override, units};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = "\
Runs the lab in virtual time, and tells for each check under 'checks:' of the
lab file whether it passes. With --checks FILE the checks, and other sections,
of FILE stand in place of those of the lab. docs/checks.md has all checks.
--all checks a class: each directory of DIR with one lab file, and each lab file
in DIR, is a row. Each is a process of its own with limits of time and memory,
which reads no other file and runs no command.
--lab judges a lab that 'aerostat up' runs, as it is now.
Exit code 0: all pass; 1: a check fails; 2: wrong usage, or a lab file or checks
with errors; 3: all pass, with warnings; 4: no such lab runs, or it has ended;
6: none fails, and one cannot be judged here, or nothing is judged.

Examples:
  aerostat check mine.atm.yml
  aerostat check mine.atm.yml --checks exercise.yml
  aerostat check mine.atm.yml --checks neighbour
  aerostat check mine.atm.yml --checks exercise.yml --details
  aerostat check mine.atm.yml --checks exercise.yml -o junit > report.xml
  aerostat check --lab mine --checks exercise.yml
  aerostat check --all class --checks exercise.yml -o csv > marks.csv
  aerostat check --all class --checks exercise.yml --time 10s --memory 512MiB")]
pub(crate) struct CheckArgs {
    /// Lab file (NAME.atm.yml), name of a lab of the program ('aerostat labs'), or - for standard input; if left out,
    /// the only lab file of the directory
    #[arg(value_name = "LAB", default_value = ".", hide_default_value = true, add = names::files(), conflicts_with = "lab")]
    pub(crate) file: PathBuf,
    /// File with checks, or name of an exercise of the program ('aerostat labs --exercises'), in place of those of the
    /// lab file
    #[arg(long, value_name = "FILE")]
    pub(crate) checks: Option<PathBuf>,
    /// Change a value of the file, for example mpoa=false; checked like the file
    #[arg(long, value_name = "PATH=VALUE", conflicts_with_all = ["all", "lab"])]
    pub(crate) set: Vec<Override>,
    #[command(flatten)]
    pub(crate) which: RunningLab,
    /// Check the labs of a class, which are in this directory
    #[arg(long, value_name = "DIR", requires = "checks", conflicts_with_all = ["file", "lab"])]
    pub(crate) all: Option<PathBuf>,
    /// With --all: labs at the same time; by default as many as there are processors
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// With --all: longest time of each lab; by default 60s
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub(crate) time: Option<Duration>,
    /// With --all: most memory of each lab
    #[arg(long, value_name = "OCTETS", default_value = "1GiB", value_parser = units::octets)]
    pub(crate) memory: usize,
    /// Tell what was found and wanted, also where a check has words of its own
    #[arg(long)]
    pub(crate) details: bool,
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: ReportFormat,
    /// This process checks one lab of a class, which has this name
    #[arg(long, hide = true)]
    pub(crate) one_of_class: Option<String>,
}

/// Form of a report about checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// Lines for people
    #[default]
    Table,
    /// One JSON document with a "schema"
    Json,
    /// XML of JUnit, for systems that show tests
    Junit,
    /// Test Anything Protocol, version 14
    Tap,
    /// Comma-separated values with a header line
    Csv,
}
