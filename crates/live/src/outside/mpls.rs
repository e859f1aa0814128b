//! ATM pseudowires over MPLS, on an Ethernet interface to a neighbour: a router, or another lab.
//!
//! **Format.** EtherType 8847, a stack of labels (RFC 3032), then what the innermost label stands for:
//!
//! - the pseudowire of cells: N-to-one mode of RFC 4717 §8, with or without control word ([`super::concat`]). It stands
//!   for the whole link, for one path or for one channel (`scope.rs`);
//! - a pseudowire of SDUs for each permanent connection that the lab file gives one (`sdus.rs`).
//!
//! **The line** is that of `cable.rs`, and comes up without a word of the neighbour: no protocol signals labels or the
//! state of a pseudowire. Cells of other VCs than those that a pseudowire carries are dropped and counted.
//!
//! **Labels.** Packets go out with the labels of the lab file; the label of the pseudowire has TTL 2, those outside of
//! it 255. A packet that comes in has the pseudowire's label at the bottom of its stack, and above it at most explicit
//! null (RFC 3032 §2.1, RFC 4182).

mod sdus;

use super::bucket::Bucket;
use super::cable::{Cable, Kind, Sent};
use super::cells::Receiver;
use super::concat::{Shim, Unpacker};
use super::filling::Filling;
use super::inbox::{Inbox, Turns};
use super::scope;
use super::{Event, Medium};
use aerostat_lab::model::{CellWire, Labels, Mpls, Scope};
use aerostat_node::atm::{CellRate, CellRun};
use aerostat_node::inspect::{Name, Table};
use aerostat_proto::Instant;
use aerostat_wire::MacAddr;
use aerostat_wire::mpls::{self, Entry, Stack};
use aerostat_wire::pseudowire;
use mio::{Registry, Token};
use sdus::Sdus;
use std::io;

const KIND: Kind = Kind {
    ethertype: mpls::ETHERTYPE,
    text: "pseudowires over MPLS",
    up: "mpls.up",
    down: "mpls.down",
};
/// TTL of the label of a pseudowire: the neighbour takes it off. Those outside of it may have a long way.
const TTL: u8 = 2;
const TTL_OUTSIDE: u8 = 255;

aerostat_node::rows! {
    /// One row for each link over MPLS.
    struct LineRow: "port.MPLS" for (link: &Link) {
        /// `up`, or `away` without the interface.
        state: Name = link.cable.state(),
        /// The interface.
        interface: String = link.cable.interface.clone(),
        /// Its MAC address.
        address: Option<MacAddr> = link.cable.own(),
        /// MAC address of the peer.
        peer: MacAddr = link.cable.peer,
        /// How often the interface came up.
        ups: u64 = link.cable.ups,
        /// Frames from the peer.
        frames_in: u64 = link.cable.frames_in,
        /// Frames from another system than the peer, or to another system.
        strangers: u64 = link.cable.strangers,
        /// MAC address of the sender of the last one of them.
        last_stranger: Option<MacAddr> = link.cable.last_stranger,
        /// Frames for which the socket had no room.
        overflowed: Option<u32> = link.cable.overflowed(),
        /// Turns in which the link met its limit and more frames may have waited.
        cut_turns: u64 = link.cable.turns.cut,
        /// Packets whose label stack has no end, or too many labels.
        bad_stack: u64 = link.bad_stack + link.cable.short,
        /// Packets whose labels belong to no pseudowire.
        unknown_label: u64 = link.unknown_label,
        /// Cells of VCs that no pseudowire carries.
        uncarried_out: u64 = link.uncarried,
    }
    /// One row for each pseudowire over MPLS.
    struct WireRow: "port.Pseudowires" {
        /// `cells` (N-to-one mode) or `sdus` (AAL5-SDU mode).
        mode: Name,
        /// The VCs for which it stands: `all`, VPI.* or VPI.VCI.
        carries: String,
        /// Labels of packets to the peer, the outermost first.
        label_out: String,
        /// Label of packets from the peer.
        label_in: u32,
        /// Packets from the peer.
        packets_in: u64,
        /// Packets of no valid length.
        bad_length: u64,
        /// Packets with a wrong control word, or with T and a user cell.
        bad_word: u64,
        /// Packets of the associated channel.
        channel: u64,
        /// Packets that did not come, by their sequence numbers.
        missing: u64,
        /// Packets that came after a later one.
        late: u64,
        /// Cells above the rate of the link.
        policed: u64,
        /// Packets sent.
        packets_out: u64,
        /// Cells sent, or cells that the sent SDUs would have.
        cells_out: u64,
        /// Cells that wait for a packet to fill or for the operating system.
        unsent: usize,
        /// Cells dropped because too many waited, or the line was down.
        dropped_out: u64,
        /// Packets that are longer than the interface allows.
        too_long_out: u64,
        /// Packets that the operating system refused.
        errors_out: u64,
    }
}

