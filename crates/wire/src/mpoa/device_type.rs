//! The Device Type TLV, by which MPOA devices find each other through LANE's LE_ARP frames.

use crate::lane::{Tlv, TlvType};
use crate::{AtmAddress, DecodeError, MacAddr, Reader};

/// Value of the Device Type TLV.
///
/// ```text
/// 0      1       2                  22                    22 or 42
/// | type | n MACs | control address | MPC address (type 3) | n MPS MAC addresses |
/// ```
/// Source: af-mpoa-0114 §4.2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceType {
    /// 0: a device without MPOA. The octets behind the type are kept.
    NonMpoa {
        /// Everything behind the type octet.
        rest: Vec<u8>,
    },
    /// 1: an MPS.
    Mps {
        /// Its control address.
        control: AtmAddress,
        /// Its MAC addresses on this ELAN. If the list is empty, the MPS has the address that the LE_ARP resolved.
        macs: Vec<MacAddr>,
    },
    /// 2: an MPC.
    Mpc {
        /// Its control address.
        control: AtmAddress,
    },
    /// 3: an MPS and an MPC in one device.
    Both {
        /// Control address of the server.
        mps: AtmAddress,
        /// Control address of the client.
        mpc: AtmAddress,
        /// MAC addresses of the server, at least one.
        macs: Vec<MacAddr>,
    },
}

impl DeviceType {
    /// Most MAC addresses that fit a TLV of any type.
    pub const MAX_MACS: usize = 35;

    /// The device type in a list of TLVs; `None` if the list has no such TLV.
    #[must_use]
    pub fn find(tlvs: &[Tlv]) -> Option<Result<Self, DecodeError>> {
        let tlv = tlvs.iter().find(|tlv| tlv.kind == TlvType::DEVICE_TYPE)?;
        Some(Self::decode(&tlv.value))
    }
    /// Decodes a TLV's value. Octets behind the last field are ignored, since the standard gives minimum lengths.
    ///
    /// # Errors
    /// For an unknown type, a short value, an MPC with MAC addresses of an MPS, or a type 3 without them.
    pub fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(value);
        let kind = r.u8("device type")?;
        if kind == 0 {
            return Ok(Self::NonMpoa {
                rest: r.rest().to_vec(),
            });
        }
        let count = r.u8("number of MPS MAC addresses")?;
        let bad_count = Err(DecodeError::value(
            "number of MPS MAC addresses",
            1,
            count.into(),
        ));
        let control = AtmAddress(r.array("control ATM address")?);
        match kind {
            1 => Ok(Self::Mps {
                control,
                macs: macs(&mut r, count)?,
            }),
            2 if count > 0 => bad_count,
            2 => Ok(Self::Mpc { control }),
            3 if count == 0 => bad_count,
            3 => {
                let mpc = AtmAddress(r.array("MPC control ATM address")?);
                Ok(Self::Both {
                    mps: control,
                    mpc,
                    macs: macs(&mut r, count)?,
                })
            }
            _ => Err(DecodeError::value("device type", 0, kind.into())),
        }
    }
    /// The TLV.
    #[must_use]
    pub fn to_tlv(&self) -> Tlv {
        Tlv::new(TlvType::DEVICE_TYPE, self.encode())
    }
    /// The TLV's value. At most [`Self::MAX_MACS`] MAC addresses are written.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (kind, controls, macs): (u8, Vec<&AtmAddress>, &[MacAddr]) = match self {
            Self::NonMpoa { rest } => return [&[0], rest.as_slice()].concat(),
            Self::Mps { control, macs } => (1, vec![control], macs),
            Self::Mpc { control } => (2, vec![control], &[]),
            Self::Both { mps, mpc, macs } => (3, vec![mps, mpc], macs),
        };
        let macs = macs.get(..Self::MAX_MACS).unwrap_or(macs);
        let mut value = vec![kind, macs.len() as u8];
        for control in controls {
            value.extend(control.0);
        }
        for mac in macs {
            value.extend(mac.0);
        }
        value
    }
    /// Control address and MAC addresses of the MPS, if the device has an MPS. `resolved` is the MAC address that the
    /// LE_ARP with this TLV is about: that address always belongs to the MPS.
    #[must_use]
    pub fn mps(&self, resolved: Option<MacAddr>) -> Option<(AtmAddress, Vec<MacAddr>)> {
        let (control, macs) = match self {
            Self::Mps { control, macs } => (*control, macs),
            Self::Both { mps, macs, .. } => (*mps, macs),
            Self::NonMpoa { .. } | Self::Mpc { .. } => return None,
        };
        let mut all = macs.clone();
        all.extend(resolved.filter(|mac| !macs.contains(mac)));
        Some((control, all))
    }
    /// Control address of the MPC, if the device has an MPC.
    #[must_use]
    pub fn mpc(&self) -> Option<AtmAddress> {
        match self {
            Self::Mpc { control } => Some(*control),
            Self::Both { mpc, .. } => Some(*mpc),
            Self::NonMpoa { .. } | Self::Mps { .. } => None,
        }
    }
}

