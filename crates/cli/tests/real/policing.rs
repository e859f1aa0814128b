//! Traffic within a policed contract has no losses; excess traffic is lost, with its place in the results.

use crate::live::{Runtime, wait_for, wait_for_end};
use crate::{lab_file, piped};
use serde_json::Value;
use std::io::Read as _;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

/// CBR of 2 Mb/s in PDUs of 192 cells, beside best effort.
const LAB: &str = "
switches: { s1: {}, s2: {} }
links: [[s1, s2, { rate: 25.6, delay: 1ms }]]
clip: { w: { subnet: 10.7.0.0/24, server: y } }
hosts:
  x:
    on: s1
    elan: w
    ip: 10.7.0.1
    sockets:
      - { name: steady, vc: 0.100, size: 9180, pdus: 50, rate: 24pps }
      - { name: noise, vc: 0.200, size: 60000, pdus: 100, rate: 45pps }
  y: { on: s2, elan: w, ip: 10.7.0.2, sockets: [{ name: sink, vc: 0.100, listen: sink }] }
pvcs:
  - { from: x, vc: 0.100, to: y, pcr: 4717, police: true }
  - { from: x, vc: 0.200, to: y }
until: 4s
";

#[test]
fn a_contract_that_is_kept_loses_nothing_in_real_time() {
    let lab = Runtime::embedded("policing", LAB);
    let deadline = Instant::now() + Duration::from_secs(60);
    let cells = 50 * 192;
    loop {
        let rows = lab.rows(&["pvc", "show"]);
        let policed: Vec<_> = rows.iter().filter(|row| row["policed"] == "yes").collect();
        let [first, last] = policed[..] else {
            // Each switch polices traffic that enters the network; both directions have one end here.
            panic!("{rows:#?}");
        };
        for row in [first, last] {
            assert_eq!(row["cells_dropped"], 0, "{rows:#?}");
        }
        if [first, last].iter().all(|row| row["cells_a"] == cells) {
            break;
        }
        assert!(Instant::now() < deadline, "{rows:#?}");
        std::thread::sleep(Duration::from_millis(100));
    }
    let sockets = lab.ok(&["inspect", "y", "sockets", "-o", "json"]);
    assert!(sockets.contains("459000"), "{sockets}");
    lab.run(&["down"]);
    lab.nothing_is_left();
}

/// A host and a peer outside, both with a policed contract.
const EXCEEDED: &str = "
switches: { s: {} }
links: [[s, { name: peer, rate: oc3, udp: { local: 'LAB', peer: 'PEER' } }]]
clip: { w: { subnet: 10.0.0.0/24, server: b } }
hosts:
  a: { on: s, elan: w, ip: 10.0.0.1 }
  b: { on: s, elan: w, ip: 10.0.0.2, sockets: [{ name: sink, vc: 0.100, listen: sink }] }
pvcs:
  - { from: peer, vc: 0.100, to: b, pcr: 1000, police: true }
  - { from: a, vc: 0.200, to: b, to_vc: 0.200, pcr: 2000, police: true, shape: false }
traffic: [{ name: flow, from: a, to: b, kind: udp, rate: 200pps, size: 300 }]
";

/// A PDU of one cell on VC 0.100 in the form of the peer: header with HEC, CPCS trailer with CRC-32. Source: I.432,
/// I.363.5.
fn cell() -> Vec<u8> {
    use aerostat_node::atm::{CellRun, Pdu};
    use aerostat_wire::cell::HeaderForm;
    let run = CellRun::whole(Pdu::new(vec![7; 40]), aerostat_wire::Vc::new(0, 100));
    let [cell] = &run.to_cells()[..] else {
        panic!("40 octets are one cell");
    };
    cell.encode(HeaderForm::Nni).to_vec()
}

#[test]
fn senders_that_exceed_their_contracts_are_policed_and_the_results_say_where() {
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    let free = UdpSocket::bind("127.0.0.1:0").unwrap();
    let there = free.local_addr().unwrap();
    drop(free);
    let text = EXCEEDED.replace("LAB", &there.to_string());
    let text = text.replace("PEER", &peer.local_addr().unwrap().to_string());
    let lab = Runtime::new("exceeded");
    let file = lab_file("exceeded.atm.yml", &text);
    let mut up = piped(lab.command(&["up", "-q", "--embedded", "-o", "json", &file]));
    wait_for("the flow", || {
        lab.run(&["events"]).out.contains("traffic.started")
    });
    // The operator gives the host's connection half of the rate that its flow needs; its adapter does not shape.
    lab.ok(&["pvc", "del", "s", "a.0.200"]);
    let qos = "cbr:max_pcr=700";
    lab.ok(&[
        "pvc", "add", "s", "a.0.200", "b.0.200", "--qos", qos, "--police",
    ]);
    // The peer sends at 20 000 cells/s and more for a second; its contract is 1000 cells/s and a tolerance of 250 ms.
    let cell = cell();
    let until = Instant::now() + Duration::from_secs(1);
    while Instant::now() < until {
        for _ in 0..20 {
            peer.send_to(&cell, there).unwrap();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let dropped = |label: &str| {
        let rows = lab.rows(&["pvc", "show"]);
        let row = rows.iter().find(|row| row["a"] == label).unwrap();
        row["cells_dropped"].as_u64().unwrap()
    };
    wait_for("cells that are policed away", || {
        dropped("peer.0.100") > 1000 && dropped("a.0.200") > 100
    });
    // Lost traffic is a warning.
    assert_eq!(lab.run(&["down"]).code, 3);
    let mut out = String::new();
    up.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(wait_for_end(&mut up), 3);
    let results: Value = serde_json::from_str(&out).unwrap();
    let policers = results["policers"].as_array().unwrap();
    for vc in ["0.100", "0.200"] {
        let row = policers
            .iter()
            .find(|row| row["node"] == "s" && row["vc"] == vc && row["cells_in"] != 0);
        let row = row.unwrap_or_else(|| panic!("{policers:#?}"));
        let number = |key: &str| row[key].as_u64().unwrap();
        assert!(number("cells_discarded") > 100, "{row}");
        assert_eq!(
            number("cells_in"),
            number("cells_passed") + number("cells_discarded"),
            "{row}"
        );
    }
    // No more than the contract and its tolerance passed, however long the lab ran after that, because the peer sent
    // nothing then.
    let row = policers
        .iter()
        .find(|row| row["vc"] == "0.100" && row["cells_in"] != 0);
    let passed = row.unwrap()["cells_passed"].as_u64().unwrap();
    assert!(passed < 10_000, "{passed}");
    let flow = &results["flows"][0];
    let places = flow["lost_by"].to_string();
    assert!(places.contains("policer"), "{flow}");
    lab.nothing_is_left();
}
