//! Every message survives its octets; no octets do harm.

use super::codec::{Field, Message, NAMES, TEXT_MAX};
use super::*;
use crate::mpoa::messages::EgressInfo;
use core::fmt::Debug;
use core::net::Ipv4Addr;
use proptest::prelude::*;

/// Draws samples; the same for the same seed.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(crate::mix::STEP);
        crate::mix::mix(self.0)
    }
    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// A sample; the name stands for the macro's repetition.
macro_rules! some {
    ($name:ident, $random:expr) => {
        Field::sample($random)
    };
}
pub(super) use some;

fn survives<T: Field + Message + Debug + PartialEq>(seed: u64) {
    let message = T::sample(&mut Random(seed));
    let frame = message.encode();
    assert!(frame.len() <= FRAME_MAX);
    assert_eq!(T::decode(&frame).as_ref(), Ok(&message));
    // Nothing shorter and nothing longer is a message.
    assert!(T::decode(&frame[..frame.len() - 1]).is_err());
    assert!(T::decode(&[&frame[..], &[0]].concat()).is_err());
}

/// What can be decoded has one form only.
fn canonical<T: Message>(octets: &[u8]) {
    if let Ok(message) = T::decode(octets) {
        assert_eq!(message.encode(), octets);
    }
}

fn all_canonical(octets: &[u8]) {
    canonical::<ToMpcd>(octets);
    canonical::<FromMpcd>(octets);
    canonical::<Greeting>(octets);
}

proptest! {
    #[test]
    fn messages_survive(seed: u64) {
        survives::<ToMpcd>(seed);
        survives::<FromMpcd>(seed);
        survives::<Greeting>(seed);
    }

    #[test]
    fn any_octets_are_a_message_or_an_error(octets in prop::collection::vec(any::<u8>(), 0..200)) {
        all_canonical(&octets);
    }

    #[test]
    fn a_damaged_message_is_a_message_or_an_error(seed: u64, at: prop::sample::Index, to: u8) {
        let mut random = Random(seed);
        for mut frame in [ToMpcd::sample(&mut random).encode(), FromMpcd::sample(&mut random).encode()] {
            let at = at.index(frame.len());
            frame[at] = to;
            all_canonical(&frame);
        }
    }
}

/// A Cache Imposition, octet by octet.
#[test]
fn one_form_for_ever() {
    let info = EgressInfo {
        mps: AtmAddress([0x47; 20]),
        mps_ip: Ipv4Addr::new(10, 1, 0, 1),
        cache_id: 13,
        tag: Some(0x8000_0001),
        destination: Ipv4Addr::new(10, 1, 0, 10),
        prefix: 32,
        ingress: AtmAddress([0x39; 20]),
        itf: 0,
        elan_id: 7,
        header: vec![2, 0, 0],
        holding_s: 1200,
    };
    let expected = [
        &[0, 1, 0, 106][..],
        &[0x47; 20],
        &[10, 1, 0, 1, 0, 0, 0, 13, 1, 0x80, 0, 0, 1, 10, 1, 0, 10, 32],
        &[0x39; 20],
        &[0, 0, 0, 0, 0, 0, 0, 7, 0, 3, 2, 0, 0, 0x04, 0xb0],
    ]
    .concat();
    let message = FromMpcd::Message(ToKernel::CacheImposition(info));
    assert_eq!(message.encode(), expected);
}

#[test]
fn numbers_are_those_of_the_linux_client() {
    let mut random = Random(1);
    for _ in 0..1000 {
        let number = |frame: Vec<u8>| u16::from_be_bytes([frame[2], frame[3]]);
        let message = ToKernel::sample(&mut random);
        let own = number(FromMpcd::Message(message.clone()).encode());
        assert_eq!(message.number().unwrap_or(own.max(400)), own);
        let message = ToDaemon::sample(&mut random);
        let own = number(ToMpcd::Message(message.clone()).encode());
        assert_eq!(message.number().unwrap_or(own.max(400)), own);
    }
}

#[test]
fn long_texts_are_cut_and_the_largest_sdu_fits() {
    let text = "é".repeat(TEXT_MAX);
    let trace = FromMpcd::Trace(Trace::detail("mpc.up", text));
    let Ok(FromMpcd::Trace(cut)) = FromMpcd::decode(&trace.encode()) else {
        panic!("no trace")
    };
    assert_eq!(cut.text.len(), TEXT_MAX);
    let (conn, sdu) = (ConnId(1), vec![1; 65_535]);
    let sent = FromMpcd::Socket(SocketRequest::Send { conn, sdu });
    assert!(sent.encode().len() <= FRAME_MAX);
    assert_eq!(FromMpcd::decode(&sent.encode()), Ok(sent));
}

/// A trace of the daemon whose name is not in the list would lose it on the way.
#[test]
fn every_name_that_the_daemon_uses_is_known() {
    let sources = [
        include_str!("../mpc/control.rs"),
        include_str!("../mpc/daemon/mod.rs"),
        include_str!("../mpc/daemon/alive.rs"),
        include_str!("../mpc/daemon/conns.rs"),
        include_str!("../mpc/process.rs"),
    ];
    let mut names = 0;
    for source in sources {
        for literal in source.split('"').skip(1).step_by(2) {
            if literal.starts_with("mpc.") {
                names += 1;
                assert!(NAMES.contains(&literal), "{literal} is missing");
            }
        }
        for rest in source.split(".with(").skip(1) {
            if let Some(key) = rest.trim_start().strip_prefix('"') {
                let key = key.split('"').next().unwrap_or_default();
                assert!(NAMES.contains(&key), "{key} is missing");
            }
        }
    }
    assert!(names > 10, "{names}");
}
