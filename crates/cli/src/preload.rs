//! The library that gives ATM sockets to unmodified programs for those of Linux. It is a file of its own beside the
//! command, so that it may be missing. A static command has none of its own, and finds that of the Debian package.

use crate::version;
use std::path::PathBuf;

/// Its name.
pub(crate) const NAME: &str = "libaerostat_preload.so";
/// Where the Debian package puts it.
const OF_PACKAGE: &str = "/usr/lib/aerostat";

/// Way to get the library.
pub(crate) const fn advice() -> &'static str {
    if version::IS_STATIC {
        "the static command has none: install the Debian package aerostat (docs/install.md), or copy the library beside \
         the command"
    } else {
        "'cargo build --release -p aerostat-preload' makes it in target/release; copy it beside the command, or into \
         ../lib of its folder"
    }
}

/// The library beside this command, or in the folder of libraries that belongs to its folder.
pub(crate) fn find() -> Option<PathBuf> {
    let command = std::env::current_exe().ok()?;
    let directory = command.parent()?;
    let beside = ["", "../lib/aerostat", "../lib"].map(|place| directory.join(place));
    let package = version::IS_STATIC.then(|| PathBuf::from(OF_PACKAGE));
    let places = beside.into_iter().chain(package);
    let mut paths = places.map(|place| place.join(NAME));
    paths.find(|path| path.exists())
}

/// True if the user preloads the library already.
pub(crate) fn is_given() -> bool {
    let list = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    list.to_string_lossy().contains(NAME)
}
