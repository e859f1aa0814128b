//! `aerostat host`: a machine (here a network namespace) that is a host of the network of another lab, over a cable.
//!
//! Without /dev/net/tun or the privilege for namespaces these tests are skipped with a message.

use crate::Ran;
use crate::bridges::can_bridge;
use crate::joined::Namespace;
use crate::live::{Runtime, can_run, has, signal, wait_for};
use crate::{root, run};
use aerostat_socket::Service;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const NETWORK: &str = "labs/host/network.atm.yml";
const WORKER: &str = "labs/host/worker.atm.yml";
const BOTH: &str = "labs/host/both.atm.yml";
const DSLAM: &str = "labs/host/dslam.atm.yml";
const MODEM: &str = "labs/host/modem.atm.yml";
const BRIDGE: &str = "labs/host/bridge.atm.yml";
const UNIT: &str = "systemd/aerostat-host@.service";

/// The network of the other lab, and a cable to a machine.
struct Site {
    lab: Runtime,
    /// Directory of the labs that the machine runs.
    own: Runtime,
    machine: Namespace,
    number: u8,
}

impl Site {
    fn new(test: &str, number: u8) -> Option<Self> {
        if !can_run() {
            return None;
        }
        Some(Self {
            machine: Namespace::new(number)?,
            lab: Runtime::new(&format!("{test}-lab")),
            own: Runtime::new(&format!("{test}-own")),
            number,
        })
    }
    /// The arguments that put this cable in the place of that of the lab files.
    fn cable(&self, [local, peer]: [u8; 2]) -> Vec<String> {
        let end = |key: &str, end: u8| {
            let number = self.number;
            let set = format!("links.0.1.udp.{key}=198.18.{number}.{end}:10001");
            ["--set".to_owned(), set]
        };
        [end("local", local), end("peer", peer)].concat()
    }
    fn up(&self) {
        self.up_with(NETWORK);
    }
    fn up_with(&self, file: &str) {
        let cable = self.cable([1, 2]);
        let mut args = vec!["up", "-d", "-q", "--embedded", file];
        args.extend(cable.iter().map(String::as_str));
        self.lab.ok(&args);
    }
    /// The command that runs the host of this file in the machine.
    fn host(&self, file: &str) -> Command {
        let cable = self.cable([2, 1]);
        let mut args = vec!["host", "-q", file];
        args.extend(cable.iter().map(String::as_str));
        self.machine.command(&self.own.command(&args))
    }
    /// Starts it and waits until all its interfaces have joined.
    fn start(&self, file: &str) -> Child {
        started(self.host(file))
    }
    fn inside(&self, line: &str) -> std::process::Output {
        let mut words = line.split(' ');
        let mut command = Command::new(words.next().unwrap());
        command.args(words);
        self.machine.command(&command).output().unwrap()
    }
    fn pings(&self, address: &str) -> bool {
        let line = format!("ping -n -c 1 -W 1 {address}");
        self.inside(&line).status.success()
    }
    fn reaches(&self, address: &str) {
        wait_for(&format!("an answer of {address}"), || self.pings(address));
    }
    /// Interfaces and routes of the machine.
    fn interfaces(&self) -> String {
        let all = ["ip -o link", "ip -o address", "ip route"].map(|line| self.inside(line).stdout);
        String::from_utf8(all.concat()).unwrap()
    }
    fn nothing_is_left(&self) {
        let left = self.interfaces();
        let ours = ["lec", "atm", "nas", "10."];
        assert!(!ours.iter().any(|ours| left.contains(ours)), "{left}");
        self.own.nothing_is_left();
    }
    /// The socket service of a node in one of the two runtime directories.
    fn service(runtime: &Runtime, lab: &str, node: &str) -> Service {
        let path = runtime
            .directory
            .join(format!("aerostat/{lab}/atm/{node}.sock"));
        Service::connect(&path).unwrap()
    }
}

/// Starts a host and waits for its word that it has joined.
fn started(mut command: Command) -> Child {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    if line != "ready\n" {
        let mut said = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        panic!("not ready: {said}");
    }
    child
}

