//! A drawing of a lab as data: machines, links between them, and networks with their members.
//!
//! [`Picture::of`] makes it from a [`Lab`]. The lines of a stream of events ([`Picture::at`]) add which parts are up,
//! who has joined, and the present connections. All drawings are made from this type alone. It can be serialized,
//! because a running lab sends it as an answer.

mod moment;
mod part;

pub use part::{MOST_SHOWN, shown};

use crate::lines;
use crate::model::{Lab, LineParams, LinkId, NodeKind, SubnetKind};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// The data of a drawing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Picture {
    /// Name of the lab.
    pub lab: String,
    /// True if the lab runs: then memberships, [`Picture::calls`], [`Picture::threads`] and [`Picture::shortcuts`] have
    /// a meaning.
    pub running: bool,
    /// Instant of a run in virtual time, ns.
    pub at: Option<u64>,
    /// Instants between which counters gave the rates, ns.
    pub sampled: Option<[u64; 2]>,
    /// All machines: the nodes of the lab by their numbers, then the stations on Ethernet segments.
    pub machines: Vec<Machine>,
    /// All links, by their numbers in the lab.
    pub cables: Vec<Cable>,
    /// ELANs and subnets of Classical IP, by their numbers in the lab.
    pub networks: Vec<Network>,
    /// Permanent connections.
    pub pvcs: Vec<Permanent>,
    /// Switched connections; those between the same two end systems for the same purpose are combined.
    pub calls: Vec<Calls>,
    /// Each switched connection that has a way.
    pub threads: Vec<Thread>,
    /// Shortcuts of MPOA and NHRP.
    pub shortcuts: Vec<Shortcut>,
}

aerostat_wire::named! {
    /// Kinds of machines.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Kind {
        /// An ATM switch.
        Switch = "switch",
        /// A host that runs LECS, LES and BUS.
        LaneServer = "LANE server",
        /// An IP router.
        Router = "router",
        /// An IP host.
        Host = "host",
        /// The other end of a link out of the lab.
        Outside = "outside",
        /// A host on the Ethernet segment behind a bridging host.
        Station = "station",
    }
}

impl Kind {
    /// Its name for programs.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Switch => "switch",
            Self::LaneServer => "lane_server",
            Self::Router => "router",
            Self::Host => "host",
            Self::Outside => "outside",
            Self::Station => "station",
        }
    }
}

impl From<&NodeKind> for Kind {
    fn from(kind: &NodeKind) -> Self {
        match kind {
            NodeKind::Switch(_) => Self::Switch,
            NodeKind::LaneServer(_) => Self::LaneServer,
            NodeKind::Router(_) => Self::Router,
            NodeKind::Host(_) => Self::Host,
            NodeKind::Outside(_) => Self::Outside,
        }
    }
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// Kind.
    pub kind: Kind,
    /// Its IP addresses, each with the number of its network.
    pub addresses: Vec<(Ipv4Addr, usize)>,
    /// Membership in the network of each address.
    pub joined: Vec<Joined>,
    /// ATM address of an end system, selector 0.
    pub atm: Option<String>,
    /// Number of the bridging host that a station is behind.
    pub behind: Option<usize>,
    /// True if it has crashed.
    pub down: bool,
    /// True if a flow of the lab file begins or ends there.
    pub busy: bool,
    /// Hosts at a switch that the picture leaves out ([`Picture::part`]).
    pub hosts: usize,
    /// True once it was removed from the running lab.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}

/// How far a machine is a member of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Joined {
    /// The machine is not a member, or the drawing does not show members.
    No,
    /// It joins.
    Joining,
    /// It has joined.
    Yes,
}

/// A link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cable {
    /// Its name in faults and captures.
    pub name: String,
    /// Numbers of the machines at its ends; an end system comes before its switch.
    pub ends: [usize; 2],
    /// Port number at each end.
    pub ports: [usize; 2],
    /// Rate, delay and impairments: `oc3, 5µs`.
    pub what: String,
    /// True if it is cut.
    pub down: bool,
    /// Rates of its directions by the end at which they start, cells per second.
    pub rates: [f64; 2],
    /// Cells per second that its first and its second end have sent, if this is known and the link has been used.
    pub carried: Option<[f64; 2]>,
    /// True once it was removed from the running lab.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}

