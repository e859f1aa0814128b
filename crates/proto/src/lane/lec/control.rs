//! Control part of a client: its connections, the pending request, and the rules for accepting calls.

use super::conns::{Conn, Conns};
use super::groups::Groups;
use super::messages::{ToControl, ToData};
use super::rows::Rows;
use super::split::FromLecd;
use super::state::State;
use super::{Input, LecConfig, LecState, News};
use crate::lane::LecParams;
use crate::requests::{Repeats, RetryRule};
use crate::retry::Backoff;
use crate::split::FromDaemon;
use crate::vcc::Call;
use crate::{AtmEvent, AtmRequest, Cause, ConnId, Instant, TimerTable, Trace};
use aerostat_wire::lane::{
    CONTROL_SDU, Control as Pdu, ControlFrame, ElanName, LanType, MaxFrameSize, OpCode, Tlv,
    TlvType,
};
use aerostat_wire::llc::LlcSnap;
use aerostat_wire::{AtmAddress, MacAddr, Sap, TrafficParams};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Largest number of control distribute, and of multicast forward, connections at a time.
const MAX_SERVER_CALLS: usize = 4;
/// Largest number of offered multicast forward calls that wait for LE_VERIFY.
const MAX_VERIFY: usize = 4;

crate::counters! {
    /// Counters of the control part.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct ControlCounters {
        /// Control frames sent.
        pub sent: u64,
        /// Control frames received.
        pub received: u64,
        /// Control frames that did not decode, or were not allowed on their connection.
        pub bad: u64,
        /// Responses to no request of this client.
        pub unasked: u64,
        /// Calls refused: unknown caller, wrong state, or too many.
        pub calls_refused: u64,
        /// LE_ARP bindings not kept because the cache was full.
        pub cache_full: u64,
        /// Contracts that the network refused; see [`contracts`](super::contracts).
        pub contracts_refused: u64,
        /// Calls to the BUS for which the LECS told a contract that contradicts itself.
        pub bad_contracts: u64,
        /// How often the client joined.
        pub joins: u64,
        /// How often the client lost its membership.
        pub losses: u64,
    }
}

/// Purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// With the LECS.
    ConfigDirect,
    /// To the LES.
    ControlDirect,
    /// From the LES to all.
    Distribute,
    /// To the BUS.
    MulticastSend,
    /// From the BUS to all.
    MulticastForward,
    /// To a selective multicast server that is not the BUS.
    SelectiveSend,
    /// With another client.
    DataDirect,
}

/// Data that the client stores with a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Link {
    /// Data direct, LLC-multiplexed.
    pub(super) mux: bool,
    /// Traffic of this end, if it is not best effort.
    pub(super) traffic: Option<TrafficParams>,
    /// Data direct: frames may be sent.
    pub(super) ready: bool,
}

crate::timer_kinds! {
    /// The timers of the control part.
    pub(super) enum Timer {
        /// Repeat the pending request (C7i, C7x), or abandon it (C7).
        Request,
        /// Leave the initial state.
        Restart,
        /// C33: there is no multicast forward connection.
        Forward,
        /// Unverified callers.
        Verify,
        /// Announce the client's TLVs again.
        Announce,
        /// A topology change whose end was not reported ends.
        Topology,
    }
}

/// Octets in front of an LLC-multiplexed data frame: LLC/SNAP and ELAN-ID.
pub(super) const MUX_HEADER: u16 = 12;

/// The request that waits for its response.
pub(super) struct Pending {
    pub(super) conn: ConnId,
    pub(super) frame: ControlFrame,
    repeats: Repeats,
}