fn kill(mut child: Child) {
    signal(&child.id().to_string(), "KILL");
    child.wait().unwrap();
}

/// Programs of the machine and of the other lab call each other.
fn programs_call_both_ways(site: &Site) {
    let here = || Site::service(&site.own, "worker", "worker");
    let there = || Site::service(&site.lab, "network", "desk");
    for (caller, called) in [(here(), there()), (there(), here())] {
        let listener = called.listen("").unwrap();
        let address = listener.address().unwrap();
        let accepts = std::thread::spawn(move || listener.accept().unwrap());
        let caller = caller.call(&address, "", "ubr").unwrap();
        let called = accepts.join().unwrap();
        let mut got = [0; 100];
        for (from, to, text) in [(&caller, &called, "to"), (&called, &caller, "fro")] {
            from.send(text.as_bytes()).unwrap();
            let length = to.recv(&mut got).unwrap();
            assert_eq!(&got[..length], text.as_bytes());
        }
    }
}

/// Commands of users at a running host.
fn commands_work(site: &Site) {
    let ls = site.own.ok(&["ls", "-o", "csv"]);
    assert!(ls.contains("worker,") && ls.contains(",ready"), "{ls}");
    let lec = site.own.ok(&["inspect", "worker", "lec"]);
    assert!(lec.contains("office"), "{lec}");
    // From outside the machine, too: the command enters its network namespace.
    let address = site.own.ok(&[
        "exec", "worker", "--", "ip", "-o", "address", "show", "lec0",
    ]);
    assert!(address.contains("10.1.0.50/24"), "{address}");
    let told = site.own.ok(&["trace", "--no-follow", "uplink-worker"]);
    assert!(told.contains("SETUP"), "{told}");
    let shown = site.own.ok(&["inspect", "lab"]);
    assert!(shown.contains("CAP") || shown.contains("none"), "{shown}");
}

fn mistakes_are_told(site: &Site) {
    let again = Ran::of(site.host(WORKER));
    again.ends(1, "lab 'worker' is running already");
    let text = std::fs::read_to_string(root().join(WORKER)).unwrap();
    let other = crate::lab_file(
        "other-host.atm.yml",
        &text.replace("name: worker", "name: other"),
    );
    let taken = Ran::of(site.host(&other));
    assert_eq!(taken.code, 1, "{}", taken.err);
    let says = "worker: there is an interface 'lec0' already\n  hint: another program has made it";
    taken.says(says);
    if has("setpriv") {
        let host = site.own.command(&["host", &other]);
        let mut without = Command::new("setpriv");
        without.args(["--bounding-set=-net_admin", "--inh-caps=-net_admin"]);
        without.arg(host.get_program()).args(host.get_args());
        without
            .current_dir(root())
            .env("XDG_RUNTIME_DIR", &site.own.directory);
        let refused = Ran::of(without);
        refused.ends(5, "needs CAP_NET_ADMIN");
        refused.says("'aerostat doctor' says what is missing");
    }
}

#[test]
fn a_machine_joins_the_network_of_another_lab_and_survives_both_ends() {
    let Some(site) = Site::new("worker", 71) else {
        return;
    };
    site.up();
    let host = site.start(WORKER);
    site.reaches("10.1.0.10");
    commands_work(&site);
    programs_call_both_ways(&site);
    mistakes_are_told(&site);
    // The far end dies without a word, and comes back.
    signal(&site.lab.process(), "KILL");
    wait_for("the lab to be gone", || !site.pings("10.1.0.10"));
    site.up();
    site.reaches("10.1.0.10");
    // The host dies without a word: the kernel removes its interfaces, and a new one joins.
    kill(host);
    wait_for("the interfaces to go", || {
        !site.interfaces().contains("lec0")
    });
    let mut host = site.start(WORKER);
    site.reaches("10.1.0.10");
    site.own.ok(&["down"]);
    assert_eq!(host.wait().unwrap().code(), Some(0));
    site.nothing_is_left();
}

