//! Cells over UDP: links to GNS3 and Dynamips, and between labs.
//!
//! **Format.** Either one cell of 53 octets in each datagram: header in the NNI form (VPI 12 bits, VCI 16, PTI 3, CLP
//! 1), HEC, 48 octets of payload; source: Dynamips, ATM network IO over UDP; I.361. Or many cells without HEC, as in
//! [`super::concat`]. Nothing else is sent. Both ends must have the same settings.
//!
//! **Filling.** `filling.rs` decides when datagrams leave.
//!
//! **The line.** UDP has no connection, so the line counts as up from the start; the signalling on it (SSCOP) shows
//! whether there is a peer. Datagrams are accepted only from the peer's address and port. Others, and those with
//! invalid contents, are counted and dropped. So are cells above the rate of the link (`bucket.rs`: policing).
//!
//! **Bursts.** The cells of a PDU are sent back to back when the PDU leaves the port; the port's rate spaces the PDUs.
//! The receiver's socket buffer must hold such a burst: with one cell in each datagram, very large PDUs (tens of
//! kilobytes) can overrun it. Datagrams for which this end's buffer had no room are counted by the kernel.
//!
//! **Batches.** Datagrams come and go many in one call (`inbox.rs`, `datagrams.rs`). Cells of one VC from consecutive
//! datagrams become one run.

use super::bucket::Bucket;
use super::cells::Receiver;
use super::concat::{Shim, Unpacker};
use super::datagrams::{Datagrams, Sent};
use super::filling::Filling;
use super::inbox::{Come, Inbox, Turns};
use super::{Event, Medium};
use aerostat_lab::model::Packing;
use aerostat_node::atm::{CellRate, CellRun};
use aerostat_node::inspect::{Name, Table};
use aerostat_proto::Instant;
use aerostat_wire::cell::CELL_LEN;
use mio::{Registry, Token};
use std::io;
use std::net::SocketAddr;

