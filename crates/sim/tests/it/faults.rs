//! One fault at a time under traffic, then several at once.
//!
//! The bounds are those that follow from the lab's timers, with room for jitter: SSCOP notices a dead link by
//! its own timers (some 10 s), a client joins again within its join time-outs, a server's death is noticed
//! after its keep-alive lifetime (3 s), a refused resolution is held down for 30 s.

use crate::bench::{Bench, lab_of};
use crate::check;
use aerostat_node::host::{HostCommand, ServiceKind};
use aerostat_node::inspect::StateKind;
use aerostat_node::ip::meter::Path;
use aerostat_node::ip::router::StaticRoute;
use aerostat_proto::Duration;
use std::net::Ipv4Addr;

pub(crate) const SMALL: &str = "
mpoa: { start: 6s, flow_detect: 5 frames per 1s, initial_retry: 1s, retry_max: 10s, hold_down: 30s,
        keepalive_time: 1s, keepalive_lifetime: 3s, give_up: 5s, holding: 20s }
switches: { edge1: {}, core: {}, edge2: {} }
links:
  - [core, edge1, { name: trunk1, rate: 25.6, delay: 100us }]
  - [core, edge2, { name: trunk2, rate: 25.6, delay: 100us }]
lane:
  on: core
  elans:
    a: { subnet: 10.1.0.0/24 }
    b: { subnet: 10.2.0.0/24 }
    mid: { subnet: 10.9.0.0/24 }
routers:
  r1: { on: edge1, elans: { a: 10.1.0.1, mid: 10.9.0.1 }, forwarding: 2Mbps }
  r2: { on: edge2, elans: { b: 10.2.0.1, mid: 10.9.0.2 }, forwarding: 2Mbps }
hosts:
  h1: { on: edge1, elan: a, ip: 10.1.0.10 }
  h2: { on: edge2, elan: b, ip: 10.2.0.10 }
  h3: { on: edge2, elan: a, ip: 10.1.0.11, mpoa: { tag: true } }
traffic:
  - { name: there, from: h1, to: h2, kind: udp, rate: 25pps, size: 200, start: 6s }
  - { name: back, from: h2, to: h1, kind: udp, rate: 25pps, size: 200, start: 6s }
  - { name: third, from: h2, to: h3, kind: udp, rate: 25pps, size: 900, start: 6s }
  - { name: near, from: h1, to: h3, kind: udp, rate: 25pps, size: 100, start: 6s }
  - { name: ping, from: h1, to: h2, kind: ping, rate: 5pps, size: 64, start: 6s }
";

/// Flows that cross routers.
pub(crate) fn far(bench: &Bench) -> Vec<usize> {
    ["there", "back", "third"]
        .map(|name| bench.flow(name))
        .into()
}

pub(crate) fn all(bench: &Bench) -> Vec<usize> {
    let mut flows = far(bench);
    flows.extend([bench.flow("near"), bench.flow("ping")]);
    flows
}

/// A network in which every flow has its shortcut.
pub(crate) fn settled(seed: u64) -> Bench {
    let mut bench = Bench::new(lab_of("small", SMALL, &[]), seed).watch_routers();
    shortcuts(&mut bench, "at first", 50.0);
    consistent(&mut bench);
    bench
}

#[track_caller]
pub(crate) fn shortcuts(bench: &mut Bench, what: &str, within: f64) -> Duration {
    let (far, all) = (far(bench), all(bench));
    bench.until(&format!("shortcuts {what}"), within, |bench| {
        bench.all_joined()?;
        bench.all_pass(&all)?;
        bench.all_by(&far, Path::Shortcut)
    })
}

#[track_caller]
pub(crate) fn passes(bench: &mut Bench, what: &str, within: f64) -> Duration {
    let all = all(bench);
    bench.until(&format!("traffic {what}"), within, |bench| {
        bench.all_pass(&all)
    })
}

