//! Tables of `inspect` about a switch. The rows are in [`inspect::switch`](crate::inspect::switch).

use super::{PortNo, RouteSelect, StaticRoutes, Switch};
use crate::atm::OutputPort;
use crate::atm::fabric::ConnectionView;
use crate::inspect::saal::{ErrorCode, Link};
use crate::inspect::{StateKind, Table, switch as rows};
use aerostat_proto::Instant;
use aerostat_wire::Vc;
use core::fmt;
use std::collections::BTreeMap;

impl Switch<StaticRoutes> {
    /// The tables of kind `what`; `None` if a switch has no such state.
    #[must_use]
    pub fn inspect(&self, what: StateKind, now: Instant) -> Option<Vec<Table>> {
        Some(match what {
            StateKind::Vc => vec![Table::of(self.connection_rows())],
            StateKind::Call => vec![
                Table::of(self.call_rows()),
                Table::of(self.cause_rows()),
                Table::of(self.counter_rows()),
            ],
            StateKind::Port => vec![Table::of(self.port_rows())],
            StateKind::Queue => self.queue_tables(),
            StateKind::Route => vec![Table::of(self.route_rows())],
            StateKind::Saal => {
                let ends =
                    || (self.occupied()).map(|(_, port)| (&port.interface, &port.config.name));
                let links = ends().map(|(interface, name)| Link::of_interface(name, interface));
                let codes =
                    ends().flat_map(|(interface, name)| ErrorCode::of_interface(name, interface));
                vec![Table::of(links), Table::of(codes)]
            }
            StateKind::Pvc => vec![self.permanent_table(None)],
            StateKind::Ilmi => self.ilmi_tables(),
            StateKind::Cpu => return self.manager_tables(now),
            _ => return None,
        })
    }

    /// Messages of the daemons of kind `what` that their seats have refused. A switch has daemons of ILMI only.
    #[must_use]
    pub fn daemons_refused(&self, what: StateKind) -> u64 {
        let channels = self.ports.iter().filter_map(|port| port.ilmi.as_ref());
        let channels = channels.filter(|_| what == StateKind::Ilmi);
        channels
            .map(|channel| channel.daemon_counters().refused)
            .sum()
    }

    fn connection_rows(&self) -> impl Iterator<Item = rows::Connection> {
        let mut parties = BTreeMap::new();
        for call in self.calls() {
            let ends = core::iter::once(&call.root).chain(&call.branches);
            let labels = ends.filter_map(|leg| Some((leg.port.0, leg.vc?)));
            parties.extend(labels.map(|at| (at, (call.calling, call.called))));
        }
        let row = move |view: ConnectionView| {
            let leaves = view.to.iter();
            let out: Vec<_> = leaves
                .map(|leaf| self.end(PortNo(leaf.port), leaf.vc))
                .collect();
            let call = parties.get(&(view.from.port, view.from.vc));
            let out = if view.local {
                "control plane".to_owned()
            } else {
                out.join(" ")
            };
            let name = self.name_of(PortNo(view.from.port));
            rows::Connection::of(view, name, out, call)
        };
        self.fabric().connections().map(row)
    }

    fn route_rows(&self) -> Vec<rows::Route> {
        let mut rows = Vec::new();
        for (prefix, ways) in self.routes().in_force() {
            let mut order = 0;
            let mut before = None;
            for way in &ways {
                if before != Some(way.hops) {
                    order += 1;
                    before = Some(way.hops);
                }
                let (name, state) = (self.name_of(way.port), self.way_state(way, order));
                rows.push(rows::Route::of(&prefix, way, name, order, state));
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
            let connection = &info.connection;
            let ends = connection.ends.map(|(port, vc)| match connection.path {
                true => self.end(port, vc.vpi),
                false => self.end(port, vc),
            });
            let state = self.permanent_state(connection.ends);
            rows::Permanent::of(info, ends, state)
        }))
    }

    /// Neighbour at a port; empty if the switch has no such port.
    fn name_of(&self, port: PortNo) -> &str {
        self.port(port).map_or("", |port| port.config.name.as_str())
    }

    /// The end of a connection at a port: `NAME.VPI.VCI`, or `NAME.VPI` of a path.
    fn end(&self, port: PortNo, label: impl fmt::Display) -> String {
        format!("{}.{label}", self.name_of(port))
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
            let out: Vec<_> = legs.map(|leg| self.end(leg.port, label(leg.vc))).collect();
            let name = self.name_of(call.root.port);
            let tries = call.failed.iter();
            let tries =
                tries.map(|failed| format!("{}: {}", self.name_of(failed.port), failed.reason));
            let tried: Vec<String> = tries.collect();
            rows::Call::of(call, name, out.join(" "), tried.join("; "))
        })
    }

    fn cause_rows(&self) -> impl Iterator<Item = rows::CauseCount> {
        self.port_infos().flat_map(|seen| {
            let causes = seen.causes.into_iter();
            causes.map(move |(cause, calls)| {
                rows::CauseCount::of(seen.port, &seen.name, cause, calls)
            })
        })
    }

    /// A row for each counter of each port that is not zero.
    fn counter_rows(&self) -> impl Iterator<Item = rows::PortCounter> {
        self.port_infos().flat_map(|seen| {
            let counters = seen.signalling.rows().into_iter();
            let counted = counters.filter(|(_, value)| *value > 0);
            counted.map(move |(counter, value)| {
                rows::PortCounter::of(seen.port, &seen.name, counter, value)
            })
        })
    }

    fn port_rows(&self) -> impl Iterator<Item = rows::Port> {
        self.port_infos().map(|port| {
            let number = port.port.0;
            let input = self.fabric().input_counters(number).unwrap_or_default();
            let output = self.fabric().output(number);
            let sent = output.map(OutputPort::totals).unwrap_or_default();
            let queued = output.map_or(0, OutputPort::queued_total);
            rows::Port::of(port, input, sent, queued)
        })
    }
}
