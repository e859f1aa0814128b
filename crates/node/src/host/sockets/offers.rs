//! Listeners, and the calls that they are offered.

use super::requests::{full, no_offer, says_nothing};
use super::{ACCEPT, Asked, OFFER, Socket, SocketLayer, SocketRef, State, Timed, ToPrograms, hex};
use crate::signalling::Heard;
use aerostat_proto::socket::{Failure, Offer, UserData};
use aerostat_proto::{AtmRequest, Cause, ConnId, Instant};
use aerostat_wire::{AtmAddress, ConnectionQos, Qos, Sap};

/// A call that waits for the answer of a program.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) listener: SocketRef,
    pub(super) offer: u32,
    pub(super) caller: Option<AtmAddress>,
    called: AtmAddress,
    sap: Sap,
    pub(super) qos: ConnectionQos,
    /// User data of the caller; `None` if messages about this call carry no user data.
    carried: Option<UserData>,
}

impl Waiting {
    /// The socket of the call once it is accepted, on these terms or as offered.
    pub(super) fn accepted(self, conn: ConnId, terms: Option<Qos>, asked: Option<Asked>) -> Socket {
        Socket {
            state: State::Accepting,
            local: Some(self.called),
            peer: self.caller,
            sap: self.sap,
            qos: ConnectionQos {
                aal: self.qos.aal,
                qos: terms.unwrap_or(self.qos.qos),
            },
            conn: Some(conn),
            asked,
            carries: self.carried.is_some(),
            heard: self.carried.unwrap_or_default(),
            ..Socket::new(asked.map(|asked| asked.session))
        }
    }
}

impl SocketLayer {
    /// A call for one of the listeners.
    pub(super) fn offered(
        &mut self,
        conn: ConnId,
        (caller, called): (Option<AtmAddress>, AtmAddress),
        (sap, qos): (Sap, Qos),
        multipoint: bool,
        Heard { carried, aal }: Heard,
        now: Instant,
    ) {
        let offer = self.next_offer;
        let qos = ConnectionQos { aal, qos };
        let listener = self.listeners.get(&(called, sap)).copied();
        let socket = listener.and_then(|at| Some((at, self.get_mut(at)?)));
        let Some((at, socket)) = socket else {
            let cause = Cause::INCOMPATIBLE;
            return self.request(AtmRequest::Release { conn, cause });
        };
        let waiting = Waiting {
            listener: at,
            offer,
            caller,
            called,
            sap,
            qos,
            carried: carried.clone(),
        };
        if let Some(program) = socket.program {
            return self.offered_to_program(program, conn, waiting, multipoint);
        }
        if socket.offers.len() >= socket.backlog {
            socket.missed += 1;
            let cause = Cause::BUSY;
            return self.request(AtmRequest::Release { conn, cause });
        }
        socket.offers.insert(offer, conn);
        self.next_offer = offer.wrapping_add(1).max(1);
        self.offers.insert(conn, waiting);
        self.deadlines
            .set(Timed::Offer(at, offer), Some(now + OFFER));
        let offer = Offer {
            offer,
            caller: caller.map_or_else(String::new, hex),
            called: hex(called),
            sap: sap.to_string(),
            qos: qos.to_string(),
            multipoint,
            user_data: carried.unwrap_or_default(),
        };
        self.tell(ToPrograms::Offer { socket: at, offer });
    }

    /// Takes an offer from its listener.
    fn take_offer(&mut self, listener: SocketRef, offer: u32) -> Option<(ConnId, Waiting)> {
        let conn = self.get_mut(listener)?.offers.remove(&offer)?;
        self.deadlines.set(Timed::Offer(listener, offer), None);
        Some((conn, self.offers.remove(&conn)?))
    }

    /// The contract of an offer, as this end sees it.
    pub(super) fn offered_qos(&self, listener: SocketRef, offer: u32) -> Option<ConnectionQos> {
        let conn = self.get(listener)?.offers.get(&offer)?;
        Some(self.offers.get(conn)?.qos)
    }

    /// An answer with user data needs a call whose messages carry them.
    pub(super) fn may_say(
        &self,
        (listener, offer): (SocketRef, u32),
        data: &UserData,
    ) -> Result<(), Failure> {
        let conn = self.get(listener).and_then(|at| at.offers.get(&offer));
        let waiting = conn.and_then(|conn| self.offers.get(conn));
        let mute = waiting.is_some_and(|waiting| waiting.carried.is_none());
        match mute && !data.is_empty() {
            true => Err(says_nothing()),
            false => Ok(()),
        }
    }

    /// The program accepts an offer, on these terms or as offered, and says something.
    pub(super) fn accept(
        &mut self,
        asked: Asked,
        (listener, offer): (SocketRef, u32),
        (terms, said): (Option<Qos>, UserData),
        now: Instant,
    ) -> Result<(), Failure> {
        let (conn, waiting) = self.take_offer(listener, offer).ok_or_else(no_offer)?;
        let socket = waiting.accepted(conn, terms, Some(asked));
        let Some(at) = self.add(socket) else {
            let cause = Cause::RESOURCES;
            self.request(AtmRequest::Release { conn, cause });
            return Err(full());
        };
        self.conns.insert(conn, at);
        self.deadlines.set(Timed::Socket(at), Some(now + ACCEPT));
        self.request_saying(AtmRequest::Accept { conn, terms }, said);
        Ok(())
    }

    /// The program refuses an offer, and says something: false if there is no such offer.
    pub(super) fn refuse(
        &mut self,
        listener: SocketRef,
        offer: u32,
        cause: Cause,
        said: UserData,
    ) -> bool {
        let taken = self.take_offer(listener, offer);
        if let Some((conn, _)) = &taken {
            let conn = *conn;
            self.request_saying(AtmRequest::Release { conn, cause }, said);
        }
        taken.is_some()
    }

    /// No answer came in time.
    pub(super) fn unanswered(&mut self, listener: SocketRef, offer: u32) {
        if self.refuse(listener, offer, Cause::NO_RESPONSE, UserData::default())
            && let Some(socket) = self.get_mut(listener)
        {
            socket.missed += 1;
        }
    }

    /// The caller has gone before the answer.
    pub(super) fn withdrawn(&mut self, conn: ConnId) {
        let at = self.offers.get(&conn).map(|one| (one.listener, one.offer));
        if let Some((listener, offer)) = at {
            self.take_offer(listener, offer);
        }
    }

    /// The socket is no listener any more: its offers are refused.
    pub(super) fn stop_listening(&mut self, at: SocketRef) {
        let Some(socket) = self.get_mut(at) else {
            return;
        };
        let (sap, state) = (
            socket.sap,
            std::mem::replace(&mut socket.state, State::Idle),
        );
        let address = socket.local.filter(|_| state == State::Listening);
        let offers: Vec<u32> = socket.offers.keys().copied().collect();
        for offer in offers {
            self.refuse(at, offer, Cause::NO_RESPONSE, UserData::default());
        }
        if let Some(address) = address {
            self.listeners.remove(&(address, sap));
            self.request(AtmRequest::Unlisten { address, sap });
        }
    }
}
