//! The results of cells: connections end to end, losses, queues, policers and links.

use super::columns::OCCUPANCY;
use crate::cmd::run::rounded;
use crate::output::Rows;
use aerostat_lab::Lab;
use aerostat_lab::circuits::{Circuit, Circuits, LinkWay, PolicerState, Queue};
use aerostat_lab::model::NodeId;
use aerostat_lab::occupancy::{Port, Sample};
use aerostat_node::atm::{CellCounters, DropReason, UpcReason};
use serde_json::{Value, json};

/// One object per sample of a port's buffers.
pub(super) fn occupancy(lab: &Lab, samples: &[Sample]) -> Vec<Value> {
    let row = |Sample { at, port, cells }: &Sample| {
        json!({
            "time_s": at.as_nanos() as f64 / 1e9,
            "node": name(lab, port.node),
            "link": lab.link(port.link).name,
            "guaranteed": cells[0],
            "best_effort": cells[1],
        })
    };
    samples.iter().map(row).collect()
}

/// A row for each port and buffer that ever held a cell, for people; `None` if there are no samples.
pub(super) fn occupancy_rows(lab: &Lab, samples: &[Sample]) -> Option<Rows> {
    const BUFFERS: [&str; 2] = ["guaranteed", "best effort"];
    let mut rows = Rows::new(&[
        "node",
        "link",
        "buffer",
        "samples",
        "mean_cells",
        "most_cells",
    ]);
    rows.title = OCCUPANCY.into();
    let mut ports: Vec<Port> = Vec::new();
    for sample in samples {
        if !ports.contains(&sample.port) {
            ports.push(sample.port);
        }
    }
    for port in ports {
        for (pool, buffer) in BUFFERS.iter().enumerate() {
            let levels = samples.iter().filter(|sample| sample.port == port);
            let (count, sum, most) =
                levels.fold((0_u64, 0_u64, 0), |(count, sum, most), sample| {
                    let cells = sample.cells[pool];
                    (count + 1, sum + u64::from(cells), cells.max(most))
                });
            let mean = sum as f64 / count.max(1) as f64;
            rows.push(vec![
                name(lab, port.node).into(),
                lab.link(port.link).name.clone().into(),
                (*buffer).into(),
                count.into(),
                rounded(mean, 3),
                most.into(),
            ]);
        }
    }
    (!samples.is_empty()).then_some(rows)
}

/// One object per direction of a connection and receiver.
pub(super) fn vcs(lab: &Lab, circuits: &Circuits) -> Vec<Value> {
    let all = circuits.circuits.iter();
    all.map(|circuit| {
        let from = name(lab, circuit.from.node);
        json!({
            "from": from,
            "from_vc": circuit.from.vc.to_string(),
            "to": circuit.to.map(|to| name(lab, to.node)),
            "to_vc": circuit.to.map(|to| to.vc.to_string()),
            "user": circuit.user.as_ref().map_or(Some("signalling"), |user| user.user.as_deref()),
            "multipoint": circuit.user.as_ref().is_some_and(|user| user.multipoint),
            "class": circuit.class,
            "switches": circuit.switches,
            "cells_offered": circuit.offered,
            "cells_refused": circuit.refused,
            "cells_waiting": circuit.waiting,
            "cells_sent": circuit.sent,
            "cells_delivered": circuit.delivered,
            "cells_lost": circuit.lost_cells(),
            "cells_under_way": circuit.under_way,
            "clr": circuit.loss_ratio(),
            "pdus_delivered": circuit.sdus,
            "pdus_bad": circuit.bad_pdus,
            "cells_wasted": circuit.wasted,
            "ctd_us": ctd(circuit),
            "cdv_us": cdv(circuit),
        })
    })
    .collect()
}

/// One object per place where a connection lost cells.
pub(super) fn losses(lab: &Lab, circuits: &Circuits) -> Vec<Value> {
    let all = circuits.circuits.iter();
    all.flat_map(|circuit| {
        circuit.lost.iter().map(|loss| {
            json!({
                "from": name(lab, circuit.from.node),
                "from_vc": circuit.from.vc.to_string(),
                "to": circuit.to.map(|to| name(lab, to.node)),
                "to_vc": circuit.to.map(|to| to.vc.to_string()),
                "node": name(lab, loss.node),
                "port": loss.port,
                "reason": loss.reason.map_or("link", DropReason::text),
                "cells": loss.cells,
            })
        })
    })
    .collect()
}

fn name(lab: &Lab, node: NodeId) -> &str {
    &lab.node(node).name
}

