//! Two MPOA clients and the real server of the router between them, on a small ATM network: flows in both directions,
//! crossing calls, crashes, lost packets. In this test, LANE is a wire between the hosts, and the router answers at
//! once.

use aerostat_proto::mpoa::mpc::{Input, Mpc, MpcConfig, MpcSnapshot, Mpcd, Outbound, Output};
use aerostat_proto::mpoa::mps::{self, Interface, Mps, MpsConfig, RouteResult};
use aerostat_proto::mpoa::split::FromMpcd;
use aerostat_proto::split::codec::Message as _;
use aerostat_proto::split::{
    FromDaemon, Numbered, Process, ProcessEvent, ProcessInput, ProcessOutput,
};
use aerostat_proto::{
    AtmEvent, AtmRequest, AtmUser, Duration, Instant, Machine, Trace, UserOutput,
};
use aerostat_testing::World;
use aerostat_wire::mpoa::{self, DeviceType, DllHeader};
use aerostat_wire::nhrp::ProtocolAddress;
use aerostat_wire::{AtmAddress, MacAddr};
use core::cell::Cell;
use core::convert::Infallible;
use core::net::{IpAddr, Ipv4Addr};
use std::collections::VecDeque;

const MPS: AtmAddress = address(0x21, 0x52);

const fn address(id: u8, selector: u8) -> AtmAddress {
    let mut octets = [0; 20];
    octets[0] = 0x47;
    octets[18] = id;
    octets[19] = selector;
    AtmAddress(octets)
}

/// An IPv4/UDP packet with a correct checksum.
fn packet(from: IpAddr, to: IpAddr, ttl: u8, payload: usize) -> Vec<u8> {
    let total = (20 + payload) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(total.to_be_bytes());
    packet.extend([0, 1, 0, 0, ttl, 17, 0, 0]);
    for address in [from, to] {
        packet.extend(ProtocolAddress::from(address).octets());
    }
    let sum = aerostat_wire::nhrp::internet_checksum(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.resize(usize::from(total), 0x5a);
    packet
}

thread_local! {
    /// True if new clients have their daemon on the other side of a process boundary.
    static SPLIT: Cell<bool> = const { Cell::new(false) };
}

/// A client; with a boundary, every message between its halves is encoded.
struct Client {
    mpc: Mpc,
    split: bool,
    mpcd: Option<Process<Mpcd>>,
    out: VecDeque<Output>,
}

impl Client {
    fn new(config: MpcConfig) -> Self {
        let split = SPLIT.get();
        let new = if split { Mpc::split } else { Mpc::new };
        let mut client = Self {
            mpc: new(config),
            split,
            mpcd: None,
            out: VecDeque::new(),
        };
        if split {
            client.input(Input::Mpcd(ProcessEvent::Came), Instant::ZERO);
        }
        client
    }
    fn input(&mut self, input: Input<'_>, now: Instant) {
        match input {
            Input::Mpcd(ProcessEvent::Gone) => self.mpcd = None,
            Input::Mpcd(ProcessEvent::Came) if self.split => self.mpcd = Some(Process::default()),
            _ => {}
        }
        self.mpc.handle_input(input, now).expect("accepted");
        self.exchange(now);
    }
    fn timeout(&mut self, now: Instant) {
        self.mpc.handle_timeout(now);
        self.exchange(now);
        if let Some(mpcd) = &mut self.mpcd {
            mpcd.handle_timeout(now);
        }
        self.exchange(now);
    }
    fn deadline(&self) -> Option<Instant> {
        let daemon = self.mpcd.as_ref().and_then(Process::poll_timeout);
        self.mpc.poll_timeout().into_iter().chain(daemon).min()
    }
    /// Carries the messages between the halves until neither has another.
    fn exchange(&mut self, now: Instant) {
        loop {
            while let Some(output) = self.mpc.poll_output() {
                let Output::Mpcd(message) = output else {
                    self.out.push_back(output);
                    continue;
                };
                let frame = Numbered { number: 0, message }.encode();
                let frame = Numbered::decode(&frame).expect("a message");
                if let Some(mpcd) = &mut self.mpcd {
                    let input = ProcessInput::Frame(frame);
                    mpcd.handle_input(input, now).expect("messages are taken");
                }
            }
            let event = match self.mpcd.as_mut().and_then(Process::poll_output) {
                Some(ProcessOutput::Frame(frame)) => {
                    let frame: Numbered<FromDaemon<FromMpcd>> =
                        Numbered::decode(&frame.encode()).expect("a message");
                    ProcessEvent::Said(frame.message)
                }
                Some(ProcessOutput::Exit) => {
                    self.mpcd = None;
                    ProcessEvent::Gone
                }
                None => return,
            };
            let event = Input::Mpcd(event);
            self.mpc.handle_input(event, now).expect("accepted");
        }
    }
}

/// Addresses of host `n` (1 or 2) on network `n`.
const fn control(n: u8) -> AtmAddress {
    address(0x10 + n, 0x50)
}
const fn data(n: u8) -> AtmAddress {
    address(0x10 + n, 0x51)
}
const fn ip(n: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, n, 0, 11))
}
const fn mac(n: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, 0x10 + n])
}
const fn router_mac(n: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, 0x20 + n])
}

