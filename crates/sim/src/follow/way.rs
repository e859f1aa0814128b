//! From the notes about a packet to its way: the legs that brought it to its end, and their stages.

use super::recorder::{Hop, LastCell, Leg, Trail};
use super::{Fate, Followed, Stage, Verdict, What};
use aerostat_lab::Lab;
use aerostat_lab::model::NodeKind;
use aerostat_lab::plant::{LineId, NodeId};
use aerostat_node::ip::books::Spot;
use aerostat_proto::Instant;
use aerostat_wire::Vc;

/// Makes the way of a packet.
pub(crate) struct Maker<'a> {
    pub(crate) lab: &'a Lab,
    /// Nodes at both ends of each line.
    pub(crate) ends: &'a [[NodeId; 2]],
    /// True if a switch holds the cells of this label of one of its ports to a contract.
    pub(crate) polices: &'a dyn Fn(NodeId, u16, Vc) -> bool,
}

impl Maker<'_> {
    /// The way of a packet of which nothing more will be known.
    pub(crate) fn way(&self, trail: &Trail) -> Followed {
        let fate = match (trail.received, trail.lost) {
            (Some((at, node)), _) => Fate::Delivered { at, node },
            (None, Some((place, at))) => Fate::Lost { place, at },
            (None, None) => Fate::UnderWay,
        };
        let mut stages = Vec::new();
        self.before(trail, &mut stages);
        if let Some((sent, node)) = trail.sent {
            let end = match fate {
                Fate::Delivered { at, node } => Some((at, node)),
                Fate::Lost { .. } | Fate::UnderWay => None,
            };
            let mut walk = Walk {
                maker: self,
                now: sent,
                node,
                stages: &mut stages,
            };
            for leg in self.chain(trail, &fate) {
                walk.leg(leg, trail);
            }
            if let Some((at, node)) = end {
                walk.arrive(at, node);
            }
        }
        if let Fate::Lost { place, at } = fate {
            let node = self.node_of(place.spot);
            stages.push(Stage {
                node,
                from: at,
                to: at,
                what: What::Lost { place },
            });
        }
        Followed {
            packet: trail.packet,
            offered: trail.offered.map(|offered| offered.0),
            sent: trail.sent,
            path: trail.path,
            fate,
            stages,
            ambiguous: trail.ambiguous,
        }
    }

    /// Stages in the stack of the sender.
    fn before(&self, trail: &Trail, stages: &mut Vec<Stage>) {
        let left = trail.sent.or(trail.lost.map(|(_, at)| (at, NodeId(0))));
        if let (Some((offered, node)), Some((left, _))) = (trail.offered, left)
            && left > offered
        {
            stages.push(Stage {
                node,
                from: offered,
                to: left,
                what: What::Stack,
            });
        }
        if let (Some((at, node)), Some(path)) = (trail.sent, trail.path) {
            let why = trail.why.clone();
            stages.push(Stage {
                node,
                from: at,
                to: at,
                what: What::Leaves { path, why },
            });
        }
    }

    fn node_of(&self, spot: Spot) -> NodeId {
        match spot {
            Spot::Node(node) | Spot::Port(node, _) => NodeId(node),
            Spot::Link(link) => {
                let link = self.lab.links.get(link);
                link.map_or(NodeId(0), |link| link.ends[0].node)
            }
        }
    }

    fn ends_of(&self, line: LineId) -> [NodeId; 2] {
        let ends = self.ends.get(line.0 as usize);
        ends.copied().unwrap_or([NodeId(0); 2])
    }

    /// The legs that brought the packet to its end, in order. They are found from the end: of the PDUs that a node got
    /// before it sent the next one, the last.
    fn chain<'a>(&self, trail: &'a Trail, fate: &Fate) -> Vec<(&'a Leg, NodeId)> {
        let (mut node, mut by) = match *fate {
            Fate::Delivered { at, node } => (node, at),
            Fate::Lost { place, at } => (self.node_of(place.spot), at),
            Fate::UnderWay => match trail.legs.last() {
                Some(leg) => (self.reached(leg), Instant::from_nanos(u64::MAX)),
                None => return Vec::new(),
            },
        };
        let mut chain: Vec<(&Leg, NodeId)> = Vec::new();
        let sender = trail.sent.map(|sent| sent.1);
        if !matches!(fate, Fate::Delivered { .. }) {
            // The PDU that was lost may have come here, or have begun here.
            let touches = |leg: &&Leg| {
                let comes = leg.hops.iter().any(|hop| self.ends_of(hop.line)[1] == node);
                (comes || leg.origin == node) && leg.queued <= by
            };
            if let Some(leg) = trail
                .legs
                .iter()
                .filter(touches)
                .max_by_key(|leg| leg.queued)
            {
                chain.push((leg, node));
                (node, by) = (leg.origin, leg.queued);
            }
        }
        while chain.len() <= trail.legs.len() {
            let got = |leg: &&Leg| {
                let mut all = leg.delivered.iter();
                all.any(|(at, when)| *at == node && *when <= by) && leg.queued < by
            };
            let came = trail.legs.iter().filter(got).max_by_key(|leg| leg.queued);
            let Some(leg) = came else { break };
            chain.push((leg, node));
            (node, by) = (leg.origin, leg.queued);
            if Some(node) == sender && trail.sent.is_some_and(|sent| sent.0 == by) {
                break;
            }
        }
        chain.reverse();
        chain
    }

    /// The last node that a PDU has reached so far.
    fn reached(&self, leg: &Leg) -> NodeId {
        let last = leg.hops.last().map(|hop| self.ends_of(hop.line)[1]);
        last.unwrap_or(leg.origin)
    }

    /// The lines by which a PDU has come to a node, in order.
    fn lines<'a>(&self, leg: &'a Leg, to: NodeId) -> Vec<&'a Hop> {
        let mut lines: Vec<&Hop> = Vec::new();
        let mut node = to;
        while node != leg.origin && lines.len() <= leg.hops.len() {
            let comes = |hop: &&Hop| self.ends_of(hop.line)[1] == node;
            let Some(hop) = leg.hops.iter().find(comes) else {
                break;
            };
            lines.push(hop);
            node = self.ends_of(hop.line)[0];
        }
        lines.reverse();
        lines
    }

    /// Port of the link at this end of a line: 0 for the sending one.
    fn port(&self, line: LineId, end: usize) -> u16 {
        let link = self.lab.links.get(line.link().0);
        let side = line.side() ^ end;
        link.map_or(0, |link| link.ends[side].port)
    }

    fn kind(&self, node: NodeId) -> Option<&NodeKind> {
        self.lab.nodes.get(node.0).map(|node| &node.kind)
    }
}

