//! A router between two subnets with one host each, and a router alone.

mod errors;
mod neighbours;

use super::wire::config;
use super::{every, ping};
use crate::ip::apps::{AppCommand, AppId, AppKind, AppResult, AppSpec, Pattern};
use crate::ip::flow_stats::FlowStats;
use crate::ip::meter::{FlowSpec, Meter, Path, Protocol};
use crate::ip::router::{
    ArpParams, DropReason, Forwarding, QueueLimit, RouteResult, Router, RouterConfig, RouterInput,
    RouterInterface, RouterOutput, StaticRoute,
};
use crate::ip::stack::{Stack, StackInput, StackOutput};
use crate::rate::PacketRate;
use aerostat_proto::machine::settle;
use aerostat_proto::{Duration, Instant, Machine};
use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

const A: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const B: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 2);
const GATE: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 1, 0, 254), Ipv4Addr::new(10, 2, 0, 254)];
const GATE_MAC: [[u8; 6]; 2] = [[2, 0, 0, 0, 1, 0], [2, 0, 0, 0, 1, 1]];
const DELAY: Duration = Duration::from_micros(50);

fn route(destination: Ipv4Addr, prefix: u8, next_hop: Ipv4Addr) -> StaticRoute {
    StaticRoute {
        destination,
        prefix,
        next_hop,
    }
}

fn router_config(forwarding: Forwarding, queue: usize) -> RouterConfig {
    let interface = |n: usize| RouterInterface {
        name: format!("elan{n}"),
        mac: GATE_MAC[n],
        address: GATE[n],
        prefix: 24,
        mtu: 1500,
    };
    RouterConfig {
        interfaces: vec![interface(0), interface(1)],
        routes: vec![route(
            Ipv4Addr::new(10, 3, 0, 0),
            16,
            Ipv4Addr::new(10, 2, 0, 9),
        )],
        forwarding,
        queue: QueueLimit::Packets(queue),
        arp: ArpParams::default(),
    }
}

fn router(forwarding: Forwarding, queue: usize) -> Router {
    Router::new(router_config(forwarding, queue)).expect("sane configuration")
}

/// Two hosts and the router between them.
struct World {
    hosts: [Stack; 2],
    meters: [Meter; 2],
    stats: FlowStats,
    router: Router,
    now: Instant,
    count: u64,
    /// Frames on the wire. Key: time and number; value: direction (true is to the router), side, frame.
    flying: BTreeMap<(Instant, u64), (bool, usize, Vec<u8>)>,
}

impl World {
    fn new(router: Router, flows: &[FlowSpec]) -> Self {
        let host = |n: usize, name, address| {
            let mut config = config(name, n as u8 + 1, 4);
            config.address = address;
            config.routes = vec![route(Ipv4Addr::UNSPECIFIED, 0, GATE[n])];
            Stack::new(config).expect("sane configuration")
        };
        Self {
            hosts: [host(0, "a", A), host(1, "b", B)],
            meters: [Meter::new(flows, vec![A]), Meter::new(flows, vec![B])],
            stats: FlowStats::new(flows),
            router,
            now: Instant::ZERO,
            count: 0,
            flying: BTreeMap::new(),
        }
    }

    fn start(&mut self, host: usize, id: u32, kind: AppKind, duration_s: u64) {
        let duration = (duration_s > 0).then(|| Duration::from_secs(duration_s));
        let spec = AppSpec {
            id: AppId(id),
            start: self.now,
            duration,
            kind,
        };
        let command = StackInput::App(AppCommand::Start(spec));
        self.hosts[host]
            .handle_input(command, self.now)
            .expect("a program that can run");
        self.drain_host(host);
    }

    fn fly(&mut self, to_router: bool, side: usize, frame: Vec<u8>) {
        self.flying
            .insert((self.now + DELAY, self.count), (to_router, side, frame));
        self.count += 1;
    }

