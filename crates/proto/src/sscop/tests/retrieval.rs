//! Clear-buffers = no and AA-RETRIEVE: the messages that outlive a connection; no message is lost.

use super::super::*;
use super::Pair;
use super::states::{ask, expire, number, octets_of, request_of, stat, take};
use crate::Duration;
use crate::machine::settle;
use aerostat_wire::SscopPdu as Pdu;
use proptest::prelude::*;

const NOW: Instant = Instant::ZERO;

/// Messages that each event leaves with BR = no: `y` if the message behind a gap is delivered, `=n` the state, then
/// what `RETRIEVE.req` with "Total" brings, `0` for nothing; `x`: it is refused in that state. An entity that is back
/// in state 10 is released first, with `+`. Source: Q.2110 §8.2, its macros.
const KEPT: &str = "
event        | 6          | 7          | 8         | 9         | 10
nothing      | abc        | x          | abc       | abc       | x
REL.req      | =4 abc     | =4 abc     | =4 abc    | =4 abc    | =4 abc
RESYNC.req   | .          | =5 x       | =5 x      | =5 x      | =5 x
RESYNC.resp  | =10 + 0    | .          | .         | .         | .
RECOVER.resp | .          | .          | =10 + c   | =10 + c   | .
BGN n        | =3 abc     | =3 abc     | =3 abc    | =3 abc    | =3 abc
BGREJ        | =1 abc     | =1 abc     | =1 abc    | =1 abc    | =1 abc
END          | =1 abc     | =1 abc     | =1 abc    | =1 abc    | =1 abc
ENDAK        | =1 abc     | =1 abc     | =1 abc    | =1 abc    | =1 abc
RS n         | abc        | =6 abc     | =6 abc    | =6 abc    | =6 abc
ER n         | abc        | y =8 abc   | abc       | abc       | y =9 abc
ERAK         | abc        | y =8 abc   | abc       | abc       | x
USTAT        | =1 abc     | x          | =1 abc    | =1 abc    | x
POLL         | =1 abc     | x          | abc       | =1 abc    | =7 x
T.CC last    | .          | =1 abc     | .         | .         | .
T.NR         | .          | .          | .         | .         | =1 abc
";

fn uu() -> Vec<u8> {
    Vec::new()
}
fn seq(n: u32) -> Seq24 {
    Seq24::new(n)
}
fn letters(outputs: &[Output]) -> String {
    let letter = |output: &Output| match output {
        Output::Upper(Indication::Retrieved(message)) => Some(char::from(message[0])),
        _ => None,
    };
    outputs.iter().filter_map(letter).collect()
}
fn retrieve(end: &mut Sscop, from: Retrieval, now: Instant) -> Option<String> {
    end.handle_input(Input::Upper(Request::Retrieve(from)), now)
        .ok()?;
    let told = settle(end, now);
    assert_eq!(
        told.last(),
        Some(&Output::Upper(Indication::RetrieveComplete))
    );
    Some(letters(&told))
}

/// An end with BR = no and credit for `mr` messages, which has sent as many of "abc..." as allowed.
fn ready(buffers: Buffers, mr: u32, messages: &str) -> Sscop {
    let mut end = Sscop::new(Params::UNI);
    ask(&mut end, Request::Establish(uu(), buffers), NOW);
    let (mr, uu) = (seq(mr), uu());
    take(&mut end, &Pdu::BeginAck { mr, uu }, NOW);
    for letter in messages.bytes() {
        ask(&mut end, Request::Data(vec![letter]), NOW);
    }
    end
}

