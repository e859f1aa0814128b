//! Links, with their ends and directions.

use super::stage::Building;
use super::{frames, queues};
use crate::field::Optional as _;
use crate::file::LinkOptions;
use crate::model::{Errors, LineParams, Link, LinkEnd, LinkId, NodeId, NodeKind, Port, Side, Way};
use aerostat_node::atm::Framing;
use aerostat_wire::AtmAddress;

/// A link inside the lab, as its section says; `user` is the number of the end with the user side.
pub(super) fn inside(
    name: String,
    (ends, user): ([LinkEnd; 2], usize),
    options: &LinkOptions,
) -> Link {
    let framing = frames::of(options);
    let (rate, delay) = (options.rate.get(), options.delay.get());
    let (loss, bits) = (options.loss.get(), options.bit_errors.get());
    let (blocks, block) = (options.block_errors.get(), options.block.get());
    let line = |way: Way| LineParams {
        rate: framing.map_or(*rate.get(way), Framing::full_rate),
        delay: *delay.get(way),
        errors: Errors {
            loss: *loss.get(way),
            bits: *bits.get(way),
            blocks: *blocks.get(way),
            block: *block.get(way),
        },
    };
    let mut lines = [line(Way::Up), line(Way::Down)];
    lines.rotate_left(user);
    Link {
        name,
        ends,
        user,
        lines,
        framing,
        police: options.police.plain(),
        cdvt: options.cdvt.plain(),
        queues: queues::of(options.queues.as_ref()),
        tunnels: queues::tunnels(options.tunnels.as_ref()),
        call_vpi: queues::call_vpi(options.tunnels.as_ref()),
    }
}

/// Adds a link; `a` has the user side if it is an end system at a switch, else the network side. `link` gets the ends,
/// and the number of that with the user side.
pub(super) fn connect(
    lab: &mut Building<'_>,
    a: NodeId,
    b: NodeId,
    link: impl FnOnce(([LinkEnd; 2], usize)) -> Link,
) -> LinkId {
    let id = LinkId(lab.links.len());
    let between_switches = matches!(lab.nodes[a.0].kind, NodeKind::Switch(_));
    let mut end = |node: NodeId, peer: NodeId, side: Side, station: Option<AtmAddress>| {
        let port = match &mut lab.nodes_mut()[node.0].kind {
            NodeKind::Switch(switch) => {
                switch.ports.push(Port {
                    link: id,
                    peer,
                    side,
                    station,
                });
                switch.ports.len() - 1
            }
            _ => 0,
        };
        let port = port as u16;
        LinkEnd { node, port }
    };
    let ends = if between_switches {
        [end(a, b, Side::Network, None), end(b, a, Side::User, None)]
    } else {
        [end(a, b, Side::User, None), end(b, a, Side::Network, None)]
    };
    let is_switch = |node: NodeId| matches!(lab.nodes[node.0].kind, NodeKind::Switch(_));
    let user = usize::from(is_switch(a) || !is_switch(b));
    lab.links_mut().push(link((ends, user)));
    id
}
