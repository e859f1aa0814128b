//! From the tree to typed fields: one definition of a section gives its reader and its JSON Schema.
//!
//! A reader reports every mistake in its part of the tree, and returns `None` if there was a mistake.

mod own;
mod ways;

pub(crate) use own::{Key, Leaf, Optional, Own, complete};
pub(crate) use ways::{Keyed, KeyedWithin, SomeWays, Ways};

use crate::diag::{Diagnostics, Span, nearest};
use crate::printable::{self, start};
use crate::tree::{self, Tree, Value};
use crate::yaml_11;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::json;
use std::borrow::Cow;

/// Limit of characters of a wrong value that its message repeats.
const QUOTED: usize = 60;

/// A type that can be read from a node of the tree.
pub(crate) trait FromTree: Sized {
    /// Reads the value, or reports what is wrong.
    fn from_tree(tree: &Tree, d: &mut Diagnostics) -> Option<Self>;
    /// The value if the key is missing in the section at `at`.
    fn absent(key: &str, at: Span, d: &mut Diagnostics) -> Option<Self> {
        d.error(at, format!("'{key}' is missing here"))
            .rests_in(at, [key]);
        None
    }
}

/// A scalar that is parsed from its text.
pub(crate) trait FromText: Sized {
    /// A value that can stand for a wrong one while the rest of the file is checked: another mistake in the same entry
    /// is then found, too.
    const SAMPLE: Option<&'static str> = None;
    /// True if values are texts that consist of digits, such as addresses and labels: a tool may take one for a number.
    const DIGITS: bool = false;
    /// Doubt about a key that was read, unless it is in quotes: a warning and its hint.
    fn key_doubt(_: &str) -> Option<(String, &'static str)> {
        None
    }
    /// Doubt about a text that was read, as a warning.
    fn doubt(_: &str) -> Option<String> {
        None
    }
    /// Parses the text. The error says what was expected, without the text itself.
    fn from_text(text: &str) -> Result<Self, String>;
}

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct At<T> {
    /// The value.
    pub(crate) value: T,
    /// Its place.
    pub(crate) at: Span,
}

impl<T> At<T> {
    /// Another value, made of this one, at its place.
    pub(crate) fn map<U>(self, of: impl FnOnce(T) -> U) -> At<U> {
        let Self { value, at } = self;
        At {
            value: of(value),
            at,
        }
    }
    /// The value without its notation.
    pub(crate) fn get(&self) -> T::Plain
    where
        T: Leaf,
    {
        self.value.plain()
    }
}

impl<T: FromText> FromTree for At<T> {
    fn from_tree(tree: &Tree, d: &mut Diagnostics) -> Option<Self> {
        let text = match &tree.value {
            Value::Text(text) => text.as_str(),
            Value::Bool(true) => "true",
            Value::Bool(false) => "false",
            Value::Null => "",
            other => {
                let message = match T::from_text("\u{0}") {
                    Err(expected) => format!("{expected}, not {}", other.kind()),
                    Ok(_) => format!("expected one value, not {}", other.kind()),
                };
                d.error(tree.at, message);
                return None;
            }
        };
        match T::from_text(text) {
            Ok(value) => {
                if let Some(doubt) = T::doubt(text) {
                    d.warning(tree.at, doubt);
                }
                Some(Self { value, at: tree.at })
            }
            Err(expected) => {
                let found = d.error(tree.at, format!("'{}': {expected}", start(text, QUOTED)));
                found.sample = T::SAMPLE.map(str::to_owned);
                found.hint = changed::<T>(&tree.value);
                None
            }
        }
    }
}

