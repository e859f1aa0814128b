//! `aerostat trace`: the events of a running lab, one line each for people.

use crate::args::TraceArgs;
use crate::client;
use crate::exit::{Exit, Outcome};
use aerostat_live::control::Request;
use serde::Deserialize;
use std::io::{self, BufRead as _, BufReader, Write as _};

/// The fields of an event line that people want to see.
#[derive(Debug, Deserialize)]
struct Event {
    /// Seconds since the start.
    time: f64,
    /// Where it happened.
    node: String,
    /// Stable dotted name.
    event: String,
    /// One sentence.
    text: String,
    /// Part of the main story.
    #[serde(default)]
    milestone: bool,
}

impl Event {
    fn line(&self) -> String {
        let Self {
            time,
            node,
            event,
            text,
            ..
        } = self;
        format!("{time:>12.6}  {node:<12}  {text}  [{event}]")
    }
}

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
            writeln!(out, "{}", event.line())?;
        }
    }
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line() {
        let text = r#"{"time":2.5,"node":"urku","event":"lane.joined","text":"joined ELAN a","fields":{}}"#;
        let event: Event = serde_json::from_str(text).unwrap();
        assert_eq!(
            event.line(),
            "    2.500000  urku          joined ELAN a  [lane.joined]"
        );
    }
}
