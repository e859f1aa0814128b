//! `aerostat reproduce`: tables and figures of five papers, beside what the papers print.

mod assumed;
mod axes;
mod calibrate;
mod catalogue;
mod compare;
mod drawings;
mod kept;
mod live;
mod made;
mod model;
mod page;
mod rules;
mod score;
mod summary;

use crate::args::ReproduceArgs;
use crate::cmd::run::many::{processors, seeds};
use crate::exit::{self, Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::manifest::{self, Manifest, Verb};
use crate::output::{self, Format, Rows};
use crate::progress;
use aerostat_lab::results::rounded;
use aerostat_node::inspect::Rare;
use aerostat_node::rows;
use aerostat_wire::counted;
use catalogue::{Catalogue, Entry, Files, Given, Parameter, Parameters, Row};
use kept::Kept;
use model::Work;
pub(crate) use score::ScoreLine;
use score::{Score, median, scores};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use summary::{Made, Summary};

rows! {
    /// One row for each entry.
    struct EntryLine: "entries" for (entry: &Entry) {
        /// Its name.
        entry: String = entry.name.clone(),
        /// Number of its rows.
        rows: usize = entry.rows.len(),
        /// Kind of the entry: a table or a figure.
        what: String = entry.what.clone(),
        /// Title in the paper.
        title: String = entry.title.clone(),
        /// Lab of its rows.
        lab: String = format!("labs/papers/{}.atm.yml", entry.lab),
    }

    /// One row for each parameter.
    struct ParameterLine: "parameters" for (name: &str, given: &Parameter, old: Option<&Parameter>) {
        /// Its name.
        parameter: String = name.to_owned(),
        /// Its value.
        value: f64 = rounded(given.value, 4),
        /// Unit of the value.
        unit: String = given.unit.clone(),
        /// Value before the fit.
        before: Rare<f64> = Rare(old.map(|old| rounded(old.value, 4))),
        /// Source of the value.
        from: String = given.origin(),
        /// Its meaning.
        what: String = given.what.clone(),
    }
}

/// Name and version of the document.
const SCHEMA: &str = "aerostat.reproduce.v1";

/// Runs the entries, or fits their parameters.
pub(crate) fn run(args: &ReproduceArgs) -> Outcome {
    let Catalogue {
        entries: all,
        parameters,
        printed,
        files,
    } = Catalogue::new(Given {
        folder: args.catalogue.as_deref(),
        parameters: args.parameters.as_deref(),
        printed: args.printed.as_deref(),
    })?;
    if args.entries.iter().any(|name| name == "list") {
        for_a_list(args)?;
        return list(args, &all);
    }
    let mut chosen = chosen(&args.entries, &all)?;
    if args.assumed {
        // A row for which the paper has nothing is no evidence, whatever its result.
        let told = |entry: &str, row: &Row| printed.of(entry, &row.row).is_some();
        // How runs differ needs all of them, and no summary counts it.
        chosen.retain(|entry| entry.spread.is_none());
        for Entry { name, rows, .. } in &mut chosen {
            rows.retain(|row| told(name, row));
        }
    }
    let chosen: Vec<&Entry> = chosen.iter().collect();
    let seeds = args.seeds.as_deref().map(seeds).transpose()?;
    let jobs = args.jobs.map_or_else(processors, usize::from);
    if args.live {
        live::check(&all, &chosen)?;
    }
    let kept = args.keep.as_deref().map(Kept::open).transpose()?;
    let interrupt = Interrupt::catch()?;
    let bar = progress::bar(args.quiet, None, "runs");
    let lines = progress::Lines::new("runs");
    let begin = Instant::now();
    let runs = AtomicUsize::new(0);
    let progress = |done: usize, of: usize| {
        runs.store(of, Ordering::Relaxed);
        bar.set_length(of as u64);
        bar.set_position(done as u64);
        if bar.is_hidden() {
            lines.tell(done, of);
        }
    };
    let work = Work {
        files: &files,
        parameters: &parameters,
        kept: kept.as_ref(),
        seeds: seeds.as_deref(),
        jobs,
        interrupt: &interrupt,
        progress: &progress,
    };
    if let Some(file) = &args.calibrate {
        let fitted = calibrate::fit(&work, &chosen, &printed, args.quiet)?;
        bar.finish_and_clear();
        calibrate::write(file, &fitted)?;
        return list_parameters(args, &parameters, &fitted);
    }
    let rows = with_references(&all, &chosen);
    if args.assumed {
        let tried = assumed::tried(&work, &rows, &printed)?;
        bar.finish_and_clear();
        return list_tried(args, tried);
    }
    let (values, tables) = work.models(&rows)?;
    bar.finish_and_clear();
    let measured = args
        .live
        .then(|| measured(args, &work, &rows))
        .transpose()?;
    let scored = scores(&rows, &values, &printed, measured.as_ref())?;
    let made = Made {
        runs: runs.into_inner(),
        jobs,
        seconds: begin.elapsed().as_secs_f64(),
        seeds: args.seeds.clone(),
        files: given(args),
    };
    warn_of_unknown(&printed, &all);
    let mut results = Results::new(&chosen, &scored, &parameters, made, &files);
    results.live = measured.as_ref().map(|measured| measured.table(&scored));
    if let Some(directory) = &args.report {
        manifest::remove(directory)?;
        let files = page::write(&results, &tables, directory)?;
        leave_manifest(args, &results, directory, files)?;
    }
    match &args.compare {
        Some(file) => list_differences(args, file, &results),
        None => report(args, &results),
    }
}

/// Writes the manifest of a report.
fn leave_manifest(
    args: &ReproduceArgs,
    results: &Results<'_>,
    directory: &Path,
    files: Vec<String>,
) -> Result<(), Failure> {
    let mut manifest = Manifest::new(Verb::Reproduce);
    manifest.real_time = args.live;
    manifest.words.clone_from(&args.entries);
    manifest.seeds = results.made.seeds().to_owned();
    manifest.option_if("seeds", args.seeds.clone());
    if let Some(folder) = &args.catalogue {
        for file in manifest::folder(folder)? {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            manifest.file(format!("catalogue/{name}"), &file)?;
        }
        manifest.option("catalogue", "catalogue");
    }
    for (option, file) in [("parameters", &args.parameters), ("printed", &args.printed)] {
        if let Some(file) = file {
            manifest.file(format!("{option}.yml"), file)?;
            manifest.option(option, format!("{option}.yml"));
        }
    }
    for file in files {
        manifest.result(directory, &file, false)?;
    }
    manifest.write(directory)
}

/// Results with other values in the place of assumed and chosen ones.
fn list_tried(args: &ReproduceArgs, tried: Vec<assumed::Tried>) -> Outcome {
    if !args.quiet {
        exit::say(format_args!("{}", assumed::words(&tried)));
    }
    output::write(args.output.form(), SCHEMA, &[Rows::of(tried)])?;
    Ok(Exit::Ok)
}

/// The rows whose model is not that of a file.
fn list_differences(args: &ReproduceArgs, file: &Path, results: &Results<'_>) -> Outcome {
    let differences = compare::differences(file, &results.scores)?;
    let differ = !differences.is_empty();
    output::write(args.output.form(), SCHEMA, &[Rows::of(differences)])?;
    Ok(Exit::Ok.with_warnings(differ))
}

/// Rows of each paper that run in less than a minute together: the word `quick`.
const QUICK: [&str; 14] = [
    "thesis/5.4: MPOA urku to sello",
    "thesis/6",
    "detken/3: 100 % load",
    "detken/8: 9180 octets",
    "cambridge/1",
    "sara/1: 1 segments",
    "sara/1: 3 segments",
    "sara/1: 6 segments",
    "sara/2: 3 segments",
    "sara/3: 3 segments",
    "sara/3: 6 segments",
    "sara/4: 2 Mb/s",
    "atp/2: 2 MB",
    "atp/2-atp: 2 MB",
];

/// The options that name other files than those of the catalogue.
fn given(args: &ReproduceArgs) -> String {
    let all = [
        ("--catalogue", &args.catalogue),
        ("--printed", &args.printed),
        ("--parameters", &args.parameters),
    ];
    let given = all
        .iter()
        .filter_map(|(option, file)| Some((option, file.as_ref()?)));
    given.fold(String::new(), |text, (option, file)| {
        format!(
            "{text} {option} {}",
            aerostat_lab::printable::line(&file.display().to_string())
        )
    })
}

/// Printed values of rows that do not exist are of no use.
fn warn_of_unknown(printed: &catalogue::AllPrinted, all: &[Entry]) {
    for (entry, row) in printed.names() {
        let known = all.iter().find(|known| known.name == entry);
        if !known.is_some_and(|known| known.rows.iter().any(|known| known.row == row)) {
            let name = format!("{entry}: {row}");
            let name = aerostat_lab::printable::line(&name);
            exit::say(format_args!(
                "warning: a printed value is of no row: {name}"
            ));
        }
    }
}

/// Measurements of rows between Linux kernels.
fn measured(
    args: &ReproduceArgs,
    work: &Work<'_>,
    rows: &[(&Entry, &Row)],
) -> Result<live::Measured, Failure> {
    let bar = progress::bar(args.quiet, None, "ms between Linux kernels");
    let times = live::Times {
        runs: args.live_runs,
        seconds: args.live_seconds,
        bar: &bar,
    };
    let measured = live::measure(work, rows, &times);
    bar.finish_and_clear();
    measured
}

/// The entries and rows that the words name, in the order of the catalogue: `all`, `quick`, `sara`, `sara/1`, or one
/// row as `sara/1: 6 segments`.
fn chosen(given: &[String], all: &[Entry]) -> Result<Vec<Entry>, Failure> {
    let words = |entry: &Entry, row: &Row, word: &str| {
        let paper = entry.name.split('/').next();
        let named = word.split_once(": ") == Some((&entry.name, &row.row));
        named || word == entry.name || Some(word) == paper
    };
    let fits = |entry: &Entry, row: &Row, word: &str| {
        let quick = || QUICK.iter().any(|word| words(entry, row, word));
        words(entry, row, word) || word == "all" || word == "quick" && quick()
    };
    let of = |entry: &'_ Entry, words: &[String]| {
        let mut entry = entry.clone();
        let rows = std::mem::take(&mut entry.rows).into_iter();
        let named = |row: &Row| words.iter().any(|word| fits(&entry, row, word));
        entry.rows = rows.filter(named).collect();
        (!entry.rows.is_empty()).then_some(entry)
    };
    for word in given {
        let word = std::slice::from_ref(word);
        if !all.iter().any(|entry| of(entry, word).is_some()) {
            let text = format!(
                "there is no entry '{}'",
                aerostat_lab::printable::line(&word[0])
            );
            return Err(Failure::usage(text).hint("'aerostat reproduce list' shows all entries"));
        }
    }
    Ok(all.iter().filter_map(|entry| of(entry, given)).collect())
}

