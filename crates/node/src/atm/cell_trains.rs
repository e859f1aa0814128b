//! Trains of cells: cells of one PDU on a line, with the time of each, that a node takes in when it needs them.
//!
//! A cell that only passes through a switch changes only queues of ports. So its arrival needs no event, as long as
//! everything that happens later finds the queues as if there had been an event. A *train* holds such cells between the
//! port that they have left and the port that they go to: the run of cells, and the nanosecond at which each of them
//! arrives. The port at the far end takes the cells of all its trains in the order of their times
//! ([`OutputPort::run`](super::OutputPort::run)) when it is brought up to date.
//!
//! Some cells *matter*: their arrival is an event. [`Trains::due`] has the times of those on a line.
//!
//! These are trains in time. A train of PDUs ([`PduTrain`](super::PduTrain)) is something else: the PDUs of a super
//! frame of a kernel, and there are no kernels in virtual time. If cells of one come here, each of them matters, like a
//! cell with its own octets ([`Bound::Cells`]).
//! [`Trains::alone`] counts the cells that moved in no train, by the reason.

mod alone;
mod track;

pub use self::alone::{Alone, AloneCells};
use self::track::{Count, Counts, Track};
use super::pdu::CellRun;
use super::port::QueueId;
use aerostat_proto::{Duration, Instant};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

/// A point in the order of events: nanoseconds, then the number of the source. Cells before this point have arrived.
pub type Key = (u64, u32);

/// No train.
pub(super) const NO_TRAIN: u32 = u32::MAX;

/// Limit of PDUs of a line whose end is noted, and which have paused.
const MOST_PARTS: usize = 64;

/// Limit of cells of a train that wait at the far end without an event.
const MOST_WAITING: usize = 4096;

/// Destination of the cells of a train at the far end of their line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Not known yet: the first cell matters.
    Unknown,
    /// Each cell is given to the node when it arrives: each of them matters, for this reason.
    Cells(Alone),
    /// The node takes the cells of a PDU when the last of them has arrived: only this one matters.
    End,
    /// The cells go to a queue of the port in front of this line. The last cell of the PDU matters.
    Queue {
        /// Number of the line.
        line: u32,
        /// The queue.
        queue: QueueId,
        /// The connection at the node, for its counters.
        connection: u32,
    },
}

/// Cells of one PDU on a line.
#[derive(Debug)]
pub struct Train {
    /// The line.
    pub line: u32,
    /// The queue that they left.
    queue: u32,
    /// The next cell that has not been taken at the far end.
    run: Option<CellRun>,
    /// When each of the cells arrives that have left and have not been taken.
    times: VecDeque<u64>,
    /// Their destination.
    bound: Bound,
    /// True if no further cell comes.
    closed: bool,
    /// True if each cell matters.
    dense: bool,
    /// Number that no other train has.
    serial: u64,
    /// Cells that were taken and not counted yet.
    taken: u64,
    /// Index in the PDU of the next cell to come.
    expects: u16,
    /// True if a cell was taken at the far end.
    begun: bool,
    /// True if the cells so far are all of their PDU from its first one on, with those of trains before.
    whole: bool,
}

/// The front of a train that has a queue.
pub(super) struct Head<'a> {
    /// The first cell that has not been taken, and those behind it.
    pub(super) run: &'a CellRun,
    /// Serial number of the train.
    pub(super) serial: u64,
    pub(super) queue: QueueId,
}

impl Train {
    /// The next cell that has not been taken, as a run of `count` cells.
    #[must_use]
    pub fn cells(&self, count: u16) -> Option<CellRun> {
        let run = self.run.as_ref()?;
        let mut run = run.clone();
        run.count = count;
        Some(run)
    }
    /// True if a cell was taken at the far end. The first cells of the trains on a line arrive in the order of the
    /// trains.
    #[must_use]
    pub const fn is_begun(&self) -> bool {
        self.begun
    }
    /// Destination of the cells.
    #[must_use]
    pub const fn bound(&self) -> Bound {
        self.bound
    }
    /// Arrival of the next cell that was not taken, in nanoseconds.
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        self.times.front().copied()
    }
    /// The cells that have left their port and were not taken: a run that begins with the first of them, and their
    /// number.
    #[must_use]
    pub fn waiting(&self) -> Option<(&CellRun, u64)> {
        Some((self.run.as_ref()?, self.times.len() as u64))
    }
}

/// Cells of a connection that passed a node without its help.
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    /// The line on which they arrived.
    pub line: u32,
    /// The connection at the node.
    pub connection: u32,
    /// Number of cells.
    pub cells: u64,
}

