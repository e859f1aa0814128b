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
        Some(station) => station.inspect(what.parse().expect("a kind of state"), now),
        None => bench
            .switch(id)
            .and_then(|switch| switch.inspect(what.parse().expect("a kind of state"), now)),
    };
    let tables = tables.unwrap_or_default();
    // A host has such a table for each of its interfaces.
    let named: Vec<_> = tables.iter().filter(|table| table.title == title).collect();
    assert!(!named.is_empty(), "{node} has no table '{title}'");
    let texts = named.into_iter().flat_map(|table| {
        let at = table.columns.iter().position(|name| *name == column);
        let at = at.unwrap();
        table.rows.iter().map(move |row| match &row[at] {
            Value::None => String::new(),
            other => other.to_string(),
        })
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

/// A switch says of a connection the same as the hosts at its ends.
#[test]
fn the_tables_of_a_switch_name_ports_callers_and_called_parties() {
    let mut bench = Bench::new(lab_of("clip", LAB, &[]), 1);
    let flows = ["shaped", "back", "known"].map(|name| bench.flow(name));
    bench.until("traffic", 10.0, |bench| bench.all_pass(&flows));
    let of = |node, what, title, names: [&str; 5]| {
        let columns = names.map(|name| column(&bench, node, (what, title, name)));
        let rows = 0..columns[0].len();
        let row = |at: usize| columns.each_ref().map(|column| column[at].clone());
        rows.map(row).collect::<Vec<[String; 5]>>()
    };
    let names = ["name", "in_vc", "out", "calling", "called"];
    let west = of("west", "vc", "connections", names);
    let mut found = 0;
    for host in ["hub", "one", "a"] {
        let names = ["vc", "direction", "calling", "called", "phase"];
        for [vc, _, calling, called, phase] in of(host, "call", "calls", names) {
            assert_eq!(phase, "Connected");
            let here = west.iter().find(|row| row[0] == host && row[1] == vc);
            let here = here.unwrap_or_else(|| panic!("{host} {vc}: {west:?}"));
            assert_eq!([&calling, &called], [&here[3], &here[4]], "{host} {vc}");
            // The cells come out at a port with the label of this host in the other direction.
            let out = format!("{host}.{vc}");
            assert!(west.iter().any(|row| row[2] == out), "{out}: {west:?}");
            found += 1;
        }
    }
    assert!(found >= 5, "{found}");
    let control = west.iter().filter(|row| row[2] == "control plane");
    assert!(control.clone().count() >= 4 && control.clone().all(|row| row[3].is_empty()));
    // Each end system has one way.
    let mut ways = column(&bench, "west", ("route", "routes", "prefix"));
    let all = ways.len();
    ways.sort();
    ways.dedup();
    assert_eq!(ways.len(), all, "{ways:?}");
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

/// Two hosts with an interface on each of four subnets, and one on an ELAN.
const SEVERAL: &str = "
switches: { west: {}, east: {} }
links: [[west, east]]
lane: { on: west, elans: { lan: { subnet: 10.1.0.0/24 } } }
clip:
  t0: { subnet: 10.5.0.0/24, server: one, mtu: 576 }
  t1: { subnet: 10.6.0.0/24, server: one, mtu: 1500 }
  t2: { subnet: 10.7.0.0/24, server: two }
  t3: { subnet: 10.8.0.0/24, server: two, mtu: 65521 }
hosts:
  one: { on: west, elan: t0, ip: 10.5.0.1, elans: { t1: 10.6.0.1, t2: 10.7.0.1, t3: 10.8.0.1, lan: 10.1.0.1 } }
  two: { on: east, elan: t0, ip: 10.5.0.2, elans: { t1: 10.6.0.2, t2: 10.7.0.2, t3: 10.8.0.2, lan: 10.1.0.2 } }
traffic:
  - { name: f0, from: one, to: two, kind: udp, rate: 50pps, size: 548, start: 1s, duration: 5s }
  - { name: f1, from: one, to: two, over: t1, kind: udp, rate: 50pps, size: 1472, start: 1s, duration: 5s }
  - { name: f2, from: two, to: one, over: t2, kind: udp, rate: 50pps, size: 9152, start: 1s, duration: 5s }
  - { name: f3, from: one, to: two, over: t3, kind: udp, rate: 50pps, size: 65493, start: 1s, duration: 5s }
  - { name: f4, from: two, to: one, over: lan, kind: ping, rate: 50pps, start: 1s, duration: 5s }
  - { name: f5, from: two, to: one, over: t0, kind: tcp, start: 1s, duration: 1s }
";

#[test]
fn a_host_has_an_interface_on_each_of_its_subnets() {
    let mut bench = Bench::new(lab_of("several", SEVERAL, &[]), 1);
    let flows = ["f0", "f1", "f2", "f3", "f4", "f5"].map(|name| bench.flow(name));
    bench.until("traffic", 5.0, |bench| bench.all_pass(&flows));
    for host in ["one", "two"] {
        let names = column(&bench, host, ("port", "interfaces", "interface"));
        assert_eq!(names, ["atm0", "atm1", "atm2", "atm3", "lec4"], "{host}");
        let sizes = column(&bench, host, ("port", "interfaces", "mtu_octets"));
        assert_eq!(sizes, ["576", "1500", "9180", "65521", "1500"], "{host}");
        // One connection for each subnet, besides that to its server.
        let roles = column(&bench, host, ("clip", "connections", "role"));
        assert!((4..=8).contains(&roles.len()), "{roles:?}");
    }
    // Each interface had packets of its own.
    let id = bench.node("two");
    let station = bench.station(id).unwrap();
    let counters: Vec<_> = station.host().interface_counters().collect();
    assert!(
        counters.iter().all(|itf| itf.lane_out + itf.lane_in > 0),
        "{counters:?}"
    );
}

#[test]
fn mistakes_about_further_interfaces_are_told() {
    let told = |more: &str| {
        let text = SEVERAL.replace("lan: 10.1.0.2", more);
        let found = aerostat_lab::parse("t.atm.yml", &text, &[]);
        found.expect_err(more).to_string()
    };
    assert!(told("lan: 10.1.0.2, t0: 10.5.0.9").contains("two is on t0 already"));
    assert!(told("nowhere: 10.1.0.2").contains("there is no ELAN 'nowhere'"));
    assert!(told("lan: 10.5.0.9").contains("10.5.0.9 is outside 10.1.0.0/24"));
    let over = SEVERAL.replace("over: lan", "over: lam");
    let found = aerostat_lab::parse("t.atm.yml", &over, &[]).expect_err("a wrong name");
    assert!(found.to_string().contains("one is not on 'lam'"), "{found}");
}

#[test]
fn the_lab_of_four_tunnels_keeps_its_promises() {
    let mut bench = Bench::new(crate::bench::repository_lab("ip-tunnels", &[]), 1);
    let flows = ["small", "usual", "shaped", "paced", "other", "large", "cut"];
    let flows = flows.map(|name| bench.flow(name));
    bench.until("traffic", 5.0, |bench| bench.all_pass(&flows));
    let conns = |bench: &Bench, host: &str, name: &'static str| {
        column(bench, host, ("clip", "connections", name))
    };
    let sessions: Vec<_> = conns(&bench, "sello", "session")
        .into_iter()
        .zip(conns(&bench, "sello", "qos"))
        .filter(|(session, _)| !session.is_empty())
        .collect();
    let contract = |protocol: &str| {
        let found = sessions
            .iter()
            .find(|(session, _)| session.starts_with(protocol));
        found
            .unwrap_or_else(|| panic!("{protocol}: {sessions:?}"))
            .1
            .clone()
    };
    assert!(contract("tcp").contains("max_pcr=30000"), "{sessions:?}");
    assert!(contract("udp").contains("max_pcr=2000"), "{sessions:?}");
    // leme takes packets of 9180 octets, and both ends of its connection keep to that.
    assert!(
        conns(&bench, "leme", "mtu_octets")
            .iter()
            .all(|mtu| mtu == "9180")
    );
    assert!(conns(&bench, "sello", "mtu_octets").contains(&"9180".to_owned()));
    // All is over. Idle sessions go, and the connections to the servers stay.
    for _ in 0..20 {
        bench.run(Duration::from_secs(1));
        let roles = conns(&bench, "sello", "role");
        let servers = roles.iter().filter(|role| *role == "server").count();
        assert_eq!(servers, 4, "{roles:?}");
    }
    let left = conns(&bench, "sello", "session");
    assert!(left.iter().all(String::is_empty), "{left:?}");
}

/// 30 000 cells a second carry 11.43 Mbit/s in full segments of the default MTU.
#[test]
fn a_tcp_session_has_what_its_contract_allows() {
    let text = include_str!("../../../../labs/ip-tunnels.atm.yml");
    let (_, report) = crate::losses::run(text);
    let shaped = report.flows.iter().find(|flow| flow.name == "shaped");
    let paths = shaped.unwrap().paths.iter();
    let throughput: f64 = paths.map(|path| path.throughput_mbps).sum();
    let most = 30_000.0 * 48.0 * 8.0 / 1e6 * 9140.0 / 9216.0;
    assert!((0.95 * most..=most).contains(&throughput), "{throughput}");
}

/// A path whose middle is narrow. The first packets are lost, and tell; later ones go as fragments and come together.
#[test]
fn embedded_hosts_learn_the_mtu_of_their_path_and_routers_cut() {
    let lab = "
switches: { s: {} }
clip:
  near:   { subnet: 10.5.0.0/24, server: r1 }
  middle: { subnet: 10.6.0.0/24, server: r1, mtu: 576 }
  far:    { subnet: 10.7.0.0/24, server: r2 }
routers:
  r1: { on: s, elans: { near: 10.5.0.1, middle: 10.6.0.1 } }
  r2: { on: s, elans: { far: 10.7.0.1, middle: 10.6.0.2 } }
hosts:
  one: { on: s, elan: near, ip: 10.5.0.10 }
  two: { on: s, elan: far, ip: 10.7.0.10 }
traffic:
  - { name: large, from: one, to: two, kind: udp, rate: 50pps, size: 9000, start: 1s, duration: 5s, expect: loss }
  - { name: tcp, from: two, to: one, kind: tcp, start: 1s, duration: 8s }
";
    let mut bench = Bench::new(lab_of("cut", lab, &[]), 1);
    let flows = ["large", "tcp"].map(|name| bench.flow(name));
    bench.until("traffic", 5.0, |bench| bench.all_pass(&flows));
    let start = bench.now();
    bench.run(Duration::from_secs(1));
    let received = bench.received(flows[0], start)[0];
    assert!(
        (48..=51).contains(&received),
        "{received} datagrams in a second"
    );
    for host in ["one", "two"] {
        let id = bench.node(host);
        let station = bench.station(id).unwrap();
        let stack = station.host().ip().stack().unwrap();
        let seen = stack.fragment_counters();
        assert!(seen.told > 0 && seen.permitted > 0, "{host}: {seen:?}");
        assert!(host == "one" || seen.whole > 40, "{host}: {seen:?}");
    }
}
