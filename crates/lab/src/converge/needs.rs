//! Needs of changes: those that a running lab takes, and those for which a node has to start again.
//!
//! A machine is made from its part of the lab at its start. Only those changes are made in a running machine for which
//! it has an input; any other change of its part needs a restart of its node.

use super::plan::{Act, Needs};
use crate::build::{Flavour, flow_ports, is_kernel, trunk_version};
use crate::model::{
    ElanId, FlowKind, Host, Lab, LaneServer, Link, LinkId, NodeId, NodeKind, Pvc, Router, Scale,
    Switch,
};
use std::collections::BTreeSet;

/// The way in which a lab runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Means {
    /// The nodes that are Linux kernels.
    pub flavour: Flavour,
    /// True if daemons are processes of their own.
    pub split: bool,
    /// True if the command that asks makes interfaces of the kernel, for which a running lab has no right.
    pub makes: bool,
}

/// Interfaces that only the start of a lab can make.
const KERNEL: &str = "a lab that runs has no right to make or change interfaces of the kernel";
/// Interfaces of hosts that bridge are tied to the process that moves stations.
const BRIDGE: &str = "bridges of kernel hosts are made at the start of the lab";
/// The far ends of links out of the lab have sockets.
const SOCKET: &str = "sockets of links out of the lab are opened at its start";
/// Daemons in processes of their own have their seats from the start.
const SEATS: &str = "with --split, the daemons of all nodes are known from the start";

/// True if a node of the file is the one that runs. The ports of a switch are those of its links.
pub(super) fn same_node(old: &NodeKind, new: &NodeKind) -> bool {
    match (old, new) {
        (NodeKind::Switch(old), NodeKind::Switch(new)) => {
            let ports = old.ports.clone();
            *old == Switch {
                ports,
                ..new.clone()
            }
        }
        _ => old == new,
    }
}

fn restart(lab: &Lab, nodes: impl IntoIterator<Item = NodeId>) -> Needs {
    let nodes: BTreeSet<String> = nodes
        .into_iter()
        .map(|id| lab.node(id).name.clone())
        .collect();
    match nodes.is_empty() {
        true => Needs::Nothing,
        false => Needs::Restart(nodes),
    }
}

fn new_start(reason: &str) -> Needs {
    Needs::NewStart(reason.to_owned())
}

fn is_switch(lab: &Lab, id: NodeId) -> bool {
    matches!(lab.node(id).kind, NodeKind::Switch(_))
}

/// Needs of a node to be added, removed or changed.
pub(super) fn of_node([old, new]: [&Lab; 2], id: NodeId, act: Act, means: Means) -> Needs {
    let kernel = is_kernel(new, id, means.flavour);
    let kind = &new.node(id).kind;
    match kind {
        NodeKind::Outside(_) => return new_start(SOCKET),
        NodeKind::LaneServer(_) if act != Act::Change => {
            return new_start("hosts of LANE services are known from the start");
        }
        _ => {}
    }
    if act == Act::Change {
        if takes(&old.node(id).kind, kind, (kernel, means.flavour)) {
            return match means.split {
                true => new_start(SEATS),
                false => Needs::Nothing,
            };
        }
        if let Some(why) = obstacle([old, new], id, means) {
            return new_start(why);
        }
        if direct(old, id) != direct(new, id) {
            return new_start("a link between two end systems is made at its start");
        }
        return restart(new, [id]);
    }
    if direct(new, id) {
        return new_start("a link between two end systems is made at its start");
    }
    match obstacle([old, new], id, means) {
        Some(why) => new_start(why),
        None if means.split => new_start(SEATS),
        None => Needs::Nothing,
    }
}

/// Interfaces of kernel nodes that come and go with a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interfaces {
    /// Nodes that get interfaces.
    pub made: BTreeSet<NodeId>,
    /// Nodes whose interfaces go, also if they get new ones.
    pub gone: BTreeSet<NodeId>,
}

impl Interfaces {
    /// Interfaces that come and go when the lab `old` becomes `new`, which has the same indices.
    #[must_use]
    pub fn between(old: &Lab, new: &Lab, flavour: Flavour) -> Self {
        let mut all = Self::default();
        for id in (0..new.nodes.len()).map(NodeId) {
            all.add([old, new], id, flavour);
        }
        all
    }

    fn add(&mut self, labs: [&Lab; 2], id: NodeId, flavour: Flavour) {
        let [was, is] = labs
            .map(|lab| lab.nodes.len() > id.0 && lab.has_node(id) && is_kernel(lab, id, flavour));
        let [old, new] = labs;
        if !(was && is) || has_other_interfaces(old, new, id) {
            self.gone.extend(was.then_some(id));
            self.made.extend(is.then_some(id));
        }
    }

    /// True if nothing comes or goes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.made.is_empty() && self.gone.is_empty()
    }
}

