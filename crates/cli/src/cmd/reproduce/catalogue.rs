//! The catalogue: which runs of which labs give the rows of a paper's table, and what the paper prints.
//!
//! All files are in `labs/papers`. An entry (`sara-1.yml`) has rows; a row changes keys of a lab, takes a value
//! from the results and says what must hold. `printed.yml` has the numbers of the papers, `parameters.yml` the fitted
//! ones. Runs are made from entries and parameters only: no number of `printed.yml` can reach a model.

mod baselines;
mod files;

use super::axes::{self, Axis};
use super::drawings::Plot;
use super::drawings::trace::Trace;
use super::live::Live;
use crate::exit::Failure;
use aerostat_lab::embedded;
use aerostat_lab::shipped::File;
pub(super) use files::Files;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

const ENTRIES: &[File] = embedded!("papers/" ".yml":
    "thesis-5.1" "thesis-5.2" "thesis-5.3" "thesis-5.4" "thesis-5.5" "thesis-5.6" "thesis-5.7" "thesis-figures" "thesis-6"
    "thesis-variation" "thesis-controls" "detken-3" "detken-6" "detken-8" "detken-9" "cambridge-1" "cambridge-figure2" "cambridge-data" "sara-1" "sara-2" "sara-3" "sara-4" "atp-1" "atp-2"
    "atp-2-tcp" "atp-2-atp" "atp-3" "atp-5" "atp-variation" "controls-papers" "beyond-atp" "beyond-queues" "beyond-tcp" "beyond-mpoa");

/// Quantities by their units. A unit that is not here says what it counts.
const QUANTITIES: [(&str, &str); 6] = [
    ("Mb/s", "throughput"),
    ("cells/s", "peak rate"),
    ("ms", "time"),
    ("us", "time"),
    ("ns", "time"),
    ("%", "share"),
];

/// Units of whole numbers.
const COUNTED: [&str; 5] = ["octets", "packets", "segments", "frames", "cells"];

/// Keys of labs and their values.
type Keys = BTreeMap<String, String>;

/// A table or figure of a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    /// `sara/1`.
    #[serde(skip)]
    pub(super) name: String,
    pub(super) title: String,
    /// Quantity that is measured.
    pub(super) what: String,
    pub(super) unit: String,
    /// Quantities by their units, where the unit alone does not tell.
    #[serde(default)]
    quantity: BTreeMap<String, String>,
    /// The lab that all rows run.
    pub(super) lab: String,
    /// True if another seed gives another result; other entries run once.
    #[serde(default)]
    pub(super) random: bool,
    /// Number of seeds, from 1 on, if the user names none.
    #[serde(default = "few")]
    pub(super) seeds: u64,
    /// For values that say how repeated measurements differ: the reduction of the seeds to one value.
    pub(super) spread: Option<Spread>,
    /// Rate of the wire, as a baseline beside the model; of rows in the unit of the entry.
    pub(super) wire: Option<f64>,
    /// The row of another entry that has the ± of each row: `thesis/variation: 5.5 {row}`.
    plus_minus: Option<String>,
    /// The TCP of the paper's hosts, if rows depend on it.
    pub(super) tcp: Option<String>,
    /// Keys of all labs that have the values of parameters, by lab.
    #[serde(skip)]
    keys: Rc<BTreeMap<String, Keys>>,
    /// Further keys of the lab for all rows.
    #[serde(default)]
    set: Keys,
    take: Option<Take>,
    /// Rows that form lines or surfaces in the report.
    #[serde(default)]
    pub(super) plot: Vec<Plot>,
    /// Runs of rows whose packets the report draws.
    #[serde(default)]
    pub(super) traces: Vec<Trace>,
    /// Rows that run between Linux kernels, too.
    pub(super) live: Option<Live>,
    /// Keys of the lab whose values rows combine, by name.
    #[serde(default)]
    pub(super) axes: BTreeMap<String, Axis>,
    pub(super) rows: Vec<Row>,
}