fn macs(r: &mut Reader<'_>, count: u8) -> Result<Vec<MacAddr>, DecodeError> {
    (0..count)
        .map(|_| r.array("MPS MAC address").map(MacAddr))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CONTROL: AtmAddress = AtmAddress([0x47; 20]);
    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 0x22]);

    #[test]
    fn round_trips() {
        let all = [
            DeviceType::NonMpoa { rest: vec![0; 21] },
            DeviceType::Mps {
                control: CONTROL,
                macs: vec![],
            },
            DeviceType::Mps {
                control: CONTROL,
                macs: vec![MAC, MacAddr([4; 6])],
            },
            DeviceType::Mpc { control: CONTROL },
            DeviceType::Both {
                mps: CONTROL,
                mpc: AtmAddress([0x39; 20]),
                macs: vec![MAC],
            },
        ];
        for (device, len) in all.into_iter().zip([22, 22, 34, 22, 48]) {
            let value = device.encode();
            assert_eq!(value.len(), len);
            assert_eq!(DeviceType::decode(&value), Ok(device.clone()));
            let tlvs = [Tlv::u32(TlvType::ELAN_ID, 1), device.to_tlv()];
            assert_eq!(DeviceType::find(&tlvs), Some(Ok(device)));
            assert_eq!(DeviceType::find(&tlvs[..1]), None);
        }
    }

    #[test]
    fn counts_are_checked() {
        let mut client = DeviceType::Mpc { control: CONTROL }.encode();
        client[1] = 1;
        client.extend(MAC.0);
        assert!(DeviceType::decode(&client).is_err());
        let mut both = DeviceType::Both {
            mps: CONTROL,
            mpc: CONTROL,
            macs: vec![MAC],
        }
        .encode();
        both[1] = 0;
        assert!(DeviceType::decode(&both).is_err());
        let mut server = DeviceType::Mps {
            control: CONTROL,
            macs: vec![],
        }
        .encode();
        server[1] = 1;
        assert!(DeviceType::decode(&server).is_err());
        server[0] = 4;
        assert!(DeviceType::decode(&server).is_err());
    }

    #[test]
    fn the_resolved_mac_is_the_servers() {
        let server = DeviceType::Mps {
            control: CONTROL,
            macs: vec![],
        };
        assert_eq!(server.mps(Some(MAC)), Some((CONTROL, vec![MAC])));
        assert_eq!(server.mps(None), Some((CONTROL, vec![])));
        assert_eq!(DeviceType::Mpc { control: CONTROL }.mps(Some(MAC)), None);
    }

    proptest! {
        #[test]
        fn never_panics(value in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(device) = DeviceType::decode(&value) {
                prop_assert!(value.starts_with(&device.encode()));
            }
        }
    }
}
