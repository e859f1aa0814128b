//! NHRP packets, and the frame that MPOA control packets share with them.
//!
//! A packet is a fixed part, then a mandatory part, then optional extensions. The mandatory part is a common
//! header with client information entries ([`Cie`]), or for an Error Indication the header of the error and
//! the packet that caused it. Lengths, offsets and the checksum are computed on encoding and verified on
//! decoding; everything else is kept, so that decode and encode give back the same octets.
//!
//! Source: RFC 2332 §5; facts book "NHRP" §1–§6. On ATM a packet follows [`LLC`] in an AAL5 SDU.

use crate::llc::LlcSnap;
use crate::{AtmAddress, DecodeError, ErrorKind, Reader};
use core::net::Ipv4Addr;

/// LLC/SNAP header of every NHRP and MPOA control packet: IANA OUI, PID 3.
pub const LLC: [u8; 8] = LlcSnap::Nhrp.header();
/// `ar$afn` of ATM addresses in NSAP form.
pub const AFN_NSAP: u16 = 3;
/// `ar$pro.type` of IPv4 (its ethertype).
pub const PROTOCOL_IPV4: u16 = 0x0800;
/// `ar$op.version` of NHRP.
pub const VERSION: u8 = 1;
/// Octets of the fixed part.
pub const FIXED_LEN: usize = 20;

/// `ar$op.type` values of NHRP itself. Source: RFC 2332 §5.2.
pub mod op {
    /// Resolution Request.
    pub const RESOLUTION_REQUEST: u8 = 1;
    /// Resolution Reply.
    pub const RESOLUTION_REPLY: u8 = 2;
    /// Registration Request.
    pub const REGISTRATION_REQUEST: u8 = 3;
    /// Registration Reply.
    pub const REGISTRATION_REPLY: u8 = 4;
    /// Purge Request.
    pub const PURGE_REQUEST: u8 = 5;
    /// Purge Reply.
    pub const PURGE_REPLY: u8 = 6;
    /// Error Indication.
    pub const ERROR_INDICATION: u8 = 7;
}

/// Bits of the flags field of the common header. Source: RFC 2332 §5.2.
pub mod flag {
    /// Resolution: the requester is a router (Q).
    pub const ROUTER: u16 = 0x8000;
    /// Resolution: authoritative answer wanted, or given (A).
    pub const AUTHORITATIVE: u16 = 0x4000;
    /// Resolution Reply: destination binding is stable (D).
    pub const DESTINATION_STABLE: u16 = 0x2000;
    /// Resolution: unique binding wanted (U).
    pub const UNIQUE: u16 = 0x1000;
    /// Resolution: source binding is stable (S).
    pub const SOURCE_STABLE: u16 = 0x0800;
    /// Registration: unique binding wanted (U).
    pub const REGISTRATION_UNIQUE: u16 = 0x8000;
    /// Purge: no reply wanted (N).
    pub const NO_REPLY: u16 = 0x8000;
}

/// Codes of a client information entry. Source: RFC 2332 §5.2.
pub mod code {
    /// Success.
    pub const OK: u8 = 0;
    /// Administratively prohibited.
    pub const PROHIBITED: u8 = 4;
    /// Insufficient resources.
    pub const RESOURCES: u8 = 5;
    /// No internetworking layer address to NBMA address binding exists.
    pub const NO_BINDING: u8 = 12;
    /// A binding exists, but it is not unique.
    pub const NOT_UNIQUE: u8 = 13;
    /// The unique internetworking layer address is already registered.
    pub const ALREADY_REGISTERED: u8 = 14;
}

