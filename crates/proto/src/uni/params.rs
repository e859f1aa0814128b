//! Parameters of an interface: timers and limits, with their defaults and sources.

use crate::Duration;

use super::{Side, Version};

/// Timer values. Source: Q.2931 §7, Q.2971 §12, UNI 3.1 §5.7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerValues {
    /// ALERTING received until CONNECT: 180 s.
    pub t301: Duration,
    /// SETUP sent until any answer: 4 s, one resend.
    pub t303: Duration,
    /// RELEASE sent until its answer: 30 s, one resend. A Linux host answers when its application closes.
    pub t308: Duration,
    /// Link lost with active calls until it is back: 10 s.
    pub t309: Duration,
    /// CALL PROCEEDING received until the next answer: 10 s; a user of UNI 4.0 waits 30 s.
    pub t310: Duration,
    /// CONNECT sent by a user until CONNECT ACKNOWLEDGE: 4 s.
    pub t313: Duration,
    /// RESTART sent until its answer: 120 s, one resend.
    pub t316: Duration,
    /// RESTART received until the owner has freed the resources: 90 s, less than the peer's T316.
    pub t317: Duration,
    /// STATUS ENQUIRY sent until its answer: 4 s, one resend.
    pub t322: Duration,
    /// PARTY ALERTING received until the next answer: 180 s.
    pub t397: Duration,
    /// DROP PARTY sent until its answer: 4 s.
    pub t398: Duration,
    /// ADD PARTY sent until any answer: 14 s at the network, 34 s at a user.
    pub t399: Duration,
}

impl TimerValues {
    /// The standard's values.
    #[must_use]
    pub const fn standard(side: Side, version: Version) -> Self {
        let s = Duration::from_secs;
        let patient_user = matches!((side, version), (Side::User, Version::Uni40));
        Self {
            t301: s(180),
            t303: s(4),
            t308: s(30),
            t309: s(10),
            t310: if patient_user { s(30) } else { s(10) },
            t313: s(4),
            t316: s(120),
            t317: s(90),
            t322: s(4),
            t397: s(180),
            t398: s(4),
            t399: if matches!(side, Side::User) {
                s(34)
            } else {
                s(14)
            },
        }
    }
}

/// Bounds on what the peer or the owner can make grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Limit of calls on the interface, both directions together. A SETUP beyond it is answered with cause 47.
    pub calls: usize,
    /// Limit of parties of one call. An ADD PARTY beyond it is answered with cause 92 (3.x) or 32 (4.0).
    pub parties: usize,
    /// Limit of this side's restarts that wait for the one in progress.
    pub restarts: usize,
    /// Largest VPI; a label beyond it is refused with cause 35.
    pub max_vpi: u16,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            calls: 4096,
            parties: 1024,
            restarts: 16,
            max_vpi: 255,
        }
    }
}

/// Configuration of one interface; both ends must agree on most of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// The side of this end.
    pub side: Side,
    /// Version of the interface.
    pub version: Version,
    /// Timers.
    pub timers: TimerValues,
    /// Bounds.
    pub limits: Limits,
    /// True if the owner forwards messages, like a switch: it then gets undefined elements with the pass-along request.
    /// A host has no use for them.
    pub passes_along: bool,
}

impl Params {
    /// Standard timers, default limits; nothing is passed along.
    #[must_use]
    pub fn new(side: Side, version: Version) -> Self {
        Self {
            side,
            version,
            timers: TimerValues::standard(side, version),
            limits: Limits::default(),
            passes_along: false,
        }
    }
}
