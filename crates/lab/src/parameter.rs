//! Keys of a lab file that set a parameter of a protocol: the range, the default and what they are called come from the
//! protocol's own structure of parameters.

use crate::diag::Diagnostics;
use crate::field::At;
use crate::file::Time;
use aerostat_proto::Duration;
use aerostat_proto::parameters::{Range, Value};
use schemars::Schema;
use schemars::transform::Transform;
use serde_json::Value as Json;

/// Words that stand for themselves in braces in the documentation of a key: `{range}`, `{default}` and others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words(Vec<(&'static str, String)>);

impl Words {
    /// With another word.
    pub(crate) fn and(mut self, word: &'static str, value: impl Into<Value>) -> Self {
        self.0.push((word, value.into().to_string()));
        self
    }
    /// With another word for a range.
    pub(crate) fn and_range<T: Copy + Into<Value>>(
        mut self,
        word: &'static str,
        range: Range<T>,
    ) -> Self {
        self.0.push((word, range.to_string()));
        self
    }
}

impl<T: Copy + Into<Value>> From<Range<T>> for Words {
    fn from(range: Range<T>) -> Self {
        let words = Self::default().and("default", range.default);
        words.and_range("range", range)
    }
}

impl Transform for Words {
    fn transform(&mut self, schema: &mut Schema) {
        let Some(Json::String(text)) = schema.get_mut("description") else {
            return;
        };
        for (word, value) in &self.0 {
            *text = text.replace(&format!("{{{word}}}"), value);
        }
    }
}

/// A value of a lab file that may be that of a parameter.
pub(crate) trait Given<T> {
    /// The value, or its mistake: told once, though several nodes may read it.
    fn checked(&self, name: &str, range: Range<T>, d: &mut Diagnostics) -> Option<T>;
}

impl Given<Duration> for At<Time> {
    fn checked(&self, name: &str, range: Range<Duration>, d: &mut Diagnostics) -> Option<Duration> {
        let time = self.value.0;
        if range.contains(time) {
            return Some(time);
        }
        tell(self, name, range, d);
        None
    }
}

impl<T> Given<T> for At<u64>
where
    T: Copy + PartialOrd + TryFrom<u64> + Into<Value>,
{
    fn checked(&self, name: &str, range: Range<T>, d: &mut Diagnostics) -> Option<T> {
        let count = T::try_from(self.value).ok();
        let count = count.filter(|count| range.contains(*count));
        if count.is_none() {
            tell(self, name, range, d);
        }
        count
    }
}

fn tell<V, T: Copy + Into<Value>>(given: &At<V>, name: &str, range: Range<T>, d: &mut Diagnostics) {
    if !d.iter().any(|finding| finding.at == given.at) {
        d.error(given.at, format!("{name} is {range}"));
    }
}

/// Takes these keys over into a structure of parameters, each from the first of the sections that has it.
macro_rules! take {
    ($sections:expr => $params:ident: $kind:ty, $d:expr; $($field:ident)*) => {
        $(
            let given = $sections.iter().find_map(|section| section.$field.as_ref());
            let range = <$kind>::RANGES.$field;
            let value = given.and_then(|given| crate::parameter::Given::checked(given, stringify!($field), range, $d));
            $params.$field = value.unwrap_or($params.$field);
        )*
    };
}
pub(crate) use take;
