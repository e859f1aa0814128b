//! ATM lines: their stations, the connection of each, and the hosts that bridge them to other networks.

use super::stage::{Building, Joining};
use super::vlans::Vlan;
use super::{Class, Names, limits};
use crate::diag::Diagnostics;
use crate::field::{At, Optional as _};
use crate::file::{HostFile, LabFile, LineFile, Name, PvcFile};
use crate::model::{AtmLine, Elan, ElanId, Lab, NodeId, NodeKind};
use crate::plan;
use crate::units::IpNet;
use aerostat_wire::Qos;

/// Largest SDU of a call, if nothing else is said; the line asks for what its frames need.
const MAX_SDU: u16 = u16::MAX;

/// Appends the lines to the subnets.
pub(super) fn subnets(file: &LabFile, lab: &mut Building<'_>, d: &mut Diagnostics) {
    let lines = file.lines.iter().flat_map(|table| &table.0);
    let first = lab.elans.len();
    for (name, line) in lines {
        if lab.elans.iter().any(|elan| elan.name == name.value.0) {
            let text = format!("two subnets with one name: {}", name.value.0);
            d.error(name.at, text);
        }
        let encapsulation = line.encapsulation.get();
        if let Some(qos) = line.qos.as_ref().filter(|_| line.calls.is_none()) {
            d.error(qos.at, "a line without 'calls:' has no contract of its own")
                .hint("'qos:' of its permanent connection is its contract")
                .rests_in(line.place, ["calls"]);
        }
        let subnet = own_subnet(name, line, lab, d);
        let mtu = line
            .mtu
            .plain()
            .map_or(encapsulation.mtu() as u16, |mtu| mtu as u16);
        if let Some(given) = &line.mtu
            && encapsulation.is_pppoe()
            && given.value > encapsulation.mtu() as u64
        {
            let text = format!(
                "PPPoE leaves {} of the 1500 octets of an Ethernet frame",
                encapsulation.mtu()
            );
            d.warning(given.at, text)
                .hint("longer packets need frames of 1508 octets at both ends (RFC 4638)");
        }
        lab.elans_mut().push(Elan {
            line: Some(AtmLine {
                encapsulation,
                into: None,
                mtu,
                calls: None,
            }),
            ..Elan::with_subnet(name.value.0.clone(), subnet)
        });
    }
    parts(file, first, lab, d);
}

/// Gives the lines that are parts of networks the subnets and the sizes of these. A line may be a part of a later one,
/// so all lines, from number `first` of the subnets on, are there already.
fn parts(file: &LabFile, first: usize, lab: &mut Building<'_>, d: &mut Diagnostics) {
    let lines = file.lines.iter().flat_map(|table| &table.0);
    for (at, (_, line)) in (first..).zip(lines) {
        if lab.elans[at].subnet != IpNet::NONE {
            continue;
        }
        let wanted = line.elan.as_ref();
        let network = wanted.and_then(|wanted| network(line, wanted, file, lab, d));
        let Some(network) = network else {
            // The mistake has been told: any address will do.
            lab.elans_mut()[at].subnet = IpNet::ALL;
            continue;
        };
        let whole = lab.elan(network);
        let (subnet, mtu) = (whole.subnet, whole.ip_mtu());
        if let Some(given) = line
            .mtu
            .as_ref()
            .filter(|given| given.value != u64::from(mtu))
        {
            let text = format!("packets of {whole} have up to {mtu} octets");
            d.warning(given.at, text)
                .hint("a bridge loses longer frames: leave 'mtu:' out");
        }
        let elan = &mut lab.elans_mut()[at];
        elan.subnet = subnet;
        if let Some(model) = &mut elan.line {
            model.into = Some(network);
            model.mtu = line.mtu.plain().map_or(mtu, |mtu| mtu as u16);
        }
    }
}

