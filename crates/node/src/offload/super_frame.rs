//! A frame of a kernel that stands for many segments: its segments, and parts of it as super frames of their own.
//!
//! The octets lie behind some spare memory, so that the header of an encapsulation can take the place of the Ethernet
//! header, or stand in front of it, without a copy. A segment is what the encapsulation has in front of the IP header,
//! the headers of IP and transport with the values of this segment, and its share of the payload.

use super::{ETHERNET_HEADER, GsoType, MAX_FRAME, OffloadError, VnetHeader};
use super::{add, fold, read_u16, write_u16};
use core::ops::Range;

/// Limit of segments: 64 KiB in segments of 48 octets, the least that Linux makes of TCP.
const MOST_SEGMENTS: usize = 1366;
const TCP_FIN: u8 = 0x01;
const TCP_PSH: u8 = 0x08;
const TCP_CWR: u8 = 0x80;

/// A checked super frame. See the documentation of this module.
#[derive(Clone, Debug)]
pub struct SuperFrame {
    memory: Vec<u8>,
    /// First octet of the frame or SDU.
    start: usize,
    layout: Layout,
    /// Octets of payload in each segment except the last one, above 0.
    size: usize,
    /// Shorter segments are padded with zeros to this length.
    least: usize,
}

/// Places in the memory, and the kinds of the headers.
#[derive(Clone, Copy, Debug)]
struct Layout {
    is_v4: bool,
    is_tcp: bool,
    /// First octet of the IP header.
    network: usize,
    /// First octet of the transport header.
    transport: usize,
    /// First octet of the payload.
    payload: usize,
    /// Octet after the payload.
    end: usize,
}

/// A part of a super frame as a kernel takes it: vnet header, headers, and payload.
#[derive(Debug)]
pub struct KernelPart<'a> {
    /// The vnet header, without `num_buffers`.
    pub vnet: [u8; VnetHeader::LEN],
    /// Everything in front of the payload.
    pub headers: Vec<u8>,
    /// The payload.
    pub payload: &'a [u8],
}

