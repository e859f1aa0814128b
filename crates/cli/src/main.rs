//! The `aerostat` command.
//!
//! ```text
//! args.rs    what can be typed, with its help
//! cmd/X.rs   subcommand X
//! exit.rs    exit codes and failures         output.rs  tables, JSON, CSV
//! linux_text.rs  the texts of linux-atm's tools
//! client.rs  talking to a running lab        labs.rs    finding and reading labs
//! exercises.rs its exercises
//! words.rs   options that may stand before the verb      names.rs   what the shell completes
//! preload.rs the library for programs with ATM sockets of Linux
//! manifest.rs what a new run of the same results needs     version.rs  what the program was made of
//! ```
//!
//! Data go to standard output, messages to standard error. A closed pipe is not a failure.

mod args;
mod client;
mod cmd;
mod exercises;
mod exit;
mod interrupt;
mod labs;
mod linux_text;
mod manifest;
mod names;
mod output;
mod plot;
mod preload;
mod progress;
mod site;
mod version;
mod web;
mod words;

use clap::{CommandFactory as _, Parser as _};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Names by which the program may be called, as links to it, and the subcommand of each: linux-atm's tools, and that in
/// the extcap folder of Wireshark.
const TOOLS: [(&str, &str); 4] = [
    ("atmarp", "atmarp"),
    ("atmaddr", "atmaddr"),
    ("atmdiag", "atmdiag"),
    ("aerostat-extcap", "extcap"),
];

fn main() -> ExitCode {
    if let Some(code) = hidden_roles() {
        return code;
    }
    // A shell calls the program for completion; it ends here then.
    clap_complete::CompleteEnv::with_factory(args::Cli::command)
        .var(names::VARIABLE)
        .complete();
    let typed = words::lab_behind_the_verb(with_subcommand(std::env::args_os()));
    match args::Cli::try_parse_from(&typed) {
        Ok(cli) => exit::report(cmd::dispatch(cli)),
        Err(error) => exit::parsed(&words::with_whole_usage(error, &typed)),
    }
}

/// If the program is called by one of those names, adds its subcommand.
fn with_subcommand(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<OsString> = args.collect();
    let called = args.first().map(PathBuf::from);
    let name = called.as_deref().and_then(Path::file_name);
    let tool = TOOLS
        .iter()
        .find(|(tool, _)| name.is_some_and(|name| name == *tool));
    if let Some((_, subcommand)) = tool {
        args[0] = "aerostat".into();
        args.insert(1, subcommand.into());
    }
    args
}

/// A live lab starts this program again as its supervisor, its first process, its helper and its daemons; a mount
/// starts it as its watcher.
fn hidden_roles() -> Option<ExitCode> {
    use aerostat_live::daemons::{DAEMON_ARGUMENT, Role, serve};
    use aerostat_live::helper::{HELPER_ARGUMENT, run_helper};
    use aerostat_live::mount::{WATCHER_ARGUMENT, run_watcher};
    use aerostat_live::supervisor::{INIT_ARGUMENT, SUPERVISOR_ARGUMENT, run_init, run_supervisor};
    let mut arguments = std::env::args_os().skip(1);
    let role = arguments.next()?;
    let result = if role == SUPERVISOR_ARGUMENT {
        std::env::current_exe()
            .and_then(|program| run_supervisor(&program))
            .map_err(|error| error.to_string())
    } else if role == INIT_ARGUMENT {
        run_init().map_err(|error| error.to_string())
    } else if role == HELPER_ARGUMENT {
        run_helper().map_err(|error| error.to_string())
    } else if role == WATCHER_ARGUMENT {
        let of = arguments.next()?;
        run_watcher(&of.to_string_lossy()).map_err(|error| error.to_string())
    } else if role == DAEMON_ARGUMENT {
        let daemon = Role::by_name(&arguments.next()?.to_string_lossy())?;
        let (socket, node) = (arguments.next()?, arguments.next()?);
        serve(daemon, socket.as_ref(), &node.to_string_lossy(), true)
            .map(drop)
            .map_err(|error| format!("{daemon} of {}: {error}", node.display()))
    } else {
        return None;
    };
    Some(match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            exit::say(format_args!("aerostat: {error}"));
            ExitCode::FAILURE
        }
    })
}
