//! Permanent connections through a switch.

use aerostat_node::atm::{CellRun, Pdu};
use aerostat_node::switch::{ConnectionQueue, Input, Permanent, PermanentError, PortNo};
use aerostat_proto::{AtmEvent, AtmRequest, Cause, ConnId, Machine};
use aerostat_testing::switch::Net;
use aerostat_wire::{Qos, TrafficParams, Vc};

const A: ConnId = ConnId(1);
const P: ConnId = ConnId(7);

/// Two hosts at one switch, at its ports 2 and 3.
fn net() -> Net {
    let mut net = Net::chain(1, &[0, 0]);
    net.listen(1);
    net
}

fn ends(net: &Net, a: Vc, b: Vc) -> [(PortNo, Vc); 2] {
    [(net.port_of(0), a), (net.port_of(1), b)]
}

fn joined(net: &mut Net, a: Vc, b: Vc, qos: Qos) -> Result<(), PermanentError> {
    let [from, to] = ends(net, a, b);
    net.switches[0].add_permanent(Permanent::channel(from, to, qos))
}

fn open(net: &mut Net, host: usize, vc: Vc, qos: Qos) {
    let open = AtmRequest::OpenPermanent { conn: P, vc, qos };
    net.ask(host, open).unwrap();
}

#[test]
fn data_passes_both_ways_until_it_is_removed() {
    let mut net = net();
    let (a, b) = (Vc::new(0, 100), Vc::new(3, 32));
    let qos = Qos {
        tx: TrafficParams::cbr(1000, 1500),
        rx: TrafficParams::ubr(1500),
    };
    joined(&mut net, a, b, qos).unwrap();
    open(&mut net, 0, a, qos);
    open(&mut net, 1, b, qos.reversed());
    net.send(0, P, b"to").unwrap();
    net.send(1, P, b"fro").unwrap();
    net.run_ms(10);
    assert_eq!(net.hosts[1].data, [(P, b"to".to_vec())]);
    assert_eq!(net.hosts[0].data, [(P, b"fro".to_vec())]);
    // One direction has a guarantee, the other has not.
    let reserved: Vec<_> = net.switches[0]
        .port_infos()
        .map(|port| port.reserved)
        .collect();
    assert_eq!(reserved[2..], [(0, 1000), (1000, 0)]);
    let info = net.switches[0].permanent().next().unwrap();
    assert_eq!((info.cells, info.policed), ([1, 1], [0, 0]));

    // Signalling goes down and comes up; the connection stays.
    let port = net.port_of(0);
    let now = net.now;
    net.switches[0]
        .handle_input(Input::Link(port, false), now)
        .unwrap();
    net.switches[0]
        .handle_input(Input::Link(port, true), now)
        .unwrap();
    net.send(0, P, b"still").unwrap();
    net.run_s(30);
    assert_eq!(net.hosts[1].data.len(), 2);

    let end = (net.port_of(1), b);
    assert_eq!(net.switches[0].remove_permanent(end).unwrap().qos, qos);
    assert_eq!(net.switches[0].remove_permanent(end), None);
    net.send(0, P, b"lost").unwrap();
    net.run_ms(10);
    assert_eq!(net.hosts[1].data.len(), 2);
    for host in 0..2 {
        net.release(host, P);
    }
    net.run_ms(100);
    net.assert_clean();
}

#[test]
fn labels_are_of_calls_or_permanent() {
    let mut net = net();
    let (first, second) = (Vc::new(0, 32), Vc::new(0, 33));
    joined(&mut net, first, first, Qos::ubr(1500)).unwrap();
    net.call(0, 1, 1);
    net.run_ms(100);
    let label = net.hosts[0].events.iter().find_map(|event| match event {
        AtmEvent::Connected { vc, .. } => Some(*vc),
        _ => None,
    });
    assert_eq!(label, Some(second), "the permanent one is left out");
    for taken in [first, second] {
        let port = net.port_of(0);
        let error = PermanentError::Label(port, taken);
        assert_eq!(
            joined(&mut net, taken, Vc::new(0, 99), Qos::ubr(1500)),
            Err(error)
        );
    }
    // A host cannot use the label of its call, or a label of signalling.
    for label in [second, Vc::SIGNALLING] {
        let (conn, vc, qos) = (P, label, Qos::ubr(1500));
        let _ = net.ask(0, AtmRequest::OpenPermanent { conn, vc, qos });
        assert_eq!(net.hosts[0].released(P), Some(Cause::VC_UNAVAILABLE));
        net.hosts[0].events.clear();
    }
    net.release(0, A);
    let end = (net.port_of(0), first);
    assert!(net.switches[0].remove_permanent(end).is_some());
    net.run_ms(100);
    net.assert_clean();
}

