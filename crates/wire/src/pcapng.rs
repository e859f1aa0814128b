//! Captures: pcapng files that Wireshark reads, one interface per link end.
//!
//! Three forms. SUNATM (123): a 4-octet pseudo header and the SDU; Wireshark decodes everything
//! above it. ERF type 4 (197): the whole CPCS-PDU with padding and trailer behind the cell header. ERF type 3 (197): a
//! single cell without its HEC, as cards of the time recorded them.
//! Times are nanoseconds. Directions, names and drop reasons are packet and interface options.
//!
//! Standards: draft-ietf-opsawg-pcapng; LINKTYPE_SUNATM and LINKTYPE_ERF of the libpcap registry.

use crate::cell::{Cell, CellHeader, HeaderForm};
use crate::{Vc, aal5};
use std::io::{self, Write};

/// How an interface's packets are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// SUNATM: the SDU behind VPI and VCI.
    SunAtm,
    /// ERF, type AAL5: the whole PDU behind its cell header.
    ErfAal5,
    /// ERF, type ATM: single cells.
    ErfCells,
}

/// Direction seen from the link end that the interface stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Received by this end.
    Received,
    /// Sent by this end.
    Sent,
}

/// An interface of a capture, from [`PcapNg::interface`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InterfaceId(u32);

/// One SDU at a link end.
#[derive(Clone, Copy, Debug)]
pub struct CapturedSdu<'a> {
    /// Interface at which the SDU was seen.
    pub interface: InterfaceId,
    /// Nanoseconds since the epoch of the capture.
    pub time_ns: u64,
    /// Direction.
    pub direction: Direction,
    /// Its connection on this link.
    pub vc: Vc,
    /// Cell loss priority.
    pub clp: bool,
    /// User-to-user octet.
    pub uu: u8,
    /// The SDU.
    pub sdu: &'a [u8],
    /// Reason of the drop, if the SDU was dropped here.
    pub dropped: Option<&'a str>,
}

/// One cell at a link end.
#[derive(Clone, Copy, Debug)]
pub struct CapturedCell<'a> {
    /// Interface at which the cell was seen; it must be of [`LinkType::ErfCells`].
    pub interface: InterfaceId,
    /// Nanoseconds since the epoch of the capture.
    pub time_ns: u64,
    /// Direction.
    pub direction: Direction,
    /// The cell; its header is written in the form of the NNI.
    pub cell: &'a Cell,
    /// Reason of the drop, if the cell was dropped here.
    pub dropped: Option<&'a str>,
}

/// Writes a capture to `W`. Blocks are complete at every return, so a reader may follow the file.
#[derive(Debug)]
pub struct PcapNg<W: Write> {
    out: W,
    interfaces: Vec<LinkType>,
    block: Vec<u8>,
    octets: u64,
}

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const OPT_COMMENT: u16 = 1;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_TSRESOL: u16 = 9;
const SHB_USERAPPL: u16 = 4;
const EPB_FLAGS: u16 = 2;
const ISB_IFDROP: u16 = 5;
const ERF_TYPE_ATM: u8 = 3;
const ERF_TYPE_AAL5: u8 = 4;
const ERF_HEADER_LEN: usize = 16;

impl<W: Write> PcapNg<W> {
    /// Starts a capture; `comment` goes into the section header (name of the lab, seed).
    ///
    /// # Errors
    /// The errors of `out`.
    pub fn new(out: W, comment: &str) -> io::Result<Self> {
        let mut this = Self {
            out,
            interfaces: Vec::new(),
            block: Vec::new(),
            octets: 0,
        };
        this.begin(SECTION_HEADER);
        this.u32(0x1a2b_3c4d);
        this.u16(1);
        this.u16(0);
        this.block.extend_from_slice(&u64::MAX.to_le_bytes());
        this.option(SHB_USERAPPL, b"aerostat");
        if !comment.is_empty() {
            this.option(OPT_COMMENT, comment.as_bytes());
        }
        this.end()?;
        Ok(this)
    }

    /// Adds an interface.
    ///
    /// # Errors
    /// The errors of the output.
    pub fn interface(
        &mut self,
        link_type: LinkType,
        name: &str,
        description: &str,
    ) -> io::Result<InterfaceId> {
        let id = InterfaceId(self.interfaces.len() as u32);
        self.interfaces.push(link_type);
        self.begin(INTERFACE_DESCRIPTION);
        self.u16(match link_type {
            LinkType::SunAtm => 123,
            LinkType::ErfAal5 | LinkType::ErfCells => 197,
        });
        self.u16(0);
        self.u32(0);
        self.option(IF_NAME, name.as_bytes());
        if !description.is_empty() {
            self.option(IF_DESCRIPTION, description.as_bytes());
        }
        self.option(IF_TSRESOL, &[9]);
        self.end()?;
        Ok(id)
    }

