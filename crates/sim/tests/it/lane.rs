//! LAN emulation in whole labs: frame sizes, versions, policies, standby servers.

use crate::bench::{Bench, lab_of};
use crate::faults::stop_lane;
use aerostat_node::host::ServiceKind;
use aerostat_node::inspect::StateKind;
use aerostat_proto::Duration;

/// Two hosts on one ELAN, each with a flow to the other; servers on a third switch.
const LAB: &str = "
switches: { s1: { police: true }, s2: { police: true }, s3: {} }
links: [[s1, s2], [s2, s3]]
lane: { on: s3, SERVERS elans: { a: { subnet: 10.1.0.0/24, ELAN }, other: { subnet: 10.2.0.0/24 } } }
hosts:
  x: { on: s1, elan: a, ip: 10.1.0.10, X }
  y: { on: s2, elan: a, ip: 10.1.0.11, Y }
traffic:
  - { name: there, from: x, to: y, kind: udp, rate: 20pps, size: SIZE, start: 3s }
  - { name: back, from: y, to: x, kind: ping, rate: 10pps, size: SIZE, start: 3s }
";

fn lab(servers: &str, elan: &str, x: &str, y: &str, size: u16) -> Bench {
    let text = LAB
        .replace("SERVERS", servers)
        .replace("ELAN }", &format!("{elan} }}"))
        .replace(" X }", &format!(" {x} }}"))
        .replace(" Y }", &format!(" {y} }}"))
        .replace("SIZE", &size.to_string());
    Bench::new(lab_of("lane", &text, &[]), 1)
}

/// A column of the first row of a table of `node`.
fn value(bench: &Bench, node: &str, what: &str, table: &str, column: &str) -> String {
    let station = bench.station(bench.node(node)).expect("a station");
    let tables = station
        .inspect(what.parse().expect("a kind of state"), bench.now())
        .expect("a service");
    let table = tables.iter().find(|known| known.title == table);
    let table = table.expect("a table");
    let at = table.columns.iter().position(|known| *known == column);
    table.rows[0][at.expect("a column")].to_string()
}

fn client(bench: &Bench, node: &str, column: &str) -> String {
    value(bench, node, "lec", "client", column)
}

/// A counter of the data plane of the node's LEC.
fn counter(bench: &Bench, node: &str, name: &str) -> u64 {
    let station = bench.station(bench.node(node)).expect("a station");
    let tables = station.inspect(StateKind::Lec, bench.now()).expect("a LEC");
    let table = tables.iter().find(|table| table.title == "data counters");
    let mut rows = table.expect("counters").rows.iter();
    let row = rows.find(|row| row[0].to_string() == name);
    row.map_or(0, |row| row[1].to_string().parse().expect("a number"))
}

#[track_caller]
fn passes(bench: &mut Bench, what: &str, within: f64) -> Duration {
    bench.until(what, within, |bench| bench.all_pass(&[0, 1]))
}

#[test]
fn packets_of_every_frame_size_travel_in_one_piece() {
    for frame in [1516_u16, 1580, 4544, 9234, 18190] {
        // LECID and Ethernet header, then the headers of IP and of UDP or ICMP.
        let payload = frame - 16 - 28;
        let mut bench = lab("", &format!("mtu: {frame}"), "", "", payload);
        passes(&mut bench, &format!("frames of {frame}"), 6.0);
        bench.run(Duration::from_secs(2));
        let before = counter(&bench, "x", "sent_direct");
        bench.run(Duration::from_secs(2));
        let sent = counter(&bench, "x", "sent_direct") - before;
        assert_eq!(
            sent,
            2 * (20 + 10),
            "frames of {frame}: one for each packet"
        );
        assert_eq!(counter(&bench, "x", "bad_length"), 0);
        stop_lane(&mut bench);
    }
}

#[test]
fn both_versions_join_elans_of_both() {
    for (elan, x, y, spoken) in [
        ("version: 2", "lec: { version: 1 }", "", ["1", "2"]),
        ("version: 1", "", "lec: { version: 1 }", ["1", "1"]),
        ("version: 1", "", "", ["1", "1"]),
        (
            "version: 2, mtu: 9234",
            "lec: { version: 1 }",
            "lec: { version: 1 }",
            ["1", "1"],
        ),
        ("version: 2", "", "", ["2", "2"]),
    ] {
        let mut bench = lab("", elan, x, y, 64);
        passes(&mut bench, elan, 6.0);
        for (node, version) in [("x", spoken[0]), ("y", spoken[1])] {
            assert_eq!(client(&bench, node, "version"), version, "{node} on {elan}");
            // Only LANE v2 has numbers of ELANs.
            let id = if version == "2" { "1" } else { "0" };
            assert_eq!(client(&bench, node, "elan_id"), id, "{node} on {elan}");
        }
        stop_lane(&mut bench);
    }
}

