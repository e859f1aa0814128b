//! `run`: what its JSON says, and that it says the same twice.

use super::run;
use serde_json::Value;

fn flows<'a>(document: &'a Value, phase: &str) -> Vec<&'a Value> {
    let flows = document["flows"].as_array().expect("flows");
    flows.iter().filter(|flow| flow["phase"] == phase).collect()
}

#[test]
fn json_has_flows_shortcuts_and_nodes_and_repeats_to_the_byte() {
    let args = [
        "run",
        "labs/two-subnets.atm.yml",
        "--until",
        "4020ms",
        "-o",
        "json",
        "-q",
    ];
    let (first, second) = (run(&args), run(&args));
    assert_eq!((first.code, first.err.as_str()), (0, ""));
    assert_eq!(first.out, second.out, "the same seed gives the same bytes");
    let document: Value = serde_json::from_str(&first.out).expect("JSON");
    assert_eq!(document["schema"], "aerostat.run.v1");
    assert_eq!(document["seed"], 1);
    let routed = flows(&document, "routed");
    assert!(
        routed
            .iter()
            .any(|flow| flow["name"] == "ping" && flow["from"] == "urku")
    );
    let shortcut = flows(&document, "shortcut");
    let bulk = shortcut
        .iter()
        .find(|flow| flow["name"] == "bulk")
        .expect("bulk on a shortcut");
    for key in [
        "min",
        "mean",
        "p50",
        "p99",
        "max",
        "variance",
        "standard_deviation",
    ] {
        assert!(bulk["delay_us"][key].is_number(), "delay_us.{key}");
        assert!(bulk["jitter_us"][key].is_number(), "jitter_us.{key}");
    }
    assert_eq!(bulk["lost"], 0);
    assert!(
        bulk["throughput_mbps"].as_f64().expect("number") > 35.0,
        "past the routers: {bulk}"
    );
    let shortcuts = document["shortcuts"].as_array().expect("shortcuts");
    assert!(
        shortcuts.iter().any(|s| s["from"] == "urku"
            && s["destination"] == "10.2.0.10"
            && s["state"] == "resolved"
            && s["vci"].as_u64().is_some_and(|vci| vci >= 32)),
        "{shortcuts:#?}"
    );
    assert!(document["nodes"]["r1"]["port"]["interfaces"].is_array());
}

#[test]
fn without_mpoa_everything_stays_routed() {
    let ran = run(&[
        "run",
        "labs/two-subnets.atm.yml",
        "--set",
        "mpoa=false",
        "--until",
        "4500ms",
        "-o",
        "json",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.err.contains("joined ELAN"),
        "the story is told: {}",
        ran.err
    );
    let document: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert!(flows(&document, "shortcut").is_empty());
    assert_eq!(document["shortcuts"], Value::Array(Vec::new()));
    let bulk = flows(&document, "routed")
        .into_iter()
        .find(|flow| flow["name"] == "bulk")
        .cloned();
    let mbps = bulk.expect("bulk is routed")["throughput_mbps"]
        .as_f64()
        .expect("number");
    assert!(mbps > 1.0 && mbps < 35.0, "bound by the routers: {mbps}");
}
