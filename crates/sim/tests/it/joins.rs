//! Time to join with long trunks: as many round trips as the messages need, without waiting for timers.

use aerostat_lab::build::{Builder, Flavour};
use aerostat_lab::event::Event;
use aerostat_lab::model::{Lab, NodeId, NodeKind};
use aerostat_node::random::derived_seed;
use aerostat_proto::{Duration, Instant, Trace};
use aerostat_sim::run::{LabRun, Watcher};
use aerostat_sim::{LabEvent, Observer, lab_world};
use std::collections::BTreeMap;

const DELAYS: [Duration; 4] = [
    Duration::from_micros(5),
    Duration::from_millis(1),
    Duration::from_millis(20),
    Duration::from_millis(250),
];

/// All labs of the repository that can run in virtual time, but the one whose signalling takes time by itself: `bounds`
/// knows the delays of links only, and the `managers` test its times.
fn labs() -> Vec<(String, Lab)> {
    let directory = format!("{}/../../labs", env!("CARGO_MANIFEST_DIR"));
    let mut names: Vec<_> = std::fs::read_dir(directory)
        .expect("the labs of the repository")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".atm.yml").map(str::to_owned))
        .filter(|name| name != "managers")
        .collect();
    names.sort();
    names
        .into_iter()
        .map(|name| {
            let lab = crate::bench::repository_lab(&name, &[]);
            (name, lab)
        })
        .filter(|(_, lab)| lab.outside().next().is_none())
        .collect()
}

/// The lab with trunks of this delay, and without traffic.
fn with_trunks(mut lab: Lab, delay: Duration) -> Lab {
    let switch = |lab: &Lab, node: NodeId| matches!(lab.node(node).kind, NodeKind::Switch(_));
    for link in 0..lab.links.len() {
        if lab.links[link]
            .ends
            .iter()
            .all(|end| switch(&lab, end.node))
        {
            lab.links[link]
                .lines
                .iter_mut()
                .for_each(|line| line.delay = delay);
        }
    }
    lab.traffic.clear();
    lab.faults.clear();
    lab
}

/// Delay from `from` to `to` on the way with the smallest delay.
fn delay(lab: &Lab, from: NodeId, to: NodeId) -> Duration {
    let mut times = BTreeMap::from([(from, Duration::ZERO)]);
    for _ in 0..lab.nodes.len() {
        for link in &lab.links {
            let [a, b] = link.ends.map(|end| end.node);
            for (a, b) in [(a, b), (b, a)] {
                let Some(time) = times.get(&a).map(|time| *time + link.lines[0].delay) else {
                    continue;
                };
                let known = times.entry(b).or_insert(time);
                *known = time.min(*known);
            }
        }
    }
    times[&to]
}

/// The longest round trip between a member and its server: on ELANs, and on Classical IP subnets.
fn round_trips(lab: &Lab) -> (Duration, Duration) {
    let mut longest = (Duration::ZERO, Duration::ZERO);
    for (id, node) in lab.nodes() {
        for lec in node.lecs() {
            let elan = lab.elan(lec.elan);
            let clip = elan.clip.as_ref();
            let servers: Vec<NodeId> = match clip {
                // A line has no server.
                None if !elan.is_lane() => Vec::new(),
                None => {
                    let servers = lab.nodes();
                    let servers =
                        servers.filter(|(_, node)| matches!(node.kind, NodeKind::LaneServer(_)));
                    servers.map(|(id, _)| id).collect()
                }
                Some(lis) => lis.server.into_iter().collect(),
            };
            for server in servers {
                let trip = delay(lab, id, server) * 2;
                let longest = if clip.is_some() {
                    &mut longest.1
                } else {
                    &mut longest.0
                };
                *longest = trip.max(*longest);
            }
        }
    }
    longest
}

/// The times of all events that a lab waits for.
#[derive(Default)]
struct Joined(BTreeMap<String, Vec<(f64, String)>>);

impl Watcher for Joined {
    fn event(&mut self, event: &Event) {
        if ["lane.joined", "clip.registered", "nhc.registered"].contains(&event.event.as_str()) {
            let list = self.0.entry(event.event.clone()).or_default();
            list.push((event.time, event.node.clone()));
        }
    }
}

