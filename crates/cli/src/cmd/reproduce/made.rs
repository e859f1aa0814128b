//! How results were made: the program, its source, the seeds and the time.

use std::time::SystemTime;

/// Program and source of the results.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The last commit of the source when the program was built, in short; `+` behind it: with changes. Empty if the source
/// was no repository, and in builds for development, which are not repeated at each commit.
pub(super) const COMMIT: &str = env!("AEROSTAT_COMMIT");
/// Time of that commit.
pub(super) const COMMITTED: &str = env!("AEROSTAT_COMMITTED");
/// Compiler of the program.
pub(super) const RUSTC: &str = env!("AEROSTAT_RUSTC");

/// The program in words.
pub(super) fn words() -> String {
    let commit = match COMMIT {
        "" => "built from an unknown commit".to_owned(),
        commit => format!("commit {commit} of {COMMITTED}"),
    };
    format!("Aerostat {VERSION}, {commit}, {RUSTC}")
}

/// Version and commit. Without an exact commit two programs differ by size and time of their files.
pub(super) fn version() -> String {
    if !COMMIT.is_empty() && !COMMIT.ends_with('+') {
        return format!("{VERSION} {COMMIT}");
    }
    let file = std::env::current_exe().and_then(std::fs::metadata);
    let built = file.and_then(|file| Ok((file.len(), file.modified()?)));
    let built = built.ok().and_then(|(len, time)| {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        Some(format!(" {len} {}", since.as_millis()))
    });
    format!("{VERSION} {COMMIT}{}", built.unwrap_or_default())
}
