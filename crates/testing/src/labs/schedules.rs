//! Many small random schedules of faults, fast enough for ten thousand runs.
//!
//! The schedule of a seed is known before it runs: a network of one or two switches, up to five faults with start and
//! end, and the way in which everything stops. So a schedule that fails can be repeated without some of its faults,
//! until only the relevant ones are left. The example `schedules` of `aerostat-sim` runs ranges of seeds.

use super::bench::{Bench, lab_of};
use super::check;
use aerostat_lab::model::{Lab, NodeKind};
use aerostat_node::host::{HostCommand, ServiceKind};
use aerostat_node::inspect::{StateKind, Table};
use aerostat_node::ip::meter::Path;
use aerostat_node::ip::router::StaticRoute;
use aerostat_node::random;
use aerostat_proto::{Duration, Instant};
use aerostat_sim::{LinkId, NodeId};
use std::collections::BTreeSet;
use std::fmt;

/// Common settings of all networks: short times, so that little virtual time passes.
const TIMES: &str = "
mpoa: { flow_detect: 3 frames per 1s, initial_retry: 1s, retry_max: 10s, hold_down: 30s,
        keepalive_time: 1s, keepalive_lifetime: 3s, give_up: 5s, holding: 20s }
traffic:
  - { name: there, from: h1, to: h2, kind: udp, rate: 5pps, size: 200, start: 1s }
  - { name: back, from: h2, to: h1, kind: udp, rate: 5pps, size: 60, start: 1s }
";

/// One switch, one router; one switch, two routers with NHRP between them; two switches, two routers, tags.
pub const NETWORKS: [&str; 3] = [
    "
switches: { s1: {} }
lane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 }, b: { subnet: 10.2.0.0/24 } } }
routers: { r1: { on: s1, elans: { a: 10.1.0.1, b: 10.2.0.1 } } }
hosts:
  h1: { on: s1, elan: a, ip: 10.1.0.10 }
  h2: { on: s1, elan: b, ip: 10.2.0.10, mpoa: { tag: true } }
",
    "
switches: { s1: {} }
lane:
  on: s1
  elans: { a: { subnet: 10.1.0.0/24 }, b: { subnet: 10.2.0.0/24 }, mid: { subnet: 10.9.0.0/24 } }
routers:
  r1: { on: s1, elans: { a: 10.1.0.1, mid: 10.9.0.1 } }
  r2: { on: s1, elans: { b: 10.2.0.1, mid: 10.9.0.2 } }
hosts:
  h1: { on: s1, elan: a, ip: 10.1.0.10 }
  h2: { on: s1, elan: b, ip: 10.2.0.10 }
",
    "
switches: { s1: {}, s2: {} }
links: [[s1, s2]]
lane:
  on: s1
  elans: { a: { subnet: 10.1.0.0/24 }, b: { subnet: 10.2.0.0/24 }, mid: { subnet: 10.9.0.0/24 } }
routers:
  r1: { on: s1, elans: { a: 10.1.0.1, mid: 10.9.0.1 } }
  r2: { on: s2, elans: { b: 10.2.0.1, mid: 10.9.0.2 } }
hosts:
  h1: { on: s1, elan: a, ip: 10.1.0.10, mpoa: { tag: true } }
  h2: { on: s2, elan: b, ip: 10.2.0.10, mpoa: { tag: true } }
",
];

/// Stations of Classical IP with NHRP clients, two routers: only from [`WIDE`] on.
const STATIONS: &str = "
nhrp: { holding: 20s }
switches: { s1: {}, s2: {} }
links: [[s1, s2]]
clip:
  a:   { subnet: 10.1.0.0/24, server: r1, nhrp: true }
  mid: { subnet: 10.9.0.0/24, server: r1, nhrp: true }
  b:   { subnet: 10.2.0.0/24, server: r2, nhrp: true }
routers:
  r1: { on: s1, elans: { a: 10.1.0.1, mid: 10.9.0.1 } }
  r2: { on: s2, elans: { mid: 10.9.0.2, b: 10.2.0.1 } }
hosts:
  h1: { on: s1, elan: a, ip: 10.1.0.10 }
  h2: { on: s2, elan: b, ip: 10.2.0.10 }
traffic:
  - { name: there, from: h1, to: h2, kind: udp, rate: 5pps, size: 200, start: 1s }
  - { name: back, from: h2, to: h1, kind: udp, rate: 5pps, size: 60, start: 1s }
";

/// From this seed on schedules also have bursts of lost cells, routers that lose their routes, and stations of
/// Classical IP. Those of smaller seeds stay unchanged.
pub const WIDE: u64 = 1_000_000;

/// A small generator of its own, because the schedule of a seed must not depend on the network's generator.
struct Dice(u64);

