//! Switches.

use super::{Builder, scale};
use crate::model::{NodeId, NodeKind, Port, Pvc, Queues, Side, Switch as SwitchModel};
use aerostat_node::atm::police::OUTSIDE_CDVT;
use aerostat_node::switch::{Permanent, PortConfig, PortKind, PortNo, StaticRoutes, Switch};
use aerostat_proto::{ilmi, interface, uni};
use aerostat_wire::q2931::Version;
use aerostat_wire::{AtmAddress, MacAddr};

impl Builder<'_> {
    /// The switch `id`; `None` for an end system. `life` counts its power-ups, from 0.
    #[must_use]
    pub fn switch(&self, id: NodeId, life: u32) -> Option<Switch> {
        let node = self.lab.node(id);
        let NodeKind::Switch(model) = &node.kind else {
            return None;
        };
        let mut routes = StaticRoutes::new();
        routes.follow(self.routing.plan(id));
        let mut location = [0; 16];
        location[..13].copy_from_slice(&model.prefix);
        let mut switch = Switch::new(location, routes);
        switch.hold_at_most(model.held.unwrap_or_else(|| scale::held(&self.scale)));
        for (number, port) in model.ports.iter().enumerate() {
            self.add_port(&mut switch, id, number, life, port);
        }
        for pvc in &self.lab.pvcs {
            for permanent in permanents(pvc, id) {
                let added = switch.add_permanent(permanent);
                debug_assert!(added.is_ok(), "a resolved lab's labels are free");
            }
        }
        Some(switch)
    }

    /// Adds a port to a switch, with the addresses behind it.
    pub(crate) fn add_port(
        &self,
        switch: &mut Switch,
        id: NodeId,
        own_number: usize,
        life: u32,
        port: &Port,
    ) {
        let node = self.lab.node(id);
        let NodeKind::Switch(model) = &node.kind else {
            return;
        };
        let peer = self.lab.node(port.peer);
        let outside = match &peer.kind {
            NodeKind::Outside(outside) => Some(outside),
            _ => None,
        };
        let managed = self.lab.is_managed(port);
        let given = outside.and_then(|outside| outside.version);
        let version = self.version(&peer.kind);
        let (side, kind) = match (port.side, port.station) {
            (_, Some(_)) => (uni::Side::Network, PortKind::Host),
            (Side::Network, None) => (uni::Side::Network, PortKind::Trunk),
            (Side::User, None) => (uni::Side::User, PortKind::Trunk),
        };
        let interface = interface::Params::new(side, version).incarnation(life as u8);
        let interface = self.timed(interface);
        let link = self.lab.link(port.link);
        let own = usize::from(link.ends[0].node != id);
        let [rate, input] = [own, 1 - own].map(|side| link.lines[side].rate);
        let limits = &self.lab.limits.port;
        let mut config = PortConfig::new(&peer.name, kind, interface, rate).with(limits);
        config.set_input(input);
        config.link = link.name.clone();
        config.split = self.split;
        let usual = Some(model.police).filter(|_| kind == PortKind::Host);
        config.police = link.police.or(usual).unwrap_or_default();
        let serves = matches!(peer.kind, NodeKind::LaneServer(_));
        if serves || matches!(peer.kind, NodeKind::Switch(_)) {
            scale::widen_port(&mut config, &self.lab.limits, &self.scale);
        } else if outside.is_none() {
            scale::widen_host_port(&mut config, &self.lab.limits, &self.scale);
        }
        let queues = Queues::at(model, link);
        config.set_queues(&queues.params);
        config.discipline = queues.scheduler.unwrap_or_default();
        config.calls = queues.calls;
        config.paths.clone_from(&link.tunnels);
        config.call_vpi = link.call_vpi;
        config.ilmi = managed.then(|| ilmi::Config {
            detect: outside.is_some_and(|outside| outside.trunk.is_some()),
            line_rate: rate.cells_per_second(),
            ..self.ilmi(&node.name, model, given, own_number)
        });
        let number = switch.add_port(config);
        if let Some(tolerance) = link.cdvt.or(outside.map(|_| OUTSIDE_CDVT)) {
            switch.fabric_mut().tolerate(number.0, tolerance);
        }
        self.register_at(switch, (number, port));
    }

    /// Registers the addresses behind a port of a switch.
    pub(crate) fn register_at(&self, switch: &mut Switch, (number, port): (PortNo, &Port)) {
        if !self.lab.has_link(port.link) {
            return switch.set_vacant(number, true);
        }
        let outside = match &self.lab.node(port.peer).kind {
            NodeKind::Outside(outside) => Some(outside),
            _ => None,
        };
        let managed = self.lab.is_managed(port);
        if let Some(station) = port.station.filter(|_| outside.is_none() && !managed) {
            switch.register(number, station);
        }
        for address in outside.iter().flat_map(|outside| &outside.addresses) {
            switch.register(number, *address);
        }
    }

    /// The ILMI configuration of a port of the switch `name` towards a host.
    fn ilmi(
        &self,
        name: &str,
        model: &SwitchModel,
        version: Option<Version>,
        port: usize,
    ) -> ilmi::Config {
        let [.., a, b, c, d, e, f] = model.prefix;
        let system = MacAddr([a, b, c, d, e, f]);
        let version = version.unwrap_or(Version::Uni40);
        let mut config = ilmi::Config::new(ilmi::Side::Network, system, version);
        config.name = format!("{name}/{port}");
        config.number = port as i32 + 1;
        config.prefixes = vec![model.prefix];
        let server = self.lab.lane_server();
        let own = server.map(|(_, _, server)| server.lecs);
        let elans = self.lab.elans.iter();
        let foreign = elans.filter_map(|elan| {
            let servers = elan.foreign.as_ref()?;
            let well_known = servers.well_known.then_some(AtmAddress::LECS);
            servers.lecs.or(well_known)
        });
        config.lecs = own.into_iter().collect();
        for lecs in foreign {
            if !config.lecs.contains(&lecs) {
                config.lecs.push(lecs);
            }
        }
        config
    }
}

/// A permanent connection at a switch: once for each time that it passes.
pub(crate) fn permanents(pvc: &Pvc, switch: NodeId) -> impl Iterator<Item = Permanent> {
    let hops = pvc.hops.iter().enumerate();
    let here = hops.filter(move |(_, hop)| hop.switch == switch);
    here.map(move |(n, hop)| {
        let [from, to] = [hop.from, hop.to].map(|(port, vc)| (PortNo(port as u16), vc));
        Permanent {
            ends: [from, to],
            qos: pvc.qos,
            path: pvc.path,
            queue: pvc.queue,
            // The connection's own word counts where the cells enter the network.
            police: [n == 0, n + 1 == pvc.hops.len()].map(|edge| pvc.police.filter(|_| edge)),
        }
    })
}
