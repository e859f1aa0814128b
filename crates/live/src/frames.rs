//! Frames from TAPs, and the memory for them.
//!
//! A frame is read behind some room, in which the header of an encapsulation can be put in front of it. An ordinary
//! frame is copied out of the buffer, and so is a short super frame. A longer super frame keeps the memory into which
//! the kernel wrote it, up to the kernel that gets it; then the memory is used again.

use crate::tap::{Tap, VNET_HEADER};
use aerostat_node::offload::{GsoType, SuperFrame, VnetHeader, complete};

/// Octets in front of what the kernel writes.
const ROOM: usize = 20;
/// Octets of the longest frame with its vnet header, and one more: a frame that is cut is no frame.
const LONGEST: usize = VNET_HEADER + 14 + 65_536;
/// A super frame of fewer octets gets memory of its own length: queues are bounded in cells, and not in memory.
const SHORT: usize = 8192;
/// Limit of buffers that wait to be used again.
const SPARE: usize = 64;

/// Result of reading a TAP.
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
        match tap.read(&mut buffer) {
            Ok(true) => self.decode(buffer),
            Ok(false) | Err(_) => self.keep(buffer, Got::Nothing),
        }
    }

    /// Decodes the octets of a buffer.
    fn decode(&mut self, buffer: Vec<u8>) -> Got {
        let octets = buffer.get(ROOM..).unwrap_or_default();
        let header = VnetHeader::decode(octets);
        let (Ok(header), Some(frame)) = (header, octets.get(VNET_HEADER..)) else {
            return self.keep(buffer, Got::Bad);
        };
        if header.gso_type == GsoType::None {
            let frames = complete(&header, frame).ok();
            let frame = frames.and_then(|frames| frames.into_iter().next());
            return self.keep(buffer, frame.map_or(Got::Bad, Got::Frame));
        }
        let memory = if buffer.len() < SHORT {
            let own = buffer.clone();
            self.recycle(Some(buffer));
            own
        } else {
            buffer
        };
        SuperFrame::new(&header, memory, ROOM + VNET_HEADER).map_or(Got::Bad, Got::SuperFrame)
    }

    /// Takes a buffer back.
    fn keep(&mut self, buffer: Vec<u8>, got: Got) -> Got {
        self.recycle(Some(buffer));
        got
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory of a super frame of UDP with this many segments of 100 octets.
    fn memory(buffers: &mut FrameBuffers, segments: usize) -> usize {
        let udp = 8 + 100 * segments;
        let ip = (20 + udp as u16).to_be_bytes();
        let mut buffer = Vec::with_capacity(ROOM + LONGEST);
        buffer.resize(ROOM, 0);
        let header = VnetHeader {
            needs_csum: true,
            gso_type: GsoType::UdpL4,
            gso_size: 100,
            csum_start: 34,
            csum_offset: 6,
            hdr_len: 42,
        };
        buffer.extend(header.encode(false));
        buffer.extend([2; 12]);
        buffer.extend([8, 0, 0x45, 0, ip[0], ip[1], 0, 1, 0, 0, 64, 17, 0, 0]);
        buffer.extend([10, 0, 0, 1, 10, 0, 0, 2, 0, 9, 0, 9]);
        buffer.extend((udp as u16).to_be_bytes());
        buffer.resize(ROOM + header.encode(false).len() + 34 + udp, 0);
        match buffers.decode(buffer) {
            Got::SuperFrame(frame) => frame.into_memory().capacity(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_short_super_frame_keeps_no_memory_of_a_long_one() {
        let mut buffers = FrameBuffers::default();
        assert!(memory(&mut buffers, 3) < 600);
        assert_eq!(
            buffers.spare.len(),
            1,
            "the buffer is there for the next frame"
        );
        assert!(memory(&mut buffers, 600) >= ROOM + LONGEST);
    }
}
