//! `aerostat mpcd` and its like: a daemon of a node, started by hand.

use crate::args::DaemonOf;
use crate::client;
use crate::exit::{Exit, Failure, Outcome, say};
use aerostat_live::daemons::{self, DaemonError, End, Role, SOCKET};
use aerostat_live::runtime_dir;

/// Serves until it is asked to end or the lab ends.
pub(crate) fn run(role: Role, args: &DaemonOf) -> Outcome {
    let lab = client::choose(&args.which)?;
    let socket = runtime_dir::socket_of(&lab.name).with_file_name(SOCKET);
    match daemons::serve(role, &socket, &args.node, false) {
        Ok(End::Asked) => Ok(Exit::Ok),
        Ok(End::LabGone) => {
            say(format_args!("the lab has ended"));
            Ok(Exit::Ok)
        }
        Err(error @ DaemonError::NoLab(_)) => Err(Failure::failed(error.to_string())
            .hint("only a lab that was started with 'aerostat up --split' has one")),
        Err(error) => Err(Failure::failed(error.to_string())),
    }
}
