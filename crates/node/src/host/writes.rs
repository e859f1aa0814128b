//! Writing by programs of a host: the answers of the adapter go back to the program.
//!
//! Two services write: the programs of the lab file ([`sockets`]), and the socket service for programs of the machine
//! ([`socket_layer`]). The first gives a PDU at a time, the other one several of them; both wait for the answer of the
//! adapter ([`FromAdapter`]).

use super::socket_layer::SocketLayer;
use super::{Host, HostEvent, HostOutput, Part, Typed, moves};
use super::{socket_layer, sockets};
use crate::atm::{DataUnit, Mark, Shaping, Written};
use crate::ip::books::SocketEvent;
use crate::signalling::{self, Heard, UserId};
use aerostat_proto::{AtmEvent, ConnId, Instant};
use aerostat_wire::{AalType, Qos, Vc};

/// Answer of the adapter to a service that writes.
#[derive(Debug)]
pub enum FromAdapter {
    /// The result of the PDUs that were sent last on this connection. The next ones are sent only after this.
    Written {
        /// The connection.
        conn: ConnId,
        /// The result.
        written: Written,
    },
    /// The adapter may have room again, or has sent everything ([`HostOutput::Flush`]).
    Room {
        /// The connection.
        conn: ConnId,
    },
    /// A PDU arrived with cells missing or damaged.
    Damaged {
        /// The connection.
        conn: ConnId,
    },
    /// The adapter dropped PDUs that it had accepted.
    Unsent {
        /// The label.
        vc: Vc,
        /// Number of PDUs.
        pdus: u64,
        /// True if the label was closed, false if its link went down.
        closed: bool,
    },
}

/// A service that writes.
#[derive(Clone, Copy, Debug)]
pub(super) enum WriterSlot {
    /// The programs of the lab file.
    Sockets,
    /// The socket service.
    Layer,
}

impl Host {
    /// The service in this slot, if it writes.
    pub(super) fn writes(&self, slot: usize) -> Option<WriterSlot> {
        let is = |at: Option<usize>| at == Some(slot);
        if is(self.sockets.map(Typed::slot)) {
            return Some(WriterSlot::Sockets);
        }
        is(self.layer.map(Typed::slot)).then_some(WriterSlot::Layer)
    }

    /// The service whose program's connection has this label; `None` if no program uses the label.
    fn writer(&self, vc: Vc) -> Option<(WriterSlot, ConnId)> {
        let (user, conn) = self.signalling.receiver(vc)?;
        Some((self.writes(user.0.into())?, conn))
    }

    /// The socket service and its connection with this label.
    pub(super) fn layer_of(&self, vc: Vc) -> Option<(Typed<SocketLayer>, ConnId)> {
        let layer = self.layer?;
        let (slot, conn) = self.writer(vc)?;
        matches!(slot, WriterSlot::Layer).then_some((layer, conn))
    }

    /// The mark of the PDU that a program writes on this connection, for the accounts. Programs of the machine count
    /// for themselves.
    pub(super) fn mark_of(&self, at: WriterSlot, conn: ConnId) -> Option<Mark> {
        match at {
            WriterSlot::Sockets => self.machine(self.sockets?)?.mark(conn),
            WriterSlot::Layer => None,
        }
    }

    /// How the program that has opened this label wants its calls sent; `None` if it has not said.
    pub(super) fn shaping(&self, vc: Vc) -> Option<Shaping> {
        let sockets = self.sockets?;
        let (user, conn) = self.signalling.owner(vc)?;
        let programs =
            (user == moves::user_of(sockets.slot())).then(|| self.machine(sockets))??;
        programs.shaping(conn)
    }

    /// The AAL that the program which has opened this label has chosen.
    pub(super) fn aal(&self, vc: Vc) -> AalType {
        let of_program = || {
            let (user, conn) = self.signalling.owner(vc)?;
            let sockets = self.sockets.filter(|at| user == moves::user_of(at.slot()));
            if let Some(sockets) = sockets {
                return Some(self.machine(sockets)?.aal(conn));
            }
            let layer = self.layer.filter(|at| user == moves::user_of(at.slot()))?;
            Some(self.machine(layer)?.aal(conn))
        };
        of_program().unwrap_or_default()
    }

    /// True if a program uses this label.
    #[must_use]
    pub fn is_written(&self, vc: Vc) -> bool {
        self.writer(vc).is_some()
    }

    /// The adapter's answer to [`HostOutput::Write`].
    pub fn written(&mut self, vc: Vc, written: Written, now: Instant) {
        self.tell_writer(vc, now, |conn| FromAdapter::Written { conn, written });
    }

    /// The adapter may have room again for a program that writes on this label. If the program asked for that
    /// ([`HostOutput::Flush`]), the adapter has sent everything.
    pub fn room(&mut self, vc: Vc, now: Instant) {
        self.tell_writer(vc, now, |conn| FromAdapter::Room { conn });
    }

    /// A PDU for a program arrived with cells missing or damaged.
    pub fn damaged(&mut self, vc: Vc, now: Instant) {
        self.tell_writer(vc, now, |conn| FromAdapter::Damaged { conn });
    }

