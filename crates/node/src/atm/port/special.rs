//! Queues that do not simply take their turns in the ring of their class: shaped queues, queues in shaped paths, and
//! all queues of a port with another discipline.

use super::path::{PathKey, path_of, turn_of};
use super::schedule::{BEST_EFFORT, MAX_WEIGHT, Member, Members, NO_PATH, Schedule, Share};
use super::{Buffer, Limits, OutputPort, QueueConfig, QueueId, STALE, Tuning, Turn, VcQueue};
use crate::atm::shaper::Shaper;
use aerostat_proto::Instant;
use aerostat_wire::{ServiceCategory, TrafficParams};
use std::cmp::Reverse;

/// The bounds of a buffer for a queue that is served by weight: the queue's own cells count twice. So n greedy queues
/// leave room for one more like them, and who sends too much does not take the buffer from the others. This is the
/// dynamic threshold of Choudhury and Hahne (1998) with factor 1. `None`: those of the buffer, as for CBR and VBR,
/// which no weight serves.
pub(super) fn shared(schedule: &Schedule, queue: &VcQueue, buffer: &Buffer) -> Option<Buffer> {
    let limits = buffer.limits;
    let own = || Limits {
        max: limits.max.saturating_sub(queue.cells),
        early: limits.early.saturating_sub(queue.cells),
        low_priority: limits.low_priority.saturating_sub(queue.cells),
        mark: match limits.mark {
            Limits::NEVER => Limits::NEVER,
            mark => mark.saturating_sub(queue.cells),
        },
    };
    (schedule.weighs() && queue.class >= BEST_EFFORT).then(|| Buffer::new(own()))
}

impl OutputPort {
    /// Gives a queue that is about to open a shaper or a share, if it needs one.
    pub(super) fn make_special(&self, queue: &mut VcQueue, config: &QueueConfig) {
        let by_queue = config
            .rate_queue
            .and_then(|number| self.path_at(PathKey::RateQueue(number)));
        let path = by_queue.or_else(|| self.path_at(PathKey::Vpi(queue.vc.vpi)));
        if config.shaped && path.is_none() {
            queue.shaper = Shaper::new(&config.traffic).map(Box::new);
        }
        let plain = self.schedule.is_plain();
        if path.is_some() || !plain {
            let least = match config.traffic.category {
                Some(ServiceCategory::Ubr | ServiceCategory::Abr | ServiceCategory::Gfr) => {
                    config.traffic.min_pcr
                }
                _ => 0,
            };
            let share = Share::new(config.weight, least, path.unwrap_or(NO_PATH));
            queue.share = Some(Box::new(share));
        }
        queue.special = queue.shaper.is_some() || queue.share.is_some();
    }

    /// Gives a queue, which must have no cells yet, what its connection has for itself.
    pub fn tune(&mut self, id: QueueId, traffic: &TrafficParams, tuning: &Tuning) {
        let plain = self.schedule.is_plain();
        let Some(queue) = self.queues.get_mut(id.0 as usize) else {
            return;
        };
        debug_assert_eq!(queue.cells, 0);
        let guaranteed = queue.class < BEST_EFFORT;
        queue.limit(tuning.limits(queue.limits, guaranteed));
        let path = queue.share.as_ref().map_or(NO_PATH, |share| share.path);
        if let Some(share) = &mut queue.share {
            share.weight = tuning.weight.clamp(1, MAX_WEIGHT);
        }
        if tuning.shaped && path == NO_PATH {
            queue.shaper = Shaper::new(traffic).map(Box::new);
            queue.special = queue.shaper.is_some() || !plain;
        }
    }

    /// The shaper that decides when cells of a queue leave: its own, or that of its path.
    pub(super) fn shaper_of(&self, turn: Turn) -> Option<&Shaper> {
        let queue = self.queues.get(turn.0 as usize)?;
        match (&queue.shaper, &queue.share) {
            (Some(shaper), _) => Some(shaper),
            (None, Some(share)) => Some(&self.paths.get(share.path as usize)?.shaper),
            (None, None) => None,
        }
    }

    /// True if other queues wait in the path of a queue whose turn it is.
    pub(super) fn others_in_path(&self, turn: Turn) -> bool {
        let queue = self.queues.get(turn.0 as usize);
        let share = queue.and_then(|queue| queue.share.as_deref());
        let path = share.and_then(|share| self.paths.get(share.path as usize));
        path.is_some_and(|path| path.schedule.count > 0)
    }

