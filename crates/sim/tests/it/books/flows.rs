//! The accounts of flows compared with captures.
//!
//! A packet that left its sender and did not reach its receiver vanished at some place: on a link, if it entered the
//! link and did not leave it; in a node, if it arrived there and did not leave. For each place the accounts must not
//! have more losses than packets that vanished there. Since both sides have the same total, no place has too few
//! losses, either.
//!
//! Cells of a packet travel one behind the other. A packet that first loses a cell at a distant place and later another
//! one nearby counts at the distant place, while captures miss it from the nearby place on. Where links lose cells, the
//! checks allow for this.

use super::captures::{End, Mark, Sightings};
use aerostat_lab::dialogues::Dialogue;
use aerostat_lab::model::{FaultKind, Lab, Link, NodeId, NodeKind};
use aerostat_lab::report::RunReport;
use aerostat_node::atm::DropReason;
use aerostat_node::ip::apps::AppResult;
use aerostat_node::ip::books::{Cause, Place, Spot};
use aerostat_node::ip::flow_stats::FlowReport;
use aerostat_wire::cell::PAYLOAD_LEN;
use std::collections::{BTreeMap, BTreeSet};

/// Octets of the longest packet.
const LONGEST: u64 = 9180;

/// The mistakes in the accounts, in words.
pub(super) fn mistakes(lab: &Lab, report: &RunReport, seen: &[Sightings]) -> Vec<String> {
    let cells = waiting(report);
    let mut all: Vec<String> = report.dialogues.iter().filter_map(of_programs).collect();
    for (flow, seen) in report.flows.iter().zip(seen) {
        let check = Check::new(lab, flow, seen);
        let mut found = balance(flow);
        found.extend(check.program(report));
        found.extend(check.ends());
        found.extend(check.places());
        found.extend(check.under_way(cells));
        found.extend(check.rates());
        let name = &flow.name;
        let wrong = !found.is_empty();
        all.extend(found.into_iter().map(|what| format!("{name}: {what}")));
        if wrong {
            let lost = flow
                .paths
                .iter()
                .map(|path| format!("{:?}", lab.lost_by(path)));
            all.push(format!("{name}: {}", lost.collect::<Vec<_>>().join(", ")));
            all.push(format!("{name}: {}", seen.text()));
        }
    }
    all
}

/// Cells in queues and on links at the end.
fn waiting(report: &RunReport) -> u64 {
    let queues = report
        .circuits
        .queues
        .iter()
        .map(|queue| u64::from(queue.waiting));
    let links = report.circuits.links.iter().map(|way| way.on_the_way);
    queues.sum::<u64>() + links.sum::<u64>()
}

/// The mistakes in the accounts of two programs over a connection.
pub(super) fn of_programs(books: &Dialogue) -> Option<String> {
    let begun = books.sent + books.refused + books.waiting;
    let ended = books
        .delivered
        .map(|delivered| delivered + books.lost() + books.under_way);
    let explained = !books.lost_by.contains_key("unexplained");
    let balanced =
        explained && books.offered == begun && ended.is_none_or(|ended| ended == books.sent);
    (!balanced).then(|| format!("{books:?}"))
}

/// Checks that the accounts balance by themselves.
pub(super) fn balance(flow: &FlowReport) -> Vec<String> {
    let mut wrong = Vec::new();
    for path in &flow.paths {
        let refused: u64 = path.refused.values().sum();
        let places: u64 = path.lost_by.values().sum();
        let books = [
            (
                path.offered,
                path.sent_packets + refused,
                "offered = sent + refused",
            ),
            (
                path.sent_packets,
                path.received_packets + places + path.in_flight,
                "sent = delivered + lost by place + under way",
            ),
            (path.lost, places, "lost = lost by place"),
            (path.unexplained, 0, "unexplained = 0"),
            (
                path.unanswered,
                path.answers_lost.values().sum::<u64>(),
                "unanswered = answers lost by place",
            ),
        ];
        let off = books.into_iter().filter(|(one, other, _)| one != other);
        wrong.extend(off.map(|(one, other, what)| format!("{what}: {one}, {other}")));
        if !path.balances() {
            wrong.push("balances() says no".into());
        }
    }
    if flow.unmatched > 0 {
        wrong.push(format!(
            "{} packets received that were not sent",
            flow.unmatched
        ));
    }
    wrong
}

struct Check<'a> {
    lab: &'a Lab,
    flow: &'a FlowReport,
    seen: &'a Sightings,
    from: NodeId,
    to: NodeId,
    /// Packets that left the sender, and those that reached the receiver.
    left: BTreeSet<Mark>,
    came: BTreeSet<Mark>,
    sent: u64,
    delivered: u64,
    in_flight: u64,
}

