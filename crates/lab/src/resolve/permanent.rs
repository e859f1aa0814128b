//! Permanent connections and their way through the switches.

use super::stage::Connecting;
use super::{Class, Names, adapters, atm, lines, pseudowires, queues, rate_queues};
use crate::diag::{Diagnostics, Span};
use crate::field::Optional as _;
use crate::file::{LabFile, PvcFile};
use crate::model::{Attachment, Hop, Lab, Link, NodeId, NodeKind, Pvc, Side};
use crate::plan;
use aerostat_node::atm::Policing;
use aerostat_node::atm::police::{DEFAULT_CDVT, Policer};
use aerostat_node::switch::{ConnectionQueue, Permanent, PortConfig, PortNo, guaranteed};
use aerostat_wire::{Qos, ServiceCategory, TrafficParams, Vc};
use std::collections::{BTreeMap, BTreeSet};

/// Largest SDU of permanent connections: the limit of AAL5. Their users have MTUs of their own.
const MAX_SDU: u16 = u16::MAX;
/// First VCI on links between switches: above those that signalling assigns.
const FIRST_TRUNK_VCI: u16 = 8192;
/// Largest VPI.
const MAX_VPI: u16 = 255;

/// The next free labels for permanent connections on links between switches.
struct TrunkLabels {
    /// VPIs of shaped paths: other connections do not get them.
    tunnels: BTreeSet<u16>,
    vci: u16,
    vpi: u16,
    /// By switch and destination: the port of the first link of the way. Many connections take the same way.
    ways: BTreeMap<(NodeId, NodeId), Option<usize>>,
}

impl TrunkLabels {
    fn next(&mut self, path: bool) -> Option<Vc> {
        while path && self.tunnels.contains(&self.vpi) {
            self.vpi += 1;
        }
        let label = if path {
            Vc::new(self.vpi, 0)
        } else {
            Vc::new(0, self.vci)
        };
        if path {
            self.vpi = self.vpi.checked_add(1).filter(|vpi| *vpi <= MAX_VPI + 1)?;
        } else {
            self.vci = self.vci.checked_add(1)?;
        }
        (label.vpi <= MAX_VPI).then_some(label)
    }

    /// The error when there is no label left.
    fn used_up(path: bool) -> String {
        let most = if path {
            MAX_VPI
        } else {
            u16::MAX - FIRST_TRUNK_VCI
        };
        let what = if path { "paths" } else { "channels" };
        format!(
            "too many permanent connections between switches: {most} labels of {what} are the limit, and each connection \
             takes one on every link between two switches"
        )
    }

    /// The port at `from` by which the way to the switch `to` begins.
    fn way(&mut self, lab: &Lab, from: NodeId, to: NodeId) -> Option<usize> {
        let search = || atm::ways(lab, from).get(&to).map(|(port, _)| *port);
        *self.ways.entry((from, to)).or_insert_with(search)
    }
}

/// Guarantees at a port, in cells per second: sent and received. Those in a shaped path have its VPI; all others are
/// those of the link.
type Guarantees = BTreeMap<(NodeId, PortNo, Option<u16>), (u64, u64)>;

/// Routes the permanent connections, each on its own labels.
pub(super) fn connections(
    lab_file: &LabFile,
    names: &Names,
    lab: &mut Connecting<'_>,
    d: &mut Diagnostics,
) {
    let tunnels = lab.links.iter().flat_map(|link| &link.tunnels);
    let mut labels = TrunkLabels {
        tunnels: tunnels.map(|path| path.vpi).collect(),
        vci: FIRST_TRUNK_VCI,
        vpi: 1,
        ways: BTreeMap::new(),
    };
    let mut reserved = of_tunnels(lab);
    for file in lab_file.pvcs.iter().flatten() {
        let wanted = [Class::Host, Class::Router, Class::Outside];
        let from = names.find(&file.from, &wanted, "an end system", d);
        let to = names.find(&file.to, &wanted, "an end system", d);
        let (Some(from), Some(to)) = (from, to) else {
            continue;
        };
        // An end whose switch does not exist was reported before.
        if ![from, to].iter().all(|end| attached(lab, *end)) {
            continue;
        }
        if let Some(mut pvc) = connection(file, lab, [from, to], &mut labels, d) {
            pvc.line = lines::of_connection(file, lab, [from, to], d);
            odd(file, lab, &pvc, d);
            queues::of_connection(file, &pvc, lab, d);
            pseudowires::of_connection(file, &pvc, lab_file, lab, d);
            if admit(file, lab, &pvc, &mut reserved, d) {
                adapters::of_connection(&pvc, lab);
                lab.pvcs_mut().push(pvc);
            }
        }
    }
}

