//! From a resolved lab to machines, for both drivers.

use crate::model::{
    Attachment, CpuConfig, Elan, Host as HostModel, IntakeConfig, Lab, LaneServer, Lec as LecModel,
    Node, NodeId, NodeKind, Router as RouterModel, Scale, Side,
};
use crate::plan;
use crate::routing::Routing;
use aerostat_node::atm::CellRate;
use aerostat_node::host::sockets::programs::Role;
use aerostat_node::host::{Host, Ip, Segment};
use aerostat_node::ip::meter::{FlowSpec, Meter};
use aerostat_node::ip::router::{self, Router, RouterConfig, RouterInterface};
use aerostat_node::ip::stack::{Stack, StackConfig, StackInterface};
use aerostat_node::random::derived_seed;
use aerostat_node::signalling::{self, Signalling};
use aerostat_proto::ilmi;
use aerostat_proto::interface;
use aerostat_proto::lane::server;
use aerostat_proto::lane::{Lec, LecConfig, ServerConfig};
use aerostat_wire::lane::ElanName;
use aerostat_wire::q2931::Version;
use aerostat_wire::{AtmAddress, Vc};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::sync::Arc;

mod clip;
mod ethernet;
mod flows;
mod ip;
mod lane;
mod line;
mod mpoa;
mod native;
mod scale;
mod switch;

use flows::flow_specs;
pub use flows::{Placed, programs};
pub(crate) use flows::{flow_ports, programs_of};
use ip::static_neighbours;
pub(crate) use ip::static_routes;
pub(crate) use lane::les_of;
use lane::{bus_config, elan_name, lecs_config, les_config, pair, server_params};
pub(crate) use scale::room;
pub(crate) use switch::permanents;

/// Selector of the address at which an MPOA server itself ends shortcuts; its control address has 0x52.
const MPS_DATA_SELECTOR: u8 = 0x53;
/// Placeholder for the prefix of an address that the switch will assign.
const NO_PREFIX: [u8; 13] = [0; 13];

/// Hosts and routers that are Linux kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// No node: the lab's statements about kernels are ignored (virtual time, or no privilege).
    Embedded,
    /// All nodes that the lab does not declare embedded.
    Kernel,
}

/// True if this node is a Linux kernel in a lab of this flavour.
pub(crate) fn is_kernel(lab: &Lab, id: NodeId, flavour: Flavour) -> bool {
    let wish = match &lab.node(id).kind {
        NodeKind::Host(host) => host.kernel,
        NodeKind::Router(router) => router.kernel.or(Some(false)),
        NodeKind::Switch(_) | NodeKind::LaneServer(_) | NodeKind::Outside(_) => Some(false),
    };
    flavour == Flavour::Kernel && wish != Some(false)
}

fn version_of(kind: &NodeKind) -> Option<Version> {
    match kind {
        NodeKind::Switch(_) => None,
        NodeKind::LaneServer(server) => Some(server.uni),
        NodeKind::Router(router) => Some(router.uni),
        NodeKind::Host(host) => Some(host.uni),
        NodeKind::Outside(outside) => outside.version,
    }
}

/// The version of the UNI between switches.
pub(crate) fn trunk_version(lab: &Lab) -> Version {
    let all = lab.nodes().filter_map(|(_, node)| version_of(&node.kind));
    all.max().unwrap_or(plan::UNI).max(plan::UNI)
}

/// The hosts of one lab, made on demand.
pub struct Builder<'a> {
    lab: &'a Lab,
    seed: u64,
    flavour: Flavour,
    flows: Vec<FlowSpec>,
    split: bool,
    /// Names that programs of the machine may call; `None` without the socket service.
    names: Option<Arc<BTreeMap<String, AtmAddress>>>,
    routing: Routing,
    scale: Scale,
}

impl<'a> Builder<'a> {
    /// A builder for `lab`; `seed` feeds every random stream of every node.
    #[must_use]
    pub fn new(lab: &'a Lab, seed: u64, flavour: Flavour) -> Self {
        let mut builder = Self {
            lab,
            seed,
            flavour,
            flows: Vec::new(),
            split: false,
            names: None,
            routing: Routing::new(lab),
            scale: Scale::of(lab),
        };
        builder.flows = flow_specs(lab);
        builder
    }

