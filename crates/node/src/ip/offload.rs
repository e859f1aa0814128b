//! Completing frames that a kernel left to its network card: checksums, and segmentation of TCP and UDP.
//!
//! A TAP with a virtio header delivers frames whose transport checksum covers only the pseudo header (flag
//! `NEEDS_CSUM`), and TCP or UDP "super frames" of up to 64 KiB that stand for many segments (`gso_type`). There is no
//! network card behind AAL5, so both are completed here. The function is pure.
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

/// Largest frame accepted, octets: 64 KiB of IP and an Ethernet header.
const MAX_FRAME: usize = 65_535 + 14;
const ETHERNET_HEADER: usize = 14;
const TCP_FIN: u8 = 0x01;
const TCP_PSH: u8 = 0x08;
const TCP_CWR: u8 = 0x80;

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
        let [
            flags,
            gso_type,
            _,
            _,
            size_0,
            size_1,
            start_0,
            start_1,
            offset_0,
            offset_1,
        ] = *octets;
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
            gso_size: u16::from_le_bytes([size_0, size_1]),
            csum_start: u16::from_le_bytes([start_0, start_1]),
            csum_offset: u16::from_le_bytes([offset_0, offset_1]),
        })
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
    segment(header, frame).ok_or(OffloadError::Frame)
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

/// Offsets of the headers of a super frame.
struct Layout {
    is_v4: bool,
    is_tcp: bool,
    /// First octet of the transport header.
    transport: usize,
    /// First octet of the payload.
    payload: usize,
    /// Octet after the payload.
    end: usize,
}

fn layout(header: &VnetHeader, frame: &[u8]) -> Option<Layout> {
    let is_tcp = header.gso_type != GsoType::UdpL4;
    let (is_v4, transport, protocol, end) = match frame.get(12..14)? {
        [0x08, 0x00] => {
            let first = *frame.get(ETHERNET_HEADER)?;
            let length = usize::from(first & 0x0f) * 4;
            let total = usize::from(read_u16(frame, ETHERNET_HEADER + 2)?);
            let protocol = *frame.get(ETHERNET_HEADER + 9)?;
            if first >> 4 != 4 || length < 20 {
                return None;
            }
            (
                true,
                ETHERNET_HEADER + length,
                protocol,
                ETHERNET_HEADER + total,
            )
        }
        [0x86, 0xdd] => {
            let transport = ETHERNET_HEADER + 40;
            let length = usize::from(read_u16(frame, ETHERNET_HEADER + 4)?);
            (
                false,
                transport,
                *frame.get(ETHERNET_HEADER + 6)?,
                transport + length,
            )
        }
        _ => return None,
    };
    let matches = match header.gso_type {
        GsoType::TcpV4 => is_v4 && protocol == 6,
        GsoType::TcpV6 => !is_v4 && protocol == 6,
        GsoType::UdpL4 => protocol == 17,
        GsoType::None => false,
    };
    let transport_length = if is_tcp {
        usize::from(*frame.get(transport + 12)? >> 4) * 4
    } else {
        8
    };
    let payload = transport + transport_length;
    // A super frame has payload, and the kernel adds no padding to it.
    let whole = payload < end && end <= frame.len() && header.gso_size > 0;
    (matches && whole && (!is_tcp || transport_length >= 20)).then_some(Layout {
        is_v4,
        is_tcp,
        transport,
        payload,
        end,
    })
}

fn segment(header: &VnetHeader, frame: &[u8]) -> Option<Vec<Vec<u8>>> {
    let layout = layout(header, frame)?;
    let headers = frame.get(..layout.payload)?;
    let payload = frame.get(layout.payload..layout.end)?;
    let size = usize::from(header.gso_size);
    let count = payload.len().div_ceil(size);
    let mut segments = Vec::with_capacity(count);
    for (number, part) in payload.chunks(size).enumerate() {
        let mut segment = Vec::with_capacity(headers.len() + part.len());
        segment.extend_from_slice(headers);
        segment.extend_from_slice(part);
        fix_network(&mut segment, &layout, number)?;
        if layout.is_tcp {
            fix_tcp(&mut segment, &layout, number, size, number + 1 == count)?;
        } else {
            let length = u16::try_from(segment.len() - layout.transport).ok()?;
            write_u16(&mut segment, layout.transport + 4, length)?;
        }
        fix_transport_checksum(&mut segment, &layout)?;
        segments.push(segment);
    }
    Some(segments)
}

/// Length, identification (one more for each segment, as hardware does) and header checksum.
fn fix_network(segment: &mut [u8], layout: &Layout, number: usize) -> Option<()> {
    if layout.is_v4 {
        let total = u16::try_from(segment.len() - ETHERNET_HEADER).ok()?;
        write_u16(segment, ETHERNET_HEADER + 2, total)?;
        let ident = read_u16(segment, ETHERNET_HEADER + 4)?.wrapping_add(number as u16);
        write_u16(segment, ETHERNET_HEADER + 4, ident)?;
        write_u16(segment, ETHERNET_HEADER + 10, 0)?;
        let sum = fold(add(0, segment.get(ETHERNET_HEADER..layout.transport)?));
        write_u16(segment, ETHERNET_HEADER + 10, !sum)
    } else {
        let length = u16::try_from(segment.len() - layout.transport).ok()?;
        write_u16(segment, ETHERNET_HEADER + 4, length)
    }
}

/// Sets the sequence number; FIN and PSH only in the last segment, CWR only in the first.
fn fix_tcp(
    segment: &mut [u8],
    layout: &Layout,
    number: usize,
    size: usize,
    is_last: bool,
) -> Option<()> {
    let at = layout.transport + 4;
    let octets: &mut [u8; 4] = segment.get_mut(at..)?.first_chunk_mut()?;
    // A super frame has at most 64 KiB, so this does not truncate.
    let sequence = u32::from_be_bytes(*octets).wrapping_add((number * size) as u32);
    *octets = sequence.to_be_bytes();
    let flags = segment.get_mut(layout.transport + 13)?;
    if !is_last {
        *flags &= !(TCP_FIN | TCP_PSH);
    }
    if number > 0 {
        *flags &= !TCP_CWR;
    }
    Some(())
}

fn fix_transport_checksum(segment: &mut [u8], layout: &Layout) -> Option<()> {
    let (protocol, offset) = if layout.is_tcp { (6u8, 16) } else { (17u8, 6) };
    write_u16(segment, layout.transport + offset, 0)?;
    let addresses = if layout.is_v4 { 26..34 } else { 22..54 };
    let length = u32::try_from(segment.len() - layout.transport).ok()?;
    let mut sum = add(0, segment.get(addresses)?);
    sum = add(sum, &length.to_be_bytes());
    sum += u64::from(protocol);
    let sum = fold(add(sum, segment.get(layout.transport..)?));
    let sum = if !layout.is_tcp && sum == 0xffff {
        0
    } else {
        sum
    };
    write_u16(segment, layout.transport + offset, !sum)
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
