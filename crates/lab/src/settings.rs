//! The effective parameters of a lab: all values from the file or from defaults, as plain values.
//!
//! Results contain them, so that figures made with other parameters can be recognised. Names are those of the lab file;
//! the unit is part of the name (`_s` seconds, `_cps` cells per second). Secrets of keys are left out.
//!
//! `published!` lists the fields of each structure of the model once. It takes the structure apart without `..`, so
//! that a new field does not compile until it has its place here. A test walks the schema of lab files and changes each
//! key.

mod nodes;
mod pseudowires;
mod subnets;
#[cfg(test)]
mod tests;
mod timers;
mod traffic;

use crate::file;
use crate::ipv6::Ip6Net;
use crate::model::{ElanId, Expect, Lab, Limits, Link, LinkId, NodeId, Occupancy, Pvc, Queues};
use crate::units::IpNet;
use aerostat_node::atm::{CellRate, Discipline, Framing, PathConfig, Policing, RateQueue};
use aerostat_node::host::sockets::programs::Answer;
use aerostat_node::server::Order;
use aerostat_node::switch::ConnectionQueue;
use aerostat_proto::atp::Profile;
use aerostat_proto::clip::Per;
use aerostat_proto::lane::lecs::Criterion;
use aerostat_proto::parameters::{self, Parameter, Parameters};
use aerostat_proto::{Duration, Instant};
use aerostat_wire::l2tp::Sublayer;
use aerostat_wire::mpoa::QosEntry;
use aerostat_wire::q2931::Version;
use aerostat_wire::{AtmAddress, MacAddr, Qos, TrafficParams, Vc};
use serde_json::{Map, Value, json};
use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// A value as results publish it.
trait Published {
    /// The unit, as the end of the name.
    const UNIT: &'static str = "";
    /// The plain value.
    fn published(&self, lab: &Lab) -> Value;
}

/// Publishes structures: the fields of each, separated by commas. A field has its own name and the unit of its type, or
/// the name after `as`; its own value, or the one after `=`. After a semicolon stands `given` if the field is left out
/// where it has no value, `merged` if its own fields stand beside the others, `beside` for parameters of a protocol
/// that do, or `hidden`. After `+` stand further names and values. The words in front name the structure and the lab.
macro_rules! published {
    ($own:ident, $lab:ident; $( $type:ty {
        $( $field:ident $(as $name:literal)? $(= $value:expr)? $(; $how:ident)? ),* $(,)?
    } $(+ { $($key:literal: $more:expr),* $(,)? })? )+) => {$(
        impl crate::settings::Published for $type {
            #[allow(unused_variables, reason = "not every structure needs the lab for its values")]
            fn published(&self, $lab: &crate::model::Lab) -> serde_json::Value {
                let $own = self;
                let Self { $($field),* } = self;
                let mut all = serde_json::Map::new();
                $( published!(@field $lab all $field [$($name)?] [$($value)?] $($how)?); )*
                $( $( all.insert($key.to_owned(), serde_json::json!($more)); )* )?
                serde_json::Value::Object(all)
            }
        }
    )+};
    (@field $lab:ident $all:ident $field:ident [] [] hidden) => { let _ = $field; };
    (@field $lab:ident $all:ident $field:ident [] [] beside) => {
        $all.extend(crate::settings::map_of($field));
    };
    (@field $lab:ident $all:ident $field:ident [] [] merged) => {
        crate::settings::merge(&mut $all, crate::settings::Published::published($field, $lab));
    };
    (@field $lab:ident $all:ident $field:ident [] [$value:expr] merged) => {
        $all.extend($value);
    };
    (@field $lab:ident $all:ident $field:ident [$($name:literal)?] [] $($how:ident)?) => {
        let value = crate::settings::Published::published($field, $lab);
        let name = crate::settings::name_of(stringify!($field), $field);
        $( let name = $name.to_owned(); )?
        published!(@put $all name value $($how)?);
    };
    (@field $lab:ident $all:ident $field:ident [$($name:literal)?] [$value:expr] $($how:ident)?) => {
        let name = stringify!($field).to_owned();
        $( let name = $name.to_owned(); )?
        let value = serde_json::json!($value);
        published!(@put $all name value $($how)?);
    };
    (@put $all:ident $name:ident $value:ident) => { $all.insert($name, $value); };
    (@put $all:ident $name:ident $value:ident given) => {
        if !crate::settings::is_empty(&$value) {
            $all.insert($name, $value);
        }
    };
}
use published;

