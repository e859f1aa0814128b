//! The first lines of a stream: the lab, machines, links, networks, permanent connections, flows.

use super::lines::{Flow, Head, Line, Link, Network, Node, Pvc, SCHEMA};
use super::scope::Scope;
use crate::model::{Lab, LinkId, NodeId};
use crate::picture::{Picture, shown};
use aerostat_node::atm::CellRate;
use aerostat_proto::Duration;
use std::collections::BTreeMap;

/// Largest text of a lab file in the stream, octets.
const MOST_TEXT: usize = 64 << 10;

/// Facts about a run that the lab does not know.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Text of the lab file.
    pub text: Option<String>,
    /// Version of the program.
    pub version: String,
    /// True for real time.
    pub real_time: bool,
}

/// The line about the lab.
pub(super) fn head(lab: &Lab, about: &About, (every, until): (u64, Option<u64>)) -> Line {
    Line::Head(Head {
        schema: SCHEMA.to_owned(),
        lab: lab.name.clone(),
        description: lab.description.clone(),
        seed: lab.seed,
        time: if about.real_time { "real" } else { "virtual" }.to_owned(),
        version: about.version.clone(),
        sample: every,
        until,
        text: about.text.clone().filter(|text| text.len() <= MOST_TEXT),
    })
}

/// The first lines about a lab that goes on, with samples each `every`, or zero for none.
#[must_use]
pub fn parts(lab: &Lab, about: &About, every: Duration) -> Vec<Line> {
    let head = head(lab, about, (nanos(every), None));
    let mut all = vec![head];
    all.extend(parts_of(lab, &Picture::of(lab), &Scope::whole()));
    all
}

/// The lines about what the lab consists of, as far as it is in the scope.
pub(super) fn parts_of(lab: &Lab, picture: &Picture, scope: &Scope) -> Vec<Line> {
    let name = |machine: usize| {
        let machine = picture.machines.get(machine);
        machine.map_or_else(String::new, |machine| machine.name.clone())
    };
    let shown = shown(picture);
    let drawn = picture.part(&shown);
    let counted = drawn.machines.iter().filter(|machine| machine.hosts > 0);
    let counted: BTreeMap<&str, usize> = counted.map(|one| (&*one.name, one.hosts)).collect();
    let machines = picture.machines.iter().zip(shown);
    let told = machines.filter(|(_, shown)| *shown || scope.is_whole());
    let nodes = told.map(|(machine, shown)| {
        let addresses = machine.addresses.iter().map(|(address, network)| {
            let network = picture.networks.get(*network);
            let network = network.map(|network| network.name.clone());
            (address.to_string(), network.unwrap_or_default())
        });
        Line::Node(Node {
            name: machine.name.clone(),
            kind: machine.kind.word().to_owned(),
            addresses: addresses.collect(),
            atm: machine.atm.clone(),
            behind: machine.behind.map(name),
            shown,
            hosts: counted.get(&*machine.name).map(|count| *count as u64),
        })
    });
    let links = picture.cables.iter().zip(&lab.links).enumerate();
    let links = links.filter(|(number, _)| scope.has_link(LinkId(*number)));
    let links = links.map(|(_, (cable, link))| {
        let rates = link.lines.map(|line| rate(line.rate));
        let delays = link.lines.map(|line| nanos(line.delay));
        Line::Link(Link {
            name: cable.name.clone(),
            ends: cable.ends.map(name),
            ports: cable.ports.map(|port| port as u64),
            what: cable.what.clone(),
            rate: rates[0].max(rates[1]),
            rates: (rates[0] != rates[1]).then_some(rates),
            delay: delays[0].max(delays[1]),
        })
    });
    let networks = picture.networks.iter().map(|network| {
        Line::Network(Network {
            name: network.name.clone(),
            clip: network.clip,
            line: network.line,
            subnet: network.subnet.clone(),
            what: network.what.clone(),
        })
    });
    let pvcs = picture.pvcs.iter();
    let pvcs = pvcs.filter(|pvc| pvc.ends.iter().all(|end| scope.has_node(NodeId(*end))));
    let pvcs = pvcs.map(|pvc| {
        Line::Pvc(Pvc {
            ends: pvc.ends.map(name),
            labels: pvc.labels.clone(),
            qos: pvc.qos.clone(),
        })
    });
    let flows = lab.traffic.iter().map(|flow| {
        let [from, to] = lab.ends_of(flow).map(str::to_owned);
        let (name, kind) = (flow.name.clone(), flow.kind_name().to_owned());
        Line::Flow(Flow {
            name,
            from,
            to,
            kind,
        })
    });
    let first = nodes.chain(links).chain(networks);
    first.chain(pvcs).chain(flows).collect()
}

/// Cells per second, to the tenth.
fn rate(rate: CellRate) -> f64 {
    let exact = rate.numerator() as f64 / rate.denominator() as f64;
    (exact * 10.0).round() / 10.0
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
