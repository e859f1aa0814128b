//! ATP of programs with ATM sockets.

use super::sockets::foreign;
use crate::diag::Diagnostics;
use crate::field::Optional as _;
use crate::file::{AtpFile, LabFile, SocketFile};
use crate::model::{Lab, NodeId, NodeKind};
use aerostat_node::host::sockets::programs::{Pace, Program, Role, Sending, Transfer};
use aerostat_proto::Instant;
use aerostat_proto::atp::Params;
use aerostat_wire::atp::{HEADER_LEN, MIN_MTU};
use aerostat_wire::{AtmAddress, Qos, Sap, TrafficParams};
use std::collections::BTreeMap;

/// Default size of a packet, header included, where the contract has no smaller one.
const MTU: u16 = 9180;
/// Octets of a message, if there are more octets than these.
const MESSAGE: u64 = 1 << 20;
/// Limit of octets that a program sends on one connection.
const MOST: u64 = 1 << 32;

/// Parameters, with packets as long as these SDUs if the file does not say.
fn params(file: &AtpFile, sdu: u16) -> Params {
    let mut params = Params::DEFAULT;
    params.profile = file.profile.get();
    params.mtu = sdu.into();
    file.given.apply(&mut params);
    params
}

/// The largest SDU of a direction, as long as ATP uses it.
fn sdu(tx: &TrafficParams) -> u16 {
    match tx.max_sdu {
        0 => MTU,
        max => max.min(MTU),
    }
}

/// Octets in all and of each message.
fn amount(file: &AtpFile) -> (u64, u64) {
    let bytes = file.bytes.get() as u64;
    let message = file.message.plain().map(|octets| octets as u64);
    (bytes, message.unwrap_or_else(|| bytes.clamp(1, MESSAGE)))
}

/// The packets of the messages, as PDUs that follow each other as fast as they may.
pub(super) fn sending(file: &AtpFile, qos: &Qos, start: Instant) -> Sending {
    let params = params(file, sdu(&qos.tx));
    let data = params.mtu.saturating_sub(HEADER_LEN).max(1) as u64;
    let (bytes, message) = amount(file);
    let message = message.max(1);
    let full = (bytes / message).saturating_mul(message.div_ceil(data));
    Sending {
        start,
        pdus: full + (bytes % message).div_ceil(data),
        size: u16::try_from(params.mtu).unwrap_or(u16::MAX),
        pace: Pace::Line,
    }
}

/// Checks packets and window against each other and against the SDUs of the connection, at most `limit` octets.
fn packets(file: &AtpFile, section: &SocketFile, params: &Params, limit: u16, d: &mut Diagnostics) {
    if limit > 0 && params.mtu > limit.into() {
        let at = file.given.at("mtu").unwrap_or(file.place);
        d.error(at, format!("SDUs have at most {limit} octets here"))
            .hint("a packet of ATP with its header of 4 octets is one SDU")
            .rests_in(section.place, ["qos", "max_sdu"]);
    }
    if params.mtu < MIN_MTU {
        let text = format!("ATP needs SDUs of at least {MIN_MTU} octets");
        d.error(file.place, text)
            .rests_in(section.place, ["qos", "max_sdu"]);
    }
    if params.initial_window > params.max_window {
        let at = file.given.at("initial_window").unwrap_or(file.place);
        let text = format!(
            "the window begins with {} packets and has at most {}",
            params.initial_window, params.max_window
        );
        d.error(at, text)
            .hint("initial_window is at most max_window");
    }
}

/// Messages that a program sends and receives by ATP.
pub(super) fn transfer(
    file: &AtpFile,
    section: &SocketFile,
    role: &Role,
    d: &mut Diagnostics,
) -> Option<Transfer> {
    let why = "is for single PDUs: atp has bytes and message";
    foreign(section, &["pdus", "size", "rate"], why, d);
    let (limit, sends) = match role {
        Role::Listen { max_sdu, .. } => (*max_sdu, false),
        Role::Call { qos, .. } => (qos.tx.max_sdu, true),
        Role::Permanent { qos, answer, .. } => (qos.tx.max_sdu, answer.is_none()),
    };
    let sdu = match limit {
        0 => MTU,
        limit => limit.min(MTU),
    };
    let params = params(file, sdu);
    packets(file, section, &params, limit, d);
    let (octets, message) = amount(file);
    if matches!(role, Role::Listen { .. })
        && let Some(at) = file.bytes.at
    {
        d.error(at, "'bytes' is for callers and permanent connections")
            .hint("listen: echo sends messages back");
    }
    if sends && octets == 0 {
        d.error(file.place, "there is nothing to send")
            .hint("for example: atp: { bytes: 1MiB }")
            .rests_in(file.place, ["bytes"]);
    }
    if octets > MOST {
        let at = file.bytes.at.unwrap_or(file.place);
        d.error(at, format!("a program sends at most {MOST} octets by ATP"));
    }
    let longest = params.longest() as u64;
    if message == 0 || message > longest {
        let at = file.message.place().unwrap_or(file.place);
        let text = format!("a message has 1 to {longest} octets: max_message and send_limit");
        d.error(at, text);
    }
    Some(Transfer {
        octets,
        // The length was checked above.
        message: usize::try_from(message).ok()?,
        params,
        series: file.series.get(),
    })
}

