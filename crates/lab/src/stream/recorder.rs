//! The recorder of a run, and the stream that it leaves.

use super::head::{self, About};
use super::keep::{Bounds, Keep, line_text};
use super::lines::{End, Line, More, Story, Traffic};
use super::present::Present;
use super::samples::Levels;
use super::scope::Scope;
use crate::event::Names;
use crate::ladder;
use crate::model::{Lab, LinkId};
use crate::picture::{Picture, shown};
use crate::plant::{LabNode, Plant};
use aerostat_node::ip::flow_stats::Totals;
use aerostat_proto::{Duration, Instant, Trace};
use aerostat_wire::Vc;

/// Time between samples without a wish.
pub const SAMPLE: Duration = Duration::from_millis(100);

/// Limit of messages in a stream about a part of a lab: most of those on its trunks are about hosts that are left out.
const PART_MESSAGES: u64 = 20_000;

/// Wishes for a stream.
#[derive(Clone, Debug)]
pub struct Options {
    /// Time between samples, not zero.
    pub sample: Duration,
    /// Limits.
    pub bounds: Bounds,
    /// Facts for the first line.
    pub about: About,
    /// True for a stream about those machines alone that a drawing shows.
    pub drawn: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            sample: SAMPLE,
            bounds: Bounds::default(),
            about: About::default(),
            drawn: false,
        }
    }
}

/// Records the stream of a run in virtual time.
pub struct Recorder<'a> {
    lab: &'a Lab,
    names: Names,
    about: About,
    keep: Keep,
    present: Present<'a>,
    levels: Levels,
    next_sample: Instant,
    untold: u64,
    more: More,
}

impl<'a> Recorder<'a> {
    /// A recorder that has seen nothing.
    #[must_use]
    pub fn new(lab: &'a Lab, mut options: Options) -> Self {
        let scope = match options.drawn {
            true => Scope::drawn(lab),
            false => Scope::whole(),
        };
        if !scope.is_whole() {
            options.bounds.messages = options.bounds.messages.min(PART_MESSAGES);
        }
        Self {
            lab,
            names: Names::new(lab),
            about: options.about,
            keep: Keep::new(options.bounds, options.sample),
            present: Present::within(lab, scope),
            levels: Levels::default(),
            next_sample: Instant::ZERO,
            untold: 0,
            more: More::default(),
        }
    }

    /// A node reports a step.
    pub fn story(&mut self, at: Instant, node: &str, trace: &Trace) {
        if !self.present.scope.has_name(node) {
            self.more.story += 1;
            return;
        }
        let t = at.as_nanos();
        let story = Line::Story(Story {
            t,
            node: node.to_owned(),
            event: trace.name.to_owned(),
            text: self.names.in_text(&trace.text.read()),
            milestone: trace.milestone,
        });
        self.keep.take(t, &story);
    }

    /// True if the text of a message on this link is wanted; otherwise the message is counted.
    pub fn wants_message(&mut self, link: LinkId) -> bool {
        if !self.present.scope.has_link(link) {
            self.more.messages += 1;
            return false;
        }
        if !self.keep.takes_messages() {
            self.keep.miss_message();
        }
        self.keep.takes_messages()
    }

    /// A message on a link.
    pub fn message(&mut self, at: Instant, (link, vc): (LinkId, Vc), message: &ladder::Message) {
        let message = self.present.message(at, (link, vc), message.clone());
        self.keep.take(at.as_nanos(), &message);
    }

    /// Tells what has changed in this instant, of which everything has happened.
    pub fn changes<M>(&mut self, plant: &mut Plant<LabNode, M>) {
        let changed = plant.take_changed();
        if !self.keep.states.are_exact() {
            return;
        }
        let t = plant.now().as_nanos();
        for line in self.present.changes(plant, changed) {
            self.keep.take(t, &line);
        }
        self.keep.states.thin(t);
    }

    /// Time at which the next sample is due.
    #[must_use]
    pub const fn next_sample(&self) -> Instant {
        self.next_sample
    }

    /// Takes a sample. Everything up to now has happened.
    pub fn sample<M>(&mut self, plant: &mut Plant<LabNode, M>, totals: &[Totals]) {
        self.changes(plant);
        if self.keep.states.are_due() {
            self.settle(plant);
        }
        if let Some(sample) = self.levels.take(plant, &self.present, totals) {
            self.keep.sample(sample);
        }
        let every = self.keep.every;
        let t = plant.now().as_nanos();
        let next = (t / every).saturating_add(1).saturating_mul(every);
        self.next_sample = Instant::from_nanos(next);
    }

    /// Compares all states with what was told, and tells the differences; so it is at samples, and at the end of a run.
    pub fn settle<M>(&mut self, plant: &Plant<LabNode, M>) {
        let exact = self.keep.states.are_exact();
        let t = plant.now().as_nanos();
        for line in self.present.read(plant) {
            self.untold += u64::from(exact);
            self.keep.take(t, &line);
        }
        self.keep.states.thin(t);
    }

    /// A flow has started or ended at this time.
    pub fn traffic(&mut self, at: Instant, flow: usize, state: &str) {
        let Some(flow) = self.lab.traffic.get(flow) else {
            return;
        };
        let t = at.as_nanos();
        let line = Line::Traffic(Traffic {
            t,
            flow: flow.name.clone(),
            state: state.to_owned(),
        });
        self.keep.take(t, &line);
    }

    /// The stream, at the end of the run.
    #[must_use]
    pub fn finish(self, end: Instant) -> Stream {
        let picture = Picture::of(self.lab);
        let t = end.as_nanos();
        let (kept, thinned) = self.keep.counts();
        let hidden = shown(&picture).iter().filter(|shown| !**shown).count();
        let end = Line::End(End {
            t,
            kept,
            thinned,
            messages_until: self.keep.messages_until(),
            states_until: self.keep.states.until(),
            untold: self.untold,
            more: More {
                nodes: hidden as u64,
                ..self.more
            },
        });
        let head = head::head(self.lab, &self.about, (self.keep.every, Some(t)));
        let parts = head::parts_of(self.lab, &picture, &self.present.scope);
        Stream {
            head: std::iter::once(&head)
                .chain(&parts)
                .map(line_text)
                .collect(),
            lines: self.keep.finish(),
            end: line_text(&end),
        }
    }
}

/// The stream of a run that has ended: lines of JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    head: Vec<String>,
    lines: Vec<String>,
    end: String,
}

impl Stream {
    /// Adds a line to those about what the lab consists of.
    pub fn add_part(&mut self, line: &Line) {
        self.head.push(line_text(line));
    }

    /// All lines, without line ends.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        let all = self.head.iter().chain(&self.lines);
        all.chain([&self.end]).map(String::as_str)
    }
}
