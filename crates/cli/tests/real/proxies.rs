//! Real stations behind a bridge of the kernel that has `lec0` as a port: the LANE client is their proxy, and MPOA
//! shortcuts begin and end for them. The stations are network namespaces that no lab has made.
//!
//! Without the privilege for namespaces, or bridges in the kernel, these tests are skipped and say so.

use crate::bridges::can_bridge;
use crate::joined::{Namespace, ip};
use crate::live::{Runtime, has, wait_for, wait_for_end};
use serde_json::Value;
use std::process::{Command, Stdio};

/// Two bridging hosts and a plain one in an ELAN, one in another subnet.
const LAB: &str = "
name: proxies
mpoa: true
switches: { s1: {}, s2: {} }
links: [[s1, s2]]
lane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 }, b: { subnet: 10.2.0.0/24 } } }
routers: { gw: { on: s1, elans: { a: 10.1.0.1, b: 10.2.0.1 } } }
hosts:
  pc1: { on: s1, elan: a, ip: 10.1.0.10, lec: { proxy: true, ports: [PORT] } }
  pc2: { on: s2, elan: a, ip: 10.1.0.11, lec: { proxy: true } }
  near: { on: s2, elan: a, ip: 10.1.0.12 }
  far: { on: s2, elan: b, ip: 10.2.0.10 }
";

/// A machine with one interface, `eth0`, whose cable ends somewhere else.
pub(crate) struct Station(pub(crate) Namespace);

impl Station {
    /// A station whose cable ends in an interface of this name here.
    pub(crate) fn new(number: u8, port: &str, address: &str) -> Option<Self> {
        let station = Self(Namespace::new(number)?);
        let name = &station.0.name;
        let made = ip(&format!(
            "link add {port} type veth peer name eth0 netns {name}"
        ));
        made.then(|| station.begin(address))?
    }
    fn begin(self, address: &str) -> Option<Self> {
        let name = &self.0.name;
        let last = address.rsplit('.').next()?;
        let steps = [
            format!("-n {name} link set eth0 address 02:00:00:00:07:{last}"),
            format!("-n {name} address add {address}/24 dev eth0"),
            format!("-n {name} link set eth0 up"),
        ];
        steps.iter().all(|step| ip(step)).then_some(self)
    }
    pub(crate) fn run(&self, line: &str) -> String {
        let mut words = line.split(' ');
        let mut command = Command::new(words.next().unwrap());
        command.args(words);
        let output = self.0.command(&command).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }
    pub(crate) fn pings(&self, to: &str) -> bool {
        let out = self.run(&format!("ping -n -q -c 5 -i 0.02 -W 1 {to}"));
        out.contains("5 received")
    }
}

struct Lab(Runtime);

impl Lab {
    fn inside(&self, host: &str, line: &str) -> String {
        let words: Vec<&str> = ["exec", host, "--"]
            .into_iter()
            .chain(line.split(' '))
            .collect();
        self.0.ok(&words)
    }
    fn pings(&self, host: &str, to: &str) -> bool {
        let line = format!("ping -n -q -c 5 -i 0.02 -W 1 {to}");
        let words: Vec<&str> = ["exec", host, "--"]
            .into_iter()
            .chain(line.split(' '))
            .collect();
        self.0.run(&words).out.contains("5 received")
    }
    /// A second way between both bridges: a hub with a cable to each.
    fn close_loop(&self, hub: &Namespace) {
        let name = &hub.name;
        assert!(ip(&format!(
            "-n {name} link add hub type bridge forward_delay 0 stp_state 0"
        )));
        assert!(ip(&format!("-n {name} link set hub up")));
        for host in ["pc1", "pc2"] {
            let cable = format!("ip link add loop0 type veth peer name {host} netns {name}");
            self.inside(host, &cable);
            assert!(ip(&format!("-n {name} link set {host} master hub up")));
            self.inside(host, "ip link set loop0 master br0 up");
        }
    }
    fn learned(&self, host: &str) -> Vec<String> {
        let rows = self.0.table(host, "bridge", "learned");
        let macs = rows
            .iter()
            .map(|row| row["mac"].as_str().unwrap().to_owned());
        macs.filter(|mac| mac.starts_with("02:00:00:00:07"))
            .collect()
    }
    fn shortcut(&self, host: &str, to: &str) -> bool {
        let rows = self.0.table(host, "mpc", "ingress");
        rows.iter()
            .any(|row| row["destination"] == to && row["state"] == "resolved")
    }
    fn told(&self, node: &str, name: &str) -> usize {
        let events = self.0.ok(&["events"]);
        let events = events.lines().map(serde_json::from_str::<Value>);
        let events = events.map(Result::unwrap);
        events
            .filter(|event| event["node"] == node && event["event"] == name)
            .count()
    }
}

