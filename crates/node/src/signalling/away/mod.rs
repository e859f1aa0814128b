//! The seat of a signalling manager that runs in a process of its own; the seat is in the process of the host.
//!
//! The seat keeps the state that the kernel of a host keeps: listeners, which user has which connection, and its VC.
//! The seat accepts messages of the daemon only about the daemon's own objects: connections for which there is a
//! listener or a request, one free label for each, within the limits. Permanent connections and data never reach the
//! daemon.
//!
//! A daemon that does not answer for ten seconds loses its seat: it counts as dead until it answers and starts anew.
//!
//! Users and connections have their own numbers towards the daemon ([`UserNo`], and a [`ConnId`] that differs from the
//! user's). If a user releases an id and uses it again, messages under way concern the former number, which no
//! connection has any more.
//!
//! A VC is opened ([`FromSigd::OpenVc`]) before the CONNECT of the called side leaves, as in one process. Data of a
//! quick caller that arrive before the daemon has reported the call as connected find the VC open. The seat holds these
//! data, 64 SDUs of a call at most, and delivers them once the call is connected: the user may not answer before.

mod hear;

use super::calls::may_send;
use super::listeners::Listeners;
use super::{CallInfo, Config, Counters, Input, Output, Phase, UserId};
use crate::inspect::{Table, text};
use crate::interface;
use aerostat_proto::sigd::{FromSigd, LinkInfo, Start, ToSigd, UserNo};
use aerostat_proto::split::{FromDaemon, ProcessEvent};
use aerostat_proto::uni::Version;
use aerostat_proto::{
    AtmEvent, AtmRequest, Cause, ConnId, Instant, Machine, PartyId, Refused, Trace, saal,
};
use aerostat_wire::{AtmAddress, Qos, Sap, Vc};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Cause of connections that end with the daemon, and of calls without a daemon.
const NOBODY: Cause = Cause::TEMPORARY;
/// SDUs that are held for one call, until the daemon says that it is connected.
const EARLY: usize = 64;
const UNKNOWN: Refused = Refused("unknown connection");
const WRONG_STATE: Refused = Refused("the connection is not in a state for this");
const ABSENT: Refused = Refused("the signalling manager does not run");

/// A message from the daemon, or an event of its process.
pub type SigdEvent = ProcessEvent<FromDaemon<FromSigd>>;

/// Whether there is a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    /// No daemon has started yet: calls wait.
    Awaited,
    /// The daemon serves.
    Here,
    /// The daemon releases its calls.
    Ending,
    /// The daemon is gone: calls are refused.
    Gone,
}

/// Counters of this boundary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AwayCounters {
    /// Daemons that started.
    pub came: u64,
    /// Daemons that ended, including those that started anew.
    pub gone: u64,
    /// Connections that ended with a daemon.
    pub lost_calls: u64,
    /// Requests refused because there was no daemon.
    pub absent: u64,
    /// Signalling SDUs of the network that arrived while there was no daemon.
    pub unread: u64,
    /// Messages about calls or users that are gone: they crossed another message.
    pub stale: u64,
    /// Messages that a daemon must not send, and its offers above a limit.
    pub refused: u64,
}

#[derive(Debug)]
struct Conn {
    user: UserId,
    /// The user's id.
    id: ConnId,
    phase: Phase,
    calling: Option<AtmAddress>,
    called: AtmAddress,
    sap: Sap,
    /// Traffic seen from this host.
    qos: Qos,
    multipoint: bool,
    outgoing: bool,
    permanent: bool,
    vc: Option<Vc>,
    parties: BTreeSet<PartyId>,
    /// SDUs that arrived before the daemon said that the call is connected.
    early: VecDeque<Vec<u8>>,
}

/// The seat.
#[derive(Debug)]
pub struct Away {
    config: Config,
    version: Version,
    /// True if the line is up.
    line: bool,
    presence: Presence,
    /// Number of starts, and whether the last one was answered.
    life: u32,
    begun: bool,
    /// True if the daemon's link is up.
    up: bool,
    users: BTreeMap<UserId, UserNo>,
    numbers: BTreeMap<UserNo, UserId>,
    listeners: Listeners,
    /// Connections by their numbers towards the daemon.
    conns: BTreeMap<ConnId, Conn>,
    ids: BTreeMap<(UserId, ConnId), ConnId>,
    labels: BTreeMap<Vc, ConnId>,
    /// Calls that wait for the first daemon, oldest first.
    waiting: VecDeque<(Instant, ConnId)>,
    next_user: u16,
    next_outgoing: u32,
    next_incoming: u32,
    link: LinkInfo,
    outputs: VecDeque<Output>,
    counters: Counters,
    own: AwayCounters,
}

