//! The report: one HTML file without scripts and without anything from elsewhere, and a file for each drawing.

mod style;

use super::catalogue::{self, Entry, Parameters, Tier};
use super::{Score, drawings, median};
use crate::cmd::run::files::write_whole;
use crate::exit::Failure;
use crate::plot::Drawing;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;
use style::CSS;

/// The document that gives the reasons of misses.
const DOCUMENT: &str = include_str!("../../../papers/reproduce.md");

/// What the report is of.
pub(super) struct Report<'a> {
    entries: &'a [&'a Entry],
    scores: Vec<&'a Score<'a>>,
    parameters: &'a Parameters,
    /// The seeds of entries with a random part, as they were given; `None`: from 1 on, as many as the entry says.
    seeds: Option<&'a str>,
}

impl<'a> Report<'a> {
    /// The report of these entries; `scores` may have rows of other entries, with which rows are compared.
    pub(super) fn new(
        entries: &'a [&'a Entry],
        scores: &'a [Score<'a>],
        parameters: &'a Parameters,
        seeds: Option<&'a str>,
    ) -> Self {
        let mine = |score: &&Score<'_>| entries.iter().any(|one| one.name == score.entry.name);
        Self {
            entries,
            scores: scores.iter().filter(mine).collect(),
            parameters,
            seeds,
        }
    }

    /// Writes the report into a directory.
    pub(super) fn write(&self, directory: &Path) -> Result<(), Failure> {
        let failed =
            |error: io::Error| Failure::failed(format!("{}: {error}", directory.display()));
        std::fs::create_dir_all(directory).map_err(failed)?;
        let whole = |name: &str, text: &str| {
            let written = write_whole(&directory.join(name), |out| out.write_all(text.as_bytes()));
            written.map_err(failed)
        };
        let mut body = String::new();
        self.summary(&mut body);
        for entry in self.entries {
            let drawings = drawings::of(entry, &self.of(entry));
            let mut drawn = Vec::new();
            for (number, drawing) in drawings.iter().enumerate() {
                let svg = Drawing::svg(drawing).map_err(Failure::failed)?;
                let name = format!("{}-{}.svg", entry.name.replace('/', "-"), number + 1);
                whole(&name, &svg)?;
                drawn.push((name, svg));
            }
            self.entry(&mut body, entry, &drawn)?;
        }
        self.labs(&mut body)?;
        whole("index.html", &page(&body, self.seeds))
    }
}

/// The page around its body.
fn page(body: &str, seeds: Option<&str>) -> String {
    let seeds = seeds.unwrap_or("from 1 on");
    let (version, seeds) = (env!("CARGO_PKG_VERSION"), escaped(seeds));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>Five papers, reproduced</title>\n<style>{CSS}</style>\n</head>\n<body>\n\
         <h1>Five papers, reproduced</h1>\n\
         <p>Aerostat {version}; labs in virtual time, exact and repeatable. Entries with a random part ran with the seeds \
         {seeds}.</p>\n{body}</body>\n</html>\n"
    )
}

/// Text for HTML.
fn escaped(text: &str) -> String {
    let text = aerostat_lab::printable::lines(text);
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// The anchor of an entry or a lab.
fn anchor(name: &str) -> String {
    escaped(&name.replace(['/', '.', ' '], "-"))
}

/// A number with four significant digits, or all of a whole number.
fn number(value: f64) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    let digits = if value == 0.0 {
        0.0
    } else {
        value.abs().log10().floor()
    };
    let decimals = (3.0 - digits).clamp(0.0, 6.0) as usize;
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text
            .trim_end_matches('0')
            .trim_end_matches('.')
            .replace('-', "−"),
        false => text.replace('-', "−"),
    }
}

const TIERS: [(Tier, &str, &str); 5] = [
    (Tier::A, "A", "physics"),
    (Tier::B, "B", "a calibrated host"),
    (Tier::C, "C", "about 15 %"),
    (Tier::D, "D", "shape, order, a factor of 2"),
    (Tier::E, "E", "not reproducible, never scored"),
];

