//! Signalling messages: worked examples (hex computed from the standard's layouts by a script that shares no
//! code with this crate), every message of the recorded Linux hosts, and properties.

use aerostat_testing::recording::{ALL, on_vci, unhex};
use aerostat_wire::q2931::convert;
use aerostat_wire::q2931::{
    Aal, Action, CallRef, CauseIe, ConnectionId, Element, Fields, Ie, Instruction, Message,
    MessageType, Number, QosClass, RestartClass, Verdict, Version, id, ie,
};
use aerostat_wire::{AtmAddress, Blli, Qos, ServiceCategory, SscopPdu, TrafficParams, Vc};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn caller() -> AtmAddress {
    "47000580ffe1000000f21a01020020480a1b2c00".parse().unwrap()
}
fn callee() -> AtmAddress {
    "47000580ffe1000000f21a01020020480d3e4f00".parse().unwrap()
}

const REQUEST: CallRef = CallRef {
    flag: false,
    value: 1,
};
const ANSWER: CallRef = CallRef {
    flag: true,
    value: 1,
};

/// The value gives the octets and the octets give the value; no element is at fault.
fn golden(hex: &str, message: &Message) {
    let octets = unhex(hex);
    let decoded = Message::decode(&octets).unwrap();
    assert_eq!(&decoded.message, message, "decoding {hex}");
    assert_eq!(message.encode(), octets, "encoding {}", message.kind.name());
    assert_eq!(decoded.faults().count(), 0, "{:?}", decoded.verdicts);
    assert!(decoded.missing().is_empty());
    assert!(!decoded.length_error);
}

fn golden_element(hex: &str, value: &Ie) {
    let octets = unhex(hex);
    let mut out = Vec::new();
    value.encode().encode_into(&mut out);
    assert_eq!(out, octets, "encoding {value:?}");
    assert_eq!(ie::decode(&value.encode()).as_ref(), Ok(value));
}

/// A call for Classical IP, 104 octets. Its bearer has octet 5a, as UNI 3.0 wants and 3.1 allows.
#[test]
fn worked_setup() {
    let qos = Qos::ubr(9188);
    let [aal, traffic, bearer, class] = convert::elements(&qos, false, Version::Uni31);
    let Ie::Bearer(mut bearer) = bearer else {
        panic!("{bearer:?}")
    };
    assert_eq!(bearer.atc, None);
    bearer.atc = Some(0);
    let message = Message::new(REQUEST, MessageType::SETUP)
        .with(&aal)
        .with(&traffic)
        .with(&Ie::Bearer(bearer))
        .with(&Ie::Blli(Blli::LLC))
        .with(&Ie::CalledNumber(Number::called(callee())))
        .with(&Ie::CallingNumber(Number::calling(caller())))
        .with(&class);
    let hex = "09 03 00 00 01 05 80 00 5f
        58 80 00 09 05 8c 23 e4 81 23 e4 84 00
        59 80 00 09 84 05 63 b7 85 05 63 b7 be
        5e 80 00 03 10 80 80
        5f 80 00 01 cc
        70 80 00 15 82 47 00 05 80 ff e1 00 00 00 f2 1a 01 02 00 20 48 0d 3e 4f 00
        6c 80 00 16 02 80 47 00 05 80 ff e1 00 00 00 f2 1a 01 02 00 20 48 0a 1b 2c 00
        5c 80 00 02 00 00";
    golden(hex, &message);
    assert_eq!(message.encode().len(), 104);
}

