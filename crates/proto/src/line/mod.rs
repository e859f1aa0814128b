//! One end of an ATM line: an interface over one connection, with one encapsulation.
//!
//! **Purpose.** Modems and the routers behind them carry Ethernet frames (bridged), IP packets (routed) or PPP over one
//! permanent connection, or over one call. A [`Line`] puts what its user sends into SDUs, and hands over what SDUs of
//! the other end carry. Its user is a bridge or an IP stack: with a bridged encapsulation they exchange Ethernet frames
//! without FCS, otherwise IPv4 packets.
//!
//! **Encapsulations** are those of `aerostat_wire::line` but LANE and MPOA. With LLC, frames with and without FCS are
//! taken, since the header tells. A frame that is to have an FCS is padded to 60 octets first.
//!
//! **PPP is static**: headers of its data phase alone. LCP, NCPs, authentication and the discovery stage of PPPoE are
//! recognised and counted, and get no answer. Addresses of the frames and the number of the session are configured.
//!
//! **Objects and owners.** A line owns its connection. It has one at a time.
//!
//! **States**: stopped; closed, until the next attempt; opening; open. A called line waits for its peer's call, and
//! takes a new call instead of an old one, because the peer may have started anew.
//!
//! **Timers**: the next attempt after a connection that failed or ended ([`Config::retry`] is the longest wait).
//!
//! **Bounds**: one connection; no packet waits here. Frames longer than the MTU allows are dropped in both directions.
//!
//! **Trust.** A called line takes calls of its peer only. What a peer sends is counted if it is not of this line; a
//! message names the encapsulation that the peer uses instead, once for each connection.
//!
//! **Standards**: RFC 2684 §5.1, §5.2, §6.1, §6.2; RFC 2364 §4 to §6; RFC 2516 §4 (session stage); RFC 1755 and the
//! layout of B-LLI in UNI 3.1 §5.4.5.9 for calls.
//!
//! **Not implemented**: PDUs of other media than Ethernet, fragments (PID 000D); IPv6 on routed lines and with PPP (a
//! bridged line carries any frame); negotiation of PPP.
//!
//! **Deviations**: a short frame without FCS is handed over without padding, as Linux does; who sends it on an Ethernet
//! pads it. BPDUs leave as bridged frames, which every bridge takes, and come in both forms.

#[cfg(test)]
mod tests;

use crate::discard::{Discard, Discards};
use crate::retry::Backoff;
use crate::time::s;
use crate::{AtmEvent, AtmRequest, Cause, ConnId, Duration, Instant, Machine, Trace};
use aerostat_wire::line::{Carried, Encapsulation, Session};
use aerostat_wire::{AtmAddress, Blli, DecodeError, ErrorKind, Qos, Sap, Vc};
use core::convert::Infallible;
use std::collections::VecDeque;

/// Octets of an Ethernet header.
const ETHERNET: usize = 14;
/// Octets of the tag of a VLAN, which a frame of the MTU may have besides.
const TAG: usize = 4;
/// Shortest frame that a receiver of frames with FCS takes, octets without FCS. Source: IEEE 802.3 §3.2.8.
const SHORTEST: usize = 60;
/// Group address of bridges, and LLC of BPDUs. Source: IEEE 802.1D §7.12.
const BRIDGES: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0];
const BPDU_LLC: [u8; 3] = [0x42, 0x42, 0x03];

/// How a line gets its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A permanent connection is there.
    Permanent {
        /// Its label.
        vc: Vc,
        /// Traffic, seen from this end.
        qos: Qos,
    },
    /// This end calls.
    Calls {
        /// ATM address of the other end.
        peer: AtmAddress,
        /// Traffic, seen from this end.
        qos: Qos,
    },
    /// The other end calls.
    Called {
        /// Its ATM address.
        peer: AtmAddress,
    },
}

