//! ATMARP: packets built and dissected by Wireshark (facts book "Classical IP" §10), the InATMARP exchange of
//! recorded Linux hosts, and properties.

use crate::recording::{sdus, unhex};
use aerostat_wire::atmarp::{Address, Number, Operation, Packet, Party};
use aerostat_wire::llc::LlcSnap;
use aerostat_wire::{AtmAddress, DecodeError};
use proptest::prelude::*;
use std::net::Ipv4Addr;

const NAMES: [(&str, Operation); 7] = [
    ("ATMARP_Request register", Operation::REQUEST),
    ("ATMARP_Reply register", Operation::REPLY),
    ("ATMARP_Request", Operation::REQUEST),
    ("ATMARP_Reply", Operation::REPLY),
    ("ATMARP_NAK", Operation::NAK),
    ("InATMARP_Request", Operation::IN_REQUEST),
    ("InATMARP_Reply", Operation::IN_REPLY),
];

fn vector(name: &str) -> Vec<u8> {
    let text = include_str!("../vectors/atmarp/packets.hex");
    let mut lines = text.lines().skip_while(|line| *line != format!("[{name}]"));
    assert!(lines.next().is_some(), "no vector {name}");
    let digits: String = lines
        .take_while(|line| !line.starts_with('['))
        .flat_map(str::chars)
        .filter(char::is_ascii_hexdigit)
        .collect();
    unhex(&digits)
}

/// Host 51 or 61 of the vectors.
fn atm(host: &str) -> AtmAddress {
    let text = format!("47.0005.80.ffde00.0000.0000.0101.0200000000{host}.00");
    text.parse().unwrap()
}

fn party(atm: Option<AtmAddress>, ip: Option<[u8; 4]>) -> Party {
    Party {
        atm: atm.map(Address::from).unwrap_or_default(),
        protocol: ip.map(Ipv4Addr::from),
    }
}

#[test]
fn golden_packets() {
    let (a, b) = (Some(atm("51")), Some(atm("61")));
    let (ip_a, ip_b) = (Some([10, 9, 0, 1]), Some([10, 9, 0, 2]));
    let parties = [
        (party(a, ip_a), party(None, ip_a)),
        (party(a, ip_a), party(a, ip_a)),
        (party(a, ip_a), party(None, ip_b)),
        (party(b, ip_b), party(a, ip_a)),
        (party(a, ip_a), party(None, ip_b)),
        (party(a, ip_a), party(b, None)),
        (party(b, ip_b), party(a, ip_a)),
    ];
    for ((name, op), (source, target)) in NAMES.into_iter().zip(parties) {
        let octets = vector(name);
        let packet = Packet::decode(&octets).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(packet, Packet { op, source, target }, "{name}");
        assert_eq!(packet.encode(), octets, "{name}");
    }
}

/// The NAK is the request with another operation.
#[test]
fn nak_copies_the_request() {
    let request = Packet::decode(&vector("ATMARP_Request")).unwrap();
    assert_eq!(request.nak().encode(), vector("ATMARP_NAK"));
}

/// Both Linux hosts ask and answer on the connection between client and server.
#[test]
fn recorded_packets() {
    let mut seen = Vec::new();
    for record in sdus("d-clip-svc") {
        let Ok((LlcSnap::Arp, octets)) = LlcSnap::decode(&record.sdu) else {
            continue;
        };
        let packet = Packet::decode(octets).unwrap_or_else(|e| panic!("{}: {e}", record.at));
        assert_eq!(packet.encode(), octets, "{}", record.at);
        assert!(packet.source.atm.nsapa().is_some(), "{}", record.at);
        assert!(packet.target.atm.nsapa().is_some(), "{}", record.at);
        seen.push((record.dir, packet.op, packet.source.ip()));
    }
    let (a, b) = (
        Some(Ipv4Addr::new(10, 9, 0, 1)),
        Some(Ipv4Addr::new(10, 9, 0, 2)),
    );
    let want = [
        ("B>A", Operation::IN_REQUEST, b),
        ("A>B", Operation::IN_REQUEST, a),
        ("B>A", Operation::IN_REPLY, b),
        ("A>B", Operation::IN_REPLY, a),
    ];
    let want: Vec<_> = want.map(|(dir, op, ip)| (dir.to_owned(), op, ip)).into();
    assert_eq!(seen, want);
}

