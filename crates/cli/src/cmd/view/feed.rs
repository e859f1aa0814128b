//! The stream of a running lab as server-sent events, by a thread for each page.
//!
//! A message of the stream has lines of [`aerostat_lab::stream`], and is whole: none of its lines is in two messages.
//! A `lost` event says that the lab has ended. The thread then waits for it, and a lab that is up again begins with a
//! new head.

use super::{Gone, Line, connected};
use crate::cmd::events::MOST_MESSAGES;
use aerostat_lab::picture::Picture;
use aerostat_lab::stream::{self, line_text};
use aerostat_live::control::{Answer, Client, Gather, Request};
use aerostat_live::streams::is_wait;
use hyper::body::Bytes;
use serde_json::{Value, json};
use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Time between two tellings. A person sees no difference to less.
const EVERY: Duration = Duration::from_millis(250);
/// Time between samples of counters.
const SAMPLE: Duration = Duration::from_secs(1);
/// Pause between attempts to find a lab that has ended.
const AGAIN: Duration = Duration::from_millis(250);
/// How long a thread waits for the lab before it looks after its reader.
const LOOK: Duration = Duration::from_millis(500);
/// Octets of the stream that are read at a time.
const CHUNK: usize = 64 << 10;

/// Starts the thread.
pub(super) fn start(lab: String, line: Line) -> io::Result<()> {
    let thread = std::thread::Builder::new().name("feed".to_owned());
    thread.spawn(move || {
        // The reader is gone.
        let _ = feed(&lab, &line);
    })?;
    Ok(())
}

fn feed(lab: &str, line: &Line) -> Result<(), Gone> {
    let (mut told, mut was_there) = (String::new(), false);
    loop {
        let why = match open(lab) {
            Ok((first, stream)) => {
                line.pass(message(&first))?;
                copy(stream, line)?;
                // The stream of a lab that becomes that of another file ends, too: the next look tells.
                (told, was_there) = (String::new(), true);
                None
            }
            Err(_) if was_there => Some(format!("the lab {lab} has ended")),
            Err(why) => Some(why),
        };
        if line.is_gone() {
            return Err(Gone);
        }
        if let Some(why) = why.filter(|why| *why != told) {
            let data = json!({ "text": why });
            line.pass(format!("event: lost\ndata: {data}\n\n").into())?;
            told = why;
        }
        std::thread::sleep(AGAIN);
    }
}

/// The first lines, which the lab does not know itself, and the stream of the lab.
fn open(lab: &str) -> Result<(Vec<u8>, UnixStream), String> {
    let mut client = connected(lab)?;
    let picture: Picture = serde_json::from_value(asked(&mut client, &Request::Graph)?)
        .map_err(|error| error.to_string())?;
    let layout = line_text(&stream::Line::Layout(aerostat_view::positions(
        &picture.drawn(),
    )));
    let hosts = asked(&mut client, &Request::Hosts)?;
    let hosts = hosts["hosts"].as_array().cloned().unwrap_or_default();
    let inside = hosts.iter().filter(|host| host["kind"] == "kernel");
    let inside: Vec<&Value> = inside.map(|host| &host["name"]).collect();
    let live = json!({ "is": "live", "lab": lab, "inside": inside });
    let nanos = |time: Duration| time.as_nanos() as u64;
    let wish = Request::Stream {
        follow: true,
        stats_ns: Some(nanos(SAMPLE)),
        gather: Some(Gather {
            every_ns: nanos(EVERY),
            messages: MOST_MESSAGES,
        }),
    };
    asked(&mut client, &wish)?;
    let stream = client.into_stream();
    stream
        .set_read_timeout(Some(LOOK))
        .map_err(|error| error.to_string())?;
    Ok((format!("{live}\n{layout}\n").into_bytes(), stream))
}

fn asked(client: &mut Client, wish: &Request) -> Result<Value, String> {
    match client.ask(wish).map_err(|error| error.to_string())? {
        (Answer::Ok(value), _) => Ok(value),
        (Answer::Error { message, hint }, _) => Err(format!("{message} ({hint})")),
    }
}

/// Passes lines on until the lab ends.
fn copy(mut stream: UnixStream, line: &Line) -> Result<(), Gone> {
    let (mut lines, mut room) = (Vec::new(), vec![0; CHUNK]);
    loop {
        match stream.read(&mut room) {
            Ok(0) => return Ok(()),
            Ok(read) => {
                lines.extend_from_slice(&room[..read]);
                if let Some(end) = lines.iter().rposition(|octet| *octet == b'\n') {
                    line.pass(message(&lines[..=end]))?;
                    lines.drain(..=end);
                }
            }
            Err(error) if is_wait(&error) => {
                if line.is_gone() {
                    return Err(Gone);
                }
            }
            Err(_) => return Ok(()),
        }
    }
}

/// Lines as a message of server-sent events.
fn message(lines: &[u8]) -> Bytes {
    let mut text = Vec::with_capacity(lines.len() + lines.len() / 16);
    for line in lines
        .split(|octet| *octet == b'\n')
        .filter(|line| !line.is_empty())
    {
        text.extend_from_slice(b"data: ");
        text.extend_from_slice(line);
        text.push(b'\n');
    }
    text.push(b'\n');
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_one_message() {
        assert_eq!(message(b"{1}\n{2}\n"), "data: {1}\ndata: {2}\n\n");
    }
}