/// Codes of an Error Indication. Source: RFC 2332 §5.2.7.
pub mod error {
    /// Unrecognized compulsory extension.
    pub const UNRECOGNIZED_EXTENSION: u16 = 1;
    /// NHRP loop detected.
    pub const LOOP: u16 = 3;
    /// Protocol address unreachable.
    pub const UNREACHABLE: u16 = 6;
    /// Protocol error.
    pub const PROTOCOL: u16 = 7;
    /// SDU size exceeded.
    pub const SDU_SIZE: u16 = 8;
    /// Invalid extension for this packet type.
    pub const INVALID_EXTENSION: u16 = 9;
    /// Reply to no outstanding request.
    pub const UNSOLICITED_REPLY: u16 = 10;
    /// Authentication failure.
    pub const AUTHENTICATION: u16 = 11;
    /// Hop count exceeded.
    pub const HOP_COUNT: u16 = 15;
}

/// Types of extensions (14 bits). Source: RFC 2332 §5.3.
pub mod ext {
    /// End of the list.
    pub const END: u16 = 0;
    /// Responder address.
    pub const RESPONDER: u16 = 3;
    /// Forward transit NHS record.
    pub const FORWARD_TRANSIT: u16 = 4;
    /// Reverse transit NHS record.
    pub const REVERSE_TRANSIT: u16 = 5;
    /// Authentication.
    pub const AUTHENTICATION: u16 = 7;
    /// Vendor private.
    pub const VENDOR: u16 = 8;
}

/// An NBMA address or sub-address with its type bit; at most 63 octets.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NbmaAddress {
    octets: Vec<u8>,
    e164: bool,
}

impl NbmaAddress {
    /// No address.
    pub const NONE: Self = Self {
        octets: Vec::new(),
        e164: false,
    };
    /// From octets; `None` if there are more than 63.
    #[must_use]
    pub fn new(octets: &[u8], e164: bool) -> Option<Self> {
        (octets.len() <= 63).then(|| Self {
            octets: octets.to_vec(),
            e164,
        })
    }
    /// The octets, empty if there is no address.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }
    /// The address as an AESA, if it is one of 20 octets.
    #[must_use]
    pub fn atm(&self) -> Option<AtmAddress> {
        if self.e164 {
            return None;
        }
        self.octets.as_slice().try_into().ok().map(AtmAddress)
    }
    /// The type/length octet: bit 6 is E.164, bits 5–0 the length.
    fn type_length(&self) -> u8 {
        // At most 63 by construction.
        self.octets.len() as u8 | if self.e164 { 0x40 } else { 0 }
    }
    fn decode(r: &mut Reader<'_>, tl: u8, field: &'static str) -> Result<Self, DecodeError> {
        let octets = r.take(field, usize::from(tl & 0x3f))?.to_vec();
        Ok(Self {
            octets,
            e164: tl & 0x40 != 0,
        })
    }
}

impl From<AtmAddress> for NbmaAddress {
    fn from(address: AtmAddress) -> Self {
        Self {
            octets: address.0.to_vec(),
            e164: false,
        }
    }
}

fn type_length(r: &mut Reader<'_>, field: &'static str) -> Result<u8, DecodeError> {
    let at = r.offset();
    let tl = r.u8(field)?;
    if tl & 0x80 != 0 {
        return Err(DecodeError::value(field, at, tl.into()));
    }
    Ok(tl)
}

/// A protocol address; at most 255 octets, empty if absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProtocolAddress(Vec<u8>);

impl ProtocolAddress {
    /// No address.
    pub const NONE: Self = Self(Vec::new());
    /// From octets; `None` if there are more than 255.
    #[must_use]
    pub fn new(octets: &[u8]) -> Option<Self> {
        (octets.len() <= 255).then(|| Self(octets.to_vec()))
    }
    /// The octets, empty if there is no address.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        &self.0
    }
    /// The address as IPv4, if it has 4 octets.
    #[must_use]
    pub fn ip(&self) -> Option<Ipv4Addr> {
        <[u8; 4]>::try_from(self.0.as_slice())
            .ok()
            .map(Ipv4Addr::from)
    }
    fn length(&self) -> u8 {
        // At most 255 by construction.
        self.0.len() as u8
    }
    fn decode(r: &mut Reader<'_>, len: u8, field: &'static str) -> Result<Self, DecodeError> {
        Ok(Self(r.take(field, len.into())?.to_vec()))
    }
}

