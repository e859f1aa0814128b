//! The present state of a lab, as far as it has been told: connections, members, shortcuts, faults.
//!
//! [`Present::changes`] reads the rows that `inspect` shows, but only those that may have changed: the plant knows
//! which nodes had an input, hosts and switches know which calls, entries and table entries changed.

use super::lines::{CallState, FaultState, Line, MemberState, Message, PVC, ShortcutState};
use super::scope::Scope;
use super::told::Told;
use super::ways::{Conn, Ways};
use crate::circuits::Network;
use crate::ladder;
use crate::model::{Lab, LinkId, NodeId, NodeKind, Pvc};
use crate::plant::{Changed, LabNode, Plant};
use aerostat_node::atm::PortVc;
use aerostat_node::host::{Host, HostChanges, Membership, PresentCall, ServiceKind};
use aerostat_node::inspect::mpoa::MpcIngress;
use aerostat_node::inspect::nhrp;
use aerostat_proto::mpoa::messages::FlowName;
use aerostat_proto::{Changes, Instant};
use aerostat_wire::{AtmAddress, Vc};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

/// Name of a shortcut where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Name {
    Mpoa(FlowName),
    Nhrp(Ipv4Addr),
}

/// A name before all others.
const FIRST: Name = Name::Mpoa((AtmAddress([0; 20]), IpAddr::V4(Ipv4Addr::UNSPECIFIED), None));

/// Name of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    Node(NodeId),
    Service(NodeId, ServiceKind),
    Link(LinkId),
}

/// The changes of a node.
enum Of {
    Off,
    Host(HostChanges),
    Switch(Changes<PortVc>),
}

/// Takes the changes of a node.
fn of_node<M>(plant: &mut Plant<LabNode, M>, node: NodeId) -> Of {
    let Some(machine) = plant.node_mut(node) else {
        return Of::Off;
    };
    if let Some(station) = machine.as_station_mut() {
        return Of::Host(station.host_mut().take_changes());
    }
    let switch = machine.as_switch_mut();
    Of::Switch(switch.map_or(Changes::All, |switch| switch.fabric_mut().take_changes()))
}

/// The state that has been told.
pub struct Present<'a> {
    pub(super) lab: &'a Lab,
    pub(super) scope: Scope,
    /// End systems by their addresses without selectors.
    owners: BTreeMap<[u8; 19], NodeId>,
    pub(super) calls: Told<Conn, CallState>,
    pub(super) ways: Ways,
    members: Told<(NodeId, ServiceKind, usize), MemberState>,
    shortcuts: Told<(NodeId, Name), ShortcutState>,
    /// Shortcuts by node and label, and their labels.
    carried: BTreeSet<(NodeId, Vc, Name)>,
    labels: BTreeMap<(NodeId, Name), Vc>,
    faults: Told<Fault, FaultState>,
    /// Time at which each node was switched on.
    since: Vec<Option<Instant>>,
    began: bool,
}

/// Rows to be looked at, and the lines so far.
struct Look {
    t: u64,
    now: Instant,
    lines: Vec<Line>,
    calls: BTreeSet<Conn>,
    flows: BTreeSet<(NodeId, Name)>,
    hosts: BTreeSet<NodeId>,
}

impl<'a> Present<'a> {
    /// Nothing of a whole lab has been told yet.
    #[must_use]
    pub fn new(lab: &'a Lab) -> Self {
        Self::within(lab, Scope::whole())
    }

    /// Nothing of this part of a lab has been told yet.
    pub(super) fn within(lab: &'a Lab, scope: Scope) -> Self {
        let inside = lab.nodes().filter(|(_, node)| !is_outside(&node.kind));
        let owners = inside.filter_map(|(id, node)| Some((system(node.attachment()?.address), id)));
        Self {
            lab,
            scope,
            owners: owners.collect(),
            calls: Told::default(),
            ways: Ways::new(lab),
            members: Told::default(),
            shortcuts: Told::default(),
            carried: BTreeSet::new(),
            labels: BTreeMap::new(),
            faults: Told::default(),
            since: vec![None; lab.nodes.len()],
            began: false,
        }
    }

    /// The lines about what has changed, at the time of the plant.
    pub fn changes<M>(&mut self, plant: &mut Plant<LabNode, M>, changed: Changed) -> Vec<Line> {
        if !self.began {
            return self.read(plant);
        }
        let nodes = changed
            .nodes
            .into_iter()
            .map(|node| (node, of_node(plant, node)));
        let nodes: Vec<(NodeId, Of)> = nodes.collect();
        self.look(plant, nodes, changed.links, BTreeSet::new())
    }

