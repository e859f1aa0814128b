//! The state of a running lab for those who draw it: the lines of [`aerostat_lab::stream`], first all that is there,
//! then what changes.
//!
//! **Cost.** Without a client that follows, no state is looked at. A client of a gathered stream ([`Gather`]) costs a
//! look at what has changed since the last telling, whatever came and went in between.
//!
//! **Bounds.** A client that does not read in time is left: a reader that misses a line of state would show a wrong
//! state from then on. At most [`MOST`] clients follow at a time. The number of those that were left is in the answer
//! to each new one.

use crate::control::{Answer, Gather, Reply, STREAM_DEPTH};
use crate::site::Site;
use crate::story::Step;
use aerostat_lab::event::Names;
use aerostat_lab::plant::Driver as _;
use aerostat_lab::stream::{
    About, Counts, Levels, Line, Now, Present, Sample, Story, line_text, parts,
};
use aerostat_proto::{Duration, Instant};
use serde_json::json;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

/// Limit of clients that follow.
const MOST: usize = 16;
/// Least time between two samples, and between two tellings of a gathered stream.
const LEAST: Duration = Duration::from_millis(10);
/// Limit of messages of one telling after a quiet time, and of details and of main steps of the story.
const MOST_AT_ONCE: u32 = 200;
/// Limit of octets that wait for the next telling: states that change while another client follows each instant.
const MOST_WAITING: usize = 4 << 20;

/// Clients, and what has been told.
#[derive(Default)]
pub(crate) struct Pictures<'a> {
    present: Option<Present<'a>>,
    followers: Vec<Follower>,
    /// Names for addresses in messages, as long as a client follows a gathered stream.
    names: Option<Names>,
    /// Clients that were left because they did not read in time.
    left: u64,
}

struct Follower {
    lines: SyncSender<Vec<u8>>,
    stats: Option<Stats>,
    gathered: Option<Gathered>,
}

/// Samples for a client.
struct Stats {
    every: Duration,
    next: Instant,
    levels: Levels,
}

/// A client of a gathered stream.
struct Gathered {
    every: Duration,
    next: Instant,
    /// Messages, details and main steps of the story that a telling may have more than the one before had left.
    share: usize,
    /// Room of the next telling.
    room: Room,
    /// Messages and events that there were at the last telling.
    seen: [u64; 2],
    /// Lines about states that have changed since then.
    waiting: Vec<u8>,
}

/// Messages and steps that a telling may have. What a telling leaves goes to later ones, up to [`MOST_AT_ONCE`], so a
/// burst is told whole, and a flood in part.
#[derive(Clone, Copy)]
struct Room {
    messages: usize,
    details: usize,
    milestones: usize,
}

impl Default for Room {
    fn default() -> Self {
        let most = MOST_AT_ONCE as usize;
        Self {
            messages: most,
            details: most,
            milestones: most,
        }
    }
}

impl Room {
    /// A share more of each.
    fn grow(&mut self, share: usize) {
        for room in [&mut self.messages, &mut self.details, &mut self.milestones] {
            *room = (*room + share).min(MOST_AT_ONCE as usize);
        }
    }
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

/// A step of the story as a line.
fn line_of(step: &Step, names: &Names) -> Line {
    Line::Story(Story {
        t: step.at().as_nanos(),
        node: step.node().to_owned(),
        event: step.trace().name.to_owned(),
        text: names.in_text(&step.trace().text.read()),
        milestone: step.trace().milestone,
    })
}

impl Pictures<'_> {
    /// Time at which the next sample or telling is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let next = self.followers.iter().flat_map(|one| {
            let stats = one.stats.as_ref().map(|stats| stats.next);
            let gathered = one.gathered.as_ref().map(|gathered| gathered.next);
            [stats, gathered]
        });
        next.flatten().min()
    }

    /// Passes a step of the story on.
    pub(crate) fn story(&mut self, step: &Step, names: &Names) {
        let exact = |one: &Follower| one.gathered.is_none();
        if self.followers.iter().any(exact) {
            let line = text([&line_of(step, names)]);
            let left = &mut self.left;
            self.followers
                .retain(|one| !exact(one) || took(&one.lines, line.clone(), left));
        }
    }

    /// Passes changes of state on. Those who follow a gathered stream get them with the next telling.
    fn changed(&mut self, lines: &[u8]) {
        let left = &mut self.left;
        self.followers.retain_mut(|one| match &mut one.gathered {
            None => took(&one.lines, lines.to_vec(), left),
            Some(gathered) => {
                let room = gathered.waiting.len() + lines.len() <= MOST_WAITING;
                match room {
                    true => gathered.waiting.extend(lines),
                    false => *left += 1,
                }
                room
            }
        });
    }

    /// True if a client gets each change when it happens, with its own time.
    pub(crate) fn are_exact(&self) -> bool {
        self.followers.iter().any(|one| one.gathered.is_none())
    }

    /// True if all clients can wait for the next telling.
    fn can_wait(&self, now: Instant) -> bool {
        !self.are_exact() && self.poll_timeout().is_none_or(|at| at > now)
    }
}

