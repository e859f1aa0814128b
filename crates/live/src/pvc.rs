//! Permanent connections of a running lab, set up and removed on request.
//!
//! A request concerns one switch, as for operators of switches. A host or router at an end of a new connection sends by
//! its contract. Connections that are set up here are lost when the switch restarts; those of the lab file come back
//! then.

use crate::control::{Answer, PvcPolice};
use crate::site::Site;
use aerostat_lab::model::{NodeId, NodeKind};
use aerostat_node::atm::Policing;
use aerostat_node::inspect::Table;
use aerostat_node::switch::{ConnectionQueue, Permanent, PermanentError, PortNo, Switch};
use aerostat_proto::Instant;
use aerostat_wire::{Qos, Vc};

/// A requested connection; see [`crate::control::Request::PvcAdd`].
pub(crate) struct Wanted<'a> {
    pub(crate) ends: &'a [String; 2],
    pub(crate) qos: &'a str,
    pub(crate) path: bool,
    pub(crate) police: Option<PvcPolice>,
}

/// Sets up a connection; returns its row.
pub(crate) fn add(
    site: &mut Site<'_>,
    (node, name): (NodeId, &str),
    wanted: &Wanted<'_>,
    now: Instant,
) -> Result<Table, Answer> {
    let switch = switch(site, node, name)?;
    let [a, b] = wanted.ends;
    let ends = [end(switch, a, wanted.path)?, end(switch, b, wanted.path)?];
    let qos = Qos::from_request(wanted.qos).map_err(|error| {
        Answer::error(
            format!("'{}': {error}", wanted.qos),
            "for example cbr:max_pcr=2000, or cbr:tx:max_pcr=2000,rx:max_pcr=100",
        )
    })?;
    // Somebody who asks for a policer does not want less than the port has.
    let police = ends.map(|(port, _)| {
        wanted.police.map(|police| match police {
            PvcPolice::False => Policing::Off,
            PvcPolice::True => switch.policing(port).max(Policing::Guaranteed),
            PvcPolice::All => Policing::All,
        })
    });
    let new = Permanent {
        queue: ConnectionQueue::DEFAULT,
        ends,
        qos,
        path: wanted.path,
        police,
    };
    match switch.add_permanent(new) {
        Ok(()) => {
            let table = switch.permanent_table(Some(ends[0]));
            if !new.path {
                site.world.contract(node, (ends, qos), now);
            }
            Ok(table)
        }
        Err(error) => {
            let hint = match error {
                PermanentError::NoPort(_) => ports(switch),
                PermanentError::Label(..) => format!(
                    "VCIs from 32, paths from VPI 1, VPIs to 255; 'aerostat inspect {name} vc' shows what is in use"
                ),
                PermanentError::Rate(_) => {
                    format!("'aerostat inspect {name} port' shows what is reserved")
                }
                PermanentError::Full(..) => {
                    "the key 'calls' of limits.port raises the limit; the lab must be started again"
                        .into()
                }
            };
            Err(Answer::error(format!("{name}: {error}"), hint))
        }
    }
}

/// Removes a connection; returns its last row.
pub(crate) fn remove(
    site: &mut Site<'_>,
    (node, name): (NodeId, &str),
    text: &str,
) -> Result<Table, Answer> {
    let switch = switch(site, node, name)?;
    // A path is named without a VCI.
    let path = text.split('.').count() == 2;
    let (port, vc) = end(switch, text, path)?;
    let known = switch.permanent().find_map(|info| {
        let Permanent { ends, path: of, .. } = info.connection;
        let same = |(at, label): &&(PortNo, Vc)| {
            of == path && *at == port && label.vpi == vc.vpi && (path || label.vci == vc.vci)
        };
        ends.iter().find(same).copied()
    });
    let Some(end) = known else {
        return Err(Answer::error(
            format!("{name} has no permanent connection at {text}"),
            format!("'aerostat pvc show {name}' lists them"),
        ));
    };
    let table = switch.permanent_table(Some(end));
    switch.remove_permanent(end);
    Ok(table)
}

fn switch<'d>(site: &'d mut Site<'_>, node: NodeId, name: &str) -> Result<&'d mut Switch, Answer> {
    let lab = site.lab;
    if !matches!(lab.node(node).kind, NodeKind::Switch(_)) {
        let names: Vec<&str> = lab.switches().map(|(_, node, _)| &*node.name).collect();
        return Err(Answer::error(
            format!("{name} is no switch"),
            format!("switches: {}", names.join(", ")),
        ));
    }
    let switch = site.world.switch_mut(node);
    switch.ok_or_else(|| Answer::error(format!("{name} is down"), ""))
}

/// `PORT.VPI.VCI`, or `PORT.VPI` of a path.
fn end(switch: &Switch, text: &str, path: bool) -> Result<(PortNo, Vc), Answer> {
    let mut parts = text.split('.');
    let port = parts.next().unwrap_or_default();
    let mut number = || parts.next()?.parse::<u16>().ok();
    let vpi = number();
    let vci = if path { Some(0) } else { number() };
    let (Some(vpi), Some(vci), None) = (vpi, vci, parts.next()) else {
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit());
        let numbers = text.split('.').skip(1);
        let (right, large) = numbers.fold((0, None), |(count, large), part| {
            let number = part.parse::<u16>().ok();
            let large = large.or_else(|| (digits(part) && number.is_none()).then_some(part));
            (count + usize::from(digits(part)), large)
        });
        if let Some(number) = large.filter(|_| right == if path { 1 } else { 2 }) {
            return Err(Answer::error(
                format!("'{text}': {number} is too large: VPIs go to 255, VCIs to 65535"),
                "",
            ));
        }
        let form = if path { "PORT.VPI" } else { "PORT.VPI.VCI" };
        return Err(Answer::error(
            format!("'{text}': expected {form}"),
            ports(switch),
        ));
    };
    let named: Vec<PortNo> = switch
        .port_infos()
        .filter(|info| info.name == port)
        .map(|info| info.port)
        .collect();
    let port = match (&named[..], port.parse()) {
        ([one], _) => *one,
        ([], Ok(number)) => PortNo(number),
        ([], Err(_)) => {
            return Err(Answer::error(
                format!("there is no port '{port}'"),
                ports(switch),
            ));
        }
        _ => {
            return Err(Answer::error(
                format!("several ports lead to '{port}'"),
                format!("take the number: {}", ports(switch)),
            ));
        }
    };
    Ok((port, Vc::new(vpi, vci)))
}

fn ports(switch: &Switch) -> String {
    let all = switch.port_infos();
    let all: Vec<String> = all
        .map(|info| format!("{} ({})", info.port, info.name))
        .collect();
    format!("ports: {}", all.join(", "))
}
