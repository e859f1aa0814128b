//! A run whose packets are followed.

use super::{LabRun, Seen};
use crate::follow::{Followed, Look, PacketId, Recorder, Sought, way};
use aerostat_lab::event::Names;
use aerostat_lab::plant::{LabNode, NodeId};
use aerostat_node::atm::PortVc;
use aerostat_node::host::{HostEvent, Station};
use aerostat_node::inspect::mpoa::MpcIngress;
use aerostat_node::inspect::{Row as _, StateKind};
use aerostat_node::ip::books::{Place, Spot};
use aerostat_node::ip::meter::Side;
use aerostat_proto::Instant;
use aerostat_wire::{Vc, counted};
use std::collections::BTreeSet;
use std::net::IpAddr;

impl Seen<'_> {
    /// Shows an event to those that follow or seek a packet. Returns an event that the ledger has still to take.
    pub(super) fn follow(
        &mut self,
        node: NodeId,
        event: HostEvent,
        now: Instant,
    ) -> Option<HostEvent> {
        if self.recorder.is_none() && self.sought.is_none() {
            return Some(event);
        }
        match event {
            HostEvent::Sample(sample) => {
                let number = self.ledger.stats.record(&sample)?;
                if let Some(((flow, wanted), sought)) = &mut self.sought
                    && *flow == sample.flow
                    && matches!(sample.side, Side::Offered | Side::Sent)
                {
                    sought.packets = sought.packets.max(number + 1);
                    if number == *wanted {
                        sought.at.get_or_insert(sample.at);
                        self.stop = true;
                    }
                }
                if let Some(recorder) = &mut self.recorder {
                    recorder.sample(node, &sample, number, now);
                }
                None
            }
            HostEvent::Step(step) => {
                if let Some(recorder) = &mut self.recorder {
                    recorder.step(node, &step, now);
                }
                None
            }
            HostEvent::Lost(cause, head) => {
                if let Some(recorder) = &mut self.recorder {
                    let spot = Spot::Node(node.0);
                    let place = Place { spot, cause };
                    recorder.lost(place, head.view(), now);
                }
                Some(HostEvent::Lost(cause, head))
            }
            other => Some(other),
        }
    }
}

impl LabRun<'_> {
    /// Ends the run when a packet is made.
    pub(crate) fn seek(&mut self, packet: PacketId) {
        self.seen.sought = Some((packet, Sought::default()));
    }
    /// Knowledge of the packet that is sought.
    pub(crate) fn sought(&self) -> Sought {
        self.seen.sought.map_or(Sought::default(), |found| found.1)
    }
    /// True if the watcher has ended the run.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.seen.watcher.interrupted()
    }

    /// Follows these packets from now on. With `only` the run ends when it is known what has become of them.
    pub fn follow(&mut self, packets: BTreeSet<PacketId>, only: bool) {
        let plant = self.world.plant();
        let lines = plant.lines().map(|line| {
            let line = plant.line(line);
            [line.from.node, line.to.node]
        });
        let ends: Vec<[NodeId; 2]> = lines.collect();
        let recorder = Recorder::new(self.builder.flows(), packets, ends, only);
        self.seen.recorder = Some(Box::new(recorder));
        self.world.plant_mut().show_steps();
        self.watch(true);
    }

    /// The ways of packets that are followed; those that are still under way end here.
    pub fn followed(&mut self) -> Vec<Followed> {
        if let Some(recorder) = &mut self.seen.recorder {
            recorder.end_all();
        }
        self.look();
        std::mem::take(&mut self.seen.followed)
    }

    /// Looks at what the recorder asks for; false if it asks for nothing.
    pub(super) fn look(&mut self) -> bool {
        let looks = self
            .seen
            .recorder
            .as_mut()
            .map(|recorder| recorder.take_looks());
        let looks = looks.unwrap_or_default();
        for look in &looks {
            match *look {
                Look::Path(packet, node) => {
                    let why = self.why(packet, node);
                    if let Some(recorder) = &mut self.seen.recorder {
                        recorder.explain(packet, why);
                    }
                }
                Look::User(packet, leg, node, vc) => {
                    let user = self.user(node, vc);
                    if let Some(recorder) = &mut self.seen.recorder {
                        recorder.name_user(packet, leg, user);
                    }
                }
                Look::Way => self.make_ways(),
            }
        }
        !looks.is_empty()
    }

    fn make_ways(&mut self) {
        let Some(recorder) = &mut self.seen.recorder else {
            return;
        };
        let ended = recorder.take_ended();
        let world = &self.world;
        let polices = |node: NodeId, port: u16, vc: Vc| {
            let switch = world.node(node).and_then(LabNode::as_switch);
            let mut connections = switch
                .into_iter()
                .flat_map(|switch| switch.fabric().connections());
            connections.any(|one| one.from == PortVc::new(port, vc) && one.policed)
        };
        let maker = way::Maker {
            lab: self.lab,
            ends: recorder.ends(),
            polices: &polices,
        };
        let ways = ended.iter().map(|trail| maker.way(trail));
        self.seen.followed.extend(ways);
    }

    /// Ends packets that are lost for good.
    pub(super) fn settle_followed(&mut self) {
        let Some(mut recorder) = self.seen.recorder.take() else {
            return;
        };
        let plant = self.world.plant_mut();
        recorder.settle(|see| plant.census(see));
        self.seen.recorder = Some(recorder);
        self.look();
    }

    fn station(&self, node: NodeId) -> Option<&Station> {
        self.world.node(node)?.as_station()
    }

    /// User of a label of an end system: `lec0 to basso`.
    fn user(&self, node: NodeId, vc: Vc) -> Option<String> {
        let users = self.station(node)?.vc_users();
        let user = users.get(&vc)?;
        let name = user.user.as_deref().unwrap_or("?");
        Some(match user.peer {
            _ if user.multipoint => format!("{name}, to several"),
            Some(peer) => format!(
                "{name}, to {}",
                Names::new(self.lab).in_text(&peer.to_string())
            ),
            None => name.to_owned(),
        })
    }

    /// State of the destination of a packet at the MPOA client of the sender.
    fn why(&self, packet: PacketId, node: NodeId) -> Option<String> {
        let flow = self.lab.traffic.get(packet.0.0)?;
        let destination = IpAddr::from(flow.destination);
        let Some(tables) = self
            .world
            .node(node)?
            .inspect(StateKind::Mpc, self.world.now())
        else {
            return Some("the host has no MPOA client".to_owned());
        };
        let ingress = tables
            .iter()
            .filter(|table| table.title == MpcIngress::TABLE.title());
        let rows = ingress.flat_map(|table| &table.rows);
        let mut rows = rows.filter_map(|cells| MpcIngress::of_cells(cells).ok());
        let entry = rows.find(|row| row.destination == destination);
        Some(match entry {
            Some(row) => {
                let (state, packets) = (row.state, counted(row.packets, "packet", "packets"));
                format!("MPOA client: {destination} is {state}, {packets} so far")
            }
            None => format!("MPOA client: no entry for {destination}"),
        })
    }
}
