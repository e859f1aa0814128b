//! Paths between the switches of a lab, and switches that are of no use. [`routing`] makes the routes themselves.

use crate::diag::{Diagnostics, Span};
use crate::file::LabFile;
use crate::model::{Lab, Lec, NodeId, NodeKind, SubnetKind};
use crate::routing;
use aerostat_node::host::sockets::programs::Role;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Parts of a file that make the ways between switches.
pub(super) const WAYS: [&str; 3] = ["switches/*/.", "links/*/0", "links/*/1/."];

/// Reports switches that cannot reach each other. Switches with links out of the lab may be joined by equipment there:
/// they need a path in the lab only if something in it uses one.
pub(super) fn route(file: &LabFile, lab: &Lab, d: &mut Diagnostics) {
    let ids: Vec<NodeId> = lab.switches().map(|(id, _, _)| id).collect();
    let lane = routing::lane(lab);
    let Some(middle) = lane.map(|(switch, _)| switch).or(ids.first().copied()) else {
        return;
    };
    // Links lead both ways, so one look from the middle is enough.
    let reached = ways(lab, middle);
    let mut cut_off = ids;
    cut_off.retain(|id| *id != middle && !reached.contains_key(id));
    if cut_off.is_empty() {
        warn_of_dead_ends(file, lab, d);
    }
    let outside: BTreeSet<NodeId> = lab
        .outside()
        .map(|(_, _, model)| model.attachment.switch)
        .collect();
    let middle_leads_out = outside
        .iter()
        .any(|id| *id == middle || reached.contains_key(id));
    while let Some(first) = cut_off.first().copied() {
        let mut island: BTreeSet<NodeId> = ways(lab, first).into_keys().collect();
        island.insert(first);
        cut_off.retain(|id| !island.contains(id));
        let leads_out = middle_leads_out && !island.is_disjoint(&outside);
        let needed = needed(lab, &island);
        if leads_out && needed.is_none() {
            continue;
        }
        let why = needed.filter(|_| leads_out);
        let why = why.map_or_else(String::new, |what| format!(", which {what} needs"));
        for id in island {
            let (name, middle) = (&lab.node(id).name, &lab.node(middle).name);
            let at = place(file, name);
            let text = format!("no path between switches {middle} and {name}{why}");
            d.error(at, text)
                .hint(format!("add a link to {name} under 'links:'"))
                .rests_on(WAYS);
        }
    }
}

/// User of a path between these switches and others, in words; `None` if no part of the lab needs a path.
fn needed(lab: &Lab, island: &BTreeSet<NodeId>) -> Option<String> {
    let inside = |node: NodeId| {
        let at = lab.node(node).attachment();
        at.map(|at| island.contains(&at.switch))
    };
    let crosses = |nodes: &mut dyn Iterator<Item = NodeId>| {
        let sides: BTreeSet<bool> = nodes.filter_map(inside).collect();
        sides.len() > 1
    };
    for (number, elan) in lab.elans.iter().enumerate() {
        // Permanent connections have a check of their own.
        let calls = match (&elan.clip, &elan.line) {
            (Some(lis), _) => {
                !lis.servers.is_empty() || !lis.next_hops.is_empty() || lis.map.is_some()
            }
            (None, Some(line)) => line.calls.is_some(),
            (None, None) => true,
        };
        let of_elan = |lec: &Lec| lec.elan.0 == number;
        let members = lab.nodes().filter(|(_, node)| {
            let server = matches!(node.kind, NodeKind::LaneServer(_)) && elan.is_own();
            server || node.lecs().iter().any(of_elan)
        });
        if calls && crosses(&mut members.map(|(id, _)| id)) {
            let kind = match elan.kind() {
                SubnetKind::Lane => "ELAN",
                SubnetKind::ClassicalIp => "subnet",
                SubnetKind::Line => "line",
            };
            return Some(format!("{kind} {}", elan.name));
        }
    }
    lab.nodes().find_map(|(id, node)| {
        let NodeKind::Host(host) = &node.kind else {
            return None;
        };
        let calls = host.sockets.iter().find(|program| {
            let Role::Call { to, .. } = &program.role else {
                return false;
            };
            let called = lab.nodes().find(|(_, node)| {
                let at = node.attachment();
                at.is_some_and(|at| at.address.same_end_system(to))
            });
            called.is_some_and(|(called, _)| inside(called) != inside(id))
        });
        calls.map(|program| format!("program {} of {}", program.name, node.name))
    })
}

