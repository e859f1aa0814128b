//! Answers to clients who look at what passes links: captures, ladders, ways of packets.

use crate::capture::Form;
use crate::control::{Answer, Reply, Request};
use crate::ladder::{Marking, Marks, Messages, Wanted};
use crate::site::Site;
use aerostat_lab::ladder;
use aerostat_lab::model::{Lab, LinkId};
use aerostat_wire::names_of;
use serde_json::json;
use std::net::Ipv4Addr;

/// Answers a request for what passes links.
pub(super) fn on_links(site: &mut Site<'_>, request: &Request) -> Result<Reply, Answer> {
    match request {
        Request::Capture {
            links,
            both_ends,
            cells,
        } => {
            let (both_ends, cells) = (*both_ends, *cells);
            capture(site, links, Form { both_ends, cells })
        }
        Request::Trace {
            links,
            story,
            past: true,
            ..
        } => past(site, links, *story),
        Request::Trace {
            links, data, story, ..
        } => trace(site, links, *data, *story),
        Request::Ways { from, to, one_in } => {
            ways(site, [from, to].map(|name| name.as_deref()), *one_in)
        }
        _ => Err(Answer::error("not of links", "")),
    }
}

fn trace(site: &mut Site<'_>, names: &[String], data: bool, story: bool) -> Result<Reply, Answer> {
    let lab = site.lab;
    let links = links_of(lab, names)?;
    let answer = json!({ "links": links.len(), "width": ladder::width(lab) });
    let wanted = Wanted::Messages(Messages { links, data, story });
    let lines = site.world.captures.ladder(lab, wanted);
    Ok(Reply::Stream(Answer::Ok(answer), lines))
}

/// Marks packets, and tells their ways.
fn ways(site: &mut Site<'_>, [from, to]: [Option<&str>; 2], one_in: u64) -> Result<Reply, Answer> {
    let lab = site.lab;
    let marking = Marking {
        from: addresses(lab, from)?,
        to: addresses(lab, to)?,
        one_in: one_in.max(1),
    };
    let wanted = Wanted::Ways(Marks::new(marking));
    let lines = site.world.captures.ladder(lab, wanted);
    Ok(Reply::Stream(Answer::Ok(json!({})), lines))
}

/// The addresses that a name stands for: those of an end system, of a host behind a bridge, or one address itself.
fn addresses(lab: &Lab, name: Option<&str>) -> Result<Vec<Ipv4Addr>, Answer> {
    let Some(name) = name else {
        return Ok(Vec::new());
    };
    if let Ok(address) = name.parse() {
        return Ok(vec![address]);
    }
    let mut stations = lab.hosts().flat_map(|(_, _, host)| &host.bridge);
    let found = match lab.find(name) {
        Some(id) => lab.addresses_of(id).collect(),
        None => Vec::from_iter(stations.find(|one| one.name == name).map(|one| one.ip)),
    };
    if found.is_empty() {
        let text = format!("there is no end system '{name}' with an IP address");
        return Err(Answer::error(text, "an IP address serves, too"));
    }
    Ok(found)
}

fn past(site: &Site<'_>, names: &[String], story: bool) -> Result<Reply, Answer> {
    let (lab, past) = (site.lab, &site.world.captures.past);
    let links = links_of(lab, names)?;
    let steps = match story {
        true => site.story.milestones(),
        false => Vec::new(),
    };
    let answer = json!({
        "links": links.len(),
        "width": ladder::width(lab),
        "forgotten": past.forgotten(),
        "forgotten_idle": past.forgotten_idle(),
    });
    let lines = past.tell(lab, &links, steps);
    let lines = lines.map_err(|error| Answer::error(error.to_string(), ""))?;
    Ok(Reply::Stream(Answer::Ok(answer), lines))
}

fn capture(site: &mut Site<'_>, names: &[String], form: Form) -> Result<Reply, Answer> {
    let lab = site.lab;
    let links = links_of(lab, names)?;
    let started = site.world.captures.start(lab, &links, form, site.epoch_ns);
    let chunks = started.map_err(|error| Answer::error(error.to_string(), ""))?;
    Ok(Reply::Stream(
        Answer::Ok(json!({ "links": links.len() })),
        chunks,
    ))
}

/// The links with these names; all links if there are no names.
fn links_of(lab: &Lab, names: &[String]) -> Result<Vec<LinkId>, Answer> {
    let all = || lab.links().map(|(link, _)| link);
    let mut links = Vec::new();
    for name in names {
        let found = all().find(|id| lab.link(*id).name == *name);
        links.push(found.ok_or_else(|| {
            let known: Vec<&str> = lab.links().map(|(_, link)| link.name.as_str()).collect();
            Answer::error(
                format!("there is no link '{name}'"),
                format!("links: {}", names_of(&known)),
            )
        })?);
    }
    if links.is_empty() {
        links = all().collect();
    }
    Ok(links)
}