/// Reason why the interfaces of a node cannot become those of the new lab while the lab runs, if they are others.
fn obstacle([old, new]: [&Lab; 2], id: NodeId, means: Means) -> Option<&'static str> {
    let mut others = Interfaces::default();
    others.add([old, new], id, means.flavour);
    let bridges = |lab: &Lab| match lab.nodes.get(id.0).map(|node| &node.kind) {
        Some(NodeKind::Host(host)) => host.bridges(),
        _ => false,
    };
    match () {
        () if others.is_empty() => None,
        () if !means.makes => Some(KERNEL),
        () if bridges(old) || bridges(new) => Some(BRIDGE),
        () => None,
    }
}

/// True if an end system is not at a switch.
fn direct(lab: &Lab, id: NodeId) -> bool {
    let at = lab.node(id).attachment();
    at.is_some_and(|at| !is_switch(lab, at.switch))
}

/// True if the kernel's interfaces of a node are others.
fn has_other_interfaces(old: &Lab, new: &Lab, id: NodeId) -> bool {
    let of = |lab: &Lab| {
        let lecs = lab.node(id).lecs().iter();
        let own = lecs.map(|lec| {
            let elan = lab.elan(lec.elan);
            (
                lec.mac,
                lec.ip,
                elan.subnet,
                elan.kind(),
                elan.ip6,
                lab.mtu_of(lec),
            )
        });
        own.collect::<Vec<_>>()
    };
    let more = match [old, new].map(|lab| &lab.node(id).kind) {
        [NodeKind::Host(old), NodeKind::Host(new)] => {
            let mut like = Host::clone(old);
            like.routes.clone_from(&new.routes);
            like.neighbours.clone_from(&new.neighbours);
            like.bridge.clone_from(&new.bridge);
            like.tcp.clone_from(&new.tcp);
            like.proxy.clone_from(&new.proxy);
            like.vlans.clone_from(&new.vlans);
            like != *old
        }
        [NodeKind::Router(old), NodeKind::Router(new)] => old.routes != new.routes,
        _ => false,
    };
    of(old) != of(new) || more
}

/// True if the machine of a node takes this change while it runs.
fn takes(old: &NodeKind, new: &NodeKind, (kernel, flavour): (bool, Flavour)) -> bool {
    match (old, new) {
        (NodeKind::Host(old), NodeKind::Host(new)) => {
            let mut like = Host::clone(old);
            if flavour == Flavour::Embedded {
                // The key is without effect.
                like.kernel = new.kernel;
            }
            if !kernel {
                like.routes.clone_from(&new.routes);
            }
            if old.mpoa.is_none() {
                like.mpoa.clone_from(&new.mpoa);
            }
            like == *new
        }
        (NodeKind::Router(old), NodeKind::Router(new)) => {
            let mut like = Router::clone(old);
            if flavour == Flavour::Embedded {
                like.kernel = new.kernel;
            }
            if !kernel {
                like.routes.clone_from(&new.routes);
            }
            like == *new
        }
        // The LECS alone starts anew, which no client notices.
        (NodeKind::LaneServer(old), NodeKind::LaneServer(new)) => {
            let LaneServer {
                policies, default, ..
            } = new.clone();
            *new == LaneServer {
                policies,
                default,
                ..old.clone()
            }
        }
        _ => false,
    }
}

/// Needs of a link to be added, removed or changed.
pub(super) fn of_link([old, new]: [&Lab; 2], id: LinkId, act: Act) -> Needs {
    let link = new.link(id);
    let ends = link.ends.map(|end| end.node);
    let switches = || ends.into_iter().filter(|end| is_switch(new, *end));
    if switches().next().is_none() {
        return new_start("a link between two end systems is made at its start");
    }
    if act != Act::Change {
        return Needs::Nothing;
    }
    let before = old.link(id);
    if before.framing != link.framing {
        return new_start("the frames of a line are those of its start");
    }
    let lines = before.lines;
    let like = Link {
        lines,
        ..link.clone()
    };
    match *before == like {
        true => Needs::Nothing,
        false => restart(new, switches()),
    }
}

/// Needs of an ELAN or a subnet to be added, removed or changed.
pub(super) fn of_subnet([old, new]: [&Lab; 2], id: ElanId, act: Act, means: Means) -> Needs {
    let elan = new.elan(id);
    let was = old.elans.get(id.0).unwrap_or(elan);
    if elan.foreign.is_some() || was.foreign.is_some() {
        return new_start("switches know the servers outside the lab from the start");
    }
    let servers = new.nodes().filter(|_| elan.is_lane());
    let servers = servers.filter(|(_, node)| matches!(node.kind, NodeKind::LaneServer(_)));
    let servers: Vec<NodeId> = servers.map(|(id, _)| id).collect();
    match act {
        Act::Add | Act::Remove if means.split && !servers.is_empty() => new_start(SEATS),
        Act::Add | Act::Remove => Needs::Nothing,
        Act::Change => {
            let members = new.nodes().filter(|(member, node)| {
                let on = |lab: &Lab| lab.node(*member).lecs().iter().any(|lec| lec.elan == id);
                !node.lecs().is_empty() && on(new) && old.nodes.len() > member.0 && on(old)
            });
            let members: Vec<NodeId> = members.map(|(id, _)| id).collect();
            let mut obstacles = members
                .iter()
                .filter_map(|id| obstacle([old, new], *id, means));
            if let Some(why) = obstacles.next() {
                return new_start(why);
            }
            restart(new, servers.into_iter().chain(members))
        }
    }
}

