//! Scenarios and properties of ports, fabrics and adapters, driven as by a simulator.

mod blocks;
mod closing;
mod conformance;
mod frames;
mod matter;
mod policing;
mod schedules;
mod single;
mod stalls;
mod trains;
mod turns;

use super::fabric::{FabricError, Switched};
use super::police::Gcra;
use super::*;
use aerostat_proto::{Duration, Instant};
use aerostat_wire::cell::Pti;
use aerostat_wire::{ServiceCategory, TrafficParams, Vc};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn pdu(len: usize) -> Pdu {
    Pdu::new(vec![7; len])
}

fn vc(vci: u16) -> Vc {
    Vc::new(0, vci)
}

/// Pops all cells until the port is empty; returns (start, VC, true at the end of a PDU).
fn drain(port: &mut OutputPort, until: Instant) -> Vec<(Instant, Vc, bool)> {
    let mut all = Vec::new();
    while let Some(at) = port.next_departure().filter(|at| *at <= until) {
        if at > Instant::ZERO {
            let early = Instant::from_nanos(at.as_nanos() - 1);
            assert!(port.pop(early, 1).is_none(), "not due yet");
        }
        let departure = port.pop(at, 1).expect("a due departure");
        assert_eq!(departure.start, at);
        all.push((at, departure.run.vc, departure.run.ends_pdu()));
    }
    all
}

const FOREVER: Instant = Instant::from_secs(1_000_000);

#[test]
fn back_to_back_cells_keep_the_line_rate() {
    let mut port = OutputPort::new(CellRate::OC3, PortLimits::SWITCH);
    let queue = port
        .open(vc(100), QueueConfig::switch(TrafficParams::ubr(0)))
        .unwrap();
    for _ in 0..10 {
        port.enqueue(queue, CellRun::whole(pdu(9188), vc(100)), Instant::ZERO);
    }
    let cells = drain(&mut port, FOREVER);
    assert_eq!(cells.len(), 1920);
    for (i, (at, _, _)) in cells.iter().enumerate() {
        let exact = (i as u128 * 424_000_000_000).div_ceil(149_760_000);
        assert_eq!(u128::from(at.as_nanos()), exact);
    }
    // A cell that arrives at an idle port leaves at once.
    let late = Instant::from_secs(1);
    port.enqueue(queue, CellRun::whole(pdu(10), vc(100)), late);
    assert_eq!(port.next_departure(), Some(late));
    let departure = port.pop(late, 1).unwrap();
    assert_eq!(departure.finish, late + Duration::from_nanos(2832));
    assert!(port.next_departure().is_none());
}

#[test]
fn whole_runs_take_as_long_as_their_cells() {
    let mut port = OutputPort::new(CellRate::OC3, PortLimits::HOST);
    let queue = port
        .open(vc(100), QueueConfig::host(TrafficParams::ubr(0)))
        .unwrap();
    port.enqueue(queue, CellRun::whole(pdu(9188), vc(100)), Instant::ZERO);
    let departure = port.pop(Instant::ZERO, u16::MAX).unwrap();
    assert_eq!(departure.run.count, 192);
    assert_eq!(departure.finish, Instant::ZERO + CellRate::OC3.time_of(192));
}

#[test]
fn guaranteed_traffic_goes_first_and_round_robin_is_fair() {
    let mut port = OutputPort::new(CellRate::OC3, PortLimits::SWITCH);
    let cbr = TrafficParams::cbr(1000, 0);
    let vbr = TrafficParams {
        category: Some(ServiceCategory::RtVbr),
        ..cbr
    };
    let mut queues = Vec::new();
    for (vci, traffic) in [
        (40, TrafficParams::ubr(0)),
        (41, TrafficParams::ubr(0)),
        (42, vbr),
        (43, cbr),
    ] {
        let queue = port.open(vc(vci), QueueConfig::switch(traffic)).unwrap();
        port.enqueue(queue, CellRun::whole(pdu(100), vc(vci)), Instant::ZERO);
        queues.push(queue);
    }
    let order: Vec<u16> = drain(&mut port, FOREVER).iter().map(|c| c.1.vci).collect();
    assert_eq!(order, [43, 43, 43, 42, 42, 42, 40, 41, 40, 41, 40, 41]);
}

