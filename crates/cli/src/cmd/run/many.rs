//! Several runs of one lab: `--seeds` and `--sweep` of `run`, and `aerostat sweep`, which shares all of this except the
//! use of the results.
//!
//! **How.** Each run is a process of its own, which gets the options of one run and knows nothing of the others. So its
//! results are to the byte those of `aerostat run` with these options, and a run that fails or that the system kills
//! for its memory costs no other run anything. `--jobs` processes run at the same time. Results appear in the order of
//! the runs, whichever ends first; `sweep --out` keeps each run as soon as it has ended.
//!
//! **Bounds.** Results of runs that have ended wait in memory for those of earlier runs. At most [`AHEAD`] runs for
//! each job start before the oldest one has been written.
//!
//! **Ctrl-C** reaches this process alone, because the others have process groups of their own. It passes the signal on;
//! the runs end with their results so far, and no further run starts. If this process dies, the others end with it.

mod out;

use crate::args::RunArgs;
use crate::cmd::pool::Pool;
use crate::exit::{self, Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::labs;
use crate::manifest;
use aerostat_lab::{Checked, Diagnostics, Override, ReadError};
use aerostat_live::force::interrupt_group;
use aerostat_live::threads::spawn_in;
use aerostat_sweep::identity;
pub(crate) use aerostat_sweep::variants::numbers as seeds;
use aerostat_sweep::variants::{self, Variant};
use aerostat_wire::counted;
use out::Results;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Runs for each job that may start before the oldest one of them has been written.
pub(super) const AHEAD: usize = 4;

/// Octets of the longest name of a directory. Source: `limits.h` of Linux, `NAME_MAX`.
const LONGEST_NAME: usize = 255;

/// True if these options ask for several runs.
pub(super) fn asked(args: &RunArgs) -> bool {
    args.seeds.is_some() || !args.sweep.is_empty()
}

/// All runs that the options ask for, of the lab in `path`.
pub(super) fn run(args: &RunArgs, path: &Path) -> Outcome {
    let variants = variants::of(args.seeds.as_deref(), &args.sweep)?;
    let swept = |path: &str| variants[0].settings.iter().any(|own| own.path == path);
    if args.until.is_some() && swept("until") {
        let text = "--sweep varies 'until', and --until says when all runs end";
        return Err(Failure::usage(text).hint("leave out --until"));
    }
    let path_of = |change: &Override| Some(change.change().split_once('=')?.0.to_owned());
    if let Some(both) = args.set.iter().filter_map(path_of).find(|path| swept(path)) {
        let text = format!("--sweep varies '{both}', and --set says what it is in all runs");
        return Err(Failure::usage(text).hint("leave out --set"));
    }
    if [&args.pcap, &args.results.out, &args.plot]
        .iter()
        .any(|directory| directory.is_some())
    {
        names_fit(&variants)?;
    }
    let input = Input::read(path)?;
    let keys = check(args, path, &input, &variants, &|_| ())?;
    let jobs = args.jobs.map_or_else(processors, usize::from);
    // With `--out` no results wait for those of earlier runs.
    let ahead = match args.results.out {
        Some(_) => usize::MAX,
        None => jobs.saturating_mul(AHEAD),
    };
    let plan = Plan::new(args, path, &input, &variants)?.ahead(ahead);
    if let Some(directory) = &args.results.out {
        manifest::remove(directory)?;
    }
    let mut results = Results::new(args, &variants);
    let ran = plan.all(jobs, &Interrupt::catch()?, &mut |number, exit, output| {
        results.add(&variants[number], exit, output)
    });
    let end = match ran
        .done
        .and_then(|()| results.finish(&variants[ran.begun..]))
    {
        // A reader that has read enough does not make a failed run a success.
        Err(closed) if closed.exit == Exit::Ok && ran.worst == Exit::Failed => ran.worst,
        Err(failure) => return Err(failure),
        Ok(()) => {
            plan.name_missing(ran.begun);
            ran.worst.with_warnings(ran.begun < variants.len())
        }
    };
    if has_changed(args, path, &input, &variants, &keys) {
        exit::say(
            "warning: the lab file has changed since the first run; lab_sha256 tells the runs apart",
        );
        return Ok(end.with_warnings(true));
    }
    if let (Some(directory), true) = (&args.results.out, ran.begun == variants.len())
        && matches!(end, Exit::Ok | Exit::Warnings)
    {
        leave_manifest(args, directory, &input, &variants)?;
    }
    Ok(end)
}

/// Writes the manifest of all runs.
fn leave_manifest(
    args: &RunArgs,
    directory: &Path,
    input: &Input,
    variants: &[Variant],
) -> Result<(), Failure> {
    let overrides = super::overrides(args, &variants[0].overrides(), args.seed);
    let checked = labs::told(&args.lab, input.load(&args.lab, &overrides))?;
    let mut manifest = super::manifest_of(args, &checked)?;
    let own = || checked.lab.seed.to_string();
    manifest.seeds = args.seeds.clone().unwrap_or_else(own);
    manifest.option_if("seeds", args.seeds.clone());
    for values in &args.sweep {
        manifest.option("sweep", values.clone());
    }
    manifest.result(directory, out::INDEX, false)?;
    for variant in variants {
        let own = variant.directory();
        for file in super::files::there(&directory.join(&own)) {
            manifest.result(directory, &format!("{own}/{file}"), false)?;
        }
    }
    manifest.write(directory)
}

/// True if the lab file is no longer what [`check`] has read.
fn has_changed(
    args: &RunArgs,
    path: &Path,
    input: &Input,
    variants: &[Variant],
    keys: &[Arc<str>],
) -> bool {
    let (Some(last), None) = (variants.last(), &input.0) else {
        return false;
    };
    let overrides = super::overrides(args, &last.overrides(), args.seed);
    let now = input.load(path, &overrides).ok();
    now.map(|lab| identity(&lab)).as_deref() != keys.last().map(|key| &**key)
}

/// Refuses runs whose directories would have names that are too long for a file system.
fn names_fit(variants: &[Variant]) -> Result<(), Failure> {
    let lengths = variants.iter().map(|variant| variant.directory().len());
    match lengths.max() {
        Some(longest) if longest > LONGEST_NAME => {
            let text = format!(
                "a run's directory would have a name of {longest} octets: {LONGEST_NAME} are the limit"
            );
            Err(Failure::usage(text).hint("-o without --out and --pcap names runs in its rows"))
        }
        _ => Ok(()),
    }
}

/// Processors that this process may use.
pub(crate) fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The text of a lab on standard input, which each run gets again.
pub(super) struct Input(Option<String>);

impl Input {
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        if path != Path::new("-") {
            return Ok(Self(None));
        }
        let text = labs::standard_input();
        let text = text.map_err(|error| labs::unreadable(path, &error))?;
        Ok(Self(Some(text)))
    }

    /// The text of the lab, from standard input or from the file.
    pub(super) fn text(&self, path: &Path) -> Result<String, Failure> {
        match &self.0 {
            Some(text) => Ok(text.clone()),
            None => labs::text(path),
        }
    }

    pub(super) fn load(&self, path: &Path, overrides: &[Override]) -> Result<Checked, ReadError> {
        match &self.0 {
            Some(text) => labs::parse(text, overrides),
            None => labs::load(path, overrides),
        }
    }
}

