//! A raw socket on an Ethernet interface, for the frames of one EtherType between this system and one peer.
//!
//! **The line.** The interface is looked up by its name until it exists and is up. Then the line is up, until the
//! interface goes down or disappears. The interval between look-ups starts at 250 ms and doubles to 8 s. The socket is
//! opened once, at the start, because only that needs the privilege (`CAP_NET_RAW`). Only frames from the configured
//! MAC address to the interface's own are used.

use super::Event;
use super::inbox::{Inbox, Turns};
use super::packets::Packets;
use aerostat_node::inspect::Name;
use aerostat_proto::{Duration, Instant, Trace};
use aerostat_wire::MacAddr;
use mio::{Registry, Token};
use rustix::io::Errno;
use rustix::net::addr::{SocketAddrArg as _, SocketAddrStorage};
use rustix::net::{
    AddressFamily, SendFlags, SocketAddrAny, SocketFlags, SocketType, bind, getsockname, netdevice,
    send, socket_with, sockopt,
};
use std::io;
use std::mem::MaybeUninit;

/// Octets of an Ethernet header.
pub(super) const HEADER: usize = 14;
/// Octets of a `sockaddr_ll`: family, protocol, index, hardware type, packet type, length of the address, address.
const SOCKADDR_LL: usize = 20;
/// Intervals at which the interface is looked up.
const FIRST_RETRY: Duration = Duration::from_millis(250);
const LAST_RETRY: Duration = Duration::from_secs(8);

/// Names of frames of one kind, and their EtherType.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub(super) ethertype: u16,
    /// Content of the frames, for the story.
    pub(super) text: &'static str,
    /// Names of the events.
    pub(super) up: &'static str,
    pub(super) down: &'static str,
}

/// State of the line.
enum Line {
    /// The interface does not exist or is down, for this reason.
    Away {
        at: Instant,
        pause: Duration,
        why: Errno,
    },
    /// The interface is up and has this address.
    Up(MacAddr),
}

/// Fate of frames to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// The operating system took the first ones, so many of them.
    Yes(usize),
    /// The operating system takes no more for now.
    Later,
    /// The first frame is longer than the interface allows.
    TooLong,
    /// Another error of the first frame.
    Refused,
    /// The line is down, or went down.
    Down,
}

/// A cable to a peer.
pub(super) struct Cable {
    socket: Packets,
    kind: Kind,
    pub(super) interface: String,
    pub(super) peer: MacAddr,
    line: Line,
    /// The header of frames to the peer, while the line is up.
    header: [u8; HEADER],
    pub(super) turns: Turns,
    pub(super) ups: u64,
    pub(super) frames_in: u64,
    /// Frames from another system than the peer, or to another system.
    pub(super) strangers: u64,
    /// The system that has sent the last one of them.
    pub(super) last_stranger: Option<MacAddr>,
    /// Frames without a whole header.
    pub(super) short: u64,
}