#[test]
fn early_and_partial_discard_drop_frames_and_keep_last_cells() {
    let limits = Limits {
        max: 10,
        early: 8,
        low_priority: 8,
        mark: Limits::NEVER,
    };
    let mut port = OutputPort::new(CellRate::OC3, PortLimits::SWITCH);
    let config = QueueConfig {
        limits: Some(limits),
        ..QueueConfig::switch(TrafficParams::ubr(0))
    };
    let queue = port.open(vc(100), config).unwrap();
    let mut offer = |len| port.enqueue(queue, CellRun::whole(pdu(len), vc(100)), Instant::ZERO);
    // 5 cells fit. Of the next 8 cells five fit; the rest suffers partial discard, except the last cell.
    assert_eq!(offer(200).accepted, 5);
    let partial = offer(376);
    assert_eq!(
        (partial.accepted, partial.dropped, partial.reason),
        (6, 2, Some(DropReason::Overflow))
    );
    // Above the threshold a frame is dropped whole.
    let early = offer(100);
    assert_eq!(
        (early.accepted, early.dropped, early.reason),
        (0, 3, Some(DropReason::EarlyDiscard))
    );
    let counters = port.counters(queue).unwrap();
    assert_eq!(counters.dropped.of(DropReason::Overflow), 1);
    assert_eq!(counters.dropped.of(DropReason::PartialDiscard), 1);
    assert_eq!(counters.dropped.of(DropReason::EarlyDiscard), 3);
    let ends = drain(&mut port, FOREVER).iter().filter(|c| c.2).count();
    assert_eq!(ends, 2);
    // Cells with CLP 1 have less room.
    let low = Pdu::with(vec![1; 440], 0, true);
    let mut plain = OutputPort::new(CellRate::OC3, PortLimits::SWITCH);
    let config = QueueConfig {
        frame_discard: false,
        ..config
    };
    let queue = plain.open(vc(100), config).unwrap();
    let admission = plain.enqueue(queue, CellRun::whole(low, vc(100)), Instant::ZERO);
    assert_eq!(
        (admission.accepted, admission.reason),
        (8, Some(DropReason::LowPriority))
    );
}

/// Cells of AAL1 and AAL2 never end a frame, so frame discard must not take them for one frame without an end.
#[test]
fn cells_without_frames_lose_a_bounded_number_after_an_overflow() {
    let mut port = OutputPort::new(CellRate::OC3, PortLimits::SWITCH);
    let config = QueueConfig {
        limits: Some(Limits::plain(16)),
        ..QueueConfig::switch(TrafficParams::ubr(0))
    };
    assert!(config.frame_discard);
    let queue = port.open(vc(100), config).unwrap();
    let cell = || CellRun::raw(vc(100), Pti::USER, [0; 48]);
    let offer = |port: &mut OutputPort| port.enqueue(queue, cell(), Instant::ZERO).dropped;
    let overflow: u16 = (0..20).map(|_| offer(&mut port)).sum();
    assert_eq!(overflow, 4);
    let mut lost = 0;
    for n in 20..5000 {
        while port.pop(FOREVER, 1).is_some() {}
        lost += u32::from(offer(&mut port));
        assert!(n < 1366 || offer(&mut port) == 0, "cell {n}");
    }
    // The rest of what may have been a frame.
    assert_eq!(lost, 1366 - 20);
}

