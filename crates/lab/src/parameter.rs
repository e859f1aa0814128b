//! Keys of a lab file that set parameters of protocols. Their names, kinds, ranges, defaults and documentation come
//! from the protocols' own structures of parameters ([`Parameters`]).

use crate::diag::{Diagnostics, Span};
use crate::field::{At, Fields, FromTree};
use crate::file::{FrameRate, Octets, Time};
use aerostat_proto::parameters::{self, Parameter, Parameters, PerSecond, Range, Value};
use core::ops::RangeInclusive;
use schemars::generate::SchemaGenerator;
use schemars::transform::Transform;
use schemars::{JsonSchema as _, Schema};
use serde_json::Value as Json;

/// A key that sets a parameter.
#[derive(Clone, Debug)]
struct Key {
    parameter: Parameter,
    /// Roles that have the parameter, if a section is for several roles.
    roles: Vec<&'static str>,
    /// Words for the default, if it is no single value.
    default: Option<&'static str>,
    /// Defaults of other versions or sides, with words that say of which.
    others: Vec<(&'static str, Value)>,
}

impl Key {
    fn default_text(&self) -> String {
        let own = self.parameter.range.default.to_string();
        let mut text = self.default.map_or(own, str::to_owned);
        for (of, value) in &self.others {
            text += &format!(", {of} {value}");
        }
        text
    }
    /// Text of the range; `None` if there are only true and false.
    fn range_text(&self) -> Option<String> {
        let range = self.parameter.range;
        let flag = matches!(range.default, Value::Flag(_));
        (!flag).then(|| range.to_string())
    }
    fn meaning(&self) -> String {
        let meaning = self.parameter.meaning();
        let roles = match self.roles[..] {
            [] => return meaning,
            [one] => one.to_owned(),
            [one, other, ..] => format!("{one} and {}", other.to_lowercase()),
        };
        let mut letters = meaning.chars();
        let first = letters.next().map(|letter| letter.to_ascii_lowercase());
        format!("{roles}: {}{}", first.unwrap_or_default(), letters.as_str())
    }
    /// The sentence of the schema.
    fn description(&self) -> String {
        let range = self.range_text().map(|range| format!(", {range}"));
        let range = range.unwrap_or_default();
        format!(
            "{}{range}; default {}.",
            self.meaning(),
            self.default_text()
        )
    }
    fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        let Parameter { range, .. } = self.parameter;
        let mut schema = match range.default {
            Value::Time(_) => Option::<At<Time>>::json_schema(generator),
            Value::Count(_) => Option::<At<u64>>::json_schema(generator),
            Value::Rate(_) => Option::<At<FrameRate>>::json_schema(generator),
            Value::Octets(_) => Option::<At<Octets>>::json_schema(generator),
            Value::Flag(_) => Option::<At<bool>>::json_schema(generator),
        };
        if let (Value::Count(min), Value::Count(max)) = (range.min, range.max) {
            schema.insert("minimum".into(), min.into());
            schema.insert("maximum".into(), max.into());
        }
        schema.insert("description".into(), self.description().into());
        schema
    }
}

/// The keys of a section that set parameters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    list: Vec<Key>,
    /// Texts of keys in a notation of their own.
    texts: Vec<Text>,
}

/// The text of a key in a notation of its own.
#[derive(Clone, Debug)]
struct Text {
    key: &'static str,
    of: fn() -> String,
}

