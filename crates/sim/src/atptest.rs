//! The test program of ATP's report, `atptest`: messages from memory to memory over one switch.
//!
//! A host sends octets by ATP to another one. Both hang on a switch by OC-3 lines of 1 µs, and take no time of their
//! own, so a result is what the line and the protocol allow. The receiver compares every octet with what was sent. With
//! `echo` the receiver sends each message back, and the sender measures until the last one is complete: the report's
//! latency.
//!
//! **Standards.** "ATP Implementation and Performance" (University of Hawaii, 1999), its sections on tests.

use crate::run::{LabRun, Watcher};
use aerostat_lab::event::Event;
use aerostat_node::host::sockets::programs::{Figures, Outcome};
use aerostat_proto::Duration;
use aerostat_proto::atp::Profile;
use std::sync::atomic::{AtomicBool, Ordering};

/// Longest run in virtual time.
const LONGEST: Duration = Duration::from_secs(4 * 3600);
/// Virtual time between two looks at the end of the transfer.
const STEP: Duration = Duration::from_secs(1);

/// A transfer to run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfer {
    /// The rules of both ends.
    pub profile: Profile,
    /// Octets of a packet with its header, 5 to 65 535.
    pub mtu: usize,
    /// Octets to send.
    pub octets: u64,
    /// Octets of each message; `None`: all in one message, or 1 MiB if they are more.
    pub message: Option<u64>,
    /// True if the receiver sends the messages back.
    pub echo: bool,
    /// Probability that a cell is lost on the receiver's link, in either direction.
    pub loss: f64,
    /// Seed of the losses.
    pub seed: u64,
}

/// Measured values of a transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Figures of the sender and of the receiver.
    pub ends: [Figures; 2],
    /// True if all octets arrived, as they were sent, and with `echo` came back.
    pub correct: bool,
}

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The lab of the transfer is not valid, in words.
    Unfit(String),
    /// The user has ended it.
    Interrupted,
    /// It did not end within four hours of virtual time.
    Endless,
}

struct Looker<'a> {
    ended: &'a AtomicBool,
    stop: &'a dyn Fn() -> bool,
}

impl Watcher for Looker<'_> {
    fn event(&mut self, event: &Event) {
        let ended =
            event.node == "a" && ["socket.ended", "socket.refused"].contains(&&*event.event);
        self.ended.fetch_or(ended, Ordering::Relaxed);
    }
    fn interrupted(&self) -> bool {
        (self.stop)()
    }
}

impl Transfer {
    /// The text of its lab.
    #[must_use]
    pub fn lab(&self) -> String {
        let Self {
            profile,
            mtu,
            octets,
            message,
            echo,
            loss,
            seed,
        } = self;
        let profile = format!("{profile:?}").to_lowercase();
        let message = message.map_or_else(String::new, |octets| format!(", message: {octets}"));
        let answer = if *echo { "echo" } else { "sink" };
        format!(
            "seed: {seed}
switches: {{ s: {{}} }}
clip: {{ n: {{ subnet: 10.1.0.0/24, server: a }} }}
hosts:
  a: {{ on: s, elan: n, ip: 10.1.0.1, link: {{ rate: oc3, delay: 1us }}, sockets: [{{ name: w, call: b, qos: \"ubr,aal5:sdu={mtu}\", atp: {{ profile: {profile}, mtu: {mtu}, bytes: {octets}{message} }} }}] }}
  b: {{ on: s, elan: n, ip: 10.1.0.2, link: {{ rate: oc3, delay: 1us, loss: {loss} }}, sockets: [{{ name: r, listen: {answer}, max_sdu: {mtu}, atp: {{ profile: {profile}, mtu: {mtu} }} }}] }}
"
        )
    }

    /// Runs the transfer; `stop` ends it early.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn run(&self, stop: &dyn Fn() -> bool) -> Result<Measured, Failure> {
        let checked = aerostat_lab::parse("atptest", &self.lab(), &[]);
        let lab = checked
            .map_err(|found| Failure::Unfit(found.to_string()))?
            .lab;
        let ended = AtomicBool::new(false);
        let mut looker = Looker {
            ended: &ended,
            stop,
        };
        let mut run = LabRun::new(&lab, &mut looker);
        run.start();
        let mut at = aerostat_proto::Instant::ZERO;
        while !ended.load(Ordering::Relaxed) {
            if stop() {
                return Err(Failure::Interrupted);
            }
            if at.since(aerostat_proto::Instant::ZERO) >= LONGEST {
                return Err(Failure::Endless);
            }
            at += STEP;
            run.run_until(at);
        }
        let (report, _) = run.finish_both();
        let of = |node: &str| {
            let mut rows = report.dialogues.iter().filter(|row| row.from.0 == node);
            rows.next().and_then(|row| row.atp)
        };
        let ends = of("a").zip(of("b"));
        let (near, far) = ends.ok_or_else(|| Failure::Unfit("the call was refused".to_owned()))?;
        let back = if self.echo { self.octets } else { 0 };
        let whole = (far.received.octets, near.received.octets) == (self.octets, back);
        let intact = near.wrong + far.wrong == 0 && near.outcome == Outcome::Complete;
        Ok(Measured {
            ends: [near, far],
            correct: whole && intact,
        })
    }
}

impl Measured {
    /// Octets a second at the receiver, without those of its first packet, over the time from this packet to the last
    /// one, Mbit/s; `None` for a single packet.
    #[must_use]
    pub fn throughput_mbps(&self) -> Option<f64> {
        self.ends[1].received.mbps()
    }

    /// Time from the first message given to the sender's ATP to the last message that came back; zero without an echo.
    #[must_use]
    pub fn latency(&self) -> Duration {
        self.ends[0].turn
    }
}
