//! Answers of a running lab on its control socket.

mod on_links;

use crate::control::{Answer, FaultAction, Reply, Request};
use crate::daemons::Daemons;
use crate::graph;
use crate::kernel::tcp;
use crate::links;
use crate::loopbacks;
use crate::names;
use crate::outside;
use crate::pictures;
use crate::programs;
use crate::pvc;
use crate::qos;
use crate::recorder::Recorder;
use crate::runtime_dir;
use crate::site::Site;
use aerostat_lab::kinds;
use aerostat_lab::model::{FaultKind, NodeId, NodeKind};
use aerostat_lab::plant::LabNode;
use aerostat_node::host::Station;
use aerostat_node::inspect::{Name, StateKind, Table};
use aerostat_proto::{Duration, Instant};
use aerostat_wire::{Vc, names_of};
use rustix::fd::AsFd as _;
use serde_json::json;
use std::net::IpAddr;
use std::sync::mpsc::SyncSender;

/// Answers one request.
pub(crate) fn answer(site: &mut Site<'_>, request: &Request, now: Instant) -> Reply {
    match request {
        Request::Status => Reply::Answer(status(site, now)),
        Request::Inspect { node, what } => either(inspect(site, node.as_deref(), *what, now)),
        Request::Why { node, address } => either(why(site, node.as_deref(), *address, now)),
        Request::Proc { node, what } => either(proc_text(site, node.as_deref(), *what, now)),
        Request::PvcAdd {
            node,
            ends,
            qos,
            path,
            police,
        } => {
            let wanted = pvc::Wanted {
                ends,
                qos,
                path: *path,
                police: *police,
            };
            let row = find(site, node).and_then(|id| pvc::add(site, (id, node), &wanted, now));
            Reply::Answer(one_table(node, row))
        }
        Request::PvcDel { node, end } => Reply::Answer(one_table(
            node,
            find(site, node).and_then(|id| pvc::remove(site, (id, node), end)),
        )),
        Request::Loopback {
            node,
            vpi,
            vci,
            segment,
        } => {
            let vc = Vc::new(*vpi, *vci);
            Reply::Answer(loopbacks::send(site, node, vc, *segment, now))
        }
        Request::LoopbackTime { node, tag } => Reply::Answer(loopbacks::time(site, node, *tag)),
        Request::Fault { action, target } => {
            let done = fault(site, *action, target).map(|what| site.break_or_mend(what, now));
            Reply::Answer(done.map_or_else(|error| error, |()| Answer::Ok(json!({}))))
        }
        Request::Link(request) => either(links::answer(site, request, now)),
        Request::QosAdd { node, entry } => {
            let table = find(site, node).and_then(|id| qos::add(site, (id, node), entry, now));
            Reply::Answer(one_table(node, table))
        }
        Request::QosDel { node, filter } => {
            let table = find(site, node).and_then(|id| qos::remove(site, (id, node), filter, now));
            Reply::Answer(one_table(node, table))
        }
        // The loop itself handles these requests.
        Request::Move { .. } | Request::Converge(_) | Request::Results | Request::Stop => {
            Reply::Answer(Answer::error("not now", ""))
        }
        Request::Exec { node } => exec(site, node).unwrap_or_else(Reply::Answer),
        Request::Graph => Reply::Answer(graph::picture(site)),
        Request::Hosts => Reply::Answer(programs::hosts(site)),
        Request::ProgramStart { node, program } => {
            either(programs::start(site, node, program, now))
        }
        Request::ProgramReport { node, id, forget } => {
            either(programs::report(site, (node, *id), *forget, now))
        }
        Request::Capture { .. } | Request::Trace { .. } | Request::Ways { .. } => {
            on_links::on_links(site, request).unwrap_or_else(Reply::Answer)
        }
        Request::Stream {
            follow,
            stats_ns,
            gather,
        } => {
            let stats = stats_ns.map(Duration::from_nanos);
            pictures::tell(site, *follow, (stats, *gather), now)
        }
        Request::Events { follow } => {
            let forgotten = site.story.forgotten();
            let steps = site.story.tell(*follow);
            Reply::Story(Answer::Ok(json!({ "forgotten": forgotten })), steps)
        }
    }
}

/// The answer, or the error.
fn either(answer: Result<Answer, Answer>) -> Reply {
    Reply::Answer(answer.unwrap_or_else(|error| error))
}