impl Keys {
    /// The parameters of one structure with these defaults.
    pub(crate) fn of(params: &impl Parameters) -> Self {
        Self::default().add(None, params)
    }
    /// Adds the parameters of a role. A key may be for several roles; its text is that of the first.
    pub(crate) fn of_role(self, role: &'static str, params: &impl Parameters) -> Self {
        self.add(Some(role), params)
    }
    fn add(mut self, role: Option<&'static str>, params: &impl Parameters) -> Self {
        for parameter in params.with_ranges() {
            let known = self
                .list
                .iter_mut()
                .find(|key| key.parameter.name == parameter.name);
            match known {
                Some(known) => known.roles.extend(role),
                None => self.list.push(Key {
                    parameter,
                    roles: role.into_iter().collect(),
                    default: None,
                    others: Vec::new(),
                }),
            }
        }
        self
    }
    /// The defaults of another version or side, where they differ; `of` says of which.
    pub(crate) fn otherwise(mut self, of: &'static str, params: &impl Parameters) -> Self {
        for other in params.with_ranges() {
            let key = self
                .list
                .iter_mut()
                .find(|key| key.parameter.name == other.name);
            if let Some(key) = key {
                let last = key.others.last().map(|(_, value)| *value);
                if other.value != last.unwrap_or(key.parameter.range.default) {
                    key.others.push((of, other.value));
                }
            }
        }
        self
    }
    /// Describes the default of a key whose default follows from other keys.
    pub(crate) fn default_is(mut self, name: &str, default: &'static str) -> Self {
        let keys = self
            .list
            .iter_mut()
            .filter(|key| key.parameter.name == name);
        keys.for_each(|key| key.default = Some(default));
        self
    }
    /// Without these parameters, for which the section has keys in a notation of their own.
    pub(crate) fn without<const N: usize>(mut self, names: [&str; N]) -> Self {
        self.list.retain(|key| !names.contains(&key.parameter.name));
        self
    }
    /// Another key of the section, in a notation of its own, has this text.
    pub(crate) fn text(mut self, key: &'static str, of: fn() -> String) -> Self {
        self.texts.push(Text { key, of });
        self
    }
    /// The names of the keys.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.list.iter().map(|key| key.parameter.name)
    }
    /// Rows of the page of lab files: name, meaning, range and default of each key.
    #[cfg(test)]
    pub(crate) fn rows(&self) -> impl Iterator<Item = [String; 4]> {
        self.list.iter().map(|key| {
            [
                format!("`{}`", key.parameter.name),
                key.meaning(),
                key.range_text().unwrap_or_default(),
                key.default_text(),
            ]
        })
    }
    /// The parameters with their ranges.
    #[cfg(test)]
    pub(crate) fn parameters(&self) -> impl Iterator<Item = Parameter> {
        self.list.iter().map(|key| key.parameter)
    }
}

/// Adds the keys to the schema of their section.
impl Transform for Keys {
    fn transform(&mut self, schema: &mut Schema) {
        let mut generator = SchemaGenerator::default();
        let section = schema.ensure_object();
        let properties = section
            .entry("properties")
            .or_insert_with(|| Json::Object(Default::default()));
        if let Json::Object(properties) = properties {
            for key in &self.list {
                let name = key.parameter.name.to_owned();
                properties.insert(name, key.schema(&mut generator).to_value());
            }
            for text in &self.texts {
                if let Some(property) = properties.get_mut(text.key) {
                    property["description"] = (text.of)().into();
                }
            }
        }
    }
}