impl Dice {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = random::derived_seed(self.0, "dice", "roll");
        (self.0 >> 33) % below
    }
    fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.next(values.len() as u64) as usize]
    }
}

/// Kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    /// A link carries nothing.
    Cut(LinkId),
    /// A link loses cells, and inverts bits.
    Loss(LinkId, f64),
    /// A node loses power, and restarts.
    Power(NodeId),
    /// A service crashes, and restarts.
    Service(NodeId, ServiceKind),
    /// MPOA is off everywhere.
    Mpoa,
    /// A link loses every cell without being reported as down.
    Burst(LinkId),
    /// A router has no routes beyond its own networks.
    Routes(NodeId),
}

impl What {
    fn roll(dice: &mut Dice, lab: &Lab, wide: bool) -> Self {
        use ServiceKind::{Bus, Clip, Lec, Lecs, Les, Mpc, Mps, Nhc};
        let node = NodeId(dice.next(lab.nodes.len() as u64) as usize);
        let link = LinkId(dice.next(lab.links.len() as u64) as usize);
        let router = matches!(lab.nodes[node.0].kind, NodeKind::Router(_));
        let server =
            |node: &aerostat_lab::model::Node| matches!(node.kind, NodeKind::LaneServer(_));
        let plain = !lab.nodes.iter().any(server);
        match dice.next(if wide { 18 } else { 12 }) {
            12..=15 => Self::Burst(link),
            16 | 17 if router => Self::Routes(node),
            0..=2 => Self::Cut(link),
            3 => Self::Loss(link, dice.of(&[1e-3, 1e-2, 1e-1])),
            4 | 5 => Self::Power(node),
            6 => Self::Mpoa,
            _ => {
                let kinds: &[ServiceKind] = match lab.nodes[node.0].kind {
                    NodeKind::Router(_) if plain => &[Mps, Clip],
                    NodeKind::Host(_) if plain => &[Nhc, Nhc, Clip],
                    NodeKind::LaneServer(_) => &[Les, Bus, Lecs],
                    NodeKind::Router(_) => &[Mps, Mps, Lec],
                    NodeKind::Host(_) => &[Mpc, Mpc, Lec],
                    NodeKind::Switch(_) | NodeKind::Outside(_) => return Self::Power(node),
                };
                Self::Service(node, dice.of(kinds))
            }
        }
    }
    /// True if two faults concern the same object, because the first end of them would end both.
    fn same_thing(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Loss(a, _) | Self::Burst(a), Self::Loss(b, _) | Self::Burst(b)) => a == b,
            _ => self == other,
        }
    }
    fn strike(self, bench: &mut Bench) {
        match self {
            Self::Cut(link) => bench.cut(link, true),
            Self::Loss(link, loss) => bench.set_errors(link, loss),
            Self::Power(node) => bench.power_off(node),
            Self::Service(node, kind) => bench.crash(node, kind),
            Self::Mpoa => bench.mpoa(false),
            Self::Burst(link) => bench.set_errors(link, 1.0),
            Self::Routes(node) => bench.command(node, HostCommand::Routes(Vec::new())),
        }
    }
    fn mend(self, bench: &mut Bench) {
        match self {
            Self::Cut(link) => bench.cut(link, false),
            Self::Loss(link, _) => bench.set_errors(link, 0.0),
            Self::Power(node) => bench.power_on(node),
            Self::Service(node, kind) => bench.restart(node, kind),
            Self::Mpoa => bench.mpoa(true),
            Self::Burst(link) => bench.set_errors(link, 0.0),
            Self::Routes(node) => {
                let routes = routes(&bench.lab, node);
                bench.command(node, HostCommand::Routes(routes));
            }
        }
    }
}

/// The routes that the lab file gives a router.
fn routes(lab: &Lab, node: NodeId) -> Vec<StaticRoute> {
    let NodeKind::Router(router) = &lab.nodes[node.0].kind else {
        return Vec::new();
    };
    let routes = router.routes.iter();
    routes
        .map(|route| StaticRoute {
            destination: route.to.network,
            prefix: route.to.length,
            next_hop: route.via,
        })
        .collect()
}

/// A fault with its end.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// Milliseconds after the start.
    at: u64,
    lasts: u64,
    /// Fault or change.
    pub what: What,
}

