//! `aerostat atmarp`, `atmaddr` and `atmdiag` with a running lab, and under their own names.

use crate::lab_file;
use crate::live::{Runtime, wait_for};
use serde_json::Value;
use std::os::unix::fs::symlink;
use std::process::Command;

/// A server, a client with traffic to it, two hosts with a permanent connection, and a host on an ELAN.
const LAB: &str = "
name: tools
switches: { sw: {} }
lane: { on: sw, elans: { lan: { subnet: 10.1.0.0/24 } } }
clip: { wan: { subnet: 10.5.0.0/24, server: one }, fixed: { subnet: 10.7.0.0/20 } }
hosts:
  one:   { on: sw, elan: wan, ip: 10.5.0.1 }
  two:   { on: sw, elan: wan, ip: 10.5.0.2 }
  left:  { on: sw, elan: fixed, ip: 10.7.0.1 }
  right: { on: sw, elan: fixed, ip: 10.7.0.2 }
  lan1:  { on: sw, elan: lan, ip: 10.1.0.1 }
  lan2:  { on: sw, elan: lan, ip: 10.1.0.2 }
pvcs: [{ from: left, vc: 0.100, to: right, qos: 'cbr:max_pcr=1000' }]
traffic:
  - { from: two, to: one, kind: ping, rate: 20pps }
  - { from: left, to: right, kind: ping, rate: 20pps }
  - { from: lan1, to: lan2, kind: ping, rate: 20pps }
";

fn json(text: &str, schema: &str) -> Vec<Value> {
    let document: Value = serde_json::from_str(text).unwrap();
    assert_eq!(document["schema"], schema);
    document["rows"].as_array().unwrap().clone()
}

#[test]
fn what_users_of_linux_atm_know() {
    let lab = Runtime::new("tools");
    let file = lab_file("tools.atm.yml", LAB);
    lab.ok(&["up", "-d", "-q", "--embedded", &file]);
    let known = |node: &str, ip: &str| {
        let wanted = format!("IP {ip}, state VALID, ");
        lab.ok(&["atmarp", "-a", node]).contains(&wanted)
    };
    wait_for("ATMARP and InATMARP", || {
        known("one", "10.5.0.2") && known("two", "10.5.0.1") && known("left", "10.7.0.2")
    });
    let address = |node: &str| lab.ok(&["atmaddr", "-n", node]).trim_end().to_owned();
    let (one, two) = (address("one"), address("two"));
    assert_eq!(
        one.len(),
        "47.0005.80FFE1000000F21A26D8.0020EA0000B0.00".len()
    );

    // A client: its server, which the client has called.
    let client = lab.ok(&["atmarp", "-a", "two"]);
    let lines: Vec<&str> = client.lines().collect();
    let usual = "Default QOS: ubr,aal5:max_sdu=9188";
    assert_eq!(
        lines[..2],
        ["----- Itf 0 (10.5.0.2, netmask 255.255.255.0) -----", usual]
    );
    let server = format!("IP 10.5.0.1, state VALID, addr {one}, flags 0x2004<PERM,ARPSRV>");
    assert_eq!(lines[2], server);
    assert_eq!(lines[3], format!("  {one} (active)"));
    assert!(client.ends_with("\n----- End of dump -----\n"));
    // The server: the same connection from the other end.
    let server = lab.ok(&["atmarp", "-a", "one"]);
    let client = format!("IP 10.5.0.2, state VALID, addr {two}, flags 0x8<PUBL>");
    assert!(
        server.contains(&format!("\n{client}\n  {two} (passive)\n")),
        "{server}"
    );
    // A permanent connection, which the lab file assigns to this next hop, with a contract and a longer mask.
    let left = lab.ok(&["atmarp", "-a", "left"]);
    assert!(left.starts_with("----- Itf 0 (10.7.0.1, netmask 255.255.240.0) -----\n"));
    let fixed = "IP 10.7.0.2, state VALID, addr <none>, flags 0x4<PERM>\n  0.0.100\n    QOS: cbr,aal5:max_pcr=1000,max_sdu=9188\n";
    assert!(left.contains(fixed), "{left}");
    // All nodes with Classical IP, each under its name; also in the form for programs.
    let all = lab.ok(&["atmarp", "-a"]);
    let heads: Vec<&str> = all.lines().filter(|line| line.starts_with("==>")).collect();
    let names = ["one", "two", "left", "right"].map(|node| format!("==> {node} <=="));
    assert_eq!(heads, names);
    let rows = json(
        &lab.ok(&["atmarp", "-a", "two", "-o", "json"]),
        "aerostat.atmarp.v1",
    );
    let entry = rows.iter().find(|row| row["table"] == "entry").unwrap();
    assert_eq!(
        (&entry["node"], &entry["flags"]),
        (&"two".into(), &0x2004.into())
    );

    // Counters: pings continue, so both directions count.
    let diag = lab.ok(&["atmdiag", "two"]);
    let lines: Vec<&str> = diag.lines().collect();
    assert_eq!(
        lines[..2],
        [
            "Itf       TX_okay   TX_err    RX_okay   RX_err    RX_drop",
            "  0 AAL0         0         0         0         0         0"
        ]
    );
    let counts: Vec<u64> = lines[2]
        .split_whitespace()
        .skip(1)
        .map(|n| n.parse().unwrap())
        .collect();
    assert!(
        lines[2].starts_with("    AAL5  ") && counts[0] > 3 && counts[2] > 3,
        "{diag}"
    );
    assert_eq!((counts[1], counts[3], counts[4]), (0, 0, 0));
    let rows = json(
        &lab.ok(&["atmdiag", "lane", "-o", "json"]),
        "aerostat.atmdiag.v1",
    );
    assert_eq!((rows.len(), &rows[1]["aal"]), (2, &"AAL5".into()));

    le_arp(&lab);
    by_their_own_names(&lab, &two);
    mistakes(&lab);
    lab.ends();
}

