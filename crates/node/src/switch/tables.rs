//! Tables of `inspect` about a switch. The rows are in [`inspect::switch`](crate::inspect::switch).

use super::{PortInfo, PortNo, RouteSelect, StaticRoutes, Switch};
use crate::atm::fabric::ConnectionView;
use crate::atm::{OutputPort, UpcReason};
use crate::inspect::words::Permanence;
use crate::inspect::{Table, switch as rows};
use aerostat_proto::Instant;
use aerostat_wire::{AtmAddress, Vc};

impl Switch<StaticRoutes> {
    /// The tables of kind `what`; `None` if a switch has no such state.
    #[must_use]
    pub fn inspect(&self, what: &str, now: Instant) -> Option<Vec<Table>> {
        Some(match what {
            "vc" => vec![Table::of(self.connection_rows())],
            "call" => vec![
                Table::of(self.call_rows()),
                Table::of(self.cause_rows()),
                Table::of(self.counter_rows()),
            ],
            "port" => vec![Table::of(self.port_rows())],
            "queue" => self.queue_tables(),
            "route" => vec![Table::of(self.route_rows())],
            "saal" => {
                let ends = || (self.ports.iter()).map(|port| (&port.interface, &port.config.name));
                let links = ends().map(|(interface, name)| interface.link_row(name));
                let codes = ends().flat_map(|(interface, name)| interface.error_rows(name));
                vec![Table::of(links), Table::of(codes)]
            }
            "pvc" => vec![self.permanent_table(None)],
            "ilmi" => self.ilmi_tables(),
            "cpu" => return self.manager_tables(now),
            _ => return None,
        })
    }

    fn connection_rows(&self) -> impl Iterator<Item = rows::Connection> {
        let row = |view: ConnectionView| {
            let leaves = view.to.iter();
            let out: Vec<_> = leaves
                .map(|leaf| format!("{}.{}", leaf.port, leaf.vc))
                .collect();
            rows::Connection {
                in_port: view.from.port,
                in_vc: view.from.vc,
                out: if view.local {
                    "control plane".to_owned()
                } else {
                    out.join(" ")
                },
                traffic: view.traffic.to_string(),
                cells_in: view.counters.cells_in,
                cells_out: view.counters.cells_out,
                cells_dropped: view.counters.dropped.total(),
                policed: (view.traffic.conformance())
                    .filter(|_| view.policed)
                    .map(|name| name.to_string()),
                over_peak: view.upc.of(UpcReason::Peak),
                over_peak_clp0: view.upc.of(UpcReason::PeakClp0),
                over_sustained: view.upc.of(UpcReason::Sustained),
                cells_tagged: view.counters.tagged,
            }
        };
        self.fabric().connections().map(row)
    }

    fn route_rows(&self) -> Vec<rows::Route> {
        let mut rows = Vec::new();
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
                rows.push(rows::Route {
                    prefix: leading.clone(),
                    length_octets: prefix.len(),
                    port: way.port.0,
                    order,
                    hops: way.hops,
                    state: self.way_state(way, order),
                });
            }
        }
        rows
    }
}

impl<R: RouteSelect> Switch<R> {
    /// The permanent connections, or only the one with the end `only`.
    #[must_use]
    pub fn permanent_table(&self, only: Option<(PortNo, Vc)>) -> Table {
        let wanted = self.permanent().filter(|info| {
            let ends = &info.connection.ends;
            only.is_none_or(|end| ends.contains(&end))
        });
        Table::of(wanted.map(|info| {
            let connection = info.connection;
            let [a, b] = connection.ends.map(|(port, vc)| {
                let name = self.port(port).map_or("", |port| port.config.name.as_str());
                if connection.path {
                    format!("{name}.{}", vc.vpi)
                } else {
                    format!("{name}.{vc}")
                }
            });
            rows::Permanent {
                a,
                b,
                kind: if connection.path {
                    Permanence::Path
                } else {
                    Permanence::Channel
                },
                qos: connection.qos,
                policed: info.held.contains(&true),
                cells_a: info.cells[0],
                cells_b: info.cells[1],
                cells_dropped: info.policed[0] + info.policed[1],
                cells_tagged: info.tagged[0] + info.tagged[1],
                state: self.permanent_state(connection.ends),
            }
        }))
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

    fn call_rows(&self) -> impl Iterator<Item = rows::Call> {
        self.calls().map(|call| {
            let label = |vc: Option<Vc>| vc.map_or("-".into(), |vc| vc.to_string());
            let legs = call.branches.iter();
            let out: Vec<_> = legs
                .map(|leg| format!("{}.{}", leg.port, label(leg.vc)))
                .collect();
            rows::Call {
                call: call.id.0,
                in_port: call.root.port.0,
                in_vc: call.root.vc,
                out: out.join(" "),
                calling: call.calling,
                called: call.called,
                blli: call.blli.map(|blli| format!("{blli:?}")),
                bhli: call.bhli.map(|bhli| format!("{bhli:?}")),
                multipoint: call.multipoint,
                accepted: call.accepted,
            }
        })
    }

    fn cause_rows(&self) -> impl Iterator<Item = rows::CauseCount> {
        self.port_infos().flat_map(|seen| {
            let PortInfo {
                port, name, causes, ..
            } = seen;
            causes
                .into_iter()
                .map(move |(cause, calls)| rows::CauseCount {
                    port: port.0,
                    name: name.clone(),
                    cause: cause.to_string(),
                    calls,
                })
        })
    }

    /// A row for each counter of each port that is not zero.
    fn counter_rows(&self) -> impl Iterator<Item = rows::PortCounter> {
        self.port_infos().flat_map(|seen| {
            let counters = seen.signalling.rows().into_iter();
            let counted = counters.filter(|(_, value)| *value > 0);
            counted.map(move |(counter, value)| rows::PortCounter {
                port: seen.port.0,
                name: seen.name.clone(),
                counter,
                value,
            })
        })
    }

    fn port_rows(&self) -> impl Iterator<Item = rows::Port> {
        self.port_infos().map(|port| {
            let number = port.port.0;
            let input = self.fabric().input_counters(number).unwrap_or_default();
            let output = self.fabric().output(number);
            let sent = output.map(OutputPort::totals).unwrap_or_default();
            rows::Port {
                port: number,
                name: port.name,
                kind: port.kind,
                signalling: port.phase,
                calls: port.calls,
                pending: port.pending,
                labels: port.labels,
                reserved_tx_cps: port.reserved.0,
                reserved_rx_cps: port.reserved.1,
                cells_in: input.cells_in,
                cells_out: sent.cells_out,
                cells_dropped: input.dropped.total() + sent.dropped.total(),
                queued_cells: output.map_or(0, OutputPort::queued_total).into(),
            }
        })
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
