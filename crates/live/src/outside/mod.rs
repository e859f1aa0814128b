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

use inbox::{Inbox, SLICE};
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
    way: Way,
    /// When the last cells came from the peer.
    heard: Option<Instant>,
}

enum Way {
    AtmTcp(Box<atmtcp::Link>),
    Udp(Box<udp::Link>),
    Ethernet(Box<ethernet::Link>),
    Mpls(Box<mpls::Link>),
    L2tp(Box<l2tp::Link>),
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
        let way = match way {
            OutsideWay::AtmTcpListen { .. } | OutsideWay::AtmTcpConnect { .. } => {
                Way::AtmTcp(Box::new(atmtcp::Link::new(way, rate, registry, token)?))
            }
            OutsideWay::Udp {
                local,
                peer,
                packing,
            } => Way::Udp(Box::new(udp::Link::new(
                *local, *peer, *packing, rate, registry, token,
            )?)),
            OutsideWay::Ethernet {
                interface,
                peer,
                packing,
            } => {
                let ends = (interface.as_str(), *peer);
                Way::Ethernet(Box::new(ethernet::Link::new(
                    ends, *packing, rate, registry, token,
                )?))
            }
            OutsideWay::Mpls(model) => {
                Way::Mpls(Box::new(mpls::Link::new(model, rate, registry, token)?))
            }
            OutsideWay::L2tp(model) => {
                Way::L2tp(Box::new(l2tp::Link::new(model, rate, registry, token)?))
            }
        };
        Ok(Self {
            node,
            way,
            heard: None,
        })
    }

    /// The poller has reported token `which` (0 or 1) of this link.
    pub(crate) fn ready(&mut self, which: usize) {
        match &mut self.way {
            Way::AtmTcp(link) => link.ready(which),
            Way::Udp(link) => link.ready(),
            Way::Ethernet(link) => link.ready(),
            Way::Mpls(link) => link.ready(),
            Way::L2tp(link) => link.ready(),
        }
    }

    /// When [`Self::turn`] is next needed if nothing is ready.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match &self.way {
            Way::AtmTcp(link) => link.poll_timeout(),
            Way::Udp(link) => link.poll_timeout(),
            Way::Ethernet(link) => link.poll_timeout(),
            Way::Mpls(link) => link.poll_timeout(),
            Way::L2tp(link) => link.poll_timeout(),
        }
    }

    /// Tells that the line is up, if it is by now: a line that needs no answer of its peer is up before the lab starts,
    /// so that nothing that its nodes send first is lost.
    pub(crate) fn come_up(&mut self, now: Instant, told: &mut Vec<Event>) {
        match &mut self.way {
            // The peer has to connect, or to answer.
            Way::AtmTcp(_) => {}
            Way::Udp(link) => link.come_up(told),
            Way::Ethernet(link) => link.come_up(now, told),
            Way::Mpls(link) => link.come_up(now, told),
            Way::L2tp(link) => link.come_up(told),
        }
    }

    /// Reason why nothing comes from the peer, in words; `None` if cells have come and the line is up.
    pub(crate) fn trouble(&self) -> Option<String> {
        let (down, peer) = match &self.way {
            Way::AtmTcp(link) => (link.trouble(), link.peer()),
            Way::Udp(link) => (None, link.peer()),
            Way::Ethernet(link) => (link.cable.trouble(), link.cable.peer()),
            Way::Mpls(link) => (link.cable.trouble(), link.cable.peer()),
            Way::L2tp(link) => (None, link.peer()),
        };
        let silent = || format!("no cell has come from {peer} yet");
        down.or_else(|| self.heard.is_none().then(silent))
    }

    /// Makes cells come in the order of the line, which costs more, or only in that of each VC.
    pub(crate) fn keep_order(&mut self, order: bool) {
        match &mut self.way {
            // SDUs come whole.
            Way::AtmTcp(_) => {}
            Way::Udp(link) => link.receiver.keep_order(order),
            Way::Ethernet(link) => link.receiver.keep_order(order),
            Way::Mpls(link) => link.receiver.keep_order(order),
            Way::L2tp(link) => link.receiver.keep_order(order),
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
        let more = match &mut self.way {
            Way::AtmTcp(link) => link.turn(registry, now, told),
            Way::Udp(link) => link.turn(inbox, told),
            Way::Ethernet(link) => link.turn(now, inbox, told),
            Way::Mpls(link) => link.turn(now, inbox, told),
            Way::L2tp(link) => link.turn(inbox, told),
        };
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
        match &mut self.way {
            // A turn has a fixed limit in octets.
            Way::AtmTcp(_) => {}
            Way::Udp(link) => link.turns.spent(time),
            Way::Ethernet(link) => link.cable.turns.spent(time),
            Way::Mpls(link) => link.cable.turns.spent(time),
            Way::L2tp(link) => link.turns.spent(time),
        }
    }

    /// Queues cells in the link's buffer, or drops them.
    pub(crate) fn send(&mut self, run: &CellRun) {
        match &mut self.way {
            Way::AtmTcp(link) => link.send(run),
            Way::Udp(link) => link.send(run),
            Way::Ethernet(link) => link.send(run),
            Way::Mpls(link) => link.send(run),
            Way::L2tp(link) => link.send(run),
        }
    }

    /// Sends as much as possible.
    pub(crate) fn flush(&mut self, registry: &Registry, now: Instant, told: &mut Vec<Event>) {
        match &mut self.way {
            Way::AtmTcp(link) => link.flush(now, told),
            Way::Udp(link) => link.flush(registry, now),
            Way::Ethernet(link) => link.flush(registry, now, told),
            Way::Mpls(link) => link.flush(registry, now, told),
            Way::L2tp(link) => link.flush(registry, now),
        }
    }

    /// State and counters.
    pub(crate) fn tables(&self) -> Vec<Table> {
        match &self.way {
            Way::AtmTcp(link) => vec![link.table()],
            Way::Udp(link) => link.tables(),
            Way::Ethernet(link) => link.tables(),
            Way::Mpls(link) => link.tables(),
            Way::L2tp(link) => link.tables(),
        }
    }
}

#[cfg(test)]
mod tests;
