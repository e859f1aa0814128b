//! The TAPs in the loop: frames from kernels and to kernels.

use super::{Driver, FIRST_TAP, ROUTES};
use crate::frames::Got;
use crate::kernel::KernelNode;
use crate::kernel::tcp::Followed;
use crate::namespace::NetNs;
use crate::routes::KernelRoutes;
use crate::tap::Tap;
use aerostat_lab::model::NodeId;
use aerostat_proto::Instant;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use std::collections::BTreeMap;
use std::io;

/// Limit of frames taken from one TAP in one turn.
const FRAMES: usize = 32;
/// Limit of frames taken from all TAPs in a turn in which the network lags behind, with one frame from each TAP. A
/// frame makes about eight events on its way through a switch, so that half of the turn's events are left for what
/// waits.
const FRAMES_BEHIND: usize = super::STEP / 16;

/// A TAP in the loop.
pub(super) struct TapPort {
    pub(super) node: NodeId,
    pub(super) itf: usize,
    pub(super) tap: Tap,
    /// True if frames may be waiting: the poller reports only changes.
    pub(super) readable: bool,
}

/// TAPs and namespaces of kernel nodes in the loop.
#[derive(Default)]
pub(super) struct Opened {
    pub(super) taps: Vec<TapPort>,
    /// TAPs by node and interface.
    pub(super) tap_of: BTreeMap<(usize, usize), usize>,
    pub(super) namespaces: BTreeMap<usize, NetNs>,
    pub(super) routes: Vec<(NodeId, KernelRoutes)>,
    pub(super) followed: BTreeMap<usize, Vec<Followed>>,
}

/// Registers what kernel nodes have.
pub(super) fn open(nodes: Vec<(NodeId, KernelNode)>, registry: &Registry) -> io::Result<Opened> {
    let mut all = Opened::default();
    for (node, kernel) in nodes {
        all.followed.insert(node.0, kernel.tcp);
        if let Some(watched) = kernel.routes {
            let fd = watched.raw_fd();
            registry.register(&mut SourceFd(&fd), ROUTES, Interest::READABLE)?;
            all.routes.push((node, watched));
        }
        all.namespaces.insert(node.0, kernel.namespace);
        for (itf, tap) in kernel.taps.into_iter().enumerate() {
            let token = Token(FIRST_TAP + all.taps.len());
            registry.register(&mut SourceFd(&tap.raw_fd()), token, Interest::READABLE)?;
            all.tap_of.insert((node.0, itf), all.taps.len());
            all.taps.push(TapPort {
                node,
                itf,
                tap,
                readable: true,
            });
        }
    }
    Ok(all)
}

impl Driver<'_> {
    /// Gives programs with ATM sockets their turn; true if more work could be done at once.
    pub(super) fn serve_programs(&mut self, now: Instant) -> bool {
        let more = self
            .sockets
            .turn(self.poll.registry(), &mut self.world, now);
        self.drain(now);
        more
    }

    /// Takes frames from the kernel; true if more could be taken at once. While the network lags behind, the turns of
    /// TAPs are shorter, and the next TAP is the first in the next turn.
    pub(super) fn read_taps(&mut self, caught_up: bool, now: Instant) -> bool {
        let (each, mut left) = match caught_up {
            true => (FRAMES, usize::MAX),
            false => (1, FRAMES_BEHIND),
        };
        let (mut more, taps, first) = (false, self.taps.len(), self.first_tap);
        for place in (0..taps).map(|n| (first + n) % taps) {
            if left == 0 {
                (more, self.first_tap) = (true, place);
                break;
            }
            let port = &mut self.taps[place];
            for _ in 0..each.min(left) {
                if !port.readable || !self.world.takes_frames(port.node) {
                    break;
                }
                left -= 1;
                let (world, node, itf) = (&mut self.world, port.node, port.itf);
                let got = self.buffers.read(&port.tap);
                self.frames_came |= !matches!(got, Got::Nothing);
                match got {
                    Got::Nothing => {
                        port.readable = false;
                        break;
                    }
                    Got::Bad => self.frames.bad += 1,
                    Got::Frame(frame) => world.kernel_frame(node, itf, frame, now),
                    Got::SuperFrame(frame) => world.kernel_super_frame(node, itf, frame, now),
                }
            }
            more |= port.readable && self.world.takes_frames(port.node);
        }
        more
    }

    /// Writes so many frames to interface `lecN` of a node's kernel.
    pub(super) fn write_to(
        &mut self,
        (node, itf): (NodeId, usize),
        frames: u16,
        write: impl FnOnce(&Tap) -> io::Result<bool>,
    ) {
        let port = self.tap_of.get(&(node.0, itf));
        let port = port.and_then(|tap| self.taps.get(*tap));
        let taken = port.is_some_and(|port| write(&port.tap).unwrap_or(false));
        if !taken {
            self.frames.refused += u64::from(frames);
        }
    }
}
