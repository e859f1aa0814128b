//! Cells of a link out of the lab, and their conversion to runs and back.
//!
//! **Outwards** the cells of a run follow each other without other cells in between. Their headers have a correct HEC,
//! which formats without a HEC leave out. A header is computed again only where the payload type changes.
//!
//! **Inwards** the HEC, if cells have it, is checked like in a receiver of I.432 (one wrong bit of a header is
//! corrected, more bits cost the cell). Idle cells are dropped. All other cells go on as they came, in their order,
//! whatever their AAL: cells of one VC that come together as one run, also across the ends of PDUs. Whether the cells
//! of a PDU are complete is found out at the end of the connection, as in any ATM network.
//!
//! **Times.** Each cell counts at the time that the link's policer (`bucket.rs`) gives it: at its arrival, but none is
//! earlier than a line of the link's rate could bring it. So a datagram with many cells is not a burst above that rate.
//! A run has its cells at even distances from the first one to the last one. So a PDU that comes long after the
//! beginning of a run is not added to it.
//!
//! **Cost.** Cells of a packet whose headers differ in the mark of the end of a PDU at most are checked, policed and
//! counted together. A cell is copied once, into a block of a pool. The cells of a VC that come in one turn become one
//! run, also between cells of other VCs (`cells/gathering.rs`).
//!
//! Standards: I.361 (header, NNI form: 12 bits of VPI), I.432 §4.3 (HEC), I.610 (OAM).

mod gathering;

use super::Event;
use super::bucket::Bucket;
use aerostat_node::atm::{CellRun, Timing};
use aerostat_node::inspect::Table;
use aerostat_proto::Instant;
use aerostat_wire::Vc;
use aerostat_wire::cell::{
    CELL_LEN, CellHeader, HEADER_LEN, HeaderForm, HecReceiver, HecVerdict, PAYLOAD_LEN, Pti, hec,
};
use aerostat_wire::pseudowire::BARE_HEADER_LEN;
use gathering::{Gathering, Kind, Taken};

const NO_PAYLOAD: [u8; PAYLOAD_LEN] = [0; PAYLOAD_LEN];

