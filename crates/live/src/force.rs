//! Ending a lab that does not answer, because it was stopped by a signal or hangs.
//!
//! First SIGTERM is sent, with SIGCONT for a process that was stopped: if its loop runs again it ends in order. Then
//! SIGKILL is sent; everything that the lab has in the kernel ends with its process, and its remains on disk are
//! removed. The process is held by a descriptor (pidfd), so that no other process can get the signals.

use crate::runtime_dir::{self, LabState};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs;
use std::io;
use std::time::{Duration, Instant};

/// How long the lab may take to end in order after SIGTERM. The release of calls takes at most three seconds.
const GRACE: Duration = Duration::from_secs(5);
/// How long the kernel may take to end a process that was killed.
const DYING: Duration = Duration::from_secs(10);

/// How a lab was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By SIGTERM, in order.
    Terminated,
    /// By SIGKILL.
    Killed,
}

/// Requests the end of a program that was started in a process group of its own, and of the processes that it has
/// started (SIGINT).
///
/// # Errors
/// If the group has no process left.
pub fn interrupt_group(group: u32) -> io::Result<()> {
    signal_group(group, Signal::INT)
}

/// Ends such a program at once, with the processes that it has started.
///
/// # Errors
/// As [`interrupt_group`].
pub fn kill_group(group: u32) -> io::Result<()> {
    signal_group(group, Signal::KILL)
}

fn signal_group(group: u32, signal: Signal) -> io::Result<()> {
    let group = i32::try_from(group).ok().and_then(Pid::from_raw);
    let group = group.ok_or_else(|| io::Error::other("no process group"))?;
    Ok(rustix::process::kill_process_group(group, signal)?)
}

/// Ends the process of a lab. `listens` is the process that listens at its control socket, if known. `tell` gets a line
/// before each signal.
///
/// # Errors
/// If it is not certain which process the lab is, if the process belongs to another user, or if it does not die.
pub fn end(
    lab: &LabState,
    listens: Option<u32>,
    tell: &mut dyn FnMut(String),
) -> io::Result<Ended> {
    let pid = lab.pid;
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let process = process.ok_or_else(|| io::Error::other(format!("no process {pid}")))?;
    let process = pidfd_open(process, PidfdFlags::empty())?;
    // Get the descriptor first and check afterwards, so that the process cannot be replaced by another one in between.
    if listens != Some(pid) && !holds_lock(lab) {
        let text = format!("it is not certain that process {pid} is the lab");
        return Err(io::Error::other(text));
    }
    tell(format!("SIGTERM to process {pid}"));
    pidfd_send_signal(&process, Signal::TERM)?;
    pidfd_send_signal(&process, Signal::CONT)?;
    let ended = if ends(&process, GRACE)? {
        Ended::Terminated
    } else {
        let grace = GRACE.as_secs();
        tell(format!(
            "it did not end within {grace} s: SIGKILL to process {pid}"
        ));
        pidfd_send_signal(&process, Signal::KILL)?;
        if !ends(&process, DYING)? {
            return Err(io::Error::other(format!("process {pid} does not die")));
        }
        Ended::Killed
    };
    // This removes the remains of the lab.
    let _ = runtime_dir::running();
    Ok(ended)
}

/// True if the lab's process has the lock of its directory open.
fn holds_lock(lab: &LabState) -> bool {
    let lock = runtime_dir::base().join(&lab.name).join("lock");
    let Ok(lock) = fs::canonicalize(lock) else {
        return false;
    };
    let open = fs::read_dir(format!("/proc/{}/fd", lab.pid));
    let mut open = open.into_iter().flatten().flatten();
    open.any(|fd| fs::read_link(fd.path()).is_ok_and(|path| path == lock))
}

/// Waits for a process to end; false if it takes longer than `patience`.
fn ends(process: &OwnedFd, patience: Duration) -> io::Result<bool> {
    let until = Instant::now() + patience;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let time = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        };
        let mut fds = [PollFd::new(process, PollFlags::IN)];
        match rustix::event::poll(&mut fds, Some(&time)) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
