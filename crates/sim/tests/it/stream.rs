//! The stream of events against runs that end earlier: a reader that applies its lines up to a time has the state that
//! a run to this time has.
//!
//! The tables are those of `inspect`; nothing of the recorder is used on this side.

use crate::bench::repository_lab;
use aerostat_lab::circuits::Network;
use aerostat_lab::model::{FaultKind, Lab, LinkId, NodeKind};
use aerostat_lab::plant::{LabNode, Plant};
use aerostat_lab::report;
use aerostat_lab::stream::{Bounds, Options, Stream};
use aerostat_node::inspect::{StateKind, Table, Value as Cell};
use aerostat_proto::Instant;
use aerostat_sim::run::LabRun;
use rand_pcg::rand_core::Rng as _;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const SECOND: u64 = 1_000_000_000;

/// The seed of random instants: that of the environment, or 1.
fn seed() -> u64 {
    let given = std::env::var("AEROSTAT_SEED").ok();
    given.map_or(1, |seed| seed.parse().expect("a number"))
}

/// A lab of the folder, which ends after some seconds at the latest.
fn lab(name: &str, seconds: u64) -> Lab {
    let mut lab = repository_lab(name, &[]);
    let end = lab.end().min(aerostat_proto::Duration::from_secs(seconds));
    lab.until = Some(end);
    lab
}

/// Runs to the end and returns the stream.
fn recorded(lab: &Lab, options: Options) -> Stream {
    let mut nobody = ();
    let mut run = LabRun::new(lab, &mut nobody);
    run.record_events(options);
    run.start();
    run.run_until(Instant::ZERO + lab.end());
    run.finish().expect("no captures").events.expect("a stream")
}

/// The lines as objects.
fn lines(stream: &Stream) -> Vec<Value> {
    let parsed = stream.lines().map(serde_json::from_str);
    parsed.collect::<Result<_, _>>().expect("JSON lines")
}

/// The states of one kind by id, after all lines up to a time.
fn states(lines: &[Value], kind: &str, until: u64) -> Vec<BTreeMap<String, Value>> {
    let mut all: BTreeMap<u64, BTreeMap<String, Value>> = BTreeMap::new();
    let due = |line: &&Value| line["is"] == kind && line["t"].as_u64().is_some_and(|t| t <= until);
    for line in lines.iter().filter(due) {
        let id = line["id"].as_u64().expect("an id");
        if line["gone"] == true {
            assert!(all.remove(&id).is_some(), "{line}: gone twice");
            continue;
        }
        let fields = line.as_object().expect("an object").clone();
        all.entry(id).or_default().extend(fields);
    }
    all.into_values().collect()
}

fn text(state: &BTreeMap<String, Value>, key: &str) -> String {
    let value = state.get(key).and_then(Value::as_str);
    value.unwrap_or_default().to_owned()
}

fn rows(tables: &[Table], title: &str) -> Vec<BTreeMap<&'static str, Cell>> {
    let of = tables.iter().filter(|table| table.title == title);
    of.flat_map(|table| {
        let rows = table.rows.iter();
        rows.map(|row| {
            table
                .columns
                .iter()
                .copied()
                .zip(row.iter().cloned())
                .collect()
        })
    })
    .collect()
}

fn cell(row: &BTreeMap<&'static str, Cell>, column: &str) -> String {
    match row.get(column) {
        None | Some(Cell::None) => String::new(),
        Some(other) => other.to_string(),
    }
}

/// Connections, members, shortcuts and faults, each as a line of text.
type State = [BTreeSet<String>; 4];

