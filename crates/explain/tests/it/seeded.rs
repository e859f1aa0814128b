//! One fault in a clean recording each: exactly its rule is named.

use crate::captures::{Sdu, explained, file, recorded, rules, said};
use aerostat_explain::{Report, Rule};
use aerostat_wire::atmarp::{AtmArp, Operation, Party};
use aerostat_wire::lane::{self, Control, ControlFrame, OpCode, Status};
use aerostat_wire::q2931::{CallRef, CauseIe, Ie, Message, MessageType, id};
use aerostat_wire::{AtmAddress, Seq24, SscopPdu, Vc, ilmi};
use std::net::Ipv4Addr;

/// The rules beside those of the recording itself.
fn seeded(name: &str, change: impl FnOnce(&mut Vec<Sdu>)) -> (Vec<Rule>, Report) {
    let mut sdus = recorded(name);
    let clean = rules(&explained(&file(&sdus)));
    change(&mut sdus);
    let report = explained(&file(&sdus));
    let new = rules(&report).difference(&clean).copied().collect();
    (new, report)
}

fn names(name: &str, wanted: &[Rule], change: impl FnOnce(&mut Vec<Sdu>)) {
    let (rules, report) = seeded(name, change);
    assert_eq!(rules, wanted, "{name}:\n{}", said(&report));
}

/// The first SDU for which `of` holds.
fn first(sdus: &[Sdu], of: impl Fn(&Sdu) -> bool) -> usize {
    sdus.iter().position(of).expect("such an SDU")
}

/// The clock goes on, so that answers are missed.
fn goes_on(sdus: &mut Vec<Sdu>) {
    let mut last = sdus.last().expect("an SDU").clone();
    last.time += 20.0;
    last.vc = Vc::new(0, 999);
    last.octets = vec![0; 70];
    sdus.push(last);
}

fn sscop(sdu: &Sdu) -> Option<SscopPdu> {
    (sdu.vc == Vc::SIGNALLING).then(|| SscopPdu::decode(&sdu.octets).ok())?
}

fn call(sdu: &Sdu) -> Option<Message> {
    match sscop(sdu)? {
        SscopPdu::Data { info, .. } => Message::decode(&info).ok().map(|decoded| decoded.message),
        _ => None,
    }
}

fn is_call(kind: MessageType) -> impl Fn(&Sdu) -> bool {
    move |sdu| call(sdu).is_some_and(|message| message.kind == kind)
}

/// Changes the message of an SD.
fn change_call(sdu: &mut Sdu, change: impl FnOnce(&mut Message)) {
    let Some(SscopPdu::Data { s, info }) = sscop(sdu) else {
        panic!("no SD");
    };
    let mut message = Message::decode(&info).expect("a message").message;
    change(&mut message);
    let info = message.encode();
    sdu.octets = SscopPdu::Data { s, info }.encode();
}

/// The message of an SD with a change, as UD, so that the numbers of the link stay.
fn unnumbered(sdu: &Sdu, change: impl FnOnce(&mut Message)) -> Sdu {
    let mut changed = sdu.clone();
    change_call(&mut changed, change);
    let Some(SscopPdu::Data { info, .. }) = sscop(&changed) else {
        panic!("no SD");
    };
    changed.octets = SscopPdu::UnitData { info }.encode();
    changed
}

fn frame(sdu: &Sdu) -> Option<ControlFrame> {
    if !lane::is_control(&sdu.octets) {
        return None;
    }
    match Control::decode(&sdu.octets).ok()? {
        Control::Frame(frame) => Some(*frame),
        _ => None,
    }
}

fn is_frame(op: OpCode) -> impl Fn(&Sdu) -> bool {
    move |sdu| frame(sdu).is_some_and(|frame| frame.op == op)
}

fn change_frame(sdu: &mut Sdu, change: impl FnOnce(&mut ControlFrame)) {
    let mut changed = frame(sdu).expect("a frame");
    change(&mut changed);
    sdu.octets = changed.encode();
}