/// An end in state `n` that has sent a and b, has no credit for c, and has received y behind a gap.
fn entity_in(n: usize) -> (Sscop, Instant) {
    let mut end = ready(Buffers::Keep, 2, "abc");
    let (s, info) = (seq(1), b"y".to_vec());
    take(&mut end, &Pdu::Data { s, info }, NOW);
    let now = end.poll_timeout().unwrap();
    settle(&mut end, now);
    match n {
        6 => take(&mut end, &pdu("RS n"), now),
        7 | 8 => take(&mut end, &stat(9), now),
        9 => take(&mut end, &pdu("ER n"), now),
        _ => {}
    }
    if n == 8 {
        take(&mut end, &pdu("ERAK"), now);
    }
    assert_eq!(number(end.state()), n);
    (end, now)
}
fn pdu(event: &str) -> Pdu {
    let (sq, mr) = (Seq8(77), seq(0x80));
    match event {
        "RS n" => Pdu::Resync { sq, mr, uu: uu() },
        "ER n" => Pdu::Recover { sq, mr },
        _ => Pdu::RecoverAck { mr },
    }
}

/// The result of one event; see [`KEPT`].
fn outcome(event: &str, before: usize) -> String {
    let (mut end, mut now) = entity_in(before);
    if let Some(request) = request_of(event) {
        if end.handle_input(Input::Upper(request), now).is_err() {
            return ".".into();
        }
    } else if let Some(octets) = octets_of(event, &end) {
        end.handle_input(Input::Lower(&octets), now).unwrap();
    } else if event != "nothing" {
        let Some(at) = expire(&mut end, event, now) else {
            return ".".into();
        };
        now = at;
    }
    let mut words = Vec::new();
    for output in settle(&mut end, now) {
        if let Output::Upper(Indication::Data(message, sn)) = output {
            assert_eq!((&message[..], sn), (&b"y"[..], seq(1)));
            words.push("y".to_owned());
        }
    }
    let after = number(end.state());
    if after != before {
        words.push(format!("={after}"));
    }
    if after == 10 && before != 10 {
        words.push("+".into());
        ask(&mut end, Request::Release(uu()), now);
    }
    words.push(match retrieve(&mut end, Retrieval::Total, now) {
        None => "x".into(),
        Some(all) if all.is_empty() => "0".into(),
        Some(all) => all,
    });
    words.join(" ")
}

#[test]
fn what_every_event_keeps() {
    let mut cells = 0;
    for row in KEPT.lines().skip(2) {
        let mut row = row.split('|').map(str::trim);
        let event = row.next().unwrap();
        for (before, want) in (6..).zip(row) {
            assert_eq!(outcome(event, before), want, "{event} in state {before}");
            cells += 1;
        }
    }
    assert_eq!(cells, 80);
}

/// RN selects the messages; retrieved ones are removed, the others stay; with BR = yes there is nothing to retrieve.
#[test]
fn retrieval_numbers() {
    let kept = |from| {
        let mut end = ready(Buffers::Keep, 4, "abcdef");
        // a is acknowledged; b is missing, c was received.
        let now = end.poll_timeout().unwrap();
        settle(&mut end, now);
        let list = vec![seq(1), seq(2), seq(3)];
        let (ps, r, mr) = (seq(1), seq(1), seq(4));
        take(&mut end, &Pdu::Stat { ps, mr, r, list }, now);
        assert_eq!(end.outstanding(), 5);
        let by_sscop = true;
        take(&mut end, &Pdu::End { by_sscop, uu: uu() }, now);
        let first = retrieve(&mut end, from, now).unwrap();
        let rest = retrieve(&mut end, Retrieval::Total, now).unwrap();
        assert_eq!((end.outstanding(), end.poll_timeout()), (0, None));
        (first, rest)
    };
    let after = |n| Retrieval::After(Seq24::ZERO.plus(n));
    for (from, first, rest) in [
        (Retrieval::Total, "bcdef", ""),
        (Retrieval::Unsent, "ef", "bcd"),
        (after(0), "bcdef", ""),
        (after(1), "cdef", "b"),
        (after(2), "def", "bc"),
        // The last number that was sent, one that was not sent, and acknowledged ones.
        (after(3), "ef", "bcd"),
        (after(4), "ef", "bcd"),
        (after(Seq24::MODULUS - 1), "ef", "bcd"),
    ] {
        assert_eq!(kept(from), (first.into(), rest.into()), "{from:?}");
    }
    let mut end = ready(Buffers::Release, 4, "abcdef");
    ask(&mut end, Request::Release(uu()), NOW);
    assert_eq!(retrieve(&mut end, Retrieval::Total, NOW).unwrap(), "");
}