#[test]
fn worked_call_messages() {
    let label = Ie::ConnectionId(ConnectionId::exact(Vc::new(0, 35)));
    let normal = Ie::Cause(CauseIe::new(0, 16));
    golden(
        "09 03 80 00 01 02 80 00 09 5a 80 00 05 88 00 00 00 23",
        &Message::new(ANSWER, MessageType::CALL_PROCEEDING).with(&label),
    );
    golden(
        "09 03 80 00 01 07 80 00 09 5a 80 00 05 88 00 00 00 23",
        &Message::new(ANSWER, MessageType::CONNECT).with(&label),
    );
    golden(
        "09 03 00 00 01 0f 80 00 00",
        &Message::new(REQUEST, MessageType::CONNECT_ACK),
    );
    golden(
        "09 03 00 00 01 4d 80 00 06 08 80 00 02 80 90",
        &Message::new(REQUEST, MessageType::RELEASE).with(&normal),
    );
    golden(
        "09 03 80 00 01 5a 80 00 06 08 80 00 02 80 90",
        &Message::new(ANSWER, MessageType::RELEASE_COMPLETE).with(&normal),
    );
    golden(
        "09 03 00 00 01 75 80 00 00",
        &Message::new(REQUEST, MessageType::STATUS_ENQUIRY),
    );
    golden(
        "09 03 80 00 01 7d 80 00 0b 14 80 00 01 0a 08 80 00 02 80 9e",
        &Message::new(ANSWER, MessageType::STATUS)
            .with(&Ie::CallState(10))
            .with(&Ie::Cause(CauseIe::new(0, 30))),
    );
    let global = CallRef {
        flag: false,
        value: CallRef::GLOBAL,
    };
    let all = Ie::Restart(RestartClass::All);
    golden(
        "09 03 00 00 00 46 80 00 05 79 80 00 01 82",
        &Message::new(global, MessageType::RESTART).with(&all),
    );
    golden(
        "09 03 80 00 00 4e 80 00 05 79 80 00 01 82",
        &Message::new(global.answer(), MessageType::RESTART_ACK).with(&all),
    );
}

#[test]
fn worked_party_messages() {
    let party = Ie::EndpointReference {
        flag: false,
        value: 1,
    };
    let message = Message::new(REQUEST, MessageType::ADD_PARTY)
        .with(&Ie::Aal(Aal::aal5(9188, 9188)))
        .with(&Ie::Blli(Blli::LLC))
        .with(&Ie::CalledNumber(Number::called(callee())))
        .with(&Ie::CallingNumber(Number::calling(caller())))
        .with(&party);
    golden(
        "09 03 00 00 01 80 80 00 4c
        58 80 00 09 05 8c 23 e4 81 23 e4 84 00 5f 80 00 01 cc
        70 80 00 15 82 47 00 05 80 ff e1 00 00 00 f2 1a 01 02 00 20 48 0d 3e 4f 00
        6c 80 00 16 02 80 47 00 05 80 ff e1 00 00 00 f2 1a 01 02 00 20 48 0a 1b 2c 00
        54 80 00 03 00 00 01",
        &message,
    );
    golden(
        "09 03 80 00 01 81 80 00 07 54 80 00 03 00 00 01",
        &Message::new(ANSWER, MessageType::ADD_PARTY_ACK).with(&party),
    );
}

