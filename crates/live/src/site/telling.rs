//! The events that the loop tells: to its caller, to the story, and to captures.
//!
//! **Order.** Events of the network are told after the outputs of their turn have been sent, because no packet must
//! wait for their text. An event of the loop itself is told at once, after those that wait.
//!
//! **Budget.** A fault of a switch with hundreds of hosts makes as many events at one instant. A turn tells some of
//! them, and the others wait for the next turns. They do not wait if somebody asks, or if there are too many of them.

use super::Site;
use crate::notice::Notice;
use crate::recorder::Recorder;
use crate::story::Step;
use aerostat_lab::growth;
use aerostat_lab::model::NodeId;
use aerostat_proto::{Duration, Instant, Trace};
use std::sync::Arc;

/// How long a turn may tell events.
const SLICE: Duration = Duration::from_micros(250);
/// Limit of events that wait for the next turn.
const UNTOLD: usize = 8192;

impl Site<'_> {
    /// Tells the caller.
    pub(crate) fn tell(&mut self, notice: Notice<'_>) {
        (self.caller)(notice);
    }

    /// Tells the events of the network that wait, or some of them; true if others still wait.
    pub(crate) fn recount_some(&mut self) -> bool {
        let begin = self.clock.now();
        while let Some((node, at, trace)) = self.untold.pop_front() {
            self.tell_trace(node, trace, at);
            if self.untold.len() < UNTOLD && self.clock.now() >= begin + SLICE {
                break;
            }
        }
        !self.untold.is_empty()
    }

    /// Tells all events of the network that wait.
    pub(crate) fn recount(&mut self) {
        while let Some((node, at, trace)) = self.untold.pop_front() {
            self.tell_trace(node, trace, at);
        }
    }

    /// Tells the size of the recording each time that it has become ten times as large.
    pub(crate) fn recording_grows(&mut self) {
        if let Some(octets) = self.recorder.as_mut().and_then(Recorder::grown) {
            let size = growth::size(octets);
            self.tell(Notice::Note(format!("the recording has {size} so far")));
        }
    }

    /// Ends the recording: the octets of the file, or the error that has ended it earlier; nothing without a recording.
    pub(crate) fn end_recording(&mut self) -> Option<Result<u64, String>> {
        self.recount();
        let recorder = self.recorder.take()?;
        self.world.captures.end();
        Some(recorder.finish().map_err(|error| error.to_string()))
    }

    /// Tells an event, after those that wait, and after those that the network still holds.
    pub(crate) fn event(&mut self, node: NodeId, trace: Trace, now: Instant) {
        self.drain(now);
        self.recount();
        self.tell_trace(node, trace, now);
    }

    fn tell_trace(&mut self, node: NodeId, trace: Trace, now: Instant) {
        let name = Arc::clone(&self.names[node.0]);
        self.world.hear(&name, &trace);
        self.tell_step(Step::new(now, name, trace));
    }

    pub(crate) fn tell_step(&mut self, step: Step) {
        let names = self.story.names();
        if self.world.captures.tells_story() {
            self.world.captures.event(&step.event(names));
        }
        (self.caller)(Notice::Event(&step, names));
        self.pictures.story(&step, names);
        self.story.add(step);
    }
}
