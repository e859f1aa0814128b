//! Arguments of `events`, and what it has in common with `run`.

use super::RunningLab;
use clap::{Args, ValueEnum};
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = "\
With --initial-state the lines are those of 'aerostat run --events', without
messages (see 'aerostat trace'): first what the lab consists of and its present
state, then with --follow each change. docs/events.md describes both forms.

Examples:
  aerostat events
  aerostat events --follow --lab campus
  aerostat events --initial-state --follow --stats 1s
  aerostat events --initial-state --follow --every 200ms
  aerostat events --schema")]
pub(crate) struct EventsArgs {
    /// Go on until interrupted
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Show what has happened so far and return: so it is without --follow, too
    #[arg(long, conflicts_with = "follow")]
    pub(crate) no_follow: bool,
    /// Show what the lab consists of and its present state, and with --follow what changes
    #[arg(long)]
    pub(crate) initial_state: bool,
    /// With --initial-state: counters and levels, with --follow again after this time
    #[arg(long, value_name = "TIME", value_parser = sample, requires = "initial_state")]
    pub(crate) stats: Option<Duration>,
    /// With --initial-state: gather what happens, and tell it each time that this time has passed: states as they are
    /// then, the latest messages and steps of the story, and how many were left out
    #[arg(long, value_name = "TIME", value_parser = sample, requires = "initial_state")]
    pub(crate) every: Option<Duration>,
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: EventsFormat,
    /// Print the JSON Schema of a line of --initial-state, and of 'aerostat run --events'
    #[arg(long, conflicts_with_all = ["follow", "initial_state"])]
    pub(crate) schema: bool,
    #[command(flatten)]
    pub(crate) which: RunningLab,
}

/// Forms of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventsFormat {
    /// One JSON object on each line
    #[default]
    Json,
    /// Columns for people: time, kind, and what is new
    Table,
}

/// A time between samples, from a microsecond on.
pub(crate) fn sample(text: &str) -> Result<Duration, String> {
    let time = aerostat_lab::units::duration(text)?;
    match time < Duration::from_micros(1) {
        true => Err("a microsecond (1us) is the least".to_owned()),
        false => Ok(time),
    }
}
