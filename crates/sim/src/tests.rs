//! Worlds of scripted nodes: times, rates, losses, faults and determinism.

mod labs;
mod trains;

use crate::*;
use aerostat_lab::model::Errors;
use aerostat_node::atm::fabric::Switched;
use aerostat_node::atm::{
    Alone, CellCounters, CellRate, CellRun, Fabric, FabricOp, Limits, Nic, NicConfig, NicEvent,
    OutputPort, Pdu, PortLimits, PortVc, QueueConfig, RunReassembler, Through,
};
use aerostat_proto::{Duration, Instant};
use aerostat_wire::aal5::cells_for;
use aerostat_wire::{TrafficParams, Vc};
use proptest::prelude::*;
use std::collections::VecDeque;

/// A host or a switch without protocols: it sends according to its plan and keeps what it receives.
struct Script {
    plane: Plane,
    /// PDUs to send: time, VC, length. In order of time.
    plan: VecDeque<(Instant, Vc, usize)>,
    received: Vec<(Instant, Vc, Vec<u8>)>,
    links: Vec<(Instant, bool)>,
    wakes: usize,
    sent: u8,
    out: VecDeque<NodeOutput<(Vc, usize), ()>>,
}

enum Plane {
    Host(Box<Nic>),
    Switch(Box<Fabric>, RunReassembler),
}

impl Script {
    fn of(plane: Plane) -> Self {
        Self {
            plane,
            plan: VecDeque::new(),
            received: Vec::new(),
            links: Vec::new(),
            wakes: 0,
            sent: 0,
            out: VecDeque::new(),
        }
    }
    fn host(rate: CellRate, open: &[(Vc, TrafficParams)]) -> Self {
        Self::host_with(rate, NicConfig::default(), open)
    }
    fn host_with(rate: CellRate, config: NicConfig, open: &[(Vc, TrafficParams)]) -> Self {
        let mut nic = Nic::new(rate);
        nic.configure(config);
        for (vc, traffic) in open {
            assert!(nic.open(*vc, *traffic, 0));
        }
        Self::of(Plane::Host(Box::new(nic)))
    }
    fn switch(rates: &[CellRate], connect: &[FabricOp]) -> Self {
        let mut fabric = Fabric::new([1; 16]);
        for rate in rates {
            let port = fabric.add_port(*rate, PortLimits::SWITCH);
            let at = PortVc::new(port, Vc::SIGNALLING);
            fabric.open_local(at, TrafficParams::ubr(0)).unwrap();
        }
        for op in connect {
            fabric.apply(*op).unwrap();
        }
        Self::of(Plane::Switch(Box::new(fabric), RunReassembler::new(0)))
    }
    fn nic(&self) -> &Nic {
        match &self.plane {
            Plane::Host(nic) => nic,
            Plane::Switch(..) => panic!("a switch has no adapter"),
        }
    }
    fn fabric(&self) -> &Fabric {
        match &self.plane {
            Plane::Switch(fabric, _) => fabric,
            Plane::Host(_) => panic!("a host has no fabric"),
        }
    }
    fn keep(&mut self, vc: Vc, pdu: Pdu, now: Instant) {
        self.out.push_back(NodeOutput::Event((vc, pdu.sdu().len())));
        self.received.push((now, vc, pdu.into_sdu()));
    }
}

fn contents(len: usize, number: u8) -> Vec<u8> {
    (0..len)
        .map(|i| (i as u8).wrapping_mul(7) ^ number)
        .collect()
}

