//! Nodes and what runs on them.

use super::{Published, map_of, merge, named, paths_of, published, text};
use crate::model::{
    Attachment, Cable, CallCosts, Clock, Costs, CpuConfig, EthernetPort, Expect, Forwarding, Host,
    IntakeConfig, IntakeRate, Interruptions, IpRoute, Lab, LaneServer, Lec, Mpc, Mps, Nhc, Node,
    NodeId, NodeKind, Outside, OutsideTrunk, OutsideWay, Packing, PortVlans, Proxy, QueueLimit,
    Router, SegmentHost, Side, Switch, Tcp,
};
use aerostat_node::atm::{NicConfig, RateQueue, Shaping};
use aerostat_node::host::Encapsulation;
use aerostat_node::host::sockets::programs::{Pace, Program, Role, Sending, Transfer};
use aerostat_node::manager::{ManagerConfig, Sharing};
use aerostat_node::server::Cost;
use aerostat_proto::nhrp::auth::{Key, Keys};
use aerostat_wire::{AtmAddress, MacAddr};
use serde_json::{Map, Value, json};

pub(super) fn of(lab: &Lab, id: NodeId, node: &Node) -> Value {
    let mut all = match &node.kind {
        NodeKind::Switch(switch) => switch.published(lab),
        NodeKind::LaneServer(server) => server.published(lab),
        NodeKind::Router(router) => router.published(lab),
        NodeKind::Host(host) => host.published(lab),
        NodeKind::Outside(outside) => outside.published(lab),
    };
    if let NodeKind::Host(host) = &node.kind {
        let programs = host.sockets.iter().enumerate();
        let program = |(index, program): (usize, &Program)| {
            let expect = lab.sockets_expect.get(&(id, index)).copied();
            let settings = of_program(program, &host.nic.rate_queues, expect, lab);
            (program.name.clone(), settings)
        };
        all["sockets"] = named(programs.map(program)).into();
    }
    if let (Some(attachment), Some(all)) = (node.attachment(), all.as_object_mut()) {
        merge(all, attachment.published(lab));
    }
    all
}

// Hidden are the ports and links that the order of the file makes, and the MAC addresses of stations; the entries of a
// shared list, which are told themselves; the number of an interface, which is part of its name; and seeds.
published! { own, lab;
    Attachment { switch as "on", port; hidden, link; hidden, address }
    Switch {
        prefix = AtmAddress::leading(prefix), ports = ports.len(), police, queues; given, manager; given, held; given
    } + { "kind": "switch" }
    LaneServer {
        attachment; hidden, rank, policies, default, lecs, ilmi, uni, quota
    } + { "kind": "lane server" }
    Lec {
        index; hidden, elan, mac, address, ip, v2 as "version" = if *v2 { 2 } else { 1 }, named, llc, groups,
        data as "qos", member as "clip"; given
    } + { "interface": lab.interface_name(own) }
    Router {
        attachment; hidden, lecs as "interfaces", routes = of_routes(routes), forwarding; merged, queue; merged,
        mpoa, ilmi, uni, kernel, nic as "shape" = nic.shapes
    } + { "kind": "router" }
    Host {
        attachment; hidden, lecs as "interfaces", vlans = of_vlans(vlans, lecs, lab); given,
        routes = of_routes(routes), neighbours = named(neighbours.iter().map(|(ip, mac)| (text(ip), text(mac).into()))),
        mpoa, nhrp, tcp, cpu; given, intake as "adapter"; given, clock; given, ilmi, uni, kernel, nic; merged,
        sockets; hidden, bridge = named(bridge.iter().map(|one| (one.name.clone(), text(one.ip).into()))),
        ethernet = of_ethernet(*ethernet, ports, bridge, lab), ports; hidden, proxy; given
    } + { "kind": "host" }
    Proxy { ports = ports.join(" "), bridge }
    Cable { rate as "rate_bps", tagged as "tag" }
    EthernetPort {
        name; hidden, cable; merged, full_duplex, queue as "queue_frames", stations; hidden, vlans; merged
    }
    PortVlans { untagged as "vlan"; given, tagged as "trunk"; given }
    Costs { send, receive, ack }
    CallCosts { write, read }
    CpuConfig {
        costs = named(Encapsulation::ALL.iter().zip(costs).map(|(over, costs)| (over.name().to_owned(), costs.published(lab)))),
        calls; given, order as "service", jitter as "jitter_ppm", queue as "queue_packets", manager; given, interruptions; given, seed; hidden
    }
    ManagerConfig {
        message, hand_over, release as "release_ppm", queue as "queue_pdus", sharing as "competing"; given
    }
    Interruptions { every, length }
    Sharing { nice, competing as "programs", kernel, user, life }
    Clock { phase, ppb as "ppm" = f64::from(*ppb) / 1e3 }
    Mpc {
        start, control, data, params; beside, tag, qos, shared_qos; hidden, static_mps, keys; merged
    } + { "protocols": protocols(params.ipv4, params.ipv6) }
    Mps {
        start, control, params; beside, trigger, register,
        servers = named(servers.iter().map(|(ip, address)| (text(ip), text(address).into()))), keys; merged
    }
    Nhc { address, server = text(server.0), keys; merged, params; beside } + {
        "server_address": text(server.1), "key": keys.neighbours.get(&server.1).map(|known| shown(&known.key)),
    }
    // Secrets are not shown.
    Keys {
        signs_as, neighbours as "keys" = named(neighbours.iter().map(|(address, neighbour)| (text(address), shown(&neighbour.key)))),
        shortcuts as "shortcut_key" = shortcuts.as_ref().map(shown), unsigned
    } + { "signed": !neighbours.is_empty() }
    Transfer {
        octets, message as "message_octets", params; beside, series = series.then_some(true); given
    } + { "profile": params.profile.published(lab) }
    Sending {
        start, pdus, size as "size_octets", pace as "gap_s" = match pace {
            Pace::At(rate) => rate.after(1).published(lab),
            Pace::Line => "line".into(),
        }
    }
    Outside {
        attachment; hidden, way, addresses, ilmi, version as "uni", trunk
    } + { "kind": "outside" }
    OutsideTrunk {
        side = match side {
            Some(Side::Network) => "network",
            Some(Side::User) => "user",
            None => "auto",
        },
        prefixes as "routes" = prefixes.iter().map(|octets| AtmAddress::leading(octets)).collect::<Vec<_>>(), lane
    }
}

