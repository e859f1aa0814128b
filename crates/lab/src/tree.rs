//! YAML as a tree whose nodes know their places.
//!
//! The file is read into this tree first; then `--set` options change the tree; then it is checked. So a wrong value is
//! reported in the same way wherever it came from, and all mistakes can be reported together.

use crate::diag::{Diagnostics, Span};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{DuplicateKeyPolicy, Spanned};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A node of the document.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Its place.
    pub at: Span,
    /// Its value.
    pub value: Value,
}

/// The kinds of nodes.
#[derive(Clone, Debug)]
pub enum Value {
    /// A null value.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// Any other scalar. A number keeps its digits as written: `25.6`, `1e-6`, `4700918100...`.
    Text(String),
    /// A list.
    List(Vec<Tree>),
    /// A mapping, in the order of the file.
    Map(Vec<(Key, Tree)>),
}

/// A key of a mapping.
#[derive(Clone, Debug)]
pub struct Key {
    /// Its place.
    pub at: Span,
    /// Its text.
    pub text: String,
}

impl Value {
    /// Name of the kind, for messages.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "true or false",
            Self::Text(text) if is_number(text) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
        }
    }
}

/// True if YAML takes the text for a number.
fn is_number(text: &str) -> bool {
    let digits = text.trim_start_matches(['+', '-', '.']);
    digits.starts_with(|c: char| c.is_ascii_digit()) && text.parse::<f64>().is_ok()
}

impl Tree {
    /// The tree of a text, with places in that text.
    ///
    /// # Errors
    /// If the text is not valid YAML.
    pub fn of(text: &str) -> Result<Self, Diagnostics> {
        let mut d = Diagnostics::new("text", text);
        let tree = parse(text, 0, 0, &mut d).filter(|_| !d.has_errors());
        tree.ok_or(d)
    }
}

impl fmt::Display for Tree {
    /// The tree as YAML in one line, with every scalar except true and false in quotes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A JSON string is also a YAML string.
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        match &self.value {
            Value::Null => f.write_str("null"),
            Value::Bool(value) => value.fmt(f),
            Value::Text(text) => f.write_str(&quoted(text)),
            Value::List(items) => {
                f.write_str("[")?;
                for (n, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if n == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
            Value::Map(entries) => {
                f.write_str("{ ")?;
                for (n, (key, value)) in entries.iter().enumerate() {
                    let comma = if n == 0 { "" } else { ", " };
                    write!(f, "{comma}{}: {value}", quoted(&key.text))?;
                }
                f.write_str(" }")
            }
        }
    }
}

/// Parses `text`, which is source number `source` from octet `offset` on. There is a tree in spite of unknown tags and
/// of keys that stand twice, which are errors.
pub(crate) fn parse(
    text: &str,
    source: usize,
    offset: usize,
    diagnostics: &mut Diagnostics,
) -> Option<Tree> {
    let place = Place {
        text,
        source,
        offset,
    };
    let read = |twice| {
        let mut options = serde_saphyr::Options::default();
        options.strict_booleans = true;
        options.with_snippet = false;
        // A hexadecimal text such as 12e45678 looks like a large number. What becomes of it is for the key to say.
        options.non_finite_float_policy = serde_saphyr::options::NonFiniteFloatPolicy::PassThrough;
        options.duplicate_keys = twice;
        serde_saphyr::from_str_with_options::<Spanned<Raw>>(text, options)
    };
    let raw = match read(DuplicateKeyPolicy::Error) {
        Err(error) if twice(&error).is_some() => {
            report(&error, &place, diagnostics);
            // The rest of the file is read, so that this mistake hides no others.
            read(DuplicateKeyPolicy::LastWins)
        }
        raw => raw,
    };
    let raw = raw
        .map_err(|error| report(&error, &place, diagnostics))
        .ok()?;
    let mut odd = Odd::default();
    let tree = convert(raw, &place, &mut odd);
    for at in &odd.tags {
        let tag = place.slice(*at).unwrap_or_default();
        diagnostics
            .error(*at, format!("unknown tag '{tag}'"))
            .hint("leave it out, or put a text that begins with '!' in quotes");
    }
    // The reader itself has told of the first one.
    let told: BTreeSet<Span> = diagnostics.iter().map(|found| found.at).collect();
    for key in odd.twice.iter().filter(|key| !told.contains(&key.at)) {
        let text = format!("not valid YAML: {}", stands_twice(&key.text));
        diagnostics.error(key.at, text);
    }
    Some(tree)
}

/// Oddities of a document that nevertheless has a tree.
#[derive(Default)]
struct Odd {
    /// Unknown tags.
    tags: Vec<Span>,
    /// Keys that stand in their mapping already.
    twice: Vec<Key>,
}

fn stands_twice(key: &str) -> String {
    format!("the key '{key}' stands twice in one mapping")
}

/// The key that stands twice, if that is the error.
fn twice(error: &serde_saphyr::Error) -> Option<String> {
    let message = error.without_snippet().to_string();
    let rest = message.strip_prefix("duplicate mapping key: ")?;
    Some(rest.rsplit_once(", set ")?.0.to_owned())
}

/// The place of a parsed text.
struct Place<'a> {
    text: &'a str,
    source: usize,
    offset: usize,
}