enum User {
    Host(Box<Client>),
    Router(Box<Mps>, Vec<mps::Output>),
}

/// Notes of hosts.
enum Note {
    Lane,
    Delivered(Vec<u8>),
    Told(Trace),
}

impl Machine for User {
    type Input<'a> = AtmEvent<&'a [u8]>;
    type Output = UserOutput<Note>;
    type Refusal = Infallible;

    fn handle_input(&mut self, event: AtmEvent<&[u8]>, now: Instant) -> Result<(), Infallible> {
        self.event(event, now);
        Ok(())
    }
    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Host(mpc) => mpc.timeout(now),
            Self::Router(mps, asked) => {
                mps.handle_timeout(now);
                // The router answers the questions of its server from tables with two rows.
                loop {
                    while let Some(output) = mps.poll_output() {
                        asked.push(output);
                    }
                    let questions: Vec<mps::Input<'_>> = asked.iter().filter_map(reply).collect();
                    if questions.is_empty() {
                        break;
                    }
                    asked.retain(|output| reply(output).is_none());
                    for input in questions {
                        mps.handle_input(input, now).expect("answers are taken");
                    }
                }
            }
        }
    }
    fn poll_output(&mut self) -> Option<UserOutput<Note>> {
        match self {
            Self::Host(mpc) => loop {
                return Some(match mpc.out.pop_front()? {
                    Output::Atm(request) => UserOutput::Atm(request),
                    Output::Deliver { frame, .. } => UserOutput::Other(Note::Delivered(frame)),
                    Output::Trace(trace) => UserOutput::Other(Note::Told(trace)),
                    Output::SetTlvs { .. } | Output::Discover { .. } | Output::Mpcd(_) => continue,
                });
            },
            Self::Router(mps, asked) => loop {
                let next = if asked.is_empty() {
                    mps.poll_output()?
                } else {
                    asked.remove(0)
                };
                if let mps::Output::Atm(request) = next {
                    return Some(UserOutput::Atm(request));
                }
            },
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Host(mpc) => mpc.deadline(),
            Self::Router(mps, _) => mps.poll_timeout(),
        }
    }
}

impl AtmUser for User {
    type Other = Note;

    fn event(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        match self {
            Self::Host(mpc) => mpc.input(Input::Atm(event), now),
            Self::Router(mps, _) => {
                mps.handle_input(mps::Input::Atm(event), now)
                    .expect("events are taken");
            }
        }
    }
    fn sort(output: UserOutput<Note>) -> UserOutput<Note> {
        output
    }
}

/// The router's routes, ARP and LE_ARP.
fn reply(output: &mps::Output) -> Option<mps::Input<'static>> {
    match output {
        mps::Output::Router(mps::ToRouter::LookupRoute { query, dst }) => {
            let itf = u32::from(ProtocolAddress::from(*dst).octets()[1]);
            let result = Some(RouteResult::Connected { itf });
            Some(mps::Input::Router(mps::FromRouter::Route {
                query: *query,
                result,
                covers: 32,
            }))
        }
        mps::Output::Router(mps::ToRouter::ResolveL2 { query, itf, .. }) => {
            let n = *itf as u8;
            let device = DeviceType::Mpc {
                control: control(n),
            };
            let tlvs = vec![device.to_tlv()];
            let answer = Ok((mac(n), address(0x10 + n, 0), tlvs));
            Some(mps::Input::Router(mps::FromRouter::L2 {
                query: *query,
                answer,
            }))
        }
        mps::Output::Atm(_)
        | mps::Output::Router(mps::ToRouter::SetTlvs { .. })
        | mps::Output::ForwardIp(_)
        | mps::Output::Process(_)
        | mps::Output::Trace(_) => None,
    }
}

