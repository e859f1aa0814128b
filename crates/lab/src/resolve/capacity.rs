//! Meaning of 100 % of a load, and loads that their sender cannot send.

use super::{atm, events};
use crate::diag::{Diagnostics, Span};
use crate::field::{At, Optional as _};
use crate::file::{Layer, TrafficFile};
use crate::model::{Cable, FaultKind, Flow, Lab, LinkId, Load, LoadOf, NodeId, NodeKind, Share};
use aerostat_node::atm::CellRate;

/// Meaning of 100 % of the load.
pub(super) fn of(
    section: &TrafficFile,
    flow: &Flow,
    lab: &Lab,
    d: &mut Diagnostics,
) -> Option<LoadOf> {
    let cable = match (&lab.node(flow.from).kind, flow.segment[0]) {
        (NodeKind::Host(host), Some(station)) => Some(host.cable_of(station)),
        _ => None,
    };
    let default = if cable.is_some() && section.link.is_none() {
        Layer::Ethernet
    } else {
        Layer::Cells
    };
    match section.layer.plain().unwrap_or(default) {
        Layer::Ethernet => {
            let rate = match (&section.link, cable) {
                (None, Some(cable)) => Some((cable.rate, cable.tagged)),
                (Some(link), _) => ethernet_rate(&link.value).map(|rate| (rate, false)),
                (None, None) => None,
            };
            let Some((rate, tagged)) = rate else {
                let (at, text) = match (&section.link, &section.layer) {
                    (Some(link), _) => (link.at, "there is no Ethernet with this rate"),
                    (None, layer) => (
                        layer.place().unwrap_or(section.place),
                        "the sender is at no Ethernet whose share this load could be",
                    ),
                };
                d.error(at, text)
                    .hint("layer: ethernet counts octets on the segment of a sender behind a bridge, or of link: 10Mbps, 100Mbps or 1Gbps")
                    .rests_in(section.place, ["layer", "link", "from"]);
                return None;
            };
            Some(LoadOf::Ethernet { rate, tagged })
        }
        Layer::Cells => {
            let own = lab.node(flow.from).attachment()?.link;
            let link = match &section.link {
                Some(name) => events::link(name, lab, d)?,
                None => own,
            };
            if let Some(name) = &section.link {
                elsewhere(name, link, flow, lab, d);
            }
            let end = (flow.from, flow.segment[0]);
            let elan = lab.client_over(end, flow.over)?.elan;
            let rate = rate_towards(section, (link, flow), lab, d)?;
            Some(LoadOf::Cells {
                link,
                rate,
                overhead: lab.elan(elan).overhead(),
            })
        }
    }
}

/// The rate of a link in the direction of a flow.
fn rate_towards(
    section: &TrafficFile,
    (link, flow): (LinkId, &Flow),
    lab: &Lab,
    d: &mut Diagnostics,
) -> Option<CellRate> {
    let link = lab.link(link);
    let at_end = |node: NodeId| link.ends.iter().position(|end| end.node == node);
    let side = at_end(flow.from).or_else(|| Some(1 - at_end(flow.to)?));
    if let Some(rate) = side
        .map(|side| link.lines[side].rate)
        .or_else(|| link.rate())
    {
        return Some(rate);
    }
    let at = section.link.as_ref().map_or(section.place, |name| name.at);
    d.error(
        at,
        format!("the directions of link {} have different rates", link.name),
    )
    .hint("a load may be a share of such a link if the flow begins or ends at it")
    .rests_in(section.place, ["link", "from", "to"])
    .rests_on(["links/*/2/rate", "hosts/*/link", "routers/*/link"]);
    None
}

/// Warns of a load whose link belongs to a host that is no end of the flow: the flow never crosses it.
fn elsewhere(name: &At<String>, link: LinkId, flow: &Flow, lab: &Lab, d: &mut Diagnostics) {
    let host = |node: NodeId| matches!(lab.node(node).kind, NodeKind::Host(_));
    let mut ends = lab.link(link).ends.iter().map(|end| end.node);
    if let Some(other) = ends.find(|node| host(*node) && ![flow.from, flow.to].contains(node)) {
        let text = format!(
            "this load is a share of a link of {}, which the flow does not cross",
            lab.node(other).name
        );
        d.warning(name.at, text)
            .hint("the load of a link on the way, or without 'link:' that of the sender's own link")
            .rests_on(["traffic/*/from", "traffic/*/to"]);
    }
}

/// Warns of loads whose link leads to a router or a LANE server, or is a trunk, that their flow does not cross. The way
/// is known between two hosts of one ELAN or subnet, where a connection leads from the one to the other: it takes the
/// fewest links, unless the lab cuts links or switches.
pub(super) fn off_the_way(sections: &[&TrafficFile], lab: &Lab, d: &mut Diagnostics) {
    let mut told = None;
    for (flow, section) in lab.traffic.iter().zip(sections) {
        let link = match &flow.load {
            Some(Load {
                of: LoadOf::Cells { link, .. },
                ..
            }) => *link,
            _ => continue,
        };
        // The sizes of a ladder have one way.
        let Some(name) = section.link.as_ref().filter(|name| told != Some(name.at)) else {
            continue;
        };
        let Some(text) = not_crossed(link, flow, lab) else {
            continue;
        };
        told = Some(name.at);
        d.warning(name.at, text)
            .hint("the load of a link on the way, or without 'link:' that of the sender's own link")
            .rests_on([
                "traffic/*/from",
                "traffic/*/to",
                "hosts/*/on",
                "hosts/*/elan",
            ])
            .rests_on(atm::WAYS);
    }
}