    /// The lab.
    #[must_use]
    pub const fn lab(&self) -> &'a Lab {
        self.lab
    }

    /// The nodes that are Linux kernels in this run, as far as the lab leaves that open.
    #[must_use]
    pub const fn flavour(&self) -> Flavour {
        self.flavour
    }

    /// With `split`, all daemons run in processes of their own, which the driver must provide.
    #[must_use]
    pub fn split(self, split: bool) -> Self {
        Self { split, ..self }
    }

    /// The routes of the switches while all links are usable. The driver keeps them up to date.
    #[must_use]
    pub fn routing(&self) -> &Routing {
        &self.routing
    }

    /// The flows that are measured, in the order of [`Lab::traffic`].
    #[must_use]
    pub fn flows(&self) -> &[FlowSpec] {
        &self.flows
    }

    /// True if this node is a Linux kernel in this run.
    #[must_use]
    pub fn is_kernel(&self, id: NodeId) -> bool {
        is_kernel(self.lab, id, self.flavour)
    }

    /// The end system `id`; `None` for a switch and for nodes outside the lab. `life` counts its power-ups, from 0.
    ///
    /// # Panics
    /// If the IP stack does not accept the lab's addresses; those of a resolved lab are accepted.
    #[must_use]
    pub fn host(&self, id: NodeId, life: u32) -> Option<Host> {
        let node = self.lab.node(id);
        match &node.kind {
            NodeKind::Switch(_) | NodeKind::Outside(_) => None,
            NodeKind::LaneServer(server) => Some(self.lane_server(id, &node.name, server, life)),
            NodeKind::Router(router) => Some(self.router(id, &node.name, router, life)),
            NodeKind::Host(host) => Some(self.end_host(id, &node.name, host, life)),
        }
    }

    /// The CPU of the end system `id`; `None` if packets cost no time there. `life` counts its power-ups, from 0.
    #[must_use]
    pub fn cpu(&self, id: NodeId, life: u32) -> Option<CpuConfig> {
        let node = self.lab.node(id);
        let NodeKind::Host(host) = &node.kind else {
            return None;
        };
        let cpu = host.cpu.as_ref().filter(|_| !self.is_kernel(id))?;
        Some(CpuConfig {
            seed: self.seed_of(&node.name, "cpu", life),
            ..(**cpu).clone()
        })
    }

    /// The receive path of the adapter of the end system `id`; `None` if it is as fast as its link.
    #[must_use]
    pub fn intake(&self, id: NodeId) -> Option<IntakeConfig> {
        match &self.lab.node(id).kind {
            NodeKind::Host(host) => host.intake,
            _ => None,
        }
    }

    fn seed_of(&self, node: &str, purpose: &str, life: u32) -> u64 {
        derived_seed(self.seed, node, purpose).wrapping_add(u64::from(life) << 32)
    }

    /// The version of the UNI between a switch and a node. Between switches it is the highest version of the lab, so
    /// that everything that two hosts support passes.
    fn version(&self, kind: &NodeKind) -> Version {
        match kind {
            NodeKind::Switch(_) => trunk_version(self.lab),
            kind => version_of(kind).unwrap_or(plan::UNI),
        }
    }

    /// The signalling of a host or a router.
    fn signalling(&self, id: NodeId, version: Version, life: u32) -> Signalling {
        let mut config = self.signalling_config(version, life);
        if let Some((_, Side::Network)) = self.lab.back_to_back(id) {
            let network = signalling::Config::network(version);
            config.interface = self.timed(network.interface.incarnation(life as u8));
        }
        scale::widen_host(&mut config, &self.scale);
        if self.names.is_some() {
            scale::widen_programs(&mut config);
        }
        self.seated(config)
    }

    fn signalling_config(&self, version: Version, life: u32) -> signalling::Config {
        let mut config = signalling::Config::new(version);
        config.interface = self.timed(config.interface.incarnation(life as u8));
        config
    }

    /// Applies the timers of the lab file.
    fn timed(&self, mut interface: interface::Params) -> interface::Params {
        interface.sscop.adopt(&self.lab.timers.sscop);
        let (side, version) = (interface.uni.side, interface.uni.version);
        interface.uni.timers = self.lab.timers.uni(side, version);
        interface
    }

    fn arp(&self) -> router::ArpParams {
        scale::arp(self.lab.timers.arp, &self.scale)
    }

    /// Signalling whose daemon half is where the daemons of the lab are.
    fn seated(&self, config: signalling::Config) -> Signalling {
        match self.split {
            true => Signalling::split(config),
            false => Signalling::new(config),
        }
    }

    fn end_host(&self, id: NodeId, name: &str, model: &HostModel, life: u32) -> Host {
        let elan = self.lab.elan(model.lec().elan);
        let ip = if self.is_kernel(id) {
            Ip::Kernel
        } else {
            Ip::Stack(Box::new(self.stack(name, model, life)))
        };
        let mut host = Host::new(name, self.signalling(id, model.uni, life), ip);
        host.measure(self.meter(id).unwrap_or_default());
        if self.is_kernel(id) && model.bridges() {
            host.bridge_to(Segment::kernel());
        } else if model.bridges() {
            host.bridge_to(self.segment(model, life));
        }
        let (mut lecs, mut mpc) = (model.lecs.clone(), model.mpoa.clone());
        if model.ilmi {
            for lec in &mut lecs {
                lec.address = lec.address.with_prefix(NO_PREFIX);
            }
            if let Some(mpc) = &mut mpc {
                mpc.control = mpc.control.with_prefix(NO_PREFIX);
                mpc.data = mpc.data.with_prefix(NO_PREFIX);
            }
            self.register(&mut host, id, &model.attachment, model.uni);
        }
        for lec in &lecs {
            self.add_lec(&mut host, id, lec, life);
        }
        if let (Some(nhc), Some(lis)) = (&model.nhrp, &elan.clip) {
            self.add_nhc(&mut host, (name, life), &lecs[0], nhc, lis);
        }
        if let Some(mpc) = &mpc {
            self.add_mpc(&mut host, (name, &lecs), mpc, life);
        }
        self.add_programs(&mut host, id, model, life);
        host
    }

    /// The TCP/IP stack of an embedded host.
    fn stack(&self, name: &str, model: &HostModel, life: u32) -> Stack {
        let config = StackConfig {
            name: name.into(),
            mac: model.lec().mac.0,
            address: model.lec().own_ip(),
            prefix: self.lab.elan(model.lec().elan).subnet.length,
            routes: static_routes(&model.routes),
            neighbours: static_neighbours(model),
            mtu: self.lab.mtu_of(model.lec()).into(),
            further: self.further(model),
            tcp: model.tcp.options(),
            life,
            seed: self.seed_of(name, "stack", life),
        };
        let stack = Stack::new(config)
            .expect("a resolved lab's addresses")
            .with_arp(self.arp())
            .with_clock(model.clock.unwrap_or_default());
        match model.cpu.as_ref().and_then(|cpu| cpu.calls) {
            Some(_) => stack.with_paced_calls(),
            None => stack,
        }
    }

    /// The interfaces of an embedded host besides its first one; the further VLANs of a bridge have no IP side.
    fn further(&self, model: &HostModel) -> Vec<StackInterface> {
        let others = model.lecs.iter().skip(1);
        let others = others.filter_map(|lec| {
            let elan = self.lab.elan(lec.elan);
            Some(StackInterface {
                mac: lec.mac.0,
                address: lec.ip?,
                prefix: elan.subnet.length,
                mtu: self.lab.mtu_of(lec).into(),
            })
        });
        others.collect()
    }

    /// Makes the node get its addresses from the switch by ILMI.
    fn register(&self, host: &mut Host, id: NodeId, at: &Attachment, version: Version) {
        let esi = at.address.esi();
        let mut config = ilmi::Config::new(ilmi::Side::User, esi, version);
        config.esis = vec![esi];
        config.line_rate = self.lab.own_rate(id).map_or(0, CellRate::cells_per_second);
        for pvc in &self.lab.pvcs {
            for (end, qos) in [(0, pvc.qos), (1, pvc.qos.reversed())] {
                let (node, vc) = pvc.ends[end];
                if node == id {
                    config.pvcs.push(ilmi::Pvc {
                        vc,
                        path: pvc.path,
                        tx: qos.tx,
                        rx: qos.rx,
                        status: ilmi::PvcStatus::LocalUp,
                    });
                }
            }
        }
        host.register_by_ilmi(match self.split {
            true => ilmi::Channel::split(config),
            false => ilmi::Channel::new(config),
        });
    }

    /// IPv6 address of an interface; embedded nodes have no IPv6 address.
    fn ip6(&self, id: NodeId, lec: &LecModel) -> Option<(Ipv6Addr, u8)> {
        self.lab.ip6(lec).filter(|_| self.is_kernel(id))
    }

    fn router(&self, id: NodeId, name: &str, model: &RouterModel, life: u32) -> Host {
        let interfaces = model.lecs.iter().map(|lec| {
            let elan = self.lab.elan(lec.elan);
            RouterInterface {
                name: self.lab.interface_name(lec),
                mac: lec.mac.0,
                address: lec.own_ip(),
                prefix: elan.subnet.length,
                mtu: self.lab.mtu_of(lec).into(),
            }
        });
        let config = RouterConfig {
            interfaces: interfaces.collect(),
            routes: static_routes(&model.routes),
            forwarding: model.forwarding,
            queue: model.queue,
            arp: self.arp(),
        };
        let mut made = Box::new(Router::new(config).expect("a resolved lab's addresses"));
        for (itf, lec) in model.lecs.iter().enumerate() {
            if let Some(own) = self.ip6(id, lec) {
                made.set_ipv6(itf, own);
            }
        }
        let routes = self.lab.routes6(id).into_iter();
        let routes = routes.map(|(to, next_hop)| router::StaticRoute6 {
            destination: to.network,
            prefix: to.length,
            next_hop,
        });
        made.set_ipv6_routes(routes.collect());
        let ip = if self.is_kernel(id) {
            Ip::KernelRouter(made)
        } else {
            Ip::Router(made)
        };
        let mut host = Host::new(name, self.signalling(id, model.uni, life), ip);
        if model.ilmi {
            self.register(&mut host, id, &model.attachment, model.uni);
        }
        for lec in &model.lecs {
            let mut lec = lec.clone();
            if model.ilmi {
                lec.address = lec.address.with_prefix(NO_PREFIX);
            }
            self.add_lec(&mut host, id, &lec, life);
        }
        if let Some(mps) = &model.mpoa {
            self.add_mps(&mut host, (id, name), model, mps, life);
        }
        host
    }

    fn add_lec(&self, host: &mut Host, id: NodeId, model: &LecModel, life: u32) {
        let name = &self.lab.node(id).name;
        let elan = self.lab.elan(model.elan);
        if let Some(lis) = &elan.clip {
            return self.add_clip(host, id, model, lis);
        }
        if let Some(line) = &elan.line {
            return self.add_line(host, id, model, line);
        }
        let asked = if model.named {
            elan_name(elan)
        } else {
            ElanName::default()
        };
        let mut config = LecConfig::new(asked, model.address, model.mac);
        config.llc_mux = model.llc && model.v2;
        config.data_traffic = model.data;
        scale::widen_lec(&mut config.limits, &self.scale);
        config.selective = model.groups.is_some();
        config.groups = model.groups.clone().unwrap_or_default();
        config.v2 = model.v2;
        config.params = match model.v2 {
            true => self.lab.timers.lec_v2.clone(),
            false => self.lab.timers.lec_v1.clone(),
        };
        config.proxy = match &self.lab.node(id).kind {
            NodeKind::Host(host) => host.bridges(),
            _ => false,
        };
        let seed = self.seed_of(name, &format!("lec{}", model.index), life);
        // A host without a prefix does not know the LECS, either.
        let known = model.address.prefix() != NO_PREFIX;
        let server = self.lab.lane_server().filter(|_| known);
        config.lecs = server.map(|(_, _, server)| server.lecs);
        if let Some(foreign) = &elan.foreign {
            config.max_frame = foreign.max_frame;
            config.les = foreign.les;
            config.lecs = match foreign.lecs {
                Some(lecs) => Some(lecs),
                None => foreign.well_known.then_some(AtmAddress::LECS),
            };
        }
        let new = if self.split { Lec::split } else { Lec::new };
        host.add_lec(model.mac, move |start| {
            let seed = seed.wrapping_add(start.into());
            new(LecConfig {
                seed,
                ..config.clone()
            })
        });
    }

    fn lane_server(&self, id: NodeId, name: &str, model: &LaneServer, life: u32) -> Host {
        let mut config = self.signalling_config(model.uni, life);
        scale::widen_signalling(&mut config, &self.scale);
        let mut host = Host::new(name, self.seated(config), Ip::None);
        if model.ilmi {
            self.register(&mut host, id, &model.attachment, model.uni);
        }
        self.add_lecs(&mut host, model);
        for (_, elan) in self.lab.elans().filter(|(_, elan)| elan.is_own()) {
            self.add_servers(&mut host, model, elan);
        }
        host
    }

    /// Adds LES and BUS of an ELAN.
    pub(crate) fn add_servers(&self, host: &mut Host, model: &LaneServer, elan: &Elan) {
        let pair = pair(elan, model);
        let params = server_params(self.lab, model, &self.scale);
        let bus_config = bus_config(elan, pair.bus, params.clone());
        let les_config = les_config(elan, pair, model, params);
        let les = self.server(ServerConfig::Les(les_config));
        let bus = self.server(ServerConfig::Bus(bus_config));
        host.add_elan(pair.les, les, bus);
    }

    /// Adds the LECS, if the host has it.
    pub(crate) fn add_lecs(&self, host: &mut Host, model: &LaneServer) {
        if model.rank == 0 {
            let config = lecs_config(self.lab, model, &self.scale);
            host.add_server(self.server(ServerConfig::Lecs(config)));
        }
    }

    /// Adds the MPOA client of an end system that runs without one.
    pub(crate) fn add_client(&self, host: &mut Host, id: NodeId) {
        let node = self.lab.node(id);
        let NodeKind::Host(model) = &node.kind else {
            return;
        };
        if let Some(mut mpc) = model.mpoa.clone() {
            if model.ilmi {
                mpc.control = mpc.control.with_prefix(NO_PREFIX);
                mpc.data = mpc.data.with_prefix(NO_PREFIX);
            }
            self.add_mpc(host, (&node.name, &model.lecs), &mpc, 0);
        }
    }

    /// The meter of an end system: of the flows that begin or end there.
    pub(crate) fn meter(&self, id: NodeId) -> Option<Meter> {
        let NodeKind::Host(model) = &self.lab.node(id).kind else {
            return None;
        };
        let own = model.lecs.iter().filter_map(|lec| lec.ip).collect();
        Some(Meter::new(&self.flows, own))
    }

    fn server(&self, config: ServerConfig) -> impl Fn(u32) -> server::LaneServer + Send + use<> {
        let new = if self.split {
            server::LaneServer::split
        } else {
            server::LaneServer::new
        };
        move |_| new(config.clone())
    }
}

