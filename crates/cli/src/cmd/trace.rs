//! `aerostat trace`: the events of a running lab, one line each for people.

use crate::args::TraceArgs;
use crate::client;
use crate::exit::{Exit, Outcome};
use aerostat_lab::Event;
use aerostat_live::control::Request;
use std::io::{self, BufRead as _, BufReader, Write as _};

/// Shows the events that are asked for.
pub(crate) fn run(args: &TraceArgs) -> Outcome {
    let mut client = client::connect(&args.which)?;
    let follow = !args.no_follow;
    client::ask(&mut client, &Request::Events { follow })?;
    let mut out = io::stdout().lock();
    for line in BufReader::new(client.into_stream()).lines() {
        let line = line?;
        let Ok(event) = serde_json::from_str::<Event>(&line) else {
            // Not an event of this shape: better shown as it is than lost.
            writeln!(out, "{line}")?;
            continue;
        };
        let node = args.node.as_ref().is_none_or(|node| *node == event.node);
        if node && (event.milestone || !args.story) {
            writeln!(out, "{}  [{}]", event.story(), event.event)?;
        }
    }
    Ok(Exit::Ok)
}
