//! Keys of the lab file have an effect on a run.

use crate::bench::{Bench, repository_lab};
use crate::bridges::rows;
use aerostat_node::host::ServiceKind;
use aerostat_node::inspect::StateKind;
use aerostat_node::ip::meter::Side;
use aerostat_proto::Duration;

/// Enough of the transfer for a flow.
const SHORT: &str = "traffic.bulk.duration=200ms";

/// The two subnets with these settings, after eight seconds.
fn after(set: &[&str]) -> Bench {
    let mut bench = Bench::new(repository_lab("two-subnets", set), 1);
    bench.run(Duration::from_secs(8));
    bench
}

/// Destination, port and traffic of the shortcuts of the sender.
fn shortcuts(bench: &Bench) -> Vec<[String; 3]> {
    let rows = rows(bench, "urku", "mpc", "ingress");
    let with = rows
        .iter()
        .filter(|row| !row["vci"].is_empty() && row["vci"] != "-");
    with.map(|row| ["destination", "port", "traffic"].map(|name| row[name].clone()))
        .collect()
}

#[test]
fn an_entry_with_a_port_is_for_the_flow_with_that_port() {
    let entry = "0.0.0.0:0 10.2.0.10:5004 udp tx=3000,1600 rx=tx";
    let set = |port: &str| {
        let flow = format!(
            "traffic.bulk={{ name: bulk, from: urku, to: sello, kind: udp, rate: 100pps, start: 4s, {port} }}"
        );
        let entry = format!("hosts.urku.mpoa.qos=[\"{entry}\"]");
        after(&[&flow, &entry])
    };
    let guaranteed = |bench: &Bench| {
        let all = shortcuts(bench);
        all.iter()
            .filter(|[.., traffic]| traffic.contains("cbr"))
            .count()
    };
    let with = set("port: 5004");
    assert_eq!(guaranteed(&with), 1, "{:?}", shortcuts(&with));
    let without = set("size: 1000");
    assert_eq!(guaranteed(&without), 0, "{:?}", shortcuts(&without));
}

#[test]
fn flows_of_protocols_that_are_not_watched_get_no_shortcuts() {
    assert_eq!(shortcuts(&after(&[SHORT])).len(), 1);
    assert!(shortcuts(&after(&[SHORT, "mpoa.protocols=[ipv6]"])).is_empty());
    assert_eq!(
        shortcuts(&after(&[SHORT, "mpoa.protocols=[ipv4]"])).len(),
        1
    );
}

#[test]
fn a_server_that_does_not_announce_itself_is_known_if_the_file_names_it() {
    let address = "47.0005.80ffe1000000f21a26d8.0020ea0000b0.34";
    let known = format!(
        "hosts.urku.mpoa.static_mps=[{{ mac: '02:00:00:00:00:07', address: '{address}' }}]"
    );
    for (set, count) in [(vec![], 0), (vec![SHORT, &known], 1)] {
        let mut bench = Bench::new(repository_lab("two-subnets", &set), 1);
        bench.run(Duration::from_secs(3));
        let id = bench.lab.find("urku").expect("a host");
        let node = bench.world.node(aerostat_sim::NodeId(id.0)).expect("on");
        let tables = node.inspect(StateKind::Mpc, bench.now()).expect("a client");
        let text = format!("{tables:?}");
        assert_eq!(text.matches("02:00:00:00:00:07").count(), count, "{text}");
    }
}

#[test]
fn a_sender_whose_timer_ticks_sends_in_bursts() {
    let flow = "traffic.bulk={ name: bulk, from: urku, to: sello, kind: udp, rate: 450pps, start: 4s, tick: 10ms, spacing: 76us }";
    let bench = after(&[flow]);
    let flow = bench.flow("bulk");
    let sent = bench.log.samples.iter();
    let sent: Vec<_> = sent
        .filter(|s| s.flow.0 == flow && s.side == Side::Sent)
        .map(|s| s.at.as_nanos())
        .collect();
    assert!(sent.len() > 1700, "{}", sent.len());
    let gaps = sent.windows(2).map(|pair| pair[1] - pair[0]);
    let within = gaps.filter(|gap| *gap == 76_000).count();
    // Of the 4.5 datagrams of a tick all except the first follow another one.
    let share = within as f64 / sent.len() as f64;
    assert!((0.75..0.80).contains(&share), "{share}");
}

