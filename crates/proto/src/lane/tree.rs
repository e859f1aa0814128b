//! A server's point-to-multipoint connection to its clients: control distribute, multicast forward.
//!
//! The first client is called, the other clients are added as parties. A client may refuse (a Linux client listens only
//! some time after its own call is up, and answers with cause 88 before). It is then tried again: soon and then less
//! and less often after a cause that may pass by itself, after the longest wait otherwise. A client that goes on
//! refusing gets a point-to-point connection of its own and a copy of each frame, as Linux servers do for all clients.

use super::ServerParams;
use crate::retry::Backoff;
use crate::{AtmEvent, AtmRequest, Cause, ConnId, Deadlines, Duration, Instant, PartyId};
use aerostat_wire::{AtmAddress, Qos, Sap};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Root {
    None,
    Calling { conn: ConnId, first: AtmAddress },
    Up(ConnId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaf {
    /// The client is to be called at this time, or when the root is up.
    Waiting {
        tried: Tried,
        at: Instant,
    },
    /// The call of the root's first party, or ADD PARTY, has been sent.
    Joining {
        tried: Tried,
        party: PartyId,
    },
    Up(PartyId),
    CopyCalling(ConnId),
    Copy(ConnId),
}

/// The tries of a leaf so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tried {
    /// When the leaf was refused first.
    since: Option<Instant>,
    backoff: Backoff,
}

impl Tried {
    fn new(client: &AtmAddress) -> Self {
        Self {
            since: None,
            backoff: Backoff::of(client),
        }
    }
}

/// The outcome for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TreeEvent {
    /// The client gets every frame from now on.
    Up(AtmAddress),
    /// The client is not reached (any more) and was removed.
    Down(AtmAddress),
}

/// Connection ids of a tree: the number of the tree, and this many bits for the connection.
const ID_BITS: u32 = 24;

/// The leaves by client. Each event is about one leaf: leaves are found by party and by connection, and waiting leaves
/// by time, without a walk over all of them.
#[derive(Default)]
struct Leaves {
    map: BTreeMap<AtmAddress, Leaf>,
    by_party: BTreeMap<PartyId, AtmAddress>,
    /// Copies, set up or being set up.
    by_conn: BTreeMap<ConnId, AtmAddress>,
    waiting: Deadlines<AtmAddress>,
    /// Leaves of the point-to-multipoint connection that are up.
    up: usize,
}

impl Leaves {
    fn get(&self, client: AtmAddress) -> Option<Leaf> {
        self.map.get(&client).copied()
    }
    /// Sets or removes the leaf of a client. Returns the previous leaf.
    fn set(&mut self, client: AtmAddress, leaf: Option<Leaf>) -> Option<Leaf> {
        let before = match leaf {
            Some(leaf) => self.map.insert(client, leaf),
            None => self.map.remove(&client),
        };
        match before {
            Some(Leaf::Up(party) | Leaf::Joining { party, .. }) => {
                self.by_party.remove(&party);
            }
            Some(Leaf::Copy(conn) | Leaf::CopyCalling(conn)) => {
                self.by_conn.remove(&conn);
            }
            Some(Leaf::Waiting { .. }) | None => {}
        }
        self.up -= usize::from(matches!(before, Some(Leaf::Up(_))));
        let mut at = None;
        match leaf {
            Some(Leaf::Up(party) | Leaf::Joining { party, .. }) => {
                self.by_party.insert(party, client);
            }
            Some(Leaf::Copy(conn) | Leaf::CopyCalling(conn)) => {
                self.by_conn.insert(conn, client);
            }
            Some(Leaf::Waiting { at: when, .. }) => at = Some(when),
            None => {}
        }
        self.up += usize::from(matches!(leaf, Some(Leaf::Up(_))));
        self.waiting.set(client, at);
        before
    }
}

pub(super) struct Tree {
    /// Distinguishes the connections of several trees of one server, 0..=127.
    number: u32,
    own: AtmAddress,
    sap: Sap,
    max_sdu: u16,
    params: ServerParams,
    next_conn: u32,
    next_party: u16,
    root: Root,
    leaves: Leaves,
    /// Parties whose client left while ADD PARTY was out.
    doomed: BTreeSet<PartyId>,
    pub(super) out: VecDeque<AtmRequest>,
    pub(super) events: VecDeque<TreeEvent>,
}

