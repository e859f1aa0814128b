//! The calls of the signalling daemon: requests of the host half become requests of call control, and the
//! indications of call control become messages for the host half.

use super::Sigd;
use aerostat_proto::sigd::{FromSigd, Offer, Setup};
use aerostat_proto::uni::{CallId, ConnectInfo, Indication, Reason, Request, SetupInfo, Side};
use aerostat_proto::{Cause, Instant, PartyId};
use aerostat_wire::q2931::{Aal, Ie, UserData, convert, id, ie};
use aerostat_wire::{AalType, AtmAddress, Blli, Qos, Vc};

/// Service or option not available, unspecified. Source: Q.850.
const NOT_AVAILABLE: Cause = Cause(63);
/// Party of the SETUP of a point-to-multipoint call.
pub(in crate::signalling) const FIRST_PARTY: PartyId = PartyId(0);

/// First VCI of calls where this end gives the labels. Those below are left to permanent connections.
pub const FIRST_CALL_VCI: u16 = 1024;

/// A call that has not ended.
#[derive(Debug)]
pub(super) struct Call {
    /// The contents of the SETUP, without its elements; traffic seen from the caller.
    info: SetupInfo,
    /// The call was made here.
    outgoing: bool,
    /// The interface releases the call by itself, and will report its end.
    clearing: bool,
    /// The label that this end has given to the call of its peer, before it is accepted.
    given: Option<Vc>,
}

impl Call {
    /// Traffic seen from this host.
    fn qos(&self) -> Qos {
        match self.outgoing {
            true => self.info.qos,
            false => self.info.qos.reversed(),
        }
    }
}

impl Sigd {
    pub(super) fn set_up(&mut self, setup: Setup, now: Instant) {
        let call = setup.call;
        let mut info = SetupInfo::new(setup.called, Some(setup.calling), setup.sap, setup.qos);
        info.multipoint = setup.multipoint;
        let made = Call {
            info: info.clone(),
            outgoing: true,
            clearing: false,
            given: None,
        };
        info.elements.extend(setup.data.element());
        if setup.aal == AalType::Aal0 {
            info.elements.push(Ie::Aal(Aal::cells()).encode());
        }
        self.calls.insert(call, Box::new(made));
        let vc = self.new_label();
        let request = Request::Setup {
            call,
            info,
            vc,
            party: setup.multipoint.then_some(FIRST_PARTY),
        };
        if self.request(request, now).is_err() {
            self.ended(call, Cause::RESOURCES.into());
        }
    }

    /// A call inside the host: a daemon that ends lets no more begin.
    pub(super) fn join(&mut self, call: CallId) {
        let cause = Cause::TEMPORARY;
        self.say(match self.ends() {
            true => FromSigd::Released {
                call,
                cause,
                data: UserData::default(),
            },
            false => FromSigd::Join { call },
        });
    }

    /// On the network side, a label that no call has; `None` on the user side, and if all are used.
    fn new_label(&mut self) -> Option<Vc> {
        let uni = self.interface.uni();
        if uni.params().side != Side::Network {
            return None;
        }
        // Calls that were offered have a label that the interface does not know yet. Labels are given in turn, so the
        // first one is nearly always free, and a set of all would cost more than this look.
        let given = |vc| self.calls.values().any(|call| call.given == Some(vc));
        let mut vci = self.next_vci;
        for _ in FIRST_CALL_VCI..=u16::MAX {
            let vc = Vc::new(0, vci);
            vci = vci.checked_add(1).unwrap_or(FIRST_CALL_VCI);
            if !uni.uses(vc) && !given(vc) {
                self.next_vci = vci;
                return Some(vc);
            }
        }
        None
    }

    pub(super) fn accept(
        &mut self,
        call: CallId,
        blli: Option<Blli>,
        (terms, data): (Option<Qos>, &UserData),
        now: Instant,
    ) {
        if !self.lives(call) {
            return;
        }
        let mut info = ConnectInfo {
            blli,
            ..ConnectInfo::default()
        };
        info.elements.extend(data.element());
        let known = self.calls.get_mut(&call);
        let vc = known.and_then(|known| {
            if let Some(terms) = terms {
                answer(&mut known.info, terms.reversed(), &mut info);
            }
            known.given
        });
        if self
            .request(Request::Accept { call, info, vc }, now)
            .is_err()
        {
            self.ended(call, Cause::TEMPORARY.into());
        }
    }

    pub(super) fn refuse(&mut self, call: CallId, cause: Cause, now: Instant) {
        if self.calls.remove(&call).is_some() {
            let cause = cause.into();
            // The interface refuses this only if the call has ended.
            let _ = self.request(Request::Release { call, cause }, now);
        }
    }

    pub(super) fn release(&mut self, call: CallId, cause: Cause, data: &UserData, now: Instant) {
        let mut reason = Reason::from(cause);
        reason.elements.extend(data.element());
        let request = Request::Release {
            call,
            cause: reason,
        };
        if self.lives(call) && self.request(request, now).is_err() {
            // The interface does not know the call, so no confirmation will come.
            self.ended(call, cause.into());
        }
    }

