//! Several requests of one client for one destination at once: each gets an answer, under its own id and with its own
//! service category.

use aerostat_wire::MacAddr;
use aerostat_wire::mpoa::{
    self, category, op as mop, service_category, service_category_extension,
};
use aerostat_wire::nhrp::{Packet, ProtocolAddress, code, op};
use std::net::IpAddr;

use super::world::{Mood, TARGET, World, ip};
use crate::Duration;
use crate::mpoa::mps::{EgressState, FromRouter, Input, RouteResult};

const SECOND: Duration = Duration::from_secs(1);

/// A Resolution Request of client 0, for best effort or for a category.
fn request(world: &World, id: u32, target: IpAddr, wanted: Option<u16>) -> Packet {
    let (data, ip) = (world.mpcs[0].data, world.mpcs[0].ip);
    let packet = mpoa::resolution_request(id, data, ip, target);
    match wanted {
        Some(bits) => packet.with(service_category_extension(bits)),
        None => packet,
    }
}

fn ask(world: &mut World, id: u32, wanted: Option<u16>) {
    let packet = request(world, id, TARGET, wanted);
    world.mpc_sends(0, 0, &packet);
}

/// The answers that client 0 got: id, code, service category; by id.
fn answers(world: &World) -> Vec<(u32, u8, Option<u16>)> {
    let all = world.mpcs[0].received.iter();
    let replies = all.filter(|(_, packet)| packet.op == mop::RESOLUTION_REPLY);
    let mut answers: Vec<_> = replies
        .map(|(_, packet)| {
            let common = packet.common().unwrap();
            let category = service_category(packet).unwrap();
            (common.request_id, common.cies[0].code, category)
        })
        .collect();
    answers.sort_unstable();
    answers
}

/// One router that plays both roles, or two.
fn worlds() -> [World; 2] {
    let mut one = World::empty();
    one.add_router(0x21, &[(1, ip(1, 1)), (2, ip(2, 1))]);
    one.add_mpc(0x11, ip(1, 11));
    one.add_mpc(0x12, ip(2, 12));
    one.host_behind(1, TARGET, MacAddr([2, 0, 0, 0, 2, 0x20]));
    let mut all = [one, World::two_routers()];
    all.iter_mut().for_each(World::start);
    all
}

#[test]
fn each_request_is_answered_under_its_id_and_with_its_category() {
    let (cbr, vbr) = (Some(category::CBR), Some(category::NRT_VBR));
    for mut world in worlds() {
        let asked = [(1, cbr), (2, None), (3, cbr), (4, vbr), (5, None)];
        for (id, wanted) in asked {
            ask(&mut world, id, wanted);
        }
        world.run(SECOND);
        let expected = asked.map(|(id, wanted)| (id, code::OK, wanted));
        assert_eq!(answers(&world), expected);
        // One question for each kind, and not one for each request.
        assert_eq!(world.mpcs[1].count(mop::IMPOSITION_REQUEST), 3);
        assert_eq!(world.snapshot(0).counters.waited, 4);
        let egress = world.snapshot(world.routers.len() - 1).egress;
        assert_eq!((egress.len(), egress[0].state), (1, EgressState::Imposed));
        world.run(3000 * SECOND);
        world.assert_idle(0);
    }
}

#[test]
fn a_request_that_is_sent_again_is_answered_once() {
    for mut world in worlds() {
        for _ in 0..3 {
            ask(&mut world, 1, None);
            ask(&mut world, 2, Some(category::CBR));
        }
        world.run(SECOND);
        let expected = [(1, code::OK, None), (2, code::OK, Some(category::CBR))];
        assert_eq!(answers(&world), expected);
        assert_eq!(world.snapshot(0).counters.duplicates, 4);
    }
}

#[test]
fn a_refusal_is_for_all_that_ask() {
    let cbr = Some(category::CBR);
    for mut world in worlds() {
        let refusal = mpoa::code::NO_ROOM_FOR_ENTRY;
        world.mpcs[1].mood = Mood::Refuse(refusal);
        for (id, wanted) in [(1, None), (2, cbr), (3, None)] {
            ask(&mut world, id, wanted);
        }
        world.run(SECOND);
        let codes: Vec<_> = answers(&world).iter().map(|a| (a.0, a.1)).collect();
        assert_eq!(codes, [(1, refusal), (2, refusal), (3, refusal)]);
        world.run(3000 * SECOND);
        world.assert_idle(0);
    }
}

/// No answer reaches the server: each request gets code 0x88 when p6 of its question is over, and not 12, which would
/// say that no binding exists. This holds for an entry that is to be refreshed, too.
#[test]
fn requests_that_nobody_answers_are_refused_after_p6() {
    let other = mpoa::code::OTHER;
    for refresh in [false, true] {
        for mut world in worlds() {
            if refresh {
                ask(&mut world, 7, None);
                world.run(SECOND);
                assert_eq!(answers(&world), [(7, code::OK, None)]);
                world.mpcs[0].received.clear();
            }
            world.mpcs[1].mood = Mood::Silent;
            for (id, wanted) in [(1, None), (2, Some(category::CBR)), (3, None)] {
                ask(&mut world, id, wanted);
            }
            world.run(39 * SECOND);
            assert_eq!(answers(&world), []);
            world.run(2 * SECOND);
            let told = |world: &World| -> Vec<(u32, u8)> {
                answers(world).iter().map(|a| (a.0, a.1)).collect()
            };
            assert_eq!(told(&world), [(1, other), (3, other)]);
            world.run(40 * SECOND);
            assert_eq!(told(&world), [(1, other), (2, other), (3, other)]);
            let counters = world.snapshot(0).counters;
            assert_eq!(counters.give_ups, 2, "one for each question");
            world.run(3000 * SECOND);
            world.assert_idle(0);
        }
    }
}

