//! The forwarding engine: one packet at a time at a given rate; the others wait in a drop-tail queue.

use super::Origin;
use crate::ip::neighbours::Waiting;
use crate::ip::packet::ETHERNET_HEADER;
use crate::server::{Cost, Server};
use aerostat_proto::{Instant, Refused};
use std::collections::VecDeque;

/// Limit of packets in a queue, whatever the lab says, also of a queue in cells or octets.
const MAX_QUEUE: usize = 1 << 20;

/// How fast a router forwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forwarding {
    /// Without delay.
    #[default]
    Wire,
    /// At this many bits of IP packets per second.
    BitsPerSecond(u64),
    /// At this many packets per second.
    PacketsPerSecond(u64),
    /// At this many cells per second: those of the AAL5 PDU that carries the packet in LAN emulation.
    CellsPerSecond(u64),
    /// Each packet takes this time; its octets are those of the IP packet.
    Cost(Cost),
}

impl Forwarding {
    /// The server of this speed; `None` if forwarding costs no time.
    fn server(self) -> Result<Option<Server>, Refused> {
        Ok(match self {
            Self::Wire => None,
            Self::BitsPerSecond(0) | Self::PacketsPerSecond(0) | Self::CellsPerSecond(0) => {
                return Err(Refused("a forwarding rate is not 0"));
            }
            Self::BitsPerSecond(rate)
            | Self::PacketsPerSecond(rate)
            | Self::CellsPerSecond(rate) => Some(Server::new(rate)),
            Self::Cost(_) => Some(Server::of_time()),
        })
    }

    /// Cost of a packet, in the units of the server.
    fn work(self, job: &Job) -> u128 {
        match self {
            Self::Wire => 0,
            Self::BitsPerSecond(_) => job.octets() as u128 * 8,
            Self::PacketsPerSecond(_) => 1,
            Self::CellsPerSecond(_) => job.cells().into(),
            Self::Cost(cost) => cost.picos(job.octets()),
        }
    }
}

/// How much may wait for the engine; the packet that is being forwarded does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// Packets.
    Packets(usize),
    /// Cells, as [`Forwarding::CellsPerSecond`] counts them.
    Cells(u64),
    /// Octets of IP packets.
    Octets(u64),
}

impl QueueLimit {
    /// Room that a packet occupies in this queue.
    fn size(self, job: &Job) -> u64 {
        match self {
            Self::Packets(_) => 1,
            Self::Cells(_) => job.cells(),
            Self::Octets(_) => job.octets() as u64,
        }
    }

    const fn limit(self) -> u64 {
        match self {
            Self::Packets(packets) => packets as u64,
            Self::Cells(most) | Self::Octets(most) => most,
        }
    }
}

/// A packet on its way through the router, with room for an Ethernet header in front.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) frame: Vec<u8>,
    pub(super) origin: Origin,
}

/// Octets of the LAN emulation header, and of the AAL5 trailer: what a packet has around its frame in a PDU.
const AROUND: usize = 2 + 8;

impl Job {
    /// Octets of the IP packet.
    const fn octets(&self) -> usize {
        self.frame.len().saturating_sub(ETHERNET_HEADER)
    }

    /// Cells of the PDU of LAN emulation that carries the packet.
    const fn cells(&self) -> u64 {
        (self.frame.len() + AROUND).div_ceil(48) as u64
    }
}

impl Waiting for Job {
    fn octets(&self) -> usize {
        self.frame.len()
    }
}

/// The engine, see the documentation of this module.
#[derive(Debug)]
pub(super) struct Engine {
    forwarding: Forwarding,
    /// `None` means without delay.
    server: Option<Server>,
    limit: QueueLimit,
    /// The first job is being forwarded; the others wait.
    jobs: VecDeque<Job>,
    /// How much of the queue the waiting jobs occupy.
    occupied: u64,
    /// When the first job will have been forwarded.
    through: Instant,
}

impl Engine {
    pub(super) fn new(forwarding: Forwarding, limit: QueueLimit) -> Result<Self, Refused> {
        let server = forwarding.server()?;
        if matches!(limit, QueueLimit::Packets(packets) if packets > MAX_QUEUE) {
            return Err(Refused("a forwarding queue holds at most 1048576 frames"));
        }
        Ok(Self {
            forwarding,
            server,
            limit,
            jobs: VecDeque::new(),
            occupied: 0,
            through: Instant::ZERO,
        })
    }

    /// Takes a packet; returns it if the queue is full.
    pub(super) fn offer(&mut self, job: Job, now: Instant) -> Result<(), Job> {
        let Some(server) = self.server.as_mut().filter(|_| self.jobs.is_empty()) else {
            let size = self.limit.size(&job);
            let full = self.occupied + size > self.limit.limit() || self.jobs.len() > MAX_QUEUE;
            if self.server.is_some() && full {
                return Err(job);
            }
            if self.jobs.is_empty() {
                self.through = now;
            } else {
                self.occupied += size;
            }
            self.jobs.push_back(job);
            return Ok(());
        };
        self.through = server.begin(now, self.forwarding.work(&job));
        self.jobs.push_back(job);
        Ok(())
    }

