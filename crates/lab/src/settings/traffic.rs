//! Flows and faults.

use super::{Published, published};
use crate::build::flow_ports;
use crate::model::{
    Arrivals, Fault, FaultKind, Flow, FlowKind, GivenRate, Lab, Load, LoadOf, NodeId, SendRate,
    Service, Share, Ticks, Trace,
};
use serde_json::{Map, Value, json};

// The ends are `from` and `to`, the port is that of `flow_ports`. Flows without the keys that are given only have the
// settings that they have always had.
published! { own, lab;
    Flow {
        name; hidden, from; hidden, to; hidden, segment; hidden, port; hidden, over; given, destination,
        kind; merged, write as "write_octets"; given, octets; given, ticks; hidden, load; given, group; given,
        voice; hidden, series = series.then_some(true); given, start, waits, duration, expect
    } + {
        "from": lab.ends_of(own)[0], "to": lab.ends_of(own)[1], "kind": own.kind_name(),
        "tick_s": ticks.map(|Ticks { tick, .. }| tick).published(lab),
        "spacing_s": ticks.map(|Ticks { spacing, .. }| spacing).published(lab),
    }
    Load {
        name; hidden, share as "per_cent" = share.map(Share::per_cent), of; merged, frame as "frame_octets",
        arrivals; merged
    } + { "units_per_frame": of.units(*frame) }
    Trace {
        file as "trace", digest as "trace_sha256", list as "trace_packets" = list.len()
    }
    Fault { at, what; merged }
}

pub(super) fn of_flow(lab: &Lab, index: usize, flow: &Flow) -> Value {
    let mut all = flow.published(lab);
    all["port"] = flow_ports(flow, index).map(|[_, sink]| sink).into();
    all
}

impl Published for FlowKind {
    fn published(&self, lab: &Lab) -> Value {
        let (size, rate, poisson) = match *self {
            Self::Tcp => (None, None, None),
            Self::Udp {
                size,
                rate,
                poisson,
            } => (Some(size), Some(rate), Some(poisson)),
            Self::Ping { size, rate } => (Some(size), Some(rate), None),
            Self::Rr { size } => (Some(size), None, None),
        };
        json!({ "size_octets": size, "rate": rate.published(lab), "poisson": poisson })
    }
}

impl Published for SendRate {
    fn published(&self, _: &Lab) -> Value {
        match self.given {
            GivenRate::Packets(rate) => json!({ "packets_per_second": rate }),
            GivenRate::Bits(bits) => json!({ "bits_per_second": bits }),
        }
    }
}

impl Published for LoadOf {
    fn published(&self, lab: &Lab) -> Value {
        let (link, rate) = match self {
            Self::Cells { link, .. } => (Some(link.published(lab)), None),
            Self::Ethernet { rate, .. } => (None, Some(rate)),
        };
        json!({ "layer": self.layer(), "link": link, "ethernet_bps": rate })
    }
}

impl Published for Arrivals {
    fn published(&self, lab: &Lab) -> Value {
        let mut all = json!({
            "arrivals": self.name(),
            "on_s": null,
            "off_s": null,
            "trace": null,
            "trace_sha256": null,
            "trace_packets": null,
        });
        match (self, all.as_object_mut()) {
            (Self::OnOff { on, off }, Some(all)) => {
                all.insert("on_s".into(), on.published(lab));
                all.insert("off_s".into(), off.published(lab));
            }
            (Self::Trace(trace), Some(all)) => super::merge(all, trace.published(lab)),
            _ => {}
        }
        all
    }
}

impl Published for FaultKind {
    fn published(&self, lab: &Lab) -> Value {
        let node = |id: NodeId, service: Option<Service>| {
            let name = &lab.node(id).name;
            match service {
                Some(service) => format!("{name}/{}", service.name()).into(),
                None => name.as_str().into(),
            }
        };
        let (what, target) = match *self {
            Self::Crash(id, service) => ("crash", node(id, service)),
            Self::Restart(id, service) => ("restart", node(id, service)),
            Self::LinkDown(link) => ("link_down", link.published(lab)),
            Self::LinkUp(link) => ("link_up", link.published(lab)),
            Self::Change(link, _) => ("change", link.published(lab)),
            Self::Reset(link) => ("reset", link.published(lab)),
            Self::Retrain(link, ..) => ("retrain", link.published(lab)),
            Self::Trained(link, _) => ("trained", link.published(lab)),
        };
        let mut all = Map::new();
        all.insert("what".to_owned(), what.into());
        all.insert("target".to_owned(), target);
        match self {
            Self::Change(link, changes) | Self::Trained(link, changes) => {
                all.extend(crate::lines::published(lab.link(*link), changes));
            }
            Self::Retrain(link, time, changes) => {
                all.insert("duration_s".to_owned(), time.published(lab));
                all.extend(crate::lines::published(lab.link(*link), changes));
            }
            _ => {}
        }
        all.into()
    }
}
