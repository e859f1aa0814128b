//! A port that takes its cells from trains, and sends them in trains: [`OutputPort::run`].

use super::super::cell_trains::{Head, Key, Trains};
use super::super::queue::VcQueue;
use super::OutputPort;
use super::special::shared;
use aerostat_proto::{Duration, Instant};
use smallvec::SmallVec;
use std::cmp::Reverse;

/// Queues to look at for the next cell that matters.
const LOOK: usize = 16;

/// A queue that takes its turns: cells up to the next one that matters, cells, and the queue.
type Place<'a> = (Option<u32>, u32, &'a VcQueue);

impl OutputPort {
    /// Brings the port up to date, in front of `line`: it takes the cells of its trains that arrive before `key`, and
    /// decides the departures up to the time of `key`. Cells for a line that takes them one by one wait for
    /// [`Self::pop`]. Returns the number of cells that left in trains.
    pub fn run(&mut self, trains: &mut Trains, line: u32, key: Key) -> u64 {
        for over in std::mem::take(&mut self.over) {
            trains.close(over);
        }
        let single = trains.is_single(line);
        let mut left = 0;
        if !single && !self.departed.is_empty() {
            left += self.departed.len() as u64;
            self.departed_into(trains, line);
        }
        loop {
            let next = trains.next_arrival(line, key);
            let until = Instant::from_nanos(next.map_or(key.0, |next| next.0));
            if single {
                self.catch_up(until);
            } else {
                while let Some((turn, start)) = self.next_turn(until) {
                    self.line.not_before(self.schedule.since);
                    self.line.step();
                    let finish = self.line.at();
                    if let Some(queue) = self.queues.get_mut(turn.0 as usize) {
                        queue.pop_into(trains, line, turn.0, start, finish, &mut self.runs);
                    }
                    self.sent(turn, start, 1);
                    left += 1;
                }
            }
            let Some((_, train)) = next else { return left };
            self.take_cell(trains, train, until);
            trains.take_arrival(line, train);
        }
    }

    /// True if nothing happens at the port up to `key`, which it remembers: no cell waits, and no cell arrives. Then
    /// [`Self::run`] would do nothing.
    #[inline]
    pub fn rests(&mut self, trains: &Trains, line: u32, key: Key) -> bool {
        let rests = self.is_idle()
            && self.over.is_empty()
            && self.left.is_empty()
            && trains.next_arrival(line, key).is_none();
        if rests && self.framing.is_none() {
            self.told = self.told.max(Instant::from_nanos(key.0));
        }
        rests
    }

    /// Moves departures that were decided without trains into trains.
    fn departed_into(&mut self, trains: &mut Trains, line: u32) {
        let mut opened: Vec<(u32, u32)> = Vec::new();
        let gone = std::mem::take(&mut self.departed);
        for cell in &gone {
            let index = cell.queue.0;
            let end = cell.run.pdu().is_some() && cell.run.ends_pdu();
            let queue = self.queues.get_mut(index as usize);
            let known = opened.iter().rev().find(|(queue, _)| *queue == index);
            let known = known.map(|known| known.1);
            let known = known.filter(|id| trains.goes_on(*id, &cell.run));
            let goes_on = |id: &u32| trains.goes_on(*id, &cell.run);
            let front = queue.as_ref().and_then(|queue| queue.train(&self.runs));
            let of_queue = |left: &&(u32, u32)| left.0 == index;
            let mut left = self.left.iter().filter(of_queue);
            let before = self.left.iter().rev().find(of_queue).map(|left| left.1);
            let last = opened.iter().rev().find(|(queue, _)| *queue == index);
            let before = last.map(|last| last.1).or(before).or(front);
            let known = known.or_else(|| front.filter(goes_on));
            let known = known.or_else(|| left.find(|left| goes_on(&left.1)).map(|left| left.1));
            let id = known.unwrap_or_else(|| {
                let id = trains.open_after(before, line, index, cell.run.clone());
                opened.push((index, id));
                id
            });
            trains.emit(id, cell.start, cell.finish, end);
            if end && let Some(queue) = queue {
                queue.ended(id, &mut self.runs);
            }
        }
        for (index, id) in opened {
            let queue = self.queues.get_mut(index as usize);
            if !queue.is_some_and(|queue| queue.go_on(trains, id, &mut self.runs)) {
                trains.close(id);
            }
        }
        self.left.drain(..).for_each(|(_, id)| trains.close(id));
    }

    /// Queues the next cell of a train, which arrives at `now`.
    #[inline]
    fn take_cell(&mut self, trains: &Trains, train: u32, now: Instant) {
        self.told = self.told.max(now);
        let Some(Head {
            run,
            serial,
            queue: id,
        }) = trains.head(train)
        else {
            return;
        };
        if self.up
            && let Some(queue) = self.queues.get_mut(id.0 as usize)
        {
            let pool = queue.pool();
            let buffer = &self.buffers[pool];
            let own = match queue.special {
                true => shared(&self.schedule, queue, buffer),
                false => None,
            };
            let pool_level = (self.pools[pool], own.as_ref().unwrap_or(buffer));
            if queue.push_next(run, serial, pool_level, &mut self.runs) {
                self.pools[pool] += 1;
                let was_empty = queue.cells == 1;
                if queue.special {
                    self.came(id, was_empty, 1, now);
                } else if was_empty {
                    let (class, turn) = (queue.class, (id.0, queue.opened));
                    self.schedule.enter_ring(turn, class, now);
                }
                return;
            }
        }
        if let Some(cell) = trains.get(train).and_then(|train| train.cells(1)) {
            self.enqueue(id, cell, now);
        }
    }

