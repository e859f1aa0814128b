//! The state tables of Q.2110 as a test: the effect of each event in each of the ten states.
//!
//! A cell has, in order, the errors (`!` and the letter), PDUs and indications that come out, and `=n` if the state
//! changes; `-`: nothing happens; `x`: the request is refused; `.`: the timer does not run in this state. `END+` is an
//! END with S = 1, `RETRIEVED` AA-RETRIEVE COMPLETE. Of BGN, RS and ER, `r` is one with N(SQ) = VR(SQ), a
//! retransmission, and `n` a new one. Source: Q.2110 §8.2, its SDL diagrams.

use super::super::*;
use crate::machine::settle;
use crate::timers::TimerKind;
use aerostat_wire::SscopPdu as Pdu;

/// States 1 to 5.
const LOW: &str = "
EST.req      | BGN =2    | x                | x                   | BGN =2              | x
EST.resp     | x         | x                | BGAK =10            | x                   | x
REL.req      | x         | END =4           | BGREJ =1            | x                   | END =4
DATA.req     | x         | x                | x                   | x                   | x
RESYNC.req   | x         | x                | x                   | x                   | x
RESYNC.resp  | x         | x                | x                   | x                   | x
RECOVER.resp | x         | x                | x                   | x                   | x
RETRIEVE.req | RETRIEVED | x                | RETRIEVED           | RETRIEVED           | x
UD.req       | UD        | UD               | UD                  | UD                  | UD
MD.req       | MD        | MD               | MD                  | MD                  | MD
BGN r        | BGREJ     | -                | -                   | BGAK END            | BGAK RS
BGN n        | EST.ind =3| BGAK EST.conf =10| REL.ind EST.ind     | REL.conf EST.ind =3 | REL.ind EST.ind =3
BGAK         | !C END+   | EST.conf =10     | !C                  | -                   | -
BGREJ        | !D        | REL.ind =1       | !D REL.ind =1       | REL.conf =1         | !D REL.ind =1
END          | ENDAK     | -                | ENDAK REL.ind =1    | ENDAK REL.conf =1   | ENDAK REL.ind =1
ENDAK        | -         | -                | !F REL.ind =1       | REL.conf =1         | !F REL.ind =1
RS r         | !J END+   | -                | !J                  | -                   | -
RS n         | !J END+   | -                | !J                  | -                   | RSAK RESYNC.conf =10
RSAK         | !K END+   | -                | !K                  | -                   | RESYNC.conf =10
ER r         | !L END+   | -                | !L                  | -                   | -
ER n         | !L END+   | -                | !L                  | -                   | -
ERAK         | !M END+   | -                | !M                  | -                   | -
SD           | !A END+   | -                | !A END+ REL.ind =1  | -                   | -
POLL         | !G END+   | -                | !G END+ REL.ind =1  | -                   | -
STAT         | !H END+   | -                | !H END+ REL.ind =1  | -                   | -
USTAT        | !I END+   | -                | !I END+ REL.ind =1  | -                   | -
UD           | UD.ind    | UD.ind           | UD.ind              | UD.ind              | UD.ind
MD           | MD.ind    | MD.ind           | MD.ind              | MD.ind              | MD.ind
garbage      | !U        | !U               | !U                  | !U                  | !U
T.CC         | .         | BGN              | .                   | END                 | RS
T.CC last    | .         | !O END+ REL.ind =1 | .                 | !O REL.conf =1      | !O END+ REL.ind =1
T.POLL       | .         | .                | .                   | .                   | .
T.NR         | .         | .                | .                   | .                   | .
";

