//! Drawings of a running lab.

use crate::live::{Runtime, wait_for};

#[test]
fn graph_of_a_running_lab_shows_its_shortcuts_its_connections_and_what_is_cut() {
    let runtime = Runtime::new("graph");
    runtime.ok(&["up", "-d", "-q", "--embedded", "labs/two-subnets.atm.yml"]);
    let drawn = |form| runtime.ok(&["graph", "two-subnets", "-o", form]);
    wait_for("the shortcut", || drawn("text").contains("shortcut  urku"));
    let text = drawn("text");
    let shortcut = text.lines().find(|line| line.starts_with("shortcut  urku"));
    let shortcut = shortcut.unwrap();
    assert!(shortcut.contains("sello") && shortcut.contains("to 10.2.0.10 on 0."));
    // All clients of an ELAN have their connections to its servers.
    let control = |line: &&str| line.starts_with("VCs") && line.contains("lane-control");
    assert!(text.lines().filter(control).count() >= 4, "{text}");
    let svg = drawn("svg");
    assert!(svg.contains("class=\"shortcut\"") && svg.contains(">shortcut to 10.2.0.10<"));
    assert!(drawn("mermaid").contains("shortcut to 10.2.0.10"));
    assert!(drawn("dot").contains("shortcut to 10.2.0.10"));

    runtime.ok(&["fault", "link-down", "sello-s2"]);
    let text = runtime.ok(&["graph", "--lab", "two-subnets"]);
    let cut = text.lines().find(|line| line.contains("link is cut"));
    assert!(cut.is_some_and(|line| line.contains("sello-s2")), "{text}");
    runtime.ok(&["fault", "crash", "urku"]);
    // The only running lab needs no name.
    let svg = runtime.ok(&["graph", "-o", "svg"]);
    assert!(svg.contains(">down<") && svg.contains("class=\"cut\""));
    runtime.ok(&["down"]);
    runtime.nothing_is_left();
}
