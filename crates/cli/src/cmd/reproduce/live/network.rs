//! The lab of a row in real time, as a process of its own (`aerostat up`).

use crate::args::RunningLab;
use crate::client;
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use aerostat_lab::Override;
use aerostat_live::control::{Client, Request};
use aerostat_live::force::interrupt_group;
use aerostat_live::runtime_dir;
use aerostat_live::streams::Host;
use aerostat_live::supervisor::end_with_parent;
use aerostat_live::threads;
use aerostat_node::inspect::StateKind;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::Ipv4Addr;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long a lab may take to get ready, and to end.
const PATIENCE: Duration = Duration::from_secs(60);
const ENDING: Duration = Duration::from_secs(10);
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// A running lab, which ends with this value, and with this process.
#[derive(Debug)]
pub(super) struct Network {
    process: Child,
    client: Option<Client>,
}

impl Network {
    /// Starts the lab with these changes, of which one gives it a name, and waits until it is ready.
    ///
    /// # Errors
    /// What the lab says, or an interrupt.
    pub(super) fn start(
        text: &str,
        changes: &[Override],
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        // With this form `ready` goes to standard error.
        command.args(["up", "--quiet", "-o", "json"]);
        for change in changes {
            command.arg("--set").arg(change.change());
        }
        command.args(["--", "-"]);
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        command.stderr(Stdio::piped());
        let process = end_with_parent(&mut command).spawn()?;
        let mut network = Self {
            process,
            client: None,
        };
        if let Some(mut input) = network.process.stdin.take() {
            input.write_all(text.as_bytes())?;
        }
        let lines = network.process.stderr.take().map(lines).transpose()?;
        network.wait(lines, interrupt)?;
        let mut name = changes.iter().filter_map(|change| {
            let name = change.change().strip_prefix("name=")?;
            Some(name.to_owned())
        });
        let which = RunningLab {
            lab: name.next_back(),
        };
        network.client = Some(client::connect(&which)?);
        Ok(network)
    }

    /// Waits until the lab is ready.
    fn wait(
        &mut self,
        lines: Option<Receiver<String>>,
        interrupt: &Interrupt,
    ) -> Result<(), Failure> {
        let until = Instant::now() + PATIENCE;
        let mut said = Vec::new();
        while let Some(lines) = &lines {
            match lines.recv_timeout(LOOK) {
                Ok(line) if line == "ready" => return Ok(()),
                Ok(line) => said.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if interrupt.has_come() => {
                    return Err(Failure::new(Exit::Warnings, "interrupted"));
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() > until => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        let code = self.process.try_wait()?.and_then(|status| status.code());
        let exit = match code {
            Some(5) => Exit::Privilege,
            _ => Exit::Failed,
        };
        let said = said.iter().filter(|line| !line.starts_with("note: "));
        let said: Vec<&str> = said.map(String::as_str).collect();
        let text = format!(
            "the lab in real time does not get ready: {}",
            said.join("\n")
        );
        Err(Failure::new(exit, text))
    }

    fn client(&mut self) -> Result<&mut Client, Failure> {
        let ended = || Failure::failed("the lab in real time has ended");
        self.client.as_mut().ok_or_else(ended)
    }

    /// A kernel host of the lab.
    ///
    /// # Errors
    /// The lab does not give its namespace away.
    pub(super) fn host(&mut self, node: &str, address: Ipv4Addr) -> Result<Host, Failure> {
        let request = Request::Exec { node: node.into() };
        let (_, mut descriptors) = client::ask_with_descriptors(self.client()?, &request, &[])?;
        // The host's network namespace comes last.
        let Some(namespace) = descriptors.pop() else {
            return Err(Failure::failed(format!(
                "the lab sent no namespace of {node}"
            )));
        };
        Ok(Host::new(namespace, address))
    }

    /// Events of the network so far that were more than 20 ms late.
    ///
    /// # Errors
    /// The lab does not answer.
    pub(super) fn late_events(&mut self) -> Result<u64, Failure> {
        let request = Request::Inspect {
            node: None,
            what: StateKind::Lab,
        };
        let tables = client::ask(self.client()?, &request)?;
        let rows = tables.as_array().into_iter().flatten();
        let rows = rows.filter_map(|table| table["rows"].as_array()).flatten();
        let late = rows.filter(|row| {
            let what = row[0].as_str().unwrap_or_default();
            what.starts_with("events more than 20 ms late")
        });
        let mut counts = late.filter_map(|row| row[1].as_u64());
        let absent = || Failure::failed("the lab does not count late events");
        counts.next_back().ok_or_else(absent)
    }

    /// How the process of the lab has waited for a processor so far; `None` if the kernel does not count that.
    pub(super) fn waits(&self) -> Option<Waits> {
        let path = format!("/proc/{}/schedstat", self.process.id());
        Waits::read(&std::fs::read_to_string(path).ok()?)
    }

    /// Ends the lab, and waits for its end.
    pub(super) fn stop(&mut self) {
        let asked = self.client.take();
        let asked = asked.map(|mut client| client::ask(&mut client, &Request::Stop));
        if !matches!(asked, Some(Ok(_))) {
            // It has not begun to listen, or listens no more.
            let _ = interrupt_group(self.process.id());
        }
        let until = Instant::now() + ENDING;
        while let Ok(None) = self.process.try_wait() {
            if Instant::now() > until {
                // The kernel removes what the lab has made there.
                let _ = self.process.kill();
                let _ = self.process.wait();
            }
            thread::sleep(LOOK);
        }
        // This removes what a lab that was killed has left on disk.
        let _ = runtime_dir::running();
    }
}

/// How a process has waited for a processor, beside sleeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waits {
    /// Time, ns.
    waited: u64,
    /// How often it then ran.
    turns: u64,
}

impl Waits {
    /// Reads the text of `schedstat`: time on a processor, time of waiting, turns.
    fn read(text: &str) -> Option<Self> {
        let mut numbers = text.split_whitespace().skip(1).map(str::parse);
        Some(Self {
            waited: numbers.next()?.ok()?,
            turns: numbers.next()?.ok()?,
        })
    }

    /// The mean wait since `before`, µs.
    pub(super) fn mean_since(self, before: Self) -> f64 {
        let turns = self.turns.saturating_sub(before.turns).max(1);
        self.waited.saturating_sub(before.waited) as f64 / 1e3 / turns as f64
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The lines of the lab's standard error, until it ends.
fn lines(from: ChildStderr) -> io::Result<Receiver<String>> {
    let (to, lines) = channel();
    threads::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            // The reader may have gone, and the lab must not wait for it.
            let _ = to.send(line);
        }
    })?;
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_have_a_mean() {
        let before = Waits::read("5000 1000 10\n").unwrap();
        let after = Waits::read("9000 61000 40\n").unwrap();
        assert!((after.mean_since(before) - 2.0).abs() < 1e-9);
        assert_eq!(after.mean_since(after), 0.0);
        assert_eq!(Waits::read("1 2"), None);
        assert_eq!(Waits::read("1 2 x"), None);
    }
}
