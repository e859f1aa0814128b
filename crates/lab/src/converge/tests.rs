use super::*;
use crate::build::Flavour;
use crate::model::{Lab, NodeId};
use crate::resolve::tests::SMALL;
use crate::settings::settings;
use aerostat_proto::Instant;
use std::collections::BTreeSet;

const EMBEDDED: Means = Means {
    flavour: Flavour::Embedded,
    split: false,
    makes: false,
};

/// A lab that has become that of this text.
fn after(running: &Lab, text: &str) -> Lab {
    let next = crate::parse_for("t.atm.yml", text, &[], &running.numbers);
    let next = next.unwrap_or_else(|d| panic!("{d}")).lab;
    beside(running, &next).unwrap()
}

fn first(text: &str) -> Lab {
    crate::parse("t.atm.yml", text, &[])
        .unwrap_or_else(|d| panic!("{d}"))
        .lab
}

/// The plan between two files, a line for each change; what a change needs stands behind it.
fn told(old: &str, new: &str, means: Means) -> Vec<String> {
    let old = first(old);
    let plan = plan(&old, &after(&old, new), means);
    let line = |change: &Change| match &change.needs {
        Needs::Nothing => change.to_string(),
        Needs::Restart(nodes) => format!("{change} | restart {nodes:?}"),
        Needs::NewStart(why) => format!("{change} | new start: {why}"),
    };
    plan.changes.iter().map(line).collect()
}

/// Two hosts, a switch and some of everything more than the small lab has.
const LARGE: &str = "
switches: { s1: {}, s2: {}, s3: {} }
links: [[s1, s2, { rate: oc3, delay: 5us }], [s2, s3]]
lane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 }, b: { subnet: 10.2.0.0/24 } } }
clip: { w: { subnet: 10.3.0.0/24, server: z } }
routers: { r: { on: s2, elans: { a: 10.1.0.1, b: 10.2.0.1 } } }
hosts:
  v: { on: s3, elan: b, ip: 10.2.0.9 }
  x: { on: s1, elan: a, ip: 10.1.0.10 }
  z: { on: s2, elan: w, ip: 10.3.0.1 }
  y: { on: s2, elan: b, ip: 10.2.0.10 }
  u: { on: s3, elan: w, ip: 10.3.0.2 }
pvcs: [{ from: z, vc: 0.100, to: u, to_vc: 0.101, pcr: 2000 }]
traffic:
  - { name: one, from: x, to: y, kind: udp, rate: 10pps }
  - { name: two, from: y, to: x, kind: load, load: 5%, frames: 512 }
faults: [{ at: 3s, link_down: s1-s2 }, { at: 4s, restart: y }]
capture: [y-s2]
";

#[test]
fn the_same_file_needs_no_change_whatever_the_order_of_its_entries() {
    for text in [SMALL, LARGE] {
        assert_eq!(told(text, text, EMBEDDED), Vec::<String>::new());
    }
    let order = LARGE.replace("  v: { on: s3, elan: b, ip: 10.2.0.9 }\n", "");
    let order = order.replace("pvcs:", "  v: { on: s3, elan: b, ip: 10.2.0.9 }\npvcs:");
    assert_ne!(order, LARGE);
    assert_eq!(told(LARGE, &order, EMBEDDED), Vec::<String>::new());
}

/// Settings name everything by its name, so they tell whether each index leads to what it should.
#[test]
fn a_file_with_the_indices_of_a_running_lab_is_the_same_file() {
    let files = [
        SMALL.to_owned(),
        LARGE.to_owned(),
        LARGE
            .replace("s3: {}", "s3: {}, s0: {}")
            .replace("[s2, s3]]", "[s0, s3], [s2, s3]]")
            .replace("on: s1, elan: a", "on: s3, elan: a"),
        LARGE.replace(
            "  x: { on: s1, elan: a, ip: 10.1.0.10 }",
            "  x: { on: s1, elan: b, ip: 10.2.0.77 }",
        ),
    ];
    let files = files.map(|file| file.replace("of: x-s1", "of: y-s2"));
    let mut lab = first(&files[0]);
    for file in files
        .iter()
        .chain(files.iter().rev())
        .chain([&files[2], &files[0]])
    {
        let next = crate::parse_for("t.atm.yml", file, &[], &lab.numbers)
            .unwrap()
            .lab;
        let placed = beside(&lab, &next).unwrap();
        let [mut placed_settings, wanted] =
            [&placed, &next].map(|lab| settings(lab, Instant::ZERO));
        // Ports that were used keep their numbers, and flows theirs; what flows did stays in the results.
        let there = |lab: &Lab, name: &str| lab.find(name).is_some();
        for (name, own) in placed_settings["nodes"].as_object_mut().unwrap() {
            assert!(there(&next, name), "{name}");
            if own.get("ports").is_some() {
                own["ports"] = wanted["nodes"][name]["ports"].clone();
            }
        }
        let flows = placed_settings["traffic"].as_object_mut().unwrap();
        flows.retain(|name, _| wanted["traffic"].get(name).is_some());
        for (name, own) in flows {
            own["port"] = wanted["traffic"][name]["port"].clone();
        }
        assert_eq!(placed_settings, wanted, "{file}");
        for (id, node) in lab.nodes() {
            if placed.has_node(id) {
                assert_eq!(placed.node(id).name, node.name);
            }
        }
        for (id, link) in placed.links() {
            for end in link.ends {
                let here = crate::model::NodeKind::clone(&placed.node(end.node).kind);
                if let crate::model::NodeKind::Switch(switch) = here {
                    assert_eq!(
                        switch.ports[usize::from(end.port)].link,
                        id,
                        "{}",
                        link.name
                    );
                }
            }
        }
        lab = placed;
    }
}

