//! Everything arrives once and in order, over links that lose, double and delay, with every profile.

use super::pair::{Fate, Link, Pair, chance, config, is_bare, lose};
use crate::tcp::params::{AckDelay, Nagle, Recovery};
use crate::tcp::{Event, Failure, Input, Output, Params, Profile, State, Tcp, reset_for};
use crate::{Duration, Instant, Machine};
use aerostat_wire::tcp::{Flags, Segment};
use proptest::prelude::*;

const MS: fn(u64) -> Duration = Duration::from_millis;

fn links(delay: u64) -> [Link; 2] {
    [0, 1].map(|_| Link::new(Some(10e6), MS(delay)))
}

fn far() -> Instant {
    Instant::from_secs(100_000)
}

#[test]
fn every_profile_talks_with_every_other() {
    for one in Profile::ALL {
        for other in Profile::ALL {
            let params = [one.params(), other.params()];
            let mut pair = Pair::new(params, [200_000, 100_000], links(5));
            pair.finish(far());
            for end in 0..2 {
                assert!(pair.programs[end].has(Event::Connected), "{one} {other}");
                assert!(pair.programs[end].has(Event::PeerClosed), "{one} {other}");
                assert!(pair.programs[end].has(Event::Closed), "{one} {other}");
                assert_eq!(
                    pair.ends[end].counters().timeouts,
                    0,
                    "{one} {other} end {end}"
                );
                assert_eq!(
                    pair.ends[end].counters().retransmissions,
                    0,
                    "{one} {other} end {end}"
                );
            }
        }
    }
}

