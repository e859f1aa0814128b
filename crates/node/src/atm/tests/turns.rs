//! Turns: which cells leave a port as one run, and how long other cells wait.

use super::*;

/// A line 267 times as fast as an OC-3.
const FAST: CellRate = CellRate::of_bits(40_000_000_000);

/// The VCs of the cells in the order of departure, and when each cell begins.
fn order(port: &mut OutputPort, turns: bool, cell: CellRate) -> Vec<(u16, Instant)> {
    let mut all = Vec::new();
    while let Some(gone) = match turns {
        true => port.pop_turn(FOREVER, false),
        false => port.pop(FOREVER, 1),
    } {
        let cells = 0..u64::from(gone.run.count);
        all.extend(cells.map(|n| (gone.run.vc.vci, gone.start + cell.time_of(n))));
    }
    all
}

/// A port with a queue for each contract, shaped as at a host.
fn port(rate: CellRate, contracts: &[TrafficParams]) -> (OutputPort, Vec<QueueId>) {
    let mut port = OutputPort::new(rate, PortLimits::HOST);
    let open = |(contract, vci): (&TrafficParams, u16)| {
        port.open(vc(vci), QueueConfig::host(*contract)).unwrap()
    };
    let queues = contracts.iter().zip(100..).map(open).collect();
    (port, queues)
}

/// The turns of a port: the VC and number of cells of each.
fn turns(port: &mut OutputPort) -> Vec<(u16, u16)> {
    std::iter::from_fn(|| port.pop_turn(FOREVER, false))
        .map(|gone| (gone.run.vc.vci, gone.run.count))
        .collect()
}

#[test]
fn a_turn_has_50_us_of_cells_alone_and_3_us_beside_another_queue() {
    let slow = CellRate::of_bits(2_000_000);
    for (rate, alone, shared) in [
        (slow, 1, 1),
        (CellRate::OC3, 17, 1),
        (CellRate::OC12, 70, 4),
    ] {
        let ubr = [TrafficParams::ubr(0); 2];
        let (mut one, queues) = port(rate, &ubr);
        one.enqueue(queues[0], CellRun::whole(pdu(9180), vc(100)), Instant::ZERO);
        assert_eq!(turns(&mut one)[0], (100, alone), "{rate}");
        let (mut two, queues) = port(rate, &ubr);
        for (queue, vci) in queues.iter().zip([100, 101]) {
            two.enqueue(*queue, CellRun::whole(pdu(9180), vc(vci)), Instant::ZERO);
        }
        let both = turns(&mut two);
        assert_eq!(
            both[..3],
            [(100, shared), (101, shared), (100, shared)],
            "{rate}"
        );
        assert_eq!(both.iter().map(|turn| turn.1).sum::<u16>(), 384);
        // A driver that lags behind takes turns as if the queue were alone.
        let (mut late, queues) = port(rate, &ubr);
        for (queue, vci) in queues.iter().zip([100, 101]) {
            late.enqueue(*queue, CellRun::whole(pdu(9180), vc(vci)), Instant::ZERO);
        }
        let first = late.pop_turn(FOREVER, true).unwrap().run;
        assert_eq!((first.vc.vci, first.count), (100, alone), "{rate}");
    }
    let (mut fast, queues) = port(FAST, &[TrafficParams::ubr(0); 2]);
    for (queue, vci) in queues.iter().zip([100, 101]) {
        fast.enqueue(*queue, CellRun::whole(pdu(65_000), vc(vci)), Instant::ZERO);
    }
    assert_eq!(turns(&mut fast)[..2], [(100, 283), (101, 283)]);
}

/// A cell of constant bit rate comes while an adapter of 64 KB PDUs is in a turn. It waits for this turn, and for
/// nothing else.
#[test]
fn a_cell_waits_for_at_most_one_turn_of_17_cells_of_an_oc3() {
    let contracts = [TrafficParams::ubr(0), TrafficParams::cbr(1000, 0)];
    for arrival in 1..300 {
        let (mut port, queues) = port(CellRate::OC3, &contracts);
        port.enqueue(
            queues[0],
            CellRun::whole(pdu(65_000), vc(100)),
            Instant::ZERO,
        );
        let now = Instant::from_nanos(arrival * 1000);
        while port.pop_turn(now, false).is_some() {}
        port.enqueue(queues[1], CellRun::whole(pdu(40), vc(101)), now);
        let next = port.pop_turn(FOREVER, false).unwrap();
        assert_eq!((next.run.vc.vci, next.run.count), (101, 1));
        let wait = next.start.since(now);
        assert!(
            wait <= CellRate::OC3.time_of(17),
            "{wait:?} at {arrival} us"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// While best effort waits, cells of all queues leave an OC-3 in the order and at the times of single cells,
    /// whatever contracts there are.
    #[test]
    fn a_crowded_line_sends_turns_in_the_order_of_single_cells(
        shaped in proptest::collection::vec((400_u32..100_000, 1_usize..3000, any::<bool>()), 1..5),
        plain in 1_usize..4,
    ) {
        let contracts: Vec<TrafficParams> = (0..plain)
            .map(|_| TrafficParams::ubr(0))
            .chain(shaped.iter().map(|(pcr, _, vbr)| match vbr {
                false => TrafficParams::cbr(*pcr, 0),
                true => TrafficParams {
                    category: Some(ServiceCategory::NrtVbr),
                    max_pcr: Some(*pcr),
                    scr: pcr / 4,
                    mbs: 8,
                    ..TrafficParams::none()
                },
            }))
            .collect();
        let run = |turns: bool| {
            let (mut port, queues) = port(CellRate::OC3, &contracts);
            for (index, queue) in queues.iter().enumerate() {
                let vc = vc(100 + index as u16);
                let octets = index.checked_sub(plain).map_or(60_000, |n| shaped[n].1);
                port.enqueue(*queue, CellRun::whole(pdu(octets), vc), Instant::ZERO);
            }
            let mut all = order(&mut port, turns, CellRate::OC3);
            let last = all.iter().rposition(|cell| usize::from(cell.0 - 100) < plain);
            all.truncate(last.map_or(0, |last| last + 1));
            all
        };
        let (single, turns) = (run(false), run(true));
        prop_assert_eq!(single.len(), turns.len());
        for (single, turn) in single.iter().zip(&turns) {
            prop_assert_eq!(single.0, turn.0);
            // Times are rounded up to a nanosecond, in a run once more.
            let error = single.1.as_nanos().abs_diff(turn.1.as_nanos());
            prop_assert!(error <= 1, "{} ns", error);
        }
    }
}

/// A queue that its shaper spreads over time does not leave as a burst.
#[test]
fn a_turn_of_a_shaped_queue_has_the_cells_of_50_us_at_its_own_rate() {
    for (pcr, cells) in [(1000, 1), (20_000, 1), (100_000, 5)] {
        let (mut port, queues) = port(CellRate::OC3, &[TrafficParams::cbr(pcr, 0)]);
        port.enqueue(queues[0], CellRun::whole(pdu(9180), vc(100)), Instant::ZERO);
        let most = turns(&mut port).iter().map(|turn| turn.1).max();
        assert!(most <= Some(cells), "{most:?} at {pcr} cells/s");
    }
    let wait = Duration::from_micros(50);
    assert_eq!(CellRate::OC3.cells_in(wait), 17);
}
