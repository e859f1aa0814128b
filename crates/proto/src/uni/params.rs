//! Parameters of an interface: timers and limits, with their defaults and sources.

use crate::Duration;
use crate::time::{ms, s};

use super::{Side, Version, location};

crate::parameters! {
    /// Timer values; the defaults are those of the network. Source: Q.2931 §7, Q.2971 §12, UNI 3.1 §5.7.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct TimerValues, TimerRanges, split {
        /// ALERTING until CONNECT.
        t301: Duration = s(180), s(1)..=s(600);
        /// SETUP until any answer.
        ///
        /// One resend.
        t303: Duration = s(4), ms(100)..=s(60);
        /// RELEASE until its answer.
        ///
        /// One resend. A Linux host answers when its application closes.
        t308: Duration = s(30), ms(100)..=s(600);
        /// How long calls outlive a lost signalling link.
        t309: Duration = s(10), ms(100)..=s(600);
        /// CALL PROCEEDING until the next answer.
        t310: Duration = s(10), ms(100)..=s(600);
        /// CONNECT until CONNECT ACKNOWLEDGE.
        t313: Duration = s(4), ms(100)..=s(60);
        /// RESTART until its answer.
        ///
        /// One resend.
        t316: Duration = s(120), s(1)..=s(600);
        /// RESTART received until its resources are free (less than the peer's T316).
        t317: Duration = s(90), s(1)..=s(600);
        /// STATUS ENQUIRY until its answer.
        ///
        /// One resend.
        t322: Duration = s(4), ms(100)..=s(60);
        /// PARTY ALERTING until the next answer.
        t397: Duration = s(180), s(1)..=s(600);
        /// DROP PARTY until its answer.
        t398: Duration = s(4), ms(100)..=s(60);
        /// ADD PARTY until any answer.
        t399: Duration = s(14), ms(100)..=s(600);
    }
}

impl TimerValues {
    /// The standard's values.
    #[must_use]
    pub const fn standard(side: Side, version: Version) -> Self {
        let mut values = Self::DEFAULT;
        if matches!(side, Side::User) {
            values.t399 = s(34);
            if matches!(version, Version::Uni40) {
                values.t310 = s(30);
            }
        }
        values
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
    /// Location of causes of this interface, one of [`location`].
    pub location: u8,
}

impl Params {
    /// Standard timers, default limits; nothing is passed along. Causes are those of a user, or of the network that
    /// serves it.
    #[must_use]
    pub fn new(side: Side, version: Version) -> Self {
        Self {
            side,
            version,
            timers: TimerValues::standard(side, version),
            limits: Limits::default(),
            passes_along: false,
            location: match side {
                Side::User => location::USER,
                Side::Network => location::LOCAL,
            },
        }
    }
}
