//! Reports of a daemon in a process of its own: the state of its server for display, in parts that fit a frame.
//!
//! The times of a report are those of the daemon's clock. The data half translates them to its own clock, by the time
//! at which the report begins.

use super::{
    ClientRow, ConnRow, ConnState, ConnUse, Counters, EgressRow, EgressState, FaultRow, IngressRow,
    IngressState, MpsConfig, MpsSnapshot, NhrpRow, NhrpSnapshot, PendingRow, RefusedWith, Server,
    faults,
};
use crate::nhrp::Reason;
use crate::split::codec::Field;
use crate::{Instant, split_choice};

/// Octets of the rows in a frame, about. The largest row is that of a binding with [`REQUESTERS`] stations.
const ROOM: usize = 32 << 10;
/// Stations of a binding that a report names.
const REQUESTERS: usize = 512;

/// A part of a report. A report is a [`Part::Begin`], parts with rows, and [`Part::End`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A report begins.
    Begin(Box<Begin>),
    /// Rows of the ingress cache.
    Ingress(Vec<IngressRow>),
    /// Rows of the egress cache.
    Egress(Vec<EgressRow>),
    /// Clients with state.
    Clients(Vec<ClientRow>),
    /// Connections.
    Connections(Vec<ConnRow>),
    /// Rows of the NHRP cache.
    Cache(Vec<NhrpRow>),
    /// Outstanding requests.
    Pending(Vec<PendingRow>),
    /// Packets that were refused.
    Faults(Vec<FaultRow>),
    /// The report is complete.
    End,
}

crate::split_record! {
    /// The first part of a report.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Begin {
        /// Time of the report.
        pub at: Instant,
        /// True while the server serves.
        pub up: bool,
        /// Events so far.
        pub counters: Counters,
        /// Upstream purges that wait for clients.
        pub collecting: usize,
        /// Questions to the router without an answer yet.
        pub lookups: usize,
    }
}

split_choice!(IngressState { 1 Resolving; 2 Resolved; 3 Refreshing; });
split_choice!(EgressState { 1 Imposing; 2 Imposed; 3 Clearing; });
split_choice!(ConnState { 1 Calling; 2 Accepted; 3 Open; });
split_choice!(ConnUse { 1 Control; 2 Shortcut; });
split_choice!(Reason { 1 Router; 2 Imposed; 3 Learned; 4 Registered; 5 Transit; });
split_choice!(RefusedWith { 1 Error(code); 2 Code(code); });
split_choice!(Part {
    1 Begin(begin);
    2 Ingress(rows);
    3 Egress(rows);
    4 Clients(rows);
    5 Connections(rows);
    6 Cache(rows);
    7 Pending(rows);
    8 Faults(rows);
    9 End;
});

/// The parts of a report.
pub(super) fn parts(State { mps, nhrp }: State, now: Instant) -> Vec<Part> {
    let mut all = vec![Part::Begin(Box::new(Begin {
        at: now,
        up: mps.up,
        counters: mps.counters,
        collecting: nhrp.collecting,
        lookups: nhrp.lookups,
    }))];
    let mut cache = nhrp.cache;
    for row in &mut cache {
        row.more = row.requesters.len().saturating_sub(REQUESTERS);
        row.requesters.truncate(REQUESTERS);
    }
    share(mps.ingress, Part::Ingress, &mut all);
    share(mps.egress, Part::Egress, &mut all);
    share(mps.clients, Part::Clients, &mut all);
    share(mps.connections, Part::Connections, &mut all);
    share(cache, Part::Cache, &mut all);
    share(nhrp.pending, Part::Pending, &mut all);
    share(nhrp.faults, Part::Faults, &mut all);
    all.push(Part::End);
    all
}

/// Shares rows out among parts of about [`ROOM`] octets.
fn share<R: Field>(rows: Vec<R>, part: fn(Vec<R>) -> Part, to: &mut Vec<Part>) {
    let (mut some, mut octets) = (Vec::new(), Vec::new());
    for row in rows {
        row.put(&mut octets);
        some.push(row);
        if octets.len() >= ROOM {
            to.push(part(core::mem::take(&mut some)));
            octets.clear();
        }
    }
    if !some.is_empty() {
        to.push(part(some));
    }
}

/// The state that a report shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) mps: MpsSnapshot,
    pub(super) nhrp: NhrpSnapshot,
}

impl State {
    /// The state of a server that has not started.
    pub(super) fn idle(config: &MpsConfig) -> Self {
        Self::of(&Server::new(config.clone()))
    }
    pub(super) fn of(server: &Server) -> Self {
        Self {
            mps: server.snapshot(),
            nhrp: server.nhrp_snapshot(),
        }
    }
}

/// The reports of one daemon, as its data half receives them.
#[derive(Debug, Default)]
pub(super) struct Reports {
    /// A report that is not complete, with its time by the clocks of the daemon and of this half.
    next: Option<(State, Instant, Instant)>,
    /// The last report.
    pub(super) last: Option<State>,
}

impl Reports {
    /// Takes a part; false if a server with this configuration has no such part.
    #[must_use]
    pub(super) fn take(&mut self, part: Part, config: &MpsConfig, now: Instant) -> bool {
        if let Part::Begin(begin) = part {
            let mut state = State::idle(config);
            (state.mps.up, state.mps.counters) = (begin.up, begin.counters);
            (state.nhrp.collecting, state.nhrp.lookups) = (begin.collecting, begin.lookups);
            self.next = Some((state, begin.at, now));
            return true;
        }
        let Some((State { mps, nhrp }, theirs, ours)) = &mut self.next else {
            return false;
        };
        let time = |at: &mut Instant| {
            *at = match *at < *theirs {
                true => ours.before(theirs.since(*at)),
                false => *ours + at.since(*theirs),
            };
        };
        let limits = &config.limits;
        let entries = limits.ingress + limits.egress;
        let bindings = entries + limits.router_bindings + limits.registrations + limits.kept;
        match part {
            Part::Begin(_) => false,
            Part::Ingress(mut rows) => {
                rows.iter_mut()
                    .for_each(|row| row.until.iter_mut().for_each(time));
                append(&mut mps.ingress, rows, limits.ingress)
            }
            Part::Egress(mut rows) => {
                rows.iter_mut()
                    .for_each(|row| row.until.iter_mut().for_each(time));
                append(&mut mps.egress, rows, limits.egress)
            }
            Part::Clients(mut rows) => {
                rows.iter_mut().for_each(|row| time(&mut row.reached));
                append(&mut mps.clients, rows, entries)
            }
            Part::Connections(rows) => append(&mut mps.connections, rows, limits.connections),
            Part::Cache(mut rows) => {
                for row in &mut rows {
                    time(&mut row.until);
                    row.requesters
                        .iter_mut()
                        .for_each(|(.., until)| time(until));
                }
                append(&mut nhrp.cache, rows, bindings)
            }
            Part::Pending(mut rows) => {
                rows.iter_mut().for_each(|row| time(&mut row.deadline));
                append(&mut nhrp.pending, rows, limits.requests)
            }
            Part::Faults(mut rows) => {
                rows.iter_mut().for_each(|row| time(&mut row.at));
                append(&mut nhrp.faults, rows, faults::LIMIT)
            }
            Part::End => {
                self.last = self.next.take().map(|(state, ..)| state);
                true
            }
        }
    }
}

/// Appends rows if all of them are at most `limit`.
fn append<R>(to: &mut Vec<R>, rows: Vec<R>, limit: usize) -> bool {
    let room = to.len() + rows.len() <= limit;
    if room {
        to.extend(rows);
    }
    room
}