/// The subnet of a line that is a network of its own; that of another one takes its place later.
fn own_subnet(name: &At<Name>, line: &LineFile, lab: &Lab, d: &mut Diagnostics) -> IpNet {
    match (&line.subnet, &line.elan) {
        (Some(given), None) => {
            let subnet = given.value.0;
            limits::subnet(given, "lines", d);
            if lab.elans.iter().any(|elan| elan.subnet.overlaps(subnet)) {
                d.error(given.at, "this subnet overlaps with another");
            }
            return subnet;
        }
        (Some(given), Some(_)) => {
            d.error(
                given.at,
                "a line with 'elan:' has the subnet of that network",
            )
            .rests_in(line.place, ["elan"]);
        }
        (None, Some(_)) => {}
        (None, None) => {
            let text = format!("line {} has no subnet", name.value.0);
            d.error(name.at, text)
                .hint("'subnet: 10.9.0.0/30', or 'elan: NAME' if a host bridges it to that network")
                .rests_in(line.place, ["subnet", "elan"]);
        }
    }
    IpNet::NONE
}

/// The network of which a line is a part.
fn network(
    line: &LineFile,
    wanted: &At<String>,
    file: &LabFile,
    lab: &Lab,
    d: &mut Diagnostics,
) -> Option<ElanId> {
    let encapsulation = line.encapsulation.get();
    if !encapsulation.is_bridged() {
        let text = format!(
            "a line with {} is no part of an Ethernet",
            encapsulation.name()
        );
        d.error(wanted.at, text)
            .hint("only bridged lines carry Ethernet frames; others have a subnet of their own")
            .rests_in(line.place, ["encapsulation"]);
    }
    let part = |name: &str| {
        let mut lines = file.lines.iter().flat_map(|table| &table.0);
        lines.any(|(known, line)| known.value.0 == name && line.elan.is_some())
    };
    let wholes = || lab.elans().filter(|(_, elan)| !part(&elan.name));
    let Some((id, whole)) = wholes().find(|(_, elan)| elan.name == wanted.value) else {
        let text = match part(&wanted.value) {
            true => format!("line {} is a part of another network itself", wanted.value),
            false => format!("there is no ELAN '{}'", wanted.value),
        };
        let known = wholes().map(|(_, elan)| elan.name.as_str());
        d.error(wanted.at, text)
            .suggest(&wanted.value, known)
            .rests_on_name(&wanted.value)
            .rests_on(["lane/elans/.", "lines/.", "lines/*/elan"]);
        return None;
    };
    if !whole.is_ethernet() {
        d.error(wanted.at, format!("{whole} carries no Ethernet frames"))
            .hint("a bridged line is a part of an ELAN, or of another bridged line")
            .rests_on_name(&wanted.value);
        return None;
    }
    Some(id)
}

