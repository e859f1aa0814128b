//! Requests of the owner. A request that is not allowed in the state of its call is refused.

use std::collections::BTreeMap;

use aerostat_wire::Vc;
use aerostat_wire::q2931::{ConnectionId, Element, Ie, Message, MessageType};

use crate::{Instant, PartyId, Refused};

use super::build;
use super::state::{Call, CallKey, CallState, Party, PartyState};
use super::timers::Timer;
use super::{CallId, ConnectInfo, Indication, Reason, Request, SetupInfo, Side, Uni};

const NO_CALL: Refused = Refused("no such call");
const WRONG_STATE: Refused = Refused("the state of the call does not allow this");

impl Uni {
    pub(super) fn request(&mut self, request: Request, now: Instant) -> Result<(), Refused> {
        match request {
            Request::Setup {
                call,
                info,
                vc,
                party,
            } => self.start_call(call, &info, vc, party, now),
            Request::Proceeding { call, vc } => self.answer(call, Answer::Proceeding, vc, now),
            Request::Alerting { call, vc, elements } => {
                self.answer(call, Answer::Alerting(elements), vc, now)
            }
            Request::Accept { call, info, vc } => self.answer(call, Answer::Connect(info), vc, now),
            Request::Release { call, cause } => {
                let key = self.key(call)?;
                self.release_requested(key, cause, now)
            }
            Request::AddParty { call, party, info } => {
                let key = self.key(call)?;
                self.add_party(key, party, &info, now)
            }
            Request::AlertParty {
                call,
                party,
                elements,
            } => {
                let key = self.key(call)?;
                self.alert_party(key, party, &elements)
            }
            Request::AcceptParty { call, party, info } => {
                let key = self.key(call)?;
                self.accept_party(key, party, &info)
            }
            Request::RejectParty { call, party, cause } => {
                let key = self.key(call)?;
                self.reject_party(key, party, cause, now)
            }
            Request::DropParty { call, party, cause } => {
                let key = self.key(call)?;
                self.drop_requested(key, party, cause, now)
            }
            Request::Restart { what } => self.restart_requested(what, now),
            Request::RestartCleared { what } => self.restart_cleared(what),
            Request::StatusEnquiry { call } => {
                let key = self.key(call)?;
                if let Some(call) = self.calls.get_mut(&key) {
                    call.asked_again = false;
                }
                self.enquire(key, now);
                Ok(())
            }
            Request::Report { call, cause } => {
                let key = self.key(call)?;
                if self.state(key) == Some(CallState::Releasing) {
                    return Err(WRONG_STATE);
                }
                self.report(key, Some((cause.cause, cause.diagnostics)));
                Ok(())
            }
            Request::Notify {
                call,
                party,
                elements,
            } => {
                let key = self.key(call)?;
                self.notify(key, party, &elements)
            }
        }
    }

    fn key(&self, call: CallId) -> Result<CallKey, Refused> {
        self.ids.get(&call).copied().ok_or(NO_CALL)
    }

    fn start_call(
        &mut self,
        id: CallId,
        info: &SetupInfo,
        vc: Option<Vc>,
        party: Option<PartyId>,
        now: Instant,
    ) -> Result<(), Refused> {
        if id.0 >= CallId::INCOMING || self.ids.contains_key(&id) {
            return Err(Refused("the id of the call is not free"));
        }
        if self.calls.len() >= self.params.limits.calls {
            return Err(Refused("too many calls on this interface"));
        }
        if party.is_some_and(|p| p.0 > 0x7fff) || (party.is_some() && !info.multipoint) {
            return Err(Refused("the endpoint reference does not fit the call"));
        }
        match vc {
            Some(_) if self.params.side == Side::User => {
                return Err(Refused("only the network side chooses the label"));
            }
            None if self.params.side == Side::Network => {
                return Err(Refused("the network side must choose the label"));
            }
            Some(vc) if !self.usable(vc) => return Err(Refused("the label is not free")),
            _ => {}
        }
        let key = self.new_reference();
        let first = info.multipoint.then(|| party.unwrap_or(PartyId(0)).0);
        let elements = self.setup_elements(MessageType::SETUP, info, vc, first);
        let setup = Message::new(key.reference(), MessageType::SETUP).with_elements(elements);
        let setup = setup.encode();
        let parties = first.map(|p| (p, Party::new(PartyState::AddInitiated, info.called)));
        let call = Call {
            id,
            state: CallState::SetupSent,
            vc,
            called: info.called,
            calling: info.calling,
            blli: info.blli,
            multipoint: info.multipoint,
            inherited: Vec::new(),
            setup: Some(setup.clone()),
            waiting: !self.up,
            resent: false,
            asked_again: false,
            cause: Reason::NORMAL,
            first,
            parties: parties.into_iter().collect::<BTreeMap<_, _>>(),
        };
        self.ids.insert(id, key);
        if let Some(vc) = vc {
            self.labels.insert(vc, key);
        }
        self.calls.insert(key, Box::new(call));
        if self.up {
            self.send_octets(setup);
        } else {
            self.outputs.push_back(super::Output::SaalEstablish);
        }
        self.start(key, Timer::T303, now);
        Ok(())
    }

    /// True if a call may have this label: in the range of users, and free.
    pub(super) fn usable(&self, vc: Vc) -> bool {
        let in_range = vc.vci >= Vc::FIRST_USER_VCI && vc.vpi <= self.params.limits.max_vpi;
        in_range && !self.uses(vc)
    }

