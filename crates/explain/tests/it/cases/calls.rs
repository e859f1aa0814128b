//! Calls of a user A over its switch B: messages in UDs, so that the numbers of SSCOP stay out of it.

use super::{Case, Clean, later, sdu};
use crate::captures::{Sdu, file};
use crate::links;
use aerostat_explain::Rule;
use aerostat_wire::q2931::{
    CallRef, CauseIe, ConnectionId, Element, Ie, Instruction, Message, MessageType, Number,
    RestartClass, Version, convert, id,
};
use aerostat_wire::qos::Qos;
use aerostat_wire::{AtmAddress, Seq8, Seq24, SscopPdu, Vc};

const OUT: &str = "A>B";
const BACK: &str = "B>A";

/// A message about the call that A has made with this reference.
fn message(time: f64, way: &str, value: u32, kind: MessageType, ies: &[Ie]) -> Sdu {
    let flag = way == BACK;
    let call = CallRef { flag, value };
    let message = ies.iter().fold(Message::new(call, kind), Message::with);
    unit(time, way, &message)
}

fn unit(time: f64, way: &str, message: &Message) -> Sdu {
    let info = message.encode();
    sdu(
        time,
        way,
        Vc::SIGNALLING,
        SscopPdu::UnitData { info }.encode(),
    )
}

fn begin(time: f64, way: &str) -> Sdu {
    let (sq, mr, uu) = (Seq8(1), Seq24::new(30), vec![]);
    sdu(
        time,
        way,
        Vc::SIGNALLING,
        SscopPdu::Begin { sq, mr, uu }.encode(),
    )
}

fn begin_ack(time: f64, way: &str) -> Sdu {
    let (mr, uu) = (Seq24::new(30), vec![]);
    sdu(
        time,
        way,
        Vc::SIGNALLING,
        SscopPdu::BeginAck { mr, uu }.encode(),
    )
}

fn address(last: u8) -> AtmAddress {
    AtmAddress([last; 20])
}

fn setup(time: f64, value: u32, called: u8) -> Sdu {
    let [_, traffic, bearer, qos] = convert::elements(&Qos::ubr(9188), false, Version::Uni31);
    let called = Ie::CalledNumber(Number::called(address(called)));
    message(
        time,
        OUT,
        value,
        MessageType::SETUP,
        &[traffic, bearer, called, qos],
    )
}

fn on(vci: u16) -> Ie {
    Ie::ConnectionId(ConnectionId::exact(Vc::new(0, vci)))
}

fn cause(value: u8) -> Ie {
    Ie::Cause(CauseIe::new(1, value))
}

fn proceeding(time: f64, value: u32, vci: u16) -> Sdu {
    message(time, BACK, value, MessageType::CALL_PROCEEDING, &[on(vci)])
}

fn connect(time: f64, value: u32) -> Sdu {
    message(time, BACK, value, MessageType::CONNECT, &[])
}

fn connect_ack(time: f64, value: u32) -> Sdu {
    message(time, OUT, value, MessageType::CONNECT_ACK, &[])
}

fn release(time: f64, way: &str, value: u8) -> Sdu {
    message(time, way, 5, MessageType::RELEASE, &[cause(value)])
}

fn complete(time: f64, way: &str, ies: &[Ie]) -> Sdu {
    message(time, way, 5, MessageType::RELEASE_COMPLETE, ies)
}

/// A link that begins with the file, and these messages.
fn link(more: &[Sdu]) -> Vec<Sdu> {
    let mut all = vec![begin(0.0, OUT), begin_ack(0.1, BACK)];
    all.extend_from_slice(more);
    all.push(later());
    all
}

/// Places in a whole call.
const SETUP: usize = 2;
const CONNECT: usize = 4;
const RELEASE: usize = 6;

fn whole() -> Vec<Sdu> {
    link(&[
        setup(1.0, 5, 9),
        proceeding(1.1, 5, 100),
        connect(1.2, 5),
        connect_ack(1.3, 5),
        release(2.0, OUT, 16),
        complete(2.1, BACK, &[]),
    ])
}

fn connected(more: &[Sdu]) -> Vec<Sdu> {
    let mut all = whole();
    all.splice(RELEASE..RELEASE + 2, more.iter().cloned());
    all
}

/// Changes the message of a UD.
fn alter(sdu: &mut Sdu, change: impl FnOnce(&mut Message)) {
    let Ok(SscopPdu::UnitData { info }) = SscopPdu::decode(&sdu.octets) else {
        panic!("no UD");
    };
    let mut message = Message::decode(&info).expect("a message").message;
    change(&mut message);
    let info = message.encode();
    sdu.octets = SscopPdu::UnitData { info }.encode();
}

