//! OAM cells: loopback, alarm indication, remote defect and continuity check, with their CRC-10.
//!
//! F4 flows watch a virtual path (VCI 3 segment, 4 end to end); F5 flows watch a virtual channel
//! (PTI 4 segment, 5 end to end). OAM cells never reach AAL5.
//!
//! Standards: I.610. Not implemented: contents of performance management and activation cells, which
//! decode to [`Oam::Other`] with all their octets.

use crate::DecodeError;
use crate::cell::{CellHeader, PAYLOAD_LEN, Pti};

/// VCI of F4 segment cells.
pub const VCI_F4_SEGMENT: u16 = 3;
/// VCI of F4 end-to-end cells.
pub const VCI_F4_END_TO_END: u16 = 4;

/// The flow that an OAM cell belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OamFlow {
    /// True for F4 (a path), false for F5 (a channel).
    pub path: bool,
    /// True for a segment flow, false for end to end.
    pub segment: bool,
}

impl OamFlow {
    /// The flow of a cell; `None` if the cell is not an OAM cell. Call this before any AAL sees the cell.
    #[must_use]
    pub const fn of(header: &CellHeader) -> Option<Self> {
        let pti = header.pti.value();
        if pti & 6 == 4 {
            return Some(Self {
                path: false,
                segment: pti == Pti::OAM_SEGMENT.value(),
            });
        }
        match header.vc.vci {
            VCI_F4_SEGMENT | VCI_F4_END_TO_END if pti & 5 == 0 => Some(Self {
                path: true,
                segment: header.vc.vci == VCI_F4_SEGMENT,
            }),
            _ => None,
        }
    }
}

const UNUSED: u8 = 0x6a;
/// Octets of the part that depends on the function.
const SPECIFIC: usize = 45;

/// Loopback cell contents.
///
/// ```text
/// 0: 18 | 1: indication | 2..5 tag | 6..21 location id | 22..37 source id | 38..45 unused
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loopback {
    /// Loopback indication octet: low bit 1 in a request, 0 in an answer; the other bits are 0.
    pub indication: u8,
    /// Chosen by the requester; the answer has the same tag.
    pub tag: [u8; 4],
    /// The point that should answer: [`Loopback::END_POINT`], [`Loopback::EVERY_POINT`] or a location id.
    pub location: [u8; 16],
    /// Location id of the requester.
    pub source: [u8; 16],
    /// Unused octets, 6A.
    pub unused: [u8; 8],
}

/// The position of a node on the flow of a loopback request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopbackPoint {
    /// Between the end points of the flow.
    Intermediate,
    /// End point of the segment (segment flow) or of the connection (end-to-end flow).
    EndPoint,
}

/// Treatment of a loopback cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopbackAction {
    /// Send this back on the same connection and flow, and nothing onwards.
    Answer(Loopback),
    /// Send this back and forward the request: every point of the segment answers.
    AnswerAndPass(Loopback),
    /// Forward the cell unchanged.
    Pass,
    /// The cell is the answer to a request of this point.
    Returned,
    /// Discard the cell without an answer.
    Discard,
}

impl Loopback {
    /// Location id of the end point of the connection or segment.
    pub const END_POINT: [u8; 16] = [0xff; 16];
    /// Location id that addresses every point of a segment.
    pub const EVERY_POINT: [u8; 16] = [0; 16];

    /// A request to the end point.
    #[must_use]
    pub const fn request(tag: u32) -> Self {
        Self {
            indication: 1,
            tag: tag.to_be_bytes(),
            location: Self::END_POINT,
            source: [UNUSED; 16],
            unused: [UNUSED; 8],
        }
    }
    /// True for a request.
    #[must_use]
    pub const fn is_request(&self) -> bool {
        self.indication & 1 == 1
    }
    /// The answer to a request: the same cell with the indication cleared.
    #[must_use]
    pub const fn answered(self) -> Self {
        Self {
            indication: self.indication & !1,
            ..self
        }
    }
    /// The responder's rules at a point whose location id is `own`. Source: I.610 §10.2.3.
    #[must_use]
    pub fn action(self, segment: bool, point: LoopbackPoint, own: [u8; 16]) -> LoopbackAction {
        let onwards = match point {
            LoopbackPoint::Intermediate => LoopbackAction::Pass,
            LoopbackPoint::EndPoint => LoopbackAction::Discard,
        };
        if !self.is_request() {
            return match point {
                LoopbackPoint::Intermediate => LoopbackAction::Pass,
                LoopbackPoint::EndPoint => LoopbackAction::Returned,
            };
        }
        if self.location == own {
            return LoopbackAction::Answer(self.answered());
        }
        if self.location == Self::END_POINT {
            return match point {
                LoopbackPoint::EndPoint => LoopbackAction::Answer(self.answered()),
                LoopbackPoint::Intermediate => onwards,
            };
        }
        if self.location == Self::EVERY_POINT && segment {
            let answer = Self {
                location: own,
                ..self.answered()
            };
            return match point {
                LoopbackPoint::Intermediate => LoopbackAction::AnswerAndPass(answer),
                LoopbackPoint::EndPoint => LoopbackAction::Answer(answer),
            };
        }
        onwards
    }
}