pub(super) struct Control {
    pub(super) config: LecConfig,
    /// Variables as configured and as changed by the LECS.
    pub(super) params: LecParams,
    pub(super) state: State,
    pub(super) backoff: Backoff,
    /// Peers whose data direct calls were refused.
    pub(super) refusals: BTreeMap<AtmAddress, Backoff>,
    pub(super) timers: TimerTable<Timer>,
    pub(super) transaction: u32,
    pub(super) conns: Conns,
    pub(super) pending: Option<Pending>,
    /// True if the client's TLVs before the last change were those of a server.
    pub(super) was_server: bool,
    /// ELAN, LAN type and frame size as configured, and as changed by the LECS and the LES; they stay until the next
    /// attempt to join.
    pub(super) elan: ElanName,
    pub(super) lan_type: LanType,
    pub(super) max_frame: MaxFrameSize,
    pub(super) remote: BTreeSet<MacAddr>,
    pub(super) groups: Groups,
    pub(super) topology_change: bool,
    /// Peers that refused LLC-multiplexed calls.
    pub(super) plain: BTreeSet<AtmAddress>,
    /// Peers with which the network refused a contract: until then they are called for best effort.
    pub(super) best_effort: BTreeMap<AtmAddress, Instant>,
    pub(super) cache: Rows,
    /// Calls for which the LES is asked about the caller: transaction, call and caller.
    verify: BTreeMap<u32, (ConnId, AtmAddress)>,
    deadline: Option<Instant>,
    pub(super) counters: ControlCounters,
    pub(super) to_data: VecDeque<ToData>,
    pub(super) out: VecDeque<FromDaemon<FromLecd>>,
}

impl Control {
    pub(super) fn new(config: LecConfig) -> Self {
        Self {
            params: config.params.clone(),
            state: State::Stopped,
            backoff: Backoff::new(config.seed),
            refusals: BTreeMap::new(),
            timers: TimerTable::default(),
            transaction: 0,
            conns: Conns::default(),
            pending: None,
            was_server: false,
            elan: config.elan,
            lan_type: config.lan_type,
            max_frame: config.max_frame,
            remote: BTreeSet::new(),
            groups: Groups::new(&config),
            topology_change: false,
            plain: BTreeSet::new(),
            best_effort: BTreeMap::new(),
            cache: Rows::default(),
            verify: BTreeMap::new(),
            deadline: None,
            counters: ControlCounters::default(),
            to_data: VecDeque::new(),
            out: VecDeque::new(),
            config,
        }
    }
    pub(super) const fn state(&self) -> LecState {
        self.state.name()
    }
    pub(super) fn lecid(&self) -> u16 {
        self.state.lecid()
    }
    pub(super) const fn next(&self) -> Option<Instant> {
        self.deadline
    }

    pub(super) fn handle(&mut self, input: Input<'_>, now: Instant) {
        match input {
            Input::Start => self.start(now),
            Input::Stop => self.stop(),
            Input::Atm(event) => self.atm(event, now),
            Input::SetTlvs(tlvs) => self.set_tlvs(tlvs, now),
            Input::SetRemote(macs) => self.set_remote(macs),
            Input::SetGroups(groups) => self.set_groups(&groups, now),
            Input::TopologyChange(on) => self.send_topology(on),
            Input::Resolve { mac } => self.resolve_for_user(mac, now),
            // These go to the data plane, and to the seat of another process.
            Input::Transmit(_) | Input::Lecd(_) => {}
        }
        self.reckon();
    }

    pub(super) fn data_message(&mut self, message: ToControl, now: Instant) {
        match message {
            ToControl::Resolve(mac) => self.resolve_for_frames(mac, now),
            ToControl::Control { conn, sdu } => self.sdu(conn, &sdu, now),
            ToControl::Heard { mac, conn } => self.heard(mac, conn, now),
            ToControl::Idle(conn) => self.idle(conn, now),
            ToControl::Switched { mac, to } => self.switched(mac, to),
            ToControl::MustFlush { mac, to, via, ago } => {
                self.send_flush(mac, to, via, ago, now);
            }
            ToControl::Unwanted(mac) => self.lose_path(mac),
            ToControl::Use { mac, ago } => self.aged(mac, ago, now),
        }
        self.reckon();
    }

    pub(super) fn timeout(&mut self, now: Instant) {
        if self.deadline.is_none_or(|at| at > now) {
            return;
        }
        while let Some(timer) = self.timers.expire(now) {
            match timer {
                Timer::Request => self.request_due(now),
                Timer::Restart => self.begin(now),
                Timer::Forward => self.bus_lost(now),
                Timer::Verify => self.drop_unverified(),
                Timer::Announce => self.announce_again(now),
                Timer::Topology => self.set_topology(false),
            }
        }
        self.direct_timeout(now);
        self.cache_timeout(now);
        self.reckon();
    }