/// Warns of switches that no call can pass, because nothing is attached to them and they lead to no other useful
/// switch.
fn warn_of_dead_ends(file: &LabFile, lab: &Lab, d: &mut Diagnostics) {
    let mut useful: BTreeMap<NodeId, BTreeSet<NodeId>> = BTreeMap::new();
    for (id, _, switch) in lab.switches() {
        let trunks = switch.ports.iter().filter(|port| port.station.is_none());
        useful.insert(id, trunks.map(|port| port.peer).collect());
    }
    let attached = lab.nodes.iter();
    let attached = attached.filter_map(|node| Some(node.attachment()?.switch));
    let attached: BTreeSet<NodeId> = attached.collect();
    let is_idle = |id: &NodeId, peers: &BTreeSet<NodeId>| peers.len() < 2 && !attached.contains(id);
    let idle = useful.iter().filter(|(id, peers)| is_idle(id, peers));
    let mut idle: BTreeSet<NodeId> = idle.map(|(id, _)| *id).collect();
    let places = file.switches.0.iter();
    let places: BTreeMap<&str, Span> = places.map(|(name, _)| (&*name.value.0, name.at)).collect();
    while let Some(id) = idle.pop_first() {
        for other in useful.remove(&id).unwrap_or_default() {
            if let Some(peers) = useful.get_mut(&other) {
                peers.remove(&id);
                if is_idle(&other, peers) {
                    idle.insert(other);
                }
            }
        }
        let name = &lab.node(id).name;
        let text = format!("no call can ever use switch {name} or its links");
        let at = places.get(name.as_str()).copied().unwrap_or(file.place);
        d.warning(at, text)
            .hint("attach a host to it, or link it to a second switch");
    }
}

fn place(file: &LabFile, switch: &str) -> Span {
    file.switches
        .0
        .iter()
        .find(|(name, _)| name.value.0 == switch)
        .map_or(file.place, |(name, _)| name.at)
}

/// First port and number of links of the shortest way to every other switch. Among equal ways the one with the lowest
/// port of the first switch is used.
pub(super) fn ways(lab: &Lab, from: NodeId) -> BTreeMap<NodeId, (usize, usize)> {
    let mut ways: BTreeMap<NodeId, (usize, usize)> = BTreeMap::new();
    let mut queue = VecDeque::from([(from, None::<usize>, 0)]);
    while let Some((at, first, hops)) = queue.pop_front() {
        let NodeKind::Switch(switch) = &lab.node(at).kind else {
            continue;
        };
        for (number, port) in switch.ports.iter().enumerate() {
            let trunk = port.station.is_none();
            if trunk && port.peer != from && !ways.contains_key(&port.peer) {
                let first = first.unwrap_or(number);
                ways.insert(port.peer, (first, hops + 1));
                queue.push_back((port.peer, Some(first), hops + 1));
            }
        }
    }
    ways
}

#[cfg(test)]
mod tests {
    use crate::model::{Lab, NodeId, NodeKind};
    use crate::resolve::tests::{SMALL, lab, next_hop};
    use aerostat_wire::AtmAddress;

    /// Follows the routes from `from` like a call.
    fn call(lab: &Lab, from: NodeId, to: AtmAddress) -> Vec<String> {
        let mut at = lab.node(from).attachment().map_or(from, |a| a.switch);
        let mut path = vec![lab.node(from).name.clone()];
        for _ in 0..20 {
            path.push(lab.node(at).name.clone());
            if !matches!(lab.node(at).kind, NodeKind::Switch(_)) {
                return path;
            }
            at = next_hop(lab, at, &to.0).expect("a route");
        }
        panic!("a loop: {path:?}");
    }

