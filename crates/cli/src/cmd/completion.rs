//! `aerostat completion`: completion scripts.

use crate::args::CompletionArgs;
use crate::exit::{Exit, Failure, Outcome};
use crate::names;
use clap_complete::env::Shells;
use std::io::Write as _;

/// Prints the script for one shell. The script calls this program during completion.
pub(crate) fn run(args: &CompletionArgs) -> Outcome {
    let name = args.shell.to_string();
    let shells = Shells::builtins();
    let shell = shells
        .completer(&name)
        .ok_or_else(|| Failure::usage(format!("there is no script for {name}")))?;
    let mut script = Vec::new();
    let program = "aerostat";
    shell.write_registration(names::VARIABLE, program, program, program, &mut script)?;
    std::io::stdout().lock().write_all(&script)?;
    Ok(Exit::Ok)
}
