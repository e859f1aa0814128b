//! Loss, silence, refusals, crashes and changes.

use aerostat_wire::mpoa::{self, op as mop, shortcut_sdu};
use aerostat_wire::nhrp::ProtocolAddress;
use aerostat_wire::nhrp::{self, Body, Packet, code, op};
use aerostat_wire::{AtmAddress, MacAddr};

use super::world::{Mood, TARGET, Who, World, atm, ip};
use crate::mpoa::mps::{EgressState, FromRouter, Input, RouteResult};
use crate::nhrp::Reason;
use crate::{ConnId, Duration};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

fn started() -> World {
    let mut world = World::two_routers();
    world.start();
    world
}

fn resolved() -> World {
    let mut world = started();
    world.ask(0x11, TARGET);
    world.run(SECOND);
    assert_eq!(reply_code(&world), Some(code::OK));
    world
}

/// Code of the last Resolution Reply to client 0.
fn reply_code(world: &World) -> Option<u8> {
    let replies = world.mpcs[0].received.iter().rev();
    let mut replies = replies.filter(|(_, p)| p.op == mop::RESOLUTION_REPLY);
    let (_, packet) = replies.next()?;
    Some(packet.common()?.cies[0].code)
}

#[test]
fn holding_time_over_leaves_nothing() {
    let mut world = resolved();
    assert_eq!(world.snapshot(0).clients.len(), 1);
    assert_eq!(world.snapshot(1).clients.len(), 1);
    // p7 and the longest idle time of a connection.
    world.run(41 * MINUTE);
    for router in 0..2 {
        world.assert_idle(router);
        let ours = world.snapshot(router).connections;
        assert!(
            ours.iter().all(|row| row.conn.0 >= ConnId::INCOMING),
            "{ours:?}"
        );
        assert_eq!(world.story(router).last(), Some(&"mps.client.idle"));
    }
}

#[test]
fn keep_alives_every_p1_with_growing_sequence() {
    let mut world = resolved();
    world.run(10 * MINUTE);
    for mpc in 0..2 {
        let received = world.mpcs[mpc].received.iter();
        let alive: Vec<_> = received.filter(|(_, p)| p.op == mop::KEEP_ALIVE).collect();
        assert!((60..=62).contains(&alive.len()), "{}", alive.len());
        for pair in alive.windows(2) {
            let (a, b) = (pair[0].1.common().unwrap(), pair[1].1.common().unwrap());
            assert!(a.request_id < b.request_id);
            assert!(pair[1].0.since(pair[0].0) <= 10 * SECOND);
            assert_eq!(mpoa::lifetime_s(&pair[0].1), Ok(Some(35)));
        }
    }
}

#[test]
fn refresh_keeps_the_cache_id_and_extends_the_holding_time() {
    let mut world = resolved();
    world.run(13 * MINUTE);
    world.ask(0x12, TARGET);
    world.run(SECOND);
    let egress = &world.snapshot(1).egress;
    assert_eq!((egress.len(), egress[0].cache_id), (1, 0x101));
    assert_eq!(egress[0].state, EgressState::Imposed);
    world.run(10 * MINUTE);
    assert_eq!(
        world.snapshot(0).ingress.len(),
        1,
        "past the first holding time"
    );
    assert_eq!(world.mpcs[0].count(op::PURGE_REQUEST), 0);
    world.run(12 * MINUTE);
    world.assert_idle(0);
    world.assert_idle(1);
}

