//! LAN emulation server: the members of an ELAN, and the owners of MAC addresses.
//!
//! **Objects and owners.** [`Les`] owns its clients (one per control direct connection), the registrations, and the
//! control distribute connection. It reports members and their registered unicast addresses to the BUS's owner
//! ([`Output::Member`]).
//!
//! **States of a client**: connected (S4 runs), joining (its leaf of control distribute is being added), joined. The
//! leaf is added after LE_JOIN_REQUEST and before the response: before the request, a Linux client does not listen yet.
//!
//! **Several LESs** (`standby.rs`). A LES with [`LesConfig::lecs`] reports to the LECS every ten seconds. If the answer
//! names another LES as serving, this LES releases its clients: they ask the LECS anew, and all members of the ELAN
//! meet at one LES again.
//!
//! **Trust.** The network guarantees the address of a caller. What a client declares (LE_ARP, LE_NARP, registrations,
//! answers to LE_ARP) must concern its own end system, and no MAC address that another client has registered; otherwise
//! the frame is dropped and counted.
//!
//! **Quota.** The frames of a client that all others receive (LE_NARP, LE_TOPOLOGY, targetless LE_ARP) are bounded for
//! each end system, as data frames are at the BUS ([`crate::lane::Quotas::announcements`]); further frames are dropped
//! and counted. The same applies to LE_ARP for addresses that no client registered, which goes to all proxies and to
//! clients that joined without a MAC address ([`crate::lane::Quotas::unregistered`]), and to LE_REGISTER and
//! LE_UNREGISTER, after which the BUS gets all addresses of the client ([`crate::lane::Quotas::registrations`]).
//!
//! **Timers**: S4 per client that has not joined; retry of a refused leaf; the report.
//!
//! **Standards**: LUNI 2.0 clauses 5.4, 6, 7 (server side).
//!
//! **Selective multicast**. A v2 client that joins with the flag registers the group addresses that it wants; several
//! clients may register the same address. LE_ARP for any group address is answered with the BUS, which is told which
//! client wants which groups.
//!
//! **Not implemented**: route descriptors, selective multicast servers apart from the BUS, LNNI.
//!
//! **Deviations**: LE_ARP for an address that no client registered goes to the clients that may know it (proxies, and
//! clients that joined without a MAC address) on control direct; if there is no such client, the request is dropped. A
//! client whose leaf cannot be set up at all is served on its control direct connection. Mismatched LAN type, size or
//! name is answered with status 2.

mod requests;
mod standby;
use super::quota::Quota;
use super::tree::{Tree, TreeEvent};
use super::{Member, ServerParams};
use crate::atm::within;
use crate::{AtmEvent, AtmRequest, Cause, ConnId, Deadlines, Instant, Machine, Trace};
use aerostat_wire::counted;
use aerostat_wire::lane::{
    CONTROL_SDU, Control, ControlFrame, ElanName, LanType, MaxFrameSize, Tlv,
};
use aerostat_wire::{AtmAddress, MacAddr, Qos, Sap, Vc};
use core::convert::Infallible;
use standby::Standby;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Connections that one end system may have without a join, so that no host takes all the room.
const CALLS_PER_HOST: usize = 16;

crate::split_record! {
    /// Configuration of a LES before its start.
    #[derive(Clone, Debug, PartialEq)]
    pub struct LesConfig {
        /// Name of the ELAN.
        pub elan: ElanName,
        /// S1: own ATM address.
        pub address: AtmAddress,
        /// S6: ATM address of the BUS.
        pub bus: AtmAddress,
        /// S2.
        pub lan_type: LanType,
        /// S3.
        pub max_frame: MaxFrameSize,
        /// Speak LANE v2 with clients that can.
        pub v2: bool,
        /// Number of the ELAN, for v2 clients; 0 if the ELAN has no number.
        pub elan_id: u32,
        /// The LECS to report to, if the ELAN has several LESs.
        pub lecs: Option<AtmAddress>,
        /// Variables and bounds.
        pub params: ServerParams,
    }
}

impl LesConfig {
    /// A v2 LES of an Ethernet ELAN with 1516-octet frames.
    #[must_use]
    pub fn new(elan: ElanName, address: AtmAddress, bus: AtmAddress) -> Self {
        Self {
            elan,
            address,
            bus,
            lan_type: LanType::ETHERNET,
            max_frame: MaxFrameSize::S1516,
            v2: true,
            elan_id: 0,
            lecs: None,
            params: ServerParams::default(),
        }
    }
}

