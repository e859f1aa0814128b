//! Timers of protocols.

use aerostat_node::ip::router::ArpParams;
use aerostat_proto::lane::{LecParams, ServerParams};
use aerostat_proto::sscop;
use aerostat_proto::uni::{Side, TimerValues, Version};

/// The parameters of protocols that all nodes have in common: those of the standards, or those of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timers {
    /// LANE clients that speak LANE v1 only.
    pub lec_v1: LecParams,
    /// Other LANE clients.
    pub lec_v2: LecParams,
    /// LES and BUS.
    pub les: ServerParams,
    /// ARP of embedded hosts and routers.
    pub arp: ArpParams,
    /// Signalling links, at both ends.
    pub sscop: sscop::Params,
    /// Call control, by side and version; see [`Timers::uni`].
    pub uni: [(Side, Version, TimerValues); 6],
}

impl Default for Timers {
    fn default() -> Self {
        let sides = [Side::Network, Side::User];
        let versions = [Version::Uni30, Version::Uni31, Version::Uni40];
        let uni = |n: usize| {
            let (side, version) = (sides[n % 2], versions[n / 2]);
            (side, version, TimerValues::standard(side, version))
        };
        Self {
            lec_v1: LecParams::V1,
            lec_v2: LecParams::DEFAULT,
            les: ServerParams::DEFAULT,
            arp: ArpParams::DEFAULT,
            sscop: sscop::Params::UNI,
            uni: core::array::from_fn(uni),
        }
    }
}

impl Timers {
    /// The timers of call control on one side of an interface.
    #[must_use]
    pub fn uni(&self, side: Side, version: Version) -> TimerValues {
        let mut all = self.uni.iter();
        let found = all.find(|(of, speaks, _)| (*of, *speaks) == (side, version));
        found.map_or_else(
            || TimerValues::standard(side, version),
            |(.., values)| *values,
        )
    }
}
