//! `aerostat events`: the events of a running lab as JSON lines.

use super::trace::{EVENTS, say_forgotten};
use crate::args::EventsArgs;
use crate::client;
use crate::exit::{Exit, Outcome};
use aerostat_live::control::Request;
use std::io::{self, BufRead as _, BufReader, Write as _};

/// Copies the lines.
pub(crate) fn run(args: &EventsArgs) -> Outcome {
    let mut client = client::connect(&args.which)?;
    let follow = args.follow;
    let answer = client::ask(&mut client, &Request::Events { follow })?;
    say_forgotten(&answer, EVENTS);
    let mut out = io::stdout().lock();
    for line in BufReader::new(client.into_stream()).lines() {
        writeln!(out, "{}", line?)?;
    }
    Ok(Exit::Ok)
}
