//! An output port: per-VC queues, a scheduler and a transmitter with exact cell times.
//!
//! Service order: CBR, real-time VBR, other VBR, ABR and GFR, UBR; within a class round robin by VC, one turn per
//! [`OutputPort::pop`]. [`Discipline`] has the alternatives: by weight with minimum rates, and one queue per class
//! (`port/schedule.rs`). A shaped VC takes part only when its shaper allows that, and so does a shaped path
//! (`port/path.rs`). Two buffer pools keep best effort from taking the space of guaranteed traffic; each pool and each
//! queue has thresholds for early discard, for cells with CLP 1, and for the mark of congestion ([`Limits`]).
//! In = out + dropped + queued, for every VC, always.
//!
//! To drive the port: call `enqueue` whenever cells arrive. When [`OutputPort::next_departure`] has come, call `pop`,
//! which also tells when the last cell has left. A driver that pops one cell at a time gets the exact interleaving. A
//! driver that takes turns ([`OutputPort::pop_turn`]) gets the same rates, and the same order to within the bounds of a
//! turn; runs of shaped CBR and VBR queues then carry the times of their cells (`timing.rs`). A driver that moves cells
//! as trains calls [`OutputPort::run`] instead of both: the port takes the cells of trains at their times, and its
//! departures go into further trains (`port/trains.rs`). Where the line carries frames ([`Framing`]), the cells of a
//! frame leave together (`port/frames.rs`).

mod config;
mod frames;
mod matter;
mod path;
mod room;
mod schedule;
mod special;
mod trains;
mod turns;
mod view;

use self::path::Path;
pub use self::path::{PathConfig, PathKey, PathView};
use self::schedule::Schedule;
pub(super) use self::schedule::Share;
pub use self::schedule::{Discipline, MAX_WEIGHT};
use self::turns::Most;
pub use self::view::QueueView;
use super::counters::{CellCounters, DropReason};
use super::framing::{Framing, InFrame};
use super::pdu::{CellRun, Pdu};
pub use super::queue::{Admission, Limits, Tuning};
use super::queue::{Buffer, VcQueue};
use super::rate::{CellRate, Pacer};
use super::runs::RunStore;
use super::table::VcTable;
use aerostat_proto::Instant;
use aerostat_wire::{TrafficParams, Vc};
pub use config::{PortLimits, QueueConfig};
use config::{class_of, is_guaranteed};
use slab::Slab;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// Number of a queue at its port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueueId(pub(super) u32);

/// A PDU that lost cells at a port.
#[derive(Clone, Debug)]
pub struct DroppedPdu {
    /// When the first of these cells was refused.
    pub at: Instant,
    /// The PDU.
    pub pdu: Pdu,
    /// Its VC on the outgoing link.
    pub vc: Vc,
    /// Why the first of these cells was refused.
    pub reason: DropReason,
}

/// Records that all cells waiting in a queue are dropped.
fn log_all(
    drops: &mut Option<Vec<DroppedPdu>>,
    (queue, runs): (&VcQueue, &RunStore),
    reason: DropReason,
    at: Instant,
) {
    let Some(log) = drops else { return };
    let gone = queue.waiting_pdus(runs).map(|pdu| DroppedPdu {
        at,
        pdu: pdu.clone(),
        vc: queue.vc,
        reason,
    });
    log.extend(gone);
}

/// Cells that leave. The default has no cells.
#[derive(Clone, Debug, Default)]
pub struct Departure {
    /// Their queue.
    pub queue: QueueId,
    /// The cells; their `vc` is that of the outgoing link.
    pub run: CellRun,
    /// When the first cell begins.
    pub start: Instant,
    /// When the last cell has been sent, rounded up to a nanosecond; in a frame, when the frame has.
    pub finish: Instant,
    /// Its place in a frame.
    pub frame: InFrame,
}

