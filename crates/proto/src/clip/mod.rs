//! Classical IP over ATM: one member of a logical IP subnet (LIS), with or without the subnet's ATMARP server.
//!
//! **Purpose.** Sends IP packets to next hops of the LIS over connections that it opens on demand, one per next hop,
//! and releases when they have been idle. It asks the ATMARP server for the ATM address of an IP address, or it is the
//! server itself. Permanent connections are used as well: the configuration or InATMARP tells which next hop is at the
//! other end, and packets for that next hop use the connection even if calls come from there. Such calls are accepted
//! nevertheless.
//!
//! **Encapsulation** is LLC/SNAP. With [`Config::mux`], calls to other members offer VC multiplexing by their B-LLI, so
//! that packets are sent without a header. A member that does not support this refuses (cause 88) and is called again
//! with LLC/SNAP. ATMARP needs LLC/SNAP. So connections to a server always have it, and InATMARP is not used on a
//! multiplexed connection: the ATM address of the caller tells which member it is.
//!
//! **Sizes.** Both ends agree on the largest SDU of each connection (`sizes.rs`). Packets that are too big for a
//! connection become fragments, or their sender is told the size.
//!
//! **Sessions.** With [`Per::Session`] each TCP connection and UDP session has a connection of its own, with a contract
//! by its port (`sessions.rs`).
//!
//! **What is known beforehand** of next hops may be replaced at any time, and has default next hops (`hops.rs`).
//!
//! **Objects and owners.** A [`Clip`] owns the *entries* (by IP address: the ATM address, the state, the waiting
//! packets) and the *connections* (the other end, the time of the last use). `arp.rs` reads and writes ATMARP;
//! `conns.rs` opens, uses and releases connections; `sessions.rs` those of sessions.
//!
//! **States of an entry**: resolving (requested, not answered yet), known, unknown (the address has no owner: packets
//! are dropped at once for [`Params::negative`]), static (from the lab, never ages). An entry that ages is requested
//! again while it is in use.
//!
//! **Registration.** A client calls its server, requests its own address there (RFC 2225) and answers the server's
//! InATMARP request (RFC 1577): either of these registers it. The server's answer to the request is the confirmation. A
//! server of RFC 1577 may not answer such a request: then the client assumes that it is registered when the request is
//! to be repeated. Several servers are tried in turn until one answers. Registration is repeated within
//! [`Params::refresh`]. A server learns from both, and sends an InATMARP request to each caller.
//!
//! **Timers** ([`Params`]): repetition of requests, life of entries, refresh, idle connections, pause after a failed
//! call.
//!
//! **Bounds** ([`Limits`]): entries, connections, packets that wait for one next hop. Excess is counted.
//!
//! **Standards**: RFC 2225 (RFC 1577 for peers that follow it), RFC 2390, RFC 1755 for the SETUP.
//!
//! **Not implemented**: E.164 numbers and subaddresses as addresses of next hops; several B-LLI in one SETUP; multicast
//! (RFC 2022); IP broadcast.
//!
//! **Trust.** A caller's address is known from signalling. A member may speak only for its own ATM address. InATMARP on
//! a connection between two clients may renew what the server told, or bind a permanent connection. If there is a
//! server to ask, it does not make or move an entry, so that no member can take over the address of another.
//!
//! **Deviations**: an entry whose connection was released is kept, and its ATM address is called again; if that call
//! fails, the entry is deleted. A server also registers clients that only answer InATMARP, according to RFC 1577.

mod arp;
mod conns;
mod entries;
mod hops;
mod sessions;
mod sizes;
mod snapshot;
mod table;

pub use arp::is_host;
pub use hops::{DefaultHop, MAX_DEFAULTS, NextHops, Resolved, Unresolved};
pub use sessions::{Per, PortContract, SessionKey};
pub use snapshot::{ConnRow, EntryRow, Snapshot};

use crate::discard::{Discard, Discards};
use crate::retry::Backoff;
use crate::time::{ms, s};
use crate::vcc::VccTable;
use crate::{AtmEvent, AtmRequest, ConnId, Deadlines, Duration, Instant, Machine, Trace};
use aerostat_wire::{AtmAddress, Qos, Sap, Vc};
use conns::{Link, Role};
use core::convert::Infallible;
use sessions::Sessions;
use std::collections::VecDeque;
use std::net::Ipv4Addr;
use table::Entries;

