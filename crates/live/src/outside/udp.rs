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
//! kilobytes) can overrun it.

use super::Event;
use super::bucket::Bucket;
use super::cells::Receiver;
use super::concat::{MAX_DATAGRAM, Shim, Unpacker};
use super::filling::Filling;
use aerostat_lab::model::Packing;
use aerostat_node::atm::{CellRate, CellRun};
use aerostat_node::inspect::Table;
use aerostat_proto::Instant;
use aerostat_wire::cell::CELL_LEN;
use mio::net::UdpSocket;
use mio::{Interest, Registry, Token};
use rustix::net::sockopt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;

/// Limit of datagrams taken in one turn.
const READS: usize = 512;
/// Requested size of the socket's receive buffer, octets; the system may allow less.
const SOCKET_BUFFER: usize = 4 << 20;

aerostat_node::rows! {
    /// One row for each link by cells over UDP.
    struct Line: "port.Cells over UDP" {
        /// Own address.
        local: Option<SocketAddr>,
        /// Address of the peer.
        peer: SocketAddr,
        /// Datagrams from the peer.
        datagrams_in: u64,
        /// Datagrams from another address than the peer's.
        strangers: u64,
        /// Datagrams without the length of cells.
        bad_length: u64,
        /// Errors of the operating system when reading.
        errors_in: u64,
        /// Datagrams with a wrong control word.
        bad_word: u64,
        /// Datagrams that did not come, by their sequence numbers.
        missing: u64,
        /// Datagrams that came after a later one.
        late: u64,
        /// Cells above the rate of the link.
        policed: u64,
        /// Datagrams sent.
        datagrams_out: u64,
        /// Cells sent.
        cells_out: u64,
        /// Cells that wait for a datagram to fill.
        unsent: usize,
        /// Cells dropped because too many waited.
        dropped_out: u64,
        /// Datagrams that the operating system refused.
        errors_out: u64,
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    datagrams_in: u64,
    /// Datagrams from another address than the peer's.
    strangers: u64,
    /// Datagrams without the length of a cell (one cell in each).
    bad_length: u64,
    /// Cells above the rate of the link.
    policed: u64,
    datagrams_out: u64,
    cells_out: u64,
    /// Datagrams that the operating system refused.
    errors_out: u64,
    errors_in: u64,
}

/// One link.
pub(crate) struct Link {
    socket: UdpSocket,
    peer: SocketAddr,
    told_up: bool,
    readable: bool,
    /// Unpacks datagrams with many cells.
    unpacker: Option<Unpacker>,
    bucket: Bucket,
    octets: Vec<u8>,
    filling: Filling,
    receiver: Receiver,
    counters: Counters,
}

impl Link {
    /// Opens the socket.
    ///
    /// # Errors
    /// The error of the operating system.
    pub(crate) fn new(
        (local, peer): (SocketAddr, SocketAddr),
        packing: Packing,
        rate: CellRate,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Self> {
        let mut socket = UdpSocket::bind(local)
            .map_err(|error| io::Error::new(error.kind(), format!("{local}: {error}")))?;
        // A smaller buffer also works, only less well. A privileged process may exceed the system's limit.
        if sockopt::set_socket_recv_buffer_size_force(&socket, SOCKET_BUFFER).is_err() {
            let _ = sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BUFFER);
        }
        registry.register(&mut socket, token, Interest::READABLE | Interest::WRITABLE)?;
        let unpacker = match packing {
            Packing::One => None,
            Packing::Many { word, .. } => Some(Unpacker::new(Shim::numbered(word))),
        };
        Ok(Self {
            socket,
            peer,
            told_up: false,
            readable: true,
            unpacker,
            bucket: Bucket::new(rate),
            // One octet more than a datagram, so that longer datagrams are noticed.
            octets: vec![0; MAX_DATAGRAM + 1],
            filling: Filling::new(packing),
            receiver: Receiver::default(),
            counters: Counters::default(),
        })
    }

    /// The poller has reported the socket.
    pub(crate) fn ready(&mut self) {
        self.readable = true;
        self.filling.block(false);
    }

    /// When [`Self::turn`] and [`Self::flush`] are next needed if nothing is ready.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        if !self.told_up {
            return Some(Instant::ZERO);
        }
        self.filling.due()
    }

    /// Takes a bounded number of datagrams; true if more may be left.
    pub(crate) fn turn(&mut self, now: Instant, told: &mut Vec<Event>) -> bool {
        if !self.told_up {
            self.told_up = true;
            told.push(Event::Up);
        }
        let mut octets = std::mem::take(&mut self.octets);
        let more = self.take(&mut octets, now, told);
        told.extend(self.receiver.end().map(Event::Cells));
        self.octets = octets;
        more
    }

    fn take(&mut self, octets: &mut [u8], now: Instant, told: &mut Vec<Event>) -> bool {
        for _ in 0..READS {
            if !self.readable {
                return false;
            }
            match self.socket.recv_from(octets) {
                Ok((count, from)) => {
                    self.counters.datagrams_in += 1;
                    let datagram = octets.get(..count).unwrap_or_default();
                    self.datagram(datagram, from, now, told);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.readable = false,
                Err(_) => self.counters.errors_in += 1,
            }
        }
        true
    }

    fn datagram(&mut self, octets: &[u8], from: SocketAddr, now: Instant, told: &mut Vec<Event>) {
        if from.ip() != self.peer.ip() || from.port() != self.peer.port() {
            self.counters.strangers += 1;
            return;
        }
        if let Some(unpacker) = &mut self.unpacker {
            let cells = unpacker.cells(octets);
            self.counters.policed += self.receiver.packet(cells, &mut self.bucket, now, told);
            return;
        }
        let Ok(cell) = <[u8; CELL_LEN]>::try_from(octets) else {
            self.counters.bad_length += 1;
            return;
        };
        if let Some(at) = self.bucket.take(now) {
            told.extend(self.receiver.push(cell, at).map(Event::Cells));
        } else {
            self.counters.policed += 1;
        }
    }

    /// Queues all cells of a run, or none.
    pub(crate) fn send(&mut self, run: &CellRun) {
        self.filling.push(run);
    }

    /// Sends the packets that are due, as far as the operating system takes them.
    pub(crate) fn flush(&mut self, now: Instant) {
        while let Some((octets, cells)) = self.filling.packet(now) {
            match self.socket.send_to(&octets, self.peer) {
                Ok(_) => {
                    self.counters.datagrams_out += 1;
                    self.counters.cells_out += cells as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.filling.block(true);
                    return;
                }
                // The cells are lost, as on any line.
                Err(_) => self.counters.errors_out += 1,
            }
            self.filling.sent(cells);
        }
    }

    /// State and counters.
    pub(crate) fn tables(&self) -> Vec<Table> {
        let local = self.socket.local_addr().ok();
        let counters = &self.counters;
        let unpacker = self.unpacker.as_ref();
        let of = |count: fn(&Unpacker) -> u64| unpacker.map_or(0, count);
        let row = Line {
            local,
            peer: self.peer,
            datagrams_in: counters.datagrams_in,
            strangers: counters.strangers,
            bad_length: counters.bad_length + of(|u| u.bad_length),
            errors_in: counters.errors_in,
            bad_word: of(|u| u.bad_word),
            missing: of(Unpacker::missing),
            late: of(Unpacker::late),
            policed: counters.policed,
            datagrams_out: counters.datagrams_out,
            cells_out: counters.cells_out,
            unsent: self.filling.len(),
            dropped_out: self.filling.dropped,
            errors_out: counters.errors_out,
        };
        vec![Table::of([row]), self.receiver.table()]
    }
}

#[cfg(test)]
mod tests;
