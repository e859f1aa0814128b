//! `run`: the contents of its JSON, and that two runs give the same.

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

/// The join of a host as a ladder: each message once, in order, with events in between.
#[test]
fn a_run_shows_its_messages() {
    let ran = run(&["run", "labs/two-hosts.atm.yml", "--trace", "--until", "1s"]);
    // The run ends before the traffic starts.
    assert_eq!(ran.code, 3, "{}", ran.err);
    // A warning that the traffic starts too late comes first.
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(lines.len() > 50, "{}", ran.out);
    let times: Vec<f64> = lines
        .iter()
        .map(|line| line.split_whitespace().next().unwrap().parse().unwrap())
        .collect();
    assert!(times.is_sorted(), "{}", ran.out);
    let mut rest = lines.iter();
    for step in [
        "urku ──► s1     0.5     BGN sq ",
        "s1 ──► urku   0.5     BGAK",
        "urku ──► s1     0.5     SETUP cr 1 called ",
        "s1 ──► urku   0.5     CONNECT cr 1",
        " LE_CONFIGURE_REQUEST ",
        " LE_CONFIGURE_RESPONSE elan a les ",
        " LE_JOIN_REQUEST elan a from urku/",
        " LE_JOIN_RESPONSE elan a lecid ",
        "· urku: joined ELAN a as LECID ",
    ] {
        assert!(
            rest.any(|line| line.contains(step)),
            "no '{step}' in its place:\n{}",
            ran.out
        );
    }
    let joins = lines
        .iter()
        .filter(|line| line.contains("urku ──► s1 ") && line.contains(" LE_JOIN_REQUEST "));
    assert_eq!(joins.count(), 1);
    // Results that are asked for have standard output.
    let args = ["run", "two-hosts", "--until", "1s", "-o", "json"];
    let with = run(&[&args[..], &["--trace"]].concat());
    let without = run(&args);
    assert_eq!(with.out, without.out, "looking changes nothing");
    let told = |text: &str| text.lines().filter(|line| line.contains("──►")).count();
    assert_eq!(told(&with.err), told(&ran.out));
    assert_eq!((told(&ran.err), told(&without.err)), (0, 0));
    // The messages alone.
    let quiet = run(&["run", "two-hosts", "--trace", "-q", "--until", "1s"]);
    assert!(
        quiet.out.lines().all(|line| line.contains("──►")),
        "{}",
        quiet.out
    );
}

#[test]
fn the_work_of_a_run_is_told_on_standard_error_and_changes_no_result() {
    let lab = "labs/policed-tcp.atm.yml";
    let run_with = |more: &[&str]| {
        run(&[&["run", lab, "--until", "1200ms", "-q", "-o", "json"], more].concat())
    };
    let (told, untold) = (run_with(&["--work"]), run_with(&[]));
    assert_eq!(told.out, untold.out);
    assert!(!untold.err.contains("work:"), "{}", untold.err);
    let line = told.err.lines().find(|line| line.starts_with("work: "));
    let numbers = |line: &str| -> Vec<u64> {
        line.split(' ')
            .filter_map(|word| word.parse().ok())
            .collect()
    };
    let [events, crossings, alone] = numbers(line.expect(&told.err))[..] else {
        panic!("{}", told.err);
    };
    let reasons = told.err.lines().filter(|line| line.starts_with("  "));
    let reasons: Vec<u64> = reasons.flat_map(numbers).collect();
    assert_eq!(reasons.iter().sum::<u64>(), alone, "{}", told.err);
    assert!(alone > 1000 && alone < crossings, "{}", told.err);
    assert!(events >= alone, "each of these cells is an event");
    let several = run(&["run", lab, "--work", "--seeds", "1-2"]);
    assert_eq!(several.code, 2, "{}", several.err);
}
