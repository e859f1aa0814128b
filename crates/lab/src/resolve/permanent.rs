//! Classical IP subnets, and permanent connections with their way through the switches.

use super::{Class, Names, atm};
use crate::diag::Diagnostics;
use crate::field::At;
use crate::file::{LabFile, LisFile, PvcFile};
use crate::model::{Elan, Hop, Lab, Lis, NodeId, NodeKind, Pvc};
use crate::plan;
use aerostat_proto::Duration;
use aerostat_wire::lane::MaxFrameSize;
use aerostat_wire::{AtmAddress, Qos, Vc};

/// Largest SDU of permanent connections: whatever AAL5 carries. Who uses one keeps to an MTU of its own.
const MAX_SDU: u16 = u16::MAX;
/// First VCI on links between switches: above those that signalling hands out.
const FIRST_TRUNK_VCI: u16 = 8192;

/// Appends the subnets to those of LANE.
pub(super) fn subnets(file: &LabFile, lab: &mut Lab, d: &mut Diagnostics) {
    let Some(table) = &file.clip else {
        return;
    };
    for (name, lis) in &table.0 {
        if lab.elans.iter().any(|elan| elan.name == name.value.0) {
            d.error(
                name.at,
                format!("two subnets with one name: {}", name.value.0),
            );
        }
        let subnet = lis.subnet.value.0;
        if lab.elans.iter().any(|elan| elan.subnet.overlaps(subnet)) {
            d.error(lis.subnet.at, "this subnet overlaps with another");
        }
        let mtu = lis.mtu.as_ref().map_or(9180, At::get);
        if let Some(given) = lis.mtu.as_ref().filter(|_| !(68..=65_521).contains(&mtu)) {
            d.error(
                given.at,
                "an MTU of Classical IP is 68 to 65521 octets here",
            );
        }
        lab.elans.push(Elan {
            name: name.value.0.clone(),
            id: 0,
            subnet,
            max_frame: MaxFrameSize::UNSPECIFIED,
            les: AtmAddress::ZERO,
            bus: AtmAddress::ZERO,
            clip: Some(Lis {
                mtu: mtu.try_into().unwrap_or(u16::MAX),
                server: None,
                servers: lis
                    .servers
                    .iter()
                    .flat_map(|list| &list.0)
                    .map(|a| a.value.0)
                    .collect(),
                idle: lis
                    .idle
                    .as_ref()
                    .map_or(Duration::from_secs(1200), |idle| idle.value.0),
            }),
        });
    }
}

/// Finds the servers of the subnets among the nodes.
pub(super) fn servers(file: &LabFile, names: &Names, lab: &mut Lab, d: &mut Diagnostics) {
    for (name, lis) in file.clip.iter().flat_map(|table| &table.0) {
        let Some(at) = lab.elans.iter().position(|elan| elan.name == name.value.0) else {
            continue;
        };
        let LisFile { server, .. } = lis;
        let Some(server) = server else {
            continue;
        };
        let wanted = [Class::Host, Class::Router];
        let Some(id) = names.find(server, &wanted, "a host or router", d) else {
            continue;
        };
        let on_it = lab.node(id).lecs().iter().find(|lec| lec.elan.0 == at);
        let Some(address) = on_it.map(|lec| lec.address) else {
            d.error(
                server.at,
                format!("{} is not on {}", server.value, name.value.0),
            );
            continue;
        };
        if let Some(lis) = &mut lab.elans[at].clip {
            lis.server = Some(id);
            lis.servers.insert(0, address);
        }
    }
}

/// Routes the permanent connections, each on its own labels.
pub(super) fn connections(file: &LabFile, names: &Names, lab: &mut Lab, d: &mut Diagnostics) {
    let mut trunk_vci = FIRST_TRUNK_VCI;
    for file in file.pvcs.iter().flatten() {
        let wanted = [Class::Host, Class::Router, Class::Outside];
        let from = names.find(&file.from, &wanted, "an end system", d);
        let to = names.find(&file.to, &wanted, "an end system", d);
        let (Some(from), Some(to)) = (from, to) else {
            continue;
        };
        if let Some(pvc) = connection(file, lab, [from, to], &mut trunk_vci, d) {
            lab.pvcs.push(pvc);
        }
    }
}

fn connection(
    file: &PvcFile,
    lab: &Lab,
    [from, to]: [NodeId; 2],
    trunk_vci: &mut u16,
    d: &mut Diagnostics,
) -> Option<Pvc> {
    let vc = file.vc.value.0;
    let there = file.to_vc.as_ref().map_or(vc, |vc| vc.value.0);
    for (node, vc) in [(from, vc), (to, there)] {
        let twice = lab.pvcs.iter().any(|pvc| pvc.ends.contains(&(node, vc)));
        if twice || (from, vc) == (to, there) {
            let text = format!("{} has {vc} in use already", lab.node(node).name);
            d.error(file.place, text);
            return None;
        }
    }
    let [a, b] = [from, to].map(|id| lab.node(id).attachment());
    let (a, b) = (a?, b?);
    let mut hops = Vec::new();
    let (mut at, mut came) = (a.switch, (a.port, vc));
    while at != b.switch {
        let Some(&(port, _)) = atm::ways(lab, at).get(&b.switch) else {
            d.error(file.place, "no path between the two ends");
            return None;
        };
        let label = Vc::new(0, *trunk_vci);
        *trunk_vci += 1;
        hops.push(Hop {
            switch: at,
            from: came,
            to: (port, label),
        });
        let NodeKind::Switch(switch) = &lab.node(at).kind else {
            return None;
        };
        let [one, other] = lab.link(switch.ports[port].link).ends;
        let far = if one.node == at { other } else { one };
        (at, came) = (far.node, (far.port, label));
    }
    hops.push(Hop {
        switch: at,
        from: came,
        to: (b.port, there),
    });
    let qos = match file.pcr.as_ref().map(At::get) {
        None => Qos::ubr(MAX_SDU),
        Some(pcr) => Qos::cbr(pcr.try_into().unwrap_or(u32::MAX), MAX_SDU),
    };
    Some(Pvc {
        ends: [(from, vc), (to, there)],
        hops,
        qos,
        mux: file.mux.as_ref().is_some_and(At::get),
        peer: file.peer.as_ref().map(|peer| peer.value.0),
    })
}

/// Keeps labels that signalling uses out of permanent connections.
pub(crate) fn label(text: &str) -> Result<Vc, String> {
    let parts = text.split_once('.');
    let numbers = parts.and_then(|(vpi, vci)| Some((vpi.parse().ok()?, vci.parse().ok()?)));
    match numbers {
        Some((0, vci @ plan::FIRST_VCI..)) => Ok(Vc::new(0, vci)),
        _ => Err("expected VPI.VCI, with VPI 0 and a VCI from 32, such as 0.100".to_owned()),
    }
}
