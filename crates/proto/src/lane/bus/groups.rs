//! Clients that get the frames of a group.

use super::super::ServerParams;
use super::super::tree::Tree;
use crate::{AtmEvent, AtmRequest, ConnId, Instant};
use aerostat_wire::{AtmAddress, MacAddr, Sap};
use std::collections::{BTreeMap, BTreeSet};

/// Number of the tree of the clients that did not choose groups; the tree of all clients has number 0, the trees of
/// groups follow.
const REST: u32 = 1;
const FIRST: u32 = 2;
const LAST: u32 = 127;

pub(super) struct Groups {
    own: AtmAddress,
    max_sdu: u16,
    params: ServerParams,
    /// At least one client chose groups: there is a difference between clients.
    selective: bool,
    rest: Tree,
    rest_wanted: BTreeSet<AtmAddress>,
    trees: BTreeMap<MacAddr, Tree>,
    wanted: BTreeMap<MacAddr, BTreeSet<AtmAddress>>,
    /// Trees of groups that no client wants any more; a tree that is used again continues its connection ids.
    spare: Vec<Tree>,
    next_number: u32,
}

impl Groups {
    pub(super) fn new(own: AtmAddress, max_sdu: u16, params: &ServerParams) -> Self {
        let sap = Sap::LANE_MULTICAST_ETHERNET;
        Self {
            own,
            max_sdu,
            params: params.clone(),
            selective: false,
            rest: Tree::new(own, sap, max_sdu, params).numbered(REST),
            rest_wanted: BTreeSet::new(),
            trees: BTreeMap::new(),
            wanted: BTreeMap::new(),
            spare: Vec::new(),
            next_number: FIRST,
        }
    }
    /// Groups that are registered, with the number of clients.
    pub(super) fn rows(&self) -> Vec<(MacAddr, usize)> {
        let rows = self.wanted.iter();
        rows.map(|(mac, clients)| (*mac, clients.len())).collect()
    }

    /// True if a client had chosen groups when the plan was made last.
    pub(super) const fn is_selective(&self) -> bool {
        self.selective
    }

    /// Plans for the clients that are connected now, each with the groups that it wants (`None`: all).
    pub(super) fn plan<'a>(
        &mut self,
        wants: impl Iterator<Item = (AtmAddress, Option<&'a [MacAddr]>)>,
        now: Instant,
    ) {
        (self.selective, self.rest_wanted, self.wanted) = Default::default();
        for (client, groups) in wants {
            let Some(groups) = groups else {
                self.rest_wanted.insert(client);
                continue;
            };
            self.selective = true;
            for mac in groups {
                self.wanted.entry(*mac).or_default().insert(client);
            }
        }
        if !self.selective {
            self.rest_wanted.clear();
        }
        follow(&mut self.rest, &self.rest_wanted, now);
        let gone = |mac: &&MacAddr| !self.wanted.contains_key(*mac);
        for mac in self.trees.keys().filter(gone).copied().collect::<Vec<_>>() {
            if let Some(mut tree) = self.trees.remove(&mac) {
                tree.clear(now);
                self.spare.push(tree);
            }
        }
        for mac in self.wanted.keys().copied().collect::<Vec<_>>() {
            self.make(mac);
            if let (Some(tree), Some(clients)) = (self.trees.get_mut(&mac), self.wanted.get(&mac)) {
                follow(tree, clients, now);
            }
        }
    }

    fn make(&mut self, mac: MacAddr) {
        if self.trees.contains_key(&mac) || self.trees.len() >= self.params.groups {
            return;
        }
        let tree = match self.spare.pop() {
            Some(tree) => tree,
            None if self.next_number <= LAST => {
                let sap = Sap::LANE_MULTICAST_ETHERNET;
                let tree = Tree::new(self.own, sap, self.max_sdu, &self.params);
                self.next_number += 1;
                tree.numbered(self.next_number - 1)
            }
            None => return,
        };
        self.trees.insert(mac, tree);
    }

    /// Sends a frame of a group to the clients that want it; false if the frame is to go to all.
    pub(super) fn send(&mut self, mac: MacAddr, sdu: &[u8]) -> bool {
        let reaches = |tree: &Tree, clients: &BTreeSet<AtmAddress>| {
            clients.iter().all(|client| tree.reaches(*client))
        };
        if !self.selective || mac == MacAddr::BROADCAST || !reaches(&self.rest, &self.rest_wanted) {
            return false;
        }
        let tree = match self.wanted.get(&mac) {
            None => None,
            Some(clients) => match self.trees.get_mut(&mac) {
                Some(tree) if reaches(tree, clients) => Some(tree),
                _ => return false,
            },
        };
        self.rest.send(sdu);
        if let Some(tree) = tree {
            tree.send(sdu);
        }
        true
    }

    /// An event of the ATM service; false if the event is not about these connections.
    pub(super) fn handle(&mut self, event: &AtmEvent<&[u8]>, now: Instant) -> bool {
        let conn = match *event {
            AtmEvent::Received { conn, .. }
            | AtmEvent::Connected { conn, .. }
            | AtmEvent::Released { conn, .. }
            | AtmEvent::PartyAdded { conn, .. }
            | AtmEvent::PartyGone { conn, .. } => conn,
            AtmEvent::Up | AtmEvent::Down | AtmEvent::Incoming { .. } => return false,
        };
        let number = Tree::number_of(conn);
        if conn.0 >= ConnId::INCOMING || number < REST {
            return false;
        }
        let mut trees = self.all();
        if let Some(tree) = trees.find(|tree| tree.number() == number) {
            tree.handle(event, now);
        }
        true
    }
    pub(super) fn next(&self) -> Option<Instant> {
        let trees = core::iter::once(&self.rest).chain(self.trees.values());
        trees.filter_map(Tree::next).min()
    }
    pub(super) fn timeout(&mut self, now: Instant) {
        for tree in self.all() {
            tree.timeout(now);
        }
    }
    /// The next request of a tree. The clients that a tree reaches are determined when a frame is sent: a lost leaf is
    /// tried again when the plan changes, and until then the frames of the group go to all.
    pub(super) fn request(&mut self) -> Option<AtmRequest> {
        self.all().find_map(|tree| {
            tree.events.clear();
            tree.out.pop_front()
        })
    }
    fn all(&mut self) -> impl Iterator<Item = &mut Tree> {
        let groups = self.trees.values_mut().chain(&mut self.spare);
        core::iter::once(&mut self.rest).chain(groups)
    }
}

/// Adds and removes leaves until the tree has exactly the wanted ones.
fn follow(tree: &mut Tree, wanted: &BTreeSet<AtmAddress>, now: Instant) {
    let gone: Vec<_> = tree.clients().filter(|c| !wanted.contains(c)).collect();
    for client in gone {
        tree.remove(client, now);
    }
    for client in wanted {
        tree.add(*client, now);
    }
}
