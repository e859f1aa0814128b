use super::super::{Config, Input};
use super::write::{BURST, ECHO_OCTETS, PAUSE};
use super::*;
use crate::atm::{Sdus, Written};
use crate::host::FromAdapter;
use crate::rate::PacketRate;
use crate::signalling::Heard;
use aerostat_proto::machine::settle;
use aerostat_proto::{AtmEvent, Machine};
use aerostat_wire::{Qos, Sap, Vc};

const OWN: AtmAddress = AtmAddress([0x47; 20]);
const PEER: AtmAddress = AtmAddress([0x39; 20]);
const CONN: ConnId = ConnId(ConnId::INCOMING);
const VC: Vc = Vc { vpi: 0, vci: 32 };

fn listener(answer: Answer, calls: usize) -> Program {
    Program {
        name: "l".into(),
        local: OWN,
        sap: Sap::LLC,
        shaping: None,
        atp: None,
        tester: false,
        role: Role::Listen {
            answer,
            max_sdu: 1000,
            calls,
        },
    }
}
fn caller(pdus: u64) -> Program {
    Program {
        name: "c".into(),
        local: OWN,
        sap: Sap::LLC,
        shaping: None,
        atp: None,
        tester: false,
        role: Role::Call {
            to: PEER,
            qos: Qos::ubr(1000),
            send: Sending {
                start: Instant::from_secs(1),
                pdus,
                size: 100,
                pace: Pace::At(PacketRate::every(Duration::from_millis(10)).expect("not zero")),
            },
            hold: Duration::from_millis(500),
            every: None,
        },
    }
}
fn sockets_of(programs: Vec<Program>) -> SocketLayer {
    SocketLayer::new(Config {
        host: "h".into(),
        address: OWN.with_selector(0),
        first_selector: 0xe0,
        programs,
        clock: Clock::default(),
        life: (0, 0),
        calls: 100,
        listeners: 10,
        names: Default::default(),
    })
}

fn atm(event: AtmEvent<&[u8]>) -> Input<'_> {
    Input::Atm(event, Heard::default())
}

const fn refusal(conn: ConnId, cause: Cause) -> AtmRequest {
    AtmRequest::Release { conn, cause }
}

fn connected(conn: ConnId) -> Input<'static> {
    let qos = Qos::ubr(1000);
    atm(AtmEvent::Connected { conn, vc: VC, qos })
}

fn received(sdu: &[u8]) -> Input<'_> {
    atm(AtmEvent::Received { conn: CONN, sdu })
}

fn incoming(conn: ConnId) -> Input<'static> {
    atm(AtmEvent::Incoming {
        conn,
        calling: Some(PEER),
        called: OWN,
        sap: Sap::LLC,
        qos: Qos::ubr(1000),
        multipoint: false,
    })
}
/// A write, as the request of a service that does not wait for the adapter.
fn sending(conn: ConnId, sdus: Sdus) -> AtmRequest {
    let sdu = sdus.into_vec();
    AtmRequest::Send { conn, sdu }
}

fn requests(outputs: Vec<Output>) -> Vec<AtmRequest> {
    let asked = outputs.into_iter().filter_map(|output| match output {
        Output::Atm(request, _) => Some(request),
        Output::Write(conn, sdus) => Some(sending(conn, sdus)),
        _ => None,
    });
    asked.collect()
}
/// All requests of the machine, with an adapter that accepts every PDU and sends it at once.
fn with_room(sockets: &mut SocketLayer, now: Instant) -> Vec<AtmRequest> {
    let mut asked = Vec::new();
    while let Some(output) = sockets.poll_output() {
        match output {
            Output::Atm(request, _) => asked.push(request),
            Output::Write(conn, sdus) => {
                let written = Written::Taken;
                let answer = Input::Adapter(FromAdapter::Written { conn, written });
                sockets.handle_input(answer, now).unwrap();
                asked.push(sending(conn, sdus));
            }
            Output::Flush(vc) => {
                let at = sockets.labels[&vc];
                let conn = sockets.get(at).and_then(|call| call.conn).expect("open");
                sockets
                    .handle_input(Input::Adapter(FromAdapter::Room { conn }), now)
                    .unwrap();
            }
            _ => {}
        }
    }
    asked
}
/// The same after the due timers have fired.
fn fire(sockets: &mut SocketLayer, now: Instant) -> Vec<AtmRequest> {
    sockets.handle_timeout(now);
    with_room(sockets, now)
}

