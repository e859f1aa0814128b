//! The results of several runs in one stream, in the order of the runs.

use super::Output;
use crate::args::RunArgs;
use crate::exit::{Exit, Failure};
use crate::output::{Format, quoted};
use aerostat_lab::files::{Named, write_whole};
use aerostat_live::charset;
use aerostat_sweep::variants::Variant;
use serde_json::{Value, json};
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Name and version of the document of several runs.
const SCHEMA: &str = "aerostat.runs.v1";

/// With `--out`: the file that lists the runs.
pub(super) const INDEX: &str = "runs.json";

/// The writer of results.
pub(super) struct Results<'a> {
    args: &'a RunArgs,
    /// Names of the columns by which runs differ.
    columns: Vec<String>,
    /// True once something has been written.
    begun: bool,
    /// With `--out`: the runs so far.
    index: Vec<Value>,
}

impl<'a> Results<'a> {
    pub(super) fn new(args: &'a RunArgs, variants: &[Variant]) -> Self {
        let first = variants.first().map(Variant::columns).unwrap_or_default();
        Self {
            args,
            columns: first.into_iter().map(|(name, _)| name).collect(),
            begun: false,
            index: Vec::new(),
        }
    }

    /// Writes the results of the next run. A run that has failed left an incomplete output or nothing.
    pub(super) fn add(
        &mut self,
        variant: &Variant,
        exit: Exit,
        output: Option<Output>,
    ) -> Result<(), Failure> {
        if self.args.results.out.is_some() {
            self.index.push(json!({
                "run": variant.object(),
                "directory": variant.directory(),
                "exit": exit as u8,
            }));
            return Ok(());
        }
        let output = output.filter(|_| exit != Exit::Failed);
        let text = output.map(|output| output.out).unwrap_or_default();
        let mut out = io::stdout().lock();
        match self.args.results.output.output {
            Format::Table => table(&mut out, variant, &text, self.begun)?,
            Format::Json => document(&mut out, variant, exit, &text, self.begun)?,
            Format::Jsonl => lines(&mut out, variant, &text)?,
            Format::Csv => self.csv(&mut out, variant, &text)?,
        }
        out.flush()?;
        self.begun |= self.args.results.output.output == Format::Json || !text.is_empty();
        Ok(())
    }

    /// Writes the end, with the runs that have not begun because of Ctrl-C.
    pub(super) fn finish(self, missing: &[Variant]) -> Result<(), Failure> {
        let missing = missing
            .iter()
            .map(|variant| Value::Object(variant.object()));
        let missing = Value::Array(missing.collect());
        if let Some(directory) = &self.args.results.out {
            let index = json!({ "schema": SCHEMA, "runs": self.index, "not_begun": missing });
            let wrote = write_index(directory, &index);
            return wrote
                .map_err(|error| Failure::failed(format!("{}: {error}", directory.display())));
        }
        if self.args.results.output.output == Format::Json {
            let mut out = io::stdout().lock();
            if !self.begun {
                writeln!(out, "{{\"schema\":\"{SCHEMA}\",\"runs\":[")?;
            }
            writeln!(out, "],\"not_begun\":{missing}}}")?;
        }
        Ok(())
    }

    /// The rows, with columns for settings and seed in front of them. All runs share one header.
    fn csv(&self, out: &mut impl Write, variant: &Variant, text: &str) -> io::Result<()> {
        let mut records = records(text);
        if let Some(header) = records.next()
            && !self.begun
        {
            let columns: Vec<String> = self.columns.iter().map(|name| quoted(name)).collect();
            write!(out, "{},{header}", columns.join(","))?;
        }
        let own = variant.columns();
        let own = own.iter().map(|(_, value)| match value {
            Value::String(text) => quoted(text),
            other => other.to_string(),
        });
        let own = own.collect::<Vec<_>>().join(",");
        records.try_for_each(|record| write!(out, "{own},{record}"))
    }
}

fn write_index(directory: &Path, index: &Value) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let file = directory.join(INDEX);
    write_whole(&file, Named::ByProgram, |out| writeln!(out, "{index:#}"))
}

fn table(out: &mut impl Write, variant: &Variant, text: &str, begun: bool) -> io::Result<()> {
    if begun && !text.is_empty() {
        writeln!(out)?;
    }
    if !text.is_empty() {
        let title = format!("run {variant}");
        let title = aerostat_lab::printable::lines(&title);
        // The runs themselves have written what the locale can show.
        write!(out, "{}\n{text}", charset::shown(&title))?;
    }
    Ok(())
}

/// One run in the document of all runs; its own document is left as it is.
fn document(
    out: &mut impl Write,
    variant: &Variant,
    exit: Exit,
    text: &str,
    begun: bool,
) -> io::Result<()> {
    let lead = if begun {
        ",\n".to_owned()
    } else {
        format!("{{\"schema\":\"{SCHEMA}\",\"runs\":[\n")
    };
    let (run, exit) = (Value::Object(variant.object()), exit as u8);
    let results = Some(text.trim_end()).filter(|text| !text.is_empty());
    let results = results.unwrap_or("null");
    write!(
        out,
        "{lead}{{\"run\":{run},\"exit\":{exit},\"results\":{results}}}"
    )
}

/// Rows as objects on lines, with the run in front.
fn lines(out: &mut impl Write, variant: &Variant, text: &str) -> io::Result<()> {
    let run = Value::Object(variant.object());
    // Each line is an object with at least one member.
    let rows = text.lines().filter_map(|line| line.strip_prefix('{'));
    rows.into_iter()
        .try_for_each(|row| writeln!(out, "{{\"run\":{run},{row}"))
}

/// The records of comma-separated values with their ends of line; a value in quotation marks may have several lines.
fn records(text: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    text.split_inclusive(move |c| {
        inside ^= c == '"';
        c == '\n' && !inside
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use aerostat_sweep::variants::Setting;

    fn variant() -> Variant {
        Variant {
            settings: vec![Setting {
                option: "--sweep",
                path: "a.b".into(),
                value: "[1,2]".into(),
            }],
            seed: Some(7),
        }
    }

    #[test]
    fn a_record_with_lines_in_quotation_marks_is_one_record() {
        let all: Vec<_> = records("x,y\n1,\"a\n\"\"b\"\nc,d\n").collect();
        assert_eq!(all, ["x,y\n", "1,\"a\n\"\"b\"\n", "c,d\n"]);
    }

    #[test]
    fn the_document_of_runs_is_json_with_each_document_unchanged() {
        let mut out = Vec::new();
        document(
            &mut out,
            &variant(),
            Exit::Ok,
            "{\n  \"x\": 1.50\n}\n",
            false,
        )
        .unwrap();
        document(&mut out, &variant(), Exit::Failed, "", true).unwrap();
        let text = String::from_utf8(out).unwrap() + "]}";
        assert!(text.contains("{\n  \"x\": 1.50\n}"), "{text}");
        let all: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(all["schema"], SCHEMA);
        assert_eq!(all["runs"][0]["run"], json!({ "a.b": "[1,2]", "seed": 7 }));
        assert_eq!(all["runs"][0]["results"], json!({ "x": 1.5 }));
        assert_eq!(all["runs"][1]["exit"], 1);
        assert!(all["runs"][1]["results"].is_null());
    }
}
