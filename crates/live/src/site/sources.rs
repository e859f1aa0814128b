//! The sources of a lab, their turns, and the outputs of the network for them.

use super::Site;
use crate::daemons::Daemons;
use crate::keepers::Keepers;
use crate::next_hops::NextHopFiles;
use crate::outside::Links;
use crate::routes::Routes;
use crate::socket_service::SocketService;
use crate::source::{Said, Slot, Source, Turn};
use crate::story::Step;
use crate::taps::Taps;
use crate::world::Output;
use aerostat_node::host::HostEvent;
use aerostat_proto::{Instant, Trace};
use mio::Token;

/// All sources of a lab.
pub(crate) struct Sources {
    pub(crate) taps: Taps,
    pub(crate) links: Links,
    /// Daemons that are processes of their own.
    pub(crate) daemons: Option<Daemons>,
    /// ATM sockets of programs of the machine.
    pub(crate) sockets: SocketService,
    /// Routes of kernel routers.
    pub(crate) routes: Routes,
    /// Files with next hops of Classical IP subnets.
    pub(crate) next_hops: NextHopFiles,
    /// Processes that the lab depends on.
    pub(crate) keepers: Keepers,
}

impl Sources {
    /// The sources that the lab has, each with its slot.
    fn all(&mut self) -> impl Iterator<Item = (Slot, &mut dyn Source)> {
        let daemons = self.daemons.as_mut();
        let all: [(Slot, Option<&mut dyn Source>); 7] = [
            (Slot::Taps, Some(&mut self.taps)),
            (Slot::Links, Some(&mut self.links)),
            (Slot::Daemons, daemons.map(|daemons| daemons as _)),
            (Slot::Sockets, Some(&mut self.sockets)),
            (Slot::Routes, Some(&mut self.routes)),
            (Slot::NextHops, Some(&mut self.next_hops)),
            (Slot::Keepers, Some(&mut self.keepers)),
        ];
        let all = all.into_iter();
        all.filter_map(|(slot, source)| Some((slot, source?)))
    }

    /// The source in a slot.
    pub(crate) fn get(&mut self, slot: Slot) -> Option<&mut dyn Source> {
        self.all()
            .find(|(at, _)| *at == slot)
            .map(|(_, source)| source)
    }

    /// The poller has reported a token.
    pub(crate) fn ready(&mut self, token: Token) {
        let (slot, distance) = (token.0 / Slot::RANGE, token.0 % Slot::RANGE);
        if let Some((_, source)) = self.all().find(|(at, _)| *at as usize == slot) {
            source.ready(distance);
        }
    }

    /// True if somebody outside takes part in the network.
    pub(crate) fn take_part(&mut self) -> bool {
        self.all().any(|(_, source)| source.takes_part())
    }

    /// When a source next needs its turn if nothing is ready.
    pub(crate) fn poll_timeout(&mut self) -> Option<Instant> {
        self.all()
            .filter_map(|(_, source)| source.poll_timeout())
            .min()
    }
}

impl Site<'_> {
    /// True if the network may rest between two turns.
    pub(crate) fn rests(&mut self) -> bool {
        self.budget.rests() && !self.pictures.are_exact() && !self.sources.take_part()
    }

    /// Gives a source what it needs, and passes on what it says.
    pub(crate) fn visit<T: Default>(
        &mut self,
        slot: Slot,
        (caught_up, now): (bool, Instant),
        what: impl FnOnce(&mut dyn Source, &mut Turn<'_>) -> T,
    ) -> T {
        let mut said = Vec::new();
        let mut turn = Turn {
            lab: self.lab,
            world: &mut self.world,
            registry: &self.registry,
            clock: self.clock,
            now,
            caught_up,
            said: &mut said,
        };
        let source = self.sources.get(slot);
        let done = source.map(|source| what(source, &mut turn));
        for word in said {
            match word {
                Said::Trace(node, trace) => self.event(node, trace, now),
                Said::OfLab(trace) => {
                    let step = Step::new(now, self.lab.name.as_str().into(), trace);
                    self.tell_step(step);
                }
                Said::Command(node, command) => self.world.command(node, command, now),
            }
        }
        done.unwrap_or_default()
    }

    /// Gives a source its turn; true if more could be done at once.
    pub(crate) fn turn(&mut self, slot: Slot, caught_up: bool, now: Instant) -> bool {
        self.visit(slot, (caught_up, now), |source, turn| source.turn(turn))
    }

    /// Sends what a source has collected.
    pub(crate) fn flush(&mut self, slot: Slot, now: Instant) {
        self.visit(slot, (true, now), |source, turn| source.flush(turn));
    }

    /// Handles the outputs of the network. Its events wait for [`Self::recount`], because a peer or a daemon must not
    /// wait for the text of an event.
    pub(crate) fn drain(&mut self, now: Instant) {
        let sources = &mut self.sources;
        while let Some(output) = self.world.poll_output() {
            match output {
                Output::Host(node, event) => match event {
                    HostEvent::Frame { itf, frame } => sources.taps.write((node, itf), &frame),
                    HostEvent::Train { itf, frame } => sources.taps.write_super((node, itf), frame),
                    HostEvent::Daemon(role, frame) => {
                        if let Some(daemons) = &mut sources.daemons {
                            daemons.send((node, role), frame);
                        }
                    }
                    HostEvent::Program(what) => {
                        let (sockets, world) = (&mut sources.sockets, &mut self.world);
                        sockets.take(&self.registry, (node, what), world, now);
                    }
                    // The accounts take the others, and a lab in real time asks for no steps.
                    HostEvent::Sample(_)
                    | HostEvent::Finished(..)
                    | HostEvent::Lost(..)
                    | HostEvent::Socket(_)
                    | HostEvent::Joined { .. }
                    | HostEvent::Reaches { .. }
                    | HostEvent::Step(_)
                    | HostEvent::Trace(_) => {}
                },
                Output::Outside(node, run) => sources.links.send(node, &run),
                Output::Trace(node, at, trace) => self.untold.push_back((node, at, trace)),
                Output::Finished(node, flow) => {
                    let name = &self.lab.traffic[flow].name;
                    let text = format!("traffic {name} has ended");
                    let trace = Trace::milestone("traffic.ended", text).with("flow", name);
                    self.untold.push_back((node, now, trace));
                }
            }
        }
    }
}