impl From<Ipv4Addr> for ProtocolAddress {
    fn from(address: Ipv4Addr) -> Self {
        Self(address.octets().to_vec())
    }
}

/// A client information entry. Source: RFC 2332 §5.2.0.1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cie {
    /// Result ([`code`], and for MPOA `mpoa::code`).
    pub code: u8,
    /// Prefix length in bits; 0 and 255 stand for "none given".
    pub prefix: u8,
    /// Unused; kept.
    pub unused: u16,
    /// Largest transmission unit, octets; 0 is the default.
    pub mtu: u16,
    /// Holding time, s.
    pub holding_s: u16,
    /// Preference: higher is better.
    pub preference: u8,
    /// NBMA address of the client.
    pub nbma: NbmaAddress,
    /// Its sub-address.
    pub nbma_sub: NbmaAddress,
    /// Protocol address of the client.
    pub protocol: ProtocolAddress,
}

impl Cie {
    /// An entry that carries only a prefix length and a holding time.
    #[must_use]
    pub fn brief(prefix: u8, holding_s: u16) -> Self {
        Self {
            prefix,
            holding_s,
            ..Self::default()
        }
    }
    /// Appends the entry's octets.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend([self.code, self.prefix]);
        out.extend(self.unused.to_be_bytes());
        out.extend(self.mtu.to_be_bytes());
        out.extend(self.holding_s.to_be_bytes());
        out.extend([self.nbma.type_length(), self.nbma_sub.type_length()]);
        out.extend([self.protocol.length(), self.preference]);
        out.extend(self.nbma.octets());
        out.extend(self.nbma_sub.octets());
        out.extend(self.protocol.octets());
    }
    /// Decodes one entry; extensions of NHRP carry them too.
    ///
    /// # Errors
    /// If a field is short or a type/length octet has its reserved bit set.
    pub fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let code = r.u8("code")?;
        let prefix = r.u8("prefix length")?;
        let unused = r.u16("unused")?;
        let mtu = r.u16("maximum transmission unit")?;
        let holding_s = r.u16("holding time")?;
        let nbma_tl = type_length(r, "client address T/L")?;
        let sub_tl = type_length(r, "client sub-address T/L")?;
        let protocol_len = r.u8("client protocol length")?;
        let preference = r.u8("preference")?;
        Ok(Self {
            code,
            prefix,
            unused,
            mtu,
            holding_s,
            preference,
            nbma: NbmaAddress::decode(r, nbma_tl, "client NBMA address")?,
            nbma_sub: NbmaAddress::decode(r, sub_tl, "client NBMA sub-address")?,
            protocol: ProtocolAddress::decode(r, protocol_len, "client protocol address")?,
        })
    }
}

/// One extension: C bit, u bit and 14-bit type in one field, then the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// The type field as on the wire, with the C bit (0x8000) and the u bit (0x4000).
    pub type_field: u16,
    /// The value, at most 65535 octets.
    pub value: Vec<u8>,
}

impl Extension {
    /// The C bit.
    pub const COMPULSORY: u16 = 0x8000;
    /// An extension of type `kind` (14 bits) without the C bit.
    #[must_use]
    pub fn new(kind: u16, value: Vec<u8>) -> Self {
        Self {
            type_field: kind & 0x3fff,
            value,
        }
    }
    /// The same with the C bit: who does not know it must refuse the packet.
    #[must_use]
    pub fn compulsory(kind: u16, value: Vec<u8>) -> Self {
        Self {
            type_field: kind & 0x3fff | Self::COMPULSORY,
            value,
        }
    }
    /// The type, without C and u bits.
    #[must_use]
    pub fn kind(&self) -> u16 {
        self.type_field & 0x3fff
    }
    /// True if the C bit is set.
    #[must_use]
    pub fn is_compulsory(&self) -> bool {
        self.type_field & Self::COMPULSORY != 0
    }
}

