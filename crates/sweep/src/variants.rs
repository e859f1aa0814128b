//! The runs that `--seeds` and `--sweep` ask for.

use crate::failure::Failure;
use aerostat_lab::Override;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt;

/// Most runs of one command.
const MOST: usize = 10_000;

/// One run: what differs from the other runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    /// Changes of the lab file.
    pub settings: Vec<Setting>,
    /// The seed, if `--seeds` names it.
    pub seed: Option<u64>,
}

/// A change of the lab file in one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The option that says so.
    pub option: &'static str,
    /// Path in the lab file.
    pub path: String,
    /// Value, as YAML.
    pub value: String,
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = self.settings.iter().map(Setting::change);
        let seed = self.seed.map(|seed| format!("seed={seed}"));
        f.write_str(&settings.chain(seed).collect::<Vec<_>>().join(","))
    }
}

impl Variant {
    /// The settings as changes of the file.
    pub fn overrides(&self) -> Vec<Override> {
        let settings = self.settings.iter();
        settings
            .map(|setting| Override::new(setting.option, setting.change()))
            .collect()
    }

    /// The name of its directory.
    pub fn directory(&self) -> String {
        let plain = |c: char| if c == '/' || c.is_control() { '_' } else { c };
        self.to_string().chars().map(plain).collect()
    }

    /// The settings in the order of the command, and the seed, with their names.
    pub fn columns(&self) -> Vec<(String, Value)> {
        let settings = self.settings.iter();
        let settings = settings.map(|one| (one.path.clone(), one.value.as_str().into()));
        let seed = self.seed.map(|seed| ("seed".to_owned(), seed.into()));
        settings.chain(seed).collect()
    }

    /// The same as an object.
    pub fn object(&self) -> Map<String, Value> {
        self.columns().into_iter().collect()
    }
}

impl Setting {
    /// `PATH=VALUE`.
    fn change(&self) -> String {
        format!("{}={}", self.path, self.value)
    }
}

/// The runs in their order: the last setting changes faster than the first one, and the seed changes fastest.
pub fn of(seeds: Option<&str>, sweep: &[String]) -> Result<Vec<Variant>, Failure> {
    let all = grid(vec![Variant::default()], "--sweep", sweep, MOST)?;
    let all = with_seeds(all, seeds, MOST)?;
    let mut seen = BTreeSet::new();
    match all.iter().find(|variant| !seen.insert(variant.directory())) {
        Some(twice) => {
            let text = format!("two runs would have the name {}", twice.directory());
            Err(Failure::usage(text).hint("'/' and control characters count as '_'"))
        }
        None => Ok(all),
    }
}

/// Each variant with all combinations of the values that `words` has under `option`, at most `most` of them.
pub fn grid(
    mut all: Vec<Variant>,
    option: &'static str,
    words: &[String],
    most: usize,
) -> Result<Vec<Variant>, Failure> {
    let settings = all.first().map(|first| first.settings.iter());
    let known = settings.into_iter().flatten().map(|one| one.path.clone());
    let mut paths: BTreeSet<String> = known.collect();
    for words in words {
        let (path, values) = setting(option, words)?;
        if path == "seed" {
            let text = format!("{option} cannot vary the seed");
            return Err(Failure::usage(text).hint("--seeds 1-8"));
        }
        if !paths.insert(path.to_owned()) {
            let text = format!("{option} names '{path}', which varies already");
            return Err(Failure::usage(text).hint("all values of a key belong together: a.b=1,2"));
        }
        all = each(&all, &values, most, |variant, value| {
            variant.settings.push(Setting {
                option,
                path: path.to_owned(),
                value: (*value).to_owned(),
            });
        })?;
    }
    Ok(all)
}

/// Each variant with each of these seeds, at most `most` of them.
pub fn with_seeds(
    all: Vec<Variant>,
    seeds: Option<&str>,
    most: usize,
) -> Result<Vec<Variant>, Failure> {
    let Some(seeds) = seeds else {
        return Ok(all);
    };
    each(&all, &numbers(seeds)?, most, |variant, seed| {
        variant.seed = Some(*seed);
    })
}

/// Each variant with each of these values.
fn each<T>(
    variants: &[Variant],
    values: &[T],
    most: usize,
    set: impl Fn(&mut Variant, &T),
) -> Result<Vec<Variant>, Failure> {
    let count = variants.len().saturating_mul(values.len());
    if count > most {
        return Err(too_many(&count.to_string(), most));
    }
    let with = |variant: &Variant, value: &T| {
        let mut variant = variant.clone();
        set(&mut variant, value);
        variant
    };
    let all = variants.iter();
    Ok(all
        .flat_map(|variant| values.iter().map(move |value| with(variant, value)))
        .collect())
}

