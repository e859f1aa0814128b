use super::*;
use aerostat_proto::machine::settle;

const OWN: AtmAddress = AtmAddress([0x47; 20]);
const PEER: AtmAddress = AtmAddress([0x39; 20]);
const CONN: ConnId = ConnId(ConnId::INCOMING);
const VC: Vc = Vc { vpi: 0, vci: 32 };

fn listener(answer: Answer, calls: usize) -> Program {
    Program {
        name: "l".into(),
        local: OWN,
        sap: Sap::LLC,
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
        role: Role::Call {
            to: PEER,
            qos: Qos::ubr(1000),
            send: Sending {
                start: Instant::from_secs(1),
                pdus,
                size: 100,
                gap: Duration::from_millis(10),
            },
            hold: Duration::from_millis(500),
            every: None,
        },
    }
}
fn incoming(conn: ConnId) -> Input<'static> {
    Input::Atm(AtmEvent::Incoming {
        conn,
        calling: Some(PEER),
        called: OWN,
        sap: Sap::LLC,
        qos: Qos::ubr(1000),
        multipoint: false,
    })
}
fn requests(outputs: Vec<Output>) -> Vec<AtmRequest> {
    let asked = outputs.into_iter().filter_map(|output| match output {
        Output::Atm(request) => Some(request),
        Output::Trace(_) => None,
    });
    asked.collect()
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
    let mut sockets = Sockets::new(vec![caller(3)]);
    sockets.handle_input(Input::Start, Instant::ZERO).unwrap();
    assert!(settle(&mut sockets, Instant::ZERO).is_empty());
    let mut now = sockets.poll_timeout().unwrap();
    assert_eq!(now, Instant::from_secs(1));
    let asked = requests(settle(&mut sockets, now));
    assert!(matches!(asked[..], [AtmRequest::Connect { called, .. }] if called == PEER));
    let conn = ConnId(0);
    now += Duration::from_millis(2);
    let connected = Input::Atm(AtmEvent::Connected { conn, vc: VC });
    sockets.handle_input(connected, now).unwrap();
    let mut sent = Vec::new();
    let mut at = now;
    loop {
        for request in requests(settle(&mut sockets, at)) {
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
    assert_eq!((call.sent.pdus, call.sent.octets), (3, 300));
    assert_eq!(call.sent.crc32, crc32(0, &pattern(100).repeat(3)));
    assert_eq!(call.setup, Some(Duration::from_millis(2)));
    assert_eq!((call.cause, call.by_us), (Some(Cause::NORMAL), true));
}

#[test]
fn a_refused_call_keeps_its_cause() {
    let mut sockets = Sockets::new(vec![caller(3)]);
    sockets.handle_input(Input::Start, Instant::ZERO).unwrap();
    let now = Instant::from_secs(1);
    settle(&mut sockets, now);
    let (conn, cause) = (ConnId(0), Cause::INCOMPATIBLE);
    let released = Input::Atm(AtmEvent::Released { conn, cause });
    sockets.handle_input(released, now).unwrap();
    let outputs = settle(&mut sockets, now);
    assert!(
        matches!(&outputs[..], [Output::Trace(trace)] if trace.name == "socket.refused"),
        "{outputs:?}"
    );
    let call = sockets.calls().next().unwrap();
    assert_eq!((call.state, call.cause), (State::Ended, Some(cause)));
    assert_eq!((call.vc, call.by_us), (None, false));
    assert_eq!(sockets.poll_timeout(), None);
}

#[test]
fn a_caller_that_calls_again() {
    let mut program = caller(1);
    if let Role::Call { every, .. } = &mut program.role {
        *every = Some(Duration::from_secs(2));
    }
    let mut sockets = Sockets::new(vec![program]);
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
        let released = Input::Atm(AtmEvent::Released { conn, cause });
        let later = now + Duration::from_secs(1);
        sockets.handle_input(released, later).unwrap();
        settle(&mut sockets, later);
    }
    assert_eq!(sockets.calls().count(), 3);
}

#[test]
fn an_echo_and_a_busy_listener() {
    let mut sockets = Sockets::new(vec![listener(Answer::Echo, 1)]);
    let now = Instant::ZERO;
    sockets.handle_input(Input::Start, now).unwrap();
    sockets.handle_input(incoming(CONN), now).unwrap();
    let asked = requests(settle(&mut sockets, now));
    assert!(matches!(asked[0], AtmRequest::Listen { max_sdu: 1000, .. }));
    assert_eq!(asked[1], AtmRequest::Accept { conn: CONN });
    let second = ConnId(ConnId::INCOMING + 1);
    sockets.handle_input(incoming(second), now).unwrap();
    let asked = requests(settle(&mut sockets, now));
    assert_eq!(asked, [refusal(second, Cause::BUSY)]);
    let connected = Input::Atm(AtmEvent::Connected { conn: CONN, vc: VC });
    sockets.handle_input(connected, now).unwrap();
    for size in [10, 1001] {
        let sdu = pattern(size);
        let received = Input::Atm(AtmEvent::Received {
            conn: CONN,
            sdu: &sdu,
        });
        sockets.handle_input(received, now).unwrap();
    }
    // What is longer than agreed is not sent back.
    let (conn, sdu) = (CONN, pattern(10));
    let asked = requests(settle(&mut sockets, now));
    assert_eq!(asked, [AtmRequest::Send { conn, sdu }]);
    let cause = Cause::NORMAL;
    let released = Input::Atm(AtmEvent::Released { conn, cause });
    sockets.handle_input(released, now).unwrap();
    settle(&mut sockets, now);
    let calls: Vec<_> = sockets.calls().collect();
    assert_eq!(calls[0].cause, Some(Cause::BUSY));
    assert_eq!((calls[1].received.pdus, calls[1].sent.pdus), (2, 1));
    // The place is free again.
    sockets.handle_input(incoming(second), now).unwrap();
    let asked = requests(settle(&mut sockets, now));
    assert_eq!(asked, [AtmRequest::Accept { conn: second }]);
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
            answer: Answer::Echo,
            send,
        },
        ..caller(2)
    };
    let mut sockets = Sockets::new(vec![program.clone(), program]);
    sockets.handle_input(Input::Start, Instant::ZERO).unwrap();
    let asked = requests(settle(&mut sockets, Instant::ZERO));
    let open = |n| AtmRequest::OpenPermanent {
        conn: ConnId(n),
        vc: at,
        qos,
    };
    assert_eq!(asked, [open(0), open(1)]);
    // The second finds the label in use.
    let cause = Cause::VC_UNAVAILABLE;
    let conn = ConnId(1);
    let released = Input::Atm(AtmEvent::Released { conn, cause });
    sockets.handle_input(released, Instant::ZERO).unwrap();
    let conn = ConnId(0);
    let connected = Input::Atm(AtmEvent::Connected { conn, vc: at });
    sockets.handle_input(connected, Instant::ZERO).unwrap();
    let received = Input::Atm(AtmEvent::Received { conn, sdu: b"ping" });
    sockets.handle_input(received, Instant::ZERO).unwrap();
    let asked = requests(settle(&mut sockets, Instant::ZERO));
    let sdu = b"ping".to_vec();
    assert_eq!(asked, [AtmRequest::Send { conn, sdu }]);
    // Two PDUs of its own from the first second on; nothing ends after them.
    let mut sent = Vec::new();
    while let Some(now) = sockets.poll_timeout() {
        sent.push(now);
        let asked = requests(settle(&mut sockets, now));
        let sdu = pattern(100);
        assert_eq!(asked, [AtmRequest::Send { conn, sdu }]);
    }
    assert_eq!(sent, [1000, 1010].map(Instant::from_millis));
    let calls: Vec<_> = sockets.calls().collect();
    assert_eq!(
        (calls[0].state, calls[0].cause),
        (State::Ended, Some(cause))
    );
    assert_eq!((calls[1].state, calls[1].vc), (State::Open, Some(at)));
    assert_eq!((calls[1].sent.pdus, calls[1].received.pdus), (3, 1));
}
