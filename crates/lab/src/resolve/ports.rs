//! Ports of flows, and senders with coarse timers.

use crate::build::flow_ports;
use crate::diag::Diagnostics;
use crate::field::At;
use crate::file::{Kind, TrafficFile};
use crate::model::{Flow, FlowKind, Lab, NodeId, Ticks};
use aerostat_proto::Duration;
use std::collections::BTreeMap;

/// The sender's coarse timer, if it has one.
/// `default` is the time between ticks of a sender that has a coarse timer in any case.
pub(super) fn ticks(
    section: &TrafficFile,
    kind: FlowKind,
    default: Option<Duration>,
    d: &mut Diagnostics,
) -> Option<Ticks> {
    let given = section.tick.as_ref().map(|tick| (tick.value.0, tick.at));
    let Some((tick, at)) = given.or(default.map(|tick| (tick, section.kind.at))) else {
        if let Some(at) = section.spacing.at {
            d.error(at, "'spacing' is between datagrams of one 'tick:'")
                .rests_in(section.place, ["tick"]);
        }
        return None;
    };
    let FlowKind::Udp { rate, poisson, .. } = kind else {
        d.error(at, "tick is for udp")
            .rests_in(section.place, ["kind"]);
        return None;
    };
    if section.kind.value.0 == Kind::Voice || poisson {
        d.error(at, "tick is for udp at even distances")
            .rests_in(section.place, ["kind", "poisson"]);
        return None;
    }
    let spacing = section.spacing.get();
    let ticks = Ticks { tick, spacing };
    let seconds = ticks.tick.as_secs_f64();
    let most = seconds * 1e9 / rate.packets.mean_gap() + 1.0;
    if ticks.tick.is_zero() || spacing.as_secs_f64() * most > seconds {
        d.error(at, "the datagrams of a tick must fit before the next")
            .hint("a longer tick, a shorter spacing, or a lower rate")
            .rests_in(section.place, ["tick", "spacing", "size", "kind"]);
        return None;
    }
    Some(ticks)
}

/// Refuses ports that two programs of one host would share.
/// `sections` are those of the flows.
pub(super) fn collisions(sections: &[&TrafficFile], lab: &Lab, d: &mut Diagnostics) {
    type Place = (NodeId, Option<usize>, bool, u16);
    let mut taken: BTreeMap<Place, &Flow> = BTreeMap::new();
    for (index, flow) in lab.traffic.iter().enumerate() {
        let Some([source, sink]) = flow_ports(flow, index) else {
            continue;
        };
        let udp = matches!(flow.kind, FlowKind::Udp { .. });
        let ends = [
            (flow.from, flow.segment[0], source),
            (flow.to, flow.segment[1], sink),
        ];
        for (node, behind, port) in ends {
            let Some(other) = taken.insert((node, behind, udp, port), flow) else {
                continue;
            };
            let given = sections
                .get(index)
                .and_then(|section| section.port.as_ref());
            let first = lab.traffic.iter().position(|one| one.name == other.name);
            let theirs = first.and_then(|first| sections.get(first)?.port.as_ref());
            let Some(At { at, .. }) = given.or(theirs) else {
                continue;
            };
            let text = format!(
                "port {port} is that of flow {} at this host, too",
                other.name
            );
            d.error(*at, text)
                .hint("flows without 'port:' have 5001 and up there, and 40001 and up where they are sent")
                .rests_on(["traffic/*/port", "traffic/*/kind"]);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::build::{Builder, Flavour, programs};
    use crate::resolve::tests::{SMALL, lab};
    use aerostat_node::ip::apps::{AppKind, Pattern};
    use aerostat_proto::Duration;

    fn with(flows: &str) -> String {
        format!("{SMALL}traffic: [{flows}]\n")
    }

    #[test]
    fn flows_have_the_ports_that_the_file_gives() {
        let lab = lab(&with(
            "{ from: x, to: y, kind: voice, port: 5004 }, { from: x, to: y, name: t, kind: tcp, port: 80 }, \
             { from: x, to: y, name: u, kind: udp, rate: 5pps }",
        ));
        let builder = Builder::new(&lab, 1, Flavour::Embedded);
        let ports = builder.flows().iter().map(|flow| flow.destination_port);
        assert_eq!(
            ports.collect::<Vec<_>>(),
            [Some(5004), Some(80), Some(5003)]
        );
        let mut sinks = Vec::new();
        for placed in programs(&lab) {
            match placed.program.kind {
                AppKind::UdpSink { port } | AppKind::TcpSink { port } => sinks.push(port),
                AppKind::UdpSource { port, .. } | AppKind::TcpSource { port, .. } => {
                    sinks.push(port);
                }
                _ => {}
            }
        }
        assert_eq!(sinks, [5004, 5004, 80, 80, 5003, 5003]);
    }

    #[test]
    fn a_sender_ticks_as_the_file_says() {
        let lab = lab(&with(
            "{ from: x, to: y, kind: udp, rate: 450pps, tick: 10ms, spacing: 76us }",
        ));
        let pattern = programs(&lab)
            .into_iter()
            .find_map(|placed| match placed.program.kind {
                AppKind::UdpSource { pattern, .. } => Some(pattern),
                _ => None,
            });
        let (tick, spacing) = (Duration::from_millis(10), Duration::from_micros(76));
        assert_eq!(pattern, Some(Pattern::Ticked { tick, spacing }));
    }

    #[test]
    fn mistakes() {
        for (flow, at, says) in [
            ("kind: ping, port: 5", "5 }", "a ping has no port"),
            ("kind: tcp, port: 0", "0 }", "port is 1 to 65535"),
            ("kind: tcp, port: 65536", "65536", "port is 1 to 65535"),
            ("kind: tcp, tick: 10ms", "10ms", "tick is for udp"),
            ("kind: voice, tick: 10ms", "10ms", "at even distances"),
            (
                "kind: udp, rate: 5pps, poisson: true, tick: 1s",
                "1s",
                "even",
            ),
            ("kind: udp, rate: 5pps, spacing: 1s", "1s", "of one 'tick:'"),
            ("kind: udp, rate: 5pps, tick: 0s", "0s", "must fit"),
            (
                "kind: udp, rate: 900pps, tick: 10ms, spacing: 2ms",
                "10ms",
                "must fit",
            ),
            (
                "kind: tcp, port: 80 }, { from: x, to: y, name: o, kind: rr, port: 80",
                "80 }]",
                "flow x-y",
            ),
            (
                "kind: tcp, port: 5002 }, { from: x, to: y, name: o, kind: rr",
                "5002",
                "flow x-y",
            ),
            (
                "kind: tcp }, { from: y, to: x, name: o, kind: rr, port: 40001",
                "40001",
                "flow x-y",
            ),
        ] {
            let text = with(&format!("{{ from: x, to: y, {flow} }}"));
            let said = crate::parse("t.atm.yml", &text, &[])
                .expect_err(flow)
                .to_string();
            assert!(said.contains(says), "{flow}: {said}");
            let line = text.lines().last().expect("a line");
            let column = line.find(at).expect("a place") + 1;
            assert!(
                said.contains(&format!(":{column}: error")),
                "{flow}: {said}"
            );
        }
    }
}