/// Default MTU. Source: RFC 2225 §7.
pub const MTU: u16 = 9180;
/// Octets of LLC/SNAP in front of a packet.
pub const LLC_LEN: u16 = 8;

crate::parameters! {
    /// Timers. Source: RFC 2225 §8; RFC 2320; linux-atm.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Params, ParamRanges {
        /// First wait for an answer of ATMARP, which doubles with each repetition.
        reply: Duration = s(1), ms(100)..=s(60);
        /// Requests before an address is given up.
        tries: u32 = 4, 1..=20;
        /// Life of an entry at a client.
        ///
        /// RFC 2225 §8.4.1: at most 15 minutes.
        client_life: Duration = s(15 * 60), s(1)..=s(15 * 60);
        /// Life of an entry at the server.
        ///
        /// RFC 2225 §8.4.2: at least 20 minutes; a shorter life is for experiments.
        server_life: Duration = s(20 * 60), s(1)..=s(86_400);
        /// Time from one registration to the next.
        refresh: Duration = s(10 * 60), s(1)..=s(15 * 60);
        /// How long an address is not requested again after it had no owner or could not be called.
        negative: Duration = s(5), ms(100)..=s(300);
        /// Idle time after which a connection is released (0s: never).
        idle: Duration = s(20 * 60), s(0)..=s(365 * 86_400);
        /// How long the connection of a session stays after the end of its TCP connection.
        close: Duration = s(2), ms(100)..=s(300);
        /// Longest wait before a server is called again.
        server_retry: Duration = s(2), ms(100)..=s(300);
        /// Packets that wait for one next hop; further ones are dropped.
        queue: usize = 16, 1..=10_000;
    }
}

/// Bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Limit of entries.
    pub entries: usize,
    /// Limit of connections.
    pub conns: usize,
    /// Limit of entries that one member may cause: its own IP addresses.
    pub entries_each: usize,
    /// Limit of connections of one caller, besides those of sessions.
    pub conns_each: usize,
    /// Limit of sessions that the member opens, and of those that one caller opens.
    pub sessions: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            entries: 1024,
            conns: 1024,
            entries_each: 16,
            conns_each: 8,
            sessions: 64,
        }
    }
}

/// Encapsulation of IP packets in the SDUs of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encapsulation {
    /// LLC/SNAP header. Source: RFC 2684 §5.
    #[default]
    Llc,
    /// No header: the connection carries only packets of one protocol. Source: RFC 2684 §6.
    VcMux,
}

/// A permanent connection to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permanent {
    /// Its label.
    pub vc: Vc,
    /// Traffic both ways.
    pub qos: Qos,
    /// Encapsulation of packets.
    pub encapsulation: Encapsulation,
    /// The next hop at the other end, which is reached only by this connection. With `None`, InATMARP asks; after the
    /// answer the connection is preferred to switched ones.
    pub ip: Option<Ipv4Addr>,
}

/// Configuration of a member.
#[derive(Clone, Debug)]
pub struct Config {
    /// Own ATM address; zero if there are only permanent connections.
    pub address: AtmAddress,
    /// Own IP address.
    pub ip: Ipv4Addr,
    /// Prefix length of the subnet, 0..=32.
    pub prefix_len: u8,
    /// Largest IP packet, 68..=65527 octets with LLC/SNAP.
    pub mtu: u16,
    /// ATMARP servers, in the order in which they are tried. If empty, there are only permanent connections and static
    /// entries.
    pub servers: Vec<AtmAddress>,
    /// True for the ATMARP server of the subnet.
    pub serve: bool,
    /// True if other members are called with VC multiplexing, and may call with it. Source: RFC 2684 §6; RFC 1755,
    /// B-LLI.
    pub mux: bool,
    /// Next hops that are known beforehand: static entries, contracts, default next hops. A connection with a contract
    /// is used only for its next hop. The largest SDU is always that of the interface.
    pub hops: NextHops,
    /// Kind of connections that it opens.
    pub per: Per,
    /// Traffic of connections to next hops without a contract of their own; `None`: best effort.
    pub contract: Option<Qos>,
    /// Contracts of sessions by port; the first that fits counts.
    pub ports: Vec<PortContract>,
    /// Permanent connections.
    pub permanent: Vec<Permanent>,
    /// Timers.
    pub params: Params,
    /// Bounds.
    pub limits: Limits,
}

