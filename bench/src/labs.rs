//! Whole labs in virtual time.

use aerostat_lab::build::{Builder, Flavour};
use aerostat_lab::model::Lab;
use aerostat_node::host::HostEvent;
use aerostat_proto::{Duration, Instant};
use aerostat_sim::{LabEvent, LinkId, NodeId, Observer, lab_world};
use std::time::Instant as Clock;

#[derive(Default)]
struct Count {
    samples: u64,
}

impl Observer<LabEvent> for Count {
    fn event(&mut self, _node: NodeId, event: LabEvent, _now: Instant) {
        self.samples += u64::from(matches!(event, LabEvent::Host(HostEvent::Sample(_))));
    }
}

/// Costs and results of a run.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Virtual time.
    pub simulated: Duration,
    /// Wall clock, s, with building the lab.
    pub seconds: f64,
    /// Cells carried, summed over all links and both directions.
    pub cells: u64,
    /// Measured packets that left or reached an IP stack.
    pub packets: u64,
    /// Events of the world.
    pub events: u64,
}

/// Reads a lab of the repository.
///
/// # Panics
/// If it is not there or not valid.
#[must_use]
pub fn read(name: &str) -> Lab {
    let path = format!("{}/../labs/{name}.atm.yml", env!("CARGO_MANIFEST_DIR"));
    let checked = aerostat_lab::read(path.as_ref(), &[]);
    checked.unwrap_or_else(|e| panic!("{path}: {e:?}")).lab
}

/// Runs a lab to its end.
#[must_use]
pub fn run(lab: &Lab) -> Outcome {
    let start = Clock::now();
    let builder = Builder::new(lab, 1, Flavour::Embedded);
    let mut world = lab_world::build(lab, 1);
    let mut count = Count::default();
    lab_world::start(&mut world, &builder, &mut count);
    let simulated = lab.end();
    world.run_until(Instant::ZERO + simulated, &mut count);
    let seconds = start.elapsed().as_secs_f64();
    let links = (0..lab.links.len()).flat_map(|link| world.link_counters(LinkId(link)));
    Outcome {
        simulated,
        seconds,
        cells: links.map(|counters| counters.delivered).sum(),
        packets: count.samples,
        events: world.events(),
    }
}
