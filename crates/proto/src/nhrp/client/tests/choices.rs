//! Several next hops in one reply; registrations for other servers; hop counts, and who is told.

use aerostat_wire::nhrp::{
    Body, Cie, Common, ErrorIndication, Extension, Packet, code, error, ext, flag, op,
};

use super::world::{Who, World, atm, ip};
use super::{SECOND, direct, lone, plain};
use crate::machine::settle;
use crate::nhrp::client::{EntryState, Input, Nhc, Output, Refusal};
use crate::{AtmEvent, AtmRequest, ConnId, Machine};
use aerostat_wire::{Qos, Vc};

/// The control connection of client 0.
const CONN: ConnId = ConnId(1);

fn packet(op: u8, flags: u16, destination: [u8; 2], cies: Vec<Cie>) -> Packet {
    let common = Common {
        flags,
        request_id: 99,
        source_nbma: atm(0x80, 0x54).into(),
        source: ip(0, 10).into(),
        destination: ip(destination[0], destination[1]).into(),
        cies,
        ..Common::default()
    };
    Packet::new(op, common)
}

fn transmit(world: &mut World, packet: &Packet) {
    world.transmit((Who::Client(0), CONN), packet.to_sdu());
    world.run(SECOND);
}

/// The last packet of this type to client 0.
fn last(world: &World, op: u8) -> Option<Packet> {
    let all = &mut world.log.iter();
    let found = all.rfind(|(_, to, packet)| *to == Who::Client(0) && packet.op == op);
    found.map(|(.., packet)| packet.clone())
}

/// Of the usable next hops the preferred one is taken; the order does not matter.
#[test]
fn of_several_next_hops_the_preferred_one() {
    let hop = |id: u8, preference: u8, code: u8, holding_s: u16| Cie {
        code,
        preference,
        nbma: atm(id, 0).into(),
        ..Cie::brief(32, holding_s)
    };
    let own = hop(0x80, 250, code::OK, 60);
    let (low, high) = (hop(0x90, 1, code::OK, 60), hop(0x91, 200, code::OK, 60));
    let (refused, over) = (
        hop(0x92, 255, code::PROHIBITED, 60),
        hop(0x93, 254, code::OK, 0),
    );
    for (cies, chosen) in [
        (vec![low.clone(), high.clone()], Some(0x91)),
        (vec![high.clone(), low.clone()], Some(0x91)),
        (
            vec![refused.clone(), over.clone(), own.clone(), low.clone()],
            Some(0x90),
        ),
        (vec![refused, over, own], None),
    ] {
        let (mut nhc, now) = lone();
        let flags = flag::AUTHORITATIVE;
        let mut reply = packet(op::RESOLUTION_REPLY, flags, [1, 10], cies);
        if let Body::Common(common) = &mut reply.body {
            common.request_id = 2;
        }
        let sdu = &reply.to_sdu()[..];
        let conn = CONN;
        nhc.handle_input(Input::Atm(AtmEvent::Received { conn, sdu }), now)
            .unwrap();
        settle(&mut nhc, now);
        let row = &nhc.snapshot().entries[0];
        assert_eq!(row.nbma, chosen.map(|id| atm(id, 0)));
        let refused = EntryState::Refused(Refusal::Code(code::PROHIBITED));
        assert_eq!(row.state == refused, chosen.is_none());
    }
}

/// Two destinations behind one exit share its connection. A packet that is too long for the connection goes to the
/// router, although it is short enough for its destination. No reply makes the client believe in an MTU below 68.
#[test]
fn a_shared_connection_carries_what_it_was_opened_for() {
    let (mut nhc, now) = lone();
    let answer = |nhc: &mut Nhc, request_id: u32, host: u8, mtu: u16| {
        let exit = Cie {
            nbma: atm(0x90, 0).into(),
            mtu,
            ..Cie::brief(32, 60)
        };
        let flags = flag::AUTHORITATIVE;
        let mut reply = packet(op::RESOLUTION_REPLY, flags, [1, host], vec![exit]);
        if let Body::Common(common) = &mut reply.body {
            common.request_id = request_id;
        }
        let sdu = &reply.to_sdu()[..];
        let conn = CONN;
        let input = Input::Atm(AtmEvent::Received { conn, sdu });
        nhc.handle_input(input, now).unwrap();
        settle(nhc, now)
    };
    let send = |nhc: &mut Nhc, host: u8, length: usize| {
        let packet = vec![0; length];
        let destination = ip(1, host);
        let input = Input::Send {
            destination,
            packet,
        };
        nhc.handle_input(input, now).unwrap();
        settle(nhc, now)
    };
    let calls = |out: &[Output]| {
        let all = out.iter().filter_map(|output| match output {
            Output::Atm(AtmRequest::Connect { conn, qos, .. }) => Some((*conn, *qos)),
            _ => None,
        });
        all.collect::<Vec<_>>()
    };
    let called = calls(&answer(&mut nhc, 2, 10, 40));
    let [(conn, qos)] = called[..] else {
        panic!("{called:?}")
    };
    assert_eq!(qos, Qos::ubr(68 + 8));
    let vc = Vc::new(0, 40);
    nhc.handle_input(
        Input::Atm(AtmEvent::Connected {
            conn,
            vc,
            qos: Qos::ubr(0),
        }),
        now,
    )
    .unwrap();
    settle(&mut nhc, now);
    // The router gets the packet, and the other destination is asked for.
    let out = send(&mut nhc, 11, 500);
    assert!(matches!(out[0], Output::Routed(_)), "{out:?}");
    assert!(calls(&answer(&mut nhc, 3, 11, 1500)).is_empty(), "shared");
    for host in [10, 11] {
        let out = send(&mut nhc, host, 68);
        let direct =
            matches!(&out[..], [Output::Atm(AtmRequest::Send { conn: by, .. })] if *by == conn);
        assert!(direct, "{out:?}");
        let out = send(&mut nhc, host, 69);
        assert!(matches!(out[..], [Output::Routed(_)]), "{out:?}");
    }
}

