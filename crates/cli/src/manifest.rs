//! Manifests of result directories: everything that a new run of the same results needs, and the sum of each file.
//!
//! `run --out`, `sweep --out` and `reproduce --report` leave `manifest.json` in their directory when all other files
//! have their names. `aerostat verify` reads it, perhaps on another machine, and from a sender who cannot be trusted.
//! So a manifest has no command line: it has a verb and options, of which [`Manifest::read`] knows each, and texts of
//! files that go into a directory of their own.

use crate::exit::Failure;
use crate::version;
use aerostat_lab::Checked;
use aerostat_lab::files::{self, Named, sha256};
use aerostat_lab::model::Flow;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Component, Path, PathBuf};

/// Name of the file.
pub(crate) const NAME: &str = "manifest.json";
/// Name and version of the document.
pub(crate) const SCHEMA: &str = "aerostat.manifest.v1";
/// Longest manifest, octets: room for labs, traces and catalogues.
const MAX: u64 = 64 << 20;

aerostat_wire::named! {
    /// The command that makes results.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub(crate) enum Verb {
        Run = "run",
        Sweep = "sweep",
        Reproduce = "reproduce",
    }
}

impl Verb {
    /// The option that names the directory.
    pub(crate) const fn directory_option(self) -> &'static str {
        match self {
            Self::Run | Self::Sweep => "out",
            Self::Reproduce => "report",
        }
    }

    /// Options that change results. The value of an option of [`Self::files`] is the name of one of the inputs.
    const fn options(self) -> &'static [&'static str] {
        match self {
            Self::Run => &["set", "seed", "seeds", "sweep", "until", "output"],
            Self::Sweep => &[
                "set", "points", "seeds", "until", "per", "table", "mean", "output",
            ],
            Self::Reproduce => &["seeds", "catalogue", "parameters", "printed"],
        }
    }

    const fn files(self) -> &'static [&'static str] {
        match self {
            Self::Run => &[],
            Self::Sweep => &["points"],
            Self::Reproduce => &["catalogue", "parameters", "printed"],
        }
    }
}

/// An option with its value; empty for a flag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Given {
    pub(crate) option: String,
    pub(crate) value: String,
}

/// A file that the command reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Input {
    /// Its name, below the directory of the lab.
    pub(crate) file: String,
    pub(crate) sha256: String,
    pub(crate) text: String,
}

/// A file of the results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sum {
    /// Its name, below the directory.
    pub(crate) file: String,
    pub(crate) octets: u64,
    pub(crate) sha256: String,
    /// True if its lines stand in the order in which runs ended.
    #[serde(default)]
    pub(crate) any_order: bool,
}

/// The machine of the run, for readers. A lab in virtual time has the same results on every machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Host {
    pub(crate) system: String,
    pub(crate) release: String,
    pub(crate) processor: String,
    pub(crate) processors: usize,
}

impl Host {
    fn this() -> Self {
        let name = rustix::system::uname();
        let word = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        Self {
            system: word(name.sysname()),
            release: word(name.release()),
            processor: word(name.machine()),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// The document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) schema: String,
    /// Version of the program.
    pub(crate) version: String,
    /// Commit of its source; empty if it is not known.
    pub(crate) commit: String,
    pub(crate) committed: String,
    pub(crate) rustc: String,
    pub(crate) target: String,
    pub(crate) host: Host,
    /// True if results come from real time, and so cannot come again.
    pub(crate) real_time: bool,
    pub(crate) verb: Verb,
    /// The command as a person would type it, beside the inputs.
    pub(crate) command: String,
    /// Seeds of the runs, also where they follow from the lab; for readers.
    pub(crate) seeds: String,
    /// Changes of the lab, seeds, and the form of the results.
    pub(crate) options: Vec<Given>,
    /// The lab's name among the inputs; entries of `reproduce`.
    pub(crate) words: Vec<String>,
    pub(crate) inputs: Vec<Input>,
    pub(crate) files: Vec<Sum>,
}

impl Manifest {
    /// A manifest of this program and this machine, without inputs and files.
    pub(crate) fn new(verb: Verb) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            version: version::VERSION.to_owned(),
            commit: version::COMMIT.to_owned(),
            committed: version::COMMITTED.to_owned(),
            rustc: version::RUSTC.to_owned(),
            target: version::TARGET.to_owned(),
            host: Host::this(),
            real_time: false,
            verb,
            command: String::new(),
            seeds: String::new(),
            options: Vec::new(),
            words: Vec::new(),
            inputs: Vec::new(),
            files: Vec::new(),
        }
    }

