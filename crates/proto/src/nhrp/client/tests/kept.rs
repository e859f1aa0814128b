//! Servers on the way cache replies that pass through, and answer requests that do not need an authoritative answer.

use std::net::Ipv4Addr;

use aerostat_wire::nhrp::{Body, Cie, Common, Packet, code, flag, op};

use super::world::{Who, World, atm, ip};
use super::{SECOND, direct};
use crate::mpoa::mps::{FromRouter, Input as Server, MpsConfig, NhrpRow, RouteResult};
use crate::nhrp::Reason;
use crate::nhrp::client::{Config, EntryState, Input, Refusal};
use crate::{Cause, ConnId, Duration};

const FAR: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 10);

/// Three servers; client 2 accepts cached answers.
fn world(servers: impl Fn(usize, &mut MpsConfig)) -> World {
    World::row(3, servers, |n, config: &mut Config| {
        config.params.authoritative = n != 2;
        config.params.holding = Duration::from_secs(100);
    })
}

fn kept(world: &World, router: usize) -> Vec<NhrpRow> {
    let rows = world.routers[router].mps.nhrp_snapshot().cache;
    let rows = rows.into_iter();
    rows.filter(|row| row.reason == Reason::Transit).collect()
}

fn state(world: &World, client: usize) -> Option<EntryState> {
    world.entry(client, FAR).map(|entry| entry.state)
}

/// Client 0 gets an authoritative answer, then the first server answers client 2.
fn both(servers: impl Fn(usize, &mut MpsConfig)) -> World {
    let mut world = world(servers);
    direct(&mut world, FAR);
    assert_eq!(world.count(op::RESOLUTION_REQUEST), 3);
    world.run(Duration::from_secs(20));
    world.send(2, FAR, b"me too");
    world.run(SECOND);
    assert_eq!(state(&world, 2), Some(EntryState::Shortcut));
    world
}

#[test]
fn the_first_server_answers_from_what_it_kept() {
    let mut world = both(|_, _| {});
    assert_eq!(world.count(op::RESOLUTION_REQUEST), 4, "no further");
    let way = world.entry(2, FAR).unwrap();
    assert_eq!((way.nbma, way.mtu), (Some(atm(0x81, 0)), 9180));
    assert_eq!((way.responder, way.authoritative), (Some(ip(0, 1)), false));
    let first = world.entry(0, FAR).unwrap();
    assert!(first.authoritative);
    assert!(way.until <= first.until, "the holding time runs down");
    for router in [0, 1] {
        let rows = kept(&world, router);
        assert_eq!(rows.len(), 1);
        assert!(!rows[0].authoritative);
        assert_eq!(rows[0].requesters.len(), usize::from(router == 0));
        assert_eq!(world.routers[router].mps.counters().kept, 1);
    }
    assert_eq!(kept(&world, 2), [], "it knows at first hand");
    let reply = &world
        .log
        .iter()
        .rfind(|(.., p)| p.op == op::RESOLUTION_REPLY);
    let common = reply.unwrap().2.common().unwrap();
    assert_eq!(common.flags, flag::DESTINATION_STABLE);
    // A client that wants an authoritative answer gets one.
    world.client(0, Input::Stop);
    world.client(0, Input::Start);
    world.run(SECOND);
    direct(&mut world, FAR);
    assert_eq!(world.count(op::RESOLUTION_REQUEST), 7);
    // All bindings end, without a purge.
    world.client(1, Input::Stop);
    world.run(Duration::from_secs(200));
    for router in 0..3 {
        assert_eq!(kept(&world, router), []);
    }
}

#[test]
fn a_purge_on_its_way_clears_what_was_kept_and_reaches_who_was_told() {
    let mut world = both(|_, _| {});
    world.client(1, Input::Stop);
    world.run(SECOND);
    assert_eq!(state(&world, 0), Some(EntryState::Void));
    assert_eq!(state(&world, 2), Some(EntryState::Void));
    assert_eq!((kept(&world, 0), kept(&world, 1)), (vec![], vec![]));
    // The station has disappeared, as the last server says when it is asked for an authoritative answer.
    world.send(2, FAR, b"again");
    world.run(SECOND);
    let gone = EntryState::Refused(Refusal::Code(code::NO_BINDING));
    assert_eq!(state(&world, 2), Some(gone));
}

