//! `aerostat man`: manual pages.

mod lab_file;

use crate::args::{Cli, ManArgs};
use crate::exit::{Exit, Failure, Outcome, say};
use aerostat_lab::files::{Named, write_whole};
use clap::{Command, CommandFactory as _};
use std::io::Write as _;
use std::path::Path;

/// Prints one page, or writes all pages.
pub(crate) fn run(args: &ManArgs) -> Outcome {
    let mut root = Cli::command();
    root.build();
    if let Some(dir) = &args.dir {
        std::fs::create_dir_all(dir)
            .map_err(|e| Failure::failed(format!("{}: {e}", dir.display())))?;
        write(&dir.join("aerostat-lab.5"), &lab_file::page()?)?;
        all(&root, "aerostat", dir)?;
        say(format_args!("manual pages are in {}", dir.display()));
        return Ok(Exit::Ok);
    }
    let text = match &args.command[..] {
        [only] if only == "lab" => lab_file::page()?,
        words => {
            let (mut command, mut name) = (&root, "aerostat".to_owned());
            for word in words {
                command = command.find_subcommand(word).ok_or_else(|| {
                    let words = words.join(" ");
                    Failure::usage(format!("there is no subcommand '{words}'"))
                })?;
                name = format!("{name}-{word}");
            }
            page(command, name)?
        }
    };
    std::io::stdout().lock().write_all(&text)?;
    Ok(Exit::Ok)
}

/// Writes the pages of a command and of its subcommands.
fn all(command: &Command, name: &str, dir: &Path) -> Result<(), Failure> {
    write(
        &dir.join(format!("{name}.1")),
        &page(command, name.to_owned())?,
    )?;
    let below = command.get_subcommands();
    for sub in below.filter(|sub| sub.get_name() != "help") {
        all(sub, &format!("{name}-{}", sub.get_name()), dir)?;
    }
    Ok(())
}

fn write(file: &Path, text: &[u8]) -> Result<(), Failure> {
    let written = write_whole(file, Named::ByProgram, |out| out.write_all(text));
    written.map_err(|e| Failure::failed(format!("{}: {e}", file.display())))
}

fn page(command: &Command, name: String) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone().display_name(name)).render(&mut text)?;
    Ok(text)
}