/// A hint for a value that a tool may have changed when it read and wrote the file.
fn changed<T: FromText>(value: &Value) -> Option<String> {
    match value {
        Value::Bool(now) => {
            let before = yaml_11::written_as(if *now { "true" } else { "false" }).join(" and ");
            Some(format!(
                "tools for YAML 1.1 take {before} for {now}: put such a text in quotes"
            ))
        }
        Value::Null => Some("null and ~ are no text: put such a text in quotes".to_owned()),
        Value::Text(text) => match yaml_11::boolean(text) {
            Some(now) if T::from_text(now).is_ok() => Some(format!("write {now}")),
            _ if T::DIGITS && text.parse::<f64>().is_ok() => Some(
                "a tool may have taken a text for a number, as 0.320 for 0.32, 010 for 8 or 10:20 for 620: put it in \
                 quotes"
                    .to_owned(),
            ),
            _ => None,
        },
        _ => None,
    }
}

impl<T: JsonSchema> JsonSchema for At<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

impl FromText for bool {
    fn from_text(text: &str) -> Result<Self, String> {
        match text {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err("expected true or false".into()),
        }
    }
}

impl FromText for u64 {
    fn doubt(text: &str) -> Option<String> {
        let octal = text.len() > 1 && text.starts_with('0');
        octal.then(|| {
            format!(
                "'{text}' is read as a decimal number; tools for YAML 1.1 take it for an octal one"
            )
        })
    }
    fn from_text(text: &str) -> Result<Self, String> {
        text.parse()
            .map_err(|_| "expected a whole number".to_owned())
    }
}

impl FromText for String {
    /// Lines of text are all right; what a terminal would obey is not.
    fn from_text(text: &str) -> Result<Self, String> {
        let wrong = |c: &char| printable::is_hidden(*c) && !matches!(c, '\n' | '\t' | '\0');
        match text.chars().find(wrong) {
            None => Ok(text.to_owned()),
            Some(c) => Err(format!(
                "the character {} is not allowed: a terminal would obey it, or it would be invisible",
                c.escape_unicode()
            )),
        }
    }
}

impl<T: FromTree> FromTree for Option<T> {
    fn from_tree(tree: &Tree, d: &mut Diagnostics) -> Option<Self> {
        if matches!(tree.value, Value::Null) {
            return Some(None);
        }
        T::from_tree(tree, d).map(Some)
    }
    fn absent(_: &str, _: Span, _: &mut Diagnostics) -> Option<Self> {
        Some(None)
    }
}

impl<T: FromTree> FromTree for Vec<T> {
    fn from_tree(tree: &Tree, d: &mut Diagnostics) -> Option<Self> {
        let Value::List(items) = &tree.value else {
            d.error(
                tree.at,
                format!("expected a list, not {}", tree.value.kind()),
            );
            return None;
        };
        // Read all items before giving up, so that every mistake is reported.
        let read: Vec<Option<T>> = items.iter().map(|item| T::from_tree(item, d)).collect();
        read.into_iter().collect()
    }
}

/// A mapping from free keys (names, networks) to values, in the order of the file.
#[derive(Clone, Debug)]
pub(crate) struct Table<K, V>(pub(crate) Vec<(At<K>, V)>);

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: FromText, V: FromTree> FromTree for Table<K, V> {
    fn from_tree(tree: &Tree, d: &mut Diagnostics) -> Option<Self> {
        let entries = entries(tree, d)?;
        let read: Vec<Option<(At<K>, V)>> = entries
            .iter()
            .map(|(key, value)| {
                let parsed = match K::from_text(&key.text) {
                    Ok(value) => {
                        if let Some((doubt, hint)) = K::key_doubt(&key.text)
                            && !d.is_quoted(key.at)
                        {
                            d.warning(key.at, doubt).hint(hint);
                        }
                        Some(At { value, at: key.at })
                    }
                    Err(expected) => {
                        let text = start(&key.text, QUOTED);
                        d.error(key.at, format!("'{text}': {expected}"));
                        None
                    }
                };
                // A section without contents is an empty one; its mistakes are reported at its name.
                let placed = Tree {
                    at: if matches!(value.value, Value::Map(_) | Value::Null) {
                        key.at
                    } else {
                        value.at
                    },
                    value: value.value.clone(),
                };
                let value = V::from_tree(&placed, d);
                Some((parsed?, value?))
            })
            .collect();
        read.into_iter().collect::<Option<Vec<_>>>().map(Self)
    }
    fn absent(_: &str, _: Span, _: &mut Diagnostics) -> Option<Self> {
        Some(Self::default())
    }
}