fn of_routes(routes: &[IpRoute]) -> Map<String, Value> {
    let route = |IpRoute { to, via, lec: _ }: &IpRoute| (text(to), text(via).into());
    named(routes.iter().map(route))
}

fn of_vlans(vlans: &[u16], lecs: &[Lec], lab: &Lab) -> Map<String, Value> {
    let elans = vlans.iter().zip(lecs);
    named(elans.map(|(vid, lec)| (vid.to_string(), lec.elan.published(lab))))
}

/// The cable of a segment, and the ports with cables of their own.
fn of_ethernet(cable: Cable, ports: &[EthernetPort], bridge: &[SegmentHost], lab: &Lab) -> Value {
    let mut all = cable.published(lab);
    let port = |port: &EthernetPort| {
        let mut own = port.published(lab);
        let stations = port
            .stations
            .iter()
            .filter_map(|station| bridge.get(*station));
        own["stations"] = stations.map(|host| host.name.as_str()).collect();
        (port.name.clone(), own)
    };
    if !ports.is_empty() {
        all["ports"] = named(ports.iter().map(port)).into();
    }
    all
}

fn protocols(ipv4: bool, ipv6: bool) -> Vec<&'static str> {
    let all = [(ipv4, "ipv4"), (ipv6, "ipv6")].into_iter();
    all.filter_map(|(on, name)| on.then_some(name)).collect()
}

impl Published for NicConfig {
    fn published(&self, lab: &Lab) -> Value {
        let mut all = json!({ "shape": self.shapes });
        if !self.paths.is_empty() {
            all["paths"] = paths_of(&self.paths, lab).into();
        }
        if !self.rate_queues.is_empty() {
            let queues = self.rate_queues.iter();
            let queues = queues.map(|queue| (queue.name.clone(), queue.published(lab)));
            all["rate_queues"] = named(queues).into();
        }
        all
    }
}

impl Published for Forwarding {
    fn published(&self, lab: &Lab) -> Value {
        let mut all = json!({
            "forwarding_bps": null,
            "forwarding_pps": null,
            "forwarding_cells_s": null,
            "forwarding_cost": null,
        });
        match self {
            Self::Wire => {}
            Self::BitsPerSecond(bits) => all["forwarding_bps"] = (*bits).into(),
            Self::PacketsPerSecond(packets) => all["forwarding_pps"] = (*packets).into(),
            Self::CellsPerSecond(cells) => all["forwarding_cells_s"] = (*cells).into(),
            Self::Cost(cost) => all["forwarding_cost"] = cost.published(lab),
        }
        all
    }
}

impl Published for QueueLimit {
    fn published(&self, _: &Lab) -> Value {
        let mut all = json!({ "queue_frames": null, "queue_cells": null, "queue_octets": null });
        match self {
            Self::Packets(packets) => all["queue_frames"] = (*packets).into(),
            Self::Cells(cells) => all["queue_cells"] = (*cells).into(),
            Self::Octets(octets) => all["queue_octets"] = (*octets).into(),
        }
        all
    }
}

/// A cost in seconds.
impl Published for Cost {
    fn published(&self, _: &Lab) -> Value {
        let Self { packet, octet } = self;
        json!({ "packet_s": *packet as f64 / 1e12, "octet_s": *octet as f64 / 1e12 })
    }
}

