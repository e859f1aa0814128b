//! Labs in real time: the real command, kernel hosts, real `ping` and `iperf3`.
//!
//! Without /dev/net/tun or the privilege for namespaces these tests are skipped with a message.

use crate::{Ran, command, root};
pub(crate) use aerostat_testing::command::signal;
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const LAB: &str = "labs/two-subnets.atm.yml";
const DEADLINE: Duration = Duration::from_secs(60);

/// A runtime directory of one test; everything that runs there ends with it.
pub(crate) struct Runtime {
    pub(crate) directory: PathBuf,
}

/// A lab with two hosts on ELANs of their own, behind two routers, so that MPOA finds a shortcut; `rest` is YAML.
pub(crate) fn with_a_shortcut(name: &str, rest: &str) -> String {
    format!(
        "
name: {name}
mpoa: true
switches: {{ s1: {{}}, s2: {{}} }}
links: [[s1, s2, {{ rate: oc3, delay: 5us }}]]
lane:
  on: s1
  elans: {{ a: {{ subnet: 10.1.0.0/24 }}, b: {{ subnet: 10.2.0.0/24 }}, core: {{ subnet: 10.9.0.0/24 }} }}
routers:
  r1: {{ on: s1, elans: {{ a: 10.1.0.1, core: 10.9.0.1 }}, forwarding: 35Mbps }}
  r2: {{ on: s2, elans: {{ b: 10.2.0.1, core: 10.9.0.2 }}, forwarding: 35Mbps }}
hosts:
  urku:  {{ on: s1, elan: a, ip: 10.1.0.10 }}
  sello: {{ on: s2, elan: b, ip: 10.2.0.10 }}
{rest}"
    )
}

