//! The events that the loop tells: to its caller, to the story, and to captures.
//!
//! **Order.** Events of the network are told after the outputs of their turn have been sent, because nobody must wait
//! for their text. An event of the loop itself is told at once, after those that wait.

use super::Driver;
use crate::run::Notice;
use aerostat_lab::event::Event;
use aerostat_lab::model::NodeId;
use aerostat_proto::{Instant, Trace};

impl Driver<'_> {
    /// Tells the events of the network that wait.
    pub(super) fn recount(&mut self, tell: &mut dyn FnMut(Notice<'_>)) {
        let mut untold = std::mem::take(&mut self.untold);
        for (node, at, trace) in untold.drain(..) {
            self.tell_trace(node, &trace, at, tell);
        }
        self.untold = untold;
    }

    /// Tells an event, after those that wait.
    pub(super) fn event(
        &mut self,
        node: NodeId,
        trace: &Trace,
        now: Instant,
        tell: &mut dyn FnMut(Notice<'_>),
    ) {
        self.recount(tell);
        self.tell_trace(node, trace, now, tell);
    }

    fn tell_trace(
        &mut self,
        node: NodeId,
        trace: &Trace,
        now: Instant,
        tell: &mut dyn FnMut(Notice<'_>),
    ) {
        let name = &self.lab.node(node).name;
        self.world.hear(name, trace);
        let event = Event::new(now, name, trace);
        self.tell_event(event, tell);
    }

    pub(super) fn tell_event(&mut self, mut event: Event, tell: &mut dyn FnMut(Notice<'_>)) {
        event.text = self.names.in_text(&event.text);
        self.world.captures.event(&event);
        self.story.add(&event);
        tell(Notice::Event(&event));
    }
}
