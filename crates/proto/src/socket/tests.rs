//! The messages as octets.

use super::*;
use crate::split::Numbered;
use crate::split::codec::Message as _;

type Asked = Numbered<Request>;
type Answered = Numbered<Answer>;
aerostat_testing::message_properties!(Asked, Answered, Offer, Left);

/// A client in another language is written against these octets.
#[test]
fn the_octets_of_a_request_and_an_answer() {
    let request = Numbered {
        number: 7,
        message: Request::Connect {
            socket: SocketRef::of(2, 1),
            called: "sello".into(),
            sap: String::new(),
            qos: "ubr".into(),
            timeout: 5000,
            multipoint: true,
            reports: false,
            user_data: UserData::new(b"hi".to_vec()).unwrap(),
        },
    };
    let octets = [
        &[0, 7, 0, 5][..],
        &[0, 0, 0, 1, 0, 0, 0, 2],
        &[0, 5],
        b"sello",
        &[0, 0, 0, 3],
        b"ubr",
        &[0, 0, 0x13, 0x88, 1, 0],
        &[2],
        b"hi",
    ]
    .concat();
    assert_eq!(request.encode(), octets);
    assert_eq!(Asked::decode(&octets), Ok(request));
    let answer = Numbered {
        number: 7,
        message: Answer::Connected {
            label: "0.32".into(),
            qos: "ubr".into(),
            user_data: UserData::default(),
        },
    };
    let octets = [&[0, 7, 1, 5, 0, 4][..], b"0.32", &[0, 3], b"ubr", &[0]].concat();
    assert_eq!(answer.encode(), octets);
    // User data of 129 octets.
    let long = [&[0, 1, 0, 9], &[0; 8][..], &[16, 129], &[0; 129]].concat();
    let long = Asked::decode(&long).unwrap_err();
    assert_eq!((long.field, long.offset), ("user_data", 13));
    let short = Asked::decode(&octets[..3]).unwrap_err().to_string();
    assert!(short.contains("message"), "{short}");
}

#[test]
fn the_octets_of_the_interface_of_a_host() {
    let request = Numbered {
        number: 9,
        message: Request::Interface {
            zero_pdus: true,
            zero_cells: false,
        },
    };
    let octets = [0, 9, 0, 13, 1, 0];
    assert_eq!(request.encode(), octets);
    assert_eq!(Asked::decode(&octets), Ok(request));
    // Neither true nor false.
    let bad = Asked::decode(&[0, 9, 0, 13, 1, 2]).unwrap_err();
    assert_eq!((bad.field, bad.offset), ("zero_cells", 5));
    let counts = |first: u64| PduCounts {
        sent: first,
        not_sent: 0,
        received: 2,
        damaged: 3,
    };
    let answer = Numbered {
        number: 9,
        message: Answer::Interface(Interface {
            esi: [2, 0xa7, 0, 1, 0, 1],
            addresses: vec!["47".into()],
            lecs: vec![],
            more: 4,
            rate: 353_207,
            up: true,
            label_bits: (8, 16),
            aal0: counts(0),
            aal5: counts(1),
            cells_sent: 5,
            cells_received: 6,
        }),
    };
    let count = |number: u64| number.to_be_bytes();
    let octets = [
        &[0, 9, 1, 9, 2, 0xa7, 0, 1, 0, 1][..],
        &[0, 1, 0, 2, b'4', b'7', 0, 0],
        &[0, 0, 0, 4, 0, 5, 0x63, 0xb7, 1, 8, 16],
        &[count(0), count(0), count(2), count(3)].concat(),
        &[count(1), count(0), count(2), count(3)].concat(),
        &[count(5), count(6)].concat(),
    ]
    .concat();
    assert_eq!(answer.encode(), octets);
    assert_eq!(Answered::decode(&octets), Ok(answer));
}

/// The longest messages: every text as long as it may be.
#[test]
fn every_message_fits_a_packet() {
    let text = "x".repeat(300);
    let request = Request::Connect {
        socket: SocketRef(0),
        called: text.clone(),
        sap: text.clone(),
        qos: text.clone(),
        timeout: 0,
        multipoint: false,
        reports: false,
        user_data: UserData::new(vec![0; UserData::MAX]).unwrap(),
    };
    let names = vec![(text.get(..32).unwrap().to_owned(), "4".repeat(40)); 64];
    let message = Answer::Names { names, more: 0 };
    let addresses = vec!["4".repeat(40); ADDRESSES];
    let interface = Numbered {
        number: 0,
        message: Answer::Interface(Interface {
            lecs: addresses.clone(),
            addresses,
            ..Interface::default()
        }),
    };
    assert!(interface.encode().len() < MESSAGE_MAX);
    let (asked, answered) = (
        Numbered {
            number: 0,
            message: request,
        }
        .encode()
        .len(),
        Numbered { number: 0, message }.encode().len(),
    );
    assert!(
        asked < MESSAGE_MAX && answered < MESSAGE_MAX,
        "{asked}, {answered}"
    );
}
