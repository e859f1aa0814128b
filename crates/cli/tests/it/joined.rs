//! Two labs joined by a trunk: the campus in two processes, which carry each other's calls.
//!
//! Without /dev/net/tun or the privilege for namespaces these tests are skipped and say so.

use crate::live::{Runtime, can_run, wait_for, wait_for_end};
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const WEST: &str = "interop/labs/campus-west.atm.yml";
const EAST: &str = "interop/labs/campus-east.atm.yml";
/// Paths of the trunk's ends in the two files.
const WEST_UDP: &str = "links.1.1.udp";
const EAST_UDP: &str = "links.0.1.udp";

/// A network namespace with a cable to this one.
struct Namespace {
    name: String,
}

impl Namespace {
    /// `None`, with the reason printed, where there can be none.
    fn new(number: u8) -> Option<Self> {
        let name = format!("joined{}-{}", std::process::id(), number);
        let made = Self { name: name.clone() };
        let cable = format!("jn{}-{number}", std::process::id());
        let [here, there] = [1, 2].map(|end| format!("198.18.{number}.{end}/24"));
        let steps = [
            format!("netns add {name}"),
            format!("link add {cable} type veth peer name cable netns {name}"),
            format!("address add {here} dev {cable}"),
            format!("link set {cable} up"),
            format!("-n {name} address add {there} dev cable"),
            format!("-n {name} link set cable up"),
            format!("-n {name} link set lo up"),
        ];
        for step in steps {
            let output = Command::new("ip").args(step.split(' ')).output();
            match output {
                Ok(output) if output.status.success() => {}
                Ok(output) => {
                    let why = String::from_utf8_lossy(&output.stderr).into_owned();
                    println!("skipped: ip {step}: {why}");
                    return None;
                }
                Err(error) => {
                    println!("skipped: ip {step}: {error}");
                    return None;
                }
            }
        }
        Some(made)
    }
    /// `command` in this namespace.
    fn command(&self, command: &Command) -> Command {
        let mut inside = Command::new("ip");
        inside.args(["netns", "exec", &self.name]);
        inside.arg(command.get_program()).args(command.get_args());
        if let Some(directory) = command.get_current_dir() {
            inside.current_dir(directory);
        }
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                inside.env(name, value);
            }
        }
        inside
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The cable goes with it.
        let _ = Command::new("ip")
            .args(["netns", "delete", &self.name])
            .output();
    }
}

