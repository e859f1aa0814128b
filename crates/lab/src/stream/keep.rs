//! The lines of a stream that are kept, within its bounds.
//!
//! A run of 10⁷ events must not make a file that no reader can use. So details of the story go first, then messages,
//! and the time between samples doubles. Lines of state are never left out: a reader would compute a wrong state from
//! then on. If there are too many, only the state at samples is told from then on, then at every second sample, and so
//! on. What was left out is counted.

use super::Line;
use super::lines::{Counts, Sample};
use aerostat_proto::Duration;

/// Limits of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Messages.
    pub messages: u64,
    /// Octets of messages and of the story together.
    pub octets: u64,
    /// Octets of samples.
    pub sample_octets: u64,
    /// Octets of states that are exact at every instant. Those that are exact at samples alone have as many, about.
    pub state_octets: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            messages: 200_000,
            octets: 48 << 20,
            sample_octets: 16 << 20,
            state_octets: 64 << 20,
        }
    }
}

/// Ranks of lines: the first ones go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rank {
    Detail,
    Milestone,
    Message,
    State,
}

/// A line as text.
#[derive(Clone, Debug)]
struct Kept {
    t: u64,
    rank: Rank,
    text: String,
}

/// The lines so far.
#[derive(Clone, Debug)]
pub(super) struct Keep {
    bounds: Bounds,
    lines: Vec<Kept>,
    /// Octets of messages and of the story.
    octets: u64,
    details: bool,
    messages: bool,
    milestones: bool,
    kept: Counts,
    thinned: Counts,
    last_message: Option<u64>,
    samples: Vec<(u64, Sample)>,
    sample_octets: u64,
    /// Time between samples, ns.
    pub(super) every: u64,
    pub(super) states: States,
}

/// How often states are told.
#[derive(Clone, Copy, Debug)]
pub(super) struct States {
    octets: u64,
    /// Octets at which they are told less often.
    limit: u64,
    /// Room that was added to the limit last.
    step: u64,
    /// Instant until which they are exact at every instant; `None` if they still are.
    until: Option<u64>,
    /// Samples from one at which states are told to the next one.
    every: u64,
    /// Samples before the next one at which states are told.
    wait: u64,
}

impl States {
    const fn new(bound: u64) -> Self {
        Self {
            octets: 0,
            limit: bound,
            step: bound,
            until: None,
            every: 1,
            wait: 0,
        }
    }
    /// True while each change is told at its instant.
    pub(super) const fn are_exact(&self) -> bool {
        self.until.is_none()
    }
    /// Instant until which they are exact at every instant, if later they are not.
    pub(super) const fn until(&self) -> Option<u64> {
        self.until
    }
    /// True if states are told at the sample that is taken now.
    pub(super) const fn are_due(&mut self) -> bool {
        if self.are_exact() || self.wait == 0 {
            self.wait = self.every - 1;
            return true;
        }
        self.wait -= 1;
        false
    }
    /// Tells states less often, once all changes of the instant `t` have been told.
    pub(super) fn thin(&mut self, t: u64) {
        if self.octets <= self.limit {
            return;
        }
        if self.until.is_some() {
            self.every = self.every.saturating_mul(2);
            self.wait = self.every - 1;
        }
        self.until.get_or_insert(t);
        self.step /= 2;
        self.limit = self.octets + self.step;
    }
}

impl Keep {
    pub(super) fn new(bounds: Bounds, every: Duration) -> Self {
        Self {
            bounds,
            lines: Vec::new(),
            octets: 0,
            details: true,
            messages: bounds.messages > 0,
            milestones: true,
            kept: Counts::default(),
            thinned: Counts::default(),
            last_message: None,
            samples: Vec::new(),
            sample_octets: 0,
            every: u64::try_from(every.as_nanos()).unwrap_or(u64::MAX).max(1),
            states: States::new(bounds.state_octets),
        }
    }

    /// True if messages are still kept. A message that is not is only counted ([`Self::miss_message`]).
    pub(super) const fn takes_messages(&self) -> bool {
        self.messages
    }
    pub(super) const fn miss_message(&mut self) {
        self.thinned.message += 1;
    }