    /// The lines about what differs from what was told, whatever has changed.
    pub fn read<M>(&mut self, plant: &Plant<LabNode, M>) -> Vec<Line> {
        self.began = true;
        let nodes = (0..self.lab.nodes.len()).map(|number| {
            let of = match plant.node(NodeId(number)) {
                None => Of::Off,
                Some(node) if node.as_station().is_some() => Of::Host(HostChanges::default()),
                Some(_) => Of::Switch(Changes::All),
            };
            (NodeId(number), of)
        });
        let links = (0..self.lab.links.len()).map(LinkId).collect();
        let pvcs = (0..self.lab.pvcs.len()).map(Conn::Pvc).collect();
        self.look(plant, nodes.collect(), links, pvcs)
    }

    fn look<M>(
        &mut self,
        plant: &Plant<LabNode, M>,
        nodes: Vec<(NodeId, Of)>,
        links: BTreeSet<LinkId>,
        calls: BTreeSet<Conn>,
    ) -> Vec<Line> {
        let now = plant.now();
        let mut look = Look {
            t: now.as_nanos(),
            now,
            lines: Vec::new(),
            calls,
            flows: BTreeSet::new(),
            hosts: BTreeSet::new(),
        };
        for link in links {
            if !self.scope.has_link(link) {
                continue;
            }
            let down = match (plant.is_cut(link), plant.is_training(link)) {
                (true, _) => Some("is cut"),
                (false, true) => Some("retrains"),
                (false, false) => None,
            };
            self.link(down, link, &mut look);
        }
        for (node, of) in nodes {
            self.node(plant, (node, of), &mut look);
        }
        for conn in std::mem::take(&mut look.calls) {
            self.call(plant, conn, &mut look);
        }
        for node in std::mem::take(&mut look.hosts) {
            let host = plant.station(node).map(|station| station.host());
            self.host(host, node, &mut look);
        }
        let mut of: Option<(NodeId, Known)> = None;
        for (node, name) in std::mem::take(&mut look.flows) {
            let host = plant.station(node).map(|station| station.host());
            let (_, known) = match of.take() {
                Some(of) if of.0 == node => of,
                _ => (node, Known::of(host, now)),
            };
            self.shortcut((host, &known), (node, name), &mut look);
            of = Some((node, known));
        }
        look.lines
    }

    /// The line about a message on a link, with the call that carries it.
    #[must_use]
    pub fn message(&self, at: Instant, (link, vc): (LinkId, Vc), of: ladder::Message) -> Line {
        let conn = self.ways.on(link, vc);
        let call = conn.and_then(|conn| Some(self.calls.get(&conn)?.0));
        Line::Message(Message {
            t: at.as_nanos(),
            link: of.link,
            from: of.from,
            to: of.to,
            vc: of.vc,
            protocol: of.protocol,
            text: of.text,
            dropped: of.dropped,
            call,
        })
    }

