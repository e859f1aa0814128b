//! Bearer capability, connection identifier, QoS parameter, cause: the small typed elements.

use super::Contents;
use crate::{DecodeError, Reader, Vc};
use smallvec::smallvec;

/// Broadband bearer capability. Source: Q.2931 §4.5.7; UNI 3.1 §5.4.5.7; UNI 4.0 §2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bearer {
    /// 1 BCOB-A, 3 BCOB-C, 0x10 BCOB-X, 0x18 transparent VP.
    pub class: u8,
    /// Octet 5a without its extension bit: ATM transfer capability (4.0), or traffic type and timing (3.x).
    pub atc: Option<u8>,
    /// Susceptibility to clipping: 0 no, 1 yes.
    pub clipping: u8,
    /// Point-to-multipoint.
    pub multipoint: bool,
}

impl Bearer {
    /// BCOB-A: constant rate, end-to-end timing.
    pub const A: u8 = 1;
    /// BCOB-C: variable rate.
    pub const C: u8 = 3;
    /// BCOB-X: cell relay; octet 5a says more.
    pub const X: u8 = 0x10;
    /// Transparent VP.
    pub const VP: u8 = 0x18;

    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let first = r.u8("bearer class")?;
        let class = first & 0x1f;
        if !matches!(class, Self::A | Self::C | Self::X | Self::VP) {
            return Err(DecodeError::value("bearer class", 0, class.into()));
        }
        let atc = if first & 0x80 == 0 {
            Some(r.u8("transfer capability")? & 0x7f)
        } else {
            None
        };
        let at = r.offset();
        let last = r.u8("user plane configuration")?;
        if last & 3 > 1 {
            return Err(DecodeError::value(
                "user plane configuration",
                at,
                last.into(),
            ));
        }
        r.finish("bearer capability")?;
        Ok(Self {
            class,
            atc,
            clipping: last >> 5 & 3,
            multipoint: last & 3 == 1,
        })
    }
    pub(super) fn encode(self) -> Contents {
        let mut out = Contents::new();
        match self.atc {
            Some(atc) => out.extend_from_slice(&[self.class, atc | 0x80]),
            None => out.push(self.class | 0x80),
        }
        out.push(0x80 | (self.clipping & 3) << 5 | u8::from(self.multipoint));
        out
    }
}

/// Connection identifier. Source: Q.2931 §4.5.16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionId {
    /// False for VP-associated signalling (the VPCI is that of the signalling channel).
    pub explicit: bool,
    /// 0 exclusive VPCI and VCI; 1 exclusive VPCI, any VCI; 4 exclusive VPCI, no VCI.
    pub preference: u8,
    /// VPCI; on a simple UNI the VPI.
    pub vpci: u16,
    /// VCI; without meaning if `preference` is not 0.
    pub vci: u16,
}

impl ConnectionId {
    /// The connection identifier that names exactly this channel.
    #[must_use]
    pub const fn exact(vc: Vc) -> Self {
        Self {
            explicit: true,
            preference: 0,
            vpci: vc.vpi,
            vci: vc.vci,
        }
    }
    /// The channel, if VPI and VCI are both given.
    #[must_use]
    pub const fn vc(self) -> Option<Vc> {
        if self.preference == 0 {
            Some(Vc::new(self.vpci, self.vci))
        } else {
            None
        }
    }

    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let first = r.u8("association and preference")?;
        let bad = DecodeError::value("association and preference", 0, first.into());
        let explicit = match first >> 3 & 3 {
            0 => false,
            1 => true,
            _ => return Err(bad),
        };
        let preference = first & 7;
        if !matches!(preference, 0 | 1 | 4) {
            return Err(bad);
        }
        let id = Self {
            explicit,
            preference,
            vpci: r.u16("VPCI")?,
            vci: r.u16("VCI")?,
        };
        r.finish("connection identifier")?;
        Ok(id)
    }
    pub(super) fn encode(self) -> Contents {
        let mut out: Contents =
            smallvec![0x80 | u8::from(self.explicit) << 3 | self.preference & 7];
        out.extend_from_slice(&self.vpci.to_be_bytes());
        out.extend_from_slice(&self.vci.to_be_bytes());
        out
    }
}

/// QoS parameter. Source: Q.2931 §4.5.18; UNI 3.1 §5.4.5.18.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QosClass {
    /// Coded by the ATM Forum (coding standard 3). UNI 3.0 always uses this coding, and so do classes 1..=4 in every
    /// version.
    pub forum: bool,
    /// Forward: 0 unspecified, 1 circuit, 2 variable rate video, 3 connection-oriented, 4 connectionless.
    pub forward: u8,
    /// Backward.
    pub backward: u8,
}

/// Cause. Source: Q.2931 §4.5.15, Q.2610.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CauseIe {
    /// Coding standard in the element's second octet: 0 ITU, 3 ATM Forum.
    pub coding: u8,
    /// 0 user, 1 private network local, 2 public local, 3 transit, 4 public remote, 5 private remote.
    pub location: u8,
    /// 1..=127.
    pub value: u8,
    /// Diagnostics as received. Malformed diagnostics are ignored and are not an error.
    pub diagnostics: Vec<u8>,
}

impl CauseIe {
    /// A cause without diagnostics.
    #[must_use]
    pub const fn new(location: u8, value: u8) -> Self {
        Self {
            coding: 0,
            location,
            value,
            diagnostics: Vec::new(),
        }
    }
    /// The same with diagnostics.
    #[must_use]
    pub fn with(mut self, diagnostics: &[u8]) -> Self {
        self.diagnostics = diagnostics.to_vec();
        self
    }

    pub(super) fn decode(r: &mut Reader<'_>, coding: u8) -> Result<Self, DecodeError> {
        let location = r.u8("location")?;
        if location & 0x80 == 0 {
            return Err(DecodeError::value("location", 0, location.into()));
        }
        let value = r.u8("cause value")?;
        if value & 0x80 == 0 || value == 0x80 {
            return Err(DecodeError::value("cause value", 1, value.into()));
        }
        Ok(Self {
            coding,
            location: location & 15,
            value: value & 0x7f,
            diagnostics: r.rest().to_vec(),
        })
    }
    pub(super) fn encode(&self) -> Contents {
        let mut out: Contents = smallvec![0x80 | self.location & 15, 0x80 | self.value & 0x7f];
        out.extend_from_slice(&self.diagnostics);
        out
    }
}