/// Checks the lab with each combination of settings before the first run starts, on all processors; the [`identity`] of
/// each run's lab. Seeds are not part of the combinations, because each of them is valid. `checked` hears of how many
/// more runs the lab is checked.
pub(super) fn check(
    args: &RunArgs,
    path: &Path,
    input: &Input,
    variants: &[Variant],
    checked: &dyn Fn(u64),
) -> Result<Vec<Arc<str>>, Failure> {
    let differs = |at: &usize| *at == 0 || variants[*at].settings != variants[*at - 1].settings;
    let firsts: Vec<usize> = (0..variants.len()).filter(differs).collect();
    let same = |at: usize| {
        let same = variants[at..].iter();
        same.take_while(|variant| variant.settings == variants[at].settings)
            .count()
    };
    let jobs = processors();
    let pool = Pool::new(firsts.len(), jobs).ahead(jobs.saturating_mul(AHEAD));
    let mut keys = Ok(Vec::with_capacity(variants.len()));
    let work = |at: usize| check_one(args, path, input, &variants[firsts[at]]);
    pool.all(&work, &|| (), |at, found| match (&mut keys, found) {
        (Ok(keys), Ok(found)) => {
            let count = same(firsts[at]);
            checked(count as u64);
            keys.extend(std::iter::repeat_n(Arc::from(found), count));
        }
        (Ok(_), Err(mistake)) => {
            // Only the first mistake is told.
            keys = Err(mistake);
            pool.stop();
        }
        (Err(_), _) => {}
    });
    keys.map_err(Mistake::tell)
}

