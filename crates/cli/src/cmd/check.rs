//! `aerostat check`: whether a lab does what its checks say.

mod class;
mod report;

use crate::args::CheckArgs;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::labs;
use aerostat_lab::checks::{Judged, Verdict};
use aerostat_lab::{Checked, ChecksText, ReadError};
use aerostat_live::detach::end_with_parent;
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
    if args.one_of_class {
        end_with_parent();
        let most = Some(args.memory as u64);
        let (current, maximum) = (most, most);
        // A system without this limit still has that of time.
        let _ = setrlimit(Resource::As, Rlimit { current, maximum });
    }
    let checked = read(args)?;
    if checked.checks.is_empty() {
        let text = format!("{}: there are no checks", args.lab.display());
        return Err(Failure::usage(text)
            .hint("'checks:' in the lab file, or --checks FILE; docs/checks.md has all of them"));
    }
    super::run::refuse_outside(&checked.lab)?;
    let interrupt = Interrupt::catch()?;
    let verdicts = aerostat_sim::check::check(&checked, &|| interrupt.has_come());
    if verdicts.interrupted {
        return Err(Failure::failed("interrupted: nothing is judged"));
    }
    let report = Report {
        checked: &checked,
        judged: &verdicts.judged,
        details: args.details,
    };
    report.write(args.output)?;
    Ok(labs::exit(exit(&verdicts.judged), &checked.warnings))
}

/// Reads the lab, and the checks in place of its own.
fn read(args: &CheckArgs) -> Result<Checked, Failure> {
    let Some(path) = &args.checks else {
        return labs::read_for_run(&args.lab, &args.set);
    };
    let checks = checks(path)?;
    let name = path.display().to_string();
    let lab = labs::named_text(&args.lab)?;
    let checks = ChecksText {
        name: &name,
        text: &checks,
    };
    let parse = || aerostat_lab::parse_with_checks(&lab.name, &lab.text, &args.set, checks);
    let read = match args.one_of_class {
        true => without_files(parse)?,
        false => parse(),
    };
    labs::told(
        &args.lab,
        read.map(Checked::in_virtual_time).map_err(ReadError::Bad),
    )
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

/// The text of a file of checks.
fn checks(path: &Path) -> Result<String, Failure> {
    let read = aerostat_lab::files::text(path, MAX_CHECKS, "a file of checks");
    read.map_err(|why| Failure::usage(format!("{}: {why}", path.display())))
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
