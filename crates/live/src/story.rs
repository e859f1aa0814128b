//! The events of a running lab: the latest ones, and clients that follow them.
//!
//! An event has no text before somebody reads it: most events are never read, and peers and daemons wait for the loop
//! meanwhile. The thread of a client makes the text that the client reads.

use aerostat_lab::event::{Event, Names, Telling};
use aerostat_proto::{Instant, Trace};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use crate::control::STREAM_DEPTH;

/// Limit of kept events.
const HISTORY: usize = 20_000;
/// Limit of octets of their words.
const HISTORY_OCTETS: usize = 8 * 1024 * 1024;

/// Limit of events among which a gathered stream looks for those that it tells.
const MOST_LOOKED_AT: usize = 2000;

/// An event of a node, or of the lab.
#[derive(Clone, Debug)]
pub struct Step {
    at: Instant,
    node: Arc<str>,
    trace: Trace,
}

impl Step {
    pub(crate) const fn new(at: Instant, node: Arc<str>, trace: Trace) -> Self {
        Self { at, node, trace }
    }
    /// The time.
    #[must_use]
    pub const fn at(&self) -> Instant {
        self.at
    }
    /// The name of the node, or of the lab.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.node
    }
    /// The event without its time; ATM addresses in its text have no names.
    #[must_use]
    pub const fn trace(&self) -> &Trace {
        &self.trace
    }
    /// True if the story has this event.
    #[must_use]
    pub const fn is_told(&self, telling: Telling) -> bool {
        telling.tells(self.trace.milestone)
    }
    /// The event for people and programs; ATM addresses in its text are replaced by names.
    #[must_use]
    pub fn event(&self, names: &Names) -> Event {
        let mut event = Event::new(self.at, &self.node, &self.trace);
        event.text = names.in_text(&event.text);
        event
    }
    /// About the octets of its words.
    fn octets(&self) -> usize {
        self.node.len() + self.trace.octets()
    }
}

/// Events on their way to a client.
#[derive(Debug)]
pub struct Steps {
    all: Vec<Step>,
    names: Arc<Names>,
}

impl From<Steps> for Vec<u8> {
    /// One line of JSON for each event.
    fn from(steps: Steps) -> Self {
        let lines = steps.all.iter();
        let lines = lines.map(|step| step.event(&steps.names).json() + "\n");
        lines.collect::<String>().into_bytes()
    }
}

/// The latest events for a client.
#[derive(Debug)]
pub(crate) struct Latest<'a> {
    /// Events that are told, in their order.
    pub(crate) told: Vec<&'a Step>,
    /// Number of those that are left out.
    pub(crate) left: u64,
}

/// History and followers.
#[derive(Debug)]
pub(crate) struct Story {
    steps: VecDeque<Step>,
    octets: usize,
    followers: Vec<Follower>,
    forgotten: u64,
    missed: u64,
    names: Arc<Names>,
}

#[derive(Debug)]
struct Follower {
    steps: SyncSender<Steps>,
    missed: u64,
}

impl Story {
    /// A story of nodes with these names for their addresses.
    pub(crate) fn new(names: Names) -> Self {
        Self {
            steps: VecDeque::new(),
            octets: 0,
            followers: Vec::new(),
            forgotten: 0,
            missed: 0,
            names: Arc::new(names),
        }
    }

    /// Addresses have these names from now on.
    pub(crate) fn rename(&mut self, names: Names) {
        self.names = Arc::new(names);
    }

    /// Names for addresses.
    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// Adds an event, and passes it to the clients that follow.
    pub(crate) fn add(&mut self, step: Step) {
        let names = &self.names;
        self.followers.retain_mut(|follower| {
            let steps = Steps {
                all: vec![step.clone()],
                names: Arc::clone(names),
            };
            match follower.steps.try_send(steps) {
                Ok(()) => true,
                Err(TrySendError::Full(_)) => {
                    follower.missed += 1;
                    self.missed += 1;
                    true
                }
                Err(TrySendError::Disconnected(_)) => false,
            }
        });
        self.octets += step.octets();
        self.steps.push_back(step);
        while self.steps.len() > HISTORY || self.octets > HISTORY_OCTETS {
            let gone = self.steps.pop_front();
            self.octets -= gone.map_or(0, |step| step.octets());
            self.forgotten += 1;
        }
    }

