//! Hosts that know only their end system identifier: ILMI gives them the rest.

use crate::bench::{Bench, lab_of, repository_lab};
use crate::faults::{SMALL, all, consistent, far};
use aerostat_node::inspect::StateKind;
use aerostat_node::ip::meter::Path;

const BY_ILMI: [&str; 3] = [
    "hosts.h1.ilmi=true",
    "hosts.h2.ilmi=true",
    "hosts.h3.ilmi=true",
];

fn traffic(bench: &mut Bench, what: &str, within: f64) {
    let (far, all) = (far(bench), all(bench));
    bench.until(what, within, |bench| {
        bench.all_joined()?;
        bench.all_pass(&all)?;
        bench.all_by(&far, Path::Shortcut)
    });
}

/// Number of addresses registered at the switches.
fn registered(bench: &Bench) -> usize {
    let switches = bench.switches();
    let tables = switches.filter_map(|(_, switch)| switch.inspect(StateKind::Ilmi, bench.now()));
    tables.map(|tables| tables[1].rows.len()).sum()
}

#[test]
fn hosts_register_join_and_get_shortcuts() {
    let lab = lab_of("small", SMALL, &BY_ILMI);
    let mut bench = Bench::new(lab, 7).watch_routers();
    traffic(&mut bench, "shortcuts of hosts that registered", 50.0);
    assert_eq!(registered(&bench), 3);
    consistent(&mut bench);
    // The host's line goes down and comes up: everything is registered again and continues.
    let link = bench.link("h1-edge1");
    bench.cut(link, true);
    bench.run(aerostat_proto::Duration::from_secs(25));
    bench.cut(link, false);
    traffic(&mut bench, "after the host's line came back", 90.0);
    // The restarted switch has no registrations.
    let edge = bench.node("edge2");
    bench.power_off(edge);
    bench.run(aerostat_proto::Duration::from_secs(5));
    bench.power_on(edge);
    traffic(&mut bench, "after the switch came back", 120.0);
    assert_eq!(registered(&bench), 3);
}

#[test]
fn routers_and_lane_servers_register_too() {
    let mut set = BY_ILMI.to_vec();
    set.extend([
        "routers.r1.ilmi=true",
        "routers.r2.ilmi=true",
        "lane.ilmi=true",
    ]);
    let lab = lab_of("small", SMALL, &set);
    let mut bench = Bench::new(lab, 11).watch_routers();
    traffic(&mut bench, "shortcuts where all have registered", 60.0);
    assert_eq!(registered(&bench), 6);
    consistent(&mut bench);
    // A router, the LANE server and its switch restart.
    for (name, pause) in [("r1", 2), ("lane", 2), ("core", 5)] {
        let node = bench.node(name);
        bench.power_off(node);
        bench.run(aerostat_proto::Duration::from_secs(pause));
        bench.power_on(node);
        traffic(&mut bench, &format!("after {name} came back"), 150.0);
        assert_eq!(registered(&bench), 6);
    }
    consistent(&mut bench);
}

#[test]
fn a_host_that_starts_anew_registers_anew() {
    let set = ["hosts.urku.ilmi=true", "hosts.sello.ilmi=true"];
    let mut bench = Bench::new(repository_lab("two-hosts", &set), 3);
    bench.until("joined", 10.0, Bench::all_joined);
    let urku = bench.node("urku");
    bench.power_off(urku);
    bench.run(aerostat_proto::Duration::from_secs(1));
    bench.power_on(urku);
    bench.until("joined again", 60.0, |bench| {
        bench.all_joined()?;
        match registered(bench) {
            2 => Ok(()),
            n => Err(format!("{n} addresses")),
        }
    });
}

#[test]
fn classical_ip_waits_for_the_address_too() {
    let hosts = ["lab1", "lab2", "bulk1", "bulk2"];
    let set = hosts.map(|host| format!("hosts.{host}.ilmi=true"));
    let set: Vec<&str> = set.iter().map(String::as_str).collect();
    let mut bench = Bench::new(repository_lab("clip", &set), 5);
    let flows = ["across", "routed", "large"].map(|name| bench.flow(name));
    bench.until("traffic on Classical IP", 6.0, |bench| {
        bench.all_joined()?;
        bench.all_pass(&flows)
    });
    assert_eq!(registered(&bench), hosts.len());
}
