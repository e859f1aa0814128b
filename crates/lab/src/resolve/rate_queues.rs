//! Rate queues of the adapters of hosts: which connections and calls are in them, and whether they carry what these
//! guarantee.

use super::queues;
use crate::diag::Diagnostics;
use crate::field::{At, Optional as _};
use crate::file::{HostFile, Name, PvcFile, SocketFile, TunnelFile};
use crate::model::{Host, Lab, NodeId, NodeKind, Pvc};
use aerostat_node::atm::{NicConfig, RateQueue, Shaping};
use aerostat_node::host::sockets::programs::Role;
use aerostat_node::switch::guaranteed;

/// Rate queues that an adapter has at most.
const MOST: usize = 256;

/// The rate queues of a host's adapter.
pub(super) fn of_host(host: &HostFile) -> Vec<RateQueue> {
    let of = |(name, file): &(At<Name>, TunnelFile)| {
        let (pcr, cdvt) = queues::rate(file);
        let name = name.value.0.clone();
        RateQueue { name, pcr, cdvt }
    };
    files(host).iter().map(of).collect()
}

/// The same as the file has them.
pub(super) fn files(host: &HostFile) -> &[(At<Name>, TunnelFile)] {
    let given = host
        .adapter
        .as_ref()
        .and_then(|all| all.rate_queues.as_ref());
    given.map_or(&[], |table| &table.0)
}

/// The adapter of an end, for reading.
fn adapter(lab: &Lab, id: NodeId) -> Option<&NicConfig> {
    match &lab.node(id).kind {
        NodeKind::Host(Host { nic, .. }) => Some(nic),
        _ => None,
    }
}

/// Both keys say how the adapter sends.
fn contradicts(shape: Option<&At<bool>>, d: &mut Diagnostics) {
    if let Some(shape) = shape {
        d.error(shape.at, "'shape' and 'rate_queue' contradict each other")
            .hint("a connection in a rate queue is shaped with the others in it, not by itself");
    }
}

fn unknown(queue: &At<String>, text: String, known: &[&RateQueue], d: &mut Diagnostics) {
    let names: Vec<_> = known.iter().map(|queue| &queue.name[..]).collect();
    let hint = match names[..] {
        [] => format!(
            "adapter: {{ rate_queues: {{ {}: {{ pcr: 20000 }} }} }} at a host makes it",
            queue.value
        ),
        _ => format!("there are: {}", names.join(", ")),
    };
    d.error(queue.at, text)
        .hint(hint)
        .rests_on(["hosts/*/adapter"]);
}

/// Refuses a rate queue of a permanent connection that no adapter at its ends has, or that contradicts other keys.
pub(super) fn of_connection(file: &PvcFile, lab: &Lab, pvc: &Pvc, d: &mut Diagnostics) {
    let Some(queue) = &file.rate_queue else {
        return;
    };
    contradicts(file.shape.as_ref(), d);
    let ends = pvc.ends.into_iter();
    let ends = ends.filter_map(|(id, vc)| Some((id, vc, adapter(lab, id)?)));
    let known: Vec<_> = ends
        .clone()
        .flat_map(|(.., nic)| &nic.rate_queues)
        .collect();
    if known.iter().all(|one| one.name != queue.value) {
        let text = format!("no adapter at its ends has a rate queue '{}'", queue.value);
        return unknown(queue, text, &known, d);
    }
    for (id, vc, nic) in ends {
        let in_path = nic.paths.iter().any(|path| path.vpi == vc.vpi);
        if in_path && nic.rate_queue(&queue.value).is_some() {
            let name = &lab.node(id).name;
            let text = format!(
                "the shaped path {} of {name} has this connection already",
                vc.vpi
            );
            d.error(queue.at, text)
                .hint("a connection is in a path or in a rate queue of an adapter")
                .rests_on(["hosts/*/adapter"]);
        }
    }
}

/// How the adapter of its host sends the calls of a program, where the program says so.
pub(super) fn of_program(
    file: &SocketFile,
    role: &Role,
    (lab, id): (&Lab, NodeId),
    d: &mut Diagnostics,
) -> Option<Shaping> {
    let of_shape = file.shape.plain().map(Shaping::by_contract);
    let Some(queue) = &file.rate_queue else {
        return of_shape;
    };
    if matches!(role, Role::Permanent { .. }) {
        return None;
    }
    contradicts(file.shape.as_ref(), d);
    let nic = adapter(lab, id)?;
    let Some(number) = nic.rate_queue(&queue.value) else {
        let name = &lab.node(id).name;
        let text = format!("the adapter of {name} has no rate queue '{}'", queue.value);
        unknown(queue, text, &nic.rate_queues.iter().collect::<Vec<_>>(), d);
        return None;
    };
    let pcr = nic
        .rate_queues
        .get(usize::from(number))
        .map_or(0, |queue| queue.pcr);
    if let Role::Call { qos, .. } = role
        && guaranteed(qos.tx) > pcr.into()
    {
        let text = format!(
            "rate queue {} cannot guarantee {} cells/s: its peak rate is {pcr}",
            queue.value,
            guaranteed(qos.tx)
        );
        d.error(queue.at, text)
            .hint("a rate queue is at least as fast as what a call in it guarantees")
            .rests_on(["hosts/*/adapter"]);
    }
    Some(Shaping::RateQueue(number))
}