impl Away {
    /// A seat whose daemon has not started yet. The seat enforces the limits, whatever the daemon does.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            version: config.interface.uni.version,
            config,
            line: false,
            presence: Presence::Awaited,
            life: 0,
            begun: false,
            up: false,
            users: BTreeMap::new(),
            numbers: BTreeMap::new(),
            listeners: Listeners::default(),
            conns: BTreeMap::new(),
            ids: BTreeMap::new(),
            labels: BTreeMap::new(),
            waiting: VecDeque::new(),
            next_user: 0,
            next_outgoing: 0,
            next_incoming: ConnId::INCOMING,
            link: LinkInfo::default(),
            outputs: VecDeque::new(),
            counters: Counters::default(),
            own: AwayCounters::default(),
        }
    }
    /// Who receives what comes in on `vc`; nobody before the daemon has said that the connection is up: see [`Self::hold`].
    #[must_use]
    pub fn receiver(&self, vc: Vc) -> Option<(UserId, ConnId)> {
        let conn = self.conns.get(self.labels.get(&vc)?)?;
        (conn.phase == Phase::Connected).then_some((conn.user, conn.id))
    }
    /// Holds an SDU of a caller that is quicker than the daemon until the connection is up; false if no call waits for it.
    /// A user that got it at once would answer at once, and may not send yet.
    pub fn hold(&mut self, vc: Vc, sdu: &[u8]) -> bool {
        let number = self.labels.get(&vc);
        let Some(conn) = number.and_then(|number| self.conns.get_mut(number)) else {
            return false;
        };
        let room = conn.phase == Phase::Accepted && conn.early.len() < EARLY;
        if room {
            conn.early.push_back(sdu.to_vec());
        }
        room
    }
    /// True while calls need not wait for the link.
    #[must_use]
    pub const fn is_up(&self) -> bool {
        self.up
    }
    /// True if a daemon serves.
    #[must_use]
    pub fn is_served(&self) -> bool {
        self.presence == Presence::Here
    }
    /// The version of the interface.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }
    /// Counters of the manager.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }
    /// Counters of this boundary.
    #[must_use]
    pub const fn own_counters(&self) -> AwayCounters {
        self.own
    }
    /// Listeners, for display.
    pub fn listeners(&self) -> impl Iterator<Item = (AtmAddress, Sap, UserId, u16)> + '_ {
        self.listeners.iter()
    }
    /// All calls, for display.
    pub fn calls(&self) -> impl Iterator<Item = CallInfo> + '_ {
        self.conns.values().map(|conn| CallInfo {
            owner: Some((conn.user, conn.id)),
            phase: conn.phase,
            vc: conn.vc,
            outgoing: conn.outgoing,
            calling: conn.calling,
            called: conn.called,
            blli: conn.sap.blli,
            bhli: conn.sap.bhli,
            qos: conn.qos,
            parties: conn.parties.len(),
            multipoint: conn.multipoint,
        })
    }
    /// The link as rows of `inspect saal`, as the daemon reported it last.
    pub(super) fn saal_rows(&self, port: &str, link: &mut Table, errors: &mut Table) {
        let info = &self.link;
        link.row(vec![
            port.into(),
            text(format_args!("{:?}", info.state)),
            text(format_args!("{:?}", interface::mode_of(self.version))),
            info.outstanding.into(),
            info.established.into(),
            info.released.into(),
            info.retransmitted.into(),
            info.errors.into(),
        ]);
        for (code, count) in &info.codes {
            let code = char::from(*code);
            errors.row(vec![
                port.into(),
                text(code),
                saal::code_meaning(code).into(),
                (*count).into(),
            ]);
        }
    }

    fn event(&mut self, user: UserId, event: AtmEvent<&'static [u8]>) {
        self.outputs.push_back(Output::Event(user, event));
    }
    fn broadcast(&mut self, event: &AtmEvent<&'static [u8]>) {
        for user in self.users.keys() {
            self.outputs.push_back(Output::Event(*user, *event));
        }
    }
    fn trace(&mut self, trace: Trace) {
        self.outputs.push_back(Output::Trace(trace));
    }
    /// Sends a message to the daemon, if one serves.
    fn say(&mut self, message: ToSigd) {
        if self.presence == Presence::Here {
            self.outputs.push_back(Output::Sigd(message));
        }
    }
    fn demand(&mut self, user: UserId, request: AtmRequest) {
        if let Some(user) = self.users.get(&user).copied() {
            self.say(ToSigd::Request { user, request });
        }
    }
    fn calls_of(&self, user: UserId) -> usize {
        let range = (user, ConnId(0))..=(user, ConnId(u32::MAX));
        self.ids.range(range).count()
    }
    /// The connection with a user's id.
    fn conn(&mut self, user: UserId, id: ConnId) -> Result<(ConnId, &mut Conn), Refused> {
        let number = self.ids.get(&(user, id)).copied().ok_or(UNKNOWN)?;
        let conn = self.conns.get_mut(&number).ok_or(UNKNOWN)?;
        Ok((number, conn))
    }
    fn insert(&mut self, number: ConnId, conn: Conn) {
        self.ids.insert((conn.user, conn.id), number);
        self.conns.insert(number, conn);
    }
    /// Takes a connection and its VC out of use. The user is not told.
    fn remove(&mut self, number: ConnId) -> Option<Conn> {
        let conn = self.conns.remove(&number)?;
        self.ids.remove(&(conn.user, conn.id));
        if let Some(vc) = conn.vc {
            self.labels.remove(&vc);
            self.outputs.push_back(Output::CloseVc { vc });
        }
        if conn.phase == Phase::Waiting {
            self.waiting.retain(|(_, waiting)| *waiting != number);
        }
        Some(conn)
    }
    /// The same, and the user is told.
    fn gone(&mut self, number: ConnId, cause: Cause) {
        if let Some(Conn { user, id: conn, .. }) = self.remove(number) {
            self.event(user, AtmEvent::Released { conn, cause });
        }
    }
    /// Opens the VC of a connection.
    fn open(&mut self, number: ConnId, vc: Vc, qos: Qos) {
        if let Some(conn) = self.conns.get_mut(&number) {
            (conn.vc, conn.qos) = (Some(vc), qos);
            self.labels.insert(vc, number);
            let (owner, Qos { tx, rx }) = (Some((conn.user, conn.id)), qos);
            let opened = Output::OpenVc { owner, vc, tx, rx };
            self.outputs.push_back(opened);
        }
    }
    /// Tells the user of a connection that it can send.
    fn usable(&mut self, number: ConnId, vc: Vc) {
        if let Some(conn) = self.conns.get_mut(&number) {
            conn.phase = Phase::Connected;
            let early = core::mem::take(&mut conn.early);
            let (user, conn) = (conn.user, conn.id);
            self.event(user, AtmEvent::Connected { conn, vc });
            for sdu in early {
                self.outputs.push_back(Output::Received { user, conn, sdu });
            }
        }
    }
    /// An unused number for a call made here; all numbers are used in turn.
    fn new_number(&mut self) -> ConnId {
        loop {
            let number = ConnId(self.next_outgoing);
            self.next_outgoing = (self.next_outgoing + 1) % ConnId::INCOMING;
            if !self.conns.contains_key(&number) {
                return number;
            }
        }
    }

    fn add_user(&mut self, user: UserId) -> Result<(), Refused> {
        if self.users.len() >= self.config.limits.users {
            return Err(Refused("too many users of the ATM service"));
        }
        if self.users.contains_key(&user) {
            return Err(Refused("this user is known already"));
        }
        let number = loop {
            let number = UserNo(self.next_user);
            self.next_user = self.next_user.wrapping_add(1);
            if !self.numbers.contains_key(&number) {
                break number;
            }
        };
        self.users.insert(user, number);
        self.numbers.insert(number, user);
        self.say(ToSigd::AddUser(number));
        if self.up {
            self.event(user, AtmEvent::Up);
        }
        Ok(())
    }

    fn drop_user(&mut self, user: UserId) -> Result<(), Refused> {
        let number = self.users.remove(&user).ok_or(Refused("unknown user"))?;
        self.numbers.remove(&number);
        self.listeners.drop_user(user);
        let range = (user, ConnId(0))..=(user, ConnId(u32::MAX));
        let conns: Vec<ConnId> = self.ids.range(range).map(|(_, conn)| *conn).collect();
        for conn in conns {
            self.remove(conn);
        }
        self.say(ToSigd::DropUser(number));
        Ok(())
    }

    fn request(&mut self, user: UserId, request: AtmRequest, now: Instant) -> Result<(), Refused> {
        if !self.users.contains_key(&user) {
            return Err(Refused("unknown user"));
        }
        match request {
            AtmRequest::Listen {
                address,
                sap,
                max_sdu,
            } => {
                let limit = self.config.limits.listeners_per_user;
                self.listeners.add(user, (address, sap), max_sdu, limit)?;
                let request = AtmRequest::Listen {
                    address,
                    sap,
                    max_sdu,
                };
                self.demand(user, request);
            }
            AtmRequest::Unlisten { address, sap } => {
                self.listeners.remove(user, (address, sap))?;
                self.demand(user, AtmRequest::Unlisten { address, sap });
            }
            AtmRequest::Connect {
                conn,
                calling,
                called,
                sap,
                qos,
                multipoint,
            } => {
                let made = Conn {
                    user,
                    id: conn,
                    phase: Phase::Waiting,
                    calling: Some(calling),
                    called,
                    sap,
                    qos,
                    multipoint,
                    outgoing: true,
                    permanent: false,
                    vc: None,
                    parties: BTreeSet::from_iter(multipoint.then_some(FIRST_PARTY)),
                    early: VecDeque::new(),
                };
                return self.connect(made, now);
            }
            AtmRequest::OpenPermanent { conn, vc, qos } => {
                return self.open_permanent(user, conn, vc, qos);
            }
            AtmRequest::AddParty {
                conn,
                party,
                called,
            } => return self.add_party(user, conn, party, called),
            AtmRequest::DropParty { conn, party } => {
                let (number, known) = self.conn(user, conn)?;
                if !known.parties.remove(&party) {
                    return Err(Refused("unknown party"));
                }
                let conn = number;
                self.demand(user, AtmRequest::DropParty { conn, party });
            }
            AtmRequest::Accept { conn } => {
                let (number, known) = self.conn(user, conn)?;
                if known.phase != Phase::Offered {
                    return Err(WRONG_STATE);
                }
                known.phase = Phase::Accepted;
                self.demand(user, AtmRequest::Accept { conn: number });
            }
            AtmRequest::Release { conn, cause } => {
                let (number, known) = self.conn(user, conn)?;
                let told = !known.permanent && known.phase != Phase::Waiting;
                self.remove(number);
                if told {
                    let conn = number;
                    self.demand(user, AtmRequest::Release { conn, cause });
                }
            }
            AtmRequest::Send { conn, sdu } => {
                let (_, known) = self.conn(user, conn)?;
                let (Phase::Connected, Some(vc)) = (known.phase, known.vc) else {
                    return Err(WRONG_STATE);
                };
                may_send(&known.qos, &sdu)?;
                self.outputs.push_back(Output::Send { vc, sdu });
            }
        }
        Ok(())
    }

    fn connect(&mut self, conn: Conn, now: Instant) -> Result<(), Refused> {
        let (user, id) = (conn.user, conn.id);
        if id.0 >= ConnId::INCOMING {
            return Err(Refused("this id is reserved for calls received"));
        }
        if self.ids.contains_key(&(user, id)) {
            return Err(Refused("this id is in use"));
        }
        let refused = if self.calls_of(user) >= self.config.limits.calls_per_user {
            Some((Cause::RESOURCES, Refused("too many calls of this user")))
        } else if matches!(self.presence, Presence::Gone | Presence::Ending) {
            self.own.absent += 1;
            Some((NOBODY, ABSENT))
        } else {
            None
        };
        if let Some((cause, refused)) = refused {
            // The user waits for the end of this call, so the user is told.
            self.event(user, AtmEvent::Released { conn: id, cause });
            return Err(refused);
        }
        self.counters.outgoing += 1;
        let number = self.new_number();
        self.insert(number, conn);
        if self.presence == Presence::Here {
            self.call(number);
        } else {
            self.waiting.push_back((now + self.config.wait, number));
        }
        Ok(())
    }

    /// Passes a call to the daemon.
    fn call(&mut self, number: ConnId) {
        let Some(conn) = self.conns.get_mut(&number) else {
            return;
        };
        conn.phase = Phase::Calling;
        let request = AtmRequest::Connect {
            conn: number,
            calling: conn.calling.unwrap_or(AtmAddress::ZERO),
            called: conn.called,
            sap: conn.sap,
            qos: conn.qos,
            multipoint: conn.multipoint,
        };
        let user = conn.user;
        self.demand(user, request);
    }

    fn open_permanent(
        &mut self,
        user: UserId,
        id: ConnId,
        vc: Vc,
        qos: Qos,
    ) -> Result<(), Refused> {
        if id.0 >= ConnId::INCOMING || self.ids.contains_key(&(user, id)) {
            return Err(Refused("this id is in use, or reserved for calls received"));
        }
        let full = self.calls_of(user) >= self.config.limits.calls_per_user;
        if full || !self.is_free(vc) {
            let cause = if full {
                Cause::RESOURCES
            } else {
                Cause::VC_UNAVAILABLE
            };
            self.event(user, AtmEvent::Released { conn: id, cause });
            return Err(Refused("this label cannot be used"));
        }
        let number = self.new_number();
        let conn = Conn {
            user,
            id,
            phase: Phase::Connected,
            calling: None,
            called: AtmAddress::ZERO,
            sap: Sap::ANY,
            qos,
            multipoint: false,
            outgoing: true,
            permanent: true,
            vc: None,
            parties: BTreeSet::new(),
            early: VecDeque::new(),
        };
        self.insert(number, conn);
        self.open(number, vc, qos);
        self.usable(number, vc);
        Ok(())
    }

    /// True if a connection may have this label.
    fn is_free(&self, vc: Vc) -> bool {
        let reserved = vc.vpi == 0 && vc.vci < Vc::FIRST_USER_VCI;
        !reserved && !self.labels.contains_key(&vc)
    }

    fn add_party(
        &mut self,
        user: UserId,
        conn: ConnId,
        party: PartyId,
        called: AtmAddress,
    ) -> Result<(), Refused> {
        let limit = self.config.limits.parties_per_call;
        let (number, known) = self.conn(user, conn)?;
        let root = known.outgoing && known.multipoint;
        if !root || known.phase != Phase::Connected {
            return Err(WRONG_STATE);
        }
        if party == FIRST_PARTY || party.0 > 0x7fff || known.parties.contains(&party) {
            return Err(Refused("this party id is in use or out of range"));
        }
        if known.parties.len() >= limit {
            let cause = Cause::RESOURCES;
            self.event(user, AtmEvent::PartyGone { conn, party, cause });
            return Err(Refused("too many parties"));
        }
        known.parties.insert(party);
        let request = AtmRequest::AddParty {
            conn: number,
            party,
            called,
        };
        self.demand(user, request);
        Ok(())
    }
}

