//! Parameters of the MPOA client, with the ranges and defaults of the standard.
//!
//! Source: MPOA 1.1 §4.1 and annex F (MPC-p1..p6, MPC-c1, MPC-c2). The parameters of the server are in `mps/params.rs`.

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

/// Smallest, default and largest value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Smallest value.
    pub min: u16,
    /// Default value.
    pub default: u16,
    /// Largest value.
    pub max: u16,
}

impl Range {
    /// MPC-p1, frames.
    pub const P1: Self = Self::new(1, 10, 65535);
    /// MPC-p2, seconds.
    pub const P2: Self = Self::new(1, 1, 60);
    /// MPC-p4, seconds.
    pub const P4: Self = Self::new(1, 5, 300);
    /// MPC-p5, seconds.
    pub const P5: Self = Self::new(10, 40, 300);
    /// MPC-p6, seconds.
    pub const P6: Self = Self::new(30, 160, 1200);

    const fn new(min: u16, default: u16, max: u16) -> Self {
        Self { min, default, max }
    }
    /// True if `value` lies in the range.
    #[must_use]
    pub const fn contains(self, value: u16) -> bool {
        self.min <= value && value <= self.max
    }
    const fn default_s(self) -> Duration {
        Duration::from_secs(self.default as u64)
    }
    fn clamp_s(self, value: Duration) -> Duration {
        let (min, max) = (self.min.into(), self.max.into());
        value.clamp(Duration::from_secs(min), Duration::from_secs(max))
    }
}

/// MPC-p1 to MPC-p6.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MpcParams {
    /// MPC-p1: frames to one destination within `frame_time` that make a flow.
    pub frame_count: u16,
    /// MPC-p2.
    pub frame_time: Duration,
    /// MPC-p3: whether flows of IPv4 are detected.
    pub ipv4: bool,
    /// MPC-p3: whether flows of IPv6 are detected.
    pub ipv6: bool,
    /// MPC-p4: wait before the first retry of a request.
    pub retry_initial: Duration,
    /// MPC-p5: sum of the waits after which a request has failed.
    pub retry_max: Duration,
    /// MPC-p6: how long a destination is left alone after a failure.
    pub hold_down: Duration,
}

impl Default for MpcParams {
    fn default() -> Self {
        Self {
            frame_count: Range::P1.default,
            frame_time: Range::P2.default_s(),
            ipv4: true,
            ipv6: true,
            retry_initial: Range::P4.default_s(),
            retry_max: Range::P5.default_s(),
            hold_down: Range::P6.default_s(),
        }
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
    /// The same parameters with each value moved into its range.
    #[must_use]
    pub fn clamped(mut self) -> Self {
        self.frame_count = self.frame_count.max(Range::P1.min);
        self.frame_time = Range::P2.clamp_s(self.frame_time);
        self.retry_initial = Range::P4.clamp_s(self.retry_initial);
        self.retry_max = Range::P5.clamp_s(self.retry_max);
        self.hold_down = Range::P6.clamp_s(self.hold_down);
        self
    }
    /// Takes over one TLV of an LE_CONFIGURE response; `false` if the TLV is no parameter of an MPC, has not two
    /// octets, or is out of range. p3 is a list of protocols and is ignored.
    pub fn apply_tlv(&mut self, tlv: &Tlv) -> bool {
        let Ok(value) = <[u8; 2]>::try_from(tlv.value.as_slice()).map(u16::from_be_bytes) else {
            return false;
        };
        let seconds = Duration::from_secs(value.into());
        let (range, slot) = match tlv.kind {
            TlvType::MPC_P1 if Range::P1.contains(value) => {
                self.frame_count = value;
                return true;
            }
            TlvType::MPC_P2 => (Range::P2, &mut self.frame_time),
            TlvType::MPC_P4 => (Range::P4, &mut self.retry_initial),
            TlvType::MPC_P5 => (Range::P5, &mut self.retry_max),
            TlvType::MPC_P6 => (Range::P6, &mut self.hold_down),
            _ => return false,
        };
        if range.contains(value) {
            *slot = seconds;
        }
        range.contains(value)
    }
}

/// Schedule of a retried request: waits of p4, then c1 times the wait before; their sum is p5.
///
/// With the defaults requests go out at 0, 5, 15 and 35 s, and the failure is known at 40 s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// When the next step is due.
    pub at: Instant,
    /// Requests sent so far.
    pub sent: u32,
    interval: Duration,
    left: Duration,
}

impl Retry {
    /// A request was sent at `now` for the first time.
    #[must_use]
    pub fn first(now: Instant, params: &MpcParams) -> Self {
        let wait = params.retry_initial.min(params.retry_max);
        Self {
            at: now + wait,
            sent: 1,
            interval: wait.saturating_mul(RETRY_MULTIPLIER),
            left: params.retry_max.saturating_sub(wait),
        }
    }
    /// The wait is over: `true` to send again, `false` if the request has failed.
    pub fn step(&mut self, now: Instant) -> bool {
        if self.left.is_zero() {
            return false;
        }
        let wait = self.interval.min(self.left);
        self.at = now + wait;
        self.sent += 1;
        self.left -= wait;
        self.interval = self.interval.saturating_mul(RETRY_MULTIPLIER);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times at which a request is sent, and the time of its failure.
    fn schedule(params: &MpcParams) -> (Vec<u64>, u64) {
        let mut retry = Retry::first(Instant::ZERO, params);
        let mut sends = vec![0];
        loop {
            let at = retry.at;
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
            retry_initial: Duration::from_secs(20),
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
            (params.frame_count, params.hold_down),
            (1, Duration::from_secs(30))
        );
        let wild = MpcParams {
            hold_down: Duration::ZERO,
            frame_count: 0,
            ..params
        };
        assert_eq!(
            wild.clamped(),
            MpcParams {
                hold_down: Duration::from_secs(30),
                frame_count: 1,
                ..MpcParams::default()
            }
        );
    }
}
