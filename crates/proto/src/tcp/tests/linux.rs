//! Rules of Linux beside the standards. The kernel's rules are in the parameters; `bench/worlds` has it as the judge.

use super::pair::{Fate, Link, Pair, lose};
use crate::tcp::{Params, Profile};
use crate::{Duration, Instant};
use aerostat_wire::tcp::Flags;

const MS: fn(u64) -> Duration = Duration::from_millis;

fn far() -> Instant {
    Instant::from_secs(1000)
}

/// Linux without time stamps or selective acknowledgements.
fn linux(stamps: bool, sack: bool) -> Params {
    let mut params = Profile::Linux.params();
    (params.timestamps, params.sack) = (stamps, sack);
    params
}

fn pair(params: Params, octets: u64, rate: f64, delay: u64) -> Pair {
    let links = [0, 1].map(|_| Link::new(Some(rate), MS(delay)));
    Pair::new([params; 2], [octets, 0], links)
}

/// A receive buffer grows by what a window takes, if no time stamp shows the round trip.
#[test]
fn buffers_grow_without_time_stamps() {
    let [with, without] = [true, false].map(|stamps| {
        let mut pair = pair(linux(stamps, true), 20_000_000, 20e6, 25);
        pair.finish(far());
        pair.now.as_secs_f64()
    });
    // 8 s at the rate of the link; a window of 64 KiB in 50 ms would take 15 s.
    assert!(with < 9.5 && without < 9.5, "{with} s and {without} s");
}

/// The end of each write has PSH, and no segment else.
#[test]
fn the_end_of_a_write_is_pushed() {
    let params = linux(true, true);
    let size = usize::from(params.mss) - 12;
    let mut pair = pair(params, 60 * size as u64, 100e6, 1);
    pair.programs[0].write_size = 10 * size;
    pair.logs = true;
    pair.finish(far());
    let data = pair
        .log
        .iter()
        .filter(|(_, end, _, octets)| *end == 0 && *octets > 0);
    let pushed: Vec<bool> = data
        .map(|(_, _, segment, _)| segment.flags.has(Flags::PSH))
        .collect();
    let ends: Vec<bool> = (1..=60).map(|number| number % 10 == 0).collect();
    assert_eq!(pushed, ends);
}

/// Duplicate ACKs take from what is under way, so a new segment goes for each, and no timer is needed for three holes.
#[test]
fn losses_without_blocks_need_no_timer() {
    for lost in [&[40_u64][..], &[40, 43], &[40, 43, 46]] {
        let mut pair = pair(linux(true, false), 400_000, 10e6, 10);
        pair.links[0].judge = lose(lost);
        pair.logs = true;
        pair.finish(far());
        let counters = pair.ends[0].counters();
        assert_eq!(
            (counters.timeouts, counters.fast_recoveries),
            (0, 1),
            "{lost:?}"
        );
        assert_eq!(counters.retransmissions, lost.len() as u64, "{lost:?}");
    }
}

/// After the second timer in a row two new segments ask whether the first ones were lost.
#[test]
fn a_second_timer_is_doubted_too() {
    let mut pair = pair(linux(true, true), 400_000, 10e6, 10);
    pair.links[0].judge = Box::new(|packet, now| {
        let gone = now > Instant::from_millis(100) && now < Instant::from_millis(700);
        match gone && !packet.data.is_empty() {
            true => Fate::Lost,
            false => Fate::Passes,
        }
    });
    pair.finish(far());
    let counters = pair.ends[0].counters();
    assert!(counters.timeouts >= 2, "{counters:?}");
    assert_eq!(counters.frto_steps, 1, "{counters:?}");
}

/// Each segment that raises the window is acknowledged by itself, beyond the sixteen at the start.
#[test]
fn a_window_that_grows_is_told_at_once() {
    let mut pair = pair(linux(true, true), 150_000, 10e6, 5);
    pair.logs = true;
    pair.finish(far());
    let mut last = None;
    let acks = pair.log.iter().filter(|(_, end, ..)| *end == 1);
    let steps = acks.filter_map(|(_, _, segment, _)| {
        let before = last.replace(segment.ack)?;
        Some(segment.ack.wrapping_sub(before) / 1448)
    });
    let single = steps.take_while(|step| *step <= 1).count();
    assert!(single > 20, "{single} single acknowledgements");
}