/// An ELAN, a subnet of Classical IP or an ATM line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// Its name.
    pub name: String,
    /// True for a subnet of Classical IP, false for an ELAN.
    pub clip: bool,
    /// True for an ATM line.
    pub line: bool,
    /// Its IP subnet.
    pub subnet: String,
    /// Frame size, server or encapsulation: `frames of 1516`.
    pub what: String,
}

impl Network {
    /// Its kind, in a word for drawings.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match (self.clip, self.line) {
            (true, _) => "LIS",
            (false, true) => "line",
            (false, false) => "ELAN",
        }
    }
}

/// A permanent connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Permanent {
    /// Numbers of the end systems.
    pub ends: [usize; 2],
    /// Its label at each end: `0.100`; for a whole path the VPI alone.
    pub labels: [String; 2],
    /// Its traffic in the syntax of `qos(7)`.
    pub qos: String,
}

/// Switched connections between the same two end systems for the same purpose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calls {
    /// Numbers of the caller's and the called machine.
    pub ends: [usize; 2],
    /// Purpose: `lane-control`, `data-direct` ...
    pub what: String,
    /// How many there are.
    pub count: usize,
}

/// A switched connection over links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// Number of the caller.
    pub from: usize,
    /// Numbers of the links on its way; of a point-to-multipoint call all links of the tree, depth first.
    pub via: Vec<usize>,
    /// The network that both ends belong to, if it is exactly one.
    pub network: Option<usize>,
    /// True if it carries users' data, and no control protocol alone.
    pub data: bool,
    /// True while it is set up or released.
    pub pending: bool,
    /// Cells per second in both directions, 0 if the rate is unknown.
    pub rate: f64,
}

/// A shortcut.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shortcut {
    /// Numbers of the machines where it begins and where it ends.
    pub ends: [usize; 2],
    /// Its destination: an IP address or network.
    pub to: String,
    /// Label of its connection where it begins: `0.39`.
    pub vc: String,
    /// Number of the thread that carries it, if it has a way.
    pub thread: Option<usize>,
}

impl Picture {
    /// The labels of the permanent connections, in their order. Where two of them have the same VPIs and VCIs, the
    /// label names the machines.
    #[must_use]
    pub fn pvc_labels(&self) -> Vec<String> {
        let short = |pvc: &Permanent| format!("PVC {} – {}", pvc.labels[0], pvc.labels[1]);
        let whole = |pvc: &Permanent| {
            let [a, b] = pvc.ends.map(|end| self.name_of(end));
            format!("PVC {a} {} – {b} {}", pvc.labels[0], pvc.labels[1])
        };
        labels(&self.pvcs, &[&short, &whole])
    }

    /// The labels of the shortcuts, in their order: the destination; where two of them have the same, also the machine
    /// where the shortcut begins, or the connection there.
    #[must_use]
    pub fn shortcut_labels(&self) -> Vec<String> {
        let to = |shortcut: &Shortcut| format!("shortcut to {}", shortcut.to);
        let from = |shortcut: &Shortcut| {
            let from = self.name_of(shortcut.ends[0]);
            format!("shortcut of {from} to {}", shortcut.to)
        };
        let on = |shortcut: &Shortcut| format!("{} on {}", from(shortcut), shortcut.vc);
        labels(&self.shortcuts, &[&to, &from, &on])
    }

    fn name_of(&self, machine: usize) -> &str {
        let machine = self.machines.get(machine);
        machine.map_or("", |machine| machine.name.as_str())
    }