impl Machine for Away {
    type Input<'a> = Input<'a>;
    type Output = Output;
    type Refusal = Refused;

    fn handle_input(&mut self, input: Input<'_>, now: Instant) -> Result<(), Refused> {
        let done = match input {
            Input::Start | Input::LinkDown => {
                self.line = matches!(input, Input::Start);
                self.say(ToSigd::Line { up: self.line });
                Ok(())
            }
            Input::Version(version) => {
                self.version = version;
                self.say(ToSigd::Version(version));
                Ok(())
            }
            Input::Signalling(sdu) => {
                if matches!(self.presence, Presence::Here | Presence::Ending) {
                    let message = ToSigd::Signalling(sdu.to_vec());
                    self.outputs.push_back(Output::Sigd(message));
                } else {
                    self.own.unread += 1;
                }
                Ok(())
            }
            Input::AddUser(user) => self.add_user(user),
            Input::DropUser(user) => self.drop_user(user),
            Input::Request(user, request) => self.request(user, request, now),
        };
        self.counters.refused += u64::from(done.is_err());
        done
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some((_, number)) = self.waiting.pop_front_if(|(until, _)| *until <= now) {
            self.counters.no_link += 1;
            self.gone(number, Cause::NETWORK_OUT_OF_ORDER);
        }
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.waiting.front().map(|(until, _)| *until)
    }
}

/// Party of the SETUP of a point-to-multipoint call.
const FIRST_PARTY: PartyId = PartyId(0);