/// The bit of a header's word that marks the last cell of a PDU, in a user cell; and the bit that user cells do not
/// have.
const END: u32 = 1 << 1;
const NOT_USER: u32 = 1 << 3;

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
        let Some(mut pti) = cells.first().map(|cell| cell.pti) else {
            return;
        };
        // Two headers alternate: that of the ends of PDUs, and that of other cells.
        let mut other = (pti, header);
        for (cell, index) in cells.iter().zip(0..) {
            if pti != cell.pti {
                core::mem::swap(&mut header, &mut other.1);
                core::mem::swap(&mut pti, &mut other.0);
                if pti != cell.pti {
                    (pti, header) = (cell.pti, run.header(index).encode(HeaderForm::Nni));
                }
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

/// The word of a cell's header, and its HEC if cells have it.
fn header_of<const LEN: usize>(cell: &[u8; LEN]) -> (u32, u8) {
    let [a, b, c, d, ..] = cell[..] else {
        return (0, 0);
    };
    let hec = if LEN == CELL_LEN { cell[4] } else { 0 };
    (u32::from_be_bytes([a, b, c, d]), hec)
}

/// How many cells at the front have the header of the first one, which is good, or of user cells the same header with
/// the other mark of the end of a PDU.
fn alike<const LEN: usize>(cells: &[[u8; LEN]]) -> usize {
    let Some(first) = cells.first().map(header_of) else {
        return 0;
    };
    let other = match first.0 & NOT_USER {
        0 => first.0 ^ END,
        _ => first.0,
    };
    let mut other_hec = None;
    let mut fits = |header: (u32, u8)| {
        let mut good = || *other_hec.get_or_insert_with(|| hec(other.to_be_bytes()));
        header == first || header.0 == other && (LEN != CELL_LEN || header.1 == good())
    };
    let alike = cells.iter().take_while(|cell| fits(header_of(cell)));
    alike.count()
}

/// Receives cells from a peer. See the documentation of this module.
#[derive(Default)]
pub struct Receiver {
    hec: HecReceiver,
    gathering: Gathering,
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
        // The usual case, in which all cells of the packet fit, whatever their headers.
        let count = u16::try_from(cells.len()).unwrap_or(0);
        let whole = bucket.take_all(count, now);
        let mut index = 0;
        while let Some(first) = cells.first() {
            let Some(mut header) = first.first_chunk().copied() else {
                break;
            };
            // A wrong header says nothing about the next one.
            let good = LEN != CELL_LEN || HecReceiver::is_good(&header);
            let count = if good { alike(cells) } else { 1 };
            let (alike, rest) = cells.split_at(count);
            cells = rest;
            let (fit, taken) = match whole {
                Some(times) => (count as u16, Taken { times, index }),
                None => {
                    let (fit, times) = bucket.take(u16::try_from(count).unwrap_or(u16::MAX), now);
                    (fit, Taken { times, index: 0 })
                }
            };
            index += count as u16;
            policed += (count - usize::from(fit)) as u64;
            if fit == 0 || LEN == CELL_LEN && self.discards(&mut header, fit) {
                continue;
            }
            let [a, b, c, d, _] = header;
            let header =
                CellHeader::from_word(u32::from_be_bytes(label([a, b, c, d])), HeaderForm::Nni);
            let alike = alike.get(..fit.into()).unwrap_or_default();
            // The header of a cell alone may have been corrected.
            let mixed = count > 1 && header.pti.is_user();
            let rest = header.pti.value() & !Pti::USER_END.value();
            let pti = |cell: &[u8; LEN]| match mixed {
                true => Pti::new(rest | u8::from(header_of(cell).0 & END != 0)),
                false => header.pti,
            };
            self.collect(header, alike, pti, taken, told);
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
        cells: &[[u8; LEN]],
        times: Timing,
        told: &mut Vec<Event>,
    ) {
        let header = CellHeader::from_word(u32::from_be_bytes(header), HeaderForm::Nni);
        let taken = Taken { times, index: 0 };
        self.collect(header, cells, |_| header.pti, taken, told);
    }

    /// Receives cells with a header in which `pti` gives the payload type of each: that of the header, or of user cells
    /// the same with the other mark of the end of a PDU.
    fn collect<const LEN: usize>(
        &mut self,
        header: CellHeader,
        mut cells: &[[u8; LEN]],
        pti: impl Fn(&[u8; LEN]) -> Pti,
        mut taken: Taken,
        told: &mut Vec<Event>,
    ) {
        let CellHeader { vc, clp, .. } = header;
        let count = cells.len() as u64;
        if vc == Vc::new(0, 0) {
            self.idle += count;
            return;
        }
        let user = header.pti.is_user() && !F4.contains(&vc.vci);
        *(if user { &mut self.user } else { &mut self.oam }) += count;
        let kind = Kind {
            vc,
            clp,
            congested: header.pti.congested(),
        };
        while !cells.is_empty() {
            let next = (&taken, cells.len() as u16);
            let (begun, most) = self.gathering.run(kind, header.pti, next, told);
            let Some(block) = begun.fill() else {
                return;
            };
            let before = block.cells().len() as u16;
            let (now, later) = cells.split_at(most.min(cells.len()));
            // The cells have a whole payload, so the other one is never used.
            block.extend(now, |cell| {
                (pti(cell), cell.last_chunk().unwrap_or(&NO_PAYLOAD))
            });
            if user {
                self.ends += u64::from(block.ends(before, now.len() as u16));
            }
            cells = later;
            taken.index += now.len() as u16;
        }
    }

    /// Makes runs end where another VC begins, or not.
    pub(super) fn keep_order(&mut self, order: bool) {
        self.gathering.in_order = order;
    }

    /// No more cells have arrived: the last runs are told.
    pub(crate) fn end(&mut self, told: &mut Vec<Event>) {
        self.gathering.end(told);
    }

    /// Counters.
    #[must_use]
    pub fn table(&self) -> Table {
        Table::of([Received::of(self)])
    }
}

#[cfg(test)]
mod tests;
