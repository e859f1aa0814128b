//! Switches, end systems and the links between them, with their addresses.

use super::links::{connect, inside};
use super::stage::Building;
use super::vlans::{self, Vlan};
use super::{
    Class, Names, adapters, clip, contracts, cpu, direct, ethernet, identity, lane, lines, mpoa,
    proxies, queues, rate_queues, tcp,
};
use crate::diag::{Diagnostics, Span};
use crate::field::{At, Optional as _};
use crate::file::{
    Atm, HostFile, LabFile, LaneFile, LecFile, LinkFile, LinkOptions, Name, RouterFile, TrunkFile,
};
use crate::model::{
    Attachment, Elan, ElanId, Host, Lab, LaneServer, Lec, Link, LinkEnd, LinkId, Node, NodeId,
    NodeKind, Router, SegmentHost, Switch,
};
use crate::numbers::Numbers;
use crate::plan::{self, Kind};
use aerostat_node::atm::NicConfig;
use aerostat_wire::{AtmAddress, MacAddr};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// The site number of the lab among joined labs.
pub(super) fn site(file: &LabFile) -> u8 {
    file.site.get() as u8
}

/// Gives numbers to the switches, routers, hosts and ELANs that have none yet.
pub(super) fn number(file: &LabFile, numbers: &mut Numbers) {
    let routers = file.routers.iter().flat_map(|table| &table.0);
    let routers = routers.map(|(name, _)| name.value.0.as_str());
    let switches = file.switches.0.iter();
    let hosts = file.hosts.0.iter();
    numbers
        .switches
        .give(switches.map(|(name, _)| name.value.0.as_str()));
    numbers.routers.give(routers);
    numbers
        .hosts
        .give(hosts.map(|(name, _)| name.value.0.as_str()));
    let elans = || file.lane.iter().flat_map(|section| &section.elans.0);
    numbers
        .elans
        .give(elans().map(|(name, _)| name.value.0.as_str()));
    let served = elans().filter(|(_, elan)| lane::is_served(elan));
    numbers
        .served
        .give(served.map(|(name, _)| name.value.0.as_str()));
}

/// Fills `lab.nodes`, `lab.links` and `lab.elans`.
pub(super) fn build(file: &LabFile, names: &Names, lab: &mut Building<'_>, d: &mut Diagnostics) {
    let site = site(file);
    switches(file, site, lab, d);
    trunks(file, names, lab, d);
    lane::elans(file, lab, d);
    clip::subnets(file, lab, d);
    lines::subnets(file, lab, d);
    let mut builder = Builder {
        site,
        names,
        lab,
        ips: BTreeMap::new(),
    };
    if let Some((section, on)) = lane::own(file) {
        builder.lane_server(section, on, d);
    }
    for (name, router) in file.routers.iter().flat_map(|table| &table.0) {
        let number = builder.lab.numbers.routers.of(&name.value.0);
        builder.router(file, number, name, router, d);
    }
    for (name, host) in &file.hosts.0 {
        let number = builder.lab.numbers.hosts.of(&name.value.0);
        builder.host(file, number, name, host, d);
    }
    direct::build(file, names, lab, d);
    identity::unique(file, lab, d);
}

/// Reports that there is no switch.
pub(super) fn no_switch(file: &LabFile, d: &mut Diagnostics) {
    d.error(file.place, "a lab needs at least one switch")
        .hint("for example: switches: { s1: {} }; two hosts do without: links: [[h1, h2]]")
        .rests_on(["switches", "hosts", "routers"]);
}

fn switches(file: &LabFile, site: u8, lab: &mut Building<'_>, d: &mut Diagnostics) {
    if file.switches.0.is_empty() && direct::wants_a_switch(file) {
        no_switch(file, d);
    }
    let mut seen: BTreeMap<[u8; 13], (&str, Span)> = BTreeMap::new();
    for (name, switch) in &file.switches.0 {
        let number = lab.numbers.switches.of(&name.value.0);
        let planned = || plan::switch_prefix(site, number);
        let prefix = switch.prefix.plain().unwrap_or_else(planned);
        let at = switch.prefix.place().unwrap_or(name.at);
        if let Some((other, first)) = seen.insert(prefix, (&name.value.0, at)) {
            let text = format!("two switches with one prefix: {other} and {}", name.value.0);
            d.error(at, text)
                .see(first, "the first is here")
                .rests_on(["site", "switches"]);
        }
        lab.nodes_mut().push(Node {
            name: name.value.0.clone(),
            kind: NodeKind::Switch(Switch {
                prefix,
                ports: Vec::new(),
                police: switch.police.plain().unwrap_or_default(),
                queues: queues::of(switch.queues.as_ref()),
                manager: cpu::switch_manager(switch.manager.as_ref(), d),
                held: switch.held.plain().map(|most| most as usize),
            }),
        });
    }
}

