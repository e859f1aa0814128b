//! Timers of protocols with the values that are used: those of the file, or else of the standards.

use super::map_of;
use crate::model::Timers;
use aerostat_node::ip::router::ArpParams;
use aerostat_proto::lane::{LecParams, ServerParams};
use aerostat_proto::sscop;
use aerostat_proto::uni::{Side, TimerValues, Version};
use serde_json::{Map, Value, json};

/// By protocol, as in the file. Those of LANE clients stand under the version of LANE that a client speaks, those of
/// call control under the version of the UNI and the side, since the standards' values differ.
pub(super) fn of(timers: &Timers) -> Value {
    let Timers {
        lec,
        les_control,
        arp,
        sscop,
        uni,
    } = timers;
    let les = les_control.unwrap_or(ServerParams::default().control_timeout);
    let versions = [Version::Uni30, Version::Uni31, Version::Uni40];
    let uni = versions.map(|version| {
        let of = |side| map_of(uni.effective(TimerValues::standard(side, version)));
        let sides = json!({ "network": of(Side::Network), "user": of(Side::User) });
        (version.to_string(), sides)
    });
    json!({
        "lec": { "1": map_of(lec.effective(LecParams::v1())), "2": map_of(lec.effective(LecParams::default())) },
        "les": { "control_timeout_s": super::seconds(les) },
        "arp": map_of(arp.effective(ArpParams::default())),
        "sscop": map_of(sscop.effective(sscop::Params::UNI)),
        "uni": uni.into_iter().collect::<Map<_, _>>(),
    })
}
