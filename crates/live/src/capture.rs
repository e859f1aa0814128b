//! Captures while packets pass: pcapng for each client that asked, one interface per link end.
//!
//! What a client is too slow to take is left out, and an interface statistics block says how much that was.

use aerostat_lab::model::{Lab, LinkId};
use aerostat_node::atm::{CellRun, Content, DropReason};
use aerostat_proto::Instant;
use aerostat_wire::pcapng::{CapturedSdu, Direction, InterfaceId, LinkType, PcapNg};
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use crate::control::STREAM_DEPTH;
use crate::ladder::{Ladder, Wanted};
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
    /// Packets that clients did not take in time, of captures that have ended.
    dropped: u64,
}

#[derive(Debug)]
struct Capture {
    file: PcapNg<Vec<u8>>,
    interfaces: Vec<(End, InterfaceId)>,
    chunks: SyncSender<Vec<u8>>,
    epoch_ns: u64,
    dropped: u64,
    /// Of these, how many the stream itself tells about.
    told: u64,
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
        epoch_ns: u64,
    ) -> io::Result<Receiver<Vec<u8>>> {
        let mut file = PcapNg::new(Vec::new(), &format!("lab {}", lab.name))?;
        let mut interfaces = Vec::new();
        for &link in links {
            for side in [0, 1] {
                let model = lab.link(link);
                let [here, there] = [model.ends[side], model.ends[1 - side]]
                    .map(|end| lab.node(end.node).name.as_str());
                let name = format!("{}:{here}", model.name);
                let about = format!("{here} port {} to {there}", model.ends[side].port);
                let id = file.interface(LinkType::SunAtm, &name, &about)?;
                interfaces.push((End { link, side }, id));
            }
        }
        let (chunks, receiver) = sync_channel(STREAM_DEPTH);
        let mut capture = Capture {
            file,
            interfaces,
            chunks,
            epoch_ns,
            dropped: 0,
            told: 0,
        };
        capture.pass_on();
        self.running.push(capture);
        Ok(receiver)
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

    /// True if a packet at this end would be recorded.
    #[must_use]
    pub fn watches(&self, end: End) -> bool {
        self.running
            .iter()
            .any(|capture| capture.interfaces.iter().any(|(at, _)| *at == end))
            || self.ladders.iter().any(|ladder| ladder.watches(end))
    }

    /// Records a PDU that passes, or is dropped at, an end. Parts of PDUs and OAM cells are left out.
    pub(crate) fn packet(
        &mut self,
        end: End,
        direction: Direction,
        run: &CellRun,
        dropped: Option<DropReason>,
        now: Instant,
    ) {
        let Content::Pdu { pdu, first: 0 } = &run.content else {
            return;
        };
        if self.is_empty() || run.count != pdu.cells() {
            return;
        }
        self.keep_ladders(|ladder| ladder.sdu(end, direction, (run.vc, pdu.sdu()), dropped, now));
        self.running.retain_mut(|capture| {
            let Some(&(_, interface)) = capture.interfaces.iter().find(|(at, _)| *at == end) else {
                return true;
            };
            let packet = CapturedSdu {
                interface,
                time_ns: capture.epoch_ns + now.as_nanos(),
                direction,
                vc: run.vc,
                clp: run.clp,
                uu: pdu.uu(),
                sdu: pdu.sdu(),
                dropped: dropped.map(|reason| reason.text()),
            };
            let missing = capture.dropped;
            if missing > capture.told {
                let _ = capture.file.missing(interface, packet.time_ns, missing);
            }
            let written = capture.file.sdu(&packet).is_ok();
            let goes_on = written && capture.pass_on();
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
