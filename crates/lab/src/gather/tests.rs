//! One mistake, one complaint: on mistakes alone, and beside others.

use crate::diag::{Diagnostic, Span};
use crate::resolve::tests::SMALL;
use crate::tree::{Tree, Value};

/// The messages of a lab that is wrong, in the order of the file.
fn told(text: &str) -> Vec<String> {
    let found = crate::parse("t.atm.yml", text, &[]).expect_err("a mistake");
    let errors = super::errors(&found);
    errors.map(|error| error.message.clone()).collect()
}

#[test]
fn a_value_of_a_wrong_type_hides_no_mistake_of_another_kind() {
    let text = SMALL
        .replace("10.1.0.10", "10.0.0.300")
        .replace("10.2.0.10", "10.3.0.10")
        .replace("links: [[s1, s2]]", "links: [[s1, s2, { rate: 3parsecs }]]");
    let text = format!(
        "{text}  z: {{ on: s9, elan: a, ip: 10.1.0.12 }}\n  w: {{ on: s1, elan: b, ip: 10.2.0.12 }}\n\
         traffic: [{{ from: x, to: w, kind: ping }}, {{ from: w, to: nobody, kind: ping }}, {{ from: r, to: w, kind: fax }}]\n\
         faults: [{{ at: soon, crash: w }}, {{ at: 1s, link_down: s1-s7 }}]\nuntil: tomorrow\ntrafic: []\n"
    );
    let all = told(&text);
    for (says, times) in [
        ("10.0.0.300", 1),
        ("3parsecs", 1),
        ("10.3.0.10 is outside 10.2.0.0/24", 1),
        ("there is no switch 's9'", 1),
        ("there is no host 'nobody'", 1),
        ("'fax': expected tcp, udp", 1),
        ("'r' is a router, not a host", 1),
        ("'soon'", 1),
        ("there is no link 's1-s7'", 1),
        ("'tomorrow'", 1),
        ("unknown key 'trafic'", 1),
        // These would follow from the mistakes above.
        ("'x'", 0),
        ("missing", 0),
    ] {
        let count = all.iter().filter(|one| one.contains(says)).count();
        assert_eq!(count, times, "{says}: {all:#?}");
    }
    assert_eq!(all.len(), 11, "{all:#?}");
}

#[test]
fn what_follows_from_a_mistake_is_not_told() {
    for (from, to, says) in [
        // Members, the router and the flows of the ELAN depend on its subnet.
        ("10.1.0.0/24", "10.1.0.0/240", "'10.1.0.0/240'"),
        // All of LANE.
        ("lane: { on: s1", "lane: { on: [s1]", "not a list"),
        // The way of every host through the router.
        ("r: { on: s2", "r: { on: s2, queue: many", "'many'"),
        ("b: 10.2.0.1 }", "b: 10.2.0.1.1 }", "'10.2.0.1.1'"),
        // Everything.
        (
            "switches: { s1: {}, s2: {} }",
            "switches: [s1, s2]",
            "expected a mapping",
        ),
        (
            "links: [[s1, s2]]",
            "links: [[s1, s2, s3, s4]]",
            "a link is",
        ),
    ] {
        assert!(SMALL.contains(from), "{from}");
        let text = format!(
            "{}traffic: [{{ from: x, to: y, kind: ping }}]\n",
            SMALL.replace(from, to)
        );
        let all = told(&text);
        assert!(all.len() == 1 && all[0].contains(says), "{to}: {all:#?}");
    }
}

#[test]
fn a_key_that_stands_twice_hides_no_other_mistake_and_hides_no_name() {
    let text = SMALL
        .replace("10.2.0.10", "10.3.0.10")
        .replace("lane: { on: s1", "lane: { on: s1, on: s1");
    let more = "hosts: { z: { on: s2, elan: b, ip: 10.2.0.12, ip: 10.2.0.13 } }\n\
        traffic: [{ from: x, to: z, kind: ping }, { from: x, to: q, kind: ping }]\n";
    let all = told(&format!("{text}{more}"));
    for says in [
        "the key 'on' stands twice in one mapping",
        "the key 'hosts' stands twice in one mapping",
        "the key 'ip' stands twice in one mapping",
        "10.3.0.10 is outside 10.2.0.0/24",
        "there is no host 'q'",
    ] {
        let count = all.iter().filter(|one| one.contains(says)).count();
        assert_eq!(count, 1, "{says}: {all:#?}");
    }
    assert_eq!(all.len(), 5, "{all:#?}");
}

