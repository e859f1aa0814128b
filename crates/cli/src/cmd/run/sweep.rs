//! `aerostat sweep`: many points and seeds of one lab, and one table of their results.
//!
//! ```text
//! aerostat_sweep  the runs, those that are done, rows, means, and the table as CSV, JSON lines or Parquet
//! people.rs       the table for people
//! plots.rs        what is drawn
//! ```
//!
//! **How.** The runs are those of `run --sweep` (`many.rs`): a process each, `--jobs` at a time. A run leaves one table
//! of its results. With `--out` it goes to the store as soon as the run has ended, and the table is made from the store
//! when all runs are there; without, it goes to the table at once, in the order of the runs.
//!
//! **Bounds.** In memory are the list of runs, the place of each in the store, and the rows of one point. A table for
//! people, and a drawing, need all of their rows.

mod people;
pub(in crate::cmd) mod plots;

use super::many::{AHEAD, Input, Output, Plan, check, processors};
use crate::args::{OutputArgs, ResultArgs, RunArgs, SweepArgs, SweepForm};
use crate::exit::{self, Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::manifest::{self, Manifest, Verb};
use crate::output::Format;
use crate::progress;
use crate::version::VERSION;
use aerostat_lab::results;
use aerostat_sweep::points::{self, Asked};
use aerostat_sweep::shape::{Per, Shape};
use aerostat_sweep::store::{Key, Record, SWEEP, Store};
use aerostat_sweep::table::Sink;
use aerostat_sweep::variants::Variant;
use aerostat_wire::counted;
use indicatif::ProgressBar;
use people::Looks;
use plots::Plots;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most lines of the runs themselves, such as warnings, that a sweep shows.
const LINES: usize = 40;

/// Does all runs that are missing, and writes the table.
pub(crate) fn run(args: &SweepArgs) -> Outcome {
    let place = Place::of(args)?;
    let table = args.table.as_deref().unwrap_or("flows");
    let info = results::find(table).ok_or_else(|| {
        Failure::usage(format!("results have no table '{table}'"))
            .hint(format!("tables are {}", super::table_names().join(", ")))
    })?;
    let variants = points::of(&Asked {
        set: &args.set,
        points: args.points.as_deref(),
        seeds: args.seeds.as_deref(),
        until: args.until.as_deref(),
    })?;
    let per = match args.per {
        crate::args::Per::Flow => Per::Flow,
        crate::args::Per::Run => Per::Run,
    };
    let shape = Shape::new(info, per, args.mean, &variants);
    Plots::new(&args.plot, &shape, &variants, "")?;
    let options = options_of_runs(args, table);
    let input = Input::read(&args.lab)?;
    let bar = progress::bar(args.quiet, Some(variants.len()), "points checked");
    let keys = check(&options, &args.lab, &input, &variants, &|runs| {
        bar.inc(runs)
    })?;
    bar.finish_and_clear();
    let text = input.text(&args.lab)?;
    let sweep = Sweep {
        args,
        table,
        options: &options,
        input: &input,
        text: &text,
        variants: &variants,
        keys: &keys,
        shape: &shape,
    };
    match &place {
        Place::Stdout(form) => sweep.through(*form),
        Place::Kept { table, form, runs } => sweep.kept(table, *form, runs),
    }
}

/// Where the table goes.
enum Place {
    Stdout(SweepForm),
    /// With `--out`: the table, its form, and the runs that are done.
    Kept {
        table: PathBuf,
        form: SweepForm,
        runs: PathBuf,
    },
}

impl Place {
    fn of(args: &SweepArgs) -> Result<Self, Failure> {
        let Some(out) = &args.out else {
            let form = args.output.unwrap_or(SweepForm::Table);
            if form == SweepForm::Parquet {
                let text = "-o parquet needs a file";
                return Err(Failure::usage(text).hint("--out results.parquet"));
            }
            return Ok(Self::Stdout(form));
        };
        let extension = out.extension().unwrap_or_default().to_string_lossy();
        if let (Some(form), false) = (SweepForm::of_extension(&extension), out.is_dir()) {
            if args.output.is_some_and(|asked| asked != form) {
                let text = format!("-o and the name {} contradict each other", out.display());
                return Err(
                    Failure::usage(text).hint("the end of the name says the form: leave out -o")
                );
            }
            let mut runs = out.clone().into_os_string();
            runs.push(".runs");
            return Ok(Self::Kept {
                table: out.clone(),
                form,
                runs: runs.into(),
            });
        }
        if !extension.is_empty() && !out.is_dir() {
            let text = format!("{}: a table is no .{extension}", out.display());
            return Err(
                Failure::usage(text).hint(".csv, .jsonl or .parquet, or a directory without a dot")
            );
        }
        let form = args.output.unwrap_or(SweepForm::Csv);
        let what = match (&args.table, args.per) {
            (Some(table), _) => table,
            (None, crate::args::Per::Flow) => "flows",
            (None, crate::args::Per::Run) => "runs",
        };
        let mean = if args.mean { "-mean" } else { "" };
        let name = format!("{what}{mean}.{}", form.extension());
        Ok(Self::Kept {
            table: out.join(name),
            form,
            runs: out.join("runs"),
        })
    }
}

/// The options of the runs: each of them leaves one table as JSON.
fn options_of_runs(args: &SweepArgs, table: &str) -> RunArgs {
    RunArgs {
        lab: args.lab.clone(),
        set: Vec::new(),
        seed: None,
        seeds: None,
        sweep: Vec::new(),
        jobs: None,
        until: args.until.clone(),
        pcap: None,
        plot: None,
        cells: false,
        events: None,
        view: None,
        follow: Vec::new(),
        sample: None,
        results: ResultArgs {
            output: OutputArgs {
                output: Format::Json,
                wide: false,
            },
            table: Some(table.to_owned()),
            out: None,
        },
        schema: false,
        trace: false,
        work: false,
        quiet: true,
        progress: false,
        one_of_several: false,
    }
}

/// Tells of lines of the store that are no runs.
fn say_bad(bad: Option<&(usize, String)>, runs: &Path) {
    if let Some((lines, first)) = bad {
        let runs = runs.display();
        let lines = counted(*lines, "line is no run and is", "lines are no runs and are");
        exit::say(format_args!("warning: {runs}: {lines} left out; {first}"));
    }
}

/// The word of a value on the command line.
fn word(value: impl clap::ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// All that the runs of a sweep have in common.
struct Sweep<'a> {
    args: &'a SweepArgs,
    /// Name of the table that runs leave.
    table: &'a str,
    options: &'a RunArgs,
    input: &'a Input,
    /// The text of the lab.
    text: &'a str,
    variants: &'a [Variant],
    /// Identity of the lab of each run.
    keys: &'a [Arc<str>],
    shape: &'a Shape,
}

impl Sweep<'_> {
    fn jobs(&self) -> usize {
        self.args.jobs.map_or_else(processors, usize::from)
    }

    const fn looks(&self, form: SweepForm, file: bool) -> Looks {
        let wide = self.args.wide;
        Looks { form, wide, file }
    }

    fn plan(&self) -> Result<Plan<'_>, Failure> {
        let plan = Plan::new(self.options, &self.args.lab, self.input, self.variants)?;
        Ok(plan.lines(LINES))
    }

    /// Identity of a run.
    fn key(&self, number: usize) -> Key {
        Key {
            lab: self.keys[number].to_string(),
            version: VERSION.to_owned(),
            table: self.table.to_owned(),
            run: self.variants[number].object(),
        }
    }

    /// The table on standard output, as the runs end.
    fn through(&self, form: SweepForm) -> Outcome {
        let jobs = self.jobs();
        let plan = self.plan()?.ahead(jobs.saturating_mul(AHEAD));
        let bar = self.bar(self.variants.len());
        let mut plots = self.plots()?;
        let mut out = std::io::stdout();
        let looks = self.looks(form, false);
        let mut sink = Sink::new(&mut out, &looks, self.shape)?;
        let mut failed = 0;
        let ran = plan.all(jobs, &Interrupt::catch()?, &mut |number, exit, output| {
            bar.inc(1);
            match self.record(number, exit, output)? {
                Some(record) => {
                    let rows = self.rows(number, &record, &mut plots)?;
                    Ok(sink.add(number, self.variants, rows)?)
                }
                None => {
                    failed += 1;
                    Ok(())
                }
            }
        });
        bar.finish_and_clear();
        // A reader that has read enough is no failure.
        match ran.done.and_then(|()| Ok(sink.finish()?)) {
            Err(failure) if failure.exit != Exit::Ok => return Err(failure),
            _ => {}
        }
        plan.name_missing(ran.begun);
        let warn = failed > 0 || ran.worst != Exit::Ok || ran.begun < self.variants.len();
        self.say_failed(failed);
        let drawn = self.draw(plots)?;
        Ok(Exit::Ok.with_warnings(warn || !drawn))
    }

    /// The rows of a run, which are drawn, too.
    fn rows(
        &self,
        number: usize,
        record: &Record,
        plots: &mut Option<Plots>,
    ) -> Result<Vec<Vec<Value>>, Failure> {
        let variant = &self.variants[number];
        let rows = self.shape.rows(variant, record)?;
        if let Some(plots) = plots {
            plots.add(variant, &rows);
        }
        Ok(rows)
    }

    fn plots(&self) -> Result<Option<Plots>, Failure> {
        let name = self.lab_name();
        Plots::new(&self.args.plot, self.shape, self.variants, &name)
    }

    /// The name of the lab in the first run.
    fn lab_name(&self) -> String {
        let path = &self.args.lab;
        let first = self.variants.first();
        let overrides =
            first.map(|variant| super::overrides(self.options, &variant.overrides(), variant.seed));
        let read = self.input.load(path, &overrides.unwrap_or_default());
        read.map_or_else(|_| path.display().to_string(), |checked| checked.lab.name)
    }

    fn draw(&self, plots: Option<Plots>) -> Result<bool, Failure> {
        plots.map_or(Ok(true), |plots| plots.finish(self.args.quiet))
    }

    /// The runs into the store, and then the table.
    fn kept(&self, table: &Path, form: SweepForm, runs: &Path) -> Outcome {
        // A user who sees the file of runs may interrupt.
        let interrupt = Interrupt::catch()?;
        let directory = self.directory(table);
        directory.map_or(Ok(()), manifest::remove)?;
        let mut store = Store::open(runs, self.args.again, SWEEP)?;
        let keys = (0..self.variants.len()).map(|number| self.key(number));
        let found = store.find(keys)?;
        let mut places = found.places;
        let todo = (0..places.len()).filter(|number| places[*number].is_none());
        let todo: Vec<usize> = todo.collect();
        self.say_found(places.len() - todo.len(), found.stale, runs);
        say_bad(found.bad.as_ref(), runs);
        let bar = self.bar(todo.len());
        let count = todo.len();
        let plan = self.plan()?.only(todo).at_once();
        let mut failed = 0;
        let ran = plan.all(self.jobs(), &interrupt, &mut |number, exit, output| {
            bar.inc(1);
            match self.record(number, exit, output)? {
                Some(record) => places[number] = Some(store.add(&self.key(number), &record)?),
                None => failed += 1,
            }
            Ok(())
        });
        bar.finish_and_clear();
        ran.done.map_err(|failure| {
            let kept = format!("{} keeps the runs that are done", runs.display());
            failure.hint(kept)
        })?;
        self.say_failed(failed);
        if ran.begun < count || places.iter().all(Option::is_none) {
            plan.name_missing(ran.begun);
            let text = "no table is written; the same command does what is missing";
            exit::say(format_args!("warning: {text}"));
            return Ok(Exit::Warnings);
        }
        let mut warn = failed > 0 || found.bad.is_some();
        let mut plots = self.plots()?;
        let looks = self.looks(form, true);
        Sink::file(table, &looks, self.shape, |sink| {
            for (number, place) in places.iter().enumerate() {
                let Some(place) = place else { continue };
                let record = store.read(*place)?;
                warn |= record.exit != 0;
                let rows = self.rows(number, &record, &mut plots)?;
                sink.add(number, self.variants, rows)?;
            }
            Ok(())
        })?;
        if !self.args.quiet {
            exit::say(format_args!("{} is written", table.display()));
        }
        let drawn = self.draw(plots)?;
        if let (Some(directory), true) = (directory, places.iter().all(Option::is_some)) {
            self.leave_manifest(directory, &[(table, false), (runs, true)])?;
        }
        Ok(Exit::Ok.with_warnings(warn || !drawn))
    }

    /// The directory that `--out` names, and not the file of a table.
    fn directory(&self, table: &Path) -> Option<&Path> {
        let out = self.args.out.as_deref();
        out.filter(|out| table.parent() == Some(out))
    }

    /// Writes the manifest of a directory with the table and the runs.
    fn leave_manifest(&self, directory: &Path, files: &[(&Path, bool)]) -> Result<(), Failure> {
        let args = self.args;
        let first = &self.variants[0];
        let overrides = super::overrides(self.options, &first.overrides(), first.seed);
        let checked = crate::labs::told(&args.lab, self.input.load(&args.lab, &overrides))?;
        let mut manifest = Manifest::new(Verb::Sweep);
        manifest.lab(&args.lab, &checked)?;
        for values in &args.set {
            manifest.option("set", values.clone());
        }
        if let Some(points) = &args.points {
            let name = points.file_name().unwrap_or_default().to_string_lossy();
            let name = format!("points/{name}");
            manifest.file(name.clone(), points)?;
            manifest.option("points", name);
        }
        let own = || checked.lab.seed.to_string();
        manifest.seeds = args.seeds.clone().unwrap_or_else(own);
        manifest.option_if("seeds", args.seeds.clone());
        manifest.option_if("until", args.until.clone());
        match &args.table {
            Some(table) => manifest.option("table", table.clone()),
            None => manifest.option("per", word(args.per)),
        }
        manifest.option_if("mean", args.mean.then_some(""));
        manifest.option_if("output", args.output.map(word));
        for (file, any_order) in files {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            manifest.result(directory, &name, *any_order)?;
        }
        manifest.write(directory)
    }

    /// Record of a run; `None` if it has failed, or was interrupted.
    fn record(
        &self,
        number: usize,
        exit: Exit,
        output: Option<Output>,
    ) -> Result<Option<Record>, Failure> {
        let Some(output) = output.filter(|_| exit != Exit::Failed) else {
            return Ok(None);
        };
        let document: Value = serde_json::from_str(&output.out).unwrap_or_default();
        let Some(rows) = document.get(self.table).and_then(Value::as_array) else {
            return Ok(None);
        };
        if document.get("interrupted") == Some(&true.into()) {
            return Ok(None);
        }
        let variant = &self.variants[number];
        let overrides = super::overrides(self.options, &variant.overrides(), variant.seed);
        let known = aerostat_lab::digest(self.text, &overrides);
        if document.get("lab_sha256").and_then(Value::as_str) != Some(&known) {
            let text = "the lab file has changed while its runs were under way";
            return Err(Failure::failed(text));
        }
        Ok(Some(Record {
            exit: exit as u8,
            seed: document.get("seed").and_then(Value::as_u64).unwrap_or(0),
            rows: rows.clone(),
        }))
    }

    /// The progress of runs.
    fn bar(&self, runs: usize) -> ProgressBar {
        progress::bar(self.args.quiet, Some(runs), "runs")
    }

    fn say_found(&self, done: usize, stale: usize, runs: &Path) {
        let (all, runs) = (self.variants.len(), runs.display());
        if stale > 0 {
            exit::say(format_args!(
                "{runs}: {} of another lab file, other options or another version, and done anew",
                counted(stale, "run is", "runs are")
            ));
        }
        if done > 0 && !self.args.quiet {
            let all = counted(all, "run is", "runs are");
            exit::say(format_args!("{done} of {all} in {runs} already"));
        }
    }

    fn say_failed(&self, failed: usize) {
        if failed > 0 {
            let all = counted(self.variants.len(), "run has", "runs have");
            exit::say(format_args!(
                "warning: {failed} of {all} no results, and no rows in the table"
            ));
        }
    }
}
