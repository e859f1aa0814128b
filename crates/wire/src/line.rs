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
//! LANE v2 §4.1.1, MPOA 1.1 (tagged shortcuts). Not implemented: bridged PDUs of other media; LCP and the discovery
//! stage of PPPoE, which a line carries before its first packet and which are recognised only.

use crate::crc;
use crate::llc::LlcSnap;
use crate::{DecodeError, ErrorKind, MacAddr, Reader, aal5, named};

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
pub const PPP_LLC: [u8; 4] = [0xfe, 0xfe, 0x03, 0xcf];
/// PPP protocol of IPv4. Source: RFC 1332 §2.
pub const PPP_IPV4: u16 = 0x0021;
/// Further PPP protocols by which PPP is recognised: IPv6, its control protocol, those of IPv4 and compression, LCP,
/// PAP, LQR, CHAP. Source: RFC 1661 §2, RFC 5072, RFC 1332, RFC 1962, RFC 1334, RFC 1989, RFC 1994.
const PPP_OTHERS: [u16; 8] = [
    0x0057, 0x8057, 0x8021, 0x80fd, 0xc021, 0xc023, 0xc025, 0xc223,
];
/// Version and type of PPPoE, and the code of its session stage. Source: RFC 2516 §4.
const PPPOE_DATA: [u8; 2] = [0x11, 0];
/// Types of Ethernet frames.
const TYPE_IPV4: u16 = 0x0800;
const TYPE_PPPOE_DISCOVERY: u16 = 0x8863;
const TYPE_PPPOE_SESSION: u16 = 0x8864;
/// PID of bridged 802.1D PDUs. Source: RFC 2684 §5.2.
const BRIDGED_BPDU: LlcSnap = LlcSnap::Other {
    oui: [0, 0x80, 0xc2],
    pid: 0x000e,
};
/// Shortest Ethernet frame without its FCS.
const SHORTEST: usize = 60;
/// Octets of an Ethernet header.
const ETHERNET: usize = 14;
/// Octets of an FCS.
const FCS: usize = 4;

/// Addresses of the frame, and the session, in the headers of PPPoE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// MAC address of the station at the other end.
    pub peer: MacAddr,
    /// MAC address of this station.
    pub own: MacAddr,
    /// Number of the session, the same in both directions. Source: RFC 2516 §4.
    pub id: u16,
}