#[test]
fn worked_elements() {
    let timer = CauseIe::new(0, 102).with(b"308");
    golden_element("08 80 00 05 80 e6 33 30 38", &Ie::Cause(timer));
    let missing = CauseIe::new(2, 96).with(&[id::TRAFFIC_DESCRIPTOR]);
    golden_element("08 80 00 03 82 e0 59", &Ie::Cause(missing));
    golden_element(
        "5f 80 00 09 6b 40 80 80 00 a0 3e 00 02",
        &Ie::Blli(Blli::LANE_DATA_ETHERNET),
    );
    let rates = Fields::new().with(0x84, 10_000).with(0x85, 10_000);
    golden_element(
        "59 80 00 0a 84 00 27 10 85 00 27 10 bf 00",
        &Ie::Traffic(rates.with(0xbf, 0)),
    );
    let abr = Fields::new().with(0xc2, 1000).with(0xc3, 1000);
    let abr = abr
        .with(0xc4, 0xff_ffff)
        .with(0xc5, 0xff_ffff)
        .with(0xc6, 0);
    let abr = abr
        .with(0xc8, 11)
        .with(0xc9, 11)
        .with(0xca, 11)
        .with(0xcb, 11);
    golden_element(
        "84 80 00 1c c2 00 03 e8 c3 00 03 e8 c4 ff ff ff c5 ff ff ff c6 00 00 00
         c8 0b c9 0b ca 0b cb 0b",
        &Ie::AbrSetup(abr),
    );
    golden_element(
        "42 80 00 06 01 00 0a 03 ff ff",
        &Ie::TransitDelay {
            forum: false,
            fields: Fields::new().with(1, 10).with(3, 0xffff),
        },
    );
    let qos = Fields::new().with(0x94, 1000).with(0x95, 1000);
    golden_element(
        "ec e0 00 0d 00 94 00 03 e8 95 00 03 e8 a2 07 a3 07",
        &Ie::ExtendedQos {
            origin: 0,
            fields: qos.with(0xa2, 7).with(0xa3, 7),
        },
    );
    golden_element("e8 e0 00 05 80 00 00 00 05", &Ie::LijCallId(5));
    golden_element(
        "eb e0 00 02 81 05",
        &Ie::ConnectionScope { kind: 1, scope: 5 },
    );
}

fn vbr(pcr: u32, scr: u32, mbs: u32, max_sdu: u16) -> TrafficParams {
    TrafficParams {
        category: Some(ServiceCategory::NrtVbr),
        scr,
        mbs,
        ..TrafficParams::cbr(pcr, max_sdu)
    }
}

#[test]
fn qos_becomes_elements_and_comes_back() {
    let both = vbr(50_000, 10_000, 200, 1516);
    let rt = TrafficParams {
        category: Some(ServiceCategory::RtVbr),
        ..both
    };
    let abr = TrafficParams {
        category: Some(ServiceCategory::Abr),
        min_pcr: 1000,
        ..TrafficParams::cbr(80_000, 9188)
    };
    let cases = [
        (Qos::ubr(1516), false),
        (Qos::ubr_multipoint(1516), true),
        (Qos::cbr(10_000, 9188), false),
        (Qos { tx: both, rx: both }, false),
        (Qos { tx: rt, rx: rt }, false),
        (
            Qos {
                tx: rt,
                rx: TrafficParams::none(),
            },
            true,
        ),
        (Qos { tx: abr, rx: abr }, false),
    ];
    for version in [Version::Uni30, Version::Uni31, Version::Uni40] {
        for (qos, multipoint) in cases {
            let elements = convert::elements(&qos, multipoint, version);
            let [
                Ie::Aal(aal),
                Ie::Traffic(traffic),
                Ie::Bearer(bearer),
                Ie::Qos(_),
            ] = &elements
            else {
                panic!("{elements:?}")
            };
            assert_eq!(convert::qos(traffic, Some(bearer), Some(aal)), qos);
            assert_eq!(bearer.multipoint, multipoint);
            assert!(convert::combination_allowed(traffic, multipoint));
            for ie in &elements {
                assert_eq!(ie::decode(&ie.encode()).as_ref(), Ok(ie));
            }
        }
    }
    let qos = Qos { tx: both, rx: both };
    let [_, traffic, ..] = convert::elements(&qos, false, Version::Uni31);
    golden_element(
        "59 80 00 18 84 00 c3 50 85 00 c3 50 90 00 27 10 91 00 27 10 b0 00 00 c8 b1 00 00 c8",
        &traffic,
    );
}