/// Links between switches.
fn trunks(file: &LabFile, names: &Names, lab: &mut Building<'_>, d: &mut Diagnostics) {
    let mut links = LinkNames::of(lab);
    for link in file.links.iter().flatten() {
        let LinkFile::Trunk(link) = link else {
            continue;
        };
        if direct::joins(names, link) {
            continue;
        }
        let [a, b] = &link.ends;
        let a_id = names.find(a, &[Class::Switch], "a switch", d);
        let b_id = names.find(b, &[Class::Switch], "a switch", d);
        let (Some(a_id), Some(b_id)) = (a_id, b_id) else {
            continue;
        };
        if a_id == b_id {
            d.error(b.at, format!("a link from {} to itself", a.value))
                .rests_on(["links/*/0", "links/*/1/."]);
            continue;
        }
        let name = links.add(link, d);
        connect(lab, a_id, b_id, |ends| inside(name, ends, &link.options));
    }
}

/// The names of the links so far.
pub(super) struct LinkNames {
    all: BTreeSet<String>,
    /// Ports of links that are not an end system's.
    own: BTreeSet<String>,
    /// The last number of a parallel link, by the name without it.
    last: BTreeMap<String, u64>,
}

impl LinkNames {
    pub(super) fn of(lab: &Lab) -> Self {
        let own = lab.links.iter().filter(|link| !is_access(lab, link));
        Self {
            all: lab.links.iter().map(|link| link.name.clone()).collect(),
            own: own.map(|link| link.name.clone()).collect(),
            last: BTreeMap::new(),
        }
    }

    /// The name of a further link that stands in the file. Parallel links get numbers; a name that the user chose must
    /// be free.
    pub(super) fn add(&mut self, link: &TrunkFile, d: &mut Diagnostics) -> String {
        let [a, b] = &link.ends;
        let given = &link.options.name;
        let base = (given.plain()).unwrap_or_else(|| format!("{}-{}", a.value, b.value));
        if let Some(given) = given
            && self.own.contains(&base)
        {
            d.error(given.at, format!("two links with one name: '{base}'"))
                .rests_on(["links/*/2/name"]);
        }
        let mut name = base.clone();
        let last = self.last.entry(base.clone()).or_insert(1);
        while self.all.contains(&name) {
            *last += 1;
            name = format!("{base}-{last}");
        }
        self.all.insert(name.clone());
        self.own.insert(name.clone());
        name
    }
}

/// True for the link of an end system to its switch.
fn is_access(lab: &Lab, link: &Link) -> bool {
    let is_switch = |end: LinkEnd| matches!(lab.node(end.node).kind, NodeKind::Switch(_));
    link.ends.map(is_switch) == [false, true]
}

/// Refuses names of links between switches that are the names of other links: those of end systems, which are called
/// after the two nodes.
pub(super) fn link_names(file: &LabFile, lab: &Lab, d: &mut Diagnostics) {
    let others = lab.links.iter().filter(|link| is_access(lab, link));
    let others: BTreeMap<&str, NodeId> = others
        .map(|link| (&*link.name, link.ends[0].node))
        .collect();
    for link in file.links.iter().flatten() {
        let LinkFile::Trunk(link) = link else {
            continue;
        };
        let Some(name) = &link.options.name else {
            continue;
        };
        if let Some(node) = others.get(&*name.value.0) {
            let (text, node) = (&name.value.0, &lab.node(*node).name);
            d.error(
                name.at,
                format!("two links with one name: '{text}' is that of {node}, too"),
            )
            .rests_on_name(node);
        }
    }
}

/// Adds end systems.
struct Builder<'a, 'b> {
    site: u8,
    names: &'a Names,
    lab: &'a mut Building<'b>,
    /// Assigned IP addresses, with their nodes.
    ips: BTreeMap<Ipv4Addr, (String, Span)>,
}

