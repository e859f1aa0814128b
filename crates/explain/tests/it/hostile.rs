//! Any octets: no panic, and every limit is counted.

use crate::captures::{Sdu, explained, file, recorded, rules};
use crate::links::{self, legacy};
use aerostat_explain::{Limit, Limits, Report, Rule, explain};
use aerostat_wire::ilmi::{Kind, Message, Pdu, Request};
use aerostat_wire::pcapng::{LinkType, PcapNg};
use aerostat_wire::q2931::{self, CallRef, Ie, MessageType, Number, Version, convert};
use aerostat_wire::qos::Qos;
use aerostat_wire::{AtmAddress, SscopPdu, Vc};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Link types that are read, and one that is not.
const LINK_TYPES: [u32; 11] = [1, 11, 19, 100, 101, 113, 123, 197, 228, 276, 147];

fn any_report(octets: &[u8]) -> Option<Report> {
    explain(octets, Limits::default(), Some(&mut |_| {})).ok()
}

proptest! {
    #[test]
    fn any_octets_are_no_panic(octets: Vec<u8>) {
        let _ = any_report(&octets);
    }
    #[test]
    fn any_packets_of_any_link_type_are_no_panic(
        link in 0..LINK_TYPES.len(),
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 1..20),
    ) {
        let file = legacy(LINK_TYPES[link], &packets);
        prop_assert_eq!(explained(&file).packets, packets.len() as u64);
    }
    #[test]
    fn damaged_recordings_are_no_panic(
        which in 0_usize..6,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        cut: prop::sample::Index,
    ) {
        let names = ["c-svc", "d-clip-svc", "e-ilmi", "f-lane", "g-mpoa", "p-p2mp"];
        let mut octets = file(&recorded(names[which]));
        for (place, value) in damage {
            let at = place.index(octets.len());
            octets[at] = value;
        }
        let _ = any_report(&octets);
        octets.truncate(cut.index(octets.len()));
        let _ = any_report(&octets);
    }
}

/// A message of ILMI of the user, or of the switch.
fn ilmi(time: f64, kind: Kind, id: i32) -> Sdu {
    let way = if kind == Kind::Response { "B>A" } else { "A>B" };
    Sdu {
        time,
        way: way.to_owned(),
        vc: Vc::ILMI,
        octets: Message(Pdu::Request(Request::new(kind, id, vec![]))).encode(),
    }
}

/// Full tables cost no more for each packet than empty ones: with a search through all requests for each answer, this
/// file would take minutes.
#[test]
fn full_tables_are_searched_by_their_keys() {
    let most = Limits::default().open as i32;
    let asked = (0..most).map(|n| ilmi(f64::from(n) * 1e-5, Kind::Get, n));
    let strays = (0..2 * most).map(|n| ilmi(1.0 + f64::from(n) * 1e-5, Kind::Response, -1 - n));
    let beyond = (0..most).map(|n| ilmi(3.0 + f64::from(n) * 1e-5, Kind::Get, most + n));
    let sdus: Vec<Sdu> = asked.chain(strays).chain(beyond).collect();
    let began = Instant::now();
    let report = explained(&file(&sdus));
    assert!(began.elapsed() < Duration::from_secs(60));
    let met: BTreeMap<_, _> = report.met.iter().collect();
    assert_eq!(met[&Limit::Open], most as u64);
}

/// Callers give their names to addresses; those beyond the limit stay addresses, and are counted.
#[test]
fn names_have_a_limit() {
    let setup = |n: u32| {
        let mut caller = [0x47; 20];
        caller[10..14].copy_from_slice(&n.to_be_bytes());
        let [_, traffic, bearer, qos] = convert::elements(&Qos::ubr(9188), false, Version::Uni31);
        let numbers = [
            Ie::CalledNumber(Number::called(AtmAddress([0x47; 20]))),
            Ie::CallingNumber(Number::calling(AtmAddress(caller))),
        ];
        let (flag, value) = (false, 1);
        let message = q2931::Message::new(CallRef { flag, value }, MessageType::SETUP);
        let elements = [traffic, bearer, qos].into_iter().chain(numbers);
        let message = elements.fold(message, |message, ie| message.with(&ie));
        let info = message.encode();
        Sdu {
            time: f64::from(n) * 1e-3,
            way: format!("h{n}>sw"),
            vc: Vc::SIGNALLING,
            octets: SscopPdu::UnitData { info }.encode(),
        }
    };
    let sdus: Vec<Sdu> = (0..1200).map(setup).collect();
    let report = explained(&file(&sdus));
    let met: BTreeMap<_, _> = report.met.iter().collect();
    assert_eq!(met[&Limit::Names], 200);
    assert!(
        report.messages[7].text.contains("h7.47"),
        "{}",
        report.messages[7].text
    );
}

