//! Flows and faults.

use super::{expected, seconds, text};
use crate::build::flow_ports;
use crate::model::{
    Arrivals, Fault, FaultKind, Flow, FlowKind, GivenRate, Lab, Load, LoadOf, NodeId, SendRate,
    Service, Share, Ticks,
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
        over,
        destination,
        kind,
        write,
        octets,
        ticks,
        load,
        group,
        voice: _,
        series,
        start,
        waits,
        duration,
        expect,
    } = flow;
    let ticks = ticks.map(|Ticks { tick, spacing }| [tick, spacing].map(seconds));
    let (size, rate, poisson) = match *kind {
        FlowKind::Tcp => (None, None, None),
        FlowKind::Udp {
            size,
            rate: r,
            poisson,
        } => (Some(size), Some(rate(r)), Some(poisson)),
        FlowKind::Ping { size, rate: r } => (Some(size), Some(rate(r)), None),
        FlowKind::Rr { size } => (Some(size), None, None),
    };
    let mut all = json!({
        "from": from,
        "to": to,
        "destination": text(destination),
        "kind": flow.kind_name(),
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
    if let Some(octets) = octets {
        all["octets"] = (*octets).into();
    }
    // Flows without these keys have the settings that they have always had.
    if let Some(load) = load {
        all["load"] = of_load(lab, load);
    }
    if *series {
        all["series"] = true.into();
    }
    if let Some(over) = over {
        all["over"] = lab.elan(*over).name.as_str().into();
    }
    if let Some(group) = group {
        all["group"] = group.as_str().into();
    }
    all
}

fn of_load(lab: &Lab, load: &Load) -> Value {
    let link = match load.of {
        LoadOf::Cells { link, .. } => Some(&lab.link(link).name),
        LoadOf::Ethernet { .. } => None,
    };
    let (on, off) = match load.arrivals {
        Arrivals::OnOff { on, off } => (Some(seconds(on)), Some(seconds(off))),
        _ => (None, None),
    };
    let trace = match &load.arrivals {
        Arrivals::Trace(trace) => Some(trace),
        _ => None,
    };
    json!({
        "per_cent": load.share.map(Share::per_cent),
        "layer": load.of.layer(),
        "link": link,
        "ethernet_bps": match load.of {
            LoadOf::Ethernet { rate, .. } => Some(rate),
            LoadOf::Cells { .. } => None,
        },
        "frame_octets": load.frame,
        "units_per_frame": load.of.units(load.frame),
        "arrivals": load.arrivals.name(),
        "on_s": on,
        "off_s": off,
        "trace": trace.map(|trace| &trace.file),
        "trace_sha256": trace.map(|trace| &trace.digest),
        "trace_packets": trace.map(|trace| trace.list.len()),
    })
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
