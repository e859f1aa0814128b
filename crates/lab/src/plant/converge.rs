//! A running lab becomes another one: parts are added, changed and removed, and everything else goes on.
//!
//! The new lab has the indices of the running one ([`crate::converge::beside`]). What goes, goes first; then the lab
//! grows, and what is new or starts again is switched on at one instant.

use super::changes::Change as _;
use super::{LinkConfig, LinkId, NodeId, Operation};
use crate::build::{Builder, permanents, programs_of, static_routes};
use crate::model::{Lab, LaneServer, LineChange, NodeKind, Pvc};
use aerostat_node::host::{HostCommand, ServiceKind};
use aerostat_node::ip::apps::AppCommand;
use aerostat_node::switch::{PermanentError, PortNo};
use aerostat_proto::Instant;
use std::collections::BTreeSet;

/// A permanent connection that a switch does not take: its index in the new lab, the switch, and the reason.
pub type Refused = (usize, NodeId, PermanentError);

/// Drivers whose labs change.
pub trait Converge: Operation {
    /// The two directions of a new link.
    fn media(&self, lab: &Lab, link: LinkId) -> [Self::Medium; 2];

    /// Makes the running lab `old` that of the builder; these nodes start again. Returns permanent connections that
    /// there was no room for, which are left out.
    fn converge(
        &mut self,
        old: &Lab,
        builder: &Builder<'_>,
        again: &BTreeSet<NodeId>,
    ) -> Vec<Refused> {
        let new = builder.lab();
        self.advance_all();
        self.end_flows(old, new);
        self.remove_pvcs(old, new);
        let gone = (old.nodes()).filter(|(id, _)| !new.has_node(*id) || again.contains(id));
        for (id, _) in gone {
            self.switch_off(old, id);
        }
        self.remove_links(old, new);
        self.grow(old, builder);
        self.add_links(old, new);
        self.reroute(builder);
        self.change_machines(old, builder, again);
        let fresh = new.nodes().map(|(id, _)| id);
        let fresh: Vec<NodeId> = fresh
            .filter(|id| again.contains(id) || !old.has_node(*id) || id.0 >= old.nodes.len())
            .collect();
        self.start_anew(builder, &fresh);
        let changed = self.refresh_links();
        self.tell_links(&changed);
        let refused = self.add_pvcs(old, new);
        self.change_flows(old, builder, &fresh);
        refused
    }

    /// Ends the senders of flows that are removed. Receivers go on, as after the end of a flow: packets that are under
    /// way arrive.
    fn end_flows(&mut self, old: &Lab, new: &Lab) {
        let gone = new.retired.flows.difference(&old.retired.flows);
        for index in gone.copied().collect::<Vec<_>>() {
            if let Some((sender, _)) = programs_of(old, index) {
                let stop = AppCommand::Stop(sender.program.id);
                self.command(sender.node, HostCommand::app(sender.behind, stop));
            }
        }
    }

    /// Removes permanent connections that the new lab does not have, or that change.
    fn remove_pvcs(&mut self, old: &Lab, new: &Lab) {
        for pvc in old.pvcs.iter().filter(|pvc| !new.pvcs.contains(pvc)) {
            for switch in switches_of(pvc) {
                let ends: Vec<_> = permanents(pvc, switch).map(|one| one.ends[0]).collect();
                self.with_node(switch, |node, _| {
                    if let Some(switch) = node.as_switch_mut() {
                        for end in ends {
                            switch.remove_permanent(end);
                        }
                    }
                });
            }
        }
    }

    /// Takes the links away that the new lab does not have.
    fn remove_links(&mut self, old: &Lab, new: &Lab) {
        let gone = new.retired.links.difference(&old.retired.links);
        for link in gone {
            self.plant_mut().remove(*link);
        }
        let changed = self.refresh_links();
        self.tell_links(&changed);
        let there = self.plant().nodes().count();
        for (id, _, switch) in new.switches().filter(|(id, ..)| id.0 < there) {
            let vacant = switch.ports.iter().enumerate();
            let vacant = vacant.filter(|(_, port)| !new.has_link(port.link));
            let vacant: Vec<PortNo> = vacant.map(|(port, _)| PortNo(port as u16)).collect();
            self.with_node(id, |node, _| {
                if let Some(switch) = node.as_switch_mut() {
                    vacant
                        .iter()
                        .for_each(|port| switch.set_vacant(*port, true));
                }
            });
        }
    }

