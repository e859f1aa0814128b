//! Frames and packets of hosts and routers: every buffer has room for an Ethernet header in front of the packet.

use aerostat_wire::ipv4::{HEADER_LEN, Ipv4View};
use aerostat_wire::nhrp::internet_checksum;
use std::net::Ipv4Addr;

/// Octets of an Ethernet header.
pub(super) const ETHERNET_HEADER: usize = 14;
/// Type of frames with IPv4 packets.
pub(super) const IPV4: u16 = 0x0800;
/// Type of frames with ARP packets.
pub(super) const ARP: u16 = 0x0806;
/// Type of frames with IPv6 packets.
pub(super) const IPV6: u16 = 0x86dd;

/// An Ethernet frame with its header read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    pub(super) to: [u8; 6],
    /// Type of the payload.
    pub(super) kind: u16,
    pub(super) payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The frame, if its header is whole.
    pub(super) fn of(bytes: &'a [u8]) -> Option<Self> {
        let (to, rest) = bytes.split_first_chunk::<6>()?;
        let (_from, rest) = rest.split_first_chunk::<6>()?;
        let (kind, payload) = rest.split_first_chunk::<2>()?;
        Some(Self {
            to: *to,
            kind: u16::from_be_bytes(*kind),
            payload,
        })
    }
}

/// True if a hardware address is a group's, or that of all.
pub(super) const fn is_group(mac: [u8; 6]) -> bool {
    mac[0] & 1 != 0
}

/// True if a hardware address can be that of a station.
pub(super) fn is_station(mac: [u8; 6]) -> bool {
    !is_group(mac) && mac != [0; 6]
}

/// The view of the packet behind an Ethernet header.
pub(super) fn view(frame: &[u8]) -> Option<Ipv4View<'_>> {
    Ipv4View::new(frame.get(ETHERNET_HEADER..)?)
}

/// Writes the checksum of an IPv4 header.
pub(super) fn seal(packet: &mut [u8]) {
    let Some(length) = packet.first().map(|first| usize::from(first & 0x0f) * 4) else {
        return;
    };
    if let Some(header) = packet.get_mut(..length)
        && header.len() >= HEADER_LEN
    {
        header[10..12].fill(0);
        let sum = internet_checksum(header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Gives an IPv4 packet its identification, and its checksum.
pub(super) fn number(packet: &mut [u8], ident: u16) {
    if let Some(place) = packet.get_mut(4..6) {
        place.copy_from_slice(&ident.to_be_bytes());
    }
    seal(packet);
}

/// True if a packet may not be fragmented.
pub(super) fn dont_fragment(packet: &[u8]) -> bool {
    packet.get(6).is_some_and(|flags| flags & 0x40 != 0)
}

/// Class of a destination address, which decides what a router may do with it, regardless of its routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Unicast,
    Multicast,
    Broadcast,
    /// This network, loopback, link-local, reserved: RFC 1812 §5.3.7, RFC 3927 §2.7.
    Never,
}

pub(super) fn class(address: Ipv4Addr) -> Class {
    if address.is_broadcast() {
        Class::Broadcast
    } else if address.is_multicast() {
        Class::Multicast
    } else if matches!(address.octets()[0], 0 | 127 | 240..) || address.is_link_local() {
        Class::Never
    } else {
        Class::Unicast
    }
}

/// True if two addresses are in one subnet.
pub(super) fn in_subnet(a: Ipv4Addr, b: Ipv4Addr, prefix: u8) -> bool {
    (a.to_bits() ^ b.to_bits()) & mask(prefix) == 0
}

/// The netmask of a prefix length up to 32.
pub(super) fn mask(prefix: u8) -> u32 {
    u32::MAX
        .checked_shl(32 - u32::from(prefix.min(32)))
        .unwrap_or(0)
}

/// A packet without its payload of `length` octets: room for an Ethernet header, then an IPv4 header. Identification
/// and checksum follow when the packet is sent.
pub(super) fn begin(
    from: Ipv4Addr,
    to: Ipv4Addr,
    protocol: u8,
    time_to_live: u8,
    length: usize,
) -> Vec<u8> {
    // Payloads are limited where they are made.
    let total = u16::try_from(HEADER_LEN + length).unwrap_or(u16::MAX);
    let mut packet = Vec::with_capacity(ETHERNET_HEADER + HEADER_LEN + length);
    packet.resize(ETHERNET_HEADER, 0);
    packet.extend([0x45, 0]);
    packet.extend(total.to_be_bytes());
    // No identification; not to be fragmented.
    packet.extend([0, 0, 0x40, 0, time_to_live, protocol, 0, 0]);
    packet.extend(from.octets());
    packet.extend(to.octets());
    packet
}

/// Says that the sender of a packet can hear of congestion: ECT(0). Source: RFC 3168 §5.
pub(super) fn set_capable(packet: &mut [u8]) {
    if let Some(class) = packet.get_mut(ETHERNET_HEADER + 1) {
        *class |= 2;
    }
}

/// Checks an IPv4 header and its source address, and cuts padding off. Returns the destination if all checks pass.
pub(super) fn check(frame: &mut Vec<u8>) -> Option<Ipv4Addr> {
    let packet = view(frame)?;
    if !packet.checksum_ok() || class(packet.source()) != Class::Unicast {
        return None;
    }
    let destination = packet.destination();
    let length = ETHERNET_HEADER + packet.packet().len();
    frame.truncate(length);
    Some(destination)
}

/// Writes the Ethernet header of a frame that has room for it.
pub(super) fn address(frame: &mut [u8], to: [u8; 6], from: [u8; 6], kind: u16) {
    if let Some(header) = frame.first_chunk_mut::<ETHERNET_HEADER>() {
        header[..6].copy_from_slice(&to);
        header[6..12].copy_from_slice(&from);
        header[12..].copy_from_slice(&kind.to_be_bytes());
    }
}
