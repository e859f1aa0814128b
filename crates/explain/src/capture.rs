//! Packets of a file: pcap and pcapng become one form. `pcap-parser` reads the blocks; interfaces, times and the
//! bounds are here.

use crate::Limits;
use crate::limits::{Limit, Met};
use aerostat_wire::link_type::number;
use core::fmt;
use pcap_parser::traits::{PcapNGPacketBlock as _, PcapReaderIterator};
use pcap_parser::{
    Block, EnhancedPacketBlock, InterfaceDescriptionBlock, LegacyPcapBlock, OptionCode,
    PcapBlockOwned, PcapError, PcapHeader, create_reader,
};
use std::io::{self, Read};

/// Octets that are read at once.
const CAPACITY: usize = 1 << 16;

/// Why a file could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Octets in front of the place, from the start of the file.
    pub offset: u64,
    /// The mistake there.
    pub what: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at offset {}", self.what, self.offset)
    }
}

impl std::error::Error for Unreadable {}

/// An interface of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Its name, if the file has one.
    pub name: Option<String>,
    /// Link type, by the registry of libpcap.
    pub link_type: u32,
    /// Ticks of a second; 0 for ticks of 2^-n s that are finer than a nanosecond.
    ticks: u64,
    /// Seconds that are added to each time.
    offset_s: i64,
}

/// A packet of a file.
#[derive(Clone, Debug)]
pub(crate) struct Packet<'a> {
    /// Number in the file, from 1, as Wireshark counts.
    pub(crate) number: u64,
    /// Nanoseconds since 1970.
    pub(crate) time_ns: i128,
    /// Place in the list of interfaces.
    pub(crate) interface: usize,
    /// True for a packet that the interface sent, if the file tells.
    pub(crate) sent: Option<bool>,
    /// Reason of a drop, by a comment of Aerostat.
    pub(crate) dropped: Option<String>,
    /// VPI above 255, by a comment of Aerostat.
    pub(crate) vpi: Option<u16>,
    /// Octets that the file has.
    pub(crate) octets: &'a [u8],
    /// True if the file has fewer octets than the packet had.
    pub(crate) cut: bool,
}

/// Octets of a file, apart from its packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Octets {
    /// Octets that were understood.
    pub(crate) read: u64,
    /// True if the file ends inside a block.
    pub(crate) cut: bool,
}

/// The reader of a file needs a whole first block, which a pipe may not give at once.
struct Whole<R>(R);

impl<R: Read> Read for Whole<R> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(rest) = space.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.0.read(rest) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}

/// Interfaces and packets so far.
#[derive(Default)]
struct File {
    interfaces: Vec<Interface>,
    /// Place of the first interface of this section.
    section: usize,
    packets: u64,
    last_ns: i128,
    nanoseconds: bool,
}

