//! Hosts that restart in the middle of a TCP connection.

use super::wire::{Fate, Rule, World, config, perfect};
use crate::ip::apps::{AppKind, AppResult, TcpSourceResult, TransactionClientResult};
use crate::ip::flow_stats::FlowReport;
use crate::ip::meter::{FlowSpec, Protocol};
use crate::ip::source_ports::SourcePorts;
use crate::ip::stack::Stack;
use aerostat_proto::{Duration, Instant};
use std::cell::Cell;
use std::net::Ipv4Addr;
use std::rc::Rc;

const A: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const B: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
const PORTS: Option<SourcePorts> = Some(SourcePorts::every(40_001, 3));
const SINK: AppKind = AppKind::TcpSink { port: 5001 };
const DELAY: Duration = Duration::from_millis(10);

fn source(octets: Option<u64>) -> AppKind {
    AppKind::TcpSource {
        to: B,
        port: 5001,
        local_ports: PORTS,
        octets,
        write: None,
    }
}

fn client() -> AppKind {
    AppKind::TransactionClient {
        to: B,
        port: 5001,
        local_ports: PORTS,
        request: 10,
        response: 5000,
    }
}

fn server() -> AppKind {
    AppKind::TransactionServer {
        port: 5001,
        request: 10,
        response: 5000,
    }
}

/// A (0) and b (1), with the flow from a to b.
fn pair(rule: Rule) -> World {
    let flow = FlowSpec {
        name: "f".into(),
        source: A,
        destination: B,
        protocol: Protocol::Tcp,
        source_ports: PORTS,
        destination_port: Some(5001),
        voice: false,
        series: false,
    };
    let mut configs = vec![config("a", 1, 9), config("b", 2, 9)];
    // Small buffers limit the rate to about 1.6 Mbit/s, because the wire does not.
    for config in &mut configs {
        config.tcp = (config.tcp)
            .with_send_buffer(4096)
            .with_receive_buffer(4096);
    }
    World::new(configs, &[flow], rule)
}

/// The host has forgotten everything, and is in its next life.
fn restart(world: &mut World, host: usize) {
    let old = world.hosts[host].config().clone();
    let config = crate::ip::stack::StackConfig {
        life: old.life + 1,
        seed: old.seed + 1000,
        ..old
    };
    world.hosts[host] = Stack::new(config).expect("the same addresses");
}

fn sent(world: &World, host: usize) -> TcpSourceResult {
    match world.report(host, 2) {
        AppResult::TcpSource(result) => result,
        other => panic!("{other:?}"),
    }
}

fn asked(world: &World, host: usize) -> TransactionClientResult {
    match world.report(host, 2) {
        AppResult::TransactionClient(result) => result,
        other => panic!("{other:?}"),
    }
}

/// Connections, octets and wrong octets of the sink.
fn taken(world: &World) -> (u64, u64, u64) {
    match world.report(1, 1) {
        AppResult::TcpSink(sink) => (sink.connections, sink.octets, sink.wrong),
        other => panic!("{other:?}"),
    }
}

fn flow(world: &World) -> FlowReport {
    world
        .stats
        .report(world.now + Duration::from_secs(2))
        .remove(0)
}

#[test]
fn a_sender_that_restarts_is_served_beside_its_old_connection_which_ends_by_keep_alive() {
    let mut world = pair(perfect(DELAY));
    world.start(1, 1, SINK, 0);
    // More restarts than a port serves connections at a time.
    for life in 0..40 {
        world.start(0, 2, source(None), 0);
        world.run_until(world.now + Duration::from_millis(500));
        let result = sent(&world, 0);
        assert_eq!(
            (result.connections, result.failed),
            (1, false),
            "life {life}"
        );
        assert!(result.octets > 10_000, "life {life}: {result:?}");
        restart(&mut world, 0);
    }
    let (connections, octets, wrong) = taken(&world);
    assert_eq!((connections, wrong), (40, 0));
    let got = flow(&world).sum(|path| path.received_octets);
    assert!(octets <= got, "{octets}, {got}");
}