impl<K: JsonSchema, V: JsonSchema> JsonSchema for Table<K, V> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("Table_of_{}", V::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<V>();
        let mut table = json_schema!({ "type": ["object", "null"], "additionalProperties": value });
        // A key is a text, whatever its type as a value.
        let key = generator.subschema_for::<K>();
        if let Some(pattern) = key.get("pattern") {
            table.insert("propertyNames".into(), json!({ "pattern": pattern }));
        }
        table
    }
}

/// One value, or the values of a list.
pub(crate) fn one_or_more<T>(tree: &Tree, d: &mut Diagnostics) -> Option<Vec<At<T>>>
where
    At<T>: FromTree,
{
    match &tree.value {
        Value::List(_) => Vec::from_tree(tree, d),
        _ => At::from_tree(tree, d).map(|one| vec![one]),
    }
}

/// The entries of a mapping; a null value counts as an empty mapping.
pub(crate) fn entries<'a>(tree: &'a Tree, d: &mut Diagnostics) -> Option<&'a [(tree::Key, Tree)]> {
    match &tree.value {
        Value::Map(entries) => Some(entries),
        Value::Null => Some(&[]),
        other => {
            d.error(
                tree.at,
                format!("expected a mapping (key: value), not {}", other.kind()),
            );
            None
        }
    }
}

/// Keys that were renamed: the section (as in [`section!`]), the former name, the current name. The former name still
/// works, with a warning that gives the current one.
const RENAMED: &[(&str, &str, &str)] = &[
    #[cfg(test)]
    ("Renaming", "colour", "paint"),
];

/// The key of a section for which a tool has written true or false. The key itself may also stand there if it comes
/// from `--set`.
fn written_as(
    text: &str,
    known: &[&'static str],
    all: &[(tree::Key, Tree)],
) -> Option<&'static str> {
    let before = yaml_11::written_as(text);
    let name = known.iter().find(|name| before.contains(name))?;
    let mut same = all.iter().filter(|(key, _)| key.text == **name);
    same.all(|(key, _)| key.at.source > 0).then_some(*name)
}

/// The place of the value of a key: that of the first item of a list. `None` if the list is empty.
fn place(tree: &Tree) -> Option<Span> {
    match &tree.value {
        Value::Null => None,
        Value::List(items) => items.first().map(|item| item.at),
        _ => Some(tree.at),
    }
}

/// Reads the fields of one section and reports unknown keys.
pub(crate) struct Fields<'a> {
    /// Entries by their current names.
    entries: Vec<(&'a str, &'a Tree)>,
    /// Keys that the section has, with the places of their values.
    given: Vec<(&'static str, Span)>,
    /// Keys that unknown keys probably mean.
    meant: Vec<String>,
    at: Span,
}

