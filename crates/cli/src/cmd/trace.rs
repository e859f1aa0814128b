//! `aerostat trace`: the messages on the links of a running lab as a ladder, or its story, for people.

use crate::args::{LadderFormat, TraceArgs};
use crate::client;
use crate::exit::{Exit, Outcome, say};
use aerostat_lab::Event;
use aerostat_lab::event::Telling;
use aerostat_lab::ladder::{self, Message};
use aerostat_live::charset;
use aerostat_live::control::Request;
use aerostat_node::inspect::StateKind;
use aerostat_wire::counted;
use serde_json::Value;
use std::io::{self, BufRead as _, BufReader, Write as _};

/// Shows the ladder or the story.
pub(crate) fn run(args: &TraceArgs) -> Outcome {
    if args.node.is_some() {
        // The lab refuses a name that no node has, as for inspect.
        let known = Request::Inspect {
            node: args.node.clone(),
            what: StateKind::Lab,
        };
        client::ask(&mut client::connect(&args.which)?, &known)?;
    }
    if args.story {
        story(args)
    } else {
        messages(args)
    }
}

/// The ladder: until the lab ends, or the messages so far.
fn messages(args: &TraceArgs) -> Outcome {
    let people = args.output == LadderFormat::Table;
    let request = Request::Trace {
        links: args.links.clone(),
        data: args.data,
        story: people,
        past: args.no_follow,
    };
    let mut client = client::connect(&args.which)?;
    let answer = client::ask(&mut client, &request)?;
    let width = answer["width"]
        .as_u64()
        .map_or(12, |width| width.min(64) as usize);
    say_forgotten(&answer, MESSAGES);
    let mut out: Box<dyn io::Write> = match people {
        true => Box::new(charset::stdout()),
        false => Box::new(io::stdout().lock()),
    };
    for line in BufReader::new(client.into_stream()).lines() {
        let line = line?;
        if args
            .node
            .as_ref()
            .is_some_and(|node| !is_about(&line, node))
        {
            continue;
        }
        match people.then(|| readable(&line, width)).flatten() {
            Some(rung) => writeln!(out, "{rung}")?,
            // A line of unknown form is shown unchanged rather than lost.
            None => writeln!(out, "{line}")?,
        }
        out.flush()?;
    }
    Ok(Exit::Ok)
}

/// Messages that were forgotten: one, and several.
const MESSAGES: [&str; 2] = ["older message is", "older messages are"];
/// Events that were forgotten.
pub(super) const EVENTS: [&str; 2] = ["older event is", "older events are"];

/// Says how many of these things the lab has had and keeps no longer.
pub(super) fn say_forgotten(answer: &Value, [one, others]: [&'static str; 2]) {
    if let Some(forgotten @ 1..) = answer["forgotten"].as_u64() {
        let older = counted(forgotten, one, others);
        say(format_args!("{older} no longer kept"));
    }
}

/// A line of the stream for people: a message, or an event between messages.
fn readable(line: &str, width: usize) -> Option<String> {
    if let Ok(message) = serde_json::from_str::<Message>(line) {
        return Some(message.rung(width));
    }
    let event = serde_json::from_str::<Event>(line).ok()?;
    Some(ladder::between(&event))
}

/// True if a node sends or receives this message, or is the node of this event.
fn is_about(line: &str, node: &str) -> bool {
    if let Ok(message) = serde_json::from_str::<Message>(line) {
        return message.from == node || message.to == node;
    }
    serde_json::from_str::<Event>(line).is_ok_and(|event| event.node == node)
}

/// The events of the story, one line each.
fn story(args: &TraceArgs) -> Outcome {
    let telling = match args.all {
        true => Telling::All,
        false => Telling::Milestones,
    };
    let mut client = client::connect(&args.which)?;
    let follow = !args.no_follow;
    let answer = client::ask(&mut client, &Request::Events { follow })?;
    say_forgotten(&answer, EVENTS);
    let mut out = charset::stdout();
    for line in BufReader::new(client.into_stream()).lines() {
        let line = line?;
        let Ok(event) = serde_json::from_str::<Event>(&line) else {
            // A line that is not such an event is shown unchanged rather than lost.
            writeln!(out, "{line}")?;
            continue;
        };
        let of_node = args.node.as_ref().is_none_or(|node| *node == event.node);
        if of_node && telling.tells(event.milestone) {
            writeln!(out, "{}  [{}]", event.story(), event.event)?;
        }
    }
    Ok(Exit::Ok)
}