/// A machine at the customer's end of a line has `nas0`.
#[test]
fn a_machine_is_the_customer_of_a_line() {
    let Some(site) = Site::new("modem", 85) else {
        return;
    };
    site.up_with(DSLAM);
    let mut host = site.start(MODEM);
    site.reaches("10.8.0.1");
    let line = site.own.ok(&["inspect", "machine", "line"]);
    assert!(line.contains("bridged-llcsnap"), "{line}");
    assert!(site.interfaces().contains("nas0"), "{}", site.interfaces());
    site.own.ok(&["down"]);
    assert_eq!(host.wait().unwrap().code(), Some(0));
    site.nothing_is_left();
}

/// A bridge of the machine has `lec0` as a port; a real station is behind it.
#[test]
fn a_bridge_of_the_machine_puts_real_stations_into_the_elan() {
    let Some(site) = Site::new("bridge", 73).filter(|_| can_bridge()) else {
        return;
    };
    site.up();
    // Without the bridge the host says how to make it, and leaves nothing.
    let refused = Ran::of(site.host(BRIDGE));
    refused.ends(1, "ip link add br0 type bridge");
    site.nothing_is_left();
    for line in ["ip link add br0 type bridge", "ip link set br0 up"] {
        assert!(site.inside(line).status.success(), "{line}");
    }
    let station = Namespace::new(74).expect("a second one");
    let steps = [
        format!(
            "ip link add port0 type veth peer name eth0 netns {}",
            station.name
        ),
        "ip link set port0 master br0 up".to_owned(),
        "ip address add 10.1.0.50/24 dev br0".to_owned(),
    ];
    for line in &steps {
        assert!(site.inside(line).status.success(), "{line}");
    }
    let there = |line: &str| {
        let mut words = line.split(' ');
        let mut command = Command::new(words.next().unwrap());
        command.args(words);
        station.command(&command).output().unwrap().status.success()
    };
    assert!(there("ip address add 10.1.0.60/24 dev eth0") && there("ip link set eth0 up"));
    let mut host = site.start(BRIDGE);
    // The machine, and the station, reach the network; and the network reaches them.
    site.reaches("10.1.0.10");
    wait_for("an answer to the station", || {
        there("ping -n -c 1 -W 1 10.1.0.10")
    });
    let learned = site.own.ok(&["inspect", "machine", "bridge"]);
    assert!(learned.contains("learned"), "{learned}");
    assert!(there("ping -n -q -c 20 -i 0.05 -W 1 10.1.0.10"));
    site.lab.ok(&["ping", "desk", "10.1.0.60"]);
    // A restart of the host: the bridge stays, and gets its port again.
    site.own.ok(&["down"]);
    let mut said = String::new();
    let code = host.wait().unwrap().code();
    let _ = host.stderr.take().unwrap().read_to_string(&mut said);
    assert_eq!(code, Some(0), "{said}");
    assert!(!site.interfaces().contains("lec0"));
    let mut host = site.start(BRIDGE);
    wait_for("an answer to the station", || {
        there("ping -n -c 1 -W 1 10.1.0.10")
    });
    site.own.ok(&["down"]);
    assert_eq!(host.wait().unwrap().code(), Some(0));
    assert!(site.inside("ip link del br0").status.success());
    site.own.nothing_is_left();
}

/// The options of the unit for systemd that a test can apply: its command, capabilities, and NoNewPrivileges.
struct Unit {
    text: String,
}

impl Unit {
    fn read() -> Self {
        let text = std::fs::read_to_string(root().join(UNIT)).unwrap();
        Self { text }
    }
    fn value(&self, key: &str) -> &str {
        let mut lines = self.text.lines().filter_map(|line| line.split_once('='));
        lines.find(|(name, _)| *name == key).unwrap().1
    }
    /// `setpriv`, with what the unit leaves to the process.
    fn limits(&self) -> Command {
        assert_eq!(self.value("NoNewPrivileges"), "yes");
        let kept = self.value("CapabilityBoundingSet").split(' ');
        let kept: String = kept
            .map(|name| format!(",+{}", name.replace("CAP_", "").to_lowercase()))
            .collect();
        let mut command = Command::new("setpriv");
        command.args([
            format!("--bounding-set=-all{kept}"),
            "--inh-caps=-all".to_owned(),
        ]);
        command.arg("--no-new-privs");
        command
    }
}

