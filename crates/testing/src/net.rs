//! The network of [`super::World`].

use aerostat_proto::{AtmEvent, AtmRequest, Cause, ConnId, Duration, Instant, PartyId};
use aerostat_wire::{AtmAddress, Qos, Sap, Vc};
use std::collections::BTreeMap;

type Event = AtmEvent<Vec<u8>>;

/// Calls that the network refuses.
pub struct Refusal {
    /// Called address.
    pub called: AtmAddress,
    /// B-LLI; `None` matches any.
    pub sap: Option<Sap>,
    /// Cause given.
    pub cause: Cause,
    /// Number of calls that are still to be refused.
    pub times: u32,
}

type End = (usize, ConnId);

struct Leaf {
    end: End,
    connected: bool,
}

struct Call {
    root: End,
    calling: AtmAddress,
    sap: Sap,
    qos: Qos,
    multipoint: bool,
    leaves: BTreeMap<PartyId, Leaf>,
}

/// Decides which SDUs are lost.
pub type Loss = Box<dyn FnMut(&[u8]) -> bool>;

/// Connects users by number.
pub struct AtmNet {
    delay: Duration,
    listens: BTreeMap<(AtmAddress, Sap), usize>,
    calls: BTreeMap<u32, Call>,
    /// Existing ends: call, and party at a leaf.
    ends: BTreeMap<End, (u32, Option<PartyId>)>,
    queue: BTreeMap<(Instant, u64), (usize, Event)>,
    serial: u64,
    /// Permanent connections.
    patches: Vec<[(usize, Vc); 2]>,
    /// Permanent connections with one end in use: that end, and the call.
    open: BTreeMap<(usize, Vc), u32>,
    /// True for an SDU that is to be lost.
    pub loss: Option<Loss>,
    /// Additional delay of an SDU on a point-to-multipoint connection.
    pub multipoint_delay: Duration,
    /// Calls to refuse.
    pub refusals: Vec<Refusal>,
    /// Requests that named an unknown or unusable connection.
    pub misuse: u32,
    /// SDUs accepted for transport.
    pub sdus: u64,
}

impl AtmNet {
    /// An empty network with the constant delay `delay`.
    pub fn new(delay: Duration) -> Self {
        Self {
            delay,
            listens: BTreeMap::new(),
            calls: BTreeMap::new(),
            ends: BTreeMap::new(),
            queue: BTreeMap::new(),
            serial: 0,
            patches: Vec::new(),
            open: BTreeMap::new(),
            loss: None,
            multipoint_delay: Duration::ZERO,
            refusals: Vec::new(),
            misuse: 0,
            sdus: 0,
        }
    }
    /// Refuses so many calls.
    pub fn refuse(&mut self, called: AtmAddress, sap: Option<Sap>, cause: Cause, times: u32) {
        self.refusals.push(Refusal {
            called,
            sap,
            cause,
            times,
        });
    }
    /// Calls that exist, connected or not.
    pub fn calls(&self) -> usize {
        self.calls.len()
    }
    /// Calls that carry `sap`: the numbers of their root users.
    pub fn roots(&self, sap: Sap) -> Vec<usize> {
        let calls = self.calls.values();
        calls
            .filter(|call| call.sap == sap)
            .map(|call| call.root.0)
            .collect()
    }
    /// Breaks all calls that carry `sap` and have a leg at user `who`, as a failed link does.
    pub fn break_calls(&mut self, who: usize, sap: Sap, now: Instant) {
        let at =
            |call: &Call| call.root.0 == who || call.leaves.values().any(|leaf| leaf.end.0 == who);
        let hit: Vec<u32> = (self.calls.iter())
            .filter(|(_, call)| call.sap == sap && at(call))
            .map(|(id, _)| *id)
            .collect();
        for id in hit {
            self.clear(id, None, Cause::NETWORK_OUT_OF_ORDER, now);
        }
    }
    /// Clears everything of user `who`.
    pub fn forget(&mut self, who: usize, now: Instant) {
        self.listens.retain(|_, user| *user != who);
        let ends: Vec<End> = (self.ends.keys())
            .filter(|end| end.0 == who)
            .copied()
            .collect();
        for end in ends {
            self.release(end, Cause::OUT_OF_ORDER, now);
        }
        self.queue.retain(|_, (user, _)| *user != who);
    }
    /// Id of the oldest call that user `who` received; for tests that guess ids.
    pub fn incoming_base(&self, who: usize) -> u32 {
        let own = self.ends.keys().filter(|end| end.0 == who);
        let incoming = own.map(|end| end.1.0).filter(|id| *id >= ConnId::INCOMING);
        incoming.min().unwrap_or(ConnId::INCOMING)
    }
    /// When the next event is due.
    pub fn next(&self) -> Option<Instant> {
        self.queue.keys().next().map(|key| key.0)
    }
    /// Returns a due event; events of connections that ended meanwhile are skipped.
    pub fn due(&mut self, now: Instant) -> Option<(usize, Event)> {
        loop {
            let entry = self.queue.first_entry()?;
            if entry.key().0 > now {
                return None;
            }
            let (who, event) = entry.remove();
            if let Some(conn) = event.conn() {
                if !self.ends.contains_key(&(who, conn)) {
                    continue;
                }
                if matches!(event, AtmEvent::Released { .. }) {
                    self.ends.remove(&(who, conn));
                }
            }
            return Some((who, event));
        }
    }
    /// A request of user `who`.
    pub fn request(&mut self, who: usize, request: AtmRequest, now: Instant) {
        match request {
            AtmRequest::Listen { address, sap, .. } => {
                self.listens.insert((address, sap), who);
            }
            AtmRequest::Unlisten { address, sap } => {
                self.listens.remove(&(address, sap));
            }
            AtmRequest::Connect {
                conn,
                calling,
                called,
                sap,
                qos,
                multipoint,
            } => {
                assert!(conn.0 < ConnId::INCOMING, "id of the service's half");
                let id = self.serial() as u32;
                let call = Call {
                    root: (who, conn),
                    calling,
                    sap,
                    qos,
                    multipoint,
                    leaves: BTreeMap::new(),
                };
                let old = self.ends.insert((who, conn), (id, None));
                assert!(old.is_none(), "user {who} reuses {conn:?}");
                self.calls.insert(id, call);
                self.offer(id, PartyId(0), called, now);
            }
            AtmRequest::OpenPermanent { conn, vc, qos } => self.open((who, conn), vc, qos, now),
            AtmRequest::AddParty {
                conn,
                party,
                called,
            } => match self.ends.get(&(who, conn)) {
                Some(&(id, None)) => {
                    // If the call is missing, the connection was cleared meanwhile: its Released is under way.
                    if self.calls.contains_key(&id) {
                        self.offer(id, party, called, now);
                    }
                }
                _ => self.misuse += 1,
            },
            AtmRequest::DropParty { conn, party } => self.drop_party((who, conn), party, now),
            AtmRequest::Accept { conn, terms } => self.accept((who, conn), terms, now),
            AtmRequest::Release { conn, cause } => self.release((who, conn), cause, now),
            AtmRequest::Send { conn, sdu } => self.send((who, conn), &sdu, now),
        }
    }

