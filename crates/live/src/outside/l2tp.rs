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

use super::Event;
use super::bucket::Bucket;
use super::cells::Receiver;
use super::concat::{MAX_DATAGRAM, Shim, Unpacker};
use super::filling::Filling;
use super::scope;
use aerostat_lab::model::{L2tp, L2tpEnds};
use aerostat_node::atm::{CellRate, CellRun};
use aerostat_node::inspect::{Name, Table};
use aerostat_proto::Instant;
use aerostat_wire::ipv4::Ipv4View;
use aerostat_wire::l2tp::{Carrier, IP_PROTOCOL, MAX_HEADER_LEN, Packet, Sublayer};
use mio::net::UdpSocket;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, bind, connect, recv,
    send, socket_with, sockopt,
};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};

/// Limit of packets taken in one turn.
const READS: usize = 512;
/// Requested size of the socket's receive buffer, octets; the system may allow less.
const SOCKET_BUFFER: usize = 4 << 20;
/// Longest header of IPv4.
const MAX_IP_HEADER: usize = 60;

enum Socket {
    Udp(UdpSocket, SocketAddr),
    /// The flag says that packets come with their IP header.
    Raw(OwnedFd, bool),
}

/// What was read.
enum Read {
    /// A packet of this many octets; over IPv4 with its IP header.
    Packet(usize),
    /// A packet of another address, or an error; go on.
    Stranger,
    Error,
    Again,
    /// No packet waits.
    Nothing,
}

