//! Indices of a running lab for the parts of a resolved file.

use crate::model::{
    Attachment, Elan, ElanId, FaultKind, Flow, Lab, Link, LinkEnd, LinkId, LoadOf, Node, NodeId,
    NodeKind, Port, Pvc, Scale, Switch,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::mem::discriminant;

/// Limit of parts that were removed from a running lab, all changes together.
pub const MOST_RETIRED: usize = 20_000;

/// Reason why a file cannot be given the indices of a running lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// Parts that would have been removed from the lab.
    retired: usize,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { retired } = self;
        write!(
            f,
            "{retired} parts would have been removed from this lab since its start; the limit is {MOST_RETIRED}"
        )
    }
}

/// Indices in the running lab, by those in the resolved file.
struct Places {
    nodes: Vec<NodeId>,
    links: Vec<LinkId>,
    elans: Vec<ElanId>,
    /// Ports of switches: by the index of the link in the file, at its two ends.
    ports: Vec<[u16; 2]>,
}

/// The resolved file `next` with the indices of the lab that runs; what the file does not have is retired.
///
/// # Errors
/// If too much would have been removed from the lab.
pub fn beside(running: &Lab, next: &Lab) -> Result<Lab, Obstacle> {
    let places = Places::find(running, next);
    let mut lab = next.clone();
    lab.retired = running.retired.clone();
    lab.retired.start = Some(Scale::of(running));
    places.nodes(running, next, &mut lab);
    places.links(running, next, &mut lab);
    places.elans(running, next, &mut lab);
    places.flows(running, next, &mut lab);
    places.events(next, &mut lab);
    match lab.retired.count() {
        retired if retired > MOST_RETIRED => Err(Obstacle { retired }),
        _ => Ok(lab),
    }
}