    /// Recomputes the next deadline; called after every step, so that asking for it is cheap.
    pub(super) fn reckon(&mut self) {
        let fixed = self.timers.next();
        let ready = self.conns.next_query();
        self.cache_reckon();
        let cache = self.cache.next();
        self.deadline = [fixed, ready, cache].into_iter().flatten().min();
    }

    // ---- connections ----

    fn atm(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        match event {
            AtmEvent::Up => {
                if self.timers.runs(Timer::Restart) {
                    self.timers.stop(Timer::Restart);
                    self.begin(now);
                }
            }
            // Each lost connection gets its own Released. Only the root handles leaves.
            AtmEvent::Down | AtmEvent::PartyAdded { .. } | AtmEvent::PartyGone { .. } => {}
            AtmEvent::Incoming {
                conn,
                calling,
                sap,
                qos,
                ..
            } => self.incoming((conn, qos.tx), calling, sap, now),
            AtmEvent::Connected { conn, vc, .. } => {
                if let Some(role) = self.conns.opened(conn, vc, now) {
                    self.connected(conn, role, now);
                }
            }
            AtmEvent::Released { conn, cause } => self.released(conn, cause, now),
            AtmEvent::Received { conn, sdu } => self.sdu(conn, sdu, now),
        }
    }

    fn connected(&mut self, conn: ConnId, role: Role, now: Instant) {
        match role {
            Role::ConfigDirect => self.send_configure(conn, now),
            Role::ControlDirect => self.send_join(conn, now),
            Role::Distribute => {}
            Role::MulticastSend => {
                self.to_data.push_back(ToData::Open {
                    conn,
                    idle: None,
                    mux: None,
                });
                self.to_data.push_back(ToData::Bus(Some(conn)));
                self.bus_progress(now);
            }
            Role::MulticastForward => {
                self.to_data.push_back(ToData::Open {
                    conn,
                    idle: None,
                    mux: None,
                });
                self.bus_progress(now);
            }
            Role::SelectiveSend => self.group_connected(conn, now),
            Role::DataDirect => self.direct_connected(conn, now),
        }
    }

    fn released(&mut self, conn: ConnId, cause: Cause, now: Instant) {
        self.verify.retain(|_, (call, _)| *call != conn);
        let Some(gone) = self.conns.remove(conn) else {
            return;
        };
        self.to_data.push_back(ToData::Close(conn));
        match gone.carries() {
            Role::ConfigDirect => {
                if let State::Configuring(configuring) = &mut self.state {
                    configuring.refused = Some(cause);
                }
                self.request_failed("configure direct connection released", now);
            }
            Role::ControlDirect => {
                let why = format!("control direct connection: {cause}");
                self.fail_with(&why, Some(cause), now);
            }
            // A member relies on control distribute; see LUNI 2.0 clause 5.4.
            Role::Distribute => {
                if self.count(Role::Distribute) == 0 {
                    self.fail("control distribute connection lost", now);
                }
            }
            Role::MulticastSend => {
                let asked = !gone.is_open() && gone.info.traffic.is_some();
                let whose = (gone.peer(), Role::MulticastSend);
                if asked && self.contract_refused(whose, cause, now) {
                    return self.call_bus(gone.peer(), now);
                }
                if let Some(member) = self.state.member_mut() {
                    (member.multicast_send, member.refused) = (None, Some(cause));
                }
                self.bus_lost(now);
            }
            Role::MulticastForward => self.forward_lost(now),
            Role::SelectiveSend => self.group_released(&gone, cause, now),
            Role::DataDirect => self.direct_released(conn, &gone, cause, now),
        }
    }