impl<'a> Fields<'a> {
    /// Opens a section with these keys; `section` is its name in [`RENAMED`].
    pub(crate) fn open(
        tree: &'a Tree,
        section: &str,
        known: &[&'static str],
        d: &mut Diagnostics,
    ) -> Option<Self> {
        let all = entries(tree, d)?;
        let (mut entries, mut meant) = (Vec::new(), Vec::new());
        for (key, value) in all {
            let text = key.text.as_str();
            if known.contains(&text) {
                entries.push((text, value));
                continue;
            }
            let renamed = RENAMED
                .iter()
                .find(|(of, was, _)| *of == section && *was == text);
            match renamed {
                Some((_, _, now)) if all.iter().any(|(other, _)| other.text == *now) => {
                    let text = format!("'{text}' is called '{now}' now, which stands here, too");
                    d.error(key.at, text);
                }
                Some((_, _, now)) => {
                    d.warning(key.at, format!("'{text}' is called '{now}' now"));
                    entries.push((now, value));
                }
                None if let Some(now) = written_as(text, known, all) => {
                    d.changed_key(key.at, text, now);
                    // What --set gives counts.
                    if all.iter().all(|(other, _)| other.text != now) {
                        entries.push((now, value));
                    }
                }
                None => {
                    let found = d.error(key.at, format!("unknown key '{}'", start(text, QUOTED)));
                    found.suggest(text, known.iter().copied());
                    let missing = |name: &&&str| all.iter().all(|(key, _)| key.text != **name);
                    let key = nearest(text, known).filter(|name| missing(&name));
                    found.sample = key.map(str::to_owned);
                    meant.extend(found.sample.clone());
                }
            }
        }
        let of = |name: &&'static str| {
            let (_, value) = entries.iter().find(|(key, _)| key == name)?;
            Some((*name, place(value)?))
        };
        Some(Self {
            given: known.iter().filter_map(of).collect(),
            entries,
            meant,
            at: tree.at,
        })
    }
    /// The keys that the section has, with the places of their values.
    pub(crate) fn given(&self) -> Vec<(&'static str, Span)> {
        self.given.clone()
    }
    /// Reads a field with a range. A value that is not in the range is a mistake, and is left out.
    pub(crate) fn within<T: FromText + PartialOrd>(
        &self,
        own: &Own,
        d: &mut Diagnostics,
    ) -> Option<Option<At<T>>> {
        let given: Option<At<T>> = self.field(own.name, d)?;
        Some(given.filter(|given| own.check(&given.value, given.at, d)))
    }
    /// The given value, or the default, which `read` reads.
    fn or_default<T>(
        &self,
        given: Option<At<T>>,
        own: &Own,
        read: impl FnOnce(&str) -> Result<T, String>,
        d: &mut Diagnostics,
    ) -> Option<Key<T>> {
        if let Some(At { value, at }) = given {
            return Some(Key {
                value,
                at: Some(at),
            });
        }
        match read(own.default.as_deref().unwrap_or_default()) {
            Ok(value) => Some(Key { value, at: None }),
            Err(why) => {
                d.error(self.at, format!("the default of '{}': {why}", own.name));
                None
            }
        }
    }
    /// True if the section has no such key, and no unknown one that probably means it.
    fn lacks(&self, name: &str) -> bool {
        let there = self.entries.iter().any(|(key, _)| *key == name);
        !there && self.meant.iter().all(|meant| meant != name)
    }
    /// Reads one field.
    pub(crate) fn field<T: FromTree>(&self, name: &str, d: &mut Diagnostics) -> Option<T> {
        match self.entries.iter().find(|(key, _)| *key == name) {
            Some((_, value)) => T::from_tree(value, d),
            // The unknown key is the mistake, and it has been told.
            None if self.meant.iter().any(|meant| meant == name) => {
                T::absent(name, self.at, &mut Diagnostics::default())
            }
            None => T::absent(name, self.at, d),
        }
    }
}