/// Needs of a permanent connection to be added, removed or changed to `then`.
pub(super) fn of_pvc([old, new]: [&Lab; 2], (pvc, then): (&Pvc, Option<&Pvc>), act: Act) -> Needs {
    let lab = if act == Act::Add { new } else { old };
    // A host sends by the new contract of a connection that it has.
    if let Some(then) = then {
        let mut like = pvc.clone();
        like.qos = then.qos;
        like.police = then.police;
        like.queue = then.queue;
        like.hops.clone_from(&then.hops);
        if like == *then {
            return Needs::Nothing;
        }
    }
    let uses = |(id, _): &(NodeId, _)| {
        let there = new.nodes.len() > id.0 && new.has_node(*id);
        let was = old.nodes.len() > id.0 && old.has_node(*id);
        let node = lab.node(*id);
        let on_clip = |lec: &crate::model::Lec| lab.elan(lec.elan).clip.is_some();
        let ilmi = matches!(&node.kind, NodeKind::Host(host) if host.ilmi);
        let carries = pvc.line.is_some() || node.lecs().iter().any(on_clip) || ilmi;
        // A host that comes or goes is made with its connections.
        there && was && carries
    };
    let users = pvc.ends.iter().filter(|end| uses(end)).map(|(id, _)| *id);
    restart(lab, users)
}

/// Needs of a flow to be added or changed.
pub(super) fn of_flow(new: &Lab, id: usize) -> Needs {
    let flow = &new.traffic[id];
    let udp = |kind: FlowKind| matches!(kind, FlowKind::Udp { .. });
    let there = new.traffic.iter().enumerate();
    let mut others = there.filter(|(other, _)| *other != id && !new.retired.flows.contains(other));
    let clash = others.find(|(other, one)| {
        let ports = [flow_ports(flow, id), flow_ports(one, *other)];
        let [Some(own), Some(theirs)] = ports else {
            return false;
        };
        let sink = (one.to, one.segment[1]) == (flow.to, flow.segment[1]);
        let source = (one.from, one.segment[0]) == (flow.from, flow.segment[0]);
        udp(one.kind) == udp(flow.kind)
            && (sink && own[1] == theirs[1] || source && own[0] == theirs[0])
    });
    match clash {
        Some((_, other)) => Needs::NewStart(format!(
            "at its place among the flows of this lab it has a port of flow {}: give it a 'port:'",
            other.name
        )),
        None => Needs::Nothing,
    }
}

/// A key of the whole lab.
pub(super) struct Whole {
    /// Its name in the settings.
    pub(super) key: &'static str,
    /// True if it has not changed.
    pub(super) same: bool,
    /// Reason why a change needs a new start of the lab; `None` if it needs nothing.
    pub(super) why: Option<&'static str>,
}

/// Keys of the whole lab.
pub(super) fn of_lab(old: &Lab, new: &Lab) -> impl Iterator<Item = Whole> {
    let before = crate::build::room(old, &Scale::of(old));
    let after = crate::build::room(new, &Scale::counted(new));
    let fits = before
        .iter()
        .zip(&after)
        .all(|(before, after)| after <= before);
    let all = [
        (
            "seed",
            old.seed == new.seed,
            Some("random streams begin with the lab"),
        ),
        (
            "timers",
            old.timers == new.timers,
            Some("all nodes have the timers of their start"),
        ),
        (
            "limits",
            old.limits == new.limits && fits,
            Some("all nodes have the limits of their start, which depend on the number of clients"),
        ),
        (
            "capture",
            old.capture == new.capture,
            Some("the recording begins with the lab"),
        ),
        (
            "occupancy",
            old.occupancy == new.occupancy,
            Some("samples begin with the lab"),
        ),
        (
            "sockets",
            old.sockets_group == new.sockets_group,
            Some("the sockets for programs are opened at its start"),
        ),
        (
            "uni",
            trunk_version(old) == trunk_version(new) || old.switches().count() < 2,
            Some("the highest version of its nodes is that of all links between switches"),
        ),
        ("names", old.names == new.names, None),
        (
            "until_s",
            old.until == new.until && old.description == new.description,
            None,
        ),
        ("expect", old.sockets_expect == new.sockets_expect, None),
    ];
    all.into_iter()
        .map(|(key, same, why)| Whole { key, same, why })
}
