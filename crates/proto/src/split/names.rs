//! Names of traces and of their fields that daemons use: one list for each role.
//!
//! The name of a trace is a word of the program, not of the peer. A name that is in no list becomes [`OTHER`], and a
//! field that is in no list is left out. So the list of a role must contain all its names; a test of the role checks
//! this.

use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Replaces the name of a trace that is in no list.
pub const OTHER: &str = "daemon.other";

const ALL: &[&[&str]] = &[&[OTHER], MPCD, LECD, LANE_SERVERS, SIGD, ILMID, MPSD];

const MPCD: &[&str] = &[
    "mpc.control.down",
    "mpc.control.ignored",
    "mpc.control.up",
    "mpc.down",
    "mpc.error",
    "mpc.imposition.accepted",
    "mpc.imposition.refused",
    "mpc.imposition.withdrawn",
    "mpc.keepalive.dead",
    "mpc.purge.data_plane",
    "mpc.purge.sent",
    "mpc.resolution.retry",
    "mpc.resolution.sent",
    "mpc.up",
    "cache_id",
    "code",
    "destination",
    "id",
    "ingress",
    "mps",
    "peer",
    "tag",
    "vc",
    "itf",
];

const LECD: &[&str] = &[
    "lane.adopted",
    "lane.bus-lost",
    "lane.call-refused",
    "lane.configured",
    "lane.direct-idle",
    "lane.direct-path",
    "lane.direct-refused",
    "lane.direct-up",
    "lane.failed",
    "lane.joined",
    "lane.lecs-call",
    "lane.lost",
    "lane.unattended",
    "lane.unresolved",
    "bus",
    "caller",
    "delay_ms",
    "elan",
    "lecid",
    "les",
    "kind",
    "llc",
    "mac",
    "seconds",
    "version",
    "why",
];

const LANE_SERVERS: &[&str] = &[
    "bus.forward",
    "bus.over-quota",
    "lecs.assigned",
    "lecs.full",
    "lecs.refused",
    "lecs.takeover",
    "les.full",
    "les.join",
    "les.leave",
    "les.over-quota",
    "les.stands-by",
    "les.started",
    "address",
    "calls",
    "clients",
    "elan",
    "lecid",
    "les",
    // States of a client of the LES.
    "connected",
    "joined",
    "joining",
];

const SIGD: &[&str] = &[
    "saal.down",
    "saal.up",
    "sscop.error",
    "uni.call",
    "uni.down",
    "uni.refused",
    "uni.restart",
    "uni.side",
    "uni.up",
    "uni.version",
    "code",
    "vc",
];

const ILMID: &[&str] = &[
    "ilmi.address",
    "ilmi.link",
    "ilmi.lost",
    "ilmi.refused",
    "address",
];

const MPSD: &[&str] = &[
    "mps.client.idle",
    "mps.client.lost",
    "mps.egress.removed",
    "mps.imposition.accepted",
    "mps.imposition.refused",
    "mps.imposition.sent",
    "mps.malformed",
    "mps.nhrp.error",
    "mps.nhrp.fault",
    "mps.nhrp.kept",
    "mps.nhrp.loop",
    "mps.nhrp.registered",
    "mps.nhrp.request",
    "mps.nhrp.withdrawn",
    "mps.purge",
    "mps.resolution.given-up",
    "mps.resolution.received",
    "mps.resolution.refused",
    "mps.resolution.replied",
    "mps.resolution.router",
    "mps.resolution.translated",
    "mps.resolution.untold",
    "mps.started",
    "mps.stopped",
    "mps.trigger",
    "mps.unexpected",
    "mps.vcc.lost",
    "atm",
    "cache-id",
    "code",
    "control",
    "from",
    "holding",
    "id",
    "mpc",
    "mps",
    "nbma",
    "peer",
    "target",
    "to",
    // Kinds of outstanding requests.
    "imposition",
    "purge",
    "removal",
    "resolution",
];

/// All names.
pub fn all() -> impl Iterator<Item = &'static str> {
    ALL.iter().copied().flatten().copied()
}

/// The equal word of the program.
#[must_use]
pub fn known(name: &str) -> Option<&'static str> {
    static WORDS: LazyLock<BTreeSet<&str>> = LazyLock::new(|| all().collect());
    WORDS.get(name).copied()
}
