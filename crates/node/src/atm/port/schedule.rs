//! The order of service among what waits at a port, or in a shaped path.
//!
//! Whatever the discipline, CBR comes before real-time VBR, and this before other VBR and best effort. Disciplines
//! differ in the order within a class:
//!
//! - *Round robin*, the default: a ring for each class, ABR and GFR before UBR, one turn each.
//! - *Weighted*: CBR and VBR as before; ABR, GFR and UBR are one class with two parts. The *timed part* gives each
//!   queue its minimum rate (MCR of ABR and GFR, MDCR of UBR): a cell is due at each multiple of 1/rate since the queue
//!   last was empty, and cells that are due leave first. The *work-conserving part* shares what is left by weight. So a
//!   queue that never runs empty gets `minimum + weight / all weights * rest`: of the fairness criteria of Traffic
//!   Management 4.0 §I.3 (from memory) this is "MCR plus weighted share".
//! - *Per class*: one queue for each class. Cells leave in the order in which they came, whatever their VC.
//!
//! The work-conserving part is start-time fair queueing (Goyal, Vin and Cheng 1996) with cells as its unit: the next
//! cell of a queue has a *start tag*, the cell with the smallest tag leaves, and the tag of its queue advances by
//! 1/weight. The virtual time is the tag of the last cell that left. A queue that was empty begins there, so it neither
//! loses nor gains from its rest. Of two queues that both wait, `cells / weight` never differs by more than
//! `1/weight + 1/weight'`, so weighted turns come evenly spread, and not as bursts.
//!
//! An entry of a heap may have gone stale: its queue has been closed, is empty, or was served by the other part since.
//! Such an entry is passed over.

use super::Turn;
use super::config::CLASSES;
use super::path::{Path, path_of};
use crate::atm::queue::VcQueue;
use crate::atm::rate::{CellRate, Pacer};
use aerostat_proto::Instant;
use slab::Slab;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

aerostat_wire::named! {
    /// How an output port chooses among queues of one class. See `port/schedule.rs`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Discipline {
        /// Each queue in turn; ABR and GFR before UBR.
        #[default]
        RoundRobin = "round-robin",
        /// ABR, GFR and UBR by weight, after their minimum rates.
        Weighted = "weighted",
        /// Cells of a class in the order in which they came.
        PerClass = "per-class",
    }
}

/// Entries of queues that have gone which a schedule keeps at least before it removes them all.
const STALE: usize = 64;

/// The first class of best effort.
pub(super) const BEST_EFFORT: u8 = 3;

/// A tag of 1: the distance of the cells of a queue with weight 1. A power of two, so large that the rounding of
/// 1/weight changes no share by more than a ten thousandth.
const UNIT: u64 = 1 << 24;

/// The largest weight.
pub const MAX_WEIGHT: u16 = 1000;

/// No path.
pub(in crate::atm) const NO_PATH: u32 = u32::MAX;

/// State of a queue, or of a path, in a schedule.
#[derive(Clone, Debug)]
pub(in crate::atm) struct Share {
    pub(super) weight: u16,
    /// The minimum rate, cells/s; 0 if the contract has no minimum.
    pub(super) least_rate: u32,
    /// Start tag of the next cell.
    tag: u64,
    /// True if the queue has an entry with this tag.
    listed: bool,
    /// When the next cell of the minimum rate is due.
    least: Option<Pacer>,
    /// The time of the queue's entry in the timed part.
    due: Option<Instant>,
    /// True if the cell that leaves now is one of the minimum rate.
    timed: bool,
    /// The path whose schedule this is, or [`NO_PATH`].
    pub(super) path: u32,
}

impl Share {
    /// A queue with this weight and minimum rate (cells/s; 0: it has none).
    pub(super) fn new(weight: u16, least: u32, path: u32) -> Self {
        Self {
            weight: weight.clamp(1, MAX_WEIGHT),
            least_rate: least,
            tag: 0,
            listed: false,
            least: (least > 0).then(|| Pacer::new(CellRate::of_cells(least))),
            due: None,
            timed: false,
            path,
        }
    }
    /// All entries have been removed.
    pub(super) const fn forget(&mut self) {
        (self.listed, self.due) = (false, None);
    }
    /// The distance of the tags of two cells.
    const fn step(&self) -> u64 {
        UNIT / self.weight as u64
    }
    /// Cells of `other`, which has `cells`, that the work-conserving part serves before cell number `wanted` of this
    /// queue at least. Both wait now.
    pub(super) const fn ahead(&self, wanted: u32, other: &Self, cells: u32) -> u32 {
        if self.least.is_some() {
            return 0;
        }
        let own = self.tag + (wanted.saturating_sub(1) as u64) * self.step();
        // Of equal tags either may come first.
        let before = own.saturating_sub(other.tag).div_ceil(other.step());
        if before < cells as u64 {
            before as u32
        } else {
            cells
        }
    }
}

