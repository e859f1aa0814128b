//! ICMP messages of a router: echo replies and errors (RFC 792, RFC 1812 §4.3).

use super::packet::{Class, ETHERNET_HEADER, class};
use aerostat_proto::Instant;
use smoltcp::wire::{Icmpv4Message, Icmpv4Packet, IpProtocol, Ipv4Packet};
use std::net::Ipv4Addr;

const IP_HEADER: usize = 20;
const ICMP_HEADER: usize = 8;
/// Largest error message, octets, which limits the quoted part of the packet (RFC 1812 §4.3.2.3).
const MAX_ERROR: usize = 576;
/// Errors per second (RFC 1812 §4.3.2.8).
const ERRORS_PER_SECOND: u32 = 100;

/// An ICMP error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    TimeExceeded,
    NetworkUnreachable,
    HostUnreachable,
    ProtocolUnreachable,
    PortUnreachable,
    /// With the MTU (RFC 1191).
    TooBig(usize),
}

/// Limits errors to [`ERRORS_PER_SECOND`].
#[derive(Debug, Default)]
pub(super) struct Limiter {
    second: u64,
    sent: u32,
}

impl Limiter {
    pub(super) fn allows(&mut self, now: Instant) -> bool {
        let second = now.as_nanos() / 1_000_000_000;
        if second != self.second {
            *self = Self { second, sent: 0 };
        }
        self.sent += 1;
        self.sent <= ERRORS_PER_SECOND
    }
}

/// The reply to a complete and correct echo request.
pub(super) fn echo_reply(packet: &Ipv4Packet<&[u8]>) -> Option<Vec<u8>> {
    if packet.next_header() != IpProtocol::Icmp || packet.more_frags() || packet.frag_offset() != 0
    {
        return None;
    }
    let request = Icmpv4Packet::new_checked(packet.payload()).ok()?;
    if request.msg_type() != Icmpv4Message::EchoRequest || !request.verify_checksum() {
        return None;
    }
    let length = packet.payload().len();
    let mut frame = header(packet.dst_addr(), packet.src_addr(), length);
    frame.extend_from_slice(packet.payload());
    let mut reply = Icmpv4Packet::new_unchecked(&mut frame[ETHERNET_HEADER + IP_HEADER..]);
    reply.set_msg_type(Icmpv4Message::EchoReply);
    reply.fill_checksum();
    Some(frame)
}

/// True if an error may be sent about this packet: not about errors or later fragments, and not from or to a group. The
/// router has already checked that the packet came as a link-layer unicast.
pub(super) fn may_complain(frame: &[u8]) -> bool {
    let packet = Ipv4Packet::new_unchecked(&frame[ETHERNET_HEADER..]);
    let plain = class(packet.src_addr()) == Class::Unicast
        && !matches!(
            class(packet.dst_addr()),
            Class::Multicast | Class::Broadcast
        )
        && packet.frag_offset() == 0;
    let is_query = match packet.next_header() {
        IpProtocol::Icmp => packet.payload().first().is_some_and(|kind| {
            matches!(
                Icmpv4Message::from(*kind),
                Icmpv4Message::EchoRequest
                    | Icmpv4Message::EchoReply
                    | Icmpv4Message::Timestamp
                    | Icmpv4Message::TimestampReply
            )
        }),
        _ => true,
    };
    plain && is_query
}

/// An error about the packet in `frame`, sent from the address `from`.
pub(super) fn error(frame: &[u8], answer: Answer, from: Ipv4Addr) -> Vec<u8> {
    let about = &frame[ETHERNET_HEADER..];
    let quoted = &about[..about.len().min(MAX_ERROR - IP_HEADER - ICMP_HEADER)];
    let source = Ipv4Packet::new_unchecked(about).src_addr();
    let mut reply = header(from, source, ICMP_HEADER + quoted.len());
    let (kind, code) = match answer {
        Answer::TimeExceeded => (11, 0),
        Answer::NetworkUnreachable => (3, 0),
        Answer::HostUnreachable => (3, 1),
        Answer::ProtocolUnreachable => (3, 2),
        Answer::PortUnreachable => (3, 3),
        Answer::TooBig(_) => (3, 4),
    };
    let mtu = match answer {
        Answer::TooBig(mtu) => u16::try_from(mtu).unwrap_or(u16::MAX),
        _ => 0,
    };
    reply.extend_from_slice(&[kind, code, 0, 0, 0, 0]);
    reply.extend_from_slice(&mtu.to_be_bytes());
    reply.extend_from_slice(quoted);
    Icmpv4Packet::new_unchecked(&mut reply[ETHERNET_HEADER + IP_HEADER..]).fill_checksum();
    reply
}

/// Room for an Ethernet header, then an IPv4 header for `length` octets of ICMP; its checksum comes
/// later.
fn header(from: Ipv4Addr, to: Ipv4Addr, length: usize) -> Vec<u8> {
    let mut frame = Vec::with_capacity(ETHERNET_HEADER + IP_HEADER + length);
    frame.resize(ETHERNET_HEADER + IP_HEADER, 0);
    let mut packet = Ipv4Packet::new_unchecked(&mut frame[ETHERNET_HEADER..]);
    packet.set_version(4);
    packet.set_header_len(IP_HEADER as u8);
    // A reply is no longer than its request, an error no longer than MAX_ERROR.
    packet.set_total_len((IP_HEADER + length) as u16);
    packet.set_hop_limit(64);
    packet.set_next_header(IpProtocol::Icmp);
    packet.set_src_addr(from);
    packet.set_dst_addr(to);
    frame
}