    /// All that has been told, as lines at `t`.
    pub fn lines(&self, t: Instant) -> impl Iterator<Item = Line> + '_ {
        let t = t.as_nanos();
        let (calls, members) = (self.calls.lines(t), self.members.lines(t));
        let (shortcuts, faults) = (self.shortcuts.lines(t), self.faults.lines(t));
        calls.chain(members).chain(shortcuts).chain(faults)
    }

    fn name(&self, node: NodeId) -> String {
        self.lab.node(node).name.clone()
    }
    fn owner(&self, address: AtmAddress) -> Option<NodeId> {
        self.owners.get(&system(address)).copied()
    }

    /// Notes a link; `down` says why it is down.
    fn link(&mut self, down: Option<&str>, link: LinkId, look: &mut Look) {
        let name = &self.lab.link(link).name;
        let state = down.map(|why| FaultState {
            what: "link".to_owned(),
            name: name.clone(),
            service: None,
            text: format!("link {name} {why}"),
        });
        let line = self.faults.update(Fault::Link(link), state, look.t);
        look.lines.extend(line);
    }

    /// Notes what of a node is to be looked at.
    fn node<M>(&mut self, plant: &Plant<LabNode, M>, (node, of): (NodeId, Of), look: &mut Look) {
        if is_outside(&self.lab.node(node).kind) || !self.scope.has_node(node) {
            return;
        }
        let on = plant.node(node).is_some().then(|| plant.since(node));
        if self.since[node.0] != on {
            self.since[node.0] = on;
            self.forget(node, look);
            look.calls.extend(self.ways.through(node, None));
        }
        let name = &self.lab.node(node).name;
        let state = matches!(of, Of::Off).then(|| FaultState {
            what: "node".to_owned(),
            name: name.clone(),
            service: None,
            text: format!("{name} is off"),
        });
        let line = self.faults.update(Fault::Node(node), state, look.t);
        look.lines.extend(line);
        match of {
            Of::Off => {}
            Of::Switch(Changes::All) => look.calls.extend(self.ways.through(node, None)),
            Of::Switch(Changes::These(entries)) => {
                let ways = entries.into_iter();
                let ways = ways.flat_map(|entry| self.ways.through(node, Some(entry)));
                look.calls.extend(ways);
            }
            Of::Host(changes) => {
                look.hosts.insert(node);
                let host = plant.station(node).map(|station| station.host());
                self.rows(host, node, changes, look);
            }
        }
    }

    /// Notes which rows of a host are to be looked at.
    fn rows(&self, host: Option<&Host>, node: NodeId, changes: HostChanges, look: &mut Look) {
        let Some(host) = host else { return };
        match changes.calls {
            Changes::These(calls) => {
                let calls = calls.into_iter().map(|call| Conn::Call(node, call));
                look.calls.extend(calls);
            }
            Changes::All => {
                look.calls.extend(self.calls_of(node));
                let calls = host.call_ids().map(|call| Conn::Call(node, call));
                look.calls.extend(calls);
            }
        }
        match changes.flows {
            Changes::These(flows) => {
                let flows = flows.into_iter().map(|flow| (node, Name::Mpoa(flow)));
                look.flows.extend(flows);
            }
            Changes::All => {
                look.flows.extend(self.shortcuts_of(node));
                let flows = host.flows().map(|flow| (node, Name::Mpoa(flow)));
                look.flows.extend(flows);
            }
        }
        // The table of an NHRP client is small, and the client itself walks through it for each timer.
        let mut ways = host.ways(look.now).peekable();
        if ways.peek().is_some() || host.nhrp() {
            let told = self.shortcuts_of(node).into_iter();
            look.flows
                .extend(told.filter(|(_, name)| matches!(name, Name::Nhrp(_))));
            look.flows
                .extend(ways.map(|(to, _)| (node, Name::Nhrp(to))));
        }
    }

    fn calls_of(&self, node: NodeId) -> Vec<Conn> {
        let first = Conn::Call(node, aerostat_proto::uni::CallId(0));
        self.calls.keys_from(
            &first,
            |conn| matches!(conn, Conn::Call(of, _) if *of == node),
        )
    }
    fn shortcuts_of(&self, node: NodeId) -> Vec<(NodeId, Name)> {
        self.shortcuts
            .keys_from(&(node, FIRST), |(of, _)| *of == node)
    }

    /// A node was switched on or off: nothing of what it had is left.
    fn forget(&mut self, node: NodeId, look: &mut Look) {
        for conn in self.calls_of(node) {
            self.ways.forget(conn);
            look.lines.extend(self.calls.update(conn, None, look.t));
        }
        for key in self.shortcuts_of(node) {
            self.label(key, None);
            look.lines.extend(self.shortcuts.update(key, None, look.t));
        }
        for key in self.members_of(node) {
            look.lines.extend(self.members.update(key, None, look.t));
        }
        for key in self.services_of(node) {
            look.lines.extend(self.faults.update(key, None, look.t));
        }
    }
    fn members_of(&self, node: NodeId) -> Vec<(NodeId, ServiceKind, usize)> {
        let first = (node, ServiceKind::Lec, 0);
        self.members.keys_from(&first, |(of, _, _)| *of == node)
    }
    fn services_of(&self, node: NodeId) -> Vec<Fault> {
        let first = Fault::Service(node, ServiceKind::Lec);
        let of_node = |fault: &Fault| matches!(fault, Fault::Service(of, _) if *of == node);
        self.faults.keys_from(&first, of_node)
    }

    /// Tells a connection, and notes the shortcuts that it carries.
    fn call<M>(&mut self, plant: &Plant<LabNode, M>, conn: Conn, look: &mut Look) {
        let before = self.ways.labels_of(conn);
        let state = match conn {
            Conn::Pvc(number) => {
                let mut ends = self.lab.pvcs[number].ends.iter();
                let within = ends.all(|(node, _)| self.scope.has_node(*node));
                within.then(|| self.pvc_state(plant, number))
            }
            Conn::Call(node, id) => {
                let call = plant
                    .station(node)
                    .and_then(|station| station.host().call(id));
                let own = call.filter(|call| call.is_own() && self.is_within(call));
                own.map(|call| self.call_state(plant, conn, node, &call))
            }
        };
        if state.is_none() {
            self.ways.forget(conn);
        }
        let line = self.calls.update(conn, state, look.t);
        let after = self.ways.labels_of(conn);
        if line.is_some() || before != after {
            for (node, vc) in before.into_iter().chain(after) {
                let all = self.carried.range((node, vc, FIRST)..);
                let of = all.take_while(|(of, label, _)| (*of, *label) == (node, vc));
                look.flows.extend(of.map(|(node, _, name)| (*node, *name)));
            }
        }
        look.lines.extend(line);
    }

    /// True unless the other end of a call is out of the scope. A point-to-multipoint call may have more leaves.
    fn is_within(&self, call: &PresentCall) -> bool {
        let to = call.row.called.and_then(|called| self.owner(called));
        call.multipoint || to.is_none_or(|to| self.scope.has_node(to))
    }

    fn call_state<M>(
        &mut self,
        plant: &Plant<LabNode, M>,
        conn: Conn,
        node: NodeId,
        call: &PresentCall,
    ) -> CallState {
        let row = &call.row;
        let to = row.called.and_then(|called| self.owner(called));
        let purpose = row.blli.clone().or_else(|| row.user.clone());
        let before = self.calls.get(&conn).map(|(_, state)| state.what.clone());
        let state = CallState {
            from: self.name(node),
            to: to
                .filter(|to| self.scope.has_node(*to))
                .map(|to| self.name(to)),
            called: row
                .called
                .filter(|_| to.is_none())
                .map(|called| called.to_string()),
            what: purpose.or(before).unwrap_or_default(),
            user: row.user.clone(),
            state: call.phase().to_lowercase(),
            vc: [row.vc.map(|vc| vc.to_string()), None],
            qos: call.qos.to_string(),
            multipoint: call.multipoint,
            parties: row.parties as u64,
            ..CallState::default()
        };
        self.with_way(plant, conn, row.vc.map(|vc| (node, vc)), state)
    }

    fn pvc_state<M>(&mut self, plant: &Plant<LabNode, M>, number: usize) -> CallState {
        let Pvc { ends, qos, .. } = &self.lab.pvcs[number];
        let [(from, vc), (to, _)] = *ends;
        let state = CallState {
            from: self.name(from),
            to: Some(self.name(to)),
            what: PVC.to_owned(),
            state: "connected".to_owned(),
            vc: [Some(vc.to_string()), None],
            qos: qos.to_string(),
            ..CallState::default()
        };
        self.with_way(plant, Conn::Pvc(number), Some((from, vc)), state)
    }

    fn with_way<M>(
        &mut self,
        plant: &Plant<LabNode, M>,
        conn: Conn,
        from: Option<(NodeId, Vc)>,
        mut state: CallState,
    ) -> CallState {
        let way = self.ways.find(conn, plant, from);
        let (scope, hops) = (&self.scope, way.hops.iter());
        let hops = hops.filter(|(link, _)| scope.has_link(*link));
        (state.via, state.labels) = hops
            .map(|(link, vc)| (self.lab.link(*link).name.clone(), vc.to_string()))
            .unzip();
        if state.multipoint {
            let ends = way.ends.iter().filter(|(node, _)| scope.has_node(*node));
            state.leaves = ends
                .map(|(node, _)| self.lab.node(*node).name.clone())
                .collect();
        } else {
            state.vc[1] = way.ends.first().map(|(_, vc)| vc.to_string());
        }
        state
    }

    /// Tells the members and services of a host.
    fn host(&mut self, host: Option<&Host>, node: NodeId, look: &mut Look) {
        let memberships: Vec<Membership> =
            host.iter().flat_map(|host| host.memberships()).collect();
        let mut told: BTreeSet<_> = self.members_of(node).into_iter().collect();
        for member in &memberships {
            let key = (node, member.kind, member.interface);
            told.remove(&key);
            let state = self.member_state(node, member);
            look.lines
                .extend(self.members.update(key, Some(state), look.t));
        }
        for key in told {
            look.lines.extend(self.members.update(key, None, look.t));
        }
        let crashed: BTreeSet<ServiceKind> = host.iter().flat_map(|host| host.crashed()).collect();
        let mut told: BTreeSet<_> = self.services_of(node).into_iter().collect();
        for kind in crashed {
            let key = Fault::Service(node, kind);
            told.remove(&key);
            let name = self.name(node);
            let state = FaultState {
                what: "service".to_owned(),
                text: format!("{kind} of {name} is off"),
                name,
                service: Some(kind.name().to_owned()),
            };
            look.lines
                .extend(self.faults.update(key, Some(state), look.t));
        }
        for key in told {
            look.lines.extend(self.faults.update(key, None, look.t));
        }
    }

    fn member_state(&self, node: NodeId, member: &Membership) -> MemberState {
        let of = self.lab.node(node);
        let client = of.lecs().get(member.interface);
        let network = client.map(|client| self.lab.elan(client.elan).name.clone());
        MemberState {
            node: of.name.clone(),
            network,
            by: match member.kind {
                ServiceKind::Lec => "lane",
                ServiceKind::Nhc => "nhrp",
                ServiceKind::Line => "line",
                _ => "clip",
            }
            .to_owned(),
            state: match member.joined {
                true => "joined".to_owned(),
                false => member.state.to_string(),
            },
            lecid: Some(member.lecid).filter(|lecid| *lecid != 0),
        }
    }

    /// Notes the label of a shortcut.
    fn label(&mut self, key: (NodeId, Name), vc: Option<Vc>) {
        let (node, name) = key;
        let before = match vc {
            Some(vc) => self.labels.insert(key, vc),
            None => self.labels.remove(&key),
        };
        if before != vc {
            if let Some(before) = before {
                self.carried.remove(&(node, before, name));
            }
            self.carried.extend(vc.map(|vc| (node, vc, name)));
        }
    }

    /// Tells a shortcut.
    fn shortcut(
        &mut self,
        (host, known): (Option<&Host>, &Known),
        key: (NodeId, Name),
        look: &mut Look,
    ) {
        let (node, name) = key;
        let seen = match name {
            Name::Mpoa(flow) => host.and_then(|host| of_mpoa(&host.flow(&flow, look.now)?)),
            Name::Nhrp(to) => known.0.get(&to).and_then(of_nhrp),
        };
        let vc = seen.as_ref().and_then(|seen| seen.vc);
        self.label(key, vc);
        let state = seen.map(|seen| {
            let call = seen.vc.and_then(|vc| self.ways.at(node, vc));
            let to = seen.egress.and_then(|egress| self.owner(egress));
            let to = to.filter(|to| self.scope.has_node(*to));
            ShortcutState {
                from: self.name(node),
                to: to.map(|to| self.name(to)),
                dest: seen.dest,
                by: seen.by.to_owned(),
                state: seen.state.to_owned(),
                vc: seen.vc.map(|vc| vc.to_string()),
                call: call.and_then(|conn| Some(self.calls.get(&conn)?.0)),
                traffic: seen.traffic,
            }
        });
        look.lines.extend(self.shortcuts.update(key, state, look.t));
    }
}

