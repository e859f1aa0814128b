//! `aerostat verify`: results beside those of a new run.
//!
//! The new run is a process of this program in an empty directory, with the inputs of the manifest. It gets no file of
//! the machine, and writes into this directory only. Files are compared piece by piece, so their size does not matter;
//! only a file whose lines may have any order is held in memory.

mod compare;

use crate::args::VerifyArgs;
use crate::exit::{Exit, Failure, Outcome, say};
use crate::interrupt::Interrupt;
use crate::manifest::{self, Manifest, Sum};
use crate::output::{self, Rows};
use crate::version;
use aerostat_lab::files::{self, Named};
use aerostat_wire::counted;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Name and version of the document.
const SCHEMA: &str = "aerostat.verify.v1";
/// The directory of the new results, below the one of the new run.
const RESULTS: &str = "results";
/// Most lines of a failed run that are shown.
const LINES: usize = 8;

/// Verdict on a file.
struct Verdict {
    file: String,
    state: &'static str,
    /// The first difference in words; empty without a difference, and without a file to compare with.
    difference: String,
}

/// Compares a directory with its manifest and with a new run.
pub(crate) fn run(args: &VerifyArgs) -> Outcome {
    let manifest = Manifest::read(&args.directory)?;
    let again = match args.no_run || manifest.real_time {
        true => None,
        false => Some(Again::run(&manifest)?),
    };
    let mut verdicts = Vec::new();
    for sum in &manifest.files {
        let new = again.as_ref().map(|again| again.results.as_path());
        verdicts.push(judge(&args.directory, new, sum)?);
    }
    if let Some(again) = &again {
        verdicts.extend(again.unknown(&manifest)?);
    }
    let bad = verdicts
        .iter()
        .filter(|verdict| verdict.state != "same")
        .count();
    let mut rows = Rows::new(&["file", "state", "first_difference"]);
    for verdict in &verdicts {
        if !args.quiet || verdict.state != "same" {
            let Verdict {
                file,
                state,
                difference,
            } = verdict;
            rows.push(vec![
                file.as_str().into(),
                (*state).into(),
                difference.as_str().into(),
            ]);
        }
    }
    if !(args.quiet && rows.rows.is_empty()) {
        output::write(args.output.form(), SCHEMA, &[rows])?;
    }
    tell_end(args, &manifest, verdicts.len(), bad);
    Ok(match (bad, manifest.real_time && !args.no_run) {
        (0, true) => Exit::Unjudged,
        (0, false) => Exit::Ok,
        _ => Exit::Failed,
    })
}

/// Says what the rows mean together.
fn tell_end(args: &VerifyArgs, manifest: &Manifest, files: usize, bad: usize) {
    let other = (&*manifest.version, &*manifest.commit) != (version::VERSION, version::COMMIT);
    if bad > 0 && other {
        let known = |commit: &str| match commit {
            "" => "of an unknown commit".to_owned(),
            commit => format!("of commit {commit}"),
        };
        say(format_args!(
            "note: the results are of version {} {}, and this is {} {}",
            aerostat_lab::printable::line(&manifest.version),
            aerostat_lab::printable::line(&known(&manifest.commit)),
            version::VERSION,
            known(version::COMMIT)
        ));
    }
    if args.quiet {
        return;
    }
    let files = counted(files, "file", "files");
    say(match (bad, args.no_run, manifest.real_time) {
        (0, false, false) => format!("{files}: the same in a new run"),
        (0, true, _) => format!("{files}: as the manifest says; nothing was run"),
        (0, false, true) => {
            format!("{files}: as the manifest says; results of real time do not come again")
        }
        _ => format!("{bad} of {files}: not the same"),
    });
}

