//! The levels of buffers over time: `occupancy:` of a lab file.
//!
//! A [`Sampler`] looks at the output ports of switches at equal intervals, and keeps what their two buffers hold. A
//! sample at time t has all cells that came before or at t and that had not begun to leave then; the cell on the line
//! does not count. A switch that is off has no samples.
//!
//! **Clocks.** Runs in virtual time and labs in real time use the same sampler. It asks for the time of its next sample
//! and takes it once the network has done everything up to that time. A network in real time may be late, for example
//! when its process had to wait. Then the levels of a time that is over are not known: the sampler takes one sample at
//! the time of the network, leaves out those before it, and counts them.
//!
//! **Bounds.** At most [`MOST`] samples; what would be more is refused when the lab is read, and further samples, of a
//! run that takes longer than the lab file says, are counted and told. A lab in real time has no end, so its sampler
//! stops then and tells when.

use crate::circuits::Network;
use crate::model::{Lab, LinkId, NodeId, NodeKind, Occupancy};
use crate::report::RunReport;
use aerostat_proto::{Duration, Instant};
use aerostat_wire::counted;

/// Most samples of a run, over all ports.
pub const MOST: u64 = 1_000_000;

impl Occupancy {
    /// The ports of switches, by link.
    pub fn ports<'a>(&'a self, lab: &'a Lab) -> impl Iterator<Item = Port> + 'a {
        self.links.iter().flat_map(|link| {
            let ends = lab.link(*link).ends.iter();
            let switches =
                ends.filter(|end| matches!(lab.node(end.node).kind, NodeKind::Switch(_)));
            switches.map(|end| Port {
                link: *link,
                node: end.node,
                port: end.port,
            })
        })
    }

    /// Samples of a port in a run of this length.
    #[must_use]
    pub fn samples(&self, end: Duration) -> u64 {
        match end.checked_sub(self.from) {
            Some(time) => u64::try_from(time.as_nanos() / self.every.as_nanos().max(1))
                .map_or(u64::MAX, |gaps| gaps.saturating_add(1)),
            None => 0,
        }
    }
}

/// An output port of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its link.
    pub link: LinkId,
    /// The switch.
    pub node: NodeId,
    /// The number of the port.
    pub port: u16,
}

/// The levels of a port at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Time of the sample.
    pub at: Instant,
    /// The port.
    pub port: Port,
    /// Cells in the buffer of CBR and VBR, and in that of ABR, GFR and UBR.
    pub cells: [u32; 2],
}

/// Takes the samples of a run.
#[derive(Clone, Debug, Default)]
pub struct Sampler {
    every: Duration,
    next: Option<Instant>,
    ports: Vec<Port>,
    samples: Vec<Sample>,
    /// Samples beyond the most.
    missed: u64,
    /// Samples whose time was over before they were taken.
    late: u64,
    /// True if no reader needs the times beyond the most samples.
    stops: bool,
    stopped: Option<Instant>,
}

impl Sampler {
    /// The sampler of a lab, which may have nothing to do.
    #[must_use]
    pub fn new(lab: &Lab) -> Self {
        let Some(wanted) = &lab.occupancy else {
            return Self::default();
        };
        Self {
            every: wanted.every,
            next: Some(Instant::ZERO + wanted.from),
            ports: wanted.ports(lab).collect(),
            ..Self::default()
        }
    }

    /// The sampler of a lab without an end: it stops at the most samples.
    #[must_use]
    pub fn endless(lab: &Lab) -> Self {
        Self {
            stops: true,
            ..Self::new(lab)
        }
    }

    /// When the next samples are due; `None` if the lab wants no samples, or no more.
    #[must_use]
    pub const fn next_at(&self) -> Option<Instant> {
        self.next
    }

    /// Takes the samples that are due by the time of the network, which has done everything up to it.
    pub fn take(&mut self, network: &impl Network) {
        let now = network.time();
        let Some(due) = self.next.filter(|due| *due <= now) else {
            return;
        };
        let over = now.since(due).as_nanos() / self.every.as_nanos().max(1);
        let over = u32::try_from(over).unwrap_or(u32::MAX);
        self.late += u64::from(over) * self.ports.len() as u64;
        self.next = Some(due + self.every * over + self.every);
        if self.stops && (self.samples.len() + self.ports.len()) as u64 > MOST {
            (self.next, self.stopped) = (None, Some(now));
            return;
        }
        for port in &self.ports {
            let switch = network.switch(port.node);
            let Some(output) = switch.and_then(|switch| switch.fabric().output(port.port)) else {
                continue;
            };
            if self.samples.len() as u64 >= MOST {
                self.missed += 1;
                continue;
            }
            self.samples.push(Sample {
                at: now,
                port: *port,
                cells: output.buffers().map(|(cells, _)| cells),
            });
        }
    }

    /// The samples so far in the order of time.
    #[must_use]
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Adds the samples so far, and the limits that they met, to results.
    pub fn report(&self, report: &mut RunReport) {
        report.occupancy = self.samples.clone();
        report.limits.extend(self.limits());
    }

    /// Gaps of the samples: a sentence for each limit that they met.
    #[must_use]
    pub fn limits(&self) -> Vec<String> {
        let mut limits = Vec::new();
        if self.missed > 0 {
            limits.push(format!(
                "occupancy: {MOST} samples are the most, and {} more were due",
                self.missed
            ));
        }
        if let Some(at) = self.stopped {
            limits.push(format!(
                "occupancy: {MOST} samples are the most, and there are no more from {at} on"
            ));
        }
        if self.late > 0 {
            limits.push(format!(
                "occupancy: {} left out, because the lab was behind its time",
                counted(self.late, "sample was", "samples were")
            ));
        }
        limits
    }
}
