//! Loss, disorder, dead lines, crashes and restarts, in virtual time.

use super::*;

/// Messages of `end`, of many lengths.
fn messages(end: usize) -> Vec<Vec<u8>> {
    let lengths = [0, 1, 9176, 300_000, 17, 9177, 1_000_000, 40_000];
    let seed = |n: usize| (end * 100 + n) as u8;
    (lengths.into_iter().enumerate())
        .map(|(n, len)| message(len, seed(n)))
        .collect()
}

fn send_all(pair: &mut Pair) {
    for end in 0..2 {
        for message in messages(end) {
            pair.send(end, message);
        }
    }
}

fn assert_all_came(pair: &Pair) {
    for end in 0..2 {
        assert!(pair.got[end] == messages(1 - end), "messages to {end}");
        let snapshot = pair.ends[end].snapshot();
        assert_eq!((snapshot.kept, snapshot.outstanding), (0, 0));
    }
}

/// A call that is set up again after a crash: two new machines, and nothing under way.
fn set_up_again(pair: &mut Pair, params: Params) {
    pair.ends = [Atp::new(params), Atp::new(params)];
    pair.ways = Default::default();
}

#[test]
fn loss_disorder_and_lost_answers_both_ways() {
    for profile in BOTH {
        let mut pair = Pair::new(params(profile));
        pair.jitter = ms(2);
        send_all(&mut pair);
        let mut state = 7_u32;
        pair.run_all(|_, _, _| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 16 < 3277
        });
        assert_all_came(&pair);
        for end in &pair.ends {
            let counters = end.counters();
            // Loss of 5 %, and a packet that was overtaken was asked for without need.
            assert!(counters.naks_sent > 5 && counters.packets_repeated > 5);
            assert!(counters.duplicates > 0, "{profile:?} {counters:?}");
            assert_eq!(counters.packets_received, 153, "{profile:?}");
        }
    }
}

/// A line that is dead for three seconds: both ends go on by themselves, in half a second or when the doubled timer
/// expires.
#[test]
fn a_line_that_comes_back_finds_both_ends_alive() {
    for profile in BOTH {
        let mut pair = Pair::new(params(profile));
        send_all(&mut pair);
        pair.run(Instant::from_millis(60), |_, _, _| false);
        assert!(pair.got[1].len() < 8);
        pair.ways = Default::default();
        pair.run(Instant::from_millis(3100), |_, _, _| true);
        pair.run_all(|_, _, _| false);
        assert_all_came(&pair);
        let again = match profile {
            Profile::Report => Instant::from_millis(3100 + 500 + 300),
            Profile::Adaptive => Instant::from_millis(2 * 3100 + 300),
        };
        assert!(pair.now < again, "{profile:?} {}", pair.now);
    }
}

/// The receiver's process dies in the middle of a message, and the call is released with it. The sender is told, no
/// part of the message was given out, and over a new call everything comes.
#[test]
fn a_crash_that_releases_the_call_is_told_at_once() {
    for profile in BOTH {
        let params = params(profile);
        let mut pair = Pair::new(params);
        send_all(&mut pair);
        pair.run(Instant::from_millis(60), |_, _, _| false);
        let before = pair.got[1].clone();
        assert!(!before.is_empty() && before.len() < 8);
        assert!(before[..] == messages(0)[..before.len()]);
        let released = pair.ends[0].handle_input(Input::Released, pair.now);
        assert_eq!(released, Ok(()));
        let news: Vec<Output> = settle(&mut pair.ends[0], pair.now);
        assert_eq!(
            news,
            [Output::Event(Event::Failed(Failure::Released))],
            "{profile:?}"
        );
        assert_eq!(pair.ends[0].poll_timeout(), None);
        set_up_again(&mut pair, params);
        pair.got = Default::default();
        send_all(&mut pair);
        pair.run_all(|_, _, _| false);
        assert_all_came(&pair);
    }
}

/// A peer that vanishes without a release, as at a permanent connection: timers end the connection. Both ends begin
/// anew after that.
#[test]
fn a_crash_without_a_release_ends_the_connection_by_timers() {
    for (profile, least, most) in [
        (Profile::Report, 5, 6),
        // From 10 ms on, doubled ten times.
        (Profile::Adaptive, 20, 60),
    ] {
        let params = params(profile);
        let mut pair = Pair::new(params);
        pair.send(0, message(3_000_000, 1));
        pair.run(Instant::from_millis(100), |_, _, _| false);
        pair.ways = Default::default();
        pair.ends[1] = Atp::new(params);
        pair.run_all(|_, _, _| true);
        let failed = Event::Failed(Failure::Retransmissions(10));
        assert_eq!(pair.events[0], [failed]);
        let after = pair.now - Instant::from_millis(100);
        assert!(
            (least..most).contains(&after.as_secs()),
            "{profile:?} {after:?}"
        );
        assert_eq!(pair.got[1].len(), 0);
        set_up_again(&mut pair, params);
        send_all(&mut pair);
        pair.run_all(|_, _, _| false);
        assert_all_came(&pair);
    }
}

/// A receiver whose user sleeps: the peer's packets are dropped at the limit, and nothing is lost once it reads.
#[test]
fn a_user_who_reads_late_gets_everything() {
    for profile in BOTH {
        let mut pair = Pair::new(Params {
            receive_limit: Octets(64 << 10),
            ..params(profile)
        });
        pair.reads = false;
        for seed in 0..40 {
            pair.send(0, message(9000, seed));
        }
        pair.run(Instant::from_millis(1900), |_, _, _| false);
        let end = &mut pair.ends[1];
        assert!(end.counters().no_room > 0);
        assert_eq!(end.snapshot().unread_messages, 7);
        pair.got[1] = std::iter::from_fn(|| pair.ends[1].take()).collect();
        pair.reads = true;
        pair.run_all(|_, _, _| false);
        let all: Vec<_> = (0..40).map(|seed| message(9000, seed)).collect();
        assert!(pair.got[1] == all, "{profile:?}");
        assert_eq!(pair.events[0], [Event::Drained]);
    }
}
