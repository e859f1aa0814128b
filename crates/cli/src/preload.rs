//! The library that gives ATM sockets to unmodified programs for those of Linux. It is a file of its own beside the
//! command, so that it may be missing.

use std::path::PathBuf;

/// Its name.
pub(crate) const NAME: &str = "libaerostat_preload.so";
/// Way to get the library.
pub(crate) const ADVICE: &str = "'cargo build --release -p aerostat-preload' makes it in target/release; copy it beside \
                                 the command, or into ../lib of its folder";

/// The library beside this command, or where packages put libraries.
pub(crate) fn find() -> Option<PathBuf> {
    let command = std::env::current_exe().ok()?;
    let directory = command.parent()?;
    let places = ["", "../lib/aerostat", "../lib"];
    let mut paths = places
        .map(|place| directory.join(place).join(NAME))
        .into_iter();
    paths.find(|path| path.exists())
}

/// True if the user preloads the library already.
pub(crate) fn is_given() -> bool {
    let list = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    list.to_string_lossy().contains(NAME)
}
