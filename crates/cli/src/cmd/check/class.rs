//! The labs of a class.
//!
//! **How.** Each lab is checked by a process of this program, which gets the lab on standard input. Its current
//! directory is an empty one, so files beside the lab that a lab file may name are not there. A lab file is opened
//! once, without following a link, and only if it is a regular file.
//!
//! **Bounds.** A process has limits of memory, which it sets itself before it reads, and of time, after which it is
//! killed. At most [`MOST`] labs.

use super::report::SCHEMA;
use crate::args::{CheckArgs, ReportFormat};
use crate::cmd::pool::Pool;
use crate::cmd::run::many::processors;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::labs::{self, find};
use crate::output::{self, Form, Format, Rows};
use aerostat_lab::results::rounded;
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Most labs of a class.
const MOST: usize = 10_000;
/// Most octets that are read of what a process says.
const MOST_SAID: u64 = 8 << 20;
/// Time between two looks at a process.
const LOOK: Duration = Duration::from_millis(5);
/// Longest time of each lab, if none is given.
const TIME: Duration = Duration::from_secs(60);

/// A student, and the lab file, or why no file can be checked.
struct Student {
    name: String,
    lab: Result<PathBuf, String>,
}

/// The result of a student.
#[derive(Default)]
struct Mark {
    verdict: String,
    points: u64,
    of: u64,
    /// Numbers of checks by verdict: passed, failed, warnings, not judged.
    counts: [u64; 4],
    seconds: f64,
    feedback: String,
}

/// Checks all labs of a directory.
pub(super) fn run(args: &CheckArgs, directory: &Path) -> Outcome {
    let format = match args.output {
        ReportFormat::Table => Format::Table,
        ReportFormat::Json => Format::Json,
        ReportFormat::Csv => Format::Csv,
        ReportFormat::Junit | ReportFormat::Tap => {
            let text = "a class has a report as table, json or csv";
            return Err(Failure::usage(text).hint("-o csv, with a row for each student"));
        }
    };
    let checks = args.checks.as_deref().unwrap_or(Path::new(""));
    let of = most_points(checks)?;
    let checks = match super::of_exercise(checks) {
        Some(_) => checks.to_owned(),
        None => checks.canonicalize()?,
    };
    let students = students(directory)?;
    let interrupt = Interrupt::catch()?;
    let pool = Pool::new(
        students.len(),
        args.jobs.map_or_else(processors, usize::from),
    );
    let work = |at: usize| mark(args, &students[at], (&checks, of), &interrupt);
    let look = || {
        if interrupt.has_come() {
            pool.stop();
        }
    };
    let mut marks = Vec::new();
    pool.all(&work, &look, |at, mark| {
        marks.extend(mark.map(|mark| (&students[at], mark)));
    });
    output::write(Form::new(format, true), SCHEMA, &[rows(&marks)])?;
    if marks.len() < students.len() {
        return Err(Failure::failed("interrupted: not all labs were checked"));
    }
    let all = |verdict: &str| marks.iter().all(|(_, mark)| mark.verdict == verdict);
    Ok(
        match marks
            .iter()
            .all(|(_, mark)| mark.points == mark.of && mark.counts[1] == 0)
        {
            true if all("pass") => Exit::Ok,
            true if marks
                .iter()
                .all(|(_, mark)| ["pass", "warning"].contains(&&*mark.verdict)) =>
            {
                Exit::Warnings
            }
            _ => Exit::Failed,
        },
    )
}

/// The points that the checks give in all; checks with errors end the command before the first lab.
fn most_points(checks: &Path) -> Result<u64, Failure> {
    let text = super::checks(checks)?;
    let name = checks.display().to_string();
    match aerostat_lab::parse_checks(&name, &text) {
        Ok(checks) => Ok(checks.iter().map(|check| check.points).sum()),
        Err(findings) => {
            labs::tell(&findings);
            Err(Failure::usage(labs::summary(checks, &findings)))
        }
    }
}