    fn incoming(
        &mut self,
        (conn, traffic): (ConnId, TrafficParams),
        calling: Option<AtmAddress>,
        sap: Sap,
        now: Instant,
    ) {
        let caller = calling.unwrap_or(AtmAddress::ZERO);
        let verdict = match sap {
            Sap::LANE_CONTROL => self.judge_distribute(caller),
            Sap::LANE_MULTICAST_ETHERNET => self.judge_forward(caller),
            Sap::LANE_DATA_ETHERNET => self.judge_direct(caller),
            Sap::LLC if self.multiplexes() => self.judge_direct(caller),
            _ => Verdict::Refuse(Cause::INCOMPATIBLE),
        };
        match verdict {
            Verdict::Accept(role) => {
                let nothing = traffic.category.is_none();
                let nothing = nothing || traffic == TrafficParams::ubr(traffic.max_sdu);
                let link = Link {
                    mux: sap == Sap::LLC,
                    traffic: Some(traffic).filter(|_| !nothing),
                    ready: false,
                };
                self.accept(conn, (caller, role), link, now);
            }
            Verdict::Refuse(cause) => {
                self.counters.calls_refused += 1;
                let text = format!("refused a {sap:?} call of {caller}");
                self.trace(Trace::detail("lane.call-refused", text));
                self.release(conn, cause);
            }
            Verdict::Verify => self.send_verify(conn, caller, now),
        }
    }

    fn accept(&mut self, conn: ConnId, whose: (AtmAddress, Role), link: Link, now: Instant) {
        let accept = self.conns.accept(conn, whose, link, now);
        self.request(accept);
    }

    fn judge_distribute(&self, caller: AtmAddress) -> Verdict {
        if self.state.control_direct().is_none() || caller != self.state.les() {
            return Verdict::Refuse(Cause::REJECTED);
        }
        if self.count(Role::Distribute) >= MAX_SERVER_CALLS {
            return Verdict::Refuse(Cause::RESOURCES);
        }
        Verdict::Accept(Role::Distribute)
    }

    fn judge_forward(&self, caller: AtmAddress) -> Verdict {
        if !self.state.has_bus() {
            return Verdict::Refuse(Cause::REJECTED);
        }
        // One more connection for each registered group.
        let most = MAX_SERVER_CALLS + self.groups.registered();
        if self.count(Role::MulticastForward) >= most {
            return Verdict::Refuse(Cause::RESOURCES);
        }
        if caller == self.state.bus() && !caller.is_zero() {
            return Verdict::Accept(Role::MulticastForward);
        }
        if self.state.v2() && !caller.is_zero() && self.verify.len() < MAX_VERIFY {
            return Verdict::Verify;
        }
        Verdict::Refuse(Cause::REJECTED)
    }

    fn send_verify(&mut self, conn: ConnId, caller: AtmAddress, now: Instant) {
        let mut frame = self.frame(OpCode::VERIFY);
        frame.target_atm = caller;
        self.verify.insert(frame.transaction, (conn, caller));
        let wait = self.params.initial_control_timeout;
        self.timers.start(Timer::Verify, now, wait);
        self.send_control(&frame);
    }

    pub(super) fn verified(&mut self, frame: &ControlFrame, now: Instant) {
        let Some((conn, caller)) = self.verify.remove(&frame.transaction) else {
            self.counters.unasked += 1;
            return;
        };
        if frame.status.0 == 0 && frame.target_atm == caller {
            self.accept(conn, (caller, Role::MulticastForward), Link::default(), now);
        } else {
            self.counters.calls_refused += 1;
            self.release(conn, Cause::REJECTED);
        }
    }

    fn drop_unverified(&mut self) {
        for (conn, _) in core::mem::take(&mut self.verify).into_values() {
            self.counters.calls_refused += 1;
            self.release(conn, Cause::REJECTED);
        }
    }

    /// Opens a connection; the id is known before the answer.
    pub(super) fn call(&mut self, called: AtmAddress, role: Role, now: Instant) -> ConnId {
        self.call_for((called, role), called, false, now)
    }

