//! The additions of MPOA to NHRP: packets, extensions, codes, encapsulation, and the Device Type TLV.
//!
//! MPOA control packets are [`nhrp::Packet`]s with op codes from 128 upwards. The functions here build each kind
//! and read the extensions; the packet type stays the one of NHRP, because an MPS turns one into the other.
//!
//! Source: MPOA 1.1 (af-mpoa-0114), RFC 2332. `docs/protocols/mpoa.md` says where each fact comes from.

use crate::llc::LlcSnap;
use crate::nhrp::{self, Cie, Common, Extension, NbmaAddress, Packet, ProtocolAddress};
use crate::prefix::width;
use crate::{AtmAddress, DecodeError, MacAddr, Reader};
use core::net::IpAddr;

/// LLC/SNAP header of tagged shortcut data; the 4-octet tag follows.
pub const LLC_TAGGED: [u8; 8] = LlcSnap::MpoaTagged { tag: 0 }.header();
/// LLC/SNAP header of untagged shortcut data: RFC 2684 routed IPv4.
pub const LLC_IPV4: [u8; 8] = LlcSnap::Ipv4.header();
/// The same for IPv6.
pub const LLC_IPV6: [u8; 8] = LlcSnap::Ipv6.header();

/// `ar$op.type` values of MPOA.
pub mod op {
    /// Cache Imposition Request, egress MPS to egress MPC.
    pub const IMPOSITION_REQUEST: u8 = 128;
    /// Cache Imposition Reply.
    pub const IMPOSITION_REPLY: u8 = 129;
    /// Egress Cache Purge Request, egress MPC to egress MPS.
    pub const EGRESS_PURGE_REQUEST: u8 = 130;
    /// Egress Cache Purge Reply.
    pub const EGRESS_PURGE_REPLY: u8 = 131;
    /// Keep-Alive, MPS to MPC; no reply.
    pub const KEEP_ALIVE: u8 = 132;
    /// Trigger, ingress MPS to ingress MPC; no reply.
    pub const TRIGGER: u8 = 133;
    /// Resolution Request, ingress MPC to ingress MPS.
    pub const RESOLUTION_REQUEST: u8 = 134;
    /// Resolution Reply.
    pub const RESOLUTION_REPLY: u8 = 135;
}

/// Codes of a client information entry in MPOA replies; those of [`nhrp::code`] are used too.
pub mod code {
    /// Success.
    pub const OK: u8 = 0;
    /// Insufficient resources to accept the egress cache entry.
    pub const NO_ROOM_FOR_ENTRY: u8 = 0x81;
    /// Insufficient resources to accept the shortcut.
    pub const NO_ROOM_FOR_SHORTCUT: u8 = 0x82;
    /// Insufficient resources to accept either.
    pub const NO_ROOM_FOR_EITHER: u8 = 0x83;
    /// Unsupported internetwork-layer protocol.
    pub const PROTOCOL: u8 = 0x84;
    /// Unsupported MAC-layer encapsulation.
    pub const MAC_ENCAPSULATION: u8 = 0x85;
    /// Not an MPC.
    pub const NOT_AN_MPC: u8 = 0x86;
    /// Not an MPS.
    pub const NOT_AN_MPS: u8 = 0x87;
    /// Unspecified or other.
    pub const OTHER: u8 = 0x88;
}

/// A code of a client information entry in words.
#[must_use]
pub const fn code_name(value: u8) -> &'static str {
    match value {
        code::OK => "success",
        nhrp::code::PROHIBITED => "administratively prohibited",
        nhrp::code::RESOURCES => "insufficient resources",
        nhrp::code::NO_BINDING => "no binding exists",
        nhrp::code::NOT_UNIQUE => "binding is not unique",
        nhrp::code::ALREADY_REGISTERED => "unique address already registered",
        code::NO_ROOM_FOR_ENTRY => "insufficient resources for the egress cache entry",
        code::NO_ROOM_FOR_SHORTCUT => "insufficient resources for the shortcut",
        code::NO_ROOM_FOR_EITHER => "insufficient resources for entry or shortcut",
        code::PROTOCOL => "unsupported internetwork-layer protocol",
        code::MAC_ENCAPSULATION => "unsupported MAC-layer encapsulation",
        code::NOT_AN_MPC => "not an MPC",
        code::NOT_AN_MPS => "not an MPS",
        code::OTHER => "unspecified",
        _ => "unknown code",
    }
}