    fn drain_host(&mut self, host: usize) {
        for output in settle(&mut self.hosts[host], self.now) {
            if let StackOutput::Frame { bytes: frame, .. } = output {
                let sample = self.meters[host].sent(&frame, Path::Lane, self.now);
                sample.iter().for_each(|sample| {
                    self.stats.record(sample);
                });
                self.fly(true, host, frame);
            }
        }
    }

    fn drain_router(&mut self) {
        for output in settle(&mut self.router, self.now) {
            if let RouterOutput::Frame { interface, bytes } = output {
                self.fly(false, interface, bytes);
            }
        }
    }

    fn run_until(&mut self, end: Instant) {
        loop {
            let timers = self.hosts.iter().filter_map(Machine::poll_timeout);
            let timer = timers.chain(self.router.poll_timeout()).min();
            let frame = self.flying.first_key_value().map(|((at, _), _)| *at);
            let Some(next) = [timer, frame]
                .into_iter()
                .flatten()
                .min()
                .filter(|at| *at <= end)
            else {
                self.now = end;
                return;
            };
            self.now = next;
            while self
                .flying
                .first_key_value()
                .is_some_and(|((at, _), _)| *at <= next)
            {
                let (_, (to_router, side, frame)) = self.flying.pop_first().expect("there");
                self.deliver(to_router, side, &frame);
            }
            self.drain_host(0);
            self.drain_host(1);
            self.drain_router();
        }
    }

    fn deliver(&mut self, to_router: bool, side: usize, frame: &[u8]) {
        if to_router {
            let input = RouterInput::Frame {
                interface: side,
                bytes: frame,
            };
            self.router
                .handle_input(input, self.now)
                .expect("an interface");
            self.drain_router();
        } else {
            let sample = self.meters[side].received(frame, Path::Lane, self.now);
            sample.iter().for_each(|sample| {
                self.stats.record(sample);
            });
            self.hosts[side]
                .handle_input(StackInput::of_first(frame), self.now)
                .expect("taken");
            self.drain_host(side);
        }
    }

    fn report(&self, host: usize, id: u32) -> AppResult {
        self.hosts[host]
            .report(AppId(id))
            .expect("a program of this number")
    }
}

/// Throughput, losses and retransmissions of 20 MB of TCP from A to B.
fn bulk(forwarding: Forwarding, window: usize) -> (f64, u64, u64) {
    let flow = FlowSpec {
        name: "bulk".into(),
        source: A,
        destination: B,
        protocol: Protocol::Tcp,
        source_ports: None,
        destination_port: Some(5001),
        voice: false,
        series: false,
    };
    let mut world = World::new(router(forwarding, 40), std::slice::from_ref(&flow));
    for host in 0..2 {
        let mut config = world.hosts[host].config().clone();
        config.tcp = config.tcp.with_receive_buffer(window);
        world.hosts[host] = Stack::new(config).expect("sane configuration");
    }
    world.start(1, 1, AppKind::TcpSink { port: 5001 }, 0);
    let octets = Some(20_000_000);
    world.start(
        0,
        2,
        AppKind::TcpSource {
            to: B,
            port: 5001,
            local_ports: None,
            octets,
            write: None,
        },
        0,
    );
    world.run_until(Instant::from_secs(30));
    let AppResult::TcpSink(sink) = world.report(1, 1) else {
        panic!("not a sink")
    };
    assert_eq!((Some(sink.octets), sink.wrong), (octets, 0));
    let path = world.stats.report(world.now)[0].paths[0].clone();
    let (_, incoming) = world.router.interfaces().next().expect("interface");
    let full = incoming
        .dropped
        .get(&DropReason::QueueFull)
        .copied()
        .unwrap_or(0);
    assert_eq!(
        path.lost, full,
        "every loss is a drop at the tail of the queue"
    );
    let out = world.router.interfaces().nth(1).expect("interface").1;
    assert!(out.forwarded_packets >= path.received_packets);
    (path.throughput_mbps, path.lost, path.retransmitted)
}

