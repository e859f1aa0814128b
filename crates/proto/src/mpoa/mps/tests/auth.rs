//! Servers that share a key, and servers that only pretend to.

use aerostat_wire::mpoa::op as mop;
use aerostat_wire::nhrp::{Packet, code, error, ext, op};

use super::world::{TARGET, Who, World, atm};
use crate::Duration;
use crate::nhrp::auth::{Key, Neighbour};

const SECOND: Duration = Duration::from_secs(1);

/// Servers with keys for each other, and clients without keys.
fn world(keys: [Option<&str>; 2]) -> World {
    let mut world = World::two_routers();
    let signs_as = [0, 1].map(|router: usize| world.routers[router].config.keys.signs_as);
    for (router, (key, neighbour)) in keys.into_iter().zip([0x22, 0x21]).enumerate() {
        if let Some(secret) = key {
            let (spi, secret) = (1, secret.into());
            let neighbours = &mut world.routers[router].config.keys.neighbours;
            let (key, signs_as) = (
                Key {
                    spi,
                    secret,
                    clear_text: false,
                },
                signs_as[1 - router],
            );
            neighbours.insert(atm(neighbour, 0x52), Neighbour { key, signs_as });
        }
    }
    world.start();
    world.ask(0x11, TARGET);
    world.run(SECOND);
    world
}

fn answer(world: &World) -> u8 {
    let reply = world.mpcs[0].last(mop::RESOLUTION_REPLY);
    reply.common().unwrap().cies[0].code
}

#[test]
fn what_servers_with_one_key_say_to_each_other_is_signed_and_nothing_else() {
    let mut world = world([Some("key"), Some("key")]);
    assert_eq!(answer(&world), code::OK);
    let neighbour =
        crate::mpoa::mps::Input::Router(crate::mpoa::mps::FromRouter::NeighbourChanged {
            itf: 2,
            ip: TARGET,
        });
    world.arp.remove(&TARGET);
    world.input(1, neighbour);
    world.run(SECOND);
    assert_eq!(
        world.mpcs[0].count(op::PURGE_REQUEST),
        1,
        "purges are signed too"
    );
    for (from, to, sdu) in &world.log {
        let packet = Packet::from_sdu(sdu).unwrap();
        let between = matches!((from, to), (Who::Router(_), Who::Router(_)));
        assert_eq!(packet.extension(ext::AUTHENTICATION).is_some(), between);
    }
}

#[test]
fn a_wrong_missing_or_unexpected_signature_is_refused_with_11() {
    for keys in [
        [Some("key"), Some("other")],
        [None, Some("key")],
        [Some("key"), None],
    ] {
        let world = world(keys);
        assert_eq!(answer(&world), code::NO_BINDING, "{keys:?}");
        let errors = world.snapshot(1).counters.errors_sent;
        assert_eq!(errors.get(&error::AUTHENTICATION), Some(&1), "{keys:?}");
        assert_eq!(world.mpcs[1].count(mop::IMPOSITION_REQUEST), 0);
    }
}
