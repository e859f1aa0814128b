//! VLANs of a bridge: which frames a port takes, to which VLAN they belong, and which frames leave with a tag.
//!
//! Each VLAN is one ELAN: the bridge has a LANE client and a filtering database for each of its VLANs, and a frame
//! never leaves its VLAN. A port has an *untagged* VLAN, tagged VLANs, or both. An access port has only the first, a
//! trunk the second, and the untagged VLAN of a trunk is its native VLAN. A frame without a tag, or with a priority tag
//! (VID 0), belongs to the untagged VLAN of the port where it came in. A frame with another tag belongs to the VLAN of
//! the tag, which must be one of the port; an access port takes no such frame. A frame that no VLAN takes is dropped
//! and counted by its reason. The bridge takes the tag off at the port, so a LANE frame has none; its priority lasts to
//! the other ports of the bridge, and ends at the ELAN. A service tag (88-a8) is no tag here, but an EtherType that the
//! bridge carries.
//!
//! A bridge without VLANs reads no tags: it has one ELAN for all frames.
//!
//! **Standards.** IEEE 802.1Q-2011 §8.6.1 (acceptable frame types: an access port admits untagged and priority-tagged
//! frames only), §8.6.2 (ingress filtering, always on), §8.8.1 (independent learning: a database for each VLAN).
//! Sections from memory. One LANE client for each VLAN: CISCO-LEC-EXT-MIB (1997), whose `cLecToVlanTable` "identifies
//! which VLAN a LEC is associated with". **Not implemented**: shared learning, VLANs by protocol, registration by GVRP
//! or MVRP, provider bridges.

use super::FilteringDatabase;
use crate::ip::books::VlanRefusal;
use aerostat_wire::vlan::{self, Tag};

/// The VLANs of a port of a bridge with VLANs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortVlans {
    /// VID of frames without a tag and of those with a priority tag; `None`: such frames are dropped.
    pub untagged: Option<u16>,
    /// VIDs of frames with a tag; empty for an access port.
    pub tagged: Vec<u16>,
}

impl PortVlans {
    /// True if frames of this VLAN pass the port.
    pub(super) fn carries(&self, vid: u16) -> bool {
        self.untagged == Some(vid) || self.tagged.contains(&vid)
    }

    /// Takes the tag off a frame that comes in; returns the VID of its VLAN, and the tag, of which only the priority
    /// still counts. A frame that is refused keeps its tag.
    fn classify(&self, frame: &mut Vec<u8>) -> Result<(u16, Tag), VlanRefusal> {
        let tag = Tag::decode(frame).map_err(|_| VlanRefusal::BadTag)?;
        let vid = match tag.and_then(Tag::vlan) {
            None => self.untagged.ok_or(VlanRefusal::NoTag)?,
            Some(_) if self.tagged.is_empty() => return Err(VlanRefusal::TagAtAccess),
            Some(vid) if self.carries(vid) => vid,
            Some(_) => return Err(VlanRefusal::NotAllowed),
        };
        let taken = vlan::remove(frame).map_err(|_| VlanRefusal::BadTag)?;
        Ok((vid, taken.unwrap_or_default()))
    }

    /// Gives a frame of a VLAN of this port the tag with which it leaves.
    pub(super) fn dress(&self, vid: u16, tag: Tag, frame: &mut Vec<u8>) {
        if self.untagged != Some(vid) {
            Tag { vid, ..tag }.insert(frame);
        }
    }
}

/// A VLAN of a bridge, or the whole of a bridge without VLANs.
#[derive(Debug, Default)]
pub(super) struct Vlan {
    /// Its VID; `None` for a bridge without VLANs.
    pub(super) vid: Option<u16>,
    /// Where its stations are.
    pub(super) learned: FilteringDatabase,
}

/// The VLANs of a bridge: VLAN N has the LANE client of interface N. There is at least one.
#[derive(Debug)]
pub(super) struct Vlans(Vec<Vlan>);

impl Default for Vlans {
    fn default() -> Self {
        Self(vec![Vlan::default()])
    }
}

impl Vlans {
    /// VLANs with these VIDs, which are different; without any, a bridge without VLANs.
    pub(super) fn new(vids: &[u16]) -> Self {
        let vlans = vids.iter().map(|vid| Vlan {
            vid: Some(*vid),
            learned: FilteringDatabase::default(),
        });
        let vlans: Vec<Vlan> = vlans.collect();
        if vlans.is_empty() {
            return Self::default();
        }
        Self(vlans)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Vlan)> {
        self.0.iter().enumerate()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut Vlan)> {
        self.0.iter_mut().enumerate()
    }

    pub(super) fn get(&self, number: usize) -> Option<&Vlan> {
        self.0.get(number)
    }

    pub(super) fn get_mut(&mut self, number: usize) -> Option<&mut Vlan> {
        self.0.get_mut(number)
    }

