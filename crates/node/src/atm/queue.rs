//! The queue of one VC at an output port, with frame discard.
//!
//! Frames are recognised by the payload type alone, as in a switch. States of a frame: passing; partial discard (a cell
//! was lost: drop the rest, keep the last cell, which delimits frames); early discard (no cell was queued: drop the
//! last cell, too).
//!
//! Cells of AAL1 and AAL2 never end a frame. More than `FRAME` cells without an end are no AAL5 frame, so from there
//! on each cell stands for itself. Otherwise a single loss would stop such a connection for ever.

mod limits;

use super::cell_trains::{NO_TRAIN, Next, Trains};
use super::counters::{CellCounters, DropReason, Drops};
use super::pdu::{CellRun, Content, Pdu};
use super::port::Share;
use super::runs::{RunList, RunStore};
use super::shaper::Shaper;
use aerostat_proto::Instant;
use aerostat_wire::Vc;
pub(super) use limits::Buffer;
use limits::FRAME;
pub use limits::{Limits, Tuning};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Frame {
    /// Between frames.
    Between,
    Passing,
    Partial,
    Early,
}

/// The result of offering a run to a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// Cells queued.
    pub accepted: u16,
    /// Cells dropped.
    pub dropped: u16,
    /// Why the first of the dropped cells was dropped.
    pub reason: Option<DropReason>,
}

impl Admission {
    /// All of these cells were queued.
    pub(super) const fn of_all(accepted: u16) -> Self {
        Self {
            accepted,
            dropped: 0,
            reason: None,
        }
    }
}

/// A queue of one VC. Fields that each cell needs come first, in the order of declaration: one line of the processor's
/// cache.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct VcQueue {
    pub(super) vc: Vc,
    /// Scheduling class; 0 is served first.
    pub(super) class: u8,
    /// True if the queue carries a whole path: cells keep their VCI.
    pub(super) whole_path: bool,
    pub(super) frame_discard: bool,
    frame: Frame,
    /// Cells at and above which a cell is judged by itself, with CLP 0 and with CLP 1.
    alone: [u32; 2],
    pub(super) cells: u32,
    /// Largest number of cells so far.
    pub(super) peak: u32,
    /// User cells since the last end of a frame.
    since_end: u32,
    runs: RunList,
    /// Number of this opening: a queue that is opened later with the same index is another queue.
    pub(super) opened: u32,
    cells_out: u64,
    pdus_out: u64,
    /// True if the shaper holds the queue back.
    pub(super) held: bool,
    /// True if the queue does not simply take its turns in the ring of its class: it has a shaper, or a share. So the
    /// cells of other queues need no look at these.
    pub(super) special: bool,
    pub(super) shaper: Option<Box<Shaper>>,
    /// Its place in a schedule that needs more than a ring, or in a shaped path.
    pub(super) share: Option<Box<Share>>,
    pub(super) limits: Limits,
    /// Cells that got the mark of congestion here.
    pub(super) marked: u64,
    dropped: Option<Box<Drops>>,
    /// The PDU that was last recorded in the port's log of drops.
    pub(super) logged: Option<Pdu>,
}

impl VcQueue {
    pub(super) const fn new(
        vc: Vc,
        class: u8,
        frame_discard: bool,
        limits: Limits,
        opened: u32,
    ) -> Self {
        Self {
            vc,
            class,
            whole_path: false,
            frame_discard,
            frame: Frame::Between,
            alone: [
                limits.first(frame_discard, false),
                limits.first(frame_discard, true),
            ],
            cells: 0,
            peak: 0,
            since_end: 0,
            runs: RunList::EMPTY,
            opened,
            cells_out: 0,
            pdus_out: 0,
            held: false,
            special: false,
            shaper: None,
            share: None,
            limits,
            marked: 0,
            dropped: None,
            logged: None,
        }
    }

    /// Becomes a queue of this class, with its counters. No cell waits in it, and it has no shaper or share yet.
    pub(super) fn renew(&mut self, class: u8, frame_discard: bool, limits: Limits, opened: u32) {
        (self.class, self.frame_discard, self.opened) = (class, frame_discard, opened);
        (self.held, self.special) = (false, false);
        (self.shaper, self.share) = (None, None);
        self.limit(limits);
    }

    /// Takes the runs that wait.
    pub(super) fn take_runs(&mut self, store: &mut RunStore) -> Vec<CellRun> {
        self.cells = 0;
        (self.frame, self.since_end) = (Frame::Between, 0);
        let all = core::iter::from_fn(|| store.pop(&mut self.runs));
        all.filter(|run| run.count > 0).collect()
    }

