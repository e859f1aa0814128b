//! The tag of a virtual LAN in an Ethernet frame: four octets between the source address and the EtherType.
//!
//! ```text
//!  destination | source | 81-00 | PCP DEI VID | EtherType | payload
//!       6           6       2       3   1   12       2
//! ```
//!
//! A tag with the VID 0 has a priority and names no VLAN; the VID 4095 is reserved. A tag of another kind, like the
//! service tag 88-a8 of provider bridges, is no tag for this module: it is an EtherType that a bridge carries unread.
//! Of two tags, this module reads the outer one, and the inner one is the payload's.
//!
//! Standards: IEEE 802.1Q-2011 §9.3 to §9.6 (the tag, its octets, Table 9-2 with the reserved VIDs), named from memory.

use crate::{DecodeError, Reader};

/// EtherType of a tag. Source: IEEE 802.1Q-2011 Table 9-1, from memory.
pub const ETHERTYPE: u16 = 0x8100;
/// Octets of a tag.
pub const TAG_LEN: usize = 4;
/// Least VID of a VLAN.
pub const MIN_VID: u16 = 1;
/// Largest VID of a VLAN.
pub const MAX_VID: u16 = 4094;
/// Octets of both addresses, in front of the tag.
const ADDRESSES: usize = 12;

/// The control information of a tag (TCI).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tag {
    /// Priority code point, 0..=7; higher bits are not sent.
    pub pcp: u8,
    /// Drop eligible (DEI); in older editions the canonical format indicator (CFI).
    pub dei: bool,
    /// VLAN identifier, 0..=[`MAX_VID`]: 0 if the tag has only a priority. Higher bits are not sent.
    pub vid: u16,
}

impl Tag {
    /// The VLAN that the tag names; `None` for a priority tag.
    #[must_use]
    pub const fn vlan(self) -> Option<u16> {
        match self.vid {
            0 => None,
            vid => Some(vid),
        }
    }
    /// The two octets of the control information.
    #[must_use]
    pub fn tci(self) -> u16 {
        u16::from(self.pcp & 7) << 13 | u16::from(self.dei) << 12 | self.vid & 0xfff
    }
    /// Reads the tag of an Ethernet frame that begins with the destination; `None` if the frame has no tag, also if it
    /// is too short for an EtherType.
    ///
    /// # Errors
    /// `Short` if the frame ends before the EtherType behind the tag; `Value` if the VID is 4095.
    pub fn decode(frame: &[u8]) -> Result<Option<Self>, DecodeError> {
        let kind = frame.get(ADDRESSES..ADDRESSES + 2);
        if kind != Some(&ETHERTYPE.to_be_bytes()) {
            return Ok(None);
        }
        let mut reader = Reader::new(frame);
        reader.take("addresses and tag protocol", ADDRESSES + 2)?;
        let at = reader.offset();
        let tci = reader.u16("VLAN tag")?;
        reader.u16("EtherType behind the VLAN tag")?;
        let vid = tci & 0xfff;
        if vid > MAX_VID {
            return Err(DecodeError::value("VID", at, u32::from(vid)));
        }
        Ok(Some(Self {
            pcp: (tci >> 13) as u8,
            dei: tci & 0x1000 != 0,
            vid,
        }))
    }
    /// Puts the tag into a frame without this tag. A frame too short to have an EtherType stays as it is.
    pub fn insert(self, frame: &mut Vec<u8>) {
        if frame.len() < ADDRESSES + 2 {
            return;
        }
        let [a, b] = ETHERTYPE.to_be_bytes();
        let [c, d] = self.tci().to_be_bytes();
        frame.splice(ADDRESSES..ADDRESSES, [a, b, c, d]);
    }
}

