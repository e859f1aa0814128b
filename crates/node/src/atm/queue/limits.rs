//! Limits of a queue: thresholds for cells and frames, and a buffer that queues share.

/// Cells of the longest AAL5 frame: 65 535 octets. Source: I.363.5 §9.
pub(super) const FRAME: u32 = 1366;

/// Bounds of a buffer, in cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Limit of cells.
    pub max: u32,
    /// At this level and above, new frames are discarded whole. At most `max`.
    pub early: u32,
    /// At this level and above, cells with CLP 1 are discarded. At most `max`.
    pub low_priority: u32,
    /// At this level and above, user cells that are queued get the mark of congestion (EFCI); [`Self::NEVER`]: no cell
    /// does.
    pub mark: u32,
}

impl Limits {
    /// A threshold that no level reaches.
    pub const NEVER: u32 = u32::MAX;

    /// `max` cells; early discard from three quarters of it, low priority from half of it.
    #[must_use]
    pub const fn of(max: u32) -> Self {
        Self {
            max,
            early: max - max / 4,
            low_priority: max - max / 2,
            mark: Self::NEVER,
        }
    }
    /// `max` cells without lower thresholds.
    #[must_use]
    pub const fn plain(max: u32) -> Self {
        Self {
            max,
            early: max,
            low_priority: max,
            mark: Self::NEVER,
        }
    }
    /// Cells at and above which a cell is judged by itself.
    pub(super) const fn first(&self, frames: bool, clp: bool) -> u32 {
        let mut first = if self.mark < self.max {
            self.mark
        } else {
            self.max
        };
        if clp && self.low_priority < first {
            first = self.low_priority;
        }
        if frames && self.early < first {
            first = self.early;
        }
        first
    }
}

/// Settings of a connection for the queues on its way. `None` is the queue's own value, and a threshold of 0 the
/// default of its limit. `None` is what the queue has, and a threshold of 0 the default of its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Share of what the discipline by weight has left.
    pub weight: u16,
    /// True to delay cells to the rates of the contract.
    pub shaped: bool,
    /// Limit of cells; the other bounds follow it as usual, if they are not given.
    pub max: Option<u32>,
    /// See [`Limits::early`].
    pub early: Option<u32>,
    /// See [`Limits::low_priority`].
    pub low_priority: Option<u32>,
    /// See [`Limits::mark`].
    pub mark: Option<u32>,
}

impl Tuning {
    /// Nothing is given.
    pub const DEFAULT: Self = Self {
        weight: 1,
        shaped: false,
        max: None,
        early: None,
        low_priority: None,
        mark: None,
    };

    /// The bounds of a queue or buffer that has these usually. A threshold above the limit counts as the limit.
    #[must_use]
    pub fn limits(&self, usual: Limits, guaranteed: bool) -> Limits {
        let of = if guaranteed {
            Limits::plain
        } else {
            Limits::of
        };
        let own = self.max.filter(|max| *max > 0).map(of);
        let mut limits = own.unwrap_or(usual);
        let default = of(limits.max);
        let given = |value: Option<u32>, usual: u32, default: u32| match value {
            None => usual,
            Some(0) => default,
            Some(value) => value.min(limits.max),
        };
        let (early, low_priority) = (limits.early, limits.low_priority);
        let early = given(self.early, early, default.early);
        let low_priority = given(self.low_priority, low_priority, default.low_priority);
        let mark = given(self.mark, usual.mark, default.mark);
        (limits.early, limits.low_priority, limits.mark) = (early, low_priority, mark);
        limits
    }
}

/// A shared buffer: its bounds, and what follows from them for each cell.
#[derive(Clone, Copy, Debug)]
pub(in crate::atm) struct Buffer {
    pub(in crate::atm) limits: Limits,
    /// Cells at and above which a cell is judged by itself: without and with frame discard, with CLP 0 and 1.
    pub(super) alone: [[u32; 2]; 2],
}

impl Buffer {
    pub(in crate::atm) const fn new(limits: Limits) -> Self {
        Self {
            limits,
            alone: [
                [limits.first(false, false), limits.first(false, true)],
                [limits.first(true, false), limits.first(true, true)],
            ],
        }
    }
    #[inline(always)]
    pub(super) fn alone(&self, frames: bool, clp: bool) -> u32 {
        self.alone[usize::from(frames)][usize::from(clp)]
    }
}
