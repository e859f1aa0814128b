//! Clients and real servers, in virtual time.

mod choices;
mod kept;
mod networks;
mod world;

use std::net::Ipv4Addr;

use aerostat_wire::llc::LlcSnap;
use aerostat_wire::nhrp::{Cie, Extension, Packet, code, error, ext, op};
use aerostat_wire::{AtmAddress, Reader};
use proptest::prelude::*;

use super::{EntryState, Input, Nhc, Refusal, Unresolved};
use crate::machine::settle;
use crate::mpoa::mps::{MpsConfig, RouteResult};
use crate::nhrp::auth::{Key, Neighbour};
use crate::{AtmEvent, Cause, ConnId, Duration, Instant, Machine};
use world::{Who, World, atm, ip};

const SECOND: Duration = Duration::from_secs(1);

fn plain(count: u8) -> World {
    World::row(count, |_, _| {}, |_, _| {})
}

/// Client 0 sends to client 1's station until packets use a shortcut.
fn direct(world: &mut World, destination: Ipv4Addr) {
    world.send(0, destination, b"first");
    world.run(SECOND);
    let entry = world.entry(0, destination).unwrap();
    assert_eq!(entry.state, EntryState::Shortcut);
}

fn records(packet: &Packet, kind: u16) -> Vec<Ipv4Addr> {
    let mut reader = Reader::new(&packet.extension(kind).unwrap().value);
    let entries = std::iter::from_fn(|| Cie::decode(&mut reader).ok());
    entries.filter_map(|cie| cie.protocol.ipv4()).collect()
}

/// Questions of other parts of the host open no shortcut, and always get an answer.
#[test]
fn questions_get_the_address_or_nothing() {
    let mut world = plain(3);
    let target = ip(3, 10);
    for (token, destination) in [(1, target), (2, ip(3, 99)), (3, target)] {
        world.client(0, Input::Resolve { token, destination });
    }
    world.run(SECOND * 20);
    let mut told = core::mem::take(&mut world.clients[0].resolved);
    told.sort_by_key(|(token, _)| *token);
    assert_eq!(
        told,
        [
            (1, Ok(atm(0x81, 0))),
            (2, Err(Unresolved::Refused(Refusal::Code(12)))),
            (3, Ok(atm(0x81, 0)))
        ]
    );
    assert_eq!(world.clients[0].nhc.counters().calls, 0);
    // What is known is told at once; packets use the answer.
    let (token, destination) = (4, target);
    world.client(0, Input::Resolve { token, destination });
    assert_eq!(world.clients[0].resolved, [(4, Ok(atm(0x81, 0)))]);
    direct(&mut world, target);
    // Open questions fill half of the table; packets have the rest.
    let most = world.clients[0].nhc.config().limits.entries;
    for n in 0..most as u64 {
        let token = 100 + n;
        let destination = Ipv4Addr::from(u32::from(ip(3, 0)) + 1000 + n as u32);
        world.client(0, Input::Resolve { token, destination });
    }
    let told = core::mem::take(&mut world.clients[0].resolved);
    let full = |told: &&(u64, _)| told.1 == Err(Unresolved::Full);
    assert_eq!(told.iter().filter(full).count(), most - most / 2);
    world.run(SECOND * 60);
    world.clients[0].resolved.clear();
    negative_answers_give_way(&mut world);
    world.run(SECOND * 60);
    // The end of the client answers what waits.
    world.client(
        0,
        Input::Resolve {
            token: 5,
            destination: ip(3, 98),
        },
    );
    world.client(0, Input::Stop);
    assert_eq!(
        world.clients[0].resolved.last(),
        Some(&(5, Err(Unresolved::Stopped)))
    );
}

/// A program that asks for addresses without an owner does not take the table from others.
fn negative_answers_give_way(world: &mut World) {
    let most = world.clients[0].nhc.config().limits.entries;
    for turn in 0..10_u32 {
        for n in 0..100 {
            let (token, last) = (0, turn * 100 + n);
            let destination = Ipv4Addr::from(u32::from(ip(3, 0)) + 2000 + last);
            world.client(0, Input::Resolve { token, destination });
        }
        world.run(SECOND / 5);
        let (token, destination) = (1, ip(3, 10));
        world.client(0, Input::Resolve { token, destination });
        world.run(SECOND / 5);
        let told = core::mem::take(&mut world.clients[0].resolved);
        let nobody = |told: &&(u64, _)| matches!(told, (0, Err(Unresolved::Refused(_))));
        assert_eq!(told.iter().filter(nobody).count(), 100, "{turn}");
        let answer = told.iter().find(|told| told.0 == 1).unwrap().1;
        assert_eq!(answer, Ok(atm(0x81, 0)), "{turn}");
        assert!(world.clients[0].nhc.snapshot().entries.len() <= most / 2 + 1);
    }
}

