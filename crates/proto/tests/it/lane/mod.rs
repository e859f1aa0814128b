//! Whole ELANs in virtual time: clients and servers on the test network.

mod answers;
mod contracts;
mod faults;
mod groups;
mod hostile;
mod joining;
mod mux;
mod owners;
mod process;
mod recorded;
mod scale;
mod servers;
mod states;
mod traffic;

use aerostat_proto::lane::lecs::Elan;
use aerostat_proto::lane::{
    Bus, BusConfig, Lec, LecConfig, Lecs, LecsConfig, Les, LesConfig, Member, bus, lec, lecs, les,
};
use aerostat_proto::{AtmEvent, AtmUser, Duration, Instant, Machine, UserOutput};
use aerostat_testing::World;
use aerostat_testing::lane::{Node, Note, relay};
use aerostat_wire::lane::ElanName;
use aerostat_wire::mpoa::DeviceType;
use aerostat_wire::{AtmAddress, MacAddr};

pub(super) const LECS: usize = 0;
pub(super) const LES: usize = 1;
pub(super) const BUS: usize = 2;
/// User number of client 0.
pub(super) const LEC0: usize = 3;

pub(super) fn mac(n: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, n])
}
pub(super) fn address(n: u8) -> AtmAddress {
    let mut prefix = [0; 13];
    prefix[0] = 0x47;
    AtmAddress::from_parts(prefix, mac(n), 0)
}
pub(super) fn elan() -> ElanName {
    ElanName::new("elan1").unwrap()
}
pub(super) fn les_config() -> LesConfig {
    LesConfig {
        elan_id: 7,
        ..LesConfig::new(elan(), address(0xa1), address(0xa2))
    }
}
/// Configuration of client `n`; its MAC and ATM addresses derive from n + 1.
pub(super) fn lec_config(n: u8) -> LecConfig {
    LecConfig {
        seed: n.into(),
        ..LecConfig::new(elan(), address(n + 1), mac(n + 1))
    }
}
pub(super) fn new_lecs() -> Node {
    let config = LecsConfig {
        address: address(0xa0),
        well_known: true,
        elans: vec![Elan::new(elan(), address(0xa1))],
        ..LecsConfig::default()
    };
    Node::Lecs(Box::new(Lecs::new(config)))
}
pub(super) fn new_les() -> Node {
    Node::Les(Box::new(Les::new(les_config())))
}
pub(super) fn new_bus() -> Node {
    Node::Bus(Box::new(Bus::new(BusConfig::new(elan(), address(0xa2)))))
}

/// Running servers and the given clients, not started. Every message takes 1 ms.
pub(super) fn world(clients: Vec<LecConfig>) -> World<Node> {
    let mut w = World::new(Duration::from_millis(1));
    w.relay = Some(relay);
    for node in [new_lecs(), new_les(), new_bus()] {
        w.add(node);
    }
    for config in clients {
        w.add(Node::Lec(Box::new(Lec::new(config))));
    }
    for who in [LECS, LES, BUS] {
        start(&mut w, who);
    }
    w
}

/// The same, with `n` clients that have joined.
pub(super) fn joined_world(n: u8) -> World<Node> {
    let mut w = world((0..n).map(lec_config).collect());
    for who in LEC0..LEC0 + usize::from(n) {
        start(&mut w, who);
    }
    w.run_until(Instant::from_millis(500));
    for who in LEC0..LEC0 + usize::from(n) {
        assert_eq!(lec_of(&w, who).state(), lec::LecState::Operational);
    }
    w
}

pub(super) fn start(w: &mut World<Node>, who: usize) {
    w.with(who, |node, now| {
        let Ok(()) = match node {
            Node::Lec(m) => return m.handle_input(lec::Input::Start, now).unwrap(),
            Node::Les(m) => m.handle_input(les::Input::Start, now),
            Node::Bus(m) => m.handle_input(bus::Input::Start, now),
            Node::Lecs(m) => m.handle_input(lecs::Input::Start, now),
        };
    });
}
pub(super) fn stop(w: &mut World<Node>, who: usize) {
    w.with(who, |node, now| {
        let Ok(()) = match node {
            Node::Lec(m) => return m.handle_input(lec::Input::Stop, now).unwrap(),
            Node::Les(m) => m.handle_input(les::Input::Stop, now),
            Node::Bus(m) => m.handle_input(bus::Input::Stop, now),
            Node::Lecs(m) => m.handle_input(lecs::Input::Stop, now),
        };
    });
}
pub(super) fn lec_of(w: &World<Node>, who: usize) -> &Lec {
    match &w.users[who] {
        Node::Lec(m) => m,
        _ => panic!("user {who} is no LEC"),
    }
}
pub(super) fn les_of(w: &World<Node>) -> &Les {
    match &w.users[LES] {
        Node::Les(m) => m,
        _ => panic!("no LES"),
    }
}
pub(super) fn bus_of(w: &World<Node>) -> &Bus {
    match &w.users[BUS] {
        Node::Bus(m) => m,
        _ => panic!("no BUS"),
    }
}
/// Gives client `who` an input.
pub(super) fn tell(w: &mut World<Node>, who: usize, input: lec::Input<'_>) {
    w.with(who, |node, now| match node {
        Node::Lec(m) => m.handle_input(input, now).unwrap(),
        _ => panic!("user {who} is no LEC"),
    });
}

/// An Ethernet frame from client `from` with a number in it.
pub(super) fn frame(from: usize, to: MacAddr, number: u32) -> Vec<u8> {
    let mut frame = to.0.to_vec();
    frame.extend(mac((from - LEC0 + 1) as u8).0);
    frame.extend([8, 0]);
    frame.extend(number.to_be_bytes());
    frame.resize(100, 0x5a);
    frame
}
/// Sends a frame from client `from` to the MAC address of client `to`.
pub(super) fn unicast(w: &mut World<Node>, from: usize, to: usize, number: u32) {
    let frame = frame(from, mac((to - LEC0 + 1) as u8), number);
    tell(w, from, lec::Input::Transmit(frame));
}
/// Numbers of the frames that client `who` delivered since the last call; other notes are dropped.
pub(super) fn delivered(w: &mut World<Node>, who: usize) -> Vec<u32> {
    let notes = w.take_notes();
    let frames = notes.into_iter().filter_map(|(_, from, note)| match note {
        Note::Lec(lec::Output::Deliver(frame)) if from == who => Some(frame),
        _ => None,
    });
    frames
        .map(|frame| u32::from_be_bytes(frame[14..18].try_into().unwrap()))
        .collect()
}
/// Stops everything and checks that no connection is left.
pub(super) fn finish(mut w: World<Node>) {
    for who in (0..w.users.len()).rev() {
        stop(&mut w, who);
    }
    w.run_for(Duration::from_secs(5));
    assert_eq!(w.net.calls(), 0, "connections left over");
    assert_eq!(
        w.net.misuse, 0,
        "requests for connections that do not exist"
    );
    for user in &w.users {
        assert_eq!(user.poll_timeout(), None, "a stopped machine has a timer");
    }
}
/// Device type of an MPS that is client `n`.
pub(super) fn mps(n: u8) -> DeviceType {
    DeviceType::Mps {
        control: address(n + 1).with_selector(0x52),
        macs: vec![mac(n + 1)],
    }
}