impl Node for Script {
    type Event = (Vc, usize);
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
        match &mut self.plane {
            Plane::Host(nic) if run.is_user() && !run.ends_pdu() => {
                nic.receive(run, now);
                None
            }
            Plane::Host(_) => Some(run),
            Plane::Switch(fabric, _) if fabric.is_local(PortVc::new(port, run.vc)) => Some(run),
            Plane::Switch(fabric, _) => {
                fabric.receive(port, run, now, |port| touched.push(port));
                None
            }
        }
    }
    fn through(&self, port: u16, vc: Vc) -> Result<Through, Alone> {
        match &self.plane {
            Plane::Host(_) => Err(Alone::Local),
            Plane::Switch(fabric, _) => fabric.through(PortVc::new(port, vc)),
        }
    }
    fn pass(&mut self, port: u16, connection: u32, cells: u64) {
        if let Plane::Switch(fabric, _) = &mut self.plane {
            fabric.pass(port, connection, cells);
        }
    }
    fn cells(&mut self, port: u16, run: CellRun, now: Instant) {
        let vc = run.vc;
        let sdu = match &mut self.plane {
            Plane::Host(nic) => match nic.receive(run, now) {
                NicEvent::Sdu { sdu, .. } => Some(Ok(sdu)),
                _ => None,
            },
            Plane::Switch(fabric, receiver) => match fabric.receive(port, run, now, |_| {}) {
                Switched::Local(run) => receiver.push(run),
                Switched::Queued | Switched::Dropped(_) => None,
            },
        };
        if let Some(Ok(sdu)) = sdu {
            self.keep(vc, sdu.pdu, now);
        }
    }
    fn link(&mut self, port: u16, up: bool, now: Instant) {
        match &mut self.plane {
            Plane::Host(nic) => nic.set_link(up),
            Plane::Switch(fabric, _) => fabric.set_link(port, up),
        }
        self.links.push((now, up));
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.wakes += 1;
        while let Some((_, vc, len)) = self.plan.pop_front_if(|step| step.0 <= now) {
            let pdu = Pdu::new(contents(len, self.sent));
            self.sent = self.sent.wrapping_add(1);
            match &mut self.plane {
                Plane::Host(nic) => nic.send(vc, pdu, now),
                Plane::Switch(fabric, _) => fabric.send_local(PortVc::new(0, vc), pdu, now),
            };
            self.out.push_back(NodeOutput::Touched(0));
        }
    }
    fn poll_output(&mut self) -> Option<NodeOutput<(Vc, usize), ()>> {
        self.out.pop_front()
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.plan.front().map(|step| step.0)
    }
    fn output_port(&mut self, port: u16) -> Option<&mut OutputPort> {
        match &mut self.plane {
            Plane::Host(nic) => Some(nic.output_mut()),
            Plane::Switch(fabric, _) => fabric.output_mut(port),
        }
    }
}

const DELAY: Duration = Duration::from_micros(5);
const A: NodeId = NodeId(0);
const B: NodeId = NodeId(1);
const SWITCH: NodeId = NodeId(2);

fn at(us: u64) -> Instant {
    Instant::from_nanos(us * 1000)
}

fn end(node: NodeId, port: u16) -> LinkEnd {
    LinkEnd { node, port }
}

/// Hosts a and b on one switch; VC 100 of a is VC 200 of b, in both directions.
/// A link with random errors of cells and bits.
fn errors(loss: f64, bits: f64) -> LinkConfig {
    let errors = Errors {
        loss,
        bits,
        ..Errors::NONE
    };
    LinkConfig::with_errors(DELAY, errors)
}

fn pair(seed: u64, rate: CellRate, link: LinkConfig) -> (World<Script>, Script, Script, Script) {
    let mut world = World::new(seed);
    assert_eq!(world.add_host("a"), A);
    assert_eq!(world.add_host("b"), B);
    assert_eq!(world.add_switch("sw", 2), SWITCH);
    world.connect("a-sw", [end(A, 0), end(SWITCH, 0)], link);
    world.connect("b-sw", [end(B, 0), end(SWITCH, 1)], link);
    let traffic = TrafficParams::ubr(0);
    let (pa, pb) = (
        PortVc::new(0, Vc::new(0, 100)),
        PortVc::new(1, Vc::new(0, 200)),
    );
    let connect = |from, to| FabricOp::Connect {
        from,
        to,
        traffic,
        police: false.into(),
    };
    let host = |vc| Script::host(rate, &[(vc, traffic)]);
    let switch = Script::switch(&[rate; 2], &[connect(pa, pb), connect(pb, pa)]);
    (world, host(pa.vc), host(pb.vc), switch)
}

fn received_by_b(world: &World<Script>) -> aerostat_wire::aal5::ReassemblyCounters {
    let nic = world.node(B).unwrap().nic();
    nic.vcs().find(|vc| vc.vc.vci == 200).unwrap().received
}

