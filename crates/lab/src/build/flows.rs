//! The flows of a lab: the measured packets, and the programs that make them.

use crate::model::{Arrivals, Flow, FlowKind, Lab, NodeId, SendRate, Ticks};
use aerostat_node::host::HostCommand;
use aerostat_node::ip::apps::{AppCommand, AppId, AppKind, AppSpec, Pattern};
use aerostat_node::ip::meter::{FlowSpec, Protocol};
use aerostat_node::ip::source_ports::SourcePorts;
use aerostat_node::rate::PacketRate;
use aerostat_proto::{Duration, Instant};
use std::net::Ipv4Addr;

/// First UDP or TCP port of a flow's receiver; flow N uses this plus N.
const FIRST_SINK_PORT: u16 = 5001;
/// First port of a flow's sender.
const FIRST_SOURCE_PORT: u16 = 40_001;

/// The measured flows of the lab. Flows are distinguished by their ports, pings by their ICMP identifier. A user's ping
/// between the same hosts, from a kernel or not, has another identifier and does not belong to the flow.
pub(super) fn flow_specs(lab: &Lab) -> Vec<FlowSpec> {
    let flows = lab.traffic.iter().enumerate().map(|(index, flow)| {
        let protocol = match flow.kind {
            FlowKind::Tcp | FlowKind::Rr { .. } => Protocol::Tcp,
            FlowKind::Udp { .. } => Protocol::Udp,
            FlowKind::Ping { .. } => Protocol::Icmp,
        };
        let ports = flow_ports(flow, index);
        let ident = AppId(2 * index as u32).ident();
        let source = ports.map_or(Some(ident), |[source, _]| Some(source));
        FlowSpec {
            name: flow.name.clone(),
            source: sender_ip(lab, flow),
            destination: flow.destination,
            protocol,
            source_ports: match protocol {
                Protocol::Tcp => Some(calling_ports(lab, index)),
                Protocol::Udp | Protocol::Icmp => source.map(SourcePorts::only),
            },
            destination_port: ports.map(|[_, sink]| sink),
            voice: flow.voice,
            series: flow.series,
        }
    });
    flows.collect()
}

/// IP address of the sender: that of its interface on the receiver's subnet, or of its first one.
fn sender_ip(lab: &Lab, flow: &Flow) -> Ipv4Addr {
    let from = (flow.from, flow.segment[0]);
    let mut lecs = lab.node(flow.from).lecs().iter();
    let near = lecs.find(|lec| lab.elan(lec.elan).subnet.contains(flow.destination));
    let over = near.map(|lec| lec.elan).or(flow.over);
    (lab.ip_over(from, over)).unwrap_or(Ipv4Addr::UNSPECIFIED)
}

/// Ports of the flow's sender and receiver, if it has ports; `index` is its index in the list.
pub(crate) fn flow_ports(flow: &Flow, index: usize) -> Option<[u16; 2]> {
    let default = port(FIRST_SINK_PORT, index);
    let both = [port(FIRST_SOURCE_PORT, index), flow.port.unwrap_or(default)];
    (!matches!(flow.kind, FlowKind::Ping { .. })).then_some(both)
}

/// Source ports of the connections of a flow: that of [`flow_ports`] for the first one. A later one, after a restart of
/// the sender or at the end of a connection, has a port that is a multiple of the number of flows above it, so that the
/// flow of a packet is known by its ports.
fn calling_ports(lab: &Lab, index: usize) -> SourcePorts {
    let step = u16::try_from(lab.traffic.len()).unwrap_or(u16::MAX);
    SourcePorts::every(port(FIRST_SOURCE_PORT, index), step)
}

fn port(first: u16, index: usize) -> u16 {
    first.saturating_add(index.try_into().unwrap_or(u16::MAX))
}

/// A program, and the host on which it runs.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The node.
    pub node: NodeId,
    /// Index of the host on the Ethernet segment behind the node; `None` for the node itself.
    pub behind: Option<usize>,
    /// The program.
    pub program: AppSpec,
}

impl Placed {
    /// The command to the node that starts the program at its time.
    #[must_use]
    pub fn start(self) -> HostCommand {
        HostCommand::app(self.behind, AppCommand::Start(self.program))
    }
}

/// The programs that make the lab's traffic: for each flow a receiver (which runs from the start) and a sender.
///
/// The program number of a sender is twice the flow's index, that of a receiver one more.
#[must_use]
pub fn programs(lab: &Lab) -> Vec<Placed> {
    let flows = 0..lab.traffic.len();
    flows
        .filter(|index| !lab.retired.flows.contains(index))
        .filter_map(|index| programs_of(lab, index))
        .flat_map(|(sender, receiver)| [Some(sender), receiver])
        .flatten()
        .collect()
}

