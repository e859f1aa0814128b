//! Calls that are refused further on for lack of room take another of the shortest ways.
//!
//! The judge of the first test is omniscient: it knows the free rates of all links when a call begins, and looks for a
//! shortest path that has room. The second one runs random schedules of calls and cut links; afterwards nothing is
//! reserved. `AEROSTAT_CALL_SCHEDULES` sets how many.

use crate::bench::{Bench, lab_of};
use crate::sockets::calls;
use aerostat_node::inspect::StateKind;
use aerostat_node::switch::{PortInfo, PortKind};
use aerostat_proto::Duration;
use rand_pcg::Pcg32;
use rand_pcg::rand_core::{Rng as _, SeedableRng as _};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;

/// Time between two calls: no repetition of a refused call, 4 s and 8 s later, falls on the start of another.
const STEP: Duration = Duration::from_millis(210);
const FIRST: Duration = Duration::from_secs(2);

/// Switches in a form, and the links between them.
#[derive(Clone, Debug)]
struct Network {
    switches: usize,
    /// Pairs of switches, with the name of the link's rate.
    links: Vec<(usize, usize, &'static str)>,
}

fn below(rng: &mut Pcg32, n: usize) -> usize {
    ((u64::from(rng.next_u32()) * n as u64) >> 32) as usize
}

impl Network {
    fn of(form: &str, rng: &mut Pcg32) -> Self {
        let (switches, pairs): (usize, Vec<(usize, usize)>) = match form {
            "ring" => (6, (0..6).map(|k| (k, (k + 1) % 6)).collect()),
            // Two rails with five rungs.
            "ladder" => {
                let rails = (0..4).flat_map(|k| [(k, k + 1), (k + 5, k + 6)]);
                (10, rails.chain((0..5).map(|k| (k, k + 5))).collect())
            }
            // Three by three.
            _ => {
                let across = (0..9).filter(|k| k % 3 < 2).map(|k| (k, k + 1));
                (9, across.chain((0..6).map(|k| (k, k + 3))).collect())
            }
        };
        let rate = |rng: &mut Pcg32| ["25.6", "ds3", "oc3"][below(rng, 3)];
        let links = pairs.into_iter().map(|(a, b)| (a, b, rate(rng)));
        Self {
            switches,
            links: links.collect(),
        }
    }

