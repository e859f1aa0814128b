//! The Ethernet segment behind a host that bridges, and the lines that are ports of its bridge.

use super::Builder;
use super::ip::static_routes;
use crate::model::{EthernetPort, Host as HostModel};
use aerostat_node::host::{LinePort, Segment, SegmentHost};
use aerostat_node::ip::meter::Meter;
use aerostat_node::ip::stack::{Stack, StackConfig, TcpOptions};

impl Builder<'_> {
    /// The Ethernet segment behind a host.
    pub(super) fn segment(&self, model: &HostModel, life: u32) -> Segment {
        let hosts = (0..).zip(&model.bridge).map(|(number, host)| {
            let elan = self.lab.elan(host.elan);
            let config = StackConfig {
                name: host.name.clone(),
                mac: host.mac.0,
                address: host.ip,
                prefix: elan.subnet.length,
                routes: static_routes(&host.routes),
                neighbours: Vec::new(),
                mtu: usize::from(elan.ip_mtu()).min(1500),
                further: Vec::new(),
                tcp: TcpOptions::default(),
                life,
                seed: self.seed_of(&host.name, "stack", life),
            };
            let stack = Stack::new(config).expect("a resolved lab's addresses");
            let stack = stack.with_arp(self.arp());
            SegmentHost {
                name: host.name.clone(),
                stack: Box::new(stack),
                meter: Meter::new(&self.flows, vec![host.ip]),
                vid: model.tag_of(number),
            }
        });
        let hosts: Vec<SegmentHost> = hosts.collect();
        let ports = match model.ports.is_empty() {
            true => vec![EthernetPort::shared(model.ethernet, hosts.len())],
            false => model.ports.clone(),
        };
        let lines = model
            .line_ports(self.lab)
            .map(|[interface, vlan]| LinePort {
                name: self.lab.elan(model.lecs[interface].elan).name.clone(),
                interface,
                vlan,
            });
        Segment::new(ports, hosts)
            .with_vlans(&model.vlans)
            .with_lines(lines.collect())
    }
}
