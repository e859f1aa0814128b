//! Queues that close while cells wait in them.

use super::police::{Policer, Policing, Verdict};
use super::*;

fn open(port: &mut OutputPort, vci: u16, traffic: TrafficParams, shaped: bool) -> QueueId {
    let config = QueueConfig {
        shaped,
        ..QueueConfig::switch(traffic)
    };
    port.open(Vc::new(0, vci), config).unwrap()
}

fn cell(vci: u16) -> CellRun {
    CellRun::whole(Pdu::new(vec![1; 40]), Vc::new(0, vci))
}

/// Takes all departures; returns the VCIs in order.
fn drain(port: &mut OutputPort) -> Vec<u16> {
    let mut order = Vec::new();
    while let Some(at) = port.next_departure() {
        let gone = port.pop(at, 1).unwrap();
        order.push(gone.run.vc.vci);
    }
    order
}

/// A queue that is opened again with the same number does not get the turn of the queue before it.
#[test]
fn a_new_queue_waits_its_own_turn() {
    let mut port = OutputPort::new(CellRate::OC3, PortLimits::SWITCH);
    let ubr = TrafficParams::ubr(0);
    let queues: Vec<_> = (0..3)
        .map(|n| open(&mut port, 32 + n, ubr, false))
        .collect();
    for (queue, vci) in queues.iter().zip(32..) {
        port.enqueue(*queue, cell(vci), Instant::ZERO);
    }
    port.close(queues[0]).unwrap();
    let again = open(&mut port, 40, ubr, false);
    assert_eq!(again, queues[0]);
    port.enqueue(again, cell(40), Instant::ZERO);
    assert_eq!(drain(&mut port), [33, 34, 40]);
    assert!(port.is_idle() && port.next_departure().is_none());
}

/// The same for queues that their shapers hold back, and the time of the next departure is that of an open queue.
#[test]
fn a_closed_queue_that_was_held_back_costs_no_time() {
    let mut port = OutputPort::new(CellRate::OC3, PortLimits::SWITCH);
    let slow = TrafficParams::cbr(10, 0);
    let queues: Vec<_> = (0..3)
        .map(|n| open(&mut port, 32 + n, slow, true))
        .collect();
    for (queue, vci) in queues.iter().zip(32..) {
        port.enqueue(*queue, cell(vci), Instant::ZERO);
        port.enqueue(*queue, cell(vci), Instant::ZERO);
    }
    for _ in 0..3 {
        let at = port.next_departure().unwrap();
        port.pop(at, 1).unwrap();
    }
    let held = port.next_departure().unwrap();
    port.close(queues[0]).unwrap();
    port.close(queues[1]).unwrap();
    assert!(port.next_departure().unwrap() >= held);
    assert_eq!(drain(&mut port), [34]);
    let totals = port.totals();
    assert_eq!(
        (totals.cells_in, totals.cells_out, totals.dropped.total()),
        (6, 4, 2)
    );
}

/// Entries of closed queues do not pile up while the port is busy with others.
#[test]
fn closed_queues_leave_no_memory_behind() {
    for shaped in [false, true] {
        let mut port = OutputPort::new(CellRate::OC3, PortLimits::SWITCH);
        let traffic = if shaped {
            TrafficParams::cbr(1, 0)
        } else {
            TrafficParams::ubr(0)
        };
        let stays = open(&mut port, 31, traffic, shaped);
        port.enqueue(stays, cell(31), Instant::ZERO);
        for _ in 0..10_000 {
            let queue = open(&mut port, 32, traffic, shaped);
            for _ in 0..2 {
                port.enqueue(queue, cell(32), Instant::ZERO);
            }
            if shaped {
                port.pop(port.next_departure().unwrap(), 1);
            }
            port.close(queue).unwrap();
            assert!(port.entries() < 200, "{}", port.entries());
        }
    }
}

