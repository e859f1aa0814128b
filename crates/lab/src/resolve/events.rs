//! Events of a run: traffic, faults, captures.

use super::stage::Happening;
use super::{Names, Owners, capacity, faults, ip, load, ports};
use crate::diag::{Diagnostics, Span};
use crate::field::{At, Optional as _};
use crate::file::{Kind, LabFile, OccupancyFile, TrafficFile};
use crate::model::{
    ElanId, Flow, FlowKind, GivenRate, Lab, LinkId, NodeId, NodeKind, Occupancy, SendRate,
};
use crate::occupancy::MOST;
use crate::trace::Traces;
use aerostat_node::ip::apps;
use aerostat_node::ip::emodel;
use aerostat_node::ip::tcp::TcpOptions;
use aerostat_node::rate::PacketRate;
use aerostat_proto::Duration;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Largest UDP or ICMP payload: an IPv4 packet without its headers.
const MAX_PAYLOAD: usize = 65_507;
/// Largest request or response of request-response traffic, octets.
const MAX_MESSAGE: usize = 1 << 20;
/// Octets of the headers of IPv4 and UDP, or of IPv4 and ICMP echo.
const HEADERS: usize = 28;

/// Fills `lab.traffic`, `lab.faults` and `lab.capture`.
pub(super) fn build(file: &LabFile, names: &Names, lab: &mut Happening<'_>, d: &mut Diagnostics) {
    let owners = ip::owners(lab);
    let mut named: BTreeMap<String, Span> = BTreeMap::new();
    let (mut of, mut traces) = (Vec::new(), Traces::default());
    for section in file.traffic.iter().flatten() {
        let name = flow_name(section, &mut named, d);
        if let Some(flow) = flow(section, name, names, (lab, &owners), d) {
            let flows = load::spread(section, flow, (lab, &mut traces), d);
            of.resize(of.len() + flows.len(), section);
            lab.traffic_mut().extend(flows);
        }
    }
    load::limits(&of, lab, d);
    load::names(&of, lab, d);
    ports::collisions(&of, lab, d);
    let mut all = Vec::new();
    for section in file.faults.iter().flatten() {
        let found = faults::of(section, names, lab, d);
        all.extend(found.map(|fault| (fault, section.place)));
    }
    all.sort_by_key(|(fault, _)| fault.at);
    faults::idle(&all, lab, d);
    faults::trainings(&all, lab, d);
    let faults = all.into_iter().map(|(fault, _)| fault);
    lab.faults_mut().extend(faults);
    capacity::off_the_way(&of, lab, d);
    for name in file.capture.iter().flatten() {
        if let Some(link) = link(name, lab, d) {
            lab.capture_mut().push(link);
        }
    }
    let section = file.occupancy.as_ref();
    *lab.occupancy_mut() = section.and_then(|section| occupancy(section, lab, d));
}

/// Levels of buffers over time.
fn occupancy(section: &OccupancyFile, lab: &Lab, d: &mut Diagnostics) -> Option<Occupancy> {
    const LEAST: Duration = Duration::from_micros(1);
    let mut links = Vec::new();
    for name in &section.links {
        let id = link(name, lab, d)?;
        if links.contains(&id) {
            d.error(name.at, "this link stands here twice");
            return None;
        }
        links.push(id);
    }
    let all = Occupancy {
        every: section.every.value.0,
        from: section.from.get(),
        links,
    };
    if all.every < LEAST {
        d.error(section.every.at, "samples are at least 1us apart");
        return None;
    }
    let ports = all.ports(lab).count() as u64;
    if ports == 0 {
        d.error(section.place, "no switch has a port at these links")
            .hint("links: [s1-s2], or the link of a host at a switch, such as x-s1")
            .rests_in(section.place, ["links"]);
        return None;
    }
    let samples = all.samples(lab.end()).saturating_mul(ports);
    if samples > MOST {
        let text = format!("these are {samples} samples, and {MOST} are the most");
        d.error(section.every.at, text)
            .hint("a longer 'every:', a later 'from:', an earlier 'until:', or fewer links")
            .rests_in(section.place, ["from", "links"])
            .rests_on(["until"]);
        return None;
    }
    if samples == 0 {
        let at = section.from.at.unwrap_or(section.place);
        d.warning(
            at,
            "there are no samples: the run ends before the first one",
        );
    }
    Some(all)
}

