//! SDUs that a program has written one after another, all of one length; the last one may be shorter.
//!
//! Programs write PDUs of one length as a rule. Several of them move together from a descriptor to the adapter, as a
//! train ([`PduTrain`](super::PduTrain)) through the network, and from there to the other program's descriptor. A
//! single SDU is the case of one.

/// SDUs in one block of memory. See the documentation of this module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sdus {
    octets: Vec<u8>,
    /// Octets of each except the last one; 0 if the only SDU is empty.
    each: usize,
}

impl From<Vec<u8>> for Sdus {
    /// A single SDU.
    fn from(octets: Vec<u8>) -> Self {
        Self {
            each: octets.len(),
            octets,
        }
    }
}

impl Sdus {
    /// SDUs of `each` octets, of which the last one has what is left. A length of 0, or above that of all octets, makes
    /// a single SDU.
    #[must_use]
    pub fn new(octets: Vec<u8>, each: usize) -> Self {
        match each {
            0 => octets.into(),
            each => Self {
                each: each.min(octets.len()),
                octets,
            },
        }
    }
    /// Number of SDUs, at least 1.
    #[must_use]
    pub fn count(&self) -> usize {
        self.octets.len().div_ceil(self.each.max(1)).max(1)
    }
    /// Octets of all SDUs.
    #[must_use]
    pub fn octets(&self) -> usize {
        self.octets.len()
    }
    /// The first SDU, which is the longest one.
    #[must_use]
    pub fn first(&self) -> &[u8] {
        self.octets.get(..self.each).unwrap_or_default()
    }
    /// Octets of the SDU `index`; 0 beyond the last one.
    #[must_use]
    pub fn length(&self, index: usize) -> usize {
        self.each
            .min(self.octets.len().saturating_sub(index * self.each))
    }
    /// The SDUs.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        // A single empty SDU is a chunk, too.
        let count = self.count();
        (0..count).map(|index| {
            let rest = self.octets.get(index * self.each..).unwrap_or_default();
            rest.get(..self.each).unwrap_or(rest)
        })
    }
    /// Takes the first `count` SDUs off; `None` if `count` is 0, or if there are not more than so many.
    pub fn split_off_front(&mut self, count: usize) -> Option<Self> {
        if count == 0 || count >= self.count() {
            return None;
        }
        let rest = self.octets.split_off(count * self.each);
        let front = Self::new(std::mem::replace(&mut self.octets, rest), self.each);
        self.each = self.each.min(self.octets.len());
        Some(front)
    }
    /// The SDUs from the index `start` to before `end`; all octets are copied.
    #[must_use]
    pub fn part(&self, start: usize, end: usize) -> Self {
        let most = self.octets.len();
        let octets = (start * self.each).min(most)..(end * self.each).min(most);
        Self::new(
            self.octets.get(octets).unwrap_or_default().to_vec(),
            self.each,
        )
    }
    /// The octets of all SDUs, one after another.
    #[must_use]
    pub fn into_vec(self) -> Vec<u8> {
        self.octets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_sdu_is_an_sdu() {
        let sdus = Sdus::from(Vec::new());
        assert_eq!((sdus.count(), sdus.octets(), sdus.length(0)), (1, 0, 0));
        assert_eq!(sdus.iter().collect::<Vec<_>>(), [[0_u8; 0]; 1]);
    }

    proptest! {
        /// SDUs that are cut in two are the same SDUs.
        #[test]
        fn cutting_keeps_all_sdus(octets in proptest::collection::vec(any::<u8>(), 1..300), each in 1_usize..120, at in 0_usize..12) {
            let whole = Sdus::new(octets.clone(), each);
            let want: Vec<Vec<u8>> = octets.chunks(each).map(<[u8]>::to_vec).collect();
            prop_assert_eq!(whole.iter().map(<[u8]>::to_vec).collect::<Vec<_>>(), want.clone());
            prop_assert_eq!(whole.count(), want.len());
            for (index, sdu) in want.iter().enumerate() {
                prop_assert_eq!(whole.length(index), sdu.len());
            }
            let mut rest = whole.clone();
            match rest.split_off_front(at) {
                None => prop_assert!(at == 0 || at >= want.len()),
                Some(front) => {
                    prop_assert_eq!(&front, &whole.part(0, at));
                    prop_assert_eq!(&rest, &whole.part(at, want.len()));
                    prop_assert!(front.iter().chain(rest.iter()).eq(want.iter().map(Vec::as_slice)));
                }
            }
        }
    }
}
