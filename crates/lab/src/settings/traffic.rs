//! Flows and faults.

use super::{expected, seconds, text};
use crate::build::flow_ports;
use crate::model::{
    Fault, FaultKind, Flow, FlowKind, GivenRate, Lab, NodeId, SendRate, Service, Ticks,
};
use serde_json::{Value, json};

pub(super) fn of_flow(lab: &Lab, index: usize, flow: &Flow) -> Value {
    let rate = |rate: SendRate| match rate.given {
        GivenRate::Packets(rate) => json!({ "packets_per_second": rate }),
        GivenRate::Bits(bits) => json!({ "bits_per_second": bits }),
    };
    let [from, to] = lab.ends_of(flow);
    let Flow {
        name: _,
        // They are `from` and `to`, the port is `flow_ports`.
        from: _,
        to: _,
        segment: _,
        port: _,
        destination,
        kind,
        write,
        ticks,
        voice,
        start,
        waits,
        duration,
        expect,
    } = flow;
    let ticks = ticks.map(|Ticks { tick, spacing }| [tick, spacing].map(seconds));
    let (kind, size, rate, poisson) = match *kind {
        FlowKind::Tcp => ("tcp", None, None, None),
        FlowKind::Udp {
            size,
            rate: r,
            poisson,
        } => ("udp", Some(size), Some(rate(r)), Some(poisson)),
        FlowKind::Ping { size, rate: r } => ("ping", Some(size), Some(rate(r)), None),
        FlowKind::Rr { size } => ("rr", Some(size), None, None),
    };
    let mut all = json!({
        "from": from,
        "to": to,
        "destination": text(destination),
        "kind": if *voice { "voice" } else { kind },
        "size_octets": size,
        "rate": rate,
        "poisson": poisson,
        "port": flow_ports(flow, index).map(|[_, sink]| sink),
        "tick_s": ticks.map(|[tick, _]| tick),
        "spacing_s": ticks.map(|[_, spacing]| spacing),
        "start_s": seconds(*start),
        "waits": waits,
        "duration_s": duration.map(seconds),
        "expect": expected(*expect),
    });
    if let Some(octets) = write {
        all["write_octets"] = (*octets).into();
    }
    all
}

pub(super) fn of_fault(lab: &Lab, fault: &Fault) -> Value {
    let node = |id: NodeId, service: Option<Service>| {
        let name = &lab.node(id).name;
        match service {
            Some(service) => format!("{name}/{}", service.name()),
            None => name.clone(),
        }
    };
    let Fault { at, what } = fault;
    let (what, target) = match *what {
        FaultKind::Crash(id, service) => ("crash", node(id, service)),
        FaultKind::Restart(id, service) => ("restart", node(id, service)),
        FaultKind::LinkDown(link) => ("link_down", lab.link(link).name.clone()),
        FaultKind::LinkUp(link) => ("link_up", lab.link(link).name.clone()),
    };
    json!({ "at_s": seconds(*at), "what": what, "target": target })
}
