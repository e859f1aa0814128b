//! `aerostat up`: a lab in real time.

mod converge;

use super::run::write;
use crate::args::{ResultArgs, UpArgs};
use crate::exit::{Exit, Failure, Outcome, say};
use crate::labs;
use crate::output::{Format, Rows};
use aerostat_lab::Lab;
use aerostat_lab::event::Telling;
use aerostat_lab::growth::size;
use aerostat_lab::results::{Document, Time};
use aerostat_live::detach::{self, Detached};
use aerostat_live::run::{self, File, Notice, Options, Report, UpError};
use aerostat_live::runtime_dir;
use aerostat_view::{people, warnings};
use aerostat_wire::{counted, some_of};
use clap::ValueEnum as _;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long `up -d` waits for the lab to get ready.
const PATIENCE: Duration = Duration::from_secs(60);

/// Tells that labs are not in the directory that the environment names.
fn tell_passed_over(args: &UpArgs) {
    let said = args.quiet || args.in_background;
    if let Some(text) = runtime_dir::passed_over().filter(|_| !said) {
        say(format_args!("note: {text}"));
    }
}

/// True if a lab of this name runs.
fn is_running(args: &UpArgs) -> bool {
    let checked = labs::load(&args.lab.lab, &args.lab.set);
    let name = checked.map(|checked| checked.lab.name);
    name.is_ok_and(|name| runtime_dir::running().iter().any(|lab| lab.name == name))
}

/// Reads the lab and starts it.
pub(crate) fn run(args: &UpArgs) -> Outcome {
    tell_passed_over(args);
    if !args.in_background && args.lab.lab != Path::new("-") {
        if is_running(args) {
            return converge::run(args, &labs::read(&args.lab)?);
        }
        if args.dry_run || !args.restart.is_empty() {
            let name = labs::read(&args.lab)?.lab.name;
            let text = format!("no lab '{name}' is running");
            return Err(Failure::new(Exit::NotRunning, text).hint("'aerostat up' starts it"));
        }
    }
    if args.detach && !args.in_background {
        return detach(args);
    }
    write::check(&args.results)?;
    if args.in_background {
        detach::leave_session();
    }
    let checked = labs::read(&args.lab)?;
    warn_of_until(&checked.lab);
    let options = Options {
        split: args.split,
        embedded: args.embedded,
        program: std::env::current_exe()?,
        recording: format!("{}.pcapng", checked.lab.name).into(),
        patience: args.in_background.then_some(PATIENCE),
        results: args.results.out.clone(),
        end_with_parent: args.in_background,
        machine: false,
    };
    let mut cut = Ok(());
    let file = File {
        name: args.lab.lab.display().to_string(),
        checked: checked.clone(),
        set: args.lab.set.clone(),
    };
    let report = run::run(
        &file,
        &options,
        &mut |notice| {
            if let Notice::Ready { ties: Some(ties) } = notice {
                cut = ties.cut(labs::done(&checked) != Exit::Ok);
            } else {
                let telling = Telling::unless(args.quiet);
                tell(&notice, telling, args.results.output.output);
            }
        },
        |report| serde_json::to_value(results(report)).unwrap_or_default(),
    );
    cut?;
    let report = report.map_err(|error| failure(&error, &checked.lab.name))?;
    let end = finish(&report, args)?;
    Ok(labs::exit(end, &checked.warnings))
}

/// Tells that `until:` has no effect in real time.
pub(crate) fn warn_of_until(lab: &Lab) {
    if let Some(until) = lab.until {
        let until = until.as_secs_f64();
        say(format_args!(
            "warning: 'until: {until}s' ends runs in virtual time only; 'aerostat down' ends this lab"
        ));
    }
}

/// Starts this command again in the background, and returns when the lab is ready.
fn detach(args: &UpArgs) -> Outcome {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("up").arg("--detach").arg("--in-background");
    command.args(args.embedded.then_some("--embedded"));
    command.args(args.split.then_some("--split"));
    command.args(args.quiet.then_some("--quiet"));
    command.args(handed_on(&args.results));
    for change in &args.lab.set {
        command.arg("--set").arg(change.change());
    }
    command.arg("--").arg(&args.lab.lab);
    // Standard input is needed only if the lab is read from there.
    if args.lab.lab != Path::new("-") {
        command.stdin(Stdio::null());
    }
    match detach::start(&mut command)? {
        Detached::Ready { process, warnings } => {
            say(format_args!(
                "ready; the lab goes on as process {process}, 'aerostat down' stops it"
            ));
            Ok(Exit::Ok.with_warnings(warnings))
        }
        // The child has printed the reason.
        Detached::Ended(code) => {
            let known = [
                Exit::Ok,
                Exit::Failed,
                Exit::Usage,
                Exit::Warnings,
                Exit::NotRunning,
                Exit::Privilege,
            ];
            let exit = known
                .into_iter()
                .find(|exit| *exit as i32 == code && *exit != Exit::Ok);
            Err(Failure::new(exit.unwrap_or(Exit::Failed), ""))
        }
    }
}