#[test]
fn a_shaped_queue_conforms_beside_best_effort() {
    let mut port = OutputPort::new(CellRate::OC3, PortLimits::HOST);
    let cbr = TrafficParams::cbr(80_000, 1600);
    let shaped = port.open(vc(50), QueueConfig::host(cbr)).unwrap();
    let greedy = port
        .open(vc(51), QueueConfig::host(TrafficParams::ubr(0)))
        .unwrap();
    for _ in 0..100 {
        port.enqueue(shaped, CellRun::whole(pdu(1600), vc(50)), Instant::ZERO);
        port.enqueue(greedy, CellRun::whole(pdu(9188), vc(51)), Instant::ZERO);
    }
    // Contention moves a cell by one slot at most.
    let mut gcra = Gcra::new(80_000, Duration::from_nanos(2833));
    let cells = drain(&mut port, Instant::from_millis(20));
    let cbr: Vec<_> = cells.iter().filter(|c| c.1 == vc(50)).collect();
    assert!(cbr.iter().all(|c| gcra.arrive(c.0)));
    // 20 ms at 80 000 cells/s, and best effort on the rest of the line. The cell that is due at the end of the time
    // waits for the cell on the line.
    assert_eq!(cbr.len(), 1600);
    assert_eq!(cells.len(), 7065);
}

#[test]
fn closing_a_queue_counts_what_waited() {
    let mut port = OutputPort::new(CellRate::OC3, PortLimits::HOST);
    let config = QueueConfig::host(TrafficParams::cbr(1000, 0));
    let queue = port.open(vc(50), config).unwrap();
    assert!(port.open(vc(50), config).is_none());
    port.enqueue(queue, CellRun::whole(pdu(400), vc(50)), Instant::ZERO);
    port.pop(Instant::ZERO, 1).unwrap();
    let counters = port.close(queue).unwrap();
    assert_eq!(
        (counters.cells_out, counters.dropped.of(DropReason::Closed)),
        (1, 8)
    );
    assert_eq!((port.queued_total(), port.next_departure()), (0, None));
    assert_eq!(
        port.enqueue(queue, CellRun::whole(pdu(1), vc(50)), Instant::ZERO)
            .accepted,
        0
    );
    assert!(port.open(vc(50), config).is_some());
}

fn fabric(ports: usize) -> Fabric {
    let mut fabric = Fabric::new([9; 16]);
    for _ in 0..ports {
        fabric.add_port(CellRate::OC3, PortLimits::SWITCH);
    }
    fabric
}

fn connect(from: PortVc, to: PortVc) -> FabricOp {
    FabricOp::Connect {
        from,
        to,
        traffic: TrafficParams::ubr(0),
        police: false.into(),
    }
}

fn out(fabric: &mut Fabric, port: u16) -> Vec<Vc> {
    let cells = drain(fabric.output_mut(port).unwrap(), FOREVER);
    cells.iter().map(|c| c.1).collect()
}

#[test]
fn labels_are_switched_to_every_leaf() {
    let mut f = fabric(3);
    let from = PortVc::new(0, vc(100));
    f.apply(connect(from, PortVc::new(1, vc(200)))).unwrap();
    f.apply(FabricOp::AddLeaf {
        from,
        to: PortVc::new(2, Vc::new(3, 33)),
    })
    .unwrap();
    let busy = PortVc::new(1, vc(200));
    assert_eq!(
        f.apply(connect(PortVc::new(2, vc(9)), busy)),
        Err(FabricError::OutputBusy(busy))
    );
    assert_eq!(
        f.apply(connect(from, PortVc::new(1, vc(201)))),
        Err(FabricError::InputBusy(from))
    );
    assert_eq!(
        f.apply(connect(PortVc::new(7, vc(1)), busy)),
        Err(FabricError::NoPort(7))
    );
    let mut touched = Vec::new();
    f.receive(0, CellRun::whole(pdu(60), vc(100)), Instant::ZERO, |p| {
        touched.push(p)
    });
    assert_eq!(touched, [1, 2]);
    assert_eq!(out(&mut f, 1), [vc(200); 2]);
    assert_eq!(out(&mut f, 2), [Vc::new(3, 33); 2]);
    f.apply(FabricOp::DropLeaf { from, to: busy }).unwrap();
    assert_eq!(
        f.apply(FabricOp::DropLeaf { from, to: busy }),
        Err(FabricError::NoLeaf(busy))
    );
    f.receive(
        0,
        CellRun::whole(pdu(60), vc(100)),
        Instant::from_secs(1),
        |_| {},
    );
    assert_eq!((out(&mut f, 1).len(), out(&mut f, 2).len()), (0, 2));
    f.apply(FabricOp::Disconnect { from }).unwrap();
    let unknown = f.receive(
        0,
        CellRun::whole(pdu(60), vc(100)),
        Instant::from_secs(2),
        |_| {},
    );
    assert!(matches!(unknown, Switched::Dropped(DropReason::UnknownVc)));
    assert_eq!(
        f.input_counters(0)
            .unwrap()
            .dropped
            .of(DropReason::UnknownVc),
        2
    );
    assert_eq!(f.connections().count(), 0);
}

