//! The state of cells at the end of a run, in virtual or real time: connections end to end, queues, policers and links.
//!
//! A connection is followed from its sending adapter through the tables of the switches to each adapter that it leads
//! to, and the counters on the way are combined. For each direction, at all times:
//!
//! ```text
//! offered = refused + waiting + sent              at the sender's adapter
//! sent    = delivered + lost + under way          between the adapters; under way: in queues of switches or on links
//! ```
//!
//! The connections are those that exist at the end. A connection with a missing part, because it is being released,
//! ends where the part is missing. Parts of a connection may have counted for different times: a leaf may be added to a
//! point-to-multipoint connection that has already sent, or a node may restart under a permanent VC. A [`Circuit`] is
//! about the cells that all its parts have counted; `walk` describes how they are found.

mod walk;

use crate::model::{Lab, LinkEnd, LinkId, NodeId, NodeKind};
use crate::plant::LineNow;
use aerostat_node::atm::fabric::ConnectionView;
use aerostat_node::atm::nic::NicVcView;
use aerostat_node::atm::{CellCounters, CellRate, DropReason, OutputPort, PortVc, UpcCounters};
use aerostat_node::distribution::Distribution;
use aerostat_node::host::{Station, VcUser};
use aerostat_node::switch::Switch;
use aerostat_proto::{Duration, Instant};
use aerostat_wire::{TrafficParams, Vc};
use std::collections::BTreeMap;
use walk::Walk;

/// The fate of the cells of one direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Cells sent onto the link.
    pub sent: u64,
    /// Cells handed to the far end.
    pub delivered: u64,
    /// Cells lost at random, one by one or in blocks.
    pub lost: u64,
    /// Of these, cells of blocks that were lost whole.
    pub in_blocks: u64,
    /// Cells with wrong bits.
    pub damaged: u64,
    /// Of these, cells whose header was corrected.
    pub corrected: u64,
    /// Of these, cells discarded by header error control.
    pub discarded: u64,
    /// Cells that were on the link, or were sent, while it was down.
    pub down: u64,
    /// Ethernet frames with these cells; 0 if the line carries cells one by one.
    pub frames: u64,
}

/// A running network in the driver's view. Nodes, ports and links have the numbers of the lab.
pub trait Network {
    /// The time.
    fn time(&self) -> Instant;
    /// An end system; `None` if the node is off or of another kind.
    fn station(&self, node: NodeId) -> Option<&Station>;
    /// A switch; `None` if the node is off or of another kind.
    fn switch(&self, node: NodeId) -> Option<&Switch>;
    /// Cells on a link, by their VC there: from its first end to its second, and back.
    fn cells_on(&self, link: LinkId) -> [BTreeMap<Vc, u64>; 2];
    /// When a node was last switched on; its counters start then.
    fn on_since(&self, node: NodeId) -> Instant;
    /// Time at which a node was switched off; `None` if it is on, or never was.
    fn off_since(&self, node: NodeId) -> Option<Instant>;
    /// Counters of a link: from its first end to its second, and back.
    fn counters_of(&self, link: LinkId) -> [LinkCounters; 2];
    /// Its values now: from its first end to its second, and back.
    fn link_now(&self, link: LinkId) -> [LineNow; 2];
}

/// A VC at one end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The node.
    pub node: NodeId,
    /// Its port.
    pub port: u16,
    /// The VC on the link there.
    pub vc: Vc,
}

/// Cells lost, with place and reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The node that dropped them, or that sent them into the link on which they were lost.
    pub node: NodeId,
    /// Port of the node: that of the queue, of the link, or of the policer.
    pub port: u16,
    /// The reason; `None` if the link lost them.
    pub reason: Option<DropReason>,
    /// Cells.
    pub cells: u64,
}