/// Content of an SDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried<'a> {
    /// An IPv4 packet, of a line that is routed or has PPP.
    Packet(&'a [u8]),
    /// An Ethernet frame without its FCS, of 14 octets or more, of a bridged line.
    Frame(&'a [u8]),
    /// An 802.1D PDU of a bridge.
    Bpdu(&'a [u8]),
    /// PPP that is no IPv4 packet, such as LCP: its protocol.
    Ppp(u16),
    /// A frame of the discovery stage of PPPoE.
    Discovery,
}

impl Encapsulation {
    /// Encapsulations of lines. LANE and MPOA have machines of their own.
    pub fn lines() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|one| one.is_line())
    }

    /// True if a line has it, false for LANE and MPOA.
    #[must_use]
    pub const fn is_line(self) -> bool {
        !matches!(self, Self::Lane | Self::MpoaTagged)
    }

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

    /// True if a header of LLC begins the SDU.
    #[must_use]
    pub const fn is_llc(self) -> bool {
        !matches!(
            self,
            Self::RoutedVc
                | Self::PppoaVc
                | Self::BridgedVc
                | Self::BridgedVcFcs
                | Self::PppoeVc
                | Self::PppoeVcFcs
                | Self::Lane
        )
    }

    /// True if PPP, and nothing else, carries packets.
    #[must_use]
    pub const fn is_ppp(self) -> bool {
        self.is_pppoe() || matches!(self, Self::PppoaVc | Self::PppoaLlc)
    }

    /// True if its users send Ethernet frames; others send IPv4 packets.
    #[must_use]
    pub const fn is_bridged(self) -> bool {
        matches!(
            self,
            Self::BridgedVc | Self::BridgedVcFcs | Self::BridgedLlc | Self::BridgedLlcFcs
        )
    }

    /// The SDU for a packet of at most [`aal5::MAX_SDU`] less 64 octets. Addresses, the session and the tag are zero.
    #[must_use]
    pub fn sdu(self, packet: &[u8]) -> Vec<u8> {
        if !self.is_bridged() && self != Self::Lane {
            return self.encode(packet, &Session::default());
        }
        let mut frame = vec![0; ETHERNET - 2];
        frame.extend(TYPE_IPV4.to_be_bytes());
        frame.extend(packet);
        self.encode(&frame, &Session::default())
    }

    /// The SDU for an Ethernet frame without its FCS ([`is_bridged`](Self::is_bridged), and LANE), or for an IPv4
    /// packet, of at most [`aal5::MAX_SDU`] less 64 octets. The LECID and the tag are zero.
    #[must_use]
    pub fn encode(self, octets: &[u8], session: &Session) -> Vec<u8> {
        let mut sdu = Vec::with_capacity(octets.len() + 64);
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
        let frame = sdu.len();
        if self.is_pppoe() {
            sdu.extend(session.peer.0);
            sdu.extend(session.own.0);
            sdu.extend(TYPE_PPPOE_SESSION.to_be_bytes());
            sdu.extend(PPPOE_DATA);
            sdu.extend(session.id.to_be_bytes());
            let length = octets.len() + size_of_val(&PPP_IPV4);
            sdu.extend((length as u16).to_be_bytes());
        }
        if self.is_ppp() {
            sdu.extend(PPP_IPV4.to_be_bytes());
        }
        sdu.extend(octets);
        // A LANE client pads to the shortest frame, too.
        if self.has_fcs() || self == Self::Lane {
            let least = (frame + SHORTEST).max(sdu.len());
            sdu.resize(least, 0);
        }
        if self.has_fcs() {
            let covered = sdu.get(frame..).unwrap_or_default();
            let fcs = crc::ethernet(covered);
            sdu.extend(fcs.to_le_bytes());
        }
        sdu
    }

    /// Content of an SDU of a line. With LLC, frames with and without their FCS are taken, since the header tells.
    ///
    /// # Errors
    /// `Short` and `Value` name the field that is not one of this encapsulation, or not of this session; `Checksum` is
    /// that of a wrong FCS. LANE and MPOA have machines of their own, and every SDU is an error of `encapsulation`.
    pub fn decode<'a>(self, sdu: &'a [u8], session: &Session) -> Result<Carried<'a>, DecodeError> {
        match self {
            Self::RoutedVc => packet_at(sdu, 0, sdu),
            Self::RoutedLlc => match LlcSnap::decode(sdu)? {
                (LlcSnap::Ipv4, packet) => packet_at(sdu, sdu.len() - packet.len(), packet),
                (other, _) => Err(wrong_pid(other)),
            },
            Self::PppoaVc => ppp_at(sdu, 0),
            Self::PppoaLlc => {
                let mut reader = Reader::new(sdu);
                let llc: [u8; 4] = reader.array("ppp.llc")?;
                if llc != PPP_LLC {
                    let value = u32::from_be_bytes(llc);
                    return Err(DecodeError::value("ppp.llc", 0, value));
                }
                ppp_at(sdu, PPP_LLC.len())
            }
            Self::Lane | Self::MpoaTagged => Err(DecodeError::value("encapsulation", 0, 0)),
            _ => {
                let (at, fcs) = match self.is_llc() {
                    true => match LlcSnap::decode(sdu)? {
                        (LlcSnap::BridgedEthernet { fcs }, frame) => (sdu.len() - frame.len(), fcs),
                        (BRIDGED_BPDU, bpdu) => return Ok(Carried::Bpdu(bpdu)),
                        (other, _) => return Err(wrong_pid(other)),
                    },
                    false => match Reader::new(sdu).u16("bridged.padding")? {
                        0 => (2, self.has_fcs()),
                        other => {
                            return Err(DecodeError::value("bridged.padding", 0, other.into()));
                        }
                    },
                };
                let frame = frame_at(sdu, at, fcs)?;
                match self.is_pppoe() {
                    true => pppoe_at(sdu, at, frame, session),
                    false => Ok(Carried::Frame(frame)),
                }
            }
        }
    }

    /// The encapsulation of an SDU, as far as its octets tell; `None` if they are of no line. A frame of VC
    /// multiplexing has its FCS if it ends with a right one.
    #[must_use]
    pub fn of(sdu: &[u8]) -> Option<Self> {
        const FRAMES: [(Encapsulation, Encapsulation); 4] = [
            (Encapsulation::BridgedVcFcs, Encapsulation::PppoeVcFcs),
            (Encapsulation::BridgedVc, Encapsulation::PppoeVc),
            (Encapsulation::BridgedLlcFcs, Encapsulation::PppoeLlcFcs),
            (Encapsulation::BridgedLlc, Encapsulation::PppoeLlc),
        ];
        let any = Session::default();
        for (bridged, pppoe) in FRAMES {
            let header = LlcSnap::BridgedEthernet {
                fcs: bridged.has_fcs(),
            }
            .header();
            let begins = bridged.is_llc() && !sdu.starts_with(&header);
            match bridged.decode(sdu, &any) {
                Ok(Carried::Frame(frame)) if !begins => {
                    let of_pppoe = [TYPE_PPPOE_SESSION, TYPE_PPPOE_DISCOVERY].map(Some);
                    let is_pppoe = of_pppoe.contains(&type_of(frame));
                    return Some(if is_pppoe { pppoe } else { bridged });
                }
                Ok(Carried::Bpdu(_)) => return Some(Self::BridgedLlc),
                _ => {}
            }
        }
        let others = [
            Self::RoutedLlc,
            Self::PppoaLlc,
            Self::RoutedVc,
            Self::PppoaVc,
        ];
        let is = |one: &Self| match one.decode(sdu, &any) {
            Ok(Carried::Ppp(protocol)) => PPP_OTHERS.contains(&protocol),
            decoded => decoded.is_ok(),
        };
        others.into_iter().find(is)
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

/// Type of an Ethernet frame.
fn type_of(frame: &[u8]) -> Option<u16> {
    Reader::new(frame.get(ETHERNET - 2..)?)
        .u16("ethernet.type")
        .ok()
}

/// The error of a header of LLC that is well formed and of another protocol.
fn wrong_pid(other: LlcSnap) -> DecodeError {
    let [.., high, low] = other.header();
    DecodeError::value("snap.pid", 6, u16::from_be_bytes([high, low]).into())
}

fn packet_at<'a>(sdu: &[u8], at: usize, packet: &'a [u8]) -> Result<Carried<'a>, DecodeError> {
    match packet.first() {
        Some(first) if first >> 4 == 4 => Ok(Carried::Packet(packet)),
        Some(first) => Err(DecodeError::value("ip.version", at, (first >> 4).into())),
        None => Err(DecodeError::short("ip.version", sdu.len())),
    }
}

