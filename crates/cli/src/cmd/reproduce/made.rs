//! How results were made: the program, its source, the seeds and the time.

use crate::version::{COMMIT, COMMITTED, RUSTC, VERSION};
use std::time::SystemTime;

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
