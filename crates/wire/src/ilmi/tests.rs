//! Worked messages, and properties.

use super::*;
use crate::{AtmAddress, MacAddr};
use proptest::prelude::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .bytes()
        .filter_map(|c| char::from(c).to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}
const PREFIX: [u8; 13] = [0x47, 0, 5, 0x80, 0xff, 0xe1, 0, 0, 0, 0xf2, 0x1a, 1, 2];

fn both_ways(text: &str, pdu: Pdu) {
    let octets = hex(text);
    assert_eq!(Message::decode(&octets), Ok(Message(pdu.clone())));
    assert_eq!(Message(pdu).encode(), octets);
}
fn request(kind: Kind, id: i32, bindings: Vec<(Oid, Value)>) -> Pdu {
    let bindings = bindings
        .into_iter()
        .map(|(name, value)| Binding { name, value });
    Pdu::Request(Request::new(kind, id, bindings.collect()))
}

/// The octets were computed from RFC 1157 and the MIB by a script that shares no code with this crate.
#[test]
fn worked_messages() {
    both_ways(
        "30 26 02 01 00 04 04 49 4c 4d 49 a4 1b 06 08 2b 06 01 04 01 82 61 02 40 04 00 00 00 00
         02 01 00 02 01 00 43 01 00 30 00",
        Pdu::Trap(Trap::cold_start(0)),
    );
    let names = [
        mib::port(mib::MY_IF_IDENTIFIER),
        mib::atm_layer(mib::UNI_VERSION),
        mib::atm_layer(mib::DEVICE_TYPE),
    ];
    both_ways(
        "30 4f 02 01 00 04 04 49 4c 4d 49 a0 44 02 01 01 02 01 00 02 01 00 30 39
         30 11 06 0d 2b 06 01 04 01 82 61 02 01 01 01 08 00 05 00
         30 11 06 0d 2b 06 01 04 01 82 61 02 02 01 01 09 00 05 00
         30 11 06 0d 2b 06 01 04 01 82 61 02 02 01 01 0a 00 05 00",
        request(
            Kind::Get,
            1,
            names.clone().map(|name| (name, Value::Null)).into(),
        ),
    );
    let values = [3, 4, 2].map(Value::Integer);
    both_ways(
        "30 52 02 01 00 04 04 49 4c 4d 49 a2 47 02 01 01 02 01 00 02 01 00 30 3c
         30 12 06 0d 2b 06 01 04 01 82 61 02 01 01 01 08 00 02 01 03
         30 12 06 0d 2b 06 01 04 01 82 61 02 02 01 01 09 00 02 01 04
         30 12 06 0d 2b 06 01 04 01 82 61 02 02 01 01 0a 00 02 01 02",
        request(Kind::Response, 1, names.into_iter().zip(values).collect()),
    );
    both_ways(
        "30 3c 02 01 00 04 04 49 4c 4d 49 a3 31 02 01 02 02 01 00 02 01 00 30 26 30 24 06 1f
         2b 06 01 04 01 82 61 02 07 01 01 03 00 0d 47 00 05 81 00 81 7f 81 61 00 00 00 81 72 1a 01 02 02 01 01",
        request(
            Kind::Set,
            2,
            vec![(mib::of_prefix(PREFIX), Value::Integer(mib::VALID))],
        ),
    );
    let address = AtmAddress::from_parts(PREFIX, MacAddr([0, 0x20, 0x48, 0x0a, 0x1b, 0x2c]), 0);
    both_ways(
        "30 43 02 01 00 04 04 49 4c 4d 49 a3 38 02 01 03 02 01 00 02 01 00 30 2d 30 2b 06 26
         2b 06 01 04 01 82 61 02 06 01 01 03 00 14 47 00 05 81 00 81 7f 81 61 00 00 00 81 72 1a 01 02
         00 20 48 0a 1b 2c 00 02 01 01",
        request(
            Kind::Set,
            3,
            vec![(
                mib::of_address(&mib::address_status(), address),
                Value::Integer(mib::VALID),
            )],
        ),
    );
    both_ways(
        "30 28 02 01 00 04 04 49 4c 4d 49 a1 1d 02 01 04 02 01 00 02 01 00 30 12 30 10 06 0c
         2b 06 01 04 01 82 61 02 08 01 01 03 05 00",
        request(
            Kind::GetNext,
            4,
            vec![(mib::service_address(), Value::Null)],
        ),
    );
    both_ways(
        "30 4a 02 01 00 04 04 49 4c 4d 49 a2 3f 02 01 04
         02 01 00 02 01 00 30 34 30 32 06 1a 2b 06 01 04
         01 82 61 02 08 01 01 03 00 0a 01 03 06 01 04 01
         82 61 01 05 01 01 04 14 47 00 79 00 00 00 00 00
         00 00 00 00 00 00 a0 3e 00 00 01 00",
        request(
            Kind::Response,
            4,
            vec![(mib::of_lecs(1), Value::Octets(AtmAddress::LECS.0.to_vec()))],
        ),
    );
}

