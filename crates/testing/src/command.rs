//! The command `aerostat` as a child process of a test: the one that was built together with the test.

use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Directory of the build profile, such as `target/debug`: executables of tests lie in its folder `deps`.
fn profile() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    let profile = test.ancestors().nth(2).expect("a test lies in deps");
    profile.to_owned()
}

/// Directory for files of tests. Cargo calls it `CARGO_TARGET_TMPDIR`.
pub fn scratch() -> PathBuf {
    let scratch = profile().with_file_name("tmp");
    std::fs::create_dir_all(&scratch).expect("a directory for files of tests");
    scratch
}

/// A separate runtime directory, in which no lab of this machine is visible.
fn nowhere() -> PathBuf {
    let dir = scratch().join("runtime");
    std::fs::create_dir_all(&dir).expect("a runtime directory");
    dir
}

/// The command with these arguments, in the root of the repository, without standard input. Its locale has all
/// characters, whatever that of the test is.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(profile().join("aerostat"));
    command
        .args(args)
        .current_dir(root())
        .env("XDG_RUNTIME_DIR", nowhere())
        .env("LC_ALL", "C.UTF-8")
        .env_remove("NO_COLOR")
        .stdin(Stdio::null());
    command
}

/// Exit code and texts of a command that has ended.
pub struct Ran {
    /// The command and its arguments, for messages; empty if they are not known.
    command: String,
    /// Exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |octets| String::from_utf8(octets).expect("UTF-8");
        Self {
            command: String::new(),
            code: output.status.code().expect("an end without a signal"),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }
}

impl Ran {
    /// Runs a command to its end.
    pub fn of(mut command: Command) -> Self {
        let output = command.output().expect("the command runs");
        Self {
            command: format!("{command:?}"),
            ..output.into()
        }
    }
    /// The JSON on standard output.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
    /// Holds that the command has said these words on standard error.
    #[track_caller]
    pub fn says(&self, words: &str) {
        assert!(self.err.contains(words), "no {words:?}: {self:?}");
    }
    /// Holds that the command has written these words to standard output.
    #[track_caller]
    pub fn shows(&self, words: &str) {
        assert!(self.out.contains(words), "no {words:?}: {self:?}");
    }
    /// The same, which must have succeeded.
    #[track_caller]
    pub fn good(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }
    /// Holds that the command has ended with this exit code, and has said these words.
    #[track_caller]
    pub fn ends(&self, code: i32, words: &str) {
        assert_eq!(self.code, code, "{self:?}");
        self.says(words);
    }
    /// Holds that the command has ended with this exit code and without output, and has said all of these words.
    #[track_caller]
    pub fn refused(&self, code: i32, words: &[&str]) {
        assert_eq!((self.code, self.out.as_str()), (code, ""), "{self:?}");
        words.iter().for_each(|words| self.says(words));
    }
}

impl fmt::Debug for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (
            Self {
                command, out, err, ..
            },
            code,
        ) = (self, self.code);
        write!(f, "{command} ended with {code}\n{out}\n{err}")
    }
}

/// Runs the command to its end.
pub fn run(args: &[&str]) -> Ran {
    Ran::of(command(args))
}

/// Standard output of a command that must succeed.
#[track_caller]
pub fn ok(args: &[&str]) -> String {
    run(args).good().out
}

/// The JSON that a command writes, which must succeed.
#[track_caller]
pub fn json(args: &[&str]) -> Value {
    run(args).good().json()
}

/// A command that runs, with pipes for all that it writes.
pub fn piped(mut command: Command) -> Child {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the command runs")
}

/// Output of a command with pipes that ends by itself.
pub fn rest_of(child: Child) -> Ran {
    let output = child.wait_with_output().expect("the command ends");
    output.into()
}

/// A lab whose file, errors and state have characters beyond ASCII.
pub const BEYOND_ASCII: &str = "
description: Zürich – 東京, 1 µs
switches: { s1: {}, s2: {} }
links: [[s1, s2, { delay: 20us }]]
lane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  urku: { on: s1, elan: a, ip: 10.1.0.10 }
  sello: { on: s2, elan: a, ip: 10.1.0.20 }
traffic: [{ from: urku, to: sello, kind: ping, rate: 10pps, start: 1s, duration: 100ms }]
";

/// Runs a command in the locale `C`, and holds that it says something, with ASCII alone.
///
/// # Panics
/// If it says nothing, or anything else.
pub fn says_ascii(mut command: Command) -> Output {
    let output = command.env("LC_ALL", "C").output();
    let output = output.expect("the command runs");
    let said = [&output.stdout, &output.stderr];
    let nothing = said.iter().all(|said| said.is_empty());
    assert!(!nothing, "{command:?} says nothing");
    for said in said {
        let text = String::from_utf8_lossy(said);
        let line = text.lines().find(|line| !line.is_ascii());
        assert!(line.is_none(), "{command:?}: {line:?}");
    }
    output
}

/// Sends the process a signal by its name, such as `KILL`.
pub fn signal(process: &str, name: &str) {
    let _ = Command::new("kill")
        .args([&format!("-{name}"), process])
        .status();
}

/// A lab in a file, for one test; gives its path.
pub fn lab_file(name: &str, text: &str) -> String {
    let path = scratch().join(name);
    std::fs::write(&path, text).expect("a lab file");
    path.to_str().expect("UTF-8").to_owned()
}
