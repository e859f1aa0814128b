use super::*;
use crate::clock::Clock;
use crate::world::{Output, World};
use aerostat_lab::build::{Builder, Flavour};
use aerostat_node::inspect::Value;
use mio::{Events, Poll};
use proptest::prelude::*;
use std::io::{Read, Write};
use std::net::{TcpListener as StdListener, TcpStream as StdStream};

fn all(parser: &mut Parser) -> Vec<Message> {
    std::iter::from_fn(|| parser.poll().unwrap()).collect()
}

/// The first data from a Linux host. Source: linux-atm 2.5.1 `atmtcp`, `atmsigd -u 3.1`.
const OPENED: &[u8] = b"\0\0\0\0\0\0\0\x21O 0.5 0.0.5 ubr,aal5:max_sdu=1000";
const BGN: &[u8] = &[0, 0, 0, 5, 0, 0, 0, 8, 0, 0, 0, 1, 1, 0, 0, 0x1e];

#[test]
fn a_real_beginning() {
    let mut parser = Parser::default();
    parser.push(&[OPENED, BGN].concat());
    let sdu = BGN[8..].to_vec();
    assert_eq!(
        all(&mut parser),
        [
            Message::Control(OPENED[8..].to_vec()),
            Message::Sdu(Vc::SIGNALLING, sdu.clone())
        ]
    );
    let mut out = Vec::new();
    encode(&mut out, Vc::SIGNALLING, &sdu);
    assert_eq!(out, BGN);
}

#[test]
fn hostile_headers() {
    let header = |vpi: u16, length: u32| {
        let mut parser = Parser::default();
        let mut octets = vpi.to_be_bytes().to_vec();
        octets.extend([0, 32]);
        octets.extend(length.to_be_bytes());
        parser.push(&octets);
        parser.poll()
    };
    assert_eq!(header(0, 65_535), Ok(None));
    assert_eq!(header(0, 65_536), Err(Garbled::Length(65_536)));
    assert_eq!(header(0, u32::MAX), Err(Garbled::Length(u32::MAX)));
    assert_eq!(
        header(255, 0),
        Ok(Some(Message::Sdu(Vc::new(255, 32), vec![])))
    );
    assert_eq!(header(256, 0), Err(Garbled::Vpi(256)));
}

proptest! {
    #[test]
    fn any_split_gives_the_same(
        sdus in prop::collection::vec((0..3_u16, 0..40_u16, prop::collection::vec(any::<u8>(), 0..300)), 0..20),
        cuts in prop::collection::vec(1..200_usize, 1..20),
    ) {
        let mut stream = Vec::new();
        for (vpi, vci, sdu) in &sdus {
            encode(&mut stream, Vc::new(*vpi, *vci), sdu);
        }
        let (mut parser, mut got, mut rest) = (Parser::default(), Vec::new(), stream.as_slice());
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, later) = rest.split_at(rest.len().min(*cut));
            rest = later;
            parser.push(piece);
            got.extend(all(&mut parser));
        }
        let expected: Vec<_> = sdus.into_iter().map(|(vpi, vci, sdu)| match (vpi, vci) {
            (0, 0) => Message::Control(sdu),
            _ => Message::Sdu(Vc::new(vpi, vci), sdu),
        }).collect();
        prop_assert_eq!(got, expected);
    }

    #[test]
    fn noise_never_panics_and_never_piles_up(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..2000), 0..50)) {
        let mut parser = Parser::default();
        for piece in pieces {
            parser.push(&piece);
            loop {
                match parser.poll() {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(_) => return Ok(()),
                }
            }
            prop_assert!(parser.octets.len() - parser.used <= HEADER + MAX_SDU);
        }
    }
}

/// A lab with one link to the outside, in real time.
struct Loop {
    world: World,
    node: aerostat_lab::model::NodeId,
    link: Link,
    poll: Poll,
    inbox: Inbox,
    clock: Clock,
    told: Vec<String>,
}

impl Loop {
    fn new(way: &str) -> Self {
        Self::with(way, "oc3")
    }