/// The lines that are further ports of the bridge of a host with this network and these VLANs.
pub(super) fn ports(
    host: &HostFile,
    own: Option<ElanId>,
    vlans: &[Vlan],
    lab: &Lab,
    d: &mut Diagnostics,
) -> Vec<ElanId> {
    let given = host.lines.iter().flatten();
    if let Some(kernel) = host.kernel.as_ref().filter(|kernel| kernel.value)
        && host.lines.is_some()
    {
        d.error(kernel.at, "the bridge of a Linux kernel host takes no lines of the lab file")
            .hint("leave 'kernel:' out, or join the line by 'elans:' and add its interface to a bridge in the host")
            .rests_in(host.place, ["lines"]);
    }
    let networks = own.into_iter().chain(vlans.iter().map(|(_, elan)| *elan));
    let networks: Vec<ElanId> = networks.map(|elan| lab.network_of(elan)).collect();
    let mut ports: Vec<ElanId> = Vec::new();
    for name in given {
        let lines = || lab.elans().filter(|(_, elan)| elan.line.is_some());
        let Some((id, line)) = lines().find(|(_, elan)| elan.name == name.value) else {
            d.error(name.at, format!("there is no line '{}'", name.value))
                .suggest(&name.value, lines().map(|(_, elan)| elan.name.as_str()))
                .rests_on_name(&name.value)
                .rests_on(["lines/."]);
            continue;
        };
        // The network of this line has a mistake, which has been told.
        if line.subnet == IpNet::ALL {
            continue;
        }
        let joined = own.into_iter().chain(vlans.iter().map(|(_, elan)| *elan));
        if ports.contains(&id) || joined.into_iter().any(|elan| elan == id) {
            let text = format!("the host is on {line} already");
            d.error(name.at, text)
                .rests_in(host.place, ["elan", "vlans"]);
        } else if !networks.contains(&lab.network_of(id)) {
            let own: Vec<&str> = networks.iter().map(|one| &*lab.elan(*one).name).collect();
            d.error(
                name.at,
                format!("{line} is no part of a network of this host"),
            )
            .hint(format!(
                "for example, in the line: elan: {}",
                own.join(", or ")
            ))
            .rests_in(host.place, ["elan", "vlans"])
            .rests_on([&*format!("lines/{}/elan", name.value)]);
        } else if vlans.len().max(1) + ports.len() == plan::MAX_LECS {
            let text = format!("more than {} VLANs and lines on one host", plan::MAX_LECS);
            d.error(name.at, text);
            break;
        } else {
            ports.push(id);
        }
    }
    ports
}

/// Reports a line that nothing bridges to its network, and bridges in a loop.
fn bridged(file: &LabFile, lab: &Lab, d: &mut Diagnostics) {
    for (id, name, _) in all(file, lab) {
        let network = lab.network_of(id);
        let mut ports = lab.line_ports(network);
        if network != id && !ports.any(|port| port.line(lab) == id) {
            let (line, whole) = (&name.value.0, lab.elan(network));
            d.error(name.at, format!("no host bridges line {line} to {whole}"))
                .hint(format!("'lines: [{line}]' of a host on {}", whole.name))
                .rests_on(["hosts/*/lines", "hosts/*/elan", "hosts/*/vlans"]);
        }
    }
    // Each subnet with one that it is joined to; a bridge between two that are joined already closes a loop.
    let mut joined: Vec<usize> = (0..lab.elans.len()).collect();
    fn end(joined: &[usize], mut at: usize) -> usize {
        while joined[at] != at {
            at = joined[at];
        }
        at
    }
    for ((_, node, host), (_, section)) in lab.hosts().zip(&file.hosts.0) {
        for ([port, own], name) in host.line_ports(lab).zip(section.lines.iter().flatten()) {
            let [port, own] = [port, own].map(|itf| end(&joined, host.lecs[itf].elan.0));
            if port == own {
                let text = format!(
                    "{} closes a loop: another way leads from line {} to its network",
                    node.name, name.value
                );
                d.error(name.at, text)
                    .hint("a frame for all stations would circle in it: these bridges have no spanning tree")
                    .rests_on(["hosts/*/lines", "hosts/*/elan", "hosts/*/vlans"]);
            }
            joined[port] = own;
        }
    }
}

/// The lines of the file with their numbers as subnets.
fn all<'a>(
    file: &'a LabFile,
    lab: &'a Lab,
) -> impl Iterator<Item = (ElanId, &'a At<Name>, &'a LineFile)> {
    let table = file.lines.iter().flat_map(|table| &table.0);
    table.filter_map(|(name, line)| {
        let mut elans = lab.elans.iter();
        let at = elans.position(|elan| elan.name == name.value.0 && elan.line.is_some())?;
        Some((ElanId(at), name, line))
    })
}

/// The nodes with an interface on a line.
fn on(lab: &Lab, line: ElanId) -> Vec<NodeId> {
    let nodes = lab.nodes();
    let nodes = nodes.filter(|(_, node)| node.lecs().iter().any(|lec| lec.elan == line));
    nodes.map(|(id, _)| id).collect()
}