fn one_table(node: &str, table: Result<Table, Answer>) -> Answer {
    table.map_or_else(
        |error| error,
        |table| Answer::Ok(vec![in_json(node, &table)].into()),
    )
}

fn status(site: &Site<'_>, now: Instant) -> Answer {
    Answer::Ok(json!({
        "name": site.lab.name,
        "file": site.file,
        "ready": site.ready,
        "waits_for": site.missing,
        "lacks": site.sources.keepers.missing(),
        "up_s": now.as_secs_f64(),
        "calls": site.world.calls(),
        "kernel_nodes": site.inside.namespaces.len(),
        "frames_bad": site.sources.taps.counters.bad,
        "frames_refused": site.sources.taps.counters.refused,
        "capture_dropped": site.world.captures.dropped(),
        "events_missed": site.story.missed(),
    }))
}

aerostat_node::rows! {
    /// One row for each counter of the lab's own process.
    struct LabCounter: "lab.lab" {
        /// Name of the counter.
        what: Name,
        /// The count.
        count: u64,
    }

    /// One row for each right of the lab's process, as the kernel reports it.
    struct Right: "lab.confinement" {
        /// The right.
        what: Name,
        /// State of the right in force.
        in_force: String,
    }
}

/// Counters of the lab's own process.
fn whole_lab(site: &Site<'_>, now: Instant) -> serde_json::Value {
    let clients = site.connections.counters();
    let daemons = site.sources.daemons.as_ref().map_or(0, Daemons::exhausted);
    let (sessions, sockets) = site.sources.sockets.open_now();
    let service = site.sources.sockets.counters;
    let rows: [(&str, u64); 25] = [
        ("seconds up", now.as_secs_f64() as u64),
        ("calls", site.world.calls() as u64),
        ("kernel nodes", site.inside.namespaces.len() as u64),
        ("clients", site.connections.open() as u64),
        ("clients accepted", clients.accepted),
        ("clients of other users", clients.strangers),
        ("idle clients closed for others", clients.gave_way),
        ("clients closed that asked nothing", clients.silent),
        ("clients served without a place", clients.in_reserve),
        ("no descriptor for a client", clients.exhausted),
        ("no descriptor for a daemon", daemons),
        ("programs with ATM sockets", sessions as u64),
        ("programs with ATM sockets so far", service.sessions),
        ("programs with ATM sockets refused", service.refused),
        (
            "programs with ATM sockets of other users",
            service.strangers,
        ),
        (
            "idle programs with ATM sockets closed for others",
            service.displaced,
        ),
        ("ATM sockets of programs", sockets as u64),
        ("bad messages of programs with ATM sockets", service.bad),
        ("no descriptor for ATM sockets", service.exhausted),
        (
            "frames with a bad offload header",
            site.sources.taps.counters.bad,
        ),
        (
            "frames that the kernel refused",
            site.sources.taps.counters.refused,
        ),
        (
            "packets and events that slow clients missed",
            site.world.captures.dropped() + site.story.missed(),
        ),
        (
            "octets of the recording of 'capture:'",
            site.recorder.as_ref().map_or(0, Recorder::written),
        ),
        (
            "most events between two looks at TAPs and links",
            site.budget.most(),
        ),
        (
            "events more than 20 ms late, with long turns of cells",
            site.world.late_events(),
        ),
    ];
    let rows = rows.map(|(what, count)| LabCounter {
        what: what.into(),
        count,
    });
    in_json(&site.lab.name, &Table::of(rows))
}

/// The rights of the lab's process, as the kernel reports them.
fn confinement(site: &Site<'_>) -> serde_json::Value {
    let helper = site.confinement.rows().into_iter();
    let others = site
        .sources
        .keepers
        .rows()
        .filter(|(what, _)| *what == "supervisor");
    let rows = helper.chain(others).map(|(what, in_force)| Right {
        what: what.into(),
        in_force,
    });
    in_json(&site.lab.name, &Table::of(rows))
}

pub(crate) fn find(site: &Site<'_>, name: &str) -> Result<NodeId, Answer> {
    let found = site.lab.find(name);
    found.ok_or_else(|| Answer::error(format!("there is no node '{name}'"), nodes_of(site)))
}