    /// The VLAN of a frame that comes in at a port with these VLANs. The frame loses its tag, of which the priority is
    /// returned.
    pub(super) fn of_frame(
        &self,
        port: &PortVlans,
        frame: &mut Vec<u8>,
    ) -> Result<(usize, Tag), VlanRefusal> {
        if self.0.iter().all(|vlan| vlan.vid.is_none()) {
            return Ok((0, Tag::default()));
        }
        let (vid, tag) = port.classify(frame)?;
        let number = self.0.iter().position(|vlan| vlan.vid == Some(vid));
        Ok((number.ok_or(VlanRefusal::NotAllowed)?, tag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(tag: Option<Tag>) -> Vec<u8> {
        let mut frame = [&[2; 12][..], &[0x88, 0xb5], &[7; 50]].concat();
        if let Some(tag) = tag {
            tag.insert(&mut frame);
        }
        frame
    }

    fn tagged(vid: u16) -> Option<Tag> {
        Some(Tag {
            pcp: 5,
            dei: true,
            vid,
        })
    }

    /// Every kind of frame at every kind of port.
    #[test]
    fn what_a_port_takes() {
        let access = PortVlans {
            untagged: Some(10),
            tagged: vec![],
        };
        let trunk = PortVlans {
            untagged: None,
            tagged: vec![10, 20],
        };
        let native = PortVlans {
            untagged: Some(10),
            tagged: vec![20],
        };
        for (tag, expected) in [
            (None, [Ok(10), Err(VlanRefusal::NoTag), Ok(10)]),
            (tagged(0), [Ok(10), Err(VlanRefusal::NoTag), Ok(10)]),
            (tagged(10), [Err(VlanRefusal::TagAtAccess), Ok(10), Ok(10)]),
            (tagged(20), [Err(VlanRefusal::TagAtAccess), Ok(20), Ok(20)]),
            (
                tagged(30),
                [
                    Err(VlanRefusal::TagAtAccess),
                    Err(VlanRefusal::NotAllowed),
                    Err(VlanRefusal::NotAllowed),
                ],
            ),
            (tagged(4095), [Err(VlanRefusal::BadTag); 3]),
        ] {
            for (port, expected) in [&access, &trunk, &native].into_iter().zip(expected) {
                let (before, mut octets) = (frame(tag), frame(tag));
                let got = port.classify(&mut octets);
                assert_eq!(got.map(|(vid, _)| vid), expected, "{tag:?} {port:?}");
                match got {
                    Ok((_, read)) => {
                        assert_eq!(octets, frame(None));
                        assert_eq!(read, tag.unwrap_or_default());
                    }
                    Err(_) => assert_eq!(octets, before),
                }
            }
        }
        // A cut tag, and a service tag, which is an EtherType.
        let cut = frame(tagged(10))[..15].to_vec();
        assert_eq!(access.classify(&mut cut.clone()), Err(VlanRefusal::BadTag));
        let mut service = frame(tagged(10));
        service[12..14].copy_from_slice(&[0x88, 0xa8]);
        let before = service.clone();
        assert_eq!(access.classify(&mut service), Ok((10, Tag::default())));
        assert_eq!(service, before);
    }

    proptest! {
        /// A frame that leaves a port for a VLAN comes in at a port like it, with the same VLAN, octets and, if it has
        /// a tag, the same priority.
        #[test]
        fn a_frame_that_leaves_a_port_comes_in_at_its_peer(
            untagged in prop::option::of(1..5_u16), others in prop::collection::btree_set(1..5_u16, 0..4),
            vid in 1..5_u16, pcp in 0..8_u8, dei: bool,
        ) {
            let port = PortVlans {
                untagged,
                tagged: others.into_iter().filter(|vid| untagged != Some(*vid)).collect(),
            };
            prop_assume!(port.carries(vid));
            let mut octets = frame(None);
            port.dress(vid, Tag { pcp, dei, vid: 0 }, &mut octets);
            let with_tag = untagged != Some(vid);
            prop_assert_eq!(octets.len(), frame(None).len() + if with_tag { 4 } else { 0 });
            let (got, tag) = port.classify(&mut octets).unwrap();
            prop_assert_eq!((got, octets), (vid, frame(None)));
            if with_tag {
                prop_assert_eq!((tag.pcp, tag.dei), (pcp, dei));
            }
        }

        /// Any octets at any port: a frame is taken whole, without its tag, or stays as it is.
        #[test]
        fn any_octets(
            octets in prop::collection::vec(any::<u8>(), 0..80), known: bool, trunk: bool,
        ) {
            let mut octets = octets;
            if let Some(kind) = octets.get_mut(12..14).filter(|_| known) {
                kind.copy_from_slice(&vlan::ETHERTYPE.to_be_bytes());
            }
            let port = PortVlans {
                untagged: (!trunk).then_some(7),
                tagged: if trunk { vec![7, 9] } else { vec![] },
            };
            let before = octets.clone();
            match port.classify(&mut octets) {
                Ok((vid, _)) => prop_assert!(port.carries(vid) && octets.len() + 4 >= before.len()),
                Err(_) => prop_assert_eq!(octets, before),
            }
        }
    }
}