impl Report<'_> {
    fn of(&self, entry: &Entry) -> Vec<&Score<'_>> {
        let mine = self
            .scores
            .iter()
            .filter(|score| score.entry.name == entry.name);
        mine.copied().collect()
    }

    /// All tiers, all entries, all misses.
    fn summary(&self, out: &mut String) {
        let _ = writeln!(
            out,
            "<h2>Summary by tier</h2>\n<table>\n<thead><tr><th>tier</th><th>what it claims</th>\
            <th class=\"n\">rows</th><th class=\"n\">ok</th><th class=\"n\">miss</th><th class=\"n\">calibration</th><th class=\"n\">shown</th>\
            <th class=\"n\">predicted, with a printed number</th><th class=\"n\">within 5 %</th><th class=\"n\">within 20 %</th></tr></thead>\n<tbody>"
        );
        for (tier, name, what) in TIERS {
            let rows = self.scores.iter().filter(|score| score.row.tier == tier);
            let rows: Vec<&Score<'_>> = rows.copied().collect();
            if !rows.is_empty() {
                tier_row(out, name, what, &rows);
            }
        }
        tier_row(out, "all", "", &self.scores);
        let _ = writeln!(
            out,
            "</tbody></table>\n<p class=\"small\">A row is <b>ok</b> or a <b>miss</b> by its rule; a \
            <b>calibration</b> fits a parameter, so its value is no prediction; nothing is claimed of a row that is \
            <b>shown</b>. The shares are of the predicted rows (neither calibration nor tier E) for which the paper \
            prints a number.</p>"
        );
        self.contents(out);
        self.misses(out);
    }

    fn contents(&self, out: &mut String) {
        let _ = writeln!(
            out,
            "<h2>Entries</h2>\n<table>\n<thead><tr><th>entry</th><th>what</th><th>source</th>\
            <th class=\"n\">rows</th><th class=\"n\">ok</th><th class=\"n\">miss</th></tr></thead>\n<tbody>"
        );
        for entry in self.entries {
            let scores = self.of(entry);
            let count = |result: &str| scores.iter().filter(|score| score.result == result).count();
            let _ = writeln!(
                out,
                "<tr><td class=\"e\"><a href=\"#{}\">{}</a></td><td>{}</td><td>{}</td><td class=\"n\">{}</td>\
                 <td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
                anchor(&entry.name),
                escaped(&entry.name),
                escaped(&entry.what),
                escaped(&entry.title),
                scores.len(),
                count("ok"),
                count("miss"),
            );
        }
        out.push_str("</tbody></table>\n");
    }

    fn misses(&self, out: &mut String) {
        let misses = self.scores.iter().filter(|score| score.result == "miss");
        let misses: Vec<&&Score<'_>> = misses.collect();
        let _ = writeln!(out, "<h2>Misses</h2>");
        if misses.is_empty() {
            out.push_str("<p>No row is a miss.</p>\n");
            return;
        }
        let _ = writeln!(
            out,
            "<table>\n<thead><tr><th>entry</th><th>row</th><th class=\"n\">model</th><th>paper</th>\
            <th>rule</th><th>reason</th></tr></thead>\n<tbody>"
        );
        for score in misses {
            let reason = reason(&score.entry.name, &score.row.row);
            let _ = writeln!(
                out,
                "<tr><td class=\"e\"><a href=\"#{}\">{}</a></td><td>{}</td><td class=\"n\">{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                anchor(&score.entry.name),
                escaped(&score.entry.name),
                escaped(&score.row.row),
                valued(score),
                printed(score),
                escaped(&score.rule),
                reason.map_or("not known".into(), |reason| escaped(&reason)),
            );
        }
        out.push_str("</tbody></table>\n");
    }

    /// An entry: what it is, drawings, rows, parameters, changes of the lab.
    fn entry(
        &self,
        out: &mut String,
        entry: &Entry,
        drawn: &[(String, String)],
    ) -> Result<(), Failure> {
        let seeds = self.seeds.filter(|_| entry.random);
        let seeds = seeds.map_or_else(String::new, |seeds| format!(" --seeds {seeds}"));
        let _ = writeln!(
            out,
            "<section id=\"{}\">\n<h2>{}: {}</h2>\n<p>{}. Values in {}. Lab: <a href=\"#lab-{}\">labs/papers/{}.atm.yml</a>. \
             {}</p>\n<p><code>aerostat reproduce {}{}</code></p>",
            anchor(&entry.name),
            escaped(&entry.name),
            escaped(&entry.what),
            escaped(&entry.title),
            escaped(&entry.unit),
            anchor(&entry.lab),
            escaped(&entry.lab),
            if entry.random {
                "Model: median of the seeds."
            } else {
                "No random part: one run for each row, seed 1."
            },
            escaped(&entry.name),
            escaped(&seeds),
        );
        for (name, svg) in drawn {
            // The name tells where the same drawing is as a file.
            let _ = writeln!(out, "<figure>{svg}<figcaption>{name}</figcaption></figure>");
        }
        if let Some(stacks) = super::stacks(entry)? {
            let _ = writeln!(out, "<p>TCP: {}.</p>", escaped(&stacks));
        }
        let scores = self.of(entry);
        self.rows(out, entry, &scores);
        self.parameters_of(out, entry);
        changes(out, entry, &scores, self.parameters)?;
        out.push_str("</section>\n");
        Ok(())
    }

    fn rows(&self, out: &mut String, entry: &Entry, scores: &[&Score<'_>]) {
        let range = if entry.random {
            "<th class=\"n\">range</th><th class=\"n\">seeds</th>"
        } else {
            ""
        };
        let _ = writeln!(
            out,
            "<table>\n<thead><tr><th>row</th><th class=\"n\">model</th>{range}<th>paper</th><th>where</th>\
            <th class=\"n\">error</th><th>tier</th><th>rule</th><th>result</th></tr></thead>\n<tbody>"
        );
        for score in scores {
            let _ = write!(
                out,
                "<tr><td>{}</td><td class=\"n\">{}</td>",
                escaped(&score.row.row),
                valued(score)
            );
            if let (true, Some(low), Some(high)) =
                (entry.random, score.values.first(), score.values.last())
            {
                let seeds = score.values.len();
                let _ = write!(
                    out,
                    "<td class=\"n\">{} to {}</td><td class=\"n\">{seeds}</td>",
                    number(*low),
                    number(*high)
                );
            } else if entry.random {
                out.push_str("<td></td><td></td>");
            }
            let error = score.error.map_or(String::new(), |error| {
                format!("{error:+.1} %").replace('-', "−")
            });
            let tier = TIERS
                .iter()
                .find(|tier| tier.0 == score.row.tier)
                .map_or("", |tier| tier.1);
            let _ = writeln!(
                out,
                "<td>{}</td><td>{}</td><td class=\"n\">{error}</td><td>{tier}</td><td>{}</td><td class=\"{}\">{}</td></tr>",
                printed(score),
                escaped(&score.place),
                escaped(&score.rule),
                score.result,
                score.result,
            );
        }
        out.push_str("</tbody></table>\n");
    }

    fn parameters_of(&self, out: &mut String, entry: &Entry) {
        let names = entry.parameters();
        let used: Vec<_> = self
            .parameters
            .iter()
            .filter(|(name, _)| names.contains(*name))
            .collect();
        if used.is_empty() {
            return;
        }
        let _ = writeln!(
            out,
            "<table>\n<thead><tr><th>parameter</th><th class=\"n\">value</th><th>what it is</th><th>origin</th>\
            </tr></thead>\n<tbody>"
        );
        for (name, parameter) in used {
            let from = escaped(&parameter.from);
            let from = match &parameter.row {
                Some(row) => format!("fitted from {from}, {}", escaped(row)),
                None => from,
            };
            let _ = writeln!(
                out,
                "<tr><td><code>{}</code></td><td class=\"n\">{} {}</td><td>{}</td><td>{from}</td></tr>",
                escaped(name),
                number(parameter.value),
                escaped(&parameter.unit),
                escaped(&parameter.what),
            );
        }
        out.push_str("</tbody></table>\n");
    }

    /// The files of all labs that entries use.
    fn labs(&self, out: &mut String) -> Result<(), Failure> {
        let of_rows = self
            .scores
            .iter()
            .filter_map(|score| score.row.lab.as_deref());
        let labs = self.entries.iter().map(|entry| &*entry.lab);
        let labs: BTreeSet<&str> = labs.chain(of_rows).collect();
        let _ = writeln!(out, "<section>\n<h2>Lab files</h2>");
        for lab in labs {
            let _ = writeln!(
                out,
                "<h3 id=\"lab-{}\">labs/papers/{}.atm.yml</h3>\n<pre>{}</pre>",
                anchor(lab),
                escaped(lab),
                escaped(catalogue::lab(lab)?.trim_end()),
            );
        }
        out.push_str("</section>\n");
        Ok(())
    }
}

