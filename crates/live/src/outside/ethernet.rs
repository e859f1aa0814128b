//! Ethernet frames filled with cells ("fat cells"), to another switch or gateway on the same cable.
//!
//! **Format.** Destination, source, EtherType 88B5 (IEEE 802: local experimental use; these frames have no number of
//! their own), then the contents of a datagram of [`super::concat`]: an optional control word and 1 to 172 cells of 52
//! octets. The shortest such frame needs no padding. The idea is that of the ATM service of Cambridge, which carried
//! "an Ethernet frame filled with ATM cells" (Black and Crosby 1993); that layout is not published, so RFC 4717's is
//! used.
//!
//! **The line.** The interface is looked up by its name until it exists and is up. Then the port is up, until the
//! interface goes down or disappears. The interval between look-ups starts at 250 ms and doubles to 8 s. The socket is
//! opened once, at the start, because only that needs the privilege (`CAP_NET_RAW`). Only frames from the configured
//! MAC address to the interface's own are used. There can be one such link between two MAC addresses.
//!
//! Filling, policing and reassembly are those of UDP (`filling.rs`, `bucket.rs`, `cells.rs`).

use super::Event;
use super::bucket::Bucket;
use super::cells::Receiver;
use super::concat::{MAX_DATAGRAM, Unpacker};
use super::filling::Filling;
use aerostat_lab::model::Packing;
use aerostat_node::atm::{CellRate, CellRun};
use aerostat_node::inspect::{Name, Table};
use aerostat_proto::{Duration, Instant, Trace};
use aerostat_wire::MacAddr;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::fd::{AsRawFd as _, OwnedFd};
use rustix::io::Errno;
use rustix::net::addr::{SocketAddrArg as _, SocketAddrStorage};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrAny, SocketFlags, SocketType, bind, getsockname,
    netdevice, recv, send, socket_with, sockopt,
};
use std::io;
use std::mem::MaybeUninit;

/// Local experimental EtherType 1.
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];
/// Octets of an Ethernet header.
const HEADER: usize = 14;
/// Octets of a `sockaddr_ll`: family, protocol, index, hardware type, packet type, length of the address, address.
const SOCKADDR_LL: usize = 20;
/// Limit of frames taken in one turn.
const READS: usize = 512;
/// Requested size of the socket's receive buffer, octets; the system may allow less.
const SOCKET_BUFFER: usize = 4 << 20;
/// Intervals at which the interface is looked up.
const FIRST_RETRY: Duration = Duration::from_millis(250);
const LAST_RETRY: Duration = Duration::from_secs(8);

