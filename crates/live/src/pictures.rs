//! The state of a running lab for those who draw it: the lines of [`aerostat_lab::stream`], first all that is there,
//! then what changes.
//!
//! **Cost.** Without a client that follows, no state is looked at.
//!
//! **Bounds.** A client that does not read in time is left: a reader that misses a line of state would show a wrong
//! state from then on. At most [`MOST`] clients follow at a time. The number of those that were left is in the answer
//! to each new one.

use crate::control::{Answer, Reply, STREAM_DEPTH};
use crate::site::Site;
use aerostat_lab::plant::Driver as _;
use aerostat_lab::stream::{About, Levels, Line, Present, Story, line_text, parts};
use aerostat_proto::{Duration, Instant};
use serde_json::json;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

/// Limit of clients that follow.
const MOST: usize = 16;
/// Least time between two samples.
const LEAST: Duration = Duration::from_millis(10);

/// Clients, and what has been told.
#[derive(Default)]
pub(crate) struct Pictures<'a> {
    present: Option<Present<'a>>,
    followers: Vec<Follower>,
    /// Clients that were left because they did not read in time.
    left: u64,
}

struct Follower {
    lines: SyncSender<Vec<u8>>,
    stats: Option<Stats>,
}

/// Samples for a client.
struct Stats {
    every: Duration,
    next: Instant,
    levels: Levels,
}

/// Passes lines to a client. False if it is no longer there, or does not read in time; the latter is counted.
fn took(client: &SyncSender<Vec<u8>>, lines: Vec<u8>, left: &mut u64) -> bool {
    let sent = client.try_send(lines);
    *left += u64::from(matches!(sent, Err(TrySendError::Full(_))));
    sent.is_ok()
}

/// Lines as octets.
fn text<'a>(lines: impl IntoIterator<Item = &'a Line>) -> Vec<u8> {
    let lines = lines.into_iter().map(|line| line_text(line) + "\n");
    lines.collect::<String>().into_bytes()
}

impl Pictures<'_> {
    /// Time at which the next sample is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let stats = self.followers.iter().filter_map(|one| one.stats.as_ref());
        stats.map(|stats| stats.next).min()
    }

    /// Passes a step of the story on.
    pub(crate) fn story(&mut self, story: impl FnOnce() -> Story) {
        if !self.followers.is_empty() {
            let line = text([&Line::Story(story())]);
            self.send(&line);
        }
    }

    fn send(&mut self, lines: &[u8]) {
        let left = &mut self.left;
        self.followers
            .retain(|one| took(&one.lines, lines.to_vec(), left));
    }
}

/// Answers a client: what the lab consists of, its present state, and later changes if `follow` is set, with samples
/// each `stats`.
pub(crate) fn tell(
    site: &mut Site<'_>,
    follow: bool,
    stats: Option<Duration>,
    now: Instant,
) -> Reply {
    if site.pictures.followers.len() >= MOST {
        let text = format!("{MOST} clients follow this lab, which is the limit");
        return Reply::Answer(Answer::error(text, "end one of them"));
    }
    site.tell_pictures(now);
    let lab = site.lab;
    let about = About {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        real_time: true,
        ..About::default()
    };
    let every = stats.map_or(Duration::ZERO, |every| every.max(LEAST));
    let mut lines = text(&parts(lab, &about, every));
    let plant = site.world.plant_mut();
    let present = site.pictures.present.get_or_insert_with(|| {
        plant.watch(true);
        let mut present = Present::new(lab);
        present.read(plant);
        present
    });
    let state: Vec<Line> = present.lines(plant.now()).collect();
    lines.extend(text(&state));
    let (sender, receiver) = sync_channel(STREAM_DEPTH);
    // The channel is new and has room.
    let _ = sender.try_send(lines);
    let stats = stats.map(|every| Stats {
        every: every.max(LEAST),
        next: now,
        levels: Levels::default(),
    });
    site.pictures.followers.push(Follower {
        lines: sender,
        stats,
    });
    site.tell_pictures(now);
    if !follow {
        site.pictures.followers.pop();
        site.forget_pictures();
    }
    let left = site.pictures.left;
    Reply::Stream(Answer::Ok(json!({ "left": left })), receiver)
}

impl Site<'_> {
    /// Tells clients what has changed since the last turn, and the samples that are due.
    pub(crate) fn tell_pictures(&mut self, now: Instant) {
        let Some(present) = &mut self.pictures.present else {
            return;
        };
        let plant = self.world.plant_mut();
        if plant.has_changed() {
            let changed = plant.take_changed();
            let lines = present.changes(plant, changed);
            if !lines.is_empty() {
                self.pictures.send(&text(&lines));
            }
        }
        if self.pictures.poll_timeout().is_some_and(|at| at <= now) {
            self.tell_samples(now);
        }
        self.forget_pictures();
    }

    fn tell_samples(&mut self, now: Instant) {
        let totals = self.world.totals(now, self.elsewhere());
        let plant = self.world.plant_mut();
        let Some(present) = &self.pictures.present else {
            return;
        };
        let left = &mut self.pictures.left;
        self.pictures.followers.retain_mut(|one| {
            let Some(stats) = one.stats.as_mut().filter(|stats| stats.next <= now) else {
                return true;
            };
            stats.next = now + stats.every;
            match stats.levels.take(plant, present, &totals) {
                Some(sample) => took(&one.lines, text([&Line::Sample(sample)]), left),
                None => true,
            }
        });
    }

    /// Nothing is noted without a client that follows.
    fn forget_pictures(&mut self) {
        if self.pictures.followers.is_empty() && self.pictures.present.take().is_some() {
            self.world.plant_mut().watch(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_does_not_read_is_left_and_counted_and_one_that_is_gone_is_not() {
        let mut pictures = Pictures::default();
        let clients = [(); 3].map(|()| sync_channel(STREAM_DEPTH));
        let [(reads, reader), (sleeps, _asleep), (gone, goes)] = clients;
        drop(goes);
        for lines in [reads, sleeps, gone] {
            pictures.followers.push(Follower { lines, stats: None });
        }
        for number in 0..=STREAM_DEPTH {
            pictures.story(|| Story {
                t: number as u64,
                ..Story::default()
            });
            assert!(reader.try_recv().is_ok(), "line {number}");
        }
        assert_eq!((pictures.followers.len(), pictures.left), (1, 1));
    }
}
