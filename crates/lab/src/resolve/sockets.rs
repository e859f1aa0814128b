//! Programs of hosts that use the ATM service directly.

use super::events::send_rate;
use super::stage::Programming;
use super::{Class, Names, adapters, atp, direct, rate_queues};
use crate::diag::{Diagnostics, Span};
use crate::field::{At, Optional as _};
use crate::file::{LabFile, Label, SocketFile};
use crate::model::{Lab, NodeId, NodeKind};
use crate::plan;
use aerostat_node::host::sockets::programs::{Pace, Program, Role, Sending};
use aerostat_proto::{Duration, Instant};
use aerostat_wire::counted;
use aerostat_wire::q2931::{Version, convert};
use aerostat_wire::{AtmAddress, Qos, ServiceCategory, TrafficParams, aal0};

/// Shortest pause of a program that repeats its calls.
const MIN_PAUSE: Duration = Duration::from_millis(1);
/// Limit of programs of a host: the bound of the host's signalling for listeners.
const MAX_PROGRAMS: usize = 64;

/// Fills `sockets` of every host.
pub(super) fn build(file: &LabFile, names: &Names, lab: &mut Programming<'_>, d: &mut Diagnostics) {
    for (name, host) in &file.hosts.0 {
        let Some(list) = &host.sockets else {
            continue;
        };
        let Some(id) = lab.find(&name.value.0) else {
            continue;
        };
        let Some(own) = lab.node(id).attachment().map(|at| at.address) else {
            continue;
        };
        if let Some(extra) = list.get(MAX_PROGRAMS) {
            let text = format!("more than {MAX_PROGRAMS} programs on one host");
            d.error(extra.place, text);
        }
        let mut programs: Vec<Program> = Vec::new();
        for (number, section) in (1..).zip(list) {
            let Some(program) = program(section, number, (id, own), names, lab, d) else {
                continue;
            };
            check(&programs, &program, (host.place, section), d);
            if let Some(expect) = &section.expect {
                let at = (id, programs.len());
                lab.expect_mut().insert(at, expect.value.0);
            }
            programs.push(program);
        }
        if let NodeKind::Host(host) = &mut lab.nodes_mut()[id.0].kind {
            host.sockets = programs;
        }
    }
    atp::pairs(file, lab, d);
}

/// Checks that names and listeners are unique.
fn check(
    before: &[Program],
    program: &Program,
    (host, section): (Span, &SocketFile),
    d: &mut Diagnostics,
) {
    let listens = |p: &Program| matches!(p.role, Role::Listen { .. });
    for other in before {
        if other.name == program.name {
            let text = format!("two programs with one name: '{}'", program.name);
            d.error(section.place, text)
                .rests_in(host, ["sockets/*/name"]);
        }
        let same = (other.local, other.sap) == (program.local, program.sap);
        if same && listens(other) && listens(program) {
            let text = format!(
                "{} and {} listen for the same: one selector, one sap",
                other.name, program.name
            );
            d.error(section.place, text)
                .hint("give one of them another selector, e0 to ff")
                .rests_in(
                    host,
                    ["sockets/*/selector", "sockets/*/sap", "sockets/*/vc"],
                );
        }
        if let (Role::Permanent { vc, .. }, Role::Permanent { vc: used, .. }) =
            (program.role, other.role)
            && vc == used
        {
            let text = format!("{} uses {vc} already", other.name);
            d.error(section.place, text);
        }
    }
}

/// Longest name of a group that systems take.
const GROUP_MAX: usize = 32;

/// The group whose members may connect to the socket service. Whether the system has it, the system knows
/// ([`crate::Checked::on_machine`]).
pub(super) fn group(file: &LabFile, d: &mut Diagnostics) -> Option<String> {
    let given = file.sockets.as_ref()?.group.as_ref()?;
    let name = &given.value;
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.$".contains(c);
    if name.is_empty() || name.len() > GROUP_MAX || !name.chars().all(plain) {
        let text = format!("a group has a name of 1 to {GROUP_MAX} letters, digits and _ - . $");
        d.error(given.at, text)
            .hint("'getent group' lists the groups of this system");
        return None;
    }
    Some(name.clone())
}

