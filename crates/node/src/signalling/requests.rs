//! Requests of users.

use super::connections::{Conn, Party, may_send};
use super::local::{Errand, Local};
use super::seat::{ABSENT, NO_DAEMON};
use super::sigd::FIRST_PARTY;
use super::user_data::{Along, End, FACILITY_REJECTED};
use super::{Output, Phase, Signalling, UserId};
use aerostat_proto::atm::answered;
use aerostat_proto::sigd::{Setup, ToSigd};
use aerostat_proto::uni::CallId;
use aerostat_proto::{AtmEvent, AtmRequest, Cause, ConnId, Instant, PartyId, Refused, Trace};
use aerostat_wire::q2931::UserData;
use aerostat_wire::{AtmAddress, Qos, Sap, TrafficParams, Vc};

const UNKNOWN: Refused = Refused("unknown connection");
const WRONG_STATE: Refused = Refused("the connection is not in a state for this");

impl Signalling {
    /// The connection with a user's id.
    fn conn(&mut self, user: UserId, id: ConnId) -> Result<(CallId, &mut Conn), Refused> {
        let call = self.ids.get(&(user, id)).copied().ok_or(UNKNOWN)?;
        let conn = self.conns.get_mut(&call).ok_or(UNKNOWN)?;
        Ok((call, conn))
    }

    pub(super) fn add_user(&mut self, user: UserId) -> Result<(), Refused> {
        if self.users.len() >= self.config.limits.users {
            return Err(Refused("too many users of the ATM service"));
        }
        if self.users.contains_key(&user) {
            return Err(Refused("this user is known already"));
        }
        self.users.insert(user, 0);
        if self.up {
            self.event(user, AtmEvent::Up);
        }
        Ok(())
    }

    pub(super) fn drop_user(&mut self, user: UserId, now: Instant) -> Result<(), Refused> {
        if self.users.remove(&user).is_none() {
            return Err(Refused("unknown user"));
        }
        self.listeners.drop_user(user);
        let range = (user, ConnId(0))..=(user, ConnId(u32::MAX));
        let conns = self.ids.range(range).map(|((_, conn), _)| *conn);
        self.sockets.take_if(|sockets| *sockets == user);
        for conn in conns.collect::<Vec<_>>() {
            // The other end of a local call has ended with the first one.
            if self.ids.contains_key(&(user, conn)) {
                self.release(user, conn, Cause::NORMAL.into(), now)?;
            }
        }
        Ok(())
    }