    /// Cells that a queue may send in this turn at most, of those that the driver wants.
    pub(super) fn most_in_order(&self, turn: Turn, most: u16) -> u16 {
        let Some(queue) = self.queues.get(turn.0 as usize) else {
            return most;
        };
        let Some(share) = queue.share.as_deref() else {
            return most;
        };
        let path = self.paths.get(share.path as usize);
        let schedule = path.map_or(&self.schedule, |path| &path.schedule);
        schedule.most(turn, queue.class, most)
    }

    /// Cells have come to a special queue.
    #[inline(never)]
    pub(in crate::atm) fn came(&mut self, id: QueueId, was_empty: bool, cells: u16, now: Instant) {
        let Some(queue) = self.queues.get_mut(id.0 as usize) else {
            return;
        };
        let turn = (id.0, queue.opened);
        if let Some(shaper) = &mut queue.shaper {
            if was_empty {
                let at = shaper.wake(now);
                queue.held = at > now;
                self.wait_or_enter(turn, at, now);
            }
            return;
        }
        let index = queue.share.as_ref().map_or(NO_PATH, |share| share.path);
        let Some(path) = self.paths.get_mut(index as usize) else {
            return Self::join(&mut self.schedule, queue, turn, (was_empty, cells), now);
        };
        let idle = path.schedule.count == 0;
        Self::join(&mut path.schedule, queue, turn, (was_empty, cells), now);
        if idle {
            let at = path.shaper.wake(now);
            path.held = at > now;
            let turn = turn_of(index, path.entered);
            self.wait_or_enter(turn, at, now);
        }
    }

    fn join(
        schedule: &mut Schedule,
        queue: &mut VcQueue,
        turn: Turn,
        (was_empty, cells): (bool, u16),
        now: Instant,
    ) {
        if was_empty {
            schedule.enter(Member::of(queue, turn), cells.into(), now);
        } else {
            schedule.arrive(turn, queue.class, cells.into());
        }
    }

    /// A shaped queue or path is held back if `at` is later than `now`.
    fn wait_or_enter(&mut self, turn: Turn, at: Instant, now: Instant) {
        if at > now {
            self.waits += 1;
            self.held_count += 1;
            self.waiting.push(Reverse((at, self.waits, turn)));
            return;
        }
        let Self {
            queues,
            paths,
            schedule,
            ..
        } = self;
        if let Some(path) = path_of(turn) {
            if let Some(path) = paths.get_mut(path) {
                schedule.enter(path.member(turn), 1, now);
            }
        } else if let Some(queue) = queues.get_mut(turn.0 as usize) {
            schedule.enter(Member::of(queue, turn), 1, now);
        }
    }

    /// The queue whose turn it is at `start`. It has no turn then until [`Self::sent`].
    #[inline(always)]
    pub(super) fn choose(&mut self, start: Instant) -> Option<Turn> {
        if self.simple {
            let queues = &self.queues;
            return self.schedule.next_in_ring(|(index, opened)| {
                let queue = queues.get(index as usize);
                queue.is_some_and(|queue| queue.opened == opened)
            });
        }
        self.choose_of_more(start)
    }

    #[inline(never)]
    fn choose_of_more(&mut self, start: Instant) -> Option<Turn> {
        let (queues, paths) = (&mut self.queues, &mut self.paths[..]);
        let turn = self.schedule.next(start, &mut Members { queues, paths })?;
        match path_of(turn) {
            None => Some(turn),
            Some(path) => self.choose_inside(path, start),
        }
    }

    #[inline(never)]
    fn choose_inside(&mut self, path: usize, start: Instant) -> Option<Turn> {
        let queues = &mut self.queues;
        let path = self.paths.get_mut(path)?;
        let mut inside = Members {
            queues,
            paths: &mut [],
        };
        path.schedule.next(start, &mut inside)
    }

