//! Bridging kernel hosts: stations behind veth cables on the kernel's bridges, and a station that moves.
//!
//! Without the privilege for namespaces, or bridges in the kernel, these tests are skipped and say so.

use crate::live::{Runtime, can_run, has, signal, wait_for, wait_for_end};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

const LAB: &str = "labs/bridges.atm.yml";

/// False, with the reason printed, if the kernel has no bridges.
pub(crate) fn can_bridge() -> bool {
    if !can_run() {
        return false;
    }
    let doctor = crate::run(&["doctor", "-o", "json"]);
    let json: Value = serde_json::from_str(&doctor.out).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["check"] == "bridge").unwrap();
    if row["state"] != "ok" {
        println!("skipped: {}", row["advice"]);
    }
    row["state"] == "ok"
}

/// A running lab with the requests of these tests.
struct Bridged(Runtime);

impl std::ops::Deref for Bridged {
    type Target = Runtime;
    fn deref(&self) -> &Runtime {
        &self.0
    }
}

impl Bridged {
    fn ping(&self, from: &str, to: &str, count: &str) -> String {
        let ping = ["exec", from, "--", "ping", "-q", "-i", "0.02"];
        let ran = self.run(&[&ping[..], &["-W", "1", "-c", count, to]].concat());
        ran.out
    }
    /// Names and addresses of the stations of a host, in order.
    fn stations(&self, host: &str) -> Vec<String> {
        let rows = self.inspect(&[host, "bridge"]).into_iter();
        let hosts = rows.filter(|row| row["table"] == "hosts");
        let text = |cell: &Value| cell.as_str().unwrap_or("-").to_owned();
        let mut all: Vec<_> = hosts
            .map(|row| [&row["name"], &row["ip"]].map(text).join(" "))
            .collect();
        all.sort();
        all
    }
    fn shortcut(&self, host: &str, to: &str) -> bool {
        let rows = self.inspect(&[host, "mpc"]);
        rows.iter().any(|row| {
            row["table"] == "ingress" && row["destination"] == to && row["state"] == "resolved"
        })
    }
    /// Time of an event with this word in its text, at one node.
    fn event(&self, node: &str, name: &str, word: &str) -> Option<f64> {
        let events = self.ok(&["events"]);
        let events = events.lines().map(serde_json::from_str::<Value>);
        let mut found = events.map(Result::unwrap).filter(|event| {
            event["node"] == node
                && event["event"] == name
                && event["text"].as_str().unwrap().contains(word)
        });
        found.next_back()?["time"].as_f64()
    }
}

#[test]
fn stations_behind_kernel_bridges_reach_each_other_and_get_shortcuts() {
    if !can_bridge() {
        return;
    }
    let lab = Bridged(Runtime::new("bridges"));
    lab.ok(&["up", "-d", "-q", LAB]);
    let anna = lab.ok(&["exec", "anna", "--", "ip", "address", "show", "eth0"]);
    assert!(anna.contains("10.1.0.20/24"), "{anna}");
    // The same bridge, the bridging host itself, another bridge of the ELAN, another subnet, and back.
    for (from, to) in [
        ("anna", "10.1.0.21"),
        ("anna", "10.1.0.10"),
        ("pc1", "10.1.0.21"),
        ("anna", "10.1.0.22"),
        ("cecilia", "10.1.0.20"),
        ("pc3", "10.1.0.20"),
        ("aarne", "10.1.0.21"),
    ] {
        let out = lab.ping(from, to, "5");
        assert!(out.contains("5 received"), "{from} {to}: {out}");
    }
    assert_eq!(lab.stations("pc1"), ["anna 10.1.0.20", "bertta 10.1.0.21"]);
    assert_eq!(lab.stations("pc2"), ["cecilia 10.1.0.22"]);
    let learned = lab.inspect(&["pc1", "bridge"]);
    let macs = learned.iter().filter(|row| row["table"] == "learned");
    assert_eq!(macs.count(), 2, "{learned:?}");
    // A flow of each station passes the router, and arrives undamaged.
    for (from, host, to) in [
        ("aarne", "pc3", "10.1.0.21"),
        ("bertta", "pc1", "10.2.0.20"),
    ] {
        wait_for("a shortcut", || {
            lab.ping(from, to, "30");
            lab.shortcut(host, to)
        });
        let out = lab.ping(from, to, "20");
        assert!(out.contains("20 received"), "over the shortcut: {out}");
    }
    if has("iperf3") {
        for (from, to, address) in [
            ("anna", "cecilia", "10.1.0.22"),
            ("bertta", "aarne", "10.2.0.20"),
        ] {
            let mut server = lab.command(&["exec", to, "--", "iperf3", "-s", "-1"]);
            let mut server = server.stdout(Stdio::null()).spawn().unwrap();
            let mut report = Value::Null;
            wait_for("a connection to iperf3", || {
                let iperf = ["exec", from, "--", "iperf3", "-t", "2", "-J", "-c", address];
                report = serde_json::from_str(&lab.run(&iperf).out).unwrap_or_default();
                report["end"]["sum_received"].is_object()
            });
            assert_eq!(wait_for_end(&mut server), 0);
            let rate = report["end"]["sum_received"]["bits_per_second"].as_f64();
            let rate = rate.unwrap() / 1e6;
            println!("{from} to {to}: {rate:.1} Mbit/s");
            assert!(rate > 2.0, "{from} to {to}: {rate} Mbit/s");
        }
    }
    lab.ends();
}