/// Resolves who calls, and checks the stations of each line.
pub(super) fn stations(file: &LabFile, names: &Names, lab: &mut Joining<'_>, d: &mut Diagnostics) {
    bridged(file, lab, d);
    let mut callers = Vec::new();
    for (id, name, line) in all(file, lab) {
        let text = &name.value.0;
        let stations = on(lab, id);
        let named: Vec<&str> = stations.iter().map(|id| &*lab.node(*id).name).collect();
        if let [_, _, third, ..] = named[..] {
            d.error(
                name.at,
                format!("line {text} has two ends, and {third} is a third station"),
            )
            .hint("several stations on one network need an ELAN, or a bridge between lines")
            .rests_on(["hosts/*/elan", "hosts/*/elans", "routers/*/elans"]);
        }
        let pppoe = line.encapsulation.get().is_pppoe();
        if pppoe && stations.len() == 1 {
            let own = named[0];
            d.error(name.at, format!("the other end of {text} has no MAC address here: {own} alone is on it"))
                .hint("PPPoE is static here; 'bridged-llcsnap' lets a pppd of the machine speak it with anybody")
                .rests_on(["hosts/*/elan", "hosts/*/elans", "routers/*/elans"]);
        }
        if stations.is_empty() {
            d.warning(name.at, format!("line {text} has no stations"))
                .hint(format!(
                    "'elan: {text}' of a host, or an entry of 'elans:', puts it there"
                ));
        }
        let Some(calls) = &line.calls else {
            continue;
        };
        let wanted = [Class::Host, Class::Router];
        let Some(caller) = names.find(calls, &wanted, "a host or router", d) else {
            continue;
        };
        if !stations.contains(&caller) || stations.len() < 2 {
            let found = match stations.contains(&caller) {
                true => format!("{} has nobody to call on {text}", calls.value),
                false => format!("{} is not on line {text}", calls.value),
            };
            d.error(calls.at, found)
                .hint("a line that is called joins two hosts or routers of the lab")
                .rests_on(["hosts/*/elan", "hosts/*/elans", "routers/*/elans"]);
        }
        let qos = line.qos.plain().unwrap_or(Qos::ubr(MAX_SDU));
        callers.push((id, (caller, qos)));
    }
    for (id, caller) in callers {
        if let Some(line) = &mut lab.elans_mut()[id.0].line {
            line.calls = Some(caller);
        }
    }
}

/// The line that a permanent connection between these nodes carries.
pub(super) fn of_connection(
    file: &PvcFile,
    lab: &Lab,
    ends: [NodeId; 2],
    d: &mut Diagnostics,
) -> Option<ElanId> {
    let given = file.line.as_ref()?;
    let lines = || lab.elans.iter().filter(|elan| elan.line.is_some());
    let position = lab
        .elans
        .iter()
        .position(|elan| elan.line.is_some() && elan.name == given.value);
    let Some(id) = position.map(ElanId) else {
        d.error(given.at, format!("there is no line '{}'", given.value))
            .suggest(&given.value, lines().map(|elan| elan.name.as_str()))
            .rests_on_name(&given.value)
            .rests_on(["lines/."]);
        return None;
    };
    if file.vp.get() {
        d.error(
            given.at,
            "a line is one channel, and this connection is a path",
        )
        .rests_in(file.place, ["vp"]);
    }
    if file.mux.get() || file.peer.is_some() {
        d.error(
            given.at,
            "'mux' and 'peer' are for Classical IP, and this connection carries a line",
        )
        .rests_in(file.place, ["mux", "peer"]);
    }
    let stations = on(lab, id);
    for (end, at) in ends.into_iter().zip([file.from.at, file.to.at]) {
        let outside = matches!(lab.node(end).kind, NodeKind::Outside(_));
        if !outside && !stations.contains(&end) {
            let name = &lab.node(end).name;
            d.error(at, format!("{name} is not on line {}", given.value))
                .hint(format!(
                    "'elan: {0}' of a host, or an entry of 'elans:', puts it there; 'lines: [{0}]' bridges to it",
                    given.value
                ))
                .rests_on(["hosts/*/elan", "hosts/*/elans", "hosts/*/lines", "routers/*/elans"]);
        }
    }
    if ends[0] == ends[1] {
        d.error(file.to.at, "a line has two ends, and these are one");
    }
    if lab.pvcs.iter().any(|pvc| pvc.line == Some(id)) {
        d.error(
            given.at,
            format!("line {} has a connection already", given.value),
        )
        .rests_on(["pvcs/*/line"]);
    }
    Some(id)
}