/// The name of a field with its unit.
fn name_of<T: Published>(field: &str, _: &T) -> String {
    format!("{field}{}", T::UNIT)
}

/// True for a value that is left out where a field is published only if it is given.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(all) => all.is_empty(),
        Value::Object(all) => all.is_empty(),
        _ => false,
    }
}

fn merge(all: &mut Map<String, Value>, more: Value) {
    if let Value::Object(more) = more {
        all.extend(more);
    }
}

macro_rules! as_they_are {
    ($($type:ty)+) => {$(
        impl Published for $type {
            fn published(&self, _: &Lab) -> Value {
                json!(self)
            }
        }
    )+};
}
as_they_are! { bool i8 u8 u16 u32 u64 usize f64 String }

macro_rules! as_texts {
    ($($type:ty)+) => {$(
        impl Published for $type {
            fn published(&self, _: &Lab) -> Value {
                text(self).into()
            }
        }
    )+};
}
as_texts! { AtmAddress MacAddr IpAddr Ipv4Addr SocketAddr IpNet Ip6Net Qos QosEntry TrafficParams Vc Version }

macro_rules! as_parameters {
    ($($type:ty)+) => {$(
        impl Published for $type {
            fn published(&self, _: &Lab) -> Value {
                map_of(self).into()
            }
        }
    )+};
}
as_parameters! { aerostat_proto::lane::Quotas }

macro_rules! as_words {
    ($($type:ty = $words:ident;)+) => {$(
        impl Published for $type {
            fn published(&self, _: &Lab) -> Value {
                file::$words::word(self).into()
            }
        }
    )+};
}
as_words! {
    Expect = ExpectText;
    Criterion = CriterionText;
    Per = PerText;
    Order = CpuService;
    Sublayer = SublayerText;
    Answer = Listen;
    Profile = AtpProfile;
}

impl<T: Published> Published for Option<T> {
    const UNIT: &'static str = T::UNIT;
    fn published(&self, lab: &Lab) -> Value {
        self.as_ref().map_or(Value::Null, |own| own.published(lab))
    }
}

impl<T: Published> Published for Vec<T> {
    fn published(&self, lab: &Lab) -> Value {
        self.iter().map(|own| own.published(lab)).collect()
    }
}

impl<T: Published> Published for Box<T> {
    fn published(&self, lab: &Lab) -> Value {
        (**self).published(lab)
    }
}

impl Published for Duration {
    const UNIT: &'static str = "_s";
    fn published(&self, _: &Lab) -> Value {
        seconds(*self).into()
    }
}

impl Published for Instant {
    const UNIT: &'static str = "_s";
    fn published(&self, _: &Lab) -> Value {
        seconds(self.since(Self::ZERO)).into()
    }
}

/// Not rounded: 353207.547… for an OC-3c.
impl Published for CellRate {
    const UNIT: &'static str = "_cps";
    fn published(&self, _: &Lab) -> Value {
        (self.numerator() as f64 / self.denominator() as f64).into()
    }
}

impl Published for NodeId {
    fn published(&self, lab: &Lab) -> Value {
        lab.node(*self).name.as_str().into()
    }
}

impl Published for LinkId {
    fn published(&self, lab: &Lab) -> Value {
        lab.link(*self).name.as_str().into()
    }
}

impl Published for ElanId {
    fn published(&self, lab: &Lab) -> Value {
        lab.elan(*self).name.as_str().into()
    }
}

/// `true`, `false` or `all`, as in a lab file.
impl Published for Policing {
    fn published(&self, _: &Lab) -> Value {
        match self {
            Self::Off => false.into(),
            Self::Guaranteed => true.into(),
            Self::All => "all".into(),
        }
    }
}

impl Published for Framing {
    fn published(&self, _: &Lab) -> Value {
        json!({ "rate_bps": self.bits_per_second(), "cells": self.cells() })
    }
}

