//! `inspect SWITCH queue`: queues, buffers and shaped paths. The rows are in
//! [`inspect::switch`](crate::inspect::switch).

use super::{PortNo, RouteSelect, Switch};
use crate::atm::{OutputPort, PathKey, PathView};
use crate::inspect::switch::reached;
use crate::inspect::{Table, switch as rows};

fn buffers<'a>(
    (port, name): (u16, &'a str),
    output: &'a OutputPort,
) -> impl Iterator<Item = rows::Buffer> + use<'a> {
    let both = ["guaranteed", "best effort"]
        .into_iter()
        .zip(output.buffers());
    both.map(move |(buffer, (waiting, limits))| rows::Buffer {
        port,
        name: name.to_owned(),
        scheduler: output.discipline().name().to_owned(),
        buffer: buffer.to_owned(),
        waiting,
        limit: limits.max,
        epd: limits.early,
        clp: limits.low_priority,
        efci: reached(limits.mark),
    })
}

impl<R: RouteSelect> Switch<R> {
    pub(super) fn queue_tables(&self) -> Vec<Table> {
        let ports = || {
            let numbers = 0..self.fabric().ports();
            numbers.filter_map(|port| {
                let own = self.port(PortNo(port)).filter(|own| !own.vacant)?;
                let name = own.config.name.as_str();
                Some(((port, name), self.fabric().output(port)?))
            })
        };
        let queues = ports()
            .flat_map(|(at, output)| output.views().map(move |view| rows::Queue::of(at, &view)));
        let buffers = ports().flat_map(|(at, output)| buffers(at, output));
        let tunnels = ports().flat_map(|((port, name), output)| {
            output
                .paths()
                .filter_map(move |view| self.tunnel((port, name), &view))
        });
        vec![Table::of(queues), Table::of(buffers), Table::of(tunnels)]
    }

    fn tunnel(&self, (port, name): (u16, &str), view: &PathView) -> Option<rows::Tunnel> {
        // The paths of a switch are those of its links.
        let PathKey::Vpi(vpi) = view.key else {
            return None;
        };
        let reserved = self
            .port(PortNo(port))
            .and_then(|port| port.tunnels.get(&vpi));
        let reserved = reserved.map_or(0, |(_, held)| held.tx);
        Some(rows::Tunnel::of((port, name), vpi, view, reserved))
    }
}
