//! Queues, schedulers and shaped paths of switches.

use crate::diag::{Diagnostics, Span};
use crate::field::{Optional as _, Table};
use crate::file::{
    ConnectionQueueFile, LabFile, LinkFile, LinkOptions, PathId, PvcFile, QueuesFile, TrunkFile,
    TunnelFile,
};
use crate::model::{Lab, LinkId, NodeId, NodeKind, Pvc, Queues};
use aerostat_node::atm::shaper::Shaper;
use aerostat_node::atm::{Discipline, PathConfig};
use aerostat_node::switch::{ConnectionQueue, PortConfig, QueueParams};
use aerostat_proto::Duration;
use aerostat_wire::ServiceCategory;
use aerostat_wire::counted;
use std::collections::{BTreeMap, BTreeSet};

/// Settings of a section.
pub(super) fn of(section: Option<&QueuesFile>) -> Queues {
    let mut queues = Queues::default();
    if let Some(section) = section {
        section.given.apply(&mut queues.params);
        queues.scheduler = section.scheduler.plain();
        for (category, section) in section.calls.iter().flat_map(|table| &table.0) {
            let mut queue = ConnectionQueue::DEFAULT;
            section.given.apply(&mut queue);
            queues.calls.set(category.value.0, queue);
        }
    }
    queues
}

/// The shaped paths of a link.
pub(super) fn tunnels(table: Option<&Table<PathId, TunnelFile>>) -> Vec<PathConfig> {
    let entries = table.map_or(&[][..], |table| &table.0);
    let of = |(vpi, file): &(crate::field::At<PathId>, TunnelFile)| {
        let (pcr, cdvt) = rate(file);
        let vpi = vpi.value.0;
        PathConfig { vpi, pcr, cdvt }
    };
    entries.iter().map(of).collect()
}

/// The VPI of the shaped path that calls are in; 0 if there is no such path.
pub(super) fn call_vpi(table: Option<&Tunnels>) -> u16 {
    let entries = table.map_or(&[][..], |table| &table.0);
    let of_calls = entries.iter().find(|(_, file)| takes_calls(file).is_some());
    of_calls.map_or(0, |(vpi, _)| vpi.value.0)
}

/// The place where a shaped path is told to take calls.
pub(super) fn takes_calls(file: &TunnelFile) -> Option<Span> {
    file.calls.at.filter(|_| file.calls.get())
}

/// Peak rate and tolerance of a shaped path.
pub(super) fn rate(file: &TunnelFile) -> (u32, Duration) {
    let pcr = u32::try_from(file.pcr.value.0).unwrap_or(u32::MAX);
    (pcr, file.cdvt.get())
}

type Tunnels = Table<PathId, TunnelFile>;

/// The links between switches, which come first in a lab, without those that have a wrong end.
fn trunks<'a>(file: &'a LabFile, lab: &'a Lab) -> impl Iterator<Item = &'a TrunkFile> + 'a {
    let switches = lab
        .nodes()
        .filter(|(_, node)| matches!(node.kind, NodeKind::Switch(_)));
    let switches: BTreeMap<&str, NodeId> = switches.map(|(id, node)| (&*node.name, id)).collect();
    let switch = move |name: &str| switches.get(name).copied();
    let links = file.links.iter().flatten();
    links.filter_map(move |link| match link {
        LinkFile::Trunk(link) => {
            let [a, b] = link.ends.each_ref().map(|end| switch(&end.value));
            (a? != b?).then_some(&**link)
        }
        LinkFile::Outside(_) => None,
    })
}