impl Builder<'_, '_> {
    /// Attaches the node that will be pushed next, with its own address instead of the planned one if it has one. A
    /// wrong switch is reported, and the rest is checked nevertheless.
    fn attach(
        &mut self,
        name: &str,
        on: Option<&At<String>>,
        (esi, own): (MacAddr, Option<&At<Atm>>),
        link: &LinkOptions,
        d: &mut Diagnostics,
    ) -> Attachment {
        if let Some(name) = &link.name {
            d.error(name.at, "the link of an end system has no name of its own")
                .hint("it is called NODE-SWITCH");
        }
        let switch = on.and_then(|on| self.names.find(on, &[Class::Switch], "a switch", d));
        let switch = switch.filter(|id| id.0 < self.lab.nodes.len());
        let prefix = match switch.map(|id| &self.lab.nodes[id.0].kind) {
            Some(NodeKind::Switch(switch)) => switch.prefix,
            _ => plan::switch_prefix(self.site, 0),
        };
        let planned = AtmAddress::from_parts(prefix, esi, 0);
        let address = own.map_or(planned, |own| own.value.0.with_selector(0));
        let node = NodeId(self.lab.nodes.len());
        let nowhere = Attachment {
            switch: node,
            port: 0,
            link: LinkId(0),
            address,
        };
        // The node must be in the list before a link can lead to it; its kind follows later.
        self.lab.nodes_mut().push(Node {
            name: name.to_owned(),
            kind: NodeKind::LaneServer(LaneServer::at(nowhere.clone())),
        });
        let (Some(switch), Some(on)) = (switch, on) else {
            return nowhere;
        };
        let name = format!("{name}-{}", on.value);
        let link = connect(self.lab, node, switch, |ends| inside(name, ends, link));
        let port = usize::from(self.lab.links[link.0].ends[1].port);
        if let NodeKind::Switch(switch) = &mut self.lab.nodes_mut()[switch.0].kind
            && let Some(port) = switch.ports.get_mut(port)
        {
            port.station = Some(address);
        }
        Attachment {
            switch,
            port,
            link,
            address,
        }
    }
    /// Replaces the kind of the node that [`Self::attach`] pushed.
    fn finish(&mut self, kind: NodeKind) {
        if let Some(node) = self.lab.nodes_mut().last_mut() {
            node.kind = kind;
        }
    }
    fn lane_server(&mut self, section: &LaneFile, on: &At<String>, d: &mut Diagnostics) {
        let (name, _) = lane::server_name(section);
        let esi = plan::mac(self.site, Kind::LaneServer, 1, 0);
        let attachment = self.attach(name, Some(on), (esi, None), &section.link, d);
        let address = attachment.address;
        for (pair, elan) in lane::pairs(self.lab, address) {
            (elan.les, elan.bus) = (pair.les, pair.bus);
        }
        let lecs = address.with_selector(plan::SELECTOR_LECS);
        let quota = lane::quota(section);
        let uni = section.uni.get();
        self.finish(NodeKind::LaneServer(LaneServer {
            lecs,
            policies: lane::policies(section),
            default: lane::default(section, self.lab, d),
            ilmi: section.ilmi.get(),
            uni,
            quota,
            ..LaneServer::at(attachment)
        }));
        for (number, standby) in (2..).zip(section.standby.iter().flatten()) {
            let (name, _) = lane::standby_name(standby, number);
            let esi = plan::mac(self.site, Kind::LaneServer, number, 0);
            let on = Some(&standby.on);
            let attachment = self.attach(&name, on, (esi, None), &standby.link, d);
            for (pair, elan) in lane::pairs(self.lab, attachment.address) {
                elan.standby.push(pair);
            }
            self.finish(NodeKind::LaneServer(LaneServer {
                lecs,
                rank: usize::from(number) - 1,
                uni,
                quota,
                ..LaneServer::at(attachment)
            }));
        }
    }
    fn router(
        &mut self,
        file: &LabFile,
        number: u16,
        name: &At<Name>,
        router: &RouterFile,
        d: &mut Diagnostics,
    ) {
        let text = &name.value.0;
        let planned = plan::mac(self.site, Kind::Router, number, 0);
        let esi = identity::mac(router.mac.as_ref(), planned, d);
        let own = (esi, router.address.as_ref());
        let attachment = self.attach(text, router.on.as_ref(), own, &router.link, d);
        let address = attachment.address;
        let table = &router.elans.0;
        if table.is_empty() {
            d.error(name.at, format!("router {text} is on no ELAN"))
                .hint("for example: elans: { a: 10.1.0.1 }")
                .rests_in(router.place, ["elans"]);
        }
        if let Some((elan, _)) = table.get(plan::MAX_LECS) {
            let limit = plan::MAX_LECS;
            d.error(elan.at, format!("more than {limit} ELANs on one router"));
        }
        let mut lecs = Vec::new();
        for (index, (elan, ip)) in table.iter().enumerate().take(plan::MAX_LECS) {
            let Some(elan) = self.elan(elan, d) else {
                continue;
            };
            let ip_value = self.ip(text, elan, ip.value.0, ip.at, d);
            let index = index as u8;
            let mac = match index {
                0 => esi,
                _ => plan::mac(self.site, Kind::Router, number, index),
            };
            let address = address.with_selector(plan::SELECTOR_LEC + index);
            let lec = Lec::new(index, elan, mac, address, Some(ip_value));
            if index == 0 {
                proxies::none(&router.lec, d);
            }
            lecs.push(self.client(lec, &router.lec, false, d));
        }
        let clip = lecs
            .iter()
            .filter_map(|lec| self.lab.elan(lec.elan).clip.as_ref());
        let nhrp = clip.into_iter().any(|lis| lis.nhrp);
        let six = |lec: &Lec| self.lab.elan(lec.elan).ip6.is_some();
        if let Some(kernel) = router.kernel.as_ref().filter(|kernel| !kernel.value)
            && lecs.iter().any(six)
        {
            d.warning(
                kernel.at,
                format!("router {text} is embedded: it forwards no IPv6"),
            )
            .hint("embedded hosts and routers speak IPv4 only");
        }
        self.finish(NodeKind::Router(Router {
            attachment,
            lecs,
            routes: Vec::new(),
            forwarding: router.forwarding.get(),
            queue: router.queue.get(),
            mpoa: mpoa::server(file.mpoa.as_ref(), router.mpoa.as_ref(), address, nhrp, d),
            ilmi: router.ilmi.get(),
            uni: router.uni.get(),
            kernel: router.kernel.plain(),
            nic: adapters::of_node(router.shape.get()),
        }));
    }
    /// The client, as its section says.
    fn client(&self, lec: Lec, section: &LecFile, bridge: bool, d: &mut Diagnostics) -> Lec {
        Lec {
            v2: section.version.plain().unwrap_or(true),
            named: section.named.get(),
            llc: section.llc.get(),
            groups: lane::groups(section, bridge, d),
            data: contracts::of_client(section, self.lab.elans.get(lec.elan.0), d),
            ..lec
        }
    }

