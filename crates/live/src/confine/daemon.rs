//! Confinement of daemons: processes that need one open socket, a clock and memory.
//!
//! | layer | what is left |
//! |---|---|
//! | user | a user of its own, 0x7000_0000 + its process id; without root, the user who started it |
//! | environment | none |
//! | network | an empty network namespace |
//! | capabilities, no_new_privs | none; no program can give it rights |
//! | files (landlock) | none; no signal to others |
//! | system calls (seccomp) | what reads, writes and waits on open descriptors; memory; time; its own end |
//! | limits | no new process, no core file, 16 descriptors, 1 GiB of memory |
//!
//! The order matters: each step takes away what a step before it needs. A step that the system refuses is told, in
//! words that say what the process may still do, and is not an error: `aerostat inspect processes` shows them.

use super::{capabilities, files, syscalls};
use crate::namespace;
use rustix::process as own;
use rustix::process::{Gid, Resource, Rlimit, Signal, Uid, setrlimit};
use rustix::thread as thread_own;

/// First of the users that no account has: above all ranges that systems give to people, services and containers.
const FIRST_USER: u32 = 0x7000_0000;
const NOBODY: u32 = 65_534;
/// Most memory that a daemon may write, octets: a LES with 10 000 clients of 256 addresses each needs a tenth of it.
const MEMORY: u64 = 1 << 30;

/// Gives up everything that a daemon with an open socket does not need, for the calling thread, which must be the only
/// one. `child`: the process ends with the one that started it. Returns what it may still do, in words.
pub(crate) fn confine_daemon(child: bool) -> Vec<String> {
    let mut may = Vec::new();
    if std::env::vars_os().next().is_some() {
        may.push("has the environment of its user".to_owned());
    }
    // The helper starts daemons in a network namespace that is empty.
    let connected = !namespace::is_network_empty();
    may.extend(another_user());
    if connected && namespace::leave_network().is_err() {
        may.push("is in the network of its user".to_owned());
    }
    capabilities::drop_all();
    match capabilities::in_force() {
        rights if rights == capabilities::NONE => {}
        rights => may.push(format!("has {rights}")),
    }
    if thread_own::no_new_privs() != Ok(true) {
        may.push("may gain rights by programs".to_owned());
    }
    if child {
        // A change of user clears this setting.
        let _ = own::set_parent_process_death_signal(Some(Signal::KILL));
    }
    may.extend(limited());
    match files::restrict_all() {
        Ok(told) if told.starts_with("on") => {}
        Ok(told) => may.push(format!("may open files (landlock is {told})")),
        Err(error) => may.push(format!("may open files (landlock: {error})")),
    }
    if let Err(why) = syscalls::restrict_daemon() {
        may.push(format!("may make any system call (seccomp: {why})"));
    }
    may
}

/// Becomes a user that no other process has.
fn another_user() -> Option<String> {
    if own::geteuid().is_root() {
        let _ = thread_own::set_thread_groups(&[]);
        let id = own::getpid().as_raw_pid().unsigned_abs();
        for id in [FIRST_USER.saturating_add(id), NOBODY] {
            let group = thread_own::set_thread_gid(Gid::from_raw(id));
            let user = thread_own::set_thread_uid(Uid::from_raw(id));
            if group.and(user).is_ok() {
                return (id == NOBODY).then(|| "is the user nobody, as others are".to_owned());
            }
        }
    }
    // A user namespace with one user has no other.
    Some("is the user of its lab".to_owned())
}

/// Sets the limits of the process.
fn limited() -> Option<String> {
    let limits = [
        ("make processes", Resource::Nproc, 0),
        ("leave core files", Resource::Core, 0),
        ("open descriptors", Resource::Nofile, 16),
        ("take memory", Resource::Data, MEMORY),
    ];
    let failed = limits.into_iter().filter(|&(_, resource, most)| {
        let most = Some(most);
        let limit = Rlimit {
            current: most,
            maximum: most,
        };
        setrlimit(resource, limit).is_err()
    });
    let failed: Vec<&str> = failed.map(|(what, ..)| what).collect();
    (!failed.is_empty()).then(|| format!("may {} without limit", failed.join(", ")))
}
