//! The MPOA Device Type TLV: how MPCs and MPSs of an ELAN find each other.

use super::{Tlv, TlvType};
use crate::{AtmAddress, DecodeError, MacAddr, Reader};

/// Value of the Device Type TLV (type 00-A0-3E-2A).
///
/// ```text
/// 0      1       2                  22                    22 or 42
/// | type | n MACs | control address | MPC address (type 3) | n MPS MAC addresses |
/// ```
/// Source: af-mpoa-0114 §4.2.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum DeviceType {
    /// Takes no part in MPOA (type 0).
    #[default]
    NonMpoa,
    /// An MPS (type 1).
    Mps {
        /// Control ATM address.
        control: AtmAddress,
        /// MAC addresses of the MPS; none means the one that the LE_ARP resolves.
        macs: Vec<MacAddr>,
    },
    /// An MPC (type 2).
    Mpc {
        /// Control ATM address.
        control: AtmAddress,
    },
    /// Both (type 3).
    MpsAndMpc {
        /// Control ATM address of the MPS.
        mps: AtmAddress,
        /// Control ATM address of the MPC.
        mpc: AtmAddress,
        /// MAC addresses of the MPS, at least one.
        macs: Vec<MacAddr>,
    },
}

impl DeviceType {
    /// Most MAC addresses that fit a TLV of any type.
    pub const MAX_MACS: usize = 35;

    /// Decodes the value of a TLV. Octets beyond what the type needs are ignored, as the standard allows.
    ///
    /// # Errors
    /// `Short`, or `Value` of an unknown type.
    pub fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(value);
        let kind = reader.u8("device type")?;
        if kind == 0 {
            return Ok(Self::NonMpoa);
        }
        if kind > 3 {
            return Err(DecodeError::value("device type", 0, kind.into()));
        }
        let count = reader.u8("number of MPS MAC addresses")?;
        let control = AtmAddress(reader.array("control ATM address")?);
        if kind == 2 {
            return Ok(Self::Mpc { control });
        }
        let mpc = if kind == 3 {
            Some(AtmAddress(reader.array("MPC control ATM address")?))
        } else {
            None
        };
        let macs = (0..count)
            .map(|_| reader.array("MPS MAC address").map(MacAddr))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(match mpc {
            Some(mpc) => Self::MpsAndMpc {
                mps: control,
                mpc,
                macs,
            },
            None => Self::Mps { control, macs },
        })
    }
    /// The device type in a list of TLVs; `None` if absent or not decodable.
    #[must_use]
    pub fn find(tlvs: &[Tlv]) -> Option<Self> {
        let tlv = tlvs.iter().find(|tlv| tlv.kind == TlvType::DEVICE_TYPE)?;
        Self::decode(&tlv.value).ok()
    }
    /// The TLV. At most [`Self::MAX_MACS`] MAC addresses are written.
    #[must_use]
    pub fn to_tlv(&self) -> Tlv {
        let none: &[MacAddr] = &[];
        let (kind, control, mpc, macs) = match self {
            Self::NonMpoa => (0, AtmAddress::ZERO, None, none),
            Self::Mps { control, macs } => (1, *control, None, macs.as_slice()),
            Self::Mpc { control } => (2, *control, None, none),
            Self::MpsAndMpc { mps, mpc, macs } => (3, *mps, Some(*mpc), macs.as_slice()),
        };
        let macs = macs.get(..Self::MAX_MACS).unwrap_or(macs);
        let mut value = vec![kind, macs.len() as u8];
        value.extend_from_slice(&control.0);
        if let Some(mpc) = mpc {
            value.extend_from_slice(&mpc.0);
        }
        for mac in macs {
            value.extend_from_slice(&mac.0);
        }
        Tlv::new(TlvType::DEVICE_TYPE, value)
    }
    /// Control address of the MPS, if the device is one.
    #[must_use]
    pub const fn mps(&self) -> Option<AtmAddress> {
        match self {
            Self::Mps { control, .. } => Some(*control),
            Self::MpsAndMpc { mps, .. } => Some(*mps),
            Self::NonMpoa | Self::Mpc { .. } => None,
        }
    }
    /// Control address of the MPC, if the device is one.
    #[must_use]
    pub const fn mpc(&self) -> Option<AtmAddress> {
        match self {
            Self::Mpc { control } => Some(*control),
            Self::MpsAndMpc { mpc, .. } => Some(*mpc),
            Self::NonMpoa | Self::Mps { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_round_trips() {
        let a = AtmAddress([1; 20]);
        let b = AtmAddress([2; 20]);
        let macs = vec![MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2])];
        for (device, len) in [
            (DeviceType::NonMpoa, 22),
            (DeviceType::Mpc { control: a }, 22),
            (
                DeviceType::Mps {
                    control: a,
                    macs: macs.clone(),
                },
                34,
            ),
            (
                DeviceType::MpsAndMpc {
                    mps: a,
                    mpc: b,
                    macs,
                },
                54,
            ),
        ] {
            let tlv = device.to_tlv();
            assert_eq!(tlv.value.len(), len);
            assert_eq!(DeviceType::decode(&tlv.value), Ok(device.clone()));
            assert_eq!(
                DeviceType::find(core::slice::from_ref(&tlv)),
                Some(device.clone())
            );
            if device != DeviceType::NonMpoa {
                assert!(DeviceType::decode(&tlv.value[..len - 1]).is_err());
            }
        }
        assert!(DeviceType::decode(&[4; 22]).is_err());
        assert!(DeviceType::decode(&[]).is_err());
    }
}