    pub(super) fn add_party(
        &mut self,
        call: CallId,
        party: PartyId,
        (called, data): (AtmAddress, &UserData),
        now: Instant,
    ) {
        let Some(known) = self.calls.get(&call) else {
            return;
        };
        let mut info = SetupInfo {
            called,
            ..known.info.clone()
        };
        // What was said to the first leaf was for that leaf.
        info.elements.retain(|element| element.id != id::USER_USER);
        info.elements.extend(data.element());
        let request = Request::AddParty { call, party, info };
        if self.request(request, now).is_err() {
            self.party_gone(call, party, Cause::TEMPORARY.into());
        }
    }

    pub(super) fn drop_party(&mut self, call: CallId, party: PartyId, now: Instant) {
        let cause = Reason::NORMAL;
        // The interface refuses this if it is about to report the end of the party anyway.
        let _ = self.request(Request::DropParty { call, party, cause }, now);
    }

    /// True for a call whose end the interface has not announced. The end may have crossed a request of the host half.
    fn lives(&self, call: CallId) -> bool {
        self.calls.get(&call).is_some_and(|call| !call.clearing)
    }

    /// The call has ended and its label is free.
    fn ended(&mut self, call: CallId, reason: Reason) {
        if self.calls.remove(&call).is_some() {
            let (cause, data) = told(&reason);
            self.say(FromSigd::Released { call, cause, data });
        }
    }

    fn party_gone(&mut self, call: CallId, party: PartyId, reason: Reason) {
        let (cause, data) = told(&reason);
        self.say(FromSigd::PartyGone {
            call,
            party,
            cause,
            data,
        });
    }

    /// The call can carry data from now on.
    fn usable(&mut self, id: CallId, vc: Vc, data: UserData) {
        if let Some(call) = self.calls.get(&id) {
            let (call, qos) = (id, call.qos());
            self.say(FromSigd::Connected {
                call,
                vc,
                qos,
                data,
            });
        }
    }

    /// A call of the network: the host half decides about it. A daemon that ends refuses the call, as the host half
    /// accepts calls of this daemon no more.
    fn offered(&mut self, id: CallId, mut info: SetupInfo, vc: Option<Vc>, now: Instant) {
        if self.ends() {
            let cause = Cause::TEMPORARY.into();
            // The interface refuses this only if the call has ended.
            let _ = self.request(Request::Release { call: id, cause }, now);
            return;
        }
        let bllis = offered_bllis(&info);
        info.qos = info.qos_with_minimum();
        let data = UserData::of(&info.elements);
        let aal = offered_aal(&mut info);
        info.elements = Vec::new();
        let given = vc.is_none().then(|| self.new_label()).flatten();
        let vc = vc.or(given);
        let call = Call {
            info,
            outgoing: false,
            clearing: false,
            given,
        };
        self.say(FromSigd::Offered(Box::new(Offer {
            call: id,
            calling: call.info.calling,
            called: call.info.called,
            bllis,
            bhli: call.info.bhli,
            qos: call.qos(),
            multipoint: call.info.multipoint,
            aal,
            vc,
            data,
        })));
        self.calls.insert(id, Box::new(call));
    }

    pub(super) fn indication(&mut self, indication: Indication, now: Instant) {
        match indication {
            Indication::Up => self.say(FromSigd::Link { up: true }),
            Indication::Down => self.say(FromSigd::Link { up: false }),
            Indication::Setup { call, info, vc, .. } => self.offered(call, info, vc, now),
            Indication::Connected { call, info, vc } => {
                if let Some(call) = self.calls.get_mut(&call) {
                    settle(&mut call.info, &info);
                    if let Some((forward, backward)) = info.max_sdu {
                        lower(&mut call.info.qos.tx.max_sdu, forward);
                        lower(&mut call.info.qos.rx.max_sdu, backward);
                    }
                }
                self.usable(call, vc, UserData::of(&info.elements));
            }
            Indication::Active { call, vc } => self.usable(call, vc, UserData::default()),
            Indication::Clearing { call, cause } => {
                if let Some(known) = self.calls.get_mut(&call) {
                    known.clearing = true;
                    let (cause, data) = told(&cause);
                    self.say(FromSigd::Clearing { call, cause, data });
                }
            }
            Indication::Released { call, cause } => self.ended(call, cause),
            Indication::AddParty { call, party, .. } => {
                let cause = NOT_AVAILABLE.into();
                let request = Request::RejectParty { call, party, cause };
                // The interface refuses this only if the party has ended.
                let _ = self.request(request, now);
            }
            Indication::PartyAdded { call, party, info } => {
                let data = UserData::of(&info.elements);
                self.say(FromSigd::PartyAdded { call, party, data });
            }
            Indication::PartyRejected { call, party, cause }
            | Indication::PartyDropped { call, party, cause } => {
                self.party_gone(call, party, cause);
            }
            Indication::Restarted { what } => {
                // The calls of these channels have ended: `Released` came before.
                let _ = self.request(Request::RestartCleared { what }, now);
            }
            Indication::Proceeding { .. }
            | Indication::Alerting { .. }
            | Indication::PartyAlerting { .. }
            | Indication::RestartDone { .. }
            | Indication::Notify { .. } => {}
        }
    }
}

