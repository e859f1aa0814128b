//! One server of a queue: a router's engine, a host's CPU, the receive path of an adapter. The server works on one
//! packet at a time, and each packet occupies it for a known time. [`Queues`] are what waits for a server.

mod queues;

pub use queues::{Order, Owned, Queues, Waits};

use aerostat_proto::{Duration, Instant};

const NANOS: u128 = 1_000_000_000;
/// Picoseconds of a second.
const PICOS: u64 = 1_000_000_000_000;

/// How long a packet occupies a server: a part for each packet, and a part for each of its octets. Which octets count
/// is said where the cost is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Picoseconds per packet, at most [`Self::MOST`].
    pub packet: u64,
    /// Picoseconds per octet, at most [`Self::MOST`].
    pub octet: u64,
}

impl Cost {
    /// Largest part of a cost: 10 s, in picoseconds.
    pub const MOST: u64 = 10 * PICOS;
    /// Without any cost.
    pub const NOTHING: Self = Self {
        packet: 0,
        octet: 0,
    };

    /// True if packets cost no time.
    #[must_use]
    pub const fn is_nothing(self) -> bool {
        self.packet == 0 && self.octet == 0
    }

    /// Picoseconds for a packet of this size.
    #[must_use]
    pub fn picos(self, octets: usize) -> u128 {
        u128::from(self.packet) + u128::from(self.octet) * octets as u128
    }
}

/// The server. Its rate counts units of work: bits, packets, cells or picoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    /// Units of work per second, not 0.
    rate: u64,
    /// When the present packet will be through.
    through: Instant,
    /// The remainder of nanoseconds × rate from rounding down the time of the last packet.
    remainder: u64,
}

impl Server {
    /// An idle server that does this many units of work in a second; 0 counts as 1.
    #[must_use]
    pub const fn new(rate: u64) -> Self {
        Self {
            rate: if rate == 0 { 1 } else { rate },
            through: Instant::ZERO,
            remainder: 0,
        }
    }

    /// An idle server whose work is counted in picoseconds, as [`Cost`] does.
    #[must_use]
    pub const fn of_time() -> Self {
        Self::new(PICOS)
    }

    /// Begins a packet on an idle server; returns when the packet will be through.
    pub fn begin(&mut self, now: Instant, work: u128) -> Instant {
        self.remainder = 0;
        self.through = now;
        self.follow(work)
    }

    /// Begins a packet at the moment when the last one is through, even if the driver is late. The fraction of a
    /// nanosecond that rounding removes from one packet is added to the next, so that a busy server keeps its rate
    /// exactly.
    pub fn follow(&mut self, work: u128) -> Instant {
        let rate = u128::from(self.rate);
        let scaled = work * NANOS + u128::from(self.remainder);
        // The remainder is below the rate, which has 64 bits.
        self.remainder = (scaled % rate) as u64;
        let nanos = u64::try_from(scaled / rate).unwrap_or(u64::MAX);
        self.through += Duration::from_nanos(nanos);
        self.through
    }

    /// When the present packet is through, or the last one was.
    #[must_use]
    pub const fn through(&self) -> Instant {
        self.through
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_server_keeps_its_rate_exactly() {
        // 65 000 packets/s: a packet takes 15 384.6 ns, and 65 000 packets take a second.
        let mut server = Server::new(65_000);
        let first = server.begin(Instant::from_nanos(7), 1);
        assert_eq!(first, Instant::from_nanos(7 + 15_384));
        for _ in 1..65_000 {
            server.follow(1);
        }
        assert_eq!(server.through(), Instant::from_nanos(7 + 1_000_000_000));
    }

    #[test]
    fn a_cost_has_a_part_per_packet_and_a_part_per_octet() {
        let cost = Cost {
            packet: 80_700_000,
            octet: 78_000,
        };
        let mut server = Server::of_time();
        // 80.7 µs + 1500 × 78 ns.
        let through = server.begin(Instant::ZERO, cost.picos(1500));
        assert_eq!(through, Instant::from_nanos(197_700));
        assert!(Cost::NOTHING.is_nothing() && !cost.is_nothing());
    }
}
