//! Trains against cells one by one: rings of switches with crossing flows, random contracts, errors, cuts and restarts.

use super::*;
use aerostat_lab::model::LineChange;
use aerostat_lab::plant::Driver as _;
use aerostat_node::atm::{
    DataUnit, Discipline, Framing, NicConfig, PathConfig, RateQueue, Shaping, Tuning,
};
use aerostat_node::ip::books::Place;

/// A flow: source switch, switches to cross clockwise, contract, PDUs (gap in µs, octets), whether it is policed, and
/// whether each switch on its way has the host there as a further leaf.
type Flow = (usize, usize, u8, Vec<(u64, usize)>, bool, bool);

/// The ports of the switches: discipline, whether a path is shaped and its tolerance in µs, and whether thresholds mark
/// and discard single cells.
type Ports = (u8, Option<u64>, bool);

/// A ring: of each switch the rate and the delay (ns) of the link to the next one, and whether this link has errors.
type Ring = Vec<(u8, u64, bool)>;

/// Event at a time in µs: a link of the ring is cut or restored, a switch restarts, or nothing happens.
type Step = (u64, u8, usize);

/// Everything that an observer hears.
#[derive(Default)]
struct Heard {
    events: Vec<(Instant, NodeId, (Vc, usize))>,
    lost: Vec<(Instant, String, usize)>,
}

impl Observer<(Vc, usize)> for Heard {
    fn event(&mut self, node: NodeId, event: (Vc, usize), now: Instant) {
        self.events.push((now, node, event));
    }
    fn lost(&mut self, place: Place, unit: DataUnit<'_>, at: Instant) {
        let place = format!("{place:?}");
        self.lost.push((at, place, unit.octets.len()));
    }
}

fn contract(kind: u8) -> TrafficParams {
    match kind % 5 {
        0 | 1 => TrafficParams::ubr(0),
        2 => TrafficParams::cbr(30_000, 0),
        3 => TrafficParams {
            min_pcr: 40_000,
            ..TrafficParams::ubr(0)
        },
        _ => TrafficParams {
            max_pcr: Some(70_000),
            ..TrafficParams::ubr(0)
        },
    }
}

fn rate(kind: u8) -> CellRate {
    let all = [
        CellRate::OC3,
        CellRate::DS3,
        CellRate::ATM25,
        CellRate::OC12,
    ];
    all[usize::from(kind) % all.len()]
}

/// The label of a flow at each of its links. Half of the flows are in the path that some ports shape.
fn channel(flow: usize) -> Vc {
    Vc::new(7 * (flow as u16 % 2), 50 + flow as u16)
}

/// The shaped path, with this tolerance in µs.
fn path_of(cdvt: u64) -> PathConfig {
    PathConfig {
        vpi: 7,
        pcr: 50_000,
        cdvt: Duration::from_micros(cdvt),
    }
}

fn discipline(kind: u8) -> Discipline {
    Discipline::ALL[usize::from(kind) % Discipline::ALL.len()]
}

/// Tuning of a connection's own queue.
fn tuning(kind: u8, marks: bool) -> Tuning {
    let kind = u32::from(kind);
    Tuning {
        weight: 1 + (kind / 5 % 7) as u16,
        shaped: kind.is_multiple_of(11),
        mark: marks.then_some(1 + kind % 40),
        early: marks.then_some(1 + kind % 60),
        ..Tuning::DEFAULT
    }
}

fn host_of(at: usize, flows: &[Flow], size: usize, shaped: Option<u64>) -> Script {
    let open = flows.iter().enumerate().filter_map(|(number, flow)| {
        let sends = flow.0 == at;
        let receives = (flow.0 + flow.1) % size == at || flow.5 && !sends;
        let none = TrafficParams::none();
        let traffic = if sends { contract(flow.2) } else { none };
        (sends || receives).then_some((channel(number), traffic))
    });
    // Half of the hosts shape the path as well, and the others have most of their flows in a rate queue.
    let queue = shaped.filter(|_| !at.is_multiple_of(2)).map(path_of);
    let queued = (0..flows.len()).filter(|number| queue.is_some() && number % 3 > 0);
    let config = NicConfig {
        rate_queues: queue
            .map(|PathConfig { pcr, cdvt, .. }| RateQueue {
                name: "fast".into(),
                pcr,
                cdvt,
            })
            .into_iter()
            .collect(),
        shapes_of: queued
            .map(|number| (channel(number), Shaping::RateQueue(0)))
            .collect(),
        paths: shaped
            .filter(|_| at.is_multiple_of(2))
            .map(path_of)
            .into_iter()
            .collect(),
        ..NicConfig::default()
    };
    let mut script = Script::host_with(CellRate::OC3, config, &open.collect::<Vec<_>>());
    let mut plan = Vec::new();
    for (number, flow) in flows.iter().enumerate().filter(|(_, flow)| flow.0 == at) {
        let mut when = 0;
        for (gap, len) in &flow.3 {
            when += gap;
            plan.push((super::at(when), channel(number), *len));
        }
    }
    plan.sort_by_key(|step| step.0);
    script.plan = plan.into();
    script
}

