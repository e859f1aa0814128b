//! A line that carries cells in Ethernet frames ("fat cells"), and what a frame costs.
//!
//! **A frame** has the octets of `aerostat_wire::cell_frame`: header, 1 to N cells of 52 octets, and the check
//! sequence. With the preamble in front of it and the gap behind it, `n` cells take `38 + 52 n` octets of the line.
//!
//! **Filling.** When the line is free and a cell waits, a preamble leaves. The frame takes the cells that wait when the
//! preamble has left, in the order of the port's schedule, at most N. So no cell waits for others, and a queue is empty
//! after the frame if it had no more than N cells; under load the frames are full. Cells that come with one frame are
//! all in the next one, because they come at one instant.
//!
//! **Arrival.** A receiver needs the check sequence, so the cells of a frame arrive together, when its last octet has.

use super::rate::CellRate;
use aerostat_proto::Duration;
use aerostat_wire::cell_frame;

/// A line with frames: its rate, and the largest number of cells in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    bits_per_second: u64,
    cells: u16,
}

impl Framing {
    /// An Ethernet of this rate, bit/s, with up to so many cells in a frame; 0 counts as 1.
    #[must_use]
    pub const fn new(bits_per_second: u64, cells: u16) -> Self {
        Self {
            bits_per_second: if bits_per_second == 0 {
                1
            } else {
                bits_per_second
            },
            cells: if cells == 0 { 1 } else { cells },
        }
    }
    /// Rate of the line, bit/s.
    #[must_use]
    pub const fn bits_per_second(self) -> u64 {
        self.bits_per_second
    }
    /// Limit of cells in a frame.
    #[must_use]
    pub const fn cells(self) -> u16 {
        self.cells
    }
    /// Time of so many octets on the line, rounded up to a nanosecond.
    fn time(self, octets: usize) -> Duration {
        let nanos = (octets as u64 * 8 * 1_000_000_000).div_ceil(self.bits_per_second);
        Duration::from_nanos(nanos)
    }
    /// Time of the preamble.
    #[must_use]
    pub fn preamble(self) -> Duration {
        self.time(cell_frame::PREAMBLE)
    }
    /// Time of a frame with so many cells, from its first octet to the last one of the check sequence.
    #[must_use]
    pub fn frame(self, cells: u16) -> Duration {
        self.time(cell_frame::octets(cells.into()))
    }
    /// Time between two frames, without the preamble.
    #[must_use]
    pub fn gap(self) -> Duration {
        self.time(cell_frame::GAP)
    }
    /// How long the line is busy with so many frames, and so many cells in them.
    #[must_use]
    pub fn busy(self, frames: u64, cells: u64) -> Duration {
        let [empty, one] = [0, 1].map(|cells| cell_frame::on_the_line(cells) as u64);
        let octets =
            u128::from(frames) * u128::from(empty) + u128::from(cells) * u128::from(one - empty);
        let nanos = octets * 8 * 1_000_000_000 / u128::from(self.bits_per_second);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
    /// Cells per second if all frames are full.
    #[must_use]
    pub const fn full_rate(self) -> CellRate {
        let octets = cell_frame::on_the_line(self.cells as usize) as u64;
        CellRate::of_ratio(self.bits_per_second * self.cells as u64, octets * 8)
    }
}

/// The place of a departure among those of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InFrame {
    /// The line has no frames.
    #[default]
    No,
    /// It is the first one of a frame.
    First,
    /// It is in the frame of the one before.
    Further,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_frame_of_28_cells_has_the_length_of_the_largest_ethernet_frame_but_20_octets() {
        let line = Framing::new(10_000_000, 28);
        // 14 + 28 × 52 + 4 octets, of 800 ns.
        assert_eq!(line.frame(28), Duration::from_nanos(1474 * 800));
        assert_eq!(line.preamble() + line.gap(), Duration::from_micros(16));
        let rate = line.full_rate();
        let exact = 28.0 * 10_000_000.0 / (1494.0 * 8.0);
        let is = rate.numerator() as f64 / rate.denominator() as f64;
        assert!((is - exact).abs() < 1e-6, "{is}");
    }
}
