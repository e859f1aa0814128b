//! A port for display: its queues, their counters and thresholds.

use super::super::counters::CellCounters;
use super::super::pdu::Pdu;
use super::super::queue::VcQueue;
use super::config::CLASS_NAMES;
use super::{Limits, OutputPort, PathKey, PortLimits, QueueId};
use aerostat_proto::Duration;
use aerostat_wire::Vc;

/// The channels of signalling and ILMI. They have no contract; switches serve them before best effort, adapters as best
/// effort.
const CONTROL: [Vc; 2] = [Vc::SIGNALLING, Vc::ILMI];

/// The class of a queue, in words.
fn class_of(queue: &VcQueue) -> &'static str {
    match CLASS_NAMES.get(usize::from(queue.class)) {
        _ if CONTROL.contains(&queue.vc) => "control",
        name => name.copied().unwrap_or_default(),
    }
}

/// A queue, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueView {
    /// Its VC on the outgoing link.
    pub vc: Vc,
    /// Class: see [`OutputPort::class_name`].
    pub class: &'static str,
    /// Its weight; `None` where weights have no meaning.
    pub weight: Option<u16>,
    /// Its minimum rate in the timed part of a schedule by weight, cells/s; 0 without one.
    pub least: u32,
    /// The shaped path that it is in.
    pub path: Option<u16>,
    /// True if its own contract shapes it.
    pub shaped: bool,
    /// True if it discards whole frames.
    pub frame_discard: bool,
    /// Cells that wait.
    pub waiting: u32,
    /// Largest number of cells that waited at a time.
    pub peak: u32,
    /// Its bounds.
    pub limits: Limits,
    /// Cells in, out and dropped.
    pub counters: CellCounters,
    /// Cells that got the mark of congestion.
    pub marked: u64,
}

impl OutputPort {
    /// Counters of a queue.
    #[must_use]
    pub fn counters(&self, id: QueueId) -> Option<CellCounters> {
        self.queue(id).map(VcQueue::counters)
    }

    /// Counters of the port: the sum over all open and closed queues.
    #[must_use]
    pub fn totals(&self) -> CellCounters {
        let mut totals = self.closed;
        for (_, queue) in &self.queues {
            totals.merge(&queue.counters());
        }
        totals
    }

    /// Class of a queue: `cbr`, `rt-vbr`, `nrt-vbr`, `abr` (GFR too) or `ubr`, or `control` for signalling and ILMI.
    #[must_use]
    pub fn class_name(&self, id: QueueId) -> Option<&'static str> {
        self.queue(id).map(class_of)
    }

    /// Sending time that a shaped queue lost because the driver was late
    /// ([`Shaper::lost`](crate::atm::shaper::Shaper::lost)); `None` if the queue has no shaper of its own.
    #[must_use]
    pub fn lost_time(&self, id: QueueId) -> Option<Duration> {
        Some(self.queue(id)?.shaper.as_ref()?.lost())
    }

    /// The PDUs with cells that wait here.
    pub fn pdus(&self) -> impl Iterator<Item = &Pdu> {
        let departed = self.departed.iter().filter_map(|gone| gone.run.pdu());
        let queues = self.queues.iter().map(|(_, one)| one);
        let waiting = queues.flat_map(|queue| queue.waiting_pdus(&self.runs));
        waiting.chain(departed)
    }

    /// All open queues.
    pub fn views(&self) -> impl Iterator<Item = QueueView> {
        self.queues.iter().map(|(_, queue)| {
            let share = queue.share.as_deref();
            let path = share.and_then(|share| self.paths.get(share.path as usize));
            QueueView {
                vc: queue.vc,
                class: class_of(queue),
                weight: share
                    .map(|share| share.weight)
                    .filter(|_| self.schedule.weighs()),
                least: share
                    .filter(|_| self.schedule.weighs())
                    .map_or(0, |share| share.least_rate),
                path: path.and_then(|path| match path.key {
                    PathKey::Vpi(vpi) => Some(vpi),
                    PathKey::RateQueue(_) => None,
                }),
                shaped: queue.shaper.is_some(),
                frame_discard: queue.frame_discard,
                waiting: queue.cells,
                peak: queue.peak,
                limits: queue.limits,
                counters: queue.counters(),
                marked: queue.marked,
            }
        })
    }

    /// The levels of the two buffers, in cells, and their bounds: guaranteed traffic, best effort.
    #[must_use]
    pub const fn buffers(&self) -> [(u32, Limits); 2] {
        let PortLimits {
            guaranteed,
            best_effort,
            ..
        } = self.limits;
        [(self.pools[0], guaranteed), (self.pools[1], best_effort)]
    }
}
