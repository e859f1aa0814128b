use super::*;
use crate::ErrorKind;
use proptest::prelude::*;

/// Composed by hand from the figures of RFC 4717 §5.1.2 and §10.1.
#[test]
fn control_words_composed_by_hand() {
    for (word, octets) in [
        (ControlWord::default(), [0, 0, 0, 0]),
        (
            ControlWord {
                flags: 0b1010,
                length: 56,
                sequence: 0x1234,
            },
            [0x0a, 0x38, 0x12, 0x34],
        ),
    ] {
        assert_eq!(word.encode(), octets);
        assert_eq!(ControlWord::decode(octets), Ok(word));
    }
    // Reserved bits are ignored; the first four bits are not.
    let reserved = ControlWord::decode([0, 0xc0 | 5, 0, 1]);
    assert_eq!(reserved.map(|word| word.length), Ok(5));
    let error = ControlWord::decode([0x40, 0, 0, 0]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Value(4));
    assert!(is_channel(&[0x10, 0, 0, 7]));
    assert!(!is_channel(&[0x00]) && !is_channel(&[]));
}

/// VPI 0, VCI 100, last cell of its PDU; VPI 801 hex, VCI 5. Composed by hand after RFC 4717 §8.1.
#[test]
fn two_cells_composed_by_hand() {
    let mut whole = [[0x11; CELL_LEN], [0x22; CELL_LEN]];
    whole[0][..5].copy_from_slice(&[0, 0, 6, 0x42, 0xee]);
    whole[1][..5].copy_from_slice(&[0x80, 0x10, 0, 0x50, 0xee]);
    let mut out = Vec::new();
    whole.iter().for_each(|cell| put_cell(&mut out, cell));
    let expected = [
        &[0, 0, 6, 0x42][..],
        &[0x11; 48],
        &[0x80, 0x10, 0, 0x50],
        &[0x22; 48],
    ]
    .concat();
    assert_eq!(out, expected);
    let got = cells(&out).unwrap();
    assert_eq!((got.len(), got.as_flattened()), (2, &out[..]));
    for length in [0, 1, 51, 53, 103] {
        assert!(cells(&out[..length]).is_err(), "{length}");
    }
}

/// A short SDU behind an Ethernet that padded it, a long one, and an OAM cell.
#[test]
fn sdus_and_a_cell_in_aal5_sdu_mode() {
    let flags = AtmFlags {
        congested: true,
        command: true,
        ..AtmFlags::default()
    };
    let short = Aal5Packet {
        flags,
        sequence: 7,
        payload: b"Hello",
    };
    let mut out = Vec::new();
    short.encode(&mut out);
    assert_eq!(out, b"\x05\x09\x00\x07Hello");
    out.resize(42, 0);
    assert_eq!(Aal5Packet::decode(&out), Ok(short));
    for (length, field) in [(59, 63), (60, 0), (9000, 0)] {
        let payload = vec![1; length];
        let packet = Aal5Packet {
            flags: AtmFlags::default(),
            sequence: 0,
            payload: &payload,
        };
        let mut out = Vec::new();
        packet.encode(&mut out);
        assert_eq!(out[..4], [0, field, 0, 0], "{length}");
        assert_eq!(Aal5Packet::decode(&out), Ok(packet));
    }
    let cell = Aal5Packet {
        flags: AtmFlags {
            cell: true,
            ..AtmFlags::default()
        },
        sequence: 1,
        payload: &[0x6a; BARE_CELL_LEN],
    };
    let mut out = Vec::new();
    cell.encode(&mut out);
    assert_eq!(out[..4], [8, 0, 0, 1]);
    // A length there does no harm.
    for length in [0, 56] {
        out[1] = length;
        assert_eq!(Aal5Packet::decode(&out), Ok(cell));
    }
}

#[test]
fn packets_in_aal5_sdu_mode_that_lie_are_errors() {
    let kind = |packet: &[u8]| Aal5Packet::decode(packet).unwrap_err().kind;
    // No control word, no payload, a length beyond the end, lengths without payload, T without a cell.
    for packet in [&[][..], &[0, 0, 0], &[0, 0, 0, 1], &[0, 9, 0, 1, 5, 5]] {
        assert_eq!(kind(packet), ErrorKind::Short, "{packet:?}");
    }
    for length in 1..=4 {
        let packet = [0, length, 0, 1, 5];
        assert_eq!(kind(&packet), ErrorKind::Value(u32::from(length)));
    }
    assert_eq!(kind(&[0x20, 0, 0, 1, 5]), ErrorKind::Value(2));
    assert_eq!(kind(&[8, 0, 0, 1, 5]), ErrorKind::Value(1));
}

proptest! {
    #[test]
    fn any_packet_in_aal5_sdu_mode_comes_back(bits in 0_u8..8, sequence: u16, payload in prop::collection::vec(any::<u8>(), 1..300), padding in 0_usize..50) {
        let packet = Aal5Packet { flags: AtmFlags::from_bits(bits), sequence, payload: &payload };
        let mut out = Vec::new();
        packet.encode(&mut out);
        if out.len() < 64 {
            out.resize(out.len() + padding, 0);
        }
        prop_assert_eq!(Aal5Packet::decode(&out), Ok(packet));
    }
    #[test]
    fn any_octets_are_read_without_a_panic(packet in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(read) = Aal5Packet::decode(&packet) {
            prop_assert!(!read.payload.is_empty() && read.payload.len() + WORD_LEN <= packet.len());
        }
        if let Ok(read) = cells(&packet) {
            prop_assert_eq!(read.len() * BARE_CELL_LEN, packet.len());
        }
    }
}
