//! NHRP in labs: servers that share keys; members of Classical IP with shortcuts.

use crate::bench::{Bench, lab_of};
use crate::faults::{SMALL, all, far, shortcuts};
use aerostat_node::host::ServiceKind;
use aerostat_node::inspect::{StateKind, Value};
use aerostat_node::ip::meter::Path;
use aerostat_proto::Duration;
use aerostat_proto::mpoa::mps;

const SHARED: &str = "nhrp.key={ spi: 7, secret: between servers }";

fn world(set: &[&str]) -> Bench {
    Bench::new(lab_of("small", SMALL, set), 3)
}

/// A counter of the MPOA server, or NHRP client, of `node`; 0 if it is absent.
fn counter(bench: &Bench, node: &str, name: &str) -> u64 {
    let station = bench.station(bench.node(node)).unwrap();
    let tables = [StateKind::Mps, StateKind::Nhrp].map(|what| station.inspect(what, bench.now()));
    let rows = tables.iter().flatten().flatten();
    let rows = rows.flat_map(|table| &table.rows);
    let found = rows.filter(|row| row[0] == Value::Text(name.to_owned()));
    let counts = found.map(|row| match row[1] {
        Value::Number(count) => count,
        _ => 0,
    });
    counts.sum()
}

/// The texts of `inspect nhrp --why` at a node.
fn why(bench: &Bench, node: &str, target: [u8; 4]) -> Vec<String> {
    let station = bench.station(bench.node(node)).unwrap();
    let table = station.host().why(target.into(), bench.now());
    let rows = table.into_iter().flat_map(|table| table.rows);
    let texts = rows.map(|row| match &row[3] {
        Value::Text(text) => text.clone(),
        _ => String::new(),
    });
    texts.collect()
}

#[test]
fn servers_with_one_key_make_shortcuts() {
    let mut bench = world(&[SHARED]);
    shortcuts(&mut bench, "between servers that share a key", 50.0);
    for router in ["r1", "r2"] {
        assert_eq!(counter(&bench, router, "errors_sent[11]"), 0);
        assert!(counter(&bench, router, "nhrp_requests_received") > 0);
    }
}

/// With a wrong key there is no shortcut, packets go by the routers, and each side reports the reason.
#[test]
fn with_a_wrong_key_the_routed_path_goes_on_and_the_reason_is_told() {
    let another = "{ spi: 7, secret: another }";
    let of = ["routers.r2", "hosts.h2"].map(|node| format!("{node}.nhrp.key={another}"));
    let mut bench = world(&[SHARED, &of[0], &of[1]]);
    let (far, all) = (far(&bench), all(&bench));
    bench.until("routed", 30.0, |bench| {
        bench.all_joined()?;
        bench.all_pass(&all)
    });
    bench.run(Duration::from_secs(20));
    for router in ["r1", "r2"] {
        for name in ["errors_sent[11]", "errors_received[11]"] {
            assert!(counter(&bench, router, name) > 0, "{router} {name}");
        }
    }
    bench.until("still routed", 5.0, |bench| {
        bench.all_pass(&all)?;
        bench.all_by(&far, Path::Lane)
    });
    // For traffic from h1 to h2, r1 sends a request and r2 refuses it.
    for (node, says) in [
        (
            "r1",
            "was refused by the peer with error 11 (authentication failed)",
        ),
        (
            "r2",
            "was refused here with error 11 (authentication failed)",
        ),
    ] {
        let texts = why(&bench, node, [10, 2, 0, 10]);
        assert!(texts.iter().any(|text| text.contains(says)), "{texts:?}");
    }
    let client = why(&bench, "h1", [10, 2, 0, 10]);
    assert!(client.iter().any(|text| text.contains("12")), "{client:?}");
}

