//! Lines whose rates change while the switch runs, as those of a modem do.
//!
//! New connections are admitted by the new rates. Those that are there keep their contracts: where these no longer fit,
//! their cells go on at the rate of the line, and the switch says so once.

use super::port::Reservation;
use super::{PortConfig, PortNo, RouteSelect, Switch};
use crate::atm::CellRate;
use aerostat_proto::Trace;
use aerostat_wire::Vc;

/// Limit of labels that a message names.
const NAMED: usize = 8;

impl<R: RouteSelect> Switch<R> {
    /// The line of a port has other rates: towards the other end, and from there.
    pub(super) fn set_rates(&mut self, number: PortNo, [rate, input]: [CellRate; 2]) {
        if let Some(output) = self.fabric.output_mut(number.0) {
            output.set_rate(rate);
        }
        self.fabric.set_input_rate(number.0, input);
        let Some(port) = self.port_mut(number) else {
            return;
        };
        let config = &mut port.config;
        (config.rate, config.admit) = (rate, PortConfig::admits(rate));
        config.set_input(input);
        let (admit, admit_in, held) = (config.admit, config.admit_in, port.reserved);
        let (name, link) = (port.config.name.clone(), port.config.link.clone());
        let towards: fn(Reservation) -> u64 = |reserved| reserved.tx;
        let from: fn(Reservation) -> u64 = |reserved| reserved.rx;
        for (way, most, of) in [("to", admit, towards), ("from", admit_in, from)] {
            if of(held) <= u64::from(most) {
                continue;
            }
            let mut named = self.guaranteed_at(number, of);
            let more = named.len().saturating_sub(NAMED);
            named.truncate(NAMED);
            if more > 0 {
                named.push(format!("{more} more"));
            }
            let text = format!(
                "contracts {way} {name} ({}) reserve {} cells/s, and link {link} can guarantee {most}: they go on at the \
                 rate of the line",
                named.join(", "),
                of(held),
            );
            let trace = Trace::milestone("switch.overbooked", text).with("port", number);
            self.trace(trace.with("direction", way).with("labels", named.join(" ")));
        }
    }

    /// Labels of connections, and shaped paths, at a port of which a direction has a guarantee, in order.
    fn guaranteed_at(&self, number: PortNo, of: fn(Reservation) -> u64) -> Vec<String> {
        let tunnels = self.port(number).map(|port| &port.tunnels);
        // What is in a shaped path is part of the rate of the path.
        let alone = |vc: &Vc| tunnels.is_none_or(|tunnels| !tunnels.contains_key(&vc.vpi));
        let calls = self.legs.iter().filter(|(key, _)| key.port == number);
        let calls = calls.filter_map(|(_, leg)| Some((leg.vc?, leg.reserved)));
        let permanent = self.permanent.iter().flat_map(super::Permanent::holdings);
        let permanent = permanent.filter(|((port, _), _)| *port == number);
        let permanent = permanent.map(|((_, vc), reserved)| (vc, reserved));
        let all = calls.chain(permanent);
        let all = all.filter(|(vc, one)| of(*one) > 0 && alone(vc));
        let mut labels: Vec<Vc> = all.map(|(vc, _)| vc).collect();
        labels.sort_unstable();
        let paths = tunnels.into_iter().flat_map(|tunnels| tunnels.keys());
        let paths = paths.map(|vpi| format!("path {vpi}"));
        paths.chain(labels.iter().map(Vc::to_string)).collect()
    }
}
