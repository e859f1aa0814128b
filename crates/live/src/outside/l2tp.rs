//! ATM pseudowires over IP: a session of L2TPv3 that both ends have configured.
//!
//! **Format.** Over IP (protocol 115) or UDP: session ID, cookie, sublayer (RFC 3931 §4.1, §4.6; RFC 4454 §4.1), then
//! cells without HEC, one or many ([`super::concat`]; RFC 4454 §5.2). The session stands for the whole link, for one
//! path or for one channel (`scope.rs`).
//!
//! **The session** is static: no control connection sets it up or ends it. A control message is counted and dropped. So
//! the line counts as up from the start, as with cells over UDP; signalling on it shows whether there is a peer. A
//! packet with another session ID or another cookie is dropped and counted.
//!
//! **Sockets.** Over UDP the peer's address and port are compared here. Over IP the socket is a raw one (the privilege
//! is `CAP_NET_RAW`), connected, so the kernel hands over only packets of the peer. The kernel adds the IP header to
//! packets of IPv4, and reassembles fragments.

use super::bucket::Bucket;
use super::cells::Receiver;
use super::concat::{Shim, Unpacker};
use super::datagrams::{Datagrams, Sent};
use super::filling::Filling;
use super::inbox::{Come, Inbox, Turns};
use super::packets::Packets;
use super::scope;
use super::{Event, Medium};
use aerostat_lab::model::{L2tp, L2tpEnds};
use aerostat_node::atm::{CellRate, CellRun};
use aerostat_node::inspect::{Name, Table};
use aerostat_proto::Instant;
use aerostat_wire::ipv4::Ipv4View;
use aerostat_wire::l2tp::{Carrier, IP_PROTOCOL, MAX_HEADER_LEN, Packet, Sublayer};
use mio::{Registry, Token};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType, bind, connect, socket_with};
use std::io;
use std::net::{IpAddr, SocketAddr};

enum Socket {
    Udp(Box<Datagrams>),
    /// The flag says that packets come with their IP header.
    Raw(Packets, bool),
}

impl Socket {
    fn new(ends: &L2tpEnds, registry: &Registry, token: Token) -> io::Result<Self> {
        Ok(match *ends {
            L2tpEnds::Udp(local, peer) => {
                Self::Udp(Box::new(Datagrams::new(local, peer, registry, token)?))
            }
            L2tpEnds::Ip(local, peer) => {
                let socket = Packets::new(raw(local, peer)?, registry, token)?;
                Self::Raw(socket, local.is_ipv4())
            }
        })
    }

    const fn readable(&self) -> bool {
        match self {
            Self::Udp(socket) => socket.readable,
            Self::Raw(socket, _) => socket.readable,
        }
    }

    const fn ready(&mut self) {
        match self {
            Self::Udp(socket) => socket.readable = true,
            Self::Raw(socket, _) => socket.readable = true,
        }
    }

    /// Reads packets; returns how many buffers have come. An error is counted.
    fn read(&mut self, inbox: &mut Inbox, most: usize, errors: &mut u64) -> usize {
        match self {
            Self::Udp(socket) => socket.read(inbox, most),
            Self::Raw(socket, _) => socket.read(inbox, most).unwrap_or_else(|_| {
                *errors += 1;
                0
            }),
        }
    }

    /// How many packets of this length go in one call.
    fn most(&mut self, length: usize, now: Instant) -> usize {
        match self {
            Self::Udp(socket) => socket.most(length, now),
            Self::Raw(..) => Packets::MOST,
        }
    }

    /// Sends packets of `length` octets; returns what became of the first ones, and how many those are.
    fn send(&mut self, octets: &[u8], length: usize, now: Instant) -> (Sent, usize) {
        match self {
            Self::Udp(socket) => (
                socket.send(octets, length, now),
                octets.len().div_ceil(length.max(1)),
            ),
            Self::Raw(socket, _) => match socket.send(octets, length) {
                Ok(count) => (Sent::Yes, count),
                Err(Errno::AGAIN) => (Sent::Later, 0),
                Err(Errno::MSGSIZE) => (Sent::TooLong, 1),
                Err(_) => (Sent::Refused, 1),
            },
        }
    }

    fn await_room(&mut self, awaited: bool, registry: &Registry) {
        match self {
            Self::Udp(socket) => socket.await_room(awaited, registry),
            Self::Raw(socket, _) => socket.await_room(awaited, registry),
        }
    }

    fn overflowed(&self) -> Option<u32> {
        match self {
            Self::Udp(socket) => socket.overflowed(),
            Self::Raw(socket, _) => socket.overflowed(),
        }
    }

    /// Reports that packets could not be delivered.
    const fn unreachable(&self) -> u64 {
        match self {
            Self::Udp(socket) => socket.unreachable,
            Self::Raw(..) => 0,
        }
    }

    /// The address of the last packet of another system than the peer.
    const fn last_stranger(&self) -> Option<SocketAddr> {
        match self {
            Self::Udp(socket) => socket.last_stranger,
            Self::Raw(..) => None,
        }
    }