#[test]
fn faults_of_sscop() {
    names("d-clip-svc", &[Rule::SscopFormat], |sdus| {
        let at = first(sdus, |sdu| {
            matches!(sscop(sdu), Some(SscopPdu::Stat { .. }))
        });
        sdus[at].octets.push(0);
    });
    names("d-clip-svc", &[Rule::SscopPoll], |sdus| {
        sdus.retain(|sdu| !matches!(sscop(sdu), Some(SscopPdu::Stat { .. })));
        goes_on(sdus);
    });
    names("d-clip-svc", &[Rule::SscopStat], |sdus| {
        let at = first(sdus, |sdu| {
            matches!(sscop(sdu), Some(SscopPdu::Stat { .. }))
        });
        let Some(SscopPdu::Stat { mr, r, list, .. }) = sscop(&sdus[at]) else {
            panic!("no STAT");
        };
        let ps = Seq24::new(500);
        sdus[at].octets = SscopPdu::Stat { ps, mr, r, list }.encode();
    });
    names("d-clip-svc", &[Rule::SscopAcknowledged], |sdus| {
        let at = first(sdus, |sdu| {
            matches!(sscop(sdu), Some(SscopPdu::Stat { .. }))
        });
        let Some(SscopPdu::Stat { ps, mr, list, .. }) = sscop(&sdus[at]) else {
            panic!("no STAT");
        };
        let r = Seq24::new(300);
        sdus[at].octets = SscopPdu::Stat { ps, mr, r, list }.encode();
    });
    names("d-clip-svc", &[Rule::SscopGap], |sdus| {
        let at = first(sdus, |sdu| call(sdu).is_some());
        let Some(SscopPdu::Data { s, info }) = sscop(&sdus[at]) else {
            panic!("no SD");
        };
        let mut early = sdus[at].clone();
        early.octets = SscopPdu::Data { s: s.plus(3), info }.encode();
        sdus.insert(at, early);
    });
}

#[test]
fn faults_at_the_ends_of_a_link() {
    names(
        "d-clip-svc",
        &[Rule::SscopRejected, Rule::SscopClosed],
        |sdus| {
            let at = first(sdus, |sdu| {
                matches!(sscop(sdu), Some(SscopPdu::BeginAck { .. }))
            });
            sdus[at].octets = SscopPdu::BeginReject { uu: vec![] }.encode();
        },
    );
    names("d-clip-svc", &[Rule::SscopEnded], |sdus| {
        let mut last = sdus[first(sdus, |sdu| sscop(sdu).is_some())].clone();
        last.time = sdus.last().expect("an SDU").time;
        let (by_sscop, uu) = (true, vec![]);
        last.octets = SscopPdu::End { by_sscop, uu }.encode();
        sdus.push(last);
    });
    names("d-clip-svc", &[Rule::SscopBegin], |sdus| {
        let at = first(sdus, |sdu| {
            matches!(sscop(sdu), Some(SscopPdu::Begin { .. }))
        });
        let begin = sdus[at].clone();
        *sdus = vec![begin];
        goes_on(sdus);
    });
}

#[test]
fn faults_of_messages() {
    let setup = is_call(MessageType::SETUP);
    names("d-clip-svc", &[Rule::CallMandatory], |sdus| {
        let at = first(sdus, &setup);
        change_call(&mut sdus[at], |message| {
            message
                .elements
                .retain(|element| element.id != id::TRAFFIC_DESCRIPTOR);
        });
    });
    names("d-clip-svc", &[Rule::CallContent], |sdus| {
        let at = first(sdus, &setup);
        change_call(&mut sdus[at], |message| {
            let bearer = message
                .elements
                .iter_mut()
                .find(|one| one.id == id::BEARER_CAPABILITY);
            bearer.expect("a bearer").contents[0] = 0x1f;
        });
    });
    names("d-clip-svc", &[Rule::CallLength], |sdus| {
        let at = first(sdus, &setup);
        let Some(SscopPdu::Data { s, mut info }) = sscop(&sdus[at]) else {
            panic!("no SD");
        };
        info.extend([0; 3]);
        sdus[at].octets = SscopPdu::Data { s, info }.encode();
    });
    names("d-clip-svc", &[Rule::CallMessage], |sdus| {
        let at = first(sdus, is_call(MessageType::CONNECT));
        let odd = unnumbered(&sdus[at], |message| message.kind = MessageType(0x55));
        sdus.insert(at + 1, odd);
    });
}

