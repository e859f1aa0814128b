//! Random messages and requests against both sides: no panic, bounded tables, nothing left after a restart.

use super::*;
use aerostat_wire::q2931::{CauseIe, ConnectionId, Element, Instruction, RestartClass, table};
use proptest::prelude::*;

fn element() -> impl Strategy<Value = Element> {
    let ids: Vec<u8> = table::DEFINITIONS.iter().map(|d| d.id).collect();
    let random = (
        prop::sample::select(ids),
        any::<u8>(),
        prop::collection::vec(any::<u8>(), 0..24),
    )
        .prop_map(|(id, instruction, contents)| Element {
            id,
            instruction: Instruction(instruction | 0x80),
            contents: contents.into(),
        });
    let good = prop_oneof![
        (1..128_u8).prop_map(|c| Ie::Cause(CauseIe::new(0, c))),
        (0..13_u8).prop_map(Ie::CallState),
        (any::<bool>(), 0..4_u16).prop_map(|(flag, value)| Ie::EndpointReference { flag, value }),
        (0..13_u8).prop_map(Ie::EndpointState),
        (30..40_u16).prop_map(|vci| Ie::ConnectionId(ConnectionId::exact(Vc::new(0, vci)))),
        Just(Ie::Restart(RestartClass::All)),
        Just(Ie::Restart(RestartClass::Channel)),
        Just(Ie::Notification(vec![0xf1])),
    ]
    .prop_map(|ie| ie.encode());
    prop_oneof![1 => random, 3 => good]
}

fn message() -> impl Strategy<Value = Vec<u8>> {
    let kinds: Vec<MessageType> = table::MESSAGES.iter().map(|m| m.kind).collect();
    let kind =
        prop_oneof![10 => prop::sample::select(kinds), 1 => any::<u8>().prop_map(MessageType)];
    (
        any::<bool>(),
        0..4_u32,
        kind,
        any::<bool>(),
        prop::collection::vec(element(), 0..5),
    )
        .prop_map(|(flag, value, kind, sane, elements)| {
            let call = CallRef { flag, value };
            let mut all = Vec::new();
            if sane {
                let side = Uni::new(Params::new(Side::User, Version::Uni31));
                let offer = if value.is_multiple_of(2) {
                    multipoint(1)
                } else {
                    info(1)
                };
                all = side.setup_elements(kind, &offer, None, None);
            }
            all.extend(elements);
            Message::new(call, kind).with_elements(all).encode()
        })
}

fn call_id() -> impl Strategy<Value = CallId> {
    prop_oneof![0..3_u32, (0..4_u32).prop_map(|n| CallId::INCOMING + n)].prop_map(CallId)
}

fn request() -> impl Strategy<Value = Request> {
    let vc = prop::option::of((30..36_u16).prop_map(|vci| Vc::new(0, vci)));
    let party = (0..4_u16).prop_map(PartyId);
    (0..15_u8, call_id(), vc, party, any::<bool>()).prop_map(|(which, call, vc, party, multi)| {
        let offer = if multi { multipoint(1) } else { info(1) };
        let (cause, answer) = (Reason::NORMAL, ConnectInfo::default());
        let party_of_call = multi.then_some(party);
        match which {
            0 | 1 => Request::Setup {
                call,
                info: offer,
                vc,
                party: party_of_call,
            },
            2 => Request::Proceeding { call, vc },
            3 => Request::Alerting {
                call,
                vc,
                elements: Vec::new(),
            },
            4 => Request::Accept {
                call,
                info: answer,
                vc,
            },
            5 => Request::Release { call, cause },
            6 => Request::AddParty {
                call,
                party,
                info: offer,
            },
            7 => Request::AlertParty {
                call,
                party,
                elements: Vec::new(),
            },
            8 => Request::AcceptParty {
                call,
                party,
                info: answer,
            },
            9 => Request::RejectParty { call, party, cause },
            10 => Request::DropParty { call, party, cause },
            11 => Request::StatusEnquiry { call },
            12 => Request::Notify {
                call,
                party: party_of_call,
                elements: vec![Ie::Notification(vec![0xf1]).encode()],
            },
            13 => Request::Report {
                call,
                cause: Cause(99).into(),
            },
            _ => Request::Restart {
                what: Restart::Channel(vc.unwrap_or(VC1)),
            },
        }
    })
}

