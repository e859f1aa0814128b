//! Each daemon in turn dies or hangs.

use crate::live::{Runtime, can_run, has, signal, wait_for, wait_for_end};
use serde_json::Value;
use std::time::Duration;

use super::LAB;

/// How long traffic may stop when a daemon of this role dies, apart from a few packets under way.
///
/// Without LES or BUS a LANE client starts over after a random time of at most C38, 5 s. A client that tries before the
/// next process runs, 0.1 s after the death, has to wait once more. The same applies to a client without its own
/// signalling daemon, whose death ends its connections. The death of a role that is not named here stops no traffic.
/// A daemon that is stopped is found and killed first.
fn longest_gap(role: &str, how: &str) -> Duration {
    let found = Duration::from_secs(if how == "STOP" { 2 } else { 0 });
    found
        + match role {
            "les" | "bus" | "sigd" => Duration::from_secs(11),
            _ => Duration::from_millis(1500),
        }
}

/// The longest time without an answer in a run of pings with time stamps; the run took `lasted`.
fn silence(pings: &str, lasted: Duration) -> Duration {
    let answers = pings.lines().filter(|line| line.contains("bytes from"));
    let times = answers.filter_map(|line| {
        let time = line.strip_prefix('[')?.split_once(']')?.0;
        time.parse::<f64>().ok()
    });
    let mut times: Vec<f64> = times.collect();
    assert!(times.len() > 10, "{pings}");
    let end = times[0] + lasted.as_secs_f64();
    times.extend((end > times[times.len() - 1]).then_some(end));
    let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
    Duration::from_secs_f64(gaps.fold(0.0, f64::max))
}

/// In how many intervals of iperf3 data moved, and for how long no data moved.
fn stalled(report: &Value) -> (u64, f64) {
    let (mut longest, mut now) = (0.0_f64, 0.0_f64);
    for interval in report["intervals"].as_array().into_iter().flatten() {
        let sum = &interval["sum"];
        if sum["bytes"].as_u64() == Some(0) {
            now += sum["seconds"].as_f64().unwrap_or(0.0);
        } else {
            now = 0.0;
        }
        longest = longest.max(now);
    }
    let received = report["end"]["sum_received"]["bytes"].as_u64();
    (received.unwrap_or(0), longest)
}

#[test]
fn every_daemon_in_turn_is_killed_under_load_and_nothing_is_lost_for_good() {
    every_daemon_in_turn("split-killed", "KILL");
}

#[test]
fn every_daemon_in_turn_is_stopped_under_load_and_nothing_is_lost_for_good() {
    every_daemon_in_turn("split-stopped", "STOP");
}

/// All processes of LANE servers, of a host that registers, of its switch and of its router get this signal under
/// iperf3, one after another. A new role needs a line in [`longest_gap`] if its death costs more than some packets.
fn every_daemon_in_turn(name: &str, how: &str) {
    if !can_run() || !has("iperf3") {
        return;
    }
    let lab = Runtime::new(name);
    let registers = ["--set", "hosts.urku.ilmi=true"];
    lab.ok(&[&["up", "-d", "-q", "--split", LAB], &registers[..]].concat());
    let mut processes = Vec::new();
    for node in ["lane", "urku", "s1", "r1"] {
        let rows = lab.inspect(&[node, "processes"]);
        let roles = rows.iter().filter_map(|row| row["process"].as_str());
        processes.extend(roles.map(|role| (node, role.to_owned())));
    }
    for wanted in [
        ("lane", "lecs"),
        ("lane", "les"),
        ("lane", "bus"),
        ("urku", "mpcd"),
        ("urku", "lecd"),
        ("urku", "sigd"),
        ("urku", "ilmid"),
        ("s1", "ilmid"),
        ("r1", "mpsd"),
    ] {
        let known = |(node, role): &(&str, String)| (*node, role.as_str()) == wanted;
        assert!(processes.iter().any(known), "{wanted:?} of {processes:?}");
    }
    let shortcuts = || {
        wait_for("the shortcuts", || {
            lab.ping("30");
            lab.resolved("urku", "10.2.0.10") && lab.resolved("sello", "10.1.0.10")
        });
    };
    shortcuts();
    let before = lab.kinds_of_connections();
    for (node, role) in &processes {
        let gap = longest_gap(role, how);
        let lasts = gap + Duration::from_secs(4);
        let (last, count) = (
            lasts.as_secs().to_string(),
            (lasts.as_millis() / 20).to_string(),
        );
        let mut server = lab.start(&["exec", "sello", "--", "iperf3", "-s", "-1"]);
        let listens = ["exec", "sello", "--", "ss", "-Hltn", "sport = :5201"];
        wait_for("iperf3 to listen", || !lab.run(&listens).out.is_empty());
        let load = [
            "iperf3",
            "-c",
            "10.2.0.10",
            "-b",
            "20M",
            "-t",
            &last,
            "-i",
            "0.1",
            "-J",
        ];
        let load = lab.start(&[&["exec", "urku", "--"], &load[..]].concat());
        // Not with -w: with this option ping ends at the first "host unreachable".
        let pings = ["ping", "-D", "-i", "0.02", "-c", &count, "10.2.0.10"];
        let pings = lab.start(&[&["exec", "urku", "--"], &pings[..]].concat());
        std::thread::sleep(Duration::from_secs(1));
        let pid = lab.process_runs(node, role, "");
        signal(&pid, how);
        let next = lab.process_runs(node, role, &pid);
        let replaced = (how == "STOP").then(|| lab.replaced_after(node, role, &next));
        assert!(
            replaced.is_none_or(|after| after < 2.0),
            "{role} of {node}: {replaced:?} s"
        );
        let out = pings.wait_with_output().unwrap().stdout;
        let silence = silence(&String::from_utf8_lossy(&out), lasts);
        let out = load.wait_with_output().unwrap().stdout;
        let (received, stalled) = stalled(&serde_json::from_slice(&out).unwrap_or_default());
        wait_for_end(&mut server);
        println!(
            "{how} {role} of {node}: replaced after {replaced:?} s; silent for {silence:?}; TCP for {stalled:.1} s, \
             {received} octets"
        );
        assert!(silence <= gap, "{role} of {node}: {silence:?}");
        // After a gap TCP waits up to the same time again before its next try.
        assert!(
            stalled <= 2.0 * gap.as_secs_f64(),
            "{role} of {node}: {stalled}"
        );
        assert!(received > 1_000_000, "{role} of {node}: {received}");
        shortcuts();
        lab.has_again(&before);
    }
    lab.ends();
}