    /// Sets up a permanent connection between two users' labels.
    pub fn patch(&mut self, one: (usize, Vc), other: (usize, Vc)) {
        self.patches.push([one, other]);
    }
    /// One end of a permanent connection is used: a call whose leaf is the end that is used second.
    fn open(&mut self, end: End, vc: Vc, qos: Qos, now: Instant) {
        let (who, conn) = end;
        let at = |patch: &[(usize, Vc); 2]| patch.iter().position(|one| *one == (who, vc));
        let found = self
            .patches
            .iter()
            .find_map(|patch| Some(patch[1 - at(patch)?]));
        let Some(far) = found else {
            let cause = Cause::VC_UNAVAILABLE;
            self.ends.insert(end, (0, None));
            return self.tell(who, AtmEvent::Released { conn, cause }, now);
        };
        match self.open.remove(&far) {
            Some(id) if self.calls.contains_key(&id) => {
                self.ends.insert(end, (id, Some(PartyId(0))));
                let call = self.calls.get_mut(&id).expect("just seen");
                let connected = true;
                call.leaves.insert(PartyId(0), Leaf { end, connected });
            }
            _ => {
                let id = self.serial() as u32;
                let call = Call {
                    root: end,
                    calling: AtmAddress::ZERO,
                    sap: Sap::ANY,
                    qos,
                    multipoint: false,
                    leaves: BTreeMap::new(),
                };
                self.calls.insert(id, call);
                self.ends.insert(end, (id, None));
                self.open.insert((who, vc), id);
            }
        }
        self.tell(who, AtmEvent::Connected { conn, vc, qos }, now);
    }