fn start(world: &mut World<Script>, a: Script, b: Script, switch: Script) {
    world.power_on_all([(A, a), (B, b), (SWITCH, switch)], &mut ());
}

fn sends(count: u64, gap: Duration, vci: u16, len: usize) -> VecDeque<(Instant, Vc, usize)> {
    (0..count)
        .map(|i| {
            (
                Instant::from_nanos(1 + i * gap.as_nanos() as u64),
                Vc::new(0, vci),
                len,
            )
        })
        .collect()
}

#[test]
fn one_cell_takes_two_cell_times_and_two_delays() {
    let (mut world, mut a, b, switch) = pair(1, CellRate::OC3, LinkConfig::new(DELAY));
    a.plan = sends(1, Duration::ZERO, 100, 40);
    start(&mut world, a, b, switch);
    world.run_until(Instant::from_secs(1), &mut ());
    let got = &world.node(B).unwrap().received;
    // Sent at 1 ns; a cell takes 2831.197 ns, and every arrival is rounded up to a nanosecond.
    let arrival = Instant::from_nanos(1 + 2832 + 5000 + 2832 + 5000);
    assert_eq!(got, &[(arrival, Vc::new(0, 200), contents(40, 0))]);
    assert_eq!(world.node(A).unwrap().wakes, 1);
    assert_eq!(world.node(B).unwrap().wakes, 0);
    assert_eq!(world.now(), Instant::from_secs(1));
}

#[test]
fn a_timer_due_at_the_instant_of_an_input_fires_then() {
    let (mut world, mut a, b, switch) = pair(1, CellRate::OC3, LinkConfig::new(DELAY));
    let second = Instant::from_secs(1);
    a.plan = VecDeque::from([(second, Vc::new(0, 100), 40)]);
    world.run_until(second, &mut ());
    start(&mut world, a, b, switch);
    assert_eq!(world.node(A).unwrap().wakes, 1);
    world.run_until(Instant::from_secs(2), &mut ());
    assert_eq!(world.node(B).unwrap().received.len(), 1);
}

/// Largest user throughput at OC-3c for SDUs of 9188 octets: 135.10 Mb/s of 9180-octet packets.
/// A PDU takes 192 cells, and an OC-3c link carries 353 207.5 cells/s: 353 207.5 / 192 × 9180 × 8 b/s.
#[test]
fn a_saturated_link_carries_what_the_arithmetic_says() {
    let (mut world, mut a, b, switch) = pair(1, CellRate::OC3, LinkConfig::new(DELAY));
    // One PDU of 192 cells lasts 543.6 us. PDUs are offered a little faster, so that the link is never idle.
    a.plan = sends(400, Duration::from_micros(540), 100, 9188);
    start(&mut world, a, b, switch);
    world.run_until(at(10_000), &mut ());
    let before = world.node(B).unwrap().received.len();
    world.run_until(at(210_000), &mut ());
    let packets = world.node(B).unwrap().received.len() - before;
    let rate = packets as f64 * 9180.0 * 8.0 / 0.2;
    assert!((rate - 135.10e6).abs() < 0.4e6, "{rate}");
    let last = world.node(B).unwrap().received.last().unwrap().0;
    let first = world.node(B).unwrap().received[0].0;
    let total = world.node(B).unwrap().received.len() as u64;
    // There is no drift: each arrival is an exact multiple of 192 cell times after the first.
    let exact = CellRate::OC3.time_of(192 * (total - 1)).as_nanos() as u64;
    assert!((last - first).as_nanos().abs_diff(exact.into()) <= 2);
}

