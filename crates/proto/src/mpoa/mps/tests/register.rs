//! Stations without MPOA register, are found, and withdraw; other stations try to take their addresses.

use std::net::{IpAddr, Ipv4Addr};

use aerostat_wire::mpoa::{self, op as mop};
use aerostat_wire::nhrp::{Cie, Common, Extension, Packet, code, error, ext, flag, op};
use aerostat_wire::{AtmAddress, prefix};

use super::world::{Mood, World, atm, ip};
use crate::mpoa::mps::RouteResult;
use crate::nhrp::Reason;
use crate::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);
/// On ELAN 2 of router 1, at the end system of client 1.
const STATION: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 2, 0, 77));

fn nbma() -> AtmAddress {
    atm(0x12, 9)
}

/// Router 1 lets stations register; client 1 represents a station.
fn world() -> World {
    let mut world = World::two_routers();
    world.routers[1].config.register = true;
    world.host_behind(1, STATION, aerostat_wire::MacAddr([2, 0, 0, 0, 2, 0x77]));
    world.start();
    world
}

fn entry(address: IpAddr, holding_s: u16) -> Cie {
    Cie {
        mtu: 9180,
        nbma: nbma().into(),
        protocol: address.into(),
        ..Cie::brief(0xff, holding_s)
    }
}

fn registration(id: u32, flags: u16, cies: Vec<Cie>) -> Packet {
    Packet::new(
        op::REGISTRATION_REQUEST,
        Common {
            flags,
            request_id: id,
            source_nbma: nbma().into(),
            source: STATION.into(),
            destination: ip(2, 1).into(),
            cies,
            ..Common::default()
        },
    )
}

/// Sends a registration from client `from` and returns the codes of the answer.
fn register(world: &mut World, from: usize, packet: &Packet) -> Vec<u8> {
    world.mpc_sends(from, 1, packet);
    world.run(SECOND);
    let reply = world.mpcs[from].last(op::REGISTRATION_REPLY);
    let common = reply.common().unwrap();
    assert_eq!(common.request_id, packet.common().unwrap().request_id);
    for cie in &common.cies {
        assert!(cie.code == code::OK || cie.holding_s == 0);
    }
    common.cies.iter().map(|cie| cie.code).collect()
}

fn answer(world: &World) -> Cie {
    let reply = world.mpcs[0].last(mop::RESOLUTION_REPLY);
    reply.common().unwrap().cies[0].clone()
}

fn registered(world: &World) -> usize {
    let nhrp = world.routers[1].mps.as_ref().unwrap().nhrp_snapshot();
    let rows = nhrp.cache.iter();
    rows.filter(|row| row.reason == Reason::Registered).count()
}

#[test]
fn a_station_registers_is_found_and_withdraws() {
    let mut world = world();
    let packet = registration(1, flag::REGISTRATION_UNIQUE, vec![entry(STATION, 100)]);
    assert_eq!(register(&mut world, 1, &packet), [code::OK]);
    world.run(Duration::from_secs(40));
    world.ask(0x11, STATION);
    world.run(SECOND);
    let cie = answer(&world);
    assert_eq!(
        (cie.code, cie.nbma.atm(), cie.mtu),
        (code::OK, Some(nbma()), 9180)
    );
    assert!(
        (57..=59).contains(&cie.holding_s),
        "what is left: {}",
        cie.holding_s
    );
    assert_eq!(world.mpcs[1].count(mop::IMPOSITION_REQUEST), 0);
    // A refresh changes nothing for requesters that know the station; a withdrawal purges them.
    assert_eq!(register(&mut world, 1, &packet), [code::OK]);
    assert_eq!(world.mpcs[0].count(op::PURGE_REQUEST), 0);
    let withdrawal = registration(2, 0, vec![entry(STATION, 0)]);
    assert_eq!(register(&mut world, 1, &withdrawal), [code::OK]);
    assert_eq!(world.mpcs[0].count(op::PURGE_REQUEST), 1);
    assert_eq!(registered(&world), 0);
    world.run(Duration::from_secs(200));
    world.assert_idle(1);
}

