//! Programs of hosts that use the ATM service directly.

use super::{Class, Names};
use crate::diag::Diagnostics;
use crate::field::At;
use crate::file::{LabFile, SocketFile};
use crate::model::{Lab, NodeKind, SendRate};
use crate::plan;
use aerostat_node::host::sockets::{Program, Role};
use aerostat_proto::{Duration, Instant};
use aerostat_wire::{AtmAddress, Qos, Sap};

/// Default size of SDUs, as of Classical IP.
const MAX_SDU: u16 = 9180;
/// Default size of a PDU.
const SIZE: usize = 1000;
/// Shortest pause of a program that calls again and again.
const MIN_PAUSE: Duration = Duration::from_millis(1);
/// Default number of calls of a listener.
const CALLS: u64 = 64;
/// Most calls of a listener: below the bound of the signalling manager.
const MAX_CALLS: u64 = 1000;
/// Most programs of a host: the bound of the signalling manager for listeners.
const MAX_PROGRAMS: usize = 64;

/// Fills `sockets` of every host.
pub(super) fn build(file: &LabFile, names: &Names, lab: &mut Lab, d: &mut Diagnostics) {
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
            let Some(program) = program(section, number, own, names, lab, d) else {
                continue;
            };
            check(&programs, &program, section, d);
            programs.push(program);
        }
        if let NodeKind::Host(host) = &mut lab.nodes[id.0].kind {
            host.sockets = programs;
        }
    }
}

/// Names and listeners are unique.
fn check(before: &[Program], program: &Program, section: &SocketFile, d: &mut Diagnostics) {
    let listens = |p: &Program| matches!(p.role, Role::Listen { .. });
    for other in before {
        if other.name == program.name {
            let text = format!("two programs with one name: '{}'", program.name);
            d.error(section.place, text);
        }
        let same = (other.local, other.sap) == (program.local, program.sap);
        if same && listens(other) && listens(program) {
            let text = format!(
                "{} and {} listen for the same: one selector, one sap",
                other.name, program.name
            );
            d.error(section.place, text)
                .hint("give one of them another selector, e0 to ff");
        }
    }
}

fn program(
    section: &SocketFile,
    number: usize,
    own: AtmAddress,
    names: &Names,
    lab: &Lab,
    d: &mut Diagnostics,
) -> Option<Program> {
    let role = match (&section.listen, &section.call) {
        (Some(_), None) => listener(section, d),
        (None, Some(to)) => caller(section, to, names, lab, d),
        _ => {
            d.error(section.place, "a program has one of listen and call")
                .hint("for example: { listen: sink }, or { call: sello, pdus: 100, rate: 50pps }");
            None
        }
    };
    let selector = section.selector.as_ref();
    Some(Program {
        name: section
            .name
            .as_ref()
            .map_or_else(|| format!("socket{number}"), |name| name.value.0.clone()),
        local: own.with_selector(selector.map_or(plan::SELECTOR_SOCKET, |s| s.value.0)),
        sap: section.sap.as_ref().map_or(Sap::ANY, |sap| sap.value.0),
        role: role?,
    })
}

fn listener(section: &SocketFile, d: &mut Diagnostics) -> Option<Role> {
    let answer = section.listen.as_ref()?.value.0;
    let SocketFile {
        qos,
        start,
        pdus,
        size,
        rate,
        hold,
        every,
        ..
    } = section;
    let places = [
        qos.as_ref().map(|at| ("qos", at.at)),
        start.as_ref().map(|at| ("start", at.at)),
        pdus.as_ref().map(|at| ("pdus", at.at)),
        size.as_ref().map(|at| ("size", at.at)),
        rate.as_ref().map(|at| ("rate", at.at)),
        hold.as_ref().map(|at| ("hold", at.at)),
        every.as_ref().map(|at| ("every", at.at)),
    ];
    for (key, at) in places.into_iter().flatten() {
        d.error(at, format!("'{key}' is for callers"));
    }
    let max_sdu = match &section.max_sdu {
        None => MAX_SDU,
        Some(given) => octets(given, given.value.0, d)?,
    };
    let calls = section.calls.as_ref().map_or(CALLS, At::get);
    if let Some(given) = section.calls.as_ref()
        && !(1..=MAX_CALLS).contains(&calls)
    {
        d.error(given.at, format!("a listener has 1 to {MAX_CALLS} calls"));
    }
    Some(Role::Listen {
        answer,
        max_sdu,
        calls: usize::try_from(calls).unwrap_or(usize::MAX),
    })
}

