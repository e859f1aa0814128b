//! Nodes and what runs on them.

use super::of_path;
use super::{
    debug, expected, map_of, named, of_queues, policing, pseudowires, seconds, text, texts, with,
    with_parameters, word,
};
use crate::model::{
    Attachment, Cable, Clock, Costs, CpuConfig, EthernetPort, Expect, Forwarding, Host,
    IntakeConfig, IntakeRate, IpRoute, Lab, LaneServer, Lec, Mpc, Mps, Nhc, Node, NodeId, NodeKind,
    Outside, OutsideTrunk, OutsideWay, Packing, PortVlans, QueueLimit, Router, SegmentHost, Side,
    Switch, Tcp,
};
use aerostat_node::atm::{RateQueue, Shaping};
use aerostat_node::host::Encapsulation;
use aerostat_node::host::sockets::{Pace, Program, Role, Sending, Transfer};
use aerostat_node::manager::{ManagerConfig, Sharing};
use aerostat_node::server::{Cost, Order};
use aerostat_proto::lane::lecs::Criterion;
use aerostat_proto::nhrp::auth::{Keys, Neighbour};
use aerostat_wire::{AtmAddress, MacAddr, Sap};
use serde_json::{Map, Value, json};

pub(super) fn of(lab: &Lab, id: NodeId, node: &Node) -> Value {
    let mut all = match &node.kind {
        NodeKind::Switch(switch) => of_switch(switch),
        NodeKind::LaneServer(server) => of_lane_server(lab, server),
        NodeKind::Router(router) => of_router(lab, router),
        NodeKind::Host(host) => of_host(lab, id, host),
        NodeKind::Outside(outside) => of_outside(outside),
    };
    if let (Some(attachment), Some(all)) = (node.attachment(), all.as_object_mut()) {
        let Attachment {
            switch,
            // What the order of the file makes.
            port: _,
            link: _,
            address,
        } = attachment;
        all.insert("address".into(), text(address).into());
        let switch = &lab.node(*switch).name;
        all.insert("on".into(), switch.clone().into());
    }
    all
}

fn of_switch(switch: &Switch) -> Value {
    let Switch {
        prefix,
        ports,
        police,
        queues,
        manager,
    } = switch;
    let all = json!({ "kind": "switch", "prefix": AtmAddress::leading(prefix), "ports": ports.len(), "police": policing(*police) });
    with(
        with(all, "queues", of_queues(queues)),
        "manager",
        manager.map(of_manager),
    )
}

fn of_lane_server(lab: &Lab, server: &LaneServer) -> Value {
    let LaneServer {
        attachment: _,
        rank,
        policies,
        default,
        lecs,
        ilmi,
        uni,
        quota,
    } = server;
    let criterion = |criterion: &Criterion| match criterion {
        Criterion::Name => "name",
        Criterion::Address => "address",
        Criterion::Mac => "mac",
        Criterion::LanType => "type",
        Criterion::FrameSize => "size",
    };
    let level = |level: &Vec<Criterion>| level.iter().map(criterion).collect::<Vec<_>>();
    json!({
        "kind": "lane server",
        "rank": rank,
        "ilmi": ilmi,
        "uni": text(uni),
        "lecs": text(lecs),
        "policies": policies.iter().map(level).collect::<Vec<_>>(),
        "default": default.map(|elan| &lab.elan(elan).name),
        "quota": map_of(quota),
    })
}

fn of_lec(lab: &Lab, lec: &Lec) -> Value {
    let Lec {
        // Part of the interface's name.
        index: _,
        elan,
        mac,
        address,
        ip,
        v2,
        named,
        llc,
        groups,
        data,
        member,
    } = lec;
    let mut all = json!({
        "interface": lab.interface_name(lec),
        "elan": lab.elan(*elan).name,
        "mac": text(mac),
        "address": text(address),
        "ip": ip.map(text),
        "version": if *v2 { 2 } else { 1 },
        "named": named,
        "llc": llc,
        "groups": groups.as_ref().map(texts),
        "qos": data.map(text),
    });
    if let Some(member) = member {
        all["clip"] = super::subnets::of_member(member);
    }
    all
}

