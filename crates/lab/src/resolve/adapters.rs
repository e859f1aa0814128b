//! Adapters of hosts and routers: whether they shape connections, alone, in paths or in rate queues.

use super::queues::{self, ShapedPath};
use super::rate_queues;
use super::stage::Connecting;
use crate::diag::Diagnostics;
use crate::file::{LabFile, PvcFile, SocketFile};
use crate::model::{Host, Lab, NodeId, NodeKind, Pvc, Router};
use aerostat_node::atm::shaper::Shaper;
use aerostat_node::atm::{NicConfig, Shaping};
use aerostat_node::host::sockets::programs::Role;
use aerostat_node::switch::guaranteed;
use aerostat_wire::TrafficParams;

/// The adapter of a host or router, as its key `shape` says.
pub(super) fn of_node(shapes: bool) -> NicConfig {
    NicConfig {
        shapes,
        ..NicConfig::default()
    }
}

/// The adapter of a node of the lab; `None` if the node has none that a file configures.
fn adapter<'a>(lab: &'a mut Connecting<'_>, id: NodeId) -> Option<&'a mut NicConfig> {
    match &mut lab.nodes_mut()[id.0].kind {
        NodeKind::Host(Host { nic, .. }) | NodeKind::Router(Router { nic, .. }) => Some(nic),
        _ => None,
    }
}

/// Tells the adapters at both ends what a permanent connection asks of them.
pub(super) fn of_connection(pvc: &Pvc, lab: &mut Connecting<'_>) {
    for (id, vc) in pvc.ends {
        let Some(nic) = adapter(lab, id) else {
            continue;
        };
        let queue = pvc.rate_queue.as_ref();
        let queue = queue.and_then(|name| nic.rate_queue(name));
        let shaping = queue
            .map(Shaping::RateQueue)
            .or(pvc.shape.map(Shaping::by_contract));
        if let Some(shaping) = shaping {
            nic.shapes_of.insert(vc, shaping);
        }
    }
}

/// Checks the shaped paths and the rate queues of adapters: their links carry them, and they carry what their
/// connections guarantee.
pub(super) fn paths(file: &LabFile, lab: &Lab, d: &mut Diagnostics) {
    for (name, host) in &file.hosts.0 {
        let given = host.adapter.as_ref().and_then(|all| all.paths.as_ref());
        let any = given.is_some() || !rate_queues::files(host).is_empty();
        let id = any.then(|| lab.find(&name.value.0)).flatten();
        let link = id.and_then(|id| Some(lab.node(id).attachment()?.link));
        let (Some(id), Some(link)) = (id, link) else {
            continue;
        };
        let mut shaped = given.map_or_else(Vec::new, |given| queues::named("path", given));
        let words = ["rate queues", "paths and rate queues"];
        let all = words[usize::from(!shaped.is_empty())];
        let rates = rate_queues::files(host).iter();
        shaped.extend(rates.map(|(name, file)| ShapedPath {
            name: format!("rate queue {}", name.value.0),
            kind: all.to_owned(),
            file,
        }));
        let files = shaped.iter().map(|path| path.file);
        for at in files.filter_map(queues::takes_calls) {
            d.error(at, "'calls' stands at tunnels of links between switches")
                .hint(
                    "calls of a program are in a rate queue with 'rate_queue: NAME' of the program",
                );
        }
        queues::carries(lab, link, shaped, d);
        rate_queues::check((&name.value.0, host), id, lab, d);
        for (vpi, path) in given.iter().flat_map(|given| &given.0) {
            let ends = lab.pvcs.iter().flat_map(|pvc| {
                let sent = [pvc.qos.tx, pvc.qos.rx];
                pvc.ends.into_iter().zip(sent)
            });
            let mut inside = ends.filter(|((at, vc), _)| *at == id && vc.vpi == vpi.value.0);
            let name = &name.value.0;
            let Some((_, first)) = inside.next() else {
                let text = format!("no permanent connection of {name} has VPI {}", vpi.value.0);
                d.warning(vpi.at, text).hint(format!(
                    "pvcs: [{{ from: {name}, vc: {}.100, to: NODE }}]",
                    vpi.value.0
                ));
                continue;
            };
            let rest: u64 = inside.map(|(_, sent)| guaranteed(sent)).sum();
            let sum = rest.saturating_add(guaranteed(first));
            let pcr = path.pcr.value.0;
            if sum > pcr {
                let text = format!(
                    "path {} of {name} cannot guarantee {sum} cells/s: its peak rate is {pcr}",
                    vpi.value.0
                );
                d.error(path.pcr.at, text)
                    .hint(
                        "a path is at least as wide as the guarantees of its connections together",
                    )
                    .rests_on(["pvcs"]);
            }
        }
    }
}

/// True if an adapter could shape such traffic.
fn has_rate(traffic: &TrafficParams) -> bool {
    Shaper::new(traffic).is_some()
}

