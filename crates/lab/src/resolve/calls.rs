//! Warnings about calls of programs that must fail, as far as the lab file shows it.

use crate::diag::{Diagnostics, Span};
use crate::file::LabFile;
use crate::model::{Expect, Lab, LinkEnd, Node, NodeKind};
use aerostat_node::host::sockets::programs::Role;
use aerostat_node::switch::{PortConfig, guaranteed};
use aerostat_wire::q2931::{Version, convert};
use aerostat_wire::{AtmAddress, Qos, TrafficParams};
use std::collections::BTreeMap;

/// Looks for calls that no listener can accept: without a rate, above the rate of the link at either end, or with SDUs
/// that their listener does not take. Calls that are there to fail (`expect: nothing`) are left out.
pub(super) fn warn(file: &LabFile, lab: &Lab, d: &mut Diagnostics) {
    let owners = owners(lab);
    let hosts = file.hosts.0.iter();
    for (name, section) in hosts.filter(|(_, host)| host.sockets.is_some()) {
        let node = lab.find(&name.value.0).map(|id| lab.node(id));
        let Some((node, NodeKind::Host(host))) = node.map(|node| (node, &node.kind)) else {
            continue;
        };
        let sections = section.sockets.iter().flatten();
        for (section, program) in sections.zip(&host.sockets) {
            let Role::Call { to, qos, .. } = program.role else {
                continue;
            };
            let meant = (section.expect.as_ref()).is_some_and(|e| e.value.0 == Expect::Nothing);
            if meant {
                continue;
            }
            let callee = owners.get(&to.with_selector(0)).copied();
            let at = section.qos.at.unwrap_or(section.place);
            if !no_rate(at, &qos, host.uni, d) {
                let caller = (Some(node), [qos.tx, qos.rx]);
                for (end, rates) in [caller, (callee, [qos.rx, qos.tx])] {
                    let wanted = rates.map(|traffic| least(traffic, &qos, host.uni));
                    if let Some(end) = end
                        && unaffordable(at, wanted, (lab, end), d)
                    {
                        break;
                    }
                }
            }
            if let Some(callee) = callee {
                too_long(at, &qos, to, callee, d);
            }
        }
    }
}

/// The end systems of the lab by address, without selectors.
fn owners(lab: &Lab) -> BTreeMap<AtmAddress, &Node> {
    let at = |node: &Node| Some(node.attachment()?.address.with_selector(0));
    let all = lab.nodes.iter();
    all.filter_map(|node| Some((at(node)?, node))).collect()
}

/// Least rate of a direction of a call that is accepted, cells/s. Only UNI 4.0 can lower the peak rate to the minimum.
fn least(traffic: TrafficParams, qos: &Qos, uni: Version) -> u64 {
    let wanted = guaranteed(traffic);
    if uni == Version::Uni40 && convert::minimum(qos).is_some() && traffic.min_pcr > 0 {
        return wanted.min(traffic.min_pcr.into());
    }
    wanted
}

/// True, and a warning, if a direction asks for a guarantee without a rate.
fn no_rate(at: Span, qos: &Qos, uni: Version, d: &mut Diagnostics) -> bool {
    let rates = [("tx", qos.tx), ("rx", qos.rx)];
    let odd = rates.into_iter().find(|(_, traffic)| {
        // Rates have 32 bits: only a guarantee without a rate is greater.
        least(*traffic, qos, uni) > u32::MAX.into()
    });
    let Some((way, category)) = odd.and_then(|(way, traffic)| Some((way, traffic.category?)))
    else {
        return false;
    };
    let text = format!("{category} without a rate in direction {way}: no switch accepts this call");
    d.warning(at, text).hint(format!(
        "give the rate, for example pcr=1000, or {way}:none where nothing is sent"
    ));
    true
}

/// True, and a warning, if the link of an end system cannot give the guarantees of what it sends, and of what it
/// receives, cells/s.
fn unaffordable(
    at: Span,
    [sends, receives]: [u64; 2],
    (lab, end): (&Lab, &Node),
    d: &mut Diagnostics,
) -> bool {
    let Some(attachment) = end.attachment() else {
        return false;
    };
    let link = lab.link(attachment.link);
    let is_own = |line: &LinkEnd| lab.node(line.node).name == end.name;
    let own = usize::from(!is_own(&link.ends[0]));
    let wanted = [(sends, own), (receives, 1 - own)];
    let mut wanted =
        wanted.map(|(wanted, side)| (wanted, PortConfig::admits(link.lines[side].rate)));
    wanted.sort_by_key(|(wanted, _)| core::cmp::Reverse(*wanted));
    let over = wanted
        .into_iter()
        .find(|(wanted, most)| *wanted > u64::from(*most));
    let Some((wanted, most)) = over else {
        return false;
    };
    let text = format!(
        "link {} cannot guarantee {wanted} cells/s: no switch accepts this call",
        link.name
    );
    d.warning(at, text).hint(format!(
        "guarantees may take 95 % of a link's rate: {most} cells/s here"
    ));
    true
}