/// An entry of the scheduler: the index of a queue, and the number of its opening.
///
/// Closing a queue leaves its entry behind, because to search for it would take time in proportion to all queues that
/// wait. An entry whose queue has gone is passed over; there are never many more of them than of others.
type Turn = (u32, u32);

/// Entries of closed queues that the heap of shapers keeps at least before it removes them all.
const STALE: usize = 64;

/// An output port. See the documentation of this module.
#[derive(Debug)]
pub struct OutputPort {
    queues: Slab<VcQueue>,
    /// Runs that wait in the queues.
    runs: RunStore,
    /// Number of openings so far.
    openings: u32,
    table: VcTable,
    limits: PortLimits,
    /// The two shared buffers, and their levels.
    buffers: [Buffer; 2],
    pools: [u32; 2],
    /// Queues and paths whose next cell may leave.
    schedule: Schedule,
    /// Shaped paths.
    paths: Vec<Path>,
    /// True if there are only rings, and no paths.
    simple: bool,
    /// Queues and paths that their shapers hold back: time, order of arrival here, queue. The first entry's queue is
    /// open.
    waiting: BinaryHeap<Reverse<(Instant, u64, Turn)>>,
    waits: u64,
    /// Entries in `waiting` whose queues are open.
    held_count: usize,
    /// When the transmitter is free.
    line: Pacer,
    rate: CellRate,
    /// Cells of one turn while no other queue waits, and while another queue waits.
    turns: [u16; 2],
    /// Counters of queues that are closed.
    closed: CellCounters,
    /// Log of PDUs that lost cells; `None` if it is not kept.
    drops: Option<Vec<DroppedPdu>>,
    /// True if the link of the port is up.
    up: bool,
    /// Latest time that the port has seen.
    told: Instant,
    /// Cells that leave at once before others are queued, if the driver may be late: see [`OutputPort::allow_late`].
    late: Option<Most>,
    /// Time of the driver's clock: see [`OutputPort::set_clock`].
    clock: Instant,
    /// The frames in which cells leave; `None` if they leave one by one.
    framing: Option<Framing>,
    /// Time from the moment at which the line is free, and a cell waits, to that at which cells are chosen: the
    /// preamble of a frame, in nanoseconds. Nothing without frames, and while a frame is filled.
    lead: u64,
    /// Cells for which the frame has room that is filled.
    room: u16,
    /// Departures that were due before the last cells were queued, and that the driver has not taken yet.
    departed: VecDeque<Departure>,
    /// Trains of queues that are closed or empty, to be ended.
    over: Vec<u32>,
    /// Trains of runs whose last cells have left without trains, with their queues.
    left: Vec<(u32, u32)>,
}

impl OutputPort {
    /// An idle port.
    #[must_use]
    pub fn new(rate: CellRate, limits: PortLimits) -> Self {
        Self {
            queues: Slab::new(),
            runs: RunStore::default(),
            openings: 0,
            table: VcTable::default(),
            limits,
            buffers: [limits.guaranteed, limits.best_effort].map(Buffer::new),
            pools: [0; 2],
            schedule: Schedule::new(Discipline::RoundRobin),
            paths: Vec::new(),
            simple: true,
            waiting: BinaryHeap::new(),
            waits: 0,
            held_count: 0,
            line: Pacer::new(rate),
            rate,
            turns: turns::of_rate(rate),
            closed: CellCounters::default(),
            drops: None,
            up: true,
            told: Instant::ZERO,
            late: None,
            clock: Instant::ZERO,
            framing: None,
            lead: 0,
            room: u16::MAX,
            departed: VecDeque::new(),
            over: Vec::new(),
            left: Vec::new(),
        }
    }

    /// The line rate.
    #[must_use]
    pub const fn rate(&self) -> CellRate {
        self.rate
    }

    /// Gives the line another rate. A cell that is being sent ends as it began; the next one follows at the new rate.
    pub fn set_rate(&mut self, rate: CellRate) {
        let free = self.line.at();
        self.line = Pacer::new(rate);
        self.line.not_before(free);
        self.turns = turns::of_rate(rate);
        self.rate = rate;
    }