    /// Sets the bounds.
    pub(super) const fn limit(&mut self, limits: Limits) {
        self.alone = [
            limits.first(self.frame_discard, false),
            limits.first(self.frame_discard, true),
        ];
        self.limits = limits;
    }

    /// Index of the buffer pool of the port: 0 for guaranteed traffic, 1 for best effort.
    pub(super) const fn pool(&self) -> usize {
        (self.class >= 3) as usize
    }

    pub(super) fn counters(&self) -> CellCounters {
        let dropped = self.dropped.as_deref().copied().unwrap_or_default();
        CellCounters {
            cells_in: self.cells_out + dropped.total() + u64::from(self.cells),
            cells_out: self.cells_out,
            pdus_out: self.pdus_out,
            tagged: 0,
            dropped,
        }
    }

    /// Counts cells that do not enter the queue, or leave it without being sent.
    #[cold]
    pub(super) fn dropped(&mut self, reason: DropReason, cells: u32) {
        let dropped = self.dropped.get_or_insert_default();
        dropped.add(reason, cells.into());
    }

    /// Records user cells of one frame, of which only the last one can end it.
    const fn passed(&mut self, cells: u16, end: bool) {
        self.since_end = match end {
            true => 0,
            false => self.since_end.saturating_add(cells as u32),
        };
    }

    /// Queues as many cells as possible of a run; `pool` is the level and the limits of the shared buffer. What is left
    /// of the run has no meaning.
    #[inline]
    pub(super) fn push(
        &mut self,
        run: &mut CellRun,
        pool: (u32, &Buffer),
        store: &mut RunStore,
    ) -> Admission {
        let accepted = run.count;
        if self.push_whole(run, pool, store, false) {
            return Admission::of_all(accepted);
        }
        let run = core::mem::take(run);
        match run.has_several() {
            true => self.push_singles(run, pool, store),
            false => self.push_cells(run, pool, store),
        }
    }

    /// Queues a run if no threshold is near, no frame is being discarded, and its cells may leave together. Otherwise
    /// changes nothing and returns false. `again`: the cells may follow those of the last run, because they came
    /// together.
    #[inline(always)]
    pub(super) fn push_whole(
        &mut self,
        run: &mut CellRun,
        pool: (u32, &Buffer),
        store: &mut RunStore,
        again: bool,
    ) -> bool {
        // Cells that arrive one by one, though they are handed over at once, all meet the level at the first cell: the
        // cells in front leave while the later ones arrive. Those of several PDUs are judged PDU by PDU, if not all of
        // them fit.
        let several = run.has_several();
        let at_once = if run.count == 1 || run.has_times() && !several {
            1
        } else {
            run.count
        };
        let count = u32::from(at_once);
        let below = self.cells + count <= self.alone[usize::from(run.clp)]
            && pool.0 + count <= pool.1.alone(self.frame_discard, run.clp);
        // A shaper times the cells of one PDU of a train at a time.
        let apart = several && self.shaper.is_some() && run.train().is_some();
        if !below || apart || !matches!(self.frame, Frame::Between | Frame::Passing) {
            return false;
        }
        let accepted = run.count;
        if run.is_user() {
            let end = run.ends_pdu();
            self.frame = if end { Frame::Between } else { Frame::Passing };
            if several && run.ends() > 0 {
                self.since_end = run.tail().into();
            } else {
                self.passed(accepted, end);
            }
        }
        self.cells += u32::from(accepted);
        self.peak = self.peak.max(self.cells);
        let joined = again && self.rejoins(run, store) || accepted == 1 && self.joins(run, store);
        if !joined {
            store.append(&mut self.runs, run);
        }
        true
    }

    /// Queues the PDUs of a run one by one: there is no room for all of them, or they are not to leave together.
    #[cold]
    #[inline(never)]
    fn push_singles(
        &mut self,
        run: CellRun,
        pool: (u32, &Buffer),
        store: &mut RunStore,
    ) -> Admission {
        let mut total = Admission::default();
        for mut single in run.singles() {
            let level = (pool.0 + u32::from(total.accepted), pool.1);
            let count = single.count;
            let one = match self.push_whole(&mut single, level, store, true) {
                true => Admission::of_all(count),
                false => self.push_cells(single, level, store),
            };
            total.accepted += one.accepted;
            total.dropped += one.dropped;
            total.reason = total.reason.or(one.reason);
        }
        total
    }