/// A row of an entry.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    pub(super) row: String,
    pub(super) tier: Tier,
    /// Its lab, if that is not the entry's.
    pub(super) lab: Option<String>,
    /// Its unit, if that is not the entry's.
    pub(super) unit: Option<String>,
    /// Its rate of the wire, if that is not the entry's.
    wire: Option<f64>,
    /// Rows whose printed numbers, added up, say without a model what this row may have.
    #[serde(default, deserialize_with = "one_or_more")]
    pub(super) baseline: Vec<String>,
    /// The parameter that a fit takes from this row, as `parameters.yml` says.
    #[serde(skip)]
    pub(super) calibrates: Option<String>,
    /// The parameters that were chosen by hand so that this row comes out, as `parameters.yml` says.
    #[serde(skip)]
    pub(super) chosen: Vec<String>,
    /// Reason why the printed number of this row is no test: the lab file sets it, another row is fitted to the same
    /// number, or the model has the value of a fitted row for it.
    pub(super) circular: Option<String>,
    /// Largest distance from the printed value, per cent of it.
    pub(super) within: Option<f64>,
    /// The value must be equal to the printed value.
    #[serde(default)]
    pub(super) exact: bool,
    /// The row that has the value to compare with, instead of the paper: `sara/1` for the row of the same name there,
    /// or `sara/1: 6 segments`.
    pub(super) like: Option<String>,
    /// The value must be this: that of a closed form, where the paper has no number. With `within`, so near to it.
    pub(super) equals: Option<f64>,
    /// The value must be less than this.
    pub(super) below: Option<f64>,
    /// The value must be greater than this.
    pub(super) above: Option<f64>,
    /// The value must be at least the first number, and at most the second one.
    pub(super) between: Option<[f64; 2]>,
    /// The value must be greater than this in at least one seed.
    pub(super) some_above: Option<f64>,
    /// Largest ratio to the printed value, in both directions.
    pub(super) factor: Option<f64>,
    /// With `factor`: it is enough if the printed value is inside the range of the seeds.
    #[serde(default)]
    pub(super) in_range: bool,
    /// The value must be less than those of these rows.
    #[serde(default, deserialize_with = "one_or_more")]
    pub(super) below_row: Vec<String>,
    /// The value must be greater than those of these rows.
    #[serde(default, deserialize_with = "one_or_more")]
    pub(super) above_row: Vec<String>,
    /// With `below_row` and `above_row`: their values are multiplied by this.
    pub(super) times: Option<f64>,
    /// True for a row that runs between Linux kernels only.
    #[serde(default)]
    only_live: bool,
    /// The row by whose value that of this row is divided.
    pub(super) divided_by: Option<String>,
    /// The row whose value is taken from that of this row.
    pub(super) minus: Option<String>,
    /// Values of axes, separated by spaces: the row stands for a row for each combination, with the values in its name.
    #[serde(default)]
    pub(super) over: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) set: BTreeMap<String, String>,
    take: Option<Take>,
    /// One run for each step: the value of the row is the last step before the first that exceeds a limit.
    pub(super) steps: Option<Steps>,
}

/// Weight that a row has as evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A parameter was fitted to it, or chosen so that it comes out.
    Fitted,
    /// The lab file sets it, another row is fitted to the same number, or its value is that of a fitted row.
    Circular,
    /// The paper prints a number that no part of the model has seen.
    Prediction,
    /// The paper has words, and no number.
    Words,
    /// The paper prints nothing: a closed form, an order, a control.
    Own,
}

impl Kind {
    /// All kinds, with their names and what they are.
    pub(super) const ALL: [(Self, &str, &str); 5] = [
        (
            Self::Fitted,
            "fitted",
            "a parameter was fitted to it or chosen for it",
        ),
        (
            Self::Circular,
            "circular",
            "the lab sets it, or it repeats a fitted number or value",
        ),
        (
            Self::Prediction,
            "prediction",
            "a printed number that no part of the model has seen",
        ),
        (Self::Words, "words", "the paper has words and no number"),
        (
            Self::Own,
            "own",
            "the paper prints nothing: closed forms, orders, controls",
        ),
    ];

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        let known = Self::ALL.iter().find(|known| known.0 == self);
        known.map_or("", |known| known.1)
    }
}

