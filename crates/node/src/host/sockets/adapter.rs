//! Writing by programs of a host: the answers of the adapter go back to the program.
//!
//! The sockets of programs ([`super`]) give the adapter one or several PDUs, and wait for its answer
//! ([`FromAdapter`]).

use crate::atm::{Sdus, Shaping, Written};
use crate::host::sockets::{Input, Output, SocketLayer};
use crate::host::{Host, HostEvent, HostOutput, Part, outputs};
use crate::signalling::{self, Heard, UserId};
use aerostat_proto::{AtmEvent, ConnId, Instant};
use aerostat_wire::{AalType, Vc};

/// Answer of the adapter to sockets.
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

impl Host {
    /// The sockets and the connection of theirs that has this label; `None` if no program uses the label.
    fn user_of_label(&self, vc: Vc) -> Option<(&SocketLayer, ConnId)> {
        let (user, conn) = self.signalling.owner(vc)?;
        self.are_sockets(user).then_some((self.sockets()?, conn))
    }

    /// True if the sockets of programs are this user of the ATM service.
    pub(in crate::host) fn are_sockets(&self, user: UserId) -> bool {
        self.sockets
            .is_some_and(|at| user == outputs::user_of(at.slot()))
    }

    /// The connection of a program that gets what arrives with this label; `None` if no program uses the label.
    pub(in crate::host) fn conn_of_program(&self, vc: Vc) -> Option<ConnId> {
        let (user, conn) = self.signalling.receiver(vc)?;
        self.are_sockets(user).then_some(conn)
    }

    /// How the program that has opened this label wants its calls sent; `None` if it has not said.
    pub(in crate::host) fn shaping(&self, vc: Vc) -> Option<Shaping> {
        let (sockets, conn) = self.user_of_label(vc)?;
        sockets.shaping(conn)
    }

    /// The AAL that the program which has opened this label has chosen.
    pub(in crate::host) fn aal(&self, vc: Vc) -> AalType {
        let user = self.user_of_label(vc);
        user.map_or(AalType::Aal5, |(sockets, conn)| sockets.aal(conn))
    }

    /// True if a program uses this label.
    #[must_use]
    pub fn is_written(&self, vc: Vc) -> bool {
        self.conn_of_program(vc).is_some()
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
    /// down. The label may be closed already.
    pub fn unsent(&mut self, vc: Vc, pdus: u64, closed: bool, now: Instant) {
        self.tell_sockets(
            Input::Adapter(FromAdapter::Unsent { vc, pdus, closed }),
            now,
        );
        self.settle(now);
    }

    fn tell_writer(&mut self, vc: Vc, now: Instant, event: impl FnOnce(ConnId) -> FromAdapter) {
        if let Some(conn) = self.conn_of_program(vc) {
            self.tell_sockets(Input::Adapter(event(conn)), now);
            self.settle(now);
        }
    }

    /// Gives an input to the sockets of programs, if the host has any.
    pub(in crate::host) fn tell_sockets(&mut self, input: Input<'_>, now: Instant) {
        if let Some(sockets) = self.sockets {
            self.tell(sockets, input, now);
        }
    }

    /// Passes an event of signalling to its user: to sockets with what comes along.
    pub(in crate::host) fn told(
        &mut self,
        user: UserId,
        event: AtmEvent<&[u8]>,
        heard: Heard,
        now: Instant,
    ) {
        match self.are_sockets(user) {
            true => self.tell_sockets(Input::Atm(event, heard), now),
            false => self.event(user.0.into(), event, now),
        }
    }

    /// Sockets write. Signalling looks at the longest SDU.
    fn write(&mut self, slot: usize, conn: ConnId, sdus: Sdus, now: Instant) {
        // What was asked of signalling before leaves before.
        if self.touched.contains(&Part::Signalling) {
            self.drain_signalling(now);
        }
        let label = self
            .signalling
            .label(outputs::user_of(slot), conn, sdus.first());
        match label {
            Ok(vc) => {
                let mark = self.sockets().and_then(|sockets| sockets.mark_of(conn));
                self.out.push_back(HostOutput::Write { vc, sdus, mark });
            }
            Err(refused) => {
                self.refused("signalling", refused);
                // The program waits for the answer.
                let written = Written::Refused;
                self.tell_sockets(Input::Adapter(FromAdapter::Written { conn, written }), now);
            }
        }
    }

    pub(in crate::host) fn sockets_output(&mut self, slot: usize, output: Output, now: Instant) {
        match output {
            Output::Atm(request, along) => {
                let request = signalling::Input::Request(outputs::user_of(slot), request, along);
                self.tell_signalling(request, now);
            }
            Output::Write(conn, sdus) => self.write(slot, conn, sdus, now),
            Output::Resolve { ip } => self.resolve(ip, now),
            Output::Addresses(added) => self.register_added(&added, now),
            Output::Flush(vc) => self.out.push_back(HostOutput::Flush { vc }),
            Output::Program(what) => self.report(HostEvent::Program(what)),
            Output::Socket(event) if self.books => self.report(HostEvent::Socket(event)),
            Output::Socket(_) => {}
            Output::Trace(trace) => self.trace(trace),
        }
    }
}