/// Sender and receiver of one flow; a ping has no receiver.
pub(crate) fn programs_of(lab: &Lab, index: usize) -> Option<(Placed, Option<Placed>)> {
    let flow = lab.traffic.get(index)?;
    let [source, sink] = flow_ports(flow, index).unwrap_or_default();
    let (to, local_port) = (flow.destination, Some(source));
    let local_ports = Some(calling_ports(lab, index));
    let (sender, receiver) = match flow.kind {
        FlowKind::Tcp => (
            AppKind::TcpSource {
                to,
                port: sink,
                local_ports,
                octets: flow.octets,
                write: flow.write,
            },
            Some(AppKind::TcpSink { port: sink }),
        ),
        FlowKind::Udp {
            size,
            rate: SendRate { packets: rate, .. },
            poisson,
        } => (
            AppKind::UdpSource {
                to,
                port: sink,
                local_port,
                rate: within_periods(flow, rate),
                pattern: pattern(flow, poisson),
                size,
            },
            Some(AppKind::UdpSink { port: sink }),
        ),
        FlowKind::Ping {
            size,
            rate: SendRate { packets: rate, .. },
        } => (
            AppKind::Ping {
                to,
                count: None,
                rate,
                size,
                ttl: None,
            },
            None,
        ),
        FlowKind::Rr { size } => (
            AppKind::TransactionClient {
                to,
                port: sink,
                local_ports,
                request: size,
                response: size,
            },
            Some(AppKind::TransactionServer {
                port: sink,
                request: size,
                response: size,
            }),
        ),
    };
    let id = |role: u32| AppId(2 * index as u32 + role);
    let start = Instant::ZERO + flow.start;
    let sender = AppSpec {
        id: id(0),
        start,
        duration: flow.duration,
        kind: sender,
    };
    let receiver = receiver.map(|kind| {
        let program = AppSpec {
            id: id(1),
            start: Instant::ZERO,
            duration: None,
            kind,
        };
        Placed {
            node: flow.to,
            behind: flow.segment[1],
            program,
        }
    });
    let sender = Placed {
        node: flow.from,
        behind: flow.segment[0],
        program: sender,
    };
    Some((sender, receiver))
}

/// When the datagrams of a flow are sent.
fn pattern(flow: &Flow, poisson: bool) -> Pattern {
    match (flow.load.as_ref().map(|load| &load.arrivals), flow.ticks) {
        (Some(Arrivals::OnOff { on, off }), _) => Pattern::OnOff { on: *on, off: *off },
        (Some(Arrivals::Trace(trace)), _) => Pattern::Trace(trace.list.clone()),
        (_, Some(Ticks { tick, spacing })) => Pattern::Ticked { tick, spacing },
        _ if poisson => Pattern::Poisson,
        _ => Pattern::Constant,
    }
}

/// The rate of a program whose flow has this mean rate: higher for one that is silent from time to time.
fn within_periods(flow: &Flow, mean: PacketRate) -> PacketRate {
    let arrivals = flow.load.as_ref().map(|load| &load.arrivals);
    let Some(Arrivals::OnOff { on, off }) = arrivals else {
        return mean;
    };
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    // The lab file's times and shares fit; a load within periods is at most that of the link.
    mean.scaled(nanos(*on + *off), nanos(*on)).unwrap_or(mean)
}

#[cfg(test)]
mod tests {
    use crate::build::{Builder, Flavour};

    #[test]
    fn a_ping_that_a_user_starts_in_a_kernel_host_is_not_the_flows() {
        let text = "
switches: { s: {} }
lane: { on: s, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts: { x: { on: s, elan: a, ip: 10.1.0.1 }, y: { on: s, elan: a, ip: 10.1.0.2 } }
traffic: [{ from: x, to: y, kind: tcp }, { name: p, from: x, to: y, kind: ping }]
";
        let lab = crate::parse("t.atm.yml", text, &[]).unwrap().lab;
        let [kernel, embedded] = [Flavour::Kernel, Flavour::Embedded].map(|flavour| {
            let builder = Builder::new(&lab, 1, flavour);
            builder.flows().to_vec()
        });
        // Without an identifier each ping from x to y would count.
        assert!(kernel[1].source_ports.is_some(), "{kernel:?}");
        assert_eq!(kernel, embedded);
    }
}