    fn with(way: &str, rate: &str) -> Self {
        let text = format!(
            "switches: {{ s: {{}} }}\n\
             links: [[s, {{ atmtcp: {{ {way} }}, rate: {rate}, address: 47.0005.80FFE1000000F21A26D8.0020EA0000B0.00 }}]]\n\
             lane: {{ on: s, elans: {{ a: {{ subnet: 10.1.0.0/24 }} }} }}\n\
             hosts: {{ h: {{ on: s, elan: a, ip: 10.1.0.1 }} }}\n"
        );
        let lab = aerostat_lab::parse("t.atm.yml", &text, &[]).unwrap().lab;
        let builder = Builder::new(&lab, 1, Flavour::Embedded);
        let poll = Poll::new().unwrap();
        let (node, _, model) = lab.outside().next().unwrap();
        let rate = lab.link(model.attachment.link).lines[0].rate;
        let link = Link::new(&model.way, rate, poll.registry(), Token(0)).unwrap();
        let clock = Clock::start();
        let mut world = World::new(&builder, clock.now());
        world.start(&builder, clock.now());
        Self {
            world,
            node,
            link,
            poll,
            inbox: Inbox::new(Clock::start()),
            clock,
            told: Vec::new(),
        }
    }

    fn address(&self) -> SocketAddr {
        match &self.link.way {
            Way::Listen(door) => door.local_addr().unwrap(),
            Way::Connect { .. } => panic!("it does not listen"),
        }
    }

    /// Runs until `done`, for at most ten seconds.
    fn until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        let end = self.clock.now() + Duration::from_secs(10);
        let mut events = Events::with_capacity(16);
        while !done(self) {
            assert!(self.clock.now() < end, "too slow; told: {:?}", self.told);
            let now = self.clock.now();
            self.world.step(now, 256);
            let mut told = Vec::new();
            self.link
                .turn(self.poll.registry(), now, &mut self.inbox, &mut told);
            while let Some(output) = self.world.poll_output() {
                if let Output::Outside(_, run) = output {
                    self.link.send(&run);
                }
            }
            self.link.flush(self.poll.registry(), now, &mut told);
            for event in told {
                match event {
                    Event::Up => self.world.outside_link(self.node, true, now),
                    Event::Down => self.world.outside_link(self.node, false, now),
                    Event::Heard => self.world.outside_heard(),
                    Event::Cells(run) => self.world.outside_cells(self.node, run, now),
                    Event::Trace(trace) => self.told.push(trace.name.to_owned()),
                }
            }
            let wait = Duration::from_millis(1);
            self.poll.poll(&mut events, Some(wait)).unwrap();
            for event in &events {
                self.link.ready(event.token().0);
            }
        }
    }

    fn told(&self, name: &str) -> usize {
        self.told.iter().filter(|told| *told == name).count()
    }
}

/// Reads the available data.
fn take(stream: &mut StdStream, parser: &mut Parser) -> Vec<Message> {
    let mut octets = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut octets) {
        parser.push(&octets[..count]);
    }
    all(parser)
}

/// Handles just enough SSCOP that the link comes up and RESTART is sent.
fn converse(run: &mut Loop, mut stream: StdStream) -> StdStream {
    stream.set_nonblocking(true).unwrap();
    let mut parser = Parser::default();
    stream.write_all(&[OPENED, BGN].concat()).unwrap();
    let mut got: Vec<Vec<u8>> = Vec::new();
    run.until(|_| {
        for message in take(&mut stream, &mut parser) {
            let Message::Sdu(Vc::SIGNALLING, sdu) = message else {
                panic!("{message:?}");
            };
            // The BGN is answered with BGAK.
            if sdu[4] & 0x0f == 1 {
                let bgak = [0, 0, 0, 5, 0, 0, 0, 8, 0, 0, 0, 0, 2, 0, 0, 0x1e];
                stream.write_all(&bgak).unwrap();
            }
            got.push(sdu);
        }
        let kind = |kind: u8| move |sdu: &Vec<u8>| sdu[sdu.len() - 4] & 0x0f == kind;
        // BGN from the switch, BGAK for ours, and RESTART (type 0x46) in the first SD.
        got.iter().any(kind(1))
            && got.iter().any(kind(2))
            && got.iter().any(|sdu| kind(8)(sdu) && sdu[5] == 0x46)
    });
    stream
}

