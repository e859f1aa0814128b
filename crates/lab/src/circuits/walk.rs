//! One way of a connection's cells, combined from counters that may have started at different times.
//!
//! A row is about the cells that all parts of its way have counted. Two kinds of cells do not belong to the row:
//!
//! - Cells that a part sent before the next part existed: before a leaf was added to a point-to-multipoint connection,
//!   or before the next node was switched on again. They are subtracted from the sent cells of the row.
//! - *Stale* cells: cells that a part counted before the previous part started to count, because the node there was
//!   switched on again. They are in the counters of all following parts, and are subtracted there.
//!
//! Counters do not tell which cells a part dropped. So stale cells count as passed on, and dropped cells count as cells
//! of the row, as far as the numbers allow.

use super::{Circuit, Loss, place};
use crate::model::LinkEnd;
use aerostat_node::atm::{CellCounters, DropReason};

/// A walk along one way.
#[derive(Clone)]
pub(super) struct Walk {
    pub(super) at: LinkEnd,
    pub(super) vc: aerostat_wire::Vc,
    /// Cells of the row that left the part before `at`.
    pub(super) left: u64,
    /// Further cells in the counters of the part before `at`, which do not belong to the row.
    stale: u64,
    pub(super) circuit: Circuit,
}

impl Walk {
    /// A walk that starts at the sender's adapter.
    pub(super) fn new(circuit: Circuit) -> Self {
        Self {
            at: LinkEnd {
                node: circuit.from.node,
                port: 0,
            },
            vc: circuit.from.vc,
            left: circuit.sent,
            stale: 0,
            circuit,
        }
    }

    /// Crosses the link from here, with `on_the_way` cells on it, to a part that has counted `arrived` cells. `younger`
    /// tells whether the node there was switched on after the one here.
    pub(super) fn cross(&mut self, on_the_way: u64, arrived: u64, younger: bool) {
        let on_the_way = on_the_way.min(self.left);
        self.circuit.under_way += on_the_way;
        self.left -= on_the_way;
        if younger {
            self.begins_at(arrived);
            return;
        }
        let missing = (self.left + self.stale).saturating_sub(arrived);
        let lost = missing.min(self.left);
        self.note(self.at, None, lost);
        self.left -= lost;
        self.stale = arrived.saturating_sub(self.left);
    }

    /// Crosses a connection of a switch, which drops cells at its input.
    pub(super) fn connection(&mut self, at: LinkEnd, counters: &CellCounters) {
        self.pass(at, counters, 0);
    }

    /// Crosses the queue before the next link, in which `waiting` cells wait. A leaf that was added late has counted
    /// fewer cells than the connection.
    pub(super) fn queue(&mut self, counters: &CellCounters, waiting: u64) {
        self.begins_at(counters.cells_in);
        self.pass(self.at, counters, waiting);
    }

    /// Removes the cells that preceded a part with `arrived` cells from the row.
    fn begins_at(&mut self, arrived: u64) {
        let before = (self.left + self.stale).saturating_sub(arrived);
        // The oldest cells are the stale ones.
        let own = before.saturating_sub(self.stale);
        self.left -= own;
        self.circuit.sent -= own;
        self.circuit.offered -= own;
        self.stale = arrived.saturating_sub(self.left);
    }

    /// Crosses a part that passes cells on, holds some and drops the rest.
    fn pass(&mut self, at: LinkEnd, counters: &CellCounters, waiting: u64) {
        let stale = self.stale.min(counters.cells_out);
        let out = (counters.cells_out - stale).min(self.left);
        let waiting = waiting.min(self.left - out);
        self.circuit.under_way += waiting;
        let mut gone = self.left - out - waiting;
        for (reason, cells) in counters.dropped.iter() {
            let cells = cells.min(gone);
            self.note(at, Some(reason), cells);
            gone -= cells;
        }
        // Cells of the segment OAM flow of a link end at its port.
        self.note(at, Some(DropReason::NotForUs), gone);
        (self.left, self.stale) = (out, stale);
    }

    fn note(&mut self, at: LinkEnd, reason: Option<DropReason>, cells: u64) {
        if cells > 0 {
            self.circuit.lost.push(Loss {
                node: at.node,
                port: at.port,
                reason,
                cells,
            });
        }
    }

    /// Ends at a link out of the lab. The fate of cells outside is unknown, so cells that have reached the far end of
    /// the link count as delivered.
    pub(super) fn leaves_the_lab(mut self, far: LinkEnd, on_the_way: u64) -> Circuit {
        let on_the_way = on_the_way.min(self.left);
        self.circuit.to = Some(place(far, self.vc));
        self.circuit.under_way += on_the_way;
        self.circuit.delivered = self.left - on_the_way;
        self.circuit
    }