/// An MPOA client with another key than its server gets error 11 and no shortcut; its packets go by the router.
#[test]
fn an_mpoa_client_with_a_wrong_key_stays_on_the_routed_path() {
    let mut bench = world(&[SHARED, "hosts.h1.nhrp.key={ spi: 7, secret: another }"]);
    let all = all(&bench);
    let (its_own, of_others) = (
        ["there", "back"].map(|name| bench.flow(name)),
        bench.flow("third"),
    );
    bench.until("routed", 30.0, |bench| {
        bench.all_joined()?;
        bench.all_pass(&all)
    });
    bench.run(Duration::from_secs(20));
    assert!(counter(&bench, "r1", "errors_sent[11]") > 0);
    bench.until("still routed, and others not", 5.0, |bench| {
        bench.all_pass(&all)?;
        bench.all_by(&its_own, Path::Lane)?;
        bench.all_by(&[of_others], Path::Shortcut)
    });
}

/// Three logical subnets in a row, two routers, no LANE and no MPOA.
pub(crate) const PLAIN: &str = "
nhrp: { key: { spi: 1, secret: everybody }, holding: 20s }
switches: { west: {}, east: {} }
links: [[west, east, { delay: 1ms }]]
clip:
  a:   { subnet: 10.5.0.0/24, server: r1, nhrp: true }
  mid: { subnet: 10.7.0.0/24, server: r1, nhrp: true }
  b:   { subnet: 10.6.0.0/24, server: r2, nhrp: true }
routers:
  r1: { on: west, elans: { a: 10.5.0.1, mid: 10.7.0.1 }, forwarding: 2Mbps }
  r2: { on: east, elans: { mid: 10.7.0.2, b: 10.6.0.1 }, forwarding: 2Mbps }
hosts:
  x: { on: west, elan: a, ip: 10.5.0.10 }
  y: { on: east, elan: b, ip: 10.6.0.10 }
traffic:
  - { name: there, from: x, to: y, kind: udp, rate: 25pps, size: 200, start: 3s }
  - { name: back, from: y, to: x, kind: udp, rate: 25pps, size: 200, start: 3s }
";

fn plain(set: &[&str]) -> (Bench, [usize; 2]) {
    let bench = Bench::new(lab_of("plain", PLAIN, set), 4).watch_routers();
    let flows = ["there", "back"].map(|name| bench.flow(name));
    (bench, flows)
}

/// The rows of a table of `inspect nhrp` as texts.
fn rows(bench: &Bench, node: &str, title: &str) -> Vec<Vec<String>> {
    let station = bench.station(bench.node(node)).unwrap();
    let tables = station.inspect(StateKind::Nhrp, bench.now()).unwrap();
    let table = tables
        .into_iter()
        .find(|table| table.title == title)
        .unwrap();
    let text = |value: &Value| match value {
        Value::None => String::new(),
        other => other.to_string(),
    };
    let rows = table.rows.iter();
    rows.map(|row| row.iter().map(text).collect()).collect()
}

#[test]
fn members_of_classical_ip_cut_through_two_routers() {
    let (mut bench, flows) = plain(&[]);
    bench.until("direct", 20.0, |bench| bench.all_by(&flows, Path::Shortcut));
    // The last server answered; the first one is in the record.
    let ways = rows(&bench, "x", "ways");
    assert_eq!(ways[0][..2], ["10.6.0.10", "shortcut"]);
    assert_eq!(ways[0][5..7], ["10.7.0.2", "1"]);
    let registered = rows(&bench, "r2", "cache");
    let row = registered
        .iter()
        .find(|row| row[1] == "registered")
        .unwrap();
    assert_eq!(row[0], "10.6.0.10/32");
    // The shortcut lasts longer than a holding time, without a packet at the routers.
    let before = counter(&bench, "x", "routed");
    bench.run(Duration::from_secs(60));
    bench
        .all_by(&flows, Path::Shortcut)
        .unwrap_or_else(|why| bench.fail(&why));
    assert_eq!(counter(&bench, "x", "routed"), before);
    assert_eq!(
        why(&bench, "x", [10, 6, 0, 10]),
        ["packets take the shortcut"]
    );
}