/// One direction of a connection, from the adapter that sends to one adapter that receives.
#[derive(Clone, Debug)]
pub struct Circuit {
    /// The sending adapter.
    pub from: Place,
    /// The receiving end: an adapter, the control plane of a switch, or the far end of a link out of the lab. `None` if
    /// the connection ends before such an end.
    pub to: Option<Place>,
    /// Service class: `cbr`, `rt-vbr`, `nrt-vbr`, `abr` or `ubr`; `control` for signalling and ILMI.
    pub class: &'static str,
    /// The user at the sender; `None` for signalling and ILMI.
    pub user: Option<VcUser>,
    /// Switches on the way.
    pub switches: usize,
    /// Cells that were given to the sending adapter.
    pub offered: u64,
    /// Of these, cells that the adapter's queue had no room for, or that were dropped because its link went down.
    pub refused: u64,
    /// Cells that wait in the sending adapter.
    pub waiting: u64,
    /// Cells that left the sending adapter.
    pub sent: u64,
    /// Cells that the receiving end accepted.
    pub delivered: u64,
    /// Cells lost after they left the sending adapter, by place.
    pub lost: Vec<Loss>,
    /// Cells in queues of switches and on links.
    pub under_way: u64,
    /// SDUs that the receiving adapter reassembled.
    pub sdus: u64,
    /// PDUs that the receiving adapter discarded.
    pub bad_pdus: u64,
    /// Delivered cells of no SDU that was reassembled; `None` if the connection does not end at an adapter.
    pub wasted: Option<u64>,
    /// Transfer delays of the last cells of PDUs: from the departure of the first bit at the sending adapter to the
    /// arrival of the last bit at the receiving one (I.356 §6.1, cell exit to cell entry).
    pub transfer: Distribution,
}

impl Circuit {
    /// Cells lost.
    #[must_use]
    pub fn lost_cells(&self) -> u64 {
        self.lost.iter().map(|loss| loss.cells).sum()
    }
    /// Share of lost cells among the cells whose fate is known (I.356 §6.3); `None` without such cells.
    #[must_use]
    pub fn loss_ratio(&self) -> Option<f64> {
        let (lost, known) = (self.lost_cells(), self.lost_cells() + self.delivered);
        (known > 0).then(|| lost as f64 / known as f64)
    }
}

/// A queue of an output port that exists at the end.
#[derive(Clone, Debug)]
pub struct Queue {
    /// The place; the VC is that of the outgoing link.
    pub place: Place,
    /// Service class.
    pub class: &'static str,
    /// Cells that wait.
    pub waiting: u32,
    /// Largest number of cells that waited at a time.
    pub peak: u32,
    /// Limit of cells.
    pub limit: u32,
    /// Cells in, out and dropped.
    pub counters: CellCounters,
}

/// A policer of a switch.
#[derive(Clone, Debug)]
pub struct PolicerState {
    /// The port and VC at which the cells arrive.
    pub place: Place,
    /// The contract.
    pub traffic: TrafficParams,
    /// Cells in, out, dropped and tagged.
    pub counters: CellCounters,
    /// Cells dropped and tagged, by the test that they failed.
    pub upc: UpcCounters,
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct LinkWay {
    /// The link.
    pub link: LinkId,
    /// The sending end, then the receiving one.
    pub ends: [LinkEnd; 2],
    /// Its rate at the end.
    pub rate: CellRate,
    /// Its delay at the end.
    pub delay: Duration,
    /// The fate of its cells.
    pub counters: LinkCounters,
    /// Cells on the link.
    pub on_the_way: u64,
    /// Share of the run in which the line was busy, 0..=1.
    pub utilisation: f64,
}

/// The state of cells at the end of a run.
#[derive(Clone, Debug, Default)]
pub struct Circuits {
    /// Connections end to end, by sender.
    pub circuits: Vec<Circuit>,
    /// Queues, by node and port.
    pub queues: Vec<Queue>,
    /// Policers, by switch.
    pub policers: Vec<PolicerState>,
    /// Links, both directions of each.
    pub links: Vec<LinkWay>,
}

/// Reads the state of all cells of a network.
#[must_use]
pub fn read(lab: &Lab, world: &impl Network) -> Circuits {
    let reader = Reader::new(lab, world);
    let mut all = Circuits {
        links: reader.links(),
        ..Circuits::default()
    };
    for (id, node) in lab.nodes() {
        if let Some(switch) = world.switch(id) {
            for port in 0..switch.fabric().ports() {
                if let Some(output) = switch.fabric().output(port) {
                    all.queues.extend(queues(id, port, output));
                }
            }
            all.policers.extend(policers(id, switch));
        } else if let Some(station) = world.station(id) {
            all.queues.extend(queues(id, 0, station.nic().output()));
            if node.attachment().is_some() {
                reader.circuits_of(id, &mut all.circuits);
            }
        }
    }
    all
}

fn queues(node: NodeId, port: u16, output: &OutputPort) -> impl Iterator<Item = Queue> + use<'_> {
    output.views().map(move |queue| Queue {
        place: Place {
            node,
            port,
            vc: queue.vc,
        },
        class: queue.class,
        waiting: queue.waiting,
        peak: queue.peak,
        limit: queue.limits.max,
        counters: queue.counters,
    })
}

