//! SSCOP PDUs: the reliable link under ATM signalling.
//!
//! A PDU is a multiple of four octets and carries its control fields at the *end*; the last word holds
//! pad length, type and one sequence number. One PDU travels in one AAL5 SDU.
//!
//! ```text
//!   ... user data, pad ... | W3 | W2 | W1
//!   W1:  PL(2) R(1) S(1) type(4) | N(S), N(R) or N(MR) (24)
//! ```
//!
//! Reserved bits and pad octets are ignored when read and zero when written. Any [`DecodeError`] is the
//! standard's "PDU length violation": the receiver discards the PDU and reports MAA-ERROR U.
//! Source: Q.2110 §7.2.

use crate::DecodeError;

/// A 24-bit sequence number. Sequence numbers wrap, so they have no order: compare [`Self::since`] a common base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seq24(u32);

impl Seq24 {
    /// Size of the number space.
    pub const MODULUS: u32 = 1 << 24;
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// `value` modulo 2^24.
    #[must_use]
    pub const fn new(value: u32) -> Self {
        Self(value % Self::MODULUS)
    }
    /// The number, 0..2^24.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
    /// The number `n` further on.
    #[must_use]
    pub const fn plus(self, n: u32) -> Self {
        Self::new(self.0.wrapping_add(n))
    }
    /// The next number.
    #[must_use]
    pub const fn next(self) -> Self {
        self.plus(1)
    }
    /// Steps from `base` forward to this number, 0..2^24.
    #[must_use]
    pub const fn since(self, base: Self) -> u32 {
        self.0.wrapping_sub(base.0) % Self::MODULUS
    }
    /// True if walking forward from `base` meets this number before `end`.
    #[must_use]
    pub const fn in_window(self, base: Self, end: Self) -> bool {
        self.since(base) < end.since(base)
    }
}

/// An 8-bit connection sequence number N(SQ). Only equality has a meaning; there is no order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seq8(pub u8);

impl Seq8 {
    /// The next number, modulo 256.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
}

/// One SSCOP PDU. `uu` is user-to-user data (mostly empty), at most [`SscopPdu::MAX_UU`] octets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SscopPdu {
    /// BGN: asks for a connection.
    Begin {
        /// N(SQ).
        sq: Seq8,
        /// N(MR): first SD number that the receiver of this PDU may not send.
        mr: Seq24,
        /// User-to-user data.
        uu: Vec<u8>,
    },
    /// BGAK: accepts a connection.
    BeginAck {
        /// N(MR).
        mr: Seq24,
        /// User-to-user data.
        uu: Vec<u8>,
    },
    /// BGREJ: rejects a connection.
    BeginReject {
        /// User-to-user data.
        uu: Vec<u8>,
    },
    /// END: releases a connection.
    End {
        /// True if SSCOP itself released the connection, false if its user did.
        by_sscop: bool,
        /// User-to-user data.
        uu: Vec<u8>,
    },
    /// ENDAK: confirms a release.
    EndAck,
    /// RS: asks for resynchronisation.
    Resync {
        /// N(SQ).
        sq: Seq8,
        /// N(MR).
        mr: Seq24,
        /// User-to-user data.
        uu: Vec<u8>,
    },
    /// RSAK: confirms resynchronisation.
    ResyncAck {
        /// N(MR).
        mr: Seq24,
    },
    /// ER: recovers from a protocol error.
    Recover {
        /// N(SQ).
        sq: Seq8,
        /// N(MR).
        mr: Seq24,
    },
    /// ERAK: confirms recovery.
    RecoverAck {
        /// N(MR).
        mr: Seq24,
    },
    /// SD: sequenced data.
    Data {
        /// N(S).
        s: Seq24,
        /// The message, at most [`SscopPdu::MAX_INFO`] octets.
        info: Vec<u8>,
    },
    /// POLL: asks for the receiver's state.
    Poll {
        /// N(PS): number of this poll.
        ps: Seq24,
        /// N(S): number of the next new SD.
        s: Seq24,
    },
    /// STAT: the receiver's state, in answer to POLL.
    Stat {
        /// N(PS) of the POLL.
        ps: Seq24,
        /// N(MR).
        mr: Seq24,
        /// N(R): next SD expected in sequence.
        r: Seq24,
        /// Starts of alternating runs of missing and received SDs; the first run is missing.
        list: Vec<Seq24>,
    },
    /// USTAT: a gap that the receiver has just noticed.
    Ustat {
        /// N(MR).
        mr: Seq24,
        /// N(R).
        r: Seq24,
        /// First missing SD.
        from: Seq24,
        /// First SD after the gap.
        to: Seq24,
    },
    /// UD: unassured data.
    UnitData {
        /// The message.
        info: Vec<u8>,
    },
    /// MD: unassured management data.
    ManagementData {
        /// The message.
        info: Vec<u8>,
    },
}

