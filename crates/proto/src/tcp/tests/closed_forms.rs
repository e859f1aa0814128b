//! Throughputs and times beside formulas that do not come from this code.

use super::pair::{Fate, Judge, Link, Pair, is_bare, lose};
use crate::mix::mix;
use crate::tcp::params::{AckDelay, Counting, Growth, InitialWindow, Recovery};
use crate::tcp::{Params, Profile};
use crate::{Duration, Instant};

const MS: fn(u64) -> Duration = Duration::from_millis;

/// A TCP without other limits than the one that a test sets.
fn plain(recovery: Recovery, growth: Growth) -> Params {
    let mut params = Profile::NewReno.params();
    params.sack = true;
    params.window_scaling = true;
    params.congestion.recovery = recovery;
    params.congestion.growth = growth;
    params.congestion.counting = Counting::Octets;
    params.receive.ack_every = 1;
    params.receive.ack_delay = AckDelay::Never;
    for size in [&mut params.receive.buffer, &mut params.receive.most] {
        *size = 64 << 20;
    }
    params.send.buffer = 8 << 20;
    params.send.most = 8 << 20;
    params
}

/// Octets per second between two times of a transfer without end.
fn throughput(params: [Params; 2], links: [Link; 2], from: u64, until: u64) -> f64 {
    let mut pair = Pair::new(params, [u64::MAX / 2, 0], links);
    pair.run(Instant::from_secs(from));
    let before = pair.programs[1].read;
    pair.run(Instant::from_secs(until));
    (pair.programs[1].read - before) as f64 / (until - from) as f64
}

fn both(delay: Duration) -> [Link; 2] {
    [0, 1].map(|_| Link::new(None, delay))
}

#[track_caller]
fn agree(what: &str, measured: f64, form: f64, within: f64) {
    let ratio = measured / form;
    println!(
        "{what}: measured {measured:.1}, form {form:.1}, {:+.2} %",
        (ratio - 1.0) * 100.0
    );
    assert!(
        (ratio - 1.0).abs() <= within,
        "{what}: measured {measured}, form {form}"
    );
}

/// A window of k segments carries k in a round trip, whether acknowledgements follow from a count or from the program's
/// reading.
#[test]
fn a_window_of_k_segments_carries_k() {
    for segments in [1, 2, 3, 4, 5, 6, 8, 16, 44] {
        for (name, mut receiver) in [
            ("each segment", plain(Recovery::Sack, Growth::Reno)),
            ("bsd-4.3", Profile::Bsd43.params()),
            ("linux-2.2", Profile::Linux22.params()),
            ("linux", Profile::Linux.params()),
        ] {
            let mut sender = plain(Recovery::Sack, Growth::Reno);
            sender.timestamps = false;
            receiver.window_scaling = false;
            let window = segments * 1460 * receiver.receive.share as usize;
            (receiver.receive.buffer, receiver.receive.most) = (window, window);
            // With one segment, or an odd last one, only a timer or a round without one acknowledges.
            if name != "each segment" {
                receiver.receive.accounting = crate::tcp::params::Accounting::Octets;
                if segments % 2 == 1 {
                    receiver.receive.ack_delay = AckDelay::Never;
                }
            }
            let measured = throughput([sender, receiver], both(MS(20)), 2, 12);
            let form = (segments * 1460) as f64 / 0.04;
            agree(
                &format!("{segments} segments, {name}"),
                measured,
                form,
                0.01,
            );
        }
    }
}

/// Slow start doubles the window in each round trip: 2ⁿ − 1 segments need n of them, and the handshake one more.
#[test]
fn slow_start_doubles() {
    for rounds in 1..=8_u32 {
        let mut params = plain(Recovery::NewReno, Growth::Reno);
        params.congestion.initial_window = InitialWindow::Segments(1);
        let octets = u64::from(2_u32.pow(rounds) - 1) * 1460;
        let mut pair = Pair::new([params; 2], [octets, 0], both(MS(50)));
        while pair.programs[1].read < octets {
            assert!(pair.step(Instant::from_secs(60)));
        }
        // The last octets have not been acknowledged yet: half of a round trip less.
        let form = 0.1 + 0.1 * f64::from(rounds) - 0.05;
        agree(
            &format!("{rounds} rounds"),
            pair.now.as_secs_f64(),
            form,
            0.01,
        );
    }
}