/// Messages that are not retrieved are removed by the next connection of either side, and never exceed the queue limit.
#[test]
fn kept_until_the_next_connection() {
    for ours in [true, false] {
        let mut end = ready(Buffers::Keep, 2, "abc");
        ask(&mut end, Request::Release(uu()), NOW);
        take(&mut end, &Pdu::EndAck, NOW);
        assert_eq!(end.outstanding(), 3);
        if ours {
            ask(&mut end, Request::Establish(uu(), Buffers::Release), NOW);
        } else {
            let (sq, mr) = (Seq8(9), seq(2));
            take(&mut end, &Pdu::Begin { sq, mr, uu: uu() }, NOW);
            assert_eq!(end.outstanding(), 3);
            let answer = Request::EstablishResponse(uu(), Buffers::Release);
            ask(&mut end, answer, NOW);
        }
        assert_eq!(end.outstanding(), 0);
    }
}

/// A user moves to another link: what the first did not deliver goes over the second, from the number on that the
/// peer's user names. Nothing is missing, nothing comes twice.
#[test]
fn changeover_to_another_link() {
    let mut first = Pair::new(Params::UNI);
    first.buffers = Buffers::Keep;
    first.ask(0, Request::Establish(uu(), Buffers::Keep));
    first.run(Duration::from_secs(1));
    assert!(first.both_ready());
    // Two of three SDs, and every STAT from now on, are lost.
    first.lose = Box::new(|_, pdu| match pdu {
        Pdu::Data { s, .. } => s.get() >= 5 && s.get() % 3 != 0,
        Pdu::Stat { .. } | Pdu::Ustat { .. } => true,
        _ => false,
    });
    for n in 0..10 {
        first.ask(0, Request::Data(vec![n]));
    }
    first.run(Duration::from_secs(1));
    let got = first.data[1].len();
    assert_eq!(got, 5);
    // Nothing is acknowledged: "Total" would bring what the peer has.
    assert_eq!(first.ends[0].outstanding(), 10);
    first.lose = Box::new(|_, _| true);
    first.buffers = Buffers::Release;
    first.ask(0, Request::Release(uu()));
    first.run(Duration::from_secs(10));
    assert_eq!(first.ends[0].state(), State::Idle);
    let last = seq(u32::try_from(got).unwrap() - 1);
    first.ask(0, Request::Retrieve(Retrieval::After(last)));
    let mut second = Pair::new(Params::UNI);
    second.ask(0, Request::Establish(uu(), Buffers::Keep));
    second.run(Duration::from_secs(1));
    for message in first.back[0].clone() {
        second.ask(0, Request::Data(message));
    }
    second.run(Duration::from_secs(5));
    let all: Vec<_> = first.data[1].iter().chain(&second.data[1]).collect();
    assert_eq!(
        all,
        (0..10)
            .map(|n| vec![n])
            .collect::<Vec<_>>()
            .iter()
            .collect::<Vec<_>>()
    );
}

/// The user data of an answer to a BGN come again with the answer when the BGN does.
#[test]
fn an_answer_that_was_lost_comes_again_in_full() {
    for (answer, ready) in [
        (
            Request::EstablishResponse(b"yes!".to_vec(), Buffers::Release),
            true,
        ),
        (Request::Release(b"not now".to_vec()), false),
    ] {
        let mut end = Sscop::new(Params::UNI);
        let (sq, mr) = (Seq8(9), seq(2));
        let begin = Pdu::Begin { sq, mr, uu: uu() }.encode();
        end.handle_input(Input::Lower(&begin), NOW).unwrap();
        settle(&mut end, NOW);
        end.handle_input(Input::Upper(answer), NOW).unwrap();
        let first = settle(&mut end, NOW);
        end.handle_input(Input::Lower(&begin), NOW).unwrap();
        assert_eq!(settle(&mut end, NOW), first);
        assert_eq!(first.len(), 1);
        if ready {
            // Not with the refusal of a BGN that was accepted.
            let by_sscop = false;
            take(&mut end, &Pdu::End { by_sscop, uu: uu() }, NOW);
            end.handle_input(Input::Lower(&begin), NOW).unwrap();
            let reject = Pdu::BeginReject { uu: uu() };
            assert_eq!(settle(&mut end, NOW), [Output::Lower(reject.encode())]);
        }
    }
}

