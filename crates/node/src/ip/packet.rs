//! Parsing packets: every buffer has room for an Ethernet header in front of the packet.

use smoltcp::wire::{EthernetAddress, EthernetFrame, EthernetProtocol, Ipv4Packet};
use std::net::Ipv4Addr;

/// Octets of an Ethernet header.
pub(super) const ETHERNET_HEADER: usize = 14;

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

/// Checks an IPv4 header and its source address, and cuts padding off. Returns the destination if all checks pass.
pub(super) fn check(frame: &mut Vec<u8>) -> Option<Ipv4Addr> {
    let packet = Ipv4Packet::new_checked(frame.get(ETHERNET_HEADER..)?).ok()?;
    if packet.version() != 4 || packet.header_len() < 20 || !packet.verify_checksum() {
        return None;
    }
    if class(packet.src_addr()) != Class::Unicast {
        return None;
    }
    let destination = packet.dst_addr();
    let length = ETHERNET_HEADER + usize::from(packet.total_len());
    frame.truncate(length);
    Some(destination)
}

/// Writes the Ethernet header.
pub(super) fn address(frame: &mut [u8], to: [u8; 6], from: [u8; 6], what: EthernetProtocol) {
    let mut frame = EthernetFrame::new_unchecked(frame);
    frame.set_dst_addr(EthernetAddress(to));
    frame.set_src_addr(EthernetAddress(from));
    frame.set_ethertype(what);
}
