//! The forwarding engine: one packet at a time at a given rate; the others wait in a drop-tail queue.

use super::Origin;
use crate::ip::neighbours::Waiting;
use crate::ip::packet::ETHERNET_HEADER;
use aerostat_proto::{Duration, Instant, Refused};
use std::collections::VecDeque;

/// Limit of frames in a queue, whatever the lab says.
const MAX_QUEUE: usize = 1 << 20;

/// How fast a router forwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forwarding {
    /// Without delay.
    #[default]
    Wire,
    /// At this many bits of IP packets per second.
    BitsPerSecond(u64),
}

/// A packet on its way through the router, with room for an Ethernet header in front.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) frame: Vec<u8>,
    pub(super) origin: Origin,
}

impl Waiting for Job {
    fn octets(&self) -> usize {
        self.frame.len()
    }
}

/// The engine, see the documentation of this module.
#[derive(Debug)]
pub(super) struct Engine {
    /// Bit/s; `None` means without delay.
    rate: Option<u64>,
    limit: usize,
    /// The first job is being forwarded; the others wait.
    jobs: VecDeque<Job>,
    /// When the first job will have been forwarded.
    through: Instant,
    /// The remainder of nanoseconds × rate from rounding down the time of the last packet.
    remainder: u64,
}

impl Engine {
    pub(super) fn new(forwarding: Forwarding, limit: usize) -> Result<Self, Refused> {
        let rate = match forwarding {
            Forwarding::Wire => None,
            Forwarding::BitsPerSecond(0) => return Err(Refused("a forwarding rate is not 0")),
            Forwarding::BitsPerSecond(rate) => Some(rate),
        };
        if limit > MAX_QUEUE {
            return Err(Refused("a forwarding queue holds at most 1048576 frames"));
        }
        let (through, jobs) = (Instant::ZERO, VecDeque::new());
        Ok(Self {
            rate,
            limit,
            jobs,
            through,
            remainder: 0,
        })
    }

    /// Takes a packet; returns it if the queue is full.
    pub(super) fn offer(&mut self, job: Job, now: Instant) -> Result<(), Job> {
        // The packet that is being forwarded does not count as waiting.
        if self.rate.is_some() && self.jobs.len() > self.limit {
            return Err(job);
        }
        self.jobs.push_back(job);
        if self.jobs.len() == 1 {
            self.remainder = 0;
            self.begin(now);
        }
        Ok(())
    }

    /// Starts the first job. The fraction of a nanosecond that rounding removes from one packet is added to the next,
    /// so that a busy engine keeps its rate exactly.
    fn begin(&mut self, at: Instant) {
        self.through = at;
        if let (Some(rate), Some(job)) = (self.rate, self.jobs.front()) {
            let bits = (job.frame.len() - ETHERNET_HEADER) as u128 * 8;
            let scaled = bits * 1_000_000_000 + u128::from(self.remainder);
            // The remainder is below the rate, which has 64 bits.
            self.remainder = (scaled % u128::from(rate)) as u64;
            let ns = u64::try_from(scaled / u128::from(rate)).unwrap_or(u64::MAX);
            self.through = at + Duration::from_nanos(ns);
        }
    }

    /// The next packet whose forwarding is complete by `now`.
    pub(super) fn take(&mut self, now: Instant) -> Option<Job> {
        if self.through > now {
            return None;
        }
        let job = self.jobs.pop_front()?;
        // The next packet began when this one was complete, even if the driver is late.
        self.begin(self.through);
        Some(job)
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        (!self.jobs.is_empty()).then_some(self.through)
    }

    /// All packets in the engine.
    pub(super) fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.jobs.iter()
    }

    /// Packets that wait behind the one being forwarded.
    pub(super) fn waiting(&self) -> usize {
        self.jobs.len().saturating_sub(1)
    }
}
