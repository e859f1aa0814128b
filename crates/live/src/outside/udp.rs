//! Cells over UDP, one in each datagram: the link of GNS3 and Dynamips, and between labs.
//!
//! **Format.** One cell of 53 octets in a datagram: header in the NNI form (VPI 12 bits, VCI 16, PTI 3, CLP 1), HEC,
//! 48 octets of payload. Nothing else is sent. Source: Dynamips, ATM network IO over UDP; I.361.
//!
//! **The line.** UDP has no connection, so the line counts as up from the start; whether somebody is there shows in
//! the signalling (SSCOP) on it. Datagrams are taken from the peer's address and port only; others, and those that are
//! no cell, are counted and dropped.
//!
//! **Bursts.** The cells of a PDU are sent back to back when the PDU leaves the port; the port's rate spaces the PDUs.
//! The receiver's socket buffer must hold such a burst: very large PDUs (tens of kilobytes) can overrun it.

use super::Event;
use super::cells::{self, Receiver};
use aerostat_node::atm::CellRun;
use aerostat_node::inspect::Table;
use aerostat_proto::Instant;
use aerostat_wire::cell::CELL_LEN;
use mio::net::UdpSocket;
use mio::{Interest, Registry, Token};
use rustix::net::sockopt;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;

/// Cells that wait for the operating system at most.
const QUEUE: usize = 16 * 1024;
/// Datagrams taken in one turn.
const READS: usize = 512;
/// What the socket's receive buffer should hold, octets; the system may allow less.
const SOCKET_BUFFER: usize = 4 << 20;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    datagrams_in: u64,
    /// From somebody else than the peer.
    strangers: u64,
    /// Not of a cell's length.
    bad_length: u64,
    cells_out: u64,
    /// Dropped because the operating system takes no more.
    dropped_out: u64,
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
    unsent: VecDeque<[u8; CELL_LEN]>,
    receiver: Receiver,
    counters: Counters,
}

impl Link {
    /// Opens the socket.
    ///
    /// # Errors
    /// What the operating system said.
    pub(crate) fn new(
        local: SocketAddr,
        peer: SocketAddr,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Self> {
        let mut socket = UdpSocket::bind(local)
            .map_err(|error| io::Error::new(error.kind(), format!("{local}: {error}")))?;
        // With less it works too, only worse. Only the privileged may have more than the system's limit.
        if sockopt::set_socket_recv_buffer_size_force(&socket, SOCKET_BUFFER).is_err() {
            let _ = sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BUFFER);
        }
        registry.register(&mut socket, token, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Self {
            socket,
            peer,
            told_up: false,
            readable: true,
            unsent: VecDeque::new(),
            receiver: Receiver::default(),
            counters: Counters::default(),
        })
    }

    /// The poller spoke of the socket.
    pub(crate) fn ready(&mut self) {
        self.readable = true;
    }

    /// When [`Self::turn`] is next needed if nothing is ready.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        (!self.told_up).then_some(Instant::ZERO)
    }

    /// Takes a bounded number of datagrams; true if more may be left.
    pub(crate) fn turn(&mut self, now: Instant, told: &mut Vec<Event>) -> bool {
        if !self.told_up {
            self.told_up = true;
            told.push(Event::Up);
        }
        // One more than a cell, to see what is too long.
        let mut octets = [0; CELL_LEN + 1];
        for _ in 0..READS {
            if !self.readable {
                return false;
            }
            match self.socket.recv_from(&mut octets) {
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
        let Ok(cell) = <[u8; CELL_LEN]>::try_from(octets) else {
            self.counters.bad_length += 1;
            return;
        };
        told.extend(self.receiver.push(cell, now).map(Event::Cells));
    }

    /// Puts cells into the queue, all or none.
    pub(crate) fn send(&mut self, run: &CellRun) {
        let cells = usize::from(run.count);
        if self.unsent.len() + cells > QUEUE {
            self.counters.dropped_out += cells as u64;
            return;
        }
        self.unsent.extend(cells::encode(run));
    }

    /// Sends what the operating system takes.
    pub(crate) fn flush(&mut self) {
        while let Some(cell) = self.unsent.front() {
            match self.socket.send_to(cell, self.peer) {
                Ok(_) => self.counters.cells_out += 1,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // A cell is lost, as on any line.
                Err(_) => self.counters.errors_out += 1,
            }
            self.unsent.pop_front();
        }
    }

    /// State and counters.
    pub(crate) fn tables(&self) -> Vec<Table> {
        let mut table = Table::new(
            "Cells over UDP",
            &[
                "local",
                "peer",
                "datagrams_in",
                "strangers",
                "bad_length",
                "errors_in",
                "cells_out",
                "unsent",
                "dropped_out",
                "errors_out",
            ],
        );
        let local = self.socket.local_addr().ok();
        let counters = &self.counters;
        table.row(vec![
            local.map(|local| local.to_string()).into(),
            self.peer.to_string().into(),
            counters.datagrams_in.into(),
            counters.strangers.into(),
            counters.bad_length.into(),
            counters.errors_in.into(),
            counters.cells_out.into(),
            self.unsent.len().into(),
            counters.dropped_out.into(),
            counters.errors_out.into(),
        ]);
        vec![table, self.receiver.table()]
    }
}

#[cfg(test)]
mod tests;