/// The name of a flow. It must differ from those before, which have their sections in `named`.
fn flow_name(
    section: &TrafficFile,
    named: &mut BTreeMap<String, Span>,
    d: &mut Diagnostics,
) -> String {
    let usual = || format!("{}-{}", section.from.value, section.to.value);
    let name = section.name.plain().unwrap_or_else(usual);
    let at = section.name.as_ref().map_or(section.place, |name| name.at);
    match named.entry(name.clone()) {
        Entry::Vacant(place) => {
            place.insert(section.place);
        }
        Entry::Occupied(first) => {
            d.error(at, format!("two flows with one name: '{name}'"))
                .hint("give one of them a 'name:'")
                .rests_in(section.place, ["name"])
                .rests_in(*first.get(), ["name"]);
        }
    }
    name
}

fn flow(
    section: &TrafficFile,
    name: String,
    names: &Names,
    (lab, owners): (&Lab, &Owners),
    d: &mut Diagnostics,
) -> Option<Flow> {
    let from = names.host(&section.from, d);
    let to = names.host(&section.to, d);
    let kind = kind(section, d);
    if section.kind.get() == Kind::Ping {
        of_kind(section, &["port"], |_| "a ping has no port".to_owned(), d);
    }
    let of_load = section.kind.value.0 == Kind::Load;
    let ticks = kind.filter(|_| !of_load);
    let ticks = ticks.and_then(|kind| ports::ticks(section, kind, None, d));
    let (from, to) = (from?, to?);
    if from == to {
        d.error(section.to.at, "a flow from a host to itself");
        return None;
    }
    let ((from, near), (to, far)) = (from, to);
    let over = match &section.over {
        Some(over) => Some(over_elan(over, lab, (to, far), section, d)?),
        None => None,
    };
    let destination = lab.ip_over((to, far), over)?;
    // Routers outside may have a route.
    if !lab.elans.iter().any(|elan| lab.is_open(elan)) {
        check_path(section, (lab, owners), ([(from, near), (to, far)], over), d);
    }
    let kind = kind?;
    if !of_load {
        check_size(section, kind, lab, ([(from, near), (to, far)], over), d);
    }
    Some(Flow {
        name,
        from,
        to,
        segment: [near, far],
        over,
        destination,
        kind,
        port: section.port.plain().map(|port| port as u16),
        write: write(section, lab, (from, near), d),
        octets: section.bytes.plain().map(|octets| octets as u64),
        ticks,
        load: None,
        group: section.group.plain(),
        voice: section.kind.value.0 == Kind::Voice,
        series: series(section, kind, d),
        start: section.start.plain().unwrap_or(Duration::ZERO),
        waits: section.start.is_none(),
        duration: section.duration.plain(),
        expect: section.expect.plain(),
    })
}

/// True if the flow's packets are kept one by one: those of datagrams, which have numbers.
fn series(section: &TrafficFile, kind: FlowKind, d: &mut Diagnostics) -> bool {
    let Some(at) = section.series.at.filter(|_| section.series.get()) else {
        return false;
    };
    let fits = matches!(kind, FlowKind::Udp { .. }) && section.kind.value.0 != Kind::Load;
    if !fits {
        d.error(at, "series is for udp and voice")
            .rests_in(section.place, ["kind"]);
    }
    fits
}

/// Refuses keys that this kind of traffic does not have, and says why.
fn of_kind(
    section: &TrafficFile,
    keys: &[&str],
    why: impl Fn(&str) -> String,
    d: &mut Diagnostics,
) {
    for (key, at) in section.given.of(keys) {
        d.error(at, why(key)).rests_in(section.place, ["kind"]);
    }
}

