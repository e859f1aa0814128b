//! Disciplines of a port: shares by weight, minimum rates, one queue per class, shaped paths, thresholds.

use super::*;

/// A port with this discipline, and a queue for each contract and weight.
fn port_of(discipline: Discipline, queues: &[(TrafficParams, u16)]) -> (OutputPort, Vec<QueueId>) {
    let mut port = OutputPort::new(CellRate::OC3, PortLimits::SWITCH);
    port.set_discipline(discipline);
    let open = queues.iter().zip(40..).map(|((traffic, weight), vci)| {
        let config = QueueConfig {
            weight: *weight,
            ..QueueConfig::switch(*traffic)
        };
        port.open(vc(vci), config).unwrap()
    });
    let open = open.collect();
    (port, open)
}

/// Keeps all queues full for this time; returns the departures: start and queue.
fn greedy(port: &mut OutputPort, queues: &[QueueId], time: Duration) -> Vec<(u64, QueueId)> {
    let mut left = Vec::new();
    let end = Instant::ZERO + time;
    for queue in queues {
        port.enqueue(*queue, CellRun::whole(pdu(9180), vc(1)), Instant::ZERO);
    }
    while let Some(at) = port.next_departure().filter(|at| *at < end) {
        let cell = port.pop(at, 1).unwrap();
        left.push((cell.start.as_nanos(), cell.queue));
        if port.queued(cell.queue) < 32 {
            port.enqueue(cell.queue, CellRun::whole(pdu(9180), vc(1)), at);
        }
    }
    left
}

fn cells_of(left: &[(u64, QueueId)], queue: QueueId) -> u64 {
    left.iter().filter(|cell| cell.1 == queue).count() as u64
}

#[test]
fn greedy_connections_share_by_weight() {
    let weights = [1, 1, 2, 3, 5, 8, 100, 1000];
    let ubr = TrafficParams::ubr(0);
    let all: Vec<_> = weights.iter().map(|weight| (ubr, *weight)).collect();
    let (mut port, queues) = port_of(Discipline::Weighted, &all);
    let left = greedy(&mut port, &queues, Duration::from_secs(2));
    let sum: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
    assert_eq!(left.len(), 706_416);
    for (queue, weight) in queues.iter().zip(weights) {
        let share = u64::from(weight) * left.len() as u64 / sum;
        let got = cells_of(&left, *queue);
        assert!(
            got.abs_diff(share) <= 1 + share / 5000,
            "{weight}: {got} of {share}"
        );
    }
    // The turns of a heavy queue are spread: there are not 1000 in a row, but the ten between two of weight 100.
    let heavy = left.chunk_by(|one, other| one.1 == other.1);
    assert!(heavy.map(<[_]>::len).max() <= Some(11));
}

#[test]
fn a_minimum_rate_comes_before_the_shares() {
    let of = |least: u32| TrafficParams {
        min_pcr: least,
        ..TrafficParams::ubr(0)
    };
    let (mut port, queues) = port_of(
        Discipline::Weighted,
        &[
            (of(100_000), 1),
            (of(50_000), 2),
            (of(0), 1),
            (TrafficParams::cbr(53_207, 0), 1),
        ],
    );
    // The CBR connection sends at its rate, and the others all the time.
    let mut cbr = Vec::new();
    let end = Instant::from_secs(1);
    for queue in &queues[..3] {
        port.enqueue(*queue, CellRun::whole(pdu(9180), vc(1)), Instant::ZERO);
    }
    let mut left = [0_u32; 4];
    for n in 0..53_207_u64 {
        cbr.push(Instant::from_nanos(n * 1_000_000_000 / 53_207));
    }
    let mut cbr = cbr.into_iter().peekable();
    while let Some(at) = port.next_departure().filter(|at| *at < end) {
        while let Some(due) = cbr.next_if(|due| *due <= at) {
            port.enqueue(queues[3], CellRun::whole(pdu(40), vc(1)), due);
        }
        let cell = port.pop(at, 1).unwrap();
        let index = queues
            .iter()
            .position(|queue| *queue == cell.queue)
            .unwrap();
        left[index] += 1;
        if index < 3 && port.queued(cell.queue) < 32 {
            port.enqueue(cell.queue, CellRun::whole(pdu(9180), vc(1)), at);
        }
    }
    // 353 207 less 53 207 of CBR and 150 000 of minimum rates leave 150 000 for weights 1, 2 and 1.
    for (got, want) in left.into_iter().zip([137_500_u32, 125_000, 37_500, 53_207]) {
        assert!(got.abs_diff(want) <= want / 1000, "{left:?}");
    }
}