/// Inputs of a LES.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// Starts to serve.
    Start,
    /// Release everything and stop.
    Stop,
    /// From the ATM service.
    Atm(AtmEvent<&'a [u8]>),
}

/// Outputs of a LES.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// For the ATM service.
    Atm(AtmRequest),
    /// A client joined or left: for the BUS.
    Member {
        /// Its ATM address.
        address: AtmAddress,
        /// The data of the client for the BUS, sent again when they change; `None` if the client left.
        member: Option<Member>,
    },
    /// An observation.
    Trace(Trace),
}

crate::counters! {
    /// Counters of a LES.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct LesCounters {
        /// Control frames received.
        pub received: u64,
        /// Control frames that did not decode or made no sense.
        pub bad: u64,
        /// Frames that named another client's LECID or address, or came before the join.
        pub forged: u64,
        /// Joins granted.
        pub joins: u64,
        /// Joins refused.
        pub joins_refused: u64,
        /// Registrations refused.
        pub registrations_refused: u64,
        /// LE_ARP requests.
        pub arp_requests: u64,
        /// LE_ARP requests for which no client could be asked.
        pub arp_unknown: u64,
        /// Frames copied to other clients.
        pub forwarded: u64,
        /// Announcements (LE_NARP, LE_TOPOLOGY, targetless LE_ARP) dropped because their sender had used up its quota.
        pub over_quota: u64,
        /// LE_ARP requests for addresses that no client has registered, dropped for the same reason.
        pub arp_over_quota: u64,
        /// LE_REGISTER and LE_UNREGISTER requests dropped for the same reason.
        pub registrations_over_quota: u64,
        /// Calls refused because a bound was reached.
        pub calls_refused: u64,
        /// Clients dropped because they did not join within S4.
        pub join_timeouts: u64,
        /// Clients beyond those that a report of a server in a process of its own can show.
        pub not_shown: u64,
    }
}

enum State {
    Connected,
    Joining { response: Box<ControlFrame> },
    Joined,
}

struct Client {
    address: AtmAddress,
    vc: Option<Vc>,
    state: State,
    lecid: u16,
    proxy: bool,
    v2: bool,
    /// The client joined without a MAC address: it may own addresses that it did not register.
    silent: bool,
    macs: BTreeSet<MacAddr>,
    /// The client wants only frames of groups that it registers (C32).
    selective: bool,
    groups: BTreeSet<MacAddr>,
    response: Option<ControlFrame>,
}

impl Client {
    fn wanted(&self) -> Option<Vec<MacAddr>> {
        self.selective
            .then(|| self.groups.iter().copied().collect())
    }
    /// True if the client must register all its unicast addresses, because it is no proxy.
    const fn registers_all(&self) -> bool {
        !self.proxy && !self.silent
    }
}

struct Registration {
    conn: ConnId,
    atm: AtmAddress,
    tlvs: Vec<Tlv>,
}

/// A LAN emulation server.
pub struct Les {
    config: LesConfig,
    running: bool,
    clients: BTreeMap<ConnId, Client>,
    lecids: BTreeMap<u16, ConnId>,
    /// All LECIDs below this value are in use.
    lowest: u16,
    /// Connections of the clients that have a LECID, by address.
    members: BTreeMap<AtmAddress, ConnId>,
    /// Clients that joined and are not reached by control distribute.
    apart: BTreeSet<ConnId>,
    /// S4 of the connections without a join.
    late: Deadlines<ConnId>,
    /// Number of connections without a join, for each end system.
    waiting: BTreeMap<AtmAddress, usize>,
    macs: BTreeMap<MacAddr, Registration>,
    tree: Tree,
    /// Announcements of each end system.
    quota: Quota,
    unregistered: Quota,
    registrations: Quota,
    standby: Option<Standby>,
    deadline: Option<Instant>,
    told_full: bool,
    counters: LesCounters,
    out: VecDeque<Output>,
}