/// Configuration of a line.
#[derive(Clone, Debug)]
pub struct Config {
    /// Own ATM address; without meaning on a permanent connection.
    pub address: AtmAddress,
    /// The encapsulation.
    pub encapsulation: Encapsulation,
    /// Addresses and session of PPPoE.
    pub session: Session,
    /// Largest IP packet, octets; a frame may have 14 octets more, and 4 of a VLAN's tag.
    pub mtu: u16,
    /// How it gets its connection.
    pub way: Way,
    /// Longest wait before the next attempt to open the connection.
    pub retry: Duration,
}

impl Config {
    /// A line with the usual MTU of its encapsulation, on a permanent connection of best effort.
    #[must_use]
    pub fn permanent(vc: Vc, encapsulation: Encapsulation) -> Self {
        Self {
            address: AtmAddress::ZERO,
            encapsulation,
            session: Session::default(),
            mtu: encapsulation.mtu() as u16,
            way: Way::Permanent {
                vc,
                qos: Qos::ubr(u16::MAX),
            },
            retry: s(2),
        }
    }

    /// Octets of the longest frame or packet that its user may send.
    #[must_use]
    pub fn longest(&self) -> usize {
        let header = if self.encapsulation.is_bridged() {
            ETHERNET + TAG
        } else {
            0
        };
        usize::from(self.mtu) + header
    }

    /// Largest SDU, octets.
    fn max_sdu(&self) -> u16 {
        let longest = vec![0; self.longest()];
        let sdu = self.encapsulation.encode(&longest, &self.session);
        sdu.len().try_into().unwrap_or(u16::MAX)
    }
}

/// The description of the calls of a line. Source: RFC 1755 (LLC, IP); RFC 2684 Appendix A (bridged, VC multiplexing);
/// RFC 2364 §7 (PPP): layer 3 is TR 9577 with IPI CF, and with LLC layer 2 stands before it.
#[must_use]
pub fn sap(encapsulation: Encapsulation) -> Sap {
    const PPP: [u8; 3] = [0x6b, 0x67, 0xc0];
    let ppp_llc = [&[0xcc][..], &PPP].concat();
    let bridged = |pid| [0x6b, 0x40, 0x80, 0x80, 0, 0x80, 0xc2, 0, pid];
    let octets: &[u8] = match encapsulation {
        Encapsulation::RoutedVc => Blli::IP.octets(),
        Encapsulation::PppoaVc => &PPP,
        Encapsulation::PppoaLlc => &ppp_llc,
        Encapsulation::BridgedVcFcs | Encapsulation::PppoeVcFcs => &bridged(1),
        Encapsulation::BridgedVc | Encapsulation::PppoeVc => &bridged(7),
        _ => Blli::LLC.octets(),
    };
    Sap {
        blli: Blli::from_octets(octets),
        bhli: None,
    }
}

/// Inputs of a line.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// Open the connection, or listen.
    Start,
    /// Release the connection and stop.
    Stop,
    /// From the ATM service.
    Atm(AtmEvent<&'a [u8]>),
    /// Send an Ethernet frame (bridged), or an IPv4 packet.
    Send(&'a [u8]),
    /// Something can be reached now that could not before: the next attempt is due.
    AskAgain,
}

/// Outputs of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// For the ATM service.
    Atm(AtmRequest),
    /// An Ethernet frame (bridged), or an IPv4 packet, of the other end.
    Deliver(Vec<u8>),
    /// True when the connection is open; false when it is gone.
    Ready(bool),
    /// A trace event.
    Trace(Trace),
}

crate::counters! {
    /// Counters.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Counters {
        /// Frames or packets sent.
        pub sent: u64,
        /// Frames or packets of the other end.
        pub delivered: u64,
        /// Frames or packets that were not sent: the connection was not open.
        pub not_open: u64,
        /// Frames or packets longer than the MTU allows, sent or received.
        pub too_long: u64,
        /// Frames that were too short: without a whole header, or with an FCS and less than 60 octets before it.
        pub too_short: u64,
        /// Frames whose FCS was wrong.
        pub fcs_errors: u64,
        /// SDUs with a header of LLC that has no PID or protocol of this line.
        pub other_protocol: u64,
        /// SDUs that another encapsulation explains, and this one does not.
        pub other_encapsulation: u64,
        /// SDUs that no encapsulation explains, or of another session.
        pub malformed: u64,
        /// PDUs of PPP that are no packets, such as LCP, and of the discovery stage of PPPoE, which get no answer.
        pub negotiation: u64,
        /// 802.1D PDUs received with a PID of their own.
        pub bpdus: u64,
        /// Attempts to open the connection.
        pub attempts: u64,
        /// Attempts that failed.
        pub failed: u64,
        /// Calls of others than the peer, which were refused.
        pub refused: u64,
    }
}