/// With an ACK for each second segment that adds one segment, the window grows by one half: w, w + w/2, and so on.
#[test]
fn slow_start_with_delayed_acknowledgements_grows_by_a_half() {
    let mut params = plain(Recovery::NewReno, Growth::Reno);
    params.congestion.initial_window = InitialWindow::Segments(2);
    params.congestion.counting = Counting::Acks;
    params.receive.ack_every = 2;
    params.receive.ack_delay = AckDelay::After(MS(200));
    let mut pair = Pair::new([params; 2], [2000 * 1460, 0], both(MS(50)));
    pair.logs = true;
    pair.finish(Instant::from_secs(60));
    let sent_in = |round: u64| {
        let (from, until) = (
            Instant::from_millis(100 * round),
            Instant::from_millis(100 * round + 99),
        );
        let sent = pair.log.iter().filter(|(at, end, segment, data)| {
            *end == 0 && from <= *at && *at < until && !is_bare(segment, *data)
        });
        sent.count()
    };
    // The first round is that of the handshake. Each ACK lets out the two segments that it acknowledges and one more. A
    // segment without a second one is acknowledged with the first of the next round.
    let (mut sent, mut left) = (2, 0);
    for round in 1..=10 {
        assert_eq!(sent_in(round), sent, "round {round}");
        let acks = (sent + left) / 2;
        left = (sent + left) % 2;
        sent = 3 * acks;
    }
}

/// m losses in a window: NewReno repairs one in each round trip, SACK and RACK all in the first one.
#[test]
fn recovery_takes_the_round_trips_of_its_standard() {
    const LOSSES: [&[u64]; 4] = [&[100], &[100, 104], &[100, 104, 108], &[100, 104, 108, 112]];
    for (recovery, at_once) in [
        (Recovery::NewReno, false),
        (Recovery::Sack, true),
        (Recovery::Rack, true),
    ] {
        for losses in LOSSES {
            let mut params = plain(recovery, Growth::Reno);
            params.sack = at_once;
            let mut links = both(MS(50));
            links[0].judge = lose(losses);
            let mut pair = Pair::new([params; 2], [400 * 1460, 0], links);
            pair.logs = true;
            pair.finish(Instant::from_secs(60));
            assert_eq!(
                pair.ends[0].counters().timeouts,
                0,
                "{recovery:?} {losses:?}"
            );
            // From the first repetition to the first ACK that covers all that was outstanding then.
            let mut highest = 0;
            let mut begin = None;
            let mut end = None;
            for (at, from, segment, data) in &pair.log {
                match (from, begin) {
                    (0, None) if *data > 0 => {
                        if highest != 0 && (segment.seq.wrapping_sub(highest) as i32) < 0 {
                            begin = Some(*at);
                        } else {
                            highest = segment.seq.wrapping_add(*data as u32);
                        }
                    }
                    (1, Some(_)) if (segment.ack.wrapping_sub(highest) as i32) >= 0 => {
                        end = end.or(Some(*at + MS(50)));
                    }
                    _ => {}
                }
            }
            let time = end
                .expect("an end")
                .since(begin.expect("a begin"))
                .as_secs_f64();
            let rounds = if at_once { 1 } else { losses.len() };
            agree(
                &format!("{recovery:?}, {} lost", losses.len()),
                time,
                0.1 * rounds as f64,
                0.01,
            );
        }
    }
}

/// A link that loses each n-th data segment.
fn each(n: u64) -> Judge {
    let mut count = 0;
    Box::new(move |packet, _| {
        count += u64::from(!packet.data.is_empty());
        match !packet.data.is_empty() && count.is_multiple_of(n) {
            true => Fate::Lost,
            false => Fate::Passes,
        }
    })
}

/// A link that loses a data segment with the chance 1/n.
fn one_in(n: u64, seed: u64) -> Judge {
    let mut count = 0;
    Box::new(move |packet, _| {
        count += 1;
        match !packet.data.is_empty() && mix(seed ^ mix(count)).is_multiple_of(n) {
            true => Fate::Lost,
            false => Fate::Passes,
        }
    })
}