/// The name of a key, whose field has another name if it is a word of Rust: `where` for `r#where`.
pub(crate) fn plain(field: &'static str) -> &'static str {
    field.strip_prefix("r#").unwrap_or(field)
}

/// Defines a section of the file: a struct, its reader and its JSON Schema. A key has one of four forms; defaults and
/// ranges have the notation of lab files.
///
/// | form | field | meaning |
/// |---|---|---|
/// | `key: Type;` | `Type` | a type that says itself what a missing key means |
/// | `key: Scalar, least..=most;` | `Option<At<Scalar>>` | a value in a range; it may be missing |
/// | `key: Scalar = default;` | [`Key<Scalar>`](Key) | the value that counts |
/// | `key: Scalar = default, least..=most;` | [`Key<Scalar>`](Key) | the value that counts, in a range |
///
/// The documentation of a key is for users. Its first sentence gets the range and the default in the schema; the range
/// is left out where the sentence has it already.
///
/// Every section has a field `place`: the place of its name or of its opening brace; and a field [`given`], with the
/// keys that the file gives. If parameters of protocols stand in the section, [`Keys`] in parentheses after its name
/// say which, and `given` has their values, too.
///
/// [`given`]: crate::parameter::Given
/// [`Keys`]: crate::parameter::Keys
macro_rules! section {
    (@type $type:ty) => { $type };
    (@type $type:ty, $range:expr) => { Option<crate::field::At<$type>> };
    (@type $type:ty = $default:expr $(, $range:expr)?) => { crate::field::Key<$type> };
    (@read $fields:ident $d:ident $field:ident: $type:ty) => {
        $fields.field::<$type>(crate::field::plain(stringify!($field)), $d)
    };
    (@read $fields:ident $d:ident $field:ident: $type:ty, $range:expr) => {
        $fields.within::<$type>(&section!(@own $field, $range), $d)
    };
    (@read $fields:ident $d:ident $field:ident: $type:ty = $default:expr) => {
        <$type as crate::field::Keyed>::key(&$fields, &section!(@own $field = $default), $d)
    };
    (@read $fields:ident $d:ident $field:ident: $type:ty = $default:expr, $range:expr) => {
        <$type as crate::field::KeyedWithin>::key_within(&$fields, &section!(@own $field = $default, $range), $d)
    };
    (@own $field:ident $(= $default:expr)? $(, $range:expr)?) => {
        crate::field::Own::new(crate::field::plain(stringify!($field)))$(.or($default))?$(.within($range))?
    };
    ($(#[$meta:meta])* $name:ident $(($keys:expr))? {
        $( $(#[$field_meta:meta])* $field:ident: $type:ty $(= $default:expr)? $(, $range:expr)?; )*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, schemars::JsonSchema)]
        #[schemars(deny_unknown_fields, transform = Self::complete)]
        pub(crate) struct $name {
            $( $(#[$field_meta])* pub(crate) $field: section!(@type $type $(= $default)? $(, $range)?), )*
            /// The keys that the file gives.
            #[schemars(skip)]
            #[allow(dead_code, reason = "not every section is asked for its keys")]
            pub(crate) given: crate::parameter::Given,
            /// The place of the section.
            #[schemars(skip)]
            #[allow(dead_code, reason = "not every section is complained about as a whole")]
            pub(crate) place: crate::diag::Span,
        }
        impl $name {
            /// Defaults and ranges of its keys.
            pub(crate) fn own() -> Vec<crate::field::Own> {
                vec![$( section!(@own $field $(= $default)? $(, $range)?), )*]
            }
            /// Parameters of protocols in the section.
            fn keys() -> crate::parameter::Keys {
                #[allow(unused_mut, unused_assignments, reason = "not every section has parameters")]
                let mut keys = crate::parameter::Keys::default();
                $( keys = $keys; )?
                keys
            }
            fn complete(schema: &mut schemars::Schema) {
                crate::field::complete(&Self::own(), Self::keys(), schema);
            }
        }
        impl crate::field::FromTree for $name {
            /// A section without keys, which has all defaults.
            fn absent(_: &str, at: crate::diag::Span, d: &mut crate::diag::Diagnostics) -> Option<Self> {
                let value = crate::tree::Value::Null;
                Self::from_tree(&crate::tree::Tree { value, at }, d)
            }
            fn from_tree(
                tree: &crate::tree::Tree,
                d: &mut crate::diag::Diagnostics,
            ) -> Option<Self> {
                let mut known = vec![$( crate::field::plain(stringify!($field)) ),*];
                let keys = Self::keys();
                known.extend(keys.names());
                let fields = crate::field::Fields::open(tree, stringify!($name), &known, d)?;
                // Read every field before the first missing one ends the section.
                $( let $field = section!(@read fields d $field: $type $(= $default)? $(, $range)?); )*
                let given = crate::parameter::Given::read(&keys, &fields, d);
                Some(Self {
                    $( $field: $field?, )*
                    given: given?,
                    place: tree.at,
                })
            }
        }
    };
}
pub(crate) use section;

/// Defines a scalar with its own syntax: a wrapper, its parser and its JSON Schema. The value after `=` is its
/// [`FromText::SAMPLE`], the function after `?` is [`FromText::doubt`], and `; digits` sets [`FromText::DIGITS`].
macro_rules! scalar {
    ($(#[$meta:meta])* $name:ident($type:ty) $(= $sample:literal)? $(? $doubt:path)? $(; $digits:ident)?, $parse:expr, $($schema:tt)+) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub(crate) struct $name(pub(crate) $type);
        impl crate::field::FromText for $name {
            $(const SAMPLE: Option<&'static str> = Some($sample);)?
            $(const DIGITS: bool = {
                let _ = stringify!($digits);
                true
            };)?
            $(fn doubt(text: &str) -> Option<String> {
                $doubt(text).map(|odd| odd.to_string())
            })?
            fn from_text(text: &str) -> Result<Self, String> {
                $parse(text).map(Self)
            }
        }
        impl crate::field::Leaf for $name {
            type Plain = $type;
            fn plain(&self) -> $type {
                self.0
            }
        }
        crate::field::inline_schema!($name, $($schema)+);
    };
}
pub(crate) use scalar;

/// Gives a type its JSON Schema, which stands in the place of each of its keys. The types in brackets are parts of the
/// schema, by name.
macro_rules! inline_schema {
    ($type:ident $([$($part:ident: $of:ty),+])?, $($schema:tt)+) => {
        impl schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                // A schema without parts asks the generator for nothing.
                let _ = &generator;
                $($(let $part = generator.subschema_for::<$of>();)+)?
                schemars::json_schema!($($schema)+)
            }
        }
    };
}
pub(crate) use inline_schema;

/// Defines a scalar that is one of some words: its wrapper, parser and JSON Schema as [`scalar!`] does, and `word`,
/// which gives the word for a value. Each value of its type has one word. The value after `=` is as for [`scalar!`].
macro_rules! words {
    ($(#[$meta:meta])* $name:ident($type:ty) $(= $sample:literal)? { $( $word:literal = $value:path ),+ $(,)? }) => {
        crate::field::scalar!($(#[$meta])* $name($type) $(= $sample)?, |text: &str| match text {
            $( $word => Ok($value), )+
            _ => Err(crate::field::expected(&[$($word),+])),
        }, { "enum": [$($word),+] });
        impl $name {
            /// The word for a value.
            #[allow(dead_code, reason = "not every word is told again")]
            pub(crate) const fn word(value: &$type) -> &'static str {
                match value {
                    $( $value => $word, )+
                }
            }
        }
    };
}
pub(crate) use words;

/// `expected sink, echo or read`
pub(crate) fn expected(words: &[&str]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => {
            format!("expected {} or {last}", first.join(", "))
        }
        words => format!("expected {}", words.concat()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    section! {
        /// A section of which a key was renamed.
        Renaming {
            /// Formerly `colour`.
            paint: Option<At<u64>>;
        }
    }

    fn read(text: &str) -> (Option<u64>, String) {
        let tree = Tree::of(text).unwrap();
        let mut d = Diagnostics::new("t", text);
        let read = Renaming::from_tree(&tree, &mut d);
        let all = d
            .iter()
            .map(|one| format!("{:?}: {}", one.severity, one.message));
        let all: Vec<String> = all.collect();
        (
            read.and_then(|read| Some(read.paint?.value)),
            all.join("; "),
        )
    }

    #[test]
    fn a_key_of_before_works_and_says_its_new_name() {
        assert_eq!(read("{ paint: 7 }"), (Some(7), String::new()));
        let said = "Warning: 'colour' is called 'paint' now".to_owned();
        assert_eq!(read("{ colour: 7 }"), (Some(7), said));
        let said = "Error: 'colour' is called 'paint' now, which stands here, too".to_owned();
        assert_eq!(read("{ colour: 7, paint: 8 }"), (Some(8), said));
        let said = "Error: unknown key 'color'".to_owned();
        assert_eq!(read("{ color: 7 }"), (None, said));
    }

    #[test]
    fn renamed_keys_lead_to_keys_that_are_there() {
        let schema = crate::schema().to_string();
        for (_, was, now) in RENAMED.iter().filter(|(of, ..)| *of != "Renaming") {
            assert!(schema.contains(&format!("\"{now}\":")), "{was} -> {now}");
        }
    }
}