#[test]
fn a_queue_that_rested_neither_gains_nor_loses() {
    let ubr = TrafficParams::ubr(0);
    let (mut port, queues) = port_of(Discipline::Weighted, &[(ubr, 1), (ubr, 1)]);
    let alone = greedy(&mut port, &queues[..1], Duration::from_millis(100));
    assert!(alone.len() > 35_000);
    // The second one comes later and shares from there on.
    let now = Instant::from_millis(100);
    for queue in &queues {
        for _ in 0..10 {
            port.enqueue(*queue, CellRun::whole(pdu(480), vc(1)), now);
        }
    }
    let first: Vec<_> = (0..100)
        .map(|_| port.pop(FOREVER, 1).unwrap().queue)
        .collect();
    let second = first.iter().filter(|queue| **queue == queues[1]).count();
    assert!(second.abs_diff(50) <= 1, "{second}");
}

#[test]
fn one_queue_per_class_keeps_the_order_of_arrival() {
    let ubr = TrafficParams::ubr(0);
    let cbr = TrafficParams::cbr(1000, 0);
    let (mut port, queues) = port_of(Discipline::PerClass, &[(ubr, 1), (ubr, 1), (cbr, 1)]);
    for (queue, octets) in [(0, 100), (1, 200), (0, 40), (2, 40), (1, 40)] {
        port.enqueue(
            queues[queue],
            CellRun::whole(pdu(octets), vc(1)),
            Instant::ZERO,
        );
    }
    port.close(queues[1]).unwrap();
    port.enqueue(queues[0], CellRun::whole(pdu(40), vc(1)), Instant::ZERO);
    let order: Vec<u16> = drain(&mut port, FOREVER).iter().map(|c| c.1.vci).collect();
    assert_eq!(order, [42, 40, 40, 40, 40, 40]);
    let (mut port, queues) = port_of(Discipline::PerClass, &[(ubr, 1), (ubr, 1), (cbr, 1)]);
    for (queue, octets) in [(0, 100), (1, 200), (0, 40), (2, 40), (1, 40)] {
        port.enqueue(
            queues[queue],
            CellRun::whole(pdu(octets), vc(1)),
            Instant::ZERO,
        );
    }
    let order: Vec<u16> = drain(&mut port, FOREVER).iter().map(|c| c.1.vci).collect();
    assert_eq!(order, [42, 40, 40, 40, 41, 41, 41, 41, 41, 40, 41]);
    assert!(port.is_idle() && port.entries() == 0);
}

/// Cells of a path with ten channels of weights 1 to 10 beside a channel outside, each always full.
fn path_of_ten(cdvt: Duration) -> Vec<(u64, Vc)> {
    let mut port = OutputPort::new(CellRate::OC3, PortLimits::SWITCH);
    port.set_discipline(Discipline::Weighted);
    let (vpi, pcr) = (5, 77_777);
    assert!(port.shape_path(PathConfig { vpi, pcr, cdvt }));
    assert!(!port.shape_path(PathConfig { vpi, pcr, cdvt }));
    let mut queues: Vec<QueueId> = (1..=10)
        .map(|weight| {
            let config = QueueConfig {
                weight,
                ..QueueConfig::switch(TrafficParams::ubr(0))
            };
            port.open(Vc::new(5, 100 + weight), config).unwrap()
        })
        .collect();
    let config = QueueConfig::switch(TrafficParams::cbr(150_000, 0));
    queues.push(port.open(vc(50), config).unwrap());
    let labels: Vec<Vc> = port.views().map(|queue| queue.vc).collect();
    let left = greedy(&mut port, &queues, Duration::from_secs(1));
    left.iter()
        .map(|(at, queue)| (*at, labels[queue.0 as usize]))
        .collect()
}

