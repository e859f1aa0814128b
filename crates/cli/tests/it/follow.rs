//! The way of a packet, as the command shows it.

use crate::{root, run};
use serde_json::Value;
use std::collections::BTreeSet;

fn document(args: &[&str]) -> Value {
    let ran = run(&[&["follow"], args, &["-o", "json"]].concat());
    assert!(matches!(ran.code, 0 | 3), "{args:?}: {}", ran.err);
    serde_json::from_str(&ran.out).unwrap()
}

/// The sum of the stages that are a part of the delay.
fn sum(document: &Value) -> u64 {
    let stages = document["stages"].as_array().unwrap().iter();
    let counted = stages.filter(|stage| stage["counted"] == true);
    counted
        .map(|stage| stage["takes_ns"].as_u64().unwrap())
        .sum()
}

#[test]
fn the_parts_of_a_ping_over_two_routers_are_its_delay() {
    let first = document(&["two-subnets", "ping"]);
    assert_eq!(first, document(&["two-subnets", "ping:1"]));
    assert_eq!(first["schema"], "aerostat.follow.v1");
    assert_eq!(first["fate"], "delivered");
    assert_eq!(first["delay_ns"].as_u64(), Some(sum(&first)));
    let stages = first["stages"].as_array().unwrap();
    let routers = stages.iter().filter(|stage| stage["what"] == "router");
    let routers: Vec<&Value> = routers.map(|stage| &stage["node"]).collect();
    assert_eq!(routers, ["r1", "r2"]);
    // Rules of the published schema.
    let schema = std::fs::read_to_string(root().join("docs/follow.schema.json")).unwrap();
    assert_eq!(run(&["follow", "--schema"]).out, schema);
    let schema: Value = serde_json::from_str(&schema).unwrap();
    for key in first.as_object().unwrap().keys() {
        assert!(schema["properties"].get(key).is_some(), "{key}");
    }
    for key in schema["required"].as_array().unwrap() {
        assert!(first.get(key.as_str().unwrap()).is_some(), "{key}");
    }
    let text = schema.to_string();
    let kinds: BTreeSet<String> = stages
        .iter()
        .map(|stage| stage["what"].to_string())
        .collect();
    assert!(kinds.len() > 6, "{kinds:?}");
    for kind in kinds {
        assert!(text.contains(&format!("\"const\":{kind}")), "{kind}");
    }
}

#[test]
fn a_way_for_people_fits_80_columns_and_says_what_a_cell_waited_behind() {
    let ran = run(&["follow", "two-subnets", "bulk:40"]);
    assert_eq!((ran.code, &*ran.err), (0, ""));
    assert!(
        ran.out.starts_with("bulk:40, urku to sello, "),
        "{}",
        ran.out
    );
    ran.shows("of its own (");
    for line in ran.out.lines().skip(1) {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn what_cannot_be_followed_is_an_error_with_a_hint() {
    for (args, said) in [
        (
            ["two-subnets", "pong"],
            "the lab has no flow 'pong'\n  hint: did you mean 'ping'?",
        ),
        (["two-subnets", "ping:0"], "packets have numbers from 1 on"),
        (["two-subnets", "ping:x"], "packets have numbers from 1 on"),
        (
            ["two-subnets", "ping:999999"],
            "the flow 'ping' has sent 20 packets when the run ends",
        ),
        (["two-subnot", "ping"], "did you mean 'two-subnets'?"),
    ] {
        let ran = run(&["follow", args[0], args[1]]);
        ran.ends(2, said);
    }
    assert_eq!(run(&["follow", "campus"]).code, 2);
}
