//! Writing by programs of a host: the answers of the adapter go back to the program.

use super::sockets;
use super::{Host, HostOutput, moves};
use crate::atm::Written;
use crate::ip::books::SocketEvent;
use aerostat_proto::{ConnId, Instant};
use aerostat_wire::Vc;

impl Host {
    /// The program's connection with this label; `None` if no program uses the label.
    pub(super) fn writer(&self, vc: Vc) -> Option<ConnId> {
        let (user, conn) = self.signalling.receiver(vc)?;
        (user == moves::user_of(self.sockets?.slot())).then_some(conn)
    }

    /// Whether the program that has opened this label wants its calls shaped; `None` if it has not said.
    pub(super) fn shapes(&self, vc: Vc) -> Option<bool> {
        let sockets = self.sockets?;
        let (user, conn) = self.signalling.owner(vc)?;
        let programs =
            (user == moves::user_of(sockets.slot())).then(|| self.machine(sockets))??;
        programs.shapes(conn)
    }

    /// True if a program uses this label.
    #[must_use]
    pub fn is_written(&self, vc: Vc) -> bool {
        self.writer(vc).is_some()
    }

    /// The adapter's answer to [`HostOutput::Write`].
    pub fn written(&mut self, vc: Vc, written: Written, now: Instant) {
        self.tell_writer(vc, now, |conn| sockets::Input::Written { conn, written });
    }

    /// The adapter may have room again for a program that writes on this label. If the program asked for that
    /// ([`HostOutput::Flush`]), the adapter has sent everything.
    pub fn room(&mut self, vc: Vc, now: Instant) {
        self.tell_writer(vc, now, |conn| sockets::Input::Room { conn });
    }

    /// A PDU for a program arrived with cells missing or damaged.
    pub fn damaged(&mut self, vc: Vc, now: Instant) {
        self.tell_writer(vc, now, |conn| sockets::Input::Damaged { conn });
    }

    /// The adapter dropped PDUs that it had accepted from a program, because the label was closed or its link went
    /// down.
    pub fn unsent(&mut self, vc: Vc, pdus: u64, closed: bool, now: Instant) {
        self.tell_sockets(sockets::Input::Unsent { vc, pdus, closed }, now);
        self.settle(now);
    }

    fn tell_writer<'a>(
        &mut self,
        vc: Vc,
        now: Instant,
        input: impl FnOnce(ConnId) -> sockets::Input<'a>,
    ) {
        if let Some(conn) = self.writer(vc) {
            self.tell_sockets(input(conn), now);
            self.settle(now);
        }
    }

    pub(super) fn tell_sockets(&mut self, input: sockets::Input<'_>, now: Instant) {
        if let Some(sockets) = self.sockets {
            self.tell(sockets, input, now);
        }
    }

    pub(super) fn sockets_output(&mut self, slot: usize, output: sockets::Output, now: Instant) {
        match output {
            sockets::Output::Atm(request) => self.request(slot, request, now),
            sockets::Output::Forgotten(id) => {
                if self.books {
                    let event = SocketEvent::Forgotten(id);
                    self.out.push_back(HostOutput::Socket(event));
                }
            }
            sockets::Output::Flush(vc) => self.out.push_back(HostOutput::Flush { vc }),
            sockets::Output::Trace(trace) => self.trace(trace),
        }
    }
}