/// Octets of a descriptor and of a bearer capability, after the code points of UNI 3.1 Figure 5-17 and UNI 4.0 §9 and
/// annex 9. Rates: 50 000, 10 000 and 8000 cells/s; burst of 200 cells.
#[test]
fn contracts_with_rates_of_cells_with_clp_0() {
    let cbr = "cbr:pcr=50000,pcr0=8000,tagging=true";
    let rt = "rt-vbr:pcr=50000,scr0=10000,mbs=200";
    let nrt = "nrt-vbr:tx:pcr=50000,scr0=10000,mbs=200,tagging=true,rx:pcr=50000,scr=10000,mbs=200";
    let cbr_octets = "59 80 00 12 82 00 1f 40 83 00 1f 40 84 00 c3 50 85 00 c3 50 bf 03";
    let rt_octets =
        "59 80 00 18 84 00 c3 50 85 00 c3 50 88 00 27 10 89 00 27 10 a0 00 00 c8 a1 00 00 c8";
    let nrt_octets =
        "59 80 00 1a 84 00 c3 50 85 00 c3 50 88 00 27 10 91 00 27 10 a0 00 00 c8 b1 00 00 c8 bf 01";
    for (text, octets, [old, new]) in [
        (cbr, cbr_octets.to_owned(), [0x85, 0x85]),
        (rt, rt_octets.to_owned(), [0x89, 0x89]),
        (nrt, nrt_octets.to_owned(), [0x8a, 0x8a]),
        (
            "cbr:pcr=50000",
            "59 80 00 08 84 00 c3 50 85 00 c3 50".to_owned(),
            [0x85, 0x87],
        ),
        (
            "rt-vbr:pcr=50000,scr=10000,mbs=200",
            rt_octets
                .replace("88 00 27 10 89", "90 00 27 10 91")
                .replace("a0 00 00 c8 a1", "b0 00 00 c8 b1"),
            [0x89, 0x93],
        ),
    ] {
        let qos: Qos = text.parse().unwrap();
        for version in [Version::Uni30, Version::Uni31, Version::Uni40] {
            let [_, traffic, bearer, _] = convert::elements(&qos, false, version);
            golden_element(&octets, &traffic);
            let capability = if version == Version::Uni40 { new } else { old };
            golden_element(&format!("5e 80 00 03 10 {capability:02x} 80"), &bearer);
            let (Ie::Traffic(traffic), Ie::Bearer(bearer)) = (traffic, bearer) else {
                panic!("other elements");
            };
            assert!(convert::combination_allowed(&traffic, false), "{text}");
            assert_eq!(convert::qos(&traffic, Some(&bearer), None), qos, "{text}");
        }
    }
    let desired: Qos = "ubr:tx:mdcr=1000,rx:mdcr=2".parse().unwrap();
    let element = convert::desired(&desired).unwrap();
    golden_element("f0 e0 00 09 00 00 00 03 e8 02 00 00 02", &element);
    let Ie::MinimumCellRate { fields, .. } = element else {
        panic!("{element:?}")
    };
    assert_eq!(
        convert::with_desired("ubr".parse().unwrap(), &fields),
        desired
    );
    assert!(convert::desired(&Qos::ubr(0)).is_none());
}

/// Parameters that contradict each other: cause 73.
#[test]
fn contradictions_in_a_descriptor() {
    let peak = || Fields::new().with(0x84, 1000).with(0x85, 1000);
    let bursts = |fields: Fields, id, cells| fields.with(id, cells).with(id + 1, cells);
    let rates = |id, rate| peak().with(id, rate).with(id + 1, rate);
    for (fields, allowed) in [
        (bursts(rates(0x90, 1000), 0xb0, 1), true),
        (bursts(rates(0x90, 1001), 0xb0, 1), false),
        (bursts(rates(0x88, 1001), 0xa0, 1), false),
        (bursts(rates(0x90, 10), 0xb0, 0), false),
        (rates(0x82, 1000), true),
        (rates(0x82, 1001), false),
        (bursts(bursts(rates(0x90, 10), 0x88, 5), 0xb0, 9), false),
    ] {
        assert_eq!(
            convert::combination_allowed(&fields, false),
            allowed,
            "{fields:?}"
        );
    }
}