/// The policers of a switch, by label.
fn policers(node: NodeId, switch: &Switch) -> Vec<PolicerState> {
    let policed = switch.fabric().connections().filter(|view| view.policed);
    let mut all: Vec<ConnectionView> = policed.collect();
    all.sort_unstable_by_key(|view| view.from);
    let all = all.into_iter().map(|view| PolicerState {
        place: Place {
            node,
            port: view.from.port,
            vc: view.from.vc,
        },
        traffic: view.traffic,
        counters: view.counters,
        upc: view.upc,
    });
    all.collect()
}

/// A network with tables for repeated look-ups.
struct Reader<'a, N> {
    lab: &'a Lab,
    world: &'a N,
    /// For each link end its far end, and the cells in between by VC.
    ways: BTreeMap<LinkEnd, (LinkEnd, BTreeMap<Vc, u64>)>,
}

impl<'a, N: Network> Reader<'a, N> {
    fn new(lab: &'a Lab, world: &'a N) -> Self {
        let mut ways = BTreeMap::new();
        for link in (0..lab.links.len()).map(LinkId) {
            let [a, b] = lab.link(link).ends;
            let [forth, back] = world.cells_on(link);
            ways.insert(a, (b, forth));
            ways.insert(b, (a, back));
        }
        Self { lab, world, ways }
    }

    fn links(&self) -> Vec<LinkWay> {
        let mut all = Vec::new();
        let run = self.world.time().since(Instant::ZERO);
        for (link, number) in self.lab.links.iter().zip(0..) {
            let ends = link.ends;
            let counters = self.world.counters_of(LinkId(number));
            let now = self.world.link_now(LinkId(number));
            let ways = [ends, [ends[1], ends[0]]].into_iter().zip(counters);
            for ((ends, counters), (now, given)) in ways.zip(now.into_iter().zip(link.lines)) {
                let rate = now.config.rate.unwrap_or(given.rate);
                let cells = self.ways.get(&ends[0]).map(|way| way.1.values().sum());
                let busy = match link.framing {
                    None => now.busy_before + rate.time_of(counters.sent - now.sent_before),
                    Some(framing) => framing.busy(counters.frames, counters.sent),
                };
                all.push(LinkWay {
                    link: LinkId(number),
                    ends,
                    rate,
                    delay: now.config.delay,
                    counters,
                    on_the_way: cells.unwrap_or_default(),
                    utilisation: share(busy, run),
                });
            }
        }
        all
    }

    /// Follows every connection on which this end system sends.
    fn circuits_of(&self, id: NodeId, all: &mut Vec<Circuit>) {
        let Some(station) = self.world.station(id) else {
            return;
        };
        let mut users = station.vc_users();
        let output = station.nic().output();
        let mut own: Vec<NicVcView> = station.nic().vcs().filter(|view| view.sends).collect();
        own.sort_unstable_by_key(|view| view.vc);
        for view in own {
            let counters = view.sent;
            let class = output
                .queue_of(view.vc)
                .and_then(|queue| output.class_name(queue));
            let place = Place {
                node: id,
                port: 0,
                vc: view.vc,
            };
            let circuit = Circuit {
                from: place,
                to: None,
                class: class.unwrap_or_default(),
                user: users.remove(&view.vc),
                switches: 0,
                offered: counters.cells_in,
                refused: counters.dropped.total(),
                waiting: view.queued.into(),
                sent: counters.cells_out,
                delivered: 0,
                lost: Vec::new(),
                under_way: 0,
                sdus: 0,
                bad_pdus: 0,
                wasted: None,
                transfer: Distribution::default(),
            };
            self.follow(circuit, all);
        }
    }