/// Frames of a group cross the network only to clients that want them.
#[test]
fn group_frames_go_to_members_and_those_who_did_not_choose() {
    let text = LAB
        .replace("SERVERS ", "")
        .replace(", ELAN }", " }")
        .replace(", X }", ", lec: { groups: [239.1.1.1] } }")
        .replace(
            ", Y }",
            " }\n  z: { on: s3, elan: a, ip: 10.1.0.12, lec: { groups: [] } }",
        )
        .replace("SIZE", "64");
    let mut bench = Bench::new(lab_of("lane", &text, &[]), 1);
    passes(&mut bench, "x and y", 6.0);
    assert_eq!(value(&bench, "x", "lec", "groups", "registered"), "yes");
    let [x, y, z] = ["x", "y", "z"];
    let counts = |bench: &Bench| {
        [x, y, z].map(|node| {
            let delivered = counter(bench, node, "delivered");
            (delivered, counter(bench, node, "not_for_us"))
        })
    };
    // x and y have traffic meanwhile; when it is stopped, only the group's frames are left.
    bench.stop_programs();
    bench.run(Duration::from_secs(1));
    let send = |bench: &mut Bench, from: &str, last: u8| {
        let mut frame = vec![1, 0, 0x5e, 1, 1, last, 2, 0, 0, 0, 0, 0x77, 8, 0];
        frame.resize(100, 0);
        bench.frame(bench.node(from), frame);
    };
    let before = counts(&bench);
    for _ in 0..10 {
        send(&mut bench, y, 1);
        send(&mut bench, z, 1);
        send(&mut bench, x, 2);
        bench.run(Duration::from_millis(10));
    }
    bench.run(Duration::from_secs(1));
    let after = counts(&bench);
    let got: Vec<_> = before
        .iter()
        .zip(after)
        .map(|(b, a)| (a.0 - b.0, a.1 - b.1))
        .collect();
    assert_eq!(got, [(20, 0), (20, 0), (0, 0)], "delivered, and dropped");
    stop_lane(&mut bench);
}

#[test]
fn llc_multiplexed_frames_travel_between_those_that_multiplex() {
    let calls = |bench: &Bench| -> Vec<String> {
        let station = bench.station(bench.node("x")).expect("a station");
        let tables = station.inspect(StateKind::Lec, bench.now()).expect("a LEC");
        let table = tables.iter().find(|table| table.title == "connections");
        let rows = table.expect("connections").rows.iter();
        let roles = rows.map(|row| row[0].to_string());
        roles
            .filter(|role| role.starts_with("data direct"))
            .collect()
    };
    let llc = "lec: { llc: true }";
    for (elan, y, role) in [
        ("mtu: 1516", llc, "data direct, LLC"),
        ("mtu: 18190", llc, "data direct, LLC"),
        ("mtu: 1516", "", "data direct"),
        ("version: 1", llc, "data direct"),
    ] {
        let size = if elan == "mtu: 18190" { 18_146 } else { 1472 };
        let mut bench = lab("", elan, llc, y, size);
        passes(&mut bench, elan, 6.0);
        // Of two crossing calls one is left after C21.
        bench.run(Duration::from_secs(10));
        assert_eq!(calls(&bench), [role], "{elan} {y}");
        let before = counter(&bench, "x", "sent_direct");
        bench.run(Duration::from_secs(1));
        assert_eq!(
            counter(&bench, "x", "sent_direct") - before,
            30,
            "{elan} {y}"
        );
        assert_eq!(counter(&bench, "y", "bad_mux"), 0);
        stop_lane(&mut bench);
    }
}

