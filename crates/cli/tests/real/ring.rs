//! A ring of switches in real time: a link is cut and restored, and the lab uses the way round the other side.

use crate::live::{Runtime, wait_for};
use serde_json::Value;

/// The hosts are at both ends of link `cut`. These tests need no privilege.
const LAB: &str = "\
switches: { north: {}, east: {}, south: {}, west: {} }
links:
  - [north, east, { name: cut }]
  - [east, south]
  - [south, west]
  - [west, north]
lane: { on: north, elans: { lan: { subnet: 10.1.0.0/24 } } }
clip: { wan: { subnet: 10.5.0.0/24, server: hub } }
routers: { hub: { on: north, elans: { lan: 10.1.0.1, wan: 10.5.0.1 } } }
hosts:
  anna:  { on: north, elan: lan, ip: 10.1.0.10 }
  berta: { on: east,  elan: lan, ip: 10.1.0.11 }
  carl:  { on: north, elan: wan, ip: 10.5.0.10 }
  dora:  { on: east,  elan: wan, ip: 10.5.0.11 }
";

/// The ways of switch `north` to other switches: prefix, order, port, hops, state.
type Way = (String, u64, u64, Option<u64>, String);

fn ways(lab: &Runtime) -> Vec<Way> {
    let rows = lab.inspect(&["north", "route"]).into_iter();
    // A switch is known by 13 octets of its address, a host by 19.
    let switches = rows.filter(|row| row["length_octets"] == 13);
    let ways = switches.map(|row| {
        let number = |column: &str| row[column].as_u64();
        let text = |column: &str| row[column].as_str().unwrap().to_owned();
        let (order, port) = (number("order").unwrap(), number("port").unwrap());
        (text("prefix"), order, port, number("hops"), text("state"))
    });
    ways.collect()
}

/// The ways to this prefix, without the prefix.
fn ways_to(lab: &Runtime, prefix: &str) -> Vec<(u64, u64, Option<u64>, String)> {
    let ways = ways(lab).into_iter().filter(|way| way.0 == prefix);
    ways.map(|(_, order, port, hops, state)| (order, port, hops, state))
        .collect()
}

fn answers(lab: &Runtime, from: &str, to: &str, count: &str) -> u64 {
    let ran = lab.run(&["ping", from, to, "-c", count, "-o", "json"]);
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    json["rows"][0]["received"].as_u64().unwrap()
}

#[test]
fn a_ring_in_real_time_goes_on_round_the_other_side_and_inspect_route_shows_it() {
    let lab = Runtime::embedded("ring", LAB);
    let both = || [("anna", "berta"), ("carl", "dora")].map(|(a, b)| answers(&lab, a, b, "5"));
    wait_for("answers", || both() == [5, 5]);
    // One link to east, three round the other side; to south there are two on both sides, so calls are shared.
    let all = ways(&lab);
    let direct = |way: &&Way| (way.2, way.3) == (0, Some(1));
    let (east, ..) = all.iter().find(direct).expect("a way to east").clone();
    let way = |order, port, hops, state: &str| (order, port, hops, state.to_owned());
    let whole = [
        way(1, 0, Some(1), "in use"),
        way(2, 1, Some(3), "alternate"),
    ];
    assert_eq!(ways_to(&lab, &east), whole);
    let shared = all.iter().filter(|way| way.3 == Some(2));
    assert!(
        shared.map(|way| (way.1, &*way.4)).eq([(1, "in use"); 2]),
        "{all:?}"
    );

    lab.ok(&["fault", "link-down", "cut"]);
    let around = [
        way(1, 1, Some(3), "in use"),
        way(2, 0, None, "leads nowhere now"),
    ];
    wait_for("the way round", || ways_to(&lab, &east) == around);
    wait_for("answers round the other side", || both() == [5, 5]);

    lab.ok(&["fault", "link-up", "cut"]);
    wait_for("the short way", || ways_to(&lab, &east) == whole);
    wait_for("answers by either way", || both() == [5, 5]);
    lab.ends();
}
