//! Users' requests about calls, and the interface's reports about them.

use std::collections::BTreeMap;

use aerostat_proto::uni::{CallId, ConnectInfo, Indication, Reason, Request, SetupInfo};
use aerostat_proto::{AtmEvent, Cause, ConnId, Instant, PartyId, Refused, Trace};
use aerostat_wire::q2931::{Ie, convert, id, ie};
use aerostat_wire::{AtmAddress, Blli, Qos, Sap, Vc};

use super::{Call, Output, Party, Phase, Signalling, UserId};

const UNKNOWN: Refused = Refused("unknown connection");
const WRONG_STATE: Refused = Refused("the connection is not in a state for this");
/// Service or option not available, unspecified. Source: Q.850.
const NOT_AVAILABLE: Cause = Cause(63);
/// Party of the SETUP of a point-to-multipoint call.
const FIRST_PARTY: PartyId = PartyId(0);

impl Signalling {
    fn find(&self, user: UserId, conn: ConnId) -> Result<CallId, Refused> {
        self.conns.get(&(user, conn)).copied().ok_or(UNKNOWN)
    }
    /// The call of a user's id.
    fn call(&mut self, user: UserId, conn: ConnId) -> Result<(CallId, &mut Call), Refused> {
        let id = self.find(user, conn)?;
        let call = self.calls.get_mut(&id).ok_or(UNKNOWN)?;
        Ok((id, call))
    }
    fn calls_of(&self, user: UserId) -> usize {
        let range = (user, ConnId(0))..=(user, ConnId(u32::MAX));
        self.conns.range(range).count()
    }
    /// An id below [`CallId::INCOMING`] that no call has.
    fn new_call_id(&mut self) -> CallId {
        loop {
            let id = CallId(self.next_call);
            self.next_call = (self.next_call + 1) % CallId::INCOMING;
            if !self.calls.contains_key(&id) {
                return id;
            }
        }
    }
    /// An id from [`ConnId::INCOMING`] upwards that the user does not know.
    fn new_conn_id(&mut self, user: UserId) -> ConnId {
        loop {
            let conn = ConnId(ConnId::INCOMING | self.next_conn);
            self.next_conn = (self.next_conn + 1) % ConnId::INCOMING;
            if !self.conns.contains_key(&(user, conn)) {
                return conn;
            }
        }
    }

    pub(super) fn connect(
        &mut self,
        user: UserId,
        conn: ConnId,
        info: SetupInfo,
        now: Instant,
    ) -> Result<(), Refused> {
        if conn.0 >= ConnId::INCOMING {
            return Err(Refused("this id is reserved for calls received"));
        }
        if self.conns.contains_key(&(user, conn)) {
            return Err(Refused("this id is in use"));
        }
        if self.calls_of(user) >= self.config.limits.calls_per_user {
            // The user waits for the end of this call, so it is told.
            let cause = Cause::RESOURCES;
            self.event(user, AtmEvent::Released { conn, cause });
            return Err(Refused("too many calls of this user"));
        }
        let id = self.new_call_id();
        self.counters.outgoing += 1;
        self.conns.insert((user, conn), id);
        let first = info.multipoint.then_some((FIRST_PARTY, Party::Adding));
        let call = Call {
            owner: Some((user, conn)),
            phase: Phase::Waiting,
            info,
            outgoing: true,
            permanent: false,
            vc: None,
            open: false,
            parties: BTreeMap::from_iter(first),
        };
        self.calls.insert(id, call);
        if self.is_up() {
            self.set_up(id, now);
        } else {
            self.waiting.push_back((now + self.config.wait, id));
        }
        Ok(())
    }

