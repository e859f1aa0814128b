//! Ethernet frames filled with cells ("fat cells"), to another switch or gateway on the same cable.
//!
//! **Format.** Destination, source, EtherType 88B5 (IEEE 802: local experimental use; these frames have no number of
//! their own), then the contents of a datagram of [`super::concat`]: an optional control word and 1 to 172 cells of 52
//! octets. The shortest such frame needs no padding. The idea is that of the ATM service of Cambridge, which carried
//! "an Ethernet frame filled with ATM cells" (Black and Crosby 1993); that layout is not published, so RFC 4717's is
//! used.
//!
//! The line is that of `cable.rs`. There can be one such link between two MAC addresses.
//!
//! Filling, policing and reassembly are those of UDP (`filling.rs`, `bucket.rs`, `cells.rs`).

use super::bucket::Bucket;
use super::cable::{Cable, Kind, Sent};
use super::cells::Receiver;
use super::concat::{Shim, Unpacker};
use super::filling::Filling;
use super::inbox::{Inbox, Turns};
use super::{Event, Medium};
use aerostat_lab::model::Packing;
use aerostat_node::atm::{CellRate, CellRun};
use aerostat_node::inspect::{Name, Table};
use aerostat_proto::Instant;
use aerostat_wire::{MacAddr, cell_frame};
use mio::{Registry, Token};
use std::io;

const KIND: Kind = Kind {
    ethertype: cell_frame::ETHERTYPE,
    text: "cells in Ethernet frames",
    up: "ethernet.up",
    down: "ethernet.down",
};

aerostat_node::rows! {
    /// One row for each link by cells in Ethernet frames.
    struct LineRow: "port.Cells in Ethernet frames" for (link: &Link) {
        /// `up`, or `away` without the interface.
        state: Name = link.cable.state(),
        /// The interface.
        interface: String = link.cable.interface.clone(),
        /// Its MAC address.
        address: Option<MacAddr> = link.cable.own(),
        /// MAC address of the peer.
        peer: MacAddr = link.cable.peer,
        /// How often the interface came up.
        ups: u64 = link.cable.ups,
        /// Frames from the peer.
        frames_in: u64 = link.cable.frames_in,
        /// Frames from another system than the peer, or to another system.
        strangers: u64 = link.cable.strangers,
        /// MAC address of the sender of the last one of them.
        last_stranger: Option<MacAddr> = link.cable.last_stranger,
        /// Frames for which the socket had no room.
        overflowed: Option<u32> = link.cable.overflowed(),
        /// Turns in which the link met its limit and more frames may have waited.
        cut_turns: u64 = link.cable.turns.cut,
        /// Frames without the length of cells.
        bad_length: u64 = link.unpacker.bad_length + link.cable.short,
        /// Frames with a wrong control word.
        bad_word: u64 = link.unpacker.bad_word,
        /// Frames that did not come, by their sequence numbers.
        missing: u64 = link.unpacker.missing(),
        /// Frames that came after a later one.
        late: u64 = link.unpacker.late(),
        /// Cells above the rate of the link.
        policed: u64 = link.counters.policed,
        /// Frames sent.
        frames_out: u64 = link.counters.frames_out,
        /// Cells sent.
        cells_out: u64 = link.counters.cells_out,
        /// Cells that wait for a frame to fill.
        unsent: usize = link.filling.len(),
        /// Cells dropped because too many waited.
        dropped_out: u64 = link.filling.dropped,
        /// Frames that the operating system refused.
        errors_out: u64 = link.counters.errors_out,
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    policed: u64,
    frames_out: u64,
    cells_out: u64,
    errors_out: u64,
}

/// One link.
pub(crate) struct Link {
    pub(super) cable: Cable,
    filling: Filling,
    unpacker: Unpacker,
    bucket: Bucket,
    pub(super) receiver: Receiver,
    counters: Counters,
}

impl Link {
    /// Opens the socket.
    ///
    /// # Errors
    /// The error of the operating system.
    pub(crate) fn new(
        ends: (&str, MacAddr),
        packing: Packing,
        rate: CellRate,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Self> {
        let word = matches!(packing, Packing::Many { word: true, .. });
        Ok(Self {
            cable: Cable::new(ends, KIND, registry, token)?,
            filling: Filling::new(packing),
            unpacker: Unpacker::new(Shim::numbered(word)),
            bucket: Bucket::new(rate),
            receiver: Receiver::default(),
            counters: Counters::default(),
        })
    }

    fn frame(&mut self, cells: &[u8], now: Instant, told: &mut Vec<Event>) {
        let cells = self.unpacker.cells(cells);
        let rest = (&mut self.bucket, now);
        self.counters.policed += self.receiver.packet(cells, |header| header, rest, told);
    }
}

impl Medium for Link {
    fn peer(&self) -> String {
        self.cable.peer()
    }
    fn trouble(&self) -> Option<String> {
        self.cable.trouble()
    }
    fn cells(&mut self) -> Option<(&mut Receiver, &mut Turns)> {
        Some((&mut self.receiver, &mut self.cable.turns))
    }
    fn ready(&mut self, _: usize) {
        self.cable.ready();
        self.filling.block(false);
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.cable.poll_timeout().or_else(|| self.filling.due())
    }
    fn come_up(&mut self, now: Instant, told: &mut Vec<Event>) {
        if self.cable.look(now, told) {
            self.filling.block(false);
        }
    }
    fn turn(
        &mut self,
        _: &Registry,
        now: Instant,
        inbox: &mut Inbox,
        told: &mut Vec<Event>,
    ) -> bool {
        self.come_up(now, told);
        self.cable.begin();
        while let Some(count) = self.cable.read(inbox, now, told) {
            for slot in 0..count {
                if let Some(cells) = self.cable.payload(inbox.packet(slot)) {
                    self.frame(cells, inbox.arrived(slot), told);
                }
            }
        }
        self.receiver.end(told);
        if self.cable.own().is_none() {
            self.filling.clear();
        }
        self.cable.end()
    }
    fn send(&mut self, run: &CellRun) {
        match self.cable.own() {
            Some(_) => self.filling.push(run, self.cable.header()),
            None => self.filling.dropped += u64::from(run.count),
        }
    }
    fn flush(&mut self, registry: &Registry, now: Instant, told: &mut Vec<Event>) {
        let (cable, filling) = (&mut self.cable, &mut self.filling);
        while let Some(batch) = filling.batch(now, |_| Cable::MOST) {
            match cable.send(batch.octets, batch.length, now, told) {
                Sent::Yes(count) => {
                    self.counters.frames_out += count as u64;
                    self.counters.cells_out += filling.sent(count) as u64;
                }
                Sent::Later => filling.block(true),
                Sent::Down => filling.clear(),
                // The cells are lost, as on any line.
                Sent::TooLong | Sent::Refused => {
                    self.counters.errors_out += 1;
                    filling.sent(1);
                }
            }
        }
        cable.await_room(filling.is_blocked(), registry);
    }
    fn tables(&self) -> Vec<Table> {
        vec![Table::of([LineRow::of(self)]), self.receiver.table()]
    }
}

#[cfg(test)]
mod tests;