/// Mandatory part of all packets except the Error Indication. Source: RFC 2332 §5.2.0.1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Common {
    /// Flags ([`flag`]).
    pub flags: u16,
    /// Request id; the sequence number of an MPOA Keep-Alive.
    pub request_id: u32,
    /// Source NBMA address.
    pub source_nbma: NbmaAddress,
    /// Source NBMA sub-address.
    pub source_sub: NbmaAddress,
    /// Source protocol address.
    pub source: ProtocolAddress,
    /// Destination protocol address.
    pub destination: ProtocolAddress,
    /// Client information entries.
    pub cies: Vec<Cie>,
}

/// Mandatory part of an Error Indication. Source: RFC 2332 §5.2.7.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorIndication {
    /// Unused; kept.
    pub unused: u16,
    /// What was wrong ([`error`]).
    pub code: u16,
    /// Where in the offending packet, octets from its start.
    pub offset: u16,
    /// NBMA address of the observer.
    pub source_nbma: NbmaAddress,
    /// Its sub-address.
    pub source_sub: NbmaAddress,
    /// Protocol address of the observer.
    pub source: ProtocolAddress,
    /// Protocol address of the offending packet's source.
    pub destination: ProtocolAddress,
    /// The offending packet.
    pub offending: Vec<u8>,
}

/// The mandatory part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Every type but 7.
    Common(Common),
    /// Type 7.
    Error(ErrorIndication),
}

/// An NHRP or MPOA control packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// `ar$afn`: kind of NBMA addresses.
    pub afn: u16,
    /// `ar$pro.type`.
    pub protocol: u16,
    /// `ar$pro.snap`; zero unless the protocol type is 0x0080.
    pub snap: [u8; 5],
    /// `ar$hopcnt`.
    pub hop_count: u8,
    /// `ar$op.type`: [`op`], or `mpoa::op` from 128 upwards. 7 if and only if the body is an error.
    pub op: u8,
    /// The mandatory part.
    pub body: Body,
    /// Extensions without the end marker; `None` if the packet has no extensions part at all.
    pub extensions: Option<Vec<Extension>>,
}

impl Packet {
    /// Hop count of packets that start here.
    pub const HOP_COUNT: u8 = 0x40;

    /// A packet for IPv4 over ATM without extensions.
    #[must_use]
    pub fn new(op: u8, common: Common) -> Self {
        Self {
            afn: AFN_NSAP,
            protocol: PROTOCOL_IPV4,
            snap: [0; 5],
            hop_count: Self::HOP_COUNT,
            op,
            body: Body::Common(common),
            extensions: None,
        }
    }
    /// The same packet with one more extension.
    #[must_use]
    pub fn with(mut self, extension: Extension) -> Self {
        self.extensions.get_or_insert_default().push(extension);
        self
    }
    /// The common header; `None` for an Error Indication.
    #[must_use]
    pub fn common(&self) -> Option<&Common> {
        match &self.body {
            Body::Common(common) => Some(common),
            Body::Error(_) => None,
        }
    }
    /// The first extension of type `kind`.
    #[must_use]
    pub fn extension(&self, kind: u16) -> Option<&Extension> {
        self.extensions.iter().flatten().find(|e| e.kind() == kind)
    }
    /// The reply to this request: next op code, fresh hop count, the same common header and extensions, and
    /// `cies` for its entries. `None` if this is no request.
    #[must_use]
    pub fn reply(&self, cies: Vec<Cie>) -> Option<Self> {
        let reply_op = match self.op {
            // NHRP requests are odd, MPOA requests even; keep-alive and trigger have no reply.
            1 | 3 | 5 | 128 | 130 | 134 => self.op + 1,
            _ => return None,
        };
        let common = Common {
            cies,
            ..self.common()?.clone()
        };
        Some(Self {
            op: reply_op,
            hop_count: Self::HOP_COUNT,
            body: Body::Common(common),
            ..self.clone()
        })
    }

