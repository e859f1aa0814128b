//! The neighbours of one interface: their addresses, requests for them, and packets that wait for an answer.
//!
//! States ([`NeighbourState`]): *incomplete* (requested by broadcast until there is an answer, at most
//! [`ArpParams::attempts`] times), *reachable* (until [`ArpParams::ageing`] after the last packet from it), *probe*
//! (used in that time: requested again by unicast, and used in the meantime), *failed* (did not answer; the next packet
//! causes a new request at once) and *permanent* (given by the lab, never requested, never changed). Hosts and routers
//! have the same table; IPv6 neighbours (`router::six`) use it, too.
//!
//! **Claims.** If a packet claims another hardware address for a known neighbour, the neighbour is requested at its
//! known address, by unicast, twice within two seconds. If it answers there, the claim is rejected, and further claims
//! are ignored for a second. If it does not answer, it has moved. So one forged ARP packet changes no neighbour that is
//! present, and a neighbour that moves is found two seconds later; until then the known address is used.
//!
//! **As in Linux** (`net/core/neighbour.c`): 3 requests 1 s apart, then all waiting packets are dropped; 101 packets or
//! 212992 octets wait for one neighbour, and beyond that the oldest is dropped (`unres_qlen`, `unres_qlen_bytes`); a
//! table of 1024 (`gc_thresh3`). **Deviations**: there is no state *stale*. A neighbour is reachable for 5 minutes
//! instead of about 30 s, and is confirmed by an ARP request, never by TCP. A full table always makes room for a new
//! neighbour (see `make_room`); a full table in Linux refuses it. Linux accepts a neighbour's new address at once,
//! unless the last change is less than a second old (`locktime`).

use aerostat_proto::time::s;
use aerostat_proto::{Duration, Instant};
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// How long a neighbour that did not answer stays visible.
const FAILED_SHOWN: Duration = Duration::from_secs(60);

/// A neighbour that was lost less than this ago may be about to return. The value is that of the MPOA server.
const LATELY: Duration = aerostat_proto::mpoa::mps::RETURN;

aerostat_proto::parameters! {
    /// Timers and limits of ARP.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ArpParams, ArpRanges {
        /// Time between requests.
        ///
        /// RFC 1122 §2.3.2.1: at most one per second.
        retry: Duration = s(1), Duration::from_millis(100)..=s(60);
        /// Requests before a neighbour counts as unreachable.
        attempts: u32 = 3, 1..=20;
        /// How long a neighbour stays known after the last packet from it.
        ageing: Duration = s(300), s(1)..=s(86_400);
        /// Limit of packets that wait for one neighbour; beyond it the oldest is dropped.
        pending: usize = 101, 1..=10_000;
        /// Limit of octets of these packets; beyond it the oldest is dropped, but a single packet may always wait.
        pending_octets: usize = 212_992;
        /// Limit of neighbours of one interface, known, requested or failed.
        neighbours: usize = 1024;
        /// Limit of questions of the MPOA server that wait for one neighbour.
        questions: usize = 64, 1..=10_000;
    }
}

aerostat_wire::named! {
    /// State of a neighbour.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum NeighbourState {
        /// The neighbour is requested for the first time; packets wait.
        Incomplete = "incomplete",
        /// A packet from the neighbour confirmed it.
        Reachable = "reachable",
        /// The neighbour is in use, and is requested to confirm it.
        Probe = "probe",
        /// The neighbour did not answer.
        Failed = "failed",
        /// The lab gives the neighbour.
        Permanent = "permanent",
    }
}

/// A row of the table, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighbourView {
    /// Its IPv4 address.
    pub address: Ipv4Addr,
    /// Its hardware address, if known.
    pub mac: Option<[u8; 6]>,
    /// Its state.
    pub state: NeighbourState,
    /// Packets that wait for its answer.
    pub queued: usize,
    /// Packets for it that were dropped since it has been in the table.
    pub dropped: u64,
    /// When a packet from it last confirmed it.
    pub heard: Option<Instant>,
}