/// True if a program of this node uses the permanent connection with this label.
fn programs_use(node: &Node, label: Vc) -> bool {
    let NodeKind::Host(host) = &node.kind else {
        return false;
    };
    let mut programs = host.sockets.iter();
    programs.any(|program| matches!(program.role, Role::Permanent { vc, .. } if vc == label))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::tests::{SMALL, lab};

    #[test]
    fn a_node_and_its_port_speak_one_version() {
        let text = SMALL
            .replace("lane: { on: s1,", "lane: { on: s1, uni: 3.0,")
            .replace("r: { on: s2,", "r: { on: s2, uni: 4.0,")
            .replace("x: { on: s1,", "x: { on: s1, uni: 3.0,")
            .replace("y: { on: s2,", "y: { on: s2, uni: 4.0, ilmi: true,");
        for (text, trunk) in [(text.as_str(), Version::Uni40), (SMALL, Version::Uni31)] {
            let lab = lab(text);
            let builder = Builder::new(&lab, 1, Flavour::Embedded);
            for (id, node) in lab.nodes() {
                let NodeKind::Switch(model) = &node.kind else {
                    continue;
                };
                let switch = builder.switch(id, 0).unwrap();
                for (port, info) in model.ports.iter().zip(switch.port_infos()) {
                    let host = builder.host(port.peer, 0);
                    let wanted = host.map_or(trunk, |h| h.signalling().version());
                    assert_eq!(info.version, wanted, "{}", info.name);
                }
            }
        }
    }

    #[test]
    fn every_frame_size_of_lane_makes_hosts() {
        for size in [1516, 1580, 4544, 9234, 18190] {
            let text = SMALL.replace("10.1.0.0/24 }", &format!("10.1.0.0/24, mtu: {size} }}"));
            let lab = lab(&text);
            assert_eq!(lab.elans[0].ip_mtu(), size - 16);
            let builder = Builder::new(&lab, 1, Flavour::Embedded);
            let ends = lab.nodes().filter_map(|(id, _)| builder.host(id, 0));
            assert_eq!(ends.count(), 4, "two hosts, the router, the LANE server");
        }
    }
}
