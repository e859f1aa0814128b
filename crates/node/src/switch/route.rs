//! Where a call goes: from the called address to an output port.

use std::collections::BTreeMap;

use aerostat_proto::Cause;
use aerostat_wire::AtmAddress;

use super::PortNo;

/// Chooses output ports. Static routes do; a routing protocol can.
pub trait RouteSelect {
    /// The output port for a call to `called` that came in at `from`.
    ///
    /// # Errors
    /// The cause to clear the call with.
    fn select(&self, called: &AtmAddress, from: PortNo) -> Result<PortNo, Cause>;
    /// A host at `port` has registered `address` (its selector does not matter).
    fn register(&mut self, address: AtmAddress, port: PortNo);
    /// The host at `port` has withdrawn `address`.
    fn unregister(&mut self, address: AtmAddress, port: PortNo);
}

/// The part of an address that tells end systems apart.
type EndSystem = [u8; 19];

/// Routes from configuration: registered hosts first, then the longest prefix.
#[derive(Clone, Debug, Default)]
pub struct StaticRoutes {
    hosts: BTreeMap<EndSystem, PortNo>,
    /// By prefix; at most 20 octets.
    prefixes: BTreeMap<Vec<u8>, PortNo>,
}

fn end_system(address: &AtmAddress) -> EndSystem {
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
    /// Sends calls whose address starts with `prefix` (0..=20 octets) to `port`.
    pub fn add_prefix(&mut self, prefix: &[u8], port: PortNo) {
        let prefix = prefix.get(..20).unwrap_or(prefix);
        self.prefixes.insert(prefix.to_vec(), port);
    }
    /// Prefixes and ports, for display.
    pub fn prefixes(&self) -> impl Iterator<Item = (&[u8], PortNo)> {
        self.prefixes.iter().map(|(p, port)| (p.as_slice(), *port))
    }
    /// Registered end systems (19 octets) and ports, for display.
    pub fn hosts(&self) -> impl Iterator<Item = (&EndSystem, PortNo)> {
        self.hosts.iter().map(|(host, port)| (host, *port))
    }
}

impl RouteSelect for StaticRoutes {
    fn select(&self, called: &AtmAddress, _from: PortNo) -> Result<PortNo, Cause> {
        if let Some(port) = self.hosts.get(&end_system(called)) {
            return Ok(*port);
        }
        (0..=called.0.len())
            .rev()
            .find_map(|len| self.prefixes.get(&called.0[..len]))
            .copied()
            .ok_or(Cause::NO_ROUTE)
    }
    fn register(&mut self, address: AtmAddress, port: PortNo) {
        self.hosts.insert(end_system(&address), port);
    }
    fn unregister(&mut self, address: AtmAddress, port: PortNo) {
        let key = end_system(&address);
        if self.hosts.get(&key) == Some(&port) {
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
        let select = |routes: &StaticRoutes| routes.select(&address, PortNo(9));
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
            routes.select(&AtmAddress::LECS, PortNo(9)),
            Ok(PortNo(0)),
            "default route"
        );
    }
}