/// PPP at an offset, with a protocol of two octets: one octet is for ends that have agreed on it. Source: RFC 1661 §2,
/// §6.5.
fn ppp_at(sdu: &[u8], at: usize) -> Result<Carried<'_>, DecodeError> {
    let mut reader = Reader::new(sdu.get(at..).unwrap_or_default());
    let protocol = reader.u16("ppp.protocol");
    let protocol = protocol.map_err(|_| DecodeError::short("ppp.protocol", at))?;
    // The first octet of a protocol is even, and the second one odd.
    if protocol & 0x0101 != 1 {
        return Err(DecodeError::value("ppp.protocol", at, protocol.into()));
    }
    let rest = reader.rest();
    match protocol {
        PPP_IPV4 => packet_at(sdu, sdu.len() - rest.len(), rest),
        other => Ok(Carried::Ppp(other)),
    }
}

/// The Ethernet frame at an offset, with its FCS checked and removed.
fn frame_at(sdu: &[u8], at: usize, fcs: bool) -> Result<&[u8], DecodeError> {
    let frame = sdu.get(at..).unwrap_or_default();
    let least = if fcs { ETHERNET + FCS } else { ETHERNET };
    if frame.len() < least {
        return Err(DecodeError::short("ethernet.header", sdu.len()));
    }
    let (covered, check) = frame.split_at(frame.len() - if fcs { FCS } else { 0 });
    let sum = crc::ethernet(covered);
    if fcs && check != sum.to_le_bytes() {
        return Err(DecodeError {
            field: "ethernet.fcs",
            offset: at + covered.len(),
            kind: ErrorKind::Checksum,
        });
    }
    Ok(covered)
}

