//! Faults of a lab file, and links that change.

use super::leaves::{LinkRate, Probability, Time};
use crate::field::{At, SomeWays, section};
use core::ops::RangeInclusive;

/// Range of the length of a block.
pub(crate) const BLOCK: RangeInclusive<&str> = "1ms"..="1s";
/// Range of the delay of a link: a hop over a geostationary satellite takes 0.3 s, and one to the moon 1.3 s.
pub(crate) const DELAY: RangeInclusive<&str> = "0s"..="10s";
/// Range of the time that a link trains.
pub(crate) const TRAINING: RangeInclusive<&str> = "1ms"..="1h";

section! {
    /// Something that breaks, is mended or changes: a time, and one of the first six of the others.
    FaultFile {
        /// When (`8s`).
        at: At<Time>;
        /// A node that stops, or node/service (mpc, mps, lecs, les, bus).
        crash: Option<At<String>>;
        /// A node or node/service that starts again.
        restart: Option<At<String>>;
        /// A link that loses everything.
        link_down: Option<At<String>>;
        /// A link that works again.
        link_up: Option<At<String>>;
        /// A link that behaves differently from now on, as the keys of a link that stand beside say. Each of these may
        /// have one value, or `up:`, `down:` or both.
        change: Option<At<String>>;
        /// A link that retrains: it is down for `duration`, and then has the values that stand beside.
        retrain: Option<At<String>>;
        /// With retrain: how long the link is down, 1ms to 1h.
        duration: Option<At<Time>>;
        /// New rate of the link.
        rate: Option<SomeWays<LinkRate>>;
        /// New delay of the link, 0s to 10s.
        delay: Option<SomeWays<Time>>;
        /// New probability that a cell is lost.
        loss: Option<SomeWays<Probability>>;
        /// New probability that a bit is inverted.
        bit_errors: Option<SomeWays<Probability>>;
        /// New probability that a block is lost.
        block_errors: Option<SomeWays<Probability>>;
        /// New length of a block, 1ms to 1s.
        block: Option<SomeWays<Time>>;
    }
}
