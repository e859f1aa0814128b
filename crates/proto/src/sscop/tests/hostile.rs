//! Peers that violate the protocol: they get the standard's answer, and their cost is bounded.

use super::super::*;
use crate::Duration;
use crate::machine::settle;
use aerostat_wire::SscopPdu as Pdu;
use proptest::prelude::*;

const NOW: Instant = Instant::ZERO;

fn seq(n: u32) -> Seq24 {
    Seq24::ZERO.plus(n)
}
fn feed(end: &mut Sscop, pdu: &Pdu, now: Instant) -> Vec<Output> {
    end.handle_input(Input::Lower(&pdu.encode()), now).unwrap();
    settle(end, now)
}
fn ask(end: &mut Sscop, request: Request, now: Instant) -> Vec<Output> {
    end.handle_input(Input::Upper(request), now).unwrap();
    settle(end, now)
}
/// An end whose BGN was answered with credit for `mr` messages.
fn ready(params: Params, mr: u32) -> Sscop {
    let mut end = Sscop::new(params);
    ask(
        &mut end,
        Request::Establish(Vec::new(), Buffers::Release),
        NOW,
    );
    let (mr, uu) = (seq(mr), Vec::new());
    feed(&mut end, &Pdu::BeginAck { mr, uu }, NOW);
    end
}
fn data(s: u32) -> Pdu {
    let (s, info) = (seq(s), s.to_be_bytes().to_vec());
    Pdu::Data { s, info }
}
fn stat(ps: u32, r: u32, list: &[u32]) -> Pdu {
    Pdu::Stat {
        ps: seq(ps),
        mr: seq(100),
        r: seq(r),
        list: list.iter().map(|n| seq(*n)).collect(),
    }
}
fn codes(outputs: &[Output]) -> String {
    let code = |output: &Output| match output {
        Output::Management(error) => Some(error.code),
        _ => None,
    };
    outputs.iter().filter_map(code).collect()
}
fn delivered(outputs: &[Output]) -> usize {
    let is_data = |output: &&Output| matches!(output, Output::Upper(Indication::Data(..)));
    outputs.iter().filter(is_data).count()
}

/// A peer that accepts everything and never answers: NO-RESPONSE ends the link and frees the stored messages.
#[test]
fn never_answers() {
    let params = Params {
        max_queue: 20,
        ..Params::UNI
    };
    let mut end = ready(params, 1000);
    for _ in 0..20 {
        ask(&mut end, Request::Data(vec![1]), NOW);
    }
    let more = end.handle_input(Input::Upper(Request::Data(vec![1])), NOW);
    assert_eq!(more, Err(QUEUE_FULL));
    let mut all = Vec::new();
    while let Some(at) = end.poll_timeout() {
        all.extend(settle(&mut end, at));
    }
    assert_eq!(codes(&all), "P");
    assert_eq!((end.state(), end.outstanding()), (State::Idle, 0));
    assert!(all.len() < 15, "a POLL each 750 ms: {}", all.len());
}

/// A peer that answers each POLL and acknowledges nothing: the link stays up, the queue is full, no message is sent
/// twice.
#[test]
fn never_acknowledges() {
    let params = Params {
        max_queue: 20,
        ..Params::UNI
    };
    let mut end = ready(params, 10);
    for _ in 0..20 {
        ask(&mut end, Request::Data(vec![1]), NOW);
    }
    let (mut ps, mut now) = (0, NOW);
    for _ in 0..100 {
        now = end.poll_timeout().unwrap();
        for output in settle(&mut end, now) {
            let Output::Lower(octets) = output else {
                panic!("{output:?}");
            };
            assert!(matches!(Pdu::decode(&octets), Ok(Pdu::Poll { .. })));
            ps += 1;
        }
        let Pdu::Stat {
            ps: number, list, ..
        } = stat(ps, 0, &[])
        else {
            unreachable!()
        };
        let pdu = Pdu::Stat {
            ps: number,
            mr: seq(10),
            r: seq(0),
            list,
        };
        let sent = feed(&mut end, &pdu, now);
        assert!(sent.iter().all(|o| matches!(o, Output::Management(_))));
        assert_eq!(end.outstanding(), 20);
    }
    assert_eq!(end.state(), State::DataTransferReady);
    assert!(now > NOW + Duration::from_secs(60));
}

