//! Tables of the documents, from the results of a whole run that are kept in `papers/results.csv`.
//!
//! `aerostat reproduce all -q -o csv` makes that file. From it these tests make the tables of `docs/papers.md`,
//! `docs/reproduce.md` and `docs/artifact.md`, between `<!-- results: WHAT -->` and `<!-- end of results -->`:
//!
//! ```text
//! summary          all tiers, and all papers
//! entries          a line for each entry
//! misses           all rows that miss their rule
//! baselines        the model beside the printed number of the row above, and the rate of the wire
//! corrected        rows that are compared with another number than the printed one
//! named            rows beside the baseline that they name: rows of another table
//! effects          rows with an order rule, and how far apart they are here and in the paper
//! precision        rows in units of the ± that the paper prints
//! weak             rows that are fitted or circular, with the reason
//! assumed          assumed and chosen values, halved and doubled, from `papers/assumed.csv`
//! quick            the rows of the word `quick`
//! seeds            rows whose result is another one with the seeds of `papers/second-seeds.csv`
//! rows ENTRY ...   the rows of entries; similar rows for which the paper has nothing are one line
//! ```
//!
//! The file must follow from the catalogue: same rows, same printed numbers, and the results that the rules give for
//! its models. `tests/it/reproduce.rs` compares it with runs.

mod evidence;

use super::catalogue::{Catalogue, Entry, Files, Parameters, Row};
use super::drawings::{self, trace::Tables};
use super::model::Values;
use super::page::number;
use super::summary::{Group, Made, TIERS};
use super::{Results, Score, median, scores};
use crate::output::{self, Form, Format, Rows};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/labs/papers/results.csv");
/// The output of `aerostat reproduce all --assumed -q -o csv`.
const ASSUMED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/labs/papers/assumed.csv");
/// The output of `aerostat reproduce all --seeds 11-20 -q -o csv`: no seed in common with the other file.
const SECOND: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/labs/papers/second-seeds.csv");
const PAGES: [&str; 3] = ["papers.md", "reproduce.md", "artifact.md"];
const BEGIN: &str = "<!-- results: ";
const END: &str = "<!-- end of results -->";

/// A row of the file.
#[derive(Debug, Deserialize)]
struct Kept {
    entry: String,
    row: String,
    model: Option<f64>,
    result: String,
    rule: String,
    low: Option<f64>,
    high: Option<f64>,
    seeds: usize,
    printed: Option<f64>,
    corrected: Option<f64>,
    kind: String,
    tier: String,
}

fn kept(file: &str) -> BTreeMap<(String, String), Kept> {
    let text = std::fs::read_to_string(file).expect("a file of results");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let rows = reader.deserialize::<Kept>();
    let rows = rows.map(|row| row.expect("a row of results"));
    rows.map(|row| ((row.entry.clone(), row.row.clone()), row))
        .collect()
}

/// The catalogue, and what was measured.
struct Whole {
    catalogue: Catalogue,
    kept: BTreeMap<(String, String), Kept>,
}

impl Whole {
    fn entries(&self) -> Vec<&Entry> {
        self.catalogue.entries.iter().collect()
    }

    fn results<'a>(&'a self, of: &'a [&'a Entry], scores: &'a [Score<'a>]) -> Results<'a> {
        let (parameters, files) = (&self.catalogue.parameters, &self.catalogue.files);
        Results::new(of, scores, parameters, Made::default(), files)
    }

    fn new() -> Self {
        Self {
            catalogue: Catalogue::own(),
            kept: kept(KEPT),
        }
    }

    fn of(&self, entry: &Entry, row: &Row) -> &Kept {
        let key = (entry.name.clone(), row.row.clone());
        let found = self.kept.get(&key);
        found.unwrap_or_else(|| {
            panic!("papers/results.csv has no {key:?}: aerostat reproduce all -q -o csv")
        })
    }

    /// The scores that the rules give for the models of the file.
    fn scores(&self) -> Vec<Score<'_>> {
        let of = |entry: &'_ Entry, row: &Row| -> Values {
            let kept = self.of(entry, row);
            // Rules look at the median and the range.
            let (low, high) = (kept.low.into_iter(), kept.high.into_iter());
            let middle = kept.model.into_iter();
            match kept.seeds {
                0 | 1 => middle.collect(),
                seeds => low
                    .chain(middle.flat_map(|value| std::iter::repeat_n(value, seeds - 2)))
                    .chain(high)
                    .collect(),
            }
        };
        let rows = self.catalogue.entries.iter();
        let rows = rows.flat_map(|entry| entry.rows.iter().map(move |row| (entry, row)));
        let rows: Vec<(&Entry, &Row)> = rows.collect();
        let values: Vec<Values> = rows.iter().map(|(entry, row)| of(entry, row)).collect();
        scores(&rows, &values, &self.catalogue.printed, None).unwrap()
    }
}

