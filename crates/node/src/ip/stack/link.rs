//! The Ethernet side of an embedded host: routes, neighbours, and packets that wait for ARP.

use super::{Stack, StackConfig};
use crate::ip::arp::{self, Own};
use crate::ip::neighbours::{ArpEvent, ArpParams, NeighbourCounters, NeighbourView, Neighbours};
use crate::ip::packet::{self, IPV4};
use crate::ip::router::RouterInterface;
use crate::ip::routes::{RouteResult, Routes, StaticRoute};
use aerostat_proto::{Instant, Refused, Trace};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// Where a host drops a packet of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// ARP: the neighbour does not answer, or too many packets wait for it already.
    Arp,
    /// There is no route to the destination.
    Route,
}

impl Place {
    /// The place in results: `arp` or `route`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Arp => "arp",
            Self::Route => "route",
        }
    }
}

/// Outputs of the Ethernet side.
pub(super) enum LinkOutput {
    /// A frame of the interface with this number.
    Frame(usize, Vec<u8>),
    /// A packet with an Ethernet header.
    Discarded(Place, Vec<u8>),
    Trace(Trace),
}

/// The Ethernet side, see the documentation of this module. Packets have room for an Ethernet header in front.
pub(in crate::ip) struct Link {
    /// The interfaces, by number.
    ports: Vec<Port>,
    routes: Routes,
    output: VecDeque<LinkOutput>,
}

/// One interface: its addresses, and its neighbours with the packets that wait for them.
struct Port {
    own: Own,
    /// Largest IP datagram, octets.
    mtu: usize,
    neighbours: Neighbours<Vec<u8>>,
}

impl Stack {
    /// Replaces the static routes.
    ///
    /// # Errors
    /// If a route is not possible; the routes stay as they were.
    pub fn set_routes(&mut self, routes: &[StaticRoute]) -> Result<(), Refused> {
        self.link.set_routes(routes)
    }
}

impl Link {
    pub(super) fn set_arp(&mut self, params: ArpParams) {
        for port in &mut self.ports {
            port.neighbours.set_params(params);
        }
    }

    pub(super) fn new(config: &StackConfig) -> Result<Self, Refused> {
        let interfaces = config.interfaces().map(|itf| RouterInterface {
            name: config.name.clone(),
            mac: itf.mac,
            address: itf.address,
            prefix: itf.prefix,
            mtu: itf.mtu,
        });
        let interfaces: Vec<_> = interfaces.collect();
        let ports = config.interfaces().map(|itf| Port {
            own: Own {
                mac: itf.mac,
                address: itf.address,
                prefix: itf.prefix,
            },
            mtu: itf.mtu,
            neighbours: Neighbours::new(ArpParams::default()),
        });
        let mut ports: Vec<Port> = ports.collect();
        for (address, mac) in &config.neighbours {
            let near =
                |port: &&mut Port| packet::in_subnet(*address, port.own.address, port.own.prefix);
            let good = packet::is_station(*mac);
            let Some(port) = ports.iter_mut().find(near).filter(|_| good) else {
                return Err(Refused(
                    "a neighbour has an address on a subnet of the host and a unicast hardware address",
                ));
            };
            port.neighbours.fix(*address, *mac);
        }
        Ok(Self {
            ports,
            routes: Routes::new(&interfaces, &config.routes)?,
            output: VecDeque::new(),
        })
    }

    /// Replaces the static routes.
    pub(super) fn set_routes(&mut self, routes: &[StaticRoute]) -> Result<(), Refused> {
        let interfaces = self.ports.iter().map(|port| RouterInterface {
            name: String::new(),
            mac: port.own.mac,
            address: port.own.address,
            prefix: port.own.prefix,
            mtu: port.mtu,
        });
        let interfaces: Vec<_> = interfaces.collect();
        self.routes.replace(&interfaces, routes).map(drop)
    }

    /// Hardware address of an interface.
    pub(super) fn mac(&self, interface: usize) -> Option<[u8; 6]> {
        self.ports.get(interface).map(|port| port.own.mac)
    }

    /// Largest IP datagram towards an address: that of the interface that sends it, and the largest of all to the host
    /// itself.
    pub(in crate::ip) fn mtu_towards(&self, to: Ipv4Addr) -> usize {
        let interface = self.routes.lookup(to).next_hop(to);
        let port = interface.and_then(|(interface, _)| self.ports.get(interface));
        let most = || self.ports.iter().map(|port| port.mtu).max();
        port.map(|port| port.mtu).or_else(most).unwrap_or(0)
    }

    /// The address of the host from which it sends to another one: that on the same subnet, or the first one.
    pub(in crate::ip) fn address_towards(&self, to: Ipv4Addr) -> Option<Ipv4Addr> {
        let port = self.ports.get(self.nearest(to))?;
        Some(port.own.address)
    }

