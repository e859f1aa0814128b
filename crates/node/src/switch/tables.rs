//! Tables of `inspect` about a switch.

use super::{Permanent, PortNo, RouteSelect, StaticRoutes, Switch};
use crate::atm::fabric::ConnectionView;
use crate::inspect::{Table, Value, text};
use crate::interface::Interface;
use aerostat_wire::{AtmAddress, Vc};

impl Switch<StaticRoutes> {
    /// The tables of kind `what`; `None` if a switch has no such state.
    #[must_use]
    pub fn inspect(&self, what: &str) -> Option<Vec<Table>> {
        Some(match what {
            "vc" => vec![self.vc_table()],
            "call" => vec![
                self.call_table(),
                self.cause_table(),
                self.signalling_table(),
            ],
            "port" => vec![self.port_table()],
            "route" => vec![self.route_table()],
            "saal" => self.saal_tables(),
            "pvc" => vec![self.permanent_table(None)],
            "ilmi" => self.ilmi_tables(),
            _ => return None,
        })
    }

    fn saal_tables(&self) -> Vec<Table> {
        let (mut links, mut errors) = Interface::saal_tables();
        for port in &self.ports {
            let name = port.config.name.to_string();
            port.interface.saal_rows(&name, &mut links, &mut errors);
        }
        vec![links, errors]
    }

    fn vc_table(&self) -> Table {
        let columns = &[
            "in_port",
            "in_vc",
            "out",
            "traffic",
            "cells_in",
            "cells_out",
            "cells_dropped",
        ];
        let mut table = Table::new("connections", columns);
        for ConnectionView {
            from,
            to,
            local,
            traffic,
            counters,
            ..
        } in self.fabric().connections()
        {
            let out: Vec<_> = to
                .iter()
                .map(|leaf| format!("{}.{}", leaf.port, leaf.vc))
                .collect();
            table.row(vec![
                from.port.into(),
                text(from.vc),
                if local {
                    "control plane".into()
                } else {
                    out.join(" ").into()
                },
                text(traffic),
                counters.cells_in.into(),
                counters.cells_out.into(),
                counters.dropped.total().into(),
            ]);
        }
        table
    }

    fn route_table(&self) -> Table {
        let columns = &["prefix", "length_octets", "port", "order", "hops", "state"];
        let mut table = Table::new("routes", columns);
        let routes = self.routes();
        for (prefix, ways) in routes.hosts().chain(routes.prefixes()) {
            let leading = leading(prefix);
            let mut order = 0;
            let mut before = None;
            for way in ways {
                if before != Some(way.hops) {
                    order += 1;
                    before = Some(way.hops);
                }
                table.row(vec![
                    leading.clone().into(),
                    prefix.len().into(),
                    way.port.0.into(),
                    order.into(),
                    way.hops.map(Value::from).into(),
                    self.way_state(way, order).into(),
                ]);
            }
        }
        table
    }
}

impl<R: RouteSelect> Switch<R> {
    /// The permanent connections, or only the one with the end `only`.
    #[must_use]
    pub fn permanent_table(&self, only: Option<(PortNo, Vc)>) -> Table {
        let columns = &[
            "a",
            "b",
            "kind",
            "qos",
            "policed",
            "cells_a",
            "cells_b",
            "cells_dropped",
            "state",
        ];
        let mut table = Table::new("permanent", columns);
        for info in self.permanent() {
            let Permanent {
                ends,
                qos,
                path,
                police,
            } = info.connection;
            if only.is_some_and(|end| !ends.contains(&end)) {
                continue;
            }
            let [a, b] = ends.map(|(port, vc)| {
                let name = self.port(port).map_or("", |port| port.config.name.as_str());
                if path {
                    text(format_args!("{name}.{}", vc.vpi))
                } else {
                    text(format_args!("{name}.{vc}"))
                }
            });
            table.row(vec![
                a,
                b,
                if path { "path" } else { "channel" }.into(),
                text(qos),
                if police.contains(&true) { "yes" } else { "no" }.into(),
                info.cells[0].into(),
                info.cells[1].into(),
                (info.policed[0] + info.policed[1]).into(),
                self.permanent_state(ends).into(),
            ]);
        }
        table
    }

    /// `up`, or `down` with the links of this switch that are down.
    fn permanent_state(&self, ends: [(PortNo, Vc); 2]) -> String {
        let dead = ends.iter().filter_map(|(number, _)| {
            let alive = self.fabric().link_is_up(number.0);
            self.port(*number).filter(|_| !alive)
        });
        let mut links: Vec<&str> = dead.map(|port| port.config.link.as_str()).collect();
        links.dedup();
        if links.is_empty() {
            "up".to_owned()
        } else {
            format!("down: {}", links.join(", "))
        }
    }