/// Reports lines without a connection, and connections that leave a station of their line out.
pub(super) fn connected(file: &LabFile, lab: &Lab, d: &mut Diagnostics) {
    let known: Vec<&str> = all(file, lab).map(|(_, name, _)| &*name.value.0).collect();
    for (id, name, line) in all(file, lab) {
        let text = &name.value.0;
        let stations = on(lab, id);
        let pvc = lab.pvcs.iter().find(|pvc| pvc.line == Some(id));
        // A connection with a mistake of its own is not among those of the lab, and a line that is not there may have
        // been meant to be this one.
        let named = |pvc: &PvcFile| {
            let line = pvc.line.as_ref();
            line.is_some_and(|line| line.value == *text || !known.contains(&&*line.value))
        };
        let named = file.pvcs.iter().flatten().any(named);
        match (pvc, &line.calls) {
            (Some(_), Some(calls)) => {
                d.error(
                    calls.at,
                    format!("line {text} has a permanent connection, so nobody calls"),
                )
                .rests_on(["pvcs/*/line"]);
            }
            (None, None) if !named && !stations.is_empty() => {
                d.error(name.at, format!("line {text} has no connection"))
                    .hint(format!(
                        "'line: {text}' of an entry of 'pvcs:' gives it one, or 'calls:' a call"
                    ))
                    .rests_on([
                        "pvcs/.",
                        "pvcs/*/.",
                        "pvcs/*/line",
                        "pvcs/*/from",
                        "pvcs/*/to",
                    ])
                    .rests_in(line.place, ["calls"]);
            }
            _ => {}
        }
        let ends = pvc.map(|pvc| pvc.ends.map(|(node, _)| node));
        let left = stations
            .iter()
            .find(|one| ends.is_some_and(|ends| !ends.contains(one)));
        if let Some(left) = left {
            let station = &lab.node(*left).name;
            d.error(
                name.at,
                format!("{station} is on line {text}, and its connection does not lead there"),
            )
            .rests_on(["pvcs/*/from", "pvcs/*/to"]);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::resolve::tests::{SMALL, told};

    /// Forgotten lines and packets that no modem takes have a warning; a router has one for all lines that it does not
    /// reach.
    #[test]
    fn lines_have_warnings() {
        let lines: String = (0..9)
            .map(|n| {
                format!(
                    "  l{n}: {{ subnet: 10.9.{n}.0/30, encapsulation: pppoe-llcsnap, mtu: 1492 }}\n"
                )
            })
            .collect();
        let told_all = told(&format!("{SMALL}lines:\n{lines}"));
        assert_eq!(told_all.matches("has no stations").count(), 9, "{told_all}");
        assert_eq!(told_all.matches("has no route to").count(), 1, "{told_all}");
        let says = "10.9.3.0/30 (line l3) and 5 more";
        assert!(told_all.contains(says), "{told_all}");
        let long = told(&format!("{SMALL}lines:\n{lines}").replace("1492", "1493"));
        let says = "PPPoE leaves 1492 of the 1500 octets of an Ethernet frame";
        assert_eq!(long.matches(says).count(), 9, "{long}");
    }
}
