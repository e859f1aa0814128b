//! A running network becomes that of another file: its state is that of a network that began with this file, and
//! traffic that a change does not concern loses nothing.

use aerostat_lab::Lab;
use aerostat_lab::build::{Builder, Flavour};
use aerostat_lab::converge::{Kind, Means, Plan, beside, plan};
use aerostat_lab::model::NodeId;
use aerostat_live::world::World;
use aerostat_node::inspect::{StateKind, Value};
use aerostat_proto::{Duration, Instant};
use aerostat_wire::AtmAddress;
use std::collections::BTreeMap;
use std::collections::BTreeSet;

const MEANS: Means = Means {
    flavour: Flavour::Embedded,
    split: false,
    makes: false,
};

fn parse(text: &str, of: Option<&Lab>) -> Lab {
    let known = of.map(|lab| lab.numbers.clone()).unwrap_or_default();
    match aerostat_lab::parse_for("campus.atm.yml", text, &[], &known) {
        Ok(checked) => checked.lab,
        Err(wrong) => panic!("{wrong}\n{text}"),
    }
}

/// A network under a punctual driver.
struct Net {
    lab: Lab,
    world: World,
    now: Instant,
}

impl Net {
    fn new(text: &str) -> Self {
        let lab = parse(text, None);
        let builder = Builder::new(&lab, lab.seed, Flavour::Embedded);
        let mut world = World::new(&builder, Instant::ZERO);
        world.start(&builder, Instant::ZERO);
        Self {
            lab,
            world,
            now: Instant::ZERO,
        }
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            while self.world.poll_output().is_some() {}
            let next = self.world.poll_timeout().unwrap_or(end).max(self.now);
            if next > end {
                self.now = end;
                return;
            }
            self.now = next;
            while !self.world.step(self.now, 64) {}
        }
    }

    /// Carries out the plan for this file, with all restarts that it needs.
    fn change(&mut self, text: &str) -> Plan {
        let next = parse(text, Some(&self.lab));
        let next = beside(&self.lab, &next).expect("few parts");
        let plan = plan(&self.lab, &next, MEANS);
        let reasons: Vec<_> = plan
            .new_starts()
            .map(|(what, why)| format!("{what}: {why}"))
            .collect();
        assert!(reasons.is_empty(), "{reasons:?}");
        let again = plan.restarts();
        let again: BTreeSet<NodeId> = again.iter().filter_map(|name| next.find(name)).collect();
        let builder = Builder::new(&next, next.seed, Flavour::Embedded);
        let refused = self.world.converge(&builder, &again, self.now);
        assert!(refused.is_empty(), "{refused:?}");
        self.lab = next;
        plan
    }

    /// Packets sent and lost so far, by flow.
    fn lost(&mut self) -> BTreeMap<String, (u64, u64)> {
        self.world.settle_books();
        let report = self.world.report(self.now, false);
        let flows = report.flows.into_iter();
        flows
            .map(|flow| {
                let lost = flow.sum(|path| path.lost);
                (
                    flow.name.clone(),
                    (flow.sum(|path| path.sent_packets), lost),
                )
            })
            .collect()
    }

    /// State that a network has in the end, whatever its past: rows of `inspect` without counters, ages and labels,
    /// with names instead of addresses; values of links; and the flows that arrive within a second.
    fn state(&mut self) -> Vec<String> {
        let names = self.names();
        let mut all = Vec::new();
        for what in TABLES {
            for (_, name, node) in self.world.nodes() {
                let tables = node.and_then(|node| node.inspect(what, self.now));
                let tables = tables.into_iter().flatten();
                for table in tables.filter(|table| SHOWN.contains(&table.info.name)) {
                    all.extend(table.rows.iter().map(|row| {
                        let texts = row.iter().filter_map(|value| match value {
                            Value::Text(text) => Some(text),
                            _ => None,
                        });
                        let values = texts.map(|value| in_names(value, &names));
                        let values: Vec<String> = values.filter(|value| lasts(value)).collect();
                        format!("{} of {name}: {}", table.info.name, values.join(" "))
                    }));
                }
            }
        }
        for (id, link) in self.lab.links() {
            let lines = self.world.lines_of(id);
            all.push(format!(
                "link {}: up {} {lines:?}",
                link.name,
                self.world.carries(id)
            ));
        }
        let before = self.received();
        self.run(Duration::from_secs(1));
        let after = self.received().into_iter();
        let arrives = after.filter(|(name, count)| before.get(name).is_none_or(|was| count > was));
        all.extend(arrives.map(|(name, _)| format!("flow {name} arrives")));
        all.sort();
        all
    }

    /// Addresses, the longest texts first, with the names of their nodes.
    fn names(&self) -> Vec<(String, String)> {
        let mut names = Vec::new();
        for (_, node) in self.lab.nodes() {
            if let Some(at) = node.attachment() {
                names.push((AtmAddress::leading(&at.address.0[..19]), node.name.clone()));
            }
        }
        for (_, node, switch) in self.lab.switches() {
            names.push((AtmAddress::leading(&switch.prefix), node.name.clone()));
        }
        names.sort_by_key(|(address, _)| std::cmp::Reverse(address.len()));
        names
    }

    /// Packets received so far, by flow.
    fn received(&mut self) -> BTreeMap<String, u64> {
        self.world.settle_books();
        let report = self.world.report(self.now, false);
        let flows = report.flows.into_iter();
        flows
            .map(|flow| (flow.name.clone(), flow.sum(|path| path.received_packets)))
            .collect()
    }
}