/// The state of a file of the manifest.
fn judge(directory: &Path, new: Option<&Path>, sum: &Sum) -> Result<Verdict, Failure> {
    let here = directory.join(&sum.file);
    let again = new.map(|new| new.join(&sum.file));
    let verdict = |state, difference| Verdict {
        file: sum.file.clone(),
        state,
        difference,
    };
    match fs::symlink_metadata(&here) {
        // Who made the directory may have put a link there, to a file that is no business of the results.
        Ok(there) if !there.is_file() => {
            return Ok(verdict("changed", "this is no regular file".to_owned()));
        }
        Ok(_) => {}
        Err(_) => return Ok(verdict("missing", String::new())),
    }
    let unchanged = manifest::sum(&here)? == (sum.sha256.clone(), sum.octets);
    let Some(again) = again else {
        let state = if unchanged { "same" } else { "changed" };
        return Ok(verdict(state, String::new()));
    };
    if !again.exists() {
        let state = if unchanged { "not made" } else { "changed" };
        return Ok(verdict(state, String::new()));
    }
    let difference = compare::first_difference(&here, &again, sum.any_order);
    let difference =
        difference.map_err(|error| Failure::failed(format!("{}: {error}", here.display())))?;
    Ok(match (unchanged, difference) {
        (true, None) => verdict("same", String::new()),
        (true, Some(difference)) => verdict("differs", difference),
        (false, difference) => verdict("changed", difference.unwrap_or_default()),
    })
}

/// A new run, in a directory that goes at the end.
struct Again {
    directory: PathBuf,
    results: PathBuf,
}

impl Again {
    fn run(manifest: &Manifest) -> Result<Self, Failure> {
        let name = format!("aerostat-verify-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let failed = |error: io::Error| {
            Failure::failed(format!("{}: {error}", directory.display()))
                .hint("the new run needs a directory: TMPDIR names another place for it")
        };
        fs::create_dir(&directory).map_err(failed)?;
        let again = Self {
            results: directory.join(RESULTS),
            directory: directory.clone(),
        };
        for input in &manifest.inputs {
            let file = directory.join(&input.file);
            let written = file.parent().map_or(Ok(()), fs::create_dir_all);
            written.map_err(failed)?;
            files::write_whole(&file, Named::ByProgram, |out| {
                out.write_all(input.text.as_bytes())
            })
            .map_err(failed)?;
        }
        let interrupt = Interrupt::catch()?;
        let output = Command::new(std::env::current_exe()?)
            .args(manifest.arguments(RESULTS))
            .current_dir(&directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .output()?;
        if interrupt.has_come() {
            return Err(Failure::failed(
                "interrupted: the results were not compared",
            ));
        }
        // Misses of `reproduce` and warnings of a lab are results, too.
        if ![Some(Exit::Ok as i32), Some(Exit::Warnings as i32)].contains(&output.status.code()) {
            let text = String::from_utf8_lossy(&output.stderr);
            let lines: Vec<&str> = text.lines().take(LINES).collect();
            let text = format!(
                "the new run failed ({}):\n{}",
                output.status,
                lines.join("\n")
            );
            return Err(Failure::failed(text)
                .hint("'aerostat verify --no-run' compares the files with their sums"));
        }
        Ok(again)
    }

    /// Files that the manifest does not name.
    fn unknown(&self, manifest: &Manifest) -> Result<Vec<Verdict>, Failure> {
        let mut files = Vec::new();
        below(&self.results, Path::new(""), &mut files)?;
        files.sort();
        let known = |file: &str| {
            let own = manifest.files.iter().any(|sum| sum.file == file);
            own || Path::new(file).file_name() == Some(OsStr::new(manifest::NAME))
        };
        let new = files.into_iter().filter(|file| !known(file));
        Ok(new
            .map(|file| Verdict {
                file,
                state: "new",
                difference: String::new(),
            })
            .collect())
    }
}

impl Drop for Again {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Names of all files below a directory.
fn below(root: &Path, part: &Path, files: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(part))? {
        let entry = entry?;
        let name = part.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => below(root, &name, files)?,
            false => files.push(name.to_string_lossy().into_owned()),
        }
    }
    Ok(())
}
