//! Pseudowires in AAL5-SDU mode (RFC 4717 §10): one label for one VC, one packet for one SDU.
//!
//! The flags of the control word stand for what the cells would say: EFCI, CLP, the lowest bit of the UU octet. Other
//! bits of UU are lost. An OAM cell goes in a packet of its own, with T. A PDU whose cells come one by one is put
//! together first; a PDU that lost cells cannot go.
//!
//! Packets wait for the operating system as cells do, counted in cells, up to `QUEUE`. Received SDUs are charged to the
//! rate of the link by their cells, and count as spaced at that rate; so are the cells of an SDU that a peer sends in
//! one packet. An SDU above the rate is dropped.

use super::super::Event;
use super::super::bucket::Bucket;
use super::super::cable::{Cable, Sent};
use super::super::cells::Receiver;
use super::super::filling::QUEUE;
use super::super::scope;
use super::super::sequence::{Numbers, Order, Space};
use super::{Counters, WireRow, shown, stack};
use crate::assembly::Assembly;
use aerostat_lab::model::{Scope, SduWire};
use aerostat_node::atm::{CellRun, Pdu};
use aerostat_proto::Instant;
use aerostat_wire::Vc;
use aerostat_wire::aal5::cells_for;
use aerostat_wire::cell::{CellHeader, HeaderForm};
use aerostat_wire::pseudowire::{self, Aal5Packet, AtmFlags};
use std::collections::{BTreeMap, VecDeque};

/// One pseudowire.
struct Wire {
    model: SduWire,
    stack: Vec<u8>,
    numbers: Numbers,
    order: Order,
    counters: Counters,
    bad_length: u64,
    bad_word: u64,
    /// Cells dropped because too many wait, the line is down, or their PDU is not whole.
    dropped: u64,
    unsent: usize,
}

/// A packet that waits.
struct Waiting {
    wire: usize,
    flags: AtmFlags,
    payload: Payload,
    cells: u16,
}

enum Payload {
    Sdu(Pdu),
    Cell(Vec<u8>),
}

/// The pseudowires of a link.
pub(super) struct Sdus {
    wires: Vec<Wire>,
    by_vc: BTreeMap<Vc, usize>,
    by_label: BTreeMap<u32, usize>,
    waiting: VecDeque<Waiting>,
    waiting_cells: usize,
    /// PDUs whose cells come one by one. The note is the congestion bit of the last cell.
    assembly: Assembly<Vc, bool>,
    pub(super) blocked: bool,
    /// The frame that is sent.
    octets: Vec<u8>,
}

impl Sdus {
    pub(super) fn new(models: &[SduWire]) -> Self {
        let wire = |model: &SduWire| Wire {
            model: model.clone(),
            stack: stack(&model.labels),
            numbers: Numbers::new(Space::Sixteen),
            order: Order::new(Space::Sixteen),
            counters: Counters::default(),
            bad_length: 0,
            bad_word: 0,
            dropped: 0,
            unsent: 0,
        };
        let places = || models.iter().zip(0..);
        Self {
            wires: models.iter().map(wire).collect(),
            by_vc: places().map(|(model, place)| (model.vc, place)).collect(),
            by_label: places()
                .map(|(model, place)| (model.labels.incoming, place))
                .collect(),
            waiting: VecDeque::new(),
            waiting_cells: 0,
            assembly: Assembly::default(),
            blocked: false,
            octets: Vec::new(),
        }
    }

    /// Takes cells. Queues the SDUs that they complete, or an OAM cell, or drops them. False if the run's VC has no
    /// pseudowire here.
    pub(super) fn send(&mut self, run: &CellRun, up: bool) -> bool {
        let Some(place) = self.by_vc.get(&run.vc).copied() else {
            return false;
        };
        if run.has_several() {
            let mut singles = run.clone().singles();
            return singles.all(|single| self.send(&single, up));
        }
        let Some(wire) = self.wires.get_mut(place) else {
            return false;
        };
        let (flags, payload, cells) = if run.is_user() {
            // The congestion bit of the last cell counts.
            let note = |congested: &mut bool| *congested = run.congested;
            let lost = self.assembly.lost_cells;
            let done = self.assembly.take(run.vc, run, |_| true, note);
            wire.dropped += self.assembly.lost_cells - lost;
            let Some(done) = done else {
                return true;
            };
            let flags = AtmFlags {
                cell: false,
                congested: done.note,
                clp: done.clp,
                command: done.pdu.uu() & 1 == 1,
            };
            let cells = done.pdu.cells();
            (flags, Payload::Sdu(done.pdu), cells)
        } else {
            let mut octets = Vec::with_capacity(pseudowire::BARE_CELL_LEN);
            if let Some(cell) = run.to_cells().first() {
                pseudowire::put_cell(&mut octets, &cell.encode(HeaderForm::Nni));
            }
            let flags = AtmFlags {
                cell: true,
                congested: run.congested,
                clp: run.clp,
                command: false,
            };
            (flags, Payload::Cell(octets), run.count)
        };
        if !up || self.waiting_cells + usize::from(cells) > QUEUE {
            wire.dropped += u64::from(cells);
            return true;
        }
        wire.unsent += usize::from(cells);
        self.waiting_cells += usize::from(cells);
        self.waiting.push_back(Waiting {
            wire: place,
            flags,
            payload,
            cells,
        });
        true
    }

