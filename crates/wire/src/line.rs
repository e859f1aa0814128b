//! Encapsulations of an IPv4 packet on an ATM line: the octets of the AAL5 SDU that a modem, a router or a LANE client
//! sends for it.
//!
//! ```text
//!  routed            [AA-AA-03 00-00-00 08-00]                                       packet
//!  PPPoA             [FE-FE-03-CF]                 00-21                             packet
//!  bridged           [AA-AA-03 00-80-C2 00-07]     00-00  addresses 08-00            packet  [FCS]
//!  PPPoE             [AA-AA-03 00-80-C2 00-07]     00-00  addresses 88-64 PPPoE 00-21  packet  [FCS]
//! ```
//!
//! The header in the first brackets belongs to LLC; VC multiplexing has none. With the FCS the PID is 0001, and a frame
//! below 60 octets is padded before its FCS, because that covers the padding. Without it no padding is added.
//!
//! Standards: RFC 2684 §5 and §6 (bridged and routed, LLC and VC multiplexing), RFC 2364 (PPPoA), RFC 2516 §4 (PPPoE),
//! LANE v2 §4.1.1, MPOA 1.1 (tagged shortcuts). Not implemented: bridged PDUs of other media, 802.1D PDUs; LCP and the
//! discovery stage of PPPoE, which a line carries before its first packet.

use crate::llc::LlcSnap;
use crate::{aal5, named};
use crc_fast::{CrcAlgorithm, checksum};

named! {
    /// Encapsulation of a packet on a line.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Encapsulation {
        /// Routed, VC multiplexing.
        RoutedVc = "ipoa-vcmux",
        /// Routed, LLC: Classical IP.
        RoutedLlc = "ipoa-llcsnap",
        /// PPP over AAL5, VC multiplexing.
        PppoaVc = "pppoa-vcmux",
        /// PPP over AAL5, LLC.
        PppoaLlc = "pppoa-llc",
        /// Bridged Ethernet, VC multiplexing.
        BridgedVc = "bridged-vcmux",
        /// Bridged Ethernet with its FCS, VC multiplexing.
        BridgedVcFcs = "bridged-vcmux-fcs",
        /// Bridged Ethernet, LLC.
        BridgedLlc = "bridged-llcsnap",
        /// Bridged Ethernet with its FCS, LLC.
        BridgedLlcFcs = "bridged-llcsnap-fcs",
        /// PPPoE over bridged Ethernet, VC multiplexing.
        PppoeVc = "pppoe-vcmux",
        /// PPPoE over bridged Ethernet with its FCS, VC multiplexing.
        PppoeVcFcs = "pppoe-vcmux-fcs",
        /// PPPoE over bridged Ethernet, LLC.
        PppoeLlc = "pppoe-llcsnap",
        /// PPPoE over bridged Ethernet with its FCS, LLC.
        PppoeLlcFcs = "pppoe-llcsnap-fcs",
        /// LAN emulation.
        Lane = "lane",
        /// An MPOA shortcut with a tag.
        MpoaTagged = "mpoa-tagged",
    }
}

/// NLPID header of PPP. Source: RFC 2364.
const PPP_LLC: [u8; 4] = [0xfe, 0xfe, 0x03, 0xcf];
/// PPP protocol of IPv4. Source: RFC 1332 §2.
const PPP_IPV4: [u8; 2] = [0x00, 0x21];
/// Shortest Ethernet frame without its FCS.
const SHORTEST: usize = 60;
/// Octets of an Ethernet header.
const ETHERNET: usize = 14;

impl Encapsulation {
    /// True if the packet is in an Ethernet frame.
    #[must_use]
    pub const fn is_ethernet(self) -> bool {
        !matches!(
            self,
            Self::RoutedVc | Self::RoutedLlc | Self::PppoaVc | Self::PppoaLlc | Self::MpoaTagged
        )
    }

    /// True if a frame ends with its FCS.
    #[must_use]
    pub const fn has_fcs(self) -> bool {
        matches!(
            self,
            Self::BridgedVcFcs | Self::BridgedLlcFcs | Self::PppoeVcFcs | Self::PppoeLlcFcs
        )
    }

    /// True if PPP runs inside the Ethernet frame.
    #[must_use]
    pub const fn is_pppoe(self) -> bool {
        matches!(
            self,
            Self::PppoeVc | Self::PppoeVcFcs | Self::PppoeLlc | Self::PppoeLlcFcs
        )
    }

    /// Largest packet: of Ethernet 1500 octets, less the 8 of PPPoE and PPP; elsewhere 1500, too, as modems and clients
    /// of an ELAN use.
    #[must_use]
    pub const fn mtu(self) -> usize {
        if self.is_pppoe() { 1492 } else { 1500 }
    }

