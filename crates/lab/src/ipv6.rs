//! IPv6 on emulated LANs: an ELAN has a prefix, and every address there follows from the IPv4 address.
//!
//! The last 32 bits of an address are the IPv4 address of the same interface: with `ip6: 2001:db8:1::/64`, 10.1.0.10 is
//! also 2001:db8:1::a01:a. Routes follow those of IPv4. Only Linux kernel hosts and routers have such addresses;
//! embedded nodes support only IPv4.

use crate::diag::Diagnostics;
use crate::field::At;
use crate::file::{ElanFile, Name};
use crate::model::{IpRoute, Lab, Lec, NodeId, NodeKind};
use aerostat_wire::prefix::{is_ordinary, masked};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An IPv6 network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ip6Net {
    /// Network address: host bits are zero.
    pub network: Ipv6Addr,
    /// Length of the prefix, 0..=128.
    pub length: u8,
}

impl Ip6Net {
    /// The network that contains all addresses.
    pub const ALL: Self = Self {
        network: Ipv6Addr::UNSPECIFIED,
        length: 0,
    };
    /// The address in this network of the interface whose IPv4 address is `ip`.
    #[must_use]
    pub const fn with(self, ip: Ipv4Addr) -> Ipv6Addr {
        Ipv6Addr::from_bits(self.network.to_bits() | ip.to_bits() as u128)
    }
    fn overlaps(self, other: Self) -> bool {
        let short = self.length.min(other.length);
        let cut = |net: Self| masked(net.network.into(), short);
        cut(self) == cut(other)
    }
}

impl fmt::Display for Ip6Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.length)
    }
}

impl FromStr for Ip6Net {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected an IPv6 network such as 2001:db8:1::/64";
        let (network, length) = text.split_once('/').ok_or(EXPECTED)?;
        let network: Ipv6Addr = network.parse().map_err(|_| EXPECTED)?;
        let length: u8 = length.parse().map_err(|_| EXPECTED)?;
        if length > 128 {
            return Err("the prefix of an IPv6 network has 0 to 128 bits".into());
        }
        match masked(network.into(), length) {
            IpAddr::V6(cut) if cut == network => Ok(Self { network, length }),
            cut => Err(format!("there are bits behind the prefix: {cut}/{length}?")),
        }
    }
}

/// Checks the prefix of an ELAN against those of earlier ELANs.
pub(crate) fn check(
    before: &[(At<Name>, ElanFile)],
    name: &At<Name>,
    elan: &ElanFile,
    d: &mut Diagnostics,
) {
    let Some(ip6) = &elan.ip6 else { return };
    let net = ip6.value.0;
    if !(16..=96).contains(&net.length) || !is_ordinary(net.network.into()) {
        d.error(ip6.at, format!("{net} is no prefix for an ELAN"))
            .hint(
                "a unicast prefix of /16 to /96: the last 32 bits of an address are those of IPv4",
            );
    }
    for (other_name, other) in before {
        let Some(other) = &other.ip6 else { continue };
        if other.value.0.overlaps(net) {
            let (a, b) = (&other_name.value.0, &name.value.0);
            d.error(
                ip6.at,
                format!("the IPv6 prefixes of ELANs {a} and {b} overlap"),
            )
            .see(other.at, format!("prefix of {a}"));
        }
    }
}

impl Lab {
    /// IPv6 address and prefix length of an interface of a kernel node.
    #[must_use]
    pub fn ip6(&self, lec: &Lec) -> Option<(Ipv6Addr, u8)> {
        let net = self.elan(lec.elan).ip6?;
        Some((net.with(lec.ip?), net.length))
    }
    /// IPv6 routes of a kernel node beyond its own networks, each with its next hop. They follow the IPv4 routes.
    #[must_use]
    pub fn routes6(&self, id: NodeId) -> Vec<(Ip6Net, Ipv6Addr)> {
        let node = self.node(id);
        let routes: &[IpRoute] = match &node.kind {
            NodeKind::Host(host) => &host.routes,
            NodeKind::Router(router) => &router.routes,
            NodeKind::Switch(_) | NodeKind::LaneServer(_) | NodeKind::Outside(_) => &[],
        };
        let lecs = node.lecs();
        let mut all = Vec::new();
        for route in routes {
            let lec = lecs.iter().find(|lec| usize::from(lec.index) == route.lec);
            let Some(net) = lec.and_then(|lec| self.elan(lec.elan).ip6) else {
                continue;
            };
            let via = net.with(route.via);
            if route.to.length == 0 {
                all.push((Ip6Net::ALL, via));
                continue;
            }
            for elan in &self.elans {
                let own = lecs.iter().any(|lec| self.elan(lec.elan).name == elan.name);
                let behind =
                    route.to.length <= elan.subnet.length && route.to.contains(elan.subnet.network);
                if let Some(to) = elan.ip6.filter(|_| behind && !own) {
                    all.push((to, via));
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::tests::{SMALL, lab};

    fn small() -> String {
        let a = "a: { subnet: 10.1.0.0/24, ip6: '2001:db8:1::/64' }";
        let b = "b: { subnet: 10.2.0.0/24, ip6: '2001:db8:2::/64' }";
        let text = SMALL.replace("a: { subnet: 10.1.0.0/24 }", a);
        text.replace("b: { subnet: 10.2.0.0/24 }", b)
    }

    #[test]
    fn addresses_and_routes_follow_those_of_ipv4() {
        let lab = lab(&small());
        let address = |name: &str, n: usize| {
            let node = lab.node(lab.find(name).unwrap());
            let (ip, length) = lab.ip6(&node.lecs()[n]).unwrap();
            format!("{ip}/{length}")
        };
        assert_eq!(address("r", 0), "2001:db8:1::a01:1/64");
        assert_eq!(address("r", 1), "2001:db8:2::a02:1/64");
        let via = "2001:db8:1::a01:1".parse().unwrap();
        assert_eq!(lab.routes6(lab.find("x").unwrap()), [(Ip6Net::ALL, via)]);
        assert_eq!(lab.routes6(lab.find("r").unwrap()), []);
    }

    #[test]
    fn wrong_prefixes_are_located() {
        for (wrong, told) in [
            ("2001:db8:1::/64", "overlap"),
            ("2001:db8:1::1/64", "bits behind the prefix"),
            ("2001:db8:2::/100", "is no prefix"),
            ("fe80::/64", "is no prefix"),
            ("ff00::/64", "is no prefix"),
            ("10.2.0.0/24", "expected an IPv6 network"),
            ("2001:db8:2::/129", "0 to 128 bits"),
        ] {
            let text = small().replace("2001:db8:2::/64", wrong);
            let found = crate::parse("t.atm.yml", &text, &[])
                .unwrap_err()
                .to_string();
            assert!(found.contains(told), "{wrong}: {found}");
        }
    }
}