/// A rate queue and a shaped path with the same rate at one adapter, each with two of the labels, before and after a
/// restart that drops what waits.
#[test]
fn a_rate_queue_is_shaped_apart_from_the_path_of_its_labels_also_after_a_restart() {
    let rate_queue = RateQueue {
        name: "fast".to_owned(),
        pcr: 10_000,
        cdvt: Duration::ZERO,
    };
    let path = PathConfig {
        vpi: 5,
        pcr: 10_000,
        cdvt: Duration::ZERO,
    };
    let (queued, of_path) = (
        [Vc::new(0, 40), Vc::new(5, 41)],
        [Vc::new(5, 42), Vc::new(5, 43)],
    );
    let mut nic = Nic::new(CellRate::OC3);
    nic.configure(NicConfig {
        shapes_of: queued
            .map(|vc| (vc, Shaping::RateQueue(0)))
            .into_iter()
            .collect(),
        paths: vec![path],
        rate_queues: vec![rate_queue],
        ..NicConfig::default()
    });
    for start in [Instant::ZERO, Instant::from_secs(1)] {
        for vc in queued.into_iter().chain(of_path) {
            assert!(nic.open(vc, TrafficParams::cbr(300_000, 0), 0));
            nic.send(vc, pdu(9180), start).unwrap();
        }
        let inside: Vec<u32> = nic.output().paths().map(|path| path.queues).collect();
        assert_eq!(inside, [2, 2]);
        // 192 cells of each label, 384 of each pair at 10 000 cells/s.
        let half = start + Duration::from_millis(20);
        let left = drain(nic.output_mut(), half);
        for pair in [queued, of_path] {
            let cells: Vec<_> = left.iter().filter(|cell| pair.contains(&cell.1)).collect();
            let mut upc = Gcra::new(10_000, Duration::from_micros(3));
            assert!(cells.iter().all(|cell| upc.arrive(cell.0)));
            assert!((195..=201).contains(&cells.len()), "{}", cells.len());
            let first = cells.iter().filter(|cell| cell.1 == pair[0]).count();
            assert!((2 * first).abs_diff(cells.len()) <= 2, "in turns");
        }
        nic.reset();
        assert!(nic.output().is_idle() && nic.output().paths().all(|path| path.queues == 0));
    }
}

#[test]
fn a_shaped_path_never_exceeds_its_peak_rate_and_serves_by_weight() {
    for cdvt in [Duration::ZERO, Duration::from_micros(250)] {
        let left = path_of_ten(cdvt);
        let inside: Vec<_> = left.iter().filter(|cell| cell.1.vpi == 5).collect();
        let mut upc = Gcra::new(77_777, cdvt);
        assert!(
            inside
                .iter()
                .all(|cell| upc.arrive(Instant::from_nanos(cell.0)))
        );
        // A cell of the other connection, which has the priority of the path, may hold one up; with a tolerance the
        // path makes up for that.
        let fewest = if cdvt.is_zero() { 55_000 } else { 77_770 };
        assert!(
            (fewest..=77_778).contains(&inside.len()),
            "{}",
            inside.len()
        );
        for weight in 1..=10_u16 {
            let cells = inside
                .iter()
                .filter(|cell| cell.1.vci == 100 + weight)
                .count();
            let share = inside.len() * usize::from(weight) / 55;
            assert!(
                cells.abs_diff(share) <= 1 + share / 1000,
                "{weight}: {cells} of {share}"
            );
        }
        assert_eq!(left.len(), 353_208);
    }
}

/// The cells of a turn leave together at a link out of the lab: they keep the tolerance of their path.
#[test]
fn the_turns_of_a_shaped_path_are_within_its_tolerance() {
    for (micros, longest) in [(0, 1), (10, 1), (40, 2), (100, 4), (250, 4)] {
        let cdvt = Duration::from_micros(micros);
        let mut port = OutputPort::new(CellRate::OC3, PortLimits::SWITCH);
        let (vpi, pcr) = (5, 100_000);
        assert!(port.shape_path(PathConfig { vpi, pcr, cdvt }));
        let config = QueueConfig::switch(TrafficParams::ubr(0));
        let queue = port.open(Vc::new(5, 100), config).expect("room");
        port.enqueue(queue, CellRun::whole(pdu(9180), vc(1)), Instant::ZERO);
        let mut upc = Gcra::new(100_000, cdvt);
        let (mut cells, mut most) = (0, 0);
        while let Some(gone) = port.pop_turn(FOREVER, false) {
            // All cells of the turn at the time of the first: by the line they cannot be closer than this.
            assert!(
                (0..gone.run.count).all(|_| upc.arrive(gone.start)),
                "{micros} us"
            );
            cells += gone.run.count;
            most = most.max(gone.run.count);
        }
        assert_eq!((cells, most), (192, longest), "{micros} us");
    }
}

