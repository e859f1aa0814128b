//! The connections of a host: their users, their VCs and their ends.

use super::local::Local;
use super::sigd::FIRST_PARTY;
use super::user_data::End;
use super::{CallInfo, Output, Phase, Signalling, UserId};
use crate::atm::{DataUnit, DataUnitBuf};
use aerostat_proto::split::Early;
use aerostat_proto::uni::CallId;
use aerostat_proto::{AtmEvent, Cause, Changes, ConnId, Instant, PartyId, Refused, Trace, Words};
use aerostat_wire::q2931::UserData;
use aerostat_wire::{AalType, AtmAddress, Qos, Sap, Vc};
use std::collections::BTreeMap;
use std::ops::Deref;

/// State of one leaf, at its root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Party {
    Adding,
    Active,
    /// Dropped by the user; the peer has not confirmed yet.
    Dropping,
}

/// A connection: a call, or a permanent connection.
#[derive(Debug)]
pub(super) struct Conn {
    /// `None` once the call is over for its user.
    pub(super) owner: Option<(UserId, ConnId)>,
    pub(super) phase: Phase,
    pub(super) calling: Option<AtmAddress>,
    pub(super) called: AtmAddress,
    pub(super) sap: Sap,
    /// Traffic seen from this host.
    pub(super) qos: Qos,
    pub(super) multipoint: bool,
    pub(super) outgoing: bool,
    /// The caller left a choice of B-LLI: the CONNECT tells which one was taken.
    pub(super) choice: bool,
    /// The connection was set up by management: signalling does not know it.
    pub(super) permanent: bool,
    /// The call does not leave the host.
    pub(super) local: Option<Local>,
    /// User data of the caller in the SETUP; the next user data of an end of a call inside the host.
    pub(super) said: UserData,
    /// Single cells, or SDUs of AAL5.
    pub(super) aal: AalType,
    pub(super) vc: Option<Vc>,
    /// When the user released the call; `None` if it was cleared otherwise, or is not released.
    pub(super) released: Option<Instant>,
    /// True between `OpenVc` and `CloseVc`.
    pub(super) open: bool,
    pub(super) parties: BTreeMap<PartyId, Party>,
    /// SDUs that arrived before the call was connected.
    pub(super) early: Early<DataUnitBuf>,
}

impl Conn {
    pub(super) fn new(
        owner: (UserId, ConnId),
        phase: Phase,
        called: AtmAddress,
        (sap, qos): (Sap, Qos),
    ) -> Self {
        Self {
            owner: Some(owner),
            phase,
            calling: None,
            called,
            sap,
            qos,
            multipoint: false,
            outgoing: true,
            choice: false,
            permanent: false,
            local: None,
            said: UserData::default(),
            aal: AalType::Aal5,
            vc: None,
            released: None,
            open: false,
            parties: BTreeMap::new(),
            early: Early::default(),
        }
    }
    pub(super) fn info(&self) -> CallInfo {
        CallInfo {
            owner: self.owner,
            phase: self.phase,
            vc: self.vc,
            outgoing: self.outgoing,
            calling: self.calling,
            called: self.called,
            permanent: self.permanent,
            blli: self.sap.blli,
            bhli: self.sap.bhli,
            qos: self.qos,
            parties: self.parties.len(),
            multipoint: self.multipoint,
        }
    }
}

/// Connections by call, and those of them that may have changed.
#[derive(Debug, Default)]
pub(super) struct Conns {
    /// Boxes, because a map moves its rows, and takes the memory of eleven of them for one.
    all: BTreeMap<CallId, Box<Conn>>,
    changes: Changes<CallId>,
}

