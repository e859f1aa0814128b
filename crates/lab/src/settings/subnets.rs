//! Emulated LANs and Classical IP subnets.

use super::{text, texts, with_parameters};
use crate::model::{Elan, ForeignServers, Lab, Lis, Member, NextHop};
use aerostat_proto::clip::{Per, PortContract};
use aerostat_wire::AtmAddress;
use serde_json::{Value, json};

pub(super) fn of(lab: &Lab, elan: &Elan) -> Value {
    let Elan {
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
    } = elan;
    let mut all = json!({
        "kind": if clip.is_some() { "clip" } else { "lane" },
        "subnet": text(subnet),
        "mtu_octets": elan.ip_mtu(),
        "version": clip.is_none().then_some(if *v2 { 2 } else { 1 }),
        "ip6": ip6.map(text),
        "idle_s": null,
        "mux": null,
        "nhrp": null,
        "next_hops": [],
    });
    let more = match clip {
        Some(lis) => of_lis(lab, lis),
        None => json!({
            "elan_id": id,
            "max_frame_octets": max_frame.octets(),
            "les": elan.is_own().then(|| text(les)),
            "bus": elan.is_own().then(|| text(bus)),
            "standby": standby.iter().map(|(les, bus)| json!({ "les": text(les), "bus": text(bus) })).collect::<Vec<_>>(),
            "members": members.iter().map(|octets| AtmAddress::leading(octets)).collect::<Vec<_>>(),
            "macs": texts(macs),
            "multicast_send_average": multicast_send.map(|rates| rates[0]),
            "multicast_send_peak": multicast_send.map(|rates| rates[1]),
            "servers_outside": foreign.as_ref().map(of_foreign),
        }),
    };
    if let (Some(all), Value::Object(more)) = (all.as_object_mut(), more) {
        all.extend(more);
    }
    all
}

fn of_foreign(servers: &ForeignServers) -> Value {
    let ForeignServers {
        name,
        well_known,
        lecs,
        les,
        max_frame,
    } = servers;
    json!({
        "name": name,
        "well_known": well_known,
        "lecs": lecs.map(text),
        "les": les.map(text),
        "max_frame_octets": max_frame.octets(),
    })
}

fn of_lis(lab: &Lab, lis: &Lis) -> Value {
    let Lis {
        // That of the subnet.
        mtu: _,
        server,
        servers,
        params,
        mux,
        nhrp,
        next_hops,
        map,
        usual,
    } = lis;
    let mut own = json!({
        "mux": mux,
        "nhrp": nhrp,
        "next_hops": hops(next_hops),
        "server": server.map(|id| &lab.node(id).name),
        "servers": texts(servers),
    });
    // Subnets without these keys have the settings that they have always had.
    if let Some(map) = map {
        own["next_hops_file"] = map.name.as_str().into();
    }
    if usual.per != Per::Destination || usual.contract.is_some() || !usual.ports.is_empty() {
        own["members"] = of_member(usual);
    }
    with_parameters(own, params)
}

fn hops(list: &[NextHop]) -> Vec<Value> {
    let hop = |hop: &NextHop| {
        let NextHop {
            ip,
            length,
            address,
            qos,
        } = hop;
        let ip = match length {
            32 => ip.to_string(),
            length => format!("{ip}/{length}"),
        };
        json!({ "ip": ip, "address": address.map(text), "qos": qos.map(text) })
    };
    list.iter().map(hop).collect()
}

/// What a member of a Classical IP subnet does.
pub(super) fn of_member(member: &Member) -> Value {
    let Member {
        mtu,
        per,
        contract,
        ports,
        sessions,
        next_hops,
        map,
    } = member;
    let rule = |rule: &PortContract| {
        let PortContract {
            protocol,
            ports,
            qos,
        } = rule;
        let ports = [ports.start(), ports.end()];
        json!({ "protocol": protocol, "ports": ports, "qos": text(qos) })
    };
    json!({
        "mtu_octets": mtu,
        "per": match per {
            Per::Destination => "destination",
            Per::Session => "session",
        },
        "qos": contract.map(text),
        "ports": ports.iter().map(rule).collect::<Vec<_>>(),
        "sessions": sessions,
        "next_hops": hops(next_hops),
        "next_hops_file": map.as_ref().map(|map| &map.name),
    })
}
