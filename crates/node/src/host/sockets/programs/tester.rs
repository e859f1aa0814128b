//! A cell tester: it sends test cells on a permanent connection, and measures those that arrive, after ITU-T O.191.
//!
//! **Outcomes** (ITU-T I.356 §5). Each cell that arrives is one of these:
//!
//! - *errored*: its CRC is wrong. It stands for the cell that was expected.
//! - *misinserted*: a cell that no tester has sent, or one whose number is behind the expected number, or 65536 or more
//!   ahead of it.
//! - otherwise *received*. The numbers between the expected one and its own are *lost* cells.
//!
//! Cells of a connection do not overtake each other, so a smaller number is no late cell. After 8 such cells with
//! consecutive numbers the receiver follows them: the sender has begun again. These 8 are received then.
//!
//! Cells that are lost behind the last received cell are not seen here; the accounts of programs have them.
//!
//! **Times.** A cell has the time at which its program wrote it, in units of 10 ns. The transfer delay includes the
//! wait in the sender's adapter. Clocks of hosts count: a delay below 0 counts as 0. The 1-point cell delay variation
//! (I.356 §6.5.1) compares the arrivals with the peak cell rate of the contract: a reference time goes on by one cell
//! interval with each cell, and begins again with a cell that comes behind it; how early cells come is recorded.
//!
//! **Standards.** ITU-T O.191 (02/2000) and I.356 (03/2000), from memory. **Not implemented**: severely errored cell
//! blocks, traffic profiles other than constant rate, calls.

use crate::distribution::{Distribution, Summary};
use aerostat_proto::{Duration, Instant};
use aerostat_wire::Vc;
use aerostat_wire::aal0::UserCell;
use aerostat_wire::cell::{PAYLOAD_LEN, Pti};
use aerostat_wire::test_cell::{NoTestCell, TestCell};

/// Cells ahead of the expected one at which a number is not believed.
const FAR: u32 = 1 << 16;
/// Cells with consecutive numbers after which the receiver follows them.
const FOLLOWED: u32 = 8;
/// Nanoseconds of a unit of time stamps.
const UNIT: u64 = 10;

/// Measurements of a tester.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Cells that came in order and undamaged.
    pub received: u64,
    /// Cells that came damaged.
    pub errored: u64,
    /// Cells that did not come.
    pub lost: u64,
    /// Cells that came and were not sent here, or not at this place.
    pub misinserted: u64,
    /// Times that the sender began again.
    pub restarts: u64,
    /// Time from the first to the last cell.
    pub time: Duration,
    /// Transfer delay.
    pub delay: Summary,
    /// How early cells came by the peak cell rate; `None` without such a rate.
    pub early: Option<Summary>,
}

