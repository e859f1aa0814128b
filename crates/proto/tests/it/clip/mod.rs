//! A subnet in virtual time: a server, clients, loss, crashes, and peers that follow the older standard or no standard.

mod any;
mod hops;
mod permanent;
mod recovery;
mod sessions;
mod sizes;
mod ways;

use aerostat_proto::clip::*;
use aerostat_proto::{
    AtmEvent, AtmRequest, AtmUser, ConnId, Duration, Instant, Machine, UserOutput,
};
use aerostat_testing::World;
use aerostat_wire::atmarp::{AtmArp, Operation, Party};
use aerostat_wire::{AtmAddress, MacAddr, Qos, Sap, Vc};
use core::convert::Infallible;
use core::net::Ipv4Addr;
use core::ops::{Deref, DerefMut};
use std::collections::VecDeque;

/// A member of the subnet as a user of the network.
struct Member {
    clip: Clip,
    /// Requests that the test makes in its name.
    forged: VecDeque<AtmRequest>,
}

impl Member {
    fn new(config: Config) -> Self {
        Self {
            clip: Clip::new(config),
            forged: VecDeque::new(),
        }
    }
    fn request(&mut self, request: AtmRequest) {
        self.forged.push_back(request);
    }
}
impl Deref for Member {
    type Target = Clip;
    fn deref(&self) -> &Clip {
        &self.clip
    }
}
impl DerefMut for Member {
    fn deref_mut(&mut self) -> &mut Clip {
        &mut self.clip
    }
}

/// The connection of a client to its server.
fn to_server(clip: &Clip, now: Instant) -> Option<ConnId> {
    let conns = clip.snapshot(now).conns;
    let row = conns
        .iter()
        .find(|row| row.role == "server" && !row.incoming);
    row.map(|row| row.conn)
}

impl Machine for Member {
    type Input<'a> = Input<'a>;
    type Output = UserOutput<Output>;
    type Refusal = Infallible;

    fn handle_input(&mut self, input: Input<'_>, now: Instant) -> Result<(), Infallible> {
        self.clip.handle_input(input, now)
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.clip.handle_timeout(now);
    }
    fn poll_output(&mut self) -> Option<UserOutput<Output>> {
        if let Some(request) = self.forged.pop_front() {
            return Some(UserOutput::Atm(request));
        }
        Some(match self.clip.poll_output()? {
            Output::Atm(request) => UserOutput::Atm(request),
            other => UserOutput::Other(other),
        })
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.clip.poll_timeout()
    }
}

impl AtmUser for Member {
    type Other = Output;

    fn event(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        self.clip.event(event, now);
    }
    fn sort(output: UserOutput<Output>) -> UserOutput<Output> {
        output
    }
}

fn ip(n: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 9, 0, n as u8)
}
fn atm(n: usize) -> AtmAddress {
    AtmAddress::from_parts([0x47; 13], MacAddr([2, 0, 0, 0, 0, n as u8]), 0x60)
}
fn server() -> Config {
    Config {
        serve: true,
        ..Config::new(atm(0), ip(0))
    }
}
/// Client `n`, from 1.
fn client(n: usize) -> Config {
    Config {
        servers: vec![atm(0)],
        ..Config::new(atm(n), ip(n))
    }
}

type Net = World<Member>;

fn world(configs: Vec<Config>) -> Net {
    let mut w = World::new(Duration::from_millis(1));
    for config in configs {
        w.add(Member::new(config));
    }
    for who in 0..w.users.len() {
        start(&mut w, who);
    }
    w.run_for(Duration::from_secs(1));
    w
}
fn start(w: &mut Net, who: usize) {
    w.with(who, |clip, now| {
        clip.handle_input(Input::Start, now).unwrap();
        clip.handle_input(Input::Atm(AtmEvent::Up), now).unwrap();
    });
}
/// A server and `n` clients, registered.
fn subnet(n: usize) -> Net {
    let configs = core::iter::once(server()).chain((1..=n).map(client));
    let w = world(configs.collect());
    assert!(w.users.iter().all(|clip| clip.is_ready()));
    w
}
fn send(w: &mut Net, from: usize, to: Ipv4Addr, number: u8) {
    w.with(from, |clip, now| {
        let packet = vec![0x45, number];
        let input = Input::Send {
            next_hop: to,
            packet,
        };
        clip.handle_input(input, now).unwrap();
    });
}
/// Numbers of the packets that user `who` got since the last call.
fn got(w: &mut Net, who: usize) -> Vec<u8> {
    let notes = w.take_notes().into_iter();
    let packets = notes.filter_map(|(_, from, note)| match note {
        Output::Deliver { packet, .. } if from == who => Some(packet[1]),
        _ => None,
    });
    packets.collect()
}
fn entry(w: &Net, who: usize, to: Ipv4Addr) -> Option<EntryRow> {
    let snapshot = w.users[who].snapshot(w.now);
    snapshot.entries.into_iter().find(|row| row.ip == to)
}
fn finish(mut w: Net) {
    for who in 0..w.users.len() {
        w.with(who, |clip, now| {
            clip.handle_input(Input::Stop, now).unwrap()
        });
    }
    w.run_for(Duration::from_secs(1));
    assert_eq!(w.net.calls(), 0, "connections left over");
    assert_eq!(w.net.misuse, 0);
    assert!(w.users.iter().all(|user| user.poll_timeout().is_none()));
}