fn program(
    section: &SocketFile,
    number: usize,
    (id, own): (NodeId, AtmAddress),
    names: &Names,
    lab: &Lab,
    d: &mut Diagnostics,
) -> Option<Program> {
    tester(section, d);
    let role = match (&section.listen, &section.call, &section.vc) {
        (_, None, Some(vc)) => permanent(section, vc, lab, id, d),
        (Some(_), None, None) => listener(section, d),
        (None, Some(to), None) => caller(section, to, names, lab, id, d),
        _ => {
            d.error(section.place, "a program has one of listen, call and vc")
                .hint("for example: { listen: sink }, { call: sello, pdus: 100, rate: 50pps } or { vc: 0.100, listen: read }")
            .rests_in(section.place, ROLES);
            None
        }
    };
    let role = role?;
    let atp = match &section.atp {
        Some(given) => Some(atp::transfer(given, section, &role, d)?),
        None => None,
    };
    adapters::useless_shape_of(section, &role, d);
    Some(Program {
        name: (section.name.plain()).unwrap_or_else(|| format!("{UNNAMED}{number}")),
        local: own.with_selector(section.selector.get()),
        sap: section.sap.get(),
        shaping: rate_queues::of_program(section, &role, (lab, id), d),
        atp,
        tester: section.tester.get(),
        role,
    })
}

/// Checks the other keys of a tester of cells.
fn tester(section: &SocketFile, d: &mut Diagnostics) {
    let Some(at) = section.tester.at.filter(|_| section.tester.get()) else {
        return;
    };
    if section.vc.is_none() {
        d.error(at, "a tester uses a permanent connection")
            .hint("for example: { vc: 0.100, tester: true, pdus: 1000, rate: 10000pps }")
            .rests_in(section.place, ["vc"]);
    }
    for (key, at) in section.given.of(&["listen", "size", "atp"]) {
        let text = format!("a tester has no '{key}': it sends and measures single cells");
        d.error(at, text).rests_in(section.place, ["tester"]);
    }
}

/// Programs have this name and their number if the file gives no name.
pub(crate) const UNNAMED: &str = "socket";

/// The keys that say what a program does.
const ROLES: [&str; 3] = ["listen", "call", "vc"];

fn listener(section: &SocketFile, d: &mut Diagnostics) -> Option<Role> {
    let of_callers = ["qos", "start", "pdus", "size", "rate", "hold", "every"];
    foreign(section, &of_callers, "is for callers", d);
    Some(Role::Listen {
        answer: section.listen.plain()?,
        max_sdu: section.max_sdu.get() as u16,
        calls: section.calls.get() as usize,
    })
}

/// Refuses keys that have no meaning for this kind of program.
pub(super) fn foreign(section: &SocketFile, keys: &[&str], why: &str, d: &mut Diagnostics) {
    let place = (section.place, &ROLES[..]);
    section.given.refuse(keys, why, place, d);
}

fn caller(
    section: &SocketFile,
    to: &At<String>,
    names: &Names,
    lab: &Lab,
    id: NodeId,
    d: &mut Diagnostics,
) -> Option<Role> {
    let why = "is for listeners: a caller has qos";
    foreign(section, &["max_sdu", "calls"], why, d);
    let called_at = to.at;
    let to = called(to, names, lab, d);
    let mut qos = section.qos.get();
    if let Some(at) = section.qos.at {
        speakable(at, &qos, lab, id, d);
    }
    let send = sending(section, &qos, 1, d)?;
    // Listeners of linux-atm need a size.
    for traffic in [&mut qos.tx, &mut qos.rx] {
        if traffic.category.is_some() && traffic.max_sdu == 0 {
            traffic.max_sdu = send.size;
        }
    }
    let to = to?;
    direct::reaches(lab, id, (to, called_at), d).then(|| Role::Call {
        to,
        qos,
        send,
        hold: section.hold.get(),
        every: section.every.plain().map(|every| every.max(MIN_PAUSE)),
    })
}

/// Checks that signalling can express the contract in the host's version of the UNI.
fn speakable(at: Span, qos: &Qos, lab: &Lab, id: NodeId, d: &mut Diagnostics) {
    let node = lab.node(id);
    let NodeKind::Host(host) = &node.kind else {
        return;
    };
    let any = |is: fn(&TrafficParams) -> bool| is(&qos.tx) || is(&qos.rx);
    if any(|t| t.frame_discard == Some(false)) {
        let text = "no version of the UNI can say frame_discard=false in a call";
        d.warning(at, text);
    }
    if any(|t| !t.tightest_cdv().is_zero()) {
        let text = "a call does not tell its tolerance: policers use 'cdvt' of the link";
        d.warning(at, text);
    }
    if host.uni == Version::Uni40 {
        return;
    }
    let hint = format!("{}: {{ uni: 4.0, .. }}", node.name);
    if any(|t| t.category == Some(ServiceCategory::Abr)) {
        let text = "a call cannot ask for ABR before UNI 4.0";
        let host = format!("hosts/{}/uni", node.name);
        d.error(at, text).hint(&hint).rests_on([&*host]);
    }
    let mut says_nothing = |text: &str| {
        d.warning(at, text).hint(&hint);
    };
    if convert::minimum(qos).is_some() {
        says_nothing("before UNI 4.0 min_pcr says nothing: the call gets its peak rate, or fails");
    }
    if convert::desired(qos).is_some() {
        says_nothing("before UNI 4.0 a call cannot tell the network its minimum desired rate");
    }
    if any(|t| t.frame_discard == Some(true)) {
        says_nothing("before UNI 4.0 a call cannot ask for frame discard");
    }
}