    /// Ends without a receiver: cells that have left the last queue are lost there, except for those still on the link.
    pub(super) fn ends_here(mut self, on_the_way: u64) -> Circuit {
        let on_the_way = on_the_way.min(self.left);
        self.circuit.under_way += on_the_way;
        self.note(self.at, Some(DropReason::UnknownVc), self.left - on_the_way);
        self.circuit
    }
}

#[cfg(test)]
mod tests {
    use super::super::Place;
    use super::*;
    use crate::model::NodeId;
    use aerostat_node::distribution::Distribution;
    use aerostat_wire::Vc;

    /// A walk on a connection on which the adapter has sent `cells` cells.
    fn sent(cells: u64) -> Walk {
        Walk::new(Circuit {
            from: Place {
                node: NodeId(0),
                port: 0,
                vc: Vc::new(0, 50),
            },
            to: None,
            class: "ubr",
            user: None,
            switches: 0,
            offered: cells + 3,
            refused: 1,
            waiting: 2,
            sent: cells,
            delivered: 0,
            lost: Vec::new(),
            under_way: 0,
            sdus: 0,
            bad_pdus: 0,
            wasted: None,
            transfer: Distribution::default(),
        })
    }

    fn counters(cells_in: u64, cells_out: u64, policed: u64) -> CellCounters {
        let mut counters = CellCounters {
            cells_in,
            cells_out,
            ..CellCounters::default()
        };
        counters.dropped.add(DropReason::Policed, policed);
        counters
    }

    /// Cells sent, lost, under way and delivered; they balance.
    fn books(walk: &Walk) -> [u64; 4] {
        let circuit = &walk.circuit;
        let books = [
            circuit.sent,
            circuit.lost_cells(),
            circuit.under_way,
            walk.left,
        ];
        assert_eq!(books[0], books[1..].iter().sum::<u64>(), "{books:?}");
        let begun = circuit.refused + circuit.waiting + circuit.sent;
        assert_eq!(circuit.offered, begun);
        books
    }

    #[test]
    fn losses_on_links_in_connections_and_in_queues_add_up_with_what_waits() {
        let mut walk = sent(100);
        walk.cross(5, 90, false);
        walk.connection(walk.at, &counters(90, 80, 10));
        walk.queue(&counters(80, 60, 13), 7);
        walk.cross(2, 58, false);
        assert_eq!(books(&walk), [100, 5 + 10 + 13, 5 + 7 + 2, 58]);
    }

    #[test]
    fn a_late_leaf_counts_what_was_sent_since_it_was_added() {
        let mut walk = sent(97);
        walk.cross(0, 97, false);
        walk.connection(walk.at, &counters(97, 97, 0));
        walk.queue(&counters(43, 43, 0), 0);
        walk.cross(0, 43, false);
        assert_eq!(books(&walk), [43, 0, 0, 43]);
    }

    #[test]
    fn cells_of_a_sender_that_was_off_since_are_nowhere_in_the_row() {
        let mut walk = sent(27);
        walk.cross(0, 48, false);
        assert_eq!(books(&walk), [27, 0, 0, 27]);
        walk.connection(walk.at, &counters(48, 46, 2));
        walk.queue(&counters(46, 40, 6), 0);
        walk.cross(1, 39, false);
        assert_eq!(books(&walk), [27, 8, 1, 18]);
    }

    #[test]
    fn cells_sent_before_the_next_node_was_switched_on_again_are_not_lost() {
        let mut walk = sent(100);
        walk.cross(1, 30, true);
        assert_eq!(books(&walk), [31, 0, 1, 30]);
        // The next node was never off.
        walk.connection(walk.at, &counters(30, 30, 0));
        walk.queue(&counters(30, 30, 0), 0);
        walk.cross(0, 90, false);
        assert_eq!(books(&walk), [31, 0, 1, 30]);
    }

    #[test]
    fn a_node_that_is_younger_than_a_sender_which_was_off_too_has_none_of_its_old_cells() {
        let mut walk = sent(20);
        walk.cross(0, 120, false);
        walk.connection(walk.at, &counters(120, 120, 0));
        walk.queue(&counters(120, 120, 0), 0);
        walk.cross(0, 15, true);
        assert_eq!(books(&walk), [15, 0, 0, 15]);
    }

    #[test]
    fn books_balance_whatever_the_counters_say() {
        let numbers = [0, 1, 40, 100];
        for (a, b) in numbers
            .into_iter()
            .flat_map(|a| numbers.map(move |b| (a, b)))
        {
            for (c, d) in numbers
                .into_iter()
                .flat_map(|a| numbers.map(move |b| (a, b)))
            {
                let mut walk = sent(a);
                walk.cross(d, b, c < d);
                walk.connection(walk.at, &counters(b, c, d));
                walk.queue(&counters(c, d, a), b);
                walk.cross(a, c, b < a);
                books(&walk);
            }
        }
    }
}