/// Port 0 leads to the next switch, port 1 to the one before, port 2 to the host.
fn switch_of(at: usize, flows: &[Flow], ring: &Ring, ports: Ports) -> Script {
    let size = ring.len();
    let mut fabric = Fabric::new([1; 16]);
    let (kind, shaped, marks) = ports;
    let mut buffer = Limits::of(120);
    if marks {
        (buffer.mark, buffer.early) = (70, 100);
    }
    let tight = PortLimits {
        best_effort: buffer,
        best_effort_vc: Limits::of(80),
        ..PortLimits::SWITCH
    };
    let before = ring[(at + size - 1) % size].0;
    for rate in [rate(ring[at].0), rate(before), CellRate::OC3] {
        let port = fabric.add_port(rate, tight);
        let output = fabric.output_mut(port).unwrap();
        output.set_discipline(discipline(kind));
        if let Some(cdvt) = shaped.filter(|_| port != 1) {
            assert!(output.shape_path(path_of(cdvt)));
        }
    }
    for (number, flow) in flows.iter().enumerate() {
        let hop = (at + size - flow.0) % size;
        if hop > flow.1 {
            continue;
        }
        let label = |port| PortVc::new(port, channel(number));
        let from = label(if hop == 0 { 2 } else { 1 });
        let to = label(if hop == flow.1 { 2 } else { 0 });
        let traffic = contract(flow.2);
        let police = flow.4;
        let connect = FabricOp::Connect {
            from,
            to,
            traffic,
            police: police.into(),
        };
        fabric.apply(connect).unwrap();
        fabric.tune(from, to, &tuning(flow.2, marks));
        if flow.5 && hop > 0 && hop < flow.1 {
            let to = label(2);
            fabric.apply(FabricOp::AddLeaf { from, to }).unwrap();
        }
    }
    Script::of(Plane::Switch(Box::new(fabric), RunReassembler::new(0)))
}