    /// Makes room for new nodes and for the new ports of switches.
    fn grow(&mut self, old: &Lab, builder: &Builder<'_>) {
        let new = builder.lab();
        for node in new.nodes.iter().skip(self.plant().nodes().count()) {
            self.plant_mut().add_model(node);
        }
        for (id, _, model) in new.switches() {
            let before = match old.nodes.get(id.0).map(|node| &node.kind) {
                Some(NodeKind::Switch(switch)) => &switch.ports[..],
                _ => &[],
            };
            self.plant_mut().add_ports(id, model.ports.len() as u16);
            let life = self.plant().life(id);
            self.with_node(id, |node, _| {
                let Some(switch) = node.as_switch_mut() else {
                    return;
                };
                for (number, port) in model.ports.iter().enumerate() {
                    if number >= switch.port_count() {
                        builder.add_port(switch, id, number, life, port);
                        continue;
                    }
                    let own = PortNo(number as u16);
                    // The host at the port has another address.
                    let other = before
                        .get(number)
                        .is_some_and(|was| was.station != port.station);
                    if new.has_link(port.link) && (other || switch.is_vacant(own)) {
                        switch.set_vacant(own, true);
                        switch.set_vacant(own, false);
                        builder.register_at(switch, (own, port));
                    }
                }
            });
        }
    }

    /// Adds the new links, and gives those that stay their new values.
    fn add_links(&mut self, old: &Lab, new: &Lab) {
        for (id, link) in new.links() {
            if id.0 >= old.links.len() {
                link.ends.iter().for_each(|end| self.plant_mut().free(*end));
                let media = self.media(new, id);
                let made =
                    self.plant_mut()
                        .connect(&link.name, link.ends, LinkConfig::of(link), media);
                debug_assert_eq!(made, id, "links are added in order");
                continue;
            }
            if !old.has_link(id) {
                self.plant_mut().put_back(id, link.ends);
            }
            if old.link(id).lines != link.lines || !old.has_link(id) {
                self.change_link(id, &link.lines.map(LineChange::from));
            }
        }
    }

    /// Gives the switches the routes of the new lab.
    fn reroute(&mut self, builder: &Builder<'_>) {
        let mut routing = builder.routing().clone();
        routing.lose_as(self.plant().management());
        *self.plant_mut().management_mut() = routing;
        for switch in builder.routing().switches() {
            self.manage(switch);
        }
    }

    /// Changes machines that go on.
    fn change_machines(&mut self, old: &Lab, builder: &Builder<'_>, again: &BTreeSet<NodeId>) {
        let new = builder.lab();
        let stays = |id: NodeId| id.0 < old.nodes.len() && old.has_node(id) && !again.contains(&id);
        for (id, node) in new.nodes().filter(|(id, _)| stays(*id)) {
            match (&old.node(id).kind, &node.kind) {
                (NodeKind::Host(was), NodeKind::Host(is)) => {
                    if was.routes != is.routes {
                        self.command(id, HostCommand::Routes(static_routes(&is.routes)));
                    }
                    if was.mpoa.is_none() && is.mpoa.is_some() {
                        self.with_station(id, |host, now| {
                            host.grow(|host| builder.add_client(host, id), now);
                        });
                    }
                }
                (NodeKind::Router(was), NodeKind::Router(is)) if was.routes != is.routes => {
                    self.command(id, HostCommand::Routes(static_routes(&is.routes)));
                }
                (NodeKind::LaneServer(was), NodeKind::LaneServer(is)) => {
                    self.change_servers(old, builder, id, was, is);
                }
                _ => {}
            }
        }
    }

    /// Adds and removes servers of ELANs at a host of LANE services.
    fn change_servers(
        &mut self,
        old: &Lab,
        builder: &Builder<'_>,
        id: NodeId,
        was: &LaneServer,
        is: &LaneServer,
    ) {
        let new = builder.lab();
        let own = |lab: &Lab| -> BTreeSet<usize> {
            let all = lab.elans().filter(|(_, elan)| elan.is_own());
            all.map(|(id, _)| id.0).collect()
        };
        let [before, after] = [own(old), own(new)];
        if before == after && was == is {
            return;
        }
        self.with_station(id, |host, now| {
            for gone in before.difference(&after) {
                host.retire_elan(crate::build::les_of(&old.elans[*gone], was), now);
            }
            for added in after.difference(&before) {
                let elan = &new.elans[*added];
                host.grow(|host| builder.add_servers(host, is, elan), now);
            }
            if is.rank == 0 {
                host.replace(ServiceKind::Lecs, |host| builder.add_lecs(host, is), now);
            }
        });
    }

