//! The fields that the data plane reads from packets of both versions of IP.

use super::flows::{Class, QosTable};
use aerostat_wire::MacAddr;
use aerostat_wire::ipv4::{Ipv4View, decrement_ttl};
use aerostat_wire::ipv6::{Ipv6View, decrement_hop_limit};
use aerostat_wire::mpoa::{FlowFilter, LLC_IPV4, LLC_IPV6};
use aerostat_wire::prefix::is_ordinary;
use core::net::IpAddr;

/// Octets of an Ethernet header.
const ETHERNET: usize = 14;

/// A packet whose fixed header is complete.
#[derive(Clone, Copy, Debug)]
pub(super) enum IpPacket<'a> {
    V4(Ipv4View<'a>),
    V6(Ipv6View<'a>),
}

impl<'a> IpPacket<'a> {
    pub(super) fn new(packet: &'a [u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            6 => Ipv6View::new(packet).map(Self::V6),
            _ => Ipv4View::new(packet).map(Self::V4),
        }
    }
    pub(super) fn source(&self) -> IpAddr {
        match self {
            Self::V4(view) => view.source().into(),
            Self::V6(view) => view.source().into(),
        }
    }
    pub(super) fn destination(&self) -> IpAddr {
        match self {
            Self::V4(view) => view.destination().into(),
            Self::V6(view) => view.destination().into(),
        }
    }
    /// Header and payload, without padding.
    pub(super) const fn octets(&self) -> &'a [u8] {
        match self {
            Self::V4(view) => view.packet(),
            Self::V6(view) => view.packet(),
        }
    }
    /// False if the packet must go through the router: options and extension headers, TTL or hop limit used up, group
    /// addresses, damage; for IPv6 also fragments and link-local addresses.
    pub(super) fn may_take_shortcut(&self) -> bool {
        let plain = match self {
            Self::V4(view) => view.ttl() > 1 && !view.has_options() && view.checksum_ok(),
            Self::V6(view) => {
                let source = view.source().into();
                view.hop_limit() > 1 && !view.has_extensions() && is_ordinary(source)
            }
        };
        plain && is_ordinary(self.destination())
    }
    /// The flow of the packet; `None` for IPv6.
    pub(super) fn flow(&self) -> Option<FlowFilter> {
        match self {
            Self::V4(view) => Some(FlowFilter::of(view)),
            Self::V6(_) => None,
        }
    }
    /// The QoS entry that the packet fits. Entries are for IPv4.
    pub(super) fn class(&self, entries: &QosTable) -> Class {
        self.flow().map_or((None, None), |flow| entries.class(flow))
    }
}

/// Decrements the TTL or hop limit; false if it is used up.
pub(super) fn hop(packet: &mut [u8]) -> bool {
    match packet.first().map(|octet| octet >> 4) {
        Some(6) => decrement_hop_limit(packet),
        _ => decrement_ttl(packet),
    }
}

/// An Ethernet II or 802.3/SNAP frame with an IP packet that is no group frame.
pub(super) struct LanFrame<'a> {
    pub(super) destination: MacAddr,
    /// Octets of the LAN header.
    pub(super) header: usize,
    pub(super) packet: IpPacket<'a>,
}

/// The frame, if it is as [`LanFrame`] says.
pub(super) fn of_frame(frame: &[u8]) -> Option<LanFrame<'_>> {
    let (mac, rest) = frame.split_first_chunk::<6>()?;
    let mac = MacAddr(*mac);
    let (kind, body) = rest.get(6..)?.split_first_chunk::<2>()?;
    let (six, llc, packet) = match u16::from_be_bytes(*kind) {
        0x0800 => (false, 0, body),
        0x86dd => (true, 0, body),
        length @ ..=1500 => {
            let body = body.get(..length.into())?;
            let of = |llc: &[u8; 8]| body.strip_prefix(llc);
            let four = of(&LLC_IPV4).map(|packet| (false, 8, packet));
            four.or_else(|| of(&LLC_IPV6).map(|packet| (true, 8, packet)))?
        }
        _ => return None,
    };
    let packet = IpPacket::new(packet)?;
    let right = matches!(packet, IpPacket::V6(_)) == six;
    (!mac.is_group() && right).then_some(LanFrame {
        destination: mac,
        header: ETHERNET + llc,
        packet,
    })
}