/// A warning if no listener at this address takes the SDUs of the call.
fn too_long(at: Span, qos: &Qos, to: AtmAddress, callee: &Node, d: &mut Diagnostics) {
    let NodeKind::Host(host) = &callee.kind else {
        return;
    };
    let longest = (host.sockets.iter().filter(|program| program.local == to))
        .filter_map(|program| match program.role {
            Role::Listen { max_sdu, .. } => Some(max_sdu),
            _ => None,
        })
        .max();
    let directions = [qos.tx, qos.rx].into_iter();
    let carrying = directions.filter(|traffic| traffic.category.is_some());
    let wanted = carrying.map(|traffic| traffic.max_sdu).max().unwrap_or(0);
    if let Some(longest) = longest.filter(|longest| *longest < wanted) {
        let name = &callee.name;
        let text = format!(
            "the call has SDUs of {wanted} octets, and {name} takes {longest} there: it refuses the call"
        );
        d.warning(at, text)
            .hint("'sdu=' of the call's qos is at most 'max_sdu:' of the listener");
    }
}

#[cfg(test)]
mod tests {
    use crate::resolve::tests::{SMALL, told};

    /// Each of these calls was made in a run, with the result that is told here.
    #[test]
    fn calls_that_nobody_accepts_are_told() {
        const RATE: &str = "without a rate in direction";
        const LINK: &str = "cannot guarantee";
        const SDU: &str = "it refuses the call";
        let text = |uni: &str, call: &str, link: &str, listen: &str| {
            let caller = format!("uni: {uni}, ip: 10.1.0.10, sockets: [{{ call: y/e1, {call} }}]");
            let listener = format!(
                "ip: 10.2.0.10, link: {{ rate: {link} }}, sockets: [{{ listen: sink, selector: e1, {listen} }}]"
            );
            SMALL
                .replacen("ip: 10.1.0.10", &caller, 1)
                .replacen("ip: 10.2.0.10", &listener, 1)
        };
        let (oc3, narrow, any) = ("oc3", "25600kbps", "calls: 9");
        for (uni, qos, link, listen, says) in [
            ("3.1", "cbr", oc3, any, RATE),
            ("3.1", "vbr", oc3, any, RATE),
            (
                "4.0",
                "cbr:tx:pcr=100",
                oc3,
                any,
                "cbr without a rate in direction rx",
            ),
            ("4.0", "cbr:tx:pcr=100,rx:none", oc3, any, ""),
            ("3.1", "cbr:min_pcr=100", oc3, any, RATE),
            ("4.0", "cbr:min_pcr=100", oc3, any, ""),
            ("4.0", "rt-vbr:scr=100,mbs=2", oc3, any, RATE),
            ("4.0", "nrt-vbr:scr=100,mbs=2", oc3, any, ""),
            ("3.1", "cbr:pcr=80000", narrow, any, LINK),
            ("3.1", "cbr:pcr=80000", oc3, any, ""),
            ("4.0", "cbr:pcr=80000,min_pcr=100", narrow, any, ""),
            ("3.1", "cbr:pcr=80000,min_pcr=100", narrow, any, LINK),
            ("3.1", "ubr:pcr=80000", narrow, any, ""),
            ("3.1", "rt-vbr:pcr=80000,scr=100,mbs=3", narrow, any, LINK),
            ("3.1", "nrt-vbr:pcr=80000,scr=100,mbs=3", narrow, any, ""),
            ("3.1", "ubr:sdu=1000", oc3, "max_sdu: 500", SDU),
            (
                "4.0",
                "ubr:tx:sdu=100,rx:sdu=1000",
                oc3,
                "max_sdu: 500",
                SDU,
            ),
            ("4.0", "ubr:sdu=1000", oc3, "max_sdu: 1000", ""),
            ("4.0", "ubr:sdu=100", oc3, "sap: ttcp, max_sdu: 90", SDU),
        ] {
            let said = told(&text(uni, &format!("size: 40, qos: '{qos}'"), link, listen));
            for odd in [RATE, LINK, SDU] {
                let wanted = says.contains(odd);
                assert_eq!(
                    said.contains(odd),
                    wanted,
                    "{uni} {qos} {link} {listen}: {said}"
                );
            }
            assert!(said.contains(says), "{uni} {qos} {link} {listen}: {said}");
        }
        let meant = "size: 40, expect: nothing, qos: 'ubr:sdu=1000'";
        assert!(!told(&text("3.1", meant, oc3, "max_sdu: 500")).contains(SDU));
        // The default of a call is that of Classical IP.
        let said = told(&text("3.1", "size: 40", oc3, "max_sdu: 500"));
        assert!(
            said.contains("SDUs of 9180 octets, and y takes 500"),
            "{said}"
        );
    }

    #[test]
    fn an_entry_whose_sdu_takes_no_packet_is_told() {
        for (entry, says) in [
            (
                "10.2.0.9 tx=7,27 rx=tx",
                "no packet fits into an SDU of 27 octets",
            ),
            (
                "10.2.0.9 tx=7,1600 rx=7,20",
                "no packet fits into an SDU of 20 octets",
            ),
            ("10.2.0.9 tx=7,28 rx=tx", ""),
            (
                "10.2.0.9 tx=nrt-vbr:max_pcr=500,scr=240,mbs=20,sdu=28 rx=tx",
                "",
            ),
        ] {
            let said = told(&format!("{SMALL}mpoa: {{ qos: [\"{entry}\"] }}\n"));
            let all = said.matches("no packet fits").count();
            // Once, though it is an entry of each host.
            assert_eq!(all, usize::from(!says.is_empty()), "{entry}: {said}");
            assert!(said.contains(says), "{entry}: {said}");
        }
    }
}