#[test]
fn paths_keep_their_channels() {
    let mut f = fabric(2);
    let from = PortVc::new(0, Vc::new(5, 0));
    let to = PortVc::new(1, Vc::new(6, 0));
    f.apply(FabricOp::ConnectPath {
        from,
        to,
        traffic: TrafficParams::ubr(0),
        police: false.into(),
    })
    .unwrap();
    let inside = PortVc::new(0, Vc::new(5, 77));
    assert_eq!(
        f.apply(connect(inside, PortVc::new(1, vc(50)))),
        Err(FabricError::InputBusy(inside))
    );
    for vci in [32, 999] {
        f.receive(
            0,
            CellRun::whole(pdu(10), Vc::new(5, vci)),
            Instant::ZERO,
            |_| {},
        );
    }
    assert_eq!(out(&mut f, 1), [Vc::new(6, 32), Vc::new(6, 999)]);
    // A loopback cell of a channel's segment passes: the segment does not end inside a path.
    let request = fabric::loopback_request(Vc::new(5, 40), true, 1);
    f.receive(0, request, Instant::ZERO, |_| {});
    assert_eq!(out(&mut f, 1), [Vc::new(6, 40)]);
    assert!(out(&mut f, 0).is_empty(), "nobody answered");
    f.apply(FabricOp::Disconnect { from }).unwrap();
    assert!(f.output(1).unwrap().queue_of(Vc::new(6, 5)).is_none());
}

#[test]
fn local_labels_reach_the_control_plane_both_ways() {
    let mut f = fabric(1);
    let at = PortVc::new(0, Vc::SIGNALLING);
    f.open_local(at, TrafficParams::ubr(0)).unwrap();
    let up = f.receive(0, CellRun::whole(pdu(10), at.vc), Instant::ZERO, |_| {});
    assert!(matches!(up, Switched::Local(run) if run.vc == at.vc));
    assert_eq!(
        f.send_local(at, pdu(100), Instant::ZERO).unwrap().accepted,
        3
    );
    assert!(
        f.send_local(PortVc::new(0, vc(7)), pdu(1), Instant::ZERO)
            .is_none()
    );
    assert_eq!(out(&mut f, 0), [Vc::SIGNALLING; 3]);
}

#[test]
fn policing_discards_what_exceeds_the_contract() {
    let mut f = fabric(2);
    let traffic = TrafficParams {
        max_cdv: Duration::from_micros(1),
        ..TrafficParams::cbr(10_000, 0)
    };
    let (from, to) = (PortVc::new(0, vc(60)), PortVc::new(1, vc(60)));
    f.apply(FabricOp::Connect {
        from,
        to,
        traffic,
        police: true.into(),
    })
    .unwrap();
    // Twice the rate: every second cell is dropped.
    for i in 0..100 {
        let now = Instant::from_nanos(i * 50_000);
        f.receive(0, CellRun::whole(pdu(10), vc(60)), now, |_| {});
    }
    assert_eq!(out(&mut f, 1).len(), 50);
    let counters = f.connections().next().unwrap().counters;
    assert_eq!(
        (counters.cells_in, counters.dropped.of(DropReason::Policed)),
        (100, 50)
    );
}