#[test]
fn a_lost_cell_costs_a_pdu_and_is_counted() {
    let link = errors(0.01, 0.0);
    let (mut world, mut a, b, switch) = pair(3, CellRate::OC3, link);
    a.plan = sends(2000, Duration::from_micros(200), 100, 1500);
    start(&mut world, a, b, switch);
    world.run_until(Instant::from_secs(2), &mut ());
    let got = world.node(B).unwrap().received.len();
    // 32 cells over two links with 1 % loss each: (0.99^32)^2 = 52.6 % of the PDUs arrive.
    assert!((970..1130).contains(&got), "{got}");
    for (link, way) in [(LinkId(0), 0), (LinkId(1), 1)] {
        let c = world.link_counters(link)[way];
        assert_eq!(c.sent, c.delivered + c.lost);
        assert!(c.lost > 300);
    }
    let receiver = received_by_b(&world);
    assert_eq!(receiver.sdus, got as u64);
    assert!(receiver.errors() > 700 && receiver.errors() + receiver.sdus <= 2000);
    assert_eq!(receiver.cells, world.link_counters(LinkId(1))[1].delivered);
}

#[test]
fn bit_errors_never_change_an_sdu() {
    let link = errors(0.0, 2e-6);
    let (mut world, mut a, b, switch) = pair(5, CellRate::OC3, link);
    a.plan = sends(2000, Duration::from_micros(200), 100, 1500);
    start(&mut world, a, b, switch);
    world.run_until(Instant::from_secs(2), &mut ());
    let got = &world.node(B).unwrap().received;
    assert!((1850..1990).contains(&got.len()), "{}", got.len());
    let mut numbers = (0..=255_u8).cycle().take(2000);
    for (_, _, sdu) in got {
        assert!(
            numbers.any(|n| *sdu == contents(1500, n)),
            "a damaged or misplaced SDU"
        );
    }
    let receiver = received_by_b(&world);
    assert!(receiver.crc > 10);
    let c = world.link_counters(LinkId(0))[0];
    assert!(c.damaged > 20 && c.corrected > 0);
    assert_eq!(c.sent, c.delivered + c.discarded);
}

#[test]
fn cuts_and_crashes_lose_what_is_on_the_way_and_heal() {
    let (mut world, mut a, b, switch) = pair(1, CellRate::OC3, LinkConfig::new(DELAY));
    a.plan = sends(1000, Duration::from_micros(1000), 100, 1500);
    start(&mut world, a, b, switch);
    world.run_until(at(100_050), &mut ());
    assert_eq!(world.node(B).unwrap().received.len(), 100);
    world.set_cut(LinkId(1), true, &mut ());
    world.run_until(at(200_050), &mut ());
    assert_eq!(world.node(B).unwrap().received.len(), 100);
    world.set_cut(LinkId(1), false, &mut ());
    world.run_until(at(300_500), &mut ());
    // The PDU that was cut off is lost with a CRC error or is never completed; the others are complete.
    assert_eq!(world.node(B).unwrap().received.len(), 200);
    let links = &world.node(B).unwrap().links;
    assert_eq!(links[..], [(at(100_050), false), (at(200_050), true)]);
    world.power_off(B, &mut ());
    assert!(world.node(B).is_none());
    world.run_until(at(400_500), &mut ());
    let again = Script::host(CellRate::OC3, &[(Vc::new(0, 200), TrafficParams::ubr(0))]);
    world.power_on(B, again, &mut ());
    world.run_until(at(500_500), &mut ());
    assert_eq!(world.node(B).unwrap().received.len(), 100);
    // A switch that restarts has lost its connections.
    world.power_off(SWITCH, &mut ());
    let empty = Script::switch(&[CellRate::OC3; 2], &[]);
    world.power_on(SWITCH, empty, &mut ());
    world.run_until(Instant::from_secs(2), &mut ());
    assert_eq!(world.node(B).unwrap().received.len(), 100);
    assert_eq!(
        world.node(SWITCH).unwrap().fabric().connections().count(),
        2
    );
    assert!(world.next_at().is_none());
}

#[test]
fn signalling_reaches_the_switch_and_back() {
    let (mut world, mut a, b, mut switch) = pair(1, CellRate::OC3, LinkConfig::new(DELAY));
    a.plan = VecDeque::from([(at(1), Vc::SIGNALLING, 100)]);
    switch.plan = VecDeque::from([(at(2), Vc::SIGNALLING, 200)]);
    start(&mut world, a, b, switch);
    world.run_until(Instant::from_secs(1), &mut ());
    assert_eq!(world.node(SWITCH).unwrap().received[0].2.len(), 100);
    assert_eq!(world.node(A).unwrap().received[0].2.len(), 200);
}

