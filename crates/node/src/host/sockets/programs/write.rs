//! How a program writes: one PDU at a time, with an answer of the adapter to each.

use super::{Behaviour, Pace, Role, Sending, parts, pattern};
use crate::host::sockets::local;
use crate::host::sockets::socket::Writing;
use crate::host::sockets::{Output, Socket, SocketLayer, SocketRef, State};
use aerostat_proto::{Cause, Duration, Instant, Trace};
use std::collections::VecDeque;

/// Resolution of times.
const RESOLUTION: Duration = Duration::from_nanos(1);

/// PDUs that a program writes on a connection at once; it continues after [`PAUSE`].
pub(super) const BURST: u32 = 64;

/// This is shorter than the time of [`BURST`] cells on any line, so it does not lower the rate.
pub(super) const PAUSE: Duration = Duration::from_micros(1);

/// Limit of octets that an echo keeps for one call while it cannot send them back.
pub(super) const ECHO_OCTETS: usize = 256 * 1024;

/// Limit of PDUs that an echo keeps for one call.
const ECHO_PDUS: usize = 4096;

/// The writing side of a connection, beside that of its socket.
#[derive(Clone, Debug, Default)]
pub(super) struct Writer {
    /// True if all PDUs are written, but some still wait in the adapter.
    flushes: bool,
    /// True if the PDU that is being written is an echo; false if the program made it.
    back: bool,
    /// PDUs to echo, in order.
    echo: VecDeque<Vec<u8>>,
    echo_octets: usize,
    /// CRC-32 of the sent PDUs in case the adapter accepts the one that is being written.
    crc32: u32,
    /// Attempts to write a PDU.
    pub(super) asked: u64,
    /// When the last attempt began.
    begun: Instant,
    /// True if a PDU took time in the host before the adapter got it.
    slow: bool,
    /// PDUs written at this instant.
    burst: (Instant, u32),
    /// No PDU is written before this time.
    rest: Instant,
}

impl Writer {
    /// Queues a PDU behind the others; false if there are `pdus` already, or if they had more than so many `octets`
    /// with it.
    fn add(&mut self, sdu: Vec<u8>, pdus: usize, octets: usize) -> bool {
        let room = self.echo.len() < pdus && self.echo_octets + sdu.len() <= octets;
        if room {
            self.echo_octets += sdu.len();
            self.echo.push_back(sdu);
        }
        room
    }

    /// True if one more PDU may be written at this instant.
    fn may_go_on(&mut self, now: Instant) -> bool {
        if self.burst.0 != now {
            self.burst = (now, 0);
        }
        if self.burst.1 >= BURST {
            self.rest = now + PAUSE;
        } else {
            self.burst.1 += 1;
        }
        self.rest <= now
    }
}

impl Behaviour {
    /// When the connection has work to do.
    pub(super) fn wake(&self, socket: &Socket) -> Option<Instant> {
        let writer = &self.writer;
        let room = socket.local_end.as_ref().is_none_or(local::End::has_room);
        let idle = matches!(socket.writing, Writing::Idle) && !writer.flushes;
        // A caller's PDUs may arrive before CONNECT ACKNOWLEDGE, but none is echoed before it.
        if socket.state != State::Connected || !idle || !room {
            return None;
        }
        match writer.echo.is_empty() {
            true => self.next.map(|at| at.max(writer.rest)),
            false => Some(writer.rest),
        }
    }

    /// A PDU is given to the adapter.
    pub(in crate::host::sockets) const fn attempt(&mut self, now: Instant) {
        self.writer.asked += 1;
        self.writer.begun = now;
    }

    /// Queues a PDU to be echoed, if there is room.
    pub(super) fn offer_back(&mut self, socket: &mut Socket, sdu: &[u8]) {
        self.queue(socket, sdu.to_vec(), ECHO_PDUS, ECHO_OCTETS);
    }

    /// Queues a PDU, if the contract allows it, and the queue has less than `pdus` and would have at most `octets`.
    pub(super) fn queue(&mut self, socket: &mut Socket, sdu: Vec<u8>, pdus: usize, octets: usize) {
        let tx = socket.qos.qos.tx;
        let fits = tx.max_sdu == 0 || sdu.len() <= usize::from(tx.max_sdu);
        self.offered += 1;
        if tx.category.is_none() || !fits || !self.writer.add(sdu, pdus, octets) {
            socket.refused += 1;
        }
    }

    /// PDUs that the program has begun to write, or has to send back, and that the adapter has not accepted yet.
    pub(super) const fn waiting(&self, socket: &Socket) -> u64 {
        self.offered - socket.sent.pdus - socket.refused
    }

    /// PDUs of its own that the program has not begun to write yet. `begun` tells whether a PDU is being written.
    pub(super) const fn unwritten(&self, begun: bool) -> u64 {
        self.left
            .saturating_sub((begun && !self.writer.back) as u64)
    }