/// A queue's own cells count twice in the buffer of best effort, which weights serve, and once in that of CBR and VBR.
#[test]
fn weights_leave_the_buffer_of_guaranteed_traffic_whole() {
    let [cbr, ubr] = [TrafficParams::cbr(1000, 0), TrafficParams::ubr(0)];
    for (discipline, traffic, room) in [
        (Discipline::RoundRobin, cbr, 1024),
        (Discipline::Weighted, cbr, 1024),
        // New PDUs find room up to three quarters of 8192 cells; 2 x 2048 cells and one share more are as many.
        (Discipline::RoundRobin, ubr, 6144),
        (Discipline::Weighted, ubr, 4096),
    ] {
        let (mut port, queues) = port_of(discipline, &[(traffic, 1), (traffic, 1)]);
        let mut held = 0;
        for _ in 0..room {
            for queue in &queues {
                let cell = CellRun::whole(Pdu::with(vec![0; 40], 0, false), vc(1));
                held += u32::from(port.enqueue(*queue, cell, Instant::ZERO).accepted);
            }
        }
        assert_eq!(held, room, "{discipline:?}");
    }
}

/// A sender of eight times its share, thresholds at their bounds, and two that keep to theirs.
#[test]
fn who_sends_too_much_harms_nobody_else() {
    for (max, early, low_priority, mark) in [
        (0, 0, 0, 0),
        (1, 1, 1, 1),
        (64, 1, 64, 64),
        (64, 64, 1, 1),
        (1_000_000, 1_000_000, 1, 1),
    ] {
        let ubr = TrafficParams::ubr(0);
        let (mut port, queues) = port_of(Discipline::Weighted, &[(ubr, 1), (ubr, 1), (ubr, 2)]);
        let [max, early, low_priority, mark] = [max, early, low_priority, mark].map(Some);
        let tuning = Tuning {
            max,
            early,
            low_priority,
            mark,
            ..Tuning::DEFAULT
        };
        port.tune(queues[0], &ubr, &tuning);
        let mut left = [0_u32; 3];
        let mut refused = [0_u32; 3];
        // In each period of eight cells of the line, the first one offers 16, the others their shares.
        let period = |n: u64| Instant::from_nanos(n * 8 * 424_000_000_000 / 149_760_000);
        for n in 0..10_000 {
            for (index, cells) in [(0, 16), (1, 2), (2, 4)] {
                for _ in 0..cells {
                    let low = index == 0 && n % 2 == 0;
                    let run = CellRun::whole(Pdu::with(vec![0; 40], 0, low), vc(1));
                    let taken = port.enqueue(queues[index], run, period(n));
                    refused[index] += u32::from(taken.dropped);
                }
            }
            while let Some(cell) = port.pop(period(n + 1), 1) {
                let index = queues
                    .iter()
                    .position(|queue| *queue == cell.queue)
                    .unwrap();
                left[index] += 1;
            }
        }
        assert_eq!(refused[1..], [0, 0], "{tuning:?}");
        assert!(
            left[1] >= 19_990 && left[2] >= 39_980,
            "{left:?} with {tuning:?}"
        );
        let view = port.views().next().unwrap();
        let offered = u64::from(left[0] + refused[0] + view.waiting);
        assert_eq!(offered, 160_000);
        assert_eq!(view.counters.cells_in, offered);
    }
}

#[test]
fn a_threshold_of_zero_is_the_default_and_one_that_is_not_given_is_that_of_the_queue() {
    let usual = Limits {
        max: 100,
        early: 10,
        low_priority: 20,
        mark: 30,
    };
    let zeros = Tuning {
        early: Some(0),
        low_priority: Some(0),
        mark: Some(0),
        ..Tuning::DEFAULT
    };
    assert_eq!(zeros.limits(usual, false), Limits::of(100));
    assert_eq!(zeros.limits(usual, true), Limits::plain(100));
    assert_eq!(Tuning::DEFAULT.limits(usual, false), usual);
}

#[test]
fn a_cell_that_finds_a_long_queue_is_marked_but_oam_is_not() {
    let ubr = TrafficParams::ubr(0);
    for discipline in Discipline::ALL {
        let (mut port, queues) = port_of(discipline, &[(ubr, 1)]);
        let tuning = Tuning {
            mark: Some(3),
            ..Tuning::DEFAULT
        };
        port.tune(queues[0], &ubr, &tuning);
        port.enqueue(queues[0], CellRun::whole(pdu(240), vc(40)), Instant::ZERO);
        let oam = CellRun::raw(vc(40), Pti::OAM_END_TO_END, [0; 48]);
        port.enqueue(queues[0], oam, Instant::ZERO);
        let mut marks = Vec::new();
        while let Some(cell) = port.pop(FOREVER, 1) {
            marks.push(cell.run.header(0).pti.congested());
        }
        assert_eq!(marks, [false, false, false, true, true, true, false]);
        assert_eq!(port.views().next().unwrap().marked, 3);
    }
}
