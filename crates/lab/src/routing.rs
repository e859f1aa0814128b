//! Call routes of all switches over the links that are usable at present.
//!
//! **Purpose.** Switches have static routes, as in IISP (ATM Forum af-pnni-0026). Nothing in its messages keeps a call
//! from going round in a circle, and there is no crankback. So an alternative that a switch chooses by itself can cause
//! a loop: in a ring, the way round the other side begins with a neighbour whose own shortest way leads back. Therefore
//! switches do not choose alternatives for themselves. The management of the lab (`sim` or `live`) keeps one table of
//! unusable links, as reported by the switches at their ends, and gives every switch the current distances. A switch
//! uses only shortest ways, so the distance falls by one with each switch that a call passes. No loop can form,
//! whichever links are cut.
//!
//! **When.** A link is left out as soon as one of its ends reports it: a dead line at once, a dead peer when SSCOP
//! gives up (some seconds), a signalling link that does not come up when the port's patience is over. It is back once
//! both ends have signalling again. At the start all links count as usable, and calls wait for those that come up.
//!
//! **Order.** For display every way is listed, including longer ones: their distance is that of the shortest way that
//! does not come back through the switch itself.
//!
//! **Trunks out of the lab** lead to the destinations of the lab file (`routes:`); the links behind them are unknown.
//! Two trunks with one prefix are alternatives of each other.
//!
//! **Not implemented.** Weights of links: the distance is the number of links.
//!
//! **Cost.** A switch asks for the ways of a call when it needs them (`OfSwitch`). It keeps the distances from each of
//! its neighbours to all switches, two octets each, and no table of prefixes. A change of a link costs each switch a
//! new and empty memory of distances.

use crate::model::{Lab, NodeId, NodeKind, Outside};
use aerostat_node::switch::{Plan, PortNo, Way};
use aerostat_wire::AtmAddress;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, OnceLock};

/// An end of a link: a switch and its port.
type End = (NodeId, u16);

/// A prefix and the ways to it, best first.
pub type Route = (Vec<u8>, Vec<Way>);

/// A link between two switches in the view of one of them.
#[derive(Clone, Copy, Debug)]
struct Edge {
    port: u16,
    peer: NodeId,
    /// The port at the other end.
    far: u16,
}

/// The place of addresses with a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    switch: NodeId,
    /// The port there; `None` for the switch itself, which knows its hosts.
    port: Option<u16>,
    /// True if other switches reach it by a shorter prefix.
    local: bool,
}

/// Usable links, and the resulting routes. Empty by default.
#[derive(Clone, Debug, Default)]
pub struct Routing {
    net: Arc<Net>,
    /// Unusable link ends.
    lost: Arc<BTreeSet<End>>,
}

/// The links among the switches of a lab, and the places of addresses.
#[derive(Debug, Default)]
struct Net {
    /// The number of each switch, from 0.
    numbers: BTreeMap<NodeId, usize>,
    /// The links of each switch, by its number.
    edges: Vec<Vec<Edge>>,
    places: BTreeMap<Vec<u8>, Vec<Place>>,
    /// Lengths of prefixes, longest first.
    lengths: Vec<usize>,
    /// By the number of a switch: the distances while all links are usable, once they were needed.
    nominal: Vec<OnceLock<Beyond>>,
}

/// By neighbour: the number of links from there to each switch, without coming back.
type Beyond = BTreeMap<NodeId, Vec<u16>>;

/// No link leads there.
const NOWHERE: u16 = u16::MAX;