#[test]
fn packets_find_their_way_and_back() {
    let mut w = subnet(3);
    send(&mut w, 1, ip(2), 7);
    send(&mut w, 1, ip(2), 8);
    w.run_for(Duration::from_millis(50));
    assert_eq!(got(&mut w, 2), [7, 8]);
    // The way back uses the same connection.
    let calls = w.net.calls();
    send(&mut w, 2, ip(1), 9);
    w.run_for(Duration::from_millis(50));
    assert_eq!(got(&mut w, 1), [9]);
    assert_eq!(w.net.calls(), calls);
    // The server's host takes part like any other member.
    send(&mut w, 3, ip(0), 1);
    send(&mut w, 0, ip(3), 2);
    w.run_for(Duration::from_millis(50));
    assert_eq!(got(&mut w, 0), [1]);
    finish(w);
}

#[test]
fn nobody_has_this_address() {
    let mut w = subnet(1);
    send(&mut w, 1, ip(99), 1);
    w.run_for(Duration::from_millis(100));
    assert_eq!(entry(&w, 1, ip(99)).unwrap().state, "unknown");
    assert_eq!(w.users[1].snapshot(w.now).counters.unreachable, 1);
    assert_eq!(w.users[0].snapshot(w.now).counters.naks, 1);
    // The address is not requested again at once, but later.
    send(&mut w, 1, ip(99), 2);
    w.run_for(Duration::from_secs(6));
    assert_eq!(w.users[0].snapshot(w.now).counters.naks, 1);
    let late = w.add(Member::new(client(99)));
    start(&mut w, late);
    w.run_for(Duration::from_secs(1));
    send(&mut w, 1, ip(99), 3);
    w.run_for(Duration::from_secs(1));
    assert_eq!(got(&mut w, late), [3]);
    finish(w);
}

#[test]
fn idle_connections_go_and_come_back() {
    let mut w = subnet(2);
    send(&mut w, 1, ip(2), 1);
    w.run_for(Duration::from_secs(1));
    let calls = w.net.calls();
    w.run_for(Duration::from_secs(25 * 60));
    assert_eq!(w.net.calls(), calls - 1, "that to the server stays");
    let idle = |who: usize| w.users[who].snapshot(w.now).counters.idle;
    assert!(idle(1) + idle(2) >= 1, "both ends may be the first");
    got(&mut w, 2);
    send(&mut w, 1, ip(2), 2);
    w.run_for(Duration::from_secs(1));
    assert_eq!(got(&mut w, 2), [2]);
    finish(w);
}

#[test]
fn registrations_are_renewed_and_age() {
    let mut w = subnet(2);
    w.run_for(Duration::from_secs(3 * 3600));
    assert_eq!(entry(&w, 0, ip(1)).unwrap().state, "known");
    // A client that dies is forgotten after twenty minutes, whatever happens to its connection.
    w.replace(2, Member::new(client(2)));
    w.run_for(Duration::from_secs(21 * 60));
    assert!(entry(&w, 0, ip(2)).is_none());
    finish(w);
}

#[test]
fn entries_in_use_are_renewed_without_a_loss() {
    let mut w = subnet(2);
    let mut sent = Vec::new();
    for minute in 0..60_u8 {
        send(&mut w, 1, ip(2), minute);
        sent.push(minute);
        w.run_for(Duration::from_secs(60));
    }
    assert_eq!(got(&mut w, 2), sent);
    assert!(w.users[1].snapshot(w.now).counters.calls <= 2);
    finish(w);
}