/// The name of a packet type of NHRP or MPOA, for traces.
#[must_use]
pub const fn op_name(op_type: u8) -> &'static str {
    match op_type {
        nhrp::op::RESOLUTION_REQUEST => "NHRP Resolution Request",
        nhrp::op::RESOLUTION_REPLY => "NHRP Resolution Reply",
        nhrp::op::REGISTRATION_REQUEST => "NHRP Registration Request",
        nhrp::op::REGISTRATION_REPLY => "NHRP Registration Reply",
        nhrp::op::PURGE_REQUEST => "NHRP Purge Request",
        nhrp::op::PURGE_REPLY => "NHRP Purge Reply",
        nhrp::op::ERROR_INDICATION => "NHRP Error Indication",
        nhrp::op::TRAFFIC_INDICATION => "NHRP Traffic Indication",
        op::IMPOSITION_REQUEST => "MPOA Cache Imposition Request",
        op::IMPOSITION_REPLY => "MPOA Cache Imposition Reply",
        op::EGRESS_PURGE_REQUEST => "MPOA Egress Cache Purge Request",
        op::EGRESS_PURGE_REPLY => "MPOA Egress Cache Purge Reply",
        op::KEEP_ALIVE => "MPOA Keep-Alive",
        op::TRIGGER => "MPOA Trigger",
        op::RESOLUTION_REQUEST => "MPOA Resolution Request",
        op::RESOLUTION_REPLY => "MPOA Resolution Reply",
        _ => "unknown packet",
    }
}

/// Types of MPOA's extensions (14 bits).
pub mod ext {
    /// DLL Header; sent with the C bit.
    pub const DLL_HEADER: u16 = 0x1000;
    /// Egress Cache Tag.
    pub const TAG: u16 = 0x1001;
    /// ATM Service Category.
    pub const SERVICE_CATEGORY: u16 = 0x1002;
    /// Keep-Alive Lifetime.
    pub const LIFETIME: u16 = 0x1003;
    /// Hop Count.
    pub const HOP_COUNT: u16 = 0x1004;
    /// Original Error Code.
    pub const ORIGINAL_ERROR: u16 = 0x1005;
    /// True for the types of this list.
    #[must_use]
    pub const fn known(kind: u16) -> bool {
        matches!(kind, DLL_HEADER..=ORIGINAL_ERROR)
    }
}

/// Bits of the ATM Service Category extension. UBR has no bit, because it is always supported.
pub mod category {
    /// Real-time VBR.
    pub const RT_VBR: u16 = 1;
    /// Non-real-time VBR.
    pub const NRT_VBR: u16 = 2;
    /// ABR.
    pub const ABR: u16 = 4;
    /// CBR.
    pub const CBR: u16 = 8;
}

/// Value of the DLL Header extension.
///
/// `cache id (4) · ELAN-ID (4) · header length (1) · data link header`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DllHeader {
    /// Identifies the egress cache entry, together with the MPS.
    pub cache_id: u32,
    /// The ELAN on which the packet leaves.
    pub elan_id: u32,
    /// Data link header to put in front of the packet, at most 255 octets; empty in purges.
    pub header: Vec<u8>,
}

