//! Queues and schedulers of switches: `queues:` and `tunnels:` of a switch or a link, `queue:` of a connection.

use super::{CellsPerSecond, Time, keys};
use crate::field::{At, Table, scalar, section};
use aerostat_node::atm::Discipline;
use aerostat_wire::ServiceCategory;

section! {
    /// Queues of the ports of a switch, or of those at a link. What a link says counts before what its switch says; a 0
    /// there is the default.
    QueuesFile (keys::queues()) {
        /// Order of service within a class: round-robin (default), weighted, or per-class.
        scheduler: Option<At<SchedulerText>>;
        /// Settings of calls by their class (cbr, rt-vbr, nrt-vbr, abr, ubr): the keys of `queue:` of a permanent
        /// connection. For a class that a link lists, the settings of its switch do not apply.
        calls: Option<Table<CategoryText, ConnectionQueueFile>>;
    }
}
section! {
    /// A shaped path: the switches at the link keep the connections in it together to a peak rate.
    TunnelFile {
        /// Peak rate of all its connections together, cells per second, in each direction.
        pcr: At<CellsPerSecond>;
        /// Tolerance of who polices the path: a cell that was held up may be that much nearer to the one before it.
        /// 0us: cells are never nearer than 1/pcr.
        cdvt: Time = "250us", "0s"..="1s";
        /// True on a link between switches: all calls on this link are in this path.
        calls: bool = false;
    }
}
section! {
    /// The queues of one connection at the switches on its way.
    ConnectionQueueFile (keys::connection_queue()) {}
}
scalar!(
    /// Order of service.
    SchedulerText(Discipline), |text: &str| Discipline::by_name(text)
        .ok_or_else(|| crate::field::expected(&Discipline::ALL.map(Discipline::name))),
    { "enum": (Discipline::ALL.map(Discipline::name)) }
);
scalar!(
    /// Service category of a call. Signalling announces GFR as UBR.
    CategoryText(ServiceCategory), |text: &str| match ServiceCategory::by_name(text) {
        Some(ServiceCategory::Gfr) => Err("calls cannot ask for GFR, and are ubr instead".to_owned()),
        Some(category) => Ok(category),
        None => Err("expected cbr, rt-vbr, nrt-vbr, abr or ubr".to_owned()),
    },
    { "enum": ["cbr", "rt-vbr", "nrt-vbr", "abr", "ubr"] }
);
scalar!(
    /// A VPI that is not 0.
    PathId(u16), |text: &str| text
        .parse()
        .ok()
        .filter(|vpi| (1..=255).contains(vpi))
        .ok_or_else(|| "a VPI of a tunnel is 1 to 255".to_owned()),
    { "type": ["string", "integer"], "description": "VPI, 1 to 255" }
);