/// A PDU that is being decoded from its end.
struct Trailer<'a> {
    pdu: &'a [u8],
}

impl<'a> Trailer<'a> {
    fn word(&mut self, field: &'static str) -> Result<[u8; 4], DecodeError> {
        let (rest, word) = self
            .pdu
            .split_last_chunk::<4>()
            .ok_or(DecodeError::short(field, 0))?;
        self.pdu = rest;
        Ok(*word)
    }
    fn seq(&mut self, field: &'static str) -> Result<Seq24, DecodeError> {
        self.word(field).map(seq24)
    }
    fn sq(&mut self) -> Result<Seq8, DecodeError> {
        self.word("N(SQ)").map(|[.., sq]| Seq8(sq))
    }
    /// All remaining octets are user data with `pad` octets behind it.
    fn data(self, field: &'static str, pad: u8, max: usize) -> Result<Vec<u8>, DecodeError> {
        let len = self
            .pdu
            .len()
            .checked_sub(usize::from(pad))
            .ok_or(DecodeError::short(field, 0))?;
        if len > max {
            return Err(DecodeError::value(field, 0, len as u32));
        }
        Ok(self.pdu.get(..len).unwrap_or_default().to_vec())
    }
    fn finish(&self, field: &'static str) -> Result<(), DecodeError> {
        if self.pdu.is_empty() {
            return Ok(());
        }
        Err(DecodeError::trailing(field, 0))
    }
}

const fn seq24([_, a, b, c]: [u8; 4]) -> Seq24 {
    Seq24(u32::from_be_bytes([0, a, b, c]))
}

impl SscopPdu {
    /// Largest SD, UD or MD message, octets (k). Source: Q.2130 §11.
    pub const MAX_INFO: usize = 4096;
    /// Largest user-to-user field, octets (j).
    pub const MAX_UU: usize = 4096;

    /// True if the type of a PDU is that of an SD, without a look at anything else.
    #[must_use]
    pub const fn is_data(pdu: &[u8]) -> bool {
        matches!(pdu, [.., last, _, _, _] if *last & 0xf == 8)
    }

    /// Decodes one AAL5 SDU.
    ///
    /// # Errors
    /// A length violation or an unknown type: the receiver discards the PDU and reports MAA-ERROR U.
    pub fn decode(pdu: &[u8]) -> Result<Self, DecodeError> {
        if !pdu.len().is_multiple_of(4) {
            return Err(DecodeError::value("PDU length", 0, pdu.len() as u32));
        }
        let mut t = Trailer { pdu };
        let [kind, ..] = t.pdu.last_chunk::<4>().copied().unwrap_or_default();
        let n = t.seq("PDU type")?;
        let pad = kind >> 6;
        let uu = |t: Trailer<'_>| t.data("UU", pad, Self::MAX_UU);
        let info = |t: Trailer<'_>| t.data("information", pad, Self::MAX_INFO);
        Ok(match kind & 0x0f {
            0x1 => Self::Begin {
                sq: t.sq()?,
                mr: n,
                uu: uu(t)?,
            },
            0x2 => {
                t.word("reserved word")?;
                Self::BeginAck { mr: n, uu: uu(t)? }
            }
            0x3 => {
                t.word("reserved word")?;
                Self::End {
                    by_sscop: kind & 0x10 != 0,
                    uu: uu(t)?,
                }
            }
            0x5 => Self::Resync {
                sq: t.sq()?,
                mr: n,
                uu: uu(t)?,
            },
            0x7 => {
                t.word("reserved word")?;
                Self::BeginReject { uu: uu(t)? }
            }
            0x8 => Self::Data {
                s: n,
                info: info(t)?,
            },
            0xd => Self::UnitData { info: info(t)? },
            0xe => Self::ManagementData { info: info(t)? },
            other => return Self::decode_fixed(other, n, t, pdu.len()),
        })
    }

    /// The PDUs without user data.
    fn decode_fixed(
        kind: u8,
        n: Seq24,
        mut t: Trailer<'_>,
        len: usize,
    ) -> Result<Self, DecodeError> {
        let pdu = match kind {
            0x4 => {
                t.word("reserved word")?;
                Self::EndAck
            }
            0x6 => {
                t.word("reserved word")?;
                Self::ResyncAck { mr: n }
            }
            0x9 => Self::Recover { sq: t.sq()?, mr: n },
            0xf => {
                t.word("reserved word")?;
                Self::RecoverAck { mr: n }
            }
            0xa => Self::Poll {
                ps: t.seq("N(PS)")?,
                s: n,
            },
            0xb => {
                let (mr, ps) = (t.seq("N(MR)")?, t.seq("N(PS)")?);
                let (list, _) = t.pdu.as_chunks::<4>();
                let list = list.iter().map(|element| seq24(*element)).collect();
                return Ok(Self::Stat { ps, mr, r: n, list });
            }
            0xc => {
                let (mr, to) = (t.seq("N(MR)")?, t.seq("list element 2")?);
                let from = t.seq("list element 1")?;
                Self::Ustat { mr, r: n, from, to }
            }
            other => {
                let at = len.saturating_sub(4);
                return Err(DecodeError::value("PDU type", at, u32::from(other)));
            }
        };
        t.finish("PDU length")?;
        Ok(pdu)
    }