const TABLES: [StateKind; 7] = [
    StateKind::Lec,
    StateKind::Les,
    StateKind::Bus,
    StateKind::Port,
    StateKind::Pvc,
    StateKind::Route,
    StateKind::Mpc,
];

const SHOWN: [&str; 8] = [
    "lec.client",
    "les.server",
    "les.clients",
    "bus.clients",
    "port.ports",
    "pvc.permanent",
    "route.routes",
    "mpc.servers",
];

/// The names of systems instead of their addresses. The selector goes, too: those of ELANs follow their numbers.
fn in_names(value: &str, names: &[(String, String)]) -> String {
    let mut text = value.to_owned();
    for (address, name) in names {
        while let Some(at) = text.find(address.as_str()) {
            let end = at + address.len();
            let selector = if text[end..].starts_with('.') { 3 } else { 0 };
            text.replace_range(at..(end + selector).min(text.len()), name);
        }
    }
    text
}

/// False for labels and MAC addresses.
fn lasts(value: &str) -> bool {
    let label = value
        .split('.')
        .all(|part| part.bytes().all(|c| c.is_ascii_digit()));
    let mac = value.split(':').count() == 6;
    !label && !mac
}

/// A file that changes at random.
#[derive(Clone, Debug)]
struct Draft {
    switches: Vec<String>,
    /// Names of links, their ends and options.
    links: Vec<(String, [String; 2], String)>,
    elans: BTreeMap<String, String>,
    /// Hosts with their switch, the rest of their address, and further keys.
    hosts: BTreeMap<String, Host>,
    pvcs: BTreeMap<u32, u32>,
    traffic: BTreeMap<String, String>,
    forwarding: u32,
    fault: u32,
    number: u32,
    random: u64,
}

#[derive(Clone, Debug)]
struct Host {
    on: String,
    elan: String,
    ip: u32,
    mpoa: bool,
}

/// The kinds of changes; each of them is made.
const CHANGES: [&str; 20] = [
    "add a host",
    "remove a host",
    "add a host",
    "address of a host",
    "move a host",
    "client of MPOA",
    "delay of a link",
    "rate of a link",
    "add a trunk",
    "add a switch",
    "remove a switch",
    "add an ELAN",
    "remove an ELAN",
    "add a pvc",
    "contract of a pvc",
    "remove a pvc",
    "add a flow",
    "rate of a flow",
    "remove a flow",
    "speed of a router",
];