impl Routing {
    /// A table in which all links of `lab` are usable.
    #[must_use]
    pub fn new(lab: &Lab) -> Self {
        let mut edges = Vec::new();
        let mut numbers = BTreeMap::new();
        for (id, _, switch) in lab.switches() {
            let trunks = lab.ports_of(switch);
            let trunks = trunks.filter(|(_, port)| port.station.is_none());
            let mut of = Vec::new();
            for (number, port) in trunks {
                let ends = lab.link(port.link).ends;
                let here = ends
                    .iter()
                    .position(|end| end.node == id && usize::from(end.port) == number);
                let far = ends[1 - here.unwrap_or(0)];
                if matches!(lab.node(far.node).kind, NodeKind::Switch(_)) && far.node != id {
                    of.push(Edge {
                        port: number as u16,
                        peer: far.node,
                        far: far.port,
                    });
                }
            }
            numbers.insert(id, edges.len());
            edges.push(of);
        }
        let places = places(lab);
        let lengths: BTreeSet<usize> = places.keys().map(Vec::len).collect();
        let nominal = edges.iter().map(|_| OnceLock::new()).collect();
        let net = Net {
            numbers,
            edges,
            places,
            lengths: lengths.into_iter().rev().collect(),
            nominal,
        };
        Self {
            net: Arc::new(net),
            lost: Arc::default(),
        }
    }

    /// A switch reports whether calls can go out at one of its ports; true if that is a change.
    pub fn report(&mut self, switch: NodeId, port: PortNo, usable: bool) -> bool {
        let end = (switch, port.0);
        if self.lost.contains(&end) != usable {
            return false;
        }
        let lost = Arc::make_mut(&mut self.lost);
        if usable {
            lost.remove(&end)
        } else {
            lost.insert(end)
        }
    }

    /// Takes over which ends of links are unusable, as far as they are there.
    pub fn lose_as(&mut self, before: &Self) {
        let there = |(switch, port): &&End| {
            let mut edges = self.net.edges_of(*switch).iter();
            edges.any(|edge| edge.port == *port)
        };
        self.lost = Arc::new(before.lost.iter().filter(there).copied().collect());
    }

    /// The switches.
    pub fn switches(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.net.numbers.keys().copied()
    }

    /// The routes of a switch at present.
    #[must_use]
    pub fn plan(&self, from: NodeId) -> Arc<dyn Plan> {
        Arc::new(self.of_switch(from))
    }

    /// The routes of a switch, with all ways that exist while all links are usable.
    #[must_use]
    pub fn routes(&self, from: NodeId) -> Vec<Route> {
        self.of_switch(from).all()
    }

    fn of_switch(&self, from: NodeId) -> OfSwitch {
        OfSwitch {
            net: Arc::clone(&self.net),
            lost: Arc::clone(&self.lost),
            from,
            now: OnceLock::new(),
        }
    }
}

impl Net {
    fn edges_of(&self, switch: NodeId) -> &[Edge] {
        let number = self.numbers.get(&switch);
        number.map_or(&[], |number| &self.edges[*number])
    }

    /// The distances from the neighbours of a switch.
    fn beyond(&self, from: NodeId, lost: &BTreeSet<End>) -> Beyond {
        let mut beyond = Beyond::new();
        for edge in self.edges_of(from) {
            let reach = || self.reach(edge.peer, from, lost);
            beyond.entry(edge.peer).or_insert_with(reach);
        }
        beyond
    }

    /// Links from `start` to every switch that is reached without passing `without`.
    fn reach(&self, start: NodeId, without: NodeId, lost: &BTreeSet<End>) -> Vec<u16> {
        let mut reached = vec![NOWHERE; self.edges.len()];
        let Some(first) = self.numbers.get(&start) else {
            return reached;
        };
        reached[*first] = 0;
        let mut queue = VecDeque::from([(start, *first)]);
        while let Some((at, number)) = queue.pop_front() {
            let hops = reached[number];
            for edge in &self.edges[number] {
                let Some(next) = self.numbers.get(&edge.peer) else {
                    continue;
                };
                let up = lost.is_empty()
                    || !lost.contains(&(at, edge.port)) && !lost.contains(&(edge.peer, edge.far));
                if up && edge.peer != without && reached[*next] == NOWHERE {
                    reached[*next] = hops + 1;
                    queue.push_back((edge.peer, *next));
                }
            }
        }
        reached
    }

