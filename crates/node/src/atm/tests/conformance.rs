//! Policers beside a reference of the other algorithm: the continuous-state leaky bucket, in exact numbers, for every
//! conformance definition. Source: I.371 annex A, Traffic Management 4.0 §4.4.2 (both forms of the algorithm).

use super::super::police::{Gcra, Policer, Verdict, burst_tolerance};
use super::super::*;
use aerostat_proto::{Duration, Instant};
use aerostat_wire::{Conformance, ServiceCategory, TrafficParams, Vc};

/// SplitMix64: the same numbers in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// A continuous-state leaky bucket. Its level is in units of 1/rate ns, so that the increment of a cell, 1/rate
/// seconds, is 10⁹ of them, and all numbers are whole.
struct Bucket {
    level: i128,
    last: i128,
    limit: i128,
    rate: i128,
}

impl Bucket {
    fn new(rate: u32, limit_ns: i128) -> Self {
        let rate = i128::from(rate);
        Self {
            level: 0,
            last: 0,
            limit: limit_ns * rate,
            rate,
        }
    }
    fn level_at(&self, now: i128) -> i128 {
        (self.level - (now - self.last) * self.rate).max(0)
    }
    fn has_room(&self, now: i128) -> bool {
        self.level_at(now) <= self.limit
    }
    fn pour(&mut self, now: i128) {
        (self.level, self.last) = (self.level_at(now) + 1_000_000_000, now);
    }
    /// The first nanosecond at which a cell conforms.
    fn opens(&self) -> i128 {
        let excess = self.level - self.limit;
        self.last + (excess + self.rate - 1).div_euclid(self.rate).max(0)
    }
    /// True if a cell at this time conforms, and would not if it came any earlier.
    fn is_full_to_the_brim(&self, now: i128) -> bool {
        self.level_at(now) == self.limit
    }
}

/// The next arrival: at any distance, together with the cell before, or at the first moment at which a bucket takes a
/// cell, or 1 ns before or after this moment.
fn next_arrival(random: &mut Random, now: i128, gap: u64, buckets: &[&Bucket]) -> i128 {
    let opens = |random: &mut Random| {
        let bucket = buckets[random.below(buckets.len() as u64) as usize];
        bucket.opens()
    };
    let at = match random.below(8) {
        0..=2 => now + i128::from(random.below(gap)),
        3 => now,
        4 | 5 => opens(random),
        6 => opens(random) - 1,
        _ => opens(random) + 1,
    };
    at.max(now)
}

fn instant(ns: i128) -> Instant {
    Instant::from_nanos(ns as u64)
}

/// Virtual scheduling and the leaky bucket decide alike over 10⁶ arrivals, of which many come exactly at the limit.
#[test]
fn a_million_arrivals_have_the_verdicts_of_the_leaky_bucket() {
    let mut random = Random(1);
    let (mut conforming, mut at_the_limit) = (0_u64, 0_u64);
    // Increments with and without a fraction of a nanosecond, no tolerance, and one below the increment.
    let cases = [
        (50_000_u32, 250_000_u64),
        (353_207, 3_000),
        (1_000_000, 0),
        (96_000, 1_000_000),
        (7, 999_999_999),
    ];
    for (rate, limit) in cases {
        let mut virtual_scheduling = Gcra::new(rate, Duration::from_nanos(limit));
        let mut bucket = Bucket::new(rate, limit.into());
        let gap = 2_500_000_000 / u64::from(rate);
        let mut now = 1_000_000_000;
        for arrival in 0..200_000 {
            now = next_arrival(&mut random, now, gap, &[&bucket]);
            let conforms = bucket.has_room(now);
            at_the_limit += u64::from(bucket.is_full_to_the_brim(now));
            if conforms {
                bucket.pour(now);
                conforming += 1;
            }
            let got = virtual_scheduling.arrive(instant(now));
            assert_eq!(
                got, conforms,
                "{rate} cells/s, arrival {arrival} at {now} ns"
            );
        }
    }
    assert!((300_000..800_000).contains(&conforming), "{conforming}");
    assert!(at_the_limit > 50_000, "{at_the_limit}");
}

/// The reference: each test that applies to a cell, and both buckets filled only by a cell that passes both.
struct Reference {
    conformance: Conformance,
    peak: Bucket,
    second: Option<Bucket>,
}