aerostat_proto::counters! {
    /// Counters of the table.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct NeighbourCounters {
        /// Requests sent, by broadcast and by unicast.
        pub requests: u64,
        /// Neighbours that answered none of a series of requests.
        pub failures: u64,
        /// Packets dropped because too many waited for one neighbour, or because their neighbour was removed to make
        /// room.
        pub overflows: u64,
        /// Packets dropped because their neighbour did not answer.
        pub unanswered: u64,
        /// Packets dropped because the table had no room for their neighbour.
        pub refused: u64,
        /// Neighbours that were removed to make room for others.
        pub evicted: u64,
        /// Claims of another hardware address for a known neighbour.
        pub doubts: u64,
    }
}

/// An item that can wait for a neighbour.
pub(super) trait Waiting {
    /// Size in octets.
    fn octets(&self) -> usize;
}

impl Waiting for Vec<u8> {
    fn octets(&self) -> usize {
        self.len()
    }
}

/// An event of the table, for its owner to handle.
#[derive(Debug)]
pub(super) enum ArpEvent<J, A = Ipv4Addr> {
    /// Send a request: by broadcast, or to the address known so far.
    Ask { address: A, known: Option<[u8; 6]> },
    /// Report a change.
    Changed { address: A, mac: Option<[u8; 6]> },
    /// A neighbour did not answer.
    Failed { address: A },
    /// Send a packet that has waited, or drop it.
    Release { job: J, mac: Option<[u8; 6]> },
    /// Drop a packet, because too many wait.
    Overflow(J),
    /// Answer a question. `lately` is true if the neighbour is unknown but was lost less than [`LATELY`] ago, or if
    /// that cannot be told.
    Answer {
        token: u64,
        address: A,
        mac: Option<[u8; 6]>,
        lately: bool,
    },
}

#[derive(Debug)]
struct Neighbour<J> {
    mac: Option<[u8; 6]>,
    /// True if the lab gives the neighbour.
    permanent: bool,
    /// The time of the next event. A known neighbour ages then; one that is being requested is requested again or
    /// fails; one that failed is removed. `None` means never.
    due: Option<Instant>,
    /// When a packet from the neighbour last confirmed it.
    heard: Option<Instant>,
    /// When the neighbour became unknown, if that was after the last packet from it.
    lost: Option<Instant>,
    /// Requests sent without an answer.
    asked: u32,
    failed: bool,
    /// True if the entry was used since the last packet from the neighbour.
    used: bool,
    /// The claimed hardware address, while the neighbour is requested at its known one.
    claim: Option<[u8; 6]>,
    dropped: u64,
    pending: VecDeque<J>,
    /// Octets of `pending`.
    octets: usize,
    questions: Vec<u64>,
}

impl<J> Neighbour<J> {
    fn new(due: Option<Instant>) -> Self {
        Self {
            mac: None,
            permanent: false,
            due,
            heard: None,
            lost: None,
            asked: 0,
            failed: false,
            used: false,
            claim: None,
            dropped: 0,
            pending: VecDeque::new(),
            octets: 0,
            questions: Vec::new(),
        }
    }

    fn state(&self) -> NeighbourState {
        match (self.permanent, self.failed, self.mac) {
            (true, _, _) => NeighbourState::Permanent,
            (_, true, _) => NeighbourState::Failed,
            (_, _, None) => NeighbourState::Incomplete,
            _ if self.asked > 0 => NeighbourState::Probe,
            _ => NeighbourState::Reachable,
        }
    }
}

/// Replaces times of zero, which would lead to endless requests at one instant.
fn sound(mut params: ArpParams) -> ArpParams {
    params.retry = params.retry.max(Duration::from_millis(1));
    params.ageing = params.ageing.max(Duration::from_millis(1));
    params
}

/// The neighbours of one interface; packets of kind `J` wait for them.
#[derive(Debug)]
pub(super) struct Neighbours<J, A = Ipv4Addr> {
    params: ArpParams,
    table: BTreeMap<A, Neighbour<J>>,
    events: VecDeque<ArpEvent<J, A>>,
    counters: NeighbourCounters,
    /// At most the earliest due time; this saves walking the table.
    next: Option<Instant>,
}