    /// Opens a queue for `vc`, or for the whole path of `vc`. `None` if the label has a queue already, or the port has
    /// no free queue.
    pub fn open(&mut self, vc: Vc, config: QueueConfig) -> Option<QueueId> {
        if self.is_taken(vc, config.whole_path) || self.full().is_some() {
            return None;
        }
        let limits = config.limits.unwrap_or(self.usual(&config.traffic));
        self.openings = self.openings.wrapping_add(1);
        let class = class_of(&config.traffic);
        let frames = config.frame_discard;
        let mut queue = VcQueue::new(vc, class, frames, limits, self.openings);
        queue.whole_path = config.whole_path;
        self.make_special(&mut queue, &config);
        let index = self.queues.insert(queue);
        if config.whole_path {
            self.table.set_path(vc.vpi, Some(index));
        } else {
            self.table.set_channel(vc, Some(index));
        }
        Some(QueueId(index as u32))
    }

    /// Gives an open queue another contract. Cells that wait go on waiting, and leave by the new contract.
    pub fn change(&mut self, id: QueueId, config: &QueueConfig, now: Instant) {
        let at = id.0 as usize;
        let Some(mut queue) = self.queues.try_remove(at) else {
            return;
        };
        queue.end_trains(&mut self.over, &mut self.runs);
        // Its entries in schedules are those of a queue that has gone.
        if queue.cells > 0 {
            self.unschedule(&queue);
        }
        self.openings = self.openings.wrapping_add(1);
        self.pools[queue.pool()] -= queue.cells;
        let waiting = queue.take_runs(&mut self.runs);
        let (frames, opened) = (config.frame_discard, self.openings);
        let limits = config.limits.unwrap_or(self.usual(&config.traffic));
        queue.renew(class_of(&config.traffic), frames, limits, opened);
        self.make_special(&mut queue, config);
        // The place that was left last is filled first.
        let again = self.queues.insert(queue);
        debug_assert_eq!(again, at);
        for run in waiting {
            self.enqueue(id, run, now);
        }
    }

    /// The bounds of a queue with this contract.
    fn usual(&self, traffic: &TrafficParams) -> Limits {
        match is_guaranteed(traffic) {
            true => self.limits.guaranteed_vc,
            false => self.limits.best_effort_vc,
        }
    }

    /// Closes a queue and returns its counters. Waiting cells are dropped and counted.
    pub fn close(&mut self, id: QueueId) -> Option<CellCounters> {
        let mut queue = self.queues.try_remove(id.0 as usize)?;
        queue.end_trains(&mut self.over, &mut self.runs);
        let waiting = (&queue, &self.runs);
        log_all(&mut self.drops, waiting, DropReason::Closed, self.told);
        if queue.cells > 0 {
            self.unschedule(&queue);
        }
        self.pools[queue.pool()] -= queue.flush(DropReason::Closed, &mut self.runs);
        if queue.whole_path {
            self.table.set_path(queue.vc.vpi, None);
        } else {
            self.table.set_channel(queue.vc, None);
        }
        let counters = queue.counters();
        self.closed.merge(&counters);
        Some(counters)
    }