fn tier_row(out: &mut String, name: &str, what: &str, rows: &[&Score<'_>]) {
    let count = |result: &str| rows.iter().filter(|score| score.result == result).count();
    let predicted = rows
        .iter()
        .filter(|score| score.result != "calibration" && score.row.tier != Tier::E);
    let errors: Vec<f64> = predicted
        .filter_map(|score| score.error)
        .map(f64::abs)
        .collect();
    let share = |limit: f64| match errors.len() {
        0 => String::new(),
        all => {
            let near = errors.iter().filter(|error| **error <= limit).count();
            format!("{near} ({:.0} %)", near as f64 / all as f64 * 100.0)
        }
    };
    let _ = writeln!(
        out,
        "<tr><td><b>{name}</b></td><td>{what}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
         <td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
        rows.len(),
        count("ok"),
        count("miss"),
        count("calibration"),
        count("shown"),
        errors.len(),
        share(5.0),
        share(20.0),
    );
}

/// The value of a row, with its unit if that is not the entry's.
fn valued(score: &Score<'_>) -> String {
    let value = number(median(&score.values));
    match &score.row.unit {
        Some(unit) if !score.values.is_empty() => format!("{value} {}", escaped(unit)),
        _ => value,
    }
}

/// What the paper has: its number, or its words.
fn printed(score: &Score<'_>) -> String {
    match (score.paper, &score.says) {
        (Some(value), _) => format!("<span class=\"n\">{}</span>", number(value)),
        (None, Some(says)) => format!("“{}”", escaped(says)),
        (None, None) => String::new(),
    }
}

/// The keys of the lab that rows change, with the values of parameters.
fn changes(
    out: &mut String,
    entry: &Entry,
    scores: &[&Score<'_>],
    parameters: &Parameters,
) -> Result<(), Failure> {
    let common = entry.common();
    let line =
        |out: &mut String, name: &str, keys: &mut dyn Iterator<Item = (&String, &String)>| {
            let keys = keys.map(|(path, value)| {
                let value = catalogue::filled(value, parameters)?;
                Ok(format!(
                    "<code>{}={}</code>",
                    escaped(path),
                    escaped(&value)
                ))
            });
            let keys: Vec<String> = keys.collect::<Result<_, Failure>>()?;
            if !keys.is_empty() {
                let _ = writeln!(
                    out,
                    "<tr><td>{}</td><td>{}</td></tr>",
                    escaped(name),
                    keys.join(" ")
                );
            }
            Ok::<(), Failure>(())
        };
    let mut lines = String::new();
    line(&mut lines, "all rows", &mut common.iter())?;
    for score in scores {
        let all = entry.changes(score.row);
        let mut own = all
            .iter()
            .filter(|(path, value)| common.get(*path) != Some(*value));
        let name = match &score.row.lab {
            Some(lab) => format!("{} (lab {lab})", score.row.row),
            None => score.row.row.clone(),
        };
        line(&mut lines, &name, &mut own)?;
    }
    if !lines.is_empty() {
        let _ = writeln!(
            out,
            "<table class=\"keys\">\n<thead><tr><th>row</th><th>keys of the lab</th></tr></thead>\n\
            <tbody>{lines}</tbody></table>"
        );
    }
    Ok(())
}

/// The reason of a miss: an entry of the list in the document that names the row, or the entry.
fn reason(entry: &str, row: &str) -> Option<String> {
    let section = DOCUMENT.split("\n## Misses\n").nth(1)?;
    let section = section.split("\n## ").next()?;
    let quoted = format!("`{entry}`");
    let items = section
        .split("\n- ")
        .map(|item| item.split_whitespace().collect::<Vec<_>>().join(" "));
    let items: Vec<String> = items.filter(|item| item.contains(&quoted)).collect();
    let exact = items.iter().find(|item| item.contains(row));
    // "5 segments" is also in "1, 2 and 5 segments".
    let first = row.split_whitespace().next().unwrap_or(row);
    let near = || {
        items.iter().find(|item| {
            item.split(|c: char| !c.is_alphanumeric())
                .any(|word| word == first)
        })
    };
    exact
        .or_else(near)
        .or(items.first())
        .map(|item| item.trim_start_matches("- ").replace('`', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits_and_text_cannot_be_markup() {
        for (value, text) in [
            (135.2099, "135.2"),
            (26_414.2, "26414"),
            (0.012_346, "0.01235"),
            (-3.0, "−3"),
            (0.0, "0"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(number(value), text);
        }
        assert_eq!(
            escaped("<a href=\"x\">&"),
            "&lt;a href=&quot;x&quot;&gt;&amp;"
        );
    }

    #[test]
    fn reasons_of_misses_are_those_of_the_document() {
        let found = reason("sara/1", "1 segments").unwrap();
        assert!(found.starts_with("sara/1, 1 segment"), "{found}");
        assert!(
            reason("sara/2", "3 segments")
                .unwrap()
                .starts_with("sara/2, 3 segments")
        );
        assert_eq!(reason("no/1", "row"), None);
    }
}
