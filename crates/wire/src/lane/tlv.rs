//! TLVs of control frames: type of 4 octets (an OUI and a number), length of 1, value.

use crate::{AtmAddress, Reader};
use core::fmt;

/// Type of a TLV: OUI in the upper three octets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TlvType(pub u32);

macro_rules! types {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        impl TlvType {
            $($(#[$doc])* pub const $name: Self = Self(0x00a0_3e00 | $number);)*
            /// The name of a known type.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

// Source: LUNI 2.0, its TLVs of LE_CONFIGURE; MPOA 1.1 annex F and §4.2 for those of MPOA.
types! {
    /// C7, seconds (2).
    CONTROL_TIMEOUT = 0x01, "control-timeout";
    /// C10, frames (2).
    MAX_UNKNOWN_COUNT = 0x02, "max-unknown-frame-count";
    /// C11, seconds (2).
    MAX_UNKNOWN_TIME = 0x03, "max-unknown-frame-time";
    /// C12, seconds (4).
    VCC_TIMEOUT = 0x04, "vcc-timeout";
    /// C13 (2).
    MAX_RETRY_COUNT = 0x05, "max-retry-count";
    /// C17, seconds (4).
    AGING_TIME = 0x06, "aging-time";
    /// C18, seconds (2).
    FORWARD_DELAY = 0x07, "forward-delay";
    /// C20, seconds (2).
    EXPECTED_ARP_TIME = 0x08, "expected-le-arp-time";
    /// C21, seconds (2).
    FLUSH_TIMEOUT = 0x09, "flush-timeout";
    /// C22, seconds (2).
    PATH_SWITCHING_DELAY = 0x0a, "path-switching-delay";
    /// C23 (2).
    LOCAL_SEGMENT = 0x0b, "local-segment-id";
    /// C24 (2).
    MULTICAST_SEND_TYPE = 0x0c, "multicast-send-vcc-type";
    /// C25, cells/s (4).
    MULTICAST_SEND_AVERAGE = 0x0d, "multicast-send-average-rate";
    /// C26, cells/s (4).
    MULTICAST_SEND_PEAK = 0x0e, "multicast-send-peak-rate";
    /// C28, seconds (2).
    CONNECTION_COMPLETION = 0x0f, "connection-completion-timer";
    /// Requests the next part of a long list.
    CONFIG_FRAGMENT = 0x10, "config-fragment-info";
    /// C36.
    LAYER3_ADDRESS = 0x11, "layer-3-address";
    /// C31 (4).
    ELAN_ID = 0x12, "elan-id";
    /// Service category (2).
    SERVICE_CATEGORY = 0x13, "service-category";
    /// MPC-p1, frames (2).
    MPC_P1 = 0x24, "mpc-p1";
    /// MPC-p2, seconds (2).
    MPC_P2 = 0x25, "mpc-p2";
    /// MPC-p3, list of protocols.
    MPC_P3 = 0x26, "mpc-p3";
    /// MPC-p4, seconds (2).
    MPC_P4 = 0x27, "mpc-p4";
    /// MPC-p5, seconds (2).
    MPC_P5 = 0x28, "mpc-p5";
    /// MPC-p6, seconds (2).
    MPC_P6 = 0x29, "mpc-p6";
    /// MPOA device type: see [`crate::mpoa::DeviceType`].
    DEVICE_TYPE = 0x2a, "mpoa-device-type";
    /// Address for LLC-multiplexed calls (20).
    LLC_MUX_ADDRESS = 0x2b, "llc-muxed-atm-address";
    /// Larger frames are allowed with frame size code 1 (0).
    X5_ADJUSTMENT = 0x2c, "x5-adjustment";
    /// C35 (20).
    PREFERRED_LES = 0x2d, "preferred-les";
}

impl fmt::Debug for TlvType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{:08x}", self.0),
        }
    }
}

/// One TLV. The value is kept unchanged, whether its type is known or not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tlv {
    /// Type.
    pub kind: TlvType,
    /// Value; at most 255 octets, of a longer one only the first 255 are encoded.
    pub value: Vec<u8>,
}

