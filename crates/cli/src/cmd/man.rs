//! `aerostat man`: manual pages.

use crate::args::{Cli, ManArgs};
use crate::exit::{Exit, Failure, Outcome, say};
use clap::{Command, CommandFactory as _};
use std::io::Write as _;

/// Prints one page, or writes all.
pub(crate) fn run(args: &ManArgs) -> Outcome {
    let mut root = Cli::command();
    root.build();
    if let Some(dir) = &args.dir {
        std::fs::create_dir_all(dir)
            .map_err(|e| Failure::failed(format!("{}: {e}", dir.display())))?;
        let subcommands = root
            .get_subcommands()
            .filter(|sub| sub.get_name() != "help");
        for command in std::iter::once(&root).chain(subcommands) {
            let file = dir.join(format!("{}.1", page_name(command)));
            std::fs::write(&file, page(command)?)
                .map_err(|e| Failure::failed(format!("{}: {e}", file.display())))?;
        }
        say(format_args!("manual pages are in {}", dir.display()));
        return Ok(Exit::Ok);
    }
    let command = match &args.command {
        None => &root,
        Some(name) => root
            .find_subcommand(name)
            .ok_or_else(|| Failure::usage(format!("there is no subcommand '{name}'")))?,
    };
    std::io::stdout().lock().write_all(&page(command)?)?;
    Ok(Exit::Ok)
}

fn page_name(command: &Command) -> String {
    match command.get_name() {
        "aerostat" => "aerostat".to_owned(),
        sub => format!("aerostat-{sub}"),
    }
}

fn page(command: &Command) -> Result<Vec<u8>, Failure> {
    let name = page_name(command);
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone().display_name(name)).render(&mut text)?;
    Ok(text)
}
