//! ARP packets, and their effect on an interface (RFC 826, RFC 5227).

use super::neighbours::{Neighbours, Waiting};
use super::packet::{Class, ETHERNET_HEADER, address, class, in_subnet};
use aerostat_proto::Instant;
use smoltcp::wire::{ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetProtocol};
use std::net::Ipv4Addr;

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
    let packet = ArpPacket::new_checked(payload).ok()?;
    let ArpRepr::EthernetIpv4 {
        operation,
        source_hardware_addr,
        source_protocol_addr,
        target_protocol_addr,
        ..
    } = ArpRepr::parse(&packet).ok()?
    else {
        return None;
    };
    let is_request = match operation {
        ArpOperation::Request => true,
        ArpOperation::Reply => false,
        ArpOperation::Unknown(_) => return None,
    };
    let placed = class(source_protocol_addr) == Class::Unicast
        || is_request && source_protocol_addr.is_unspecified();
    let possible = placed && source_hardware_addr.is_unicast() && source_hardware_addr.0 != [0; 6];
    possible.then_some(Arp {
        is_request,
        sender: source_protocol_addr,
        sender_mac: source_hardware_addr.0,
        target: target_protocol_addr,
    })
}

/// The frame of a request, by broadcast or to the address known so far.
pub(super) fn request(own: Own, known: Option<[u8; 6]>, target: Ipv4Addr) -> Vec<u8> {
    frame(
        ArpOperation::Request,
        (own.mac, own.address),
        (known.unwrap_or([0; 6]), target),
        known,
    )
}

/// The frame of a reply.
fn reply(mac: [u8; 6], own: Ipv4Addr, to: [u8; 6], asker: Ipv4Addr) -> Vec<u8> {
    frame(ArpOperation::Reply, (mac, own), (to, asker), Some(to))
}

fn frame(
    operation: ArpOperation,
    source: ([u8; 6], Ipv4Addr),
    target: ([u8; 6], Ipv4Addr),
    to: Option<[u8; 6]>,
) -> Vec<u8> {
    let repr = ArpRepr::EthernetIpv4 {
        operation,
        source_hardware_addr: EthernetAddress(source.0),
        source_protocol_addr: source.1,
        target_hardware_addr: EthernetAddress(target.0),
        target_protocol_addr: target.1,
    };
    let mut frame = vec![0; ETHERNET_HEADER + repr.buffer_len()];
    address(
        &mut frame,
        to.unwrap_or([0xff; 6]),
        source.0,
        EthernetProtocol::Arp,
    );
    repr.emit(&mut ArpPacket::new_unchecked(&mut frame[ETHERNET_HEADER..]));
    frame
}