#[test]
fn checksum_of_the_pattern() {
    assert_eq!(crc32(0, b"123456789"), 0xcbf4_3926);
    assert_eq!(crc32(crc32(0, b"1234"), b"56789"), 0xcbf4_3926);
    let pdu = pattern(200);
    assert_eq!(
        (pdu[0], pdu[94], pdu[95], pdu.len()),
        (0x20, 0x7e, 0x20, 200)
    );
}

#[test]
fn a_caller_sends_at_its_rate_and_releases() {
    let mut sockets = sockets_of(vec![caller(3)]);
    sockets.handle_input(Input::Start, Instant::ZERO).unwrap();
    assert!(requests(settle(&mut sockets, Instant::ZERO)).is_empty());
    let mut now = sockets.poll_timeout().unwrap();
    assert_eq!(now, Instant::from_secs(1));
    let asked = requests(settle(&mut sockets, now));
    assert!(matches!(asked[..], [AtmRequest::Connect { called, .. }] if called == PEER));
    let conn = ConnId(0);
    now += Duration::from_millis(2);
    let up = connected(conn);
    sockets.handle_input(up, now).unwrap();
    let mut sent = Vec::new();
    let mut at = now;
    loop {
        for request in fire(&mut sockets, at) {
            sent.push((at.since(now).as_millis(), request));
        }
        let Some(next) = sockets.poll_timeout() else {
            break;
        };
        at = next;
    }
    let times: Vec<_> = sent.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [0, 10, 20, 520]);
    let sdu = pattern(100);
    assert_eq!(sent[2].1, AtmRequest::Send { conn, sdu });
    assert_eq!(sent[3].1, refusal(conn, Cause::NORMAL));
    let call = sockets.calls().next().unwrap();
    assert_eq!((call.socket.sent.pdus, call.socket.sent.octets), (3, 300));
    assert_eq!(call.socket.sent.crc32, crc32(0, &pattern(100).repeat(3)));
    assert_eq!(call.own.setup, Some(Duration::from_millis(2)));
    assert_eq!(
        (call.socket.cause, call.socket.by_us),
        (Some(Cause::NORMAL), true)
    );
}

#[test]
fn a_refused_call_keeps_its_cause() {
    let mut sockets = sockets_of(vec![caller(3)]);
    sockets.handle_input(Input::Start, Instant::ZERO).unwrap();
    let now = Instant::from_secs(1);
    settle(&mut sockets, now);
    let (conn, cause) = (ConnId(0), Cause::REJECTED);
    let released = atm(AtmEvent::Released { conn, cause });
    sockets.handle_input(released, now).unwrap();
    let outputs = settle(&mut sockets, now);
    assert!(
        matches!(&outputs[..], [.., Output::Trace(trace)] if trace.name == "socket.refused"),
        "{outputs:?}"
    );
    let call = sockets.calls().next().unwrap();
    assert_eq!(
        (call.socket.state, call.socket.cause),
        (State::Ended, Some(cause))
    );
    assert_eq!((call.socket.vc, call.socket.by_us), (None, false));
    assert_eq!(sockets.poll_timeout(), None);
}

