//! BPDUs of a bridge, as far as a LANE client that stands for its stations reads them.
//!
//! A bridge whose spanning tree changes says so in its configuration BPDUs; until the change is over, addresses age
//! faster everywhere, because stations may be behind another port. The LANE client passes this on to the members of its
//! ELAN (LE_TOPOLOGY_REQUEST), which may not read BPDUs. Standards: IEEE 802.1D-1998 §9.3, 802.1D-2004 §9.3.3 (rapid
//! spanning tree); LANE v2 §7 (LE_TOPOLOGY_REQUEST). Sections of 802.1D from memory. Not implemented: BPDUs with a SNAP
//! header, and those of VLANs.

use super::OWN;
use crate::host::Host;
use aerostat_proto::lane::lec;
use aerostat_proto::{Duration, Instant, Trace};

/// Group address of all bridges.
const BRIDGES: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0];
/// Protocol identifier 0 behind the LLC header of spanning tree.
const HEADER: [u8; 5] = [0x42, 0x42, 3, 0, 0];
/// Forward delay of a bridge that does not tell it.
const FORWARD_DELAY: Duration = Duration::from_secs(15);

/// Forward delays after which a change of the topology is over without a further BPDU: a root announces it for its
/// maximum age and a forward delay, which are at most three forward delays of the standard's values.
const CHANGES: u32 = 3;
/// Least time between the beginning and the end of a change, and to the next.
const LEAST: Duration = Duration::from_secs(1);

/// State of the topology in a BPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Topology {
    /// True if it changes.
    pub(super) changes: bool,
    /// How long a port waits before it forwards, at least 1 s; addresses age as fast during a change.
    pub(super) forward_delay: Duration,
}

impl Topology {
    /// Reads an Ethernet frame; `None` if it is no BPDU.
    pub(super) fn of(frame: &[u8]) -> Option<Self> {
        let rest = frame.strip_prefix(&BRIDGES)?.get(8..)?;
        let bpdu = rest.strip_prefix(&HEADER)?;
        // Version, type, flags.
        let &[_, kind, ref body @ ..] = bpdu else {
            return None;
        };
        match kind {
            // Topology change notification.
            0x80 => Some(Self {
                changes: true,
                forward_delay: FORWARD_DELAY,
            }),
            // Configuration, and rapid spanning tree.
            0 | 2 => {
                let flags = *body.first()?;
                // Behind flags, two identifiers, cost, port, and three times: in 1/256 s.
                let delay = body.get(29..31)?.first_chunk()?;
                let delay = u64::from(u16::from_be_bytes(*delay)) * 1000 / 256;
                Some(Self {
                    changes: flags & 1 == 1,
                    forward_delay: Duration::from_millis(delay.max(1000)),
                })
            }
            _ => None,
        }
    }
}

impl Host {
    /// The topology of the kernel's bridge changes, or the change is over (`None`): addresses age faster or slower,
    /// here and at the members of the ELAN.
    pub(super) fn set_topology(&mut self, change: Option<Topology>, now: Instant) {
        let Some(segment) = &mut self.segment else {
            return;
        };
        // A station that forges BPDUs makes no more changes than a bridge.
        if segment.changed.is_some_and(|at| now < at + LEAST) {
            return;
        }
        let until = change.map(|change| now + change.forward_delay * CHANGES);
        let before = std::mem::replace(&mut segment.changing, until).is_some();
        let faster = change.map(|change| change.forward_delay);
        for (_, vlan) in segment.vlans.iter_mut() {
            vlan.learned.age_faster(faster);
        }
        let changes = change.is_some();
        if changes == before {
            return;
        }
        segment.changed = Some(now);
        let text = match changes {
            true => "the topology of the bridge changes",
            false => "the topology of the bridge has changed",
        };
        self.trace(Trace::milestone("bridge.topology", text));
        if let Some(lec) = self.lec_of(OWN) {
            self.tell(lec, lec::Input::TopologyChange(changes), now);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A configuration BPDU with these flags, by 802.1D-1998 §9.3.1: root 8000.02:00:00:00:00:01, cost 0, port 8001,
    /// message age 0, max age 20 s, hello 2 s, forward delay 15 s. Linux sends the same fields (live tests).
    pub(in crate::host::interfaces::segment) fn configuration(flags: u8) -> Vec<u8> {
        let mut frame = BRIDGES.to_vec();
        frame.extend([2, 0, 0, 0, 0, 0xee, 0, 38]);
        frame.extend(HEADER);
        frame.extend([0, 0, flags]);
        frame.extend([0x80, 0, 2, 0, 0, 0, 0, 1]);
        frame.extend([0; 4]);
        frame.extend([0x80, 0, 2, 0, 0, 0, 0, 1]);
        frame.extend([0x80, 1, 0, 0, 0x14, 0, 2, 0, 15, 0]);
        frame
    }

    #[test]
    fn the_flag_and_the_delay_are_read() {
        for flags in [0, 1, 0x80, 0x81] {
            let topology = Topology::of(&configuration(flags)).unwrap();
            assert_eq!(topology.changes, flags & 1 == 1);
            assert_eq!(topology.forward_delay, Duration::from_secs(15));
        }
        let mut notification = configuration(0)[..19].to_vec();
        notification.extend([0, 0x80]);
        assert!(Topology::of(&notification).unwrap().changes);
        // A shorter frame, another group, another LLC header.
        let whole = configuration(1);
        for cut in 0..whole.len() {
            assert_eq!(Topology::of(&whole[..cut]), None, "{cut}");
        }
        for at in [0, 5, 14, 17] {
            let mut other = whole.clone();
            other[at] ^= 0x40;
            assert_eq!(Topology::of(&other), None, "{at}");
        }
    }

    proptest! {
        #[test]
        fn any_frame_is_read(frame in proptest::collection::vec(any::<u8>(), 0..80), head in 0usize..20) {
            let mut frame = frame;
            let whole = configuration(1);
            let head = head.min(frame.len());
            frame[..head].copy_from_slice(&whole[..head]);
            let delay = Topology::of(&frame).map(|topology| topology.forward_delay);
            prop_assert!(delay.is_none_or(|delay| delay >= Duration::from_secs(1)));
        }
    }
}
