//! Pseudowires of links out of the lab, and of permanent connections that end there.

use super::outside::{cable, gathering, links, name, single};
use super::stage::Connecting;
use crate::diag::{Diagnostics, Span};
use crate::field::{At, Optional as _};
use crate::file::{L2tpFile, LabFile, Label, LabelList, MplsFile, MplsLabel, PvcFile};
use crate::model::{
    CellWire, L2tp, L2tpEnds, Lab, Labels, Mpls, NodeId, NodeKind, OutsideWay, Pvc, Scope, SduWire,
};
use aerostat_wire::l2tp::{Cookie, Sublayer};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The link over MPLS, without the pseudowires of permanent connections.
pub(super) fn mpls(file: &MplsFile, d: &mut Diagnostics) -> Option<OutsideWay> {
    let peer = cable(&file.interface, &file.peer, d);
    let cells = match (&file.outgoing, &file.incoming) {
        (Some(outgoing), Some(incoming)) => Some(cell_wire(file, labels(outgoing, incoming), d)?),
        (None, None) => {
            only_with_labels(file, d)?;
            None
        }
        _ => {
            let text = "a pseudowire of cells needs both 'outgoing' and 'incoming'";
            d.error(file.place, text)
                .hint("for example: outgoing: 1000, incoming: 2000")
                .rests_in(file.place, ["outgoing", "incoming"]);
            return None;
        }
    };
    Some(OutsideWay::Mpls(Mpls {
        interface: file.interface.value.clone(),
        peer,
        cells,
        sdus: Vec::new(),
    }))
}

fn labels(outgoing: &LabelList, incoming: &At<MplsLabel>) -> Labels {
    Labels {
        outgoing: outgoing.0.iter().map(|label| label.value.0).collect(),
        incoming: incoming.value.0,
    }
}

/// Keys that say how a pseudowire of cells works, where there is no such pseudowire.
fn only_with_labels(file: &MplsFile, d: &mut Diagnostics) -> Option<()> {
    let keys = ["vc", "vp", "cells", "wait", "word", "sequence"];
    let mut right = Some(());
    for (_, at) in file.given.of(&keys) {
        d.error(at, "this is for a pseudowire of cells, which needs labels")
            .hint("for example: outgoing: 1000, incoming: 2000")
            .rests_in(file.place, ["outgoing", "incoming"]);
        right = None;
    }
    right
}

fn cell_wire(file: &MplsFile, labels: Labels, d: &mut Diagnostics) -> Option<CellWire> {
    let scope = scope(file.vc.as_ref(), file.vp.as_ref(), file.place, d);
    let (word, sequence) = (file.word.get(), file.sequence.get());
    if let Some(at) = file.sequence.at.filter(|_| sequence && !word) {
        d.error(at, "sequence numbers stand in the control word")
            .hint("leave out 'word: false'")
            .rests_in(file.place, ["word"]);
        return None;
    }
    Some(CellWire {
        labels,
        scope: scope?,
        gathering: gathering(file.cells.get(), &file.wait),
        word,
        sequence,
    })
}

fn scope(
    vc: Option<&At<Label>>,
    vp: Option<&At<u64>>,
    place: Span,
    d: &mut Diagnostics,
) -> Option<Scope> {
    match (vc, vp) {
        (None, None) => Some(Scope::Port),
        (Some(vc), None) => Some(Scope::Channel(vc.value.0)),
        (None, Some(vp)) => Some(Scope::Path(vp.value as u16)),
        (Some(vc), Some(_)) => {
            d.error(vc.at, "a pseudowire has one of 'vc' and 'vp'")
                .rests_in(place, ["vp"]);
            None
        }
    }
}

/// The session of L2TPv3.
pub(super) fn l2tp(file: &L2tpFile, d: &mut Diagnostics) -> Option<OutsideWay> {
    let ends = ends(file, d);
    let mut id = |key: &At<u64>| match u32::try_from(key.value) {
        Ok(id @ 1..) => Some(id),
        _ => {
            d.error(key.at, "a session ID is 1 to 4294967295")
                .hint("session 0 is for control messages");
            None
        }
    };
    let (session, peer_session) = (id(&file.session), id(&file.peer_session));
    let scope = scope(file.vc.as_ref(), file.vp.as_ref(), file.place, d);
    let (sublayer, sequence) = (file.sublayer.get(), file.sequence.get());
    if let Some(at) = file
        .sequence
        .at
        .filter(|_| sequence && sublayer == Sublayer::None)
    {
        d.error(at, "sequence numbers stand in a sublayer")
            .hint("sublayer: default, or sublayer: atm, at both ends")
            .rests_in(file.place, ["sublayer"]);
        return None;
    }
    Some(OutsideWay::L2tp(L2tp {
        ends: ends?,
        session: session?,
        peer_session: peer_session?,
        cookie: file.cookie.plain().unwrap_or(Cookie::NONE),
        peer_cookie: file.peer_cookie.plain().unwrap_or(Cookie::NONE),
        sublayer,
        sequence,
        scope: scope?,
        gathering: gathering(file.cells.get(), &file.wait),
    }))
}