fn octets_of(sdu: &mut Sdu, change: impl FnOnce(&mut Vec<u8>)) {
    let Ok(SscopPdu::UnitData { mut info }) = SscopPdu::decode(&sdu.octets) else {
        panic!("no UD");
    };
    change(&mut info);
    sdu.octets = SscopPdu::UnitData { info }.encode();
}

/// An element that no standard defines.
const ODD: u8 = 0x33;

fn odd(pass_along: bool) -> Element {
    let element = Element::new(ODD, vec![1]);
    let instruction = match pass_along {
        true => element.instruction.with_pass_along(),
        false => Instruction(element.instruction.0),
    };
    Element {
        instruction,
        ..element
    }
}

fn messages() -> Vec<Case> {
    let all = whole();
    let at = |rule: Rule, place: usize, change: &dyn Fn(&mut Message)| {
        Case::change(rule, &all, |all| alter(&mut all[place], change))
    };
    let with = |place: usize, pass_along| {
        let mut all = whole();
        alter(&mut all[place], |message| {
            message.elements.push(odd(pass_along))
        });
        all
    };
    vec![
        Case::change(Rule::CallFormat, &all, |all| {
            octets_of(&mut all[RELEASE + 1], |info| info[1] = 2);
        })
        .also(&[Rule::CallRelease]),
        Case::change(Rule::CallLength, &all, |all| {
            octets_of(&mut all[SETUP], |info| info.extend([0; 3]));
        }),
        Case::change(Rule::CallMessage, &all, |all| {
            let odd = message(1.25, BACK, 5, MessageType(0x56), &[]);
            all.insert(CONNECT + 1, odd);
        }),
        at(Rule::CallMandatory, SETUP, &|message| {
            message
                .elements
                .retain(|one| one.id != id::TRAFFIC_DESCRIPTOR);
        }),
        at(Rule::CallContent, SETUP, &|message| {
            let mut bearers = message.elements.iter_mut();
            let bearer = bearers.find(|one| one.id == id::BEARER_CAPABILITY);
            bearer.expect("a bearer").contents[0] = 0x1f;
        }),
        Case::sdus(Rule::CallUnknown, &with(SETUP, true), &with(SETUP, false)),
        at(Rule::CallUnexpected, CONNECT + 1, &|message| {
            message.elements.push(on(100).encode());
        }),
        at(Rule::CallRepeated, CONNECT, &|message| {
            message
                .elements
                .extend([on(100).encode(), on(100).encode()]);
        }),
    ]
}

fn answers() -> Vec<Case> {
    let begun = [setup(1.0, 5, 9)];
    let answered = [setup(1.0, 5, 9), complete(8.0, BACK, &[cause(16)])];
    let proceeds = [setup(1.0, 5, 9), proceeding(1.1, 5, 100)];
    // The called station rings, as long as T301 allows.
    let ringing = [
        setup(1.0, 5, 9),
        proceeding(1.1, 5, 100),
        message(200.0, BACK, 5, MessageType::ALERTING, &[]),
    ];
    let slow = connected(&[release(200.0, OUT, 16), complete(250.0, BACK, &[])]);
    let crossing = connected(&[release(2.0, OUT, 16), release(2.0, BACK, 16)]);
    let class = Ie::Restart(RestartClass::All);
    let restart = |time, way, kind| {
        let flag = way == BACK;
        let call = CallRef { flag, value: 0 };
        unit(time, way, &Message::new(call, kind).with(&class))
    };
    let restarted = link(&[
        restart(1.0, OUT, MessageType::RESTART),
        restart(110.0, BACK, MessageType::RESTART_ACK),
    ]);
    vec![
        Case::sdus(Rule::CallSetup, &link(&answered), &link(&begun)),
        Case::sdus(Rule::CallConnect, &link(&ringing), &link(&proceeds)),
        Case::change(Rule::CallAcknowledge, &connected(&[]), |all| {
            all.remove(CONNECT + 1);
        }),
        Case::sdus(
            Rule::CallRelease,
            &slow,
            &connected(&[release(2.0, OUT, 16)]),
        ),
        Case::change(Rule::CallRestart, &restarted, |all| {
            all.remove(SETUP + 1);
        }),
        Case::sdus(
            Rule::CallStatus,
            &connected(&[status(30)]),
            &connected(&[status(101)]),
        ),
        // A caller whose timer expires says so.
        Case::sdus(
            Rule::CallSetup,
            &crossing,
            &link(&[
                setup(1.0, 5, 9),
                release(9.0, OUT, 102),
                complete(9.1, BACK, &[]),
            ]),
        ),
    ]
}