/// Why a combination is refused: findings in the lab, which are told with it, and the failure.
struct Mistake(Option<Box<Diagnostics>>, Failure);

impl Mistake {
    /// Tells the findings.
    fn tell(self) -> Failure {
        self.0.iter().for_each(|findings| labs::tell(findings));
        self.1
    }
}

/// Checks the lab with one combination of settings; its [`identity`].
fn check_one(
    args: &RunArgs,
    path: &Path,
    input: &Input,
    variant: &Variant,
) -> Result<String, Mistake> {
    let plain = |failure| Mistake(None, failure);
    let overrides = super::overrides(args, &variant.overrides(), args.seed);
    let checked = match input.load(path, &overrides) {
        Ok(checked) => checked,
        Err(ReadError::Bad(findings)) => {
            let text = format!("run {variant}: {}", labs::summary(path, &findings));
            return Err(Mistake(Some(Box::new(findings)), Failure::usage(text)));
        }
        Err(ReadError::Io(error)) => return Err(plain(labs::unreadable(path, &error))),
    };
    super::refuse_outside(&checked.lab).map_err(plain)?;
    if !checked.lab.capture.is_empty() && args.pcap.is_none() {
        let text = "several runs would record the links of 'capture:' into one file";
        let hint = "'aerostat run --pcap DIR' gives each run a directory of its own";
        return Err(plain(Failure::usage(text).hint(hint)));
    }
    Ok(identity(&checked))
}

/// Plan that the threads share which start runs.
pub(super) struct Plan<'a> {
    args: &'a RunArgs,
    path: &'a Path,
    input: &'a Input,
    variants: &'a [Variant],
    /// The runs to do, as numbers of variants, in their order.
    todo: Vec<usize>,
    program: PathBuf,
    /// Runs that may start before the oldest one of them has been written.
    ahead: usize,
    /// False: results are wanted as soon as a run has ended, in any order.
    ordered: bool,
    /// Most lines of the runs on standard error.
    lines: usize,
    /// Process groups by run.
    running: Mutex<BTreeMap<usize, u32>>,
}

/// Output of a run.
pub(super) struct Output {
    status: ExitStatus,
    /// Its standard output.
    pub(super) out: String,
    err: String,
}

/// How all runs have ended.
pub(super) struct Ran {
    /// The exit code of the run that ended worst.
    pub(super) worst: Exit,
    /// Runs that have begun, the first ones of those to do.
    pub(super) begun: usize,
    /// The first failure of the receiver of the results; no run begins after it.
    pub(super) done: Result<(), Failure>,
}

/// Takes the results of a run: its number, how it ended, and what it left.
pub(super) type Taker<'a> = dyn FnMut(usize, Exit, Option<Output>) -> Result<(), Failure> + 'a;

impl<'a> Plan<'a> {
    /// All variants, in their order, with all that they say.
    pub(super) fn new(
        args: &'a RunArgs,
        path: &'a Path,
        input: &'a Input,
        variants: &'a [Variant],
    ) -> io::Result<Self> {
        Ok(Self {
            args,
            path,
            input,
            variants,
            todo: (0..variants.len()).collect(),
            program: std::env::current_exe()?,
            ahead: usize::MAX,
            ordered: true,
            lines: usize::MAX,
            running: Mutex::default(),
        })
    }

    pub(super) fn ahead(self, ahead: usize) -> Self {
        Self { ahead, ..self }
    }

    /// Only these variants.
    pub(super) fn only(self, todo: Vec<usize>) -> Self {
        Self { todo, ..self }
    }

