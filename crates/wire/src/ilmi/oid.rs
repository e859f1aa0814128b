//! Object identifiers.

use core::fmt;

/// An object identifier: 2 to [`Oid::MAX`] arcs of 32 bits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oid(Vec<u32>);

impl Oid {
    /// Most arcs. Source: RFC 1442 §3.5.
    pub const MAX: usize = 128;

    /// An identifier of these arcs.
    ///
    /// # Panics
    /// If there are fewer than two arcs, or the first is above 2 or the second above 39: such an identifier has no
    /// encoding here. Use this for constants.
    #[must_use]
    pub fn new(arcs: &[u32]) -> Self {
        assert!(
            matches!(arcs, [0..=2, 0..=39, ..]),
            "an object identifier begins with two small arcs"
        );
        Self(arcs.to_vec())
    }
    /// All arcs.
    #[must_use]
    pub fn arcs(&self) -> &[u32] {
        &self.0
    }
    /// This identifier with more arcs behind it.
    #[must_use]
    pub fn child(&self, arcs: &[u32]) -> Self {
        Self(self.0.iter().chain(arcs).copied().collect())
    }
    /// The arcs behind `prefix`, if this identifier begins with it.
    #[must_use]
    pub fn strip_prefix(&self, prefix: &Self) -> Option<&[u32]> {
        self.0.strip_prefix(prefix.0.as_slice())
    }

    /// Decodes the content of an element; `None` if it is empty, cut off, too long, or has an arc above 32 bits.
    pub(super) fn from_ber(octets: &[u8]) -> Option<Self> {
        let mut arcs = Vec::new();
        let mut arc = 0_u32;
        let mut open = true;
        for octet in octets {
            if arc >> 25 != 0 || arcs.len() >= Self::MAX {
                return None;
            }
            arc = arc << 7 | u32::from(octet & 0x7f);
            open = octet & 0x80 != 0;
            if open {
                continue;
            }
            if arcs.is_empty() {
                let first = (arc / 40).min(2);
                let second = arc - 40 * first;
                // Arc 2 may have children above 39. No object of ILMI has such a name, so it is refused.
                if second > 39 {
                    return None;
                }
                arcs.extend([first, second]);
            } else {
                arcs.push(arc);
            }
            arc = 0;
        }
        (!open).then_some(Self(arcs))
    }
    /// The content of an element.
    pub(super) fn to_ber(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let (first, rest) = self.0.split_at(self.0.len().min(2));
        let joint = first.first().unwrap_or(&0) * 40 + first.get(1).unwrap_or(&0);
        for arc in core::iter::once(&joint).chain(rest) {
            for group in (0..5).rev() {
                let octet = (arc >> (7 * group)) as u8 & 0x7f;
                if group == 0 {
                    out.push(octet);
                } else if arc >> (7 * group) != 0 {
                    out.push(octet | 0x80);
                }
            }
        }
        out
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, arc) in self.0.iter().enumerate() {
            let dot = if n == 0 { "" } else { "." };
            write!(f, "{dot}{arc}")?;
        }
        Ok(())
    }
}
impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
