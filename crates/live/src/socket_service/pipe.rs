//! Pipes: the descriptors of ATM sockets, and the PDUs that go through them.

use super::packets::{self, Batch, Read, Sent, SocketId};
use super::{KEPT_OCTETS, KEPT_PDUS, PDUS, SocketService, Source};
use crate::world::World;
use aerostat_lab::model::NodeId;
use aerostat_node::atm::Sdus;
use aerostat_node::host::sockets::Input;
use aerostat_proto::Instant;
use aerostat_proto::socket::SocketRef;
use rustix::fd::OwnedFd;
use std::collections::VecDeque;

/// The lab's end of the descriptor of a socket.
#[derive(Debug)]
pub(super) struct Pipe {
    pub(super) node: NodeId,
    pub(super) socket: SocketRef,
    pub(super) ours: OwnedFd,
    /// The program's end.
    pub(super) id: SocketId,
    /// PDUs that were read from the descriptor, and that the adapter has not taken.
    read: VecDeque<Sdus>,
    /// PDUs that the descriptor had no room for.
    kept: VecDeque<Vec<u8>>,
    kept_octets: usize,
    /// True if the call has ended.
    pub(super) ends: bool,
    /// True if the program writes no more.
    no_more: bool,
}

impl Pipe {
    pub(super) fn new((node, socket): (NodeId, SocketRef), ours: OwnedFd, id: SocketId) -> Self {
        Self {
            node,
            socket,
            ours,
            id,
            read: VecDeque::new(),
            kept: VecDeque::new(),
            kept_octets: 0,
            ends: false,
            no_more: false,
        }
    }

    /// Gives PDUs to the program; keeps those for which its descriptor has no room, as far as they may be kept.
    pub(super) fn deliver(&mut self, sdus: &Sdus, batch: &mut Batch) -> Delivered {
        let (gone, next) = match self.kept.is_empty() {
            true => batch.write(&self.ours, sdus),
            false => (0, Sent::Full),
        };
        let mut delivered = Delivered::default();
        for (index, sdu) in sdus.iter().enumerate() {
            let fits = self.kept.len() < KEPT_PDUS && self.kept_octets + sdu.len() <= KEPT_OCTETS;
            if index < gone {
                delivered.taken = (delivered.taken.0 + 1, delivered.taken.1 + sdu.len());
            } else if fits && next != Sent::Closed {
                self.kept_octets += sdu.len();
                self.kept.push_back(sdu.to_vec());
            } else {
                delivered.lost = (delivered.lost.0 + 1, delivered.lost.1 + sdu.len());
            }
        }
        delivered
    }

    /// Writes what is kept; returns PDUs and octets that the descriptor has taken, and the number of PDUs that are lost
    /// because the program has gone.
    fn go_on(&mut self) -> ((usize, usize), u64) {
        let mut taken = (0, 0);
        while let Some(sdu) = self.kept.front() {
            match packets::write(&self.ours, sdu) {
                Sent::Gone => {
                    taken = (taken.0 + 1, taken.1 + sdu.len());
                    self.kept_octets -= sdu.len();
                    self.kept.pop_front();
                }
                Sent::Full => break,
                Sent::Closed => {
                    self.kept_octets = 0;
                    return (taken, self.kept.drain(..).len() as u64);
                }
            }
        }
        (taken, 0)
    }
}

/// Where PDUs for a program went: numbers of PDUs and octets. The others go into its descriptor later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Delivered {
    /// Into its descriptor.
    pub(super) taken: (usize, usize),
    /// Nowhere: the program does not read.
    pub(super) lost: (usize, usize),
}

/// Result of one step with a pipe.
enum Step {
    /// Go on.
    More,
    /// There is nothing to do now.
    Rest,
    /// The program has closed its end.
    Closed,
}

impl SocketService {
    /// Moves PDUs of a pipe; true if it may have more.
    pub(super) fn pump(&mut self, at: usize, world: &mut World, now: Instant) -> bool {
        let Some(Source::Pipe(pipe)) = self.sources.get_mut(at) else {
            return false;
        };
        let (node, socket) = (pipe.node, pipe.socket);
        let ((pdus, octets), lost) = pipe.go_on();
        if lost > 0 {
            let unread = Input::Unread { socket, pdus: lost };
            world.program(node, unread, now);
        }
        if pdus > 0 {
            let taken = Input::Taken {
                socket,
                pdus,
                octets,
            };
            world.program(node, taken, now);
        }
        match self.step(at, world, now) {
            Step::More => true,
            Step::Rest => self.end_pipe(at),
            Step::Closed => {
                self.remove(at);
                world.program(node, Input::Closed { socket }, now);
                false
            }
        }
    }

    /// Reads PDUs of the program while the adapter takes them, at most [`PDUS`].
    fn step(&mut self, at: usize, world: &mut World, now: Instant) -> Step {
        let Some(Source::Pipe(pipe)) = self.sources.get_mut(at) else {
            return Step::Rest;
        };
        let (node, socket) = (pipe.node, pipe.socket);
        if !world.asks_to_write(node, socket) {
            // A socket without a connection: what its program writes waits, but its end must be seen.
            return match !world.is_open(node, socket) && packets::is_closed(&pipe.ours) {
                true => Step::Closed,
                false => Step::Rest,
            };
        }
        if pipe.no_more && pipe.read.is_empty() {
            return match packets::is_closed(&pipe.ours) {
                true => Step::Closed,
                false => Step::Rest,
            };
        }
        let (batch, mut left, mut step) = (&mut self.batch, PDUS, Step::More);
        let read = |most| {
            if pipe.read.is_empty() {
                left = left.checked_sub(most)?;
                match batch.read(&pipe.ours, most, &mut pipe.read) {
                    Read::Packets => {}
                    Read::Nothing => step = Step::Rest,
                    Read::NoMore => {
                        pipe.no_more = true;
                        step = Step::Rest;
                    }
                    Read::End => step = Step::Closed,
                }
            }
            pipe.read.pop_front()
        };
        world.write_all(node, socket, now, read);
        // What was read before the end comes first.
        match step {
            Step::Closed if !pipe.read.is_empty() => Step::Rest,
            step => step,
        }
    }

    /// Closes the lab's end if the call has ended and everything has been delivered and read; false.
    fn end_pipe(&mut self, at: usize) -> bool {
        if let Some(Source::Pipe(pipe)) = self.sources.get(at)
            && pipe.ends
            && pipe.kept.is_empty()
        {
            self.remove(at);
        }
        false
    }
}