/// Refuses what needs runs beside a list, which is also what a command without entries asks for.
fn for_a_list(args: &ReproduceArgs) -> Result<(), Failure> {
    let of_runs = [
        ("--seeds", args.seeds.is_some()),
        ("--calibrate", args.calibrate.is_some()),
        ("--compare", args.compare.is_some()),
        ("--assumed", args.assumed),
        ("--keep", args.keep.is_some()),
        ("--report", args.report.is_some()),
        ("--live", args.live),
    ];
    let given = of_runs.into_iter().find(|(_, given)| *given);
    let text = match given {
        Some((option, _)) => format!("{option} needs entries to run, and 'list' runs none"),
        None if args.entries.len() > 1 => "'list' stands alone".to_owned(),
        None => return Ok(()),
    };
    Err(Failure::usage(text)
        .hint("name entries: 'all', 'quick', or some of 'aerostat reproduce list'"))
}

fn list(args: &ReproduceArgs, all: &[Entry]) -> Outcome {
    let lines = all.iter().map(EntryLine::of);
    output::write(args.output.form(), SCHEMA, &[Rows::of(lines)])?;
    Ok(Exit::Ok)
}

/// All rows of the chosen entries, and then the rows to which they refer.
fn with_references<'a>(all: &'a [Entry], chosen: &[&'a Entry]) -> Vec<(&'a Entry, &'a Row)> {
    let of = |entry: &'a Entry| entry.rows.iter().map(move |row| (entry, row));
    let mut rows: Vec<_> = chosen.iter().flat_map(|entry| of(entry)).collect();
    let mut at = 0;
    while let Some((entry, row)) = rows.get(at).copied() {
        for reference in row.references() {
            let wanted = row.referred(&entry.name, reference);
            let named = |(entry, row): &(&Entry, &Row)| (&*entry.name, &*row.row) == wanted;
            if !rows.iter().any(named) {
                rows.extend(all.iter().flat_map(of).find(named));
            }
        }
        at += 1;
    }
    rows
}