fn start(test: &str, port: &str) -> Lab {
    start_with(test, |text| text.replace("[PORT]", port))
}

fn start_with(test: &str, change: impl FnOnce(&str) -> String) -> Lab {
    let lab = Lab(Runtime::new(test));
    let file = crate::lab_file(&format!("{test}.atm.yml"), &change(LAB));
    lab.0.ok(&["up", "-d", "-q", &file]);
    lab
}

#[test]
fn a_real_station_behind_a_bridge_is_a_member_and_gets_shortcuts() {
    if !can_bridge() {
        return;
    }
    let port = format!("px{}", std::process::id());
    let Some(station) = Station::new(81, &port, "10.1.0.20") else {
        return;
    };
    // A lab that does not start takes nothing with it: its second port is missing.
    let text = LAB.replace("[PORT]", &format!("[{port}, none0]"));
    let failed = Runtime::new("no-port");
    let ran = failed.run(&["up", "-q", &crate::lab_file("no-port.atm.yml", &text)]);
    ran.ends(1, "pc1: port none0: ");
    assert!(ip(&format!("link show {port}")), "{port} is gone");
    failed.nothing_is_left();

    let lab = start("proxies", &format!("[{port}]"));
    station.run("ip route add default via 10.1.0.1");
    // The bridging host, a plain host, the other bridge, another subnet; and back.
    for to in ["10.1.0.10", "10.1.0.12", "10.1.0.11", "10.2.0.10"] {
        wait_for(to, || station.pings(to));
    }
    for from in ["pc1", "near", "pc2", "far"] {
        assert!(lab.pings(from, "10.1.0.20"), "{from}");
    }
    assert_eq!(lab.learned("pc1"), ["02:00:00:00:07:20"]);
    assert_eq!(lab.learned("pc2").len(), 0);
    // Shortcuts begin and end for the station.
    wait_for("a shortcut from the station", || {
        station.run("ping -n -q -c 30 -i 0.02 10.2.0.10");
        lab.shortcut("pc1", "10.2.0.10")
    });
    wait_for("a shortcut to the station", || {
        lab.inside("far", "ping -n -q -c 30 -i 0.02 10.1.0.20");
        lab.shortcut("far", "10.1.0.20")
    });
    assert!(station.pings("10.2.0.10") && lab.pings("far", "10.1.0.20"));
    if has("iperf3") {
        for to in ["10.1.0.12", "10.2.0.10"] {
            let host = if to.starts_with("10.2") {
                "far"
            } else {
                "near"
            };
            for way in ["", "-R "] {
                let server = ["exec", host, "--", "iperf3", "-s", "-1"];
                let mut server = lab
                    .0
                    .command(&server)
                    .stdout(Stdio::null())
                    .spawn()
                    .unwrap();
                let mut report = Value::Null;
                wait_for("a connection to iperf3", || {
                    let out = station.run(&format!("iperf3 -t 2 {way}-J -c {to}"));
                    report = serde_json::from_str(&out).unwrap_or_default();
                    report["end"]["sum_received"].is_object()
                });
                assert_eq!(wait_for_end(&mut server), 0);
                let rate = report["end"]["sum_received"]["bits_per_second"].as_f64();
                let rate = rate.unwrap() / 1e6;
                println!("station {way}{to}: {rate:.1} Mbit/s");
                assert!(rate > 2.0, "{to} {way}: {rate} Mbit/s");
            }
        }
    }
    // The station moves to the other bridge: the same address, another cable.
    lab.inside("pc1", &format!("ip link delete {port}"));
    let name = &station.0.name;
    lab.inside(
        "pc2",
        &format!("ip link add new0 type veth peer name eth0 netns {name}"),
    );
    lab.inside("pc2", "ip link set new0 master br0 up");
    let station = station.begin("10.1.0.20").expect("its new cable");
    station.run("ip route add default via 10.1.0.1");
    wait_for("the station at its new bridge", || {
        station.pings("10.1.0.12")
    });
    assert_eq!(lab.learned("pc2"), ["02:00:00:00:07:20"]);
    wait_for("the old proxy to know it", || lab.learned("pc1").is_empty());
    for from in ["pc1", "near", "far"] {
        wait_for(from, || lab.pings(from, "10.1.0.20"));
    }
    // The port disappears: the others go on, and the station is gone.
    lab.inside("pc2", "ip link delete new0");
    assert!(lab.pings("near", "10.1.0.11") && !lab.pings("near", "10.1.0.20"));
    lab.0.ok(&["down"]);
    lab.0.nothing_is_left();
}