    /// The SDU for a packet of at most [`aal5::MAX_SDU`] less 64 octets. Addresses, the session and the tag are zero.
    #[must_use]
    pub fn sdu(self, packet: &[u8]) -> Vec<u8> {
        let mut sdu = Vec::with_capacity(packet.len() + 64);
        match self {
            Self::RoutedLlc => LlcSnap::Ipv4.encode(&mut sdu),
            Self::PppoaLlc => sdu.extend(PPP_LLC),
            Self::MpoaTagged => LlcSnap::MpoaTagged { tag: 0 }.encode(&mut sdu),
            Self::BridgedLlc | Self::BridgedLlcFcs | Self::PppoeLlc | Self::PppoeLlcFcs => {
                let fcs = self.has_fcs();
                LlcSnap::BridgedEthernet { fcs }.encode(&mut sdu);
            }
            // Two octets of padding; in LANE the LECID.
            _ if self.is_ethernet() => sdu.extend([0, 0]),
            _ => {}
        }
        if matches!(self, Self::PppoaVc | Self::PppoaLlc) {
            sdu.extend(PPP_IPV4);
        }
        let frame = sdu.len();
        if self.is_ethernet() {
            sdu.extend([0; ETHERNET - 2]);
            sdu.extend(if self.is_pppoe() {
                [0x88, 0x64]
            } else {
                [0x08, 0x00]
            });
        }
        if self.is_pppoe() {
            // Version and type 1, code 0, session 0, length with the PPP protocol.
            let length = (packet.len() + PPP_IPV4.len()) as u16;
            sdu.extend([0x11, 0, 0, 0]);
            sdu.extend(length.to_be_bytes());
            sdu.extend(PPP_IPV4);
        }
        sdu.extend(packet);
        // A LANE client pads to the shortest frame, too.
        if self.has_fcs() || self == Self::Lane {
            let least = (frame + SHORTEST).max(sdu.len());
            sdu.resize(least, 0);
        }
        if self.has_fcs() {
            let covered = sdu.get(frame..).unwrap_or_default();
            let fcs = checksum(CrcAlgorithm::Crc32IsoHdlc, covered) as u32;
            sdu.extend(fcs.to_le_bytes());
        }
        sdu
    }

    /// Octets beyond a packet that needs no padding of a frame: headers, FCS and the trailer of AAL5.
    #[must_use]
    pub fn overhead(self) -> usize {
        let packet = [0; SHORTEST];
        self.sdu(&packet).len() - packet.len() + aal5::TRAILER_LEN
    }

    /// Least octets of a packet that needs no padding of a frame; 0 if none is ever padded.
    #[must_use]
    pub fn least(self) -> usize {
        let empty = self.sdu(&[]).len() + aal5::TRAILER_LEN;
        empty - self.overhead()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Octets beyond the packet as `tc-cake(8)` and the arithmetic of the headers have them.
    #[test]
    fn the_overheads_are_those_that_shapers_use() {
        let expected = [8, 16, 10, 14, 24, 28, 32, 36, 32, 36, 40, 44, 24, 20];
        assert_eq!(Encapsulation::ALL.map(Encapsulation::overhead), expected);
        let padded = [0, 0, 0, 0, 0, 46, 0, 46, 0, 38, 0, 38, 46, 0];
        assert_eq!(Encapsulation::ALL.map(Encapsulation::least), padded);
    }

    /// Prefixes of RFC 2684 §5.1, §5.2 and §6, RFC 2364, and RFC 2516 §4.
    #[test]
    fn the_octets_are_those_of_the_standards() {
        let packet = [0x45, 1, 2, 3];
        let zeros = [0u8; 12];
        let pppoe = [0x88, 0x64, 0x11, 0, 0, 0, 0, 6, 0, 0x21];
        for (one, parts) in [
            (Encapsulation::RoutedVc, vec![]),
            (Encapsulation::RoutedLlc, vec![0xaa, 0xaa, 3, 0, 0, 0, 8, 0]),
            (Encapsulation::PppoaVc, vec![0, 0x21]),
            (Encapsulation::PppoaLlc, vec![0xfe, 0xfe, 3, 0xcf, 0, 0x21]),
            (
                Encapsulation::BridgedLlc,
                [
                    &[0xaa, 0xaa, 3, 0, 0x80, 0xc2, 0, 7, 0, 0][..],
                    &zeros,
                    &[8, 0],
                ]
                .concat(),
            ),
            (
                Encapsulation::PppoeVc,
                [&[0, 0][..], &zeros, &pppoe].concat(),
            ),
        ] {
            assert_eq!(one.sdu(&packet), [&parts[..], &packet].concat(), "{one}");
        }
        // The FCS of IEEE 802.3 over a frame with it leaves the constant residue.
        for one in Encapsulation::ALL.into_iter().filter(|one| one.has_fcs()) {
            for length in [0, 20, 46, 200] {
                let sdu = one.sdu(&vec![7; length]);
                let llc = if matches!(one, Encapsulation::BridgedVcFcs | Encapsulation::PppoeVcFcs)
                {
                    2
                } else {
                    10
                };
                let residue = checksum(CrcAlgorithm::Crc32IsoHdlc, &sdu[llc..]) as u32;
                assert_eq!(residue, 0x2144_df1c, "{one} {length}");
                assert!(sdu[llc..].len() >= 64);
            }
        }
    }

    proptest! {
        #[test]
        fn an_sdu_has_its_packet_and_its_overhead(length in 0usize..2000, which in 0usize..14) {
            let one = Encapsulation::ALL[which];
            let packet = vec![9; length];
            let sdu = one.sdu(&packet);
            let expected = length.max(one.least()) + one.overhead() - aal5::TRAILER_LEN;
            prop_assert_eq!(sdu.len(), expected);
        }
    }
}