    #[test]
    fn every_call_arrives_and_ports_agree() {
        let lab = lab(SMALL);
        for (id, node) in lab.nodes() {
            let Some(attachment) = node.attachment() else {
                continue;
            };
            for (from, _) in lab.nodes().filter(|(_, n)| n.attachment().is_some()) {
                let path = call(&lab, from, attachment.address.with_selector(0x50));
                assert_eq!(path.last(), Some(&lab.node(id).name));
            }
            let path = call(&lab, id, AtmAddress::LECS);
            assert_eq!(path.last().map(String::as_str), Some("lane"));
        }
        for (n, link) in lab.links.iter().enumerate() {
            for (end, other) in [(0, 1), (1, 0)] {
                if let NodeKind::Switch(switch) = &lab.node(link.ends[end].node).kind {
                    let port = &switch.ports[usize::from(link.ends[end].port)];
                    assert_eq!((port.link.0, port.peer), (n, link.ends[other].node));
                }
            }
        }
    }

    /// With a search for every switch, or a look at all switches for each of them, this would take minutes.
    #[test]
    fn thousands_of_switches_in_a_line_are_checked_at_once() {
        let switches: Vec<_> = (1..=3000).map(|n| format!("s{n}: {{}}")).collect();
        let links: Vec<_> = (1..3000).map(|n| format!("[s{n}, s{}]", n + 1)).collect();
        let text = SMALL
            .replace("s1: {}, s2: {}", &switches.join(", "))
            .replace("[[s1, s2]]", &format!("[{}]", links.join(", ")));
        let checked = crate::parse("t.atm.yml", &text, &[]).unwrap_or_else(|d| panic!("{d}"));
        let told: Vec<String> = checked
            .warnings
            .iter()
            .map(|found| found.message.clone())
            .collect();
        assert_eq!(told.len(), 2998);
        // The end of the line is of no use, and therefore its neighbour, and so on.
        for end in ["switch s3 ", "switch s3000 "] {
            assert!(told.iter().any(|text| text.contains(end)), "{end}");
        }
    }

    #[test]
    fn switches_that_no_call_can_use_are_told() {
        let warnings = |switches: &str, links: &str| {
            let text = SMALL
                .replace("s2: {} }", switches)
                .replace("[[s1, s2]]", links);
            let checked = crate::parse("t.atm.yml", &text, &[]).unwrap_or_else(|d| panic!("{d}"));
            let text = checked.warnings.to_string();
            text.matches("no call can ever use switch").count()
        };
        assert_eq!(warnings("s2: {} }", "[[s1, s2], [s1, s2]]"), 0);
        let ring = "[[s1, s2], [s2, s3], [s3, s1]]";
        assert_eq!(warnings("s2: {}, s3: {} }", ring), 0, "a ring has a use");
        assert_eq!(warnings("s2: {}, s3: {} }", "[[s1, s2], [s2, s3]]"), 1);
        let tail = "[[s1, s2], [s2, s3], [s3, s4], [s3, s4]]";
        assert_eq!(warnings("s2: {}, s3: {}, s4: {} }", tail), 2);
    }

    #[test]
    fn the_shorter_way_wins() {
        let text = SMALL
            .replace("s2: {} }", "s2: {}, s3: {}, s4: {} }")
            .replace(
                "[[s1, s2]]",
                "[[s1, s3], [s3, s4], [s4, s2], [s1, s2], [s1, s2]]",
            );
        let lab = lab(&text);
        let y = lab.find("y").unwrap();
        let to = lab.node(y).attachment().unwrap().address;
        let x = lab.find("x").unwrap();
        assert_eq!(call(&lab, x, to), ["x", "s1", "s2", "y"]);
        assert_eq!(lab.links[4].name, "s1-s2-2");
    }
}