    /// The line is down: drops all that waits.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.waiting_cells = 0;
        self.assembly.clear();
        for wire in &mut self.wires {
            wire.dropped += std::mem::take(&mut wire.unsent) as u64;
        }
    }

    /// Sends what waits.
    ///
    /// # Errors
    /// Why something still waits, or is lost with the line.
    pub(super) fn flush(
        &mut self,
        cable: &mut Cable,
        now: Instant,
        told: &mut Vec<Event>,
    ) -> Result<(), Sent> {
        while let Some(first) = self.waiting.front().filter(|_| !self.blocked) {
            if let Some(wire) = self.wires.get_mut(first.wire) {
                let sequence = if wire.model.sequence {
                    wire.numbers.number()
                } else {
                    0
                };
                let payload = match &first.payload {
                    Payload::Sdu(pdu) => pdu.sdu(),
                    Payload::Cell(octets) => octets,
                };
                let packet = Aal5Packet {
                    flags: first.flags,
                    sequence: sequence as u16,
                    payload,
                };
                let octets = &mut self.octets;
                octets.clear();
                octets.extend_from_slice(cable.header());
                octets.extend_from_slice(&wire.stack);
                packet.encode(octets);
                let sent = cable.send(octets, octets.len(), now, told);
                wire.counters.sent(sent)?;
                if matches!(sent, Sent::Yes(_)) {
                    wire.counters.cells_out += u64::from(first.cells);
                }
                wire.numbers.sent(1);
                wire.unsent -= usize::from(first.cells);
            }
            self.waiting_cells -= usize::from(first.cells);
            self.waiting.pop_front();
        }
        Ok(())
    }

    /// Takes a packet with this label; false if the label is that of no pseudowire here.
    pub(super) fn take(
        &mut self,
        label: u32,
        packet: &[u8],
        (bucket, receiver): (&mut Bucket, &mut Receiver),
        now: Instant,
        told: &mut Vec<Event>,
    ) -> bool {
        let place = self.by_label.get(&label);
        let Some(wire) = place.and_then(|place| self.wires.get_mut(*place)) else {
            return false;
        };
        wire.counters.packets_in += 1;
        if pseudowire::is_channel(packet) {
            wire.counters.channel += 1;
            return true;
        }
        let read = match Aal5Packet::decode(packet) {
            Ok(read) => read,
            Err(error) if error.field == "control word" && packet.len() >= pseudowire::WORD_LEN => {
                wire.bad_word += 1;
                return true;
            }
            Err(_) => {
                wire.bad_length += 1;
                return true;
            }
        };
        let number = (wire.model.sequence && read.sequence != 0).then(|| read.sequence.into());
        if wire.order.takes(number) {
            let cells = if read.flags.cell {
                1
            } else {
                cells_for(read.payload.len())
            };
            if bucket.full_until(now).is_some() {
                wire.counters.policed += cells as u64;
            } else if read.flags.cell {
                wire.cell(&read, (bucket, receiver), now, told);
            } else {
                receiver.end(told);
                told.extend(wire.sdu(&read, bucket, now).map(Event::Cells));
            }
        }
        true
    }

    /// A row for each pseudowire.
    pub(super) fn rows(&self) -> impl Iterator<Item = WireRow> {
        self.wires.iter().map(Wire::row)
    }
}

impl Wire {
    fn row(&self) -> WireRow {
        let counters = &self.counters;
        WireRow {
            mode: "sdus".into(),
            carries: self.model.vc.to_string(),
            label_out: shown(&self.model.labels),
            label_in: self.model.labels.incoming,
            packets_in: counters.packets_in,
            bad_length: self.bad_length,
            bad_word: self.bad_word,
            channel: counters.channel,
            missing: self.order.missing,
            late: self.order.late,
            policed: counters.policed,
            packets_out: counters.packets_out,
            cells_out: counters.cells_out,
            unsent: self.unsent,
            dropped_out: self.dropped,
            too_long_out: counters.too_long,
            errors_out: counters.errors_out,
        }
    }

    /// The SDU of a packet; `None` if it is longer than AAL5 allows.
    fn sdu(&mut self, read: &Aal5Packet<'_>, bucket: &mut Bucket, now: Instant) -> Option<CellRun> {
        let length = read.payload.len();
        if length > aerostat_wire::aal5::MAX_SDU {
            self.bad_length += 1;
            return None;
        }
        let timing = bucket.charge(cells_for(length) as u64, now);
        let pdu = Pdu::with(
            read.payload.to_vec(),
            read.flags.command.into(),
            read.flags.clp,
        );
        let mut run = CellRun::whole(pdu, self.model.vc).timed(timing);
        run.congested = read.flags.congested;
        Some(run)
    }

    /// The cell of a packet with T: an OAM cell, of which only payload type and payload count.
    fn cell(
        &mut self,
        read: &Aal5Packet<'_>,
        (bucket, receiver): (&mut Bucket, &mut Receiver),
        now: Instant,
        told: &mut Vec<Event>,
    ) {
        for cell in pseudowire::cells(read.payload).into_iter().flatten() {
            let [a, b, c, d, ..] = *cell;
            let header = scope::relabel(Scope::Channel(self.model.vc), [a, b, c, d]);
            let word = u32::from_be_bytes(header);
            // User data in single cells would be mixed into the SDUs.
            if CellHeader::from_word(word, HeaderForm::Nni).pti.is_user() {
                self.bad_word += 1;
                return;
            }
            let times = bucket.charge(1, now);
            receiver.take(header, std::slice::from_ref(cell), times, told);
        }
    }
}