impl Config {
    /// A client without servers, on an interface with the default MTU.
    #[must_use]
    pub fn new(address: AtmAddress, ip: Ipv4Addr) -> Self {
        Self {
            address,
            ip,
            prefix_len: 24,
            mtu: MTU,
            servers: Vec::new(),
            serve: false,
            mux: false,
            hops: NextHops::default(),
            per: Per::Destination,
            contract: None,
            ports: Vec::new(),
            permanent: Vec::new(),
            params: Params::default(),
            limits: Limits::default(),
        }
    }
    /// Largest SDU with LLC/SNAP: a packet and the header.
    #[must_use]
    pub const fn max_sdu(&self) -> u16 {
        self.mtu.saturating_add(LLC_LEN)
    }
    /// The SAPs on which this member listens. Calls for larger SDUs than its own are answered with its own.
    fn listens(&self) -> impl Iterator<Item = Sap> + use<> {
        let bhli = Some(sessions::MARK);
        let both = move |sap: Sap| [sap, Sap { bhli, ..sap }];
        let mux = self.mux.then_some(Sap::IP).into_iter();
        core::iter::once(Sap::LLC).chain(mux).flat_map(both)
    }
}

/// Inputs of a member.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// Listen, register, open permanent connections.
    Start,
    /// Release everything and stop.
    Stop,
    /// From the ATM service.
    Atm(AtmEvent<&'a [u8]>),
    /// Send an IP packet to a next hop of the subnet.
    Send {
        /// The next hop.
        next_hop: Ipv4Addr,
        /// The packet.
        packet: Vec<u8>,
    },
    /// Something can be reached now that could not before: asks again on permanent connections whose other end has not
    /// answered.
    AskAgain,
    /// Replaces what is known of next hops beforehand.
    NextHops(NextHops),
    /// Next hops were to be replaced, and the source has a mistake: nothing changes, and it is counted.
    NextHopsWrong,
    /// Asks for the ATM address of a next hop of the subnet; [`Output::Resolved`] is the answer.
    Resolve {
        /// Copied to the answer.
        token: u64,
        /// The next hop.
        ip: Ipv4Addr,
    },
}

/// Outputs of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// For the ATM service.
    Atm(AtmRequest),
    /// An IP packet for the IP stack.
    Deliver {
        /// The packet.
        packet: Vec<u8>,
        /// The other end of its connection, as far as signalling tells.
        from: Option<AtmAddress>,
    },
    /// True when packets can be sent: the member is registered with a server, or there is no server to register with.
    /// False when that ends: the member was stopped, or another member has the IP address. The loss of a server does
    /// not end it, because known members can still be reached.
    Ready(bool),
    /// The answer to [`Input::Resolve`].
    Resolved {
        /// As asked.
        token: u64,
        /// Result of the resolution.
        answer: Resolved,
    },
    /// A trace event.
    Trace(Trace),
}

crate::counters! {
    /// Counters.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Counters {
        /// Packets sent.
        pub sent: u64,
        /// Packets delivered.
        pub delivered: u64,
        /// Packets dropped: the address has no owner or cannot be called, or there is no room for an entry.
        pub unreachable: u64,
        /// Packets dropped: too many wait for one next hop.
        pub queue_full: u64,
        /// Packets dropped: longer than any connection carries, and no packets of IP.
        pub too_long: u64,
        /// Packets dropped: too big for their connection, and not to be fragmented; their senders were told by ICMP.
        pub too_big: u64,
        /// Fragments that were made of packets too big for their connection; such a packet counts once as sent.
        pub fragments: u64,
        /// Packets that went to a default next hop, because the address of their own is not known.
        pub by_default: u64,
        /// Calls made.
        pub calls: u64,
        /// Calls that failed.
        pub calls_failed: u64,
        /// Calls refused, or entries not made: a bound was met.
        pub full: u64,
        /// Connections released because they were idle.
        pub idle: u64,
        /// ATMARP and InATMARP packets received.
        pub arp_in: u64,
        /// ATMARP and InATMARP packets sent.
        pub arp_out: u64,
        /// NAKs sent (server) or received (client).
        pub naks: u64,
        /// Sources that a server did not learn: an IP address that no member can have, or an ATM address that is not
        /// the caller's.
        pub refused: u64,
        /// SDUs that are neither IP nor ATMARP, or did not decode.
        pub bad: u64,
        /// Calls that were answered with smaller SDUs than they offered.
        pub sizes_lowered: u64,
        /// Connections on which the other end takes smaller packets than the interface.
        pub mtu_lowered: u64,
        /// Connections opened for sessions.
        pub sessions: u64,
        /// Packets of sessions without a connection of their own, because the limit of sessions was met; they used that
        /// of the next hop.
        pub sessions_full: u64,
        /// Calls for sessions that were refused; their packets used the connection of the next hop.
        pub sessions_refused: u64,
        /// How often what is known of next hops beforehand was replaced.
        pub maps: u64,
        /// How often that was not done because the file has a mistake.
        pub maps_wrong: u64,
        /// Attempts to register an IP address that another member has.
        pub duplicates: u64,
        /// Requests that were repeated.
        pub repeated: u64,
    }
}

