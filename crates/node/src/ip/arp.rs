//! ARP packets, and their effect on an interface (RFC 826, RFC 5227).

use super::neighbours::{Neighbours, Waiting};
use super::packet::{self, Class, ETHERNET_HEADER, address, class, in_subnet, is_station};
use aerostat_proto::Instant;
use std::net::Ipv4Addr;

/// Types and lengths of the addresses: Ethernet and IPv4.
const ETHERNET_AND_IPV4: [u8; 6] = [0, 1, 8, 0, 6, 4];
const REQUEST: u8 = 1;
const REPLY: u8 = 2;

/// The addresses of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Own {
    pub(super) mac: [u8; 6],
    pub(super) address: Ipv4Addr,
    /// Prefix length of the subnet, 0–32.
    pub(super) prefix: u8,
}

/// An ARP packet that no host can have sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Impossible;

/// Handles a received ARP packet: updates the table, and returns the frame of the answer if there is an answer.
///
/// RFC 826: only a packet to this interface may create an entry; other packets may change an existing one. A packet has
/// no effect if its sender is not on the subnet, or uses the interface's own address. A probe (RFC 5227: the sender has
/// no address yet) for the interface's address is answered.
///
/// # Errors
/// If the packet is malformed or its sender is impossible.
pub(super) fn hear<J: Waiting>(
    table: &mut Neighbours<J>,
    own: Own,
    payload: &[u8],
    now: Instant,
) -> Result<Option<Vec<u8>>, Impossible> {
    let arp = parse(payload).ok_or(Impossible)?;
    let for_us = arp.target == own.address;
    if !arp.sender.is_unspecified() {
        if !in_subnet(arp.sender, own.address, own.prefix) || arp.sender == own.address {
            return Ok(None);
        }
        table.learn(arp.sender, arp.sender_mac, for_us, now);
    }
    let answered = arp.is_request && for_us;
    Ok(answered.then(|| reply(own.mac, own.address, arp.sender_mac, arp.sender)))
}

/// A decoded ARP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arp {
    is_request: bool,
    sender: Ipv4Addr,
    sender_mac: [u8; 6],
    target: Ipv4Addr,
}

/// Decodes a request or reply from a possible sender. The sender of a request may be without an IP address.
fn parse(payload: &[u8]) -> Option<Arp> {
    let (head, rest) = payload.split_first_chunk::<8>()?;
    let (sender_mac, rest) = rest.split_first_chunk::<6>()?;
    let (sender, rest) = rest.split_first_chunk::<4>()?;
    let target = rest.get(6..)?.first_chunk::<4>()?;
    let is_request = match (head.first_chunk::<6>()?, head[7]) {
        (&ETHERNET_AND_IPV4, REQUEST) if head[6] == 0 => true,
        (&ETHERNET_AND_IPV4, REPLY) if head[6] == 0 => false,
        _ => return None,
    };
    let sender = Ipv4Addr::from(*sender);
    let placed = class(sender) == Class::Unicast || is_request && sender.is_unspecified();
    (placed && is_station(*sender_mac)).then_some(Arp {
        is_request,
        sender,
        sender_mac: *sender_mac,
        target: Ipv4Addr::from(*target),
    })
}

/// The frame of a request, by broadcast or to the address known so far.
pub(super) fn request(own: Own, known: Option<[u8; 6]>, target: Ipv4Addr) -> Vec<u8> {
    frame(
        REQUEST,
        (own.mac, own.address),
        (known.unwrap_or([0; 6]), target),
        known,
    )
}

/// The frame of a reply.
fn reply(mac: [u8; 6], own: Ipv4Addr, to: [u8; 6], asker: Ipv4Addr) -> Vec<u8> {
    frame(REPLY, (mac, own), (to, asker), Some(to))
}

fn frame(
    operation: u8,
    source: ([u8; 6], Ipv4Addr),
    target: ([u8; 6], Ipv4Addr),
    to: Option<[u8; 6]>,
) -> Vec<u8> {
    let mut frame = vec![0; ETHERNET_HEADER];
    address(&mut frame, to.unwrap_or([0xff; 6]), source.0, packet::ARP);
    frame.extend(ETHERNET_AND_IPV4);
    frame.extend([0, operation]);
    for (mac, address) in [source, target] {
        frame.extend(mac);
        frame.extend(address.octets());
    }
    frame
}