#[test]
fn faults_of_calls() {
    let connect = is_call(MessageType::CONNECT);
    names("d-clip-svc", &[Rule::CallOrder], |sdus| {
        let at = first(sdus, &connect);
        let late = unnumbered(&sdus[at], |message| {
            message.kind = MessageType::CALL_PROCEEDING;
            message.elements.clear();
        });
        sdus.insert(at + 1, late);
    });
    names("d-clip-svc", &[Rule::CallRefused], |sdus| {
        let at = first(sdus, &connect);
        for sdu in sdus
            .iter_mut()
            .skip(at + 1)
            .filter(|sdu| call(sdu).is_some())
        {
            change_call(sdu, |message| {
                message.kind = MessageType::STATUS_ENQUIRY;
                message.elements.clear();
            });
        }
        change_call(&mut sdus[at], |message| {
            message.kind = MessageType::RELEASE_COMPLETE;
            message.elements = vec![Ie::Cause(CauseIe::new(1, 3)).encode()];
        });
    });
    names("d-clip-svc", &[Rule::CallStray], |sdus| {
        let at = first(sdus, &connect);
        let (flag, value) = (true, 77);
        let stray = unnumbered(&sdus[at], |message| message.call = CallRef { flag, value });
        sdus.insert(at + 1, stray);
    });
    names("d-clip-svc", &[Rule::CallSetup], |sdus| {
        let at = first(sdus, is_call(MessageType::SETUP));
        for sdu in sdus
            .iter_mut()
            .skip(at + 1)
            .filter(|sdu| call(sdu).is_some())
        {
            change_call(sdu, |message| {
                message.kind = MessageType::STATUS_ENQUIRY;
                message.elements.clear();
            });
        }
        goes_on(sdus);
    });
}

#[test]
fn faults_of_ilmi() {
    let is_message = |sdu: &Sdu| sdu.vc == Vc::ILMI;
    names("e-ilmi-net", &[Rule::IlmiFormat], |sdus| {
        let at = first(sdus, is_message);
        sdus[at].octets[0] = 0x31;
    });
    names("e-ilmi-net", &[Rule::IlmiRefused], |sdus| {
        let set = |sdu: &Sdu| match ilmi::Message::decode(&sdu.octets) {
            Ok(ilmi::Message(ilmi::Pdu::Request(request))) => Some(request),
            _ => None,
        };
        let id = sdus
            .iter()
            .filter_map(set)
            .find(|request| request.kind == ilmi::Kind::Set)
            .expect("a SetRequest")
            .id;
        let at = first(sdus, |sdu| {
            set(sdu).is_some_and(|request| request.kind == ilmi::Kind::Response && request.id == id)
        });
        let mut response = set(&sdus[at]).expect("a response");
        response.status = ilmi::ErrorStatus::BAD_VALUE;
        sdus[at].octets = ilmi::Message(ilmi::Pdu::Request(response)).encode();
    });
}

#[test]
fn faults_of_lane() {
    let joined = is_frame(OpCode::JOIN.response());
    names("f-lane", &[Rule::LaneJoin], |sdus| {
        // A repetition, so that the rest stays as it was.
        let at = first(sdus, &joined);
        let mut refused = sdus[at].clone();
        change_frame(&mut refused, |frame| frame.status = Status::DENIED);
        sdus.insert(at + 1, refused);
    });
    names("f-lane", &[Rule::LaneLecidRange], |sdus| {
        let at = first(sdus, &joined);
        let mut wrong = sdus[at].clone();
        change_frame(&mut wrong, |frame| frame.lecid = 0);
        sdus.insert(at + 1, wrong);
    });
    names("f-lane", &[Rule::LaneArp], |sdus| {
        sdus.retain(|sdu| !is_frame(OpCode::ARP.response())(sdu));
    });
    names("f-lane", &[Rule::LaneStatus], |sdus| {
        let at = first(sdus, is_frame(OpCode::JOIN));
        change_frame(&mut sdus[at], |frame| frame.status = Status::VERSION);
    });
    names("f-lane", &[Rule::LaneVersion], |sdus| {
        let at = first(sdus, is_frame(OpCode::ARP.response()));
        sdus[at].octets[3] = 9;
    });
    names("f-lane", &[Rule::LaneOpCode], |sdus| {
        let at = first(sdus, is_frame(OpCode::CONFIGURE.response()));
        let mut odd = sdus[at].clone();
        change_frame(&mut odd, |frame| frame.op = OpCode(0x0055));
        sdus.insert(at + 1, odd);
    });
    names("f-lane", &[Rule::LaneFormat], |sdus| {
        let at = first(sdus, is_frame(OpCode::CONFIGURE.response()));
        let mut short = sdus[at].clone();
        short.octets.truncate(60);
        sdus.insert(at + 1, short);
    });
    names("f-lane", &[Rule::LaneJoin, Rule::LaneTransaction], |sdus| {
        for sdu in sdus.iter_mut().filter(|sdu| joined(sdu)) {
            change_frame(sdu, |frame| frame.transaction += 1000);
        }
        goes_on(sdus);
    });
}