#[test]
fn combinations_that_cannot_stand() {
    let peak = Fields::new().with(0x84, 1000).with(0x85, 1000);
    assert!(convert::combination_allowed(&peak, false));
    assert!(
        !convert::combination_allowed(&peak, true),
        "a leaf cannot send"
    );
    assert!(!convert::combination_allowed(
        &Fields::new().with(0x84, 1000),
        false
    ));
    assert!(!convert::combination_allowed(
        &peak.clone().with(0x90, 10),
        false
    ));
    let vbr = peak.with(0x90, 10).with(0xb0, 5);
    assert!(convert::combination_allowed(&vbr, false));
    assert!(!convert::combination_allowed(&vbr.with(0xbe, 0), false));
}

/// Every message of the recordings decodes without a fault and encodes to the same octets. So does every element by way
/// of its value.
#[test]
fn recorded_messages() {
    let mut kinds = BTreeMap::new();
    for name in ALL {
        for record in on_vci(name, 5) {
            let Ok(SscopPdu::Data { info, .. }) = SscopPdu::decode(&record.sdu) else {
                continue;
            };
            let decoded = Message::decode(&info).unwrap();
            let faults: Vec<_> = decoded.faults().collect();
            assert!(faults.is_empty(), "{}: {faults:?}", record.at);
            assert!(decoded.missing().is_empty(), "{}", record.at);
            assert_eq!(decoded.encode(), info, "{}", record.at);
            for element in &decoded.message.elements {
                let value = ie::decode(element).unwrap();
                assert!(!matches!(value, Ie::Raw(_)), "{}: {element:?}", record.at);
                assert_eq!(&value.encode(), element, "{}", record.at);
            }
            *kinds.entry(decoded.message.kind).or_insert(0) += 1;
        }
    }
    for kind in [
        MessageType::SETUP,
        MessageType::CALL_PROCEEDING,
        MessageType::CONNECT,
        MessageType::CONNECT_ACK,
        MessageType::RELEASE,
        MessageType::RELEASE_COMPLETE,
        MessageType::STATUS,
        MessageType::ADD_PARTY,
        MessageType::DROP_PARTY,
    ] {
        assert!(kinds.contains_key(&kind), "no {} recorded", kind.name());
    }
    assert!(kinds.values().sum::<i32>() > 200, "{kinds:?}");
}

/// The SETUPs that a Linux host sends in each version are those that we make from the same connection.
#[test]
fn our_traffic_elements_are_those_of_linux() {
    for (name, version) in [
        ("c-svc", Version::Uni31),
        ("c-svc-uni30", Version::Uni30),
        ("c-svc-uni40", Version::Uni40),
        ("g-mpoa", Version::Uni31),
    ] {
        let mut seen = 0;
        for record in on_vci(name, 5) {
            let Ok(SscopPdu::Data { info, .. }) = SscopPdu::decode(&record.sdu) else {
                continue;
            };
            let decoded = Message::decode(&info).unwrap();
            let message = &decoded.message;
            if message.kind != MessageType::SETUP {
                continue;
            }
            seen += 1;
            let (Some(Ie::Aal(aal)), Some(Ie::Traffic(traffic)), Some(Ie::Bearer(bearer))) = (
                decoded.ie(id::AAL_PARAMETERS),
                decoded.ie(id::TRAFFIC_DESCRIPTOR),
                decoded.ie(id::BEARER_CAPABILITY),
            ) else {
                panic!("{}", record.at)
            };
            let qos = convert::qos(&traffic, Some(&bearer), Some(&aal));
            let made = convert::elements(&qos, bearer.multipoint, version);
            for ie in made {
                let element = ie.encode();
                assert_eq!(Some(&element), message.find(element.id), "{}", record.at);
            }
            // Linux's one-way test calls announce a backward rate of 0.
            assert!(convert::combination_allowed(&traffic, bearer.multipoint));
            assert_eq!(
                version
                    .adapt(message.find(id::AAL_PARAMETERS).unwrap())
                    .as_ref(),
                message.find(id::AAL_PARAMETERS)
            );
        }
        assert!(seen > 0, "{name}");
    }
}