fn status(value: u8) -> Sdu {
    message(
        3.0,
        BACK,
        5,
        MessageType::STATUS,
        &[Ie::CallState(10), cause(value)],
    )
}

fn calls() -> Vec<Case> {
    let refused = |value| link(&[setup(1.0, 5, 9), complete(1.1, BACK, &[cause(value)])]);
    let ended = |value| connected(&[release(2.0, BACK, value), complete(2.1, OUT, &[])]);
    let second = |called| {
        link(&[
            setup(1.0, 5, 9),
            setup(5.0, 5, called),
            connect(5.1, 5),
            connect_ack(5.2, 5),
        ])
    };
    let late = MessageType::CALL_PROCEEDING;
    let two = |vci| {
        link(&[
            setup(1.0, 5, 9),
            proceeding(1.1, 5, 100),
            connect(1.2, 5),
            connect_ack(1.3, 5),
            setup(2.0, 6, 9),
            proceeding(2.1, 6, vci),
            connect(2.2, 6),
            connect_ack(2.3, 6),
        ])
    };
    let stray = [message(3.0, BACK, 77, MessageType::CONNECT_ACK, &[])];
    // The call may have begun before the file.
    let mut older = connected(&stray);
    older.drain(..SETUP);
    vec![
        Case::change(Rule::CallOrder, &whole(), |all| {
            all.insert(CONNECT + 1, message(1.25, BACK, 5, late, &[]));
        }),
        Case::sdus(Rule::CallReference, &second(9), &second(8)),
        Case::sdus(Rule::CallStray, &older, &connected(&stray)),
        Case::sdus(Rule::CallRefused, &refused(16), &refused(3)),
        Case::sdus(Rule::CallCleared, &ended(31), &ended(38)),
        Case::change(Rule::CallCause, &refused(16), |all| {
            all[SETUP + 1] = complete(1.1, BACK, &[]);
        })
        .also(&[Rule::CallRefused]),
        Case::sdus(Rule::CallChannel, &two(101), &two(100)),
    ]
}

fn party(time: f64, way: &str, kind: MessageType, more: &[Ie]) -> Sdu {
    let (flag, value) = (way == BACK, 1);
    let own = [Ie::EndpointReference { flag, value }];
    message(time, way, 5, kind, &[&own[..], more].concat())
}

fn parties() -> Vec<Case> {
    let called = Ie::CalledNumber(Number::called(address(8)));
    let add = party(3.0, OUT, MessageType::ADD_PARTY, &[called]);
    let ack = party(100.0, BACK, MessageType::ADD_PARTY_ACK, &[]);
    let reject = party(3.1, BACK, MessageType::ADD_PARTY_REJECT, &[cause(3)]);
    let ends = [add.clone(), release(4.0, OUT, 16), complete(4.1, BACK, &[])];
    vec![
        Case::sdus(
            Rule::CallParty,
            &connected(&[add.clone(), ack]),
            &connected(&[add.clone(), reject]),
        ),
        Case::sdus(Rule::CallParty, &connected(&ends), &connected(&[add])),
    ]
}

pub(super) fn cases() -> Vec<Case> {
    [messages(), answers(), calls(), parties()]
        .into_iter()
        .flatten()
        .collect()
}

pub(super) fn clean() -> Vec<Clean> {
    let mut again = connected(&[]);
    // A station that has started again forgets its calls.
    let place = again.len() - 1;
    let second = [
        begin(5.0, OUT),
        begin_ack(5.1, BACK),
        setup(6.0, 5, 8),
        proceeding(6.1, 5, 100),
        connect(6.2, 5),
        connect_ack(6.3, 5),
    ];
    again.splice(place..place, second);
    // Both ends of a line in one list: each has made a call with reference 5.
    let crossing = link(&[
        setup(1.0, 5, 9),
        setup(1.0, 5, 8),
        connect(1.1, 5),
        proceeding(1.2, 5, 100),
        connect(1.3, 5),
    ]);
    let cells = crossing
        .iter()
        .flat_map(|sdu| links::cells(sdu.vc, &sdu.octets));
    let cells: Vec<Vec<u8>> = cells.map(|cell| cell.to_vec()).collect();
    let mut pnni = connected(&[]);
    octets_of(&mut pnni[CONNECT + 1], |info| info[0] = 0xf0);
    pnni.remove(CONNECT);
    pnni.pop();
    vec![
        ("a station that starts again", file(&again)),
        (
            "two calls of one reference without directions",
            links::legacy(100, &cells),
        ),
        ("signalling of PNNI", file(&pnni)),
    ]
}