/// Warns of connections that are possible, but probably not intended.
fn odd(file: &PvcFile, lab: &Lab, pvc: &Pvc, d: &mut Diagnostics) {
    let [(from, _), (to, _)] = pvc.ends;
    let name = &lab.node(from).name;
    if from == to && !matches!(lab.node(from).kind, NodeKind::Outside(_)) {
        let text = format!("both ends are at {name}: a loop through its switch");
        d.warning(file.to.at, text)
            .hint("only programs of 'sockets:' can use it");
    }
    if let Some(given) = &file.police
        && !given.value.0.is_off()
    {
        useless_policer(given.value.0, given.at, &pvc.qos, d);
    }
    adapters::useless_shape(file, lab, pvc, d);
    rate_queues::of_connection(file, lab, pvc, d);
}

/// Warns of a policer that lets every cell pass.
fn useless_policer(what: Policing, at: Span, qos: &Qos, d: &mut Diagnostics) {
    let idle = |traffic: &TrafficParams, what| Policer::new(traffic, what, DEFAULT_CDVT).is_none();
    if !idle(&qos.tx, what) || !idle(&qos.rx, what) {
        return;
    }
    if !idle(&qos.tx, Policing::All) || !idle(&qos.rx, Policing::All) {
        d.warning(at, "police: true has no effect on best effort")
            .hint("police: all holds it to its peak rate, too");
        return;
    }
    let text = match qos.tx.category.or(qos.rx.category) {
        Some(ServiceCategory::Ubr) | None => {
            "police has no effect on best effort without a peak rate"
        }
        _ => {
            "police has no effect on this contract: it has no peak rate, or its rate follows the network"
        }
    };
    d.warning(at, text)
        .hint("for example pcr: 10000, qos: 'cbr:max_pcr=10000', or qos: 'ubr:max_pcr=10000' with police: all");
}

/// True if the end system is attached to a switch, or to another end system.
fn attached(lab: &Lab, end: NodeId) -> bool {
    let attachment = lab.node(end).attachment();
    let on = |at: &Attachment| matches!(lab.node(at.switch).kind, NodeKind::Switch(_));
    attachment.is_some_and(on) || lab.back_to_back(end).is_some()
}

/// The ends with their labels, if these are free.
fn ends(
    file: &PvcFile,
    lab: &Lab,
    nodes: [NodeId; 2],
    d: &mut Diagnostics,
) -> Option<[(NodeId, Vc); 2]> {
    let path = file.vp.get();
    let there = file.to_vc.as_ref().unwrap_or(&file.vc);
    let ends = [(nodes[0], file.vc.value.0), (nodes[1], there.value.0)];
    let places = [file.vc.at, there.at];
    for ((node, vc), at) in ends.into_iter().zip(places) {
        let outside = matches!(lab.node(node).kind, NodeKind::Outside(_));
        let wrong = match path {
            true if !outside => "a path is between links out of the lab",
            true if vc.vci != 0 || vc.vpi == 0 => {
                "the label of a path is a VPI from 1 and VCI 0, such as 5.0"
            }
            false if vc.vci < plan::FIRST_VCI => "VCIs below 32 are not for users",
            false
                if vc.vpi == 0
                    && vc.vci >= plan::FIRST_CALL_VCI
                    && !outside
                    && lab.uplink(node).is_none()
                    && lab.back_to_back(node).is_some() =>
            {
                "on a link without a switch, VCIs from 1024 are for calls"
            }
            _ => continue,
        };
        let found = d.error(at, wrong).rests_in(file.place, ["vp"]);
        // 0.1 may have been 0.10 or 0.100.
        if vc.vci > 0 && vc.vci < plan::FIRST_VCI {
            let (vpi, vci) = (vc.vpi, vc.vci);
            found.hint(format!(
                "a tool may have taken {vpi}.{vci}0 or {vpi}.{vci}00 for a number: put labels in quotes"
            ));
        }
        return None;
    }
    for (n, (node, vc)) in ends.into_iter().enumerate() {
        let same = |one: &(NodeId, Vc), one_path: bool| {
            one.0 == node && one.1.vpi == vc.vpi && (path || one_path || one.1.vci == vc.vci)
        };
        let mut others = lab
            .pvcs
            .iter()
            .flat_map(|pvc| pvc.ends.map(|end| (end, pvc.path)));
        let twice = others.any(|(end, path)| same(&end, path));
        if twice || n == 1 && same(&ends[0], path) {
            let text = format!("{} has {vc} in use already", lab.node(node).name);
            d.error(places[n], text)
                .rests_in(file.place, ["vp", "to_vc"]);
            return None;
        }
    }
    Some(ends)
}