/// Warns of a key `shape` of a permanent connection that changes nothing.
pub(super) fn useless_shape(file: &PvcFile, lab: &Lab, pvc: &Pvc, d: &mut Diagnostics) {
    let Some(given) = &file.shape else {
        return;
    };
    let sent = pvc.ends.iter().zip([pvc.qos.tx, pvc.qos.rx]);
    let mut of_lab =
        sent.filter(|((id, _), _)| !matches!(lab.node(*id).kind, NodeKind::Outside(_)));
    let (text, hint) = match of_lab.clone().next() {
        None => (
            "'shape' has no effect: both ends are out of the lab",
            "queue: { shape: true } makes switches shape it",
        ),
        Some(_) if !of_lab.any(|(_, traffic)| has_rate(&traffic)) => (
            "'shape' has no effect: what its ends send has no rate in the contract",
            "pcr: 10000, or qos: 'cbr:max_pcr=10000', gives it one",
        ),
        Some(_) => return,
    };
    d.warning(given.at, text).hint(hint);
}

/// Warns of a key `shape` of a program whose calls have no rate.
pub(super) fn useless_shape_of(file: &SocketFile, role: &Role, d: &mut Diagnostics) {
    let (Some(given), Role::Call { qos, .. }) = (&file.shape, role) else {
        return;
    };
    if !has_rate(&qos.tx) {
        let text = "'shape' has no effect: what the caller sends has no rate in the contract";
        d.warning(given.at, text)
            .hint("qos: 'cbr,aal5:pcr=10000' gives it one");
    }
}

#[cfg(test)]
mod tests {
    use crate::resolve::tests::{lab, shapings, told, with_x as with};
    use aerostat_node::atm::Shaping;
    use aerostat_wire::Vc;

    #[test]
    fn both_adapters_know_what_a_connection_says_by_their_own_labels() {
        let text = with(
            "",
            "pvcs: [{ from: x, vc: 0.40, to: y, to_vc: 0.41, pcr: 9, shape: false }, { from: x, vc: 0.42, to: y, pcr: 9 }]",
        );
        let lab = lab(&text);
        assert_eq!(shapings(&lab, "x"), [(Vc::new(0, 40), Shaping::Line)]);
        assert_eq!(shapings(&lab, "y"), [(Vc::new(0, 41), Shaping::Line)]);
    }

    #[test]
    fn a_key_without_effect_is_told() {
        let pvc = |pvc: &str| with("", &format!("pvcs: [{pvc}]"));
        let program = |program: &str| with(&format!("sockets: [{program}]"), "");
        for (text, says) in [
            (
                pvc("{ from: x, vc: 0.40, to: y, shape: false }"),
                "'shape' has no effect: what its ends send has no rate",
            ),
            (
                pvc("{ from: x, vc: 0.40, to: y, qos: 'ubr:tx:max_pcr=9', shape: false }"),
                "",
            ),
            (
                program("{ call: y, shape: false }"),
                "'shape' has no effect: what the caller sends has no rate",
            ),
            (
                program("{ call: y, qos: 'cbr,aal5:pcr=9', shape: false }"),
                "",
            ),
            (program("{ listen: sink, shape: false }"), ""),
        ] {
            let told = told(&text);
            match says {
                "" => assert!(!told.contains("shape"), "{text}: {told}"),
                says => assert!(told.contains(says), "{text}: {told}"),
            }
        }
    }

    #[test]
    fn paths_of_an_adapter() {
        let pvc = "pvcs: [{ from: x, vc: 5.40, to: y, to_vc: 0.40, pcr: 900 }, { from: y, vc: 0.41, to: x, to_vc: 5.41, pcr: 200 }]";
        for (adapter, rest, says) in [
            ("{ paths: { 5: { pcr: 1100 } } }", pvc, ""),
            (
                "{ paths: { 5: { pcr: 1099 } } }",
                pvc,
                "path 5 of x cannot guarantee 1100 cells/s",
            ),
            (
                "{ paths: { 5: { pcr: 0 } } }",
                pvc,
                "a peak rate is at least 1 cell/s",
            ),
            (
                "{ paths: { 5: { pcr: 2000, cdvt: 2s } } }",
                pvc,
                "cdvt is 0s to 1s",
            ),
            (
                "{ paths: { 5: { pcr: 400000 } } }",
                pvc,
                "cannot carry path 5: the paths need 400000 cells/s",
            ),
            (
                "{ paths: { 6: { pcr: 1000 } } }",
                pvc,
                "no permanent connection of x has VPI 6",
            ),
            ("{ paths: { 0: { pcr: 1000 } } }", pvc, "VPI"),
            (
                "{}",
                pvc,
                "an adapter has 'receive' and 'buffer', or 'paths', or 'rate_queues'",
            ),
            (
                "{ receive: 400pdus/s }",
                pvc,
                "an adapter has 'receive' and 'buffer'",
            ),
        ] {
            let text = with(&format!("adapter: {adapter}"), rest);
            let told = told(&text);
            match says {
                "" => assert!(!told.contains("path"), "{told}"),
                says => assert!(told.contains(says), "{adapter}: {told}"),
            }
        }
    }

    #[test]
    fn a_program_on_a_permanent_connection_is_told_where_the_key_stands() {
        let text = with(
            "sockets: [{ vc: 0.40, listen: sink, shape: false }]",
            "pvcs: [{ from: x, vc: 0.40, to: y, pcr: 9 }]",
        );
        assert!(
            told(&text).contains("'shape' is for calls"),
            "{}",
            told(&text)
        );
    }
}
