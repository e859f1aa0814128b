//! NHRP packets, and the frame that MPOA control packets share with them.
//!
//! A packet is a fixed part, then a mandatory part, then optional extensions. The mandatory part is a common header
//! with client information entries ([`Cie`]), or for an Error Indication the header of the error and the packet that
//! caused it. Encoding computes lengths, offsets and the checksum; decoding verifies them. All other fields are kept,
//! so that decode and encode give back the same octets.
//!
//! Source: RFC 2332 §5. On ATM a packet follows [`LLC`] in an AAL5 SDU.

mod address;
mod body;
mod entry;
mod header;

pub use address::{NbmaAddress, ProtocolAddress};
pub use body::{Common, ErrorIndication};
pub use entry::{Cie, Extension};
pub use header::internet_checksum;

use crate::llc::LlcSnap;
use crate::{AtmAddress, DecodeError, Reader};
use body::{decode_common, decode_common_header, decode_error, encode_common, encode_error};
use core::net::IpAddr;
use entry::decode_extensions;
use header::{Fixed, put_u16};

/// LLC/SNAP header of every NHRP and MPOA control packet: IANA OUI, PID 3.
pub const LLC: [u8; 8] = LlcSnap::Nhrp.header();
/// `ar$afn` of ATM addresses in NSAP form.
pub const AFN_NSAP: u16 = 3;
/// `ar$pro.type` of IPv4 (its ethertype).
pub const PROTOCOL_IPV4: u16 = 0x0800;
/// `ar$pro.type` of IPv6.
pub const PROTOCOL_IPV6: u16 = 0x86dd;
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
    /// Traffic Indication: a router of DMVPN tells that a shorter way exists. Its form is that of an Error Indication,
    /// and extensions may follow. Source: draft-detienne-dmvpn-01 §4.
    pub const TRAFFIC_INDICATION: u8 = 8;
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

    /// A code in words.
    #[must_use]
    pub const fn name(code: u16) -> &'static str {
        match code {
            UNRECOGNIZED_EXTENSION => "unrecognized compulsory extension",
            LOOP => "NHRP loop detected",
            UNREACHABLE => "protocol address unreachable",
            PROTOCOL => "protocol error",
            SDU_SIZE => "SDU size exceeded",
            INVALID_EXTENSION => "invalid extension",
            UNSOLICITED_REPLY => "reply to no outstanding request",
            AUTHENTICATION => "authentication failure",
            HOP_COUNT => "hop count exceeded",
            _ => "unknown code",
        }
    }
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
    /// Addresses of stations behind NAT, of Cisco and of FRR. Source: draft-detienne-dmvpn-01 §5.
    pub const NAT_ADDRESS: u16 = 9;
}

/// The mandatory part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Every packet type except 7 and 8.
    Common(Common),
    /// Packet types 7 and 8.
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
    /// `ar$op.type`: [`op`], or `mpoa::op` from 128 upwards. 7 or 8 if and only if the body is an error.
    pub op: u8,
    /// The mandatory part.
    pub body: Body,
    /// Extensions without the end marker; `None` if the packet has no extensions part at all.
    pub extensions: Option<Vec<Extension>>,
}

impl Packet {
    /// Hop count of packets that start here.
    pub const HOP_COUNT: u8 = 0x40;

    /// A packet for IP over ATM without extensions. The protocol is IPv6 if `common` has an address of 16 octets, else
    /// IPv4.
    #[must_use]
    pub fn new(op: u8, common: Common) -> Self {
        let entries = common.cies.iter().map(|cie| &cie.protocol);
        let own = [&common.source, &common.destination];
        let six = own
            .into_iter()
            .chain(entries)
            .any(|address| matches!(address.ip(), Some(IpAddr::V6(_))));
        Self {
            afn: AFN_NSAP,
            protocol: if six { PROTOCOL_IPV6 } else { PROTOCOL_IPV4 },
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
    /// The reply to this request: next op code, fresh hop count, the same common header and extensions, and `cies` for
    /// its entries. `None` if the packet is not a request with a reply.
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

    /// The packet's octets without [`LLC`], with lengths, offset and checksum filled in.
    ///
    /// A packet of more than 65535 octets cannot be encoded; every packet that this crate decodes is much shorter.
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
        if let (Some(list), true) = (&self.extensions, self.op != op::ERROR_INDICATION) {
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
            op::ERROR_INDICATION | op::TRAFFIC_INDICATION => {
                Body::Error(decode_error(&mut r, &fixed)?)
            }
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

    /// Type, and common header without entries, of a packet of which only the beginning is there. An Error Indication
    /// has as much of a packet as fits, and its length and checksum are those of the whole (RFC 2332 §5.2.7). In an
    /// Error Indication the request id is code and offset. `None` if not even the addresses are there.
    #[must_use]
    pub fn beginning(octets: &[u8]) -> Option<(u8, Common)> {
        let mut r = Reader::new(octets);
        let fixed = Fixed::fields(&mut r).ok()?;
        Some((fixed.op, decode_common_header(&mut r, &fixed).ok()?))
    }

    /// The Error Indication about `offending` (a packet without [`LLC`]). `None` if the packet is too damaged to name
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