/// The client of `y` dies: when its registration is over, its packets go by the routers. Then it returns.
#[test]
fn a_registration_that_ends_gives_the_traffic_back_to_the_routers() {
    let (mut bench, flows) = plain(&[]);
    bench.until("direct", 20.0, |bench| bench.all_by(&flows, Path::Shortcut));
    let y = bench.node("y");
    bench.crash(y, ServiceKind::Nhc);
    bench.until("routed", 60.0, |bench| {
        bench.all_pass(&flows)?;
        bench.all_by(&flows[..1], Path::Lane)
    });
    bench.restart(y, ServiceKind::Nhc);
    bench.until("direct again", 40.0, |bench| {
        bench.all_by(&flows, Path::Shortcut)
    });
}

#[test]
fn a_member_with_a_wrong_key_is_reached_by_the_routers() {
    let (mut bench, flows) = plain(&["hosts.y.nhrp.key={ spi: 1, secret: mine }"]);
    bench.until("routed", 20.0, |bench| bench.all_pass(&flows));
    bench.run(Duration::from_secs(5));
    bench
        .all_by(&flows, Path::Lane)
        .unwrap_or_else(|why| bench.fail(&why));
    assert!(counter(&bench, "r2", "errors_sent[11]") > 0);
    let refused = "not registered: the registration was refused with error 11; 1 attempt";
    assert_eq!(why(&bench, "y", [10, 5, 0, 10]), [refused]);
    assert_eq!(why(&bench, "x", [10, 6, 0, 10]), ["refused with code 12"]);
    assert_eq!(rows(&bench, "x", "client")[0][1], "10.5.0.1");
}

/// A second member of the first subnet gets the answer that its router has cached for the first.
#[test]
fn the_router_answers_a_second_member_from_what_it_kept() {
    let third = "  z: { on: west, elan: a, ip: 10.5.0.11, nhrp: { authoritative: false } }
traffic:
  - { name: later, from: z, to: y, kind: udp, rate: 25pps, size: 200, start: 8s }
";
    let text = PLAIN.replace("traffic:\n", third);
    let mut bench = Bench::new(lab_of("plain", &text, &[]), 4).watch_routers();
    let flow = [bench.flow("later")];
    bench.until("direct", 20.0, |bench| bench.all_by(&flow, Path::Shortcut));
    let way = &rows(&bench, "z", "ways")[0];
    assert_eq!(way[..2], ["10.6.0.10", "shortcut"]);
    assert_eq!((&way[5][..], &way[9][..]), ("10.5.0.1", "no"));
    assert_eq!(counter(&bench, "r1", "kept_answers"), 1);
    let cache = rows(&bench, "r1", "cache");
    assert!(
        cache
            .iter()
            .any(|row| row[..3] == ["10.6.0.10/32", "transit", "no"])
    );
    // Servers with the answer report the reason, and when y stops, both forget it.
    assert!(why(&bench, "r1", [10, 6, 0, 10])[0].contains("1 station was told"));
    let y = bench.node("y");
    bench.crash(y, ServiceKind::Nhc);
    bench.until("routed", 60.0, |bench| {
        bench.all_pass(&flow)?;
        bench.all_by(&flow, Path::Lane)
    });
}

/// A network behind a router without NHRP: one answer serves its hosts.
#[test]
fn one_answer_covers_a_network_behind_the_exit() {
    let text = PLAIN
        .replace("b: 10.6.0.1 }", "b: 10.6.0.1, lan: 10.8.0.1 }")
        .replace(
            "hosts:\n",
            "  r3: { on: east, elans: { lan: 10.8.0.2, behind: 10.9.0.1 }, mpoa: false }
lane: { on: east, elans: { lan: { subnet: 10.8.0.0/24 }, behind: { subnet: 10.9.0.0/24 } } }
hosts:
  w1: { on: east, elan: behind, ip: 10.9.0.10 }
  w2: { on: east, elan: behind, ip: 10.9.0.11 }
",
        )
        .replace(
            "traffic:\n",
            "traffic:
  - { name: one, from: x, to: w1, kind: udp, rate: 25pps, size: 200, start: 3s }
  - { name: two, from: x, to: w2, kind: udp, rate: 25pps, size: 200, start: 6s }
",
        );
    let mut bench = Bench::new(lab_of("plain", &text, &["nhrp.prefix=16"]), 4);
    let flows = ["one", "two"].map(|name| bench.flow(name));
    bench.until("all pass", 20.0, |bench| bench.all_pass(&flows));
    let ways = rows(&bench, "x", "ways");
    let far: Vec<_> = ways
        .iter()
        .filter(|row| row[0].starts_with("10.9."))
        .collect();
    assert_eq!(far.len(), 1, "{ways:?}");
    // 10.8/24 is another route, so its answer covers no more than 24 bits.
    assert_eq!(far[0][..2], ["10.9.0.10/24", "shortcut"]);
    let cache = rows(&bench, "r2", "cache");
    assert!(
        cache
            .iter()
            .any(|row| row[..2] == ["10.9.0.0/24", "router"])
    );
    for target in [[10, 9, 0, 10], [10, 9, 0, 11]] {
        assert_eq!(why(&bench, "x", target), ["packets take the shortcut"]);
    }
}

