//! Calls that do not leave the host: a user calls a listener of its own.
//!
//! The two ends of such a call refer to each other, and no label, cell or message of the network belongs to it. The
//! manager decides about it nevertheless: the daemon is asked for each call, so that a host without a daemon makes
//! none. If the manager takes time ([`Signalling::set_paced`]), each step of the call waits until the manager has had
//! that time ([`Errand`]). The link need not be up. Source: Black and Crosby, Experience and Results from the
//! Implementation of an ATM Socket Family (1993), §2 and §4.
//!
//! Only the sockets of programs ([`Input::Sockets`](super::Input::Sockets)) have such calls, and pass SDUs from one end
//! to the other themselves. A point-to-multipoint call goes through the network, whose switches copy.

use super::connections::Conn;
use super::user_data::End;
use super::{Output, Phase, Signalling, UserId};
use aerostat_proto::sigd::ToSigd;
use aerostat_proto::uni::CallId;
use aerostat_proto::{AtmEvent, Cause, Instant, Trace};
use aerostat_wire::q2931::{MessageType, UserData};
use aerostat_wire::{AtmAddress, Qos};

/// Other party of a local call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Local {
    /// The daemon has not decided yet.
    Asked,
    /// The other end.
    Peer(CallId),
}

/// Errand of a manager for a call inside the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errand {
    /// It passes the call to the listener.
    SetUp(CallId),
    /// It passes the answer to the caller.
    Connect(CallId),
    /// It passes the end of the call to the other end.
    Release(CallId, Cause),
}

impl Errand {
    /// The message that would do this between two hosts.
    #[must_use]
    pub const fn message(self) -> MessageType {
        match self {
            Self::SetUp(_) => MessageType::SETUP,
            Self::Connect(_) => MessageType::CONNECT,
            Self::Release(..) => MessageType::RELEASE,
        }
    }
}

impl Signalling {
    /// The manager takes time: [`Output::Manage`] asks for it.
    pub const fn set_paced(&mut self) {
        self.paced = true;
    }

    /// Gives the manager work, which is done at once if it takes no time.
    pub(super) fn manage(&mut self, errand: Errand, now: Instant) {
        match self.paced {
            true => self.outputs.push_back(Output::Manage(errand)),
            false => self.managed(errand, now),
        }
    }

    /// The manager has done this. The call may have ended meanwhile.
    pub(super) fn managed(&mut self, errand: Errand, now: Instant) {
        let phase = |call: &CallId| self.conns.get(call).map(|conn| conn.phase);
        match errand {
            Errand::SetUp(call) => {
                if phase(&call) == Some(Phase::Calling) {
                    self.tell(ToSigd::Join { call }, now);
                }
            }
            Errand::Connect(callee) => {
                let calling = |caller: &CallId| phase(caller) == Some(Phase::Calling);
                let caller = self.peer(callee).filter(calling);
                if let (Some(caller), Some(Phase::Accepted)) = (caller, phase(&callee)) {
                    self.accept_local(callee, caller);
                }
            }
            Errand::Release(call, cause) => self.released_local(call, cause, now),
        }
    }

    /// True if a call of this user stays in the host: the user listens at the called address itself, or no user does
    /// and the address is one of this host.
    pub(super) fn is_local(&self, user: UserId, made: &Conn) -> bool {
        if made.multipoint || self.sockets != Some(user) {
            return false;
        }
        let host = |address: AtmAddress| address.with_selector(0);
        let own = made
            .calling
            .is_some_and(|own| host(own) == host(made.called));
        match self.taker(made) {
            Some((taker, _)) => taker == user,
            None => own && !self.listeners.has(made.called),
        }
    }

    /// The listener for a call of this host.
    fn taker(&self, made: &Conn) -> Option<(UserId, aerostat_wire::Sap)> {
        let longest = made.qos.tx.max_sdu.max(made.qos.rx.max_sdu);
        let bllis = made.sap.blli.into_iter().collect();
        self.listeners
            .find(made.called, bllis, made.sap.bhli, longest)
    }

    /// True if this call can be given to the daemon now: a local one needs no link.
    pub(super) fn can_set_up(&self, local: bool) -> bool {
        match local {
            true => self.presence.serves(),
            false => self.up,
        }
    }

    /// The daemon serves: local calls that have waited for it are made.
    pub(super) fn set_up_local(&mut self, now: Instant) {
        let is_local = |call: &CallId| self.conns.get(call).is_some_and(|c| c.local.is_some());
        let calls = self.waiting.iter().map(|(_, call)| *call);
        let calls: Vec<CallId> = calls.filter(is_local).collect();
        self.waiting.retain(|(_, call)| !calls.contains(call));
        for call in calls {
            self.set_up(call, now);
        }
    }