/// The bound for each kind of membership: round trips between member and server, and a time that does not depend on
/// trunks.
///
/// LANE: the bound of the standard's many steps (LECS, LES, BUS, each with a call and a request). Classical IP and
/// NHRP: BGN and BGAK, RESTART and its answer on the trunk; SETUP and CONNECT; the registration and its answer.
///
/// A member whose call failed waits again about as long as it has waited until then. Where nodes are switched on within
/// `spread`, that time is added.
fn bounds(
    (lane, clip): (Duration, Duration),
    spread: Duration,
) -> [(&'static str, Duration, Duration); 3] {
    let spare = Duration::from_millis(10) + spread * 2;
    [
        ("lane.joined", lane, lane * 10 + Duration::from_millis(100)),
        ("clip.registered", clip, clip * 4 + spare),
        ("nhc.registered", clip, clip * 4 + spare),
    ]
}

/// How many members of each kind a lab has.
fn members(lab: &Lab) -> [usize; 3] {
    let lecs = || lab.nodes().flat_map(|(_, node)| node.lecs());
    let lane = lecs().filter(|lec| lab.elan(lec.elan).is_lane());
    let client = |(id, node): (NodeId, &aerostat_lab::model::Node)| {
        let lecs = node.lecs().iter();
        let lis = lecs.filter_map(|lec| lab.elan(lec.elan).clip.as_ref());
        lis.filter(|lis| lis.server != Some(id) && !lis.servers.is_empty())
            .count()
    };
    let nhcs = lab.nodes().filter(|(_, node)| match &node.kind {
        NodeKind::Host(host) => host.nhrp.is_some(),
        _ => false,
    });
    [lane.count(), lab.nodes().map(client).sum(), nhcs.count()]
}

/// Number of seeds: two, or `AEROSTAT_SEEDS` (a nightly run uses 20).
fn seeds() -> u64 {
    let given = std::env::var("AEROSTAT_SEEDS").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(2)
}

/// Compares the events since `since` with the bounds; prints a row for each kind of membership.
fn check(name: &str, lab: &Lab, trunk: Duration, since: Duration, joined: &Joined) {
    for ((what, trip, bound), count) in bounds(round_trips(lab), since)
        .into_iter()
        .zip(members(lab))
    {
        let empty = Vec::new();
        let list = joined.0.get(what).unwrap_or(&empty);
        let last = list.iter().fold(0.0, |last: f64, (at, _)| last.max(*at));
        let last = (last - since.as_secs_f64()).max(0.0);
        let trips = last / trip.as_secs_f64().max(1e-9);
        if count > 0 {
            println!(
                "{name:<15} {:>10.3} {what:<16} {count:>3} {:>12.3} {:>12.3} {:>12.3} {trips:>8.2}",
                trunk.as_secs_f64() * 1e3,
                trip.as_secs_f64() * 1e3,
                last * 1e3,
                bound.as_secs_f64() * 1e3,
            );
        }
        assert_eq!(
            list.len(),
            count,
            "{name}, trunks of {trunk:?}: {what} {list:?}"
        );
        assert!(
            last <= bound.as_secs_f64(),
            "{name}, trunks of {trunk:?}: {what} after {last} s, bound {bound:?}: {list:?}"
        );
    }
}

fn heading() {
    println!(
        "{:<15} {:>10} {:<16} {:>3} {:>12} {:>12} {:>12} {:>8}",
        "LAB", "TRUNK ms", "WHAT", "N", "ROUND TRIP", "LAST ms", "BOUND ms", "TRIPS"
    );
}

fn end(lab: &Lab) -> Duration {
    let bounds = bounds(round_trips(lab), Duration::from_millis(50)).map(|(.., bound)| bound);
    bounds.into_iter().max().unwrap_or_default() + Duration::from_millis(100)
}

#[test]
fn everybody_joins_within_the_round_trips_of_the_messages_whatever_the_delay_of_trunks() {
    heading();
    for (name, lab) in labs() {
        for trunk in DELAYS {
            for seed in 1..=seeds() {
                let mut lab = with_trunks(lab.clone(), trunk);
                lab.seed = seed;
                let mut joined = Joined::default();
                let mut run = LabRun::new(&lab, &mut joined);
                run.start();
                run.run_until(Instant::ZERO + end(&lab));
                drop(run);
                check(&name, &lab, trunk, Duration::ZERO, &joined);
            }
        }
    }
}

#[test]
fn nodes_that_are_switched_on_one_after_another_join_as_fast_once_all_are_on() {
    const SPREAD: Duration = Duration::from_millis(50);
    heading();
    for (name, lab) in labs() {
        for trunk in DELAYS {
            for seed in 1..=seeds() {
                let lab = with_trunks(lab.clone(), trunk);
                let mut joined = Joined::default();
                staggered(&lab, seed, SPREAD, &mut joined);
                check(&name, &lab, trunk, SPREAD, &joined);
            }
        }
    }
}

/// Runs a lab whose nodes are switched on at random times within `spread`.
fn staggered(lab: &Lab, seed: u64, spread: Duration, joined: &mut Joined) {
    let mut world = lab_world::build(lab, seed);
    let builder = Builder::new(lab, seed, Flavour::Embedded);
    let mut order: Vec<(u64, NodeId)> = lab
        .nodes()
        .map(|(id, node)| {
            (
                derived_seed(seed, &node.name, "on") % spread.as_nanos() as u64,
                id,
            )
        })
        .collect();
    order.sort();
    let mut heard = Heard { lab, joined };
    for (at, id) in order {
        world.run_until(Instant::from_nanos(at), &mut heard);
        let machine = lab_world::machine(&builder, id, 0, world.now());
        world.power_on(id, machine.expect("no node is outside"), &mut heard);
    }
    world.run_until(Instant::ZERO + spread + end(lab), &mut heard);
}

/// Collects the events; also for a world without a run.
struct Heard<'a> {
    lab: &'a Lab,
    joined: &'a mut Joined,
}

impl Observer<LabEvent> for Heard<'_> {
    fn trace(&mut self, node: NodeId, trace: Trace, now: Instant) {
        let name = &self.lab.nodes[node.0].name;
        self.joined.event(&Event::new(now, name, &trace));
    }
    fn event(&mut self, _: NodeId, _: LabEvent, _: Instant) {}
}