crate::split_record! {
    /// One row of `inspect les`.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct LesRow {
        /// LECID; 0 before the join.
        pub lecid: u16,
        /// ATM address.
        pub address: AtmAddress,
        /// `connected`, `joining` or `joined`.
        pub state: &'static str,
        /// The client represents other stations.
        pub proxy: bool,
        /// The client speaks LANE v2.
        pub v2: bool,
        /// Control distribute reaches the client by a point-to-point copy.
        pub copy: bool,
        /// Registered MAC addresses.
        pub macs: Vec<MacAddr>,
        /// Registered group addresses; `None`: the client wants the frames of all groups.
        pub groups: Option<Vec<MacAddr>>,
        /// Label of control direct.
        pub vc: Option<Vc>,
    }
}

crate::split_record! {
    /// A LES, seen from outside.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct LesSnapshot {
        /// Name of the ELAN.
        pub elan: ElanName,
        /// Own address.
        pub address: AtmAddress,
        /// Address of the BUS.
        pub bus: AtmAddress,
        /// Clients.
        pub clients: Vec<LesRow>,
        /// Counters.
        pub counters: LesCounters,
    }
}

impl Les {
    /// A LES that does not serve yet.
    #[must_use]
    pub fn new(config: LesConfig) -> Self {
        let params = &config.params;
        let quota = Quota::new(params.quota.announcements, params.clients);
        let unregistered = Quota::new(params.quota.unregistered, params.clients);
        let registrations = Quota::new(params.quota.registrations, params.clients);
        Self {
            tree: Tree::new(config.address, Sap::LANE_CONTROL, CONTROL_SDU, params),
            standby: config.lecs.map(|lecs| Standby::new(lecs, config.address)),
            config,
            running: false,
            clients: BTreeMap::new(),
            lecids: BTreeMap::new(),
            lowest: 1,
            members: BTreeMap::new(),
            apart: BTreeSet::new(),
            late: Deadlines::default(),
            waiting: BTreeMap::new(),
            macs: BTreeMap::new(),
            told_full: false,
            quota,
            unregistered,
            registrations,
            deadline: None,
            counters: LesCounters::default(),
            out: VecDeque::new(),
        }
    }
    /// The state of the LES for display.
    #[must_use]
    pub fn snapshot(&self) -> LesSnapshot {
        let clients = self.clients.values().map(|client| LesRow {
            lecid: client.lecid,
            address: client.address,
            state: match client.state {
                State::Connected => "connected",
                State::Joining { .. } => "joining",
                State::Joined => "joined",
            },
            proxy: client.proxy,
            v2: client.v2,
            copy: self.tree.copies(client.address),
            macs: client.macs.iter().copied().collect(),
            groups: client.wanted(),
            vc: client.vc,
        });
        LesSnapshot {
            elan: self.config.elan,
            address: self.config.address,
            bus: self.config.bus,
            clients: clients.collect(),
            counters: self.counters,
        }
    }

    fn start(&mut self, now: Instant) {
        if !core::mem::replace(&mut self.running, true) {
            self.request(AtmRequest::listen(
                self.config.address,
                Sap::LANE_CONTROL,
                u16::MAX,
            ));
            let text = format!("serves ELAN {}", self.config.elan);
            let trace = Trace::milestone("les.started", text).with("elan", self.config.elan);
            self.out.push_back(Output::Trace(trace));
            self.report(now);
        }
    }

    fn stop(&mut self, now: Instant) {
        if !core::mem::replace(&mut self.running, false) {
            return;
        }
        for conn in self.clients.keys().copied().collect::<Vec<_>>() {
            self.drop_client(conn, true, now);
        }
        self.tree.clear(now);
        self.stop_reporting();
        self.request(AtmRequest::Unlisten {
            address: self.config.address,
            sap: Sap::LANE_CONTROL,
        });
    }

    fn atm(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        if self.standby_event(&event, now) {
            return;
        }
        let of_client = event
            .conn()
            .is_some_and(|conn| self.clients.contains_key(&conn));
        if self.tree.handle(&event, now) && !of_client {
            return;
        }
        match event {
            AtmEvent::Incoming {
                conn,
                calling,
                sap,
                qos,
                ..
            } => self.incoming((conn, &qos), calling, sap, now),
            AtmEvent::Connected { conn, vc, .. } => {
                if let Some(client) = self.clients.get_mut(&conn) {
                    client.vc = Some(vc);
                }
            }
            AtmEvent::Released { conn, .. } => self.drop_client(conn, false, now),
            AtmEvent::Received { conn, sdu } => self.sdu(conn, sdu, now),
            AtmEvent::Up
            | AtmEvent::Down
            | AtmEvent::PartyAdded { .. }
            | AtmEvent::PartyGone { .. } => {}
        }
    }

