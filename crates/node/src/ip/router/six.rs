//! IPv6 beside a kernel router: routes and neighbours for the questions of its MPOA server (RFC 4861).
//!
//! The kernel forwards; nothing here does. Routes are the interfaces' own prefixes and static routes. A neighbour is
//! requested by Neighbour Solicitations from the router's address, and kept in a table of [`crate::ip::neighbours`].
//! Its advertisement comes to the router's MAC address, and the driver passes it to both. **Not implemented**: router
//! advertisements, redirects, duplicate address detection, answers to solicitations: all these are the kernel's.

use super::{Router, RouterOutput};
use crate::ip::neighbours::{ArpEvent, ArpParams, Neighbours};
use aerostat_proto::Instant;
use aerostat_proto::mpoa::mps::RouteResult;
use aerostat_wire::ipv6::{ICMPV6, Ipv6View};
use aerostat_wire::nhrp::internet_checksum;
use aerostat_wire::prefix::within;
use std::net::Ipv6Addr;

const ETHERNET_HEADER: usize = 14;
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
/// Hop limit of neighbour discovery; a message with a lower value has passed a router.
const OWN_LINK: u8 = 255;
/// Options: hardware address of the source, of the target.
const SOURCE_ADDRESS: u8 = 1;
const TARGET_ADDRESS: u8 = 2;

/// An IPv6 route over a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticRoute6 {
    /// Any address of the destination network.
    pub destination: Ipv6Addr,
    /// Prefix length, 0–128; 0 makes a default route.
    pub prefix: u8,
    /// A neighbour under the prefix of one of the interfaces.
    pub next_hop: Ipv6Addr,
}

#[derive(Debug)]
struct SixPort {
    own: Option<(Ipv6Addr, u8)>,
    neighbours: Neighbours<Vec<u8>, Ipv6Addr>,
}

/// Addresses, routes and neighbours.
#[derive(Debug)]
pub(super) struct Six {
    ports: Vec<SixPort>,
    routes: Vec<StaticRoute6>,
}

impl Six {
    pub(super) fn new(params: ArpParams, ports: usize) -> Self {
        let port = || SixPort {
            own: None,
            neighbours: Neighbours::new(params),
        };
        Self {
            ports: (0..ports).map(|_| port()).collect(),
            routes: Vec::new(),
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let ports = self.ports.iter();
        ports.filter_map(|port| port.neighbours.deadline()).min()
    }

    /// The interface whose prefix contains the address.
    fn connected(&self, address: Ipv6Addr) -> Option<usize> {
        self.ports.iter().position(|port| {
            port.own
                .is_some_and(|(own, prefix)| within(address.into(), own.into(), prefix))
        })
    }
}

impl Router {
    /// Gives an interface an IPv6 address and its prefix length.
    pub fn set_ipv6(&mut self, interface: usize, own: (Ipv6Addr, u8)) {
        if let Some(port) = self.six.ports.get_mut(interface) {
            port.own = Some(own);
        }
    }

    /// Sets the IPv6 routes in addition to those to the interfaces' own prefixes.
    pub fn set_ipv6_routes(&mut self, mut routes: Vec<StaticRoute6>) {
        routes.sort_by_key(|route| core::cmp::Reverse(route.prefix));
        self.six.routes = routes;
    }

    /// The route of a packet for `destination`, if it has one.
    #[must_use]
    pub fn lookup_ipv6(&self, destination: Ipv6Addr) -> Option<RouteResult> {
        let six = &self.six;
        let mine = |port: &SixPort| port.own.is_some_and(|(own, _)| own == destination);
        if six.ports.iter().any(mine) {
            return Some(RouteResult::Local);
        }
        let up = |itf: usize| !self.routes.is_down(itf);
        if let Some(itf) = six.connected(destination) {
            return Some(match up(itf) {
                true => RouteResult::Connected { itf: itf as u32 },
                false => RouteResult::Down,
            });
        }
        let fits = |route: &&StaticRoute6| {
            within(destination.into(), route.destination.into(), route.prefix)
        };
        let next_hop = six.routes.iter().find(fits)?.next_hop;
        let itf = six.connected(next_hop)?;
        if !up(itf) {
            return Some(RouteResult::Down);
        }
        Some(RouteResult::Via {
            itf: itf as u32,
            next_hop: next_hop.into(),
        })
    }

    /// Asks for the hardware address of a neighbour.
    pub(super) fn solicit(&mut self, token: u64, itf: usize, address: Ipv6Addr, now: Instant) {
        self.six.ports[itf].neighbours.ask(token, address, now);
        self.six_events();
    }

    pub(super) fn six_timeout(&mut self, now: Instant) {
        for port in &mut self.six.ports {
            port.neighbours.timeout(now);
        }
        self.six_events();
    }

    /// Handles a Neighbour Advertisement. An unsolicited one creates no entry.
    pub(super) fn advertised(&mut self, itf: usize, frame: &[u8], now: Instant) {
        if let Some((target, mac)) = advertisement(frame) {
            self.six.ports[itf]
                .neighbours
                .learn(target, mac, false, now);
            self.six_events();
        }
    }