    /// Entries of the scheduler.
    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        self.schedule.len() + self.waiting.len()
    }

    /// The queue of a VC, or of its path.
    #[must_use]
    pub fn queue_of(&self, vc: Vc) -> Option<QueueId> {
        self.table.get(vc).map(|index| QueueId(index as u32))
    }

    /// Cells that wait in a queue.
    #[must_use]
    pub fn queued(&self, id: QueueId) -> u32 {
        self.queue(id).map_or(0, |queue| queue.cells)
    }

    /// Cells that wait in all queues.
    #[must_use]
    pub const fn queued_total(&self) -> u32 {
        self.pools[0] + self.pools[1]
    }

    fn queue(&self, id: QueueId) -> Option<&VcQueue> {
        self.queues.get(id.0 as usize)
    }

    /// Offers cells to a queue. A queue that is not open accepts no cells.
    #[inline]
    pub fn enqueue(&mut self, id: QueueId, mut run: CellRun, now: Instant) -> Admission {
        self.offer(id, &mut run, now)
    }

    /// Like [`Self::enqueue`]; the run is taken from its place; the rest there has no meaning.
    #[inline]
    pub(super) fn offer(&mut self, id: QueueId, run: &mut CellRun, now: Instant) -> Admission {
        self.told = self.told.max(now);
        if self.late.is_some() {
            self.catch_up(now);
        }
        // The usual case: nothing is near a limit, so no cell is dropped.
        if self.up
            && let Some(queue) = self.queues.get_mut(id.0 as usize)
            && !queue.special
        {
            let (was_empty, count, pool) = (queue.cells == 0, run.count, queue.pool());
            let level = (self.pools[pool], &self.buffers[pool]);
            if queue.push_whole(run, level, &mut self.runs, false) {
                self.pools[pool] += u32::from(count);
                if was_empty && count > 0 {
                    let (class, turn) = (queue.class, (id.0, queue.opened));
                    self.schedule.enter_ring(turn, class, now);
                }
                return Admission::of_all(count);
            }
        }
        self.offer_any(id, run, now)
    }

    /// See [`Self::offer`].
    #[inline(never)]
    fn offer_any(&mut self, id: QueueId, run: &mut CellRun, now: Instant) -> Admission {
        let refused = |reason| Admission {
            accepted: 0,
            dropped: run.count,
            reason: Some(reason),
        };
        let Some(queue) = self.queues.get_mut(id.0 as usize) else {
            return refused(DropReason::Closed);
        };
        if !self.up {
            let admission = refused(DropReason::LinkDown);
            queue.dropped(DropReason::LinkDown, run.count.into());
            let singles = core::mem::take(run).singles();
            for pdu in singles.filter_map(|run| run.pdu().cloned()) {
                self.log_drop(id, admission, pdu, now);
            }
            return admission;
        }
        let logged = self.drops.as_ref().and_then(|_| run.pdu().cloned());
        let was_empty = queue.cells == 0;
        let pool = queue.pool();
        let special = queue.special;
        let shared = special.then(|| special::shared(&self.schedule, queue, &self.buffers[pool]));
        let buffer = shared.flatten();
        let buffer = buffer.as_ref().unwrap_or(&self.buffers[pool]);
        let admission = queue.push(run, (self.pools[pool], buffer), &mut self.runs);
        let (class, turn) = (queue.class, (id.0, queue.opened));
        self.pools[pool] += u32::from(admission.accepted);
        if admission.accepted > 0 {
            if special {
                self.came(id, was_empty, admission.accepted, now);
            } else if was_empty {
                self.schedule.enter_ring(turn, class, now);
            }
        }
        if let Some(pdu) = logged {
            self.log_drop(id, admission, pdu, now);
        }
        admission
    }

    /// Allows the driver to take departures, cell by cell, later than they are due. Everything that is due by the time
    /// of an [`Self::enqueue`] is decided before that enqueue, so the delay of the driver makes no difference. The
    /// driver has to be punctual only before [`Self::close`] and [`Self::set_link`], which have no time argument.
    pub const fn allow_late(&mut self) {
        self.late = Some(Most::Cells(1));
    }

    /// Like [`Self::allow_late`], for a driver that takes turns.
    pub const fn allow_late_turns(&mut self) {
        self.late = Some(Most::Turn);
    }

    /// Tells what the driver's clock shows, which may be later than the time of the departures that it takes next: a
    /// driver in real time handles them late. Shapers do not catch up with it further than their tolerance allows.
    pub fn set_clock(&mut self, clock: Instant) {
        self.clock = clock;
    }

    #[inline]
    fn catch_up(&mut self, now: Instant) {
        if self.framing.is_none() {
            self.told = self.told.max(now);
        }
        if self.next_start().is_some_and(|start| start <= now) {
            self.catch_up_with(now);
        }
    }

    #[inline(never)]
    fn catch_up_with(&mut self, now: Instant) {
        let most = self.late.unwrap_or(Most::Cells(1));
        if self.framing.is_some() {
            while self.fill_frame(now, most) {}
            return;
        }
        let mut departure = Departure::default();
        while self.depart(now, most, &mut departure) {
            self.departed.push_back(std::mem::take(&mut departure));
        }
    }

    fn log_drop(&mut self, id: QueueId, admission: Admission, pdu: Pdu, at: Instant) {
        let queue = self.queues.get_mut(id.0 as usize);
        let (Some(reason), Some(log), Some(queue)) = (admission.reason, &mut self.drops, queue)
        else {
            return;
        };
        let known = queue.logged.as_ref().is_some_and(|last| last.is_same(&pdu));
        if !known {
            queue.logged = Some(pdu.clone());
            log.push(DroppedPdu {
                at,
                pdu,
                vc: queue.vc,
                reason,
            });
        }
    }

    /// Starts the log of PDUs that lose cells, for accounts and captures. The log has no limit, because the accounts
    /// need each entry: its reader takes it after every event of the port. What one event drops was in the port's
    /// queues, which have limits, or came with it.
    pub fn log_drops(&mut self) {
        self.drops.get_or_insert_default();
    }

    /// True if the log has entries.
    #[must_use]
    pub fn has_drops(&self) -> bool {
        self.drops.as_ref().is_some_and(|drops| !drops.is_empty())
    }

    /// Takes the log. A PDU has one entry, however many cells it loses.
    pub fn take_drops(&mut self) -> Vec<DroppedPdu> {
        self.drops.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// When the next cell may begin, or `None` if no cell waits. If the driver is late, this time may be in the past.
    #[must_use]
    #[inline]
    pub fn next_departure(&self) -> Option<Instant> {
        if let Some(departure) = self.departed.front() {
            return Some(departure.start);
        }
        self.next_start()
    }

    #[inline]
    fn next_start(&self) -> Option<Instant> {
        let free = self.line.at();
        if self.schedule.count > 0 {
            return Some(self.after_lead(free.max(self.schedule.since)));
        }
        let held = self.waiting.peek();
        held.map(|Reverse((at, _, _))| self.after_lead(free.max(*at)))
    }

    #[inline]
    const fn after_lead(&self, at: Instant) -> Instant {
        Instant::from_nanos(at.as_nanos().saturating_add(self.lead))
    }

    /// True if no cell waits here, and no departure remains to be taken.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.departed.is_empty() && self.queued_total() == 0
    }

    /// Sends up to `max` cells of one run, if a departure is due at `now`.
    pub fn pop(&mut self, now: Instant, max: u16) -> Option<Departure> {
        let mut departure = Departure::default();
        self.pop_to(now, max, &mut departure).then_some(departure)
    }

    /// Like [`Self::pop`], for a driver that uses the same departure again; false if no departure is due. The run is
    /// copied once, from the queue to `to`: a processor that copies octets again right behind a copy waits for them.
    #[inline]
    pub fn pop_to(&mut self, now: Instant, max: u16, to: &mut Departure) -> bool {
        self.pop_cells(now, Most::Cells(max.max(1)), to)
    }

    /// Sends the cells of a turn, if a departure is due at `now`: cells of one run that take at most 50 µs, or 3 µs
    /// while another queue waits, and always one cell. On a fast line a turn has whole PDUs of a train. `late` is for a
    /// driver that lags behind: a turn is as long beside another queue as it is alone.
    pub fn pop_turn(&mut self, now: Instant, late: bool) -> Option<Departure> {
        let mut departure = Departure::default();
        let most = if late { Most::LongTurn } else { Most::Turn };
        self.pop_cells(now, most, &mut departure)
            .then_some(departure)
    }

    #[inline]
    fn pop_cells(&mut self, now: Instant, most: Most, to: &mut Departure) -> bool {
        if self.departed.is_empty() {
            if self.framing.is_none() {
                return self.depart(now, most, to);
            }
            self.fill_frame(now, most);
        }
        self.departed
            .pop_front()
            .map(|departure| *to = departure)
            .is_some()
    }

    /// Records that cells of a queue leave from `start` on, and gives the queue its next turn.
    #[inline]
    fn sent(&mut self, turn: Turn, start: Instant, count: u16) {
        let Some(queue) = self.queues.get_mut(turn.0 as usize) else {
            return;
        };
        self.pools[queue.pool()] -= u32::from(count);
        if queue.special {
            return self.sent_special(turn, start, count);
        }
        if queue.cells > 0 {
            let class = queue.class;
            self.schedule.enter_ring(turn, class, start);
        }
    }

    /// Decides the next departure that is due at `now`; false if there is no departure.
    #[inline]
    fn depart(&mut self, now: Instant, most: Most, to: &mut Departure) -> bool {
        let Some((turn, start)) = self.next_turn(now) else {
            return false;
        };
        let mut max = match most {
            Most::Cells(cells) => cells,
            Most::Turn => self.most_of_turn(turn, start, self.turns),
            Most::LongTurn => self.most_of_turn(turn, start, [self.turns[0]; 2]),
        };
        max = max.min(self.room);
        if !self.simple {
            max = self.most_in_order(turn, max);
        }
        let Some(queue) = self.queues.get_mut(turn.0 as usize) else {
            return false;
        };
        if !queue.pop_whole(max, &mut self.runs, &mut to.run) {
            let mut count = queue.next(max, &self.runs);
            if count == Some(0) {
                let over = queue.drop_empty(&mut self.runs);
                self.left.extend(over.map(|over| (turn.0, over)));
                count = queue.next(max, &self.runs);
            }
            let Some(count) = count else {
                return false;
            };
            queue.pop(count, &mut self.runs, &mut to.run);
        }
        let count = to.run.count;
        self.line.not_before(self.schedule.since);
        self.line.advance(count);
        (to.queue, to.start, to.finish) = (QueueId(turn.0), start, self.line.at());
        if queue.special {
            if !matches!(most, Most::Cells(1))
                && let Some(shaper) = self.shaper_of(turn)
            {
                let timing = shaper.calendar(start, to.run.first());
                to.run.timing = Some(Arc::new(timing));
            }
            self.sent(turn, start, count);
            return true;
        }
        let (more, class) = (queue.cells > 0, queue.class);
        self.pools[queue.pool()] -= u32::from(count);
        if more {
            self.schedule.enter_ring(turn, class, start);
        }
        true
    }

    /// The queue whose turn it is, and when its next cell begins, if that is due at `now`. The queue has no turn then
    /// until [`Self::sent`].
    #[inline(always)]
    fn next_turn(&mut self, now: Instant) -> Option<(Turn, Instant)> {
        self.told = self.told.max(now);
        let start = self.next_start().filter(|start| *start <= now)?;
        self.release(start);
        let turn = self.choose(start)?;
        Some((turn, start))
    }

    /// Sets the state of the link. While it is down no cell enters a queue, and those that wait when it goes down are
    /// dropped.
    pub fn set_link(&mut self, up: bool) {
        self.up = up;
        if up {
            return;
        }
        let reason = DropReason::LinkDown;
        for (_, queue) in &mut self.queues {
            queue.end_trains(&mut self.over, &mut self.runs);
            log_all(&mut self.drops, (queue, &self.runs), reason, self.told);
            queue.flush(reason, &mut self.runs);
        }
        self.forget_order();
        self.pools = [0; 2];
    }
}
