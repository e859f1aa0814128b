//! The E-model: the quality of a telephone call, computed from its delay and its losses.
//!
//! All parameters except the delays, the codec and the loss have the defaults of Table 2 of ITU-T G.107. With these a
//! connection without delay and loss has R = 93.2. The one-way delay is used three times, as T, Ta and Tr/2. The
//! telephones cancel no echo beyond the default TELR of 65 dB.
//!
//! A call here is G.711 in packets of 20 ms behind RTP, with packet loss concealment (Ie = 0, Bpl = 25.1, G.113
//! appendix I). The jitter buffer has a fixed depth: a packet is lost if its delay exceeds that of the fastest packet
//! by more than this depth.
//!
//! **Standards.** ITU-T G.107 (03/2005) clause 3; G.113 (11/2007) appendix I, Table I.4; mean opinion score: G.107
//! annex B. **Not implemented**: loss in bursts (BurstR = 1), wide-band codecs.

use crate::distribution::Distribution;
use aerostat_proto::Duration;
// Functions of the platform's library may differ in the last digit from one machine to another.
use libm::{exp, log2, log10, pow};

/// UDP payload of a packet: 160 samples behind the 12 octets of RTP.
pub const PAYLOAD: usize = 172;
/// Packets per second.
pub const PACKETS: f64 = 50.0;
/// Duration of the speech in one packet; the sender collects it first.
pub const PACKET_TIME: Duration = Duration::from_millis(20);
/// Depth of the receiver's jitter buffer.
pub const JITTER_BUFFER: Duration = Duration::from_millis(40);
/// Equipment impairment of the codec, and its robustness against random loss.
const IE: f64 = 0.0;
const BPL: f64 = 25.1;

/// The quality of a call in one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quality {
    /// Mouth-to-ear delay: packet time, fastest packet, jitter buffer.
    pub delay: Duration,
    /// Packets lost or too late, per cent.
    pub loss_percent: f64,
    /// Transmission rating factor, here 0 to 93.2; above 80 users are satisfied, below 60 nearly all users are
    /// dissatisfied.
    pub r: f64,
    /// Mean opinion score of this rating, 1 to 4.5.
    pub mos: f64,
}

impl Quality {
    /// The quality of a call whose packets had these network delays, and of which `lost` further packets were lost.
    /// `None` without a packet.
    #[must_use]
    pub fn of(delays: &Distribution, lost: u64) -> Option<Self> {
        let fastest = Duration::from_nanos(delays.percentile_ns(0));
        let late = delays.above(fastest + JITTER_BUFFER);
        let all = delays.count() + lost;
        (delays.count() > 0).then(|| {
            let delay = PACKET_TIME + fastest + JITTER_BUFFER;
            let loss_percent = (lost + late) as f64 * 100.0 / all as f64;
            let r = rating(delay.as_secs_f64() * 1e3, loss_percent);
            let mos = mos(r);
            Self {
                delay,
                loss_percent,
                r,
                mos,
            }
        })
    }
}

fn square(value: f64) -> f64 {
    value * value
}

