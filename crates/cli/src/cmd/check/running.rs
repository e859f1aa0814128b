//! Checks of a running lab.
//!
//! **Course.** Echo requests and commands start at once. Then the command waits until the lab has reached the times
//! that checks name. At last it asks for the messages and steps of the story that the lab keeps, for its shortcuts and
//! for its results, and judges.
//!
//! **What cannot be known.** The lab keeps its latest messages and steps. If older ones could change a count, it is not
//! judged. The same holds for traffic that comes with the checks and with which the lab was not started.

use super::{checks, interrupted, parse, tell, with_checks};
use crate::args::{CheckArgs, RunningLab};
use crate::client;
use crate::cmd::measure::{self, Inside, Question};
use crate::cmd::up::Results;
use crate::exit::{Exit, Failure, Outcome, say};
use crate::interrupt::Interrupt;
use crate::labs::{self, LabText};
use aerostat_lab::checks::{Evidence, Forgotten, Seen, Watch, What, judge};
use aerostat_lab::event::Names;
use aerostat_lab::ladder::Message;
use aerostat_lab::results::{self, Time};
use aerostat_lab::{Checked, Event, Override, ReadError};
use aerostat_live::control::{Client, Request};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::time::Duration;

/// Longest time of a command in a host.
const LONGEST: Duration = Duration::from_secs(60);
/// Time between two looks at a command, or at the time of the lab.
const LOOK: Duration = Duration::from_millis(20);

/// The answer to [`Request::Results`].
#[derive(Deserialize)]
struct Answer {
    text: String,
    set: Vec<String>,
    up_s: f64,
    results: Results,
}

/// A lab that runs.
struct Running {
    name: String,
    client: Client,
    interrupt: Interrupt,
}

/// Judges a running lab.
///
/// # Errors
/// Without verdicts: [`Exit::NotRunning`] if the lab ends before they are there, and [`Exit::Unjudged`] if it does not
/// answer, or after Ctrl-C. The code of a wrong answer is that of a verdict.
pub(super) fn run(args: &CheckArgs) -> Outcome {
    judged(args).map_err(|failure| match failure.exit {
        Exit::Failed => Failure {
            exit: Exit::Unjudged,
            ..failure
        },
        _ => failure,
    })
}

fn judged(args: &CheckArgs) -> Outcome {
    let state = client::choose(&args.which)?;
    let mut lab = Running {
        client: client::connect(&args.which)?,
        name: state.name,
        interrupt: Interrupt::catch()?,
    };
    let begun: Answer = lab.ask(&Request::Results)?;
    let checked = read(args, &state.file, &begun)?;
    let mut watch = Watch::new(&checked.checks);
    let mut seen = lab.reached(&checked)?;
    seen.extend(lab.commands(&checked)?);
    lab.wait(watch.ends().max(ends_of_flows(&checked)), begun.up_s)?;
    let forgotten = lab.listen(&checked, &mut watch)?;
    seen.extend(watch.seen());
    watch.forget(&mut seen, &forgotten);
    let Answer { results, .. } = lab.ask(&Request::Results)?;
    let document = results.document().unwrap_or_default();
    let settings = document.head().get("settings").cloned().unwrap_or_default();
    let rows = |info| Ok(results::rows_of(&document, info));
    let evidence = Evidence {
        lab: &checked.lab,
        answers: &checked.answers,
        real: true,
        rows: &rows,
        settings: &settings,
        seen: &seen,
    };
    tell(
        args,
        &checked,
        &judge(&checked.checks, &evidence),
        Time::Real,
    )
}

/// The file of the lab, with the checks of another file in place of its own.
fn read(args: &CheckArgs, file: &str, answer: &Answer) -> Result<Checked, Failure> {
    let set: Vec<Override> = answer.set.iter().map(|set| set.as_str().into()).collect();
    let lab = LabText {
        name: file.to_owned(),
        text: answer.text.clone(),
    };
    let read = match &args.checks {
        None => aerostat_lab::parse(&lab.name, &lab.text, &set),
        Some(path) => parse(&lab, &set, (path, &checks(path)?)),
    };
    with_checks(labs::told(Path::new(file), read.map_err(ReadError::Bad))?)
}

/// The end of the last flow that a check names, and of its packets under way; no later than that of the lab in virtual
/// time.
fn ends_of_flows(checked: &Checked) -> Option<Duration> {
    const UNDER_WAY: Duration = Duration::from_millis(200);
    let lab = &checked.lab;
    let named = |name: &String| {
        let mut checks = checked.checks.iter();
        checks.any(|check| matches!(&check.what, What::Flow { name: of, .. } if of == name))
    };
    let flows = lab.traffic.iter().filter(|flow| named(&flow.name));
    let ends = flows.filter_map(|flow| Some(flow.start + flow.duration? + UNDER_WAY));
    ends.max().map(|end| end.min(lab.end()))
}

impl Running {
    fn ask<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T, Failure> {
        let answer = client::ask(&mut self.client, request)?;
        serde_json::from_value(answer)
            .map_err(|error| Failure::failed(format!("the lab answers in another way: {error}")))
    }

