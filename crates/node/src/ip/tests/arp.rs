//! Embedded hosts and their neighbours.

use super::ping;
use super::wire::{Fate, World, config, perfect};
use crate::ip::apps::{AppKind, AppResult, Pattern, PingResult};
use crate::ip::neighbours::NeighbourState;
use crate::ip::router::StaticRoute;
use crate::ip::stack::{Place, Stack, StackConfig, StackInput, StackOutput};
use crate::rate::PacketRate;
use aerostat_proto::machine::settle;
use aerostat_proto::{Duration, Instant, Machine};
use proptest::prelude::*;
use std::net::Ipv4Addr;

fn host(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 1, 0, last)
}

fn pinged(world: &World, id: u32) -> PingResult {
    match world.report(0, id) {
        AppResult::Ping(result) => result,
        other => panic!("{other:?}"),
    }
}

fn lan(hosts: u8, rule: super::wire::Rule) -> World {
    let configs = (1..=hosts).map(|n| config(&format!("h{n}"), n, 1));
    World::new(configs.collect(), &[], rule)
}

#[test]
fn a_host_that_pings_19_others_at_once_reaches_all_within_two_round_trips() {
    let mut world = lan(20, perfect(Duration::from_micros(500)));
    for n in 2..=20 {
        world.start(0, n.into(), ping(host(n), Some(3), 1000, 56), 0);
    }
    world.run_until(Instant::from_secs(5));
    for n in 2..=20 {
        let result = pinged(&world, n);
        assert_eq!((result.sent, result.received), (3, 3), "{n}");
        assert_eq!(result.rtt.max_us, 2000.0, "{n}");
    }
}

#[test]
fn a_dead_destination_costs_a_healthy_one_nothing() {
    let mut world = lan(2, perfect(Duration::from_micros(500)));
    world.start(0, 1, ping(host(77), Some(100), 100, 56), 0);
    world.start(0, 2, ping(host(2), Some(100), 100, 56), 0);
    world.run_until(Instant::from_secs(20));
    let (dead, healthy) = (pinged(&world, 1), pinged(&world, 2));
    assert_eq!((dead.sent, dead.not_sent, dead.received), (100, 0, 0));
    assert_eq!((healthy.sent, healthy.received), (100, 100));
    assert_eq!(healthy.rtt.max_us, 2000.0);
    assert_eq!(world.discarded, vec![(0, Place::Arp); 100]);
    let (views, counters) = world.hosts[0].arp(0).expect("an interface");
    let states: Vec<_> = views.iter().map(|v| (v.address, v.state)).collect();
    let (reachable, failed) = (NeighbourState::Reachable, NeighbourState::Failed);
    assert_eq!(states, [(host(2), reachable), (host(77), failed)]);
    assert_eq!((views[1].dropped, counters.unanswered), (100, 100));
}

#[test]
fn a_lost_request_is_repeated_after_a_second_and_the_queue_arrives_whole() {
    let rule = |number, _, _: &[u8]| match number {
        0 => Fate::Lose,
        _ => Fate::Deliver(Duration::from_micros(500)),
    };
    let mut world = lan(2, Box::new(rule));
    let kind = AppKind::UdpSource {
        to: host(2),
        port: 9000,
        local_port: None,
        rate: PacketRate::per_second(90.0).expect("in range"),
        pattern: Pattern::Constant,
        size: 100,
    };
    world.start(1, 1, AppKind::UdpSink { port: 9000 }, 0);
    world.start(0, 2, kind, 2000);
    world.run_until(Instant::from_secs(3));
    let AppResult::UdpSink(sink) = world.report(1, 1) else {
        panic!("not a sink")
    };
    assert_eq!(
        (sink.received, sink.lost, sink.out_of_sequence),
        (180, 0, 0)
    );
}

#[test]
fn routes_lead_by_the_longest_prefix_and_what_has_no_route_is_given_up() {
    let mut a = config("a", 1, 1);
    let route = |prefix, next_hop| StaticRoute {
        destination: Ipv4Addr::new(10, 9, 0, 0),
        prefix,
        next_hop,
    };
    a.routes = vec![route(8, host(2)), route(24, host(3))];
    let configs: Vec<StackConfig> = vec![a, config("b", 2, 1), config("c", 3, 1)];
    let mut world = World::new(configs, &[], perfect(Duration::from_micros(100)));
    world.record = true;
    for (id, to) in [[10, 9, 0, 9], [10, 8, 0, 9], [192, 0, 2, 1]]
        .into_iter()
        .enumerate()
    {
        world.start(0, id as u32, ping(to.into(), Some(1), 100, 56), 0);
    }
    world.run_until(Instant::from_secs(3));
    let sent = |to: [u8; 4], mac: u8| {
        let is = |f: &&Vec<u8>| f[12..14] == [8, 0] && f[30..34] == to && f[5] == mac;
        world.frames.iter().filter(is).count()
    };
    assert_eq!((sent([10, 9, 0, 9], 3), sent([10, 8, 0, 9], 2)), (1, 1));
    assert_eq!(world.discarded, [(0, Place::Route)]);
}

