//! Cells are conserved at every port, on every link and in every switch.

use aerostat_lab::model::{FaultKind, Lab};
use aerostat_node::atm::CellCounters;
use aerostat_sim::{LabNode, LinkId, NodeId, World};

/// Compares the counters of ports, links, switches and adapters with each other.
pub(super) fn check(lab: &Lab, world: &World<LabNode>) -> Result<(), String> {
    for id in (0..lab.nodes.len()).map(NodeId) {
        if let Some(node) = world.node(id) {
            of_node(node).map_err(|why| format!("{}: {why}", world.name(id)))?;
        }
    }
    for link in (0..lab.links.len()).map(LinkId) {
        let name = world.plant().link_name(link);
        of_link(lab, world, link).map_err(|why| format!("link {name}: {why}"))?;
    }
    Ok(())
}

/// In = out + dropped + queued at each port; the cells received by a switch are those given to its ports.
fn of_node(node: &LabNode) -> Result<(), String> {
    if let Some(station) = node.as_station() {
        let output = station.nic().output();
        return of_queue(output.totals(), output.queued_total().into());
    }
    let Some(switch) = node.as_switch() else {
        return Ok(());
    };
    let fabric = switch.fabric();
    let (mut came, mut dropped, mut offered) = (0, 0, 0);
    for port in 0..fabric.ports() {
        let output = fabric.output(port).expect("a port");
        let totals = output.totals();
        of_queue(totals, output.queued_total().into())
            .map_err(|why| format!("port {port}: {why}"))?;
        let input = fabric.input_counters(port).expect("a port");
        came += input.cells_in;
        dropped += input.dropped.total();
        offered += totals.cells_in;
    }
    let passage = fabric.passage();
    let given = came + passage.own + passage.copies;
    let taken = dropped + passage.local + offered;
    if given != taken {
        return Err(format!(
            "{came} cells came, {dropped} were dropped before a queue, {offered} offered to queues, {passage:?}: \
             {given} are not {taken}"
        ));
    }
    Ok(())
}

fn of_queue(totals: CellCounters, queued: u64) -> Result<(), String> {
    let rest = totals.cells_out + totals.dropped.total() + queued;
    if totals.cells_in == rest {
        return Ok(());
    }
    Err(format!("{totals:?}, out + dropped + queued = {rest}"))
}

/// Sent = delivered + lost + discarded + down + on the way. The cells sent by a port are those that entered its link,
/// and the cells delivered by the link are those received by the other port, unless a node has lost its counters with
/// its power.
fn of_link(lab: &Lab, world: &World<LabNode>, link: LinkId) -> Result<(), String> {
    let ways = world
        .link_counters(link)
        .into_iter()
        .zip(world.on_the_way(link));
    let ends = world.ends(link);
    for (way, (counters, cells)) in ways.enumerate() {
        let on_the_way: u64 = cells.values().sum();
        let rest =
            counters.delivered + counters.lost + counters.discarded + counters.down + on_the_way;
        if counters.sent != rest {
            return Err(format!("way {way}: {counters:?}, {on_the_way} on the way"));
        }
        let (from, to) = (ends[way], ends[1 - way]);
        let kept = |id: NodeId| {
            !lab.faults.iter().any(|fault| {
                let (FaultKind::Crash(node, None) | FaultKind::Restart(node, None)) = fault.what
                else {
                    return false;
                };
                node.0 == id.0
            })
        };
        if kept(from.node)
            && let Some(left) = sent(world.node(from.node), from.port)
            && left != counters.sent
        {
            return Err(format!("way {way}: the port has sent {left}, {counters:?}"));
        }
        if kept(to.node)
            && let Some(came) = received(world.node(to.node), to.port)
            && came != counters.delivered
        {
            return Err(format!(
                "way {way}: the port has received {came}, {counters:?}"
            ));
        }
    }
    Ok(())
}

fn sent(node: Option<&LabNode>, port: u16) -> Option<u64> {
    let node = node?;
    let output = match node.as_station() {
        Some(station) => station.nic().output(),
        None => node.as_switch()?.fabric().output(port)?,
    };
    Some(output.totals().cells_out)
}

fn received(node: Option<&LabNode>, port: u16) -> Option<u64> {
    let node = node?;
    match node.as_station() {
        Some(station) => Some(station.nic().counters.cells_in),
        None => Some(node.as_switch()?.fabric().input_counters(port)?.cells_in),
    }
}