#[test]
fn a_wrong_kind_or_peer_of_a_flow_hides_neither_its_size_nor_its_port() {
    let flow = |flow: &str| told(&format!("{SMALL}traffic: [{{ {flow} }}]\n"));
    for (text, says) in [
        (
            "from: x, to: y, kind: fax, size: 9MiB, port: 70000",
            "'fax'",
        ),
        (
            "from: x, to: nobody, kind: rr, size: 9MiB, port: 70000",
            "'nobody'",
        ),
        (
            "from: x, to: x, kind: rr, size: 9MiB, port: 70000",
            "to itself",
        ),
    ] {
        let all = flow(text);
        for says in [says, "the size of this traffic", "port is 1 to 65535"] {
            assert!(all.iter().any(|one| one.contains(says)), "{text}: {all:#?}");
        }
        assert_eq!(all.len(), 3, "{text}: {all:#?}");
    }
    // What depends on the kind is not told.
    for text in [
        "from: x, to: y, kind: pink, port: 70, rate: 1pps",
        "from: x, to: y, kind: png",
        "from: x, to: y, kind: trp, size: 1",
        "from: x, to: y, kind: updp, rate: 9pps, poisson: true, tick: 1ms",
        "from: x, to: y, kind: r, size: 100000",
    ] {
        let all = flow(text);
        assert!(
            all.len() == 1 && all[0].contains("expected tcp"),
            "{text}: {all:#?}"
        );
    }
}

#[test]
fn a_host_that_is_wrong_hides_no_double_names_elsewhere() {
    let wrong = SMALL.replace("10.1.0.10", "10.3.0.10");
    let programs = "ip: 10.2.0.10, sockets: [{ name: p, listen: sink }, { name: p, listen: sink, selector: e1 }]";
    let flows = "traffic: [{ from: r, to: y, kind: ping }, { name: f, from: y, to: y2, kind: ping }, \
        { name: f, from: y2, to: y, kind: ping }]\n";
    let text = wrong.replace("ip: 10.2.0.10", programs);
    let all = told(&format!(
        "{text}  y2: {{ on: s2, elan: b, ip: 10.2.0.11 }}\n{flows}"
    ));
    for says in [
        "10.3.0.10 is outside",
        "two programs with one name: 'p'",
        "'r' is a router, not a host",
        "two flows with one name: 'f'",
    ] {
        assert!(all.iter().any(|one| one.contains(says)), "{says}: {all:#?}");
    }
    assert_eq!(all.len(), 4, "{all:#?}");
}

#[test]
fn an_unknown_tag_hides_no_other_mistake() {
    let all = told(
        &SMALL
            .replace("10.1.0.10", "!v4 10.1.0.10")
            .replace("10.2.0.10", "10.3.0.10"),
    );
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(
        all[0].contains("unknown tag '!v4'") && all[1].contains("10.3.0.10 is outside"),
        "{all:?}"
    );
}

#[test]
fn a_number_is_a_text_where_a_text_is_asked_and_the_schema_says_so() {
    let text = format!("description: 1.50\n{}", SMALL.replace("s1", "1"));
    let lab = crate::parse("t.atm.yml", &text, &[]).expect("a lab").lab;
    assert_eq!(lab.description.as_deref(), Some("1.50"), "as it is written");
    assert_eq!(lab.nodes[0].name, "1");
    let schema = crate::schema();
    let kinds = serde_json::json!(["string", "number", "boolean", "null"]);
    assert_eq!(schema["properties"]["description"]["type"], kinds);
    let elan = &schema["$defs"]["HostFile"]["properties"]["elan"]["type"];
    assert_eq!(*elan, serde_json::json!(["string", "number", "boolean"]));
}

/// All values of a tree with their places and keys, without texts that may be anything.
fn values(tree: &Tree, key: &str, all: &mut Vec<(Span, String)>) {
    match &tree.value {
        Value::Map(entries) => {
            let entries = entries.iter().filter(|(key, _)| key.text != "description");
            entries.for_each(|(key, value)| values(value, &key.text, all));
        }
        Value::List(items) => items.iter().for_each(|item| values(item, key, all)),
        Value::Bool(_) | Value::Text(_) => all.push((tree.at, key.to_owned())),
        Value::Null => {}
    }
}