/// States 6 to 10. In state 10 the first POLL is outstanding.
const HIGH: &str = "
EST.req      | x                  | x                  | x                  | x                  | x
EST.resp     | x                  | x                  | x                  | x                  | x
REL.req      | END =4             | END =4             | END =4             | END =4             | END =4
DATA.req     | x                  | -                  | -                  | -                  | SD
RESYNC.req   | x                  | RS =5              | RS =5              | RS =5              | RS =5
RESYNC.resp  | RSAK =10           | x                  | x                  | x                  | x
RECOVER.resp | x                  | x                  | =10                | ERAK =10           | x
RETRIEVE.req | RETRIEVED          | x                  | RETRIEVED          | RETRIEVED          | x
UD.req       | UD                 | UD                 | UD                 | UD                 | UD
MD.req       | MD                 | MD                 | MD                 | MD                 | MD
BGN r        | !B                 | !B                 | !B                 | !B                 | BGAK
BGN n        | REL.ind EST.ind =3 | REL.ind EST.ind =3 | REL.ind EST.ind =3 | REL.ind EST.ind =3 | REL.ind EST.ind =3
BGAK         | !C                 | !C                 | !C                 | !C                 | -
BGREJ        | !D REL.ind =1      | !D REL.ind =1      | !D REL.ind =1      | !D REL.ind =1      | !D REL.ind =1
END          | ENDAK REL.ind =1   | ENDAK REL.ind =1   | ENDAK REL.ind =1   | ENDAK REL.ind =1   | ENDAK REL.ind =1
ENDAK        | !F REL.ind =1      | !F REL.ind =1      | !F REL.ind =1      | !F REL.ind =1      | !F REL.ind =1
RS r         | -                  | !J                 | !J                 | !J                 | RSAK
RS n         | !J                 | RESYNC.ind =6      | RESYNC.ind =6      | RESYNC.ind =6      | RESYNC.ind =6
RSAK         | !K                 | !K                 | !K                 | !K                 | -
ER r         | !L                 | !L                 | ERAK               | -                  | ERAK
ER n         | !L                 | ERAK RECOVER.ind =8| !L                 | !L                 | RECOVER.ind =9
ERAK         | !M                 | RECOVER.ind =8     | -                  | !M                 | -
SD           | !A END+ REL.ind =1 | -                  | -                  | !A END+ REL.ind =1 | DATA.ind
POLL         | !G END+ REL.ind =1 | -                  | -                  | !G END+ REL.ind =1 | STAT
STAT         | !H END+ REL.ind =1 | -                  | !H END+ REL.ind =1 | !H END+ REL.ind =1 | -
USTAT        | !I END+ REL.ind =1 | -                  | !I END+ REL.ind =1 | !I END+ REL.ind =1 | !T ER =7
UD           | UD.ind             | UD.ind             | UD.ind             | UD.ind             | UD.ind
MD           | MD.ind             | MD.ind             | MD.ind             | MD.ind             | MD.ind
garbage      | !U                 | !U                 | !U                 | !U                 | !U
T.CC         | .                  | ER                 | .                  | .                  | .
T.CC last    | .                  | !O END+ REL.ind =1 | .                  | .                  | .
T.POLL       | .                  | .                  | .                  | .                  | POLL
T.NR         | .                  | .                  | .                  | .                  | !P END+ REL.ind =1
";

const STATES: [State; 10] = [
    State::Idle,
    State::OutgoingConnectionPending,
    State::IncomingConnectionPending,
    State::OutgoingDisconnectionPending,
    State::OutgoingResyncPending,
    State::IncomingResyncPending,
    State::OutgoingRecoveryPending,
    State::RecoveryResponsePending,
    State::IncomingRecoveryPending,
    State::DataTransferReady,
];

/// Number of a state, 1 to 10.
pub(super) fn number(state: State) -> usize {
    STATES.iter().position(|s| *s == state).unwrap() + 1
}

const MR: Seq24 = Seq24::new(0x80);

pub(super) fn take(end: &mut Sscop, pdu: &Pdu, now: Instant) {
    let octets = pdu.encode();
    end.handle_input(Input::Lower(&octets), now).unwrap();
    settle(end, now);
}
pub(super) fn ask(end: &mut Sscop, request: Request, now: Instant) {
    end.handle_input(Input::Upper(request), now).unwrap();
    settle(end, now);
}
pub(super) fn stat(ps: u32) -> Pdu {
    Pdu::Stat {
        ps: Seq24::new(ps),
        mr: MR,
        r: Seq24::ZERO,
        list: Vec::new(),
    }
}
/// N(SQ) for a new PDU, or for a retransmission.
fn sq(end: &Sscop, new: bool) -> Seq8 {
    if new { end.vr_sq.next() } else { end.vr_sq }
}