#[test]
fn versions_are_translated() {
    for (from, to) in [
        (Version::Uni30, Version::Uni31),
        (Version::Uni31, Version::Uni30),
        (Version::Uni40, Version::Uni30),
    ] {
        for qos in [Qos::ubr(1516), Qos::cbr(5000, 1516)] {
            let want = convert::elements(&qos, false, to);
            let have = convert::elements(&qos, false, from);
            for (have, want) in have.iter().zip(&want) {
                // In UNI 3.1, octet 5a with value 0 means the same as no octet 5a in a best-effort bearer.
                if to == Version::Uni31 && matches!(have, Ie::Bearer(b) if b.atc == Some(0)) {
                    assert_eq!(to.adapt(&have.encode()), Some(have.encode()));
                    continue;
                }
                assert_eq!(to.adapt(&have.encode()), Some(want.encode()));
            }
        }
    }
    let cause = Ie::Cause(CauseIe::new(0, 16)).encode();
    let old = Ie::Cause(CauseIe::new(0, 31)).encode();
    assert_eq!(Version::Uni30.adapt(&cause), Some(old));
    assert_eq!(Version::Uni30.cause_in(31), 16);
    assert_eq!(Version::Uni31.cause_in(31), 31);
    let generic = Ie::GenericIdentifier(vec![1, 2]).encode();
    assert_eq!(Version::Uni31.adapt(&generic), None);
    assert_eq!(Version::Uni40.adapt(&generic).as_ref(), Some(&generic));
}

fn setup_with(extra: &[u8]) -> Vec<u8> {
    let mut octets = Message::new(REQUEST, MessageType::SETUP)
        .with(&Ie::CalledNumber(Number::called(callee())))
        .encode();
    octets.extend(extra);
    let len = (octets.len() - 9) as u16;
    octets[7..9].copy_from_slice(&len.to_be_bytes());
    octets
}

fn last_verdict(extra: &[u8]) -> Verdict {
    let octets = setup_with(extra);
    let decoded = Message::decode(&octets).unwrap();
    assert_eq!(decoded.encode(), octets);
    *decoded.verdicts.last().unwrap()
}

#[test]
fn verdicts() {
    assert_eq!(last_verdict(&[0x5f, 0x80, 0, 1, 0xcc]), Verdict::Good);
    assert_eq!(last_verdict(&[0x33, 0x80, 0, 1, 0xcc]), Verdict::Unknown);
    assert_eq!(last_verdict(&[0x14, 0x80, 0, 1, 10]), Verdict::Unexpected);
    assert_eq!(last_verdict(&[0x5e, 0x80, 0, 1, 0x90]), Verdict::BadContent);
    assert_eq!(
        last_verdict(&[0x5e, 0x80, 0, 2, 0x85, 0x80]),
        Verdict::BadContent
    );
    let long = [0x5e, 0x80, 0, 4, 0x10, 0x80, 0x80, 0x80];
    assert_eq!(last_verdict(&long), Verdict::TooLong);
    let cut = [0x5f, 0x80, 0, 9, 0xcc];
    assert_eq!(last_verdict(&cut), Verdict::Truncated { declared: 9 });
    let again = Ie::CalledNumber(Number::called(caller())).encode();
    let mut octets = Vec::new();
    again.encode_into(&mut octets);
    assert_eq!(last_verdict(&octets), Verdict::Duplicate);
    let decoded = Message::decode(&setup_with(&[0x59, 0x80])).unwrap();
    assert_eq!(decoded.tail, [0x59, 0x80]);
    assert_eq!(decoded.encode(), setup_with(&[0x59, 0x80]));
    let missing = [
        id::TRAFFIC_DESCRIPTOR,
        id::BEARER_CAPABILITY,
        id::QOS_PARAMETER,
    ];
    assert_eq!(decoded.missing(), missing);
}