    /// Joins cells with their own octets with the last run again, if they came with it.
    fn rejoins(&self, cells: &CellRun, store: &mut RunStore) -> bool {
        let last = store.back_mut(&self.runs);
        cells.raw_cells().is_some() && last.is_some_and(|last| last.try_join(cells))
    }

    /// Joins a cell of a PDU with the last run, if it follows it and trains carry that run.
    #[inline(always)]
    fn joins(&self, cell: &CellRun, store: &mut RunStore) -> bool {
        store.last(&self.runs).is_some_and(|(last, trains)| {
            trains.out != NO_TRAIN && cell.pdu().is_some() && last.try_join(cell)
        })
    }

    /// Queues a cell and joins it with the run before it if possible. So a driver that takes turns finds
    /// runs that are as long as they can be.
    fn append_cell(&mut self, cell: CellRun, store: &mut RunStore) -> u16 {
        self.cells += 1;
        self.peak = self.peak.max(self.cells);
        let last = store.back_mut(&self.runs);
        if last.is_some_and(|last| last.try_join(&cell)) {
            return 1;
        }
        store.push(&mut self.runs, cell);
        1
    }

    /// Like [`Self::push`], cell by cell: a threshold is near, or a frame is being discarded.
    #[cold]
    #[inline(never)]
    fn push_cells(
        &mut self,
        mut run: CellRun,
        pool: (u32, &Buffer),
        store: &mut RunStore,
    ) -> Admission {
        let mut total = Admission::default();
        loop {
            let (mut cell, more) = match run.split_off_front(1) {
                Some(cell) => (cell, true),
                None => (run.clone(), false),
            };
            let level = pool.0 + u32::from(total.accepted);
            match self.judge(&cell, (level, &pool.1.limits)) {
                None => {
                    self.mark(&mut cell, level >= pool.1.limits.mark);
                    total.accepted += self.append_cell(cell, store);
                }
                Some(reason) => {
                    total.dropped += 1;
                    total.reason.get_or_insert(reason);
                    self.dropped(reason, 1);
                }
            }
            if !more {
                return total;
            }
        }
    }

    /// Marks a cell that finds congestion: in the buffer of the port, or in this queue. Source: Traffic Management 4.0
    /// §5.6 (EFCI), from memory.
    fn mark(&mut self, cell: &mut CellRun, congested: bool) {
        if (congested || self.cells >= self.limits.mark) && cell.is_user() {
            cell.congested = true;
            self.marked += 1;
        }
    }

    /// Decides about one cell and updates the state of its frame.
    fn judge(&mut self, cell: &CellRun, (level, pool): (u32, &Limits)) -> Option<DropReason> {
        let full = self.cells >= self.limits.max || level >= pool.max;
        let low =
            cell.clp && (self.cells >= self.limits.low_priority || level >= pool.low_priority);
        let refusal = if full {
            Some(DropReason::Overflow)
        } else if low {
            Some(DropReason::LowPriority)
        } else {
            None
        };
        if !self.frame_discard || !cell.is_user() {
            return refusal;
        }
        let end = cell.ends_pdu();
        let framed = self.since_end < FRAME;
        self.passed(cell.count, end);
        if !framed {
            self.frame = if end { Frame::Between } else { Frame::Passing };
            return refusal;
        }
        let early = self.cells >= self.limits.early || level >= pool.early;
        let verdict = match self.frame {
            Frame::Between if early || refusal.is_some() => {
                self.frame = Frame::Early;
                Some(DropReason::EarlyDiscard)
            }
            Frame::Between | Frame::Passing => {
                // Even a full buffer accepts the last cell of a frame that was queued so far, because its loss would
                // cost the next frame, too. So each VC exceeds the limit by at most one cell.
                if refusal.is_some() && !(end && self.cells <= self.limits.max) {
                    self.frame = Frame::Partial;
                    refusal
                } else {
                    self.frame = Frame::Passing;
                    None
                }
            }
            Frame::Partial if end && self.cells <= self.limits.max => None,
            Frame::Partial => Some(DropReason::PartialDiscard),
            Frame::Early => Some(DropReason::EarlyDiscard),
        };
        if end {
            self.frame = Frame::Between;
        }
        verdict
    }

    /// The label of a cell on the outgoing link.
    pub(super) const fn label(&self, vc: Vc) -> Vc {
        match self.whole_path {
            true => Vc::new(self.vc.vpi, vc.vci),
            false => self.vc,
        }
    }