    /// The packet's octets, with lengths, offset and checksum filled in. Without [`LLC`].
    ///
    /// A packet of more than 65535 octets cannot be expressed; nothing that this crate decodes comes near.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (nbma, sub) = match &self.body {
            Body::Common(c) => (&c.source_nbma, &c.source_sub),
            Body::Error(e) => (&e.source_nbma, &e.source_sub),
        };
        let mut out = Vec::with_capacity(128);
        out.extend(self.afn.to_be_bytes());
        out.extend(self.protocol.to_be_bytes());
        out.extend(self.snap);
        out.push(self.hop_count);
        out.extend([0; 6]);
        out.extend([VERSION, self.op, nbma.type_length(), sub.type_length()]);
        match &self.body {
            Body::Common(c) => encode_common(c, &mut out),
            Body::Error(e) => encode_error(e, &mut out),
        }
        let mut ext_offset = 0_u16;
        if let (Some(list), Body::Common(_)) = (&self.extensions, &self.body) {
            ext_offset = out.len() as u16;
            for e in list {
                out.extend(e.type_field.to_be_bytes());
                out.extend((e.value.len() as u16).to_be_bytes());
                out.extend(&e.value);
            }
            out.extend([0x80, 0, 0, 0]);
        }
        let size = out.len() as u16;
        put_u16(&mut out, 10, size);
        put_u16(&mut out, 14, ext_offset);
        let sum = internet_checksum(&out);
        put_u16(&mut out, 12, sum);
        out
    }
    /// [`LLC`] and the packet: an AAL5 SDU.
    #[must_use]
    pub fn to_sdu(&self) -> Vec<u8> {
        let mut sdu = LLC.to_vec();
        sdu.extend(self.encode());
        sdu
    }

    /// Decodes a packet that fills `octets` exactly (without [`LLC`]).
    ///
    /// Order of the checks: length, checksum, version, type, bounds of the parts, extensions.
    ///
    /// # Errors
    /// The first field that is wrong.
    pub fn decode(octets: &[u8]) -> Result<Self, DecodeError> {
        let fixed = Fixed::decode(octets)?;
        let (mandatory, extensions) = fixed.split(octets)?;
        let mut r = Reader::new(mandatory);
        r.take("fixed part", FIXED_LEN)?;
        let body = match fixed.op {
            op::ERROR_INDICATION => Body::Error(decode_error(&mut r, &fixed)?),
            _ => Body::Common(decode_common(&mut r, &fixed)?),
        };
        let extensions = match extensions {
            None => None,
            Some(at) => Some(decode_extensions(octets, at)?),
        };
        Ok(Self {
            afn: fixed.afn,
            protocol: fixed.protocol,
            snap: fixed.snap,
            hop_count: fixed.hop_count,
            op: fixed.op,
            body,
            extensions,
        })
    }
    /// Decodes an AAL5 SDU that starts with [`LLC`].
    ///
    /// # Errors
    /// `Value` for another header, else as [`Self::decode`] with offsets from the packet's start.
    pub fn from_sdu(sdu: &[u8]) -> Result<Self, DecodeError> {
        match sdu.strip_prefix(&LLC) {
            Some(packet) => Self::decode(packet),
            None => Err(DecodeError::value("LLC/SNAP header", 0, 0)),
        }
    }

    /// The Error Indication about `offending` (a packet without [`LLC`]), or `None` if it is too broken to name
    /// its source, or is itself an Error Indication (RFC 2332 §5.2.7: never an error about an error).
    #[must_use]
    pub fn error_about(
        offending: &[u8],
        code: u16,
        offset: u16,
        observer_nbma: AtmAddress,
        observer: ProtocolAddress,
    ) -> Option<Self> {
        let mut r = Reader::new(offending);
        let fixed = Fixed::fields(&mut r).ok()?;
        if fixed.op == op::ERROR_INDICATION {
            return None;
        }
        let common = decode_common_header(&mut r, &fixed).ok()?;
        Some(Self {
            afn: fixed.afn,
            protocol: fixed.protocol,
            snap: fixed.snap,
            hop_count: Self::HOP_COUNT,
            op: op::ERROR_INDICATION,
            body: Body::Error(ErrorIndication {
                unused: 0,
                code,
                offset,
                source_nbma: observer_nbma.into(),
                source_sub: NbmaAddress::NONE,
                source: observer,
                destination: common.source,
                offending: offending.to_vec(),
            }),
            extensions: None,
        })
    }
}

