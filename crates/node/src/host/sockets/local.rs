//! Calls inside the host: each end refers to the other, and PDUs go from descriptor to descriptor.
//!
//! Nothing is segmented and nothing is lost: what the other descriptor has not taken yet is bounded by [`PDUS`] and
//! [`OCTETS`], and beyond that `write` waits. A contract limits the length of SDUs, as everywhere; its rates count for
//! the network alone, as in the local case of a kernel. A program of the lab file takes each PDU at once. One that
//! writes has its PDUs in a queue until the input that led to them has been handled, so that two of them that answer
//! each other do not call each other without end.

use super::{Output, SocketLayer, SocketRef, State, ToPrograms, Writing};
use crate::atm::{Sdus, Written};
use crate::ip::books::SocketEvent;
use crate::signalling::Heard;
use aerostat_proto::ConnId;
use aerostat_wire::Qos;

/// PDUs of one end that the other descriptor has not taken, above which the next one waits.
const PDUS: usize = 32;
/// Octets of such PDUs, above which the next one waits. The driver has room for these and what a program writes at
/// once.
const OCTETS: usize = 128 * 1024;

/// Knowledge of a socket about the other end of its call.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    peer: SocketRef,
    /// PDUs and octets that this end has written, and the other descriptor has not taken.
    ahead: (usize, usize),
}

impl End {
    /// True if another PDU may be written.
    pub(super) const fn has_room(&self) -> bool {
        self.ahead.0 < PDUS && self.ahead.1 < OCTETS
    }
}

impl SocketLayer {
    /// A call inside the host can be used.
    pub(super) fn joined(&mut self, conn: ConnId, peer: ConnId, agreed: Qos, heard: Heard) {
        let ends = self.conns.get(&conn).zip(self.conns.get(&peer));
        let Some((&at, &peer)) = ends else {
            return;
        };
        if let Some(socket) = self.get_mut(at) {
            let ahead = (0, 0);
            socket.local_end = Some(End { peer, ahead });
            self.connected(conn, None, agreed, heard);
        }
    }

    /// A program wrote PDUs on a connection inside the host, which its contract allows.
    pub(super) fn pass(&mut self, at: SocketRef, sdus: Sdus) {
        let Some(to) = self.get(at).and_then(|socket| socket.local_end) else {
            return;
        };
        let (to, mark) = (to.peer, self.mark(at));
        let (pdus, octets) = (sdus.count(), sdus.octets());
        let sent = mark.map(|mark| SocketEvent::Sent {
            mark,
            octets: octets as u32,
        });
        self.out.extend(sent.map(Output::Socket));
        if let Some(program) = self.get(to).and_then(|reader| reader.program) {
            for sdu in sdus.iter() {
                let received = mark.map(|mark| SocketEvent::Received {
                    mark,
                    program,
                    octets: sdu.len() as u32,
                });
                self.out.extend(received.map(Output::Socket));
                self.read_by_program(to, sdu);
            }
            return;
        }
        let left = mark.map(|mark| Output::Socket(SocketEvent::Left(mark)));
        self.out.extend(left);
        if let Some(end) = self
            .get_mut(at)
            .and_then(|socket| socket.local_end.as_mut())
        {
            end.ahead.0 += pdus;
            end.ahead.1 += octets;
        }
        if let Some(reader) = self.get_mut(to) {
            reader.received.add(pdus as u64, octets as u64);
        }
        self.tell(ToPrograms::Deliver {
            socket: to,
            sdus,
            local: true,
        });
    }

    /// Passes what programs of the lab file have written inside the host.
    pub(super) fn pass_waiting(&mut self) {
        while let Some((at, sdus)) = self.inside.pop_front() {
            let Some(socket) = self.get(at) else {
                continue;
            };
            let tx = socket.qos.qos.tx;
            let fits = tx.max_sdu == 0 || sdus.octets() <= tx.max_sdu.into();
            let taken = socket.state == State::Connected && tx.category.is_some() && fits;
            if taken {
                self.pass(at, sdus);
            }
            self.written(
                at,
                match taken {
                    true => Written::Taken,
                    false => Written::Refused,
                },
            );
        }
    }

    /// The descriptor of this socket has taken PDUs of the other end.
    pub(super) fn taken(&mut self, at: SocketRef, pdus: usize, octets: usize) {
        let writer = self.get(at).and_then(|socket| socket.local_end);
        let Some(writer) = writer.map(|end| end.peer) else {
            return;
        };
        let Some(socket) = self.get_mut(writer) else {
            return;
        };
        let Some(end) = &mut socket.local_end else {
            return;
        };
        end.ahead.0 = end.ahead.0.saturating_sub(pdus);
        end.ahead.1 = end.ahead.1.saturating_sub(octets);
        let open = socket.state == State::Connected && matches!(socket.writing, Writing::Idle);
        if !end.has_room() || !open {
            return;
        }
        if socket.program.is_some() {
            self.write_next(writer);
        } else if core::mem::take(&mut socket.held) {
            self.tell(ToPrograms::Room { socket: writer });
        }
    }
}