/// Everything that an experimenter can see of a run.
#[derive(Default)]
struct Log {
    events: Vec<Told>,
    capture: Option<Capture<Vec<u8>>>,
}

impl Observer<(Vc, usize)> for Log {
    fn event(&mut self, node: NodeId, event: (Vc, usize), now: Instant) {
        self.events.push((now, node, event));
    }
    fn packet(&mut self, packet: &Packet<'_>) {
        if let Some(capture) = &mut self.capture {
            capture.packet(packet).unwrap();
        }
    }
}

/// Time, node, and event.
type Told = (Instant, NodeId, (Vc, usize));

fn recorded_run(seed: u64) -> (Vec<Told>, Vec<u8>) {
    let link = errors(0.001, 1e-6);
    let (mut world, mut a, mut b, switch) = pair(seed, CellRate::DS3, link);
    a.plan = sends(300, Duration::from_micros(500), 100, 1500);
    b.plan = sends(300, Duration::from_micros(700), 200, 700);
    let mut capture = Capture::new(Vec::new(), "pair").unwrap();
    for link in [LinkId(0), LinkId(1)] {
        world.tap(link);
        for (end, full) in world.ends(link).into_iter().zip([false, true]) {
            let name = format!("{}.{}", world.name(end.node), end.port);
            capture.add(end, &name, full).unwrap();
        }
    }
    let mut log = Log {
        capture: Some(capture),
        ..Log::default()
    };
    world.power_on_all([(A, a), (B, b), (SWITCH, switch)], &mut log);
    world.run_until(Instant::from_secs(1), &mut log);
    (log.events, log.capture.unwrap().finish().unwrap())
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let first = recorded_run(7);
    let second = recorded_run(7);
    assert!(first == second);
    assert!(first.0.len() > 400 && first.1.len() > 500_000);
    assert!(recorded_run(8).0 != first.0);
}

/// A capture shows the PDUs that a port drops, each once, with the reason.
#[test]
fn dropped_pdus_are_seen_with_their_reason() {
    let (mut world, mut a, b, mut switch) = pair(1, CellRate::OC3, LinkConfig::new(DELAY));
    a.plan = sends(40, Duration::from_micros(1), 100, 1500);
    // The queue towards b is slow and short: the first PDU passes, then frames are discarded.
    let Plane::Switch(fabric, _) = &mut switch.plane else {
        panic!()
    };
    let output = fabric.output_mut(1).unwrap();
    *output = OutputPort::new(
        CellRate::ATM25,
        PortLimits {
            best_effort: Limits::of(60),
            ..PortLimits::SWITCH
        },
    );
    output
        .open(Vc::SIGNALLING, QueueConfig::switch(TrafficParams::ubr(0)))
        .unwrap();
    output
        .open(Vc::new(0, 200), QueueConfig::switch(TrafficParams::ubr(0)))
        .unwrap();
    world.tap(LinkId(1));
    #[derive(Default)]
    struct Seen(Vec<(bool, u8)>);
    impl Observer<(Vc, usize)> for Seen {
        fn packet(&mut self, packet: &Packet<'_>) {
            if packet.end.node == SWITCH {
                self.0.push((packet.dropped.is_some(), packet.pdu.sdu()[0]));
            }
        }
    }
    let mut seen = Seen::default();
    world.power_on_all([(A, a), (B, b), (SWITCH, switch)], &mut seen);
    world.run_until(Instant::from_secs(1), &mut seen);
    let mut numbers: Vec<u8> = seen.0.iter().map(|s| s.1).collect();
    numbers.sort_unstable();
    assert_eq!(
        numbers,
        (0..40).collect::<Vec<_>>(),
        "each PDU once: sent or dropped"
    );
    let passed = seen.0.iter().filter(|s| !s.0).count();
    assert_eq!(passed, world.node(B).unwrap().received.len());
    assert!((2..20).contains(&passed), "{passed}");
}

