//! A link: its ends, and what each direction of it does to cells.

use super::{LinkEnd, Queues};
use aerostat_node::atm::{CellRate, Framing, PathConfig, Policing};
use aerostat_proto::Duration;

/// A cable.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Unique name: the two nodes joined by `-` unless the file gives one.
    pub name: String,
    /// Its ends. On a link between switches, between end systems, or from an end system out of the lab, `ends[0]` has
    /// the network side; on an access link `ends[0]` is the end system (user side) and `ends[1]` the switch.
    pub ends: [LinkEnd; 2],
    /// The end with the user side, 0 or 1. *Up* is the direction that starts there, as on a DSL line.
    pub user: usize,
    /// Its two directions, by the end at which they start.
    pub lines: [LineParams; 2],
    /// Policing of what comes in at its switches; `None`: as each switch says.
    pub police: Option<Policing>,
    /// Cell delay variation tolerance there of contracts that do not give one; `None`: the default.
    pub cdvt: Option<Duration>,
    /// Queues of its switches in front of it.
    pub queues: Queues,
    /// Paths that its switches shape.
    pub tunnels: Vec<PathConfig>,
    /// VPI of its calls: 0, or on a link between switches that of the path that they are in.
    pub call_vpi: u16,
    /// The Ethernet frames in which it carries cells; `None` if it carries them one by one. Its rate is that of full
    /// frames then.
    pub framing: Option<Framing>,
}

impl Link {
    /// The rate of what the end `end` sends.
    ///
    /// For an end that is not one of this link it is that of `ends[1]`.
    #[must_use]
    pub fn rate_from(&self, end: LinkEnd) -> CellRate {
        self.lines[usize::from(self.ends[0] != end)].rate
    }

    /// The rate of both directions; `None` if they differ.
    #[must_use]
    pub fn rate(&self) -> Option<CellRate> {
        let [one, other] = self.lines.map(|line| line.rate);
        (one == other).then_some(one)
    }

    /// The slower of the two rates.
    #[must_use]
    pub fn least_rate(&self) -> CellRate {
        let [one, other] = self.lines.map(|line| line.rate);
        // The time of many cells orders rates without rounding that matters.
        let time = |rate: CellRate| rate.time_of(1_000_000);
        if time(one) >= time(other) { one } else { other }
    }

    /// The number of the direction with this name: that of the end at which it starts.
    #[must_use]
    pub const fn side(&self, way: Way) -> usize {
        match way {
            Way::Up => self.user,
            Way::Down => 1 - self.user,
        }
    }
}

aerostat_wire::named! {
    /// A direction of a link.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Way {
        /// From the user side to the network side: from an end system to its switch; between two switches, or two end
        /// systems, from the one that is named second to the one that is named first.
        Up = "up",
        /// The other direction.
        Down = "down",
    }
}

/// Properties of one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineParams {
    /// Rate of cells.
    pub rate: CellRate,
    /// Time from the end of a cell at the sender to its end at the receiver: propagation, and the interleaver of a DSL
    /// line.
    pub delay: Duration,
    /// Random errors.
    pub errors: Errors,
}

/// Random errors of one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    /// Probability that a cell is lost, independent for each cell, 0..=1.
    pub loss: f64,
    /// Probability that a bit is inverted, independent for each bit, 0..=1.
    pub bits: f64,
    /// Probability that a block is lost whole, independent for each block, 0..=1.
    pub blocks: f64,
    /// Length of a block in time, above 0. Blocks follow each other from time 0 on.
    pub block: Duration,
}

impl Errors {
    /// Length of a block where a lab file gives none.
    pub const BLOCK: Duration = Duration::from_millis(16);
    /// No errors.
    pub const NONE: Self = Self {
        loss: 0.0,
        bits: 0.0,
        blocks: 0.0,
        block: Self::BLOCK,
    };

    /// True if errors are possible.
    #[must_use]
    pub fn any(&self) -> bool {
        self.loss > 0.0 || self.bits > 0.0 || self.blocks > 0.0
    }
}

/// New values of one direction of a link; `None` leaves a value as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LineChange {
    /// Rate of cells.
    pub rate: Option<CellRate>,
    /// Delay.
    pub delay: Option<Duration>,
    /// Probability that a cell is lost.
    pub loss: Option<f64>,
    /// Probability that a bit is inverted.
    pub bits: Option<f64>,
    /// Probability that a block is lost.
    pub blocks: Option<f64>,
    /// Length of a block.
    pub block: Option<Duration>,
}

impl From<LineParams> for LineChange {
    /// All values of a line.
    fn from(line: LineParams) -> Self {
        let LineParams {
            rate,
            delay,
            errors,
        } = line;
        Self {
            rate: Some(rate),
            delay: Some(delay),
            loss: Some(errors.loss),
            bits: Some(errors.bits),
            blocks: Some(errors.blocks),
            block: Some(errors.block),
        }
    }
}
