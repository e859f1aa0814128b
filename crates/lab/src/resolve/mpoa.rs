//! MPOA parameters: those of the lab, overridden by those of a host or router.
//!
//! `mpoa: false` for the lab turns MPOA off everywhere except on nodes with `mpoa: true`; a node's block of parameters
//! alone does not turn it on again. If the lab has no `mpoa:`, such a block does turn it on.

use crate::diag::{Diagnostics, Span};
use crate::file::{MpoaFile, MpoaParams};
use crate::model::{Mpc, Mps};
use crate::parameter::{Given, with};
use crate::plan;
use aerostat_proto::Duration;
use aerostat_proto::mpoa::mpc::MpcLimits;
use aerostat_proto::mpoa::mps::MpsParams;
use aerostat_proto::mpoa::params::MpcParams;
use aerostat_proto::nhrp::auth::Keys;
use aerostat_proto::parameters::Parameters;
use aerostat_wire::counted;
use aerostat_wire::mpoa::QosEntry;
use aerostat_wire::{AtmAddress, MacAddr};

/// The blocks that apply to one node, the node's own first; `None` if MPOA is off there.
fn blocks<'a>(
    lab: Option<&'a MpoaFile>,
    node: Option<&'a MpoaFile>,
) -> Option<Vec<&'a MpoaParams>> {
    let on = match (node, lab) {
        (Some(MpoaFile::Switch(on)), _) => on.value,
        (Some(MpoaFile::Params(_)), None) | (_, Some(MpoaFile::Params(_))) => true,
        (_, Some(MpoaFile::Switch(on))) => on.value,
        (None, None) => false,
    };
    let params = |file: Option<&'a MpoaFile>| match file {
        Some(MpoaFile::Params(params)) => Some(&**params),
        _ => None,
    };
    on.then(|| [params(node), params(lab)].into_iter().flatten().collect())
}

fn start(blocks: &[&MpoaParams]) -> Duration {
    blocks
        .iter()
        .find_map(|block| block.start.as_ref())
        .map_or(Duration::ZERO, |start| start.value.0)
}

/// Keys of clients in a notation of their own.
const OF_CLIENTS: [&str; 5] = ["flow_detect", "tag", "qos", "protocols", "static_mps"];

/// Reports parameters of the other role in a node's own block.
fn foreign(node: Option<&MpoaFile>, server: bool, d: &mut Diagnostics) {
    let Some(MpoaFile::Params(p)) = node else {
        return;
    };
    let of_client = |name: &str| has(&MpcParams::DEFAULT, name) || OF_CLIENTS.contains(&name);
    let of_server = |name: &str| has(&MpsParams::DEFAULT, name) || name == "trigger";
    let (role, place) = match server {
        true => ("client", "a host"),
        false => ("server", "a router"),
    };
    let others = p.given.iter().filter(|(name, _)| match server {
        true => of_client(name) && !of_server(name),
        false => of_server(name) && !of_client(name),
    });
    for (name, at) in others {
        d.error(at, format!("{name} is a parameter of the MPOA {role}"))
            .hint(format!("give it to {place} or to the lab"));
    }
}

/// True if one of the parameters is called so.
fn has(params: &impl Parameters, name: &str) -> bool {
    let mut all = params.with_ranges().into_iter();
    all.any(|parameter| parameter.name == name)
}

/// The QoS entries of the first block that has entries.
fn qos(blocks: &[&MpoaParams], d: &mut Diagnostics) -> Vec<QosEntry> {
    let given = blocks.iter().find_map(|block| block.qos.as_ref());
    let mut entries: Vec<QosEntry> = Vec::new();
    for entry in given.into_iter().flatten() {
        let new = entry.value.0;
        let told = d.iter().any(|finding| finding.at == entry.at);
        if entries.iter().any(|known| known.filter == new.filter) && !told {
            d.error(entry.at, format!("two entries for {}", new.filter));
        }
        if entries.len() >= MpcLimits::default().qos && !told {
            let most = MpcLimits::default().qos;
            d.error(entry.at, format!("a client takes {most} QoS entries"));
            break;
        }
        if !told {
            short_sdu(entry.at, &new, d);
        }
        entries.push(new);
    }
    entries
}

/// Octets of the smallest packet of a shortcut: an IP header behind LLC/SNAP. Source: RFC 791, RFC 1483.
const SMALLEST_SDU: u16 = 20 + 8;

/// Warns of an entry whose SDU no packet fits into.
fn short_sdu(at: Span, entry: &QosEntry, d: &mut Diagnostics) {
    let sizes = [entry.qos.tx, entry.qos.rx].map(|traffic| traffic.max_sdu);
    if let Some(size) = sizes.into_iter().find(|size| *size < SMALLEST_SDU) {
        let size = counted(size, "octet", "octets");
        let text = format!("no packet fits into an SDU of {size}");
        d.warning(at, text).hint(format!(
            "the smallest IP packet has {SMALLEST_SDU} octets with LLC/SNAP, 32 with a tag"
        ));
    }
}

