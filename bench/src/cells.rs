//! Cells in the simulator's world: sources on one switch, a trunk of two more, sinks on the last.

use aerostat_node::atm::{
    CellRate, CellRun, Fabric, FabricOp, Nic, NicEvent, OutputPort, Pdu, PortLimits, PortVc,
};
use aerostat_proto::{Duration, Instant};
use aerostat_sim::{LinkConfig, LinkEnd, Node, NodeId, NodeOutput, World};
use aerostat_wire::{TrafficParams, Vc};

/// A source, a sink or a switch, without signalling.
pub enum Plane {
    /// Sends a PDU of `len` octets every `gap`.
    Source {
        /// Adapter.
        nic: Box<Nic>,
        /// SDU, octets.
        len: usize,
        /// From one to the next.
        gap: Duration,
        /// The next one.
        at: Instant,
        /// The adapter has new cells.
        touched: bool,
    },
    /// Counts PDUs.
    Sink(Box<Nic>),
    /// A switch.
    Switch(Box<Fabric>),
}

const CHANNEL: u16 = 100;

impl Node for Plane {
    type Event = ();
    type Management = ();
    type Report = ();
    fn report((): &mut (), _from: NodeId, (): ()) -> bool {
        false
    }
    fn managed(&mut self, _me: NodeId, (): &(), _now: Instant) {}
    fn start(&mut self, _now: Instant) {}
    fn forward(
        &mut self,
        port: u16,
        run: CellRun,
        now: Instant,
        touched: &mut Vec<u16>,
    ) -> Option<CellRun> {
        match self {
            Self::Switch(fabric) => {
                fabric.receive(port, run, now, |port| touched.push(port));
            }
            Self::Sink(nic) | Self::Source { nic, .. } => {
                let lost = matches!(nic.receive(run, now), NicEvent::Lost { .. });
                debug_assert!(!lost, "nothing is lost here");
            }
        }
        None
    }
    fn cells(&mut self, _port: u16, _run: CellRun, _now: Instant) {}
    fn link(&mut self, _port: u16, _up: bool, _now: Instant) {}
    fn handle_timeout(&mut self, now: Instant) {
        if let Self::Source {
            nic,
            len,
            gap,
            at,
            touched,
        } = self
        {
            while *at <= now {
                nic.send(Vc::new(0, CHANNEL), Pdu::new(vec![0x5a; *len]), now);
                *at += *gap;
                *touched = true;
            }
        }
    }
    fn poll_output(&mut self) -> Option<NodeOutput<(), ()>> {
        let Self::Source { touched, .. } = self else {
            return None;
        };
        core::mem::take(touched).then_some(NodeOutput::Touched(0))
    }
    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Source { at, .. } => Some(*at),
            _ => None,
        }
    }
    fn output_port(&mut self, port: u16) -> Option<&mut OutputPort> {
        match self {
            Self::Source { nic, .. } | Self::Sink(nic) => Some(nic.output_mut()),
            Self::Switch(fabric) => fabric.output_mut(port),
        }
    }
}

/// Result of a run of [`Chain`].
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Cells carried, summed over all links.
    pub cells: u64,
    /// PDUs delivered.
    pub pdus: u64,
    /// Events of the world.
    pub events: u64,
}

/// `n` sources, three switches on OC-12 trunks, `n` sinks; the trunks carry 90 % of what they can.
pub struct Chain {
    world: World<Plane>,
    n: usize,
}

impl Chain {
    /// Sources send SDUs of `len` octets on a CBR contract if `paced`, else as fast as their OC-3 line.
    ///
    /// # Panics
    /// Never: all labels are free.
    #[must_use]
    pub fn new(n: usize, len: usize, paced: bool) -> Self {
        let trunk = CellRate::OC12;
        let each = f64::from(trunk.cells_per_second()) * 0.9 / n as f64;
        let per_pdu = aerostat_wire::aal5::cells_for(len) as f64;
        let gap = Duration::from_secs_f64(per_pdu / each);
        let traffic = if paced {
            TrafficParams::cbr(each as u32 + 10, 0)
        } else {
            TrafficParams::ubr(0)
        };
        let mut world = World::new(1);
        let mut machines = Vec::new();
        for i in 0..2 * n {
            let mut nic = Box::new(Nic::new(CellRate::OC3));
            nic.open(Vc::new(0, CHANNEL), traffic, 0);
            let at = Instant::from_nanos(1 + gap.as_nanos() as u64 * i as u64 / n as u64);
            let source = i < n;
            let node = world.add_host(&format!("h{i}"));
            let touched = false;
            let machine = if source {
                Plane::Source {
                    nic,
                    len,
                    gap,
                    at,
                    touched,
                }
            } else {
                Plane::Sink(nic)
            };
            machines.push((node, machine));
        }
        for k in 0..3 {
            let node = world.add_switch(&format!("sw{k}"), n as u16 + 2);
            machines.push((node, Plane::Switch(Box::new(fabric(k, n, traffic)))));
        }
        let end = |node, port| LinkEnd {
            node: NodeId(node),
            port,
        };
        let config = LinkConfig::new(Duration::from_micros(5));
        for i in 0..n {
            let port = i as u16 + 2;
            world.connect(&format!("in{i}"), [end(i, 0), end(2 * n, port)], config);
            world.connect(
                &format!("out{i}"),
                [end(n + i, 0), end(2 * n + 2, port)],
                config,
            );
        }
        for k in 0..2 {
            let ends = [end(2 * n + k, 1), end(2 * n + k + 1, 0)];
            world.connect(&format!("trunk{k}"), ends, config);
        }
        world.power_on_all(machines, &mut ());
        Self { world, n }
    }
    /// Runs for `time` of virtual time.
    pub fn run(&mut self, time: Duration) -> Outcome {
        let before = self.outcome();
        let until = self.world.now() + time;
        self.world.run_until(until, &mut ());
        let after = self.outcome();
        Outcome {
            cells: after.cells - before.cells,
            pdus: after.pdus - before.pdus,
            events: after.events - before.events,
        }
    }
    fn outcome(&self) -> Outcome {
        let links = 2 * self.n + 2;
        let cells = (0..links)
            .flat_map(|link| self.world.link_counters(aerostat_sim::LinkId(link)))
            .map(|counters| counters.delivered)
            .sum();
        let sinks = (self.n..2 * self.n).filter_map(|node| self.world.node(NodeId(node)));
        let pdus = sinks.map(|plane| match plane {
            Plane::Sink(nic) => nic.counters.pdus_out,
            _ => 0,
        });
        Outcome {
            cells,
            pdus: pdus.sum(),
            events: self.world.events(),
        }
    }
}

/// Switch `k`: port 0 before, port 1 after, host `i` at port `i` + 2.
fn fabric(k: usize, n: usize, traffic: TrafficParams) -> Fabric {
    let mut fabric = Fabric::new([k as u8; 16]);
    for port in 0..n + 2 {
        let rate = if port < 2 {
            CellRate::OC12
        } else {
            CellRate::OC3
        };
        fabric.add_port(rate, PortLimits::SWITCH);
    }
    for i in 0..n {
        let host = PortVc::new(i as u16 + 2, Vc::new(0, CHANNEL));
        let label = Vc::new(0, 32 + i as u16);
        let from = if k == 0 { host } else { PortVc::new(0, label) };
        let to = if k == 2 { host } else { PortVc::new(1, label) };
        let done = fabric.apply(FabricOp::Connect {
            from,
            to,
            traffic,
            police: false.into(),
        });
        assert!(done.is_ok(), "{done:?}");
    }
    fabric
}
