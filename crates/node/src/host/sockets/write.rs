//! How a program writes: one PDU at a time, with an answer of the adapter to each.

use super::{BURST, ECHO_OCTETS, ECHO_PDUS, PAUSE};
use super::{Output, Pace, Record, Role, Sending, Sockets, State, Sum, pattern, refusal};
use crate::atm::Written;
use crate::host::writes::FromAdapter;
use aerostat_proto::{AtmRequest, Cause, ConnId, Duration, Instant, Trace};
use aerostat_wire::Vc;
use std::collections::VecDeque;

/// Resolution of times.
const RESOLUTION: Duration = Duration::from_nanos(1);

/// State of the writing side of a connection.
#[derive(Clone, Debug, Default)]
enum Stand {
    /// No PDU is being written.
    #[default]
    Idle,
    /// The adapter has been given a PDU. The value is the sum of sent PDUs in case the adapter accepts this one.
    Asked(Sum),
    /// There was no room for this PDU.
    Blocked(Vec<u8>),
    /// All PDUs are written, but some still wait in the adapter.
    Flushing,
}

/// The writing side of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Writer {
    stand: Stand,
    /// True if the PDU that is being written is an echo; false if the program made it.
    back: bool,
    /// PDUs to echo, in order.
    echo: VecDeque<Vec<u8>>,
    echo_octets: usize,
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
    /// True if the program has begun to write a PDU of its own, and the adapter has not taken it yet.
    pub(super) const fn has_own(&self) -> bool {
        !self.back && matches!(self.stand, Stand::Asked(_) | Stand::Blocked(_))
    }

    /// Queues a PDU behind the others; false if there are `most` already.
    pub(super) fn add(&mut self, sdu: Vec<u8>, most: usize) -> bool {
        let room = self.echo.len() < most;
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

impl Record {
    /// When the connection has work to do.
    pub(super) fn wake(&self) -> Option<Instant> {
        let writer = &self.writer;
        match writer.stand {
            // A caller's PDUs may arrive before CONNECT ACKNOWLEDGE, but none is echoed before it.
            _ if self.state != State::Open => None,
            Stand::Idle if !writer.echo.is_empty() => Some(writer.rest),
            Stand::Idle => self.next.map(|at| at.max(writer.rest)),
            Stand::Asked(_) | Stand::Blocked(_) | Stand::Flushing => None,
        }
    }

    /// Queues a PDU to be echoed, if there is room.
    pub(super) fn offer_back(&mut self, sdu: &[u8]) {
        let (tx, writer) = (self.qos.tx, &mut self.writer);
        let fits = tx.max_sdu == 0 || sdu.len() <= usize::from(tx.max_sdu);
        let room = writer.echo.len() < ECHO_PDUS && writer.echo_octets + sdu.len() <= ECHO_OCTETS;
        self.offered += 1;
        if tx.category.is_some() && fits && room {
            writer.echo_octets += sdu.len();
            writer.echo.push_back(sdu.to_vec());
        } else {
            self.refused += 1;
        }
    }

    /// The call is over: PDUs that wait in the program are never sent.
    pub(super) fn give_up(&mut self) {
        self.left = self.unwritten();
        self.refused += self.waiting();
        self.writer = Writer::default();
    }

    /// Troubles with PDUs, for people; empty without errors.
    pub(super) fn troubles(&self) -> String {
        let told = [
            (self.late, "late"),
            (self.refused, "refused"),
            (self.damaged, "received damaged"),
        ];
        let told = told.iter().filter(|(pdus, _)| *pdus > 0);
        told.map(|(pdus, what)| format!("; {pdus} {what}"))
            .collect()
    }

    /// The last PDU has been sent or refused: plans the next one. True if the last PDU was late.
    fn next_write(&mut self, role: Role, now: Instant) -> bool {
        self.writer.stand = Stand::Idle;
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

impl Sockets {
    /// Writes the next PDU of a connection if it is due, or releases the connection if that is due.
    pub(super) fn write(&mut self, conn: ConnId, now: Instant) {
        let Some(call) = self.calls.get_mut(&conn) else {
            return;
        };
        if call.wake().is_none_or(|at| at > now) {
            return;
        }
        let send = self.programs[call.program].role.sending();
        if call.left == 0 && call.writer.echo.is_empty() {
            return self.finish(conn, now);
        }
        if !call.writer.may_go_on(now) {
            return;
        }
        let sdu = match (call.writer.echo.pop_front(), send) {
            (Some(sdu), _) => {
                call.writer.back = true;
                call.writer.echo_octets -= sdu.len();
                sdu
            }
            (None, Some(send)) => {
                call.writer.back = false;
                call.offered += 1;
                match (&mut call.tester, call.vc) {
                    (Some(tester), Some(vc)) => tester.cell(vc, now),
                    _ => pattern(send.size),
                }
            }
            (None, None) => return,
        };
        self.give(conn, sdu, now);
    }

    /// The time to release has come.
    fn finish(&mut self, conn: ConnId, now: Instant) {
        self.request(refusal(conn, Cause::NORMAL));
        if let Some(mut call) = self.calls.remove(&conn) {
            call.by_us = true;
            self.over(call, Cause::NORMAL, now);
        }
    }

    fn give(&mut self, conn: ConnId, sdu: Vec<u8>, now: Instant) {
        if let Some(call) = self.calls.get_mut(&conn) {
            let mut sum = call.sent;
            sum.add(&sdu);
            call.writer.stand = Stand::Asked(sum);
            call.writer.asked += 1;
            call.writer.begun = now;
            self.request(AtmRequest::Send { conn, sdu });
        }
    }

    /// The adapter has something about PDUs of a program.
    pub(super) fn adapter(&mut self, event: FromAdapter, now: Instant) {
        match event {
            FromAdapter::Written { conn, written } => self.written(conn, written, now),
            FromAdapter::Room { conn } => self.room(conn, now),
            FromAdapter::Damaged { conn } => {
                if let Some(call) = self.calls.get_mut(&conn) {
                    call.damaged += 1;
                }
            }
            FromAdapter::Unsent { vc, pdus, closed } => self.unsent(vc, pdus, closed),
        }
    }

    /// Handles the adapter's answer to a write.
    fn written(&mut self, conn: ConnId, written: Written, now: Instant) {
        let Some(call) = self.calls.get_mut(&conn) else {
            return;
        };
        let Stand::Asked(sum) = call.writer.stand else {
            return;
        };
        match written {
            Written::Taken => call.sent = sum,
            Written::Refused => call.refused += 1,
            Written::Full(sdu) => {
                call.writer.stand = Stand::Blocked(sdu.into_vec());
                return;
            }
        }
        let program = &self.programs[call.program];
        let (role, own) = (program.role, !call.writer.back);
        call.writer.slow |= now > call.writer.begun;
        let busy = match call.writer.slow {
            true => "the host was busy",
            false => "the adapter had no room at its time",
        };
        let late = call.next_write(role, now);
        call.late += u64::from(late);
        let first = (late && call.late == 1).then_some(call.offered);
        // The release of a call waits until everything has left the adapter.
        if let (true, Role::Call { hold, .. }) = (own && call.left == 0, role) {
            match call.vc {
                Some(vc) => {
                    call.writer.stand = Stand::Flushing;
                    self.out.push_back(Output::Flush(vc));
                }
                None => call.next = Some(now + hold),
            }
        }
        if let Some(pdu) = first {
            let name = program.name.clone();
            let text = format!("{name}: PDU {pdu} is late: {busy}");
            self.trace(Trace::milestone("socket.late", text).with("socket", name));
        }
        self.write(conn, now);
    }

    /// The adapter has room, so a blocked write is repeated; or the adapter has sent everything.
    fn room(&mut self, conn: ConnId, now: Instant) {
        let Some(call) = self.calls.get_mut(&conn) else {
            return;
        };
        match std::mem::take(&mut call.writer.stand) {
            Stand::Blocked(sdu) => self.give(conn, sdu, now),
            Stand::Flushing => {
                if let Role::Call { hold, .. } = self.programs[call.program].role {
                    call.next = Some(now + hold);
                }
            }
            other => call.writer.stand = other,
        }
    }

    /// The adapter dropped PDUs of a label.
    fn unsent(&mut self, vc: Vc, pdus: u64, closed: bool) {
        let open = self.calls.values_mut().find(|call| call.vc == Some(vc));
        let call = match open {
            Some(open) => Some(open),
            None => {
                let ended = self.ended.iter_mut().rev();
                let mut ended = ended.filter(|call| call.vc == Some(vc) && !call.closed);
                ended.next()
            }
        };
        if let Some(call) = call {
            call.unsent += pdus;
            call.closed |= closed;
        }
    }
}
