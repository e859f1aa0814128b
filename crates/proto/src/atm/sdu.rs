//! An AAL5 SDU that may begin behind the start of its memory.

use core::fmt;
use core::ops::Deref;

/// The octets of an SDU. A frame whose header gives way to a shorter one becomes an SDU where it lies, without a copy.
#[derive(Clone)]
pub struct Sdu {
    memory: Vec<u8>,
    /// Index of the first octet of the SDU; at most the length of the memory.
    start: usize,
}

impl Sdu {
    /// `header`, and the octets of `frame` from `at` on. They are copied only if the header is longer than what it
    /// replaces.
    #[must_use]
    pub fn behind(header: &[u8], mut frame: Vec<u8>, at: usize) -> Self {
        if let Some(start) = at.checked_sub(header.len())
            && let Some(place) = frame.get_mut(start..at)
        {
            place.copy_from_slice(header);
            let memory = frame;
            return Self { memory, start };
        }
        let rest = frame.get(at..).unwrap_or_default();
        [header, rest].concat().into()
    }
    /// The SDU in memory of its own. This copies the octets if the SDU does not fill its memory.
    #[must_use]
    pub fn into_vec(mut self) -> Vec<u8> {
        self.memory.drain(..self.start);
        self.memory
    }
}

impl Deref for Sdu {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        self.memory.get(self.start..).unwrap_or_default()
    }
}

impl From<Vec<u8>> for Sdu {
    fn from(memory: Vec<u8>) -> Self {
        Self { memory, start: 0 }
    }
}

impl PartialEq for Sdu {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Sdu {}

impl fmt::Debug for Sdu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_takes_the_place_of_a_longer_one_and_the_rest_does_not_move() {
        let frame = vec![1, 2, 3, 4, 5, 6];
        let memory = frame.as_ptr();
        let sdu = Sdu::behind(&[9, 8], frame, 4);
        assert_eq!(*sdu, [9, 8, 5, 6]);
        assert_eq!(sdu.as_ptr(), memory.wrapping_add(2));
        assert_eq!(sdu.into_vec(), [9, 8, 5, 6]);
    }

    #[test]
    fn a_header_without_room_and_a_short_frame_still_give_an_sdu() {
        assert_eq!(*Sdu::behind(&[9; 5], vec![1; 6], 4), [9, 9, 9, 9, 9, 1, 1]);
        assert_eq!(*Sdu::behind(&[9; 2], vec![1; 3], 4), [9, 9]);
        assert_eq!(*Sdu::behind(&[9], vec![1], 1), [9]);
    }
}
