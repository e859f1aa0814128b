//! A UDP socket to one peer, in batches.
//!
//! **Receiving.** A call brings many datagrams, and with GRO many of them in one buffer (`inbox.rs`).
//!
//! **Sending.** A batch is packets of one length, of which only the last one may be shorter. With GSO (generic
//! segmentation offload) it goes to the kernel in one call, up to 64 packets, and is cut into datagrams as late as
//! possible; a receiver on the same machine with GRO gets it whole. If the system refuses GSO for a batch (an interface
//! that cannot, or packets that must be fragmented), the link goes on without it, shows that, and tries again after a
//! while, because routes and interfaces change.
//!
//! **A peer that is not there.** Its system, or a router, may answer datagrams with ICMP. The kernel reports that to
//! the socket, at the next call of any kind; here it is counted, and the call is made again.
//!
//! **Fragments.** quinn-udp forbids IP fragments, because QUIC needs that. Here a packet may be longer than an
//! interface allows, so the system's own setting comes back.

use super::inbox::{Come, Inbox};
use super::options;
use aerostat_proto::{Duration, Instant};
use mio::net::UdpSocket;
use mio::{Interest, Registry, Token};
use quinn_udp::{Transmit, TransportErrorPayload, UdpSockRef, UdpSocketState};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;

/// Limit of octets in one call.
const MOST_OCTETS: usize = 64_000;
/// How long the link sends single packets after a refusal, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LAST_PAUSE: Duration = Duration::from_secs(64);
/// Limit of reports that are taken together.
const REPORTS: usize = 256;

/// Fate of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// The operating system took it.
    Yes,
    /// The operating system takes no more for now.
    Later,
    /// The batch must come again as single packets.
    Smaller,
    /// A packet is longer than the way allows.
    TooLong,
    /// Another error.
    Refused,
}

/// A socket to a peer.
pub(super) struct Datagrams {
    socket: UdpSocket,
    state: UdpSocketState,
    token: Token,
    pub(super) peer: SocketAddr,
    pub(super) readable: bool,
    /// True while the poller is to report that the socket takes data again.
    awaited: bool,
    /// False after the system has refused a batch.
    offload: bool,
    /// When batches are tried again.
    again: Option<Instant>,
    /// Pause after the next refusal.
    pause: Duration,
    /// Batches of several packets that went to the system in one call.
    pub(super) batches_out: u64,
    /// Buffers with several datagrams.
    pub(super) batches_in: u64,
    /// Datagrams from another address than the peer's.
    pub(super) strangers: u64,
    /// Source of the last such datagram.
    pub(super) last_stranger: Option<SocketAddr>,
    /// Errors of the operating system when reading.
    pub(super) errors_in: u64,
    /// Reports that packets could not be delivered: the port is closed, or there is no way.
    pub(super) unreachable: u64,
}