    /// The connection has ended: PDUs that wait in the program are never sent.
    pub(super) fn end(&mut self, socket: &mut Socket, begun: bool, now: Instant) {
        self.end_atp(now);
        self.left = self.unwritten(begun);
        socket.refused += self.waiting(socket);
        self.writer = Writer::default();
        self.next = None;
    }

    /// Troubles with PDUs, for people; empty without errors.
    pub(super) fn troubles(&self, socket: &Socket) -> String {
        let told = [
            (self.late, "late"),
            (socket.refused, "refused"),
            (socket.damaged, "received damaged"),
        ];
        let told = told.iter().filter(|(pdus, _)| *pdus > 0);
        told.map(|(pdus, what)| format!("; {pdus} {what}"))
            .collect()
    }

    /// The last PDU has been sent or refused: plans the next one. True if the last PDU was late.
    fn next_write(&mut self, role: Role, now: Instant) -> bool {
        let (Some(Sending { pdus, pace, .. }), false) = (role.sending(), self.writer.back) else {
            return false;
        };
        let due = self.next.unwrap_or(now);
        let index = pdus.saturating_sub(self.left);
        self.left = self.left.saturating_sub(1);
        let more = self.left > 0;
        let (next, late) = match pace {
            Pace::At(rate) => {
                let gap = rate.after(index + 1) - rate.after(index);
                // A clock that is fast leaves out a nanosecond now and then.
                (due + gap, self.writer.begun > due + RESOLUTION)
            }
            Pace::Line => (now, false),
        };
        self.next = more.then_some(next);
        late
    }
}

impl SocketLayer {
    /// Writes the next PDU of a connection if it is due, or releases the connection if that is due.
    pub(in crate::host::sockets) fn write_next(&mut self, at: SocketRef) {
        let now = self.programs.now;
        let Some((socket, own)) = parts(&mut self.table, at) else {
            return;
        };
        let Some(index) = socket.program else {
            return;
        };
        if own.wake(socket).is_none_or(|at| at > now) {
            return;
        }
        if own.left == 0 && own.writer.echo.is_empty() {
            return self.release(at, Cause::NORMAL);
        }
        if !own.writer.may_go_on(now) {
            return;
        }
        let send = self.programs.list[index].role.sending();
        let sdu = match (own.writer.echo.pop_front(), send) {
            (Some(sdu), _) => {
                own.writer.back = true;
                own.writer.echo_octets -= sdu.len();
                sdu
            }
            (None, Some(send)) => {
                own.writer.back = false;
                own.offered += 1;
                match (&mut own.tester, socket.vc) {
                    (Some(tester), Some(vc)) => tester.cell(vc, now),
                    _ => pattern(send.size),
                }
            }
            (None, None) => return,
        };
        let mut sent = socket.sent;
        sent.add_summed(&sdu);
        own.writer.crc32 = sent.crc32;
        self.give(at, sdu.into());
    }

    /// The adapter has answered to a PDU of a program.
    pub(in crate::host::sockets) fn program_went_on(&mut self, at: SocketRef, taken: bool) {
        let now = self.programs.now;
        let Some((socket, own)) = parts(&mut self.table, at) else {
            return;
        };
        let (Some(index), Writing::Idle) = (socket.program, &socket.writing) else {
            return;
        };
        if taken {
            socket.sent.crc32 = own.writer.crc32;
        }
        let role = self.programs.list[index].role;
        own.writer.slow |= now > own.writer.begun;
        let busy = match own.writer.slow {
            true => "the host was busy",
            false => "the adapter had no room at its time",
        };
        let late = own.next_write(role, now);
        own.late += u64::from(late);
        let first = (late && own.late == 1).then_some(own.offered);
        // The release of a call waits until everything has left the adapter.
        if let (false, 0, Role::Call { hold, .. }) = (own.writer.back, own.left, role) {
            own.writer.flushes = socket.vc.is_some();
            own.next = Some(now + hold);
            self.out.extend(socket.vc.map(Output::Flush));
        }
        if let Some(pdu) = first {
            let name = &self.programs.list[index].name;
            let text = format!("{name}: PDU {pdu} is late: {busy}");
            let trace = Trace::milestone("socket.late", text).with("socket", name);
            self.out.push_back(Output::Trace(trace));
        }
        self.write_next(at);
    }

    /// Everything that a program has written has left the adapter.
    pub(in crate::host::sockets) fn all_has_left(&mut self, at: SocketRef) {
        let now = self.programs.now;
        if let Some((socket, own)) = parts(&mut self.table, at)
            && let Some(program) = socket.program
            && core::mem::take(&mut own.writer.flushes)
            && let Role::Call { hold, .. } = self.programs.list[program].role
        {
            own.next = Some(now + hold);
        }
    }
}