/// A registration for another server is forwarded to it, but that server does not register stations behind other
/// servers; its answer comes back. A registration "to itself" is for the server that receives it: code 4 for a network
/// that is not served there.
#[test]
fn registrations_for_other_networks() {
    let mut world = plain(2);
    let entry = |net: u8| Cie {
        nbma: atm(0x80, 0).into(),
        protocol: ip(net, 10).into(),
        ..Cie::brief(0xff, 60)
    };
    let before = world.routers[0].mps.counters().forwarded;
    let there = packet(op::REGISTRATION_REQUEST, 0, [2, 2], vec![entry(0)]);
    transmit(&mut world, &there);
    let answered = |world: &World| {
        let reply = last(world, op::REGISTRATION_REPLY).unwrap();
        let common = reply.common().unwrap().clone();
        (
            common.request_id,
            common.cies[0].code,
            common.cies[0].holding_s,
        )
    };
    assert_eq!(answered(&world), (99, code::PROHIBITED, 0));
    assert_eq!(world.routers[0].mps.counters().forwarded, before + 2);
    assert_eq!(world.count(op::REGISTRATION_REQUEST), 3 + 2);
    let mut itself = packet(op::REGISTRATION_REQUEST, 0, [0, 10], vec![entry(7)]);
    if let Body::Common(common) = &mut itself.body {
        common.request_id = 100;
    }
    transmit(&mut world, &itself);
    assert_eq!(answered(&world), (100, code::PROHIBITED, 0));
    // The same registration for the server's own network is accepted.
    if let Body::Common(common) = &mut itself.body {
        (common.request_id, common.cies) = (101, vec![entry(0)]);
    }
    transmit(&mut world, &itself);
    assert_eq!(answered(&world), (101, code::OK, 60));
}

fn error(world: &World) -> Option<ErrorIndication> {
    let Body::Error(indication) = last(world, op::ERROR_INDICATION)?.body else {
        return None;
    };
    Some(indication)
}

/// The source is told of a hop count that was too small, by the node where it ended.
#[test]
fn hop_counts_end_and_the_source_is_told() {
    for (hops, observer) in [(0, Some(0)), (1, Some(1)), (2, None)] {
        let mut world = plain(3);
        let mut request = packet(op::RESOLUTION_REQUEST, 0, [3, 10], vec![Cie::brief(32, 0)]);
        request.hop_count = hops;
        transmit(&mut world, &request);
        let told = error(&world).filter(|told| told.code == error::HOP_COUNT);
        assert_eq!(told.is_some(), observer.is_some(), "{hops}");
        assert_eq!(
            last(&world, op::RESOLUTION_REPLY).is_some(),
            observer.is_none()
        );
        let (Some(told), Some(router)) = (told, observer) else {
            continue;
        };
        assert_eq!((told.code, told.offset), (error::HOP_COUNT, 9));
        assert_eq!(told.source_nbma.atm(), Some(atm(router, 0x52)));
        let offending = Packet::decode(&told.offending).unwrap();
        assert_eq!(offending.common(), request.common());
    }
}

/// A server that is named in the records of a packet has already seen it: error 3, for requests and for replies.
#[test]
fn records_that_name_the_server_are_loops() {
    let mut world = plain(2);
    direct(&mut world, ip(2, 10));
    let named = Cie {
        nbma: atm(0, 0x52).into(),
        protocol: ip(1, 2).into(),
        ..Cie::default()
    };
    let mut value = Vec::new();
    named.encode(&mut value);
    for (op, kind, loops) in [
        (op::RESOLUTION_REQUEST, ext::FORWARD_TRANSIT, true),
        (op::PURGE_REQUEST, ext::FORWARD_TRANSIT, true),
        (op::RESOLUTION_REPLY, ext::REVERSE_TRANSIT, true),
        (op::RESOLUTION_REPLY, ext::RESPONDER, true),
        (op::RESOLUTION_REQUEST, ext::REVERSE_TRANSIT, false),
    ] {
        let before = world.count(op::ERROR_INDICATION);
        let cie = Cie {
            protocol: ip(2, 10).into(),
            ..Cie::brief(32, 0)
        };
        let record = Extension::compulsory(kind, value.clone());
        let packet = packet(op, 0, [2, 10], vec![cie]).with(record);
        transmit(&mut world, &packet);
        let told = (world.count(op::ERROR_INDICATION) > before).then(|| error(&world));
        let code = told.flatten().map(|told| told.code);
        assert_eq!(code == Some(error::LOOP), loops, "{op} {kind}");
    }
}
