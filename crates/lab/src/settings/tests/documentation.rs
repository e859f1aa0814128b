//! The documentation of keys says what the reader takes.

use super::{ALL, all_changes, keys, overrides};
use serde_json::Value;

/// A value as it stands in the documentation of a key, and its neighbours outside and inside of a range.
fn value(text: &str) -> Option<Bound> {
    let text = text.trim_end_matches([',', ';', '.', ')']);
    let count = text.parse::<u64>().ok().map(Bound::Count);
    count.or_else(|| Some(Bound::Time(crate::units::duration(text).ok()?.as_millis())))
}

/// An end of a range.
#[derive(Clone, Copy)]
enum Bound {
    Count(u64),
    /// Milliseconds.
    Time(u128),
}

impl Bound {
    /// The value that is `by` greater (a time: milliseconds), as a lab file has it.
    fn moved(self, by: i8) -> Option<String> {
        match self {
            Self::Count(count) => Some(count.checked_add_signed(by.into())?.to_string()),
            Self::Time(ms) => Some(format!("{}ms", ms.checked_add_signed(by.into())?)),
        }
    }
}

/// The range in the documentation of a key: its words and its ends.
fn range(description: &str) -> Option<(String, [Bound; 2])> {
    let words: Vec<&str> = description
        .split_whitespace()
        .filter(|word| !word.starts_with('('))
        .collect();
    words.windows(3).find_map(|three| {
        let [min, "to", max] = *three else {
            return None;
        };
        let ends = [value(min)?, value(max)?];
        let max = max.trim_end_matches([',', ';', '.', ')']);
        Some((format!("{min} to {max}"), ends))
    })
}

/// Description of `Section.key` in the schema.
fn description(schema: &Value, key: &str) -> String {
    let (section, key) = key.split_once('.').unwrap();
    let section = match section {
        "lab" => schema,
        section => &schema["$defs"][section],
    };
    let text = &section["properties"][key]["description"];
    text.as_str().unwrap_or_default().to_owned()
}

#[test]
fn the_range_in_the_documentation_of_a_key_is_the_range_that_the_reader_takes() {
    let schema = crate::schema();
    let mut tested = 0;
    for line in all_changes().lines() {
        let parts: Vec<&str> = line.splitn(3, '|').map(str::trim).collect();
        let [key, before, then] = parts[..] else {
            continue;
        };
        if then.contains('{') {
            continue;
        }
        let Some((words, [min, max])) = range(&description(&schema, key)) else {
            continue;
        };
        let (path, _) = then.rsplit_once('=').unwrap();
        let read = |value: String| {
            let changes = overrides(&format!("{before} {path}={value}"));
            let read = crate::parse("t.atm.yml", ALL, &changes);
            read.err().map_or(String::new(), |d| d.to_string())
        };
        for inside in [min.moved(0), max.moved(0)].into_iter().flatten() {
            // Some times must be less than others, which is another mistake.
            let said = read(inside.clone());
            assert!(!said.contains(&words), "{key}: {inside}: {said}");
        }
        for beyond in [min.moved(-1), max.moved(1)].into_iter().flatten() {
            let said = read(beyond.clone());
            assert!(
                said.contains(&words),
                "{key}: {beyond}, not in {words}: {said}"
            );
        }
        tested += 1;
    }
    assert!(
        tested >= 37,
        "timers, and numbers of other sections: {tested}"
    );
}

#[test]
fn no_word_in_braces_is_left_in_the_documentation_of_a_key() {
    let schema = crate::schema();
    for key in keys() {
        let text = description(&schema, &key);
        let left = [
            "{range}",
            "{default}",
            "{frames}",
            "{time}",
            "{numbers}",
            "{times}",
            "{version_1}",
            "{user}",
        ];
        assert!(
            !left.iter().any(|word| text.contains(word)),
            "{key}: {text}"
        );
    }
}
