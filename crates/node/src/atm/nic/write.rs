//! Sending with back-pressure, like a blocking `write` on an ATM socket: the adapter takes a whole PDU, or the PDU
//! waits in the program.

use super::super::mark::Mark;
use super::super::pdu::{CellRun, Pdu};
use super::super::pdu_train::PduTrain;
use super::super::port::QueueId;
use super::super::sdus::Sdus;
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

/// The result of writing PDUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// The PDUs are in the queue.
    Taken,
    /// There is no room for these PDUs, the last ones or all; the others are in the queue.
    Full(Sdus),
    /// The VC is not open for sending, or carries single cells, and these are no cells of user data.
    Refused,
}

impl Nic {
    /// Writes PDUs with this mark. Unlike [`Nic::send`], this accepts PDUs only if there is room for them and the link
    /// is up; [`Nic::room_at`] says when to try again. The upper half of the buffer that all VCs share is reserved for
    /// VCs with an empty queue.
    ///
    /// On a VC of single cells each SDU is a cell ([`aerostat_wire::aal0`]). Only a cell that ends a PDU keeps its
    /// mark.
    pub fn write(
        &mut self,
        vc: Vc,
        sdus: impl Into<Sdus>,
        mark: Option<Mark>,
        now: Instant,
    ) -> Written {
        let mut sdus = sdus.into();
        let Some(queue) = self.queue_of(vc) else {
            return Written::Refused;
        };
        let single = self.aal(vc) == AalType::Aal0;
        if single && sdus.iter().any(|sdu| UserCell::decode(sdu).is_err()) {
            return Written::Refused;
        }
        let Some(room) = self.room(queue, &sdus, single, now) else {
            return Written::Refused;
        };
        if room == 0 {
            return Written::Full(sdus);
        }
        let (fits, rest) = match sdus.split_off_front(room) {
            Some(front) => (front, Some(sdus)),
            None => (sdus, None),
        };
        let mut dropped = 0;
        for run in runs(vc, fits, single, mark) {
            self.single.sent += u64::from(single);
            dropped += self.output.enqueue(queue, run, now).dropped;
        }
        match (dropped, rest) {
            (0, None) => Written::Taken,
            (0, Some(rest)) => Written::Full(rest),
            _ => Written::Refused,
        }
    }

    /// How many of these PDUs the adapter takes now; `None` if the queue is not open.
    fn room(&mut self, queue: QueueId, sdus: &Sdus, single: bool, now: Instant) -> Option<usize> {
        let level = self.output.level(queue, now)?;
        let empty = level.cells == 0;
        let pool = if empty {
            level.pool_early
        } else {
            level.pool_early / 2
        };
        let pool = pool.saturating_sub(level.pool);
        let own = SEND_BUFFER.saturating_sub(level.cells);
        let cells = |index| match single {
            true => 1,
            false => cells_for(sdus.length(index)) as u32,
        };
        let (mut used, mut count) = (0, 0);
        while self.up && count < sdus.count() {
            used += cells(count);
            // An empty queue takes a PDU of any size.
            let first = empty && count == 0;
            if used > pool || used > own && !first {
                break;
            }
            count += 1;
        }
        Some(count)
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

/// The cells of PDUs. Several PDUs of AAL5 are a train.
fn runs(vc: Vc, sdus: Sdus, single: bool, mark: Option<Mark>) -> Vec<CellRun> {
    if single {
        let cells = sdus.iter().filter_map(|sdu| UserCell::decode(sdu).ok());
        let run = |cell: UserCell| match mark.filter(|_| cell.pti == Pti::user(true)) {
            Some(mark) => CellRun::whole(Pdu::of_cell(cell.payload, cell.clp, mark), vc),
            None => CellRun::of_user_cell(vc, &cell),
        };
        return cells.map(run).collect();
    }
    if sdus.count() == 1 {
        return vec![CellRun::whole(Pdu::marked(sdus.into_vec(), mark), vc)];
    }
    match PduTrain::new(sdus) {
        Ok(train) => vec![CellRun::of_train(train, vc)],
        Err(source) => source
            .pdus()
            .into_iter()
            .map(|pdu| CellRun::whole(pdu, vc))
            .collect(),
    }
}
