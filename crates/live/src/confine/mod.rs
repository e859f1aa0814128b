//! Rights that processes give up: a lab's process once it is set up, and its daemons (`daemon.rs`).
//!
//! One process parses traffic from outside, frames of kernels and requests of clients, and it is root if the lab has
//! kernel hosts. So before its first thread starts, it gives up everything that it does not need:
//!
//! | layer | what is left | file |
//! |---|---|---|
//! | capabilities | none; one to reach its directory or that of `--out`, if the user alone could not | `capabilities.rs` |
//! | no_new_privs | no program can give it rights | here |
//! | landlock | its own directory, to remove it; that of `--out`; TCP connections to the ports of `atmtcp: connect` | `files.rs` |
//! | seccomp | what the loop and the threads of clients call: no new process, no program, no file to write except that of `--out` | `syscalls.rs` |
//!
//! The helper ([`crate::helper`]) does what needs more rights while the lab runs. Each layer holds as far as the kernel
//! supports it. A layer that is missing is reported and is not an error: `aerostat inspect lab` and `aerostat doctor`
//! show it.

mod capabilities;
mod daemon;
mod files;
mod syscalls;
#[cfg(test)]
mod tests;

pub(crate) use capabilities::{drop_all, keep_only};
pub(crate) use daemon::confine_daemon;

use crate::helper::Helper;
use crate::threads;
use aerostat_lab::hops;
use aerostat_lab::model::{Lab, OutsideWay};
use rustix::thread as own;
use rustix::thread::CapabilitySet;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The rights that a lab still needs.
#[derive(Clone, Debug)]
pub(crate) struct Needs {
    /// The lab's own directory, inside the directory of all labs.
    pub(crate) directory: PathBuf,
    /// TCP ports that it connects to.
    pub(crate) connects: Vec<u16>,
    /// True if it waits for interfaces to come back.
    pub(crate) binds: bool,
    /// The directory where results are written at the end.
    pub(crate) results: Option<PathBuf>,
    /// Directories with files that are read again when they change.
    pub(crate) reads: BTreeSet<PathBuf>,
}

impl Needs {
    /// The needs of a lab with this directory of its own, which writes its results to `results`.
    pub(crate) fn of(lab: &Lab, directory: &Path, results: Option<&Path>) -> Self {
        let ways = || lab.outside().map(|(_, _, model)| &model.way);
        let port = |way: &OutsideWay| match way {
            OutsideWay::AtmTcpConnect { to } => to.rsplit_once(':')?.1.parse().ok(),
            _ => None,
        };
        Self {
            directory: directory.to_owned(),
            connects: ways().filter_map(port).collect(),
            binds: ways()
                .any(|way| matches!(way, OutsideWay::Ethernet { .. } | OutsideWay::Mpls(_))),
            results: results.map(Path::to_owned),
            reads: hops::files(lab)
                .filter_map(|(_, map)| Some(map.path.parent()?.to_owned()))
                .collect(),
        }
    }
}

/// The state of two of the layers. The kernel can be asked about the other layers at any time.
#[derive(Clone, Debug)]
pub(crate) struct Confinement {
    landlock: String,
    /// Why system calls are not filtered; `None` if they are.
    unfiltered: Option<String>,
    /// The process that has the rights that were given up.
    helper: Option<Arc<Helper>>,
}

/// Gives up everything that is not needed, for the calling thread and all threads that it starts later.
pub(crate) fn confine(needs: &Needs) -> Confinement {
    // The order matters: reducing the bounding set needs a capability, and the filter forbids all of these calls.
    let results = needs.results.as_deref();
    let results = results.map_or(CapabilitySet::empty(), capabilities::to_write);
    let keep = capabilities::to_reach(&needs.directory) | results;
    keep_only(keep, CapabilitySet::empty());
    let _ = own::set_no_new_privs(true);
    let landlock = files::restrict(needs).unwrap_or_else(|error| format!("off: {error}"));
    let filtered = syscalls::restrict(syscalls::Calls {
        connects: !needs.connects.is_empty(),
        binds: needs.binds,
        writes: needs.results.is_some(),
    });
    Confinement {
        landlock,
        unfiltered: filtered.err(),
        helper: None,
    }
}

impl Confinement {
    /// The same, with the lab's helper.
    pub(crate) fn with(self, helper: Option<Arc<Helper>>) -> Self {
        Self { helper, ..self }
    }

    /// The layers that are missing because the kernel does not support them, in words.
    pub(crate) fn missing(&self) -> Vec<String> {
        let landlock = self.landlock.strip_prefix("off");
        let landlock =
            landlock.map(|why| format!("landlock does not restrict the lab's process{why}"));
        let seccomp = self.unfiltered.as_ref();
        let seccomp =
            seccomp.map(|why| format!("seccomp does not restrict the lab's process: {why}"));
        landlock.into_iter().chain(seccomp).collect()
    }

    /// The same as [`Self::in_force`], and the helper.
    pub(crate) fn rows(&self) -> Vec<(&'static str, String)> {
        let helper = match &self.helper {
            None => "not needed".to_owned(),
            Some(helper) if !helper.serves() => {
                "gone: stations do not move, daemons do not start".to_owned()
            }
            Some(helper) => format!("process {}", helper.pid().unwrap_or_default()),
        };
        let mut rows = self.in_force();
        rows.push(("privileged helper", helper));
        rows
    }

    /// The layers in force for the calling thread, and how far each holds.
    pub(crate) fn in_force(&self) -> Vec<(&'static str, String)> {
        let yes = |yes: bool| if yes { "on" } else { "off" }.to_owned();
        let filter = own::secure_computing_mode() == Ok(own::SecureComputingMode::Filter);
        let seccomp = match &self.unfiltered {
            Some(why) => format!("off: {why}"),
            None => yes(filter),
        };
        vec![
            ("capabilities", capabilities::in_force()),
            ("bounding set", capabilities::bounding()),
            ("no new privileges", yes(own::no_new_privs() == Ok(true))),
            ("system calls (seccomp)", seccomp),
            ("files (landlock)", self.landlock.clone()),
        ]
    }
}

/// The rights that a lab of this user would have on this system. This is tried out on a thread that ends.
#[must_use]
pub fn tried() -> Vec<(&'static str, String)> {
    let directory = crate::runtime_dir::base();
    let there = directory.ancestors().find(|path| path.is_dir());
    let needs = Needs {
        directory: there.unwrap_or(Path::new("/")).to_owned(),
        connects: vec![2812],
        binds: true,
        results: None,
        reads: BTreeSet::new(),
    };
    let trial = threads::spawn(move || confine(&needs).in_force());
    trial.map_or_else(
        |error| vec![("threads", error.to_string())],
        |trial| trial.join().unwrap_or_default(),
    )
}