/// The links with their sections.
fn sections<'a>(
    file: &'a LabFile,
    lab: &'a Lab,
) -> Vec<(LinkId, Option<&'a QueuesFile>, Option<&'a Tunnels>)> {
    let mut all = Vec::new();
    let mut add = |link: LinkId, options: &'a LinkOptions| {
        all.push((link, options.queues.as_ref(), options.tunnels.as_ref()));
    };
    let links = file.links.iter().flatten();
    for (index, link) in trunks(file, lab).enumerate() {
        add(LinkId(index), &link.options);
    }
    let link_of = |name: &str| Some(lab.node(lab.find(name)?).attachment()?.link);
    let hosts = file.hosts.0.iter();
    let hosts = hosts.map(|(name, host)| (&name.value.0, &host.link));
    let routers = file.routers.iter().flat_map(|table| &table.0);
    let routers = routers.map(|(name, router)| (&name.value.0, &router.link));
    for (name, options) in hosts.chain(routers) {
        if options.given.any()
            && let Some(link) = link_of(name)
        {
            add(link, options);
        }
    }
    let standby = file
        .lane
        .iter()
        .flat_map(|lane| lane.standby.iter().flatten());
    let first = file.lane.iter().map(|lane| &lane.link);
    let servers = first.chain(standby.map(|one| &one.link));
    let nodes = lab.nodes().filter_map(|(_, node)| match &node.kind {
        NodeKind::LaneServer(server) => Some(server.attachment.link),
        _ => None,
    });
    nodes
        .zip(servers)
        .for_each(|(link, options)| add(link, options));
    let outside = links.filter_map(|link| match link {
        LinkFile::Outside(link) => Some(link),
        LinkFile::Trunk(_) => None,
    });
    for ((_, node, _), link) in lab.outside().zip(outside) {
        if let Some(at) = node.attachment() {
            let options = &link.options;
            all.push((at.link, options.queues.as_ref(), options.tunnels.as_ref()));
        }
    }
    all
}

/// Thresholds of a port with their buffers: key, value, key of the buffer, size.
const fn thresholds(
    params: &QueueParams,
    sizes: [u32; 4],
) -> [(&'static str, Option<u32>, &'static str, u32); 8] {
    let [buffer, vc, guaranteed, guaranteed_vc] = sizes;
    [
        ("epd", params.epd, "buffer", buffer),
        ("clp", params.clp, "buffer", buffer),
        ("efci", params.efci, "buffer", buffer),
        ("vc_epd", params.vc_epd, "vc_buffer", vc),
        ("vc_clp", params.vc_clp, "vc_buffer", vc),
        ("vc_efci", params.vc_efci, "vc_buffer", vc),
        (
            "guaranteed_clp",
            params.guaranteed_clp,
            "guaranteed_buffer",
            guaranteed,
        ),
        (
            "guaranteed_vc_clp",
            params.guaranteed_vc_clp,
            "guaranteed_vc_buffer",
            guaranteed_vc,
        ),
    ]
}

fn above(key: &str, value: u32, buffer: &str, size: u32) -> String {
    let [value, size] = [value, size].map(|count| counted(count, "cell", "cells"));
    format!("{key} of {value} is above the {buffer} of {size}")
}

/// Refuses thresholds that no level reaches, and shaped paths that their link cannot carry.
pub(super) fn check(file: &LabFile, lab: &Lab, d: &mut Diagnostics) {
    let sections = sections(file, lab);
    let of_link: BTreeMap<LinkId, _> = sections
        .iter()
        .map(|section| (section.0, section.1))
        .collect();
    let own = |id: LinkId| of_link.get(&id).copied().flatten();
    let mut told: BTreeSet<(Span, &str)> = BTreeSet::new();
    for ((_, _, switch), (_, of_switch)) in lab.switches().zip(&file.switches.0) {
        for port in &switch.ports {
            let queues = Queues::at(switch, lab.link(port.link));
            let places = [own(port.link), of_switch.queues.as_ref()];
            for (key, value, buffer, size) in thresholds(&queues.params, queues.buffers(lab)) {
                let at = |key: &str| places.iter().flatten().find_map(|one| one.given.at(key));
                if let Some(value) = value.filter(|value| *value > size)
                    && let Some(at) = at(key).or_else(|| at(buffer))
                    && told.insert((at, key))
                {
                    d.error(at, above(key, value, buffer, size))
                        .hint("a larger buffer, or a lower threshold");
                }
            }
        }
    }
    for (id, _, tunnels) in &sections {
        if let Some(tunnels) = tunnels {
            carries(lab, *id, named("tunnel", tunnels), d);
            of_all_calls(lab, *id, tunnels, d);
        }
    }
    of_calls(file, lab, &of_link, d);
}