impl DllHeader {
    /// The extension.
    #[must_use]
    pub fn extension(&self) -> Extension {
        let header = self.header.get(..255).unwrap_or(&self.header);
        let mut value = Vec::with_capacity(9 + header.len());
        value.extend(self.cache_id.to_be_bytes());
        value.extend(self.elan_id.to_be_bytes());
        value.push(header.len() as u8);
        value.extend(header);
        Extension::compulsory(ext::DLL_HEADER, value)
    }
    /// The DLL Header extension of a packet, if present.
    ///
    /// # Errors
    /// If the extension's length does not fit its contents. Offsets count from the value's start.
    pub fn of(packet: &Packet) -> Result<Option<Self>, DecodeError> {
        let Some(extension) = packet.extension(ext::DLL_HEADER) else {
            return Ok(None);
        };
        let mut r = Reader::new(&extension.value);
        let cache_id = r.u32("cache id")?;
        let elan_id = r.u32("ELAN-ID")?;
        let len = r.u8("DH length")?;
        let header = r.take("data link header", len.into())?.to_vec();
        r.finish("DLL Header extension")?;
        Ok(Some(Self {
            cache_id,
            elan_id,
            header,
        }))
    }
    /// An Ethernet II header for packets to `target`: IPv4 or IPv6.
    #[must_use]
    pub fn ethernet(target: IpAddr, destination: MacAddr, source: MacAddr) -> Vec<u8> {
        let mut header = Self::ethernet_ipv4(destination, source);
        if target.is_ipv6() {
            header.truncate(12);
            header.extend(nhrp::PROTOCOL_IPV6.to_be_bytes());
        }
        header
    }
    /// An Ethernet II header for IPv4.
    #[must_use]
    pub fn ethernet_ipv4(destination: MacAddr, source: MacAddr) -> Vec<u8> {
        let mut header = destination.0.to_vec();
        header.extend(source.0);
        header.extend(nhrp::PROTOCOL_IPV4.to_be_bytes());
        header
    }
}

/// Value of the Egress Cache Tag extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// Empty: the sender asks for a tag.
    Wanted,
    /// A tag, opaque to everyone but the egress MPC.
    Value(u32),
}

impl Tag {
    /// The extension.
    #[must_use]
    pub fn extension(self) -> Extension {
        let value = match self {
            Self::Wanted => Vec::new(),
            Self::Value(tag) => tag.to_be_bytes().to_vec(),
        };
        Extension::new(ext::TAG, value)
    }
    /// The tag extension of a packet, if present.
    ///
    /// # Errors
    /// If its length is neither 0 nor 4.
    pub fn of(packet: &Packet) -> Result<Option<Self>, DecodeError> {
        let Some(extension) = packet.extension(ext::TAG) else {
            return Ok(None);
        };
        let mut r = Reader::new(&extension.value);
        if r.is_empty() {
            return Ok(Some(Self::Wanted));
        }
        let tag = r.u32("tag")?;
        r.finish("Egress Cache Tag extension")?;
        Ok(Some(Self::Value(tag)))
    }
}

/// A number of 1 to 4 octets in the extension `kind`: peers differ in the width that they send.
fn number(packet: &Packet, kind: u16, name: &'static str) -> Result<Option<u32>, DecodeError> {
    let Some(extension) = packet.extension(kind) else {
        return Ok(None);
    };
    match extension.value.len() {
        1..=4 => Ok(Some(
            extension
                .value
                .iter()
                .fold(0, |sum, octet| sum << 8 | u32::from(*octet)),
        )),
        len => Err(DecodeError::value(name, 0, len as u32)),
    }
}

/// The bits ([`category`]) of the ATM Service Category extension; 2 and 4 octets are accepted.
///
/// # Errors
/// If its length is not 1 to 4.
pub fn service_category(packet: &Packet) -> Result<Option<u16>, DecodeError> {
    let bits = number(
        packet,
        ext::SERVICE_CATEGORY,
        "ATM Service Category extension",
    )?;
    Ok(bits.map(|bits| bits as u16))
}

/// The ATM Service Category extension, 2 octets.
#[must_use]
pub fn service_category_extension(bits: u16) -> Extension {
    Extension::new(ext::SERVICE_CATEGORY, bits.to_be_bytes().to_vec())
}

