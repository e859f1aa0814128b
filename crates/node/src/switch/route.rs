//! Routes of calls: from the called address to an output port.

use core::fmt;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use aerostat_proto::Cause;
use aerostat_wire::AtmAddress;

use super::PortNo;

/// One way towards a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The output port.
    pub port: PortNo,
    /// Number of links to the destination by this port, at least 1. `None` if no usable link leads there at present.
    pub hops: Option<u16>,
}

impl Way {
    /// Sort key of ways: the shortest first, unusable ways last.
    const fn rank(&self) -> (bool, Option<u16>, PortNo) {
        (self.hops.is_none(), self.hops, self.port)
    }
    /// Puts ways in order: the shortest first, unusable ways last.
    pub fn sort(ways: &mut [Self]) {
        ways.sort_by_key(Self::rank);
    }
}

/// Selects output ports, for example by static routes or a routing protocol.
pub trait RouteSelect {
    /// The ways for a call to `called`, shortest first; at least one. The switch takes one of the shortest ways.
    ///
    /// # Errors
    /// The cause with which to clear the call.
    fn select(&self, called: &AtmAddress) -> Result<Cow<'_, [Way]>, Cause>;
    /// The host at `port` has registered `address` (its selector does not matter).
    fn register(&mut self, address: AtmAddress, port: PortNo);
    /// The host at `port` has withdrawn `address`.
    fn unregister(&mut self, address: AtmAddress, port: PortNo);
}

/// The routes of one switch in the plan of a whole network, computed when a call needs them. If each switch had a table
/// of all prefixes, the tables of a network would grow with the square of its switches.
pub trait Plan: fmt::Debug + Send + Sync {
    /// The number of octets of the longest prefix that `called` has, and the ways to it in order, at least one.
    fn longest(&self, called: &AtmAddress) -> Option<(usize, Vec<Way>)>;
    /// All prefixes of at most 20 octets with their ways in order, at least one each, by prefix.
    fn all(&self) -> Vec<(Vec<u8>, Vec<Way>)>;
}

/// The part of an address that identifies an end system.
pub(super) type EndSystem = [u8; 19];

/// Routes from configuration: registered hosts first, then the longest prefix.
#[derive(Clone, Debug, Default)]
pub struct StaticRoutes {
    hosts: BTreeMap<EndSystem, Way>,
    /// By prefix of at most 20 octets: ways in order, at least one.
    prefixes: BTreeMap<Vec<u8>, Vec<Way>>,
    /// Further prefixes, none of which is among the others.
    plan: Option<Arc<dyn Plan>>,
}

pub(super) fn end_system(address: &AtmAddress) -> EndSystem {
    let mut key = [0; 19];
    key.copy_from_slice(&address.0[..19]);
    key
}

impl StaticRoutes {
    /// No routes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
    /// Takes its prefixes from a plan, instead of the plan before.
    pub fn follow(&mut self, plan: Arc<dyn Plan>) {
        self.plan = Some(plan);
    }
    /// Routes calls whose address starts with `prefix` (0..=20 octets) to `port` only.
    pub fn add_prefix(&mut self, prefix: &[u8], port: PortNo) {
        let hops = Some(1);
        self.set_prefix(prefix, vec![Way { port, hops }]);
    }
    /// Routes calls whose address starts with `prefix` (0..=20 octets) by one of `ways`, which may be in any order.
    /// Without ways the prefix is removed.
    pub fn set_prefix(&mut self, prefix: &[u8], mut ways: Vec<Way>) {
        let prefix = prefix.get(..20).unwrap_or(prefix);
        Way::sort(&mut ways);
        if ways.is_empty() {
            self.prefixes.remove(prefix);
        } else {
            self.prefixes.insert(prefix.to_vec(), ways);
        }
    }
    /// Leading octets of addresses and their ways in order, for display: registered end systems (19 octets), then
    /// prefixes. The prefix of a registered end system is left out, because no call takes its ways.
    pub fn in_force(&self) -> impl Iterator<Item = (Vec<u8>, Vec<Way>)> {
        let hosts = self.hosts.iter();
        let hosts = hosts.map(|(host, way)| (host.to_vec(), vec![*way]));
        let registered = |prefix: &[u8]| {
            let host = prefix.get(..19).and_then(|host| host.try_into().ok());
            host.is_some_and(|host: &EndSystem| self.hosts.contains_key(host))
        };
        let mut prefixes = self.prefixes.clone();
        prefixes.extend(self.plan.iter().flat_map(|plan| plan.all()));
        let prefixes = prefixes.into_iter();
        hosts.chain(prefixes.filter(move |(prefix, _)| !registered(prefix)))
    }
}