/// Answers a client: what the lab consists of, its present state, and later changes if `follow` is set, with samples
/// each `stats`.
pub(crate) fn tell(
    site: &mut Site<'_>,
    follow: bool,
    (stats, gather): (Option<Duration>, Option<Gather>),
    now: Instant,
) -> Reply {
    if site.pictures.followers.len() >= MOST {
        let text = format!("{MOST} clients follow this lab, which is the limit");
        return Reply::Answer(Answer::error(text, "end one of them"));
    }
    site.read_changes();
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
    let gathered = gather.map(|gather| Gathered {
        every: Duration::from_nanos(gather.every_ns).max(LEAST),
        next: now,
        share: gather.messages.min(MOST_AT_ONCE) as usize,
        room: Room::default(),
        seen: [0; 2],
        waiting: Vec::new(),
    });
    if gathered.is_some() && site.pictures.names.is_none() {
        site.pictures.names = Some(Names::new(lab));
    }
    site.pictures.followers.push(Follower {
        lines: sender,
        stats,
        gathered,
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
        if self.pictures.present.is_none() || self.pictures.can_wait(now) {
            return;
        }
        self.read_changes();
        if self.pictures.poll_timeout().is_some_and(|at| at <= now) {
            self.tell_samples(now);
            self.tell_gathered(now);
        }
        self.forget_pictures();
    }

    /// Passes on what has changed since the last time.
    fn read_changes(&mut self) {
        let Some(present) = &mut self.pictures.present else {
            return;
        };
        let plant = self.world.plant_mut();
        if plant.has_changed() {
            let changed = plant.take_changed();
            let lines = present.changes(plant, changed);
            if !lines.is_empty() {
                self.pictures.changed(&text(&lines));
            }
        }
    }

    fn tell_samples(&mut self, now: Instant) {
        let due = |one: &Follower| one.stats.as_ref().is_some_and(|stats| stats.next <= now);
        if !self.pictures.followers.iter().any(due) {
            return;
        }
        let totals = self.world.totals(now, self.elsewhere());
        let t = self.happened_until(now).as_nanos();
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
            let sample = stats.levels.take(plant, present, &totals);
            // Who follows a gathered stream knows the time of each sample, also if nothing has changed.
            let sample = match one.gathered {
                Some(_) => Some(Sample {
                    t,
                    ..sample.unwrap_or_default()
                }),
                None => sample,
            };
            match sample {
                Some(sample) => took(&one.lines, text([&Line::Sample(sample)]), left),
                None => true,
            }
        });
    }

    /// The time of which everything has happened: in a network without events, now.
    fn happened_until(&self, now: Instant) -> Instant {
        let due = self.world.poll_timeout().is_some_and(|at| at <= now);
        match due {
            true => self.world.plant().now(),
            false => now,
        }
    }

    /// Tells those who follow a gathered stream what has happened, if their time has come.
    fn tell_gathered(&mut self, now: Instant) {
        let t = self.happened_until(now).as_nanos();
        let pictures = &mut self.pictures;
        let (Some(present), Some(names)) = (&pictures.present, &pictures.names) else {
            return;
        };
        let (past, story, lab) = (&self.world.captures.past, &self.story, self.lab);
        let left = &mut pictures.left;
        pictures.followers.retain_mut(|one| {
            let Some(gathered) = one.gathered.as_mut().filter(|of| of.next <= now) else {
                return true;
            };
            gathered.next = now + gathered.every;
            let mut lines = std::mem::take(&mut gathered.waiting);
            let [messages, steps] =
                std::mem::replace(&mut gathered.seen, [past.count(), story.count()]);
            let room = &mut gathered.room;
            room.grow(gathered.share);
            let (sent, message) = past.since(messages, room.messages);
            for sent in sent {
                room.messages -= 1;
                let on = (sent.end.link, sent.vc);
                lines.extend(text([&present.message(
                    sent.at,
                    on,
                    sent.message(lab, names),
                )]));
            }
            let told = story.since(steps, &mut room.details, &mut room.milestones);
            let steps: Vec<Line> = told.told.iter().map(|step| line_of(step, names)).collect();
            lines.extend(text(&steps));
            let steps = told.left;
            let now = Now {
                t,
                left: Counts {
                    message,
                    story: steps,
                    sample: 0,
                },
            };
            lines.extend(text([&Line::Now(now)]));
            took(&one.lines, lines, left)
        });
    }

    /// Nothing is noted without a client that follows.
    fn forget_pictures(&mut self) {
        if self.pictures.followers.is_empty() && self.pictures.present.take().is_some() {
            self.pictures.names = None;
            self.world.plant_mut().watch(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aerostat_proto::Trace;

    #[test]
    fn a_client_that_does_not_read_is_left_and_counted_and_one_that_is_gone_is_not() {
        let mut pictures = Pictures::default();
        let clients = [(); 3].map(|()| sync_channel(STREAM_DEPTH));
        let [(reads, reader), (sleeps, _asleep), (gone, goes)] = clients;
        drop(goes);
        for lines in [reads, sleeps, gone] {
            pictures.followers.push(Follower {
                lines,
                stats: None,
                gathered: None,
            });
        }
        for number in 0..=STREAM_DEPTH {
            let at = Instant::from_nanos(number as u64);
            let step = Step::new(at, "urku".into(), Trace::detail("x", "y"));
            pictures.story(&step, &Names::default());
            assert!(reader.try_recv().is_ok(), "line {number}");
        }
        assert_eq!((pictures.followers.len(), pictures.left), (1, 1));
    }
}
