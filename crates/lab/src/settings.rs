//! The effective parameters of a lab: all values from the file or from defaults, as plain values.
//!
//! Results contain them, so that figures made with other parameters can be recognised. Names are those of the lab file;
//! the unit is part of the name (`_s` seconds, `_cps` cells per second). Secrets of keys are left out.
//!
//! Structures of the model are taken apart without `..`, so that a new field does not compile until it has its place
//! here. A test walks the schema of lab files and changes each key.

mod nodes;
mod pseudowires;
mod subnets;
#[cfg(test)]
mod tests;
mod timers;
mod traffic;

use crate::model::{Expect, Lab, Limits, Link, LinkId, Pvc, Queues};
use crate::occupancy::Occupancy;
use aerostat_node::atm::{CellRate, Discipline, PathConfig, Policing};
use aerostat_node::switch::ConnectionQueue;
use aerostat_proto::parameters::{self, Parameter, Parameters};
use aerostat_proto::{Duration, Instant};
use aerostat_wire::AtmAddress;
use serde_json::{Map, Value, json};
use std::fmt::{Debug, Display};

/// The parameters of a lab, by section of the lab file, for a run that was to end at `until`.
#[must_use]
pub fn settings(lab: &Lab, until: Instant) -> Value {
    let Lab {
        // Both stand beside the settings, or change nothing.
        name: _,
        description: _,
        seed,
        until: _,
        nodes,
        links,
        elans,
        pvcs,
        // With the programs.
        sockets_expect: _,
        traffic,
        faults,
        timers,
        limits,
        capture,
        occupancy,
        names: given,
        sockets_group,
    } = lab;
    let Limits { port, mps, nhrp } = limits;
    let flows = traffic.iter().enumerate();
    let names = |links: &[LinkId]| -> Vec<String> {
        links
            .iter()
            .map(|link| lab.link(*link).name.clone())
            .collect()
    };
    json!({
        "seed": seed,
        "until_s": seconds(until.since(Instant::ZERO)),
        "nodes": named(lab.nodes().zip(nodes).map(|((id, _), node)| (node.name.clone(), nodes::of(lab, id, node)))),
        "links": named(links.iter().map(|link| (link.name.clone(), of_link(lab, link)))),
        "subnets": named(elans.iter().map(|elan| (elan.name.clone(), subnets::of(lab, elan)))),
        "pvcs": pvcs.iter().map(|pvc| of_pvc(lab, pvc)).collect::<Vec<_>>(),
        "traffic": named(flows.map(|(index, flow)| (flow.name.clone(), traffic::of_flow(lab, index, flow)))),
        "faults": faults.iter().map(|fault| traffic::of_fault(lab, fault)).collect::<Vec<_>>(),
        "timers": timers::of(timers),
        "limits": { "port": map_of(port), "mps": map_of(mps), "nhrp": map_of(nhrp) },
        "capture": names(capture),
        "occupancy": occupancy.as_ref().map(|Occupancy { every, from, links }| json!({
            "every_s": seconds(*every),
            "from_s": seconds(*from),
            "links": names(links),
        })),
        "names": map_of_names(given),
        "sockets": { "group": sockets_group },
    })
}

/// Names with their addresses.
fn map_of_names(names: &[(String, AtmAddress)]) -> Value {
    let all = names.iter();
    named(all.map(|(name, address)| (name.clone(), address.to_string().into()))).into()
}

fn of_link(lab: &Lab, link: &Link) -> Value {
    let Link {
        name: _,
        ends,
        rate,
        delay,
        loss,
        bit_errors,
        police,
        cdvt,
        queues,
        tunnels,
        call_vpi,
        framing,
    } = link;
    let all = json!({
        "ends": ends.map(|end| lab.node(end.node).name.clone()),
        "rate_cps": cells_per_second(*rate),
        "delay_s": seconds(*delay),
        "loss": loss,
        "bit_errors": bit_errors,
        "police": police.map(policing),
        "cdvt_s": cdvt.map(seconds),
    });
    let tunnels = named(tunnels.iter().map(|path| {
        let (vpi, path_of_it) = of_path(path);
        let calls = (path.vpi == *call_vpi).then_some(true.into());
        (vpi, with(path_of_it, "calls", calls))
    }));
    let tunnels = (!tunnels.is_empty()).then(|| tunnels.into());
    let ethernet = framing
        .map(|framing| json!({ "rate_bps": framing.bits_per_second(), "cells": framing.cells() }));
    let all = with(all, "ethernet", ethernet);
    with(with(all, "queues", of_queues(queues)), "tunnels", tunnels)
}

