//! Joining the ELAN: from initial to operational, and back when a connection or a server is lost.
//!
//! Source: LUNI 2.0 clause 5.

use super::control::{Control, MUX_HEADER, Role, Timer};
use super::devices::is_server;
use super::messages::ToData;
use super::state::{Configuring, Joining, Member, Phase, State};
use super::{LecState, News};
use crate::{AtmRequest, Cause, ConnId, Duration, Instant, Trace};
use aerostat_wire::lane::{
    CONTROL_SDU, ControlFrame, Flags, LanDestination, LanType, MaxFrameSize, OpCode, Status, Tlv,
    TlvType,
};
use aerostat_wire::{AtmAddress, MacAddr, Sap};

/// How often new TLVs of a server are announced again, from one second on, with doubled waits: for longer than
/// signalling takes to notice a dead line. All clients behind that line join again.
const ANNOUNCEMENTS: u32 = 4;
/// The same for a client. All members hear an announcement, so its cost grows with the number of members; a member that
/// wants the TLVs asks the LES.
const ANNOUNCEMENTS_OF_A_CLIENT: u32 = 1;

impl Control {
    pub(super) fn start(&mut self, now: Instant) {
        if !matches!(self.state, State::Stopped) {
            return;
        }
        // Listen first: a LES may call back before it answers the join.
        let data = self.config.max_frame.octets().unwrap_or(18190);
        if self.config.llc_mux {
            let address = self.config.address;
            self.request(AtmRequest::listen(
                address,
                Sap::LLC,
                data.saturating_add(MUX_HEADER),
            ));
        }
        for (sap, max_sdu) in [
            (Sap::LANE_CONTROL, CONTROL_SDU),
            (Sap::LANE_MULTICAST_ETHERNET, data),
            (Sap::LANE_DATA_ETHERNET, data),
        ] {
            let address = self.config.address;
            self.request(AtmRequest::listen(address, sap, max_sdu));
        }
        self.groups.start();
        self.begin(now);
    }

    pub(super) fn stop(&mut self) {
        if matches!(self.state, State::Stopped) {
            return;
        }
        self.leave(State::Stopped);
        let address = self.config.address;
        let mux = self.config.llc_mux.then_some(Sap::LLC);
        let saps = [
            Sap::LANE_CONTROL,
            Sap::LANE_MULTICAST_ETHERNET,
            Sap::LANE_DATA_ETHERNET,
        ];
        for sap in saps.into_iter().chain(mux) {
            self.request(AtmRequest::Unlisten { address, sap });
        }
    }

    /// Leaves the initial state.
    pub(super) fn begin(&mut self, now: Instant) {
        self.params = self.config.params.clone();
        self.elan = self.config.elan;
        self.lan_type = self.config.lan_type;
        self.max_frame = self.config.max_frame;
        match (self.config.lecs, self.config.les) {
            (None, Some(les)) => self.call_les(les, Vec::new(), now),
            _ => self.call_lecs(0, None, now),
        }
    }

    // ---- lecsConnect, configure ----

    fn lecs_addresses(&self) -> Vec<AtmAddress> {
        let by_hand = self.config.lecs;
        let well_known = [AtmAddress::LECS_ANYCAST, AtmAddress::LECS];
        let others = well_known.into_iter().filter(|a| Some(*a) != by_hand);
        by_hand.into_iter().chain(others).collect()
    }

    /// Calls LECS address number `lecs`; `refused` is the cause of the last call to an address before.
    fn call_lecs(&mut self, lecs: usize, refused: Option<Cause>, now: Instant) {
        match self.lecs_addresses().get(lecs) {
            Some(&address) => {
                let text = format!("calling the LECS at {address}");
                self.trace(Trace::detail("lane.lecs-call", text));
                let config_direct = self.call(address, Role::ConfigDirect, now);
                self.state = State::Configuring(Configuring {
                    lecs,
                    config_direct,
                    asked: false,
                    refused,
                });
            }
            None => match self.config.les {
                Some(les) => self.call_les(les, Vec::new(), now),
                None => self.fail(&because("no LECS answers", refused), now),
            },
        }
    }

