//! Two hosts, one wire.

use super::ping;
use super::wire::{Fate, World, config, lossy, perfect};
use crate::ip::apps::{AppKind, AppResult, Pattern};
use crate::ip::meter::{FlowSpec, Protocol, Side};
use crate::ip::source_ports::SourcePorts;
use crate::ip::stack::{Stack, StackInput};
use crate::ip::tcp::Growth;
use crate::rate::PacketRate;
use aerostat_proto::machine::settle;
use aerostat_proto::{Duration, Instant, Machine};
use std::net::Ipv4Addr;

const A: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const B: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
/// Growth of the window in the profile `linux`.
const CUBIC: Growth = Growth::CUBIC_OF_LINUX;
const US: fn(u64) -> Duration = Duration::from_micros;

fn flow(name: &str, protocol: Protocol, port: u16) -> FlowSpec {
    let destination_port = (protocol != Protocol::Icmp).then_some(port);
    FlowSpec {
        name: name.into(),
        source: A,
        destination: B,
        protocol,
        source_ports: None,
        destination_port,
        voice: false,
        series: false,
    }
}

fn bulk(octets: Option<u64>) -> AppKind {
    AppKind::TcpSource {
        to: B,
        port: 5001,
        local_ports: Some(SourcePorts::every(40_000, 1)),
        octets,
        write: None,
    }
}

fn pair(rule: super::wire::Rule, flows: &[FlowSpec], growth: Growth) -> World {
    let mut configs = vec![config("a", 1, 9), config("b", 2, 9)];
    for config in &mut configs {
        config.tcp = (config.tcp)
            .with_send_buffer(512 << 10)
            .with_receive_buffer(256 << 10);
        config.tcp.params.congestion.growth = growth;
    }
    World::new(configs, flows, rule)
}

#[test]
fn ping_is_answered_and_timed() {
    let flows = [flow("ping", Protocol::Icmp, 0)];
    let mut world = pair(perfect(US(500)), &flows, CUBIC);
    let kind = ping(B, Some(5), 100, 56);
    world.start(0, 1, kind, 0);
    world.run_until(Instant::from_secs(3));
    let AppResult::Ping(result) = world.report(0, 1) else {
        panic!("not a ping")
    };
    assert_eq!((result.sent, result.received, result.duplicates), (5, 5, 0));
    // The first request waited for ARP: twice the round trip.
    assert_eq!((result.rtt.min_us, result.rtt.max_us), (1000.0, 2000.0));
    assert_eq!(world.finished.len(), 1);
    let seen = world.stats.report(world.now)[0].paths[0].clone();
    assert_eq!((seen.received_packets, seen.round_trip.count), (5, 5));
    // The meter measures from frame to frame, so the wait for ARP is not included.
    assert_eq!(
        (seen.round_trip.min_us, seen.round_trip.max_us),
        (1000.0, 1000.0)
    );
    assert_eq!(seen.quality, None);
}

#[test]
fn ping_of_nobody_ends_without_replies() {
    let mut world = pair(perfect(US(500)), &[], CUBIC);
    let to = Ipv4Addr::new(10, 1, 0, 77);
    world.start(0, 1, ping(to, Some(50), 100, 56), 0);
    world.run_until(Instant::from_secs(10));
    let AppResult::Ping(result) = world.report(0, 1) else {
        panic!("not a ping")
    };
    assert_eq!((result.sent, result.received), (50, 0));
    assert_eq!(world.finished.len(), 1);
    // Three ARP requests a second apart, not one per ping; the next ping starts ARP again.
    let counters = world.hosts[0].counters();
    assert_eq!(
        (counters.frames_out, counters.discarded_arp),
        (6, 50),
        "{counters:?}"
    );
    assert_eq!(world.hosts[0].counters().stalls, 0);
}