/// Nothing if nothing is given.
impl Published for Queues {
    fn published(&self, _: &Lab) -> Value {
        let Self {
            params,
            scheduler,
            calls,
        } = self;
        if *self == Self::default() {
            return Value::Null;
        }
        let mut all = map_of(params);
        all.insert("scheduler".into(), scheduler.map(Discipline::name).into());
        let calls = calls.iter();
        let calls = calls.map(|(category, queue)| (text(category), map_of(&queue).into()));
        let calls = named(calls);
        if !calls.is_empty() {
            all.insert("calls".into(), calls.into());
        }
        all.into()
    }
}

published! { own, lab;
    Occupancy { every, from, links }
    Limits { port = map_of(port), mps = map_of(mps), nhrp = map_of(nhrp), given; hidden }
    PathConfig { vpi; hidden, pcr, cdvt }
    RateQueue { name; hidden, pcr, cdvt }
    Link {
        name; hidden, ends = ends.map(|end| &lab.node(end.node).name), user; hidden,
        lines = { let _ = lines; crate::lines::settings(own) }; merged, police, cdvt,
        queues; given, tunnels = tunnels_of(tunnels, *call_vpi, lab); given, call_vpi; hidden,
        framing as "ethernet"; given
    }
    Pvc {
        ends = ends.map(|(node, vc)| format!("{}:{vc}", lab.node(node).name)),
        hops as "switches" = hops.iter().map(|hop| &lab.node(hop.switch).name).collect::<Vec<_>>(),
        qos, path, police, shape; given, rate_queue; given,
        queue = (*queue != ConnectionQueue::DEFAULT).then(|| map_of(queue)); given, tunnel; given, mux, peer,
        line = line.map(|line| &lab.elan(line).name); given
    } + {
        "frame_discard": qos.tx.frame_discard,
        "conformance": [qos.tx, qos.rx].map(|traffic| traffic.conformance().map(text)),
    }
}

/// Shaped paths by VPI.
fn paths_of(paths: &[PathConfig], lab: &Lab) -> Map<String, Value> {
    named(
        paths
            .iter()
            .map(|path| (path.vpi.to_string(), path.published(lab))),
    )
}

/// The shaped paths of a link, one of which may have the calls.
fn tunnels_of(paths: &[PathConfig], call_vpi: u16, lab: &Lab) -> Map<String, Value> {
    let mut all = paths_of(paths, lab);
    if let Some(path) = all.get_mut(&call_vpi.to_string()) {
        path["calls"] = true.into();
    }
    all
}

/// The parameters of a lab, by section of the lab file, for a run that was to end at `until`.
#[must_use]
pub fn settings(lab: &Lab, until: Instant) -> Value {
    let Lab {
        // Both stand beside the settings, or change nothing.
        name: _,
        description: _,
        seed,
        until: _,
        // Those that are there.
        nodes: _,
        links: _,
        elans: _,
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
        // The addresses that follow from these stand with their nodes.
        numbers: _,
        retired: _,
    } = lab;
    let flows = traffic.iter().enumerate();
    json!({
        "seed": seed,
        "until_s": until.published(lab),
        "nodes": named(lab.nodes().map(|(id, node)| (node.name.clone(), nodes::of(lab, id, node)))),
        "links": named(lab.links().map(|(_, link)| (link.name.clone(), link.published(lab)))),
        "subnets": named(lab.elans().map(|(_, elan)| (elan.name.clone(), elan.published(lab)))),
        "pvcs": pvcs.published(lab),
        "traffic": named(flows.map(|(index, flow)| (flow.name.clone(), traffic::of_flow(lab, index, flow)))),
        "faults": faults.published(lab),
        "timers": timers::of(timers),
        "limits": limits.published(lab),
        "capture": capture.published(lab),
        "occupancy": occupancy.published(lab),
        "names": named(given.iter().map(|(name, address)| (name.clone(), address.published(lab)))),
        "sockets": { "group": sockets_group },
    })
}

fn named(entries: impl Iterator<Item = (String, Value)>) -> Map<String, Value> {
    entries.collect()
}

fn text(value: impl Display) -> String {
    value.to_string()
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

pub(crate) fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}
