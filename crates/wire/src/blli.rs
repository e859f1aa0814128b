//! Broadband low layer information: what a call will carry, as contents of the B-LLI element.

use core::fmt;

/// Contents of a B-LLI information element (without its 4-octet header), at most 13 octets.
///
/// Contents are kept as octets: a called side compares octets to find the listener of a call. Source: UNI 3.1 §5.4.5.9.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Blli {
    len: u8,
    octets: [u8; Blli::MAX],
}

const fn lane(pid: u8) -> Blli {
    Blli {
        len: 9,
        octets: [
            0x6b, 0x40, 0x80, 0x80, 0x00, 0xa0, 0x3e, 0x00, pid, 0, 0, 0, 0,
        ],
    }
}

impl Blli {
    /// Most octets that the element may hold.
    pub const MAX: usize = 13;
    /// LLC/SNAP (ISO 8802-2): Classical IP, MPOA control and shortcuts, LANE LLC-multiplexed.
    pub const LLC: Self = Self {
        len: 1,
        octets: [0xcc, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    };
    /// IPv4 packets and nothing else, without LLC/SNAP (VC multiplexing): layer 3 is TR 9577 with IPI CC.
    /// Source: RFC 1755, B-LLI.
    pub const IP: Self = Self {
        len: 3,
        octets: [0x6b, 0x66, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    };
    /// LANE configure direct, control direct and control distribute (PID 0001).
    pub const LANE_CONTROL: Self = lane(1);
    /// LANE data direct, Ethernet/802.3 (PID 0002).
    pub const LANE_DATA_ETHERNET: Self = lane(2);
    /// LANE multicast send and multicast forward, Ethernet/802.3 (PID 0004).
    pub const LANE_MULTICAST_ETHERNET: Self = lane(4);

    /// From the contents of an element; `None` if they are empty or longer than [`Self::MAX`].
    #[must_use]
    pub fn from_octets(contents: &[u8]) -> Option<Self> {
        if contents.is_empty() || contents.len() > Self::MAX {
            return None;
        }
        let mut octets = [0; Self::MAX];
        octets.get_mut(..contents.len())?.copy_from_slice(contents);
        Some(Self {
            len: contents.len() as u8,
            octets,
        })
    }
    /// The contents of the element.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        self.octets.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl fmt::Debug for Blli {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::LLC => f.write_str("llc"),
            Self::IP => f.write_str("ip"),
            Self::LANE_CONTROL => f.write_str("lane-control"),
            Self::LANE_DATA_ETHERNET => f.write_str("lane-data"),
            Self::LANE_MULTICAST_ETHERNET => f.write_str("lane-multicast"),
            _ => self
                .octets()
                .iter()
                .try_for_each(|octet| write!(f, "{octet:02x}")),
        }
    }
}
