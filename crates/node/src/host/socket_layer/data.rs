//! PDUs of sockets: to the adapter, and to programs.

use super::{SocketLayer, SocketRef, State, ToPrograms, Writing};
use crate::atm::Written;
use crate::host::writes::FromAdapter;
use aerostat_proto::{AtmRequest, Cause, ConnId, Instant};
use aerostat_wire::AalType;
use aerostat_wire::aal0::UserCell;

/// Protocol error, unspecified: the program sends PDUs that its contract forbids. Source: Q.850 §2.2.7.
const PROTOCOL_ERROR: Cause = Cause(111);

impl SocketLayer {
    /// The AAL of a connection of its sockets.
    pub(in crate::host) fn aal(&self, conn: ConnId) -> AalType {
        let socket = self.conns.get(&conn).and_then(|at| self.get(*at));
        socket.map_or(AalType::Aal5, |socket| socket.qos.aal)
    }

    /// A program wrote a PDU.
    pub(super) fn write(&mut self, at: SocketRef, sdu: Vec<u8>, now: Instant) {
        let Some(socket) = self.get_mut(at) else {
            return;
        };
        if sdu.is_empty() && socket.sent.0 == 0 {
            // A program that does not wait for its call has filled its descriptor with such packets.
            return;
        }
        let (aal, tx, octets) = (socket.qos.aal, socket.qos.qos.tx, sdu.len());
        let sends = tx.category.is_some() && octets > 0;
        if socket.state != State::Connected || !matches!(socket.writing, Writing::Idle) || !sends {
            socket.refused += 1;
            return;
        }
        let most = match tx.max_sdu {
            0 => usize::from(u16::MAX),
            most => usize::from(most),
        };
        if octets > most || aal == AalType::Aal0 && UserCell::decode(&sdu).is_err() {
            socket.refused += 1;
            return self.end(at, PROTOCOL_ERROR, now);
        }
        if socket.local_end.is_some() {
            return self.pass(at, sdu);
        }
        if let Some(conn) = socket.conn {
            socket.writing = Writing::Asked(octets);
            self.request(AtmRequest::Send { conn, sdu });
        }
    }

    /// The adapter has something about PDUs of a socket.
    pub(super) fn adapter(&mut self, event: FromAdapter) {
        match event {
            FromAdapter::Written { conn, written } => self.written(conn, written),
            FromAdapter::Room { conn } => self.room(conn),
            FromAdapter::Damaged { conn } => {
                if let Some(at) = self.conns.get(&conn).copied()
                    && let Some(socket) = self.get_mut(at)
                {
                    socket.damaged += 1;
                }
            }
            FromAdapter::Unsent { vc, pdus, closed } => {
                let at = match closed {
                    true => self.labels.remove(&vc),
                    false => self.labels.get(&vc).copied(),
                };
                if let Some(socket) = at.and_then(|at| self.get_mut(at)) {
                    socket.unsent += pdus;
                }
            }
        }
    }

    fn written(&mut self, conn: ConnId, written: Written) {
        let Some(at) = self.conns.get(&conn).copied() else {
            return;
        };
        let Some(socket) = self.get_mut(at) else {
            return;
        };
        let Writing::Asked(octets) = socket.writing else {
            return;
        };
        socket.writing = match written {
            Written::Taken => {
                socket.sent.0 += 1;
                socket.sent.1 += octets as u64;
                Writing::Idle
            }
            Written::Refused => {
                socket.refused += 1;
                Writing::Idle
            }
            Written::Full(sdu) => Writing::Blocked(sdu),
        };
        self.went_on(at);
    }

    /// If the PDU has been taken, the next one may come; or, at the end, all of them have to leave.
    fn went_on(&mut self, at: SocketRef) {
        let Some(socket) = self.get_mut(at) else {
            return;
        };
        if !matches!(socket.writing, Writing::Idle) {
            return;
        }
        if socket.state == State::Ending {
            let flush = socket.vc.map(super::Output::Flush);
            self.out.extend(flush);
        } else if std::mem::take(&mut socket.held) {
            self.tell(ToPrograms::Room { socket: at });
        }
    }

    fn room(&mut self, conn: ConnId) {
        let Some(at) = self.conns.get(&conn).copied() else {
            return;
        };
        let Some(socket) = self.get_mut(at) else {
            return;
        };
        match std::mem::take(&mut socket.writing) {
            Writing::Blocked(sdu) => {
                socket.writing = Writing::Asked(sdu.len());
                self.request(AtmRequest::Send { conn, sdu });
            }
            // Everything has left.
            Writing::Idle if socket.state == State::Ending => {
                let cause = socket.last;
                self.release(at, cause);
            }
            other => socket.writing = other,
        }
    }

    /// A PDU arrived.
    pub(super) fn received(&mut self, conn: ConnId, sdu: &[u8]) {
        let Some(at) = self.conns.get(&conn).copied() else {
            return;
        };
        let Some(socket) = self.get_mut(at) else {
            return;
        };
        socket.received.0 += 1;
        socket.received.1 += sdu.len() as u64;
        // The program of a socket that ends does not read any more.
        if socket.state == State::Ending {
            socket.unread += 1;
            return;
        }
        let sdu = sdu.to_vec();
        self.tell(ToPrograms::Deliver {
            socket: at,
            sdu,
            local: false,
        });
    }
}
