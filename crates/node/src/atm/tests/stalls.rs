//! Shaping by a driver that comes late: what leaves conforms by the driver's clock, and what a stall costs is counted.
//!
//! The driver's clock is a number here, so nothing depends on the time that a test takes.

use super::*;
use crate::atm::police::{Policer, Policing, Verdict};
use crate::atm::shaper::{LATE_CDVT, Shaper};

/// PCR of 2, 25.4, 35, 100 and 149 Mb/s of cells, in cells/s.
const RATES: [u32; 5] = [4716, 59_905, 82_547, 235_849, 351_415];

fn cbr(pcr: u32, cdvt_us: u32) -> TrafficParams {
    TrafficParams {
        category: Some(ServiceCategory::Cbr),
        max_pcr: Some(pcr),
        max_cdv: Duration::from_micros(cdvt_us.into()),
        ..TrafficParams::none()
    }
}

fn vbr() -> TrafficParams {
    TrafficParams {
        category: Some(ServiceCategory::NrtVbr),
        max_pcr: Some(100_000),
        scr: 20_000,
        mbs: 50,
        ..TrafficParams::none()
    }
}

/// The tolerance of the contracts here that give none, less what a turn may be early.
const CREDIT: Duration = Duration::from_micros(950);

/// A port with one shaped VC, and a policer that sees its cells when the driver hands them over.
struct Late {
    port: OutputPort,
    queue: QueueId,
    policer: Policer,
    sent: u64,
    refused: u64,
}

impl Late {
    fn new(traffic: &TrafficParams) -> Self {
        let mut port = OutputPort::new(CellRate::OC3, PortLimits::HOST);
        let queue = port.open(vc(100), QueueConfig::host(*traffic)).unwrap();
        Self {
            port,
            queue,
            policer: Policer::new(traffic, Policing::Guaranteed, LATE_CDVT).unwrap(),
            sent: 0,
            refused: 0,
        }
    }

    /// The queue never runs empty.
    fn fill(&mut self, now: Instant) {
        while self.port.queued(self.queue) < 4000 {
            let cells = CellRun::whole(pdu(9180), vc(100));
            self.port.enqueue(self.queue, cells, now);
        }
    }

    /// The driver comes at `clock`, and handles each departure that was due at its own time.
    fn come(&mut self, clock: Instant) {
        while let Some(due) = self.port.next_departure().filter(|due| *due <= clock) {
            self.port.set_clock(clock);
            let gone = self.port.pop_turn(due, false).unwrap();
            for _ in 0..gone.run.count {
                let passes = self.policer.police(false, clock, 0) == Verdict::Pass;
                self.refused += u64::from(!passes);
            }
            self.sent += u64::from(gone.run.count);
        }
    }

    fn lost(&self) -> u64 {
        self.port.lost_time(self.queue).unwrap().as_nanos() as u64
    }

    /// One more departure, by a punctual driver: the loss of the last stall counts then.
    fn settle(&mut self) {
        let next = self.port.next_departure().unwrap();
        self.come(next);
    }
}

/// A driver that is late once, by `stall`. It loses the stall less the credit, and no more leaves at once than the
/// credit, a turn, and the cell that was due.
#[test]
fn a_stall_costs_its_time_but_for_the_credit() {
    for (pcr, stall_us) in RATES
        .into_iter()
        .flat_map(|pcr| [100, 900, 950, 3000, 30_000, 400_000].map(|stall| (pcr, stall)))
    {
        let mut late = Late::new(&cbr(pcr, 0));
        let stall = Duration::from_micros(stall_us);
        late.fill(Instant::ZERO);
        (0..100).for_each(|_| late.settle());
        let (due, before) = (late.port.next_departure().unwrap(), late.sent);
        late.fill(due);
        late.come(due + stall);
        let burst = CellRate::of_cells(pcr).cells_in(LATE_CDVT) + 2;
        assert!(late.sent - before <= burst, "{pcr} cells/s, {stall:?}");
        late.settle();
        let expected = stall.saturating_sub(CREDIT).as_nanos() as u64;
        assert!(
            late.lost().abs_diff(expected) <= 1,
            "{pcr}, {stall:?}: {}",
            late.lost()
        );
        assert_eq!(late.refused, 0, "{pcr} cells/s, {stall:?}");
    }
}

