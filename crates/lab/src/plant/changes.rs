//! Links that change while they carry cells: their rates, delays and errors; and links that train anew.
//!
//! **Rate.** A cell that is being sent ends as it began, and the next one follows at the new rate. The nodes at both
//! ends are told, and a node that starts anew learns it, too.
//!
//! **Delay.** Cells that are on the line arrive when they would have. A later cell never overtakes them: if the delay
//! shrinks, cells arrive one behind the other until the line has caught up.
//!
//! **Errors.** They apply to cells that begin from now on.
//!
//! **Training.** A link that trains is down, as if it were cut; what it loses has a cause of its own in the books. When
//! it is ready it has its new values, and comes up unless it has also been cut. A reset ends the training at once, and
//! its new values are forgotten.

use super::driver::Driver;
use super::line::{LineConfig, LineId, Medium};
use super::node::Node;
use super::trains::Settle as _;
use super::{LinkEnd, LinkId, NodeId, Plant};
use crate::model::LineChange;
use aerostat_node::atm::CellRate;
use aerostat_proto::{Duration, Instant};

/// A line at one time, for counters of its use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineNow {
    /// Its values.
    pub config: LineConfig,
    /// Cells that it sent before its rate last changed.
    pub sent_before: u64,
    /// How long these cells took.
    pub busy_before: Duration,
}

impl<N: Node, M> Plant<N, M> {
    /// The values of a link now: from end 0 to end 1, and back.
    #[must_use]
    pub fn link_now(&self, link: LinkId) -> [LineNow; 2] {
        LineId::both(link).map(|line| {
            let (sent_before, busy_before) = self.line(line).before;
            LineNow {
                config: self.links[link.0].config.lines[line.side()],
                sent_before,
                busy_before,
            }
        })
    }

    /// True while a link trains.
    #[must_use]
    pub fn is_training(&self, link: LinkId) -> bool {
        self.links[link.0].training
    }

    /// Tells a node that starts the rates of links that have changed.
    pub(super) fn rates_at(&mut self, node: NodeId) {
        for port in 0..self.ports(node) {
            let end = LinkEnd { node, port };
            let line = self.line_from(end);
            let changed = line.filter(|line| self.links[line.link().0].other_rate);
            if let Some(rates) = changed.and_then(|line| self.rates_of(line)) {
                let now = self.now;
                if let Some(machine) = self.node_mut(node) {
                    machine.rates(port, rates, now);
                }
            }
        }
    }

    /// The rates of a line and of the line back, if both are known.
    fn rates_of(&self, line: LineId) -> Option<[CellRate; 2]> {
        let lines = &self.links[line.link().0].config.lines;
        Some([lines[line.side()].rate?, lines[1 - line.side()].rate?])
    }

    /// Gives a line new values, except for the rate at its port.
    fn change_line(&mut self, line: LineId, new: LineConfig)
    where
        M: Medium,
    {
        let link = line.link().0;
        let old = std::mem::replace(&mut self.links[link].config.lines[line.side()], new);
        if old.delay != new.delay {
            self.set_delay(line, new.delay);
        }
        let on = &mut self.lines[line.0 as usize];
        if old.errors != new.errors {
            on.medium.change(&new.errors);
        }
        if let Some(rate) = old.rate
            && old.rate != new.rate
        {
            let (sent, busy) = on.before;
            on.before = (
                on.counters.sent,
                busy + rate.time_of(on.counters.sent - sent),
            );
            self.links[link].other_rate = true;
        }
    }

    /// Gives a line another delay. No cell arrives before those that are on the line.
    fn set_delay(&mut self, line: LineId, delay: Duration) {
        let on = &mut self.lines[line.0 as usize];
        on.delay = delay;
        let alone = on.on_the_way.back().map(|last| last.0);
        let floor = alone.map_or(0, Instant::as_nanos);
        self.trains.set_delay(line.0, delay, floor);
    }
}

/// Drivers whose links change.
pub trait Change: Driver {
    /// Gives the directions of a link new values, by the end at which they start.
    fn change_link(&mut self, link: LinkId, changes: &[LineChange; 2]) {
        self.advance_all();
        let plant = self.plant_mut();
        let old = plant.links[link.0].config.lines;
        for (line, change) in LineId::both(link).into_iter().zip(changes) {
            let new = old[line.side()].with(change);
            plant.change_line(line, new);
        }
        if let Some(changed) = &mut plant.changed {
            changed.links.insert(link);
        }
        let new = plant.links[link.0].config.lines;
        if new.map(|line| line.rate) != old.map(|line| line.rate) {
            self.tell_rates(link);
        }
        for line in LineId::both(link) {
            self.renew_trains(line);
        }
    }

    /// Decides anew whether a line has trains, and when it has its next event.
    fn renew_trains(&mut self, line: LineId) {
        let plant = self.plant_mut();
        if plant.is_single(line) != plant.trains.is_single(line.0) {
            plant.end_trains(line);
            let to = plant.line(line).to.node;
            self.unbind_trains(to);
            let from = self.plant().line(line).from.node;
            self.unbind_trains(from);
        }
        self.plant_mut().reschedule(line);
    }

    /// Tells the nodes at both ends of a link its rates.
    fn tell_rates(&mut self, link: LinkId) {
        for line in LineId::both(link) {
            let LinkEnd { node, port } = self.plant().line(line).from;
            if let Some(rates) = self.plant().rates_of(line) {
                self.with_node(node, |machine, now| machine.rates(port, rates, now));
            }
        }
    }

    /// A link begins to train, and is down; or it is ready.
    fn set_training(&mut self, link: LinkId, training: bool) {
        self.advance_all();
        self.plant_mut().links[link.0].training = training;
        self.link_may_be_up(link);
    }
}

impl<D: Driver> Change for D {}