/// The state that the stream tells.
fn told(lines: &[Value], lab: &Lab, until: u64) -> State {
    let address = |name: &str| {
        let id = lab.find(name).expect("a node");
        lab.node(id).attachment().map(|at| at.address.to_string())
    };
    let calls = states(lines, "call", until).into_iter();
    let calls = calls
        .filter(|call| text(call, "what") != "pvc")
        .map(|call| {
            let to = match text(&call, "to") {
                to if to.is_empty() => text(&call, "called"),
                to => system(&address(&to).expect("an address")),
            };
            let vc = call
                .get("vc")
                .and_then(|vc| vc[0].as_str())
                .unwrap_or_default();
            let parties = call.get("parties").and_then(Value::as_u64).unwrap_or(0);
            let (from, state) = (text(&call, "from"), text(&call, "state"));
            format!(
                "{from} {state} {vc} {} {parties} {}",
                text(&call, "user"),
                system(&to)
            )
        });
    let members = states(lines, "member", until).into_iter().map(|member| {
        let lecid = member.get("lecid").and_then(Value::as_u64).unwrap_or(0);
        let (node, by) = (text(&member, "node"), text(&member, "by"));
        format!("{node} {by} {} {lecid}", text(&member, "state") == "joined")
    });
    let shortcuts = states(lines, "shortcut", until)
        .into_iter()
        .map(|shortcut| {
            let (from, dest, vc) = (
                text(&shortcut, "from"),
                text(&shortcut, "dest"),
                text(&shortcut, "vc"),
            );
            format!(
                "{from} {dest} {vc} {} {}",
                text(&shortcut, "to"),
                text(&shortcut, "state")
            )
        });
    let faults = states(lines, "fault", until).into_iter();
    let faults = faults.map(|fault| {
        format!(
            "{} {} {}",
            text(&fault, "what"),
            text(&fault, "name"),
            text(&fault, "service")
        )
    });
    [
        calls.collect(),
        members.collect(),
        shortcuts.collect(),
        faults.collect(),
    ]
}

/// An ATM address without its selector.
fn system(address: &str) -> String {
    let body = address.rsplit_once('.').map_or(address, |(body, _)| body);
    body.to_owned()
}

/// The state that `inspect` shows.
fn inspected<M>(lab: &Lab, plant: &Plant<LabNode, M>) -> State {
    let mut state = State::default();
    let [calls, members, shortcuts, faults] = &mut state;
    let names: BTreeMap<String, &str> = lab
        .nodes()
        .filter_map(|(_, node)| {
            Some((system(&node.attachment()?.address.to_string()), &*node.name))
        })
        .collect();
    for (id, node) in lab.nodes() {
        let name = &node.name;
        if plant.node(id).is_none() && !matches!(node.kind, NodeKind::Outside(_)) {
            faults.insert(format!("node {name} "));
        }
        if plant.station(id).is_none() {
            continue;
        }
        let tables = |what| report::inspect(plant, id, what).unwrap_or_default();
        for row in rows(&tables(StateKind::Call), "calls") {
            if cell(&row, "direction") == "out" && !cell(&row, "called").is_empty() {
                let parts = ["phase", "vc", "user", "parties"].map(|column| cell(&row, column));
                let [phase, vc, user, parties] = parts;
                let (phase, to) = (phase.to_lowercase(), system(&cell(&row, "called")));
                calls.insert(format!(
                    "{name} {phase} {vc} {user} {parties} {}",
                    system(&to)
                ));
            }
        }
        for row in rows(&tables(StateKind::Lec), "client") {
            let joined = cell(&row, "state") == "operational";
            members.insert(format!("{name} lane {joined} {}", cell(&row, "lecid")));
        }
        for row in rows(&tables(StateKind::Clip), "interface") {
            members.insert(format!("{name} clip {} 0", cell(&row, "ready") == "yes"));
        }
        let nhrp = tables(StateKind::Nhrp);
        for row in rows(&nhrp, "client") {
            members.insert(format!(
                "{name} nhrp {} 0",
                !cell(&row, "registered_s").is_empty()
            ));
        }
        let ends = |address: String| names.get(&system(&address)).copied().unwrap_or_default();
        for row in rows(&tables(StateKind::Mpc), "ingress") {
            let vc = match cell(&row, "vci") {
                vci if vci.is_empty() => vci,
                vci => format!("{}.{vci}", cell(&row, "vpi")),
            };
            let word = match (&*cell(&row, "state"), vc.is_empty()) {
                ("not asked", _) => continue,
                ("resolving", true) => "resolving",
                ("resolved", false) => "open",
                ("hold down", _) => "hold-down",
                ("resolving" | "refreshing", false) => "refreshing",
                _ => "resolved",
            };
            let (dest, to) = (cell(&row, "destination"), ends(cell(&row, "egress")));
            shortcuts.insert(format!("{name} {dest} {vc} {to} {word}"));
        }
        for row in rows(&nhrp, "ways") {
            let word = match &*cell(&row, "state") {
                "asking" => "resolving",
                "known" => "resolved",
                "shortcut" => "open",
                "refused" => "hold-down",
                _ => continue,
            };
            let (dest, to) = (cell(&row, "destination"), ends(cell(&row, "atm")));
            shortcuts.insert(format!("{name} {dest} {} {to} {word}", cell(&row, "vc")));
        }
    }
    for (number, link) in lab.links.iter().enumerate() {
        if plant.is_cut(LinkId(number)) {
            faults.insert(format!("link {} ", link.name));
        }
    }
    // The tables have no row for a service that has crashed.
    faults.retain(|fault| !fault.starts_with("service"));
    state
}