/// The destinations that the NHRP client of a host knows.
struct Known(BTreeMap<Ipv4Addr, nhrp::Way>);

impl Known {
    fn of(host: Option<&Host>, now: Instant) -> Self {
        Self(host.iter().flat_map(|host| host.ways(now)).collect())
    }
}

/// A shortcut as its owner sees it.
struct Seen {
    dest: String,
    by: &'static str,
    state: &'static str,
    egress: Option<AtmAddress>,
    vc: Option<Vc>,
    traffic: Option<String>,
}

/// A row of `inspect mpc` as a shortcut; `None` while packets are only counted.
fn of_mpoa(row: &MpcIngress) -> Option<Seen> {
    let vc = row.vpi.zip(row.vci).map(|(vpi, vci)| Vc::new(vpi, vci));
    let state = match (&*row.state, vc) {
        ("resolving", None) => "resolving",
        ("resolving" | "refreshing", Some(_)) => "refreshing",
        ("resolved", Some(_)) => "open",
        ("resolved" | "refreshing", None) => "resolved",
        ("hold down", _) => "hold-down",
        _ => return None,
    };
    Some(Seen {
        dest: row.destination.to_string(),
        by: "mpoa",
        state,
        egress: row.egress,
        vc,
        traffic: row.protocol.is_some().then(|| row.traffic.to_string()),
    })
}

/// A row of `inspect nhrp` as a shortcut; `None` without information.
fn of_nhrp(row: &nhrp::Way) -> Option<Seen> {
    let state = match &*row.state {
        "asking" => "resolving",
        "known" => "resolved",
        "shortcut" => "open",
        "refused" => "hold-down",
        _ => return None,
    };
    Some(Seen {
        dest: row.destination.clone(),
        by: "nhrp",
        state,
        egress: row.atm,
        vc: row.vc,
        traffic: None,
    })
}

fn is_outside(kind: &NodeKind) -> bool {
    matches!(kind, NodeKind::Outside(_))
}

/// An ATM address without its selector.
fn system(address: AtmAddress) -> [u8; 19] {
    let mut body = [0; 19];
    body.copy_from_slice(&address.0[..19]);
    body
}
