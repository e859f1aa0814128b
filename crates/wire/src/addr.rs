//! ATM end system addresses (AESA) and MAC addresses.
//!
//! Source: UNI 3.1 §5.1.3.

use crate::counted;
use core::fmt;
use core::str::FromStr;

/// A 20-octet ATM end system address: 13-octet network prefix, 6-octet ESI, 1-octet selector.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct AtmAddress(pub [u8; 20]);

impl AtmAddress {
    /// The all-zero address, which stands for an absent address in LANE and MPOA fields.
    pub const ZERO: Self = Self([0; 20]);
    /// Well-known address of the LECS. Source: LANE 1.0 §5.2.
    pub const LECS: Self = Self([
        0x47, 0, 0x79, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xa0, 0x3e, 0, 0, 1, 0,
    ]);
    /// The anycast form of [`Self::LECS`] that LANE v2 clients try first.
    pub const LECS_ANYCAST: Self = Self([
        0xc5, 0, 0x79, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xa0, 0x3e, 0, 0, 1, 0,
    ]);

    /// Builds an address from its three parts.
    #[must_use]
    pub fn from_parts(prefix: [u8; 13], esi: MacAddr, selector: u8) -> Self {
        let mut octets = [0; 20];
        octets[..13].copy_from_slice(&prefix);
        octets[13..19].copy_from_slice(&esi.0);
        octets[19] = selector;
        Self(octets)
    }
    /// The network prefix (13 octets), assigned by the network.
    #[must_use]
    pub fn prefix(&self) -> [u8; 13] {
        let mut prefix = [0; 13];
        prefix.copy_from_slice(&self.0[..13]);
        prefix
    }
    /// The end system identifier (6 octets).
    #[must_use]
    pub fn esi(&self) -> MacAddr {
        let mut esi = [0; 6];
        esi.copy_from_slice(&self.0[13..19]);
        MacAddr(esi)
    }
    /// The selector: opaque to the network.
    #[must_use]
    pub const fn selector(&self) -> u8 {
        self.0[19]
    }
    /// The same address with another selector.
    #[must_use]
    pub const fn with_selector(mut self, selector: u8) -> Self {
        self.0[19] = selector;
        self
    }
    /// The same end system under another network prefix.
    #[must_use]
    pub fn with_prefix(self, prefix: [u8; 13]) -> Self {
        Self::from_parts(prefix, self.esi(), self.selector())
    }
    /// True if the first 19 octets agree: the same end system, whatever the selector.
    #[must_use]
    pub fn same_end_system(&self, other: &Self) -> bool {
        self.0[..19] == other.0[..19]
    }
    /// Leading octets of an address, at most 20, spelled like those of a whole address.
    #[must_use]
    pub fn leading(prefix: &[u8]) -> String {
        let mut octets = [0; 20];
        for (to, from) in octets.iter_mut().zip(prefix) {
            *to = *from;
        }
        let mut whole = Self(octets).to_string();
        let digits = whole.char_indices().filter(|(_, c)| *c != '.');
        let last = digits.map(|(at, _)| at).take(2 * prefix.len()).last();
        whole.truncate(last.map_or(0, |last| last + 1));
        whole
    }
    /// True for [`Self::ZERO`].
    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }
}

/// 40 hex digits, without separators.
impl fmt::LowerHex for AtmAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

impl fmt::Display for AtmAddress {
    /// `47.0005.80.ffe100.0000.f21a.0102.0020480a1b2c.00`, as linux-atm prints an NSAP.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        const PARTS: [usize; 9] = [1, 2, 1, 3, 2, 2, 2, 6, 1];
        // Each event about a call has an address in its text, so the text is made in one piece.
        let mut text = [b'.'; 2 * 20 + PARTS.len() - 1];
        let (mut octets, mut at) = (self.0.iter(), 0);
        for length in PARTS {
            for octet in octets.by_ref().take(length) {
                text[at] = DIGITS[usize::from(octet >> 4)];
                text[at + 1] = DIGITS[usize::from(octet & 15)];
                at += 2;
            }
            at += 1;
        }
        f.write_str(str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for AtmAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is not an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressError(String);

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for AddressError {}

fn hex_octets(text: &str, want: usize, what: &str) -> Result<Vec<u8>, AddressError> {
    let mut nibbles = Vec::with_capacity(want * 2);
    for (at, c) in text.char_indices() {
        match c {
            '.' | ':' | '-' => {}
            _ => {
                let nibble = c.to_digit(16).ok_or_else(|| {
                    AddressError(format!(
                        "{what}: '{c}' at character {} is no hex digit",
                        at + 1
                    ))
                })?;
                nibbles.push(nibble as u8);
            }
        }
    }
    if nibbles.len() != want * 2 {
        return Err(AddressError(format!(
            "{what}: {} where {} are needed",
            counted(nibbles.len(), "hex digit", "hex digits"),
            want * 2
        )));
    }
    Ok(nibbles
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect())
}

impl FromStr for AtmAddress {
    type Err = AddressError;
    /// Reads 40 hex digits; `.`, `:` and `-` may stand anywhere between them.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let octets = hex_octets(text, 20, "ATM address")?;
        let mut address = [0; 20];
        address.copy_from_slice(&octets);
        Ok(Self(address))
    }
}

/// A 6-octet IEEE 802 MAC address; an ESI has the same form.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// ff:ff:ff:ff:ff:ff.
    pub const BROADCAST: Self = Self([0xff; 6]);
    /// True for group (multicast and broadcast) addresses.
    #[must_use]
    pub const fn is_group(&self) -> bool {
        self.0[0] & 1 == 1
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for MacAddr {
    type Err = AddressError;
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let octets = hex_octets(text, 6, "MAC address")?;
        let mut address = [0; 6];
        address.copy_from_slice(&octets);
        Ok(Self(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_octets_are_spelled_as_those_of_a_whole_address() {
        let whole = "47.0091.81.000000.02a7.0000.0100.02a703000100.00";
        let AtmAddress(octets) = whole.parse().unwrap();
        let thirteen = "47.0091.81.000000.02a7.0000.0100";
        assert_eq!(AtmAddress::leading(&octets), whole);
        assert_eq!(AtmAddress::leading(&octets[..13]), thirteen);
        assert_eq!(AtmAddress::leading(&octets[..5]), "47.0091.81.00");
        assert_eq!(AtmAddress::leading(&[]), "");
        assert_eq!(AtmAddress::leading(&[0; 30]), AtmAddress::ZERO.to_string());
    }

    #[test]
    fn text_forms() {
        let text = "47.0005.80.ffe100.0000.f21a.0102.0020480a1b2c.00";
        let address: AtmAddress = text.parse().unwrap();
        assert_eq!(address.to_string(), text);
        assert_eq!(address.esi().to_string(), "00:20:48:0a:1b:2c");
        let plain: AtmAddress = text.replace('.', "").parse().unwrap();
        assert_eq!(plain, address);
        assert!(text.replace("2c.00", "2c").parse::<AtmAddress>().is_err());
        assert!(text.replace("2c", "2x").parse::<AtmAddress>().is_err());
        assert!(address.with_selector(5).same_end_system(&address));
    }
}
