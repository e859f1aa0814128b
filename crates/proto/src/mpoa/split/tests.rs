//! Every message survives encoding and decoding; invalid octets do no harm.

use super::*;
use crate::ConnId;
use crate::mpoa::messages::EgressInfo;
use crate::split::codec::{Field, Message as _, TEXT_MAX};
use crate::split::tests::sample;
use crate::split::{FRAME_MAX, FromDaemon, Numbered};
use crate::{AtmRequest, Trace};
use aerostat_testing::messages::Random;

type To = Numbered<crate::split::ToDaemon<ToMpcd>>;
type From = Numbered<FromDaemon<FromMpcd>>;

const fn frame(message: FromDaemon<FromMpcd>) -> From {
    Numbered { number: 0, message }
}

aerostat_testing::message_properties!(To, From);

/// A Cache Imposition, octet by octet.
#[test]
fn one_form_for_ever() {
    let info = EgressInfo {
        mps: AtmAddress([0x47; 20]),
        mps_ip: [10, 1, 0, 1].into(),
        cache_id: 13,
        tag: Some(0x8000_0001),
        destination: [10, 1, 0, 10].into(),
        prefix: 32,
        ingress: AtmAddress([0x39; 20]),
        itf: 0,
        elan_id: 7,
        header: vec![2, 0, 0],
        holding_s: 1200,
    };
    let expected = [
        &[0, 0, 0, 2, 0, 1, 0, 106][..],
        &[0x47; 20],
        &[
            4, 10, 1, 0, 1, 0, 0, 0, 13, 1, 0x80, 0, 0, 1, 4, 10, 1, 0, 10, 32,
        ],
        &[0x39; 20],
        &[0, 0, 0, 0, 0, 0, 0, 7, 0, 3, 2, 0, 0, 0x04, 0xb0],
    ]
    .concat();
    let message = FromMpcd::Message(ToKernel::CacheImposition(info));
    assert_eq!(frame(FromDaemon::Message(message)).encode(), expected);
}

#[test]
fn numbers_are_those_of_the_linux_client() {
    let mut random = Random::new(1);
    for _ in 0..1000 {
        fn number<M: Field>(message: &M) -> u16 {
            let mut octets = Vec::new();
            message.put(&mut octets);
            u16::from_be_bytes([octets[0], octets[1]])
        }
        let message: ToKernel = sample(&mut random);
        let own = number(&message);
        assert_eq!(message.number().unwrap_or(own.max(400)), own);
        let message: ToDaemon = sample(&mut random);
        let own = number(&message);
        assert_eq!(message.number().unwrap_or(own.max(400)), own);
    }
}

#[test]
fn long_texts_are_cut_and_the_largest_sdu_fits() {
    let text = "é".repeat(TEXT_MAX);
    let trace = frame(FromDaemon::Trace(Trace::detail("mpc.up", text)));
    let Ok(FromDaemon::Trace(cut)) = From::decode(&trace.encode()).map(|frame| frame.message)
    else {
        panic!("no trace")
    };
    assert_eq!(cut.text.read().len(), TEXT_MAX);
    let (conn, sdu) = (ConnId(1), vec![1; 65_535]);
    let sent = frame(FromDaemon::Atm(AtmRequest::Send { conn, sdu }));
    assert!(sent.encode().len() <= FRAME_MAX);
    assert_eq!(From::decode(&sent.encode()), Ok(sent));
}

/// A trace of the daemon with a name that is not in the list would lose its name.
#[test]
fn every_name_that_the_daemon_uses_is_known() {
    let sources = [
        include_str!("../mpc/control.rs"),
        include_str!("../mpc/daemon/mod.rs"),
        include_str!("../mpc/daemon/alive.rs"),
        include_str!("../mpc/daemon/conns.rs"),
        include_str!("../mpc/process.rs"),
    ];
    let (count, strangers) = aerostat_testing::messages::strangers(&sources, "mpc.");
    assert!(count > 10, "{count}");
    assert!(strangers.is_empty(), "{strangers:?}");
}
