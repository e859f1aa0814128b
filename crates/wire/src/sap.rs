//! The service access point of a call: which protocol and which application the call is for.

use core::fmt;

use crate::Blli;
use crate::q2931::Ie;

/// Broadband high layer information: contents of the B-HLI element. Source: Q.2931 §4.5.8, UNI 3.1 §5.4.5.8.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bhli {
    kind: u8,
    len: u8,
    info: [u8; Bhli::MAX],
}

impl Bhli {
    /// Most octets of information.
    pub const MAX: usize = 8;
    /// Type "ISO": up to 8 octets.
    pub const ISO: u8 = 0;
    /// Type "user specific": up to 8 octets.
    pub const USER: u8 = 1;
    /// Type "high layer profile" (UNI 3.0 only): 4 octets.
    pub const PROFILE: u8 = 2;
    /// Type "vendor specific": OUI and 4 octets.
    pub const VENDOR: u8 = 3;

    /// The B-HLI of linux-atm's `ttcp_atm` (recorded).
    pub const TTCP: Self = Self {
        kind: Self::VENDOR,
        len: 7,
        info: [0x00, 0x60, 0xd7, 0x01, 0x00, 0x00, 0x03, 0],
    };
    /// The B-HLI of linux-atm's `svc_send` and `svc_recv` (recorded).
    pub const SVC: Self = Self {
        kind: Self::USER,
        len: 8,
        info: *b"FORE_ATM",
    };

    /// Calls of Classical IP for one TCP connection or UDP session: such a connection carries no other packets. A
    /// choice of this project.
    pub const IP_SESSION: Self = Self {
        kind: Self::USER,
        len: 8,
        info: *b"IP-SESSN",
    };

    /// From type (7 bits) and information; `None` if one of them does not fit into the element.
    #[must_use]
    pub const fn new(kind: u8, info: &[u8]) -> Option<Self> {
        if kind & 0x80 != 0 || info.len() > Self::MAX {
            return None;
        }
        let mut octets = [0; Self::MAX];
        let (copied, _) = octets.split_at_mut(info.len());
        copied.copy_from_slice(info);
        Some(Self {
            kind,
            len: info.len() as u8,
            info: octets,
        })
    }
    /// Type of the information, 7 bits.
    #[must_use]
    pub const fn kind(&self) -> u8 {
        self.kind
    }
    /// The information.
    #[must_use]
    pub fn info(&self) -> &[u8] {
        self.info.get(..usize::from(self.len)).unwrap_or_default()
    }
    /// As an information element.
    #[must_use]
    pub fn ie(&self) -> Ie {
        Ie::Bhli {
            kind: self.kind,
            info: self.info().to_vec(),
        }
    }
}

impl fmt::Debug for Bhli {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind;
        match kind {
            Self::ISO => f.write_str("iso:")?,
            Self::USER => f.write_str("user:")?,
            Self::PROFILE => f.write_str("profile:")?,
            Self::VENDOR => f.write_str("vendor:")?,
            _ => write!(f, "type{kind}:")?,
        }
        self.info()
            .iter()
            .try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

/// The description of the called user: low and high layer information, each optional.
///
/// A LANE, MPOA or Classical IP connection has a B-LLI alone: [`Sap`] repeats the constants of [`Blli`], and `from`
/// makes a [`Sap`] of a B-LLI.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sap {
    /// Low layer information.
    pub blli: Option<Blli>,
    /// High layer information.
    pub bhli: Option<Bhli>,
}

const fn low(blli: Blli) -> Sap {
    Sap {
        blli: Some(blli),
        bhli: None,
    }
}

impl Sap {
    /// No information: a caller sends neither element, a listener accepts any call.
    pub const ANY: Self = Self {
        blli: None,
        bhli: None,
    };
    /// [`Blli::LLC`] alone.
    pub const LLC: Self = low(Blli::LLC);
    /// [`Blli::IP`] alone.
    pub const IP: Self = low(Blli::IP);
    /// [`Blli::LANE_CONTROL`] alone.
    pub const LANE_CONTROL: Self = low(Blli::LANE_CONTROL);
    /// [`Blli::LANE_DATA_ETHERNET`] alone.
    pub const LANE_DATA_ETHERNET: Self = low(Blli::LANE_DATA_ETHERNET);
    /// [`Blli::LANE_MULTICAST_ETHERNET`] alone.
    pub const LANE_MULTICAST_ETHERNET: Self = low(Blli::LANE_MULTICAST_ETHERNET);