    fn follow(&self, circuit: Circuit, all: &mut Vec<Circuit>) {
        let first = Walk::new(circuit);
        let mut walks = vec![first];
        while let Some(mut walk) = walks.pop() {
            // A longer walk would be a loop.
            if walk.circuit.switches > self.lab.nodes.len() {
                continue;
            }
            let Some((far, cells)) = self.ways.get(&walk.at) else {
                continue;
            };
            let on_the_way = cells.get(&walk.vc).copied().unwrap_or_default();
            match self.world.switch(far.node) {
                None => {
                    let circuit = self.arrive(walk, *far, on_the_way);
                    all.push(circuit);
                }
                Some(switch) => {
                    let label = PortVc::new(far.port, walk.vc);
                    let Some(view) = switch.fabric().connection(label) else {
                        all.push(walk.ends_here(on_the_way));
                        continue;
                    };
                    let younger = self.is_younger(far.node, walk.at.node);
                    walk.cross(on_the_way, view.counters.cells_in, younger);
                    walk.circuit.switches += 1;
                    if view.local {
                        walk.circuit.to = Some(place(*far, walk.vc));
                        walk.circuit.delivered = walk.left;
                        all.push(walk.circuit);
                        continue;
                    }
                    walk.connection(*far, &view.counters);
                    if view.to.is_empty() {
                        // The connection has counted the arriving cells as lost.
                        all.push(walk.circuit);
                        continue;
                    }
                    // The last leaf is pushed first, so that the stack returns the leaves in order.
                    for leaf in view.to.iter().rev() {
                        let mut walk = walk.clone();
                        walk.at = LinkEnd {
                            node: far.node,
                            port: leaf.port,
                        };
                        walk.vc = leaf.vc;
                        let output = switch.fabric().output(leaf.port);
                        let queue = output.and_then(|output| {
                            let id = output.queue_of(leaf.vc)?;
                            Some((output.counters(id)?, output.queued(id)))
                        });
                        if let Some((counters, queued)) = queue {
                            walk.queue(&counters, queued.into());
                        }
                        walks.push(walk);
                    }
                }
            }
        }
    }

    /// True if a node was switched on after another one.
    fn is_younger(&self, node: NodeId, than: NodeId) -> bool {
        self.world.on_since(node) > self.world.on_since(than)
    }

    fn arrive(&self, mut walk: Walk, far: LinkEnd, on_the_way: u64) -> Circuit {
        if matches!(self.lab.node(far.node).kind, NodeKind::Outside(_)) {
            return walk.leaves_the_lab(far, on_the_way);
        }
        let station = self.world.station(far.node);
        let view = station.and_then(|station| station.nic().view_of(walk.vc));
        let (Some(station), Some(view)) = (station, view) else {
            return walk.ends_here(on_the_way);
        };
        let younger = self.is_younger(far.node, walk.at.node);
        walk.cross(on_the_way, view.cells_received, younger);
        let received = &view.received;
        let circuit = &mut walk.circuit;
        circuit.to = Some(place(far, view.vc));
        circuit.delivered = walk.left;
        circuit.sdus = received.sdus;
        circuit.bad_pdus =
            received.crc + received.length + received.cpi + received.too_long + received.aborted;
        circuit.wasted = Some(circuit.delivered.saturating_sub(received.whole));
        if let Some(transfer) = station.nic().transfer(view.vc) {
            circuit.transfer = transfer.clone();
        }
        walk.circuit
    }
}

fn place(end: LinkEnd, vc: Vc) -> Place {
    Place {
        node: end.node,
        port: end.port,
        vc,
    }
}

/// Share of the run in which the line was busy.
fn share(busy: Duration, run: Duration) -> f64 {
    if run.is_zero() {
        0.0
    } else {
        busy.as_secs_f64() / run.as_secs_f64()
    }
}
