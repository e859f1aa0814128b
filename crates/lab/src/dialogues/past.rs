//! The counts of programs of hosts that were switched off.
//!
//! **Bounds.** A host keeps the last [`ENDED`] connections of its former lives, like its ended calls while it is on.

use crate::model::NodeId;
use aerostat_node::atm::SocketId;
use aerostat_node::host::Station;
use aerostat_node::host::sockets::{ENDED, Fate, Record, State};
use aerostat_node::ip::flow_stats::FlowStats;
use aerostat_wire::AtmAddress;
use std::collections::BTreeMap;

/// What a program counts on one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tally {
    pub(super) node: NodeId,
    pub(super) program: usize,
    pub(super) id: SocketId,
    pub(super) state: State,
    pub(super) peer: Option<AtmAddress>,
    pub(super) offered: u64,
    pub(super) refused: u64,
    pub(super) waiting: u64,
    pub(super) late: u64,
    pub(super) sent: u64,
}

impl Tally {
    fn new(node: NodeId, record: &Record) -> Self {
        Self {
            node,
            program: record.program,
            id: record.id,
            state: record.state,
            peer: record.peer,
            offered: record.offered,
            refused: record.refused,
            waiting: record.waiting(),
            late: record.late,
            sent: record.sent.pdus,
        }
    }

    /// The host is switched off: PDUs that wait in the program are never sent.
    fn end(&mut self) {
        self.state = State::Ended;
        self.refused += std::mem::take(&mut self.waiting);
    }
}

/// The counts of the programs of a host since it was last switched on.
#[derive(Clone, Debug)]
pub struct Life {
    node: NodeId,
    pub(super) tallies: Vec<Tally>,
    /// Totals of each program.
    pub(super) fates: Vec<Fate>,
}

impl Life {
    /// The counts so far; `None` if the host has no programs.
    #[must_use]
    pub fn of(node: NodeId, station: &Station) -> Option<Self> {
        let sockets = station.host().sockets()?;
        let tallies = sockets.calls().map(|record| Tally::new(node, record));
        Some(Self {
            node,
            tallies: tallies.collect(),
            fates: sockets.fates().to_vec(),
        })
    }
}

/// The counts of the former lives of all hosts.
#[derive(Clone, Debug, Default)]
pub struct Past {
    tallies: BTreeMap<NodeId, Vec<Tally>>,
    fates: BTreeMap<(NodeId, usize), Fate>,
}

impl Past {
    /// Keeps the counts of a host that is switched off. Of connections for which there is no room, the accounts are
    /// forgotten, too.
    pub fn keep(&mut self, life: Life, stats: &mut FlowStats) {
        let kept = self.tallies.entry(life.node).or_default();
        kept.extend(life.tallies.into_iter().filter(|tally| tally.offered > 0));
        kept.iter_mut().for_each(Tally::end);
        let excess = kept.len().saturating_sub(ENDED);
        for forgotten in kept.drain(..excess) {
            stats.forget(forgotten.id);
        }
        for (fate, program) in life.fates.iter().zip(0..) {
            let sum = self.fate(life.node, program, Some(fate));
            self.fates.insert((life.node, program), sum);
        }
    }

    /// The connections of former lives of a host, the oldest first.
    pub(super) fn of(&self, node: NodeId) -> impl Iterator<Item = &Tally> {
        self.tallies.get(&node).into_iter().flatten()
    }

    /// Totals of a program over all its lives, with `now` those of the present one.
    pub(super) fn fate(&self, node: NodeId, program: usize, now: Option<&Fate>) -> Fate {
        let before = self.fates.get(&(node, program)).copied();
        let (before, now) = (before.unwrap_or_default(), now.copied().unwrap_or_default());
        Fate {
            opened: before.opened + now.opened,
            failed: before.failed + now.failed,
            cause: now.cause.or(before.cause),
        }
    }
}