/// The ways of connections by the sender's label: switches on the way and label at the end.
fn ways<M>(lab: &Lab, plant: &Plant<LabNode, M>) -> BTreeMap<(String, String), (usize, String)> {
    let all = aerostat_lab::circuits::read(lab, plant).circuits;
    let user = all.into_iter().filter(|circuit| circuit.class != "control");
    user.filter_map(|circuit| {
        let to = circuit.to?;
        let from = lab.node(circuit.from.node).name.clone();
        Some((
            (from, circuit.from.vc.to_string()),
            (circuit.switches, to.vc.to_string()),
        ))
    })
    .collect()
}

/// Compares the stream with a run that stops at random instants, and at samples.
fn compare(name: &str, lab: &Lab, seed: u64) {
    let stream = recorded(lab, Options::default());
    let lines = lines(&stream);
    let end = lab.end().as_nanos() as u64;
    let mut rng = aerostat_node::random::stream(seed, name, "instants");
    let happened: Vec<u64> = lines.iter().filter_map(|line| line["t"].as_u64()).collect();
    // Half of them are instants at which something happened, where mistakes would be.
    let mut instants: Vec<u64> = (0..25).map(|_| rng.next_u64() % end).collect();
    instants.extend((0..25).map(|_| happened[rng.next_u64() as usize % happened.len()].min(end)));
    let samples = (0..50).map(|_| rng.next_u64() % (end / (SECOND / 10) + 1) * (SECOND / 10));
    let samples: BTreeSet<u64> = samples.collect();
    instants.extend(&samples);
    instants.sort_unstable();
    let mut nobody = ();
    let mut run = LabRun::new(lab, &mut nobody);
    run.start();
    let mut links = BTreeMap::new();
    let mut sampled = lines
        .iter()
        .filter(|line| line["is"] == "sample")
        .peekable();
    for at in instants {
        run.run_until(Instant::from_nanos(at));
        let plant = run.world().plant();
        let (told, seen) = (told(&lines, lab, at), inspected(lab, plant));
        for (kind, (told, seen)) in ["calls", "members", "shortcuts", "faults"]
            .iter()
            .zip(told.iter().zip(&seen))
        {
            let told: BTreeSet<_> = told
                .iter()
                .filter(|line| !line.starts_with("service"))
                .collect();
            let seen: BTreeSet<_> = seen.iter().collect();
            assert_eq!(told, seen, "{name}: {kind} at {at} ns, seed {seed}");
        }
        let ways = ways(lab, plant);
        for call in states(&lines, "call", at) {
            let vc = call
                .get("vc")
                .and_then(|vc| vc[0].as_str())
                .unwrap_or_default();
            let key = (text(&call, "from"), vc.to_owned());
            let hops = call
                .get("via")
                .and_then(Value::as_array)
                .map_or(0, Vec::len);
            if let (Some((switches, label)), "connected", false) = (
                ways.get(&key),
                &*text(&call, "state"),
                call.contains_key("multipoint"),
            ) {
                let told = call.get("vc").and_then(|vc| vc[1].as_str());
                assert_eq!(
                    (hops, told),
                    (switches + 1, Some(&**label)),
                    "{name} at {at}: {call:?}"
                );
            }
        }
        while let Some(sample) = sampled.next_if(|line| line["t"].as_u64() <= Some(at)) {
            links.extend(sample["links"].as_object().into_iter().flatten());
        }
        if samples.contains(&at) {
            for (number, link) in lab.links.iter().enumerate() {
                let [forth, back] = plant.counters_of(LinkId(number));
                let lost = [forth, back].map(|way| way.lost + way.discarded + way.down);
                let seen = serde_json::json!([forth.sent, back.sent, lost.iter().sum::<u64>()]);
                let told = links.get(&link.name).copied();
                let told = told
                    .cloned()
                    .unwrap_or_else(|| serde_json::json!([0, 0, 0]));
                assert_eq!(told, seen, "{name}: {} at {at} ns, seed {seed}", link.name);
            }
        }
    }
    flows_at(name, lab, &lines, *samples.last().expect("a sample"));
}

