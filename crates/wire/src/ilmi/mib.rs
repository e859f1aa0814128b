//! Names of the objects that ILMI uses. Source: af-ilmi-0065.000 clause 8.
//!
//! Instances of the interface that a message came over have index 0.

use super::Oid;
use crate::{AtmAddress, MacAddr, Vc};

/// `atmForum`, 1.3.6.1.4.1.353.
const ATM_FORUM: [u32; 7] = [1, 3, 6, 1, 4, 1, 353];
/// Value of a row's status: it is valid.
pub const VALID: i32 = 1;
/// Value of a row's status: the row is not valid, or is to be removed.
pub const INVALID: i32 = 2;
/// Value of a `TruthValue`: true.
pub const TRUE: i32 = 1;
/// Value of a `TruthValue`: false.
pub const FALSE: i32 = 2;

/// `atmForumUni` and below.
#[must_use]
pub fn uni(arcs: &[u32]) -> Oid {
    Oid::new(&ATM_FORUM).child(&[2]).child(arcs)
}
/// Column `column` of `atmfPortTable`, this interface.
#[must_use]
pub fn port(column: u32) -> Oid {
    uni(&[1, 1, 1, column, 0])
}
/// Column `column` of `atmfAtmLayerTable`, this interface.
#[must_use]
pub fn atm_layer(column: u32) -> Oid {
    uni(&[2, 1, 1, column, 0])
}
/// `atmfPortMyIfName`, of [`port`].
pub const MY_IF_NAME: u32 = 7;
/// `atmfPortMyIfIdentifier`, of [`port`].
pub const MY_IF_IDENTIFIER: u32 = 8;
/// `atmfAtmLayerMaxVPCs`, of [`atm_layer`].
pub const MAX_VPCS: u32 = 2;
/// `atmfAtmLayerMaxVCCs`.
pub const MAX_VCCS: u32 = 3;
/// `atmfAtmLayerConfiguredVPCs`: number of permanent paths.
pub const CONFIGURED_VPCS: u32 = 4;
/// `atmfAtmLayerConfiguredVCCs`: number of permanent channels.
pub const CONFIGURED_VCCS: u32 = 5;
/// `atmfAtmLayerMaxVpiBits`, of [`atm_layer`].
pub const MAX_VPI_BITS: u32 = 6;
/// `atmfAtmLayerMaxVciBits`.
pub const MAX_VCI_BITS: u32 = 7;
/// `atmfAtmLayerUniType`: public 1, private 2.
pub const UNI_TYPE: u32 = 8;
/// `atmfAtmLayerUniVersion`: UNI 2.0 is 1, 3.0 is 2, 3.1 is 3, 4.0 is 4; 5 means no UNI version.
pub const UNI_VERSION: u32 = 9;
/// `atmfAtmLayerDeviceType`: user 1, node 2.
pub const DEVICE_TYPE: u32 = 10;
/// `atmfAtmLayerIlmiVersion`: 1 means that ILMI is not supported, 2 is ILMI 4.0.
pub const ILMI_VERSION: u32 = 11;
/// `atmfAtmLayerNniSigVersion`: 1 means no NNI signalling, IISP is 2, PNNI 1.0 is 3.
pub const NNI_SIG_VERSION: u32 = 12;
/// `atmfAtmLayerMaxSvpcVpi`: largest VPI of switched paths; 0 if there are no switched paths.
pub const MAX_SVPC_VPI: u32 = 13;
/// `atmfAtmLayerMaxSvccVpi`: largest VPI of switched channels.
pub const MAX_SVCC_VPI: u32 = 14;
/// `atmfAtmLayerMinSvccVci`: smallest VCI of switched channels.
pub const MIN_SVCC_VCI: u32 = 15;