impl Place<'_> {
    fn span(&self, location: serde_saphyr::Location) -> Span {
        let start = location
            .span()
            .byte_offset()
            .and_then(|at| usize::try_from(at).ok())
            .unwrap_or_else(|| self.octet(location));
        let len = location
            .span()
            .byte_len()
            .map_or(0, |len| usize::try_from(len).unwrap_or(0));
        Span {
            source: self.source,
            start: self.offset + start,
            end: self.offset + start + len,
        }
    }
    /// Octet offset of a line and column, for errors of the scanner, which reports only these.
    fn octet(&self, location: serde_saphyr::Location) -> usize {
        let line = usize::try_from(location.line()).unwrap_or(1).max(1);
        let column = usize::try_from(location.column()).unwrap_or(1).max(1);
        let before: usize = self
            .text
            .split_inclusive('\n')
            .take(line - 1)
            .map(str::len)
            .sum();
        let rest = &self.text[before..];
        let within = rest.char_indices().nth(column - 1);
        before + within.map_or(rest.len(), |(at, _)| at)
    }
    /// The tag in front of a node, unless YAML itself defines the tag. The node begins at octet `start`. It is on the
    /// line of its tag unless it is a list or mapping.
    fn tag(&self, start: usize, several_lines: bool) -> Option<Span> {
        let start = start - self.offset;
        let word = |at: usize| {
            let rest = self.text.get(at..)?;
            let end = rest.find(|c: char| c.is_whitespace() || ",]}".contains(c));
            rest.get(..end.unwrap_or(rest.len()))
        };
        // The place of a node may be that of its tag.
        let own = word(start).filter(|word| word.starts_with('!'));
        let (at, tag) = match own {
            Some(tag) => (start, tag),
            // Only the word before is examined, so that long lines cost nothing.
            None => {
                let before = self.text.get(..start)?.trim_end();
                let at = before.rfind(|c: char| c.is_whitespace() || "[{,".contains(c));
                let at = at.map_or(0, |at| at + 1);
                let tag = before.get(at..).filter(|word| word.starts_with('!'))?;
                if !several_lines && self.text[before.len()..start].contains('\n') {
                    return None;
                }
                (at, tag)
            }
        };
        let known = [
            "!!str", "!!int", "!!float", "!!bool", "!!null", "!!seq", "!!map",
        ];
        if known.contains(&tag) {
            return None;
        }
        let opened = self.text[..at].trim_end_matches([' ', '\t']);
        let place = opened.is_empty() || opened.ends_with([':', '-', '[', '{', ',', '?', '\n']);
        // A comment ends with its line, so the node itself is on a later one.
        let in_comment = || {
            let line = opened.rsplit('\n').next().unwrap_or_default();
            line.starts_with('#') || line.contains(" #")
        };
        let above = at < start && self.text[at..start].contains('\n');
        (place && !(above && in_comment())).then(|| Span {
            source: self.source,
            start: self.offset + at,
            end: self.offset + at + tag.len(),
        })
    }
    fn slice(&self, at: Span) -> Option<&str> {
        self.text
            .get(at.start - self.offset..at.end - self.offset)
            .map(str::trim)
    }
}

fn convert(raw: Spanned<Raw>, place: &Place<'_>, odd: &mut Odd) -> Tree {
    let at = place.span(raw.defined);
    let several = matches!(raw.value, Raw::List(_) | Raw::Map(_));
    odd.tags.extend(place.tag(at.start, several));
    let value = match raw.value {
        Raw::Null => Value::Null,
        Raw::Bool(value) => Value::Bool(value),
        Raw::Text(text) => Value::Text(text),
        Raw::Number(number) => Value::Text(place.slice(at).map_or(number, str::to_owned)),
        Raw::List(items) => {
            let items = items.into_iter();
            Value::List(items.map(|item| convert(item, place, odd)).collect())
        }
        Raw::Map(entries) => {
            let entries = entries.into_iter().map(|(key, value)| {
                let at = place.span(key.defined);
                let text = key.value;
                (Key { at, text }, convert(value, place, odd))
            });
            let entries = entries.collect();
            Value::Map(once(entries, odd))
        }
    };
    // A block ends where the next token starts, so the mark of a list or mapping is its first octet.
    let end = match value {
        Value::List(_) | Value::Map(_) => at.start + 1,
        _ => at.end,
    };
    Tree {
        at: Span { end, ..at },
        value,
    }
}