    /// Takes a permanent connection into use.
    pub(super) fn open_permanent(
        &mut self,
        user: UserId,
        conn: ConnId,
        vc: Vc,
        qos: Qos,
    ) -> Result<(), Refused> {
        if conn.0 >= ConnId::INCOMING || self.conns.contains_key(&(user, conn)) {
            return Err(Refused("this id is in use, or reserved for calls received"));
        }
        let reserved = vc.vpi == 0 && vc.vci < Vc::FIRST_USER_VCI;
        let full = self.calls_of(user) >= self.config.limits.calls_per_user;
        if reserved || full || self.labels.contains_key(&vc) {
            let cause = if full {
                Cause::RESOURCES
            } else {
                Cause::VC_UNAVAILABLE
            };
            self.event(user, AtmEvent::Released { conn, cause });
            return Err(Refused("this label cannot be used"));
        }
        let id = self.new_call_id();
        self.conns.insert((user, conn), id);
        let call = Call {
            owner: Some((user, conn)),
            phase: Phase::Waiting,
            info: SetupInfo::new(AtmAddress::ZERO, None, Sap::ANY, qos),
            outgoing: true,
            permanent: true,
            vc: Some(vc),
            open: false,
            parties: BTreeMap::new(),
        };
        self.calls.insert(id, call);
        self.usable(id, vc);
        Ok(())
    }

    /// Sends the SETUP of a call that waited.
    fn set_up(&mut self, id: CallId, now: Instant) {
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        call.phase = Phase::Calling;
        let request = Request::Setup {
            call: id,
            info: call.info.clone(),
            vc: None,
            party: call.info.multipoint.then_some(FIRST_PARTY),
        };
        if self.ask(request, now).is_err() {
            self.gone(id, Cause::RESOURCES);
        }
    }

    pub(super) fn expire_waiting(&mut self, now: Instant) {
        while let Some((_, id)) = self.waiting.pop_front_if(|(until, _)| *until <= now) {
            self.counters.no_link += 1;
            self.gone(id, Cause::NETWORK_OUT_OF_ORDER);
        }
    }

    pub(super) fn add_party(
        &mut self,
        user: UserId,
        conn: ConnId,
        party: PartyId,
        called: AtmAddress,
        now: Instant,
    ) -> Result<(), Refused> {
        let limit = self.config.limits.parties_per_call;
        let (id, call) = self.call(user, conn)?;
        let root = call.outgoing && call.info.multipoint;
        if !root || call.phase != Phase::Connected {
            return Err(WRONG_STATE);
        }
        if party == FIRST_PARTY || party.0 > 0x7fff || call.parties.contains_key(&party) {
            return Err(Refused("this party id is in use or out of range"));
        }
        if call.parties.len() >= limit {
            let cause = Cause::RESOURCES;
            self.event(user, AtmEvent::PartyGone { conn, party, cause });
            return Err(Refused("too many parties"));
        }
        call.parties.insert(party, Party::Adding);
        let info = SetupInfo {
            called,
            ..call.info.clone()
        };
        let request = Request::AddParty {
            call: id,
            party,
            info,
        };
        if self.ask(request, now).is_err() {
            self.party_gone(id, party, Cause::TEMPORARY);
        }
        Ok(())
    }

    pub(super) fn drop_party(
        &mut self,
        user: UserId,
        conn: ConnId,
        party: PartyId,
        now: Instant,
    ) -> Result<(), Refused> {
        let (id, call) = self.call(user, conn)?;
        let state = call.parties.get_mut(&party);
        let state = state.ok_or(Refused("unknown party"))?;
        if *state == Party::Dropping {
            return Err(Refused("the party is being dropped"));
        }
        *state = Party::Dropping;
        let request = Request::DropParty {
            call: id,
            party,
            cause: Reason::NORMAL,
        };
        // The interface refuses this if it is about to report the end of the party anyway.
        let _ = self.ask(request, now);
        Ok(())
    }