#[test]
fn instructions() {
    assert_eq!(Instruction(0x82).action(), None);
    assert_eq!(
        Instruction(0x92).action(),
        Some(Action::DiscardElementReport)
    );
    assert_eq!(
        Instruction(0xf6).action(),
        Some(Action::DiscardMessageReport)
    );
    assert_eq!(Instruction(0xf6).coding(), 3);
    assert_eq!(
        Instruction::FORUM.with_action(Action::ClearCall),
        Instruction(0xf0)
    );
    assert_eq!(Instruction(0x97).action(), None, "undefined action");
}

#[test]
fn what_is_no_message() {
    assert!(Message::decode(&unhex("09 03 00 00 01 75 80 00")).is_err());
    assert!(Message::decode(&unhex("08 03 00 00 01 75 80 00 00")).is_err());
    assert!(Message::decode(&unhex("09 02 00 00 01 75 80 00 00")).is_err());
    let short = Message::decode(&unhex("09 03 00 00 01 75 80 00 05")).unwrap();
    assert!(short.length_error);
}

/// QoS classes that only the ATM Forum codes.
#[test]
fn qos_coding() {
    let class = |forum, forward| {
        Ie::Qos(QosClass {
            forum,
            forward,
            backward: 0,
        })
        .encode()
    };
    assert!(ie::decode(&class(true, 4)).is_ok());
    assert!(ie::decode(&class(false, 0)).is_ok());
    assert!(ie::decode(&class(false, 1)).is_err());
    assert!(ie::decode(&class(true, 5)).is_err());
}

fn any_element() -> impl Strategy<Value = Element> {
    let ids: Vec<u8> = aerostat_wire::q2931::table::DEFINITIONS
        .iter()
        .map(|d| d.id)
        .collect();
    let id = prop_oneof![prop::sample::select(ids), any::<u8>()];
    (id, any::<u8>(), prop::collection::vec(any::<u8>(), 0..40)).prop_map(
        |(id, instruction, contents)| Element {
            id,
            instruction: Instruction(instruction),
            contents: contents.into(),
        },
    )
}

proptest! {
    #[test]
    fn any_message_keeps_its_octets(
        flag: bool, value in 0..0x80_0000_u32, kind: u8, instruction: u8,
        elements in prop::collection::vec(any_element(), 0..12)
    ) {
        let message = Message {
            call: CallRef { flag, value }, kind: MessageType(kind), instruction, elements,
        };
        let octets = message.encode();
        let decoded = Message::decode(&octets).unwrap();
        prop_assert_eq!(&decoded.message, &message);
        prop_assert_eq!(decoded.encode(), octets);
    }

    /// An element that decodes keeps its value when it is encoded again, whatever its octets looked like.
    #[test]
    fn values_are_stable(element in any_element()) {
        if let Ok(value) = ie::decode(&element) {
            prop_assert_eq!(ie::decode(&value.encode()), Ok(value));
        }
        for version in [Version::Uni30, Version::Uni31, Version::Uni40] {
            if let Some(adapted) = version.adapt(&element) {
                prop_assert_eq!(version.adapt(&adapted), Some(adapted));
            }
        }
    }

    #[test]
    fn decoding_never_panics(
        kind: u8, octets in prop::collection::vec(any::<u8>(), 0..200)
    ) {
        let _ = Message::decode(&octets);
        let mut message = vec![9, 3, 0, 0, 1, kind, 0x80];
        message.extend((octets.len() as u16).to_be_bytes());
        message.extend(&octets);
        let decoded = Message::decode(&message).unwrap();
        prop_assert_eq!(decoded.encode(), message);
        let _ = decoded.missing();
    }
}