/// A size that an AAL5 SDU can have.
fn octets<T>(place: &At<T>, size: usize, d: &mut Diagnostics) -> Option<u16> {
    let size = u16::try_from(size).ok().filter(|size| *size > 0);
    if size.is_none() {
        d.error(place.at, "an SDU has 1 to 65535 octets");
    }
    size
}

fn caller(
    section: &SocketFile,
    to: &At<String>,
    names: &Names,
    lab: &Lab,
    d: &mut Diagnostics,
) -> Option<Role> {
    if let Some(given) = &section.max_sdu {
        d.error(given.at, "'max_sdu' is for listeners: a caller has qos");
    }
    if let Some(given) = &section.calls {
        d.error(given.at, "'calls' is for listeners");
    }
    let to = called(to, names, lab, d);
    let mut qos = section
        .qos
        .as_ref()
        .map_or(Qos::ubr(MAX_SDU), |q| q.value.0);
    let size = match &section.size {
        None => SIZE.min(match qos.tx.max_sdu {
            0 => SIZE,
            max => max.into(),
        }) as u16,
        Some(given) => octets(given, given.value.0, d)?,
    };
    // linux-atm's listeners want to know a size.
    for traffic in [&mut qos.tx, &mut qos.rx] {
        if traffic.category.is_some() && traffic.max_sdu == 0 {
            traffic.max_sdu = size;
        }
    }
    let pdus = section.pdus.as_ref().map_or(1, At::get);
    if let Some(given) = section.size.as_ref()
        && qos.tx.category.is_some()
        && size > qos.tx.max_sdu
    {
        let max = qos.tx.max_sdu;
        d.error(
            given.at,
            format!("the qos of this call allows SDUs of {max} octets"),
        );
    }
    if let Some(given) = section.qos.as_ref()
        && qos.tx.category.is_none()
        && pdus > 0
    {
        d.error(
            given.at,
            "a call that sends PDUs needs traffic in direction tx",
        )
        .hint("or pdus: 0");
    }
    let rate = section.rate.as_ref();
    let rate = rate.map_or(SendRate::Packets(100.0), |rate| rate.value.0);
    let time = |given: &Option<At<crate::file::Time>>| {
        given.as_ref().map_or(Duration::from_secs(1), |t| t.value.0)
    };
    Some(Role::Call {
        to: to?,
        qos,
        start: Instant::ZERO + time(&section.start),
        pdus,
        size,
        gap: rate.gap(size.into()),
        hold: time(&section.hold),
        every: section.every.as_ref().map(|t| t.value.0.max(MIN_PAUSE)),
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
            d.error(to.at, text);
            return None;
        }
        NodeKind::Outside(outside) => outside.addresses.first().copied(),
        _ => lab.node(id).attachment().map(|at| at.address),
    };
    // Outside, the selector is as written there unless one is given here.
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
    use crate::resolve::tests::{SMALL, lab};
    use aerostat_node::host::sockets::{Answer, Role};
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
            to, qos, pdus, gap, ..
        } = call.role
        else {
            panic!("a caller");
        };
        assert_eq!((to, qos), (own.with_selector(0xe1), Qos::ubr(4096)));
        assert_eq!((pdus, gap), (20, Duration::from_millis(5)));
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
        // 2 s, 19 gaps, 1 s, and the grace of every run.
        assert_eq!(lab.end(), Duration::from_millis(5095));
    }

    #[test]
    fn mistakes_are_told() {
        for (text, wanted) in [
            ("[{}]", "one of listen and call"),
            ("[{ listen: sink, call: y }]", "one of listen and call"),
            (
                "[{ listen: sink }, { listen: echo }]",
                "listen for the same",
            ),
            (
                "[{ name: a, listen: sink }, { name: a, call: y }]",
                "one name",
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
            ("[{ call: y, size: 100000 }]", "1 to 65535 octets"),
            ("[{ call: y, size: 9181 }]", "SDUs of 9180 octets"),
            ("[{ call: y, qos: 'ubr,aal5:tx:none' }]", "needs traffic"),
            ("[{ call: y, sap: nothing }]", "expected any, ttcp"),
            ("[{ listen: sink, selector: 10 }]", "e0 to ff"),
            ("[{ listen: sink, calls: 0 }]", "1 to 1000 calls"),
        ] {
            let message = message(text);
            assert!(message.contains(wanted), "{text}: {message}");
        }
    }
}