impl Draft {
    fn new(seed: u64) -> Self {
        let host = |on: &str, elan: &str, ip| Host {
            on: on.into(),
            elan: elan.into(),
            ip,
            mpoa: false,
        };
        let trunk = |a: &str, b: &str| {
            (
                format!("{a}-{b}"),
                [a.to_owned(), b.to_owned()],
                "delay: 5us".to_owned(),
            )
        };
        let hosts = [
            ("urku", host("asx200", "a", 10)),
            ("jaarli", host("asx1000", "b", 10)),
            ("sello", host("asx1000", "c", 10)),
            ("basso", host("asx200", "d", 10)),
            // Nothing is done to these two.
            ("left", host("asx200", "a", 20)),
            ("right", host("asx1000", "a", 21)),
        ];
        Self {
            switches: ["ls1010", "asx200", "asx1000"].map(String::from).into(),
            links: vec![trunk("ls1010", "asx200"), trunk("ls1010", "asx1000")],
            elans: (1..)
                .zip(["a", "b", "c", "d", "core"])
                .map(|(n, name)| {
                    let third = if name == "core" { 9 } else { n };
                    (name.to_owned(), format!("10.{third}.0"))
                })
                .collect(),
            hosts: hosts.map(|(name, host)| (name.to_owned(), host)).into(),
            pvcs: [(100, 500), (101, 600)].into(),
            traffic: [
                (
                    "watched",
                    "from: left, to: right, kind: udp, rate: 400pps, size: 500",
                ),
                (
                    "voice",
                    "from: jaarli, to: sello, kind: udp, rate: 100pps, size: 500",
                ),
                (
                    "stream",
                    "from: urku, to: basso, kind: udp, rate: 50pps, size: 500",
                ),
            ]
            .map(|(name, flow)| (name.to_owned(), flow.to_owned()))
            .into(),
            forwarding: 35,
            fault: 900,
            number: 0,
            random: seed,
        }
    }