    fn next_lecs(&mut self, now: Instant) {
        let State::Configuring(configuring) = &mut self.state else {
            return;
        };
        configuring.asked = false;
        let (lecs, refused) = (configuring.lecs + 1, configuring.refused);
        let conn = configuring.config_direct;
        self.hang_up(conn);
        self.forget_request();
        self.call_lecs(lecs, refused, now);
    }

    pub(super) fn send_configure(&mut self, conn: ConnId, now: Instant) {
        if let State::Configuring(configuring) = &mut self.state {
            configuring.asked = true;
        }
        let mut frame = self.frame(OpCode::CONFIGURE);
        frame.lecid = 0;
        frame.source = LanDestination::mac(self.config.mac);
        self.describe(&mut frame);
        self.ask(conn, frame, now);
    }

    /// Fills in what CONFIGURE and JOIN requests tell about this client.
    fn describe(&self, frame: &mut ControlFrame) {
        frame.lan_type = self.lan_type;
        frame.max_frame = self.max_frame;
        frame.elan = self.elan;
        if self.config.v2 {
            frame.flags = frame.flags.with(Flags::V2_CAPABLE);
            frame.tlvs = self.config.tlvs.clone().into();
        }
    }

    pub(super) fn configure_response(&mut self, frame: &ControlFrame, now: Instant) {
        let conn = match &self.state {
            State::Configuring(configuring) if configuring.asked => configuring.config_direct,
            _ => {
                self.counters.unasked += 1;
                return;
            }
        };
        if !self.answers(frame) {
            self.counters.unasked += 1;
            return;
        }
        if frame.status != Status::SUCCESS {
            let why = format!("the LECS refuses: {}", frame.status);
            return self.fail_with(&why, Some(Cause::REJECTED), now);
        }
        let ethernet = matches!(frame.lan_type, LanType::UNSPECIFIED | LanType::ETHERNET);
        if frame.target_atm.is_zero() || !ethernet {
            return self.fail("the LECS gives no LES of an Ethernet ELAN", now);
        }
        self.lan_type = frame.lan_type;
        self.max_frame = frame.max_frame;
        self.elan = frame.elan;
        self.params.apply(&frame.tlvs.list);
        self.hang_up(conn);
        let text = format!("the LECS assigns ELAN {}", self.elan);
        let trace = Trace::detail("lane.configured", text);
        self.trace(trace.with("elan", self.elan).with("les", frame.target_atm));
        self.call_les(frame.target_atm, frame.tlvs.list.clone(), now);
    }

    // ---- join ----

    fn call_les(&mut self, les: AtmAddress, lecs_tlvs: Vec<Tlv>, now: Instant) {
        let control_direct = self.call(les, Role::ControlDirect, now);
        self.state = State::Joining(Joining {
            les,
            control_direct,
            lecs_tlvs,
            told: Vec::new(),
        });
    }

    pub(super) fn send_join(&mut self, conn: ConnId, now: Instant) {
        let mut frame = self.frame(OpCode::JOIN);
        frame.lecid = 0;
        frame.source = LanDestination::mac(self.config.mac);
        self.describe(&mut frame);
        frame.tlvs.list.extend(self.mux_tlv());
        if let State::Joining(joining) = &mut self.state {
            joining.told.clone_from(&frame.tlvs.list);
        }
        if self.config.proxy {
            frame.flags = frame.flags.with(Flags::PROXY);
        }
        if self.wants_selective() {
            frame.flags = frame.flags.with(Flags::SELECTIVE_MULTICAST);
        }
        self.ask(conn, frame, now);
    }