/// The entries with each key once. What stands under a key for the second time is added to what stands there first, so
/// that all names of the file are known.
fn once(entries: Vec<(Key, Tree)>, odd: &mut Odd) -> Vec<(Key, Tree)> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut all: Vec<(Key, Tree)> = Vec::new();
    for (key, value) in entries {
        let Some((_, first)) = places.get(&key.text).and_then(|at| all.get_mut(*at)) else {
            places.insert(key.text.clone(), all.len());
            all.push((key, value));
            continue;
        };
        match (&mut first.value, value.value) {
            (Value::List(first), Value::List(second)) => first.extend(second),
            (Value::Map(first), Value::Map(second)) => {
                let known: BTreeSet<String> =
                    first.iter().map(|(key, _)| key.text.clone()).collect();
                let more = second.into_iter();
                first.extend(more.filter(|(key, _)| !known.contains(&key.text)));
            }
            _ => {}
        }
        odd.twice.push(key);
    }
    all
}

/// Messages of the YAML reader for programmers, and the messages for authors of a lab.
const OWN_WORDS: [(&str, &str); 5] = [
    (
        "multiple YAML documents",
        "a second document begins here; a lab is one document",
    ),
    (
        "cannot deserialize null into string",
        "a key is missing here; an empty one, null or ~ cannot be used without quotes",
    ),
    (
        "recursive references",
        "an alias stands inside what it repeats",
    ),
    ("budget breached: Nodes", "more than 250000 keys and values"),
    ("budget breached", "too large, or nested too deeply"),
];

fn report(error: &serde_saphyr::Error, place: &Place<'_>, diagnostics: &mut Diagnostics) {
    let Place { source, offset, .. } = *place;
    let mut at = error.location().map_or(
        Span {
            source,
            start: offset,
            end: offset,
        },
        |l| place.span(l),
    );
    at.end = at.end.max(at.start + 1);
    let mut message = error.without_snippet().to_string();
    // The place is shown in the project's own form.
    if let Some(cut) = message.find(" at line ") {
        message.truncate(cut);
    }
    // Advice about options of the reader is of no use here.
    if let Some((_, ours)) = OWN_WORDS
        .iter()
        .find(|(theirs, _)| message.contains(theirs))
    {
        message = (*ours).to_owned();
    }
    if let Some(key) = twice(error) {
        message = stands_twice(&key);
    }
    diagnostics.error(
        at,
        format!("not valid YAML: {}", message.trim_end_matches('.')),
    );
}

