//! `aerostat exec` and `aerostat shell`: inside a kernel host of a running lab.

use crate::args::{ExecArgs, RunningLab, ShellArgs};
use crate::client;
use crate::exit::{self, Failure, Outcome};
use crate::preload;
use aerostat_live::control::Request;
use aerostat_live::names::Identity;
use aerostat_live::runtime_dir;
use aerostat_live::supervisor::enter_and_run;

/// Runs a command in a host; the exit code is the command's own.
pub(crate) fn run(args: &ExecArgs) -> Outcome {
    enter(&args.which, &args.node, &args.argv)
}

/// Runs the user's shell in a host.
pub(crate) fn shell(args: &ShellArgs) -> Outcome {
    let shell = std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned());
    enter(&args.which, &args.node, &[shell])
}

fn enter(which: &RunningLab, node: &str, argv: &[String]) -> Outcome {
    let lab = client::choose(which)?.name;
    let mut client = client::connect(which)?;
    let request = Request::Exec {
        node: node.to_owned(),
    };
    // The lab's own namespaces come first, the host's network namespace last.
    let (answer, mut descriptors) = client::ask_with_descriptors(&mut client, &request, &[])?;
    let Some(net) = descriptors.pop() else {
        return Err(Failure::failed(format!(
            "the lab sent no namespace of {node}"
        )));
    };
    let scratch = runtime_dir::socket_of(&lab).with_file_name("");
    let sockets = runtime_dir::atm_socket_of(&lab, node);
    let sockets = Some(sockets).filter(|path| path.exists());
    let library = preload::find();
    if sockets.is_some() && library.is_none() && !preload::is_given() {
        exit::say(format_args!(
            "note: {} is not installed, so programs for the ATM sockets of Linux find none here; {}",
            preload::NAME,
            preload::advice()
        ));
    }
    let identity = Identity {
        host: node.to_owned(),
        hosts: answer["hosts"].as_str().unwrap_or_default().to_owned(),
        scratch,
        preload: library,
        sockets,
    };
    let code = enter_and_run(&descriptors, &net, &identity, argv)?;
    // The exit code of another command is passed on unchanged.
    std::process::exit(code);
}