/// A hint with the names of all nodes.
fn nodes_of(site: &Site<'_>) -> String {
    let names = site.lab.nodes().map(|(_, node)| node.name.as_str());
    format!("nodes: {}", names_of(&names.collect::<Vec<_>>()))
}

/// The fault that a request of `aerostat fault` names.
fn fault(site: &Site<'_>, action: FaultAction, target: &str) -> Result<FaultKind, Answer> {
    let link = || links::find(site.lab, target);
    let victim = || {
        let (node, service) = match target.split_once('/') {
            Some((node, service)) => (node, Some(service)),
            None => (target, None),
        };
        let id = find(site, node)?;
        if let Some(why) = site.lab.node(id).no_victim() {
            let able = site.lab.nodes().map(|(_, node)| node);
            let able = able.filter(|node| node.no_victim().is_none());
            let names: Vec<_> = able.map(|node| &*node.name).collect();
            return Err(Answer::error(why, format!("nodes: {}", names_of(&names))));
        }
        let Some(service) = service else {
            return Ok((id, None));
        };
        let known: Vec<_> = site.lab.node(id).kind.present().collect();
        let found = known.iter().find(|known| known.name() == service);
        found.map(|found| (id, Some(*found))).ok_or_else(|| {
            let names: Vec<_> = known.iter().map(|known| known.name()).collect();
            let hint = match &names[..] {
                [] => format!(
                    "without a service, {node} fails as a whole: 'aerostat fault crash {node}'"
                ),
                _ => format!("services of {node}: {}", names.join(", ")),
            };
            Answer::error(format!("{node} has no service '{service}'"), hint)
        })
    };
    let what = match action {
        FaultAction::Crash => victim().map(|(node, service)| FaultKind::Crash(node, service))?,
        FaultAction::Restart => {
            victim().map(|(node, service)| FaultKind::Restart(node, service))?
        }
        FaultAction::LinkDown => FaultKind::LinkDown(link()?),
        FaultAction::LinkUp => FaultKind::LinkUp(link()?),
    };
    already(site, what).map_or(Ok(what), Err)
}

/// Why a fault would change nothing; `None` if it would.
fn already(site: &Site<'_>, what: FaultKind) -> Option<Answer> {
    let is_down = |node: NodeId| site.world.node(node).is_none();
    match what {
        FaultKind::Crash(node, _) | FaultKind::Restart(node, Some(_)) if is_down(node) => {
            let name = &site.lab.node(node).name;
            let hint = format!("'aerostat fault restart {name}' starts it again");
            Some(Answer::error(format!("{name} is down already"), hint))
        }
        // Only the daemons know whether a service in a process of its own runs.
        FaultKind::Crash(node, Some(service)) if site.sources.daemons.is_none() => {
            let name = &site.lab.node(node).name;
            let station = site.world.node(node)?.as_station()?;
            if station.host().runs(service.into()) {
                return None;
            }
            let service = service.name();
            let hint = format!("'aerostat fault restart {name}/{service}' starts it again");
            Some(Answer::error(
                format!("{name}/{service} is down already"),
                hint,
            ))
        }
        FaultKind::Crash(..)
        | FaultKind::Restart(..)
        | FaultKind::Change(..)
        | FaultKind::Reset(_)
        | FaultKind::Retrain(..)
        | FaultKind::Trained(..) => None,
        FaultKind::LinkDown(link) | FaultKind::LinkUp(link) => {
            let down = matches!(what, FaultKind::LinkDown(_));
            let name = &site.lab.link(link).name;
            let how = if down { "down" } else { "up" };
            if !down && !site.world.is_cut(link) && site.world.is_training(link) {
                let text = format!("{name} is not cut: it trains");
                return Some(Answer::error(text, links::ends(name)));
            }
            (site.world.is_cut(link) == down)
                .then(|| Answer::error(format!("{name} is {how} already"), ""))
        }
    }
}

