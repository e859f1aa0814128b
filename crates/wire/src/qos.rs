//! Traffic parameters and quality of service of a connection.

use core::time::Duration;

crate::named! {
    /// ATM service category. Source: Traffic Management 4.0 §2.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum ServiceCategory {
        /// Constant bit rate.
        Cbr = "cbr",
        /// Real-time variable bit rate.
        RtVbr = "rt-vbr",
        /// Non-real-time variable bit rate.
        NrtVbr = "nrt-vbr",
        /// Available bit rate.
        Abr = "abr",
        /// Guaranteed frame rate.
        Gfr = "gfr",
        /// Unspecified bit rate: best effort.
        Ubr = "ubr",
    }
}

impl ServiceCategory {
    /// True for CBR and VBR, which have their rates; false for best effort.
    #[must_use]
    pub const fn is_guaranteed(self) -> bool {
        matches!(self, Self::Cbr | Self::RtVbr | Self::NrtVbr)
    }
}

/// Traffic of one direction. Rates are in cells per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrafficParams {
    /// Service category; `None` when this direction carries nothing (`none` in `qos(7)`).
    pub category: Option<ServiceCategory>,
    /// Peak cell rate, cells/s; `None` is the line rate (`max` in `qos(7)`).
    pub max_pcr: Option<u32>,
    /// Peak rate of the cells with CLP 0, cells/s (CBR); 0 means that only [`Self::max_pcr`], the rate of all cells, is
    /// given.
    pub pcr0: u32,
    /// Minimum cell rate asked for, cells/s; 0 means no minimum. Of best effort: the minimum desired cell rate (MDCR).
    pub min_pcr: u32,
    /// Sustainable cell rate, cells/s (VBR); 0 means that no such rate is given.
    pub scr: u32,
    /// Maximum burst size, cells (VBR, GFR); 0 means that no size is given.
    pub mbs: u32,
    /// True if `scr` and `mbs` hold for cells with CLP 0 only (VBR.2, VBR.3), false if they hold for all cells (VBR.1).
    pub clp0: bool,
    /// True if a cell with CLP 0 may be tagged with CLP 1: where the contract has a rate of cells with CLP 0, instead
    /// of being discarded.
    pub tagging: bool,
    /// Cell delay variation tolerance, whole nanoseconds; 0 means the default.
    pub max_cdv: Duration,
    /// Tolerance of the second bucket, whole nanoseconds: of the sustainable rate besides the burst tolerance (VBR), or
    /// of the peak rate of cells with CLP 0 (CBR); 0 means that of [`Self::max_cdv`]. Source: Traffic Management 4.0
    /// §4.4 (from memory): each rate of a contract has a tolerance.
    pub second_cdv: Duration,
    /// Largest AAL5 SDU, octets; 0 means unspecified.
    pub max_sdu: u16,
    /// True if switches may discard whole AAL5 frames, false if the cells do not belong to such frames. `None`: the
    /// contract does not say. Then switches do it for best effort. Source: UNI 4.0 §2.1, Traffic Management 4.0 §5.8.
    pub frame_discard: Option<bool>,
}

impl TrafficParams {
    /// Best effort at line rate with SDUs of up to `max_sdu` octets.
    #[must_use]
    pub const fn ubr(max_sdu: u16) -> Self {
        Self {
            category: Some(ServiceCategory::Ubr),
            max_pcr: None,
            pcr0: 0,
            min_pcr: 0,
            scr: 0,
            mbs: 0,
            clp0: false,
            tagging: false,
            max_cdv: Duration::ZERO,
            second_cdv: Duration::ZERO,
            max_sdu,
            frame_discard: None,
        }
    }
    /// Constant bit rate of `pcr` cells/s.
    #[must_use]
    pub const fn cbr(pcr: u32, max_sdu: u16) -> Self {
        Self {
            category: Some(ServiceCategory::Cbr),
            max_pcr: Some(pcr),
            ..Self::ubr(max_sdu)
        }
    }
    /// The smaller tolerance of the two that are given; zero if the contract gives no tolerance. Who keeps it conforms
    /// to both buckets, if the tolerance that is not given is not smaller.
    #[must_use]
    pub fn tightest_cdv(&self) -> Duration {
        match (self.max_cdv.is_zero(), self.second_cdv.is_zero()) {
            (_, true) => self.max_cdv,
            (true, false) => self.second_cdv,
            (false, false) => self.max_cdv.min(self.second_cdv),
        }
    }
    /// True if switches discard whole AAL5 frames: as [`Self::frame_discard`] says, or else for all categories except
    /// CBR and VBR.
    #[must_use]
    pub fn discards_frames(&self) -> bool {
        use ServiceCategory::{Cbr, NrtVbr, RtVbr};
        self.frame_discard
            .unwrap_or(!matches!(self.category, Some(Cbr | RtVbr | NrtVbr)))
    }
    /// A direction that carries nothing.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            category: None,
            ..Self::ubr(0)
        }
    }
}

/// Units that a program gives to a connection and takes from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AalType {
    /// Single cells, in the form of [`crate::aal0`].
    Aal0,
    /// SDUs of AAL5.
    #[default]
    Aal5,
}

/// Quality of service with the AAL of the connection, as a program of a permanent connection gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionQos {
    /// The AAL.
    pub aal: AalType,
    /// The contract.
    pub qos: Qos,
}

impl From<Qos> for ConnectionQos {
    /// A connection of AAL5.
    fn from(qos: Qos) -> Self {
        Self {
            aal: AalType::Aal5,
            qos,
        }
    }
}

/// Quality of service of a connection, seen from one end: `tx` is what this end sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Qos {
    /// Traffic that this end sends.
    pub tx: TrafficParams,
    /// Traffic that this end receives.
    pub rx: TrafficParams,
}

impl Qos {
    /// Best effort both ways.
    #[must_use]
    pub const fn ubr(max_sdu: u16) -> Self {
        Self {
            tx: TrafficParams::ubr(max_sdu),
            rx: TrafficParams::ubr(max_sdu),
        }
    }
    /// Best effort from the root of a point-to-multipoint call to its leaves, no traffic back.
    #[must_use]
    pub const fn ubr_multipoint(max_sdu: u16) -> Self {
        Self {
            tx: TrafficParams::ubr(max_sdu),
            rx: TrafficParams::none(),
        }
    }
    /// Constant bit rate both ways.
    #[must_use]
    pub const fn cbr(pcr: u32, max_sdu: u16) -> Self {
        Self {
            tx: TrafficParams::cbr(pcr, max_sdu),
            rx: TrafficParams::cbr(pcr, max_sdu),
        }
    }
    /// The same connection seen from the other end.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self {
            tx: self.rx,
            rx: self.tx,
        }
    }
}