impl Row {
    /// Kind of the row beside what the paper prints.
    pub(super) fn kind(&self, printed: Option<&Printed>) -> Kind {
        match printed {
            _ if self.circular.is_some() => Kind::Circular,
            _ if self.calibrates.is_some() || !self.chosen.is_empty() => Kind::Fitted,
            Some(printed) if printed.number().is_some() => Kind::Prediction,
            Some(_) => Kind::Words,
            None => Kind::Own,
        }
    }
    /// Entry and row that `reference` of this row of `entry` names.
    pub(super) fn referred<'a>(&'a self, entry: &'a str, reference: &'a str) -> (&'a str, &'a str) {
        match reference.split_once(": ") {
            Some(named) => named,
            None if reference.contains('/') => (reference, &self.row),
            None => (entry, reference),
        }
    }

    /// All references of this row.
    pub(super) fn references(&self) -> impl Iterator<Item = &str> {
        let one = [&self.like, &self.minus, &self.divided_by];
        let one = one.into_iter().flatten();
        let several = self.below_row.iter().chain(&self.above_row);
        one.chain(several).map(String::as_str)
    }

    /// The same, to be changed.
    pub(super) fn references_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let one = [&mut self.like, &mut self.minus, &mut self.divided_by];
        let one = one.into_iter().flatten();
        one.chain(&mut self.below_row).chain(&mut self.above_row)
    }
}

/// A text, or a list of texts.
fn one_or_more<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Given {
        One(String),
        More(Vec<String>),
    }
    Ok(match Given::deserialize(from)? {
        Given::One(one) => vec![one],
        Given::More(more) => more,
    })
}

/// How well a row can be predicted (docs/reproduce.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) enum Tier {
    /// Physics.
    A,
    /// A calibrated host.
    B,
    /// About 15 per cent.
    C,
    /// Shape, order, a factor of 2.
    D,
    /// Not reproducible: never scored.
    E,
}

/// Where a value is in the results of a run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Take {
    /// A table of the results, or `events`.
    pub(super) table: String,
    /// Columns and their values: the first such row is taken.
    #[serde(rename = "where")]
    pub(super) wanted: BTreeMap<String, String>,
    /// `throughput_mbps`, or `delay_us.max` for a value inside a column.
    pub(super) column: String,
    #[serde(default = "one")]
    pub(super) scale: f64,
    /// In a text: the number behind these words.
    pub(super) after: Option<String>,
    /// A column that is taken away from the first one.
    pub(super) less: Option<String>,
    /// The last such row whose `time_s` is at most this.
    pub(super) until: Option<f64>,
    /// Reduction of all such rows to one value, instead of the first of them.
    pub(super) of_all: Option<OfAll>,
    /// Time that a program takes beside the transfer, seconds for each unit of a rate; may have parameters.
    pub(super) later: Option<String>,
}

const fn few() -> u64 {
    3
}

const fn one() -> f64 {
    1.0
}

/// How repeated measurements differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Spread {
    /// The mean difference of the values from their mean.
    MeanDifference,
    /// The largest value less the smallest one.
    Range,
}

/// One value of the rows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum OfAll {
    /// The number of rows.
    Count,
    /// The number of rows whose value is above 0.
    Used,
    /// The largest value.
    Max,
    /// The share of rows whose value differs from 0 by more than this, per cent.
    Beyond(f64),
    /// The mean of the values that differ from 0 by no more than this.
    MeanWithin(f64),
}

/// Values of one key of the lab.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Steps {
    pub(super) path: String,
    /// Further keys that get the value of the step.
    #[serde(default)]
    pub(super) paths: Vec<String>,
    /// Limit: a step counts as long as the values of the steps before do not exceed it.
    #[serde(default)]
    pub(super) limit: f64,
    pub(super) of: Vec<Step>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    /// Printed value for this step.
    pub(super) at: f64,
    pub(super) value: String,
}

