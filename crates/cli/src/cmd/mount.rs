//! `aerostat mount`: the state of a running lab as the files that Linux had.

use crate::args::MountArgs;
use crate::client;
use crate::exit::{Exit, Failure, Outcome, say};
use aerostat_live::mount;
use aerostat_live::namespace::FUSE;
use aerostat_wire::counted;
use std::io::ErrorKind;

/// Mounts, and stays until a signal comes or the lab ends.
pub(crate) fn run(args: &MountArgs) -> Outcome {
    let lab = client::choose(&args.which)?;
    let shown = args.directory.display();
    for directory in mount::sweep() {
        say(format_args!(
            "took away a dead mount at {directory}: its process was killed"
        ));
    }
    // The error of a dead mount of another user is about a transport endpoint.
    if let Err(error) = std::fs::metadata(&args.directory)
        && error.kind() == ErrorKind::NotConnected
    {
        let text = format!("{shown}: a dead mount is there: {error}");
        return Err(Failure::failed(text).hint(format!(
            "'fusermount3 -u {shown}', or 'sudo umount {shown}', takes it away"
        )));
    }
    if !args.directory.is_dir() {
        return Err(Failure::usage(format!("{shown} is no directory")));
    }
    let inside = std::fs::read_dir(&args.directory);
    let inside = inside.map_err(|error| Failure::failed(format!("{shown}: {error}")))?;
    if let some @ 1.. = inside.count() {
        let hidden = counted(some, "entry would be hidden", "entries would be hidden");
        let text = format!("{shown} is not empty: {hidden}");
        return Err(Failure::usage(text).hint("mkdir atm; aerostat mount atm"));
    }
    if let Err(error) = FUSE.try_to_open()
        && error.kind() != ErrorKind::PermissionDenied
    {
        // A user without the right has the program fusermount3.
        return Err(Failure::new(
            Exit::Privilege,
            format!("{}: {error}", FUSE.path),
        ));
    }
    let ready = || {
        say(format_args!(
            "lab '{}' is under {shown} until Ctrl-C",
            lab.name
        ))
    };
    let program = std::env::current_exe()?;
    mount::run(&lab.name, &args.directory, &program, ready).map_err(|error| {
        let exit = match error.kind() {
            ErrorKind::PermissionDenied => Exit::Privilege,
            _ => Exit::Failed,
        };
        Failure::new(exit, format!("mounting at {shown}: {error}"))
    })?;
    Ok(Exit::Ok)
}
