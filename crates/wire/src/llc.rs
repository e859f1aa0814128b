//! LLC/SNAP encapsulation: the prefix of the payload in an AAL5 SDU.
//!
//! Standards: RFC 2684 (routed and bridged protocols), RFC 2332 and MPOA 1.1 (NHRP and MPOA control,
//! tagged packets), LANE 2.0 §4.1.2 (LLC-multiplexed data). Non-multiplexed LANE has no prefix.
//! Not implemented: ISO routed protocols, PPP, the other bridged media; they decode to
//! [`LlcSnap::Other`] or are no LLC/SNAP at all.

use crate::{DecodeError, Reader};

/// The prefix of an LLC-encapsulated SDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LlcSnap {
    /// A routed IPv4 packet (ethertype 0800).
    Ipv4,
    /// A routed IPv6 packet (ethertype 86DD).
    Ipv6,
    /// ARP, ATMARP or InATMARP (ethertype 0806).
    Arp,
    /// NHRP and MPOA control (OUI 00-00-5E, PID 0003).
    Nhrp,
    /// An internetwork packet behind an MPOA tag (ethertype 884C).
    MpoaTagged {
        /// The tag, chosen by the egress.
        tag: u32,
    },
    /// A bridged Ethernet frame without FCS (PID 0007) or with FCS (PID 0001), behind two octets of padding.
    BridgedEthernet {
        /// True if the frame ends with its FCS.
        fcs: bool,
    },
    /// LLC-multiplexed LANE data, Ethernet/802.3 (OUI 00-A0-3E, PID 000C).
    LaneData {
        /// ELAN-ID of the emulated LAN.
        elan_id: u32,
    },
    /// LNNI control (OUI 00-A0-3E, PID 000F).
    LnniControl {
        /// ELAN-ID of the emulated LAN.
        elan_id: u32,
    },
    /// Any other SNAP prefix.
    Other {
        /// Organisation.
        oui: [u8; 3],
        /// Protocol of that organisation.
        pid: u16,
    },
}

const LLC: [u8; 3] = [0xaa, 0xaa, 0x03];
const OUI_ETHERTYPE: [u8; 3] = [0, 0, 0];
const OUI_IANA: [u8; 3] = [0, 0, 0x5e];
const OUI_8021: [u8; 3] = [0, 0x80, 0xc2];
const OUI_ATM_FORUM: [u8; 3] = [0, 0xa0, 0x3e];

impl LlcSnap {
    const fn snap(&self) -> ([u8; 3], u16) {
        match *self {
            Self::Ipv4 => (OUI_ETHERTYPE, 0x0800),
            Self::Ipv6 => (OUI_ETHERTYPE, 0x86dd),
            Self::Arp => (OUI_ETHERTYPE, 0x0806),
            Self::Nhrp => (OUI_IANA, 0x0003),
            Self::MpoaTagged { .. } => (OUI_ETHERTYPE, 0x884c),
            Self::BridgedEthernet { fcs } => (OUI_8021, if fcs { 1 } else { 7 }),
            Self::LaneData { .. } => (OUI_ATM_FORUM, 0x000c),
            Self::LnniControl { .. } => (OUI_ATM_FORUM, 0x000f),
            Self::Other { oui, pid } => (oui, pid),
        }
    }

    /// LLC, OUI and PID, with which every prefix begins. A tag, ELAN-ID or padding may follow.
    #[must_use]
    pub const fn header(&self) -> [u8; 8] {
        let ([a, b, c], pid) = self.snap();
        let [high, low] = pid.to_be_bytes();
        [LLC[0], LLC[1], LLC[2], a, b, c, high, low]
    }

