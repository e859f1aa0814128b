//! Requests that wait for their answers.
//!
//! An answer without its request tells nothing by itself: the file may begin between both. It tells something if the
//! last request of the same kind stays without its own answer. So such an answer is kept beside that request, and is
//! named at the end of the file if the request still waits.

use crate::book::{At, Book, Open, Recent};
use crate::rules::Rule;
use aerostat_wire::counted;

/// An answer that fits another request.
#[derive(Clone, Debug)]
struct Stray {
    rule: Rule,
    at: At,
    text: String,
}

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) at: At,
    /// The request in words.
    pub(crate) what: String,
    /// Times that it was sent.
    times: u64,
    /// True if others have passed it on: then its answer may go another way.
    relayed: bool,
    stray: Option<Box<Stray>>,
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
            relayed: false,
            stray: None,
        }
    }
    /// Counts a repetition.
    pub(crate) fn again(&mut self) {
        self.times += 1;
    }
    /// True if an answer would have come within `wait`.
    pub(crate) fn is_overdue(&self, wait: Seconds, now_ns: i128) -> bool {
        !self.relayed && now_ns - self.at.time_ns >= wait * SECOND
    }
    /// Names the rule if no answer came within `wait`, while the capture went on.
    pub(crate) fn end(&self, rule: Rule, wait: Seconds, now_ns: i128, book: &mut Book) {
        if !self.is_overdue(wait, now_ns) {
            return;
        }
        let times = match self.times {
            1 => String::new(),
            times => format!(", sent {}", counted(times, "time", "times")),
        };
        let waited = (now_ns - self.at.time_ns) / SECOND;
        let text = format!("{}{times}: no answer in {waited} s", self.what);
        book.unanswered.insert(self.at.link);
        book.name(rule, &self.at, text);
    }
}

/// Requests by key: a repetition counts as the same request. The last request of a group `G` waits for the
/// next answer.
#[derive(Debug)]
pub(crate) struct Requests<K, G = ()> {
    waiting: Open<K, Asked>,
    /// Times of answers, since an answer may come twice.
    answered: Recent<K, i128>,
    last: Recent<G, K>,
}

impl<K: Ord, G: Ord> Default for Requests<K, G> {
    fn default() -> Self {
        Self {
            waiting: Open::default(),
            answered: Recent::default(),
            last: Recent::default(),
        }
    }
}

impl<K: Ord + Clone, G: Ord> Requests<K, G> {
    pub(crate) fn ask(&mut self, key: K, at: &At, what: impl Into<String>, book: &mut Book) {
        if let Some(asked) = self.waiting.get_mut(&key) {
            return asked.again();
        }
        // A repetition may cross the answer.
        let crosses = |answered: &i128| at.time_ns - answered < SECOND;
        if self.answered.get(&key).is_none_or(|at| !crosses(at)) {
            self.waiting.put(key, Asked::new(at, what), book);
        }
    }
    /// Makes a request the last one of its group.
    pub(crate) fn lead(&mut self, group: G, key: K, book: &Book) {
        self.last.put(group, key, book);
    }
    /// Notes that another station passes a request on.
    pub(crate) fn relay(&mut self, key: &K) {
        if let Some(asked) = self.waiting.get_mut(key) {
            asked.relayed = true;
        }
    }
    /// Notes an answer; false if its request was not seen.
    pub(crate) fn answer(&mut self, key: &K, at: &At, book: &Book) -> bool {
        let known = self.waiting.take(key).is_some() || self.answered.get(key).is_some();
        if known {
            self.answered.put(key.clone(), at.time_ns, book);
        }
        known
    }
    /// Keeps an answer without its request beside the last request of its group, if `text` finds that they differ.
    pub(crate) fn stray(
        &mut self,
        group: &G,
        at: &At,
        text: impl FnOnce(&K, &Asked) -> Option<(Rule, String)>,
    ) {
        let Some(key) = self.last.get(group) else {
            return;
        };
        let Some(asked) = self.waiting.get_mut(key) else {
            return;
        };
        if asked.stray.is_none()
            && let Some((rule, text)) = text(key, asked)
        {
            let at = at.clone();
            asked.stray = Some(Box::new(Stray { rule, at, text }));
        }
    }
    /// Requests without an answer.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Asked> {
        self.waiting.iter().map(|(_, asked)| asked)
    }
    /// Forgets the requests of a range.
    pub(crate) fn forget(&mut self, range: std::ops::RangeInclusive<K>) {
        self.waiting.take_range(range);
    }
    /// Names the rule for each request without an answer, and the answers that others got.
    pub(crate) fn end(&self, rule: Option<Rule>, wait: Seconds, now_ns: i128, book: &mut Book) {
        for asked in self.waiting() {
            if let Some(rule) = rule {
                asked.end(rule, wait, now_ns, book);
            }
            if let Some(stray) = asked.stray.as_ref()
                && asked.is_overdue(wait, now_ns)
            {
                book.name(stray.rule, &stray.at, stray.text.as_str());
            }
        }
    }
}
