//! Trunks whose ends find out their sides, and a switch that reports permanent connections.

use aerostat_node::atm::{CellRun, Pdu, RunReassembler};
use aerostat_node::switch::{Input, Permanent, PortKind, PortNo};
use aerostat_proto::interface::Phase;
use aerostat_proto::{ConnId, Machine as _, uni};
use aerostat_testing::switch::Net;
use aerostat_wire::ilmi::{self, Binding, Kind, Message, Oid, Pdu as Ilmi, Request, Value, mib};
use aerostat_wire::{Qos, Vc};

const A: ConnId = ConnId(1);
/// Port of a switch of the chain towards the next switch, and towards the previous one.
const AFTER: PortNo = PortNo(1);
const BEFORE: PortNo = PortNo(0);

fn role(net: &Net, switch: usize, port: PortNo) -> (PortKind, uni::Side, Phase) {
    let switch = &net.switches[switch];
    let kind = switch.port_infos().find(|info| info.port == port);
    let interface = switch.interface(port).unwrap();
    let side = interface.uni().params().side;
    (kind.unwrap().kind, side, interface.phase())
}

/// The configuration has the opposite sides: the switch with the greater identifier is the network side.
#[test]
fn two_switches_find_out_who_is_the_network() {
    let mut net = Net::chain_that_finds_out(3, &[0, 2]);
    let (user, network) = (uni::Side::User, uni::Side::Network);
    for k in 0..2 {
        let (one, other) = (role(&net, k, AFTER), role(&net, k + 1, BEFORE));
        assert_eq!(one, (PortKind::Trunk, user, Phase::Ready));
        assert_eq!(other, (PortKind::Trunk, network, Phase::Ready));
    }
    // The outer ports of the chain have no peer, so signalling does not begin there.
    assert_eq!(role(&net, 0, BEFORE).2, Phase::Down);
    net.listen(1);
    net.call(0, 1, A.0);
    net.run_s(2);
    assert!(net.hosts[0].connected(A));
    net.release(0, A);
    net.run_s(2);
    net.assert_clean();
    // After a restart of the middle switch the sides are found out again.
    net.restart_switch(1);
    net.run_s(40);
    net.call(0, 1, A.0 + 1);
    net.run_s(2);
    assert!(net.hosts[0].connected(ConnId(A.0 + 1)));
}

/// The ILMI daemon of each switch in turn dies and is replaced: trunks keep their sides, the call stands,
/// and a new call goes through while there is no daemon.
#[test]
fn calls_over_a_trunk_that_found_out_outlive_the_ilmi_daemons() {
    let mut net = Net::chain_with_ilmids(3, &[0, 2]);
    let before = [0, 1].map(|k| (role(&net, k, AFTER), role(&net, k + 1, BEFORE)));
    assert_eq!(before[0].0.2, Phase::Ready);
    net.listen(1);
    net.call(0, 1, A.0);
    net.run_s(2);
    assert!(net.hosts[0].connected(A));
    for k in [1, 0, 2] {
        net.kill_ilmid(k);
        net.run_s(3);
        let next = ConnId(A.0 + 1 + k as u32);
        net.call(0, 1, next.0);
        net.run_s(2);
        assert!(net.hosts[0].connected(next), "without ilmid of switch {k}");
        net.start_ilmid(k);
        net.run_s(30);
        let after = [0, 1].map(|k| (role(&net, k, AFTER), role(&net, k + 1, BEFORE)));
        assert_eq!(after, before, "switch {k}");
        assert_eq!(net.hosts[0].released(A), None, "switch {k}");
        net.release(0, next);
    }
    net.release(0, A);
    net.run_s(2);
    net.assert_clean();
}

/// Value of an object, read by a peer at a port.
fn read(net: &mut Net, port: PortNo, name: Oid) -> Option<Value> {
    let bindings = vec![Binding::new(name, Value::Null)];
    let request = Message(Ilmi::Request(Request::new(Kind::Get, 99, bindings)));
    let run = CellRun::whole(Pdu::new(request.encode()), Vc::ILMI);
    let mut now = net.now;
    let switch = &mut net.switches[0];
    switch.handle_input(Input::Cells(port, run), now).unwrap();
    while switch.poll_output().is_some() {}
    let mut receiver = RunReassembler::new(ilmi::MAX_MESSAGE as u16);
    let output = switch.fabric_mut().output_mut(port.0)?;
    loop {
        let Some(departure) = output.pop(now, u16::MAX) else {
            // The line is busy with earlier cells, or has no more to send.
            now = output.next_departure().filter(|at| *at > now)?;
            continue;
        };
        if departure.run.vc == Vc::ILMI
            && let Some(Ok(received)) = receiver.push(departure.run)
            && let Ok(Message(Ilmi::Request(mut response))) = Message::decode(received.pdu.sdu())
            && (response.kind, response.id) == (Kind::Response, 99)
        {
            let value = response.bindings.pop().map(|binding| binding.value);
            return value.filter(|_| response.index == 0);
        }
    }
}

#[test]
fn permanent_connections_are_in_the_tables() {
    let mut net = Net::chain_that_finds_out(2, &[0]);
    let (here, there) = (Vc::new(0, 100), Vc::new(0, 200));
    let host = net.port_of(0);
    let mut qos = Qos::cbr(1000, 0);
    qos.rx = Qos::cbr(70, 0).rx;
    // The first end is at the host, so traffic from the second end is `rx`.
    let new = Permanent::channel((host, here), (AFTER, there), qos);
    let status = mib::vcc(mib::VCC_STATUS, there);
    let count = mib::atm_layer(mib::CONFIGURED_VCCS);
    assert_eq!(read(&mut net, AFTER, status.clone()), None);
    net.switches[0].add_permanent(new).unwrap();
    let integer = |value: Option<Value>| value.and_then(|value| value.integer());
    assert_eq!(integer(read(&mut net, AFTER, status.clone())), Some(4));
    assert_eq!(integer(read(&mut net, AFTER, count)), Some(1));
    for (column, pcr) in [(mib::VCC_TX, 1000), (mib::VCC_RX, 70)] {
        let kind = read(&mut net, AFTER, mib::vcc(column, there));
        let descriptor = mib::traffic_descriptor(mib::NO_CLP_NO_SCR);
        assert_eq!(kind, Some(Value::Oid(descriptor)));
        let rate = read(&mut net, AFTER, mib::vcc(column + 1, there));
        assert_eq!(integer(rate), Some(pcr));
    }
    // The label of the other end has no meaning here.
    assert_eq!(read(&mut net, AFTER, mib::vcc(mib::VCC_STATUS, here)), None);
    let now = net.now;
    for (up, says) in [(false, 3), (true, 4)] {
        let link = Input::Link(host, up);
        net.switches[0].handle_input(link, now).unwrap();
        assert_eq!(integer(read(&mut net, AFTER, status.clone())), Some(says));
    }
    net.switches[0].remove_permanent((host, here)).unwrap();
    assert_eq!(read(&mut net, AFTER, status), None);
}