/// Calls agree everywhere, and so do cells.
#[track_caller]
pub(crate) fn consistent(bench: &mut Bench) {
    bench.until("agreement of calls", 15.0, check::agreement);
    for checked in [check::order(bench), check::loops(bench)] {
        checked.unwrap_or_else(|why| bench.fail(&why));
    }
    check::no_cell_vanishes(bench, Duration::from_millis(500));
}

/// All services stop in order; then nothing may be left.
#[track_caller]
pub(crate) fn shut_down(bench: &mut Bench) {
    consistent(bench);
    bench.mpoa(false);
    let far = far(bench);
    bench.until("routed without MPOA", 20.0, |bench| {
        bench.all_by(&far, Path::Lane)
    });
    stop_lane(bench);
}

/// Programs and LANE stop in order, and nothing is left.
#[track_caller]
pub(crate) fn stop_lane(bench: &mut Bench) {
    bench.stop_programs();
    bench.run(Duration::from_secs(1));
    let stations: Vec<_> = bench.stations().map(|(id, _)| id).collect();
    for kind in [
        ServiceKind::Lec,
        ServiceKind::Les,
        ServiceKind::Bus,
        ServiceKind::Lecs,
    ] {
        for id in &stations {
            bench.crash(*id, kind);
        }
    }
    bench.until("silence after all services stopped", 10.0, check::silence);
}

/// All hosts lose power at once; then nothing may be left in the switches.
#[track_caller]
pub(crate) fn black_out(bench: &mut Bench) {
    let stations: Vec<_> = bench.stations().map(|(id, _)| id).collect();
    for id in stations {
        bench.power_off(id);
    }
    // A call waits for a dead link for T309, 10 s; only then its end is signalled on.
    bench.until("silence after all hosts are off", 25.0, check::silence);
    check::cells(bench).unwrap_or_else(|why| bench.fail(&why));
}

#[test]
fn shortcuts_come_and_everything_goes_in_good_order() {
    let mut bench = settled(1);
    bench.run(Duration::from_secs(60));
    shortcuts(&mut bench, "for a minute", 1.0);
    shut_down(&mut bench);
}

#[test]
fn a_black_out_leaves_nothing() {
    black_out(&mut settled(2));
}

#[test]
fn mpoa_off_and_on() {
    let mut bench = settled(3);
    for _ in 0..3 {
        bench.mpoa(false);
        let far = far(&bench);
        bench.until("routed without MPOA", 5.0, |bench| {
            bench.all_by(&far, Path::Lane)
        });
        bench.mpoa(true);
        shortcuts(&mut bench, "with MPOA again", 15.0);
    }
    shut_down(&mut bench);
}

#[test]
fn cell_loss() {
    for (seed, loss) in [(4, 1e-4), (5, 1e-3), (6, 1e-2)] {
        let mut bench = settled(seed);
        let links: Vec<_> = (0..bench.lab.links.len())
            .map(aerostat_sim::LinkId)
            .collect();
        for link in &links {
            bench.set_errors(*link, loss);
        }
        bench.run(Duration::from_secs(40));
        for link in links {
            bench.set_errors(link, 0.0);
        }
        shortcuts(&mut bench, &format!("after loss of {loss}"), 45.0);
        shut_down(&mut bench);
    }
}

#[test]
fn a_link_is_cut_and_mended() {
    for (seed, link) in [
        (7, "trunk1"),
        (8, "trunk2"),
        (9, "h1-edge1"),
        (10, "r2-edge2"),
    ] {
        for seconds in [0.2, 3.0, 20.0] {
            let mut bench = settled(seed);
            let id = bench.link(link);
            bench.cut(id, true);
            bench.run(Duration::from_secs_f64(seconds));
            bench.cut(id, false);
            let what = format!("after {link} was cut for {seconds} s");
            let pass = passes(&mut bench, &what, 30.0);
            let short = shortcuts(&mut bench, &what, 60.0);
            println!("{what}: traffic after {pass:?}, shortcuts {short:?} later");
            black_out(&mut bench);
        }
    }
}

