//! Invariants of every network, whatever happens to it.

use super::bench::Bench;
use aerostat_node::atm::fabric::PortVc;
use aerostat_node::ip::meter::{PacketKey, Path, Side};
use aerostat_node::signalling::Phase;
use aerostat_node::switch::Switch;
use aerostat_sim::{LinkEnd, LinkId, NodeId};
use aerostat_wire::Vc;
use std::collections::{BTreeMap, BTreeSet};

/// Numbered datagrams arrive as often as they were sent (once, except for a sender that restarted and counts from 0
/// again). They arrive in order unless they left or arrived by different paths: a shortcut can end at a router.
pub fn order(bench: &Bench) -> Result<(), String> {
    // By flow: last number sent; how each number left; copies of each on the way; highest number received on each path.
    let mut sent: BTreeMap<usize, u64> = BTreeMap::new();
    let mut copies_of: BTreeMap<(usize, u64), u32> = BTreeMap::new();
    let mut left_by: BTreeMap<(usize, u64), Path> = BTreeMap::new();
    let mut highest: BTreeMap<(usize, Option<Path>, Path), u64> = BTreeMap::new();
    // Copies on the way when their sender restarted: they may still arrive, and look like those sent after the restart.
    let mut former: BTreeMap<(usize, u64), u32> = BTreeMap::new();
    for sample in &bench.log.samples {
        let PacketKey::Stamped { sequence } = sample.key else {
            continue;
        };
        let flow = sample.flow.0;
        let name = &bench.lab.traffic[flow].name;
        let copies = copies_of.entry((flow, sequence)).or_default();
        if sample.side == Side::Sent {
            let begun_anew = sent
                .insert(flow, sequence)
                .is_some_and(|last| last >= sequence);
            *copies += 1;
            left_by.insert((flow, sequence), sample.path);
            if begun_anew {
                highest.retain(|(of, ..), _| *of != flow);
                let left = copies_of.range((flow, 0)..=(flow, u64::MAX));
                let left = left.filter(|(_, left)| **left > 0);
                former.extend(left.map(|(key, left)| (*key, *left)));
                // This datagram was sent after the restart.
                if let Some(one) = former.get_mut(&(flow, sequence)) {
                    *one -= 1;
                }
            }
            continue;
        }
        let Some(rest) = copies.checked_sub(1) else {
            return Err(format!("{}: {name} {sequence} arrived twice", sample.at));
        };
        *copies = rest;
        if let Some(left) = former.get_mut(&(flow, sequence)).filter(|left| **left > 0) {
            *left -= 1;
            continue;
        }
        // The datagram was sent before its sender restarted and counted from 0 again.
        if sent.get(&flow).is_some_and(|last| sequence > *last) {
            continue;
        }
        let way = (flow, left_by.get(&(flow, sequence)).copied(), sample.path);
        let top = highest.entry(way).or_insert(sequence);
        if sequence < *top {
            let path = sample.path.name();
            let what = format!("{name} {sequence} arrived after {top}, both {path}");
            return Err(format!("{}: {what}", sample.at));
        }
        *top = sequence;
    }
    Ok(())
}

/// No datagram visits a router again and again. Two visits are possible: a frame over the BUS comes back to its sender,
/// which ignores it.
pub fn loops(bench: &Bench) -> Result<(), String> {
    let limit = 2 * (1 + bench.restarts());
    match bench.log.visits.iter().find(|(_, visits)| **visits > limit) {
        Some(((node, program, number), visits)) => Err(format!(
            "datagram {number} of program {program} came to {} {visits} times",
            bench.lab.nodes[*node].name
        )),
        None => Ok(()),
    }
}

/// Labels in use at a link end, with caller and called party if both ends must agree on them.
type Labels = BTreeMap<Vc, String>;