    /// Number of the cells that leave next: at most `max` of one run. Of a train, only whole PDUs leave together, if
    /// `max` has room for one.
    pub(super) fn next(&self, max: u16, store: &RunStore) -> Option<u16> {
        let front = store.front(&self.runs)?;
        let count = front.count.min(max);
        Some(match &front.content {
            Content::Train(train) => count.min(train.turn(front.first, max)),
            Content::Nothing | Content::Pdu(_) | Content::Raw(_) => count,
        })
    }

    /// Moves the first run to `to`, if it is the usual one: it has at most `max` cells, of one PDU or with their own
    /// octets, which leave into no train. The cells have the label of the outgoing link then, and one line more.
    #[inline(always)]
    pub(super) fn pop_whole(&mut self, max: u16, store: &mut RunStore, to: &mut CellRun) -> bool {
        let gone = store.pop_if(&mut self.runs, to, |run, trains| {
            let fits = run.count <= max && run.count > 0;
            fits && trains.out == NO_TRAIN && run.train().is_none()
        });
        if gone {
            self.gone(to);
        }
        gone
    }

    /// Moves the next cells of one run, at most `max`, to `to`; false if no cell waits. See [`Self::pop_whole`].
    pub(super) fn pop(&mut self, max: u16, store: &mut RunStore, to: &mut CellRun) -> bool {
        let Some((front, trains)) = store.first(&self.runs) else {
            return false;
        };
        if max < front.count || trains.out != NO_TRAIN {
            // A train may go on when all its cells have left, and must be ended if it does not.
            *to = front.split_off_front(max).unwrap_or_else(|| {
                let run = front.clone();
                (0..run.count).for_each(|_| front.skip_cell());
                run
            });
        } else {
            store.pop_if(&mut self.runs, to, |_, _| true);
        }
        self.gone(to);
        true
    }

    /// Counts cells that leave, and gives them their label.
    #[inline(always)]
    fn gone(&mut self, cells: &mut CellRun) {
        self.cells -= u32::from(cells.count);
        self.cells_out += u64::from(cells.count);
        self.pdus_out += u64::from(cells.user_ends());
        cells.vc = self.label(cells.vc);
        cells.lines = cells.lines.saturating_add(1);
    }

    /// Forgets the first run if all its cells have left; returns the train into which they left.
    #[inline]
    pub(super) fn drop_empty(&mut self, store: &mut RunStore) -> Option<u32> {
        let (front, trains) = store.first(&self.runs)?;
        let out = trains.out;
        if front.count > 0 {
            return None;
        }
        store.pop(&mut self.runs);
        (out != NO_TRAIN).then_some(out)
    }

    /// Queues the first cell of `run`, which belongs to the train with this serial number, if no threshold is near and
    /// no frame is being discarded. Otherwise changes nothing and returns false.
    #[inline]
    pub(super) fn push_next(
        &mut self,
        run: &CellRun,
        input: u64,
        pool: (u32, &Buffer),
        store: &mut RunStore,
    ) -> bool {
        let Some(pdu) = run.pdu() else {
            return false;
        };
        let first = run.first;
        let below = self.cells < self.alone[usize::from(run.clp)]
            && pool.0 < pool.1.alone(self.frame_discard, run.clp);
        if !below || !matches!(self.frame, Frame::Between | Frame::Passing) {
            return false;
        }
        let end = first + 1 == pdu.cells();
        self.frame = if end { Frame::Between } else { Frame::Passing };
        self.passed(1, end);
        self.cells += 1;
        self.peak = self.peak.max(self.cells);
        if let Some((last, trains)) = store.last(&self.runs) {
            if trains.input == input && last.first() + last.count == first {
                last.count += 1;
                return true;
            }
            let mut cell = run.clone();
            cell.count = 1;
            if last.try_join(&cell) {
                trains.input = input;
                return true;
            }
        }
        let mut cell = run.clone();
        cell.count = 1;
        store.push(&mut self.runs, cell);
        if let Some((_, trains)) = store.last(&self.runs) {
            trains.input = input;
        }
        true
    }

