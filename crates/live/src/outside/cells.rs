//! Cells of a link out of the lab, and their conversion to runs and back.
//!
//! **Outwards** the cells of a run follow each other without other cells in between, with a correct HEC in the header
//! if the link's format has a HEC.
//!
//! **Inwards** the HEC, if there is one, is checked like in a receiver of I.432 (one wrong bit of a header is
//! corrected, more bits cost the cell). Idle cells are dropped. All other cells go on as they came, in their order,
//! whatever their AAL: consecutive cells of one VC as one run, in which only the last cell can end a PDU. Whether the
//! cells of a PDU are complete is found out at the end of the connection, as in any ATM network.
//!
//! **Times.** Each cell counts at the time that the link's policer (`bucket.rs`) gives it: at its arrival, but none is
//! earlier than a line of the link's rate could bring it. So a datagram with many cells is not a burst above that rate.
//!
//! **Memory.** A cell is copied once, into a block of a pool ([`RawPool`]). The cells that wait for the end of a run
//! are those of one packet, or of the packets of one turn: at most [`RawCells::MOST`].
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
use aerostat_wire::pseudowire::BareCell;
use std::sync::Arc;

/// VCI of F4 OAM flows, segment and end to end.
const F4: [u16; 2] = [3, 4];

aerostat_node::rows! {
    /// One row for each link on which cells come from outside.
    struct Received: "port.Cells from outside" {
        /// Cells whose header was right.
        good_headers: u64,
        /// Cells whose header was corrected by the HEC.
        corrected_headers: u64,
        /// Cells discarded for their header.
        discarded_headers: u64,
        /// Idle cells, which are dropped.
        idle: u64,
        /// Cells of OAM.
        oam: u64,
        /// Cells of users, whatever their AAL.
        user_cells: u64,
        /// Cells of these that end an AAL5 PDU.
        ends_of_pdus: u64,
    }
}

/// Calls `see` with each cell of a run, 53 octets each. Allocates nothing.
pub fn each(run: &CellRun, mut see: impl FnMut(&[u8; CELL_LEN])) {
    let (mut octets, mut index) = ([0; CELL_LEN], 0);
    run.each_payload(|payload| {
        let (header, rest) = octets.split_at_mut(HEADER_LEN);
        header.copy_from_slice(&run.header(index).encode(HeaderForm::Nni));
        rest.copy_from_slice(payload);
        index += 1;
        see(&octets);
    });
}

/// The cells of a run, 53 octets each.
pub fn encode(run: &CellRun) -> impl Iterator<Item = [u8; CELL_LEN]> {
    let mut cells = Vec::with_capacity(usize::from(run.count));
    each(run, |cell| cells.push(*cell));
    cells.into_iter()
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
    /// Receives one cell that arrived at `now`. Returns the run before it, if this cell does not belong to that run.
    pub fn push(&mut self, mut cell: [u8; CELL_LEN], now: Instant) -> Option<CellRun> {
        let (header, payload) = cell.split_first_chunk_mut::<HEADER_LEN>()?;
        if self.hec.receive(header) == HecVerdict::Discard {
            return None;
        }
        let [a, b, c, d, _] = *header;
        self.take([a, b, c, d], payload.first_chunk()?, now)
    }

    /// Receives the cells of a packet, without HEC, as far as the rate of the link allows. Returns the number of cells
    /// above the rate.
    pub(crate) fn packet(
        &mut self,
        cells: impl Iterator<Item = BareCell>,
        bucket: &mut Bucket,
        now: Instant,
        told: &mut Vec<Event>,
    ) -> u64 {
        let mut policed = 0;
        for (header, payload) in cells {
            match bucket.take(now) {
                Some(at) => told.extend(self.take(header, &payload, at).map(Event::Cells)),
                None => policed += 1,
            }
        }
        policed
    }

    /// Receives one cell whose header has no HEC. Returns the run before it, if this cell does not belong to that run.
    pub fn take(
        &mut self,
        header: [u8; HEADER_LEN - 1],
        payload: &[u8; PAYLOAD_LEN],
        now: Instant,
    ) -> Option<CellRun> {
        let header = CellHeader::from_word(u32::from_be_bytes(header), HeaderForm::Nni);
        let CellHeader { vc, pti, clp, .. } = header;
        if vc == Vc::new(0, 0) {
            self.idle += 1;
            return None;
        }
        if !pti.is_user() || F4.contains(&vc.vci) {
            self.oam += 1;
        } else {
            self.user += 1;
            self.ends += u64::from(pti.is_end());
        }
        let congested = pti.congested();
        let fits = |begun: &Begun| {
            (begun.vc, begun.clp, begun.congested) == (vc, clp, congested) && begun.cells.takes(pti)
        };
        let before = if self.begun.as_ref().is_some_and(fits) {
            None
        } else {
            self.end()
        };
        let begun = self.begun.get_or_insert_with(|| Begun {
            vc,
            clp,
            congested,
            cells: self.pool.empty(),
            first: now,
            last: now,
        });
        begun.last = now;
        // Nobody else refers to a block that is being filled.
        if let Some(cells) = Arc::get_mut(&mut begun.cells) {
            cells.push(pti, payload);
        }
        before
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
        Table::of([Received {
            good_headers: self.hec.good,
            corrected_headers: self.hec.corrected,
            discarded_headers: self.hec.discarded,
            idle: self.idle,
            oam: self.oam,
            user_cells: self.user,
            ends_of_pdus: self.ends,
        }])
    }
}

#[cfg(test)]
mod tests;