/// A program on a permanent connection of its host.
fn permanent(
    section: &SocketFile,
    vc: &At<Label>,
    lab: &Lab,
    id: NodeId,
    d: &mut Diagnostics,
) -> Option<Role> {
    let (of_calls, of_shapes) = (
        ["selector", "sap", "max_sdu", "calls", "qos"],
        ["shape", "rate_queue"],
    );
    let keys = [&of_calls[..], &of_shapes, &["hold", "every"]].concat();
    let why = "is for calls: a permanent connection has its traffic in 'pvcs'";
    foreign(section, &keys, why, d);
    let label = vc.value.0;
    let ends = lab.pvcs.iter().find_map(|pvc| {
        let end = pvc.ends.iter().position(|end| *end == (id, label))?;
        Some((pvc, end))
    });
    let Some((pvc, end)) = ends else {
        let name = &lab.node(id).name;
        let text = format!("{name} has no permanent connection {label}");
        let hint = format!("pvcs: [{{ from: {name}, vc: {label}, to: NODE }}]");
        d.error(vc.at, text).hint(hint).rests_on(["pvcs"]);
        return None;
    };
    let qos = if end == 0 {
        pvc.qos
    } else {
        pvc.qos.reversed()
    };
    let reads = section.listen.is_some() || section.tester.get();
    Some(Role::Permanent {
        vc: label,
        qos,
        answer: section.listen.plain(),
        send: sending(section, &qos, u64::from(!reads), d)?,
    })
}

/// The PDUs that a program sends; `pdus` is the default number.
fn sending(section: &SocketFile, qos: &Qos, pdus: u64, d: &mut Diagnostics) -> Option<Sending> {
    let (tx, start) = (qos.tx, Instant::ZERO + section.start.get());
    if let Some(atp) = &section.atp {
        return Some(atp::sending(atp, qos, start));
    }
    let most = match tx.max_sdu {
        0 => u16::MAX,
        most => most,
    };
    let size = match section.size.get() as u16 {
        _ if section.tester.get() => aal0::SDU_LEN as u16,
        size if section.size.at.is_none() => size.min(most),
        size => size,
    };
    if let Some(at) = section.size.at
        && tx.category.is_some()
        && size > most
    {
        let most = counted(most, "octet", "octets");
        d.error(at, format!("the qos here allows SDUs of {most}"))
            .rests_in(section.place, ["qos"]);
    }
    let pdus = section.pdus.plain().unwrap_or(pdus);
    if tx.category.is_none() && pdus > 0 {
        let at = section.qos.at.unwrap_or(section.place);
        d.error(at, "who sends PDUs needs traffic in direction tx")
            .hint("or pdus: 0")
            .rests_in(section.place, ["pdus"]);
    }
    let at = section.rate.at.unwrap_or(section.place);
    let pace = match section.rate.get() {
        Some(rate) => Pace::At(send_rate(rate, size.into(), at, d)?.packets),
        None => Pace::Line,
    };
    Some(Sending {
        start,
        pdus,
        size,
        pace,
    })
}