    /// Records that cells of a special queue leave from `start` on, and gives the queue its next turn.
    #[inline(never)]
    pub(super) fn sent_special(&mut self, turn: Turn, start: Instant, count: u16) {
        let Some(queue) = self.queues.get_mut(turn.0 as usize) else {
            return;
        };
        let more = queue.cells > 0;
        if let Some(shaper) = &mut queue.shaper {
            shaper.sent(start, self.clock.max(start), count);
            let at = shaper.eligible();
            queue.held = more && at > start;
            let held = queue.held;
            self.schedule.served(Member::of(queue, turn), count, start);
            if held {
                self.hold(turn, at);
            }
            return;
        }
        let index = queue.share.as_ref().map_or(NO_PATH, |share| share.path);
        let Some(path) = self.paths.get_mut(index as usize) else {
            self.schedule.served(Member::of(queue, turn), count, start);
            return;
        };
        path.schedule.served(Member::of(queue, turn), count, start);
        path.cells_out += u64::from(count);
        // Times of a path are those of the network: a tolerance of 0 would let a late driver halve its rate.
        path.shaper.sent(start, start, count);
        let at = path.shaper.eligible();
        path.held = path.schedule.count > 0 && at > start;
        let held = path.held;
        let turn = turn_of(index, path.entered);
        self.schedule.served(path.member(turn), count, start);
        if held {
            self.hold(turn, at);
        }
    }

    fn hold(&mut self, turn: Turn, at: Instant) {
        self.waits += 1;
        self.held_count += 1;
        self.waiting.push(Reverse((at, self.waits, turn)));
    }

    /// Queues and paths whose shapers allow a cell by `start` get their places.
    #[inline]
    pub(super) fn release(&mut self, start: Instant) {
        while let Some(Reverse((at, _, turn))) = self.waiting.peek().copied() {
            let (queues, paths) = (&mut self.queues, &mut self.paths[..]);
            let stands = Members { queues, paths }.stands(turn);
            if stands && at > start {
                return;
            }
            self.waiting.pop();
            if stands {
                self.held_count -= 1;
                self.let_go(turn, at);
            }
        }
    }

    /// A queue or path that was held back gets its place.
    #[inline(never)]
    fn let_go(&mut self, turn: Turn, at: Instant) {
        if let Some(path) = path_of(turn) {
            if let Some(path) = self.paths.get_mut(path) {
                path.held = false;
                self.schedule.enter(path.member(turn), 1, at);
            }
        } else if let Some(queue) = self.queues.get_mut(turn.0 as usize) {
            queue.held = false;
            self.schedule.enter(Member::of(queue, turn), 1, at);
        }
    }

    /// A queue with cells has been closed: its entry has gone, or is passed over later.
    pub(super) fn unschedule(&mut self, gone: &VcQueue) {
        let index = gone.share.as_ref().map_or(NO_PATH, |share| share.path);
        let (queues, paths) = (&mut self.queues, &mut self.paths[..]);
        let Some(path) = paths.get_mut(index as usize) else {
            let members = Members { queues, paths };
            if !gone.held {
                return self.schedule.leave(&members);
            }
            return self.not_held();
        };
        let inside = Members {
            queues,
            paths: &mut [],
        };
        path.schedule.leave(&inside);
        if path.schedule.count > 0 {
            return;
        }
        path.entered = path.entered.wrapping_add(1);
        path.share.forget();
        if std::mem::take(&mut path.held) {
            return self.not_held();
        }
        let (queues, paths) = (&mut self.queues, &mut self.paths[..]);
        self.schedule.leave(&Members { queues, paths });
    }

    /// Counts one queue less that a shaper holds back.
    fn not_held(&mut self) {
        self.held_count -= 1;
        let (queues, paths) = (&mut self.queues, &mut self.paths[..]);
        let members = Members { queues, paths };
        while let Some(Reverse((_, _, turn))) = self.waiting.peek()
            && !members.stands(*turn)
        {
            self.waiting.pop();
        }
        if self.waiting.len() > 2 * self.held_count + STALE {
            self.waiting
                .retain(|Reverse((_, _, turn))| members.stands(*turn));
        }
    }

    /// Removes all entries of schedules and shapers: no cell waits.
    pub(super) fn forget_order(&mut self) {
        self.schedule.clear();
        for path in &mut self.paths {
            path.schedule.clear();
            path.share.forget();
            path.held = false;
        }
        for (_, queue) in &mut self.queues {
            queue.held = false;
            if let Some(share) = &mut queue.share {
                share.forget();
            }
        }
        self.waiting.clear();
        self.held_count = 0;
    }
}