    /// The lab: a host at each switch, whose link has room for everything, with these programs.
    fn text(&self, programs: &BTreeMap<usize, String>, rest: &str) -> String {
        let mut text = String::from("switches: {");
        (0..self.switches).for_each(|k| write!(text, " s{k}: {{}},").unwrap());
        text += " }\nlinks:\n";
        for (a, b, rate) in &self.links {
            writeln!(text, "  - [s{a}, s{b}, {{ rate: {rate} }}]").unwrap();
        }
        text += "clip: { n: { subnet: 10.1.0.0/24, server: h0 } }\nhosts:\n";
        for k in 0..self.switches {
            let (ip, programs) = (k + 1, programs.get(&k).map_or("", |text| text));
            writeln!(
                text,
                "  h{k}: {{ on: s{k}, elan: n, ip: 10.1.0.{ip}, link: {{ rate: oc12 }}, sockets: [{{ name: sink, listen: sink, calls: 256 }}, {programs}] }}"
            )
            .unwrap();
        }
        text + rest
    }
}

/// Free rates towards each neighbour of each switch: the lesser of those for cells that leave and that arrive.
fn free(bench: &Bench) -> BTreeMap<(String, String), u64> {
    let mut free = BTreeMap::new();
    for (id, switch) in bench.switches() {
        let own = bench.lab.nodes[id.0].name.clone();
        for port in switch.port_infos() {
            let PortInfo { name, admit, .. } = &port;
            let used = port.reserved.0.max(port.reserved.1);
            free.insert((own.clone(), name.clone()), u64::from(*admit) - used);
        }
    }
    free
}

/// True if a shortest path between two switches has this rate free on each of its links.
fn has_path(
    network: &Network,
    free: &BTreeMap<(String, String), u64>,
    (from, to): (usize, usize),
    rate: u64,
) -> bool {
    let mut hops = BTreeMap::from([(to, 0)]);
    let mut queue = VecDeque::from([to]);
    let neighbours = |k: usize| {
        let ends = network.links.iter();
        ends.filter_map(move |(a, b, _)| match k {
            _ if k == *a => Some(*b),
            _ if k == *b => Some(*a),
            _ => None,
        })
    };
    while let Some(k) = queue.pop_front() {
        for next in neighbours(k) {
            if !hops.contains_key(&next) {
                hops.insert(next, hops[&k] + 1);
                queue.push_back(next);
            }
        }
    }
    let mut reached = BTreeSet::from([from]);
    let mut queue = VecDeque::from([from]);
    while let Some(k) = queue.pop_front() {
        for next in neighbours(k).filter(|next| hops[next] + 1 == hops[&k]) {
            let (a, b) = (format!("s{k}"), format!("s{next}"));
            let room = free[&(a.clone(), b.clone())].min(free[&(b, a)]);
            if room >= rate && reached.insert(next) {
                queue.push_back(next);
            }
        }
    }
    reached.contains(&to)
}

/// A call of a random program.
struct Planned {
    name: String,
    ends: (usize, usize),
    rate: u64,
}

/// Random calls; their programs by host.
fn plan(
    network: &Network,
    count: usize,
    rng: &mut Pcg32,
) -> (Vec<Planned>, BTreeMap<usize, String>) {
    let (mut planned, mut programs) = (Vec::new(), BTreeMap::<usize, String>::new());
    for n in 0..count {
        let from = below(rng, network.switches);
        let to = (from + 1 + below(rng, network.switches - 1)) % network.switches;
        let rate = [5_000, 15_000, 30_000, 50_000][below(rng, 4)];
        // A call ends in the middle between two starts.
        let hold = 105 + 210 * (1 + below(rng, 40));
        let start = FIRST.as_millis() + n as u128 * STEP.as_millis();
        let text = format!(
            "{{ name: c{n}, call: h{to}, qos: \"cbr,aal5:pcr={rate},sdu=100\", start: {start}ms, size: 100, pdus: 1, hold: {hold}ms }}, "
        );
        *programs.entry(from).or_default() += &text;
        planned.push(Planned {
            name: format!("c{n}"),
            ends: (from, to),
            rate,
        });
    }
    (planned, programs)
}

fn moved(bench: &Bench) -> u64 {
    bench.switches().map(|(_, of)| of.counters().moved).sum()
}

/// Two paths of equal length; the call fits on the second only. A program that fails calls again seconds later.
#[test]
fn a_call_is_connected_at_once_by_the_path_that_has_room() {
    let qos = "cbr,aal5:pcr=100000,sdu=1000";
    let call = |name: &str, to: &str, start: u8| {
        format!(
            "{{ name: {name}, call: {to}, qos: \"{qos}\", start: {start}s, size: 1000, pdus: 10, hold: 5s }}"
        )
    };
    let text = format!(
        "switches: {{ a: {{}}, b: {{}}, c: {{}}, d: {{}} }}\n\
         links: [[a, b, {{ rate: oc3 }}], [b, d, {{ rate: 25.6 }}], [a, c, {{ rate: oc3 }}], [c, d, {{ rate: oc3 }}]]\n\
         clip: {{ n: {{ subnet: 10.1.0.0/24, server: y }} }}\n\
         hosts:\n  x: {{ on: a, elan: n, ip: 10.1.0.1, sockets: [{}, {}] }}\n  \
         y: {{ on: d, elan: n, ip: 10.1.0.2, sockets: [{{ name: sink, listen: sink }}, {{ name: sink2, listen: sink, selector: e1 }}] }}\n\
         until: 8s\n",
        call("one", "y", 1),
        call("two", "y/e1", 2)
    );
    let mut bench = Bench::new(lab_of("two-paths", &text, &[]), 1);
    bench.run(Duration::from_millis(2001));
    let rows = calls(&bench, "x");
    assert_eq!(rows["two"].len(), 1);
    assert!(
        rows["two"][0]["setup_us"].parse::<u64>().unwrap() < 1000,
        "{rows:?}"
    );
    let a = bench.switch(bench.node("a")).unwrap();
    let tables = a.inspect(StateKind::Call, bench.now()).unwrap();
    let column = tables[0].columns.iter().position(|name| *name == "tried");
    let tried = tables[0]
        .rows
        .iter()
        .map(|row| row[column.unwrap()].to_string());
    let tried: Vec<String> = tried.filter(|text| text != "-").collect();
    assert_eq!(
        tried,
        ["b: cause 37 (user cell rate not available) at location 3"]
    );
    let told = bench
        .log
        .story
        .iter()
        .filter(|line| line.contains("switch.call.moved"));
    assert_eq!(told.count(), 1);
}

#[test]
fn no_call_is_refused_for_which_a_shortest_path_has_room() {
    const CALLS: usize = 60;
    // Set-up times in microseconds by form and number of moves.
    let mut times = BTreeMap::<(&str, u64), Vec<u64>>::new();
    let (mut admitted, mut refused) = (0, 0);
    for form in ["ring", "ladder", "mesh"] {
        for seed in 1..=20 {
            let mut rng = Pcg32::seed_from_u64(seed);
            let network = Network::of(form, &mut rng);
            let (planned, programs) = plan(&network, CALLS, &mut rng);
            let text = network.text(&programs, "until: 60s\n");
            let mut bench = Bench::new(lab_of(form, &text, &[]), seed);
            bench.run(FIRST - Duration::from_millis(1));
            for call in &planned {
                let room = has_path(&network, &free(&bench), call.ends, call.rate);
                let before = moved(&bench);
                let was = free(&bench);
                bench.run(Duration::from_millis(5));
                let host = format!("h{}", call.ends.0);
                let rows = calls(&bench, &host);
                let row = rows.get(&call.name).and_then(|rows| rows.first());
                let row = row.unwrap_or_else(|| panic!("{form} {seed}: no {}", call.name));
                let connected = row["cause"] == "-" || row["cause"].is_empty();
                if connected != room {
                    let what = format!(
                        "{form}: {} of {:?} with {}",
                        call.name, call.ends, call.rate
                    );
                    bench.fail(&format!("{what}: room is {room}: {row:?}, free {was:?}"));
                }
                if connected {
                    admitted += 1;
                    let moves = moved(&bench) - before;
                    let time = row["setup_us"].parse().unwrap();
                    times.entry((form, moves)).or_default().push(time);
                } else {
                    refused += 1;
                }
                bench.run(STEP - Duration::from_millis(5));
            }
        }
    }
    println!("{admitted} calls admitted, {refused} refused; mean set-up time by moves:");
    for ((form, moves), times) in &times {
        let mean = times.iter().sum::<u64>() / times.len() as u64;
        println!("{form} {moves}: {mean} us, {} calls", times.len());
    }
    assert!(admitted > 1000 && refused > 200, "{admitted} {refused}");
    assert!(
        times.keys().any(|(_, moves)| *moves >= 2),
        "{:?}",
        times.keys()
    );
}

/// Calls, releases and cut links in any order; once all is over, nothing is held anywhere.
#[test]
fn random_schedules_leave_no_reservation() {
    let count = std::env::var("AEROSTAT_CALL_SCHEDULES");
    let count: u64 = count.map_or(60, |count| count.parse().expect("a number of schedules"));
    let (mut moves, mut cuts) = (0, 0);
    for seed in 0..count {
        let mut rng = Pcg32::seed_from_u64(1_000_000 + seed);
        let form = ["ring", "ladder", "mesh"][below(&mut rng, 3)];
        let network = Network::of(form, &mut rng);
        let calls = 10 + below(&mut rng, 30);
        let (_, programs) = plan(&network, calls, &mut rng);
        let mut faults = String::from("faults:\n");
        for _ in 0..below(&mut rng, 4) {
            let (a, b, _) = network.links[below(&mut rng, network.links.len())];
            let at = 2000 + below(&mut rng, 8000);
            let mended = at + 1 + below(&mut rng, 4000);
            let link = format!("s{a}-s{b}");
            writeln!(faults, "  - {{ at: {at}ms, link_down: {link} }}").unwrap();
            writeln!(faults, "  - {{ at: {mended}ms, link_up: {link} }}").unwrap();
            cuts += 1;
        }
        let faults = if faults.len() > 8 {
            faults
        } else {
            String::new()
        };
        let text = network.text(&programs, &format!("{faults}until: 120s\n"));
        let mut bench = Bench::new(lab_of(form, &text, &[]), seed);
        // The last program ends at 2 s + 40 × 0.21 s + 8.6 s; refused ones call again until then.
        bench.run(Duration::from_secs(30));
        bench.stop_programs();
        bench.run(Duration::from_secs(60));
        moves += moved(&bench);
        for (id, switch) in bench.switches() {
            for port in switch.port_infos() {
                let name = &bench.lab.nodes[id.0].name;
                assert_eq!(port.reserved, (0, 0), "seed {seed}: {name} {}", port.name);
                assert_eq!(port.pending, 0, "seed {seed}: {name} {}", port.name);
                // Calls of Classical IP stay: each has one half-call here.
                let legs = switch.calls().flat_map(|call| {
                    let legs = call.branches.into_iter().map(|leg| leg.port);
                    legs.chain([call.root.port])
                });
                let legs = legs.filter(|at| *at == port.port).count();
                assert_eq!(port.calls, legs, "seed {seed}: {name} {}", port.name);
                assert_eq!(port.labels, legs, "seed {seed}: {name} {}", port.name);
                assert!(port.kind == PortKind::Trunk || port.name.starts_with('h'));
            }
        }
    }
    assert!(moves > 0 && cuts > 0, "{moves} moves, {cuts} cuts");
    println!("{count} schedules: {moves} calls took another way, {cuts} links were cut");
}
