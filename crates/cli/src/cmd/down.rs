//! `aerostat down`: stops running labs and shows the results of their traffic.

use super::run::write;
use super::up::Results;
use crate::args::{DownArgs, RunningLab};
use crate::client;
use crate::exit::{self, Exit, Failure, Outcome, say};
use aerostat_live::control::{Answer, Client, Request};
use aerostat_live::force::{self, Ended};
use aerostat_live::runtime_dir::{self, LabState};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant};

/// How long a lab may take to answer at all.
const ALIVE: Duration = Duration::from_secs(3);
/// How long a lab may take to release its calls and clean up.
const PATIENCE: Duration = Duration::from_secs(10);

/// Stops the selected labs.
pub(crate) fn run(args: &DownArgs) -> Outcome {
    write::check(&args.results)?;
    for directory in aerostat_live::mount::sweep() {
        tell(args, format_args!("took away a dead mount at {directory}"));
    }
    let labs = wanted(args)?;
    // If a lab cannot be stopped, or does not run, the others are stopped nevertheless.
    let mut worst = Exit::Ok;
    for lab in labs {
        let ended = lab
            .and_then(|lab| stop(&lab, args))
            .unwrap_or_else(|failure| {
                exit::complain(&failure);
                failure.exit
            });
        if worst == Exit::Ok || ended == Exit::Failed {
            worst = ended;
        }
    }
    Ok(worst)
}

/// The selected labs, each once, and an error for each name without a running lab.
fn wanted(args: &DownArgs) -> Result<Vec<Result<LabState, Failure>>, Failure> {
    if args.all {
        let labs = runtime_dir::running();
        if labs.is_empty() {
            return Err(Failure::new(Exit::NotRunning, client::none_is_running()));
        }
        return Ok(labs.into_iter().map(Ok).collect());
    }
    if args.labs.is_empty() {
        return client::choose(&args.which).map(|lab| vec![Ok(lab)]);
    }
    let mut seen = BTreeSet::new();
    let once = args.labs.iter().filter(|name| seen.insert(*name));
    let named = once.map(|name| {
        client::choose(&RunningLab {
            lab: Some(name.clone()),
        })
    });
    Ok(named.collect())
}

fn stop(lab: &LabState, args: &DownArgs) -> Outcome {
    let name = &lab.name;
    let (listens, asked) = match Client::connect_within(&runtime_dir::socket_of(name), ALIVE) {
        Ok(mut client) => (client.process(), ask(&mut client)),
        Err(error) => (None, Err(error)),
    };
    let mut shown = Exit::Ok;
    match asked {
        Ok(answer) => shown = show(&answer, name, args)?,
        // The lab may have ended before its answer was written; otherwise this is its error.
        Err(error) if error.kind() != io::ErrorKind::TimedOut => {}
        Err(error) => return by_force(lab, listens, &error.to_string()),
    }
    let until = Instant::now() + PATIENCE;
    while runtime_dir::running().iter().any(|other| other == lab) {
        if Instant::now() > until {
            let seconds = PATIENCE.as_secs();
            return by_force(lab, listens, &format!("it has not ended after {seconds} s"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    tell(args, format_args!("lab '{name}' stopped"));
    Ok(shown)
}

/// Says what is no warning.
fn tell(args: &DownArgs, text: impl std::fmt::Display) {
    if !args.quiet {
        say(text);
    }
}

/// The answer to the request to stop. A lab whose loop hangs is detected by a shorter request.
fn ask(client: &mut Client) -> io::Result<Value> {
    client.ask(&Request::Status)?;
    client.set_patience(PATIENCE)?;
    match client.ask(&Request::Stop)? {
        (Answer::Ok(value), _) => Ok(value),
        (Answer::Error { message, .. }, _) => Err(io::Error::other(message)),
    }
}

/// Shows its results.
fn show(answer: &Value, lab: &str, args: &DownArgs) -> Outcome {
    let results: Results = match answer.get("results") {
        Some(results) if !results.is_null() => super::inspect::understood(results.clone())?,
        _ => Results::default(),
    };
    let mut how = args.results.clone();
    if args.all || args.labs.len() > 1 {
        how.out = how.out.map(|directory| directory.join(lab));
    }
    results.show(&how)
}

/// Ends a lab that does not answer.
fn by_force(lab: &LabState, listens: Option<u32>, why: &str) -> Outcome {
    let name = &lab.name;
    say(format_args!("lab '{name}' does not answer: {why}"));
    let ended = force::end(lab, listens, &mut |line| say(line));
    let how = match ended {
        Ok(Ended::Terminated) => "ended after SIGTERM; it could not give its results",
        Ok(Ended::Killed) => "was killed; its results are lost and its calls were not released",
        Err(_) if !runtime_dir::running().iter().any(|other| other == lab) => "has ended",
        Err(error) => {
            let failure = Failure::from(error);
            let text = format!("lab '{name}' cannot be ended: {failure}");
            return Err(Failure::new(failure.exit, text));
        }
    };
    say(format_args!("lab '{name}' {how}"));
    Ok(Exit::Warnings)
}