fn traffic(file: &PvcFile, d: &mut Diagnostics) -> Qos {
    if let Some(pcr) = file.pcr.as_ref().filter(|pcr| pcr.value.0 == 0) {
        d.error(pcr.at, "a peak rate is at least 1 cell/s")
            .hint("leave pcr out for best effort");
    }
    if let Some(given) = &file.qos {
        let qos = given.value.0;
        let no_rate = |traffic: TrafficParams| {
            traffic.category == Some(ServiceCategory::Cbr) && traffic.max_pcr.is_none()
        };
        if no_rate(qos.tx) || no_rate(qos.rx) {
            d.error(given.at, "cbr needs a rate")
                .hint("for example: qos: 'cbr:max_pcr=10000', in cells per second");
            // One mistake causes one error: no link guarantees an unlimited rate.
            return Qos::ubr(MAX_SDU);
        }
    }
    if let Some(given) = file.frame_discard.as_ref().filter(|given| given.get())
        && file.vp.get()
    {
        d.error(given.at, "a path has no frames: its channels mix them")
            .hint("leave frame_discard out")
            .rests_in(file.place, ["vp"]);
    }
    let mut qos = match (&file.pcr, &file.qos) {
        (None, None) => Qos::ubr(MAX_SDU),
        (Some(pcr), None) => Qos::cbr(pcr.value.0.try_into().unwrap_or(u32::MAX), MAX_SDU),
        (None, Some(qos)) => qos.value.0,
        (Some(_), Some(qos)) => {
            d.error(qos.at, "one of 'pcr' and 'qos'");
            qos.value.0
        }
    };
    for direction in [&mut qos.tx, &mut qos.rx] {
        if direction.max_sdu == 0 {
            direction.max_sdu = MAX_SDU;
        }
        if let Some(key) = &file.frame_discard {
            direction.frame_discard = Some(key.get());
        }
    }
    qos
}

fn connection(
    file: &PvcFile,
    lab: &Lab,
    nodes: [NodeId; 2],
    labels: &mut TrunkLabels,
    d: &mut Diagnostics,
) -> Option<Pvc> {
    let path = file.vp.get();
    let tunnel = file.tunnel.plain();
    let mut inside = false;
    let ends = ends(file, lab, nodes, d)?;
    let [a, b] = nodes.map(|id| lab.node(id).attachment());
    let (a, b) = (a?, b?);
    if nodes.iter().any(|id| lab.back_to_back(*id).is_some()) {
        return direct(file, lab, ends, d);
    }
    let mut hops = Vec::new();
    let (mut at, mut came) = (a.switch, (a.port, ends[0].1));
    while at != b.switch {
        let Some(port) = labels.way(lab, at, b.switch) else {
            d.error(file.place, "no path between the two ends")
                .rests_on(atm::WAYS);
            return None;
        };
        let Some(mut label) = labels.next(path) else {
            d.error(file.place, TrunkLabels::used_up(path));
            return None;
        };
        if let Some(vpi) = tunnel.filter(|vpi| has_tunnel(lab, at, port, *vpi)) {
            label.vpi = vpi;
            inside = true;
        }
        hops.push(Hop {
            switch: at,
            from: came,
            to: (port, label),
        });
        let NodeKind::Switch(switch) = &lab.node(at).kind else {
            return None;
        };
        let [one, other] = lab.link(switch.ports[port].link).ends;
        let far = if one.node == at { other } else { one };
        (at, came) = (far.node, (far.port.into(), label));
    }
    hops.push(Hop {
        switch: at,
        from: came,
        to: (b.port, ends[1].1),
    });
    if let Some(given) = file.tunnel.as_ref().filter(|_| path || !inside) {
        let vpi = given.value.0;
        let text = match path {
            true => "a path cannot be inside a tunnel, which is a path".to_owned(),
            false => format!("no link between switches on its way has a tunnel {vpi}"),
        };
        d.error(given.at, text)
            .hint("'tunnels: { 5: { pcr: 20000 } }' at a link makes tunnel 5")
            .rests_on(["links/*/2/tunnels", "hosts/*/on", "routers/*/on"])
            .rests_on(atm::WAYS);
        return None;
    }
    Some(made(file, ends, hops, d))
}

