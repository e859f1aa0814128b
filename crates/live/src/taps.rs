//! The TAPs of a lab: frames from kernels and to kernels.

use crate::budget::STEP;
use crate::frames::{FrameBuffers, Got};
use crate::source::{Slot, Source, Turn};
use crate::tap::Tap;
use aerostat_lab::model::NodeId;
use aerostat_node::host::KernelTrain;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use std::collections::BTreeMap;
use std::io;

/// Limit of frames taken from one TAP in one turn.
const FRAMES: usize = 32;
/// Limit of frames taken from all TAPs in a turn in which the network lags behind, with one frame from each TAP. A
/// frame makes about eight events on its way through a switch, so that half of the turn's events are left for what
/// waits.
const FRAMES_BEHIND: usize = STEP / 16;

/// A TAP.
struct TapPort {
    node: NodeId,
    itf: usize,
    tap: Tap,
    /// True if frames may be waiting: the poller reports only changes.
    readable: bool,
}

/// Frames that were lost between kernel and network.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FrameCounters {
    /// Frames with an invalid offload header.
    pub(crate) bad: u64,
    /// Frames that the kernel refused.
    pub(crate) refused: u64,
}

/// All TAPs.
#[derive(Default)]
pub(crate) struct Taps {
    /// The TAPs by their tokens; `None` is a place for the next one.
    ports: Vec<Option<TapPort>>,
    /// Ports by node and interface.
    of: BTreeMap<(usize, usize), usize>,
    /// The TAP whose turn is first.
    first: usize,
    /// Memory for their frames.
    buffers: FrameBuffers,
    /// True if a TAP has given frames.
    came: bool,
    pub(crate) counters: FrameCounters,
}

impl Taps {
    /// Adds the TAP of interface `lecN` of a node, and registers it.
    pub(crate) fn add(
        &mut self,
        (node, itf): (NodeId, usize),
        tap: Tap,
        registry: &Registry,
    ) -> io::Result<()> {
        let free = self.ports.iter().position(Option::is_none);
        let place = free.unwrap_or(self.ports.len());
        let token = Token(Slot::Taps.token().0 + place);
        registry.register(&mut SourceFd(&tap.raw_fd()), token, Interest::READABLE)?;
        self.of.insert((node.0, itf), place);
        let port = TapPort {
            node,
            itf,
            tap,
            readable: true,
        };
        match self.ports.get_mut(place) {
            Some(free) => *free = Some(port),
            None => self.ports.push(Some(port)),
        }
        Ok(())
    }

    /// Closes the TAPs of a node. Its kernel's interfaces end with them.
    pub(crate) fn remove(&mut self, node: NodeId, registry: &Registry) {
        let all = (node.0, 0)..=(node.0, usize::MAX);
        for (_, place) in self.of.extract_if(all, |_, _| true) {
            if let Some(port) = self.ports.get_mut(place).and_then(Option::take) {
                // Its descriptor may be open elsewhere, so the poller would go on with it.
                let _ = registry.deregister(&mut SourceFd(&port.tap.raw_fd()));
            }
        }
    }

    /// True if a TAP has given frames since the last call.
    pub(crate) fn have_come(&mut self) -> bool {
        std::mem::take(&mut self.came)
    }

    /// Writes a frame to interface `lecN` of a node's kernel.
    pub(crate) fn write(&mut self, at: (NodeId, usize), frame: &[u8]) {
        self.write_to(at, 1, |tap| tap.write(frame));
    }

    /// The same for a super frame, whose memory is used again.
    pub(crate) fn write_super(&mut self, at: (NodeId, usize), frame: KernelTrain) {
        self.write_to(at, frame.count(), |tap| {
            frame.frame().map_or(Ok(true), |part| tap.write_part(&part))
        });
        self.buffers.recycle(frame.into_memory());
    }

    fn write_to(
        &mut self,
        (node, itf): (NodeId, usize),
        frames: u16,
        write: impl FnOnce(&Tap) -> io::Result<bool>,
    ) {
        let port = self.of.get(&(node.0, itf));
        let port = port.and_then(|tap| self.ports.get(*tap)?.as_ref());
        let taken = port.is_some_and(|port| write(&port.tap).unwrap_or(false));
        if !taken {
            self.counters.refused += u64::from(frames);
        }
    }
}

impl Source for Taps {
    fn takes_part(&self) -> bool {
        !self.of.is_empty()
    }

    fn ready(&mut self, distance: usize) {
        if let Some(Some(port)) = self.ports.get_mut(distance) {
            port.readable = true;
        }
    }

    /// Takes frames from the kernel. While the network lags behind, the turns of TAPs are shorter, and the next TAP is
    /// the first in the next turn.
    fn turn(&mut self, turn: &mut Turn<'_>) -> bool {
        let (each, mut left) = match turn.caught_up {
            true => (FRAMES, usize::MAX),
            false => (1, FRAMES_BEHIND),
        };
        let (world, now) = (&mut *turn.world, turn.now);
        let (mut more, taps, first) = (false, self.ports.len(), self.first);
        for place in (0..taps).map(|n| (first + n) % taps) {
            if left == 0 {
                (more, self.first) = (true, place);
                break;
            }
            let Some(port) = &mut self.ports[place] else {
                continue;
            };
            let (node, itf) = (port.node, port.itf);
            for _ in 0..each.min(left) {
                if !port.readable || !world.takes_frames(node) {
                    break;
                }
                left -= 1;
                let got = self.buffers.read(&port.tap);
                self.came |= !matches!(got, Got::Nothing);
                match got {
                    Got::Nothing => {
                        port.readable = false;
                        break;
                    }
                    Got::Bad => self.counters.bad += 1,
                    Got::Frame(frame) => world.kernel_frame(node, itf, frame, now),
                    Got::SuperFrame(frame) => world.kernel_super_frame(node, itf, frame, now),
                }
            }
            more |= port.readable && world.takes_frames(node);
        }
        more
    }
}
