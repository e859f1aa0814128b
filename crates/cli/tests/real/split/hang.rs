//! Daemons that hang, and healthy ones on a machine without free CPU time.

use super::LAB;
use crate::live::{Runtime, signal, wait_for, wait_for_end};
use serde_json::Value;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Most time between two questions of the heartbeat, s.
const QUESTION: f64 = 0.8;

impl Runtime {
    fn events(&self) -> Vec<Value> {
        let events = self.ok(&["events"]);
        let events = events.lines();
        events
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
    /// Most time, s, between the moment at which a daemon hung and the greeting of process `next` in its place: a
    /// question may have been answered immediately before it hung.
    pub(super) fn replaced_after(&self, node: &str, role: &str, next: &str) -> f64 {
        let events = self.events();
        let of = |event: &&Value| event["node"] == node && event["fields"]["daemon"] == role;
        let time = |event: &Value| event["time"].as_f64().unwrap();
        let up = |event: &&Value| event["event"] == "daemon.up" && event["fields"]["pid"] == next;
        let up = time(events.iter().filter(of).find(up).expect("the next daemon"));
        let hung = |event: &&Value| event["event"] == "daemon.hung" && time(event) < up;
        let hung = events.iter().filter(of).rfind(hung).expect("a daemon hung");
        let silent: f64 = hung["fields"]["silent_ms"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        up - time(hung) + silent / 1000.0 + QUESTION
    }
}

/// A daemon hangs (SIGSTOP): the lab finds and replaces it. A daemon that a user started loses its seat. The lab ends
/// regularly.
#[test]
fn a_daemon_that_hangs_is_replaced_in_two_seconds_and_stops_nobody() {
    let lab = Runtime::new("split-stop");
    let mut up = lab.command(&["up", "-q", "--split", "--embedded", LAB]);
    let mut up = up
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut told = std::io::BufReader::new(up.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut told, &mut line).unwrap();
    assert_eq!(line, "ready\n");
    let hung = lab.kill("urku", "STOP");
    let next = lab.daemon_runs("urku", &hung);
    let after = lab.replaced_after("urku", "mpcd", &next);
    assert!(after < 2.0, "{after} s");
    let row = lab.daemon("urku");
    assert_eq!((&row["hung"], &row["restarts"]), (&1.into(), &1.into()));
    assert_eq!(row["last_end"], "hung (stopped) and was killed");
    wait_for("the lab's pings over LANE", || {
        let rows = lab.inspect(&["sello", "port"]);
        !rows.is_empty() && lab.told("sello", "mpc.flow.detected") > 0
    });
    // A daemon started by hand is not the lab's to kill: it loses its seat, and the lab starts its own.
    lab.kill("sello", "TERM");
    wait_for("the daemon to end", || {
        lab.daemon("sello")["state"] == "ended"
    });
    let mut hand = lab.start(&["mpcd", "sello"]);
    let pid = lab.daemon_runs("sello", "");
    signal(&pid, "STOP");
    lab.daemon_runs("sello", &pid);
    assert_eq!(lab.daemon("sello")["hung"], 1);
    assert_eq!(lab.daemon("sello")["last_end"], "hung (silent)");
    signal(&pid, "CONT");
    assert_eq!(wait_for_end(&mut hand), 0, "it finds its socket closed");
    signal(&up.id().to_string(), "INT");
    // 3: the lab's traffic begins after 2 s, and on a loaded machine hosts may join later.
    let code = wait_for_end(&mut up);
    assert!([0, 3].contains(&code), "{code}");
    lab.nothing_is_left();
}

/// `AEROSTAT_BUSY_SECONDS` sets how long; the nightly script says an hour.
#[test]
fn no_healthy_daemon_is_replaced_while_all_cores_are_busy() {
    let asked = std::env::var("AEROSTAT_BUSY_SECONDS").ok();
    let lasts = asked.and_then(|text| text.parse().ok()).unwrap_or(60);
    let lab = Runtime::new("split-busy");
    lab.ok(&["up", "-d", "-q", "--split", "--embedded", LAB]);
    wait_for("the daemons", || {
        let rows = lab.inspect(&["processes"]);
        rows.iter().all(|row| row["state"] == "running")
    });
    let done = AtomicBool::new(false);
    let loops = 2 * std::thread::available_parallelism().map_or(2, usize::from);
    let rows = std::thread::scope(|scope| {
        for _ in 0..loops {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop()
                }
            });
        }
        let until = Instant::now() + Duration::from_secs(lasts);
        while Instant::now() < until {
            std::thread::sleep(Duration::from_secs(1));
        }
        let rows = lab.inspect(&["processes"]);
        done.store(true, Ordering::Relaxed);
        rows
    });
    let slowest = rows
        .iter()
        .filter_map(|row| row["slowest_ms"].as_u64())
        .max();
    println!(
        "{} daemons, {loops} loops, {lasts} s: slowest answer {slowest:?} ms",
        rows.len()
    );
    for row in &rows {
        assert_eq!(
            (&row["hung"], &row["restarts"]),
            (&0.into(), &0.into()),
            "{row}"
        );
        assert_eq!(row["state"], "running", "{row}");
    }
    let replaced =
        |event: &&Value| matches!(event["event"].as_str(), Some("daemon.hung" | "daemon.down"));
    assert_eq!(lab.events().iter().find(replaced), None);
    lab.down_with_warnings();
    lab.nothing_is_left();
}