/// Through three servers: registration, resolution with records, shortcut.
#[test]
fn a_packet_cuts_through_three_routers() {
    let mut world = plain(3);
    let target = ip(3, 10);
    for client in &world.clients {
        assert!(client.nhc.snapshot().registered.is_some());
        assert_eq!(client.story, ["nhc.registered"]);
    }
    direct(&mut world, target);
    world.send(0, target, b"second");
    world.run(SECOND);
    assert_eq!(
        world.clients[0].routed,
        [b"first".to_vec()],
        "nothing waits"
    );
    assert_eq!(world.sinks[&atm(0x81, 0)], [LlcSnap::Ipv4.wrap(b"second")]);
    let entry = world.entry(0, target).unwrap();
    assert_eq!(entry.nbma, Some(atm(0x81, 0)));
    assert_eq!(
        (entry.responder, entry.servers, entry.mtu),
        (Some(ip(2, 1)), 2, 9180)
    );
    // Transit servers are in the records of both directions, the responder in neither.
    let last = |op: u8| {
        &world
            .log
            .iter()
            .rfind(|(.., packet)| packet.op == op)
            .unwrap()
            .2
    };
    let (request, reply) = (last(op::RESOLUTION_REQUEST), last(op::RESOLUTION_REPLY));
    assert_eq!(records(request, ext::FORWARD_TRANSIT), [ip(0, 1), ip(1, 1)]);
    assert_eq!(records(reply, ext::REVERSE_TRANSIT), [ip(1, 1), ip(0, 1)]);
    assert_eq!(records(reply, ext::RESPONDER), [ip(2, 1)]);
    // All destinations there share one connection.
    assert_eq!(world.clients[0].nhc.counters().calls, 1);
}

#[test]
fn a_station_that_stops_takes_its_ways_along() {
    let mut world = plain(2);
    let target = ip(2, 10);
    direct(&mut world, target);
    world.client(1, Input::Stop);
    world.run(SECOND);
    let entry = world.entry(0, target).unwrap();
    assert_eq!((entry.state, entry.nbma), (EntryState::Void, None));
    assert!(world.clients[0].story.contains(&"nhc.purged"));
    // The purge passed both servers, and was answered.
    assert!(world.count(op::PURGE_REPLY) >= 2);
    world.send(0, target, b"later");
    world.run(SECOND);
    let entry = world.entry(0, target).unwrap();
    assert_eq!(
        entry.state,
        EntryState::Refused(Refusal::Code(code::NO_BINDING))
    );
    assert_eq!(world.clients[0].routed.len(), 2);
    // The station comes back, and is found when the pause is over.
    world.client(1, Input::Start);
    world.send(0, target, b"too early");
    world.run(Duration::from_secs(60));
    direct(&mut world, target);
}

/// A station that dies silently: calls to it fail, and its registration ends.
#[test]
fn a_station_that_dies() {
    let mut world = plain(2);
    let target = ip(2, 10);
    direct(&mut world, target);
    world.kill(atm(0x81, 0));
    world.run(SECOND);
    let entry = world.entry(0, target).unwrap();
    assert_eq!(entry.state, EntryState::Void);
    assert_eq!(entry.last_cause, None, "a normal release is no failure");
    world.send(0, target, b"asks again");
    world.run(SECOND);
    let entry = world.entry(0, target).unwrap();
    assert_eq!(
        entry.state,
        EntryState::Refused(Refusal::Call(Cause::INCOMPATIBLE))
    );
    // The cause stays known when the hold-down is over.
    assert_eq!(entry.last_cause, Some(Cause::INCOMPATIBLE));
    assert_eq!(world.clients[0].nhc.counters().calls_failed, 1);
}

