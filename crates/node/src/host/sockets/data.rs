//! PDUs of sockets: to the adapter, and to programs.

use super::{Output, SocketLayer, SocketRef, State, ToPrograms, Writing};
use crate::atm::{Sdus, Written};
use crate::host::sockets::adapter::FromAdapter;
use aerostat_proto::{Cause, ConnId, Instant};
use aerostat_wire::AalType;
use aerostat_wire::aal0::UserCell;

/// Limit of PDUs that a program writes at once.
const PDUS: usize = 32;
/// Limit of octets of such PDUs, if they are more than one.
const OCTETS: usize = 128 * 1024;

/// Protocol error, unspecified: the program sends PDUs that its contract forbids. Source: Q.850 §2.2.7.
const PROTOCOL_ERROR: Cause = Cause(111);

impl SocketLayer {
    /// The AAL of a connection of its sockets.
    pub(in crate::host) fn aal(&self, conn: ConnId) -> AalType {
        let socket = self.conns.get(&conn).and_then(|at| self.get(*at));
        socket.map_or(AalType::Aal5, |socket| socket.qos.aal)
    }

    /// How many PDUs of a socket's program may be given at once: so many that a descriptor that is read without a pause
    /// is read in few calls, and few enough for 128 KiB.
    #[must_use]
    pub fn most(&self, at: SocketRef) -> usize {
        let longest = self.get(at).map_or(0, |socket| socket.qos.qos.tx.max_sdu);
        let longest = match longest {
            0 => usize::from(u16::MAX),
            longest => longest.into(),
        };
        (OCTETS / longest).clamp(1, PDUS)
    }

    /// A program wrote PDUs.
    pub(super) fn write(&mut self, at: SocketRef, sdus: Sdus, now: Instant) {
        let Some(socket) = self.get_mut(at) else {
            return;
        };
        if sdus.octets() == 0 && socket.sent.pdus == 0 {
            // A program that does not wait for its call has filled its descriptor with such packets.
            return;
        }
        let (aal, tx) = (socket.qos.aal, socket.qos.qos.tx);
        let (pdus, octets, longest) = (sdus.count() as u64, sdus.octets(), sdus.first().len());
        let sends = tx.category.is_some() && octets > 0;
        let most = match tx.max_sdu {
            0 => usize::from(u16::MAX),
            most => usize::from(most),
        };
        let bad = |sdu: &[u8]| UserCell::decode(sdu).is_err();
        let keeps = longest <= most && (aal != AalType::Aal0 || !sdus.iter().any(bad));
        if socket.state == State::Ended && socket.was_open() && sends && keeps {
            // The call ended while they waited in the program's descriptor.
            return socket.count_unsent(&sdus);
        }
        if socket.state != State::Connected || !matches!(socket.writing, Writing::Idle) || !sends {
            socket.refused += pdus;
            return;
        }
        if !keeps {
            socket.refused += pdus;
            return self.end(at, PROTOCOL_ERROR, now);
        }
        if socket.local_end.is_some() {
            socket.sent.add(pdus, octets as u64);
            return self.pass(at, sdus);
        }
        self.give(at, sdus);
    }

    /// Gives PDUs to the adapter, or to the other end inside the host. [`Self::written`] has the answer.
    pub(super) fn give(&mut self, at: SocketRef, sdus: Sdus) {
        let now = self.programs.now;
        let Some(entry) = self.table.get_mut(at) else {
            return;
        };
        let Some(socket) = entry.socket.as_deref_mut() else {
            return;
        };
        let Some(conn) = socket.conn else {
            return;
        };
        socket.writing = Writing::Asked(sdus.count() as u64, sdus.octets() as u64);
        if let Some(behaviour) = &mut entry.behaviour {
            behaviour.attempt(now);
        }
        match socket.local_end {
            Some(_) => self.inside.push_back((at, sdus)),
            None => self.out.push_back(Output::Write(conn, sdus)),
        }
    }

    /// The adapter has something about PDUs of a socket.
    pub(super) fn adapter(&mut self, event: FromAdapter) {
        match event {
            FromAdapter::Written { conn, written } => {
                if let Some(at) = self.conns.get(&conn).copied() {
                    self.written(at, written);
                }
            }
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

    /// The answer to PDUs of a socket.
    pub(super) fn written(&mut self, at: SocketRef, written: Written) {
        let Some(socket) = self.get_mut(at) else {
            return;
        };
        let Writing::Asked(pdus, octets) = socket.writing else {
            return;
        };
        let (taken, writing) = match written {
            Written::Taken => ((pdus, octets), Writing::Idle),
            Written::Refused => {
                socket.refused += pdus;
                ((0, 0), Writing::Idle)
            }
            Written::Full(rest) => {
                let left = (rest.count() as u64, rest.octets() as u64);
                let taken = (pdus.saturating_sub(left.0), octets.saturating_sub(left.1));
                (taken, Writing::Blocked(rest))
            }
        };
        socket.sent.add(taken.0, taken.1);
        socket.writing = writing;
        match socket.program {
            Some(_) => self.program_went_on(at, taken.0 > 0),
            None => self.went_on(at),
        }
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
            let flush = socket.vc.map(Output::Flush);
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
            Writing::Blocked(sdus) => self.give(at, sdus),
            Writing::Idle if socket.program.is_some() => self.all_has_left(at),
            // Everything has left.
            Writing::Idle if socket.state == State::Ending => {
                let cause = socket.last;
                self.release(at, cause);
            }
            other => socket.writing = other,
        }
    }

    /// PDUs arrived.
    pub(super) fn received(&mut self, conn: ConnId, sdus: Sdus) {
        let Some(at) = self.conns.get(&conn).copied() else {
            return;
        };
        let Some(socket) = self.get_mut(at) else {
            return;
        };
        if socket.program.is_some() {
            return sdus.iter().for_each(|sdu| self.read_by_program(at, sdu));
        }
        socket
            .received
            .add(sdus.count() as u64, sdus.octets() as u64);
        // The program of a socket that ends does not read any more.
        if socket.state == State::Ending {
            socket.unread += sdus.count() as u64;
            return;
        }
        self.tell(ToPrograms::Deliver {
            socket: at,
            sdus,
            local: false,
        });
    }
}