/// The counters of flows at a sample are those of a run that ends there.
fn flows_at(name: &str, lab: &Lab, lines: &[Value], at: u64) {
    let mut nobody = ();
    let mut run = LabRun::new(lab, &mut nobody);
    run.start();
    run.run_until(Instant::from_nanos(at));
    let report = run.finish().expect("no captures");
    let mut told = BTreeMap::new();
    let due = |line: &&Value| line["is"] == "sample" && line["t"].as_u64() <= Some(at);
    for sample in lines.iter().filter(due) {
        told.extend(sample["flows"].as_object().into_iter().flatten());
    }
    for flow in &report.flows {
        let sums = [
            flow.sum(|path| path.sent_packets),
            flow.sum(|path| path.received_packets),
            flow.sum(|path| path.lost),
            flow.sum(|path| path.sent_octets),
            flow.sum(|path| path.received_octets),
        ];
        let mut told: Vec<u64> = match told.get(&flow.name) {
            Some(counts) => serde_json::from_value((*counts).clone()).expect("counts"),
            None => vec![0; 6],
        };
        let delay = told.pop().expect("a delay") as f64;
        assert_eq!(told, sums, "{name}: {} at {at} ns", flow.name);
        let mean = flow
            .paths
            .iter()
            .map(|path| path.delay.mean_us * path.delay.count as f64);
        let mean = mean.sum::<f64>() * 1000.0;
        assert!(
            (delay - mean).abs() <= 1.0 + mean * 1e-9,
            "{name}: {delay} and {mean}"
        );
    }
}

#[test]
fn the_state_at_any_instant_is_that_of_a_run_to_this_instant() {
    let seed = seed();
    println!("seed {seed}: AEROSTAT_SEED repeats it");
    for (name, seconds) in [
        ("campus", 7),
        ("two-subnets", 5),
        ("nhrp", 5),
        ("clip", 3),
        ("native", 3),
        ("wan-detour", 2),
        ("vlans", 3),
    ] {
        compare(name, &lab(name, seconds), seed);
    }
}

#[test]
fn the_state_is_exact_with_losses_crashes_restarts_and_cut_links() {
    let seed = seed();
    println!("seed {seed}: AEROSTAT_SEED repeats it");
    for name in ["ring", "parallel-links", "dead-destination"] {
        compare(name, &lab(name, 9), seed);
    }
    let changes = [
        "faults=[{at: 6500ms, link_down: ls1010-asx200}, {at: 6900ms, link_up: ls1010-asx200}, \
         {at: 7s, crash: asx1000}, {at: 7300ms, restart: asx1000}, {at: 7400ms, restart: basso}, \
         {at: 7500ms, crash: lane/bus}, {at: 7700ms, restart: lane/bus}, {at: 7800ms, crash: urku/mpc}, \
         {at: 7900ms, restart: urku/mpc}, {at: 8s, crash: sello}]",
    ];
    let mut campus = repository_lab("campus", &changes);
    for link in &mut campus.links {
        link.lines
            .iter_mut()
            .for_each(|line| line.errors.loss = 0.0005);
    }
    campus.until = Some(aerostat_proto::Duration::from_secs(9));
    assert!(
        campus
            .faults
            .iter()
            .any(|fault| matches!(fault.what, FaultKind::Crash(_, Some(_))))
    );
    compare("campus with faults", &campus, seed);
}

#[test]
fn two_runs_have_the_same_bytes_and_recording_changes_no_result() {
    let lab = lab("two-subnets", 6);
    let [first, second] = [(); 2].map(|()| recorded(&lab, Options::default()));
    assert!(first == second);
    let run = |events: bool| {
        let mut nobody = ();
        let mut run = LabRun::new(&lab, &mut nobody);
        if events {
            run.record_events(Options::default());
        }
        run.start();
        run.run_until(Instant::ZERO + lab.end());
        run.finish().expect("no captures")
    };
    let (with, without) = (run(true), run(false));
    assert_eq!(format!("{:?}", with.nodes), format!("{:?}", without.nodes));
    assert_eq!(with.flows, without.flows);
}