    /// The next free reference. The table is far smaller than the number space, so there is always one.
    fn new_reference(&mut self) -> CallKey {
        loop {
            let max = aerostat_wire::q2931::CallRef::MAX;
            self.last_reference = self.last_reference % max + 1;
            let key = CallKey {
                ours: true,
                value: self.last_reference,
            };
            if !self.calls.contains_key(&key) {
                return key;
            }
        }
    }
    /// The next free id for an offered call.
    pub(super) fn new_id(&mut self) -> CallId {
        loop {
            self.last_id = self.last_id.wrapping_add(1).max(CallId::INCOMING);
            let id = CallId(self.last_id);
            if !self.ids.contains_key(&id) {
                return id;
            }
        }
    }

    /// Answers an offered call with CALL PROCEEDING, ALERTING or CONNECT.
    fn answer(
        &mut self,
        id: CallId,
        answer: Answer,
        vc: Option<Vc>,
        now: Instant,
    ) -> Result<(), Refused> {
        let key = self.key(id)?;
        let call = self.calls.get(&key).ok_or(NO_CALL)?;
        let fits = match answer {
            Answer::Proceeding => call.state == CallState::SetupReceived,
            Answer::Alerting(_) => {
                matches!(
                    call.state,
                    CallState::SetupReceived | CallState::ProceedingSent
                )
            }
            Answer::Connect(_) => call.state.is_offered(),
        };
        if !fits {
            return Err(WRONG_STATE);
        }
        let first = call.state == CallState::SetupReceived;
        let party = call.first;
        self.take_label(key, vc)?;
        let kind = answer.kind();
        if !self.params.version.has_message(kind) {
            return Ok(());
        }
        let network = self.params.side == Side::Network;
        let mut message = self.message(key, kind);
        match &answer {
            Answer::Proceeding => {}
            Answer::Alerting(elements) => {
                message.elements = build::relayed(self.params.version, kind, elements);
            }
            Answer::Connect(info) => message.elements = self.connect_elements(kind, info),
        }
        let vc = self.calls.get(&key).and_then(|call| call.vc);
        if let Some(vc) = vc.filter(|_| network && first) {
            message = message.with(&Ie::ConnectionId(ConnectionId::exact(vc)));
        }
        if let Some(party) = party {
            message = message.with(&self.endpoint(key, party));
        }
        self.send(message);
        match answer {
            Answer::Proceeding => self.enter(key, CallState::ProceedingSent),
            Answer::Alerting(_) => {
                self.enter_first(key, PartyState::AlertingReceived);
                self.enter(key, CallState::AlertingSent);
            }
            Answer::Connect(_) if network => self.activate(key),
            Answer::Connect(_) => {
                self.enter_first(key, PartyState::Active);
                self.enter(key, CallState::ConnectSent);
                self.start(key, Timer::T313, now);
            }
        }
        Ok(())
    }

    /// Stores the label that the network side gives with its first answer.
    fn take_label(&mut self, key: CallKey, vc: Option<Vc>) -> Result<(), Refused> {
        let have = self.calls.get(&key).and_then(|call| call.vc);
        match (have, vc) {
            (Some(have), Some(vc)) if have != vc => Err(Refused("the call has another label")),
            (Some(_), _) => Ok(()),
            (None, None) if self.params.side == Side::User => Ok(()),
            (None, None) => Err(Refused("the network side must choose the label")),
            (None, Some(vc)) if !self.usable(vc) => Err(Refused("the label is not free")),
            (None, Some(vc)) => {
                self.labels.insert(vc, key);
                if let Some(call) = self.calls.get_mut(&key) {
                    call.vc = Some(vc);
                }
                Ok(())
            }
        }
    }

    /// The accepted call can be used.
    pub(super) fn activate(&mut self, key: CallKey) {
        self.enter_first(key, PartyState::Active);
        self.enter(key, CallState::Active);
        if let Some(call) = self.calls.get(&key)
            && let Some(vc) = call.vc
        {
            let call = call.id;
            self.indicate(Indication::Active { call, vc });
        }
    }

    /// Changes the state of the SETUP's party together with its call.
    pub(super) fn enter_first(&mut self, key: CallKey, state: PartyState) {
        if let Some(call) = self.calls.get_mut(&key) {
            let first = call.first.and_then(|first| call.parties.get_mut(&first));
            first.into_iter().for_each(|party| party.state = state);
        }
    }

    fn release_requested(
        &mut self,
        key: CallKey,
        cause: Reason,
        now: Instant,
    ) -> Result<(), Refused> {
        let call = self.calls.get(&key).ok_or(NO_CALL)?;
        match call.state {
            CallState::Releasing => return Err(WRONG_STATE),
            CallState::SetupReceived => {
                // The first answer to a SETUP may be its refusal.
                self.send(self.ending(key, MessageType::RELEASE_COMPLETE, &cause));
                self.free(key, cause);
            }
            CallState::SetupSent if call.waiting => self.free(key, cause),
            _ => self.release(key, cause, now),
        }
        Ok(())
    }
}

/// An answer to an offered call.
enum Answer {
    Proceeding,
    Alerting(Vec<Element>),
    Connect(ConnectInfo),
}

impl Answer {
    const fn kind(&self) -> MessageType {
        match self {
            Self::Proceeding => MessageType::CALL_PROCEEDING,
            Self::Alerting(_) => MessageType::ALERTING,
            Self::Connect(_) => MessageType::CONNECT,
        }
    }
}