    /// Records that an offered call is accepted, with the contents of its CONNECT.
    pub(super) fn answer(
        &mut self,
        user: UserId,
        conn: ConnId,
    ) -> Result<(CallId, ConnectInfo), Refused> {
        let (id, call) = self.call(user, conn)?;
        if call.phase != Phase::Offered {
            return Err(WRONG_STATE);
        }
        call.phase = Phase::Accepted;
        let choice = offered_bllis(&call.info).len() > 1;
        let info = ConnectInfo {
            blli: call.info.blli.filter(|_| choice),
            ..ConnectInfo::default()
        };
        Ok((id, info))
    }

    pub(super) fn accept(
        &mut self,
        user: UserId,
        conn: ConnId,
        now: Instant,
    ) -> Result<(), Refused> {
        let (id, info) = self.answer(user, conn)?;
        let request = Request::Accept {
            call: id,
            info,
            vc: None,
        };
        if self.ask(request, now).is_err() {
            self.gone(id, Cause::TEMPORARY);
        }
        self.hear_early(id);
        Ok(())
    }

    /// Opens the VC of an accepted call for receiving. The called side must be able to receive from its CONNECT on: the
    /// network carries cells of the caller as soon as it has the CONNECT, and at a port with many cells those of a
    /// connection with a contract overtake CONNECT ACKNOWLEDGE. The called side sends only once that message has come.
    fn hear_early(&mut self, id: CallId) {
        if let Some(call) = self.calls.get(&id)
            && call.phase == Phase::Accepted
            && let Some(vc) = call.vc
        {
            self.open(id, vc);
        }
    }

    /// Opens the VC of a call, unless it is open.
    fn open(&mut self, id: CallId, vc: Vc) {
        let Some(call) = self.calls.get_mut(&id).filter(|call| !call.open) else {
            return;
        };
        (call.open, call.vc) = (true, Some(vc));
        let (owner, Qos { tx, rx }) = (call.owner, call.qos());
        self.labels.insert(vc, id);
        let opened = Output::OpenVc { owner, vc, tx, rx };
        self.outputs.push_back(opened);
    }

    pub(super) fn release(
        &mut self,
        user: UserId,
        conn: ConnId,
        cause: Cause,
        now: Instant,
    ) -> Result<(), Refused> {
        let (id, call) = self.call(user, conn)?;
        call.owner = None;
        let waiting = call.phase == Phase::Waiting || call.permanent;
        call.phase = Phase::Releasing;
        self.conns.remove(&(user, conn));
        self.close(id);
        if waiting {
            self.waiting.retain(|(_, waiting)| *waiting != id);
            self.calls.remove(&id);
            return Ok(());
        }
        let cause = cause.into();
        if self.ask(Request::Release { call: id, cause }, now).is_err() {
            // The interface does not know the call, so no confirmation will come.
            self.calls.remove(&id);
        }
        Ok(())
    }

    pub(super) fn send(&mut self, user: UserId, conn: ConnId, sdu: Vec<u8>) -> Result<(), Refused> {
        let (_, call) = self.call(user, conn)?;
        let (Phase::Connected, Some(vc)) = (call.phase, call.vc) else {
            return Err(WRONG_STATE);
        };
        may_send(&call.qos(), &sdu)?;
        self.outputs.push_back(Output::Send { vc, sdu });
        Ok(())
    }

    /// The call can carry data from now on.
    fn usable(&mut self, id: CallId, vc: Vc) {
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        let Some((user, conn)) = call.owner else {
            return;
        };
        call.phase = Phase::Connected;
        call.vc = Some(vc);
        if call.info.multipoint && call.outgoing {
            call.parties.insert(FIRST_PARTY, Party::Active);
        }
        let text = format!(
            "connection {} to {} open",
            vc,
            if call.outgoing {
                Some(call.info.called)
            } else {
                call.info.calling
            }
            .map_or_else(|| "an unknown caller".to_owned(), |a| a.to_string())
        );
        self.open(id, vc);
        self.outputs.push_back(Output::Trace(
            Trace::detail("signalling.open", text).with("vc", vc),
        ));
        self.event(user, AtmEvent::Connected { conn, vc });
    }