/// Column `column` of `atmfVpcTable`, this interface: a permanent path.
#[must_use]
pub fn vpc(column: u32, vpi: u16) -> Oid {
    uni(&[4, 1, 1, column, 0, vpi.into()])
}
/// Column `column` of `atmfVccTable`, this interface: a permanent channel.
#[must_use]
pub fn vcc(column: u32, vc: Vc) -> Oid {
    uni(&[5, 1, 1, column, 0, vc.vpi.into(), vc.vci.into()])
}
/// `atmfVpcOperStatus`, of [`vpc`].
pub const VPC_STATUS: u32 = 3;
/// `atmfVpcTransmitTrafficDescriptorType`; its parameters 1 to 5 follow.
pub const VPC_TX: u32 = 4;
/// `atmfVpcReceiveTrafficDescriptorType`; its parameters 1 to 5 follow.
pub const VPC_RX: u32 = 10;
/// `atmfVpcBestEffortIndicator`.
pub const VPC_BEST_EFFORT: u32 = 19;
/// `atmfVpcServiceCategory`.
pub const VPC_CATEGORY: u32 = 20;
/// `atmfVccOperStatus`, of [`vcc`].
pub const VCC_STATUS: u32 = 4;
/// `atmfVccTransmitTrafficDescriptorType`; its parameters 1 to 5 follow.
pub const VCC_TX: u32 = 5;
/// `atmfVccReceiveTrafficDescriptorType`; its parameters 1 to 5 follow.
pub const VCC_RX: u32 = 11;
/// `atmfVccBestEffortIndicator`.
pub const VCC_BEST_EFFORT: u32 = 20;
/// `atmfVccTransmitFrameDiscard`: [`TRUE`] if the network treats the traffic as AAL5 frames, not as cells.
pub const VCC_TX_FRAMES: u32 = 21;
/// `atmfVccReceiveFrameDiscard`: as [`VCC_TX_FRAMES`].
pub const VCC_RX_FRAMES: u32 = 22;
/// `atmfVccServiceCategory`.
pub const VCC_CATEGORY: u32 = 23;

/// A type of traffic descriptors, `atmfTrafficDescrTypes` and below.
#[must_use]
pub fn traffic_descriptor(kind: u32) -> Oid {
    Oid::new(&ATM_FORUM).child(&[1, 4, kind])
}
/// `atmfNoDescriptor`: no traffic, of [`traffic_descriptor`].
pub const NO_DESCRIPTOR: u32 = 1;
/// `atmfNoClpNoScr`: peak rate and tolerance.
pub const NO_CLP_NO_SCR: u32 = 3;
/// `atmfNoClpScr`: peak rate, sustainable rate, burst, tolerance.
pub const NO_CLP_SCR: u32 = 6;
/// `atmfClpNoTaggingScr`: peak rate of all cells, sustainable rate and burst of cells with CLP 0, tolerance.
pub const CLP_NO_TAGGING_SCR: u32 = 7;
/// `atmfClpTaggingScr`: as [`CLP_NO_TAGGING_SCR`]; cells with CLP 0 above the sustainable rate are tagged.
pub const CLP_TAGGING_SCR: u32 = 8;
/// `atmfClpNoTaggingMcr`: peak rate, tolerance, minimum rate.
pub const CLP_MCR: u32 = 9;

/// `atmfMySystemIdentifier`: 6 octets.
#[must_use]
pub fn my_system_identifier() -> Oid {
    uni(&[1, 4, 0])
}
/// `atmfAddressRegistrationAdminStatus`, this interface: 1 is supported, 2 is not supported.
#[must_use]
pub fn address_admin_status() -> Oid {
    uni(&[11, 1, 1, 2, 0])
}
/// Object `object` of the group `system` of MIB-II: sysDescr 1 to sysServices 7.
#[must_use]
pub fn system(object: u32) -> Oid {
    Oid::new(&[1, 3, 6, 1, 2, 1, 1, object, 0])
}
/// `sysUpTime` of [`system`].
pub const SYS_UP_TIME: u32 = 3;

/// Column `atmfAddressStatus`; its instances are addresses.
#[must_use]
pub fn address_status() -> Oid {
    uni(&[6, 1, 1, 3])
}
/// Column `atmfAddressOrgScope`.
#[must_use]
pub fn address_scope() -> Oid {
    uni(&[6, 1, 1, 4])
}
/// Column `atmfNetPrefixStatus`; its instances are prefixes.
#[must_use]
pub fn prefix_status() -> Oid {
    uni(&[7, 1, 1, 3])
}
/// Column `atmfSrvcRegATMAddress`; its instances are a service and a number.
#[must_use]
pub fn service_address() -> Oid {
    uni(&[8, 1, 1, 3])
}
/// The service "LECS", as part of an instance of [`service_address`].
#[must_use]
pub fn lecs_service() -> Oid {
    Oid::new(&ATM_FORUM).child(&[1, 5, 1])
}