impl Runtime {
    pub(crate) fn new(test: &str) -> Self {
        // It is not below the target directory, because another user must be able to enter it, and socket paths are
        // short.
        let directory =
            std::env::temp_dir().join(format!("aerostat-it-{}-{test}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        Self { directory }
    }
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = command(args);
        command.env("XDG_RUNTIME_DIR", &self.directory);
        command
    }
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args))
    }
    /// Like `run`, and the command must succeed.
    #[track_caller]
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.out
    }
    /// The JSON of a command that must succeed.
    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ok(args)).expect("JSON")
    }
    /// The rows of the JSON of a command that must succeed; the arguments are those without `-o`.
    #[track_caller]
    pub(crate) fn rows(&self, args: &[&str]) -> Vec<Value> {
        let document = self.json(&[args, &["-o", "json"]].concat());
        document["rows"].as_array().expect("rows").clone()
    }
    /// The rows of `inspect` with these words.
    #[track_caller]
    pub(crate) fn inspect(&self, words: &[&str]) -> Vec<Value> {
        self.rows(&[&["inspect"], words].concat())
    }
    /// The rows of one table of a node.
    #[track_caller]
    pub(crate) fn table(&self, node: &str, what: &str, table: &str) -> Vec<Value> {
        let mut rows = self.inspect(&[node, what]);
        rows.retain(|row| row["table"] == table);
        rows
    }
    /// Pings from a host (words of `exec`) with words of ping; every request gets its reply. The counters of the kernel
    /// tell: ping waits for two round trips after its last request, and on a busy machine it calls lost what is late.
    pub(crate) fn pings(&self, host: &[&str], words: &[&str]) -> String {
        let exec = |words: &[&str]| self.run(&[&["exec"], host, &["--"], words].concat()).out;
        let counted = || {
            let text = exec(&["cat", "/proc/net/snmp", "/proc/net/snmp6"]);
            let mut icmp = text.lines().filter_map(|line| line.strip_prefix("Icmp: "));
            let [names, values] = [(); 2].map(|()| icmp.next().unwrap().split(' '));
            let version_4 = names.zip(values);
            let version_6 = text
                .lines()
                .filter_map(|line| line.split_once(char::is_whitespace));
            let all: Vec<_> = version_4.chain(version_6).collect();
            let sum = |names: [&str; 2]| -> u64 {
                let wanted = all.iter().filter(|(name, _)| names.contains(name));
                wanted
                    .map(|(_, value)| value.trim().parse::<u64>().unwrap())
                    .sum()
            };
            [
                sum(["OutEchos", "Icmp6OutEchos"]),
                sum(["InEchoReps", "Icmp6InEchoReplies"]),
            ]
        };
        let before = counted();
        let out = exec(&[&["ping"], words].concat());
        let sent: u64 = out
            .lines()
            .find_map(|line| line.split_once(" packets transmitted")?.0.parse().ok())
            .unwrap_or_else(|| panic!("{host:?} {words:?}: {out}"));
        let since = || std::array::from_fn(|n| counted()[n] - before[n]);
        wait_for(&format!("a reply to each request of {out}"), || {
            since() == [sent, sent]
        });
        out
    }
    /// Stops the lab of a test that has caused faults, or whose embedded traffic has a start time. On a loaded machine
    /// its hosts may join later than that, so the traffic may cause warnings.
    pub(crate) fn down_with_warnings(&self) -> String {
        let ran = self.run(&["down"]);
        assert!([0, 3].contains(&ran.code), "{}{}", ran.out, ran.err);
        ran.out
    }
    fn up(&self) {
        self.ok(&["up", "-d", "-q", LAB]);
    }
    /// Process id of the lab.
    pub(crate) fn process(&self) -> String {
        let out = self.ok(&["ls", "-o", "csv"]);
        out.lines()
            .nth(1)
            .unwrap()
            .split(',')
            .nth(1)
            .unwrap()
            .to_owned()
    }
    /// Processes with this runtime directory in their environment: that of the lab, and all that it started.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let wanted = format!("XDG_RUNTIME_DIR={}", self.directory.display());
        let own = std::process::id();
        let all = fs::read_dir("/proc").unwrap().flatten();
        let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        ids.filter(|id| {
            let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
            *id != own
                && environment
                    .split(|octet| *octet == 0)
                    .any(|entry| entry == wanted.as_bytes())
        })
        .collect()
    }
    pub(crate) fn nothing_is_left(&self) {
        wait_for("all processes of the lab to end", || {
            self.processes().is_empty()
        });
        assert!(
            !lec_exists(Path::new("/sys/class/net")),
            "an interface was left"
        );
        let listed = Command::new("ip").args(["netns", "list"]).output().unwrap();
        assert!(!String::from_utf8_lossy(&listed.stdout).contains("aerostat"));
        // A process frees its memory, and so its environment, a moment before its locks.
        wait_for("the lab's lock to be free", || {
            self.run(&["ls"]).err == "no lab is running\n"
        });
        let left = fs::read_dir(self.directory.join("aerostat")).map_or(0, Iterator::count);
        assert_eq!(left, 0, "the runtime directory is not empty");
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        let _ = self.command(&["down", "--all"]).output();
        for process in self.processes() {
            signal(&process.to_string(), "KILL");
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A process that does not outlive its owner.
pub(crate) struct Killed(pub(crate) Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn lec_exists(directory: &Path) -> bool {
    let names = fs::read_dir(directory).unwrap().flatten();
    names
        .into_iter()
        .any(|entry| entry.file_name().to_string_lossy().starts_with("lec"))
}

pub(crate) fn wait_for(what: &str, mut come: impl FnMut() -> bool) {
    let until = Instant::now() + DEADLINE;
    while !come() {
        assert!(Instant::now() < until, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn wait_for_end(child: &mut Child) -> i32 {
    let mut status = None;
    wait_for("the command to end", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap().code().unwrap_or(-1)
}

/// False, with the reason printed, if kernel hosts cannot be made.
pub(crate) fn can_run() -> bool {
    let doctor = command(&["doctor"]).output().unwrap();
    let able = doctor.status.code() != Some(5);
    if !able {
        println!("skipped: {}", String::from_utf8_lossy(&doctor.stdout));
    }
    able
}

pub(crate) fn has(program: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        println!("left out: no {program}");
    }
    found
}

#[test]
fn kernel_hosts_reach_each_other_and_find_the_shortcut() {
    if !can_run() {
        return;
    }
    let lab = Runtime::new("hosts");
    lab.up();
    let again = lab.run(&["up", "-d", LAB]);
    again.ends(0, "lab 'two-subnets' is as its file says");

    let out = lab.ok(&["exec", "urku", "--", "ping", "-c", "3", "10.2.0.10"]);
    assert!(out.contains("3 packets transmitted, 3 received"), "{out}");
    assert_eq!(
        lab.run(&["exec", "urku", "--", "sh", "-c", "exit 7"]).code,
        7
    );
    let nobody = lab.run(&["exec", "s1", "--", "true"]);
    nobody.ends(1, "hint: kernel nodes: urku, sello");

    lab.ok(&[
        "exec",
        "urku",
        "--",
        "ping",
        "-q",
        "-c",
        "60",
        "-i",
        "0.02",
        "10.2.0.10",
    ]);
    let mut table = Vec::new();
    wait_for("a resolved shortcut", || {
        table = lab.table("urku", "mpc", "ingress");
        table
            .iter()
            .any(|row| row["destination"] == "10.2.0.10" && row["state"] == "resolved")
    });
    let text = lab.ok(&["inspect", "urku", "mpc", "-o", "proc"]);
    assert!(text.contains("\n10.2.0.10       resolved   "), "{text}");
    lab.pings(&["urku"], &["-q", "-c", "10", "-i", "0.02", "10.2.0.10"]);
    let events = lab.ok(&["events"]);
    assert!(
        events.contains(r#""event":"mpc.shortcut.first""#),
        "{events}"
    );
    for what in [
        "vc", "call", "lec", "les", "bus", "mps", "nhrp", "port", "route",
    ] {
        assert!(!lab.ok(&["inspect", what]).is_empty(), "{what}");
    }
    lab.ends();
}

#[test]
fn tcp_moves_data_while_links_are_captured() {
    if !can_run() || !has("iperf3") {
        return;
    }
    let lab = Runtime::new("tcp");
    lab.up();
    let file = lab.directory.join("all.pcapng");
    let mut capture = lab
        .command(&["capture", "urku-s1", "-w", file.to_str().unwrap()])
        .spawn()
        .unwrap();
    wait_for("the capture to begin", || {
        fs::metadata(&file).is_ok_and(|file| file.len() > 0)
    });
    let mut server = lab.command(&["exec", "sello", "--", "iperf3", "-s", "-1"]);
    let mut server = server.stdout(Stdio::null()).spawn().unwrap();
    let mut report = Value::Null;
    wait_for("a connection to iperf3", || {
        let client = [
            "exec",
            "urku",
            "--",
            "iperf3",
            "-c",
            "10.2.0.10",
            "-t",
            "2",
            "-J",
        ];
        let ran = lab.run(&client);
        // With -J its exit code is 0 even if no server listens yet.
        report = serde_json::from_str(&ran.out).unwrap_or_default();
        report["end"]["sum_received"].is_object()
    });
    assert_eq!(wait_for_end(&mut server), 0);
    let received = report["end"]["sum_received"]["bytes"].as_u64().unwrap();
    assert!(received > 500_000, "{received} octets in 2 s");
    signal(&capture.id().to_string(), "INT");
    assert_eq!(wait_for_end(&mut capture), 0);
    if has("tshark") {
        let mut tshark = Command::new("tshark");
        tshark.args([
            "-r",
            file.to_str().unwrap(),
            "-Y",
            "tcp.port == 5201 && tcp.len > 0",
        ]);
        let shown = tshark.output().unwrap();
        assert!(
            shown.status.success(),
            "{}",
            String::from_utf8_lossy(&shown.stderr)
        );
        assert!(String::from_utf8_lossy(&shown.stdout).lines().count() > 100);
    }
    let unknown = lab.run(&["capture", "urku-s7", "-w", file.to_str().unwrap()]);
    unknown.ends(1, "hint: links: s1-s2");
    lab.ends();
}

fn sleeps(lab: &Runtime) -> bool {
    let line = |id| fs::read_to_string(format!("/proc/{id}/cmdline"));
    let is_sleep = |id: &u32| line(*id).is_ok_and(|line| line.starts_with("sleep"));
    lab.processes().iter().any(is_sleep)
}

/// A command that runs in a host.
fn sleeps_inside(lab: &Runtime) -> Child {
    let mut command = lab.command(&["exec", "urku", "--", "sleep", "1000"]);
    let inside = command.spawn().unwrap();
    wait_for("a command inside the lab", || sleeps(lab));
    inside
}

#[test]
fn a_killed_lab_leaves_nothing_and_can_be_started_again() {
    if !can_run() {
        return;
    }
    let lab = Runtime::new("killed");
    lab.up();
    // A command does not outlive the process that has started it.
    for (name, code) in [("TERM", 143), ("KILL", -1)] {
        let mut inside = sleeps_inside(&lab);
        signal(&inside.id().to_string(), name);
        assert_eq!(wait_for_end(&mut inside), code, "{name}");
        wait_for("the command to end", || !sleeps(&lab));
    }
    let mut inside = sleeps_inside(&lab);
    signal(&lab.process(), "KILL");
    wait_for_end(&mut inside);
    lab.nothing_is_left();
    lab.up();
    lab.ok(&["exec", "urku", "--", "ping", "-c", "1", "10.2.0.10"]);
    signal(&lab.process(), "KILL");
    wait_for("the lab to be gone", || lab.run(&["down"]).code == 4);
    lab.nothing_is_left();
}

#[test]
fn interrupt_ends_a_lab_in_the_foreground() {
    if !can_run() {
        return;
    }
    let lab = Runtime::new("foreground");
    let mut up = lab.command(&["up", LAB]);
    let mut up = up
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(up.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "ready\n");
    signal(&up.id().to_string(), "INT");
    assert_eq!(wait_for_end(&mut up), 0);
    let told = std::io::read_to_string(up.stderr.take().unwrap()).unwrap();
    assert!(
        told.contains("urku          joined ELAN a as LECID"),
        "{told}"
    );
    assert!(
        told.contains("releasing ") && !told.contains("not released"),
        "{told}"
    );
    lab.nothing_is_left();
}

#[test]
fn embedded_hosts_need_no_privilege() {
    let lab = Runtime::new("embedded");
    let root_now = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    if root_now {
        if !has("setpriv") {
            return;
        }
        // The user `nobody` can reach only this copy of the command and of the lab.
        let program = lab.directory.join("command");
        fs::copy(env!("CARGO_BIN_EXE_aerostat"), &program).unwrap();
        let file = lab.directory.join("two-subnets.atm.yml");
        fs::copy(root().join(LAB), &file).unwrap();
        let state = lab.directory.join("run");
        fs::create_dir(&state).unwrap();
        assert!(
            Command::new("chown")
                .args(["65534:65534".as_ref(), state.as_os_str()])
                .status()
                .unwrap()
                .success()
        );
        let nobody = |args: &[&str]| {
            let mut command = Command::new("setpriv");
            command
                .args(["--reuid", "65534", "--regid", "65534"])
                .args(["--clear-groups", "--inh-caps=-all"])
                .arg(&program)
                .args(args)
                .env("XDG_RUNTIME_DIR", &state)
                .current_dir(&lab.directory)
                .stdin(Stdio::null());
            let output = command.output().unwrap();
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            (output.status.code(), told)
        };
        let (code, told) = nobody(&["up", "-d", "-q", "--embedded", "two-subnets.atm.yml"]);
        assert_eq!(code, Some(0), "{told}");
        assert!(matches!(nobody(&["down"]).0, Some(0 | 3)));
        if nobody(&["doctor"]).0 == Some(5) {
            let (code, told) = nobody(&["up", "-d", "two-subnets.atm.yml"]);
            assert_eq!(code, Some(5), "{told}");
            assert!(told.contains("hint: with --embedded"), "{told}");
            assert!(told.contains("'aerostat doctor'"), "{told}");
            assert_eq!(nobody(&["down"]).0, Some(4));
        }
    }
    lab.ok(&["up", "-d", "-q", "--embedded", LAB]);
    let exec = lab.run(&["exec", "urku", "--", "true"]);
    exec.ends(1, "hint: this lab runs with --embedded");
    let wrong = lab.run(&["inspect", "urku", "queu"]);
    let meant = "there is no node 'queu', and no such kind of state\n  hint: did you mean 'queue'?";
    assert!(
        wrong.code != 0 && wrong.err.contains(meant),
        "{}",
        wrong.err
    );
    // The traffic of the lab file runs: ten pings in a second make a flow, and a flow gets its shortcut.
    wait_for("the shortcut of the lab's own traffic", || {
        lab.ok(&["events"])
            .contains(r#""event":"mpc.shortcut.first""#)
    });
    lab.down_with_warnings();
    lab.nothing_is_left();
}

/// Two Linux kernels forward; the MPOA servers beside them resolve neighbours and answer.
#[test]
fn kernel_routers_forward_and_are_passed_by_a_shortcut() {
    if !can_run() {
        return;
    }
    let lab = Runtime::new("routers");
    let kernels = [
        "--set",
        "routers.r1.kernel=true",
        "--set",
        "routers.r2.kernel=true",
    ];
    lab.ok(&[&["up", "-d", "-q", LAB], &kernels[..]].concat());
    let ping = |count: &str| {
        let ping = [
            "exec",
            "urku",
            "--",
            "ping",
            "-q",
            "-i",
            "0.02",
            "-c",
            count,
            "10.2.0.10",
        ];
        lab.ok(&ping)
    };
    let out = ping("5");
    assert!(out.contains("5 received"), "{out}");
    let forwarded = lab.ok(&["exec", "r1", "--", "cat", "/proc/net/snmp"]);
    let counts = forwarded
        .lines()
        .nth(1)
        .expect("IP counters of the router's kernel");
    let forwarded: u64 = counts
        .split(' ')
        .nth(6)
        .and_then(|n| n.parse().ok())
        .expect("ForwDatagrams");
    assert!(forwarded >= 5, "the kernel forwards: {counts}");
    let mut events = String::new();
    wait_for("the shortcut", || {
        ping("40");
        events = lab.ok(&["events"]);
        events.contains("mpc.shortcut.first")
    });
    let at = |name: &str| {
        let line = events.lines().find(|line| line.contains(name)).expect(name);
        let event: Value = serde_json::from_str(line).expect("an event");
        event["time"].as_f64().expect("a time")
    };
    let took = at("mpc.resolution.answered") - at("mpc.resolution.sent");
    // One retry of ARP takes a second, so the answer did not wait for it.
    assert!(took < 0.9, "the servers took {took} s");
}

/// A route that changes in a router's kernel ends the shortcuts along that route.
#[test]
fn routes_of_a_kernel_reach_its_mpoa_server() {
    if !can_run() {
        return;
    }
    let lab = Runtime::new("routes");
    let kernels = [
        "--set",
        "routers.r1.kernel=true",
        "--set",
        "routers.r2.kernel=true",
    ];
    lab.ok(&[&["up", "-d", "-q", LAB], &kernels[..]].concat());
    let ping = |count: &str, pause: &str| {
        let ping = [
            "ping",
            "-q",
            "-W",
            "1",
            "-i",
            pause,
            "-c",
            count,
            "10.2.0.10",
        ];
        lab.run(&[&["exec", "urku", "--"], &ping[..]].concat()).out
    };
    let resolved = || {
        let mut rows = lab.table("urku", "mpc", "ingress").into_iter();
        rows.any(|row| row["state"] == "resolved")
    };
    wait_for("the shortcut", || {
        ping("30", "0.02");
        resolved()
    });
    let route = |change: &str| {
        let words: Vec<&str> = change.split(' ').collect();
        lab.ok(&[&["exec", "r1", "--", "ip", "route"], &words[..]].concat());
    };
    route("delete 10.2.0.0/24");
    wait_for("the shortcut to be purged", || !resolved());
    let out = ping("2", "0.3");
    assert!(out.contains(" 100% packet loss"), "there is no way: {out}");
    route("add 10.2.0.0/24 via 10.9.0.2");
    wait_for("the way", || ping("1", "0.3").contains(" 0% packet loss"));
    wait_for("the shortcut again", || {
        ping("30", "0.02");
        resolved()
    });
    // A route to one host only, not over the emulated LANs.
    route("add blackhole 10.2.0.10/32");
    wait_for("the shortcut to be purged", || !resolved());
    lab.ends();
}

/// The server beside a kernel sees the packets that the kernel will forward, and triggers the client of their source.
#[test]
fn a_kernel_router_triggers_its_clients() {
    if !can_run() {
        return;
    }
    let lab = Runtime::new("trigger");
    let set = [
        "--set",
        "routers.r1.kernel=true",
        "--set",
        "mpoa={trigger: true}",
    ];
    lab.ok(&[&["up", "-d", "-q", LAB], &set[..]].concat());
    // The rate is far too low for a flow.
    wait_for("the shortcut", || {
        lab.ok(&["exec", "urku", "--", "ping", "-c", "1", "10.2.0.10"]);
        let events = lab.ok(&["events"]);
        let detected = r#""node":"urku","event":"mpc.flow.detected""#;
        assert!(!events.contains(detected), "{events}");
        events.contains("mps.trigger") && events.contains("mpc.shortcut.first")
    });
    lab.ends();
}

/// IPv6 datagrams that a kernel router has forwarded.
fn forwarded_6(lab: &Runtime, router: &str) -> u64 {
    let counts = lab.ok(&["exec", router, "--", "cat", "/proc/net/snmp6"]);
    let line = counts
        .lines()
        .find(|line| line.starts_with("Ip6OutForwDatagrams"));
    let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    number.expect("Ip6OutForwDatagrams")
}

/// Neighbour discovery over LANE with kernel routers on the path, then a shortcut; IPv4 at the same time.
#[test]
fn ipv6_finds_its_shortcut_too() {
    if !can_run() {
        return;
    }
    let lab = Runtime::new("ipv6");
    let wanted = [
        "routers.r1.kernel=true",
        "routers.r2.kernel=true",
        "lane.elans.a.ip6=2001:db8:1::/64",
        "lane.elans.b.ip6=2001:db8:2::/64",
        "lane.elans.core.ip6=2001:db8:9::/64",
    ];
    let mut up = vec!["up", "-d", "-q", LAB];
    up.extend(wanted.iter().flat_map(|set| ["--set", set]));
    lab.ok(&up);
    let ping = |count: &str, to: &str| {
        lab.pings(&["urku"], &["-q", "-i", "0.02", "-c", count, to]);
    };
    let target = "2001:db8:2::a02:a";
    ping("5", target);
    assert!(forwarded_6(&lab, "r1") >= 5, "the kernel forwards");
    let mut events = String::new();
    wait_for("both shortcuts", || {
        ping("40", target);
        ping("40", "10.2.0.10");
        events = lab.ok(&["events"]);
        let first = |to: &str| {
            let mut lines = events
                .lines()
                .filter(|line| line.contains("mpc.shortcut.first"));
            lines.any(|line| line.contains(&format!("first packet to {to} over")))
        };
        // In both directions.
        first(target) && first("2001:db8:1::a01:a") && first("10.2.0.10")
    });
    let before = forwarded_6(&lab, "r1");
    ping("50", target);
    assert_eq!(
        forwarded_6(&lab, "r1"),
        before,
        "packets pass the router by"
    );
    let text = lab.ok(&["inspect", "urku", "mpc", "-o", "proc"]);
    let (linux, own) = text.split_once("IPv6 (not in Linux)").expect("both");
    assert!(linux.contains("\n10.2.0.10       resolved   ") && !linux.contains("2001:"));
    assert!(
        own.contains("\n2001:db8:2::a02:a                        resolved   "),
        "{own}"
    );
    lab.ends();
}