#[test]
fn the_lecs_assigns_by_its_policies() {
    let unnamed = "lec: { named: false }";
    for (servers, elan) in [
        (
            "default: other, policies: [[name], [mac]],",
            "macs: ['02:a7:03:00:01:00', '02:a7:03:00:02:00']",
        ),
        (
            "default: other,",
            "members: [47.0091.81.000000.02a7.0000.0100, 47.0091.81.000000.02a7.0000.0200.02a7]",
        ),
        ("default: a, policies: [[type, size]],", "mtu: 1516"),
        ("", "mtu: 4544"),
    ] {
        let mut bench = lab(servers, elan, unnamed, unnamed, 64);
        passes(&mut bench, servers, 6.0);
        assert_eq!(client(&bench, "x", "elan"), "a");
        stop_lane(&mut bench);
    }
    // One client is listed, the other is not.
    let one = "macs: ['02:a7:03:00:01:00']";
    let servers = "default: other, policies: [[mac], [name]],";
    let mut bench = lab(servers, one, unnamed, unnamed, 64);
    bench.run(Duration::from_secs(3));
    assert_eq!(
        (client(&bench, "x", "elan"), client(&bench, "y", "elan")),
        ("a".into(), "other".into())
    );
    // A client that is not listed cannot join by name.
    let members = "members: [47.0091.81.000000.02a7.0000.0100]";
    let mut bench = lab("", members, "", "", 64);
    bench.run(Duration::from_secs(10));
    assert_eq!(client(&bench, "x", "state"), "operational");
    assert_ne!(client(&bench, "y", "state"), "operational");
}

const STANDBY: &str = "standby: [{ on: s1 }, { on: s2, name: third }],";

/// Checks that both hosts are clients of the LES on `server`.
fn served_by(bench: &Bench, server: &str) -> Result<(), String> {
    let own = value(bench, server, "les", "server", "address");
    for node in ["x", "y"] {
        let (state, les) = (client(bench, node, "state"), client(bench, node, "les"));
        if state != "operational" || les != own {
            return Err(format!("{node} is {state} at {les}, not at {own}"));
        }
    }
    bench.all_pass(&[0, 1])
}

#[test]
fn servers_that_stand_by_take_over() {
    let mut bench = lab(STANDBY, "mtu: 1516", "", "", 64);
    bench.until("the first serves", 6.0, |bench| served_by(bench, "lane"));
    let [first, second] = ["lane", "lane2"].map(|name| bench.node(name));
    // LES and BUS of the first host are lost; its LECS continues.
    for kind in [ServiceKind::Les, ServiceKind::Bus] {
        bench.crash(first, kind);
    }
    let took = bench.until("the second takes over", 20.0, |bench| {
        served_by(bench, "lane2")
    });
    assert!(took < Duration::from_secs(12), "{took:?}");
    // They come back as standby.
    for kind in [ServiceKind::Bus, ServiceKind::Les] {
        bench.restart(first, kind);
    }
    bench.run(Duration::from_secs(40));
    served_by(&bench, "lane2").unwrap_or_else(|why| bench.fail(&why));
    // A host without power does not answer, and the LECS learns that from its port.
    bench.power_off(second);
    bench.until("the first is next", 40.0, |bench| served_by(bench, "lane"));
    for kind in [ServiceKind::Les, ServiceKind::Bus] {
        bench.crash(first, kind);
    }
    bench.until("the third takes over", 20.0, |bench| {
        served_by(bench, "third")
    });
    let story = bench.log.story.join("\n");
    assert!(story.contains("lecs.takeover"), "the story tells it");
    // Without the LECS, all members stay.
    bench.crash(first, ServiceKind::Lecs);
    bench.run(Duration::from_secs(30));
    served_by(&bench, "third").unwrap_or_else(|why| bench.fail(&why));
}

/// A counter of the BUS of the first ELAN.
fn of_bus(bench: &Bench, name: &str) -> u64 {
    let station = bench.station(bench.node("lane")).expect("a station");
    let tables = station.inspect(StateKind::Bus, bench.now()).expect("a BUS");
    let table = tables.iter().find(|table| table.title == "counters");
    let mut rows = table.expect("counters").rows.iter();
    let row = rows.find(|row| row[0].to_string() == name);
    row.map_or(0, |row| row[1].to_string().parse().expect("a number"))
}

