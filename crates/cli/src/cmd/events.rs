//! `aerostat events`: the events of a running lab as JSON lines, or its state and what changes.

use super::trace::{EVENTS, say_forgotten};
use crate::args::{EventsArgs, EventsFormat};
use crate::client;
use crate::exit::{self, Exit, Outcome};
use aerostat_lab::stream;
use aerostat_live::charset;
use aerostat_live::control::{Gather, Request};
use aerostat_wire::counted;
use serde_json::{Map, Value};
use std::io::{self, BufRead as _, BufReader, Write};

/// Messages of one telling of a gathered stream in the long run.
pub(crate) const MOST_MESSAGES: u32 = 20;

/// Copies the lines, or shows them in columns.
pub(crate) fn run(args: &EventsArgs) -> Outcome {
    if args.schema {
        writeln!(io::stdout().lock(), "{:#}", stream::schema())?;
        return Ok(Exit::Ok);
    }
    let follow = args.follow;
    let nanos = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let request = match args.initial_state {
        true => Request::Stream {
            follow,
            stats_ns: args.stats.map(nanos),
            gather: args.every.map(|every| Gather {
                every_ns: nanos(every),
                messages: MOST_MESSAGES,
            }),
        },
        false => Request::Events { follow },
    };
    let mut client = client::connect(&args.which)?;
    let answer = client::ask(&mut client, &request)?;
    say_forgotten(&answer, EVENTS);
    if let Some(left @ 1..) = answer["left"].as_u64() {
        let clients = counted(left, "client", "clients");
        exit::say(format_args!(
            "note: the lab has ended the stream of {clients} that did not read in time"
        ));
    }
    let people = args.output == EventsFormat::Table;
    let mut out: Box<dyn Write> = match people {
        true => Box::new(charset::stdout()),
        false => Box::new(io::stdout().lock()),
    };
    for line in BufReader::new(client.into_stream()).lines() {
        let line = line?;
        match people.then(|| columns(&line)).flatten() {
            Some(columns) => writeln!(out, "{columns}")?,
            None => writeln!(out, "{line}")?,
        }
        out.flush()?;
    }
    Ok(Exit::Ok)
}

/// A line for people: its time, its kind with its number, and its other fields. `None` for a line that is no object.
fn columns(line: &str) -> Option<String> {
    let mut fields: Map<String, Value> = serde_json::from_str(line).ok()?;
    let mut take = |key: &str| fields.remove(key);
    // Lines of the story alone have seconds, and no kind.
    let time = match (take("t"), take("time")) {
        (Some(t), _) => t.as_u64().map(|t| t as f64 / 1e9),
        (None, time) => time.and_then(|time| time.as_f64()),
    };
    let kind = take("is").map_or_else(|| "story".to_owned(), |is| plain(&is));
    let id = take("id").map_or_else(String::new, |id| format!(" {id}"));
    let time = time.map_or_else(String::new, |time| format!("{time:.6}"));
    let what = match (take("node"), take("text")) {
        (Some(node), Some(text)) if kind == "story" => {
            format!("{}: {}", plain(&node), plain(&text))
        }
        (node, text) => {
            let back = [("node", node), ("text", text)].into_iter();
            let back = back.filter_map(|(key, value)| Some((key.to_owned(), value?)));
            let rest = back.chain(fields);
            let rest = rest.map(|(key, value)| format!("{key} {}", plain(&value)));
            rest.collect::<Vec<_>>().join(", ")
        }
    };
    Some(format!("{time:>14}  {:<12}  {what}", kind + &id))
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_forms_are_columns() {
        let shown = |line| columns(line).expect("an object");
        assert_eq!(
            shown(r#"{"is":"call","t":6004824985,"id":49,"state":"connected","vc":["0.39",null]}"#),
            r#"      6.004825  call 49       state connected, vc ["0.39",null]"#
        );
        assert_eq!(
            shown(r#"{"time":2.003412,"node":"urku","event":"x","text":"joined","fields":{}}"#),
            "      2.003412  story         urku: joined"
        );
        assert_eq!(columns("none"), None);
    }
}