    /// The number of links to the places of a prefix, by port of the switch `from`; `None` if the way is unusable.
    fn distances(
        &self,
        (from, places): (NodeId, &[Place]),
        beyond: &Beyond,
        lost: &BTreeSet<End>,
    ) -> Distances {
        let usable = |end: &End| !lost.contains(end);
        let mut ways = Distances::new();
        for place in places {
            if place.switch == from {
                if let Some(port) = place.port {
                    let hops = usable(&(from, port)).then_some(1);
                    ways.insert(port, hops);
                }
                continue;
            }
            if place.local {
                continue;
            }
            let last = place.port.map(|port| (place.switch, port));
            let there = last.is_none_or(|end| usable(&end));
            let number = self.numbers.get(&place.switch);
            for edge in self.edges_of(from) {
                let up = usable(&(from, edge.port)) && usable(&(edge.peer, edge.far));
                let rest = number.and_then(|number| beyond.get(&edge.peer)?.get(*number).copied());
                let rest = rest.filter(|rest| *rest != NOWHERE && up && there);
                let hops = rest.map(|rest| rest + 1 + u16::from(last.is_some()));
                if hops.is_some() {
                    let known = ways.entry(edge.port).or_insert(None);
                    *known = [*known, hops].into_iter().flatten().min();
                }
            }
        }
        ways
    }
}

/// The routes of one switch.
#[derive(Debug)]
struct OfSwitch {
    net: Arc<Net>,
    lost: Arc<BTreeSet<End>>,
    from: NodeId,
    /// The distances over the links that are usable, once they were needed.
    now: OnceLock<Beyond>,
}

impl OfSwitch {
    /// The ways to the places of a prefix in order: all that exist while all links are usable.
    fn ways(&self, places: &[Place]) -> Vec<Way> {
        let (net, nothing) = (&*self.net, BTreeSet::new());
        let Some(number) = net.numbers.get(&self.from) else {
            return Vec::new();
        };
        let nominal = net.nominal[*number].get_or_init(|| net.beyond(self.from, &nothing));
        let all = net.distances((self.from, places), nominal, &nothing);
        let now = (!self.lost.is_empty()).then(|| {
            let now = self.now.get_or_init(|| net.beyond(self.from, &self.lost));
            net.distances((self.from, places), now, &self.lost)
        });
        let ways = all.into_iter().map(|(port, hops)| Way {
            port: PortNo(port),
            hops: match &now {
                None => hops,
                Some(now) => now.get(&port).copied().flatten(),
            },
        });
        let mut ways: Vec<Way> = ways.collect();
        Way::sort(&mut ways);
        ways
    }
}

impl Plan for OfSwitch {
    fn longest(&self, called: &AtmAddress) -> Option<(usize, Vec<Way>)> {
        self.net.lengths.iter().find_map(|len| {
            let places = self.net.places.get(called.0.get(..*len)?)?;
            let ways = self.ways(places);
            (!ways.is_empty()).then_some((*len, ways))
        })
    }

    fn all(&self) -> Vec<Route> {
        let all = self.net.places.iter();
        let all = all.map(|(prefix, places)| (prefix.clone(), self.ways(places)));
        all.filter(|(_, ways)| !ways.is_empty()).collect()
    }
}

/// By port.
type Distances = BTreeMap<u16, Option<u16>>;