impl Reference {
    fn new(traffic: &TrafficParams, conformance: Conformance) -> Self {
        use Conformance::{Cbr1, Cbr2, Cbr3, Ubr1, Ubr2, Vbr1, Vbr2, Vbr3};
        let nanos = |time: Duration| time.as_nanos() as i128;
        let tolerance = nanos(traffic.max_cdv);
        let of_second = match nanos(traffic.second_cdv) {
            0 => tolerance,
            own => own,
        };
        let pcr = traffic.max_pcr.unwrap();
        let second = match conformance {
            Cbr1 | Ubr1 | Ubr2 => None,
            Cbr2 | Cbr3 => Some(Bucket::new(traffic.pcr0, of_second)),
            Vbr1 | Vbr2 | Vbr3 => {
                let [pcr, scr, mbs] = [pcr, traffic.scr, traffic.mbs].map(i128::from);
                let burst = (mbs - 1) * 1_000_000_000 * (pcr - scr);
                let burst = (burst + pcr * scr - 1) / (pcr * scr);
                Some(Bucket::new(traffic.scr, burst + of_second))
            }
        };
        Self {
            conformance,
            peak: Bucket::new(pcr, tolerance),
            second,
        }
    }
    /// Verdict about a cell, and its CLP behind the policer.
    fn cell(&mut self, clp: bool, now: i128) -> Option<bool> {
        use Conformance::{Cbr2, Cbr3, Ubr2, Vbr1, Vbr2, Vbr3};
        let within_peak = self.peak.has_room(now);
        let within_second = self
            .second
            .as_ref()
            .is_none_or(|bucket| bucket.has_room(now));
        let tested = match self.conformance {
            Vbr1 => true,
            Cbr2 | Cbr3 | Vbr2 | Vbr3 => !clp,
            _ => false,
        };
        let fate = match (within_peak, !tested || within_second) {
            (false, _) => None,
            (true, true) if self.conformance == Ubr2 => Some(true),
            (true, true) => Some(clp),
            (true, false) if matches!(self.conformance, Cbr3 | Vbr3) => Some(true),
            (true, false) => None,
        };
        if fate.is_some() {
            self.peak.pour(now);
            if let Some(second) = self.second.as_mut().filter(|_| tested && within_second) {
                second.pour(now);
            }
        }
        fate
    }
}

/// The contracts of all conformance definitions, and those with two buckets once more with tolerances of their own:
/// below that of the peak rate, above it, and both with a part of a microsecond.
fn contracts() -> Vec<(TrafficParams, Conformance)> {
    let mut all = one_tolerance().to_vec();
    let two = one_tolerance()
        .into_iter()
        .filter(|(traffic, _)| traffic.pcr0 > 0 || traffic.scr > 0);
    for (traffic, conformance) in two {
        for (peak, second) in [(40_000, 7), (40_000, 61_003), (333, 250_999)] {
            let [max_cdv, second_cdv] = [peak, second].map(Duration::from_nanos);
            let own = TrafficParams {
                max_cdv,
                second_cdv,
                ..traffic
            };
            all.push((own, conformance));
        }
    }
    all
}

fn one_tolerance() -> [(TrafficParams, Conformance); 8] {
    use Conformance::{Cbr1, Cbr2, Cbr3, Ubr1, Ubr2, Vbr1, Vbr2, Vbr3};
    let cbr = TrafficParams {
        max_cdv: Duration::from_micros(40),
        ..TrafficParams::cbr(90_000, 0)
    };
    let pair = TrafficParams {
        pcr0: 30_000,
        ..cbr
    };
    let vbr = TrafficParams {
        category: Some(ServiceCategory::RtVbr),
        scr: 11_000,
        mbs: 7,
        ..cbr
    };
    let high = TrafficParams { clp0: true, ..vbr };
    let ubr = TrafficParams {
        category: Some(ServiceCategory::Ubr),
        ..cbr
    };
    let tagging = |traffic| TrafficParams {
        tagging: true,
        ..traffic
    };
    [
        (cbr, Cbr1),
        (pair, Cbr2),
        (tagging(pair), Cbr3),
        (vbr, Vbr1),
        (high, Vbr2),
        (tagging(high), Vbr3),
        (ubr, Ubr1),
        (tagging(ubr), Ubr2),
    ]
}

/// Every conformance definition over 125 000 arrivals of cells with CLP 0 and 1.
#[test]
fn every_conformance_definition_has_the_verdicts_of_two_leaky_buckets() {
    let mut random = Random(2);
    for (traffic, conformance) in contracts() {
        assert_eq!(traffic.conformance(), Some(conformance));
        let mut policer = Policer::new(&traffic, Policing::All, Duration::ZERO).unwrap();
        let mut reference = Reference::new(&traffic, conformance);
        let mut now = 1_000_000_000;
        let (mut passed, mut tagged, mut discarded) = (0, 0, 0);
        for arrival in 0..125_000 {
            let buckets: Vec<&Bucket> = [Some(&reference.peak), reference.second.as_ref()]
                .into_iter()
                .flatten()
                .collect();
            now = next_arrival(&mut random, now, 20_000, &buckets);
            let clp = random.below(3) == 0;
            let want = reference.cell(clp, now);
            let got = match policer.police(clp, instant(now), 0) {
                Verdict::Pass => Some(clp),
                Verdict::Tag(_) => Some(true),
                Verdict::Discard(_) => None,
            };
            assert_eq!(
                got, want,
                "{conformance}, arrival {arrival} at {now} ns, CLP {clp}"
            );
            match want {
                None => discarded += 1,
                Some(behind) if behind != clp => tagged += 1,
                Some(_) => passed += 1,
            }
        }
        let tags = matches!(
            conformance,
            Conformance::Cbr3 | Conformance::Vbr3 | Conformance::Ubr2
        );
        assert!(
            passed > 5000 && discarded > 5000,
            "{conformance}: {passed} {discarded}"
        );
        assert_eq!(tagged > 5000, tags, "{conformance}: {tagged}");
    }
}

