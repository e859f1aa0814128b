//! The heartbeat of a process over the borders of its connection: before its greeting, and after a lost connection.

use super::super::ROLES;
use super::*;
use crate::seqpacket::Door;
use mio::Poll;
use std::path::Path;

/// A seat whose process (this one) was started at 1 s, with both ends of a connection for it.
fn started(test: &str, poll: &Poll) -> (Seat, Frames, Frames) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs/two-subnets.atm.yml");
    let lab = aerostat_lab::read(&file, &[]).expect("a lab").lab;
    let urku = lab.find("urku").expect("it is in the lab");
    let mut seat = Seat::new(0, urku, "urku".to_owned(), &ROLES[0]);
    seat.plan = Plan::Watch;
    let at = Instant::from_secs(1);
    seat.started = Some(Started {
        pid: std::process::id(),
        at,
        pidfd: None,
        ended: None,
        dismissed: None,
        beat: Beat::starting(at),
    });
    let name = format!("aerostat-seat-{}-{test}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let door = Door::open(&path).unwrap();
    let daemon = Frames::connect(&path).unwrap();
    let lab = door.accept().unwrap().expect("it has connected");
    std::fs::remove_file(&path).unwrap();
    let fd = lab.as_fd().as_raw_fd();
    let readable = Interest::READABLE;
    (poll
        .registry()
        .register(&mut SourceFd(&fd), Token(0), readable))
    .unwrap();
    (seat, lab, daemon)
}

/// The words of the first trace of a hung daemon, from looks at the seat each 50 ms.
fn hangs(seat: &mut Seat, mut now: Instant) -> String {
    for _ in 0..1000 {
        now += Duration::from_millis(50);
        let mut told = Vec::new();
        if seat.is_silent(now) {
            seat.judge(None, now, &mut told);
        }
        for event in told {
            match event {
                Event::Trace(_, trace) if trace.name == "daemon.hung" => {
                    return trace.text.to_string();
                }
                _ => {}
            }
        }
    }
    panic!("it was never judged")
}

#[test]
fn a_process_without_a_connection_loses_no_seat_and_its_silence_begins_with_the_loss() {
    let poll = Poll::new().unwrap();
    let (mut seat, lab, daemon) = started("silence", &poll);
    let hour = Instant::from_secs(3600);
    let mut told = Vec::new();
    let place = (poll.registry(), Token(0));
    seat.take((lab, std::process::id()), place, hour, &mut told);
    drop(daemon);
    assert!(!seat.hear((None, &mut [0; 64]), hour, &mut told));
    assert!(seat.conn.is_none(), "the connection is lost");
    assert!(seat.started.is_some(), "the process lives on");
    assert_eq!(
        hangs(&mut seat, hour),
        "mpcd hangs: silent, no connection for 10.0 s; it is killed"
    );
}

#[test]
fn a_process_that_never_greets_is_killed_and_a_connected_process_loses_its_seat() {
    let poll = Poll::new().unwrap();
    let (mut seat, lab, _daemon) = started("words", &poll);
    let start = Instant::from_secs(1);
    assert_eq!(
        hangs(&mut seat, start),
        "mpcd hangs: silent, no connection for 10.0 s; it is killed"
    );
    let now = Instant::from_secs(20);
    let place = (poll.registry(), Token(0));
    seat.take((lab, std::process::id()), place, now, &mut Vec::new());
    assert!(seat.ask(now));
    assert_eq!(
        hangs(&mut seat, now),
        "mpcd hangs: silent, no answer for 10.0 s; it loses its seat"
    );
    assert_eq!(seat.row(now).hung, 2, "both are counted");
}

/// A seat whose process has this exit code when the lab looks for its end.
fn ended(test: &str, poll: &Poll, code: i32) -> Seat {
    let (mut seat, ..) = started(test, poll);
    seat.started.as_mut().expect("a process").ended = Some(Ended {
        status: ExitStatus::from_raw(code << 8),
        words: String::new(),
    });
    seat
}

#[test]
fn a_process_that_the_lab_sent_away_is_started_again_whatever_its_exit_code() {
    let poll = Poll::new().unwrap();
    let (now, mut told) = (Instant::from_secs(2), Vec::new());
    let mut seat = ended("sent-away", &poll, 0);
    seat.lose(None, now, &mut told);
    seat.look_after(None, now, &mut told);
    assert_eq!(seat.plan, Plan::Start(now + FIRST_WAIT));
    // A process that exits in good order by itself stays away.
    let mut seat = ended("good-order", &poll, 0);
    seat.look_after(None, now, &mut told);
    assert_eq!(seat.plan, Plan::Leave);
}

#[test]
fn an_ordered_crash_is_no_failure_and_an_order_to_start_again_holds_before_its_end() {
    let poll = Poll::new().unwrap();
    let (now, mut told) = (Instant::from_secs(2), Vec::new());
    for code in [0, 1] {
        let mut seat = ended(&format!("ordered-{code}"), &poll, code);
        seat.wait = LONGEST_WAIT;
        seat.crash(None, now, &mut told);
        assert_eq!(seat.plan, Plan::Leave);
        // The order to start it again, while the process still ends.
        seat.plan = Plan::Watch;
        seat.look_after(None, now, &mut told);
        assert_eq!((seat.plan, seat.wait), (Plan::Start(now), FIRST_WAIT));
    }
    let mut seat = ended("ordered", &poll, 0);
    seat.crash(None, now, &mut told);
    seat.look_after(None, now, &mut told);
    assert_eq!(seat.plan, Plan::Leave, "without an order it stays away");
}