/// Beyond the limit the answer is an error at once; what waits gets its answer.
#[test]
fn no_more_than_the_limit_wait() {
    for mut world in worlds() {
        let limit = world.routers[0].config.limits.waiting as u32;
        assert_eq!(limit, 64);
        for id in 0..limit + 3 {
            ask(&mut world, id, None);
        }
        world.run(SECOND);
        let answers = answers(&world);
        let ids: Vec<_> = answers.iter().map(|answer| answer.0).collect();
        assert_eq!(ids, Vec::from_iter(0..limit + 3));
        let refused = answers.iter().filter(|a| a.1 == code::RESOURCES);
        assert_eq!(refused.map(|a| a.0).collect::<Vec<_>>(), [65, 66]);
        assert_eq!(world.snapshot(0).counters.limits_met, 2);
    }
}

/// Requests that wait count as entries of their client: it cannot fill the server by asking each destination twice.
#[test]
fn what_waits_counts_for_its_client() {
    let mut world = World::two_routers();
    world.routers[0].config.limits.ingress_per_mpc = 3;
    world.start();
    world.routers[1].config.limits.egress = 0;
    for host in 0..3 {
        for id in 0..2 {
            let packet = request(&world, 10 * u32::from(host) + id, ip(2, 30 + host), None);
            world.mpc_sends(0, 0, &packet);
        }
    }
    let packet = request(&world, 77, ip(2, 30), None);
    world.mpc_sends(0, 0, &packet);
    world.run(SECOND);
    let answers = answers(&world);
    assert_eq!(answers.len(), 7, "{answers:?}");
    let refused = answers.iter().filter(|a| a.1 == code::RESOURCES);
    assert_eq!(refused.map(|a| a.0).collect::<Vec<_>>(), [77]);
}

/// The path to the destination changes while its client is asked: the requester is answered over the new path, and
/// does not wait for its retry.
#[test]
fn a_path_that_changes_during_an_imposition_costs_no_retry() {
    let mut world = World::two_routers();
    world.add_mpc(0x13, ip(2, 13));
    world.start();
    world.mpcs[1].mood = Mood::Silent;
    ask(&mut world, 1, None);
    ask(&mut world, 2, Some(category::CBR));
    world.run(SECOND);
    assert_eq!(answers(&world), []);
    world.host_behind(2, TARGET, MacAddr([2, 0, 0, 0, 2, 0x21]));
    world.input(
        1,
        Input::Router(FromRouter::NeighbourChanged { itf: 2, ip: TARGET }),
    );
    world.run(SECOND);
    let expected = [(1, code::OK, None), (2, code::OK, Some(category::CBR))];
    assert_eq!(answers(&world), expected);
    let reply = world.mpcs[0].last(mop::RESOLUTION_REPLY).common().unwrap();
    assert_eq!(reply.cies[0].nbma.atm(), Some(world.mpcs[2].data));
}

/// Without room for the imposition the requesters are told so.
#[test]
fn no_room_for_an_imposition_is_an_answer() {
    let mut world = World::two_routers();
    world.routers[1].config.limits.requests = 1;
    world.start();
    world.mpcs[1].mood = Mood::Silent;
    let other = ip(2, 21);
    world.host_behind(1, other, MacAddr([2, 0, 0, 0, 2, 0x21]));
    ask(&mut world, 1, None);
    world.run(SECOND);
    let packet = request(&world, 2, other, None);
    world.mpc_sends(0, 0, &packet);
    world.run(SECOND);
    assert_eq!(answers(&world), [(2, code::RESOURCES, None)]);
}

/// A network that the server does not serve, such as a Classical IP subnet without NHRP: the answer is code 12, and the
/// router is not asked for an owner that LE_ARP cannot find.
#[test]
fn a_neighbour_on_a_network_without_the_server_is_refused_at_once() {
    for split in [false, true] {
        let mut world = World::two_routers();
        world.split = split;
        let beyond = RouteResult::Connected { itf: 77 };
        world.routers[1].routes.push((ip(2, 0), 24, beyond));
        world.routers[1].config.trigger = true;
        world.start();
        ask(&mut world, 1, None);
        world.run(SECOND);
        assert_eq!(answers(&world), [(1, code::NO_BINDING, None)]);
        // A flow from there triggers no client.
        let mut packet = vec![0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0];
        for address in [TARGET, ip(1, 11)] {
            packet.extend(ProtocolAddress::from(address).octets());
        }
        let (itf, packet) = (77, &packet[..]);
        world.input(1, Input::Routed { itf, packet });
        world.run(SECOND);
        assert_eq!(world.snapshot(1).counters.triggers_sent, 0);
        let refused = world.routers[1].mps.as_ref().unwrap().seat_counters();
        assert_eq!(refused.refused, 0);
    }
}

#[test]
fn a_request_of_nhrp_that_comes_again_under_another_id_is_answered_twice() {
    let mut world = World::two_routers();
    world.start();
    let own = world.mpcs[0].data;
    let asked = |id: u32| {
        let mut packet = mpoa::resolution_request(id, own, ip(9, 1), TARGET);
        packet.op = op::RESOLUTION_REQUEST;
        packet
    };
    // As the next hop server of another router on the ELAN, over a connection of its own.
    for id in [7, 8] {
        let packet = asked(id);
        world.mpc_sends(0, 1, &packet);
    }
    world.run(SECOND);
    let counters = world.snapshot(1).counters;
    assert_eq!(counters.nhrp_replies_sent.get(&code::OK), Some(&2));
    assert_eq!((counters.waited, counters.duplicates), (1, 0));
}
