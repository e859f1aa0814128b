//! The accounts of flows for people: places by their names in the lab, and figures that deserve a warning.

use crate::model::{Expect, Flow, FlowKind, Lab, NodeKind};
use aerostat_node::atm::DropReason;
use aerostat_node::ip::books::{Cause, Place, Spot};
use aerostat_node::ip::flow_stats::{FlowReport, PathReport};
use aerostat_node::ip::meter::Path;
use aerostat_proto::Instant;
use aerostat_wire::counted;
use std::collections::BTreeMap;

mod stops;

/// A flow of datagrams that loses more than one packet in this many deserves a warning; smaller losses are usual in a
/// congested network.
const ONE_IN: u64 = 10;

impl Lab {
    /// The place of a loss in words: `s1 port 2 to s2: queue full`, `link a-s1: cell lost`, `h1: ARP`.
    #[must_use]
    pub fn place(&self, place: &Place) -> String {
        let name = |id: usize| self.nodes.get(id).map_or("?", |node| &*node.name);
        let spot = match place.spot {
            Spot::Node(id) => name(id).to_owned(),
            Spot::Link(id) => {
                let link = self.links.get(id);
                format!("link {}", link.map_or("?", |link| &*link.name))
            }
            Spot::Port(id, port) => match self.nodes.get(id).map(|node| &node.kind) {
                Some(NodeKind::Switch(switch)) => {
                    let peer = switch.ports.get(usize::from(port));
                    let peer = peer.map_or("?", |port| name(port.peer.0));
                    let before = match place.cause {
                        Cause::Cells(DropReason::Policed | DropReason::UnknownVc) => "from",
                        _ => "to",
                    };
                    format!("{} port {port} {before} {peer}", name(id))
                }
                _ => format!("{} adapter", name(id)),
            },
        };
        format!("{spot}: {}", place.cause)
    }

    /// The places of a flow's losses, with their packets; packets lost without a report are `unexplained`.
    #[must_use]
    pub fn lost_by(&self, path: &PathReport) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for (place, packets) in &path.lost_by {
            *all.entry(self.place(place)).or_default() += packets;
        }
        if path.unexplained > 0 {
            all.insert("unexplained".to_owned(), path.unexplained);
        }
        all
    }

    /// The word for a path of the flow with this index in the lab: `shortcut`; `routed` over a router; `direct` inside
    /// one subnet.
    #[must_use]
    pub fn phase(&self, flow: usize, path: Path) -> &'static str {
        let one = |flow: &Flow| {
            let subnet = |end| self.client_over(end, flow.over).map(|lec| lec.elan);
            let [near, far] = flow.segment;
            subnet((flow.from, near)) == subnet((flow.to, far))
        };
        let flow = self.traffic.get(flow);
        match path {
            Path::Shortcut => "shortcut",
            Path::Lane if flow.is_some_and(one) => "direct",
            Path::Lane => "routed",
        }
    }

    /// Complaint about a flow, in words; `None` if the flow did what it should. `began` is when the flow started, if it
    /// has, and `end` the end of the run.
    ///
    /// TCP fills queues until a packet is lost, so losses alone are not a failure of a `tcp` or `rr` flow.
    #[must_use]
    pub fn complaint(
        &self,
        report: &FlowReport,
        began: Option<Instant>,
        end: Instant,
    ) -> Option<String> {
        let flow = self.traffic.get(report.flow.0)?;
        let name = &report.name;
        let [offered, delivered, lost] = [
            report.sum(|path| path.offered),
            report.sum(|path| path.received_packets),
            report.sum(|path| path.lost + path.refused_packets()),
        ];
        let unanswered = report.sum(|path| path.unanswered);
        let answers: u64 = report.paths.iter().map(|path| path.round_trip.count).sum();
        match flow.expect {
            Some(Expect::Nothing) if delivered > 0 => {
                return Some(format!(
                    "traffic {name}: 'expect: nothing', but {delivered} of {} arrived",
                    counted(offered, "packet", "packets")
                ));
            }
            Some(Expect::Loss) if lost + unanswered == 0 => {
                let why = match began {
                    None => "it never started: its hosts have not joined",
                    Some(_) if offered == 0 => "it never sent anything",
                    Some(_) => "nothing was lost",
                };
                return Some(format!("traffic {name}: 'expect: loss', but {why}"));
            }
            Some(_) => return None,
            None => {}
        }
        let why = self.main_reason(report);
        let Some(began) = began else {
            return Some(format!(
                "traffic {name} never started: its hosts have not joined"
            ));
        };
        if offered == 0 {
            let tcp = matches!(flow.kind, FlowKind::Tcp | FlowKind::Rr { .. });
            let why = if tcp { ": no connection" } else { "" };
            return Some(format!("traffic {name} never sent anything{why}"));
        }
        if delivered == 0 {
            return Some(format!(
                "traffic {name} delivered nothing of {}{why}",
                counted(offered, "packet", "packets")
            ));
        }
        if matches!(flow.kind, FlowKind::Ping { .. }) && answers == 0 {
            let answers = self.main_reason_of_answers(report);
            let requests = match lost {
                0 => String::new(),
                lost => format!(", and lost {lost} of them{why}"),
            };
            return Some(format!(
                "traffic {name} got no answer to {}{answers}{requests}",
                counted(offered, "request", "requests")
            ));
        }
        let unexplained = report.sum(|path| path.unexplained);
        if unexplained > 0 {
            return Some(format!(
                "traffic {name}: {} gone without a trace",
                counted(unexplained, "packet is", "packets are")
            ));
        }
        let until = flow.duration.map_or(end, |length| end.min(began + length));
        if let Some(stop) = stops::of(self, flow, report, until) {
            return Some(format!("traffic {name} {stop}"));
        }
        if unanswered * ONE_IN > delivered {
            let why = self.main_reason_of_answers(report);
            return Some(format!(
                "traffic {name} got no answer to {unanswered} of {} that arrived{why}",
                counted(delivered, "request", "requests")
            ));
        }
        let elastic = matches!(flow.kind, FlowKind::Tcp | FlowKind::Rr { .. });
        let refused = report.sum(PathReport::refused_packets);
        (!elastic && (refused > 0 || lost * ONE_IN > offered)).then(|| {
            let offered = counted(offered, "packet", "packets");
            format!("traffic {name} lost {lost} of {offered}{why}")
        })
    }

    /// The place where most of a flow's packets were lost or refused.
    fn main_reason(&self, report: &FlowReport) -> String {
        let mut all: BTreeMap<String, u64> = BTreeMap::new();
        for path in &report.paths {
            for (place, packets) in self.lost_by(path) {
                *all.entry(place).or_default() += packets;
            }
            for (refusal, packets) in &path.refused {
                *all.entry(format!("refused, {refusal}")).or_default() += packets;
            }
        }
        most_of(all)
    }

    /// The place where most of the answers to a flow were lost.
    fn main_reason_of_answers(&self, report: &FlowReport) -> String {
        let mut all: BTreeMap<String, u64> = BTreeMap::new();
        for (place, answers) in report.paths.iter().flat_map(|path| &path.answers_lost) {
            *all.entry(self.place(place)).or_default() += answers;
        }
        most_of(all)
    }
}

/// The place with the largest number, in brackets; empty if there is no place.
fn most_of(all: BTreeMap<String, u64>) -> String {
    let most = all.into_iter().max_by_key(|(_, packets)| *packets);
    most.map_or(String::new(), |(place, packets)| {
        format!(" ({place}: {packets})")
    })
}
