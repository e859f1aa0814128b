//! Completing frames that a kernel left to its network card: checksums, and segmentation of TCP and UDP.
//!
//! A TAP with a virtio header delivers frames whose transport checksum covers only the pseudo header (flag
//! `NEEDS_CSUM`), and TCP or UDP "super frames" of up to 64 KiB that stand for many segments (`gso_type`). There is no
//! network card behind AAL5, so both are completed here. A [`SuperFrame`] is checked once, and gives its segments one
//! by one, or parts of itself back to a kernel. All functions are pure.
//!
//! The header is little-endian; its last field is optional:
//!
//! ```text
//!  0       1          2         4          6            8             10            12
//! +-------+----------+---------+----------+------------+-------------+-------------+
//! | flags | gso_type | hdr_len | gso_size | csum_start | csum_offset | num_buffers |
//! +-------+----------+---------+----------+------------+-------------+-------------+
//! ```
//!
//! **Standards**: virtio 1.2 §5.1.6 (header, flags, types), §5.1.6.2 (segmentation); RFC 1071
//! (checksum); RFC 3168 §6.1.2 (CWR only in the first segment). **Not implemented**: UFO (IP
//! fragments of a datagram; the driver must not offer it), tunnels, VLAN tags, IPv6 extension
//! headers before TCP or UDP.

mod super_frame;

pub use super_frame::{KernelPart, SuperFrame};

/// Largest frame accepted, octets: 64 KiB of IP and an Ethernet header.
const MAX_FRAME: usize = 65_535 + 14;
const ETHERNET_HEADER: usize = 14;

/// The kind of a super frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GsoType {
    /// An ordinary frame.
    #[default]
    None,
    /// TCP over IPv4 (1).
    TcpV4,
    /// TCP over IPv6 (4).
    TcpV6,
    /// UDP datagrams of equal size, over IPv4 or IPv6 (5).
    UdpL4,
}

/// The header before a frame from a TAP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VnetHeader {
    /// The transport checksum is still to be computed, from `csum_start` to the end.
    pub needs_csum: bool,
    /// The kind of the frame.
    pub gso_type: GsoType,
    /// Octets of payload in each segment.
    pub gso_size: u16,
    /// Where the transport header begins, from the start of the frame.
    pub csum_start: u16,
    /// Offset of the checksum in the transport header.
    pub csum_offset: u16,
    /// Octets of all headers, or 0; only a hint, which is not used.
    pub hdr_len: u16,
}

/// Why a frame could not be completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffloadError {
    /// The header is cut short or of an unknown kind.
    Header,
    /// The frame does not agree with its header.
    Frame,
}

impl VnetHeader {
    /// Octets without `num_buffers`.
    pub const LEN: usize = 10;

    /// Decodes the header at the start of the octets that a TAP delivers.
    ///
    /// # Errors
    /// [`OffloadError::Header`] if it is cut short or has an unknown type.
    pub fn decode(octets: &[u8]) -> Result<Self, OffloadError> {
        let Some(octets) = octets.first_chunk::<{ Self::LEN }>() else {
            return Err(OffloadError::Header);
        };
        let [flags, gso_type, ..] = *octets;
        let word = |at: usize| u16::from_le_bytes([octets[at], octets[at + 1]]);
        // 0x80: the segments carry ECN; the TCP flags say the same.
        let gso_type = match gso_type & !0x80 {
            0 => GsoType::None,
            1 => GsoType::TcpV4,
            4 => GsoType::TcpV6,
            5 => GsoType::UdpL4,
            _ => return Err(OffloadError::Header),
        };
        Ok(Self {
            needs_csum: flags & 1 != 0,
            gso_type,
            hdr_len: word(2),
            gso_size: word(4),
            csum_start: word(6),
            csum_offset: word(8),
        })
    }

    /// The header as a kernel reads it. A super frame whose TCP header has the flag CWR is marked as one with ECN.
    #[must_use]
    pub fn encode(&self, cwr: bool) -> [u8; Self::LEN] {
        let kind = match self.gso_type {
            GsoType::None => 0,
            GsoType::TcpV4 => 1,
            GsoType::TcpV6 => 4,
            GsoType::UdpL4 => 5,
        };
        let kind = if cwr { kind | 0x80 } else { kind };
        let mut octets = [0; Self::LEN];
        octets[0] = self.needs_csum.into();
        octets[1] = kind;
        let words = [
            self.hdr_len,
            self.gso_size,
            self.csum_start,
            self.csum_offset,
        ];
        for (place, word) in octets[2..].as_chunks_mut().0.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
        octets
    }
}

/// Makes complete frames of the octets that a TAP delivered: each has its checksums, and no frame is a super frame.
///
/// # Errors
/// [`OffloadError::Frame`] if the frame does not agree with its header.
pub fn complete(header: &VnetHeader, frame: &[u8]) -> Result<Vec<Vec<u8>>, OffloadError> {
    if frame.len() > MAX_FRAME || frame.len() < ETHERNET_HEADER {
        return Err(OffloadError::Frame);
    }
    if header.gso_type == GsoType::None {
        let mut frame = frame.to_vec();
        if header.needs_csum {
            finish_checksum(&mut frame, header).ok_or(OffloadError::Frame)?;
        }
        return Ok(vec![frame]);
    }
    SuperFrame::new(header, frame.to_vec(), 0).map(|whole| whole.segments().collect())
}

/// Stores the sum from `csum_start` to the end at `csum_offset`, where the sum of the pseudo header already is.
fn finish_checksum(frame: &mut [u8], header: &VnetHeader) -> Option<()> {
    let start = usize::from(header.csum_start);
    let at = start.checked_add(usize::from(header.csum_offset))?;
    frame.get(at..at + 2)?;
    let sum = fold(add(0, frame.get(start..)?));
    // A UDP checksum of 0 means that there is no checksum; all ones is the same number in ones' complement.
    let is_udp = header.csum_offset == 6;
    let sum = if is_udp && sum == 0xffff { 0 } else { sum };
    frame
        .get_mut(at..at + 2)?
        .copy_from_slice(&(!sum).to_be_bytes());
    Some(())
}

/// Adds octets to a ones' complement sum. 64 bits hold the carries of any frame.
fn add(sum: u64, octets: &[u8]) -> u64 {
    let mut words = octets.chunks_exact(2);
    let even: u64 = words
        .by_ref()
        .map(|w| u64::from(u16::from_be_bytes([w[0], w[1]])))
        .sum();
    let odd = words
        .remainder()
        .first()
        .map_or(0, |last| u64::from(*last) << 8);
    sum + even + odd
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn read_u16(octets: &[u8], at: usize) -> Option<u16> {
    octets
        .get(at..)?
        .first_chunk()
        .map(|two| u16::from_be_bytes(*two))
}

fn write_u16(octets: &mut [u8], at: usize, value: u16) -> Option<()> {
    octets
        .get_mut(at..at + 2)?
        .copy_from_slice(&value.to_be_bytes());
    Some(())
}

#[cfg(test)]
mod tests;
