//! All links out of the lab: their turns and events, and what is wrong with them.

use super::{Event, Inbox, Link, SLICE};
use crate::clock::Clock;
use crate::source::{Said, Slot, Source, Turn};
use aerostat_lab::model::{Lab, NodeId};
use aerostat_node::atm::CellRun;
use aerostat_proto::{Instant, Trace};
use mio::{Registry, Token};
use std::collections::BTreeMap;
use std::io;

/// The links.
pub(crate) struct Links {
    pub(crate) all: Vec<Link>,
    /// Their places, by node.
    of: BTreeMap<usize, usize>,
    /// The link whose turn is first.
    first: usize,
    /// Packets that they read in a turn.
    inbox: Inbox,
    told: Vec<Event>,
}

impl Links {
    /// Opens the sockets of all links of a lab.
    ///
    /// # Errors
    /// The error of the operating system, with the link.
    pub(crate) fn open(lab: &Lab, registry: &Registry) -> io::Result<Vec<Link>> {
        let all = lab.outside().zip(0..).map(|((node, _, model), place)| {
            let token = Token(Slot::Links.token().0 + place * Link::TOKENS);
            let at = lab.link(model.attachment.link);
            let link = Link::new(
                node,
                &model.way,
                lab.own_rate(node).unwrap_or(at.lines[0].rate),
                registry,
                token,
            );
            link.map_err(|error| super::explained(&model.way, &at.name, &error))
        });
        all.collect()
    }

    /// These links, in a loop with this clock.
    pub(crate) fn new(all: Vec<Link>, clock: Clock) -> Self {
        Self {
            of: all.iter().map(|link| link.node.0).zip(0..).collect(),
            all,
            first: 0,
            inbox: Inbox::new(clock),
            told: Vec::new(),
        }
    }

    /// Queues cells for the peer of a node.
    pub(crate) fn send(&mut self, node: NodeId, run: &CellRun) {
        let place = self.of.get(&node.0);
        if let Some(link) = place.and_then(|place| self.all.get_mut(*place)) {
            link.send(run);
        }
    }

    /// Faults of links out of the lab, in words: a missing interface, a peer of which nothing is heard.
    pub(crate) fn silent(&self, lab: &Lab) -> Vec<String> {
        let told = self.all.iter().filter_map(|link| {
            let name = &lab.node(link.node).name;
            Some(format!("{name}: {}", link.trouble()?))
        });
        told.collect()
    }
}

/// Passes on the events of a link.
fn pass_on(node: NodeId, events: &mut Vec<Event>, turn: &mut Turn<'_>) {
    for event in events.drain(..) {
        match event {
            Event::Up => turn.world.outside_link(node, true, turn.now),
            Event::Down => turn.world.outside_link(node, false, turn.now),
            Event::Heard => {
                turn.world.outside_heard();
                let trace = Trace::milestone("link.heard", "cells come from the peer");
                turn.said.push(Said::Trace(node, trace));
            }
            Event::Cells(run) => turn.world.outside_cells(node, run, turn.now),
            Event::Trace(trace) => turn.said.push(Said::Trace(node, trace)),
        }
    }
}

impl Source for Links {
    fn takes_part(&self) -> bool {
        !self.all.is_empty()
    }

    fn ready(&mut self, distance: usize) {
        if let Some(link) = self.all.get_mut(distance / Link::TOKENS) {
            link.ready(distance % Link::TOKENS);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.all.iter().filter_map(Link::poll_timeout).min()
    }

    fn come_up(&mut self, turn: &mut Turn<'_>) {
        for link in &mut self.all {
            link.come_up(turn.now, &mut self.told);
            pass_on(link.node, &mut self.told, turn);
        }
    }

    /// Gives the links their turns. When the time for all of them is over, the next ones are the first in the next
    /// turn of the loop.
    fn turn(&mut self, turn: &mut Turn<'_>) -> bool {
        let (begin, first, links) = (turn.clock.now(), self.first, self.all.len());
        let (mut more, mut at) = (false, begin);
        for place in (0..links).map(|n| (first + n) % links) {
            if at > begin + SLICE {
                (more, self.first) = (true, place);
                break;
            }
            let link = &mut self.all[place];
            link.keep_order(!turn.world.captures.is_empty());
            more |= link.turn(turn.registry, turn.now, &mut self.inbox, &mut self.told);
            let labels = self.told.iter().filter_map(|event| match event {
                Event::Cells(run) => Some(run.vc),
                _ => None,
            });
            turn.world.outside_ahead(link.node, labels);
            pass_on(link.node, &mut self.told, turn);
            if self.inbox.was_used() {
                let end = turn.clock.now();
                link.spent(end.since(at));
                at = end;
            }
        }
        more
    }

    fn flush(&mut self, turn: &mut Turn<'_>) {
        for link in &mut self.all {
            link.flush(turn.registry, turn.now, &mut self.told);
            pass_on(link.node, &mut self.told, turn);
        }
    }
}