#[test]
fn one_router_plays_both_roles() {
    let mut world = World::empty();
    world.add_router(0x21, &[(1, ip(1, 1)), (2, ip(2, 1))]);
    world.add_mpc(0x11, ip(1, 11));
    world.add_mpc(0x12, ip(2, 12));
    world.host_behind(1, TARGET, MacAddr([2, 0, 0, 0, 2, 0x20]));
    world.start();
    world.ask(0x11, TARGET);
    world.run(SECOND);
    assert_eq!(reply_code(&world), Some(code::OK));
    let imposed = world.mpcs[1].last(mop::IMPOSITION_REQUEST);
    assert_eq!(imposed.common().unwrap().source.ip(), Some(ip(2, 1)));
    let cie = &world.mpcs[0]
        .last(mop::RESOLUTION_REPLY)
        .common()
        .unwrap()
        .cies[0];
    assert_eq!(cie.nbma.atm(), Some(atm(0x12, 0x51)));
    assert_eq!(world.snapshot(0).counters.nhrp_requests_sent, 0);
    assert_eq!(world.snapshot(0).clients.len(), 2);
    // The target moves to another client: both sides are told, once each.
    world.add_mpc(0x13, ip(2, 13));
    world.host_behind(2, TARGET, MacAddr([2, 0, 0, 0, 2, 0x20]));
    world.input(
        0,
        Input::Router(FromRouter::NeighbourChanged { itf: 2, ip: TARGET }),
    );
    world.run(SECOND);
    assert_eq!(world.mpcs[0].count(op::PURGE_REQUEST), 1);
    assert_eq!(world.mpcs[1].count(mop::IMPOSITION_REQUEST), 2);
    assert_eq!(world.snapshot(0).egress, []);
    world.ask(0x12, TARGET);
    world.run(SECOND);
    let cie = &world.mpcs[0]
        .last(mop::RESOLUTION_REPLY)
        .common()
        .unwrap()
        .cies[0];
    assert_eq!(cie.nbma.atm(), Some(atm(0x13, 0x51)));
}

#[test]
fn refusals_of_the_client_reach_the_requester() {
    for refusal in [0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x88] {
        let mut world = started();
        world.mpcs[1].mood = Mood::Refuse(refusal);
        world.ask(0x11, TARGET);
        world.run(SECOND);
        assert_eq!(reply_code(&world), Some(refusal));
        let reply = world.mpcs[0].last(mop::RESOLUTION_REPLY).common().unwrap();
        assert_eq!((reply.cies.len(), reply.cies[0].holding_s), (1, 0));
        world.run(2 * MINUTE);
        world.assert_idle(0);
        world.assert_idle(1);
    }
}

#[test]
fn a_silent_client_is_asked_at_0_5_15_35_s_and_given_up() {
    let mut world = started();
    world.mpcs[1].mood = Mood::Silent;
    world.ask(0x11, TARGET);
    let start = world.now;
    world.run(2 * MINUTE);
    let received = world.mpcs[1].received.iter();
    let asked: Vec<_> = received
        .filter(|(_, p)| p.op == mop::IMPOSITION_REQUEST)
        .map(|(at, p)| (at.since(start).as_secs(), p.common().unwrap().request_id))
        .collect();
    assert_eq!(
        asked,
        [(0, 0x3001), (5, 0x3001), (15, 0x3001), (35, 0x3001)]
    );
    assert_eq!(reply_code(&world), Some(mpoa::code::OTHER));
    let (ingress, egress) = (world.snapshot(0).counters, world.snapshot(1).counters);
    assert_eq!((ingress.give_ups, ingress.nhrp_requests_sent), (1, 4));
    assert_eq!(egress.impositions_unanswered, 1);
    assert!(
        egress.duplicates >= 1,
        "NHRP's retries do not multiply impositions"
    );
    world.run(MINUTE);
    world.assert_idle(0);
    world.assert_idle(1);
}

#[test]
fn heavy_loss_only_delays() {
    let mut answered = 0;
    for seed in 0..20 {
        let mut world = started();
        world.loss = 30;
        for step in 0..6 {
            // The client's own retries.
            world.ask(0x100 + seed, TARGET);
            world.run((5 << step.min(3)) * SECOND);
            if reply_code(&world) == Some(code::OK) {
                answered += 1;
                break;
            }
        }
        world.loss = 0;
        world.run(45 * MINUTE);
        world.assert_idle(0);
        world.assert_idle(1);
    }
    assert!(answered >= 18, "{answered} of 20");
}

#[test]
fn a_purge_is_repeated_until_the_client_answers_and_then_answered_upstream() {
    let mut world = resolved();
    world.mpcs[0].mood = Mood::Silent;
    world.arp.remove(&TARGET);
    world.input(
        1,
        Input::Router(FromRouter::NeighbourChanged { itf: 2, ip: TARGET }),
    );
    world.run(6 * SECOND);
    assert_eq!(world.mpcs[0].count(op::PURGE_REQUEST), 2);
    assert_eq!(
        world.snapshot(0).counters.purge_replies_sent,
        0,
        "clients first"
    );
    assert!(
        world.snapshot(0).counters.duplicates >= 1,
        "upstream repeats its purge"
    );
    world.mpcs[0].mood = Mood::Accept;
    world.run(20 * SECOND);
    assert_eq!(world.snapshot(0).counters.purge_replies_sent, 1);
    assert_eq!(world.snapshot(1).counters.purge_replies_received, 1);
    world.run(2 * MINUTE);
    world.assert_idle(0);
    world.assert_idle(1);
}