    fn draw(&mut self, most: usize) -> usize {
        // The numbers need not be good (Knuth's MMIX).
        self.random = (self.random.wrapping_mul(6_364_136_223_846_793_005))
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) as usize % most.max(1)
    }

    fn pick(&mut self, all: &[String]) -> Option<String> {
        let at = self.draw(all.len());
        all.get(at).cloned()
    }

    /// Hosts that may be removed or changed: those that no flow names.
    fn free(&self) -> Vec<String> {
        let named = |name: &str| {
            let ends = [format!("from: {name},"), format!("to: {name},")];
            self.traffic
                .values()
                .any(|flow| ends.iter().any(|end| flow.contains(end)))
        };
        let watched = |name: &str| ["left", "right", "jaarli", "sello"].contains(&name);
        self.hosts
            .keys()
            .filter(|name| !named(name) && !watched(name))
            .cloned()
            .collect()
    }

    fn change(&mut self, what: &str) {
        self.number += 1;
        let number = self.number;
        let all: Vec<String> = self.hosts.keys().cloned().collect();
        match what {
            "add a host" => {
                let (switches, elans) = (
                    self.switches.clone(),
                    ["a", "b", "c", "d"].map(String::from),
                );
                let (on, elan) = (self.pick(&switches), self.pick(&elans));
                let (on, elan) = (on.expect("a switch"), elan.expect("an ELAN"));
                let ip = 100 + number;
                let mpoa = false;
                self.hosts
                    .insert(format!("new{number}"), Host { on, elan, ip, mpoa });
            }
            "remove a host" => {
                let free = self.free();
                if let Some(name) = self.pick(&free) {
                    self.hosts.remove(&name);
                }
            }
            "address of a host" => {
                let free = self.free();
                if let Some(host) = self.pick(&free).and_then(|name| self.hosts.get_mut(&name)) {
                    host.ip = 150 + number;
                }
            }
            "move a host" => {
                let (free, switches) = (self.free(), self.switches.clone());
                let (name, on) = (self.pick(&free), self.pick(&switches));
                if let (Some(host), Some(on)) =
                    (name.and_then(|name| self.hosts.get_mut(&name)), on)
                {
                    host.on = on;
                }
            }
            "client of MPOA" => {
                if let Some(host) = self.pick(&all).and_then(|name| self.hosts.get_mut(&name)) {
                    host.mpoa = true;
                }
            }
            _ if self.change_links(what, number) => {}
            _ => self.change_use(what, number),
        }
    }

    /// Changes links, switches and ELANs; false for other changes.
    fn change_links(&mut self, what: &str, number: u32) -> bool {
        match what {
            "delay of a link" => {
                let at = self.draw(self.links.len());
                let delay = 5 + self.draw(100);
                self.links[at].2 = format!("delay: {delay}us");
            }
            "rate of a link" => {
                let at = self.draw(self.links.len());
                self.links[at].2 = "rate: { up: 100Mbps, down: 120Mbps }".to_owned();
            }
            "add a trunk" => {
                let ends = ["asx200", "asx1000"].map(String::from);
                self.links
                    .push((format!("t{number}"), ends, format!("name: t{number}")));
            }
            "add a switch" => {
                let name = format!("s{number}");
                let ends = ["ls1010".to_owned(), name.clone()];
                self.links
                    .push((format!("ls1010-{name}"), ends, "delay: 7us".to_owned()));
                self.switches.push(name);
            }
            "remove a switch" => {
                let used = |name: &String| self.hosts.values().any(|host| host.on == *name);
                let added = self.switches.iter().skip(3);
                let unused: Vec<String> = added.filter(|name| !used(name)).cloned().collect();
                if let Some(gone) = self.pick(&unused) {
                    self.switches.retain(|name| *name != gone);
                    self.links.retain(|(_, ends, _)| !ends.contains(&gone));
                }
            }
            "add an ELAN" => {
                self.elans
                    .insert(format!("e{number}"), format!("10.{}.0", 20 + number));
            }
            "remove an ELAN" => {
                let used = |name: &str| self.hosts.values().any(|host| host.elan == name);
                let added = self
                    .elans
                    .keys()
                    .filter(|name| name.starts_with('e') && !used(name));
                let added: Vec<String> = added.cloned().collect();
                if let Some(gone) = self.pick(&added) {
                    self.elans.remove(&gone);
                }
            }
            _ => return false,
        }
        true
    }

    /// Changes permanent connections, traffic and routers.
    fn change_use(&mut self, what: &str, number: u32) {
        let all: Vec<String> = self.hosts.keys().cloned().collect();
        match what {
            "add a pvc" => {
                self.pvcs.insert(200 + number, 700);
            }
            "contract of a pvc" => {
                let rate = 800 + number;
                if let Some((_, pcr)) = self.pvcs.iter_mut().next() {
                    *pcr = rate;
                }
            }
            "remove a pvc" => {
                self.pvcs.pop_last();
            }
            "add a flow" => {
                let (from, to) = (self.pick(&all), self.pick(&all));
                let (from, to) = (from.expect("a host"), to.expect("a host"));
                if from != to {
                    let flow = format!("from: {from}, to: {to}, kind: udp, rate: 20pps, size: 300");
                    self.traffic.insert(format!("f{number}"), flow);
                }
            }
            "rate of a flow" => {
                let flow = self.traffic.get_mut("voice").expect("a flow that stays");
                *flow = format!(
                    "from: jaarli, to: sello, kind: udp, rate: {}pps, size: 500",
                    100 + number
                );
            }
            "remove a flow" => {
                let others = self
                    .traffic
                    .keys()
                    .filter(|name| !["watched", "voice"].contains(&name.as_str()));
                let others: Vec<String> = others.cloned().collect();
                if let Some(gone) = self.pick(&others) {
                    self.traffic.remove(&gone);
                }
            }
            "speed of a router" => self.forwarding += 1,
            other => panic!("{other}"),
        }
    }

    fn text(&self) -> String {
        let list = |all: Vec<String>| all.join(", ");
        let switches = list(
            self.switches
                .iter()
                .map(|name| format!("{name}: {{}}"))
                .collect(),
        );
        let links = self
            .links
            .iter()
            .map(|(_, [a, b], more)| format!("[{a}, {b}, {{ {more} }}]"));
        let elans = self
            .elans
            .iter()
            .map(|(name, net)| format!("{name}: {{ subnet: {net}.0/24 }}"));
        let hosts = self
            .hosts
            .iter()
            .map(|(name, Host { on, elan, ip, mpoa })| {
                let net = &self.elans[elan];
                format!("  {name}: {{ on: {on}, elan: {elan}, ip: {net}.{ip}, mpoa: {mpoa} }}\n")
            });
        let pvcs = self.pvcs.iter().map(|(vc, pcr)| {
            format!("{{ from: left, vc: 0.{vc}, to: right, to_vc: 0.{vc}, pcr: {pcr} }}")
        });
        let flows = self
            .traffic
            .iter()
            .map(|(name, flow)| format!("  - {{ name: {name}, {flow} }}\n"));
        format!(
            "name: campus\nswitches: {{ {switches} }}\nlinks: [{}]\nlane: {{ on: ls1010, elans: {{ {} }} }}\nrouters:\n  \
             asn9000: {{ on: ls1010, elans: {{ a: 10.1.0.1, b: 10.2.0.1, core: 10.9.0.1 }} }}\n  \
             c4700: {{ on: ls1010, elans: {{ c: 10.3.0.1, d: 10.4.0.1, core: 10.9.0.2 }}, forwarding: {}Mbps }}\n\
             hosts:\n{}pvcs: [{}]\ntraffic:\n{}faults: [{{ at: {}s, link_down: ls1010-asx200 }}]\n",
            list(links.collect()),
            list(elans.collect()),
            self.forwarding,
            hosts.collect::<String>(),
            list(pvcs.collect()),
            flows.collect::<String>(),
            self.fault,
        )
    }
}