/// MPC-p1 to p6.
fn client_params(blocks: &[&MpoaParams]) -> MpcParams {
    let mut params = with(MpcParams::DEFAULT, given(blocks));
    if let Some(rule) = blocks.iter().find_map(|block| block.flow_detect.as_ref()) {
        (params.flow_frames, params.flow_time) = rule.value.0;
    }
    if given(blocks).all(|block| block.at("hold_down").is_none()) {
        params.hold_down = params.retry_max * 4;
    }
    if let Some(given) = blocks.iter().find_map(|block| block.protocols.as_ref()) {
        let has = |six| given.iter().any(|one| one.value.0 == six);
        (params.ipv4, params.ipv6) = (has(false), has(true));
    }
    params
}

fn given<'a>(blocks: &'a [&MpoaParams]) -> impl DoubleEndedIterator<Item = &'a Given> {
    blocks.iter().map(|block| &block.given)
}

/// MPS-p1 to p7.
fn server_params(blocks: &[&MpoaParams], d: &mut Diagnostics) -> MpsParams {
    let params = with(MpsParams::DEFAULT, given(blocks));
    let place = given(blocks).find_map(|block| {
        let lifetime = block.at("keepalive_lifetime");
        lifetime.or(block.at("keepalive_time"))
    });
    if let Some(at) = place
        && params.keepalive_lifetime < params.keepalive_time * 3
        && !d.iter().any(|finding| finding.at == at)
    {
        let found = d.error(at, "keepalive_lifetime is less than 3 times keepalive_time");
        for block in blocks {
            found.rests_in(block.place, ["keepalive_time", "keepalive_lifetime"]);
        }
    }
    params.in_whole_seconds()
}

/// The servers of the first block that has servers.
fn static_mps(blocks: &[&MpoaParams], d: &mut Diagnostics) -> Vec<(MacAddr, AtmAddress)> {
    let given = blocks.iter().find_map(|block| block.static_mps.as_ref());
    let most = MpcLimits::default().mps;
    let mut servers: Vec<(MacAddr, AtmAddress)> = Vec::new();
    for (n, one) in given.into_iter().flatten().enumerate() {
        let (mac, at) = (one.mac.value.0, one.mac.at);
        let told = d.iter().any(|finding| finding.at == at);
        if (mac.is_group() || mac.0 == [0; 6]) && !told {
            d.error(at, "this is no station's MAC address");
        } else if servers.iter().any(|known| known.0 == mac) && !told {
            d.error(at, format!("{mac} stands here twice"));
        } else if n == most && !told {
            d.error(at, format!("a client knows at most {most} MPOA servers"));
        }
        if n < most {
            servers.push((mac, one.address.value.0));
        }
    }
    servers
}

/// The MPOA client of a host with the address `address` (selector 0).
pub(super) fn client(
    lab: Option<&MpoaFile>,
    node: Option<&MpoaFile>,
    address: AtmAddress,
    d: &mut Diagnostics,
) -> Option<Mpc> {
    foreign(node, false, d);
    let blocks = blocks(lab, node)?;
    let params = client_params(&blocks);
    let qos = qos(&blocks, d);
    let static_mps = static_mps(&blocks, d);
    Some(Mpc {
        start: start(&blocks),
        control: address.with_selector(plan::SELECTOR_MPC_CONTROL),
        data: address.with_selector(plan::SELECTOR_MPC_DATA),
        params,
        tag: blocks
            .iter()
            .find_map(|block| block.tag.as_ref())
            .is_some_and(|tag| tag.value),
        qos,
        shared_qos: !matches!(node, Some(MpoaFile::Params(own)) if own.qos.is_some()),
        static_mps,
        keys: Keys::default(),
    })
}

/// The MPOA server of a router with the address `address` (selector 0). With `nhrp` there is a server even if MPOA is
/// off, as NHRP server of a Classical IP subnet.
pub(super) fn server(
    lab: Option<&MpoaFile>,
    node: Option<&MpoaFile>,
    address: AtmAddress,
    nhrp: bool,
    d: &mut Diagnostics,
) -> Option<Mps> {
    foreign(node, true, d);
    let blocks = &blocks(lab, node).or(nhrp.then(Vec::new))?;
    Some(Mps {
        start: start(blocks),
        control: address.with_selector(plan::SELECTOR_MPS_CONTROL),
        params: server_params(blocks, d),
        trigger: (blocks.iter().find_map(|block| block.trigger.as_ref()))
            .is_some_and(|trigger| trigger.value),
        register: false,
        servers: std::collections::BTreeMap::new(),
        keys: Keys::default(),
    })
}