/// Refuses shaped paths for calls where there is no such path, or a second one.
fn of_all_calls(lab: &Lab, id: LinkId, tunnels: &Tunnels, d: &mut Diagnostics) {
    let link = lab.link(id);
    let is_switch = |id: NodeId| matches!(lab.node(id).kind, NodeKind::Switch(_));
    let between_switches = link.ends.iter().all(|end| is_switch(end.node));
    let mut first = None;
    for (vpi, file) in &tunnels.0 {
        let Some(at) = takes_calls(file) else {
            continue;
        };
        if !between_switches {
            let text = format!(
                "link {} is not between switches: calls on it have VPI 0",
                link.name
            );
            d.error(at, text)
                .hint("'calls: true' stands at a tunnel of a link between two switches of the lab")
                .rests_on(["links/*/0", "links/*/1/."]);
        } else if let Some(first) = first {
            let text = format!("tunnel {first} of link {} has the calls already", link.name);
            d.error(at, text)
                .hint("all calls on a link are in one tunnel, so one of its tunnels takes calls");
        }
        first.get_or_insert(vpi.value.0);
    }
}

/// Checks what calls have for themselves at the ports where it counts.
fn of_calls(
    file: &LabFile,
    lab: &Lab,
    of_link: &BTreeMap<LinkId, Option<&QueuesFile>>,
    d: &mut Diagnostics,
) {
    let mut uses: BTreeMap<Span, (&ConnectionQueueFile, Own, Vec<Queues>)> = BTreeMap::new();
    for ((_, _, switch), (_, of_switch)) in lab.switches().zip(&file.switches.0) {
        for port in &switch.ports {
            let own = of_link.get(&port.link).copied().flatten();
            let places = [own, of_switch.queues.as_ref()];
            let queues = Queues::at(switch, lab.link(port.link));
            for (category, queue) in queues.calls.iter() {
                let entries = places.iter().flatten().filter_map(|one| one.calls.as_ref());
                let mut entries = entries.flat_map(|table| &table.0);
                let Some((_, section)) = entries.find(|(known, _)| known.value.0 == category)
                else {
                    continue;
                };
                let own = (queue, category.is_guaranteed());
                let entry = uses.entry(section.place);
                entry.or_insert((section, own, Vec::new())).2.push(queues);
            }
        }
    }
    for (section, own, ports) in uses.values() {
        thresholds_fit(section, *own, ports, lab, d);
        weight_counts(section, own.1, ports, "no port that it is for", d);
    }
}

/// A shaped path with the words for it.
pub(super) struct ShapedPath<'a> {
    /// Its name: `tunnel 5`.
    pub(super) name: String,
    /// The name of all of its kind: `tunnels`.
    pub(super) kind: String,
    pub(super) file: &'a TunnelFile,
}

/// Shaped paths that are called `what`.
pub(super) fn named<'a>(what: &str, tunnels: &'a Tunnels) -> Vec<ShapedPath<'a>> {
    let entries = tunnels.0.iter();
    let of = entries.map(|(vpi, file)| ShapedPath {
        name: format!("{what} {}", vpi.value.0),
        kind: format!("{what}s"),
        file,
    });
    of.collect()
}

/// Refuses shaped paths that their link cannot carry.
pub(super) fn carries(lab: &Lab, id: LinkId, paths: Vec<ShapedPath<'_>>, d: &mut Diagnostics) {
    let link = lab.link(id);
    let most = u64::from(PortConfig::admits(link.least_rate()));
    let mut sum: u64 = 0;
    for ShapedPath { name, kind, file } in paths {
        if file.pcr.value.0 == 0 {
            d.error(file.pcr.at, "a peak rate is at least 1 cell/s");
        }
        let before = sum;
        sum = sum.saturating_add(file.pcr.value.0);
        if sum > most && before <= most {
            let text = format!(
                "link {} cannot carry {name}: the {kind} need {sum} cells/s of {most}",
                link.name
            );
            d.error(file.pcr.at, text)
                .hint("guarantees may take 95 % of a link's rate");
        }
    }
}