fn station_labels(bench: &Bench, id: NodeId) -> Result<Labels, String> {
    let station = bench.station(id).expect("a station");
    let name = &bench.lab.nodes[id.0].name;
    let mut labels = Labels::new();
    for call in station.host().signalling().calls() {
        let (Some(vc), Phase::Connected) = (call.vc, call.phase) else {
            return Err(format!(
                "{name}: a call to {} is {:?}",
                call.called, call.phase
            ));
        };
        if call.owner.is_none() {
            return Err(format!("{name}: {vc} has no owner"));
        }
        let ends = ends_text(call.calling, call.called, call.multipoint);
        if labels.insert(vc, ends).is_some() {
            return Err(format!("{name}: two calls on {vc}"));
        }
    }
    let open: BTreeSet<Vc> = station.nic().vcs().map(|view| view.vc).collect();
    let mut wanted: BTreeSet<Vc> = labels.keys().copied().collect();
    wanted.extend([Vc::SIGNALLING, Vc::ILMI]);
    if open != wanted {
        return Err(format!(
            "{name}: the adapter has {open:?}, calls have {wanted:?}"
        ));
    }
    Ok(labels)
}

fn ends_text(
    calling: Option<aerostat_wire::AtmAddress>,
    called: aerostat_wire::AtmAddress,
    multipoint: bool,
) -> String {
    let calling = calling.map_or("?".into(), |calling| calling.to_string());
    if multipoint {
        calling
    } else {
        format!("{calling} -> {called}")
    }
}

/// Labels of a switch by port; the error tells where its calls, legs and connections disagree.
fn switch_labels(name: &str, switch: &Switch) -> Result<BTreeMap<u16, Labels>, String> {
    let mut ports: BTreeMap<u16, Labels> = BTreeMap::new();
    // Connections required by the calls: source and destinations.
    let mut wanted: BTreeMap<PortVc, BTreeSet<PortVc>> = BTreeMap::new();
    let mut back: BTreeMap<PortVc, PortVc> = BTreeMap::new();
    for call in switch.calls() {
        let half = || format!("{name}: half a call to {}: {call:?}", call.called);
        let ends = ends_text(call.calling, call.called, call.multipoint);
        let mut take = |leg: &aerostat_node::switch::LegInfo| {
            let at = PortVc::new(leg.port.0, leg.vc.ok_or_else(half)?);
            let labels = ports.entry(leg.port.0).or_default();
            match labels.insert(at.vc, ends.clone()) {
                None => Ok(at),
                Some(other) => Err(format!("{name}: {at:?} is of two calls: {ends}, {other}")),
            }
        };
        let root = take(&call.root)?;
        if !call.accepted || call.branches.is_empty() {
            return Err(half());
        }
        for branch in &call.branches {
            let to = take(branch)?;
            if !branch.connected {
                return Err(half());
            }
            wanted.entry(root).or_default().insert(to);
            if !call.multipoint {
                back.insert(to, root);
            }
        }
    }
    for view in switch.fabric().connections() {
        if view.local {
            if ![Vc::SIGNALLING, Vc::ILMI].contains(&view.from.vc) {
                return Err(format!("{name}: {:?} is local", view.from));
            }
            continue;
        }
        let to: BTreeSet<PortVc> = view.to.iter().copied().collect();
        let forth = wanted.remove(&view.from);
        let expected = forth.or_else(|| back.remove(&view.from).map(|root| BTreeSet::from([root])));
        if expected.as_ref() != Some(&to) {
            return Err(format!(
                "{name}: {:?} is connected to {to:?}, not {expected:?}",
                view.from
            ));
        }
    }
    if let Some((from, to)) = wanted.first_key_value() {
        return Err(format!(
            "{name}: a call from {from:?} to {to:?} has no connection"
        ));
    }
    if let Some((from, to)) = back.first_key_value() {
        return Err(format!(
            "{name}: a call from {from:?} back to {to:?} has no connection"
        ));
    }
    for port in switch.port_infos() {
        let known = ports.get(&port.port.0).map_or(0, BTreeMap::len);
        if (port.calls, port.labels) != (known, known) {
            let (calls, labels) = (port.calls, port.labels);
            return Err(format!(
                "{name} port {}: {calls} half-calls, {labels} labels, {known} legs of calls",
                port.port
            ));
        }
    }
    Ok(ports)
}