    pub(super) fn request(
        &mut self,
        user: UserId,
        request: AtmRequest,
        Along { data, aal }: Along,
        now: Instant,
    ) -> Result<(), Refused> {
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
                self.listeners.add(user, (address, sap), max_sdu, limit)
            }
            AtmRequest::Unlisten { address, sap } => self.listeners.remove(user, (address, sap)),
            AtmRequest::Connect {
                conn,
                calling,
                called,
                sap,
                qos,
                multipoint,
            } => {
                let mut made = Conn {
                    calling: Some(calling),
                    multipoint,
                    said: data,
                    aal,
                    ..Conn::new((user, conn), Phase::Waiting, called, (sap, qos))
                };
                made.local = self.is_local(user, &made).then_some(Local::Asked);
                self.connect(user, conn, made, now)
            }
            AtmRequest::OpenPermanent { conn, vc, qos } => self.open_permanent(user, conn, vc, qos),
            AtmRequest::AddParty {
                conn,
                party,
                called,
            } => self.add_party((user, conn), party, (called, data), now),
            AtmRequest::DropParty { conn, party } => self.drop_party(user, conn, party, now),
            AtmRequest::Accept { conn, terms } => self.accept(user, conn, (terms, data), now),
            AtmRequest::Release { conn, cause } => {
                self.release(user, conn, End { cause, data }, now)
            }
            AtmRequest::Send { conn, sdu } => {
                let vc = self.label_of(user, conn, &sdu)?;
                self.outputs.push_back(Output::Send { vc, sdu });
                Ok(())
            }
        }
    }

    fn connect(
        &mut self,
        user: UserId,
        conn: ConnId,
        mut made: Conn,
        now: Instant,
    ) -> Result<(), Refused> {
        if conn.0 >= ConnId::INCOMING {
            return Err(Refused("this id is reserved for calls received"));
        }
        if self.ids.contains_key(&(user, conn)) {
            return Err(Refused("this id is in use"));
        }
        if !made.said.is_empty() && !self.carries(made.local.is_some()) {
            return Err(self.refuse_saying(user, conn));
        }
        let refused = if !self.has_room(user) {
            Some((Cause::RESOURCES, Refused("too many calls of this user")))
        } else if self.presence.is_absent() {
            self.daemon_counters.absent += 1;
            Some((NO_DAEMON, ABSENT))
        } else {
            None
        };
        if let Some((cause, refused)) = refused {
            // The user waits for the end of this call, so it is told.
            self.event(user, AtmEvent::Released { conn, cause });
            return Err(refused);
        }
        if made.multipoint {
            made.parties.insert(FIRST_PARTY, Party::Adding);
        }
        let call = self.new_call_id();
        self.counters.outgoing += 1;
        let ready = self.can_set_up(made.local.is_some());
        self.insert(call, made);
        if ready {
            self.set_up(call, now);
        } else {
            self.waiting.push_back((now + self.config.wait, call));
        }
        Ok(())
    }

    /// Takes a permanent connection into use.
    fn open_permanent(
        &mut self,
        user: UserId,
        conn: ConnId,
        vc: Vc,
        qos: Qos,
    ) -> Result<(), Refused> {
        if conn.0 >= ConnId::INCOMING || self.ids.contains_key(&(user, conn)) {
            return Err(Refused("this id is in use, or reserved for calls received"));
        }
        let cause = if !self.has_room(user) {
            Some(Cause::RESOURCES)
        } else if !self.is_free(vc) {
            Some(Cause::VC_UNAVAILABLE)
        } else {
            None
        };
        if let Some(cause) = cause {
            self.event(user, AtmEvent::Released { conn, cause });
            return Err(Refused("this label cannot be used"));
        }
        let call = self.new_call_id();
        let qos = self
            .contracts
            .get(&vc)
            .map_or(qos, |new| changed(qos, *new));
        let made = Conn {
            permanent: true,
            ..Conn::new(
                (user, conn),
                Phase::Connected,
                AtmAddress::ZERO,
                (Sap::ANY, qos),
            )
        };
        self.insert(call, made);
        self.usable(call, vc, UserData::default());
        Ok(())
    }

    /// Management has changed the contract of a permanent connection.
    pub(super) fn contract(&mut self, vc: Vc, new: Qos) {
        self.contracts.insert(vc, new);
        let call = self.labels.get(&vc).copied();
        let conn = call.and_then(|call| self.conns.get_mut(&call));
        let Some(conn) = conn.filter(|conn| conn.permanent) else {
            return;
        };
        conn.qos = changed(conn.qos, new);
        let tx = conn.qos.tx;
        self.outputs.push_back(Output::ChangeVc { vc, tx });
        let text = format!("connection {vc} has the contract {new}");
        self.trace(Trace::detail("signalling.contract", text).with("vc", vc));
    }

    /// Tells the daemon to make a call.
    pub(super) fn set_up(&mut self, call: CallId, now: Instant) {
        // The version of the link may have changed while the call waited.
        if self.cannot_say(call) {
            return;
        }
        let Some(conn) = self.conns.get_mut(&call) else {
            return;
        };
        conn.phase = Phase::Calling;
        if conn.local.is_some() {
            return self.manage(Errand::SetUp(call), now);
        }
        let setup = Setup {
            call,
            calling: conn.calling.unwrap_or(AtmAddress::ZERO),
            called: conn.called,
            sap: conn.sap,
            qos: conn.qos,
            multipoint: conn.multipoint,
            aal: conn.aal,
            data: conn.said.clone(),
        };
        self.tell(ToSigd::Setup(setup), now);
    }

    fn add_party(
        &mut self,
        (user, conn): (UserId, ConnId),
        party: PartyId,
        (called, data): (AtmAddress, UserData),
        now: Instant,
    ) -> Result<(), Refused> {
        let limit = self.config.limits.parties_per_call;
        let carries = self.carries(false);
        let (call, known) = self.conn(user, conn)?;
        let root = known.outgoing && known.multipoint;
        if !root || known.phase != Phase::Connected {
            return Err(WRONG_STATE);
        }
        if party == FIRST_PARTY || party.0 > 0x7fff || known.parties.contains_key(&party) {
            return Err(Refused("this party id is in use or out of range"));
        }
        if known.parties.len() >= limit {
            let cause = Cause::RESOURCES;
            self.event(user, AtmEvent::PartyGone { conn, party, cause });
            return Err(Refused("too many parties"));
        }
        if !data.is_empty() && !carries {
            let cause = FACILITY_REJECTED;
            self.event(user, AtmEvent::PartyGone { conn, party, cause });
            return Err(Refused("the link carries no user data"));
        }
        known.parties.insert(party, Party::Adding);
        let add = ToSigd::AddParty {
            call,
            party,
            called,
            data,
        };
        self.tell(add, now);
        Ok(())
    }

    fn drop_party(
        &mut self,
        user: UserId,
        conn: ConnId,
        party: PartyId,
        now: Instant,
    ) -> Result<(), Refused> {
        let (call, known) = self.conn(user, conn)?;
        let state = known.parties.get_mut(&party);
        let state = state.ok_or(Refused("unknown party"))?;
        if *state == Party::Dropping {
            return Err(Refused("the party is being dropped"));
        }
        *state = Party::Dropping;
        self.tell(ToSigd::DropParty { call, party }, now);
        Ok(())
    }

    /// Accepts an offered call. Its VC is open from now on, before the CONNECT leaves.
    fn accept(
        &mut self,
        user: UserId,
        conn: ConnId,
        (terms, data): (Option<Qos>, UserData),
        now: Instant,
    ) -> Result<(), Refused> {
        let (call, _) = self.conn(user, conn)?;
        self.may_answer(call, &data)?;
        let (call, known) = self.conn(user, conn)?;
        if known.phase != Phase::Offered {
            return Err(WRONG_STATE);
        }
        let terms = terms.map(|terms| answered(&known.qos, &terms).map_err(Refused));
        let terms = terms.transpose()?.filter(|terms| *terms != known.qos);
        known.qos = terms.unwrap_or(known.qos);
        known.phase = Phase::Accepted;
        if known.local.is_some() {
            known.said = data;
            self.manage(Errand::Connect(call), now);
            return Ok(());
        }
        let blli = known.sap.blli.filter(|_| known.choice);
        let vc = known.vc;
        if vc.is_some_and(|vc| !self.is_free(vc)) {
            self.unusable(call, now);
            return Ok(());
        }
        if let Some(vc) = vc {
            self.open(call, vc);
        }
        let accept = ToSigd::Accept {
            call,
            blli,
            terms,
            data,
        };
        self.tell(accept, now);
        Ok(())
    }

    pub(super) fn release(
        &mut self,
        user: UserId,
        conn: ConnId,
        End { cause, data }: End,
        now: Instant,
    ) -> Result<(), Refused> {
        let (call, known) = self.conn(user, conn)?;
        known.owner = None;
        let (waiting, permanent) = (known.phase == Phase::Waiting, known.permanent);
        let local = known.local.is_some();
        known.phase = Phase::Releasing;
        known.released = Some(now);
        self.take_from((user, conn));
        self.close(call);
        if waiting {
            self.waiting.retain(|(_, waiting)| *waiting != call);
        }
        if waiting || permanent {
            self.conns.remove(&call);
        } else if local {
            if let Some(known) = self.conns.get_mut(&call) {
                known.said = data;
            }
            self.manage(Errand::Release(call, cause), now);
        } else {
            let data = if self.carries(false) {
                data
            } else {
                UserData::default()
            };
            self.tell(ToSigd::Release { call, cause, data }, now);
        }
        Ok(())
    }

    fn label_of(&mut self, user: UserId, conn: ConnId, sdu: &[u8]) -> Result<Vc, Refused> {
        let (_, known) = self.conn(user, conn)?;
        let (Phase::Connected, Some(vc)) = (known.phase, known.vc) else {
            return Err(WRONG_STATE);
        };
        may_send(&known.qos, sdu)?;
        Ok(vc)
    }

    /// The label on which a user sends this SDU.
    ///
    /// # Errors
    /// If the user has no such connection, or cannot send the SDU on it.
    pub fn label(&mut self, user: UserId, conn: ConnId, sdu: &[u8]) -> Result<Vc, Refused> {
        let label = self.label_of(user, conn, sdu);
        self.counters.refused += u64::from(label.is_err());
        label
    }
}

/// A contract with other traffic; the sizes of SDUs are those of the ends.
const fn changed(own: Qos, new: Qos) -> Qos {
    Qos {
        tx: TrafficParams {
            max_sdu: own.tx.max_sdu,
            ..new.tx
        },
        rx: TrafficParams {
            max_sdu: own.rx.max_sdu,
            ..new.rx
        },
    }
}
