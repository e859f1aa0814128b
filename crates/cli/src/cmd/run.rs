//! `aerostat run`: a lab in virtual time.

pub(crate) mod files;
pub(crate) mod many;
mod plots;
mod recorded;
mod stream;
pub(crate) mod sweep;
pub(crate) mod write;

use crate::args::RunArgs;
use crate::exit::{self, Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::labs;
use crate::manifest::{Manifest, Verb};
use crate::progress;
use aerostat_lab::event::{Event, Names, Telling};
use aerostat_lab::ladder::{self, Message};
use aerostat_lab::report::{Extent, RunReport, Work};
use aerostat_lab::results::{self, Document, Time};
use aerostat_lab::{Checked, Lab, Override, printable};
use aerostat_live::charset;
use aerostat_live::detach::end_with_parent;
use aerostat_node::inspect;
use aerostat_proto::{Instant as Moment, Trace};
use aerostat_sim::run::{Recording, Watcher};
use aerostat_view::{people, warnings};
use aerostat_wire::counted;
use indicatif::ProgressBar;
use recorded::Recorded;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// Reads the lab and runs it, or prints the schema of results.
pub(crate) fn run(args: &RunArgs) -> Outcome {
    if args.schema {
        write::print_schema()?;
        return Ok(Exit::Ok);
    }
    let path = &args.lab;
    write::check(&args.results)?;
    stream::check(args, many::asked(args))?;
    // The directory of one of several runs is named after its values, which may have dots.
    if let (Some(path), false) = (&args.plot, args.one_of_several) {
        plots::check(path, many::asked(args))?;
    }
    if many::asked(args) {
        return many::run(args, path);
    }
    if args.jobs.is_some() {
        let text = "--jobs is for several runs, and this is a single run";
        return Err(Failure::usage(text).hint("--seeds 1-8, or --sweep PATH=VALUE,VALUE"));
    }
    if args.one_of_several {
        end_with_parent();
    }
    let checked = labs::read_for_run(path, &overrides(args, &[], args.seed))?;
    refuse_outside(&checked.lab)?;
    let end = simulate(&checked, args)?;
    Ok(labs::exit(end, &checked.warnings))
}

pub(super) fn refuse_outside(lab: &Lab) -> Result<(), Failure> {
    let refused = |text| Failure::usage(text).hint("'aerostat up' runs this lab in real time");
    lab.outside_of_time()
        .map_or(Ok(()), |text| Err(refused(text)))
}

/// The options as changes of the file, so that they are checked and reported like all others; `more` and `seed` are
/// those of one of several runs.
fn overrides(args: &RunArgs, more: &[Override], seed: Option<u64>) -> Vec<Override> {
    let mut overrides = args.set.clone();
    overrides.extend_from_slice(more);
    let seed = seed.map(|seed| Override::of("--seed", "seed", &seed.to_string()));
    let until = args.until.as_ref();
    overrides.extend(seed);
    overrides.extend(until.map(|until| Override::of("--until", "until", until)));
    overrides
}

/// Runs the lab: the story goes to standard error unless `quiet`, the results to standard output.
fn simulate(checked: &Checked, args: &RunArgs) -> Outcome {
    let lab = &checked.lab;
    if args.cells && args.pcap.is_none() && lab.capture.is_empty() {
        let text = "--cells says how links are recorded, and no link is recorded";
        let hint = "--pcap DIR records all of them, 'capture:' in the lab file those that it names";
        return Err(Failure::usage(text).hint(hint));
    }
    super::follow::check(lab, &args.follow)?;
    let mut teller = Teller::new(args, lab)?;
    let directory = args.pcap.clone().unwrap_or_default();
    let links = directory.join(format!("{}.pcapng", links_name(lab)));
    if !lab.capture.is_empty() && !args.quiet {
        let (count, path) = (lab.capture.len(), links.display());
        let what = if count == 1 { "link" } else { "links" };
        exit::say(format_args!("recording {count} {what} into {path}"));
    }
    let events = stream::options(args, checked);
    let recording = Recording {
        nodes: args.pcap.as_deref(),
        links: Some(&links),
        cells: args.cells,
        events: events.as_ref(),
        extent: extent(args),
    };
    let recorded = aerostat_sim::run::run_and_record(lab, recording, &mut teller);
    let (mut report, captured) = recorded.map_err(|error| unwritten(&error, args))?;
    teller.say_until(f64::INFINITY);
    teller.bar.finish_and_clear();
    if let Some(text) = teller.recorded.whole(args.quiet) {
        exit::say(text);
    }
    teller.unwritten.take().map_or(Ok(()), Err)?;
    let interrupted = teller.interrupted();
    let results = document(checked, args, &report, interrupted);
    let short = people::short(&report, lab, &results);
    if !is_ladder(args) {
        write::write(&args.results, results, &short)?;
    }
    plots::draw(args, lab, &report)?;
    let mut quiet = Quiet(&teller.interrupt);
    stream::write(args, lab, report.events.take(), &short, &mut quiet)?;
    if interrupted {
        let (now, end) = (report.end.as_secs_f64(), teller.end);
        exit::say(format_args!(
            "warning: interrupted at {now:.3} s of {end:.3} s; these are the results so far"
        ));
    }
    say_work(args, teller.work);
    let warnings = warnings::warnings(&report, lab, Time::Virtual);
    for warning in &warnings {
        exit::say(format_args!("warning: {warning}"));
    }
    captured.map_err(|error| unwritten(&error, args))?;
    leave_manifest(args, checked, interrupted)?;
    Ok(if warnings.is_empty() && !interrupted {
        Exit::Ok
    } else {
        Exit::Warnings
    })
}

/// With `--work`: says what the run consisted of.
fn say_work(args: &RunArgs, work: Option<Work>) {
    let Some(work) = work.filter(|_| args.work) else {
        return;
    };
    let all = work.alone.total();
    let events = counted(work.events, "event", "events");
    let crossings = counted(work.crossings, "cell", "cells");
    exit::say(format_args!(
        "work: {events}; lines carried {crossings}, {all} of them as events of their own"
    ));
    for (why, cells) in work.alone.iter() {
        exit::say(format_args!("  {cells:>12} {why}"));
    }
}

/// With `--out`: writes the manifest of a whole run that is not one of several.
fn leave_manifest(args: &RunArgs, checked: &Checked, interrupted: bool) -> Result<(), Failure> {
    let Some(directory) = &args.results.out else {
        return Ok(());
    };
    if args.one_of_several || interrupted {
        return Ok(());
    }
    let mut manifest = manifest_of(args, checked)?;
    manifest.seeds = checked.lab.seed.to_string();
    for file in files::there(directory) {
        manifest.result(directory, &file, false)?;
    }
    manifest.write(directory)
}

/// The manifest of results, without their files.
fn manifest_of(args: &RunArgs, checked: &Checked) -> Result<Manifest, Failure> {
    let mut manifest = Manifest::new(Verb::Run);
    manifest.lab(&args.lab, checked)?;
    for change in &args.set {
        manifest.option("set", change.change());
    }
    manifest.option_if("seed", args.seed.map(|seed| seed.to_string()));
    manifest.option_if("until", args.until.clone());
    manifest.option("output", args.results.output.output.name());
    Ok(manifest)
}

/// True if standard output is for the ladder: no form of results is asked for.
const fn is_ladder(args: &RunArgs) -> bool {
    args.trace && write::for_people(&args.results) && !args.results.output.wide
}

/// How much the requested form needs of the state at the end.
const fn extent(args: &RunArgs) -> Extent {
    match write::for_people(&args.results) {
        true => Extent::People,
        false => Extent::Whole,
    }
}

/// The results in the requested form.
fn document(checked: &Checked, args: &RunArgs, report: &RunReport, interrupted: bool) -> Document {
    let mut document = if write::for_people(&args.results) {
        Document::for_people(report)
    } else {
        let changes = overrides(args, &[], args.seed);
        Document::new(checked, &changes, Time::Virtual, report)
    };
    document.interrupted(interrupted);
    document
}

/// File of the recording of the links of `capture:`.
pub(crate) const IN_CURRENT: &str = "links under 'capture:' are recorded in the current directory: start the command \
                                     where you may write, or leave the key out: --set 'capture=[]'";

/// The failure of a run whose captures cannot be written.
fn unwritten(error: &io::Error, args: &RunArgs) -> Failure {
    let failure = Failure::failed(format!("captures cannot be written: {error}"));
    match error.kind() {
        io::ErrorKind::StorageFull => failure.hint("what is there is incomplete"),
        _ if args.pcap.is_none() => failure.hint(IN_CURRENT),
        _ => failure.hint("--pcap takes a directory; it is made if it does not exist"),
    }
}

/// The name of the capture of links, without its extension: that of the lab, unless a node has the same name and its
/// capture may be in the same directory.
fn links_name(lab: &Lab) -> String {
    let mut name = lab.name.clone();
    while lab.nodes().any(|(_, node)| node.name == name) {
        name.push_str("-links");
    }
    name
}

/// Tells nothing of a further run, which can be interrupted, too.
struct Quiet<'a>(&'a Interrupt);

