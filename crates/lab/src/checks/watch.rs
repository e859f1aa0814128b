//! A watch on messages and shortcuts while a lab runs: a count for each check that wants one.
//!
//! A shortcut was open in time if the story tells that packets take it; it is open at the end if the stream of events
//! says so. Both are there in virtual and in real time, also for what was before the watch began.

use super::{Check, Seen, What};
use crate::event::{Event, Names};
use crate::ladder::Message;
use aerostat_proto::Duration;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Counts of messages and shortcuts.
#[derive(Clone, Debug)]
pub struct Watch<'a> {
    checks: &'a [Check],
    messages: BTreeMap<usize, u64>,
    shortcuts: BTreeMap<u64, Shortcut>,
    /// Destinations of the shortcuts that were open in time, by check.
    opened: BTreeMap<usize, BTreeSet<String>>,
    /// Checks whose words messages of idle links have.
    idle: BTreeSet<usize>,
}

#[derive(Clone, Debug, Default)]
struct Shortcut {
    from: String,
    to: String,
    state: String,
}

impl Shortcut {
    fn joins(&self, ends: &[String; 2]) -> bool {
        self.from == ends[0] && self.to == ends[1]
    }
    fn is_open(&self) -> bool {
        ["open", "refreshing"].contains(&self.state.as_str())
    }
}

/// Numbers of things that a running lab no longer keeps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Forgotten {
    /// Messages, without those of idle links.
    pub messages: u64,
    /// Messages of idle links: see [`Message::is_idle`].
    pub idle: u64,
    /// Steps of the story.
    pub steps: u64,
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
            idle: BTreeSet::new(),
        }
    }

    /// True if a check is about messages.
    #[must_use]
    pub fn wants_messages(&self) -> bool {
        let mut all = self.checks.iter();
        all.any(|check| matches!(check.what, What::Message { .. }))
    }

    /// True if a check is about shortcuts that are open at the end.
    #[must_use]
    pub fn wants_shortcuts(&self) -> bool {
        let mut all = self.checks.iter();
        all.any(|check| matches!(check.what, What::Shortcut { by: None, .. }))
    }

    /// The time after which nothing can change what is counted until certain times.
    #[must_use]
    pub fn ends(&self) -> Option<Duration> {
        let times = self.checks.iter().filter_map(|check| match &check.what {
            What::Shortcut { by, .. } => *by,
            What::Message { after, before, .. } => before.or(*after),
            _ => None,
        });
        times.max()
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
            let text = text.get_or_insert_with(|| message.text.to_lowercase());
            if !text.contains(words) {
                continue;
            }
            if message.is_idle() {
                self.idle.insert(number);
            }
            let fits = from.as_ref().is_none_or(|from| *from == message.from)
                && to.as_ref().is_none_or(|to| *to == message.to)
                && in_time(message.time, *after, *before);
            if fits {
                *self.messages.entry(number).or_default() += 1;
            }
        }
    }

    /// A step of the story: those count that tell the first packet over a shortcut.
    pub fn step(&mut self, names: &Names, step: &Event) {
        let (destination, peer) = match step.event.as_str() {
            "mpc.shortcut.first" => ("destination", "peer"),
            "nhc.way" => ("target", "atm"),
            _ => return,
        };
        let field = |name| step.fields.get(name).map(String::as_str);
        let (Some(destination), Some(peer)) = (field(destination), field(peer)) else {
            return;
        };
        let peer = names.in_text(peer);
        // The selector follows the name.
        let to = peer.rsplit_once('/').map_or(&*peer, |(name, _)| name);
        for (number, check) in self.checks.iter().enumerate() {
            if let What::Shortcut { ends, by, .. } = &check.what
                && by.is_some()
                && ends[0] == step.node
                && ends[1] == to
                && in_time(step.time, None, *by)
            {
                let opened = self.opened.entry(number).or_default();
                opened.insert(destination.to_owned());
            }
        }
    }

    /// Makes the counts unknown that could be other with what a running lab no longer keeps: messages, those of idle
    /// links, and steps of the story.
    pub fn forget(&self, seen: &mut BTreeMap<usize, Seen>, gone: &Forgotten) {
        for (number, check) in self.checks.iter().enumerate() {
            let (is, gone, what) = match &check.what {
                What::Message { is, .. } => {
                    let idle = self.idle.contains(&number).then_some(gone.idle);
                    (is, gone.messages + idle.unwrap_or_default(), "messages")
                }
                What::Shortcut { is, by, .. } if by.is_some() => {
                    (is, gone.steps, "steps of the story")
                }
                _ => continue,
            };
            let Some(Seen::Count(count)) = seen.get(&number) else {
                continue;
            };
            let settled = is.enough().is_some_and(|enough| *count >= enough);
            if gone > 0 && !settled {
                let why = format!("{gone} older {what} are no longer kept");
                seen.insert(number, Seen::Unknown(why));
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
    }

    /// Observations, by the number of the check.
    #[must_use]
    pub fn seen(&self) -> BTreeMap<usize, Seen> {
        let count = |(number, check): (usize, &Check)| {
            let count = match &check.what {
                What::Message { .. } => self.messages.get(&number).copied().unwrap_or_default(),
                What::Shortcut { by: Some(_), .. } => {
                    self.opened.get(&number).map_or(0, |all| all.len() as u64)
                }
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