/// Everything that happens to one network.
pub struct Schedule {
    seed: u64,
    /// Index in [`NETWORKS`]; beyond its end: stations of Classical IP.
    pub network: usize,
    lab: Lab,
    /// True if the network has its shortcuts before the first fault.
    pub settled: bool,
    /// The faults, in the order of the draw.
    pub faults: Vec<Fault>,
    /// True if all services stop in order in the end; otherwise all hosts lose power.
    pub in_good_order: bool,
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settled = if self.settled { ", settled" } else { "" };
        write!(f, "seed {}, network {}{settled}", self.seed, self.network)?;
        for Fault { at, lasts, what } in &self.faults {
            write!(f, "\n  {at} ms, for {lasts} ms: ")?;
            let node = |id: &NodeId| self.lab.nodes[id.0].name.as_str();
            let link = |id: &LinkId| self.lab.links[id.0].name.as_str();
            match what {
                What::Cut(id) => write!(f, "cut {}", link(id)),
                What::Loss(id, rate) => write!(f, "{} loses {rate} of the cells", link(id)),
                What::Power(id) => write!(f, "{} without power", node(id)),
                What::Service(id, kind) => write!(f, "{kind} of {} crashed", node(id)),
                What::Mpoa => write!(f, "MPOA off"),
                What::Burst(id) => write!(f, "{} loses all cells", link(id)),
                What::Routes(id) => write!(f, "{} without routes", node(id)),
            }?;
        }
        let end = if self.in_good_order {
            "services stop"
        } else {
            "power off"
        };
        write!(f, "\n  in the end: {end}")
    }
}

impl Schedule {
    /// The schedule of a seed.
    pub fn of(seed: u64) -> Self {
        let mut dice = Dice(random::derived_seed(seed, "schedule", "start"));
        let wide = seed >= WIDE;
        let known = NETWORKS.len() + usize::from(wide);
        let network = dice.next(known as u64) as usize;
        let text = match NETWORKS.get(network) {
            Some(network) => [TIMES, network].concat(),
            None => STATIONS.to_owned(),
        };
        let lab = lab_of("schedule", &text, &[]);
        let mut faults: Vec<Fault> = Vec::new();
        for _ in 0..=dice.next(5) {
            let what = What::roll(&mut dice, &lab, wide);
            let at = dice.of(&[0, 5, 100, 1000, 3000, 6000, 9000]) + dice.next(1000);
            let lasts = dice.of(&[1, 20, 300, 1500, 4000, 8000, 13_000]) + dice.next(500);
            if !faults.iter().any(|fault| fault.what.same_thing(&what)) {
                faults.push(Fault { at, lasts, what });
            }
        }
        Self {
            seed,
            network,
            lab,
            settled: dice.next(4) > 0,
            faults,
            in_good_order: dice.next(2) == 0,
        }
    }
    /// Number of faults.
    pub const fn count(&self) -> usize {
        self.faults.len()
    }
    /// The same schedule with only these faults.
    pub fn only(mut self, kept: &BTreeSet<usize>) -> Self {
        let mut n = 0;
        self.faults.retain(|_| {
            n += 1;
            kept.contains(&(n - 1))
        });
        self
    }

    /// Runs the schedule; returns the time that passed in the network.
    ///
    /// # Panics
    /// If the network does not recover, or something is left in the end.
    pub fn run(&self) -> Instant {
        let mut bench = Bench::new(self.lab.clone(), self.seed).watch_routers();
        if self.settled {
            shortcuts(&mut bench, "at first", 50.0);
        }
        self.strike(&mut bench);
        shortcuts(&mut bench, "after all faults", 120.0);
        consistent(&mut bench);
        bench.until("coherent caches", 25.0, coherent);
        if self.in_good_order {
            shut_down(&mut bench);
        } else {
            black_out(&mut bench);
        }
        for checked in [check::order(&bench), check::loops(&bench)] {
            checked.unwrap_or_else(|why| bench.fail(&why));
        }
        bench.now()
    }

    fn strike(&self, bench: &mut Bench) {
        let begin = bench.now();
        let mut moments: Vec<(u64, bool, What)> = Vec::new();
        for Fault { at, lasts, what } in &self.faults {
            moments.push((*at, false, *what));
            moments.push((at + lasts, true, *what));
        }
        // Faults that end at the same time do so in their order.
        moments.sort_by_key(|(at, ..)| *at);
        for (at, mended, what) in moments {
            let at = begin + Duration::from_millis(at);
            bench.run(at.since(bench.now()));
            let verb = if mended { "mended: " } else { "" };
            bench
                .log
                .story
                .push(format!("{} *** {verb}{what:?}", bench.now()));
            if mended {
                what.mend(bench);
            } else {
                what.strike(bench);
            }
        }
        // A service of a node that was powered on in the meantime runs; so does a service that was to return while its
        // node was without power.
        let services = self.faults.iter().filter_map(|fault| match fault.what {
            What::Service(node, kind) => Some((node, kind)),
            _ => None,
        });
        for (node, kind) in services {
            bench.restart(node, kind);
        }
        if self.faults.iter().any(|fault| fault.what == What::Mpoa) {
            bench.mpoa(true);
        }
    }
}