/// Frames over the BUS reach the owner of their destination, whether the owner registered the address or is behind a
/// bridge. This holds over lines that lose cells, and after a restart of the BUS, the client or the LES. Another client
/// receives no frame for a registered address.
#[test]
fn frames_over_the_bus_find_their_owner_after_every_fault() {
    let text = "
switches: { s1: {}, s2: {} }
links: [[s1, s2, { loss: 0.001 }]]
lane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  x: { on: s1, elan: a, ip: 10.1.0.10 }
  y: { on: s2, elan: a, ip: 10.1.0.11 }
  z: { on: s2, elan: a, ip: 10.1.0.12 }
  b: { on: s2, elan: a, ip: 10.1.0.13, bridge: { anna: 10.1.0.20 } }
traffic:
  - { from: x, to: y, kind: ping, rate: 10pps, start: 1s }
  - { from: x, to: anna, kind: ping, rate: 10pps, start: 1s }
";
    let mut bench = Bench::new(lab_of("owners", text, &[]), 3);
    passes(&mut bench, "the beginning", 8.0);
    let directed = of_bus(&bench, "directed");
    let to_all = of_bus(&bench, "unicast") + of_bus(&bench, "flushes") - directed;
    assert!(directed > 0 && to_all > 0, "{directed} {to_all}");
    assert!(counter(&bench, "z", "not_for_us") <= to_all);
    let (lane, y, b) = (bench.node("lane"), bench.node("y"), bench.node("b"));
    for (what, node, kind) in [
        ("the BUS", lane, ServiceKind::Bus),
        ("a client", y, ServiceKind::Lec),
        ("the bridge's client", b, ServiceKind::Lec),
        ("the LES", lane, ServiceKind::Les),
    ] {
        bench.crash(node, kind);
        bench.run(Duration::from_secs(2));
        bench.restart(node, kind);
        let all = |bench: &Bench| bench.all_pass(&[0, 1]);
        bench.run(Duration::from_secs(1));
        bench.until(what, 30.0, all);
    }
    assert!(of_bus(&bench, "directed") > 0);
    stop_lane(&mut bench);
}

/// The contract of a client's connection with this role.
fn contract(bench: &Bench, node: &str, role: &str) -> String {
    let station = bench.station(bench.node(node)).expect("a station");
    let tables = station.inspect(StateKind::Lec, bench.now()).expect("a LEC");
    let table = tables.iter().find(|known| known.title == "connections");
    let mut rows = table.expect("connections").rows.iter();
    let row = rows.find(|row| row[0].to_string() == role);
    row.map_or(String::new(), |row| row[4].to_string())
}

/// Cells that the policers of a switch discarded.
fn policed(bench: &Bench, switch: &str) -> u64 {
    let switch = bench.switch(bench.node(switch)).expect("a switch");
    let views = switch.fabric().connections();
    views.map(|view| view.counters.dropped.total()).sum()
}

/// Frames of 22 cells, 30 a second with the answers to pings, on a data direct connection of 110 cells/s: five a second
/// arrive, and the policer finds nothing to discard, because the client shapes. One that does not shape loses most.
#[test]
fn data_direct_connections_keep_the_contract_of_their_elan() {
    for (x, arrive, discards) in [("", 30..=50, false), ("shape: false", 0..=20, true)] {
        let mut bench = lab("", "qos: 'cbr:pcr=110'", x, "", 1000);
        passes(&mut bench, "both flows", 10.0);
        bench.run(Duration::from_secs(5));
        let from = bench.now();
        bench.run(Duration::from_secs(10));
        let [there, _] = bench.received(0, from);
        assert!(arrive.contains(&there), "{x}: {there}");
        assert_eq!(policed(&bench, "s1") > 0, discards, "{x}");
        for node in ["x", "y"] {
            assert!(contract(&bench, node, "data direct").starts_with("cbr:max_pcr=110"));
        }
    }
}

/// The contract that no link can give is refused once, and the frames go on a connection of best effort.
#[test]
fn a_contract_that_the_network_refuses_costs_one_more_call() {
    let mut bench = lab(
        "",
        "qos: 'cbr:pcr=350000'",
        "lec: { qos: 'cbr:pcr=360000' }",
        "lec: { qos: ubr }",
        100,
    );
    passes(&mut bench, "both flows", 10.0);
    assert_eq!(contract(&bench, "x", "data direct"), "-");
    let station = bench.station(bench.node("x")).expect("a station");
    let tables = station.inspect(StateKind::Lec, bench.now()).expect("a LEC");
    let table = tables
        .iter()
        .find(|table| table.title == "control counters");
    let mut rows = table.expect("counters").rows.iter();
    let refused = rows.find(|row| row[0].to_string() == "contracts_refused");
    assert_eq!(refused.map(|row| row[1].to_string()), Some("1".to_owned()));
}

#[test]
fn the_lecs_of_a_lab_tells_the_rates_of_multicast_send() {
    let rates = "multicast_send: { peak: 2000cells/s, average: 300cells/s }";
    let mut bench = lab("", rates, "", "", 100);
    passes(&mut bench, "both flows", 10.0);
    let found = contract(&bench, "x", "multicast send");
    assert_eq!(found, "nrt-vbr:max_pcr=2000,scr=300,mbs=32,sdu=1516");
    assert_eq!(contract(&bench, "x", "data direct"), "-");
}