/// Two bridges with a cable beside the ELAN are a loop: spanning tree opens it, and its changes reach the members.
#[test]
fn spanning_tree_opens_a_loop_through_the_elan() {
    if !can_bridge() {
        return;
    }
    // A namespace that is made after the lab is not seen by its hosts.
    let (Some(namespace), Some(hub)) = (Namespace::new(82), Namespace::new(83)) else {
        return;
    };
    let station = Station(namespace);
    let lab = start("loops", "[]");
    let name = &station.0.name;
    lab.inside(
        "pc1",
        &format!("ip link add st0 type veth peer name eth0 netns {name}"),
    );
    lab.inside("pc1", "ip link set st0 master br0 up");
    let station = station.begin("10.1.0.21").expect("its cable");
    wait_for("the station", || station.pings("10.1.0.12"));
    for host in ["pc1", "pc2"] {
        lab.inside(
            host,
            "ip link set br0 type bridge stp_state 1 forward_delay 200 hello_time 100",
        );
    }
    lab.close_loop(&hub);
    // One port of the loop blocks.
    wait_for("a blocked port", || {
        ["pc1", "pc2"].iter().any(|host| {
            let links = lab.inside(host, "bridge link");
            links.contains("state blocking")
        })
    });
    wait_for("the station with the loop", || station.pings("10.1.0.12"));
    // A port that forwards is a change, which the bridge tells, and its LANE client tells the members of the ELAN.
    let told = || lab.told("pc1", "bridge.topology") + lab.told("pc2", "bridge.topology");
    wait_for("the change", || told() > 0);
    let changes = || {
        let rows = lab.0.table("near", "lec", "client");
        rows.iter().any(|row| row["topology_change"] == "yes")
    };
    assert!(changes(), "{:?}", lab.0.table("near", "lec", "client"));
    assert!(station.pings("10.1.0.12") && lab.pings("near", "10.1.0.21"));
    lab.0.ok(&["down"]);
    lab.0.nothing_is_left();
}

/// Without spanning tree a broadcast circles. The quota of the BUS bounds it, and others go on.
#[test]
fn a_storm_through_two_bridges_is_bounded_by_the_quota_of_the_bus() {
    if !can_bridge() {
        return;
    }
    let Some(hub) = Namespace::new(84) else {
        return;
    };
    let lab = start_with("storm", |text| {
        let text = text.replace("[PORT]", "[]");
        text.replace(
            "lane: { on: s1,",
            "lane: { on: s1, quota: { broadcast: 50pps, multicast: 50pps },",
        )
    });
    wait_for("all hosts", || lab.pings("near", "10.2.0.10"));
    lab.close_loop(&hub);
    // ARP requests of a machine at the hub for an address that no station has. Each circles both ways.
    let address = format!("-n {} address add 10.1.0.77/24 dev hub", hub.name);
    assert!(ip(&address));
    let machine = Station(hub);
    machine.run("ping -c 3 -W 1 10.1.0.99");
    let name = &machine.0.name;
    let dropped = || {
        let rows = lab.0.table("lane", "bus", "counters");
        let quota = rows.iter().filter(|row| {
            let counter = row["counter"].as_str().unwrap();
            counter.starts_with("over_")
        });
        quota.map(|row| row["value"].as_u64().unwrap()).sum::<u64>()
    };
    wait_for("the quota to be used up", || dropped() > 0);
    let passed = (0..5).filter(|_| lab.pings("near", "10.2.0.10")).count();
    println!(
        "{passed} of 5 pings of others passed beside the storm, {} frames dropped",
        dropped()
    );
    assert!(passed >= 3, "{passed}");
    assert!(ip(&format!("-n {name} link set pc1 nomaster")));
    wait_for("calm", || {
        let before = dropped();
        std::thread::sleep(std::time::Duration::from_secs(1));
        dropped() == before
    });
    assert!(lab.pings("near", "10.2.0.10") && lab.pings("near", "10.1.0.10"));
    lab.0.down_with_warnings();
    lab.0.nothing_is_left();
}
