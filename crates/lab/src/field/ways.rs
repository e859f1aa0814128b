//! Values of the two directions of a link: one for both, or `{ up: ..., down: ... }`.

use super::{At, Fields, FromText, FromTree, Key, Leaf, Own};
use crate::diag::Diagnostics;
use crate::model::Way;
use crate::tree::{Tree, Value};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

/// A value for each direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ways<T> {
    /// From the user side to the network side.
    pub(crate) up: T,
    /// The other direction.
    pub(crate) down: T,
}

impl<T> Ways<T> {
    /// The values that `of` makes for the directions.
    pub(crate) fn of(mut of: impl FnMut(Way) -> T) -> Self {
        let [up, down] = Way::ALL.map(&mut of);
        Self { up, down }
    }
    /// The value of a direction.
    pub(crate) const fn get(&self, way: Way) -> &T {
        match way {
            Way::Up => &self.up,
            Way::Down => &self.down,
        }
    }
}

impl<T: Leaf> Leaf for Ways<T> {
    type Plain = Ways<T::Plain>;
    fn plain(&self) -> Self::Plain {
        Ways::of(|way| self.get(way).plain())
    }
}

/// New values of directions, each of which may be left out.
#[derive(Clone, Debug)]
pub(crate) struct SomeWays<T>(Ways<Option<At<T>>>);

impl<T> SomeWays<T> {
    /// The new value of a direction.
    pub(crate) const fn get(&self, way: Way) -> Option<&At<T>> {
        self.0.get(way).as_ref()
    }
}

impl<T: FromText + Clone> FromTree for SomeWays<T> {
    fn from_tree(tree: &Tree, d: &mut Diagnostics) -> Option<Self> {
        let Value::Map(_) = &tree.value else {
            let both = At::<T>::from_tree(tree, d)?;
            return Some(Self(Ways::of(|_| Some(both.clone()))));
        };
        let fields = Fields::open(tree, "Ways", &Way::ALL.map(Way::name), d)?;
        let [up, down] = Way::ALL.map(|way| fields.field::<Option<At<T>>>(way.name(), d));
        let (up, down) = (up?, down?);
        if Way::ALL.iter().all(|way| fields.lacks(way.name())) {
            d.error(tree.at, "neither 'up' nor 'down' stands here")
                .hint("for example: { up: 1024kbps, down: 8128kbps }; a link set has rate.up=1024kbps");
            return None;
        }
        Some(Self(Ways { up, down }))
    }
}

impl<T: FromText + Clone> FromTree for At<Ways<T>> {
    fn from_tree(tree: &Tree, d: &mut Diagnostics) -> Option<Self> {
        let Value::Map(_) = &tree.value else {
            return At::<T>::from_tree(tree, d).map(|both| both.map(|v| Ways::of(|_| v.clone())));
        };
        let fields = Fields::open(tree, "Ways", &Way::ALL.map(Way::name), d)?;
        let [up, down] = Way::ALL.map(|way| {
            if fields.lacks(way.name()) {
                d.error(tree.at, format!("'{way}' is missing here"))
                    .hint(format!("{way}: {}", meaning(way)))
                    .rests_in(tree.at, [way.name()]);
                return None;
            }
            fields.field::<At<T>>(way.name(), d)
        });
        let (up, down) = (up?.value, down?.value);
        Some(Self {
            value: Ways { up, down },
            at: tree.at,
        })
    }
}

/// A direction in words.
const fn meaning(way: Way) -> &'static str {
    match way {
        Way::Up => "from a host to its switch; else to the node of the link that is named first",
        Way::Down => {
            "from a switch to its host; else from the node of the link that is named first"
        }
    }
}

macro_rules! schema {
    ($type:ident, $required:expr) => {
        impl<T: JsonSchema> JsonSchema for $type<T> {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                format!("{}_of_{}", stringify!($type), T::schema_name()).into()
            }
            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let value = generator.subschema_for::<T>();
                let required: &[&str] = $required;
                json_schema!({
                    "anyOf": [
                        value,
                        {
                            "type": "object",
                            "description": "a value for each direction",
                            "properties": { "up": value, "down": value },
                            "required": required,
                            "minProperties": 1,
                            "additionalProperties": false
                        }
                    ]
                })
            }
        }
    };
}
schema!(Ways, &["up", "down"]);
schema!(SomeWays, &[]);

/// A type of keys with a default, or with a range.
pub(crate) trait Keyed: Sized {
    /// Reads a field with a default.
    fn key(fields: &Fields<'_>, own: &Own, d: &mut Diagnostics) -> Option<Key<Self>>;
}

/// The same with a range.
pub(crate) trait KeyedWithin: Sized {
    /// Reads a field with a default and a range.
    fn key_within(fields: &Fields<'_>, own: &Own, d: &mut Diagnostics) -> Option<Key<Self>>;
}

impl<T: FromText> Keyed for T {
    fn key(fields: &Fields<'_>, own: &Own, d: &mut Diagnostics) -> Option<Key<Self>> {
        let given = fields.field(own.name, d)?;
        fields.or_default(given, own, T::from_text, d)
    }
}

impl<T: FromText + PartialOrd> KeyedWithin for T {
    fn key_within(fields: &Fields<'_>, own: &Own, d: &mut Diagnostics) -> Option<Key<Self>> {
        let given = fields.within(own, d)?;
        fields.or_default(given, own, T::from_text, d)
    }
}

/// The value of both directions.
fn both<T: FromText + Clone>(text: &str) -> Result<Ways<T>, String> {
    T::from_text(text).map(|value| Ways::of(|_| value.clone()))
}

impl<T: FromText + Clone> Keyed for Ways<T> {
    fn key(fields: &Fields<'_>, own: &Own, d: &mut Diagnostics) -> Option<Key<Self>> {
        let given: Option<At<Self>> = fields.field(own.name, d)?;
        fields.or_default(given, own, both, d)
    }
}

impl<T: FromText + Clone + PartialOrd> KeyedWithin for Ways<T> {
    fn key_within(fields: &Fields<'_>, own: &Own, d: &mut Diagnostics) -> Option<Key<Self>> {
        let given: Option<At<Self>> = fields.field(own.name, d)?;
        let given = given.filter(|given| {
            let Ways { up, down } = &given.value;
            [up, down]
                .into_iter()
                .all(|value| own.check(value, given.at, d))
        });
        fields.or_default(given, own, both, d)
    }
}