/// State of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    Opening(ConnId),
    Open(ConnId, Vc),
}

impl State {
    const fn conn(self) -> Option<ConnId> {
        match self {
            Self::Closed => None,
            Self::Opening(conn) | Self::Open(conn, _) => Some(conn),
        }
    }
}

/// One end of a line.
#[derive(Debug)]
pub struct Line {
    config: Config,
    running: bool,
    state: State,
    /// Id of the next connection that it opens.
    next: u32,
    backoff: Backoff,
    /// When the next attempt is due.
    due: Option<Instant>,
    /// Why the last connection ended.
    ended: Option<Cause>,
    /// True if the user knows that the peer has another encapsulation, or negotiates PPP.
    told: bool,
    counters: Counters,
    discards: Discards,
    out: VecDeque<Output>,
}

impl Line {
    /// A line that has not been started.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            backoff: Backoff::of(&config.address),
            config,
            running: false,
            state: State::Closed,
            next: 1,
            due: None,
            ended: None,
            told: false,
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

    /// The counters.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// The label of its connection, while it is open.
    #[must_use]
    pub const fn vc(&self) -> Option<Vc> {
        match self.state {
            State::Open(_, vc) => Some(vc),
            State::Closed | State::Opening(_) => None,
        }
    }

    /// Why its last connection ended or failed; `None` while one is open, and before.
    #[must_use]
    pub const fn ended(&self) -> Option<Cause> {
        self.ended
    }

    /// The next frame or packet that was dropped, with the reason.
    pub fn take_discard(&mut self) -> Option<(Discard, Vec<u8>)> {
        self.discards.take()
    }

    fn request(&mut self, request: AtmRequest) {
        self.out.push_back(Output::Atm(request));
    }

    fn trace(&mut self, trace: Trace) {
        self.out.push_back(Output::Trace(trace));
    }

    fn start(&mut self, now: Instant) {
        if core::mem::replace(&mut self.running, true) {
            return;
        }
        match self.config.way {
            Way::Called { .. } => self.request(AtmRequest::listen(
                self.config.address,
                sap(self.config.encapsulation),
                u16::MAX,
            )),
            Way::Permanent { .. } | Way::Calls { .. } => self.due = Some(now),
        }
    }

    fn stop(&mut self) {
        if !core::mem::replace(&mut self.running, false) {
            return;
        }
        if let Way::Called { .. } = self.config.way {
            let (address, sap) = (self.config.address, sap(self.config.encapsulation));
            self.request(AtmRequest::Unlisten { address, sap });
        }
        self.release(Cause::NORMAL);
        self.due = None;
    }

    /// Releases the connection, if the line has one.
    fn release(&mut self, cause: Cause) {
        if let Some(conn) = self.state.conn() {
            self.request(AtmRequest::Release { conn, cause });
        }
        self.close();
    }

    fn close(&mut self) {
        let was = core::mem::replace(&mut self.state, State::Closed);
        if matches!(was, State::Open(..)) {
            self.out.push_back(Output::Ready(false));
        }
    }

    /// Opens the connection, if that is due.
    fn open(&mut self, now: Instant) {
        if self.due.is_none_or(|due| now < due) || !self.running {
            return;
        }
        self.due = None;
        let conn = ConnId(self.next);
        let request = match self.config.way {
            Way::Permanent { vc, qos } => AtmRequest::OpenPermanent { conn, vc, qos },
            Way::Calls { peer, qos } => AtmRequest::Connect {
                conn,
                calling: self.config.address,
                called: peer,
                sap: sap(self.config.encapsulation),
                qos: self.sized(qos),
                multipoint: false,
            },
            Way::Called { .. } => return,
        };
        self.next = (self.next + 1) % ConnId::INCOMING;
        self.counters.attempts += 1;
        self.state = State::Opening(conn);
        self.request(request);
    }