#[test]
fn what_stays_keeps_its_addresses_and_ports() {
    let lab = first(LARGE);
    let fewer = LARGE.replace(
        "  v: { on: s3, elan: b, ip: 10.2.0.9 }\n",
        "  n: { on: s2, elan: a, ip: 10.1.0.99 }\n",
    );
    let now = after(&lab, &fewer);
    for name in ["x", "y", "z", "u"] {
        let at = |lab: &Lab| {
            lab.node(lab.find(name).unwrap())
                .attachment()
                .unwrap()
                .clone()
        };
        assert_eq!(at(&lab), at(&now), "{name}");
    }
    let number = |lab: &Lab, name: &str| lab.numbers.hosts.of(name);
    assert_eq!(
        (number(&lab, "v"), number(&now, "v"), number(&now, "n")),
        (1, 1, 6)
    );
    assert!(now.find("v").is_none() && !now.has_node(lab.find("v").unwrap()));
    assert_eq!(now.find("n"), Some(NodeId(lab.nodes.len())));
    // The host comes back with its old number, to its old port.
    let again = after(&now, LARGE);
    let at = |lab: &Lab| lab.node(lab.find("v").unwrap()).clone();
    assert_eq!(at(&lab), at(&again));
    assert!(again.find("n").is_none());
}

const KERNEL: Means = Means {
    flavour: Flavour::Kernel,
    split: false,
    makes: false,
};

/// The command makes interfaces.
const MAKES: Means = Means {
    makes: true,
    ..KERNEL
};

const SPLIT: Means = Means {
    split: true,
    ..EMBEDDED
};

const NEW_HOST: &str = "  n: { on: s2, elan: a, ip: 10.1.0.99 }\n  v:";

/// Text of the large lab, its replacement, how the lab runs, and a part of the plan.
const CASES: &[(&str, &str, Means, &str)] = &[
    ("  v:", NEW_HOST, EMBEDDED, "+ host n: on s2"),
    (
        "  v:",
        NEW_HOST,
        KERNEL,
        "+ host n: on s2 | new start: a lab that runs has no right",
    ),
    (
        "  v:",
        NEW_HOST,
        Means {
            split: true,
            ..MAKES
        },
        "+ host n: on s2 | new start: with --split",
    ),
    (
        "  v:",
        NEW_HOST,
        SPLIT,
        "+ host n: on s2 | new start: with --split",
    ),
    (
        "  v: { on: s3, elan: b, ip: 10.2.0.9 }\n",
        "",
        EMBEDDED,
        "- host v: on s3",
    ),
    (
        "delay: 5us",
        "delay: 9us",
        SPLIT,
        "~ link s1-s2: delay_s 5e-6 -> 9e-6",
    ),
    (
        "delay: 5us",
        "delay: 5us, police: true",
        EMBEDDED,
        "~ link s1-s2: police none -> true | restart {\"s1\", \"s2\"}",
    ),
    (
        ", [s2, s3]]",
        ", [s2, s3], [s1, s3]]",
        EMBEDDED,
        "+ link s1-s3: ends [s1 s3]",
    ),
    (
        "rate: 10pps",
        "rate: 20pps",
        EMBEDDED,
        "~ traffic one: rate.packets_per_second 10.0 -> 20.0",
    ),
    ("{ at: 3s,", "{ at: 5s,", EMBEDDED, "~ faults schedule"),
    (
        "ip: 10.2.0.10 }",
        "ip: 10.2.0.11 }",
        EMBEDDED,
        "~ host y: interfaces",
    ),
    (
        "ip: 10.2.0.10 }",
        "ip: 10.2.0.10, mpoa: true }",
        EMBEDDED,
        "~ host y: mpoa none -> given",
    ),
    (
        "b: { subnet: 10.2.0.0/24 }",
        "b: { subnet: 10.2.0.0/24, mtu: 4544 }",
        EMBEDDED,
        "restart {\"lane\", \"r\", \"v\", \"y\"}",
    ),
    (
        "10.2.0.0/24 } } }",
        "10.2.0.0/24 }, c: { subnet: 10.4.0.0/24 } } }",
        EMBEDDED,
        "+ subnet c: kind lane, subnet 10.4.0.0/24",
    ),
    (
        "pcr: 2000",
        "pcr: 3000",
        EMBEDDED,
        "~ pvc z:0.100 - u:0.101: qos",
    ),
    (
        "vc: 0.100, to: u, to_vc: 0.101",
        "vc: 0.200, to: u, to_vc: 0.201",
        EMBEDDED,
        "+ pvc z:0.200 - u:0.201",
    ),
    (
        "capture: [y-s2]",
        "capture: [x-s1]",
        EMBEDDED,
        "~ lab capture: capture [y-s2] -> [x-s1] | new start",
    ),
    (
        "switches:",
        "seed: 7\nswitches:",
        EMBEDDED,
        "~ lab seed: seed 1 -> 7 | new start",
    ),
    (
        "ip: 10.2.0.10 }",
        "ip: 10.2.0.10, uni: 4.0 }",
        EMBEDDED,
        "~ lab uni | new start: the highest version",
    ),
    (
        "switches:",
        "timers: { uni: { t303: 9s } }\nswitches:",
        EMBEDDED,
        "~ lab timers: ",
    ),
];