/// Reads a file, and gives each packet with all interfaces so far to `sink`; returns all interfaces.
///
/// # Errors
/// The place of the first octet that is not of a capture, or that the limits do not allow.
pub(crate) fn read(
    input: impl Read + Send,
    limits: &Limits,
    met: &mut Met,
    sink: &mut dyn FnMut(&[Interface], Packet<'_>),
) -> Result<(Octets, Vec<Interface>), Unreadable> {
    let at_start = |what: &str| Unreadable {
        offset: 0,
        what: what.to_owned(),
    };
    let mut reader = create_reader(CAPACITY, Whole(input)).map_err(|error| match error {
        PcapError::Eof => at_start("an empty file"),
        PcapError::ReadError => at_start("a failure to read"),
        _ => at_start("no pcap and no pcapng"),
    })?;
    let (mut file, mut capacity) = (File::default(), CAPACITY);
    loop {
        let offset = reader.consumed() as u64;
        let fail = |what: String| Err(Unreadable { offset, what });
        match reader.next() {
            Ok((length, block)) => {
                if let Err(what) = file.block(block, limits, met, sink) {
                    return fail(what);
                }
                reader.consume(length);
                continue;
            }
            Err(PcapError::Eof) => {
                let cut = false;
                return Ok((Octets { read: offset, cut }, file.interfaces));
            }
            Err(PcapError::UnexpectedEof) => {
                let cut = true;
                return Ok((Octets { read: offset, cut }, file.interfaces));
            }
            Err(PcapError::Incomplete(_)) => {}
            Err(PcapError::BufferTooSmall) => {
                if capacity >= limits.block {
                    return fail(format!(
                        "a block that is longer than {} octets",
                        limits.block
                    ));
                }
                capacity = (capacity * 2).min(limits.block);
                reader.grow(capacity);
            }
            Err(PcapError::ReadError) => return fail("a failure to read".to_owned()),
            Err(_) => return fail("octets that are no block of a capture".to_owned()),
        }
        if refilled(&mut *reader).is_err() {
            return fail("a failure to read".to_owned());
        }
    }
}

fn refilled(reader: &mut (dyn PcapReaderIterator + Send)) -> Result<(), ()> {
    reader.refill().map_err(|_| ())
}

impl File {
    fn block(
        &mut self,
        block: PcapBlockOwned<'_>,
        limits: &Limits,
        met: &mut Met,
        sink: &mut dyn FnMut(&[Interface], Packet<'_>),
    ) -> Result<(), String> {
        match block {
            PcapBlockOwned::LegacyHeader(header) => self.legacy_header(&header),
            PcapBlockOwned::Legacy(packet) => self.legacy(&packet, sink),
            PcapBlockOwned::NG(Block::SectionHeader(_)) => self.section = self.interfaces.len(),
            PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                if self.interfaces.len() >= limits.interfaces {
                    return Err(format!("more than {} interfaces", limits.interfaces));
                }
                self.interfaces.push(interface_of(&interface));
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => self.enhanced(&packet, sink)?,
            PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
                let number = self.known(0)?;
                self.packets += 1;
                let octets = packet.packet_data();
                let packet = Packet {
                    number: self.packets,
                    time_ns: self.last_ns,
                    interface: number,
                    sent: None,
                    dropped: None,
                    vpi: None,
                    octets,
                    cut: (packet.orig_len() as usize) > octets.len(),
                };
                sink(&self.interfaces, packet);
            }
            PcapBlockOwned::NG(_) => met.note(Limit::OtherBlocks),
        }
        Ok(())
    }

    fn known(&self, of_section: u32) -> Result<usize, String> {
        let number = self.section.saturating_add(of_section as usize);
        match self.interfaces.get(number) {
            Some(_) => Ok(number),
            None => Err(format!(
                "a packet of interface {of_section}, which no block describes"
            )),
        }
    }

    fn legacy_header(&mut self, header: &PcapHeader) {
        self.nanoseconds = header.is_nanosecond_precision();
        // The upper bits tell the length of the FCS.
        let link_type = header.network.0 as u32 & 0xffff;
        self.interfaces.push(Interface {
            link_type,
            ..Interface::default()
        });
    }

    fn legacy(
        &mut self,
        packet: &LegacyPcapBlock<'_>,
        sink: &mut dyn FnMut(&[Interface], Packet<'_>),
    ) {
        let fraction = i128::from(packet.ts_usec) * if self.nanoseconds { 1 } else { 1000 };
        self.packets += 1;
        let packet = Packet {
            number: self.packets,
            time_ns: i128::from(packet.ts_sec) * SECOND + fraction,
            interface: 0,
            sent: None,
            dropped: None,
            vpi: None,
            octets: packet.data,
            cut: packet.origlen > packet.caplen,
        };
        sink(&self.interfaces, packet);
    }

    fn enhanced(
        &mut self,
        packet: &EnhancedPacketBlock<'_>,
        sink: &mut dyn FnMut(&[Interface], Packet<'_>),
    ) -> Result<(), String> {
        let number = self.known(packet.if_id)?;
        let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
        let time_ns = match self.interfaces.get(number) {
            Some(interface) => interface.time_ns(ticks),
            None => 0,
        };
        self.last_ns = time_ns;
        self.packets += 1;
        let mut read = Packet {
            number: self.packets,
            time_ns,
            interface: number,
            sent: None,
            dropped: None,
            vpi: None,
            octets: packet.packet_data(),
            cut: packet.origlen > packet.caplen,
        };
        for option in &packet.options {
            let value = option.as_bytes().unwrap_or_default();
            match (option.code, value) {
                (OptionCode(FLAGS), &[a, b, c, d]) => {
                    let flags = match packet.big_endian() {
                        true => u32::from_be_bytes([a, b, c, d]),
                        false => u32::from_le_bytes([a, b, c, d]),
                    };
                    read.sent = match flags & 3 {
                        1 => Some(false),
                        2 => Some(true),
                        _ => None,
                    };
                }
                (OptionCode::Comment, text) => comment(&mut read, text),
                _ => {}
            }
        }
        sink(&self.interfaces, read);
        Ok(())
    }
}

/// Option of a packet with its direction.
const FLAGS: u16 = 2;
/// Nanoseconds of a second.
const SECOND: i128 = 1_000_000_000;

/// Comments of `aerostat_wire::pcapng`.
fn comment(packet: &mut Packet<'_>, text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    if let Some(reason) = text.strip_prefix("dropped: ") {
        packet.dropped = Some(reason.chars().take(200).collect());
    }
    if let Some(vpi) = text.strip_prefix("VPI ") {
        packet.vpi = vpi.parse().ok();
    }
}

fn interface_of(block: &InterfaceDescriptionBlock<'_>) -> Interface {
    let exponent = u32::from(block.if_tsresol & 0x7f);
    let ticks = match block.if_tsresol & 0x80 {
        0 => 10_u64.checked_pow(exponent),
        _ => 1_u64.checked_shl(exponent),
    };
    Interface {
        name: match block.if_name() {
            Some(Ok(name)) => Some(name.chars().take(64).collect()),
            _ => None,
        },
        link_type: block.linktype.0 as u32,
        ticks: ticks.unwrap_or_default(),
        offset_s: block.if_tsoffset,
    }
}

impl Interface {
    fn time_ns(&self, ticks: u64) -> i128 {
        let of_ticks = match self.ticks {
            0 => 0,
            per_second => i128::from(ticks) * SECOND / i128::from(per_second),
        };
        of_ticks + i128::from(self.offset_s) * SECOND
    }

    /// Name of the link type.
    #[must_use]
    pub fn link_name(&self) -> &'static str {
        match self.link_type {
            number::ETHERNET => "Ethernet",
            number::ATM_RFC1483 | number::ATM_RFC1483_BSD => "RFC 1483",
            number::ATM_CLIP => "Classical IP of Linux",
            number::RAW | number::IPV4 | number::IPV6 => "raw IP",
            number if number::RAW_OLD.contains(&number) => "raw IP",
            number::LINUX_SLL | number::LINUX_SLL2 => "Linux cooked",
            number::SUNATM => "SUNATM",
            number::ERF => "ERF",
            _ => "another link type",
        }
    }
}

#[cfg(test)]
mod tests;