proptest! {
    /// Two hosts send to a third through one port: every cell and every SDU is accounted for, and each sender's SDUs
    /// arrive complete and in order.
    #[test]
    fn nothing_is_lost_below_the_limits(
        one in proptest::collection::vec((1_u64..2_000, 1_usize..3_000), 1..25),
        two in proptest::collection::vec((1_u64..2_000, 1_usize..3_000), 1..25),
    ) {
        let mut world: World<Script> = World::new(1);
        let rates = [CellRate::OC3, CellRate::OC3, CellRate::DS3];
        let switch = world.add_switch("sw", 3);
        let mut hosts = Vec::new();
        for port in 0..3_u16 {
            let host = world.add_host(&format!("h{port}"));
            let ends = [end(host, 0), end(switch, port)];
            world.connect(&format!("l{port}"), ends, LinkConfig::new(DELAY));
            hosts.push(host);
        }
        let traffic = TrafficParams::ubr(0);
        let mut connect = Vec::new();
        let mut machines = Vec::new();
        for (i, plan) in [&one, &two].into_iter().enumerate() {
            let (near, far) = (Vc::new(0, 50), Vc::new(0, 60 + i as u16));
            connect.push(FabricOp::Connect { from: PortVc::new(i as u16, near), to: PortVc::new(2, far), traffic, police: false.into() });
            let mut when = 0;
            let plan = plan.iter().map(|(gap, len)| { when += gap; (at(when), near, *len) }).collect();
            machines.push((hosts[i], Script { plan, ..Script::host(CellRate::OC3, &[(near, traffic)]) }));
        }
        let open = vec![(Vc::new(0, 60), TrafficParams::none()), (Vc::new(0, 61), TrafficParams::none())];
        machines.push((hosts[2], Script::host(CellRate::DS3, &open)));
        machines.push((switch, Script::switch(&rates, &connect)));
        world.power_on_all(machines, &mut ());
        world.run_until(Instant::from_secs(10), &mut ());
        let received = &world.node(hosts[2]).unwrap().received;
        for (i, plan) in [&one, &two].into_iter().enumerate() {
            let got: Vec<_> = received.iter().filter(|r| r.1.vci == 60 + i as u16).map(|r| r.2.clone()).collect();
            let want: Vec<_> = plan.iter().zip(0..).map(|((_, len), n)| contents(*len, n)).collect();
            prop_assert_eq!(got, want);
        }
        let cells: usize = one.iter().chain(&two).map(|(_, len)| cells_for(*len)).sum();
        prop_assert_eq!(world.link_counters(LinkId(2))[1].delivered, cells as u64);
        prop_assert_eq!(world.node(switch).unwrap().fabric().output(2).unwrap().totals().dropped.total(), 0);
    }
}

/// The result of [`busy_world`]: SDUs received by each host with their times, then counters.
type Outcome = (
    Vec<Vec<(Instant, Vc, Vec<u8>)>>,
    Vec<[LinkCounters; 2]>,
    Vec<CellCounters>,
);

