//! The Ethernet side of an embedded host: routes, neighbours, and packets that wait for ARP.

use super::StackConfig;
use crate::ip::arp::{self, Own};
use crate::ip::neighbours::{ArpEvent, ArpParams, NeighbourCounters, NeighbourView, Neighbours};
use crate::ip::packet::{self, ETHERNET_HEADER};
use crate::ip::router::RouterInterface;
use crate::ip::routes::{RouteResult, Routes};
use aerostat_proto::{Instant, Refused, Trace};
use smoltcp::wire::{EthernetAddress, EthernetProtocol, Ipv4Packet};
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
    Frame(Vec<u8>),
    /// A packet with an Ethernet header.
    Discarded(Place, Vec<u8>),
    Trace(Trace),
}

/// The Ethernet side, see the documentation of this module. Packets have room for an Ethernet header in front.
pub(super) struct Link {
    own: Own,
    routes: Routes,
    neighbours: Neighbours<Vec<u8>>,
    output: VecDeque<LinkOutput>,
}

impl Link {
    pub(super) fn set_arp(&mut self, params: ArpParams) {
        self.neighbours.set_params(params);
    }

    pub(super) fn new(config: &StackConfig) -> Result<Self, Refused> {
        let interface = RouterInterface {
            name: config.name.clone(),
            mac: config.mac,
            address: config.address,
            prefix: config.prefix,
            mtu: config.mtu,
        };
        let mut neighbours = Neighbours::new(ArpParams::default());
        for (address, mac) in &config.neighbours {
            let near = packet::in_subnet(*address, config.address, config.prefix);
            if !near || !EthernetAddress(*mac).is_unicast() || *mac == [0; 6] {
                return Err(Refused(
                    "a neighbour has an address on the subnet and a unicast hardware address",
                ));
            }
            neighbours.fix(*address, *mac);
        }
        Ok(Self {
            own: Own {
                mac: config.mac,
                address: config.address,
                prefix: config.prefix,
            },
            routes: Routes::new(&[interface], &config.routes)?,
            neighbours,
            output: VecDeque::new(),
        })
    }

    /// Sends a packet, at once or when its neighbour has answered. A packet for the host itself is returned.
    pub(super) fn send(&mut self, frame: Vec<u8>, now: Instant) -> Option<Vec<u8>> {
        // smoltcp made the packet, so it is valid.
        let to = Ipv4Packet::new_unchecked(&frame[ETHERNET_HEADER..]).dst_addr();
        let hop = match self.routes.lookup(to) {
            RouteResult::Local { .. } => return Some(frame),
            RouteResult::Broadcast => {
                self.transmit([0xff; 6], frame);
                return None;
            }
            RouteResult::Multicast => {
                self.transmit(group(to), frame);
                return None;
            }
            RouteResult::NoRoute => {
                self.discard(Place::Route, frame);
                return None;
            }
            RouteResult::Connected { .. } => to,
            RouteResult::Via { next_hop, .. } => next_hop,
        };
        if let Some(mac) = self.neighbours.lookup(hop) {
            self.transmit(mac, frame);
        } else if let Err(frame) = self.neighbours.wait(hop, frame, now) {
            self.discard(Place::Arp, frame);
        }
        self.drain();
        None
    }

    fn transmit(&mut self, to: [u8; 6], mut frame: Vec<u8>) {
        packet::address(&mut frame, to, self.own.mac, EthernetProtocol::Ipv4);
        self.output.push_back(LinkOutput::Frame(frame));
    }

    fn discard(&mut self, place: Place, mut frame: Vec<u8>) {
        packet::address(&mut frame, [0; 6], self.own.mac, EthernetProtocol::Ipv4);
        self.output.push_back(LinkOutput::Discarded(place, frame));
    }

    /// Handles an ARP packet; false if no host can have sent it.
    pub(super) fn hear_arp(&mut self, payload: &[u8], now: Instant) -> bool {
        let heard = arp::hear(&mut self.neighbours, self.own, payload, now);
        if let Ok(Some(reply)) = &heard {
            self.output.push_back(LinkOutput::Frame(reply.clone()));
        }
        self.drain();
        heard.is_ok()
    }

    pub(super) fn timeout(&mut self, now: Instant) {
        self.neighbours.timeout(now);
        self.drain();
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.neighbours.deadline()
    }

    pub(super) fn poll_output(&mut self) -> Option<LinkOutput> {
        self.output.pop_front()
    }

    pub(super) fn arp(&self) -> (Vec<NeighbourView>, NeighbourCounters) {
        (
            self.neighbours.views().collect(),
            self.neighbours.counters(),
        )
    }

    /// Handles events of the table.
    fn drain(&mut self) {
        while let Some(event) = self.neighbours.poll_event() {
            match event {
                ArpEvent::Ask { address, known } => {
                    let request = arp::request(self.own, known, address);
                    self.output.push_back(LinkOutput::Frame(request));
                }
                ArpEvent::Failed { address } => {
                    let text = format!("{address} does not answer ARP");
                    let trace = Trace::detail("host.arp.failed", text).with("address", address);
                    self.output.push_back(LinkOutput::Trace(trace));
                }
                ArpEvent::Release {
                    job,
                    mac: Some(mac),
                } => self.transmit(mac, job),
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
