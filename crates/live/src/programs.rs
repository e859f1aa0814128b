//! Programs that a client of the control socket runs on embedded hosts, for `aerostat ping` and `iperf`.

use crate::control::Answer;
use crate::site::Site;
use aerostat_lab::model::{NodeId, NodeKind};
use aerostat_node::host::{Host, HostCommand};
use aerostat_node::ip::apps::{AppCommand, AppId, AppKind, AppResult, AppSpec};
use aerostat_node::rate::PacketRate;
use aerostat_proto::{Duration, Instant};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// First number of such programs; those of the lab file count from 0.
///
/// Identifiers of echo requests are the low 16 bits of a program's number. These numbers do not collide with those of a
/// lab's flows.
const FIRST: u32 = (1 << 24) + 32_768;
/// Limit of such programs over all hosts; beyond it the oldest is ended and forgotten.
const MOST: usize = 4096;
/// Longest duration of a program, s; largest number of pings, and their shortest interval, ms.
const LONGEST: u64 = 3600;
const MOST_PINGS: u32 = 1_000_000;
const LEAST_INTERVAL: u64 = 1;

/// A program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// ICMP echo requests.
    Ping {
        /// Destination.
        to: Ipv4Addr,
        /// Number of requests, 1 to 1000000.
        count: u32,
        /// Interval between requests, ms, at least 1.
        interval_ms: u64,
        /// Octets of data in a request.
        size: usize,
    },
    /// Sends as fast as TCP allows.
    TcpSource {
        /// The sink's host.
        to: Ipv4Addr,
        /// The sink's port.
        port: u16,
        /// Duration, 1 to 3600 s.
        seconds: u64,
    },
    /// Receives the data of `TcpSource`.
    TcpSink {
        /// Port to listen on.
        port: u16,
        /// Duration, 1 to 3600 s.
        seconds: u64,
    },
}

/// A program that runs, and its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Running {
    node: NodeId,
    /// Number of the host on the segment behind the node.
    behind: Option<usize>,
    id: AppId,
}

/// The programs that clients started.
#[derive(Debug, Default)]
pub(crate) struct Commanded {
    next: u32,
    /// All programs, oldest first.
    all: VecDeque<Running>,
}

/// A host by name: the node, and the number of the host on the segment behind it.
fn place(site: &Site<'_>, name: &str) -> Option<(NodeId, Option<usize>)> {
    if let Some(id) = site.lab.find(name) {
        return Some((id, None));
    }
    site.lab.nodes().find_map(|(id, node)| match &node.kind {
        NodeKind::Host(host) => {
            let behind = host
                .bridge
                .iter()
                .position(|station| station.name == name)?;
            Some((id, Some(behind)))
        }
        _ => None,
    })
}

fn host<'a>(site: &'a Site<'_>, id: NodeId) -> Option<&'a Host> {
    let station = site.world.node(id)?.as_station()?;
    Some(station.host())
}

/// All hosts and routers: name, kind (`embedded`, `kernel`) and first IPv4 address.
pub(crate) fn hosts(site: &Site<'_>) -> Answer {
    let mut all: Vec<Value> = Vec::new();
    for (id, node) in site.lab.nodes() {
        let what = match &node.kind {
            NodeKind::Host(_) => "host",
            NodeKind::Router(_) => "router",
            _ => continue,
        };
        let kind = if site.inside.namespaces.contains_key(&id.0) {
            "kernel"
        } else {
            "embedded"
        };
        if let Some(lec) = node.lecs().first() {
            all.push(json!({ "name": node.name, "what": what, "kind": kind, "address": lec.ip }));
        }
        if let NodeKind::Host(host) = &node.kind {
            for station in &host.bridge {
                let (name, ip) = (&station.name, station.ip);
                all.push(json!({ "name": name, "what": "host", "kind": kind, "address": ip }));
            }
        }
    }
    Answer::Ok(json!({ "hosts": all, "ready": site.ready }))
}

