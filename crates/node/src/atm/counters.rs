//! Counters of cells, and the reasons for dropping cells.

aerostat_wire::named! {
    /// Why cells were dropped.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum DropReason {
        /// The queue of the VC, or the buffer of the port, was full.
        Overflow = "queue full",
        /// Early packet discard: a whole frame was dropped, because the queue was long when the frame began.
        EarlyDiscard = "early packet discard",
        /// Partial packet discard: the rest of a frame that had lost a cell.
        PartialDiscard = "partial packet discard",
        /// The queue was above the threshold for cells with CLP 1.
        LowPriority = "low priority",
        /// The cell did not conform to the traffic contract.
        Policed = "not conforming",
        /// No connection has this label.
        UnknownVc = "unknown VC",
        /// The connection was closed while the cell waited.
        Closed = "connection closed",
        /// The link is down.
        LinkDown = "link down",
        /// The label is for the node itself, and the node does not use it.
        NotForUs = "not for us",
    }
}

/// Counters of cells for each name of an enum.
macro_rules! tally {
    ($(#[$meta:meta])* pub struct $tally:ident of $reason:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $tally([u64; $reason::ALL.len()]);

        impl $tally {
            /// Counts cells.
            pub const fn add(&mut self, reason: $reason, cells: u64) {
                self.0[reason as usize] += cells;
            }
            /// Cells of one reason.
            #[must_use]
            pub const fn of(&self, reason: $reason) -> u64 {
                self.0[reason as usize]
            }
            /// Cells of all reasons.
            #[must_use]
            pub fn total(&self) -> u64 {
                self.0.iter().sum()
            }
            /// Adds all counters of `other`.
            pub fn merge(&mut self, other: &Self) {
                for (mine, others) in self.0.iter_mut().zip(other.0) {
                    *mine += others;
                }
            }
            /// The reasons that occurred, with their cells.
            pub fn iter(&self) -> impl Iterator<Item = ($reason, u64)> {
                $reason::ALL.into_iter().zip(self.0).filter(|of| of.1 > 0)
            }
        }
    };
}
pub(super) use tally;

tally! {
    /// Cells dropped, by reason.
    pub struct Drops of DropReason
}

/// Counters of a queue, a connection or a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CellCounters {
    /// Cells offered.
    pub cells_in: u64,
    /// Cells sent on.
    pub cells_out: u64,
    /// Ends of AAL5 PDUs sent on.
    pub pdus_out: u64,
    /// Cells tagged with CLP 1.
    pub tagged: u64,
    /// Cells dropped.
    pub dropped: Drops,
}

impl CellCounters {
    /// Adds all counters of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.cells_in += other.cells_in;
        self.cells_out += other.cells_out;
        self.pdus_out += other.pdus_out;
        self.tagged += other.tagged;
        self.dropped.merge(&other.dropped);
    }
}

/// Why a policer discarded or tagged a cell: the test that it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UpcReason {
    /// Peak rate of all cells.
    Peak,
    /// Peak rate of cells with CLP 0.
    PeakClp0,
    /// Sustainable rate and burst size.
    Sustained,
    /// Tagged without a test: best effort whose contract permits that (UBR.2).
    BestEffort,
}

/// Cells that a policer discarded and tagged, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpcCounters {
    discarded: [u64; 4],
    tagged: [u64; 4],
}

impl UpcCounters {
    /// Counts discarded cells.
    pub const fn discard(&mut self, reason: UpcReason, cells: u64) {
        self.discarded[reason as usize] += cells;
    }
    /// Counts tagged cells.
    pub const fn tag(&mut self, reason: UpcReason, cells: u64) {
        self.tagged[reason as usize] += cells;
    }
    /// Adds all counters of `other`.
    pub fn merge(&mut self, other: &Self) {
        let mine = self.discarded.iter_mut().chain(&mut self.tagged);
        for (mine, others) in mine.zip(other.discarded.iter().chain(&other.tagged)) {
            *mine += others;
        }
    }
    /// Cells that failed a test, discarded or tagged.
    #[must_use]
    pub const fn of(&self, reason: UpcReason) -> u64 {
        self.discarded(reason) + self.tagged(reason)
    }
    /// Cells discarded.
    #[must_use]
    pub fn discarded_total(&self) -> u64 {
        self.discarded.iter().sum()
    }
    /// Cells discarded for one reason.
    #[must_use]
    pub const fn discarded(&self, reason: UpcReason) -> u64 {
        self.discarded[reason as usize]
    }
    /// Cells tagged for one reason.
    #[must_use]
    pub const fn tagged(&self, reason: UpcReason) -> u64 {
        self.tagged[reason as usize]
    }
    /// Cells tagged.
    #[must_use]
    pub fn tagged_total(&self) -> u64 {
        self.tagged.iter().sum()
    }
}