    fn six_events(&mut self) {
        for interface in 0..self.six.ports.len() {
            while let Some(event) = self.six.ports[interface].neighbours.poll_event() {
                let own = self.six.ports[interface].own;
                self.output.extend(match (event, own) {
                    (ArpEvent::Ask { address, known }, Some((own, _))) => {
                        let mac = self.ports[interface].config.mac;
                        let bytes = solicitation((mac, own), address, known);
                        Some(RouterOutput::Frame { interface, bytes })
                    }
                    // No packets wait here.
                    (other, _) => RouterOutput::news(other, interface),
                });
            }
        }
    }
}

/// True for the frame of a Neighbour Advertisement.
#[must_use]
pub(crate) fn is_advertisement(frame: &[u8]) -> bool {
    let at = |place: usize| frame.get(place).copied();
    frame.get(12..14) == Some(&[0x86, 0xdd])
        && at(ETHERNET_HEADER + 6) == Some(ICMPV6)
        && at(ETHERNET_HEADER + 40) == Some(ADVERTISEMENT)
}

/// Checksum of an ICMPv6 message with the pseudo header; 0 if the message contains a correct checksum.
fn checksum(source: Ipv6Addr, destination: Ipv6Addr, message: &[u8]) -> u16 {
    let mut all = [source.octets(), destination.octets()].concat();
    all.extend((message.len() as u32).to_be_bytes());
    all.extend([0, 0, 0, ICMPV6]);
    all.extend(message);
    internet_checksum(&all)
}

/// Address and hardware address that an advertisement gives.
fn advertisement(frame: &[u8]) -> Option<(Ipv6Addr, [u8; 6])> {
    let view = Ipv6View::new(frame.get(ETHERNET_HEADER..)?)?;
    let message = view.payload();
    let (fixed, mut options) = message.split_first_chunk::<24>()?;
    let right = view.next_header() == ICMPV6
        && view.hop_limit() == OWN_LINK
        && (fixed[0], fixed[1]) == (ADVERTISEMENT, 0)
        && checksum(view.source(), view.destination(), message) == 0;
    let target = Ipv6Addr::from(*fixed.last_chunk::<16>()?);
    if !right || target.is_multicast() {
        return None;
    }
    // RFC 4861 §4.4: the option may be absent in an answer to a unicast solicitation, because the sender of the
    // solicitation must know the address.
    let mut mac = *frame.get(6..)?.first_chunk::<6>()?;
    while let [kind, length, ..] = *options {
        let length = usize::from(length) * 8;
        let option = options.get(..length).filter(|option| !option.is_empty())?;
        if kind == TARGET_ADDRESS {
            mac = *option.get(2..)?.first_chunk()?;
        }
        options = options.get(length..)?;
    }
    (mac[0] & 1 == 0).then_some((target, mac))
}

/// The frame of a Neighbour Solicitation: to the group of the target, or to its last known hardware address.
fn solicitation(
    (mac, own): ([u8; 6], Ipv6Addr),
    target: Ipv6Addr,
    known: Option<[u8; 6]>,
) -> Vec<u8> {
    let [.., a, b, c] = target.octets();
    let group = Ipv6Addr::from_bits(
        Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 0).to_bits() | target.to_bits() & 0x00ff_ffff,
    );
    let (to_mac, to) = match known {
        Some(mac) => (mac, target),
        None => ([0x33, 0x33, 0xff, a, b, c], group),
    };
    let mut message = vec![SOLICITATION, 0, 0, 0, 0, 0, 0, 0];
    message.extend(target.octets());
    message.extend([SOURCE_ADDRESS, 1]);
    message.extend(mac);
    let sum = checksum(own, to, &message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut frame = [&to_mac[..], &mac].concat();
    frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
    frame.extend((message.len() as u16).to_be_bytes());
    frame.extend([ICMPV6, OWN_LINK]);
    frame.extend(own.octets());
    frame.extend(to.octets());
    frame.extend(message);
    frame
}

#[cfg(test)]
mod tests {
    use super::super::{Forwarding, RouterConfig, RouterInput, RouterInterface};
    use super::*;
    use aerostat_proto::Machine as _;
    use std::net::IpAddr;

    const OWN_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const HOST_MAC: [u8; 6] = [2, 0, 0, 0, 0, 0x10];

    fn ip(text: &str) -> Ipv6Addr {
        text.parse().expect(text)
    }

    fn router() -> Router {
        let interface = |n: u8| RouterInterface {
            name: format!("lec{n}"),
            mac: OWN_MAC,
            address: [10, n, 0, 1].into(),
            prefix: 24,
            mtu: 1500,
        };
        let mut router = Router::new(RouterConfig {
            interfaces: vec![interface(0), interface(1)],
            routes: Vec::new(),
            forwarding: Forwarding::Wire,
            queue: crate::ip::router::QueueLimit::Packets(1),
            arp: ArpParams::default(),
        })
        .expect("good");
        router.set_ipv6(0, (ip("2001:db8:1::1"), 64));
        router.set_ipv6(1, (ip("2001:db8:9::1"), 64));
        let route = |destination, prefix, next_hop| StaticRoute6 {
            destination: ip(destination),
            prefix,
            next_hop: ip(next_hop),
        };
        router.set_ipv6_routes(vec![
            route("2001:db8::", 32, "2001:db8:9::2"),
            route("2001:db8:2::", 64, "2001:db8:9::3"),
            route("2001:db9::", 32, "2001:db8:7::7"),
        ]);
        router
    }

