//! Frames from TAPs, and the memory for them.
//!
//! A frame is read behind some room, in which the header of an encapsulation can be put in front of it. An ordinary
//! frame is copied out of the buffer. A super frame keeps the memory into which the kernel wrote it, up to the kernel
//! that gets it; then the memory is used again.

use crate::tap::{Tap, VNET_HEADER};
use aerostat_node::ip::offload::{GsoType, SuperFrame, VnetHeader, complete};

/// Octets in front of what the kernel writes.
const ROOM: usize = 20;
/// Octets of the longest frame with its vnet header, and one more: a frame that is cut is no frame.
const LONGEST: usize = VNET_HEADER + 14 + 65_536;
/// Limit of buffers that wait to be used again.
const SPARE: usize = 64;

/// What a TAP had.
#[derive(Debug)]
pub(crate) enum Got {
    /// No frame waits.
    Nothing,
    /// Octets that are no frame, or that disagree with their vnet header.
    Bad,
    /// A complete frame.
    Frame(Vec<u8>),
    /// A frame that stands for many.
    SuperFrame(SuperFrame),
}

/// Memory for frames.
#[derive(Debug, Default)]
pub(crate) struct FrameBuffers {
    spare: Vec<Vec<u8>>,
}

impl FrameBuffers {
    /// Reads what waits at a TAP.
    pub(crate) fn read(&mut self, tap: &Tap) -> Got {
        let new = || Vec::with_capacity(ROOM + LONGEST);
        let mut buffer = self.spare.pop().unwrap_or_else(new);
        buffer.clear();
        buffer.resize(ROOM, 0);
        let got = match tap.read(&mut buffer) {
            Ok(true) => Self::decode(buffer),
            Ok(false) | Err(_) => Err((buffer, Got::Nothing)),
        };
        match got {
            Ok(frame) => Got::SuperFrame(frame),
            Err((buffer, got)) => {
                self.recycle(Some(buffer));
                got
            }
        }
    }

    /// A super frame, or the buffer and what else is in it.
    fn decode(buffer: Vec<u8>) -> Result<SuperFrame, (Vec<u8>, Got)> {
        let octets = buffer.get(ROOM..).unwrap_or_default();
        let header = VnetHeader::decode(octets);
        let (Ok(header), Some(frame)) = (header, octets.get(VNET_HEADER..)) else {
            return Err((buffer, Got::Bad));
        };
        if header.gso_type == GsoType::None {
            let frames = complete(&header, frame).ok();
            let frame = frames.and_then(|frames| frames.into_iter().next());
            return Err((buffer, frame.map_or(Got::Bad, Got::Frame)));
        }
        SuperFrame::new(&header, buffer, ROOM + VNET_HEADER)
            .map_err(|_| (Vec::with_capacity(ROOM + LONGEST), Got::Bad))
    }

    /// Takes back memory that is not in use any more.
    pub(crate) fn recycle(&mut self, buffer: Option<Vec<u8>>) {
        if let Some(buffer) = buffer
            && self.spare.len() < SPARE
            && buffer.capacity() >= ROOM + LONGEST
        {
            self.spare.push(buffer);
        }
    }
}
