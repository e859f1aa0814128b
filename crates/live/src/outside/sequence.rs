//! Sequence numbers of packets with cells or SDUs: the numbers of a sender, and the order at a receiver.
//!
//! **Sixteen bits**, in the control word: numbers start at 1 and skip 0, because 0 says that the sender does not number
//! its packets. Source: RFC 4385 §4. **Twenty-four bits**, in the sublayers of L2TPv3: numbers start at 0, and a bit
//! beside the number says whether it is valid. Source: RFC 3931 §4.6, appendix C.
//!
//! A number is new if it lies in the half of the space that begins with the expected number. A packet with an old
//! number is late and is dropped, because cells must keep their order. Numbers in between are missing. After [`AGAIN`]
//! late packets in a row the peer counts as restarted; this is the program's own rule.

/// This many late packets in a row mean that the peer has restarted.
pub(super) const AGAIN: u8 = 4;

/// A space of sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    /// 1 to 65535.
    Sixteen,
    /// 0 to 16777215.
    TwentyFour,
}

impl Space {
    const fn first(self) -> u32 {
        match self {
            Self::Sixteen => 1,
            Self::TwentyFour => 0,
        }
    }
    const fn mask(self) -> u32 {
        match self {
            Self::Sixteen => 0xffff,
            Self::TwentyFour => 0xff_ffff,
        }
    }
    /// The number after this one.
    const fn next(self, number: u32) -> u32 {
        let next = number.wrapping_add(1) & self.mask();
        if next == 0 { self.first() } else { next }
    }
}

/// The numbers of a sender.
#[derive(Debug)]
pub(super) struct Numbers {
    space: Space,
    next: u32,
}

impl Numbers {
    pub(super) const fn new(space: Space) -> Self {
        let next = space.first();
        Self { space, next }
    }
    /// The number of the next packet.
    pub(super) const fn number(&self) -> u32 {
        self.next
    }
    /// The number of the packet that is sent after so many others.
    pub(super) const fn after(&self, packets: usize) -> u32 {
        let first = self.space.first();
        // The numbers in use lie between the first one and the mask.
        let numbers = (self.space.mask() - first) as usize + 1;
        ((self.next - first) as usize + packets % numbers) as u32 % numbers as u32 + first
    }
    /// Records that so many packets were sent.
    pub(super) const fn sent(&mut self, packets: usize) {
        self.next = self.after(packets);
    }
}

/// The order of received packets.
#[derive(Debug)]
pub(super) struct Order {
    space: Space,
    expected: Option<u32>,
    pub(super) late_in_a_row: u8,
    /// Packets that did not arrive, or arrived too late.
    pub(super) missing: u64,
    /// Packets dropped because they were late.
    pub(super) late: u64,
}

impl Order {
    pub(super) const fn new(space: Space) -> Self {
        Self {
            space,
            expected: None,
            late_in_a_row: 0,
            missing: 0,
            late: 0,
        }
    }

    /// True if a packet with this number keeps the order; `None` is a packet without a number.
    pub(super) fn takes(&mut self, number: Option<u32>) -> bool {
        let Some(number) = number else {
            return true;
        };
        let expected = self.expected.unwrap_or(number);
        let ahead = number.wrapping_sub(expected) & self.space.mask();
        if ahead > self.space.mask() / 2 {
            self.late_in_a_row += 1;
            if self.late_in_a_row < AGAIN {
                self.late += 1;
                return false;
            }
        } else {
            // Without the numbers that are skipped when they wrap.
            let skipped = if number < expected {
                self.space.first()
            } else {
                0
            };
            self.missing += u64::from(ahead) - u64::from(skipped);
        }
        self.late_in_a_row = 0;
        self.expected = Some(self.space.next(number));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3931 knows no number that is skipped; the window is half of 2^24.
    #[test]
    fn numbers_of_twenty_four_bits_wrap_to_zero() {
        let mut numbers = Numbers::new(Space::TwentyFour);
        assert_eq!(numbers.number(), 0);
        numbers.next = 0xff_ffff;
        numbers.sent(1);
        assert_eq!(numbers.number(), 0);
        let mut order = Order::new(Space::TwentyFour);
        for (number, taken, missing, late) in [
            (Some(0xff_fffe), true, 0, 0),
            (Some(0xff_ffff), true, 0, 0),
            (Some(0), true, 0, 0),
            (None, true, 0, 0),
            (Some(3), true, 2, 0),
            (Some(2), false, 2, 1),
            (Some(0x80_0003), true, 2 + 0x7f_ffff, 1),
            (Some(4), false, 2 + 0x7f_ffff, 2),
        ] {
            assert_eq!(order.takes(number), taken, "{number:?}");
            assert_eq!((order.missing, order.late), (missing, late), "{number:?}");
        }
    }

    #[test]
    fn numbers_of_sixteen_bits_start_at_one_and_skip_zero() {
        let mut numbers = Numbers::new(Space::Sixteen);
        assert_eq!(numbers.number(), 1);
        numbers.next = 0xffff;
        assert_eq!((numbers.after(1), numbers.after(3)), (1, 3));
        numbers.sent(1);
        assert_eq!(numbers.number(), 1);
    }
}
