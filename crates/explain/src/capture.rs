//! Packets of a file: pcap and pcapng become one form. `pcap-parser` reads the blocks; interfaces, times and the
//! bounds are here.

use crate::Limits;
use crate::limits::{Limit, Met};
use aerostat_wire::link_type::number;
use core::fmt;
use pcap_parser::traits::{PcapNGPacketBlock as _, PcapReaderIterator};
use pcap_parser::{
    Block, EnhancedPacketBlock, InterfaceDescriptionBlock, InterfaceStatisticsBlock,
    LegacyPcapBlock, OptionCode, PcapBlockOwned, PcapError, PcapHeader, create_reader,
};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::{Arc, Mutex};

/// Octets that are read at once.
const CAPACITY: usize = 1 << 16;

/// Why a file could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Octets in front of the place, from the start of the file.
    pub offset: u64,
    /// The mistake there.
    pub what: String,
    /// True if the octets are wrong, and false if they could not be read.
    pub is_of_format: bool,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at offset {}", self.what, self.offset)
    }
}

impl std::error::Error for Unreadable {}

impl Unreadable {
    fn at(offset: u64, what: impl Into<String>) -> Self {
        Self {
            offset,
            what: what.into(),
            is_of_format: true,
        }
    }
}

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

/// Type of a block that begins a section, the same in both orders of octets.
const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// A file that was read, apart from its packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    /// Octets that were understood.
    pub(crate) read: u64,
    /// True if the file ends inside a block.
    pub(crate) cut: bool,
    /// All interfaces.
    pub(crate) interfaces: Vec<Interface>,
}

/// The reader of a file needs a whole first block, which a pipe may not give at once. Errors stay here, because
/// `pcap-parser` tells no more than that there was an error.
struct Whole<R> {
    input: R,
    problem: Problem,
}

/// The error of a reader.
#[derive(Clone, Default)]
struct Problem(Arc<Mutex<Option<io::Error>>>);

impl Problem {
    fn at(&self, offset: u64) -> Unreadable {
        let error = self.0.lock().ok().and_then(|mut error| error.take());
        let what = match error {
            Some(error) => format!("no octets ({error})"),
            None => "no octets".to_owned(),
        };
        Unreadable {
            offset,
            what,
            is_of_format: false,
        }
    }
}

impl<R: Read> Read for Whole<R> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(rest) = space.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.input.read(rest) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let kind = error.kind();
                    if let Ok(mut problem) = self.problem.0.lock() {
                        *problem = Some(error);
                    }
                    return Err(kind.into());
                }
            }
        }
        Ok(filled)
    }
}

/// Interfaces and packets so far.
#[derive(Default)]
struct File {
    interfaces: Vec<Interface>,
    /// Packets that the capture lost at each interface, by its last statistics.
    missing: BTreeMap<usize, u64>,
    /// Place of the first interface of this section.
    section: usize,
    packets: u64,
    last_ns: i128,
    nanoseconds: bool,
    /// Order of octets in this section of a pcapng: true if the first one is the most significant.
    big_endian: Option<bool>,
}