/// The Keep-Alive Lifetime extension, seconds.
///
/// # Errors
/// If its length is not 1 to 4.
pub fn lifetime_s(packet: &Packet) -> Result<Option<u32>, DecodeError> {
    number(packet, ext::LIFETIME, "Keep-Alive Lifetime extension")
}

/// The Hop Count extension.
///
/// # Errors
/// If its length is not 1 to 4.
pub fn hop_count(packet: &Packet) -> Result<Option<u32>, DecodeError> {
    number(packet, ext::HOP_COUNT, "Hop Count extension")
}

/// The first compulsory extension that neither NHRP nor MPOA knows, for Error Indication 1.
#[must_use]
pub fn unknown_compulsory(packet: &Packet) -> Option<u16> {
    let known = |kind| matches!(kind, 0..=8) || ext::known(kind);
    let mut list = packet.extensions.iter().flatten();
    list.find(|e| e.is_compulsory() && !known(e.kind()))
        .map(Extension::kind)
}

/// An MPOA Resolution Request: "how do I reach `target`?", asking for a tag. `source_data` is the data ATM
/// address from which the shortcut would be opened.
#[must_use]
pub fn resolution_request(
    id: u32,
    source_data: AtmAddress,
    source: IpAddr,
    target: IpAddr,
) -> Packet {
    let common = Common {
        request_id: id,
        source_nbma: source_data.into(),
        source: source.into(),
        destination: target.into(),
        cies: vec![Cie::brief(width(target), 0)],
        ..Common::default()
    };
    Packet::new(op::RESOLUTION_REQUEST, common).with(Tag::Wanted.extension())
}

/// Contents of a Cache Imposition Request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imposition {
    /// Request id.
    pub id: u32,
    /// Data ATM address of the ingress MPC.
    pub ingress_data: AtmAddress,
    /// Protocol address of the egress MPS.
    pub mps: IpAddr,
    /// Destination of the shortcut.
    pub target: IpAddr,
    /// Prefix length that the entry covers.
    pub prefix: u8,
    /// Holding time, s; 0 removes the entry.
    pub holding_s: u16,
    /// Cache id, ELAN and header.
    pub dll: DllHeader,
    /// True to ask the egress MPC for a tag.
    pub want_tag: bool,
}

impl Imposition {
    /// The packet.
    #[must_use]
    pub fn packet(&self) -> Packet {
        let common = Common {
            request_id: self.id,
            source_nbma: self.ingress_data.into(),
            source: self.mps.into(),
            destination: self.target.into(),
            cies: vec![Cie::brief(self.prefix, self.holding_s)],
            ..Common::default()
        };
        let mut packet = Packet::new(op::IMPOSITION_REQUEST, common);
        if self.want_tag {
            packet = packet.with(Tag::Wanted.extension());
        }
        packet.with(self.dll.extension())
    }
    /// Reads a Cache Imposition Request. The result is `Ok(None)` if a mandatory part is missing: both protocol
    /// addresses as IP, the ingress address, one client information entry, the DLL Header extension.
    ///
    /// # Errors
    /// If an extension's length does not fit its contents.
    pub fn of(packet: &Packet) -> Result<Option<Self>, DecodeError> {
        let (dll, tag) = (DllHeader::of(packet)?, Tag::of(packet)?);
        let read = || {
            let common = packet
                .common()
                .filter(|_| packet.op == op::IMPOSITION_REQUEST)?;
            let cie = common.cies.first()?;
            Some(Self {
                id: common.request_id,
                ingress_data: common.source_nbma.atm()?,
                mps: common.source.ip()?,
                target: common.destination.ip()?,
                prefix: cie.prefix,
                holding_s: cie.holding_s,
                dll: dll?,
                want_tag: tag.is_some(),
            })
        };
        Ok(read())
    }
}

