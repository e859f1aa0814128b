//! Streams between the kernel hosts of one lab.

use super::network::Network;
use super::{Live, Ran, Times};
use crate::exit::{Exit, Failure};
use aerostat_lab::model::{FlowKind, Host as LabHost, Lab, NodeId, NodeKind};
use aerostat_live::streams::{Counters, Host, Stream, carry};
use aerostat_node::inspect::{Name, Table};
use aerostat_node::rows;
use indicatif::ProgressBar;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

/// Time in which the caches of a path are filled, and after which the next streams start.
pub(super) const PAUSE: Duration = Duration::from_secs(1);
/// Octets of the headers of IPv4 and TCP, and of time stamps.
const HEADERS: u16 = 40;
const STAMPS: u16 = 12;
/// Settings that are shown beside those of the entry, because hosts and streams set them.
const SHOWN: [&str; 8] = [
    "tcp_congestion_control",
    "tcp_sack",
    "tcp_timestamps",
    "tcp_window_scaling",
    "tcp_rmem",
    "tcp_wmem",
    "tcp_no_metrics_save",
    "tcp_rto_min_us",
];

rows! {
    /// One row for each stream, with the columns of a flow that streams have.
    struct StreamRow: "flows" {
        /// Name of the flow.
        name: String,
        /// The way that its packets take.
        phase: Name,
        /// Payload that the receiver has read.
        throughput_mbps: f64,
    }

    /// One row for each group of flows.
    struct GroupRow: "fairness" {
        /// The group.
        group: String,
        /// Sum of the throughputs.
        throughput_mbps: f64,
    }
}

/// Streams at the same time.
pub(super) struct OneRun {
    /// As results of a run in virtual time have them.
    pub(super) results: Ran,
    pub(super) counters: Counters,
    /// Events of the network that were more than 20 ms late.
    pub(super) late: u64,
    /// Mean time that the process of the lab waited for a processor, µs.
    pub(super) wait: Option<f64>,
}

/// A stream of the lab: a flow that begins before the run in virtual time would end.
pub(super) struct Flow<'a> {
    name: &'a str,
    group: Option<&'a str>,
    from: NodeId,
    to: NodeId,
    pub(super) duration: Duration,
}

/// The streams of a lab with the changes of a row.
///
/// # Errors
/// A flow has no duration.
pub(super) fn streams_of<'a>(lab: &'a Lab, times: &Times<'_>) -> Result<Vec<Flow<'a>>, Failure> {
    let begins = |start: Duration| lab.until.is_none_or(|until| start < until);
    let flows = (lab.traffic.iter())
        .filter(|flow| matches!(flow.kind, FlowKind::Tcp) && begins(flow.start));
    let flows = flows.map(|flow| {
        let own = times
            .seconds
            .map(|seconds| Duration::from_secs(seconds.into()));
        let duration = own.or(flow.duration).ok_or_else(|| {
            let text = format!("{}: flow {} has no duration", lab.name, flow.name);
            Failure::failed(text)
        })?;
        Ok(Flow {
            name: &flow.name,
            group: flow.group.as_deref(),
            from: flow.from,
            to: flow.to,
            duration,
        })
    });
    flows.collect()
}

/// The longest duration.
pub(super) fn longest(flows: &[Flow<'_>]) -> Duration {
    let durations = flows.iter().map(|flow| flow.duration);
    durations.max().unwrap_or_default()
}

/// A running lab with prepared hosts.
pub(super) struct Session<'a> {
    pub(super) network: Network,
    lab: &'a Lab,
    live: &'a Live,
    flows: Vec<Flow<'a>>,
    hosts: BTreeMap<NodeId, Host>,
    /// Routes with limits: sender, route.
    routes: Vec<(NodeId, String)>,
    bar: &'a ProgressBar,
}

impl<'a> Session<'a> {
    /// Prepares the hosts of all streams: settings, routes, caches of the paths.
    pub(super) fn new(
        mut network: Network,
        lab: &'a Lab,
        live: &'a Live,
        times: &Times<'a>,
    ) -> Result<Self, Failure> {
        let flows = streams_of(lab, times)?;
        let mut hosts = BTreeMap::new();
        for id in flows.iter().flat_map(|flow| [flow.from, flow.to]) {
            if let (NodeKind::Host(host), false) = (&lab.node(id).kind, hosts.contains_key(&id)) {
                let made = network.host(&lab.node(id).name, host.lec().own_ip())?;
                for (name, value) in &live.settings {
                    made.set(name, value)?;
                }
                // What one stream learns of the path is not for the next.
                made.set("tcp_no_metrics_save", "1")?;
                hosts.insert(id, made);
            }
        }
        let mut routes = Vec::new();
        for flow in &flows {
            if let (Some(from), Some(to)) = (hosts.get(&flow.from), hosts.get(&flow.to)) {
                let route = from.limit(to, window(lab, flow))?;
                // Acknowledgements leave one by one, too.
                to.limit(from, None)?;
                from.meet(to, PAUSE)?;
                routes.push((flow.from, route));
            }
        }
        Ok(Self {
            network,
            lab,
            live,
            flows,
            hosts,
            routes,
            bar: times.bar,
        })
    }

