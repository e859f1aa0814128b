//! Captures while packets pass: pcapng for each client that requests it.
//!
//! **Where.** Each link has one tap, which sees every packet once, where it enters the link. Packets that a queue in
//! front of the link discards are not seen. Directions are those of the link's first end. With two taps per link, one
//! at each end, a capture also has arriving packets, and packets that are discarded on arrival ([`Form::both_ends`]).
//!
//! **What.** The PDUs that a receiver on the line could reassemble, whether their cells are consecutive or interleaved
//! (`assembly.rs`; it has the bounds).
//! A PDU that lost cells in a queue is left out. With [`Form::cells`] single cells are recorded instead, including OAM
//! cells, each with its own time on the line.
//!
//! **When.** The network in real time moves the cells of a turn as a run. The time of a PDU is when the first cell of
//! its last run leaves the port, or arrives. Both are times of the network, so that no PDU leaves a node before it has
//! arrived there, also in a network that has lost time. Single cells of a run follow each other at the rate of the
//! line. Single cells from outside the lab have the times at which the policer there counts them
//! (`outside/bucket.rs`): many PDUs can come in one read, and a line of that rate brings their cells one after
//! another. So a recording shows what a policer judged.
//!
//! Packets that a slow client does not take are left out, and an interface statistics block reports their number.

use aerostat_lab::model::{Lab, LineParams, LinkId, NodeKind};
use aerostat_lab::plant::LineId;
use aerostat_node::atm::{CellRun, DropReason, Pdu};
use aerostat_proto::{Duration, Instant};
use aerostat_wire::pcapng::{CapturedCell, CapturedSdu, Direction, InterfaceId, LinkType, PcapNg};
use aerostat_wire::{Vc, summary};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use crate::assembly::{Assembled, Assembly};
use crate::control::STREAM_DEPTH;
use crate::ladder::{Ladder, Wanted};
use crate::past::Past;
use aerostat_lab::Event;

/// One end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct End {
    /// The link.
    pub link: LinkId,
    /// 0 or 1: index into its ends.
    pub side: usize,
}

impl End {
    /// Where a line begins.
    pub(crate) const fn sender(line: LineId) -> Self {
        Self {
            link: line.link(),
            side: line.side(),
        }
    }
    /// Where a line ends.
    pub(crate) const fn receiver(line: LineId) -> Self {
        Self {
            link: line.link(),
            side: 1 - line.side(),
        }
    }
}

/// All captures of a running lab.
#[derive(Debug, Default)]
pub struct Captures {
    running: Vec<Capture>,
    /// The directions of links that have changed.
    lines: BTreeMap<LinkId, [LineParams; 2]>,
    ladders: Vec<Ladder>,
    /// Messages that were sent earlier.
    pub(crate) past: Past,
    /// PDUs whose cells have not all passed, by end, direction (true: sent) and connection; the note is why cells of
    /// the PDU were dropped.
    assembly: Assembly<(End, bool, Vc), Option<DropReason>>,
    /// PDUs that queues in front of an end have refused: the last ones that ladders have shown.
    refused: VecDeque<(End, Pdu)>,
    /// Packets that clients of ended captures did not take in time.
    dropped: u64,
}

/// Limit of [`Captures::refused`].
const MOST_REFUSED: usize = 64;

/// Form of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// True for a tap at each end of a link, false for one tap.
    pub both_ends: bool,
    /// True for single cells, false for whole PDUs.
    pub cells: bool,
}

/// An interface of a capture.
#[derive(Clone, Copy, Debug)]
struct Tap {
    end: End,
    id: InterfaceId,
    /// The directions of the link, by the end at which they start.
    lines: [LineParams; 2],
    /// True for each end of the link that is outside the lab.
    outside: [bool; 2],
}

#[derive(Debug)]
struct Capture {
    file: PcapNg<Vec<u8>>,
    form: Form,
    /// The interfaces. A link with one tap has one, for its first end.
    interfaces: Vec<Tap>,
    chunks: SyncSender<Vec<u8>>,
    epoch_ns: u64,
    dropped: u64,
    /// Of these, the number that the stream itself reports.
    told: u64,
}