    /// Appends the prefix to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.header());
        match *self {
            Self::MpoaTagged { tag: value }
            | Self::LaneData { elan_id: value }
            | Self::LnniControl { elan_id: value } => out.extend_from_slice(&value.to_be_bytes()),
            Self::BridgedEthernet { .. } => out.extend_from_slice(&[0, 0]),
            _ => {}
        }
    }

    /// Prefix and payload in one SDU.
    #[must_use]
    pub fn wrap(&self, payload: &[u8]) -> Vec<u8> {
        let mut sdu = Vec::with_capacity(12 + payload.len());
        self.encode(&mut sdu);
        sdu.extend_from_slice(payload);
        sdu
    }

    /// Splits an SDU into prefix and payload.
    ///
    /// # Errors
    /// `Value` if the SDU does not start with AA-AA-03 or the bridge padding is not zero, `Short` if it ends inside the
    /// prefix.
    pub fn decode(sdu: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        let mut r = Reader::new(sdu);
        let llc: [u8; 3] = r.array("llc")?;
        if llc != LLC {
            let [a, b, c] = llc;
            return Err(DecodeError::value(
                "llc",
                0,
                u32::from_be_bytes([0, a, b, c]),
            ));
        }
        let oui = r.array("snap.oui")?;
        let pid = r.u16("snap.pid")?;
        let prefix = match (oui, pid) {
            (OUI_ETHERTYPE, 0x0800) => Self::Ipv4,
            (OUI_ETHERTYPE, 0x86dd) => Self::Ipv6,
            (OUI_ETHERTYPE, 0x0806) => Self::Arp,
            (OUI_IANA, 0x0003) => Self::Nhrp,
            (OUI_ETHERTYPE, 0x884c) => Self::MpoaTagged {
                tag: r.u32("mpoa.tag")?,
            },
            (OUI_8021, 1 | 7) => {
                let padding = r.u16("bridged.padding")?;
                if padding != 0 {
                    return Err(DecodeError::value("bridged.padding", 8, padding.into()));
                }
                Self::BridgedEthernet { fcs: pid == 1 }
            }
            (OUI_ATM_FORUM, 0x000c) => Self::LaneData {
                elan_id: r.u32("lane.elan id")?,
            },
            (OUI_ATM_FORUM, 0x000f) => Self::LnniControl {
                elan_id: r.u32("lane.elan id")?,
            },
            _ => Self::Other { oui, pid },
        };
        Ok((prefix, r.rest()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Octets of RFC 2684 §5 and §6, RFC 2332, MPOA 1.1 (tagged) and LUNI 2.0 (LLC multiplexed).
    #[test]
    fn prefixes() {
        let table: [(LlcSnap, &[u8]); 8] = [
            (LlcSnap::Ipv4, &[0, 0, 0, 8, 0]),
            (LlcSnap::Arp, &[0, 0, 0, 8, 6]),
            (LlcSnap::Nhrp, &[0, 0, 0x5e, 0, 3]),
            (
                LlcSnap::MpoaTagged { tag: 0x0102_0304 },
                &[0, 0, 0, 0x88, 0x4c, 1, 2, 3, 4],
            ),
            (
                LlcSnap::BridgedEthernet { fcs: false },
                &[0, 0x80, 0xc2, 0, 7, 0, 0],
            ),
            (
                LlcSnap::BridgedEthernet { fcs: true },
                &[0, 0x80, 0xc2, 0, 1, 0, 0],
            ),
            (
                LlcSnap::LaneData { elan_id: 9 },
                &[0, 0xa0, 0x3e, 0, 0x0c, 0, 0, 0, 9],
            ),
            (
                LlcSnap::Other {
                    oui: OUI_IANA,
                    pid: 5,
                },
                &[0, 0, 0x5e, 0, 5],
            ),
        ];
        for (prefix, tail) in table {
            let want = [&LLC[..], tail, b"payload"].concat();
            assert_eq!(prefix.wrap(b"payload"), want);
            assert_eq!(LlcSnap::decode(&want), Ok((prefix, &b"payload"[..])));
        }
        assert_eq!(
            LlcSnap::decode(&[0xfe, 0xfe, 3, 0xcf]).unwrap_err().field,
            "llc"
        );
        let short = LlcSnap::decode(&[0xaa, 0xaa, 3, 0, 0, 0, 0x88, 0x4c, 1]);
        assert_eq!(short, Err(DecodeError::short("mpoa.tag", 8)));
    }

    proptest! {
        #[test]
        fn what_decodes_encodes_to_the_same_octets(tail in proptest::collection::vec(any::<u8>(), 0..20)) {
            let sdu = [&LLC[..], &tail].concat();
            if let Ok((prefix, payload)) = LlcSnap::decode(&sdu) {
                prop_assert_eq!(prefix.wrap(payload), sdu);
            }
            let _ = LlcSnap::decode(&tail);
        }
    }
}