#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "a few in a test")]
enum Event {
    Peer(Vec<u8>),
    Owner(Request),
    Up,
    Down,
    Wait(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => message().prop_map(Event::Peer),
        8 => request().prop_map(Event::Owner),
        1 => Just(Event::Up),
        1 => Just(Event::Down),
        2 => (1..40_000_u64).prop_map(Event::Wait),
    ]
}

/// Checks that every call that was mentioned is released exactly once.
#[derive(Default)]
struct Ledger(std::collections::BTreeSet<CallId>);

impl Ledger {
    fn note(&mut self, output: &Output) {
        match output {
            Output::Indication(Indication::Setup { call, .. }) => assert!(self.0.insert(*call)),
            Output::Indication(Indication::Released { call, .. }) => assert!(self.0.remove(call)),
            Output::SaalData(octets) => {
                let decoded = Message::decode(octets).expect("own messages decode");
                assert_eq!(decoded.faults().count(), 0, "{decoded:?}");
                assert!(decoded.missing().is_empty(), "{decoded:?}");
            }
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn one_side_against_anything(
        user: bool, version in 0..3_usize, events in prop::collection::vec(event(), 0..80)
    ) {
        let side = if user { Side::User } else { Side::Network };
        let version = [Version::Uni30, Version::Uni31, Version::Uni40][version];
        let mut params = Params::new(side, version);
        params.limits.calls = 6;
        params.limits.parties = 3;
        let mut uni = Uni::new(params);
        let mut ledger = Ledger::default();
        let mut now = Instant::from_secs(1);
        for event in events {
            match event {
                Event::Peer(octets) => uni.handle_input(Input::SaalData(&octets), now).unwrap(),
                Event::Up => uni.handle_input(Input::SaalUp, now).unwrap(),
                Event::Down => uni.handle_input(Input::SaalDown, now).unwrap(),
                Event::Wait(ms) => now += Duration::from_millis(ms),
                Event::Owner(request) => {
                    let call = match &request {
                        Request::Setup { call, .. } => Some(*call),
                        _ => None,
                    };
                    if uni.handle_input(Input::Request(request), now).is_ok()
                        && let Some(call) = call
                    {
                        // Outputs of earlier inputs may still wait, but the call is new nevertheless.
                        settle(&mut uni, now).iter().for_each(|o| ledger.note(o));
                        prop_assert!(ledger.0.insert(call));
                    }
                }
            }
            settle(&mut uni, now).iter().for_each(|o| ledger.note(o));
            prop_assert!(uni.calls.len() <= 6);
            prop_assert!(uni.calls.values().all(|c| c.parties.len() <= 3));
            prop_assert_eq!(uni.ids.len(), uni.calls.len());
            prop_assert_eq!(ledger.0.len(), uni.calls.len());
            let labelled = uni.calls.values().filter(|c| c.vc.is_some()).count();
            prop_assert_eq!(uni.labels.len(), labelled);
        }
        // The peer dies; enough time passes for every timer.
        uni.handle_input(Input::SaalDown, now).unwrap();
        for _ in 0..60 {
            now += Duration::from_secs(60);
            settle(&mut uni, now).iter().for_each(|o| ledger.note(o));
        }
        prop_assert!(uni.calls.is_empty() && uni.ids.is_empty() && uni.labels.is_empty());
        prop_assert!(ledger.0.is_empty());
        prop_assert_eq!(uni.poll_timeout(), None);
    }

    /// Two conforming sides and a lossless link: after everything is released nothing is left anywhere.
    #[test]
    fn two_sides_agree_in_the_end(requests in prop::collection::vec((0..2_usize, request()), 0..60)) {
        let mut p = Pair::new(Version::Uni40);
        for (end, request) in requests {
            let _ = p.try_ask(end, request);
            p.run(Duration::from_millis(100));
        }
        for end in [USER, NET] {
            let calls: Vec<_> = p.ends[end].uni.calls().map(|c| c.call).collect();
            for call in calls {
                let _ = p.try_ask(end, release(call));
            }
        }
        p.run(Duration::from_secs(400));
        p.clean();
    }
}