#[test]
fn a_caller_that_calls_again() {
    let mut program = caller(1);
    if let Role::Call { every, .. } = &mut program.role {
        *every = Some(Duration::from_secs(2));
    }
    let mut sockets = sockets_of(vec![program]);
    sockets.handle_input(Input::Start, Instant::ZERO).unwrap();
    for n in 0..3 {
        let now = Instant::from_secs(1 + 3 * u64::from(n));
        assert_eq!(sockets.poll_timeout().unwrap(), now);
        let asked = requests(settle(&mut sockets, now));
        let [AtmRequest::Connect { conn, .. }] = asked[..] else {
            panic!("{asked:?}");
        };
        assert_eq!(conn, ConnId(n));
        let cause = Cause::INCOMPATIBLE;
        let released = atm(AtmEvent::Released { conn, cause });
        let later = now + Duration::from_secs(1);
        sockets.handle_input(released, later).unwrap();
        settle(&mut sockets, later);
    }
    assert_eq!(sockets.calls().count(), 3);
}

#[test]
fn an_echo_and_a_busy_listener() {
    let mut sockets = sockets_of(vec![listener(Answer::Echo, 1)]);
    let now = Instant::ZERO;
    sockets.handle_input(Input::Start, now).unwrap();
    sockets.handle_input(incoming(CONN), now).unwrap();
    let asked = requests(settle(&mut sockets, now));
    assert!(matches!(asked[0], AtmRequest::Listen { max_sdu: 1000, .. }));
    assert_eq!(
        asked[1],
        AtmRequest::Accept {
            conn: CONN,
            terms: None
        }
    );
    let second = ConnId(ConnId::INCOMING + 1);
    sockets.handle_input(incoming(second), now).unwrap();
    let asked = requests(settle(&mut sockets, now));
    assert_eq!(asked, [refusal(second, Cause::BUSY)]);
    let up = connected(CONN);
    sockets.handle_input(up, now).unwrap();
    for size in [10, 1001] {
        let sdu = pattern(size);
        let received = received(&sdu);
        sockets.handle_input(received, now).unwrap();
    }
    // A PDU that is longer than agreed is not sent back.
    let (conn, sdu) = (CONN, pattern(10));
    let asked = with_room(&mut sockets, now);
    assert_eq!(asked, [AtmRequest::Send { conn, sdu }]);
    let cause = Cause::NORMAL;
    let released = atm(AtmEvent::Released { conn, cause });
    sockets.handle_input(released, now).unwrap();
    settle(&mut sockets, now);
    let calls: Vec<_> = sockets.calls().collect();
    assert_eq!(calls[0].socket.cause, Some(Cause::BUSY));
    assert_eq!(
        (calls[1].socket.received.pdus, calls[1].socket.sent.pdus),
        (2, 1)
    );
    // The first call has ended, so another one is accepted.
    sockets.handle_input(incoming(second), now).unwrap();
    let asked = requests(settle(&mut sockets, now));
    assert_eq!(
        asked,
        [AtmRequest::Accept {
            conn: second,
            terms: None
        }]
    );
}

#[test]
fn a_permanent_connection_is_read_and_written() {
    let at = Vc { vpi: 0, vci: 100 };
    let Role::Call { qos, send, .. } = caller(2).role else {
        panic!("a caller");
    };
    let program = Program {
        role: Role::Permanent {
            vc: at,
            qos,
            answer: Some(Answer::Echo),
            send,
        },
        ..caller(2)
    };
    let mut sockets = sockets_of(vec![program.clone(), program]);
    sockets.handle_input(Input::Start, Instant::ZERO).unwrap();
    let asked = requests(settle(&mut sockets, Instant::ZERO));
    let open = |n| AtmRequest::OpenPermanent {
        conn: ConnId(n),
        vc: at,
        qos,
    };
    assert_eq!(asked, [open(0), open(1)]);
    // The second program finds the label in use.
    let cause = Cause::VC_UNAVAILABLE;
    let conn = ConnId(1);
    let released = atm(AtmEvent::Released { conn, cause });
    sockets.handle_input(released, Instant::ZERO).unwrap();
    let conn = ConnId(0);
    let connected = atm(AtmEvent::Connected {
        conn,
        vc: at,
        qos: Qos::ubr(1000),
    });
    sockets.handle_input(connected, Instant::ZERO).unwrap();
    let received = atm(AtmEvent::Received { conn, sdu: b"ping" });
    sockets.handle_input(received, Instant::ZERO).unwrap();
    let asked = with_room(&mut sockets, Instant::ZERO);
    let sdu = b"ping".to_vec();
    assert_eq!(asked, [AtmRequest::Send { conn, sdu }]);
    // The program writes two PDUs of its own from the first second on; the connection stays open after them.
    let mut sent = Vec::new();
    while let Some(now) = sockets.poll_timeout() {
        sent.push(now);
        let asked = fire(&mut sockets, now);
        let sdu = pattern(100);
        assert_eq!(asked, [AtmRequest::Send { conn, sdu }]);
    }
    assert_eq!(sent, [1000, 1010].map(Instant::from_millis));
    let calls: Vec<_> = sockets.calls().collect();
    assert_eq!(
        (calls[0].socket.state, calls[0].socket.cause),
        (State::Ended, Some(cause))
    );
    assert_eq!(
        (calls[1].socket.state, calls[1].socket.vc),
        (State::Connected, Some(at))
    );
    assert_eq!(
        (calls[1].socket.sent.pdus, calls[1].socket.received.pdus),
        (3, 1)
    );
}

