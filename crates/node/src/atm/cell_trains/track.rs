//! A line in the view of trains, and the order of arrivals there.

use super::{Bound, Key, Passed, Trains};
use crate::atm::pdu::CellRun;
use aerostat_proto::{Duration, Instant};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

/// A line in the view of trains.
#[derive(Debug)]
pub(super) struct Track {
    /// Number of the line as a source of events: cells of one instant come by source.
    pub(super) source: u32,
    pub(super) delay: Duration,
    /// Earliest arrival of the next cell, in nanoseconds, after a delay that became shorter; else it may be any.
    pub(super) floor: u64,
    /// True if trains end at the far node.
    pub(super) ends: bool,
    /// True if the near node is an end system, where transfer delays start.
    pub(super) first: bool,
    /// True if cells leave one by one.
    pub(super) single: bool,
    /// Trains on the line, oldest first.
    pub(super) on: VecDeque<u32>,
    /// Number of these of which each cell matters and further cells come.
    pub(super) dense: u32,
    /// Arrivals of cells that matter, and their trains, in order.
    pub(super) due: VecDeque<(u64, u32)>,
    /// The same of cells that were on the line when their train became one of which each cell matters. They may be in
    /// both lists.
    pub(super) late_due: BTreeSet<(u64, u32)>,
    /// Next arrivals at the port in front of the line: time, source, train.
    pub(super) arrivals: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// Trains whose cells have passed to the port in front of the line, and may not be counted yet.
    pub(super) uncounted: Vec<u32>,
    /// Of a line to an end system: next arrivals of its trains, and those of trains that have been taken since.
    pub(super) heads: BinaryHeap<Reverse<(u64, u32)>>,
    /// The lines whose trains go to the port in front of this line.
    pub(super) feeders: Counts,
    /// Lines among them of whose trains further cells come.
    pub(super) open: Counts,
    /// PDUs whose end is noted and whose rest may follow in a further train, each with the index of the next cell.
    pub(super) parts: VecDeque<(CellRun, u16)>,
}

/// Trains of some kind on a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count {
    pub(super) line: u32,
    /// Their number, which is not zero.
    pub(super) trains: u32,
}

/// Lines with trains of some kind.
#[derive(Debug, Default)]
pub(super) struct Counts(Vec<Count>);

impl Counts {
    pub(super) fn add(&mut self, line: u32) {
        match self.0.iter_mut().find(|count| count.line == line) {
            Some(count) => count.trains += 1,
            None => self.0.push(Count { line, trains: 1 }),
        }
    }
    /// A train is gone. The last line takes the place of a line without trains, so a reader that goes from the last
    /// place to the first one misses no line.
    pub(super) fn remove(&mut self, line: u32) {
        let Some(at) = self.0.iter().position(|count| count.line == line) else {
            return;
        };
        self.0[at].trains -= 1;
        if self.0[at].trains == 0 {
            self.0.swap_remove(at);
        }
    }
    pub(super) fn iter(&self) -> impl Iterator<Item = Count> + '_ {
        self.0.iter().copied()
    }
}

impl Track {
    /// The arrival of a cell that would arrive at `at`: not before cells that left earlier.
    #[inline]
    pub(super) const fn in_order(&mut self, at: u64) -> u64 {
        if at >= self.floor {
            return at;
        }
        let at = self.floor;
        self.floor += 1;
        at
    }
}

impl Trains {
    /// Takes the list of cells that passed nodes.
    pub fn take_passed(&mut self) -> Vec<Passed> {
        std::mem::take(&mut self.passed)
    }
    /// Number of entries in this list.
    #[must_use]
    pub const fn passed(&self) -> usize {
        self.passed.len()
    }

    /// Number of lines with trains to the port in front of a line of which further cells come.
    #[must_use]
    pub fn feeders(&self, line: u32) -> usize {
        self.tracks[line as usize].open.0.len()
    }
    /// One of these lines. A reader starts with the last one, because others may take the place of one that it has
    /// read.
    #[must_use]
    pub fn feeder(&self, line: u32, place: usize) -> Option<u32> {
        let count = self.tracks[line as usize].open.0.get(place)?;
        Some(count.line)
    }
    /// True if trains go to the port in front of a line.
    #[must_use]
    pub fn is_fed(&self, line: u32) -> bool {
        !self.tracks[line as usize].feeders.0.is_empty()
    }

    /// The trains on a line to an end system with cells that arrive before `key`, oldest first. Each of them must be
    /// taken ([`Self::take`]) to be found again.
    pub fn arrived(&mut self, line: u32, key: Key) -> Vec<u32> {
        let mut found = Vec::new();
        let track = &mut self.tracks[line as usize];
        while let Some(Reverse((at, id))) = track.heads.peek().copied()
            && (at, track.source) < key
        {
            track.heads.pop();
            let train = &self.trains[id as usize];
            // The head of a train that has been taken since stands behind its next one.
            let is = train.line == line && train.bound == Bound::End && train.next() == Some(at);
            if is && train.run.is_some() {
                found.push((train.serial, id));
            }
        }
        found.sort_unstable();
        found.dedup();
        found.into_iter().map(|(_, id)| id).collect()
    }

    /// Gives a line another delay. Cells that leave later arrive behind those that are on it, and behind `floor`, in
    /// nanoseconds: the arrival of the last one that is on it alone, or 0.
    pub fn set_delay(&mut self, line: u32, delay: Duration, floor: u64) {
        let track = &self.tracks[line as usize];
        let trains = track.on.iter().map(|id| &self.trains[*id as usize]);
        let last = trains.filter_map(|train| train.times.back()).max();
        let floor = last.copied().unwrap_or(0).max(floor);
        let track = &mut self.tracks[line as usize];
        track.delay = delay;
        track.floor = track.floor.max(floor.saturating_add(1));
    }

    /// The arrival of a cell that would arrive at `at` if no cell were on the line before it.
    #[inline]
    pub fn in_order(&mut self, line: u32, at: Instant) -> Instant {
        let track = &mut self.tracks[line as usize];
        Instant::from_nanos(track.in_order(at.as_nanos()))
    }
}
