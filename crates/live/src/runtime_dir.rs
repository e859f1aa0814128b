//! The files of a running lab: one directory, which is removed when the lab ends, and harmless if it remains.
//!
//! ```text
//! $XDG_RUNTIME_DIR/aerostat/LAB/   (if it belongs to the user; else root: /run/aerostat/LAB, others:
//!                                   /tmp/aerostat-UID/LAB), mode 0700
//!     lock            held (flock) by the lab's process as long as it lives, however it ends
//!     control.sock    see `control`
//!     atm/HOST.sock   see `socket_service`
//!     daemons.sock    see `daemons`; with `--split` only
//!     state.json      who runs it, for `ls`
//! ```
//!
//! A directory whose lock is free remained after a killed lab; the next `up`, `down` or `ls` removes it.

use aerostat_lab::files::{self, Named};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Contents of `state.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabState {
    /// Name of the lab.
    pub name: String,
    /// Process id of the lab.
    pub pid: u32,
    /// The lab file as given by the user.
    pub file: String,
    /// Start time in seconds since 1970.
    pub started: u64,
    /// Version of its program; empty if it is 0.2.0 or older.
    #[serde(default)]
    pub version: String,
}

/// Version of this program, as labs that it starts say it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The directory that holds one directory per lab of this user.
#[must_use]
pub fn base() -> PathBuf {
    if let Some(Ok(given)) = given() {
        return given.join("aerostat");
    }
    match rustix::process::getuid().as_raw() {
        0 => PathBuf::from("/run/aerostat"),
        uid => PathBuf::from(format!("/tmp/aerostat-{uid}")),
    }
}

/// A sentence about the directory that the environment names, if it is not used.
#[must_use]
pub fn passed_over() -> Option<String> {
    let given = given()?.err()?;
    let (given, base) = (given.display().to_string(), base());
    let given = aerostat_lab::printable::line(&given);
    let base = base.display();
    Some(format!(
        "XDG_RUNTIME_DIR is '{given}', which is no directory of this user: labs are below {base}"
    ))
}

/// The directory that the environment names; an error if it cannot be used.
fn given() -> Option<Result<PathBuf, PathBuf>> {
    let given = std::env::var_os("XDG_RUNTIME_DIR").filter(|given| !given.is_empty())?;
    let given = PathBuf::from(given);
    // A process that keeps the environment of another user, as with `sudo -E`, must not work in that user's directory:
    // its owner could put anything in the place of the lab's. The specification of the variable demands this, too.
    let uid = rustix::process::getuid().as_raw();
    let there = fs::metadata(&given);
    let own = there.is_ok_and(|there| there.is_dir() && there.uid() == uid);
    Some(if own { Ok(given) } else { Err(given) })
}

/// The claim of this process on a lab's name; removes the directory when dropped.
#[derive(Debug)]
pub struct Claim {
    directory: PathBuf,
    _lock: File,
}

/// Why a lab's name cannot be claimed.
#[derive(Debug)]
pub enum ClaimError {
    /// The lab runs already.
    Running(Option<LabState>),
    /// The directory cannot be made or belongs to another user.
    Io(PathBuf, io::Error),
}

/// How often a claim is repeated while another process removes the remains of a killed lab with this name.
const TRIES: u32 = 50;
/// Pause between attempts.
const PAUSE: Duration = Duration::from_millis(10);

impl Claim {
    /// Claims the name and writes `state.json`; remains of a killed lab of this name are removed first.
    ///
    /// # Errors
    /// If the lab runs, or the directory cannot be used.
    pub fn new(state: &LabState) -> Result<Self, ClaimError> {
        Self::in_base(&base(), state)
    }

    fn in_base(base: &Path, state: &LabState) -> Result<Self, ClaimError> {
        let directory = base.join(&state.name);
        let io = |error| ClaimError::Io(directory.clone(), error);
        fs::create_dir_all(base).map_err(io)?;
        own_and_private(base, true).map_err(io)?;
        for _ in 0..TRIES {
            let Some(lock) = take_lock(&directory).map_err(io)? else {
                // Either the lab runs, or another process is removing the remains at this moment.
                match read_state(&directory) {
                    Some(state) if is_alive(state.pid) => {
                        return Err(ClaimError::Running(Some(state)));
                    }
                    _ => std::thread::sleep(PAUSE),
                }
                continue;
            };
            let _ = fs::remove_file(directory.join("control.sock"));
            // From here on, the directory is removed if anything fails.
            let claim = Self {
                directory: directory.clone(),
                _lock: lock,
            };
            let text = serde_json::to_string(state).map_err(io::Error::other);
            let file = directory.join("state.json");
            let write = |text: String| {
                files::write_whole(&file, Named::ByProgram, |out| {
                    out.write_all(text.as_bytes())
                })
            };
            text.and_then(write).map_err(io)?;
            return Ok(claim);
        }
        Err(ClaimError::Running(read_state(&directory)))
    }

    /// The lab's directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Path of the control socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.directory.join("control.sock")
    }
}

/// Makes the directory and takes its lock; `None` if another process has the lock, or the directory was removed in the
/// meantime.
fn take_lock(directory: &Path) -> io::Result<Option<File>> {
    match fs::create_dir_all(directory) {
        Ok(()) => {}
        // The directory was there, and was removed before it was looked at. A file with its name stays an error.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let still = fs::symlink_metadata(directory);
            return match still.is_ok_and(|there| !there.is_dir()) {
                true => Err(error),
                false => Ok(None),
            };
        }
        Err(error) => return Err(error),
    }
    let opened =
        own_and_private(directory, false).and_then(|()| files::resume(&directory.join("lock")));
    let lock = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            // There is no room for the lock file, so no process has it, and this can only remove an empty directory.
            let _ = fs::remove_dir(directory);
            return Err(error);
        }
        Ok(lock) => lock,
    };
    let held = flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
    Ok((held && is_lock_of(&lock, directory)).then_some(lock))
}

/// True if this open file is the lock in the directory, not that of a directory that was removed.
fn is_lock_of(lock: &File, directory: &Path) -> bool {
    let here = lock.metadata().map(|file| (file.dev(), file.ino()));
    let there = fs::metadata(directory.join("lock")).map(|file| (file.dev(), file.ino()));
    matches!((here, there), (Ok(here), Ok(there)) if here == there)
}

/// True if the process exists.
fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| !matches!(test_kill_process(pid), Err(Errno::SRCH)))
}

/// Removes the directory of a lab whose lock the caller holds. It is renamed first: in one step it is no longer the
/// directory of any lab. So no process finds half of it, and nothing of a lab that starts in the meantime is removed.
fn remove(directory: &Path) {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let gone = directory.with_file_name(format!("{GONE}{}-{number}", std::process::id()));
    if fs::rename(directory, &gone).is_ok() {
        let _ = fs::remove_dir_all(gone);
    }
}

/// Prefix of directories that are being removed; no lab's name begins with it.
const GONE: &str = ".gone-";

impl Drop for Claim {
    fn drop(&mut self) {
        remove(&self.directory);
    }
}

/// Another user could have made a directory under /tmp, so refuse one that is not private. `passable`: others may pass
/// it, if a lab has said so.
fn own_and_private(directory: &Path, passable: bool) -> io::Result<()> {
    let metadata = fs::symlink_metadata(directory)?;
    if !metadata.is_dir() || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "belongs to another user",
        ));
    }
    // A lab whose sockets are for a group has let others pass this directory; they cannot list it.
    match metadata.mode() & 0o777 {
        0o711 if passable => Ok(()),
        _ => fs::set_permissions(directory, Permissions::from_mode(0o700)),
    }
}

fn read_state(directory: &Path) -> Option<LabState> {
    serde_json::from_str(&fs::read_to_string(directory.join("state.json")).ok()?).ok()
}

/// The running labs of this user. Remains of killed labs are removed in passing.
#[must_use]
pub fn running() -> Vec<LabState> {
    running_in(&base())
}

fn running_in(base: &Path) -> Vec<LabState> {
    let mut labs = Vec::new();
    // All entries are read first: a directory that is renamed below may appear again as long as others are read.
    let entries: Vec<_> = fs::read_dir(base).into_iter().flatten().flatten().collect();
    for entry in entries {
        let directory = entry.path();
        let Ok(lock) = File::open(directory.join("lock")) else {
            continue;
        };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            // Between the two calls the lab may have ended and another one with its name may have started.
            if is_lock_of(&lock, &directory) {
                remove(&directory);
            }
        } else if !entry.file_name().to_string_lossy().starts_with(GONE)
            && let Some(state) = read_state(&directory)
        {
            labs.push(state);
        }
    }
    labs.sort_by(|a, b| a.name.cmp(&b.name));
    labs
}

/// The control socket of a running lab.
#[must_use]
pub fn socket_of(name: &str) -> PathBuf {
    base().join(name).join("control.sock")
}

/// The socket service of a host of a running lab.
#[must_use]
pub fn atm_socket_of(name: &str, host: &str) -> PathBuf {
    let directory = base().join(name).join(crate::socket_service::DIRECTORY);
    directory.join(format!("{host}.sock"))
}

/// The hosts of a running lab that have a socket service, by name; `None` if this user may not list them.
#[must_use]
pub fn atm_hosts_of(name: &str) -> Option<Vec<String>> {
    let directory = base().join(name).join(crate::socket_service::DIRECTORY);
    let entries = fs::read_dir(directory).ok()?.filter_map(Result::ok);
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let hosts = names.filter_map(|name| name.strip_suffix(".sock").map(str::to_owned));
    let mut hosts: Vec<String> = hosts.collect();
    hosts.sort_unstable();
    Some(hosts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn state(name: &str) -> LabState {
        LabState {
            name: name.into(),
            pid: std::process::id(),
            file: "x.atm.yml".into(),
            started: 0,
            version: VERSION.into(),
        }
    }

    struct Base(PathBuf);

    impl Base {
        fn new(test: &str) -> Self {
            let name = format!("aerostat-claims-{}-{test}", std::process::id());
            let base = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&base);
            Self(base)
        }
    }

    impl Drop for Base {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_list_never_removes_the_directory_of_a_lab_that_starts() {
        let base = Base::new("race");
        let ended = Arc::new(AtomicBool::new(false));
        let listers: Vec<_> = (0..2)
            .map(|_| {
                let (base, ended) = (base.0.clone(), Arc::clone(&ended));
                std::thread::spawn(move || {
                    while !ended.load(Ordering::Relaxed) {
                        running_in(&base);
                    }
                })
            })
            .collect();
        for claims in 0..100 {
            // Remains of a killed lab make listing and claiming collide.
            let directory = base.0.join("a");
            // A list may remove them at the same time.
            let _ = fs::create_dir_all(&directory);
            let _ = fs::write(directory.join("lock"), "");
            let claim = Claim::in_base(&base.0, &state("a")).unwrap();
            assert!(claim.directory().join("state.json").exists(), "{claims}");
            let listed = running_in(&base.0);
            assert_eq!(listed, [state("a")], "after {claims} claims");
            // The lab's directory still exists and is still its own.
            assert!(claim.directory().join("lock").exists(), "{claims}");
        }
        ended.store(true, Ordering::Relaxed);
        for lister in listers {
            lister.join().unwrap();
        }
        assert_eq!(running_in(&base.0), []);
        assert_eq!(fs::read_dir(&base.0).unwrap().count(), 0);
    }

    #[test]
    fn a_claim_that_fails_half_way_leaves_nothing() {
        let base = Base::new("half");
        // Neither file can be written, because a directory has its name.
        for name in ["lock", "state.json"] {
            fs::create_dir_all(base.0.join("a").join(name)).unwrap();
            let failed = Claim::in_base(&base.0, &state("a"));
            assert!(matches!(failed, Err(ClaimError::Io(..))), "{name}");
            let _ = fs::remove_dir_all(base.0.join("a").join("lock"));
            let _ = fs::remove_dir(base.0.join("a"));
            assert_eq!(fs::read_dir(&base.0).unwrap().count(), 0, "{name}");
        }
    }

    /// A user who could write there once has planted links at all names of the lab's directory.
    #[test]
    fn no_file_of_a_lab_is_written_through_a_link() {
        use std::os::unix::fs::symlink;
        let base = Base::new("links");
        let victim = base.0.with_extension("victim");
        fs::write(&victim, "secret").unwrap();
        let directory = base.0.join("a");
        fs::create_dir_all(&directory).unwrap();
        for name in ["state.json", ".state.json.part"] {
            symlink(&victim, directory.join(name)).unwrap();
        }
        let claim = Claim::in_base(&base.0, &state("a")).unwrap();
        assert_eq!(running_in(&base.0), [state("a")]);
        drop(claim);
        fs::create_dir_all(&directory).unwrap();
        symlink(&victim, directory.join("lock")).unwrap();
        let refused = Claim::in_base(&base.0, &state("a")).unwrap_err();
        assert!(matches!(refused, ClaimError::Io(..)), "{refused:?}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "secret");
        fs::remove_file(&victim).unwrap();
    }

    #[test]
    fn the_state_of_an_older_or_newer_program_is_read() {
        let older = r#"{"name":"a","pid":1,"file":"x","started":0}"#;
        let older: LabState = serde_json::from_str(older).unwrap();
        assert_eq!((&*older.name, &*older.version), ("a", ""));
        let newer = r#"{"name":"a","pid":1,"file":"x","started":0,"version":"9.9","colour":"red"}"#;
        let newer: LabState = serde_json::from_str(newer).unwrap();
        assert_eq!(newer.version, "9.9");
    }

    #[test]
    fn a_lab_that_runs_is_named_and_not_claimed_twice() {
        let base = Base::new("twice");
        let claim = Claim::in_base(&base.0, &state("a")).unwrap();
        let Err(ClaimError::Running(Some(known))) = Claim::in_base(&base.0, &state("a")) else {
            panic!("claimed twice");
        };
        assert_eq!(known, state("a"));
        drop(claim);
        assert_eq!(fs::read_dir(&base.0).unwrap().count(), 0);
        drop(Claim::in_base(&base.0, &state("a")).unwrap());
    }
}