    /// Sends a packet, at once or when its neighbour has answered. A packet for the host itself is returned.
    pub(super) fn send(&mut self, frame: Vec<u8>, now: Instant) -> Option<Vec<u8>> {
        // The host made the packet, so it is valid.
        let to = packet::view(&frame)?.destination();
        let hop = match self.routes.lookup(to) {
            RouteResult::Local { .. } => return Some(frame),
            RouteResult::Broadcast => {
                self.transmit(self.nearest(to), [0xff; 6], frame);
                return None;
            }
            RouteResult::Multicast => {
                self.transmit(0, group(to), frame);
                return None;
            }
            RouteResult::NoRoute => {
                self.discard(Place::Route, frame);
                return None;
            }
            RouteResult::Connected { interface } => (interface, to),
            RouteResult::Via {
                interface,
                next_hop,
            } => (interface, next_hop),
        };
        let (interface, hop) = hop;
        let Some(port) = self.ports.get_mut(interface) else {
            self.discard(Place::Route, frame);
            return None;
        };
        if let Some(mac) = port.neighbours.lookup(hop) {
            self.transmit(interface, mac, frame);
        } else if let Err(frame) = port.neighbours.wait(hop, frame, now) {
            self.discard(Place::Arp, frame);
        }
        self.drain();
        None
    }

    /// The interface whose subnet this address is on; the first one for the limited broadcast.
    fn nearest(&self, to: Ipv4Addr) -> usize {
        let on = |port: &Port| packet::in_subnet(to, port.own.address, port.own.prefix);
        self.ports.iter().position(on).unwrap_or(0)
    }

    fn transmit(&mut self, interface: usize, to: [u8; 6], mut frame: Vec<u8>) {
        let from = self.mac(interface).unwrap_or_default();
        packet::address(&mut frame, to, from, IPV4);
        self.output.push_back(LinkOutput::Frame(interface, frame));
    }

    fn discard(&mut self, place: Place, mut frame: Vec<u8>) {
        let from = self.mac(0).unwrap_or_default();
        packet::address(&mut frame, [0; 6], from, IPV4);
        self.output.push_back(LinkOutput::Discarded(place, frame));
    }

    /// Handles an ARP packet; false if no host can have sent it.
    pub(super) fn hear_arp(&mut self, interface: usize, payload: &[u8], now: Instant) -> bool {
        let Some(port) = self.ports.get_mut(interface) else {
            return false;
        };
        let heard = arp::hear(&mut port.neighbours, port.own, payload, now);
        if let Ok(Some(reply)) = &heard {
            let reply = LinkOutput::Frame(interface, reply.clone());
            self.output.push_back(reply);
        }
        self.drain();
        heard.is_ok()
    }

    pub(super) fn timeout(&mut self, now: Instant) {
        for port in &mut self.ports {
            port.neighbours.timeout(now);
        }
        self.drain();
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let all = self.ports.iter();
        all.filter_map(|port| port.neighbours.deadline()).min()
    }

    pub(super) fn poll_output(&mut self) -> Option<LinkOutput> {
        self.output.pop_front()
    }

    /// The neighbours of an interface, and their counters.
    pub(super) fn arp(&self, interface: usize) -> Option<(Vec<NeighbourView>, NeighbourCounters)> {
        let neighbours = &self.ports.get(interface)?.neighbours;
        Some((neighbours.views().collect(), neighbours.counters()))
    }

    /// Handles events of the tables.
    fn drain(&mut self) {
        for interface in 0..self.ports.len() {
            self.drain_port(interface);
        }
    }

    fn drain_port(&mut self, interface: usize) {
        while let Some(port) = self.ports.get_mut(interface)
            && let Some(event) = port.neighbours.poll_event()
        {
            match event {
                ArpEvent::Ask { address, known } => {
                    let request = arp::request(port.own, known, address);
                    self.output.push_back(LinkOutput::Frame(interface, request));
                }
                ArpEvent::Failed { address } => {
                    let text = format!("{address} does not answer ARP");
                    let trace = Trace::detail("host.arp.failed", text).with("address", address);
                    self.output.push_back(LinkOutput::Trace(trace));
                }
                ArpEvent::Release {
                    job,
                    mac: Some(mac),
                } => self.transmit(interface, mac, job),
                ArpEvent::Release { job, mac: None } | ArpEvent::Overflow(job) => {
                    self.discard(Place::Arp, job);
                }
                // A host has no MPOA server that asks questions.
                ArpEvent::Changed { .. } | ArpEvent::Answer { .. } => {}
            }
        }
    }
}

/// The hardware address of a group (RFC 1112 §6.4).
fn group(address: Ipv4Addr) -> [u8; 6] {
    let [_, b, c, d] = address.octets();
    [0x01, 0x00, 0x5e, b & 0x7f, c, d]
}