/// Counters of a pseudowire, in packets unless another unit is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    packets_in: u64,
    /// Packets of the associated channel, which has no user here.
    channel: u64,
    /// Cells above the rate of the link.
    policed: u64,
    packets_out: u64,
    cells_out: u64,
    /// Packets that are longer than the interface allows.
    too_long: u64,
    errors_out: u64,
}

/// The pseudowire of cells.
struct Cells {
    labels: Labels,
    stack: Vec<u8>,
    /// Beginning of frames to the peer: the header of Ethernet and the stack.
    prefix: Vec<u8>,
    scope: Scope,
    word: bool,
    filling: Filling,
    unpacker: Unpacker,
    counters: Counters,
}

impl Cells {
    fn new(wire: &CellWire) -> Self {
        let numbers = wire.sequence;
        let shim = if wire.word {
            Shim::Word { numbers }
        } else {
            Shim::None
        };
        Self {
            labels: wire.labels.clone(),
            stack: stack(&wire.labels),
            prefix: Vec::new(),
            scope: wire.scope,
            word: wire.word,
            filling: Filling::gathering(wire.gathering, shim),
            unpacker: Unpacker::new(shim),
            counters: Counters::default(),
        }
    }

    fn row(&self) -> WireRow {
        let (counters, unpacker) = (&self.counters, &self.unpacker);
        WireRow {
            mode: "cells".into(),
            carries: scope::shown(self.scope),
            label_out: shown(&self.labels),
            label_in: self.labels.incoming,
            packets_in: counters.packets_in,
            bad_length: unpacker.bad_length,
            bad_word: unpacker.bad_word,
            channel: counters.channel,
            missing: unpacker.missing(),
            late: unpacker.late(),
            policed: counters.policed,
            packets_out: counters.packets_out,
            cells_out: counters.cells_out,
            unsent: self.filling.len(),
            dropped_out: self.filling.dropped,
            too_long_out: counters.too_long,
            errors_out: counters.errors_out,
        }
    }
}

/// The octets of the stack of packets to the peer.
fn stack(labels: &Labels) -> Vec<u8> {
    let last = labels.outgoing.len().saturating_sub(1);
    let entry = |(place, label): (usize, &u32)| Entry {
        label: *label,
        class: 0,
        ttl: if place == last { TTL } else { TTL_OUTSIDE },
    };
    let entries: Vec<Entry> = labels.outgoing.iter().enumerate().map(entry).collect();
    let mut octets = Vec::new();
    // The lab file has checked the number of labels.
    if let Some(stack) = Stack::new(&entries) {
        stack.encode(&mut octets);
    }
    octets
}

/// The labels of packets to the peer, the outermost first.
fn shown(labels: &Labels) -> String {
    let labels: Vec<String> = labels.outgoing.iter().map(u32::to_string).collect();
    labels.join("/")
}

/// One link.
pub(crate) struct Link {
    pub(super) cable: Cable,
    cells: Option<Cells>,
    sdus: Sdus,
    bucket: Bucket,
    pub(super) receiver: Receiver,
    /// Packets without a whole stack, or with too many labels.
    bad_stack: u64,
    /// Packets whose labels are those of no pseudowire.
    unknown_label: u64,
    /// Cells of VCs that no pseudowire carries.
    uncarried: u64,
}

