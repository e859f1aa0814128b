//! The buffers whose levels are results: `occupancy:` of a lab file.

use super::LinkId;
use aerostat_proto::Duration;

/// Buffers whose levels are sampled, and times of the samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Time between two samples, at least a microsecond.
    pub every: Duration,
    /// The first sample.
    pub from: Duration,
    /// Links; the ports of switches at either end are looked at.
    pub links: Vec<LinkId>,
}