/// A caller of 5 PDUs that are 10 ms apart, open since the first second.
fn open_caller() -> (SocketLayer, ConnId, Instant) {
    open(caller(5))
}

fn open(program: Program) -> (SocketLayer, ConnId, Instant) {
    let mut sockets = sockets_of(vec![program]);
    sockets.handle_input(Input::Start, Instant::ZERO).unwrap();
    let now = Instant::from_secs(1);
    settle(&mut sockets, now);
    let conn = ConnId(0);
    let up = connected(conn);
    sockets.handle_input(up, now).unwrap();
    (sockets, conn, now)
}

/// The program writes a PDU for which the adapter has no room.
fn adapter_is_full(sockets: &mut SocketLayer, conn: ConnId, now: Instant) {
    let asked = requests(settle(sockets, now));
    let [AtmRequest::Send { sdu, .. }] = &asked[..] else {
        panic!("{asked:?}");
    };
    let written = Written::Full(sdu.clone().into());
    let answer = Input::Adapter(FromAdapter::Written { conn, written });
    sockets.handle_input(answer, now).unwrap();
    assert_eq!(
        sockets.poll_timeout(),
        None,
        "it waits for the adapter alone"
    );
}

#[test]
fn a_write_waits_for_room_and_the_program_catches_up() {
    let (mut sockets, conn, now) = open_caller();
    adapter_is_full(&mut sockets, conn, now);
    let row = sockets.calls().next().unwrap();
    assert_eq!(
        (row.own.offered, row.waiting(), row.socket.sent.pdus),
        (1, 1, 0)
    );
    // The adapter has room 25 ms later. The PDUs of 0, 10 and 20 ms leave then and are late; the others leave at their
    // time.
    let now = now + Duration::from_millis(25);
    sockets
        .handle_input(Input::Adapter(FromAdapter::Room { conn }), now)
        .unwrap();
    assert_eq!(with_room(&mut sockets, now).len(), 3);
    let next = sockets.poll_timeout().unwrap();
    assert_eq!(next, Instant::from_millis(1030));
    assert_eq!(fire(&mut sockets, next).len(), 1);
    let row = sockets.calls().next().unwrap();
    assert_eq!(
        (row.own.offered, row.own.late, row.socket.sent.pdus),
        (4, 3, 4)
    );
    assert_eq!(row.socket.sent.crc32, crc32(0, &pattern(100).repeat(4)));
}

