//! The time of a call's set-up in a lab that runs in real time, one call after the other.
//!
//! The lab is `bench/labs/calls.atm.yml`: two hosts on one switch. Its loop is the one of `aerostat up`, and runs in
//! this process. With `split` the daemons are processes of their own, as with `up --split`. A program of the first host
//! calls a program of the second host, releases the call after half a millisecond, and calls again after the same time.
//!
//! **What is measured.** A set-up begins with the turn of the loop in which the program makes its call (`connect()`).
//! It ends when the calling program has its connection, and everything that the program could send in this turn has
//! been handed over. The clock is that of the machine; the lab's own time would leave out the work of the processor.
//! The links of the lab have their delay: 5 µs each, so that 20 µs of each set-up belong to the model. How late the
//! loop woke up for the program's timer is no part of it, and is shown separately. In one process the network catches
//! up with this delay: its links wait for less than 20 µs of the clock if the work on a set-up takes longer than that.

use aerostat_live::daemons::{DAEMON_ARGUMENT, Role, serve};
use aerostat_live::helper::{HELPER_ARGUMENT, run_helper};
use aerostat_live::run::{self, File, Notice, Options, UpError};
use aerostat_proto::{Duration, Instant, Value};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Instant as Clock;

/// Turns of the loop that are remembered: a call that needs more of them begins with the oldest.
const TURNS: usize = 4096;
/// The node whose program calls.
const CALLER: &str = "caller";

/// Plan of a measurement.
#[derive(Clone, Debug)]
pub struct Plan {
    /// This program, which is started again as the helper and as the daemons: see [`hidden_role`].
    pub program: PathBuf,
    /// True for daemons in processes of their own.
    pub split: bool,
    /// Calls that are measured.
    pub calls: usize,
    /// Calls before these, which are not.
    pub warm: usize,
}

/// A set-up.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// From the turn in which the program called to the news of its connection.
    pub time: Duration,
    /// How late that turn was.
    pub late: Duration,
    /// Turns of the loop, the first and the last one included.
    pub turns: u32,
}

/// Set-ups as they come.
#[derive(Debug)]
pub struct Meter {
    /// The set-ups so far.
    pub all: Vec<Setup>,
    turns: VecDeque<Instant>,
    turn: Option<(Instant, Clock)>,
    /// When the work of the last turn was done.
    served: Instant,
}

impl Meter {
    /// A meter with room for `calls`, so that it takes no memory later.
    #[must_use]
    pub fn new(calls: usize) -> Self {
        Self {
            all: Vec::with_capacity(calls),
            turns: VecDeque::with_capacity(TURNS),
            turn: None,
            served: Instant::ZERO,
        }
    }
    /// Hears what the loop tells.
    pub fn hear(&mut self, notice: &Notice<'_>) {
        match notice {
            Notice::Turn(at) => {
                self.turn = Some((*at, Clock::now()));
                if self.turns.len() == TURNS {
                    self.turns.pop_front();
                }
                self.turns.push_back(*at);
            }
            Notice::Served => {
                if let Some((at, clock)) = self.turn {
                    self.served = at + clock.elapsed();
                }
            }
            Notice::Event(step, _)
                if step.trace().name == "socket.open" && step.node() == CALLER =>
            {
                let Some(&Value::Number(us)) = step.trace().field("setup_us") else {
                    return;
                };
                // The event has the time of the network, at which the program got its connection. Its microseconds
                // were rounded down; with one more the turn cannot be a later one.
                let open = step.at().since(Instant::ZERO);
                let due = Instant::ZERO + open.saturating_sub(Duration::from_micros(us + 1));
                let first = self.turns.partition_point(|turn| *turn < due);
                let Some(began) = self.turns.get(first) else {
                    return;
                };
                self.all.push(Setup {
                    time: self.served.since(*began),
                    late: began.since(due),
                    turns: (self.turns.len() - first) as u32,
                });
            }
            _ => {}
        }
    }
}

/// Sorted values, of which percentiles are asked.
#[must_use]
pub fn sorted<T: Ord>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut all: Vec<T> = all.collect();
    all.sort();
    all
}

/// The value that `part` of all (0 to 1) do not exceed; `None` if there is no value.
#[must_use]
pub fn percentile<T: Copy>(sorted: &[T], part: f64) -> Option<T> {
    let index = (sorted.len() as f64 * part) as usize;
    sorted.get(index.min(sorted.len().checked_sub(1)?)).copied()
}

/// The checked file of the lab, which is there.
fn file() -> File {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/labs/calls.atm.yml");
    let checked = aerostat_lab::read(path.as_ref(), &[]);
    let checked = checked.unwrap_or_else(|e| panic!("{path}: {e:?}"));
    let set = Vec::new();
    let name = "calls.atm.yml".into();
    File { name, checked, set }
}

/// The helper of a lab and its daemons are this program with a hidden argument; the result is the exit code of such a
/// process.
#[must_use]
pub fn hidden_role() -> Option<Result<(), String>> {
    let mut arguments = std::env::args_os().skip(1);
    let role = arguments.next()?;
    if role == HELPER_ARGUMENT {
        return Some(run_helper().map_err(|error| error.to_string()));
    }
    if role != DAEMON_ARGUMENT {
        return None;
    }
    let role = Role::by_name(&arguments.next()?.to_string_lossy())?;
    let (socket, node) = (arguments.next()?, arguments.next()?);
    let served = serve(role, socket.as_ref(), &node.to_string_lossy(), true);
    Some(served.map(drop).map_err(|error| error.to_string()))
}

/// Runs the lab; `done` gets the set-ups once all have been made, and ends the process. The lab ends with it.
///
/// # Errors
/// If the lab cannot run.
pub fn run(plan: &Plan, done: impl Fn(&[Setup])) -> Result<(), UpError> {
    let options = Options {
        embedded: true,
        program: plan.program.clone(),
        patience: None,
        split: plan.split,
        recording: PathBuf::new(),
        results: None,
        end_with_parent: false,
        machine: false,
    };
    let mut meter = Meter::new(plan.warm + plan.calls);
    let tell = &mut |notice: Notice<'_>| {
        meter.hear(&notice);
        if meter.all.len() >= plan.warm + plan.calls {
            done(&meter.all[plan.warm..]);
        }
    };
    run::run(&file(), &options, tell, |_| Default::default()).map(|_| ())
}
