//! Every message survives encoding and decoding; invalid octets do no harm.

use super::*;
use crate::split::codec::Message as _;
use crate::split::{FRAME_MAX, FromDaemon, Numbered, ToDaemon};
use crate::{AtmEvent, AtmRequest};
use aerostat_wire::Seq24;
use aerostat_wire::q2931::CallRef;
use aerostat_wire::q2931::table::MESSAGES;

type To = Numbered<ToDaemon<ToSigd>>;
type From = Numbered<FromDaemon<FromSigd>>;

const fn frame(message: FromSigd) -> From {
    Numbered {
        number: 0,
        message: FromDaemon::Message(message),
    }
}

aerostat_testing::message_properties!(To, From);

/// A release without user data, octet by octet.
#[test]
fn one_form_for_ever() {
    let call = CallId(0x8000_0007);
    let cause = Cause::TEMPORARY;
    let message = frame(FromSigd::Released {
        call,
        cause,
        data: Default::default(),
    });
    let expected = [0, 0, 0, 2, 0, 6, 0x80, 0, 0, 7, 41, 0];
    assert_eq!(message.encode(), expected);
}

#[test]
fn only_call_proceeding_may_rest() {
    let conn = SIGNALLING;
    let received = |sdu| {
        let message = ToDaemon::<ToSigd>::Atm(AtmEvent::Received { conn, sdu });
        Numbered { number: 0, message }.encode()
    };
    let s = Seq24::ZERO;
    for definition in MESSAGES {
        let kind = definition.kind;
        let call = CallRef {
            flag: true,
            value: 7,
        };
        let info = Message::new(call, kind).encode();
        let rests = kind == MessageType::CALL_PROCEEDING;
        let data = SscopPdu::Data {
            s,
            info: info.clone(),
        };
        assert_eq!(may_rest(&received(data.encode())), rests, "{kind:?}");
        assert!(!may_rest(&received(SscopPdu::UnitData { info }.encode())));
    }
    let poll = SscopPdu::Poll { ps: s, s };
    assert!(!may_rest(&received(poll.encode())));
    let frame = received(vec![9, 3, 0, 0, 1, 2]);
    for length in 0..frame.len() {
        assert!(!may_rest(&frame[..length]));
    }
}

#[test]
fn the_longest_sdu_fits_a_frame() {
    let (conn, sdu) = (SIGNALLING, vec![1; SDU_MAX]);
    let sdu = From {
        number: 0,
        message: FromDaemon::Atm(AtmRequest::Send { conn, sdu }),
    };
    assert!(sdu.encode().len() <= FRAME_MAX);
    assert_eq!(From::decode(&sdu.encode()), Ok(sdu));
}

/// A trace of the daemon with a name that is not in the list would lose its name. The names of the node are checked in
/// the node.
#[test]
fn every_name_that_signalling_uses_is_known() {
    for prefix in ["uni.", "saal.", "sscop."] {
        let sources = [
            include_str!("../saal.rs"),
            include_str!("../uni/mod.rs"),
            include_str!("../uni/restart.rs"),
        ];
        let (count, strangers) = aerostat_testing::messages::strangers(&sources, prefix);
        assert!(count > 0, "{prefix}");
        // `with` is also the name of a message's function; its fields are not those of a trace.
        assert_eq!(strangers, [""; 0]);
    }
}
