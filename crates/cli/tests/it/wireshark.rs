//! Wireshark's view of our packets: it reads every packet, finds none malformed, and names each protocol.

use crate::root;
use aerostat_testing::wireshark::{malformed_filter, tshark};
use std::collections::BTreeMap;
use std::process::Command;

fn count(lines: &[String]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for line in lines {
        *counts.entry(line.as_str()).or_default() += 1;
    }
    counts
}

/// The lab with a routed phase, a shortcut and all control traffic, recorded at every node.
#[test]
fn wireshark_reads_every_packet() {
    let directory = std::env::temp_dir().join(format!("aerostat-pcap-{}", std::process::id()));
    let ran = Command::new(env!("CARGO_BIN_EXE_aerostat"))
        .current_dir(root())
        .args([
            "run",
            "--quiet",
            "labs/two-subnets.atm.yml",
            "--until",
            "4040ms",
            "--pcap",
        ])
        .arg(&directory)
        .output()
        .expect("the command runs");
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );

    let mut chains: BTreeMap<String, usize> = BTreeMap::new();
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    for node in ["lane", "r1", "r2", "s1", "s2", "sello", "urku"] {
        let file = directory.join(format!("{node}.pcapng"));
        let Some(protocols) = tshark(&file, &["-T", "fields", "-e", "frame.protocols"]) else {
            return;
        };
        assert!(!protocols.is_empty(), "{node} recorded nothing");
        let Some(malformed) = tshark(&file, &["-Y", &malformed_filter()]) else {
            return;
        };
        assert!(malformed.is_empty(), "{node}: {malformed:#?}");
        for (chain, packets) in count(&protocols) {
            *chains.entry(chain.to_owned()).or_default() += packets;
        }
        let Some(columns) = tshark(&file, &["-Y", "mpoa", "-T", "fields", "-e", "_ws.col.Info"])
        else {
            return;
        };
        for (name, packets) in count(&columns) {
            *names.entry(name.to_owned()).or_default() += packets;
        }
    }
    for wanted in [
        "atm:sscop",
        "atm:sscop:q2931",
        "atm:lane",
        "atm:lane:eth:ethertype:arp",
        "atm:lane:eth:ethertype:ip:icmp:data",
        "atm:llc:nhrp",
        "atm:llc:ip:tcp:data",
    ] {
        assert!(
            chains.contains_key(wanted),
            "no packet is {wanted}: {chains:#?}"
        );
    }
    let dull: Vec<_> = chains
        .keys()
        .filter(|chain| chain.as_str() == "atm:data")
        .collect();
    assert!(
        dull.is_empty(),
        "packets that are only data to Wireshark: {chains:#?}"
    );
    for wanted in [
        "MPOA Resolution Request",
        "MPOA Resolution Reply",
        "MPOA Cache Imposition Request",
        "MPOA Cache Imposition Reply",
        "MPOA Keep-Alive",
    ] {
        assert!(
            names.contains_key(wanted),
            "no packet is a {wanted}: {names:#?}"
        );
    }
    let _ = std::fs::remove_dir_all(&directory);
}

/// NHRP between members of Classical IP and two servers, signed: tshark's names of the packets.
#[test]
fn wireshark_reads_nhrp_without_mpoa() {
    let directory = std::env::temp_dir().join(format!("aerostat-nhrp-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let lab = directory.join("plain.atm.yml");
    let text = "
nhrp: { key: { spi: 1, secret: everybody }, holding: 20s }
switches: { s: {} }
clip:
  a: { subnet: 10.5.0.0/24, server: r1, nhrp: true }
  m: { subnet: 10.7.0.0/24, server: r1, nhrp: true }
  b: { subnet: 10.6.0.0/24, server: r2, nhrp: true }
routers:
  r1: { on: s, elans: { a: 10.5.0.1, m: 10.7.0.1 } }
  r2: { on: s, elans: { m: 10.7.0.2, b: 10.6.0.1 } }
hosts:
  x: { on: s, elan: a, ip: 10.5.0.10 }
  y: { on: s, elan: b, ip: 10.6.0.10 }
traffic:
  - { from: x, to: y, kind: ping, rate: 5pps, start: 3s, duration: 2s }
";
    std::fs::write(&lab, text).unwrap();
    let ran = Command::new(env!("CARGO_BIN_EXE_aerostat"))
        .args(["run", "--quiet", "--until", "6s", "--pcap"])
        .args([&directory, &lab])
        .output()
        .expect("the command runs");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    let file = directory.join("r1.pcapng");
    let Some(malformed) = tshark(&file, &["-Y", &malformed_filter()]) else {
        return;
    };
    assert!(malformed.is_empty(), "{malformed:#?}");
    let fields = ["-Y", "nhrp", "-T", "fields", "-e", "_ws.col.Info"];
    let names = tshark(&file, &fields).unwrap_or_default();
    for wanted in [
        "Registration Request",
        "Registration Reply",
        "Resolution Request",
        "Resolution Reply",
    ] {
        let found = names.iter().any(|name| name.contains(wanted));
        assert!(found, "no packet is a {wanted}: {names:#?}");
    }
    let _ = std::fs::remove_dir_all(&directory);
}