    /// Closes the VC of a call.
    fn close(&mut self, id: CallId) {
        if let Some(call) = self.calls.get_mut(&id)
            && call.open
            && let Some(vc) = call.vc
        {
            call.open = false;
            self.labels.remove(&vc);
            self.outputs.push_back(Output::CloseVc { vc });
            let text = format!("connection {vc} closed");
            self.outputs.push_back(Output::Trace(
                Trace::detail("signalling.close", text).with("vc", vc),
            ));
        }
    }

    /// The interface releases the call by itself. The call is over for the user, but still holds its label.
    fn clearing(&mut self, id: CallId, cause: Cause) {
        self.close(id);
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        call.phase = Phase::Releasing;
        if let Some((user, conn)) = call.owner.take() {
            self.conns.remove(&(user, conn));
            self.event(user, AtmEvent::Released { conn, cause });
        }
    }

    /// The call has ended and its label is free.
    fn gone(&mut self, id: CallId, cause: Cause) {
        self.close(id);
        let Some(call) = self.calls.remove(&id) else {
            return;
        };
        if let Some((user, conn)) = call.owner {
            self.conns.remove(&(user, conn));
            self.event(user, AtmEvent::Released { conn, cause });
        }
    }

    /// The party has ended.
    fn party_gone(&mut self, id: CallId, party: PartyId, cause: Cause) {
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        let state = call.parties.remove(&party);
        if let (Some(Party::Adding | Party::Active), Some((user, conn))) = (state, call.owner) {
            self.event(user, AtmEvent::PartyGone { conn, party, cause });
        }
    }

    /// A call is offered: finds its listener, or refuses the call.
    fn offered(&mut self, id: CallId, mut info: SetupInfo, vc: Option<Vc>, now: Instant) {
        let limit = self.config.limits.calls_per_user;
        let longest = info.qos.tx.max_sdu.max(info.qos.rx.max_sdu);
        let found = (self.listeners).find(info.called, offered_bllis(&info), info.bhli, longest);
        let taken = match found {
            None => {
                self.counters.incompatible += 1;
                Err(Cause::INCOMPATIBLE)
            }
            Some((user, _)) if self.calls_of(user) >= limit => {
                self.counters.refused += 1;
                Err(Cause::RESOURCES)
            }
            Some(taken) => Ok(taken),
        };
        let (user, sap) = match taken {
            Ok(taken) => taken,
            Err(cause) => {
                let text = format!("call to {} refused: {cause}", info.called);
                self.outputs
                    .push_back(Output::Trace(Trace::detail("signalling.refused", text)));
                // The interface refuses this only if the call has ended.
                let cause = cause.into();
                let _ = self.ask(Request::Release { call: id, cause }, now);
                return;
            }
        };
        // The B-LLI that was chosen, if there was a choice.
        info.blli = sap.blli.or(info.blli);
        let conn = self.new_conn_id(user);
        self.counters.incoming += 1;
        self.conns.insert((user, conn), id);
        let event = AtmEvent::Incoming {
            conn,
            calling: info.calling,
            called: info.called,
            sap,
            qos: info.qos.reversed(),
            multipoint: info.multipoint,
        };
        let call = Call {
            owner: Some((user, conn)),
            phase: Phase::Offered,
            info,
            outgoing: false,
            permanent: false,
            vc,
            open: false,
            parties: BTreeMap::new(),
        };
        self.calls.insert(id, call);
        self.event(user, event);
    }

