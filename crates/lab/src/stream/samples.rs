//! Counters and levels at one time, as differences from the time before.

use super::lines::Sample;
use super::present::Present;
use crate::circuits::Network;
use crate::model::{LinkId, NodeId};
use crate::plant::{LabNode, Plant};
use aerostat_node::ip::flow_stats::Totals;
use std::collections::BTreeMap;

/// Counters and levels that have been told.
#[derive(Debug, Default)]
pub struct Levels {
    links: BTreeMap<usize, [u64; 3]>,
    flows: BTreeMap<usize, [u64; 6]>,
    queues: BTreeMap<(NodeId, u16), u64>,
    calls: BTreeMap<u64, [u64; 2]>,
}

impl Levels {
    /// Changes since the last sample, at the time of the plant; nothing if nothing has.
    pub fn take<M>(
        &mut self,
        plant: &Plant<LabNode, M>,
        present: &Present<'_>,
        totals: &[Totals],
    ) -> Option<Sample> {
        let mut sample = Sample {
            t: plant.now().as_nanos(),
            ..Sample::default()
        };
        let lab = present.lab;
        let links = lab.links.iter().enumerate();
        let links = links.filter(|(number, _)| present.scope.has_link(LinkId(*number)));
        for (number, link) in links {
            let [forth, back] = plant.counters_of(LinkId(number));
            let lost = [forth, back].map(|way| way.lost + way.discarded + way.down);
            let now = [forth.sent, back.sent, lost.iter().sum()];
            if changed(&mut self.links, number, now) {
                sample.links.insert(link.name.clone(), now);
            }
        }
        for ((number, flow), of) in lab.traffic.iter().enumerate().zip(totals) {
            let now = [
                of.sent_packets,
                of.received_packets,
                of.lost,
                of.sent_octets,
                of.received_octets,
                of.delay_ns,
            ];
            if changed(&mut self.flows, number, now) {
                sample.flows.insert(flow.name.clone(), now);
            }
        }
        self.queues(plant, present, &mut sample);
        self.calls(plant, present, &mut sample);
        (!sample.is_empty()).then_some(sample)
    }

    fn queues<M>(&mut self, plant: &Plant<LabNode, M>, present: &Present<'_>, sample: &mut Sample) {
        let nodes = present.lab.nodes();
        for (id, node) in nodes.filter(|(id, _)| present.scope.has_node(*id)) {
            let mut port = 0;
            let mut waiting = BTreeMap::new();
            if let Some(machine) = plant.node(id) {
                machine.outputs(|output| {
                    waiting.insert(port, u64::from(output.queued_total()));
                    port += 1;
                });
            }
            let told = self.queues.range((id, 0)..=(id, u16::MAX));
            // The queues of a node that is off are empty.
            let off: Vec<u16> = told.map(|((_, port), _)| *port).collect();
            for port in off {
                waiting.entry(port).or_default();
            }
            for (port, now) in waiting {
                if changed(&mut self.queues, (id, port), now) {
                    sample.queues.insert(format!("{}:{port}", node.name), now);
                }
            }
        }
    }

    fn calls<M>(&mut self, plant: &Plant<LabNode, M>, present: &Present<'_>, sample: &mut Sample) {
        let mut live = BTreeMap::new();
        for (conn, (id, state)) in present.calls.iter() {
            let Some(way) = present.ways.way(*conn) else {
                continue;
            };
            let sent = |end: Option<&(NodeId, aerostat_wire::Vc)>| {
                let (node, vc) = end?;
                plant.station(*node)?.cells_sent(*vc)
            };
            let back = way.ends.first().filter(|_| !state.multipoint);
            let now = [sent(way.from.as_ref()), sent(back)].map(Option::unwrap_or_default);
            let before = self.calls.get(id).copied().unwrap_or_default();
            // A label that is closed has no counter any more.
            let now = [0, 1].map(|end| now[end].max(before[end]));
            if now != before {
                sample.calls.insert(*id, now);
            }
            live.insert(*id, now);
        }
        self.calls = live;
    }
}

/// Stores a value; true if it is another one than before, where nothing is 0.
fn changed<K: Ord, V: Default + PartialEq + Copy>(
    told: &mut BTreeMap<K, V>,
    key: K,
    now: V,
) -> bool {
    told.insert(key, now).unwrap_or_default() != now
}
