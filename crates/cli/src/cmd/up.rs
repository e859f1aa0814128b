//! `aerostat up`: a lab in real time.

use super::run::flows;
use crate::args::UpArgs;
use crate::exit::{Exit, Failure, Outcome, say};
use crate::labs;
use crate::output::{self, Form, Format};
use aerostat_lab::Lab;
use aerostat_live::detach::{self, Detached};
use aerostat_live::run::{self, Notice, Options, Report, UpError};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long `up -d` waits for the lab to get ready.
const PATIENCE: Duration = Duration::from_secs(60);

/// Reads the lab and starts it.
pub(crate) fn run(args: &UpArgs) -> Outcome {
    if args.detach && !args.in_background {
        return detach(args);
    }
    if args.in_background {
        detach::leave_session();
    }
    let checked = labs::read(&args.lab)?;
    let options = Options {
        split: args.split,
        file: args.lab.lab.display().to_string(),
        embedded: args.embedded,
        program: std::env::current_exe()?,
        recording: format!("{}.pcapng", checked.lab.name).into(),
        patience: args.in_background.then_some(PATIENCE),
        end_with_parent: args.in_background,
    };
    let mut cut = Ok(());
    let report = run::run(
        &checked.lab,
        &options,
        &mut |notice| {
            if let Notice::Ready { directory } = notice
                && args.in_background
            {
                cut = detach::tell_ready(directory, labs::done(&checked) != Exit::Ok);
            } else {
                tell(&notice, args.quiet);
            }
        },
        &|report| results(report, &checked.lab),
    );
    cut?;
    let report = report.map_err(|error| failure(&error, &checked.lab.name))?;
    let end = finish(&report, &checked.lab, args.wide)?;
    Ok(labs::exit(end, &checked.warnings))
}

/// Starts this command again in the background, and returns when the lab is ready.
fn detach(args: &UpArgs) -> Outcome {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("up").arg("--detach").arg("--in-background");
    command.args(args.embedded.then_some("--embedded"));
    command.args(args.split.then_some("--split"));
    command.args(args.wide.then_some("--wide"));
    command.args(args.quiet.then_some("--quiet"));
    for change in &args.lab.set {
        command.arg("--set").arg(change);
    }
    command.arg("--").arg(&args.lab.lab);
    // Only a lab that comes from there needs standard input.
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
        // The child has told why.
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

/// Talk on standard error; `ready` alone on standard output, for scripts that wait for it.
fn tell(notice: &Notice<'_>, quiet: bool) {
    match notice {
        Notice::Note(text) => say(format_args!("note: {text}")),
        Notice::Waiting(missing) => say(format_args!("waiting for {}", run::some_of(missing))),
        Notice::Ready { .. } => {
            let mut out = std::io::stdout().lock();
            // Nobody may be listening any more; the lab goes on.
            let _ = writeln!(out, "ready").and_then(|()| out.flush());
        }
        Notice::Event(event) if event.milestone && !quiet => say(event.story()),
        Notice::Event(_) => {}
        Notice::Stopping(calls) => say(format_args!("releasing {calls} calls")),
    }
}

/// What `aerostat down` shows: tables as for `inspect`.
fn results(report: &Report, lab: &Lab) -> serde_json::Value {
    let tables = [flows::rows(&report.run.flows, lab)];
    serde_json::json!({ "tables": tables, "warnings": warnings(report, lab) })
}

/// What was measured, and whether the end was in good order.
fn finish(report: &Report, lab: &Lab, wide: bool) -> Outcome {
    if !report.run.flows.is_empty() {
        output::write(
            Form::new(Format::Table, wide),
            "",
            &[flows::rows(&report.run.flows, lab)],
        )?;
    }
    let warnings = warnings(report, lab);
    for warning in &warnings {
        say(format_args!("warning: {warning}"));
    }
    Ok(Exit::Ok.with_warnings(!warnings.is_empty()))
}

/// What deserves a warning at the end.
fn warnings(report: &Report, lab: &Lab) -> Vec<String> {
    let mut all = flows::warnings(&report.run, lab);
    if report.calls_left > 0 {
        let calls = report.calls_left;
        all.push(format!("{calls} calls were not released in time"));
    }
    all
}

fn failure(error: &UpError, lab: &str) -> Failure {
    let text = error.to_string();
    match error {
        UpError::Running(_) => {
            Failure::failed(text).hint(format!("'aerostat down --lab {lab}' stops it"))
        }
        UpError::Unprivileged(_) => {
            Failure::new(Exit::Privilege, text).hint("with --embedded the lab needs no privilege")
        }
        UpError::NotReady(_) => Failure::failed(text),
        UpError::Io(..) => Failure::failed(text),
    }
}
