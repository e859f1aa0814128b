//! Policers and queues treat the cells of a PDU one by one, even if a driver moves them as one run.

use super::super::police::{DEFAULT_CDVT, Policer, Verdict, burst_tolerance};
use super::super::*;
use aerostat_proto::{Duration, Instant};
use aerostat_wire::{ServiceCategory, TrafficParams, Vc};
use proptest::prelude::*;

const FOREVER: Instant = Instant::from_secs(3600);
const IN: Vc = Vc::new(0, 100);

fn pdu(octets: usize) -> Pdu {
    Pdu::new(vec![7; octets])
}

fn vbr(pcr: u32, scr: u32, mbs: u32) -> TrafficParams {
    TrafficParams {
        category: Some(ServiceCategory::NrtVbr),
        scr,
        mbs,
        ..TrafficParams::cbr(pcr, 0)
    }
}

/// A switch that polices `traffic` from port 0 to port 1.
fn policed(traffic: TrafficParams, rate: CellRate) -> Fabric {
    let mut fabric = Fabric::new([9; 16]);
    for _ in 0..2 {
        fabric.add_port(rate, PortLimits::SWITCH);
    }
    let [from, to] = [0, 1].map(|port| PortVc::new(port, IN));
    let op = FabricOp::Connect {
        from,
        to,
        traffic,
        police: true.into(),
    };
    fabric.apply(op).unwrap();
    fabric
}

/// Cells received, and how many of these the policer dropped.
fn counts(fabric: &Fabric) -> (u64, u64) {
    let counters = fabric.connections().next().unwrap().counters;
    let policed = counters.dropped.of(DropReason::Policed);
    assert_eq!(counters.cells_in, counters.cells_out + policed);
    (counters.cells_in, policed)
}

/// The cells that passed, as departures of whole runs.
fn out(fabric: &mut Fabric) -> Vec<CellRun> {
    let port = fabric.output_mut(1).unwrap();
    std::iter::from_fn(|| port.pop(FOREVER, u16::MAX).map(|departure| departure.run)).collect()
}

#[test]
fn cells_at_line_rate_pass_as_often_as_the_algorithm_says() {
    // n cells at distance t against GCRA(T, tau). A source that is always too fast gets one cell per T, plus those that
    // the tolerance allows: 1 + floor(((n - 1) t + tau) / T), for tau of at least t (for a smaller tau, some waiting
    // time is wasted).
    for (pcr, cdv, octets) in [
        (2000, 0, 9180),
        (2000, 3, 9180),
        (100_000, 50, 1500),
        (350_000, 3, 20_000),
        (1, 1_000_000, 4096),
    ] {
        let contract = TrafficParams {
            max_cdv: Duration::from_micros(cdv),
            ..TrafficParams::cbr(pcr, 0)
        };
        let mut fabric = policed(contract, CellRate::OC3);
        let run = CellRun::whole(pdu(octets), IN);
        let n = u64::from(run.count);
        fabric.receive(0, run, Instant::from_secs(5), |_| {});
        let tau = police::cdvt(&contract).as_nanos() as f64;
        let t = 424e9 / 149_760_000.0;
        let t_contract = 1e9 / f64::from(pcr);
        let passes = 1 + ((((n - 1) as f64 * t + tau) / t_contract).floor() as u64).min(n - 1);
        assert_eq!(counts(&fabric), (n, n - passes), "{pcr} {cdv} {octets}");
        let left: u64 = out(&mut fabric)
            .iter()
            .map(|run| u64::from(run.count))
            .sum();
        assert_eq!(left, passes);
    }
}

#[test]
fn a_large_pdu_of_a_guaranteed_connection_fits_a_queue_that_it_never_fills() {
    let contract = TrafficParams::cbr(10_000, 0);
    let mut nic = Nic::new(CellRate::OC3);
    assert!(nic.open(IN, contract, 0));
    let mut fabric = policed(contract, CellRate::OC3);
    nic.send(IN, pdu(65_535), Instant::ZERO).unwrap();
    let departure = nic.output_mut().pop(FOREVER, u16::MAX).unwrap();
    assert_eq!(
        departure.run.count, 1366,
        "more than a queue of the switch holds"
    );
    fabric.receive(0, departure.run, departure.start, |_| {});
    assert_eq!(counts(&fabric), (1366, 0));
    let [run] = &out(&mut fabric)[..] else {
        panic!("in pieces");
    };
    assert!(run.whole_pdu().is_some());
}

#[test]
fn a_pdu_that_crosses_a_threshold_stays_in_one_piece() {
    let mut port = OutputPort::new(CellRate::OC3, PortLimits::SWITCH);
    let config = QueueConfig {
        limits: Some(Limits::of(100)),
        ..QueueConfig::switch(TrafficParams::ubr(0))
    };
    let queue = port.open(IN, config).unwrap();
    for _ in 0..2 {
        // 42 cells each: at the start of the second PDU the queue is below 75, at its end above.
        let run = CellRun::whole(pdu(2000), IN);
        assert_eq!(port.enqueue(queue, run, Instant::ZERO).dropped, 0);
    }
    for _ in 0..2 {
        let run = port.pop(FOREVER, u16::MAX).unwrap().run;
        assert!(run.whole_pdu().is_some(), "{} cells", run.count);
    }
}