    /// Ends the trains into which cells of all queues left, because their line has gone down.
    pub fn forget_trains(&mut self) {
        for (_, queue) in &mut self.queues {
            queue.end_trains(&mut self.over, &mut self.runs);
        }
        self.over.clear();
        self.left.clear();
    }

    /// Ends the trains into which cells of all queues left, because the line takes cells one by one from now on.
    pub fn end_trains(&mut self, trains: &mut Trains) {
        for (_, queue) in &mut self.queues {
            queue.end_trains(&mut self.over, &mut self.runs);
        }
        let left = self.left.drain(..).map(|left| left.1);
        self.over
            .drain(..)
            .chain(left)
            .for_each(|over| trains.close(over));
    }

    /// A lower bound of the time at which the transmission of a waiting cell ends that matters on `line`. It is exact,
    /// or to a nanosecond behind a shaper, if no other queue gets a cell before that. `None` if no such cell waits.
    #[must_use]
    pub fn next_matter(&self, trains: &Trains, line: u32) -> Option<Instant> {
        if !self.schedule.is_plain() || !self.paths.is_empty() {
            return self.next_matter_of_more(trains, line);
        }
        let mut best: Option<Instant> = None;
        let mut offer = |at: Instant| best = Some(best.map_or(at, |best| best.min(at)));
        let mut ahead = 0;
        // Rings without a cell can have entries of queues that were closed, and nothing would ever take these away.
        let rings = (self.schedule.count > 0).then(|| self.schedule.rings());
        let rings = rings.into_iter().flatten();
        for ring in rings.filter(|ring| !ring.is_empty()) {
            let turns: SmallVec<[Place<'_>; 2]> = ring
                .iter()
                .take(LOOK)
                .filter_map(|turn| {
                    let queue = self.queues.get(turn.0 as usize)?;
                    let queue = Some(queue).filter(|queue| queue.opened == turn.1)?;
                    let cells = if queue.shaper.is_some() {
                        1
                    } else {
                        queue.cells
                    };
                    Some((queue.until_matters(trains, line, &self.runs), cells, queue))
                })
                .collect();
            let all = ring.len() <= LOOK;
            for (place, turn) in turns.iter().enumerate() {
                if let Some(wanted) = turn.0.filter(|wanted| all || *wanted == 1) {
                    let cells = ahead + served_with(&turns, place, wanted);
                    offer(
                        self.after_cells(cells)
                            .max(self.shaped(turn.2, wanted, None)),
                    );
                }
            }
            if !all {
                // Look again when these queues have had their turns.
                offer(self.after_cells(ahead + LOOK as u32 + 1));
            }
            ahead += turns.iter().map(|turn| turn.1).sum::<u32>();
        }
        if self.waiting.len() > LOOK {
            let first = self.waiting.peek();
            first
                .into_iter()
                .for_each(|Reverse(next)| offer(self.after(next.0)));
            return best;
        }
        for Reverse((at, _, turn)) in &self.waiting {
            if let Some(queue) = self.queues.get(turn.0 as usize)
                && queue.opened == turn.1
                && let Some(wanted) = queue.until_matters(trains, line, &self.runs)
            {
                offer(self.shaped(queue, wanted, Some(*at)));
            }
        }
        best
    }

    /// When the transmission of this many cells ends that follow each other now.
    pub(super) fn after_cells(&self, cells: u32) -> Instant {
        let mut line = self.line;
        if self.schedule.count > 0 {
            line.not_before(self.schedule.since);
        }
        line.advance(cells.min(u16::MAX.into()) as u16);
        line.at()
    }

    /// When the transmission of a cell can end that begins at `start`, by its shaper, or when the line is free. A cell
    /// that waits alone moves the line to `start`. Among others it begins at the fraction of a nanosecond where the
    /// line is free, which may be up to a nanosecond before a time that is rounded up.
    pub(super) fn after(&self, start: Instant) -> Instant {
        let mut line = self.line;
        line.not_before(Instant::from_nanos(start.as_nanos().saturating_sub(1)));
        line.step();
        line.at()
    }

    /// When the transmission of cell number `wanted` of a shaped queue can end; the first one leaves from `first` on.
    fn shaped(&self, queue: &VcQueue, wanted: u32, first: Option<Instant>) -> Instant {
        let start = match &queue.shaper {
            Some(shaper) if wanted > 1 => shaper.after(wanted - 1),
            _ => Instant::ZERO,
        };
        match first {
            None if start == Instant::ZERO => start,
            first => self.after(start.max(first.unwrap_or_default())),
        }
    }

    /// The shortest time between two cells of the port.
    #[must_use]
    pub fn cell_time(&self) -> Duration {
        Duration::from_nanos(self.line.step_floor())
    }
}

/// Cells that are served up to and including cell number `wanted` of the queue at `place`, if each queue in turn sends
/// one cell.
fn served_with(turns: &[Place<'_>], place: usize, wanted: u32) -> u32 {
    let others = turns
        .iter()
        .enumerate()
        .filter(|(other, _)| *other != place);
    let cells = others.map(|(other, turn)| turn.1.min(wanted - u32::from(other > place)));
    wanted + cells.sum::<u32>()
}
