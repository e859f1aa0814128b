//! `aerostat follow --lab`: ways of packets through a running lab.

use crate::lab_file;
use crate::live::{Runtime, can_run, has, with_a_shortcut};
use serde_json::Value;

const REST: &str = "\
traffic:
  - { name: voice, from: urku, to: sello, kind: udp, rate: 50pps, size: 160, start: 3s, duration: 100s }
until: 9s
";

/// Links of a way, in the order in which the packet crosses them.
fn links_of_live(way: &Value) -> Vec<String> {
    let steps = way["steps"].as_array().unwrap().iter();
    let sent = steps.filter(|step| step["act"] == "sent");
    sent.map(|step| step["link"].as_str().unwrap().to_owned())
        .collect()
}

/// A packet takes the same links as in virtual time: over the routers first, and then the shortcut.
#[test]
fn packets_of_a_running_lab_take_the_links_of_virtual_time() {
    let lab = Runtime::new("follow-two");
    let path = lab_file("follow-two.atm.yml", &with_a_shortcut("follow-two", REST));
    let exact = |packet: &str| {
        let way = lab.json(&["follow", &path, packet, "-o", "json"]);
        let stages = way["stages"].as_array().unwrap().iter();
        let sent = stages.filter(|stage| stage["what"] == "transmission");
        sent.map(|stage| stage["link"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    lab.ok(&["up", "-d", "-q", "--embedded", &path]);
    let args = [
        "follow",
        "--lab",
        "follow-two",
        "--from",
        "urku",
        "--to",
        "10.2.0.10",
    ];
    let ways = lab.json(&[&args[..], &["--one-in", "49", "--count", "2", "-o", "json"]].concat());
    assert_eq!(ways["schema"], "aerostat.ways.v1");
    for (number, packet) in [(0, "voice:1"), (1, "voice:50")] {
        let way = &ways["ways"][number];
        assert_eq!(
            (&way["end"], &way["to"]),
            (&"delivered".into(), &"sello".into()),
            "{way:#}"
        );
        assert_eq!(links_of_live(way), exact(packet), "{way:#}");
    }
    let table = lab.ok(&args);
    assert!(table.contains("switches it, 0."), "{table}");
    // A packet that is lost says where.
    lab.ok(&["link", "set", "s1-s2", "loss=100%"]);
    let lost = lab.json(&[&args[..], &["-o", "jsonl"]].concat());
    let last = lost["steps"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&lost["end"], &last["link"]),
        (&"unseen".into(), &"s1-s2".into()),
        "{lost:#}"
    );
    let nobody = lab.run(&["follow", "--lab", "follow-two", "--to", "nobody"]);
    nobody.ends(1, "no end system 'nobody'");
}

/// Packets of kernel hosts are followed, too.
#[test]
fn packets_of_kernel_hosts_are_followed() {
    if !can_run() || !has("ping") {
        return;
    }
    let lab = Runtime::new("follow-kernel");
    let path = lab_file(
        "follow-kernel.atm.yml",
        "
name: follow-kernel
switches: { s1: {} }
lane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  anna: { on: s1, elan: a, ip: 10.1.0.10 }
  bert: { on: s1, elan: a, ip: 10.1.0.20 }
",
    );
    lab.ok(&["up", "-d", "-q", &path]);
    let follow = [
        "follow",
        "--lab",
        "follow-kernel",
        "--count",
        "2",
        "-o",
        "json",
    ];
    let follow = lab
        .command(&follow)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let wait = || lab.ok(&["inspect", "--lab", "follow-kernel", "lab"]);
    crate::live::wait_for("the client", || wait().contains("clients"));
    lab.ok(&[
        "exec",
        "anna",
        "--",
        "ping",
        "-c",
        "5",
        "-i",
        "0.2",
        "10.1.0.20",
    ]);
    let ways = crate::rest_of(follow);
    let ways: Value = serde_json::from_str(&ways.out).unwrap();
    let [one, other] = [&ways["ways"][0], &ways["ways"][1]];
    assert!(
        one["text"]
            .as_str()
            .unwrap()
            .starts_with("echo request 10.1.0.10 > 10.1.0.20"),
        "{one:#}"
    );
    assert!(
        other["text"]
            .as_str()
            .unwrap()
            .starts_with("echo reply 10.1.0.20 > 10.1.0.10"),
        "{other:#}"
    );
    assert_eq!(
        [&one["end"], &other["end"]],
        ["delivered", "delivered"],
        "{ways:#}"
    );
}

/// Packets that are left out are counted, and the ways of the others are whole: their stages add up to their time.
#[test]
fn ways_of_a_flood_are_whole_and_the_others_are_counted() {
    let lab = Runtime::embedded(
        "follow-flood",
        "
name: follow-flood
switches: { s1: {}, s2: {} }
links: [[s1, s2, { rate: oc12 }]]
clip: { net: { subnet: 10.1.0.0/24 } }
pvcs: [{ from: a, vc: 0.100, to: b, to_vc: 0.100 }]
hosts:
  a: { on: s1, elan: net, ip: 10.1.0.1, link: { rate: oc12 } }
  b: { on: s2, elan: net, ip: 10.1.0.2, link: { rate: oc12 } }
traffic: [{ from: a, to: b, kind: udp, rate: 50000pps, size: 60, start: 0s }]
",
    );
    let follow = [
        "follow",
        "--lab",
        "follow-flood",
        "--count",
        "3000",
        "-o",
        "json",
    ];
    let ended = lab.run(&follow);
    let ways: Value = serde_json::from_str(&ended.out).unwrap();
    let left_out = ways["packets_left_out"].as_u64().unwrap();
    let all = ways["ways"].as_array().unwrap();
    let each = all
        .iter()
        .map(|way| way["packets_left_out"].as_u64().unwrap());
    assert_eq!((all.len(), each.sum::<u64>()), (3000, left_out));
    assert_eq!(
        ended.code,
        if left_out > 0 { 3 } else { 0 },
        "{}",
        ended.err
    );
    assert_eq!(
        ended.err.contains("left out"),
        left_out > 0,
        "{}",
        ended.err
    );
    let mut whole = 0;
    for way in all {
        let steps = way["steps"].as_array().unwrap();
        let times: Vec<u64> = steps
            .iter()
            .map(|step| step["t"].as_u64().unwrap())
            .collect();
        assert!(times.is_sorted(), "{way:#}");
        whole += usize::from(way["end"] == "delivered" && steps.len() == 6);
    }
    // Queues of a machine that is too slow may lose packets.
    assert!(whole > 1500, "{whole} of 3000 ways are whole");
}
