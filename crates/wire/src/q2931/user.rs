//! User-user information: octets of a caller or a called party for the other end, beside the call itself.

use super::{Element, Ie, id};

/// Octets that one end of a call says to the other in SETUP, CONNECT, RELEASE or RELEASE COMPLETE: at most
/// [`UserData::MAX`].
///
/// The element has a protocol discriminator in front of them, here 0: a protocol of the users' own. One that is
/// received is not looked at. Source: Q.2957 (user-to-user signalling, service 1), Q.931 §4.5.30; the identifier and
/// the length of the element: UNI 4.0 §2.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserData(Vec<u8>);

impl UserData {
    /// Largest number of octets.
    pub const MAX: usize = 128;

    /// These octets; `None` if they are more than [`Self::MAX`].
    #[must_use]
    pub fn new(octets: Vec<u8>) -> Option<Self> {
        (octets.len() <= Self::MAX).then_some(Self(octets))
    }
    /// The octets.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        &self.0
    }
    /// True if nothing is said.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// The element for it; `None` if nothing is said.
    #[must_use]
    pub fn element(&self) -> Option<Element> {
        if self.is_empty() {
            return None;
        }
        let mut contents = vec![0];
        contents.extend_from_slice(&self.0);
        Some(Ie::UserUser(contents).encode())
    }
    /// User data of the elements of a message; empty if there is no such element, or if it is longer than the standard
    /// allows.
    #[must_use]
    pub fn of(elements: &[Element]) -> Self {
        let element = elements.iter().find(|e| e.id == id::USER_USER);
        let octets = element.and_then(|e| e.contents.get(1..));
        octets
            .and_then(|octets| Self::new(octets.to_vec()))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Identifier, coding of the ITU, length, protocol discriminator, octets. Source: Q.931 §4.5.30 with the header of
    /// Q.2931 §4.5.1.
    #[test]
    fn the_element_octet_by_octet() {
        let said = UserData::new(b"hello".to_vec()).unwrap();
        let element = said.element().unwrap();
        let mut octets = Vec::new();
        element.encode_into(&mut octets);
        assert_eq!(octets, *b"\x7e\x80\0\x06\0hello");
        assert_eq!(UserData::of(&[element]), said);
        assert_eq!(UserData::default().element(), None);
    }

    #[test]
    fn what_is_too_long_or_nothing_is_no_user_data() {
        assert!(UserData::new(vec![1; 128]).is_some());
        assert!(UserData::new(vec![1; 129]).is_none());
        for contents in [vec![], vec![0], vec![0; 130]] {
            let element = Element::new(id::USER_USER, smallvec::SmallVec::from_vec(contents));
            assert!(UserData::of(&[element]).is_empty());
        }
    }
}