#[test]
fn a_switch_restarts() {
    for (seed, name) in [(11, "edge1"), (12, "edge2"), (13, "core")] {
        for seconds in [0.0, 0.5, 12.0] {
            let mut bench = settled(seed);
            let id = bench.node(name);
            bench.power_off(id);
            bench.run(Duration::from_secs_f64(seconds));
            bench.power_on(id);
            let what = format!("after {name} was off for {seconds} s");
            let pass = passes(&mut bench, &what, 40.0);
            let short = shortcuts(&mut bench, &what, 60.0);
            println!("{what}: traffic after {pass:?}, shortcuts {short:?} later");
            consistent(&mut bench);
            black_out(&mut bench);
        }
    }
}

#[test]
fn a_service_crashes_and_returns() {
    use ServiceKind::{Bus, Lecs, Les, Mpc, Mps};
    let services = [
        ("h1", Mpc),
        ("h2", Mpc),
        ("r1", Mps),
        ("r2", Mps),
        ("lane", Les),
        ("lane", Bus),
        ("lane", Lecs),
    ];
    for (number, (name, kind)) in services.into_iter().enumerate() {
        for seconds in [0.0, 1.0, 15.0] {
            let mut bench = settled(20 + number as u64);
            let id = bench.node(name);
            bench.crash(id, kind);
            bench.run(Duration::from_secs_f64(seconds));
            let what = format!("after {name}/{kind} was away for {seconds} s");
            if kind == Mpc {
                // Only the daemon has crashed, so LANE continues at once.
                passes(&mut bench, &format!("while {name}/{kind} is away"), 6.0);
            }
            bench.restart(id, kind);
            let pass = passes(&mut bench, &what, 30.0);
            let short = shortcuts(&mut bench, &what, 60.0);
            println!("{what}: traffic after {pass:?}, shortcuts {short:?} later");
            shut_down(&mut bench);
        }
    }
}

#[test]
fn a_host_or_router_loses_power() {
    for (seed, name) in [(30, "r1"), (31, "r2"), (32, "h1"), (33, "h2"), (34, "lane")] {
        for seconds in [0.0, 2.0, 25.0] {
            let mut bench = settled(seed);
            let id = bench.node(name);
            bench.power_off(id);
            bench.run(Duration::from_secs_f64(seconds));
            bench.power_on(id);
            let what = format!("after {name} was off for {seconds} s");
            let pass = passes(&mut bench, &what, 40.0);
            let short = shortcuts(&mut bench, &what, 60.0);
            println!("{what}: traffic after {pass:?}, shortcuts {short:?} later");
            shut_down(&mut bench);
        }
    }
}

#[test]
fn everything_at_once() {
    let mut bench = settled(40);
    let core = bench.node("core");
    let (r1, h2, lane) = (bench.node("r1"), bench.node("h2"), bench.node("lane"));
    let trunk = bench.link("trunk2");
    bench.power_off(core);
    bench.power_off(r1);
    bench.crash(h2, ServiceKind::Mpc);
    bench.crash(lane, ServiceKind::Les);
    bench.cut(trunk, true);
    bench.run(Duration::from_secs(5));
    bench.power_on(r1);
    bench.power_on(core);
    bench.run(Duration::from_millis(100));
    bench.restart(h2, ServiceKind::Mpc);
    bench.run(Duration::from_secs(2));
    bench.restart(lane, ServiceKind::Les);
    bench.cut(trunk, false);
    shortcuts(&mut bench, "after everything", 90.0);
    shut_down(&mut bench);
}

/// Two routes to a network: a second router joins it to the backbone.
fn two_ways(seed: u64) -> Bench {
    let text = SMALL.replace(
        "hosts:",
        "  r3: { on: core, elans: { b: 10.2.0.3, mid: 10.9.0.3 }, forwarding: 2Mbps }\nhosts:",
    );
    let mut bench = Bench::new(lab_of("small", &text, &[]), seed).watch_routers();
    shortcuts(&mut bench, "at first", 50.0);
    bench
}

