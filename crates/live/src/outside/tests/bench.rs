//! Links of one medium, driven by hand.

use super::super::{Event, Inbox, Medium};
use crate::clock::Clock;
use aerostat_node::atm::CellRun;
use aerostat_proto::Duration;
use mio::{Events, Poll, Registry, Token};
use std::io;

/// Links with tokens from 0, and what each has told.
pub(in crate::outside) struct Bench<L> {
    pub(in crate::outside) links: Vec<L>,
    pub(in crate::outside) told: Vec<Vec<Event>>,
    pub(in crate::outside) poll: Poll,
    pub(in crate::outside) inbox: Inbox,
    pub(in crate::outside) clock: Clock,
}

impl<L: Medium> Bench<L> {
    /// A link for each model.
    pub(in crate::outside) fn of<M>(
        models: &[M],
        open: impl Fn(&M, &Registry, Token) -> io::Result<L>,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        let links: io::Result<_> = (models.iter().zip(0..))
            .map(|(model, n)| open(model, poll.registry(), Token(n)))
            .collect();
        Ok(Self {
            links: links?,
            told: models.iter().map(|_| Vec::new()).collect(),
            poll,
            inbox: Inbox::new(Clock::start()),
            clock: Clock::start(),
        })
    }
    /// Runs until `done`, for at most twenty seconds.
    pub(in crate::outside) fn until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        let end = self.clock.now() + Duration::from_secs(20);
        let mut events = Events::with_capacity(16);
        while !done(self) {
            let now = self.clock.now();
            assert!(now < end, "too slow; told: {:?}", self.told);
            let registry = self.poll.registry();
            for (link, told) in self.links.iter_mut().zip(&mut self.told) {
                link.turn(registry, now, &mut self.inbox, told);
                link.flush(registry, now, told);
            }
            let wait = Duration::from_millis(1);
            self.poll.poll(&mut events, Some(wait)).unwrap();
            for event in &events {
                self.links[event.token().0].ready(0);
            }
        }
    }
    /// Runs of cells that have come to a link.
    pub(in crate::outside) fn runs(&self, link: usize) -> Vec<&CellRun> {
        fn run(event: &Event) -> Option<&CellRun> {
            match event {
                Event::Cells(run) => Some(run),
                _ => None,
            }
        }
        self.told[link].iter().filter_map(run).collect()
    }
    /// SDUs that have come to a link.
    pub(in crate::outside) fn sdus(&self, link: usize) -> Vec<Vec<u8>> {
        let got = crate::assembly::sdus(self.runs(link)).into_iter();
        got.map(|(_, sdu)| sdu).collect()
    }
}