impl Published for IntakeConfig {
    fn published(&self, _: &Lab) -> Value {
        let Self { rate, buffer } = self;
        let (pdus, cells) = match rate {
            IntakeRate::Pdus(pdus) => (Some(pdus), None),
            IntakeRate::Cells(cells) => (None, Some(cells)),
        };
        json!({ "receive_pdus_s": pdus, "receive_cells_s": cells, "buffer_pdus": buffer })
    }
}

/// Profile, congestion control, and the parameters that the file gives.
impl Published for Tcp {
    fn published(&self, _: &Lab) -> Value {
        let Self {
            profile,
            congestion: _,
            params,
            given: _,
        } = self;
        let has = |key: &str| self.values().any(|(follows, _)| follows.key == key);
        let given = |name: &str| {
            let mut units = ["", "_s", "_octets"].into_iter();
            units.any(|unit| name.strip_suffix(unit).is_some_and(has))
        };
        let mut own = map_of(params);
        own.retain(|name, _| given(name));
        own.insert("profile".into(), profile.name().into());
        own.insert("congestion".into(), self.name_of("congestion").into());
        own.into()
    }
}

impl Published for (MacAddr, AtmAddress) {
    fn published(&self, _: &Lab) -> Value {
        json!({ "mac": text(self.0), "address": text(self.1) })
    }
}

impl Published for Role {
    fn published(&self, lab: &Lab) -> Value {
        match self {
            Self::Listen {
                answer,
                max_sdu,
                calls,
            } => {
                json!({ "listen": answer.published(lab), "max_sdu_octets": max_sdu, "calls": calls })
            }
            Self::Call {
                to,
                qos,
                send,
                hold,
                every,
            } => json!({
                "call": text(to),
                "qos": text(qos),
                "send": send.published(lab),
                "hold_s": hold.published(lab),
                "every_s": every.published(lab),
            }),
            Self::Permanent {
                vc,
                qos,
                answer,
                send,
            } => json!({
                "vc": text(vc),
                "qos": text(qos),
                "listen": answer.published(lab),
                "send": send.published(lab),
            }),
        }
    }
}

fn of_program(
    program: &Program,
    rate_queues: &[RateQueue],
    expect: Option<Expect>,
    lab: &Lab,
) -> Value {
    let Program {
        name: _,
        local,
        sap,
        shaping,
        atp,
        tester,
        role,
    } = program;
    let mut all = role.published(lab);
    if !matches!(role, Role::Permanent { .. }) {
        all["address"] = text(local).into();
        all["sap"] = format!("{sap:?}").into();
    }
    if *tester {
        all["tester"] = true.into();
    }
    all["expect"] = expect.published(lab);
    if let Some(shaping) = shaping {
        let (key, value) = of_shaping(*shaping, rate_queues);
        all[key] = value;
    }
    if let Some(atp) = atp {
        all["atp"] = atp.published(lab);
    }
    all
}

/// The key that says how an adapter sends calls of a program, and its value.
fn of_shaping(shaping: Shaping, rate_queues: &[RateQueue]) -> (&'static str, Value) {
    match shaping {
        Shaping::Contract => ("shape", true.into()),
        Shaping::Line => ("shape", false.into()),
        Shaping::RateQueue(number) => {
            let queue = rate_queues.get(usize::from(number));
            ("rate_queue", queue.map(|queue| queue.name.as_str()).into())
        }
    }
}

impl Published for OutsideWay {
    fn published(&self, lab: &Lab) -> Value {
        match self {
            Self::AtmTcpListen { at, from } => {
                json!({ "atmtcp": { "listen": text(at), "from": from.published(lab) } })
            }
            Self::AtmTcpConnect { to } => json!({ "atmtcp": { "connect": to } }),
            Self::Udp {
                local,
                peer,
                packing,
            } => {
                let packing = packing.published(lab);
                json!({ "udp": { "local": text(local), "peer": text(peer), "packing": packing } })
            }
            Self::Ethernet {
                interface,
                peer,
                packing,
            } => {
                let packing = packing.published(lab);
                json!({ "ethernet": { "interface": interface, "peer": text(peer), "packing": packing } })
            }
            Self::Mpls(mpls) => json!({ "mpls": mpls.published(lab) }),
            Self::L2tp(l2tp) => json!({ "l2tp": l2tp.published(lab) }),
        }
    }
}

impl Published for Packing {
    fn published(&self, lab: &Lab) -> Value {
        match self {
            Self::One => json!({ "cells": 1 }),
            Self::Many { cells, wait, word } => {
                json!({ "cells": cells, "wait_s": wait.published(lab), "word": word })
            }
        }
    }
}

/// A key: its security parameter index, and whether everybody can read the secret.
fn shown(key: &Key) -> Value {
    match key.clear_text {
        true => format!("{} in clear text", key.spi).into(),
        false => key.spi.into(),
    }
}
