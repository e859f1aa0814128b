//! Cells of a link out of the lab, and their conversion to runs and back.
//!
//! **Outwards** the cells of a run follow each other without other cells in between. Their headers have a correct HEC,
//! which formats without a HEC leave out. A header is computed again only where the payload type changes.
//!
//! **Inwards** the HEC, if cells have it, is checked like in a receiver of I.432 (one wrong bit of a header is
//! corrected, more bits cost the cell). Idle cells are dropped. All other cells go on as they came, in their order,
//! whatever their AAL: consecutive cells of one VC as one run, in which only the last cell can end a PDU. Whether the
//! cells of a PDU are complete is found out at the end of the connection, as in any ATM network.
//!
//! **Times.** Each cell counts at the time that the link's policer (`bucket.rs`) gives it: at its arrival, but none is
//! earlier than a line of the link's rate could bring it. So a datagram with many cells is not a burst above that rate.
//!
//! **Cost.** Cells of a packet whose headers are equal are checked, policed and counted together. A cell is copied
//! once, into a block of a pool ([`RawPool`]). The cells that wait for the end of a run are those of one packet, or of
//! the packets of one turn: at most [`RawCells::MOST`].
//!
//! Standards: I.361 (header, NNI form: 12 bits of VPI), I.432 §4.3 (HEC), I.610 (OAM).

use super::Event;
use super::bucket::Bucket;
use aerostat_node::atm::{CellRun, RawCells, RawPool, Timing};
use aerostat_node::inspect::Table;
use aerostat_proto::Instant;
use aerostat_wire::Vc;
use aerostat_wire::cell::{
    CELL_LEN, CellHeader, HEADER_LEN, HeaderForm, HecReceiver, HecVerdict, PAYLOAD_LEN,
};
use aerostat_wire::pseudowire::BARE_HEADER_LEN;
use std::sync::Arc;

const NO_PAYLOAD: [u8; PAYLOAD_LEN] = [0; PAYLOAD_LEN];

/// VCI of F4 OAM flows, segment and end to end.
const F4: [u16; 2] = [3, 4];

aerostat_node::rows! {
    /// One row for each link on which cells come from outside.
    struct Received: "port.Cells from outside" for (receiver: &Receiver) {
        /// Cells whose header was right.
        good_headers: u64 = receiver.hec.good,
        /// Cells whose header was corrected by the HEC.
        corrected_headers: u64 = receiver.hec.corrected,
        /// Cells discarded for their header.
        discarded_headers: u64 = receiver.hec.discarded,
        /// Idle cells, which are dropped.
        idle: u64 = receiver.idle,
        /// Cells of OAM.
        oam: u64 = receiver.oam,
        /// Cells of users, whatever their AAL.
        user_cells: u64 = receiver.user,
        /// Cells of these that end an AAL5 PDU.
        ends_of_pdus: u64 = receiver.ends,
    }
}

/// Calls `see` with header and payload of each cell of a run. Allocates nothing.
pub fn each(run: &CellRun, mut see: impl FnMut(&[u8; HEADER_LEN], &[u8; PAYLOAD_LEN])) {
    let mut read = run.header(0);
    let mut header = read.encode(HeaderForm::Nni);
    if let Some(cells) = run.raw_cells() {
        let mut pti = cells.first().map(|cell| cell.pti);
        for (cell, index) in cells.iter().zip(0..) {
            if pti != Some(cell.pti) {
                pti = Some(cell.pti);
                header = run.header(index).encode(HeaderForm::Nni);
            }
            see(&header, &cell.payload);
        }
        return;
    }
    let mut index = 0;
    run.each_payload(|payload| {
        let next = run.header(index);
        if next != read {
            (read, header) = (next, next.encode(HeaderForm::Nni));
        }
        index += 1;
        see(&header, payload);
    });
}

/// The cells of a run, 53 octets each.
pub fn encode(run: &CellRun) -> impl Iterator<Item = [u8; CELL_LEN]> {
    let mut cells = Vec::with_capacity(usize::from(run.count));
    each(run, |header, payload| {
        let mut cell = [0; CELL_LEN];
        cell[..HEADER_LEN].copy_from_slice(header);
        cell[HEADER_LEN..].copy_from_slice(payload);
        cells.push(cell);
    });
    cells.into_iter()
}

/// How many cells at the front have the header of the first one.
fn alike<const LEN: usize>(cells: &[[u8; LEN]]) -> usize {
    let header = |cell: &[u8; LEN]| {
        let [a, b, c, d, ..] = cell[..] else {
            return (0, 0);
        };
        // The HEC, if cells have it.
        let hec = if LEN == CELL_LEN { cell[4] } else { 0 };
        (u32::from_be_bytes([a, b, c, d]), hec)
    };
    let first = cells.first().map(header);
    cells
        .iter()
        .take_while(|cell| Some(header(cell)) == first)
        .count()
}