/// A PDU whose last cell has left a port, after all others.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The line.
    pub line: u32,
    /// Time at which the last bit of its last cell left.
    pub at: Instant,
    /// A cell of it.
    pub run: CellRun,
}

/// All trains of a network.
#[derive(Debug, Default)]
pub struct Trains {
    trains: Vec<Train>,
    free: Vec<u32>,
    serials: u64,
    tracks: Vec<Track>,
    /// Cells to be counted at the nodes that they passed.
    passed: Vec<Passed>,
    /// PDUs whose ends are noted, if any are.
    noted: Option<fn(&CellRun) -> bool>,
    ended: Vec<Ended>,
    /// Cells that were events of their own, by reason.
    pub alone: AloneCells,
}

impl Trains {
    /// Adds a line, whose number is the number of lines so far. Cells leave it one by one at first.
    pub fn add_line(&mut self, source: u32, delay: Duration, first: bool, ends: bool) {
        self.tracks.push(Track {
            source,
            delay,
            floor: 0,
            ends,
            first,
            single: true,
            on: VecDeque::new(),
            dense: 0,
            due: VecDeque::new(),
            late_due: BTreeSet::new(),
            arrivals: BinaryHeap::new(),
            uncounted: Vec::new(),
            heads: BinaryHeap::new(),
            feeders: Counts::default(),
            open: Counts::default(),
            parts: VecDeque::new(),
        });
    }

    /// True if cells leave a line one by one.
    #[must_use]
    pub fn is_single(&self, line: u32) -> bool {
        self.tracks[line as usize].single
    }
    /// Makes cells leave a line one by one, or in trains.
    pub fn set_single(&mut self, line: u32, single: bool) {
        self.tracks[line as usize].single = single;
    }
    /// A train; `None` if the number belongs to none.
    #[must_use]
    pub fn get(&self, train: u32) -> Option<&Train> {
        self.trains
            .get(train as usize)
            .filter(|train| train.run.is_some())
    }
    /// The trains on a line, oldest first.
    #[must_use]
    pub fn on(&self, line: u32) -> &VecDeque<u32> {
        &self.tracks[line as usize].on
    }
    /// The next cell on a line that matters: its arrival in nanoseconds, and its train.
    #[must_use]
    pub fn due(&self, line: u32) -> Option<(u64, u32)> {
        let track = &self.tracks[line as usize];
        match (track.due.front(), track.late_due.first()) {
            (Some(one), Some(other)) => Some(*one.min(other)),
            (one, other) => one.or(other).copied(),
        }
    }
    /// Takes this cell out of the list.
    pub fn pop_due(&mut self, line: u32) {
        let next = self.due(line);
        let track = &mut self.tracks[line as usize];
        while track.due.front().copied() == next && track.due.pop_front().is_some() {}
        if track.late_due.first().copied() == next {
            track.late_due.pop_first();
        }
    }
    /// Notes the whole PDUs that leave a port in a train, as far as they are wanted.
    pub fn note_ends(&mut self, wanted: fn(&CellRun) -> bool) {
        self.noted = Some(wanted);
    }
    /// Takes the PDUs that were noted.
    pub fn take_ended(&mut self) -> Vec<Ended> {
        std::mem::take(&mut self.ended)
    }

    /// Starts a train, whose first cell is that of `run`.
    pub(super) fn open(&mut self, line: u32, queue: u32, run: CellRun) -> u32 {
        self.serials += 1;
        let track = &self.tracks[line as usize];
        let bound = match () {
            () if run.pdu().is_none() => Bound::Cells(Alone::NoPdu),
            () if track.ends => Bound::End,
            () => Bound::Unknown,
        };
        let (dense, serial) = (matches!(bound, Bound::Cells(_)), self.serials);
        let expects = run.first();
        let whole = expects == 0 || self.goes_on_from_part(line, &run);
        let id = match self.free.pop() {
            Some(id) => {
                let train = &mut self.trains[id as usize];
                (train.line, train.queue, train.serial) = (line, queue, serial);
                (train.bound, train.dense, train.closed) = (bound, dense, false);
                (train.expects, train.begun, train.whole) = (expects, false, whole);
                train.run = Some(run);
                id
            }
            None => {
                self.trains.push(Train {
                    line,
                    queue,
                    run: Some(run),
                    times: VecDeque::new(),
                    bound,
                    closed: false,
                    dense,
                    serial,
                    taken: 0,
                    expects,
                    begun: false,
                    whole,
                });
                self.trains.len() as u32 - 1
            }
        };
        let track = &mut self.tracks[line as usize];
        track.on.push_back(id);
        track.dense += u32::from(dense);
        id
    }

