//! Checks: what a lab should do, and whether it does.
//!
//! **How.** [`Check`]s come from `checks:` of a lab file or from a file of their own. A driver runs the lab and
//! collects [`Evidence`]: tables of results, and what [`Watch`] has seen of messages and shortcuts. [`judge()`]
//! compares both and knows no driver, so that virtual and real time give the same verdicts.
//!
//! **Bounds.** A lab has at most [`MOST`] checks. A watch keeps a count for each of them, whatever the lab sends.

mod judge;
mod read;
mod sentence;
pub(crate) mod wanted;
mod watch;

pub use judge::{Evidence, Judged, Seen, Verdict, judge};
pub(crate) use read::{answers, read, replace};
pub use wanted::Wanted;
pub use watch::{Forgotten, Watch};

use aerostat_node::inspect::TableInfo;
use aerostat_proto::Duration;

/// Most checks of a lab.
pub const MOST: usize = 1000;

/// One check.
#[derive(Clone, Debug)]
pub struct Check {
    /// Subject, and what it must be.
    pub what: What,
    /// Its name in the report.
    pub title: String,
    /// Its stage, if it has one.
    pub stage: Option<String>,
    /// Points if it passes.
    pub points: u64,
    /// Its weight.
    pub level: Level,
    /// Words for the report if it passes.
    pub pass: Option<String>,
    /// Words for the report if it fails.
    pub fail: Option<String>,
    /// How far numbers may be off in real time.
    pub tolerance: Option<f64>,
}

/// The weight of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The lab fails if it fails.
    Required,
    /// Its failure is a warning.
    Warning,
}

/// Things that checks look at.
#[derive(Clone, Debug)]
pub enum What {
    /// Echo requests of one host are answered by another.
    Reach {
        /// The two hosts.
        ends: [String; 2],
        /// Time since the start of the lab, or in a running lab since the check.
        within: Duration,
        /// Number of answers.
        is: Wanted,
    },
    /// Shortcuts from one end system to another are open.
    Shortcut {
        /// The two end systems.
        ends: [String; 2],
        /// At any time up to this one; `None`: at the end.
        by: Option<Duration>,
        /// Number of shortcuts.
        is: Wanted,
    },
    /// Figures of a flow.
    Flow {
        /// Its name.
        name: String,
        /// The way of the packets that count; `None`: all.
        phase: Option<Phase>,
        /// Conditions on its figures.
        figures: Vec<(Figure, Wanted)>,
    },
    /// Rows of a table of results.
    Table {
        /// The table.
        info: &'static TableInfo,
        /// Columns that say which rows count.
        conditions: Vec<(String, Wanted)>,
        /// Column for which `is` is; `None`: `is` is for the number of rows.
        column: Option<String>,
        /// The number of rows, or each value of the column.
        is: Wanted,
    },
    /// Messages of protocols on links.
    Message {
        /// Words in small letters that the message has.
        words: String,
        /// The node that sends it on a link.
        from: Option<String>,
        /// The node at the other end.
        to: Option<String>,
        /// Only messages later than this.
        after: Option<Duration>,
        /// Only messages up to this time.
        before: Option<Duration>,
        /// Number of messages.
        is: Wanted,
    },
    /// A command in a host.
    Run {
        /// The host.
        node: String,
        /// The command, for a shell.
        command: String,
        /// Its exit code.
        exit: u64,
        /// Words that it prints.
        prints: Option<String>,
    },
    /// An end system of the lab.
    Station {
        /// True for a router, false for a host.
        router: bool,
        /// Its name.
        name: String,
        /// A network that it is on.
        elan: Option<String>,
        /// Its switch.
        on: Option<String>,
    },
    /// A link between two nodes.
    Link([String; 2]),
    /// The number of parts of a kind.
    Count(Part, Wanted),
    /// A value of the settings, by its path.
    Setting(String, Wanted),
    /// An answer to a question.
    Answer(String, Wanted),
}

/// Parts of a lab that can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// ATM switches.
    Switches,
    /// Hosts.
    Hosts,
    /// Routers.
    Routers,
    /// Links, also those of end systems.
    Links,
    /// Emulated LANs, Classical IP subnets and lines.
    Elans,
    /// Permanent connections.
    Pvcs,
    /// Flows.
    Traffic,
    /// Faults.
    Faults,
}

/// A figure of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Packets lost.
    Lost,
    /// Packets delivered.
    Delivered,
    /// One-way delay, µs.
    DelayUs(Delay),
    /// Payload received per time, Mbit/s.
    ThroughputMbps,
}

/// A value of a distribution of delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delay {
    /// Smallest.
    Min,
    /// Arithmetic mean.
    Mean,
    /// Median.
    P50,
    /// 99th percentile.
    P99,
    /// 99.9th percentile.
    P999,
    /// Largest.
    Max,
}

/// The way of packets of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Inside one subnet.
    Direct,
    /// By routers.
    Routed,
    /// By a shortcut.
    Shortcut,
}

impl Check {
    /// True if its number depends on how fast the machine is in real time.
    #[must_use]
    pub fn is_timing(&self) -> bool {
        match &self.what {
            What::Flow { figures, .. } => figures.iter().any(|(figure, _)| figure.is_timing()),
            What::Table {
                column, conditions, ..
            } => {
                let named = conditions.iter().map(|(name, _)| name).chain(column);
                let units = ["_us", "_ms", "_mbps"];
                named
                    .into_iter()
                    .any(|name| units.iter().any(|unit| name.contains(unit)))
            }
            _ => false,
        }
    }
}

impl Figure {
    const fn is_timing(self) -> bool {
        matches!(self, Self::DelayUs(_) | Self::ThroughputMbps)
    }
}

#[cfg(test)]
mod tests;