/// The changes in an order of their own, one by one with a second in between. `AEROSTAT_SEED` repeats a case.
#[test]
fn a_campus_with_twenty_random_changes_is_what_its_last_file_says() {
    let seeds = match std::env::var("AEROSTAT_SEED") {
        Ok(seed) => vec![seed.parse().expect("a number")],
        Err(_) => vec![1, 2, 3],
    };
    for seed in seeds {
        random_changes(seed);
    }
}

fn random_changes(seed: u64) {
    println!("seed {seed}");
    let mut draft = Draft::new(seed);
    let mut net = Net::new(&draft.text());
    net.run(Duration::from_secs(5));
    let mut order = CHANGES.map(Some).to_vec();
    let mut kinds = BTreeSet::new();
    for number in 1..=CHANGES.len() {
        // What changes nothing now, because there is nothing of its kind to change, comes later.
        let mut left: Vec<usize> = (0..order.len()).filter(|at| order[*at].is_some()).collect();
        let what = loop {
            let at = left.remove(draft.draw(left.len()));
            let what = order[at].expect("a change that is left");
            let mut next = draft.clone();
            next.change(what);
            if next.text() != draft.text() || left.is_empty() {
                draft = next;
                order[at] = None;
                break what;
            }
            draft.random = next.random;
        };
        let plan = net.change(&draft.text());
        println!("  {number:2} {what}");
        for change in &plan.changes {
            println!("       {change}");
            kinds.insert(change.kind.name());
        }
        net.run(Duration::from_secs(1));
    }
    // Clients of LANE that start again need their time, and so do routes.
    net.run(Duration::from_secs(20));
    assert_eq!(
        net.change(&draft.text()),
        Plan::default(),
        "nothing is left to do"
    );
    let mut fresh = Net::new(&draft.text());
    fresh.run(Duration::from_secs(30));
    let (changed, wanted) = (net.state(), fresh.state());
    let only = |one: &[String], other: &[String]| -> Vec<String> {
        one.iter()
            .filter(|line| !other.contains(line))
            .cloned()
            .collect()
    };
    assert!(wanted.len() > 80, "{} lines of state", wanted.len());
    assert_eq!(
        only(&changed, &wanted),
        only(&wanted, &changed),
        "seed {seed}: changed, and wanted"
    );
    assert_eq!(changed.len(), wanted.len(), "seed {seed}");
    let (sent, lost) = net.lost()["watched"];
    println!(
        "  state: {} equal lines; watched: {sent} packets sent, {lost} lost",
        changed.len()
    );
    assert!(sent > 15_000, "{sent} packets");
    assert_eq!(lost, 0, "seed {seed}");
    for kind in [
        Kind::Host,
        Kind::Link,
        Kind::Switch,
        Kind::Subnet,
        Kind::Pvc,
        Kind::Traffic,
        Kind::Router,
    ] {
        assert!(kinds.contains(kind.name()), "no change of a {kind}");
    }
}

