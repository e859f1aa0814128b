//! Links out of the lab: to real Linux hosts, to other programs, to other labs.
//!
//! | way | carries | far end |
//! |---|---|---|
//! | [`atmtcp`] | whole AAL5 SDUs on a TCP connection | linux-atm's `atmtcp` |
//! | [`udp`] | cells in UDP datagrams, one or many in each | GNS3 and Dynamips, another lab |
//! | [`ethernet`] | cells in Ethernet frames, many in each | another lab |
//! | [`mpls`] | cells, and SDUs of permanent connections, in pseudowires over MPLS | a router, another lab |
//! | [`l2tp`] | cells in a session of L2TPv3, over IP or UDP | a router, another lab |
//!
//! Every link exchanges runs of cells with the network; each kind of link has its own format outside. Packets come and
//! go in batches, with a limit for each link in each turn of the loop (`inbox.rs`).

pub mod atmtcp;
mod bucket;
mod cable;
pub mod cells;
pub mod concat;
mod datagrams;
pub mod ethernet;
mod filling;
mod inbox;
pub mod l2tp;
mod links;
pub mod mpls;
mod opened;
mod options;
mod packets;
mod scope;
mod sequence;
pub mod udp;

use cells::Receiver;
use inbox::{Inbox, SLICE, Turns};
pub(crate) use links::Links;
use opened::explained;

use aerostat_lab::model::{NodeId, OutsideWay};
use aerostat_node::atm::{CellRate, CellRun};
use aerostat_node::inspect::Table;
use aerostat_proto::{Duration, Instant, Trace};
use mio::{Registry, Token};
use std::io;

/// Events of a link for the loop.
#[derive(Debug)]
pub(crate) enum Event {
    /// The line is up.
    Up,
    /// The line is down.
    Down,
    /// Cells have come from the peer for the first time, or after a silence.
    Heard,
    /// Cells from the peer.
    Cells(CellRun),
    /// A trace event.
    Trace(Trace),
}

/// Without cells for this time, a peer may be another one, or have begun again.
const SILENCE: Duration = Duration::from_secs(10);

/// One link out of the lab.
pub(crate) struct Link {
    pub(crate) node: NodeId,
    medium: Box<dyn Medium>,
    /// When the last cells came from the peer.
    heard: Option<Instant>,
}

/// A kind of link: its sockets, its line, and the format of its cells outside.
trait Medium {
    /// The poller has reported token `which` (0 or 1).
    fn ready(&mut self, which: usize);
    /// When [`Self::turn`] and [`Self::flush`] are next needed if nothing is ready.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Tells that the line is up, if it is by now. A line whose peer has to connect or to answer tells it in a turn.
    fn come_up(&mut self, _now: Instant, _told: &mut Vec<Event>) {}
    /// The peer, in words.
    fn peer(&self) -> String;
    /// Reason why the line is down, in words; `None` if it is up.
    fn trouble(&self) -> Option<String> {
        None
    }
    /// The receiver of cells, and the limit of a turn. A medium of whole SDUs has neither: its turns have a fixed limit
    /// in octets.
    fn cells(&mut self) -> Option<(&mut Receiver, &mut Turns)> {
        None
    }
    /// Does a bounded amount of work, with the loop's buffers; true if more may be left.
    fn turn(
        &mut self,
        registry: &Registry,
        now: Instant,
        inbox: &mut Inbox,
        told: &mut Vec<Event>,
    ) -> bool;
    /// Queues all cells of a run, or none.
    fn send(&mut self, run: &CellRun);
    /// Sends what is due, as far as the operating system takes it.
    fn flush(&mut self, registry: &Registry, now: Instant, told: &mut Vec<Event>);
    /// State and counters.
    fn tables(&self) -> Vec<Table>;
}

impl Link {
    /// Number of tokens of a link.
    pub(crate) const TOKENS: usize = 2;

    /// Opens the link's socket; uses `token` and the next one. The peer may send at `rate`.
    ///
    /// # Errors
    /// The error of the operating system.
    pub(crate) fn new(
        node: NodeId,
        way: &OutsideWay,
        rate: CellRate,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Self> {
        let medium: Box<dyn Medium> = match way {
            OutsideWay::AtmTcpListen { .. } | OutsideWay::AtmTcpConnect { .. } => {
                Box::new(atmtcp::Link::new(way, rate, registry, token)?)
            }
            OutsideWay::Udp {
                local,
                peer,
                packing,
            } => Box::new(udp::Link::new(
                *local, *peer, *packing, rate, registry, token,
            )?),
            OutsideWay::Ethernet {
                interface,
                peer,
                packing,
            } => {
                let ends = (interface.as_str(), *peer);
                Box::new(ethernet::Link::new(ends, *packing, rate, registry, token)?)
            }
            OutsideWay::Mpls(model) => Box::new(mpls::Link::new(model, rate, registry, token)?),
            OutsideWay::L2tp(model) => Box::new(l2tp::Link::new(model, rate, registry, token)?),
        };
        Ok(Self {
            node,
            medium,
            heard: None,
        })
    }

    /// The poller has reported token `which` (0 or 1) of this link.
    pub(crate) fn ready(&mut self, which: usize) {
        self.medium.ready(which);
    }

    /// When [`Self::turn`] is next needed if nothing is ready.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.medium.poll_timeout()
    }

    /// Tells that the line is up, if it is by now: a line that needs no answer of its peer is up before the lab starts,
    /// so that nothing that its nodes send first is lost.
    pub(crate) fn come_up(&mut self, now: Instant, told: &mut Vec<Event>) {
        self.medium.come_up(now, told);
    }

    /// Reason why nothing comes from the peer, in words; `None` if cells have come and the line is up.
    pub(crate) fn trouble(&self) -> Option<String> {
        let silent = || format!("no cell has come from {} yet", self.medium.peer());
        let down = self.medium.trouble();
        down.or_else(|| self.heard.is_none().then(silent))
    }

    /// Makes cells come in the order of the line, which costs more, or only in that of each VC.
    pub(crate) fn keep_order(&mut self, order: bool) {
        if let Some((receiver, _)) = self.medium.cells() {
            receiver.keep_order(order);
        }
    }

    /// Does a bounded amount of work, with the loop's buffers; true if more may be left.
    pub(crate) fn turn(
        &mut self,
        registry: &Registry,
        now: Instant,
        inbox: &mut Inbox,
        told: &mut Vec<Event>,
    ) -> bool {
        let before = told.len();
        let more = self.medium.turn(registry, now, inbox, told);
        let came = |event: &Event| matches!(event, Event::Cells(_));
        if told.iter().skip(before).any(came) {
            let before = self.heard.replace(now);
            if before.is_none_or(|at| now >= at + SILENCE) {
                told.push(Event::Heard);
            }
        }
        more
    }

    /// How long the last turn took, with all that its cells caused at once: decides how much the next turn may take.
    pub(crate) fn spent(&mut self, time: Duration) {
        if let Some((_, turns)) = self.medium.cells() {
            turns.spent(time);
        }
    }

    /// Queues cells in the link's buffer, or drops them.
    pub(crate) fn send(&mut self, run: &CellRun) {
        self.medium.send(run);
    }

    /// Sends as much as possible.
    pub(crate) fn flush(&mut self, registry: &Registry, now: Instant, told: &mut Vec<Event>) {
        self.medium.flush(registry, now, told);
    }

    /// State and counters.
    pub(crate) fn tables(&self) -> Vec<Table> {
        self.medium.tables()
    }
}

#[cfg(test)]
mod tests;