fn routes(routes: &[IpRoute]) -> Map<String, Value> {
    let route = |IpRoute { to, via, lec: _ }: &IpRoute| (text(to), text(via).into());
    named(routes.iter().map(route))
}

fn of_router(lab: &Lab, router: &Router) -> Value {
    let Router {
        attachment: _,
        lecs,
        routes: ways,
        forwarding,
        queue,
        mpoa,
        ilmi,
        uni,
        kernel,
        nic,
    } = router;
    json!({
        "kind": "router",
        "interfaces": lecs.iter().map(|lec| of_lec(lab, lec)).collect::<Vec<_>>(),
        "routes": routes(ways),
        "forwarding_bps": match forwarding {
            Forwarding::BitsPerSecond(bits) => Some(bits),
            _ => None,
        },
        "forwarding_pps": match forwarding {
            Forwarding::PacketsPerSecond(packets) => Some(packets),
            _ => None,
        },
        "forwarding_cells_s": match forwarding {
            Forwarding::CellsPerSecond(cells) => Some(cells),
            _ => None,
        },
        "forwarding_cost": match forwarding {
            Forwarding::Cost(cost) => Some(of_cost(*cost)),
            _ => None,
        },
        "queue_frames": match queue {
            QueueLimit::Packets(packets) => Some(packets),
            _ => None,
        },
        "queue_cells": match queue {
            QueueLimit::Cells(cells) => Some(cells),
            _ => None,
        },
        "queue_octets": match queue {
            QueueLimit::Octets(octets) => Some(octets),
            _ => None,
        },
        "mpoa": mpoa.as_ref().map(of_mps),
        "ilmi": ilmi,
        "uni": text(uni),
        "kernel": kernel,
        "shape": nic.shapes,
    })
}

/// A cost in seconds.
fn of_cost(Cost { packet, octet }: Cost) -> Value {
    let seconds = |picos: u64| picos as f64 / 1e12;
    json!({ "packet_s": seconds(packet), "octet_s": seconds(octet) })
}

fn of_host(lab: &Lab, id: NodeId, host: &Host) -> Value {
    let Host {
        attachment: _,
        lecs,
        vlans,
        routes: ways,
        neighbours,
        mpoa,
        nhrp,
        tcp,
        cpu,
        intake,
        clock,
        ilmi,
        uni,
        kernel,
        nic,
        sockets,
        bridge,
        ethernet: Cable { rate, tagged },
        ports,
    } = host;
    let program = |(index, program): (usize, &Program)| {
        let expect = lab.sockets_expect.get(&(id, index)).copied();
        (
            program.name.clone(),
            of_program(program, &nic.rate_queues, expect),
        )
    };
    // The MAC addresses follow from the order of the file.
    let station = |SegmentHost { name, ip, .. }: &SegmentHost| (name.clone(), text(ip).into());
    let mut ethernet = json!({ "rate_bps": rate, "tag": tagged });
    if let Some(all) = ethernet.as_object_mut().filter(|_| !ports.is_empty()) {
        let ports = ports
            .iter()
            .map(|port| (port.name.clone(), of_port(port, bridge)));
        all.insert("ports".into(), named(ports).into());
    }
    let mut all = json!({
        "kind": "host",
        "interfaces": lecs.iter().map(|lec| of_lec(lab, lec)).collect::<Vec<_>>(),
        "routes": routes(ways),
        "neighbours": named(neighbours.iter().map(|(ip, mac)| (text(ip), text(mac).into()))),
        "mpoa": mpoa.as_deref().map(of_mpc),
        "nhrp": nhrp.as_ref().map(of_nhc),
        "tcp": of_tcp(tcp),
        "ilmi": ilmi,
        "uni": text(uni),
        "kernel": kernel,
        "shape": nic.shapes,
        "sockets": named(sockets.iter().enumerate().map(program)),
        "bridge": named(bridge.iter().map(station)),
        "ethernet": ethernet,
    });
    if let Some(all) = all.as_object_mut().filter(|_| !vlans.is_empty()) {
        let elans = vlans.iter().zip(lecs).map(|(vid, lec)| {
            let elan = lab.elan(lec.elan).name.clone();
            (vid.to_string(), elan.into())
        });
        all.insert("vlans".into(), named(elans).into());
    }
    if let (Some(cpu), Some(all)) = (cpu, all.as_object_mut()) {
        all.insert("cpu".into(), of_cpu(cpu));
    }
    if let (Some(IntakeConfig { rate, buffer }), Some(all)) = (intake, all.as_object_mut()) {
        let (pdus, cells) = match rate {
            IntakeRate::Pdus(pdus) => (Some(pdus), None),
            IntakeRate::Cells(cells) => (None, Some(cells)),
        };
        let intake =
            json!({ "receive_pdus_s": pdus, "receive_cells_s": cells, "buffer_pdus": buffer });
        all.insert("adapter".into(), intake);
    }
    if let Some(all) = all.as_object_mut().filter(|_| !nic.paths.is_empty()) {
        all.insert("paths".into(), named(nic.paths.iter().map(of_path)).into());
    }
    if let Some(all) = all.as_object_mut().filter(|_| !nic.rate_queues.is_empty()) {
        let of = |queue: &RateQueue| {
            let RateQueue { name, pcr, cdvt } = queue;
            let rate = json!({ "pcr": pcr, "cdvt_s": seconds(*cdvt) });
            (name.clone(), rate)
        };
        let rate_queues = named(nic.rate_queues.iter().map(of));
        all.insert("rate_queues".into(), rate_queues.into());
    }
    if let (Some(Clock { phase, ppb }), Some(all)) = (clock, all.as_object_mut()) {
        let clock = json!({ "phase_s": phase.as_secs_f64(), "ppm": f64::from(*ppb) / 1e3 });
        all.insert("clock".into(), clock);
    }
    all
}