/// Mathis, Semke, Mahdavi and Ott, *The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm*, 1997: the rate
/// is C × MSS / (RTT × √p), C = √(3/2) with periodic loss and an ACK for each segment, √(3/4) with one for two; 1.31
/// with random loss (table 1 of the paper).
#[test]
fn reno_has_the_response_function_of_mathis() {
    const MSS: f64 = 1460.0;
    for (every, c) in [(1, (3.0_f64 / 2.0).sqrt()), (2, (3.0_f64 / 4.0).sqrt())] {
        for n in [2500, 5000] {
            let mut params = plain(Recovery::Sack, Growth::Reno);
            params.receive.ack_every = every;
            params.congestion.counting = Counting::Acks;
            params.receive.ack_delay = if every == 1 {
                AckDelay::Never
            } else {
                AckDelay::After(MS(200))
            };
            let mut links = both(MS(25));
            links[0].judge = each(n);
            let form = c * MSS / 0.05 * (n as f64).sqrt();
            let cycle = (n as f64 * MSS / form) as u64 + 1;
            let measured = throughput([params; 2], links, 3 * cycle, 9 * cycle);
            agree(
                &format!("Reno, ACK for {every}, each {n}th lost"),
                measured,
                form,
                0.05,
            );
        }
    }
    for n in [500, 1000] {
        let mut total = 0.0;
        for seed in 1..=4 {
            let mut links = both(MS(25));
            links[0].judge = one_in(n, seed);
            total += throughput([plain(Recovery::Sack, Growth::Reno); 2], links, 10, 90) / 4.0;
        }
        let form = 1.31 * MSS / 0.05 * (n as f64).sqrt();
        agree(
            &format!("Reno, one in {n} lost by chance"),
            total,
            form,
            0.15,
        );
    }
}

/// Equation 5 of RFC 9438: the average window is (C (3 + β) / (4 (1 − β)))^¼ RTT^¾ / p^¾ segments.
#[test]
fn cubic_has_the_response_function_of_its_standard() {
    const MSS: f64 = 1460.0;
    let cubic = Growth::Cubic {
        hystart: false,
        standard: true,
    };
    let form = |n: u64, rtt: f64| {
        let constant = libm::pow(0.4 * 3.7 / (4.0 * 0.3), 0.25);
        constant * libm::pow(rtt * n as f64, 0.75) * MSS / rtt
    };
    // The first cycle begins just below the window of the formula. The plateau at its end is so flat that another
    // window would come near to it in some hundred cycles only; and above it fast convergence, which the formula does
    // not know, throws the window back.
    for (n, rtt) in [(5000, 100), (10_000, 100)] {
        let form = form(n, rtt as f64 / 1000.0);
        let average = form * rtt as f64 / 1000.0 / MSS;
        let most = 0.97 * average / ((3.0 + 0.7) / 4.0);
        let mut params = plain(Recovery::Sack, cubic);
        params.congestion.initial_window = InitialWindow::Segments(most as u32);
        let mut links = both(MS(rtt / 2));
        let mut judge = each(n);
        let mut first = 0;
        links[0].judge = Box::new(move |packet, now| {
            first += u64::from(!packet.data.is_empty());
            if first == 1 {
                Fate::Lost
            } else {
                judge(packet, now)
            }
        });
        let cycle = (n as f64 * MSS / form) as u64 + 1;
        let measured = throughput([params; 2], links, 2 * cycle, 8 * cycle);
        agree(
            &format!("CUBIC, each {n}th lost, {rtt} ms"),
            measured,
            form,
            0.05,
        );
    }
    for (n, rtt) in [(5000, 100)] {
        let form = form(n, rtt as f64 / 1000.0);
        let cycle = (n as f64 * MSS / form) as u64 + 1;
        let mut total = 0.0;
        for seed in 1..=4 {
            let mut links = both(MS(rtt / 2));
            links[0].judge = one_in(n, seed);
            total += throughput(
                [plain(Recovery::Sack, cubic); 2],
                links,
                3 * cycle,
                23 * cycle,
            ) / 4.0;
        }
        agree(
            &format!("CUBIC, one in {n} lost by chance, {rtt} ms"),
            total,
            form,
            0.15,
        );
    }
}