/// The station is dead, but a server still has it in its cache. The caller requests an authoritative answer at once.
#[test]
fn what_was_kept_and_is_wrong_is_asked_for_at_first_hand() {
    let mut world = world(|_, _| {});
    direct(&mut world, FAR);
    world.kill(atm(0x81, 0));
    world.send(2, FAR, b"x");
    world.run(SECOND);
    let asked = world.log.iter().filter_map(|(from, _, packet)| {
        let ours = *from == Who::Client(2) && packet.op == op::RESOLUTION_REQUEST;
        packet.common().filter(|_| ours).map(|common| common.flags)
    });
    assert_eq!(asked.collect::<Vec<_>>(), [0, flag::AUTHORITATIVE]);
    let failed = EntryState::Refused(Refusal::Call(Cause::INCOMPATIBLE));
    assert_eq!(state(&world, 2), Some(failed));
    assert_eq!(world.clients[2].nhc.counters().calls_failed, 2);
}

#[test]
fn a_route_that_changes_voids_what_was_kept() {
    let mut world = both(|_, _| {});
    world.routers[0]
        .routes
        .push((ip(3, 0), 25, RouteResult::Outside));
    // Before the server knows this, it tells nothing that would be wrong now.
    let id = ask(&mut world, 77, 0, FAR);
    world.run(SECOND);
    assert_eq!(answer(&world, id).0.nbma.atm(), Some(atm(0, 0x53)));
    world.server(0, Server::Router(FromRouter::RoutesChanged));
    world.run(SECOND);
    assert_eq!(kept(&world, 0), []);
    assert_eq!(state(&world, 2), Some(EntryState::Void));
}

#[test]
fn a_server_that_starts_again_has_kept_nothing() {
    let mut world = both(|_, _| {});
    world.server(0, Server::Stop);
    assert_eq!(kept(&world, 0), []);
    world.server(0, Server::Start);
    world.run(Duration::from_secs(60));
    world.client(2, Input::Stop);
    world.client(2, Input::Start);
    world.run(SECOND);
    world.send(2, FAR, b"x");
    world.run(SECOND);
    let way = world.entry(2, FAR).unwrap();
    assert_eq!(
        (way.state, way.authoritative),
        (EntryState::Shortcut, false)
    );
    assert_eq!(way.responder, Some(ip(1, 1)), "the second one has kept it");
}

#[test]
fn what_is_kept_has_a_bound() {
    let few = |_: usize, config: &mut MpsConfig| config.limits.kept = 1;
    let mut world = world(few);
    for last in [10, 11] {
        world.send(1, ip(0, last), b"x");
        world.run(SECOND);
        assert_eq!(
            world.entry(1, ip(0, last)).unwrap().state,
            EntryState::Shortcut
        );
    }
    assert_eq!(kept(&world, 1).len(), 1);
    assert_eq!(world.routers[1].mps.counters().limits_met, 1);
    let off = |_: usize, config: &mut MpsConfig| config.limits.kept = 0;
    let mut world = World::row(3, off, |_, _| {});
    direct(&mut world, FAR);
    assert_eq!((kept(&world, 0), kept(&world, 1)), (vec![], vec![]));
}

/// Sends a request made by the test for client 0; returns its id.
fn ask(world: &mut World, id: u32, flags: u16, target: Ipv4Addr) -> u32 {
    let common = Common {
        flags,
        request_id: id,
        source_nbma: atm(0x80, 0x54).into(),
        source: ip(0, 10).into(),
        destination: target.into(),
        cies: vec![Cie::brief(32, 0)],
        ..Common::default()
    };
    let packet = Packet::new(op::RESOLUTION_REQUEST, common);
    world.transmit((Who::Client(0), ConnId(1)), packet.to_sdu());
    id
}