    fn serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }
    fn put(&mut self, who: usize, event: Event, now: Instant) {
        let key = (now + self.delay, self.serial());
        self.queue.insert(key, (who, event));
    }
    fn tell(&mut self, who: usize, event: AtmEvent<&'static [u8]>, now: Instant) {
        self.put(who, event.into_owned(), now);
    }

    fn refusal(&mut self, called: AtmAddress, sap: Sap) -> Option<Cause> {
        let hit = self.refusals.iter_mut().find(|r| {
            r.times > 0 && r.called == called && r.sap.is_none_or(|wanted| wanted == sap)
        });
        if let Some(refusal) = hit {
            refusal.times -= 1;
            return Some(refusal.cause);
        }
        if self.listens.contains_key(&(called, sap)) {
            return None;
        }
        let known = self.listens.keys().any(|(address, _)| *address == called);
        Some(if known {
            Cause::INCOMPATIBLE
        } else {
            Cause::NO_ROUTE
        })
    }

    fn offer(&mut self, id: u32, party: PartyId, called: AtmAddress, now: Instant) {
        let sap = self.calls[&id].sap;
        if let Some(cause) = self.refusal(called, sap) {
            self.leaf_lost(id, party, cause, now);
            return;
        }
        let who = self.listens[&(called, sap)];
        let conn = ConnId(ConnId::INCOMING + self.serial() as u32);
        let call = self.calls.get_mut(&id).expect("checked by the caller");
        let leaf = Leaf {
            end: (who, conn),
            connected: false,
        };
        assert!(call.leaves.insert(party, leaf).is_none(), "party reused");
        let event = AtmEvent::Incoming {
            conn,
            calling: Some(call.calling),
            called,
            sap,
            qos: call.qos.reversed(),
            multipoint: call.multipoint,
        };
        self.ends.insert((who, conn), (id, Some(party)));
        self.tell(who, event, now);
    }

    fn accept(&mut self, end: End, terms: Option<Qos>, now: Instant) {
        let Some(&(id, Some(party))) = self.ends.get(&end) else {
            self.misuse += 1;
            return;
        };
        let vc = Vc::new(0, 32 + (self.serial() % 60_000) as u16);
        let Some(call) = self.calls.get_mut(&id) else {
            return; // The connection was cleared meanwhile: its Released is under way.
        };
        call.qos = terms.map_or(call.qos, |terms| terms.reversed());
        let qos = call.qos;
        let first = !call.leaves.values().any(|leaf| leaf.connected);
        if let Some(leaf) = call.leaves.get_mut(&party) {
            leaf.connected = true;
        }
        let (root, conn) = call.root;
        let leaf = AtmEvent::Connected {
            conn: end.1,
            vc,
            qos: qos.reversed(),
        };
        self.tell(end.0, leaf, now);
        let event = if first {
            AtmEvent::Connected { conn, vc, qos }
        } else {
            AtmEvent::PartyAdded { conn, party }
        };
        self.tell(root, event, now);
    }

    fn send(&mut self, from: End, sdu: &[u8], now: Instant) {
        assert!(!sdu.is_empty() && sdu.len() <= 65535, "SDU size");
        let Some(&(id, party)) = self.ends.get(&from) else {
            self.misuse += 1;
            return;
        };
        let Some(call) = self.calls.get(&id) else {
            return; // The connection was cleared meanwhile.
        };
        if party.is_some() && call.multipoint {
            self.misuse += 1;
            return;
        }
        let to: Vec<End> = match party {
            None => {
                let up = call.leaves.values().filter(|leaf| leaf.connected);
                up.map(|leaf| leaf.end).collect()
            }
            Some(_) => vec![call.root],
        };
        let late = if call.multipoint {
            self.multipoint_delay
        } else {
            Duration::ZERO
        };
        self.sdus += 1;
        for (who, conn) in to {
            if self.loss.as_mut().is_some_and(|lose| lose(sdu)) {
                continue;
            }
            let sdu = sdu.to_vec();
            self.put(who, AtmEvent::Received { conn, sdu }, now + late);
        }
    }

    fn release(&mut self, end: End, cause: Cause, now: Instant) {
        match self.ends.remove(&end) {
            Some((id, None)) => self.clear(id, Some(end), cause, now),
            Some((id, Some(party))) => {
                let known = self.calls.get_mut(&id);
                if known.is_some_and(|call| call.leaves.remove(&party).is_some()) {
                    self.leaf_lost(id, party, cause, now);
                }
            }
            None => self.misuse += 1,
        }
    }

    fn drop_party(&mut self, end: End, party: PartyId, now: Instant) {
        let Some(&(id, None)) = self.ends.get(&end) else {
            self.misuse += 1;
            return;
        };
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        let Some(leaf) = call.leaves.remove(&party) else {
            return; // The party left meanwhile: its PartyGone is under way.
        };
        let last = call.leaves.is_empty();
        let (who, conn) = leaf.end;
        let cause = Cause::NORMAL;
        self.tell(who, AtmEvent::Released { conn, cause }, now);
        if last {
            self.clear(id, None, cause, now);
        }
    }

    /// A leaf is gone or was refused: the root is told; a call without leaves ends.
    fn leaf_lost(&mut self, id: u32, party: PartyId, cause: Cause, now: Instant) {
        let call = &self.calls[&id];
        if call.leaves.is_empty() {
            self.clear(id, None, cause, now);
        } else {
            let (root, conn) = call.root;
            self.tell(root, AtmEvent::PartyGone { conn, party, cause }, now);
        }
    }

    /// Ends a call; `by` is not told.
    fn clear(&mut self, id: u32, by: Option<End>, cause: Cause, now: Instant) {
        let Some(call) = self.calls.remove(&id) else {
            return;
        };
        let leaves = call.leaves.values().map(|leaf| leaf.end);
        for (who, conn) in leaves.chain([call.root]) {
            if Some((who, conn)) != by {
                self.tell(who, AtmEvent::Released { conn, cause }, now);
            }
        }
    }
}