fn router() -> User {
    let interface = |n: u8| Interface {
        itf: n.into(),
        ip: Ipv4Addr::new(10, n, 0, 1),
        prefix_len: 24,
        ip6: None,
        mac: router_mac(n),
        elan_id: n.into(),
        lane: true,
    };
    let mut config = MpsConfig::new(
        MPS,
        address(0x21, 0x53),
        vec![interface(1), interface(2)],
        1,
    );
    config.terminate = false;
    let mut mps = Mps::new(config);
    mps.handle_input(mps::Input::Start, Instant::ZERO)
        .expect("starts");
    User::Router(Box::new(mps), Vec::new())
}

fn host(n: u8, tag: bool) -> User {
    let mut config = MpcConfig::new(control(n), data(n));
    (config.tag, config.seed) = (tag, n.into());
    let mut mpc = Client::new(config);
    let device = DeviceType::Mps {
        control: MPS,
        macs: vec![router_mac(n)],
    };
    let tlvs = vec![device.to_tlv()];
    for input in [
        Input::Start,
        Input::LecUp {
            itf: 0,
            elan_id: n.into(),
            mtu: 1500,
        },
        Input::Associate {
            itf: 0,
            mac: router_mac(n),
            atm: address(0x21, 0),
            tlvs,
        },
    ] {
        mpc.input(input, Instant::ZERO);
    }
    User::Host(Box::new(mpc))
}

/// Two hosts (users 0 and 1) and the router (user 2).
fn world(tag: bool) -> World<User> {
    let mut world = World::new(Duration::from_micros(500));
    for user in [host(1, tag), host(2, tag), router()] {
        let who = world.add(user);
        // Delivers the outputs of the start.
        world.with(who, |_, _| ());
    }
    world
}

/// A frame of a host's stack.
fn send(world: &mut World<User>, who: usize, frame: Vec<u8>) {
    let path = world.with(who, |user, now| {
        let User::Host(client) = user else {
            panic!("no host")
        };
        let path = client.mpc.outbound(0, frame, now);
        client.exchange(now);
        path
    });
    match path {
        Outbound::Lane(_) => world.notes.push((world.now, who, Note::Lane)),
        Outbound::Shortcut { conn, sdu } => {
            let sdu = sdu.into_vec();
            let send = AtmRequest::Send { conn, sdu };
            world.net.request(who, send, world.now);
        }
    }
}

/// `count` packets from host `who`+1 to the other, 50 ms apart.
fn talk(world: &mut World<User>, who: usize, count: u32) {
    let n = who as u8 + 1;
    for _ in 0..count {
        let packet = packet(ip(n), ip(3 - n), 64, 100);
        let frame = [
            &DllHeader::ethernet_ipv4(router_mac(n), mac(n)),
            &packet[..],
        ]
        .concat();
        send(world, who, frame);
        world.run_for(Duration::from_millis(50));
    }
}

fn snapshot(world: &World<User>, who: usize) -> MpcSnapshot {
    match &world.users[who] {
        User::Host(client) => client.mpc.snapshot(world.now),
        User::Router(..) => panic!("no host"),
    }
}

fn told(notes: &[(Instant, usize, Note)], who: usize, name: &str) -> usize {
    let of = |(_, user, note): &(Instant, usize, Note)| match note {
        Note::Told(trace) => *user == who && trace.name == name,
        Note::Lane | Note::Delivered(_) => false,
    };
    notes.iter().filter(|note| of(note)).count()
}

/// Packets that took LANE, and packets delivered from shortcuts.
fn paths(notes: &[(Instant, usize, Note)]) -> (usize, usize) {
    let count = |f: fn(&Note) -> bool| notes.iter().filter(|(_, _, note)| f(note)).count();
    (
        count(|n| matches!(n, Note::Lane)),
        count(|n| matches!(n, Note::Delivered(_))),
    )
}