/// Reads a file, and gives each packet with all interfaces so far to `sink`.
///
/// # Errors
/// The place of the first octet that is not of a capture, or that the limits do not allow.
pub(crate) fn read(
    input: impl Read + Send,
    limits: &Limits,
    met: &mut Met,
    sink: &mut dyn FnMut(&[Interface], Packet<'_>),
) -> Result<Contents, Unreadable> {
    let problem = Problem::default();
    let mut reader = begin(input, &problem)?;
    let (mut file, mut capacity) = (File::default(), CAPACITY);
    loop {
        let offset = reader.consumed() as u64;
        let fail = |what: String| Err(Unreadable::at(offset, what));
        let stop = match reader.next() {
            Ok((length, block)) => {
                if let Err(what) = file.block(block, limits, met, sink) {
                    return fail(what);
                }
                reader.consume(length);
                continue;
            }
            Err(error) => Stop::of(&error),
        };
        // A block that is there is wrong, if it asks for more than itself.
        let asks_for_more = matches!(stop, Stop::Cut | Stop::Short | Stop::Full);
        if asks_for_more && file.has_block(reader.data()) {
            return fail(Stop::NO_BLOCK.to_owned());
        }
        match stop {
            Stop::End | Stop::Cut => {
                let lost = file
                    .missing
                    .values()
                    .fold(0, |sum: u64, n| sum.saturating_add(*n));
                met.count(Limit::Missing, lost);
                return Ok(Contents {
                    read: offset,
                    cut: matches!(stop, Stop::Cut),
                    interfaces: file.interfaces,
                });
            }
            Stop::Short => {}
            Stop::Full if capacity >= limits.block => {
                let most = limits.block;
                return fail(format!("a block that is longer than {most} octets"));
            }
            Stop::Full => {
                capacity = (capacity * 2).min(limits.block);
                reader.grow(capacity);
            }
            Stop::Unread => return Err(problem.at(offset)),
            Stop::Wrong => return fail(Stop::NO_BLOCK.to_owned()),
        }
        if refilled(&mut *reader).is_err() {
            return Err(problem.at(offset));
        }
    }
}

/// The reader of a file that begins as a capture.
fn begin<'a>(
    input: impl Read + Send + 'a,
    problem: &Problem,
) -> Result<Box<dyn PcapReaderIterator + Send + 'a>, Unreadable> {
    let input = Whole {
        input,
        problem: problem.clone(),
    };
    create_reader(CAPACITY, input).map_err(|error| match error {
        PcapError::Eof => Unreadable::at(0, "an empty file"),
        PcapError::ReadError => problem.at(0),
        _ => Unreadable::at(0, "no pcap and no pcapng"),
    })
}

/// Reason why there is no further block.
#[derive(Clone, Copy)]
enum Stop {
    /// The end of the file.
    End,
    /// The end of the file, inside a block.
    Cut,
    /// More octets are needed.
    Short,
    /// More octets are needed than the buffer holds.
    Full,
    /// An error of the reader.
    Unread,
    /// A wrong block.
    Wrong,
}

impl Stop {
    const NO_BLOCK: &str = "octets that are no block of a capture";

    const fn of<I: Sized>(error: &PcapError<I>) -> Self {
        match error {
            PcapError::Eof => Self::End,
            PcapError::UnexpectedEof => Self::Cut,
            PcapError::Incomplete(_) => Self::Short,
            PcapError::BufferTooSmall => Self::Full,
            PcapError::ReadError => Self::Unread,
            _ => Self::Wrong,
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
            PcapBlockOwned::NG(Block::SectionHeader(header)) => {
                self.big_endian = Some(header.big_endian());
                self.section = self.interfaces.len();
            }
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
            PcapBlockOwned::NG(Block::InterfaceStatistics(statistics)) => {
                let interface = self.known(statistics.if_id)?;
                let big_endian = self.big_endian == Some(true);
                let lost = lost(&statistics, big_endian);
                self.missing.insert(interface, lost);
            }
            PcapBlockOwned::NG(_) => met.note(Limit::OtherBlocks),
        }
        Ok(())
    }

    /// True if a whole block of pcapng is there, which does not begin a section.
    fn has_block(&self, data: &[u8]) -> bool {
        let (Some(&[a, b, c, d, e, f, g, h]), Some(big_endian)) =
            (data.first_chunk::<8>(), self.big_endian)
        else {
            return false;
        };
        let length = match big_endian {
            true => u32::from_be_bytes([e, f, g, h]),
            false => u32::from_le_bytes([e, f, g, h]),
        };
        [a, b, c, d] != SECTION && data.len() >= length as usize
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

/// Packets that an interface and the system behind it lost. Source: draft-ietf-opsawg-pcapng §4.6.
fn lost(block: &InterfaceStatisticsBlock<'_>, big_endian: bool) -> u64 {
    let counts = block.options.iter().filter_map(|option| {
        let octets = option.as_bytes().ok()?.first_chunk::<8>()?;
        let count = match big_endian {
            true => u64::from_be_bytes(*octets),
            false => u64::from_le_bytes(*octets),
        };
        [IF_DROP, OS_DROP].contains(&option.code.0).then_some(count)
    });
    counts.fold(0, u64::saturating_add)
}

/// Options of statistics: packets that the interface, and the system, have lost.
const IF_DROP: u16 = 5;
const OS_DROP: u16 = 7;

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