#[test]
fn used_ways_are_kept_and_unused_ones_forgotten() {
    let holding =
        |_: usize, config: &mut super::Config| config.params.holding = Duration::from_secs(30);
    let mut world = World::row(2, |_, _| {}, holding);
    let target = ip(2, 10);
    direct(&mut world, target);
    for _ in 0..100 {
        world.send(0, target, b"again");
        world.run(SECOND);
    }
    assert_eq!(world.clients[0].routed.len(), 1, "never interrupted");
    assert_eq!(world.clients[0].nhc.counters().calls, 1);
    assert!(world.clients[0].nhc.snapshot().registered.is_some());
    world.run(Duration::from_secs(40));
    assert_eq!(world.entry(0, target), None);
    // An idle connection is released before its binding ends.
    let idle = |_: usize, config: &mut super::Config| config.idle = Duration::from_secs(20);
    let mut world = World::row(2, |_, _| {}, idle);
    direct(&mut world, target);
    world.run(Duration::from_secs(21));
    assert_eq!(world.entry(0, target).unwrap().state, EntryState::Known);
    direct(&mut world, target);
    assert_eq!(
        world.count(op::RESOLUTION_REQUEST),
        2,
        "asked once, over two servers"
    );
}

/// Two servers that route to each other: the record stops the request.
#[test]
fn a_loop_is_found_by_the_records() {
    let mut world = plain(3);
    let target = ip(3, 10);
    let back = RouteResult::Via {
        itf: 0,
        next_hop: ip(1, 2).into(),
    };
    world.routers[1].routes.push((target, 32, back));
    world.send(0, target, b"round and round");
    world.run(SECOND);
    let entry = world.entry(0, target).unwrap();
    let (routers, state) = (&world.routers, entry.state);
    let found: u64 = routers
        .iter()
        .filter_map(|r| r.mps.counters().errors_sent.get(&error::LOOP).copied())
        .sum();
    assert_eq!(found, 1);
    assert_eq!(state, EntryState::Refused(Refusal::Error(error::LOOP)));
    assert_eq!(world.count(op::RESOLUTION_REQUEST), 3);
}

#[test]
fn keys_of_stations() {
    let key = |secret: &str| {
        let (spi, secret) = (3, secret.into());
        Key {
            spi,
            secret,
            clear_text: false,
        }
    };
    let server = |n: usize, config: &mut MpsConfig| {
        if n == 0 {
            let (key, signs_as) = (key("ours"), ip(0, 10));
            let neighbour = Neighbour { key, signs_as };
            config.keys.neighbours.insert(atm(0x80, 0x54), neighbour);
        }
    };
    for (secret, good) in [(Some("ours"), true), (Some("theirs"), false), (None, false)] {
        let client = |n: usize, config: &mut super::Config| {
            let signs_as = ip(0, 1);
            let shared = secret.filter(|_| n == 0).map(key);
            let neighbour = shared.map(|key| (atm(0, 0x52), Neighbour { key, signs_as }));
            config.keys.unsigned = neighbour.is_none();
            config.keys.neighbours.extend(neighbour);
        };
        let mut world = World::row(1, server, client);
        let target = ip(1, 10);
        world.send(0, target, b"x");
        world.run(SECOND);
        let snapshot = world.clients[0].nhc.snapshot();
        assert_eq!(snapshot.registered.is_some(), good, "{secret:?}");
        let errors = snapshot
            .counters
            .errors_received
            .get(&error::AUTHENTICATION);
        assert_eq!(errors.is_some(), !good, "{secret:?}");
        let state = world.entry(0, target).map(|entry| entry.state);
        assert_eq!(state == Some(EntryState::Shortcut), good, "{secret:?}");
        for (from, _, packet) in &world.log {
            let signed = packet.extension(ext::AUTHENTICATION).is_some();
            assert!(!signed || *from != Who::Client(1));
        }
    }
}

#[test]
fn a_registration_that_is_refused_is_tried_again_later() {
    let closed = |_: usize, config: &mut MpsConfig| config.register = false;
    let mut world = World::row(1, closed, |_, _| {});
    let told = |world: &World| {
        let replies = world.clients[0].nhc.counters().registration_replies.clone();
        replies.get(&code::PROHIBITED).copied()
    };
    assert_eq!(told(&world), Some(1));
    world.send(0, ip(1, 10), b"x");
    assert_eq!(
        world.entry(0, ip(1, 10)),
        None,
        "who is not registered does not ask"
    );
    world.run(super::Params::DEFAULT.hold_down);
    assert_eq!(told(&world), Some(2));
    // A client may omit it.
    let anonymous = |n: usize, config: &mut super::Config| {
        if n == 0 {
            config.params.holding = Duration::from_secs(0);
        }
    };
    let mut world = World::row(2, |_, _| {}, anonymous);
    assert_eq!(world.clients[0].nhc.snapshot().registered, None);
    direct(&mut world, ip(2, 10));
}

