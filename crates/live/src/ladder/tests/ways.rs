//! Ways of packets through a network under drivers that are late, and to clients that are slow.

use crate::ladder::{Marking, Marks, Wanted};
use crate::world::World;
use aerostat_lab::build::{Builder, Flavour};
use aerostat_lab::model::Lab;
use aerostat_lab::way::{Act, MOST_MARKED, Step};
use aerostat_proto::{Duration, Instant};
use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;

const FLOOD: &str = "
switches: { s1: {}, s2: {} }
links: [[s1, s2, { rate: oc12 }]]
clip: { net: { subnet: 10.1.0.0/24 } }
pvcs: [{ from: a, vc: 0.100, to: b, to_vc: 0.100 }]
hosts:
  a: { on: s1, elan: net, ip: 10.1.0.1, link: { rate: oc12 } }
  b: { on: s2, elan: net, ip: 10.1.0.2, link: { rate: oc12 } }
traffic: [{ from: a, to: b, kind: udp, rate: 100000pps, size: 60, start: 1s }]
";

fn lab() -> Lab {
    aerostat_lab::parse("flood.atm.yml", FLOOD, &[])
        .unwrap()
        .lab
}

/// A network, its clock, and a client that follows one packet in so many.
struct Net {
    world: World,
    now: Instant,
    lines: Receiver<Vec<u8>>,
}

impl Net {
    fn new(lab: &Lab, one_in: u64) -> Self {
        let builder = Builder::new(lab, 7, Flavour::Embedded);
        let mut world = World::new(&builder, Instant::ZERO);
        world.start(&builder, Instant::ZERO);
        let (from, to) = (Vec::new(), Vec::new());
        let marks = Marks::new(Marking { from, to, one_in });
        let lines = world.captures.ladder(lab, Wanted::Ways(marks));
        let now = Instant::ZERO;
        Self { world, now, lines }
    }

    /// The driver wakes up so often.
    fn run(&mut self, until: Instant, every: Duration) {
        while self.now < until {
            self.now += every;
            while !self.world.step(self.now, 64) {}
            while self.world.poll_output().is_some() {}
        }
    }

    /// The steps so far, by packet.
    fn ways(&mut self, ways: &mut BTreeMap<u64, Vec<Step>>) {
        for lines in self.lines.try_iter() {
            for line in lines.split_inclusive(|octet| *octet == b'\n') {
                let step: Step = serde_json::from_slice(line).unwrap();
                ways.entry(step.packet).or_default().push(step);
            }
        }
    }
}

/// True if a way has all its steps: over three links to the receiver.
fn is_whole(way: &[Step]) -> bool {
    way.len() == 6 && way[0].text.is_some() && way[5].last
}

/// A network that loses time hands cells over at its own time, not when they were due.
#[test]
fn the_times_of_a_way_have_one_clock_in_a_network_that_lags_behind() {
    let lab = lab();
    let mut net = Net::new(&lab, 50);
    let mut ways = BTreeMap::new();
    net.run(Instant::from_secs(1), Duration::from_millis(1));
    // The processor has no time for more events than these.
    for _ in 0..300 {
        net.now += Duration::from_millis(1);
        net.world.step(net.now, 64);
        net.ways(&mut ways);
    }
    net.run(
        net.now + Duration::from_millis(100),
        Duration::from_millis(1),
    );
    net.ways(&mut ways);
    assert!(ways.len() > 200, "{} ways", ways.len());
    for way in ways.values() {
        let backwards = way.windows(2).any(|pair| pair[1].t < pair[0].t);
        assert!(!backwards, "{way:#?}");
    }
    let whole = ways.values().filter(|way| is_whole(way)).count();
    assert!(whole > 200, "{whole} whole ways");
}

/// Lines wait for a slow client, packets without a place are counted, and the ways of the others are whole.
#[test]
fn a_slow_client_has_whole_ways_and_the_number_of_the_others() {
    let lab = lab();
    let mut net = Net::new(&lab, 1);
    let mut ways = BTreeMap::new();
    net.run(Instant::from_millis(1300), Duration::from_millis(1));
    let before: u64 = 30_000;
    for _ in 0..100 {
        net.run(net.now + Duration::from_millis(1), Duration::from_millis(1));
        net.ways(&mut ways);
    }
    let left_out: u64 = ways.values().map(|way| way[0].left_out).sum();
    let marked = ways.len() as u64;
    // Packets under way at the end have not arrived.
    let whole = ways.values().filter(|way| is_whole(way)).count() as u64;
    assert!(marked - whole < 10, "{whole} of {marked} ways are whole");
    assert!(ways.keys().copied().eq(1..=marked), "no number is missing");
    let all = marked + left_out;
    assert!(
        (before..before + 10_010).contains(&all),
        "{marked} {left_out}"
    );
    assert!(left_out > 20_000, "{left_out} left out");
    assert!(ways.values().flatten().all(|step| step.missed == 0));
}

/// Packets that are never seen again have a place until they are silent.
#[test]
fn packets_beyond_the_limit_are_left_out_and_counted() {
    let text = FLOOD.replace("rate: oc12 }]]", "rate: oc12, loss: 1 }]]");
    let lab = aerostat_lab::parse("flood.atm.yml", &text, &[])
        .unwrap()
        .lab;
    let mut net = Net::new(&lab, 1);
    let mut ways = BTreeMap::new();
    let mut left_out = Vec::new();
    for ms in 1..=2200 {
        net.run(Instant::from_millis(ms), Duration::from_millis(1));
        net.ways(&mut ways);
        let most = ways.len();
        if ms < 2000 {
            assert!(most <= MOST_MARKED, "{most} at {ms} ms");
        }
    }
    for way in ways.values() {
        assert!(
            way.iter()
                .all(|step| !step.last && step.act != Act::Dropped),
            "{way:#?}"
        );
        left_out.extend(Some(way[0].left_out).filter(|count| *count > 0));
    }
    assert!(ways.len() > MOST_MARKED, "{} ways", ways.len());
    assert!(left_out[0] > 90_000, "{left_out:?}");
}
