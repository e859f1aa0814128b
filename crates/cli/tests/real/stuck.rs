//! Labs that hang, clients that hang, and too many of them.

use crate::lab_file;
use crate::live::{Killed, Runtime, signal, wait_for};
use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Only embedded hosts: no privilege needed, ready at once.
const LAB: &str = "\
switches: { s: {} }
lane: { on: s, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  h1: { on: s, elan: a, ip: 10.1.0.1 }
  h2: { on: s, elan: a, ip: 10.1.0.2 }
traffic:
  - { from: h1, to: h2, kind: udp, rate: 1Mbps, size: 500, start: 2s, duration: 60s }
";

fn start(runtime: &Runtime, name: &str) {
    let file = lab_file(&format!("{name}.atm.yml"), LAB);
    runtime.ok(&["up", "-d", "-q", "--embedded", &file]);
}

fn process_of(runtime: &Runtime, lab: &str) -> String {
    let out = runtime.ok(&["ls", "-o", "csv"]);
    let mut lines = out.lines().filter_map(|line| line.split_once(','));
    let (_, rest) = lines.find(|(name, _)| *name == lab).unwrap();
    rest.split(',').next().unwrap().to_owned()
}

fn is_alive(process: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/stat"))
        .is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn a_stopped_lab_is_ended_and_the_others_too() {
    let runtime = Runtime::new("stopped");
    start(&runtime, "halts");
    start(&runtime, "works");
    let process = process_of(&runtime, "halts");
    signal(&process, "STOP");
    // No command waits for ever for the lab.
    let listed = runtime.run(&["ls"]);
    assert!(
        listed.code == 0 && listed.out.contains("halts"),
        "{}",
        listed.out
    );
    let began = Instant::now();
    let asked = runtime.run(&["inspect", "--lab", "halts", "vc"]);
    asked.ends(1, "no answer within 10 s");
    asked.says("'aerostat down' ends it");
    assert!(began.elapsed() >= Duration::from_secs(9));
    let down = runtime.run(&["down", "--all"]);
    assert_eq!(down.code, 3, "{}", down.err);
    for words in [
        "lab 'halts' does not answer: no answer within 3 s",
        &format!("SIGTERM to process {process}"),
        "lab 'halts' ended after SIGTERM",
        "lab 'works' stopped",
    ] {
        down.says(words);
    }
    assert!(!is_alive(&process));
    runtime.nothing_is_left();
}

#[test]
fn a_lab_that_ignores_sigterm_is_killed() {
    let runtime = Runtime::new("killed");
    let directory = runtime.directory.join("aerostat/dead");
    std::fs::create_dir_all(&directory).unwrap();
    // A hanging lab as seen from outside: it holds the lock and does not answer, even when asked to end.
    let script = "trap '' TERM; exec 9>lock; flock -n 9 || exit 1; \
                  echo '{\"name\":\"dead\",\"pid\":'$$',\"file\":\"x\",\"started\":0}' >state.json; \
                  while :; do sleep 0.1; done";
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(&directory);
    let mut lab = Killed(command.spawn().unwrap());
    // Not by 'ls' before the lab has the lock: 'ls' would take it for the remains of a dead one.
    wait_for("the lab", || directory.join("state.json").exists());
    let down = runtime.run(&["down", "dead"]);
    assert_eq!(down.code, 3, "{}", down.err);
    let process = lab.0.id();
    for words in [
        format!("SIGTERM to process {process}"),
        format!("it did not end within 5 s: SIGKILL to process {process}"),
        "lab 'dead' was killed; its results are lost".to_owned(),
    ] {
        down.says(&words);
    }
    assert_eq!(lab.0.wait().unwrap().code(), None);
    runtime.nothing_is_left();
}

#[test]
fn down_prints_the_results_of_a_lab_in_the_background() {
    let runtime = Runtime::new("results");
    start(&runtime, "measured");
    // The flow begins after two seconds.
    wait_for("some traffic", || seconds_up(&runtime) >= 4);
    let json = runtime.json(&["down", "measured", "-o", "json"]);
    let row = &json["flows"][0];
    assert_eq!(
        (row["from"].as_str(), row["to"].as_str()),
        (Some("h1"), Some("h2")),
        "{json}"
    );
    assert!(row["throughput_mbps"].as_f64().unwrap() > 0.5, "{json}");
    runtime.nothing_is_left();
}

fn count(runtime: &Runtime, what: &str) -> u64 {
    let rows = runtime.inspect(&["lab"]);
    let row = rows.iter().find(|row| row["what"] == what).unwrap();
    row["count"].as_u64().unwrap()
}

fn seconds_up(runtime: &Runtime) -> u64 {
    count(runtime, "seconds up")
}

#[test]
fn a_lab_without_descriptors_rests_says_so_and_can_be_stopped() {
    let runtime = Runtime::new("descriptors");
    let file = lab_file("few.atm.yml", LAB);
    let aerostat = env!("CARGO_BIN_EXE_aerostat");
    let mut command = Command::new("sh");
    command
        .args([
            "-c",
            "ulimit -n 40; exec \"$0\" up -q --embedded \"$1\"",
            aerostat,
            &file,
        ])
        .env("XDG_RUNTIME_DIR", &runtime.directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = Killed(command.spawn().unwrap());
    let mut ready = [0; 6];
    child
        .0
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut ready)
        .unwrap();
    assert_eq!(&ready, b"ready\n");
    let socket = runtime.directory.join("aerostat/few/control.sock");
    // Streams are not closed to make room.
    let streams: Vec<UnixStream> = (0..40)
        .map(|_| {
            use std::io::Write as _;
            let mut stream = UnixStream::connect(&socket).unwrap();
            let ask = b"{\"ask\":\"events\",\"follow\":true}\n";
            stream.write_all(ask).unwrap();
            stream
        })
        .collect();
    wait_for("descriptors to be used up", || {
        // A lab without free descriptors may also close the client that asks.
        let asked = runtime
            .run(&["inspect", "lab", "--table", "lab", "-o", "csv"])
            .out;
        let line = asked
            .lines()
            .find(|line| line.contains("no descriptor for a client"));
        line.is_some_and(|line| !line.ends_with(",0"))
    });
    // Each failed attempt is counted. If each attempt followed the previous one at once, thousands would fail in a
    // second. The lab pauses for a tenth of a second, or serves the client that asks here from its reserve.
    let tries = || count(&runtime, "no descriptor for a client");
    let (tries_before, began, mut looks) = (tries(), seconds_up(&runtime), 2);
    wait_for("three seconds of the lab", || {
        looks += 1;
        seconds_up(&runtime) >= began + 3
    });
    let (made, passed) = (tries() - tries_before, seconds_up(&runtime) - began + 1);
    assert!(
        made <= 10 * passed + 4 * (looks + 2),
        "{made} tries in {passed} s with {looks} looks"
    );
    runtime.ok(&["down", "few"]);
    drop(streams);
    let mut said = String::new();
    child
        .0
        .stderr
        .as_mut()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert!(
        said.contains("no file descriptor left for clients"),
        "{said}"
    );
    child.0.wait().unwrap();
    runtime.nothing_is_left();
}

#[test]
fn silent_clients_do_not_keep_the_owner_from_stopping_the_lab() {
    let runtime = Runtime::new("silent");
    start(&runtime, "crowded");
    let socket = runtime.directory.join("aerostat/crowded/control.sock");
    let crowd: Vec<UnixStream> = (0..200)
        .map(|_| UnixStream::connect(&socket).unwrap())
        .collect();
    assert_eq!(count(&runtime, "clients of other users"), 0);
    wait_for("the crowd to be counted", || {
        count(&runtime, "idle clients closed for others") >= 200 - 64
    });
    // A client that sends no request is closed after a while.
    wait_for("the silent ones to be closed", || {
        count(&runtime, "clients closed that asked nothing") > 0
    });
    runtime.ok(&["down", "crowded"]);
    drop(crowd);
    runtime.nothing_is_left();
}