/// The answer to such a request: its entry and its flags.
fn answer(world: &World, id: u32) -> (Cie, u16) {
    let own = |(_, to, packet): &&(Who, Who, Packet)| {
        let common = packet.common().filter(|common| common.request_id == id);
        *to == Who::Client(0) && packet.op == op::RESOLUTION_REPLY && common.is_some()
    };
    let (.., reply) = world.log.iter().rfind(own).unwrap();
    let common = reply.common().unwrap();
    (common.cies[0].clone(), common.flags)
}

/// Flag U: only a binding marked unique answers, otherwise the request is forwarded.
#[test]
fn unique_bindings_are_kept_as_such() {
    let mut world = world(|_, _| {});
    ask(&mut world, 70, 0, FAR);
    world.run(SECOND);
    let before = world.count(op::RESOLUTION_REQUEST);
    let id = ask(&mut world, 71, flag::UNIQUE, FAR);
    world.run(SECOND);
    let first_hand = flag::AUTHORITATIVE | flag::DESTINATION_STABLE | flag::UNIQUE;
    assert_eq!(answer(&world, id).1, first_hand);
    assert_eq!(world.count(op::RESOLUTION_REQUEST), before + 3);
    let id = ask(&mut world, 72, flag::UNIQUE | flag::SOURCE_STABLE, FAR);
    world.run(SECOND);
    let copied = flag::DESTINATION_STABLE | flag::UNIQUE | flag::SOURCE_STABLE;
    assert_eq!(answer(&world, id).1, copied);
    assert_eq!(world.count(op::RESOLUTION_REQUEST), before + 4);
    // Flag S means that the source is stable. It does not make the source a destination.
    assert!(kept(&world, 0).iter().all(|row| row.destination == FAR));
}

/// A station that sends unsolicited replies attracts no packets.
#[test]
fn nobody_plants_a_binding() {
    let mut world = world(|_, _| {});
    // The real reply, as a pattern.
    direct(&mut world, FAR);
    let all = &mut world.log.iter();
    let reply = all.rfind(|(.., p)| p.op == op::RESOLUTION_REPLY).unwrap();
    let mut forged = reply.2.clone();
    forged.extensions = None;
    if let Body::Common(common) = &mut forged.body {
        common.destination = ip(2, 99).into();
        common.cies[0].nbma = atm(0x80, 0).into();
        (common.source, common.source_nbma) = (ip(0, 11).into(), atm(0x82, 0x54).into());
    }
    for id in 0..9 {
        if let Body::Common(common) = &mut forged.body {
            common.request_id = id;
        }
        world.transmit((Who::Client(0), ConnId(1)), forged.to_sdu());
    }
    // While client 2 waits, a reply with its id comes from another direction than its request went.
    world.send(2, ip(2, 99), b"x");
    let asked = world.clients[2].nhc.counters().requests_sent;
    assert_eq!(asked, 1);
    for id in 0..9 {
        if let Body::Common(common) = &mut forged.body {
            common.request_id = id;
        }
        world.transmit((Who::Client(0), ConnId(1)), forged.to_sdu());
    }
    world.run(SECOND);
    assert!(kept(&world, 0).iter().all(|row| row.destination == FAR));
}

#[test]
fn kept_answers_under_loss() {
    let mut world = world(|_, _| {});
    world.loss = 30;
    for second in 0..300 {
        world.send(0, FAR, b"x");
        world.send(2, FAR, b"y");
        if second == 150 {
            world.server(1, Server::Stop);
            world.server(1, Server::Start);
        }
        world.run(SECOND);
    }
    assert!(world.arrived(1) > 100, "{}", world.arrived(1));
    world.loss = 0;
    world.client(1, Input::Stop);
    world.run(Duration::from_secs(400));
    for router in 0..3 {
        assert_eq!(kept(&world, router), []);
    }
    assert_eq!((world.entry(0, FAR), world.entry(2, FAR)), (None, None));
}
