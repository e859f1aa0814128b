//! Control frames: 108 octets of fields and TLVs; READY frames: 6 octets.

use super::{LanType, MaxFrameSize, Tlv, TlvList};
use crate::{AtmAddress, DecodeError, MacAddr, Reader};
use core::fmt;

const MARKER: u16 = 0xff00;
const PROTOCOL: u8 = 1;

/// Op-code; a response has 0100 added.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpCode(pub u16);

impl OpCode {
    /// LE_CONFIGURE_REQUEST.
    pub const CONFIGURE: Self = Self(0x0001);
    /// LE_JOIN_REQUEST.
    pub const JOIN: Self = Self(0x0002);
    /// READY_QUERY.
    pub const READY_QUERY: Self = Self(0x0003);
    /// READY_IND.
    pub const READY_IND: Self = Self(0x0103);
    /// LE_REGISTER_REQUEST.
    pub const REGISTER: Self = Self(0x0004);
    /// LE_UNREGISTER_REQUEST.
    pub const UNREGISTER: Self = Self(0x0005);
    /// LE_ARP_REQUEST.
    pub const ARP: Self = Self(0x0006);
    /// LE_FLUSH_REQUEST.
    pub const FLUSH: Self = Self(0x0007);
    /// LE_NARP_REQUEST.
    pub const NARP: Self = Self(0x0008);
    /// LE_TOPOLOGY_REQUEST.
    pub const TOPOLOGY: Self = Self(0x0009);
    /// LE_VERIFY_REQUEST (v2).
    pub const VERIFY: Self = Self(0x000a);

    /// The response to this request.
    #[must_use]
    pub const fn response(self) -> Self {
        Self(self.0 | 0x0100)
    }
    /// True for responses and for READY_IND.
    #[must_use]
    pub const fn is_response(self) -> bool {
        self.0 & 0x0100 != 0
    }
    /// The name, for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self.0 {
            0x0001 => "LE_CONFIGURE_REQUEST",
            0x0101 => "LE_CONFIGURE_RESPONSE",
            0x0002 => "LE_JOIN_REQUEST",
            0x0102 => "LE_JOIN_RESPONSE",
            0x0003 => "READY_QUERY",
            0x0103 => "READY_IND",
            0x0004 => "LE_REGISTER_REQUEST",
            0x0104 => "LE_REGISTER_RESPONSE",
            0x0005 => "LE_UNREGISTER_REQUEST",
            0x0105 => "LE_UNREGISTER_RESPONSE",
            0x0006 => "LE_ARP_REQUEST",
            0x0106 => "LE_ARP_RESPONSE",
            0x0007 => "LE_FLUSH_REQUEST",
            0x0107 => "LE_FLUSH_RESPONSE",
            0x0008 => "LE_NARP_REQUEST",
            0x0009 => "LE_TOPOLOGY_REQUEST",
            0x000a => "LE_VERIFY_REQUEST",
            0x010a => "LE_VERIFY_RESPONSE",
            _ => "unknown op-code",
        }
    }
}

impl fmt::Debug for OpCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:04x})", self.name(), self.0)
    }
}

/// Status of a response; 0 in requests. Source: LUNI 2.0 table 14.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Status(pub u16);

impl Status {
    /// Success.
    pub const SUCCESS: Self = Self(0);
    /// Version not supported.
    pub const VERSION: Self = Self(1);
    /// Invalid request parameters.
    pub const PARAMETERS: Self = Self(2);
    /// Duplicate LAN destination registration.
    pub const DUPLICATE_LAN: Self = Self(4);
    /// Duplicate ATM address.
    pub const DUPLICATE_ATM: Self = Self(5);
    /// Insufficient resources to grant the request.
    pub const RESOURCES: Self = Self(6);
    /// Access denied.
    pub const DENIED: Self = Self(7);
    /// Invalid requester-ID.
    pub const REQUESTER: Self = Self(8);
    /// Invalid LAN destination.
    pub const LAN_DESTINATION: Self = Self(9);
    /// Invalid ATM address.
    pub const ATM_ADDRESS: Self = Self(10);
    /// No configuration.
    pub const NO_CONFIGURATION: Self = Self(20);
    /// LE_CONFIGURE error.
    pub const CONFIGURE: Self = Self(21);
    /// Insufficient information.
    pub const INFORMATION: Self = Self(22);
    /// TLV not found.
    pub const TLV: Self = Self(24);
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            0 => "success",
            1 => "version not supported",
            2 => "invalid request parameters",
            4 => "duplicate LAN destination",
            5 => "duplicate ATM address",
            6 => "insufficient resources",
            7 => "access denied",
            8 => "invalid requester-ID",
            9 => "invalid LAN destination",
            10 => "invalid ATM address",
            20 => "no configuration",
            21 => "LE_CONFIGURE error",
            22 => "insufficient information",
            24 => "TLV not found",
            _ => "unknown",
        };
        write!(f, "status {} ({text})", self.0)
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Flags of a control frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags(pub u16);