#[test]
fn tcp_delivers_every_octet_over_a_bad_wire() {
    for (per_mille, congestion) in [
        (0, CUBIC),
        (10, CUBIC),
        (10, Growth::Reno),
        (30, Growth::Reno),
    ] {
        let flows = [flow("bulk", Protocol::Tcp, 5001)];
        let mut world = pair(lossy(per_mille, US(1000), 3), &flows, congestion);
        world.start(1, 1, AppKind::TcpSink { port: 5001 }, 0);
        let octets = 1_000_000;
        world.start(0, 2, bulk(Some(octets)), 0);
        world.run_until(Instant::from_secs(300));
        let AppResult::TcpSink(sink) = world.report(1, 1) else {
            panic!("not a sink")
        };
        assert_eq!(
            (sink.connections, sink.octets, sink.wrong),
            (1, octets, 0),
            "{per_mille}"
        );
        let AppResult::TcpSource(source) = world.report(0, 2) else {
            panic!("not a source")
        };
        assert_eq!(
            (source.octets, source.failed),
            (octets, false),
            "{per_mille} {source:?}"
        );
        let path = world.stats.report(world.now)[0].paths[0].clone();
        assert_eq!(path.received_octets, octets);
        assert_eq!(path.retransmitted > 0, per_mille > 0);
        // The packets of this flow that the wire lost are those that are missing in the samples.
        assert_eq!(path.sent_packets, path.received_packets + path.lost);
        assert_eq!(
            world.hosts[0].counters().stalls + world.hosts[1].counters().stalls,
            0
        );
    }
}

#[test]
fn tcp_for_a_duration_stops_and_fills_the_window() {
    let flows = [flow("bulk", Protocol::Tcp, 5001)];
    let mut world = pair(perfect(US(5000)), &flows, CUBIC);
    world.start(1, 1, AppKind::TcpSink { port: 5001 }, 0);
    world.start(0, 2, bulk(None), 3000);
    world.run_until(Instant::from_secs(5));
    let AppResult::TcpSource(source) = world.report(0, 2) else {
        panic!("not a source")
    };
    assert!(!source.failed && world.finished.len() == 1);
    // From the end of the handshake (ARP and SYN: 20 ms) to the last acknowledgement (10 ms after
    // the end).
    let elapsed = source.elapsed.as_millis();
    assert!((2980..3050).contains(&elapsed), "{source:?}");
    // 256 KiB per round trip of 10 ms: 210 Mbit/s, minus slow start. Without window scale: 52
    // Mbit/s.
    assert!(
        (150.0..=210.0).contains(&source.throughput_mbps),
        "{source:?}"
    );
    let path = world.stats.report(world.now)[0].paths[0].clone();
    assert!(
        (path.throughput_mbps / source.throughput_mbps - 1.0).abs() < 0.02,
        "{path:?}"
    );
}

#[test]
fn nobody_listening_fails_the_source() {
    let mut world = pair(perfect(US(100)), &[], CUBIC);
    world.start(0, 2, bulk(Some(10)), 0);
    world.run_until(Instant::from_secs(1));
    let AppResult::TcpSource(source) = world.report(0, 2) else {
        panic!("not a source")
    };
    assert!(source.failed && source.established.is_none());
    assert_eq!(world.finished.len(), 1);
}

#[test]
fn clients_at_the_same_moment_are_all_served() {
    let configs = (1..=5).map(|n| config(&format!("h{n}"), n, 1)).collect();
    let mut world = World::new(configs, &[], perfect(US(1000)));
    world.start(1, 1, AppKind::TcpSink { port: 5001 }, 0);
    for host in [0, 2, 3, 4] {
        world.start(host, 2, bulk(Some(30_000)), 0);
    }
    world.run_until(Instant::from_secs(5));
    let AppResult::TcpSink(sink) = world.report(1, 1) else {
        panic!("not a sink")
    };
    assert_eq!((sink.connections, sink.octets, sink.wrong), (4, 120_000, 0));
    assert_eq!(world.finished.len(), 4);
}

