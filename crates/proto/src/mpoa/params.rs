//! Parameters of the MPOA client, with the ranges and defaults of the standard.
//!
//! Source: MPOA 1.1 §4.1 and annex F (MPC-p1..p6, MPC-c1, MPC-c2). The parameters of the server are in `mps/params.rs`.

use crate::parameters;
use crate::requests::{Repeats, RetryRule};
use crate::time::s;
use crate::{Duration, Instant};
use aerostat_wire::lane::{Tlv, TlvType};
use core::net::IpAddr;

/// MPC-c1: factor between successive waits of a retried request.
pub const RETRY_MULTIPLIER: u32 = 2;
/// MPC-c2: how long an MPS is trusted before its first Keep-Alive.
pub const INITIAL_KEEP_ALIVE_LIFETIME: Duration = Duration::from_secs(60);

/// MTU of the largest LANE frame, octets. A larger value in a peer's entry is a byte-order mistake (Linux sends 56325
/// for 1500) and counts as unknown. Source: recorded packets of linux-atm.
pub(crate) const MAX_MTU: u16 = 18190 - 16;
/// LLC header and tag before a packet on a shortcut, octets.
pub(crate) const ENCAPSULATION: u16 = 12;
/// SDU that an end of shortcuts accepts, octets: a caller may ask for more room than its packets need (1600 octets in
/// the thesis), and its packets are limited by the MTU of the reply.
pub(crate) const SHORTCUT_SDU: u16 = MAX_MTU + ENCAPSULATION;

parameters! {
    /// MPC-p1 to MPC-p6.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct MpcParams, MpcRanges, split {
        /// MPC-p1: frames to one destination within `flow_time` that make a flow.
        flow_frames: u16 = 10, 1..=65535;
        /// MPC-p2: see `flow_frames`.
        flow_time: Duration = s(1), s(1)..=s(60);
        /// MPC-p3: whether flows of IPv4 are detected.
        ipv4: bool = true;
        /// MPC-p3: whether flows of IPv6 are detected.
        ipv6: bool = true;
        /// Wait before the first retry of a request (p4).
        initial_retry: Duration = s(5), s(1)..=s(300);
        /// How long retries go on (p5).
        ///
        /// The sum of the waits after which a request has failed.
        retry_max: Duration = s(40), s(10)..=s(300);
        /// Pause after giving up (p6).
        ///
        /// How long a destination is left alone after a failure.
        hold_down: Duration = s(160), s(30)..=s(1200);
    }
}

impl MpcParams {
    /// True if flows to this address are detected.
    #[must_use]
    pub const fn detects(&self, destination: IpAddr) -> bool {
        match destination {
            IpAddr::V4(_) => self.ipv4,
            IpAddr::V6(_) => self.ipv6,
        }
    }
    /// Takes over one TLV of an LE_CONFIGURE response; `false` if the TLV is no parameter of an MPC, has not two
    /// octets, or is out of range. p3 is a list of protocols and is ignored.
    pub fn apply_tlv(&mut self, tlv: &Tlv) -> bool {
        let Ok(value) = <[u8; 2]>::try_from(tlv.value.as_slice()).map(u16::from_be_bytes) else {
            return false;
        };
        let ranges = Self::RANGES;
        let (range, slot) = match tlv.kind {
            TlvType::MPC_P1 if ranges.flow_frames.contains(value) => {
                self.flow_frames = value;
                return true;
            }
            TlvType::MPC_P2 => (ranges.flow_time, &mut self.flow_time),
            TlvType::MPC_P4 => (ranges.initial_retry, &mut self.initial_retry),
            TlvType::MPC_P5 => (ranges.retry_max, &mut self.retry_max),
            TlvType::MPC_P6 => (ranges.hold_down, &mut self.hold_down),
            _ => return false,
        };
        let seconds = s(value.into());
        if range.contains(seconds) {
            *slot = seconds;
        }
        range.contains(seconds)
    }
}