    /// Results as soon as a run has ended.
    pub(super) fn at_once(self) -> Self {
        Self {
            ordered: false,
            ..self
        }
    }

    /// At most this many lines of what the runs say.
    pub(super) fn lines(self, lines: usize) -> Self {
        Self { lines, ..self }
    }

    /// Runs everything with this many processes at a time.
    pub(super) fn all(&self, jobs: usize, interrupt: &Interrupt, take: &mut Taker<'_>) -> Ran {
        let pool = Pool::new(self.todo.len(), jobs);
        let pool = pool.ahead(self.ahead).ordered(self.ordered);
        let count = Mutex::new(0);
        let work = |at: usize| {
            let began = Instant::now();
            let child = self.start(&pool, at);
            let output = child.and_then(|child| self.finish(at, child));
            self.tell(at, began.elapsed(), &count);
            output
        };
        let look = || {
            if interrupt.has_come() {
                self.end_all(&pool);
            }
        };
        let (mut said, mut worst, mut done) = (Said::new(self.lines), Exit::Ok, Ok(()));
        let begun = pool.all(&work, &look, |at, output| {
            let number = self.todo[at];
            let exit = judge(
                &self.variants[number],
                &output,
                pool.is_stopped(),
                &mut said,
            );
            worst = worse(worst, exit);
            if done.is_ok() {
                done = take(number, exit, output.ok());
            }
            if done.is_err() {
                self.end_all(&pool);
            }
        });
        said.rest();
        Ran { worst, begun, done }
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<usize, u32>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Interrupts all runs; no further run starts.
    fn end_all(&self, pool: &Pool) {
        let running = self.running();
        if pool.stop() {
            for group in running.values() {
                // The run may have ended in this moment.
                let _ = interrupt_group(*group);
            }
        }
    }

    /// Starts a run. One that was about to start when all were interrupted is interrupted, too.
    fn start(&self, pool: &Pool, at: usize) -> io::Result<std::process::Child> {
        let variant = &self.variants[self.todo[at]];
        let input = match &self.input.0 {
            Some(_) => Stdio::piped(),
            None => Stdio::null(),
        };
        let mut command = Command::new(&self.program);
        command
            .args(arguments(self.args, self.path, variant))
            .process_group(0)
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut running = self.running();
        let child = command.spawn()?;
        running.insert(at, child.id());
        if pool.is_stopped() {
            let _ = interrupt_group(child.id());
        }
        Ok(child)
    }

    /// Waits for the end of a run.
    fn finish(&self, at: usize, mut child: std::process::Child) -> io::Result<Output> {
        let (input, mut stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (mut out, mut err) = (Vec::new(), Vec::new());
        if let (Some(mut input), Some(text)) = (input, &self.input.0) {
            // A run reads all of the lab before it says anything. One that ends early says so itself.
            let _ = input.write_all(text.as_bytes());
        }
        let read = thread::scope(|scope| {
            let rest = spawn_in(scope, || stderr.map(|mut pipe| pipe.read_to_end(&mut err)));
            if rest.is_err() {
                // Without a reader the run might wait for ever.
                let _ = child.kill();
            }
            stdout.as_mut().map(|pipe| pipe.read_to_end(&mut out));
            rest.map(drop)
        });
        // It has closed its output and is about to end. Its number is free for other processes once it is waited for.
        self.running().remove(&at);
        if let Err(error) = read {
            child.wait()?;
            return Err(error);
        }
        Ok(Output {
            status: child.wait()?,
            out: String::from_utf8_lossy(&out).into_owned(),
            err: String::from_utf8_lossy(&err).into_owned(),
        })
    }

    /// Says that a run has ended; `count` is the number of those before.
    fn tell(&self, at: usize, took: Duration, count: &Mutex<usize>) {
        let mut count = count.lock().unwrap_or_else(PoisonError::into_inner);
        *count += 1;
        if !self.args.quiet {
            let variant = &self.variants[self.todo[at]];
            let (all, took) = (self.todo.len(), took.as_secs_f64());
            exit::say(format_args!(
                "run {variant} has ended after {took:.1} s ({count} of {all})"
            ));
        }
    }

    /// Names the runs that did not start because of Ctrl-C.
    pub(super) fn name_missing(&self, next: usize) {
        let missing = &self.todo[next..];
        if let (Some(first), Some(last)) = (missing.first(), missing.last()) {
            let (first, last) = (&self.variants[*first], &self.variants[*last]);
            let count = missing.len();
            exit::say(format_args!(
                "warning: interrupted before {} began: {first} to {last}",
                counted(count, "run", "runs")
            ));
        }
    }
}

/// Lines of the runs on standard error, up to a number. With such a number the same line of several runs is shown once:
/// runs of one lab have the same warnings.
struct Said {
    left: usize,
    hidden: usize,
    /// Lines that were shown; as many as there may be.
    seen: Option<BTreeSet<String>>,
}

impl Said {
    fn new(left: usize) -> Self {
        Self {
            left,
            hidden: 0,
            seen: (left < usize::MAX).then(BTreeSet::new),
        }
    }

    fn say(&mut self, variant: &Variant, line: &str) {
        let known = self.seen.as_ref().is_some_and(|seen| seen.contains(line));
        if self.left == 0 || known {
            self.hidden += 1;
            return;
        }
        self.left -= 1;
        self.seen.iter_mut().for_each(|seen| {
            seen.insert(line.to_owned());
        });
        exit::say(format_args!("{variant}: {line}"));
    }

    /// Says how many lines were not shown.
    fn rest(&self) {
        if self.hidden > 0 {
            let more = counted(self.hidden, "more line", "more lines");
            exit::say(format_args!("... and {more} of runs"));
        }
    }
}

/// Shows the words of a run, and returns how it ended; says why a run has failed. A run that was interrupted before it
/// could hear that, while it read its lab, has no results.
fn judge(variant: &Variant, output: &io::Result<Output>, stopped: bool, said: &mut Said) -> Exit {
    let why = match output {
        Err(error) => error.to_string(),
        Ok(output) => {
            for line in output.err.lines() {
                said.say(variant, line);
            }
            match (output.status.code(), output.status.signal()) {
                (Some(0), _) => return Exit::Ok,
                (Some(3), _) => return Exit::Warnings,
                (None, Some(signal_hook::consts::SIGINT)) if stopped => {
                    exit::say(format_args!(
                        "warning: run {variant} was interrupted as it began"
                    ));
                    return Exit::Warnings;
                }
                (Some(code), _) => format!("exit code {code}"),
                (None, signal) => format!("signal {}", signal.unwrap_or_default()),
            }
        }
    };
    exit::complain(&Failure::failed(format!("run {variant}: {why}")));
    Exit::Failed
}

/// The exit code of two runs.
fn worse(one: Exit, other: Exit) -> Exit {
    match (one, other) {
        (Exit::Ok, exit) | (exit, Exit::Ok) => exit,
        (Exit::Warnings, exit) => exit,
        (exit, _) => exit,
    }
}

/// The options of one run.
fn arguments(args: &RunArgs, path: &Path, variant: &Variant) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["run".into(), "--one-of-several".into(), "--quiet".into()];
    let mut option = |name: &str, value: OsString| words.extend([name.into(), value]);
    for change in args.set.iter().chain(&variant.overrides()) {
        option("--set", change.change().into());
    }
    if let Some(seed) = variant.seed.or(args.seed) {
        option("--seed", seed.to_string().into());
    }
    if let Some(until) = &args.until {
        option("--until", until.into());
    }
    if let Some(table) = &args.results.table {
        option("--table", table.into());
    }
    let own = |directory: &PathBuf| directory.join(variant.directory()).into();
    if let Some(directory) = &args.pcap {
        option("--pcap", own(directory));
    }
    if let Some(directory) = &args.results.out {
        option("--out", own(directory));
    }
    if let Some(directory) = &args.plot {
        option("--plot", own(directory));
    }
    option("--output", args.results.output.output.name().into());
    let flags = [
        ("--cells", args.cells),
        ("--wide", args.results.output.wide),
    ];
    let flags = flags.iter().filter(|(_, on)| *on);
    words.extend(flags.map(|(name, _)| OsString::from(name)));
    words.extend(["--".into(), path.into()]);
    words
}