/// A table of Markdown: columns that begin with `#` have numbers.
fn table(heads: &[&str], lines: &[Vec<String>]) -> String {
    let names: Vec<&str> = heads
        .iter()
        .map(|head| head.trim_start_matches('#'))
        .collect();
    let align = heads
        .iter()
        .map(|head| if head.starts_with('#') { "---:" } else { "---" });
    let align: Vec<&str> = align.collect();
    let mut text = format!("| {} |\n|{}|\n", names.join(" | "), align.join("|"));
    for line in lines {
        let cells: Vec<String> = line.iter().map(|cell| cell.replace('|', "\\|")).collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}

fn share(group: &Group, count: usize) -> String {
    let share = group.share(count);
    share.map_or_else(String::new, |share| format!("{count} ({share:.0} %)"))
}

/// Heads of the columns of [`numbers`].
const NUMBERS: [&str; 10] = [
    "#rows",
    "#scored",
    "#ok",
    "#miss",
    "#fitted",
    "#circular",
    "#predictions",
    "#within 5 %",
    "#within 20 %",
    "#within a factor of 2",
];

fn numbers(group: &Group) -> Vec<String> {
    let [fitted, circular, ..] = group.kinds;
    let counts = [group.rows, group.scored(), group.ok, group.miss];
    let counts = counts
        .into_iter()
        .chain([fitted, circular, group.predictions]);
    let counts = counts.map(|count| count.to_string());
    let near = group.model.all().map(|count| share(group, count));
    counts.chain(near).collect()
}

/// Groups with what they are.
fn groups(all: &[Group], head: &str) -> String {
    let lines = all.iter().map(|group| {
        let name = match group.what {
            "" => group.name.clone(),
            what => format!("{}: {what}", group.name),
        };
        [vec![name], numbers(group)].concat()
    });
    table(
        &[&[head], &NUMBERS[..]].concat(),
        &lines.collect::<Vec<_>>(),
    )
}

fn summary(results: &Results<'_>) -> String {
    let papers = results.summary.papers.iter().map(|group| {
        let fitted = group.parameters.unwrap_or_default().to_string();
        [vec![group.name.clone(), fitted], numbers(group)].concat()
    });
    let heads = [&["paper", "#fitted parameters"], &NUMBERS[..]].concat();
    let tiers = groups(&results.summary.tiers, "tier");
    let papers = table(&heads, &papers.collect::<Vec<_>>());
    let kinds = results.summary.kinds.iter().map(|group| {
        let count = group.rows.to_string();
        vec![group.name.clone(), group.what.to_owned(), count]
    });
    let kinds = table(&["kind", "what", "#rows"], &kinds.collect::<Vec<_>>());
    format!("{tiers}\n{papers}\n{kinds}")
}

/// The model beside what is known without one.
fn baselines(results: &Results<'_>) -> String {
    let groups = results.summary.tiers.iter().chain(&results.summary.papers);
    let groups = groups.filter(|group| group.predictions > 0);
    let lines = groups.map(|group| {
        let counts = [group.model, group.above, group.wire].map(|near| near.all());
        let counts = counts.concat().into_iter().map(|count| count.to_string());
        let first = [group.name.clone(), group.predictions.to_string()];
        first.into_iter().chain(counts).collect()
    });
    let heads = [
        "",
        "#predictions",
        "#model: 5 %",
        "#20 %",
        "#factor 2",
        "#row above: 5 %",
        "#20 %",
        "#factor 2",
        "#wire: 5 %",
        "#20 %",
        "#factor 2",
    ];
    table(&heads, &lines.collect::<Vec<Vec<String>>>())
}

/// Rows whose printed number is not the one to compare with.
fn corrected(results: &Results<'_>) -> String {
    let mine = results
        .scores
        .iter()
        .filter(|score| score.corrected.is_some());
    let lines = mine.map(|score| {
        let printed = score.printed.map_or_else(String::new, number);
        let corrected = score.corrected.map_or_else(String::new, number);
        let because = score.because.clone().unwrap_or_default();
        vec![
            named(score),
            score.row.row.clone(),
            printed,
            corrected,
            because,
        ]
    });
    let heads = ["entry", "row", "#printed", "#compared with", "because"];
    table(&heads, &lines.collect::<Vec<Vec<String>>>())
}

/// A value that was tried in the place of an assumed one, as `--assumed -q -o csv` writes it.
#[derive(Debug, Deserialize)]
struct Tried {
    parameter: String,
    what: String,
    value: f64,
    unit: String,
    tried: f64,
    rows: usize,
    worse: usize,
    better: usize,
    which: String,
}

fn assumed(parameters: &Parameters) -> String {
    let text = std::fs::read_to_string(ASSUMED).expect("papers/assumed.csv");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let all = reader
        .deserialize::<Tried>()
        .map(|line| line.expect("a line"));
    let lines = all.map(|line| {
        let known = parameters.get(&line.parameter);
        let choices = known.and_then(|known| known.choices.as_ref());
        let shown = |value: f64| match choices {
            Some(words) => words[usize::from(value != 0.0)].clone(),
            None => format!("{} {}", number(value), line.unit),
        };
        let (value, tried) = (shown(line.value), shown(line.tried));
        let counts = [line.rows, line.worse, line.better].map(|count| count.to_string());
        let [rows, worse, better] = counts;
        vec![line.what, value, tried, rows, worse, better, line.which]
    });
    let heads = [
        "value", "#", "#tried", "#rows", "#worse", "#better", "which",
    ];
    table(&heads, &lines.collect::<Vec<_>>())
}

fn named(score: &Score<'_>) -> String {
    format!("`{}`", score.entry.name)
}

fn tier(row: &Row) -> String {
    let known = TIERS.iter().find(|tier| tier.0 == row.tier);
    known.map_or("", |tier| tier.1).to_owned()
}

/// Number of the paper, or its words.
fn printed(score: &Score<'_>) -> String {
    match (score.paper, &score.says) {
        (Some(value), _) => number(value),
        (None, Some(says)) => format!("“{says}”"),
        (None, None) => String::new(),
    }
}

fn error(score: &Score<'_>) -> String {
    score.error.map_or_else(String::new, percent)
}

fn percent(share: f64) -> String {
    let text = format!("{share:+.1} %").replace('-', "−");
    match &*text {
        "+0.0 %" | "−0.0 %" => "0.0 %".to_owned(),
        _ => text,
    }
}

/// The model, with the range of the seeds where they differ.
fn found(score: &Score<'_>, entry: &Entry) -> String {
    let value = number(median(&score.values));
    let ends = score.values.first().zip(score.values.last());
    let ends = ends.map(|(low, high)| (number(*low), number(*high)));
    let unit = score.row.unit.as_ref();
    let unit = unit.map_or_else(String::new, |unit| format!(" {unit}"));
    match ends.filter(|(low, high)| entry.random && low != high) {
        Some((low, high)) => format!("{value}{unit} ({low} to {high})"),
        None => format!("{value}{unit}"),
    }
}

/// Kind of a row, which similar rows share: rules that differ in numbers only are the same.
fn kind(score: &Score<'_>) -> (String, &'static str, String, Option<String>) {
    let rule = score.rule.split(" of ").next().unwrap_or_default();
    let rule = rule.chars().filter(|c| !c.is_ascii_digit()).collect();
    (rule, score.result, tier(score.row), score.row.unit.clone())
}

const fn is_bare(score: &Score<'_>) -> bool {
    score.paper.is_none() && score.says.is_none()
}

/// A line for rows of an entry, of which the last ones are similar to the first.
fn line(entry: &Entry, scores: &[&Score<'_>]) -> Vec<String> {
    let first = scores[0];
    let (name, found) = match scores {
        [_] => (first.row.row.clone(), found(first, entry)),
        all => {
            let values = || all.iter().map(|score| median(&score.values));
            let low = number(values().fold(f64::INFINITY, f64::min));
            let high = number(values().fold(f64::NEG_INFINITY, f64::max));
            let last = &all[all.len() - 1].row.row;
            let name = format!("{} … {last} ({} rows)", first.row.row, all.len());
            let unit = first.row.unit.as_ref();
            let unit = unit.map_or_else(String::new, |unit| format!(" {unit}"));
            match low == high {
                true => (name, low + &unit),
                false => (name, format!("{low} to {high}{unit}")),
            }
        }
    };
    let rule = match scores.iter().all(|score| score.rule == first.rule) {
        true => first.rule.clone(),
        false => format!("{} …", first.rule),
    };
    let result = format!("{} {}", tier(first.row), first.result);
    vec![name, printed(first), found, error(first), rule, result]
}

/// Lines of prose that fit an editor. Paragraphs and the items of lists stay apart, and no line inside a paragraph
/// begins as an item would.
fn wrapped(prose: &str) -> String {
    let mut blocks: Vec<Vec<&str>> = vec![Vec::new()];
    for line in prose.lines() {
        let words = line.split_whitespace();
        if line.trim().is_empty() || words.clone().next().is_some_and(is_mark) {
            blocks.push(Vec::new());
        }
        blocks.last_mut().unwrap().extend(words);
    }
    blocks.retain(|block| !block.is_empty());
    let is_item = |block: &Vec<&str>| is_mark(block[0]);
    let mut text = String::new();
    for (at, block) in blocks.iter().enumerate() {
        if at > 0 {
            let inside = is_item(block) && is_item(&blocks[at - 1]);
            text += if inside { "\n" } else { "\n\n" };
        }
        text += &filled(block, if is_item(block) { "  " } else { "" });
    }
    text
}

/// True for a word with which an item of a list begins.
fn is_mark(word: &str) -> bool {
    let number = word.strip_suffix(['.', ')']);
    let number = number.is_some_and(|digits| !digits.is_empty() && digits.parse::<u32>().is_ok());
    number || ["-", "*", "+"].contains(&word)
}

/// The words in lines; all except the first begin with this indent.
fn filled(words: &[&str], indent: &str) -> String {
    let mut lines: Vec<Vec<&str>> = vec![Vec::new()];
    for word in words {
        let line = lines.last_mut().unwrap();
        let width: usize = line.iter().map(|word| word.chars().count() + 1).sum();
        if !line.is_empty() && indent.len() + width + word.chars().count() > 120 {
            // A number at the end of a sentence would be the mark of an item.
            let before = if is_mark(word) { line.pop() } else { None };
            lines.push(before.into_iter().collect());
        }
        lines.last_mut().unwrap().push(word);
    }
    let lines: Vec<String> = lines.iter().map(|line| line.join(" ")).collect();
    lines.join(&format!("\n{indent}"))
}

#[test]
fn lists_and_paragraphs_stay_apart_when_prose_is_wrapped() {
    let long = "word ".repeat(23);
    let text = format!(
        "Two things:\n- {long}{long}with\n  its end\n- b\n\n{long}of 78. After\nit\n1. one\n"
    );
    let words = long.trim_end();
    let items = format!("- {words}\n  {words}\n  with its end\n- b");
    let wanted = format!("Two things:\n\n{items}\n\n{words}\nof 78. After it\n\n1. one");
    assert_eq!(wrapped(&text), wanted);
}

/// The rows of these entries.
fn rows(results: &Results<'_>, names: &str) -> String {
    let mut text = String::new();
    for name in names.split_whitespace() {
        let entry = results.entries.iter().find(|entry| entry.name == name);
        let entry = entry.unwrap_or_else(|| panic!("a document names the entry {name}"));
        let all = results.scores.iter().filter(|s| s.entry.name == name);
        let all: Vec<&Score<'_>> = all.copied().collect();
        let similar =
            |a: &&Score<'_>, b: &&Score<'_>| is_bare(a) && is_bare(b) && kind(a) == kind(b);
        let lines = all.chunk_by(similar).map(|part| line(entry, part));
        let lines: Vec<Vec<String>> = lines.collect();
        let heads = ["", "#there", "#here", "#error", "rule", "result"];
        let unit = &entry.unit;
        let head = format!("`{name}`, {unit}");
        let heads = [&[&*head], &heads[1..]].concat();
        if !text.is_empty() {
            text += "\n";
        }
        let _ = write!(
            text,
            "{}\n\n{}",
            wrapped(&entry.what),
            table(&heads, &lines)
        );
    }
    text
}

/// Both sets of seeds: counts of results, and the rows whose result differs.
fn second_seeds() -> String {
    let (first, second) = (kept(KEPT), kept(SECOND));
    let count = |all: &BTreeMap<_, Kept>, result: &str| {
        let mine = all.values().filter(|kept| kept.result == result);
        mine.count().to_string()
    };
    let counts = [("1 on", &first), ("11 to 20", &second)].map(|(seeds, all)| {
        let results = ["ok", "miss", "calibration", "shown"].map(|result| count(all, result));
        [vec![seeds.to_owned()], results.to_vec()].concat()
    });
    let heads = ["seeds", "#ok", "#miss", "#calibration", "#shown"];
    let shown = |kept: &Kept| {
        let model = kept.model.map_or_else(String::new, number);
        format!("{model} {}", kept.result)
    };
    let differ = first.iter().filter_map(|(key, kept)| {
        let other = second.get(key).expect("a row of both files");
        let line = || {
            let name = format!("`{}`", kept.entry);
            vec![name, kept.row.clone(), shown(kept), shown(other)]
        };
        (kept.result != other.result).then(line)
    });
    let rows = ["entry", "row", "seeds from 1 on", "seeds 11 to 20"];
    let differ: Vec<Vec<String>> = differ.collect();
    format!("{}\n{}", table(&heads, &counts), table(&rows, &differ))
}

/// The rows of `aerostat reproduce quick`.
fn quick(results: &Results<'_>) -> String {
    let all: Vec<Entry> = results.entries.iter().copied().cloned().collect();
    let chosen = super::chosen(&["quick".to_owned()], &all).unwrap();
    let named = |score: &&&Score<'_>| {
        let mine = chosen.iter().filter(|entry| entry.name == score.entry.name);
        mine.flat_map(|entry| &entry.rows)
            .any(|row| row.row == score.row.row)
    };
    let lines = results.scores.iter().filter(named).map(|score| {
        let unit = score.unit().to_owned();
        let found = found(score, score.entry);
        let row = score.row.row.clone();
        let result = score.result.to_owned();
        vec![self::named(score), row, unit, printed(score), found, result]
    });
    let heads = ["entry", "row", "unit", "#there", "#here", "result"];
    table(&heads, &lines.collect::<Vec<_>>())
}

fn entries(results: &Results<'_>) -> String {
    let of = |entry: &&Entry| {
        let mine = results.scores.iter();
        let mine = mine.filter(|score| score.entry.name == entry.name).copied();
        let mine: Vec<&Score<'_>> = mine.collect();
        let group = Group::of(&entry.name, "", mine.iter().copied());
        let seeds = if entry.random { entry.seeds } else { 1 };
        let name = format!("`{}`", entry.name);
        let what = vec![name, entry.what.clone(), seeds.to_string()];
        [what, numbers(&group)].concat()
    };
    let lines: Vec<Vec<String>> = results.entries.iter().map(of).collect();
    let heads = [&["entry", "what", "#seeds"], &NUMBERS[..]].concat();
    table(&heads, &lines)
}

fn misses(results: &Results<'_>) -> String {
    let missed = |score: &&&Score<'_>| score.result == "miss";
    let of = |score: &&Score<'_>| {
        let name = format!("`{}`", score.entry.name);
        let row = score.row.row.clone();
        let found = found(score, score.entry);
        vec![name, row, printed(score), found, score.rule.clone()]
    };
    let lines: Vec<Vec<String>> = results.scores.iter().filter(missed).map(of).collect();
    table(&["entry", "row", "#there", "#here", "rule"], &lines)
}