    /// Opens a connection with `peer`, who is called at `called`.
    pub(super) fn call_for(
        &mut self,
        (peer, role): (AtmAddress, Role),
        called: AtmAddress,
        mux: bool,
        now: Instant,
    ) -> ConnId {
        let (sap, sdu) = match role {
            Role::DataDirect if mux => (Sap::LLC, self.max_sdu().saturating_add(MUX_HEADER)),
            Role::ConfigDirect | Role::ControlDirect | Role::Distribute => {
                (Sap::LANE_CONTROL, CONTROL_SDU)
            }
            Role::MulticastSend | Role::MulticastForward | Role::SelectiveSend => {
                (Sap::LANE_MULTICAST_ETHERNET, self.max_sdu())
            }
            Role::DataDirect => (Sap::LANE_DATA_ETHERNET, self.max_sdu()),
        };
        let (qos, contract) = self.qos_for((peer, role), sdu, now);
        let call = Call {
            calling: self.config.address,
            called,
            sap,
            qos,
        };
        let link = Link {
            mux,
            traffic: contract.then_some(qos.tx),
            ready: false,
        };
        let (conn, connect) = self.conns.dial(call, (peer, role), link, now);
        self.request(connect);
        conn
    }

    /// Releases a connection and forgets it.
    pub(super) fn hang_up(&mut self, conn: ConnId) {
        if self.conns.remove(conn).is_some() {
            self.to_data.push_back(ToData::Close(conn));
            self.release(conn, Cause::NORMAL);
        }
    }
    fn release(&mut self, conn: ConnId, cause: Cause) {
        self.request(AtmRequest::Release { conn, cause });
    }
    pub(super) fn release_all(&mut self) {
        for conn in self.conns.iter().map(|(conn, _)| conn).collect::<Vec<_>>() {
            self.hang_up(conn);
        }
        self.drop_unverified();
    }
    pub(super) fn count(&self, role: Role) -> usize {
        self.conns.count(role)
    }
    pub(super) fn max_sdu(&self) -> u16 {
        self.max_frame.sdu()
    }

    // ---- frames ----

    /// A request with the common fields and a transaction id of its own.
    pub(super) fn frame(&mut self, op: OpCode) -> ControlFrame {
        self.transaction = self.transaction.wrapping_add(1);
        self.frame_again(op, self.transaction)
    }
    /// A frame of this client with the number of an earlier one.
    pub(super) fn frame_again(&self, op: OpCode, transaction: u32) -> ControlFrame {
        let mut frame = ControlFrame::new(op);
        frame.transaction = transaction;
        frame.lecid = self.state.lecid();
        frame.source_atm = self.config.address;
        frame
    }
    pub(super) fn is_local(&self, mac: MacAddr) -> bool {
        self.config.macs().any(|local| local == mac)
    }
    /// The client's TLVs, if this is a v2 ELAN.
    pub(super) fn own_tlvs(&self) -> Vec<Tlv> {
        if !self.state.v2() {
            return Vec::new();
        }
        let mut tlvs = self.config.tlvs.clone();
        tlvs.extend(self.mux_tlv().filter(|_| self.state.elan_id() != 0));
        tlvs
    }
    /// The TLV with the address for LLC-multiplexed calls to this client, if it accepts them.
    pub(super) fn mux_tlv(&self) -> Option<Tlv> {
        let address = self.config.address.0;
        let tlv = || Tlv::new(TlvType::LLC_MUX_ADDRESS, address);
        (self.config.v2 && self.config.llc_mux).then(tlv)
    }
    /// True if data direct connections may be LLC-multiplexed: an ELAN without a number cannot have any.
    pub(super) fn multiplexes(&self) -> bool {
        self.state.v2() && self.config.llc_mux && self.state.elan_id() != 0
    }
    /// Sends a frame to the LES.
    pub(super) fn send_control(&mut self, frame: &ControlFrame) {
        if let Some(conn) = self.state.control_direct() {
            self.send_on(conn, frame.encode());
        }
    }
    pub(super) fn send_on(&mut self, conn: ConnId, sdu: Vec<u8>) {
        let open = self.conns.get(conn).filter(|known| known.is_open());
        if let Some(mux) = open.map(|known| known.info.mux) {
            self.counters.sent += 1;
            let elan_id = self.state.elan_id();
            let sdu = if mux {
                LlcSnap::LnniControl { elan_id }.wrap(&sdu)
            } else {
                sdu
            };
            self.request(AtmRequest::Send { conn, sdu });
        }
    }
    /// Sends a request that is repeated until its response comes (C7i, C7x) or C7 is over.
    pub(super) fn ask(&mut self, conn: ConnId, frame: ControlFrame, now: Instant) {
        self.send_on(conn, frame.encode());
        let total = self.params.control_timeout;
        let rule = RetryRule {
            initial: self.params.initial_control_timeout,
            retry_limit: total,
            give_up: total,
        };
        let factor = self.params.control_backoff.clamp(2, 5);
        let repeats = Repeats::first(rule, factor, now);
        (self.timers).start(Timer::Request, now, repeats.at().since(now));
        self.pending = Some(Pending {
            conn,
            frame,
            repeats,
        });
    }
    fn request_due(&mut self, now: Instant) {
        let Some(pending) = &mut self.pending else {
            return;
        };
        if !pending.repeats.step(now) {
            return self.request_failed("no answer", now);
        }
        let (conn, sdu) = (pending.conn, pending.frame.encode());
        (self.timers).start(Timer::Request, now, pending.repeats.at().since(now));
        self.send_on(conn, sdu);
    }
    pub(super) fn forget_request(&mut self) {
        self.pending = None;
        self.timers.stop(Timer::Request);
    }
    /// Takes the pending request if `frame` answers it.
    pub(super) fn answers(&mut self, frame: &ControlFrame) -> bool {
        let hit = self.pending.as_ref().is_some_and(|pending| {
            pending.frame.op.response() == frame.op
                && pending.frame.transaction == frame.transaction
        });
        if hit {
            self.forget_request();
        }
        hit
    }