/// Arguments for the lab in the background about its results: its standard output ends when the lab is ready.
fn handed_on(results: &ResultArgs) -> Vec<OsString> {
    let Some(directory) = &results.out else {
        return Vec::new();
    };
    let form = results.output.output.to_possible_value();
    let form = form.map_or_else(Default::default, |form| form.get_name().to_owned());
    let words = [
        "--out".into(),
        directory.clone().into(),
        "-o".into(),
        form.into(),
    ];
    words.into()
}

/// Prints notices on standard error. Only `ready` goes to standard output, for scripts that wait for it, unless the
/// results go there for programs.
pub(crate) fn tell(notice: &Notice<'_>, telling: Telling, form: Format) {
    match notice {
        Notice::Note(text) => say(format_args!("note: {text}")),
        Notice::Waiting(missing) => say(format_args!("waiting for {}", some_of(missing))),
        // Standard output is for the results.
        Notice::Ready { .. } if form != Format::Table => say("ready"),
        Notice::Ready { .. } => {
            let mut out = std::io::stdout().lock();
            // The reader may have gone; the lab continues.
            let _ = writeln!(out, "ready").and_then(|()| out.flush());
        }
        Notice::Event(step, names) if step.is_told(telling) => {
            say(step.event(names).story());
        }
        Notice::Event(..) | Notice::Turn(_) | Notice::Served | Notice::Started => {}
        Notice::Stopping(calls) => say(format_args!(
            "releasing {}",
            counted(*calls, "call", "calls")
        )),
    }
}

/// The results of a lab.
pub(crate) fn results(report: &Report) -> Results {
    let File { checked, set, .. } = &report.file;
    let document = Document::new(checked, set, Time::Real, &report.run);
    let mut short = people::short(&report.run, &checked.lab, &document);
    // A lab that was stopped before its traffic began has nothing to say of it.
    for table in short.iter_mut().filter(|table| table.title == "flows") {
        if let Some(offered) = table.columns.iter().position(|name| name == "offered") {
            table.rows.retain(|row| row[offered].as_u64() != Some(0));
        }
    }
    Results {
        short,
        document: Some(document),
        notes: recorded(report).into_iter().collect(),
        warnings: warnings(report, &checked.lab),
    }
}

/// The size of the recording of a lab with `capture:`.
pub(crate) fn recorded(report: &Report) -> Option<String> {
    match report.recording {
        Some(Ok(octets)) => Some(format!("the recording has {}", size(octets))),
        _ => None,
    }
}

/// The results, and whether the end was in order.
fn finish(report: &Report, args: &UpArgs) -> Outcome {
    results(report).show(&args.results)
}

/// Results of a lab in real time: the process of the lab shows them, and sends them to `aerostat down`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Results {
    /// Tables for people.
    short: Vec<Rows>,
    /// The whole document; `None` for a lab without results.
    document: Option<Document>,
    #[serde(default)]
    notes: Vec<String>,
    warnings: Vec<String>,
}

impl Results {
    /// The whole document; `None` for a lab without results.
    pub(crate) fn document(self) -> Option<Document> {
        self.document
    }

    /// Writes them in the requested form; warnings of the results make the exit code 3.
    pub(crate) fn show(self, args: &ResultArgs) -> Outcome {
        let anything = self.short.iter().any(|table| !table.rows.is_empty());
        // Empty tables are not shown to people.
        let people = write::for_people(args);
        if let Some(document) = self.document.filter(|_| anything || !people) {
            write::write(args, document, &self.short)?;
        }
        self.notes.iter().for_each(say);
        for warning in &self.warnings {
            say(format_args!("warning: {warning}"));
        }
        Ok(Exit::Ok.with_warnings(!self.warnings.is_empty()))
    }
}

/// Reasons for warnings at the end.
fn warnings(report: &Report, lab: &Lab) -> Vec<String> {
    let mut all = warnings::warnings(&report.run, lab, Time::Real);
    all.extend(warnings_of_end(report));
    all
}

/// Reasons for warnings at the end that have nothing to do with the results.
pub(crate) fn warnings_of_end(report: &Report) -> Vec<String> {
    let calls = report.calls_left;
    let left = (calls > 0).then(|| {
        let calls = counted(calls, "call was not released", "calls were not released");
        format!("{calls} in time")
    });
    let recording = match &report.recording {
        Some(Err(error)) => Some(format!("the recording is not complete: {error}")),
        _ => None,
    };
    left.into_iter().chain(recording).collect()
}

/// The failure of a lab that does not run, with what to do.
pub(crate) fn failure(error: &UpError, lab: &str) -> Failure {
    let text = error.to_string();
    match error {
        UpError::Running(_) => {
            Failure::failed(text).hint(format!("'aerostat down --lab {lab}' stops it"))
        }
        UpError::Unprivileged(_) => {
            Failure::new(Exit::Privilege, text).hint("with --embedded the lab needs no privilege")
        }
        UpError::Taken(_) => Failure::failed(text).hint(
            "another program has made it, or another 'aerostat host' runs: 'ip link show' lists all interfaces",
        ),
        other if other.is_refusal() => Failure::new(Exit::Privilege, text),
        UpError::Recording(..) => Failure::failed(text).hint(super::run::IN_CURRENT),
        UpError::NotReady(_)
        | UpError::Link(_)
        | UpError::Key(_)
        | UpError::Results(..)
        | UpError::Io(..) => {
            Failure::failed(text)
        }
    }
}
