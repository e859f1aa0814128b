//! ATMARP and InATMARP: a client A, and a server behind B.

use super::{Case, Clean, later, sdu};
use crate::captures::{Sdu, file};
use aerostat_explain::Rule;
use aerostat_wire::atmarp::{AtmArp, Operation, Party};
use aerostat_wire::{AtmAddress, Vc};
use std::net::Ipv4Addr;

const OUT: &str = "A>B";
const BACK: &str = "B>A";
const SERVER: Vc = Vc { vpi: 0, vci: 400 };

fn ip(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, last)
}

fn party(number: u8, last: u8) -> Party {
    Party::new(Some(AtmAddress([number; 20])), Some(ip(last)))
}

fn packet(time: f64, way: &str, packet: &AtmArp) -> Sdu {
    sdu(time, way, SERVER, packet.to_sdu())
}

fn request() -> AtmArp {
    AtmArp {
        operation: Operation::REQUEST,
        source: party(1, 1),
        target: Party::new(None, Some(ip(2))),
    }
}

fn reply() -> AtmArp {
    AtmArp {
        operation: Operation::REPLY,
        source: party(2, 2),
        target: party(1, 1),
    }
}

/// The request of A, and these answers.
fn answered(answers: &[AtmArp]) -> Vec<Sdu> {
    let mut all = vec![packet(0.0, OUT, &request())];
    let times = (1..).map(|n| f64::from(n) * 0.5);
    all.extend(
        times
            .zip(answers)
            .map(|(time, answer)| packet(time, BACK, answer)),
    );
    all.push(later());
    all
}

/// A reply with a change, behind the good one.
fn changed(change: impl FnOnce(&mut AtmArp)) -> Vec<Sdu> {
    let mut second = reply();
    change(&mut second);
    answered(&[reply(), second])
}

fn at(number: u8) -> impl FnOnce(&mut AtmArp) {
    move |reply| reply.source = party(number, 2)
}

pub(super) fn cases() -> Vec<Case> {
    let near = answered(&[reply()]);
    let nak = AtmArp {
        operation: Operation::NAK,
        ..request()
    };
    let mut other = reply();
    other.source.ip = Some(ip(9));
    let mut returns = changed(at(3));
    returns.insert(3, packet(2.0, BACK, &reply()));
    let register = |owner| {
        let own = AtmArp {
            target: Party::new(None, Some(ip(1))),
            ..request()
        };
        let answer = AtmArp {
            source: party(owner, 1),
            ..reply()
        };
        [packet(0.0, OUT, &own), packet(0.5, BACK, &answer), later()]
    };
    let inverse = |operation, number, last| AtmArp {
        operation,
        source: party(number, last),
        target: Party::new(Some(AtmAddress([7; 20])), None),
    };
    let inverse_request = packet(0.0, OUT, &inverse(Operation::INVERSE_REQUEST, 1, 1));
    let inverse_reply = packet(0.5, BACK, &inverse(Operation::INVERSE_REPLY, 2, 2));
    vec![
        Case::change(Rule::AtmArpFormat, &changed(|_| {}), |all| {
            all[2].octets[10] = 9
        }),
        Case::sdus(
            Rule::AtmArpOperation,
            &near,
            &changed(|reply| reply.operation = Operation(77)),
        ),
        Case::sdus(Rule::AtmArpAnswer, &near, &answered(&[])),
        Case::sdus(Rule::AtmArpNak, &near, &answered(&[nak])),
        Case::sdus(Rule::AtmArpOther, &near, &answered(&[other])).also(&[Rule::AtmArpAnswer]),
        Case::sdus(
            Rule::AtmArpAddress,
            &near,
            &changed(|reply| reply.source.number.octets.clear()),
        ),
        // A station moves; then the earlier one is there again.
        Case::sdus(Rule::AtmArpTwice, &changed(at(3)), &returns),
        Case::sdus(Rule::AtmArpTwice, &register(1), &register(2)),
        Case::sdus(
            Rule::InAtmArpAnswer,
            &[inverse_request.clone(), inverse_reply, later()],
            &[inverse_request, later()],
        ),
    ]
}

pub(super) fn clean() -> Vec<Clean> {
    let mut moved = reply();
    moved.source = party(3, 2);
    // Another network with the same addresses.
    let mut other = answered(&[moved]);
    for sdu in &mut other {
        sdu.way = sdu.way.replace('A', "C");
    }
    let both = [answered(&[reply()]), other, answered(&[reply()])].concat();
    vec![("two networks with the same addresses", file(&both))]
}