    /// True if cells go on behind those of a train that is over.
    fn goes_on_from_part(&mut self, line: u32, run: &CellRun) -> bool {
        let parts = &mut self.tracks[line as usize].parts;
        let fits = |(part, next): &(CellRun, u16)| {
            let pdus = part.pdu().zip(run.pdu());
            let same = pdus.is_some_and(|(one, other)| one.is_same(other));
            same && part.vc == run.vc && *next == run.first()
        };
        let at = parts.iter().position(fits);
        at.is_some_and(|at| parts.remove(at).is_some())
    }

    /// Like [`Self::open`], for cells that may belong to the same PDU as those of the train `before`, which ends: cells
    /// between them were lost, or they differ in the mark of congestion. As their way is the same, their first cell
    /// does not matter.
    pub(super) fn open_after(
        &mut self,
        before: Option<u32>,
        line: u32,
        queue: u32,
        run: CellRun,
    ) -> u32 {
        let train = before.and_then(|id| self.trains.get(id as usize));
        let like = train.filter(|train| train.line == line).and_then(|train| {
            let own = train.run.as_ref()?;
            let same = own.pdu()?.is_same(run.pdu()?) && own.vc == run.vc;
            let whole = train.whole && train.expects == run.first();
            same.then_some((train.bound, train.dense, whole))
        });
        let id = self.open(line, queue, run);
        if let Some((bound, dense, whole)) = like {
            self.trains[id as usize].whole |= whole;
            if let Some(before) = before.filter(|_| whole) {
                self.trains[before as usize].whole = false;
            }
            self.set_dense(id, dense);
            self.bind(id, bound);
        }
        id
    }

    /// The next cell of a train has left: its transmission took from `start` to `finish`.
    #[inline]
    pub(super) fn emit(&mut self, id: u32, start: Instant, finish: Instant, end: bool) {
        let train = &mut self.trains[id as usize];
        let track = &mut self.tracks[train.line as usize];
        let at = track.in_order((finish + track.delay).as_nanos());
        let source = track.source;
        let only = train.times.is_empty();
        train.times.push_back(at);
        train.expects = train.expects.saturating_add(1);
        let matters = end
            || train.dense
            || (only && train.bound == Bound::Unknown)
            || train.times.len() > MOST_WAITING;
        if matters {
            track.due.push_back((at, id));
        }
        if end {
            if let (Some(wanted), Some(run)) = (self.noted, &train.run)
                && train.whole
                && wanted(run)
            {
                train.whole = false;
                let (line, run) = (train.line, run.clone());
                self.ended.push(Ended {
                    line,
                    at: finish,
                    run,
                });
            }
            if track.first
                && let Some(pdu) = train.run.as_ref().and_then(CellRun::pdu)
            {
                pdu.last_cell_leaves(start);
            }
        }
        if only && train.bound == Bound::End {
            track.heads.push(Reverse((at, id)));
        }
        if only && let Bound::Queue { line, .. } = train.bound {
            let arrivals = &mut self.tracks[line as usize].arrivals;
            arrivals.push(Reverse((at, source, id)));
        }
        if end {
            self.finish(id);
        }
    }

    /// No further cell of a train leaves its port.
    fn finish(&mut self, id: u32) {
        let train = &mut self.trains[id as usize];
        if std::mem::replace(&mut train.closed, true) {
            return;
        }
        self.tracks[train.line as usize].dense -= u32::from(train.dense);
        if let Bound::Queue { line, .. } = train.bound {
            self.tracks[line as usize].open.remove(train.line);
        }
    }

    /// True if a cell of a PDU is the next one of a train that is not over.
    pub(super) fn goes_on(&self, id: u32, cell: &CellRun) -> bool {
        let train = self.trains.get(id as usize).filter(|train| !train.closed);
        let same = |train: &Train| {
            let Some(run) = &train.run else { return false };
            let pdus = run.pdu().zip(cell.pdu());
            let alike = run.clp == cell.clp && run.congested == cell.congested;
            alike && pdus.is_some_and(|(one, other)| one.is_same(other))
        };
        train.is_some_and(|train| train.expects == cell.first() && same(train))
    }

    /// No further cell of a train comes.
    pub(super) fn close(&mut self, id: u32) {
        self.finish(id);
        let train = &mut self.trains[id as usize];
        let track = &mut self.tracks[train.line as usize];
        if let (Some(wanted), Some(run)) = (self.noted, &train.run)
            && std::mem::take(&mut train.whole)
            && wanted(run)
        {
            track.parts.push_back((run.clone(), train.expects));
            if track.parts.len() > MOST_PARTS {
                track.parts.pop_front();
            }
        }
        self.retire(id);
    }