#[test]
fn a_flow_moves_to_its_shortcut_and_so_does_its_answer() {
    for tag in [true, false] {
        let mut world = world(tag);
        talk(&mut world, 0, 50);
        let notes = world.take_notes();
        let (lane, delivered) = paths(&notes);
        assert!(
            (10..=11).contains(&lane) && lane + delivered == 50,
            "{lane} {delivered}"
        );
        for name in [
            "mpc.flow.detected",
            "mpc.resolution.answered",
            "mpc.shortcut.first",
        ] {
            assert_eq!(told(&notes, 0, name), 1, "{name}");
        }
        assert_eq!(told(&notes, 1, "mpc.imposition.accepted"), 1);
        let Some((_, 1, Note::Delivered(frame))) = notes
            .iter()
            .find(|(_, _, note)| matches!(note, Note::Delivered(_)))
        else {
            panic!("not delivered to host 2");
        };
        let header = DllHeader::ethernet_ipv4(mac(2), router_mac(2));
        assert_eq!(
            *frame,
            [&header, &packet(ip(1), ip(2), 63, 100)[..]].concat()
        );
        assert_eq!(snapshot(&world, 0).ingress[0].tag.is_some(), tag);

        talk(&mut world, 1, 50);
        let notes = world.take_notes();
        assert_eq!(told(&notes, 1, "mpc.shortcut.first"), 1);
        assert_eq!(
            told(&notes, 1, "mpc.shortcut.up"),
            0,
            "the way back uses the same connection"
        );
        for who in [0, 1] {
            let state = snapshot(&world, who);
            assert_eq!(
                (
                    state.shortcuts.len(),
                    state.ingress.len(),
                    state.egress.len()
                ),
                (1, 1, 1)
            );
            assert_eq!(state.ingress[0].vc, state.egress[0].vc);
        }
    }
}

#[test]
fn keep_alives_and_refresh_hold_a_long_flow() {
    let mut world = world(true);
    talk(&mut world, 0, 20);
    world.take_notes();
    // Holding time 1200 s: refreshed at 800 s, 1600 s and so on while traffic goes on.
    for _ in 0..200 {
        talk(&mut world, 0, 15);
        world.run_for(Duration::from_secs(10));
    }
    let notes = world.take_notes();
    assert_eq!(paths(&notes), (0, 3000), "no packet left the shortcut");
    assert!(told(&notes, 0, "mpc.flow.detected") >= 2);
    assert_eq!(
        told(&notes, 0, "mpc.keepalive.dead") + told(&notes, 1, "mpc.keepalive.dead"),
        0
    );
    // Without traffic all entries end by themselves.
    world.run_for(Duration::from_secs(3000));
    for who in [0, 1] {
        let state = snapshot(&world, who);
        assert_eq!(
            (
                state.shortcuts.len(),
                state.ingress.len(),
                state.egress.len()
            ),
            (0, 0, 0)
        );
    }
}

#[test]
fn both_ways_at_once() {
    let mut world = world(true);
    for _ in 0..40 {
        talk(&mut world, 0, 1);
        talk(&mut world, 1, 1);
    }
    let (lane, delivered) = paths(&world.take_notes());
    assert!(lane <= 24 && lane + delivered == 80, "{lane} {delivered}");
    for who in [0, 1] {
        assert!(matches!(snapshot(&world, who).shortcuts.len(), 1..=2));
        assert_eq!(snapshot(&world, who).counters.egress_misses, 0);
    }
}

#[test]
fn a_crashed_peer_is_left_and_found_again() {
    let mut world = world(true);
    talk(&mut world, 0, 20);
    world.replace(1, host(2, true));
    world.with(1, |_, _| ());
    world.take_notes();
    // The connection is gone: packets go by LANE, then over a new call; they find no entry, and the purge says so.
    talk(&mut world, 0, 300);
    let notes = world.take_notes();
    let (lane, delivered) = paths(&notes);
    assert!(told(&notes, 1, "mpc.purge.data_plane") >= 1);
    assert!(
        delivered > 100,
        "{lane} over LANE, {delivered} over the shortcut"
    );
    assert!(
        lane + delivered >= 298,
        "few are lost: {lane} + {delivered}"
    );
}

#[test]
fn the_daemon_of_one_end_dies_and_returns() {
    let mut world = world(true);
    talk(&mut world, 0, 20);
    let tell = |world: &mut World<User>, input: fn() -> Input<'static>| {
        world.with(0, |user, now| {
            let User::Host(mpc) = user else {
                panic!("no host")
            };
            mpc.input(input(), now);
        });
    };
    tell(&mut world, || Input::Mpcd(ProcessEvent::Gone));
    world.take_notes();
    talk(&mut world, 0, 20);
    assert_eq!(paths(&world.take_notes()), (20, 0));
    tell(&mut world, || Input::Mpcd(ProcessEvent::Came));
    talk(&mut world, 0, 20);
    let notes = world.take_notes();
    let (lane, delivered) = paths(&notes);
    assert!(lane <= 2 && lane + delivered == 20, "{lane} over LANE");
    let asked = [
        "mpc.flow.detected",
        "mpc.resolution.sent",
        "mpc.purge.data_plane",
    ];
    for name in asked {
        assert_eq!(told(&notes, 0, name) + told(&notes, 1, name), 0, "{name}");
    }
}

