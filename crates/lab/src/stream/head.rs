//! The first lines of a stream: the lab, machines, links, networks, permanent connections, flows.

use super::lines::{Flow, Head, Line, Link, Network, Node, Pvc, SCHEMA};
use crate::model::Lab;
use crate::picture::{Kind, Picture};
use aerostat_node::atm::CellRate;
use aerostat_proto::Duration;

/// Largest text of a lab file in the stream, octets.
const MOST_TEXT: usize = 64 << 10;
/// Limit of machines in a drawing.
pub const MOST_SHOWN: usize = 1000;

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

/// The machines that a drawing shows, by number: all of them, or switches, servers and routers first and then hosts.
#[must_use]
pub fn shown(picture: &Picture) -> Vec<bool> {
    let rank = |kind: Kind| match kind {
        Kind::Switch => 0,
        Kind::LaneServer => 1,
        Kind::Router => 2,
        Kind::Outside => 3,
        Kind::Host => 4,
        Kind::Station => 5,
    };
    let machines = picture.machines.iter().enumerate();
    let mut order: Vec<(u8, usize)> = machines.map(|(n, m)| (rank(m.kind), n)).collect();
    order.sort_unstable();
    let mut shown = vec![false; picture.machines.len()];
    for (_, number) in order.into_iter().take(MOST_SHOWN) {
        shown[number] = true;
    }
    shown
}

/// The first lines about a lab that goes on, with samples each `every`, or zero for none.
#[must_use]
pub fn parts(lab: &Lab, about: &About, every: Duration) -> Vec<Line> {
    let head = head(lab, about, (nanos(every), None));
    let mut all = vec![head];
    all.extend(parts_of(lab, &Picture::of(lab)));
    all
}

/// The lines about what the lab consists of.
pub(super) fn parts_of(lab: &Lab, picture: &Picture) -> Vec<Line> {
    let name = |machine: usize| {
        let machine = picture.machines.get(machine);
        machine.map_or_else(String::new, |machine| machine.name.clone())
    };
    let shown = shown(picture);
    let nodes = picture.machines.iter().zip(shown).map(|(machine, shown)| {
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
        })
    });
    let links = picture.cables.iter().zip(&lab.links).map(|(cable, link)| {
        Line::Link(Link {
            name: cable.name.clone(),
            ends: cable.ends.map(name),
            ports: cable.ports.map(|port| port as u64),
            what: cable.what.clone(),
            rate: rate(link.rate),
            delay: nanos(link.delay),
        })
    });
    let networks = picture.networks.iter().map(|network| {
        Line::Network(Network {
            name: network.name.clone(),
            clip: network.clip,
            subnet: network.subnet.clone(),
            what: network.what.clone(),
        })
    });
    let pvcs = picture.pvcs.iter().map(|pvc| {
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