/// How often a node reported an event.
fn told(bench: &Bench, node: &str, name: &str) -> usize {
    let wanted = format!(" {node} {name}:");
    let story = bench.log.story.iter();
    story.filter(|line| line.contains(&wanted)).count()
}

/// Bindings imposed by the MPOA server of a router.
fn imposed(bench: &Bench, name: &str) -> usize {
    let station = bench.station(bench.node(name)).expect("a router");
    let tables = station
        .inspect(StateKind::Mps, bench.now())
        .into_iter()
        .flatten();
    let egress = tables.filter(|table| table.title.contains("egress"));
    egress.map(|table| table.rows.len()).sum()
}

/// A router gets another route to a network: the shortcut along the old route is purged and set up again along the new
/// one.
#[test]
fn a_route_changes_and_the_shortcut_follows() {
    let mut bench = two_ways(60);
    let there = [bench.flow("there")];
    let (new, before) = (
        Ipv4Addr::new(10, 9, 0, 3),
        told(&bench, "r3", "mps.imposition.accepted"),
    );
    let by_r3 = StaticRoute {
        destination: Ipv4Addr::new(10, 2, 0, 0),
        prefix: 24,
        next_hop: new,
    };
    let r1 = bench.node("r1");
    bench.command(r1, HostCommand::Routes(vec![by_r3]));
    let routed = |bench: &Bench| {
        let [lane, _] = bench.received(there[0], bench.back(500));
        (lane > 0).then_some(()).ok_or("all by shortcut".to_owned())
    };
    bench.until("the purge sends the flow over the routers", 3.0, routed);
    let again = |bench: &Bench| bench.all_by(&there, Path::Shortcut);
    bench.until("a shortcut along the new way", 60.0, again);
    assert!(told(&bench, "r3", "mps.imposition.accepted") > before);
    shut_down(&mut bench);
}

/// The LANE clients of a router are lost: the answers of its MPOA server about the networks behind them become invalid,
/// and are given again when they have joined again.
#[test]
fn the_lane_clients_of_a_router_are_lost() {
    let mut bench = settled(61);
    let r2 = bench.node("r2");
    assert!(imposed(&bench, "r2") > 0);
    bench.crash(r2, ServiceKind::Lec);
    let none = |bench: &Bench| match imposed(bench, "r2") {
        0 => Ok(()),
        left => Err(format!("{left} bindings are left")),
    };
    bench.until("its bindings are void", 6.0, none);
    bench.restart(r2, ServiceKind::Lec);
    shortcuts(&mut bench, "after its clients joined again", 90.0);
    shut_down(&mut bench);
}

/// A TCP connection survives all changes of its path, and gets the shortcut again.
#[test]
fn tcp_survives() {
    let text = SMALL
        .replace(
            "hosts:",
            "hosts:\n  h4: { on: edge1, elan: a, ip: 10.1.0.12, link: { rate: 2Mbps } }",
        )
        .replace(
            "traffic:",
            "traffic:\n  - { name: bulk, from: h4, to: h2, kind: tcp, start: 7s }",
        );
    let mut bench = Bench::new(lab_of("small", &text, &[]), 50).watch_routers();
    let bulk = [bench.flow("bulk")];
    let by_shortcut = |bench: &Bench| bench.all_by(&bulk, Path::Shortcut);
    bench.until("TCP by shortcut", 50.0, by_shortcut);
    let trunk = bench.link("trunk1");
    bench.cut(trunk, true);
    bench.run(Duration::from_secs(3));
    bench.cut(trunk, false);
    bench.until("TCP after a cut", 60.0, by_shortcut);
    for (name, kind) in [("h2", ServiceKind::Mpc), ("r2", ServiceKind::Mps)] {
        let node = bench.node(name);
        bench.crash(node, kind);
        bench.run(Duration::from_secs(5));
        bench.until("TCP over the routers", 30.0, |bench| bench.all_pass(&bulk));
        bench.restart(node, kind);
        let what = format!("TCP after {name}/{kind} returned");
        bench.until(&what, 60.0, by_shortcut);
    }
    shut_down(&mut bench);
}