/// Queues, if anything is given.
fn of_queues(queues: &Queues) -> Option<Value> {
    let Queues {
        params,
        scheduler,
        calls,
    } = queues;
    let given = *queues != Queues::default();
    let own = json!({ "scheduler": scheduler.map(Discipline::name) });
    let calls = calls.iter();
    let calls = named(calls.map(|(category, queue)| (text(category), map_of(&queue).into())));
    let calls = (!calls.is_empty()).then(|| calls.into());
    given.then(|| with(with_parameters(own, params), "calls", calls))
}

/// Settings with one more, if it is given: those of a lab without it stay as they were.
fn with(mut all: Value, key: &str, more: Option<Value>) -> Value {
    if let (Some(all), Some(more)) = (all.as_object_mut(), more) {
        all.insert(key.to_owned(), more);
    }
    all
}

fn of_path(path: &PathConfig) -> (String, Value) {
    let PathConfig { vpi, pcr, cdvt } = *path;
    (
        vpi.to_string(),
        json!({ "pcr": pcr, "cdvt_s": seconds(cdvt) }),
    )
}

fn of_pvc(lab: &Lab, pvc: &Pvc) -> Value {
    let Pvc {
        ends,
        hops,
        qos,
        path,
        police,
        shape,
        rate_queue,
        queue,
        tunnel,
        mux,
        peer,
    } = pvc;
    let conformance = [qos.tx, qos.rx].map(|traffic| traffic.conformance().map(text));
    let queue = (*queue != ConnectionQueue::DEFAULT).then(|| map_of(queue).into());
    let all = json!({
        "ends": ends.map(|(node, vc)| format!("{}:{vc}", lab.node(node).name)),
        "qos": text(qos),
        "frame_discard": qos.tx.frame_discard,
        "path": path,
        "police": police.map(policing),
        "conformance": conformance,
        "mux": mux,
        "peer": peer.map(text),
        "switches": hops.iter().map(|hop| &lab.node(hop.switch).name).collect::<Vec<_>>(),
    });
    let all = with(with(all, "queue", queue), "tunnel", tunnel.map(Value::from));
    let all = with(all, "shape", shape.map(Value::from));
    with(all, "rate_queue", rate_queue.clone().map(Value::from))
}

/// `true`, `false` or `all`, as in a lab file.
fn policing(what: Policing) -> Value {
    match what {
        Policing::Off => false.into(),
        Policing::Guaranteed => true.into(),
        Policing::All => "all".into(),
    }
}

fn named(entries: impl Iterator<Item = (String, Value)>) -> Map<String, Value> {
    entries.collect()
}

fn text(value: impl Display) -> String {
    value.to_string()
}

fn texts(values: impl IntoIterator<Item = impl Display>) -> Vec<String> {
    values.into_iter().map(text).collect()
}

/// The text of a value that has no `Display`.
fn debug(value: impl Debug) -> String {
    format!("{value:?}")
}

fn word(value: impl Debug) -> String {
    debug(value).to_lowercase()
}

/// The parameters of a protocol by name, with the unit as part of the name.
fn map_of(params: &impl Parameters) -> Map<String, Value> {
    let one = |Parameter { name, value, .. }| match value {
        parameters::Value::Time(time) => (format!("{name}_s"), seconds(time).into()),
        parameters::Value::Count(count) => (name.to_owned(), count.into()),
        parameters::Value::Rate(rate) => (format!("{name}_pps"), rate.0.into()),
        parameters::Value::Octets(octets) => (format!("{name}_octets"), octets.0.into()),
        parameters::Value::Flag(flag) => (name.to_owned(), flag.into()),
    };
    params.with_ranges().into_iter().map(one).collect()
}

/// Settings with the parameters of a protocol beside them.
fn with_parameters(mut own: Value, params: &impl Parameters) -> Value {
    if let Some(own) = own.as_object_mut() {
        own.extend(map_of(params));
    }
    own
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

/// Not rounded: 353207.547… for an OC-3c.
fn cells_per_second(rate: CellRate) -> f64 {
    rate.numerator() as f64 / rate.denominator() as f64
}

fn expected(expect: Option<Expect>) -> Option<&'static str> {
    expect.map(|expect| match expect {
        Expect::Loss => "loss",
        Expect::Nothing => "nothing",
    })
}