fn made(file: &PvcFile, ends: [(NodeId, Vc); 2], hops: Vec<Hop>, d: &mut Diagnostics) -> Pvc {
    let mut queue = ConnectionQueue::DEFAULT;
    if let Some(section) = &file.queue {
        section.given.apply(&mut queue);
    }
    Pvc {
        queue,
        tunnel: file.tunnel.plain(),
        ends,
        hops,
        qos: traffic(file, d),
        path: file.vp.get(),
        police: file.police.plain(),
        shape: file.shape.plain(),
        rate_queue: file.rate_queue.plain(),
        mux: file.mux.get(),
        peer: file.peer.plain(),
        line: None,
    }
}

/// A connection over a link without a switch, which carries the same label at both ends.
fn direct(file: &PvcFile, lab: &Lab, ends: [(NodeId, Vc); 2], d: &mut Diagnostics) -> Option<Pvc> {
    let [(a, one), (b, other)] = ends;
    if lab.back_to_back(a).map(|(peer, _)| peer) != Some(b) {
        let [a, b] = [a, b].map(|id| &lab.node(id).name);
        let text = format!("{a} and {b} are not at the two ends of a link");
        d.error(file.to.at, text)
            .hint("a host without a switch reaches the other end of its link alone")
            .rests_on(WAYS_OF_ENDS);
        return None;
    }
    if let Some(given) = &file.tunnel {
        d.error(given.at, "a link without a switch has no tunnel");
        return None;
    }
    if one != other {
        let at = file.to_vc.as_ref().unwrap_or(&file.vc).at;
        d.error(at, "a link without a switch has one label for both ends")
            .hint("leave 'to_vc' out");
        return None;
    }
    if let Some(police) = file.police.as_ref().filter(|given| !given.value.0.is_off()) {
        d.warning(police.at, "'police' has no effect: this link has no switch");
    }
    if let Some(queue) = &file.queue {
        d.warning(
            queue.place,
            "'queue' has no effect: this link has no switch",
        )
        .hint("the adapters of hosts shape by the contract");
    }
    Some(made(file, ends, Vec::new(), d))
}

/// Parts of a file that join end systems to switches and to each other.
const WAYS_OF_ENDS: [&str; 4] = ["links/*/0", "links/*/1/.", "hosts/*/on", "routers/*/on"];

/// Adds what a connection needs to the guarantees. If its ports cannot guarantee what all connections together need,
/// reports this, and is false; the connections after it are admitted without what this connection asks for.
fn admit(
    file: &PvcFile,
    lab: &Lab,
    pvc: &Pvc,
    reserved: &mut Guarantees,
    d: &mut Diagnostics,
) -> bool {
    if let Some((_, side)) = lab.back_to_back(pvc.ends[0].0) {
        return admit_direct(file, lab, (pvc, side), reserved, d);
    }
    let mut before = Guarantees::new();
    let inside =
        |switch, port: usize, vc: Vc| has_tunnel(lab, switch, port, vc.vpi).then_some(vc.vpi);
    for hop in &pvc.hops {
        let ends = [hop.from, hop.to].map(|(port, vc)| (PortNo(port as u16), vc));
        for ((port, vc), held) in Permanent::channel(ends[0], ends[1], pvc.qos).holdings() {
            let place = (hop.switch, port, inside(hop.switch, port.0.into(), vc));
            let sum = reserved.entry(place).or_default();
            before.entry(place).or_insert(*sum);
            *sum = (sum.0.saturating_add(held.tx), sum.1.saturating_add(held.rx));
        }
    }
    for hop in &pvc.hops {
        let NodeKind::Switch(switch) = &lab.node(hop.switch).kind else {
            continue;
        };
        for (port, vc) in [hop.from, hop.to] {
            let Some(link) = switch.ports.get(port).map(|port| lab.link(port.link)) else {
                continue;
            };
            let path = inside(hop.switch, port, vc);
            let sum = reserved.get(&(hop.switch, PortNo(port as u16), path));
            let sum = sum.copied().unwrap_or_default();
            let tunnel = link.tunnels.iter().find(|tunnel| Some(tunnel.vpi) == path);
            if let Some(tunnel) = tunnel {
                let (sum, pcr) = (sum.0.max(sum.1), tunnel.pcr);
                if sum <= u64::from(pcr) {
                    continue;
                }
                let text = format!(
                    "tunnel {} of link {} cannot guarantee {sum} cells/s: its peak rate is {pcr}",
                    tunnel.vpi, link.name
                );
                d.error(file.place, text)
                    .hint("a tunnel is at least as wide as the guarantees of its connections together")
                    .rests_on(["links/*/2/tunnels", "links/*/1/tunnels", "hosts/*/link"])
                    .rests_on(atm::WAYS);
                reserved.append(&mut before);
                return false;
            }
            if !affordable(file, (link, hop.switch), sum, d) {
                reserved.append(&mut before);
                return false;
            }
        }
    }
    true
}