#[test]
fn loopback_segment_ends_at_the_switch_and_end_to_end_passes() {
    let mut f = fabric(2);
    let (a, b) = (PortVc::new(0, vc(60)), PortVc::new(1, vc(70)));
    f.apply(connect(a, b)).unwrap();
    f.apply(connect(b, a)).unwrap();
    let mut near = Nic::new(CellRate::OC3);
    let mut far = Nic::new(CellRate::OC3);
    assert!(
        near.open(vc(60), TrafficParams::ubr(0), 0) && far.open(vc(70), TrafficParams::ubr(0), 0)
    );
    let carry = |from: &mut OutputPort| from.pop(FOREVER, 1).map(|d| d.run);
    let now = FOREVER;
    near.ping(vc(60), true, 1, now).unwrap();
    f.receive(0, carry(near.output_mut()).unwrap(), now, |_| {});
    let answer = carry(f.output_mut(0).unwrap()).unwrap();
    assert!(matches!(
        near.receive(answer, now),
        NicEvent::LoopbackReturned { tag: 1, .. }
    ));
    assert!(f.output(1).unwrap().next_departure().is_none());
    near.ping(vc(60), false, 2, now).unwrap();
    f.receive(
        0,
        near.output_mut()
            .pop(FOREVER + Duration::from_secs(1), 1)
            .unwrap()
            .run,
        now,
        |_| {},
    );
    let request = carry(f.output_mut(1).unwrap()).unwrap();
    assert!(matches!(far.receive(request, now), NicEvent::Answered));
    f.receive(1, carry(far.output_mut()).unwrap(), now, |_| {});
    let later = FOREVER + Duration::from_secs(1);
    let answer = f.output_mut(0).unwrap().pop(later, 1).unwrap().run;
    assert!(matches!(
        near.receive(answer, now),
        NicEvent::LoopbackReturned { tag: 2, .. }
    ));
}

#[test]
fn a_link_that_is_down_drops_and_counts() {
    let mut f = fabric(2);
    f.apply(connect(PortVc::new(0, vc(60)), PortVc::new(1, vc(60))))
        .unwrap();
    f.receive(0, CellRun::whole(pdu(10), vc(60)), Instant::ZERO, |_| {});
    f.set_link(1, false);
    // What comes while the link is down neither waits nor leaves.
    f.receive(0, CellRun::whole(pdu(10), vc(60)), Instant::ZERO, |_| {});
    f.set_link(0, false);
    f.receive(0, CellRun::whole(pdu(10), vc(60)), Instant::ZERO, |_| {});
    let sent = f.output(1).unwrap().totals();
    assert_eq!(sent.dropped.of(DropReason::LinkDown), 2);
    assert_eq!((sent.cells_in, sent.cells_out), (2, 0));
    assert_eq!(f.output_mut(1).unwrap().next_departure(), None);
    assert_eq!(
        f.input_counters(0)
            .unwrap()
            .dropped
            .of(DropReason::LinkDown),
        1
    );
    f.set_link(0, true);
    f.set_link(1, true);
    f.receive(
        0,
        CellRun::whole(pdu(10), vc(60)),
        Instant::from_secs(1),
        |_| {},
    );
    assert_eq!(out(&mut f, 1).len(), 1);
}

/// Traffic of a queue in the random tests.
fn traffic_of(kind: u8) -> TrafficParams {
    match kind % 4 {
        0 => TrafficParams::cbr(30_000, 0),
        1 => TrafficParams {
            category: Some(ServiceCategory::NrtVbr),
            scr: 5_000,
            mbs: 20,
            ..TrafficParams::cbr(60_000, 0)
        },
        2 => TrafficParams {
            max_pcr: Some(50_000),
            ..TrafficParams::ubr(0)
        },
        _ => TrafficParams::ubr(0),
    }
}