/// Hosts far apart, so that packets are under way at any moment.
const FAR: &str = "
switches: { s1: {}, s2: {} }
links: [[s1, s2, { rate: oc3, delay: 3ms }]]
clip: { net: { subnet: 10.1.0.0/24 } }
pvcs: [{ from: a, vc: 0.100, to: b, to_vc: 0.100 }]
hosts:
  a: { on: s1, elan: net, ip: 10.1.0.1 }
  b: { on: s2, elan: net, ip: 10.1.0.2 }
traffic:
";

/// Sent, delivered, lost and under way, by flow; the accounts balance.
fn accounts(net: &mut Net) -> BTreeMap<String, [u64; 4]> {
    net.world.settle_books();
    let report = net.world.report(net.now, false);
    let flows = report.flows.iter();
    flows
        .map(|flow| {
            assert!(flow.paths.iter().all(|path| path.balances()), "{flow:#?}");
            let counts = [
                flow.sum(|path| path.sent_packets),
                flow.sum(|path| path.received_packets),
                flow.sum(|path| path.lost),
                flow.sum(|path| path.in_flight),
            ];
            (flow.name.clone(), counts)
        })
        .collect()
}

/// Packets that are under way when their flow is changed or removed arrive, as if its time were over.
#[test]
fn packets_of_a_flow_that_is_changed_or_removed_arrive() {
    let flows = |size: u32| {
        let sizes = [
            ("udp", "rate: 1000pps"),
            ("ping", "rate: 200pps"),
            ("rr", "duration: 60s"),
        ];
        let flows = sizes.map(|(kind, more)| {
            format!("  - {{ name: {kind}, from: a, to: b, kind: {kind}, size: {size}, {more}, start: 1s }}\n")
        });
        let tcp = format!(
            "  - {{ name: tcp, from: a, to: b, kind: tcp, start: 1s, duration: {size}s }}\n"
        );
        format!("{FAR}{}{tcp}", flows.concat())
    };
    let mut net = Net::new(&flows(60));
    net.run(Duration::from_secs(3));
    for (text, former) in [(flows(100), "~1"), (format!("{FAR}  []\n"), "")] {
        net.change(&text);
        let now = accounts(&mut net);
        net.run(Duration::from_millis(200));
        let later = accounts(&mut net);
        for kind in ["udp", "ping", "rr", "tcp"] {
            let name = format!("{kind}{former}");
            let [sent, delivered, lost, under_way] = now[&name];
            assert!(sent > 50 && lost == 0, "{name}: {:?}", now[&name]);
            // Of requests and responses one at most is under way, in either direction.
            assert!(kind == "rr" || under_way > 0, "{name}: {:?}", now[&name]);
            let [all, arrived, lost, left] = later[&name];
            assert_eq!((arrived, lost, left), (all, 0, 0), "{name}");
            assert!(delivered < arrived || kind == "rr", "{name}");
        }
        net.run(Duration::from_secs(2));
    }
}
