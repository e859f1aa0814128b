//! A socket: its state, and what its program may know of it.

use super::programs::crc32;
use super::{ConnId, LOCAL, Session, hex, local, parties, resolve};
use crate::atm::Sdus;
use aerostat_proto::socket::{Status, UserData};
use aerostat_proto::{Cause, Value};
use aerostat_wire::{AtmAddress, ConnectionQos, Qos, Sap, Vc};
use core::fmt;
use std::collections::BTreeMap;

aerostat_wire::named! {
    /// State of a socket.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum State {
        /// Opened.
        Idle = "idle",
        /// It has an address.
        Bound = "bound",
        /// It waits for calls.
        Listening = "listening",
        /// A call to an IP address was requested, whose ATM address is not known yet.
        Resolving = "resolving",
        /// A call was requested and is not answered yet.
        Connecting = "connecting",
        /// A call was accepted and cannot be used yet.
        Accepting = "accepting",
        /// Its connection can be used.
        Connected = "connected",
        /// The program has ended it, and the adapter still has PDUs of it.
        Ending = "ending",
        /// Its connection has ended.
        Ended = "ended",
    }
}

impl State {
    /// State of a call of a program of the lab file, in the words of its tables.
    #[must_use]
    pub const fn of_call(self) -> &'static str {
        match self {
            Self::Idle | Self::Bound | Self::Listening | Self::Resolving | Self::Connecting => {
                "calling"
            }
            Self::Accepting => "accepted",
            Self::Connected | Self::Ending => "open",
            Self::Ended => "ended",
        }
    }
}

/// A request whose answer waits for the network.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) session: Session,
    pub(super) number: u16,
}

/// The writing side of a socket.
#[derive(Clone, Debug, Default)]
pub(super) enum Writing {
    /// The adapter has taken everything.
    #[default]
    Idle,
    /// The adapter has been given so many PDUs and octets, and has not answered.
    Asked(u64, u64),
    /// There was no room for these PDUs.
    Blocked(Sdus),
}

impl Writing {
    /// PDUs that the adapter has not taken.
    pub(super) fn pdus(&self) -> u64 {
        match self {
            Self::Idle => 0,
            Self::Asked(pdus, _) => *pdus,
            Self::Blocked(sdus) => sdus.count() as u64,
        }
    }
}

/// The label of a socket, as a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// The label of its connection.
    Vc(Vc),
    /// The call does not leave the host.
    Local,
    /// There is no connection.
    None,
}

impl fmt::Display for Label {
    /// The label; [`LOCAL`] if the call does not leave the host, empty if there is no label.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vc(vc) => vc.fmt(f),
            Self::Local => f.write_str(LOCAL),
            Self::None => Ok(()),
        }
    }
}

impl From<Label> for Value {
    fn from(label: Label) -> Self {
        match label {
            Label::Vc(vc) => vc.into(),
            Label::Local => LOCAL.into(),
            Label::None => "".into(),
        }
    }
}

/// PDUs in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// PDUs.
    pub pdus: u64,
    /// Their octets.
    pub octets: u64,
    /// CRC-32 of all octets; 0 for a program of the machine.
    pub crc32: u32,
}

impl Sum {
    pub(super) const fn add(&mut self, pdus: u64, octets: u64) {
        self.pdus += pdus;
        self.octets += octets;
    }
    /// Adds a PDU with its octets.
    pub(super) fn add_summed(&mut self, sdu: &[u8]) {
        self.add(1, sdu.len() as u64);
        self.crc32 = crc32(self.crc32, sdu);
    }
}