    pub(super) fn take(&mut self, t: u64, line: &Line) {
        let rank = match line {
            Line::Story(story) if story.milestone => Rank::Milestone,
            Line::Story(_) => Rank::Detail,
            Line::Message(_) => Rank::Message,
            _ => Rank::State,
        };
        let wanted = match rank {
            Rank::Detail => self.details,
            Rank::Milestone => self.milestones,
            Rank::Message => self.messages,
            Rank::State => true,
        };
        if !wanted {
            return self.count(rank, false);
        }
        let text = line_text(line);
        if rank == Rank::State {
            self.states.octets += text.len() as u64;
        } else {
            self.octets += text.len() as u64;
            self.count(rank, true);
        }
        if rank == Rank::Message {
            self.last_message = Some(t);
            self.messages = self.kept.message < self.bounds.messages;
        }
        self.lines.push(Kept { t, rank, text });
        if self.octets > self.bounds.octets {
            self.thin();
        }
    }

    const fn count(&mut self, rank: Rank, kept: bool) {
        let counts = if kept {
            &mut self.kept
        } else {
            &mut self.thinned
        };
        match rank {
            Rank::Message => counts.message += 1,
            Rank::Detail | Rank::Milestone => counts.story += 1,
            Rank::State => {}
        }
    }

    /// Leaves out the next kind: details of the story, also those so far; then further messages; then the rest.
    fn thin(&mut self) {
        if self.details {
            self.details = false;
            let (octets, kept, thinned) = (&mut self.octets, &mut self.kept, &mut self.thinned);
            self.lines.retain(|line| {
                let stays = line.rank != Rank::Detail;
                if !stays {
                    *octets -= line.text.len() as u64;
                    kept.story -= 1;
                    thinned.story += 1;
                }
                stays
            });
        } else if self.messages {
            self.messages = false;
        } else if self.octets > self.bounds.octets.saturating_mul(2) {
            self.milestones = false;
        }
    }

    pub(super) fn sample(&mut self, mut sample: Sample) {
        self.kept.sample += 1;
        let every = self.every;
        if let Some((octets, between)) = self
            .samples
            .pop_if(|(_, last)| !last.t.is_multiple_of(every))
        {
            self.sample_octets -= octets;
            self.merged();
            sample = between.merge(sample);
        }
        let octets = line_text(&Line::Sample(sample.clone())).len() as u64;
        self.sample_octets += octets;
        self.samples.push((octets, sample));
        while self.sample_octets > self.bounds.sample_octets && self.samples.len() > 2 {
            self.double();
        }
    }

    const fn merged(&mut self) {
        self.thinned.sample += 1;
        self.kept.sample -= 1;
    }

    /// Doubles the time between samples: those in between become part of the next ones.
    fn double(&mut self) {
        self.every = self.every.saturating_mul(2);
        let mut rest: Vec<(u64, Sample)> = Vec::new();
        let mut between: Option<Sample> = None;
        for (octets, sample) in std::mem::take(&mut self.samples) {
            let sample = match between.take() {
                Some(before) => {
                    self.merged();
                    (0, before.merge(sample))
                }
                None => (octets, sample),
            };
            match sample.1.t.is_multiple_of(self.every) {
                true => rest.push(sample),
                false => between = Some(sample.1),
            }
        }
        // The last one waits for the next, which takes it in.
        rest.extend(between.map(|sample| (0, sample)));
        for (octets, sample) in &mut rest {
            if *octets == 0 {
                *octets = line_text(&Line::Sample(sample.clone())).len() as u64;
            }
        }
        self.sample_octets = rest.iter().map(|(octets, _)| octets).sum();
        self.samples = rest;
    }

    pub(super) const fn counts(&self) -> (Counts, Counts) {
        (self.kept, self.thinned)
    }
    /// Time of the last message, if later ones were left out.
    pub(super) fn messages_until(&self) -> Option<u64> {
        self.last_message.filter(|_| self.thinned.message > 0)
    }

    /// All lines in the order of time.
    pub(super) fn finish(mut self) -> Vec<String> {
        let samples = std::mem::take(&mut self.samples);
        let samples = samples.into_iter().map(|(_, sample)| Kept {
            t: sample.t,
            rank: Rank::State,
            text: line_text(&Line::Sample(sample)),
        });
        self.lines.extend(samples);
        // A message is known when its last cell has left, and so may be later than what came after it.
        self.lines.sort_by_key(|line| line.t);
        self.lines.into_iter().map(|line| line.text).collect()
    }
}

/// The line as JSON, without the line end.
#[must_use]
pub fn line_text(line: &Line) -> String {
    // Text and finite numbers always have a JSON form.
    serde_json::to_string(line).unwrap_or_default()
}
