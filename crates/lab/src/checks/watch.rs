//! A watch on messages and shortcuts while a lab runs: a count for each check that wants one.

use super::{Check, Seen, What};
use crate::ladder::Message;
use aerostat_proto::Duration;
use serde_json::Value;
use std::collections::BTreeMap;

/// Counts of messages and shortcuts.
#[derive(Clone, Debug)]
pub struct Watch<'a> {
    checks: &'a [Check],
    messages: BTreeMap<usize, u64>,
    shortcuts: BTreeMap<u64, Shortcut>,
    /// Shortcuts that were open in time, by check.
    opened: BTreeMap<usize, u64>,
}

#[derive(Clone, Debug, Default)]
struct Shortcut {
    from: String,
    to: String,
    state: String,
    /// Checks that have counted it.
    counted: Vec<usize>,
}

impl Shortcut {
    fn joins(&self, ends: &[String; 2]) -> bool {
        self.from == ends[0] && self.to == ends[1]
    }
    fn is_open(&self) -> bool {
        ["open", "refreshing"].contains(&self.state.as_str())
    }
}

/// True if a time is after the one and not after the other.
fn in_time(time: f64, after: Option<Duration>, before: Option<Duration>) -> bool {
    after.is_none_or(|after| time > after.as_secs_f64())
        && before.is_none_or(|before| time <= before.as_secs_f64())
}

impl<'a> Watch<'a> {
    /// Nothing seen yet.
    #[must_use]
    pub fn new(checks: &'a [Check]) -> Self {
        Self {
            checks,
            messages: BTreeMap::new(),
            shortcuts: BTreeMap::new(),
            opened: BTreeMap::new(),
        }
    }

    /// True if a check is about messages.
    #[must_use]
    pub fn wants_messages(&self) -> bool {
        let mut all = self.checks.iter();
        all.any(|check| matches!(check.what, What::Message { .. }))
    }

    /// True if a check is about shortcuts.
    #[must_use]
    pub fn wants_shortcuts(&self) -> bool {
        let mut all = self.checks.iter();
        all.any(|check| matches!(check.what, What::Shortcut { .. }))
    }

    /// A message was sent on a link.
    pub fn message(&mut self, message: &Message) {
        let mut text = None;
        for (number, check) in self.checks.iter().enumerate() {
            let What::Message {
                words,
                from,
                to,
                after,
                before,
                ..
            } = &check.what
            else {
                continue;
            };
            let fits = from.as_ref().is_none_or(|from| *from == message.from)
                && to.as_ref().is_none_or(|to| *to == message.to)
                && in_time(message.time, *after, *before);
            if fits
                && text
                    .get_or_insert_with(|| message.text.to_lowercase())
                    .contains(words)
            {
                *self.messages.entry(number).or_default() += 1;
            }
        }
    }

    /// A line of the stream of events: those about shortcuts count.
    pub fn line(&mut self, line: &str) {
        if !line.contains("\"shortcut\"") {
            return;
        }
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            return;
        };
        let (Some("shortcut"), Some(id)) = (line["is"].as_str(), line["id"].as_u64()) else {
            return;
        };
        let time = line["t"].as_u64().unwrap_or_default() as f64 / 1e9;
        if line["gone"] == true {
            self.shortcuts.remove(&id);
            return;
        }
        let known = self.shortcuts.entry(id).or_default();
        let fields = [
            ("from", &mut known.from),
            ("to", &mut known.to),
            ("state", &mut known.state),
        ];
        for (name, field) in fields {
            if let Some(text) = line[name].as_str() {
                text.clone_into(field);
            }
        }
        if !known.is_open() {
            return;
        }
        for (number, check) in self.checks.iter().enumerate() {
            let What::Shortcut { ends, by, .. } = &check.what else {
                continue;
            };
            let fits = known.joins(ends) && in_time(time, None, *by);
            if fits && by.is_some() && !known.counted.contains(&number) {
                known.counted.push(number);
                *self.opened.entry(number).or_default() += 1;
            }
        }
    }

    /// Observations, by the number of the check.
    #[must_use]
    pub fn seen(&self) -> BTreeMap<usize, Seen> {
        let count = |(number, check): (usize, &Check)| {
            let of = |map: &BTreeMap<usize, u64>| map.get(&number).copied().unwrap_or_default();
            let count = match &check.what {
                What::Message { .. } => of(&self.messages),
                What::Shortcut { by: Some(_), .. } => of(&self.opened),
                What::Shortcut { ends, by: None, .. } => {
                    let all = self.shortcuts.values();
                    all.filter(|one| one.is_open() && one.joins(ends)).count() as u64
                }
                _ => return None,
            };
            Some((number, Seen::Count(count)))
        };
        self.checks.iter().enumerate().filter_map(count).collect()
    }
}