fn of_cpu(cpu: &CpuConfig) -> Value {
    let CpuConfig {
        costs,
        order,
        jitter,
        queue,
        manager,
        // Part of the seed of the run.
        seed: _,
    } = cpu;
    let of = |Costs { send, receive, ack }: &Costs| json!({ "send": of_cost(*send), "receive": of_cost(*receive), "ack": ack.map(of_cost) });
    let costs = Encapsulation::ALL.iter().zip(costs);
    let all = json!({
        "costs": named(costs.map(|(over, costs)| (over.name().to_owned(), of(costs)))),
        "service": match order {
            Order::Class => "interrupt-first",
            Order::Arrival => "fair",
        },
        "jitter_ppm": jitter,
        "queue_packets": queue,
    });
    with(all, "manager", manager.map(of_manager))
}

fn of_manager(manager: ManagerConfig) -> Value {
    let ManagerConfig {
        message,
        hand_over,
        release,
        queue,
        sharing,
    } = manager;
    let all = json!({
        "message": of_cost(message),
        "hand_over": of_cost(hand_over),
        "release_ppm": release,
        "queue_pdus": queue,
    });
    with(all, "competing", sharing.map(of_sharing))
}

fn of_sharing(sharing: Sharing) -> Value {
    let Sharing {
        nice,
        competing,
        kernel,
        user,
        life,
    } = sharing;
    json!({
        "programs": competing,
        "nice": nice,
        "kernel_s": kernel.as_secs_f64(),
        "user_s": user.as_secs_f64(),
        "life_s": life.as_secs_f64(),
    })
}

fn of_port(port: &EthernetPort, bridge: &[SegmentHost]) -> Value {
    let EthernetPort {
        name: _,
        cable: Cable { rate, tagged },
        full_duplex,
        queue,
        stations,
        vlans: PortVlans {
            untagged,
            tagged: trunk,
        },
    } = port;
    let names = stations.iter().filter_map(|station| bridge.get(*station));
    let mut all = json!({
        "rate_bps": rate,
        "tag": tagged,
        "full_duplex": full_duplex,
        "queue_frames": queue,
        "stations": names.map(|host| &host.name).collect::<Vec<_>>(),
    });
    if let Some(all) = all.as_object_mut() {
        all.extend(untagged.map(|vid| ("vlan".into(), vid.into())));
        if !trunk.is_empty() {
            all.insert("trunk".into(), trunk.clone().into());
        }
    }
    all
}