#[test]
fn a_station_that_moves_is_found_behind_its_new_bridge() {
    if !can_bridge() {
        return;
    }
    let lab = Bridged(Runtime::new("moves"));
    let open = "hosts.open={on: s2, elan: a, ip: 10.1.0.12, lec: {proxy: true}}";
    lab.ok(&["up", "-d", "-q", LAB, "--set", open]);
    let behind = |host: &str| lab.event(host, "bridge.learned", "01:01");
    // All others reach anna: a neighbour on her bridge, the other bridges, the router.
    for from in ["bertta", "cecilia", "pc2", "aarne"] {
        let out = lab.ping(from, "10.1.0.20", "5");
        assert!(out.contains("5 received"), "{from}: {out}");
    }
    assert!(behind("pc1").is_some() && behind("pc2").is_none());
    let refused = lab.run(&["move", "anna", "pc3"]);
    refused.ends(1, "another subnet");
    let refused = lab.run(&["move", "nobody", "pc2"]);
    refused.says("stations: anna, bertta, cecilia, aarne");
    // Pings to and from her continue meanwhile; each takes 20 ms.
    let forth = ["ping", "-q", "-i", "0.02", "-W", "1", "-c", "300"];
    let spawn = |from: &str, to: &str| {
        let mut ping = lab.command(&[&["exec", from, "--"], &forth[..], &[to]].concat());
        ping.stdout(Stdio::piped()).spawn().unwrap()
    };
    let pings = [
        spawn("cecilia", "10.1.0.20"),
        spawn("bertta", "10.1.0.20"),
        spawn("aarne", "10.1.0.20"),
    ];
    std::thread::sleep(std::time::Duration::from_secs(2));
    lab.ok(&["move", "anna", "pc2"]);
    assert_eq!(lab.stations("pc1"), ["bertta 10.1.0.21"]);
    let there = ["anna 10.1.0.20", "cecilia 10.1.0.22"];
    assert_eq!(lab.stations("pc2"), there);
    for (ping, from) in pings.into_iter().zip(["cecilia", "bertta", "aarne"]) {
        let out = String::from_utf8(ping.wait_with_output().unwrap().stdout).unwrap();
        let received = out.split(" packets transmitted, ").nth(1).unwrap();
        let received: u32 = received.split(' ').next().unwrap().parse().unwrap();
        println!("{from}: {} of 300 pings of 20 ms lost", 300 - received);
        assert!(received > 200, "{from} does not find her for long: {out}");
    }
    let came = behind("pc2").expect("behind pc2");
    let left = lab
        .event("pc1", "bridge.left", "01:01")
        .expect("not behind pc1");
    println!("pc1 knew it {:.1} ms after pc2", (left - came) * 1e3);
    // LE_ARP now names the new bridge's client as the owner.
    let owner = |of: &str| {
        let rows = lab.inspect(&[of, "lec"]);
        let row = rows.iter().find(|row| {
            let mac = row["mac"].as_str().unwrap_or_default();
            row["table"] == "le_arp" && mac.ends_with("01:01")
        });
        row.map(|row| row["address"].as_str().unwrap().to_owned())
    };
    for of in ["gw", "pc1"] {
        let owner = owner(of).expect("an LE_ARP entry");
        // The ESI is the MAC address of pc2.
        assert!(owner.ends_with(".02a703000200.00"), "{of}: {owner}");
    }
    // Traffic that went to her over a shortcut does so again, to the other bridge.
    wait_for("the shortcut to her new bridge", || {
        lab.ping("aarne", "10.1.0.20", "30");
        let rows = lab.inspect(&["pc3", "mpc"]);
        rows.iter().any(|row| {
            let egress = row["egress"].as_str().unwrap_or_default();
            row["table"] == "ingress"
                && row["destination"] == "10.1.0.20"
                && row["state"] == "resolved"
                && egress.ends_with(".02a703000200.51")
        })
    });
    // A host with real stations takes her, too: it has a bridge.
    lab.ok(&["move", "anna", "open"]);
    wait_for("her third bridge", || behind("open").is_some());
    let out = lab.ping("bertta", "10.1.0.20", "5");
    assert!(out.contains("5 received"), "behind open: {out}");
    // She moves back, and only her own announcement tells where she is.
    lab.ok(&["move", "anna", "pc1"]);
    wait_for("her bridge to know her", || {
        behind("pc1").is_some_and(|at| at > left)
    });
    for from in ["bertta", "cecilia", "aarne"] {
        let out = lab.ping(from, "10.1.0.20", "5");
        assert!(out.contains("5 received"), "{from}: {out}");
    }
    signal(&lab.process(), "KILL");
    lab.nothing_is_left();
}

#[test]
fn interrupt_takes_bridges_and_cables_along() {
    if !can_bridge() {
        return;
    }
    let lab = Runtime::new("bridge-end");
    let mut up = lab.command(&["up", "-q", LAB]);
    let mut up = up
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(up.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    signal(&up.id().to_string(), "INT");
    assert_eq!(wait_for_end(&mut up), 0);
    lab.nothing_is_left();
}