#[test]
fn a_purge_for_nothing_is_answered_at_once_and_one_with_n_not_at_all() {
    let mut world = started();
    for (id, flags) in [(1, 0), (2, nhrp::flag::NO_REPLY)] {
        let (own, target) = (ip(2, 1), TARGET);
        let mut purge = mpoa::purge_request(id, atm(0x22, 0x52), own, ip(1, 1), target, 32);
        if let Body::Common(common) = &mut purge.body {
            common.flags = flags;
        }
        world.mpc_sends(0, 0, &purge);
        world.run(SECOND);
        assert_eq!(world.snapshot(0).counters.purge_replies_sent, 1);
    }
    assert_eq!(
        world.snapshot(1).counters.unexpected,
        1,
        "no purge of its own was open"
    );
}

#[test]
fn an_egress_client_that_dies_is_purged_everywhere() {
    let mut world = resolved();
    world.kill_mpc(1);
    world.run(30 * SECOND);
    assert_eq!(
        world.snapshot(1).egress.len(),
        1,
        "its own timers still run"
    );
    world.run(20 * SECOND);
    assert_eq!(world.snapshot(1).counters.clients_lost, 1);
    assert!(world.story(1).contains(&"mps.client.lost"));
    assert_eq!(world.mpcs[0].count(op::PURGE_REQUEST), 1);
    world.run(2 * MINUTE);
    world.assert_idle(1);
    world.assert_idle(0);
}

#[test]
fn an_ingress_client_that_dies_is_forgotten() {
    let mut world = resolved();
    world.kill_mpc(0);
    world.run(2 * MINUTE);
    assert_eq!(world.snapshot(0).ingress, []);
    assert_eq!(world.snapshot(1).egress.len(), 1, "until its holding time");
    world.run(41 * MINUTE);
    world.assert_idle(0);
    world.assert_idle(1);
}

#[test]
fn a_server_that_crashes_and_returns_begins_a_lower_sequence() {
    let mut world = resolved();
    world.run(MINUTE);
    world.crash(0);
    world.run(MINUTE);
    let before = world.mpcs[0]
        .last(mop::KEEP_ALIVE)
        .common()
        .unwrap()
        .request_id;
    world.boot(0);
    world.ask(0x12, TARGET);
    world.run(SECOND);
    assert_eq!(reply_code(&world), Some(code::OK));
    let after = world.mpcs[0]
        .last(mop::KEEP_ALIVE)
        .common()
        .unwrap()
        .request_id;
    assert!(after < before, "{after} {before}");
    assert_eq!(
        world.snapshot(1).egress.len(),
        1,
        "the egress entry was refreshed"
    );
}

#[test]
fn stop_releases_and_forgets_and_start_serves_again() {
    let mut world = resolved();
    world.input(0, Input::Stop);
    world.run(SECOND);
    world.assert_idle(0);
    assert_eq!(world.snapshot(0).connections, []);
    assert!(!world.snapshot(0).up && !world.listening.contains(&atm(0x21, 0x52)));
    world.input(0, Input::Start);
    world.ask(0x13, TARGET);
    world.run(SECOND);
    assert_eq!(reply_code(&world), Some(code::OK));
}

#[test]
fn a_changed_route_at_the_ingress_purges_its_clients() {
    let mut world = resolved();
    let outside = (ip(2, 0), 25, RouteResult::Outside);
    world.input(0, Input::Router(FromRouter::RoutesChanged));
    world.run(SECOND);
    assert_eq!(
        world.mpcs[0].count(op::PURGE_REQUEST),
        0,
        "nothing has changed"
    );
    world.routers[0].routes.push(outside);
    world.input(0, Input::Router(FromRouter::RoutesChanged));
    world.run(SECOND);
    assert_eq!(world.mpcs[0].count(op::PURGE_REQUEST), 1);
    assert_eq!(world.snapshot(0).ingress, []);
}