/// Settings of a connection, and true if it is CBR or VBR.
type Own = (ConnectionQueue, bool);

/// Refuses thresholds above the buffer of a connection.
fn thresholds_fit(
    section: &ConnectionQueueFile,
    (queue, guaranteed): Own,
    ports: &[Queues],
    lab: &Lab,
    d: &mut Diagnostics,
) {
    let sizes = ports
        .iter()
        .map(|port| port.buffers(lab)[if guaranteed { 3 } else { 1 }]);
    let own = queue.buffer.filter(|own| *own > 0);
    let size = own.or(sizes.min()).unwrap_or(u32::MAX);
    for (key, value) in [("epd", queue.epd), ("clp", queue.clp), ("efci", queue.efci)] {
        if let Some(value) = value.filter(|value| *value > size)
            && let Some(at) = section.given.at(key)
        {
            d.error(at, above(key, value, "buffer", size))
                .hint("a larger buffer, or a lower threshold");
        }
    }
}

/// Warns of a weight that changes nothing. `nowhere` says that of all ports where it could.
fn weight_counts(
    section: &ConnectionQueueFile,
    guaranteed: bool,
    ports: &[Queues],
    nowhere: &str,
    d: &mut Diagnostics,
) {
    let Some(at) = section.given.at("weight") else {
        return;
    };
    if guaranteed {
        d.warning(
            at,
            "weight has no effect on CBR and VBR, which have their rates",
        )
        .hint("weights share what is left among ABR, GFR and UBR: leave it out here");
    } else if !weighted(ports.iter().copied()) {
        d.warning(
            at,
            format!("weight has no effect: {nowhere} serves by weight"),
        )
        .hint("'queues: { scheduler: weighted }' at a switch or a link makes weights count");
    }
}

/// Refuses what a connection has for itself, if it contradicts; warns of what has no effect.
pub(super) fn of_connection(file: &PvcFile, pvc: &Pvc, lab: &Lab, d: &mut Diagnostics) {
    let Some(section) = &file.queue else { return };
    let ports: Vec<Queues> = queues_on(pvc, lab).collect();
    let queue = &pvc.queue;
    let class = pvc.qos.tx.category.or(pvc.qos.rx.category);
    let guaranteed = class.is_some_and(ServiceCategory::is_guaranteed);
    thresholds_fit(section, (*queue, guaranteed), &ports, lab, d);
    weight_counts(section, guaranteed, &ports, "no port on the way", d);
    let rate = |traffic| Shaper::new(traffic).is_some();
    if queue.shape
        && !rate(&pvc.qos.tx)
        && !rate(&pvc.qos.rx)
        && let Some(at) = section.given.at("shape")
    {
        d.warning(
            at,
            "shape has no effect: the contract has no rate to shape to",
        )
        .hint("for example qos: 'ubr:max_pcr=10000'");
    }
}

/// True if one of these ports serves by weight.
pub(super) fn weighted(mut ports: impl Iterator<Item = Queues>) -> bool {
    ports.any(|port| port.scheduler == Some(Discipline::Weighted))
}

/// The queues of the ports by which a connection leaves switches, in either direction.
pub(super) fn queues_on<'a>(pvc: &'a Pvc, lab: &'a Lab) -> impl Iterator<Item = Queues> + 'a {
    pvc.hops.iter().flat_map(|hop| {
        let ports = [hop.from.0, hop.to.0].into_iter();
        ports.filter_map(|port| match &lab.node(hop.switch).kind {
            NodeKind::Switch(switch) => {
                Some(Queues::at(switch, lab.link(switch.ports.get(port)?.link)))
            }
            _ => None,
        })
    })
}