    /// Sets whether each cell of a train matters; returns what was set before.
    fn set_dense(&mut self, id: u32, dense: bool) -> bool {
        let train = &mut self.trains[id as usize];
        let before = std::mem::replace(&mut train.dense, dense);
        let track = &mut self.tracks[train.line as usize];
        if !train.closed {
            track.dense = track.dense + u32::from(dense) - u32::from(before);
        }
        before
    }

    /// Forgets a train that is over.
    fn retire(&mut self, id: u32) {
        let train = &mut self.trains[id as usize];
        if !train.closed || !train.times.is_empty() || train.run.is_none() {
            return;
        }
        let line = train.line;
        self.unbind(id);
        self.trains[id as usize].run = None;
        let on = &mut self.tracks[line as usize].on;
        if let Some(at) = on.iter().position(|other| *other == id) {
            on.remove(at);
        }
        self.free.push(id);
    }

    /// Sends a train to no queue any more; its cells so far are to be counted.
    fn unbind(&mut self, id: u32) {
        let train = &mut self.trains[id as usize];
        let cells = std::mem::take(&mut train.taken);
        if let Bound::Queue {
            line, connection, ..
        } = train.bound
        {
            let from = train.line;
            if cells > 0 {
                self.passed.push(Passed {
                    line: from,
                    connection,
                    cells,
                });
            }
            let track = &mut self.tracks[line as usize];
            track.feeders.remove(from);
            if !train.closed {
                track.open.remove(from);
            }
        }
    }

    /// Counts the cells that passed so far of the trains to the port in front of a line.
    pub fn count_passed(&mut self, line: u32) {
        for id in std::mem::take(&mut self.tracks[line as usize].uncounted) {
            let train = &mut self.trains[id as usize];
            if let Bound::Queue {
                line: to,
                connection,
                ..
            } = train.bound
                && to == line
                && train.taken > 0
            {
                self.passed.push(Passed {
                    line: train.line,
                    connection,
                    cells: std::mem::take(&mut train.taken),
                });
            }
        }
    }

    /// The destination of a train is known.
    pub fn bind(&mut self, id: u32, bound: Bound) {
        let train = &mut self.trains[id as usize];
        train.bound = bound;
        let (from, open) = (train.line, !train.closed);
        let Bound::Queue { line, .. } = bound else {
            return;
        };
        let (next, source) = (train.next(), self.tracks[from as usize].source);
        let track = &mut self.tracks[line as usize];
        if let Some(at) = next {
            track.arrivals.push(Reverse((at, source, id)));
        }
        track.feeders.add(from);
        if open {
            track.open.add(from);
        }
    }

    /// Makes the destination of all trains to the port in front of a line unknown again. Returns them, each with the
    /// line on which it is. Their destinations must be found again at once.
    pub fn unbind_all(&mut self, line: u32) -> Vec<(u32, u32)> {
        let track = &mut self.tracks[line as usize];
        track.arrivals.clear();
        let mut all = Vec::new();
        track.open = Counts::default();
        for Count { line: from, .. } in std::mem::take(&mut track.feeders).iter() {
            for index in 0..self.tracks[from as usize].on.len() {
                let id = self.tracks[from as usize].on[index];
                let train = &self.trains[id as usize];
                if matches!(train.bound, Bound::Queue { line: to, .. } if to == line) {
                    self.unbind(id);
                    self.trains[id as usize].bound = Bound::Unknown;
                    all.push((from, id));
                }
            }
        }
        all
    }

    /// Makes each cell of a train matter, also on the lines before. Calls `changed` with each line concerned.
    pub fn make_dense(&mut self, id: u32, changed: &mut Vec<u32>) {
        let before = self.set_dense(id, true);
        let train = &self.trains[id as usize];
        let (line, queue) = (train.line, train.queue);
        if !before {
            let all = train.times.iter().map(|at| (*at, id));
            self.tracks[line as usize].late_due.extend(all);
        }
        changed.push(line);
        let feeders = &self.tracks[line as usize].feeders;
        let before = feeders.iter().flat_map(|count| {
            // The trains whose way is known are nearly the oldest ones: behind them comes what a long line holds.
            let on = self.tracks[count.line as usize].on.iter();
            let to_here = on.filter_map(|id| match self.trains[*id as usize].bound {
                Bound::Queue {
                    line: to, queue, ..
                } if to == line => Some((*id, queue.0)),
                _ => None,
            });
            to_here.take(count.trains as usize)
        });
        let before = before.filter(|(id, to)| *to == queue && !self.trains[*id as usize].dense);
        for (other, _) in before.collect::<Vec<_>>() {
            self.make_dense(other, changed);
        }
    }

