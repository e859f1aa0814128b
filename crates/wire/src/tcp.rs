//! Segments of TCP: header, options and checksum.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------+-------------------------------+
//! | source port                   | destination port              |
//! +-------------------------------+-------------------------------+
//! | sequence number                                               |
//! +---------------------------------------------------------------+
//! | acknowledgement number                                        |
//! +-------+-------+---------------+-------------------------------+
//! | offset|       | C E U A P R S F | window                      |
//! +-------+-------+---------------+-------------------------------+
//! | checksum                      | urgent pointer                |
//! +-------------------------------+-------------------------------+
//! | options, 0 to 40 octets                                       |
//! +---------------------------------------------------------------+
//! ```
//!
//! A [`Segment`] is the header without the data: data are octets behind it, which [`Segment::decode`] gives beside it.
//!
//! **Standards.** RFC 9293 §3.1 and §3.2 (header, end of options, no-operation, maximum segment size), RFC 7323 (window
//! scale, time stamps), RFC 2018 (selective acknowledgements), RFC 3168 (ECE and CWR).
//!
//! **Deviations.** Unknown options are left out of a [`Segment`], so they do not come back when it is encoded. The
//! options of an encoded segment are in the order of Linux: maximum segment size, permission of selective
//! acknowledgements, time stamps, window scale, blocks. An option whose length is wrong ends the options, as in BSD and
//! Linux; the segment itself is kept.

use crate::nhrp::internet_checksum;
use crate::{DecodeError, Reader};
use core::fmt;
use core::net::Ipv4Addr;

/// Octets of the header without options.
pub const HEADER_LEN: usize = 20;
/// Most blocks of a selective acknowledgement that fit beside nothing else.
pub const MAX_BLOCKS: usize = 4;
/// Octets of the options of a segment with time stamps, with padding.
pub const TIMESTAMPS_LEN: usize = 12;

const KIND_MSS: u8 = 2;
const KIND_SCALE: u8 = 3;
const KIND_SACK_PERMITTED: u8 = 4;
const KIND_SACK: u8 = 5;
const KIND_TIMESTAMPS: u8 = 8;

/// The control bits of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronization of sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset of the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement number is valid.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is valid.
    pub const URG: Self = Self(0x20);
    /// Echo of a congestion mark.
    pub const ECE: Self = Self(0x40);
    /// The congestion window was reduced.
    pub const CWR: Self = Self(0x80);

    /// True if all bits of `other` are set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// These bits and those of `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    /// These bits without those of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl fmt::Display for Flags {
    /// As tcpdump has it: `S`, `S.`, `P.`, `R`; `-` without any.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = [
            (Self::FIN, 'F'),
            (Self::SYN, 'S'),
            (Self::RST, 'R'),
            (Self::PSH, 'P'),
            (Self::URG, 'U'),
            (Self::ECE, 'E'),
            (Self::CWR, 'W'),
            (Self::ACK, '.'),
        ];
        let mut none = true;
        for (_, letter) in letters.into_iter().filter(|(flag, _)| self.has(*flag)) {
            none = false;
            write!(f, "{letter}")?;
        }
        if none { f.write_str("-") } else { Ok(()) }
    }
}

/// The time stamps of a segment. Source: RFC 7323 §3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeStamps {
    /// Value of the sender's clock.
    pub value: u32,
    /// Value that is echoed; valid with [`Flags::ACK`].
    pub echo: u32,
}

/// The blocks of a selective acknowledgement: first number, and number behind the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    blocks: [(u32, u32); MAX_BLOCKS],
    count: u8,
}

impl Blocks {
    /// Adds a block; `false` if four are there already.
    pub fn push(&mut self, left: u32, right: u32) -> bool {
        let Some(place) = self.blocks.get_mut(usize::from(self.count)) else {
            return false;
        };
        *place = (left, right);
        self.count += 1;
        true
    }
    /// The blocks, in order.
    #[must_use]
    pub fn as_slice(&self) -> &[(u32, u32)] {
        self.blocks.get(..usize::from(self.count)).unwrap_or(&[])
    }
    /// True without a block.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// The options of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum segment size that the sender takes, octets of data.
    pub mss: Option<u16>,
    /// Shift of the sender's windows, 0–255 as received; more than 14 means 14.
    pub window_scale: Option<u8>,
    /// The sender takes selective acknowledgements.
    pub sack_permitted: bool,
    /// Time stamps.
    pub timestamps: Option<TimeStamps>,
    /// Selective acknowledgements.
    pub sack: Blocks,
}