    /// True for the octets of a POLL or a STAT; what else is in it is not looked at. Idle links exchange these.
    #[must_use]
    pub fn is_poll_or_stat(pdu: &[u8]) -> bool {
        let last = pdu.last_chunk::<4>();
        last.is_some_and(|[kind, ..]| matches!(kind & 0x0f, 0xa | 0xb))
    }

    /// Type code, the low nibble of the first octet of the last word.
    #[must_use]
    pub const fn code(&self) -> u8 {
        match self {
            Self::Begin { .. } => 0x1,
            Self::BeginAck { .. } => 0x2,
            Self::End { .. } => 0x3,
            Self::EndAck => 0x4,
            Self::Resync { .. } => 0x5,
            Self::ResyncAck { .. } => 0x6,
            Self::BeginReject { .. } => 0x7,
            Self::Data { .. } => 0x8,
            Self::Recover { .. } => 0x9,
            Self::Poll { .. } => 0xa,
            Self::Stat { .. } => 0xb,
            Self::Ustat { .. } => 0xc,
            Self::UnitData { .. } => 0xd,
            Self::ManagementData { .. } => 0xe,
            Self::RecoverAck { .. } => 0xf,
        }
    }

    /// Name as the standard abbreviates it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Begin { .. } => "BGN",
            Self::BeginAck { .. } => "BGAK",
            Self::End { .. } => "END",
            Self::EndAck => "ENDAK",
            Self::Resync { .. } => "RS",
            Self::ResyncAck { .. } => "RSAK",
            Self::BeginReject { .. } => "BGREJ",
            Self::Data { .. } => "SD",
            Self::Recover { .. } => "ER",
            Self::Poll { .. } => "POLL",
            Self::Stat { .. } => "STAT",
            Self::Ustat { .. } => "USTAT",
            Self::UnitData { .. } => "UD",
            Self::ManagementData { .. } => "MD",
            Self::RecoverAck { .. } => "ERAK",
        }
    }

    /// The AAL5 SDU.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (data, words, n): (&[u8], &[u32], Seq24) = match self {
            Self::Begin { sq, mr, uu } | Self::Resync { sq, mr, uu } => {
                (uu, &[u32::from(sq.0)], *mr)
            }
            Self::Recover { sq, mr } => (&[], &[u32::from(sq.0)], *mr),
            Self::BeginAck { mr, uu } => (uu, &[0], *mr),
            Self::BeginReject { uu } | Self::End { uu, .. } => (uu, &[0], Seq24::ZERO),
            Self::EndAck => (&[], &[0], Seq24::ZERO),
            Self::ResyncAck { mr } | Self::RecoverAck { mr } => (&[], &[0], *mr),
            Self::Data { s, info } => (info, &[], *s),
            Self::Poll { ps, s } => (&[], &[ps.0], *s),
            Self::Stat { ps, mr, r, list } => return self.encode_stat(*ps, *mr, *r, list),
            Self::Ustat { mr, r, from, to } => (&[], &[from.0, to.0, mr.0], *r),
            Self::UnitData { info } | Self::ManagementData { info } => (info, &[], Seq24::ZERO),
        };
        let pad = data.len().wrapping_neg() % 4;
        let mut out = Vec::with_capacity(data.len() + pad + 4 * words.len() + 4);
        out.extend_from_slice(data);
        out.resize(data.len() + pad, 0);
        for word in words {
            out.extend_from_slice(&word.to_be_bytes());
        }
        let s_bit = matches!(self, Self::End { by_sscop: true, .. });
        let first = (pad as u32) << 6 | u32::from(s_bit) << 4 | u32::from(self.code());
        out.extend_from_slice(&(first << 24 | n.0).to_be_bytes());
        out
    }

    fn encode_stat(&self, ps: Seq24, mr: Seq24, r: Seq24, list: &[Seq24]) -> Vec<u8> {
        let last = u32::from(self.code()) << 24 | r.0;
        list.iter()
            .map(|element| element.0)
            .chain([ps.0, mr.0, last])
            .flat_map(u32::to_be_bytes)
            .collect()
    }
}