impl Watcher for Quiet<'_> {
    fn event(&mut self, _event: &Event) {}
    fn interrupted(&self) -> bool {
        self.0.has_come()
    }
}

/// Prints the story as it happens, with a progress bar below it on a terminal.
struct Teller {
    telling: Telling,
    interrupt: Interrupt,
    names: Names,
    bar: ProgressBar,
    /// The planned end of the run, seconds of virtual time.
    end: f64,
    /// Start time of the run, for people.
    began: Instant,
    /// Without a bar: when the next progress line is due, if such lines are requested.
    lines: Option<Instant>,
    /// Room for node names in a ladder, if a ladder is requested.
    ladder: Option<usize>,
    /// With a ladder: lines with their times. A message is known when its last cell has left, so lines are not in
    /// order.
    waiting: Vec<(f64, String)>,
    /// True if the ladder goes to standard output.
    to_output: bool,
    /// Why the ladder cannot be written there any more; this ends the run.
    unwritten: Option<io::Error>,
    recorded: Recorded,
    /// Events and cells of the run, at its end.
    work: Option<Work>,
}

impl Teller {
    fn new(args: &RunArgs, lab: &Lab) -> io::Result<Self> {
        let terminal = io::stderr().is_terminal();
        Ok(Self {
            telling: Telling::unless(args.quiet),
            interrupt: Interrupt::catch()?,
            names: Names::new(lab),
            bar: progress::with_message(args.quiet),
            end: 0.0,
            began: Instant::now(),
            lines: (args.progress && !terminal).then(Instant::now),
            ladder: args.trace.then(|| ladder::width(lab)),
            waiting: Vec::new(),
            to_output: is_ladder(args),
            unwritten: None,
            work: None,
            recorded: Recorded::default(),
        })
    }

