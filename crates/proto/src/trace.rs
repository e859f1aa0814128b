//! Trace events of machines: a line of the story, with named fields for programs.

/// A trace event: an event name, a sentence, and fields.
///
/// Event names are stable (`lane.joined`, `mpc.shortcut.up`): programs match them. Sentences are for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Stable dotted name: protocol, then the event.
    pub name: &'static str,
    /// One sentence without the node's name and without a full stop.
    pub text: String,
    /// Values for programs, in order.
    pub fields: Vec<(&'static str, String)>,
    /// True for main steps of the story; false for details.
    pub milestone: bool,
}

impl Trace {
    /// A detail.
    #[must_use]
    pub fn detail(name: &'static str, text: impl Into<String>) -> Self {
        Self {
            name,
            text: text.into(),
            fields: Vec::new(),
            milestone: false,
        }
    }
    /// A step of the main story.
    #[must_use]
    pub fn milestone(name: &'static str, text: impl Into<String>) -> Self {
        Self {
            milestone: true,
            ..Self::detail(name, text)
        }
    }
    /// Adds a field.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl ToString) -> Self {
        self.fields.push((key, value.to_string()));
        self
    }
}
