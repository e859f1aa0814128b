//! Octets that an end has received, and when: the clock of the receiver, which the report's throughput goes by.

use super::Atp;
use crate::{Duration, Instant};
use aerostat_wire::atp::HEADER_LEN;

/// Octets of messages, and the time that they took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Messages.
    pub messages: u64,
    /// Their octets.
    pub octets: u64,
    /// Sent: from the first message given to the last acknowledgement. Received: from the first packet to the last
    /// packet of the last complete message.
    pub time: Duration,
    /// Received: octets of the first packet, which came before that time.
    pub before: u64,
}

impl Amount {
    /// Received: octets a second without those of the first packet, over [`Self::time`], Mbit/s; `None` for a single
    /// packet. Source: the report divides the octets by the time at the receiver.
    #[must_use]
    pub fn mbps(&self) -> Option<f64> {
        let seconds = self.time.as_secs_f64();
        let octets = self.octets.saturating_sub(self.before);
        (seconds > 0.0).then(|| octets as f64 * 8.0 / seconds / 1e6)
    }
}

/// The octets of a message of test programs: each end can tell whether what came is what was sent.
pub fn pattern(octets: usize) -> impl Iterator<Item = u8> {
    (0..octets).map(|i| 0x20 + (i % 95) as u8)
}

/// Measures what an end receives. The driver of the machine tells of SDUs and of complete messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    /// When the first packet came.
    came: Option<Instant>,
    received: Amount,
}

impl Meter {
    /// The machine has handled an SDU of this many octets.
    pub fn sdu(&mut self, machine: &Atp, octets: usize, now: Instant) {
        let is_data = octets > HEADER_LEN && machine.counters().packets_received > 0;
        if self.came.is_none() && is_data {
            self.came = Some(now);
            self.received.before = octets.saturating_sub(HEADER_LEN) as u64;
        }
    }
    /// A message of this many octets is complete.
    pub fn message(&mut self, octets: u64, now: Instant) {
        self.received.messages += 1;
        self.received.octets += octets;
        self.received.time = now.since(self.came.unwrap_or(now));
    }
    /// Amount received.
    #[must_use]
    pub const fn received(&self) -> Amount {
        self.received
    }
}