/// A page with new tables.
fn renewed(page: &str, results: &Results<'_>) -> String {
    let mut parts = page.split(BEGIN);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (what, rest) = part.split_once(" -->").expect("the end of a mark");
        let (_, after) = rest.split_once(END).expect("the end of a table");
        let (word, names) = what.split_once(' ').unwrap_or((what, ""));
        let made = match word {
            "summary" => summary(results),
            "entries" => entries(results),
            "misses" => misses(results),
            "baselines" => baselines(results),
            "corrected" => corrected(results),
            "named" => evidence::named(results),
            "effects" => evidence::effects(results),
            "precision" => evidence::precision(results),
            "weak" => evidence::weak(results),
            "assumed" => assumed(&Catalogue::own().parameters),
            "rows" => rows(results, names),
            "quick" => quick(results),
            "seeds" => second_seeds(),
            other => panic!("there is no table '{other}'"),
        };
        let _ = write!(text, "{BEGIN}{what} -->\n\n{made}\n{END}{after}");
    }
    text
}

#[test]
fn the_documents_have_the_kept_results() {
    let whole = Whole::new();
    let scores = whole.scores();
    let entries = whole.entries();
    let results = whole.results(&entries, &scores);
    for page in PAGES {
        let file = format!("{}/../../docs/{page}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&file).expect("a document");
        let new = renewed(&text, &results);
        if std::env::var_os("UPDATE_EXPECTED").is_some() {
            std::fs::write(&file, &new).expect("the document can be written");
        }
        let text = std::fs::read_to_string(&file).expect("a document");
        assert!(
            text.contains(BEGIN) && text == new,
            "docs/{page} is not what papers/results.csv has: run this test with UPDATE_EXPECTED=1 and look at the \
             difference"
        );
    }
}

/// Writes what follows from the catalogue, beside the models that the file has.
fn write_kept(scores: &[Score<'_>], files: &Files) {
    let lines = scores.iter().map(|score| {
        let stacks = super::stacks(score.entry, files).unwrap();
        super::ScoreLine::of(score, None, stacks)
    });
    let mut rows = Rows::of(lines);
    rows.importance.clear();
    let mut text = Vec::new();
    let form = Form::new(Format::Csv, false);
    output::write_to(&mut text, form, super::SCHEMA, &[rows]).unwrap();
    std::fs::write(KEPT, text).unwrap();
}

#[test]
fn the_kept_results_follow_from_the_catalogue_and_its_rules() {
    let mut whole = Whole::new();
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        write_kept(&whole.scores(), &whole.catalogue.files);
        whole.kept = kept(KEPT);
    }
    let scores = whole.scores();
    assert_eq!(scores.len(), whole.kept.len(), "rows of papers/results.csv");
    for score in &scores {
        let kept = whole.of(score.entry, score.row);
        let name = format!("{}, {}", score.entry.name, score.row.row);
        assert_eq!(score.result, kept.result, "{name}");
        assert_eq!(score.rule, kept.rule, "{name}");
        assert_eq!(score.kind.name(), kept.kind, "{name}");
        assert_eq!(tier(score.row), kept.tier, "{name}");
        // The file has four decimals, or seven of small numbers.
        let near = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() < 1e-4,
            (a, b) => a == b,
        };
        assert!(near(score.printed, kept.printed), "{name}");
        assert!(near(score.corrected, kept.corrected), "{name}");
        let few = match score.entry.random && score.entry.spread.is_none() {
            true => score.entry.seeds,
            false => 1,
        };
        let seeds = if kept.model.is_some() { few } else { 0 };
        assert_eq!(kept.seeds as u64, seeds, "{name}");
    }
}