#[test]
fn each_kind_of_change_is_told_with_what_it_needs() {
    for (old, new, means, says) in CASES {
        let changed = LARGE.replacen(*old, new, 1);
        assert_ne!(changed, LARGE, "{old}");
        let told = told(LARGE, &changed, *means);
        assert!(
            told.iter().any(|line| line.contains(*says)),
            "{says}: {told:#?}"
        );
    }
}

/// Nothing of a new host concerns the others.
#[test]
fn a_change_is_told_once_and_nothing_that_it_does_not_concern() {
    let one = |old: &str, new: &str| told(LARGE, &LARGE.replacen(old, new, 1), EMBEDDED).len();
    assert_eq!(
        one("  v:", "  n: { on: s2, elan: a, ip: 10.1.0.99 }\n  v:"),
        1
    );
    assert_eq!(one("  v: { on: s3, elan: b, ip: 10.2.0.9 }\n", ""), 1);
    assert_eq!(one("rate: 10pps", "rate: 11pps"), 1);
    assert_eq!(
        one(
            "10.2.0.0/24 } } }",
            "10.2.0.0/24 }, c: { subnet: 10.4.0.0/24 } } }"
        ),
        1
    );
}

#[test]
fn a_lab_that_grows_beyond_the_limits_of_its_start_says_so() {
    let hosts = |count: usize| {
        let hosts = (0..count).map(|n| {
            format!(
                "  h{n}: {{ on: s, elan: a, ip: 10.0.{}.{} }}\n",
                n / 200,
                n % 200 + 1
            )
        });
        let hosts: String = hosts.collect();
        format!(
            "switches: {{ s: {{}} }}\nlane: {{ on: s, elans: {{ a: {{ subnet: 10.0.0.0/16 }} }} }}\nhosts:\n{hosts}"
        )
    };
    let many = told(&hosts(10), &hosts(2000), EMBEDDED);
    assert!(
        many.iter().any(|line| line
            .contains("~ lab limits | new start: all nodes have the limits of their start")),
        "{:?}",
        many.last()
    );
    let few = told(&hosts(10), &hosts(30), EMBEDDED);
    assert!(few.iter().all(|line| line.starts_with("+ host")), "{few:?}");
    let fewer = told(&hosts(2000), &hosts(10), EMBEDDED);
    assert!(
        fewer.iter().all(|line| line.starts_with("- host")),
        "{:?}",
        fewer.last()
    );
}

/// All nodes have room for the clients of the start, whatever was removed since.
#[test]
fn what_the_lab_began_with_can_come_back() {
    let hosts = |count: usize| {
        let host = |n: usize| {
            format!(
                "  h{n}: {{ on: s, elan: a, ip: 10.0.{}.{} }}\n",
                n / 200,
                n % 200 + 1
            )
        };
        let hosts: String = (0..count).map(host).collect();
        format!(
            "switches: {{ s: {{}} }}\nlane: {{ on: s, elans: {{ a: {{ subnet: 10.0.0.0/16 }} }} }}\nhosts:\n{hosts}"
        )
    };
    let mut lab = first(&hosts(500));
    for (count, told) in [
        (499, "- host h499"),
        (450, "- host h450"),
        (500, "+ host h450"),
    ] {
        let next = after(&lab, &hosts(count));
        let changes = plan(&lab, &next, EMBEDDED).changes;
        assert!(
            changes.iter().all(|change| change.needs == Needs::Nothing),
            "{changes:?}"
        );
        assert!(changes[0].to_string().starts_with(told), "{}", changes[0]);
        lab = next;
    }
    let more = plan(&lab, &after(&lab, &hosts(501)), EMBEDDED);
    assert_eq!(more.new_starts().count(), 1);
}