/// Contents of an AIS or RDI cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defect {
    /// Defect type; 6A when not used.
    pub kind: u8,
    /// Defect location; 6A octets when not used.
    pub location: [u8; 16],
    /// Unused octets, 6A.
    pub unused: [u8; 28],
}

impl Default for Defect {
    fn default() -> Self {
        Self {
            kind: UNUSED,
            location: [UNUSED; 16],
            unused: [UNUSED; 28],
        }
    }
}

/// The meaning of an OAM cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oam {
    /// Loopback.
    Loopback(Loopback),
    /// Alarm indication signal: a defect upstream.
    Ais(Defect),
    /// Remote defect indication: the other end sees a defect.
    Rdi(Defect),
    /// Continuity check, with its unused octets.
    ContinuityCheck([u8; SPECIFIC]),
    /// Any other type and function, undecoded.
    Other {
        /// OAM type, 0..=15.
        oam_type: u8,
        /// Function type, 0..=15.
        function: u8,
        /// Octets 1 to 45.
        specific: [u8; SPECIFIC],
    },
}

impl Oam {
    /// A continuity check cell.
    pub const CONTINUITY_CHECK: Self = Self::ContinuityCheck([UNUSED; SPECIFIC]);

    fn parts(&self) -> (u8, [u8; SPECIFIC]) {
        let mut specific = [UNUSED; SPECIFIC];
        match self {
            Self::Loopback(l) => {
                specific[0] = l.indication;
                specific[1..5].copy_from_slice(&l.tag);
                specific[5..21].copy_from_slice(&l.location);
                specific[21..37].copy_from_slice(&l.source);
                specific[37..].copy_from_slice(&l.unused);
                (0x18, specific)
            }
            Self::Ais(d) | Self::Rdi(d) => {
                specific[0] = d.kind;
                specific[1..17].copy_from_slice(&d.location);
                specific[17..].copy_from_slice(&d.unused);
                (
                    if matches!(self, Self::Ais(_)) {
                        0x10
                    } else {
                        0x11
                    },
                    specific,
                )
            }
            Self::ContinuityCheck(rest) => (0x14, *rest),
            Self::Other {
                oam_type,
                function,
                specific,
            } => ((oam_type & 15) << 4 | function & 15, *specific),
        }
    }

    /// The 48 payload octets, with a correct CRC-10.
    #[must_use]
    pub fn encode(&self) -> [u8; PAYLOAD_LEN] {
        let (first, specific) = self.parts();
        let mut octets = [0; PAYLOAD_LEN];
        octets[0] = first;
        octets[1..46].copy_from_slice(&specific);
        let crc = crc10(&octets);
        octets[46..].copy_from_slice(&crc.to_be_bytes());
        octets
    }

    /// From the 48 payload octets.
    ///
    /// # Errors
    /// `Checksum` for a wrong CRC-10, `Value` for reserved bits that are set.
    pub fn decode(octets: &[u8; PAYLOAD_LEN]) -> Result<Self, DecodeError> {
        if crc10(octets) != 0 {
            return Err(DecodeError::checksum("oam.crc", 46));
        }
        if octets[46] & 0xfc != 0 {
            return Err(DecodeError::value("oam.reserved", 46, octets[46].into()));
        }
        let mut r = crate::Reader::new(octets);
        let first = r.u8("oam.type")?;
        Ok(match first {
            0x18 => Self::Loopback(Loopback {
                indication: r.u8("oam.indication")?,
                tag: r.array("oam.tag")?,
                location: r.array("oam.location")?,
                source: r.array("oam.source")?,
                unused: r.array("oam.unused")?,
            }),
            0x10 | 0x11 => {
                let defect = Defect {
                    kind: r.u8("oam.defect type")?,
                    location: r.array("oam.defect location")?,
                    unused: r.array("oam.unused")?,
                };
                if first == 0x10 {
                    Self::Ais(defect)
                } else {
                    Self::Rdi(defect)
                }
            }
            0x14 => Self::ContinuityCheck(r.array("oam.unused")?),
            _ => Self::Other {
                oam_type: first >> 4,
                function: first & 15,
                specific: r.array("oam.specific")?,
            },
        })
    }
}

/// Polynomial remainder by x^10+x^9+x^5+x^4+x+1 of 48 octets.
///
/// For a payload whose last ten bits are zero, this is the CRC-10 to put there. For a complete payload it is 0.
#[must_use]
pub fn crc10(octets: &[u8; PAYLOAD_LEN]) -> u16 {
    octets.iter().fold(0, |crc: u16, octet| {
        ((crc & 3) << 8 | u16::from(*octet)) ^ CRC10[usize::from(crc >> 2 & 0xff)]
    })
}