#[test]
fn the_server_dies_and_returns() {
    let mut w = subnet(2);
    send(&mut w, 1, ip(2), 1);
    w.run_for(Duration::from_secs(1));
    w.replace(0, Member::new(server()));
    w.run_for(Duration::from_secs(5));
    got(&mut w, 2);
    // Members that know each other continue.
    send(&mut w, 1, ip(2), 2);
    w.run_for(Duration::from_secs(1));
    assert_eq!(got(&mut w, 2), [2]);
    assert!(!w.users[1].is_ready());
    start(&mut w, 0);
    w.run_for(Duration::from_secs(10));
    assert!(w.users[1].is_ready() && w.users[2].is_ready());
    assert_eq!(entry(&w, 0, ip(2)).unwrap().state, "known");
    finish(w);
}

#[test]
fn another_server_is_tried() {
    let mut second = server();
    (second.address, second.ip) = (atm(9), ip(9));
    let mut one = client(1);
    one.servers = vec![atm(8), atm(9)];
    let w = world(vec![second, one]);
    let mut w = w;
    w.run_for(Duration::from_secs(10));
    assert!(w.users[1].is_ready());
    assert_eq!(entry(&w, 0, ip(1)).unwrap().atm, Some(atm(1)));
    finish(w);
}

#[test]
fn two_with_one_address() {
    let mut thief = client(2);
    thief.ip = ip(1);
    let mut w = world(vec![server(), client(1), thief]);
    w.run_for(Duration::from_secs(10));
    assert_eq!(
        entry(&w, 0, ip(1)).unwrap().atm,
        Some(atm(1)),
        "the first one keeps it"
    );
    assert!(w.users[0].snapshot(w.now).counters.duplicates > 0);
    finish(w);
}

#[test]
fn lost_messages_are_repeated() {
    for seed in 0..20_u64 {
        let mut w = world(vec![server()]);
        let mut x = seed;
        w.net.loss = Some(Box::new(move |sdu| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            sdu.get(6..8) == Some(&[8, 6]) && (x >> 33).is_multiple_of(3)
        }));
        for n in 1..=2 {
            let who = w.add(Member::new(client(n)));
            start(&mut w, who);
        }
        w.run_for(Duration::from_secs(300));
        assert!(
            w.users[1].is_ready() && w.users[2].is_ready(),
            "seed {seed}"
        );
        let mut arrived = false;
        for number in 0..10 {
            send(&mut w, 1, ip(2), number);
            w.run_for(Duration::from_secs(20));
            arrived |= !got(&mut w, 2).is_empty();
        }
        assert!(arrived, "seed {seed}");
        finish(w);
    }
}

#[test]
fn permanent_connections_need_no_server() {
    let vc = Vc::new(0, 100);
    let permanent = |encapsulation, ip| Permanent {
        vc,
        qos: Qos::ubr(9188),
        encapsulation,
        ip,
    };
    for (encapsulation, known) in [(Encapsulation::Llc, false), (Encapsulation::VcMux, true)] {
        let configs = [1, 2].map(|n| Config {
            address: AtmAddress::ZERO,
            permanent: vec![permanent(encapsulation, known.then(|| ip(3 - n)))],
            ..Config::new(AtmAddress::ZERO, ip(n))
        });
        let mut w = World::new(Duration::from_millis(1));
        w.net.patch((0, vc), (1, vc));
        for config in configs {
            w.add(Member::new(config));
        }
        start(&mut w, 0);
        w.run_for(Duration::from_secs(10));
        start(&mut w, 1);
        w.run_for(Duration::from_secs(5));
        send(&mut w, 0, ip(2), 1);
        send(&mut w, 1, ip(1), 2);
        w.run_for(Duration::from_secs(1));
        let notes = w.take_notes();
        let got = |who: usize| {
            notes
                .iter()
                .any(|(_, at, note)| *at == who && matches!(note, Output::Deliver { .. }))
        };
        assert!(got(0) && got(1), "{encapsulation:?}");
        // After a whole hour: the entry is renewed before it ages.
        w.run_for(Duration::from_secs(3600));
        send(&mut w, 0, ip(2), 3);
        w.run_for(Duration::from_secs(1));
        let delivered =
            |note: &Output| matches!(note, Output::Deliver { packet, .. } if packet[1] == 3);
        assert!(
            w.take_notes()
                .iter()
                .any(|(_, who, note)| *who == 1 && delivered(note))
        );
    }
}