impl<'a> Check<'a> {
    fn new(lab: &'a Lab, flow: &'a FlowReport, seen: &'a Sightings) -> Self {
        let model = &lab.traffic[flow.flow.0];
        let name = |id| lab.node(id).name.as_str();
        Self {
            lab,
            flow,
            seen,
            from: model.from,
            to: model.to,
            left: seen.left(name(model.from)),
            came: seen.came_to(name(model.to)),
            sent: flow.sum(|path| path.sent_packets),
            delivered: flow.sum(|path| path.received_packets),
            in_flight: flow.sum(|path| path.in_flight),
        }
    }

    /// False for a restarted sender of echo requests: it counts from 0 again, and captures cannot distinguish the
    /// requests.
    fn can_tell_apart(&self) -> bool {
        let echo = |mark: &Mark| matches!(mark, Mark::Echo(_));
        !self.left.iter().any(echo) || !self.switched_off(self.from)
    }

    fn switched_off(&self, id: NodeId) -> bool {
        let mut faults = self.lab.faults.iter();
        faults.any(|fault| matches!(fault.what, FaultKind::Crash(node, None) | FaultKind::Restart(node, None) if node == id))
    }

    /// Compares with the counts of the sending program.
    fn program(&self, report: &RunReport) -> Option<String> {
        if self.switched_off(self.from) {
            return None;
        }
        let mut programs = report.programs.iter();
        let (.., result) =
            programs.find(|(flow, role, _)| *flow == self.flow.flow.0 && *role == "from")?;
        let [made, refused] = match result {
            AppResult::UdpSource(result) => [result.sent, 0],
            AppResult::Ping(result) => [result.sent, result.not_sent],
            _ => return None,
        };
        let offered = self.flow.sum(|path| path.offered);
        let in_books = self.flow.sum(|path| path.refused_packets());
        ([made, refused] != [offered, in_books]).then(|| {
            format!("the program made {made}, of these {refused} were refused; offered {offered}, refused {in_books}")
        })
    }

    /// Compares packets at the sender's and at the receiver's adapter.
    fn ends(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        if !self.can_tell_apart() {
            return wrong;
        }
        let (left, came) = (self.left.len() as u64, self.came.len() as u64);
        if left > self.sent {
            wrong.push(format!(
                "{left} packets left the sender, {} were sent",
                self.sent
            ));
        }
        if came < self.delivered {
            wrong.push(format!(
                "{came} packets came to the receiver, {} were delivered",
                self.delivered
            ));
        }
        if self.came.difference(&self.left).next().is_some() {
            wrong.push("a packet came that had not left".into());
        }
        wrong
    }

    /// Checks that no place has more losses than packets that vanished there.
    fn places(&self) -> Vec<String> {
        if !self.can_tell_apart() {
            return Vec::new();
        }
        let mut wrong = Vec::new();
        let mut places: BTreeSet<Place> = BTreeSet::new();
        places.extend(self.flow.paths.iter().flat_map(|path| path.lost_by.keys()));
        // Packets that reached the receiver and were not delivered may have lost a copy elsewhere before.
        let slack = (self.came.len() as u64).saturating_sub(self.delivered);
        let mut by_spot = BTreeMap::<_, (u64, Vec<Place>)>::new();
        for place in places {
            let lost = self
                .flow
                .sum(|path| path.lost_by.get(&place).copied().unwrap_or(0));
            let of = by_spot
                .entry((place.spot, matches!(place.cause, Cause::Reassembly)))
                .or_default();
            of.0 += lost;
            of.1.push(place);
        }
        for (lost, places) in by_spot.into_values() {
            let vanished = places.iter().map(|place| self.vanished(place)).max();
            let possible = slack + vanished.unwrap_or(0) + self.torn(places[0].cause);
            if lost > possible {
                let words: Vec<_> = places.iter().map(|place| self.lab.place(place)).collect();
                wrong.push(format!(
                    "{lost} packets lost by {}, but only {possible} vanished there",
                    words.join(", ")
                ));
            }
        }
        wrong
    }

    /// Packets of which only some cells may have come to a place with this cause of loss.
    fn torn(&self, cause: Cause) -> u64 {
        // A release or a fault cuts the packet that is passing at that moment, on each link. Its first cells may have
        // been dropped before, further on the path.
        let cut = self.lab.links.len() as u64 * self.lab.faults.len() as u64;
        let broken = self.lab.links.len() as u64 + cut;
        let links = self.lab.links.iter();
        let lossy = links.filter(|link| link.lines.iter().any(|line| line.errors.any()));
        let torn: BTreeSet<Mark> = lossy
            .flat_map(|link| self.seen.vanished_on(&link.name))
            .collect();
        let torn = torn.difference(&self.came).count() as u64;
        match cause {
            Cause::Cells(DropReason::UnknownVc | DropReason::Closed)
            | Cause::Cut
            | Cause::Retrain
            | Cause::Off => torn + broken,
            Cause::Cells(_) | Cause::CellLost | Cause::BitErrors | Cause::BlockLost => torn + cut,
            _ => 0,
        }
    }