impl Datagrams {
    /// Opens the socket.
    ///
    /// # Errors
    /// The error of the operating system.
    pub(super) fn new(
        local: SocketAddr,
        peer: SocketAddr,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Self> {
        let mut socket = UdpSocket::bind(local)
            .map_err(|error| io::Error::new(error.kind(), format!("{local}: {error}")))?;
        options::large_buffer(&socket);
        let state = state_of(&socket, local.is_ipv4())?;
        registry.register(&mut socket, token, Interest::READABLE)?;
        Ok(Self {
            offload: state.max_gso_segments() > 1,
            again: None,
            pause: FIRST_PAUSE,
            socket,
            state,
            token,
            peer,
            readable: true,
            awaited: false,
            batches_out: 0,
            batches_in: 0,
            strangers: 0,
            last_stranger: None,
            errors_in: 0,
            unreachable: 0,
        })
    }

    /// Reads at most `most` buffers; returns how many have come.
    pub(super) fn read(&mut self, inbox: &mut Inbox, most: usize) -> usize {
        match inbox.datagrams(&self.state, UdpSockRef::from(&self.socket), most) {
            Ok(count) => {
                // A socket with less than was asked for is empty, and the poller reports the next datagram.
                self.readable = count == most;
                count
            }
            Err(error) => {
                match error.kind() {
                    ErrorKind::WouldBlock => self.readable = false,
                    ErrorKind::Interrupted => {}
                    _ if self.hear() => {}
                    _ => self.errors_in += 1,
                }
                0
            }
        }
    }

    /// Takes the reports of the network about packets that were sent; true if there were reports.
    fn hear(&mut self) -> bool {
        let mut any = false;
        for _ in 0..REPORTS {
            let report = self
                .state
                .recv_transport_error(UdpSockRef::from(&self.socket));
            let Ok(Some(report)) = report else {
                break;
            };
            any = true;
            let lost = matches!(report.payload, TransportErrorPayload::Unreachable);
            self.unreachable += u64::from(lost);
        }
        any
    }

    /// The datagrams in a buffer if they came from the peer; counts those of others.
    pub(super) fn peers_own<'a>(&mut self, inbox: &'a Inbox, slot: usize) -> Option<Come<'a>> {
        let come = inbox.datagrams_in(slot)?;
        self.batches_in += u64::from(come.count() > 1);
        let (from, peer) = (come.from, self.peer);
        if from.ip() == peer.ip() && from.port() == peer.port() {
            return Some(come);
        }
        self.strangers += come.count();
        self.last_stranger = Some(from);
        None
    }

    /// How many packets of this length go in one call.
    pub(super) fn most(&mut self, length: usize, now: Instant) -> usize {
        if self.again.is_some_and(|at| at <= now) {
            self.try_again();
        }
        if !self.offload {
            return 1;
        }
        let fit = MOST_OCTETS / length.max(1);
        fit.clamp(1, self.state.max_gso_segments())
    }

    /// Goes back to batches.
    #[cold]
    fn try_again(&mut self) {
        self.again = None;
        // After some errors the state itself keeps to single packets.
        if self.state.max_gso_segments() == 1
            && let Ok(local) = self.socket.local_addr()
            && let Ok(state) = state_of(&self.socket, local.is_ipv4())
        {
            self.state = state;
        }
        self.offload = self.state.max_gso_segments() > 1;
    }

    /// Sends packets of `length` octets, of which the last one may be shorter.
    pub(super) fn send(&mut self, octets: &[u8], length: usize, now: Instant) -> Sent {
        let several = octets.len() > length;
        let transmit = Transmit {
            destination: self.peer,
            ecn: None,
            contents: octets,
            segment_size: several.then_some(length),
            src_ip: None,
        };
        let attempt = |link: &Self| {
            let socket = UdpSockRef::from(&link.socket);
            link.state.try_send(socket, &transmit)
        };
        let mut done = attempt(self);
        // A call that reports what became of earlier packets has sent nothing.
        let blocked = |error: &io::Error| error.kind() == ErrorKind::WouldBlock;
        if done.as_ref().is_err_and(|error| !blocked(error)) && self.hear() {
            done = attempt(self);
        }
        let Err(error) = done else {
            if several {
                self.batches_out += 1;
                self.pause = FIRST_PAUSE;
            }
            return Sent::Yes;
        };
        if error.kind() == ErrorKind::WouldBlock {
            return Sent::Later;
        }
        let code = error.raw_os_error();
        let unfit = [libc::EINVAL, libc::EIO, libc::EMSGSIZE, libc::EOPNOTSUPP];
        if several && code.is_some_and(|code| unfit.contains(&code)) {
            self.hear();
            self.offload = false;
            self.again = Some(now + self.pause);
            self.pause = LAST_PAUSE.min(self.pause * 2);
            return Sent::Smaller;
        }
        match code {
            Some(libc::EMSGSIZE) => Sent::TooLong,
            _ => Sent::Refused,
        }
    }

    /// Has the poller report, or not, that the socket takes data again.
    pub(super) fn await_room(&mut self, awaited: bool, registry: &Registry) {
        if self.awaited == awaited {
            return;
        }
        let interest = match awaited {
            true => Interest::READABLE | Interest::WRITABLE,
            false => Interest::READABLE,
        };
        // The descriptor is registered, so this can only fail for lack of memory; then the next packet tries again.
        let changed = registry.reregister(&mut self.socket, self.token, interest);
        self.awaited = if changed.is_ok() { awaited } else { !awaited };
    }

    /// Own address.
    pub(super) fn local(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()
    }

    /// Datagrams for which the socket had no room.
    pub(super) fn overflowed(&self) -> Option<u32> {
        options::overflowed(&self.socket)
    }

    /// `gso`, or `single` if each packet takes a call of its own.
    pub(super) fn sending(&self) -> &'static str {
        if self.offload && self.state.max_gso_segments() > 1 {
            "gso"
        } else {
            "single"
        }
    }

    /// `gro`, or `single` if the system hands over each datagram alone.
    pub(super) fn receiving(&self) -> &'static str {
        if self.state.gro_segments() > 1 {
            "gro"
        } else {
            "single"
        }
    }

    /// Behaves as after an error of the system.
    #[cfg(test)]
    pub(super) const fn without_offload(&mut self) {
        self.offload = false;
    }
}

/// Prepares a socket for batches. What quinn-udp sets for QUIC alone is set back: no fragments, and the destination and
/// type of service of each datagram, which would cost time.
fn state_of(socket: &UdpSocket, ipv4: bool) -> io::Result<UdpSocketState> {
    let (ip, ipv6) = (libc::IPPROTO_IP, libc::IPPROTO_IPV6);
    let mut kept = vec![(ip, libc::IP_MTU_DISCOVER)];
    if !ipv4 {
        kept.extend([(ipv6, libc::IPV6_MTU_DISCOVER), (ipv6, libc::IPV6_DONTFRAG)]);
    }
    let kept = kept.into_iter();
    let kept = kept.map(|option| (option, options::number(socket, option).ok()));
    let kept: Vec<_> = kept.collect();
    let state = UdpSocketState::new(UdpSockRef::from(socket))?;
    state.enable_transport_errors(UdpSockRef::from(socket))?;
    for (option, value) in kept {
        if let Some(value) = value {
            options::set_number(socket, option, value)?;
        }
    }
    let unused = [
        (ip, libc::IP_RECVTOS),
        (ip, libc::IP_PKTINFO),
        (ipv6, libc::IPV6_RECVTCLASS),
        (ipv6, libc::IPV6_RECVPKTINFO),
    ];
    for option in unused {
        // A socket of IPv4 has no options of IPv6.
        let _ = options::set_number(socket, option, 0);
    }
    Ok(state)
}
