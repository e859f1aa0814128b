//! The time at which a line looks for the next cell that matters is never later than the arrival of this cell.

use super::*;

/// A queue: contract by number, whether its cells are shaped, and the octets of the PDUs that wait in it.
type Waiting = (u8, bool, Vec<usize>);

fn contract(kind: u8, cells: u32) -> TrafficParams {
    match kind % 3 {
        0 => TrafficParams::ubr(0),
        1 => TrafficParams::cbr(cells, 0),
        _ => TrafficParams {
            min_pcr: cells,
            ..TrafficParams::ubr(0)
        },
    }
}

/// A port with queues of which every other one is in a path that may be shaped.
fn port(
    discipline: u8,
    rate: u8,
    (path, tolerance): (Option<u32>, u64),
    queues: &[Waiting],
    cells: u32,
) -> OutputPort {
    let rates = [CellRate::OC12, CellRate::OC3, CellRate::DS3];
    let limits = PortLimits {
        guaranteed: Limits::of(100_000),
        guaranteed_vc: Limits::of(100_000),
        best_effort: Limits::of(100_000),
        best_effort_vc: Limits::of(100_000),
        ..PortLimits::SWITCH
    };
    let mut port = OutputPort::new(rates[usize::from(rate) % 3], limits);
    port.set_discipline(Discipline::ALL[usize::from(discipline) % Discipline::ALL.len()]);
    if let Some(pcr) = path {
        let cdvt = Duration::from_nanos(tolerance);
        assert!(port.shape_path(PathConfig { vpi: 7, pcr, cdvt }));
    }
    for (number, (kind, shaped, pdus)) in queues.iter().enumerate() {
        let vc = Vc::new(7 * (number as u16 % 2), 40 + number as u16);
        let config = QueueConfig {
            shaped: *shaped,
            ..QueueConfig::switch(contract(*kind, cells))
        };
        let queue = port.open(vc, config).unwrap();
        for len in pdus {
            port.enqueue(queue, CellRun::whole(pdu(*len), vc), Instant::ZERO);
        }
    }
    port
}

proptest! {
    // An error of a nanosecond needs two times that meet within one.
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]
    /// A line that looks at these times, and at no other ones, finds each cell that matters when it arrives: the cells
    /// wait from the start, so every time is exact or too early.
    #[test]
    fn a_line_is_never_told_to_look_too_late(
        discipline in any::<u8>(), rate in any::<u8>(),
        path in proptest::option::of(20_000_u32..200_000),
        tolerance in prop_oneof![Just(0_u64), 1_u64..100_000],
        queues in proptest::collection::vec((any::<u8>(), any::<bool>(), proptest::collection::vec(prop_oneof![1_usize..40, 1_usize..9000], 1..30)), 1..7),
        cells in 10_000_u32..300_000,
    ) {
        let mut port = port(discipline, rate, (path, tolerance), &queues, cells);
        let mut trains = Trains::default();
        trains.add_line(0, Duration::ZERO, true, true);
        trains.set_single(0, false);
        let mut left = queues.iter().map(|queue| queue.2.len()).sum::<usize>();
        let mut looks = 0;
        while left > 0 {
            let look = port.next_matter(&trains, 0);
            let look = look.expect("a cell that matters waits");
            port.run(&mut trains, 0, (look.as_nanos(), u32::MAX));
            while let Some((at, id)) = trains.due(0) {
                prop_assert!(at >= look.as_nanos(), "{at} is before {look:?}");
                trains.pop_due(0);
                while trains.take(id, (at, u32::MAX), u16::MAX).is_some() {}
                left -= 1;
            }
            looks += 1;
            prop_assert!(looks < 10_000, "the line looks for ever");
        }
        prop_assert!(port.is_idle());
    }
}