fn flows(bench: &Bench) -> Vec<usize> {
    (0..bench.lab.traffic.len()).collect()
}

fn shortcuts(bench: &mut Bench, what: &str, within: f64) {
    let flows = flows(bench);
    bench.until(&format!("shortcuts {what}"), within, |bench| {
        bench.all_joined()?;
        bench.all_by(&flows, Path::Shortcut)
    });
}

/// Calls agree everywhere, and so do cells.
fn consistent(bench: &mut Bench) {
    bench.until("agreement of calls", 15.0, check::agreement);
    check::no_cell_vanishes(bench, Duration::from_millis(400));
}

/// Cells of a table by name.
fn cell(table: &Table, row: usize, column: &str) -> String {
    let at = table.columns.iter().position(|name| *name == column);
    table.rows[row][at.expect("a column of the table")].to_string()
}

/// Every entry of an ingress cache with a shortcut matches an egress cache entry at its end, and the entry of the
/// server that imposed it: the same destination, tag and number.
fn coherent(bench: &Bench) -> Result<(), String> {
    let tables = |what| {
        let stations = bench.stations();
        let found = stations.filter_map(move |(id, station)| {
            let tables = station.inspect(what, bench.now())?;
            Some((bench.lab.nodes[id.0].name.clone(), tables))
        });
        found.filter(|(_, tables)| tables.len() > 1)
    };
    let clients: Vec<_> = tables(StateKind::Mpc).collect();
    let servers: Vec<_> = tables(StateKind::Mps).collect();
    let data = |name: &str| {
        let id = bench.lab.find(name)?;
        match &bench.lab.node(id).kind {
            NodeKind::Host(host) => Some(host.mpoa.as_ref()?.data.to_string()),
            _ => None,
        }
    };
    for (name, client) in &clients {
        let (ingress, own) = (&client[0], data(name).expect("a host with a client"));
        for row in (0..ingress.rows.len()).filter(|row| cell(ingress, *row, "state") == "resolved")
        {
            let (to, tag) = (cell(ingress, row, "destination"), cell(ingress, row, "tag"));
            let egress = cell(ingress, row, "egress");
            let end = clients
                .iter()
                .find(|(name, _)| data(name) == Some(egress.clone()));
            let Some((there, end)) = end else {
                return Err(format!(
                    "{name}: {to} is resolved to {egress}, which nobody has"
                ));
            };
            let known = (0..end[1].rows.len()).any(|row| {
                let of = |column| cell(&end[1], row, column);
                let host = of("destination").starts_with(&format!("{to}/"));
                host && of("ingress_mpc") == own && of("tag") == tag && of("state") == "resolved"
            });
            if !known {
                return Err(format!(
                    "{name}: {to} is resolved to {there} with tag {tag}, which does not know it"
                ));
            }
        }
        let egress = &client[1];
        for row in 0..egress.rows.len() {
            let (number, from) = (
                cell(egress, row, "cache_id"),
                cell(egress, row, "ingress_mpc"),
            );
            let imposed = servers.iter().any(|(_, server)| {
                let mps = &server[1];
                (0..mps.rows.len()).any(|row| {
                    cell(mps, row, "cache_id") == number && cell(mps, row, "ingress_mpc") == from
                })
            });
            if !imposed {
                return Err(format!(
                    "{name}: no server knows of egress entry {number} of {from}"
                ));
            }
        }
    }
    Ok(())
}

/// All services stop in order; then nothing may be left.
fn shut_down(bench: &mut Bench) {
    use ServiceKind::{Bus, Clip, Lec, Lecs, Les, Nhc};
    bench.mpoa(false);
    let flows = flows(bench);
    // Stations keep using the answers of their servers until the holding time is over.
    bench.until("routed without MPOA", 40.0, |bench| {
        bench.all_by(&flows, Path::Lane)
    });
    bench.stop_programs();
    bench.run(Duration::from_secs(1));
    let stations: Vec<_> = bench.stations().map(|(id, _)| id).collect();
    for kind in [Nhc, Clip, Lec, Les, Bus, Lecs] {
        for id in &stations {
            bench.crash(*id, kind);
        }
    }
    bench.until("silence after all services stopped", 10.0, check::silence);
}

/// All hosts lose power at once; then nothing may be left in the switches.
fn black_out(bench: &mut Bench) {
    let stations: Vec<_> = bench.stations().map(|(id, _)| id).collect();
    for id in stations {
        bench.power_off(id);
    }
    // A call waits for a dead link for T309, 10 s; only then its end is signalled on.
    bench.until("silence after all hosts are off", 25.0, check::silence);
    check::cells(bench).unwrap_or_else(|why| bench.fail(&why));
    check::seats(bench).unwrap_or_else(|why| bench.fail(&why));
}