/// The failure for more runs than there may be.
pub fn too_many(count: &str, most: usize) -> Failure {
    Failure::usage(format!("{count} runs: {most} are the limit"))
}

/// `PATH=VALUE,VALUE...`; commas in brackets or quotation marks do not separate values.
fn setting<'a>(option: &str, words: &'a str) -> Result<(&'a str, Vec<&'a str>), Failure> {
    let split = words.split_once('=');
    let Some((path, values)) = split.filter(|(path, _)| !path.is_empty()) else {
        let text = format!("{option} '{words}' is not PATH=VALUE,VALUE...");
        return Err(Failure::usage(text).hint(format!("{option} links.s1-s2.delay=5us,1ms,5ms")));
    };
    let (mut depth, mut quote) = (0_usize, None);
    let values = values.split(|c: char| {
        match (quote, c) {
            (Some(open), _) => quote = Some(open).filter(|open| *open != c),
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, _) => {}
        }
        c == ',' && depth == 0 && quote.is_none()
    });
    let values: Vec<&str> = values.map(str::trim).collect();
    if values.iter().any(|value| value.is_empty()) {
        let text = format!("{option} '{words}' has an empty value");
        return Err(Failure::usage(text).hint("values are separated by one comma each"));
    }
    Ok((path, values))
}

/// Seeds such as `1-8,20`.
pub fn numbers(text: &str) -> Result<Vec<u64>, Failure> {
    let wrong = || {
        let text = format!("--seeds '{text}' is not a list of numbers and ranges");
        Failure::usage(text).hint("--seeds 1-8,20 has nine seeds: 1 to 8, and 20")
    };
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            let text = format!("--seeds '{part}' runs backwards");
            return Err(Failure::usage(text).hint(format!("--seeds {last}-{first}")));
        }
        let more = last - first;
        if more >= (MOST - all.len()) as u64 {
            let count = u128::from(more) + 1 + all.len() as u128;
            return Err(too_many(&count.to_string(), MOST));
        }
        all.extend(first..=last);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(seeds: Option<&str>, sweep: &[&str]) -> Result<Vec<String>, String> {
        let sweep: Vec<String> = sweep.iter().map(|&words| words.to_owned()).collect();
        let all = of(seeds, &sweep).map_err(|failure| failure.message)?;
        Ok(all.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn every_combination_is_one_run_and_the_seed_changes_fastest() {
        let all = names(Some("1-2,9"), &["a=x,y", "b.c=[1,2],{d: 3, e: 4}"]).unwrap();
        assert_eq!(all.len(), 12);
        assert_eq!(all[0], "a=x,b.c=[1,2],seed=1");
        assert_eq!(all[2], "a=x,b.c=[1,2],seed=9");
        assert_eq!(all[3], "a=x,b.c={d: 3, e: 4},seed=1");
        assert_eq!(all[11], "a=y,b.c={d: 3, e: 4},seed=9");
        assert_eq!(names(None, &["a=x/y"]).unwrap(), ["a=x/y"]);
        let quoted = names(None, &["a=\"b,c\",d"]).unwrap();
        assert_eq!(quoted, ["a=\"b,c\"", "a=d"]);
        let slash = of(None, &["a=x/y".to_owned()]).unwrap();
        assert_eq!(slash[0].directory(), "a=x_y");
    }

    #[test]
    fn bad_lists_and_too_many_runs_are_refused_with_their_numbers() {
        for bad in ["", "x", "1,,2", "-5", "1-", "18446744073709551616"] {
            let error = names(Some(bad), &[]).unwrap_err();
            assert!(error.contains("is not a list"), "{bad}: {error}");
        }
        let backwards = names(Some("1,8-3"), &[]).unwrap_err();
        assert_eq!(backwards, "--seeds '8-3' runs backwards");
        let many = names(Some("0-18446744073709551615"), &[]).unwrap_err();
        assert_eq!(many, "18446744073709551616 runs: 10000 are the limit");
        assert_eq!(names(Some("1-10000"), &[]).unwrap().len(), 10_000);
        let many = names(Some("1-5001"), &["a=1,2"]).unwrap_err();
        assert_eq!(many, "10002 runs: 10000 are the limit");
        assert!(names(None, &["a"]).is_err() && names(None, &["a=1,,2"]).is_err());
        assert!(names(None, &["seed=1,2"]).is_err());
        assert!(names(None, &["a=1", "a=2"]).is_err());
        // The same seed, and values that have one name as a directory.
        assert!(
            names(Some("1-3,2"), &[])
                .unwrap_err()
                .contains("two runs would have the name")
        );
        assert!(
            names(None, &["a=x/y,x_y"])
                .unwrap_err()
                .contains("two runs would have the name")
        );
    }
}
