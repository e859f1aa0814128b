//! The way back of packets that arrive over guaranteed connections of other clients.
//!
//! A client calls with more than best effort for one of its flows. The packets that answer this flow go back over the
//! same connection, if its contract guarantees something in that direction. Source: thesis Figure 6.1 (one VCI in both
//! tables) and §6.1.3 ("all the return packets that belong to this flow").
//!
//! The called end has no QoS entry, so it learns from the packets that arrive. A packet goes back over the connection
//! on which packets of its flow (both addresses, protocol, both ports) arrived last. A packet of a flow of which none
//! has arrived goes over the connection on which all packets between its two hosts arrive, if such a connection exists.
//! If packets between them also arrive elsewhere, the caller has other flows between them, and such a packet takes best
//! effort.
//!
//! Only IPv4 packets are learned, as only they can fit a QoS entry.

use crate::{ConnId, Duration, Instant};
use aerostat_wire::mpoa::FlowFilter;
use core::net::Ipv4Addr;
use std::collections::BTreeMap;

/// Time for which a packet that arrived on another connection counts; also the age at which what is known makes room.
const MEMORY: Duration = Duration::from_secs(20);

/// Least time between two searches for old entries.
const SWEEP: Duration = Duration::from_secs(1);

/// Flows, and pairs of hosts, that are remembered of each connection.
pub(super) const MOST: usize = 256;

/// A flow or pair of hosts: the connection on which its packets arrive, and when the last one did.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    conn: ConnId,
    at: Instant,
    /// When a packet between the two hosts last arrived on another connection.
    otherwise: Option<Instant>,
}

impl Arrival {
    const fn new(conn: ConnId, at: Instant) -> Self {
        Self {
            conn,
            at,
            otherwise: None,
        }
    }
    fn is_old(&self, now: Instant) -> bool {
        now.since(self.at) >= MEMORY
    }
}

/// Source and destination of a packet that arrived.
type Pair = (Ipv4Addr, Ipv4Addr);

/// Flows that arrived over guaranteed connections of other clients.
#[derive(Debug, Default)]
pub(super) struct Returns {
    flows: BTreeMap<FlowFilter, Arrival>,
    pairs: BTreeMap<Pair, Arrival>,
    /// Entries of each connection, in both maps.
    held: BTreeMap<ConnId, usize>,
    /// Old entries are not searched again before this time.
    next_sweep: Option<Instant>,
}

/// The result of [`Returns::note`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Noted {
    /// Nothing new.
    Known,
    /// A way back begins.
    New,
    /// There is no room to remember the flow.
    Full,
}

impl Returns {
    /// A packet of this flow arrived on a guaranteed connection that another client opened.
    pub(super) fn note(&mut self, flow: FlowFilter, conn: ConnId, now: Instant) -> Noted {
        let pair = (flow.source, flow.destination);
        let had = self.note_pair(pair, conn, now);
        if had
            && let Some(known) = self.flows.get_mut(&flow)
            && known.conn == conn
        {
            known.at = now;
            return Noted::Known;
        }
        if !self.make_room(conn, 2 - usize::from(had), now) {
            return Noted::Full;
        }
        if !had {
            self.pairs.insert(pair, Arrival::new(conn, now));
            self.count(conn, true);
        }
        if let Some(old) = self.flows.insert(flow, Arrival::new(conn, now)) {
            self.count(old.conn, false);
        }
        self.count(conn, true);
        Noted::New
    }

    /// A packet between these hosts arrived. False if nothing is known of them.
    fn note_pair(&mut self, pair: Pair, conn: ConnId, now: Instant) -> bool {
        let Some(known) = self.pairs.get_mut(&pair) else {
            return false;
        };
        if known.conn == conn {
            known.at = now;
        } else if known.is_old(now) {
            let old = core::mem::replace(known, Arrival::new(conn, now));
            self.count(old.conn, false);
            self.count(conn, true);
        } else {
            known.otherwise = Some(now);
        }
        true
    }

    /// A packet of this flow arrived on another connection.
    pub(super) fn note_otherwise(&mut self, flow: FlowFilter, now: Instant) {
        let pair = self.pairs.get_mut(&(flow.source, flow.destination));
        if let Some(pair) = pair {
            pair.otherwise = Some(now);
        }
        if let Some(gone) = self.flows.remove(&flow) {
            self.count(gone.conn, false);
        }
    }

    /// The connection on which a packet of the flow `out` goes back.
    pub(super) fn way(&self, out: FlowFilter, now: Instant) -> Option<ConnId> {
        let answered = FlowFilter {
            destination: out.source,
            destination_port: out.source_port,
            protocol: out.protocol,
            source: out.destination,
            source_port: out.destination_port,
        };
        if let Some(flow) = self.flows.get(&answered) {
            return Some(flow.conn);
        }
        let pair = self.pairs.get(&(answered.source, answered.destination))?;
        let mixed = pair.otherwise.is_some_and(|at| now.since(at) < MEMORY);
        (!mixed).then_some(pair.conn)
    }

