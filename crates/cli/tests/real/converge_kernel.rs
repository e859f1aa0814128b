//! `aerostat up` on a lab that runs, with kernel hosts: the command makes their interfaces, and the lab gets no right.
//!
//! Without /dev/net/tun or the privilege for namespaces these tests are skipped with a message.

use crate::lab_file;
use crate::live::{Runtime, can_run, wait_for, wait_for_end};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::process::Stdio;

const FILE: &str = "grown.atm.yml";

/// The lab, with these further lines among its routers and its hosts.
fn text(routers: &str, hosts: &str) -> String {
    format!(
        "
name: grown
switches: {{ s1: {{}}, s2: {{}} }}
links: [[s1, s2]]
lane: {{ on: s1, elans: {{ a: {{ subnet: 10.1.0.0/24 }}, b: {{ subnet: 10.2.0.0/24 }} }} }}
routers:
  r: {{ on: s2, elans: {{ a: 10.1.0.1, b: 10.2.0.1 }} }}
{routers}
hosts:
  urku: {{ on: s1, elan: a, ip: 10.1.0.10 }}
{hosts}
  sello: {{ on: s2, elan: b, ip: 10.2.0.10 }}
"
    )
}

const NINA: &str = "  nina: { on: s2, elan: b, ip: 10.2.0.11, tcp: { buffer: 64KiB } }";
const ROUTER: &str = "  k: { on: s1, kernel: true, elans: { a: 10.1.0.2, b: 10.2.0.2 } }";

#[test]
fn kernel_hosts_and_routers_come_change_and_go_while_others_lose_nothing() {
    if !can_run() {
        return;
    }
    let lab = Runtime::new("grown");
    lab.ok(&["up", "-d", "-q", &lab_file(FILE, &text("", ""))]);
    let process = lab.process();
    std::thread::scope(|scope| {
        let others =
            scope.spawn(|| lab.pings(&["sello"], &["-q", "-i", "0.02", "-c", "200", "10.1.0.10"]));
        come_change_and_go(&lab);
        others.join().unwrap();
    });
    assert_eq!(lab.process(), process);
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    assert!(status.contains("CapEff:\t0000000000000000"), "{status}");
    lab.down_with_warnings();
    lab.nothing_is_left();
}

fn come_change_and_go(lab: &Runtime) {
    let file = lab_file(FILE, &text(ROUTER, NINA));
    let dry = lab.ok(&["up", "--dry-run", &file]);
    for told in ["+ host nina: on s2", "+ router k: on s1"] {
        assert!(dry.contains(told), "{dry}");
    }
    let done = lab.ok(&["up", &file]);
    assert_eq!(done, format!("{dry}ready\n"));
    let shown = lab.ok(&["exec", "nina", "--", "ip", "-br", "address"]);
    assert!(shown.contains("10.2.0.11/24"), "{shown}");
    let keys = lab.ok(&["inspect", "nina", "tcp"]);
    assert!(keys.contains("net.ipv4.tcp_rmem"), "{keys}");
    lab.pings(&["urku"], &["-q", "-c", "3", "-i", "0.05", "10.2.0.11"]);
    lab.pings(&["nina"], &["-q", "-c", "3", "-i", "0.05", "10.1.0.2"]);
    wait_for("the routes of the new router's kernel", || {
        lab.ok(&["events"])
            .lines()
            .any(|line| line.contains(" k") && line.contains("routes read from the kernel"))
    });
    // The address is that of a namespace, so a new one is made, and the processes in the old one lose their network.
    let file = lab_file(FILE, &text(ROUTER, &NINA.replace("10.2.0.11", "10.2.0.12")));
    let refused = lab.run(&["up", &file]);
    refused.ends(1, "--restart nina");
    let mut old = lab
        .command(&["exec", "nina", "--", "sh", "-c"])
        .arg("echo here; while ip link show lec0 > /dev/null 2>&1; do sleep 0.05; done; echo gone")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut words = BufReader::new(old.stdout.take().unwrap()).lines();
    assert_eq!(words.next().unwrap().unwrap(), "here");
    lab.ok(&["up", "--restart", "nina", &file]);
    assert_eq!(words.next().unwrap().unwrap(), "gone");
    assert_eq!(wait_for_end(&mut old), 0);
    lab.pings(&["urku"], &["-q", "-c", "3", "-i", "0.05", "10.2.0.12"]);
    // The host goes on without a kernel, and the router is gone.
    let embedded = NINA.replace("tcp: { buffer: 64KiB }", "kernel: false");
    let file = lab_file(FILE, &text("", &embedded));
    lab.ok(&["up", "--restart", "all", &file]);
    for (node, says) in [
        ("nina", "nina is no kernel host"),
        ("k", "there is no node 'k'"),
    ] {
        let none = lab.run(&["exec", node, "--", "true"]);
        none.says(says);
    }
    lab.pings(&["urku"], &["-q", "-c", "3", "-i", "0.05", "10.2.0.11"]);
}

/// The answer to a request in another client's words.
fn asked(lab: &Runtime, request: &Value) -> Value {
    let socket = lab.directory.join("aerostat/grown/control.sock");
    let mut stream = UnixStream::connect(socket).unwrap();
    writeln!(stream, "{request}").unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

/// A client that says what it has not made, or makes nothing and goes, changes nothing; an older client hears what it
/// always has.
#[test]
fn clients_that_bring_nothing_or_too_late_change_nothing() {
    if !can_run() {
        return;
    }
    let lab = Runtime::new("brought");
    lab.ok(&["up", "-d", "-q", &lab_file(FILE, &text("", ""))]);
    let new = text("", NINA);
    let mut request = json!({
        "ask": "converge", "text": new, "set": [], "restart": [], "dry_run": false, "makes": true,
    });
    let answer = asked(&lab, &request);
    assert_eq!(answer["ok"]["done"], false, "{answer}");
    assert_eq!(answer["ok"]["wanted"]["nodes"], json!(["nina"]), "{answer}");
    let nina = json!({ "name": "nina", "lans": null, "tcp": [] });
    for (generation, nodes, says) in [
        (0, json!([]), "descriptors of new kernel hosts are missing"),
        (
            0,
            json!([nina]),
            "descriptors of new kernel hosts are missing",
        ),
        (
            0,
            json!([{ "name": "urku", "lans": [1], "tcp": [] }]),
            "descriptors",
        ),
        (7, json!([nina]), "another command has just changed the lab"),
    ] {
        request["brought"] = json!({ "generation": generation, "nodes": nodes });
        let answer = asked(&lab, &request);
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(says), "{says}: {answer}");
    }
    let older = request.as_object_mut().unwrap();
    older.remove("makes");
    older.remove("brought");
    let needs = &asked(&lab, &request)["ok"]["plan"]["changes"][0]["needs"];
    assert!(needs.to_string().contains("no right to make"), "{needs}");
    assert!(!lab.ok(&["inspect", "s2", "port"]).contains("nina"));
    lab.ok(&["up", &lab_file(FILE, &new)]);
    lab.pings(&["nina"], &["-q", "-c", "2", "-i", "0.05", "10.1.0.10"]);
    lab.down_with_warnings();
    lab.nothing_is_left();
}