/// Entries of closed queues are nothing that a line waits for: a port without cells has no next cell, and the next cell
/// of one with cells is not in the past.
#[test]
fn closed_queues_give_a_line_nothing_to_look_for() {
    let mut trains = Trains::default();
    trains.add_line(0, Duration::ZERO, true, true);
    let all = Discipline::ALL.into_iter();
    for (discipline, closed) in all.flat_map(|one| (0..100).map(move |closed| (one, closed))) {
        let mut port = OutputPort::new(CellRate::DS1, PortLimits::SWITCH);
        port.set_discipline(discipline);
        let ubr = TrafficParams::ubr(0);
        let stays = open(&mut port, 31, ubr, false);
        port.enqueue(stays, cell(31), Instant::ZERO);
        for _ in 0..closed {
            let queue = open(&mut port, 32, ubr, false);
            port.enqueue(queue, cell(32), Instant::ZERO);
            port.close(queue).unwrap();
        }
        let last = port.pop(Instant::ZERO, 1).unwrap();
        let none = port.next_matter(&trains, 0);
        assert_eq!(none, None, "{discipline:?}, {closed} closed queues");
        port.enqueue(stays, cell(31), Instant::ZERO);
        let next = port.next_matter(&trains, 0);
        assert!(
            next.is_none_or(|next| next > last.finish),
            "{discipline:?}, {closed} closed queues: {next:?}"
        );
    }
}

/// A label that is in use and a port without a free queue are different errors, and the limit has its number.
#[test]
fn a_port_without_a_free_queue_tells_its_limit() {
    let mut fabric = Fabric::new([1; 16]);
    let limits = PortLimits {
        queues: 2,
        ..PortLimits::SWITCH
    };
    (0..2).for_each(|_| {
        fabric.add_port(CellRate::OC3, limits);
    });
    let mut open = |n: u16| {
        let at = |port| PortVc::new(port, Vc::new(0, 32 + n));
        fabric.apply(FabricOp::Connect {
            from: at(0),
            to: at(1),
            traffic: TrafficParams::ubr(0),
            police: Policing::Off,
        })
    };
    assert_eq!([open(0), open(1)], [Ok(()); 2]);
    let third = PortVc::new(1, Vc::new(0, 34));
    assert_eq!(open(2), Err(FabricError::NoQueue(third, 2)));
    let text = FabricError::NoQueue(third, 2).to_string();
    assert_eq!(text, "no queue for 1.0.34: port 1 has 2, its limit");
}

/// A queue whose contract changes loses nothing and keeps the order, under every discipline, and from there on its
/// cells leave by the new contract, also if that has another class.
#[test]
fn a_contract_that_changes_keeps_what_waits() {
    let contracts = [
        "cbr:max_pcr=1000",
        "nrt-vbr:max_pcr=20000,scr=5000,mbs=4",
        "cbr:max_pcr=90000",
        "ubr:max_pcr=3000",
        "rt-vbr:max_pcr=9000,scr=9000,mbs=1",
        "cbr:max_pcr=7777",
    ];
    let traffic = |text: &str| text.parse::<TrafficParams>().expect("a contract");
    for discipline in Discipline::ALL {
        let mut port = OutputPort::new(CellRate::OC3, PortLimits::HOST);
        port.set_discipline(discipline);
        let first = QueueConfig::host(traffic(contracts[0]));
        let queue = port.open(vc(60), first).expect("room");
        let other = port.open(vc(61), QueueConfig::host(TrafficParams::ubr(0)));
        let other = other.expect("room");
        let mut now = Instant::from_secs(1);
        // 192 cells, in four PDUs.
        for _ in 0..4 {
            port.enqueue(queue, CellRun::whole(pdu(2296), vc(60)), now);
        }
        let mut left = 0;
        for contract in contracts.iter().cycle().take(24) {
            let traffic = traffic(contract);
            port.change(queue, &QueueConfig::host(traffic), now);
            assert_eq!(u64::from(port.queued(queue)) + left, 192, "{discipline:?}");
            port.enqueue(other, CellRun::whole(pdu(10), vc(61)), now);
            let mut policer =
                Policer::new(&traffic, Policing::All, Duration::ZERO).expect("a rate");
            for _ in 0..6 {
                let Some(at) = port.next_departure() else {
                    break;
                };
                now = now.max(at);
                let gone = port.pop(at, 1).expect("due");
                if gone.run.vc == vc(60) {
                    assert_eq!(u64::from(gone.run.first()), left % 48, "{discipline:?}");
                    // A cell of the other queue may hold one up.
                    let verdict = policer.police(false, at, 2 * 2832);
                    assert_eq!(verdict, Verdict::Pass, "{contract}");
                    left += 1;
                }
            }
        }
        while let Some(gone) = port.next_departure().and_then(|at| port.pop(at, 1)) {
            left += u64::from(gone.run.vc == vc(60));
        }
        let counters = port.counters(queue).expect("open");
        assert_eq!(
            (left, counters.cells_out, counters.dropped.total()),
            (192, 192, 0)
        );
        assert_eq!((port.queued_total(), port.next_departure()), (0, None));
    }
}
