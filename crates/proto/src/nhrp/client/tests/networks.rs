//! Answers that cover a network behind an exit router: as wide as its route and no wider.

use std::net::{IpAddr, Ipv4Addr};

use aerostat_wire::nhrp::{Cie, Packet, op};
use aerostat_wire::{AtmAddress, mpoa};

use super::world::{Who, World, atm, ip};
use super::{SECOND, direct};
use crate::mpoa::mps::{FromRouter, Input as Server, RouteResult};
use crate::nhrp::Reason;
use crate::nhrp::client::{Config, EntryState, Input};
use crate::{AtmEvent, ConnId, Duration};

/// An address outside the ATM network, behind the second of two routers.
const FAR: Ipv4Addr = Ipv4Addr::new(172, 16, 3, 9);

fn far(third: u8, last: u8) -> Ipv4Addr {
    Ipv4Addr::new(172, 16, third, last)
}

/// Clients accept networks of /12 and longer. 172.16/16 is behind the second router, except for one host.
fn world() -> World {
    let mut world = World::row(
        2,
        |_, _| {},
        |_, config: &mut Config| config.params.prefix = 12,
    );
    let next_hop = ip(1, 1).into();
    let there = RouteResult::Via { itf: 1, next_hop };
    world.routers[0].routes.push((far(0, 0), 16, there));
    let outside = (far(0, 0), 16, RouteResult::Outside);
    world.routers[1].routes.push(outside);
    world.sinks.insert(atm(1, 0x53), Vec::new());
    world
}

fn answered(world: &World) -> Cie {
    let all = &mut world.log.iter();
    let reply = all.rfind(|(.., p)| p.op == op::RESOLUTION_REPLY).unwrap();
    reply.2.common().unwrap().cies[0].clone()
}

fn exits(world: &World) -> Vec<(IpAddr, u8)> {
    let rows = world.routers[1].mps.nhrp_snapshot().cache.into_iter();
    let ours = rows.filter(|row| row.reason == Reason::Router);
    ours.map(|row| (row.destination, row.prefix_len)).collect()
}

#[test]
fn one_answer_serves_a_network() {
    let mut world = world();
    direct(&mut world, FAR);
    assert_eq!(answered(&world).prefix, 16);
    let asked = world.count(op::RESOLUTION_REQUEST);
    for third in [1, 2, 255] {
        world.send(0, far(third, 1), b"by the same way");
    }
    world.run(SECOND);
    assert_eq!(world.count(op::RESOLUTION_REQUEST), asked);
    let entries = world.clients[0].nhc.snapshot().entries;
    assert_eq!(entries.len(), 1);
    assert_eq!((entries[0].prefix_len, entries[0].packets), (16, 3));
    assert_eq!(world.clients[0].nhc.counters().by_shortcut, 3);
    // For another network there is another request.
    world.send(0, Ipv4Addr::new(172, 17, 0, 1), b"x");
    world.run(SECOND);
    assert!(world.count(op::RESOLUTION_REQUEST) > asked);
}

/// A client that wants narrower answers gets them; so does one that wants single addresses.
#[test]
fn never_wider_than_wanted_and_never_wider_than_the_route() {
    for (widest, told) in [(32, 32), (24, 24), (16, 16), (8, 16)] {
        let mut world = world();
        world.run(SECOND);
        // The first request is from a client that accepts any width.
        direct(&mut world, FAR);
        world.client(1, Input::Stop);
        let mut config = world.clients[1].nhc.config().clone();
        config.params.prefix = widest;
        world.clients[1].nhc = super::Nhc::new(config);
        world.client(1, Input::Start);
        world.run(SECOND);
        world.send(1, far(3, 77), b"x");
        world.run(SECOND);
        assert_eq!(answered(&world).prefix, told, "{widest}");
    }
    let mut world = world();
    // Half of the network is elsewhere, and so is one more host.
    world.routers[1]
        .routes
        .push((far(128, 0), 17, RouteResult::Connected { itf: 0 }));
    world.routers[1]
        .routes
        .push((far(3, 128), 32, RouteResult::Local));
    direct(&mut world, FAR);
    assert_eq!(
        (answered(&world).prefix, exits(&world)),
        (25, vec![(far(3, 0).into(), 25)])
    );
}