/// A run that is being collected.
struct Begun {
    vc: Vc,
    clp: bool,
    congested: bool,
    cells: Arc<RawCells>,
    first: Instant,
    last: Instant,
}

/// Receives cells from a peer. See the documentation of this module.
#[derive(Default)]
pub struct Receiver {
    hec: HecReceiver,
    pool: RawPool,
    begun: Option<Begun>,
    idle: u64,
    oam: u64,
    user: u64,
    ends: u64,
}

impl Receiver {
    /// Receives cells that arrived together, as far as the rate of the link allows: with HEC if they have 53 octets,
    /// without it if they have 52. `label` gives each header the label that it has on this link. Runs that have ended
    /// are told. Returns the number of cells above the rate.
    pub(crate) fn packet<const LEN: usize>(
        &mut self,
        mut cells: &[[u8; LEN]],
        label: impl Fn([u8; BARE_HEADER_LEN]) -> [u8; BARE_HEADER_LEN],
        (bucket, now): (&mut Bucket, Instant),
        told: &mut Vec<Event>,
    ) -> u64 {
        let mut policed = 0;
        while let Some(first) = cells.first() {
            let Some(mut header) = first.first_chunk().copied() else {
                break;
            };
            // A wrong header says nothing about the next one.
            let good = LEN != CELL_LEN || HecReceiver::is_good(&header);
            let count = if good { alike(cells) } else { 1 };
            let (alike, rest) = cells.split_at(count);
            cells = rest;
            let (fit, times) = bucket.take(u16::try_from(count).unwrap_or(u16::MAX), now);
            policed += (count - usize::from(fit)) as u64;
            if fit == 0 || LEN == CELL_LEN && self.discards(&mut header, fit) {
                continue;
            }
            let [a, b, c, d, _] = header;
            let alike = alike.get(..fit.into()).unwrap_or_default();
            self.take(label([a, b, c, d]), alike, times, told);
        }
        policed
    }

    /// Checks a header that `count` cells have, and corrects it; true if the cells are to be discarded.
    fn discards(&mut self, header: &mut [u8; HEADER_LEN], count: u16) -> bool {
        let verdict = self.hec.receive(header);
        if verdict == HecVerdict::Good {
            self.hec.receive_good(u64::from(count) - 1);
        }
        verdict == HecVerdict::Discard
    }

    /// Receives cells whose header was this one. The first cell has index 0 in `times`.
    pub(crate) fn take<const LEN: usize>(
        &mut self,
        header: [u8; BARE_HEADER_LEN],
        mut cells: &[[u8; LEN]],
        times: Timing,
        told: &mut Vec<Event>,
    ) {
        let header = CellHeader::from_word(u32::from_be_bytes(header), HeaderForm::Nni);
        let CellHeader { vc, pti, clp, .. } = header;
        let count = cells.len() as u64;
        if vc == Vc::new(0, 0) {
            self.idle += count;
            return;
        }
        if !pti.is_user() || F4.contains(&vc.vci) {
            self.oam += count;
        } else {
            self.user += count;
            self.ends += count * u64::from(pti.is_end());
        }
        let congested = pti.congested();
        let fits = |begun: &Begun| {
            (begun.vc, begun.clp, begun.congested) == (vc, clp, congested) && begun.cells.takes(pti)
        };
        let mut index = 0;
        while !cells.is_empty() {
            if !self.begun.as_ref().is_some_and(fits) {
                told.extend(self.end().map(Event::Cells));
            }
            let begun = self.begun.get_or_insert_with(|| Begun {
                vc,
                clp,
                congested,
                cells: self.pool.empty(),
                first: times.of(index),
                last: times.of(index),
            });
            // No other run refers to a block that is being filled.
            let Some(block) = Arc::get_mut(&mut begun.cells) else {
                return;
            };
            let (now, later) = cells.split_at(block.room(pti).clamp(1, cells.len()));
            // The cells have a whole payload, so the other one is never used.
            let payloads = now
                .iter()
                .map(|cell| cell.last_chunk().unwrap_or(&NO_PAYLOAD));
            block.extend(pti, payloads);
            cells = later;
            index += now.len() as u16;
            begun.last = times.of(index - 1);
        }
    }

    /// No more cells have arrived: returns the last run.
    pub fn end(&mut self) -> Option<CellRun> {
        let mut begun = self.begun.take()?;
        if let Some(cells) = Arc::get_mut(&mut begun.cells) {
            let count = cells.cells().len() as u16;
            cells.set_timing(Timing::spread(begun.first, begun.last, count));
        }
        let cells = self.pool.give(begun.cells);
        CellRun::of_raw(begun.vc, begun.clp, cells)
    }

    /// Counters.
    #[must_use]
    pub fn table(&self) -> Table {
        Table::of([Received::of(self)])
    }
}

#[cfg(test)]
mod tests;