#[test]
fn loss_delays_and_nothing_more() {
    let mut world = plain(2);
    world.loss = 30;
    let target = ip(2, 10);
    for _ in 0..200 {
        world.send(0, target, b"x");
        world.run(SECOND);
    }
    assert!(world.arrived(1) > 50, "{}", world.arrived(1));
}

/// Other stations cannot call, and an unsolicited packet is answered with an error.
#[test]
fn strangers_and_unsolicited_replies() {
    let mut world = plain(1);
    let stranger = (Who::Sink(atm(0x81, 0)), ConnId(7));
    world.call(stranger, atm(0x81, 9), atm(0x80, 0x54));
    world.run(SECOND);
    assert_eq!(world.clients[0].nhc.counters().strangers, 1);
    direct(&mut world, ip(1, 10));
    let (_, _, reply) = world
        .log
        .iter()
        .rfind(|(_, _, p)| p.op == op::RESOLUTION_REPLY)
        .unwrap();
    let sdu = reply.to_sdu();
    let conn = ConnId(1);
    let sdu = &sdu[..];
    world.client(0, Input::Atm(AtmEvent::Received { conn, sdu }));
    let errors = &world.clients[0].nhc.counters().errors_sent;
    assert_eq!(errors.get(&error::UNSOLICITED_REPLY), Some(&1));
    // A purge with an unknown compulsory extension is refused and has no effect.
    let purge = aerostat_wire::mpoa::purge_request(
        9,
        atm(0, 0x52),
        ip(0, 1).into(),
        ip(0, 10).into(),
        ip(1, 10).into(),
        32,
    );
    let strange = purge.clone().with(Extension::compulsory(0x3fff, vec![1]));
    for (packet, state) in [(strange, EntryState::Shortcut), (purge, EntryState::Void)] {
        let sdu = &packet.to_sdu()[..];
        world.client(0, Input::Atm(AtmEvent::Received { conn, sdu }));
        assert_eq!(world.entry(0, ip(1, 10)).unwrap().state, state);
    }
    let errors = &world.clients[0].nhc.counters().errors_sent;
    assert_eq!(errors.get(&error::UNRECOGNIZED_EXTENSION), Some(&1));
}

/// A client whose connection with the server is open, with one outstanding request.
fn lone() -> (Nhc, Instant) {
    let mut world = plain(1);
    world.send(0, ip(1, 10), b"x");
    let now = world.now;
    (world.clients.remove(0).nhc, now)
}

proptest! {
    /// Whatever the server sends, in any order, the laws of machines hold and the tables stay bounded.
    #[test]
    fn any_packets_do_no_harm(
        steps in proptest::collection::vec((1_u8..8, 0_u32..6, any::<[u8; 4]>(), 0_u16..90, any::<u16>(), 0_u64..40), 1..40)
    ) {
        let (mut nhc, mut now) = lone();
        for (kind, id, address, holding_s, flags, wait) in steps {
            let near = Ipv4Addr::new(10, 1, 0, address[3] % 16);
            let cie = Cie {
                code: address[0] % 2,
                prefix: address[1],
                holding_s,
                nbma: AtmAddress([address[2]; 20]).into(),
                protocol: near.into(),
                ..Cie::default()
            };
            let mut packet = aerostat_wire::mpoa::purge_request(id, atm(0, 0x52), ip(0, 1).into(), near.into(), near.into(), 32);
            packet.op = kind;
            if let aerostat_wire::nhrp::Body::Common(common) = &mut packet.body {
                (common.flags, common.cies) = (flags, vec![cie]);
            }
            if kind == op::ERROR_INDICATION {
                packet.op = 1 + address[0] % 6;
                let octets = packet.encode();
                packet = Packet::error_about(&octets, address[1].into(), 0, atm(0, 0x52), ip(0, 1).into()).unwrap();
            }
            let sdu = &packet.to_sdu()[..];
            let conn = ConnId(1);
            nhc.handle_input(Input::Atm(AtmEvent::Received { conn, sdu }), now).unwrap();
            settle(&mut nhc, now);
            nhc.handle_input(Input::Send { destination: near, packet: vec![0; 20] }, now).unwrap();
            settle(&mut nhc, now);
            now += Duration::from_secs(wait);
            settle(&mut nhc, now);
            prop_assert!(nhc.snapshot().entries.len() <= 16);
        }
        // Without further input the client forgets everything.
        for _ in 0..1000 {
            let Some(at) = nhc.poll_timeout() else { break };
            now = at;
            settle(&mut nhc, now);
        }
        prop_assert_eq!(nhc.snapshot().entries.len(), 0);
    }
}