    /// Adds one SDU.
    ///
    /// # Errors
    /// The errors of the output; `InvalidInput` for an SDU of no valid length or an unknown interface.
    pub fn sdu(&mut self, packet: &CapturedSdu<'_>) -> io::Result<()> {
        let link_type = self.link_type(packet.interface);
        let valid = (1..=aal5::MAX_SDU).contains(&packet.sdu.len());
        let Some(link_type) = link_type.filter(|_| valid) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let lengths_at = self.begin_packet(packet.interface, packet.time_ns);
        match link_type {
            LinkType::SunAtm => self.sunatm(packet),
            LinkType::ErfAal5 => self.erf(packet),
            LinkType::ErfCells => return Err(io::ErrorKind::InvalidInput.into()),
        }
        self.end_of_octets(lengths_at, packet.direction, packet.dropped);
        if link_type == LinkType::SunAtm && packet.vc.vpi > 255 {
            self.option(OPT_COMMENT, format!("VPI {}", packet.vc.vpi).as_bytes());
        }
        self.end()
    }

    /// Adds one cell.
    ///
    /// # Errors
    /// The errors of the output; `InvalidInput` for an interface that is not of [`LinkType::ErfCells`].
    pub fn cell(&mut self, packet: &CapturedCell<'_>) -> io::Result<()> {
        if self.link_type(packet.interface) != Some(LinkType::ErfCells) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let lengths_at = self.begin_packet(packet.interface, packet.time_ns);
        let length = 4 + packet.cell.payload.len();
        self.erf_header(ERF_TYPE_ATM, (packet.time_ns, packet.direction), length);
        let header = packet.cell.header.to_word(HeaderForm::Nni);
        self.block.extend_from_slice(&header.to_be_bytes());
        self.block.extend_from_slice(&packet.cell.payload);
        self.end_of_octets(lengths_at, packet.direction, packet.dropped);
        self.end()
    }

    fn link_type(&self, interface: InterfaceId) -> Option<LinkType> {
        self.interfaces.get(interface.0 as usize).copied()
    }

    /// Begins a packet's block; returns the offset of its length fields.
    fn begin_packet(&mut self, interface: InterfaceId, time_ns: u64) -> usize {
        self.begin(ENHANCED_PACKET);
        self.u32(interface.0);
        self.u32((time_ns >> 32) as u32);
        self.u32(time_ns as u32);
        let lengths_at = self.block.len();
        self.u32(0);
        self.u32(0);
        lengths_at
    }

    /// Completes a packet whose octets have all been written: fills in the lengths and adds the options.
    fn end_of_octets(&mut self, lengths_at: usize, direction: Direction, dropped: Option<&str>) {
        let start = lengths_at + 8;
        let len = ((self.block.len() - start) as u32).to_le_bytes();
        if let Some(lengths) = self.block.get_mut(lengths_at..start) {
            lengths.copy_from_slice(&[len, len].concat());
        }
        self.pad();
        let direction: u32 = match direction {
            Direction::Received => 1,
            Direction::Sent => 2,
        };
        self.option(EPB_FLAGS, &direction.to_le_bytes());
        if let Some(reason) = dropped {
            self.option(OPT_COMMENT, format!("dropped: {reason}").as_bytes());
        }
    }

    /// Records that `dropped` packets of this interface, all together, are missing from the capture itself.
    ///
    /// # Errors
    /// The errors of the output.
    pub fn missing(
        &mut self,
        interface: InterfaceId,
        time_ns: u64,
        dropped: u64,
    ) -> io::Result<()> {
        self.begin(INTERFACE_STATISTICS);
        self.u32(interface.0);
        self.u32((time_ns >> 32) as u32);
        self.u32(time_ns as u32);
        self.option(ISB_IFDROP, &dropped.to_le_bytes());
        self.end()
    }

    /// Octets written so far, also those that the output has in a buffer.
    #[must_use]
    pub const fn octets(&self) -> u64 {
        self.octets
    }