/// `/proc/net/atm/lec`: the other host of the ELAN, with a connection, and the BUS.
fn le_arp(lab: &Runtime) {
    let text = || lab.ok(&["inspect", "lan1", "lec", "-o", "proc"]);
    wait_for("a data direct connection", || {
        text().contains("_DIRECT 0000")
    });
    let text = text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert!(lines[0].starts_with("Itf  MAC          ATM destination   "));
    let other = lab.ok(&["inspect", "lan2", "lec", "-o", "json"]);
    let client = &json(&other, "aerostat.inspect.lec.v1")[0];
    let (mac, atm) = (
        client["mac"].as_str().unwrap(),
        client["address"].as_str().unwrap(),
    );
    let direct = format!(
        "lec0 {mac} {} ESI_FORWARD_DIRECT 0000  0 ",
        atm.replace('.', "")
    );
    assert!(lines[1].starts_with(&direct), "{text}");
    assert!(
        lines[2].starts_with("lec0 ff:ff:ff:ff:ff:ff 47")
            && lines[2].contains(" ESI_FORWARD_DIRECT 0002  0 ")
    );
    assert!(
        lines[3].contains(" ESI_UNKNOWN        0000               0 "),
        "{text}"
    );
}

fn by_their_own_names(lab: &Runtime, two: &str) {
    let own = |name: &str, args: &[&str]| {
        let link = lab.directory.join(name);
        let _ = symlink(env!("CARGO_BIN_EXE_aerostat"), &link);
        let mut command = Command::new(link);
        command.args(args).env("XDG_RUNTIME_DIR", &lab.directory);
        let ran = command.output().unwrap();
        let text = String::from_utf8(ran.stdout).unwrap();
        (ran.status.code().unwrap(), text)
    };
    assert_eq!(own("atmaddr", &["-n", "two"]), (0, format!("{two}\n")));
    assert_eq!(own("atmaddr", &["two"]), (0, format!("{two}\n")));
    assert_eq!(own("atmarp", &["-a"]).1, lab.ok(&["atmarp", "-a"]));
    assert!(own("atmdiag", &["two"]).1.starts_with("Itf       TX_okay"));
    let (code, help) = own("atmarp", &["--help"]);
    assert!(
        code == 0 && help.contains("aerostat atmarp -a lab1"),
        "{help}"
    );
    assert_eq!(
        own("atmarp", &[]).0,
        2,
        "as linux-atm's, it wants to be told what"
    );
    assert_eq!(own("atmarp", &["-V"]).0, 0);
    for name in ["atmarp", "atmaddr", "atmdiag"] {
        std::fs::remove_file(lab.directory.join(name)).ok();
    }
}

fn mistakes(lab: &Runtime) {
    for (args, says, hint) in [
        (
            &["atmarp", "-a", "lan1"][..],
            "lan1 has no Classical IP",
            "nodes that have: one, two, left, right",
        ),
        (
            &["atmarp", "-a", "sw"],
            "sw has no Classical IP",
            "nodes that have: one",
        ),
        (
            &["atmaddr", "-n", "sw"],
            "sw has no local ATM addresses",
            "nodes that have: ",
        ),
        (&["atmdiag", "sw"], "sw has no ATM adapter", "lan1"),
        (
            &["atmdiag", "nobody"],
            "there is no node 'nobody'",
            "nodes: sw",
        ),
    ] {
        let ran = lab.run(args);
        ran.refused(1, &[says, hint]);
    }
    assert_eq!(lab.run(&["atmarp", "-s", "10.5.0.9"]).code, 2);
}