    /// The next packet whose forwarding is complete by `now`.
    pub(super) fn take(&mut self, now: Instant) -> Option<Job> {
        if self.through > now {
            return None;
        }
        let job = self.jobs.pop_front()?;
        if let Some(next) = self.jobs.front() {
            self.occupied -= self.limit.size(next);
            // The next packet began when this one was complete, even if the driver is late.
            if let Some(server) = &mut self.server {
                self.through = server.follow(self.forwarding.work(next));
            }
        }
        Some(job)
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        (!self.jobs.is_empty()).then_some(self.through)
    }

    /// All packets in the engine.
    pub(super) fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.jobs.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(octets: usize) -> Job {
        Job {
            frame: vec![0; ETHERNET_HEADER + octets],
            origin: Origin::Own,
        }
    }

    /// Offers packets of these sizes at once; returns how many are taken, and when the last of them is through.
    fn burst(forwarding: Forwarding, queue: QueueLimit, sizes: &[usize]) -> (usize, u64) {
        let mut engine = Engine::new(forwarding, queue).expect("good");
        let now = Instant::from_nanos(1000);
        let taken = sizes.iter().map(|size| engine.offer(job(*size), now));
        let taken = taken.filter(Result::is_ok).count();
        let mut out = 0;
        let mut last = now;
        while let Some(at) = engine.deadline() {
            assert!(at >= last);
            last = at;
            out += usize::from(engine.take(at).is_some());
        }
        assert_eq!((out, engine.occupied), (taken, 0));
        (taken, last.as_nanos() - 1000)
    }

    #[test]
    fn a_queue_of_cells_or_octets_takes_fewer_large_packets_than_small_ones() {
        let rate = Forwarding::CellsPerSecond(104_000);
        // 1500 octets of IP are 32 cells: 14 packets wait beside the one that is being forwarded.
        let cells = QueueLimit::Cells(448);
        let (taken, nanos) = burst(rate, cells, &[1500; 40]);
        assert_eq!((taken, nanos), (15, 15 * 32 * 1_000_000_000 / 104_000));
        // 40 octets are 2 cells.
        let (taken, _) = burst(rate, cells, &[40; 400]);
        assert_eq!(taken, 225);
        let (taken, _) = burst(rate, QueueLimit::Octets(15_000), &[1500; 40]);
        assert_eq!(taken, 11);
        // A packet that is too large for the queue is dropped alone.
        let mixed = [40, 1500, 40, 40];
        assert_eq!(burst(rate, QueueLimit::Octets(100), &mixed).0, 3);
        assert_eq!(burst(rate, QueueLimit::Packets(2), &[1500; 40]).0, 3);
    }

    #[test]
    fn each_unit_of_a_rate_gives_its_own_time_per_packet() {
        let all = QueueLimit::Packets(100);
        let cost = Cost {
            packet: 80_000_000,
            octet: 80_000,
        };
        for (forwarding, nanos) in [
            (Forwarding::BitsPerSecond(12_000_000), 10 * 1_000_000),
            (Forwarding::PacketsPerSecond(5000), 10 * 200_000),
            (Forwarding::CellsPerSecond(32_000), 10 * 1_000_000),
            (Forwarding::Cost(cost), 10 * (80_000 + 120_000)),
        ] {
            assert_eq!(burst(forwarding, all, &[1500; 10]), (10, nanos));
        }
        assert_eq!(burst(Forwarding::Wire, all, &[1500; 300]), (300, 0));
        assert!(Engine::new(Forwarding::PacketsPerSecond(0), all).is_err());
    }

    /// Mean wait of an M/D/1 queue, in service times (Pollaczek and Khinchine).
    fn m_d_1(load: f64) -> f64 {
        load / (2.0 * (1.0 - load))
    }

    #[test]
    fn poisson_packets_wait_as_the_formula_for_m_d_1_says() {
        let all = QueueLimit::Packets(MAX_QUEUE);
        let cost = Cost {
            packet: 7_000_000,
            octet: 5000,
        };
        // A packet of 600 octets is 13 cells in LAN emulation, and takes 10 µs with each of these.
        for forwarding in [
            Forwarding::PacketsPerSecond(100_000),
            Forwarding::CellsPerSecond(1_300_000),
            Forwarding::BitsPerSecond(480_000_000),
            Forwarding::Cost(cost),
        ] {
            for load in [0.3, 0.5, 0.7] {
                let mut engine = Engine::new(forwarding, all).expect("good");
                let mut gaps = crate::random::stream(1, "r1", "m/d/1");
                let (mut now, mut waited, packets) = (0.0, 0.0, 60_000);
                for _ in 0..packets {
                    now += crate::random::exponential(&mut gaps) * 10_000.0 / load;
                    let at = Instant::from_nanos(now as u64);
                    while engine.take(at).is_some() {}
                    // The work before this packet: what is left of the first one, and the others.
                    if let Some(through) = engine.deadline() {
                        waited += (through - at).as_nanos() as f64;
                        waited += (engine.jobs().count() - 1) as f64 * 10_000.0;
                    }
                    assert!(engine.offer(job(600), at).is_ok());
                }
                let wait = waited / f64::from(packets) / 10_000.0;
                let error = wait / m_d_1(load) - 1.0;
                assert!(error.abs() < 0.06, "{forwarding:?} {load}: {wait}");
            }
        }
    }
}