fn inspect(
    site: &Site<'_>,
    node: Option<&str>,
    what: StateKind,
    now: Instant,
) -> Result<Answer, Answer> {
    let only = node.map(|name| {
        site.lab.find(name).ok_or_else(|| {
            let hint = match kinds::meant(name) {
                Some(kind) => format!("did you mean '{kind}'?"),
                None => {
                    let kinds = StateKind::named()
                        .map(StateKind::name)
                        .collect::<Vec<_>>()
                        .join(", ");
                    format!("{}; kinds of state: {kinds}", nodes_of(site))
                }
            };
            let text = format!("there is no node '{name}', and no such kind of state");
            Answer::error(text, hint)
        })
    });
    let only = only.transpose()?;
    if what == StateKind::Lab {
        let tables = vec![whole_lab(site, now), confinement(site)];
        return Ok(Answer::Ok(tables.into()));
    }
    let mut all = Vec::new();
    let mut known = false;
    for (id, name, node) in site.world.nodes() {
        if only.is_some_and(|only| only != id) {
            continue;
        }
        if node.is_none() && only.is_some() {
            return Err(Answer::error(format!("{name} is down"), ""));
        }
        if what == StateKind::Tcp {
            if let NodeKind::Host(host) = &site.lab.node(id).kind {
                let kernel = site.inside.followed.get(&id.0).map(|all| &all[..]);
                // A kernel without a section has what the machine has.
                if kernel.is_none() || !host.tcp.given.is_empty() {
                    known = true;
                    all.push(in_json(name, &tcp::table(&host.tcp, kernel)));
                }
                let connections = node.and_then(|node| node.inspect(what, now));
                let connections = connections.into_iter().flatten();
                all.extend(connections.map(|table| in_json(name, &table)));
            }
            continue;
        }
        if what == StateKind::Processes {
            let daemons = site.sources.daemons.as_ref();
            let table = daemons.and_then(|daemons| daemons.table(id, now));
            known |= table.is_some();
            all.extend(table.map(|table| in_json(name, &table)));
            continue;
        }
        let tables = match node {
            Some(LabNode::Outside(_)) => {
                let mut links = site.sources.links.all.iter();
                let link = links.find(|link| link.node == id && what == StateKind::Port);
                link.map(outside::Link::tables)
            }
            Some(node) => (node.inspect(what, now)).map(|tables| match what {
                StateKind::Bridge => site.inside.stations.listed(id, tables),
                _ => tables,
            }),
            None => None,
        };
        // Every host has the socket service: of all hosts, those with sockets are of interest.
        let tables = tables.filter(|tables| {
            only.is_some()
                || what != StateKind::Sockets
                || tables.iter().any(|table| !table.rows.is_empty())
        });
        known |= tables.is_some();
        all.extend(
            tables
                .unwrap_or_default()
                .iter()
                .map(|table| in_json(name, table)),
        );
    }
    if !known && let Some(noun) = tool_noun(what) {
        return Err(nobody_has(site, node, (what, noun), now));
    }
    found(known, all, node, what.name())
}

/// The subject of a linux-atm tool in words; `None` for other state.
fn tool_noun(what: StateKind) -> Option<&'static str> {
    match what {
        StateKind::Atmarp => Some("Classical IP"),
        StateKind::Atmaddr => Some("local ATM addresses"),
        StateKind::Atmdiag => Some("ATM adapter"),
        _ => None,
    }
}

/// Why a linux-atm tool has nothing to show, and which nodes have such state.
fn nobody_has(
    site: &Site<'_>,
    node: Option<&str>,
    (what, noun): (StateKind, &str),
    now: Instant,
) -> Answer {
    let Some(node) = node else {
        return Answer::error(format!("no node of this lab has {noun}"), "");
    };
    let others = site.world.nodes().filter_map(|(_, name, node)| {
        let tables = node?.as_station()?.inspect(what, now);
        tables.map(|_| name)
    });
    let others: Vec<&str> = others.collect();
    let hint = if others.is_empty() {
        "no node of this lab has".to_owned()
    } else {
        format!("nodes that have: {}", names_of(&others))
    };
    Answer::error(format!("{node} has no {noun}"), hint)
}

/// The answer from the tables of the nodes; an error if no node has such state.
fn found(
    known: bool,
    all: Vec<serde_json::Value>,
    node: Option<&str>,
    what: &str,
) -> Result<Answer, Answer> {
    match (known, node) {
        (true, _) => Ok(Answer::Ok(all.into())),
        (false, Some(name)) => Err(Answer::error(
            format!("{name} has no {what}"),
            format!("'aerostat inspect {what}' shows all nodes that have"),
        )),
        (false, None) => {
            let hint = match what {
                "processes" => "'aerostat up --split' gives daemons processes of their own",
                "tcp" => {
                    "embedded hosts have, and kernel hosts with a section 'tcp' in the lab file"
                }
                _ => "",
            };
            let text = format!("no node of this lab has {what}");
            Err(Answer::error(text, hint))
        }
    }
}