impl<J: Waiting, A: Copy + Ord> Neighbours<J, A> {
    pub(super) fn new(params: ArpParams) -> Self {
        Self {
            params: sound(params),
            table: BTreeMap::new(),
            events: VecDeque::new(),
            counters: NeighbourCounters::default(),
            next: None,
        }
    }

    /// Sets timers and limits.
    pub(super) fn set_params(&mut self, params: ArpParams) {
        self.params = sound(params);
    }

    /// Enters a permanent neighbour.
    pub(super) fn fix(&mut self, address: A, mac: [u8; 6]) {
        let mut neighbour = Neighbour::new(None);
        (neighbour.mac, neighbour.permanent) = (Some(mac), true);
        self.table.insert(address, neighbour);
    }

    pub(super) fn known(&self) -> impl Iterator<Item = (A, [u8; 6])> {
        self.table
            .iter()
            .filter_map(|(address, n)| n.mac.map(|mac| (*address, mac)))
    }

    pub(super) fn counters(&self) -> NeighbourCounters {
        self.counters
    }

    /// The packets that wait for an answer.
    pub(super) fn held(&self) -> impl Iterator<Item = &J> {
        self.table.values().flat_map(|n| &n.pending)
    }

    /// Number of waiting packets, over all neighbours.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.table.values().map(|n| n.pending.len()).sum()
    }

    /// The hardware address, if known; the entry then counts as used.
    pub(super) fn lookup(&mut self, address: A) -> Option<[u8; 6]> {
        let neighbour = self.table.get_mut(&address)?;
        neighbour.used = true;
        neighbour.mac
    }

    /// Queues a packet for a neighbour that is not known; `Err` if the table is full.
    pub(super) fn wait(&mut self, address: A, job: J, now: Instant) -> Result<(), J> {
        let params = self.params;
        if !self.begin(address, now) {
            self.counters.refused += 1;
            return Err(job);
        }
        let Some(neighbour) = self.table.get_mut(&address) else {
            return Err(job);
        };
        neighbour.octets += job.octets();
        neighbour.pending.push_back(job);
        while neighbour.pending.len() > params.pending.max(1)
            || neighbour.pending.len() > 1 && neighbour.octets > params.pending_octets
        {
            let Some(oldest) = neighbour.pending.pop_front() else {
                break;
            };
            neighbour.octets -= oldest.octets();
            neighbour.dropped += 1;
            self.counters.overflows += 1;
            self.events.push_back(ArpEvent::Overflow(oldest));
        }
        Ok(())
    }

    /// Handles a question of the MPOA server.
    pub(super) fn ask(&mut self, token: u64, address: A, now: Instant) {
        if let Some(mac) = self.lookup(address) {
            return self.events.push_back(ArpEvent::Answer {
                token,
                address,
                mac: Some(mac),
                lately: false,
            });
        }
        let limit = self.params.questions;
        if self.begin(address, now)
            && let Some(neighbour) = self.table.get_mut(&address)
            && neighbour.questions.len() < limit
        {
            neighbour.questions.push(token);
        } else {
            self.events.push_back(ArpEvent::Answer {
                token,
                address,
                mac: None,
                lately: true,
            });
        }
    }

    /// Makes sure that a neighbour is being requested; false if the table has no room for it.
    fn begin(&mut self, address: A, now: Instant) -> bool {
        let due = Some(now + self.params.retry);
        match self.table.get_mut(&address) {
            Some(neighbour) if !neighbour.failed => return true,
            Some(neighbour) => (neighbour.failed, neighbour.due) = (false, due),
            None => {
                if !self.make_room(true) {
                    return false;
                }
                self.table.insert(address, Neighbour::new(due));
            }
        }
        if let Some(neighbour) = self.table.get_mut(&address) {
            (neighbour.asked, neighbour.used) = (1, true);
        }
        self.note(due);
        self.counters.requests += 1;
        self.events.push_back(ArpEvent::Ask {
            address,
            known: None,
        });
        true
    }

    /// Handles information that `address` has the hardware address `mac`; with `create`, an entry may be made.
    pub(super) fn learn(&mut self, address: A, mac: [u8; 6], create: bool, now: Instant) {
        if !self.table.contains_key(&address) && (!create || !self.make_room(false)) {
            return;
        }
        let due = Some(now + self.params.ageing);
        let neighbour = (self.table.entry(address)).or_insert_with(|| Neighbour::new(due));
        if neighbour.permanent {
            return;
        }
        if neighbour.mac.is_some_and(|known| known != mac) {
            return self.doubt(address, mac, now);
        }
        neighbour.claim = None;
        let changed = neighbour.mac.replace(mac) != Some(mac);
        (neighbour.due, neighbour.heard) = (due, Some(now));
        (neighbour.lost, neighbour.asked, neighbour.failed) = (None, 0, false);
        let pending = core::mem::take(&mut neighbour.pending);
        neighbour.octets = 0;
        let questions = core::mem::take(&mut neighbour.questions);
        neighbour.used = !pending.is_empty() || !questions.is_empty();
        self.note(due);
        if changed {
            self.events.push_back(ArpEvent::Changed {
                address,
                mac: Some(mac),
            });
        }
        self.release(address, pending, questions, (Some(mac), false));
    }

    /// Handles a claim that a known neighbour has another hardware address: requests the neighbour at its known one. Of
    /// several claims the last one counts.
    fn doubt(&mut self, address: A, mac: [u8; 6], now: Instant) {
        let retry = self.params.retry;
        self.counters.doubts += 1;
        let Some(neighbour) = self.table.get_mut(&address) else {
            return;
        };
        if neighbour.claim.replace(mac).is_some() {
            return;
        }
        // A neighbour that was confirmed a moment ago is requested a moment later, so repeated claims cost one request
        // a second.
        let heard = neighbour.heard.filter(|heard| now.since(*heard) < retry);
        let (due, asked) = match heard {
            Some(heard) => (heard + retry, 2),
            None => (now + retry, 1),
        };
        // Two requests are left.
        neighbour.asked = self.params.attempts.saturating_sub(asked);
        neighbour.due = Some(due);
        let known = neighbour.mac;
        self.note(Some(due));
        if heard.is_none() {
            self.counters.requests += 1;
            self.events.push_back(ArpEvent::Ask { address, known });
        }
    }

    /// A known neighbour did not answer at its known address, so the claimed address is accepted.
    fn moved(&mut self, address: A, mac: [u8; 6], now: Instant) {
        if let Some(neighbour) = self.table.get_mut(&address) {
            (neighbour.mac, neighbour.claim) = (None, None);
            self.learn(address, mac, false, now);
        }
    }

    /// True if there is room for one more neighbour. A full table removes a neighbour. The candidates are, in this
    /// order: a failed neighbour; for a `wanted` neighbour, the oldest of those being requested, if these are at least
    /// a quarter of the table; a known neighbour that was not used; for a `wanted` neighbour, any other known one. So a
    /// scan of addresses removes at most a quarter of the known neighbours, a flood of forged ARP packets removes no
    /// neighbour in use, and a neighbour that is present is found in spite of both.
    fn make_room(&mut self, wanted: bool) -> bool {
        if self.table.len() < self.params.neighbours {
            return true;
        }
        let asked = self.table.values();
        let asked = asked.filter(|n| n.state() == NeighbourState::Incomplete);
        let crowded = wanted && asked.count() * 4 >= self.params.neighbours;
        let rank = |n: &Neighbour<J>| match n.state() {
            NeighbourState::Failed => Some(0),
            NeighbourState::Incomplete => crowded.then_some(1),
            NeighbourState::Reachable if !n.used => Some(2),
            NeighbourState::Reachable | NeighbourState::Probe => wanted.then_some(3),
            NeighbourState::Permanent => None,
        };
        let ranked = self.table.iter();
        let ranked = ranked.filter_map(|(address, n)| {
            Some((rank(n)?, Reverse(n.asked), n.heard, n.due, *address))
        });
        let Some((.., victim)) = ranked.min() else {
            return false;
        };
        self.counters.evicted += 1;
        if let Some(gone) = self.table.remove(&victim) {
            self.forget(victim, gone.mac);
            self.counters.overflows += gone.pending.len() as u64;
            (self.events).extend(gone.pending.into_iter().map(ArpEvent::Overflow));
            self.release(victim, VecDeque::new(), gone.questions, (None, true));
        }
        true
    }

    /// Reports that the neighbour with this address is no longer known.
    fn forget(&mut self, address: A, mac: Option<[u8; 6]>) {
        if mac.is_some() {
            self.events
                .push_back(ArpEvent::Changed { address, mac: None });
        }
    }

    fn release(
        &mut self,
        address: A,
        pending: VecDeque<J>,
        questions: Vec<u64>,
        (mac, lately): (Option<[u8; 6]>, bool),
    ) {
        let packets = pending
            .into_iter()
            .map(|job| ArpEvent::Release { job, mac });
        self.events.extend(packets);
        let answers = questions.into_iter().map(|token| ArpEvent::Answer {
            token,
            address,
            mac,
            lately,
        });
        self.events.extend(answers);
    }

    /// Repeats requests, ages entries, and gives up.
    pub(super) fn timeout(&mut self, now: Instant) {
        if self.next.is_none_or(|next| next > now) {
            return;
        }
        let due = |n: &Neighbour<J>| n.due.is_some_and(|due| due <= now);
        let due = self.table.iter().filter(|(_, n)| due(n));
        let due: Vec<A> = due.map(|(address, _)| *address).collect();
        for address in due {
            self.overdue(address, now);
        }
        self.next = self.table.values().filter_map(|n| n.due).min();
    }

    fn overdue(&mut self, address: A, now: Instant) {
        let params = self.params;
        let Some(neighbour) = self.table.get_mut(&address) else {
            return;
        };
        let quiet = neighbour.asked == 0 && neighbour.claim.is_none();
        let idle = neighbour.mac.is_some() && !neighbour.used && quiet;
        if idle || neighbour.failed {
            let gone = self.table.remove(&address);
            self.forget(address, gone.and_then(|gone| gone.mac));
        } else if neighbour.asked < params.attempts {
            neighbour.asked += 1;
            neighbour.due = Some(now + params.retry);
            let known = neighbour.mac;
            self.counters.requests += 1;
            self.events.push_back(ArpEvent::Ask { address, known });
        } else if let Some(claim) = neighbour.claim {
            self.moved(address, claim, now);
        } else {
            self.fail(address, now);
        }
    }

    /// A neighbour has not answered. Its entry stays for display.
    fn fail(&mut self, address: A, now: Instant) {
        let Some(neighbour) = self.table.get_mut(&address) else {
            return;
        };
        let mac = neighbour.mac.take();
        if mac.is_some() {
            neighbour.lost = Some(now);
        }
        let lately = neighbour.lost.is_some_and(|at| now.since(at) < LATELY);
        neighbour.claim = None;
        let pending = core::mem::take(&mut neighbour.pending);
        let questions = core::mem::take(&mut neighbour.questions);
        (neighbour.octets, neighbour.asked) = (0, 0);
        neighbour.failed = true;
        neighbour.due = Some(now + FAILED_SHOWN);
        neighbour.dropped += pending.len() as u64;
        self.counters.failures += 1;
        self.counters.unanswered += pending.len() as u64;
        self.forget(address, mac);
        self.events.push_back(ArpEvent::Failed { address });
        self.release(address, pending, questions, (None, lately));
    }

    fn note(&mut self, due: Option<Instant>) {
        self.next = [self.next, due].into_iter().flatten().min();
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.next
    }

    pub(super) fn poll_event(&mut self) -> Option<ArpEvent<J, A>> {
        self.events.pop_front()
    }
}

impl<J: Waiting> Neighbours<J> {
    /// All entries, by address.
    pub(super) fn views(&self) -> impl Iterator<Item = NeighbourView> {
        self.table.iter().map(|(address, n)| NeighbourView {
            address: *address,
            mac: n.mac,
            state: n.state(),
            queued: n.pending.len(),
            dropped: n.dropped,
            heard: n.heard,
        })
    }
}

#[cfg(test)]
mod tests;