    /// Flushes buffered blocks to the output.
    ///
    /// # Errors
    /// The errors of the output.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// The output, for a caller who takes the written blocks out of it.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Gives the output back.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn sunatm(&mut self, packet: &CapturedSdu<'_>) {
        let traffic = traffic_type(packet.vc, packet.sdu);
        let sent = match packet.direction {
            Direction::Sent => 0x80,
            Direction::Received => 0,
        };
        let [high, low] = packet.vc.vci.to_be_bytes();
        self.block
            .extend_from_slice(&[sent | traffic, packet.vc.vpi as u8, high, low]);
        self.block.extend_from_slice(packet.sdu);
    }

    fn erf(&mut self, packet: &CapturedSdu<'_>) {
        let pdu = aal5::encode_pdu(packet.sdu, packet.uu);
        let wire_len = pdu.len() + 4;
        let record_len = (wire_len + ERF_HEADER_LEN).min(usize::from(u16::MAX));
        self.erf_header(ERF_TYPE_AAL5, (packet.time_ns, packet.direction), wire_len);
        let header = CellHeader {
            clp: packet.clp,
            ..CellHeader::user(packet.vc, true)
        };
        self.block
            .extend_from_slice(&header.to_word(HeaderForm::Nni).to_be_bytes());
        let kept = pdu.len().min(record_len - ERF_HEADER_LEN - 4);
        self.block
            .extend_from_slice(pdu.get(..kept).unwrap_or_default());
    }

    /// The header of an ERF record of `wire_len` octets.
    fn erf_header(&mut self, kind: u8, (time_ns, direction): (u64, Direction), wire_len: usize) {
        let record_len = (wire_len + ERF_HEADER_LEN).min(usize::from(u16::MAX));
        // 32.32 fixed-point seconds, little endian.
        let (seconds, nanos) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
        let time = (seconds << 32) | ((nanos << 32) / 1_000_000_000);
        self.block.extend_from_slice(&time.to_le_bytes());
        // Flags: variable length records; the low two bits are the port, here the direction in
        // Wireshark's sense (0 is DTE to DCE).
        let port = match direction {
            Direction::Sent => 0,
            Direction::Received => 1,
        };
        self.block.extend_from_slice(&[kind, 4 | port]);
        for value in [record_len, 0, wire_len.min(usize::from(u16::MAX))] {
            self.block.extend_from_slice(&(value as u16).to_be_bytes());
        }
    }

    fn begin(&mut self, block_type: u32) {
        self.block.clear();
        self.u32(block_type);
        self.u32(0);
    }
    fn end(&mut self) -> io::Result<()> {
        self.option(0, &[]);
        let total = (self.block.len() as u32 + 4).to_le_bytes();
        if let Some(field) = self.block.get_mut(4..8) {
            field.copy_from_slice(&total);
        }
        self.block.extend_from_slice(&total);
        self.out.write_all(&self.block)?;
        self.octets += self.block.len() as u64;
        Ok(())
    }
    fn u16(&mut self, value: u16) {
        self.block.extend_from_slice(&value.to_le_bytes());
    }
    fn u32(&mut self, value: u32) {
        self.block.extend_from_slice(&value.to_le_bytes());
    }
    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }
    fn option(&mut self, code: u16, value: &[u8]) {
        let value = value.get(..usize::from(u16::MAX)).unwrap_or(value);
        self.u16(code);
        self.u16(value.len() as u16);
        self.block.extend_from_slice(value);
        self.pad();
    }
}