fn ends(file: &L2tpFile, d: &mut Diagnostics) -> Option<L2tpEnds> {
    let ((local, local_port), (peer, peer_port)) = (file.local.value.0, file.peer.value.0);
    let wrong = if local.is_ipv4() != peer.is_ipv4() {
        "'local' and 'peer' must be of one IP version"
    } else if !single(peer) || peer_port == Some(0) {
        "the peer needs an address of its own, and over UDP a port"
    } else if local.is_multicast() || local_port == Some(0) {
        "the peer has to know the local address, and over UDP the port"
    } else if (local, local_port) == (peer, peer_port) {
        "'local' and 'peer' are the same"
    } else {
        match (local_port, peer_port) {
            (None, None) => return Some(L2tpEnds::Ip(local, peer)),
            (Some(own), Some(port)) => {
                let ends = (SocketAddr::new(local, own), SocketAddr::new(peer, port));
                return Some(L2tpEnds::Udp(ends.0, ends.1));
            }
            _ => "both ends have a port (L2TPv3 over UDP), or neither end has a port (over IP)",
        }
    };
    d.error(file.peer.at, wrong)
        .hint("for example: local: 192.0.2.1, peer: 192.0.2.2")
        .rests_in(file.place, ["local"]);
    None
}

/// Gives a permanent connection its pseudowire at the end that is behind a link over MPLS.
pub(super) fn of_connection(
    file: &PvcFile,
    pvc: &Pvc,
    lab_file: &LabFile,
    lab: &mut Connecting<'_>,
    d: &mut Diagnostics,
) {
    let Some(wire) = &file.pseudowire else {
        carried(file, pvc, lab, d);
        return;
    };
    let behind: Vec<_> = (pvc.ends.iter())
        .filter(|(node, _)| over_mpls(lab_file, lab, *node))
        .collect();
    let &[&(node, vc)] = &behind[..] else {
        let text = "'pseudowire' is for a connection with one end behind a link over MPLS";
        d.error(wire.place, text)
            .hint("give the link at one end an 'mpls:' block")
            .rests_on(["links"]);
        return;
    };
    if pvc.path {
        let text = "a pseudowire of SDUs carries one channel, not a path";
        d.error(wire.place, text)
            .hint("the link's own pseudowire of cells carries paths")
            .rests_in(file.place, ["vp"]);
        return;
    }
    if let NodeKind::Outside(outside) = &mut lab.nodes_mut()[node.0].kind
        && let OutsideWay::Mpls(mpls) = &mut outside.way
    {
        mpls.sdus.push(SduWire {
            vc,
            labels: labels(&wire.outgoing, &wire.incoming),
            sequence: wire.sequence.get(),
        });
    }
}

/// Refuses a label that the pseudowire of a link does not carry.
fn carried(file: &PvcFile, pvc: &Pvc, lab: &Lab, d: &mut Diagnostics) {
    let places = [file.vc.at, file.to_vc.as_ref().unwrap_or(&file.vc).at];
    for ((node, vc), at) in pvc.ends.into_iter().zip(places) {
        let NodeKind::Outside(outside) = &lab.node(node).kind else {
            continue;
        };
        let what = match scope_of(&outside.way) {
            Some(Scope::Path(vpi)) if vc.vpi != vpi => format!("VPI {vpi}"),
            Some(Scope::Channel(own)) if pvc.path || vc != own => format!("VC {own}"),
            Some(_) | None => continue,
        };
        let name = &lab.node(node).name;
        d.error(at, format!("the link to {name} carries {what} alone"))
            .rests_in(file.place, ["vp", "vc", "to_vc"])
            .rests_on(["links"]);
    }
}