impl Link {
    /// Opens the socket.
    ///
    /// # Errors
    /// The error of the operating system.
    pub(crate) fn new(
        model: &Mpls,
        rate: CellRate,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Self> {
        let ends = (model.interface.as_str(), model.peer);
        Ok(Self {
            cable: Cable::new(ends, KIND, registry, token)?,
            cells: model.cells.as_ref().map(Cells::new),
            sdus: Sdus::new(&model.sdus),
            bucket: Bucket::new(rate),
            receiver: Receiver::default(),
            bad_stack: 0,
            unknown_label: 0,
            uncarried: 0,
        })
    }

    fn block(&mut self, blocked: bool) {
        self.sdus.blocked = blocked;
        if let Some(cells) = &mut self.cells {
            cells.filling.block(blocked);
        }
    }

    /// The line is down: drops all that waits.
    fn clear(&mut self) {
        self.sdus.clear();
        if let Some(cells) = &mut self.cells {
            cells.filling.clear();
        }
    }

    fn packet(&mut self, packet: &[u8], now: Instant, told: &mut Vec<Event>) {
        let Ok((stack, packet)) = Stack::decode(packet) else {
            self.bad_stack += 1;
            return;
        };
        let Some((bottom, above)) = stack.entries().split_last() else {
            return;
        };
        let null = |entry: &Entry| entry.label == mpls::EXPLICIT_NULL;
        let cells = self.cells.as_mut();
        let cells = cells.filter(|cells| cells.labels.incoming == bottom.label);
        if !above.iter().all(null) {
            self.unknown_label += 1;
        } else if let Some(cells) = cells {
            let rest = (&mut self.bucket, &mut self.receiver);
            take_cells(cells, packet, rest, now, told);
        } else {
            let rest = (&mut self.bucket, &mut self.receiver);
            let known = self.sdus.take(bottom.label, packet, rest, now, told);
            self.unknown_label += u64::from(!known);
        }
    }

    fn flush_cells(&mut self, now: Instant, told: &mut Vec<Event>) -> Result<(), Sent> {
        let Some(cells) = &mut self.cells else {
            return Ok(());
        };
        while let Some(batch) = cells.filling.batch(now, |_| Cable::MOST) {
            let sent = self.cable.send(batch.octets, batch.length, now, told);
            let packets = cells.counters.sent(sent)?;
            let gone = cells.filling.sent(packets);
            if matches!(sent, Sent::Yes(_)) {
                cells.counters.cells_out += gone as u64;
            }
        }
        Ok(())
    }
}

impl Medium for Link {
    fn peer(&self) -> String {
        self.cable.peer()
    }
    fn trouble(&self) -> Option<String> {
        self.cable.trouble()
    }
    fn cells(&mut self) -> Option<(&mut Receiver, &mut Turns)> {
        Some((&mut self.receiver, &mut self.cable.turns))
    }
    fn ready(&mut self, _: usize) {
        self.cable.ready();
        self.block(false);
    }
    fn poll_timeout(&self) -> Option<Instant> {
        let due = || self.cells.as_ref()?.filling.due();
        self.cable.poll_timeout().or_else(due)
    }
    fn come_up(&mut self, now: Instant, told: &mut Vec<Event>) {
        if self.cable.look(now, told) {
            self.block(false);
            if let Some(cells) = &mut self.cells {
                cells.prefix = [self.cable.header(), &cells.stack[..]].concat();
            }
        }
    }
    fn turn(
        &mut self,
        _: &Registry,
        now: Instant,
        inbox: &mut Inbox,
        told: &mut Vec<Event>,
    ) -> bool {
        self.come_up(now, told);
        self.cable.begin();
        while let Some(count) = self.cable.read(inbox, now, told) {
            for slot in 0..count {
                if let Some(packet) = self.cable.payload(inbox.packet(slot)) {
                    self.packet(packet, inbox.arrived(slot), told);
                }
            }
        }
        self.receiver.end(told);
        if self.cable.own().is_none() {
            self.clear();
        }
        self.cable.end()
    }
    fn send(&mut self, run: &CellRun) {
        let up = self.cable.own().is_some();
        if self.sdus.send(run, up) {
            return;
        }
        let carried = |cells: &&mut Cells| scope::carries(cells.scope, run.vc);
        match self.cells.as_mut().filter(carried) {
            Some(cells) if up => cells.filling.push(run, &cells.prefix),
            Some(cells) => cells.filling.dropped += u64::from(run.count),
            None => self.uncarried += u64::from(run.count),
        }
    }
    fn flush(&mut self, registry: &Registry, now: Instant, told: &mut Vec<Event>) {
        let result = match self.sdus.flush(&mut self.cable, now, told) {
            Ok(()) => self.flush_cells(now, told),
            Err(why) => Err(why),
        };
        match result {
            Err(Sent::Down) => self.clear(),
            Err(_) => self.block(true),
            Ok(()) => {}
        }
        self.cable.await_room(self.sdus.blocked, registry);
    }
    fn tables(&self) -> Vec<Table> {
        let cells = self.cells.as_ref().map(Cells::row);
        let wires = Table::of(cells.into_iter().chain(self.sdus.rows()));
        vec![Table::of([LineRow::of(self)]), wires, self.receiver.table()]
    }
}

impl Counters {
    /// Counts packets that were to be sent; returns how many of them need not wait any longer.
    ///
    /// # Errors
    /// Why they were not sent and wait on, or are lost with the line.
    fn sent(&mut self, sent: Sent) -> Result<usize, Sent> {
        match sent {
            Sent::Yes(packets) => {
                self.packets_out += packets as u64;
                return Ok(packets);
            }
            Sent::Later | Sent::Down => return Err(sent),
            // The packet is lost, as on any line.
            Sent::TooLong => self.too_long += 1,
            Sent::Refused => self.errors_out += 1,
        }
        Ok(1)
    }
}

fn take_cells(
    wire: &mut Cells,
    packet: &[u8],
    (bucket, receiver): (&mut Bucket, &mut Receiver),
    now: Instant,
    told: &mut Vec<Event>,
) {
    wire.counters.packets_in += 1;
    if wire.word && pseudowire::is_channel(packet) {
        wire.counters.channel += 1;
        return;
    }
    let scope = wire.scope;
    let cells = wire.unpacker.cells(packet);
    let label = |header| scope::relabel(scope, header);
    wire.counters.policed += receiver.packet(cells, label, (bucket, now), told);
}

#[cfg(test)]
mod tests;
