//! Captures while packets pass: pcapng for each client that asked.
//!
//! **Where.** A tap stands at each link and sees every packet once, where it enters the link; what a queue in front of the link
//! discards it never sees. Directions are those of the link's first end. Two taps per link, one at each end, see what arrives
//! as well, and what is discarded on arrival ([`Form::both_ends`]).
//!
//! **What.** What a receiver on the line can put together: PDUs, whether their cells come in a row or between others. A PDU
//! of which a queue discarded some cells is left out. With [`Form::cells`] single cells are recorded instead, OAM cells too, each
//! at its own time on the line.
//!
//! **When.** The network in real time moves the cells of a PDU as a run; the time of a PDU is when the first cell of its last
//! run leaves the port.
//!
//! What a client is too slow to take is left out, and an interface statistics block says how much that was.

use aerostat_lab::model::{Lab, LinkId};
use aerostat_node::atm::{CellRun, DropReason, Pdu, RunReassembler};
use aerostat_proto::{Duration, Instant};
use aerostat_wire::Vc;
use aerostat_wire::pcapng::{CapturedCell, CapturedSdu, Direction, InterfaceId, LinkType, PcapNg};
use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

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
    /// Where line `line` begins (line 2N goes from end 0 to end 1 of link N, line 2N + 1 back).
    pub(crate) const fn sender(line: usize) -> Self {
        Self {
            link: LinkId(line / 2),
            side: line % 2,
        }
    }
    /// Where it ends.
    pub(crate) const fn receiver(line: usize) -> Self {
        Self {
            link: LinkId(line / 2),
            side: 1 - line % 2,
        }
    }
}

/// All captures of a running lab.
#[derive(Debug, Default)]
pub struct Captures {
    running: Vec<Capture>,
    ladders: Vec<Ladder>,
    /// Messages that were sent before anybody asked.
    pub(crate) past: Past,
    /// Packets that clients did not take in time, of captures that have ended.
    dropped: u64,
}

/// What a capture looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// A tap at each end of a link instead of one.
    pub both_ends: bool,
    /// Single cells instead of whole PDUs.
    pub cells: bool,
}

#[derive(Debug)]
struct Capture {
    file: PcapNg<Vec<u8>>,
    form: Form,
    /// With one tap per link its first end stands for it. The time is that of one cell.
    interfaces: Vec<(End, InterfaceId, Duration)>,
    /// PDUs of which cells are still to come, by tap, direction and connection: at most as many as the links have connections.
    assembly: BTreeMap<(InterfaceId, bool, Vc), Assembly>,
    chunks: SyncSender<Vec<u8>>,
    epoch_ns: u64,
    dropped: u64,
    /// Of these, how many the stream itself tells about.
    told: u64,
}

/// Puts the PDUs of a connection together, as a receiver at the tap would.
#[derive(Debug)]
struct Assembly {
    cells: RunReassembler,
    /// Why cells of the present PDU were dropped on arrival.
    dropped: Option<DropReason>,
}

impl Assembly {
    fn new() -> Self {
        Self {
            cells: RunReassembler::new(0),
            dropped: None,
        }
    }
    /// Takes cells; gives the PDU that they complete, whether a cell of it had CLP 1, and why it was dropped on arrival.
    fn take(
        &mut self,
        run: &CellRun,
        dropped: Option<DropReason>,
    ) -> Option<(Pdu, bool, Option<DropReason>)> {
        self.dropped = self.dropped.or(dropped);
        let ended = self.cells.push(run.clone())?;
        let dropped = self.dropped.take();
        let received = ended.ok()?;
        Some((received.pdu, received.clp, dropped))
    }
}

