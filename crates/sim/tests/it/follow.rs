//! The way of packets: its stages have the delay that the meters measure, and its losses are those of the books.
//!
//! The sum alone would be right with wrong parts. So the parts are held against what they must be by the lab file: a
//! cell takes the cell time of its line, and the line its delay; and a wait is what the line carried meanwhile.

use aerostat_lab::Lab;
use aerostat_lab::model::{FlowKind, NodeKind};
use aerostat_lab::report::RunReport;
use aerostat_node::ip::books::Place;
use aerostat_node::ip::meter::{FlowId, Path};
use aerostat_proto::Duration;
use aerostat_sim::follow::{self, Fate, Followed, Found, PacketId, Verdict, What};
use aerostat_testing::labs::bench::repository_lab;
use std::collections::{BTreeMap, BTreeSet};

/// A lab that keeps the packets of its flows one by one.
fn lab(name: &str, set: &[&str]) -> Lab {
    let mut lab = repository_lab(name, set);
    for flow in &mut lab.traffic {
        flow.series = true;
    }
    lab
}

/// Everything that must hold for a packet and its way.
fn holds(lab: &Lab, way: &Followed) {
    let text = || format!("{way:#?}");
    assert!(!way.ambiguous, "{}", text());
    if let Some(delay) = way.delay() {
        assert_eq!(way.sum(), delay, "{}", text());
    }
    let mut lines = 0;
    for (stage, next) in way.stages.iter().zip(way.stages.iter().skip(1)) {
        let lost = matches!(next.what, What::Lost { .. });
        assert!(stage.to <= next.from || lost, "{}", text());
    }
    for stage in &way.stages {
        assert!(stage.to >= stage.from, "{}", text());
        match &stage.what {
            What::Queue { wait, .. } => {
                assert_eq!(wait.time(), stage.time(), "{}", text());
                assert!(wait.complete, "{}", text());
            }
            What::Transmission { line, .. } => {
                let cell = lab.links[line.link().0].lines[line.side()]
                    .rate
                    .time_of(1)
                    .as_nanos();
                let took = stage.time().as_nanos();
                assert!(took.abs_diff(cell) <= 1, "{took} {cell} {}", text());
                lines += 1;
            }
            What::Propagation { line } => {
                assert_eq!(
                    stage.time(),
                    lab.links[line.link().0].lines[line.side()].delay,
                    "{}",
                    text()
                );
            }
            What::Unseen => panic!("{}", text()),
            _ => {}
        }
    }
    if matches!(way.fate, Fate::Delivered { .. }) {
        assert!(lines >= 2, "{}", text());
    }
}

/// The delays of delivered packets that the meters have measured.
fn measured(report: &RunReport) -> BTreeMap<PacketId, Duration> {
    let flows = report.flows.iter();
    let all = flows.flat_map(|flow| {
        let series = flow.series.as_ref().expect("a series");
        let arrivals = series.arrivals.iter();
        arrivals.map(|one| ((flow.flow, one.number), one.received.since(one.sent)))
    });
    all.collect()
}

/// Packets that each flow of a lab sends.
fn sent(lab: &Lab) -> (Vec<u64>, RunReport) {
    let report = aerostat_sim::run::run(lab, None, &mut ()).expect("no files");
    let flows = report.flows.iter();
    (
        flows
            .map(|flow| flow.sum(|path| path.sent_packets))
            .collect(),
        report,
    )
}

/// Some packets of all flows, each as likely as any other.
fn drawn(sent: &[u64], count: usize, seed: u64) -> BTreeSet<PacketId> {
    let total: u64 = sent.iter().sum();
    let mut state = seed;
    let mut random = || {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    };
    let mut all = BTreeSet::new();
    while all.len() < count.min(total as usize) {
        let mut at = random() % total;
        for (flow, packets) in sent.iter().enumerate() {
            if at < *packets {
                all.insert((FlowId(flow), at));
                break;
            }
            at -= packets;
        }
    }
    all
}

fn seed() -> u64 {
    let named = std::env::var("AEROSTAT_SEED").ok();
    named.map_or(4711, |seed| {
        seed.parse().expect("AEROSTAT_SEED is a number")
    })
}

/// Follows random packets of a lab; the ways.
fn random_packets(name: &str, set: &[&str], count: usize) -> Vec<Followed> {
    let seed = seed();
    println!("AEROSTAT_SEED={seed}: {count} packets of {name}");
    let lab = lab(name, set);
    let (sent, plain) = sent(&lab);
    let chosen = drawn(&sent, count, seed);
    let (ways, followed) = follow::packets(&lab, chosen.clone(), &mut ());
    // The run is the same.
    assert_eq!(format!("{plain:?}"), format!("{followed:?}"));
    let measured = measured(&plain);
    let mut fates: BTreeMap<&str, u64> = BTreeMap::new();
    for way in &ways {
        holds(&lab, way);
        let known = measured.get(&way.packet);
        assert_eq!(way.delay(), known.copied(), "{way:#?}");
        let fate = match way.fate {
            Fate::Delivered { .. } => "delivered",
            Fate::Lost { .. } => "lost",
            Fate::UnderWay => "under way",
        };
        *fates.entry(fate).or_default() += 1;
    }
    println!("{name}: {fates:?}");
    let found: BTreeSet<PacketId> = ways.iter().map(|way| way.packet).collect();
    assert_eq!(found, chosen);
    ways
}