fn kind(section: &TrafficFile, d: &mut Diagnostics) -> Option<FlowKind> {
    let kind = section.kind.value.0;
    if let Some((_, at)) = section.given.of(&["size", "rate"]).next() {
        if kind == Kind::Voice {
            d.error(at, "voice has a rate and a size of its own")
                .hint("kind: udp takes any")
                .rests_in(section.place, ["kind"]);
        }
        if kind == Kind::Load {
            d.error(
                at,
                "a load has no rate and no size: it has 'load:' and 'frames:'",
            )
            .hint("for example: load: 50%, frames: 512")
            .rests_in(section.place, ["kind"]);
            return None;
        }
    }
    if matches!(kind, Kind::Tcp | Kind::Rr) {
        let why = |_: &str| "tcp and rr go as fast as they can: they take no rate".to_owned();
        of_kind(section, &["rate"], why, d);
    }
    if kind != Kind::Udp {
        of_kind(section, &["poisson"], |key| format!("{key} is for udp"), d);
    }
    if kind != Kind::Tcp {
        of_kind(
            section,
            &["bytes", "write"],
            |key| format!("{key} is for tcp"),
            d,
        );
    }
    let size = |default: usize| section.size.plain().unwrap_or(default);
    let (min, max) = match kind {
        // A measured datagram begins with its stamp: flow, number and time.
        Kind::Udp | Kind::Voice | Kind::Load => (apps::MIN_PAYLOAD, MAX_PAYLOAD),
        Kind::Ping => (0, MAX_PAYLOAD),
        Kind::Tcp | Kind::Rr => (1, MAX_MESSAGE),
    };
    if let Some(given) = &section.size
        && !(min..=max).contains(&given.value.0)
    {
        let text = format!("the size of this traffic is {min} to {max} octets");
        let found = d.error(given.at, text);
        // Larger sizes are wrong for all kinds.
        if given.value.0 <= MAX_MESSAGE {
            found.rests_in(section.place, ["kind"]);
        }
    }
    if let Some(given) = section.size.as_ref().filter(|_| kind == Kind::Tcp) {
        d.warning(
            given.at,
            "size has no effect on tcp, which always writes as much as its socket takes",
        )
        .hint(
            "leave it out; 'write' is the size of writes, and kind: rr writes messages of a size",
        );
    }
    let at = section.rate.place().unwrap_or(section.place);
    let rate = section.rate.plain();
    Some(match kind {
        Kind::Tcp => FlowKind::Tcp,
        // `load::spread` finds size and rate, which depend on the sender.
        Kind::Load => FlowKind::Udp {
            size: apps::SHORT_STAMP,
            rate: send_rate(GivenRate::Packets(1.0), apps::SHORT_STAMP, at, d)?,
            poisson: false,
        },
        Kind::Rr => FlowKind::Rr { size: size(1) },
        Kind::Voice => FlowKind::Udp {
            size: emodel::PAYLOAD,
            rate: send_rate(GivenRate::Packets(emodel::PACKETS), emodel::PAYLOAD, at, d)?,
            poisson: false,
        },
        Kind::Ping => FlowKind::Ping {
            size: size(56),
            rate: send_rate(rate.unwrap_or(GivenRate::Packets(1.0)), size(56), at, d)?,
        },
        Kind::Udp => {
            let Some(rate) = rate else {
                d.error(section.kind.at, "udp traffic needs a rate")
                    .hint("for example: rate: 450pps, or rate: 2Mbps")
                    .rests_in(section.place, ["rate", "kind"]);
                return None;
            };
            FlowKind::Udp {
                size: size(1000),
                rate: send_rate(rate, size(1000), at, d)?,
                poisson: section.poisson.get(),
            }
        }
    })
}

/// The size of a sender's writes.
fn write(
    section: &TrafficFile,
    lab: &Lab,
    (from, behind): (NodeId, Option<usize>),
    d: &mut Diagnostics,
) -> Option<usize> {
    /// Each write is a step of its own while the buffer has room.
    const WRITES: usize = 1 << 16;
    let given = section.write.as_ref()?;
    let octets = given.get();
    let buffer = match &lab.node(from).kind {
        NodeKind::Host(host) if behind.is_none() => host.tcp.options(),
        _ => TcpOptions::default(),
    };
    let buffer = buffer.params.send.most;
    if section.kind.get() == Kind::Tcp && buffer / octets > WRITES {
        let text = format!(
            "a send buffer of {buffer} octets holds more than {WRITES} such writes, the most"
        );
        d.error(given.at, text)
            .hint("a smaller 'send_buffer' of the host, or larger writes");
    }
    Some(octets)
}

/// The rate of packets of `size` octets.
pub(super) fn send_rate(
    given: GivenRate,
    size: usize,
    at: Span,
    d: &mut Diagnostics,
) -> Option<SendRate> {
    let packets = given.packets(size);
    if packets.is_none() {
        let text = match size {
            0 => "packets without octets have no rate in bits".into(),
            _ => format!(
                "this is more than {} packets of {size} octets a second, the most",
                PacketRate::MOST
            ),
        };
        d.error(at, text)
            .hint("a lower rate, or one in packets such as 10pps");
    }
    packets.map(|packets| SendRate { given, packets })
}

/// The ELAN or subnet that a flow goes over: the receiver is on it.
fn over_elan(
    over: &At<String>,
    lab: &Lab,
    (to, behind): (NodeId, Option<usize>),
    section: &TrafficFile,
    d: &mut Diagnostics,
) -> Option<ElanId> {
    let lecs = lab.node(to).lecs().iter().filter(|_| behind.is_none());
    let named: Vec<(&str, ElanId)> = lecs
        .map(|lec| (lab.elan(lec.elan).name.as_str(), lec.elan))
        .collect();
    let found = named.iter().find(|(name, _)| *name == over.value);
    if found.is_none() {
        let text = format!("{} is not on '{}'", section.to.value, over.value);
        d.error(over.at, text)
            .suggest(&over.value, named.iter().map(|(name, _)| *name))
            .rests_on([&*format!("hosts/{}", section.to.value)])
            .rests_in(section.place, ["to", "over"]);
    }
    found.map(|(_, elan)| *elan)
}