    /// The daemon lets a local call be made: its listener is offered the call.
    pub(super) fn join(&mut self, caller: CallId) {
        let Some(made) = self.conns.get(&caller) else {
            return self.seat.stale();
        };
        if made.local != Some(Local::Asked) || made.phase != Phase::Calling {
            return self.seat.refuse();
        }
        let taken = match self.taker(made) {
            Some((user, sap)) if self.sockets == Some(user) => match self.has_room(user) {
                true => Ok((user, sap)),
                false => Err(Cause::RESOURCES),
            },
            // The listener has gone since, or never existed.
            _ => Err(Cause::INCOMPATIBLE),
        };
        let (user, sap) = match taken {
            Ok(taken) => taken,
            Err(cause) => {
                let text = format!("call to {} refused: {cause}", made.called);
                self.trace(Trace::detail("signalling.refused", text));
                match cause {
                    Cause::INCOMPATIBLE => self.counters.incompatible += 1,
                    _ => self.counters.refused += 1,
                }
                return self.gone(caller, cause);
            }
        };
        let (calling, called) = (made.calling, made.called);
        let (own, qos, said) = (made.sap, made.qos.reversed(), made.said.clone());
        let aal = made.aal;
        let conn = self.new_conn_id(user);
        let callee = self.new_call_id();
        let offered = Conn {
            calling,
            outgoing: false,
            aal,
            local: Some(Local::Peer(caller)),
            ..Conn::new((user, conn), Phase::Offered, called, (own, qos))
        };
        self.insert(callee, offered);
        if let Some(made) = self.conns.get_mut(&caller) {
            made.local = Some(Local::Peer(callee));
        }
        self.counters.incoming += 1;
        let heard = self.heard(callee, said);
        let event = AtmEvent::Incoming {
            conn,
            calling,
            called,
            sap,
            qos,
            multipoint: false,
        };
        self.tell_user(user, event, heard);
    }

    /// The other end of a local call.
    pub(super) fn peer(&self, call: CallId) -> Option<CallId> {
        match self.conns.get(&call)?.local? {
            Local::Asked => None,
            Local::Peer(peer) => Some(peer),
        }
    }

    /// The called side of a local call has accepted it: both ends can send.
    fn accept_local(&mut self, callee: CallId, caller: CallId) {
        let Some(known) = self.conns.get_mut(&callee) else {
            return;
        };
        let (agreed, mut said): (Qos, _) = (known.qos, core::mem::take(&mut known.said));
        let ends = [
            (callee, caller, agreed),
            (caller, callee, agreed.reversed()),
        ];
        for (call, other, qos) in ends {
            let peer = self.conns.get(&other).and_then(|conn| conn.owner);
            let Some(known) = self.conns.get_mut(&call) else {
                continue;
            };
            (known.phase, known.qos) = (Phase::Connected, qos);
            if let (Some((_, conn)), Some((_, peer))) = (known.owner, peer) {
                // The caller hears what the called side says with its answer.
                let data = if call == caller {
                    core::mem::take(&mut said)
                } else {
                    UserData::default()
                };
                let heard = self.heard(call, data);
                self.outputs.push_back(Output::Joined {
                    conn,
                    peer,
                    qos,
                    heard,
                });
            }
        }
        if let Some(known) = self.conns.get(&caller) {
            let text = format!("connection to {} inside the host open", known.called);
            self.trace(Trace::detail("signalling.open", text));
        }
    }

    /// One end of a local call has ended: so does the other.
    pub(super) fn end_peer(&mut self, peer: Option<CallId>, end: End) {
        if let Some(peer) = peer {
            if let Some(conn) = self.conns.get_mut(&peer) {
                // Its own peer has gone already.
                conn.local = Some(Local::Asked);
            }
            self.gone(peer, end);
            self.trace(Trace::detail(
                "signalling.close",
                "connection inside the host closed",
            ));
        }
    }

    /// The release of one end of a local call is through.
    fn released_local(&mut self, call: CallId, cause: Cause, now: Instant) {
        let releasing = self.conns.get(&call).map(|conn| conn.phase) == Some(Phase::Releasing);
        if !releasing {
            return;
        }
        let peer = self.peer(call);
        let Some(gone) = self.conns.remove(&call) else {
            return;
        };
        let data = gone.said;
        self.end_peer(peer, End { cause, data });
        if let Some(since) = gone.released {
            let micros = now.since(since).as_micros();
            let text = format!("release of a connection inside the host done after {micros} us");
            let trace = Trace::detail("signalling.released", text);
            self.trace(trace.with("vc", "local").with("teardown_us", micros));
        }
    }
}