/// Every invalid STAT, USTAT, POLL or SD: the code of the standard, ER, and nothing is stored.
#[test]
fn lies() {
    let ustat = |r, from, to| Pdu::Ustat {
        mr: seq(100),
        r: seq(r),
        from: seq(from),
        to: seq(to),
    };
    let poll = |s: u32| Pdu::Poll {
        ps: seq(1),
        s: seq(s),
    };
    let back = Seq24::MODULUS - 1;
    let lies = [
        ("R", stat(2, 0, &[]), "a POLL that was never sent"),
        ("R", stat(back, 0, &[]), "one before the first"),
        ("S", stat(1, 6, &[]), "SDs that were never sent"),
        ("S", stat(1, back, &[]), "less than acknowledged"),
        ("S", stat(1, 0, &[3, 3]), "an empty gap"),
        ("S", stat(1, 0, &[3, 2]), "a gap backwards"),
        ("S", stat(1, 0, &[0, 1, 1]), "an empty run"),
        ("S", stat(1, 0, &[0, 6]), "a gap of SDs never sent"),
        ("S", stat(1, 2, &[0, 1]), "a gap in what it acknowledges"),
        ("T", ustat(0, 0, 6), "a gap of SDs never sent"),
        ("T", ustat(0, 3, 2), "a gap backwards"),
        ("T", ustat(6, 6, 7), "SDs that were never sent"),
        ("T", ustat(2, 0, 1), "a gap in what it acknowledges"),
        ("Q", poll(3), "fewer SDs than were received"),
        ("Q", poll(back), "fewer than were delivered"),
        ("Q", data(3), "an SD twice behind a gap"),
    ];
    for (code, lie, what) in lies {
        let mut end = ready(Params::UNI, 100);
        for _ in 0..5 {
            ask(&mut end, Request::Data(vec![1]), NOW);
        }
        // SD 2 is missing.
        for s in [0, 1, 3] {
            feed(&mut end, &data(s), NOW);
        }
        let now = end.poll_timeout().unwrap();
        settle(&mut end, now);
        let told = feed(&mut end, &lie, now);
        assert_eq!(codes(&told), code, "{what}");
        let er = Pdu::Recover {
            sq: Seq8(2),
            mr: seq(128),
        };
        assert_eq!(told.last(), Some(&Output::Lower(er.encode())), "{what}");
        assert_eq!(end.state(), State::OutgoingRecoveryPending, "{what}");
        assert_eq!((end.outstanding(), end.rx.held()), (0, 0), "{what}");
    }
}

/// Invalid credit: a lower value than before stops new SDs, a much higher value sends the waiting messages and no more.
#[test]
fn credit_of_any_size() {
    for (mr, sent) in [(0, 0), (2, 0), (5, 2), (100, 7), (Seq24::MODULUS - 1, 7)] {
        let mut end = ready(Params::UNI, 3);
        for _ in 0..10 {
            ask(&mut end, Request::Data(vec![1]), NOW);
        }
        let now = end.poll_timeout().unwrap();
        settle(&mut end, now);
        let pdu = Pdu::Stat {
            ps: seq(1),
            mr: seq(mr),
            r: seq(0),
            list: Vec::new(),
        };
        let told = feed(&mut end, &pdu, now);
        let lower = |o: &&Output| matches!(o, Output::Lower(_));
        assert_eq!(told.iter().filter(lower).count(), sent, "N(MR) = {mr}");
        assert_eq!(end.outstanding(), 10);
    }
}

/// SDs beyond the credit are dropped; the first one is answered with a USTAT, the others are not answered.
#[test]
fn beyond_the_credit() {
    let params = Params {
        window: 8,
        ..Params::UNI
    };
    let mut end = ready(params, 100);
    let told: Vec<_> = (8..1000)
        .flat_map(|s| feed(&mut end, &data(s), NOW))
        .collect();
    let ustat = Pdu::Ustat {
        mr: seq(8),
        r: seq(0),
        from: seq(0),
        to: seq(8),
    };
    assert_eq!(told, [Output::Lower(ustat.encode())]);
    assert_eq!(end.rx.held(), 0);
    for s in 1..8 {
        feed(&mut end, &data(s), NOW);
    }
    assert_eq!(end.rx.held(), 7);
    assert_eq!(delivered(&feed(&mut end, &data(0), NOW)), 8);
    assert_eq!(end.rx.held(), 0);
}

/// SDs that are repeated after their delivery are not delivered again.
#[test]
fn replayed_data() {
    let mut end = ready(Params::UNI, 100);
    for s in 0..50 {
        assert_eq!(delivered(&feed(&mut end, &data(s), NOW)), 1);
    }
    for s in 0..50 {
        assert_eq!(delivered(&feed(&mut end, &data(s), NOW)), 0);
    }
}

/// An endless series of BGNs: each costs an answer or an indication, but no memory.
#[test]
fn floods_of_begins() {
    let mut end = Sscop::new(Params::UNI);
    for n in 0..1000_u32 {
        let pdu = Pdu::Begin {
            sq: Seq8(n as u8),
            mr: seq(n),
            uu: vec![7; 4096],
        };
        assert!(feed(&mut end, &pdu, NOW).len() <= 2);
        assert!(end.uu.is_empty());
        assert_eq!(end.poll_timeout(), None);
    }
}

proptest! {
    /// Octets that are not a PDU: code U each time, and nothing else changes.
    #[test]
    fn garbage(garbage in prop::collection::vec(any::<u8>(), 0..64)) {
        prop_assume!(Pdu::decode(&garbage).is_err());
        let mut end = ready(Params::UNI, 100);
        let due = end.poll_timeout();
        end.handle_input(Input::Lower(&garbage), NOW).unwrap();
        let told = settle(&mut end, NOW);
        prop_assert_eq!(told, [Output::Management(MaaError { code: 'U', count: 0 })]);
        prop_assert_eq!(end.state(), State::DataTransferReady);
        prop_assert_eq!(end.poll_timeout(), due);
    }
}
