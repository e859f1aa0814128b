//! Joining the ELAN: from initial to operational, and back when a connection or a server is lost.
//!
//! Source: LUNI 2.0 clause 5.

use super::control::{Control, MUX_HEADER, Role, Timer};
use super::devices::is_server;
use super::messages::ToData;
use super::{LecState, Output};
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
        if self.state != LecState::Stopped {
            return;
        }
        // Listen first: a LES may call back before it answers the join.
        let data = self.config.max_frame.octets().unwrap_or(18190);
        if self.config.llc_mux {
            let address = self.config.address;
            self.request(AtmRequest::Listen {
                address,
                sap: Sap::LLC,
                max_sdu: data.saturating_add(MUX_HEADER),
            });
        }
        for (sap, max_sdu) in [
            (Sap::LANE_CONTROL, CONTROL_SDU),
            (Sap::LANE_MULTICAST_ETHERNET, data),
            (Sap::LANE_DATA_ETHERNET, data),
        ] {
            let address = self.config.address;
            self.request(AtmRequest::Listen {
                address,
                sap,
                max_sdu,
            });
        }
        self.groups.start();
        self.begin(now);
    }

    pub(super) fn stop(&mut self) {
        if self.state == LecState::Stopped {
            return;
        }
        self.leave();
        self.timers.stop_all();
        self.state = LecState::Stopped;
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
        self.lecs_index = 0;
        self.bus_tries = 0;
        self.refused = None;
        match (self.config.lecs, self.config.les) {
            (None, Some(les)) => self.call_les(les, now),
            _ => self.call_lecs(now),
        }
    }

    // ---- lecsConnect, configure ----

    fn lecs_addresses(&self) -> Vec<AtmAddress> {
        let by_hand = self.config.lecs;
        let well_known = [AtmAddress::LECS_ANYCAST, AtmAddress::LECS];
        let others = well_known.into_iter().filter(|a| Some(*a) != by_hand);
        by_hand.into_iter().chain(others).collect()
    }

    fn call_lecs(&mut self, now: Instant) {
        self.state = LecState::LecsConnect;
        match self.lecs_addresses().get(self.lecs_index) {
            Some(&address) => {
                let text = format!("calling the LECS at {address}");
                self.trace(Trace::detail("lane.lecs-call", text));
                self.config_direct = Some(self.call(address, Role::ConfigDirect, now));
            }
            None => match self.config.les {
                Some(les) => self.call_les(les, now),
                None => self.fail(&self.because("no LECS answers"), now),
            },
        }
    }

    fn next_lecs(&mut self, now: Instant) {
        if let Some(conn) = self.config_direct.take() {
            self.hang_up(conn);
        }
        self.forget_request();
        self.lecs_index += 1;
        self.call_lecs(now);
    }

    pub(super) fn send_configure(&mut self, conn: ConnId, now: Instant) {
        self.state = LecState::Configure;
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
        if self.state != LecState::Configure || !self.answers(frame) {
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
        self.lecs_tlvs = frame.tlvs.list.clone();
        self.params.apply(&frame.tlvs.list);
        if let Some(conn) = self.config_direct.take() {
            self.hang_up(conn);
        }
        let text = format!("the LECS assigns ELAN {}", self.elan);
        let trace = Trace::detail("lane.configured", text);
        self.trace(trace.with("elan", self.elan).with("les", frame.target_atm));
        self.call_les(frame.target_atm, now);
    }

    // ---- join ----

    fn call_les(&mut self, les: AtmAddress, now: Instant) {
        self.state = LecState::Join;
        self.les = les;
        self.control_direct = Some(self.call(les, Role::ControlDirect, now));
    }

    pub(super) fn send_join(&mut self, conn: ConnId, now: Instant) {
        let mut frame = self.frame(OpCode::JOIN);
        frame.lecid = 0;
        frame.source = LanDestination::mac(self.config.mac);
        self.describe(&mut frame);
        frame.tlvs.list.extend(self.mux_tlv());
        self.told.clone_from(&frame.tlvs.list);
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
        if self.state != LecState::Join || !self.answers(frame) {
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
        self.lecid = frame.lecid;
        self.v2 = self.config.v2 && frame.flags.contains(Flags::V2_REQUIRED);
        if octets.is_some() {
            self.max_frame = frame.max_frame;
        }
        if !frame.elan.is_empty() {
            self.elan = frame.elan;
        }
        let id = frame.tlvs.get(TlvType::ELAN_ID).and_then(Tlv::number);
        self.elan_id = id.filter(|_| self.v2).unwrap_or(0);
        self.to_data.push_back(ToData::Joined {
            lecid: self.lecid,
            max_sdu: self.max_sdu(),
        });
        self.to_data.push_back(ToData::Quota {
            count: self.params.max_unknown_count,
            time: self.params.max_unknown_time,
        });
        self.state = LecState::InitialRegistration;
        // The first MAC address was registered by the join.
        self.to_register = self.config.more_macs.iter().copied().collect();
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
        if self.v2 && self.state == LecState::Operational {
            self.announce(now);
        }
    }

    pub(super) fn announce(&mut self, now: Instant) {
        self.to_register = self.config.macs().collect();
        self.announced = 0;
        self.tell_tlvs(now);
        self.register_next(now);
    }

    /// The client is a member of the ELAN. The LES has the TLVs from the join and sends them on request. All members
    /// hear an announcement, so it is made in two cases only: for a server, which its clients must know before they
    /// ask, and where the LES does not keep TLVs.
    fn introduce(&mut self, now: Instant) {
        let own = self.own_tlvs();
        if self.v2 && !own.is_empty() && self.unasked() {
            self.announce(now);
        } else if self.v2 && own != self.told {
            self.to_register = self.config.macs().collect();
            self.register_next(now);
        } else if self.pending.is_none() {
            self.register_next(now);
        }
    }

    /// True if other members must learn the client's TLVs without asking for them.
    fn unasked(&self) -> bool {
        self.les_forgets || self.was_server || is_server(&self.config.tlvs)
    }

    /// A targetless LE_ARP is not answered; for clients that missed it, or had not joined yet, it is repeated.
    pub(super) fn announce_again(&mut self, now: Instant) {
        if self.v2 && self.state == LecState::Operational {
            self.announced += 1;
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
        if self.announced < most {
            let wait = Duration::from_secs(1 << self.announced);
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
        let Some(conn) = self.control_direct else {
            return;
        };
        match self.to_register.pop_front() {
            Some(mac) => {
                let mut frame = self.frame(OpCode::REGISTER);
                frame.source = LanDestination::mac(mac);
                frame.tlvs = self.own_tlvs().into();
                self.ask(conn, frame, now);
            }
            None if self.register_group(conn, now) => {}
            None if self.state == LecState::InitialRegistration => self.connect_bus(now),
            None => {}
        }
    }

    pub(super) fn register_response(&mut self, frame: &ControlFrame, now: Instant) {
        if frame.lecid != self.lecid {
            return;
        }
        let group = self.pending_group();
        if !self.answers(frame) {
            self.counters.unasked += 1;
        } else if let Some(group) = group {
            self.group_answered(group, frame, now);
        } else if frame.status != Status::SUCCESS
            && (self.state != LecState::Operational || frame.status == Status::REQUESTER)
        {
            let why = format!("registration refused: {}", frame.status);
            self.fail(&why, now);
        } else {
            // If its TLVs are refused, the client is known without them.
            self.les_forgets |= frame.tlvs.missing > 0;
            self.register_next(now);
            if self.state == LecState::Operational && self.pending.is_none() {
                self.told = self.own_tlvs();
            }
        }
    }

    // ---- busConnect ----

    /// Asks for the BUS, then calls it.
    pub(super) fn connect_bus(&mut self, now: Instant) {
        self.state = LecState::BusConnect;
        let Some(conn) = self.control_direct else {
            return;
        };
        let mut frame = self.frame(OpCode::ARP);
        frame.source = LanDestination::mac(self.config.mac);
        frame.target = LanDestination::mac(MacAddr::BROADCAST);
        frame.tlvs = self.own_tlvs().into();
        self.ask(conn, frame, now);
    }

    /// The answer to LE_ARP for the broadcast address.
    pub(super) fn bus_found(&mut self, frame: &ControlFrame, now: Instant) {
        if self.state != LecState::BusConnect || !self.answers(frame) {
            self.counters.unasked += 1;
            return;
        }
        if frame.status != Status::SUCCESS || frame.target_atm.is_zero() {
            return self.bus_lost(now);
        }
        self.les_forgets |= frame.tlvs.missing > 0;
        self.bus = frame.target_atm;
        self.multicast_send = Some(self.call(self.bus, Role::MulticastSend, now));
        let wait = self.params.control_timeout;
        self.timers.start(Timer::Forward, now, wait);
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
        self.bus_tries = 0;
        self.state = LecState::Operational;
        if self.joined {
            // Only the BUS was lost; a pending registration may have been abandoned for the search.
            return self.introduce(now);
        }
        self.joined = true;
        self.backoff.reset();
        self.to_register.clear();
        self.counters.joins += 1;
        self.out.push_back(Output::Joined {
            lecid: self.lecid,
            elan: self.elan,
            max_frame: self.max_frame,
            elan_id: self.elan_id,
            tlvs: self.lecs_tlvs.clone(),
        });
        let version = if self.v2 { 2 } else { 1 };
        let text = format!("joined ELAN {} as LECID {}", self.elan, self.lecid);
        let trace = Trace::milestone("lane.joined", text);
        let trace = trace.with("elan", self.elan).with("lecid", self.lecid);
        self.trace(trace.with("version", version).with("bus", self.bus));
        self.introduce(now);
    }

    /// The multicast send connection is gone, refused, or no multicast forward connection came.
    pub(super) fn bus_lost(&mut self, now: Instant) {
        if !matches!(self.state, LecState::BusConnect | LecState::Operational) {
            return;
        }
        self.timers.stop(Timer::Forward);
        if let Some(conn) = self.multicast_send.take() {
            self.hang_up(conn);
        }
        if self.bus_tries >= self.params.max_bus_retries {
            return self.fail(&self.because("no connection with the BUS"), now);
        }
        self.bus_tries += 1;
        self.trace(Trace::detail("lane.bus-lost", "looking for the BUS again"));
        self.connect_bus(now);
    }

    /// A multicast forward connection is gone: another one may come within C33.
    pub(super) fn forward_lost(&mut self, now: Instant) {
        let rest = self.count(Role::MulticastForward);
        if self.state == LecState::Operational && rest == 0 {
            let wait = self.params.forward_disconnect;
            self.timers.start(Timer::Forward, now, wait);
        }
    }

    // ---- failure ----

    /// C7 is over without an answer, or the connection of the request is gone.
    pub(super) fn request_failed(&mut self, why: &str, now: Instant) {
        let group = self.pending_group().is_some();
        self.forget_request();
        match self.state {
            // Without its registration, a client that chose groups gets no frames of this group.
            LecState::Operational if group => self.fail(why, now),
            LecState::LecsConnect | LecState::Configure => self.next_lecs(now),
            LecState::BusConnect => self.bus_lost(now),
            // An unanswered registration of TLVs has no effect but missing TLVs.
            LecState::Operational | LecState::Stopped | LecState::Initial => {}
            LecState::Join | LecState::InitialRegistration => self.fail(why, now),
        }
    }

    /// `what`, with the cause of the last refused call.
    fn because(&self, what: &str) -> String {
        self.refused
            .map_or_else(|| what.to_owned(), |cause| format!("{what}: {cause}"))
    }

    /// Back to the initial state; the client starts over after a time between C37 and C38, which is short at first.
    pub(super) fn fail(&mut self, why: &str, now: Instant) {
        self.fail_with(why, None, now);
    }

    /// The same, after a call that was released with `cause`, or after a refusal by a server (cause 21).
    pub(super) fn fail_with(&mut self, why: &str, cause: Option<Cause>, now: Instant) {
        if matches!(self.state, LecState::Stopped | LecState::Initial) {
            return;
        }
        let name = if self.joined {
            "lane.lost"
        } else {
            "lane.failed"
        };
        let text = format!("leaves {} for initial: {why}", self.state);
        let milestone = self.joined;
        self.leave();
        self.state = LecState::Initial;
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

    /// Releases everything and forgets what was learned.
    fn leave(&mut self) {
        self.forget_request();
        self.timers.stop_all();
        // First of all: no waiting frame may be sent on a connection that is being released.
        self.to_data.push_back(ToData::Reset);
        self.clear_cache();
        self.plain.clear();
        self.refusals.clear();
        self.release_all();
        (self.lecid, self.v2, self.elan_id) = (0, false, 0);
        (self.les, self.bus) = (AtmAddress::ZERO, AtmAddress::ZERO);
        self.set_topology(false);
        self.lecs_tlvs.clear();
        self.told.clear();
        self.les_forgets = false;
        self.groups.forget();
        if core::mem::take(&mut self.joined) {
            self.counters.losses += 1;
            self.out.push_back(Output::Left);
        }
    }
}