#[test]
fn names_lead_back_to_what_they_name() {
    let address = AtmAddress::from_parts(PREFIX, MacAddr([1, 2, 3, 4, 5, 6]), 7);
    let column = mib::address_status();
    let name = mib::of_address(&column, address);
    assert_eq!(mib::address_of(&column, &name), Some(address));
    assert_eq!(mib::address_of(&mib::address_scope(), &name), None);
    assert_eq!(mib::prefix_of(&mib::of_prefix(PREFIX)), Some(PREFIX));
    assert!(mib::is_lecs(&mib::of_lecs(3)));
    assert!(!mib::is_lecs(&name));
    // A length that does not fit, and an arc that is no octet.
    assert_eq!(
        mib::prefix_of(&mib::prefix_status().child(&[0, 13, 1])),
        None
    );
    let arcs: Vec<u32> = [0, 13].into_iter().chain([300; 13]).collect();
    assert_eq!(mib::prefix_of(&mib::prefix_status().child(&arcs)), None);
}

#[test]
fn errors_name_the_field() {
    let good = Message(request(Kind::Get, 1, vec![(mib::system(1), Value::Null)])).encode();
    let wrong = |at: usize, octet: u8| {
        let mut octets = good.clone();
        octets[at] = octet;
        Message::decode(&octets).unwrap_err().field
    };
    assert_eq!(wrong(0, 0x31), "message");
    assert_eq!(wrong(4, 1), "version");
    assert_eq!(wrong(7, b'X'), "community");
    assert_eq!(wrong(11, 0xa7), "PDU");
    assert_eq!(Message::decode(&good[..5]).unwrap_err().field, "message");
    let mut longer = good.clone();
    longer.push(0);
    assert_eq!(Message::decode(&longer).unwrap_err().field, "message");
}

#[test]
fn long_forms_are_understood() {
    // TimeTicks in four octets where two would do, as some agents send them, and a length in two octets.
    let octets = hex(
        "30 82 00 29 02 01 00 04 04 49 4c 4d 49 a2 1e 02 01 01 02 01 00 02 01 00 30 13
         30 11 06 09 2b 06 01 02 01 01 03 81 00 43 04 00 00 02 b8",
    );
    let Ok(Message(Pdu::Request(request))) = Message::decode(&octets) else {
        panic!("{:?}", Message::decode(&octets));
    };
    assert_eq!(request.bindings[0].value, Value::TimeTicks(0x2b8));
}

fn any_oid() -> impl Strategy<Value = Oid> {
    (
        0_u32..=2,
        0_u32..=39,
        prop::collection::vec(any::<u32>(), 0..20),
    )
        .prop_map(|(a, b, rest)| Oid::new(&[a, b]).child(&rest))
}
fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i32>().prop_map(Value::Integer),
        prop::collection::vec(any::<u8>(), 0..200).prop_map(Value::Octets),
        Just(Value::Null),
        any_oid().prop_map(Value::Oid),
        any::<[u8; 4]>().prop_map(Value::IpAddress),
        any::<u32>().prop_map(Value::Counter),
        any::<u32>().prop_map(Value::Gauge),
        any::<u32>().prop_map(Value::TimeTicks),
        (0x44_u8..0x50, prop::collection::vec(any::<u8>(), 0..9))
            .prop_map(|(tag, octets)| Value::Other(tag, octets)),
    ]
}

proptest! {
    #[test]
    fn round_trip(
        kind in prop::sample::select(vec![Kind::Get, Kind::GetNext, Kind::Response, Kind::Set]),
        numbers in any::<(i32, i32, i32)>(),
        bindings in prop::collection::vec((any_oid(), any_value()), 0..8),
    ) {
        let bindings: Vec<Binding> =
            bindings.into_iter().map(|(name, value)| Binding { name, value }).collect();
        let (id, status, index) = numbers;
        let request = Request { kind, id, status: ErrorStatus(status), index, bindings: bindings.clone() };
        let message = Message(Pdu::Request(request));
        prop_assert_eq!(Message::decode(&message.encode()), Ok(message));
        let trap = Trap { generic: status, specific: index, time: id as u32, bindings, ..Trap::cold_start(0) };
        let message = Message(Pdu::Trap(trap));
        prop_assert_eq!(Message::decode(&message.encode()), Ok(message));
    }

    /// Any octets, and octets that are almost a message: no panic, and what decodes has a canonical form.
    #[test]
    fn never_panics(octets in prop::collection::vec(any::<u8>(), 0..300), at in any::<prop::sample::Index>(), octet: u8) {
        let _ = Message::decode(&octets);
        let names = (1..8).map(|n| (mib::system(n), Value::Octets(octets.clone()))).collect();
        let mut damaged = Message(request(Kind::Set, 7, names)).encode();
        let at = at.index(damaged.len());
        damaged[at] = octet;
        if let Ok(message) = Message::decode(&damaged) {
            prop_assert_eq!(Message::decode(&message.encode()), Ok(message));
        }
    }
}
