//! Slow lines in real time: the time of each cell counts, as in virtual time.

use super::{Run, seconds};
use aerostat_lab::build::{Builder, Flavour};
use aerostat_proto::Duration;
use aerostat_wire::line::Encapsulation;

/// Octets of data of the pings.
const SIZES: [u64; 6] = [16, 17, 56, 500, 1000, 1452];

/// A customer behind a DSLAM, whose two links have this rate.
fn lab(encapsulation: Encapsulation, rate: u64) -> String {
    let pings = SIZES.iter().enumerate().map(|(number, size)| {
        let start = 1 + number;
        format!(
            "  - {{ name: p{size}, from: a, to: b, kind: ping, size: {size}, rate: 10pps, start: {start}s, duration: 500ms }}\n"
        )
    });
    format!(
        "switches: {{ dslam: {{}} }}\n\
         lines: {{ dsl: {{ subnet: 10.1.0.0/30, encapsulation: {encapsulation} }} }}\n\
         pvcs: [{{ from: a, vc: '8.35', to: b, line: dsl }}]\n\
         hosts:\n  a: {{ on: dslam, elan: dsl, ip: 10.1.0.1, link: {{ rate: {rate}bps, delay: 1ms }} }}\n  \
         b: {{ on: dslam, elan: dsl, ip: 10.1.0.2, link: {{ rate: {rate}bps, delay: 1ms }} }}\n\
         traffic:\n  - {{ name: warm, from: a, to: b, kind: ping, duration: 500ms }}\n{}",
        pings.collect::<String>()
    )
}

/// The least round-trip time is one cell time for each cell of the packet, and one for the second link, in both
/// directions; a driver that wakes up late changes nothing of it.
#[test]
fn round_trips_on_slow_lines_have_the_time_of_every_cell() {
    for encapsulation in [Encapsulation::BridgedLlc, Encapsulation::PppoaVc] {
        for (rate, late) in [(500_000, 0), (1_000_000, 300), (8_000_000, 0)] {
            let text = lab(encapsulation, rate);
            let lab = match aerostat_lab::parse("staircase.atm.yml", &text, &[]) {
                Ok(checked) => checked.lab,
                Err(wrong) => panic!("{wrong}"),
            };
            let builder = Builder::new(&lab, 1, Flavour::Embedded);
            let mut run = Run::start(&lab, &builder, Duration::from_micros(late));
            run.until(seconds(1 + SIZES.len() as u64));
            let flows = run.world.stats().report(run.now);
            for (flow, size) in flows[1..].iter().zip(SIZES) {
                let trip = &flow.paths[0].round_trip;
                assert_eq!(trip.count, 5, "{encapsulation} {}", flow.name);
                let octets = size as usize + 28 + encapsulation.overhead();
                let cells = octets.div_ceil(48) as u64 + 1;
                let expected = 2 * (cells * 424 * 1_000_000_000 / rate + 2_000_000);
                let measured = (trip.min_us * 1000.0).round() as u64;
                assert!(
                    measured.abs_diff(expected) <= 8,
                    "{encapsulation} {rate} {size}: {measured} for {expected}"
                );
            }
        }
    }
}