impl Socket {
    fn new(ends: &L2tpEnds, registry: &Registry, token: Token) -> io::Result<Self> {
        let both = Interest::READABLE | Interest::WRITABLE;
        let socket = match *ends {
            L2tpEnds::Udp(local, peer) => {
                let mut socket = UdpSocket::bind(local)
                    .map_err(|error| io::Error::new(error.kind(), format!("{local}: {error}")))?;
                registry.register(&mut socket, token, both)?;
                Self::Udp(socket, peer)
            }
            L2tpEnds::Ip(local, peer) => {
                let socket = raw(local, peer)?;
                registry.register(&mut SourceFd(&socket.as_raw_fd()), token, both)?;
                Self::Raw(socket, local.is_ipv4())
            }
        };
        let fd = socket.fd();
        if sockopt::set_socket_recv_buffer_size_force(fd, SOCKET_BUFFER).is_err() {
            let _ = sockopt::set_socket_recv_buffer_size(fd, SOCKET_BUFFER);
        }
        Ok(socket)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Udp(socket, _) => socket.as_fd(),
            Self::Raw(socket, _) => socket.as_fd(),
        }
    }

    fn read(&self, octets: &mut [u8]) -> Read {
        let error = |error: io::Error| match error.kind() {
            ErrorKind::WouldBlock => Read::Nothing,
            ErrorKind::Interrupted => Read::Again,
            _ => Read::Error,
        };
        match self {
            Self::Udp(socket, peer) => match socket.recv_from(octets) {
                Ok((_, from)) if from.ip() != peer.ip() || from.port() != peer.port() => {
                    Read::Stranger
                }
                Ok((count, _)) => Read::Packet(count),
                Err(why) => error(why),
            },
            Self::Raw(socket, _) => match recv(socket, octets, RecvFlags::empty()) {
                Ok((count, _)) => Read::Packet(count),
                Err(why) => error(why.into()),
            },
        }
    }

    fn write(&self, octets: &[u8]) -> io::Result<usize> {
        match self {
            Self::Udp(socket, peer) => socket.send_to(octets, *peer),
            Self::Raw(socket, _) => Ok(send(socket, octets, SendFlags::empty())?),
        }
    }

    /// What L2TPv3 begins with in a packet that was read; `None` if the IP header is wrong.
    fn inside<'a>(&self, packet: &'a [u8]) -> Option<&'a [u8]> {
        match self {
            Self::Raw(_, true) => {
                let view = Ipv4View::new(packet)?;
                packet.get(view.header_len()..)
            }
            _ => Some(packet),
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
    struct SessionRow: "port.L2TPv3" {
        /// This end, with its port over UDP.
        local: String,
        /// The peer, with its port over UDP.
        peer: String,
        /// Session ID of packets from the peer.
        session: u32,
        /// Session ID of packets to the peer.
        peer_session: u32,
        /// `none`, `default` or `atm`.
        sublayer: Name,
        /// The VCs for which the session stands: `all`, VPI.* or VPI.VCI.
        carries: String,
        /// Packets from the peer.
        packets_in: u64,
        /// Packets from another address than the peer's (over UDP).
        strangers: u64,
        /// Errors of the operating system when reading.
        errors_in: u64,
        /// Packets without a whole header, or of another version.
        bad_header: u64,
        /// Control messages.
        control: u64,
        /// Packets with another session ID.
        wrong_session: u64,
        /// Packets with another cookie.
        wrong_cookie: u64,
        /// Packets of no valid length.
        bad_length: u64,
        /// Packets that did not come, by their sequence numbers.
        missing: u64,
        /// Packets that came after a later one.
        late: u64,
        /// Cells above the rate of the link.
        policed: u64,
        /// Packets sent.
        packets_out: u64,
        /// Cells sent.
        cells_out: u64,
        /// Cells that wait for a packet to fill or for the operating system.
        unsent: usize,
        /// Cells dropped because too many waited.
        dropped_out: u64,
        /// Cells of VCs that the session does not carry.
        uncarried_out: u64,
        /// Packets that are longer than the way allows.
        too_long_out: u64,
        /// Packets that the operating system refused.
        errors_out: u64,
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    packets_in: u64,
    /// Packets from another address than the peer's (over UDP).
    strangers: u64,
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
    /// What packets to the peer begin with: the header and the peer's cookie.
    header: Vec<u8>,
    told_up: bool,
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
            readable: true,
            filling: Filling::gathering(model.gathering, shim),
            unpacker: Unpacker::new(shim),
            bucket: Bucket::new(rate),
            receiver: Receiver::default(),
            // One octet more than a packet, so that longer packets are noticed.
            octets: vec![0; MAX_IP_HEADER + MAX_HEADER_LEN + MAX_DATAGRAM + 1],
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

    /// Takes a bounded number of packets; true if more may be left.
    pub(crate) fn turn(&mut self, now: Instant, told: &mut Vec<Event>) -> bool {
        if !self.told_up {
            self.told_up = true;
            told.push(Event::Up);
        }
        let mut octets = std::mem::take(&mut self.octets);
        for _ in 0..READS {
            if !self.readable {
                break;
            }
            match self.socket.read(&mut octets) {
                Read::Packet(count) => {
                    self.counters.packets_in += 1;
                    let packet = octets.get(..count).unwrap_or_default();
                    self.packet(packet, now, told);
                }
                Read::Stranger => self.counters.strangers += 1,
                Read::Error => self.counters.errors_in += 1,
                Read::Again => {}
                Read::Nothing => self.readable = false,
            }
        }
        told.extend(self.receiver.end().map(Event::Cells));
        self.octets = octets;
        self.readable
    }

    fn packet(&mut self, packet: &[u8], now: Instant, told: &mut Vec<Event>) {
        let packet = self.socket.inside(packet);
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
        let cells = cells.map(|(header, payload)| (scope::relabel(scope, header), payload));
        self.counters.policed += self.receiver.packet(cells, &mut self.bucket, now, told);
    }

    /// Queues all cells of a run, or none.
    pub(crate) fn send(&mut self, run: &CellRun) {
        if scope::carries(self.model.scope, run.vc) {
            self.filling.push(run);
        } else {
            self.counters.uncarried += u64::from(run.count);
        }
    }

    /// Sends the packets that are due, as far as the operating system takes them.
    pub(crate) fn flush(&mut self, now: Instant) {
        while let Some((cells, count)) = self.filling.packet(now) {
            let packet = [&self.header[..], &cells].concat();
            match self.socket.write(&packet) {
                Ok(_) => {
                    self.counters.packets_out += 1;
                    self.counters.cells_out += count as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.filling.block(true);
                    return;
                }
                // The cells are lost, as on any line.
                Err(error) if Errno::from_io_error(&error) == Some(Errno::MSGSIZE) => {
                    self.counters.too_long += 1;
                }
                Err(_) => self.counters.errors_out += 1,
            }
            self.filling.sent(count);
        }
    }

    /// State and counters.
    pub(crate) fn tables(&self) -> Vec<Table> {
        let counters = &self.counters;
        let (local, peer) = match self.model.ends {
            L2tpEnds::Ip(local, peer) => (local.to_string(), peer.to_string()),
            L2tpEnds::Udp(local, peer) => (local.to_string(), peer.to_string()),
        };
        let sublayer = match self.model.sublayer {
            Sublayer::None => "none",
            Sublayer::Default => "default",
            Sublayer::Atm => "atm",
        };
        let row = SessionRow {
            local,
            peer,
            session: self.model.session,
            peer_session: self.model.peer_session,
            sublayer: sublayer.into(),
            carries: scope::shown(self.model.scope),
            packets_in: counters.packets_in,
            strangers: counters.strangers,
            errors_in: counters.errors_in,
            bad_header: counters.bad_header,
            control: counters.control,
            wrong_session: counters.wrong_session,
            wrong_cookie: counters.wrong_cookie,
            bad_length: self.unpacker.bad_length,
            missing: self.unpacker.missing(),
            late: self.unpacker.late(),
            policed: counters.policed,
            packets_out: counters.packets_out,
            cells_out: counters.cells_out,
            unsent: self.filling.len(),
            dropped_out: self.filling.dropped,
            uncarried_out: counters.uncarried,
            too_long_out: counters.too_long,
            errors_out: counters.errors_out,
        };
        vec![Table::of([row]), self.receiver.table()]
    }
}

#[cfg(test)]
mod tests;