#[test]
fn the_forwarding_rate_bounds_throughput() {
    // 35 Mbit/s of IP is 34.07 Mbit/s of payload in segments of 1460 octets, or 33.2 if each is acknowledged, because
    // both directions pass the engine. A window that fits the queue causes no loss; a larger window overruns the queue
    // and causes retransmissions.
    let rate = Forwarding::BitsPerSecond(35_000_000);
    let (small, lost, again) = bulk(rate, 32 << 10);
    assert!(small < 34.07 && small > 33.1, "{small}");
    assert_eq!((lost, again), (0, 0));
    let (large, lost, again) = bulk(rate, 256 << 10);
    assert!(large < 34.07 && large > 15.0, "{large}");
    assert!(lost > 0 && again >= lost, "{lost} {again}");
    // At wire speed only the window limits: 256 KiB per round trip of 200 µs.
    let (wire, lost, _) = bulk(Forwarding::Wire, 256 << 10);
    assert!(wire > 1000.0 && lost == 0, "{wire} {lost}");
}

#[test]
fn a_busy_engine_keeps_its_rate_exactly() {
    let engine = 7_000_003;
    let mut world = World::new(router(Forwarding::BitsPerSecond(engine), 10), &[]);
    // This ping resolves addresses, so that no packet waits for ARP later.
    world.start(0, 3, ping(B, Some(2), 10, 10), 0);
    world.run_until(Instant::from_secs(1));
    world.start(1, 1, AppKind::UdpSink { port: 9 }, 0);
    let kind = AppKind::UdpSource {
        to: B,
        port: 9,
        local_port: None,
        rate: PacketRate::per_second(2000.0).expect("in range"),
        pattern: Pattern::Constant,
        size: 972,
    };
    world.start(0, 2, kind, 10);
    world.run_until(Instant::from_secs(12));
    let AppResult::UdpSink(sink) = world.report(1, 1) else {
        panic!("not a sink")
    };
    let between = sink.last.expect("last") - sink.first.expect("first");
    // Each datagram has 1000 octets of IP; the first one marks the beginning.
    let exact = (sink.received - 1) as f64 * 8000.0 / engine as f64;
    assert!(
        (between.as_secs_f64() - exact).abs() < 2e-9,
        "{between:?} {exact}"
    );
    let (_, counters) = world.router.interfaces().next().expect("interface");
    assert_eq!(
        counters.dropped[&DropReason::QueueFull],
        20_000 - sink.received
    );
}

#[test]
fn ping_across_and_time_to_live() {
    let mut world = World::new(router(Forwarding::Wire, 0), &[]);
    let rate = every(Duration::from_millis(100));
    let ping = |to, ttl| AppKind::Ping {
        to,
        count: Some(3),
        rate,
        size: 56,
        ttl,
    };
    world.start(0, 1, ping(B, None), 0);
    world.start(0, 2, ping(B, Some(1)), 0);
    world.start(0, 3, ping(GATE[0], Some(1)), 0);
    world.start(0, 4, ping(GATE[1], None), 0);
    world.run_until(Instant::from_secs(5));
    for (id, received) in [(1, 3), (2, 0), (3, 3), (4, 3)] {
        let AppResult::Ping(result) = world.report(0, id) else {
            panic!("not a ping")
        };
        assert_eq!((result.sent, result.received), (3, received), "{id}");
    }
    let (_, counters) = world.router.interfaces().next().expect("interface");
    assert_eq!(counters.dropped[&DropReason::TimeToLive], 3);
}

/// A router without a world around it.
struct Bench {
    router: Router,
    now: Instant,
}

impl Bench {
    fn new() -> Self {
        Self {
            router: router(Forwarding::Wire, 0),
            now: Instant::ZERO,
        }
    }

