//! Sending with back-pressure, like a blocking `write` on an ATM socket: the adapter takes a whole PDU, or the PDU
//! waits in the program.

use super::super::mark::Mark;
use super::super::pdu::{CellRun, Pdu};
use super::super::port::QueueId;
use super::Nic;
use aerostat_proto::Instant;
use aerostat_wire::aal0::UserCell;
use aerostat_wire::aal5::cells_for;
use aerostat_wire::cell::Pti;
use aerostat_wire::{AalType, Vc};

/// Limit of cells that wait in the adapter for one writer: about as many octets as Linux allows a socket to have unsent
/// (`net.core.wmem_default`, 212 992). An empty queue takes a PDU of any size.
const SEND_BUFFER: u32 = 4096;
/// A blocked writer continues when its queue is at this level.
const RESUME: u32 = SEND_BUFFER / 2;
/// A writer checks its queue at most once per transmission time of this many cells. The value is below [`RESUME`], so
/// that a queue never runs empty while its writer waits.
const LOOK: u32 = RESUME / 4;

/// The result of writing a PDU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// The PDU is in the queue.
    Taken,
    /// There is no room. The PDU is returned.
    Full(Vec<u8>),
    /// The VC is not open for sending, or carries single cells, and this is no cell of user data.
    Refused,
}

impl Nic {
    /// Writes a PDU with this mark. Unlike [`Nic::send`], this accepts a PDU only if there is room for it and the link
    /// is up; [`Nic::room_at`] says when to try again. The upper half of the buffer that all VCs share is reserved for
    /// VCs with an empty queue.
    ///
    /// On a VC of single cells the SDU is a cell ([`aerostat_wire::aal0`]). Only a cell that ends a PDU keeps its mark.
    pub fn write(&mut self, vc: Vc, sdu: Vec<u8>, mark: Option<Mark>, now: Instant) -> Written {
        let Some(queue) = self.queue_of(vc) else {
            return Written::Refused;
        };
        let Some(level) = self.output.level(queue, now) else {
            return Written::Refused;
        };
        let single = match self.aal(vc) {
            AalType::Aal5 => None,
            AalType::Aal0 => match UserCell::decode(&sdu) {
                Ok(cell) => Some(cell),
                Err(_) => return Written::Refused,
            },
        };
        let cells = single.map_or_else(|| cells_for(sdu.len()) as u32, |_| 1);
        let fits = if level.cells == 0 {
            level.pool + cells <= level.pool_early
        } else {
            level.cells + cells <= SEND_BUFFER && level.pool + cells <= level.pool_early / 2
        };
        if !(self.up && fits) {
            return Written::Full(sdu);
        }
        let run = match &single {
            Some(cell) => match mark.filter(|_| cell.pti == Pti::user(true)) {
                Some(mark) => CellRun::whole(Pdu::of_cell(cell.payload, cell.clp, mark), vc),
                None => CellRun::of_user_cell(vc, cell),
            },
            None => CellRun::whole(Pdu::marked(sdu, mark), vc),
        };
        match self.output.enqueue(queue, run, now).dropped {
            0 => {
                self.single.sent += u64::from(single.is_some());
                Written::Taken
            }
            _ => Written::Refused,
        }
    }

    /// When a writer that found no room should try again; `None` means when the link comes up.
    pub fn room_at(&mut self, vc: Vc, now: Instant) -> Option<Instant> {
        let queue = self.queue_of(vc).filter(|_| self.up)?;
        let level = self.output.level(queue, now)?;
        // A writer with few cells in its own queue waits for cells of others: the line empties the shared pool.
        let wait = match level.cells.checked_sub(RESUME) {
            Some(above) => self.output.time_to_send(queue, above.max(LOOK)),
            None => self.output.rate().time_of(LOOK.into()),
        };
        Some(now + wait)
    }

    /// When the queue of a VC will be empty, as far as is known now; `now` if it is empty already, or the VC is not
    /// open. `looks` is the number of earlier calls for the same wait: since other traffic may go first, a caller has
    /// to ask again, and the intervals grow.
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

    /// PDUs of a VC that the adapter has accepted and not sent yet; cells, if the VC carries single cells.
    pub fn unsent(&mut self, vc: Vc, now: Instant) -> u64 {
        let aal = self.aal(vc);
        self.queue_of(vc).map_or(0, |queue| match aal {
            AalType::Aal5 => self.output.unsent(queue, now),
            AalType::Aal0 => {
                let level = self.output.level(queue, now);
                level.map_or(0, |level| level.cells.into())
            }
        })
    }

    fn queue_of(&self, vc: Vc) -> Option<QueueId> {
        self.vc(vc)?.queue
    }
}
