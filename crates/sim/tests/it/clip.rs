//! Classical IP with preconfigured data: addresses, contracts, packets without LLC/SNAP.

use crate::bench::{Bench, lab_of};
use aerostat_node::inspect::Value;
use aerostat_proto::Duration;

/// Members with and without `mux`; a contract for each direction to `two`. There is no ATMARP server on `bare`.
const LAB: &str = "
switches: { west: {}, east: {} }
links: [[west, east]]
lane: { on: west, elans: { unused: { subnet: 10.1.0.0/24 } } }
clip:
  wan:
    subnet: 10.5.0.0/24
    server: hub
    mux: true
    next_hops: { 10.5.0.12: { qos: 'cbr:tx:max_pcr=3000,rx:max_pcr=1000' } }
  bare:
    subnet: 10.6.0.0/24
    next_hops: { 10.6.0.11: { address: a }, 10.6.0.12: { address: b } }
hosts:
  hub: { on: west, elan: wan, ip: 10.5.0.1 }
  one: { on: west, elan: wan, ip: 10.5.0.11 }
  two: { on: east, elan: wan, ip: 10.5.0.12 }
  a:   { on: west, elan: bare, ip: 10.6.0.11 }
  b:   { on: east, elan: bare, ip: 10.6.0.12 }
traffic:
  - { name: shaped, from: one, to: two, kind: udp, rate: 400pps, size: 1000, start: 1s, duration: 30s }
  - { name: back, from: two, to: hub, kind: udp, rate: 100pps, size: 1000, start: 1s, duration: 30s }
  - { name: known, from: a, to: b, kind: ping, rate: 50pps, start: 1s, duration: 30s }
";

/// Column `column` of the table `title` of a node, as text.
fn column(bench: &Bench, node: &str, (what, title, column): (&str, &str, &str)) -> Vec<String> {
    let (id, now) = (bench.node(node), bench.now());
    let tables = match bench.station(id) {
        Some(station) => station.inspect(what, now),
        None => bench
            .switch(id)
            .and_then(|switch| switch.inspect(what, now)),
    };
    let tables = tables.unwrap_or_default();
    let table = tables.iter().find(|table| table.title == title).unwrap();
    let at = table.columns.iter().position(|name| *name == column);
    let at = at.unwrap();
    let texts = table.rows.iter().map(|row| match &row[at] {
        Value::Text(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::None => String::new(),
    });
    texts.collect()
}

#[test]
fn contracts_hold_on_the_way_and_packets_stand_alone() {
    let mut bench = Bench::new(lab_of("clip", LAB, &[]), 1);
    let flows = ["shaped", "back", "known"].map(|name| bench.flow(name));
    bench.until("traffic", 10.0, |bench| bench.all_pass(&flows));
    // The contract of each direction, in both switches; SDUs are packets.
    for switch in ["west", "east"] {
        let traffic = column(&bench, switch, ("vc", "connections", "traffic"));
        for wanted in ["cbr:max_pcr=3000,sdu=9180", "cbr:max_pcr=1000,sdu=9180"] {
            let seen = traffic.iter().filter(|text| *text == wanted).count();
            assert_eq!(seen, 1, "{switch}: {wanted} in {traffic:?}");
        }
    }
    let form = ("clip", "connections", "encapsulation");
    let mut forms = column(&bench, "one", form);
    forms.sort();
    assert_eq!(forms, ["llc", "vc-mux"], "the server's, and the other");
    assert_eq!(column(&bench, "two", form).len(), 2);
    // 22 cells for a packet of 1028 octets: 3000 of them a second carry 136 packets, of 400 that are sent.
    let start = bench.now();
    bench.run(Duration::from_secs(10));
    let [shaped, back] = ["shaped", "back"].map(|name| bench.received(bench.flow(name), start)[0]);
    assert!((1350..=1370).contains(&shaped), "{shaped} packets in 10 s");
    assert!((995..=1005).contains(&back), "{back} packets in 10 s");
    // No request was sent, and there is one connection, with LLC/SNAP.
    assert_eq!(column(&bench, "a", form), ["llc"]);
    let mut states = column(&bench, "a", ("clip", "atmarp", "state"));
    states.dedup();
    assert_eq!(states, ["static"]);
}

/// LLC/SNAP, and SDUs with room for it.
#[test]
fn a_member_without_multiplexing() {
    let set = ["clip.wan.mux=false"];
    let mut bench = Bench::new(lab_of("clip", LAB, &set), 2);
    let flows = ["shaped", "back", "known"].map(|name| bench.flow(name));
    bench.until("traffic", 10.0, |bench| bench.all_pass(&flows));
    let forms = column(&bench, "one", ("clip", "connections", "encapsulation"));
    assert!(forms.iter().all(|form| form == "llc"), "{forms:?}");
    let traffic = column(&bench, "east", ("vc", "connections", "traffic"));
    let wanted = "cbr:max_pcr=3000,sdu=9188".to_owned();
    assert!(traffic.contains(&wanted), "{traffic:?}");
}

/// A permanent connection of 2 Mb/s beside a server, and traffic of 16 Mb/s that could use a call instead.
#[test]
fn a_permanent_connection_carries_what_its_contract_says_and_no_call_does() {
    let lab = "
switches: { west: {}, east: {} }
links: [[west, east]]
clip: { wan: { subnet: 10.5.0.0/24, server: hub } }
hosts:
  hub: { on: west, elan: wan, ip: 10.5.0.1 }
  one: { on: west, elan: wan, ip: 10.5.0.11 }
  two: { on: east, elan: wan, ip: 10.5.0.12 }
pvcs: [{ from: one, vc: 0.100, to: two, pcr: 4717 }]
traffic:
  - { name: there, from: one, to: two, kind: udp, rate: 2000pps, size: 1000, start: 0s, duration: 30s }
  - { name: back, from: two, to: one, kind: udp, rate: 2000pps, size: 1000, start: 2s, duration: 30s }
";
    let mut bench = Bench::new(lab_of("permanent", lab, &[]), 1);
    let flows = ["there", "back"].map(|name| bench.flow(name));
    bench.until("traffic", 10.0, |bench| bench.all_pass(&flows));
    bench.run(Duration::from_secs(5));
    let start = bench.now();
    bench.run(Duration::from_secs(10));
    for flow in flows {
        // 22 cells for each packet.
        let received = bench.received(flow, start)[0];
        assert!((2140..=2150).contains(&received), "{received} in 10 s");
    }
    for host in ["one", "two"] {
        let mut roles = column(&bench, host, ("clip", "connections", "role"));
        roles.sort();
        assert_eq!(roles, ["permanent", "server"], "{host}");
    }
}