/// The students of a class in the order of their names.
fn students(directory: &Path) -> Result<Vec<Student>, Failure> {
    let unreadable = |error: io::Error| Failure::usage(format!("{}: {error}", directory.display()));
    let mut students = Vec::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        let kind = entry.file_type().map_err(unreadable)?;
        if kind.is_symlink() && stem(&name).is_none() {
            let lab = Err("the directory is a link, and links are not followed".to_owned());
            students.push(Student { name, lab });
        } else if kind.is_dir() {
            let lab = only_lab(&entry.path());
            students.push(Student { name, lab });
        } else if let Some(stem) = stem(&name) {
            let lab = Ok(entry.path());
            let name = stem.to_owned();
            students.push(Student { name, lab });
        }
        if students.len() > MOST {
            return Err(Failure::usage(format!("a class has at most {MOST} labs")));
        }
    }
    if students.is_empty() {
        let text = format!("{}: there are no labs", directory.display());
        return Err(
            Failure::usage(text).hint("a directory for each student, with one lab file each")
        );
    }
    students.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(students)
}

/// The name of a lab file without its ending.
fn stem(name: &str) -> Option<&str> {
    let mut endings = [".atm.yml", ".yml", ".yaml"].into_iter();
    endings.find_map(|ending| name.strip_suffix(ending))
}

/// The only lab file of a directory: the only one whose name ends with `.atm.yml`, or else the only YAML file. So a
/// student may hand in the checks beside it.
fn only_lab(directory: &Path) -> Result<PathBuf, String> {
    let entries = fs::read_dir(directory).map_err(|error| error.to_string())?;
    let labs = entries.flatten().take(MOST).filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        !name.starts_with('.') && stem(&name).is_some()
    });
    let mut labs: Vec<PathBuf> = labs.map(|entry| entry.path()).collect();
    let is_named = |path: &PathBuf| path.to_string_lossy().ends_with(find::ENDING);
    if labs.iter().any(is_named) {
        labs.retain(is_named);
    }
    match labs.len() {
        0 => Err("there is no lab file".to_owned()),
        1 => Ok(labs.swap_remove(0)),
        more => Err(format!("there are {more} lab files, and one is wanted")),
    }
}

/// Opens a regular file, not what a link leads to.
fn open(path: &Path) -> Result<File, String> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = opened.map_err(|error| match error.raw_os_error() {
        Some(code) if code == rustix::io::Errno::LOOP.raw_os_error() => {
            "the lab file is a link, and links are not followed".to_owned()
        }
        _ => format!("the lab file: {error}"),
    })?;
    match file.metadata() {
        Ok(found) if found.is_file() => Ok(file),
        _ => Err("the lab file is no regular file".to_owned()),
    }
}

/// Checks the lab of a student; `None` if the command was interrupted before it knew.
fn mark(
    args: &CheckArgs,
    student: &Student,
    (checks, of): (&Path, u64),
    interrupt: &Interrupt,
) -> Option<Mark> {
    let broken = |verdict: &str, feedback: String| Mark {
        verdict: verdict.to_owned(),
        of,
        feedback,
        ..Mark::default()
    };
    let opened = student.lab.as_deref().map_err(String::clone);
    let opened = opened.and_then(|path| Ok((path, open(path)?)));
    let (path, lab) = match opened {
        Ok(opened) => opened,
        Err(why) => return Some(broken("no lab", why)),
    };
    let began = Instant::now();
    let ran = child(args, (path, lab), checks, interrupt);
    let seconds = began.elapsed().as_secs_f64();
    let mark = match ran {
        Err(error) => broken("failed", format!("the check cannot be run: {error}")),
        Ok(Ended { status: None, .. }) if interrupt.has_come() => return None,
        Ok(Ended { status: None, .. }) => {
            broken("time", format!("it took more than {:?}", time(args)))
        }
        Ok(Ended {
            status: Some(status),
            said,
            errors,
        }) => of_output(status, &said).unwrap_or_else(|| {
            let died = status.signal().is_some();
            match died {
                true => broken(
                    "memory",
                    format!("it died, as for want of memory ({} octets)", args.memory),
                ),
                false => broken("broken", first_error(&errors)),
            }
        }),
    };
    Some(Mark { seconds, ..mark })
}

/// Longest time of each lab.
fn time(args: &CheckArgs) -> Duration {
    args.time.unwrap_or(TIME)
}

/// The first error that a process told.
fn first_error(errors: &str) -> String {
    let mut lines = errors.lines();
    let first = lines.find(|line| line.contains("error: "));
    first.unwrap_or("the lab file cannot be checked").to_owned()
}

