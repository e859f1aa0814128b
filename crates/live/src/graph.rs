//! The current network of a running lab: its [`Picture`] with nodes and links that are down, and the present
//! connections.

use crate::control::Answer;
use crate::site::Site;
use aerostat_lab::picture::Picture;
use aerostat_lab::plant::Driver as _;

/// Answers with the picture.
pub(crate) fn picture(site: &Site<'_>) -> Answer {
    let picture = Picture::running(site.lab, site.world.plant());
    serde_json::to_value(&picture).map_or_else(
        |error| Answer::error(format!("the picture cannot be sent: {error}"), ""),
        Answer::Ok,
    )
}