#[test]
fn a_host_reaches_itself_and_a_neighbour_that_it_was_told() {
    let mut a = config("a", 1, 1);
    a.neighbours = vec![(host(2), [2, 0, 0, 0, 0, 2])];
    let rule = |_, _, frame: &[u8]| match frame[12..14] {
        [8, 6] => Fate::Lose,
        _ => Fate::Deliver(Duration::from_micros(500)),
    };
    let mut b = config("b", 2, 1);
    b.neighbours = vec![(host(1), [2, 0, 0, 0, 0, 1])];
    let mut world = World::new(vec![a, b], &[], Box::new(rule));
    world.start(0, 1, ping(host(1), Some(2), 100, 56), 0);
    world.start(0, 2, ping(host(2), Some(2), 100, 56), 0);
    world.run_until(Instant::from_secs(3));
    assert_eq!(
        (pinged(&world, 1).received, pinged(&world, 2).received),
        (2, 2)
    );
    assert_eq!(world.hosts[0].counters().looped, 4, "requests and replies");
    assert_eq!(world.hosts[0].arp(0).expect("an interface").1.requests, 0);
}

/// An ARP packet in an Ethernet frame.
fn arp(operation: u8, sender: (Ipv4Addr, [u8; 6]), target: Ipv4Addr) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend(sender.1);
    frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, operation]);
    frame.extend(sender.1);
    frame.extend(sender.0.octets());
    frame.extend([0; 6]);
    frame.extend(target.octets());
    frame
}

#[test]
fn a_probe_of_duplicate_address_detection_is_answered_and_teaches_nothing() {
    let mut stack = Stack::new(config("a", 1, 1)).expect("sane");
    let mac = [2, 0, 0, 0, 0, 0x66];
    let probe = arp(1, (Ipv4Addr::UNSPECIFIED, mac), host(1));
    stack
        .handle_input(StackInput::of_first(&probe), Instant::ZERO)
        .expect("taken");
    let out = settle(&mut stack, Instant::ZERO);
    assert!(
        matches!(&out[..], [StackOutput::Frame { bytes: f, .. }] if f[..6] == mac && f[20..22] == [0, 2])
    );
    assert!(stack.arp(0).expect("an interface").0.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// Forged ARP of every kind, beside traffic to a neighbour that is present, one that is absent, and a destination
    /// without a route. The table stays bounded, every packet is accounted for at all times, and all traffic to a
    /// permanent neighbour arrives.
    #[test]
    fn forged_floods_are_bounded_and_every_packet_is_accounted_for(
        forged in proptest::collection::vec((any::<u8>(), any::<u16>(), 0u8..4, any::<u8>()), 1..1500),
    ) {
        let mut a = config("a", 1, 1);
        a.prefix = 16;
        a.neighbours = vec![(host(2), [2, 0, 0, 0, 0, 2])];
        let mut b = config("b", 2, 1);
        b.neighbours = vec![(host(1), [2, 0, 0, 0, 0, 1])];
        let mut world = World::new(vec![a, b], &[], perfect(Duration::from_micros(500)));
        world.record = true;
        for (id, to) in [(1, host(2)), (2, host(77)), (3, Ipv4Addr::new(192, 0, 2, 1))] {
            world.start(0, id, ping(to, Some(50), 20, 56), 0);
        }
        let mut released = 0;
        for (round, (operation, sender, target, mac)) in forged.into_iter().enumerate() {
            let [high, low] = sender.to_be_bytes();
            let sender = (Ipv4Addr::from([10, 1, high, low]), [2, 6, 6, 6, 6, mac]);
            let target = host([1, 2, 77, 9][usize::from(target)]);
            let frame = arp(operation % 3, sender, target);
            world.hosts[0].handle_input(StackInput::of_first(&frame), world.now).expect("taken");
            for out in settle(&mut world.hosts[0], world.now) {
                match out {
                    StackOutput::Frame { bytes: f, .. } if f[12..14] == [8, 0] => released += 1,
                    StackOutput::Frame { .. } => {}
                    StackOutput::Discarded { place, .. } => world.discarded.push((0, place)),
                    StackOutput::Finished(..)
                    | StackOutput::Offered(..)
                    | StackOutput::Trace(_)
                    | StackOutput::Call(..) => {}
                }
            }
            if round % 3 == 0 {
                let next = world.now + Duration::from_millis(7);
                world.run_until(next);
            }
            let (views, _) = world.hosts[0].arp(0).expect("an interface");
            prop_assert!(views.len() <= 1024);
            let waiting: u64 = views.iter().map(|v| v.queued as u64).sum();
            let counters = world.hosts[0].counters();
            let discarded = counters.discarded_arp + counters.discarded_route;
            prop_assert_eq!(discarded, world.discarded.len() as u64);
            let own = |f: &&Vec<u8>| f[11] == 1 && f[12..14] == [8, 0];
            let sent = released + world.frames.iter().filter(own).count() as u64;
            prop_assert_eq!(counters.packets, sent + counters.looped + discarded + waiting);
        }
        world.run_until(Instant::from_secs(60));
        let counters = *world.hosts[0].counters();
        let healthy = pinged(&world, 1);
        prop_assert_eq!((healthy.sent, healthy.received), (50, 50));
        prop_assert_eq!(pinged(&world, 3).sent, counters.discarded_route);
        let discarded = counters.discarded_arp + counters.discarded_route;
        let to_dead = pinged(&world, 2).sent;
        prop_assert!(discarded <= to_dead + counters.discarded_route);
        prop_assert_eq!(counters.packets, 150, "no answers are asked of it");
    }
}