    /// True if cells of a queue must be given on one by one, as far as is known.
    #[must_use]
    pub fn is_dense(&self, line: u32, queue: QueueId) -> bool {
        let track = &self.tracks[line as usize];
        // The newest trains are those that go on.
        let mut on = track.on.iter().rev().map(|id| &self.trains[*id as usize]);
        track.dense > 0 && on.any(|train| train.queue == queue.0 && train.dense && !train.closed)
    }

    /// The next cell for the port in front of a line that arrives before `key`: time and train.
    #[inline]
    pub(super) fn next_arrival(&self, line: u32, key: Key) -> Option<(u64, u32)> {
        let Reverse((at, source, id)) = self.tracks[line as usize].arrivals.peek()?;
        ((*at, *source) < key).then_some((*at, *id))
    }

    /// The head of a train that has a queue.
    #[inline]
    pub(super) fn head(&self, id: u32) -> Option<Head<'_>> {
        let train = &self.trains[id as usize];
        let Bound::Queue { queue, .. } = train.bound else {
            return None;
        };
        Some(Head {
            run: train.run.as_ref()?,
            serial: train.serial,
            queue,
        })
    }

    /// Takes the first cell of a train.
    #[inline]
    fn step(&mut self, id: u32) {
        let train = &mut self.trains[id as usize];
        train.times.pop_front();
        train.begun = true;
        if let Some(run) = &mut train.run {
            run.skip_cell();
        }
    }

    /// Takes the cell of [`Self::next_arrival`].
    #[inline]
    pub(super) fn take_arrival(&mut self, line: u32, id: u32) {
        self.step(id);
        let train = &mut self.trains[id as usize];
        train.taken += 1;
        let (next, closed, first) = (train.next(), train.closed, train.taken == 1);
        let track = &mut self.tracks[line as usize];
        if first {
            track.uncounted.push(id);
        }
        let arrivals = &mut track.arrivals;
        match next {
            Some(at) => {
                if let Some(mut top) = arrivals.peek_mut() {
                    top.0.0 = at;
                }
            }
            None => {
                arrivals.pop();
                if closed {
                    self.retire(id);
                }
            }
        }
    }

    /// Takes the cells of a train that arrive before `key`; `None` if no cell does.
    pub fn take(&mut self, id: u32, key: Key, most: u16) -> Option<CellRun> {
        let train = self.trains.get(id as usize)?;
        let source = self.tracks[train.line as usize].source;
        let times = train.times.iter().take(most.into());
        let count = times.take_while(|at| (**at, source) < key).count() as u16;
        let run = (count > 0).then(|| train.cells(count))??;
        (0..count).for_each(|_| self.step(id));
        let train = &self.trains[id as usize];
        if let (Bound::End, Some(at)) = (train.bound, train.next()) {
            let heads = &mut self.tracks[train.line as usize].heads;
            heads.push(Reverse((at, id)));
        }
        self.retire(id);
        Some(run)
    }

    /// Removes all trains from a line that goes down. Calls `lose` with each, and the number of its cells there.
    pub fn clear(&mut self, line: u32, lose: &mut dyn FnMut(&CellRun, u64)) {
        self.tracks[line as usize].due.clear();
        self.tracks[line as usize].late_due.clear();
        self.tracks[line as usize].heads.clear();
        self.tracks[line as usize].dense = 0;
        self.tracks[line as usize].floor = 0;
        for id in std::mem::take(&mut self.tracks[line as usize].on) {
            self.unbind(id);
            let train = &mut self.trains[id as usize];
            train.closed = true;
            if let Bound::Queue { line: to, .. } = train.bound {
                let arrivals = &mut self.tracks[to as usize].arrivals;
                arrivals.retain(|Reverse((_, _, other))| *other != id);
            }
            let cells = train.times.len() as u64;
            train.times.clear();
            if let Some(run) = train.run.take()
                && cells > 0
            {
                lose(&run, cells);
            }
            self.free.push(id);
        }
    }

    /// Knowledge of the train into which a queue sends: see [`Next`].
    pub(super) fn next_of(&self, line: u32, id: u32) -> Next {
        if id == NO_TRAIN {
            return match self.tracks[line as usize].ends {
                true => Next::Last,
                false => Next::First,
            };
        }
        let train = &self.trains[id as usize];
        match train.bound {
            _ if train.dense => Next::First,
            Bound::Unknown if train.times.is_empty() => Next::First,
            _ => Next::Last,
        }
    }
}

/// The next cell of a queue that matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The first one.
    First,
    /// The last one of the PDU.
    Last,
}