#[test]
fn qos_for_one_next_hop() {
    let mut one = client(1);
    one.hops.qos = vec![(ip(2), Qos::cbr(2000, 9188))];
    let mut w = world(vec![server(), one, client(2), client(3)]);
    send(&mut w, 1, ip(2), 1);
    send(&mut w, 1, ip(3), 2);
    w.run_for(Duration::from_secs(1));
    assert_eq!(got(&mut w, 2), [1]);
    let calls = w.users[1].snapshot(w.now).counters.calls;
    assert_eq!(calls, 3, "server, the one with a contract, the other");
    finish(w);
}

#[test]
fn packets_and_their_bounds() {
    let mut small = client(1);
    small.mtu = 68;
    let mut w = world(vec![server(), small]);
    w.with(1, |clip, now| {
        for packet in [vec![], vec![0; 69]] {
            let next_hop = ip(0);
            clip.handle_input(Input::Send { next_hop, packet }, now)
                .unwrap();
        }
    });
    // The longer one waits for its connection, which tells that it is too long.
    w.run_for(Duration::from_secs(1));
    assert_eq!(w.users[1].snapshot(w.now).counters.too_long, 2);
    // Many next hops: the table stays bounded.
    for n in 0..3000_u32 {
        send(&mut w, 1, Ipv4Addr::from(0x0b00_0000 + n), 1);
    }
    let snapshot = w.users[1].snapshot(w.now);
    assert_eq!(snapshot.entries.len(), 1024);
    assert!(snapshot.counters.full > 1900);
    w.run_for(Duration::from_secs(60));
    assert!(w.users[1].snapshot(w.now).entries.len() < 10);
    finish(w);
}

/// A caller that sends forged ATMARP.
#[test]
fn nobody_speaks_for_another() {
    let mut w = subnet(2);
    let liar = AtmArp {
        operation: Operation::INVERSE_REPLY,
        source: Party::new(Some(atm(1)), Some(ip(1))),
        target: Party::new(Some(atm(0)), Some(ip(0))),
    };
    for operation in [1, 2, 8, 9, 10, 77] {
        let packet = AtmArp {
            operation: Operation(operation),
            ..liar.clone()
        };
        // Client 2 sends the packet on its connection with the server.
        let row = to_server(&w.users[2], w.now).unwrap();
        let sdu = packet.to_sdu();
        w.with(2, |clip, _| {
            clip.request(AtmRequest::Send { conn: row, sdu })
        });
        w.run_for(Duration::from_millis(100));
    }
    assert_eq!(entry(&w, 0, ip(1)).unwrap().atm, Some(atm(1)));
    let vc = entry(&w, 0, ip(1)).unwrap().vc;
    send(&mut w, 0, ip(1), 5);
    w.run_for(Duration::from_millis(100));
    assert_eq!(got(&mut w, 1), [5], "{vc:?}");
    finish(w);
}

/// A server registers what a member can have: an address of its subnet, for the caller's own ATM address. The answer to
/// anything else is ATMARP_NAK, and nothing is kept; a registration by InATMARP has no answer.
#[test]
fn a_server_keeps_what_it_acknowledges_and_nothing_else() {
    let with = |last: u8| Ipv4Addr::new(10, 9, 0, last);
    let cases = [
        (with(77), atm(2), true),
        (with(2), atm(2), true),
        (with(78), atm(2).with_selector(9), true),
        (with(0), atm(2), false),
        (with(255), atm(2), false),
        (Ipv4Addr::new(10, 9, 1, 1), atm(2), false),
        (Ipv4Addr::new(10, 8, 0, 2), atm(2), false),
        (Ipv4Addr::new(224, 0, 0, 9), atm(2), false),
        (Ipv4Addr::BROADCAST, atm(2), false),
        (Ipv4Addr::LOCALHOST, atm(2), false),
        (with(79), atm(1), false),
        // This address belongs to client 1, and the claim says so: it is still not the caller's to register.
        (with(1), atm(1), false),
    ];
    for (claimed, number, good) in cases {
        for operation in [Operation::REQUEST, Operation::INVERSE_REPLY] {
            let mut server = server();
            server.ip = with(200);
            let mut w = world(vec![server, client(1), client(2)]);
            let before = entry(&w, 0, claimed);
            let naks = w.users[2].snapshot(w.now).counters.naks;
            let source = Party::new(Some(number), Some(claimed));
            let target = match operation {
                Operation::REQUEST => Party::new(None, Some(claimed)),
                _ => Party::new(Some(atm(0)), Some(with(200))),
            };
            let packet = AtmArp {
                operation,
                source,
                target,
            };
            let (conn, sdu) = (to_server(&w.users[2], w.now).unwrap(), packet.to_sdu());
            w.with(2, |clip, _| {
                clip.request(AtmRequest::Send { conn, sdu });
            });
            w.run_for(Duration::from_millis(100));
            let what = format!("{claimed} at {number} by {operation:?}");
            let kept = entry(&w, 0, claimed).and_then(|row| row.atm);
            let known = before.and_then(|row| row.atm);
            assert_eq!(kept, if good { Some(number) } else { known }, "{what}");
            let refused = w.users[2].snapshot(w.now).counters.naks - naks;
            let nak = !good && operation == Operation::REQUEST;
            assert_eq!(refused, u64::from(nak), "{what}");
            finish(w);
        }
    }
}