impl Deref for Conns {
    type Target = BTreeMap<CallId, Box<Conn>>;
    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl Conns {
    pub(super) fn get_mut(&mut self, call: &CallId) -> Option<&mut Conn> {
        let conn = self.all.get_mut(call)?;
        self.changes.note(*call);
        Some(conn)
    }
    pub(super) fn insert(&mut self, call: CallId, conn: Conn) {
        self.all.insert(call, Box::new(conn));
        self.changes.note(call);
    }
    pub(super) fn remove(&mut self, call: &CallId) -> Option<Box<Conn>> {
        self.changes.note(*call);
        self.all.remove(call)
    }
    pub(super) fn take_changes(&mut self) -> Changes<CallId> {
        self.changes.take()
    }
}

impl Signalling {
    /// True if a user may have another connection. Connections that are being released count for all users together.
    pub(super) fn has_room(&self, user: UserId) -> bool {
        let limits = &self.config.limits;
        let all = limits.users.saturating_mul(limits.calls_per_user);
        let own = self.users.get(&user).copied().unwrap_or_default();
        own < limits.calls_per_user && self.conns.len() < all
    }
    pub(super) fn insert(&mut self, call: CallId, conn: Conn) {
        if let Some(owner) = conn.owner {
            self.ids.insert(owner, call);
            if let Some(count) = self.users.get_mut(&owner.0) {
                *count += 1;
            }
        }
        self.conns.insert(call, conn);
    }
    /// Takes a connection from its user.
    pub(super) fn take_from(&mut self, owner: (UserId, ConnId)) {
        if self.ids.remove(&owner).is_some()
            && let Some(count) = self.users.get_mut(&owner.0)
        {
            *count -= 1;
        }
    }
    /// An id below [`CallId::INCOMING`] that no connection has.
    pub(super) fn new_call_id(&mut self) -> CallId {
        loop {
            let id = CallId(self.next_call);
            self.next_call = (self.next_call + 1) % CallId::INCOMING;
            if !self.conns.contains_key(&id) {
                return id;
            }
        }
    }
    /// An id from [`ConnId::INCOMING`] upwards that the user does not know.
    pub(super) fn new_conn_id(&mut self, user: UserId) -> ConnId {
        loop {
            let conn = ConnId(ConnId::INCOMING | self.next_conn);
            self.next_conn = (self.next_conn + 1) % ConnId::INCOMING;
            if !self.ids.contains_key(&(user, conn)) {
                return conn;
            }
        }
    }

    /// True if a connection may have this label.
    pub(super) fn is_free(&self, vc: Vc) -> bool {
        let reserved = vc.vpi == 0 && vc.vci < Vc::FIRST_USER_VCI;
        !reserved && !self.labels.contains_key(&vc)
    }
    /// Opens the VC of a connection.
    pub(super) fn open(&mut self, call: CallId, vc: Vc) {
        if let Some(conn) = self.conns.get_mut(&call).filter(|conn| !conn.open) {
            (conn.open, conn.vc) = (true, Some(vc));
            let Qos { tx, rx } = conn.qos;
            self.labels.insert(vc, call);
            self.outputs.push_back(Output::OpenVc { vc, tx, rx });
        }
    }
    /// Closes the VC of a connection.
    pub(super) fn close(&mut self, call: CallId) {
        let Some(conn) = self.conns.get_mut(&call) else {
            return;
        };
        for sdu in conn.early.take() {
            self.outputs.push_back(Output::Undelivered(sdu));
        }
        if let Some(vc) = conn.vc.filter(|_| conn.open) {
            conn.open = false;
            self.labels.remove(&vc);
            self.outputs.push_back(Output::CloseVc { vc });
            let text = Words::later(move |f| write!(f, "connection {vc} closed"));
            self.trace(Trace::detail("signalling.close", text).with_value("vc", vc));
        }
    }
    /// The connection can carry data from now on.
    pub(super) fn usable(&mut self, call: CallId, vc: Vc, data: UserData) {
        self.open(call, vc);
        let Some(known) = self.conns.get_mut(&call) else {
            return;
        };
        let Some((user, conn)) = known.owner else {
            return;
        };
        known.phase = Phase::Connected;
        if known.multipoint && known.outgoing {
            known.parties.insert(FIRST_PARTY, Party::Active);
        }
        let (permanent, outgoing) = (known.permanent, known.outgoing);
        let other = match outgoing {
            true => Some(known.called),
            false => known.calling,
        };
        let text = Words::later(move |f| match (permanent, other) {
            // Nothing was called, so that there is no address.
            (true, _) => write!(f, "permanent connection {vc} open"),
            (false, Some(other)) => write!(f, "connection {vc} to {other} open"),
            (false, None) => write!(f, "connection {vc} to an unknown caller open"),
        });
        let (early, qos) = (known.early.take(), known.qos);
        self.trace(Trace::detail("signalling.open", text).with_value("vc", vc));
        let heard = self.heard(call, data);
        self.tell_user(user, AtmEvent::Connected { conn, vc, qos }, heard);
        for sdu in early {
            self.outputs.push_back(Output::Received { user, conn, sdu });
        }
    }
    /// The SDUs that are held ([`Self::hold`]).
    pub fn early(&self) -> impl Iterator<Item = &DataUnitBuf> {
        self.conns.values().flat_map(|conn| conn.early.iter())
    }
    /// Holds an SDU of a caller that is quicker than the network's or the daemon's word that the call is up; false if
    /// no accepted call has this label, or if there is no room. A user that got the SDU at once would answer at once,
    /// and may not send yet.
    pub fn hold(&mut self, vc: Vc, sdu: DataUnit<'_>) -> bool {
        let call = self.labels.get(&vc);
        let Some(conn) = call.and_then(|call| self.conns.get_mut(call)) else {
            return false;
        };
        conn.phase == Phase::Accepted && conn.early.hold(|| sdu.first(usize::MAX))
    }