impl Measured {
    /// Cell loss ratio: lost / (received + errored + lost); `None` without cells. Source: I.356 §6.1.
    #[must_use]
    pub fn loss_ratio(&self) -> Option<f64> {
        ratio(self.lost, self.received + self.errored + self.lost)
    }
    /// Cell error ratio: errored / (received + errored); `None` without cells. Source: I.356 §6.2.
    #[must_use]
    pub fn error_ratio(&self) -> Option<f64> {
        ratio(self.errored, self.received + self.errored)
    }
    /// Cell misinsertion rate, cells/s; `None` without time. Source: I.356 §6.3.
    #[must_use]
    pub fn misinsertion_rate(&self) -> Option<f64> {
        let seconds = self.time.as_secs_f64();
        (seconds > 0.0).then(|| self.misinserted as f64 / seconds)
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Both sides of a tester.
#[derive(Debug, Default)]
pub(super) struct Tester {
    next: u32,
    expected: u32,
    /// The number after the last misinserted cell, and how many such numbers followed each other.
    other: (u32, u32),
    counts: Measured,
    delay: Distribution,
    /// Peak cell rate, cells/s.
    rate: Option<u32>,
    /// A cell that came on time or late, and the cells since then with that cell: the next one is due so many intervals
    /// after it.
    reference: Option<(Instant, u64)>,
    early: Distribution,
    first: Option<Instant>,
}

impl Tester {
    /// A tester on a connection that receives cells at `rate` cells/s at most; `None`: at any rate.
    pub(super) fn new(rate: Option<u32>) -> Self {
        Self {
            rate: rate.filter(|rate| *rate > 0),
            ..Self::default()
        }
    }

    /// The next cell to send, as an SDU. It is the end of a PDU, so early discard treats each cell by itself.
    pub(super) fn cell(&mut self, vc: Vc, now: Instant) -> Vec<u8> {
        let cell = TestCell {
            sequence: self.next,
            stamp: stamp(now),
        };
        self.next = self.next.wrapping_add(1);
        let user = UserCell {
            pti: Pti::user(true),
            clp: false,
            payload: cell.encode(),
        };
        user.encode(vc).to_vec()
    }

    /// A cell has arrived.
    pub(super) fn arrived(&mut self, payload: &[u8; PAYLOAD_LEN], now: Instant) {
        let first = *self.first.get_or_insert(now);
        self.counts.time = now.since(first);
        match TestCell::decode(payload) {
            Err(NoTestCell::Damaged) => {
                self.counts.errored += 1;
                self.expected = self.expected.wrapping_add(1);
                self.on_time(now);
            }
            Err(NoTestCell::Foreign) => self.counts.misinserted += 1,
            Ok(cell) => self.numbered(cell, now),
        }
    }

    fn numbered(&mut self, cell: TestCell, now: Instant) {
        let ahead = cell.sequence.wrapping_sub(self.expected);
        if ahead >= FAR {
            return self.elsewhere(cell, now);
        }
        self.counts.lost += u64::from(ahead);
        self.take(cell, now);
    }

    fn take(&mut self, cell: TestCell, now: Instant) {
        self.counts.received += 1;
        self.expected = cell.sequence.wrapping_add(1);
        self.other.1 = 0;
        let units = stamp(now).wrapping_sub(cell.stamp);
        // The clock of the sender may be ahead.
        let units = if units > u32::MAX / 2 { 0 } else { units };
        self.delay
            .record(Duration::from_nanos(u64::from(units) * UNIT));
        self.on_time(now);
    }

    /// A cell with a number that does not fit.
    fn elsewhere(&mut self, cell: TestCell, now: Instant) {
        let (next, followed) = self.other;
        let followed = if followed > 0 && cell.sequence == next {
            followed + 1
        } else {
            1
        };
        self.counts.misinserted += 1;
        self.other = (cell.sequence.wrapping_add(1), followed);
        if followed == FOLLOWED {
            self.counts.misinserted -= u64::from(FOLLOWED);
            // This cell is the last one of them; the delays of the others are not recorded.
            self.counts.received += u64::from(FOLLOWED - 1);
            self.counts.restarts += 1;
            self.take(cell, now);
        }
    }

    /// Compares an arrival with the peak cell rate.
    fn on_time(&mut self, now: Instant) {
        let Some(rate) = self.rate else {
            return;
        };
        let (since, cells) = self.reference.unwrap_or((now, 0));
        let after = u128::from(cells) * 1_000_000_000 / u128::from(rate);
        let due = since + Duration::from_nanos(u64::try_from(after).unwrap_or(u64::MAX));
        self.early.record(due.since(now));
        self.reference = Some(match due > now {
            true => (since, cells + 1),
            false => (now, 1),
        });
    }

    pub(super) fn measured(&self) -> Measured {
        Measured {
            delay: self.delay.summary(),
            early: self.rate.map(|_| self.early.summary()),
            ..self.counts
        }
    }
}

/// A time in the units of a cell.
fn stamp(now: Instant) -> u32 {
    (now.as_nanos() / UNIT) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    /// Sends `cells` cells 10 µs apart; `fate` says what becomes of each on its way of 30 µs.
    fn run(cells: u32, pcr: u32, fate: impl Fn(u32) -> Fate) -> Measured {
        let (mut near, mut far) = (Tester::new(None), Tester::new(Some(pcr)));
        for number in 0..cells {
            let sent = at(u64::from(number) * 10);
            let sdu = near.cell(Vc::new(0, 100), sent);
            let mut payload = UserCell::decode(&sdu).unwrap().payload;
            let arrives = sent + Duration::from_micros(30);
            match fate(number) {
                Fate::Arrives => far.arrived(&payload, arrives),
                Fate::Late(by) => far.arrived(&payload, arrives + Duration::from_micros(by)),
                Fate::Lost => {}
                Fate::Damaged => {
                    payload[20] ^= 1;
                    far.arrived(&payload, arrives);
                }
                Fate::Twice => {
                    far.arrived(&payload, arrives);
                    far.arrived(&payload, arrives);
                }
            }
        }
        far.measured()
    }

    enum Fate {
        Arrives,
        Late(u64),
        Lost,
        Damaged,
        Twice,
    }

    #[test]
    fn each_outcome_is_counted_once() {
        let all = run(1000, 0, |_| Fate::Arrives);
        assert_eq!(
            (all.received, all.lost, all.errored, all.misinserted),
            (1000, 0, 0, 0)
        );
        assert_eq!((all.delay.min_us, all.delay.max_us), (30.0, 30.0));
        assert_eq!((all.loss_ratio(), all.early), (Some(0.0), None));
        let some = run(1000, 0, |number| match number {
            100..110 => Fate::Lost,
            200 | 202 => Fate::Damaged,
            300 => Fate::Twice,
            _ => Fate::Arrives,
        });
        assert_eq!(
            (some.received, some.lost, some.errored, some.misinserted),
            (988, 10, 2, 1)
        );
        assert_eq!(some.loss_ratio(), Some(0.01));
        assert_eq!(some.error_ratio(), Some(2.0 / 990.0));
        // One cell in 9.99 ms.
        assert!((some.misinsertion_rate().unwrap() - 1.0 / 0.00999).abs() < 1e-6);
        assert_eq!(Measured::default().loss_ratio(), None);
    }

    #[test]
    fn a_sender_that_begins_again_is_followed() {
        let mut far = Tester::new(None);
        for life in 0..2 {
            let mut near = Tester::new(None);
            for number in 0..500 {
                let now = at(life * 10_000 + number * 10);
                let sdu = near.cell(Vc::new(0, 100), now);
                far.arrived(&UserCell::decode(&sdu).unwrap().payload, now);
            }
        }
        let seen = far.measured();
        assert_eq!(
            (seen.received, seen.lost, seen.misinserted, seen.restarts),
            (1000, 0, 0, 1)
        );
    }

    /// Cells come every 10 µs, and one of them 7 µs late: the next one is 7 µs early.
    #[test]
    fn early_cells_by_the_peak_cell_rate() {
        let steady = run(100, 100_000, |_| Fate::Arrives).early.unwrap();
        assert_eq!((steady.count, steady.max_us), (100, 0.0));
        let late = run(100, 100_000, |number| match number {
            50 => Fate::Late(7),
            _ => Fate::Arrives,
        });
        assert_eq!(late.early.unwrap().max_us, 7.0);
        assert_eq!(late.delay.max_us - late.delay.min_us, 7.0);
    }

    proptest! {
        /// Whatever is lost or damaged before the end is counted exactly.
        #[test]
        fn the_counts_add_up(fates in prop::collection::vec(0_u8..6, 1..400)) {
            let of = |number: u32| match fates[number as usize] {
                0 => Fate::Lost,
                1 => Fate::Damaged,
                _ => Fate::Arrives,
            };
            let seen = run(fates.len() as u32, 0, of);
            let count = |fate: u8| fates.iter().filter(|f| **f == fate).count() as u64;
            // Lost cells are seen when a later undamaged one comes.
            let last = fates.iter().rposition(|fate| *fate > 1).map_or(0, |at| at + 1);
            let before = &fates[..last];
            let lost = before.iter().filter(|fate| **fate == 0).count() as u64;
            prop_assert_eq!(seen.errored, count(1));
            prop_assert_eq!(seen.received, fates.iter().filter(|fate| **fate > 1).count() as u64);
            prop_assert_eq!((seen.lost, seen.misinserted), (lost, 0));
        }

        #[test]
        fn any_payloads(payloads in prop::collection::vec(prop::array::uniform32(any::<u8>()), 0..50)) {
            let mut tester = Tester::new(Some(1000));
            for (number, half) in payloads.iter().enumerate() {
                let mut payload = [0; PAYLOAD_LEN];
                payload[..32].copy_from_slice(half);
                tester.arrived(&payload, at(number as u64));
            }
            let seen = tester.measured();
            prop_assert_eq!(seen.received + seen.errored + seen.misinserted, payloads.len() as u64);
        }
    }
}