/// The three address structures, and the octets of RFC 2225 §8.
#[test]
fn address_structures() {
    let number = Number::e164(b"358941234567").unwrap();
    let mut packet = Packet::decode(&vector("ATMARP_Request")).unwrap();
    packet.source.atm = Address {
        number: number.clone(),
        sub: atm("51").into(),
    };
    let octets = packet.encode();
    assert_eq!(&octets[4..6], &[0x40 | 12, 20]);
    assert_eq!(&octets[12..24], b"358941234567");
    let again = Packet::decode(&octets).unwrap();
    assert_eq!(again, packet);
    assert_eq!(again.source.atm.nsapa(), None, "structure 3 is no NSAPA");
    packet.source.atm.sub = Number::null();
    assert_eq!(Packet::decode(&packet.encode()), Ok(packet));
    assert_eq!(Number::e164(&[0; 21]), None);
    assert_eq!(format!("{number:?}"), "e164:333538393431323334353637");
}

#[test]
fn null_ip_addresses() {
    let mut packet = Packet::decode(&vector("InATMARP_Request")).unwrap();
    assert_eq!(packet.target.ip(), None);
    packet.target.protocol = Some(Ipv4Addr::UNSPECIFIED);
    let again = Packet::decode(&packet.encode()).unwrap();
    assert_eq!((again.target.ip(), again.encode()), (None, packet.encode()));
}

#[test]
fn refused_packets() {
    let good = vector("ATMARP_Request");
    let table = [
        (0, 1, "ar$hrd"),
        (3, 1, "ar$pro"),
        (4, 0x94, "ar$shtl"),
        (5, 21, "ar$sstl"),
        (8, 6, "ar$spln"),
        (11, 16, "ar$tpln"),
    ];
    for (at, value, field) in table {
        let mut bad = good.clone();
        bad[at] = value;
        assert_eq!(Packet::decode(&bad).unwrap_err().field, field);
    }
    let long = [&good[..], &[0]].concat();
    assert_eq!(Packet::decode(&long).unwrap_err().offset, good.len());
    for len in 0..good.len() {
        assert!(Packet::decode(&good[..len]).is_err(), "{len} octets");
    }
    let short = DecodeError::short("ar$tpa", 36);
    assert_eq!(Packet::decode(&good[..39]), Err(short));
}

fn number() -> impl Strategy<Value = (u8, Vec<u8>)> {
    (
        any::<bool>(),
        proptest::collection::vec(any::<u8>(), 0..=20),
    )
        .prop_map(|(e164, octets)| (u8::from(e164) << 6 | octets.len() as u8, octets))
}

proptest! {
    #[test]
    fn valid_packets_come_back(
        op in any::<u16>(),
        numbers in proptest::array::uniform4(number()),
        spa in proptest::option::of(any::<[u8; 4]>()),
        tpa in proptest::option::of(any::<[u8; 4]>()),
    ) {
        let length = |ip: Option<[u8; 4]>| if ip.is_some() { 4 } else { 0 };
        let [sha, ssa, tha, tsa] = &numbers;
        let mut octets = vec![0, 0x13, 8, 0, sha.0, ssa.0];
        octets.extend_from_slice(&op.to_be_bytes());
        octets.extend_from_slice(&[length(spa), tha.0, tsa.0, length(tpa)]);
        for part in [&sha.1, &ssa.1] {
            octets.extend_from_slice(part);
        }
        octets.extend(spa.into_iter().flatten());
        for part in [&tha.1, &tsa.1] {
            octets.extend_from_slice(part);
        }
        octets.extend(tpa.into_iter().flatten());
        let packet = Packet::decode(&octets).unwrap();
        prop_assert_eq!(packet.op, Operation(op));
        prop_assert_eq!(packet.encode(), octets);
    }

    #[test]
    fn never_panics(octets in proptest::collection::vec(any::<u8>(), 0..120)) {
        let mut framed = vec![0, 0x13, 8, 0];
        framed.extend_from_slice(&octets);
        for input in [octets, framed] {
            if let Ok(packet) = Packet::decode(&input) {
                prop_assert_eq!(packet.encode(), input);
            }
        }
    }
}
