//! A server refuses only if it knows that there is no answer: a server that cannot tell just now does not answer, and
//! is asked again.

use aerostat_wire::mpoa::{self, op as mop};
use aerostat_wire::nhrp::code;

use super::world::{TARGET, World, ip};
use crate::Duration;
use crate::mpoa::mps::{Absent, FromRouter, Input, RETURN, RouteResult};

const SECOND: Duration = Duration::from_secs(1);

/// Code of the last Resolution Reply to client 0.
fn reply_code(world: &World) -> Option<u8> {
    let replies = world.mpcs[0].received.iter().rev();
    let mut replies = replies.filter(|(_, p)| p.op == mop::RESOLUTION_REPLY);
    let (_, packet) = replies.next()?;
    Some(packet.common()?.cies[0].code)
}

/// Gives the router a route to the network, or takes the route away.
fn set_route(world: &mut World, router: usize, way: RouteResult) {
    let (net, len) = (ip(2, 0), 24);
    let routes = &mut world.routers[router].routes;
    routes.retain(|(known, ..)| *known != net);
    routes.push((net, len, way));
}

#[test]
fn a_neighbour_that_was_there_a_moment_ago_is_asked_for_again_after_p4_and_found() {
    let mut world = World::two_routers();
    world.absent = Absent::ForNow;
    let host = world.arp.remove(&TARGET).expect("the host");
    world.start();
    world.ask(0x11, TARGET);
    world.run(4 * SECOND);
    assert_eq!(reply_code(&world), None, "no definite no");
    assert_eq!(world.snapshot(1).counters.untold, 1);
    assert!(world.snapshot(1).counters.nhrp_replies_sent.is_empty());
    world.arp.insert(TARGET, host);
    world.run(2 * SECOND);
    assert_eq!(
        reply_code(&world),
        Some(code::OK),
        "5 s after the first question"
    );
}

#[test]
fn a_neighbour_that_has_not_been_heard_for_long_is_refused_at_once() {
    let mut world = World::two_routers();
    world.arp.remove(&TARGET);
    world.start();
    world.ask(0x11, TARGET);
    world.run(SECOND);
    assert_eq!(reply_code(&world), Some(code::NO_BINDING));
    assert_eq!(world.snapshot(1).counters.untold, 0);
}

#[test]
fn an_interface_that_is_no_member_just_now_makes_no_refusal() {
    let mut world = World::two_routers();
    set_route(&mut world, 1, RouteResult::Down);
    world.start();
    world.ask(0x11, TARGET);
    world.run(4 * SECOND);
    assert_eq!(reply_code(&world), None);
    set_route(&mut world, 1, RouteResult::Connected { itf: 2 });
    world.run(2 * SECOND);
    assert_eq!(reply_code(&world), Some(code::OK));
}

#[test]
fn the_ingress_server_asks_at_once_when_its_own_way_comes_back() {
    let mut world = World::two_routers();
    set_route(&mut world, 0, RouteResult::Down);
    world.start();
    world.ask(0x11, TARGET);
    world.run(SECOND);
    assert_eq!(reply_code(&world), None);
    let next_hop = ip(9, 2);
    set_route(&mut world, 0, RouteResult::Via { itf: 9, next_hop });
    world.input(0, Input::Router(FromRouter::RoutesChanged));
    world.run(SECOND);
    assert_eq!(reply_code(&world), Some(code::OK));
}

#[test]
fn a_client_that_nobody_can_tell_anything_is_told_so_after_p6_and_nothing_is_left() {
    let mut world = World::two_routers();
    set_route(&mut world, 1, RouteResult::Down);
    world.start();
    world.ask(0x11, TARGET);
    world.run(RETURN - SECOND);
    assert_eq!(reply_code(&world), None);
    world.run(2 * SECOND);
    assert_eq!(reply_code(&world), Some(mpoa::code::OTHER));
    // Requests at 0, 5, 15 and 35 s.
    let [ingress, egress] = [0, 1].map(|n| world.snapshot(n).counters);
    assert_eq!((ingress.give_ups, egress.untold), (1, 4));
    world.run(120 * SECOND);
    world.assert_idle(0);
    world.assert_idle(1);
}
