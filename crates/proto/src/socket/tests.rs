//! The messages as octets.

use super::*;
use crate::split::Numbered;
use crate::split::codec::Message as _;

type Asked = Numbered<Request>;
type Answered = Numbered<Answer>;
crate::split::testing::message_properties!(Asked, Answered, Offer);

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
        },
    };
    let octets = [
        &[0, 7, 0, 5][..],
        &[0, 0, 0, 1, 0, 0, 0, 2],
        &[0, 5],
        b"sello",
        &[0, 0, 0, 3],
        b"ubr",
        &[0, 0, 0x13, 0x88],
    ]
    .concat();
    assert_eq!(request.encode(), octets);
    assert_eq!(Asked::decode(&octets), Ok(request));
    let answer = Numbered {
        number: 7,
        message: Answer::Connected {
            label: "0.32".into(),
            qos: "ubr".into(),
        },
    };
    let octets = [&[0, 7, 1, 5, 0, 4][..], b"0.32", &[0, 3], b"ubr"].concat();
    assert_eq!(answer.encode(), octets);
    let short = Asked::decode(&octets[..3]).unwrap_err().to_string();
    assert!(short.contains("message"), "{short}");
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
    };
    let names = vec![(text.get(..32).unwrap().to_owned(), "4".repeat(40)); 64];
    let message = Answer::Names { names, more: 0 };
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