#[test]
fn a_peer_that_calls_gets_signalling_and_may_come_again() {
    let mut run = Loop::new("listen: '127.0.0.1:0'");
    let address = run.address();
    // The lab is ready without its peer.
    run.until(|run| run.world.waits_for().is_empty());
    let mut first = converse(&mut run, StdStream::connect(address).unwrap());
    // A second connection is refused while the first one stands.
    let mut second = StdStream::connect(address).unwrap();
    run.until(|run| run.told("atmtcp.refused") == 1);
    assert!(matches!(second.read(&mut [0; 8]), Ok(0) | Err(_)));
    // Invalid data end the connection.
    first
        .write_all(&[0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff])
        .unwrap();
    run.until(|run| run.told("atmtcp.down") == 1);
    assert_eq!(run.link.counters.garbled, 1);
    drop(converse(&mut run, StdStream::connect(address).unwrap()));
    run.until(|run| run.told("atmtcp.down") == 2);
    assert_eq!(
        (run.told("atmtcp.up"), run.link.counters.control_in),
        (2, 2)
    );
    let row = &run.link.tables()[0].rows[0];
    assert_eq!(
        (&row[0], &row[1]),
        (&Value::Text("listening".into()), &Value::None)
    );
}

#[test]
fn a_peer_is_called_until_it_answers() {
    let listener = StdListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut run = Loop::new(&format!("connect: '{address}'"));
    let end = run.clock.now() + Duration::from_millis(400);
    run.until(|run| run.clock.now() >= end);
    assert_eq!(run.told("atmtcp.up"), 0);
    let listener = StdListener::bind(address).unwrap();
    for n in 1..=2 {
        run.until(|run| run.told("atmtcp.up") == n);
        drop(converse(&mut run, listener.accept().unwrap().0));
        run.until(|run| run.told("atmtcp.down") == n);
    }
}

#[test]
fn a_slow_peer_loses_whole_sdus() {
    let mut run = Loop::new("listen: '127.0.0.1:0'");
    let mut stream = StdStream::connect(run.address()).unwrap();
    run.until(|run| run.told("atmtcp.up") == 1);
    // Far more than the buffers of the sockets and of the link hold.
    let (sdu, vc) = (vec![7; 65_535], Vc::new(0, 100));
    let cells = CellRun::whole(Pdu::new(sdu.clone()), vc);
    for _ in 0..400 {
        run.link.send(&cells);
        run.link
            .flush(run.poll.registry(), run.clock.now(), &mut Vec::new());
    }
    let counters = run.link.counters;
    assert!(counters.dropped_out > 0);
    assert_eq!(counters.sdus_out + counters.dropped_out, 400);
    stream.set_nonblocking(true).unwrap();
    let (mut parser, mut whole) = (Parser::default(), 0);
    run.until(|run| {
        for message in take(&mut stream, &mut parser) {
            if let Message::Sdu(on, octets) = message
                && on == vc
            {
                assert_eq!(octets, sdu);
                whole += 1;
            }
        }
        let _ = run;
        whole == counters.sdus_out
    });
}

#[test]
fn a_fast_peer_is_slowed_to_the_rate_of_the_link() {
    let mut run = Loop::with("listen: '127.0.0.1:0'", "e1");
    let mut stream = StdStream::connect(run.address()).unwrap();
    run.until(|run| run.told("atmtcp.up") == 1);
    let started = run.clock.now();
    // 6400 cells: about a thousand more than an E1 line (4528 cells/s) allows at once.
    let writer = std::thread::spawn(move || {
        let mut octets = Vec::new();
        encode(&mut octets, Vc::new(0, 100), &[7; 64 * 48 - 8]);
        for _ in 0..100 {
            stream.write_all(&octets).unwrap();
        }
        stream
    });
    run.until(|run| run.link.counters.sdus_in == 100);
    let took = run.clock.now().since(started);
    assert!(run.link.counters.pauses >= 1);
    // The last read may exceed the limit, at most by one read.
    assert!(took >= Duration::from_millis(50), "{took:?}");
    drop(writer.join().unwrap());
    run.until(|run| run.told("atmtcp.down") == 1);
    run.link.paused(run.clock.now());
    assert_eq!(run.link.paused_until, None);
}