    pub(crate) fn option(&mut self, option: &str, value: impl Into<String>) {
        self.options.push(Given {
            option: option.to_owned(),
            value: value.into(),
        });
    }

    /// An option, if it was given.
    pub(crate) fn option_if(&mut self, option: &str, value: Option<impl Into<String>>) {
        if let Some(value) = value {
            self.option(option, value);
        }
    }

    /// The lab of the command, with the traces that it reads. A lab from standard input is a file here.
    ///
    /// # Errors
    /// If a trace cannot be read again, or is another one now.
    pub(crate) fn lab(&mut self, path: &Path, checked: &Checked) -> Result<(), Failure> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = match path == Path::new("-") {
            true => "stdin.atm.yml".to_owned(),
            false if path.is_file() => name.into_owned(),
            false => format!("{name}.atm.yml"),
        };
        self.words.push(name.clone());
        self.input(name, checked.text.clone());
        for trace in checked.lab.traffic.iter().filter_map(Flow::trace) {
            if self.inputs.iter().any(|input| input.file == trace.file) {
                continue;
            }
            let file = path.with_file_name(&trace.file);
            self.file(trace.file.clone(), &file)?;
            if self
                .inputs
                .last()
                .is_some_and(|last| last.sha256 != trace.digest)
            {
                let text = format!("{} has changed since the run has read it", file.display());
                return Err(Failure::failed(text));
            }
        }
        Ok(())
    }

    /// A further input.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn file(&mut self, name: String, path: &Path) -> Result<(), Failure> {
        let text = files::text(path, MAX, "an input");
        let text = text.map_err(|why| Failure::failed(format!("{}: {why}", path.display())))?;
        self.input(name, text);
        Ok(())
    }

    fn input(&mut self, file: String, text: String) {
        self.inputs.push(Input {
            sha256: aerostat_lab::digest(&text, &[]),
            file,
            text,
        });
    }

    /// Adds a file of the results.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn result(
        &mut self,
        directory: &Path,
        file: &str,
        any_order: bool,
    ) -> Result<(), Failure> {
        let path = directory.join(file);
        let (sha256, octets) = sum(&path)?;
        self.files.push(Sum {
            file: file.to_owned(),
            octets,
            sha256,
            any_order,
        });
        Ok(())
    }

    /// Writes the manifest, the last file of a directory of results.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn write(mut self, directory: &Path) -> Result<(), Failure> {
        self.command = self.typed("results");
        let file = directory.join(NAME);
        let text =
            serde_json::to_string_pretty(&self).map_err(|e| Failure::failed(e.to_string()))?;
        files::write_whole(&file, Named::ByProgram, |out| writeln!(out, "{text}"))
            .map_err(|error| Failure::failed(format!("{}: {error}", file.display())))
    }

    /// The words of the command for these results in another directory.
    pub(crate) fn arguments(&self, directory: &str) -> Vec<String> {
        let mut all = vec![self.verb.name().to_owned(), "--quiet".to_owned()];
        for given in &self.options {
            all.push(match given.value.is_empty() {
                true => format!("--{}", given.option),
                false => format!("--{}={}", given.option, given.value),
            });
        }
        all.push(format!("--{}={directory}", self.verb.directory_option()));
        all.push("--".to_owned());
        all.extend(self.words.iter().cloned());
        all
    }

    fn typed(&self, directory: &str) -> String {
        let quoted = |word: String| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:%@".contains(c);
            match word.chars().all(plain) {
                true => word,
                false => format!("'{}'", word.replace('\'', r"'\''")),
            }
        };
        let words = self.arguments(directory).into_iter().map(quoted);
        format!("aerostat {}", words.collect::<Vec<_>>().join(" "))
    }

    /// The manifest of a directory.
    ///
    /// # Errors
    /// If the directory has no manifest, or one that this program does not understand: wrong usage.
    pub(crate) fn read(directory: &Path) -> Result<Self, Failure> {
        let file = directory.join(NAME);
        let bad = |why: String| Failure::usage(format!("{}: {why}", file.display()));
        if !directory.is_dir() {
            let why = match directory.exists() {
                true => "this is no directory",
                false => "no such directory",
            };
            let text = format!("{}: {why}", directory.display());
            return Err(Failure::usage(text).hint(
                "verify takes the directory of 'run --out', 'sweep --out' or 'reproduce --report'",
            ));
        }
        if !file.exists() {
            let hint = "'run --out', 'sweep --out' and 'reproduce --report' write one; version 0.2.0 did not";
            return Err(
                Failure::usage(format!("{} has no {NAME}", directory.display())).hint(hint),
            );
        }
        let text = files::text(&file, MAX, "a manifest").map_err(bad)?;
        let manifest: Self = serde_json::from_str(&text).map_err(|error| bad(error.to_string()))?;
        manifest.checked().map_err(bad)?;
        Ok(manifest)
    }

    /// Refuses what no manifest of this program has.
    fn checked(&self) -> Result<(), String> {
        if self.schema != SCHEMA {
            return Err(format!("the schema is '{}', and not {SCHEMA}", self.schema));
        }
        for Given { option, value } in &self.options {
            if !self.verb.options().contains(&&**option) {
                return Err(format!(
                    "'{}' has no option '{option}' here",
                    self.verb.name()
                ));
            }
            let below = |input: &Input| Path::new(&input.file).starts_with(value);
            if self.verb.files().contains(&&**option) && !self.inputs.iter().any(below) {
                return Err(format!("the input '{value}' of --{option} is missing"));
            }
        }
        let lab = match self.verb {
            Verb::Run | Verb::Sweep => self.words.len() == 1,
            Verb::Reproduce => true,
        };
        if !lab {
            return Err("there is not exactly one lab".to_owned());
        }
        for file in self
            .inputs
            .iter()
            .map(|input| &input.file)
            .chain(self.files.iter().map(|sum| &sum.file))
        {
            let inside = |part: Component<'_>| matches!(part, Component::Normal(_));
            if file.is_empty() || file.contains('\0') || !Path::new(file).components().all(inside) {
                return Err(format!("'{file}' is no name of a file below the directory"));
            }
        }
        let given = |word: &&String| self.inputs.iter().any(|input| input.file == **word);
        let named = self.words.first().filter(|_| self.verb != Verb::Reproduce);
        if let Some(other) = named.filter(|word| !given(word)) {
            return Err(format!("the lab '{other}' is not among the inputs"));
        }
        for input in &self.inputs {
            if aerostat_lab::digest(&input.text, &[]) != input.sha256 {
                return Err(format!(
                    "the text of '{}' does not have its SHA-256",
                    input.file
                ));
            }
        }
        Ok(())
    }
}

/// SHA-256 and size of a file.
pub(crate) fn sum(path: &Path) -> Result<(String, u64), Failure> {
    let read = || {
        // To open a FIFO would wait for a writer.
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::other("this is no regular file"));
        }
        sha256(File::open(path)?)
    };
    read().map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
}

/// Removes the manifest of earlier results, before the first of them is replaced.
///
/// # Errors
/// If it is there and cannot be removed.
pub(crate) fn remove(directory: &Path) -> Result<(), Failure> {
    let file = directory.join(NAME);
    match fs::remove_file(&file) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Failure::failed(format!("{}: {error}", file.display())))
        }
        _ => Ok(()),
    }
}

/// Files of a folder that are inputs, in the order of their names.
pub(crate) fn folder(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error: io::Error| Failure::failed(format!("{}: {error}", directory.display()));
    let mut all = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_file() {
            all.push(path);
        }
    }
    all.sort();
    Ok(all)
}