/// The TCP of the lab and that of the paper, of an entry whose rows depend on it.
fn stacks(entry: &Entry, files: &Files) -> Result<Option<String>, Failure> {
    let Some(paper) = &entry.tcp else {
        return Ok(None);
    };
    let checked = aerostat_lab::parse(&entry.lab, files.lab(&entry.lab)?, &[])
        .map_err(|findings| Failure::failed(format!("{}: {findings}", entry.lab)))?;
    let flows = checked.lab.traffic.iter();
    let own = flows.filter_map(|flow| checked.lab.tcp_of(flow)).next();
    let own = own.unwrap_or_default();
    Ok(Some(format!("{own} (paper: {paper})")))
}

/// Results of the chosen entries.
struct Results<'a> {
    entries: &'a [&'a Entry],
    /// Scores of their rows, and of no row that is only compared with.
    scores: Vec<&'a Score<'a>>,
    /// The parameters that they use.
    parameters: Parameters,
    summary: Summary,
    made: Made,
    files: &'a Files,
    /// Settings of the kernels, if rows ran in real time, too.
    live: Option<Rows>,
}

impl<'a> Results<'a> {
    fn new(
        entries: &'a [&'a Entry],
        scored: &'a [Score<'a>],
        parameters: &Parameters,
        made: Made,
        files: &'a Files,
    ) -> Self {
        let named = |score: &&Score<'_>| {
            let rows = entries.iter().filter(|one| one.name == score.entry.name);
            rows.flat_map(|one| &one.rows)
                .any(|row| row.row == score.row.row)
        };
        let scores: Vec<&Score<'_>> = scored.iter().filter(named).collect();
        let names = entries.iter().flat_map(|entry| entry.parameters());
        let names: BTreeSet<String> = names.collect();
        let used = parameters.iter().filter(|(name, _)| names.contains(*name));
        let used = used.map(|(name, parameter)| (name.clone(), parameter.clone()));
        let parameters: Parameters = used.collect();
        let summary = Summary::new(&scores, &parameters);
        Self {
            entries,
            scores,
            parameters,
            summary,
            made,
            files,
            live: None,
        }
    }
}

