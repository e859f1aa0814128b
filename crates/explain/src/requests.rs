//! Requests that wait for their answers.

use crate::book::{At, Book, Open};
use crate::rules::Rule;
use aerostat_wire::counted;

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) at: At,
    /// The request in words.
    pub(crate) what: String,
    /// Times that it was sent.
    times: u64,
    /// True once an answer has come.
    answered: bool,
}

/// Seconds that an answer may take.
pub(crate) type Seconds = i128;

/// Nanoseconds of a second.
pub(crate) const SECOND: i128 = 1_000_000_000;

impl Asked {
    pub(crate) fn new(at: &At, what: impl Into<String>) -> Self {
        Self {
            at: at.clone(),
            what: what.into(),
            times: 1,
            answered: false,
        }
    }
    /// Names the rule if no answer came within `wait`, while the capture went on.
    pub(crate) fn end(&self, rule: Rule, wait: Seconds, now_ns: i128, book: &mut Book) {
        let waited = now_ns - self.at.time_ns;
        if self.answered || waited < wait * SECOND {
            return;
        }
        let times = match self.times {
            1 => String::new(),
            times => format!(", sent {}", counted(times, "time", "times")),
        };
        let text = format!("{}{times}: no answer in {} s", self.what, waited / SECOND);
        book.name(rule, &self.at, text);
    }
}

/// Requests by key: a repetition counts as the same request. Answered ones stay until the table is full, since an
/// answer may come twice.
#[derive(Debug)]
pub(crate) struct Requests<K>(Open<K, Asked>);

impl<K: Ord> Default for Requests<K> {
    fn default() -> Self {
        Self(Open::default())
    }
}

impl<K: Ord> Requests<K> {
    pub(crate) fn ask(&mut self, key: K, at: &At, what: impl Into<String>, book: &mut Book) {
        if let Some(asked) = self.0.get_mut(&key) {
            asked.times += 1;
            return;
        }
        if self.0.len() >= book.limits.open {
            self.0.retain(|_, asked| !asked.answered);
        }
        self.0.put(key, Asked::new(at, what), book);
    }
    /// The request of an answer, if it was seen.
    pub(crate) fn answer(&mut self, key: &K) -> Option<&Asked> {
        let asked = self.0.get_mut(key)?;
        asked.answered = true;
        Some(asked)
    }
    /// The first request without an answer for which `of` holds.
    pub(crate) fn waiting(&self, mut of: impl FnMut(&K, &Asked) -> bool) -> Option<&Asked> {
        let mut open = self.0.iter().filter(|(_, asked)| !asked.answered);
        open.find(|(key, asked)| of(key, asked))
            .map(|(_, asked)| asked)
    }
    /// Forgets requests.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&K) -> bool) {
        self.0.retain(|key, _| keep(key));
    }
    /// Names the rule for each request without an answer.
    pub(crate) fn end(&self, rule: Rule, wait: Seconds, now_ns: i128, book: &mut Book) {
        for (_, asked) in self.0.iter() {
            asked.end(rule, wait, now_ns, book);
        }
    }
}
