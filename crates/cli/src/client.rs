//! Talking to a running lab.

use crate::args::RunningLab;
use crate::exit::{Exit, Failure, say};
use aerostat_live::control::{Answer, Client, Request};
use aerostat_live::runtime_dir::{self, LabState, VERSION};
use serde_json::Value;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;

/// The hint for a lab whose socket exists but does not answer.
const STUCK: &str =
    "its process may be stopped (SIGSTOP) or stuck; 'aerostat down' ends it nevertheless";

/// The message when no lab runs where this command looks.
pub(crate) fn none_is_running() -> String {
    let elsewhere = runtime_dir::passed_over();
    let text = "no lab is running";
    elsewhere.map_or_else(
        || text.to_owned(),
        |elsewhere| format!("{text}; {elsewhere}"),
    )
}

/// Selects a running lab: the named one, or the only one.
pub(crate) fn choose(which: &RunningLab) -> Result<LabState, Failure> {
    let mut labs = runtime_dir::running();
    let names = |labs: &[LabState]| {
        let names: Vec<&str> = labs.iter().map(|lab| lab.name.as_str()).collect();
        names.join(", ")
    };
    if let Some(name) = &which.lab {
        let running = names(&labs);
        return labs
            .into_iter()
            .find(|lab| lab.name == *name)
            .ok_or_else(|| {
                let failure = Failure::new(Exit::NotRunning, format!("no lab '{name}' is running"));
                if running.is_empty() {
                    failure.hint("start one with 'aerostat up LAB'")
                } else {
                    failure.hint(format!("running: {running}"))
                }
            });
    }
    match labs.len() {
        0 => Err(Failure::new(Exit::NotRunning, none_is_running())
            .hint("start one with 'aerostat up LAB'")),
        1 => Ok(labs.remove(0)),
        _ => Err(Failure::usage("several labs are running")
            .hint(format!("choose one with --lab: {}", names(&labs)))),
    }
}

/// The version of the program that runs a lab, in words. Programs up to 0.2.0 do not say it.
pub(crate) fn version_of(lab: &LabState) -> &str {
    match &*lab.version {
        "" => "older",
        version => version,
    }
}

/// Tells that a lab is of another version than this program, which an upgrade under a running lab makes so.
fn tell_other_version(lab: &LabState) {
    if lab.version == VERSION {
        return;
    }
    let other = match &*lab.version {
        "" => "an older version".to_owned(),
        version => format!("version {}", aerostat_lab::printable::line(version)),
    };
    say(format_args!(
        "note: lab '{}' runs {other}, and this is {VERSION}: 'aerostat down' works; start the lab anew if something else \
         does not",
        lab.name
    ));
}

/// A connection to the selected lab.
pub(crate) fn connect(which: &RunningLab) -> Result<Client, Failure> {
    let lab = choose(which)?;
    tell_other_version(&lab);
    Client::connect(&runtime_dir::socket_of(&lab.name)).map_err(|error| {
        let (name, pid) = (&lab.name, lab.pid);
        let text = format!("lab '{name}' (process {pid}) does not answer: {error}");
        match error.kind() {
            ErrorKind::TimedOut => Failure::failed(text).hint(STUCK),
            ErrorKind::ConnectionRefused => Failure::new(Exit::NotRunning, text)
                .hint("it has ended, and what it left goes in a moment: try again"),
            _ => Failure::new(Exit::NotRunning, text),
        }
    })
}

/// Sends a request and returns the value of a successful answer.
pub(crate) fn ask(client: &mut Client, request: &Request) -> Result<Value, Failure> {
    ask_with_descriptors(client, request, &[]).map(|(value, _)| value)
}

/// Sends a request with descriptors, and returns the value of a successful answer with its descriptors.
pub(crate) fn ask_with_descriptors(
    client: &mut Client,
    request: &Request,
    descriptors: &[OwnedFd],
) -> Result<(Value, Vec<OwnedFd>), Failure> {
    let (answer, descriptors) = client.ask_with(request, descriptors).map_err(|error| {
        let failure = Failure::failed(format!("the lab does not answer: {error}"));
        match error.kind() {
            ErrorKind::TimedOut => failure.hint(STUCK),
            ErrorKind::BrokenPipe
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionRefused
            | ErrorKind::NotFound
            | ErrorKind::UnexpectedEof => Failure::new(Exit::NotRunning, "the lab has ended"),
            _ => failure,
        }
    })?;
    match answer {
        Answer::Ok(value) => Ok((value, descriptors)),
        Answer::Error { message, hint } => Err(Failure::failed(message).hint(hint)),
    }
}
