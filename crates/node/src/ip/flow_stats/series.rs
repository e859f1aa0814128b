//! The packets of a flow one by one, as they arrived.

use crate::ip::meter::Path;
use aerostat_proto::Instant;

/// Limit of packets that are kept for a flow; further packets are counted.
pub const MAX_SERIES: usize = 100_000;

/// A packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The path by which it was sent.
    pub path: Path,
    /// Its number in the order of sending, from 0.
    pub number: u64,
    /// When it left the sender's stack.
    pub sent: Instant,
    /// When it reached the receiver's stack.
    pub received: Instant,
}

/// Packets in the order of their arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    /// At most [`MAX_SERIES`] packets.
    pub arrivals: Vec<Arrival>,
    /// Packets that arrived later and are not among them.
    pub left_out: u64,
}

/// A packet beside the one that arrived before it on the same path: what Figures 5.3 to 5.7 of the thesis have as
/// "delta time", at both ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delta {
    /// The path of both.
    pub path: Path,
    /// Number of the later one.
    pub number: u64,
    /// Time from the sending of the former to that of the later, µs; negative if they changed their order.
    pub sent_us: f64,
    /// Time from arrival to arrival, µs.
    pub received_us: f64,
}

impl Series {
    pub(super) fn take(&mut self, arrival: Arrival) {
        if self.arrivals.len() < MAX_SERIES {
            self.arrivals.push(arrival);
        } else {
            self.left_out += 1;
        }
    }
    /// Each packet beside the one before; a change of the path begins anew.
    pub fn deltas(&self) -> impl Iterator<Item = Delta> {
        let pairs = self.arrivals.iter().zip(self.arrivals.iter().skip(1));
        let pairs = pairs.filter(|(before, after)| before.path == after.path);
        pairs.map(|(before, after)| Delta {
            path: after.path,
            number: after.number,
            sent_us: signed_us(before.sent, after.sent),
            received_us: signed_us(before.received, after.received),
        })
    }
}

/// `to` minus `from`, µs.
fn signed_us(from: Instant, to: Instant) -> f64 {
    let us = |later: Instant, earlier: Instant| later.since(earlier).as_secs_f64() * 1e6;
    if to >= from {
        us(to, from)
    } else {
        -us(from, to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(path: Path, number: u64, sent_us: u64, received_us: u64) -> Arrival {
        Arrival {
            path,
            number,
            sent: Instant::from_nanos(sent_us * 1000),
            received: Instant::from_nanos(received_us * 1000),
        }
    }

    #[test]
    fn deltas_of_a_known_sequence() {
        let mut series = Series::default();
        // Number 2 is lost, 4 overtakes 3, and 5 goes another way.
        series.take(arrival(Path::Lane, 0, 0, 100));
        series.take(arrival(Path::Lane, 1, 76, 190));
        series.take(arrival(Path::Lane, 4, 10_000, 10_100));
        series.take(arrival(Path::Lane, 3, 228, 10_120));
        series.take(arrival(Path::Shortcut, 5, 10_076, 10_130));
        let deltas: Vec<_> = series.deltas().collect();
        let numbers: Vec<_> = deltas
            .iter()
            .map(|delta| (delta.number, delta.sent_us, delta.received_us))
            .collect();
        assert_eq!(
            numbers,
            [(1, 76.0, 90.0), (4, 9924.0, 9910.0), (3, -9772.0, 20.0)]
        );
        assert!(deltas.iter().all(|delta| delta.path == Path::Lane));
    }

    #[test]
    fn a_series_is_bounded_and_tells_what_it_left_out() {
        let mut series = Series::default();
        for number in 0..MAX_SERIES as u64 + 3 {
            series.take(arrival(Path::Lane, number, number, number));
        }
        assert_eq!((series.arrivals.len(), series.left_out), (MAX_SERIES, 3));
    }
}