/// An entity in state `n`, and the time. It got there only by PDUs, requests and time, and VR(SQ) is not 0.
fn entity_in(n: usize) -> (Sscop, Instant) {
    let mut end = Sscop::new(Params::UNI);
    let mut now = Instant::ZERO;
    let uu = Vec::new;
    let begin = |end: &Sscop| Pdu::Begin {
        sq: sq(end, true),
        mr: MR,
        uu: uu(),
    };
    let pdu = begin(&end);
    take(&mut end, &pdu, now);
    let by_sscop = false;
    take(&mut end, &Pdu::End { by_sscop, uu: uu() }, now);
    if n == 3 {
        let pdu = begin(&end);
        take(&mut end, &pdu, now);
    } else if n > 1 {
        ask(&mut end, Request::Establish(uu(), Buffers::Release), now);
    }
    if n > 3 {
        take(&mut end, &Pdu::BeginAck { mr: MR, uu: uu() }, now);
        now = end.poll_timeout().unwrap();
        settle(&mut end, now);
    }
    let (sq, mr) = (sq(&end, true), MR);
    match n {
        4 => ask(&mut end, Request::Release(uu()), now),
        5 => ask(&mut end, Request::Resync(uu()), now),
        6 => take(&mut end, &Pdu::Resync { sq, mr, uu: uu() }, now),
        7 | 8 => take(&mut end, &stat(9), now),
        9 => take(&mut end, &Pdu::Recover { sq, mr }, now),
        _ => {}
    }
    if n == 8 {
        take(&mut end, &Pdu::RecoverAck { mr: MR }, now);
    }
    assert_eq!(number(end.state()), n);
    (end, now)
}

pub(super) fn request_of(event: &str) -> Option<Request> {
    Some(match event {
        "EST.req" => Request::Establish(Vec::new(), Buffers::Release),
        "EST.resp" => Request::EstablishResponse(Vec::new(), Buffers::Release),
        "REL.req" => Request::Release(Vec::new()),
        "DATA.req" => Request::Data(b"x".to_vec()),
        "RESYNC.req" => Request::Resync(Vec::new()),
        "RESYNC.resp" => Request::ResyncResponse,
        "RECOVER.resp" => Request::RecoverResponse,
        "RETRIEVE.req" => Request::Retrieve(Retrieval::Total),
        "UD.req" => Request::UnitData(b"x".to_vec()),
        "MD.req" => Request::ManagementData(b"x".to_vec()),
        _ => return None,
    })
}

pub(super) fn octets_of(event: &str, end: &Sscop) -> Option<Vec<u8>> {
    let (name, new) = (event.split(' ').next()?, event.ends_with(" n"));
    let (sq, mr, uu, info) = (sq(end, new), MR, Vec::new(), b"x".to_vec());
    let (zero, one) = (Seq24::ZERO, Seq24::new(1));
    let pdu = match name {
        "BGN" => Pdu::Begin { sq, mr, uu },
        "BGAK" => Pdu::BeginAck { mr, uu },
        "BGREJ" => Pdu::BeginReject { uu },
        "END" => {
            let by_sscop = false;
            Pdu::End { by_sscop, uu }
        }
        "ENDAK" => Pdu::EndAck,
        "RS" => Pdu::Resync { sq, mr, uu },
        "RSAK" => Pdu::ResyncAck { mr },
        "ER" => Pdu::Recover { sq, mr },
        "ERAK" => Pdu::RecoverAck { mr },
        "SD" => Pdu::Data { s: zero, info },
        "POLL" => Pdu::Poll { ps: one, s: zero },
        "STAT" => stat(1),
        "USTAT" => Pdu::Ustat {
            mr,
            r: zero,
            from: zero,
            to: one,
        },
        "UD" => Pdu::UnitData { info },
        "MD" => Pdu::ManagementData { info },
        "garbage" => return Some(vec![1, 2, 3]),
        _ => return None,
    };
    Some(pdu.encode())
}