impl Cable {
    /// Opens the socket.
    ///
    /// # Errors
    /// The error of the operating system.
    pub(super) fn new(
        (interface, peer): (&str, MacAddr),
        kind: Kind,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        // Without a protocol the socket receives nothing before it is bound.
        let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)
            .map_err(|error| raw_socket(interface, error))?;
        Ok(Self {
            socket: Packets::new(socket, registry, token)?,
            kind,
            interface: interface.to_owned(),
            peer,
            line: Line::Away {
                at: Instant::ZERO,
                pause: FIRST_RETRY,
                why: Errno::NODEV,
            },
            header: [0; HEADER],
            turns: Turns::default(),
            ups: 0,
            frames_in: 0,
            strangers: 0,
            last_stranger: None,
            short: 0,
        })
    }

    /// The poller has reported the socket.
    pub(super) fn ready(&mut self) {
        self.socket.readable = true;
    }

    /// `up`, or `away` without the interface.
    pub(super) fn state(&self) -> Name {
        let text = match self.line {
            Line::Up(_) => "up",
            Line::Away { .. } => "away",
        };
        text.into()
    }

    /// The address of the interface, if the line is up.
    pub(super) fn own(&self) -> Option<MacAddr> {
        match self.line {
            Line::Away { .. } => None,
            Line::Up(own) => Some(own),
        }
    }

    /// Reason why the line is down, in words; `None` while it is up.
    pub(super) fn trouble(&self) -> Option<String> {
        let name = &self.interface;
        match self.line {
            Line::Up(_) => None,
            Line::Away {
                why: Errno::NODEV | Errno::NXIO,
                ..
            } => Some(format!("there is no interface {name}")),
            Line::Away {
                why: Errno::NETDOWN,
                ..
            } => Some(format!("the interface {name} is down")),
            Line::Away { why, .. } => Some(format!("the interface {name} cannot be used: {why}")),
        }
    }

    /// The peer, for people.
    pub(super) fn peer(&self) -> String {
        format!("{} on {}", self.peer, self.interface)
    }

    /// When [`Self::look`] is next needed; `None` while the line is up.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match self.line {
            Line::Away { at, .. } => Some(at),
            Line::Up(_) => None,
        }
    }

    /// Checks, if it is time, whether the interface exists and is up; true if the line has come up.
    pub(super) fn look(&mut self, now: Instant, told: &mut Vec<Event>) -> bool {
        let Line::Away { at, pause, .. } = self.line else {
            return false;
        };
        if at > now {
            return false;
        }
        let own = match self.bind() {
            Ok(own) => own,
            Err(why) => {
                self.line = Line::Away {
                    at: now + pause,
                    pause: (pause * 2).min(LAST_RETRY),
                    why,
                };
                return false;
            }
        };
        self.line = Line::Up(own);
        let [low, high] = self.kind.ethertype.to_be_bytes();
        let ([a, b, c, d, e, f], [g, h, i, j, k, l]) = (self.peer.0, own.0);
        self.header = [a, b, c, d, e, f, g, h, i, j, k, l, low, high];
        self.socket.readable = true;
        self.ups += 1;
        let text = format!("{} on {} to {}", self.kind.text, self.interface, self.peer);
        told.push(Event::Up);
        told.push(Event::Trace(Trace::milestone(self.kind.up, text)));
        true
    }

    /// Binds the socket to the interface; returns its MAC address.
    fn bind(&self) -> Result<MacAddr, Errno> {
        let index = netdevice::name_to_index(&self.socket, &self.interface)?;
        bind(&self.socket, &address(index, self.kind.ethertype))?;
        // An interface that is down causes an error here, but only if the socket was bound to another one before.
        sockopt::socket_error(&self.socket)??;
        // An empty frame is refused, for another reason if the interface is up.
        if send(&self.socket, &[], SendFlags::empty()) == Err(Errno::NETDOWN) {
            return Err(Errno::NETDOWN);
        }
        let octets = octets_of(&getsockname(&self.socket)?);
        let [.., length, a, b, c, d, e, f, _, _] = octets;
        if length != 6 {
            return Err(Errno::AFNOSUPPORT);
        }
        Ok(MacAddr([a, b, c, d, e, f]))
    }

    /// The line has gone down.
    fn lost(&mut self, error: Errno, now: Instant, told: &mut Vec<Event>) {
        self.line = Line::Away {
            at: now + FIRST_RETRY,
            pause: FIRST_RETRY * 2,
            why: error,
        };
        let text = format!("{} is gone: {error}", self.interface);
        told.push(Event::Trace(Trace::milestone(self.kind.down, text)));
        told.push(Event::Down);
    }

    /// Begins a turn.
    pub(super) const fn begin(&mut self) {
        self.turns.begin();
    }

    /// Ends a turn; true if more frames may wait.
    pub(super) fn end(&mut self) -> bool {
        let up = self.own().is_some();
        self.turns.end(up && self.socket.readable)
    }

    /// Reads frames, if this turn has room for more; returns how many have come, `None` if the turn is over. If the
    /// line goes down, this is told.
    pub(super) fn read(
        &mut self,
        inbox: &mut Inbox,
        now: Instant,
        told: &mut Vec<Event>,
    ) -> Option<usize> {
        let most = self.turns.most();
        if self.own().is_none() || !self.socket.readable || most == 0 {
            return None;
        }
        match self.socket.read(inbox, most) {
            Ok(count) => {
                self.turns.took(count, inbox.octets(count));
                self.frames_in += count as u64;
                Some(count)
            }
            Err(error) => {
                self.lost(error, now, told);
                None
            }
        }
    }

    /// The payload of a frame of the peer; counts other frames.
    pub(super) fn payload<'a>(&mut self, frame: &'a [u8]) -> Option<&'a [u8]> {
        let own = self.own()?;
        let Some((header, payload)) = frame.split_first_chunk::<HEADER>() else {
            self.short += 1;
            return None;
        };
        if header[..6] != own.0 || header[6..12] != self.peer.0 {
            self.strangers += 1;
            let from = header.get(6..12).and_then(|from| from.try_into().ok());
            self.last_stranger = from.map(MacAddr);
            return None;
        }
        Some(payload)
    }

    /// Header of frames to the peer.
    pub(super) const fn header(&self) -> &[u8; HEADER] {
        &self.header
    }

    /// How many frames go in one call.
    pub(super) const MOST: usize = Packets::MOST;

    /// Sends frames of `length` octets, of which the last one may be shorter. If the line goes down, this is told.
    pub(super) fn send(
        &mut self,
        frames: &[u8],
        length: usize,
        now: Instant,
        told: &mut Vec<Event>,
    ) -> Sent {
        if self.own().is_none() {
            return Sent::Down;
        }
        match self.socket.send(frames, length) {
            Ok(count) => Sent::Yes(count),
            Err(Errno::AGAIN) => Sent::Later,
            Err(error @ (Errno::NETDOWN | Errno::NXIO | Errno::NODEV)) => {
                self.lost(error, now, told);
                Sent::Down
            }
            Err(Errno::MSGSIZE) => Sent::TooLong,
            Err(_) => Sent::Refused,
        }
    }

    /// Has the poller report, or not, that the socket takes frames again.
    pub(super) fn await_room(&mut self, awaited: bool, registry: &Registry) {
        self.socket.await_room(awaited, registry);
    }

    /// Frames for which the socket had no room.
    pub(super) fn overflowed(&self) -> Option<u32> {
        self.socket.overflowed()
    }

    /// Sends octets as they are: what a test's stranger sends.
    #[cfg(test)]
    pub(super) fn send_raw(&self, frame: &[u8]) -> Result<usize, Errno> {
        send(&self.socket, frame, SendFlags::empty())
    }
}

fn raw_socket(interface: &str, error: Errno) -> io::Error {
    let error = io::Error::from(error);
    let text = format!("a raw socket for {interface} (needs CAP_NET_RAW): {error}");
    io::Error::new(error.kind(), text)
}

/// The destination address of our frames on the interface with this index.
fn address(index: u32, ethertype: u16) -> SocketAddrAny {
    let mut octets = [0_u8; SOCKADDR_LL];
    octets[..2].copy_from_slice(&AddressFamily::PACKET.as_raw().to_ne_bytes());
    octets[2..4].copy_from_slice(&ethertype.to_be_bytes());
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
pub(crate) mod tests;
