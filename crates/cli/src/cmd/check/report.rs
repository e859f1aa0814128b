//! Reports about the checks of one lab.

use crate::args::ReportFormat;
use crate::exit::Failure;
use crate::output::{self, Form, Format, Rows};
use aerostat_lab::Checked;
use aerostat_lab::checks::{Judged, Level, Verdict};
use aerostat_lab::printable;
use aerostat_lab::results::Time;
use aerostat_live::charset;
use aerostat_wire::counted;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{self, Write as _};

/// Name and version of the JSON document.
pub(super) const SCHEMA: &str = "aerostat.check.v1";

/// The verdicts about a lab.
pub(super) struct Report<'a> {
    pub(super) checked: &'a Checked,
    pub(super) judged: &'a [Judged<'a>],
    /// The kind of time in which the lab ran.
    pub(super) time: Time,
    /// True to tell what was found and wanted.
    pub(super) details: bool,
}

impl Report<'_> {
    /// Writes the report to standard output.
    pub(super) fn write(&self, format: ReportFormat) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        match format {
            ReportFormat::Table => charset::stdout().write_all(self.lines().as_bytes())?,
            ReportFormat::Json => writeln!(out, "{:#}", self.json())?,
            ReportFormat::Junit => out.write_all(self.junit().as_bytes())?,
            ReportFormat::Tap => out.write_all(self.tap().as_bytes())?,
            ReportFormat::Csv => {
                drop(out);
                output::write(Form::new(Format::Csv, false), SCHEMA, &[self.rows()])?;
            }
        }
        Ok(())
    }

    fn count(&self, verdict: Verdict) -> usize {
        let all = self.judged.iter();
        all.filter(|one| one.verdict == verdict).count()
    }

    /// Points that were reached.
    fn points(&self) -> u64 {
        self.judged.iter().map(|one| one.points).sum()
    }

    /// Points that can be reached.
    fn most_points(&self) -> u64 {
        self.judged.iter().map(|one| one.check.points).sum()
    }

    fn text(&self, one: &Judged<'_>) -> String {
        match (self.details, one.text.as_str()) {
            (false, text) => text.to_owned(),
            (true, "") => one.details.clone(),
            (true, text) if text == one.details => text.to_owned(),
            (true, text) => format!("{text} ({})", one.details),
        }
    }

    /// One verdict about all: the worst.
    fn verdict(&self) -> Verdict {
        let worst = [Verdict::Failed, Verdict::Unjudged, Verdict::Warned];
        let found = worst.into_iter().find(|one| self.count(*one) > 0);
        found.unwrap_or(Verdict::Passed)
    }

    fn lines(&self) -> String {
        let (mut text, mut stage) = (String::new(), None);
        for one in self.judged {
            if one.check.stage != stage {
                stage.clone_from(&one.check.stage);
                let name = stage.as_deref().unwrap_or("without a stage");
                let _ = writeln!(text, "{}", printable::line(name));
            }
            let points = match one.check.points {
                0 => String::new(),
                of => format!("{}/{of}", one.points),
            };
            let verdict = one.verdict.name();
            let title = printable::line(&one.check.title);
            let _ = writeln!(text, "  {verdict:<8}  {points:>5}  {title}");
            let told = self.text(one);
            for line in told.lines() {
                let _ = writeln!(text, "                   {}", printable::line(line));
            }
        }
        let (points, of) = (self.points(), self.most_points());
        let mut parts = Vec::new();
        for verdict in Verdict::ALL {
            let count = self.count(verdict);
            if count > 0 {
                parts.push(match verdict {
                    Verdict::Passed => format!("{count} passed"),
                    Verdict::Failed => format!("{count} failed"),
                    Verdict::Warned => counted(count, "warning", "warnings").to_string(),
                    Verdict::Unjudged => format!("{count} cannot be judged here"),
                    Verdict::Skipped => format!("{count} not judged"),
                });
            }
        }
        let _ = writeln!(
            text,
            "{points} of {}: {}",
            counted(of, "point", "points"),
            parts.join(", ")
        );
        text
    }

    fn object(&self, number: usize, one: &Judged<'_>) -> Value {
        let mut object = json!({
            "number": number,
            "stage": one.check.stage,
            "title": one.check.title,
            "level": match one.check.level {
                Level::Required => "required",
                Level::Warning => "warning",
            },
            "verdict": one.verdict.name(),
            "points": one.points,
            "of": one.check.points,
            "text": one.text,
        });
        if self.details {
            object["details"] = one.details.clone().into();
        }
        object
    }

    fn json(&self) -> Value {
        let (points, of) = (self.points(), self.most_points());
        let all = (1..).zip(self.judged);
        let checks: Vec<Value> = all.map(|(number, one)| self.object(number, one)).collect();
        json!({
            "schema": SCHEMA,
            "lab": self.checked.lab.name,
            "lab_sha256": self.checked.digest,
            "time": self.time.name(),
            "verdict": self.verdict().name(),
            "points": points,
            "of": of,
            "checks": checks,
        })
    }

    fn rows(&self) -> Rows {
        let columns = [
            "number", "stage", "title", "level", "verdict", "points", "of", "text",
        ];
        let mut rows = Rows::new(&columns);
        for (number, one) in (1..).zip(self.judged) {
            let object = self.object(number, one);
            let mut row: Vec<Value> = columns.map(|name| object[name].clone()).into();
            row[7] = self.text(one).into();
            rows.push(row);
        }
        rows
    }

    /// Source: testanything.org, version 14.
    fn tap(&self) -> String {
        let mut text = format!("TAP version 14\n1..{}\n", self.judged.len());
        for (number, one) in (1..).zip(self.judged) {
            let plain = |text: &str| {
                let text = printable::line(text).replace('\\', "\\\\");
                text.replace('#', "\\#")
            };
            let (ok, directive) = match one.verdict {
                Verdict::Passed => ("ok", ""),
                Verdict::Failed => ("not ok", ""),
                Verdict::Warned => ("not ok", " # TODO warning"),
                Verdict::Unjudged | Verdict::Skipped => ("ok", " # SKIP not judged"),
            };
            let title = plain(&one.check.title);
            let _ = writeln!(text, "{ok} {number} - {title}{directive}");
            let told = self.text(one);
            if !told.is_empty() {
                // A JSON string is a YAML string, too.
                let told = Value::from(told);
                let _ = writeln!(text, "  ---\n  message: {told}\n  ...");
            }
        }
        text
    }

    fn junit(&self) -> String {
        let failed = self.count(Verdict::Failed);
        let skipped = self.count(Verdict::Unjudged) + self.count(Verdict::Skipped);
        let (count, lab) = (self.judged.len(), xml(&self.checked.lab.name));
        let mut text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"{lab}\" tests=\"{count}\" \
             failures=\"{failed}\" errors=\"0\" skipped=\"{skipped}\">\n"
        );
        for one in self.judged {
            let class = one.check.stage.as_deref().unwrap_or(&self.checked.lab.name);
            let (class, title) = (xml(class), xml(&one.check.title));
            let told = xml(&self.text(one));
            let inside = match one.verdict {
                Verdict::Passed if told.is_empty() => String::new(),
                Verdict::Passed => format!("<system-out>{told}</system-out>"),
                Verdict::Warned => format!("<system-out>warning: {told}</system-out>"),
                Verdict::Failed => format!("<failure message=\"{told}\"/>"),
                Verdict::Unjudged | Verdict::Skipped => format!("<skipped message=\"{told}\"/>"),
            };
            let _ = writeln!(
                text,
                "<testcase classname=\"{class}\" name=\"{title}\">{inside}</testcase>"
            );
        }
        text.push_str("</testsuite>\n</testsuites>\n");
        text
    }
}

/// A text in XML; characters that XML 1.0 does not have are left out.
fn xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => escaped.push(c),
        }
    }
    escaped
}