/// Congestion control, default buffer, and the parameters that the file gives.
fn of_tcp(tcp: &Tcp) -> Value {
    let Tcp {
        congestion,
        buffer,
        params,
        given: _,
    } = tcp;
    let all = map_of(params).into_iter();
    let given = all.filter(|(name, _)| {
        let mut units = ["", "_s", "_octets"].into_iter();
        units.any(|unit| name.strip_suffix(unit).is_some_and(|key| tcp.has(key)))
    });
    let mut own: Map<String, Value> = given.collect();
    own.insert("congestion".into(), congestion.name().into());
    own.insert("buffer_octets".into(), (*buffer).into());
    own.into()
}

fn of_mpc(mpc: &Mpc) -> Value {
    let Mpc {
        start,
        control,
        data,
        params,
        tag,
        qos,
        // The entries themselves are told.
        shared_qos: _,
        static_mps,
        keys,
    } = mpc;
    let protocols = [(params.ipv4, "ipv4"), (params.ipv6, "ipv6")];
    let protocols = protocols.iter().filter_map(|(on, name)| on.then_some(name));
    let known = |(mac, address): &(MacAddr, AtmAddress)| json!({ "mac": text(mac), "address": text(address) });
    let own = json!({
        "start_s": start.as_secs_f64(),
        "control": text(control),
        "data": text(data),
        "tag": tag,
        "qos": texts(qos),
        "protocols": protocols.collect::<Vec<_>>(),
        "static_mps": static_mps.iter().map(known).collect::<Vec<_>>(),
    });
    with_parameters(with_keys(own, keys), params)
}

/// The keys of a server or client. Secrets are not shown.
fn with_keys(mut own: Value, keys: &Keys) -> Value {
    let Keys {
        signs_as,
        neighbours,
        shortcuts,
        unsigned,
    } = keys;
    own["signed"] = (!neighbours.is_empty()).into();
    own["unsigned"] = (*unsigned).into();
    own["signs_as"] = text(signs_as).into();
    own["shortcut_key"] = shortcuts.as_ref().map(|key| key.spi).into();
    let spi =
        |(address, neighbour): (&AtmAddress, &Neighbour)| (text(address), neighbour.key.spi.into());
    own["keys"] = named(neighbours.iter().map(spi)).into();
    own
}

fn of_mps(mps: &Mps) -> Value {
    let Mps {
        start,
        control,
        params,
        trigger,
        register,
        servers,
        keys,
    } = mps;
    let own = json!({
        "start_s": start.as_secs_f64(),
        "control": text(control),
        "trigger": trigger,
        "register": register,
        "servers": named(servers.iter().map(|(ip, address)| (text(ip), text(address).into()))),
    });
    with_parameters(with_keys(own, keys), params)
}

fn of_nhc(nhc: &Nhc) -> Value {
    let Nhc {
        address,
        server: (server, server_address),
        keys,
        params,
    } = nhc;
    let own = json!({
        "address": text(address),
        "server": text(server),
        "server_address": text(server_address),
        "key": keys.neighbours.get(server_address).map(|known| known.key.spi),
    });
    with_parameters(with_keys(own, keys), params)
}

fn of_role(role: &Role, local: &AtmAddress, sap: &Sap) -> Value {
    match role {
        Role::Listen {
            answer,
            max_sdu,
            calls,
        } => json!({
            "listen": word(answer),
            "address": text(local),
            "sap": debug(sap),
            "max_sdu_octets": max_sdu,
            "calls": calls,
        }),
        Role::Call {
            to,
            qos,
            send,
            hold,
            every,
        } => json!({
            "call": text(to),
            "address": text(local),
            "sap": debug(sap),
            "qos": text(qos),
            "send": of_sending(send),
            "hold_s": seconds(*hold),
            "every_s": every.map(seconds),
        }),
        Role::Permanent {
            vc,
            qos,
            answer,
            send,
        } => json!({
            "vc": text(vc),
            "qos": text(qos),
            "listen": answer.map(word),
            "send": of_sending(send),
        }),
    }
}

