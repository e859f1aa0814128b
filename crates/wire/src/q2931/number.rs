//! Party numbers and subaddresses.

use super::Contents;
use crate::{AtmAddress, DecodeError, Reader};

/// Called, calling or connected party number. Source: Q.2931 §4.5.11, §4.5.13; UNI 3.1 §5.4.5.11–13.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// Type of number: 0 unknown (AESA), 1 international (E.164), 2 national, 3 network, 4 subscriber.
    pub ton: u8,
    /// Numbering plan: 1 E.164, 2 AESA, 9 private.
    pub plan: u8,
    /// Presentation and screening, of calling and connected numbers: 0x80 ‖ presentation ‖ screening.
    pub presentation: Option<u8>,
    /// The number: 20 octets of an AESA, or IA5 digits.
    pub digits: Contents,
}

/// Screening indicator of a calling number. Source: Q.2931 §4.5.13, Q.951.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Screening {
    /// User provided, not screened.
    NotScreened = 0,
    /// User provided, verified and passed.
    Passed = 1,
    /// User provided, verified and failed.
    Failed = 2,
    /// Network provided.
    Network = 3,
}

impl Number {
    /// An AESA as a called number.
    #[must_use]
    pub fn called(address: AtmAddress) -> Self {
        Self {
            ton: 0,
            plan: 2,
            presentation: None,
            digits: Contents::from_slice(&address.0),
        }
    }
    /// An AESA as a calling number: presentation allowed, user provided, not screened.
    #[must_use]
    pub fn calling(address: AtmAddress) -> Self {
        Self {
            presentation: Some(0x80),
            ..Self::called(address)
        }
    }
    /// The same number with the network's screening result; the presentation indicator is unchanged.
    #[must_use]
    pub fn screened(self, screening: Screening) -> Self {
        let presentation = self.presentation.unwrap_or(0x80) & 0x60;
        Self {
            presentation: Some(0x80 | presentation | screening as u8),
            ..self
        }
    }
    /// The screening result; `None` if the octet is absent.
    #[must_use]
    pub fn screening(&self) -> Option<Screening> {
        Some(match self.presentation? & 3 {
            0 => Screening::NotScreened,
            1 => Screening::Passed,
            2 => Screening::Failed,
            _ => Screening::Network,
        })
    }
    /// The address, if it is an AESA.
    #[must_use]
    pub fn address(&self) -> Option<AtmAddress> {
        if self.plan != 2 {
            return None;
        }
        self.digits.as_slice().try_into().ok().map(AtmAddress)
    }

    pub(super) fn decode(r: &mut Reader<'_>, presentation: bool) -> Result<Self, DecodeError> {
        let first = r.u8("type of number and plan")?;
        let extended = first & 0x80 == 0;
        let presentation = match (extended, presentation) {
            (false, _) => None,
            (true, true) => Some(r.u8("presentation and screening")?),
            (true, false) => {
                return Err(DecodeError::value(
                    "type of number and plan",
                    0,
                    first.into(),
                ));
            }
        };
        let number = Self {
            ton: first >> 4 & 7,
            plan: first & 15,
            presentation,
            digits: Contents::from_slice(r.rest()),
        };
        number.check()?;
        Ok(number)
    }
    fn check(&self) -> Result<(), DecodeError> {
        let len = self.digits.len();
        let good = match self.plan {
            2 => len == 20,
            1 => (1..=15).contains(&len) && self.digits.iter().all(|d| *d < 0x80),
            _ => true,
        };
        if good {
            return Ok(());
        }
        Err(DecodeError::value("number", 1, len as u32))
    }
    pub(super) fn encode(&self) -> Contents {
        let first = (self.ton & 7) << 4 | self.plan & 15;
        let mut out = Contents::new();
        match self.presentation {
            Some(octet) => out.extend_from_slice(&[first, octet]),
            None => out.push(first | 0x80),
        }
        out.extend_from_slice(&self.digits);
        out
    }
}

/// Called, calling or connected party subaddress. Source: Q.2931 §4.5.12, §4.5.14.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subaddress {
    /// First octet: 0x80 ‖ type (0 NSAP, 1 AESA, 2 user) ‖ odd/even.
    pub kind: u8,
    /// At most 20 octets.
    pub octets: Vec<u8>,
}

impl Subaddress {
    /// The address, if it is an NSAP or AESA of 20 octets.
    #[must_use]
    pub fn address(&self) -> Option<AtmAddress> {
        if self.kind >> 4 & 7 > 1 {
            return None;
        }
        self.octets.as_slice().try_into().ok().map(AtmAddress)
    }
}
