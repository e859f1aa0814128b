//! Keys with a default or a range of their own, and values without their notation.

use super::{At, FromText};
use crate::diag::{Diagnostics, Span};
use crate::parameter::Keys;
use core::fmt::Display;
use core::ops::RangeInclusive;
use schemars::transform::Transform as _;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value as Json;
use std::borrow::Cow;

/// A value of a lab file whose notation is a type of its own.
pub(crate) trait Leaf {
    /// The value without its notation.
    type Plain;
    /// The value without its notation.
    fn plain(&self) -> Self::Plain;
}

/// A key that may be left out and has no default of its own.
pub(crate) trait Optional<T: Leaf> {
    /// The value, if the file gives one.
    fn plain(&self) -> Option<T::Plain>;
    /// The place of the value, if the file gives one.
    fn place(&self) -> Option<Span>;
}

impl<T: Leaf> Optional<T> for Option<At<T>> {
    fn plain(&self) -> Option<T::Plain> {
        self.as_ref().map(At::get)
    }
    fn place(&self) -> Option<Span> {
        self.as_ref().map(|given| given.at)
    }
}

/// A key with a default: the value that counts.
#[derive(Clone, Debug)]
pub(crate) struct Key<T> {
    /// The value of the file, or else the default.
    pub(crate) value: T,
    /// The place of the value; `None` if the file gives none.
    pub(crate) at: Option<Span>,
}

impl<T: Leaf> Key<T> {
    /// The value without its notation.
    pub(crate) fn get(&self) -> T::Plain {
        self.value.plain()
    }
}

impl<T: JsonSchema> JsonSchema for Key<T> {
    fn inline_schema() -> bool {
        Option::<T>::inline_schema()
    }
    fn schema_name() -> Cow<'static, str> {
        Option::<T>::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Option::<T>::json_schema(generator)
    }
}

/// Default and range of a key, in the notation of lab files.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    pub(super) name: &'static str,
    pub(super) default: Option<String>,
    pub(super) range: Option<[String; 2]>,
}

impl Own {
    /// A key without default and range.
    pub(crate) const fn new(name: &'static str) -> Self {
        Self {
            name,
            default: None,
            range: None,
        }
    }
    /// The same key with a default.
    pub(crate) fn or(mut self, default: impl Display) -> Self {
        self.default = Some(default.to_string());
        self
    }
    /// The same key with a smallest and a largest value.
    pub(crate) fn within<V: Display>(mut self, range: RangeInclusive<V>) -> Self {
        self.range = Some([range.start().to_string(), range.end().to_string()]);
        self
    }
    /// `1 to 1000`
    pub(super) fn range_text(&self) -> Option<String> {
        let [least, most] = self.range.as_ref()?;
        Some(format!("{least} to {most}"))
    }
    /// True if a value is in the range; otherwise it is a mistake.
    pub(crate) fn check<T: FromText + PartialOrd>(
        &self,
        value: &T,
        at: Span,
        d: &mut Diagnostics,
    ) -> bool {
        let mut ends = self
            .range
            .iter()
            .flatten()
            .flat_map(|end| T::from_text(end));
        let (least, most) = (ends.next(), ends.next());
        let value = Some(value);
        let fits = least.as_ref() <= value && value <= most.as_ref();
        if !fits {
            let range = self.range_text().unwrap_or_default();
            d.error(at, format!("{} is {range}", self.name));
        }
        fits
    }
    /// Row of the page of lab files: name, meaning, range and default; `text` is the description in the schema. `None`
    /// for a key without default and range.
    #[cfg(test)]
    pub(crate) fn row(&self, text: &str) -> Option<[String; 4]> {
        if self.default.is_none() && self.range.is_none() {
            return None;
        }
        let (range, default) = (self.range_text(), self.default.as_ref());
        let told = default.map(|default| format!("; default {default}"));
        let meaning = text.replacen(&told.unwrap_or_default(), "", 1);
        let in_text = range.as_ref().map(|range| format!(", {range}"));
        let meaning = meaning.replacen(&in_text.unwrap_or_default(), "", 1);
        let meaning = meaning.replace('\n', " ").trim_end_matches('.').to_owned();
        let default = default.cloned().unwrap_or_default();
        Some([
            format!("`{}`", self.name),
            meaning,
            range.unwrap_or_default(),
            default,
        ])
    }
    /// Name of the key.
    #[cfg(test)]
    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }
    /// Completes the schema of the key with its range and default.
    fn describe(&self, section: &mut Schema) {
        let section = section.ensure_object();
        if self.default.is_none() && self.range.is_none() {
            return;
        }
        if let Some(required) = section.get_mut("required").and_then(Json::as_array_mut) {
            required.retain(|name| name != self.name);
        }
        let Some(property) = section
            .get_mut("properties")
            .and_then(|all| all.get_mut(self.name))
        else {
            return;
        };
        let text = property["description"].as_str().unwrap_or_default();
        // Range and default belong to the first sentence, which may name the range itself.
        let end = text.find(". ").or(text.find(".\n")).unwrap_or(text.len());
        let (first, rest) = text.split_at(end);
        let first = first.trim_end_matches('.');
        let (meaning, told) = first.split_at(first.find("; default").unwrap_or(first.len()));
        let range = self.range_text().filter(|range| !text.contains(range));
        let range = range.map(|range| format!(", {range}")).unwrap_or_default();
        let default = self.default.as_ref();
        let default = default.map(|default| format!("; default {default}"));
        let default = default.unwrap_or_else(|| told.to_owned());
        let rest = if rest.is_empty() { "." } else { rest };
        property["description"] = format!("{meaning}{range}{default}{rest}").into();
        if property["format"] == "uint64"
            && let Some([least, most]) = &self.range
            && let (Ok(least), Ok(most)) = (least.parse::<u64>(), most.parse::<u64>())
        {
            property["minimum"] = least.into();
            property["maximum"] = most.into();
        }
    }
}

macro_rules! plain {
    ($($type:ty)+) => {$(
        impl Leaf for $type {
            type Plain = Self;
            fn plain(&self) -> Self {
                self.clone()
            }
        }
    )+};
}
plain! { bool u64 String }

/// Completes the schema of a section with what its fields do not say.
pub(crate) fn complete(own: &[Own], mut keys: Keys, schema: &mut Schema) {
    own.iter().for_each(|key| key.describe(schema));
    keys.transform(schema);
}