/// The recorded InATMARP exchange of two Linux hosts, one of which is the server: see `d-clip-svc`.
#[test]
fn a_recorded_linux_server() {
    let hex = |text: &str| -> Vec<u8> {
        let digits: Vec<u8> = text
            .bytes()
            .map(|c| char::from(c).to_digit(16).unwrap() as u8)
            .collect();
        digits.chunks(2).map(|two| two[0] << 4 | two[1]).collect()
    };
    let address = |n: u8| {
        let prefix = [
            0x47, 0, 5, 0x80, 0xff, 0xe1, 0, 0, 0, 0xf2, 0x1a, 0x26, 0xd8,
        ];
        AtmAddress::from_parts(prefix, MacAddr([0, 0x20, 0xea, 0, 0, n]), 0)
    };
    let mut client = Clip::new(Config {
        servers: vec![address(0xa0)],
        ..Config::new(address(0xb0), ip(2))
    });
    let now = Instant::from_secs(1);
    let feed = |client: &mut Clip, event| client.handle_input(Input::Atm(event), now).unwrap();
    client.handle_input(Input::Start, now).unwrap();
    feed(&mut client, AtmEvent::Up);
    let conn = to_server(&client, now).unwrap();
    let vc = Vc::new(0, 32);
    feed(
        &mut client,
        AtmEvent::Connected {
            conn,
            vc,
            qos: Qos::ubr(0),
        },
    );
    while client.poll_output().is_some() {}
    // A>B of the recording.
    let asks = hex(
        "aaaa03000000080600130800140000080414000047000580ffe1000000f21a26d80020ea0000a0000a09000147000580ffe1000000f21a26d80020ea0000b000",
    );
    feed(&mut client, AtmEvent::Received { conn, sdu: &asks });
    // B>A of the recording.
    let wanted = hex(
        "aaaa03000000080600130800140000090414000447000580ffe1000000f21a26d80020ea0000b0000a09000247000580ffe1000000f21a26d80020ea0000a0000a090001",
    );
    let mut outputs = core::iter::from_fn(|| client.poll_output());
    assert!(outputs.any(|output| output
        == Output::Atm(AtmRequest::Send {
            conn,
            sdu: wanted.clone()
        })));
    // The server does not say whether it has received the request.
    assert!(!client.is_ready());
    client.handle_timeout(now + client.config().params.reply);
    assert!(client.is_ready());
    let known = client.snapshot(now).entries;
    assert_eq!((known[0].ip, known[0].atm), (ip(1), Some(address(0xa0))));
}

fn says(operation: Operation, from: usize, claimed: Ipv4Addr, to: usize) -> Vec<u8> {
    let packet = AtmArp {
        operation,
        source: Party::new(Some(atm(from)), Some(claimed)),
        target: Party::new(Some(atm(to)), Some(ip(to))),
    };
    packet.to_sdu()
}