    /// Calls an end system that runs.
    fn with_station(
        &mut self,
        id: NodeId,
        act: impl FnOnce(&mut aerostat_node::host::Host, Instant),
    ) {
        self.with_node(id, |node, now| node.with_host(|host| act(host, now), now));
    }

    /// Switches nodes on that are new, or that start again.
    fn start_anew(&mut self, builder: &Builder<'_>, fresh: &[NodeId]) {
        let now = self.plant().now();
        self.ledger().change(builder, fresh, now);
        let mut machines = Vec::new();
        for id in fresh {
            let life = self.plant_mut().next_life(*id);
            machines.extend(self.make(builder, *id, life, now).map(|made| (*id, made)));
        }
        self.power_on_all(machines);
    }

    /// Adds permanent connections that are new, or that have changed.
    fn add_pvcs(&mut self, old: &Lab, new: &Lab) -> Vec<Refused> {
        let mut all_refused = Vec::new();
        let added = new.pvcs.iter().enumerate();
        for (index, pvc) in added.filter(|(_, pvc)| !old.pvcs.contains(pvc)) {
            let mut refused = None;
            for switch in switches_of(pvc) {
                let wanted: Vec<_> = permanents(pvc, switch).collect();
                self.with_node(switch, |node, _| {
                    let Some(switch) = node.as_switch_mut() else {
                        return;
                    };
                    // A switch that has just started has it.
                    let has = |end| switch.permanent().any(|one| one.connection.ends[0] == end);
                    let missing: Vec<_> =
                        wanted.into_iter().filter(|one| !has(one.ends[0])).collect();
                    let errors = missing
                        .into_iter()
                        .filter_map(|one| switch.add_permanent(one).err());
                    refused = refused.or(errors.last());
                });
                if let Some(error) = refused {
                    all_refused.push((index, switch, error));
                    break;
                }
            }
            if refused.is_some() {
                self.undo_pvc(pvc);
            } else if !pvc.path {
                for ((node, vc), qos) in pvc.ends.into_iter().zip([pvc.qos, pvc.qos.reversed()]) {
                    self.command(node, HostCommand::Contract(vc, qos));
                }
            }
        }
        all_refused
    }

    /// Removes what there is of a permanent connection that a switch has refused.
    fn undo_pvc(&mut self, pvc: &Pvc) {
        for switch in switches_of(pvc) {
            let wanted: Vec<_> = permanents(pvc, switch).collect();
            self.with_node(switch, |node, _| {
                if let Some(switch) = node.as_switch_mut() {
                    for one in wanted {
                        let there = (switch.permanent()).any(|own| own.connection == one);
                        there.then(|| switch.remove_permanent(one.ends[0]));
                    }
                }
            });
        }
    }

    /// Measures the flows of the new lab, and starts those that are new.
    fn change_flows(&mut self, old: &Lab, builder: &Builder<'_>, fresh: &[NodeId]) {
        let new = builder.lab();
        if new.traffic.len() > old.traffic.len() {
            for (id, _, _) in new.hosts() {
                self.with_station(id, |host, _| {
                    if let Some(meter) = builder.meter(id) {
                        host.measure(meter);
                    }
                });
            }
        }
        if new.keeps_books() && !old.keeps_books() {
            self.keep_books();
        }
        for node in fresh {
            self.start_programs(new, Some(*node));
        }
        for index in old.traffic.len()..new.traffic.len() {
            let receiver = programs_of(new, index).and_then(|(_, receiver)| receiver);
            let started = |node: &NodeId| fresh.contains(node);
            if let Some(placed) = receiver.filter(|placed| !started(&placed.node))
                && self.runs_programs(placed.node)
            {
                self.command(placed.node, placed.start());
            }
        }
        self.start_ready(new);
    }
}

/// The switches on the way of a permanent connection, each once.
fn switches_of(pvc: &Pvc) -> BTreeSet<NodeId> {
    pvc.hops.iter().map(|hop| hop.switch).collect()
}