#[test]
fn a_receiver_that_restarts_is_called_again_and_gets_what_was_not_acknowledged() {
    const ALL: u64 = 1_000_000;
    let mut world = pair(perfect(DELAY));
    world.start(1, 1, SINK, 0);
    world.start(0, 2, source(Some(ALL)), 0);
    world.run_until(Instant::from_millis(400));
    let before = taken(&world);
    assert!(before.1 > 0 && before.1 < ALL);
    restart(&mut world, 1);
    world.start(1, 1, SINK, 0);
    world.run_until(Instant::from_secs(20));
    let (after, result) = (taken(&world), sent(&world, 0));
    assert_eq!(
        (result.connections, result.octets, result.failed),
        (2, ALL, false)
    );
    assert_eq!(
        (after.0, after.2),
        (1, 0),
        "contents begin anew with the connection"
    );
    assert!(before.1 + after.1 >= ALL, "{before:?} {after:?}");
}

/// A client whose server restarts in the middle of a response, at 200 ms.
fn interrupted() -> World {
    // The request is acknowledged, and of the response only the first segment arrives.
    let (broken, mut first) = (Rc::new(Cell::new(true)), true);
    let cut = Rc::clone(&broken);
    let rule: Rule = Box::new(move |_, from, frame| {
        let response = from == 1 && frame.len() > 1000;
        if response && cut.get() && !std::mem::take(&mut first) {
            return Fate::Lose;
        }
        Fate::Deliver(DELAY)
    });
    let mut world = pair(rule);
    world.start(1, 1, server(), 0);
    world.start(0, 2, client(), 30_000);
    world.run_until(Instant::from_millis(200));
    assert_eq!(asked(&world, 0).transactions, 0);
    broken.set(false);
    restart(&mut world, 1);
    world
}

#[test]
fn a_probe_of_a_connection_that_the_server_forgot_is_no_packet_of_the_flow() {
    let mut world = interrupted();
    let before = flow(&world);
    world.run_until(Instant::from_secs(15));
    let after = flow(&world);
    assert_eq!(after.last_received, before.last_received, "{after:?}");
    assert_eq!((after.sum(|path| path.offered), after.unmatched), (1, 0));
    assert_eq!(after.sum(|path| path.retransmitted), 0);
    assert_eq!(after.sum(|path| path.received_octets), 10);
    // The probe was answered with a reset: the client tries to connect again.
    world.start(1, 1, server(), 0);
    world.run_until(Instant::from_secs(17));
    assert_eq!(asked(&world, 0).connections, 2);
}

#[test]
fn a_client_whose_server_restarts_in_the_middle_of_a_response_asks_again() {
    let mut world = interrupted();
    world.start(1, 1, server(), 0);
    world.run_until(Instant::from_secs(9));
    assert_eq!(asked(&world, 0).connections, 1, "nothing tells the client");
    world.run_until(Instant::from_secs(31));
    let result = asked(&world, 0);
    assert_eq!((result.connections, result.failed), (2, false));
    assert!(result.transactions > 100, "{result:?}");
}

#[test]
fn a_first_connection_that_is_refused_ends_the_program_and_a_later_one_is_tried_again() {
    let mut world = pair(perfect(DELAY));
    world.start(0, 2, source(None), 5000);
    world.run_until(Instant::from_secs(1));
    assert!(sent(&world, 0).failed && world.finished.len() == 1);

    let mut world = pair(perfect(DELAY));
    world.start(1, 1, SINK, 0);
    world.start(0, 2, source(None), 20_000);
    world.run_until(Instant::from_secs(1));
    restart(&mut world, 1);
    // No program listens for a while.
    world.run_until(Instant::from_secs(6));
    assert_eq!(sent(&world, 0).connections, 1);
    world.start(1, 1, SINK, 0);
    world.run_until(Instant::from_secs(8));
    assert_eq!(sent(&world, 0).connections, 2);
    // What reached the host without a connection was not delivered.
    let octets = flow(&world).sum(|path| path.received_octets);
    world.run_until(Instant::from_secs(40));
    assert!(!sent(&world, 0).failed && octets > 0);
}