fn ctd(circuit: &Circuit) -> Value {
    let summary = circuit.transfer.summary();
    if summary.count == 0 {
        return Value::Null;
    }
    json!({
        "cells": summary.count,
        "min": summary.min_us,
        "mean": summary.mean_us,
        "p50": summary.p50_us,
        "p99": summary.p99_us,
        "p99_9": summary.p999_us,
        "max": summary.max_us,
        "standard_deviation": summary.std_dev_us,
    })
}

/// Cell delay variation: the delay in excess of the fastest cell.
fn cdv(circuit: &Circuit) -> Value {
    let summary = circuit.transfer.summary();
    if summary.count == 0 {
        return Value::Null;
    }
    let above = |us: f64| us - summary.min_us;
    json!({
        "mean": above(summary.mean_us),
        "p50": above(summary.p50_us),
        "p99": above(summary.p99_us),
        "p99_9": above(summary.p999_us),
        "max": above(summary.max_us),
    })
}

/// Share of lost cells among the cells whose fate is known; `None` without cells.
fn ratio(counters: &CellCounters) -> Option<f64> {
    let lost = counters.dropped.total();
    let known = counters.cells_out + lost;
    (known > 0).then(|| lost as f64 / known as f64)
}

/// One object per queue of an output port.
pub(super) fn queues(lab: &Lab, circuits: &Circuits) -> Vec<Value> {
    circuits.queues.iter().map(|one| queue(lab, one)).collect()
}

fn queue(lab: &Lab, queue: &Queue) -> Value {
    let counters = &queue.counters;
    let dropped = |reason| counters.dropped.of(reason);
    json!({
        "node": name(lab, queue.place.node),
        "port": queue.place.port,
        "vc": queue.place.vc.to_string(),
        "class": queue.class,
        "cells_in": counters.cells_in,
        "cells_out": counters.cells_out,
        "pdus_out": counters.pdus_out,
        "cells_waiting": queue.waiting,
        "cells_peak": queue.peak,
        "cells_limit": queue.limit,
        "dropped_overflow": dropped(DropReason::Overflow),
        "dropped_early_discard": dropped(DropReason::EarlyDiscard),
        "dropped_partial_discard": dropped(DropReason::PartialDiscard),
        "dropped_low_priority": dropped(DropReason::LowPriority),
        "dropped_link_down": dropped(DropReason::LinkDown),
        "clr": ratio(counters),
    })
}

/// One object per policer.
pub(super) fn policers(lab: &Lab, circuits: &Circuits) -> Vec<Value> {
    let all = circuits.policers.iter();
    all.map(|policer| of_policer(lab, policer)).collect()
}

fn of_policer(lab: &Lab, policer: &PolicerState) -> Value {
    let PolicerState {
        place,
        traffic,
        counters,
        upc,
    } = policer;
    json!({
        "node": name(lab, place.node),
        "port": place.port,
        "vc": place.vc.to_string(),
        "contract": traffic.to_string(),
        "cells_in": counters.cells_in,
        "cells_passed": counters.cells_in - counters.dropped.of(DropReason::Policed),
        "cells_tagged": counters.tagged,
        "cells_discarded": counters.dropped.of(DropReason::Policed),
        "conformance": traffic.conformance().map(|name| name.to_string()),
        "over_peak": upc.of(UpcReason::Peak),
        "over_peak_clp0": upc.of(UpcReason::PeakClp0),
        "over_sustained": upc.of(UpcReason::Sustained),
    })
}

/// One object per direction of a link.
pub(super) fn links(lab: &Lab, circuits: &Circuits) -> Vec<Value> {
    circuits.links.iter().map(|one| link(lab, one)).collect()
}

fn link(lab: &Lab, way: &LinkWay) -> Value {
    let link = lab.link(way.link);
    let [from, to] = way.ends.map(|end| name(lab, end.node));
    let counters = &way.counters;
    json!({
        "link": link.name,
        "from": from,
        "to": to,
        "rate_cps": link.rate.numerator() as f64 / link.rate.denominator() as f64,
        "delay_us": link.delay.as_nanos() as f64 / 1e3,
        "cells_sent": counters.sent,
        "cells_delivered": counters.delivered,
        "cells_lost": counters.lost,
        "cells_discarded": counters.discarded,
        "cells_down": counters.down,
        "cells_under_way": way.on_the_way,
        "cells_damaged": counters.damaged,
        "headers_corrected": counters.corrected,
        "frames": link.framing.map(|_| counters.frames),
        "utilisation": way.utilisation,
    })
}