/// One step of [`none_is_lost`].
fn step(pair: &mut Pair, kind: u8, end: usize, n: u64, sent: &mut [Vec<u32>; 2]) {
    let state = pair.ends[end].state();
    match kind {
        0 if state == State::Idle => pair.ask(end, Request::Establish(uu(), Buffers::Keep)),
        1 if state == State::DataTransferReady => pair.ask(end, Request::Release(uu())),
        // A POLL behind VR(H), a STAT for a POLL that was never sent: recovery.
        2 | 3 if state == State::DataTransferReady => {
            let ps = seq(n as u32 + 500);
            let lie = if kind == 2 {
                let s = Seq24::ZERO.plus(Seq24::MODULUS - 1);
                Pdu::Poll { ps, s }
            } else {
                stat(ps.get())
            };
            let now = pair.now;
            pair.ends[end]
                .handle_input(Input::Lower(&lie.encode()), now)
                .unwrap();
            pair.run(Duration::ZERO);
        }
        4..=7 => {
            for _ in 0..n % 9 {
                let number = sent[end].last().map_or(0, |last| last + 1);
                let data = Request::Data(number.to_be_bytes().to_vec());
                let now = pair.now;
                if pair.ends[end].handle_input(Input::Upper(data), now).is_ok() {
                    sent[end].push(number);
                }
            }
            pair.run(Duration::ZERO);
        }
        _ => pair.run(Duration::from_millis(n)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// With BR = no and users that retrieve what they may, each message that was handed in is delivered, or came back,
    /// or both, whatever was lost and however often the link was released, lost and recovered; and messages are
    /// delivered in order, once each.
    #[test]
    fn none_is_lost(
        steps in prop::collection::vec((0_u8..12, 0_usize..2, 0_u64..2500), 1..60),
        losses in prop::collection::vec(0_u8..100, 64),
        rate in 0_u8..50,
        window in 1_u32..12,
    ) {
        let mut pair = Pair::new(Params { window, max_queue: 30, ..Params::UNI });
        pair.buffers = Buffers::Keep;
        pair.ask(0, Request::Establish(uu(), Buffers::Keep));
        pair.lose = Box::new(move |n, _| losses[n * 7 % losses.len()] < rate);
        let mut sent: [Vec<u32>; 2] = Default::default();
        for (kind, end, n) in steps {
            step(&mut pair, kind, end, n, &mut sent);
            prop_assert!(pair.ends.iter().all(|end| end.outstanding() <= 30));
        }
        pair.lose = Box::new(|_, _| false);
        pair.run(Duration::from_secs(60));
        for end in 0..2 {
            if pair.ends[end].state() == State::DataTransferReady {
                pair.ask(end, Request::Release(uu()));
                pair.run(Duration::from_secs(10));
            }
        }
        for (end, sent) in sent.iter().enumerate() {
            prop_assert_eq!(pair.ends[end].state(), State::Idle);
            prop_assert_eq!(pair.ends[end].outstanding(), 0);
            let numbers = |messages: &[Vec<u8>]| -> Vec<u32> {
                let number = |m: &Vec<u8>| u32::from_be_bytes(m[..].try_into().unwrap());
                messages.iter().map(number).collect()
            };
            let (there, back) = (numbers(&pair.data[1 - end]), numbers(&pair.back[end]));
            prop_assert!(there.is_sorted_by(|a, b| a < b), "twice or out of order: {:?}", there);
            prop_assert!(back.is_sorted_by(|a, b| a < b), "twice or out of order: {:?}", back);
            for number in sent {
                prop_assert!(there.contains(number) || back.contains(number), "{} is lost", number);
            }
        }
    }
}