/// R for a one-way delay in ms and a random loss in per cent.
#[must_use]
pub fn rating(delay_ms: f64, loss_percent: f64) -> f64 {
    let (slr, rlr, stmr, ds, telr, wepl) = (8.0_f64, 2.0_f64, 15.0_f64, 3.0_f64, 65.0_f64, 110.0);
    let (lstr, ps, pr, nc, nfor, qdu) = (18.0_f64, 35.0_f64, 35.0_f64, -70.0_f64, -64.0_f64, 1.0);
    let (t, ta, tr) = (delay_ms, delay_ms, 2.0 * delay_ms);
    let power = |db: f64| pow(10.0, db / 10.0);
    let olr = slr + rlr;
    // Basic signal-to-noise ratio, G.107 §3.2.
    let nos = ps - slr - ds - 100.0 + 0.004 * square(ps - olr - ds - 14.0);
    let pre = pr + 10.0 * log10(1.0 + power(10.0 - lstr));
    let nor = rlr - 121.0 + pre + 0.008 * square(pre - 35.0);
    let no = 10.0 * log10(power(nc) + power(nos) + power(nor) + power(nfor + rlr));
    let ro = 15.0 - 1.5 * (slr + no);
    // Simultaneous impairments, §3.3: loudness, sidetone, quantization.
    let xolr = olr + 0.2 * (64.0 + no - rlr);
    let loud = 20.0 * (pow(1.0 + pow(xolr / 8.0, 8.0), 1.0 / 8.0) - xolr / 8.0);
    let stmro = -10.0 * log10(power(-stmr) + exp(-t / 4.0) * power(-telr));
    let side = 12.0 * pow(1.0 + pow((stmro - 13.0) / 6.0, 8.0), 1.0 / 8.0)
        - 28.0 * pow(1.0 + pow((stmro + 1.0) / 19.4, 35.0), 1.0 / 35.0)
        - 13.0 * pow(1.0 + pow((stmro - 3.0) / 33.0, 13.0), 1.0 / 13.0)
        + 29.0;
    let q = 37.0 - 15.0 * log10(qdu);
    let g = 1.07 + 0.258 * q + 0.0602 * q * q;
    let y = (ro - 100.0) / 15.0 + 46.0 / 8.4 - g / 9.0;
    let z = 46.0 / 30.0 - g / 40.0;
    let quantized = 15.0 * log10(1.0 + pow(10.0, y) + pow(10.0, z));
    // Delay, §3.4: talker echo, listener echo, too long a delay as such.
    let roe = -1.5 * (no - rlr);
    let terv = telr - 40.0 * log10((1.0 + t / 10.0) / (1.0 + t / 150.0)) + 6.0 * exp(-0.3 * t * t);
    let re = 80.0 + 2.5 * (terv - 14.0);
    let half = (roe - re) / 2.0;
    let talker = (half + (half * half + 100.0).sqrt() - 1.0) * (1.0 - exp(-t));
    let rle = 10.5 * (wepl + 7.0) * pow(tr + 1.0, -0.25);
    let half = (ro - rle) / 2.0;
    let listener = half + (half * half + 169.0).sqrt();
    let long = if ta <= 100.0 {
        0.0
    } else {
        let x = log2(ta / 100.0);
        let root = |v: f64| pow(1.0 + pow(v, 6.0), 1.0 / 6.0);
        25.0 * (root(x) - 3.0 * root(x / 3.0) + 2.0)
    };
    let equipment = IE + (95.0 - IE) * loss_percent / (loss_percent + BPL);
    let r = ro - (loud + side + quantized) - (talker + listener + long) - equipment;
    r.clamp(0.0, 100.0)
}

/// Mean opinion score of a rating: G.107 annex B.
#[must_use]
pub fn mos(r: f64) -> f64 {
    match r {
        r if r <= 0.0 => 1.0,
        r if r >= 100.0 => 4.5,
        r => (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64, by: f64) {
        assert!((a - b).abs() <= by, "{a} is not {b}");
    }

    #[test]
    fn defaults_give_the_rating_of_the_standard() {
        near(rating(0.0, 0.0), 93.2, 0.05);
        // G.107 annex B, Table B.1: MOS for R = 90, 80, 70, 60, 50.
        for (r, score) in [
            (90.0, 4.34),
            (80.0, 4.03),
            (70.0, 3.60),
            (60.0, 3.10),
            (50.0, 2.58),
        ] {
            near(mos(r), score, 0.01);
        }
        assert_eq!((mos(-1.0), mos(101.0)), (1.0, 4.5));
    }

    #[test]
    fn delay_and_loss_cost() {
        // Half the codec's robustness lost costs a third of 95: Ie,eff by definition.
        near(rating(0.0, 0.0) - rating(0.0, BPL), 95.0 / 2.0, 1e-9);
        let mut last = 100.0;
        // (The formula for talker echo has a local minimum below 3 ms.)
        for ms in 3..500 {
            let r = rating(f64::from(ms), 0.0);
            assert!(r <= last + 1e-9, "{ms} ms");
            last = r;
        }
        // A delay of up to 150 ms is acceptable, one of 400 ms is not (G.114).
        assert!(rating(150.0, 0.0) > 80.0 && rating(400.0, 0.0) < 70.0);
        assert_eq!(rating(10_000.0, 100.0), 0.0);
    }

    #[test]
    fn what_is_late_is_lost() {
        let mut delays = Distribution::default();
        assert_eq!(Quality::of(&delays, 3), None);
        for _ in 0..90 {
            delays.record(Duration::from_millis(10));
        }
        for _ in 0..5 {
            delays.record(Duration::from_millis(49));
            delays.record(Duration::from_millis(51));
        }
        let quality = Quality::of(&delays, 0).expect("packets");
        near(quality.loss_percent, 5.0, 1e-9);
        near(quality.delay.as_secs_f64(), 0.07, 0.001);
        near(
            Quality::of(&delays, 100).expect("packets").loss_percent,
            52.5,
            1e-9,
        );
    }
}