/// Row of what a process found; `None` if it found nothing.
fn of_output(status: ExitStatus, said: &str) -> Option<Mark> {
    status.code()?;
    let found: Value = serde_json::from_str(said).ok()?;
    let checks = found["checks"].as_array()?;
    let count = |verdicts: &[&str]| {
        let all = checks.iter().filter_map(|check| check["verdict"].as_str());
        all.filter(|verdict| verdicts.contains(verdict)).count() as u64
    };
    let texts = checks.iter().filter(|check| check["verdict"] != "pass");
    let texts = texts.filter_map(|check| {
        Some(format!(
            "{}: {}",
            check["title"].as_str()?,
            check["text"].as_str()?
        ))
    });
    Some(Mark {
        verdict: found["verdict"].as_str()?.to_owned(),
        points: found["points"].as_u64()?,
        of: found["of"].as_u64()?,
        counts: [
            count(&["pass"]),
            count(&["fail"]),
            count(&["warning"]),
            count(&["unjudged", "skipped"]),
        ],
        seconds: 0.0,
        feedback: texts.collect::<Vec<_>>().join("; "),
    })
}

/// The end of a process for one lab.
struct Ended {
    /// Its status; `None` if it took too long.
    status: Option<ExitStatus>,
    /// Standard output and standard error.
    said: String,
    errors: String,
}

/// Runs the process for one lab.
fn child(
    args: &CheckArgs,
    (path, lab): (&Path, File),
    checks: &Path,
    interrupt: &Interrupt,
) -> io::Result<Ended> {
    let (said, errors) = (unnamed()?, unnamed()?);
    let name = path.file_name().unwrap_or(path.as_os_str());
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["check", "-", "-o", "json"])
        .arg(format!("--one-of-class={}", name.to_string_lossy()))
        .arg(format!("--memory={}", args.memory))
        .arg("--checks")
        .arg(checks)
        // The process opens no further file; one that a lab names is not there, either.
        .current_dir("/")
        .stdin(Stdio::from(lab))
        .stdout(said.try_clone()?)
        .stderr(errors.try_clone()?);
    if args.details {
        command.arg("--details");
    }
    let mut child = command.spawn()?;
    let end = Instant::now() + time(args);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if Instant::now() >= end || interrupt.has_come() {
            child.kill()?;
            child.wait()?;
            break None;
        }
        std::thread::sleep(LOOK);
    };
    Ok(Ended {
        status,
        said: whole(said)?,
        errors: whole(errors)?,
    })
}

/// A file without a name.
fn unnamed() -> io::Result<File> {
    let directory = std::env::temp_dir();
    let flags = i32::try_from(rustix::fs::OFlags::TMPFILE.bits()).unwrap_or_default();
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(flags)
        .open(&directory)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", directory.display())))
}

fn whole(mut file: File) -> io::Result<String> {
    file.rewind()?;
    let mut octets = Vec::new();
    file.take(MOST_SAID).read_to_end(&mut octets)?;
    Ok(String::from_utf8_lossy(&octets).into_owned())
}

/// The number by which Moodle knows the owner of a directory of submissions, as its worksheet has it: `Participant
/// 1234` for `Anna Muster_1234_assignsubmission_file`.
fn identifier(name: &str) -> Option<String> {
    let (before, _) = name.split_once("_assignsubmission_")?;
    let (_, number) = before.rsplit_once('_')?;
    let digits = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
    digits.then(|| format!("Participant {number}"))
}

/// A text that a spreadsheet does not take for a formula.
fn harmless(text: &str) -> String {
    match text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        true => format!("'{text}"),
        false => text.to_owned(),
    }
}

fn rows(marks: &[(&Student, Mark)]) -> Rows {
    let mut rows = Rows::new(&[
        "student",
        "identifier",
        "verdict",
        "points",
        "of",
        "percent",
        "passed",
        "failed",
        "warnings",
        "not_judged",
        "seconds",
        "feedback",
    ]);
    for (student, mark) in marks {
        let percent = match mark.of {
            0 => Value::Null,
            of => rounded(100.0 * mark.points as f64 / of as f64, 1).into(),
        };
        let mut row: Vec<Value> = vec![
            harmless(&student.name).into(),
            identifier(&student.name).into(),
            mark.verdict.clone().into(),
            mark.points.into(),
            mark.of.into(),
            percent,
        ];
        row.extend(mark.counts.map(Value::from));
        row.push(rounded(mark.seconds, 2).into());
        row.push(harmless(&mark.feedback).into());
        rows.push(row);
    }
    rows
}
