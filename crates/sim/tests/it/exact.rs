//! Shaped senders, exactly paced senders and policers, beside the generic cell rate algorithm in rational numbers.
//!
//! A sender is alone on all its lines. Its exact cell times are fractions, and all times of a lab are whole
//! nanoseconds. The reference knows no nanoseconds: it judges the fractions. Source: I.371 annex A (continuous-state
//! leaky bucket).

use crate::bench::Bench;

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
    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.next() % (most - least + 1)
    }
    /// One of several numbers, and these are drawn in any case.
    fn one_of<const N: usize>(&mut self, all: [u64; N]) -> u64 {
        all[self.next() as usize % N]
    }
}

/// Source of a sender's cell times.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sender {
    /// Its adapter shapes to the contract; the program always has a PDU for it.
    Shaped,
    /// Its program keeps the contract's rate exactly, and the adapter shapes nothing.
    Paced,
    /// The program is faster than the contract by this many PDUs a second.
    Fast(u64),
}

/// A contract, a sender, and the line at whose end cells are policed: its number on the way.
#[derive(Clone, Copy, Debug)]
struct Case {
    sender: Sender,
    /// PDUs a second of the contract, and cells of a PDU: more than one for VBR.
    pdus: u64,
    burst: u64,
    /// Peak rate of VBR, which is the rate of all lines; 0 for CBR.
    peak: u64,
    /// Nanoseconds.
    tolerance: u64,
    lines: u64,
}

/// Cells that a sender sends.
const CELLS: u64 = 200;

impl Case {
    fn draw(random: &mut Random, sender: Sender) -> Self {
        let several = random.between(2, 30);
        let burst = random.one_of([1, 1, several]);
        let pdus = random.between(1000, 250_000) / burst;
        let (short, long) = (random.between(1, 999), random.between(1000, 50_000));
        Self {
            sender,
            pdus: pdus.max(20),
            burst,
            peak: if burst > 1 {
                random.between(260_000, 350_000)
            } else {
                0
            },
            tolerance: random.one_of([0, 0, short, long]),
            lines: random.between(1, 4),
        }
    }

    fn contract(&self) -> String {
        match self.burst {
            1 => format!("cbr:tx:max_pcr={},rx:none", self.pdus),
            burst => {
                let (rate, peak) = (self.pdus * burst, self.peak);
                format!("nrt-vbr:tx:max_pcr={peak},scr={rate},mbs={burst},rx:none")
            }
        }
    }

    /// The lab: a chain of switches, of which one polices, at its host's link or at the link behind the switch before.
    fn lab(&self) -> String {
        let Self {
            burst,
            tolerance,
            lines,
            ..
        } = *self;
        let rate = match self.peak {
            0 => "oc3".to_owned(),
            peak => format!("{peak}cells/s"),
        };
        let entrance = lines == 1;
        let switches: Vec<_> = (1..=lines)
            .map(|n| format!("s{n}: {{ police: {} }}", entrance && n == 1))
            .collect();
        let links: Vec<_> = (1..lines)
            .map(|n| {
                let police = n + 1 == lines;
                let cdvt = if police {
                    format!(", cdvt: {tolerance}ns")
                } else {
                    String::new()
                };
                format!(
                    "[s{n}, s{}, {{ rate: {rate}, police: {police}{cdvt} }}]",
                    n + 1
                )
            })
            .collect();
        let cdvt = if entrance {
            format!(", cdvt: {tolerance}ns")
        } else {
            String::new()
        };
        let pace = match self.sender {
            Sender::Shaped => "line".to_owned(),
            Sender::Paced => format!("{}pps", self.pdus),
            Sender::Fast(by) => format!("{}pps", self.pdus + by),
        };
        let (count, size) = (CELLS.div_ceil(burst), burst * 48 - 8);
        format!(
            "
switches: {{ {switches} }}
links: [{links}]
clip: {{ w: {{ subnet: 10.7.0.0/24, server: b }} }}
pvcs: [{{ from: a, vc: 0.100, to: b, shape: {shape}, frame_discard: false, qos: '{qos}' }}]
hosts:
  a: {{ on: s1, elan: w, ip: 10.7.0.1, link: {{ rate: {rate}{cdvt} }}, sockets: [{{ name: p, vc: 0.100, pdus: {count}, size: {size}, rate: {pace}, start: 20ms }}] }}
  b: {{ on: s{lines}, elan: w, ip: 10.7.0.2, sockets: [{{ name: q, vc: 0.100, listen: sink }}] }}
until: {until}ms
",
            switches = switches.join(", "),
            links = links.join(", "),
            until = 50 + 1000 * count / self.pdus,
            shape = self.sender == Sender::Shaped,
            qos = self.contract(),
        )
    }