/// Both ends of every link have the same calls, and every connection belongs to a call.
pub fn agreement(bench: &Bench) -> Result<(), String> {
    let mut ends: BTreeMap<LinkEnd, Labels> = BTreeMap::new();
    for (id, switch) in bench.switches() {
        for (port, labels) in switch_labels(&bench.lab.nodes[id.0].name, switch)? {
            ends.insert(LinkEnd { node: id, port }, labels);
        }
    }
    for (id, _) in bench.stations() {
        ends.insert(LinkEnd { node: id, port: 0 }, station_labels(bench, id)?);
    }
    for link in (0..bench.lab.links.len()).map(LinkId) {
        let [one, other] = bench
            .world
            .ends(link)
            .map(|end| ends.remove(&end).unwrap_or_default());
        if one != other {
            let only = |a: &Labels, b: &Labels| {
                let only: Vec<_> = a.iter().filter(|(vc, e)| b.get(vc) != Some(e)).collect();
                format!("{only:?}")
            };
            let name = bench.world.plant().link_name(link);
            let (here, there) = (only(&one, &other), only(&other, &one));
            return Err(format!(
                "{name}: only one end: {here}, only the other: {there}"
            ));
        }
    }
    Ok(())
}

/// Nothing is left of any call, in running hosts and in switches.
pub fn silence(bench: &Bench) -> Result<(), String> {
    for (id, station) in bench.stations() {
        let open = station.host().open_calls();
        if open > 0 {
            return Err(format!("{}: {open} calls", bench.lab.nodes[id.0].name));
        }
        let queued = station.nic().output().queued_total();
        if queued > 0 {
            return Err(format!(
                "{}: {queued} cells wait",
                bench.lab.nodes[id.0].name
            ));
        }
    }
    for (id, switch) in bench.switches() {
        let name = &bench.lab.nodes[id.0].name;
        let calls = switch.calls().count();
        let connections = switch
            .fabric()
            .connections()
            .filter(|view| !view.local)
            .count();
        if (calls, connections) != (0, 0) {
            return Err(format!("{name}: {calls} calls, {connections} connections"));
        }
        for port in switch.port_infos() {
            let number = port.port.0;
            let queued = switch
                .fabric()
                .output(number)
                .map_or(0, |output| output.queued_total());
            let state = (port.calls, port.labels, port.reserved, queued);
            if state != (0, 0, (0, 0), 0) {
                return Err(format!(
                    "{name} port {number}: calls, labels, reserved, queued: {state:?}"
                ));
            }
        }
    }
    agreement(bench)
}

/// No seat has refused what its daemon wanted: the daemons are our own.
pub fn seats(bench: &Bench) -> Result<(), String> {
    let refusals = aerostat_lab::report::refusals(&bench.lab, |id, what| match bench.switch(id) {
        Some(switch) => switch.daemons_refused(what),
        None => (bench.station(id)).map_or(0, |station| station.host().daemons_refused(what)),
    });
    match refusals.is_empty() {
        true => Ok(()),
        false => Err(refusals.join("; ")),
    }
}

/// Counts of cells at one moment, of all objects that have not been replaced since.
pub struct Cells {
    /// By switch and port: in, dropped on entry, offered to the output, of these by the control plane.
    ports: BTreeMap<(usize, u16), [u64; 4]>,
    /// By switch and label: in, sent on, policed, copies.
    connections: BTreeMap<(usize, PortVc), [u64; 4]>,
}