/// Forwards datagrams of 53 octets between two sockets, and knows nothing else.
struct Relay {
    stop: Arc<AtomicBool>,
    cells: Arc<[AtomicU64; 2]>,
    others: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Relay {
    fn start(ends: [(&str, &str); 2]) -> Self {
        let mut relay = Self {
            stop: Arc::default(),
            cells: Arc::default(),
            others: Arc::default(),
            threads: Vec::new(),
        };
        let sockets = ends.map(|(local, peer)| {
            let socket = UdpSocket::bind(local).unwrap();
            let patience = Duration::from_millis(50);
            socket.set_read_timeout(Some(patience)).unwrap();
            (Arc::new(socket), peer.to_owned())
        });
        for way in 0..2 {
            let (from, _) = sockets[way].clone();
            let (to, peer) = sockets[1 - way].clone();
            let stop = Arc::clone(&relay.stop);
            let (cells, others) = (Arc::clone(&relay.cells), Arc::clone(&relay.others));
            relay.threads.push(std::thread::spawn(move || {
                let mut octets = [0; 2048];
                while !stop.load(Ordering::Relaxed) {
                    match from.recv(&mut octets) {
                        Ok(53) => {
                            cells[way].fetch_add(1, Ordering::Relaxed);
                            // Whoever is not there yet misses it.
                            let _ = to.send_to(&octets[..53], &peer);
                        }
                        Ok(_) => {
                            others.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(error)
                            if matches!(
                                error.kind(),
                                ErrorKind::WouldBlock
                                    | ErrorKind::TimedOut
                                    | ErrorKind::Interrupted
                                    | ErrorKind::ConnectionRefused
                            ) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            }));
        }
        relay
    }
    /// Cells each way, and datagrams that were none.
    fn end(self) -> ([u64; 2], u64) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
        let count = |way: usize| self.cells[way].load(Ordering::Relaxed);
        ([count(0), count(1)], self.others.load(Ordering::Relaxed))
    }
}

/// Arguments that start `lab` with these settings of its trunk.
fn up(lab: &str, udp: &str, settings: &[(&str, &str)]) -> Vec<String> {
    let mut args: Vec<String> = ["up", "-d", "-q", lab].map(str::to_owned).into();
    for (key, value) in settings {
        args.push("--set".into());
        args.push(format!("{udp}.{key}={value}"));
    }
    args
}

/// Starts a lab, which may have to wait for the other one; it must come up.
fn start(mut command: Command) {
    let mut child = command.stdin(Stdio::null()).spawn().unwrap();
    assert_eq!(wait_for_end(&mut child), 0);
}

fn command(lab: &Runtime, args: &[String]) -> Command {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    lab.command(&args)
}

/// LANE, routers and a shortcut across the trunk, and one that passes it not at all.
fn calls_cross(lab: &Runtime) {
    let ping = |count: &str, to: &str| {
        let exec = ["exec", "--lab", "campus-east", "urku", "--"];
        let ping = ["ping", "-q", "-c", count, "-i", "0.02", "-w", "20", to];
        lab.ok(&[&exec[..], &ping[..]].concat())
    };
    for (to, lab_there) in [("10.2.0.10", "0.02a7.0000"), ("10.4.0.10", "0.02a7.1000")] {
        ping("40", to);
        wait_for("a shortcut", || {
            let args = [
                "inspect",
                "--lab",
                "campus-east",
                "urku",
                "mpc",
                "-o",
                "json",
            ];
            let table: serde_json::Value = serde_json::from_str(&lab.ok(&args)).unwrap();
            table["rows"].as_array().unwrap().iter().any(|row| {
                let egress = row["egress"].as_str().unwrap_or_default();
                row["table"] == "ingress"
                    && row["destination"] == to
                    && row["state"] == "resolved"
                    && egress.contains(lab_there)
            })
        });
        let out = ping("20", to);
        assert!(out.contains(" 0% packet loss"), "{out}");
    }
    // The host of the other lab has its end of the shortcut.
    let args = [
        "inspect",
        "--lab",
        "campus-west",
        "jaarli",
        "mpc",
        "-o",
        "csv",
    ];
    assert!(lab.ok(&args).contains("10.1.0.10"));
}

#[test]
fn two_labs_joined_by_a_relay_of_cells_carry_each_others_calls() {
    if !can_run() {
        return;
    }
    let (Some(west), Some(east)) = (Namespace::new(71), Namespace::new(72)) else {
        return;
    };
    let relay = Relay::start([
        ("198.18.71.1:10002", "198.18.71.2:10001"),
        ("198.18.72.1:10001", "198.18.72.2:10002"),
    ]);
    let lab = Runtime::new("relay");
    let settings = [
        ("local", "198.18.71.2:10001"),
        ("peer", "198.18.71.1:10002"),
    ];
    let west_up = command(&lab, &up(WEST, WEST_UDP, &settings));
    start(west.command(&west_up));
    let settings = [
        ("local", "198.18.72.2:10002"),
        ("peer", "198.18.72.1:10001"),
    ];
    let east_up = command(&lab, &up(EAST, EAST_UDP, &settings));
    start(east.command(&east_up));
    calls_cross(&lab);
    lab.ok(&["down", "--all"]);
    let (cells, others) = relay.end();
    assert!(cells.iter().all(|count| *count > 200), "{cells:?}");
    assert_eq!(others, 0);
    drop((west, east));
    lab.nothing_is_left();
}

#[test]
fn two_labs_joined_by_many_cells_in_a_datagram() {
    if !can_run() {
        return;
    }
    let lab = Runtime::new("joined");
    let many = [("cells", "28"), ("word", "true")];
    // The one that needs the other begins.
    let mut east = command(&lab, &up(EAST, EAST_UDP, &many));
    let mut east = east.stdin(Stdio::null()).spawn().unwrap();
    start(command(&lab, &up(WEST, WEST_UDP, &many)));
    assert_eq!(wait_for_end(&mut east), 0);
    calls_cross(&lab);
    let args = [
        "inspect",
        "--lab",
        "campus-west",
        "east",
        "port",
        "-o",
        "json",
    ];
    let table: serde_json::Value = serde_json::from_str(&lab.ok(&args)).unwrap();
    let row = &table["rows"][0];
    let number = |name: &str| {
        row[name]
            .as_u64()
            .unwrap_or_else(|| panic!("{name}: {row}"))
    };
    assert!(number("datagrams_out") < number("cells_out"), "{row}");
    for name in [
        "bad_length",
        "bad_word",
        "missing",
        "late",
        "policed",
        "strangers",
    ] {
        assert_eq!(number(name), 0, "{row}");
    }
    lab.ok(&["down", "--all"]);
    lab.nothing_is_left();
}