/// State of the connection to a server.
#[derive(Clone, Debug)]
struct Server {
    /// Index of the server in [`Config::servers`].
    index: usize,
    conn: Option<ConnId>,
    registered: bool,
    /// When its InATMARP request was first answered on this connection.
    answered: Option<Instant>,
    tries: u32,
    /// Waits between calls to the server.
    backoff: Backoff,
    /// When the next call, request or refresh is due.
    at: Option<Instant>,
}

/// A member of a logical IP subnet.
#[derive(Debug)]
pub struct Clip {
    config: Config,
    running: bool,
    /// True if the ATM service can make calls.
    up: bool,
    ready: bool,
    entries: Entries,
    conns: VccTable<Role, Link>,
    /// When InATMARP is repeated on permanent connections whose other end is unknown.
    asks: Deadlines<ConnId>,
    sessions: Sessions,
    /// True if static entries are outside the subnet.
    far: bool,
    /// The ATM address that the server has for the member's IP address, if it is another one.
    owner: Option<AtmAddress>,
    server: Server,
    counters: Counters,
    discards: Discards,
    out: VecDeque<Output>,
}

impl Clip {
    /// A member that has not been started.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let backoff = Backoff::of(&config.address);
        Self {
            config,
            running: false,
            up: false,
            ready: false,
            entries: Entries::default(),
            conns: VccTable::default(),
            asks: Deadlines::default(),
            sessions: Sessions::default(),
            far: false,
            owner: None,
            server: Server {
                index: 0,
                conn: None,
                registered: false,
                answered: None,
                tries: 0,
                backoff,
                at: None,
            },
            counters: Counters::default(),
            discards: Discards::default(),
            out: VecDeque::new(),
        }
    }
    /// Sets the network prefix of its address, as learnt by ILMI. Call this only before the start.
    pub fn set_prefix(&mut self, prefix: [u8; 13]) {
        self.config.address = self.config.address.with_prefix(prefix);
    }
    /// The configuration.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }
    /// True while packets can be sent and new next hops can be resolved.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.ready && (self.server.registered || !self.is_client())
    }

    /// True while packets can be sent, as [`Snapshot::ready`] says.
    #[must_use]
    pub const fn can_send(&self) -> bool {
        self.ready
    }

    /// The ATM address that the server has for this member's IP address, if it is another one: another member has the
    /// IP address, or what the server knows beforehand is wrong. The member does not get ready meanwhile.
    #[must_use]
    pub const fn other_owner(&self) -> Option<AtmAddress> {
        self.owner
    }

    fn start(&mut self, now: Instant) {
        if core::mem::replace(&mut self.running, true) {
            return;
        }
        let address = self.config.address;
        let listens = self.config.listens().filter(|_| !address.is_zero());
        for sap in listens {
            self.request(AtmRequest::listen(address, sap, u16::MAX));
        }
        self.enter_hops();
        for permanent in self.config.permanent.clone() {
            self.open_permanent(permanent, now);
        }
        if self.is_client() {
            self.server.at = Some(now);
        } else {
            self.set_ready(true);
        }
    }

    fn stop(&mut self) {
        if !core::mem::replace(&mut self.running, false) {
            return;
        }
        for release in self.conns.release_all() {
            self.request(release);
        }
        self.asks.clear();
        let mut waiting = self.sessions.clear();
        for entry in core::mem::take(&mut self.entries).into_values() {
            waiting.extend(entry.queue);
            for token in entry.questions {
                let answer = Resolved::Unknown(Unresolved::Stopped);
                self.out.push_back(Output::Resolved { token, answer });
            }
        }
        self.counters.unreachable += waiting.len() as u64;
        for packet in waiting {
            self.discards.note(Discard::Stopped, &packet);
        }
        self.server = Self::new(self.config.clone()).server;
        self.owner = None;
        let address = self.config.address;
        let listens = self.config.listens().filter(|_| !address.is_zero());
        for sap in listens {
            self.request(AtmRequest::Unlisten { address, sap });
        }
        self.set_ready(false);
    }

    /// Packets that wait for their next hop.
    pub fn held(&self) -> impl Iterator<Item = &[u8]> {
        let queues = self.entries.values().flat_map(|entry| &entry.queue);
        queues.chain(self.sessions.held()).map(Vec::as_slice)
    }

    /// The next packet that was dropped, with the reason.
    pub fn take_discard(&mut self) -> Option<(Discard, Vec<u8>)> {
        self.discards.take()
    }

    /// True if it registers with a server.
    fn is_client(&self) -> bool {
        !self.config.serve && !self.config.servers.is_empty()
    }

    /// The server that it is registered with, or tries next.
    fn next_server(&self) -> Option<AtmAddress> {
        let servers = self.config.servers.iter().cycle();
        let mut servers = servers.skip(self.server.index);
        servers.next().copied().filter(|_| self.is_client())
    }

    /// The contract of connections to a next hop: its own, or that of the interface; `None`: best effort.
    fn contract(&self, ip: Ipv4Addr) -> Option<Qos> {
        let own = self.config.hops.qos.iter().find(|(to, _)| *to == ip);
        let own = own.map(|(_, qos)| *qos);
        let by_default = || self.default_at(ip).and_then(|hop| hop.qos);
        let qos = own.or_else(by_default).or(self.config.contract)?;
        Some(sized(qos, self.config.max_sdu()))
    }

    fn set_ready(&mut self, ready: bool) {
        if core::mem::replace(&mut self.ready, ready) != ready {
            self.out.push_back(Output::Ready(ready));
        }
    }

    fn request(&mut self, request: AtmRequest) {
        self.out.push_back(Output::Atm(request));
    }
    fn trace(&mut self, trace: Trace) {
        self.out.push_back(Output::Trace(trace));
    }

    fn timeouts(&mut self, now: Instant) {
        if !self.running {
            return;
        }
        self.server_due(now);
        self.entries_due(now);
        self.conns_due(now);
        self.sessions_due(now);
        self.entries.settle();
    }
}

