//! Cells of a link out of the lab, and their conversion to runs and back.
//!
//! **Outwards** the cells of a run follow each other without other cells in between, with a correct HEC in the header
//! if the link's format has a HEC.
//!
//! **Inwards** the HEC, if there is one, is checked like in a receiver of I.432 (one wrong bit of a header is
//! corrected, more bits cost the cell). User cells are reassembled by AAL5 for each VC, because the network moves whole
//! PDUs. OAM cells pass one by one; idle cells are dropped. A PDU with lost, damaged or mixed cells is dropped and
//! counted. A VC with another AAL than 5 therefore does not work: its cells count as bad PDUs, or wait until they time
//! out.
//!
//! **Times.** A PDU is passed on when its last cell has arrived. Its cells count as spread evenly over the time from
//! its first to its last cell, but none is earlier than a line of the link's rate could bring it. So cells that a peer
//! spaced stay spaced, and a datagram with many cells is not a burst above that rate.
//!
//! **Limits.** At most `MAX_VCS` VCs have an incomplete PDU at a time; cells of further VCs are dropped. A PDU whose
//! next cell does not come within `TIMEOUT` is dropped when the VC's next cell comes, or when its room is needed.
//!
//! Standards: I.361 (header, NNI form: 12 bits of VPI), I.432 §4.3 (HEC), I.363.5 (AAL5), I.610 (OAM).

use aerostat_node::atm::{CellRun, Pdu, Timing};
use aerostat_node::inspect::Table;
use aerostat_proto::{Duration, Instant};
use aerostat_wire::Vc;
use aerostat_wire::aal5::{Reassembler, ReassemblyCounters};
use aerostat_wire::cell::{
    CELL_LEN, CellHeader, HEADER_LEN, HeaderForm, HecReceiver, HecVerdict, PAYLOAD_LEN,
};
use std::collections::BTreeMap;

/// Limit of VCs with an incomplete PDU.
const MAX_VCS: usize = 256;
/// How long a PDU may wait for its next cell.
const TIMEOUT: Duration = Duration::from_secs(2);
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
        /// Idle cells.
        idle: u64,
        /// Cells of OAM, which are dropped.
        oam: u64,
        /// Cells of AAL5 PDUs.
        aal5_cells: u64,
        /// PDUs that were complete.
        pdus: u64,
        /// PDUs with a wrong CRC.
        bad_crc: u64,
        /// PDUs with a wrong length.
        bad_length: u64,
        /// PDUs discarded for other reasons.
        bad_other: u64,
        /// PDUs whose next cell did not come in time.
        timeouts: u64,
        /// Cells of VCs for which there was no room.
        no_room: u64,
        /// PDUs that are incomplete now.
        open_pdus: usize,
    }
}

/// The cells of a run, 53 octets each.
pub fn encode(run: &CellRun) -> impl Iterator<Item = [u8; CELL_LEN]> {
    run.to_cells()
        .into_iter()
        .map(|cell| cell.encode(HeaderForm::Nni))
}

struct Collecting {
    pdu: Reassembler,
    first: Instant,
    last: Instant,
}

/// Receives cells from a peer. See the documentation of this module.
#[derive(Default)]
pub struct Receiver {
    hec: HecReceiver,
    vcs: BTreeMap<Vc, Collecting>,
    pdus: ReassemblyCounters,
    idle: u64,
    oam: u64,
    timeouts: u64,
    no_room: u64,
}

impl Receiver {
    /// Receives one cell that arrived at `now`; returns the run that it completes.
    pub fn push(&mut self, mut cell: [u8; CELL_LEN], now: Instant) -> Option<CellRun> {
        let (header, payload) = cell.split_first_chunk_mut::<HEADER_LEN>()?;
        if self.hec.receive(header) == HecVerdict::Discard {
            return None;
        }
        let [a, b, c, d, _] = *header;
        self.take([a, b, c, d], payload.first_chunk()?, now)
    }

    /// Receives one cell whose header has no HEC.
    pub fn take(
        &mut self,
        header: [u8; HEADER_LEN - 1],
        payload: &[u8; PAYLOAD_LEN],
        now: Instant,
    ) -> Option<CellRun> {
        let header = CellHeader::from_word(u32::from_be_bytes(header), HeaderForm::Nni);
        let vc = header.vc;
        if vc == Vc::new(0, 0) {
            self.idle += 1;
            return None;
        }
        if !header.pti.is_user() || F4.contains(&vc.vci) {
            self.oam += 1;
            let mut run = CellRun::raw(vc, header.pti, *payload);
            run.clp = header.clp;
            return Some(run.timed(Timing::spread(now, now, 1)));
        }
        let collecting = self.collecting(vc, now)?;
        collecting.last = now;
        let first = collecting.first;
        let done = collecting.pdu.push(payload, header.pti, header.clp);
        if header.pti.is_end() {
            self.vcs.remove(&vc);
        }
        self.pdus.cells += 1;
        match done? {
            Ok(sdu) => {
                self.pdus.sdus += 1;
                let mut run = CellRun::whole(Pdu::with(sdu.sdu, sdu.uu, sdu.clp), vc);
                run.congested = sdu.congested;
                let timing = Timing::spread(first, now, run.count);
                Some(run.timed(timing))
            }
            Err(error) => {
                self.pdus.count(error);
                None
            }
        }
    }

    /// The incomplete PDU of this VC, or a new one if there is room.
    fn collecting(&mut self, vc: Vc, now: Instant) -> Option<&mut Collecting> {
        let fresh = |collecting: &Collecting| now.since(collecting.last) < TIMEOUT;
        if !self.vcs.contains_key(&vc) && self.vcs.len() >= MAX_VCS {
            let before = self.vcs.len();
            self.vcs.retain(|_, collecting| fresh(collecting));
            self.timeouts += (before - self.vcs.len()) as u64;
            if self.vcs.len() >= MAX_VCS {
                self.no_room += 1;
                return None;
            }
        }
        let collecting = self.vcs.entry(vc).or_insert_with(|| Collecting {
            pdu: Reassembler::new(0),
            first: now,
            last: now,
        });
        if !fresh(collecting) {
            collecting.pdu.reset();
            collecting.first = now;
            self.timeouts += 1;
        }
        Some(collecting)
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
            aal5_cells: self.pdus.cells,
            pdus: self.pdus.sdus,
            bad_crc: self.pdus.crc,
            bad_length: self.pdus.length,
            bad_other: self.pdus.cpi + self.pdus.too_long + self.pdus.aborted,
            timeouts: self.timeouts,
            no_room: self.no_room,
            open_pdus: self.vcs.len(),
        }])
    }
}

#[cfg(test)]
mod tests;
