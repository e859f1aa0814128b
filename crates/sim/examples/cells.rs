//! Measures how many cells per second of processor time the world moves.
//!
//! Pairs of hosts on two switches saturate their links with best-effort PDUs over a shared trunk. Prints the cells sent
//! over all links and the time taken.
//!
//! `cargo run --release -p aerostat-sim --example cells -- [PAIRS] [SDU OCTETS] [MILLISECONDS]`

use aerostat_node::atm::{
    CellRate, CellRun, Fabric, FabricOp, Nic, OutputPort, Pdu, PortLimits, PortVc,
};
use aerostat_proto::{Duration, Instant};
use aerostat_sim::{LinkConfig, LinkEnd, LinkId, Node, NodeId, NodeOutput, World};
use aerostat_wire::{TrafficParams, Vc};

const VC: Vc = Vc::new(0, 100);

enum Simple {
    /// Sends a PDU whenever its queue gets short.
    Source(Box<Nic>, Pdu, Instant, bool),
    Sink(Box<Nic>),
    Switch(Box<Fabric>),
}

impl Node for Simple {
    type Event = ();
    type Management = ();
    type Report = ();
    fn report((): &mut (), _from: NodeId, (): ()) -> bool {
        false
    }
    fn managed(&mut self, _me: NodeId, (): &(), _now: Instant) {}
    fn start(&mut self, now: Instant) {
        if let Self::Source(_, _, next, _) = self {
            *next = now + Duration::from_nanos(1);
        }
    }
    fn forward(
        &mut self,
        port: u16,
        run: CellRun,
        now: Instant,
        touched: &mut Vec<u16>,
    ) -> Option<CellRun> {
        match self {
            Self::Source(nic, ..) | Self::Sink(nic) => {
                nic.receive(run, now);
            }
            Self::Switch(fabric) => {
                fabric.receive(port, run, now, |port| touched.push(port));
            }
        }
        None
    }
    fn cells(&mut self, _port: u16, _run: CellRun, _now: Instant) {}
    fn link(&mut self, _port: u16, _up: bool, _now: Instant) {}
    fn handle_timeout(&mut self, now: Instant) {
        if let Self::Source(nic, pdu, next, sent) = self {
            while nic.queued(VC) < 1000 {
                nic.send(VC, pdu.clone(), now);
            }
            *next = now + Duration::from_millis(1);
            *sent = true;
        }
    }
    fn poll_output(&mut self) -> Option<NodeOutput<(), ()>> {
        let Self::Source(_, _, _, sent) = self else {
            return None;
        };
        std::mem::take(sent).then_some(NodeOutput::Touched(0))
    }
    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Source(_, _, next, _) => Some(*next),
            Self::Sink(_) | Self::Switch(_) => None,
        }
    }
    fn output_port(&mut self, port: u16) -> Option<&mut OutputPort> {
        match self {
            Self::Source(nic, ..) | Self::Sink(nic) => Some(nic.output_mut()),
            Self::Switch(fabric) => fabric.output_mut(port),
        }
    }
}

fn nic() -> Box<Nic> {
    let mut nic = Box::new(Nic::new(CellRate::OC3));
    assert!(nic.open(VC, TrafficParams::ubr(0), 0));
    nic
}

/// A switch whose port 0 is the trunk; `out` tells whether cells leave or arrive on the trunk.
fn switch(pairs: u16, out: bool) -> Simple {
    let mut fabric = Fabric::new([0; 16]);
    for _ in 0..=pairs {
        fabric.add_port(CellRate::OC3, PortLimits::SWITCH);
    }
    for pair in 1..=pairs {
        let (near, far) = (
            PortVc::new(pair, VC),
            PortVc::new(0, Vc::new(0, 100 + pair)),
        );
        let (from, to) = if out { (near, far) } else { (far, near) };
        let traffic = TrafficParams::ubr(0);
        let op = FabricOp::Connect {
            from,
            to,
            traffic,
            police: false.into(),
        };
        fabric.apply(op).expect("labels are free");
    }
    Simple::Switch(Box::new(fabric))
}

fn main() {
    let args: Vec<usize> = std::env::args()
        .skip(1)
        .filter_map(|a| a.parse().ok())
        .collect();
    let arg = |index: usize, default| args.get(index).copied().unwrap_or(default);
    let (pairs, octets, millis) = (arg(0, 4) as u16, arg(1, 9188), arg(2, 1000) as u64);
    let mut world: World<Simple> = World::new(1);
    let mut machines = Vec::new();
    let ports = pairs + 1;
    let switches = [world.add_switch("s1", ports), world.add_switch("s2", ports)];
    let link = LinkConfig::new(Duration::from_micros(5));
    let end = |node: NodeId, port| LinkEnd { node, port };
    world.connect("trunk", [end(switches[0], 0), end(switches[1], 0)], link);
    machines.push((switches[0], switch(pairs, true)));
    machines.push((switches[1], switch(pairs, false)));
    for pair in 1..=pairs {
        for (side, name) in ["from", "to"].into_iter().enumerate() {
            let host = world.add_host(&format!("{name}{pair}"));
            world.connect(
                &format!("{name}{pair}"),
                [end(host, 0), end(switches[side], pair)],
                link,
            );
            let pdu = Pdu::new(vec![0; octets]);
            let source = Simple::Source(nic(), pdu, Instant::ZERO, false);
            machines.push((
                host,
                if side == 0 {
                    source
                } else {
                    Simple::Sink(nic())
                },
            ));
        }
    }
    world.power_on_all(machines, &mut ());
    #[expect(
        clippy::disallowed_types,
        reason = "measures the processor, not the run"
    )]
    let begin = std::time::Instant::now();
    world.run_until(Instant::from_millis(millis), &mut ());
    let seconds = begin.elapsed().as_secs_f64();
    let links = usize::from(2 * pairs + 1);
    let cells: u64 = (0..links)
        .flat_map(|link| world.link_counters(LinkId(link)))
        .map(|c| c.sent)
        .sum();
    println!(
        "{cells} cells over {links} links, {} events, {seconds:.2} s: {:.2} Mcell/s, {:.1} x real time",
        world.events(),
        cells as f64 / seconds / 1e6,
        millis as f64 / 1e3 / seconds,
    );
}