    /// A contract for SDUs of this line.
    fn sized(&self, qos: Qos) -> Qos {
        let sized = |mut traffic: aerostat_wire::TrafficParams| {
            traffic.max_sdu = self.config.max_sdu();
            traffic
        };
        Qos {
            tx: sized(qos.tx),
            rx: sized(qos.rx),
        }
    }

    fn atm(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        match event {
            AtmEvent::Incoming {
                conn,
                calling,
                multipoint,
                ..
            } => self.incoming(conn, calling.filter(|_| !multipoint)),
            AtmEvent::Connected { conn, vc, .. } if self.state.conn() == Some(conn) => {
                self.state = State::Open(conn, vc);
                self.backoff.reset();
                (self.ended, self.told) = (None, false);
                let text = format!("the line is open on {vc}, {}", self.config.encapsulation);
                self.trace(Trace::detail("line.open", text).with("vc", vc));
                self.out.push_back(Output::Ready(true));
            }
            AtmEvent::Released { conn, cause } if self.state.conn() == Some(conn) => {
                self.disconnected(cause, now);
            }
            AtmEvent::Received { conn, sdu } if self.state.conn() == Some(conn) => {
                self.received(sdu);
            }
            AtmEvent::Up if self.due.is_some() => self.due = Some(now),
            _ => {}
        }
    }

    fn incoming(&mut self, conn: ConnId, calling: Option<AtmAddress>) {
        let peer = match self.config.way {
            Way::Called { peer } => Some(peer),
            Way::Permanent { .. } | Way::Calls { .. } => None,
        };
        if calling.is_none() || calling != peer {
            self.counters.refused += 1;
            let cause = Cause::REJECTED;
            return self.request(AtmRequest::Release { conn, cause });
        }
        // The peer may have started anew, and its old call may not have ended yet.
        self.release(Cause::NORMAL);
        self.state = State::Opening(conn);
        self.request(AtmRequest::Accept { conn, terms: None });
    }

    fn disconnected(&mut self, cause: Cause, now: Instant) {
        let was_open = matches!(self.state, State::Open(..));
        self.counters.failed += u64::from(!was_open);
        self.close();
        // The story tells the first of several failures.
        if self.ended.replace(cause).is_none() {
            let text = match was_open {
                true => format!("the line has lost its connection: {cause}"),
                false => format!("the line has no connection: {cause}"),
            };
            self.trace(Trace::milestone("line.closed", text));
        }
        if !matches!(self.config.way, Way::Called { .. }) {
            let wait = self
                .backoff
                .wait(Some(cause), Duration::ZERO, self.config.retry);
            self.due = Some(now + wait);
        }
    }

    fn send(&mut self, octets: &[u8]) {
        let State::Open(conn, _) = self.state else {
            self.counters.not_open += 1;
            return self.discards.note(Discard::NotJoined, octets);
        };
        if octets.len() > self.longest(octets) {
            self.counters.too_long += 1;
            return self.discards.note(Discard::BadLength, octets);
        }
        self.counters.sent += 1;
        let sdu = self
            .config
            .encapsulation
            .encode(octets, &self.config.session);
        self.request(AtmRequest::Send { conn, sdu });
    }

    /// Octets of the longest frame with as many tags, or of the longest packet.
    fn longest(&self, octets: &[u8]) -> usize {
        let tagged = octets.get(12..14) == Some(&[0x81, 0x00]);
        match self.config.encapsulation.is_bridged() {
            true if !tagged => self.config.longest() - TAG,
            _ => self.config.longest(),
        }
    }