    /// The connection is gone.
    pub(super) fn forget(&mut self, conn: ConnId) {
        if self.held.remove(&conn).is_some() {
            self.flows.retain(|_, known| known.conn != conn);
            self.pairs.retain(|_, known| known.conn != conn);
        }
    }
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Makes room for more entries of a connection: those that are old go. False if there is no room.
    fn make_room(&mut self, conn: ConnId, more: usize, now: Instant) -> bool {
        let has_room = |held: Option<&usize>| held.is_none_or(|held| *held + more <= MOST);
        if has_room(self.held.get(&conn)) {
            return true;
        }
        if self.next_sweep.is_some_and(|at| now < at) {
            return false;
        }
        self.next_sweep = Some(now + SWEEP);
        let stays = |known: &Arrival| known.conn != conn || !known.is_old(now);
        self.flows.retain(|_, known| stays(known));
        self.pairs.retain(|_, known| stays(known));
        let flows = self.flows.values().filter(|known| known.conn == conn);
        let pairs = self.pairs.values().filter(|known| known.conn == conn);
        self.held.insert(conn, flows.count() + pairs.count());
        has_room(self.held.get(&conn))
    }

    fn count(&mut self, conn: ConnId, more: bool) {
        let held = self.held.entry(conn).or_default();
        *held = if more {
            *held + 1
        } else {
            held.saturating_sub(1)
        };
        if *held == 0 {
            self.held.remove(&conn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(text: &str) -> FlowFilter {
        text.parse().expect(text)
    }
    fn at(s: u64) -> Instant {
        Instant::from_secs(s)
    }
    const C: ConnId = ConnId(7);
    const D: ConnId = ConnId(8);

    #[test]
    fn the_answer_goes_where_the_question_came_from() {
        let mut returns = Returns::default();
        let there = flow("10.1.0.1:99 10.2.0.2:5004 udp");
        let back = flow("10.2.0.2:5004 10.1.0.1:99 udp");
        let other = flow("10.2.0.2:80 10.1.0.1:1000 tcp");
        assert_eq!(returns.way(back, at(0)), None);
        assert_eq!(returns.note(there, C, at(1)), Noted::New);
        assert_eq!(returns.note(there, C, at(1)), Noted::Known);
        // All that is known of the pair arrives there.
        assert_eq!(
            (returns.way(back, at(2)), returns.way(other, at(2))),
            (Some(C), Some(C))
        );
        // Not between other hosts.
        assert_eq!(
            returns.way(flow("10.2.0.2:5004 10.1.0.3:99 udp"), at(2)),
            None
        );
        assert_eq!(
            returns.way(flow("10.2.0.3:5004 10.1.0.1:99 udp"), at(2)),
            None
        );
        // The caller has another flow, which does not take the connection.
        returns.note_otherwise(flow("10.1.0.1:1000 10.2.0.2:80 tcp"), at(3));
        assert_eq!(
            (returns.way(back, at(4)), returns.way(other, at(4))),
            (Some(C), None)
        );
        assert_eq!(returns.way(other, at(30)), Some(C), "it has ended");
        returns.forget(C);
        assert_eq!(returns.way(back, at(30)), None);
        assert!(returns.is_empty());
    }

    #[test]
    fn each_of_two_connections_gets_its_answers() {
        let mut returns = Returns::default();
        returns.note(flow("10.1.0.1:1 10.2.0.2:5004 udp"), C, at(1));
        returns.note(flow("10.1.0.1:2 10.2.0.2:80 tcp"), D, at(1));
        let way = |returns: &Returns, text, now| returns.way(flow(text), at(now));
        assert_eq!(way(&returns, "10.2.0.2:5004 10.1.0.1:1 udp", 2), Some(C));
        assert_eq!(way(&returns, "10.2.0.2:80 10.1.0.1:2 tcp", 2), Some(D));
        assert_eq!(way(&returns, "10.2.0.2 10.1.0.1 icmp", 2), None);
        // The first connection falls silent: what arrives comes by the second.
        for now in 2..40 {
            returns.note(flow("10.1.0.1:2 10.2.0.2:80 tcp"), D, at(now));
        }
        assert_eq!(way(&returns, "10.2.0.2 10.1.0.1 icmp", 40), Some(D));
        // A flow that moves takes its answers along.
        returns.note(flow("10.1.0.1:1 10.2.0.2:5004 udp"), D, at(41));
        assert_eq!(way(&returns, "10.2.0.2:5004 10.1.0.1:1 udp", 41), Some(D));
        returns.forget(D);
        assert_eq!(way(&returns, "10.2.0.2:80 10.1.0.1:2 tcp", 42), None);
        assert!(returns.flows.is_empty() && returns.pairs.is_empty());
        assert!(returns.is_empty());
    }

    #[test]
    fn a_flood_of_flows_has_a_bound_and_old_flows_make_room() {
        let mut returns = Returns::default();
        let number = |n: u16| FlowFilter {
            source_port: n,
            ..flow("10.1.0.1:1 10.2.0.2:5004 udp")
        };
        let mut full = 0;
        for n in 1..=1000 {
            full += u32::from(returns.note(number(n), C, at(1)) == Noted::Full);
        }
        assert_eq!(returns.flows.len() + returns.pairs.len(), MOST);
        assert_eq!(full, 1000 - (MOST as u32 - 1));
        // The connection of another caller has room of its own.
        let other = flow("10.1.0.9:1 10.2.0.2:5004 udp");
        assert_eq!(returns.note(other, D, at(1)), Noted::New);
        assert_eq!(returns.note(number(2000), C, at(22)), Noted::New);
        assert_eq!(returns.flows.len(), 2);
        for conn in [C, D] {
            returns.forget(conn);
        }
        assert!(returns.is_empty());
    }
}