    pub(super) fn join_response(&mut self, frame: &ControlFrame, now: Instant) {
        // On control distribute, all clients see the responses to all clients.
        if frame.source_atm != self.config.address {
            return;
        }
        if !matches!(self.state, State::Joining(_)) || !self.answers(frame) {
            self.counters.unasked += 1;
            return;
        }
        if frame.status != Status::SUCCESS {
            let why = format!("the LES refuses: {}", frame.status);
            return self.fail_with(&why, Some(Cause::REJECTED), now);
        }
        let octets = frame.max_frame.octets();
        if !(1..=0xfeff).contains(&frame.lecid)
            || (octets.is_none() && frame.max_frame != MaxFrameSize::UNSPECIFIED)
            || frame.lan_type == LanType::TOKEN_RING
        {
            return self.fail("the answer of the LES makes no sense", now);
        }
        let v2 = self.config.v2 && frame.flags.contains(Flags::V2_REQUIRED);
        if octets.is_some() {
            self.max_frame = frame.max_frame;
        }
        if !frame.elan.is_empty() {
            self.elan = frame.elan;
        }
        let id = frame.tlvs.get(TlvType::ELAN_ID).and_then(Tlv::number);
        let elan_id = id.filter(|_| v2).unwrap_or(0);
        self.state = match core::mem::replace(&mut self.state, State::Stopped) {
            State::Joining(joining) => {
                let mut member = Member::admitted(joining, frame.lecid, v2, elan_id);
                // The first MAC address was registered by the join.
                member.to_register = self.config.more_macs.iter().copied().collect();
                State::Member(Box::new(member))
            }
            other => other,
        };
        self.to_data.push_back(ToData::Joined {
            lecid: frame.lecid,
            max_sdu: self.max_sdu(),
        });
        self.to_data.push_back(ToData::Quota {
            count: self.params.max_unknown_count,
            time: self.params.max_unknown_time,
        });
        self.register_next(now);
    }

    // ---- registration ----

    /// New TLVs are registered with the client's own MAC address, then announced.
    pub(super) fn set_tlvs(&mut self, tlvs: Vec<Tlv>, now: Instant) {
        if self.config.tlvs == tlvs {
            return;
        }
        let before = core::mem::replace(&mut self.config.tlvs, tlvs);
        self.was_server = is_server(&before);
        if self.state.v2() && self.state.is_operational() {
            self.announce(now);
        }
    }

    pub(super) fn announce(&mut self, now: Instant) {
        self.register_again();
        if let Some(member) = self.state.member_mut() {
            member.announced = 0;
        }
        self.tell_tlvs(now);
        self.register_next(now);
    }

    /// All local addresses are to be registered, with the TLVs of today.
    fn register_again(&mut self) {
        if let Some(member) = self.state.member_mut() {
            member.to_register = self.config.macs().collect();
        }
    }

    /// The client is a member of the ELAN. The LES has the TLVs from the join and sends them on request. All members
    /// hear an announcement, so it is made in two cases only: for a server, which its clients must know before they
    /// ask, and where the LES does not keep TLVs.
    fn introduce(&mut self, now: Instant) {
        let own = self.own_tlvs();
        let v2 = self.state.v2();
        let told = self.state.member().is_some_and(|member| member.told == own);
        if v2 && !own.is_empty() && self.unasked() {
            self.announce(now);
        } else if v2 && !told {
            self.register_again();
            self.register_next(now);
        } else if self.pending.is_none() {
            self.register_next(now);
        }
    }

    /// True if other members must learn the client's TLVs without asking for them.
    fn unasked(&self) -> bool {
        let member = self.state.member();
        let forgets = member.is_some_and(|member| member.les_forgets);
        forgets || self.was_server || is_server(&self.config.tlvs)
    }

    /// A targetless LE_ARP is not answered; for clients that missed it, or had not joined yet, it is repeated.
    pub(super) fn announce_again(&mut self, now: Instant) {
        if let Some(member) = self.state.member_mut()
            && member.v2
            && member.phase == Phase::Operational
        {
            member.announced += 1;
            self.tell_tlvs(now);
        }
    }

    fn tell_tlvs(&mut self, now: Instant) {
        for mac in self.config.macs().collect::<Vec<_>>() {
            let mut frame = self.frame(OpCode::ARP);
            frame.source = LanDestination::mac(mac);
            frame.tlvs = self.own_tlvs().into();
            self.send_control(&frame);
        }
        // A member that knows a destination behind this proxy keeps the TLVs of the owner with it.
        for mac in self.remote.clone() {
            self.claim(mac);
        }
        let most = if self.unasked() {
            ANNOUNCEMENTS
        } else {
            ANNOUNCEMENTS_OF_A_CLIENT
        };
        let announced = self.state.member().map_or(most, |member| member.announced);
        if announced < most {
            let wait = Duration::from_secs(1 << announced);
            self.timers.start(Timer::Announce, now, wait);
        }
    }

    /// A targetless LE_ARP for a destination behind this proxy.
    pub(super) fn claim(&mut self, mac: MacAddr) {
        let mut frame = self.frame(OpCode::ARP);
        frame.source = LanDestination::mac(mac);
        frame.flags = Flags::REMOTE;
        frame.tlvs = self.own_tlvs().into();
        self.send_control(&frame);
    }

