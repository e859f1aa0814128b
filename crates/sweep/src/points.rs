//! The runs of a sweep: points of a file, all combinations of values, seeds.

use crate::failure::Failure;
use crate::variants::{Setting, Variant, grid, too_many, with_seeds};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::Path;

/// Most runs of one sweep.
pub const MOST: usize = 100_000;

/// Largest file of points, octets.
const MAX_FILE: u64 = 64 << 20;

/// Options of a sweep that say which runs there are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    /// Values of keys, as `PATH=VALUE,VALUE`; all combinations.
    pub set: &'a [String],
    /// File of points.
    pub points: Option<&'a Path>,
    /// Seeds, as `1-8,20`.
    pub seeds: Option<&'a str>,
    /// When all runs end.
    pub until: Option<&'a str>,
}

/// The runs in their order: the points of the file, each with all combinations of `--set`, each with all seeds.
///
/// # Errors
/// [`Kind::Usage`](crate::failure::Kind::Usage): a list or a file that cannot be read, a run that stands twice, or more
/// than 100 000 runs.
pub fn of(asked: &Asked<'_>) -> Result<Vec<Variant>, Failure> {
    let all = match asked.points {
        None => vec![Variant::default()],
        Some(path) => of_file(path)?,
    };
    if asked.seeds.is_some() && all.iter().any(|variant| variant.seed.is_some()) {
        let text = "the points have seeds of their own, and --seeds gives others";
        return Err(Failure::usage(text).hint("leave out --seeds, or the column 'seed'"));
    }
    let all = grid(all, "--set", asked.set, MOST)?;
    let all = with_seeds(all, asked.seeds, MOST)?;
    distinct(all, asked.until)
}

/// The runs, if no two are the same.
///
/// # Errors
/// [`Kind::Usage`](crate::failure::Kind::Usage): a run stands twice, or a key is `until` beside an end of all runs.
pub fn distinct(all: Vec<Variant>, until: Option<&str>) -> Result<Vec<Variant>, Failure> {
    let swept = |path: &str| {
        all.iter()
            .any(|run| run.settings.iter().any(|one| one.path == path))
    };
    if until.is_some() && swept("until") {
        let text = "a key is 'until', and --until says when all runs end";
        return Err(Failure::usage(text).hint("leave out --until"));
    }
    let mut seen = BTreeSet::new();
    match all.iter().find(|variant| !seen.insert(variant.to_string())) {
        Some(twice) => Err(Failure::usage(format!("the run '{twice}' stands twice"))
            .hint("each point, value and seed once")),
        None => Ok(all),
    }
}

fn of_file(path: &Path) -> Result<Vec<Variant>, Failure> {
    let shown = path.display();
    let wrong = |text: String| Failure::usage(format!("{shown}: {text}"));
    let mut text = String::new();
    let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
    let read = BufReader::new(file)
        .take(MAX_FILE + 1)
        .read_to_string(&mut text);
    let read = read.map_err(|error| wrong(error.to_string()))?;
    if read as u64 > MAX_FILE {
        return Err(wrong(format!(
            "more than {MAX_FILE} octets are too many for points"
        )));
    }
    // A list of objects cannot be a header of CSV, because no key begins with a bracket.
    let points = if text.trim_start().starts_with('[') {
        of_json(&text)
    } else {
        of_csv(&text)
    };
    let points = points.map_err(|text| wrong(text).hint(HINT))?;
    match points.len() {
        0 => Err(wrong("there is no point".into()).hint(HINT)),
        many if many > MOST => Err(too_many(&many.to_string(), MOST)),
        _ => Ok(points),
    }
}

const HINT: &str = "CSV has a header with keys of the lab file and a line for each point; JSON is a list of objects: \
                    [{\"links.s1-s2.delay\": \"5us\"}]";

fn of_csv(text: &str) -> Result<Vec<Variant>, String> {
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| error.to_string())?.clone();
    let mut points = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        let line = record.position().map_or(0, csv::Position::line);
        let cells = header.iter().zip(&record);
        let cells = cells.map(|(key, value)| (key.to_owned(), value.to_owned()));
        points.push(point(cells).map_err(|text| format!("line {line}: {text}"))?);
    }
    Ok(points)
}

fn of_json(text: &str) -> Result<Vec<Variant>, String> {
    let points: Vec<Map<String, Value>> =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    let first: Vec<String> = points.iter().take(1).flat_map(Map::keys).cloned().collect();
    let mut all = Vec::new();
    for (number, object) in points.into_iter().enumerate() {
        let place = |text: String| format!("point {}: {text}", number + 1);
        if !object.keys().eq(&first) {
            return Err(place("its keys are not those of the first point".into()));
        }
        let cells = object.into_iter().map(|(key, value)| match value {
            Value::String(text) => (key, text),
            // JSON is YAML, too.
            other => (key, other.to_string()),
        });
        all.push(point(cells).map_err(place)?);
    }
    Ok(all)
}

/// A point with its keys and values.
fn point(cells: impl Iterator<Item = (String, String)>) -> Result<Variant, String> {
    let mut variant = Variant::default();
    for (path, value) in cells {
        if path.is_empty() {
            return Err("a column has no key".into());
        }
        if value.is_empty() {
            return Err(format!("'{path}' has no value"));
        }
        if path == "seed" {
            let seed = value.parse();
            variant.seed =
                Some(seed.map_err(|_| format!("the seed '{value}' is no whole number"))?);
            continue;
        }
        if variant.settings.iter().any(|one| one.path == path) {
            return Err(format!("the key '{path}' stands twice"));
        }
        variant.settings.push(Setting {
            option: "--points",
            path,
            value,
        });
    }
    Ok(variant)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(points: Result<Vec<Variant>, String>) -> Result<Vec<String>, String> {
        Ok(points?.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn points_of_csv_and_json_are_the_same_runs() {
        let csv = "a.b, c ,seed\n5us,\"[1,2]\",7\n1ms,x,8\n";
        let json =
            r#"[{"a.b": "5us", "c": [1,2], "seed": 7}, {"a.b": "1ms", "c": "x", "seed": 8}]"#;
        let wanted = ["a.b=5us,c=[1,2],seed=7", "a.b=1ms,c=x,seed=8"];
        assert_eq!(names(of_csv(csv)).unwrap(), wanted);
        assert_eq!(names(of_json(json)).unwrap(), wanted);
    }

    #[test]
    fn mistakes_in_points_are_told_with_their_places() {
        for (text, says) in [
            ("a,b\n1\n", "record 1"),
            ("a,b\n1,\n", "line 2: 'b' has no value"),
            ("a,a\n1,2\n", "line 2: the key 'a' stands twice"),
            ("seed\nx\n", "line 2: the seed 'x' is no whole number"),
            (",b\n1,2\n", "line 2: a column has no key"),
        ] {
            let error = names(of_csv(text)).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
        let error = names(of_json(r#"[{"a": 1}, {"b": 1}]"#)).unwrap_err();
        assert_eq!(error, "point 2: its keys are not those of the first point");
        assert!(names(of_json("[1]")).is_err());
    }
}