fn layout(header: &VnetHeader, frame: &[u8]) -> Option<Layout> {
    let is_tcp = header.gso_type != GsoType::UdpL4;
    let network = ETHERNET_HEADER;
    let (is_v4, transport, protocol, end) = match frame.get(12..14)? {
        [0x08, 0x00] => {
            let first = *frame.get(network)?;
            let length = usize::from(first & 0x0f) * 4;
            let total = usize::from(read_u16(frame, network + 2)?);
            let protocol = *frame.get(network + 9)?;
            if first >> 4 != 4 || length < 20 {
                return None;
            }
            (true, network + length, protocol, network + total)
        }
        [0x86, 0xdd] => {
            let transport = network + 40;
            let length = usize::from(read_u16(frame, network + 4)?);
            (
                false,
                transport,
                *frame.get(network + 6)?,
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
    let few = whole && (end - payload).div_ceil(header.gso_size.into()) <= MOST_SEGMENTS;
    (matches && few && (!is_tcp || transport_length >= 20)).then_some(Layout {
        is_v4,
        is_tcp,
        network,
        transport,
        payload,
        end,
    })
}

impl Layout {
    /// The same places, when `octets` more octets are in front.
    const fn behind(self, octets: usize) -> Self {
        Self {
            network: self.network + octets,
            transport: self.transport + octets,
            payload: self.payload + octets,
            end: self.end + octets,
            ..self
        }
    }
    /// The same places, from the octet `front` octets before the IP header on.
    const fn with_front(self, front: usize) -> Self {
        let cut = self.network - front;
        Self {
            network: front,
            transport: self.transport - cut,
            payload: self.payload - cut,
            end: self.end - cut,
            ..self
        }
    }
}

impl SuperFrame {
    /// Checks the Ethernet frame that begins at `start` in `memory`; what is in front of it is spare.
    ///
    /// # Errors
    /// [`OffloadError::Frame`] if the frame is no super frame, or does not agree with its header.
    pub fn new(header: &VnetHeader, memory: Vec<u8>, start: usize) -> Result<Self, OffloadError> {
        let frame = memory.get(start..).ok_or(OffloadError::Frame)?;
        if frame.len() > MAX_FRAME {
            return Err(OffloadError::Frame);
        }
        let layout = layout(header, frame).ok_or(OffloadError::Frame)?;
        Ok(Self {
            layout: layout.behind(start),
            memory,
            start,
            size: header.gso_size.into(),
            least: 0,
        })
    }

    /// Number of segments, at least 1.
    #[must_use]
    pub fn count(&self) -> usize {
        self.payload().len().div_ceil(self.size)
    }
    /// The frame or SDU: the headers, with the lengths of the whole, and all payload.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        self.memory
            .get(self.start..self.layout.end)
            .unwrap_or_default()
    }
    /// The same octets, to change fields of the headers that all segments have.
    pub fn octets_mut(&mut self) -> &mut [u8] {
        self.memory
            .get_mut(self.start..self.layout.end)
            .unwrap_or_default()
    }
    fn payload(&self) -> &[u8] {
        let Layout { payload, end, .. } = self.layout;
        self.memory.get(payload..end).unwrap_or_default()
    }
    /// Octets of the headers of a segment.
    const fn headers(&self) -> usize {
        self.layout.payload - self.start
    }
    /// Octets of the segment `index`, with padding.
    #[must_use]
    pub fn length(&self, index: usize) -> usize {
        (self.headers() + self.share(index..index + 1).len()).max(self.least)
    }
    /// Octets in front of the IP header.
    #[must_use]
    pub const fn front(&self) -> usize {
        self.layout.network - self.start
    }
    /// Octets of these segments together.
    #[must_use]
    pub fn length_of(&self, segments: Range<usize>) -> usize {
        let last = segments.end.saturating_sub(1);
        let others = last.saturating_sub(segments.start) * self.length(0);
        others + self.length(last)
    }

    /// Puts `header` in front of the octet `at`, and drops the octets before. Segments shorter than `least` will be
    /// padded. False, without any effect, if there is no room or `at` lies behind the IP header.
    pub fn encapsulate(&mut self, header: &[u8], at: usize, least: usize) -> bool {
        let end = self.start + at;
        let start = end.checked_sub(header.len());
        let Some(start) = start.filter(|_| end <= self.layout.network) else {
            return false;
        };
        if let Some(place) = self.memory.get_mut(start..end) {
            place.copy_from_slice(header);
        }
        (self.start, self.least) = (start, least);
        true
    }

    /// The payload of these segments.
    fn share(&self, segments: Range<usize>) -> &[u8] {
        let payload = self.payload();
        let place = |index: usize| index.saturating_mul(self.size).min(payload.len());
        payload
            .get(place(segments.start)..place(segments.end))
            .unwrap_or_default()
    }

    /// All segments as complete frames or SDUs, with their checksums.
    pub fn segments(&self) -> impl Iterator<Item = Vec<u8>> {
        (0..self.count()).map(|index| self.segment(index))
    }

    /// The segment `index` as a complete frame or SDU, with its checksums.
    #[must_use]
    pub fn segment(&self, index: usize) -> Vec<u8> {
        let share = self.share(index..index + 1);
        let mut segment = Vec::with_capacity((self.headers() + share.len()).max(self.least));
        segment.extend_from_slice(self.front_and_headers());
        segment.extend_from_slice(share);
        let layout = self.layout.with_front(self.front());
        // The layout was checked, so no field lies outside.
        let _ = fix_network(&mut segment, &layout, index, share.len());
        let _ = self.fix_transport(&mut segment, &layout, &(index..index + 1), share.len());
        let _ = finish_transport(&mut segment, &layout);
        if segment.len() < self.least {
            segment.resize(self.least, 0);
        }
        segment
    }

    fn front_and_headers(&self) -> &[u8] {
        self.memory
            .get(self.start..self.layout.payload)
            .unwrap_or_default()
    }

    /// These segments as a frame for a kernel: a super frame, or a frame whose transport checksum the kernel has to
    /// complete. `ethernet` takes the place of everything in front of the IP header.
    #[must_use]
    pub fn part(&self, ethernet: &[u8], segments: Range<usize>) -> KernelPart<'_> {
        let payload = self.share(segments.clone());
        let inner = self.layout.network..self.layout.payload;
        let inner = self.memory.get(inner).unwrap_or_default();
        let mut headers = Vec::with_capacity(ethernet.len() + inner.len());
        headers.extend_from_slice(ethernet);
        headers.extend_from_slice(inner);
        let layout = self.layout.with_front(self.front());
        let layout = layout.with_front(0).behind(ethernet.len());
        // The layout was checked, so no field lies outside.
        let _ = fix_network(&mut headers, &layout, segments.start, payload.len());
        let _ = self.fix_transport(&mut headers, &layout, &segments, payload.len());
        let length = layout.payload - layout.transport + payload.len();
        let (at, _) = checksum_place(&layout);
        let pseudo = pseudo_sum(&headers, &layout, length).unwrap_or_default();
        let _ = write_u16(&mut headers, at, fold(pseudo));
        let flags = headers.get(layout.transport + 13).copied();
        let cwr = layout.is_tcp && flags.is_some_and(|flags| flags & TCP_CWR != 0);
        let many = payload.len() > self.size;
        let header = VnetHeader {
            needs_csum: true,
            gso_type: match (many, layout.is_tcp, layout.is_v4) {
                (false, ..) => GsoType::None,
                (true, true, true) => GsoType::TcpV4,
                (true, true, false) => GsoType::TcpV6,
                (true, false, _) => GsoType::UdpL4,
            },
            gso_size: if many { self.size as u16 } else { 0 },
            csum_start: layout.transport as u16,
            csum_offset: (at - layout.transport) as u16,
            hdr_len: layout.payload as u16,
        };
        KernelPart {
            vnet: header.encode(cwr && many),
            headers,
            payload,
        }
    }

    /// The memory, to be used again.
    #[must_use]
    pub fn into_memory(self) -> Vec<u8> {
        self.memory
    }

    /// Sequence number and flags of TCP, or length of UDP, for these segments.
    fn fix_transport(
        &self,
        headers: &mut [u8],
        layout: &Layout,
        segments: &Range<usize>,
        payload: usize,
    ) -> Option<()> {
        if !layout.is_tcp {
            // A super frame has the length of the whole, which the kernel replaces.
            let length = u16::try_from(8 + payload).ok()?;
            return write_u16(headers, layout.transport + 4, length);
        }
        let at = layout.transport + 4;
        let octets: &mut [u8; 4] = headers.get_mut(at..)?.first_chunk_mut()?;
        // A super frame has at most 64 KiB, so this does not truncate.
        let before = (segments.start * self.size) as u32;
        *octets = u32::from_be_bytes(*octets)
            .wrapping_add(before)
            .to_be_bytes();
        let flags = headers.get_mut(layout.transport + 13)?;
        // FIN and PSH are only in the last segment, CWR is only in the first.
        if segments.end < self.count() {
            *flags &= !(TCP_FIN | TCP_PSH);
        }
        if segments.start > 0 {
            *flags &= !TCP_CWR;
        }
        Some(())
    }
}

/// Length, identification (one more for each segment, as hardware does) and header checksum.
fn fix_network(headers: &mut [u8], layout: &Layout, index: usize, payload: usize) -> Option<()> {
    let at = layout.network;
    if layout.is_v4 {
        let total = u16::try_from(layout.payload - at + payload).ok()?;
        write_u16(headers, at + 2, total)?;
        let ident = read_u16(headers, at + 4)?.wrapping_add(index as u16);
        write_u16(headers, at + 4, ident)?;
        write_u16(headers, at + 10, 0)?;
        let sum = fold(add(0, headers.get(at..layout.transport)?));
        write_u16(headers, at + 10, !sum)
    } else {
        let length = u16::try_from(layout.payload - layout.transport + payload).ok()?;
        write_u16(headers, at + 4, length)
    }
}

/// Place of the transport checksum, and the number of the protocol.
const fn checksum_place(layout: &Layout) -> (usize, u8) {
    if layout.is_tcp {
        (layout.transport + 16, 6)
    } else {
        (layout.transport + 6, 17)
    }
}

/// Sum of the pseudo header of `length` octets of transport header and payload.
fn pseudo_sum(headers: &[u8], layout: &Layout, length: usize) -> Option<u64> {
    let at = layout.network;
    let addresses = if layout.is_v4 {
        at + 12..at + 20
    } else {
        at + 8..at + 40
    };
    let length = u32::try_from(length).ok()?;
    let sum = add(0, headers.get(addresses)?);
    Some(add(sum, &length.to_be_bytes()) + u64::from(checksum_place(layout).1))
}

/// Computes the transport checksum of a segment, which ends with its payload.
fn finish_transport(segment: &mut [u8], layout: &Layout) -> Option<()> {
    let (at, _) = checksum_place(layout);
    write_u16(segment, at, 0)?;
    let sum = pseudo_sum(segment, layout, segment.len() - layout.transport)?;
    let sum = fold(add(sum, segment.get(layout.transport..)?));
    let sum = if !layout.is_tcp && sum == 0xffff {
        0
    } else {
        sum
    };
    write_u16(segment, at, !sum)
}
