//! The address plan: assignment of network prefixes, MAC addresses and selectors.
//!
//! | what | value |
//! |---|---|
//! | prefix of switch number n (from 1) | `47.0091.8100.0000` and the switch's MAC address, unless the file gives 13 octets |
//! | MAC address | `02:a7:sk:nn:nn:ii`: site s of the lab, kind k (0 switch, 1 LANE server, 2 router, 3 host, 4 outside), number n of the node within its kind, from 1; interface i, on a segment behind a host from 1 |
//! | prefix of end systems without a switch | that of a switch number 0 |
//! | ESI of an end system | its MAC address with interface 0 |
//!
//! The site is 0 unless the file gives another value, so that labs joined by a trunk have no common addresses. Numbers
//! follow the order of the file, so a node that is added at the end of its section changes no other address.

use aerostat_wire::MacAddr;
use aerostat_wire::q2931::Version;

/// Selector of LANE client N of a node: N itself.
pub const SELECTOR_LEC: u8 = 0x00;
/// Selector of the MPOA client's control connections.
pub const SELECTOR_MPC_CONTROL: u8 = 0x50;
/// Selector of the MPOA client's shortcuts.
pub const SELECTOR_MPC_DATA: u8 = 0x51;
/// Selector of the MPOA server.
pub const SELECTOR_MPS_CONTROL: u8 = 0x52;
/// Selector of an NHRP client without MPOA.
pub const SELECTOR_NHC: u8 = 0x54;
/// Selector of the LECS.
pub const SELECTOR_LECS: u8 = 0x60;
/// Selector of the LES of ELAN number 0; ELAN n adds n.
pub const SELECTOR_LES: u8 = 0x80;
/// Selector of the BUS of ELAN number 0; ELAN n adds n.
pub const SELECTOR_BUS: u8 = 0xc0;
/// First VCI of user connections.
pub const FIRST_VCI: u16 = aerostat_wire::Vc::FIRST_USER_VCI;
/// Default version of the UNI.
pub const UNI: Version = Version::Uni31;
/// First selector of the sockets of a host; they have 0xe0..=0xff.
pub const SELECTOR_SOCKET: u8 = 0xe0;
/// Limit of ELANs of a LANE server: selectors 0x80..=0xbf and 0xc0..=0xff.
pub const MAX_ELANS: usize = 64;
/// Limit of LANE clients of a node: selectors below the first MPOA selector.
pub const MAX_LECS: usize = 64;

/// Limit of ELANs and Classical IP subnets of a host.
pub const MAX_HOST_LECS: usize = aerostat_node::ip::stack::MAX_INTERFACES;

/// First VCI of switched connections on a link between two end systems; permanent connections have those below.
pub const FIRST_CALL_VCI: u16 = aerostat_node::signalling::FIRST_CALL_VCI;

/// Limit of hosts on the Ethernet segment behind a host: their MAC addresses have interfaces 1 and up.
pub const MAX_SEGMENT: usize = 64;

/// The interface in the MAC address of the LANE client of VLAN number `index` (from 1) of a host, or of its further
/// interface with this number: behind those of the stations.
#[must_use]
pub const fn vlan_interface(index: u8) -> u8 {
    MAX_SEGMENT as u8 + index
}

/// First seven octets of the default switch prefix (the rest is the switch's MAC address).
const DEFAULT_PREFIX: [u8; 7] = [0x47, 0x00, 0x91, 0x81, 0x00, 0x00, 0x00];

/// The kinds of nodes in a MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A switch.
    Switch = 0,
    /// The host of the LANE services.
    LaneServer = 1,
    /// A router.
    Router = 2,
    /// A host.
    Host = 3,
    /// The far end of a link out of the lab.
    Outside = 4,
}

/// Largest site number.
pub const MAX_SITE: u8 = 15;

/// MAC address of interface `interface` of the node number `number` (from 1) of its kind at `site`.
#[must_use]
pub const fn mac(site: u8, kind: Kind, number: u16, interface: u8) -> MacAddr {
    let [high, low] = number.to_be_bytes();
    let kind = (site & MAX_SITE) << 4 | kind as u8;
    MacAddr([0x02, 0xa7, kind, high, low, interface])
}

/// Network prefix of the switch number `number` (from 1) at `site`.
#[must_use]
pub fn switch_prefix(site: u8, number: u16) -> [u8; 13] {
    let mut prefix = [0; 13];
    prefix[..7].copy_from_slice(&DEFAULT_PREFIX);
    prefix[7..].copy_from_slice(&mac(site, Kind::Switch, number, 0).0);
    prefix
}