proptest! {
    /// For every queue at all times in = out + dropped + queued; the limits hold; no cell is lost below them.
    #[test]
    fn conservation(
        kinds in proptest::collection::vec((any::<u8>(), any::<bool>()), 1..6),
        max in 20_u32..300,
        work in proptest::collection::vec((0_usize..6, 1_usize..3000, 0_u64..400, 1_u16..4), 1..60),
    ) {
        let mut port = OutputPort::new(CellRate::OC3, PortLimits { best_effort: Limits::of(400), ..PortLimits::SWITCH });
        let queues: Vec<_> = kinds.iter().enumerate().map(|(i, (kind, frames))| {
            let config = QueueConfig { frame_discard: *frames, limits: Some(Limits::of(max)), ..QueueConfig::host(traffic_of(*kind)) };
            port.open(vc(100 + i as u16), config).unwrap()
        }).collect();
        let mut now = Instant::ZERO;
        let mut offered = BTreeMap::new();
        for (which, len, gap, pops) in work {
            now += Duration::from_micros(gap);
            let queue = queues[which % queues.len()];
            let level = port.queued(queue);
            let run = CellRun::whole(pdu(len), vc(0));
            let count = run.count;
            let room = level + u32::from(count) < max - max / 4 && port.queued_total() + u32::from(count) < 300;
            let admission = port.enqueue(queue, run, now);
            prop_assert_eq!(admission.accepted + admission.dropped, count);
            // Below every threshold a frame is lost only if the frame before it was being discarded.
            if room && count > 0 && !kinds[which % queues.len()].1 {
                prop_assert_eq!(admission.dropped, 0);
            }
            *offered.entry(queue).or_insert(0) += u64::from(count);
            for _ in 0..pops {
                port.pop(now, 3);
            }
            for id in &queues {
                let (waiting, c) = (port.queued(*id), port.counters(*id).unwrap());
                prop_assert_eq!(c.cells_in, offered.get(id).copied().unwrap_or(0));
                prop_assert_eq!(c.cells_in, c.cells_out + c.dropped.total() + u64::from(waiting));
                prop_assert!(waiting <= max + 1);
            }
            prop_assert!(port.queued_total() <= 1024 + 400 + 6);
        }
        drain(&mut port, FOREVER);
        prop_assert_eq!(port.queued_total(), 0);
        let totals = port.totals();
        prop_assert_eq!(totals.cells_in, totals.cells_out + totals.dropped.total());
    }

    /// Backlogged best-effort VCs never differ by more than one cell.
    #[test]
    fn round_robin_is_fair(lens in proptest::collection::vec(500_usize..4000, 2..8)) {
        let mut port = OutputPort::new(CellRate::OC3, PortLimits::HOST);
        for (i, len) in lens.iter().enumerate() {
            let queue = port.open(vc(i as u16), QueueConfig::switch(TrafficParams::ubr(0))).unwrap();
            port.enqueue(queue, CellRun::whole(pdu(*len), vc(0)), Instant::ZERO);
        }
        let shortest = lens.iter().map(|len| (len + 8).div_ceil(48)).min().unwrap();
        let mut served = vec![0_usize; lens.len()];
        for (_, vc, _) in drain(&mut port, FOREVER).iter().take(shortest * lens.len()) {
            served[usize::from(vc.vci)] += 1;
            let (least, most) = (served.iter().min().unwrap(), served.iter().max().unwrap());
            prop_assert!(most - least <= 1);
        }
    }

    /// Whatever the arrivals, a shaped output conforms to its contract.
    #[test]
    fn shaped_output_conforms(
        pcr in 1_000_u32..150_000,
        arrivals in proptest::collection::vec((1_usize..3000, 0_u64..3000), 1..30),
        noise in any::<bool>(),
    ) {
        let contract = TrafficParams::cbr(pcr, 0);
        let mut port = OutputPort::new(CellRate::OC3, PortLimits::HOST);
        let cbr = port.open(vc(1), QueueConfig::host(contract)).unwrap();
        let ubr = port.open(vc(2), QueueConfig::host(TrafficParams::ubr(0))).unwrap();
        let mut upc = police::Policer::new(&contract, true.into(), police::DEFAULT_CDVT).unwrap();
        let mut now = Instant::ZERO;
        let mut cells = Vec::new();
        for (len, gap) in arrivals {
            cells.extend(drain(&mut port, now));
            port.enqueue(cbr, CellRun::whole(pdu(len), vc(1)), now);
            if noise {
                port.enqueue(ubr, CellRun::whole(pdu(len), vc(2)), now);
            }
            now += Duration::from_micros(gap);
        }
        cells.extend(drain(&mut port, FOREVER));
        for (at, _, _) in cells.iter().filter(|c| c.1 == vc(1)) {
            prop_assert_eq!(upc.police(false, *at, 0), police::Verdict::Pass);
        }
    }
}
