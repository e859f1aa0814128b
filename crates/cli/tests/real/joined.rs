//! Two labs joined by a trunk: the campus in two processes, with calls between them.
//!
//! Without /dev/net/tun or the privilege for namespaces these tests are skipped with a message.

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
/// Keys of the trunk's ends in the two files.
const WEST_UDP: &str = "links.1.1.udp";
const EAST_UDP: &str = "links.0.1.udp";

/// A network namespace with a cable to this one.
pub(crate) struct Namespace {
    pub(crate) name: String,
}

/// Runs `ip`; false, with the reason printed, if that failed.
pub(crate) fn ip(step: &str) -> bool {
    let why = match Command::new("ip").args(step.split(' ')).output() {
        Ok(output) if output.status.success() => return true,
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    println!("skipped: ip {step}: {why}");
    false
}

impl Namespace {
    /// `None`, with the reason printed, if it cannot be made.
    pub(crate) fn new(number: u8) -> Option<Self> {
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
        steps.iter().all(|step| ip(step)).then_some(made)
    }
    /// `command` in this namespace.
    pub(crate) fn command(&self, command: &Command) -> Command {
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
        // The cable disappears with the namespace.
        let _ = Command::new("ip")
            .args(["netns", "delete", &self.name])
            .output();
    }
}

/// Forwards datagrams of 53 octets between two sockets.
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
                            // A peer that does not exist yet misses the datagram.
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
    /// Cells in each direction, and datagrams of another length.
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

/// Starts a lab, which may have to wait for the other one; it must become ready.
fn start(mut command: Command) {
    let mut child = command.stdin(Stdio::null()).spawn().unwrap();
    assert_eq!(wait_for_end(&mut child), 0);
}

fn command(lab: &Runtime, args: &[String]) -> Command {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    lab.command(&args)
}

/// LANE, routers and a shortcut across the trunk, and a shortcut that does not cross the trunk.
fn calls_cross(lab: &Runtime) {
    let ping = |count: &str, to: &str| {
        let words = ["-q", "-c", count, "-i", "0.02", "-W", "10", to];
        lab.pings(&["--lab", "campus-east", "urku"], &words);
    };
    for (to, lab_there) in [("10.2.0.10", "0.02a7.0000"), ("10.4.0.10", "0.02a7.1000")] {
        ping("40", to);
        wait_for("a shortcut", || {
            let rows = lab.inspect(&["--lab", "campus-east", "urku", "mpc"]);
            rows.iter().any(|row| {
                let egress = row["egress"].as_str().unwrap_or_default();
                row["table"] == "ingress"
                    && row["destination"] == to
                    && row["state"] == "resolved"
                    && egress.contains(lab_there)
            })
        });
        ping("20", to);
    }
    // The host of the other lab has its end of the shortcut.
    let args = [
        "inspect",
        "--lab",
        "campus-west",
        "jaarli",
        "mpc",
        "-o",
        "jsonl",
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

/// The same, with a trunk whose ends find out by ILMI which of them has the network side.
fn up_finding_out(lab: &str, udp: &str, settings: &[(&str, &str)]) -> Vec<String> {
    let trunk = udp.replace("udp", "trunk=auto");
    [up(lab, udp, settings), vec!["--set".into(), trunk]].concat()
}

#[test]
fn two_labs_joined_by_many_cells_in_a_datagram_find_out_their_sides() {
    if !can_run() {
        return;
    }
    let lab = Runtime::new("joined");
    let many = [("cells", "28"), ("word", "true")];
    // The lab that needs the other one starts first.
    let mut east = command(&lab, &up_finding_out(EAST, EAST_UDP, &many));
    let mut east = east.stdin(Stdio::null()).spawn().unwrap();
    start(command(&lab, &up_finding_out(WEST, WEST_UDP, &many)));
    assert_eq!(wait_for_end(&mut east), 0);
    calls_cross(&lab);
    let row = &lab.inspect(&["--lab", "campus-west", "east", "port"])[0];
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

pub(crate) const WEST_MAC: &str = "02:00:00:00:00:0a";
pub(crate) const EAST_MAC: &str = "02:00:00:00:00:0b";

/// A cable `cells` between two namespaces, with known MAC addresses.
pub(crate) fn cable(west: &Namespace, east: &Namespace) -> bool {
    let (west, east) = (&west.name, &east.name);
    let mut done = ip(&format!(
        "-n {west} link add name cells type veth peer name cells netns {east}"
    ));
    for (name, mac) in [(west, WEST_MAC), (east, EAST_MAC)] {
        done = done
            && ip(&format!("-n {name} link set dev cells address {mac}"))
            && ip(&format!("-n {name} link set dev cells up"));
    }
    done
}

/// The lab with its trunk over another way, given as in the file; returns the path of the file.
fn over(lab: &Runtime, file: &str, way: &str) -> String {
    let text = std::fs::read_to_string(crate::root().join(file)).unwrap();
    let (before, rest) = text.split_once("udp: {").unwrap();
    let (_, after) = rest.split_once('}').unwrap();
    let name = file.rsplit('/').next().unwrap();
    let to = lab.directory.join(name);
    std::fs::write(&to, format!("{before}{way}{after}")).unwrap();
    to.to_str().unwrap().to_owned()
}

#[test]
fn two_labs_joined_by_ethernet_frames_of_cells() {
    if !can_run() {
        return;
    }
    let (Some(west), Some(east)) = (Namespace::new(73), Namespace::new(74)) else {
        return;
    };
    if !cable(&west, &east) {
        return;
    }
    let lab = Runtime::new("ethernet");
    let way = |peer| format!("ethernet: {{ interface: cells, peer: \"{peer}\", word: true }}");
    let west_lab = over(&lab, WEST, &way(EAST_MAC));
    let east_lab = over(&lab, EAST, &way(WEST_MAC));
    start(west.command(&command(&lab, &up(&west_lab, "", &[]))));
    start(east.command(&command(&lab, &up(&east_lab, "", &[]))));
    calls_cross(&lab);
    // The cable is removed, and a new one takes its place.
    let state = |wanted: &str| {
        let table = lab.inspect(&["--lab", "campus-west", "east", "port"]);
        table[0]["state"] == wanted
    };
    assert!(ip(&format!("-n {} link delete dev cells", west.name)));
    wait_for("the port to go down", || state("away"));
    assert!(cable(&west, &east));
    wait_for("the port to come up", || state("up"));
    wait_for("hosts to reach each other again", || {
        let exec = ["exec", "--lab", "campus-east", "urku", "--"];
        let ping = ["ping", "-q", "-c", "1", "-W", "1", "10.2.0.10"];
        let again = lab.command(&[&exec[..], &ping[..]].concat()).output();
        again.unwrap().status.success()
    });
    lab.ok(&["down", "--all"]);
    drop((west, east));
    lab.nothing_is_left();
}

/// The first row of a far end's table, and the number in it.
fn port_number(lab: &Runtime, of: [&str; 2], row: usize, column: &str) -> u64 {
    let table = lab.inspect(&["--lab", of[0], of[1], "port"]);
    let number = table[row][column].as_u64();
    number.unwrap_or_else(|| panic!("{column}: {table:?}"))
}

#[test]
fn two_labs_joined_by_a_pseudowire_over_mpls() {
    if !can_run() {
        return;
    }
    let (Some(west), Some(east)) = (Namespace::new(77), Namespace::new(78)) else {
        return;
    };
    if !cable(&west, &east) {
        return;
    }
    let lab = Runtime::new("mpls");
    let way = |peer, outgoing, incoming| {
        format!(
            "mpls: {{ interface: cells, peer: \"{peer}\", outgoing: {outgoing}, incoming: {incoming}, sequence: true }}"
        )
    };
    let west_lab = over(&lab, WEST, &way(EAST_MAC, 1000, 2000));
    let east_lab = over(&lab, EAST, &way(WEST_MAC, 2000, 1000));
    start(west.command(&command(&lab, &up(&west_lab, "", &[]))));
    start(east.command(&command(&lab, &up(&east_lab, "", &[]))));
    calls_cross(&lab);
    let number = |row, column| port_number(&lab, ["campus-west", "east"], row, column);
    for column in ["strangers", "bad_stack", "unknown_label", "uncarried_out"] {
        assert_eq!(number(0, column), 0, "{column}");
    }
    for column in ["bad_length", "bad_word", "missing", "late", "policed"] {
        assert_eq!(number(1, column), 0, "{column}");
    }
    // Each of the 60 echo requests to the other lab is a packet, and what one end has sent the other one receives.
    let sent = || port_number(&lab, ["campus-east", "west"], 1, "packets_out");
    let least = sent();
    assert!(least >= 60, "{least}");
    wait_for("the packets of the other end", || {
        number(1, "packets_in") >= least
    });
    let received = number(1, "packets_in");
    assert!(received <= sent(), "{received}");
    lab.ok(&["down", "--all"]);
    drop((west, east));
    lab.nothing_is_left();
}

/// Sends random datagrams, some too long or too short, and incomplete PDUs on ever new connections, until told to stop.
fn flood(from: &'static str, to: &'static str, stop: Arc<AtomicBool>) -> JoinHandle<u64> {
    std::thread::spawn(move || {
        let socket = UdpSocket::bind(from).unwrap();
        let (mut sent, mut octets) = (0_u64, [0x5a; 520]);
        while !stop.load(Ordering::Relaxed) {
            // One cell of VPI 0 and a changing VCI, without HEC: the beginning of a PDU.
            octets[..4].copy_from_slice(&((sent as u32 & 0xffff) << 4).to_be_bytes());
            let length = [52, 520, 51, 53, 104][(sent % 5) as usize];
            sent += u64::from(socket.send_to(&octets[..length], to).is_ok());
            if sent.is_multiple_of(64) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        sent
    })
}

#[test]
fn a_peer_that_floods_or_dies_harms_nobody_else() {
    if !can_run() {
        return;
    }
    let lab = Runtime::new("flood");
    let (west, east) = ("127.0.0.1:10011", "127.0.0.1:10012");
    let ends = |local, peer| [("local", local), ("peer", peer), ("cells", "28")];
    start(command(&lab, &up(WEST, WEST_UDP, &ends(west, east))));
    let stop = Arc::new(AtomicBool::new(false));
    let flood = flood(east, west, Arc::clone(&stop));
    let exec = ["exec", "--lab", "campus-west", "jaarli", "--"];
    let ping = [
        "ping",
        "-q",
        "-c",
        "40",
        "-i",
        "0.05",
        "-W",
        "30",
        "10.3.0.10",
    ];
    let out = lab.ok(&[&exec[..], &ping[..]].concat());
    stop.store(true, Ordering::Relaxed);
    assert!(flood.join().unwrap() > 1000);
    let received: u32 = out
        .split(" transmitted, ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next()?.parse().ok())
        .unwrap();
    assert!(received >= 38, "{out}");
    let rows = lab.inspect(&["--lab", "campus-west", "east", "port"]);
    let number = |name: &str| rows.iter().find_map(|row| row[name].as_u64()).unwrap();
    assert!(number("bad_length") > 100, "{rows:?}");
    assert!(number("user_cells") > 100, "{rows:?}");
    // The real peer starts, dies silently, and starts again.
    for life in 1..=2 {
        start(command(&lab, &up(EAST, EAST_UDP, &ends(east, west))));
        let exec = ["exec", "--lab", "campus-east", "urku", "--"];
        wait_for("hosts to reach each other", || {
            let ping = ["ping", "-q", "-c", "1", "-W", "1", "10.2.0.10"];
            let output = lab.command(&[&exec[..], &ping[..]].concat()).output();
            output.unwrap().status.success()
        });
        if life == 1 {
            let listed = lab.ok(&["ls", "-o", "csv"]);
            let east = listed.lines().find(|line| line.starts_with("campus-east"));
            let process = east.unwrap().split(',').nth(1).unwrap();
            let killed = Command::new("kill").args(["-KILL", process]).status();
            assert!(killed.unwrap().success());
            wait_for("the process to be gone", || {
                !lab.ok(&["ls", "-o", "csv"]).contains("campus-east")
            });
        }
    }
    lab.ok(&["down", "--all"]);
    lab.nothing_is_left();
}