/// An ATM address, or the address of a node with a selector.
fn called(to: &At<String>, names: &Names, lab: &Lab, d: &mut Diagnostics) -> Option<AtmAddress> {
    const ANY: [Class; 4] = [
        Class::LaneServer,
        Class::Router,
        Class::Host,
        Class::Outside,
    ];
    if let Ok(address) = to.value.parse() {
        return Some(address);
    }
    let digits = to.value.bytes().filter(u8::is_ascii_hexdigit).count();
    if digits > 20 && digits + to.value.matches(['.', ':', '-']).count() == to.value.len() {
        d.error(
            to.at,
            format!("an ATM address has 40 hex digits, not {digits}"),
        );
        return None;
    }
    let (name, selector) = match to.value.split_once('/') {
        None => (to.value.as_str(), Some(plan::SELECTOR_SOCKET)),
        Some((name, text)) => {
            let selector = u8::from_str_radix(text, 16).ok();
            (name, selector.filter(|_| text.len() == 2))
        }
    };
    let Some(selector) = selector else {
        d.error(to.at, "a selector has two hex digits")
            .hint("for example: sello/e1");
        return None;
    };
    let place = At {
        value: name.to_owned(),
        at: to.at,
    };
    let id = names.find(&place, &ANY, "an end system", d)?;
    let own = match &lab.node(id).kind {
        NodeKind::Outside(outside) if outside.addresses.is_empty() => {
            let text = format!("{name} registers its addresses: write the one to call");
            d.error(to.at, text).rests_on(["links/*/1/address"]);
            return None;
        }
        NodeKind::Outside(outside) => outside.addresses.first().copied(),
        _ => lab.node(id).attachment().map(|at| at.address),
    };
    // For an address outside, the selector is as written unless one is given here.
    let outside = matches!(lab.node(id).kind, NodeKind::Outside(_));
    let keep = outside && !to.value.contains('/');
    own.map(|own| {
        if keep {
            own
        } else {
            own.with_selector(selector)
        }
    })
}

#[cfg(test)]
mod tests {
    use crate::resolve::tests::{SMALL, lab, told};
    use aerostat_node::host::sockets::programs::{Answer, Pace, Role, Sending};
    use aerostat_proto::Duration;
    use aerostat_wire::{Bhli, Qos, Sap};

    fn with(x: &str, y: &str) -> String {
        SMALL
            .replace(
                "ip: 10.1.0.10 }",
                &format!("ip: 10.1.0.10, sockets: {x} }}"),
            )
            .replace(
                "ip: 10.2.0.10 }",
                &format!("ip: 10.2.0.10, sockets: {y} }}"),
            )
    }
    fn message(x: &str) -> String {
        match crate::parse("t.atm.yml", &with(x, "[]"), &[]) {
            Ok(_) => panic!("{x} is good"),
            Err(d) => d.to_string(),
        }
    }

    #[test]
    fn programs_of_two_hosts() {
        let lab = lab(&with(
            "[{ call: y/e1, sap: ttcp, size: 4096, pdus: 20, rate: 200pps, qos: 'ubr,aal5', start: 2s }]",
            "[{ name: in, listen: echo, selector: e1, sap: ttcp, max_sdu: 4096, calls: 2 }, { call: r/52 }]",
        ));
        let hosts: Vec<_> = lab.hosts().map(|(_, _, host)| host).collect();
        let [call] = &hosts[0].sockets[..] else {
            panic!("one program");
        };
        let own = hosts[1].attachment.address;
        let Role::Call {
            to,
            qos,
            send:
                Sending {
                    pdus,
                    pace: Pace::At(rate),
                    ..
                },
            ..
        } = call.role
        else {
            panic!("a caller");
        };
        assert_eq!((to, qos), (own.with_selector(0xe1), Qos::ubr(4096)));
        assert_eq!((pdus, rate.after(1)), (20, Duration::from_millis(5)));
        assert_eq!(call.local, hosts[0].attachment.address.with_selector(0xe0));
        assert_eq!(call.sap, Sap::high(Bhli::TTCP));
        let listener = &hosts[1].sockets[0];
        assert_eq!(
            (&*listener.name, listener.local),
            ("in", own.with_selector(0xe1))
        );
        let role = Role::Listen {
            answer: Answer::Echo,
            max_sdu: 4096,
            calls: 2,
        };
        assert_eq!(listener.role, role);
        assert_eq!(hosts[1].sockets[1].name, "socket2");
        // 2 s, 19 gaps, 1 s, and the grace period of every run.
        assert_eq!(lab.end(), Duration::from_millis(5095));
    }

    #[test]
    fn a_permanent_connection_for_programs() {
        let text = with(
            "[{ vc: 0.100, listen: read }]",
            "[{ vc: 0.101, pdus: 3, rate: 10pps, size: 40 }]",
        ) + "pvcs: [{ from: x, vc: 0.100, to: y, to_vc: 0.101, qos: 'ubr,aal5:sdu=64' }]\n";
        let lab = lab(&text);
        let roles: Vec<_> = lab
            .hosts()
            .map(|(_, _, host)| host.sockets[0].role)
            .collect();
        let Role::Permanent { answer, send, .. } = roles[0] else {
            panic!("permanent");
        };
        assert_eq!((answer, send.pdus), (Some(Answer::Read), 0));
        let Role::Permanent { vc, qos, send, .. } = roles[1] else {
            panic!("permanent");
        };
        assert_eq!((vc.to_string().as_str(), qos.tx.max_sdu), ("0.101", 64));
        assert_eq!((send.pdus, send.size), (3, 40));
        // 1 s, two gaps, and the grace period of every run.
        assert_eq!(lab.end(), Duration::from_millis(3200));
        for (from, to, wanted) in [
            (
                "0.101, p",
                "0.102, p",
                "y has no permanent connection 0.102",
            ),
            ("size: 40", "size: 65", "SDUs of 64 octets"),
            ("size: 40", "hold: 1s", "'hold' is for calls"),
            (
                "listen: read }",
                "listen: read }, { vc: 0.100 }",
                "uses 0.100 already",
            ),
        ] {
            let text = text.replacen(from, to, 1);
            let said = crate::parse("t.atm.yml", &text, &[]).unwrap_err();
            assert!(said.to_string().contains(wanted), "{wanted}: {said}");
        }
    }