    /// Packets of others than the peer; over IP the kernel hands over none.
    const fn strangers(&self) -> u64 {
        match self {
            Self::Udp(socket) => socket.strangers,
            Self::Raw(..) => 0,
        }
    }

    /// Errors when reading over UDP.
    const fn errors_in(&self) -> u64 {
        match self {
            Self::Udp(socket) => socket.errors_in,
            Self::Raw(..) => 0,
        }
    }
}

/// A raw socket for protocol 115 between these two addresses.
fn raw(local: IpAddr, peer: IpAddr) -> io::Result<OwnedFd> {
    let told = |error: Errno| {
        let error = io::Error::from(error);
        let text = format!("a raw socket of {local} (needs CAP_NET_RAW): {error}");
        io::Error::new(error.kind(), text)
    };
    let family = match local {
        IpAddr::V4(_) => AddressFamily::INET,
        IpAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let protocol = std::num::NonZeroU32::new(IP_PROTOCOL.into()).map(Protocol::from_raw);
    let socket = socket_with(family, SocketType::RAW, flags, protocol).map_err(told)?;
    bind(&socket, &SocketAddr::new(local, 0)).map_err(told)?;
    connect(&socket, &SocketAddr::new(peer, 0)).map_err(told)?;
    Ok(socket)
}

aerostat_node::rows! {
    /// One row for each link over L2TPv3.
    struct SessionRow: "port.L2TPv3" for (link: &Link) {
        /// This end, with its port over UDP.
        local: String = link.local(),
        /// The peer, with its port over UDP.
        peer: String = link.peer(),
        /// Session ID of packets from the peer.
        session: u32 = link.model.session,
        /// Session ID of packets to the peer.
        peer_session: u32 = link.model.peer_session,
        /// `none`, `default` or `atm`.
        sublayer: Name = link.sublayer(),
        /// The VCs for which the session stands: `all`, VPI.* or VPI.VCI.
        carries: String = scope::shown(link.model.scope),
        /// Packets from the peer.
        packets_in: u64 = link.counters.packets_in,
        /// Packets from another address than the peer's (over UDP).
        strangers: u64 = link.socket.strangers(),
        /// The address of the last one of them.
        last_stranger: Option<SocketAddr> = link.socket.last_stranger(),
        /// Errors of the operating system when reading.
        errors_in: u64 = link.socket.errors_in() + link.counters.errors_in,
        /// Packets for which the socket had no room.
        overflowed: Option<u32> = link.socket.overflowed(),
        /// Turns in which the link met its limit and more packets may have waited.
        cut_turns: u64 = link.turns.cut,
        /// Packets without a whole header, or of another version.
        bad_header: u64 = link.counters.bad_header,
        /// Control messages.
        control: u64 = link.counters.control,
        /// Packets with another session ID.
        wrong_session: u64 = link.counters.wrong_session,
        /// Packets with another cookie.
        wrong_cookie: u64 = link.counters.wrong_cookie,
        /// Packets of no valid length.
        bad_length: u64 = link.unpacker.bad_length,
        /// Packets that did not come, by their sequence numbers.
        missing: u64 = link.unpacker.missing(),
        /// Packets that came after a later one.
        late: u64 = link.unpacker.late(),
        /// Cells above the rate of the link.
        policed: u64 = link.counters.policed,
        /// Packets sent.
        packets_out: u64 = link.counters.packets_out,
        /// Cells sent.
        cells_out: u64 = link.counters.cells_out,
        /// Cells that wait for a packet to fill or for the operating system.
        unsent: usize = link.filling.len(),
        /// Cells dropped because too many waited.
        dropped_out: u64 = link.filling.dropped,
        /// Cells of VCs that the session does not carry.
        uncarried_out: u64 = link.counters.uncarried,
        /// Packets that are longer than the way allows.
        too_long_out: u64 = link.counters.too_long,
        /// Packets that the operating system refused.
        errors_out: u64 = link.counters.errors_out,
        /// Reports of the network that packets could not be delivered (over UDP): the peer's port is closed, or there
        /// is no way.
        unreachable: u64 = link.socket.unreachable(),
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    packets_in: u64,
    errors_in: u64,
    /// Packets without a whole header, of another version, or with a wrong IP header.
    bad_header: u64,
    /// Control messages.
    control: u64,
    wrong_session: u64,
    wrong_cookie: u64,
    /// Cells above the rate of the link.
    policed: u64,
    packets_out: u64,
    cells_out: u64,
    /// Cells of VCs that the session does not carry.
    uncarried: u64,
    /// Packets that are longer than the way allows.
    too_long: u64,
    /// Packets that the operating system refused.
    errors_out: u64,
}

/// One link.
pub(crate) struct Link {
    socket: Socket,
    model: L2tp,
    carrier: Carrier,
    /// Beginning of packets to the peer: the header and the peer's cookie.
    header: Vec<u8>,
    told_up: bool,
    pub(super) turns: Turns,
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
        model: &L2tp,
        rate: CellRate,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Self> {
        let shim = Shim::Sublayer {
            form: model.sublayer,
            numbers: model.sequence,
        };
        let carrier = match model.ends {
            L2tpEnds::Ip(..) => Carrier::Ip,
            L2tpEnds::Udp(..) => Carrier::Udp,
        };
        let mut header = Vec::with_capacity(MAX_HEADER_LEN);
        carrier.encode(model.peer_session, &mut header);
        header.extend(model.peer_cookie.octets());
        Ok(Self {
            socket: Socket::new(&model.ends, registry, token)?,
            model: *model,
            carrier,
            header,
            told_up: false,
            turns: Turns::default(),
            filling: Filling::gathering(model.gathering, shim),
            unpacker: Unpacker::new(shim),
            bucket: Bucket::new(rate),
            receiver: Receiver::default(),
            counters: Counters::default(),
        })
    }

    /// Address of this end, with its port over UDP.
    fn local(&self) -> String {
        match self.model.ends {
            L2tpEnds::Udp(local, _) => local.to_string(),
            L2tpEnds::Ip(local, _) => local.to_string(),
        }
    }

    fn sublayer(&self) -> Name {
        let text = match self.model.sublayer {
            Sublayer::None => "none",
            Sublayer::Default => "default",
            Sublayer::Atm => "atm",
        };
        text.into()
    }

    /// Takes the packets of a buffer.
    fn buffer(&mut self, inbox: &Inbox, slot: usize, told: &mut Vec<Event>) {
        let now = inbox.arrived(slot);
        match &mut self.socket {
            Socket::Udp(socket) => {
                let come = socket.peers_own(inbox, slot);
                for packet in come.into_iter().flat_map(Come::each) {
                    self.counters.packets_in += 1;
                    self.packet(Some(packet), now, told);
                }
            }
            Socket::Raw(_, with_header) => {
                self.counters.packets_in += 1;
                let packet = inbox.packet(slot);
                let inside = match with_header {
                    true => Ipv4View::new(packet).and_then(|view| packet.get(view.header_len()..)),
                    false => Some(packet),
                };
                self.packet(inside, now, told);
            }
        }
    }

    /// Takes what L2TPv3 begins with; `None` stands for a wrong IP header.
    fn packet(&mut self, packet: Option<&[u8]>, now: Instant, told: &mut Vec<Event>) {
        let read = packet.and_then(|packet| self.carrier.decode(packet).ok());
        let (session, rest) = match read {
            None => {
                self.counters.bad_header += 1;
                return;
            }
            Some(Packet::Control) => {
                self.counters.control += 1;
                return;
            }
            Some(Packet::Data(session, rest)) => (session, rest),
        };
        if session != self.model.session {
            self.counters.wrong_session += 1;
            return;
        }
        let Some(cells) = rest.strip_prefix(self.model.cookie.octets()) else {
            self.counters.wrong_cookie += 1;
            return;
        };
        let scope = self.model.scope;
        let cells = self.unpacker.cells(cells);
        let label = |header| scope::relabel(scope, header);
        let rest = (&mut self.bucket, now);
        self.counters.policed += self.receiver.packet(cells, label, rest, told);
    }
}

impl Medium for Link {
    fn cells(&mut self) -> Option<(&mut Receiver, &mut Turns)> {
        Some((&mut self.receiver, &mut self.turns))
    }
    fn ready(&mut self, _: usize) {
        self.socket.ready();
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
        match self.model.ends {
            L2tpEnds::Udp(_, peer) => peer.to_string(),
            L2tpEnds::Ip(_, peer) => peer.to_string(),
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
        self.turns.begin();
        while self.socket.readable() && self.turns.most() > 0 {
            let most = self.turns.most();
            let count = (self.socket).read(inbox, most, &mut self.counters.errors_in);
            self.turns.took(count, inbox.octets(count));
            for slot in 0..count {
                self.buffer(inbox, slot, told);
            }
        }
        self.receiver.end(told);
        self.turns.end(self.socket.readable())
    }
    fn send(&mut self, run: &CellRun) {
        if scope::carries(self.model.scope, run.vc) {
            self.filling.push(run, &self.header);
        } else {
            self.counters.uncarried += u64::from(run.count);
        }
    }
    fn flush(&mut self, registry: &Registry, now: Instant, _: &mut Vec<Event>) {
        let (socket, counters) = (&mut self.socket, &mut self.counters);
        while let Some(batch) = (self.filling).batch(now, |length| socket.most(length, now)) {
            let (sent, packets) = socket.send(batch.octets, batch.length, now);
            match sent {
                Sent::Yes => {
                    counters.packets_out += packets as u64;
                    counters.cells_out += self.filling.sent(packets) as u64;
                    continue;
                }
                Sent::Smaller => continue,
                Sent::Later => {
                    self.filling.block(true);
                    continue;
                }
                // The cells are lost, as on any line.
                Sent::TooLong => counters.too_long += packets as u64,
                Sent::Refused => counters.errors_out += packets as u64,
            }
            self.filling.sent(packets);
        }
        socket.await_room(self.filling.is_blocked(), registry);
    }
    fn tables(&self) -> Vec<Table> {
        vec![Table::of([SessionRow::of(self)]), self.receiver.table()]
    }
}

#[cfg(test)]
mod tests;
