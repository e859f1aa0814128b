//! LANE: a client A of an ELAN, its LECS and its LES behind B.

use super::{Case, Clean, later, sdu};
use crate::captures::{Sdu, file};
use aerostat_explain::Rule;
use aerostat_wire::lane::{
    ControlFrame, ElanName, LanDestination, LanType, MIN_DATA_SDU, OpCode, Status,
};
use aerostat_wire::{AtmAddress, MacAddr, Vc};

const OUT: &str = "A>B";
const BACK: &str = "B>A";
/// Control Direct of the first client, and its data.
const CONTROL: Vc = Vc { vpi: 0, vci: 101 };
const DATA: Vc = Vc { vpi: 0, vci: 201 };

const fn address(client: u8) -> AtmAddress {
    AtmAddress([client; 20])
}

fn frame(time: f64, way: &str, frame: &ControlFrame) -> Sdu {
    sdu(time, way, CONTROL, frame.encode())
}

fn request(op: OpCode, transaction: u32, lecid: u16) -> ControlFrame {
    ControlFrame {
        transaction,
        lecid,
        source_atm: address(1),
        source: LanDestination::mac(MacAddr([2; 6])),
        ..ControlFrame::new(op)
    }
}

/// A question, and its answer a tenth of a second later.
fn pair(time: f64, asked: &ControlFrame, change: &dyn Fn(&mut ControlFrame)) -> [Sdu; 2] {
    let mut answer = asked.response(Status::SUCCESS);
    change(&mut answer);
    [frame(time, OUT, asked), frame(time + 0.1, BACK, &answer)]
}

fn configure() -> ControlFrame {
    request(OpCode::CONFIGURE, 1, 0)
}

/// The client with this address joins, and gets this LECID.
fn join(time: f64, client: u8, lecid: u16, lan_type: LanType) -> [Sdu; 2] {
    let asked = ControlFrame {
        source_atm: address(client),
        elan: ElanName::new("elan").expect("a name"),
        lan_type,
        ..request(OpCode::JOIN, 2, 0)
    };
    pair(time, &asked, &|answer| answer.lecid = lecid)
}

fn register() -> ControlFrame {
    request(OpCode::REGISTER, 3, 1)
}

fn arp(transaction: u32) -> ControlFrame {
    ControlFrame {
        target: LanDestination::mac(MacAddr([4; 6])),
        ..request(OpCode::ARP, transaction, 1)
    }
}

fn flush() -> ControlFrame {
    ControlFrame {
        target_atm: address(9),
        ..request(OpCode::FLUSH, 5, 1)
    }
}

fn found(answer: &mut ControlFrame) {
    answer.target_atm = address(9);
}

fn keep(_: &mut ControlFrame) {}

fn client(lecid: u16, lan_type: LanType) -> Vec<Sdu> {
    let mut all = pair(0.0, &configure(), &keep).to_vec();
    all.extend(join(1.0, 1, lecid, lan_type));
    all
}

/// A client that has joined, and these frames.
fn joined(more: &[Sdu]) -> Vec<Sdu> {
    let mut all = client(1, LanType::ETHERNET);
    all.extend_from_slice(more);
    all.push(later());
    all
}

/// An answer with a change, among clean frames.
fn changed(rule: Rule, asked: &ControlFrame, change: &dyn Fn(&mut ControlFrame)) -> Case {
    let near = joined(&pair(2.0, asked, &found));
    let fault = pair(2.0, asked, &|answer| {
        found(answer);
        change(answer);
    });
    Case::sdus(rule, &near, &joined(&fault))
}

/// A request without its answer.
fn unanswered(rule: Rule, asked: &ControlFrame) -> Case {
    let pair = pair(2.0, asked, &found);
    Case::sdus(rule, &joined(&pair), &joined(&pair[..1]))
}

fn answers() -> Vec<Case> {
    let refused = |answer: &mut ControlFrame| answer.status = Status::DENIED;
    let ask = configure();
    let [asked, answer] = join(4.0, 1, 1, LanType::ETHERNET);
    let mut denied = request(OpCode::JOIN, 2, 0).response(Status::DENIED);
    denied.source_atm = address(1);
    let denied = frame(4.1, BACK, &denied);
    // A repetition crosses the answer.
    let mut again = asked.clone();
    again.time = 4.2;
    let joins = joined(&[asked.clone(), answer, again]);
    vec![
        changed(Rule::LaneConfigure, &ask, &refused),
        unanswered(
            Rule::LaneConfigure,
            &ControlFrame {
                transaction: 9,
                ..ask
            },
        ),
        Case::sdus(Rule::LaneJoin, &joins, &joined(&[asked.clone(), denied])),
        Case::sdus(Rule::LaneJoin, &joins, &joined(&[asked])),
        changed(Rule::LaneRegister, &register(), &refused),
        unanswered(Rule::LaneRegister, &register()),
        changed(Rule::LaneArp, &arp(4), &refused),
        unanswered(Rule::LaneArp, &arp(4)),
        unanswered(Rule::LaneFlush, &flush()),
        changed(Rule::LaneArpAddress, &arp(4), &|answer| {
            answer.target_atm = AtmAddress::ZERO;
        }),
    ]
}