    /// Contracts that need a certain version of the UNI.
    #[test]
    fn contracts_that_a_version_cannot_ask_for() {
        let text = |uni: &str, qos: &str| {
            let host = format!("x: {{ on: s1, uni: {uni},");
            with(&format!("[{{ call: y, qos: '{qos}' }}]"), "[]").replace("x: { on: s1,", &host)
        };
        let abr = "abr,aal5:max_pcr=1000";
        let flexible = "cbr,aal5:max_pcr=1000,min_pcr=100";
        let rigid = "cbr,aal5:max_pcr=1000";
        for (uni, qos, errors, warnings) in [
            ("3.1", abr, 1, 0),
            ("4.0", abr, 0, 0),
            ("3.0", flexible, 0, 1),
            ("4.0", flexible, 0, 0),
            ("3.0", rigid, 0, 0),
            ("3.1", "ubr,aal5:min_pcr=9,frame_discard=true", 0, 2),
        ] {
            let count = |said: &str, word: &str| said.matches(word).count();
            let said = told(&text(uni, qos));
            assert_eq!(
                count(&said, "error: a call cannot ask for ABR before UNI 4.0"),
                errors,
                "{uni} {qos}: {said}"
            );
            assert_eq!(
                count(&said, "warning: before UNI 4.0"),
                warnings,
                "{uni} {qos}: {said}"
            );
        }
    }

    #[test]
    fn what_no_call_can_say_is_told() {
        for (qos, says) in [
            (
                "ubr,aal5:frame_discard=false",
                "can say frame_discard=false",
            ),
            (
                "cbr,aal5:pcr=1000,cdvt=7",
                "policers use 'cdvt' of the link",
            ),
        ] {
            let text = with(&format!("[{{ call: y, qos: '{qos}' }}]"), "[]");
            let text = text.replace("x: { on: s1,", "x: { on: s1, uni: 4.0,");
            let checked = crate::parse("t.atm.yml", &text, &[]).unwrap_or_else(|d| panic!("{d}"));
            let said = checked.warnings.to_string();
            assert_eq!(said.matches(says).count(), 1, "{qos}: {said}");
        }
    }

    #[test]
    fn mistakes_are_told() {
        for (text, wanted) in [
            ("[{}]", "one of listen, call and vc"),
            ("[{ listen: sink, call: y }]", "one of listen, call and vc"),
            (
                "[{ listen: sink }, { listen: echo }]",
                "listen for the same",
            ),
            (
                "[{ name: a, listen: sink }, { name: a, call: y }]",
                "one name",
            ),
            (
                "[{ call: y, rate: fast }]",
                "expected a rate such as 450pps or 2Mbps, or line",
            ),
            ("[{ listen: sink, pdus: 3 }]", "is for callers"),
            ("[{ call: z }]", "there is no end system 'z'"),
            ("[{ call: s1 }]", "is a switch"),
            ("[{ call: y/e }]", "two hex digits"),
            (
                "[{ call: 47.0091.8100.0000.0000.0000.0001 }]",
                "40 hex digits",
            ),
            ("[{ call: y, calls: 3 }]", "is for listeners"),
            ("[{ call: y, size: 100000 }]", "size is 1 to 65535"),
            ("[{ call: y, size: 9181 }]", "SDUs of 9180 octets"),
            ("[{ call: y, qos: 'ubr,aal5:tx:none' }]", "needs traffic"),
            ("[{ call: y, sap: nothing }]", "expected any, ttcp"),
            ("[{ listen: sink, selector: 10 }]", "e0 to ff"),
            ("[{ listen: sink, calls: 0 }]", "calls is 1 to 1000"),
        ] {
            let message = message(text);
            assert!(message.contains(wanted), "{text}: {message}");
        }
    }
}