/// Whole PDUs in a fabric lose and get tagged exactly the cells that would be one by one, by the same tests.
#[test]
fn a_fabric_treats_the_cells_of_whole_pdus_as_if_they_came_one_by_one() {
    let mut random = Random(3);
    for (traffic, conformance) in contracts() {
        let mut fabric = Fabric::new([9; 16]);
        for _ in 0..2 {
            fabric.add_port(CellRate::OC3, PortLimits::SWITCH);
        }
        let [from, to] = [0, 1].map(|port| PortVc::new(port, Vc::new(0, 100)));
        let police = Policing::All;
        let connect = FabricOp::Connect {
            from,
            to,
            traffic,
            police,
        };
        fabric.apply(connect).unwrap();
        let mut single = Policer::new(&traffic, Policing::All, Duration::ZERO).unwrap();
        let mut line = Arrivals::new(CellRate::OC3);
        let mut want = UpcCounters::default();
        let mut now = Instant::from_secs(1);
        for _ in 0..300 {
            now += Duration::from_micros(random.below(2000));
            let octets = 1 + random.below(3000) as usize;
            let mut run = CellRun::whole(Pdu::new(vec![7; octets]), from.vc);
            run.clp = random.below(3) == 0;
            let timing = line.take(run.count.into(), now);
            let mut passes = Vec::new();
            for index in 0..run.count {
                match single.police(run.clp, timing.of(index), run.rounding()) {
                    Verdict::Pass => passes.push((index, run.clp)),
                    Verdict::Tag(why) => {
                        want.tag(why, 1);
                        passes.push((index, true));
                    }
                    Verdict::Discard(why) => want.discard(why, 1),
                }
            }
            fabric.receive(0, run.timed(timing), now, |_| {});
            let port = fabric.output_mut(1).unwrap();
            let far = Instant::from_secs(3600);
            let runs =
                std::iter::from_fn(|| port.pop(far, u16::MAX).map(|departure| departure.run));
            let out: Vec<_> = runs
                .flat_map(|run| (0..run.count).map(move |cell| (run.first() + cell, run.clp)))
                .collect();
            assert_eq!(out, passes, "{conformance}");
        }
        let view = fabric.connections().next().unwrap();
        assert_eq!(view.upc, want, "{conformance}");
        let dropped = view.counters.dropped.of(DropReason::Policed);
        assert_eq!(dropped, want.discarded_total());
        assert_eq!(view.counters.tagged, want.tagged_total());
        assert!(dropped > 100, "{conformance}: {dropped}");
    }
}

/// A cell that one bucket refuses leaves the other as it was, so that it costs later cells nothing.
#[test]
fn a_refused_cell_fills_no_bucket() {
    let contract = TrafficParams {
        category: Some(ServiceCategory::NrtVbr),
        scr: 1000,
        mbs: 1,
        max_cdv: Duration::from_micros(1),
        ..TrafficParams::cbr(100_000, 0)
    };
    let mut policer = Policer::new(&contract, Policing::Guaranteed, Duration::ZERO).unwrap();
    let at = |us: u64| Instant::from_nanos(us * 1000);
    let refused = |why| Verdict::Discard(why);
    assert_eq!(policer.police(false, at(0), 0), Verdict::Pass);
    // Too early for both: the peak rate is tested first.
    assert_eq!(policer.police(false, at(5), 0), refused(UpcReason::Peak));
    // Within the peak rate, but above the sustainable rate; each such cell comes 10 µs after the one before.
    for us in [10, 20, 30] {
        assert_eq!(
            policer.police(false, at(us), 0),
            refused(UpcReason::Sustained)
        );
    }
    // 1 µs of tolerance.
    assert_eq!(policer.police(false, at(999), 0), Verdict::Pass);
}

/// Best effort is policed only where that is asked for, and ABR and GFR never are.
#[test]
fn best_effort_is_policed_only_on_request() {
    let ubr = |max_pcr| TrafficParams {
        max_pcr,
        ..TrafficParams::ubr(0)
    };
    let polices =
        |traffic: TrafficParams, what| Policer::new(&traffic, what, Duration::ZERO).is_some();
    assert!(!polices(ubr(Some(1000)), Policing::Guaranteed));
    assert!(polices(ubr(Some(1000)), Policing::All));
    assert!(!polices(ubr(None), Policing::All), "no rate");
    for category in [ServiceCategory::Abr, ServiceCategory::Gfr] {
        let traffic = TrafficParams {
            category: Some(category),
            ..TrafficParams::cbr(1000, 0)
        };
        assert!(!polices(traffic, Policing::All));
    }
    assert!(!polices(TrafficParams::cbr(1000, 0), Policing::Off));
    assert_eq!(burst_tolerance(1000, 1000, 9), [Duration::ZERO; 2]);
}