/// The end systems that are up: all of them, or the one with this name.
fn stations<'a>(
    site: &'a Site<'_>,
    node: Option<&str>,
) -> Result<impl Iterator<Item = (&'a str, &'a Station)>, Answer> {
    let only = node.map(|name| find(site, name)).transpose()?;
    let nodes = site.world.nodes();
    let wanted = nodes.filter(move |(id, ..)| only.is_none_or(|only| only == *id));
    Ok(wanted.filter_map(|(_, name, node)| Some((name, node?.as_station()?))))
}

fn why(
    site: &Site<'_>,
    node: Option<&str>,
    address: IpAddr,
    now: Instant,
) -> Result<Answer, Answer> {
    let tables = stations(site, node)?.filter_map(|(name, station)| {
        let table = station.host().why(address, now)?;
        Some(in_json(name, &table))
    });
    let all: Vec<_> = tables.collect();
    found(!all.is_empty(), all, node, "MPOA client or server")
}

fn proc_text(
    site: &Site<'_>,
    node: Option<&str>,
    what: StateKind,
    now: Instant,
) -> Result<Answer, Answer> {
    let texts = stations(site, node)?.filter_map(|(name, station)| {
        let text = station.host().proc_text(what, now)?;
        Some(json!({ "node": name, "text": text }))
    });
    let all: Vec<_> = texts.collect();
    found(!all.is_empty(), all, node, what.name())
}

pub(crate) fn in_json(node: &str, table: &Table) -> serde_json::Value {
    json!({ "node": node, "title": table.title, "columns": table.columns, "rows": table.rows })
}

fn exec(site: &Site<'_>, name: &str) -> Result<Reply, Answer> {
    let namespace = match site.inside.stations.namespace(name) {
        Some(namespace) => Some(namespace),
        None => site.inside.namespaces.get(&find(site, name)?.0),
    };
    let Some(namespace) = namespace else {
        let kernel: Vec<&str> = site
            .inside
            .namespaces
            .keys()
            .map(|id| site.lab.node(NodeId(*id)).name.as_str())
            .chain(site.inside.stations.names())
            .collect();
        let hint = if kernel.is_empty() {
            let service = runtime_dir::atm_socket_of(&site.lab.name, name);
            let service = service.display();
            format!(
                "this lab runs with --embedded; programs with ATM sockets need only AEROSTAT_ATM={service}"
            )
        } else {
            format!("kernel nodes: {}", names_of(&kernel))
        };
        return Err(Answer::error(format!("{name} is no kernel host"), hint));
    };
    if let Some(gone) = site.sources.keepers.without_supervisor() {
        let hint = "'aerostat down' and 'aerostat up' start the lab again";
        return Err(Answer::error(gone, hint));
    }
    // Programs at a node that is the machine itself are processes of the machine.
    let processes = site.inside.processes.as_ref();
    let mut descriptors = processes.map(|lab| lab.descriptors()).unwrap_or_default();
    descriptors.push(namespace.as_fd());
    let copies = descriptors
        .iter()
        .map(|fd| fd.try_clone_to_owned())
        .collect::<Result<Vec<_>, _>>();
    let copies = copies.map_err(|error| Answer::error(error.to_string(), ""))?;
    Ok(Reply::Descriptors(
        Answer::Ok(json!({ "node": name, "hosts": names::text(site.lab) })),
        copies,
    ))
}

/// Moves a station and answers when that is done. The loop does not wait for it.
pub(crate) fn move_station(site: &Site<'_>, station: &str, host: &str, reply: SyncSender<Reply>) {
    let begun = find(site, host).and_then(|to| {
        if !site.inside.namespaces.contains_key(&to.0) {
            return Err(Answer::error(format!("{host} is no kernel host"), ""));
        }
        let told = (reply.clone(), site.when_done());
        site.inside.stations.plug(site.lab, station, to, told)
    });
    if let Err(error) = begun {
        // The client may have closed the connection.
        let _ = reply.try_send(Reply::Answer(error));
    }
}