/// The place of every address of a lab.
fn places(lab: &Lab) -> BTreeMap<Vec<u8>, Vec<Place>> {
    let mut places: BTreeMap<Vec<u8>, Vec<Place>> = BTreeMap::new();
    let mut add = |prefix: Vec<u8>, place: Place| {
        let known = places.entry(prefix).or_default();
        if !known.contains(&place) {
            known.push(place);
        }
    };
    for (id, _, switch) in lab.switches() {
        let itself = Place {
            switch: id,
            port: None,
            local: false,
        };
        add(switch.prefix.to_vec(), itself);
        for (number, port) in lab.ports_of(switch) {
            // A node that registers its own addresses has no address before that.
            let by_itself = lab.node(port.peer).kind.registers();
            if let Some(station) = port.station.filter(|_| !by_itself) {
                let place = Place {
                    switch: id,
                    port: Some(number as u16),
                    local: true,
                };
                add(station.0[..19].to_vec(), place);
            }
        }
    }
    // Addresses of peers outside may have another prefix than their switch.
    for (id, _, outside) in lab.outside() {
        // An end system in front of it takes no calls further.
        if lab.back_to_back(id).is_some() {
            continue;
        }
        let attachment = &outside.attachment;
        let addresses = outside.addresses.iter().map(|a| a.0[..19].to_vec());
        let trunk = outside.trunk.iter();
        let trunk = trunk.flat_map(|trunk| trunk.prefixes.clone());
        for prefix in addresses.chain(trunk) {
            let place = Place {
                switch: attachment.switch,
                port: Some(attachment.port as u16),
                local: false,
            };
            add(prefix, place);
        }
    }
    // The well-known addresses of the LECS lead to the LANE server.
    if let Some((switch, port)) = lane(lab) {
        for lecs in [AtmAddress::LECS, AtmAddress::LECS_ANYCAST] {
            let place = Place {
                switch,
                port: Some(port as u16),
                local: false,
            };
            add(lecs.0[..19].to_vec(), place);
        }
    }
    places
}