/// The next message to the service manager.
fn told(manager: &UnixDatagram) -> String {
    let mut octets = [0; 1024];
    let length = manager
        .recv(&mut octets)
        .expect("a message for the service manager");
    String::from_utf8(octets[..length].to_vec()).unwrap()
}

#[test]
fn the_service_has_lan_and_classical_ip_and_tells_its_manager() {
    let unit = Unit::read();
    assert!(
        !unit.value("ExecStart").contains("--set"),
        "the file has everything"
    );
    let Some(site) = Site::new("service", 72).filter(|_| has("setpriv")) else {
        return;
    };
    site.up();
    let path = site.own.directory.join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    // The words of the unit, with this program and a file that has this cable.
    let program = env!("CARGO_BIN_EXE_aerostat");
    let text = std::fs::read_to_string(root().join(BOTH)).unwrap();
    let number = site.number;
    let text = text.replace("198.51.100.", &format!("198.18.{number}."));
    let file = crate::lab_file("service-both.atm.yml", &text);
    let line = unit
        .value("ExecStart")
        .replace("/usr/bin/aerostat", program);
    let line = line.replace("/etc/aerostat/%i.atm.yml", &file);
    let mut limited = unit.limits();
    limited.args(line.split(' ')).current_dir("/");
    limited
        .env("XDG_RUNTIME_DIR", &site.own.directory)
        .env("NOTIFY_SOCKET", &path);
    let mut host = started(site.machine.command(&limited));
    assert_eq!(told(&manager), "READY=1");
    // LAN emulation and Classical IP.
    site.reaches("10.1.0.10");
    site.reaches("10.20.0.10");
    let mut told_so_far = String::new();
    while !told_so_far.contains("STATUS=all interfaces have joined their networks") {
        told_so_far.push_str(&told(&manager));
    }
    // The signal that a manager sends.
    signal(&site.own.process(), "TERM");
    while told(&manager) != "STOPPING=1" {}
    assert_eq!(host.wait().unwrap().code(), Some(0));
    site.nothing_is_left();
    // The calls were released, and not left to time-outs.
    let calls = || site.lab.ok(&["inspect", "s1", "call", "-o", "jsonl"]);
    wait_for("the calls of the machine to be released", || {
        !calls().contains("02a712")
    });
}

#[test]
fn the_unit_for_systemd_is_valid() {
    if !has("systemd-analyze") {
        return;
    }
    let unit = Unit::read();
    let program = env!("CARGO_BIN_EXE_aerostat");
    let text = unit.text.replace("/usr/bin/aerostat", program);
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("units");
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("aerostat-host@.service");
    std::fs::write(&file, text).unwrap();
    let verified = verify(&directory.join("aerostat-host@worker.service"));
    assert_eq!(
        (verified.code, verified.err.as_str()),
        (0, ""),
        "{}",
        verified.out
    );
    // The judge finds mistakes.
    std::fs::write(&file, unit.text.replace("Type=notify", "Type=nothing")).unwrap();
    assert_ne!(
        verify(&directory.join("aerostat-host@worker.service")).err,
        ""
    );
}

fn verify(unit: &Path) -> Ran {
    let mut command = Command::new("systemd-analyze");
    command.args(["verify", "--man=no"]).arg(unit);
    Ran::of(command)
}

#[test]
fn a_file_with_more_than_one_node_is_refused_with_what_to_remove() {
    let refused = run(&["host", NETWORK]);
    assert_eq!((refused.code, refused.out.as_str()), (2, ""));
    for says in [
        "error: switch s1 is a node, too",
        "help: remove it: the link goes out from the host itself, [desk, { udp: ... }]",
        "error: archive is a second node beside desk",
        "help: remove it: 'aerostat host' runs one node; 'aerostat up' runs whole labs",
        "error: LANE servers would be a second node",
        "error: desk has no link out of the lab",
    ] {
        refused.says(says);
    }
    for file in [WORKER, BOTH, NETWORK] {
        let valid = run(&["validate", file]);
        assert_eq!((valid.code, valid.err.as_str()), (0, ""), "{file}");
    }
}