/// A queue, or a path, in the view of a schedule.
pub(super) struct Member<'a> {
    pub(super) turn: Turn,
    pub(super) class: u8,
    /// True if something waits that may leave.
    pub(super) waits: bool,
    /// True if a shaper decides when it takes part.
    pub(super) shaped: bool,
    pub(super) share: Option<&'a mut Share>,
}

/// Queues and paths that the entries of schedules stand for.
pub(super) struct Members<'a> {
    pub(super) queues: &'a mut Slab<VcQueue>,
    /// None of them inside a path.
    pub(super) paths: &'a mut [Path],
}

impl Members<'_> {
    /// True if an entry still means something.
    #[inline]
    pub(super) fn stands(&self, turn: Turn) -> bool {
        if let Some(path) = path_of(turn) {
            return (self.paths.get(path)).is_some_and(|path| path.entered == turn.1);
        }
        let queue = self.queues.get(turn.0 as usize);
        queue.is_some_and(|queue| queue.opened == turn.1)
    }

    /// The queue or path of an entry, unless it has gone.
    pub(super) fn get(&mut self, turn: Turn) -> Option<Member<'_>> {
        if let Some(path) = path_of(turn) {
            let path = self.paths.get_mut(path)?;
            return (path.entered == turn.1).then(|| path.member(turn));
        }
        let queue = self.queues.get_mut(turn.0 as usize)?;
        (queue.opened == turn.1).then(|| Member::of(queue, turn))
    }

    fn waits(&mut self, turn: Turn) -> bool {
        self.get(turn).is_some_and(|member| member.waits)
    }
}

impl<'a> Member<'a> {
    /// A queue in the view of its schedule.
    pub(super) fn of(queue: &'a mut VcQueue, turn: Turn) -> Self {
        Self {
            turn,
            class: queue.class,
            waits: queue.cells > 0 && !queue.held,
            shaped: queue.shaper.is_some(),
            share: queue.share.as_deref_mut(),
        }
    }
}

/// The parts of the discipline by weight.
#[derive(Debug, Default)]
struct Weighted {
    /// Start tag, order of arrival here, queue.
    tags: BinaryHeap<Reverse<(u64, u64, Turn)>>,
    /// Time, order of arrival here, queue.
    due: BinaryHeap<Reverse<(Instant, u64, Turn)>>,
    arrivals: u64,
    /// Virtual time.
    reached: u64,
}

/// Cells of one queue that came one behind the other.
type Arrived = (Turn, u32);

#[derive(Debug)]
enum More {
    Weighted(Weighted),
    PerClass([VecDeque<Arrived>; CLASSES]),
}

/// The queues and paths whose next cell may leave. See the documentation of this module.
#[derive(Debug)]
pub(super) struct Schedule {
    rings: [VecDeque<Turn>; CLASSES],
    /// A bit for each ring that may have entries: one without its bit has none.
    ringed: u32,
    /// Their number. A queue that is being served does not count.
    pub(super) count: usize,
    /// When the number last changed from 0.
    pub(super) since: Instant,
    /// Data of other disciplines than round robin.
    more: Option<Box<More>>,
}

impl Schedule {
    pub(super) fn new(discipline: Discipline) -> Self {
        let more = match discipline {
            Discipline::RoundRobin => None,
            Discipline::Weighted => Some(More::Weighted(Weighted::default())),
            Discipline::PerClass => Some(More::PerClass(Default::default())),
        };
        Self {
            rings: Default::default(),
            ringed: 0,
            count: 0,
            since: Instant::ZERO,
            more: more.map(Box::new),
        }
    }

    pub(super) fn discipline(&self) -> Discipline {
        match self.more.as_deref() {
            None => Discipline::RoundRobin,
            Some(More::Weighted(_)) => Discipline::Weighted,
            Some(More::PerClass(_)) => Discipline::PerClass,
        }
    }

    /// True if weights count.
    #[inline]
    pub(super) fn weighs(&self) -> bool {
        matches!(self.more.as_deref(), Some(More::Weighted(_)))
    }

    /// True if a ring for each class is all that there is.
    pub(super) const fn is_plain(&self) -> bool {
        self.more.is_none()
    }

    /// The rings, in order of service.
    pub(super) fn rings(&self) -> impl Iterator<Item = &VecDeque<Turn>> {
        self.rings.iter()
    }