/// A longer route appears inside an answered network: stations with the answer are purged, although the destination
/// itself keeps its route.
#[test]
fn a_route_within_it_voids_the_answer() {
    let mut world = world();
    direct(&mut world, FAR);
    world.server(1, Server::Router(FromRouter::RoutesChanged));
    world.run(SECOND);
    assert_eq!(world.count(op::PURGE_REQUEST), 0, "nothing has changed");
    world.routers[1]
        .routes
        .push((far(9, 0), 24, RouteResult::Local));
    world.server(1, Server::Router(FromRouter::RoutesChanged));
    world.run(SECOND);
    assert_eq!(world.entry(0, FAR).unwrap().state, EntryState::Void);
    assert_eq!(exits(&world), []);
    direct(&mut world, FAR);
    assert_eq!(answered(&world).prefix, 21);
}

/// Purges of part of a network, of the whole network, and of other networks.
#[test]
fn purges_by_prefix() {
    for (address, length, hit) in [
        (far(200, 1), 32, true),
        (far(3, 0), 24, true),
        (Ipv4Addr::new(172, 0, 0, 0), 8, true),
        (Ipv4Addr::new(172, 17, 0, 0), 16, false),
        (ip(0, 0), 8, false),
    ] {
        let mut world = world();
        direct(&mut world, FAR);
        let purge = mpoa::purge_request(
            9,
            atm(0, 0x52),
            ip(0, 1).into(),
            ip(0, 10).into(),
            address.into(),
            length,
        );
        let sdu = &purge.to_sdu()[..];
        let conn = ConnId(1);
        world.client(0, Input::Atm(AtmEvent::Received { conn, sdu }));
        let state = world.entry(0, FAR).unwrap().state;
        assert_eq!(state == EntryState::Void, hit, "{address}/{length}");
    }
}

/// A server on the way caches an answer that covers a network, and answers for single addresses in it, but only for
/// those with the same route. Here the answer is that of a registered network.
#[test]
fn a_registered_network_is_answered_and_kept() {
    let mut world = World::row(
        2,
        |_, _| {},
        |n, config: &mut Config| {
            config.params.prefix = 24;
            config.params.authoritative = n != 2;
        },
    );
    // Client 1 registers a network behind it, in addition to itself.
    let conn = ConnId(1);
    let cie = Cie {
        mtu: 9180,
        nbma: atm(0x81, 0).into(),
        protocol: ip(2, 128).into(),
        ..Cie::brief(25, 600)
    };
    let mut packet = mpoa::purge_request(
        500,
        atm(0x81, 0x54),
        ip(2, 10).into(),
        ip(2, 2).into(),
        ip(2, 128).into(),
        25,
    );
    packet.op = op::REGISTRATION_REQUEST;
    if let aerostat_wire::nhrp::Body::Common(common) = &mut packet.body {
        common.cies = vec![cie];
    }
    world.transmit((Who::Client(1), conn), packet.to_sdu());
    world.run(SECOND);
    direct(&mut world, ip(2, 130));
    assert_eq!(answered(&world).prefix, 25);
    let asked = world.count(op::RESOLUTION_REQUEST);
    // The first server keeps the answer for other addresses in the network.
    world.send(2, ip(2, 200), b"x");
    world.run(SECOND);
    assert_eq!(world.count(op::RESOLUTION_REQUEST), asked + 1);
    let way = world.entry(2, ip(2, 200)).unwrap();
    assert_eq!((way.state, way.prefix_len), (EntryState::Shortcut, 32));
    // With a separate station inside the network, answers no longer cover the network.
    let single = |packet: &Packet| {
        let mut packet = packet.clone();
        if let aerostat_wire::nhrp::Body::Common(common) = &mut packet.body {
            (common.request_id, common.cies[0].prefix) = (501, 32);
            common.cies[0].protocol = ip(2, 201).into();
        }
        packet
    };
    world.transmit((Who::Client(1), conn), single(&packet).to_sdu());
    world.run(SECOND);
    world.client(0, Input::Stop);
    world.client(0, Input::Start);
    world.run(SECOND);
    direct(&mut world, ip(2, 131));
    assert_eq!(answered(&world).prefix, 32);
    let none: Option<AtmAddress> = None;
    assert_eq!(world.entry(0, ip(2, 201)).and_then(|row| row.nbma), none);
    world.run(Duration::from_secs(1));
}