    /// Registers the remaining addresses, one after the other; then the client connects to the BUS.
    pub(super) fn register_next(&mut self, now: Instant) {
        let Some(member) = self.state.member_mut() else {
            return;
        };
        let (conn, phase) = (member.control_direct, member.phase);
        match member.to_register.pop_front() {
            Some(mac) => {
                let mut frame = self.frame(OpCode::REGISTER);
                frame.source = LanDestination::mac(mac);
                frame.tlvs = self.own_tlvs().into();
                self.ask(conn, frame, now);
            }
            None if self.register_group(conn, now) => {}
            None if phase == Phase::InitialRegistration => self.connect_bus(now),
            None => {}
        }
    }

    pub(super) fn register_response(&mut self, frame: &ControlFrame, now: Instant) {
        if frame.lecid != self.state.lecid() {
            return;
        }
        let group = self.pending_group();
        if !self.answers(frame) {
            self.counters.unasked += 1;
        } else if let Some(group) = group {
            self.group_answered(group, frame, now);
        } else if frame.status != Status::SUCCESS
            && (!self.state.is_operational() || frame.status == Status::REQUESTER)
        {
            let why = format!("registration refused: {}", frame.status);
            self.fail(&why, now);
        } else {
            // If its TLVs are refused, the client is known without them.
            self.note_missing(frame);
            self.register_next(now);
            let own = self.own_tlvs();
            if let Some(member) = self.state.member_mut()
                && member.phase == Phase::Operational
                && self.pending.is_none()
            {
                member.told = own;
            }
        }
    }

    /// Notes whether an answer of the LES lacks TLVs.
    fn note_missing(&mut self, frame: &ControlFrame) {
        if let Some(member) = self.state.member_mut() {
            member.les_forgets |= frame.tlvs.missing > 0;
        }
    }

    // ---- busConnect ----

    /// Asks for the BUS, then calls it.
    pub(super) fn connect_bus(&mut self, now: Instant) {
        let Some(member) = self.state.member_mut() else {
            return;
        };
        member.phase = Phase::BusConnect;
        let conn = member.control_direct;
        let mut frame = self.frame(OpCode::ARP);
        frame.source = LanDestination::mac(self.config.mac);
        frame.target = LanDestination::mac(MacAddr::BROADCAST);
        frame.tlvs = self.own_tlvs().into();
        self.ask(conn, frame, now);
    }

    /// The answer to LE_ARP for the broadcast address.
    pub(super) fn bus_found(&mut self, frame: &ControlFrame, now: Instant) {
        if self.state.name() != LecState::BusConnect || !self.answers(frame) {
            self.counters.unasked += 1;
            return;
        }
        if frame.status != Status::SUCCESS || frame.target_atm.is_zero() {
            return self.bus_lost(now);
        }
        self.note_missing(frame);
        self.call_bus(frame.target_atm, now);
        let wait = self.params.control_timeout;
        self.timers.start(Timer::Forward, now, wait);
    }

    pub(super) fn call_bus(&mut self, bus: AtmAddress, now: Instant) {
        let send = self.call(bus, Role::MulticastSend, now);
        if let Some(member) = self.state.member_mut() {
            (member.bus, member.multicast_send) = (bus, Some(send));
        }
    }

    /// A multicast connection came up.
    pub(super) fn bus_progress(&mut self, now: Instant) {
        let up = |role| {
            let mut conns = self.conns.iter();
            conns.any(|(_, conn)| conn.carries() == role && conn.is_open())
        };
        if !up(Role::MulticastSend) || !up(Role::MulticastForward) {
            return;
        }
        self.timers.stop(Timer::Forward);
        let Some(member) = self.state.member_mut() else {
            return;
        };
        (member.bus_tries, member.phase) = (0, Phase::Operational);
        if core::mem::replace(&mut member.joined, true) {
            // Only the BUS was lost; a pending registration may have been abandoned for the search.
            return self.introduce(now);
        }
        self.backoff.reset();
        member.to_register.clear();
        self.counters.joins += 1;
        let lecid = member.lecid;
        let joined = News::Joined {
            lecid,
            elan: self.elan,
            max_frame: self.max_frame,
            elan_id: member.elan_id,
            tlvs: member.lecs_tlvs.clone(),
        };
        let version = if member.v2 { 2 } else { 1 };
        let text = format!("joined ELAN {} as LECID {lecid}", self.elan);
        let trace = Trace::milestone("lane.joined", text);
        let trace = trace.with("elan", self.elan).with("lecid", lecid);
        let trace = trace.with("version", version).with("bus", member.bus);
        self.tell_user(joined);
        self.trace(trace);
        self.introduce(now);
    }

