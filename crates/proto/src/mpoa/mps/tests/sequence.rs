//! A resolution, an imposition and the purges between two servers, byte for byte. The octets were computed from the
//! packet layouts by a script that shares no code with this crate.

use std::net::{IpAddr, Ipv4Addr};

use aerostat_wire::mpoa::{EgressPurge, op as mop};
use aerostat_wire::nhrp::ProtocolAddress;
use aerostat_wire::nhrp::{self, Packet, op};

use super::world::{TARGET, Who, World, atm, ip};
use crate::mpoa::mps::{EgressState, FromRouter, IngressState, Input};
use crate::nhrp::Reason;
use crate::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);

/// Packet `number` of the sequence, as hex.
fn packet(number: usize) -> String {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../wire/tests/vectors/mpoa/worked-sequence.hex"
    );
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.nth(number - 1).unwrap().to_owned()
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// The packets of one type that `from` sent to `to`, as hex without the LLC header.
fn sent(world: &World, from: Who, to: Who, op: u8) -> Vec<String> {
    world
        .log
        .iter()
        .filter(|(f, t, sdu)| (*f, *t) == (from, to) && sdu[8 + 17] == op)
        .map(|(_, _, sdu)| {
            assert_eq!(sdu[..8], nhrp::LLC);
            hex(&sdu[8..])
        })
        .collect()
}

const IMPS: Who = Who::Router(0);
const EMPS: Who = Who::Router(1);
const IMPC: Who = Who::Mpc(0);
const EMPC: Who = Who::Mpc(1);

fn resolved(first_ids: (u32, u32)) -> World {
    let mut world = World::two_routers();
    world.routers[0].config.first_request_id = first_ids.0;
    world.routers[1].config.first_request_id = first_ids.1;
    world.routers[0].config.first_sequence = 5;
    world.start();
    world.ask(0x11, TARGET);
    world.run(SECOND);
    world
}

#[test]
fn resolution_is_the_worked_sequence() {
    let world = resolved((0x2001, 0x3001));
    assert_eq!(
        sent(&world, IMPC, IMPS, mop::RESOLUTION_REQUEST),
        [packet(1)]
    );
    assert_eq!(
        sent(&world, IMPS, EMPS, op::RESOLUTION_REQUEST),
        [packet(2)]
    );
    assert_eq!(
        sent(&world, EMPS, EMPC, mop::IMPOSITION_REQUEST),
        [packet(3)]
    );
    assert_eq!(sent(&world, EMPC, EMPS, mop::IMPOSITION_REPLY), [packet(4)]);
    assert_eq!(sent(&world, EMPS, IMPS, op::RESOLUTION_REPLY), [packet(5)]);
    assert_eq!(sent(&world, IMPS, IMPC, mop::RESOLUTION_REPLY), [packet(6)]);
    assert_eq!(sent(&world, IMPS, IMPC, mop::KEEP_ALIVE), [packet(7)]);
    assert_eq!(
        world.story(0),
        [
            "mps.started",
            "mps.resolution.received",
            "mps.resolution.translated",
            "mps.resolution.replied"
        ]
    );
    assert_eq!(
        world.story(1),
        [
            "mps.started",
            "mps.imposition.sent",
            "mps.imposition.accepted"
        ]
    );
}

#[test]
fn tables_after_a_resolution() {
    let world = resolved((0x2001, 0x3001));
    let ingress = &world.snapshot(0).ingress[0];
    assert_eq!(ingress.state, IngressState::Resolved);
    assert_eq!((ingress.mpoa_id, ingress.nhrp_id), (0x11, 0x2001));
    assert_eq!(ingress.resolved, Some(atm(0x12, 0x51)));
    let left = ingress.until.unwrap().since(world.now);
    assert!(left > 1198 * SECOND && left <= 1200 * SECOND);
    let egress = &world.snapshot(1).egress[0];
    assert_eq!(
        (egress.cache_id, egress.state),
        (0x101, EgressState::Imposed)
    );
    assert_eq!(
        (egress.tag, egress.nhrp_id),
        (Some(super::world::TAG), 0x2001)
    );
    let nhrp = |router: usize| world.routers[router].mps.as_ref().unwrap().nhrp_snapshot();
    let (learned, imposed) = (&nhrp(0).cache[0], &nhrp(1).cache[0]);
    assert_eq!(
        (learned.reason, learned.authoritative),
        (Reason::Learned, false)
    );
    assert_eq!(
        (imposed.reason, imposed.authoritative),
        (Reason::Imposed, true)
    );
    assert_eq!(
        imposed.requesters[0].0,
        ip(1, 1),
        "purges go to the ingress server"
    );
    assert_eq!(
        learned.requesters[0].0,
        ip(1, 11),
        "and from there to the client"
    );
    let counters = &world.snapshot(1).counters;
    assert_eq!(counters.imposition_replies_received.get(&0), Some(&1));
    assert_eq!(counters.nhrp_replies_sent.get(&0), Some(&1));
}