#[test]
fn one_wrong_value_in_a_lab_is_one_complaint_and_hides_no_other() {
    let labs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../labs");
    let mut count = 0;
    for file in std::fs::read_dir(labs).unwrap().flatten() {
        if !file.path().is_file() {
            continue;
        }
        let text = std::fs::read_to_string(file.path()).unwrap();
        if text.contains("capture:") {
            continue;
        }
        let mut places = Vec::new();
        values(&Tree::of(&text).unwrap(), "", &mut places);
        let text = format!("{}\ncapture: [s0-nowhere]\n", text.trim_end());
        for (at, key) in places {
            let mut wrong = text.clone();
            wrong.replace_range(at.start..at.end, "'?!'");
            let found = crate::parse("t.atm.yml", &wrong, &[]).unwrap_err();
            let own = |error: &&Diagnostic| (at.start..at.end + 3).contains(&error.at.start);
            let (own, others): (Vec<_>, Vec<_>) = super::errors(&found).partition(own);
            let others: Vec<_> = others.iter().map(|error| &error.message).collect();
            assert!(own.len() <= 1, "{found}");
            // The name that is wrong may be the one that a link lacks.
            if key != "name" {
                let nowhere = ["there is no link 's0-nowhere'"];
                assert_eq!(others, nowhere, "{}: {found}", file.path().display());
            }
            count += own.len();
        }
    }
    assert!(count > 500, "{count} mistakes");
}

#[test]
fn a_mistake_hides_no_other_with_the_same_words_and_what_follows_from_it_is_not_told() {
    let flow = "traffic: [{ from: x, to: y, kind: udp, rate: 100 }]\n";
    let cut = "faults: [{ at: 1s, link_down: x-s1 }, { at: 2s, crash: x }]\ncapture: [x-s1]\n";
    for (text, all) in [
        // The same word in another mistake.
        (
            format!("seed: h9\n{SMALL}traffic: [{{ from: x, to: h9, kind: ping }}]\nfaults: [{{ at: 1s, crash: h9 }}]\n"),
            &["'h9': expected a whole number", "there is no host 'h9'", "there is no node 'h9'"][..],
        ),
        // The same message in another round of the check.
        (
            format!("{SMALL}traffic: [{{ from: x, to: h9, kind: ping }}, {{ from: h9, to: 7, kind: ping }}]\n")
                .replace("10.2.0.1 }", "10.2.0.300 }"),
            &[
                "'10.2.0.300': expected an IPv4 address such as 10.1.0.10",
                "there is no host 'h9'",
                "there is no host 'h9'",
                "there is no host '7'",
            ],
        ),
        (
            format!("{SMALL}{flow}"),
            &["'100': expected a rate such as 450pps or 2Mbps"],
        ),
        (
            format!("{SMALL}{flow}").replace("rate: 100", "rat: 100pps"),
            &["unknown key 'rat'"],
        ),
        (
            format!("{SMALL}{flow}").replace("kind: udp, rate: 100", "knid: ping"),
            &["unknown key 'knid'"],
        ),
        // The access link of a host with a mistake.
        (
            format!("{SMALL}{cut}").replace("10.1.0.10", "10.1.0.x"),
            &["'10.1.0.x': expected an IPv4 address such as 10.1.0.10"],
        ),
        (
            format!("{SMALL}{cut}").replace("on: s1, elan: a, ip", "on: s7, elan: a, ip"),
            &["there is no switch 's7'"],
        ),
        (
            format!("{SMALL}{cut}").replace("elan: a, ip", "elan: zz, ip"),
            &["there is no ELAN 'zz'"],
        ),
        // The entry behind one with a mistake.
        (
            format!("{SMALL}traffic: [{{ from: x, to: y, kind: fax }}, {{ from: x, to: y, kind: udp }}]\n"),
            &[
                "'fax': expected tcp, udp, ping, rr, voice or load",
                "two flows with one name: 'x-y'",
                "udp traffic needs a rate",
            ],
        ),
        // Two mistakes in one entry.
        (
            SMALL.replace("x: { on: s1, elan: a, ip: 10.1.0.10", "x: { on: s7, elan: a, ip: 10.1.0.x"),
            &["there is no switch 's7'", "'10.1.0.x': expected an IPv4 address such as 10.1.0.10"],
        ),
        (
            format!("{SMALL}{flow}").replace("rate: 100", "rate: 9pps, size: 70000"),
            &["the size of this traffic is 24 to 65507 octets"],
        ),
    ] {
        assert_eq!(told(&text), all, "{text}");
    }
}
