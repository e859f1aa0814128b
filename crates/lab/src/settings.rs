//! The effective parameters of a lab: all values from the file or from defaults, as plain values.
//!
//! Results contain them, so that figures made with other parameters can be recognised. Names are those of the lab file;
//! the unit is part of the name (`_s` seconds, `_cps` cells per second). Secrets of keys are left out.

use crate::build::flow_ports;
use crate::model::{
    Congestion, Fault, FaultKind, Flow, FlowKind, Forwarding, GivenRate, Host, Lab, Lec, Mpc, Mps,
    Nhc, Node, NodeKind, Router, SendRate, Service,
};
use aerostat_node::atm::CellRate;
use aerostat_node::host::sockets::{Answer, Program, Role, Sending};
use aerostat_proto::Duration;
use serde_json::{Map, Value, json};
use std::fmt::Display;

/// The parameters of a lab, by section of the lab file.
#[must_use]
pub fn settings(lab: &Lab) -> Value {
    json!({
        "seed": lab.seed,
        "until_s": lab.end().as_secs_f64(),
        "nodes": named(lab.nodes.iter().map(|node| (node.name.clone(), of_node(lab, node)))),
        "links": named(lab.links.iter().map(|link| (link.name.clone(), json!({
            "ends": link.ends.map(|end| lab.node(end.node).name.clone()),
            "rate_cps": cells_per_second(link.rate),
            "delay_s": link.delay.as_secs_f64(),
            "loss": link.loss,
            "bit_errors": link.bit_errors,
        })))),
        "subnets": named(lab.elans.iter().map(|elan| (elan.name.clone(), json!({
            "kind": if elan.clip.is_some() { "clip" } else { "lane" },
            "subnet": text(elan.subnet),
            "mtu_octets": elan.ip_mtu(),
            "version": elan.clip.is_none().then_some(if elan.v2 { 2 } else { 1 }),
            "idle_s": elan.clip.as_ref().map(|lis| lis.idle.as_secs_f64()),
            "mux": elan.clip.as_ref().map(|lis| lis.mux),
            "nhrp": elan.clip.as_ref().map(|lis| lis.nhrp),
            "next_hops": elan.clip.iter().flat_map(|lis| &lis.next_hops).map(|hop| json!({
                "ip": text(hop.ip),
                "address": hop.address.map(text),
                "qos": hop.qos.map(text),
            })).collect::<Vec<_>>(),
        })))),
        "pvcs": lab.pvcs.iter().map(|pvc| json!({
            "ends": pvc.ends.map(|(node, vc)| format!("{}:{vc}", lab.node(node).name)),
            "qos": text(pvc.qos),
            "path": pvc.path,
            "police": pvc.police,
            "mux": pvc.mux,
            "switches": pvc.hops.iter().map(|hop| &lab.node(hop.switch).name).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "traffic": named(lab.traffic.iter().enumerate().map(|(index, flow)| (flow.name.clone(), of_flow(lab, index, flow)))),
        "faults": lab.faults.iter().map(|fault| of_fault(lab, fault)).collect::<Vec<_>>(),
    })
}

fn named(entries: impl Iterator<Item = (String, Value)>) -> Map<String, Value> {
    entries.collect()
}

fn text(value: impl Display) -> String {
    value.to_string()
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

/// Not rounded: 353207.547… for an OC-3c.
fn cells_per_second(rate: CellRate) -> f64 {
    rate.numerator() as f64 / rate.denominator() as f64
}

fn of_node(lab: &Lab, node: &Node) -> Value {
    let mut all = match &node.kind {
        NodeKind::Switch(switch) => json!({
            "kind": "switch",
            "prefix": switch.prefix.iter().map(|octet| format!("{octet:02x}")).collect::<String>(),
            "ports": switch.ports.len(),
        }),
        NodeKind::LaneServer(server) => json!({
            "kind": "lane server",
            "rank": server.rank,
            "ilmi": server.ilmi,
            "uni": text(format_args!("{:?}", server.uni)),
            "lecs": text(server.lecs),
        }),
        NodeKind::Router(router) => of_router(lab, router),
        NodeKind::Host(host) => of_host(lab, host),
        NodeKind::Outside(_) => json!({ "kind": "outside" }),
    };
    if let (Some(attachment), Some(all)) = (node.attachment(), all.as_object_mut()) {
        all.insert("address".into(), text(attachment.address).into());
        let switch = &lab.node(attachment.switch).name;
        all.insert("on".into(), switch.clone().into());
    }
    all
}

fn of_lec(lab: &Lab, lec: &Lec) -> Value {
    json!({
        "interface": lab.interface_name(lec),
        "elan": lab.elan(lec.elan).name,
        "mac": text(lec.mac),
        "address": text(lec.address),
        "ip": text(lec.ip),
        "version": if lec.v2 { 2 } else { 1 },
        "named": lec.named,
        "llc": lec.llc,
        "groups": lec.groups.as_ref().map(|groups| groups.iter().map(text).collect::<Vec<_>>()),
    })
}

fn of_router(lab: &Lab, router: &Router) -> Value {
    json!({
        "kind": "router",
        "interfaces": router.lecs.iter().map(|lec| of_lec(lab, lec)).collect::<Vec<_>>(),
        "routes": named(router.routes.iter().map(|route| (text(route.to), text(route.via).into()))),
        "forwarding_bps": match router.forwarding {
            Forwarding::Wire => None,
            Forwarding::Rate { bits } => Some(bits),
        },
        "queue_frames": router.queue,
        "mpoa": router.mpoa.as_ref().map(of_mps),
        "ilmi": router.ilmi,
        "uni": text(format_args!("{:?}", router.uni)),
    })
}

fn of_host(lab: &Lab, host: &Host) -> Value {
    json!({
        "kind": "host",
        "interfaces": [of_lec(lab, &host.lec)],
        "routes": named(host.routes.iter().map(|route| (text(route.to), text(route.via).into()))),
        "mpoa": host.mpoa.as_ref().map(of_mpc),
        "nhrp": host.nhrp.as_ref().map(of_nhc),
        "tcp": {
            "congestion": match host.tcp.congestion {
                Congestion::Cubic => "cubic",
                Congestion::Reno => "reno",
            },
            "buffer_octets": host.tcp.buffer,
        },
        "ilmi": host.ilmi,
        "uni": text(format_args!("{:?}", host.uni)),
        "sockets": named(host.sockets.iter().map(|program| (program.name.clone(), of_program(program)))),
        "bridge": named(host.bridge.iter().map(|host| (host.name.clone(), text(host.ip).into()))),
    })
}

fn of_mpc(mpc: &Mpc) -> Value {
    json!({
        "start_s": seconds(mpc.start),
        "flow_frames": mpc.flow_frames,
        "flow_time_s": seconds(mpc.flow_time),
        "initial_retry_s": seconds(mpc.initial_retry),
        "retry_max_s": seconds(mpc.retry_max),
        "hold_down_s": seconds(mpc.hold_down),
        "tag": mpc.tag,
        "qos": mpc.qos.iter().map(text).collect::<Vec<_>>(),
    })
}

fn of_mps(mps: &Mps) -> Value {
    json!({
        "start_s": seconds(mps.start),
        "keepalive_time_s": seconds(mps.keepalive_time),
        "keepalive_lifetime_s": seconds(mps.keepalive_lifetime),
        "initial_retry_s": seconds(mps.initial_retry),
        "retry_max_s": seconds(mps.retry_max),
        "give_up_s": seconds(mps.give_up),
        "holding_s": seconds(mps.holding),
        "trigger": mps.trigger,
        "register": mps.register,
        "signed": !mps.keys.is_empty(),
    })
}

fn of_nhc(nhc: &Nhc) -> Value {
    json!({
        "server": text(nhc.server.0),
        "holding_s": seconds(nhc.holding),
        "signed": nhc.key.is_some(),
        "prefix": nhc.widest,
        "authoritative": nhc.authoritative,
    })
}

fn of_program(program: &Program) -> Value {
    match &program.role {
        Role::Listen {
            answer,
            max_sdu,
            calls,
        } => json!({
            "listen": of_answer(*answer),
            "address": text(program.local),
            "sap": text(format_args!("{:?}", program.sap)),
            "max_sdu_octets": max_sdu,
            "calls": calls,
        }),
        Role::Call {
            to,
            qos,
            send,
            hold,
            every,
        } => json!({
            "call": text(to),
            "address": text(program.local),
            "sap": text(format_args!("{:?}", program.sap)),
            "qos": text(qos),
            "send": of_sending(send),
            "hold_s": seconds(*hold),
            "every_s": every.map(seconds),
        }),
        Role::Permanent {
            vc,
            qos,
            answer,
            send,
        } => json!({
            "vc": text(vc),
            "qos": text(qos),
            "listen": of_answer(*answer),
            "send": of_sending(send),
        }),
    }
}

fn of_answer(answer: Answer) -> String {
    format!("{answer:?}").to_lowercase()
}

fn of_sending(send: &Sending) -> Value {
    json!({
        "start_s": send.start.as_secs_f64(),
        "pdus": send.pdus,
        "size_octets": send.size,
        "gap_s": seconds(send.rate.after(1)),
    })
}

fn of_flow(lab: &Lab, index: usize, flow: &Flow) -> Value {
    let rate = |rate: SendRate| match rate.given {
        GivenRate::Packets(rate) => json!({ "packets_per_second": rate }),
        GivenRate::Bits(bits) => json!({ "bits_per_second": bits }),
    };
    let [from, to] = lab.ends_of(flow);
    let (kind, size, rate, poisson) = match flow.kind {
        FlowKind::Tcp => ("tcp", None, None, None),
        FlowKind::Udp {
            size,
            rate: r,
            poisson,
        } => ("udp", Some(size), Some(rate(r)), Some(poisson)),
        FlowKind::Ping { size, rate: r } => ("ping", Some(size), Some(rate(r)), None),
        FlowKind::Rr { size } => ("rr", Some(size), None, None),
    };
    json!({
        "from": from,
        "to": to,
        "destination": text(flow.destination),
        "kind": if flow.voice { "voice" } else { kind },
        "size_octets": size,
        "rate": rate,
        "poisson": poisson,
        "port": flow_ports(flow, index).map(|[_, sink]| sink),
        "tick_s": flow.ticks.map(|ticks| seconds(ticks.tick)),
        "spacing_s": flow.ticks.map(|ticks| seconds(ticks.spacing)),
        "start_s": seconds(flow.start),
        "duration_s": flow.duration.map(seconds),
    })
}

fn of_fault(lab: &Lab, fault: &Fault) -> Value {
    let node = |id, service: Option<Service>| {
        let name = &lab.node(id).name;
        match service {
            Some(service) => format!("{name}/{service:?}").to_lowercase(),
            None => name.clone(),
        }
    };
    let (what, target) = match fault.what {
        FaultKind::Crash(id, service) => ("crash", node(id, service)),
        FaultKind::Restart(id, service) => ("restart", node(id, service)),
        FaultKind::LinkDown(link) => ("link_down", lab.link(link).name.clone()),
        FaultKind::LinkUp(link) => ("link_up", lab.link(link).name.clone()),
    };
    json!({ "at_s": seconds(fault.at), "what": what, "target": target })
}
