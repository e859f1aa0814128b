//! Trace events of machines: a line of the story, with named fields for programs.
//!
//! Most events are never read. So an event that a machine makes for each call or packet keeps what its text will tell
//! ([`Words::later`]) and the numbers of its fields ([`Value`]): it has no text before somebody reads it.

use aerostat_wire::Vc;
use core::fmt;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::Arc;

/// A trace event: an event name, a sentence, and fields.
///
/// Event names are stable (`lane.joined`, `mpc.shortcut.up`): programs match them. Sentences are for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Stable dotted name: protocol, then the event.
    pub name: &'static str,
    /// One sentence without the node's name and without a full stop.
    pub text: Words,
    /// Values for programs, in order.
    pub fields: Fields,
    /// True for main steps of the story; false for details.
    pub milestone: bool,
}

/// Fields of a trace event; most events have one or two, which need no memory of their own.
pub type Fields = SmallVec<[(&'static str, Value); 2]>;

impl Trace {
    /// A detail.
    #[must_use]
    pub fn detail(name: &'static str, text: impl Into<Words>) -> Self {
        Self {
            name,
            text: text.into(),
            fields: Fields::new(),
            milestone: false,
        }
    }
    /// A step of the main story.
    #[must_use]
    pub fn milestone(name: &'static str, text: impl Into<Words>) -> Self {
        Self {
            milestone: true,
            ..Self::detail(name, text)
        }
    }
    /// Adds a field.
    #[must_use]
    pub fn with(self, key: &'static str, value: impl ToString) -> Self {
        self.with_value(key, value.to_string())
    }
    /// Adds a field whose text is made when somebody reads it.
    #[must_use]
    pub fn with_value(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.fields.push((key, value.into()));
        self
    }
    /// The value of a field; `None` if there is no such field.
    #[must_use]
    pub fn field(&self, key: &str) -> Option<&Value> {
        let mut fields = self.fields.iter();
        fields
            .find(|(known, _)| *known == key)
            .map(|(_, value)| value)
    }
    /// About the octets of the words of the event, or of what makes them.
    #[must_use]
    pub fn octets(&self) -> usize {
        let fields = self.fields.iter();
        let fields = fields.map(|(key, value)| key.len() + value.octets());
        self.name.len() + self.text.octets() + fields.sum::<usize>()
    }
}

/// Writer of a text for a reader.
type Writer = dyn Fn(&mut fmt::Formatter<'_>) -> fmt::Result + Send + Sync;

/// The sentence of a trace event. `Display` gives its text.
#[derive(Clone)]
pub enum Words {
    /// A text of the program.
    Fixed(&'static str),
    /// A text that was made.
    Made(String),
    /// The writer of the text: [`Words::later`].
    Later(Arc<Writer>),
}

impl Words {
    /// Words that `write` writes each time that they are read; it keeps what it needs for this.
    ///
    /// ```
    /// use aerostat_proto::{Trace, Words};
    ///
    /// let call = 7;
    /// let text = Words::later(move |f| write!(f, "call {call} is active"));
    /// assert_eq!(Trace::detail("uni.call", text).text.to_string(), "call 7 is active");
    /// ```
    #[must_use]
    pub fn later(
        write: impl Fn(&mut fmt::Formatter<'_>) -> fmt::Result + Send + Sync + 'static,
    ) -> Self {
        Self::Later(Arc::new(write))
    }
    /// The text.
    #[must_use]
    pub fn read(&self) -> Cow<'_, str> {
        match self {
            Self::Fixed(text) => Cow::Borrowed(text),
            Self::Made(text) => Cow::Borrowed(text),
            Self::Later(_) => Cow::Owned(self.to_string()),
        }
    }
    /// The octets of the text, or of what writes it.
    fn octets(&self) -> usize {
        match self {
            Self::Fixed(text) => text.len(),
            Self::Made(text) => text.len(),
            Self::Later(write) => size_of_val(&**write),
        }
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(text) => f.write_str(text),
            Self::Made(text) => f.write_str(text),
            Self::Later(write) => write(f),
        }
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.read(), f)
    }
}

impl PartialEq for Words {
    fn eq(&self, other: &Self) -> bool {
        self.read() == other.read()
    }
}

impl Eq for Words {}

impl From<&'static str> for Words {
    fn from(text: &'static str) -> Self {
        Self::Fixed(text)
    }
}

impl From<String> for Words {
    fn from(text: String) -> Self {
        Self::Made(text)
    }
}

/// The value of a field of a trace event. `Display` gives its text.
#[derive(Clone)]
pub enum Value {
    /// A text of the program.
    Fixed(&'static str),
    /// A text that was made.
    Text(String),
    /// A number.
    Number(u64),
    /// A number with eight hexadecimal digits.
    Hex(u32),
    /// A label.
    Label(Vc),
}

impl Value {
    /// The text.
    #[must_use]
    pub fn read(&self) -> Cow<'_, str> {
        match self {
            Self::Fixed(text) => Cow::Borrowed(text),
            Self::Text(text) => Cow::Borrowed(text),
            other => Cow::Owned(other.to_string()),
        }
    }
    /// The octets of the value.
    const fn octets(&self) -> usize {
        match self {
            Self::Fixed(text) => text.len(),
            Self::Text(text) => text.len(),
            Self::Number(_) => size_of::<u64>(),
            Self::Hex(_) => size_of::<u32>(),
            Self::Label(_) => size_of::<Vc>(),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(text) => f.write_str(text),
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => number.fmt(f),
            Self::Hex(number) => write!(f, "{number:08x}"),
            Self::Label(vc) => vc.fmt(f),
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.read(), f)
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.read() == other.read()
    }
}

impl Eq for Value {}

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Self {
        Self::Fixed(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vc> for Value {
    fn from(vc: Vc) -> Self {
        Self::Label(vc)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<u16> for Value {
    fn from(number: u16) -> Self {
        Self::Number(number.into())
    }
}

impl From<u8> for Value {
    fn from(number: u8) -> Self {
        Self::Number(number.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_made_when_they_are_read_and_equal_those_that_were_made_at_once() {
        let vc = Vc::new(0, 101);
        let later = Trace::detail(
            "x",
            Words::later(move |f| write!(f, "connection {vc} open")),
        );
        let later = later.with_value("vc", vc).with_value("call", 7_u32);
        let made = Trace::detail("x", format!("connection {vc} open"));
        let made = made.with("vc", vc).with("call", 7);
        assert_eq!(later, made);
        assert_eq!(later.text.to_string(), "connection 0.101 open");
        assert_eq!(later.field("call").map(Value::to_string), Some("7".into()));
        assert!(later.field("port").is_none());
        assert_ne!(later, Trace::detail("x", "connection 0.102 open"));
        assert_eq!(later.octets(), 1 + size_of_val(&vc) + 2 + 4 + 4 + 8);
    }
}