/// A client that has a connection with another one cannot move a third one's address there, whether that address is
/// known or not.
#[test]
fn clients_are_not_believed_about_others() {
    let mut w = subnet(3);
    send(&mut w, 1, ip(2), 1);
    send(&mut w, 3, ip(1), 1);
    w.run_for(Duration::from_secs(1));
    assert_eq!(entry(&w, 1, ip(2)).unwrap().atm, Some(atm(2)));
    let conns = w.users[3].snapshot(w.now).conns;
    let mut to_one = conns.iter().filter(|row| row.peer == Some(atm(1)));
    let conn = to_one.next().unwrap().conn;
    for operation in [Operation::INVERSE_REQUEST, Operation::INVERSE_REPLY] {
        for claimed in [ip(2), ip(0), ip(77)] {
            let sdu = says(operation, 3, claimed, 1);
            w.with(3, |clip, _| clip.request(AtmRequest::Send { conn, sdu }));
            w.run_for(Duration::from_millis(100));
        }
    }
    assert_eq!(entry(&w, 1, ip(2)).unwrap().atm, Some(atm(2)));
    assert!(entry(&w, 1, ip(77)).is_none());
    assert_ne!(entry(&w, 1, ip(0)).and_then(|row| row.atm), Some(atm(3)));
    w.take_notes();
    send(&mut w, 1, ip(2), 2);
    w.run_for(Duration::from_secs(1));
    assert_eq!(got(&mut w, 2), [2]);
    finish(w);
}

/// For an hour there is no server. Members with a connection stay in contact, because the other end confirms each
/// entry.
#[test]
fn data_goes_on_without_a_server() {
    let mut w = subnet(2);
    send(&mut w, 1, ip(2), 0);
    w.run_for(Duration::from_secs(1));
    got(&mut w, 2);
    w.replace(0, Member::new(server()));
    let mut sent = Vec::new();
    for minute in 1..60_u8 {
        send(&mut w, 1, ip(2), minute);
        sent.push(minute);
        w.run_for(Duration::from_secs(60));
    }
    assert_eq!(got(&mut w, 2), sent);
    assert!(!w.users[1].is_ready());
    finish(w);
}

/// A member that wants an address in use sends nothing under it until the address is free.
#[test]
fn the_second_with_one_address_waits() {
    let mut second = client(2);
    second.ip = ip(1);
    let mut w = world(vec![server(), client(1), second]);
    w.run_for(Duration::from_secs(150));
    assert!(w.users[1].is_ready() && !w.users[2].is_ready());
    let state = w
        .take_notes()
        .into_iter()
        .filter_map(|(_, who, note)| match note {
            Output::Ready(ready) if who == 2 => Some(ready),
            _ => None,
        });
    assert_ne!(state.collect::<Vec<_>>().pop(), Some(true));
    w.with(1, |clip, now| {
        clip.handle_input(Input::Stop, now).unwrap();
    });
    w.run_for(Duration::from_secs(70));
    assert!(w.users[2].is_ready());
    assert_eq!(entry(&w, 0, ip(1)).unwrap().atm, Some(atm(2)));
    finish(w);
}

/// One caller can fill neither the server's table nor its connections.
#[test]
fn one_caller_does_not_take_all() {
    let mut w = subnet(2);
    let conn = to_server(&w.users[2], w.now).unwrap();
    for n in 100..200 {
        for operation in [Operation::REQUEST, Operation::INVERSE_REPLY] {
            let sdu = says(operation, 2, ip(n), 0);
            w.with(2, |clip, _| clip.request(AtmRequest::Send { conn, sdu }));
        }
    }
    for claimed in [Ipv4Addr::BROADCAST, Ipv4Addr::new(224, 0, 0, 1)] {
        let sdu = says(Operation::REQUEST, 2, claimed, 0);
        w.with(2, |clip, _| clip.request(AtmRequest::Send { conn, sdu }));
    }
    w.run_for(Duration::from_secs(1));
    let snapshot = w.users[0].snapshot(w.now);
    let mine = snapshot
        .entries
        .iter()
        .filter(|row| row.atm == Some(atm(2)));
    assert_eq!(mine.count(), 16);
    assert!(snapshot.counters.full > 0);
    assert!(entry(&w, 0, Ipv4Addr::BROADCAST).is_none());
    for n in 1000..1020 {
        w.with(2, |clip, _| {
            clip.request(AtmRequest::Connect {
                conn: ConnId(n),
                calling: atm(2),
                called: atm(0),
                sap: Sap::LLC,
                qos: Qos::ubr(9188),
                multipoint: false,
            });
        });
    }
    w.run_for(Duration::from_secs(1));
    assert_eq!(w.net.calls(), 1 + 8);
}