#[test]
fn a_route_that_changes_during_a_resolution_asks_anew() {
    let mut world = started();
    world.mpcs[1].mood = Mood::Silent;
    world.ask(0x11, TARGET);
    world.run(SECOND);
    let outside = (ip(2, 0), 25, RouteResult::Outside);
    world.routers[0].routes.push(outside);
    world.input(0, Input::Router(FromRouter::RoutesChanged));
    world.run(SECOND);
    let cie = &world.mpcs[0]
        .last(mop::RESOLUTION_REPLY)
        .common()
        .unwrap()
        .cies[0];
    assert_eq!(
        cie.nbma.atm(),
        Some(atm(0x21, 0x53)),
        "this router is the exit now"
    );
    assert_eq!(world.snapshot(0).ingress[0].nhrp_id, 0x2002);
}

/// A host without MPOA on ELAN 2, and a network behind router 1 that is not an ELAN.
fn with_others() -> World {
    let mut world = World::two_routers();
    let plain = (MacAddr([6; 6]), AtmAddress([9; 20]), vec![]);
    world.arp.insert(ip(2, 30), plain);
    let via = RouteResult::Via {
        itf: 9,
        next_hop: ip(9, 2),
    };
    world.routers[0].routes.push((ip(77, 0), 24, via));
    world.routers[1]
        .routes
        .push((ip(77, 0), 24, RouteResult::Outside));
    world.start();
    world
}

#[test]
fn shortcuts_end_at_the_router_where_no_client_can_take_them() {
    for target in [ip(2, 30), ip(77, 5)] {
        let mut world = with_others();
        world.ask(0x11, target);
        world.run(SECOND);
        let reply = world.mpcs[0].last(mop::RESOLUTION_REPLY);
        assert_eq!(mpoa::Tag::of(reply), Ok(Some(mpoa::Tag::Value(1))));
        let cie = &reply.common().unwrap().cies[0];
        assert_eq!((cie.code, cie.nbma.atm()), (0, Some(atm(0x22, 0x53))));
        let nhrp = world.routers[1].mps.as_ref().unwrap().nhrp_snapshot();
        assert_eq!(nhrp.cache[0].reason, Reason::Router);
        // The client opens the shortcut and uses it, tagged and untagged.
        let here = (Who::Mpc(0), ConnId(50));
        world.call(here, atm(0x11, 0x51), atm(0x22, 0x53));
        let mut packet = vec![0x45, 0, 0, 24, 0, 0, 0, 0, 63, 17, 0, 0, 10, 1, 0, 11];
        packet.extend(ProtocolAddress::from(target).octets());
        packet.extend([1, 2, 3, 4]);
        for sdu in [
            shortcut_sdu(Some(1), &packet),
            shortcut_sdu(None, &packet),
            shortcut_sdu(None, &packet[..23]),
            vec![0; 5],
        ] {
            world.transmit(here, sdu);
        }
        world.run(SECOND);
        assert_eq!(world.routers[1].ip_packets, [packet.clone(), packet]);
        assert_eq!(world.snapshot(1).counters.malformed, 2);
        // A second request is answered from the cache; a change of the path causes purges.
        world.ask(0x12, target);
        world.run(SECOND);
        assert_eq!(reply_code(&world), Some(code::OK));
        world.routers[1]
            .routes
            .retain(|(net, ..)| *net != ip(77, 0));
        world.arp.remove(&ip(2, 30));
        world.input(1, Input::Router(FromRouter::RoutesChanged));
        world.run(SECOND);
        assert_eq!(world.mpcs[0].count(op::PURGE_REQUEST), 1);
        world.run(41 * MINUTE);
        world.assert_idle(0);
        world.assert_idle(1);
    }
}

/// A neighbour becomes a client after shortcuts to it have ended at the router: requesters that were told of this exit
/// are purged, and the next answer leads to the client.
#[test]
fn a_client_that_is_learnt_late_takes_over_from_the_router() {
    let mut world = with_others();
    let target = ip(2, 30);
    world.ask(0x11, target);
    world.run(SECOND);
    let reply = world.mpcs[0].last(mop::RESOLUTION_REPLY);
    let exit = reply.common().unwrap().cies[0].nbma.atm();
    assert_eq!(exit, Some(atm(0x22, 0x53)));
    world.host_behind(1, target, MacAddr([6; 6]));
    let (mac, atm_of, tlvs) = world.arp[&target].clone();
    world.input(
        1,
        Input::Router(FromRouter::Associate {
            itf: 2,
            mac,
            atm: atm_of,
            tlvs,
        }),
    );
    world.run(SECOND);
    assert_eq!(world.mpcs[0].count(op::PURGE_REQUEST), 1);
    world.ask(0x12, target);
    world.run(SECOND);
    let reply = world.mpcs[0].last(mop::RESOLUTION_REPLY);
    let exit = reply.common().unwrap().cies[0].nbma.atm();
    assert_eq!(exit, Some(world.mpcs[1].data));
}