/// Checks that both ends of each connection follow the same rules: nothing on the wire tells them.
pub(super) fn pairs(file: &LabFile, lab: &Lab, d: &mut Diagnostics) {
    let listeners = listeners(lab);
    for (name, host) in &file.hosts.0 {
        let Some(id) = host.sockets.as_ref().and_then(|_| lab.find(&name.value.0)) else {
            continue;
        };
        let own = programs(lab, id);
        let sections = host.sockets.iter().flatten();
        if own.len() != sections.clone().count() {
            // A program with mistakes has none of its own.
            continue;
        }
        for (section, program) in sections.zip(own) {
            let found = peer(lab, &listeners, id, program);
            tester(section, program, found, lab, d);
            let Some((node, other)) = found else {
                continue;
            };
            // A section `atp` with a mistake counts as missing, and its complaint has been made.
            let theirs = format!("hosts/{}/sockets/*/atp", lab.node(node).name);
            let rests = [theirs.clone(), theirs + "/*"];
            let rests = [&*rests[0], &*rests[1]];
            let own = ["atp", "atp/*"];
            let other_name = format!("{}/{}", lab.node(node).name, other.name);
            let at = section.atp.as_ref().map_or(section.place, |atp| atp.place);
            match (&program.atp, &other.atp) {
                (Some(ours), Some(theirs)) if ours.params.profile != theirs.params.profile => {
                    d.error(at, format!("{other_name} has another profile of ATP"))
                        .hint("both ends need the same profile: nothing on the wire tells it")
                        .rests_in(section.place, own)
                        .rests_on(rests);
                }
                (Some(ours), Some(theirs)) if ours.params.mtu > theirs.params.mtu => {
                    let (ours, theirs) = (ours.params.mtu, theirs.params.mtu);
                    let text = format!("{other_name} takes packets of {theirs} octets, not {ours}");
                    d.error(at, text)
                        .hint("give both ends the same mtu")
                        .rests_in(section.place, own)
                        .rests_on(rests);
                }
                (Some(_), None) => {
                    d.error(at, format!("{other_name} has no ATP"))
                        .hint("write atp: {} there: both ends of a connection need it")
                        .rests_in(section.place, own)
                        .rests_on(rests);
                }
                (None, Some(_)) => {
                    d.error(at, format!("{other_name} expects ATP"))
                        .hint("write atp: {} here: both ends of a connection need it")
                        .rests_in(section.place, own)
                        .rests_on(rests);
                }
                _ => {}
            }
        }
    }
}

/// Checks that both ends of a tester's connection are testers.
fn tester(
    section: &SocketFile,
    program: &Program,
    peer: Option<(NodeId, &Program)>,
    lab: &Lab,
    d: &mut Diagnostics,
) {
    if !program.tester || peer.is_some_and(|(_, other)| other.tester) {
        return;
    }
    let at = section.tester.at.unwrap_or(section.place);
    let text = match peer {
        Some((node, other)) => format!("{}/{} is no tester", lab.node(node).name, other.name),
        None => "the other end of this connection has no tester".to_owned(),
    };
    d.error(at, text)
        .hint("both ends need a program with 'tester: true': it measures, and sends only with 'pdus:'")
        .rests_in(section.place, ["vc", "tester"])
        .rests_on(["pvcs", "hosts/*/sockets"]);
}

fn programs(lab: &Lab, id: NodeId) -> &[Program] {
    match &lab.node(id).kind {
        NodeKind::Host(host) => &host.sockets,
        _ => &[],
    }
}

/// Programs that wait for calls, by address and SAP.
type Listeners<'a> = BTreeMap<(AtmAddress, Sap), (NodeId, &'a Program)>;

fn listeners(lab: &Lab) -> Listeners<'_> {
    let all = lab.nodes().flat_map(|(node, _)| {
        let own = programs(lab, node).iter();
        let own = own.filter(|program| matches!(program.role, Role::Listen { .. }));
        own.map(move |program| ((program.local, program.sap), (node, program)))
    });
    all.collect()
}

/// The program that a caller calls, or that has the other end of a permanent connection.
fn peer<'a>(
    lab: &'a Lab,
    listeners: &Listeners<'a>,
    id: NodeId,
    program: &Program,
) -> Option<(NodeId, &'a Program)> {
    match program.role {
        Role::Listen { .. } => None,
        Role::Call { to, .. } => listeners.get(&(to, program.sap)).copied(),
        Role::Permanent { vc, .. } => {
            let mut ends = lab.pvcs.iter().filter(|pvc| !pvc.path).map(|pvc| pvc.ends);
            let own = (id, vc);
            let (node, label) = ends.find_map(|[a, b]| match own {
                _ if a == own => Some(b),
                _ if b == own => Some(a),
                _ => None,
            })?;
            let found = programs(lab, node)
                .iter()
                .find(|other| matches!(other.role, Role::Permanent { vc, .. } if vc == label));
            Some((node, found?))
        }
    }
}