    /// A control SDU, on any connection.
    fn sdu(&mut self, conn: ConnId, sdu: &[u8], now: Instant) {
        let Some(role) = self.conns.get(conn).map(Conn::carries) else {
            self.counters.bad += 1;
            return;
        };
        self.counters.received += 1;
        match Pdu::decode(sdu) {
            Ok(Pdu::ReadyQuery) if role == Role::DataDirect => {
                self.send_on(conn, Pdu::ReadyIndication.encode());
            }
            Ok(Pdu::ReadyIndication) if role == Role::DataDirect => self.direct_ready(conn, now),
            Ok(Pdu::Frame(frame)) if frame.version == 1 => self.control(role, &frame, now),
            Ok(_) | Err(_) => self.counters.bad += 1,
        }
    }

    fn control(&mut self, role: Role, frame: &ControlFrame, now: Instant) {
        let from_les = matches!(role, Role::ControlDirect | Role::Distribute);
        match frame.op {
            op if op == OpCode::CONFIGURE.response() && role == Role::ConfigDirect => {
                self.configure_response(frame, now);
            }
            // A flush request comes on the path that it flushes: by the BUS, or on a data direct connection.
            OpCode::FLUSH if !from_les && role != Role::ConfigDirect => self.flush_request(frame),
            _ if !from_les => self.counters.bad += 1,
            op if op == OpCode::JOIN.response() => self.join_response(frame, now),
            op if op == OpCode::REGISTER.response() || op == OpCode::UNREGISTER.response() => {
                self.register_response(frame, now);
            }
            op if op == OpCode::ARP.response() => self.arp_response(frame, now),
            op if op == OpCode::FLUSH.response() => self.flush_response(frame, now),
            op if op == OpCode::VERIFY.response() => self.verified(frame, now),
            OpCode::ARP => self.arp_request(frame, now),
            OpCode::NARP => self.narp(frame, now),
            OpCode::TOPOLOGY => self.topology(frame, now),
            // A frame of this client that the LES copied back; or an unknown frame, which is to be ignored.
            _ => {}
        }
    }

    pub(super) fn request(&mut self, request: AtmRequest) {
        self.out.push_back(FromDaemon::Atm(request));
    }
    pub(super) fn trace(&mut self, trace: Trace) {
        self.out.push_back(FromDaemon::Trace(trace));
    }
    pub(super) fn tell_user(&mut self, news: News) {
        let message = FromLecd::News(news);
        self.out.push_back(FromDaemon::Message(message));
    }
}

/// Decision about an offered call.
pub(super) enum Verdict {
    Accept(Role),
    Refuse(Cause),
    Verify,
}
