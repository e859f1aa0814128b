//! `aerostat check`: whether a lab does what its checks say.

mod class;
mod report;
mod running;

use crate::args::CheckArgs;
use crate::exercises;
use crate::exit::{Exit, Failure, Outcome, say};
use crate::interrupt::Interrupt;
use crate::labs::{self, LabText};
use aerostat_lab::checks::{Judged, Verdict};
use aerostat_lab::diag::Severity;
use aerostat_lab::results::Time;
use aerostat_lab::{Checked, ChecksText, Diagnostics, Override, ReadError};
use aerostat_live::detach::end_with_parent;
use aerostat_wire::counted;
use report::Report;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::path::Path;

/// Largest file of checks, octets.
const MAX_CHECKS: u64 = 4 << 20;

/// Checks one lab or a class.
pub(crate) fn run(args: &CheckArgs) -> Outcome {
    if let Some(directory) = &args.all {
        return class::run(args, directory);
    }
    // A lab in the place of --all lifts what clap would require.
    let of_class = [
        ("--time", args.time.is_some()),
        ("--jobs", args.jobs.is_some()),
    ];
    if let Some((option, _)) = of_class.iter().find(|(_, given)| *given) {
        return Err(Failure::usage(format!("{option} is for --all")));
    }
    if args.one_of_class.is_some() {
        end_with_parent();
        let most = Some(args.memory as u64);
        let (current, maximum) = (most, most);
        // A system without this limit still has that of time.
        let _ = setrlimit(Resource::As, Rlimit { current, maximum });
    }
    if args.which.lab.is_some() {
        return running::run(args);
    }
    let checked = read(args)?;
    super::run::refuse_outside(&checked.lab)?;
    let interrupt = Interrupt::catch()?;
    let verdicts = aerostat_sim::check::check(&checked, &|| interrupt.has_come());
    if verdicts.interrupted {
        return Err(interrupted());
    }
    tell(args, &checked, &verdicts.judged, Time::Virtual)
}

fn interrupted() -> Failure {
    Failure::new(Exit::Unjudged, "interrupted: nothing is judged")
}

/// Writes the report; the verdicts make the exit code.
fn tell(args: &CheckArgs, checked: &Checked, judged: &[Judged<'_>], time: Time) -> Outcome {
    let report = Report {
        checked,
        judged,
        time,
        details: args.details,
    };
    report.write(args.output)?;
    Ok(labs::exit(exit(judged), &checked.warnings))
}

/// Reads the lab, and the checks in place of its own.
fn read(args: &CheckArgs) -> Result<Checked, Failure> {
    let Some(path) = &args.checks else {
        return with_checks(labs::read_for_run(&args.file, &args.set)?);
    };
    let named = |failure: Failure| match &args.one_of_class {
        // It comes by standard input.
        Some(name) => Failure {
            message: failure.message.replacen('-', name, 1),
            ..failure
        },
        None => failure,
    };
    let mut lab = labs::named_text(&args.file).map_err(named)?;
    let text = checks(path)?;
    let read = match &args.one_of_class {
        Some(name) => {
            lab.name.clone_from(name);
            without_files(|| parse(&lab, &args.set, (path, &text)))?
        }
        None => parse(&lab, &args.set, (path, &text)),
    };
    let hide = !args.details && args.one_of_class.is_none();
    match read.map(Checked::in_virtual_time) {
        // Many faults of exercises have a warning that gives the answer away.
        Ok(checked) if hide && checked.warnings.count(Severity::Warning) > 0 => {
            let warnings = checked.warnings.count(Severity::Warning);
            let told = counted(warnings, "warning", "warnings");
            say(format_args!(
                "note: {told} about the lab: see --details, or 'aerostat validate'"
            ));
            with_checks(checked)
        }
        read => with_checks(labs::told(&args.file, read.map_err(ReadError::Bad))?),
    }
}

/// Reads the text of a lab with the checks of a file.
fn parse(
    lab: &LabText,
    set: &[Override],
    (path, text): (&Path, &str),
) -> Result<Checked, Diagnostics> {
    let name = path.display().to_string();
    let checks = ChecksText { name: &name, text };
    aerostat_lab::parse_with_checks(&lab.name, &lab.text, set, checks)
}

/// The lab if it has checks.
fn with_checks(checked: Checked) -> Result<Checked, Failure> {
    if checked.checks.is_empty() {
        let text = format!("{}: there are no checks", checked.lab.name);
        return Err(Failure::usage(text)
            .hint("'checks:' in the lab file, or --checks FILE; docs/checks.md has all of them"));
    }
    Ok(checked)
}

/// Does something while this process can open no file: a lab file that is not trusted may name others.
fn without_files<T>(work: impl FnOnce() -> T) -> Result<T, Failure> {
    let before = getrlimit(Resource::Nofile);
    let none = Rlimit {
        current: Some(0),
        ..before
    };
    let failed = |error| Failure::failed(format!("files cannot be kept away: {error}"));
    setrlimit(Resource::Nofile, none).map_err(failed)?;
    let done = work();
    setrlimit(Resource::Nofile, before).map_err(failed)?;
    Ok(done)
}

/// The text of a file of checks, or of the checks of an exercise of the program if no file has this name.
fn checks(path: &Path) -> Result<String, Failure> {
    if let Some(text) = of_exercise(path) {
        return Ok(text.to_owned());
    }
    let read = aerostat_lab::files::text(path, MAX_CHECKS, "a file of checks");
    read.map_err(|why| {
        let failure = Failure::usage(format!("{}: {why}", path.display()));
        failure.hint("a file, or an exercise: 'aerostat labs --exercises' lists them")
    })
}

/// The checks of the exercise with this name, unless there is such a file.
fn of_exercise(path: &Path) -> Option<&'static str> {
    let text = exercises::checks(path.to_str()?)?;
    (!path.is_file()).then_some(text)
}

/// The exit code for these verdicts.
fn exit(judged: &[Judged<'_>]) -> Exit {
    let has = |verdict| judged.iter().any(|one| one.verdict == verdict);
    if has(Verdict::Failed) {
        Exit::Failed
    } else if has(Verdict::Unjudged) {
        Exit::Unjudged
    } else {
        Exit::Ok.with_warnings(has(Verdict::Warned))
    }
}