/// Checks the rate queues of a host: they carry what their connections guarantee, and something is in them.
pub(super) fn check((name, host): (&str, &HostFile), id: NodeId, lab: &Lab, d: &mut Diagnostics) {
    if let Some((queue, _)) = files(host).get(MOST) {
        let text = format!("an adapter has at most {MOST} rate queues");
        d.error(queue.at, text);
        return;
    }
    for (queue, file) in files(host) {
        let queue_name = &queue.value.0;
        let inside = lab.pvcs.iter();
        let inside = inside.filter(|pvc| pvc.rate_queue.as_ref() == Some(queue_name));
        let sent = inside.flat_map(|pvc| pvc.ends.into_iter().zip([pvc.qos.tx, pvc.qos.rx]));
        let mut sent = sent.filter(|((at, _), _)| *at == id).map(|(_, sent)| sent);
        let first = sent.next();
        let programs = host.sockets.iter().flatten();
        let mut of_programs = programs.filter_map(|program| program.rate_queue.as_ref());
        if first.is_none() && of_programs.all(|of| of.value != *queue_name) {
            d.warning(
                queue.at,
                format!("nothing of {name} uses rate queue {queue_name}"),
            )
            .hint(format!(
                "pvcs: [{{ from: {name}, vc: 0.100, to: NODE, rate_queue: {queue_name} }}]"
            ));
        }
        let sum: u64 = first.into_iter().chain(sent).map(guaranteed).sum();
        let pcr = file.pcr.value.0;
        if sum > pcr {
            let text = format!(
                "rate queue {queue_name} of {name} cannot guarantee {sum} cells/s: its peak rate is {pcr}"
            );
            d.error(file.pcr.at, text)
                .hint("a rate queue is at least as fast as the guarantees of its connections together")
                .rests_on(["pvcs"]);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::resolve::tests::{lab, shapings, told, with_x as with};
    use aerostat_node::atm::Shaping;
    use aerostat_wire::Vc;

    #[test]
    fn each_end_takes_the_rate_queue_that_it_has_and_otherwise_what_it_does_with_others() {
        let text = with(
            "adapter: { rate_queues: { slow: { pcr: 100 }, fast: { pcr: 3000 } } }",
            "pvcs: [{ from: y, vc: 0.41, to: x, to_vc: 0.40, rate_queue: fast }, { from: x, vc: 0.42, to: y, rate_queue: slow }]",
        );
        let lab = lab(&text);
        let inside =
            [(40, 1), (42, 0)].map(|(vci, number)| (Vc::new(0, vci), Shaping::RateQueue(number)));
        assert_eq!(shapings(&lab, "x"), inside);
        assert_eq!(shapings(&lab, "y"), []);
    }

    #[test]
    fn mistakes_in_rate_queues_are_told_with_their_numbers() {
        let case = |queues: &str, rest: &str, program: &str, pvc: &str| {
            let hosts =
                format!("adapter: {{ rate_queues: {{ {queues} }}{rest} }}, sockets: [{program}]");
            with(
                &hosts,
                &format!("pvcs: [{{ from: x, vc: 5.40, to: y, to_vc: 0.40{pvc} }}]"),
            )
        };
        let fast = "fast: { pcr: 1000 }";
        let caller = "{ call: y, rate_queue: fast }";
        let (cbr, of_path) = (
            ", pcr: 1001, rate_queue: fast",
            ", paths: { 5: { pcr: 9 } }",
        );
        for (queues, rest, program, pvc, says) in [
            (fast, "", "", ", pcr: 1000, rate_queue: fast", ""),
            (fast, "", caller, "", ""),
            (fast, "", "{ listen: sink, rate_queue: fast }", "", ""),
            (fast, "", "", "", "nothing of x uses rate queue fast"),
            (
                fast,
                "",
                "",
                cbr,
                "rate queue fast of x cannot guarantee 1001 cells/s",
            ),
            (
                fast,
                "",
                "",
                ", rate_queue: fats",
                "no adapter at its ends has a rate queue 'fats'",
            ),
            (
                fast,
                "",
                "",
                ", pcr: 9, shape: false, rate_queue: fast",
                "'shape' and 'rate_queue' contradict",
            ),
            (
                fast,
                of_path,
                "",
                ", rate_queue: fast",
                "the shaped path 5 of x has this connection already",
            ),
            (
                "fast: { pcr: 0 }",
                "",
                caller,
                "",
                "a peak rate is at least 1 cell/s",
            ),
            (
                "fast: { pcr: 400000 }",
                "",
                caller,
                "",
                "cannot carry rate queue fast: the rate queues need 400000",
            ),
            (
                "fast: { pcr: 9, cdvt: 2s }",
                "",
                caller,
                "",
                "cdvt is 0s to 1s",
            ),
            (
                fast,
                "",
                "{ call: y, rate_queue: fats }",
                "",
                "the adapter of x has no rate queue 'fats'",
            ),
            (
                fast,
                "",
                "{ call: y, rate_queue: fast, shape: true }",
                "",
                "'shape' and 'rate_queue' contradict",
            ),
            (
                fast,
                "",
                "{ call: y, rate_queue: fast, qos: 'cbr,aal5:pcr=1001' }",
                "",
                "rate queue fast cannot guarantee 1001 cells/s",
            ),
            (
                fast,
                "",
                "{ vc: 5.40, listen: sink, rate_queue: fast }",
                "",
                "'rate_queue' is for calls",
            ),
        ] {
            let told = told(&case(queues, rest, program, pvc));
            match says {
                "" => assert!(!told.contains("rate"), "{told}"),
                says => assert!(told.contains(says), "{queues} {program} {pvc}: {told}"),
            }
        }
        let many: Vec<_> = (0..257).map(|n| format!("q{n}: {{ pcr: 1 }}")).collect();
        let told = told(&case(&many.join(", "), "", "", ""));
        assert!(
            told.contains("an adapter has at most 256 rate queues"),
            "{told}"
        );
    }
}
