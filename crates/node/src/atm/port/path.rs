//! Shaped paths: a tunnel through a network that holds a virtual path to its peak rate, with channels inside. A rate
//! queue of an adapter is the same for connections of any labels: [`PathKey`] says which queues are inside.
//!
//! The cells of a path leave at its peak rate at most, whichever channels they belong to. Among the channels the
//! schedule of the path decides, which has the discipline of the port: by class, and within a class by weight. In the
//! schedule of the port the path is one member, of a class of its own; CBR, as a network sees a path with a peak rate.
//!
//! A cell that the line holds up does not delay those behind it by more than half the tolerance of the path
//! ([`Shaper`]); with a tolerance of 0 no two cells are ever closer than 1/PCR, and such delays cost rate.
//!
//! **Real time.** These are times of the network. At a link out of the lab the cells of a turn leave together, within
//! the tolerance; but if the process was late, all cells that were due leave together, and so closer than the tolerance
//! says. A single connection with a shaper gives up rate instead; with a path, whose tolerance may be 0, each delay of
//! the process would cost rate.
//!
//! Source: Traffic Management 4.0 §5.5 (traffic shaping) and §4.5 (UPC of VPCs), from memory.

use super::schedule::{Discipline, Member, NO_PATH, Schedule, Share};
use super::{OutputPort, Turn, class_of};
use crate::atm::shaper::Shaper;
use aerostat_proto::Duration;
use aerostat_wire::TrafficParams;

/// A shaped path of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathConfig {
    /// The VPI on the outgoing link.
    pub vpi: u16,
    /// Peak rate, cells/s.
    pub pcr: u32,
    /// Cell delay variation tolerance that the far end of the path allows.
    pub cdvt: Duration,
}

/// Queues of a shaped path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKey {
    /// Queues with this VPI on the outgoing link, unless they are in a rate queue.
    Vpi(u16),
    /// Queues that were opened for the rate queue of this number.
    RateQueue(u16),
}

/// A shaped path, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathView {
    /// Queues inside.
    pub key: PathKey,
    /// Peak rate, cells/s.
    pub pcr: u32,
    /// Cell delay variation tolerance that its cells keep.
    pub cdvt: Duration,
    /// Open queues in it.
    pub queues: u32,
    /// Cells that wait in it.
    pub waiting: u32,
    /// Cells that have left in it.
    pub cells_out: u64,
}

/// The mark of a path in the index of a [`Turn`].
const PATH: u32 = 1 << 31;

#[derive(Debug)]
pub(super) struct Path {
    pub(super) key: PathKey,
    pcr: u32,
    cdvt: Duration,
    /// Its entries in the schedule of the port have this number; earlier ones are stale.
    pub(super) entered: u32,
    pub(super) class: u8,
    pub(super) shaper: Shaper,
    pub(super) share: Share,
    /// True if its shaper holds it back.
    pub(super) held: bool,
    pub(super) schedule: Schedule,
    /// Cells that have left.
    pub(super) cells_out: u64,
}

impl Path {
    /// The path in the view of the schedule of the port.
    pub(super) fn member(&mut self, turn: Turn) -> Member<'_> {
        Member {
            turn,
            class: self.class,
            waits: self.schedule.count > 0 && !self.held,
            shaped: true,
            share: Some(&mut self.share),
        }
    }
}

/// The path of an entry of a schedule.
pub(super) const fn path_of(turn: Turn) -> Option<usize> {
    if turn.0 >= PATH {
        Some((turn.0 - PATH) as usize)
    } else {
        None
    }
}

/// The entry of a path.
pub(super) const fn turn_of(path: u32, entered: u32) -> Turn {
    (PATH + path, entered)
}

impl OutputPort {
    /// Makes a path shaped, before a queue is open in it. False if it is already.
    pub fn shape_path(&mut self, config: PathConfig) -> bool {
        let PathConfig { vpi, pcr, cdvt } = config;
        self.shape_queues(PathKey::Vpi(vpi), pcr, cdvt)
    }

    /// Shapes the queues of this key together, before a queue is open for it: `pcr` cells/s at most, with this
    /// tolerance. False if they are shaped already, or if there is no such rate.
    pub fn shape_queues(&mut self, key: PathKey, pcr: u32, cdvt: Duration) -> bool {
        if self.path_at(key).is_some() {
            return false;
        }
        let traffic = TrafficParams::cbr(pcr, 0);
        let Some(shaper) = Shaper::with_tolerance(&traffic, cdvt) else {
            return false;
        };
        self.simple = false;
        self.paths.push(Path {
            key,
            pcr,
            cdvt,
            entered: 0,
            class: class_of(&traffic),
            shaper,
            share: Share::new(1, 0, NO_PATH),
            held: false,
            schedule: Schedule::new(self.schedule.discipline()),
            cells_out: 0,
        });
        true
    }

    /// The index of a shaped path.
    pub(super) fn path_at(&self, key: PathKey) -> Option<u32> {
        let mut paths = self.paths.iter().zip(0..);
        paths.find_map(|(path, index)| (path.key == key).then_some(index))
    }

    /// The shaped paths, for display.
    pub fn paths(&self) -> impl Iterator<Item = PathView> {
        self.paths.iter().zip(0..).map(|(path, index)| {
            let is_inside = |share: &Share| share.path == index;
            let inside = self.queues.iter().map(|(_, one)| one);
            let inside = inside.filter(|queue| queue.share.as_deref().is_some_and(is_inside));
            let (queues, waiting) =
                inside.fold((0, 0), |all, queue| (all.0 + 1, all.1 + queue.cells));
            PathView {
                key: path.key,
                pcr: path.pcr,
                cdvt: path.cdvt,
                queues,
                waiting,
                cells_out: path.cells_out,
            }
        })
    }

    /// The discipline among queues of one class. To be set before a queue is open.
    pub fn set_discipline(&mut self, discipline: Discipline) {
        debug_assert!(self.queues.is_empty() && self.paths.is_empty());
        self.schedule = Schedule::new(discipline);
        self.simple = discipline == Discipline::RoundRobin;
    }

    /// See [`Self::set_discipline`].
    #[must_use]
    pub fn discipline(&self) -> Discipline {
        self.schedule.discipline()
    }
}