impl Captures {
    /// Starts a capture of `links`; `epoch_ns` is the wall clock at the start of the run.
    ///
    /// # Errors
    /// None in practice: the file is in memory.
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
            let cell = model.rate.time_of(1);
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
                let id = file.interface(kind, &called, &about)?;
                interfaces.push((End { link, side }, id, cell));
            }
        }
        let (chunks, receiver) = sync_channel(STREAM_DEPTH);
        let mut capture = Capture {
            file,
            form,
            interfaces,
            assembly: BTreeMap::new(),
            chunks,
            epoch_ns,
            dropped: 0,
            told: 0,
        };
        capture.pass_on();
        self.running.push(capture);
        Ok(receiver)
    }

    /// Ends all captures: their clients get what is left, and then the end.
    pub(crate) fn end(&mut self) {
        for capture in self.running.drain(..) {
            self.dropped += capture.dropped;
        }
    }

    /// Starts a message ladder.
    pub(crate) fn ladder(&mut self, lab: &Lab, wanted: Wanted) -> Receiver<Vec<u8>> {
        let (ladder, receiver) = Ladder::new(lab, wanted);
        self.ladders.push(ladder);
        receiver
    }

    /// Tells a step of the story to the ladders that want it.
    pub(crate) fn event(&mut self, event: &Event) {
        self.keep_ladders(|ladder| ladder.event(event));
    }

    /// Keeps the ladders whose clients are still there.
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

    /// True if nobody records anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.running.is_empty() && self.ladders.is_empty()
    }

    /// True if a packet that this end sends, or that it discards on arrival or receives, would be recorded.
    #[must_use]
    pub fn watches(&self, end: End, direction: Direction) -> bool {
        let mut captures = self.running.iter();
        captures.any(|capture| capture.tap(end, direction).is_some())
            || self.ladders.iter().any(|ladder| ladder.watches(end))
    }

    /// Cells that a queue in front of an end has discarded: they are on no link, so only message ladders tell of them.
    pub(crate) fn refused(&mut self, end: End, run: &CellRun, reason: DropReason, now: Instant) {
        if let Some(pdu) = run.whole_pdu() {
            let (sdu, sent) = ((run.vc, pdu.sdu()), Direction::Sent);
            self.keep_ladders(|ladder| ladder.sdu(end, sent, sdu, Some(reason), now));
        }
    }

    /// Records cells that pass an end, or are dropped as they arrive there, the first of them at `now`.
    pub(crate) fn packet(
        &mut self,
        end: End,
        direction: Direction,
        run: &CellRun,
        dropped: Option<DropReason>,
        now: Instant,
    ) {
        if let Some(pdu) = run.pdu().filter(|_| run.ends_pdu())
            && direction == Direction::Sent
        {
            self.past.keep(end, run.vc, pdu, dropped, now);
        }
        if self.is_empty() {
            return;
        }
        if let Some(pdu) = run.whole_pdu() {
            let sdu = (run.vc, pdu.sdu());
            self.keep_ladders(|ladder| ladder.sdu(end, direction, sdu, dropped, now));
        }
        self.running.retain_mut(|capture| {
            let goes_on = capture.record(end, direction, run, dropped, now);
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

impl Capture {
    /// The interface of what passes an end in a direction, with the direction that it has there.
    fn tap(&self, end: End, direction: Direction) -> Option<(InterfaceId, Direction, Duration)> {
        let (stands_for, seen) = match (self.form.both_ends, direction) {
            (true, _) => (end, direction),
            (false, Direction::Received) => return None,
            (false, Direction::Sent) if end.side == 0 => (end, Direction::Sent),
            (false, Direction::Sent) => (End { side: 0, ..end }, Direction::Received),
        };
        let mut taps = self.interfaces.iter();
        let &(_, interface, cell) = taps.find(|(at, _, _)| *at == stands_for)?;
        Some((interface, seen, cell))
    }

    /// Records what it is to record of a run; false if the client is gone.
    fn record(
        &mut self,
        end: End,
        direction: Direction,
        run: &CellRun,
        dropped: Option<DropReason>,
        now: Instant,
    ) -> bool {
        let Some((interface, direction, cell)) = self.tap(end, direction) else {
            return true;
        };
        let time_ns = self.epoch_ns + now.as_nanos();
        let written = if self.form.cells {
            let dropped = dropped.map(|reason| reason.text());
            self.tell_missing(interface, time_ns);
            let each = u64::try_from(cell.as_nanos()).unwrap_or(u64::MAX);
            run.to_cells()
                .iter()
                .zip(0..)
                .try_for_each(|(cell, index)| {
                    self.file.cell(&CapturedCell {
                        interface,
                        time_ns: time_ns + each * index,
                        direction,
                        cell,
                        dropped,
                    })
                })
        } else {
            let key = (interface, direction == Direction::Sent, run.vc);
            // A cell of OAM is of no PDU.
            if !run.is_user() {
                return true;
            }
            let assembly = self.assembly.entry(key).or_insert_with(Assembly::new);
            let done = assembly.take(run, dropped);
            // A peer outside may use any number of labels: only PDUs under way have a place.
            if run.ends_pdu() {
                self.assembly.remove(&key);
            }
            let Some((pdu, clp, dropped)) = done else {
                return true;
            };
            self.tell_missing(interface, time_ns);
            self.file.sdu(&CapturedSdu {
                interface,
                time_ns,
                direction,
                vc: run.vc,
                clp,
                uu: pdu.uu(),
                sdu: pdu.sdu(),
                dropped: dropped.map(|reason| reason.text()),
            })
        };
        written.is_ok() && self.pass_on()
    }

    /// Lets the file say how much is missing, if that has grown.
    fn tell_missing(&mut self, interface: InterfaceId, time_ns: u64) {
        if self.dropped > self.told {
            let _ = self.file.missing(interface, time_ns, self.dropped);
        }
    }

    /// Hands what is written to the client; false if the client is gone. What a slow client has no room for is lost
    /// whole, so that the stream stays readable.
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