    /// The multicast send connection is gone, refused, or no multicast forward connection came.
    pub(super) fn bus_lost(&mut self, now: Instant) {
        if !self.state.has_bus() {
            return;
        }
        let Some(member) = self.state.member_mut() else {
            return;
        };
        self.timers.stop(Timer::Forward);
        let (send, refused) = (member.multicast_send.take(), member.refused);
        let last = member.bus_tries >= self.params.max_bus_retries;
        member.bus_tries += u32::from(!last);
        if let Some(conn) = send {
            self.hang_up(conn);
        }
        if last {
            return self.fail(&because("no connection with the BUS", refused), now);
        }
        self.trace(Trace::detail("lane.bus-lost", "looking for the BUS again"));
        self.connect_bus(now);
    }

    /// A multicast forward connection is gone: another one may come within C33.
    pub(super) fn forward_lost(&mut self, now: Instant) {
        let rest = self.count(Role::MulticastForward);
        if self.state.is_operational() && rest == 0 {
            let wait = self.params.forward_disconnect;
            self.timers.start(Timer::Forward, now, wait);
        }
    }

    // ---- failure ----

    /// C7 is over without an answer, or the connection of the request is gone.
    pub(super) fn request_failed(&mut self, why: &str, now: Instant) {
        let group = self.pending_group().is_some();
        self.forget_request();
        match self.state.name() {
            // Without its registration, a client that chose groups gets no frames of this group.
            LecState::Operational if group => self.fail(why, now),
            LecState::LecsConnect | LecState::Configure => self.next_lecs(now),
            LecState::BusConnect => self.bus_lost(now),
            // An unanswered registration of TLVs costs only the TLVs.
            LecState::Operational | LecState::Stopped | LecState::Initial => {}
            LecState::Join | LecState::InitialRegistration => self.fail(why, now),
        }
    }

    /// Back to the initial state; the client starts over after a time between C37 and C38, which is short at first.
    pub(super) fn fail(&mut self, why: &str, now: Instant) {
        self.fail_with(why, None, now);
    }

    /// The same, after a call that was released with `cause`, or after a refusal by a server (cause 21).
    pub(super) fn fail_with(&mut self, why: &str, cause: Option<Cause>, now: Instant) {
        if matches!(self.state, State::Stopped | State::Initial) {
            return;
        }
        let milestone = self.state.member().is_some_and(|member| member.joined);
        let name = if milestone {
            "lane.lost"
        } else {
            "lane.failed"
        };
        let text = format!("leaves {} for initial: {why}", self.state.name());
        self.leave(State::Initial);
        let (least, most) = (
            self.params.min_reconfigure_delay,
            self.params.max_reconfigure_delay,
        );
        let delay = self.backoff.wait(cause, least, most.max(least));
        self.timers.start(Timer::Restart, now, delay);
        let trace = Trace::detail(name, text).with("why", why);
        let trace = trace.with("delay_ms", delay.as_millis());
        self.trace(Trace { milestone, ..trace });
    }

    /// Releases everything and forgets what was learned; `next` is the state from now on.
    fn leave(&mut self, next: State) {
        self.forget_request();
        self.timers.stop_all();
        // First of all: no waiting frame may be sent on a connection that is being released.
        self.to_data.push_back(ToData::Reset);
        self.clear_cache();
        self.plain.clear();
        self.best_effort.clear();
        self.refusals.clear();
        self.release_all();
        let before = core::mem::replace(&mut self.state, next);
        self.set_topology(false);
        self.groups.forget();
        if before.member().is_some_and(|member| member.joined) {
            self.counters.losses += 1;
            self.tell_user(News::Left);
        }
    }
}

/// `what`, with the cause of the last refused call.
fn because(what: &str, refused: Option<Cause>) -> String {
    refused.map_or_else(|| what.to_owned(), |cause| format!("{what}: {cause}"))
}
