//! The counts of programs of hosts that were switched off.
//!
//! **Bounds.** A host keeps the last [`ENDED`] calls of its former lives, like its ended calls while it is on. Of each
//! permanent connection it keeps every life, because the figures are the sum of them: one record for each restart.

use crate::model::NodeId;
use aerostat_node::atm::SocketId;
use aerostat_node::host::Station;
use aerostat_node::host::sockets::programs::{
    ENDED, Fate, Figures, Measured, Outcome, Program, Record, Role, State,
};
use aerostat_node::ip::flow_stats::FlowStats;
use aerostat_proto::Cause;
use aerostat_wire::AtmAddress;
use std::collections::BTreeMap;

/// Counts of a program on one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tally {
    pub(super) node: NodeId,
    pub(super) program: usize,
    /// True for a permanent connection, false for a call.
    pub(super) permanent: bool,
    pub(super) id: SocketId,
    pub(super) state: State,
    pub(super) peer: Option<AtmAddress>,
    pub(super) offered: u64,
    pub(super) refused: u64,
    pub(super) waiting: u64,
    pub(super) late: u64,
    pub(super) sent: u64,
    /// PDUs of its own that the program has not begun to write.
    pub(super) unwritten: u64,
    pub(super) cause: Option<Cause>,
    /// ATP at this end.
    pub(super) atp: Option<Figures>,
    /// Measurements of a tester at this end.
    pub(super) measured: Option<Measured>,
}

impl Tally {
    fn new(node: NodeId, programs: &[Program], record: &Record<'_>) -> Self {
        let role = programs.get(record.program).map(|program| &program.role);
        Self {
            node,
            program: record.program,
            permanent: matches!(role, Some(Role::Permanent { .. })),
            id: record.own.id,
            state: record.socket.state(),
            peer: record.socket.peer,
            offered: record.own.offered,
            refused: record.socket.refused,
            waiting: record.waiting(),
            late: record.own.late,
            sent: record.socket.sent.pdus,
            unwritten: record.unwritten(),
            cause: record.socket.cause,
            atp: record.own.atp(),
            measured: record.measured(),
        }
    }

    /// The host is switched off: PDUs that wait in the program are never sent.
    fn end(&mut self) {
        self.state = State::Ended;
        self.refused += std::mem::take(&mut self.waiting);
        if let Some(atp) = self.atp.as_mut().filter(|atp| atp.outcome == Outcome::Open) {
            atp.outcome = Outcome::Off;
        }
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
    /// The host.
    #[must_use]
    pub const fn node(&self) -> NodeId {
        self.node
    }

    /// The counts so far; `None` if the host has no programs.
    #[must_use]
    pub fn of(node: NodeId, station: &Station) -> Option<Self> {
        let sockets = station.host().sockets();
        let sockets = sockets.filter(|sockets| !sockets.programs().is_empty())?;
        let programs = sockets.programs();
        let tallies = sockets
            .calls()
            .map(|record| Tally::new(node, programs, &record));
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
    /// Keeps the counts of a host that is switched off. A call without room loses its accounts, too; returns the number
    /// of these calls.
    pub fn keep(&mut self, life: Life, stats: &mut FlowStats) -> u64 {
        let kept = self.tallies.entry(life.node).or_default();
        kept.extend(life.tallies.into_iter().filter(|tally| tally.offered > 0));
        kept.iter_mut().for_each(Tally::end);
        let calls = kept.iter().filter(|tally| !tally.permanent).count();
        let forgotten = calls.saturating_sub(ENDED);
        let mut excess = forgotten;
        kept.retain(|tally| {
            let stays = tally.permanent || excess == 0;
            if !stays {
                excess -= 1;
                stats.forget(tally.id);
            }
            stays
        });
        for (fate, program) in life.fates.iter().zip(0..) {
            let sum = self.fate(life.node, program, Some(fate));
            self.fates.insert((life.node, program), sum);
        }
        forgotten as u64
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

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(program: usize, permanent: bool, (life, number): (u32, u64)) -> Tally {
        let id = SocketId {
            node: 0,
            life,
            number,
        };
        Tally {
            node: NodeId(0),
            program,
            permanent,
            id,
            state: State::Connected,
            peer: None,
            offered: 3,
            refused: 0,
            waiting: 0,
            late: 0,
            sent: 3,
            unwritten: 0,
            cause: None,
            atp: None,
            measured: None,
        }
    }

    #[test]
    fn former_calls_do_not_push_out_a_permanent_connection_of_the_same_host() {
        let (mut past, mut stats) = (Past::default(), FlowStats::default());
        for number in 0..3 {
            let life = number;
            let calls = (1..=ENDED as u64).map(|number| tally(1, false, (life, number)));
            let tallies = std::iter::once(tally(0, true, (life, 0))).chain(calls);
            let life = Life {
                node: NodeId(0),
                tallies: tallies.collect(),
                fates: Vec::new(),
            };
            let forgotten = past.keep(life, &mut stats);
            assert_eq!(forgotten, if number == 0 { 0 } else { ENDED as u64 });
        }
        let permanent = past.of(NodeId(0)).filter(|tally| tally.permanent);
        let lives: Vec<u32> = permanent.map(|tally| tally.id.life).collect();
        assert_eq!(lives, [0, 1, 2]);
        let calls = past.of(NodeId(0)).filter(|tally| !tally.permanent);
        let lives: Vec<u32> = calls.map(|tally| tally.id.life).collect();
        assert_eq!(lives, [2; ENDED], "the oldest calls are forgotten");
    }
}