/// Every cell is accounted for: at each port in = out + dropped + queued; on each link the cells sent are those that
/// the far end received plus those that the link lost.
pub fn cells(bench: &Bench) -> Result<Cells, String> {
    let mut now = Cells {
        ports: BTreeMap::new(),
        connections: BTreeMap::new(),
    };
    for (id, switch) in bench.switches() {
        let name = &bench.lab.nodes[id.0].name;
        for port in 0..switch.fabric().ports() {
            let output = switch.fabric().output(port).expect("a port");
            let totals = output.totals();
            let rest = totals.cells_out + totals.dropped.total() + u64::from(output.queued_total());
            if totals.cells_in != rest {
                return Err(format!(
                    "{name} port {port}: {totals:?}, out + dropped + queued = {rest}"
                ));
            }
            let own = output
                .queue_of(Vc::SIGNALLING)
                .and_then(|queue| output.counters(queue));
            let own = own.map_or(0, |own| own.cells_in);
            let input = switch.fabric().input_counters(port).expect("a port");
            let counts = [input.cells_in, input.dropped.total(), totals.cells_in, own];
            now.ports.insert((id.0, port), counts);
        }
        for view in switch.fabric().connections() {
            let copies = if view.local { 0 } else { view.to.len() as u64 };
            let counters = view.counters;
            let counts = [
                counters.cells_in,
                counters.cells_out,
                counters.dropped.total(),
                copies,
            ];
            now.connections.insert((id.0, view.from), counts);
        }
    }
    for (id, station) in bench.stations() {
        let output = station.nic().output();
        let totals = output.totals();
        let rest = totals.cells_out + totals.dropped.total() + u64::from(output.queued_total());
        if totals.cells_in != rest {
            let name = &bench.lab.nodes[id.0].name;
            return Err(format!(
                "{name}: {totals:?}, out + dropped + queued = {rest}"
            ));
        }
    }
    for link in (0..bench.lab.links.len()).map(LinkId) {
        for counters in bench.world.link_counters(link) {
            let gone = counters.lost + counters.discarded + counters.down;
            let name = bench.world.plant().link_name(link);
            if counters.delivered + gone > counters.sent {
                return Err(format!("{name} made cells: {counters:?}"));
            }
        }
    }
    Ok(now)
}

/// Between two moments with the same connections, the cells that entered each switch and were not dropped went to its
/// outputs, once for each leaf.
pub fn conserved(before: &Cells, after: &Cells) -> Result<(), String> {
    if !before.connections.keys().eq(after.connections.keys()) {
        return Err("connections have come or gone".into());
    }
    let mut sums: BTreeMap<usize, [u64; 5]> = BTreeMap::new();
    for (at, after) in &after.ports {
        let before = before.ports[at];
        let [input, refused, offered, own] = std::array::from_fn(|i| after[i] - before[i]);
        let sum = sums.entry(at.0).or_default();
        sum[0] += input - refused;
        sum[1] += offered - own;
    }
    for (at, after) in &after.connections {
        let before = before.connections[at];
        let sum = sums.entry(at.0).or_default();
        let dropped = after[2] - before[2];
        sum[2] += after[0] - before[0] - dropped;
        sum[3] += (after[1] - before[1]) * after[3];
        sum[4] += after[1] - before[1];
    }
    for (switch, [accepted, offered, came, copied, left]) in sums {
        if (accepted, offered, came) != (came, copied, left) {
            return Err(format!(
                "switch {switch}: {accepted} cells accepted, {came} not dropped on connections, {left} of these \
                 sent on, {copied} copies due, {offered} offered to outputs"
            ));
        }
    }
    Ok(())
}

/// Cells are conserved while `time` passes. Calls come and go, so this tries until there is a period without changes.
#[track_caller]
pub fn no_cell_vanishes(bench: &mut Bench, time: aerostat_proto::Duration) {
    let mut last = String::new();
    for _ in 0..10 {
        let before = cells(bench).unwrap_or_else(|why| bench.fail(&why));
        bench.run(time);
        let after = cells(bench).unwrap_or_else(|why| bench.fail(&why));
        match conserved(&before, &after) {
            Ok(()) => return,
            Err(why) => last = why,
        }
    }
    bench.fail(&last);
}
