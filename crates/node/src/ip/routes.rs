//! Routes: connected subnets and static routes; the longest prefix is used.

use super::packet::{Class, class, in_subnet, mask};
use super::router::RouterInterface;
use aerostat_proto::Refused;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// A route over a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticRoute {
    /// Any address of the destination network.
    pub destination: Ipv4Addr,
    /// Prefix length, 0–32; 0 makes a default route.
    pub prefix: u8,
    /// A neighbour on the subnet of one of the interfaces. 0.0.0.0 means that the network is not reached over the
    /// interfaces, even if one of them is on it.
    pub next_hop: Ipv4Addr,
}

/// The result of a route lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteResult {
    /// To this router: the address of an interface.
    Local {
        /// The interface's number.
        interface: usize,
    },
    /// To a host on a connected subnet.
    Connected {
        /// The interface's number.
        interface: usize,
    },
    /// To a neighbour that forwards the packet.
    Via {
        /// The interface's number.
        interface: usize,
        /// The neighbour.
        next_hop: Ipv4Addr,
    },
    /// To all hosts, or all hosts of a connected subnet: not forwarded.
    Broadcast,
    /// To a group: not forwarded.
    Multicast,
    /// There is no route.
    NoRoute,
}

impl RouteResult {
    /// Outgoing interface and neighbour for a packet to `destination`, if the packet is to be forwarded.
    #[must_use]
    pub fn next_hop(self, destination: Ipv4Addr) -> Option<(usize, Ipv4Addr)> {
        match self {
            Self::Connected { interface } => Some((interface, destination)),
            Self::Via {
                interface,
                next_hop,
            } => Some((interface, next_hop)),
            Self::Local { .. } | Self::Broadcast | Self::Multicast | Self::NoRoute => None,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    network: Ipv4Addr,
    prefix: u8,
    interface: usize,
    /// `None` for a connected subnet.
    next_hop: Option<Ipv4Addr>,
    /// True if the network is not reached over the interfaces.
    nowhere: bool,
}

impl Entry {
    const fn is_connected(&self) -> bool {
        self.next_hop.is_none() && !self.nowhere
    }
}

/// The routing table.
#[derive(Debug)]
pub(super) struct Routes {
    own: Vec<Ipv4Addr>,
    /// Entries, longest prefix first.
    entries: Vec<Entry>,
    /// Interfaces without a link: no packet is sent there.
    down: BTreeSet<usize>,
}

impl Routes {
    pub(super) fn new(
        interfaces: &[RouterInterface],
        routes: &[StaticRoute],
    ) -> Result<Self, Refused> {
        let mut entries = Vec::new();
        for (number, interface) in interfaces.iter().enumerate() {
            if interface.prefix > 32 || class(interface.address) != Class::Unicast {
                return Err(Refused(
                    "an interface has a unicast address and a prefix up to 32",
                ));
            }
            entries.push(Entry {
                network: network(interface.address, interface.prefix),
                prefix: interface.prefix,
                interface: number,
                next_hop: None,
                nowhere: false,
            });
        }
        for route in routes {
            if route.next_hop.is_unspecified() && route.prefix <= 32 {
                entries.push(Entry {
                    network: network(route.destination, route.prefix),
                    prefix: route.prefix,
                    interface: usize::MAX,
                    next_hop: None,
                    nowhere: true,
                });
                continue;
            }
            let towards = entries
                .iter()
                .find(|e| e.is_connected() && in_subnet(route.next_hop, e.network, e.prefix));
            let Some(interface) = towards.map(|e| e.interface) else {
                return Err(Refused("the next hop of a route is on no connected subnet"));
            };
            if route.prefix > 32 || interfaces.iter().any(|i| i.address == route.next_hop) {
                return Err(Refused(
                    "a route has a prefix up to 32 and another router as next hop",
                ));
            }
            entries.push(Entry {
                network: network(route.destination, route.prefix),
                prefix: route.prefix,
                interface,
                next_hop: Some(route.next_hop),
                nowhere: false,
            });
        }
        // The sort is stable. Of equal prefixes, entries that are not reached over the interfaces come first, then
        // connected subnets, then static routes in the given order.
        entries.sort_by_key(|entry| (core::cmp::Reverse(entry.prefix), !entry.nowhere));
        Ok(Self {
            own: interfaces.iter().map(|i| i.address).collect(),
            entries,
            down: BTreeSet::new(),
        })
    }

    /// Replaces the static routes; true if that changes anything.
    pub(super) fn replace(
        &mut self,
        interfaces: &[RouterInterface],
        routes: &[StaticRoute],
    ) -> Result<bool, Refused> {
        let entries = Self::new(interfaces, routes)?.entries;
        let changed = entries != self.entries;
        self.entries = entries;
        Ok(changed)
    }

    /// Sets the state of an interface's link; true if that is a change.
    pub(super) fn set_link(&mut self, interface: usize, up: bool) -> bool {
        if up {
            self.down.remove(&interface)
        } else {
            self.down.insert(interface)
        }
    }

    /// The route, or another one to the same network, whose interface has a link. A shorter prefix is not used: a
    /// default route would send the packets back to routers that regard this router as their next hop.
    fn with_link<'a>(&'a self, best: &'a Entry) -> Option<&'a Entry> {
        let same = |entry: &&Entry| (entry.network, entry.prefix) == (best.network, best.prefix);
        self.entries
            .iter()
            .filter(same)
            .find(|entry| !self.down.contains(&entry.interface))
    }

    /// True if the interface has no link.
    pub(super) fn is_down(&self, interface: usize) -> bool {
        self.down.contains(&interface)
    }

    pub(super) fn lookup(&self, destination: Ipv4Addr) -> RouteResult {
        if let Some(interface) = self.own.iter().position(|own| *own == destination) {
            return RouteResult::Local { interface };
        }
        match class(destination) {
            Class::Broadcast => return RouteResult::Broadcast,
            Class::Multicast => return RouteResult::Multicast,
            Class::Unicast | Class::Never => {}
        }
        let entry = self
            .entries
            .iter()
            .find(|entry| in_subnet(destination, entry.network, entry.prefix))
            .and_then(|best| self.with_link(best));
        match entry {
            None | Some(Entry { nowhere: true, .. }) => RouteResult::NoRoute,
            Some(Entry {
                interface,
                next_hop: Some(next_hop),
                ..
            }) => RouteResult::Via {
                interface: *interface,
                next_hop: *next_hop,
            },
            Some(entry) if is_edge(destination, entry) => RouteResult::Broadcast,
            Some(entry) => RouteResult::Connected {
                interface: entry.interface,
            },
        }
    }

    /// True if there is a route and only the link of an interface is missing.
    pub(super) fn is_cut_off(&self, destination: Ipv4Addr) -> bool {
        let mut entries = self.entries.iter();
        let best = entries.find(|entry| in_subnet(destination, entry.network, entry.prefix));
        class(destination) == Class::Unicast
            && best.is_some_and(|best| !best.nowhere && self.with_link(best).is_none())
    }

    /// The shortest prefix around `destination` whose addresses all take its route.
    pub(super) fn covers(&self, destination: Ipv4Addr) -> u8 {
        let entries = self
            .entries
            .iter()
            .map(|entry| (entry.network.into(), entry.prefix));
        let own = self.own.iter().map(|own| ((*own).into(), 32));
        let table: Vec<_> = entries.chain(own).collect();
        aerostat_proto::nhrp::cache::covers(destination.into(), &table)
    }
}

/// The first and the last address of a subnet are broadcasts, except with 31 and 32 bits (RFC
/// 3021).
fn is_edge(address: Ipv4Addr, entry: &Entry) -> bool {
    let host = address.to_bits() & !mask(entry.prefix);
    entry.prefix < 31 && (host == 0 || host == !mask(entry.prefix))
}

fn network(address: Ipv4Addr, prefix: u8) -> Ipv4Addr {
    Ipv4Addr::from_bits(address.to_bits() & mask(prefix))
}
