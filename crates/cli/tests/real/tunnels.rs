//! IP tunnels of running labs: four interfaces with four MTUs, sizes on which both ends agree, a connection for each
//! session, and a map of next hops that changes.

use crate::lab_file;
use crate::live::{Runtime, can_run, has, wait_for};
use serde_json::Value;
use std::fs;
use std::path::Path;

const LAB: &str = "labs/ip-tunnels.atm.yml";

fn rows(lab: &Runtime, node: &str, table: &str) -> Vec<Value> {
    lab.table(node, "clip", table)
}

fn counter(lab: &Runtime, node: &str, name: &str) -> u64 {
    let all = rows(lab, node, "counters");
    let found = all.iter().filter(|row| row["counter"] == name);
    found.filter_map(|row| row["value"].as_u64()).sum()
}

/// Pings with this payload and DF, without a fragment.
fn ping(lab: &Runtime, from: &str, to: &str, size: usize) -> (i32, String) {
    let size = size.to_string();
    let ping = [
        "exec", from, "--", "ping", "-M", "do", "-c", "1", "-W", "5", "-s", &size, to,
    ];
    let ran = lab.run(&ping);
    (ran.code, ran.out + &ran.err)
}

#[test]
fn kernel_hosts_have_four_interfaces_and_find_the_mtu_of_each_tunnel() {
    if !can_run() {
        return;
    }
    let lab = Runtime::new("tunnels");
    lab.ok(&["up", "-d", "-q", LAB, "--set", "traffic=[]"]);
    for (n, mtu) in [(5, 576), (6, 1500), (7, 9180), (8, 65_521)] {
        let to = format!("10.{n}.0.20");
        let (code, said) = ping(&lab, "sello", &to, mtu - 28);
        assert_eq!(code, 0, "{said}");
        let (code, said) = ping(&lab, "sello", &to, mtu - 27);
        assert_ne!(code, 0, "{said}");
        let own = format!("mtu={mtu}");
        let far = format!("mtu = {mtu}");
        assert!(said.contains(&own) || said.contains(&far), "{said}");
    }
    // The interface of leme takes 9180 octets, that of sello 65 521: both ends know what their connection carries.
    let (code, said) = ping(&lab, "sello", "10.8.0.30", 9152);
    assert_eq!(code, 0, "{said}");
    let (_, said) = ping(&lab, "sello", "10.8.0.30", 9153);
    assert!(
        said.contains("mtu = 9180") || said.contains("mtu=9180"),
        "{said}"
    );
    assert!(counter(&lab, "sello", "mtu_lowered") > 0);
    assert!(counter(&lab, "sello", "too_big") > 0);
    for (host, peer) in [("sello", "leme"), ("leme", "sello")] {
        // The end system, without its selector.
        let hex = |text: &str| text.trim().replace('.', "").to_lowercase()[..38].to_owned();
        let peer = hex(lab.ok(&["atmaddr", "-n", peer]).lines().next().unwrap());
        let conns = rows(&lab, host, "connections");
        let there = conns
            .iter()
            .filter(|row| row["peer"].as_str().is_some_and(|text| hex(text) == peer));
        let sizes: Vec<_> = there.map(|row| row["mtu_octets"].as_u64()).collect();
        assert!(!sizes.is_empty(), "{host}: {conns:?}");
        assert!(
            sizes.iter().all(|size| *size == Some(9180)),
            "{host}: {sizes:?}"
        );
    }
    // The kernel knows the path now; without DF it makes fragments, and they arrive.
    lab.ok(&[
        "exec",
        "sello",
        "--",
        "ping",
        "-c",
        "1",
        "-W",
        "5",
        "-s",
        "20000",
        "10.8.0.30",
    ]);
    lab.ends();
}