/// The data that serde sees; [`Spanned`] adds places.
enum Raw {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Spanned<Self>>),
    Map(Vec<(Spanned<String>, Spanned<Self>)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML value")
    }
    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Number(value.to_string()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Number(value.to_string()))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Number(value.to_string()))
    }
    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Text(value.to_owned()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Raw::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(tree: &Tree, text: &str, out: &mut Vec<String>) {
        match &tree.value {
            Value::List(items) => items.iter().for_each(|item| show(item, text, out)),
            Value::Map(entries) => {
                for (key, value) in entries {
                    out.push(format!("{}={}", key.text, &text[key.at.start..key.at.end]));
                    show(value, text, out);
                }
            }
            Value::Text(value) => {
                out.push(format!("{value}<{}", &text[tree.at.start..tree.at.end]))
            }
            other => out.push(format!("{other:?}")),
        }
    }

    fn told(text: &str) -> Vec<String> {
        let mut diagnostics = Diagnostics::default();
        let _ = parse(text, 0, 0, &mut diagnostics);
        assert!(diagnostics.has_errors(), "{text}");
        diagnostics
            .iter()
            .map(|found| found.message.clone())
            .collect()
    }

    #[test]
    fn what_the_reader_says_to_programmers_is_said_in_words_of_our_own() {
        let many = format!("a: [{}]", "1,".repeat(260_000));
        for (text, says) in [
            ("a: 1\n---\nb: 2\n", "a lab is one document"),
            ("~: 3\n", "a key is missing here"),
            ("a: &a [*a]\n", "an alias stands inside what it repeats"),
            (&*many, "more than 250000 keys and values"),
        ] {
            let all = told(text).concat();
            assert!(all.contains(says), "{all}");
            for word in ["from_str", "Option", "budget", "weak"] {
                assert!(!all.contains(word), "{all}");
            }
        }
    }

    #[test]
    fn tags_that_nobody_knows_are_told_and_others_are_not() {
        for (text, tags) in [
            ("a: !foo 3\n", &["!foo"][..]),
            ("a: [1, !x 2, 3]\nb: {c: !y d}\n", &["!x", "!y"]),
            ("a: !map\n  b: 1\n", &["!map"]),
            ("a: !list\n  - 1\n  - !one 2\n", &["!list", "!one"]),
            ("!top\na: 1\n", &["!top"]),
        ] {
            let all = told(text);
            let expected: Vec<_> = tags.iter().map(|t| format!("unknown tag '{t}'")).collect();
            let mut sorted = all.clone();
            sorted.sort();
            let mut wanted = expected.clone();
            wanted.sort();
            assert_eq!(sorted, wanted, "{text}");
        }
        for text in [
            "a: !!str 3\n",
            "a: hello !world\nb: 1\n",
            "a: '!x'\nb: [x !y, z]\nc: what! now\n",
            "a: |\n  c: !x\nb:\n  - 1\n",
            "# note: !x\na: 1\n",
        ] {
            let mut diagnostics = Diagnostics::default();
            assert!(parse(text, 0, 0, &mut diagnostics).is_some(), "{text}");
        }
    }

    #[test]
    fn keys_that_stand_twice_are_told_in_words_of_our_own() {
        for (text, told) in [
            ("a: 1\na: 2\n", "stands twice"),
            ("1: x\n1: y\n", "stands twice"),
            // Keys that are not text are refused before they are compared.
            ("? [a]\n: 1\n? [a]\n: 2\n", "expected string"),
        ] {
            let all = self::told(text);
            assert!(all.iter().any(|found| found.contains(told)), "{all:?}");
            assert!(!all.concat().contains("Policy"), "{all:?}");
        }
    }

    #[test]
    fn each_key_that_stands_twice_is_told_once_and_the_names_under_it_are_kept() {
        let text = "a: 1\na: 2\na: 3\nb: { c: 1, c: 2 }\nd: { e: 1 }\nd: { f: 2, e: 3 }\n";
        let all = told(text);
        let of = |key: &str| {
            let message = format!("the key '{key}' stands twice");
            all.iter().filter(|told| told.contains(&message)).count()
        };
        assert_eq!(
            (of("a"), of("c"), of("d"), all.len()),
            (2, 1, 1, 4),
            "{all:?}"
        );
        let tree = parse(text, 0, 0, &mut Diagnostics::default()).expect("a tree");
        let shown = r#"{ "a": "1", "b": { "c": "1" }, "d": { "e": "1", "f": "2" } }"#;
        assert_eq!(tree.to_string(), shown);
    }

    #[test]
    fn places_and_digits() {
        let text = "on: ls1010\nlinks:\n  - [a, \"b\", { rate: 25.6, prefix: 470091810000000000000000000001 }]\n  - é: 1e-6\n    off: no\nx: true\ny:\n";
        let mut d = Diagnostics::new("x", text);
        let tree = parse(text, 0, 0, &mut d).unwrap();
        let mut out = Vec::new();
        show(&tree, text, &mut out);
        assert_eq!(
            out,
            [
                "on=on",
                "ls1010<ls1010",
                "links=links",
                "a<a",
                "b<\"b\"",
                "rate=rate",
                "25.6<25.6",
                "prefix=prefix",
                "470091810000000000000000000001<470091810000000000000000000001",
                "é=é",
                "1e-6<1e-6",
                "off=off",
                "no<no",
                "x=x",
                "Bool(true)",
                "y=y",
                "Null"
            ]
        );
    }

    #[test]
    fn broken_yaml_has_a_place() {
        for (text, line) in [("a: [1, 2\nb: 3\n", 2), ("a: 1\na: 2\n", 2), ("a: 'x\n", 1)] {
            let mut d = Diagnostics::new("x", text);
            let _ = parse(text, 0, 0, &mut d);
            let finding = d.iter().next().unwrap().clone();
            assert!(d.locate(finding.at).line >= line, "{d}");
            assert!(finding.message.starts_with("not valid YAML"), "{d}");
            assert!(!finding.message.contains("Policy"), "{d}");
        }
    }
}