/// Writes the rows of the chosen entries, the parameters that they use, and the summary.
fn report(args: &ReproduceArgs, results: &Results<'_>) -> Outcome {
    let live = results.live.as_ref();
    let mut lines = Vec::new();
    for score in &results.scores {
        let (live, tcp) = (score.live.as_ref(), stacks(score.entry, results.files)?);
        lines.push(ScoreLine::of(score, live, tcp));
    }
    let mut rows = Rows::of(lines);
    if live.is_none() {
        // Without the columns of real time there is room: the columns on the right are left out.
        rows.importance.clear();
    }
    let mut tables = vec![
        rows,
        parameter_rows(&results.parameters, None),
        results.summary.rows(),
        summary::made_rows(&results.made),
    ];
    tables.extend(live.cloned());
    // A table of CSV has columns of its own: that of the rows.
    let shown = match args.output.output {
        Format::Csv => 1,
        _ => tables.len(),
    };
    output::write(args.output.form(), SCHEMA, &tables[..shown])?;
    if !args.quiet {
        let seconds = results.made.seconds;
        exit::say(format_args!("{}; {seconds:.0} s", results.summary.words()));
    }
    let miss = |score: &&Score<'_>| score.result == "miss";
    let miss = results.scores.iter().any(miss);
    warn_of_misses(&results.scores);
    warn_of_lag(&results.scores);
    Ok(Exit::Ok.with_warnings(miss))
}

/// Each miss, with the rule that it misses.
fn warn_of_misses(scored: &[&Score<'_>]) {
    for score in scored.iter().filter(|score| score.result == "miss") {
        let (entry, row) = (&score.entry.name, &score.row.row);
        let found = median(&score.values);
        exit::say(format_args!(
            "warning: {entry}, {row}: {found:.4} {} is not {}",
            score.unit(),
            score.missed
        ));
    }
}

fn parameter_rows(parameters: &Parameters, before: Option<&Parameters>) -> Rows {
    Rows::of(parameters.iter().map(|(name, parameter)| {
        let old = before.and_then(|before| before.get(name));
        ParameterLine::of(name, parameter, old)
    }))
}

/// The parameters after a fit.
fn list_parameters(args: &ReproduceArgs, before: &Parameters, fitted: &Parameters) -> Outcome {
    let rows = parameter_rows(fitted, Some(before));
    output::write(args.output.form(), SCHEMA, &[rows])?;
    Ok(Exit::Ok)
}

/// Rows whose runs in real time tell more of the machine than of TCP.
fn warn_of_lag(scored: &[&Score<'_>]) {
    let lagged = scored.iter().filter(|score| {
        let live = score.live.as_ref();
        live.is_some_and(|live| live.found.lagged())
    });
    let count = lagged.count();
    if count > 0 {
        exit::say(format_args!(
            "warning: the machine was too busy for {} in real time ('lagged'): what they say is no result",
            counted(count, "row", "rows")
        ));
    }
}

#[cfg(test)]
mod tests;