/// False, and an error, if a link cannot guarantee so many cells per second: what this end of it sends, and what that
/// receives.
fn affordable(
    file: &PvcFile,
    (link, end): (&Link, NodeId),
    (tx, rx): (u64, u64),
    d: &mut Diagnostics,
) -> bool {
    let [own, other] = [link.ends[0].node != end, link.ends[0].node == end].map(usize::from);
    let most = |side: usize| u64::from(PortConfig::admits(link.lines[side].rate));
    let wanted = [(tx, most(own)), (rx, most(other))];
    let over = wanted.iter().filter(|(wanted, most)| wanted > most);
    let Some((wanted, _)) = over.max() else {
        return true;
    };
    let text = format!("link {} cannot guarantee {wanted} cells/s", link.name);
    d.error(file.place, text)
        .hint("guarantees may take 95 % of a link's rate")
        .rests_on([
            "links/*/2/rate",
            "links/*/1/rate",
            "hosts/*/link",
            "routers/*/link",
        ])
        .rests_on(atm::WAYS);
    false
}

/// As [`admit`], on a link without a switch: its first end keeps the account.
fn admit_direct(
    file: &PvcFile,
    lab: &Lab,
    (pvc, side): (&Pvc, Side),
    reserved: &mut Guarantees,
    d: &mut Diagnostics,
) -> bool {
    let ends = pvc.ends.map(|(node, _)| node);
    let (first, qos) = match side {
        Side::Network => (ends[0], pvc.qos),
        Side::User => (ends[1], pvc.qos.reversed()),
    };
    let Some(link) = lab.node(first).attachment().map(|at| lab.link(at.link)) else {
        return false;
    };
    let sum = reserved.entry((first, PortNo(0), None)).or_default();
    let wanted = (
        sum.0.saturating_add(guaranteed(qos.tx)),
        sum.1.saturating_add(guaranteed(qos.rx)),
    );
    let fits = affordable(file, (link, first), wanted, d);
    if fits {
        *sum = wanted;
    }
    fits
}

/// True if the link at a port of a switch has this shaped path.
fn has_tunnel(lab: &Lab, switch: NodeId, port: usize, vpi: u16) -> bool {
    let NodeKind::Switch(switch) = &lab.node(switch).kind else {
        return false;
    };
    let link = switch.ports.get(port).map(|port| lab.link(port.link));
    link.is_some_and(|link| link.tunnels.iter().any(|tunnel| tunnel.vpi == vpi))
}

/// Rates that shaped paths take of their links.
fn of_tunnels(lab: &Lab) -> Guarantees {
    let mut all = Guarantees::new();
    for (id, _, switch) in lab.switches() {
        for (number, port) in (0..).zip(&switch.ports) {
            let tunnels = lab.link(port.link).tunnels.iter();
            let sum: u64 = tunnels.map(|tunnel| u64::from(tunnel.pcr)).sum();
            if sum > 0 {
                all.insert((id, PortNo(number), None), (sum, sum));
            }
        }
    }
    all
}

/// The label in a text `VPI.VCI`; the connection decides which values are valid.
///
/// # Errors
/// A sentence: the text has another form, or a number is out of range (VPI 0 to 255).
pub fn label(text: &str) -> Result<Vc, String> {
    let parts = text.split_once('.');
    let numbers: Option<(u64, u64)> =
        parts.and_then(|(vpi, vci)| Some((vpi.parse().ok()?, vci.parse().ok()?)));
    let Some((vpi, vci)) = numbers else {
        return Err("expected VPI.VCI, such as 0.100".to_owned());
    };
    match (u16::try_from(vpi), u16::try_from(vci)) {
        (Ok(vpi @ 0..=MAX_VPI), Ok(vci)) => Ok(Vc::new(vpi, vci)),
        (Ok(0..=MAX_VPI), Err(_)) => Err(format!("a VCI is 0 to {}, not {vci}", u16::MAX)),
        _ => Err(format!("a VPI is 0 to {MAX_VPI}, not {vpi}")),
    }
}

#[cfg(test)]
mod tests;