#[test]
fn faults_of_atmarp() {
    let (asker, wanted) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    let number = |last: u8| Some(AtmAddress([last; 20]));
    let request = AtmArp {
        operation: Operation::REQUEST,
        source: Party::new(number(1), Some(asker)),
        target: Party::new(None, Some(wanted)),
    };
    let reply = AtmArp {
        operation: Operation::REPLY,
        source: Party::new(number(2), Some(wanted)),
        target: Party::new(number(1), Some(asker)),
    };
    let asked = |answers: &[AtmArp]| {
        let packets: Vec<AtmArp> = [&[request.clone()][..], answers].concat();
        move |sdus: &mut Vec<Sdu>| {
            for (packet, way) in packets.iter().zip(["A>B", "B>A", "B>A"]) {
                let mut sdu = sdus.last().expect("an SDU").clone();
                (sdu.vc, sdu.way) = (Vc::new(0, 400), way.to_owned());
                sdu.octets = packet.to_sdu();
                sdus.push(sdu);
            }
            sdus.push(Sdu {
                time: sdus.last().expect("an SDU").time + 6.0,
                ..sdus[0].clone()
            });
        }
    };
    let with = |change: &dyn Fn(&mut AtmArp)| {
        let mut changed = reply.clone();
        change(&mut changed);
        changed
    };
    names("d-clip-svc", &[], asked(std::slice::from_ref(&reply)));
    names("d-clip-svc", &[Rule::AtmArpAnswer], asked(&[]));
    let nak = AtmArp {
        operation: Operation::NAK,
        ..request.clone()
    };
    names("d-clip-svc", &[Rule::AtmArpNak], asked(&[nak]));
    let empty = with(&|reply| reply.source.number.octets.clear());
    names("d-clip-svc", &[Rule::AtmArpAddress], asked(&[empty]));
    let other = with(&|reply| reply.source.ip = Some(Ipv4Addr::new(10, 0, 0, 9)));
    names(
        "d-clip-svc",
        &[Rule::AtmArpAnswer, Rule::AtmArpOther],
        asked(&[other]),
    );
    let odd = with(&|reply| reply.operation = Operation(77));
    names(
        "d-clip-svc",
        &[Rule::AtmArpOperation],
        asked(&[reply.clone(), odd]),
    );
    let moved = with(&|reply| reply.source.number.octets = vec![3; 20]);
    names(
        "d-clip-svc",
        &[Rule::AtmArpTwice],
        asked(&[reply.clone(), moved]),
    );
    names("d-clip-svc", &[Rule::AtmArpFormat], |sdus| {
        asked(&[reply.clone(), reply.clone()])(sdus);
        let last = sdus.len() - 2;
        sdus[last].octets[10] = 9;
    });
    names("d-clip-svc", &[Rule::InAtmArpAnswer], |sdus| {
        let inverse = [0xaa, 0xaa, 3, 0, 0, 0, 8, 6, 0, 0x13, 8, 0, 0x14, 0, 0, 9];
        sdus.retain(|sdu| !sdu.octets.starts_with(&inverse));
        goes_on(sdus);
    });
}

#[test]
fn faults_of_encapsulation() {
    let add = |octets: &'static [u8]| {
        move |sdus: &mut Vec<Sdu>| {
            let mut odd = sdus.last().expect("an SDU").clone();
            (odd.vc, odd.octets) = (Vc::new(0, 400), octets.to_vec());
            sdus.push(odd);
        }
    };
    names(
        "d-clip-svc",
        &[Rule::LlcPid],
        add(&[0xaa, 0xaa, 3, 0, 0x80, 0xc2, 0x77, 7, 0, 0]),
    );
    names(
        "d-clip-svc",
        &[Rule::LlcPid],
        add(&[0xaa, 0xaa, 3, 0, 0, 0x5e, 0, 0x55]),
    );
    names("d-clip-svc", &[Rule::LlcHeader], add(&[0xaa, 0xaa, 3, 0]));
    names(
        "d-clip-svc",
        &[Rule::BridgedPadding],
        add(&[0xaa, 0xaa, 3, 0, 0x80, 0xc2, 0, 7, 1, 0, 9]),
    );
    names(
        "d-clip-svc",
        &[Rule::RoutedLength],
        add(&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0, 0x45, 0, 0, 99]),
    );
    let frame = aerostat_wire::line::Encapsulation::BridgedLlcFcs.sdu(&[0x45; 40]);
    names("d-clip-svc", &[], |sdus| {
        let mut good = sdus.last().expect("an SDU").clone();
        (good.vc, good.octets) = (Vc::new(0, 400), frame.clone());
        sdus.push(good);
    });
    names("d-clip-svc", &[Rule::BridgedFcs], |sdus| {
        let mut wrong = sdus.last().expect("an SDU").clone();
        (wrong.vc, wrong.octets) = (Vc::new(0, 400), frame.clone());
        wrong.octets[20] ^= 1;
        sdus.push(wrong);
    });
}