/// Takes the outer tag out of a frame; returns it, or `None` if the frame has no tag. A frame with an error keeps its
/// octets.
///
/// # Errors
/// Those of [`Tag::decode`].
pub fn remove(frame: &mut Vec<u8>) -> Result<Option<Tag>, DecodeError> {
    let tag = Tag::decode(frame)?;
    if tag.is_some() {
        frame.drain(ADDRESSES..ADDRESSES + TAG_LEN);
    }
    Ok(tag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use proptest::prelude::*;

    const ADDRESSED: [u8; 12] = [
        0, 0x16, 0x3e, 0x3c, 0x2b, 0xb3, 0, 0x16, 0x3e, 0x52, 0x21, 0xec,
    ];

    fn frame(rest: &[u8]) -> Vec<u8> {
        [&ADDRESSED[..], rest].concat()
    }
    fn tag(pcp: u8, dei: bool, vid: u16) -> Tag {
        Tag { pcp, dei, vid }
    }

    /// The fields are what tshark 4.0.17 shows for the same octets (`vlan.priority`, `vlan.dei`, `vlan.id`,
    /// `vlan.etype`).
    #[test]
    fn tags_that_another_dissector_has_read() {
        for (rest, expected) in [
            (&[0x81, 0x00, 0x00, 0x14, 0x08, 0x00][..], tag(0, false, 20)),
            (
                &[0x81, 0x00, 0xb0, 0x14, 0x88, 0xb5, 1, 2],
                tag(5, true, 20),
            ),
            (
                &[0x81, 0x00, 0x60, 0x00, 0x88, 0xb5, 1, 2],
                tag(3, false, 0),
            ),
        ] {
            let tagged = frame(rest);
            assert_eq!(Tag::decode(&tagged), Ok(Some(expected)));
            let mut bare = tagged.clone();
            assert_eq!(remove(&mut bare), Ok(Some(expected)));
            assert_eq!(bare, frame(&rest[4..]));
            expected.insert(&mut bare);
            assert_eq!(bare, tagged);
        }
        assert_eq!(tag(5, true, 20).vlan(), Some(20));
        assert_eq!(tag(3, false, 0).vlan(), None);
    }

    /// The first frame of `tests/802.1ad_QinQ.pcap` of tcpdump (commit 39b50f76), whose own dissector prints
    /// `802.1Q-QinQ (0x88a8)`, `vlan 200, p 0`, `802.1Q (0x8100)`, `vlan 2001, p 0` and `ARP (0x0806)`.
    #[test]
    fn a_service_tag_is_an_ethertype_and_the_tag_behind_it_is_read_without_it() {
        let addresses = [
            0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00, 0x20, 0xd2, 0x5a, 0xfb, 0x3f,
        ];
        let customer = [0x81, 0x00, 0x07, 0xd1, 0x08, 0x06, 0x00, 0x01, 0x08, 0x00];
        let both = [&addresses[..], &[0x88, 0xa8, 0x00, 0xc8], &customer].concat();
        assert_eq!(Tag::decode(&both), Ok(None));
        let inner = [&addresses[..], &customer].concat();
        assert_eq!(Tag::decode(&inner), Ok(Some(tag(0, false, 2001))));
    }

    #[test]
    fn reserved_and_cut_tags_are_errors() {
        let reserved = frame(&[0x81, 0x00, 0x2f, 0xff, 0x08, 0x00]);
        let error = Tag::decode(&reserved).unwrap_err();
        assert_eq!(error.to_string(), "VID at offset 14: bad value 0xfff");
        let mut kept = reserved.clone();
        assert_eq!(remove(&mut kept), Err(error));
        assert_eq!(kept, reserved);
        let last = frame(&[0x81, 0x00, 0x0f, 0xfe, 0x08, 0x00]);
        assert_eq!(Tag::decode(&last), Ok(Some(tag(0, false, MAX_VID))));
        for length in 0..14 {
            assert_eq!(Tag::decode(&last[..length]), Ok(None), "{length}");
        }
        for (length, offset) in [(14, 14), (15, 14), (16, 16), (17, 16)] {
            let error = Tag::decode(&last[..length]).unwrap_err();
            assert_eq!((error.kind, error.offset), (ErrorKind::Short, offset));
        }
    }

    proptest! {
        #[test]
        fn a_tag_comes_out_as_it_went_in(
            pcp in 0..8_u8, dei: bool, vid in 0..=MAX_VID, rest in prop::collection::vec(any::<u8>(), 2..60),
        ) {
            let mut octets = frame(&rest);
            tag(pcp, dei, vid).insert(&mut octets);
            prop_assert_eq!(octets.len(), ADDRESSED.len() + TAG_LEN + rest.len());
            prop_assert_eq!(remove(&mut octets), Ok(Some(tag(pcp, dei, vid))));
            prop_assert_eq!(octets, frame(&rest));
        }

        #[test]
        fn any_frame_keeps_its_octets(
            known: bool, octets in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let mut octets = octets;
            if let Some(kind) = octets.get_mut(12..14).filter(|_| known) {
                kind.copy_from_slice(&ETHERTYPE.to_be_bytes());
            }
            let mut again = octets.clone();
            if let Ok(Some(tag)) = remove(&mut again) {
                tag.insert(&mut again);
            }
            prop_assert_eq!(again, octets);
        }
    }
}
