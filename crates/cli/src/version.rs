//! Facts about this program, for `--version`, reports and manifests of results.

/// Version of the program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The last commit of the source when the program was built, in short; `+` behind it: with changes. Empty if the source
/// was no repository, and in builds for development, which are not repeated at each commit.
pub(crate) const COMMIT: &str = env!("AEROSTAT_COMMIT");
/// Time of that commit; empty as above.
pub(crate) const COMMITTED: &str = env!("AEROSTAT_COMMITTED");
/// Compiler of the program.
pub(crate) const RUSTC: &str = env!("AEROSTAT_RUSTC");
/// The machine that it is for: processor, system and C library, as rustc names them.
pub(crate) const TARGET: &str = env!("AEROSTAT_TARGET");
/// True if the program is one file that needs no library of the system.
pub(crate) const IS_STATIC: bool = cfg!(target_feature = "crt-static");

/// The text of `--version`: version and commit with its day; the target; what the program can do.
pub(crate) const LONG: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\nsource:   ",
    env!("AEROSTAT_SOURCE"),
    "\ncompiler: ",
    env!("AEROSTAT_RUSTC"),
    "\ntarget:   ",
    env!("AEROSTAT_TARGET"),
    ", profile ",
    env!("AEROSTAT_PROFILE"),
    "\nfeatures: ",
    env!("AEROSTAT_FEATURES"),
);