aerostat_node::rows! {
    /// One row for each link by cells over UDP.
    struct Line: "port.Cells over UDP" for (link: &Link) {
        /// Own address.
        local: Option<SocketAddr> = link.socket.local(),
        /// Address of the peer.
        peer: SocketAddr = link.socket.peer,
        /// Datagrams from the peer.
        datagrams_in: u64 = link.counters.datagrams_in,
        /// Datagrams from another address than the peer's.
        strangers: u64 = link.socket.strangers,
        /// The address of the last one of them: perhaps that of the peer behind a translation of addresses.
        last_stranger: Option<SocketAddr> = link.socket.last_stranger,
        /// Datagrams without the length of cells.
        bad_length: u64 = link.counters.bad_length + link.unpacked(|u| u.bad_length),
        /// Errors of the operating system when reading.
        errors_in: u64 = link.socket.errors_in,
        /// Datagrams for which the socket had no room.
        overflowed: Option<u32> = link.socket.overflowed(),
        /// How datagrams come: `gro` (many in one buffer), or `single`.
        receiving: Name = link.socket.receiving().into(),
        /// Buffers with several datagrams.
        batches_in: u64 = link.socket.batches_in,
        /// Turns in which the link met its limit and more datagrams may have waited.
        cut_turns: u64 = link.turns.cut,
        /// Datagrams with a wrong control word.
        bad_word: u64 = link.unpacked(|u| u.bad_word),
        /// Datagrams that did not come, by their sequence numbers.
        missing: u64 = link.unpacked(Unpacker::missing),
        /// Datagrams that came after a later one.
        late: u64 = link.unpacked(Unpacker::late),
        /// Cells above the rate of the link.
        policed: u64 = link.counters.policed,
        /// Datagrams sent.
        datagrams_out: u64 = link.counters.datagrams_out,
        /// Cells sent.
        cells_out: u64 = link.counters.cells_out,
        /// How datagrams leave: `gso` (many in one call), or `single`, also after the system has refused a batch.
        sending: Name = link.socket.sending().into(),
        /// Calls with several datagrams.
        batches_out: u64 = link.socket.batches_out,
        /// Cells that wait for a datagram to fill.
        unsent: usize = link.filling.len(),
        /// Cells dropped because too many waited.
        dropped_out: u64 = link.filling.dropped,
        /// Datagrams that the operating system refused.
        errors_out: u64 = link.counters.errors_out,
        /// Reports of the network that datagrams could not be delivered: the peer's port is closed, or there is no way.
        unreachable: u64 = link.socket.unreachable,
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    datagrams_in: u64,
    /// Datagrams without the length of a cell (one cell in each).
    bad_length: u64,
    /// Cells above the rate of the link.
    policed: u64,
    datagrams_out: u64,
    cells_out: u64,
    /// Datagrams that the operating system refused.
    errors_out: u64,
}

/// One link.
pub(crate) struct Link {
    socket: Datagrams,
    told_up: bool,
    pub(super) turns: Turns,
    /// Unpacks datagrams with many cells.
    unpacker: Option<Unpacker>,
    bucket: Bucket,
    filling: Filling,
    pub(super) receiver: Receiver,
    counters: Counters,
}

impl Link {
    /// Opens the socket.
    ///
    /// # Errors
    /// The error of the operating system.
    pub(crate) fn new(
        local: SocketAddr,
        peer: SocketAddr,
        packing: Packing,
        rate: CellRate,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Self> {
        let unpacker = match packing {
            Packing::One => None,
            Packing::Many { word, .. } => Some(Unpacker::new(Shim::numbered(word))),
        };
        Ok(Self {
            socket: Datagrams::new(local, peer, registry, token)?,
            told_up: false,
            turns: Turns::default(),
            unpacker,
            bucket: Bucket::new(rate),
            filling: Filling::new(packing),
            receiver: Receiver::default(),
            counters: Counters::default(),
        })
    }

    fn datagrams(&mut self, come: Come<'_>, now: Instant, told: &mut Vec<Event>) {
        let (receiver, bucket) = (&mut self.receiver, &mut self.bucket);
        let mut policed = 0;
        if let Some(unpacker) = &mut self.unpacker {
            for datagram in come.each() {
                let cells = unpacker.cells(datagram);
                policed += receiver.packet(cells, |header| header, (bucket, now), told);
            }
        } else if come.length == CELL_LEN {
            let (cells, rest) = come.octets.as_chunks::<CELL_LEN>();
            policed += receiver.packet(cells, |header| header, (bucket, now), told);
            self.counters.bad_length += u64::from(!rest.is_empty());
        } else {
            // Only the last datagram in a buffer is shorter than the others.
            let (_, rest) = come
                .octets
                .split_at(come.octets.len() / come.length * come.length);
            let cell = <&[u8; CELL_LEN]>::try_from(rest);
            let cells = cell.map_or(&[][..], std::slice::from_ref);
            policed += receiver.packet::<CELL_LEN>(cells, |header| header, (bucket, now), told);
            self.counters.bad_length += come.count() - cells.len() as u64;
        }
        self.counters.policed += policed;
    }

    /// A count of the datagrams with many cells; 0 with one cell in each.
    fn unpacked(&self, count: fn(&Unpacker) -> u64) -> u64 {
        self.unpacker.as_ref().map_or(0, count)
    }
}

impl Medium for Link {
    fn cells(&mut self) -> Option<(&mut Receiver, &mut Turns)> {
        Some((&mut self.receiver, &mut self.turns))
    }
    fn ready(&mut self, _: usize) {
        self.socket.readable = true;
        self.filling.block(false);
    }
    fn poll_timeout(&self) -> Option<Instant> {
        if !self.told_up {
            return Some(Instant::ZERO);
        }
        self.filling.due()
    }
    fn come_up(&mut self, _: Instant, told: &mut Vec<Event>) {
        if !core::mem::replace(&mut self.told_up, true) {
            told.push(Event::Up);
        }
    }
    fn peer(&self) -> String {
        self.socket.peer.to_string()
    }
    fn turn(
        &mut self,
        _: &Registry,
        now: Instant,
        inbox: &mut Inbox,
        told: &mut Vec<Event>,
    ) -> bool {
        self.come_up(now, told);
        self.turns.begin();
        while self.socket.readable && self.turns.most() > 0 {
            let count = self.socket.read(inbox, self.turns.most());
            self.turns.took(count, inbox.octets(count));
            for slot in 0..count {
                if let Some(come) = self.socket.peers_own(inbox, slot) {
                    self.counters.datagrams_in += come.count();
                    self.datagrams(come, inbox.arrived(slot), told);
                }
            }
        }
        self.receiver.end(told);
        self.turns.end(self.socket.readable)
    }
    fn send(&mut self, run: &CellRun) {
        self.filling.push(run, &[]);
    }
    fn flush(&mut self, registry: &Registry, now: Instant, _: &mut Vec<Event>) {
        let socket = &mut self.socket;
        while let Some(batch) = self.filling.batch(now, |length| socket.most(length, now)) {
            let packets = batch.packets;
            match socket.send(batch.octets, batch.length, now) {
                Sent::Yes => {
                    self.counters.datagrams_out += packets as u64;
                    self.counters.cells_out += self.filling.sent(packets) as u64;
                }
                Sent::Smaller => {}
                Sent::Later => self.filling.block(true),
                // The cells are lost, as on any line.
                Sent::TooLong | Sent::Refused => {
                    self.counters.errors_out += packets as u64;
                    self.filling.sent(packets);
                }
            }
        }
        socket.await_room(self.filling.is_blocked(), registry);
    }
    fn tables(&self) -> Vec<Table> {
        vec![Table::of([Line::of(self)]), self.receiver.table()]
    }
}

#[cfg(test)]
mod tests;