#[test]
fn shortcuts_do_not_end_at_the_router_if_that_is_turned_off() {
    for target in [ip(2, 30), ip(77, 5)] {
        let mut world = with_others();
        world.input(1, Input::Stop);
        world.routers[1].config.terminate = false;
        world.boot(1);
        assert!(!world.listening.contains(&atm(0x22, 0x53)));
        world.ask(0x11, target);
        world.run(SECOND);
        assert_eq!(reply_code(&world), Some(code::NO_BINDING));
    }
}

/// Routers 21, 23, 22 in a row: the middle router only forwards NHRP.
fn three_routers() -> World {
    let mut world = World::two_routers();
    world.add_router(0x23, &[(9, ip(9, 3)), (8, ip(8, 3))]);
    world.add_router(0x22, &[(2, ip(2, 1)), (8, ip(8, 2))]);
    world.routers.swap_remove(1);
    let via = |itf, next_hop| RouteResult::Via { itf, next_hop };
    world.routers[0]
        .routes
        .push((ip(2, 0), 25, via(9, ip(9, 3))));
    let middle = world
        .routers
        .iter()
        .position(|r| r.config.control == atm(0x23, 0x52));
    assert_eq!(middle, Some(2));
    world.routers[2]
        .routes
        .push((ip(2, 0), 24, via(8, ip(8, 2))));
    world.routers[2]
        .routes
        .push((ip(1, 0), 24, via(9, ip(9, 1))));
    world.routers[1]
        .routes
        .push((ip(1, 0), 24, via(8, ip(8, 3))));
    world
}

#[test]
fn a_server_in_the_middle_passes_on_and_records_itself() {
    let mut world = three_routers();
    world.start();
    let mut request = mpoa::resolution_request(7, atm(0x11, 0x51), ip(1, 11), TARGET);
    for kind in [
        nhrp::ext::RESPONDER,
        nhrp::ext::FORWARD_TRANSIT,
        nhrp::ext::REVERSE_TRANSIT,
    ] {
        request = request.with(nhrp::Extension::compulsory(kind, vec![]));
    }
    world.mpc_sends(0, 0, &request);
    world.run(SECOND);
    assert_eq!(reply_code(&world), Some(code::OK));
    let reply = world.mpcs[0].last(mop::RESOLUTION_REPLY);
    for (kind, nhs) in [
        (nhrp::ext::RESPONDER, ip(2, 1)),
        (nhrp::ext::FORWARD_TRANSIT, ip(9, 3)),
        (nhrp::ext::REVERSE_TRANSIT, ip(9, 3)),
    ] {
        let value = &reply.extension(kind).unwrap().value;
        let mut reader = aerostat_wire::Reader::new(value);
        let cie = nhrp::Cie::decode(&mut reader).unwrap();
        assert_eq!(cie.protocol.ip(), Some(nhs));
        assert!(reader.is_empty(), "one entry in {kind}");
    }
    assert_eq!(world.snapshot(2).counters.forwarded, 2);
    assert!(world.mpcs[1].last(mop::IMPOSITION_REQUEST).encode().len() < 256);
    // Purges take the same path.
    world.arp.remove(&TARGET);
    world.input(
        1,
        Input::Router(FromRouter::NeighbourChanged { itf: 2, ip: TARGET }),
    );
    world.run(SECOND);
    assert_eq!(world.mpcs[0].count(op::PURGE_REQUEST), 1);
    assert_eq!(world.snapshot(1).counters.purge_replies_received, 1);
    world.run(MINUTE);
    world.assert_idle(2);
}

/// A request as another server would send it, with this hop count.
fn foreign_request(hop_count: u8) -> Packet {
    let mut packet = mpoa::resolution_request(9, atm(0x33, 0x51), ip(5, 1), TARGET);
    packet.op = op::RESOLUTION_REQUEST;
    packet.hop_count = hop_count;
    packet
}

#[test]
fn who_wants_the_only_binding_is_not_told_of_a_router() {
    let mut world = with_others();
    let mut packet = foreign_request(20);
    if let Body::Common(common) = &mut packet.body {
        common.destination = ip(77, 5).into();
        common.flags = nhrp::flag::UNIQUE;
    }
    world.mpc_sends(0, 1, &packet);
    world.run(SECOND);
    let sent = world.snapshot(1).counters.nhrp_replies_sent;
    assert_eq!(sent.get(&code::NOT_UNIQUE), Some(&1), "{sent:?}");
}