#[test]
fn transactions_take_one_round_trip_each() {
    let mut world = pair(perfect(US(500)), &[], CUBIC);
    let server = AppKind::TransactionServer {
        port: 7,
        request: 1,
        response: 3000,
    };
    world.start(1, 1, server, 0);
    let client = AppKind::TransactionClient {
        to: B,
        port: 7,
        local_ports: None,
        request: 1,
        response: 3000,
    };
    world.start(0, 2, client, 2000);
    world.run_until(Instant::from_secs(3));
    let AppResult::TransactionClient(client) = world.report(0, 2) else {
        panic!("not a client")
    };
    assert!(!client.failed);
    assert!((990.0..=1000.5).contains(&client.per_second), "{client:?}");
    assert_eq!(client.latency.p50_us.round(), 1000.0);
    let AppResult::TransactionServer(server) = world.report(1, 1) else {
        panic!("not a server")
    };
    assert!(server.requests >= client.transactions);
}

fn voice(world: &mut World, pattern: Pattern) {
    world.start(1, 1, AppKind::UdpSink { port: 9000 }, 0);
    let kind = AppKind::UdpSource {
        to: B,
        port: 9000,
        local_port: None,
        rate: PacketRate::per_second(450.0).expect("in range"),
        pattern,
        size: 1000,
    };
    world.start(0, 2, kind, 10_000);
    world.run_until(Instant::from_secs(12));
}

/// The number of a datagram of the flow, if the frame contains one.
fn number(frame: &[u8]) -> Option<u64> {
    let payload = frame.get(42..)?;
    crate::ip::apps::Stamp::decode(payload).map(|stamp| stamp.sequence)
}

#[test]
fn datagram_figures_are_those_of_the_injected_faults() {
    // Every hundredth datagram is lost. Every fiftieth that is no hundredth is 5 ms late, so that two others overtake
    // it. The others alternate between 200 and 300 µs.
    let rule = |_, _, frame: &[u8]| match number(frame) {
        Some(n) if n % 100 == 0 => Fate::Lose,
        Some(n) if n % 50 == 0 => Fate::Deliver(US(5000)),
        Some(n) if n % 2 == 0 => Fate::Deliver(US(200)),
        Some(_) => Fate::Deliver(US(300)),
        None => Fate::Deliver(US(200)),
    };
    let flows = [flow("voice", Protocol::Udp, 9000)];
    let mut world = pair(Box::new(rule), &flows, CUBIC);
    voice(&mut world, Pattern::Constant);
    let AppResult::UdpSource(source) = world.report(0, 2) else {
        panic!("not a source")
    };
    assert_eq!(source.sent, 4500);
    let AppResult::UdpSink(sink) = world.report(1, 1) else {
        panic!("not a sink")
    };
    assert_eq!(
        (
            sink.received,
            sink.lost,
            sink.out_of_sequence,
            sink.unmarked
        ),
        (4455, 45, 45, 0)
    );
    let path = world.stats.report(world.now)[0].paths[0].clone();
    assert_eq!(
        (path.sent_packets, path.received_packets, path.lost),
        (4500, 4455, 45)
    );
    assert_eq!(path.out_of_sequence, 45);
    assert_eq!(
        (path.delay.min_us, path.delay.max_us, path.variation.max_us),
        (200.0, 5000.0, 4800.0)
    );
    assert!(
        (path.throughput_mbps - 3.6 * 0.99).abs() < 0.002,
        "{}",
        path.throughput_mbps
    );
}

#[test]
fn poisson_and_ticked_sources_keep_the_rate() {
    let tick = Pattern::Ticked {
        tick: Duration::from_millis(10),
        spacing: US(76),
    };
    for pattern in [Pattern::Poisson, tick] {
        let mut world = pair(perfect(US(200)), &[], CUBIC);
        voice(&mut world, pattern);
        let AppResult::UdpSink(sink) = world.report(1, 1) else {
            panic!("not a sink")
        };
        assert!((4300..4700).contains(&sink.received), "{sink:?}");
        assert_eq!((sink.lost, sink.out_of_sequence), (0, 0));
    }
}

#[test]
fn one_seed_gives_one_run() {
    let run = |seed| {
        let flows = [
            flow("bulk", Protocol::Tcp, 5001),
            flow("voice", Protocol::Udp, 9000),
        ];
        let configs = vec![config("a", 1, seed), config("b", 2, seed)];
        let mut world = World::new(configs, &flows, lossy(10, US(700), seed));
        world.start(1, 5, AppKind::TcpSink { port: 5001 }, 0);
        world.start(0, 6, bulk(None), 1000);
        voice(&mut world, Pattern::Poisson);
        world.samples
    };
    let first = run(1);
    assert!(first.iter().any(|s| s.side == Side::Received) && first.len() > 5000);
    assert!(first == run(1), "the same seed, another run");
    assert!(first != run(2), "another seed, the same run");
}