impl Flags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// The LAN destination is behind the answering client, not registered by it (LE_ARP).
    pub const REMOTE: Self = Self(0x0001);
    /// The client is capable of LANE v2 (CONFIGURE, JOIN).
    pub const V2_CAPABLE: Self = Self(0x0002);
    /// The client registers the groups it wants (JOIN).
    pub const SELECTIVE_MULTICAST: Self = Self(0x0004);
    /// The LES speaks v2; absent, the client must act as v1 (JOIN response).
    pub const V2_REQUIRED: Self = Self(0x0008);
    /// The client is a proxy (JOIN).
    pub const PROXY: Self = Self(0x0080);
    /// A topology change is under way (TOPOLOGY).
    pub const TOPOLOGY_CHANGE: Self = Self(0x0100);
    /// The client wants no explorer frames (JOIN, token ring).
    pub const EXCLUDE_EXPLORER: Self = Self(0x0200);

    /// True if all bits of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// The flags of both sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    /// This set without `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}", self.0)
    }
}

/// A LAN destination: tag and six octets, kept as they came.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LanDestination {
    /// 0 absent, 1 MAC address, 2 route descriptor.
    pub tag: u16,
    /// The value.
    pub value: [u8; 6],
}

impl LanDestination {
    /// No LAN destination.
    pub const ABSENT: Self = Self {
        tag: 0,
        value: [0; 6],
    };
    /// A MAC address.
    #[must_use]
    pub const fn mac(mac: MacAddr) -> Self {
        Self {
            tag: 1,
            value: mac.0,
        }
    }
    /// The MAC address, if the destination is a MAC address.
    #[must_use]
    pub const fn as_mac(&self) -> Option<MacAddr> {
        if self.tag == 1 {
            Some(MacAddr(self.value))
        } else {
            None
        }
    }
}

impl From<Option<MacAddr>> for LanDestination {
    fn from(mac: Option<MacAddr>) -> Self {
        mac.map_or(Self::ABSENT, Self::mac)
    }
}

impl fmt::Debug for LanDestination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tag {
            0 => f.write_str("absent"),
            1 => write!(f, "{}", MacAddr(self.value)),
            tag => write!(f, "tag {tag}: {}", MacAddr(self.value)),
        }
    }
}

/// Name of an ELAN: 0 to 32 octets, in a field of 32.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ElanName {
    len: u8,
    octets: [u8; 32],
}

impl ElanName {
    /// No name.
    pub const EMPTY: Self = Self {
        len: 0,
        octets: [0; 32],
    };
    /// A name; `None` if it is longer than 32 octets.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let mut octets = [0; 32];
        octets
            .get_mut(..name.len())?
            .copy_from_slice(name.as_bytes());
        Some(Self {
            len: name.len() as u8,
            octets,
        })
    }
    /// A name of any octets; `None` if there are more than 32.
    #[must_use]
    pub fn from_octets(name: &[u8]) -> Option<Self> {
        let mut octets = [0; 32];
        octets.get_mut(..name.len())?.copy_from_slice(name);
        let len = name.len() as u8;
        Some(Self { len, octets })
    }
    /// The octets of the name.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.octets.get(..usize::from(self.len)).unwrap_or_default()
    }
    /// True if there is no name.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// True if both names are the same; the octets behind the name in its field do not count.
    #[must_use]
    pub fn same(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl fmt::Display for ElanName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.as_bytes()))
    }
}

impl fmt::Debug for ElanName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(self.as_bytes()))
    }
}

/// A control frame. The op-code decides which fields have a meaning; the others are zero.
///
/// ```text
///  0 marker FF00 | 2 protocol | 3 version | 4 op-code | 6 status
///  8 transaction-ID           | 12 requester-LECID    | 14 flags
/// 16 source LAN destination (tag 2, value 6) | 24 target LAN destination
/// 32 source ATM address (20) | 52 LAN type | 53 max frame size | 54 number of TLVs | 55 name size
/// 56 target ATM address (20) | 76 ELAN name (32) | 108 TLVs
/// ```
/// Source: LUNI 2.0 §3.4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlFrame {
    /// Protocol version; 1 in LANE v1 and v2.
    pub version: u8,
    /// Op-code.
    pub op: OpCode,
    /// Result, in responses.
    pub status: Status,
    /// Chosen by the requester; the response has the same value.
    pub transaction: u32,
    /// LECID of the requester; 0 before it has a LECID.
    pub lecid: u16,
    /// Flags.
    pub flags: Flags,
    /// Source LAN destination.
    pub source: LanDestination,
    /// Target LAN destination.
    pub target: LanDestination,
    /// Source ATM address.
    pub source_atm: AtmAddress,
    /// LAN type.
    pub lan_type: LanType,
    /// Maximum frame size.
    pub max_frame: MaxFrameSize,
    /// Target ATM address.
    pub target_atm: AtmAddress,
    /// Name of the ELAN.
    pub elan: ElanName,
    /// TLVs.
    pub tlvs: TlvList,
}

impl ControlFrame {
    /// Length without TLVs, octets.
    pub const LEN: usize = 108;

