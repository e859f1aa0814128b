//! SSCOP PDUs: worked examples, recordings, and properties.

use aerostat_testing::recording::{ALL, on_vci, unhex};
use aerostat_wire::{Seq8, Seq24, SscopPdu};
use proptest::prelude::*;

/// The value gives the octets and the octets give the value.
fn golden(hex: &str, pdu: &SscopPdu) {
    let octets = unhex(hex);
    assert_eq!(
        SscopPdu::decode(&octets).as_ref(),
        Ok(pdu),
        "decoding {hex}"
    );
    assert_eq!(pdu.encode(), octets, "encoding {}", pdu.name());
}

fn n(value: u32) -> Seq24 {
    Seq24::new(value)
}

/// Source: Q.2110 §7.2 (linux-atm and ngatm have the same layouts; octets computed from them).
#[test]
fn worked_connection_pdus() {
    let (mr, uu) = (n(128), Vec::new());
    golden(
        "00000001 01000080",
        &SscopPdu::Begin {
            sq: Seq8(1),
            mr,
            uu: uu.clone(),
        },
    );
    golden(
        "00000000 02000080",
        &SscopPdu::BeginAck { mr, uu: uu.clone() },
    );
    golden(
        "00000000 03000000",
        &SscopPdu::End {
            by_sscop: false,
            uu: uu.clone(),
        },
    );
    golden(
        "00000000 13000000",
        &SscopPdu::End {
            by_sscop: true,
            uu: uu.clone(),
        },
    );
    golden("00000000 04000000", &SscopPdu::EndAck);
    golden(
        "00000000 07000000",
        &SscopPdu::BeginReject { uu: uu.clone() },
    );
    golden(
        "00000002 05000080",
        &SscopPdu::Resync {
            sq: Seq8(2),
            mr,
            uu,
        },
    );
    golden("00000000 06000080", &SscopPdu::ResyncAck { mr });
    golden("00000003 09000080", &SscopPdu::Recover { sq: Seq8(3), mr });
    golden("00000000 0f000080", &SscopPdu::RecoverAck { mr });
}

/// Source: Q.2110 §7.2.
#[test]
fn worked_data_pdus() {
    golden(
        "68656c6c6f000000 c8000000",
        &SscopPdu::Data {
            s: n(0),
            info: b"hello".to_vec(),
        },
    );
    golden("00000001 0a000001", &SscopPdu::Poll { ps: n(1), s: n(1) });
    golden(
        "00000001 00000081 0b000001",
        &SscopPdu::Stat {
            ps: n(1),
            mr: n(129),
            r: n(1),
            list: vec![],
        },
    );
    golden(
        "00000002 00000004 00000005 00000006 00000002 00000082 0b000002",
        &SscopPdu::Stat {
            ps: n(2),
            mr: n(130),
            r: n(2),
            list: vec![n(2), n(4), n(5), n(6)],
        },
    );
    golden(
        "00000002 00000004 00000082 0c000002",
        &SscopPdu::Ustat {
            mr: n(130),
            r: n(2),
            from: n(2),
            to: n(4),
        },
    );
    golden(
        "61626300 4d000000",
        &SscopPdu::UnitData {
            info: b"abc".to_vec(),
        },
    );
}

/// Source: recordings of linux-atm (`vectors/linux-atm/README.md`).
#[test]
fn every_recorded_pdu_comes_back() {
    let mut count = 0;
    for name in ALL {
        for record in on_vci(name, 5) {
            let pdu = SscopPdu::decode(&record.sdu)
                .unwrap_or_else(|error| panic!("{}: {error}", record.at));
            assert_eq!(pdu.encode(), record.sdu, "{}", record.at);
            count += 1;
        }
    }
    assert!(count > 600, "{count} PDUs");
}

#[test]
fn length_violations_and_unknown_types() {
    let error = |hex: &str| SscopPdu::decode(&unhex(hex)).expect_err(hex);
    assert_eq!(error("").field, "PDU type");
    assert_eq!(error("000001").field, "PDU length");
    assert_eq!(error("01000000").field, "N(SQ)");
    assert_eq!(error("00000000 00000000").field, "PDU type");
    assert_eq!(error("00000000 00000000 0a000001").field, "PDU length");
    assert_eq!(error("00000001 0c000001").field, "list element 2");
    assert_eq!(error("c8000001").field, "information");
    let long = SscopPdu::Data {
        s: n(0),
        info: vec![0; SscopPdu::MAX_INFO + 1],
    };
    assert!(SscopPdu::decode(&long.encode()).is_err());
}

#[test]
fn sequence_numbers_wrap() {
    let top = n(Seq24::MODULUS - 1);
    assert_eq!(top.next(), Seq24::ZERO);
    assert_eq!(n(3).since(top), 4);
    assert!(n(1).in_window(top, n(2)));
    assert!(!n(2).in_window(top, n(2)));
    assert_eq!(Seq8(255).next(), Seq8(0));
}

fn any_pdu() -> impl Strategy<Value = SscopPdu> {
    let seq = || (0..Seq24::MODULUS).prop_map(Seq24::new);
    let sq = || any::<u8>().prop_map(Seq8);
    let data = || prop::collection::vec(any::<u8>(), 0..64);
    prop_oneof![
        (sq(), seq(), data()).prop_map(|(sq, mr, uu)| SscopPdu::Begin { sq, mr, uu }),
        (seq(), data()).prop_map(|(mr, uu)| SscopPdu::BeginAck { mr, uu }),
        data().prop_map(|uu| SscopPdu::BeginReject { uu }),
        (any::<bool>(), data()).prop_map(|(by_sscop, uu)| SscopPdu::End { by_sscop, uu }),
        Just(SscopPdu::EndAck),
        (sq(), seq(), data()).prop_map(|(sq, mr, uu)| SscopPdu::Resync { sq, mr, uu }),
        seq().prop_map(|mr| SscopPdu::ResyncAck { mr }),
        (sq(), seq()).prop_map(|(sq, mr)| SscopPdu::Recover { sq, mr }),
        seq().prop_map(|mr| SscopPdu::RecoverAck { mr }),
        (seq(), data()).prop_map(|(s, info)| SscopPdu::Data { s, info }),
        (seq(), seq()).prop_map(|(ps, s)| SscopPdu::Poll { ps, s }),
        (seq(), seq(), seq(), prop::collection::vec(seq(), 0..70))
            .prop_map(|(ps, mr, r, list)| SscopPdu::Stat { ps, mr, r, list }),
        (seq(), seq(), seq(), seq()).prop_map(|(mr, r, from, to)| SscopPdu::Ustat {
            mr,
            r,
            from,
            to
        }),
        data().prop_map(|info| SscopPdu::UnitData { info }),
        data().prop_map(|info| SscopPdu::ManagementData { info }),
    ]
}

proptest! {
    #[test]
    fn encode_then_decode_is_identity(pdu in any_pdu()) {
        prop_assert_eq!(SscopPdu::decode(&pdu.encode()), Ok(pdu));
    }

    #[test]
    fn decode_never_panics(octets in prop::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(pdu) = SscopPdu::decode(&octets) {
            prop_assert_eq!(SscopPdu::decode(&pdu.encode()), Ok(pdu));
        }
    }
}