#[test]
fn what_the_bounds_leave_out_is_counted_and_state_never_is() {
    let lab = lab("campus", 7);
    let whole = lines(&recorded(&lab, Options::default()));
    let small = Bounds {
        messages: 100,
        octets: 30_000,
        sample_octets: 3000,
        ..Bounds::default()
    };
    let options = Options {
        bounds: small,
        ..Options::default()
    };
    let thin = lines(&recorded(&lab, options));
    let count =
        |lines: &[Value], kind: &str| lines.iter().filter(|line| line["is"] == kind).count() as u64;
    let end = thin.last().expect("an end");
    for kind in ["message", "story", "sample"] {
        let (kept, thinned) = (&end["kept"][kind], &end["thinned"][kind]);
        assert_eq!(kept, &count(&thin, kind), "{kind}");
        let sum = kept.as_u64().expect("a count") + thinned.as_u64().expect("a count");
        // With a longer interval fewer samples are taken.
        assert!(
            sum == count(&whole, kind) || kind == "sample",
            "{kind}: {end}"
        );
        assert!(thinned.as_u64() > Some(0), "{kind}: {end}");
    }
    for kind in ["call", "member", "shortcut", "fault"] {
        assert_eq!(count(&thin, kind), count(&whole, kind), "{kind}");
    }
    // Samples that are left out have given their numbers to the next ones.
    let last = |lines: &[Value]| {
        let mut all = BTreeMap::new();
        for sample in lines.iter().filter(|line| line["is"] == "sample") {
            all.extend(
                sample["links"]
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(k, v)| (k.clone(), v.clone())),
            );
        }
        all
    };
    assert_eq!(last(&thin), last(&whole));
    let every = thin[0]["sample"].as_u64().expect("an interval");
    assert!(every > SECOND / 10);
    let off = |line: &&Value| {
        line["is"] == "sample" && !line["t"].as_u64().is_some_and(|t| t.is_multiple_of(every))
    };
    assert!(
        thin.iter().filter(off).count() <= 1,
        "only the one at the end"
    );
    assert_eq!(whole.last().expect("an end")["thinned"]["message"], 0);
}

#[test]
fn states_beyond_their_bound_are_those_at_samples_and_that_of_the_end_is_exact() {
    let lab = lab("campus", 7);
    let whole = lines(&recorded(&lab, Options::default()));
    let options = |state_octets| Options {
        bounds: Bounds {
            state_octets,
            ..Bounds::default()
        },
        ..Options::default()
    };
    let octets = |lines: &[Value]| -> usize {
        let kinds = ["call", "member", "shortcut", "fault"];
        let states = lines
            .iter()
            .filter(|line| kinds.iter().any(|kind| line["is"] == *kind));
        states.map(|line| line.to_string().len()).sum()
    };
    let all = octets(&whole);
    for part in [2, 8, 64] {
        let thin = lines(&recorded(&lab, options((all / part) as u64)));
        let end = thin.last().expect("an end");
        let until = end["states_until"].as_u64().expect("a time");
        assert_eq!(end["untold"], 0);
        let exact = [until / 3, until.saturating_sub(1)];
        for t in exact.into_iter().chain([7 * SECOND]) {
            assert_eq!(
                told(&thin, &lab, t),
                told(&whole, &lab, t),
                "1/{part} at {t}"
            );
        }
        assert!(octets(&thin) < all, "1/{part}");
    }
    assert!(whole.last().expect("an end").get("states_until").is_none());
}

#[test]
fn no_sample_of_any_lab_finds_a_change_that_was_not_told() {
    for entry in
        std::fs::read_dir(format!("{}/../../labs", env!("CARGO_MANIFEST_DIR"))).expect("labs")
    {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let Some(name) = name.strip_suffix(".atm.yml") else {
            continue;
        };
        let lab = lab(name, 2);
        if lab.outside().next().is_some() {
            continue;
        }
        let mut nobody = ();
        let mut run = LabRun::new(&lab, &mut nobody);
        run.record_events(Options::default());
        run.limit_events(200_000);
        run.start();
        run.run_until(Instant::ZERO + lab.end());
        let stream = run.finish().expect("no captures").events.expect("a stream");
        let last = lines(&stream).pop().expect("an end");
        assert_eq!(last["untold"], 0, "{name}: {last}");
    }
}

