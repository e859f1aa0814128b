//! Parameters of protocols with the values that are used: those of the file, or else of the standards.

use super::map_of;
use crate::model::Timers;
use aerostat_proto::uni::{Side, Version};
use serde_json::{Map, Value, json};

/// By protocol, as in the file. Those of LANE clients stand under the version of LANE that a client speaks, those of
/// call control under the version of the UNI and the side, since the standards' values differ.
pub(super) fn of(timers: &Timers) -> Value {
    let Timers {
        lec_v1,
        lec_v2,
        les,
        arp,
        sscop,
        uni: _,
    } = timers;
    let versions = [Version::Uni30, Version::Uni31, Version::Uni40];
    let uni = versions.map(|version| {
        let of = |side| map_of(&timers.uni(side, version));
        let sides = json!({ "network": of(Side::Network), "user": of(Side::User) });
        (version.to_string(), sides)
    });
    json!({
        "lec": { "1": map_of(lec_v1), "2": map_of(lec_v2) },
        "les": map_of(les),
        "arp": map_of(arp),
        "sscop": map_of(sscop),
        "uni": uni.into_iter().collect::<Map<_, _>>(),
    })
}