/// A value of labs that is not known from elsewhere, or that stands in several of them.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameter {
    pub(super) value: f64,
    pub(super) unit: String,
    pub(super) what: String,
    /// The entry, or words, from which the value came.
    pub(super) from: String,
    /// The rows of this entry, or of another as `sara/1: 6 segments`, from which it came; none if the paper
    /// gives the value itself. A fit takes it from the first one.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "one_or_more"
    )]
    pub(super) row: Vec<String>,
    /// Words for the values 0 and 1, in place of a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) choices: Option<[String; 2]>,
    /// Step of the value: the fitted value is rounded to a multiple of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) step: Option<f64>,
    /// Range in which a fit looks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) low: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) high: Option<f64>,
}

impl Parameter {
    /// True if a row of a paper decided its value.
    pub(super) const fn is_fitted(&self) -> bool {
        !self.row.is_empty()
    }
    /// True if it could be another value: it was assumed or chosen.
    pub(super) fn is_free(&self) -> bool {
        self.from == "assumed" || self.is_fitted() && !self.has_range()
    }
    /// The values to try in its place: half and twice of it, or the other word.
    pub(super) fn others(&self) -> Vec<f64> {
        match self.choices {
            Some(_) => vec![1.0 - self.value],
            None => {
                let half = self.value / 2.0;
                let half = if COUNTED.contains(&&*self.unit) {
                    half.round()
                } else {
                    half
                };
                let all = [half, self.value * 2.0].into_iter();
                all.filter(|other| *other != self.value).collect()
            }
        }
    }
    /// True if a fit finds it; others that rows decided were chosen by hand.
    pub(super) const fn has_range(&self) -> bool {
        self.low.is_some() && self.high.is_some()
    }
    /// The word for its value, if it is a choice of words.
    fn word(&self) -> Option<&str> {
        let at = usize::from(self.value != 0.0);
        self.choices.as_ref().map(|words| words[at].as_str())
    }
    /// Its source in words.
    pub(super) fn origin(&self) -> String {
        let rows = self.row.join(", ");
        let how = if self.has_range() {
            "fitted from"
        } else {
            "chosen for"
        };
        match rows.as_str() {
            "" => self.from.clone(),
            rows => format!("{how} {}, {rows}", self.from),
        }
    }
    /// Entry and row of each row that decided it.
    fn rows(&self) -> impl Iterator<Item = (&str, &str)> {
        let own = |row| (self.from.as_str(), row);
        let rows = self.row.iter().map(String::as_str);
        rows.map(move |row| row.split_once(": ").unwrap_or_else(|| own(row)))
    }
}

/// Parameters by name.
pub(super) type Parameters = BTreeMap<String, Parameter>;

/// Printed value, or words, of a paper in a row.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Printed {
    pub(super) printed: Option<f64>,
    /// The number to compare with, where the printed one contradicts the paper itself or follows from others.
    pub(super) corrected: Option<f64>,
    /// Reason of the correction.
    pub(super) because: Option<String>,
    pub(super) says: Option<String>,
    #[serde(rename = "where")]
    pub(super) place: String,
}

impl Printed {
    /// The number to compare with.
    pub(super) fn number(&self) -> Option<f64> {
        self.corrected.or(self.printed)
    }
}

/// Printed values of the papers, by entry and row.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct AllPrinted(BTreeMap<String, BTreeMap<String, Printed>>);

impl AllPrinted {
    pub(super) fn of(&self, entry: &str, row: &str) -> Option<&Printed> {
        self.0.get(entry)?.get(row)
    }
    /// Entries and rows of all values.
    pub(super) fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.0.iter();
        all.flat_map(|(entry, rows)| rows.keys().map(move |row| (entry.as_str(), row.as_str())))
    }
}