    /// Traced once: further refused calls are not traced.
    fn tell_full(&mut self) {
        let (elan, clients) = (self.config.elan, self.config.params.clients);
        if !core::mem::replace(&mut self.told_full, true) {
            let most = counted(clients, "client", "clients");
            let text = format!("ELAN {elan} is full: its LES takes {most}");
            let trace = Trace::milestone("les.full", text).with("elan", elan);
            self.out
                .push_back(Output::Trace(trace.with("clients", clients)));
        }
    }

    fn incoming(
        &mut self,
        (conn, qos): (ConnId, &Qos),
        calling: Option<AtmAddress>,
        sap: Sap,
        now: Instant,
    ) {
        let cause = match calling {
            _ if !self.running || sap != Sap::LANE_CONTROL => Some(Cause::INCOMPATIBLE),
            None => Some(Cause::REJECTED),
            Some(_) if self.clients.len() >= self.config.params.clients => {
                self.tell_full();
                Some(Cause::RESOURCES)
            }
            Some(caller) if self.waiting(caller) >= CALLS_PER_HOST => Some(Cause::RESOURCES),
            Some(_) => None,
        };
        if let Some(cause) = cause {
            self.counters.calls_refused += 1;
            return self.request(AtmRequest::Release { conn, cause });
        }
        let until = now + self.config.params.control_timeout;
        let client = Client {
            address: calling.unwrap_or_default(),
            vc: None,
            state: State::Connected,
            lecid: 0,
            proxy: false,
            v2: false,
            silent: false,
            macs: BTreeSet::new(),
            selective: false,
            groups: BTreeSet::new(),
            response: None,
        };
        *self
            .waiting
            .entry(client.address.with_selector(0))
            .or_default() += 1;
        self.late.set(conn, Some(until));
        self.clients.insert(conn, client);
        let terms = within(qos, CONTROL_SDU);
        self.request(AtmRequest::Accept { conn, terms });
    }

    /// Connections of an end system on which it has not joined yet.
    fn waiting(&self, caller: AtmAddress) -> usize {
        let known = self.waiting.get(&caller.with_selector(0));
        known.copied().unwrap_or_default()
    }

    /// A connection no longer waits for a join: the join came, or the connection is gone.
    fn waits_no_more(&mut self, conn: ConnId, caller: AtmAddress) {
        self.late.set(conn, None);
        let caller = caller.with_selector(0);
        if let Some(count) = self.waiting.get_mut(&caller) {
            *count -= 1;
            if *count == 0 {
                self.waiting.remove(&caller);
            }
        }
    }

    /// Forgets a client and all that it registered.
    fn drop_client(&mut self, conn: ConnId, release: bool, now: Instant) {
        let Some(client) = self.clients.remove(&conn) else {
            return;
        };
        if release {
            let cause = Cause::NORMAL;
            self.request(AtmRequest::Release { conn, cause });
        }
        for mac in &client.macs {
            self.macs.remove(mac);
        }
        self.apart.remove(&conn);
        if client.lecid == 0 {
            return self.waits_no_more(conn, client.address);
        }
        self.lecids.remove(&client.lecid);
        self.lowest = self.lowest.min(client.lecid);
        self.members.remove(&client.address);
        self.tree.remove(client.address, now);
        if matches!(client.state, State::Joined) {
            self.trace_member(client.address, client.lecid, "les.leave", "left");
            let (address, member) = (client.address, None);
            self.out.push_back(Output::Member { address, member });
        }
    }

    /// Sends the data of a member to the BUS.
    fn tell_member(&mut self, conn: ConnId) {
        let joined = |client: &&Client| matches!(client.state, State::Joined);
        let Some(client) = self.clients.get(&conn).filter(joined) else {
            return;
        };
        let address = client.address;
        let here = |mac: &&MacAddr| self.macs.get(mac).is_some_and(|known| known.atm == address);
        let macs = client.macs.iter().filter(here).copied();
        let member = Some(Member {
            lecid: client.lecid,
            groups: client.wanted(),
            macs: client.registers_all().then(|| macs.collect()),
        });
        self.out.push_back(Output::Member { address, member });
    }