    fn put(&mut self, input: RouterInput<'_>) -> Vec<RouterOutput> {
        self.router.handle_input(input, self.now).expect("taken");
        settle(&mut self.router, self.now)
    }

    fn frame(&mut self, interface: usize, bytes: &[u8]) -> Vec<RouterOutput> {
        self.put(RouterInput::Frame { interface, bytes })
    }

    fn at(&mut self, ms: u64) -> Vec<RouterOutput> {
        self.now = Instant::from_millis(ms);
        settle(&mut self.router, self.now)
    }

    fn dropped(&self, interface: usize, why: DropReason) -> u64 {
        let (_, counters) = self.router.interfaces().nth(interface).expect("interface");
        counters.dropped.get(&why).copied().unwrap_or(0)
    }
}

fn udp(to: Ipv4Addr, ttl: u8, size: usize) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], GATE_MAC[0])
        .ipv4(A.octets(), to.octets(), ttl)
        .udp(1, 2);
    let mut frame = Vec::new();
    builder.write(&mut frame, &vec![7; size]).expect("fits");
    frame
}

fn arp(request: bool, from: (Ipv4Addr, [u8; 6]), target: Ipv4Addr) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend_from_slice(&from.1);
    frame.extend_from_slice(&[8, 6, 0, 1, 8, 0, 6, 4, 0, if request { 1 } else { 2 }]);
    frame.extend_from_slice(&from.1);
    frame.extend_from_slice(&from.0.octets());
    frame.extend_from_slice(&[0; 6]);
    frame.extend_from_slice(&target.octets());
    // Short frames are padded as in the emulated LAN.
    frame.resize(60, 0);
    frame
}

/// The ARP request in an output: interface, target, and true if sent by broadcast.
fn asked(output: &RouterOutput) -> Option<(usize, Ipv4Addr, bool)> {
    let RouterOutput::Frame { interface, bytes } = output else {
        return None;
    };
    let sliced = SlicedPacket::from_ethernet(bytes).ok()?;
    let Some(NetSlice::Arp(arp)) = sliced.net else {
        return None;
    };
    let target: [u8; 4] = arp.target_protocol_addr().try_into().ok()?;
    (arp.operation().0 == 1).then_some((*interface, target.into(), bytes[..6] == [0xff; 6]))
}

/// The ICMP message in an output: type, code, and for an error the quoted destination. Checksums are verified.
fn icmp(output: &RouterOutput) -> Option<(u8, u8, Ipv4Addr)> {
    let RouterOutput::Frame { bytes, .. } = output else {
        return None;
    };
    let sliced = SlicedPacket::from_ethernet(bytes).expect("well formed");
    let Some(NetSlice::Ipv4(ip)) = sliced.net else {
        return None;
    };
    let header = ip.header().to_header();
    assert_eq!(header.header_checksum, header.calc_header_checksum());
    let Some(TransportSlice::Icmpv4(icmp)) = sliced.transport else {
        return None;
    };
    let message = icmp.header();
    assert_eq!(
        message.checksum,
        message.icmp_type.calc_checksum(icmp.payload())
    );
    let quoted: [u8; 4] = icmp.payload().get(16..20)?.try_into().ok()?;
    Some((icmp.type_u8(), icmp.code_u8(), quoted.into()))
}

const HOST_A: (Ipv4Addr, [u8; 6]) = (A, [2, 0, 0, 0, 0, 1]);
const HOST_B: (Ipv4Addr, [u8; 6]) = (B, [2, 0, 0, 0, 0, 2]);