#[test]
fn an_independent_parser_finds_no_wrong_checksum() {
    let mut world = pair(perfect(US(100)), &[], CUBIC);
    world.record = true;
    world.start(1, 1, AppKind::TcpSink { port: 5001 }, 0);
    world.start(0, 2, bulk(Some(50_000)), 0);
    world.start(0, 3, ping(B, Some(3), 10, 101), 0);
    voice_once(&mut world);
    let (mut checked, mut idents) = (0, Vec::new());
    for frame in &world.frames {
        let sliced = etherparse::SlicedPacket::from_ethernet(frame).expect("well formed");
        let Some(etherparse::NetSlice::Ipv4(ip)) = &sliced.net else {
            continue;
        };
        let header = ip.header().to_header();
        assert_eq!(header.header_checksum, header.calc_header_checksum());
        if header.source == A.octets() {
            idents.push(header.identification);
        }
        let payload = ip.payload().payload;
        match sliced.transport.expect("a transport") {
            etherparse::TransportSlice::Tcp(tcp) => {
                let tcp_header = tcp.to_header();
                let sum = tcp_header
                    .calc_checksum_ipv4(&header, tcp.payload())
                    .expect("fits");
                assert_eq!(tcp_header.checksum, sum);
            }
            etherparse::TransportSlice::Udp(udp) => {
                let udp_header = udp.to_header();
                let sum = udp_header
                    .calc_checksum_ipv4(&header, udp.payload())
                    .expect("fits");
                assert_eq!(udp_header.checksum, sum);
            }
            etherparse::TransportSlice::Icmpv4(icmp) => {
                let icmp_header = icmp.header();
                let sum = icmp_header.icmp_type.calc_checksum(icmp.payload());
                assert_eq!(icmp_header.checksum, sum);
            }
            other => panic!("{other:?} {payload:?}"),
        }
        checked += 1;
    }
    assert!(checked > 50, "{checked}");
    assert!(
        idents.windows(2).all(|w| w[1] == w[0].wrapping_add(1)),
        "numbered one by one"
    );
}

fn voice_once(world: &mut World) {
    let kind = AppKind::UdpSource {
        to: B,
        port: 9000,
        local_port: None,
        rate: PacketRate::per_second(10.0).expect("in range"),
        pattern: Pattern::Constant,
        size: 33,
    };
    world.start(0, 4, kind, 500);
    world.run_until(Instant::from_secs(2));
}

#[test]
fn stopping_and_wrong_programs() {
    use crate::ip::apps::{AppCommand, AppId, AppSpec};
    let mut stack = Stack::new(config("a", 1, 1)).expect("sane");
    let mut start = |id, kind, now| {
        let spec = AppSpec {
            id: AppId(id),
            start: now,
            duration: None,
            kind,
        };
        let input = StackInput::App(AppCommand::Start(spec));
        let result = stack.handle_input(input, now);
        settle(&mut stack, now);
        result
    };
    assert!(start(1, AppKind::TcpSink { port: 5 }, Instant::ZERO).is_ok());
    assert!(
        start(1, AppKind::TcpSink { port: 6 }, Instant::ZERO).is_err(),
        "number in use"
    );
    assert!(
        start(2, AppKind::TcpSink { port: 0 }, Instant::ZERO).is_err(),
        "no port"
    );
    let stop = |id| StackInput::App(AppCommand::Stop(AppId(id)));
    let now = Instant::from_secs(1);
    assert!(stack.handle_input(stop(9), now).is_err(), "unknown");
    assert!(stack.handle_input(stop(1), now).is_ok());
    let output = settle(&mut stack, now);
    assert!(
        matches!(
            output[..],
            [crate::ip::stack::StackOutput::Finished(AppId(1), _)]
        ),
        "{output:?}"
    );
    assert_eq!(stack.poll_timeout(), None);
}

