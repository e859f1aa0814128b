//! The links out of the lab in the loop: their turns and events, and what is wrong with them.

use super::{Driver, Notice};
use crate::outside;
use aerostat_lab::model::NodeId;
use aerostat_proto::{Instant, Trace};

impl Driver<'_> {
    /// The links out of the lab come up, as far as they need no answer of their peers.
    pub(super) fn lines_up(&mut self, now: Instant, tell: &mut dyn FnMut(Notice<'_>)) {
        let mut told = Vec::new();
        for place in 0..self.outside.len() {
            let link = &mut self.outside[place];
            link.come_up(now, &mut told);
            let node = link.node;
            for event in told.drain(..) {
                self.outside_event(node, event, now, tell);
            }
        }
    }

    /// Faults of links out of the lab, in words: a missing interface, a peer of which nothing is heard.
    pub(super) fn silent_links(&self) -> Vec<String> {
        let told = self.outside.iter().filter_map(|link| {
            let name = &self.lab.node(link.node).name;
            Some(format!("{name}: {}", link.trouble()?))
        });
        told.collect()
    }

    /// Gives the links out of the lab their turns; true if more work could be done at once. When the time for all of
    /// them is over, the next ones are the first in the next turn of the loop.
    pub(super) fn outside(&mut self, now: Instant, tell: &mut dyn FnMut(Notice<'_>)) -> bool {
        let (mut more, mut told) = (false, std::mem::take(&mut self.told));
        let (begin, first) = (self.clock.now(), self.first_link);
        let links = self.outside.len();
        let mut at = begin;
        for place in (0..links).map(|n| (first + n) % links) {
            if at > begin + outside::SLICE {
                (more, self.first_link) = (true, place);
                break;
            }
            let link = &mut self.outside[place];
            more |= link.turn(self.poll.registry(), now, &mut self.inbox, &mut told);
            let node = link.node;
            let labels = told.iter().filter_map(|event| match event {
                outside::Event::Cells(run) => Some(run.vc),
                _ => None,
            });
            self.world.outside_ahead(node, labels);
            for event in told.drain(..) {
                self.outside_event(node, event, now, tell);
            }
            if self.inbox.was_used() {
                let end = self.clock.now();
                self.outside[place].spent(end.since(at));
                at = end;
            }
        }
        self.told = told;
        more
    }

    pub(super) fn outside_event(
        &mut self,
        node: NodeId,
        event: outside::Event,
        now: Instant,
        tell: &mut dyn FnMut(Notice<'_>),
    ) {
        match event {
            outside::Event::Up => self.world.outside_link(node, true, now),
            outside::Event::Down => self.world.outside_link(node, false, now),
            outside::Event::Heard => {
                self.world.outside_heard();
                let trace = Trace::milestone("link.heard", "cells come from the peer");
                self.event(node, trace, now, tell);
            }
            outside::Event::Cells(run) => self.world.outside_cells(node, run, now),
            outside::Event::Trace(trace) => self.event(node, trace, now, tell),
        }
    }
}