impl Tree {
    pub(super) fn new(own: AtmAddress, sap: Sap, max_sdu: u16, params: &ServerParams) -> Self {
        Self {
            number: 0,
            own,
            sap,
            max_sdu,
            params: params.clone(),
            next_conn: 0,
            next_party: 0,
            root: Root::None,
            leaves: Leaves::default(),
            doomed: BTreeSet::new(),
            out: VecDeque::new(),
            events: VecDeque::new(),
        }
    }
    /// The same, for one of several trees.
    pub(super) fn numbered(mut self, number: u32) -> Self {
        self.number = number;
        self
    }
    pub(super) const fn number(&self) -> u32 {
        self.number
    }
    /// Number of the tree that this connection may belong to.
    pub(super) const fn number_of(conn: ConnId) -> u32 {
        conn.0 >> ID_BITS
    }
    /// Clients that are reached, or are being added.
    pub(super) fn clients(&self) -> impl Iterator<Item = AtmAddress> + '_ {
        self.leaves.map.keys().copied()
    }
    /// True if `client` gets the frames that are sent.
    pub(super) fn reaches(&self, client: AtmAddress) -> bool {
        matches!(self.leaves.get(client), Some(Leaf::Up(_) | Leaf::Copy(_)))
    }
    /// True if `client` has a point-to-point copy.
    pub(super) fn copies(&self, client: AtmAddress) -> bool {
        matches!(self.leaves.get(client), Some(Leaf::Copy(_)))
    }
    pub(super) fn add(&mut self, client: AtmAddress, now: Instant) {
        let tried = Tried::new(&client);
        let waiting = Leaf::Waiting { tried, at: now };
        if self.leaves.get(client).is_none() {
            self.leaves.set(client, Some(waiting));
        }
        self.advance(now);
    }
    pub(super) fn remove(&mut self, client: AtmAddress, now: Instant) {
        match self.leaves.set(client, None) {
            None | Some(Leaf::Waiting { .. }) => {}
            Some(Leaf::Copy(conn) | Leaf::CopyCalling(conn)) => self.release(conn),
            Some(Leaf::Up(party)) => self.drop_party(party, true),
            Some(Leaf::Joining { party, .. }) => self.drop_party(party, false),
        }
        self.advance(now);
    }
    /// Releases everything.
    pub(super) fn clear(&mut self, now: Instant) {
        for client in self.clients().collect::<Vec<_>>() {
            self.remove(client, now);
        }
    }
    /// Sends an SDU to all clients that are reached.
    pub(super) fn send(&mut self, sdu: &[u8]) {
        if let Root::Up(conn) = self.root
            && self.leaves.up > 0
        {
            let sdu = sdu.to_vec();
            self.out.push_back(AtmRequest::Send { conn, sdu });
        }
        for client in self.leaves.by_conn.values() {
            if let Some(Leaf::Copy(conn)) = self.leaves.get(*client) {
                let sdu = sdu.to_vec();
                self.out.push_back(AtmRequest::Send { conn, sdu });
            }
        }
    }
    pub(super) fn next(&self) -> Option<Instant> {
        if matches!(self.root, Root::Calling { .. }) {
            return None; // Every waiting leaf waits for the root.
        }
        self.leaves.waiting.next()
    }
    pub(super) fn timeout(&mut self, now: Instant) {
        self.advance(now);
    }

    /// An event of the ATM service; false if the event is not about this tree.
    pub(super) fn handle(&mut self, event: &AtmEvent<&[u8]>, now: Instant) -> bool {
        match *event {
            AtmEvent::Connected { conn, .. } => self.connected(conn),
            AtmEvent::Released { conn, cause } => self.released(conn, cause, now),
            AtmEvent::PartyAdded { conn, party } if self.root == Root::Up(conn) => {
                self.party_added(party);
            }
            AtmEvent::PartyGone { conn, party, cause } if self.is_root(conn) => {
                self.party_gone(party, cause, now);
            }
            // Multicast connections have no way back; the client of a copy has nothing to send on it.
            AtmEvent::Received { conn, .. } => return self.is_root(conn) || self.is_copy(conn),
            _ => return false,
        }
        self.advance(now);
        true
    }

    fn is_root(&self, conn: ConnId) -> bool {
        matches!(self.root, Root::Up(root) | Root::Calling { conn: root, .. } if root == conn)
    }
    fn is_copy(&self, conn: ConnId) -> bool {
        self.leaves.by_conn.contains_key(&conn)
    }

    fn connected(&mut self, conn: ConnId) {
        if let Root::Calling { conn: root, first } = self.root
            && root == conn
        {
            self.root = Root::Up(conn);
            self.leaves.set(first, Some(Leaf::Up(PartyId(0))));
            self.events.push_back(TreeEvent::Up(first));
            return;
        }
        let client = self.leaves.by_conn.get(&conn).copied();
        if let Some(client) = client
            && self.leaves.get(client) == Some(Leaf::CopyCalling(conn))
        {
            self.leaves.set(client, Some(Leaf::Copy(conn)));
            self.events.push_back(TreeEvent::Up(client));
        }
    }

    fn released(&mut self, conn: ConnId, cause: Cause, now: Instant) {
        match self.root {
            Root::Calling { conn: root, first } if root == conn => {
                self.root = Root::None;
                self.leaf_failed(first, cause, now);
            }
            Root::Up(root) if root == conn => {
                self.root = Root::None;
                self.doomed.clear();
                for (client, leaf) in self.leaves.map.clone() {
                    match leaf {
                        Leaf::Up(_) => self.down(client),
                        Leaf::Joining { tried, .. } => {
                            let waiting = Leaf::Waiting { tried, at: now };
                            self.leaves.set(client, Some(waiting));
                        }
                        Leaf::Waiting { .. } | Leaf::CopyCalling(_) | Leaf::Copy(_) => {}
                    }
                }
            }
            _ => {
                if let Some(client) = self.leaves.by_conn.get(&conn).copied() {
                    self.down(client);
                }
            }
        }
    }

    fn party_added(&mut self, party: PartyId) {
        if self.doomed.remove(&party) {
            self.drop_party(party, true);
            return;
        }
        if let Some(client) = self.leaves.by_party.get(&party).copied() {
            self.leaves.set(client, Some(Leaf::Up(party)));
            self.events.push_back(TreeEvent::Up(client));
        }
    }

    fn party_gone(&mut self, party: PartyId, cause: Cause, now: Instant) {
        if self.doomed.remove(&party) {
            return;
        }
        let Some(client) = self.leaves.by_party.get(&party).copied() else {
            return;
        };
        if matches!(self.leaves.get(client), Some(Leaf::Up(_))) {
            self.down(client);
        } else {
            self.leaf_failed(client, cause, now);
        }
    }

    fn down(&mut self, client: AtmAddress) {
        self.leaves.set(client, None);
        self.events.push_back(TreeEvent::Down(client));
    }

    /// A leaf was refused: it is tried again later, or gets a point-to-point copy if the refusals have lasted for too
    /// long.
    fn leaf_failed(&mut self, client: AtmAddress, cause: Cause, now: Instant) {
        let Some(Leaf::Joining { mut tried, .. }) = self.leaves.get(client) else {
            return;
        };
        let most = self.params.leaf_retry;
        let patience = most.saturating_mul(self.params.leaf_tries.saturating_sub(1));
        let since = *tried.since.get_or_insert(now);
        let next = if now.since(since) < patience {
            let least = if cause.is_temporary() {
                Duration::ZERO
            } else {
                most
            };
            let at = now + tried.backoff.wait(Some(cause), least, most);
            Leaf::Waiting { tried, at }
        } else {
            Leaf::CopyCalling(self.call(client, false))
        };
        self.leaves.set(client, Some(next));
    }

    /// Calls the waiting clients that may be called.
    fn advance(&mut self, now: Instant) {
        let nobody = self.leaves.waiting.next().is_none_or(|at| at > now);
        if nobody || matches!(self.root, Root::Calling { .. }) {
            return;
        }
        for client in self.leaves.waiting.due(now) {
            let Some(Leaf::Waiting { tried, .. }) = self.leaves.get(client) else {
                continue;
            };
            let party = match self.root {
                Root::Calling { .. } => return,
                Root::None => {
                    let conn = self.call(client, true);
                    let first = client;
                    self.root = Root::Calling { conn, first };
                    PartyId(0)
                }
                Root::Up(conn) => {
                    let party = self.free_party();
                    let called = client;
                    self.out.push_back(AtmRequest::AddParty {
                        conn,
                        party,
                        called,
                    });
                    party
                }
            };
            self.leaves
                .set(client, Some(Leaf::Joining { tried, party }));
        }
    }

    const fn conn(&self) -> ConnId {
        ConnId(self.number << ID_BITS | self.next_conn)
    }
    fn call(&mut self, called: AtmAddress, multipoint: bool) -> ConnId {
        loop {
            self.next_conn = (self.next_conn + 1) % (1 << ID_BITS);
            let conn = self.conn();
            if !self.is_root(conn) && !self.is_copy(conn) {
                break;
            }
        }
        let conn = self.conn();
        self.out.push_back(AtmRequest::Connect {
            conn,
            calling: self.own,
            called,
            sap: self.sap,
            qos: if multipoint {
                Qos::ubr_multipoint(self.max_sdu)
            } else {
                Qos::ubr(self.max_sdu)
            },
            multipoint,
        });
        conn
    }

    /// A party number that no leaf uses and that was not used lately: the end of an old party may still be under way.
    /// Clients are far fewer than the 32767 party numbers.
    fn free_party(&mut self) -> PartyId {
        loop {
            self.next_party = self.next_party % 32767 + 1;
            let party = PartyId(self.next_party);
            let used = self.leaves.by_party.contains_key(&party);
            if !used && !self.doomed.contains(&party) {
                return party;
            }
        }
    }

    fn release(&mut self, conn: ConnId) {
        let cause = Cause::NORMAL;
        self.out.push_back(AtmRequest::Release { conn, cause });
    }

    /// The client of `party` is not a leaf any more. Without leaves the connection ends.
    fn drop_party(&mut self, party: PartyId, added: bool) {
        let alone = self.leaves.by_party.is_empty();
        match self.root {
            Root::None => {}
            Root::Calling { conn, .. } => {
                self.root = Root::None;
                self.release(conn);
            }
            Root::Up(conn) if alone => {
                self.root = Root::None;
                self.doomed.clear();
                self.release(conn);
            }
            Root::Up(conn) if added => {
                self.out.push_back(AtmRequest::DropParty { conn, party });
            }
            Root::Up(_) => {
                self.doomed.insert(party);
            }
        }
    }
}
