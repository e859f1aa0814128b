//! Load in per cent of a link: sizes of frames, the cells that they take, and the times at which they are sent.

use super::{Elan, LinkId};
use aerostat_node::atm::CellRate;
use aerostat_node::ip::apps::Departure;
use aerostat_node::rate::PacketRate;
use aerostat_proto::Duration;
use std::sync::Arc;

/// Octets of the header of an Ethernet frame and of its check sequence. Source: IEEE 802.3 §3.1.1.
const ETHERNET: usize = 14 + 4;
/// Octets of IPv4 and UDP header.
const IP_UDP: usize = 28;
/// Octets on an Ethernet beside the frame: preamble with its delimiter, and the gap. Source: IEEE 802.3 §4.4.2.
const PREAMBLE_AND_GAP: usize = 8 + 12;
/// Octets of the trailer of an AAL5 PDU. Source: ITU-T I.363.5.
const TRAILER: usize = 8;

/// The load that a flow makes.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Name of the traffic in the lab file: that of the flow, without the size of a ladder.
    pub name: String,
    /// Share of the link; `None` for a trace, which has times of its own.
    pub share: Option<Share>,
    /// Meaning of 100 %.
    pub of: LoadOf,
    /// Octets of an Ethernet frame with its check sequence; of a trace, those of its largest frame.
    pub frame: usize,
    /// When frames are sent.
    pub arrivals: Arrivals,
}

/// Meaning of 100 % of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadOf {
    /// The cells of a link.
    Cells {
        /// The link.
        link: LinkId,
        /// Its rate.
        rate: CellRate,
        /// Octets of the AAL5 PDU of a packet beside the IP packet: headers of the subnet of the sender, and trailer.
        overhead: usize,
    },
    /// The octets of an Ethernet, with preamble and gap.
    Ethernet {
        /// Bit/s.
        rate: u64,
        /// True if frames have a VLAN tag of 4 octets there.
        tagged: bool,
    },
}

/// A share of a link as a fraction, above 0 and at most 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Of `denominator`.
    pub numerator: u64,
    /// Not zero.
    pub denominator: u64,
}

/// When frames are sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// At equal intervals.
    Periodic,
    /// At the ticks of a coarse timer: see [`Ticks`](super::Ticks) of the flow.
    Ticks,
    /// At exponentially distributed intervals.
    Poisson,
    /// At equal intervals in periods with exponentially distributed lengths, with silence between them.
    OnOff {
        /// Mean length of a period.
        on: Duration,
        /// Mean length of silence.
        off: Duration,
    },
    /// At the times of a file.
    Trace(Trace),
}

/// The contents of a file with times and sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The file as the lab file names it.
    pub file: String,
    /// SHA-256 of the file, in hexadecimal.
    pub digest: String,
    /// Its packets, at least one; times never go back.
    pub list: Arc<[Departure]>,
}

impl Arrivals {
    /// The word in lab files and results.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Periodic => "periodic",
            Self::Ticks => "ticks",
            Self::Poisson => "poisson",
            Self::OnOff { .. } => "onoff",
            Self::Trace(_) => "trace",
        }
    }
}

/// Octets of UDP payload of an Ethernet frame with this many octets, at least [`least_frame`].
#[must_use]
pub const fn payload_of(frame: usize) -> usize {
    frame.saturating_sub(ETHERNET + IP_UDP)
}

/// Octets of the shortest frame: Ethernet's own minimum, which has room for the stamp of a datagram.
#[must_use]
pub const fn least_frame() -> usize {
    64
}

/// Octets of the largest frame that fits an MTU.
#[must_use]
pub const fn most_frame(mtu: u16) -> usize {
    mtu as usize + ETHERNET
}

impl LoadOf {
    /// The layer's name in lab files and results.
    #[must_use]
    pub const fn layer(self) -> &'static str {
        match self {
            Self::Cells { .. } => "cells",
            Self::Ethernet { .. } => "ethernet",
        }
    }

    /// Cells, or octets of the Ethernet, that a frame takes.
    #[must_use]
    pub const fn units(self, frame: usize) -> usize {
        match self {
            Self::Cells { overhead, .. } => (frame - ETHERNET + overhead).div_ceil(48),
            Self::Ethernet { tagged, .. } => frame + PREAMBLE_AND_GAP + if tagged { 4 } else { 0 },
        }
    }

    /// Frames of this many octets that fill this share of the link, exactly; `None` if these are too many or too few
    /// for a [`PacketRate`].
    #[must_use]
    pub fn frames(self, frame: usize, share: Share) -> Option<PacketRate> {
        let (rate, per_second, bits) = match self {
            Self::Cells { rate, .. } => (rate.numerator(), rate.denominator(), 1),
            Self::Ethernet { rate, .. } => (rate, 1, 8),
        };
        let packets = u128::from(rate) * u128::from(share.numerator);
        let time = (self.units(frame) as u128 * bits)
            .checked_mul(per_second.into())?
            .checked_mul(share.denominator.into())?
            .checked_mul(1_000_000_000)?;
        PacketRate::of_ratio(packets, time)?.scaled(1, 1)
    }
}

impl Share {
    /// The whole link.
    pub const ALL: Self = Self {
        numerator: 1,
        denominator: 1,
    };

    /// In per cent.
    #[must_use]
    pub fn per_cent(self) -> f64 {
        self.numerator as f64 * 100.0 / self.denominator as f64
    }
}

impl Elan {
    /// Octets of an AAL5 PDU beside its IP packet: on an emulated LAN the LE header (2) and the Ethernet header (14),
    /// on a Classical IP subnet LLC/SNAP (8) or nothing (VC multiplexing), on a line those of its encapsulation, and
    /// the trailer of AAL5 (8). LLC-multiplexed connections of LANE v2 and MPOA shortcuts have other headers.
    #[must_use]
    pub fn overhead(&self) -> usize {
        let header = match (&self.clip, &self.line) {
            (None, Some(line)) => return line.encapsulation.overhead(),
            (None, None) => 2 + 14,
            (Some(lis), _) if lis.mux => 0,
            (Some(_), _) => 8,
        };
        header + TRAILER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frame_rates_of_rfc_2544_on_an_ethernet_of_10_megabits() {
        let of = LoadOf::Ethernet {
            rate: 10_000_000,
            tagged: false,
        };
        // Source: RFC 2544, Appendix B: theoretical maximum frame rates.
        for (frame, rate) in [
            (64, 14880),
            (128, 8445),
            (256, 4528),
            (512, 2349),
            (768, 1586),
            (1024, 1197),
            (1280, 961),
            (1518, 812),
        ] {
            let exact = of.frames(frame, Share::ALL).expect("sane");
            assert_eq!((1e9 / exact.mean_gap()) as u64, rate, "{frame}");
        }
    }

    #[test]
    fn cells_of_frames() {
        let overhead = |overhead| LoadOf::Cells {
            link: LinkId(0),
            rate: CellRate::OC3,
            overhead,
        };
        // An IP packet of 1500 octets: 32 cells each; one of 46 octets: 2 cells each.
        for of in [24, 16, 8].map(overhead) {
            assert_eq!((of.units(1518), of.units(64)), (32, 2));
        }
        // 353 207.547 cells/s, 2 cells each, a third of that: no rounding after 10⁹ frames.
        let third = Share {
            numerator: 1,
            denominator: 3,
        };
        let rate = overhead(24).frames(64, third).expect("sane");
        let nanos = 1_000_000_000_u128 * 6 * 424 * 1_000_000_000 / 149_760_000;
        assert_eq!(rate.after(1_000_000_000).as_nanos(), nanos);
    }
}
