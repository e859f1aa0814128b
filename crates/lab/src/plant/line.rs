//! A line, which is one direction of a link, and what it does to a run of cells.

use crate::circuits::LinkCounters;
use crate::model::{Errors, LineChange, LineParams, Link, LinkEnd, LinkId};
use aerostat_node::atm::{CellRate, CellRun, Framing, Key};
use aerostat_node::ip::books::Cause;
use aerostat_proto::{Duration, Instant};
use std::collections::VecDeque;

/// Number of a line: 2N goes from end 0 to end 1 of link N, and 2N + 1 goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineId(pub u32);

impl LineId {
    /// The line that starts at end `side` (0 or 1) of a link.
    #[must_use]
    pub const fn of(link: LinkId, side: usize) -> Self {
        Self((2 * link.0 + side) as u32)
    }
    /// Both lines of a link.
    #[must_use]
    pub const fn both(link: LinkId) -> [Self; 2] {
        [Self::of(link, 0), Self::of(link, 1)]
    }
    /// The link.
    #[must_use]
    pub const fn link(self) -> LinkId {
        LinkId(self.0 as usize / 2)
    }
    /// The end of the link at which the line starts: 0 or 1.
    #[must_use]
    pub const fn side(self) -> usize {
        self.0 as usize % 2
    }
}

/// Properties of one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineConfig {
    /// The rate at which the port in front of it sends; `None` if only the port knows.
    pub rate: Option<CellRate>,
    /// Time from the end of a cell at the sender to its end at the receiver.
    pub delay: Duration,
    /// Random errors.
    pub errors: Errors,
}

impl LineConfig {
    /// The line with new values.
    #[must_use]
    pub fn with(self, change: &LineChange) -> Self {
        let old = self.errors;
        Self {
            rate: change.rate.or(self.rate),
            delay: change.delay.unwrap_or(self.delay),
            errors: Errors {
                loss: change.loss.unwrap_or(old.loss),
                bits: change.bits.unwrap_or(old.bits),
                blocks: change.blocks.unwrap_or(old.blocks),
                block: change.block.unwrap_or(old.block),
            },
        }
    }
}

impl From<LineParams> for LineConfig {
    fn from(line: LineParams) -> Self {
        Self {
            rate: Some(line.rate),
            delay: line.delay,
            errors: line.errors,
        }
    }
}

/// Properties of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkConfig {
    /// Its directions, by the end at which they start.
    pub lines: [LineConfig; 2],
    /// The frames in which it carries cells; `None` if it carries them one by one.
    pub framing: Option<Framing>,
}

impl LinkConfig {
    /// A link without errors. Its rate is that of the output ports at its ends.
    #[must_use]
    pub const fn new(delay: Duration) -> Self {
        Self::with_errors(delay, Errors::NONE)
    }
    /// The same with errors, in both directions alike.
    #[must_use]
    pub const fn with_errors(delay: Duration, errors: Errors) -> Self {
        let line = LineConfig {
            rate: None,
            delay,
            errors,
        };
        Self {
            lines: [line; 2],
            framing: None,
        }
    }
    /// The properties of a lab's link.
    #[must_use]
    pub fn of(link: &Link) -> Self {
        Self {
            lines: link.lines.map(LineConfig::from),
            framing: link.framing,
        }
    }
}

/// Effects of a line on the cells that cross it, apart from their delay.
pub trait Medium {
    /// A run crosses the line: its first cell starts at `start`, and its last cell ends at `finish`. The medium counts
    /// lost and damaged cells.
    fn cross(
        &mut self,
        run: CellRun,
        start: Instant,
        finish: Instant,
        counters: &mut LinkCounters,
    ) -> Crossed;

    /// True if the cells of this run must cross one by one.
    fn one_by_one(&self, run: &CellRun) -> bool {
        let _ = run;
        false
    }

    /// True if cells cross the line unchanged and unseen, so that they may be carried as trains.
    fn is_plain(&self) -> bool {
        false
    }

    /// The line went down or came up. All cells on it are lost.
    fn interrupt(&mut self) {}

    /// The random errors of the line are others from now on.
    fn change(&mut self, errors: &Errors);
}

/// The effect of a line on a run of cells.
#[derive(Debug)]
pub enum Crossed {
    /// The run arrives unchanged.
    Intact(CellRun),
    /// Instead of the second run the first one arrives. The PDU of the second run is damaged.
    Damaged(CellRun, CellRun),
    /// The run does not arrive, for this reason.
    Lost(CellRun, Cause),
}

/// One direction of a link.
#[derive(Debug)]
pub struct Line<M> {
    /// The sending end.
    pub from: LinkEnd,
    /// The receiving end.
    pub to: LinkEnd,
    /// Time from the end of a cell at the sender to its end at the receiver.
    pub delay: Duration,
    /// True if it carries cells, false if it loses all of them.
    pub up: bool,
    /// The fate of its cells.
    pub counters: LinkCounters,
    /// Effects on cells.
    pub medium: M,
    /// True to log the PDUs that lose cells in front of it.
    pub(super) logs_drops: bool,
    /// Source of its events.
    pub(super) source: u32,
    /// The cells on it, with the times at which they arrive.
    pub(super) on_the_way: VecDeque<(Instant, CellRun)>,
    /// How far the port in front of it is brought up to date.
    pub(super) settled: Key,
    /// True if its event waits for the end of the driver's step; see [`Driver::horizon`](super::Driver::horizon).
    pub(super) put_off: bool,
    /// True if the network lagged behind ([`Driver::is_late`](super::Driver::is_late)) when its event was last put off.
    pub(super) late: bool,
    /// Its use before its rate last changed: cells sent until then, and how long they took.
    pub(super) before: (u64, Duration),
}

impl<M> Line<M> {
    pub(super) fn new([from, to]: [LinkEnd; 2], delay: Duration, source: u32, medium: M) -> Self {
        Self {
            from,
            to,
            delay,
            up: false,
            counters: LinkCounters::default(),
            medium,
            logs_drops: false,
            source,
            on_the_way: VecDeque::new(),
            settled: (0, 0),
            put_off: false,
            late: false,
            before: (0, Duration::ZERO),
        }
    }
}
