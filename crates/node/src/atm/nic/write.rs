//! Sending with back-pressure, as a blocking `write` on an ATM socket: a PDU is taken whole, or it waits outside.

use super::super::pdu::{CellRun, Pdu};
use super::super::port::QueueId;
use super::Nic;
use aerostat_proto::Instant;
use aerostat_wire::Vc;
use aerostat_wire::aal5::cells_for;

/// Cells that may wait in the adapter for one writer, about as many octets as Linux allows a socket to have unsent
/// (`net.core.wmem_default`, 212 992). A queue without any cells takes a PDU of any size.
const SEND_BUFFER: u32 = 4096;
/// A writer that has waited goes on when its queue is at this level.
const RESUME: u32 = SEND_BUFFER / 2;
/// A writer looks no more often than once in the time of so many cells. Below [`RESUME`], so that a queue never
/// runs empty while its writer waits.
const LOOK: u32 = RESUME / 4;

/// What becomes of a PDU that is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// It is in the queue.
    Taken,
    /// There is no room. It comes back.
    Full(Vec<u8>),
    /// The VC is not open for sending.
    Refused,
}

impl Nic {
    /// Writes a PDU. Other than [`Nic::send`] it takes nothing for which there is no room, and nothing while the link is
    /// down; [`Nic::room_at`] says when to try again. The upper half of the buffer that all VCs share is left to those
    /// VCs of which nothing waits.
    pub fn write(&mut self, vc: Vc, sdu: Vec<u8>, now: Instant) -> Written {
        let Some(queue) = self.queue_of(vc) else {
            return Written::Refused;
        };
        let Some(level) = self.output.level(queue, now) else {
            return Written::Refused;
        };
        let cells = cells_for(sdu.len()) as u32;
        let fits = if level.cells == 0 {
            level.pool + cells <= level.pool_early
        } else {
            level.cells + cells <= SEND_BUFFER && level.pool + cells <= level.pool_early / 2
        };
        if !(self.up && fits) {
            return Written::Full(sdu);
        }
        let run = CellRun::whole(Pdu::new(sdu), vc);
        match self.output.enqueue(queue, run, now).dropped {
            0 => Written::Taken,
            _ => Written::Refused,
        }
    }

    /// When a writer that found no room should try again; `None`: when the link comes up.
    pub fn room_at(&mut self, vc: Vc, now: Instant) -> Option<Instant> {
        let queue = self.queue_of(vc).filter(|_| self.up)?;
        let level = self.output.level(queue, now)?;
        // With little of its own in the queue the writer waits for others: the line empties the pool.
        let wait = match level.cells.checked_sub(RESUME) {
            Some(above) => self.output.time_to_send(queue, above.max(LOOK)),
            None => self.output.rate().time_of(LOOK.into()),
        };
        Some(now + wait)
    }

    /// When nothing of a VC waits any more, as far as is known now; `now` if nothing waits, or the VC is not open.
    /// `looks`: how often that was asked before. Who asks again, as other traffic goes first, does so at growing distances.
    pub fn empty_at(&mut self, vc: Vc, looks: u32, now: Instant) -> Instant {
        let Some(queue) = self.queue_of(vc) else {
            return now;
        };
        let waiting = self.output.level(queue, now).map_or(0, |level| level.cells);
        if waiting == 0 {
            return now;
        }
        let least = (1 << looks.min(9)).min(LOOK);
        now + self.output.time_to_send(queue, waiting.max(least))
    }

    /// PDUs of a VC that the adapter has taken and not sent.
    pub fn unsent(&mut self, vc: Vc, now: Instant) -> u64 {
        self.queue_of(vc)
            .map_or(0, |queue| self.output.unsent(queue, now))
    }

    fn queue_of(&self, vc: Vc) -> Option<QueueId> {
        self.vc(vc)?.queue
    }
}
