//! Message ladders: each client that asks gets one JSON line per message on the links that it names.
//!
//! A message is shown where it is sent, and again only if it is dropped on arrival. Lines that a slow client does not
//! take are left out and counted, as in captures.
//!
//! A ladder may show packets on their ways instead (`marks`): each link on the way of a marked one. Its lines wait for
//! a slow client, and no further packet is marked meanwhile. So the ways of the others are whole. Lines go together,
//! every [`GATHER`] or [`CHUNK`] of them: each time a thread wakes up, and on a machine with other work that takes the
//! processor from the network.

mod marks;

pub(crate) use marks::{Marking, Marks};

use crate::capture::End;
use crate::control::STREAM_DEPTH;
use aerostat_lab::event::{Event, Names, Telling};
use aerostat_lab::ladder::Message;
use aerostat_lab::model::{Lab, LinkId};
use aerostat_lab::way::MOST_WAITING;
use aerostat_node::atm::{CellRun, DropReason};
use aerostat_proto::{Duration, Instant};
use aerostat_wire::pcapng::Direction;
use aerostat_wire::{Vc, summary};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// Time for which lines about ways are gathered.
pub(crate) const GATHER: Duration = Duration::from_millis(50);
/// Lines about ways that go at once.
const CHUNK: usize = 256;

/// The selection of a client.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// Messages.
    Messages(Messages),
    /// Ways of packets.
    Ways(Marks),
}

/// A selection of messages.
#[derive(Clone, Debug)]
pub(crate) struct Messages {
    /// Messages of these links.
    pub(crate) links: Vec<LinkId>,
    /// True to include users' data, not only messages of protocols.
    pub(crate) data: bool,
    /// True to include the main steps of the story, as events.
    pub(crate) story: bool,
}

/// One client's ladder.
#[derive(Debug)]
pub(crate) struct Ladder {
    lab: Lab,
    names: Names,
    wanted: Wanted,
    lines: SyncSender<Vec<u8>>,
    /// Lines about ways that the client had no room for.
    waiting: Vec<u8>,
    /// Their number.
    number: usize,
    /// When lines were passed on last.
    passed: Instant,
    pub(crate) missed: u64,
}

impl Ladder {
    pub(crate) fn new(lab: &Lab, wanted: Wanted) -> (Self, Receiver<Vec<u8>>) {
        let depth = match &wanted {
            Wanted::Messages(_) => STREAM_DEPTH,
            Wanted::Ways(_) => STREAM_DEPTH / CHUNK,
        };
        let (lines, receiver) = sync_channel(depth);
        let ladder = Self {
            lab: lab.clone(),
            names: Names::new(lab),
            wanted,
            lines,
            waiting: Vec::new(),
            number: 0,
            passed: Instant::ZERO,
            missed: 0,
        };
        (ladder, receiver)
    }

    /// Looks at cells that enter the link of an end: a packet may be marked.
    pub(crate) fn enters(&mut self, end: End, run: &CellRun, now: Instant) {
        if let Wanted::Ways(marks) = &mut self.wanted {
            marks.enters(&self.lab, end, run, now);
        }
    }

    /// True if the PDU of these cells may be shown, at this end or at a later one.
    pub(crate) fn wants(&self, end: End, direction: Direction, run: &CellRun) -> bool {
        match &self.wanted {
            Wanted::Messages(Messages { data: true, .. }) => true,
            // Cells with their own octets have to be put together first.
            Wanted::Messages(_) => {
                (run.pdu()).is_none_or(|pdu| summary::is_control(run.vc, pdu.sdu()))
            }
            Wanted::Ways(marks) => marks.wants(&self.lab, (end, direction), run),
        }
    }

    pub(crate) fn has_backlog(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Passes lines on that wait, if they are due at `now` by the clock of the driver; false if the client has closed
    /// the connection.
    pub(crate) fn pass_on(&mut self, now: Instant) -> bool {
        if self.waiting.is_empty() || now.since(self.passed) < GATHER {
            return true;
        }
        self.passed = now;
        self.pass_all()
    }

    /// Passes all lines on that wait; false if the client has closed the connection.
    pub(crate) fn pass_all(&mut self) -> bool {
        let full = match self.lines.try_send(std::mem::take(&mut self.waiting)) {
            Ok(()) => false,
            Err(TrySendError::Full(lines)) => {
                self.waiting = lines;
                true
            }
            Err(TrySendError::Disconnected(_)) => return false,
        };
        if let Wanted::Ways(marks) = &mut self.wanted {
            marks.rest(full);
        }
        if !full {
            self.number = 0;
        }
        true
    }

    pub(crate) fn watches(&self, end: End) -> bool {
        match &self.wanted {
            Wanted::Messages(messages) => messages.links.contains(&end.link),
            Wanted::Ways(_) => true,
        }
    }

    /// Shows an SDU that passes an end, or is dropped there; false if the client has closed the connection.
    pub(crate) fn sdu(
        &mut self,
        end: End,
        direction: Direction,
        (vc, sdu): (Vc, &[u8]),
        dropped: Option<DropReason>,
        now: Instant,
    ) -> bool {
        let messages = match &mut self.wanted {
            Wanted::Messages(messages) => messages,
            Wanted::Ways(marks) => {
                let Some(mut step) =
                    marks.step(&self.lab, (end, direction), (vc, sdu), dropped, now)
                else {
                    return true;
                };
                step.missed = self.missed;
                let line = serde_json::to_string(&step);
                return line.map_or(true, |line| self.way_line(&line));
            }
        };
        let side = match (direction, dropped) {
            (Direction::Sent, _) => end.side,
            (Direction::Received, Some(_)) => 1 - end.side,
            (Direction::Received, None) => return true,
        };
        let wanted = messages.data || summary::is_control(vc, sdu);
        if !wanted || !messages.links.contains(&end.link) {
            return true;
        }
        let mut message = Message::new(&self.lab, &self.names, (end.link, side), now, (vc, sdu));
        message.dropped = dropped.map(|reason| reason.name().to_owned());
        self.line(message.json())
    }

    /// Shows an event; false if the client has closed the connection.
    pub(crate) fn event(&mut self, event: &Event) -> bool {
        let story = matches!(&self.wanted, Wanted::Messages(messages) if messages.story);
        !Telling::unless(!story).tells(event.milestone) || self.line(event.json())
    }

    /// Keeps a line about a way for the client; false if the client has closed the connection.
    fn way_line(&mut self, line: &str) -> bool {
        if self.number >= MOST_WAITING {
            self.missed += 1;
            return true;
        }
        self.waiting.extend_from_slice(line.as_bytes());
        self.waiting.push(b'\n');
        self.number += 1;
        // A client that had no room is not asked again for each line.
        !self.number.is_multiple_of(CHUNK) || self.pass_all()
    }

    fn line(&mut self, line: String) -> bool {
        match self.lines.try_send((line + "\n").into_bytes()) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                self.missed += 1;
                true
            }
            Err(TrySendError::Disconnected(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests;