impl Entry {
    /// The lab of `row`.
    pub(super) fn lab<'a>(&'a self, row: &'a Row) -> &'a str {
        row.lab.as_ref().unwrap_or(&self.lab)
    }
    /// The changes of the lab for `row`, without its steps.
    pub(super) fn changes(&self, row: &Row) -> Keys {
        let mut all = self.common(self.lab(row));
        all.extend(row.set.clone());
        all
    }
    /// How `row` runs between Linux kernels, if it does.
    pub(super) fn live(&self, row: &Row) -> Option<&Live> {
        self.live
            .as_ref()
            .filter(|live| live.rows.contains(&row.row))
    }
    /// The quantity that is measured in this unit, with the unit, for the axis of a drawing.
    pub(super) fn quantity(&self, unit: &str) -> String {
        let usual = QUANTITIES.iter().find(|known| known.0 == unit);
        let own = self.quantity.get(unit).map(String::as_str);
        match (own.or(usual.map(|known| known.1)), unit) {
            (Some(quantity), "us") => format!("{quantity} (µs)"),
            (Some(quantity), _) => format!("{quantity} ({unit})"),
            (None, _) => unit.to_owned(),
        }
    }
    /// The changes of a lab for all rows that run it.
    pub(super) fn common(&self, lab: &str) -> Keys {
        let mut all = self.keys.get(lab).cloned().unwrap_or_default();
        all.extend(self.set.clone());
        all
    }
    /// Names of all parameters that the rows use.
    pub(super) fn parameters(&self) -> BTreeSet<String> {
        let rows = self.rows.iter().filter(|row| self.has_model(row));
        rows.flat_map(|row| self.parameters_of(row)).collect()
    }
    /// Names of all parameters that `row` uses.
    pub(super) fn parameters_of(&self, row: &Row) -> BTreeSet<String> {
        let later = self.take(row).ok().and_then(|take| take.later.clone());
        let texts = self.changes(row).into_values().chain(later);
        let names = texts.map(|text| used(&text).map(str::to_owned).collect::<Vec<_>>());
        names.flatten().collect()
    }
    /// True if a run in virtual time gives the value of `row`.
    pub(super) fn has_model(&self, row: &Row) -> bool {
        !row.only_live && (row.take.is_some() || self.take.is_some())
    }
    /// Where the value of `row` is.
    pub(super) fn take<'a>(&'a self, row: &'a Row) -> Result<&'a Take, Failure> {
        row.take
            .as_ref()
            .or(self.take.as_ref())
            .ok_or_else(|| Failure::failed(format!("{}, {}: nothing is taken", self.name, row.row)))
    }
}

/// The whole catalogue.
pub(super) struct Catalogue {
    /// All entries, in the order of the papers.
    pub(super) entries: Vec<Entry>,
    pub(super) parameters: Parameters,
    pub(super) printed: AllPrinted,
    pub(super) files: Files,
}

/// Files in the place of those of the program.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Given<'a> {
    /// A folder with all files of the catalogue.
    pub(super) folder: Option<&'a Path>,
    pub(super) parameters: Option<&'a Path>,
    pub(super) printed: Option<&'a Path>,
}

impl Catalogue {
    /// The catalogue of the program, except the files that are given.
    ///
    /// # Errors
    /// A file cannot be read, or it has another form.
    pub(super) fn new(given: Given<'_>) -> Result<Self, Failure> {
        let files = Files::new(given.folder)?;
        // Kinds of rows follow from the parameters of the catalogue, whatever values were fitted since.
        let own: Parameters = files.read("parameters.yml")?;
        Ok(Self {
            entries: entries(&files, &own)?,
            parameters: match given.parameters {
                Some(file) => read(file)?,
                None => own,
            },
            printed: match given.printed {
                Some(file) => read(file)?,
                None => files.read("printed.yml")?,
            },
            files,
        })
    }

    /// The catalogue of the program.
    #[cfg(test)]
    pub(super) fn own() -> Self {
        Self::new(Given::default()).expect("a catalogue")
    }

    /// Claims about the rows of entries before their first run: rules in words.
    #[cfg(test)]
    pub(super) fn claims(&self) -> BTreeMap<String, BTreeMap<String, String>> {
        self.files.read("claims.yml").expect("claims")
    }
}

