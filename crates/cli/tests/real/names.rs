//! Names inside hosts, and measurements between hosts: `exec`, `ping`, `pingall`, `iperf`.

use crate::live::{Runtime, can_run, has};
use serde_json::Value;

const LAB: &str = "labs/one-elan.atm.yml";

fn rows(out: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(out).expect("JSON");
    assert_eq!(
        all["schema"].as_str().map(|s| s.starts_with("aerostat.")),
        Some(true)
    );
    let lists = all.as_object().expect("an object").values();
    let mut lists = lists.filter_map(Value::as_array);
    lists.next().expect("rows").clone()
}

/// All six pairs of the lab answer all requests.
fn all_answer(runtime: &Runtime) {
    let all = rows(&runtime.ok(&["pingall", "-c", "2", "-o", "json"]));
    assert_eq!(all.len(), 6, "{all:?}");
    for row in &all {
        assert_eq!(
            (row["sent"].as_u64(), row["received"].as_u64()),
            (Some(2), Some(2)),
            "{row}"
        );
    }
}

/// A host that exists, a host that is down, and an unknown name.
fn words(runtime: &Runtime) {
    let good = rows(&runtime.ok(&["ping", "urku", "sello", "-o", "json"]));
    assert_eq!(good[0]["received"], 3);
    let dead = runtime.run(&["ping", "-c", "1", "urku", "10.1.0.77", "-o", "json"]);
    assert_eq!(
        (dead.code, rows(&dead.out)[0]["received"].as_u64()),
        (1, Some(0))
    );
    let unknown = runtime.run(&["ping", "urku", "nobody"]);
    unknown.ends(1, "hosts: urku, sello, basso");
    let itself = runtime.run(&["iperf", "urku", "urku"]);
    assert_eq!(itself.code, 2);
}

fn transfer(runtime: &Runtime) {
    let done = rows(&runtime.ok(&["iperf", "-t", "1", "urku", "sello", "-o", "json"]));
    assert!(done[0]["octets"].as_u64() > Some(100_000), "{done:?}");
}

#[test]
fn a_kernel_host_has_its_name_and_knows_those_of_the_others() {
    if !can_run() || !has("ping") {
        return;
    }
    let runtime = Runtime::new("names");
    let outside = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    runtime.ok(&["up", "-d", "-q", LAB]);
    let inside = |command: &str| runtime.ok(&["exec", "urku", "--", "sh", "-c", command]);
    assert_eq!(inside("uname -n"), "urku\n");
    assert!(inside("cat /etc/hosts").contains("10.1.0.20 sello\n"));
    let said = inside("ping -c 1 -W 5 sello");
    assert!(
        said.contains("(10.1.0.20)") && said.contains(" 1 received"),
        "{said}"
    );
    assert_eq!(
        std::fs::read_to_string("/etc/hosts").unwrap_or_default(),
        outside
    );
    let left = std::fs::read_dir(runtime.directory.join("aerostat/one-elan"));
    let mut left = left.into_iter().flatten().flatten();
    assert!(left.all(|entry| !entry.file_name().to_string_lossy().starts_with("hosts-")));
    words(&runtime);
    all_answer(&runtime);
    if has("iperf3") {
        transfer(&runtime);
    }
    runtime.ok(&["down"]);
}

#[test]
fn embedded_hosts_ping_and_transfer_by_their_own_programs() {
    if !can_run() {
        return;
    }
    let runtime = Runtime::new("words");
    // The lab's own transfer fills a queue, which then discards some of the packets.
    runtime.ok(&["up", "-d", "-q", "--embedded", "--set", "traffic=[]", LAB]);
    words(&runtime);
    all_answer(&runtime);
    transfer(&runtime);
    runtime.ok(&["down"]);
}

#[test]
fn an_embedded_host_and_kernel_hosts_find_each_other_by_arp() {
    if !can_run() || !has("ping") {
        return;
    }
    let runtime = Runtime::new("mixed");
    let set = ["--set", "hosts.sello.kernel=false", "--set", "traffic=[]"];
    runtime.ok(&[&["up", "-d", "-q"], &set[..], &[LAB]].concat());
    all_answer(&runtime);
    let table = runtime.ok(&[
        "inspect",
        "sello",
        "arp",
        "--table",
        "neighbours",
        "-o",
        "csv",
    ]);
    for address in ["10.1.0.10", "10.1.0.30"] {
        let row = table.lines().find(|line| line.contains(address));
        assert!(row.is_some_and(|row| row.contains("reachable")), "{table}");
    }
    let kernel = runtime.ok(&["exec", "urku", "--", "ip", "neigh", "show", "10.1.0.20"]);
    assert!(kernel.contains("lladdr 02:a7:"), "{kernel}");
    let mixed = runtime.run(&["iperf", "urku", "sello"]);
    mixed.ends(1, "two kernel hosts");
    runtime.ok(&["down"]);
}
