//! The events of a running lab: the latest ones, and clients that follow them.

use aerostat_lab::event::Event;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use crate::control::STREAM_DEPTH;

/// Limit of kept events.
const HISTORY: usize = 20_000;
/// Limit of octets of their lines.
const HISTORY_OCTETS: usize = 8 * 1024 * 1024;

/// History and followers.
#[derive(Debug, Default)]
pub(crate) struct Story {
    lines: VecDeque<String>,
    octets: usize,
    followers: Vec<Follower>,
    forgotten: u64,
    missed: u64,
}

#[derive(Debug)]
struct Follower {
    lines: SyncSender<Vec<u8>>,
    missed: u64,
}

impl Story {
    /// Adds an event, and passes it to the clients that follow.
    pub(crate) fn add(&mut self, event: &Event) {
        let line = event.json() + "\n";
        self.followers.retain_mut(|follower| {
            match follower.lines.try_send(line.clone().into_bytes()) {
                Ok(()) => true,
                Err(TrySendError::Full(_)) => {
                    follower.missed += 1;
                    self.missed += 1;
                    true
                }
                Err(TrySendError::Disconnected(_)) => false,
            }
        });
        self.octets += line.len();
        self.lines.push_back(line);
        while self.lines.len() > HISTORY || self.octets > HISTORY_OCTETS {
            let gone = self.lines.pop_front();
            self.octets -= gone.map_or(0, |line| line.len());
            self.forgotten += 1;
        }
    }

    /// The events so far as one chunk of lines, and later ones if `follow` is set.
    pub(crate) fn tell(&mut self, follow: bool) -> Receiver<Vec<u8>> {
        let (lines, receiver) = sync_channel(STREAM_DEPTH);
        let so_far: String = self.lines.iter().map(String::as_str).collect();
        // The channel is new and has room.
        let _ = lines.try_send(so_far.into_bytes());
        if follow {
            self.followers.push(Follower { lines, missed: 0 });
        }
        receiver
    }

    /// The kept events.
    pub(crate) fn events(&self) -> Vec<Event> {
        let lines = self.lines.iter();
        // The lines were made from events.
        lines
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
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
    use aerostat_proto::{Instant, Trace};

    fn event(n: u64) -> Event {
        Event::new(Instant::from_millis(n), "urku", &Trace::detail("x", "y"))
    }

    #[test]
    fn history_then_what_follows_and_a_slow_follower_loses() {
        let mut story = Story::default();
        story.add(&event(1));
        story.add(&event(2));
        let once = story.tell(false);
        let slow = story.tell(true);
        assert_eq!(once.iter().map(|c| c.len()).sum::<usize>(), story.octets);
        for n in 0..STREAM_DEPTH as u64 {
            story.add(&event(n));
        }
        assert_eq!(story.missed(), 1);
        assert_eq!(slow.try_iter().count(), STREAM_DEPTH);
        story.add(&event(3));
        assert_eq!(slow.try_iter().count(), 1);
        drop(slow);
        story.add(&event(4));
        assert!(story.followers.is_empty());
    }

    #[test]
    fn history_is_bounded() {
        let mut story = Story::default();
        for n in 0..HISTORY as u64 + 10 {
            story.add(&event(n));
        }
        assert_eq!((story.lines.len(), story.forgotten()), (HISTORY, 10));
    }
}