/// The keys that a section gives.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    /// All keys, with the places of their values, in the order of the section.
    keys: Vec<(&'static str, Span)>,
    /// Values of parameters, each in its range.
    values: Vec<(&'static str, Value)>,
}

impl Given {
    /// Reads the parameters of a section. A value that is not in its range is a mistake, and is left out.
    pub(crate) fn read(keys: &Keys, fields: &Fields<'_>, d: &mut Diagnostics) -> Option<Self> {
        // Read all keys before giving up, so that every mistake is reported.
        let read: Vec<Option<_>> = keys.list.iter().map(|key| read(key, fields, d)).collect();
        let read: Option<Vec<_>> = read.into_iter().collect();
        let values: Vec<_> = read?.into_iter().flatten().collect();
        let left_out = |name: &str| {
            keys.names().any(|key| key == name) && values.iter().all(|(key, _)| *key != name)
        };
        let mut given = fields.given();
        given.retain(|(name, _)| !left_out(name));
        Some(Self {
            keys: given,
            values,
        })
    }
    /// Sets the parameters for which the section has a value.
    pub(crate) fn apply(&self, params: &mut impl Parameters) {
        for (name, value) in &self.values {
            // A section for several roles has parameters that this structure does not have.
            params.set(name, *value);
        }
    }
    /// The place of a value, if it was given.
    pub(crate) fn at(&self, name: &str) -> Option<Span> {
        self.iter()
            .find_map(|(key, at)| (key == name).then_some(at))
    }
    /// The parameters that the section has, with the places of their values.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = (&'static str, Span)> {
        let has = |key: &str| self.values.iter().any(|(name, _)| *name == key);
        self.iter().filter(move |(key, _)| has(key))
    }
    /// True if the section has any key.
    pub(crate) fn any(&self) -> bool {
        !self.keys.is_empty()
    }
    /// The keys that the section has, with the places of their values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, Span)> {
        self.keys.iter().copied()
    }
    /// The keys of this list that the section has, in the order of the list, with the places of their values.
    pub(crate) fn of<'a>(&self, keys: &'a [&'a str]) -> impl Iterator<Item = (&'a str, Span)> {
        keys.iter().filter_map(|key| Some((*key, self.at(key)?)))
    }
    /// Refuses those of these keys that the section has: `why` follows the name of the key, and the mistake may lie in
    /// the keys `rests` of the section at `place`.
    pub(crate) fn refuse(
        &self,
        keys: &[&str],
        why: &str,
        (place, rests): (Span, &[&str]),
        d: &mut Diagnostics,
    ) {
        for (key, at) in self.of(keys) {
            let found = d.error(at, format!("'{key}' {why}"));
            found.rests_in(place, rests.iter().copied());
        }
    }
}

/// A range in the notation of lab files.
pub(crate) fn range<T: Into<Value>>(range: Range<T>) -> RangeInclusive<Value> {
    range.min.into()..=range.max.into()
}

/// The value of a key, if the section has one. `None` if it cannot be read.
fn read(
    key: &Key,
    fields: &Fields<'_>,
    d: &mut Diagnostics,
) -> Option<Option<(&'static str, Value)>> {
    fn of<T: FromTree>(name: &str, fields: &Fields<'_>, d: &mut Diagnostics) -> Option<Option<T>> {
        fields.field(name, d)
    }
    let Parameter { name, range, .. } = key.parameter;
    let given = match range.default {
        Value::Time(_) => {
            of::<At<Time>>(name, fields, d)?.map(|v| v.map(|time| Value::Time(time.0)))
        }
        Value::Count(_) => of::<At<u64>>(name, fields, d)?.map(|v| v.map(Value::Count)),
        Value::Rate(_) => of::<At<FrameRate>>(name, fields, d)?
            .map(|v| v.map(|rate| Value::Rate(PerSecond(rate.0)))),
        Value::Octets(_) => of::<At<Octets>>(name, fields, d)?
            .map(|v| v.map(|octets| Value::Octets(parameters::Octets(octets.0)))),
        Value::Flag(_) => of::<At<bool>>(name, fields, d)?.map(|v| v.map(Value::Flag)),
    };
    let Some(given) = given else {
        return Some(None);
    };
    if !range.contains(given.value) {
        d.error(given.at, format!("{name} is {range}"));
        return Some(None);
    }
    Some(Some((name, given.value)))
}

/// The parameters that sections give, those of the first section before those of the others.
pub(crate) fn with<'a, P: Parameters>(
    mut params: P,
    sections: impl IntoIterator<Item = &'a Given, IntoIter: DoubleEndedIterator>,
) -> P {
    let sections = sections.into_iter().rev();
    sections.for_each(|section| section.apply(&mut params));
    params
}
