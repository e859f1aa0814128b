//! Addresses in NHRP packets: NBMA addresses, of the network below, and protocol addresses, of the layer above.

use crate::{AtmAddress, DecodeError, Reader};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An NBMA address or sub-address with its type bit; at most 63 octets.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NbmaAddress {
    octets: Vec<u8>,
    e164: bool,
}

impl NbmaAddress {
    /// No address.
    pub const NONE: Self = Self {
        octets: Vec::new(),
        e164: false,
    };
    /// From octets; `None` if there are more than 63.
    #[must_use]
    pub fn new(octets: &[u8], e164: bool) -> Option<Self> {
        (octets.len() <= 63).then(|| Self {
            octets: octets.to_vec(),
            e164,
        })
    }
    /// The octets, empty if there is no address.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }
    /// The address as an AESA, if it has 20 octets and is not E.164.
    #[must_use]
    pub fn atm(&self) -> Option<AtmAddress> {
        if self.e164 {
            return None;
        }
        self.octets.as_slice().try_into().ok().map(AtmAddress)
    }
    /// The address as IPv4, if it has 4 octets and is not E.164: that of the end of a tunnel.
    #[must_use]
    pub fn ip(&self) -> Option<Ipv4Addr> {
        if self.e164 {
            return None;
        }
        <[u8; 4]>::try_from(self.octets.as_slice())
            .ok()
            .map(Ipv4Addr::from)
    }
    /// The type/length octet: bit 6 is E.164, bits 5–0 the length.
    pub(super) fn type_length(&self) -> u8 {
        // The constructor allows at most 63 octets.
        self.octets.len() as u8 | if self.e164 { 0x40 } else { 0 }
    }
    pub(super) fn decode(
        r: &mut Reader<'_>,
        tl: u8,
        field: &'static str,
    ) -> Result<Self, DecodeError> {
        let octets = r.take(field, usize::from(tl & 0x3f))?.to_vec();
        Ok(Self {
            octets,
            e164: tl & 0x40 != 0,
        })
    }
}

impl From<AtmAddress> for NbmaAddress {
    fn from(address: AtmAddress) -> Self {
        Self {
            octets: address.0.to_vec(),
            e164: false,
        }
    }
}

pub(super) fn type_length(r: &mut Reader<'_>, field: &'static str) -> Result<u8, DecodeError> {
    let at = r.offset();
    let tl = r.u8(field)?;
    if tl & 0x80 != 0 {
        return Err(DecodeError::value(field, at, tl.into()));
    }
    Ok(tl)
}

/// A protocol address of at most 255 octets; an absent address is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProtocolAddress(Vec<u8>);

impl ProtocolAddress {
    /// No address.
    pub const NONE: Self = Self(Vec::new());
    /// From octets; `None` if there are more than 255.
    #[must_use]
    pub fn new(octets: &[u8]) -> Option<Self> {
        (octets.len() <= 255).then(|| Self(octets.to_vec()))
    }
    /// The octets, empty if there is no address.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        &self.0
    }
    /// The address as IPv4 if it has 4 octets, as IPv6 if it has 16.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        let six = || <[u8; 16]>::try_from(self.0.as_slice()).ok();
        self.ipv4()
            .map(IpAddr::V4)
            .or_else(|| six().map(IpAddr::from))
    }
    /// The address as IPv4, if it has 4 octets.
    #[must_use]
    pub fn ipv4(&self) -> Option<Ipv4Addr> {
        <[u8; 4]>::try_from(self.0.as_slice())
            .ok()
            .map(Ipv4Addr::from)
    }
    pub(super) fn length(&self) -> u8 {
        // The constructor allows at most 255 octets.
        self.0.len() as u8
    }
    pub(super) fn decode(
        r: &mut Reader<'_>,
        len: u8,
        field: &'static str,
    ) -> Result<Self, DecodeError> {
        Ok(Self(r.take(field, len.into())?.to_vec()))
    }
}

impl From<Ipv4Addr> for ProtocolAddress {
    fn from(address: Ipv4Addr) -> Self {
        Self(address.octets().to_vec())
    }
}

impl From<Ipv6Addr> for ProtocolAddress {
    fn from(address: Ipv6Addr) -> Self {
        Self(address.octets().to_vec())
    }
}

impl From<IpAddr> for ProtocolAddress {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => address.into(),
            IpAddr::V6(address) => address.into(),
        }
    }
}