    fn host(
        &mut self,
        file: &LabFile,
        number: u16,
        name: &At<Name>,
        host: &HostFile,
        d: &mut Diagnostics,
    ) {
        let text = &name.value.0;
        let planned = plan::mac(self.site, Kind::Host, number, 0);
        let mac = identity::mac(host.mac.as_ref(), planned, d);
        let own = (mac, host.address.as_ref());
        let attachment = self.attach(text, host.on.as_ref(), own, &host.link, d);
        let address = attachment.address;
        let elan = self.elan(&host.elan, d);
        let ip = match elan {
            Some(elan) => self.ip(text, elan, host.ip.value.0, host.ip.at, d),
            None => host.ip.value.0,
        };
        let tcp = tcp::of(host, d);
        if let Some(elan) = elan {
            tcp::fits(&tcp, host, self.lab.elan(elan).ip_mtu(), d);
        }
        let vlans = self.vlans(host, elan, d);
        let ports = lines::ports(host, elan, &vlans, self.lab, d);
        let further = vlans.iter().skip(1).map(|(_, elan)| *elan);
        let further: Vec<ElanId> = further.chain(ports).collect();
        let elans = (elan.unwrap_or(ElanId(0)), &further[..]);
        let mut lecs = self.clients(host, (number, mac), (address, ip), elans, d);
        self.further((name, host), (number, address), &mut lecs, d);
        let lane = elan.is_none() || self.has_lane(&lecs);
        self.finish(NodeKind::Host(Host {
            attachment,
            lecs,
            vlans: vlans.iter().map(|(vid, _)| *vid).collect(),
            routes: Vec::new(),
            neighbours: Vec::new(),
            // MPOA needs LANE.
            mpoa: mpoa::client(file.mpoa.as_ref(), host.mpoa.as_ref(), address, d)
                .filter(|_| lane)
                .map(Box::new),
            nhrp: None,
            tcp: Box::new(tcp),
            cpu: cpu::of(text, host, d),
            intake: cpu::intake(host, d),
            clock: cpu::clock(text, host, d),
            ilmi: host.ilmi.get(),
            uni: host.uni.get(),
            kernel: kernel_of(host),
            nic: nic_of(host),
            sockets: Vec::new(),
            bridge: Vec::new(),
            ethernet: ethernet::cable(host, d),
            ports: ethernet::ports(host, d),
            proxy: proxies::of(text, host, self.is_routed(elan), d),
        }));
        self.bridge(number, host, (elan, &vlans), d);
    }
    /// True if the stations of this network exchange no Ethernet frames, so that nothing is bridged to it.
    fn is_routed(&self, elan: Option<ElanId>) -> bool {
        elan.is_some_and(|elan| !self.lab.elan(elan).is_ethernet())
    }
    /// True if one of these interfaces is a LANE client.
    fn has_lane(&self, lecs: &[Lec]) -> bool {
        let mut elans = lecs.iter().map(|lec| self.lab.elan(lec.elan));
        elans.any(Elan::is_lane)
    }
    /// The clients of a host: that of its own network, and those of its further VLANs and of the lines that are ports,
    /// which have no IP address.
    fn clients(
        &self,
        host: &HostFile,
        (number, own_mac): (u16, MacAddr),
        (address, ip): (AtmAddress, Ipv4Addr),
        (own, further): (ElanId, &[ElanId]),
        d: &mut Diagnostics,
    ) -> Vec<Lec> {
        let mac = |interface| plan::mac(self.site, Kind::Host, number, interface);
        let at = |index| address.with_selector(plan::SELECTOR_LEC + index);
        let lec = Lec::new(0, own, own_mac, at(0), Some(ip));
        let section = &host.lec;
        let bridges = host.bridge.is_some() || host.lines.is_some() || section.proxy.get();
        let mut lecs = vec![self.client(lec, section, bridges, d)];
        for (index, elan) in (1..).zip(further) {
            let of_vlan = mac(plan::vlan_interface(index));
            let lec = Lec::new(index, *elan, of_vlan, at(index), None);
            // Mistakes of the section have been told.
            lecs.push(self.client(lec, section, true, &mut d.empty()));
        }
        lecs
    }
    /// Adds the interfaces of a host besides its first one.
    fn further(
        &mut self,
        (name, host): (&At<Name>, &HostFile),
        (number, address): (u16, AtmAddress),
        lecs: &mut Vec<Lec>,
        d: &mut Diagnostics,
    ) {
        let Some(table) = &host.elans else {
            return;
        };
        let text = &name.value.0;
        if let Some((first, _)) = table.0.first()
            && (host.vlans.is_some()
                || host.bridge.is_some()
                || host.lines.is_some()
                || host.lec.proxy.get())
        {
            d.error(first.at, "a host that bridges is on no further ELANs")
                .rests_in(host.place, ["vlans", "bridge", "lines", "lec/proxy"]);
            return;
        }
        if let Some((elan, _)) = table.0.get(plan::MAX_HOST_LECS - 1) {
            let limit = plan::MAX_HOST_LECS;
            d.error(elan.at, format!("more than {limit} ELANs on one host"));
        }
        for (index, (elan, ip)) in (1..).zip(table.0.iter().take(plan::MAX_HOST_LECS - 1)) {
            let Some(found) = self.elan(elan, d) else {
                continue;
            };
            if elan.value == host.elan.value {
                d.error(elan.at, format!("{text} is on {} already", elan.value))
                    .rests_in(host.place, ["elan"]);
                continue;
            }
            let ip = self.ip(text, found, ip.value.0, ip.at, d);
            let mac = plan::mac(self.site, Kind::Host, number, plan::vlan_interface(index));
            let at = address.with_selector(plan::SELECTOR_LEC + index);
            let lec = Lec::new(index, found, mac, at, Some(ip));
            // Mistakes of the section have been told.
            lecs.push(self.client(lec, &host.lec, false, &mut d.empty()));
        }
    }
    /// The VLANs of a host, that of its own ELAN first.
    fn vlans(&self, host: &HostFile, own: Option<ElanId>, d: &mut Diagnostics) -> Vec<Vlan> {
        let mut given = Vec::new();
        for (vid, elan) in host.vlans.iter().flat_map(|table| &table.0) {
            let found = self.elan(elan, d);
            given.extend(found.map(|found| (elan.at, (vid.value.0, found))));
        }
        if let Some((at, _)) = given.get(plan::MAX_LECS) {
            let limit = plan::MAX_LECS;
            d.error(*at, format!("more than {limit} VLANs on one host"));
            given.truncate(limit);
        }
        let Some(own) = own else {
            return Vec::new();
        };
        vlans::in_order(host, given, (own, &self.lab.elans), d)
    }
    /// The hosts on the Ethernet segment behind the host that was added last.
    fn bridge(
        &mut self,
        number: u16,
        host: &HostFile,
        (own, vlans): (Option<ElanId>, &[Vlan]),
        d: &mut Diagnostics,
    ) {
        let (Some(table), Some(own)) = (&host.bridge, own) else {
            return;
        };
        if let Some((first, _)) = table.0.first()
            && (self.is_routed(Some(own)) || host.ilmi.get())
        {
            proxies::no_stations(host, first.at, d);
        }
        if let Some((name, _)) = table.0.get(plan::MAX_SEGMENT) {
            let most = plan::MAX_SEGMENT;
            d.error(name.at, format!("more than {most} hosts on one segment"));
        }
        let mut hosts = Vec::new();
        for (place, (name, ip)) in (1..).zip(table.0.iter().take(plan::MAX_SEGMENT)) {
            let text = &name.value.0;
            let elan = vlans::of_address(ip, (own, vlans), &self.lab.elans, (host, text), d);
            let mac = plan::mac(self.site, Kind::Host, number, place);
            hosts.push(SegmentHost {
                name: text.clone(),
                mac,
                ip: match elan {
                    Some(elan) => self.ip(text, elan, ip.value.0, ip.at, d),
                    None => ip.value.0,
                },
                elan: elan.unwrap_or(own),
                routes: Vec::new(),
            });
        }
        if let Some(NodeKind::Host(model)) = self.lab.nodes.last().map(|node| &node.kind) {
            vlans::reach(host, (vlans, &self.lab.elans), (&model.ports, &hosts), d);
        }
        if let Some(NodeKind::Host(model)) =
            self.lab.nodes_mut().last_mut().map(|node| &mut node.kind)
        {
            model.bridge = hosts;
        }
    }
    fn elan(&self, name: &At<String>, d: &mut Diagnostics) -> Option<ElanId> {
        let elans = &self.lab.elans;
        let found = elans.iter().position(|elan| elan.name == name.value);
        if found.is_none() {
            let finding = d.error(name.at, format!("there is no ELAN '{}'", name.value));
            if elans.is_empty() {
                finding
                    .hint("'lane:' makes ELANs, 'clip:' Classical IP subnets, 'lines:' ATM lines; the lab has none of them");
            }
            finding
                .suggest(&name.value, elans.iter().map(|elan| elan.name.as_str()))
                .rests_on_name(&name.value)
                .rests_on(["lane/elans/.", "clip/.", "lines/."]);
        }
        found.map(ElanId)
    }
    /// Checks an address against its subnet and all other addresses.
    fn ip(
        &mut self,
        node: &str,
        elan: ElanId,
        ip: Ipv4Addr,
        at: Span,
        d: &mut Diagnostics,
    ) -> Ipv4Addr {
        let elan = &self.lab.elans[elan.0];
        let subnet = &elan.subnet;
        if !subnet.contains(ip) {
            let finding = d.error(
                at,
                format!("{ip} is outside {subnet}, the subnet of {elan}"),
            );
            if let Some(other) = self.lab.elans.iter().find(|e| e.subnet.contains(ip)) {
                finding.hint(format!("{ip} belongs to {other}"));
            }
        } else if ip == subnet.network || ip == subnet.broadcast() {
            let what = if ip == subnet.network {
                "network"
            } else {
                "broadcast"
            };
            d.error(at, format!("{ip} is the {what} address of {subnet}"));
        }
        if let Some((other, first)) = self.ips.get(&ip) {
            d.error(
                at,
                format!("two nodes with one address: {other} and {node} both have {ip}"),
            )
            .see(*first, format!("address of {other}"));
        } else {
            self.ips.insert(ip, (node.to_owned(), at));
        }
        ip
    }
}

/// The kind of host that the file wants. A kernel's bridge has no VLANs and no lines here.
fn kernel_of(host: &HostFile) -> Option<bool> {
    match (&host.vlans, &host.lines) {
        (None, None) => host.kernel.plain(),
        _ => Some(false),
    }
}

/// Settings of the adapter of a host.
fn nic_of(host: &HostFile) -> NicConfig {
    NicConfig {
        paths: queues::tunnels(host.adapter.as_ref().and_then(|all| all.paths.as_ref())),
        rate_queues: rate_queues::of_host(host),
        ..adapters::of_node(host.shape.get())
    }
}
