//! The QoS entries of a client: which packets get a shortcut of their own, with guaranteed traffic.
//!
//! A packet takes the most specific entry that fits: the entry with the largest number of fields. Among entries with
//! equally many fields, destination address, destination port, protocol, source address and source port have precedence
//! in this order. Two entries of one shape never fit the same packet, so the result is always unique. Source: Tampere
//! thesis Figure 6.3, where telnet's entry is for TCP "not including telnet"; the order of fields is our own.

use crate::Refused;
use aerostat_wire::mpoa::FlowFilter;
use aerostat_wire::{Qos, ServiceCategory};
use core::cmp::Reverse;
use std::collections::BTreeMap;

/// The class of a packet: the entry that it fits, and the traffic of the shortcut if more than best effort.
pub(super) type Class = (Option<FlowFilter>, Option<Qos>);

/// How specific the entries of a shape are; the most specific come first.
type Rank = Reverse<(u32, u8)>;

const fn rank(shape: u8) -> Rank {
    Reverse((shape.count_ones(), shape))
}

/// Entries by shape.
#[derive(Debug, Default)]
pub(super) struct QosTable {
    shapes: BTreeMap<Rank, BTreeMap<FlowFilter, Qos>>,
    /// Packets that fitted each entry since the entry was set.
    packets: BTreeMap<FlowFilter, u64>,
}

impl QosTable {
    /// Sets, changes or (`None`) removes an entry. True if anything has changed.
    pub(super) fn set(
        &mut self,
        filter: FlowFilter,
        qos: Option<Qos>,
        limit: usize,
    ) -> Result<bool, Refused> {
        let rank = rank(filter.shape());
        let known = self.shapes.get(&rank).and_then(|all| all.get(&filter));
        let (new, same) = (known.is_none(), known == qos.as_ref());
        match qos {
            Some(_) if new && self.iter().count() >= limit => {
                return Err(Refused("the client has as many QoS entries as it takes"));
            }
            Some(qos) => {
                self.shapes.entry(rank).or_default().insert(filter, qos);
            }
            None => {
                if let Some(all) = self.shapes.get_mut(&rank) {
                    all.remove(&filter);
                }
                self.shapes.retain(|_, all| !all.is_empty());
                self.packets.remove(&filter);
            }
        }
        Ok(!same)
    }

    /// The class of a packet that [`FlowFilter::of`] describes.
    pub(super) fn class(&self, packet: FlowFilter) -> Class {
        let fit = self.shapes.iter().find_map(|(Reverse((_, shape)), all)| {
            let cut = packet.only(*shape);
            all.get(&cut).map(|qos| (cut, *qos))
        });
        match fit {
            Some((filter, qos)) => (Some(filter), guaranteed(qos)),
            None => (None, None),
        }
    }

    /// Counts packets of this class.
    pub(super) fn count(&mut self, class: &Class, packets: u16) {
        if let Some(filter) = class.0 {
            *self.packets.entry(filter).or_default() += u64::from(packets);
        }
    }

    /// Packets that fitted an entry.
    pub(super) fn packets(&self, filter: &FlowFilter) -> u64 {
        self.packets.get(filter).copied().unwrap_or(0)
    }

    /// Traffic of an entry, if more than best effort.
    pub(super) fn qos(&self, filter: Option<FlowFilter>) -> Option<Qos> {
        let filter = filter?;
        let all = self.shapes.get(&rank(filter.shape()))?;
        all.get(&filter).copied().and_then(guaranteed)
    }

    /// Entries in the order in which packets are matched.
    pub(super) fn iter(&self) -> impl Iterator<Item = (FlowFilter, Qos)> + '_ {
        let all = self.shapes.values().flatten();
        all.map(|(filter, qos)| (*filter, *qos))
    }
}

/// An entry cannot guarantee best effort: an entry for best effort makes an exception.
fn guaranteed(qos: Qos) -> Option<Qos> {
    let best_effort = matches!(qos.tx.category, None | Some(ServiceCategory::Ubr));
    (!best_effort).then_some(qos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    fn filter(text: &str) -> FlowFilter {
        text.parse().expect(text)
    }

    #[test]
    fn the_most_exact_entry_wins() {
        let mut table = QosTable::default();
        // From the least to the most specific for the same packet, inserted in no particular order.
        let order = [
            "0.0.0.0",
            "10.1.0.1 0.0.0.0",
            "0.0.0.0 tcp",
            "0.0.0.0:23 any",
            "10.2.0.2",
            "10.1.0.1 0.0.0.0 tcp",
            "10.2.0.2 tcp",
            "10.2.0.2:23",
            "10.2.0.2:23 tcp",
            "10.1.0.1 10.2.0.2:23 tcp",
            "10.1.0.1:99 10.2.0.2:23 tcp",
        ];
        for i in [3, 0, 10, 7, 1, 5, 2, 9, 4, 8, 6] {
            let qos = Some(Qos::cbr(i as u32 + 1, 1500));
            assert_eq!(table.set(filter(order[i]), qos, 11), Ok(true));
        }
        let packet = filter("10.1.0.1:99 10.2.0.2:23 tcp");
        for (i, text) in order.iter().enumerate().rev() {
            let (found, qos) = table.class(packet);
            assert_eq!(found, Some(filter(text)));
            assert_eq!(qos, Some(Qos::cbr(i as u32 + 1, 1500)));
            assert_eq!(table.set(filter(text), None, 11), Ok(true));
        }
        assert_eq!(table.class(packet), (None, None));
    }

    #[test]
    fn ports_and_addresses_that_are_0_fit_no_entry_that_names_one() {
        let mut table = QosTable::default();
        let rtp = filter("10.2.0.2:5004 udp");
        table.set(rtp, Some(Qos::cbr(1, 100)), 9).expect("room");
        let fragment = filter("10.1.0.1 10.2.0.2 udp");
        assert_eq!(table.class(fragment), (None, None));
        let other = filter("10.1.0.1:5004 10.2.0.3:5004 udp");
        assert_eq!(table.class(other), (None, None));
        assert_eq!(table.class(filter("10.2.0.2:5004 udp")).0, Some(rtp));
    }

    #[test]
    fn bound_and_changes() {
        let mut table = QosTable::default();
        let to = |n: u32| FlowFilter::to(Ipv4Addr::from_bits(n));
        for n in 1..=1000 {
            assert_eq!(table.set(to(n), Some(Qos::cbr(n, 1500)), 1000), Ok(true));
        }
        assert!(table.set(to(1001), Some(Qos::cbr(1, 1500)), 1000).is_err());
        assert_eq!(table.set(to(7), Some(Qos::cbr(7, 1500)), 1000), Ok(false));
        assert_eq!(table.set(to(7), Some(Qos::ubr(1500)), 1000), Ok(true));
        assert_eq!(table.class(to(7)), (Some(to(7)), None), "an exception");
        assert_eq!(table.set(to(7), None, 1000), Ok(true));
        assert_eq!(table.set(to(7), None, 1000), Ok(false));
        assert_eq!(table.set(to(1001), Some(Qos::cbr(1, 1500)), 1000), Ok(true));
        assert_eq!(table.iter().count(), 1000);
    }
}