    /// A request with all other fields zero.
    #[must_use]
    pub fn new(op: OpCode) -> Self {
        Self {
            version: 1,
            op,
            status: Status::SUCCESS,
            transaction: 0,
            lecid: 0,
            flags: Flags::NONE,
            source: LanDestination::ABSENT,
            target: LanDestination::ABSENT,
            source_atm: AtmAddress::ZERO,
            lan_type: LanType::UNSPECIFIED,
            max_frame: MaxFrameSize::UNSPECIFIED,
            target_atm: AtmAddress::ZERO,
            elan: ElanName::EMPTY,
            tlvs: TlvList::default(),
        }
    }
    /// The same frame as a response without TLVs.
    #[must_use]
    pub fn response(&self, status: Status) -> Self {
        Self {
            op: self.op.response(),
            status,
            tlvs: TlvList::default(),
            ..self.clone()
        }
    }
    /// Sets the TLVs.
    #[must_use]
    pub fn with_tlvs(mut self, list: Vec<Tlv>) -> Self {
        self.tlvs = list.into();
        self
    }
    /// The octets.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::LEN + 64);
        encode_header(self.version, self.op, &mut out);
        out.extend_from_slice(&self.status.0.to_be_bytes());
        out.extend_from_slice(&self.transaction.to_be_bytes());
        out.extend_from_slice(&self.lecid.to_be_bytes());
        out.extend_from_slice(&self.flags.0.to_be_bytes());
        for lan in [self.source, self.target] {
            out.extend_from_slice(&lan.tag.to_be_bytes());
            out.extend_from_slice(&lan.value);
        }
        out.extend_from_slice(&self.source_atm.0);
        let count = self.tlvs.count();
        out.extend([self.lan_type.0, self.max_frame.0, count, self.elan.len]);
        out.extend_from_slice(&self.target_atm.0);
        out.extend_from_slice(&self.elan.octets);
        self.tlvs.encode(&mut out);
        out
    }
}

/// Anything that begins with the control marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// READY_QUERY: may I send?
    ReadyQuery,
    /// READY_IND: you may send.
    ReadyIndication,
    /// All other control frames.
    Frame(Box<ControlFrame>),
}

impl Control {
    /// Decodes an SDU that begins with the marker. Octets behind a READY frame are ignored. A frame of unknown op-code
    /// or version decodes: the receiver decides how to answer.
    ///
    /// # Errors
    /// `Short`, or `Value` of marker, protocol or name size.
    pub fn decode(sdu: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(sdu);
        let marker = reader.u16("marker")?;
        if marker != MARKER {
            return Err(DecodeError::value("marker", 0, marker.into()));
        }
        let protocol = reader.u8("protocol")?;
        if protocol != PROTOCOL {
            return Err(DecodeError::value("protocol", 2, protocol.into()));
        }
        let version = reader.u8("version")?;
        match OpCode(reader.u16("op-code")?) {
            OpCode::READY_QUERY => Ok(Self::ReadyQuery),
            OpCode::READY_IND => Ok(Self::ReadyIndication),
            op => decode_frame(version, op, reader).map(|frame| Self::Frame(Box::new(frame))),
        }
    }
    /// The octets.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(6);
        match self {
            Self::ReadyQuery => encode_header(1, OpCode::READY_QUERY, &mut out),
            Self::ReadyIndication => encode_header(1, OpCode::READY_IND, &mut out),
            Self::Frame(frame) => return frame.encode(),
        }
        out
    }
}

fn encode_header(version: u8, op: OpCode, out: &mut Vec<u8>) {
    out.extend_from_slice(&MARKER.to_be_bytes());
    out.extend([PROTOCOL, version]);
    out.extend_from_slice(&op.0.to_be_bytes());
}

fn decode_frame(
    version: u8,
    op: OpCode,
    mut reader: Reader<'_>,
) -> Result<ControlFrame, DecodeError> {
    let mut frame = ControlFrame::new(op);
    frame.version = version;
    frame.status = Status(reader.u16("status")?);
    frame.transaction = reader.u32("transaction-ID")?;
    frame.lecid = reader.u16("requester-LECID")?;
    frame.flags = Flags(reader.u16("flags")?);
    frame.source = lan_destination(&mut reader, "source LAN destination")?;
    frame.target = lan_destination(&mut reader, "target LAN destination")?;
    frame.source_atm = AtmAddress(reader.array("source ATM address")?);
    frame.lan_type = LanType(reader.u8("LAN type")?);
    frame.max_frame = MaxFrameSize(reader.u8("maximum frame size")?);
    let count = reader.u8("number of TLVs")?;
    let at = reader.offset();
    let len = reader.u8("ELAN name size")?;
    if len > 32 {
        return Err(DecodeError::value("ELAN name size", at, len.into()));
    }
    frame.target_atm = AtmAddress(reader.array("target ATM address")?);
    let octets = reader.array("ELAN name")?;
    frame.elan = ElanName { len, octets };
    frame.tlvs = TlvList::decode(count, reader.rest());
    Ok(frame)
}

fn lan_destination(
    reader: &mut Reader<'_>,
    field: &'static str,
) -> Result<LanDestination, DecodeError> {
    Ok(LanDestination {
        tag: reader.u16(field)?,
        value: reader.array(field)?,
    })
}