    /// The connection is over for its user, who is told; the network still has its label.
    pub(super) fn clearing(&mut self, call: CallId, end: impl Into<End>) {
        let End { cause, data } = end.into();
        self.close(call);
        let heard = self.heard(call, data);
        let Some(known) = self.conns.get_mut(&call) else {
            return;
        };
        known.phase = Phase::Releasing;
        if let Some((user, conn)) = known.owner.take() {
            self.take_from((user, conn));
            self.tell_user(user, AtmEvent::Released { conn, cause }, heard);
        }
    }
    /// The connection has ended and its label is free. Its user is told, if it has one.
    pub(super) fn gone(&mut self, call: CallId, end: impl Into<End>) {
        let peer = self.peer(call);
        let end = end.into();
        let cause = end.cause;
        self.clearing(call, end);
        self.conns.remove(&call);
        self.end_peer(peer, cause.into());
    }
    /// The network has confirmed the release of a call.
    pub(super) fn confirmed(&mut self, call: CallId, end: End, now: Instant) {
        let asked = self.conns.get(&call);
        let asked = asked.and_then(|known| Some((known.released?, known.vc?)));
        self.gone(call, end);
        if let Some((since, vc)) = asked {
            let micros = now.since(since).as_micros() as u64;
            let text = Words::later(move |f| {
                write!(f, "release of connection {vc} confirmed after {micros} us")
            });
            let trace = Trace::detail("signalling.released", text).with_value("vc", vc);
            self.trace(trace.with_value("teardown_us", micros));
        }
    }
    /// Calls that have waited too long for the link fail.
    pub(super) fn expire_waiting(&mut self, now: Instant) {
        while let Some((_, call)) = self.waiting.pop_front_if(|(until, _)| *until <= now) {
            self.counters.no_link += 1;
            self.gone(call, Cause::NETWORK_OUT_OF_ORDER);
        }
    }
    /// The daemon says that a leaf has ended.
    pub(super) fn party_gone(&mut self, call: CallId, party: PartyId, end: End) {
        let Some(known) = self.conns.get_mut(&call) else {
            return;
        };
        match (known.parties.remove(&party), known.owner) {
            (Some(Party::Adding | Party::Active), Some((user, conn))) => {
                let End { cause, data } = end;
                let heard = self.heard(call, data);
                self.tell_user(user, AtmEvent::PartyGone { conn, party, cause }, heard);
            }
            // The user has dropped the leaf itself.
            (Some(_), _) => {}
            (None, _) => self.seat.stale(),
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