/// The octets of a PDU that the table names, with all its field values.
fn golden(name: &str, sq: u8) -> String {
    match name {
        "BGN" => format!("000000{sq:02x}01000080"),
        "BGAK" => "0000000002000080".into(),
        "BGREJ" => "0000000007000000".into(),
        "END" => "0000000003000000".into(),
        "END+" => "0000000013000000".into(),
        "ENDAK" => "0000000004000000".into(),
        "RS" => format!("000000{sq:02x}05000080"),
        "RSAK" => "0000000006000080".into(),
        "ER" => format!("000000{sq:02x}09000080"),
        "ERAK" => "000000000f000080".into(),
        "SD" => "78000000c8000000".into(),
        "POLL" => "000000020a000000".into(),
        "STAT" => "00000001000000800b000000".into(),
        "UD" => "78000000cd000000".into(),
        "MD" => "78000000ce000000".into(),
        _ => panic!("the table has no {name}"),
    }
}

/// Makes a timer expire; `None` if it does not run.
pub(super) fn expire(end: &mut Sscop, event: &str, now: Instant) -> Option<Instant> {
    let timer = match event {
        "T.POLL" => Timer::KeepAlive,
        "T.NR" => Timer::NoResponse,
        _ => Timer::Cc,
    };
    if !end.runs(timer) {
        return None;
    }
    if event == "T.CC last" {
        end.vt_cc = end.params.max_cc;
    }
    // Of the running timers, only this one expires.
    for &other in Timer::ALL.iter().filter(|t| **t != timer) {
        end.stop(other);
    }
    let at = end.poll_timeout()?;
    assert!(at > now);
    end.handle_timeout(at);
    Some(at)
}

/// The outputs, and the state if it has changed.
fn told(end: &mut Sscop, before: usize) -> String {
    let mut words = Vec::new();
    while let Some(output) = end.poll_output() {
        words.push(match output {
            Output::Management(error) => format!("!{}", error.code),
            Output::Upper(indication) => match indication {
                Indication::Establish(_) => "EST.ind",
                Indication::Established(_) => "EST.conf",
                Indication::Released(..) => "REL.ind",
                Indication::ReleaseConfirmed => "REL.conf",
                Indication::Data(..) => "DATA.ind",
                Indication::Resync(_) => "RESYNC.ind",
                Indication::Resynced => "RESYNC.conf",
                Indication::Recover => "RECOVER.ind",
                Indication::Retrieved(_) => "a message back",
                Indication::RetrieveComplete => "RETRIEVED",
                Indication::UnitData(_) => "UD.ind",
                Indication::ManagementData(_) => "MD.ind",
            }
            .into(),
            Output::Lower(octets) => {
                let hex: String = octets.iter().map(|o| format!("{o:02x}")).collect();
                // Type and S bit.
                let name = match octets[octets.len() - 4] & 0x1f {
                    0x01 => "BGN",
                    0x02 => "BGAK",
                    0x07 => "BGREJ",
                    0x03 => "END",
                    0x13 => "END+",
                    0x04 => "ENDAK",
                    0x05 => "RS",
                    0x06 => "RSAK",
                    0x09 => "ER",
                    0x0f => "ERAK",
                    0x08 => "SD",
                    0x0a => "POLL",
                    0x0b => "STAT",
                    0x0d => "UD",
                    0x0e => "MD",
                    _ => "a PDU of another type",
                };
                assert_eq!(hex, golden(name, end.vt_sq.0));
                name.into()
            }
        });
    }
    let after = number(end.state());
    if after != before {
        words.push(format!("={after}"));
    }
    if words.is_empty() {
        words.push("-".into());
    }
    words.join(" ")
}

