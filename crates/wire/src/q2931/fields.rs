//! Elements that are lists of "identifier, value" pairs of fixed widths: AAL parameters, traffic descriptors, QoS.

use super::Contents;
use crate::{DecodeError, Reader};
use smallvec::SmallVec;

/// Per identifier of a list, the number of octets of its value.
pub type Widths = &'static [(u8, u8)];

/// AAL parameters of AAL1. Source: Q.2931 §4.5.5.
pub const AAL1: Widths = &[
    (0x85, 1),
    (0x86, 1),
    (0x87, 2),
    (0x88, 1),
    (0x89, 1),
    (0x8a, 2),
    (0x8b, 1),
];
/// AAL parameters of AAL3/4.
pub const AAL34: Widths = &[(0x8c, 2), (0x81, 2), (0x82, 4), (0x83, 1), (0x84, 1)];
/// AAL parameters of AAL5; 0x83 (mode) is UNI 3.0's.
pub const AAL5: Widths = &[(0x8c, 2), (0x81, 2), (0x83, 1), (0x84, 1)];
/// ATM traffic descriptors. Source: Q.2931 §4.5.6, UNI 4.0 §9.
pub const TRAFFIC: Widths = &[
    (0x82, 3),
    (0x83, 3),
    (0x84, 3),
    (0x85, 3),
    (0x88, 3),
    (0x89, 3),
    (0x90, 3),
    (0x91, 3),
    (0x92, 3),
    (0x93, 3),
    (0xa0, 3),
    (0xa1, 3),
    (0xb0, 3),
    (0xb1, 3),
    (0xbe, 0),
    (0xbf, 1),
];
/// End-to-end transit delay.
pub const DELAY: Widths = &[(0x01, 2), (0x03, 2), (0x0a, 0), (0x0b, 3), (0x11, 3)];
/// Extended QoS parameters, behind the origin octet.
pub const EXTENDED_QOS: Widths = &[
    (0x94, 3),
    (0x95, 3),
    (0x96, 3),
    (0x97, 3),
    (0xa2, 1),
    (0xa3, 1),
];
/// ABR setup parameters.
pub const ABR_SETUP: Widths = &[
    (0xc2, 3),
    (0xc3, 3),
    (0xc4, 3),
    (0xc5, 3),
    (0xc6, 3),
    (0xc8, 1),
    (0xc9, 1),
    (0xca, 1),
    (0xcb, 1),
];
/// ABR additional parameters.
pub const ABR_ADDITIONAL: Widths = &[(0xc2, 4), (0xc3, 4)];
/// Minimum desired cell rate, behind the origin octet.
pub const MINIMUM_RATE: Widths = &[(0x00, 3), (0x02, 3)];

/// A list of identified values in the order of the wire. Each identifier comes at most once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(SmallVec<[(u8, u32); 6]>);

impl Fields {
    /// No fields.
    #[must_use]
    pub const fn new() -> Self {
        Self(SmallVec::new_const())
    }
    /// The list with one more value; a value beyond its width loses its high octets on the wire.
    #[must_use]
    pub fn with(mut self, id: u8, value: u32) -> Self {
        self.0.push((id, value));
        self
    }
    /// The value of a field; 0 for a field that carries no value.
    #[must_use]
    pub fn get(&self, id: u8) -> Option<u32> {
        let found = self.0.iter().find(|(have, _)| *have == id);
        found.map(|(_, value)| *value)
    }
    /// True if the field is there.
    #[must_use]
    pub fn has(&self, id: u8) -> bool {
        self.get(id).is_some()
    }
    /// Sets the value of a field that is present; nothing happens if it is absent.
    pub fn set(&mut self, id: u8, value: u32) {
        for field in self.0.iter_mut().filter(|(have, _)| *have == id) {
            field.1 = value;
        }
    }
    /// Removes a field.
    pub fn remove(&mut self, id: u8) {
        self.0.retain(|(have, _)| *have != id);
    }
    /// Inserts a field before another one, or at the end.
    pub fn insert_before(&mut self, before: u8, id: u8, value: u32) {
        let at = self.0.iter().position(|(have, _)| *have == before);
        self.0.insert(at.unwrap_or(self.0.len()), (id, value));
    }
    /// All fields in order.
    pub fn iter(&self) -> impl Iterator<Item = (u8, u32)> {
        self.0.iter().copied()
    }
    /// True if there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads fields to the end.
    ///
    /// # Errors
    /// An identifier that is not in the list or is repeated; a value that is cut short.
    pub fn decode(r: &mut Reader<'_>, widths: Widths) -> Result<Self, DecodeError> {
        let mut fields = Self::new();
        while !r.is_empty() {
            let at = r.offset();
            let id = r.u8("field identifier")?;
            let known = widths.iter().find(|(have, _)| *have == id);
            let Some((_, width)) = known.filter(|_| !fields.has(id)) else {
                return Err(DecodeError::value("field identifier", at, id.into()));
            };
            let octets = r.take("field value", usize::from(*width))?;
            let value = octets.iter().fold(0, |v, octet| v << 8 | u32::from(*octet));
            fields.0.push((id, value));
        }
        Ok(fields)
    }
    /// Appends the fields; identifiers that `widths` does not have are left out.
    pub fn encode_into(&self, out: &mut Contents, widths: Widths) {
        for (id, value) in &self.0 {
            let Some((_, width)) = widths.iter().find(|(have, _)| have == id) else {
                continue;
            };
            out.push(*id);
            let skip = 4 - usize::from(*width);
            out.extend_from_slice(value.to_be_bytes().get(skip..).unwrap_or_default());
        }
    }
}