/// Reports a missing route there or back.
fn check_path(
    section: &TrafficFile,
    (lab, owners): (&Lab, &Owners),
    ([from, to], over): ([(NodeId, Option<usize>); 2], Option<ElanId>),
    d: &mut Diagnostics,
) {
    for (a, b) in [(from, to), (to, from)] {
        let Some(b_ip) = lab.ip_over(b, over) else {
            continue;
        };
        if let Err(stuck) = ip::trace(lab, owners, a, b_ip) {
            let elan = lab.client_of(a).map(|lec| lec.elan);
            let (a, b) = (&lab.node(a.0).name, &lab.node(b.0).name);
            let text = format!("no route from {a} to {b}: {stuck} knows no way to {b_ip}");
            let finding = d.error(section.to.at, text).rests_on(ip::ROUTES);
            match elan {
                Some(elan) if stuck == *a => {
                    let elan = lab.elan(elan);
                    finding.hint(format!("no router on {elan} leads there: add one"));
                }
                _ => {
                    finding.hint(format!("add a route to {stuck} under 'routes:'"));
                }
            }
            return;
        }
    }
}

/// Largest IP packet at both ends.
pub(super) fn mtu(
    lab: &Lab,
    (ends, over): ([(NodeId, Option<usize>); 2], Option<ElanId>),
) -> Option<u16> {
    let mtu = ends.into_iter().filter_map(|(id, behind)| {
        let lec = lab.client_over((id, behind), over)?;
        let mtu = lab.mtu_of(lec);
        // An Ethernet segment has its own frame size.
        Some(behind.map_or(mtu, |_| mtu.min(1500)))
    });
    mtu.min()
}

/// Checks the packet size: embedded hosts do not fragment, kernels do.
fn check_size(
    section: &TrafficFile,
    kind: FlowKind,
    lab: &Lab,
    (ends, over): ([(NodeId, Option<usize>); 2], Option<ElanId>),
    d: &mut Diagnostics,
) {
    let (FlowKind::Udp { size, .. } | FlowKind::Ping { size, .. }) = kind else {
        return;
    };
    // Such a size is wrong whatever the MTU.
    if size > MAX_PAYLOAD {
        return;
    }
    let mtu = mtu(lab, (ends, over));
    let Some(mtu) = mtu.filter(|mtu| size + HEADERS > (*mtu).into()) else {
        return;
    };
    let at = section.size.place().unwrap_or(section.kind.at);
    let fits = usize::from(mtu) - HEADERS;
    let what = format!("a packet of {size} + {HEADERS} octets does not fit the MTU of {mtu}");
    let kernel =
        matches!(&lab.node(ends[0].0).kind, NodeKind::Host(host) if host.kernel == Some(true));
    if kernel && ends[0].1.is_none() {
        d.warning(at, what).hint(format!(
            "a kernel makes fragments; up to {fits} octets travel in one frame"
        ));
    } else {
        d.error(at, what)
            .hint(format!(
                "an embedded host makes no fragments: size: {fits} is the most here"
            ))
            .rests_on([
                "lane/elans/*/mtu",
                "clip/*/mtu",
                "hosts/*/elans",
                "hosts/*/clip",
            ])
            .rests_on([&*format!("hosts/{}/kernel", lab.node(ends[0].0).name)])
            .rests_in(section.place, ["size", "kind", "over"]);
    }
}

pub(super) fn link(name: &At<String>, lab: &Lab, d: &mut Diagnostics) -> Option<LinkId> {
    // A link between two switches can be named from either end.
    let swapped = |(_, link): &(LinkId, &crate::model::Link)| {
        let [a, b] = link.ends.map(|end| lab.node(end.node).name.as_str());
        format!("{b}-{a}") == name.value
    };
    let found = (lab.links().find(|(_, link)| link.name == name.value))
        .or_else(|| lab.links().find(swapped))
        .map(|(id, _)| id);
    if found.is_none() {
        d.error(name.at, format!("there is no link '{}'", name.value))
            .suggest(&name.value, lab.links().map(|(_, link)| link.name.as_str()))
            .rests_on_link(&name.value)
            .rests_on(["links/.", "routers/.", "hosts/."]);
    }
    found
}

#[cfg(test)]
mod tests;