/// Makes stages, one behind the other.
struct Walk<'a, 'm> {
    maker: &'a Maker<'m>,
    /// The end of the last stage.
    now: Instant,
    /// Place of the packet.
    node: NodeId,
    stages: &'a mut Vec<Stage>,
}

impl Walk<'_, '_> {
    /// A stage up to `to`.
    fn stage(&mut self, to: Instant, what: What) {
        self.stages.push(Stage {
            node: self.node,
            from: self.now,
            to,
            what,
        });
        self.now = to;
    }

    /// A stage that is left out if it takes no time.
    fn if_long(&mut self, to: Instant, what: What) {
        if to > self.now {
            self.stage(to, what);
        }
    }

    /// Work of the node on the packet between two PDUs.
    fn role(&self, trail: &Trail) -> What {
        let is_sender = trail.sent.is_some_and(|sent| sent.1 == self.node);
        match self.maker.kind(self.node) {
            _ if is_sender => What::Sender,
            Some(NodeKind::Router(_)) => What::Router,
            _ => What::Relay,
        }
    }

    /// The packet crosses the network in a PDU, up to the host at `to`, or as far as it came.
    fn leg(&mut self, (leg, to): (&Leg, NodeId), trail: &Trail) {
        if self.node != leg.origin {
            self.if_long(leg.to_cpu.unwrap_or(leg.queued), What::Unseen);
            self.node = leg.origin;
        }
        let what = self.role(trail);
        let given = leg.to_cpu.unwrap_or(leg.queued);
        match what {
            What::Sender => self.if_long(given, what),
            _ => self.stage(given, what),
        }
        self.if_long(leg.queued, What::Cpu { sends: true });
        let mut came = None;
        let lines = self.maker.lines(leg, to);
        for hop in &lines {
            let Some(last) = &hop.last else { return };
            if let Some((before, vc, clp)) = came {
                self.switch((before, vc, clp), hop);
            }
            self.hop(leg, hop, last);
            let Some(arrived) = last.arrived else { return };
            self.stage(arrived, What::Propagation { line: hop.line });
            self.node = self.maker.ends_of(hop.line)[1];
            came = Some((hop.line, hop.vc, hop.clp));
        }
        if let Some((_, vc, _)) = came
            && !matches!(self.maker.kind(self.node), Some(NodeKind::Switch(_)))
        {
            let cells = leg.pdu.cells();
            self.stage(self.now, What::Reassembly { cells, vc });
        }
        let here = |all: &[(NodeId, Instant)]| {
            let mut all = all.iter().filter(|(node, _)| *node == to);
            all.next().map(|(_, at)| *at)
        };
        if let Some(taken) = here(&leg.taken_in) {
            self.if_long(taken, What::Intake);
        }
        if let Some(delivered) = here(&leg.delivered) {
            self.if_long(delivered, What::Cpu { sends: false });
        }
    }

    /// The last cell changes its label in a switch.
    fn switch(&mut self, (came, vc, clp): (LineId, Vc, bool), next: &Hop) {
        let port = self.maker.port(came, 1);
        let policed = (self.maker.polices)(self.node, port, vc);
        let verdict = match next.clp && !clp {
            true => Verdict::Tagged,
            false => Verdict::Conforms,
        };
        let what = What::Switch {
            came: (port, vc),
            goes: (self.maker.port(next.line, 0), next.vc),
            policed: policed.then_some(verdict),
        };
        self.stage(self.now, what);
    }

    /// The last cell waits for a line, and is sent.
    fn hop(&mut self, leg: &Leg, hop: &Hop, last: &LastCell) {
        let first = self.maker.ends_of(hop.line)[0] == leg.origin;
        let queue = What::Queue {
            line: hop.line,
            vc: hop.vc,
            cells: leg.pdu.cells(),
            user: leg.user.clone().filter(|_| first),
            wait: last.wait.clone(),
        };
        // The times are those that were seen: a gap would show in the sum.
        self.now = last.since;
        self.stage(last.start, queue);
        let (line, vc) = (hop.line, hop.vc);
        self.stage(last.finish, What::Transmission { line, vc });
    }

    /// The packet reaches the stack of its receiver.
    fn arrive(&mut self, at: Instant, node: NodeId) {
        let what = match self.node == node {
            true => What::Receiver,
            false => What::Unseen,
        };
        self.node = node;
        self.if_long(at, what);
    }
}
