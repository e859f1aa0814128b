//! The report: one HTML file without scripts and without anything from elsewhere, and a file for each drawing.

mod live;
mod style;

use super::catalogue::{self, Entry, Parameters};
use super::drawings::trace::Tables;
use super::made;
use super::summary::{Group, Made, TIERS};
use super::{Results, Score, drawings, median};
use crate::exit::Failure;
use crate::plot::Drawing;
use aerostat_lab::files::{Named, write_whole};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;
use style::CSS;

/// The page.
const INDEX: &str = "index.html";

/// Writes the report into a directory; the names of its files.
pub(super) fn write(
    results: &Results<'_>,
    tables: &Tables,
    directory: &Path,
) -> Result<Vec<String>, Failure> {
    let report = Report(results);
    let mut names = Vec::new();
    let failed = |error: io::Error| Failure::failed(format!("{}: {error}", directory.display()));
    std::fs::create_dir_all(directory).map_err(failed)?;
    let whole = |name: &str, text: &str| {
        let file = directory.join(name);
        let written = write_whole(&file, Named::ByProgram, |out| {
            out.write_all(text.as_bytes())
        });
        written.map_err(failed)
    };
    let mut body = String::new();
    report.summary(&mut body);
    if let Some(settings) = &results.live {
        live::machine(&mut body, settings);
    }
    for entry in results.entries {
        let drawings = drawings::of(entry, &report.of(entry), tables);
        let mut drawn = Vec::new();
        for (number, drawing) in drawings.iter().enumerate() {
            let svg = Drawing::svg(drawing).map_err(Failure::failed)?;
            let name = format!("{}-{}.svg", entry.name.replace('/', "-"), number + 1);
            whole(&name, &svg)?;
            names.push(name.clone());
            drawn.push((name, svg));
        }
        report.entry(&mut body, entry, &drawn)?;
    }
    report.labs(&mut body)?;
    whole(INDEX, &page(&body, &results.made))?;
    names.push(INDEX.to_owned());
    Ok(names)
}

/// Results that the report is about.
struct Report<'a>(&'a Results<'a>);

/// The page around its body.
fn page(body: &str, made: &Made) -> String {
    let (program, seeds) = (escaped(&made::words()), escaped(made.seeds()));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>Five papers, reproduced</title>\n<style>{CSS}</style>\n</head>\n<body>\n\
         <h1>Five papers, reproduced</h1>\n\
         <p>{program}. Labs in virtual time, exact and repeatable. Entries with a random part ran with the seeds \
         {seeds}.</p>\n{body}</body>\n</html>\n"
    )
}

/// Text for HTML.
fn escaped(text: &str) -> String {
    aerostat_view::escaped(&aerostat_lab::printable::lines(text))
}

/// The anchor of an entry or a lab.
fn anchor(name: &str) -> String {
    escaped(&name.replace(['/', '.', ' '], "-"))
}

