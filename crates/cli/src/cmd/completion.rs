//! `aerostat completion`: completion scripts.

use crate::args::{Cli, CompletionArgs};
use crate::exit::{Exit, Outcome};
use clap::CommandFactory as _;
use std::io::Write as _;

/// Prints the script for one shell.
pub(crate) fn run(args: &CompletionArgs) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "aerostat", &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(Exit::Ok)
}