/// All entries, in the order of the papers.
fn entries(files: &Files, parameters: &Parameters) -> Result<Vec<Entry>, Failure> {
    let keys: Rc<BTreeMap<String, Keys>> = Rc::new(files.read("labs.yml")?);
    let read = |file: &str| -> Result<Entry, Failure> {
        let mut entry: Entry = files.read(file)?;
        entry.name = file.trim_end_matches(".yml").replacen('-', "/", 1);
        entry.keys = Rc::clone(&keys);
        axes::expand(&mut entry)?;
        Ok(entry)
    };
    let names = files.entries().into_iter();
    let mut all = names.map(read).collect::<Result<Vec<_>, _>>()?;
    for (name, parameter) in parameters {
        for (at, (entry, row)) in parameter.rows().enumerate() {
            let entry = all.iter_mut().find(|known| known.name == entry);
            let rows = entry.map_or(&mut [][..], |entry| &mut entry.rows[..]);
            let known = rows.iter_mut().find(|known| known.row == row);
            let known = known.ok_or_else(|| {
                Failure::failed(format!("parameters.yml: {name}: no row '{row}'"))
            })?;
            match at == 0 && parameter.has_range() {
                true => known.calibrates = Some(name.clone()),
                false => known.chosen.push(name.clone()),
            }
        }
    }
    Ok(all)
}

/// Octets of the largest file of a catalogue.
const LARGEST: u64 = 1 << 20;

/// Contents of a file of the user.
fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    yaml(&path.display().to_string(), &files::text(path)?)
}

fn wrong(path: &Path, text: &str) -> Failure {
    Failure::usage(format!("{}: {text}", path.display()))
}

fn yaml<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, Failure> {
    serde_saphyr::from_str(text).map_err(|error| Failure::usage(format!("{name}: {error}")))
}

/// Changes of a lab with the values of parameters.
pub(super) fn all_filled(
    given: BTreeMap<String, String>,
    parameters: &Parameters,
) -> Result<Vec<(String, String)>, Failure> {
    let filled = given.into_iter().map(|(path, value)| {
        let value = filled(&value, parameters)?;
        Ok((path, value))
    });
    filled.collect()
}

/// `text` with the values of its parameters: `{sara.packet}us`, `{a.b*0.5 + c.d*-0.1}ms`, or with the word of one.
pub(super) fn filled(text: &str, parameters: &Parameters) -> Result<String, Failure> {
    let mut rest = text;
    let mut all = String::new();
    while let Some((before, after)) = rest.split_once('{') {
        let unended = || Failure::failed(format!("'{text}': a brace is not closed"));
        let (terms, after) = after.split_once('}').ok_or_else(unended)?;
        if let Some(word) = parameters.get(terms.trim()).and_then(Parameter::word) {
            all.push_str(before);
            all.push_str(word);
            rest = after;
            continue;
        }
        let mut sum = 0.0;
        for term in terms.split('+') {
            let (name, factor) = term.split_once('*').unwrap_or((term, "1"));
            let parameter = parameters.get(name.trim()).ok_or_else(|| {
                Failure::usage(format!("the parameter '{}' has no value", name.trim()))
            })?;
            let wrong = |_| Failure::failed(format!("'{factor}' is not a number"));
            sum += parameter.value * factor.trim().parse::<f64>().map_err(wrong)?;
        }
        // Nine digits say more than any paper does, and no lab key has an exponent.
        let digits = format!("{sum:.9}");
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        all.push_str(before);
        all.push_str(digits);
        rest = after;
    }
    all.push_str(rest);
    Ok(all)
}

/// Names of the parameters that `text` uses.
fn used(text: &str) -> impl Iterator<Item = &str> {
    let braces = text.split('{').skip(1);
    let terms = braces.filter_map(|part| part.split_once('}'));
    let terms = terms.flat_map(|(terms, _)| terms.split('+'));
    terms.map(|term| term.split('*').next().unwrap_or(term).trim())
}
