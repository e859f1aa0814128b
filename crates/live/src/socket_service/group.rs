//! A group of the system whose members may use the socket service (`sockets: { group: NAME }` of a lab file).
//!
//! The kernel checks who connects: a connection needs the right to write to the file of a Unix socket, and to pass the
//! directories above it. So the group gets the sockets (mode 0660) and may pass the lab's directory and that of the
//! sockets (0710), but it may neither list them nor open anything else there. All of this is done before the lab gives
//! up its rights.

use nix::unistd::{Gid, Group};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;

fn error(kind: io::ErrorKind, text: String) -> io::Error {
    io::Error::new(kind, text)
}

/// True if this system has a group of this name.
#[must_use]
pub fn exists(name: &str) -> bool {
    find(name).is_ok()
}

/// The number of a group.
///
/// # Errors
/// If the system does not have it.
pub(super) fn find(name: &str) -> io::Result<Gid> {
    let found = Group::from_name(name)?;
    let found = found.map(|group| group.gid);
    found.ok_or_else(|| {
        let text = format!(
            "sockets: group: this system has no group '{name}' ('getent group' lists them)"
        );
        error(io::ErrorKind::NotFound, text)
    })
}

/// Gives a file or a directory to the group.
///
/// # Errors
/// If this user may not: only root, or a member of the group, may give it away.
fn give(path: &Path, gid: Gid, name: &str, mode: u32) -> io::Result<()> {
    let given = chown(path, None, Some(gid.as_raw()));
    given.map_err(|why| {
        let text = format!(
            "sockets: group: {} cannot be given to the group '{name}': {why} (only root and members of the group may)",
            path.display()
        );
        error(why.kind(), text)
    })?;
    fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Lets members of the group pass to the directory of the sockets in the lab's directory.
///
/// # Errors
/// If the directories cannot be given away, or if the group cannot pass one above them.
pub(super) fn open_way(lab: &Path, sockets: &Path, gid: Gid, name: &str) -> io::Result<()> {
    give(lab, gid, name, 0o710)?;
    give(sockets, gid, name, 0o710)?;
    let mut above = lab.parent();
    if let Some(base) = above {
        // It has the directories of all labs of this user, which are closed. To pass it is not to list it.
        fs::set_permissions(base, Permissions::from_mode(0o711))?;
    }
    while let Some(directory) = above {
        let there = fs::metadata(directory)?;
        let (mode, of_group) = (there.mode(), there.gid() == gid.as_raw());
        if mode & 0o001 == 0 && !(of_group && mode & 0o010 != 0) {
            let text = format!(
                "sockets: group: members of '{name}' cannot reach the lab: {} is closed to them (mode {:o}); set \
                 XDG_RUNTIME_DIR to a directory that they may pass",
                directory.display(),
                mode & 0o7777
            );
            return Err(error(io::ErrorKind::PermissionDenied, text));
        }
        above = directory.parent();
    }
    Ok(())
}

/// Gives the socket of a host to the group.
///
/// # Errors
/// As [`open_way`].
pub(super) fn give_socket(path: &Path, gid: Gid, name: &str) -> io::Result<()> {
    give(path, gid, name, 0o660)
}
