//! Processes that a running lab depends on besides daemons, and their deaths: see [`crate::supervisor`] and
//! [`crate::helper`].
//!
//! The network continues without them, but their function is lost, and the lab has no right to start others. So the
//! loss is reported once, and shown as long as the lab runs.

use crate::helper::Helper;
use crate::source::{Said, Slot, Source, Turn};
use crate::supervisor::LabProcesses;
use aerostat_proto::Trace;
use mio::unix::SourceFd;
use mio::{Interest, Registry};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsRawFd as _, OwnedFd};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;

/// One such process.
#[derive(Debug)]
struct Keeper {
    name: &'static str,
    process: u32,
    /// Loss without the process, in words.
    loss: &'static str,
    life: OwnedFd,
    gone: bool,
}

/// All such processes.
#[derive(Debug, Default)]
pub(crate) struct Keepers {
    all: Vec<Keeper>,
    /// True if the poller has reported an event.
    stirred: bool,
}

impl Keepers {
    /// Watches those of these processes that the lab has; the poller reports them.
    ///
    /// # Errors
    /// If they cannot be watched.
    pub(crate) fn watch(
        processes: Option<&LabProcesses>,
        helper: Option<&Helper>,
        registry: &Registry,
    ) -> io::Result<Self> {
        let supervisor = processes.map(|processes| {
            let loss = "programs in its hosts have ended, and no more can be started";
            ("supervisor", processes.supervisor(), loss)
        });
        let helper = helper.and_then(Helper::pid).map(|process| {
            let loss = "stations do not move any more, and daemons do not start";
            ("privileged helper", process, loss)
        });
        let mut all = Vec::new();
        for (name, process, loss) in supervisor.into_iter().chain(helper) {
            let life = descriptor(process)?;
            let fd = life.as_raw_fd();
            registry.register(
                &mut SourceFd(&fd),
                Slot::Keepers.token(),
                Interest::READABLE,
            )?;
            all.push(Keeper {
                name,
                process,
                loss,
                life,
                gone: false,
            });
        }
        // A process may have died before it was watched.
        let stirred = true;
        Ok(Self { all, stirred })
    }

    /// The processes that have died since the last call.
    fn died(&mut self) -> Vec<Trace> {
        if !std::mem::take(&mut self.stirred) {
            return Vec::new();
        }
        let fresh = self.all.iter_mut().filter(|keeper| !keeper.gone);
        let dead = fresh.filter(|keeper| has_ended(&keeper.life));
        dead.map(|keeper| {
            keeper.gone = true;
            Trace::milestone("lab.process-gone", keeper.words())
                .with("process", keeper.process.to_string())
                .with("what", keeper.name)
        })
        .collect()
    }

    /// The functions that the lab has lost, in words.
    pub(crate) fn missing(&self) -> Vec<String> {
        let gone = self.all.iter().filter(|keeper| keeper.gone);
        gone.map(Keeper::words).collect()
    }

    /// Each process and its state.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        self.all.iter().map(|keeper| {
            let state = match keeper.gone {
                false => format!("process {}", keeper.process),
                true => format!("gone: {}", keeper.loss),
            };
            (keeper.name, state)
        })
    }

    /// Why programs cannot be started in a host; `None` if they can.
    pub(crate) fn without_supervisor(&self) -> Option<String> {
        let mut all = self.all.iter();
        let gone = all.find(|keeper| keeper.gone && keeper.name == "supervisor");
        gone.map(Keeper::words)
    }
}

impl Source for Keepers {
    fn ready(&mut self, _: usize) {
        self.stirred = true;
    }
    /// Reports processes that have died.
    fn turn(&mut self, turn: &mut Turn<'_>) -> bool {
        turn.said.extend(self.died().into_iter().map(Said::OfLab));
        false
    }
}

impl Keeper {
    fn words(&self) -> String {
        let Self {
            name,
            process,
            loss,
            ..
        } = self;
        format!("the lab's {name} (process {process}) has died: {loss}")
    }
}

/// A descriptor that becomes readable when the process ends.
fn descriptor(process: u32) -> io::Result<OwnedFd> {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other(format!("no process {process}")))?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

fn has_ended(life: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(life, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    #[test]
    fn a_death_is_told_once_and_shown_ever_after() {
        let poll = mio::Poll::new().unwrap();
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let mut keepers = Keepers::watch(None, None, poll.registry()).unwrap();
        keepers.all.push(Keeper {
            name: "supervisor",
            process: child.id(),
            loss: "x",
            life: descriptor(child.id()).unwrap(),
            gone: false,
        });
        assert_eq!((keepers.died().len(), keepers.missing().len()), (0, 0));
        assert_eq!(keepers.without_supervisor(), None);
        child.kill().unwrap();
        while !has_ended(&keepers.all[0].life) {
            std::thread::sleep(Duration::from_millis(1));
        }
        keepers.ready(0);
        let [told] = &keepers.died()[..] else {
            panic!("not told");
        };
        assert_eq!(told.name, "lab.process-gone");
        keepers.ready(0);
        assert!(keepers.died().is_empty(), "told twice");
        let text = told.text.to_string();
        assert_eq!(keepers.without_supervisor(), Some(text));
        assert!(keepers.rows().all(|(_, state)| state == "gone: x"));
        child.wait().unwrap();
    }
}