#[test]
fn packets_from_a_shortcut_are_forwarded() {
    let mut bench = Bench::new();
    bench.frame(1, &arp(true, HOST_B, GATE[1]));
    let packet = &udp(B, 64, 10)[14..];
    let out = bench.put(RouterInput::Inject(packet));
    let [
        RouterOutput::Frame {
            interface: 1,
            bytes,
        },
    ] = &out[..]
    else {
        panic!("{out:?}")
    };
    assert_eq!((&bytes[..6], bytes[22]), (&HOST_B.1[..], 63));
    // The time to live has expired: the error follows the routes, from the address of the outgoing interface.
    bench.frame(0, &arp(true, HOST_A, GATE[0]));
    let out = bench.put(RouterInput::Inject(&udp(B, 1, 10)[14..]));
    assert_eq!(
        out.iter().filter_map(icmp).collect::<Vec<_>>(),
        [(11, 0, B)]
    );
    assert_eq!(bench.put(RouterInput::Inject(&packet[..15])), []);
    let counters = bench.router.shortcut_counters();
    assert_eq!(
        (counters.in_frames, counters.dropped[&DropReason::Malformed]),
        (3, 1)
    );
}

#[test]
fn the_longest_prefix_wins() {
    let mut config = router_config(Forwarding::Wire, 0);
    let via = |last| Ipv4Addr::new(10, 1, 0, last);
    config.routes.push(route(Ipv4Addr::UNSPECIFIED, 0, via(8)));
    config
        .routes
        .push(route(Ipv4Addr::new(10, 3, 4, 0), 24, via(7)));
    let router = Router::new(config).expect("sane");
    let next = |address: [u8; 4]| router.lookup(address.into()).next_hop(address.into());
    assert_eq!(router.lookup(GATE[1]), RouteResult::Local { interface: 1 });
    assert_eq!(next([10, 2, 0, 77]), Some((1, Ipv4Addr::new(10, 2, 0, 77))));
    assert_eq!(next([10, 3, 9, 9]), Some((1, Ipv4Addr::new(10, 2, 0, 9))));
    assert_eq!(next([10, 3, 4, 9]), Some((0, via(7))));
    assert_eq!(next([9, 9, 9, 9]), Some((0, via(8))));
    assert_eq!(
        router.lookup([10, 1, 0, 255].into()),
        RouteResult::Broadcast
    );
    assert_eq!(router.lookup([239, 1, 1, 1].into()), RouteResult::Multicast);
    let mut config = router_config(Forwarding::Wire, 0);
    config.routes[0].next_hop = Ipv4Addr::new(10, 9, 0, 1);
    assert!(Router::new(config).is_err(), "a next hop out of reach");
    assert!(Router::new(router_config(Forwarding::BitsPerSecond(0), 1)).is_err());
}

