//! `aerostat mount`: the state of a running lab as the files that Linux had.

use crate::args::MountArgs;
use crate::client;
use crate::exit::{Exit, Failure, Outcome, say};
use aerostat_live::mount;
use std::io::ErrorKind;

/// Mounts, and stays until a signal comes or the lab ends.
pub(crate) fn run(args: &MountArgs) -> Outcome {
    let lab = client::choose(&args.which)?;
    let shown = args.directory.display();
    if !args.directory.is_dir() {
        return Err(Failure::usage(format!("{shown} is no directory")));
    }
    let inside = std::fs::read_dir(&args.directory);
    let inside = inside.map_err(|error| Failure::failed(format!("{shown}: {error}")))?;
    if let some @ 1.. = inside.count() {
        let text = format!("{shown} is not empty: {some} entries would be hidden");
        return Err(Failure::usage(text).hint("mkdir atm; aerostat mount atm"));
    }
    if !std::path::Path::new("/dev/fuse").exists() {
        return Err(Failure::new(Exit::Privilege, "there is no /dev/fuse")
            .hint("load the module: sudo modprobe fuse (in a container: --device /dev/fuse)"));
    }
    let ready = || {
        say(format_args!(
            "lab '{}' is under {shown} until Ctrl-C",
            lab.name
        ))
    };
    mount::run(&lab.name, &args.directory, ready).map_err(|error| {
        let exit = match error.kind() {
            ErrorKind::PermissionDenied => Exit::Privilege,
            _ => Exit::Failed,
        };
        Failure::new(exit, format!("mounting at {shown}: {error}"))
    })?;
    Ok(Exit::Ok)
}