/// Names of the objects that address registration and the description of interfaces use, by the arcs below
/// `atmForumUni`. Source: ILMI 4.0, ATM-FORUM-MIB.
const NAMES: [(&[u32], &str); 9] = [
    (&[1, 4], "atmfMySystemIdentifier"),
    (&[1, 1], "atmfPortTable"),
    (&[2, 1], "atmfAtmLayerTable"),
    (&[3, 1], "atmfVpcTable"),
    (&[4, 1], "atmfVccTable"),
    (&[6, 1], "atmfAddressTable"),
    (&[7, 1], "atmfNetPrefixTable"),
    (&[8, 1], "atmfSrvcRegTable"),
    (&[11, 1], "atmfAddressRegistrationAdminTable"),
];

/// The name of the object, or of the table, to which a variable belongs; `None` if it is another one.
#[must_use]
pub fn name_of(variable: &Oid) -> Option<&'static str> {
    if *variable == system(SYS_UP_TIME) {
        return Some("sysUpTime");
    }
    if variable
        .strip_prefix(&Oid::new(&[1, 3, 6, 1, 2, 1, 1]))
        .is_some()
    {
        return Some("system");
    }
    let below = variable.strip_prefix(&uni(&[]))?;
    let mut names = NAMES.iter();
    let found = names.find(|(arcs, _)| below.starts_with(arcs));
    found.map(|(_, name)| *name)
}

/// The instance of a column for octets with their length in front: `0.LENGTH.OCTETS`.
fn instance(column: &Oid, octets: &[u8]) -> Oid {
    let length = octets.len() as u32;
    let arcs: Vec<u32> = [0, length]
        .into_iter()
        .chain(octets.iter().map(|octet| (*octet).into()))
        .collect();
    column.child(&arcs)
}
/// The octets of an instance of `column`; `None` if `name` is not such an instance.
fn octets(column: &Oid, name: &Oid) -> Option<Vec<u8>> {
    let [0, length, octets @ ..] = name.strip_prefix(column)? else {
        return None;
    };
    let octets: Vec<u8> = octets
        .iter()
        .map(|arc| u8::try_from(*arc).ok())
        .collect::<Option<_>>()?;
    (octets.len() == usize::try_from(*length).ok()?).then_some(octets)
}

/// `atmfAddressStatus` or `atmfAddressOrgScope` (`column`) of an address.
#[must_use]
pub fn of_address(column: &Oid, address: AtmAddress) -> Oid {
    instance(column, &address.0)
}
/// The address of an instance of `column`.
#[must_use]
pub fn address_of(column: &Oid, name: &Oid) -> Option<AtmAddress> {
    octets(column, name)?.try_into().ok().map(AtmAddress)
}
/// `atmfNetPrefixStatus` of a prefix of 13 octets.
#[must_use]
pub fn of_prefix(prefix: [u8; 13]) -> Oid {
    instance(&prefix_status(), &prefix)
}
/// The prefix whose status this is; `None` if its length is not 13 octets.
#[must_use]
pub fn prefix_of(name: &Oid) -> Option<[u8; 13]> {
    octets(&prefix_status(), name)?.try_into().ok()
}
/// `atmfSrvcRegATMAddress` of LECS number `index`, from 1.
#[must_use]
pub fn of_lecs(index: u32) -> Oid {
    let service = lecs_service();
    let arcs = [0, service.arcs().len() as u32];
    service_address()
        .child(&arcs)
        .child(service.arcs())
        .child(&[index])
}
/// True if `name` is the address of a LECS.
#[must_use]
pub fn is_lecs(name: &Oid) -> bool {
    let service = lecs_service();
    let arcs = [0, service.arcs().len() as u32];
    let column = service_address().child(&arcs).child(service.arcs());
    matches!(name.strip_prefix(&column), Some([_]))
}

/// The address that prefix and end system identifier make, selector 0.
#[must_use]
pub fn address(prefix: [u8; 13], esi: MacAddr) -> AtmAddress {
    AtmAddress::from_parts(prefix, esi, 0)
}