impl MpcParams {
    /// Repetitions of a request that was sent at `now` for the first time: waits of p4, then c1 times the wait before;
    /// their sum is p5.
    ///
    /// With the defaults requests go out at 0, 5, 15 and 35 s, and the failure is known at 40 s.
    #[must_use]
    pub fn repeats(&self, now: Instant) -> Repeats {
        let rule = RetryRule {
            initial: self.initial_retry,
            retry_limit: self.retry_max,
            give_up: self.retry_max,
        };
        Repeats::first(rule, RETRY_MULTIPLIER, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mpoa::mps::MpsParams;
    use crate::parameters::{Parameter, Parameters as _, Value};

    /// The times at which a request is sent, and the time of its failure.
    fn schedule(params: &MpcParams) -> (Vec<u64>, u64) {
        let mut retry = params.repeats(Instant::ZERO);
        let mut sends = vec![0];
        loop {
            let at = retry.at();
            let seconds = at.as_nanos() / 1_000_000_000;
            if !retry.step(at) {
                return (sends, seconds);
            }
            sends.push(seconds);
        }
    }

    #[test]
    fn retry_times() {
        assert_eq!(schedule(&MpcParams::default()), (vec![0, 5, 15, 35], 40));
        let short = MpcParams {
            initial_retry: Duration::from_secs(20),
            retry_max: Duration::from_secs(10),
            ..MpcParams::default()
        };
        assert_eq!(schedule(&short), (vec![0], 10));
    }

    #[test]
    fn tlvs_within_their_range() {
        let mut params = MpcParams::default();
        assert!(params.apply_tlv(&Tlv::new(TlvType::MPC_P1, [0, 1])));
        assert!(params.apply_tlv(&Tlv::new(TlvType::MPC_P6, [0, 30])));
        assert!(!params.apply_tlv(&Tlv::new(TlvType::MPC_P6, [0, 29])));
        assert!(!params.apply_tlv(&Tlv::new(TlvType::MPC_P2, [0, 0, 0, 1])));
        assert!(!params.apply_tlv(&Tlv::new(TlvType::MPC_P1, [0, 0])));
        assert!(!params.apply_tlv(&Tlv::u16(TlvType::CONTROL_TIMEOUT, 1)));
        assert_eq!(
            (params.flow_frames, params.hold_down),
            (1, Duration::from_secs(30))
        );
        let wild = MpcParams {
            hold_down: Duration::ZERO,
            flow_frames: 0,
            ..params
        };
        assert_eq!(
            wild.in_range(),
            MpcParams {
                hold_down: Duration::from_secs(30),
                flow_frames: 1,
                ..MpcParams::default()
            }
        );
    }

    /// The rows of the document's table for client or server: symbol, smallest, default and largest value, key.
    fn documented<'a>(text: &'a str, of: &'a str) -> impl Iterator<Item = Vec<&'a str>> {
        let rows = text.lines().filter(move |line| line.starts_with(of));
        let cells = rows.map(|row| row.split('|').map(str::trim).skip(1).collect::<Vec<_>>());
        cells.filter(|row| !row[1].is_empty())
    }

    #[test]
    fn the_document_has_the_ranges_and_the_names_of_the_parameters() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/protocols/mpoa.md");
        let text = &std::fs::read_to_string(path).unwrap();
        let client = MpcParams::DEFAULT.with_ranges();
        let server = MpsParams::DEFAULT.with_ranges();
        for (of, parameters) in [("| MPC-p", client), ("| MPS-p", server)] {
            let rows: Vec<_> = documented(text, of).collect();
            assert_eq!(rows.len(), parameters.len(), "{rows:?}");
            for (row, Parameter { name, range, .. }) in rows.iter().zip(parameters) {
                let numbers = [range.min, range.default, range.max].map(|value| match value {
                    Value::Count(count) => count,
                    Value::Time(time) => time.as_secs(),
                    other => panic!("{name}: {other}"),
                });
                let told = [row[1], row[2], row[3]].map(|cell| {
                    cell.split(' ')
                        .next()
                        .and_then(|number| number.parse().ok())
                });
                assert_eq!(told, numbers.map(Some), "{row:?}");
                let key = match name {
                    "flow_frames" | "flow_time" => "flow_detect",
                    name => name,
                };
                assert!(row[4].starts_with(&format!("`{key}:`")), "{row:?}");
            }
        }
    }
}