/// A socket.
#[derive(Debug)]
pub struct Socket {
    pub(super) state: State,
    /// Index of the program of the lab file that has it; `None` for programs of the machine.
    pub(super) program: Option<usize>,
    /// Sessions that may use it.
    pub(super) sessions: Vec<Session>,
    pub(super) local: Option<AtmAddress>,
    /// True if the service has chosen the address.
    pub(super) chosen: bool,
    /// The other end, if it is known.
    pub peer: Option<AtmAddress>,
    /// The call to an IP address, once it was requested.
    pub(super) wanted: Option<Box<resolve::Wanted>>,
    pub(super) sap: Sap,
    pub(super) qos: ConnectionQos,
    pub(super) conn: Option<ConnId>,
    /// Its label on this host's link, once open; `None` also for a call inside the host.
    pub vc: Option<Vc>,
    /// The request of its program that waits.
    pub(super) asked: Option<Asked>,
    pub(super) writing: Writing,
    /// Of a call inside the host: the other end.
    pub(super) local_end: Option<local::End>,
    /// True if the driver has been told that no PDU may be written.
    pub(super) held: bool,
    /// The cause with which it is released once its PDUs have left.
    pub(super) last: Cause,
    /// User data of this release.
    pub(super) farewell: UserData,
    /// Latest user data of the other end.
    pub heard: UserData,
    /// True if messages about its call carry user data.
    pub(super) carries: bool,
    /// Offers of a listener that wait.
    pub(super) offers: BTreeMap<u32, ConnId>,
    pub(super) backlog: usize,
    /// Of the root of a point-to-multipoint call.
    pub(super) root: Option<parties::Root>,
    /// Cause of the end.
    pub cause: Option<Cause>,
    /// Why no call was made, in words.
    pub(super) why: Option<String>,
    /// True if its own side ended it.
    pub by_us: bool,
    /// PDUs sent: those that the adapter, or the other end inside the host, has taken.
    pub sent: Sum,
    /// PDUs received.
    pub received: Sum,
    /// PDUs that were never sent: too long for the contract, more than an echo keeps, or given up with the call.
    pub refused: u64,
    /// PDUs of `sent` that the adapter dropped before they left, because the call ended or the link went down.
    pub unsent: u64,
    pub(super) unread: u64,
    /// PDUs that arrived with cells missing or damaged.
    pub damaged: u64,
    pub(super) missed: u64,
}

impl Socket {
    pub(super) fn new(session: Option<Session>) -> Self {
        Self {
            state: State::Idle,
            program: None,
            sessions: session.into_iter().collect(),
            local: None,
            chosen: false,
            peer: None,
            wanted: None,
            sap: Sap::default(),
            qos: Qos::ubr(0).into(),
            conn: None,
            vc: None,
            asked: None,
            writing: Writing::Idle,
            local_end: None,
            held: false,
            last: Cause::NORMAL,
            farewell: UserData::default(),
            heard: UserData::default(),
            carries: false,
            offers: BTreeMap::new(),
            backlog: 0,
            root: None,
            cause: None,
            why: None,
            by_us: false,
            sent: Sum::default(),
            received: Sum::default(),
            refused: 0,
            unsent: 0,
            unread: 0,
            damaged: 0,
            missed: 0,
        }
    }

    /// Its state, for its program and for `inspect`.
    #[must_use]
    pub fn status(&self) -> Status {
        let text = |address: Option<AtmAddress>| address.map_or_else(String::new, hex);
        let by = if self.by_us {
            "here"
        } else {
            "by the other side"
        };
        Status {
            state: self.state.name().to_owned(),
            local: text(self.local),
            peer: resolve::known(self.peer, self.wanted.as_deref()),
            sap: self.sap.to_string(),
            qos: if self.conn.is_some() || self.was_open() {
                self.qos.to_string()
            } else {
                String::new()
            },
            label: self.label().to_string(),
            cause: self.cause.map_or(0, |cause| cause.0),
            why: match (self.cause, &self.why) {
                (None, _) => String::new(),
                (Some(cause), None) => format!("ended {by}, {cause}"),
                (Some(cause), Some(why)) => format!("{why}, {cause}"),
            },
            sent: (self.sent.pdus, self.sent.octets),
            refused: self.refused,
            unsent: self.unsent,
            received: (self.received.pdus, self.received.octets),
            unread: self.unread,
            damaged: self.damaged,
            offers: self.offers.len() as u16,
            missed: self.missed,
            leaves: self.root.as_ref().map_or(0, parties::Root::active),
            user_data: self.heard.clone(),
        }
    }
    /// True if its call could be used, whether it has ended or not.
    pub(super) const fn was_open(&self) -> bool {
        self.vc.is_some() || self.local_end.is_some()
    }
    /// The call ended before these PDUs left the host.
    pub(super) fn count_unsent(&mut self, sdus: &Sdus) {
        let pdus = sdus.count() as u64;
        self.sent.add(pdus, sdus.octets() as u64);
        self.unsent += pdus;
    }
    /// Its label.
    #[must_use]
    pub const fn label(&self) -> Label {
        match (self.vc, &self.local_end) {
            (Some(vc), _) => Label::Vc(vc),
            (None, Some(_)) => Label::Local,
            (None, None) => Label::None,
        }
    }
    /// Its state.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }
    /// Number of sessions that may use it.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }
}