impl Captures {
    /// Starts a capture of `links`; `epoch_ns` is the wall clock at the start of the run.
    ///
    /// # Errors
    /// None in practice, because the file is in memory.
    pub fn start(
        &mut self,
        lab: &Lab,
        links: &[LinkId],
        form: Form,
        epoch_ns: u64,
    ) -> io::Result<Receiver<Vec<u8>>> {
        let mut file = PcapNg::new(Vec::new(), &format!("lab {}", lab.name))?;
        let mut interfaces = Vec::new();
        let kind = match form.cells {
            true => LinkType::ErfCells,
            false => LinkType::SunAtm,
        };
        for &link in links {
            let model = lab.link(link);
            let sides: &[usize] = if form.both_ends { &[0, 1] } else { &[0] };
            for &side in sides {
                let (here, there) = (model.ends[side], model.ends[1 - side]);
                let name = |node| lab.node(node).name.as_str();
                let (from, to) = (name(here.node), name(there.node));
                let (called, about) = match form.both_ends {
                    true => (
                        format!("{}:{from}", model.name),
                        format!("{from} port {} to {to}", here.port),
                    ),
                    false => (
                        model.name.clone(),
                        format!(
                            "{from} port {} and {to} port {}; sent is from {from}",
                            here.port, there.port
                        ),
                    ),
                };
                let outside = model.ends.map(|end| {
                    let kind = &lab.node(end.node).kind;
                    matches!(kind, NodeKind::Outside(_))
                });
                interfaces.push(Tap {
                    end: End { link, side },
                    id: file.interface(kind, &called, &about)?,
                    lines: self.lines.get(&link).copied().unwrap_or(model.lines),
                    outside,
                });
            }
        }
        let (chunks, receiver) = sync_channel(STREAM_DEPTH);
        let mut capture = Capture {
            file,
            form,
            interfaces,
            chunks,
            epoch_ns,
            dropped: 0,
            told: 0,
        };
        capture.pass_on();
        // Connections without a capture may have ended in the middle of a PDU.
        self.assembly.clear();
        self.running.push(capture);
        Ok(receiver)
    }

    /// A link has other rates or delays from now on: times of cells follow them.
    pub(crate) fn change_link(&mut self, link: LinkId, lines: [LineParams; 2]) {
        self.lines.insert(link, lines);
        let taps = self.running.iter_mut();
        let taps = taps.flat_map(|capture| &mut capture.interfaces);
        for tap in taps.filter(|tap| tap.end.link == link) {
            tap.lines = lines;
        }
    }

    /// Ends all captures: their clients get the remaining data, and then end of file. Ladders pass on what waits.
    pub(crate) fn end(&mut self) {
        self.keep_ladders(Ladder::pass_all);
        for capture in self.running.drain(..) {
            self.dropped += capture.dropped;
        }
    }

    /// Starts a message ladder.
    pub(crate) fn ladder(&mut self, lab: &Lab, wanted: Wanted) -> Receiver<Vec<u8>> {
        self.assembly.clear();
        let (ladder, receiver) = Ladder::new(lab, wanted);
        self.ladders.push(ladder);
        receiver
    }

    /// Passes an event to the ladders that show events.
    pub(crate) fn event(&mut self, event: &Event) {
        self.keep_ladders(|ladder| ladder.event(event));
    }

    /// True if somebody reads the events of the story among the messages.
    pub(crate) const fn tells_story(&self) -> bool {
        !self.ladders.is_empty()
    }

    /// Removes ladders whose clients have closed the connection.
    fn keep_ladders(&mut self, mut keep: impl FnMut(&mut Ladder) -> bool) {
        let missed = &mut self.dropped;
        self.ladders.retain_mut(|ladder| {
            let goes_on = keep(ladder);
            if !goes_on {
                *missed += ladder.missed;
            }
            goes_on
        });
    }