#[test]
fn messages_of_cells_in_trains_are_those_of_cells_one_by_one() {
    for (name, seconds) in [
        ("two-subnets", 8),
        ("ring", 6),
        ("policed-tcp", 2),
        ("wan-detour", 16),
        ("telephony", 18),
        ("nhrp", 4),
    ] {
        let lab = lab(name, seconds);
        let run = |single: bool| {
            let mut nobody = ();
            let mut run = LabRun::new(&lab, &mut nobody);
            run.record_events(Options::default());
            if single {
                run.cell_by_cell();
            }
            run.start();
            run.run_until(Instant::ZERO + lab.end());
            let stream = run.finish().expect("no captures").events;
            let stream = stream.expect("a stream");
            // Lines of one instant have no order among each other.
            let mut lines: Vec<String> = stream.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let (trains, cells) = (run(false), run(true));
        let messages = |lines: &[String]| {
            let is = |line: &&String| line.starts_with("{\"is\":\"message\"");
            lines.iter().filter(is).count()
        };
        assert!(messages(&cells) > 100, "{name}");
        assert_eq!(messages(&trains), messages(&cells), "{name}");
        let other = trains.iter().zip(&cells).find(|(one, other)| one != other);
        assert_eq!(other, None, "{name}");
    }
}

/// A lab of 1016 machines, of which 1010 are hosts without any traffic.
fn crowd() -> Lab {
    let mut text = String::from(
        "switches: { s: {}, z: {} }\nlinks: [[s, z]]\nlane: { on: s, elans: { a: { subnet: 10.1.0.0/16 } } }\n\
         clip: { b: { subnet: 10.2.0.0/16, server: h0 } }\n\
         hosts:\n  x: { on: s, elan: a, ip: 10.1.0.1 }\n  y: { on: z, elan: a, ip: 10.1.0.2 }\n  w: { on: z, elan: a, ip: 10.1.0.3 }\n",
    );
    for number in 0..1010 {
        let on = ["s", "z"][number % 2];
        text.push_str(&format!(
            "  h{number}: {{ on: {on}, elan: b, ip: 10.2.{}.{} }}\n",
            1 + number / 200,
            1 + number % 200
        ));
    }
    text.push_str(
        "traffic: [{ name: p, from: x, to: y, kind: ping, rate: 10pps, start: 1s }]\nuntil: 1500ms\n",
    );
    let checked = aerostat_lab::parse("crowd", &text, &[]);
    checked.unwrap_or_else(|findings| panic!("{findings}")).lab
}

#[test]
fn a_stream_for_a_page_leaves_out_what_its_drawing_only_counts() {
    let lab = crowd();
    let drawn = |drawn| Options {
        drawn,
        ..Options::default()
    };
    let whole = lines(&recorded(&lab, drawn(false)));
    let part = lines(&recorded(&lab, drawn(true)));
    let count = |lines: &[Value], kind: &str| lines.iter().filter(|one| one["is"] == kind).count();
    assert_eq!((count(&whole, "node"), count(&part, "node")), (1016, 5));
    assert_eq!((count(&whole, "link"), count(&part, "link")), (1015, 4));
    let hosts = part.iter().filter_map(|line| line["hosts"].as_u64());
    assert_eq!(hosts.sum::<u64>(), 1011);
    // Nothing names a host that is counted, not even a leaf or a link of a tree.
    let hidden = |name: &str| name == "w" || name.starts_with("w-") || name.starts_with('h');
    for line in &part {
        for key in ["from", "to", "node", "link", "name"] {
            assert!(!line[key].as_str().is_some_and(hidden), "{line}");
        }
        for key in ["via", "leaves"] {
            let names = line[key].as_array().into_iter().flatten();
            assert!(!names.filter_map(Value::as_str).any(hidden), "{line}");
        }
        for key in ["links", "queues"] {
            let names = line[key].as_object().into_iter().flatten();
            assert!(!names.into_iter().any(|(name, _)| hidden(name)), "{line}");
        }
    }
    // Messages and steps are in the stream, or counted.
    let [all, rest] = [&whole, &part].map(|lines| lines.last().expect("an end"));
    for (kind, most) in [("message", 1000), ("story", 10)] {
        let key = if kind == "message" { "messages" } else { kind };
        let number = |end: &Value| end["more"][key].as_u64().expect("a number") as usize;
        assert_eq!(
            count(&whole, kind),
            count(&part, kind) + number(rest),
            "{kind}"
        );
        assert!(number(rest) > most && number(all) == 0, "{rest}");
    }
    assert_eq!(
        (&all["more"]["nodes"], &rest["more"]["nodes"]),
        (&1011.into(), &1011.into())
    );
    // What is drawn has the states that it has in the whole stream, except for branches of trees.
    let names = |lines: &[Value], kind: &str| -> BTreeSet<String> {
        let states = states(lines, kind, u64::MAX).into_iter();
        let states = states.map(|state| {
            let words = ["from", "to", "node", "what", "state", "qos"];
            words.map(|key| text(&state, key)).join(" ")
        });
        states
            .filter(|words| !words.split(' ').any(hidden))
            .collect()
    };
    for kind in ["call", "member", "shortcut", "fault"] {
        assert_eq!(names(&whole, kind), names(&part, kind));
    }
    assert!(!names(&part, "call").is_empty());
}