#[test]
fn what_the_entry_leaves_out_is_in_the_header_and_the_longest_holding_time_ends() {
    let mut world = world();
    let packet = registration(1, 0, vec![Cie::brief(0, u16::MAX)]);
    assert_eq!(register(&mut world, 1, &packet), [code::OK]);
    world.run(Duration::from_secs(65_533));
    assert_eq!(registered(&world), 1);
    world.run(Duration::from_secs(2));
    assert_eq!(registered(&world), 0);
    world.assert_idle(1);
}

#[test]
fn a_purge_of_the_station_reaches_those_who_were_told_and_one_of_others_does_nothing() {
    let mut world = world();
    let packet = registration(1, 0, vec![entry(STATION, 900)]);
    assert_eq!(register(&mut world, 1, &packet), [code::OK]);
    world.ask(0x11, STATION);
    world.run(SECOND);
    let purge = mpoa::purge_request(7, nbma(), STATION, ip(2, 1), STATION, 32);
    world.mpc_sends(0, 1, &purge);
    world.run(SECOND);
    assert_eq!(
        (registered(&world), world.mpcs[0].count(op::PURGE_REQUEST)),
        (1, 0)
    );
    let purge = mpoa::purge_request(8, nbma(), STATION, ip(2, 1), STATION, 32);
    world.mpc_sends(1, 1, &purge);
    world.run(SECOND);
    assert_eq!(
        (registered(&world), world.mpcs[0].count(op::PURGE_REQUEST)),
        (0, 1)
    );
}

#[test]
fn nobody_registers_what_is_not_his() {
    let mut world = world();
    let other_net = ip(7, 7);
    let cies = vec![entry(STATION, 9), entry(other_net, 9), entry(ip(2, 1), 9)];
    let codes = register(&mut world, 1, &registration(1, 0, cies));
    assert_eq!(codes, [code::OK, code::PROHIBITED, code::PROHIBITED]);
    let wide = Cie {
        prefix: 16,
        ..entry(STATION, 9)
    };
    let codes = register(&mut world, 1, &registration(2, 0, vec![wide]));
    assert_eq!(
        codes,
        [code::PROHIBITED],
        "more than the network of the router"
    );
    // Another end system claims to be the first one, then claims the address for itself.
    let codes = register(&mut world, 0, &registration(3, 0, vec![entry(STATION, 9)]));
    assert_eq!(codes, [code::PROHIBITED]);
    let mine = Cie {
        nbma: atm(0x11, 9).into(),
        ..entry(STATION, 9)
    };
    let codes = register(&mut world, 0, &registration(4, 0, vec![mine]));
    assert_eq!(codes, [code::ALREADY_REGISTERED]);
    assert_eq!(registered(&world), 1);
    let strange = registration(5, 0, vec![entry(STATION, 9)]);
    world.mpc_sends(1, 1, &strange.with(Extension::compulsory(0x3fff, vec![])));
    world.run(SECOND);
    let errors = world.snapshot(1).counters.errors_sent;
    assert_eq!(errors.get(&error::UNRECOGNIZED_EXTENSION), Some(&1));
}

/// Every prefix length, with and without the uniqueness bit, for addresses that a host can have and cannot have: what
/// the reply acknowledges is in the cache as it stands there, and after a refusal nothing is.
#[test]
fn what_is_acknowledged_is_what_is_kept() {
    let mut world = world();
    let rows = |world: &World| -> Vec<(IpAddr, u8)> {
        let nhrp = world.routers[1].mps.as_ref().unwrap().nhrp_snapshot();
        let rows = nhrp.cache.iter();
        let rows = rows.filter(|row| row.reason == Reason::Registered);
        rows.map(|row| (row.destination, row.prefix_len)).collect()
    };
    let mut id = 1;
    for (address, is_host) in [
        (STATION, true),
        (ip(2, 0), false),
        (ip(2, 255), false),
        (ip(2, 1), false),
        (ip(7, 7), false),
    ] {
        for length in 0..=u8::MAX {
            for flags in [0, flag::REGISTRATION_UNIQUE] {
                id += 2;
                let cie = Cie {
                    prefix: length,
                    ..entry(address, 60)
                };
                let codes = register(&mut world, 1, &registration(id, flags, vec![cie]));
                let what = format!("{address}/{length}, flags {flags:#x}: {codes:?}");
                // RFC 2332 §5.2.0.1: 0 and 255 stand for "not used". With the bit the length is that of a host.
                let told = match length {
                    0 | 255 => 32,
                    length => length,
                };
                let unique = flags != 0;
                // The network of the router is /24, and its own address is 10.2.0.1.
                let net = prefix::masked(address, told);
                let free =
                    told > 24 && net != prefix::masked(ip(2, 1), told) && address != ip(7, 7);
                let good = match told {
                    32 => is_host && !(unique && length == 0),
                    25..32 => !unique && free,
                    _ => false,
                };
                let kept = if good { vec![(address, told)] } else { vec![] };
                assert_eq!(rows(&world), kept, "{what}");
                let code = if good { code::OK } else { code::PROHIBITED };
                assert_eq!(codes, [code], "{what}");
                let purge = mpoa::purge_request(id + 1, nbma(), STATION, ip(2, 1), ip(2, 0), 16);
                world.mpc_sends(1, 1, &purge);
                world.run(SECOND);
                assert_eq!(rows(&world), [], "{what}");
            }
        }
    }
}