    fn received(&mut self, sdu: &[u8]) {
        let Config {
            encapsulation,
            session,
            ..
        } = self.config;
        let carried = encapsulation.decode(sdu, &session);
        let octets = match carried {
            Ok(Carried::Packet(octets) | Carried::Frame(octets)) => octets.to_vec(),
            Ok(Carried::Bpdu(bpdu)) => {
                self.counters.bpdus += 1;
                bpdu_frame(session, bpdu)
            }
            Ok(Carried::Ppp(_) | Carried::Discovery) => return self.negotiates(),
            Err(error) => return self.not_decoded(sdu, error),
        };
        if octets.len() > self.longest(&octets) {
            self.counters.too_long += 1;
            return self.discards.note(Discard::BadLength, sdu);
        }
        let short = encapsulation.is_bridged() && octets.len() < SHORTEST;
        if short && Encapsulation::of(sdu).is_some_and(Encapsulation::has_fcs) {
            self.counters.too_short += 1;
            return self.discards.note(Discard::BadLength, sdu);
        }
        self.counters.delivered += 1;
        self.out.push_back(Output::Deliver(octets));
    }

    /// The peer wants to negotiate PPP.
    fn negotiates(&mut self) {
        self.counters.negotiation += 1;
        let text = "the peer negotiates PPP, and this end has it static: the peer gets no answer";
        self.tell_once("line.negotiation", text.to_owned());
    }

    fn not_decoded(&mut self, sdu: &[u8], error: DecodeError) {
        let own = self.config.encapsulation;
        let other = Encapsulation::of(sdu).filter(|other| *other != own);
        let counters = &mut self.counters;
        let (count, why) = match (error.kind, error.field) {
            (ErrorKind::Checksum, _) => (&mut counters.fcs_errors, Discard::Malformed),
            _ if other.is_some() => (&mut counters.other_encapsulation, Discard::Malformed),
            (_, "ethernet.header") => (&mut counters.too_short, Discard::BadLength),
            (_, "snap.pid") => (&mut counters.other_protocol, Discard::Malformed),
            _ => (&mut counters.malformed, Discard::Malformed),
        };
        *count += 1;
        self.discards.note(why, sdu);
        let checksum = error.kind == ErrorKind::Checksum;
        if let Some(other) = other.filter(|_| !checksum) {
            let text = format!("the peer sends {other} on a line that is {own} here: {error}");
            self.tell_once("line.other-encapsulation", text);
        }
        // With VC multiplexing nothing tells whether a frame has an FCS.
        if checksum && !own.is_llc() && self.counters.delivered == 0 {
            let text = format!("wrong FCS on a line that is {own} here: does the peer send one?");
            self.tell_once("line.other-encapsulation", text);
        }
    }

    fn tell_once(&mut self, name: &'static str, text: String) {
        if !core::mem::replace(&mut self.told, true) {
            self.trace(Trace::milestone(name, text));
        }
    }
}

/// The Ethernet frame of a BPDU that came with a PID of its own. Source: IEEE 802.1D §7.12, RFC 2684 §5.2.
fn bpdu_frame(session: Session, bpdu: &[u8]) -> Vec<u8> {
    let length = (BPDU_LLC.len() + bpdu.len()) as u16;
    let parts: [&[u8]; 5] = [
        &BRIDGES,
        &session.peer.0,
        &length.to_be_bytes(),
        &BPDU_LLC,
        bpdu,
    ];
    parts.concat()
}

impl Machine for Line {
    type Input<'a> = Input<'a>;
    type Output = Output;
    type Refusal = Infallible;

    fn handle_input(&mut self, input: Input<'_>, now: Instant) -> Result<(), Infallible> {
        match input {
            Input::Start => self.start(now),
            Input::Stop => self.stop(),
            Input::Atm(event) if self.running => self.atm(event, now),
            // Events of a connection that was released at the stop.
            Input::Atm(_) => {}
            Input::Send(octets) => self.send(octets),
            Input::AskAgain => self.due = self.due.map(|_| now),
        }
        self.open(now);
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.open(now);
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }
}

crate::atm_user!(Line {
    fn take_discard(&mut self) -> Option<(Discard, Vec<u8>)> {
        self.take_discard()
    }
});
