use super::*;
use crate::ErrorKind;
use proptest::prelude::*;

/// Composed by hand from the figures of RFC 3931 §4.1.1.1 and §4.1.2.1, and of RFC 4454 §4.1.
#[test]
fn headers_composed_by_hand() {
    let word = SublayerWord {
        sequence: Some(0x01_0203),
        flags: AtmFlags {
            cell: true,
            clp: true,
            ..AtmFlags::default()
        },
    };
    let cookie = Cookie::new(&[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    for (carrier, sublayer, octets) in [
        (
            Carrier::Ip,
            Sublayer::None,
            &[0xde, 0xad, 0xbe, 0xef, 1, 2, 3, 4, 5, 6, 7, 8][..],
        ),
        (
            Carrier::Udp,
            Sublayer::Default,
            &[
                0, 3, 0, 0, 0xde, 0xad, 0xbe, 0xef, 1, 2, 3, 4, 5, 6, 7, 8, 0x40, 1, 2, 3,
            ],
        ),
        (
            Carrier::Udp,
            Sublayer::Atm,
            &[
                0, 3, 0, 0, 0xde, 0xad, 0xbe, 0xef, 1, 2, 3, 4, 5, 6, 7, 8, 0x4a, 1, 2, 3,
            ],
        ),
    ] {
        let mut out = Vec::new();
        carrier.encode(0xdead_beef, &mut out);
        out.extend(cookie.octets());
        sublayer.encode(word, &mut out);
        assert_eq!(out, octets);
        let Ok(Packet::Data(0xdead_beef, rest)) = carrier.decode(&out) else {
            panic!("{:?}", carrier.decode(&out));
        };
        let rest = rest.strip_prefix(cookie.octets()).unwrap();
        let (read, payload) = sublayer.decode(rest).unwrap();
        assert!(payload.is_empty());
        match sublayer {
            Sublayer::None => assert_eq!(read, SublayerWord::default()),
            Sublayer::Default => assert_eq!(read.sequence, word.sequence),
            Sublayer::Atm => assert_eq!(read, word),
        }
    }
    let mut out = Vec::new();
    Sublayer::Atm.encode(SublayerWord::default(), &mut out);
    assert_eq!(out, [0; 4]);
}

#[test]
fn control_messages_and_other_versions_are_told_apart() {
    assert_eq!(Carrier::Ip.decode(&[0; 12]), Ok(Packet::Control));
    let control = Carrier::Udp.decode(&[0xc8, 3, 0, 12]);
    assert_eq!(control, Ok(Packet::Control));
    let old = Carrier::Udp.decode(&[0x40, 2, 0, 20, 0, 0, 0, 1]);
    assert_eq!(old.unwrap_err().kind, ErrorKind::Value(2));
    // Reserved bits are ignored; session 0 is no control message over UDP, where T tells.
    let odd = Carrier::Udp.decode(&[0x7f, 0xf3, 9, 9, 0, 0, 0, 0, 5]);
    assert_eq!(odd, Ok(Packet::Data(0, &[5][..])));
    for length in 0..8 {
        assert!(
            Carrier::Udp
                .decode(&[0, 3, 0, 0, 0, 0, 0, 1][..length])
                .is_err()
        );
    }
    for length in 0..4 {
        assert!(Carrier::Ip.decode(&[1; 4][..length]).is_err());
        assert!(Sublayer::Default.decode(&[1; 4][..length]).is_err());
    }
}

#[test]
fn a_cookie_has_no_four_or_eight_octets() {
    for length in 0..20 {
        let octets = vec![7; length];
        let cookie = Cookie::new(&octets);
        match length {
            0 | 4 | 8 => assert_eq!(cookie.unwrap().octets(), octets),
            _ => assert_eq!(cookie, None),
        }
    }
    assert_eq!(Cookie::new(&[]), Some(Cookie::NONE));
}

proptest! {
    #[test]
    fn any_octets_are_read_without_a_panic(octets in prop::collection::vec(any::<u8>(), 0..40)) {
        for carrier in [Carrier::Ip, Carrier::Udp] {
            if let Ok(Packet::Data(session, rest)) = carrier.decode(&octets) {
                let mut again = Vec::new();
                carrier.encode(session, &mut again);
                prop_assert_eq!(again.len() + rest.len(), octets.len());
            }
        }
        for sublayer in [Sublayer::None, Sublayer::Default, Sublayer::Atm] {
            if let Ok((word, rest)) = sublayer.decode(&octets) {
                let mut again = Vec::new();
                sublayer.encode(word, &mut again);
                again.extend(rest);
                prop_assert_eq!(sublayer.decode(&again), Ok((word, rest)));
            }
        }
    }
}
