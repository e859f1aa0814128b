//! The connections of a client as a table that finds them by the other end, counts them, and knows when READY_QUERY is
//! due.
//!
//! A router in a large ELAN has a connection with each of thousands of clients. A walk over all connections in each
//! step would make the work of the ELAN grow with the square of its clients.

use super::control::{Conn, Role};
use crate::{ConnId, Deadlines, Instant};
use aerostat_wire::AtmAddress;
use core::ops::Deref;
use std::collections::{BTreeMap, BTreeSet};

/// Connections by id. The table can be read as a map. Role and peer of a connection never change.
#[derive(Default)]
pub(super) struct Conns {
    map: BTreeMap<ConnId, Conn>,
    by_peer: BTreeSet<(AtmAddress, ConnId)>,
    roles: BTreeMap<Role, usize>,
    /// Data direct, called side: when READY_QUERY is due.
    queries: Deadlines<ConnId>,
    /// Connections that were added, changed or removed since the last report, if there are reports.
    unreported: Option<BTreeSet<ConnId>>,
}

impl Deref for Conns {
    type Target = BTreeMap<ConnId, Conn>;
    fn deref(&self) -> &Self::Target {
        &self.map
    }
}

impl Conns {
    /// The connection, for changes of its state; role and peer must not change.
    pub(super) fn get_mut(&mut self, conn: &ConnId) -> Option<&mut Conn> {
        self.changed(*conn);
        self.map.get_mut(conn)
    }
    pub(super) fn insert(&mut self, conn: ConnId, known: Conn) {
        self.remove(&conn);
        self.changed(conn);
        self.by_peer.insert((known.peer, conn));
        *self.roles.entry(known.role).or_default() += 1;
        self.map.insert(conn, known);
    }
    pub(super) fn remove(&mut self, conn: &ConnId) -> Option<Conn> {
        let gone = self.map.remove(conn)?;
        self.changed(*conn);
        self.by_peer.remove(&(gone.peer, *conn));
        if let Some(count) = self.roles.get_mut(&gone.role) {
            *count -= 1;
        }
        self.queries.set(*conn, None);
        Some(gone)
    }
    fn changed(&mut self, conn: ConnId) {
        if let Some(unreported) = &mut self.unreported {
            unreported.insert(conn);
        }
    }
    /// The connections that may have changed since the last call, in order, with those that are gone; all connections at
    /// the first call.
    pub(super) fn changes(&mut self) -> BTreeSet<ConnId> {
        let changed = self.unreported.replace(BTreeSet::new());
        changed.unwrap_or_else(|| self.map.keys().copied().collect())
    }
    pub(super) fn count(&self, role: Role) -> usize {
        self.roles.get(&role).copied().unwrap_or_default()
    }
    /// The connections with `peer`, oldest id first.
    pub(super) fn with(&self, peer: AtmAddress) -> impl Iterator<Item = (ConnId, &Conn)> {
        let all = self
            .by_peer
            .range((peer, ConnId(0))..=(peer, ConnId(u32::MAX)));
        all.filter_map(|(_, conn)| Some((*conn, self.map.get(conn)?)))
    }
    /// Sets when READY_QUERY is to be sent on this connection, if the connection exists.
    pub(super) fn query_at(&mut self, conn: ConnId, at: Option<Instant>) {
        self.queries
            .set(conn, at.filter(|_| self.map.contains_key(&conn)));
    }
    /// When the first READY_QUERY is due.
    pub(super) fn next_query(&self) -> Option<Instant> {
        self.queries.next()
    }
    /// The connections on which READY_QUERY is due.
    pub(super) fn queries_due(&self, now: Instant) -> Vec<ConnId> {
        self.queries.due(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn peer(n: u8) -> AtmAddress {
        AtmAddress([n; 20])
    }

    proptest! {
        /// Compares the table with plain walks over all connections.
        #[test]
        fn agrees_with_a_walk(
            moves in proptest::collection::vec((0_u32..12, 0_u8..4, 0_usize..4, 0_u64..40), 1..200),
        ) {
            let roles = [Role::ControlDirect, Role::SelectiveSend, Role::DataDirect];
            let mut conns = Conns::default();
            let mut queries = BTreeMap::new();
            for (id, whom, what, at) in moves {
                let conn = ConnId(id);
                let at = Some(Instant::from_nanos(at)).filter(|_| at < 30);
                match roles.get(what) {
                    Some(role) => {
                        let (role, peer) = (*role, peer(whom));
                        let (outgoing, vc, mux, ready) = (false, None, false, false);
                        conns.insert(conn, Conn { role, peer, outgoing, vc, mux, ready });
                        queries.remove(&conn);
                    }
                    None if whom == 0 => {
                        let known = conns.contains_key(&conn);
                        prop_assert_eq!(conns.remove(&conn).is_some(), known);
                        queries.remove(&conn);
                    }
                    None if conns.contains_key(&conn) => {
                        conns.query_at(conn, at);
                        queries.insert(conn, at);
                    }
                    None => conns.query_at(conn, at),
                }
                for role in roles {
                    let walk = conns.values().filter(|known| known.role == role).count();
                    prop_assert_eq!(conns.count(role), walk);
                }
                for n in 0..4 {
                    let walk = conns.iter().filter(|(_, known)| known.peer == peer(n));
                    let walk: Vec<ConnId> = walk.map(|(conn, _)| *conn).collect();
                    let with: Vec<ConnId> = conns.with(peer(n)).map(|(conn, _)| conn).collect();
                    prop_assert_eq!(with, walk);
                }
                prop_assert_eq!(conns.next_query(), queries.values().flatten().min().copied());
            }
        }
    }
}