aerostat_node::rows! {
    /// One row for each link by cells in Ethernet frames.
    struct LineRow: "port.Cells in Ethernet frames" {
        /// `up`, or `away` without the interface.
        state: Name,
        /// The interface.
        interface: String,
        /// Its MAC address.
        address: Option<MacAddr>,
        /// MAC address of the peer.
        peer: MacAddr,
        /// How often the interface came up.
        ups: u64,
        /// Frames from the peer.
        frames_in: u64,
        /// Frames from another system than the peer, or to another system.
        strangers: u64,
        /// Frames without the length of cells.
        bad_length: u64,
        /// Frames with a wrong control word.
        bad_word: u64,
        /// Frames that did not come, by their sequence numbers.
        missing: u64,
        /// Frames that came after a later one.
        late: u64,
        /// Cells above the rate of the link.
        policed: u64,
        /// Frames sent.
        frames_out: u64,
        /// Cells sent.
        cells_out: u64,
        /// Cells that wait for a frame to fill.
        unsent: usize,
        /// Cells dropped because too many waited.
        dropped_out: u64,
        /// Frames that the operating system refused.
        errors_out: u64,
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    ups: u64,
    frames_in: u64,
    /// Frames from another system than the peer, or to another system.
    strangers: u64,
    policed: u64,
    frames_out: u64,
    cells_out: u64,
    errors_out: u64,
}

/// State of the line.
enum Line {
    /// The interface does not exist or is down.
    Away { at: Instant, pause: Duration },
    /// The interface is up and has this address.
    Up(MacAddr),
}

/// One link.
pub(crate) struct Link {
    socket: OwnedFd,
    interface: String,
    peer: MacAddr,
    line: Line,
    readable: bool,
    filling: Filling,
    unpacker: Unpacker,
    bucket: Bucket,
    receiver: Receiver,
    octets: Vec<u8>,
    counters: Counters,
}

impl Link {
    /// Opens the socket.
    ///
    /// # Errors
    /// The error of the operating system.
    pub(crate) fn new(
        (interface, peer): (&str, MacAddr),
        packing: Packing,
        rate: CellRate,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        // Without a protocol the socket receives nothing before it is bound.
        let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)
            .map_err(|error| raw_socket(interface, error))?;
        if sockopt::set_socket_recv_buffer_size_force(&socket, SOCKET_BUFFER).is_err() {
            let _ = sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BUFFER);
        }
        let interest = Interest::READABLE | Interest::WRITABLE;
        registry.register(&mut SourceFd(&socket.as_raw_fd()), token, interest)?;
        let word = matches!(packing, Packing::Many { word: true, .. });
        Ok(Self {
            socket,
            interface: interface.to_owned(),
            peer,
            line: Line::Away {
                at: Instant::ZERO,
                pause: FIRST_RETRY,
            },
            readable: true,
            filling: Filling::new(packing),
            unpacker: Unpacker::new(word),
            bucket: Bucket::new(rate),
            receiver: Receiver::default(),
            // One octet more than a frame, so that longer frames are noticed.
            octets: vec![0; HEADER + MAX_DATAGRAM + 1],
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
        match self.line {
            Line::Away { at, .. } => Some(at),
            Line::Up(_) => self.filling.due(),
        }
    }

    /// Takes a bounded number of frames; true if more may be left.
    pub(crate) fn turn(&mut self, now: Instant, told: &mut Vec<Event>) -> bool {
        if let Line::Away { at, pause } = self.line
            && at <= now
        {
            self.look(pause, now, told);
        }
        let Line::Up(own) = self.line else {
            return false;
        };
        let mut octets = std::mem::take(&mut self.octets);
        let result = self.take(&mut octets, own, now, told);
        self.octets = octets;
        result.unwrap_or_else(|error| {
            self.lost(error, now, told);
            false
        })
    }

    /// Checks whether the interface exists and is up.
    fn look(&mut self, pause: Duration, now: Instant, told: &mut Vec<Event>) {
        match self.bind() {
            Ok(own) => {
                self.line = Line::Up(own);
                self.readable = true;
                self.filling.block(false);
                self.counters.ups += 1;
                let text = format!(
                    "cells in Ethernet frames on {} to {}",
                    self.interface, self.peer
                );
                told.push(Event::Up);
                told.push(Event::Trace(Trace::milestone("ethernet.up", text)));
            }
            Err(_) => {
                self.line = Line::Away {
                    at: now + pause,
                    pause: (pause * 2).min(LAST_RETRY),
                };
            }
        }
    }

    /// Binds the socket to the interface; returns its MAC address.
    fn bind(&self) -> Result<MacAddr, Errno> {
        let index = netdevice::name_to_index(&self.socket, &self.interface)?;
        bind(&self.socket, &address(index))?;
        // An interface that is down causes an error here.
        sockopt::socket_error(&self.socket)??;
        let octets = octets_of(&getsockname(&self.socket)?);
        let [.., length, a, b, c, d, e, f, _, _] = octets;
        if length != 6 {
            return Err(Errno::AFNOSUPPORT);
        }
        Ok(MacAddr([a, b, c, d, e, f]))
    }

    fn lost(&mut self, error: Errno, now: Instant, told: &mut Vec<Event>) {
        self.line = Line::Away {
            at: now + FIRST_RETRY,
            pause: FIRST_RETRY * 2,
        };
        self.filling.clear();
        let text = format!("{} is gone: {error}", self.interface);
        told.push(Event::Trace(Trace::milestone("ethernet.down", text)));
        told.push(Event::Down);
    }

    fn take(
        &mut self,
        octets: &mut [u8],
        own: MacAddr,
        now: Instant,
        told: &mut Vec<Event>,
    ) -> Result<bool, Errno> {
        for _ in 0..READS {
            if !self.readable {
                return Ok(false);
            }
            match recv(&self.socket, &mut *octets, RecvFlags::empty()) {
                Ok((count, _)) => {
                    self.counters.frames_in += 1;
                    self.frame(octets.get(..count).unwrap_or_default(), own, now, told);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.readable = false,
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn frame(&mut self, octets: &[u8], own: MacAddr, now: Instant, told: &mut Vec<Event>) {
        let Some((header, cells)) = octets.split_first_chunk::<HEADER>() else {
            self.unpacker.bad_length += 1;
            return;
        };
        if header[..6] != own.0 || header[6..12] != self.peer.0 {
            self.counters.strangers += 1;
            return;
        }
        for (header, payload) in self.unpacker.cells(cells) {
            if let Some(at) = self.bucket.take(now) {
                told.extend(self.receiver.take(header, &payload, at).map(Event::Cells));
            } else {
                self.counters.policed += 1;
            }
        }
    }

    /// Queues all cells of a run, or none.
    pub(crate) fn send(&mut self, run: &CellRun) {
        match self.line {
            Line::Up(_) => self.filling.push(run),
            Line::Away { .. } => self.filling.dropped += u64::from(run.count),
        }
    }

    /// Sends the packets that are due, as far as the operating system takes them.
    pub(crate) fn flush(&mut self, now: Instant, told: &mut Vec<Event>) {
        let Line::Up(own) = self.line else {
            return;
        };
        while let Some((cells, count)) = self.filling.packet(now) {
            let mut frame = Vec::with_capacity(HEADER + cells.len());
            frame.extend(self.peer.0);
            frame.extend(own.0);
            frame.extend(ETHERTYPE);
            frame.extend(cells);
            match send(&self.socket, &frame, SendFlags::empty()) {
                Ok(_) => {
                    self.counters.frames_out += 1;
                    self.counters.cells_out += count as u64;
                }
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {
                    self.filling.block(true);
                    return;
                }
                Err(error @ (Errno::NETDOWN | Errno::NXIO | Errno::NODEV)) => {
                    return self.lost(error, now, told);
                }
                // The cells are lost, as on any line: the packet is too long for the interface, or its queue is full.
                Err(_) => self.counters.errors_out += 1,
            }
            self.filling.sent(count);
        }
    }

    /// State and counters.
    pub(crate) fn tables(&self) -> Vec<Table> {
        let (state, own) = match self.line {
            Line::Away { .. } => ("away", None),
            Line::Up(own) => ("up", Some(own)),
        };
        let counters = &self.counters;
        let row = LineRow {
            state: state.into(),
            interface: self.interface.clone(),
            address: own,
            peer: self.peer,
            ups: counters.ups,
            frames_in: counters.frames_in,
            strangers: counters.strangers,
            bad_length: self.unpacker.bad_length,
            bad_word: self.unpacker.bad_word,
            missing: self.unpacker.missing,
            late: self.unpacker.late,
            policed: counters.policed,
            frames_out: counters.frames_out,
            cells_out: counters.cells_out,
            unsent: self.filling.len(),
            dropped_out: self.filling.dropped,
            errors_out: counters.errors_out,
        };
        vec![Table::of([row]), self.receiver.table()]
    }
}

fn raw_socket(interface: &str, error: Errno) -> io::Error {
    let error = io::Error::from(error);
    let text = format!("a raw socket for {interface} (needs CAP_NET_RAW): {error}");
    io::Error::new(error.kind(), text)
}

/// The destination address of our frames on the interface with this index.
fn address(index: u32) -> SocketAddrAny {
    let mut octets = [0_u8; SOCKADDR_LL];
    octets[..2].copy_from_slice(&AddressFamily::PACKET.as_raw().to_ne_bytes());
    octets[2..4].copy_from_slice(&ETHERTYPE);
    octets[4..8].copy_from_slice(&index.to_ne_bytes());
    let mut storage = MaybeUninit::<SocketAddrStorage>::zeroed();
    #[allow(unsafe_code)]
    // SAFETY: a socket address storage is larger than a `sockaddr_ll`, all of whose octets are written, starting with
    // the family.
    unsafe {
        let to = storage.as_mut_ptr().cast::<u8>();
        std::ptr::copy_nonoverlapping(octets.as_ptr(), to, SOCKADDR_LL);
        SocketAddrAny::new(storage, SOCKADDR_LL as u32)
    }
}

/// The octets of a `sockaddr_ll`; missing octets are 0.
fn octets_of(address: &SocketAddrAny) -> [u8; SOCKADDR_LL] {
    let mut octets = [0; SOCKADDR_LL];
    #[allow(unsafe_code)]
    // SAFETY: the closure copies at most the octets that the address has and the array holds, and keeps no reference.
    unsafe {
        address.with_sockaddr(|from, length| {
            let length = SOCKADDR_LL.min(length as usize);
            std::ptr::copy_nonoverlapping(from.cast::<u8>(), octets.as_mut_ptr(), length);
        });
    }
    octets
}

#[cfg(test)]
mod tests;