    #[inline]
    fn more_by_one(&mut self, at: Instant) {
        if self.count == 0 {
            self.since = at;
        }
        self.count += 1;
    }

    /// A queue without a share gets its place in the ring.
    #[inline]
    pub(super) fn enter_ring(&mut self, turn: Turn, class: u8, at: Instant) {
        self.more_by_one(at);
        self.push_ring(turn, class);
    }

    #[inline]
    fn push_ring(&mut self, turn: Turn, class: u8) {
        self.ringed |= 1 << class;
        self.rings[usize::from(class)].push_back(turn);
    }

    /// A queue or path gets its place: it was empty and now has `cells`, or its shaper lets a cell go.
    pub(super) fn enter(&mut self, member: Member<'_>, cells: u32, at: Instant) {
        self.more_by_one(at);
        let Member {
            turn,
            class,
            shaped,
            share,
            ..
        } = member;
        match (self.more.as_deref_mut(), share) {
            (Some(More::Weighted(weighted)), Some(share)) if class >= BEST_EFFORT => {
                if share.tag < weighted.reached {
                    (share.tag, share.listed) = (weighted.reached, false);
                }
                if let Some(least) = &mut share.least {
                    least.not_before(at);
                }
                weighted.list(turn, share);
            }
            (Some(More::PerClass(order)), _) => {
                let cells = if shaped { 1 } else { cells };
                Self::append(&mut order[usize::from(class)], turn, cells);
            }
            _ => self.push_ring(turn, class),
        }
    }

    /// Further cells have come to a queue that waits.
    pub(super) fn arrive(&mut self, turn: Turn, class: u8, cells: u32) {
        if let Some(More::PerClass(order)) = self.more.as_deref_mut() {
            Self::append(&mut order[usize::from(class)], turn, cells);
        }
    }

    fn append(order: &mut VecDeque<Arrived>, turn: Turn, cells: u32) {
        match order.back_mut() {
            Some((last, count)) if *last == turn => *count = count.saturating_add(cells),
            _ => order.push_back((turn, cells)),
        }
    }

    /// The queue or path that is served next, at `start`. It has no place then until [`Self::served`].
    pub(super) fn next(&mut self, start: Instant, members: &mut Members<'_>) -> Option<Turn> {
        if self.more.is_some() {
            return self.next_of_more(start, members);
        }
        self.next_in_ring(|turn| members.stands(turn))
    }

    /// The same where rings are all that there is; `stands` tells which entries still mean something.
    #[inline(always)]
    pub(super) fn next_in_ring(&mut self, stands: impl Fn(Turn) -> bool) -> Option<Turn> {
        let turn = loop {
            let class = self.ringed.trailing_zeros();
            match self.rings.get_mut(class as usize)?.pop_front() {
                Some(turn) if stands(turn) => break turn,
                Some(_) => {}
                None => self.ringed &= !(1 << class),
            }
        };
        self.count -= 1;
        Some(turn)
    }

    #[inline(never)]
    fn next_of_more(&mut self, start: Instant, members: &mut Members<'_>) -> Option<Turn> {
        let Self { rings, more, .. } = self;
        let found = match more.as_deref_mut()? {
            More::PerClass(orders) => orders.iter_mut().find_map(|order| {
                while let Some((turn, _)) = order.front().copied() {
                    if members.waits(turn) {
                        return Some(turn);
                    }
                    order.pop_front();
                }
                None
            }),
            More::Weighted(weighted) => {
                let mut ringed = rings.iter_mut().filter_map(|ring| {
                    while let Some(turn) = ring.pop_front() {
                        if members.waits(turn) {
                            return Some(turn);
                        }
                    }
                    None
                });
                let found = ringed.next();
                found.or_else(|| weighted.next(start, members))
            }
        };
        self.count -= usize::from(found.is_some());
        found
    }

    /// Cells that a queue may send in this turn at most, of those that the driver wants.
    pub(super) fn most(&self, turn: Turn, class: u8, most: u16) -> u16 {
        let Some(More::PerClass(order)) = self.more.as_deref() else {
            return most;
        };
        let front = order[usize::from(class)].front();
        let front = front.filter(|(one, _)| *one == turn);
        front.map_or(most, |(_, cells)| {
            most.min(u16::try_from(*cells).unwrap_or(u16::MAX))
        })
    }