#[test]
fn each_paper_has_fewer_fitted_parameters_than_scored_rows_and_each_miss_a_reason() {
    let whole = Whole::new();
    let scores = whole.scores();
    let entries = whole.entries();
    let results = whole.results(&entries, &scores);
    for group in &results.summary.papers {
        let fitted = group.parameters.unwrap_or_default();
        assert!(fitted == 0 || fitted < group.scored(), "{group:?}");
    }
    let document = whole.catalogue.files.document();
    for score in scores.iter().filter(|score| score.result == "miss") {
        let (entry, row) = (&score.entry.name, &score.row.row);
        assert!(
            super::page::reason(document, entry, row).is_some(),
            "{entry}, {row}"
        );
    }
}

#[test]
fn names_in_the_drawings_of_all_entries_are_whole_and_differ() {
    let whole = Whole::new();
    let all = whole.scores();
    let (tables, mut drawn) = (Tables::new(), 0);
    for entry in &whole.catalogue.entries {
        let mine = all.iter().filter(|score| score.entry.name == entry.name);
        let mine: Vec<&Score<'_>> = mine.collect();
        let mut titles = Vec::new();
        for mut drawing in drawings::of(entry, &mine, &tables) {
            crate::plot::tests::names_are_whole_and_differ(&drawing.svg().unwrap());
            titles.push(drawing.title().clone());
            drawn += 1;
        }
        let count = titles.len();
        titles.sort();
        titles.dedup();
        assert_eq!(
            titles.len(),
            count,
            "{}: two drawings have one title",
            entry.name
        );
    }
    assert!(drawn > 40, "{drawn} drawings");
}
