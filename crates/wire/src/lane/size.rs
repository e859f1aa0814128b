//! LAN type and maximum frame size as one-octet codes.

use core::fmt;

/// Largest AAL5 SDU on control connections, octets. Source: LUNI 1.0 §3.3.
pub const CONTROL_SDU: u16 = 1516;

/// LAN type (C2): 0 unspecified, 1 Ethernet/802.3, 2 token ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct LanType(pub u8);

impl LanType {
    /// Any type.
    pub const UNSPECIFIED: Self = Self(0);
    /// Ethernet / IEEE 802.3.
    pub const ETHERNET: Self = Self(1);
    /// IEEE 802.5.
    pub const TOKEN_RING: Self = Self(2);
}

impl fmt::Display for LanType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("unspecified"),
            1 => f.write_str("ethernet"),
            2 => f.write_str("token ring"),
            other => write!(f, "LAN type {other}"),
        }
    }
}

/// Maximum data frame size (C3) as its code: 0 unspecified, 1 to 4, and 5 in LANE v2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct MaxFrameSize(pub u8);

impl MaxFrameSize {
    /// Any size.
    pub const UNSPECIFIED: Self = Self(0);
    /// 1516 octets: Ethernet with a 1500-octet MTU.
    pub const S1516: Self = Self(1);
    /// 4544 octets.
    pub const S4544: Self = Self(2);
    /// 9234 octets: MTU 9218.
    pub const S9234: Self = Self(3);
    /// 18190 octets.
    pub const S18190: Self = Self(4);
    /// 1580 octets (v2).
    pub const S1580: Self = Self(5);

    /// Largest AAL5 SDU of a data frame without LLC multiplexing, octets; `None` if unspecified or unknown.
    #[must_use]
    pub const fn octets(self) -> Option<u16> {
        match self.0 {
            1 => Some(1516),
            2 => Some(4544),
            3 => Some(9234),
            4 => Some(18190),
            5 => Some(1580),
            _ => None,
        }
    }
    /// The same; 1516, the size of Ethernet, if unspecified or unknown.
    #[must_use]
    pub const fn sdu(self) -> u16 {
        match self.octets() {
            Some(octets) => octets,
            None => 1516,
        }
    }
    /// The code whose size is exactly `octets`.
    #[must_use]
    pub const fn from_octets(octets: u16) -> Option<Self> {
        match octets {
            1516 => Some(Self::S1516),
            4544 => Some(Self::S4544),
            9234 => Some(Self::S9234),
            18190 => Some(Self::S18190),
            1580 => Some(Self::S1580),
            _ => None,
        }
    }
    /// Largest IP packet in an Ethernet frame of this size: the frame without 2 octets of LECID and 14 of Ethernet
    /// header.
    #[must_use]
    pub const fn mtu(self) -> Option<u16> {
        match self.octets() {
            Some(octets) => Some(octets - 16),
            None => None,
        }
    }
}

impl fmt::Display for MaxFrameSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.octets() {
            Some(octets) => write!(f, "{octets}"),
            None if self.0 == 0 => f.write_str("unspecified"),
            None => write!(f, "size code {}", self.0),
        }
    }
}