proptest! {
    /// Traffic that a host shapes conforms. A switch accepts all of it, even if whole PDUs or turns move at once, wait
    /// behind others, and are taken by a driver that is late.
    #[test]
    fn a_conforming_source_loses_nothing_when_whole_pdus_or_turns_move(
        pcr in 100_u32..150_000,
        burst in proptest::option::of((1_u32..100, 1_u32..400)),
        arrivals in proptest::collection::vec((1_usize..20_000, 0_u64..30_000), 1..40),
        (noise, turns) in any::<(bool, bool)>(),
        late in 0_u64..5000,
        second in 0_u64..3000,
    ) {
        let contract = TrafficParams {
            max_cdv: Duration::from_micros(1),
            // Below the tolerance of the peak rate, above it, or not given.
            second_cdv: Duration::from_nanos(second),
            ..match burst {
            Some((part, mbs)) => vbr(pcr, (pcr / part).max(1), mbs),
            None => TrafficParams::cbr(pcr, 0),
        }};
        let mut nic = Nic::new(CellRate::OC3);
        prop_assert!(nic.open(IN, contract, 0));
        prop_assert!(nic.open(Vc::new(0, 200), TrafficParams::ubr(0), 0));
        let mut fabric = policed(contract, CellRate::OC3);
        let mut sent = 0;
        let mut now = Instant::ZERO;
        let mut carry = |nic: &mut Nic, fabric: &mut Fabric, now: Instant| {
            let port = nic.output_mut();
            while port.next_departure().is_some_and(|at| at + Duration::from_micros(late) <= now) {
                let departure = if turns { port.pop_turn(now, false) } else { port.pop(now, u16::MAX) };
                let departure = departure.unwrap();
                if departure.run.vc == IN {
                    sent += u64::from(departure.run.count);
                    fabric.receive(0, departure.run, departure.start, |_| {});
                    out(fabric);
                }
            }
        };
        for (octets, gap) in arrivals {
            carry(&mut nic, &mut fabric, now);
            nic.send(IN, pdu(octets), now);
            if noise {
                nic.send(Vc::new(0, 200), pdu(octets), now);
            }
            nic.ping(IN, false, 1, now);
            now += Duration::from_micros(gap);
        }
        carry(&mut nic, &mut fabric, Instant::from_secs(7200));
        prop_assert_eq!(counts(&fabric), (sent, 0));
        prop_assert!(sent > 0);
    }

    /// Whole runs lose exactly the cells that would be lost if cells moved one by one.
    #[test]
    fn a_run_loses_the_cells_that_would_be_lost_one_by_one(
        pcr in 1_000_u32..300_000,
        cdv in 1_u32..500,
        pdus in proptest::collection::vec((1_usize..4000, 0_u64..3000), 1..20),
    ) {
        let contract = TrafficParams { max_cdv: Duration::from_micros(cdv.into()), ..TrafficParams::cbr(pcr, 0) };
        let mut whole = policed(contract, CellRate::OC3);
        let mut single = Policer::new(&contract, true.into(), DEFAULT_CDVT).unwrap();
        let mut line = Arrivals::new(CellRate::OC3);
        let mut now = Instant::ZERO;
        for (octets, gap) in pdus {
            now += Duration::from_micros(gap);
            let run = CellRun::whole(pdu(octets), IN);
            let timing = line.take(run.count.into(), now);
            let expected: Vec<u16> = (0..run.count)
                .filter(|index| single.police(false, timing.of(*index), run.rounding()) == Verdict::Pass)
                .collect();
            whole.receive(0, run.timed(timing), now, |_| {});
            let passed: Vec<u16> = out(&mut whole)
                .iter()
                .flat_map(|run| run.first()..run.first() + run.count)
                .collect();
            prop_assert_eq!(passed, expected);
        }
    }
}

#[test]
fn a_burst_of_vbr_leaves_as_the_contract_allows() {
    let contract = vbr(100_000, 10_000, 5);
    assert_eq!(
        burst_tolerance(100_000, 10_000, 5),
        [Duration::from_micros(360); 2]
    );
    let mut nic = Nic::new(CellRate::OC3);
    assert!(nic.open(IN, contract, 0));
    let start = Instant::from_secs(1);
    nic.send(IN, pdu(380), start).unwrap();
    let run = nic.output_mut().pop(FOREVER, u16::MAX).unwrap().run;
    let timing = run.timing.clone().unwrap();
    let times = (0..8).map(|cell| timing.of(cell).since(start).as_micros());
    assert_eq!(
        times.collect::<Vec<_>>(),
        [0, 10, 20, 30, 40, 140, 240, 340]
    );
}

#[test]
fn a_port_keeps_what_was_policed_on_connections_that_are_gone() {
    let mut fabric = policed(TrafficParams::cbr(1000, 0), CellRate::OC3);
    fabric.receive(
        0,
        CellRun::whole(pdu(9180), IN),
        Instant::from_secs(1),
        |_| {},
    );
    let (came, lost) = counts(&fabric);
    assert!(lost > 0 && lost < came, "{lost} of {came}");
    let from = PortVc::new(0, IN);
    fabric.apply(FabricOp::Disconnect { from }).unwrap();
    let port = fabric.input_counters(0).unwrap();
    assert_eq!(
        (port.cells_in, port.dropped.of(DropReason::Policed)),
        (came, lost)
    );
    let offered = fabric.output(1).unwrap().totals().cells_in;
    assert_eq!(came - port.dropped.total(), offered);
    assert_eq!(fabric.passage(), Passage::default());
}
