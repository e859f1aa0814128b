//! The connections of a client: the table of connections by peer, with what is special for LANE: when READY_QUERY is
//! due, and which connections have changed since the last report.
//!
//! A router in a large ELAN has a connection with each of thousands of clients. A walk over all connections in each
//! step would make the work of the ELAN grow with the square of its clients.

use super::control::{Link, Role};
use crate::vcc::{Call, Vcc, VccTable};
use crate::{AtmRequest, ConnId, Deadlines, Instant};
use aerostat_wire::{AtmAddress, Vc};
use core::ops::Deref;
use std::collections::BTreeSet;

/// One connection.
pub(super) type Conn = Vcc<Role, Link>;

/// The table of connections, which can be read as such.
#[derive(Default)]
pub(super) struct Conns {
    table: VccTable<Role, Link>,
    /// Data direct, called side: when READY_QUERY is due.
    queries: Deadlines<ConnId>,
    /// Connections that were added, changed or removed since the last report, if there are reports.
    unreported: Option<BTreeSet<ConnId>>,
}

impl Deref for Conns {
    type Target = VccTable<Role, Link>;
    fn deref(&self) -> &Self::Target {
        &self.table
    }
}

impl Conns {
    /// An empty table whose first own call gets the id after `last`.
    pub(super) fn after(last: ConnId) -> Self {
        Self {
            table: VccTable::after(last),
            ..Self::default()
        }
    }
    /// Adds a call to `peer`, who is called at the address in `call`.
    pub(super) fn dial(
        &mut self,
        call: Call,
        (peer, role): (AtmAddress, Role),
        link: Link,
        now: Instant,
    ) -> (ConnId, AtmRequest) {
        let conn = self.table.add(peer, role, link, now);
        self.changed(conn);
        (conn, call.request(conn))
    }
    /// Adds an offered call; returns the request that accepts it.
    pub(super) fn accept(
        &mut self,
        conn: ConnId,
        (peer, role): (AtmAddress, Role),
        link: Link,
        now: Instant,
    ) -> AtmRequest {
        self.queries.set(conn, None);
        self.changed(conn);
        self.table.accept(conn, peer, role, link, now)
    }
    /// Adds a connection of another control part.
    pub(super) fn adopt(&mut self, conn: ConnId, known: Conn) {
        self.queries.set(conn, None);
        self.changed(conn);
        self.table.adopt(conn, known);
    }
    /// A connection is open; returns its role, or `None` if the connection is unknown.
    pub(super) fn opened(&mut self, conn: ConnId, vc: Vc, now: Instant) -> Option<Role> {
        self.changed(conn);
        let (known, _) = self.table.opened(conn, vc, now)?;
        Some(known.carries())
    }
    /// Frames may be sent on a data direct connection from now on.
    pub(super) fn set_ready(&mut self, conn: ConnId) {
        self.changed(conn);
        if let Some(link) = self.table.info(conn) {
            link.ready = true;
        }
    }
    pub(super) fn remove(&mut self, conn: ConnId) -> Option<Conn> {
        let gone = self.table.remove(conn)?;
        self.changed(conn);
        self.queries.set(conn, None);
        Some(gone)
    }
    fn changed(&mut self, conn: ConnId) {
        if let Some(unreported) = &mut self.unreported {
            unreported.insert(conn);
        }
    }
    /// The connections that may have changed since the last call, in order, with those that are gone; all connections
    /// at the first call.
    pub(super) fn changes(&mut self) -> BTreeSet<ConnId> {
        let changed = self.unreported.replace(BTreeSet::new());
        changed.unwrap_or_else(|| self.table.iter().map(|(conn, _)| conn).collect())
    }
    /// Sets when READY_QUERY is to be sent on this connection, if the connection exists.
    pub(super) fn query_at(&mut self, conn: ConnId, at: Option<Instant>) {
        self.queries
            .set(conn, at.filter(|_| self.table.get(conn).is_some()));
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
    use std::collections::BTreeMap;

    proptest! {
        /// Compares READY_QUERY deadlines with a plain map, whatever happens to the connections.
        #[test]
        fn queries_agree_with_a_map(
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
                        let to = (AtmAddress([whom; 20]), *role);
                        conns.accept(conn, to, Link::default(), Instant::ZERO);
                        queries.remove(&conn);
                    }
                    None if whom == 0 => {
                        let known = conns.get(conn).is_some();
                        prop_assert_eq!(conns.remove(conn).is_some(), known);
                        queries.remove(&conn);
                    }
                    None if conns.get(conn).is_some() => {
                        conns.query_at(conn, at);
                        queries.insert(conn, at);
                    }
                    None => conns.query_at(conn, at),
                }
                for role in roles {
                    let walk = conns.iter().filter(|(_, known)| known.carries() == role).count();
                    prop_assert_eq!(conns.count(role), walk);
                }
                prop_assert_eq!(conns.next_query(), queries.values().flatten().min().copied());
            }
        }
    }
}