#[test]
fn purge_from_the_routing_side() {
    // The resolution takes 0x2001, so the purge gets the 0x2002 of the worked sequence.
    let mut world = resolved((0x5000, 0x2001));
    world.arp.remove(&TARGET);
    world.input(
        1,
        Input::Router(FromRouter::NeighbourChanged { itf: 2, ip: TARGET }),
    );
    world.run(SECOND);
    assert_eq!(sent(&world, EMPS, IMPS, op::PURGE_REQUEST), [packet(11)]);
    assert_eq!(
        world.mpcs[1].count(mop::IMPOSITION_REQUEST),
        2,
        "removed at the client"
    );
    let removal = world.mpcs[1].last(mop::IMPOSITION_REQUEST);
    assert_eq!(removal.common().unwrap().cies[0].holding_s, 0);
    assert_eq!(world.mpcs[0].count(op::PURGE_REQUEST), 1);
    assert_eq!(sent(&world, IMPS, EMPS, op::PURGE_REPLY).len(), 1);
    assert_eq!(world.snapshot(0).ingress, []);
    assert_eq!(world.snapshot(1).egress, []);
    assert!(
        world.routers[1]
            .mps
            .as_ref()
            .unwrap()
            .nhrp_snapshot()
            .pending
            .is_empty()
    );
}

#[test]
fn purge_to_the_client_and_its_reply() {
    // The resolution takes 0x2100, so the purge gets the 0x2101 of the worked sequence.
    let mut world = resolved((0x2100, 0x3001));
    world.routers[1].routes.retain(|(net, ..)| *net != ip(2, 0));
    world.input(1, Input::Router(FromRouter::RoutesChanged));
    world.run(SECOND);
    assert_eq!(sent(&world, IMPS, IMPC, op::PURGE_REQUEST), [packet(12)]);
    assert_eq!(sent(&world, IMPC, IMPS, op::PURGE_REPLY), [packet(13)]);
}

#[test]
fn purge_from_the_egress_client() {
    let mut world = resolved((0x2001, 0x2001));
    let purge = EgressPurge {
        id: 0x21,
        mpc_control: atm(0x12, 0x50),
        mpc_data: atm(0x12, 0x51),
        mpc: ip(2, 12),
        mps: ip(2, 1),
        target: TARGET,
        prefix: 32,
        cache_id: 0x101,
        elan_id: 2,
    };
    world.mpc_sends(1, 1, &purge.packet());
    world.run(SECOND);
    assert_eq!(
        sent(&world, EMPC, EMPS, mop::EGRESS_PURGE_REQUEST),
        [packet(9)]
    );
    assert_eq!(
        sent(&world, EMPS, EMPC, mop::EGRESS_PURGE_REPLY),
        [packet(10)]
    );
    assert_eq!(sent(&world, EMPS, IMPS, op::PURGE_REQUEST), [packet(11)]);
    assert_eq!(
        world.mpcs[1].count(mop::IMPOSITION_REQUEST),
        1,
        "it has removed it itself"
    );
    assert_eq!(world.mpcs[0].count(op::PURGE_REQUEST), 1);
}

#[test]
fn no_route_is_refused_with_12() {
    let mut world = World::two_routers();
    world.routers[0].routes.retain(|(net, ..)| *net != ip(2, 0));
    world.start();
    world.ask(0x12, TARGET);
    world.run(SECOND);
    assert_eq!(
        sent(&world, IMPS, IMPC, mop::RESOLUTION_REPLY),
        [packet(16)]
    );
    world.run(60 * SECOND);
    world.assert_idle(0);
}

#[test]
fn trigger_for_a_routed_flow() {
    let mut world = World::two_routers();
    world.routers[0].config.trigger = true;
    world.start();
    let mut ip_packet = vec![0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0];
    for address in [ip(1, 11), TARGET] {
        ip_packet.extend(ProtocolAddress::from(address).octets());
    }
    for _ in 0..3 {
        let packet = &ip_packet;
        world.input(0, Input::Routed { itf: 1, packet });
        world.input(0, Input::Routed { itf: 9, packet });
        world.run(SECOND);
    }
    assert_eq!(
        sent(&world, IMPS, IMPC, mop::TRIGGER),
        [packet(8)],
        "once, and not on the core"
    );
    world.run(200 * SECOND);
    world.assert_idle(0);
}

#[test]
fn samples_of_linux_are_understood() {
    // Like the recorded clients of linux-atm: holding time 0 and a tag in every reply, MTU with swapped octets.
    let mut world = World::two_routers();
    world.mpcs[1].mood = super::world::Mood::Linux;
    world.start();
    world.ask(0x11, TARGET);
    world.run(SECOND);
    let reply: &Packet = world.mpcs[0].last(mop::RESOLUTION_REPLY);
    let cie = &reply.common().unwrap().cies[0];
    assert_eq!((cie.code, cie.holding_s, cie.mtu), (0, 1200, 0));
    assert_eq!(cie.nbma.atm(), Some(atm(0x12, 0x51)));
    let until = world.snapshot(1).egress[0].until.unwrap();
    assert!(until > Instant::from_secs(1200));
    assert_ne!(world.mpcs[0].ip, IpAddr::V4(Ipv4Addr::UNSPECIFIED));
}