#[test]
fn loops_end() {
    // Two servers that send a destination to each other: the forward record stops the request, otherwise the hop count
    // does.
    for record in [true, false] {
        let mut world = World::two_routers();
        let via = |next_hop| RouteResult::Via { itf: 9, next_hop };
        world.routers[0].routes.push((ip(66, 0), 24, via(ip(9, 2))));
        world.routers[1].routes.push((ip(66, 0), 24, via(ip(9, 1))));
        world.start();
        let mut packet = foreign_request(20);
        if let Body::Common(common) = &mut packet.body {
            common.destination = ip(66, 1).into();
        }
        if record {
            let list = nhrp::Extension::compulsory(nhrp::ext::FORWARD_TRANSIT, vec![]);
            packet = packet.with(list);
        }
        world.mpc_sends(0, 0, &packet);
        world.run(SECOND);
        let counters = [world.snapshot(0).counters, world.snapshot(1).counters];
        let errors = |code| {
            counters
                .iter()
                .filter_map(|c| c.errors_sent.get(&code))
                .sum::<u64>()
        };
        let is_request = |sdu: &[u8]| sdu[8 + 17] == op::RESOLUTION_REQUEST;
        let between = |who: &Who| matches!(who, Who::Router(_));
        let log = world.log.iter();
        let hops = log
            .filter(|(from, _, sdu)| between(from) && is_request(sdu))
            .count();
        if record {
            assert_eq!((errors(3), hops), (1, 2));
        } else {
            assert_eq!((errors(15), hops), (1, 20));
        }
    }
}

#[test]
fn a_request_made_here_that_comes_back_is_a_loop_and_the_client_hears_of_it() {
    let mut world = World::two_routers();
    world.routers[0].routes.push((
        ip(66, 0),
        24,
        RouteResult::Via {
            itf: 9,
            next_hop: ip(9, 2),
        },
    ));
    world.routers[1].routes.push((
        ip(66, 0),
        24,
        RouteResult::Via {
            itf: 9,
            next_hop: ip(9, 1),
        },
    ));
    world.start();
    world.ask(0x11, ip(66, 1));
    world.run(SECOND);
    assert_eq!(world.snapshot(0).counters.loops, 1);
    assert_eq!(reply_code(&world), Some(code::NO_BINDING));
}

#[test]
fn the_holding_time_is_that_of_the_parameters() {
    let mut world = World::two_routers();
    world.routers[1].config.params.holding = Duration::from_secs(120);
    world.start();
    world.ask(0x11, TARGET);
    world.run(SECOND);
    let reply = world.mpcs[0].last(mop::RESOLUTION_REPLY).common().unwrap();
    assert_eq!(reply.cies[0].holding_s, 120);
    world.run(125 * SECOND);
    assert_eq!(world.snapshot(0).ingress, []);
}

/// The client has its connection with the first router; all other calls fail for `time`.
fn asked_while_cut(time: Duration) -> World {
    let mut world = started();
    world.mpc_sends(0, 0, &mpoa::keep_alive(1, atm(0x11, 0), 35));
    world.run(10 * (SECOND / 1000));
    world.cut = true;
    world.ask(0x11, TARGET);
    world.run(time);
    world.cut = false;
    world
}

#[test]
fn a_way_to_the_next_server_that_is_cut_for_a_moment_costs_no_retry() {
    // Calls at about 20, 60 and 140 ms fail; before 5 s the request is not sent again.
    let mut world = asked_while_cut(SECOND / 5);
    assert_eq!(reply_code(&world), None);
    world.run(SECOND);
    assert_eq!(reply_code(&world), Some(code::OK));
    assert_eq!(world.mpcs[1].count(mop::IMPOSITION_REQUEST), 1);
}

#[test]
fn calls_to_a_server_that_is_never_reached_end_with_the_retries() {
    let mut world = asked_while_cut(3 * MINUTE);
    // No packet waits for a call any more.
    let rows = world.snapshot(0).connections;
    assert!(
        rows.iter().all(|row| row.conn.0 >= ConnId::INCOMING),
        "{rows:?}"
    );
    world.ask(0x12, TARGET);
    world.run(SECOND);
    assert_eq!(reply_code(&world), Some(code::OK));
}