/// The entry of a positive reply: the address at which the shortcut ends. MPOA replies omit the protocol address.
#[must_use]
pub fn reply_entry(prefix: u8, mtu: u16, holding_s: u16, data: AtmAddress) -> Cie {
    Cie {
        mtu,
        nbma: data.into(),
        ..Cie::brief(prefix, holding_s)
    }
}

/// The entry of a negative reply.
#[must_use]
pub fn refusal_entry(prefix: u8, refusal: u8) -> Cie {
    Cie {
        code: refusal,
        ..Cie::brief(prefix, 0)
    }
}

/// A reply with its tag extension set to `tag`. The extension is added if the request did not ask for a tag.
#[must_use]
pub fn with_tag(mut reply: Packet, tag: u32) -> Packet {
    let value = Tag::Value(tag).extension();
    let list = reply.extensions.get_or_insert_default();
    match list.iter_mut().find(|e| e.kind() == ext::TAG) {
        Some(slot) => *slot = value,
        None => list.push(value),
    }
    reply
}

/// A Keep-Alive. `sequence` grows with every message of this MPS.
#[must_use]
pub fn keep_alive(sequence: u32, mps_control: AtmAddress, lifetime_s: u32) -> Packet {
    let common = Common {
        request_id: sequence,
        source_nbma: mps_control.into(),
        ..Common::default()
    };
    Packet::new(op::KEEP_ALIVE, common).with(Extension::new(
        ext::LIFETIME,
        lifetime_s.to_be_bytes().to_vec(),
    ))
}

/// A Trigger: asks an ingress MPC to resolve `target`.
#[must_use]
pub fn trigger(mps_control: AtmAddress, mps: IpAddr, target: IpAddr) -> Packet {
    let common = Common {
        source_nbma: mps_control.into(),
        source: mps.into(),
        destination: target.into(),
        cies: vec![Cie::brief(width(target), 0)],
        ..Common::default()
    };
    Packet::new(op::TRIGGER, common)
}

/// Contents of an Egress Cache Purge Request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressPurge {
    /// Request id.
    pub id: u32,
    /// Control ATM address of the egress MPC.
    pub mpc_control: AtmAddress,
    /// Data ATM address of the egress MPC.
    pub mpc_data: AtmAddress,
    /// Protocol address of the egress MPC.
    pub mpc: IpAddr,
    /// Protocol address of the egress MPS.
    pub mps: IpAddr,
    /// Destination of the entry.
    pub target: IpAddr,
    /// Prefix length of the entry.
    pub prefix: u8,
    /// Cache id of the entry.
    pub cache_id: u32,
    /// ELAN of the entry.
    pub elan_id: u32,
}

impl EgressPurge {
    /// The packet.
    #[must_use]
    pub fn packet(&self) -> Packet {
        let cie = Cie {
            nbma: self.mpc_data.into(),
            protocol: self.target.into(),
            ..Cie::brief(self.prefix, 0)
        };
        let common = Common {
            request_id: self.id,
            source_nbma: self.mpc_control.into(),
            source: self.mpc.into(),
            destination: self.mps.into(),
            cies: vec![cie],
            ..Common::default()
        };
        let dll = DllHeader {
            cache_id: self.cache_id,
            elan_id: self.elan_id,
            header: Vec::new(),
        };
        Packet::new(op::EGRESS_PURGE_REQUEST, common).with(dll.extension())
    }
}

/// An NHRP Purge Request for `target`/`prefix` that wants a reply; it has an empty extension list.
#[must_use]
pub fn purge_request(
    id: u32,
    source_nbma: AtmAddress,
    source: IpAddr,
    destination: IpAddr,
    target: IpAddr,
    prefix: u8,
) -> Packet {
    let common = Common {
        request_id: id,
        source_nbma: source_nbma.into(),
        source: source.into(),
        destination: destination.into(),
        cies: vec![Cie {
            protocol: target.into(),
            ..Cie::brief(prefix, 0)
        }],
        ..Common::default()
    };
    let mut packet = Packet::new(nhrp::op::PURGE_REQUEST, common);
    packet.extensions = Some(Vec::new());
    packet
}