    /// The adapter dropped PDUs that it had accepted from a program, because the label was closed or its link went
    /// down.
    pub fn unsent(&mut self, vc: Vc, pdus: u64, closed: bool, now: Instant) {
        // The label may be closed already, so each service looks whether it had it.
        for slot in [WriterSlot::Sockets, WriterSlot::Layer] {
            self.tell_slot(slot, FromAdapter::Unsent { vc, pdus, closed }, now);
        }
        self.settle(now);
    }

    fn tell_writer(&mut self, vc: Vc, now: Instant, event: impl FnOnce(ConnId) -> FromAdapter) {
        if let Some((slot, conn)) = self.writer(vc) {
            self.tell_slot(slot, event(conn), now);
            self.settle(now);
        }
    }

    /// Tells a service that writes.
    pub(super) fn tell_slot(&mut self, slot: WriterSlot, event: FromAdapter, now: Instant) {
        match slot {
            WriterSlot::Sockets => {
                if let Some(sockets) = self.sockets {
                    self.tell(sockets, sockets::Input::Adapter(event), now);
                }
            }
            WriterSlot::Layer => {
                if let Some(layer) = self.layer {
                    self.tell(layer, socket_layer::Input::Adapter(event), now);
                }
            }
        }
    }

    /// A connection inside the host can be used: these are its ends.
    pub(super) fn tell_inside(
        &mut self,
        user: UserId,
        (conn, peer): (ConnId, ConnId),
        (qos, heard): (Qos, Heard),
        now: Instant,
    ) {
        match self.sockets.filter(|at| user == moves::user_of(at.slot())) {
            Some(sockets) => self.tell(sockets, sockets::Input::Joined(conn), now),
            None => {
                let joined = socket_layer::Input::Joined {
                    conn,
                    peer,
                    qos,
                    heard,
                };
                self.tell_layer(user, joined, now);
            }
        }
    }

    /// Passes an event of signalling to its user: to the socket service with what comes along.
    pub(super) fn told(
        &mut self,
        user: UserId,
        event: AtmEvent<&[u8]>,
        heard: Heard,
        now: Instant,
    ) {
        match self.layer.filter(|at| user == moves::user_of(at.slot())) {
            Some(layer) => self.tell(layer, socket_layer::Input::Atm(event, heard), now),
            None => self.event(user.0.into(), event, now),
        }
    }

    /// A program of the lab file writes on a connection inside the host: the other end has the SDU at once. The socket
    /// service passes those of its programs itself, because their readers may be slow.
    pub(super) fn pass_inside(
        &mut self,
        slot: usize,
        (conn, peer): (ConnId, ConnId),
        sdu: &[u8],
        now: Instant,
    ) {
        let mark = self.mark_of(WriterSlot::Sockets, conn);
        if let Some(mark) = mark.filter(|_| self.books) {
            let octets = sdu.len() as u32;
            let event = SocketEvent::Sent { mark, octets };
            self.report(HostEvent::Socket(event));
        }
        let unit = DataUnit { octets: sdu, mark };
        self.heard(unit, moves::user_of(slot), peer);
        self.event(slot, AtmEvent::Received { conn: peer, sdu }, now);
        let written = Written::Taken;
        self.tell_slot(
            WriterSlot::Sockets,
            FromAdapter::Written { conn, written },
            now,
        );
    }

    /// Tells the socket service, if it is this user.
    pub(super) fn tell_layer(
        &mut self,
        user: UserId,
        event: socket_layer::Input<'_>,
        now: Instant,
    ) {
        let layer = self.layer.filter(|at| user == moves::user_of(at.slot()));
        if let Some(layer) = layer {
            self.tell(layer, event, now);
        }
    }

    pub(super) fn sockets_output(&mut self, slot: usize, output: sockets::Output, now: Instant) {
        match output {
            sockets::Output::Atm(request) => self.request(slot, request, now),
            sockets::Output::Forgotten(id) => {
                if self.books {
                    let event = SocketEvent::Forgotten(id);
                    self.report(HostEvent::Socket(event));
                }
            }
            sockets::Output::Flush(vc) => self.out.push_back(HostOutput::Flush { vc }),
            sockets::Output::Trace(trace) => self.trace(trace),
        }
    }

    pub(super) fn layer_output(&mut self, slot: usize, output: socket_layer::Output, now: Instant) {
        match output {
            socket_layer::Output::Atm(request, along) => {
                let request = signalling::Input::Request(moves::user_of(slot), request, along);
                self.tell_signalling(request, now);
            }
            socket_layer::Output::Write(conn, sdus) => {
                // What was asked of signalling before leaves before.
                if self.touched.contains(&Part::Signalling) {
                    self.drain_signalling(now);
                }
                self.write(slot, WriterSlot::Layer, conn, sdus, now);
            }
            socket_layer::Output::Resolve { ip } => self.resolve(ip, now),
            socket_layer::Output::Addresses(added) => self.register_added(&added, now),
            socket_layer::Output::Flush(vc) => self.out.push_back(HostOutput::Flush { vc }),
            socket_layer::Output::Program(what) => self.report(HostEvent::Program(what)),
            socket_layer::Output::Trace(trace) => self.trace(trace),
        }
    }
}
