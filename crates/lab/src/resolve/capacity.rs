//! What 100 % of a load are, and loads that their sender cannot send.

use super::events;
use crate::diag::{Diagnostics, Span};
use crate::field::At;
use crate::file::{Layer, TrafficFile};
use crate::model::{Cable, Flow, Lab, LinkId, Load, LoadOf, NodeId, NodeKind, Share};

/// What 100 % of the load are.
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
    match section
        .layer
        .as_ref()
        .map_or(default, |layer| layer.value.0)
    {
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
                        layer.as_ref().map_or(section.place, |layer| layer.at),
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
            let elan = lab.node(flow.from).lecs().first()?.elan;
            Some(LoadOf::Cells {
                link,
                rate: lab.link(link).rate,
                overhead: lab.elan(elan).overhead(),
            })
        }
    }
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
        rate: lab.link(link).rate,
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
}
