//! Raw cells under a wrong link type.
//!
//! Dynamips writes what crosses a line: cells of 53 octets with their HEC. GNS3 has it write them under the link type
//! RFC 1483 (100), whose packets begin with LLC, so that no program reads them. Some tools leave out the HEC.
//!
//! An interface has raw cells if all of its first packets have 53 octets with a good HEC; or 52 octets, of which some
//! make a PDU of AAL5. Until that is known, its packets are held.
//!
//! Source: Dynamips of July 2026 (`common/net_io_filter.c`, `common/atm.c`); gns3-server (`DLT_ATM_RFC1483` of ATM
//! ports).

use crate::capture::Packet;
use aerostat_wire::aal5::Reassembler;
use aerostat_wire::cell::{CELL_LEN, Cell, CellHeader, HEADER_LEN, HeaderForm, PAYLOAD_LEN};
use aerostat_wire::link_type::number;
use aerostat_wire::pseudowire::BARE_CELL_LEN;
use std::collections::BTreeMap;

/// Packets with a good HEC that settle the matter: 32 random ones have it once in 2^256.
const ENOUGH: usize = 32;
/// Packets of 52 octets that are held for a PDU.
const MOST: usize = 512;

/// Content of an interface.
#[derive(Debug)]
pub(crate) enum Kind {
    /// Not known yet.
    Held(Held),
    /// The content that its link type says.
    Labelled,
    /// Raw cells.
    Cells,
}

/// Packets that are held.
#[derive(Debug, Default)]
pub(crate) struct Held {
    packets: Vec<HeldPacket>,
    vcs: BTreeMap<u32, Reassembler>,
    pdus: u64,
}

/// A packet that is held.
#[derive(Debug)]
pub(crate) struct HeldPacket {
    number: u64,
    time_ns: i128,
    interface: usize,
    sent: Option<bool>,
    dropped: Option<String>,
    vpi: Option<u16>,
    octets: Vec<u8>,
    cut: bool,
}

impl HeldPacket {
    pub(crate) fn packet(&self) -> Packet<'_> {
        Packet {
            number: self.number,
            time_ns: self.time_ns,
            interface: self.interface,
            sent: self.sent,
            dropped: self.dropped.clone(),
            vpi: self.vpi,
            octets: &self.octets,
            cut: self.cut,
        }
    }
}

impl Kind {
    /// The kind before the first packet.
    pub(crate) fn new(link_type: u32) -> Self {
        match link_type {
            number::SUNATM | number::ERF | number::LINUX_SLL | number::LINUX_SLL2 => Self::Labelled,
            _ => Self::Held(Held::default()),
        }
    }
}

impl Held {
    /// Holds a packet; gives the kind if it is known now.
    pub(crate) fn hold(&mut self, packet: &Packet<'_>) -> Option<Kind> {
        let octets = packet.octets;
        let cell = cell(octets);
        let lengths = self.packets.first().map(|first| first.octets.len());
        let is_other = packet.cut
            || octets.starts_with(&[0xaa, 0xaa, 3])
            || !matches!(cell, Some(Ok(_)))
            || lengths.is_some_and(|length| length != octets.len());
        self.packets.push(HeldPacket {
            number: packet.number,
            time_ns: packet.time_ns,
            interface: packet.interface,
            sent: packet.sent,
            dropped: packet.dropped.clone(),
            vpi: packet.vpi,
            octets: octets.to_vec(),
            cut: packet.cut,
        });
        if is_other {
            return Some(Kind::Labelled);
        }
        if let (Some(Ok((header, payload))), BARE_CELL_LEN) = (cell, octets.len()) {
            let label = u32::from(header.vc.vpi) << 16 | u32::from(header.vc.vci);
            let vc = self.vcs.entry(label).or_insert_with(|| Reassembler::new(0));
            let done = vc.push(&payload, header.pti, header.clp);
            self.pdus += u64::from(matches!(done, Some(Ok(_))));
        }
        let enough = match octets.len() {
            CELL_LEN => self.packets.len() >= ENOUGH,
            _ => self.pdus > 0 || self.packets.len() >= MOST,
        };
        enough.then(|| self.verdict())
    }
    /// The kind, by the held packets.
    pub(crate) fn verdict(&self) -> Kind {
        let bare = |packet: &HeldPacket| packet.octets.len() == BARE_CELL_LEN;
        match self.packets.first() {
            Some(first) if !bare(first) || self.pdus > 0 => Kind::Cells,
            _ => Kind::Labelled,
        }
    }
    pub(crate) fn packets(&self) -> &[HeldPacket] {
        &self.packets
    }
}

/// A cell: its header and payload.
pub(crate) type BareCell = (CellHeader, [u8; PAYLOAD_LEN]);

/// Octets as a cell with or without HEC; `None` if there are neither 52 nor 53, and an error if the HEC does not fit.
pub(crate) fn cell(octets: &[u8]) -> Option<Result<BareCell, ()>> {
    if let Ok(whole) = <&[u8; CELL_LEN]>::try_from(octets) {
        let cell = Cell::decode(whole, HeaderForm::Nni);
        return Some(cell.map(|cell| (cell.header, cell.payload)).map_err(drop));
    }
    let bare = <&[u8; BARE_CELL_LEN]>::try_from(octets).ok()?;
    Some(Ok(bare_cell(bare)))
}

/// A cell without HEC.
pub(crate) fn bare_cell([a, b, c, d, payload @ ..]: &[u8; BARE_CELL_LEN]) -> BareCell {
    let word = u32::from_be_bytes([*a, *b, *c, *d]);
    (CellHeader::from_word(word, HeaderForm::Nni), *payload)
}

/// Payload of 53 octets whatever the HEC is.
pub(crate) fn cell_with_bad_hec(octets: &[u8]) -> bool {
    octets.len() == HEADER_LEN + PAYLOAD_LEN && matches!(cell(octets), Some(Err(())))
}
