//! Neighbours of embedded hosts and routers: addresses, states, and packets that wait.

use super::{Host, Ip};
use crate::inspect::{Table, Value, text};
use crate::ip::neighbours::{NeighbourCounters, NeighbourView};
use aerostat_proto::Instant;
use aerostat_wire::MacAddr;

impl Host {
    /// The neighbours on every interface, and those of the embedded hosts on the segment; empty if a kernel has the
    /// tables.
    pub(super) fn arp_tables(&self, now: Instant) -> Vec<Table> {
        let columns = &[
            "interface",
            "address",
            "mac",
            "state",
            "queued",
            "dropped",
            "heard_s",
        ];
        let mut rows = Table::new("neighbours", columns);
        let mut all = Vec::new();
        let mut show = |name: String, (views, counters): (Vec<NeighbourView>, _)| {
            views
                .iter()
                .for_each(|view| rows.row(row(&name, view, now)));
            all.push(counters);
        };
        match &self.ip {
            Ip::Stack(stack) => show("lec0".into(), stack.arp()),
            Ip::Router(router) | Ip::KernelRouter(router) => {
                for (number, _) in router.interfaces().enumerate() {
                    if let Some(arp) = router.arp(number) {
                        show(format!("lec{number}"), arp);
                    }
                }
            }
            Ip::None | Ip::Kernel => {}
        }
        for host in self.segment.iter().flat_map(|segment| segment.hosts()) {
            show(host.name.clone(), host.stack.arp());
        }
        if all.is_empty() {
            return Vec::new();
        }
        let mut sum = NeighbourCounters::default();
        for counters in &all {
            sum.add(counters);
        }
        vec![rows, Table::counters("counters", sum.rows())]
    }
}

fn row(interface: &str, view: &NeighbourView, now: Instant) -> Vec<Value> {
    vec![
        interface.into(),
        text(view.address),
        view.mac.map(|mac| text(MacAddr(mac))).into(),
        view.state.as_str().into(),
        view.queued.into(),
        view.dropped.into(),
        view.heard.map(|heard| now.since(heard).as_secs()).into(),
    ]
}
