//! One lab under both clocks: the network of real time, driven without waiting, tells the story of virtual time.

use aerostat_lab::Lab;
use aerostat_lab::build::{Builder, Flavour};
use aerostat_lab::event::{self, Event};
use aerostat_lab::model::LinkId;
use aerostat_lab::plant::faults::Faults;
use aerostat_live::world::{Output, World};
use aerostat_proto::{Instant, Trace};
use aerostat_sim::run::Watcher;
use std::collections::BTreeMap;

/// Two ELANs behind a router, and every kind of fault. Faults are far enough from each other that the timers of one
/// have expired before the next.
const LAB: &str = "
mpoa: true
seed: 5
switches: { s1: {}, s2: {} }
links: [[s1, s2, { name: trunk, delay: 1ms }]]
lane:
  on: s1
  elans: { a: { subnet: 10.1.0.0/24 }, b: { subnet: 10.2.0.0/24 } }
routers: { r: { on: s1, elans: { a: 10.1.0.1, b: 10.2.0.1 } } }
hosts:
  anna: { on: s1, elan: a, ip: 10.1.0.10 }
  bert: { on: s2, elan: b, ip: 10.2.0.20 }
traffic:
  - { name: waits, from: anna, to: bert, kind: udp, rate: 100pps, size: 200, duration: 50s }
  - { name: early, from: bert, to: anna, kind: ping, rate: 2pps, start: 3s, duration: 60s }
faults:
  - { at: 10s, link_down: trunk }
  - { at: 12s, link_up: trunk }
  - { at: 30s, crash: anna/mpc }
  - { at: 32s, restart: anna/mpc }
  - { at: 40s, crash: bert }
  - { at: 42s, restart: bert }
  - { at: 60s, crash: s2 }
  - { at: 62s, restart: s2 }
until: 80s
";

/// Node and name of each main step, in the order of time.
type Story = Vec<(String, String)>;

#[derive(Default)]
struct Told(Story);

impl Watcher for Told {
    fn event(&mut self, event: &Event) {
        if event.milestone {
            self.0.push((event.node.clone(), event.event.clone()));
        }
    }
}

fn in_virtual_time(lab: &Lab) -> Story {
    let mut told = Told::default();
    aerostat_sim::run::run(lab, None, &mut told).expect("nothing is captured");
    told.0
}

fn in_real_time(lab: &Lab) -> Story {
    let builder = Builder::new(lab, lab.seed, Flavour::Embedded);
    let mut world = World::new(&builder, Instant::ZERO);
    world.start(&builder, Instant::ZERO);
    let mut faults = Faults::of(lab);
    let (mut now, mut told) = (Instant::ZERO, Told::default());
    let mut tell = |node, at, trace: &Trace| {
        told.event(&Event::new(at, &lab.node(node).name, trace));
    };
    let end = Instant::ZERO + lab.until.expect("the lab has an end");
    while now <= end {
        while !world.step(now, 64) {}
        while let Some(output) = world.poll_output() {
            if let Output::Trace(node, at, trace) = output {
                tell(node, at, &trace);
            }
        }
        while let Some(what) = faults.pop_due(now) {
            let (node, trace) = event::of_fault(lab, what);
            tell(node, now, &trace);
            world.fault(&builder, what, now);
        }
        let next = [world.poll_timeout(), faults.next_at()];
        now = next.into_iter().flatten().min().unwrap_or(end).max(now);
    }
    told.0
}

/// The steps of each node.
fn by_node(story: &Story) -> BTreeMap<&str, Vec<&str>> {
    let mut nodes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (node, name) in story {
        nodes.entry(node).or_default().push(name);
    }
    nodes
}

#[test]
fn a_lab_with_faults_tells_the_same_steps_in_the_same_order_under_both_clocks() {
    let lab = match aerostat_lab::parse("clocks.atm.yml", LAB, &[]) {
        Ok(checked) => checked.lab,
        Err(wrong) => panic!("{wrong}"),
    };
    let (sim, live) = (in_virtual_time(&lab), in_real_time(&lab));
    for what in ["lane.joined", "mpc.shortcut", "traffic.started"] {
        assert!(sim.iter().any(|(_, name)| name.starts_with(what)), "{what}");
    }
    let faults = sim.iter().filter(|(_, name)| name.starts_with("fault."));
    assert_eq!(faults.count(), lab.faults.len());
    for (node, steps) in by_node(&sim) {
        assert_eq!(by_node(&live).get(node), Some(&steps), "{node}");
    }
    // Nodes that join at the same moment race with each other, and messages take a little longer in virtual time, where
    // the last cell must arrive. Later steps follow from each other.
    let traffic = |story: &Story| {
        let step = story.iter().position(|(_, name)| name == "traffic.started");
        step.expect("the flow starts")
    };
    assert_eq!(sim[traffic(&sim)..], live[traffic(&live)..]);
}

/// A station offers a tenth more than its Ethernet carries, for two seconds.
const FRAMES: &str = "
switches: { gateway: {} }
clip: { net: { subnet: 10.1.0.0/24 } }
pvcs: [{ from: station, vc: 0.100, to: server, mux: true }]
hosts:
  station: { on: gateway, elan: net, ip: 10.1.0.1, link: { ethernet: { rate: 10Mbps, cells: 28 } } }
  server: { on: gateway, elan: net, ip: 10.1.0.2, link: { rate: taxi } }
traffic:
  - { from: station, to: server, kind: udp, size: 8000, rate: 153pps, start: 100ms, duration: 2s }
until: 3s
";

#[test]
fn an_ethernet_full_of_cells_carries_full_frames_under_both_clocks() {
    let checked = aerostat_lab::parse("frames.atm.yml", FRAMES, &[]).expect("a lab");
    let lab = &checked.lab;
    let link = lab
        .links
        .iter()
        .position(|link| link.name == "station-gateway");
    let link = LinkId(link.expect("the link of the station"));
    let sim = aerostat_sim::run::run(lab, None, &mut Told::default()).expect("nothing is captured");
    let way = sim.circuits.links.iter().find(|way| way.link == link);
    let sim = way.expect("from the station").counters;
    let builder = Builder::new(lab, lab.seed, Flavour::Embedded);
    let mut world = World::new(&builder, Instant::ZERO);
    world.start(&builder, Instant::ZERO);
    let mut now = Instant::ZERO;
    let mut until = |world: &mut World, millis: u64| {
        let end = Instant::from_nanos(millis * 1_000_000);
        while now <= end {
            while !world.step(now, 64) {}
            while world.poll_output().is_some() {}
            now = world.poll_timeout().unwrap_or(end).max(now);
        }
        world.counters_of(link)[0]
    };
    let [first, second, last] = [500, 1500, 3000].map(|millis| until(&mut world, millis));
    // 28 cells of 52 octets, and 38 around them.
    let exact = 28.0 * 10e6 / ((38.0 + 28.0 * 52.0) * 8.0);
    let cells = (second.sent - first.sent) as f64;
    assert!(
        (cells / exact - 1.0).abs() < 0.01,
        "{cells} cells/s, not {exact}"
    );
    let full = cells / (second.frames - first.frames) as f64;
    assert!(full > 27.9, "{full} cells in a frame");
    // All that was offered has left in the end.
    assert_eq!((last.sent, last.delivered), (sim.sent, sim.delivered));
    assert!(
        last.frames.abs_diff(sim.frames) * 50 < sim.frames,
        "{last:?}, {sim:?}"
    );
}