#[test]
fn arp_asks_again_as_soon_as_the_timers_of_the_file_say() {
    let requests = |set: &[&str]| {
        let mut bench = Bench::new(repository_lab("dead-destination", set), 1);
        bench.run(Duration::from_secs(9));
        let all = rows(&bench, "urku", "arp", "counters");
        let row = all.iter().find(|row| row["counter"] == "requests");
        row.expect("it has asked")["value"]
            .parse::<u64>()
            .expect("a count")
    };
    // Both neighbours are in use from 2 s on: with five minutes each is requested once, with a second about every
    // second.
    let usual = requests(&[]);
    let often = requests(&["timers.arp.ageing=1s"]);
    assert!(often >= usual + 8, "{usual}, {often}");
}

#[test]
fn a_client_that_lost_its_servers_waits_between_the_bounds_of_the_file() {
    let waits = |set: &[&str]| {
        let set: Vec<&str> = [&[SHORT], set].concat();
        let mut bench = Bench::new(repository_lab("two-subnets", &set), 1);
        bench.run(Duration::from_secs(3));
        let lane = bench.node("lane");
        bench.crash(lane, ServiceKind::Les);
        bench.run(Duration::from_secs(10));
        let told = bench.log.story.iter();
        let told = told.filter(|line| line.contains(" urku ") && line.contains(" delay_ms="));
        let waits = told.filter_map(|line| {
            let (_, rest) = line.split_once(" delay_ms=")?;
            rest.split(' ').next()?.parse::<u64>().ok()
        });
        waits.collect::<Vec<_>>()
    };
    let usual = waits(&[]);
    assert!(
        usual.iter().any(|ms| *ms < 1000) && usual.len() > 1,
        "{usual:?}"
    );
    let slow = [
        "timers.lec.min_reconfigure_delay=2s",
        "timers.lec.max_reconfigure_delay=3s",
    ];
    let slow = waits(&slow);
    assert!(
        !slow.is_empty() && slow.iter().all(|ms| (2000..=3000).contains(ms)),
        "{slow:?}"
    );
}

#[test]
fn ports_of_switches_have_the_calls_and_the_buffers_of_the_file() {
    assert_eq!(shortcuts(&after(&[SHORT])).len(), 1);
    // One call is no room for the connections of a LANE client.
    assert!(shortcuts(&after(&[SHORT, "limits.port.calls=1"])).is_empty());
    // Four or five datagrams of 22 cells arrive at once before a slow link.
    let flow = "traffic.bulk={ name: bulk, from: urku, to: sello, kind: udp, rate: 450pps, start: 4s, tick: 10ms }";
    let received = |set: &[&str]| {
        let slow = "hosts.sello.link={ rate: 10Mbps }";
        let bench = after(&[&[flow, slow], set].concat());
        let flow = bench.flow("bulk");
        let samples = bench.log.samples.iter();
        let all = samples.filter(|s| s.flow.0 == flow && s.side == Side::Received);
        all.count()
    };
    let (usual, small) = (received(&[]), received(&["limits.port.buffer=32"]));
    assert!(usual > 1700 && small < usual / 2, "{usual}, {small}");
}

#[test]
fn nhrp_clients_and_servers_have_the_limits_of_the_file() {
    let run = |set: &[&str]| {
        let mut bench = Bench::new(repository_lab("nhrp", set), 1);
        bench.run(Duration::from_millis(6500));
        bench
    };
    let ways = |set: &[&str]| rows(&run(set), "x", "nhrp", "ways").len();
    assert_eq!((ways(&[]), ways(&["limits.nhrp.entries=1"])), (2, 1));
    let registered = |set: &[&str]| {
        let all = rows(&run(set), "r1", "nhrp", "cache");
        ["10.5.0.10", "10.5.0.11"].map(|ip| {
            all.iter()
                .any(|row| row.values().any(|v| v.starts_with(ip)))
        })
    };
    assert_eq!(registered(&[]), [true; 2]);
    let one = registered(&["limits.mps.registrations=1"]);
    assert_eq!(one.into_iter().filter(|known| *known).count(), 1, "{one:?}");
}