#[test]
fn a_silent_router_ends_the_shortcuts() {
    let mut world = world(true);
    talk(&mut world, 0, 20);
    world.replace(2, router());
    // The new server has no state of the clients and sends them nothing.
    world.with(2, |_, _| ());
    world.take_notes();
    world.run_for(Duration::from_secs(60));
    let notes = world.take_notes();
    for who in [0, 1] {
        assert_eq!(told(&notes, who, "mpc.keepalive.dead"), 1);
        let state = snapshot(&world, who);
        assert_eq!((state.shortcuts.len(), state.egress.len()), (0, 0));
    }
    talk(&mut world, 0, 30);
    let (lane, delivered) = paths(&world.take_notes());
    assert!(
        lane <= 11 && lane + delivered == 30,
        "and the flow finds the new server"
    );
}

#[test]
fn lost_control_packets_only_delay() {
    let mut world = world(true);
    // Loses about a third of the control packets.
    let mut random = 12345_u32;
    world.net.loss = Some(Box::new(move |sdu| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        sdu.starts_with(&aerostat_wire::nhrp::LLC) && random >> 24 < 85
    }));
    for _ in 0..40 {
        talk(&mut world, 0, 15);
        world.run_for(Duration::from_secs(5));
    }
    let notes = world.take_notes();
    assert!(told(&notes, 0, "mpc.shortcut.first") >= 1);
}

#[test]
fn the_same_with_the_daemon_in_a_process_of_its_own() {
    SPLIT.set(true);
    let tests: &[fn()] = &[
        a_flow_moves_to_its_shortcut_and_so_does_its_answer,
        keep_alives_and_refresh_hold_a_long_flow,
        both_ways_at_once,
        a_crashed_peer_is_left_and_found_again,
        the_daemon_of_one_end_dies_and_returns,
        a_silent_router_ends_the_shortcuts,
        lost_control_packets_only_delay,
        a_call_and_a_download_between_the_same_hosts,
    ];
    tests.iter().for_each(|test| test());
}

/// Thesis §6.1.3: one resolution per flow; all except the first refresh the entries of the servers and of the egress.
#[test]
fn a_call_and_a_download_between_the_same_hosts() {
    let mut world = world(true);
    let entry = "10.2.0.11:5004 udp tx=200,0,300 rx=tx";
    let entry: mpoa::QosEntry = entry.parse().expect("an entry");
    world.with(0, |user, now| {
        let User::Host(mpc) = user else {
            panic!("no host")
        };
        let (filter, qos) = (entry.filter, Some(entry.qos));
        mpc.input(Input::SetQos { filter, qos }, now);
    });
    let send = |world: &mut World<User>, port: [u8; 2]| {
        let mut packet = packet(ip(1), ip(2), 64, 100);
        packet[22..24].copy_from_slice(&port);
        let header = DllHeader::ethernet_ipv4(router_mac(1), mac(1));
        let frame = [&header[..], &packet].concat();
        send(world, 0, frame);
        world.run_for(Duration::from_millis(20));
    };
    for _ in 0..30 {
        send(&mut world, [0x13, 0x8c]);
        send(&mut world, [0, 80]);
    }
    let (lane, delivered) = paths(&world.take_notes());
    assert!(lane <= 24 && lane + delivered == 60, "{lane} {delivered}");
    let (from, to) = (snapshot(&world, 0), snapshot(&world, 1));
    assert_eq!((from.ingress.len(), from.shortcuts.len()), (2, 2));
    assert_eq!(from.counters.resolution_requests_sent, 2);
    assert_eq!(to.egress.len(), 1, "one entry at the egress");
    assert_eq!(to.counters.imposition_requests, 2, "refreshed");
    assert_eq!(from.ingress[0].tag, from.ingress[1].tag);
    assert_ne!(from.ingress[0].vc, from.ingress[1].vc);
    assert_eq!(to.counters.egress_misses, 0);
    // The server keeps the data of the latest request.
    talk(&mut world, 1, 20);
    let back = &snapshot(&world, 1).ingress[0];
    let plain = from.ingress.iter().find(|row| row.qos.is_none());
    assert_eq!(back.vc, plain.and_then(|row| row.vc), "the way back");
}