/// Switch and port of the LANE services, or of the trunk to them.
pub(crate) fn lane(lab: &Lab) -> Option<(NodeId, usize)> {
    let own = lab.lane_server().map(|(_, _, server)| &server.attachment);
    let with = |outside: &Outside| outside.trunk.as_ref().is_some_and(|trunk| trunk.lane);
    let elsewhere = || {
        let found = lab.outside().find(|(_, _, outside)| with(outside));
        found.map(|(_, _, outside)| &outside.attachment)
    };
    own.or_else(elsewhere).map(|a| (a.switch, a.port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::tests::{SMALL, lab};
    use proptest::prelude::*;

    /// A lab with these links among `count` switches; one host at the last of them.
    fn meshed(count: usize, links: &[(usize, usize)]) -> Lab {
        let switches: Vec<_> = (1..=count).map(|n| format!("s{n}: {{}}")).collect();
        let links: Vec<_> = links
            .iter()
            .map(|(a, b)| format!("[s{}, s{}]", a + 1, b + 1))
            .collect();
        let text = SMALL
            .replace("s1: {}, s2: {}", &switches.join(", "))
            .replace("[[s1, s2]]", &format!("[{}]", links.join(", ")));
        lab(&text)
    }

    fn ways_to(routing: &Routing, lab: &Lab, from: &str, to: &str) -> Vec<(u16, Option<u16>)> {
        let NodeKind::Switch(switch) = &lab.node(lab.find(to).unwrap()).kind else {
            panic!("{to} is no switch");
        };
        let routes = routing.routes(lab.find(from).unwrap());
        let found = routes.iter().find(|(prefix, _)| *prefix == switch.prefix);
        let ways = &found.expect("a route").1;
        ways.iter().map(|way| (way.port.0, way.hops)).collect()
    }

    /// Port of `from` whose link leads to `to`, the `n`th of such links.
    fn port(lab: &Lab, from: &str, to: &str, n: usize) -> PortNo {
        let (from, to) = (lab.find(from).unwrap(), lab.find(to).unwrap());
        let NodeKind::Switch(switch) = &lab.node(from).kind else {
            panic!("no switch");
        };
        let ports = switch.ports.iter().enumerate();
        let mut ports = ports.filter(|(_, port)| port.peer == to);
        PortNo(ports.nth(n).unwrap().0 as u16)
    }

    #[test]
    fn a_ring_has_the_other_way_round_as_its_alternate() {
        let lab = meshed(4, &[(0, 1), (1, 2), (2, 3), (3, 0)]);
        let mut routing = Routing::new(&lab);
        let (near, round) = (port(&lab, "s1", "s2", 0).0, port(&lab, "s1", "s4", 0).0);
        let ways = |routing: &Routing| ways_to(routing, &lab, "s1", "s2");
        assert_eq!(ways(&routing), [(near, Some(1)), (round, Some(3))]);
        let s2 = lab.find("s2").unwrap();
        assert!(routing.report(s2, port(&lab, "s2", "s1", 0), false));
        assert!(!routing.report(s2, port(&lab, "s2", "s1", 0), false));
        assert_eq!(ways(&routing), [(round, Some(3)), (near, None)]);
        // s4 does not send calls back the way they came.
        let onwards = port(&lab, "s4", "s3", 0).0;
        let ways_of_s4 = ways_to(&routing, &lab, "s4", "s2");
        assert_eq!(ways_of_s4[0], (onwards, Some(2)));
        assert!(routing.report(s2, port(&lab, "s2", "s1", 0), true));
        assert_eq!(ways(&routing), [(near, Some(1)), (round, Some(3))]);
    }

    #[test]
    fn parallel_links_are_equal_and_a_leaf_is_no_alternate() {
        let lab = meshed(3, &[(0, 1), (0, 1), (0, 2)]);
        let routing = Routing::new(&lab);
        let both = [0, 1].map(|n| (port(&lab, "s1", "s2", n).0, Some(1)));
        assert_eq!(ways_to(&routing, &lab, "s1", "s2"), both);
    }

    proptest! {
        /// Whatever links are cut, each step of a call shortens its distance, and a call arrives exactly if the network
        /// is not partitioned.
        #[test]
        fn no_call_goes_round_in_a_circle(
            count in 2_usize..8,
            more in proptest::collection::vec((0_usize..8, 0_usize..8), 0..10),
            cuts in proptest::collection::vec(0_usize..18, 0..8),
        ) {
            // s2 has hosts of the lab; a chain keeps the lab connected.
            let mut links: Vec<_> = (1..count).map(|n| (n - 1, n)).collect();
            links.extend(more.into_iter().filter(|(a, b)| a != b && *a < count && *b < count));
            let lab = meshed(count, &links);
            let mut routing = Routing::new(&lab);
            let switch = |n: usize| lab.find(&format!("s{}", n + 1)).unwrap();
            let mut up = vec![true; links.len()];
            for cut in cuts.into_iter().filter(|cut| *cut < links.len()) {
                up[cut] = false;
                let end = lab.links[cut].ends[cut % 2];
                routing.report(end.node, PortNo(end.port), false);
            }
            let mut parts: Vec<usize> = (0..count).collect();
            for _ in 0..count {
                for (link, (a, b)) in links.iter().enumerate() {
                    if up[link] {
                        let least = parts[*a].min(parts[*b]);
                        (parts[*a], parts[*b]) = (least, least);
                    }
                }
            }
            // What a call is told is what the table of all prefixes has.
            for from in routing.switches().collect::<Vec<_>>() {
                let plan = routing.plan(from);
                for (prefix, ways) in plan.all() {
                    let mut called = [0xff; 20];
                    called[..prefix.len()].copy_from_slice(&prefix);
                    let longest = plan.longest(&AtmAddress(called));
                    prop_assert_eq!(longest, Some((prefix.len(), ways)));
                }
            }
            for from in 0..count {
                for to in (0..count).filter(|to| *to != from) {
                    let name = |n: usize| format!("s{}", n + 1);
                    let mut at = from;
                    let mut left = None;
                    while at != to {
                        let ways = ways_to(&routing, &lab, &name(at), &name(to));
                        let best = ways[0];
                        let Some(hops) = best.1 else { break };
                        prop_assert!(left.is_none_or(|left| hops + 1 == left), "{hops} after {left:?}");
                        left = Some(hops);
                        let NodeKind::Switch(model) = &lab.node(switch(at)).kind else { unreachable!() };
                        let peer = model.ports[usize::from(best.0)].peer;
                        at = (0..count).find(|n| switch(*n) == peer).unwrap();
                    }
                    prop_assert_eq!(at == to, parts[from] == parts[to], "{} to {}", from, to);
                }
            }
        }
    }
}
