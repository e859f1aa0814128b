//! Links of a running lab: their values, and requests that change them.

use crate::control::{Answer, LinkRequest};
use crate::site::Site;
use aerostat_lab::diag::Diagnostics;
use aerostat_lab::model::{FaultKind, Lab, LineParams, Link, LinkId, Way};
use aerostat_node::inspect::Table;
use aerostat_proto::Instant;

aerostat_node::rows! {
    /// One row for each direction of a link: its values now.
    struct LineRow: "lab.links" for (lab: &Lab, link: &Link, way: Way, now: LineParams, state: &str) {
        /// Name of the link.
        link: String = link.name.clone(),
        /// Direction: up is from the user to the network.
        way: String = way.to_string(),
        /// Sending node.
        from: String = lab.node(link.ends[link.side(way)].node).name.clone(),
        /// Receiving node.
        to: String as Detail(1) = lab.node(link.ends[1 - link.side(way)].node).name.clone(),
        /// State of the link: up; cut; retrains; down, if a node or a peer is missing.
        state: String = state.to_owned(),
        /// Rate, as in a lab file.
        rate: String = now.rate.to_string(),
        /// Cells per second.
        rate_cps: f64 as Detail(2) = now.rate.numerator() as f64 / now.rate.denominator() as f64,
        /// Delay, microseconds.
        delay_us: f64 = now.delay.as_nanos() as f64 / 1e3,
        /// Probability that a cell is lost.
        loss: f64 = now.errors.loss,
        /// Probability that a bit is inverted.
        bit_errors: f64 = now.errors.bits,
        /// Probability that a block is lost.
        block_errors: f64 = now.errors.blocks,
        /// Length of a block, milliseconds.
        block_ms: f64 as Detail(1) = now.errors.block.as_nanos() as f64 / 1e6,
        /// True if the values are not those of the lab file.
        changed: bool = now != link.lines[link.side(way)],
    }
}

/// The link with this name. A link between two switches may be named from either end, and a link out of the lab by the
/// node at its far end.
pub(crate) fn find(lab: &Lab, name: &str) -> Result<LinkId, Answer> {
    lab.find_link(name).map_err(|error| told(&error))
}

/// The first finding, as an answer.
fn told(findings: &Diagnostics) -> Answer {
    let found = findings.iter().next();
    found.map_or_else(
        || Answer::error("this is not possible", ""),
        |found| Answer::error(&*found.message, found.hint.clone().unwrap_or_default()),
    )
}

/// Answers a request about links.
pub(crate) fn answer(
    site: &mut Site<'_>,
    request: &LinkRequest,
    now: Instant,
) -> Result<Answer, Answer> {
    match request {
        LinkRequest::Show { links } => show(site, links),
        LinkRequest::Set {
            link,
            values,
            retrain,
        } => set(site, link, values, retrain.as_deref(), now),
        LinkRequest::Reset { link } => reset(site, link, now),
    }
}

/// The values of some links, or of all.
fn show(site: &Site<'_>, names: &[String]) -> Result<Answer, Answer> {
    let links = match names {
        [] => site.lab.links().map(|(link, _)| link).collect(),
        names => {
            let found = names.iter().map(|name| find(site.lab, name));
            found.collect::<Result<Vec<_>, _>>()?
        }
    };
    let rows = links.into_iter().flat_map(|link| rows(site, link));
    Ok(in_words(site, Table::of(rows)))
}

/// Gives a link new values, after it has trained if `retrain` says how long.
fn set(
    site: &mut Site<'_>,
    name: &str,
    values: &[String],
    retrain: Option<&str>,
    now: Instant,
) -> Result<Answer, Answer> {
    let link = find(site.lab, name)?;
    if retrain.is_some() && site.world.is_training(link) {
        let text = format!("{name} trains already");
        return Err(Answer::error(text, ends(name)));
    }
    let name = &site.lab.link(link).name;
    let what = site.lab.link_fault(name, values, retrain);
    let what = what.map_err(|error| told(&error))?;
    site.break_or_mend(what, now);
    Ok(done(site, link, now))
}

/// How the training of a link ends at once.
pub(crate) fn ends(link: &str) -> String {
    format!("'aerostat link reset {link}' ends this, with the values of the lab file")
}

/// Gives a link the values of the lab file, and ends its training.
fn reset(site: &mut Site<'_>, name: &str, now: Instant) -> Result<Answer, Answer> {
    let link = find(site.lab, name)?;
    site.break_or_mend(FaultKind::Reset(link), now);
    Ok(done(site, link, now))
}

/// Makes what is due happen; the answer is the link.
fn done(site: &mut Site<'_>, link: LinkId, now: Instant) -> Answer {
    site.faults(now);
    let rows = rows(site, link);
    in_words(site, Table::of(rows))
}

fn in_words(site: &Site<'_>, table: Table) -> Answer {
    Answer::Ok(vec![crate::answers::in_json(&site.lab.name, &table)].into())
}

/// Both directions of a link, up first.
fn rows(site: &Site<'_>, id: LinkId) -> [LineRow; 2] {
    let link = site.lab.link(id);
    let lines = site.world.lines_of(id);
    let state = if site.world.is_cut(id) {
        "cut"
    } else if site.world.is_training(id) {
        "retrains"
    } else if site.world.carries(id) {
        "up"
    } else {
        "down"
    };
    Way::ALL.map(|way| LineRow::of(site.lab, link, way, lines[link.side(way)], state))
}