impl Options {
    /// Octets of the encoded options, with padding: each option begins so that it ends at a multiple of four, and
    /// the permission of selective acknowledgements takes the place of the padding in front of time stamps.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        let stamps = if self.timestamps.is_some() {
            TIMESTAMPS_LEN
        } else {
            usize::from(self.sack_permitted) * 4
        };
        let blocks = match self.sack.as_slice().len() {
            0 => 0,
            blocks => 4 + 8 * blocks,
        };
        self.mss.map_or(0, |_| 4) + stamps + self.window_scale.map_or(0, |_| 4) + blocks
    }
    fn decode(octets: &[u8]) -> Self {
        let mut options = Self::default();
        let mut reader = Reader::new(octets);
        while let Ok(kind) = reader.u8("option kind") {
            match kind {
                0 => break,
                1 => continue,
                _ => {}
            }
            let Some(value) = (|| {
                let length = usize::from(reader.u8("option length").ok()?);
                reader.take("option", length.checked_sub(2)?).ok()
            })() else {
                break;
            };
            options.read(kind, value);
        }
        options
    }
    /// Takes one option, if its length is that of its kind.
    fn read(&mut self, kind: u8, value: &[u8]) {
        match (kind, value) {
            (KIND_MSS, [a, b]) => self.mss = Some(u16::from_be_bytes([*a, *b])),
            (KIND_SCALE, [shift]) => self.window_scale = Some(*shift),
            (KIND_SACK_PERMITTED, []) => self.sack_permitted = true,
            (KIND_TIMESTAMPS, [a, b, c, d, e, f, g, h]) => {
                self.timestamps = Some(TimeStamps {
                    value: u32::from_be_bytes([*a, *b, *c, *d]),
                    echo: u32::from_be_bytes([*e, *f, *g, *h]),
                });
            }
            (KIND_SACK, blocks) if !blocks.is_empty() && blocks.len().is_multiple_of(8) => {
                self.sack = Blocks::default();
                let mut reader = Reader::new(blocks);
                while let (Ok(left), Ok(right)) =
                    (reader.u32("left edge"), reader.u32("right edge"))
                {
                    if !self.sack.push(left, right) {
                        break;
                    }
                }
            }
            _ => {}
        }
    }
    fn encode(&self, out: &mut Vec<u8>) {
        const NOP: u8 = 1;
        if let Some(mss) = self.mss {
            out.extend([KIND_MSS, 4]);
            out.extend(mss.to_be_bytes());
        }
        match (self.sack_permitted, self.timestamps) {
            (true, Some(_)) => out.extend([KIND_SACK_PERMITTED, 2]),
            (true, None) => out.extend([NOP, NOP, KIND_SACK_PERMITTED, 2]),
            (false, Some(_)) => out.extend([NOP, NOP]),
            (false, None) => {}
        }
        if let Some(TimeStamps { value, echo }) = self.timestamps {
            out.extend([KIND_TIMESTAMPS, 10]);
            out.extend(value.to_be_bytes());
            out.extend(echo.to_be_bytes());
        }
        if let Some(shift) = self.window_scale {
            out.extend([NOP, KIND_SCALE, 3, shift]);
        }
        let blocks = self.sack.as_slice();
        if !blocks.is_empty() {
            out.extend([NOP, NOP, KIND_SACK, (2 + 8 * blocks.len()) as u8]);
            for (left, right) in blocks {
                out.extend(left.to_be_bytes());
                out.extend(right.to_be_bytes());
            }
        }
    }
}

/// The header of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Source port.
    pub source: u16,
    /// Destination port.
    pub destination: u16,
    /// Number of the first octet of data, or of SYN.
    pub seq: u32,
    /// Number that is expected next; valid with [`Flags::ACK`].
    pub ack: u32,
    /// Control bits.
    pub flags: Flags,
    /// Window as on the wire: not scaled.
    pub window: u16,
    /// Urgent pointer; valid with [`Flags::URG`].
    pub urgent: u16,
    /// Options.
    pub options: Options,
}

impl Segment {
    /// Reads a segment and gives its data beside it. The checksum is not verified here: see [`checksum_ok`].
    ///
    /// # Errors
    /// `Short` if the header is not complete; `Value` for a data offset below 5 words.
    pub fn decode(octets: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        let mut reader = Reader::new(octets);
        let source = reader.u16("source port")?;
        let destination = reader.u16("destination port")?;
        let seq = reader.u32("sequence number")?;
        let ack = reader.u32("acknowledgement number")?;
        let offset = reader.u8("data offset")?;
        let flags = Flags(reader.u8("control bits")?);
        let window = reader.u16("window")?;
        reader.u16("checksum")?;
        let urgent = reader.u16("urgent pointer")?;
        let length = usize::from(offset >> 4) * 4;
        let options = length.checked_sub(HEADER_LEN).ok_or(DecodeError::value(
            "data offset",
            12,
            (offset >> 4).into(),
        ))?;
        let options = Options::decode(reader.take("options", options)?);
        let segment = Self {
            source,
            destination,
            seq,
            ack,
            flags,
            window,
            urgent,
            options,
        };
        Ok((segment, reader.rest()))
    }
    /// Octets of the encoded header, options included.
    #[must_use]
    pub fn header_len(&self) -> usize {
        HEADER_LEN + self.options.encoded_len()
    }
    /// The segment with `data`, appended to `out`, with its checksum between these addresses.
    pub fn encode(&self, data: &[u8], from: Ipv4Addr, to: Ipv4Addr, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend(self.source.to_be_bytes());
        out.extend(self.destination.to_be_bytes());
        out.extend(self.seq.to_be_bytes());
        out.extend(self.ack.to_be_bytes());
        out.extend([(self.header_len() / 4) as u8 * 16, self.flags.0]);
        out.extend(self.window.to_be_bytes());
        out.extend([0, 0]);
        out.extend(self.urgent.to_be_bytes());
        self.options.encode(out);
        out.extend(data);
        let sum = checksum(out.get(start..).unwrap_or_default(), from, to);
        if let Some(place) = out.get_mut(start + 16..start + 18) {
            place.copy_from_slice(&sum.to_be_bytes());
        }
    }
    /// Numbers that the segment takes: octets of data, SYN and FIN.
    #[must_use]
    pub const fn sequence_len(&self, data: usize) -> u32 {
        data as u32 + self.flags.has(Flags::SYN) as u32 + self.flags.has(Flags::FIN) as u32
    }
}