fn fields() -> Vec<Case> {
    let asked = pair(2.0, &arp(4), &found);
    let near = joined(&asked);
    let octets = |rule: Rule, change: &dyn Fn(&mut Vec<u8>)| {
        let mut fault = asked.clone();
        change(&mut fault[1].octets);
        Case::sdus(rule, &near, &joined(&fault))
    };
    let lecid = |lecid| {
        let mut all = client(lecid, LanType::ETHERNET);
        all.push(later());
        all
    };
    let with_op = |op| joined(&[frame(2.0, OUT, &request(OpCode(op), 8, 1))]);
    let with_status = |status| {
        let mut asked = arp(4);
        asked.status = status;
        let [request, _] = pair(2.0, &asked, &found);
        let [_, answer] = pair(2.0, &arp(4), &found);
        joined(&[request, answer])
    };
    let data = |lan_type, length| {
        let mut all = client(1, lan_type);
        let octets = [&[0, 1][..], &vec![0; length - 2]].concat();
        all.push(sdu(2.0, OUT, DATA, octets));
        all.push(later());
        all
    };
    let other = join(2.0, 7, 1, LanType::ETHERNET);
    let still = |sender: u8| {
        let asked = ControlFrame {
            source_atm: address(sender),
            ..arp(6)
        };
        [&other[..], &pair(3.0, &asked, &found)].concat()
    };
    vec![
        octets(Rule::LaneFormat, &|octets| octets.truncate(60)).also(&[Rule::LaneArp]),
        octets(Rule::LaneVersion, &|octets| octets[3] = 9),
        // Keep-Alives of servers are not those of LANE 1.0.
        Case::sdus(Rule::LaneOpCode, &with_op(0x000d), &with_op(0x0055)),
        Case::sdus(
            Rule::LaneStatus,
            &with_status(Status::SUCCESS),
            &with_status(Status::VERSION),
        ),
        changed(Rule::LaneTransaction, &arp(4), &|answer| {
            answer.transaction = 40
        })
        .also(&[Rule::LaneArp]),
        changed(Rule::LaneLecid, &arp(4), &|answer| answer.lecid = 40).also(&[Rule::LaneArp]),
        Case::sdus(Rule::LaneLecidRange, &lecid(0xfeff), &lecid(0xff00)),
        // A client leaves, and another one gets its LECID.
        Case::sdus(Rule::LaneLecidTwice, &joined(&still(7)), &joined(&still(1))),
        Case::sdus(
            Rule::LaneShort,
            &data(LanType::ETHERNET, MIN_DATA_SDU),
            &data(LanType::ETHERNET, MIN_DATA_SDU - 1),
        ),
    ]
}

pub(super) fn cases() -> Vec<Case> {
    [answers(), fields()].into_iter().flatten().collect()
}

pub(super) fn clean() -> Vec<Clean> {
    let mut token_ring = client(1, LanType::TOKEN_RING);
    let octets = [&[0, 1][..], &[0; 20]].concat();
    token_ring.push(sdu(2.0, OUT, DATA, octets));
    // A LES passes on the question of another client, which is answered on another link.
    let mut passed_on = arp(4);
    (passed_on.lecid, passed_on.source_atm) = (7, address(7));
    let passed_on = joined(&[frame(2.0, BACK, &passed_on)]);
    let between = [
        pair(2.0, &arp(5), &found)[0].clone(),
        frame(2.05, BACK, &{
            let mut answer = arp(4).response(Status::SUCCESS);
            found(&mut answer);
            answer
        }),
        pair(2.0, &arp(5), &found)[1].clone(),
    ];
    vec![
        ("a short frame of token ring", file(&token_ring)),
        ("a question that the LES passes on", file(&passed_on)),
        (
            "the answer to a question in front of the file",
            file(&joined(&between)),
        ),
    ]
}