/// A destination whose subnet has smaller packets is called for packets of that size: it refuses calls for longer ones.
#[test]
fn hosts_of_subnets_with_different_mtus_have_shortcuts_both_ways() {
    const LAB: &str = "
switches: { w: {} }
clip:
  a: { subnet: 10.5.0.0/24, server: r1, nhrp: true, mtu: 4000 }
  b: { subnet: 10.6.0.0/24, server: r1, nhrp: true }
routers: { r1: { on: w, elans: { a: 10.5.0.1, b: 10.6.0.1 } } }
hosts:
  x: { on: w, elan: a, ip: 10.5.0.10 }
  y: { on: w, elan: b, ip: 10.6.0.10 }
traffic:
  - { name: xy, from: x, to: y, kind: udp, rate: 10pps, size: 100, duration: 4s }
  - { name: yx, from: y, to: x, kind: udp, rate: 10pps, size: 100, duration: 4s }
";
    let mut bench = Bench::new(lab_of("mtus", LAB, &[]), 1);
    bench.run(Duration::from_secs(6));
    for (host, far) in [("x", [10, 6, 0, 10]), ("y", [10, 5, 0, 10])] {
        let texts = why(&bench, host, far);
        let refused = texts.iter().any(|text| text.contains("cause 88"));
        assert!(!refused, "{host}: {texts:?}");
        assert!(counter(&bench, host, "calls") > 0, "{host}: {texts:?}");
        assert_eq!(
            counter(&bench, host, "calls_failed"),
            0,
            "{host}: {texts:?}"
        );
        assert!(
            counter(&bench, host, "by_shortcut") > 0,
            "{host}: {texts:?}"
        );
    }
}

/// A router that restarts has lost the entries of its MPOA server. The egress client purges over the shortcut, and the
/// member of Classical IP sends by the routers again.
#[test]
fn a_purge_over_a_shortcut_ends_the_way_of_a_member_of_classical_ip() {
    const TEXT: &str = "
mpoa: { keepalive_time: 1s, keepalive_lifetime: 3s }
switches: { s1: {}, s2: {} }
links: [[s1, s2]]
lane: { on: s1, elans: { b: { subnet: 10.2.0.0/24 } } }
clip: { x: { subnet: 10.6.0.0/24, server: rx, nhrp: true } }
routers: { rx: { on: s1, elans: { x: 10.6.0.2, b: 10.2.0.1 } } }
hosts:
  h2: { on: s2, elan: b, ip: 10.2.0.10 }
  x1: { on: s1, elan: x, ip: 10.6.0.10 }
traffic: [{ name: p, from: x1, to: h2, kind: ping, rate: 10pps, start: 1s }]
";
    let mut bench = Bench::new(lab_of("purge", TEXT, &[]), 1);
    bench.run(Duration::from_secs(5));
    let rx = bench.node("rx");
    bench.power_off(rx);
    bench.run(Duration::from_millis(250));
    bench.power_on(rx);
    // Keep-alives of the former server end 3 s after the last one: then the egress has no entry.
    bench.run(Duration::from_secs(1));
    let since = bench.now();
    bench.run(Duration::from_secs(10));
    let flow = bench.flow("p");
    let arrived: u64 = bench.received(flow, since).iter().sum();
    assert!(arrived >= 99, "{arrived} of 100 requests");
}