/// A contract's own tolerance bounds the credit, and a turn: half of a tolerance that is shorter than two turns.
#[test]
fn the_tolerance_of_the_contract_bounds_the_credit() {
    for (cdvt_us, early, credit) in [(250, 50, 200), (60, 30, 30), (5000, 50, 4950)] {
        let mut late = Late::new(&cbr(100_000, cdvt_us));
        let stall = Duration::from_millis(20);
        late.fill(Instant::ZERO);
        (0..100).for_each(|_| late.settle());
        let due = late.port.next_departure().unwrap();
        late.come(due + stall);
        late.settle();
        let expected = stall - Duration::from_micros(credit);
        assert!(late.lost().abs_diff(expected.as_nanos() as u64) <= 1);
        let shaper = Shaper::new(&cbr(100_000, cdvt_us)).unwrap();
        assert_eq!(shaper.early(), Duration::from_micros(early));
        assert_eq!(late.refused, 0);
    }
}

/// The burst tolerance is a credit of the contract: a stall that is not longer costs VBR nothing.
#[test]
fn a_stall_within_the_burst_tolerance_costs_vbr_nothing() {
    // (MBS - 1)(1/SCR - 1/PCR) = 49 * 40 us.
    let credit = Duration::from_micros(1960) + CREDIT;
    for (stall_us, lost) in [(1000, false), (1900, false), (50_000, true)] {
        let mut late = Late::new(&vbr());
        let stall = Duration::from_micros(stall_us);
        late.fill(Instant::ZERO);
        (0..500).for_each(|_| late.settle());
        let due = late.port.next_departure().unwrap();
        late.come(due + stall);
        late.settle();
        let expected = if lost {
            (stall - credit).as_nanos() as u64
        } else {
            0
        };
        assert!(
            late.lost().abs_diff(expected) <= 2,
            "{stall:?}: {}",
            late.lost()
        );
        assert_eq!(late.refused, 0, "{stall:?}");
    }
}

/// A VC that has nothing to send when its driver is late loses nothing.
#[test]
fn an_idle_vc_loses_nothing() {
    let mut late = Late::new(&cbr(10_000, 0));
    for second in 1..20 {
        let now = Instant::from_secs(second);
        late.port
            .enqueue(late.queue, CellRun::whole(pdu(40), vc(100)), now);
        late.come(now + Duration::from_millis(200));
    }
    assert_eq!((late.sent, late.refused, late.lost()), (19, 0, 0));
}

/// The clock of a punctual driver, as in virtual time, is that of the network: the counter stays 0.
#[test]
fn a_punctual_driver_loses_nothing() {
    let mut late = Late::new(&cbr(100_000, 20));
    late.fill(Instant::ZERO);
    (0..3000).for_each(|_| late.settle());
    assert_eq!((late.refused, late.lost()), (0, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// However late the driver comes: what leaves conforms by its clock, and the cells that left and the time that was
    /// lost make up the time that has passed.
    #[test]
    fn whatever_the_driver_does_cells_conform_and_the_loss_is_counted(
        rate in 0_usize..RATES.len(),
        cdvt_us in prop_oneof![Just(0_u32), Just(1), 2_u32..2000],
        gaps in proptest::collection::vec(prop_oneof![
            8 => 0_u64..60_000,
            2 => 60_000_u64..3_000_000,
            1 => 3_000_000_u64..80_000_000,
        ], 1..60),
    ) {
        let pcr = RATES[rate];
        let mut late = Late::new(&cbr(pcr, cdvt_us));
        let mut clock = Instant::from_nanos(12_345);
        let began = clock;
        late.fill(clock);
        for gap in &gaps {
            clock += Duration::from_nanos(*gap);
            late.come(clock);
            late.fill(clock);
        }
        late.settle();
        prop_assert_eq!(late.refused, 0);
        let next = late.port.next_departure().unwrap();
        let time = CellRate::of_cells(pcr).time_of(late.sent).as_nanos() as u64 + late.lost();
        // A fraction of a nanosecond for each stall.
        let error = next.since(began).as_nanos() as u64;
        prop_assert!(error.abs_diff(time) <= 3 + 2 * gaps.len() as u64, "{error} {time}");
    }

    /// The same for both buckets of VBR.
    #[test]
    fn vbr_conforms_whatever_the_driver_does(
        gaps in proptest::collection::vec(0_u64..5_000_000, 1..80),
    ) {
        let mut late = Late::new(&vbr());
        let mut clock = Instant::ZERO;
        for gap in gaps {
            clock += Duration::from_nanos(gap);
            late.fill(clock);
            late.come(clock);
        }
        prop_assert_eq!(late.refused, 0);
    }
}