    /// The events so far together, and later ones if `follow` is set.
    pub(crate) fn tell(&mut self, follow: bool) -> Receiver<Steps> {
        let (steps, receiver) = sync_channel(STREAM_DEPTH);
        let so_far = Steps {
            all: self.steps.iter().cloned().collect(),
            names: Arc::clone(&self.names),
        };
        // The channel is new and has room.
        let _ = steps.try_send(so_far);
        if follow {
            self.followers.push(Follower { steps, missed: 0 });
        }
        receiver
    }

    /// Number of events so far.
    pub(crate) fn count(&self) -> u64 {
        self.forgotten + self.steps.len() as u64
    }

    /// The latest events behind the first `seen`, as many details and main steps as there is room for.
    pub(crate) fn since(
        &self,
        seen: u64,
        details: &mut usize,
        milestones: &mut usize,
    ) -> Latest<'_> {
        let new = usize::try_from(self.count().saturating_sub(seen)).unwrap_or(usize::MAX);
        let latest = self.steps.iter().rev().take(new.min(MOST_LOOKED_AT));
        let told = latest.filter(|step| {
            let room = match step.is_told(Telling::Milestones) {
                true => &mut *milestones,
                false => &mut *details,
            };
            let told = *room > 0;
            *room -= usize::from(told);
            told
        });
        let mut told: Vec<&Step> = told.collect();
        told.reverse();
        let left = (new - told.len()) as u64;
        Latest { told, left }
    }

    /// The kept main steps.
    pub(crate) fn milestones(&self) -> Vec<Event> {
        let told = |step: &&Step| step.is_told(Telling::Milestones);
        let steps = self.steps.iter().filter(told);
        steps.map(|step| step.event(&self.names)).collect()
    }

    /// Events that are no longer kept.
    #[must_use]
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Events that clients did not take in time, all together.
    #[must_use]
    pub(crate) fn missed(&self) -> u64 {
        self.missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(n: u64) -> Step {
        Step::new(
            Instant::from_millis(n),
            "urku".into(),
            Trace::detail("x", "y"),
        )
    }

    #[test]
    fn history_then_what_follows_and_a_slow_follower_loses() {
        let mut story = Story::new(Names::default());
        story.add(event(1));
        story.add(event(2));
        let once = story.tell(false);
        let slow = story.tell(true);
        let line = |n| event(n).event(&Names::default()).json() + "\n";
        let all: Vec<u8> = once.iter().flat_map(Vec::from).collect();
        assert_eq!(all, (line(1) + &line(2)).into_bytes());
        for n in 0..STREAM_DEPTH as u64 {
            story.add(event(n));
        }
        assert_eq!(story.missed(), 1);
        assert_eq!(slow.try_iter().count(), STREAM_DEPTH);
        story.add(event(3));
        assert_eq!(slow.try_iter().count(), 1);
        drop(slow);
        story.add(event(4));
        assert!(story.followers.is_empty());
    }

    #[test]
    fn the_latest_events_are_told_as_far_as_there_is_room() {
        let mut story = Story::new(Names::default());
        for n in 0..10 {
            story.add(event(n));
        }
        let main = Trace::milestone("x", "y");
        story.add(Step::new(Instant::from_millis(10), "urku".into(), main));
        let (mut details, mut milestones) = (3, 5);
        let latest = story.since(4, &mut details, &mut milestones);
        let at = latest.told.iter().map(|step| step.at());
        let times = [7, 8, 9, 10].map(Instant::from_millis);
        assert!(at.eq(times), "{latest:?}");
        assert_eq!((latest.left, details, milestones), (3, 0, 4));
        assert!(story.since(11, &mut 3, &mut 3).told.is_empty());
    }

    #[test]
    fn history_is_bounded() {
        let mut story = Story::new(Names::default());
        for n in 0..HISTORY as u64 + 10 {
            story.add(event(n));
        }
        assert_eq!((story.steps.len(), story.forgotten()), (HISTORY, 10));
    }
}
