//! Daemons as processes of their own: the effects of their deaths.
//!
//! Without /dev/net/tun or the privilege for namespaces the tests with kernel hosts are skipped with a message.

mod every;
mod hang;
mod ilmid;
mod lecd;

use crate::live::{Runtime, can_run, has, signal, wait_for, wait_for_end};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const LAB: &str = "labs/two-subnets.atm.yml";

impl Runtime {
    /// The row of a host's daemon.
    fn daemon(&self, node: &str) -> Value {
        let rows = self.inspect(&[node, "processes"]);
        let mut rows = rows.iter();
        rows.find(|row| row["process"] == "mpcd").unwrap().clone()
    }
    /// Waits until a process of this role other than `before` runs. Returns its process id.
    fn process_runs(&self, node: &str, role: &str, before: &str) -> String {
        let mut pid = String::new();
        wait_for("the process to run", || {
            let rows = self.inspect(&[node, "processes"]);
            let row = rows.iter().find(|row| row["process"] == role);
            pid = row.map_or_else(String::new, |row| row["pid"].to_string());
            row.is_some_and(|row| row["state"] == "running") && pid != before
        });
        pid
    }
    /// The connections of `inspect vc` without labels and counters: node, owner, peer and purpose, and their number.
    fn kinds_of_connections(&self) -> BTreeMap<String, usize> {
        let mut kinds = BTreeMap::<String, usize>::new();
        for row in self.inspect(&["vc"]) {
            let mut names = vec!["node", "user", "role", "blli", "qos"];
            // A tree has the name of its first leaf, which differs from run to run.
            if row["role"] != "multipoint" {
                names.push("peer");
            }
            let words = names.iter().map(|name| row[*name].as_str().unwrap_or("-"));
            let words: Vec<&str> = words.collect();
            *kinds.entry(words.join(" ")).or_default() += 1;
        }
        // Where both ends call at once there are two connections for a while, or permanently; a third connection would
        // be a leak. Connections through the switches have their ends elsewhere, and are not counted.
        kinds.retain(|kind: &String, _| !kind.starts_with("s1 ") && !kind.starts_with("s2 "));
        let twins = kinds
            .iter_mut()
            .filter(|(kind, count)| kind.contains(" point-to-point ") && **count == 2);
        twins.for_each(|(_, count)| *count = 1);
        kinds
    }
    /// Waits until the connections are the same as in `before`.
    fn has_again(&self, before: &BTreeMap<String, usize>) {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let now = self.kinds_of_connections();
            if now == *before {
                return;
            }
            if Instant::now() >= until {
                let differ = |a: &BTreeMap<String, usize>, b: &BTreeMap<String, usize>| {
                    let all = a.iter().filter(|(kind, count)| b.get(*kind) != Some(count));
                    all.map(|(kind, count)| format!("{count} {kind}\n"))
                        .collect::<String>()
                };
                panic!(
                    "before:\n{}now:\n{}",
                    differ(before, &now),
                    differ(&now, before)
                );
            }
            self.ping("10");
        }
    }
    /// Waits until a daemon of a host other than `before` runs. Returns its process id.
    fn daemon_runs(&self, node: &str, before: &str) -> String {
        let mut pid = String::new();
        wait_for("the daemon to run", || {
            let row = self.daemon(node);
            pid = row["pid"].to_string();
            row["state"] == "running" && pid != before
        });
        pid
    }
    fn kill(&self, node: &str, how: &str) -> String {
        let pid = self.daemon_runs(node, "");
        signal(&pid, how);
        pid
    }
    fn resolved(&self, node: &str, destination: &str) -> bool {
        let rows = self.inspect(&[node, "mpc"]);
        let mut found = rows.iter().filter(|row| {
            row["table"] == "ingress"
                && row["destination"] == destination
                && row["state"] == "resolved"
        });
        found.any(|row| row["vci"].is_u64())
    }
    fn ping(&self, count: &str) -> String {
        let ping = ["ping", "-q", "-i", "0.02", "-c", count, "10.2.0.10"];
        self.ok(&[&["exec", "urku", "--"], &ping[..]].concat())
    }
    /// Switched connections by node.
    fn connections(&self) -> BTreeMap<String, usize> {
        let mut count = BTreeMap::new();
        for row in self.inspect(&["vc"]) {
            *count.entry(row["node"].to_string()).or_default() += 1;
        }
        count
    }
    /// How often a node reported an event.
    fn told(&self, node: &str, event: &str) -> usize {
        let (node, event) = (
            format!(r#""node":"{node}""#),
            format!(r#""event":"{event}""#),
        );
        let events = self.ok(&["events"]);
        let both = |line: &&str| line.contains(&node) && line.contains(&event);
        events.lines().filter(both).count()
    }
    fn start(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        command.spawn().unwrap()
    }
}

#[test]
fn a_crashed_host_with_processes_of_its_own_is_told_to_be_down() {
    if !can_run() {
        return;
    }
    let lab = Runtime::new("split-down");
    lab.ok(&["up", "-d", "-q", "--split", LAB]);
    lab.ok(&["inspect", "urku", "processes"]);
    lab.ok(&["fault", "crash", "urku"]);
    for kinds in [&[][..], &["processes"], &["lec"]] {
        let ran = lab.run(&[&["inspect", "urku"], kinds].concat());
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{kinds:?}");
        assert!(ran.err.contains("urku is down"), "{kinds:?}: {}", ran.err);
    }
    lab.ok(&["inspect", "processes"]);
    lab.down_with_warnings();
}

#[test]
fn a_daemon_that_is_killed_stops_no_traffic_and_the_next_takes_over() {
    if !can_run() {
        return;
    }
    let lab = Runtime::new("split-kill");
    lab.ok(&["up", "-d", "-q", "--split", LAB]);
    wait_for("the shortcut", || {
        lab.ping("30");
        lab.resolved("urku", "10.2.0.10")
    });
    // Both ends opened a shortcut; after the first death there is one for both directions, and the server calls.
    let first = lab.kill("urku", "KILL");
    let second = lab.daemon_runs("urku", &first);
    wait_for("the shortcut and the server's connection", || {
        lab.ping("5");
        lab.resolved("urku", "10.2.0.10") && lab.told("urku", "mpc.control.up") == 2
    });
    // Connections that the first death has left over may still go.
    let mut before = lab.connections();
    wait_for("connections to stay", || {
        std::thread::sleep(Duration::from_secs(1));
        let earlier = std::mem::replace(&mut before, lab.connections());
        earlier == before
    });

    let pinging = [
        "exec", "urku", "--", "ping", "-q", "-i", "0.02", "-c", "150",
    ];
    let pinging = lab.start(&[&pinging[..], &["10.2.0.10"]].concat());
    let fed = has("iperf3").then(|| {
        let server = lab.start(&["exec", "sello", "--", "iperf3", "-s", "-1"]);
        let listens = ["exec", "sello", "--", "ss", "-Hltn", "sport = :5201"];
        wait_for("iperf3 to listen", || !lab.run(&listens).out.is_empty());
        let run = ["iperf3", "-c", "10.2.0.10", "-t", "3", "-J"];
        (
            server,
            lab.start(&[&["exec", "urku", "--"], &run[..]].concat()),
        )
    });
    assert_eq!(lab.kill("urku", "KILL"), second);
    let third = lab.daemon_runs("urku", &second);
    assert_eq!(lab.daemon("urku")["restarts"], 2);
    assert_eq!(lab.daemon("urku")["last_end"], "died (signal 9)");
    wait_for("the shortcut", || lab.resolved("urku", "10.2.0.10"));
    let out = pinging.wait_with_output().unwrap().stdout;
    let out = String::from_utf8(out).unwrap();
    // Packets on the shortcut at that moment are lost, and packets that did not fit into a queue beside TCP.
    let received = out.split(" transmitted, ").nth(1);
    let received = received.and_then(|rest| rest.split(' ').next()?.parse().ok());
    assert!(received.is_some_and(|n: u32| n >= 140), "{out}");
    if let Some((mut server, client)) = fed {
        let out = client.wait_with_output().unwrap().stdout;
        let report: Value = serde_json::from_slice(&out).unwrap();
        let received = report["end"]["sum_received"]["bytes"].as_u64();
        assert!(received.is_some_and(|n| n > 500_000), "{report}");
        assert_eq!(wait_for_end(&mut server), 0);
    }
    // The answer from before the death was sufficient: no second request was sent.
    assert_eq!(lab.told("urku", "mpc.resolution.sent"), 1);
    let mut now = BTreeMap::new();
    wait_for("as many connections as before", || {
        now = lab.connections();
        if now != before {
            println!("connections: {before:?} before, {now:?} now");
        }
        now == before
    });
    assert_eq!(lab.daemon_runs("urku", ""), third);

    // The lab dies, and its daemons with it.
    signal(&lab.process(), "KILL");
    lab.nothing_is_left();
}

#[test]
fn a_daemon_that_is_asked_to_end_tells_the_servers_and_stays_away() {
    let lab = Runtime::new("split-term");
    let embedded = ["up", "-d", "-q", "--split", "--embedded", LAB];
    lab.ok(&embedded);
    // The lab's own traffic makes the flows, continuously from the fourth second on.
    wait_for("the shortcut", || lab.resolved("urku", "10.2.0.10"));
    let egress = || {
        let rows = lab.inspect(&["urku", "mpc"]);
        rows.iter().filter(|row| row["table"] == "egress").count()
    };
    wait_for("the shortcut back", || egress() == 1);
    lab.kill("urku", "TERM");
    wait_for("the daemon to end", || {
        lab.daemon("urku")["state"] == "ended"
    });
    assert_eq!(lab.daemon("urku")["last_end"], "asked");
    assert_eq!(lab.told("urku", "mpc.purge.sent"), 1);
    assert_eq!(egress(), 0);
    // The server that had imposed the entry has answered the purge, so it has removed the entry.
    let rows = lab.inspect(&["urku", "mpc"]);
    let answered = |row: &&Value| row["counter"] == "egress_purge_replies";
    assert_eq!(rows.iter().find(answered).unwrap()["value"], 1);

    // A daemon that the user starts serves; a second one is refused.
    let mut hand = lab.start(&["mpcd", "urku"]);
    let pid = lab.daemon_runs("urku", "");
    assert_eq!(pid, hand.id().to_string());
    let refused = lab.run(&["mpcd", "urku"]);
    assert_eq!(refused.code, 1);
    let why = format!("mpcd of urku is process {pid}");
    refused.says(&why);
    let refused = lab.run(&["mpcd", "r1"]);
    refused.says("r1 has no seat for mpcd");

    // SIGHUP: the client starts again, in the same process.
    let runs = lab.told("urku", "mpc.up");
    signal(&pid, "HUP");
    wait_for("the client to start again", || {
        lab.told("urku", "mpc.up") == runs + 1
    });
    assert_eq!(lab.daemon_runs("urku", ""), pid);
    signal(&pid, "INT");
    assert_eq!(wait_for_end(&mut hand), 0);
    wait_for("the seat to be free", || {
        lab.daemon("urku")["state"] == "ended"
    });
    assert_eq!(
        lab.daemon("sello")["restarts"],
        0,
        "the other one did not notice"
    );

    // A daemon that the user started ends with the lab, too.
    let mut hand = lab.start(&["mpcd", "urku"]);
    lab.daemon_runs("urku", "");
    lab.down_with_warnings();
    assert_eq!(wait_for_end(&mut hand), 0);
    lab.nothing_is_left();
}

#[test]
fn a_lab_that_is_not_split_has_no_place_for_daemons() {
    let lab = Runtime::new("split-not");
    lab.ok(&["up", "-d", "-q", "--embedded", LAB]);
    let mpcd = lab.run(&["mpcd", "urku"]);
    mpcd.ends(1, "'aerostat up --split'");
    let inspect = lab.run(&["inspect", "processes"]);
    inspect.ends(1, "'aerostat up --split'");
    lab.down_with_warnings();
    lab.nothing_is_left();
}

/// The signalling daemon of a host dies: its switched connections end, a permanent connection is not affected, and all
/// connections are set up again.
#[test]
fn a_signalling_manager_that_is_killed_takes_its_calls_along_and_nothing_else() {
    let lab = Runtime::new("split-sigd");
    let text = std::fs::read_to_string(crate::root().join(LAB)).unwrap();
    let urku = "urku:  { on: s1, elan: a, ip: 10.1.0.10 }";
    let sello = "sello: { on: s2, elan: b, ip: 10.2.0.10 }";
    let writer = "{ name: writer, vc: 0.100, size: 48, pdus: 100000, rate: 50pps }";
    let reader = "{ name: reader, vc: 0.101, listen: read }";
    assert!(text.contains(urku) && text.contains(sello));
    let with = |host: &str, program| host.replace(" }", &format!(", sockets: [{program}] }}"));
    let text = text.replace(urku, &with(urku, writer));
    let text = text.replace(sello, &with(sello, reader));
    let text = text + "pvcs: [{ from: urku, vc: 0.100, to: sello, to_vc: 0.101 }]\n";
    let file = std::env::temp_dir().join(format!("aerostat-sigd-{}.atm.yml", std::process::id()));
    std::fs::write(&file, text).unwrap();
    lab.ok(&[
        "up",
        "-d",
        "-q",
        "--split",
        "--embedded",
        file.to_str().unwrap(),
    ]);
    std::fs::remove_file(&file).unwrap();
    let sigd = || {
        let rows = lab.inspect(&["urku", "processes"]);
        let row = rows.iter().find(|row| row["process"] == "sigd");
        row.expect("a seat").clone()
    };
    let up = || lab.inspect(&["urku", "port"])[0]["link"] == "up";
    let joined = || {
        let rows = lab.inspect(&["urku", "port"]);
        rows.iter()
            .any(|row| row["interface"] == "lec0" && row["up"] == "yes")
    };
    wait_for("the shortcut", || lab.resolved("urku", "10.2.0.10"));
    let permanent = || {
        let rows = lab.inspect(&["sello", "vc"]);
        let row = rows
            .iter()
            .find(|row| row["vc"].as_str().is_some_and(|vc| vc.ends_with("0.101")));
        row.expect("the permanent connection")["pdus_received"]
            .as_u64()
            .unwrap()
    };
    let (began, before) = (Instant::now(), permanent());
    signal(&sigd()["pid"].to_string(), "KILL");
    wait_for("the calls to end", || {
        lab.told("urku", "signalling.gone") == 1
    });
    wait_for("the next one", || {
        sigd()["state"] == "running" && sigd()["restarts"] == 1
    });
    wait_for("signalling to be up", up);
    let signalling = began.elapsed();
    wait_for("the host to join again", joined);
    let elan = began.elapsed();
    wait_for("the shortcut", || lab.resolved("urku", "10.2.0.10"));
    eprintln!(
        "signalling after {signalling:?}, ELAN after {elan:?}, shortcut after {:?}",
        began.elapsed()
    );
    assert_eq!(sigd()["last_end"], "died (signal 9)");
    // 50 PDUs each second without interruption; fewer than half of them would show a gap.
    let (seconds, received) = (began.elapsed().as_secs_f64(), permanent() - before);
    assert!(
        received as f64 >= seconds * 25.0,
        "{received} in {seconds} s"
    );
    // After SIGTERM it releases its calls and is not started again.
    signal(&sigd()["pid"].to_string(), "TERM");
    wait_for("its end", || sigd()["state"] == "ended");
    assert!(!up());
    lab.down_with_warnings();
    lab.nothing_is_left();
}