/// The remainder for each value of the eight bits that one more octet shifts out of the register.
const CRC10: [u16; 256] = {
    let mut table = [0; 256];
    let mut top = 0;
    while top < 256 {
        let mut crc = top as u16;
        let mut bit = 0;
        while bit < 10 {
            crc <<= 1;
            if crc & 0x400 != 0 {
                crc ^= 0x633;
            }
            bit += 1;
        }
        table[top] = crc;
        top += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Vc;
    use crate::cell::{Cell, HeaderForm};
    use proptest::prelude::*;

    fn cell(oam: Oam) -> [u8; 53] {
        let header = CellHeader {
            gfc: 0,
            vc: Vc::new(3, 200),
            pti: Pti::OAM_END_TO_END,
            clp: false,
        };
        let payload = oam.encode();
        Cell { header, payload }.encode(HeaderForm::Uni)
    }

    /// Cells of I.610, whose CRC-10 and HEC were computed by a script that shares no code with this crate.
    #[test]
    fn worked_cells() {
        let request = cell(Oam::Loopback(Loopback::request(1)));
        let mut want = vec![0, 0x30, 0x0c, 0x8a, 0xf7, 0x18, 1, 0, 0, 0, 1];
        want.extend([0xff; 16]);
        want.extend([0x6a; 24]);
        want.extend([3, 9]);
        assert_eq!(request.to_vec(), want);
        let answer = cell(Oam::Loopback(Loopback::request(1).answered()));
        assert_eq!(&answer[51..], [1, 0xf0]);
        assert_eq!(&cell(Oam::Ais(Defect::default()))[51..], [3, 0xb9]);
        assert_eq!(&cell(Oam::Rdi(Defect::default()))[51..], [0, 0xaf]);
        assert_eq!(&cell(Oam::CONTINUITY_CHECK)[51..], [3, 0x87]);
    }

    #[test]
    fn flows() {
        let flow = |vci, pti| {
            OamFlow::of(&CellHeader {
                vc: Vc::new(3, vci),
                pti: Pti::new(pti),
                ..CellHeader::default()
            })
            .map(|f| (f.path, f.segment))
        };
        assert_eq!(flow(200, 4), Some((false, true)));
        assert_eq!(flow(200, 5), Some((false, false)));
        assert_eq!(flow(3, 0), Some((true, true)));
        assert_eq!(flow(4, 2), Some((true, false)));
        for (vci, pti) in [(200, 0), (200, 1), (200, 6), (200, 7), (4, 1), (4, 6)] {
            assert_eq!(flow(vci, pti), None, "{vci} {pti}");
        }
    }

    #[test]
    fn responder_rules() {
        let own = [7; 16];
        let all = Loopback::request(9);
        let every = Loopback {
            location: Loopback::EVERY_POINT,
            ..all
        };
        let mine = Loopback {
            location: own,
            ..all
        };
        let other = Loopback {
            location: [8; 16],
            ..all
        };
        use LoopbackAction as A;
        use LoopbackPoint::{EndPoint, Intermediate};
        assert_eq!(all.action(false, EndPoint, own), A::Answer(all.answered()));
        assert_eq!(all.action(true, EndPoint, own), A::Answer(all.answered()));
        assert_eq!(all.action(true, Intermediate, own), A::Pass);
        let with_own = mine.answered();
        assert_eq!(
            every.action(true, Intermediate, own),
            A::AnswerAndPass(with_own)
        );
        assert_eq!(every.action(true, EndPoint, own), A::Answer(with_own));
        assert_eq!(every.action(false, EndPoint, own), A::Discard);
        assert_eq!(
            mine.action(true, Intermediate, own),
            A::Answer(mine.answered())
        );
        assert_eq!(other.action(true, Intermediate, own), A::Pass);
        assert_eq!(other.action(false, EndPoint, own), A::Discard);
        assert_eq!(all.answered().action(false, EndPoint, own), A::Returned);
    }

    /// The division bit by bit, as the standard writes it.
    fn crc10_by_bits(octets: &[u8; 48]) -> u16 {
        let mut crc: u16 = 0;
        for octet in octets {
            for bit in (0..8).rev() {
                crc = crc << 1 | u16::from(octet >> bit & 1);
                if crc & 0x400 != 0 {
                    crc ^= 0x633;
                }
            }
        }
        crc
    }

    proptest! {
        #[test]
        fn any_contents_round_trip(first: u8, a in proptest::array::uniform32(any::<u8>())) {
            let mut octets = [0x6a; 48];
            octets[0] = first;
            octets[1..33].copy_from_slice(&a);
            octets[46..].copy_from_slice(&[0, 0]);
            let crc = crc10(&octets);
            octets[46..].copy_from_slice(&crc.to_be_bytes());
            prop_assert_eq!(crc, crc10_by_bits(&{ let mut clear = octets; clear[46..].fill(0); clear }));
            let oam = Oam::decode(&octets).unwrap();
            prop_assert_eq!(oam.encode(), octets);
            octets[7] ^= 0x10;
            prop_assert!(Oam::decode(&octets).is_err());
        }
    }
}