/// The fixed part as read.
struct Fixed {
    afn: u16,
    protocol: u16,
    snap: [u8; 5],
    hop_count: u8,
    size: u16,
    checksum: u16,
    ext_offset: u16,
    version: u8,
    op: u8,
    source_tl: u8,
    source_sub_tl: u8,
}

impl Fixed {
    fn fields(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            afn: r.u16("ar$afn")?,
            protocol: r.u16("ar$pro.type")?,
            snap: r.array("ar$pro.snap")?,
            hop_count: r.u8("ar$hopcnt")?,
            size: r.u16("ar$pktsz")?,
            checksum: r.u16("ar$chksum")?,
            ext_offset: r.u16("ar$extoff")?,
            version: r.u8("ar$op.version")?,
            op: r.u8("ar$op.type")?,
            source_tl: type_length(r, "ar$shtl")?,
            source_sub_tl: type_length(r, "ar$sstl")?,
        })
    }
    fn decode(octets: &[u8]) -> Result<Self, DecodeError> {
        let fixed = Self::fields(&mut Reader::new(octets))?;
        if usize::from(fixed.size) != octets.len() {
            return Err(DecodeError::value("ar$pktsz", 10, fixed.size.into()));
        }
        if fixed.checksum != checksum_without_field(octets) {
            let kind = ErrorKind::Checksum;
            return Err(DecodeError {
                field: "ar$chksum",
                offset: 12,
                kind,
            });
        }
        if fixed.version != VERSION {
            return Err(DecodeError::value(
                "ar$op.version",
                16,
                fixed.version.into(),
            ));
        }
        if !matches!(fixed.op, 1..=7 | 128..=135) {
            return Err(DecodeError::value("ar$op.type", 17, fixed.op.into()));
        }
        Ok(fixed)
    }
    /// Fixed and mandatory part, and where the extensions start.
    fn split<'a>(&self, octets: &'a [u8]) -> Result<(&'a [u8], Option<usize>), DecodeError> {
        let at = usize::from(self.ext_offset);
        let bad = DecodeError::value("ar$extoff", 14, self.ext_offset.into());
        match at {
            0 => Ok((octets, None)),
            // RFC 2332 §5.2.7: an Error Indication has no extensions.
            _ if at < FIXED_LEN || self.op == op::ERROR_INDICATION => Err(bad),
            _ => octets.get(..at).map(|part| (part, Some(at))).ok_or(bad),
        }
    }
}

fn decode_common_header(r: &mut Reader<'_>, fixed: &Fixed) -> Result<Common, DecodeError> {
    let source_len = r.u8("source protocol length")?;
    let destination_len = r.u8("destination protocol length")?;
    Ok(Common {
        flags: r.u16("flags")?,
        request_id: r.u32("request id")?,
        source_nbma: NbmaAddress::decode(r, fixed.source_tl, "source NBMA address")?,
        source_sub: NbmaAddress::decode(r, fixed.source_sub_tl, "source NBMA sub-address")?,
        source: ProtocolAddress::decode(r, source_len, "source protocol address")?,
        destination: ProtocolAddress::decode(r, destination_len, "destination protocol address")?,
        cies: Vec::new(),
    })
}

fn decode_common(r: &mut Reader<'_>, fixed: &Fixed) -> Result<Common, DecodeError> {
    let mut common = decode_common_header(r, fixed)?;
    while !r.is_empty() {
        common.cies.push(Cie::decode(r)?);
    }
    Ok(common)
}