impl fmt::Display for Segment {
    /// `S 100 ack 7 win 65535 <mss 1460>`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.flags, self.seq)?;
        if self.flags.has(Flags::ACK) {
            write!(f, " ack {}", self.ack)?;
        }
        write!(f, " win {}", self.window)?;
        for (left, right) in self.options.sack.as_slice() {
            write!(f, " sack {left}:{right}")?;
        }
        Ok(())
    }
}

/// The checksum over pseudo header and segment; 0 if the checksum in the segment is right.
fn checksum(octets: &[u8], from: Ipv4Addr, to: Ipv4Addr) -> u16 {
    let mut pseudo = [0; 12];
    pseudo[..4].copy_from_slice(&from.octets());
    pseudo[4..8].copy_from_slice(&to.octets());
    pseudo[9] = crate::ipv4::TCP;
    pseudo[10..].copy_from_slice(&(octets.len() as u16).to_be_bytes());
    // The pseudo header has an even length, so the two sums may be added.
    let sum = u32::from(!internet_checksum(&pseudo)) + u32::from(!internet_checksum(octets));
    !((sum & 0xffff) + (sum >> 16)) as u16
}

/// True if the checksum of an encoded segment between these addresses is right.
#[must_use]
pub fn checksum_ok(octets: &[u8], from: Ipv4Addr, to: Ipv4Addr) -> bool {
    checksum(octets, from, to) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FROM: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
    const TO: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);

    fn options() -> impl Strategy<Value = Options> {
        let blocks = prop::collection::vec((any::<u32>(), any::<u32>()), 0..=2);
        let all = (
            any::<Option<u16>>(),
            any::<Option<u8>>(),
            any::<bool>(),
            prop::option::of((any::<u32>(), any::<u32>())),
            blocks,
        );
        all.prop_map(|(mss, window_scale, sack_permitted, stamps, blocks)| {
            let mut sack = Blocks::default();
            for (left, right) in blocks {
                sack.push(left, right);
            }
            Options {
                mss,
                window_scale,
                sack_permitted,
                timestamps: stamps.map(|(value, echo)| TimeStamps { value, echo }),
                sack,
            }
        })
    }

    proptest! {
        #[test]
        fn what_is_encoded_decodes(
            (source, destination, seq, ack) in any::<(u16, u16, u32, u32)>(),
            (flags, window, urgent) in any::<(u8, u16, u16)>(),
            options in options(),
            data in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            let flags = Flags(flags);
            let segment = Segment { source, destination, seq, ack, flags, window, urgent, options };
            let mut octets = Vec::new();
            segment.encode(&data, FROM, TO, &mut octets);
            prop_assert_eq!(octets.len(), segment.header_len() + data.len());
            prop_assert!(checksum_ok(&octets, FROM, TO));
            prop_assert_eq!(Segment::decode(&octets), Ok((segment, &data[..])));
        }

        #[test]
        fn no_octets_panic(octets in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = Segment::decode(&octets);
            let _ = checksum_ok(&octets, FROM, TO);
        }
    }

    /// The layouts that RFC 7323 appendix A and RFC 2018 §3 draw: two no-operations in front of each option.
    #[test]
    fn options_are_aligned_as_the_standards_advise() {
        let stamps = TimeStamps { value: 1, echo: 2 };
        let mut options = Options {
            timestamps: Some(stamps),
            ..Options::default()
        };
        let mut out = Vec::new();
        options.encode(&mut out);
        assert_eq!(out, [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
        options.sack.push(5, 9);
        out.clear();
        options.encode(&mut out);
        assert_eq!(out[12..], [1, 1, 5, 10, 0, 0, 0, 5, 0, 0, 0, 9]);
    }

    #[test]
    fn a_bad_option_ends_the_options_and_keeps_the_segment() {
        let mut octets = vec![0; 20];
        octets[12] = 7 << 4;
        octets.extend([3, 3, 7, 2, 1, 2, 4, 0]);
        let (segment, data) = Segment::decode(&octets).expect("a header");
        assert_eq!(segment.options.window_scale, Some(7));
        assert_eq!((segment.options.mss, data), (None, &[][..]));
        octets[12] = 4 << 4;
        assert!(Segment::decode(&octets).is_err());
    }
}
