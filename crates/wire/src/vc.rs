//! The label of a virtual connection on one link.

use core::cmp::Ordering;
use core::fmt;

/// VPI and VCI on one link. VPI 0..=255 at a UNI, 0..=4095 at an NNI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Vc {
    /// Virtual path identifier.
    pub vpi: u16,
    /// Virtual channel identifier.
    pub vci: u16,
}

impl Vc {
    /// Point-to-point signalling: VPI 0, VCI 5.
    pub const SIGNALLING: Self = Self { vpi: 0, vci: 5 };
    /// ILMI: VPI 0, VCI 16.
    pub const ILMI: Self = Self { vpi: 0, vci: 16 };
    /// LECS configure-direct PVC: VPI 0, VCI 17.
    pub const LECS: Self = Self { vpi: 0, vci: 17 };
    /// First VCI that is free for users. Source: UNI 3.1 §3.2.2.
    pub const FIRST_USER_VCI: u16 = 32;

    /// A label from its two parts.
    #[must_use]
    pub const fn new(vpi: u16, vci: u16) -> Self {
        Self { vpi, vci }
    }
}

impl Vc {
    const fn number(self) -> u32 {
        (self.vpi as u32) << 16 | self.vci as u32
    }
}

impl PartialOrd for Vc {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Vc {
    /// By VPI, then by VCI, in one comparison: labels are keys of many maps.
    fn cmp(&self, other: &Self) -> Ordering {
        self.number().cmp(&other.number())
    }
}

impl fmt::Display for Vc {
    /// `vpi.vci`, as linux-atm prints it behind the interface number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.vpi, self.vci)
    }
}
