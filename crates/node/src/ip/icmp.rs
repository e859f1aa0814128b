//! ICMP messages of hosts and routers: echo requests, replies and errors (RFC 792, RFC 1122 §3.2.2, RFC 1812 §4.3).

use super::packet::{Class, ETHERNET_HEADER, begin, class};
use aerostat_proto::Instant;
use aerostat_wire::ipv4::{HEADER_LEN, ICMP, Ipv4View};
use aerostat_wire::nhrp::internet_checksum;
use std::net::Ipv4Addr;

/// Time to live of messages (RFC 1700).
const TIME_TO_LIVE: u8 = 64;
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

/// Octets of IP header and ICMP header of a packet of a host or router.
const HEADERS: usize = ETHERNET_HEADER + HEADER_LEN;
const ECHO_REPLY: u8 = 0;
const ECHO_REQUEST: u8 = 8;
const TIMESTAMP: u8 = 13;
const TIMESTAMP_REPLY: u8 = 14;

/// An echo request or reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Echo<'a> {
    pub(super) is_request: bool,
    pub(super) ident: u16,
    pub(super) sequence: u16,
    pub(super) data: &'a [u8],
}

impl<'a> Echo<'a> {
    /// The request or reply in a whole packet, if it is correct.
    pub(super) fn of(packet: &Ipv4View<'a>) -> Option<Self> {
        let message = message(packet)?;
        let [kind @ (ECHO_REPLY | ECHO_REQUEST), 0, _, _, a, b, c, d] = *message.first_chunk()?
        else {
            return None;
        };
        (internet_checksum(message) == 0).then_some(Self {
            is_request: kind == ECHO_REQUEST,
            ident: u16::from_be_bytes([a, b]),
            sequence: u16::from_be_bytes([c, d]),
            data: message.get(ICMP_HEADER..)?,
        })
    }

    /// The packet of a request or reply.
    pub(super) fn packet(&self, from: Ipv4Addr, to: Ipv4Addr, time_to_live: u8) -> Vec<u8> {
        let length = ICMP_HEADER + self.data.len();
        let mut packet = begin(from, to, ICMP, time_to_live, length);
        let kind = if self.is_request {
            ECHO_REQUEST
        } else {
            ECHO_REPLY
        };
        packet.extend([kind, 0, 0, 0]);
        packet.extend(self.ident.to_be_bytes());
        packet.extend(self.sequence.to_be_bytes());
        packet.extend(self.data);
        fill_checksum(&mut packet);
        packet
    }
}

/// The ICMP message of a packet that is no fragment.
fn message<'a>(packet: &Ipv4View<'a>) -> Option<&'a [u8]> {
    let whole = packet.fragment_offset() == 0 && !packet.more_fragments();
    let message = packet.packet().get(packet.header_len()..)?;
    (packet.protocol() == ICMP && whole).then_some(message)
}

/// Writes the checksum of the message behind the headers.
fn fill_checksum(packet: &mut [u8]) {
    let sum = internet_checksum(packet.get(HEADERS..).unwrap_or_default());
    if let Some(place) = packet.get_mut(HEADERS + 2..HEADERS + 4) {
        place.copy_from_slice(&sum.to_be_bytes());
    }
}

/// The reply to a complete and correct echo request, from the address `from`.
pub(super) fn echo_reply(packet: &Ipv4View<'_>, from: Ipv4Addr) -> Option<Vec<u8>> {
    let request = Echo::of(packet).filter(|echo| echo.is_request)?;
    let reply = Echo {
        is_request: false,
        ..request
    };
    Some(reply.packet(from, packet.source(), TIME_TO_LIVE))
}

/// True if an error may be sent about this packet: not about errors or later fragments, and not from or to a group. The
/// router has already checked that the packet came as a link-layer unicast.
pub(super) fn may_complain(packet: &Ipv4View<'_>) -> bool {
    let plain = class(packet.source()) == Class::Unicast
        && !matches!(
            class(packet.destination()),
            Class::Multicast | Class::Broadcast
        )
        && packet.fragment_offset() == 0;
    let kind = packet.packet().get(packet.header_len());
    let is_query = packet.protocol() != ICMP
        || matches!(
            kind,
            Some(&(ECHO_REQUEST | ECHO_REPLY | TIMESTAMP | TIMESTAMP_REPLY))
        );
    plain && is_query
}

/// An error about a packet, sent from the address `from`.
pub(super) fn error(packet: &Ipv4View<'_>, answer: Answer, from: Ipv4Addr) -> Vec<u8> {
    let about = packet.packet();
    let quoted = &about[..about.len().min(MAX_ERROR - HEADER_LEN - ICMP_HEADER)];
    let length = ICMP_HEADER + quoted.len();
    let mut reply = begin(from, packet.source(), ICMP, TIME_TO_LIVE, length);
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
    fill_checksum(&mut reply);
    reply
}