/// A data-plane purge: an NHRP Purge Request without reply that the egress MPC sends on the shortcut itself.
#[must_use]
pub fn data_plane_purge(
    own_data: AtmAddress,
    own: Option<IpAddr>,
    target: IpAddr,
    prefix: u8,
) -> Packet {
    let common = Common {
        flags: nhrp::flag::NO_REPLY,
        source_nbma: NbmaAddress::from(own_data),
        source: own
            .filter(|own| own.is_ipv6() == target.is_ipv6())
            .map_or(ProtocolAddress::NONE, ProtocolAddress::from),
        cies: vec![Cie {
            protocol: target.into(),
            ..Cie::brief(prefix, 0)
        }],
        ..Common::default()
    };
    Packet::new(nhrp::op::PURGE_REQUEST, common)
}

/// Classification of an SDU on a shortcut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShortcutSdu<'a> {
    /// A packet behind a tag.
    Tagged {
        /// The tag.
        tag: u32,
        /// The internetwork-layer packet.
        packet: &'a [u8],
    },
    /// An IPv4 or IPv6 packet without tag; its version agrees with the LLC header.
    Routed(
        /// The packet.
        &'a [u8],
    ),
    /// A control packet (without its LLC header).
    Control(
        /// An NHRP packet, undecoded.
        &'a [u8],
    ),
    /// The SDU has another LLC header, or is too short for an LLC header.
    Unknown,
}

impl<'a> ShortcutSdu<'a> {
    /// Classifies an SDU by its LLC header.
    #[must_use]
    pub fn of(sdu: &'a [u8]) -> Self {
        let Some((llc, rest)) = sdu.split_first_chunk::<8>() else {
            return Self::Unknown;
        };
        match (*llc, rest.split_first_chunk::<4>()) {
            (LLC_TAGGED, Some((tag, packet))) => Self::Tagged {
                tag: u32::from_be_bytes(*tag),
                packet,
            },
            (LLC_IPV4, _) if !is_ipv6(rest) => Self::Routed(rest),
            (LLC_IPV6, _) if is_ipv6(rest) => Self::Routed(rest),
            (nhrp::LLC, _) => Self::Control(rest),
            _ => Self::Unknown,
        }
    }
}

fn is_ipv6(packet: &[u8]) -> bool {
    packet.first().is_some_and(|octet| octet >> 4 == 6)
}

/// Shortcut SDU of an IPv4 or IPv6 packet: tagged if `tag` is given, else routed.
#[must_use]
pub fn shortcut_sdu(tag: Option<u32>, packet: &[u8]) -> Vec<u8> {
    let mut space = [0; SHORTCUT_HEADER_MAX];
    [shortcut_header(&mut space, tag, is_ipv6(packet)), packet].concat()
}

/// Octets of the longest header before a packet on a shortcut: LLC/SNAP and a tag.
pub const SHORTCUT_HEADER_MAX: usize = 12;

/// The header before a packet on a shortcut: LLC/SNAP and the tag if there is a tag, else the LLC/SNAP header of the
/// packet's version of IP. It is written to `space`.
#[must_use]
pub fn shortcut_header(
    space: &mut [u8; SHORTCUT_HEADER_MAX],
    tag: Option<u32>,
    ipv6: bool,
) -> &[u8] {
    let llc = match tag {
        Some(_) => LLC_TAGGED,
        None if ipv6 => LLC_IPV6,
        None => LLC_IPV4,
    };
    let (start, end) = space.split_at_mut(llc.len());
    start.copy_from_slice(&llc);
    end.copy_from_slice(&tag.unwrap_or_default().to_be_bytes());
    let used = match tag {
        Some(_) => SHORTCUT_HEADER_MAX,
        None => llc.len(),
    };
    space.get(..used).unwrap_or(space)
}

mod device_type;
mod qos;
pub use device_type::DeviceType;
pub use qos::{FlowFilter, QosEntry};
