//! Frames that wait for one daemon to read them.
//!
//! **Bounds.** The octets are bounded, not the frames: a new daemon gets at once what its client or server knows, a
//! small frame for each entry. A daemon that leaves more than [`MOST`] octets unread does not read, and loses its seat.
//! Data frames are dropped earlier ([`DATA`]), so that they do not wait for long.

use std::collections::VecDeque;

/// Most octets of the frames that may wait for one daemon, with [`OVERHEAD`] for each frame: the members of a LES with
/// 10 000 clients of 256 addresses each take 17 MB.
const MOST: usize = 32 << 20;
/// Octets of memory that a frame takes beside its own octets, about.
const OVERHEAD: usize = 64;
/// Frames after which a data frame no longer joins the queue: about 0.2 s of full frames on an OC-3.
const DATA: usize = 2048;

/// The frames that wait for one daemon.
#[derive(Debug, Default)]
pub(super) struct Queue {
    frames: VecDeque<Vec<u8>>,
    octets: usize,
}

impl Queue {
    /// Appends a frame; false if the queue is full.
    #[must_use]
    pub(super) fn push(&mut self, frame: Vec<u8>) -> bool {
        let octets = self.octets + frame.len() + OVERHEAD;
        let room = octets <= MOST;
        if room {
            self.octets = octets;
            self.frames.push_back(frame);
        }
        room
    }
    /// True if a data frame may join the queue.
    pub(super) fn takes_data(&self) -> bool {
        self.frames.len() < DATA
    }
    /// The frames in the order in which they are sent.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.frames.iter()
    }
    /// The first `count` frames were sent.
    pub(super) fn pop(&mut self, count: usize) {
        for frame in self.frames.drain(..count.min(self.frames.len())) {
            self.octets -= frame.len() + OVERHEAD;
        }
    }
    /// Drops all frames.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
