//! `aerostat move`: plugs a station into another bridge of a running lab.

use crate::args::MoveArgs;
use crate::client;
use crate::exit::{Exit, Outcome, say};
use aerostat_live::control::Request;

/// Moves the station, and reports how long its cable had no carrier.
pub(crate) fn run(args: &MoveArgs) -> Outcome {
    let (station, host) = (args.station.clone(), args.host.clone());
    let mut client = client::connect(&args.which)?;
    let answer = client::ask(&mut client, &Request::Move { station, host })?;
    let took = answer["plugged_ms"].as_u64().unwrap_or_default();
    say(format_args!(
        "{} is behind {}; its cable carried nothing for {took} ms",
        args.station, args.host
    ));
    Ok(Exit::Ok)
}