/// Checks the timers of a state. Source: Q.2110 §7.6.
fn check_timers(end: &Sscop) {
    let n = number(end.state());
    assert_eq!(end.runs(Timer::Cc), matches!(n, 2 | 4 | 5 | 7), "state {n}");
    let paced = [Timer::Poll, Timer::KeepAlive, Timer::Idle];
    let running = paced.into_iter().filter(|t| end.runs(*t)).count();
    assert_eq!(running, usize::from(n == 10), "state {n}");
    let awaited = n == 10 && !end.runs(Timer::Idle);
    assert_eq!(end.runs(Timer::NoResponse), awaited, "state {n}");
}

fn walk(table: &str, first: usize) -> usize {
    let mut cells = 0;
    for row in table.lines().filter(|row| !row.is_empty()) {
        let mut row = row.split('|').map(str::trim);
        let event = row.next().unwrap();
        for (i, want) in row.enumerate() {
            let before = first + i;
            let (mut end, now) = entity_in(before);
            let got = if let Some(request) = request_of(event) {
                match end.handle_input(Input::Upper(request), now) {
                    Ok(()) => told(&mut end, before),
                    Err(_) => {
                        assert_eq!(told(&mut end, before), "-");
                        "x".into()
                    }
                }
            } else if let Some(octets) = octets_of(event, &end) {
                end.handle_input(Input::Lower(&octets), now).unwrap();
                told(&mut end, before)
            } else if expire(&mut end, event, now).is_some() {
                told(&mut end, before)
            } else {
                ".".into()
            };
            assert_eq!(got, want, "{event} in state {before}");
            if !event.starts_with("T.") {
                check_timers(&end);
            }
            if matches!(end.state(), State::Idle) {
                assert_eq!(end.outstanding(), 0);
                assert_eq!(end.poll_timeout(), None);
            }
            cells += 1;
        }
    }
    cells
}

#[test]
fn every_event_in_every_state() {
    assert_eq!(walk(LOW, 1) + walk(HIGH, 6), 330);
}

/// VT(MS) is taken from every accepted PDU with N(MR): the first SD after it is sent if, and only if, N(MR) allows one.
#[test]
fn credit_of_the_pdu_that_opens_a_connection() {
    for (n, event, answer) in [
        (2, "BGN n", None),
        (2, "BGAK", None),
        (
            3,
            "BGN n",
            Some(Request::EstablishResponse(Vec::new(), Buffers::Release)),
        ),
        (5, "RS n", None),
        (5, "RSAK", None),
        (7, "ER n", Some(Request::RecoverResponse)),
        (7, "ERAK", Some(Request::RecoverResponse)),
        (
            10,
            "BGN n",
            Some(Request::EstablishResponse(Vec::new(), Buffers::Release)),
        ),
        (10, "RS n", Some(Request::ResyncResponse)),
        (10, "ER n", Some(Request::RecoverResponse)),
    ] {
        for credit in [0, 1] {
            let (mut end, now) = entity_in(n);
            let mut octets = octets_of(event, &end).unwrap();
            let at = octets.len() - 1;
            octets[at] = credit;
            end.handle_input(Input::Lower(&octets), now).unwrap();
            settle(&mut end, now);
            if let Some(answer) = answer.clone() {
                ask(&mut end, answer, now);
            }
            let data = Request::Data(b"x".to_vec());
            end.handle_input(Input::Upper(data), now).unwrap();
            let sent = settle(&mut end, now);
            assert_eq!(sent.len(), usize::from(credit), "{event} in state {n}");
        }
    }
}

/// A copy of an old BGN, RS or ER that arrives while the link is idle costs an answer, but does not end the link.
#[test]
fn a_replayed_begin_does_not_end_an_idle_link() {
    for event in ["BGN r", "RS r", "ER r"] {
        let (mut end, now) = entity_in(10);
        take(&mut end, &stat(1), now);
        assert!(end.runs(Timer::Idle));
        let octets = octets_of(event, &end).unwrap();
        end.handle_input(Input::Lower(&octets), now).unwrap();
        assert_eq!(settle(&mut end, now).len(), 1, "one answer");
        check_timers(&end);
        let next = end.poll_timeout().unwrap();
        settle(&mut end, next);
        assert_eq!(end.state(), State::DataTransferReady);
        assert_eq!(next, now + Params::UNI.timer_idle);
    }
}