#[test]
fn routes_change_and_count_only_where_there_is_a_link() {
    let mut config = router_config(Forwarding::Wire, 0);
    let via = |last| Ipv4Addr::new(10, 1, 0, last);
    let default = |next_hop| route(Ipv4Addr::UNSPECIFIED, 0, next_hop);
    config.routes = vec![default(via(8))];
    let mut router = Router::new(config).expect("sane");
    let now = Instant::ZERO;
    let put = |router: &mut Router, input: RouterInput<'_>| {
        let accepted = router.handle_input(input, now).is_ok();
        (accepted, settle(router, now))
    };
    let changed = (true, vec![RouterOutput::RoutesChanged]);
    let link = |interface, up| RouterInput::Link { interface, up };
    let beyond = Ipv4Addr::new(10, 2, 0, 77);
    assert_eq!(
        put(&mut router, link(1, true)),
        (true, vec![]),
        "as at birth"
    );
    assert_eq!(put(&mut router, link(1, false)), changed);
    assert_eq!(put(&mut router, link(1, false)), (true, vec![]));
    let nowhere = "a default route would lead back";
    assert_eq!(router.lookup(beyond), RouteResult::NoRoute, "{nowhere}");
    assert_eq!(router.lookup(GATE[1]), RouteResult::Local { interface: 1 });
    let other = [default(via(9))];
    assert_eq!(put(&mut router, RouterInput::Routes(&other)), changed);
    assert_eq!(
        put(&mut router, RouterInput::Routes(&other)),
        (true, vec![])
    );
    let far = Ipv4Addr::new(10, 3, 0, 1);
    assert_eq!(router.lookup(far).next_hop(far), Some((0, via(9))));
    // Another route to the same network is used while the link is missing.
    let around = route(beyond, 24, via(7));
    assert_eq!(put(&mut router, RouterInput::Routes(&[around])), changed);
    assert_eq!(router.lookup(beyond).next_hop(beyond), Some((0, via(7))));
    let out_of_reach = [default(Ipv4Addr::new(10, 9, 0, 1))];
    let (accepted, output) = put(&mut router, RouterInput::Routes(&out_of_reach));
    assert!(!accepted && output.is_empty());
    assert_eq!(put(&mut router, link(1, true)), changed);
    assert_eq!(
        router.lookup(beyond),
        RouteResult::Connected { interface: 1 }
    );
    assert!(!put(&mut router, link(2, false)).0, "no such interface");
    // Networks that are not reached over the interfaces, although a shorter prefix or an interface covers them.
    let elsewhere =
        |last, prefix| route(Ipv4Addr::new(10, 2, 0, last), prefix, Ipv4Addr::UNSPECIFIED);
    let routes = [default(via(8)), elsewhere(77, 32)];
    assert_eq!(put(&mut router, RouterInput::Routes(&routes)), changed);
    assert_eq!(router.lookup(beyond), RouteResult::NoRoute);
    let beside = Ipv4Addr::new(10, 2, 0, 78);
    let connected = RouteResult::Connected { interface: 1 };
    assert_eq!(router.lookup(beside), connected);
    let routes = [default(via(8)), elsewhere(0, 24)];
    assert_eq!(put(&mut router, RouterInput::Routes(&routes)), changed);
    assert_eq!(router.lookup(beside), RouteResult::NoRoute);
    assert_eq!(router.lookup(far).next_hop(far), Some((0, via(8))));
}

#[test]
fn the_tables_of_a_router_are_bounded() {
    let mut config = router_config(Forwarding::Wire, 0);
    config.interfaces[1].prefix = 16;
    config.arp.neighbours = 100;
    let mut bench = Bench {
        router: Router::new(config).expect("sane"),
        now: Instant::ZERO,
    };
    let peer = |n: u16| Ipv4Addr::from([10, 2, (n >> 8) as u8, n as u8]);
    for n in 1000..1300 {
        bench.frame(1, &arp(true, (peer(n), HOST_B.1), GATE[1]));
    }
    assert_eq!(
        bench.router.neighbours(1).count(),
        100,
        "idle ones make way"
    );
    // A scan replaces idle neighbours until it has a quarter of the table; after that it replaces its own entries.
    for n in 2000..2300 {
        bench.frame(0, &udp(peer(n), 64, 10));
    }
    assert_eq!(bench.dropped(0, DropReason::ArpQueueFull), 275);
    assert_eq!(bench.router.neighbours(1).count(), 75);
}

proptest::proptest! {
    #[test]
    fn no_frame_breaks_a_router(
        octets in proptest::collection::vec(proptest::num::u8::ANY, 0..120),
        changes in proptest::collection::vec((0usize..80, proptest::num::u8::ANY), 0..6),
        fix in proptest::bool::ANY,
    ) {
        let mut bench = Bench::new();
        bench.frame(0, &arp(true, HOST_A, GATE[0]));
        for original in [udp(B, 64, 30), udp(GATE[0], 1, 30), arp(true, HOST_A, GATE[0]), octets] {
            let mut frame = original;
            for (at, value) in &changes {
                if let Some(octet) = frame.get_mut(*at) {
                    *octet = *value;
                }
            }
            if fix && let Some(packet) = frame.get_mut(14..) {
                crate::ip::packet::seal(packet);
            }
            bench.frame(0, &frame);
            bench.put(RouterInput::Inject(frame.get(14..).unwrap_or(&[])));
            bench.at(500);
        }
        bench.at(10_000);
    }
}
