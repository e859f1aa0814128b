//! The switch behind links in memory: its own thread, its own time, ports at OC-3.

use super::address;
use super::host::Clock;
use super::line::{self, Ports};
use aerostat_node::atm::CellRate;
use aerostat_node::switch::{Input, PortConfig, PortKind, PortNo, StaticRoutes, Switch};
use aerostat_proto::interface::Params;
use aerostat_proto::machine::Machine as _;
use aerostat_proto::uni::{Side, Version};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Switches until the hosts are through; gives the calls and connections that are left.
pub(super) fn run(ports: Ports, clock: Clock, over: &AtomicBool) -> usize {
    let mut switch = Switch::new([7; 16], StaticRoutes::new());
    for (n, name) in [(1, "caller"), (2, "called")] {
        let params = Params::new(Side::Network, Version::Uni31);
        let port = switch.add_port(PortConfig::new(name, PortKind::Host, params, CellRate::OC3));
        switch.register(port, address(n));
    }
    let local = switch.fabric().connections().count();
    switch
        .handle_input(Input::Start, clock.now())
        .expect("ports that exist");
    let mut came = Vec::new();
    loop {
        let now = clock.now();
        if switch.poll_timeout().is_some_and(|at| at <= now) {
            switch.handle_timeout(now);
        }
        for (port, run) in came.drain(..) {
            switch
                .handle_input(Input::Cells(PortNo(port), run), clock.now())
                .expect("ports that exist");
        }
        // What it says is for the story of a run; departures are looked for below.
        while switch.poll_output().is_some() {}
        let mut next = switch.poll_timeout();
        for (port, out) in ports.out.iter().enumerate() {
            let Some(output) = switch.fabric_mut().output_mut(port as u16) else {
                continue;
            };
            while let Some(departure) = output.pop(clock.now(), u16::MAX) {
                let _ = out.send(departure.run);
            }
            next = [next, output.next_departure()].into_iter().flatten().min();
        }
        let now = clock.now();
        let rest = next.map_or(Duration::from_secs(1), |at| at.since(now));
        if !line::from_hosts(&ports.back, rest, &mut came) {
            break;
        }
    }
    debug_assert!(over.load(Ordering::Relaxed), "the hosts go last");
    let connections = switch.fabric().connections().count();
    switch.calls().count() + connections.saturating_sub(local)
}
