//! The `aerostat` command.
//!
//! ```text
//! args.rs    what can be typed, with its help
//! cmd/X.rs   subcommand X
//! exit.rs    exit codes and failures         output.rs  tables, JSON, CSV
//! client.rs  talking to a running lab        labs.rs    reading a lab file
//! ```
//!
//! Data goes to standard output, talk to standard error. A closed pipe is no failure.

mod args;
mod client;
mod cmd;
mod exit;
mod labs;
mod output;

use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = hidden_roles() {
        return code;
    }
    let cli = args::Cli::parse();
    let result = cmd::dispatch(cli);
    exit::report(result)
}

/// A live lab starts this program again as its supervisor and as its first process.
fn hidden_roles() -> Option<ExitCode> {
    use aerostat_live::supervisor::{INIT_ARGUMENT, SUPERVISOR_ARGUMENT, run_init, run_supervisor};
    let role = std::env::args_os().nth(1)?;
    let result = if role == SUPERVISOR_ARGUMENT {
        std::env::current_exe().and_then(|program| run_supervisor(&program))
    } else if role == INIT_ARGUMENT {
        run_init()
    } else {
        return None;
    };
    Some(match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("aerostat: {error}");
            ExitCode::FAILURE
        }
    })
}