    /// Prints the waiting lines with times up to `now`, in order.
    fn say_until(&mut self, now: f64) {
        self.waiting.sort_by(|a, b| a.0.total_cmp(&b.0));
        let due = self.waiting.partition_point(|(time, _)| *time <= now);
        if due > 0 {
            self.bar.suspend(|| {
                for (_, line) in self.waiting.drain(..due) {
                    if self.to_output {
                        let line = printable::lines(&line);
                        let written = writeln!(charset::stdout(), "{line}");
                        self.unwritten = self.unwritten.take().or(written.err());
                    } else {
                        exit::say(line);
                    }
                }
            });
        }
    }
}

impl Watcher for Teller {
    fn worked(&mut self, work: &Work) {
        self.work = Some(*work);
    }
    fn hears(&self, trace: &Trace) -> bool {
        self.telling.tells(trace.milestone)
    }
    fn event(&mut self, event: &Event) {
        if !self.telling.tells(event.milestone) {
            return;
        }
        if self.ladder.is_some() {
            let line = self.names.in_text(&ladder::between(event));
            self.waiting.push((event.time, line));
        } else {
            let line = self.names.in_text(&event.story());
            self.bar.suspend(|| exit::say(line));
        }
    }
    fn interrupted(&self) -> bool {
        self.interrupt.has_come() || self.unwritten.is_some()
    }
    fn wants_messages(&self) -> bool {
        self.ladder.is_some()
    }
    fn message(&mut self, message: &Message) {
        if let Some(width) = self.ladder {
            self.waiting.push((message.time, message.rung(width)));
        }
    }
    fn recorded(&mut self, octets: u64) {
        self.recorded.reached(octets);
    }
    fn progress(&mut self, now: Moment, end: Moment) {
        self.end = end.as_secs_f64();
        self.say_until(now.as_secs_f64());
        if let Some(text) = self.recorded.grown(now.as_secs_f64(), self.end) {
            self.bar.suspend(|| exit::say(text));
        }
        if self.bar.is_hidden() && self.lines.is_none() {
            return;
        }
        self.bar.set_length(end.as_nanos() / 1_000_000);
        self.bar.set_position(now.as_nanos() / 1_000_000);
        let (now, took) = (now.as_secs_f64(), self.began.elapsed());
        let how_far = how_far(now, self.end, took) + &self.recorded.so_far(now, self.end);
        if let Some(due) = &mut self.lines
            && *due <= Instant::now()
        {
            *due = Instant::now() + Duration::from_secs(1);
            exit::say(format_args!("progress: {how_far}"));
        }
        self.bar.set_message(how_far);
    }
}

/// The progress of the run, and the time left at the same speed: `12.0 of 30.0 s of virtual time, 18 s left`.
fn how_far(now: f64, end: f64, took: Duration) -> String {
    let text = format!("{now:.1} of {end:.1} s of virtual time");
    let left = took.as_secs_f64() * (end - now) / now;
    // The time taken by the first moments tells nothing about the rest.
    if took < Duration::from_millis(500) || !left.is_finite() {
        return text;
    }
    let left = left.ceil() as u64;
    match (left / 3600, left / 60 % 60, left % 60) {
        (0, 0, seconds) => format!("{text}, {seconds} s left"),
        (0, minutes, seconds) => format!("{text}, {minutes}:{seconds:02} min left"),
        (hours, minutes, _) => format!("{text}, {hours}:{minutes:02} h left"),
    }
}

/// Names of the tables of results, for `--table`.
pub(crate) fn table_names() -> Vec<String> {
    results::tables()
        .map(inspect::TableInfo::flat_name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_what_was_did_for_each_second() {
        let far = |now, took| how_far(now, 30.0, Duration::from_millis(took));
        assert_eq!(far(10.0, 6000), "10.0 of 30.0 s of virtual time, 12 s left");
        assert_eq!(
            far(1.0, 6000),
            "1.0 of 30.0 s of virtual time, 2:54 min left"
        );
        assert_eq!(
            far(0.01, 6000),
            "0.0 of 30.0 s of virtual time, 4:59 h left"
        );
        // It is too early for an estimate, or nothing has been done.
        assert_eq!(far(1.0, 400), "1.0 of 30.0 s of virtual time");
        assert_eq!(far(0.0, 6000), "0.0 of 30.0 s of virtual time");
    }
}
