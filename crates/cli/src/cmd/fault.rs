//! `aerostat fault`: causes and ends faults in a running lab.

use crate::args::{FaultArgs, FaultCommand};
use crate::client;
use crate::exit::{Exit, Outcome, say};
use aerostat_live::control::{FaultAction, Request};

/// Sends the request, and reports the result.
pub(crate) fn run(args: &FaultArgs) -> Outcome {
    let (action, target, which, done) = match &args.command {
        FaultCommand::Crash(of) => (FaultAction::Crash, &of.target, &of.which, "crashed"),
        FaultCommand::Restart(of) => (FaultAction::Restart, &of.target, &of.which, "restarted"),
        FaultCommand::LinkDown(of) => (FaultAction::LinkDown, &of.target, &of.which, "down"),
        FaultCommand::LinkUp(of) => (FaultAction::LinkUp, &of.target, &of.which, "up"),
    };
    let mut client = client::connect(which)?;
    let request = Request::Fault {
        action,
        target: target.clone(),
    };
    client::ask(&mut client, &request)?;
    say(format_args!("{target} {done}"));
    Ok(Exit::Ok)
}