/// Why the flow does not cross the link; `None` if it may.
fn not_crossed(link: LinkId, flow: &Flow, lab: &Lab) -> Option<String> {
    let [near, far] = flow.segment;
    let elan = |end: (NodeId, Option<usize>)| match lab.node(end.0).kind {
        NodeKind::Host(_) => Some(lab.client_over(end, flow.over)?.elan),
        _ => None,
    };
    if elan((flow.from, near))? != elan((flow.to, far))? {
        return None;
    }
    let ends = lab.link(link).ends.map(|end| end.node);
    for end in ends {
        let name = &lab.node(end).name;
        match lab.node(end).kind {
            NodeKind::Router(_) => {
                return Some(format!(
                    "this load is a share of a link of {name}, which a flow between hosts of one subnet does not cross"
                ));
            }
            NodeKind::LaneServer(_) => {
                return Some(format!(
                    "this load is a share of a link of {name}, which frames cross only while the BUS forwards them"
                ));
            }
            // Links of hosts are told where the load is read, and beyond a link out of the lab nothing is known.
            NodeKind::Host(_) | NodeKind::Outside(_) => return None,
            NodeKind::Switch(_) => {}
        }
    }
    let cuts =
        |what: &FaultKind| matches!(what, FaultKind::LinkDown(_) | FaultKind::Crash(_, None));
    if lab.faults.iter().any(|fault| cuts(&fault.what)) {
        return None;
    }
    let [from, to] = [flow.from, flow.to].map(|node| Some(lab.node(node).attachment()?.switch));
    let (from, to) = (from?, to?);
    let [before, after] = [from, to].map(|start| {
        let ways = atm::ways(lab, start);
        move |node: NodeId| match node == start {
            true => Some(0),
            false => ways.get(&node).map(|(_, hops)| *hops),
        }
    });
    let fewest = before(to)?;
    let [a, b] = ends;
    let crosses = |near, far| Some(before(near)? + 1 + after(far)? == fewest);
    let crossed = crosses(a, b)? || crosses(b, a)?;
    let [one, other] = [flow.from, flow.to].map(|node| &lab.node(node).name);
    (!crossed).then(|| {
        format!("this load is a share of a trunk that the way from {one} to {other} does not cross")
    })
}

/// Warns of a load that the sender's own link, or its cable, cannot carry; true if it did.
pub(super) fn above_own_link(
    at: Span,
    load: &Load,
    flow: &Flow,
    lab: &Lab,
    d: &mut Diagnostics,
) -> bool {
    let frame = load.frame;
    let offered = load.share.and_then(|share| load.of.frames(frame, share));
    let most = own_capacity(flow, lab).and_then(|own| own.frames(frame, Share::ALL));
    let (Some(offered), Some(most)) = (offered, most) else {
        return false;
    };
    // Rates with a remainder are compared by their rounded gaps: equal rates are no overload.
    let [offered, most] = [offered, most].map(|rate| 1e9 / rate.mean_gap());
    let above = offered > most * (1.0 + 1e-9);
    if above {
        let text = format!(
            "{offered:.0} frames of {frame} octets a second are more than the {most:.0} that the sender's own link carries"
        );
        d.warning(at, text)
            .hint("the rest is lost at the sender: a lower load, or a faster link of the sender");
    }
    above
}

/// 100 % of what the sender's own link or cable carries.
fn own_capacity(flow: &Flow, lab: &Lab) -> Option<LoadOf> {
    let node = lab.node(flow.from);
    if let (NodeKind::Host(host), Some(station)) = (&node.kind, flow.segment[0]) {
        let Cable { rate, tagged } = host.cable_of(station);
        return Some(LoadOf::Ethernet { rate, tagged });
    }
    let link = node.attachment()?.link;
    Some(LoadOf::Cells {
        link,
        rate: lab.own_rate(flow.from)?,
        overhead: lab.elan(node.lecs().first()?.elan).overhead(),
    })
}

/// The rates that an Ethernet has.
fn ethernet_rate(text: &str) -> Option<u64> {
    crate::units::bit_rate(text)
        .ok()
        .filter(|rate| matches!(rate, 10_000_000 | 100_000_000 | 1_000_000_000))
}

#[cfg(test)]
mod tests {
    use crate::model::LoadOf;
    use crate::resolve::tests::{SMALL, lab};