    /// Cells that came to policers, and cells that policers discarded.
    fn run(&self) -> (u64, u64) {
        let lab = aerostat_lab::parse("exact.atm.yml", &self.lab(), &[]);
        let lab = lab.unwrap_or_else(|wrong| panic!("{wrong}")).lab;
        let end = lab.end();
        let switches: Vec<_> = lab.switches().map(|(id, ..)| id).collect();
        let mut bench = Bench::new(lab, 1);
        bench.run(end);
        let mut all = (0, 0);
        for id in switches {
            let node = bench.world.node(aerostat_sim::NodeId(id.0)).expect("on");
            let switch = node.as_switch().expect("a switch");
            for info in switch.permanent() {
                all.0 = all.0.max(info.cells[0]);
                all.1 += info.policed[0];
            }
        }
        all
    }

    /// Cells that buckets discard whose limits are longer by `more` nanoseconds. All numbers are exact: times are whole
    /// multiples of a common fraction of a nanosecond.
    fn discards(&self, more: u64) -> u64 {
        let [pdus, burst, peak, tolerance] =
            [self.pdus, self.burst, self.peak, self.tolerance + more].map(i128::from);
        let fast = match self.sender {
            Sender::Fast(by) => pdus + i128::from(by),
            Sender::Shaped | Sender::Paced => pdus,
        };
        let (sustained, second) = (pdus * burst, 1_000_000_000);
        let line = if peak == 0 { sustained } else { peak };
        let unit = fast * line * sustained;
        let time_of = |rate: i128, count: i128| count * second * (unit / rate);
        let limit = tolerance * unit;
        let tolerated = (burst - 1) * (time_of(sustained, 1) - time_of(line, 1));
        // Increment, limit, level, and the time of the level.
        let mut buckets = vec![(time_of(line, 1), limit, 0, 0)];
        if burst > 1 {
            buckets.push((time_of(sustained, 1), limit + tolerated, 0, 0));
        }
        let mut discarded = 0;
        for cell in 0..(CELLS.div_ceil(self.burst) * self.burst).into() {
            let now = time_of(fast, cell / burst) + time_of(line, cell % burst);
            let drained = buckets
                .iter()
                .map(|(_, _, level, at)| (level - (now - at)).max(0));
            let drained: Vec<i128> = drained.collect();
            if drained
                .iter()
                .zip(&buckets)
                .any(|(level, bucket)| *level > bucket.1)
            {
                discarded += 1;
                continue;
            }
            for (bucket, level) in buckets.iter_mut().zip(drained) {
                (bucket.2, bucket.3) = (level + bucket.0, now);
            }
        }
        discarded
    }
}

/// A source that keeps a contract in rational numbers loses nothing, whatever rate, tolerance and number of lines. A
/// source that does not keep it loses what the reference says with a limit between that of the contract and that with
/// the clock's nanoseconds, of which there is one at the source and one for each line: the policer allows for them, and
/// the times have them.
#[test]
fn policers_agree_with_rational_arithmetic() {
    let cases = std::env::var("AEROSTAT_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok());
    let (mut random, mut lost, mut fraction) = (Random(20), 0, 0);
    for case in 0..cases.unwrap_or(200) {
        let fast = Sender::Fast(random.between(1, 400));
        let drawn = random.0;
        for sender in [Sender::Shaped, Sender::Paced, fast] {
            random.0 = drawn;
            let case_ = Case::draw(&mut random, sender);
            let (came, got) = case_.run();
            let exact = case_.discards(0);
            let with_clock = case_.discards(2 * (1 + case_.lines));
            fraction += u64::from(1_000_000_000 % (case_.pdus * case_.burst) > 0);
            assert_eq!(came, CELLS.div_ceil(case_.burst) * case_.burst, "{case_:?}");
            let least = exact.min(with_clock);
            assert!(
                (least..=exact.max(with_clock)).contains(&got),
                "case {case}: {got}, not {exact}: {case_:?}"
            );
            if !matches!(sender, Sender::Fast(_)) {
                assert_eq!((exact, got), (0, 0), "case {case}: {case_:?}");
            }
            lost += got;
        }
    }
    assert!(
        lost > 1000 && fraction > 100,
        "{lost} lost, {fraction} with a fraction"
    );
}