fn encode_common(c: &Common, out: &mut Vec<u8>) {
    out.extend([c.source.length(), c.destination.length()]);
    out.extend(c.flags.to_be_bytes());
    out.extend(c.request_id.to_be_bytes());
    out.extend(c.source_nbma.octets());
    out.extend(c.source_sub.octets());
    out.extend(c.source.octets());
    out.extend(c.destination.octets());
    for cie in &c.cies {
        cie.encode(out);
    }
}

fn decode_error(r: &mut Reader<'_>, fixed: &Fixed) -> Result<ErrorIndication, DecodeError> {
    let source_len = r.u8("source protocol length")?;
    let destination_len = r.u8("destination protocol length")?;
    Ok(ErrorIndication {
        unused: r.u16("unused")?,
        code: r.u16("error code")?,
        offset: r.u16("error offset")?,
        source_nbma: NbmaAddress::decode(r, fixed.source_tl, "source NBMA address")?,
        source_sub: NbmaAddress::decode(r, fixed.source_sub_tl, "source NBMA sub-address")?,
        source: ProtocolAddress::decode(r, source_len, "source protocol address")?,
        destination: ProtocolAddress::decode(r, destination_len, "destination protocol address")?,
        offending: r.rest().to_vec(),
    })
}

fn encode_error(e: &ErrorIndication, out: &mut Vec<u8>) {
    out.extend([e.source.length(), e.destination.length()]);
    out.extend(e.unused.to_be_bytes());
    out.extend(e.code.to_be_bytes());
    out.extend(e.offset.to_be_bytes());
    out.extend(e.source_nbma.octets());
    out.extend(e.source_sub.octets());
    out.extend(e.source.octets());
    out.extend(e.destination.octets());
    out.extend(&e.offending);
}

/// Reads the list from offset `at` to its end marker, which must be the last thing in the packet.
fn decode_extensions(octets: &[u8], at: usize) -> Result<Vec<Extension>, DecodeError> {
    let mut r = Reader::new(octets);
    r.take("mandatory part", at)?;
    let mut list = Vec::new();
    loop {
        let at = r.offset();
        let type_field = r.u16("extension type")?;
        let len = r.u16("extension length")?;
        if type_field & 0x3fff == ext::END {
            if type_field != Extension::COMPULSORY {
                return Err(DecodeError::value(
                    "end of extensions",
                    at,
                    type_field.into(),
                ));
            }
            if len != 0 {
                return Err(DecodeError::value(
                    "end of extensions length",
                    at + 2,
                    len.into(),
                ));
            }
            r.finish("end of extensions")?;
            return Ok(list);
        }
        let value = r.take("extension value", len.into())?.to_vec();
        list.push(Extension { type_field, value });
    }
}

fn put_u16(out: &mut [u8], at: usize, value: u16) {
    if let Some(field) = out.get_mut(at..at + 2) {
        field.copy_from_slice(&value.to_be_bytes());
    }
}

fn ones_sum(octets: &[u8]) -> u64 {
    let (pairs, odd) = octets.as_chunks::<2>();
    let sum: u64 = pairs
        .iter()
        .map(|pair| u64::from(u16::from_be_bytes(*pair)))
        .sum();
    sum + odd.first().map_or(0, |last| u64::from(*last) << 8)
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The Internet checksum of `octets`, an odd last octet padded with zero. Source: RFC 1071.
///
/// Over octets that contain their own checksum it is 0 if they are intact.
#[must_use]
pub fn internet_checksum(octets: &[u8]) -> u16 {
    !fold(ones_sum(octets))
}

/// The checksum that belongs into octets 12 and 13.
fn checksum_without_field(octets: &[u8]) -> u16 {
    let field = octets.get(12..14).map_or(0, ones_sum);
    !fold(ones_sum(octets) - field)
}