    fn advertisement_of(target: Ipv6Addr, to: Ipv6Addr) -> Vec<u8> {
        let mut message = vec![ADVERTISEMENT, 0, 0, 0, 0x60, 0, 0, 0];
        message.extend(target.octets());
        message.extend([TARGET_ADDRESS, 1]);
        message.extend(HOST_MAC);
        let sum = checksum(target, to, &message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        let mut frame = [&OWN_MAC[..], &HOST_MAC].concat();
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 32, ICMPV6, OWN_LINK]);
        frame.extend(target.octets());
        frame.extend(to.octets());
        frame.extend(message);
        frame
    }

    #[test]
    fn ways() {
        let mut router = router();
        let via = |next: &str| {
            let next_hop = IpAddr::V6(ip(next));
            Some(RouteResult::Via { itf: 1, next_hop })
        };
        let way = |router: &Router, to: &str| router.lookup_ipv6(ip(to));
        assert_eq!(way(&router, "2001:db8:1::1"), Some(RouteResult::Local));
        let connected = Some(RouteResult::Connected { itf: 0 });
        assert_eq!(way(&router, "2001:db8:1::10"), connected);
        assert_eq!(way(&router, "2001:db8:2::10"), via("2001:db8:9::3"));
        assert_eq!(way(&router, "2001:db8:3::10"), via("2001:db8:9::2"));
        // A next hop that is not a neighbour, and a destination without a route.
        assert_eq!(way(&router, "2001:db9::1"), None);
        assert_eq!(way(&router, "2001:dba::1"), None);
        let (interface, up) = (1, false);
        let link = RouterInput::Link { interface, up };
        router.handle_input(link, Instant::ZERO).expect("taken");
        assert_eq!(way(&router, "2001:db8:2::10"), Some(RouteResult::Down));
    }

    #[test]
    fn a_neighbour_is_solicited_and_heard() {
        let mut router = router();
        let (own, target) = (ip("2001:db8:1::1"), ip("2001:db8:1::12:3456"));
        let resolve = RouterInput::Resolve {
            token: 7,
            interface: 0,
            address: target.into(),
        };
        router.handle_input(resolve, Instant::ZERO).expect("taken");
        let Some(RouterOutput::Frame {
            interface: 0,
            bytes,
        }) = router.poll_output()
        else {
            panic!("no solicitation");
        };
        assert_eq!(bytes[..6], [0x33, 0x33, 0xff, 0x12, 0x34, 0x56]);
        let view = Ipv6View::new(&bytes[ETHERNET_HEADER..]).expect("IPv6");
        assert_eq!(view.destination(), ip("ff02::1:ff12:3456"));
        assert_eq!((view.source(), view.hop_limit()), (own, 255));
        assert_eq!(
            checksum(view.source(), view.destination(), view.payload()),
            0
        );
        assert_eq!(view.payload()[8..24], target.octets());
        let good = advertisement_of(target, own);
        // A damaged packet, one from behind a router, and one about a neighbour that was not requested.
        let mut damaged = good.clone();
        damaged[80] ^= 1;
        let mut far = good.clone();
        far[21] = 254;
        for frame in [damaged, far, advertisement_of(ip("2001:db8:1::99"), own)] {
            let (interface, bytes) = (0, &frame[..]);
            let input = RouterInput::Frame { interface, bytes };
            router.handle_input(input, Instant::ZERO).expect("taken");
            assert_eq!(router.poll_output(), None);
        }
        let (interface, bytes) = (0, &good[..]);
        let input = RouterInput::Frame { interface, bytes };
        router.handle_input(input, Instant::ZERO).expect("taken");
        let answers: Vec<_> = core::iter::from_fn(|| router.poll_output()).collect();
        let (address, mac) = (target.into(), Some(HOST_MAC));
        let changed = RouterOutput::NeighbourChanged {
            interface,
            address,
            mac,
        };
        let token = 7;
        let resolved = RouterOutput::Resolved {
            token,
            interface,
            address,
            mac,
            lately: false,
        };
        assert_eq!(answers, [changed, resolved]);
    }

    #[test]
    fn silence_is_an_answer() {
        let mut router = router();
        let resolve = RouterInput::Resolve {
            token: 7,
            interface: 0,
            address: ip("2001:db8:1::99").into(),
        };
        router.handle_input(resolve, Instant::ZERO).expect("taken");
        let mut frames = 0;
        loop {
            match router.poll_output() {
                Some(RouterOutput::Frame { .. }) => frames += 1,
                Some(RouterOutput::Resolved { mac: None, .. }) => break,
                Some(other) => panic!("{other:?}"),
                None => {
                    let at = router.poll_timeout().expect("it waits");
                    router.handle_timeout(at);
                }
            }
        }
        assert_eq!(frames, ArpParams::default().attempts);
    }
}