/// The traffic type of a SUNATM packet, as far as label and contents show it. Wireshark's own guess is less reliable.
///
/// No field of an SDU tells that it is a LANE data frame. An SDU counts as one if an Ethernet frame with a plausible
/// type or length follows a valid LECID. An IP packet on a VC-multiplexed connection begins with a version and a header
/// length that agree with its length; this test comes first.
fn traffic_type(vc: Vc, sdu: &[u8]) -> u8 {
    // Source: Wireshark's and libpcap's values for the pseudo header.
    let (unknown, lane, llc, ilmi, signalling) = (0, 1, 2, 5, 6);
    match vc {
        Vc::ILMI => return ilmi,
        Vc::SIGNALLING => return signalling,
        _ => {}
    }
    match *sdu {
        // SNAP, and the NLPID of PPP.
        [0xaa, 0xaa, 3, ..] | [0xfe, 0xfe, 3, ..] => llc,
        // Marker, protocol and version of a LANE control frame.
        [0xff, 0x00, 0x01, 0x01, ..] => lane,
        [0x45..=0x4f, _, high, low, ..]
            if usize::from(u16::from_be_bytes([high, low])) == sdu.len() =>
        {
            unknown
        }
        [
            high,
            low,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            type_high,
            type_low,
            ..,
        ] if u16::from_be_bytes([high, low]) <= 0xfeff => {
            match u16::from_be_bytes([type_high, type_low]) {
                0..=0x05dc | 0x0800 | 0x0806 | 0x86dd | 0x8100 => lane,
                _ => unknown,
            }
        }
        _ => unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(link_type: LinkType, packets: &[(Vc, &[u8], Option<&str>)]) -> Vec<u8> {
        let mut file = PcapNg::new(Vec::new(), "test").unwrap();
        let interface = file.interface(link_type, "a.0", "a to sw").unwrap();
        for (vc, sdu, dropped) in packets {
            file.sdu(&CapturedSdu {
                interface,
                time_ns: 5_000_000_123,
                direction: Direction::Sent,
                vc: *vc,
                clp: false,
                uu: 0,
                sdu,
                dropped: *dropped,
            })
            .unwrap();
        }
        file.into_inner()
    }

    /// Splits a file into (type, body), checking both length fields and alignment.
    fn blocks(mut file: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let mut all = Vec::new();
        let u32_at = |b: &[u8], at| u32::from_le_bytes(b[at..at + 4].try_into().unwrap());
        while !file.is_empty() {
            let len = u32_at(file, 4) as usize;
            assert_eq!(len % 4, 0);
            assert_eq!(u32_at(file, len - 4) as usize, len);
            all.push((u32_at(file, 0), file[8..len - 4].to_vec()));
            file = &file[len..];
        }
        all
    }

    #[test]
    fn sunatm_packets() {
        let sdu = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0, 0x45];
        let file = capture(
            LinkType::SunAtm,
            &[(Vc::new(1, 0x1234), &sdu, Some("queue full"))],
        );
        let all = blocks(&file);
        let types: Vec<_> = all.iter().map(|b| b.0).collect();
        assert_eq!(
            types,
            [SECTION_HEADER, INTERFACE_DESCRIPTION, ENHANCED_PACKET]
        );
        let packet = &all[2].1;
        assert_eq!(packet[..4], [0; 4]);
        let time = 5_000_000_123_u64;
        assert_eq!(packet[4..8], ((time >> 32) as u32).to_le_bytes());
        assert_eq!(packet[8..12], (time as u32).to_le_bytes());
        assert_eq!(packet[12..20], [13, 0, 0, 0, 13, 0, 0, 0]);
        assert_eq!(packet[20..24], [0x82, 1, 0x12, 0x34]);
        assert_eq!(packet[24..33], sdu);
        // Three octets of padding, then epb_flags = outbound, then the comment.
        assert_eq!(packet[33..44], [0, 0, 0, 2, 0, 4, 0, 2, 0, 0, 0]);
        assert_eq!(packet[44..48], [1, 0, 19, 0]);
        assert_eq!(&packet[48..67], b"dropped: queue full");
    }

    #[test]
    fn erf_packets_keep_the_trailer() {
        let file = capture(
            LinkType::ErfAal5,
            &[(Vc::new(300, 40), b"Hello, ATM", None)],
        );
        let packet = &blocks(&file)[2].1;
        let record = &packet[20..20 + 16 + 4 + 48];
        assert_eq!(record[8..16], [4, 4, 0, 68, 0, 0, 0, 52]);
        assert_eq!(record[4..8], 5_u32.to_le_bytes());
        let header = CellHeader::user(Vc::new(300, 40), true);
        assert_eq!(
            record[16..20],
            header.to_word(HeaderForm::Nni).to_be_bytes()
        );
        assert_eq!(record[20..], aal5::encode_pdu(b"Hello, ATM", 0));
    }

    #[test]
    fn local_misuse_is_refused() {
        let mut file = PcapNg::new(Vec::new(), "").unwrap();
        let interface = file.interface(LinkType::SunAtm, "a", "").unwrap();
        let packet = CapturedSdu {
            interface,
            time_ns: 0,
            direction: Direction::Received,
            vc: Vc::ILMI,
            clp: false,
            uu: 0,
            sdu: &[],
            dropped: None,
        };
        assert!(file.sdu(&packet).is_err());
        let wrong = InterfaceId(1);
        assert!(
            file.sdu(&CapturedSdu {
                interface: wrong,
                sdu: &[1],
                ..packet
            })
            .is_err()
        );
        let big = vec![7; 65535];
        assert!(
            file.sdu(&CapturedSdu {
                sdu: &big,
                ..packet
            })
            .is_ok()
        );
        blocks(&file.into_inner());
    }
}