    /// Moves the next cell of this queue, number `index`, into its train on `line`; its transmission takes from `start`
    /// to `finish`.
    #[inline]
    pub(super) fn pop_into(
        &mut self,
        trains: &mut Trains,
        line: u32,
        index: u32,
        start: Instant,
        finish: Instant,
        store: &mut RunStore,
    ) {
        let over = self.drop_empty(store);
        if let Some((run, joined)) = store.first(&self.runs)
            && joined.out == NO_TRAIN
        {
            let mut cells = run.clone();
            cells.vc = self.label(cells.vc);
            cells.lines = cells.lines.saturating_add(1);
            joined.out = trains.open_after(over, line, index, cells);
        }
        if let Some(over) = over {
            trains.close(over);
        }
        let Some((run, joined)) = store.first(&self.runs) else {
            return;
        };
        let (out, pdu) = (joined.out, run.pdu().is_some());
        let user = pdu || run.is_user();
        let (end, ends) = (run.count == 1 && run.ends_pdu(), run.begins_with_end());
        trains.emit(out, start, finish, end);
        run.skip_cell();
        let gone = end || (!pdu && run.count == 0);
        self.cells -= 1;
        self.cells_out += 1;
        self.pdus_out += u64::from(user && ends);
        if gone {
            store.pop(&mut self.runs);
            trains.close(out);
        }
    }

    /// The train of the cells at the front.
    pub(super) fn train(&self, store: &RunStore) -> Option<u32> {
        store.outs(&self.runs).next()
    }

    /// A train got its last cell.
    pub(super) fn ended(&self, id: u32, store: &mut RunStore) {
        if let Some((_, trains)) = store.first(&self.runs)
            && trains.out == id
        {
            trains.out = NO_TRAIN;
        }
    }

    /// Makes the cells at the front leave into a train, if they are its next ones; false if they are not.
    pub(super) fn go_on(&self, trains: &Trains, id: u32, store: &mut RunStore) -> bool {
        let Some((front, joined)) = store.first(&self.runs) else {
            return false;
        };
        if !trains.goes_on(id, front) {
            return false;
        }
        if joined.out == NO_TRAIN {
            joined.out = id;
        }
        joined.out == id
    }

    /// The number of cells up to and including the next one that matters on `line`, or a smaller number; `None` if no
    /// waiting cell matters.
    pub(super) fn until_matters(
        &self,
        trains: &Trains,
        line: u32,
        store: &RunStore,
    ) -> Option<u32> {
        /// Runs to look at.
        const LOOK: usize = 8;
        let mut before = 0;
        let all = store.iter(&self.runs).zip(store.outs(&self.runs));
        for (index, (run, out)) in all.enumerate() {
            if run.count == 0 {
                continue;
            }
            let next = trains.next_of(line, out);
            if index >= LOOK || next == Next::First || run.pdu().is_none() {
                return Some(before + 1);
            }
            before += u32::from(run.count);
            if run.ends_pdu() {
                return Some(before);
            }
        }
        None
    }

    /// Ends the trains into which cells of this queue left.
    pub(super) fn end_trains(&mut self, over: &mut Vec<u32>, store: &mut RunStore) {
        over.extend(self.drop_empty(store));
        if let Some((_, trains)) = store.first(&self.runs)
            && trains.out != NO_TRAIN
        {
            over.push(std::mem::replace(&mut trains.out, NO_TRAIN));
        }
    }

    /// PDUs whose last cell waits.
    pub(super) fn pdus(&self, store: &RunStore) -> u64 {
        // All cells of a run may have left, if others can follow.
        let runs = store.iter(&self.runs).filter(|run| run.count > 0);
        let user = runs.filter(|run| run.is_user());
        user.map(|run| u64::from(run.ends())).sum()
    }

    /// The PDUs with waiting cells, each once.
    pub(super) fn waiting_pdus<'a>(&self, store: &'a RunStore) -> impl Iterator<Item = &'a Pdu> {
        let mut last: Option<&Pdu> = None;
        let waiting = store.iter(&self.runs).filter(|run| run.count > 0);
        waiting.filter_map(move |run| {
            let pdu = run.pdu()?;
            let again = last.replace(pdu).is_some_and(|last| last.is_same(pdu));
            (!again).then_some(pdu)
        })
    }

    /// Drops the waiting cells; returns their number.
    pub(super) fn flush(&mut self, reason: DropReason, store: &mut RunStore) -> u32 {
        let cells = self.cells;
        if cells > 0 {
            self.dropped(reason, cells);
            store.clear(&mut self.runs);
        }
        self.cells = 0;
        self.frame = Frame::Between;
        self.since_end = 0;
        cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields that each cell needs fill one line of the cache, and a queue has two.
    #[test]
    fn a_queue_is_small() {
        assert!(core::mem::offset_of!(VcQueue, shaper) <= 64);
        assert_eq!(size_of::<Option<VcQueue>>(), 128);
    }
}