#[test]
fn a_bad_link_delays_every_profile_and_stops_none() {
    for (profile, seed) in Profile::ALL.into_iter().zip(1..) {
        for round in 0..4 {
            let mut both = links(8);
            both[0].judge = chance(seed * 100 + round, 50, 20, 50);
            both[1].judge = chance(seed * 200 + round, 50, 20, 50);
            let params = [profile.params(), profile.params()];
            let mut pair = Pair::new(params, [60_000, 30_000], both);
            pair.finish(far());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Any parameters, any link: all octets, and an end.
    #[test]
    fn any_two_ends_over_any_link(
        seed in any::<u64>(),
        profiles in (0..10_usize, 0..10_usize),
        (lost, twice, late) in (0..150_u64, 0..100_u64, 0..150_u64),
        octets in (0..40_000_u64, 0..40_000_u64),
        (sack, stamps, scaling) in any::<(bool, bool, bool)>(),
        buffers in (1_usize..100_000, 1_usize..100_000),
        writes in 1_usize..5000,
        reads in (1_usize..5000, 0_u64..20_000),
        delay in 0_u64..100,
    ) {
        let mut params = [Profile::ALL[profiles.0].params(), Profile::ALL[profiles.1].params()];
        params[0].sack = sack;
        params[0].timestamps = stamps;
        params[0].window_scaling = scaling;
        params[0].receive.buffer = buffers.0;
        params[1].send.buffer = buffers.1;
        let mut both = links(delay);
        both[0].judge = chance(seed, lost, twice, late);
        both[1].judge = chance(!seed, lost, twice, late);
        let (few, many) = (octets.0 / (1 + 2000 / writes as u64), octets.1 / 4);
        let mut pair = Pair::new(params, [few, many], both);
        pair.programs[0].write_size = writes;
        pair.programs[1].read_pace = Some((reads.0, Duration::from_micros(reads.1)));
        // A connection may fail under such losses: a host gives up after some timers. It says so.
        while pair.step(far()) {}
        let failed = (0..2).any(|end| {
            pair.programs[end].events.iter().any(|(_, event)| matches!(event, Event::Failed(_)))
        });
        if !failed {
            prop_assert_eq!(pair.programs[1].read, few);
            prop_assert_eq!(pair.programs[0].read, many);
            prop_assert!(pair.programs.iter().all(|program| program.has(Event::Closed)));
        }
        prop_assert!(!failed || lost > 60, "a failure with few losses");
        for end in &pair.ends {
            prop_assert!(end.poll_timeout().is_none(), "a closed end has a timer");
        }
    }
}

#[test]
fn both_ends_may_open_at_once() {
    let now = Instant::ZERO;
    let mut ends = [0, 1].map(|end| Tcp::new(config(Profile::Linux.params(), end)));
    for end in &mut ends {
        end.handle_input(Input::Connect, now).expect("connects");
    }
    let mut both: Vec<Vec<Segment>> = Vec::new();
    for _ in 0..6 {
        both = ends.iter_mut().map(|end| segments(end, now)).collect();
        for end in 0..2 {
            for segment in &both[1 - end] {
                feed(&mut ends[end], segment, &[], now);
            }
        }
    }
    assert_eq!(ends.each_ref().map(Tcp::state), [State::Established; 2]);
    assert!(both.iter().all(Vec::is_empty), "no war of acknowledgements");
}

pub(super) fn feed(end: &mut Tcp, segment: &Segment, data: &[u8], now: Instant) {
    let input = Input::Segment {
        segment,
        data,
        marked: false,
    };
    end.handle_input(input, now)
        .expect("segments are never refused");
}

pub(super) fn segments(end: &mut Tcp, _now: Instant) -> Vec<Segment> {
    let all = core::iter::from_fn(|| end.poll_output());
    let segments = all.filter_map(|output| match output {
        Output::Segment { segment, .. } => Some(segment),
        Output::Event(_) => None,
    });
    segments.collect()
}

#[test]
fn a_reset_answers_where_nobody_listens() {
    let now = Instant::ZERO;
    let mut end = Tcp::new(config(Profile::Linux.params(), 0));
    end.handle_input(Input::Connect, now).expect("connects");
    let syn = segments(&mut end, now)[0];
    let reset = reset_for(&syn, 0).expect("a reset");
    assert_eq!(
        (reset.flags, reset.ack),
        (Flags::RST.with(Flags::ACK), syn.seq.wrapping_add(1))
    );
    feed(&mut end, &reset, &[], now);
    assert_eq!(
        end.poll_output(),
        Some(Output::Event(Event::Failed(Failure::Refused)))
    );
    assert_eq!(reset_for(&reset, 0), None);
}

#[test]
fn a_half_closed_connection_carries_the_other_direction() {
    let mut pair = Pair::new([Profile::Linux.params(); 2], [0, 300_000], links(5));
    pair.finish(far());
    let closed = |end: usize, event| {
        let mut events = pair.programs[end].events.iter();
        events.find(|(_, seen)| *seen == event).map(|(at, _)| *at)
    };
    assert!(closed(1, Event::PeerClosed) < closed(0, Event::PeerClosed));
    assert_eq!(pair.programs[0].read, 300_000);
}

#[test]
fn a_window_that_closes_opens_again_by_probes_and_updates() {
    for profile in Profile::ALL {
        let mut both = links(2);
        // The update of the window is lost: only a probe can find out.
        both[1].judge = Box::new(|packet, now| {
            let update = now >= Instant::from_secs(30) && now < Instant::from_millis(30_010);
            if update && is_bare(&packet.segment, packet.data.len()) {
                Fate::Lost
            } else {
                Fate::Passes
            }
        });
        let mut pair = Pair::new([profile.params(); 2], [400_000, 0], both);
        pair.programs[1].reads_from = Instant::from_secs(30);
        pair.finish(far());
        let probes = pair.ends[0].counters().window_probes;
        assert!(probes > 0, "{profile}");
        assert!(
            pair.now < Instant::from_secs(240),
            "{profile}: {}",
            pair.now
        );
    }
}

#[test]
fn a_peer_that_is_gone_ends_the_connection_by_its_timers() {
    for profile in Profile::ALL {
        let mut both = links(2);
        both[0].judge = Box::new(|_, now| {
            if now > Instant::from_millis(100) {
                Fate::Lost
            } else {
                Fate::Passes
            }
        });
        let mut pair = Pair::new([profile.params(); 2], [1 << 20, 0], both);
        pair.run(far());
        assert!(
            pair.programs[0].has(Event::Failed(Failure::TimedOut)),
            "{profile}"
        );
        assert_eq!(pair.ends[0].state(), State::Closed);
    }
}

#[test]
fn keep_alive_finds_a_peer_that_is_gone_and_keeps_one_that_is_not() {
    let mut params = Profile::Linux.params();
    params.timers.keep_alive = Some((MS(10_000), MS(1000), 3));
    for dies in [false, true] {
        let mut both = links(2);
        both[0].judge = Box::new(move |_, now| {
            if dies && now > Instant::from_secs(1) {
                Fate::Lost
            } else {
                Fate::Passes
            }
        });
        let mut pair = Pair::new([params, Profile::Linux.params()], [10, 0], both);
        for program in &mut pair.programs {
            program.closes = false;
        }
        pair.run(Instant::from_secs(60));
        let failed = pair.programs[0].has(Event::Failed(Failure::TimedOut));
        assert_eq!(failed, dies);
        assert_eq!(pair.ends[0].state() == State::Established, !dies);
    }
}

/// Nagle's algorithm holds small writes back until the ACK; Minshall's form lets the first one go behind full segments.
#[test]
fn small_writes_wait_as_nagle_says() {
    let sent = |nagle, delayed| {
        let mut params = Profile::NewReno.params();
        params.send.nagle = nagle;
        params.receive.ack_delay = delayed;
        let mut pair = Pair::new([params; 2], [3000, 0], links(50));
        pair.programs[0].write_size = 100;
        pair.logs = true;
        pair.finish(far());
        pair.log
            .iter()
            .filter(|(_, end, _, data)| *end == 0 && *data > 0)
            .count()
    };
    assert_eq!(sent(Nagle::Off, AckDelay::Never), 30);
    // The first write alone; then two full segments, and the rest, when its ACK comes.
    assert_eq!(sent(Nagle::Rfc896, AckDelay::Never), 3);
    assert_eq!(sent(Nagle::Minshall, AckDelay::Never), 3);
}

/// The counts that the recoveries differ in: a lost segment of a window, then three.
#[test]
fn recoveries_repair_as_their_standards_say() {
    let run = |recovery, sack, losses| {
        let mut params = Profile::NewReno.params();
        params.congestion.recovery = recovery;
        params.sack = sack;
        params.timestamps = false;
        params.receive.ack_every = 1;
        let mut both = [0, 1].map(|_| Link::new(Some(10e6), MS(20)));
        both[0].judge = lose(losses);
        let mut pair = Pair::new([params; 2], [300_000, 0], both);
        pair.finish(far());
        let counters = *pair.ends[0].counters();
        (
            counters.retransmissions,
            counters.timeouts,
            counters.fast_recoveries,
        )
    };
    const ONE: &[u64] = &[30];
    const THREE: &[u64] = &[30, 32, 34];
    assert_eq!(run(Recovery::Reno, false, ONE), (1, 0, 1));
    assert_eq!(run(Recovery::NewReno, false, ONE), (1, 0, 1));
    assert_eq!(run(Recovery::NewReno, false, THREE), (3, 0, 1));
    assert_eq!(run(Recovery::Sack, true, THREE), (3, 0, 1));
    assert_eq!(run(Recovery::Rack, true, THREE), (3, 0, 1));
    // Reno leaves recovery with the first hole, and halves for each loss; Tahoe sends again what has arrived, too.
    let (sent, timeouts, recoveries) = run(Recovery::Reno, false, THREE);
    assert!(
        sent >= 3 && (timeouts > 0 || recoveries == 3),
        "{sent} {timeouts} {recoveries}"
    );
    assert_eq!(run(Recovery::Tahoe, false, ONE), (1, 0, 1));
    let (sent, timeouts, recoveries) = run(Recovery::Tahoe, false, THREE);
    assert!(
        sent > 3 && timeouts == 0 && recoveries == 1,
        "{sent} {timeouts} {recoveries}"
    );
}

/// Blocks mean nothing to a sender that repairs without them: it sends the same at the same times.
#[test]
fn a_recovery_without_blocks_ignores_them() {
    for recovery in [Recovery::Tahoe, Recovery::Reno, Recovery::NewReno] {
        let run = |sack| {
            let mut params = Profile::NewReno.params();
            (params.congestion.recovery, params.sack) = (recovery, sack);
            (params.timestamps, params.receive.ack_every) = (false, 1);
            let mut both = [0, 1].map(|_| Link::new(Some(10e6), MS(20)));
            both[0].judge = lose(&[30, 60, 62, 64, 150]);
            let mut pair = Pair::new([params; 2], [600_000, 0], both);
            pair.finish(far());
            (*pair.ends[0].counters(), pair.ends[1].snapshot().sack)
        };
        let ((without, _), (with, agreed)) = (run(false), run(true));
        assert_eq!(with, without, "{recovery:?}");
        assert!(agreed);
    }
}

/// A tail that is lost is repaired by a probe after two round trips, not by the timer of 200 ms and more.
#[test]
fn the_tail_is_probed() {
    let mut both = [0, 1].map(|_| Link::new(Some(100e6), MS(10)));
    both[0].judge = lose(&[9, 10]);
    let mut pair = Pair::new([Profile::Linux.params(); 2], [10 * 1448, 0], both);
    pair.logs = true;
    pair.finish(far());
    let counters = pair.ends[0].counters();
    let story = pair.story(Instant::ZERO, far());
    assert_eq!((counters.tail_probes, counters.timeouts), (1, 0), "{story}");
    assert!(pair.now < Instant::from_millis(140), "{}", pair.now);
}

/// A delay of a whole window that looks like a loss is found out, and the window is as before.
#[test]
fn a_spurious_timer_is_taken_back() {
    let late = |params: Params| {
        let mut both = [0, 1].map(|_| Link::new(Some(10e6), MS(20)));
        both[0].judge = Box::new(|packet, now| {
            let pause = now > Instant::from_millis(400) && now < Instant::from_millis(1900);
            match pause && !packet.data.is_empty() {
                true => Fate::Held(Instant::from_millis(1900)),
                false => Fate::Passes,
            }
        });
        let mut pair = Pair::new([params; 2], [1_500_000, 0], both);
        pair.finish(far());
        *pair.ends[0].counters()
    };
    let linux = late(Profile::Linux.params());
    assert!(linux.timeouts >= 1 && linux.undone >= 1, "{linux:?}");
    let mut without = Profile::Linux.params();
    (without.congestion.frto, without.congestion.undo) = (false, false);
    let plain = late(without);
    assert!(
        plain.undone == 0 && plain.retransmissions > linux.retransmissions,
        "{plain:?} {linux:?}"
    );
}

/// A queue makes the round trip far longer than the shortest one. What was repeated needlessly is acknowledged for its
/// first transmission, and does not make all that is under way late.
#[test]
fn a_needless_repetition_causes_no_further_ones() {
    let mut params = Profile::Linux.params();
    (params.send.buffer, params.send.most) = (65_536, 65_536);
    let mut both = [0, 1].map(|_| Link::new(Some(8e6), MS(5)));
    let mut once = true;
    both[0].judge = Box::new(move |packet, now| {
        let late = once && now > Instant::from_millis(1000) && !packet.data.is_empty();
        once &= !late;
        match late {
            true => Fate::Late(MS(70)),
            false => Fate::Passes,
        }
    });
    let mut pair = Pair::new([params; 2], [4_000_000, 0], both);
    pair.finish(far());
    let counters = pair.ends[0].counters();
    assert!((1..=3).contains(&counters.retransmissions), "{counters:?}");
}

#[test]
fn a_mark_reduces_the_window_once_for_each_round_trip() {
    let mut params = Profile::NewReno.params();
    params.ecn = true;
    let mut both = [0, 1].map(|_| Link::new(Some(10e6), MS(20)));
    both[0].judge = Box::new(|packet, now| {
        let marks = now > Instant::from_millis(300) && now < Instant::from_millis(330);
        if marks && !packet.data.is_empty() {
            Fate::Marked
        } else {
            Fate::Passes
        }
    });
    let mut pair = Pair::new([params; 2], [600_000, 0], both);
    pair.finish(far());
    let counters = pair.ends[0].counters();
    assert_eq!((counters.mark_reductions, counters.retransmissions), (1, 0));
}

#[test]
fn the_same_inputs_give_the_same_segments() {
    let log = || {
        let mut both = links(8);
        both[0].judge = chance(3, 50, 20, 50);
        let mut pair = Pair::new([Profile::Linux.params(); 2], [100_000, 50_000], both);
        pair.logs = true;
        pair.finish(far());
        pair.log
    };
    assert_eq!(log(), log());
}

/// The last octet is under way as a probe, and lost, when the window opens: it needs a timer.
#[test]
fn a_probe_that_is_lost_is_sent_again_after_the_window_has_opened() {
    for profile in [Profile::NewReno, Profile::Bsd43] {
        let params = profile.params();
        let mut both = links(2);
        both[0].judge = Box::new(|packet, now| {
            let probes = now > Instant::from_secs(2) && now < Instant::from_millis(100_100);
            match probes && !packet.data.is_empty() {
                true => Fate::Lost,
                false => Fate::Passes,
            }
        });
        let octets = params.receive.buffer as u64 + 1;
        let mut pair = Pair::new([params; 2], [octets, 0], both);
        pair.programs[1].reads_from = Instant::from_secs(100);
        pair.finish(far());
        assert!(pair.ends[0].counters().window_probes > 0, "{profile}");
    }
}

#[test]
fn a_buffer_below_a_unit_of_the_window_scale_carries_data() {
    let mut params = Profile::Linux.params();
    params.receive.buffer = 100;
    let mut pair = Pair::new([params; 2], [3000, 0], links(2));
    pair.finish(far());
}
