//! `aerostat fault`: breaks and mends parts of a running lab.

use crate::args::{FaultArgs, FaultCommand};
use crate::client;
use crate::exit::{Exit, Outcome, say};
use aerostat_live::control::{FaultAction, Request};

/// Does it, and says so.
pub(crate) fn run(args: &FaultArgs) -> Outcome {
    let (action, which, done) = match &args.command {
        FaultCommand::Crash(which) => (FaultAction::Crash, which, "crashed"),
        FaultCommand::Restart(which) => (FaultAction::Restart, which, "restarted"),
        FaultCommand::LinkDown(which) => (FaultAction::LinkDown, which, "down"),
        FaultCommand::LinkUp(which) => (FaultAction::LinkUp, which, "up"),
    };
    let target = which.target.clone();
    let mut client = client::connect(&which.which)?;
    client::ask(&mut client, &Request::Fault { action, target })?;
    say(format_args!("{} {done}", which.target));
    Ok(Exit::Ok)
}