/// Scope of the pseudowire of cells of a link, if it has one.
fn scope_of(way: &OutsideWay) -> Option<Scope> {
    match way {
        OutsideWay::Mpls(mpls) => mpls.cells.as_ref().map(|cells| cells.scope),
        OutsideWay::L2tp(l2tp) => Some(l2tp.scope),
        _ => None,
    }
}

/// True if the file gives this node a link over MPLS, even with mistakes in it.
fn over_mpls(file: &LabFile, lab: &Lab, node: NodeId) -> bool {
    let wanted = &lab.node(node).name;
    (1..)
        .zip(links(file))
        .any(|(number, link)| name(link, number).0 == *wanted && link.options.mpls.is_some())
}

/// Checks what depends on all pseudowires together.
pub(super) fn check(file: &LabFile, lab: &Lab, d: &mut Diagnostics) {
    one_label(file, d);
    let nodes: Vec<_> = lab.outside().collect();
    for (link, (_, node, outside)) in links(file).zip(nodes) {
        let (place, name) = (link.options.place, &node.name);
        match &outside.way {
            OutsideWay::Mpls(mpls) if mpls.cells.is_none() && mpls.sdus.is_empty() => {
                d.error(place, format!("the link to {name} has no pseudowire"))
                    .hint("give 'mpls:' labels, or entries of pvcs to it a 'pseudowire:'")
                    .rests_on(["pvcs"]);
            }
            OutsideWay::Mpls(_) | OutsideWay::L2tp(_) => {}
            _ => continue,
        }
        if let Some(side) = &link.options.trunk
            && scope_of(&outside.way) != Some(Scope::Port)
        {
            let text = "a trunk needs a pseudowire of cells for the whole link";
            d.error(side.at, text).hint(
                "signalling has a VC of its own: 'outgoing' and 'incoming' without 'vc' and 'vp'",
            );
        }
    }
    one_session(file, d);
}

/// Reports a label for two pseudowires on one interface: it would not be known for which of them a packet is. The same
/// holds at the peer for the labels of outgoing packets.
fn one_label(file: &LabFile, d: &mut Diagnostics) {
    let ways = (1..).zip(links(file));
    let ways: Vec<(String, &MplsFile)> = ways
        .filter_map(|(number, link)| Some((name(link, number).0, link.options.mpls.as_ref()?)))
        .collect();
    let of_links = ways
        .iter()
        .filter_map(|(_, way)| Some((way, way.incoming.as_ref()?, way.outgoing.as_ref()?)));
    let of_connections = file.pvcs.iter().flatten().filter_map(|pvc| {
        let here = |(name, _): &&(String, &MplsFile)| {
            [&pvc.from, &pvc.to].iter().any(|end| end.value == *name)
        };
        let (_, way) = ways.iter().find(here)?;
        let wire = pvc.pseudowire.as_ref()?;
        Some((way, &wire.incoming, &wire.outgoing))
    });
    let mut taken: BTreeMap<(&str, u32), Span> = BTreeMap::new();
    let mut sent: BTreeMap<(&str, [u8; 6], Vec<u32>), Span> = BTreeMap::new();
    for (way, label, out) in of_links.chain(of_connections) {
        let interface = way.interface.value.as_str();
        if let Some(outermost) = out.0.first() {
            let labels = out.0.iter().map(|label| label.value.0).collect();
            let key = (interface, way.peer.value.0.0, labels);
            if let Some(first) = sent.insert(key, outermost.at) {
                let text = "another pseudowire to this peer has the same outgoing labels";
                d.error(outermost.at, text).see(first, "the first is here");
            }
        }
        let own = label.value.0;
        if let Some(first) = taken.insert((interface, own), label.at) {
            let text = format!("label {own} comes in on {interface} for another pseudowire");
            d.error(label.at, text).see(first, "the first is here");
        }
    }
}

/// Reports two sessions of one ID between the same ends.
fn one_session(file: &LabFile, d: &mut Diagnostics) {
    let sessions = links(file).filter_map(|link| link.options.l2tp.as_ref());
    let mut taken: Vec<&L2tpFile> = Vec::new();
    for own in sessions {
        let key = |file: &L2tpFile| {
            let (local, peer) = (file.local.value.0, file.peer.value.0);
            (local, peer, file.session.value)
        };
        if let Some(first) = taken.iter().find(|other| key(other) == key(own)) {
            d.error(own.session.at, "another link of this lab has this session")
                .see(first.session.at, "the first is here");
        }
        taken.push(own);
    }
}

#[cfg(test)]
mod tests;