#[test]
fn each_tcp_connection_of_a_kernel_has_its_tunnel_and_contract() {
    if !can_run() || !has("iperf3") {
        return;
    }
    let lab = Runtime::new("sessions");
    lab.ok(&["up", "-d", "-q", LAB, "--set", "traffic=[]"]);
    lab.ok(&["exec", "nini", "--", "iperf3", "-s", "-p", "5003", "-D"]);
    let ready = "for i in $(seq 50); do iperf3 -c 10.7.0.20 -p 5003 -n 1K && exit 0; sleep 0.1; done; exit 1";
    lab.ok(&["exec", "sello", "--", "sh", "-c", ready]);
    let client = [
        "exec",
        "sello",
        "--",
        // The end of 'aerostat exec' does not end what it has started.
        "timeout",
        "8",
        "iperf3",
        "-c",
        "10.7.0.20",
        "-p",
        "5003",
        "-P",
        "3",
        "-t",
        "60",
    ];
    let mut client = lab.command(&client);
    client.stdout(std::process::Stdio::null());
    let mut client = client.spawn().unwrap();
    let open = |host: &str| {
        let conns = rows(&lab, host, "connections");
        let sessions = conns.into_iter().filter(|row| {
            let busy = row["packets_received"].as_u64() > Some(20);
            row["role"] == "session" && busy
        });
        sessions.collect::<Vec<_>>()
    };
    // Three connections with data, beside that of control: each end has them, with the contract of the port.
    wait_for("three busy sessions", || open("nini").len() >= 3);
    let contracts: Vec<String> = rows(&lab, "sello", "connections")
        .iter()
        .filter(|row| row["role"] == "session")
        .map(|row| row["qos"].as_str().unwrap().to_owned())
        .collect();
    assert!(contracts.len() >= 4, "{contracts:?}");
    assert!(
        contracts
            .iter()
            .all(|qos| qos.starts_with("cbr,aal5:max_pcr=30000")
                || qos.starts_with("cbr:max_pcr=30000")),
        "{contracts:?}"
    );
    let _ = client.wait();
    wait_for("the sessions to end", || {
        let all = rows(&lab, "sello", "connections");
        all.iter().all(|row| row["role"] != "session")
    });
    lab.down_with_warnings();
    lab.nothing_is_left();
}

const MAPPED: &str = "
name: mapped
switches: { sw: {} }
clip: { wan: { subnet: 10.5.0.0/24, server: hub, next_hops: file mapped.hops } }
hosts:
  hub:   { on: sw, elan: wan, ip: 10.5.0.1 }
  one:   { on: sw, elan: wan, ip: 10.5.0.2 }
  two:   { on: sw, elan: wan, ip: 10.5.0.3 }
";

/// A lab whose map is a file beside it.
fn mapped(test: &str, hops: &str) -> (Runtime, String) {
    let name = format!("{test}.hops");
    let text = MAPPED.replace("mapped", test);
    let file = lab_file(&format!("{test}.atm.yml"), &text);
    let map = Path::new(&file).with_file_name(name);
    fs::write(&map, hops).unwrap();
    let lab = Runtime::new(test);
    lab.ok(&["up", "-d", "-q", "--embedded", &file]);
    (lab, map.to_str().unwrap().to_owned())
}

fn entry(lab: &Runtime, ip: &str) -> Option<(String, String)> {
    let all = rows(lab, "one", "atmarp");
    let row = all.into_iter().find(|row| row["ip"] == ip)?;
    let text = |key: &str| row[key].as_str().unwrap_or("").to_owned();
    Some((text("state"), text("address")))
}

#[test]
fn a_map_is_read_again_when_it_changes_and_a_mistake_changes_nothing() {
    let (lab, map) = mapped("mapped", "0.0.0.0/0 hub\n10.5.0.9 two\n");
    let (state, two) = entry(&lab, "10.5.0.9").unwrap();
    assert_eq!(state, "static");
    assert_eq!(entry(&lab, "0.0.0.0/0").unwrap().0, "default");
    // Another file takes the place of the first one, as editors do it.
    let write = |text: &str| {
        let other = format!("{map}.new");
        fs::write(&other, text).unwrap();
        fs::rename(&other, &map).unwrap();
    };
    write("10.5.0.9 hub cbr,aal5:max_pcr=500\n10.5.0.8 two\n");
    wait_for("the new map", || entry(&lab, "10.5.0.8").is_some());
    let hub = entry(&lab, "10.5.0.9").unwrap().1;
    assert_ne!(hub, two);
    assert_eq!(entry(&lab, "0.0.0.0/0"), None);
    assert_eq!(counter(&lab, "one", "maps"), 1);
    write("10.5.0.9 two\n10.5.0.8 tow\n");
    wait_for("the mistake", || counter(&lab, "one", "maps_wrong") == 1);
    assert_eq!(entry(&lab, "10.5.0.9").unwrap().1, hub, "the old map stays");
    let events = lab.ok(&["events"]);
    let told = "line 2, column 10: neither an ATM address nor a node of the lab";
    assert!(events.contains(told), "{events}");
    lab.ends();
}