/// The cause of a clearing, and the user data of its message.
fn told(reason: &Reason) -> (Cause, UserData) {
    (reason.cause, UserData::of(&reason.elements))
}

/// The AAL of an offer; SDUs of single cells have their size.
fn offered_aal(info: &mut SetupInfo) -> AalType {
    let element = info.elements.iter().find(|e| e.id == id::AAL_PARAMETERS);
    let aal = element.and_then(|e| ie::decode(e).ok());
    if !matches!(aal, Some(Ie::Aal(aal)) if aal.is_user_defined()) {
        return AalType::Aal5;
    }
    for side in [&mut info.qos.tx, &mut info.qos.rx] {
        side.max_sdu = match side.category {
            Some(_) => aerostat_wire::aal0::SDU_LEN as u16,
            None => 0,
        };
    }
    AalType::Aal0
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

/// Puts the contract of an answer into the CONNECT, and into the call; all are seen from the caller. What is as offered
/// is not mentioned. Source: Q.2931 §4.5.5 (AAL parameters), Q.2962 §9 (traffic descriptor; from memory).
fn answer(call: &mut SetupInfo, agreed: Qos, connect: &mut ConnectInfo) {
    let sizes = |qos: &Qos| (qos.tx.max_sdu, qos.rx.max_sdu);
    let peaks = |qos: &Qos| (qos.tx.max_pcr, qos.rx.max_pcr);
    let offered = core::mem::replace(&mut call.qos, agreed);
    if sizes(&agreed) != sizes(&offered) {
        connect.max_sdu = Some(sizes(&agreed));
    }
    if peaks(&agreed) != peaks(&offered) {
        connect.set_traffic(Some(&call.traffic()));
    }
}

/// Lowers an SDU size to the called side's limit; 0 means that the called side gives no limit.
fn lower(size: &mut u16, to: u16) {
    if to != 0 && (*size == 0 || to < *size) {
        *size = to;
    }
}

#[cfg(test)]
mod tests {
    use crate::signalling::{Config, Input, Output, Sigd, Signalling, UserId};
    use aerostat_proto::machine::settle;
    use aerostat_proto::sigd::{FromSigd, ToSigd};
    use aerostat_proto::split::{Daemon as _, FromDaemon, ProcessEvent, ToDaemon};
    use aerostat_proto::uni::{CallId, Indication, SetupInfo, Version};
    use aerostat_proto::{AtmEvent, AtmRequest, Instant, Machine as _};
    use aerostat_wire::q2931::Ie;
    use aerostat_wire::{AtmAddress, Blli, Qos, Sap};

    /// A caller that offers several B-LLI (with a repeat indicator) is told which one was taken.
    #[test]
    fn one_of_several_bllis() {
        let now = Instant::ZERO;
        let mut daemon = Sigd::default();
        let address = AtmAddress::LECS;
        let mut info = SetupInfo::new(address, None, Blli::LANE_CONTROL, Qos::ubr(1516));
        info.elements = vec![
            Ie::Repeat(2).encode(),
            Ie::Blli(Blli::LANE_CONTROL).encode(),
            Ie::Blli(Blli::LLC).encode(),
        ];
        let call = CallId(CallId::INCOMING);
        let setup = Indication::Setup {
            call,
            info,
            vc: None,
            party: None,
        };
        daemon.indication(setup, now);
        let offered = daemon.poll_output().expect("an offer");

        let mut signalling = Signalling::split(Config::new(Version::Uni31));
        let mut said = Vec::new();
        for input in [
            Input::AddUser(UserId(1)),
            Input::request(UserId(1), AtmRequest::listen(address, Sap::LLC, 1536)),
            Input::Daemon(ProcessEvent::Came),
            Input::Daemon(ProcessEvent::Said(FromDaemon::Message(FromSigd::Begun {
                life: 1,
            }))),
            Input::Daemon(ProcessEvent::Said(offered)),
        ] {
            signalling.handle_input(input, now).unwrap();
            said = settle(&mut signalling, now);
        }
        let [Output::Event(UserId(1), AtmEvent::Incoming { conn, sap, .. }, _)] = said[..] else {
            panic!("{said:?}");
        };
        assert_eq!(sap, Sap::LLC);
        let accept = Input::request(UserId(1), AtmRequest::Accept { conn, terms: None });
        signalling.handle_input(accept, now).unwrap();
        let blli = Some(Blli::LLC);
        let terms = None;
        let accepted = Output::Daemon(ToDaemon::Message(ToSigd::Accept {
            call,
            blli,
            terms,
            data: Default::default(),
        }));
        assert_eq!(settle(&mut signalling, now), [accepted]);
    }
}