/// Fragments of PDUs on many VCs: all cells that are not put together are counted.
#[test]
fn vcs_beyond_the_limit_are_counted() {
    let most = Limits::default().vcs as u16;
    let first = |vci| links::cells(Vc::new(1, vci), &[7; 90])[0].to_vec();
    let packets: Vec<Vec<u8>> = (0..most + 76).map(|n| first(100 + n)).collect();
    let report = explained(&legacy(100, &packets));
    let met: Vec<_> = report.met.iter().collect();
    assert_eq!(met, [(Limit::Vcs, 76)]);
}

/// Interfaces whose first packets may be raw cells: what is held for all of them has a limit.
#[test]
fn packets_that_are_held_have_a_limit() {
    let mut capture = PcapNg::new(Vec::new(), "").expect("memory").into_inner();
    let mut block = |kind: u32, words: &[u32], octets: &[u8]| {
        let length = (12 + 4 * words.len() + octets.len()) as u32;
        let head = [kind, length].into_iter().chain(words.iter().copied());
        capture.extend(head.flat_map(u32::to_le_bytes));
        capture.extend_from_slice(octets);
        capture.extend(length.to_le_bytes());
    };
    for interface in 0..10 {
        block(1, &[1, 0], &[]);
        block(6, &[interface, 0, 1, 52, 52], &[0; 52]);
    }
    let limits = Limits {
        open: 8,
        ..Limits::default()
    };
    let report = explain(&capture[..], limits, None).expect("a capture");
    let met: BTreeMap<_, _> = report.met.iter().collect();
    assert_eq!((report.packets, met[&Limit::Held]), (10, 2));
}

/// Times that go back change no order of packets, and miss no answer.
#[test]
fn times_that_go_back_are_read() {
    let sdus = [
        ilmi(100.0, Kind::Get, 1),
        ilmi(300.0, Kind::Get, 1),
        ilmi(2.0, Kind::Response, 9),
        ilmi(1.0, Kind::Get, 1),
    ];
    let report = explained(&file(&sdus));
    let packets: Vec<u64> = report.messages.iter().map(|one| one.packet).collect();
    assert_eq!(packets, [1, 2, 3, 4]);
    assert_eq!(report.span_ns, 200_000_000_000);
    assert_eq!(
        rules(&report).into_iter().collect::<Vec<_>>(),
        [Rule::IlmiId]
    );
}

/// A capture tells how many packets it has lost itself: then an answer may be among them.
#[test]
fn packets_that_the_capture_lost_are_counted() {
    let mut capture = PcapNg::new(Vec::new(), "").expect("memory");
    for (name, lost) in [("a", [2, 7]), ("b", [0, 1])] {
        let interface = capture
            .interface(LinkType::SunAtm, name, "")
            .expect("memory");
        // The counters of an interface grow.
        for (time, dropped) in (1..).zip(lost) {
            capture.missing(interface, time, dropped).expect("memory");
        }
    }
    let report = explained(&capture.into_inner());
    let met: Vec<_> = report.met.iter().collect();
    assert_eq!(met, [(Limit::Missing, 8)]);
    assert!(report.met.has_loss());
}

#[test]
fn limits_are_counted() {
    let sdus: Vec<Sdu> = recorded("f-lane");
    let limits = Limits {
        messages: 3,
        story: 2,
        places: 1,
        open: 1,
        links: 1,
        ..Limits::default()
    };
    let report = explain(&file(&sdus)[..], limits, None).expect("a capture");
    assert_eq!((report.messages.len(), report.story.len()), (3, 2));
    let met: Vec<Limit> = report.met.iter().map(|(limit, _)| limit).collect();
    assert_eq!(
        met,
        [Limit::Messages, Limit::Story, Limit::Open, Limit::Links]
    );
    assert!(report.met.has_loss());
    assert!(report.met.iter().all(|(_, count)| count > 0));
}