    /// A B-HLI alone, as native applications have it.
    #[must_use]
    pub const fn high(bhli: Bhli) -> Self {
        Self {
            blli: None,
            bhli: Some(bhli),
        }
    }
    /// True if a listener with this description accepts a call with the description `call`. Every element that the
    /// listener gives must be equal in the call; an element that it leaves open may have any value. Source: linux-atm
    /// `sap_equal()`.
    #[must_use]
    pub fn accepts(&self, call: &Self) -> bool {
        (self.blli.is_none() || self.blli == call.blli)
            && (self.bhli.is_none() || self.bhli == call.bhli)
    }
}

impl From<Blli> for Sap {
    fn from(blli: Blli) -> Self {
        low(blli)
    }
}

impl From<Bhli> for Sap {
    fn from(bhli: Bhli) -> Self {
        Self::high(bhli)
    }
}

impl fmt::Debug for Sap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.blli, self.bhli) {
            (None, None) => f.write_str("any"),
            (Some(blli), None) => write!(f, "{blli:?}"),
            (None, Some(bhli)) => write!(f, "{bhli:?}"),
            (Some(blli), Some(bhli)) => write!(f, "{blli:?}+{bhli:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::q2931::{Element, Instruction, ie};

    const TTCP: &[u8] = &[0x00, 0x60, 0xd7, 0x01, 0x00, 0x00, 0x03];

    /// `5d 80 0008 83 0060d7 01000003` and `5d 80 0009 81 "FORE_ATM"` are what ttcp_atm and svc_send of
    /// linux-atm 2.5.1 send (recorded).
    #[test]
    fn recorded_elements() {
        let vendor = Bhli::new(Bhli::VENDOR, TTCP).unwrap();
        let element = vendor.ie().encode();
        assert_eq!(
            element.contents[..],
            [0x83, 0x00, 0x60, 0xd7, 0x01, 0x00, 0x00, 0x03]
        );
        assert_eq!(format!("{vendor:?}"), "vendor:0060d701000003");
        let user = Element {
            id: 0x5d,
            instruction: Instruction::ITU,
            contents: b"\x81FORE_ATM"[..].into(),
        };
        let Ok(Ie::Bhli { kind, info }) = ie::decode(&user) else {
            panic!("not a B-HLI");
        };
        let user = Bhli::new(kind, &info).unwrap();
        assert_eq!((user.kind(), user.info()), (Bhli::USER, &b"FORE_ATM"[..]));
        assert_ne!(user, vendor);
    }

    #[test]
    fn constants_of_linux_atm() {
        assert_eq!(Bhli::new(Bhli::VENDOR, TTCP), Some(Bhli::TTCP));
        assert_eq!(Bhli::new(Bhli::USER, b"FORE_ATM"), Some(Bhli::SVC));
    }

    #[test]
    fn bounds() {
        assert_eq!(Bhli::new(1, &[0; 9]), None);
        assert_eq!(Bhli::new(0x81, &[]), None);
        assert_eq!(Bhli::new(0, &[]).unwrap().info(), []);
        // Trailing zeros are significant.
        assert_ne!(Bhli::new(1, &[0]), Bhli::new(1, &[0, 0]));
    }

    #[test]
    fn what_a_listener_takes() {
        let bhli = Bhli::new(Bhli::VENDOR, TTCP).unwrap();
        let other = Bhli::new(Bhli::USER, b"FORE_ATM").unwrap();
        let both = Sap {
            blli: Some(Blli::LLC),
            bhli: Some(bhli),
        };
        for call in [Sap::ANY, Sap::LLC, bhli.into(), both] {
            assert!(Sap::ANY.accepts(&call));
        }
        assert!(Sap::LLC.accepts(&both));
        assert!(Sap::high(bhli).accepts(&both));
        assert!(!Sap::high(other).accepts(&both));
        assert!(!both.accepts(&Sap::LLC));
        assert!(!both.accepts(&bhli.into()));
        assert!(!Sap::LLC.accepts(&Sap::ANY));
        assert!(!Sap::LANE_CONTROL.accepts(&Sap::LLC));
        assert_eq!(format!("{both:?}"), "llc+vendor:0060d701000003");
    }
}
