//! The messages between the two halves, and a daemon's process with whatever it may be told.

use super::super::split::{FromIlmid, MANAGEMENT, PVCS, Start, ToIlmid};
use super::super::*;
use super::{network, user};
use crate::machine::settle;
use crate::split::codec::Message as _;
use crate::split::tests::sample;
use crate::split::{
    FRAME_MAX, FromDaemon, Numbered, Process, ProcessInput, ProcessOutput, Signal, ToDaemon,
};
use crate::{AtmEvent, AtmRequest};
use aerostat_testing::messages::Random;
use aerostat_wire::{TrafficParams, Vc};
use proptest::prelude::*;

type To = Numbered<ToDaemon<ToIlmid>>;
type From = Numbered<FromDaemon<FromIlmid>>;

aerostat_testing::message_properties!(To, From);

proptest! {
    /// A process that gets random messages, random SDUs and signals neither panics nor talks without end, and each of
    /// its frames is a message of its role.
    #[test]
    fn a_process_survives_whatever_it_is_told(
        seed: u64,
        steps in prop::collection::vec((0_u8..8, any::<u64>(), 0_u64..4000), 1..60),
        node: bool,
    ) {
        let mut process = Process::<Ilmid>::default();
        let mut now = Instant::ZERO;
        let config = if node { network() } else { user() };
        let start = ToIlmid::Start(Box::new(Start { life: 1, config, former: Some(Vec::new()) }));
        let begin = [ToDaemon::Message(start), ToDaemon::Atm(AtmEvent::Up)];
        let feed = |process: &mut Process<Ilmid>, input, now| {
            process.handle_input(input, now).unwrap();
            let outputs = settle(process, now);
            assert!(outputs.len() < 400, "{} outputs", outputs.len());
            for output in outputs {
                if let ProcessOutput::Frame(frame) = output {
                    let octets = frame.encode();
                    assert!(octets.len() <= FRAME_MAX);
                    assert_eq!(From::decode(&octets), Ok(frame));
                }
            }
        };
        for message in begin {
            feed(&mut process, ProcessInput::Frame(Numbered { number: 0, message }), now);
        }
        let mut random = Random::new(seed);
        for (what, n, wait) in steps {
            let message = match what {
                0 | 1 => ToDaemon::Message(sample(&mut random)),
                2 => ToDaemon::Atm(sample(&mut random)),
                3 => ToDaemon::Atm(if n % 3 == 0 { AtmEvent::Down } else { AtmEvent::Up }),
                4 if n % 8 == 0 => {
                    let signal = if n % 16 == 0 { Signal::Terminate } else { Signal::Reload };
                    feed(&mut process, ProcessInput::Signal(signal), now);
                    continue;
                }
                _ => {
                    let mut prefix = super::PREFIX;
                    prefix[12] = prefix[12].wrapping_add((n % 3) as u8);
                    let esi = MacAddr([2, 0, 0, 0, 0, n as u8]);
                    let address = aerostat_wire::ilmi::mib::address(prefix, esi);
                    let request = super::registering(&[address], n as i32 % 3);
                    let sdu = if n % 5 == 0 { vec![n as u8; 30] } else { request };
                    let conn = MANAGEMENT;
                    ToDaemon::Atm(AtmEvent::Received { conn, sdu })
                }
            };
            feed(&mut process, ProcessInput::Frame(Numbered { number: (n % 2) as u16, message }), now);
            now += Duration::from_millis(wait);
            process.handle_timeout(now);
            settle(&mut process, now);
        }
    }
}

/// A withdrawal, octet by octet.
#[test]
fn one_form_for_ever() {
    let message = FromDaemon::Message(FromIlmid::Withdrawn(AtmAddress([7; 20])));
    let message = From { number: 3, message };
    let expected = [&[0, 3, 0, 2, 0, 6][..], &[7; 20]].concat();
    assert_eq!(message.encode(), expected);
}

#[test]
fn as_many_permanent_connections_as_a_message_has_fit_a_frame() {
    let traffic = TrafficParams {
        max_pcr: Some(1),
        ..TrafficParams::ubr(1)
    };
    let pvc = Pvc {
        vc: Vc::new(0, 100),
        path: false,
        tx: traffic,
        rx: traffic,
        status: PvcStatus::LocalUp,
    };
    let (pvcs, more) = (vec![pvc; PVCS], true);
    let message = ToDaemon::Message(ToIlmid::Pvcs { pvcs, more });
    let octets = To { number: 0, message }.encode();
    assert!(octets.len() <= FRAME_MAX, "{} octets", octets.len());
}

#[test]
fn the_longest_sdu_fits_a_frame() {
    let (conn, sdu) = (MANAGEMENT, vec![1; u16::MAX.into()]);
    let message = FromDaemon::Atm(AtmRequest::Send { conn, sdu });
    assert!(From { number: 0, message }.encode().len() <= FRAME_MAX);
}

/// A trace of the daemon with a name that is not in the list would lose its name.
#[test]
fn every_name_that_the_daemon_uses_is_known() {
    let sources = [
        include_str!("../mod.rs"),
        include_str!("../agent.rs"),
        include_str!("../former.rs"),
        include_str!("../manager.rs"),
        include_str!("../pvc.rs"),
    ];
    let (count, strangers) = aerostat_testing::messages::strangers(&sources, "ilmi.");
    assert!(count > 3, "{count}");
    assert_eq!(strangers, [""; 0]);
}