    /// True if there is no capture.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.running.is_empty() && self.ladders.is_empty()
    }

    /// True if a capture records what this end sends or receives.
    pub(crate) fn records(&self, end: End, direction: Direction) -> bool {
        let mut captures = self.running.iter();
        captures.any(|capture| capture.tap(end, direction).is_some())
    }

    /// True if a ladder has the link of this end.
    pub(crate) fn watches(&self, end: End) -> bool {
        self.ladders.iter().any(|ladder| ladder.watches(end))
    }

    /// True if a ladder may show cells that arrive at this end.
    pub(crate) fn tells(&self, end: End, run: &CellRun) -> bool {
        let mut ladders = self.ladders.iter();
        ladders.any(|ladder| ladder.wants(end, Direction::Received, run))
    }

    /// True if lines of ladders wait for their clients: [`Self::pass_on`] is due soon.
    pub(crate) fn has_backlog(&self) -> bool {
        self.ladders.iter().any(Ladder::has_backlog)
    }

    /// Passes lines on that wait, if they are due at `now` by the clock of the driver.
    pub(crate) fn pass_on(&mut self, now: Instant) {
        if self.has_backlog() {
            self.keep_ladders(|ladder| ladder.pass_on(now));
        }
    }

    /// True if a tap records what becomes of single PDUs, so that PDUs must not move together.
    #[must_use]
    pub fn needs_singles(&self) -> bool {
        let both = self.running.iter().any(|capture| capture.form.both_ends);
        both || !self.ladders.is_empty()
    }

    /// Records the PDUs of a run one by one, each at the time when its first cell passes.
    fn several(
        &mut self,
        end: End,
        direction: Direction,
        run: &CellRun,
        dropped: Option<DropReason>,
        mut now: Instant,
    ) {
        let mut taps = self.running.iter();
        let tap = taps.find_map(|capture| capture.tap(end, direction));
        let source = source(end, direction);
        let rate = tap.map(|(tap, _)| tap.lines[source].rate);
        let time = |cells: u16| rate.map_or(Duration::ZERO, |rate| rate.time_of(cells.into()));
        for single in run.clone().singles() {
            self.packet(end, direction, &single, dropped, now);
            now += time(single.count);
        }
    }

    /// Reports cells that a queue in front of an end has discarded. They never reach a link, so only message ladders
    /// show them.
    pub(crate) fn refused(&mut self, end: End, run: &CellRun, reason: DropReason, now: Instant) {
        if self.ladders.is_empty() {
            self.refused.clear();
            return;
        }
        // A PDU that loses cells of several turns is shown once.
        let mut refused = self.refused.iter();
        if let Some(pdu) = run.pdu()
            && !refused.any(|known| known.0 == end && known.1.is_same(pdu))
        {
            if self.refused.len() >= MOST_REFUSED {
                self.refused.pop_front();
            }
            self.refused.push_back((end, pdu.clone()));
            let (sdu, sent) = ((run.vc, pdu.sdu()), Direction::Sent);
            self.keep_ladders(|ladder| ladder.sdu(end, sent, sdu, Some(reason), now));
        }
    }

    /// Records cells that pass an end, or are dropped on arrival there; the first cell has the time `now`.
    pub(crate) fn packet(
        &mut self,
        end: End,
        direction: Direction,
        run: &CellRun,
        dropped: Option<DropReason>,
        now: Instant,
    ) {
        let sent = direction == Direction::Sent;
        if self.is_empty() && !sent {
            return;
        }
        if run.has_several() {
            // A train has no control messages, which are kept without any client, too.
            let control = |head: &[u8]| summary::is_control(run.vc, head);
            let key = (end, sent, run.vc);
            let passes = run.train().is_some() || self.assembly.ignores(key, run, control);
            if !self.is_empty() || !passes {
                self.several(end, direction, run, dropped, now);
            }
            return;
        }
        if sent {
            let ladders = self.ladders.iter_mut();
            ladders.for_each(|ladder| ladder.enters(end, run, now));
        }
        let mut ladders = self.ladders.iter();
        let told = ladders.any(|l| l.watches(end) && l.wants(end, direction, run));
        let watched = told || !self.running.is_empty();
        if !watched && !sent {
            return;
        }
        let vc = run.vc;
        let wanted = |head: &[u8]| watched || summary::is_control(vc, head);
        let note = |why: &mut Option<DropReason>| *why = why.or(dropped);
        let key = (end, sent, vc);
        let done = self.assembly.take(key, run, wanted, note);
        if let Some(done) = &done {
            if sent {
                self.past.keep(end, vc, &done.pdu, done.note, now);
            }
            let sdu = (vc, done.pdu.sdu());
            self.keep_ladders(|ladder| ladder.sdu(end, direction, sdu, done.note, now));
        }
        self.running.retain_mut(|capture| {
            let goes_on = match (&done, capture.form.cells) {
                (_, true) => capture.record_cells(end, direction, run, dropped, now),
                (Some(done), false) => capture.record_sdu(end, direction, (vc, done), now),
                (None, false) => true,
            };
            if !goes_on {
                self.dropped += capture.dropped;
            }
            goes_on
        });
    }

    /// Packets and lines of ladders that clients did not take in time.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        let ladders = self.ladders.iter().map(|ladder| ladder.missed);
        let captures = self.running.iter().map(|capture| capture.dropped);
        self.dropped + captures.chain(ladders).sum::<u64>()
    }
}