fn spec(site: &Site<'_>, program: &Program, now: Instant) -> Result<AppSpec, Answer> {
    let out_of = |what: &str| Answer::error(what, "");
    let id = AppId(FIRST + site.commanded.next % (1 << 24));
    let (kind, duration) = match *program {
        Program::Ping {
            to,
            count,
            interval_ms,
            size,
        } => {
            if !(1..=MOST_PINGS).contains(&count) || interval_ms < LEAST_INTERVAL {
                return Err(out_of(
                    "a ping has 1 to 1000000 requests, 1 ms apart or more",
                ));
            }
            let interval = Duration::from_millis(interval_ms.min(LONGEST * 1000));
            let Some(rate) = PacketRate::every(interval) else {
                return Err(out_of("a ping has an interval"));
            };
            let kind = AppKind::Ping {
                to,
                count: Some(count),
                rate,
                size,
                ttl: None,
            };
            (kind, None)
        }
        Program::TcpSource { to, port, seconds } => {
            let kind = AppKind::TcpSource {
                to,
                port,
                local_ports: None,
                octets: None,
                write: None,
            };
            (kind, Some(seconds))
        }
        Program::TcpSink { port, seconds } => (AppKind::TcpSink { port }, Some(seconds)),
    };
    if duration.is_some_and(|seconds| !(1..=LONGEST).contains(&seconds)) {
        return Err(out_of("a transfer takes 1 to 3600 seconds"));
    }
    Ok(AppSpec {
        id,
        start: now,
        duration: duration.map(Duration::from_secs),
        kind,
    })
}

/// Starts a program on an embedded host.
pub(crate) fn start(
    site: &mut Site<'_>,
    name: &str,
    program: &Program,
    now: Instant,
) -> Result<Answer, Answer> {
    let Some((node, behind)) = place(site, name) else {
        return Err(Answer::error(format!("there is no host '{name}'"), ""));
    };
    match host(site, node) {
        None => return Err(Answer::error(format!("{name} is down"), "")),
        Some(host) if !host.runs_programs(behind) => {
            return Err(Answer::error(format!("{name} is no embedded host"), ""));
        }
        Some(_) => {}
    }
    let spec = spec(site, program, now)?;
    let id = spec.id;
    let command = HostCommand::app(behind, AppCommand::Start(spec));
    site.world.command(node, command, now);
    let began = host(site, node).and_then(|host| host.program(behind, id));
    if began.is_none() {
        let text = format!("{name} does not run this program");
        return Err(Answer::error(text, "is the packet larger than its MTU?"));
    }
    site.commanded.next = site.commanded.next.wrapping_add(1);
    site.commanded.all.push_back(Running { node, behind, id });
    if site.commanded.all.len() > MOST
        && let Some(oldest) = site.commanded.all.pop_front()
    {
        forget(site, oldest, now);
    }
    Ok(Answer::Ok(json!({ "id": id.0 })))
}

fn forget(site: &mut Site<'_>, program: Running, now: Instant) {
    for command in [AppCommand::Stop(program.id), AppCommand::Forget(program.id)] {
        let command = HostCommand::app(program.behind, command);
        site.world.command(program.node, command, now);
    }
}

/// The results of a program so far.
pub(crate) fn report(
    site: &mut Site<'_>,
    (name, id): (&str, u32),
    forget_it: bool,
    now: Instant,
) -> Result<Answer, Answer> {
    let id = AppId(id);
    let program = place(site, name).map(|(node, behind)| Running { node, behind, id });
    let known = |program| site.commanded.all.iter().position(|one| *one == program);
    let (Some(program), Some(at)) = (program, program.and_then(known)) else {
        let text = format!("{name} runs no program of this number");
        return Err(Answer::error(text, ""));
    };
    let found = host(site, program.node).and_then(|host| host.program(program.behind, id));
    if forget_it || found.is_none() {
        site.commanded.all.remove(at);
        forget(site, program, now);
    }
    let Some((result, over)) = found else {
        return Err(Answer::error(format!("{name} was restarted meanwhile"), ""));
    };
    Ok(Answer::Ok(in_json(&result, over)))
}

fn in_json(result: &AppResult, over: bool) -> Value {
    match result {
        AppResult::Ping(ping) => json!({
            "over": over,
            "sent": ping.sent,
            "received": ping.received,
            "duplicates": ping.duplicates,
            "abandoned": ping.abandoned,
            "rtt_min_us": ping.rtt.min_us,
            "rtt_mean_us": ping.rtt.mean_us,
            "rtt_max_us": ping.rtt.max_us,
        }),
        AppResult::TcpSource(source) => json!({
            "over": over,
            "octets": source.octets,
            "seconds": source.elapsed.as_secs_f64(),
            "throughput_mbps": source.throughput_mbps,
            "failed": source.failed,
        }),
        AppResult::TcpSink(sink) => json!({
            "over": over,
            "octets": sink.octets,
            "wrong": sink.wrong,
            "connections": sink.connections,
        }),
        _ => json!({ "over": over }),
    }
}
