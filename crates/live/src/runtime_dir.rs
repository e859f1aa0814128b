//! What a running lab leaves on disk: one directory, removed when it ends, harmless when it could not be.
//!
//! ```text
//! $XDG_RUNTIME_DIR/aerostat/LAB/   (root: /run/aerostat/LAB, else /tmp/aerostat-UID/LAB), mode 0700
//!     lock            held (flock) by the lab's process as long as it lives, however it ends
//!     control.sock    see `control`
//!     daemons.sock    see `daemons`; with `--split` only
//!     state.json      who runs it, for `ls`
//! ```
//!
//! A directory whose lock nobody holds is the remains of a killed lab: the next `up`, `down` or `ls` of anybody
//! removes it.

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What `state.json` says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabState {
    /// Name of the lab.
    pub name: String,
    /// Process that runs it.
    pub pid: u32,
    /// The lab file, as it was given.
    pub file: String,
    /// Seconds since 1970 when it was started.
    pub started: u64,
}

/// The directory that holds one directory per lab of this user.
#[must_use]
pub fn base() -> PathBuf {
    let uid = rustix::process::getuid().as_raw();
    if let Some(dir) = std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| Path::new(dir).is_dir()) {
        return PathBuf::from(dir).join("aerostat");
    }
    if uid == 0 {
        return PathBuf::from("/run/aerostat");
    }
    PathBuf::from(format!("/tmp/aerostat-{uid}"))
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
    /// It runs already.
    Running(Option<LabState>),
    /// The directory cannot be made or belongs to somebody else.
    Io(PathBuf, io::Error),
}

impl Claim {
    /// Claims the name and writes `state.json`; remains of a killed lab of this name are removed first.
    ///
    /// # Errors
    /// If the lab runs, or the directory cannot be used.
    pub fn new(state: &LabState) -> Result<Self, ClaimError> {
        let base = base();
        let directory = base.join(&state.name);
        let io = |error| ClaimError::Io(directory.clone(), error);
        fs::create_dir_all(&base).map_err(io)?;
        own_and_private(&base).map_err(io)?;
        fs::create_dir_all(&directory).map_err(io)?;
        own_and_private(&directory).map_err(io)?;
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(directory.join("lock"))
            .map_err(io)?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(ClaimError::Running(read_state(&directory)));
        }
        let _ = fs::remove_file(directory.join("control.sock"));
        let text = serde_json::to_string(state)
            .map_err(io::Error::other)
            .map_err(io)?;
        fs::write(directory.join("state.json"), text).map_err(io)?;
        Ok(Self {
            directory,
            _lock: lock,
        })
    }

    /// The lab's directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where the control socket belongs.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.directory.join("control.sock")
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A directory under /tmp could have been put there by somebody else: refuse it.
fn own_and_private(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::symlink_metadata(directory)?;
    if !metadata.is_dir() || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "belongs to somebody else",
        ));
    }
    fs::set_permissions(directory, Permissions::from_mode(0o700))
}

fn read_state(directory: &Path) -> Option<LabState> {
    serde_json::from_str(&fs::read_to_string(directory.join("state.json")).ok()?).ok()
}

/// The labs of this user that run. Remains of killed ones are removed on the way.
#[must_use]
pub fn running() -> Vec<LabState> {
    let mut labs = Vec::new();
    for entry in fs::read_dir(base()).into_iter().flatten().flatten() {
        let directory = entry.path();
        let Ok(lock) = File::open(directory.join("lock")) else {
            continue;
        };
        if flock(&lock, FlockOperation::NonBlockingLockShared).is_ok() {
            let _ = fs::remove_dir_all(&directory);
        } else if let Some(state) = read_state(&directory) {
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