/// The cells that a world has moved, in the words of every counter that a result can show.
fn story(ring: &Ring, flows: &[Flow], steps: &[Step], ports: Ports, by_cell: bool) -> Vec<String> {
    let mut world: World<Script> = World::new(5);
    if by_cell {
        world.cell_by_cell();
        world.every_departure(true);
    }
    world.keep_books();
    let size = ring.len();
    let name = |what: &str, i: usize| format!("{what}{i}");
    let hosts: Vec<_> = (0..size).map(|i| world.add_host(&name("h", i))).collect();
    let switches: Vec<_> = (0..size)
        .map(|i| world.add_switch(&name("s", i), 3))
        .collect();
    let mut links = Vec::new();
    for (i, (_, delay, errors)) in ring.iter().enumerate() {
        let loss = if *errors { 0.002 } else { 0.0 };
        // Some links carry frames.
        let framing = (!errors && delay % 3 == 0).then(|| Framing::new(100_000_000, 5));
        let errors = Errors {
            loss,
            bits: loss / 100.0,
            ..Errors::NONE
        };
        let mut config = LinkConfig::with_errors(Duration::from_nanos(*delay), errors);
        config.framing = framing;
        let ends = [end(switches[i], 0), end(switches[(i + 1) % size], 1)];
        links.push(world.connect(&name("trunk", i), ends, config));
    }
    for i in 0..size {
        let ends = [end(hosts[i], 0), end(switches[i], 2)];
        let delay = Duration::from_nanos(ring[i].1 / 3);
        links.push(world.connect(&name("l", i), ends, LinkConfig::new(delay)));
    }
    let mut heard = Heard::default();
    let machines = (0..size).map(|i| (switches[i], switch_of(i, flows, ring, ports)));
    let stations = (0..size).map(|i| (hosts[i], host_of(i, flows, size, ports.1)));
    world.power_on_all(machines.chain(stations).collect::<Vec<_>>(), &mut heard);
    for (time, what, which) in steps {
        world.run_until(at(*time), &mut heard);
        let which = which % size;
        match what % 6 {
            0 => world.set_cut(links[which], true, &mut heard),
            1 => world.set_cut(links[which], false, &mut heard),
            2 => {
                let switch = switch_of(which, flows, ring, ports);
                world.power_on(switches[which], switch, &mut heard);
            }
            3 => {
                // Longer and shorter than what it was, in one direction.
                let change = LineChange {
                    delay: Some(Duration::from_nanos(time * 7919 % 60_000)),
                    ..LineChange::default()
                };
                let changes = [change, LineChange::default()];
                world.change_link(links[which], &changes, &mut heard);
            }
            4 => {
                let rates = [time * 7919 % 400_000, time * 104_729 % 90_000];
                let changes = rates.map(|cells| LineChange {
                    rate: Some(CellRate::of_cells(1000 + cells as u32)),
                    ..LineChange::default()
                });
                world.change_link(links[which], &changes, &mut heard);
            }
            5 => {
                let change = LineChange {
                    loss: Some(if time % 2 == 0 { 0.01 } else { 0.0 }),
                    blocks: Some(if time % 3 == 0 { 0.2 } else { 0.0 }),
                    block: Some(Duration::from_micros(100)),
                    ..LineChange::default()
                };
                world.change_link(links[which], &[change, LineChange::default()], &mut heard);
            }
            _ => {}
        }
    }
    world.run_until(at(40_000), &mut heard);
    world.observed(&mut heard).settle_books();
    let mut all = Vec::new();
    heard.lost.sort();
    all.extend(heard.lost.iter().map(|lost| format!("{lost:?}")));
    all.extend(heard.events.iter().map(|event| format!("{event:?}")));
    for link in &links {
        all.push(format!("{:?}", world.link_counters(*link)));
        all.push(format!("{:?}", world.on_the_way(*link)));
    }
    for switch in &switches {
        let fabric = world.node(*switch).unwrap().fabric();
        all.push(format!("{:?}", fabric.passage()));
        all.extend(fabric.connections().map(|c| format!("{c:?}")));
        for port in 0..3 {
            let output = fabric.output(port).unwrap();
            let views: Vec<_> = output.views().collect();
            let paths: Vec<_> = output.paths().collect();
            let input = fabric.input_counters(port);
            all.push(format!("{input:?} {views:?} {paths:?}"));
        }
    }
    for host in &hosts {
        let nic = world.node(*host).unwrap().nic();
        all.push(format!("{:?} {:?}", nic.counters, nic.pdus_bad));
        for vc in nic.vcs() {
            all.push(format!("{vc:?} {:?}", nic.transfer(vc.vc)));
        }
    }
    all
}

fn cases() -> u32 {
    let wanted = std::env::var("AEROSTAT_TRAINS").ok();
    wanted.and_then(|cases| cases.parse().ok()).unwrap_or(32)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]
    /// Flows that cross in a ring of switches come out the same by trains as cell by cell: each arrival, counter,
    /// delay and loss, whatever the rates, delays (0 too), contracts, errors, cuts and restarts, and the queues,
    /// disciplines, thresholds and shaped paths of the ports.
    #[test]
    fn trains_equal_cells_in_a_ring(
        ring in proptest::collection::vec((any::<u8>(), prop_oneof![Just(0_u64), 1_u64..4000, Just(700_000)], prop::bool::weighted(0.15)), 3..5),
        flows in proptest::collection::vec((
            0_usize..4, 1_usize..3, any::<u8>(),
            proptest::collection::vec((0_u64..600, 1_usize..4_000), 0..20),
            prop::bool::weighted(0.2), prop::bool::weighted(0.2),
        ), 1..7),
        ports in (any::<u8>(), proptest::option::of(prop_oneof![Just(0_u64), 1_u64..300]), any::<bool>()),
        mut steps in proptest::collection::vec((0_u64..9_000, any::<u8>(), 0_usize..4), 0..8),
    ) {
        let size = ring.len();
        let mut flows = flows;
        flows.iter_mut().for_each(|flow| flow.0 %= size);
        steps.sort_unstable();
        let cells = story(&ring, &flows, &steps, ports, true);
        let trains = story(&ring, &flows, &steps, ports, false);
        for (one, other) in trains.iter().zip(&cells) {
            prop_assert_eq!(one, other);
        }
        prop_assert_eq!(trains.len(), cells.len());
    }
}
