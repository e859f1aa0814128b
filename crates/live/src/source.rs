//! The sources of input of a running lab: TAPs, links out of the lab, daemons, programs, routes, files, and the
//! processes that the lab depends on.
//!
//! **Purpose.** Each [`Source`] says when it needs a turn, and does a bounded amount of work in it. The loop
//! (`driver`) knows the order of the turns and nothing else about them.
//!
//! **Tokens.** Each source has a range of tokens of the poller ([`Slot::token`]), and numbers its descriptors within
//! the range as it likes. Tokens below all ranges are the loop's own.

use crate::clock::Clock;
use crate::world::World;
use aerostat_lab::model::{Lab, NodeId};
use aerostat_node::host::HostCommand;
use aerostat_proto::{Instant, Trace};
use mio::{Registry, Token};

/// Parts of the lab that a source may use in its turn.
pub(crate) struct Turn<'t> {
    pub(crate) lab: &'t Lab,
    pub(crate) world: &'t mut World,
    pub(crate) registry: &'t Registry,
    pub(crate) clock: Clock,
    pub(crate) now: Instant,
    /// False while the network lags behind.
    pub(crate) caught_up: bool,
    /// Words of the source, for the loop to pass on after the turn.
    pub(crate) said: &'t mut Vec<Said>,
}

/// A word of a source.
pub(crate) enum Said {
    /// An event of a node.
    Trace(NodeId, Trace),
    /// An event of the lab as a whole.
    OfLab(Trace),
    /// A command for a node.
    Command(NodeId, HostCommand),
}

/// A source of input.
pub(crate) trait Source {
    /// The poller has reported the token at this distance from the first one of the source.
    fn ready(&mut self, _distance: usize) {}
    /// When [`Self::turn`] is next needed if nothing is ready.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    /// True if a kernel, peer or program outside sends to the network now, or waits for its cells. Then each event of
    /// the network is handled when it is due.
    fn takes_part(&self) -> bool {
        false
    }
    /// Comes up before the network starts, as far as this needs no answer from outside.
    fn come_up(&mut self, _turn: &mut Turn<'_>) {}
    /// Does a bounded amount of work; true if more could be done at once.
    fn turn(&mut self, turn: &mut Turn<'_>) -> bool;
    /// Sends what has been collected.
    fn flush(&mut self, _turn: &mut Turn<'_>) {}
}

/// Place of a source, which gives it its range of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    Taps = 1,
    Links,
    Daemons,
    Sockets,
    Routes,
    NextHops,
    Keepers,
}

impl Slot {
    /// Number of tokens of a source.
    pub(crate) const RANGE: usize = usize::MAX / 16;

    /// First token of the source.
    pub(crate) const fn token(self) -> Token {
        Token(self as usize * Self::RANGE)
    }
}