#[test]
fn from_memory_to_memory_each_pdu_follows_the_one_before_and_none_is_late() {
    let mut program = caller(150);
    if let Role::Call { send, .. } = &mut program.role {
        send.pace = Pace::Line;
    }
    let (mut sockets, conn, start) = open(program);
    // The adapter takes all: after a burst others have their turn.
    assert_eq!(fire(&mut sockets, start).len(), BURST as usize);
    let next = sockets.poll_timeout().expect("it goes on");
    assert_eq!(next, start + PAUSE);
    assert_eq!(fire(&mut sockets, next).len(), BURST as usize);
    // It has no room any more, and has it again a second later.
    let last = next + PAUSE;
    sockets.handle_timeout(last);
    adapter_is_full(&mut sockets, conn, last);
    let later = last + Duration::from_secs(1);
    sockets
        .handle_input(Input::Adapter(FromAdapter::Room { conn }), later)
        .unwrap();
    assert_eq!(
        with_room(&mut sockets, later).len(),
        150 - 2 * BURST as usize
    );
    let row = sockets.calls().next().unwrap();
    assert_eq!(
        (row.own.offered, row.own.late, row.socket.sent.pdus),
        (150, 0, 150)
    );
}

#[test]
fn a_release_gives_up_what_waits_and_names_what_the_adapter_dropped() {
    let (mut sockets, conn, now) = open_caller();
    let first = now + Duration::from_millis(10);
    assert_eq!(fire(&mut sockets, now).len(), 1);
    let asked = requests(settle(&mut sockets, first));
    assert_eq!(asked.len(), 1, "its second PDU waits for an answer");
    let cause = Cause::NORMAL;
    let released = atm(AtmEvent::Released { conn, cause });
    sockets.handle_input(released, first).unwrap();
    let unsent = Input::Adapter(FromAdapter::Unsent {
        vc: VC,
        pdus: 1,
        closed: true,
    });
    sockets.handle_input(unsent, first).unwrap();
    // From now on the label belongs to another connection.
    let unsent = Input::Adapter(FromAdapter::Unsent {
        vc: VC,
        pdus: 7,
        closed: true,
    });
    sockets.handle_input(unsent, first).unwrap();
    let row = sockets.calls().next().unwrap();
    let books = (
        row.own.offered,
        row.socket.sent.pdus,
        row.socket.refused,
        row.waiting(),
    );
    assert_eq!((books, row.socket.unsent), ((2, 1, 1, 0), 1));
    assert_eq!(row.unwritten(), 3, "the program had begun two of five");
}

#[test]
fn an_echo_without_room_keeps_a_bounded_number_of_pdus() {
    let mut sockets = sockets_of(vec![listener(Answer::Echo, 1)]);
    let now = Instant::ZERO;
    sockets.handle_input(Input::Start, now).unwrap();
    sockets.handle_input(incoming(CONN), now).unwrap();
    let up = connected(CONN);
    sockets.handle_input(up, now).unwrap();
    settle(&mut sockets, now);
    let sdu = pattern(1000);
    for _ in 0..1000 {
        let received = received(&sdu);
        sockets.handle_input(received, now).unwrap();
    }
    let kept = (ECHO_OCTETS / 1000) as u64 + 1;
    let row = sockets.calls().next().unwrap();
    assert_eq!(
        (row.own.offered, row.waiting(), row.socket.refused),
        (1000, kept, 1000 - kept)
    );
    let mut now = now;
    let mut sent = with_room(&mut sockets, now).len();
    while let Some(next) = sockets.poll_timeout() {
        assert!(next > now, "it stands still at {now}");
        now = next;
        let step = fire(&mut sockets, now).len();
        assert!(step <= BURST as usize);
        sent += step;
    }
    assert_eq!(sent as u64, kept);
    let row = sockets.calls().next().unwrap();
    assert_eq!(
        (row.socket.sent.pdus, row.waiting(), row.own.late),
        (kept, 0, 0)
    );
}

/// Ends a call that was not answered; returns the time of the next call.
fn fails(sockets: &mut SocketLayer, conn: ConnId, cause: Cause, now: Instant) -> Option<Instant> {
    let released = atm(AtmEvent::Released { conn, cause });
    sockets.handle_input(released, now).unwrap();
    settle(sockets, now);
    sockets.poll_timeout()
}