fn of_program(program: &Program, rate_queues: &[RateQueue], expect: Option<Expect>) -> Value {
    let Program {
        name: _,
        local,
        sap,
        shaping,
        atp,
        tester,
        role,
    } = program;
    let mut all = of_role(role, local, sap);
    if *tester {
        all["tester"] = true.into();
    }
    if let Some(all) = all.as_object_mut() {
        all.insert("expect".into(), expected(expect).into());
        all.extend(shaping.map(|shaping| of_shaping(shaping, rate_queues)));
        if let Some(atp) = atp {
            all.insert("atp".into(), of_transfer(atp));
        }
    }
    all
}

fn of_transfer(atp: &Transfer) -> Value {
    let Transfer {
        octets,
        message,
        params,
        series,
    } = atp;
    let mut own = json!({
        "profile": word(params.profile),
        "octets": octets,
        "message_octets": message,
    });
    if *series {
        own["series"] = true.into();
    }
    with_parameters(own, params)
}

/// The key that says how an adapter sends calls of a program, and its value.
fn of_shaping(shaping: Shaping, rate_queues: &[RateQueue]) -> (String, Value) {
    match shaping {
        Shaping::Contract => ("shape".into(), true.into()),
        Shaping::Line => ("shape".into(), false.into()),
        Shaping::RateQueue(number) => {
            let queue = rate_queues.get(usize::from(number));
            let name = queue.map(|queue| queue.name.clone());
            ("rate_queue".into(), name.into())
        }
    }
}

fn of_sending(send: &Sending) -> Value {
    let Sending {
        start,
        pdus,
        size,
        pace,
    } = send;
    json!({
        "start_s": start.as_secs_f64(),
        "pdus": pdus,
        "size_octets": size,
        "gap_s": match pace {
            Pace::At(rate) => json!(seconds(rate.after(1))),
            Pace::Line => "line".into(),
        },
    })
}

fn of_outside(outside: &Outside) -> Value {
    let Outside {
        attachment: _,
        way,
        addresses,
        ilmi,
        version,
        trunk,
    } = outside;
    let trunk_of = |trunk: &OutsideTrunk| {
        let OutsideTrunk {
            side,
            prefixes,
            lane,
        } = trunk;
        let side = match side {
            Some(Side::Network) => "network",
            Some(Side::User) => "user",
            None => "auto",
        };
        let prefixes: Vec<_> = prefixes
            .iter()
            .map(|octets| AtmAddress::leading(octets))
            .collect();
        json!({ "side": side, "routes": prefixes, "lane": lane })
    };
    json!({
        "kind": "outside",
        "way": of_way(way),
        "addresses": texts(addresses),
        "ilmi": ilmi,
        "uni": version.map(text),
        "trunk": trunk.as_ref().map(trunk_of),
    })
}

fn of_way(way: &OutsideWay) -> Value {
    match way {
        OutsideWay::AtmTcpListen { at, from } => {
            json!({ "atmtcp": { "listen": text(at), "from": from.map(text) } })
        }
        OutsideWay::AtmTcpConnect { to } => json!({ "atmtcp": { "connect": to } }),
        OutsideWay::Udp {
            local,
            peer,
            packing,
        } => {
            json!({ "udp": { "local": text(local), "peer": text(peer), "packing": of_packing(packing) } })
        }
        OutsideWay::Ethernet {
            interface,
            peer,
            packing,
        } => {
            json!({ "ethernet": { "interface": interface, "peer": text(peer), "packing": of_packing(packing) } })
        }
        OutsideWay::Mpls(mpls) => json!({ "mpls": pseudowires::of_mpls(mpls) }),
        OutsideWay::L2tp(l2tp) => json!({ "l2tp": pseudowires::of_l2tp(l2tp) }),
    }
}

fn of_packing(packing: &Packing) -> Value {
    match packing {
        Packing::One => json!({ "cells": 1 }),
        Packing::Many { cells, wait, word } => {
            json!({ "cells": cells, "wait_s": seconds(*wait), "word": word })
        }
    }
}
