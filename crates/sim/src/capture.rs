//! Captures of link ends, or of whole links, as pcapng.

use crate::observer::{Packet, PassedCell};
use aerostat_lab::plant::LinkEnd;
use aerostat_wire::pcapng::{CapturedCell, CapturedSdu, Direction, InterfaceId, LinkType, PcapNg};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Writes the packets of some link ends to one file.
#[derive(Debug)]
pub struct Capture<W: Write> {
    file: PcapNg<W>,
    ends: BTreeMap<LinkEnd, (InterfaceId, Seen)>,
    /// True to write single cells instead of whole PDUs.
    cells: bool,
}

/// The packets of a link end that a tap records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// Sent and received packets.
    Both,
    /// Sent packets, with their direction at the tap of the link.
    Sent(Direction),
}

impl<W: Write> Capture<W> {
    /// Starts a file; `comment` names the lab and its seed.
    ///
    /// # Errors
    /// The errors of `out`.
    pub fn new(out: W, comment: &str) -> io::Result<Self> {
        Ok(Self {
            file: PcapNg::new(out, comment)?,
            ends: BTreeMap::new(),
            cells: false,
        })
    }
    /// With `cells`, the file is for single cells, including OAM: link ends that are added later are for
    /// [`Self::cell`].
    #[must_use]
    pub fn of_cells(self, cells: bool) -> Self {
        Self { cells, ..self }
    }
    /// Writes a cell, if its link end is in this file of cells.
    ///
    /// # Errors
    /// The errors of the file.
    pub fn cell(&mut self, cell: &PassedCell<'_>) -> io::Result<()> {
        let Some((interface, direction)) = self.seen(cell.end, cell.direction) else {
            return Ok(());
        };
        let run = cell.run.to_cells();
        let mut cells = run.iter().filter(|_| self.cells);
        cells.try_for_each(|one| {
            self.file.cell(&CapturedCell {
                interface,
                time_ns: cell.at.as_nanos(),
                direction,
                cell: one,
                dropped: None,
            })
        })
    }
    /// The interface for packets at an end in this direction, and their direction at that interface.
    fn seen(&self, end: LinkEnd, direction: Direction) -> Option<(InterfaceId, Direction)> {
        let (interface, seen) = self.ends.get(&end)?;
        match *seen {
            Seen::Both => Some((*interface, direction)),
            Seen::Sent(as_seen) if direction == Direction::Sent => Some((*interface, as_seen)),
            Seen::Sent(_) => None,
        }
    }
    /// Adds a link end, as an interface of this name.
    ///
    /// # Errors
    /// The errors of the file.
    pub fn add(&mut self, end: LinkEnd, name: &str, full: bool) -> io::Result<()> {
        let link_type = match (self.cells, full) {
            (true, _) => LinkType::ErfCells,
            (false, true) => LinkType::ErfAal5,
            (false, false) => LinkType::SunAtm,
        };
        let interface = self.file.interface(link_type, name, "")?;
        self.ends.insert(end, (interface, Seen::Both));
        Ok(())
    }
    /// Adds a link as one interface with this name: every packet is recorded once, when it has entered the link.
    /// Directions are those of the first end.
    ///
    /// # Errors
    /// The errors of the file.
    pub fn add_link(&mut self, ends: [LinkEnd; 2], name: &str, about: &str) -> io::Result<()> {
        let link_type = match self.cells {
            true => LinkType::ErfCells,
            false => LinkType::SunAtm,
        };
        let interface = self.file.interface(link_type, name, about)?;
        for (end, direction) in ends.into_iter().zip([Direction::Sent, Direction::Received]) {
            self.ends.insert(end, (interface, Seen::Sent(direction)));
        }
        Ok(())
    }
    /// Writes a packet, if its link end is in this file and the packet was on the link: a packet that a port discards
    /// never enters a link.
    ///
    /// # Errors
    /// The errors of the file.
    pub fn packet(&mut self, packet: &Packet<'_>) -> io::Result<()> {
        if packet.never_left() {
            return Ok(());
        }
        let Some((interface, direction)) = self.seen(packet.end, packet.direction) else {
            return Ok(());
        };
        if self.cells {
            return Ok(());
        }
        self.file.sdu(&CapturedSdu {
            interface,
            time_ns: packet.at.as_nanos(),
            direction,
            vc: packet.vc,
            clp: packet.clp,
            uu: packet.pdu.uu(),
            sdu: packet.pdu.sdu(),
            dropped: packet.dropped.map(|reason| reason.name()),
        })
    }
    /// Octets written so far.
    #[must_use]
    pub const fn octets(&self) -> u64 {
        self.file.octets()
    }
    /// Completes the file and returns it.
    ///
    /// # Errors
    /// The errors of the file.
    pub fn finish(mut self) -> io::Result<W> {
        self.file.flush()?;
        Ok(self.file.into_inner())
    }
}