/// PPPoE in a frame that begins at an offset.
fn pppoe_at<'a>(
    sdu: &[u8],
    at: usize,
    frame: &'a [u8],
    session: &Session,
) -> Result<Carried<'a>, DecodeError> {
    match type_of(frame) {
        Some(TYPE_PPPOE_SESSION) => {}
        Some(TYPE_PPPOE_DISCOVERY) => return Ok(Carried::Discovery),
        other => {
            let value = other.unwrap_or_default().into();
            return Err(DecodeError::value(
                "ethernet.type",
                at + ETHERNET - 2,
                value,
            ));
        }
    }
    let moved = |error: DecodeError| DecodeError {
        offset: error.offset + at + ETHERNET,
        ..error
    };
    let mut reader = Reader::new(frame.get(ETHERNET..).unwrap_or_default());
    let code = u16::from_be_bytes(reader.array("pppoe.code").map_err(moved)?);
    if code.to_be_bytes() != PPPOE_DATA {
        return Err(moved(DecodeError::value("pppoe.code", 0, code.into())));
    }
    let id = reader.u16("pppoe.session").map_err(moved)?;
    if id != session.id {
        return Err(moved(DecodeError::value("pppoe.session", 2, id.into())));
    }
    let length = usize::from(reader.u16("pppoe.length").map_err(moved)?);
    // Padding of the frame may follow.
    let ppp = reader.rest().get(..length);
    let ppp = ppp.ok_or_else(|| moved(DecodeError::value("pppoe.length", 4, length as u32)))?;
    ppp_at(ppp, 0).map_err(|error| DecodeError {
        offset: error.offset + sdu.len().min(at + ETHERNET + 6),
        ..error
    })
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
                let residue = crc::ethernet(&sdu[llc..]);
                assert_eq!(residue, 0x2144_df1c, "{one} {length}");
                assert!(sdu[llc..].len() >= 64);
            }
        }
    }

    fn session() -> Session {
        Session {
            peer: MacAddr([2, 0, 0, 0, 0, 9]),
            own: MacAddr([2, 0, 0, 0, 0, 7]),
            id: 5,
        }
    }

    /// PDUs that carry no packet: LCP, discovery, and a BPDU; and those of other lines.
    #[test]
    fn what_is_no_packet_is_named() {
        let any = Session::default();
        let lcp = [0xc0, 0x21, 1, 1, 0, 4];
        let said = Encapsulation::PppoaVc.decode(&lcp, &any);
        assert_eq!(said, Ok(Carried::Ppp(0xc021)));
        let mut padi = Encapsulation::BridgedLlc.encode(&[0xff; 60], &any);
        padi[22..24].copy_from_slice(&[0x88, 0x63]);
        assert_eq!(
            Encapsulation::PppoeLlc.decode(&padi, &any),
            Ok(Carried::Discovery)
        );
        assert_eq!(Encapsulation::of(&padi), Some(Encapsulation::PppoeLlc));
        let bpdu = [0xaa, 0xaa, 3, 0, 0x80, 0xc2, 0, 0x0e, 0, 0, 0, 0];
        let said = Encapsulation::BridgedLlc.decode(&bpdu, &any);
        assert_eq!(said, Ok(Carried::Bpdu(&[0; 4])));
        for (line, sdu, field) in [
            (
                Encapsulation::BridgedLlc,
                &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0, 0x45][..],
                "snap.pid",
            ),
            (Encapsulation::RoutedLlc, &padi[..], "snap.pid"),
            (Encapsulation::PppoaLlc, &padi[..], "ppp.llc"),
            (Encapsulation::PppoaVc, &padi[..], "ppp.protocol"),
            (Encapsulation::BridgedVc, &lcp[..], "bridged.padding"),
            (Encapsulation::BridgedVc, &[0; 15][..], "ethernet.header"),
            (Encapsulation::BridgedVcFcs, &[0; 30][..], "ethernet.fcs"),
            (Encapsulation::RoutedVc, &[0x60; 40][..], "ip.version"),
            (Encapsulation::Lane, &[0; 40][..], "encapsulation"),
        ] {
            let error = line.decode(sdu, &any).unwrap_err();
            assert_eq!(error.field, field, "{line}: {error}");
        }
    }

    /// Each field of PPPoE, at its offset in the SDU.
    #[test]
    fn a_session_takes_its_own_pdus() {
        let (own, packet) = (session(), [0x45, 0, 0, 20]);
        let sdu = Encapsulation::PppoeLlc.encode(&packet, &own);
        for (at, field) in [
            (22, "ethernet.type"),
            (24, "pppoe.code"),
            (25, "pppoe.code"),
            (27, "pppoe.session"),
            (29, "pppoe.length"),
            (30, "ppp.protocol"),
            (32, "ip.version"),
        ] {
            let mut wrong = sdu.clone();
            wrong[at] ^= 0x81;
            let error = Encapsulation::PppoeLlc.decode(&wrong, &own).unwrap_err();
            assert_eq!(error.field, field, "{error}");
            assert!(error.offset <= at && at < error.offset + 2, "{at}: {error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_decodes(length in 20usize..1600, which in 0usize..12, fill in any::<u8>()) {
            let one = Encapsulation::lines().nth(which).expect("12");
            let mut octets = vec![fill; length];
            octets[0] = 0x45;
            if one.is_bridged() {
                octets[12..14].copy_from_slice(&[8, 0]);
            }
            let sdu = one.encode(&octets, &session());
            // A frame with its FCS was padded.
            match one.decode(&sdu, &session()) {
                Ok(Carried::Packet(packet)) => prop_assert_eq!(packet, &octets[..]),
                Ok(Carried::Frame(frame)) => {
                    prop_assert!(frame.starts_with(&octets));
                    let least = if one.has_fcs() { SHORTEST } else { 0 };
                    prop_assert_eq!(frame.len(), length.max(least));
                }
                other => prop_assert!(false, "{}: {:?}", one, other),
            }
            prop_assert_eq!(Encapsulation::of(&sdu), Some(one));
        }

        #[test]
        fn any_octets_decode_or_not(sdu in proptest::collection::vec(any::<u8>(), 0..80), which in 0usize..14) {
            let one = Encapsulation::ALL[which];
            if let Err(error) = one.decode(&sdu, &session()) {
                prop_assert!(error.offset <= sdu.len(), "{}", error);
            }
            let _ = Encapsulation::of(&sdu);
        }

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