/// The place of each entry of `wanted`: the first entry of `old` that `same` takes, or a new one at the end. An entry
/// that is there comes before those that were removed.
fn assign<'a, A, B: 'a>(
    old: &'a [A],
    wanted: &'a [B],
    key_of_old: impl Fn(usize, &'a A) -> String,
    key: impl Fn(&'a B) -> String,
    same: impl Fn(usize, &'a A, &'a B) -> bool,
    there: impl Fn(usize) -> bool,
) -> Vec<usize> {
    let mut by_key: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (place, one) in old.iter().enumerate() {
        by_key
            .entry(key_of_old(place, one))
            .or_default()
            .push(place);
    }
    for places in by_key.values_mut() {
        places.sort_by_key(|place| !there(*place));
    }
    let mut next = old.len();
    let place = |one: &'a B| {
        let known = by_key.get_mut(&key(one));
        let found = known.and_then(|places| {
            let at = places
                .iter()
                .position(|place| same(*place, &old[*place], one))?;
            Some(places.remove(at))
        });
        found.unwrap_or_else(|| {
            next += 1;
            next - 1
        })
    };
    wanted.iter().map(place).collect()
}

impl Places {
    fn find(running: &Lab, next: &Lab) -> Self {
        let nodes = assign(
            &running.nodes,
            &next.nodes,
            |_, node: &Node| node.name.clone(),
            |node: &Node| node.name.clone(),
            |_, old: &Node, new: &Node| discriminant(&old.kind) == discriminant(&new.kind),
            |place| running.has_node(NodeId(place)),
        );
        let nodes: Vec<NodeId> = nodes.into_iter().map(NodeId).collect();
        let links = assign(
            &running.links,
            &next.links,
            |_, link: &Link| link.name.clone(),
            |link: &Link| link.name.clone(),
            |place, old: &Link, new: &Link| {
                let ends = new.ends.map(|end| nodes[end.node.0]);
                let there = running.has_link(LinkId(place));
                // The ports of switches are as they were when the link was removed.
                old.ends.map(|end| end.node) == ends && (there || has_same_ports(old, new))
            },
            |place| running.has_link(LinkId(place)),
        );
        let elans = assign(
            &running.elans,
            &next.elans,
            |_, elan: &Elan| elan.name.clone(),
            |elan: &Elan| elan.name.clone(),
            |_, old: &Elan, new: &Elan| old.kind() == new.kind() && old.is_own() == new.is_own(),
            |place| running.has_elan(ElanId(place)),
        );
        let links: Vec<LinkId> = links.into_iter().map(LinkId).collect();
        let ports = ports(running, next, &nodes, &links);
        Self {
            nodes,
            links,
            elans: elans.into_iter().map(ElanId).collect(),
            ports,
        }
    }

    fn node(&self, id: &mut NodeId) {
        *id = self.nodes[id.0];
    }
    fn link(&self, id: &mut LinkId) {
        *id = self.links[id.0];
    }
    fn elan(&self, id: &mut ElanId) {
        *id = self.elans[id.0];
    }

    /// Number of the port at the end `end` of a link of the file.
    fn port(&self, link: LinkId, end: usize) -> u16 {
        self.ports[link.0][end]
    }

    fn attachment(&self, own: NodeId, next: &Lab, at: &mut Attachment) {
        let ends = next.links.get(at.link.0).map(|link| link.ends);
        if let Some(far) = ends.and_then(|ends| ends.iter().position(|end| end.node != own)) {
            at.port = self.port(at.link, far).into();
            self.link(&mut at.link);
        }
        self.node(&mut at.switch);
    }

    fn nodes(&self, running: &Lab, next: &Lab, lab: &mut Lab) {
        let mut all: Vec<Option<Node>> = running.nodes.iter().cloned().map(Some).collect();
        let there: BTreeSet<NodeId> = self.nodes.iter().copied().collect();
        for (id, node) in next.nodes.iter().enumerate() {
            let place = self.nodes[id];
            let mut node = node.clone();
            self.kind(NodeId(id), next, &mut node.kind);
            if let NodeKind::Switch(new) = &mut node.kind {
                let old = running.nodes.get(place.0).map(|old| &old.kind);
                self.switch(NodeId(id), next, old, new);
            }
            all.resize(all.len().max(place.0 + 1), None);
            all[place.0] = Some(node);
        }
        let gone = (0..running.nodes.len()).map(NodeId);
        lab.retired
            .nodes
            .extend(gone.filter(|id| !there.contains(id)));
        lab.retired.nodes.retain(|id| !there.contains(id));
        lab.nodes = all.into_iter().flatten().collect();
    }

    fn kind(&self, id: NodeId, next: &Lab, kind: &mut NodeKind) {
        match kind {
            NodeKind::Switch(_) => {}
            NodeKind::LaneServer(server) => {
                self.attachment(id, next, &mut server.attachment);
                server.default.iter_mut().for_each(|elan| self.elan(elan));
            }
            NodeKind::Router(router) => {
                self.attachment(id, next, &mut router.attachment);
                router
                    .lecs
                    .iter_mut()
                    .for_each(|lec| self.elan(&mut lec.elan));
            }
            NodeKind::Host(host) => {
                self.attachment(id, next, &mut host.attachment);
                host.lecs
                    .iter_mut()
                    .for_each(|lec| self.elan(&mut lec.elan));
                host.bridge
                    .iter_mut()
                    .for_each(|one| self.elan(&mut one.elan));
            }
            NodeKind::Outside(outside) => self.attachment(id, next, &mut outside.attachment),
        }
    }

    /// Gives a switch of the file the ports that it has, and further ones for new links.
    fn switch(&self, id: NodeId, next: &Lab, old: Option<&NodeKind>, switch: &mut Switch) {
        let mut ports: BTreeMap<usize, Port> = match old {
            Some(NodeKind::Switch(old)) => old.ports.iter().copied_ports().collect(),
            _ => BTreeMap::new(),
        };
        for (number, port) in switch.ports.drain(..).enumerate() {
            let mut port = port;
            let ends = next.link(port.link).ends;
            let here = LinkEnd {
                node: id,
                port: number as u16,
            };
            let end = usize::from(ends[0] != here);
            let place = self.port(port.link, end);
            self.link(&mut port.link);
            self.node(&mut port.peer);
            ports.insert(place.into(), port);
        }
        switch.ports = ports.into_values().collect();
    }

    fn links(&self, running: &Lab, next: &Lab, lab: &mut Lab) {
        let mut all: Vec<Option<Link>> = running.links.iter().cloned().map(Some).collect();
        let there: BTreeSet<LinkId> = self.links.iter().copied().collect();
        for (id, link) in next.links.iter().enumerate() {
            let place = self.links[id].0;
            let mut link = link.clone();
            for (end, port) in link.ends.iter_mut().zip(self.ports[id]) {
                self.node(&mut end.node);
                end.port = port;
            }
            all.resize(all.len().max(place + 1), None);
            all[place] = Some(link);
        }
        let gone = (0..running.links.len()).map(LinkId);
        lab.retired
            .links
            .extend(gone.filter(|id| !there.contains(id)));
        lab.retired.links.retain(|id| !there.contains(id));
        lab.links = all.into_iter().flatten().collect();
    }

    fn elans(&self, running: &Lab, next: &Lab, lab: &mut Lab) {
        let mut all: Vec<Option<Elan>> = running.elans.iter().cloned().map(Some).collect();
        let there: BTreeSet<ElanId> = self.elans.iter().copied().collect();
        for (id, elan) in next.elans.iter().enumerate() {
            let place = self.elans[id].0;
            let mut elan = elan.clone();
            if let Some(server) = elan.clip.as_mut().and_then(|lis| lis.server.as_mut()) {
                self.node(server);
            }
            if let Some(network) = elan.line.as_mut().and_then(|line| line.into.as_mut()) {
                self.elan(network);
            }
            if let Some((caller, _)) = elan.line.as_mut().and_then(|line| line.calls.as_mut()) {
                self.node(caller);
            }
            all.resize(all.len().max(place + 1), None);
            all[place] = Some(elan);
        }
        let gone = (0..running.elans.len()).map(ElanId);
        lab.retired
            .elans
            .extend(gone.filter(|id| !there.contains(id)));
        lab.retired.elans.retain(|id| !there.contains(id));
        lab.elans = all.into_iter().flatten().collect();
    }

    /// A flow that changes is a new one: its ports follow from its place. The former one keeps its figures.
    fn flows(&self, running: &Lab, next: &Lab, lab: &mut Lab) {
        let mut all = running.traffic.clone();
        let mut there = BTreeSet::new();
        for flow in &next.traffic {
            let mut flow = flow.clone();
            self.node(&mut flow.from);
            self.node(&mut flow.to);
            flow.over.iter_mut().for_each(|elan| self.elan(elan));
            let of = flow.load.as_mut().map(|load| &mut load.of);
            if let Some(LoadOf::Cells { link, .. }) = of {
                self.link(link);
            }
            // Packets of a sender with another address are others to its receiver.
            let sender = |lab: &Lab| {
                let node = lab.nodes.get(flow.from.0)?;
                Some(node.lecs().iter().map(|lec| lec.ip).collect::<Vec<_>>())
            };
            let moved = sender(running) != sender(lab);
            let runs = |place: &usize| !moved && !running.retired.flows.contains(place);
            let same = running.traffic.iter().position(|one| *one == flow);
            let place = same.filter(runs).unwrap_or_else(|| {
                all.push(flow);
                all.len() - 1
            });
            there.insert(place);
        }
        let gone = (0..running.traffic.len()).filter(|place| !there.contains(place));
        lab.retired.flows.extend(gone);
        rename(&mut all, &there);
        lab.traffic = all;
    }

    /// Parts that keep the order of the file.
    fn events(&self, next: &Lab, lab: &mut Lab) {
        for pvc in &mut lab.pvcs {
            self.pvc(next, pvc);
        }
        let expect = std::mem::take(&mut lab.sockets_expect).into_iter();
        lab.sockets_expect = expect
            .map(|((id, index), expect)| ((self.nodes[id.0], index), expect))
            .collect();
        for fault in &mut lab.faults {
            match &mut fault.what {
                FaultKind::Crash(node, _) | FaultKind::Restart(node, _) => self.node(node),
                FaultKind::LinkDown(link)
                | FaultKind::LinkUp(link)
                | FaultKind::Change(link, _)
                | FaultKind::Reset(link)
                | FaultKind::Retrain(link, ..)
                | FaultKind::Trained(link, _) => self.link(link),
            }
        }
        lab.capture.iter_mut().for_each(|link| self.link(link));
        for link in lab.occupancy.iter_mut().flat_map(|all| &mut all.links) {
            self.link(link);
        }
    }

    fn pvc(&self, next: &Lab, pvc: &mut Pvc) {
        for (node, _) in &mut pvc.ends {
            self.node(node);
        }
        for hop in &mut pvc.hops {
            let NodeKind::Switch(switch) = &next.node(hop.switch).kind else {
                continue;
            };
            for (port, _) in [&mut hop.from, &mut hop.to] {
                let link = switch.ports[*port].link;
                let here = LinkEnd {
                    node: hop.switch,
                    port: *port as u16,
                };
                let end = usize::from(next.link(link).ends[0] != here);
                *port = self.port(link, end).into();
            }
            self.node(&mut hop.switch);
        }
        pvc.line.iter_mut().for_each(|elan| self.elan(elan));
    }
}

/// Gives flows that were removed names that no other flow has.
fn rename(flows: &mut [Flow], there: &BTreeSet<usize>) {
    let mut names: BTreeSet<String> = there.iter().map(|at| flows[*at].name.clone()).collect();
    let mut former: BTreeMap<String, usize> = BTreeMap::new();
    let gone = flows.iter_mut().enumerate();
    for (_, flow) in gone.filter(|(place, _)| !there.contains(place)) {
        while !names.insert(flow.name.clone()) {
            let base = flow.name.split('~').next().unwrap_or_default().to_owned();
            let number = former.entry(base.clone()).or_default();
            *number += 1;
            flow.name = format!("{base}~{number}");
        }
    }
}

/// Ports with their numbers.
trait Numbered {
    fn copied_ports(self) -> impl Iterator<Item = (usize, Port)>;
}

impl<'a, I: Iterator<Item = &'a Port>> Numbered for I {
    fn copied_ports(self) -> impl Iterator<Item = (usize, Port)> {
        self.cloned().enumerate()
    }
}

/// True if a switch makes the same port for both links.
fn has_same_ports(old: &Link, new: &Link) -> bool {
    let rates = |link: &Link| link.lines.map(|line| line.rate);
    let lines = old.lines;
    let others = Link {
        ends: old.ends,
        lines,
        ..new.clone()
    };
    *old == others && rates(old) == rates(new)
}

/// The ports of each link of the file at its two ends: those of the link that runs, or the next ones of its switches.
fn ports(running: &Lab, next: &Lab, nodes: &[NodeId], links: &[LinkId]) -> Vec<[u16; 2]> {
    let mut free: BTreeMap<NodeId, u16> = BTreeMap::new();
    let of = |(link, place): (&Link, &LinkId)| {
        if let Some(known) = running.links.get(place.0) {
            return known.ends.map(|end| end.port);
        }
        link.ends.map(|end| {
            if !matches!(next.node(end.node).kind, NodeKind::Switch(_)) {
                return 0;
            }
            let place = nodes[end.node.0];
            let known = running.nodes.get(place.0).map(|node| &node.kind);
            let used = match known {
                Some(NodeKind::Switch(switch)) => switch.ports.len() as u16,
                _ => 0,
            };
            let port = free.entry(place).or_insert(used);
            *port += 1;
            *port - 1
        })
    };
    next.links.iter().zip(links).map(of).collect()
}