    /// How many packets can have been lost at a place.
    fn vanished(&self, place: &Place) -> u64 {
        let name = |id: usize| self.lab.nodes[id].name.as_str();
        let unseen = self.sent.saturating_sub(self.left.len() as u64);
        let missing = |marks: BTreeSet<Mark>| marks.difference(&self.came).count() as u64;
        // Its cells were mixed with those of a packet whose last cell was lost, anywhere on the way.
        if place.cause == Cause::Reassembly {
            return missing(self.seen.all());
        }
        match place.spot {
            Spot::Node(id) | Spot::Port(id, _) if place.cause != Cause::Off => {
                if id == self.from.0 {
                    return unseen + missing(self.vanished_in(id));
                }
                missing(self.vanished_in(id))
            }
            // Packets that waited before a link that went down, and those on their way there.
            Spot::Node(id) | Spot::Port(id, _) => {
                let mut marks = self.vanished_in(id);
                let mut near = u64::from(id == self.from.0) * unseen;
                let here = |link: &&Link| link.ends.iter().any(|end| end.node.0 == id);
                for link in self.lab.links.iter().filter(here) {
                    marks.extend(self.seen.vanished_on(&link.name));
                    for far in link.ends.iter().filter(|far| far.node.0 != id) {
                        marks.extend(self.vanished_in(far.node.0));
                        near += u64::from(far.node == self.from) * unseen;
                    }
                }
                missing(marks) + near
            }
            Spot::Link(id) => {
                let link = &self.lab.links[id];
                let mut marks = self.seen.vanished_on(&link.name);
                let mut near = 0;
                if place.cause == Cause::Cut {
                    for end in &link.ends {
                        marks.extend(self.seen.came_to(name(end.node.0)));
                        near += u64::from(end.node == self.from) * unseen;
                    }
                }
                missing(marks) + near
            }
        }
    }

    /// Packets that came to a node and did not leave it. A frame that a BUS has flooded leaves a switch by several
    /// ports.
    fn vanished_in(&self, id: usize) -> BTreeSet<Mark> {
        let name = &self.lab.nodes[id].name;
        let mut came = self.seen.came_to(name);
        if !matches!(self.lab.nodes[id].kind, NodeKind::Switch(_)) && id == self.to.0 {
            return came;
        }
        let flooded = self.flooded();
        // A packet may pass a switch on its way to a router, and again on its way from there.
        let passes = |table: &BTreeMap<End, BTreeSet<Mark>>, mark: &Mark| {
            let here = table.iter().filter(|(end, _)| end.node == *name);
            here.filter(|(_, marks)| marks.contains(mark)).count()
        };
        came.retain(|mark| {
            flooded.contains(mark)
                || passes(&self.seen.received, mark) > passes(&self.seen.sent, mark)
        });
        came
    }

    fn flooded(&self) -> BTreeSet<Mark> {
        let servers = self
            .lab
            .nodes()
            .filter(|(_, node)| matches!(node.kind, NodeKind::LaneServer(_)));
        servers
            .flat_map(|(_, node)| self.seen.came_to(&node.name))
            .collect()
    }

    /// Octets that a path has received came over the lines of both ends in its time. A period begins while a packet of
    /// an earlier one may be on the line.
    fn rates(&self) -> Vec<String> {
        let ends = [self.from, self.to];
        let lines = ends.map(|node| {
            let mut links = self.lab.links.iter();
            links.find(|link| link.ends.iter().any(|end| end.node == node))
        });
        let mut wrong = Vec::new();
        for (path, link) in self
            .flow
            .paths
            .iter()
            .flat_map(|path| lines.iter().flatten().map(move |link| (path, link)))
        {
            let room = link.lines[0].rate.cells_in(path.busy) * PAYLOAD_LEN as u64 + 2 * LONGEST;
            let octets = path.received_octets;
            if octets > room {
                wrong.push(format!(
                    "{}: {octets} octets in {:?} are above the rate of {}",
                    path.path.name(),
                    path.busy,
                    link.name
                ));
            }
        }
        wrong
    }

    /// Only packets that wait somewhere can be under way.
    fn under_way(&self, cells: u64) -> Option<String> {
        let unseen = self.sent.saturating_sub(self.left.len() as u64);
        let stations = self
            .lab
            .nodes()
            .filter(|(_, node)| !matches!(node.kind, NodeKind::Switch(_)));
        let mut held: BTreeSet<Mark> = BTreeSet::new();
        for (id, _) in stations.filter(|(id, _)| *id != self.to) {
            held.extend(self.vanished_in(id.0).difference(&self.came));
        }
        // A receiver that takes its time for packets has them before they are delivered.
        let there = (self.came.len() as u64).saturating_sub(self.delivered);
        let possible = cells + unseen + held.len() as u64 + there;
        (self.in_flight > possible).then(|| {
            format!(
                "{} under way, but only {possible} can be somewhere",
                self.in_flight
            )
        })
    }
}
