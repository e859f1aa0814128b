//! Emulated LANs and Classical IP subnets.

use super::{Published, merge, published, text};
use crate::model::{Elan, ForeignServers, Lab, LesAndBus, Lis, MapFile, Member, NextHop};
use aerostat_proto::clip::{Per, PortContract};
use aerostat_wire::AtmAddress;
use serde_json::{Value, json};

published! { own, lab;
    ForeignServers { name, well_known, lecs, les, max_frame as "max_frame_octets" = max_frame.octets() }
    // The MTU is that of the subnet. Subnets without a file or rules have the settings that they have always had.
    Lis {
        mtu; hidden, server, servers, params; beside, mux, nhrp, next_hops, map as "next_hops_file"; given,
        usual as "members" = is_different(usual).then(|| usual.published(lab)); given
    }
    NextHop {
        ip = match length {
            32 => ip.to_string(),
            length => format!("{ip}/{length}"),
        },
        length; hidden, address, qos
    }
    Member {
        mtu as "mtu_octets", per, contract as "qos", ports, sessions, next_hops, map as "next_hops_file"
    }
    PortContract { protocol, ports = [ports.start(), ports.end()], qos }
}

/// True if the members of a subnet do something that they do not do by default.
fn is_different(usual: &Member) -> bool {
    usual.per != Per::Destination || usual.contract.is_some() || !usual.ports.is_empty()
}

impl Published for MapFile {
    fn published(&self, _: &Lab) -> Value {
        self.name.as_str().into()
    }
}

impl Published for Elan {
    fn published(&self, lab: &Lab) -> Value {
        let Self {
            name: _,
            id,
            subnet,
            ip6,
            max_frame,
            les,
            bus,
            standby,
            v2,
            members,
            macs,
            // With the clients, which may differ.
            data: _,
            multicast_send,
            foreign,
            clip,
            line,
        } = self;
        let mut all = json!({
            "kind": self.kind().name(),
            "subnet": text(subnet),
            "mtu_octets": self.ip_mtu(),
            "version": self.is_lane().then_some(if *v2 { 2 } else { 1 }),
            "ip6": ip6.published(lab),
            "idle_s": null,
            "mux": null,
            "nhrp": null,
            "next_hops": [],
        });
        let pair = |pair: &LesAndBus| json!({ "les": text(pair.les), "bus": text(pair.bus) });
        let more = match (clip, line) {
            (Some(lis), _) => lis.published(lab),
            (None, Some(line)) => json!({
                "encapsulation": line.encapsulation.name(),
                "elan": line.into.map(|network| &lab.elan(network).name),
                "calls": line.calls.map(|(caller, _)| &lab.node(caller).name),
                "qos": line.calls.map(|(_, qos)| text(qos)),
            }),
            (None, None) => json!({
                "elan_id": id,
                "max_frame_octets": max_frame.octets(),
                "les": self.is_own().then(|| text(les)),
                "bus": self.is_own().then(|| text(bus)),
                "standby": standby.iter().map(pair).collect::<Vec<_>>(),
                "members": members.iter().map(|octets| AtmAddress::leading(octets)).collect::<Vec<_>>(),
                "macs": macs.published(lab),
                "multicast_send_average": multicast_send.map(|rates| rates[0]),
                "multicast_send_peak": multicast_send.map(|rates| rates[1]),
                "servers_outside": foreign.published(lab),
            }),
        };
        if let Some(all) = all.as_object_mut() {
            merge(all, more);
        }
        all
    }
}