    /// Echo requests that were answered in time, by the number of the check.
    fn reached(&mut self, checked: &Checked) -> Result<BTreeMap<usize, Seen>, Failure> {
        let (mut numbers, mut questions) = (Vec::new(), Vec::new());
        for (number, check) in checked.checks.iter().enumerate() {
            let What::Reach { ends, within, is } = &check.what else {
                continue;
            };
            let [from, to] = ends.clone();
            numbers.push(number);
            questions.push(Question {
                from,
                to,
                within: *within,
                enough: is.enough(),
            });
        }
        if questions.is_empty() {
            return Ok(BTreeMap::new());
        }
        let answers = measure::answers(&mut self.client, &self.name, &questions, &self.interrupt)?;
        self.go_on()?;
        let seen = answers.into_iter().map(|answer| match answer {
            Ok(count) => Seen::Count(count),
            Err(why) => Seen::Unknown(why),
        });
        Ok(numbers.into_iter().zip(seen).collect())
    }

    /// Results of commands in hosts, by the number of the check.
    fn commands(&mut self, checked: &Checked) -> Result<BTreeMap<usize, Seen>, Failure> {
        let mut seen = BTreeMap::new();
        for (number, check) in checked.checks.iter().enumerate() {
            if let What::Run { node, command, .. } = &check.what {
                seen.insert(number, self.command(node, command)?);
            }
        }
        Ok(seen)
    }

    fn command(&mut self, node: &str, command: &str) -> Result<Seen, Failure> {
        let request = Request::Exec {
            node: node.to_owned(),
        };
        // An embedded host has no namespace for commands.
        if let Err(failure) = client::ask(&mut self.client, &request) {
            return Ok(Seen::Unknown(failure.to_string()));
        }
        let argv = ["/bin/sh", "-c", command].map(str::to_owned);
        let mut inside = Inside::start(&self.name, node, &argv, LONGEST)?;
        loop {
            if let Some(ended) = inside.poll()? {
                let code = ended.code.map(|code| u64::from(code.unsigned_abs()));
                let exit = code.map_err(|end| end.to_string());
                let output = ended.out + &ended.err;
                return Ok(Seen::Ran { exit, output });
            }
            self.go_on()?;
            std::thread::sleep(LOOK);
        }
    }

    /// An error after Ctrl-C.
    fn go_on(&self) -> Result<(), Failure> {
        match self.interrupt.has_come() {
            true => Err(interrupted()),
            false => Ok(()),
        }
    }

    /// Waits until the lab has reached a time.
    fn wait(&mut self, end: Option<Duration>, up_s: f64) -> Result<(), Failure> {
        let Some(end) = end.map(|end| end.as_secs_f64()) else {
            return Ok(());
        };
        if up_s < end {
            say(format_args!("waiting for second {end} of the lab"));
        }
        loop {
            #[derive(Deserialize)]
            struct Status {
                up_s: f64,
            }
            let Status { up_s } = self.ask(&Request::Status)?;
            if up_s > end {
                return Ok(());
            }
            self.go_on()?;
            std::thread::sleep(Duration::from_secs_f64((end - up_s).clamp(0.001, 0.1)));
        }
    }

    /// Shows the watch what the lab keeps: messages, steps of the story, shortcuts. Returns how much it keeps no
    /// longer.
    fn listen(&self, checked: &Checked, watch: &mut Watch<'_>) -> Result<Forgotten, Failure> {
        let names = Names::new(&checked.lab);
        let mut forgotten = Forgotten::default();
        if watch.wants_messages() {
            let request = Request::Trace {
                links: Vec::new(),
                data: false,
                story: false,
                past: true,
            };
            let answer = self.each(&request, &mut |line| {
                // Lines of another form are no messages.
                if let Ok(message) = serde_json::from_str::<Message>(line) {
                    watch.message(&message);
                }
            })?;
            let number = |name: &str| answer[name].as_u64().unwrap_or_default();
            forgotten.idle = number("forgotten_idle");
            forgotten.messages = number("forgotten") - forgotten.idle;
        }
        if watch.ends().is_some() {
            let answer = self.each(&Request::Events { follow: false }, &mut |line| {
                if let Ok(step) = serde_json::from_str::<Event>(line) {
                    watch.step(&names, &step);
                }
            })?;
            forgotten.steps = answer["forgotten"].as_u64().unwrap_or_default();
        }
        if watch.wants_shortcuts() {
            let request = Request::Stream {
                follow: false,
                stats_ns: None,
                gather: None,
            };
            self.each(&request, &mut |line| watch.line(line))?;
        }
        Ok(forgotten)
    }

    /// Does something with each line of an answer, on a connection of its own; returns the answer before them.
    fn each(&self, request: &Request, work: &mut dyn FnMut(&str)) -> Result<Value, Failure> {
        let mut client = client::connect(&RunningLab {
            lab: Some(self.name.clone()),
        })?;
        let answer = client::ask(&mut client, request)?;
        for line in BufReader::new(client.into_stream()).lines() {
            work(&line?);
        }
        Ok(answer)
    }
}