impl RouteSelect for StaticRoutes {
    fn select(&self, called: &AtmAddress) -> Result<Cow<'_, [Way]>, Cause> {
        if let Some(way) = self.hosts.get(&end_system(called)) {
            return Ok(Cow::Borrowed(core::slice::from_ref(way)));
        }
        let planned = self.plan.as_ref().and_then(|plan| plan.longest(called));
        let shorter = planned.as_ref().map_or(0, |(len, _)| len + 1);
        let own = (shorter..=called.0.len())
            .rev()
            .find_map(|len| self.prefixes.get(&called.0[..len]));
        match (own, planned) {
            (Some(ways), _) => Ok(Cow::Borrowed(ways)),
            (None, Some((_, ways))) => Ok(Cow::Owned(ways)),
            (None, None) => Err(Cause::NO_ROUTE),
        }
    }
    fn register(&mut self, address: AtmAddress, port: PortNo) {
        let hops = Some(1);
        self.hosts.insert(end_system(&address), Way { port, hops });
    }
    fn unregister(&mut self, address: AtmAddress, port: PortNo) {
        let key = end_system(&address);
        if self.hosts.get(&key).is_some_and(|way| way.port == port) {
            self.hosts.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_before_the_longest_prefix() {
        let mut routes = StaticRoutes::new();
        let address: AtmAddress = "47.0005.80.ffe100.0000.f21a.0102.0020480a1b2c.00"
            .parse()
            .unwrap();
        let first = |ways: Cow<'_, [Way]>| ways[0].port;
        let select = |routes: &StaticRoutes| routes.select(&address).map(first);
        assert_eq!(select(&routes), Err(Cause::NO_ROUTE));
        routes.add_prefix(&[], PortNo(0));
        routes.add_prefix(&address.0[..13], PortNo(2));
        routes.add_prefix(&address.0[..9], PortNo(1));
        assert_eq!(select(&routes), Ok(PortNo(2)));
        routes.register(address.with_selector(7), PortNo(3));
        assert_eq!(select(&routes), Ok(PortNo(3)));
        routes.unregister(address, PortNo(4));
        assert_eq!(
            select(&routes),
            Ok(PortNo(3)),
            "not this port's to withdraw"
        );
        routes.unregister(address, PortNo(3));
        assert_eq!(select(&routes), Ok(PortNo(2)));
        assert_eq!(
            routes.select(&AtmAddress::LECS).map(first),
            Ok(PortNo(0)),
            "default route"
        );
    }

    /// A plan with one prefix.
    #[derive(Debug)]
    struct One(Vec<u8>, u16);

    impl One {
        fn ways(&self) -> Vec<Way> {
            let (port, hops) = (PortNo(self.1), Some(2));
            vec![Way { port, hops }]
        }
    }

    impl Plan for One {
        fn longest(&self, called: &AtmAddress) -> Option<(usize, Vec<Way>)> {
            let fits = called.0.starts_with(&self.0);
            fits.then(|| (self.0.len(), self.ways()))
        }
        fn all(&self) -> Vec<(Vec<u8>, Vec<Way>)> {
            vec![(self.0.clone(), self.ways())]
        }
    }

    #[test]
    fn the_prefixes_of_a_plan_stand_among_those_that_are_given_and_the_longest_counts() {
        let mut routes = StaticRoutes::new();
        let called = AtmAddress::LECS;
        let port = |routes: &StaticRoutes| routes.select(&called).map(|ways| ways[0].port.0);
        routes.add_prefix(&called.0[..9], PortNo(1));
        routes.follow(Arc::new(One(called.0[..13].to_vec(), 2)));
        assert_eq!(port(&routes), Ok(2));
        routes.add_prefix(&called.0[..19], PortNo(3));
        assert_eq!(port(&routes), Ok(3));
        let lengths: Vec<usize> = routes.in_force().map(|(prefix, _)| prefix.len()).collect();
        assert_eq!(lengths, [9, 13, 19]);
        routes.follow(Arc::new(One(vec![0xff; 13], 2)));
        routes.set_prefix(&called.0[..19], Vec::new());
        assert_eq!(port(&routes), Ok(1));
        routes.register(called, PortNo(4));
        assert_eq!(port(&routes), Ok(4));
    }

    #[test]
    fn routes_in_force_are_those_that_calls_take_each_once() {
        let mut routes = StaticRoutes::new();
        let host = AtmAddress::LECS;
        for length in [0, 13, 19, 20] {
            routes.add_prefix(&host.0[..length], PortNo(1));
        }
        let lengths = |routes: &StaticRoutes| {
            let all = routes.in_force().map(|(prefix, _)| prefix.len());
            all.collect::<Vec<_>>()
        };
        assert_eq!(lengths(&routes), [0, 13, 19, 20]);
        routes.register(host, PortNo(2));
        assert_eq!(lengths(&routes), [19, 0, 13]);
        // Each of them serves calls: the first that fits is what a call gets.
        for (prefix, ways) in routes.in_force() {
            let mut called = [0xff; 20];
            called[..prefix.len()].copy_from_slice(&prefix);
            assert_eq!(
                routes.select(&AtmAddress(called)),
                Ok(Cow::Owned(ways)),
                "{prefix:02x?}"
            );
        }
    }

    #[test]
    fn the_shortest_way_stands_first_and_one_that_leads_nowhere_last() {
        let mut routes = StaticRoutes::new();
        let way = |port, hops| Way {
            port: PortNo(port),
            hops,
        };
        let given = [(4, None), (3, Some(3)), (2, Some(1)), (1, Some(3))];
        routes.set_prefix(&[], given.map(|(port, hops)| way(port, hops)).into());
        let ways = routes.select(&AtmAddress::LECS).unwrap();
        let order: Vec<u16> = ways.iter().map(|way| way.port.0).collect();
        assert_eq!(order, [2, 1, 3, 4]);
        routes.set_prefix(&[], Vec::new());
        assert_eq!(routes.select(&AtmAddress::LECS), Err(Cause::NO_ROUTE));
    }
}