#[test]
fn programs_without_a_duration_run_until_stopped() {
    use crate::ip::apps::{AppCommand, AppId, AppSpec};
    let to = config("b", 2, 1).address;
    let datagrams = AppKind::UdpSource {
        to,
        port: 7,
        local_port: None,
        rate: PacketRate::per_second(100.0).expect("in range"),
        pattern: Pattern::Constant,
        size: 100,
    };
    let pings = ping(to, None, 100, 56);
    let transactions = AppKind::TransactionClient {
        to,
        port: 7,
        local_ports: None,
        request: 1,
        response: 1,
    };
    for kind in [datagrams, pings, bulk(None), transactions] {
        let mut stack = Stack::new(config("a", 1, 1)).expect("sane");
        let spec = AppSpec {
            id: AppId(1),
            start: Instant::ZERO,
            duration: None,
            kind: kind.clone(),
        };
        let mut now = Instant::ZERO;
        let started = stack.handle_input(StackInput::App(AppCommand::Start(spec)), now);
        assert_eq!(started, Ok(()), "{kind:?}");
        let ended = |output: &[_]| {
            let end = |one: &_| matches!(one, crate::ip::stack::StackOutput::Finished(..));
            output.iter().any(end)
        };
        for _ in 0..50 {
            now += Duration::from_millis(100);
            assert!(!ended(&settle(&mut stack, now)), "{kind:?}");
        }
        let stop = StackInput::App(AppCommand::Stop(AppId(1)));
        assert_eq!(stack.handle_input(stop, now), Ok(()), "{kind:?}");
        let mut over = false;
        for _ in 0..50 {
            over |= ended(&settle(&mut stack, now));
            now += Duration::from_millis(100);
        }
        assert!(over, "{kind:?}");
    }
}

#[test]
fn configurations_that_make_no_sense_are_refused() {
    let mut bad = Vec::new();
    for change in 0..6 {
        let mut config = config("a", 1, 1);
        match change {
            0 => config.mac[0] |= 1,
            1 => config.prefix = 33,
            2 => config.address = Ipv4Addr::new(224, 0, 0, 1),
            3 => config.neighbours = vec![(B, [1; 6])],
            4 => config.mtu = 100,
            _ => config.tcp.params.send.buffer = 0,
        }
        bad.push(Stack::new(config).is_err());
    }
    assert_eq!(bad, [true; 6]);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
    /// Frames of real runs with changed octets, and random octets: no panic, no spinning, bounded output.
    #[test]
    fn no_frame_breaks_a_host(
        seed in 0u64..4,
        changes in proptest::collection::vec(
            (0usize..200, 0usize..80, proptest::num::u8::ANY), 1..200,
        ),
    ) {
        let mut world = pair(lossy(10, US(100), seed), &[], CUBIC);
        world.record = true;
        world.start(1, 1, AppKind::TcpSink { port: 5001 }, 0);
        world.start(0, 2, bulk(Some(100_000)), 0);
        world.start(1, 3, AppKind::UdpSink { port: 9000 }, 0);
        voice_once(&mut world);
        let frames = std::mem::take(&mut world.frames);
        let mut host = Stack::new(config("b", 2, seed)).expect("sane");
        let spec = crate::ip::apps::AppSpec {
            id: crate::ip::apps::AppId(1),
            start: Instant::ZERO,
            duration: None,
            kind: AppKind::TcpSink { port: 5001 },
        };
        let start = StackInput::App(crate::ip::apps::AppCommand::Start(spec));
        host.handle_input(start, Instant::ZERO).expect("can run");
        for (round, (which, at, value)) in changes.into_iter().enumerate() {
            let now = Instant::from_millis(round as u64 * 7);
            let mut frame = frames[which % frames.len()].clone();
            let at = at % frame.len();
            frame[at] = value;
            // Repair the IP checksum, so that the change passes the first checks.
            crate::ip::packet::seal(&mut frame[14..]);
            host.handle_input(StackInput::of_first(&frame), now).expect("never refused");
            settle(&mut host, now);
            host.handle_input(StackInput::of_first(&frame[..at]), now).expect("never refused");
            settle(&mut host, now);
        }
    }
}