    fn call_table(&self) -> Table {
        let columns = &[
            "call",
            "in_port",
            "in_vc",
            "out",
            "calling",
            "called",
            "blli",
            "bhli",
            "multipoint",
            "accepted",
        ];
        let mut table = Table::new("calls", columns);
        for call in self.calls() {
            let label = |vc: Option<Vc>| vc.map_or("-".into(), |vc| vc.to_string());
            let legs = call
                .branches
                .iter()
                .map(|leg| format!("{}.{}", leg.port, label(leg.vc)));
            let out: Vec<_> = legs.collect();
            table.row(vec![
                call.id.0.into(),
                call.root.port.0.into(),
                call.root.vc.map(text).into(),
                out.join(" ").into(),
                call.calling.map(text).into(),
                text(call.called),
                call.blli.map(|blli| text(format_args!("{blli:?}"))).into(),
                call.bhli.map(|bhli| text(format_args!("{bhli:?}"))).into(),
                if call.multipoint { "yes" } else { "no" }.into(),
                if call.accepted { "yes" } else { "no" }.into(),
            ]);
        }
        table
    }

    fn cause_table(&self) -> Table {
        let mut table = Table::new("causes", &["port", "name", "cause", "calls"]);
        for port in self.port_infos() {
            for (cause, calls) in &port.causes {
                table.row(vec![
                    port.port.0.into(),
                    port.name.clone().into(),
                    text(cause),
                    (*calls).into(),
                ]);
            }
        }
        table
    }

    /// A row for each counter of each port that is not zero.
    fn signalling_table(&self) -> Table {
        let columns = &["port", "name", "counter", "value"];
        let mut table = Table::new("signalling", columns);
        for port in self.port_infos() {
            for (counter, value) in port.signalling.rows().into_iter().filter(|(_, n)| *n > 0) {
                table.row(vec![
                    port.port.0.into(),
                    port.name.clone().into(),
                    counter.into(),
                    value.into(),
                ]);
            }
        }
        table
    }

    fn port_table(&self) -> Table {
        let columns = &[
            "port",
            "name",
            "kind",
            "signalling",
            "calls",
            "pending",
            "labels",
            "reserved_tx_cps",
            "reserved_rx_cps",
            "cells_in",
            "cells_out",
            "cells_dropped",
            "queued_cells",
        ];
        let mut table = Table::new("ports", columns);
        for port in self.port_infos() {
            let input = self
                .fabric()
                .input_counters(port.port.0)
                .unwrap_or_default();
            let output = self.fabric().output(port.port.0);
            let sent = output
                .map(crate::atm::OutputPort::totals)
                .unwrap_or_default();
            table.row(vec![
                port.port.0.into(),
                port.name.into(),
                text(format_args!("{:?}", port.kind)),
                text(format_args!("{:?}", port.phase)),
                port.calls.into(),
                port.pending.into(),
                port.labels.into(),
                port.reserved.0.into(),
                port.reserved.1.into(),
                input.cells_in.into(),
                sent.cells_out.into(),
                (input.dropped.total() + sent.dropped.total()).into(),
                output
                    .map_or(0, crate::atm::OutputPort::queued_total)
                    .into(),
            ]);
        }
        table
    }
}

/// Leading octets of an ATM address, written like those of a whole address.
fn leading(prefix: &[u8]) -> String {
    let mut octets = [0; 20];
    for (to, from) in octets.iter_mut().zip(prefix) {
        *to = *from;
    }
    let mut whole = AtmAddress(octets).to_string();
    let digits = whole.char_indices().filter(|(_, c)| *c != '.');
    let last = digits.map(|(at, _)| at).take(2 * prefix.len()).last();
    whole.truncate(last.map_or(0, |last| last + 1));
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_octets_are_spelled_as_those_of_a_whole_address() {
        let whole = "47.0091.81.000000.02a7.0000.0100.02a703000100.00";
        let AtmAddress(octets) = whole.parse().unwrap();
        assert_eq!(leading(&octets), whole);
        assert_eq!(leading(&octets[..13]), "47.0091.81.000000.02a7.0000.0100");
        assert_eq!(leading(&octets[..5]), "47.0091.81.00");
        assert_eq!(leading(&[]), "");
        assert_eq!(leading(&[0; 30]), AtmAddress([0; 20]).to_string());
    }
}