/// Packets of a sender that has another address are those of another flow.
#[test]
fn a_flow_whose_sender_gets_another_address_begins_anew() {
    let moved = LARGE.replace("elan: a, ip: 10.1.0.10 }", "elan: a, ip: 10.1.0.77 }");
    let told = told(LARGE, &moved, EMBEDDED);
    for flow in ["~ traffic one", "~ traffic two"] {
        assert!(told.iter().any(|line| line.starts_with(flow)), "{told:?}");
    }
}

/// A link that is there comes before one of the same name that was removed.
#[test]
fn a_link_that_is_there_keeps_its_place() {
    let slow = LARGE.replace("rate: oc3", "rate: e3");
    let without = LARGE.replace("[s1, s2, { rate: oc3, delay: 5us }], ", "[s1, s3], ");
    let without = without.replace("link_down: s1-s2", "link_down: s2-s3");
    let mut lab = first(LARGE);
    for text in [&without, &slow] {
        lab = after(&lab, text);
    }
    let back = plan(&lab, &after(&lab, LARGE), EMBEDDED);
    let told: Vec<String> = back.changes.iter().map(ToString::to_string).collect();
    assert!(
        told.iter().any(|line| line.starts_with("~ link s1-s2: ")),
        "{told:?}"
    );
    assert!(
        !told
            .iter()
            .any(|line| line.contains("link s1-s2") && !line.starts_with('~')),
        "{told:?}"
    );
}

/// A file that is changed again and again does not let the lab grow: what comes back takes its place.
#[test]
fn what_is_removed_and_added_again_takes_its_place() {
    let without = LARGE.replace("  v: { on: s3, elan: b, ip: 10.2.0.9 }\n", "");
    let mut lab = first(LARGE);
    let size = (lab.nodes.len(), lab.links.len(), lab.traffic.len());
    assert!(size.0 > 8);
    for _ in 0..100 {
        lab = after(&after(&lab, &without), LARGE);
    }
    assert_eq!(size, (lab.nodes.len(), lab.links.len(), lab.traffic.len()));
    assert_eq!(lab.retired.count(), 0);
}

/// Kernel hosts come, go and change if the command makes their interfaces; bridges of hosts are those of the start.
#[test]
fn interfaces_that_the_command_makes_need_no_new_start() {
    const V: &str = "  v: { on: s3, elan: b, ip: 10.2.0.9 }\n";
    let bridge = V.replace("10.2.0.9", "10.2.0.9, bridge: { st: 10.2.0.20 }");
    let cases = [
        ("  v:", NEW_HOST, [""; 2], ["n", ""]),
        (V, "", [""; 2], ["", "v"]),
        ("ip: 10.2.0.9", "ip: 10.2.0.8", ["v", ""], ["v", "v"]),
        (
            "ip: 10.2.0.9",
            "ip: 10.2.0.9, kernel: false",
            ["v", ""],
            ["", "v"],
        ),
        (
            "10.2.0.0/24 }",
            "10.2.0.0/24, mtu: 4544 }",
            ["lane r v y", ""],
            ["v y"; 2],
        ),
        (V, &bridge, ["", BRIDGES], ["v", "v"]),
    ];
    for (old, new, [restarts, why], [made, gone]) in cases {
        let changed = LARGE.replacen(old, new, 1);
        assert_ne!(changed, LARGE, "{old}");
        let before = first(LARGE);
        let next = after(&before, &changed);
        let plan = plan(&before, &next, MAKES);
        let reasons: Vec<&str> = plan.new_starts().map(|(_, why)| why).collect();
        assert!(
            reasons
                .iter()
                .all(|reason| !why.is_empty() && reason.starts_with(why)),
            "{new}: {reasons:?}"
        );
        assert_eq!(reasons.is_empty(), why.is_empty(), "{new}");
        let words: Vec<&str> = plan.restarts().into_iter().collect();
        assert_eq!(words.join(" "), restarts, "{new}");
        let all = Interfaces::between(&before, &next, Flavour::Kernel);
        let names = |of: &BTreeSet<NodeId>| {
            let names = of.iter().map(|id| next.node(*id).name.as_str());
            names.collect::<Vec<_>>().join(" ")
        };
        assert_eq!([names(&all.made), names(&all.gone)], [made, gone], "{new}");
        let plan = super::plan(&before, &next, KERNEL);
        assert_eq!(plan.new_starts().next().is_none(), all.is_empty(), "{new}");
    }
}

/// Beginning of the reason for bridges.
const BRIDGES: &str = "bridges of kernel hosts";