#[test]
fn admission_counts_both() {
    let mut net = net();
    let half = Qos::cbr(180_000, 1500);
    let label = |vci| Vc::new(0, vci);
    joined(&mut net, label(100), label(100), half).unwrap();
    net.call_with(0, 1, 1, half, false);
    net.run_ms(100);
    assert_eq!(net.hosts[0].released(A), Some(Cause::RATE_UNAVAILABLE));
    let rate = PermanentError::Rate(net.port_of(0));
    assert_eq!(joined(&mut net, label(101), label(101), half), Err(rate));
    // The refused connection holds nothing.
    joined(&mut net, label(101), label(101), Qos::ubr(1500)).unwrap();
    for vci in [100, 101] {
        let end = (net.port_of(0), label(vci));
        assert!(net.switches[0].remove_permanent(end).is_some());
    }
    net.call_with(0, 1, 2, half, false);
    net.run_ms(100);
    assert!(net.hosts[0].connected(ConnId(2)));
    net.release(0, ConnId(2));
    net.run_ms(100);
    net.assert_clean();
}

#[test]
fn a_path_carries_every_channel_and_excludes_single_ones() {
    let mut net = net();
    let path = |net: &Net, a, b, police: bool| Permanent {
        queue: ConnectionQueue::DEFAULT,
        ends: ends(net, Vc::new(a, 0), Vc::new(b, 0)),
        qos: Qos::cbr(1000, 0),
        path: true,
        police: [Some(police.into()); 2],
    };
    let new = path(&net, 5, 9, true);
    net.switches[0].add_permanent(new).unwrap();
    let (to, from) = (net.port_of(1), net.port_of(0));
    for refused in [path(&net, 5, 8, false), path(&net, 0, 8, false)] {
        let error = PermanentError::Label(from, refused.ends[0].1);
        assert_eq!(net.switches[0].add_permanent(refused), Err(error));
    }
    let inside = Vc::new(5, 77);
    let error = PermanentError::Label(from, inside);
    assert_eq!(
        joined(&mut net, inside, Vc::new(0, 77), Qos::ubr(0)),
        Err(error)
    );
    joined(&mut net, Vc::new(6, 77), Vc::new(6, 77), Qos::ubr(0)).unwrap();
    let error = PermanentError::Label(from, Vc::new(6, 0));
    let over = path(&net, 6, 7, false);
    assert_eq!(net.switches[0].add_permanent(over), Err(error));

    // Any VCI passes, with the VPI of the other side; traffic above the contract does not.
    let run = CellRun::whole(Pdu::new(vec![7; 100]), Vc::new(5, 4321));
    let cells = u64::from(run.count);
    let now = net.now;
    for _ in 0..2 {
        let input = Input::Cells(from, run.clone());
        net.switches[0].handle_input(input, now).unwrap();
    }
    let output = net.switches[0].fabric_mut().output_mut(to.0).unwrap();
    let mut left = 0;
    while let Some(departure) = output.pop(now + aerostat_proto::Duration::from_secs(1), 1) {
        assert_eq!(departure.run.vc, Vc::new(9, 4321));
        left += u64::from(departure.run.count);
    }
    let info = net.switches[0].permanent().next().unwrap();
    assert_eq!(info.cells, [2 * cells, 0]);
    assert_eq!(info.policed, [2 * cells - left, 0]);
    assert!(left > 0 && info.policed[0] > 0, "{info:?}");

    for vpi in [5, 6] {
        let end = (from, Vc::new(vpi, 77));
        assert!(net.switches[0].remove_permanent(end).is_some());
    }
    joined(&mut net, inside, inside, Qos::ubr(0)).unwrap();
    assert!(net.switches[0].remove_permanent((to, inside)).is_some());
    net.assert_clean();
}

#[test]
fn a_port_that_does_not_exist() {
    let mut net = net();
    let (vc, none) = (Vc::new(0, 50), PortNo(9));
    let new = Permanent::channel((net.port_of(0), vc), (none, vc), Qos::cbr(5, 0));
    let refused = net.switches[0].add_permanent(new);
    assert_eq!(refused, Err(PermanentError::NoPort(none)));
    let loop_back = Permanent::channel((net.port_of(0), vc), (net.port_of(0), vc), Qos::ubr(0));
    let refused = net.switches[0].add_permanent(loop_back);
    assert_eq!(refused, Err(PermanentError::Label(net.port_of(0), vc)));
    net.assert_clean();
}