#[test]
fn registrations_have_a_limit_and_vendor_extensions_come_back() {
    let mut world = World::two_routers();
    world.routers[1].config.register = true;
    world.routers[1].config.limits.registrations = 2;
    world.start();
    let cies = (100..103).map(|last| entry(ip(2, last), 60)).collect();
    let vendor = Extension::new(ext::VENDOR, vec![0, 0x20, 0xea, 1, 2]);
    let packet = registration(1, 0, cies).with(vendor.clone());
    let codes = register(&mut world, 1, &packet);
    assert_eq!(codes, [code::OK, code::OK, code::RESOURCES]);
    let reply = world.mpcs[1].last(op::REGISTRATION_REPLY);
    assert_eq!(reply.extension(ext::VENDOR), Some(&vendor));
    assert_eq!(world.snapshot(1).counters.limits_met, 1);
}

/// A shortcut ended at the router; then the destination registers, and the shortcut leads to it.
#[test]
fn a_registration_replaces_a_shortcut_to_the_router() {
    let mut world = world();
    let known = world.arp.get_mut(&STATION).unwrap();
    known.2.clear();
    world.ask(0x11, STATION);
    world.run(SECOND);
    assert_eq!(answer(&world).nbma.atm(), Some(atm(0x22, 0x53)));
    let packet = registration(1, 0, vec![entry(STATION, 900)]);
    assert_eq!(register(&mut world, 1, &packet), [code::OK]);
    assert_eq!(world.mpcs[0].count(op::PURGE_REQUEST), 1);
    world.ask(0x12, STATION);
    world.run(SECOND);
    assert_eq!(answer(&world).nbma.atm(), Some(nbma()));
}

/// The server restarts: registrations are lost until the station refreshes them. A later change of the route is
/// followed, as for every binding.
#[test]
fn a_restart_forgets_and_a_refresh_restores() {
    let mut world = world();
    let packet = registration(1, 0, vec![entry(STATION, 900)]);
    assert_eq!(register(&mut world, 1, &packet), [code::OK]);
    world.crash(1);
    world.kill_mpc(1);
    world.mpcs[1].mood = Mood::Accept;
    world.run(SECOND);
    world.boot(1);
    assert_eq!(registered(&world), 0);
    world.loss = 30;
    // The station repeats its request until it is answered, as a client does.
    let before = world.mpcs[1].count(op::REGISTRATION_REPLY);
    for _ in 0..40 {
        world.mpc_sends(1, 1, &packet);
        world.run(SECOND);
        if world.mpcs[1].count(op::REGISTRATION_REPLY) > before {
            break;
        }
    }
    assert_eq!(registered(&world), 1);
    world.loss = 0;
    world.ask(0x11, STATION);
    world.run(SECOND);
    assert_eq!(answer(&world).nbma.atm(), Some(nbma()));
    let outside = (ip(2, 0), 25, RouteResult::Outside);
    world.routers[0].routes.push(outside);
    world.input(
        0,
        crate::mpoa::mps::Input::Router(crate::mpoa::mps::FromRouter::RoutesChanged),
    );
    world.run(SECOND);
    assert_eq!(world.mpcs[0].count(op::PURGE_REQUEST), 1);
    assert!(world.now > Instant::ZERO);
}