    #[test]
    fn the_share_of_a_station_is_that_of_its_own_port() {
        let ports = "ip: 10.1.0.10, bridge: { p: 10.1.0.20, q: 10.1.0.21 }, ethernet: { rate: 100Mbps, \
            ports: { e1: { stations: [p], rate: 10Mbps, tag: true }, e2: { stations: [q] } } }";
        let text = SMALL.replace("ip: 10.1.0.10", ports);
        let flows = "traffic: [{ from: p, to: y, kind: load, load: 50%, frames: 64 }, \
            { from: q, to: y, kind: load, load: 50%, frames: 64 }]";
        let lab = lab(&format!("{text}{flows}\n"));
        let of = |flow: &crate::model::Flow| flow.load.as_ref().unwrap().of;
        let of: Vec<_> = lab.traffic.iter().map(of).collect();
        let cables = [(10_000_000, true), (100_000_000, false)];
        assert_eq!(
            of,
            cables.map(|(rate, tagged)| LoadOf::Ethernet { rate, tagged })
        );
    }

    #[test]
    fn loads_that_their_sender_cannot_send_and_links_off_their_way_are_warnings() {
        let slow = SMALL
            .replace("[[s1, s2]]", "[[s1, s2, { rate: ds3 }]]")
            .replace("ip: 10.1.0.10", "ip: 10.1.0.10, link: { rate: 25.6 }")
            .replace("  y:", "  z: { on: s1, elan: a, ip: 10.1.0.11 }\n  y:");
        for (load, says) in [
            ("load: 61%, link: s1-s2", ""),
            (
                "load: 90%, link: s1-s2",
                "43200 frames of 64 octets a second are more than the 29555 that the sender's own link carries",
            ),
            (
                "load: 1%, link: z-s1",
                "this load is a share of a link of z, which the flow does not cross",
            ),
        ] {
            let text =
                format!("{slow}traffic: [{{ from: x, to: y, kind: load, frames: 64, {load} }}]\n");
            let checked = crate::parse("t.atm.yml", &text, &[]).unwrap_or_else(|d| panic!("{d}"));
            let said = checked.warnings.to_string();
            assert_eq!(said.is_empty(), says.is_empty(), "{load}: {said}");
            assert!(said.contains(says), "{load}: {said}");
        }
    }
    #[test]
    fn trunks_and_links_of_others_off_the_way_are_warnings() {
        // A ring of four switches, and a trunk that leads out of it.
        let lab = |more: &str| {
            format!(
                "switches: {{ s1: {{}}, s2: {{}}, s3: {{}}, s4: {{}}, s5: {{}} }}\n\
                 links: [[s1, s2], [s2, s3], [s3, s4], [s4, s1], [s3, s5]]\n\
                 lane: {{ on: s5, elans: {{ a: {{ subnet: 10.1.0.0/24 }}, b: {{ subnet: 10.2.0.0/24 }} }} }}\n\
                 routers: {{ r: {{ on: s4, elans: {{ a: 10.1.0.1, b: 10.2.0.1 }} }} }}\n\
                 hosts:\n  x: {{ on: s1, elan: a, ip: 10.1.0.10 }}\n  y: {{ on: s2, elan: a, ip: 10.1.0.11 }}\n  \
                 z: {{ on: s3, elan: a, ip: 10.1.0.12 }}\n  o: {{ on: s2, elan: b, ip: 10.2.0.10 }}\n{more}"
            )
        };
        let off = |to: &str| format!("a trunk that the way from x to {to} does not cross");
        for (to, link, faults, says) in [
            ("y", "s1-s2", "", String::new()),
            ("y", "s2-s3", "", off("y")),
            ("y", "s3-s5", "", off("y")),
            // Two ways have two links each.
            ("z", "s2-s3", "", String::new()),
            ("z", "s4-s1", "", String::new()),
            ("z", "s3-s5", "", off("z")),
            // After a cut the way may be a longer one.
            (
                "y",
                "s2-s3",
                "faults: [{ at: 1s, link_down: s1-s2 }]\n",
                String::new(),
            ),
            // The way leads over the router.
            ("o", "s4-s1", "", String::new()),
            ("o", "r-s4", "", String::new()),
            (
                "y",
                "r-s4",
                "",
                "a link of r, which a flow between hosts of one subnet".into(),
            ),
            (
                "y",
                "lane-s5",
                "",
                "a link of lane, which frames cross only while".into(),
            ),
        ] {
            let flow = format!(
                "to: {to}, kind: load, frames: [64, 128], start: 1s, duration: 1s, load: 1%, link: {link}"
            );
            let text = lab(&format!(
                "until: 9s\n{faults}traffic: [{{ from: x, {flow} }}]\n"
            ));
            let checked = crate::parse("t.atm.yml", &text, &[]).unwrap_or_else(|d| panic!("{d}"));
            let said = checked.warnings.to_string();
            assert_eq!(said.is_empty(), says.is_empty(), "{to} {link}: {said}");
            assert!(said.contains(&says), "{to} {link}: {said}");
            assert!(said.matches("warning:").count() <= 1, "{to} {link}: {said}");
        }
    }
}