    /// The lab as its file describes it: everything is up, and there are no calls.
    #[must_use]
    pub fn of(lab: &Lab) -> Self {
        let mut machines: Vec<Machine> = lab.nodes.iter().map(machine).collect();
        for (id, _, host) in lab.hosts() {
            machines.extend(host.bridge.iter().map(|station| Machine {
                name: station.name.clone(),
                kind: Kind::Station,
                addresses: vec![(station.ip, station.elan.0)],
                // It joins nothing itself: it is in its network from the beginning.
                joined: vec![Joined::Yes],
                atm: None,
                behind: Some(id.0),
                down: false,
                busy: false,
                hosts: 0,
                gone: false,
            }));
        }
        let ends = lab.traffic.iter().flat_map(|flow| lab.ends_of(flow));
        let ends: BTreeSet<&str> = ends.collect();
        for machine in &mut machines {
            machine.busy = ends.contains(&*machine.name);
        }
        for id in &lab.retired.nodes {
            machines[id.0].gone = true;
        }
        let cables = lab.links.iter().enumerate().map(|(number, link)| Cable {
            gone: !lab.has_link(LinkId(number)),
            name: link.name.clone(),
            ends: link.ends.map(|end| end.node.0),
            ports: link.ends.map(|end| end.port.into()),
            what: lines::describe(link),
            down: false,
            rates: link
                .lines
                .map(|LineParams { rate, .. }| rate.numerator() as f64 / rate.denominator() as f64),
            carried: None,
        });
        let networks = lab.elans.iter().map(|elan| Network {
            name: elan.name.clone(),
            clip: elan.kind() == SubnetKind::ClassicalIp,
            line: elan.kind() == SubnetKind::Line,
            subnet: elan.subnet.to_string(),
            what: match (&elan.clip, &elan.line, &elan.foreign) {
                (Some(lis), ..) => format!("packets of {}", lis.mtu),
                (None, Some(line), _) => line.encapsulation.to_string(),
                (None, None, Some(_)) => "served outside".to_owned(),
                (None, None, None) => format!("frames of {}", elan.max_frame),
            },
        });
        let pvcs = lab.pvcs.iter().map(|pvc| Permanent {
            ends: pvc.ends.map(|(node, _)| node.0),
            labels: pvc.ends.map(|(_, vc)| match pvc.path {
                true => vc.vpi.to_string(),
                false => vc.to_string(),
            }),
            qos: pvc.qos.to_string(),
        });
        Self {
            lab: lab.name.clone(),
            running: false,
            at: None,
            sampled: None,
            cables: cables.collect(),
            networks: networks.collect(),
            pvcs: pvcs.collect(),
            machines,
            calls: Vec::new(),
            threads: Vec::new(),
            shortcuts: Vec::new(),
        }
    }

    /// Addresses of a machine with their networks: `10.1.0.1 (a), 10.2.0.1 (b)`.
    #[must_use]
    pub fn addresses(&self, machine: &Machine) -> Vec<String> {
        let all = machine.addresses.iter();
        all.map(|(ip, network)| format!("{ip} ({})", self.networks[*network].name))
            .collect()
    }

    /// Numbers of the machines that belong to a network, including stations.
    pub fn members(&self, network: usize) -> impl Iterator<Item = usize> + '_ {
        let machines = self.machines.iter().enumerate();
        machines.filter_map(move |(number, machine)| {
            let mut of = machine.addresses.iter().map(|(_, network)| *network);
            of.any(|of| of == network).then_some(number)
        })
    }

    /// Number of the end system with this ATM address, whatever its selector.
    #[must_use]
    pub fn owner(&self, address: &str) -> Option<usize> {
        let body = without_selector(address)?;
        let own = |machine: &Machine| {
            let own = machine.atm.as_deref().and_then(without_selector);
            own == Some(body)
        };
        self.machines.iter().position(own)
    }
}

/// An ATM address in its displayed form, without its last octet.
fn without_selector(address: &str) -> Option<&str> {
    address.rsplit_once('.').map(|(body, _)| body)
}

fn machine(node: &crate::model::Node) -> Machine {
    let lecs = node.lecs().iter();
    let addresses = lecs.filter_map(|lec| Some((lec.ip?, lec.elan.0)));
    let addresses: Vec<_> = addresses.collect();
    let kind = Kind::from(&node.kind);
    // A link out of the lab may lead to several addresses, or to no known address.
    let attachment = node.attachment().filter(|_| kind != Kind::Outside);
    Machine {
        name: node.name.clone(),
        kind,
        joined: vec![Joined::No; addresses.len()],
        addresses,
        atm: attachment.map(|at| at.address.to_string()),
        behind: None,
        down: false,
        busy: false,
        gone: false,
        hosts: 0,
    }
}

