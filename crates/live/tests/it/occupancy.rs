//! Levels of buffers over time under the driver of a lab in real time.

use super::{Run, seconds};
use aerostat_lab::Lab;
use aerostat_lab::build::{Builder, Flavour};
use aerostat_lab::occupancy::{MOST, Sample};
use aerostat_proto::{Duration, Instant};

/// A burst of 376 cells goes to a line of half the rate. `until:` does not end a lab in real time.
fn lab(occupancy: &str) -> Lab {
    let text = format!(
        "
switches: {{ s: {{}} }}
clip: {{ w: {{ subnet: 10.7.0.0/24 }} }}
hosts:
  x: {{ on: s, elan: w, ip: 10.7.0.1, link: {{ rate: 80000cells/s, delay: 0s }}, \
sockets: [{{ vc: 0.50, name: one, size: 18000, pdus: 1, start: 1s }}] }}
  y: {{ on: s, elan: w, ip: 10.7.0.2, link: {{ rate: 40000cells/s }}, sockets: [{{ vc: 0.50, listen: sink, name: in }}] }}
pvcs: [{{ from: x, vc: 0.50, to: y, pcr: 30000, shape: false }}]
until: 1200ms
occupancy: {{ {occupancy} }}
"
    );
    let checked = aerostat_lab::parse("occupancy.atm.yml", &text, &[]);
    checked.unwrap_or_else(|found| panic!("{found}")).lab
}

/// The samples at the end, and the limits that they met.
fn found(run: &mut Run<'_>) -> (Vec<Sample>, Vec<String>) {
    let report = run.world.report(run.now, false);
    (report.occupancy, report.limits)
}

/// Samples have their own times and the levels of these times, however late the driver wakes up.
#[test]
fn a_late_driver_sees_the_levels_of_a_punctual_one() {
    let lab = lab("every: 130us, from: 990ms, links: [y-s]");
    let builder = Builder::new(&lab, 7, Flavour::Embedded);
    let [exact, late] = [0, 5].map(|late| {
        let mut run = Run::start(&lab, &builder, Duration::from_millis(late));
        run.until(Instant::from_millis(1_100));
        let (samples, limits) = found(&mut run);
        assert_eq!(limits, Vec::<String>::new());
        samples
    });
    let from = Instant::from_millis(990);
    for (sample, number) in exact.iter().zip(0_u32..) {
        assert_eq!(sample.at, from + Duration::from_micros(130) * number);
    }
    assert_eq!(exact.len(), 110_000 / 130 + 1);
    assert_eq!(exact, late[..exact.len().min(late.len())]);
    // The first cell leaves at once, and every second slot another one.
    let most = exact.iter().map(|sample| sample.cells[0]).max();
    assert!((180..=188).contains(&most.unwrap()), "{most:?}");
    assert_eq!(exact.last().unwrap().cells, [0, 0]);
}

/// A driver that had to wait for longer than the network may be behind loses the time, and the samples of this time.
#[test]
fn samples_of_lost_time_are_counted() {
    let lab = lab("every: 1ms, from: 0s, links: [y-s]");
    let builder = Builder::new(&lab, 7, Flavour::Embedded);
    let mut run = Run::start(&lab, &builder, Duration::ZERO);
    run.until(Instant::from_millis(500));
    let before = found(&mut run).0.len();
    assert_eq!(before, 501);
    run.now += Duration::from_millis(250);
    while !run.world.step(run.now, 64) {}
    let (samples, limits) = found(&mut run);
    let left_out = 250 - (samples.len() - before);
    assert!((199..=200).contains(&left_out), "{left_out}");
    let said =
        format!("occupancy: {left_out} samples were left out, because the lab was behind its time");
    assert_eq!(limits, [said]);
    assert!(samples.is_sorted_by_key(|sample| sample.at));
}

/// A lab in real time has no end: the samples end at the most, and so do the times at which the driver wakes up for
/// them.
#[test]
fn samples_end_at_the_most_and_say_so() {
    let lab = lab("every: 1us, from: 1s, links: [y-s, x-s]");
    let builder = Builder::new(&lab, 7, Flavour::Embedded);
    let mut run = Run::start(&lab, &builder, Duration::from_millis(2));
    run.until(seconds(2));
    let (samples, limits) = found(&mut run);
    assert_eq!(samples.len() as u64, MOST);
    let [said] = &limits[..] else {
        panic!("{limits:?}");
    };
    assert!(
        said.contains("1000000 samples are the most, and there are no more from 1.5"),
        "{said}"
    );
    let next = run.world.poll_timeout().unwrap();
    assert!(next > run.now, "{next}");
}
