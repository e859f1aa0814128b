//! SSCOP: a connection, two SDs of each end, a POLL and its STAT.

use super::{Case, Clean, later, sdu};
use crate::captures::{Sdu, file};
use aerostat_explain::Rule;
use aerostat_wire::q2931::{CallRef, Message, MessageType};
use aerostat_wire::{Seq8, Seq24, SscopPdu, Vc};

const OUT: &str = "A>B";
const BACK: &str = "B>A";

fn pdu(time: f64, way: &str, pdu: &SscopPdu) -> Sdu {
    sdu(time, way, Vc::SIGNALLING, pdu.encode())
}

fn begin(time: f64, way: &str, sq: u8) -> Sdu {
    let (sq, mr, uu) = (Seq8(sq), Seq24::new(30), vec![]);
    pdu(time, way, &SscopPdu::Begin { sq, mr, uu })
}

fn begin_ack(time: f64, way: &str, mr: u32) -> Sdu {
    let (mr, uu) = (Seq24::new(mr), vec![]);
    pdu(time, way, &SscopPdu::BeginAck { mr, uu })
}

/// An SD with a message that asks about no call.
pub(super) fn data(time: f64, way: &str, s: u32) -> Sdu {
    let (flag, value) = (false, 9);
    let message = Message::new(CallRef { flag, value }, MessageType::STATUS_ENQUIRY);
    let (s, info) = (Seq24::new(s), message.encode());
    pdu(time, way, &SscopPdu::Data { s, info })
}

fn poll(time: f64, way: &str, ps: u32, s: u32) -> Sdu {
    let (ps, s) = (Seq24::new(ps), Seq24::new(s));
    pdu(time, way, &SscopPdu::Poll { ps, s })
}

fn stat(time: f64, way: &str, (ps, r): (u32, u32)) -> Sdu {
    let (ps, mr, r) = (Seq24::new(ps), Seq24::new(30), Seq24::new(r));
    let list = vec![];
    pdu(time, way, &SscopPdu::Stat { ps, mr, r, list })
}

fn end(time: f64, way: &str, by_sscop: bool) -> Sdu {
    let uu = vec![];
    pdu(time, way, &SscopPdu::End { by_sscop, uu })
}

/// Places in the list below.
const BGAK: usize = 1;
const SECOND: usize = 3;
const POLL: usize = 6;
const STAT: usize = 7;

fn clean_link() -> Vec<Sdu> {
    vec![
        begin(0.0, OUT, 1),
        begin_ack(0.1, BACK, 30),
        data(1.0, OUT, 0),
        data(1.1, OUT, 1),
        data(1.2, BACK, 0),
        data(1.3, BACK, 1),
        poll(2.0, OUT, 1, 2),
        stat(2.1, BACK, (1, 2)),
        later(),
    ]
}

/// The link with other PDUs behind its STAT.
fn then(more: &[Sdu]) -> Vec<Sdu> {
    let mut link = clean_link();
    let place = link.len() - 1;
    link.splice(place..place, more.iter().cloned());
    link
}

pub(super) fn cases() -> Vec<Case> {
    let link = clean_link();
    let change = |rule: Rule, change: &dyn Fn(&mut Vec<Sdu>)| Case::change(rule, &link, change);
    let slow = [begin(0.0, OUT, 1), begin_ack(4.9, BACK, 30), later()];
    let reject = SscopPdu::BeginReject { uu: vec![] };
    let rejected = [begin(0.0, OUT, 1), pdu(0.1, BACK, &reject), later()];
    let credit = |mr| {
        let mut link = clean_link();
        link[BGAK] = begin_ack(0.1, BACK, mr);
        link
    };
    let missing = SscopPdu::Ustat {
        mr: Seq24::new(30),
        r: Seq24::new(1),
        from: Seq24::new(1),
        to: Seq24::new(2),
    };
    // The POLL waits for two seconds until the connection ends.
    let mut ended = then(&[poll(3.0, OUT, 2, 2), end(5.0, OUT, false)]);
    let both = [ended.clone(), then(&[poll(3.0, OUT, 2, 2)])];
    ended.push(later());
    vec![
        change(Rule::SscopFormat, &|link| link[STAT].octets.push(0)).also(&[Rule::SscopPoll]),
        Case::sdus(Rule::SscopBegin, &slow, &[begin(0.0, OUT, 1), later()]),
        Case::sdus(Rule::SscopRejected, &slow, &rejected),
        Case::sdus(Rule::SscopPoll, &both[0], &both[1]),
        change(Rule::SscopStat, &|link| {
            link[STAT] = stat(2.1, BACK, (9, 2))
        }),
        change(Rule::SscopGap, &|link| link[SECOND] = data(1.1, OUT, 2)),
        change(Rule::SscopMissing, &|link| {
            link.insert(POLL, pdu(1.5, BACK, &missing));
        }),
        Case::sdus(Rule::SscopWindow, &credit(2), &credit(1)),
        change(Rule::SscopAcknowledged, &|link| {
            link[STAT] = stat(2.1, BACK, (1, 3));
        }),
        // What the other end has sent before it hears of the END comes later.
        Case::sdus(
            Rule::SscopClosed,
            &then(&[end(3.0, OUT, false), data(3.1, BACK, 2)]),
            &then(&[end(3.0, OUT, false), data(3.1, OUT, 2)]),
        ),
        Case::sdus(
            Rule::SscopEnded,
            &then(&[end(3.0, OUT, false)]),
            &then(&[end(3.0, OUT, true)]),
        ),
    ]
}

pub(super) fn clean() -> Vec<Clean> {
    let again = then(&[
        begin(3.0, OUT, 2),
        // Of the earlier connection, on their way when BGN came.
        data(3.1, BACK, 2),
        stat(3.2, BACK, (9, 2)),
        begin_ack(3.3, BACK, 30),
        data(3.4, BACK, 0),
        data(3.5, OUT, 0),
    ]);
    let repeated = [
        begin(0.0, OUT, 1),
        begin_ack(1.0, BACK, 30),
        begin(1.01, OUT, 1),
        data(1.1, BACK, 0),
        begin_ack(1.2, BACK, 30),
        data(1.3, BACK, 1),
        later(),
    ];
    let resync = then(&[
        pdu(
            3.0,
            OUT,
            &SscopPdu::Resync {
                sq: Seq8(2),
                mr: Seq24::new(30),
                uu: vec![],
            },
        ),
        data(3.1, BACK, 2),
        pdu(3.2, BACK, &SscopPdu::ResyncAck { mr: Seq24::new(30) }),
        data(3.3, BACK, 0),
    ]);
    let middle: Vec<Sdu> = clean_link().split_off(SECOND);
    let crossing = [
        begin(0.0, OUT, 1),
        begin(0.1, BACK, 1),
        begin_ack(0.2, OUT, 30),
        begin_ack(0.3, BACK, 30),
        data(0.4, OUT, 0),
        data(0.5, BACK, 0),
        later(),
    ];
    vec![
        ("PDUs of the earlier connection behind BGN", file(&again)),
        ("BGN again while BGAK is on its way", file(&repeated)),
        ("an SD on its way when RS comes", file(&resync)),
        ("a file that begins on a connection", file(&middle)),
        ("two BGNs that cross", file(&crossing)),
    ]
}
