//! The labs of the repository with their real hosts, switches and servers.

use crate::*;
use aerostat_lab::build::{Builder, Flavour};
use aerostat_lab::model::Lab;
use aerostat_node::host::HostEvent;
use aerostat_node::ip::apps::{AppId, AppResult};
use aerostat_proto::{Instant, Trace};
use std::collections::BTreeMap;

#[derive(Default)]
struct Log {
    story: Vec<String>,
    results: BTreeMap<AppId, AppResult>,
    samples: usize,
}

impl Observer<LabEvent> for Log {
    fn trace(&mut self, node: NodeId, trace: Trace, now: Instant) {
        self.story
            .push(format!("{now} {} {} {}", node.0, trace.name, trace.text));
    }
    fn event(&mut self, _node: NodeId, event: LabEvent, _now: Instant) {
        match event {
            LabEvent::Host(HostEvent::Sample(_)) => self.samples += 1,
            LabEvent::Host(HostEvent::Finished(app, result)) => {
                self.results.insert(app, result);
            }
            LabEvent::Host(_) | LabEvent::Outside(_) => {}
        }
    }
}

fn lab(name: &str) -> Lab {
    let path = format!("{}/../../labs/{name}.atm.yml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect("a lab of the repository");
    aerostat_lab::parse(&path, &text, &[])
        .expect("a valid lab")
        .lab
}

fn run(lab: &Lab, seed: u64, until: Instant) -> (World<LabNode>, Log) {
    let builder = Builder::new(lab, seed, Flavour::Embedded);
    let mut world = lab_world::build(lab, seed);
    let mut log = Log::default();
    lab_world::start(&mut world, &builder, &mut log);
    world.run_until(until, &mut log);
    (world, log)
}

#[test]
fn two_hosts_ping_each_other_over_lane() {
    let lab = lab("two-hosts");
    let (world, log) = run(&lab, 1, Instant::from_secs(8));
    let story = log.story.join("\n");
    let Some(AppResult::Ping(ping)) = log.results.get(&AppId(0)) else {
        panic!("no result of ping:\n{story}");
    };
    assert_eq!((ping.sent, ping.received), (30, 30), "{story}");
    assert!(world.events() < 1_000_000, "{} events", world.events());
}

#[test]
fn the_same_lab_and_seed_tell_the_same_story() {
    let lab = lab("two-subnets");
    let until = Instant::from_millis(4500);
    let (first_world, first) = run(&lab, 3, until);
    let (second_world, second) = run(&lab, 3, until);
    assert!(first.story == second.story);
    assert!(!first.story.is_empty() && first.samples == second.samples);
    assert_eq!(first_world.events(), second_world.events());
}

/// The events of a run.
#[derive(Default)]
struct Story(Vec<String>);

impl run::Watcher for Story {
    fn event(&mut self, event: &aerostat_lab::event::Event) {
        self.0.push(format!("{event:?}"));
    }
}

/// A lab by trains tells the same story and leaves the same report, in every figure, as with an event for every cell.
#[test]
fn trains_equal_cells_in_labs() {
    for name in ["two-subnets", "clip", "cbr-beside-ubr"] {
        let lab = lab(name);
        let [trains, cells] = [false, true].map(|by_cell| {
            let mut story = Story::default();
            let mut run = run::LabRun::new(&lab, &mut story);
            if by_cell {
                run.cell_by_cell();
            }
            run.start();
            run.run_until(Instant::from_millis(4_500));
            let report = format!("{:#?}", run.finish().unwrap());
            (report, story.0)
        });
        for (one, other) in trains.0.lines().zip(cells.0.lines()) {
            assert_eq!(one, other, "{name}");
        }
        assert_eq!(trains.1, cells.1, "{name}");
    }
}