/// Four hosts on two switches: shaped, guaranteed, multipoint and greedy traffic into short queues over a trunk with
/// errors. `steps` are the times at which the run is interrupted.
fn busy_world(
    plans: &[Vec<(u64, usize)>],
    loss: f64,
    cell_by_cell: bool,
    steps: &[u64],
) -> Outcome {
    let mut world: World<Script> = World::new(9);
    world.every_departure(cell_by_cell);
    if cell_by_cell {
        world.cell_by_cell();
    }
    let hosts: Vec<NodeId> = (0..4).map(|i| world.add_host(&format!("h{i}"))).collect();
    let switches = [world.add_switch("s0", 3), world.add_switch("s1", 3)];
    let clean = LinkConfig::new(Duration::from_nanos(700));
    let trunk = errors(loss, loss / 100.0);
    let mut links = vec![world.connect("trunk", [end(switches[0], 0), end(switches[1], 0)], trunk)];
    for (i, host) in hosts.iter().enumerate() {
        let far = end(switches[i / 2], 1 + i as u16 % 2);
        links.push(world.connect(&format!("l{i}"), [end(*host, 0), far], clean));
    }
    let cbr = TrafficParams::cbr(40_000, 0);
    let slow = TrafficParams {
        max_pcr: Some(90_000),
        ..TrafficParams::ubr(0)
    };
    let ubr = TrafficParams::ubr(0);
    let vc = |vci| Vc::new(0, vci);
    let connect = |from, to, traffic| FabricOp::Connect {
        from,
        to,
        traffic,
        police: true.into(),
    };
    // h0: VC 50 (CBR) to h2, VC 51 (UBR) to h2 and h3; h1: VC 50 (shaped UBR) to h3, VC 51 to h2.
    let first = [
        connect(PortVc::new(1, vc(50)), PortVc::new(0, vc(60)), cbr),
        connect(PortVc::new(1, vc(51)), PortVc::new(0, vc(61)), ubr),
        connect(PortVc::new(2, vc(50)), PortVc::new(0, vc(62)), slow),
        connect(PortVc::new(2, vc(51)), PortVc::new(0, vc(63)), ubr),
    ];
    let second = [
        connect(PortVc::new(0, vc(60)), PortVc::new(1, vc(70)), cbr),
        connect(PortVc::new(0, vc(61)), PortVc::new(1, vc(71)), ubr),
        FabricOp::AddLeaf {
            from: PortVc::new(0, vc(61)),
            to: PortVc::new(2, vc(71)),
        },
        connect(PortVc::new(0, vc(62)), PortVc::new(2, vc(72)), slow),
        connect(PortVc::new(0, vc(63)), PortVc::new(1, vc(73)), ubr),
    ];
    let rates = [CellRate::DS3, CellRate::OC3, CellRate::OC3];
    let tight = PortLimits {
        best_effort: Limits::of(150),
        best_effort_vc: Limits::of(100),
        ..PortLimits::SWITCH
    };
    let machine = |ops: &[FabricOp]| {
        let mut script = Script::switch(&[], &[]);
        let Plane::Switch(fabric, _) = &mut script.plane else {
            panic!()
        };
        for rate in rates {
            fabric.add_port(rate, tight);
        }
        for op in ops {
            fabric.apply(*op).unwrap();
        }
        script
    };
    let mut machines = vec![
        (switches[0], machine(&first)),
        (switches[1], machine(&second)),
    ];
    for (i, contracts) in [[cbr, ubr], [slow, ubr]].into_iter().enumerate() {
        let mut script = Script::host(
            CellRate::OC3,
            &[(vc(50), contracts[0]), (vc(51), contracts[1])],
        );
        let mut when = [0, 0];
        let mut plan = Vec::new();
        for which in 0..2 {
            for (gap, len) in &plans[2 * i + which] {
                when[which] += gap;
                plan.push((at(when[which]), vc(50 + which as u16), *len));
            }
        }
        plan.sort_by_key(|step| step.0);
        script.plan = plan.into();
        machines.push((hosts[i], script));
    }
    for host in &hosts[2..] {
        let open: Vec<_> = (70..74)
            .map(|vci| (vc(vci), TrafficParams::none()))
            .collect();
        machines.push((*host, Script::host(CellRate::OC3, &open)));
    }
    world.power_on_all(machines, &mut ());
    for step in steps.iter().copied().chain([100_000]) {
        world.run_until(at(step), &mut ());
    }
    let received = hosts
        .iter()
        .map(|h| world.node(*h).unwrap().received.clone())
        .collect();
    let counters = links
        .iter()
        .map(|link| world.link_counters(*link))
        .collect();
    let totals = switches.iter().flat_map(|s| {
        let fabric = world.node(*s).unwrap().fabric();
        (0..3).map(|port| fabric.output(port).unwrap().totals())
    });
    (received, counters, totals.collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    /// A run that takes departures late equals one with an event per departure, to the nanosecond and to the cell.
    /// Where a run is interrupted makes no difference, either.
    #[test]
    fn late_departures_change_nothing(
        plans in proptest::collection::vec(proptest::collection::vec((0_u64..900, 1_usize..4_000), 0..25), 4),
        loss in prop_oneof![Just(0.0), Just(0.003)],
        mut steps in proptest::collection::vec(0_u64..20_000, 0..20),
    ) {
        steps.sort_unstable();
        let exact = busy_world(&plans, loss, true, &[]);
        prop_assert_eq!(&busy_world(&plans, loss, false, &[]), &exact);
        prop_assert_eq!(&busy_world(&plans, loss, false, &steps), &exact);
    }
}