    /// Cells of the queue of [`Self::next`] have left. If more wait that may leave now, it gets its next place.
    pub(super) fn served(&mut self, member: Member<'_>, count: u16, start: Instant) {
        let Member {
            turn,
            class,
            waits,
            shaped,
            share,
        } = member;
        if waits {
            self.more_by_one(start);
        }
        match (self.more.as_deref_mut(), share) {
            (Some(More::Weighted(weighted)), Some(share)) if class >= BEST_EFFORT => {
                match (&mut share.least, std::mem::take(&mut share.timed)) {
                    (Some(least), true) => least.advance(count),
                    _ => share.tag += share.step() * u64::from(count),
                }
                if waits {
                    weighted.list(turn, share);
                }
            }
            (Some(More::PerClass(order)), _) => {
                let order = &mut order[usize::from(class)];
                if let Some((_, cells)) = order.front_mut().filter(|front| front.0 == turn) {
                    *cells = cells.saturating_sub(count.into());
                    if *cells == 0 {
                        order.pop_front();
                    }
                }
                if waits && shaped {
                    Self::append(order, turn, 1);
                }
            }
            _ if waits => self.push_ring(turn, class),
            _ => {}
        }
    }

    /// A queue or path that waited has gone: its entry is passed over later.
    pub(super) fn leave(&mut self, members: &Members<'_>) {
        let stands = |turn: Turn| members.stands(turn);
        self.count -= 1;
        let most = 2 * self.count + STALE;
        if self.rings.iter().map(VecDeque::len).sum::<usize>() > most {
            for ring in &mut self.rings {
                ring.retain(|turn| stands(*turn));
            }
        }
        match self.more.as_deref_mut() {
            Some(More::Weighted(weighted)) if weighted.tags.len() + weighted.due.len() > most => {
                weighted.tags.retain(|Reverse((.., turn))| stands(*turn));
                weighted.due.retain(|Reverse((.., turn))| stands(*turn));
            }
            Some(More::PerClass(orders)) => {
                for order in orders.iter_mut().filter(|order| order.len() > most) {
                    order.retain(|(turn, _)| stands(*turn));
                }
            }
            _ => {}
        }
    }

    /// Removes all entries.
    pub(super) fn clear(&mut self) {
        self.count = 0;
        self.rings.iter_mut().for_each(VecDeque::clear);
        match self.more.as_deref_mut() {
            Some(More::Weighted(weighted)) => {
                weighted.tags.clear();
                weighted.due.clear();
            }
            Some(More::PerClass(orders)) => orders.iter_mut().for_each(VecDeque::clear),
            None => {}
        }
    }

    /// The queues and paths with entries, some of them perhaps stale or several times; with the number of cells that
    /// leave together, if the order of cells is known.
    pub(super) fn entries(&self) -> impl Iterator<Item = (Turn, Option<u32>)> {
        let (tags, orders) = match self.more.as_deref() {
            Some(More::Weighted(weighted)) => (Some(weighted.tags.iter()), None),
            Some(More::PerClass(orders)) => (None, Some(orders.iter().flatten())),
            None => (None, None),
        };
        let rings = self.rings.iter().flatten().map(|turn| (*turn, None));
        let tags = tags.into_iter().flatten();
        let orders = orders.into_iter().flatten();
        rings
            .chain(tags.map(|Reverse((.., turn))| (*turn, None)))
            .chain(orders.map(|(turn, cells)| (*turn, Some(*cells))))
    }

    /// Number of entries.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let due = match self.more.as_deref() {
            Some(More::Weighted(weighted)) => weighted.due.len(),
            _ => 0,
        };
        self.entries().count() + due
    }
}

impl Weighted {
    /// Gives a queue that waits its entries, as far as it has none.
    fn list(&mut self, turn: Turn, share: &mut Share) {
        if !std::mem::replace(&mut share.listed, true) {
            self.arrivals += 1;
            self.tags.push(Reverse((share.tag, self.arrivals, turn)));
        }
        let due = share.least.as_ref().map(Pacer::at);
        if let Some(at) = due.filter(|_| share.due != due) {
            self.arrivals += 1;
            self.due.push(Reverse((at, self.arrivals, turn)));
            share.due = due;
        }
    }

    fn next(&mut self, start: Instant, members: &mut Members<'_>) -> Option<Turn> {
        while let Some(Reverse((at, _, turn))) = self.due.peek().copied()
            && at <= start
        {
            self.due.pop();
            if let Some(one) = members.get(turn)
                && let Some(share) = one.share
                && share.due == Some(at)
            {
                share.due = None;
                share.timed = one.waits;
                if one.waits {
                    return Some(turn);
                }
            }
        }
        while let Some(Reverse((tag, _, turn))) = self.tags.pop() {
            if let Some(one) = members.get(turn)
                && let Some(share) = one.share
                && share.listed
                && share.tag == tag
            {
                share.listed = false;
                if one.waits {
                    self.reached = tag;
                    return Some(turn);
                }
            }
        }
        None
    }
}
