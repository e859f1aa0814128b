//! Configuration of a port and of its queues, and the class of a queue.

use crate::atm::queue::Limits;
use aerostat_wire::{ServiceCategory, TrafficParams};

/// Sizes of a port's buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortLimits {
    /// All CBR and VBR queues together.
    pub guaranteed: Limits,
    /// All ABR, GFR and UBR queues together.
    pub best_effort: Limits,
    /// Each CBR and VBR queue.
    pub guaranteed_vc: Limits,
    /// Each ABR, GFR and UBR queue.
    pub best_effort_vc: Limits,
    /// Limit of queues.
    pub queues: usize,
}

impl PortLimits {
    /// A switch port: 8192 cells for best effort, 1024 for guaranteed traffic.
    pub const SWITCH: Self = Self {
        guaranteed: Limits::plain(1024),
        best_effort: Limits::of(8192),
        guaranteed_vc: Limits::plain(512),
        best_effort_vc: Limits::of(4096),
        queues: 16384,
    };
    /// A host's adapter: memory is cheap there, and senders see the queue. The labels bound the number of queues.
    pub const HOST: Self = Self {
        guaranteed: Limits::of(16384),
        best_effort: Limits::of(32768),
        guaranteed_vc: Limits::of(8192),
        best_effort_vc: Limits::of(16384),
        queues: 65_536,
    };
}

/// Configuration of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// The traffic contract: class of service and, if shaped, rates.
    pub traffic: TrafficParams,
    /// True to delay cells to the contract's rates.
    pub shaped: bool,
    /// True to discard whole frames (AAL5 VCs only).
    pub frame_discard: bool,
    /// True if the queue serves a whole path: cells keep their VCI.
    pub whole_path: bool,
    /// Bounds; those of the port if `None`.
    pub limits: Option<Limits>,
    /// Share of what the discipline by weight has left, 1 to [`MAX_WEIGHT`](super::MAX_WEIGHT).
    pub weight: u16,
    /// The rate queue that shapes it with others ([`PathKey::RateQueue`](super::PathKey::RateQueue)), instead of
    /// `shaped`.
    pub rate_queue: Option<u16>,
}

impl QueueConfig {
    /// A VC at a switch: frame discard as the contract says, or else for best effort; no shaping.
    #[must_use]
    pub fn switch(traffic: TrafficParams) -> Self {
        Self {
            traffic,
            shaped: false,
            frame_discard: traffic.discards_frames(),
            whole_path: false,
            limits: None,
            weight: 1,
            rate_queue: None,
        }
    }
    /// An AAL5 VC at a host: shaped, whole frames only.
    #[must_use]
    pub const fn host(traffic: TrafficParams) -> Self {
        Self {
            traffic,
            shaped: true,
            frame_discard: true,
            whole_path: false,
            limits: None,
            weight: 1,
            rate_queue: None,
        }
    }
}

pub(super) fn is_guaranteed(traffic: &TrafficParams) -> bool {
    class_of(traffic) < 3
}

pub(super) const CLASSES: usize = 5;

/// Names of the classes, in order of service.
pub(super) const CLASS_NAMES: [&str; CLASSES] = ["cbr", "rt-vbr", "nrt-vbr", "abr", "ubr"];

pub(super) fn class_of(traffic: &TrafficParams) -> u8 {
    match traffic.category {
        Some(ServiceCategory::Cbr) => 0,
        Some(ServiceCategory::RtVbr) => 1,
        Some(ServiceCategory::NrtVbr) => 2,
        Some(ServiceCategory::Abr | ServiceCategory::Gfr) => 3,
        Some(ServiceCategory::Ubr) | None => 4,
    }
}