/// The end at which cells started that pass an end in a direction.
const fn source(end: End, direction: Direction) -> usize {
    match direction {
        Direction::Sent => end.side,
        Direction::Received => 1 - end.side,
    }
}

impl Tap {
    /// The times of the cells of a run that passes `end`; the first one passes at `now`. Cells from outside the lab
    /// have the times that policers use, shifted by the delay of the cable at its far end.
    fn times(
        &self,
        end: End,
        direction: Direction,
        run: &CellRun,
        now: Instant,
    ) -> impl Iterator<Item = Instant> {
        let source = source(end, direction);
        let line = self.lines[source];
        let delay = match direction {
            Direction::Sent => Duration::ZERO,
            Direction::Received => line.delay,
        };
        let outside = self.outside.get(source) == Some(&true);
        let given = run.times().filter(|_| outside);
        let (first, rate) = (run.first(), line.rate);
        (0..run.count).map(move |index| match &given {
            Some(times) => times.of(first.saturating_add(index)) + delay,
            None => now + rate.time_of(index.into()),
        })
    }
}

impl Capture {
    /// The interface that records packets at an end in a direction, with the direction as the interface sees it.
    fn tap(&self, end: End, direction: Direction) -> Option<(&Tap, Direction)> {
        let (stands_for, seen) = match (self.form.both_ends, direction) {
            (true, _) => (end, direction),
            (false, Direction::Received) => return None,
            (false, Direction::Sent) if end.side == 0 => (end, Direction::Sent),
            (false, Direction::Sent) => (End { side: 0, ..end }, Direction::Received),
        };
        let mut taps = self.interfaces.iter();
        let tap = taps.find(|tap| tap.end == stands_for)?;
        Some((tap, seen))
    }

    /// Records the cells of a run; false if the client has closed the connection.
    fn record_cells(
        &mut self,
        end: End,
        direction: Direction,
        run: &CellRun,
        dropped: Option<DropReason>,
        now: Instant,
    ) -> bool {
        let Some((&tap, seen)) = self.tap(end, direction) else {
            return true;
        };
        let interface = tap.id;
        let dropped = dropped.map(|reason| reason.name());
        self.tell_missing(interface, self.epoch_ns + now.as_nanos());
        let cells = run.to_cells();
        let times = tap.times(end, direction, run, now);
        let written = cells.iter().zip(times).try_for_each(|(cell, at)| {
            self.file.cell(&CapturedCell {
                interface,
                time_ns: self.epoch_ns.saturating_add(at.as_nanos()),
                direction: seen,
                cell,
                dropped,
            })
        });
        written.is_ok() && self.pass_on()
    }

    /// Records an SDU; false if the client has closed the connection.
    fn record_sdu(
        &mut self,
        end: End,
        direction: Direction,
        (vc, done): (Vc, &Assembled<Option<DropReason>>),
        now: Instant,
    ) -> bool {
        let Some((&Tap { id: interface, .. }, direction)) = self.tap(end, direction) else {
            return true;
        };
        let time_ns = self.epoch_ns + now.as_nanos();
        self.tell_missing(interface, time_ns);
        let written = self.file.sdu(&CapturedSdu {
            interface,
            time_ns,
            direction,
            vc,
            clp: done.clp,
            uu: done.pdu.uu(),
            sdu: done.pdu.sdu(),
            dropped: done.note.map(|reason| reason.name()),
        });
        written.is_ok() && self.pass_on()
    }

    /// Writes the number of missing packets to the file, if it has grown.
    fn tell_missing(&mut self, interface: InterfaceId, time_ns: u64) {
        if self.dropped > self.told {
            let _ = self.file.missing(interface, time_ns, self.dropped);
        }
    }

    /// Hands the written data to the client; false if the client has closed the connection. Data that a slow client has
    /// no room for are dropped as a whole, so that the stream stays readable.
    fn pass_on(&mut self) -> bool {
        let chunk = std::mem::take(self.file.get_mut());
        match self.chunks.try_send(chunk) {
            Ok(()) => {
                self.told = self.dropped;
                true
            }
            Err(TrySendError::Full(_)) => {
                self.dropped += 1;
                true
            }
            Err(TrySendError::Disconnected(_)) => false,
        }
    }
}