impl Tlv {
    /// A TLV of any value.
    #[must_use]
    pub fn new(kind: TlvType, value: impl Into<Vec<u8>>) -> Self {
        let mut value = value.into();
        value.truncate(255);
        Self { kind, value }
    }
    /// A TLV of two octets.
    #[must_use]
    pub fn u16(kind: TlvType, value: u16) -> Self {
        Self::new(kind, value.to_be_bytes())
    }
    /// A TLV of four octets.
    #[must_use]
    pub fn u32(kind: TlvType, value: u32) -> Self {
        Self::new(kind, value.to_be_bytes())
    }
    /// The value as a number, whether two or four octets long.
    #[must_use]
    pub fn number(&self) -> Option<u32> {
        match *self.value.as_slice() {
            [a, b] => Some(u16::from_be_bytes([a, b]).into()),
            [a, b, c, d] => Some(u32::from_be_bytes([a, b, c, d])),
            _ => None,
        }
    }
    /// The value as an ATM address.
    #[must_use]
    pub fn address(&self) -> Option<AtmAddress> {
        self.value.as_slice().try_into().ok().map(AtmAddress)
    }
}

/// The TLVs of a frame, with everything that is needed to write the same octets again.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TlvList {
    /// The complete TLVs, in order.
    pub list: Vec<Tlv>,
    /// By how much the count in the frame exceeds the TLVs that are present. The Linux LES answers with the request's
    /// count and without its TLVs.
    pub missing: u8,
    /// Octets behind the last complete TLV.
    pub trailing: Vec<u8>,
}

impl TlvList {
    /// Most TLVs in one frame.
    pub const MAX: usize = 255;

    /// Reads up to `count` TLVs. Octets of an incomplete TLV, or behind the counted ones, stay in `trailing`.
    #[must_use]
    pub fn decode(count: u8, octets: &[u8]) -> Self {
        let mut reader = Reader::new(octets);
        let mut list = Vec::new();
        let mut trailing = octets;
        for _ in 0..count {
            let Some(tlv) = decode_one(&mut reader) else {
                break;
            };
            list.push(tlv);
            trailing = octets.get(reader.offset()..).unwrap_or_default();
        }
        Self {
            missing: count - list.len() as u8,
            list,
            trailing: trailing.to_vec(),
        }
    }
    /// The count field.
    #[must_use]
    pub fn count(&self) -> u8 {
        (self.list.len().min(Self::MAX) as u8).saturating_add(self.missing)
    }
    /// Appends the octets.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for tlv in self.list.iter().take(Self::MAX) {
            let len = tlv.value.len().min(255);
            out.extend_from_slice(&tlv.kind.0.to_be_bytes());
            out.push(len as u8);
            out.extend_from_slice(tlv.value.get(..len).unwrap_or_default());
        }
        out.extend_from_slice(&self.trailing);
    }
    /// The first TLV of a type.
    #[must_use]
    pub fn get(&self, kind: TlvType) -> Option<&Tlv> {
        self.list.iter().find(|tlv| tlv.kind == kind)
    }
}

impl From<Vec<Tlv>> for TlvList {
    fn from(list: Vec<Tlv>) -> Self {
        Self {
            list,
            ..Self::default()
        }
    }
}

fn decode_one(reader: &mut Reader<'_>) -> Option<Tlv> {
    let kind = TlvType(reader.u32("TLV type").ok()?);
    let len = reader.u8("TLV length").ok()?;
    let value = reader.take("TLV value", len.into()).ok()?.to_vec();
    Some(Tlv { kind, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_two_or_four_octets() {
        assert_eq!(Tlv::u16(TlvType::MPC_P1, 10).number(), Some(10));
        assert_eq!(Tlv::u32(TlvType::MPC_P2, 7).number(), Some(7));
        assert_eq!(Tlv::new(TlvType::MPC_P4, [1]).number(), None);
    }

    #[test]
    fn cut_short_list_is_kept() {
        // Two TLVs are announced; the second lacks its last octet. The Linux client does this with X5.
        let octets = [0, 0xa0, 0x3e, 0x12, 1, 9, 0, 0xa0, 0x3e, 0x2c];
        let tlvs = TlvList::decode(2, &octets);
        assert_eq!((tlvs.list.len(), tlvs.missing), (1, 1));
        assert_eq!(tlvs.count(), 2);
        let mut out = Vec::new();
        tlvs.encode(&mut out);
        assert_eq!(out, octets);
    }
}