/// The contract with SDUs of this size.
fn sized(mut qos: Qos, max_sdu: u16) -> Qos {
    for direction in [&mut qos.tx, &mut qos.rx] {
        if direction.category.is_some() {
            direction.max_sdu = max_sdu;
        }
    }
    qos
}

impl Machine for Clip {
    type Input<'a> = Input<'a>;
    type Output = Output;
    type Refusal = Infallible;

    fn handle_input(&mut self, input: Input<'_>, now: Instant) -> Result<(), Infallible> {
        match input {
            Input::Start => self.start(now),
            Input::Stop => self.stop(),
            Input::Atm(event) if self.running => self.atm(event, now),
            // Events of calls that were in progress at the stop.
            Input::Atm(_) => {}
            Input::Send { next_hop, packet } if self.running => self.send(next_hop, packet, now),
            Input::Send { packet, .. } => {
                self.counters.unreachable += 1;
                self.discards.note(Discard::NotJoined, &packet);
            }
            Input::AskAgain if self.running => self.ask_again(now),
            Input::AskAgain => {}
            Input::NextHops(hops) => self.replace_hops(hops, now),
            Input::NextHopsWrong => self.counters.maps_wrong += 1,
            Input::Resolve { token, ip } if self.running => self.question(token, ip, now),
            Input::Resolve { token, .. } => {
                let answer = Resolved::Unknown(Unresolved::Stopped);
                self.out.push_back(Output::Resolved { token, answer });
            }
        }
        self.timeouts(now);
        Ok(())
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.timeouts(now);
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }
    fn poll_timeout(&self) -> Option<Instant> {
        if !self.running {
            return None;
        }
        let entries = self.entries.next().into_iter();
        entries
            .chain(self.next_conn_due())
            .chain(self.sessions.next())
            .chain(self.server.at)
            .min()
    }
}

crate::atm_user!(Clip {
    fn held(&self, see: &mut dyn FnMut(&[u8])) {
        self.held().for_each(see);
    }
    fn take_discard(&mut self) -> Option<(Discard, Vec<u8>)> {
        self.take_discard()
    }
});