    fn trace_member(&mut self, address: AtmAddress, lecid: u16, name: &'static str, verb: &str) {
        let text = format!("LECID {lecid} {verb} ELAN {}", self.config.elan);
        let trace = Trace::detail(name, text).with("lecid", lecid);
        self.out
            .push_back(Output::Trace(trace.with("address", address)));
    }

    fn sdu(&mut self, conn: ConnId, sdu: &[u8], now: Instant) {
        if !self.clients.contains_key(&conn) {
            self.counters.bad += 1;
            return;
        }
        self.counters.received += 1;
        match Control::decode(sdu) {
            Ok(Control::Frame(frame)) => self.control(conn, &frame, now),
            Ok(_) | Err(_) => self.counters.bad += 1,
        }
    }

    /// The tree reached a client, or lost a client.
    fn tree_events(&mut self, now: Instant) {
        while let Some(event) = self.tree.events.pop_front() {
            let (address, up) = match event {
                TreeEvent::Up(address) => (address, true),
                TreeEvent::Down(address) => (address, false),
            };
            let Some(&conn) = self.members.get(&address) else {
                continue;
            };
            let Some(client) = self.clients.get(&conn) else {
                continue;
            };
            match client.state {
                // A client without a leaf is served on control direct.
                State::Joining { .. } => self.finish_join(conn),
                // The client notices that its control distribute connection is gone, and will join again.
                State::Joined if !up => self.drop_client(conn, true, now),
                State::Joined | State::Connected => {}
            }
        }
    }

    /// Answers a join once its leaf is up or has failed.
    fn finish_join(&mut self, conn: ConnId) {
        let Some(client) = self.clients.get_mut(&conn) else {
            return;
        };
        let State::Joining { response } = core::mem::replace(&mut client.state, State::Joined)
        else {
            return;
        };
        client.response = Some((*response).clone());
        if !self.tree.reaches(client.address) {
            self.apart.insert(conn);
        }
        let (address, lecid) = (client.address, client.lecid);
        self.counters.joins += 1;
        // The BUS must know the member before the client can call.
        self.tell_member(conn);
        self.trace_member(address, lecid, "les.join", "joined");
        self.send(conn, &response);
    }

    fn send(&mut self, conn: ConnId, frame: &ControlFrame) {
        let sdu = frame.encode();
        self.request(AtmRequest::Send { conn, sdu });
    }

    /// Sends a frame to all members; the sender filters by LECID.
    fn distribute(&mut self, frame: &ControlFrame) {
        self.counters.forwarded += 1;
        self.tree.send(&frame.encode());
        self.flush_tree();
        for conn in self.apart.iter().copied().collect::<Vec<_>>() {
            self.send(conn, frame);
        }
    }

    fn request(&mut self, request: AtmRequest) {
        self.out.push_back(Output::Atm(request));
    }
    fn flush_tree(&mut self) {
        while let Some(request) = self.tree.out.pop_front() {
            self.out.push_back(Output::Atm(request));
        }
    }

    /// After each step: the tree's requests and events, and the next deadline.
    fn settle(&mut self, now: Instant) {
        loop {
            self.flush_tree();
            if self.tree.events.is_empty() {
                break;
            }
            self.tree_events(now);
        }
        let report = self.standby.as_ref().and_then(|standby| standby.due);
        let next = [self.late.next(), self.tree.next(), report];
        self.deadline = next.into_iter().flatten().min();
    }
}

impl Machine for Les {
    type Input<'a> = Input<'a>;
    type Output = Output;
    type Refusal = Infallible;

    fn handle_input(&mut self, input: Input<'_>, now: Instant) -> Result<(), Infallible> {
        match input {
            Input::Start => self.start(now),
            Input::Stop => self.stop(now),
            Input::Atm(event) => self.atm(event, now),
        }
        self.settle(now);
        Ok(())
    }
    fn handle_timeout(&mut self, now: Instant) {
        if self.deadline.is_none_or(|at| at > now) {
            return;
        }
        for conn in self.late.due(now) {
            self.counters.join_timeouts += 1;
            self.drop_client(conn, true, now);
        }
        if self
            .standby
            .as_ref()
            .is_some_and(|standby| standby.due.is_some_and(|at| at <= now))
        {
            self.report(now);
        }
        self.tree.timeout(now);
        self.settle(now);
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.deadline
    }
}

crate::atm_user!(Les {});