/// More clients of each router than the usual tables of a server hold: all of them register, and all get shortcuts to
/// one destination, so that this binding has as many recipients.
#[test]
fn a_router_serves_more_clients_than_its_usual_tables_hold() {
    const EACH: usize = 280;
    let mut text = "
switches: { west: {}, east: {} }
links: [[west, east, { rate: oc3 }]]
clip:
  a:   { subnet: 10.16.0.0/16, server: r1, nhrp: true }
  mid: { subnet: 10.7.0.0/24, server: r1, nhrp: true }
  b:   { subnet: 10.32.0.0/16, server: r2, nhrp: true }
routers:
  r1: { on: west, elans: { a: 10.16.0.1, mid: 10.7.0.1 } }
  r2: { on: east, elans: { mid: 10.7.0.2, b: 10.32.0.1 } }
hosts:
"
    .to_owned();
    let (mut flows, usual) = ("traffic:\n".to_owned(), mps::Limits::DEFAULT);
    assert!(EACH > usual.registrations && EACH > usual.requesters);
    for n in 0..EACH {
        let (high, low) = (n / 250 + 1, n % 250 + 1);
        for (net, side, letter) in [(16, "west", "x"), (32, "east", "y")] {
            let elan = if letter == "x" { "a" } else { "b" };
            text += &format!(
                "  {letter}{n}: {{ on: {side}, elan: {elan}, ip: 10.{net}.{high}.{low} }}\n"
            );
        }
        flows += &format!(
            "  - {{ name: f{n}, from: x{n}, to: y0, kind: udp, rate: 2pps, size: 60, start: 4s, duration: 2s }}\n"
        );
    }
    let mut bench = Bench::new(lab_of("many", &(text + &flows), &[]), 1);
    bench.run(Duration::from_secs(7));
    for router in ["r1", "r2"] {
        let registered = rows(&bench, router, "cache").into_iter();
        let registered = registered.filter(|row| row.iter().any(|cell| cell == "registered"));
        assert_eq!(registered.count(), EACH, "{router}");
        assert_eq!(counter(&bench, router, "limits_met"), 0, "{router}");
    }
    for n in 0..EACH {
        let ways = rows(&bench, &format!("x{n}"), "ways");
        assert!(
            ways.iter()
                .any(|row| row.iter().any(|cell| cell == "shortcut")),
            "x{n}: {ways:?}"
        );
    }
}

/// Two NHRP servers on one subnet: the client of the one asks about a destination behind the other. Its own server
/// brings the question and the answer.
#[test]
fn a_client_of_one_server_hears_from_another_on_its_subnet() {
    const TEXT: &str = "
switches: { s1: {} }
clip:
  w: { subnet: 10.3.0.0/24, nhrp: true, server: r2 }
  v: { subnet: 10.4.0.0/24, nhrp: true, server: r2 }
routers:
  r1: { on: s1, elans: { w: 10.3.0.1 } }
  r2: { on: s1, elans: { w: 10.3.0.2, v: 10.4.0.1 } }
hosts:
  w1: { on: s1, elan: w, ip: 10.3.0.10 }
  v1: { on: s1, elan: v, ip: 10.4.0.10 }
traffic: [{ name: p, from: w1, to: v1, kind: udp, rate: 20pps, start: 2s }]
";
    let mut bench = Bench::new(lab_of("two-servers", TEXT, &[]), 1);
    let flow = bench.flow("p");
    bench.until("direct", 10.0, |bench| {
        bench.all_by(&[flow], Path::Shortcut)
    });
    // The client registered with r1, and r2 answered.
    let registered = |row: &Vec<String>| row[0] == "10.3.0.10/32" && row[1] == "registered";
    assert!(rows(&bench, "r1", "cache").iter().any(registered));
    assert!(!rows(&bench, "r2", "cache").iter().any(registered));
    assert_eq!(counter(&bench, "r2", "undeliverable"), 0);
}