    pub(super) fn indication(&mut self, indication: Indication, now: Instant) {
        match indication {
            Indication::Up => {
                self.broadcast(&AtmEvent::Up);
                for (_, id) in core::mem::take(&mut self.waiting) {
                    self.set_up(id, now);
                }
            }
            Indication::Down => self.broadcast(&AtmEvent::Down),
            Indication::Setup { call, info, vc, .. } => self.offered(call, info, vc, now),
            Indication::Connected { call, info, vc } => {
                if let Some(call) = self.calls.get_mut(&call) {
                    settle(&mut call.info, &info);
                }
                if let (Some(call), Some((forward, backward))) =
                    (self.calls.get_mut(&call), info.max_sdu)
                {
                    lower(&mut call.info.qos.tx.max_sdu, forward);
                    lower(&mut call.info.qos.rx.max_sdu, backward);
                }
                self.usable(call, vc);
            }
            Indication::Active { call, vc } => self.usable(call, vc),
            Indication::Clearing { call, cause } => self.clearing(call, cause.cause),
            Indication::Released { call, cause } => self.gone(call, cause.cause),
            Indication::AddParty { call, party, .. } => {
                let cause = NOT_AVAILABLE.into();
                let request = Request::RejectParty { call, party, cause };
                // The interface refuses this only if the party has ended.
                let _ = self.ask(request, now);
            }
            Indication::PartyAdded {
                call: id, party, ..
            } => {
                if let Some(call) = self.calls.get_mut(&id)
                    && let Some((user, conn)) = call.owner
                    && let Some(state @ Party::Adding) = call.parties.get_mut(&party)
                {
                    *state = Party::Active;
                    self.event(user, AtmEvent::PartyAdded { conn, party });
                }
            }
            Indication::PartyRejected { call, party, cause }
            | Indication::PartyDropped { call, party, cause } => {
                self.party_gone(call, party, cause.cause);
            }
            Indication::Restarted { what } => {
                // The calls of these channels have ended: `Released` came before.
                let _ = self.ask(Request::RestartCleared { what }, now);
            }
            Indication::Proceeding { .. }
            | Indication::Alerting { .. }
            | Indication::PartyAlerting { .. }
            | Indication::RestartDone { .. }
            | Indication::Notify { .. } => {}
        }
    }
}

/// True if this end of a connection can send this SDU.
pub(super) fn may_send(qos: &Qos, sdu: &[u8]) -> Result<(), Refused> {
    if qos.tx.category.is_none() {
        return Err(Refused("this end of the connection cannot send"));
    }
    let longest = match qos.tx.max_sdu {
        0 => usize::from(u16::MAX),
        max => usize::from(max),
    };
    if sdu.is_empty() || sdu.len() > longest {
        return Err(Refused("the SDU is empty or longer than agreed"));
    }
    Ok(())
}

/// The B-LLI of an offer in the caller's order of preference, at most three.
fn offered_bllis(info: &SetupInfo) -> Vec<Blli> {
    let elements = info.elements.iter().filter(|e| e.id == id::BLLI);
    let further = elements.filter_map(|e| match ie::decode(e) {
        Ok(Ie::Blli(blli)) => Some(blli),
        _ => None,
    });
    let mut out: Vec<Blli> = info.blli.into_iter().collect();
    for blli in further {
        if !out.contains(&blli) {
            out.push(blli);
        }
    }
    out
}

/// Sets the peak rates to those that the network granted, if the call left it a choice. They never exceed the request.
fn settle(info: &mut SetupInfo, answer: &ConnectInfo) {
    let choice = !info.multipoint && convert::minimum(&info.qos).is_some();
    let Some(traffic) = answer.traffic().filter(|_| choice) else {
        return;
    };
    let taken = info.with_traffic(&traffic).qos;
    for (own, taken) in [(&mut info.qos.tx, taken.tx), (&mut info.qos.rx, taken.rx)] {
        if let (Some(asked), Some(given)) = (own.max_pcr, taken.max_pcr) {
            own.max_pcr = Some(asked.min(given));
        }
    }
}

/// Lowers an SDU size to the called side's limit; 0 means that the called side gives no limit.
fn lower(size: &mut u16, to: u16) {
    if to != 0 && (*size == 0 || to < *size) {
        *size = to;
    }
}