#[test]
fn a_call_that_fails_for_a_while_is_made_again_soon_and_then_less_often() {
    let mut sockets = sockets_of(vec![caller(3)]);
    sockets.handle_input(Input::Start, Instant::ZERO).unwrap();
    let mut now = sockets.poll_timeout().unwrap();
    for (conn, window) in (0..).zip([20, 40, 80, 160, 320, 640, 1280, 2560, 5000, 5000]) {
        let asked = fire(&mut sockets, now);
        assert!(
            matches!(asked[..], [AtmRequest::Connect { .. }]),
            "{asked:?}"
        );
        let next = fails(&mut sockets, ConnId(conn), Cause::NETWORK_OUT_OF_ORDER, now);
        let next = next.expect("another call");
        let waits = next.since(now).as_millis();
        assert!(
            (window / 2..=window).contains(&waits),
            "{waits} of {window} ms"
        );
        // Only the record of the last attempt stays.
        assert_eq!(sockets.calls().count(), 1);
        now = next;
    }
    fire(&mut sockets, now);
    let vc = VC;
    let connected = atm(AtmEvent::Connected {
        conn: ConnId(10),
        vc,
        qos: Qos::ubr(1000),
    });
    sockets.handle_input(connected, now).unwrap();
    let states: Vec<_> = sockets.calls().map(|call| call.socket.state).collect();
    assert_eq!(states, [State::Ended, State::Connected]);
    // The call was answered, so its end is final.
    assert_eq!(with_room(&mut sockets, now), []);
    let released = AtmEvent::Released {
        conn: ConnId(10),
        cause: Cause::NETWORK_OUT_OF_ORDER,
    };
    sockets.handle_input(atm(released), now).unwrap();
    settle(&mut sockets, now);
    assert_eq!(sockets.poll_timeout(), None);
}

#[test]
fn a_refusal_that_will_not_pass_ends_a_program_that_calls_once() {
    let mut sockets = sockets_of(vec![caller(3)]);
    sockets.handle_input(Input::Start, Instant::ZERO).unwrap();
    let now = sockets.poll_timeout().unwrap();
    fire(&mut sockets, now);
    assert_eq!(fails(&mut sockets, ConnId(0), Cause::REJECTED, now), None);
    // A busy listener is not called again, either.
    let mut sockets = sockets_of(vec![caller(3)]);
    sockets.handle_input(Input::Start, Instant::ZERO).unwrap();
    fire(&mut sockets, now);
    assert_eq!(fails(&mut sockets, ConnId(0), Cause::BUSY, now), None);
}

/// A receiver of ATP compares each message with what programs send.
#[test]
fn a_message_with_other_octets_is_counted() {
    let program = Program {
        atp: Some(Transfer {
            octets: 0,
            message: 1,
            params: aerostat_proto::atp::Params::DEFAULT,
            series: false,
        }),
        ..listener(Answer::Sink, 1)
    };
    let mut sockets = sockets_of(vec![program]);
    let now = Instant::ZERO;
    sockets.handle_input(Input::Start, now).unwrap();
    sockets.handle_input(incoming(CONN), now).unwrap();
    let up = connected(CONN);
    sockets.handle_input(up, now).unwrap();
    for (seq, octets, wrong) in [
        (0, &b" !\"#"[..], 0),
        (1, b" !\"\x23$", 0),
        (2, b" !#", 1),
        (3, b"hello", 2),
    ] {
        let seq = aerostat_wire::atp::Seq30::new(seq);
        let pdu = aerostat_wire::atp::Pdu::Data {
            seq,
            last: true,
            octets,
        };
        let sdu = pdu.encode();
        let received = received(&sdu);
        sockets.handle_input(received, now).unwrap();
        let figures = sockets
            .calls()
            .next()
            .and_then(|record| record.own.atp())
            .expect("ATP");
        assert_eq!(
            (figures.wrong, figures.received.messages),
            (wrong, u64::from(seq.get()) + 1)
        );
    }
}