/// For each thing the first of these forms that no other thing has; the last one, if there is no such form.
fn labels<T>(all: &[T], forms: &[&dyn Fn(&T) -> String]) -> Vec<String> {
    let texts = forms.iter().map(|form| all.iter().map(form).collect());
    let texts: Vec<Vec<String>> = texts.collect();
    let counts = texts.iter().map(|texts| {
        texts.iter().fold(BTreeMap::new(), |mut counts, text| {
            *counts.entry(text).or_insert(0_usize) += 1;
            counts
        })
    });
    let counts: Vec<BTreeMap<&String, usize>> = counts.collect();
    let label = |number: usize| {
        let forms = texts.iter().map(|texts| &texts[number]);
        let mut alone = forms.clone().zip(&counts);
        let found = alone.find(|(text, counts)| counts.get(text) == Some(&1));
        let found = found
            .map(|(text, _)| text)
            .or_else(|| forms.clone().next_back());
        found.cloned().unwrap_or_default()
    };
    (0..all.len()).map(label).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAB: &str = "
switches: { s1: {}, s2: {} }
links: [[s1, s2, { name: trunk, delay: 2ms, loss: 0.01 }]]
lane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 } } }
clip: { wan: { subnet: 10.5.0.0/24, server: hub } }
routers: { hub: { on: s1, elans: { a: 10.1.0.1, wan: 10.5.0.1 } } }
hosts:
  pc: { on: s1, elan: a, ip: 10.1.0.10, bridge: { anna: 10.1.0.20 } }
  far: { on: s2, elan: wan, ip: 10.5.0.10 }
pvcs: [{ from: hub, vc: 0.100, to: far, to_vc: 0.101, pcr: 2000 }]
";

    #[test]
    fn a_picture_has_everything_that_the_lab_has() {
        let lab = crate::parse("x", LAB, &[]).unwrap().lab;
        let picture = Picture::of(&lab);
        let name = |number: usize| picture.machines[number].name.as_str();
        let cables: Vec<_> = picture.cables.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(cables, ["trunk", "lane-s1", "hub-s1", "pc-s1", "far-s2"]);
        assert!(picture.cables[0].what.ends_with("2ms, loss 0.01"));
        let station = picture.machines.last().unwrap();
        assert_eq!((&*station.name, station.kind), ("anna", Kind::Station));
        assert_eq!(station.behind.map(name), Some("pc"));
        let members: Vec<_> = picture.members(0).map(name).collect();
        assert_eq!(members, ["hub", "pc", "anna"]);
        assert!(picture.networks[1].clip);
        assert_eq!(picture.pvcs[0].ends.map(name), ["hub", "far"]);
        assert_eq!(picture.pvcs[0].labels, ["0.100", "0.101"]);
        // A connection is recognised by the address with any selector.
        let far = lab.find("far").unwrap();
        let called = lab.node(far).attachment().unwrap().address;
        let called = called.to_string();
        let called = called.strip_suffix(".00").unwrap();
        assert_eq!(picture.owner(&format!("{called}.51")), Some(far.0));
        assert_eq!(picture.owner("nonsense"), None);
    }

    #[test]
    fn labels_name_what_distinguishes_their_lines() {
        let lab = crate::parse("x", LAB, &[]).unwrap().lab;
        let mut picture = Picture::of(&lab);
        assert_eq!(picture.pvc_labels(), ["PVC 0.100 – 0.101"]);
        let mut back = picture.pvcs[0].clone();
        back.ends.reverse();
        picture.pvcs.push(back);
        let whole = ["PVC hub 0.100 – far 0.101", "PVC far 0.100 – hub 0.101"];
        assert_eq!(picture.pvc_labels(), whole);
        let name = |name: &str| {
            let mut machines = picture.machines.iter();
            machines.position(|machine| machine.name == name).unwrap()
        };
        let [hub, far, pc] = ["hub", "far", "pc"].map(name);
        let shortcut = |ends, to: &str, vc: &str| Shortcut {
            ends,
            to: to.into(),
            vc: vc.into(),
            thread: None,
        };
        picture.shortcuts = vec![
            shortcut([hub, far], "10.1.0.1", "0.32"),
            shortcut([hub, far], "10.1.0.1", "0.33"),
            shortcut([pc, far], "10.1.0.1", "0.32"),
            shortcut([far, pc], "10.1.0.2", "0.32"),
        ];
        let told = [
            "shortcut of hub to 10.1.0.1 on 0.32",
            "shortcut of hub to 10.1.0.1 on 0.33",
            "shortcut of pc to 10.1.0.1",
            "shortcut to 10.1.0.2",
        ];
        assert_eq!(picture.shortcut_labels(), told);
    }

    #[test]
    fn a_picture_survives_being_sent() {
        let lab = crate::parse("x", LAB, &[]).unwrap().lab;
        let picture = Picture::of(&lab);
        let sent = serde_json::to_string(&picture).unwrap();
        assert_eq!(serde_json::from_str::<Picture>(&sent).unwrap(), picture);
    }
}