fn has(ways: &[Followed], what: impl Fn(&What) -> bool) -> bool {
    let mut stages = ways.iter().flat_map(|way| &way.stages);
    stages.any(|stage| what(&stage.what))
}

#[test]
fn a_thousand_packets_of_campus_take_what_the_meters_say() {
    let ways = random_packets("campus", &["until=6.15s"], 1000);
    let by = |path| ways.iter().filter(|way| way.path == Some(path)).count();
    assert!(by(Path::Lane) > 100 && by(Path::Shortcut) > 100);
    assert!(has(&ways, |what| *what == What::Router));
}

#[test]
fn a_thousand_packets_of_wan_detour_take_what_the_meters_say() {
    random_packets("wan-detour", &[], 1000);
}

#[test]
fn a_thousand_packets_of_telephony_take_what_the_meters_say() {
    let ways = random_packets("telephony", &["until=7s"], 1000);
    assert!(has(&ways, |what| *what == What::Receiver));
}

#[test]
fn a_thousand_packets_of_policed_tcp_take_what_the_meters_say() {
    let ways = random_packets("policed-tcp", &["until=2s"], 1000);
    let conforms = |what: &What| {
        matches!(
            what,
            What::Switch {
                policed: Some(Verdict::Conforms),
                ..
            }
        )
    };
    assert!(has(&ways, conforms));
}

#[test]
fn packets_of_slow_hosts_take_what_the_meters_say() {
    let ways = random_packets("slow-hosts", &["until=5.2s"], 200);
    assert!(has(&ways, |what| matches!(what, What::Cpu { sends: true })));
    assert!(has(&ways, |what| matches!(
        what,
        What::Cpu { sends: false }
    )));
}

/// As the tests above, over the whole of the labs: some minutes.
#[test]
#[ignore = "minutes: cargo test --release -p aerostat-sim --test it follow:: -- --ignored"]
fn a_thousand_packets_of_whole_labs_take_what_the_meters_say() {
    for name in ["campus", "wan-detour", "telephony", "policed-tcp"] {
        random_packets(name, &[], 1000);
    }
}

/// The places of all losses of all flows.
fn lost_by(report: &RunReport) -> BTreeMap<(FlowId, Place), u64> {
    let mut all = BTreeMap::new();
    for flow in &report.flows {
        for path in &flow.paths {
            for (place, packets) in &path.lost_by {
                *all.entry((flow.flow, *place)).or_default() += packets;
            }
        }
    }
    all
}

#[test]
fn each_lost_packet_is_lost_where_the_books_say() {
    for (name, set) in [
        ("policed-tcp", &["until=1.5s"][..]),
        ("campus", &["until=3s"]),
        ("telephony", &["until=7s"]),
        ("wan-detour", &["until=7s"]),
        ("one-elan", &["until=3s", "links.s1-s2.loss=1e-3"]),
        ("dead-destination", &["until=5s"]),
        ("ring", &["until=8s"]),
    ] {
        let lab = lab(name, set);
        let (sent, plain) = sent(&lab);
        let all = sent.iter().enumerate();
        let all = all.flat_map(|(flow, sent)| (0..*sent).map(move |n| (FlowId(flow), n)));
        let (ways, followed) = follow::packets(&lab, all.collect(), &mut ());
        assert_eq!(format!("{plain:?}"), format!("{followed:?}"), "{name}");
        let mut places = BTreeMap::new();
        for way in &ways {
            if let Fate::Lost { place, .. } = way.fate {
                *places.entry((way.packet.0, place)).or_default() += 1_u64;
            }
        }
        println!(
            "{name}: {} packets, {} lost",
            ways.len(),
            places.values().sum::<u64>()
        );
        assert_eq!(places, lost_by(&plain), "{name}");
    }
}

#[test]
fn one_packet_is_followed_in_two_runs_that_end_early() {
    let lab = lab("two-subnets", &[]);
    let flow = |kind: fn(&FlowKind) -> bool| {
        let at = lab.traffic.iter().position(|flow| kind(&flow.kind));
        FlowId(at.expect("such a flow"))
    };
    let first = flow(|_| true);
    let Found::Way(way) = follow::packet(&lab, (first, 2), &mut ()) else {
        panic!("no way");
    };
    holds(&lab, &way);
    let (_, report) = sent(&lab);
    assert_eq!(way.delay(), measured(&report).get(&(first, 2)).copied());
    let routers = way.stages.iter().filter(|stage| stage.what == What::Router);
    let names: Vec<&str> = routers.map(|stage| &*lab.node(stage.node).name).collect();
    assert_eq!(names, ["r1", "r2"], "{way:#?}");
    assert!(matches!(
        lab.node(way.sent.unwrap().1).kind,
        NodeKind::Host(_)
    ));
    let few = follow::packet(&lab, (first, 1 << 40), &mut ());
    assert!(matches!(few, Found::TooFew(n) if n > 10), "{few:?}");
}