/// Turns as in the driver: the link gets a turn only when the poller reports it, when its time has come, or when its
/// last turn told that more is left.
fn turns_as_the_driver_gives(run: &mut Loop, done: impl Fn(&Loop) -> bool) -> usize {
    let end = run.clock.now() + Duration::from_secs(10);
    let (mut events, mut turns, mut more) = (Events::with_capacity(16), 0, true);
    while !done(run) {
        let now = run.clock.now();
        assert!(now < end, "{turns} turns in vain; told: {:?}", run.told);
        if more || run.link.poll_timeout().is_some_and(|at| at <= now) {
            let mut told = Vec::new();
            more = run
                .link
                .turn(run.poll.registry(), now, &mut run.inbox, &mut told);
            turns += 1;
            let traces = told.into_iter().filter_map(|event| match event {
                Event::Trace(trace) => Some(trace.name.to_owned()),
                _ => None,
            });
            run.told.extend(traces);
        }
        let wait = if more { 0 } else { 5 };
        let wait = Duration::from_millis(wait);
        run.poll.poll(&mut events, Some(wait)).unwrap();
        for event in &events {
            run.link.ready(event.token().0);
            more = true;
        }
    }
    turns
}

#[test]
fn a_crowd_at_the_listener_is_taken_in_one_go_and_costs_one_line_of_the_story() {
    let mut run = Loop::new("listen: '127.0.0.1:0'");
    let address = run.address();
    // The listener has all of them before the poller is asked once: one edge for fifty connections.
    let crowd: Vec<_> = (0..50)
        .map(|_| StdStream::connect(address).unwrap())
        .collect();
    let turns = turns_as_the_driver_gives(&mut run, |run| match &run.link.way {
        Way::Listen(door) => door.refused() == 49,
        Way::Connect { .. } => false,
    });
    assert!(turns <= 10, "{turns} turns");
    assert_eq!(run.told("atmtcp.refused"), 1, "{:?}", run.told);
    drop(crowd);
}

#[test]
fn strangers_do_not_keep_the_allowed_peer_out() {
    // No interface of this machine has the address that the lab allows.
    let mut run = Loop::new("listen: '0.0.0.0:0', from: 192.0.2.1");
    let port = run.address().port();
    let strangers: Vec<_> = (0..40)
        .map(|_| StdStream::connect(("127.0.0.1", port)).unwrap())
        .collect();
    turns_as_the_driver_gives(&mut run, |run| match &run.link.way {
        Way::Listen(door) => door.refused() == 40,
        Way::Connect { .. } => false,
    });
    for mut stranger in strangers {
        assert!(matches!(stranger.read(&mut [0; 8]), Ok(0) | Err(_)));
    }
    // From now on this machine is allowed; the earlier refusals have no effect.
    if let Way::Listen(door) = &mut run.link.way {
        door.allow("127.0.0.1".parse().unwrap());
    }
    let _peer = StdStream::connect(("127.0.0.1", port)).unwrap();
    turns_as_the_driver_gives(&mut run, |run| run.told("atmtcp.up") == 1);
}

#[test]
fn a_connection_that_says_nothing_gives_way_and_is_closed_at_last() {
    let mut run = Loop::new("listen: '127.0.0.1:0'");
    let address = run.address();
    let mut silent = StdStream::connect(address).unwrap();
    run.until(|run| run.told("atmtcp.up") == 1);
    let began = run.link.connection.as_ref().unwrap().since;
    // A moment later another connection is refused; after a while it replaces the first one.
    let later = |by| began + by;
    let turn = |run: &mut Loop, now| {
        let mut told = Vec::new();
        run.poll
            .poll(
                &mut Events::with_capacity(4),
                Some(Duration::from_millis(20)),
            )
            .unwrap();
        run.link.ready(0);
        run.link
            .turn(run.poll.registry(), now, &mut run.inbox, &mut told);
        told.len()
    };
    let mut early = StdStream::connect(address).unwrap();
    turn(&mut run, later(GIVES_WAY / 2));
    assert!(matches!(early.read(&mut [0; 8]), Ok(0) | Err(_)));
    let _heir = StdStream::connect(address).unwrap();
    let now = later(GIVES_WAY);
    turn(&mut run, now);
    assert_eq!(
        (run.link.counters.connections, run.link.counters.silent),
        (2, 1)
    );
    silent.set_nonblocking(false).unwrap();
    let mut rest = Vec::new();
    assert!(silent.read_to_end(&mut rest).is_ok() || !rest.is_empty());
    // Data are sent to the new connection, and nothing comes back.
    let run_out = CellRun::whole(Pdu::new(vec![1]), Vc::SIGNALLING);
    run.link.send(&run_out);
    let until = run.link.poll_timeout().unwrap();
    assert_eq!(until, now + SILENCE);
    turn(&mut run, until);
    assert!(run.link.connection.is_none());
    assert_eq!(run.link.counters.silent, 2);
}
