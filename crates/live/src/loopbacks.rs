//! Loopback requests on connections of a running lab.

use crate::answers::find;
use crate::control::Answer;
use crate::site::Site;
use aerostat_lab::model::NodeId;
use aerostat_node::host::Station;
use aerostat_proto::Instant;
use aerostat_wire::Vc;
use serde_json::json;

/// Sends a request; the answer has its tag.
pub(crate) fn send(site: &mut Site<'_>, name: &str, vc: Vc, segment: bool, now: Instant) -> Answer {
    sent(site, name, vc, segment, now).unwrap_or_else(|error| error)
}

fn sent(
    site: &mut Site<'_>,
    name: &str,
    vc: Vc,
    segment: bool,
    now: Instant,
) -> Result<Answer, Answer> {
    let node = find(site, name)?;
    station(site, node, name)?;
    let sent = site.world.loopback(node, vc, segment, now);
    let tag = sent.ok_or_else(|| down(name))?.map_err(|refused| {
        let hint = format!("'aerostat inspect {name} vc' lists its connections");
        Answer::error(format!("{name}, {vc}: {refused}"), hint)
    })?;
    Ok(Answer::Ok(json!({ "tag": tag })))
}

/// The round-trip time of a request.
pub(crate) fn time(site: &Site<'_>, name: &str, tag: u32) -> Answer {
    returned(site, name, tag).unwrap_or_else(|error| error)
}

fn returned(site: &Site<'_>, name: &str, tag: u32) -> Result<Answer, Answer> {
    let node = find(site, name)?;
    let found = station(site, node, name)?.loopback_time(tag);
    let found = found.ok_or_else(|| {
        let text = format!("{name} has forgotten its request {tag}");
        Answer::error(text, "a station remembers its last 256 requests")
    })?;
    let ns = found.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    Ok(Answer::Ok(json!({ "ns": ns })))
}

fn station<'s>(site: &'s Site<'_>, node: NodeId, name: &str) -> Result<&'s Station, Answer> {
    let node = site.world.node(node).ok_or_else(|| down(name))?;
    node.as_station().ok_or_else(|| {
        let hint = "hosts, routers and LANE servers have connections of their own";
        Answer::error(format!("{name} is no end system"), hint)
    })
}

fn down(name: &str) -> Answer {
    let hint = format!("'aerostat fault restart {name}' starts it again");
    Answer::error(format!("{name} is down"), hint)
}
