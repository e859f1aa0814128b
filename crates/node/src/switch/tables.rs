//! What `inspect` shows of a switch.

use super::{RouteSelect, StaticRoutes, Switch};
use crate::atm::fabric::ConnectionView;
use crate::inspect::{Table, text};
use crate::interface::Interface;

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
        let mut table = Table::new("routes", &["prefix", "length_octets", "port"]);
        let hosts = self.routes().hosts().map(|(host, port)| (&host[..], port));
        for (prefix, port) in hosts.chain(self.routes().prefixes()) {
            let hex: String = prefix.iter().map(|octet| format!("{octet:02x}")).collect();
            table.row(vec![hex.into(), prefix.len().into(), port.0.into()]);
        }
        table
    }
}

impl<R: RouteSelect> Switch<R> {
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
            let label = |vc: Option<aerostat_wire::Vc>| vc.map_or("-".into(), |vc| vc.to_string());
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

    /// One row per port and counter that is not zero.
    fn signalling_table(&self) -> Table {
        let columns = &["port", "name", "counter", "value"];
        let mut table = Table::new("signalling", columns);
        for port in self.port_infos() {
            for (counter, value) in port.signalling.named().into_iter().filter(|(_, n)| *n > 0) {
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