/// A number with four significant digits, or all of a whole number.
pub(super) fn number(value: f64) -> String {
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

impl Report<'_> {
    fn of(&self, entry: &Entry) -> Vec<&Score<'_>> {
        let mine = self
            .0
            .scores
            .iter()
            .filter(|score| score.entry.name == entry.name);
        mine.copied().collect()
    }

    /// All tiers, all papers, all entries, all misses.
    fn summary(&self, out: &mut String) {
        let summary = &self.0.summary;
        let _ = writeln!(
            out,
            "<h2>Summary by tier</h2>\n<table>\n<thead><tr><th>tier</th><th>what it claims</th>{COUNTS}</tr></thead>\n\
             <tbody>"
        );
        for group in &summary.tiers {
            let first = format!(
                "<td class=\"e\"><b>{}</b></td><td>{}</td>",
                group.name, group.what
            );
            counts(out, &first, group);
        }
        let _ = writeln!(
            out,
            "</tbody></table>\n<p class=\"small\">A row is <b>ok</b> or a <b>miss</b> by its rule. Predictions are rows \
            for which the paper prints a number that no part of the model has seen, without tier E; they are within 5 or \
            20 % of it, or within a factor of 2. <b>Fitted</b>: a parameter was fitted to the row or chosen for it. \
            <b>Circular</b>: the lab file sets it, or it repeats a fitted number or value. <b>Row above</b> and \
            <b>wire</b> are baselines: the printed number of the row above, and the rate of the wire, within 20 %.</p>\n\
            <h2>Summary by paper</h2>\n<table>\n<thead><tr><th>paper</th><th class=\"n\">fitted parameters</th>{COUNTS}\
            </tr></thead>\n<tbody>"
        );
        for group in &summary.papers {
            let fitted = group.parameters.unwrap_or_default();
            let name = escaped(&group.name);
            let first = format!("<td><b>{name}</b></td><td class=\"n\">{fitted}</td>");
            counts(out, &first, group);
        }
        out.push_str("</tbody></table>\n");
        self.contents(out);
        self.misses(out);
    }

    fn contents(&self, out: &mut String) {
        let _ = writeln!(
            out,
            "<h2>Entries</h2>\n<table>\n<thead><tr><th>entry</th><th>what</th><th>source</th>\
            <th class=\"n\">rows</th><th class=\"n\">ok</th><th class=\"n\">miss</th></tr></thead>\n<tbody>"
        );
        for entry in self.0.entries {
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
        let misses = self.0.scores.iter().filter(|score| score.result == "miss");
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
        let told = misses.iter().map(|score| {
            let reason = reason(self.0.files.document(), &score.entry.name, &score.row.row);
            (*score, reason.unwrap_or_else(|| "not known".into()))
        });
        let told: Vec<(&&Score<'_>, String)> = told.collect();
        // Neighbours with the same reason share it.
        for group in told.chunk_by(|a, b| a.1 == b.1) {
            for (number, (score, reason)) in group.iter().enumerate() {
                let _ = write!(
                    out,
                    "<tr><td class=\"e\"><a href=\"#{}\">{}</a></td><td class=\"r\">{}</td><td class=\"n\">{}</td><td>{}</td>\
                     <td>{}</td>",
                    anchor(&score.entry.name),
                    escaped(&score.entry.name),
                    escaped(&score.row.row),
                    valued(score),
                    printed(score),
                    escaped(&score.rule),
                );
                if number == 0 {
                    let (rows, reason) = (group.len(), escaped(reason));
                    let _ = write!(out, "<td rowspan=\"{rows}\">{reason}</td>");
                }
                out.push_str("</tr>\n");
            }
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
        let seeds = self.0.made.seeds.as_deref().filter(|_| entry.random);
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
            escaped(&(seeds + &self.0.made.files)),
        );
        for (name, svg) in drawn {
            // The name tells where the same drawing is as a file.
            let _ = writeln!(out, "<figure>{svg}<figcaption>{name}</figcaption></figure>");
        }
        if let Some(stacks) = super::stacks(entry, self.0.files)? {
            let _ = writeln!(out, "<p>TCP: {}.</p>", escaped(&stacks));
        }
        let scores = self.of(entry);
        self.rows(out, entry, &scores);
        if let Some(settings) = &self.0.live {
            live::settings(out, entry, settings);
        }
        self.parameters_of(out, entry);
        changes(out, entry, &scores, &self.0.parameters)?;
        out.push_str("</section>\n");
        Ok(())
    }

    fn rows(&self, out: &mut String, entry: &Entry, scores: &[&Score<'_>]) {
        let range = if entry.random {
            "<th class=\"n\">range</th><th class=\"n\">seeds</th>"
        } else {
            ""
        };
        let live = scores.iter().any(|score| score.live.is_some());
        let live = if live { live::HEADS } else { "" };
        let _ = writeln!(
            out,
            "<table>\n<thead><tr><th>row</th><th class=\"n\">model</th>{range}<th>paper</th><th>where</th>\
            <th class=\"n\">error</th><th>kind</th><th>tier</th><th>rule</th><th>result</th>{live}</tr></thead>\n<tbody>"
        );
        for score in scores {
            self.row(out, entry, score, !live.is_empty());
        }
        out.push_str("</tbody></table>\n");
    }

    fn row(&self, out: &mut String, entry: &Entry, score: &Score<'_>, live: bool) {
        let _ = write!(
            out,
            "<tr><td class=\"r\">{}</td><td class=\"n\">{}</td>",
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
        let tier = TIERS
            .iter()
            .find(|tier| tier.0 == score.row.tier)
            .map_or("", |tier| tier.1);
        let _ = write!(
            out,
            "<td>{}</td><td>{}</td><td class=\"n\">{}</td><td>{}</td><td>{tier}</td><td>{}</td><td class=\"{}\">{}</td>",
            printed(score),
            escaped(&score.place),
            precise(score),
            score.kind.name(),
            escaped(&ruled(score)),
            score.result,
            score.result,
        );
        if live {
            live::cells(out, score);
        }
        out.push_str("</tr>\n");
    }

    fn parameters_of(&self, out: &mut String, entry: &Entry) {
        let names = entry.parameters();
        let used: Vec<_> = self
            .0
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
            let from = escaped(&parameter.origin());
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
            .0
            .scores
            .iter()
            .filter_map(|score| score.row.lab.as_deref());
        let labs = self.0.entries.iter().map(|entry| &*entry.lab);
        let labs: BTreeSet<&str> = labs.chain(of_rows).collect();
        let _ = writeln!(out, "<section>\n<h2>Lab files</h2>");
        for lab in labs {
            let text = self.0.files.lab(lab)?;
            let _ = writeln!(
                out,
                "<h3 id=\"lab-{}\">labs/papers/{}.atm.yml</h3>\n<p class=\"small\">SHA-256: <code>{}</code></p>\n\
                 <pre>{}</pre>",
                anchor(lab),
                escaped(lab),
                aerostat_lab::digest(text, &[]),
                escaped(text.trim_end()),
            );
        }
        out.push_str("</section>\n");
        Ok(())
    }
}

/// A distance from the printed value.
fn distance(error: Option<f64>) -> String {
    error.map_or(String::new(), |error| {
        format!("{error:+.1} %").replace('-', "−")
    })
}

/// The distance from the printed value, also in units of its ± if the paper prints one.
fn precise(score: &Score<'_>) -> String {
    let far = score.in_plus_minus();
    let far = far.map_or_else(String::new, |far| format!(" ({far:.1} ±)"));
    distance(score.error) + &far
}

/// The rule of a row; of an order also how far apart both rows are, here and in the paper.
pub(super) fn ruled(score: &Score<'_>) -> String {
    let Some(effect) = score.effect else {
        return score.rule.clone();
    };
    let share = |value: f64| {
        let decimals = if value.abs() < 1.0 { 2 } else { 0 };
        format!("{value:+.decimals$} %").replace('-', "−")
    };
    let printed = effect
        .printed
        .map(|value| format!(", in the paper {}", share(value)));
    let (rule, here) = (&score.rule, share(effect.model));
    format!("{rule} (nearest: {here}{})", printed.unwrap_or_default())
}

/// Heads of the columns of [`counts`].
const COUNTS: &str = "<th class=\"n\">rows</th><th class=\"n\">scored</th><th class=\"n\">ok</th>\
    <th class=\"n\">miss</th><th class=\"n\">fitted</th><th class=\"n\">circular</th>\
    <th class=\"n\">predictions</th><th class=\"n\">within 5\u{a0}%</th><th class=\"n\">within 20\u{a0}%</th>\
    <th class=\"n\">factor\u{a0}2</th><th class=\"n\">row above</th><th class=\"n\">wire</th>";

/// A row with the numbers of a group.
fn counts(out: &mut String, first: &str, group: &Group) {
    let share = |count: usize| match group.share(count) {
        None => String::new(),
        Some(share) => format!("{count} ({share:.0} %)"),
    };
    let [fitted, circular, ..] = group.kinds;
    let counts = [group.rows, group.scored(), group.ok, group.miss];
    let counts = counts
        .into_iter()
        .chain([fitted, circular, group.predictions])
        .map(|count| count.to_string());
    let baselines = [group.above.within_20, group.wire.within_20];
    let near = group.model.all().into_iter().chain(baselines).map(share);
    let cells = counts.chain(near);
    let cells = cells.map(|cell| format!("<td class=\"n\">{cell}</td>"));
    let _ = writeln!(out, "<tr>{first}{}</tr>", cells.collect::<String>());
}

/// The value of a row, with its unit if that is not the entry's.
fn valued(score: &Score<'_>) -> String {
    let value = number(median(&score.values));
    match &score.row.unit {
        Some(unit) if !score.values.is_empty() => format!("{value} {}", escaped(unit)),
        _ => value,
    }
}

/// Number of the paper, or its words.
fn printed(score: &Score<'_>) -> String {
    match (score.paper, &score.says) {
        (Some(value), _) => {
            let because = score.because.as_ref().filter(|_| score.corrected.is_some());
            let because = because.map_or_else(String::new, |because| {
                let printed = score.printed.map_or_else(|| "–".into(), number);
                format!(" (printed: {printed}; {})", escaped(because))
            });
            format!("<span class=\"n\">{}</span>{because}", number(value))
        }
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
    // Rows that no run gives have no keys, and their parameters no values.
    let modelled = |score: &&&Score<'_>| entry.has_model(score.row);
    let scores: Vec<&&Score<'_>> = scores.iter().filter(modelled).collect();
    if scores.is_empty() {
        return Ok(());
    }
    let common = entry.common(&entry.lab);
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
                    "<tr><td class=\"r\">{}</td><td>{}</td></tr>",
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
pub(super) fn reason(document: &str, entry: &str, row: &str) -> Option<String> {
    let section = document.split("\n## Misses\n").nth(1)?;
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
        let catalogue = catalogue::Catalogue::own();
        let reason = |entry, row| reason(catalogue.files.document(), entry, row);
        let found = reason("sara/1", "1 segments").unwrap();
        assert!(found.starts_with("sara/1, 1 segment"), "{found}");
        assert!(
            reason("thesis/controls", "LANE without costs")
                .unwrap()
                .starts_with("thesis/controls, LANE without costs")
        );
        assert_eq!(reason("no/1", "row"), None);
    }
}