    /// Runs the streams once.
    pub(super) fn run(&mut self, goes_on: &mut dyn FnMut() -> bool) -> Result<OneRun, Failure> {
        std::thread::sleep(PAUSE);
        let streams = self.flows.iter().filter_map(|flow| {
            Some(Stream {
                from: self.hosts.get(&flow.from)?,
                to: self.hosts.get(&flow.to)?,
                duration: flow.duration,
            })
        });
        let streams: Vec<Stream<'_>> = streams.collect();
        let before = (
            self.counters()?,
            self.network.late_events()?,
            self.network.waits(),
        );
        let begin = self.bar.position() + PAUSE.as_millis() as u64;
        let carried = carry(&streams, &mut |time| {
            self.bar.set_position(begin + time.as_millis() as u64);
            goes_on()
        });
        let carried = carried.map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => Failure::new(Exit::Warnings, "interrupted"),
            _ => Failure::failed(format!("{}: {error}", self.lab.name)),
        })?;
        let waits = before.2.zip(self.network.waits());
        let after = self.counters()?;
        Ok(OneRun {
            results: self.results(&carried),
            counters: Counters {
                retransmitted: after.retransmitted - before.0.retransmitted,
                timeouts: after.timeouts - before.0.timeouts,
            },
            late: self.network.late_events()? - before.1,
            wait: waits.map(|(before, after)| after.mean_since(before)),
        })
    }

    /// The sum over all hosts.
    fn counters(&self) -> io::Result<Counters> {
        let mut sum = Counters::default();
        for host in self.hosts.values() {
            let own = host.counters()?;
            sum.retransmitted += own.retransmitted;
            sum.timeouts += own.timeouts;
        }
        Ok(sum)
    }

    /// Octets that receivers have read, in the form of the results of a run in virtual time.
    fn results(&self, carried: &[u64]) -> Ran {
        let rates = self.flows.iter().zip(carried).map(|(flow, octets)| {
            let rate = *octets as f64 * 8.0 / flow.duration.as_secs_f64() / 1e6;
            (flow, rate)
        });
        let (mut flows, mut groups) = (Vec::new(), BTreeMap::new());
        for (flow, rate) in rates {
            let shortcut = match &self.lab.node(flow.from).kind {
                NodeKind::Host(host) => host.mpoa.is_some(),
                _ => false,
            };
            let phase = if shortcut { "shortcut" } else { "routed" };
            flows.push(StreamRow {
                name: flow.name.to_owned(),
                phase: phase.into(),
                throughput_mbps: rate,
            });
            let group = flow.group.unwrap_or_default().to_owned();
            *groups.entry(group).or_insert(0.0) += rate;
        }
        let groups = groups.into_iter().map(|(group, throughput_mbps)| GroupRow {
            group,
            throughput_mbps,
        });
        vec![Table::of(flows), Table::of(groups)].into()
    }

    /// Settings of the kernels: host, name, value.
    pub(super) fn settings(&self) -> Vec<[String; 3]> {
        let named = |id: &NodeId| self.lab.node(*id).name.clone();
        let own = self.live.settings.keys().map(String::as_str);
        let names: BTreeSet<&str> = own.chain(SHOWN).collect();
        let mut all = Vec::new();
        for (id, host) in &self.hosts {
            for name in &names {
                // Kernels differ in what they have.
                if let Ok(value) = host.setting(name) {
                    all.push([named(id), format!("net.ipv4.{name}"), value]);
                }
            }
        }
        let routes =
            (self.routes.iter()).map(|(id, route)| [named(id), "route".to_owned(), route.clone()]);
        all.extend(routes);
        all
    }
}

/// Segments of the window of a flow: that of the sender's buffer and that of the receiver's. `None` if the lab file
/// gives neither, so that the kernels choose.
fn window(lab: &Lab, flow: &Flow<'_>) -> Option<u32> {
    let hosts = [flow.from, flow.to].map(|id| match &lab.node(id).kind {
        NodeKind::Host(host) => Some(host),
        _ => None,
    });
    let [Some(from), Some(to)] = hosts else {
        return None;
    };
    let buffer = |host: &LabHost, key| host.tcp.has("buffer") || host.tcp.has(key);
    if !buffer(from, "send_buffer") && !buffer(to, "receive_buffer") {
        return None;
    }
    let stamps = match from.tcp.params.timestamps && to.tcp.params.timestamps {
        true => STAMPS,
        false => 0,
    };
    let segment = |host: &LabHost| {
        let mtu = lab.mtu_of(host.lec()).saturating_sub(HEADERS);
        let own = host.tcp.has("mss").then_some(host.tcp.params.mss);
        own.map_or(mtu, |mss| mss.min(mtu)).saturating_sub(stamps)
    };
    let segment = segment(from).min(segment(to)).max(1);
    let octets = (from.tcp.params.send_buffer.0).min(to.tcp.params.receive_buffer.0);
    let window = u32::try_from(octets / usize::from(segment));
    Some(window.map_or(u32::MAX, |window| window.max(1)))
}
