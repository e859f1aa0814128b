//! Information elements as values: one variant per element in use, octets for the rest.

use super::bearer::{Bearer, CauseIe, ConnectionId, QosClass};
use super::fields::{self, Fields};
use super::number::{Number, Subaddress};
use super::table::id;
use super::{Contents, Element, Instruction};
use crate::{Blli, DecodeError, Reader};
use smallvec::smallvec;

/// Class of a restart. Source: Q.2931 §4.5.20.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartClass {
    /// One virtual channel, named by a connection identifier.
    Channel = 0,
    /// All virtual channels of one virtual path, named by a connection identifier.
    Path = 1,
    /// All virtual channels of this interface.
    All = 2,
}

/// AAL parameters. Source: Q.2931 §4.5.5.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Aal {
    /// AAL1 with the fields of [`fields::AAL1`].
    Aal1(Fields),
    /// AAL3/4 with the fields of [`fields::AAL34`].
    Aal34(Fields),
    /// AAL5 with the fields of [`fields::AAL5`].
    Aal5(Fields),
    /// Voice (0), AAL2 (2), user defined (0x10): type and octets.
    Other(u8, Vec<u8>),
}

/// AAL type of an AAL that the users define. Source: Q.2931 §4.5.5.
const USER_DEFINED: u8 = 0x10;

impl Aal {
    /// Single cells (AAL0): the standard has no type for them, so they are an AAL that the users define, with four
    /// octets of information, which are 0 here. Source: Q.2931 §4.5.5.
    #[must_use]
    pub fn cells() -> Self {
        Self::Other(USER_DEFINED, vec![0; 4])
    }
    /// True for an AAL that the users define, which single cells are.
    #[must_use]
    pub const fn is_user_defined(&self) -> bool {
        matches!(self, Self::Other(USER_DEFINED, _))
    }
    /// AAL5 with the largest SDU of each direction and the null SSCS.
    #[must_use]
    pub fn aal5(forward_max_sdu: u16, backward_max_sdu: u16) -> Self {
        let fields = Fields::new().with(0x8c, forward_max_sdu.into());
        let fields = fields.with(0x81, backward_max_sdu.into());
        Self::Aal5(fields.with(0x84, 0))
    }
    /// Largest SDU (forward, backward) of an AAL5 connection, if given.
    #[must_use]
    pub fn max_sdu(&self) -> Option<(u16, u16)> {
        let Self::Aal5(fields) = self else {
            return None;
        };
        // Two octets on the wire, so the conversions cannot fail.
        let get = |id| fields.get(id).and_then(|v| u16::try_from(v).ok());
        Some((get(0x8c)?, get(0x81)?))
    }
}

/// An information element as a value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants have the names of their elements")]
pub enum Ie {
    Cause(CauseIe),
    /// 0..=14, or 0x3d, 0x3e for the global call reference.
    CallState(u8),
    /// Uninterpreted contents.
    Notification(Vec<u8>),
    TransitDelay {
        /// Coded by the ATM Forum.
        forum: bool,
        /// Fields of [`fields::DELAY`].
        fields: Fields,
    },
    ConnectedNumber(Number),
    ConnectedSubaddress(Subaddress),
    EndpointReference {
        /// True in messages sent to the side that chose the value.
        flag: bool,
        /// 0..=0x7fff.
        value: u16,
    },
    EndpointState(u8),
    Aal(Aal),
    /// Fields of [`fields::TRAFFIC`].
    Traffic(Fields),
    ConnectionId(ConnectionId),
    Qos(QosClass),
    /// Type and at most 8 octets.
    Bhli {
        /// 0 ISO, 1 user, 2 profile (UNI 3.0), 3 vendor, 4 teleservice.
        kind: u8,
        /// The information.
        info: Vec<u8>,
    },
    Bearer(Bearer),
    Blli(Blli),
    SendingComplete,
    /// 2 prioritised list, 10 last-in-first-out stack.
    Repeat(u8),
    CallingNumber(Number),
    CallingSubaddress(Subaddress),
    CalledNumber(Number),
    CalledSubaddress(Subaddress),
    TransitNetwork {
        /// First octet: 0x80 ‖ type ‖ plan.
        kind: u8,
        /// IA5 digits.
        digits: Vec<u8>,
    },
    Restart(RestartClass),
    UserUser(Vec<u8>),
    GenericIdentifier(Vec<u8>),
    /// Fields of [`fields::TRAFFIC`].
    MinimumTraffic(Fields),
    /// Fields of [`fields::TRAFFIC`].
    AlternativeTraffic(Fields),
    /// Fields of [`fields::ABR_SETUP`].
    AbrSetup(Fields),
    /// Fields of [`fields::ABR_ADDITIONAL`].
    AbrAdditional(Fields),
    LijCallId(u32),
    LijParameters(u8),
    LeafSequence(u32),
    ConnectionScope {
        /// 1 organisational.
        kind: u8,
        /// 1..=15.
        scope: u8,
    },
    ExtendedQos {
        /// 0 user, 1 intermediate network.
        origin: u8,
        /// Fields of [`fields::EXTENDED_QOS`].
        fields: Fields,
    },
    MinimumCellRate {
        /// 0 user, 1 intermediate network.
        origin: u8,
        /// Fields of [`fields::MINIMUM_RATE`].
        fields: Fields,
    },
    /// Any other element, known or not.
    Raw(Element),
}

/// The value of an element.
///
/// # Errors
/// Where and why its contents are not valid (Q.2931 "information element content error").
pub fn decode(element: &Element) -> Result<Ie, DecodeError> {
    let mut r = element.reader();
    let coding = element.instruction.coding();
    let want = match element.id {
        id::CAUSE | id::TRANSIT_DELAY | id::QOS_PARAMETER => coding == 0 || coding == 3,
        id::ABR_ADDITIONAL | id::CALLED_SOFT_PVC..=id::MINIMUM_CELL_RATE => coding == 3,
        // Some senders of LIJ and scope elements use the ITU code. A strict check here would lose calls.
        _ => true,
    };
    if !want {
        return Err(DecodeError::value("coding standard", 1, coding.into()));
    }
    let ie = decode_contents(element, coding, &mut r)?;
    r.finish("information element")?;
    Ok(ie)
}

fn decode_contents(e: &Element, coding: u8, r: &mut Reader<'_>) -> Result<Ie, DecodeError> {
    Ok(match e.id {
        id::CAUSE => Ie::Cause(CauseIe::decode(r, coding)?),
        id::CALL_STATE => Ie::CallState(r.u8("call state")? & 0x3f),
        id::NOTIFICATION => Ie::Notification(r.rest().to_vec()),
        id::TRANSIT_DELAY => Ie::TransitDelay {
            forum: coding == 3,
            fields: Fields::decode(r, fields::DELAY)?,
        },
        id::CONNECTED_NUMBER => Ie::ConnectedNumber(Number::decode(r, true)?),
        id::CONNECTED_SUBADDRESS => Ie::ConnectedSubaddress(subaddress(r)?),
        id::ENDPOINT_REFERENCE => endpoint_reference(r)?,
        id::ENDPOINT_STATE => Ie::EndpointState(r.u8("endpoint state")? & 0x3f),
        id::AAL_PARAMETERS => Ie::Aal(aal(r)?),
        id::TRAFFIC_DESCRIPTOR => Ie::Traffic(Fields::decode(r, fields::TRAFFIC)?),
        id::CONNECTION_ID => Ie::ConnectionId(ConnectionId::decode(r)?),
        id::QOS_PARAMETER => qos_class(r, coding)?,
        id::BHLI => bhli(r)?,
        id::BEARER_CAPABILITY => Ie::Bearer(Bearer::decode(r)?),
        id::BLLI => Ie::Blli(blli(r)?),
        id::SENDING_COMPLETE => sending_complete(r)?,
        id::REPEAT_INDICATOR => Ie::Repeat(r.u8("repeat indication")? & 15),
        id::CALLING_NUMBER => Ie::CallingNumber(Number::decode(r, true)?),
        id::CALLING_SUBADDRESS => Ie::CallingSubaddress(subaddress(r)?),
        id::CALLED_NUMBER => Ie::CalledNumber(Number::decode(r, false)?),
        id::CALLED_SUBADDRESS => Ie::CalledSubaddress(subaddress(r)?),
        id::TRANSIT_NETWORK => Ie::TransitNetwork {
            kind: r.u8("type and plan")?,
            digits: r.rest().to_vec(),
        },
        id::RESTART_INDICATOR => restart(r)?,
        id::USER_USER => Ie::UserUser(r.rest().to_vec()),
        id::GENERIC_IDENTIFIER => Ie::GenericIdentifier(r.rest().to_vec()),
        id::MINIMUM_TRAFFIC => Ie::MinimumTraffic(Fields::decode(r, fields::TRAFFIC)?),
        id::ALTERNATIVE_TRAFFIC => Ie::AlternativeTraffic(Fields::decode(r, fields::TRAFFIC)?),
        id::ABR_SETUP => Ie::AbrSetup(Fields::decode(r, fields::ABR_SETUP)?),
        id::ABR_ADDITIONAL => Ie::AbrAdditional(Fields::decode(r, fields::ABR_ADDITIONAL)?),
        id::LIJ_CALL_ID => {
            r.u8("LIJ call identifier type")?;
            Ie::LijCallId(r.u32("LIJ call identifier")?)
        }
        id::LIJ_PARAMETERS => Ie::LijParameters(r.u8("LIJ parameters")?),
        id::LEAF_SEQUENCE => Ie::LeafSequence(r.u32("leaf sequence number")?),
        id::CONNECTION_SCOPE => Ie::ConnectionScope {
            kind: r.u8("type of connection scope")? & 0x7f,
            scope: r.u8("connection scope")?,
        },
        id::EXTENDED_QOS => Ie::ExtendedQos {
            origin: r.u8("origin")?,
            fields: Fields::decode(r, fields::EXTENDED_QOS)?,
        },
        id::MINIMUM_CELL_RATE => Ie::MinimumCellRate {
            origin: r.u8("origin")?,
            fields: Fields::decode(r, fields::MINIMUM_RATE)?,
        },
        _ => {
            r.rest();
            Ie::Raw(e.clone())
        }
    })
}

fn subaddress(r: &mut Reader<'_>) -> Result<Subaddress, DecodeError> {
    Ok(Subaddress {
        kind: r.u8("type of subaddress")?,
        octets: r.rest().to_vec(),
    })
}

fn endpoint_reference(r: &mut Reader<'_>) -> Result<Ie, DecodeError> {
    let kind = r.u8("endpoint reference type")?;
    if kind != 0 {
        return Err(DecodeError::value(
            "endpoint reference type",
            0,
            kind.into(),
        ));
    }
    let value = r.u16("endpoint reference")?;
    Ok(Ie::EndpointReference {
        flag: value & 0x8000 != 0,
        value: value & 0x7fff,
    })
}

fn aal(r: &mut Reader<'_>) -> Result<Aal, DecodeError> {
    let aal = match r.u8("AAL type")? {
        1 => Aal::Aal1(Fields::decode(r, fields::AAL1)?),
        3 => Aal::Aal34(Fields::decode(r, fields::AAL34)?),
        5 => {
            let fields = Fields::decode(r, fields::AAL5)?;
            // Both SDU sizes are present, or neither is.
            if fields.has(0x8c) != fields.has(0x81) {
                return Err(DecodeError::short("maximum SDU size", r.offset()));
            }
            Aal::Aal5(fields)
        }
        kind @ (0 | 2 | 0x10) => Aal::Other(kind, r.rest().to_vec()),
        kind => return Err(DecodeError::value("AAL type", 0, kind.into())),
    };
    Ok(aal)
}

fn qos_class(r: &mut Reader<'_>, coding: u8) -> Result<Ie, DecodeError> {
    let class = QosClass {
        forum: coding == 3,
        forward: r.u8("forward QoS class")?,
        backward: r.u8("backward QoS class")?,
    };
    let most = if class.forum { 4 } else { 0 };
    let worst = class.forward.max(class.backward);
    if worst > most {
        return Err(DecodeError::value("QoS class", 0, worst.into()));
    }
    Ok(Ie::Qos(class))
}

fn bhli(r: &mut Reader<'_>) -> Result<Ie, DecodeError> {
    let kind = r.u8("high layer information type")?;
    if kind & 0x80 == 0 {
        return Err(DecodeError::value(
            "high layer information type",
            0,
            kind.into(),
        ));
    }
    Ok(Ie::Bhli {
        kind: kind & 0x7f,
        info: r.rest().to_vec(),
    })
}

fn sending_complete(r: &mut Reader<'_>) -> Result<Ie, DecodeError> {
    let octet = r.u8("sending complete indication")?;
    if octet != 0xa1 {
        return Err(DecodeError::value(
            "sending complete indication",
            0,
            octet.into(),
        ));
    }
    Ok(Ie::SendingComplete)
}

fn restart(r: &mut Reader<'_>) -> Result<Ie, DecodeError> {
    let class = r.u8("restart class")?;
    Ok(Ie::Restart(match class & 7 {
        0 => RestartClass::Channel,
        1 => RestartClass::Path,
        2 => RestartClass::All,
        _ => return Err(DecodeError::value("restart class", 0, class.into())),
    }))
}

/// B-LLI: groups of layers 1, 2, 3 in rising order. An extension bit marks the last octet of a group.
fn blli(r: &mut Reader<'_>) -> Result<Blli, DecodeError> {
    let contents = r.rest();
    let bad = |at: usize| {
        let value = contents.get(at).copied().unwrap_or_default();
        DecodeError::value("B-LLI", at, value.into())
    };
    let mut at = 0;
    let mut layer = 0;
    while let Some(first) = contents.get(at) {
        let this = first >> 5 & 3;
        if this <= layer {
            return Err(bad(at));
        }
        layer = this;
        let mut last = at;
        while contents.get(last).ok_or_else(|| bad(at))? & 0x80 == 0 {
            last += 1;
        }
        // TR 9577 with IPI 0x80 (SNAP): SNAP identifier, OUI and PID follow behind the extension bit.
        if this == 3 && first & 0x1f == 0x0b && contents.len() == last + 7 {
            last += 6;
        }
        at = last + 1;
    }
    Blli::from_octets(contents).ok_or_else(|| bad(0))
}

impl Ie {
    /// The element for this value.
    #[must_use]
    pub fn encode(&self) -> Element {
        let (id, contents): (u8, Contents) = match self {
            Self::Raw(element) => return element.clone(),
            Self::Cause(v) => (id::CAUSE, v.encode()),
            Self::CallState(v) => (id::CALL_STATE, smallvec![v & 0x3f]),
            Self::Notification(v) => (id::NOTIFICATION, Contents::from_slice(v)),
            Self::TransitDelay { fields, .. } => {
                (id::TRANSIT_DELAY, list(&[], fields, fields::DELAY))
            }
            Self::ConnectedNumber(v) => (id::CONNECTED_NUMBER, v.encode()),
            Self::ConnectedSubaddress(v) => (id::CONNECTED_SUBADDRESS, tagged(v.kind, &v.octets)),
            Self::EndpointReference { flag, value } => {
                let word = value & 0x7fff | u16::from(*flag) << 15;
                (id::ENDPOINT_REFERENCE, tagged(0, &word.to_be_bytes()))
            }
            Self::EndpointState(v) => (id::ENDPOINT_STATE, smallvec![v & 0x3f]),
            Self::Aal(v) => (id::AAL_PARAMETERS, encode_aal(v)),
            Self::Traffic(v) => (id::TRAFFIC_DESCRIPTOR, list(&[], v, fields::TRAFFIC)),
            Self::ConnectionId(v) => (id::CONNECTION_ID, v.encode()),
            Self::Qos(v) => (id::QOS_PARAMETER, smallvec![v.forward, v.backward]),
            Self::Bhli { kind, info } => (id::BHLI, tagged(kind | 0x80, info)),
            Self::Bearer(v) => (id::BEARER_CAPABILITY, v.encode()),
            Self::Blli(v) => (id::BLLI, Contents::from_slice(v.octets())),
            Self::SendingComplete => (id::SENDING_COMPLETE, smallvec![0xa1]),
            Self::Repeat(v) => (id::REPEAT_INDICATOR, smallvec![v | 0x80]),
            Self::CallingNumber(v) => (id::CALLING_NUMBER, v.encode()),
            Self::CallingSubaddress(v) => (id::CALLING_SUBADDRESS, tagged(v.kind, &v.octets)),
            Self::CalledNumber(v) => (id::CALLED_NUMBER, v.encode()),
            Self::CalledSubaddress(v) => (id::CALLED_SUBADDRESS, tagged(v.kind, &v.octets)),
            Self::TransitNetwork { kind, digits } => (id::TRANSIT_NETWORK, tagged(*kind, digits)),
            Self::Restart(class) => (id::RESTART_INDICATOR, smallvec![0x80 | *class as u8]),
            Self::UserUser(v) => (id::USER_USER, Contents::from_slice(v)),
            Self::GenericIdentifier(v) => (id::GENERIC_IDENTIFIER, Contents::from_slice(v)),
            Self::MinimumTraffic(v) => (id::MINIMUM_TRAFFIC, list(&[], v, fields::TRAFFIC)),
            Self::AlternativeTraffic(v) => (id::ALTERNATIVE_TRAFFIC, list(&[], v, fields::TRAFFIC)),
            Self::AbrSetup(v) => (id::ABR_SETUP, list(&[], v, fields::ABR_SETUP)),
            Self::AbrAdditional(v) => (id::ABR_ADDITIONAL, list(&[], v, fields::ABR_ADDITIONAL)),
            Self::LijCallId(v) => (id::LIJ_CALL_ID, tagged(0x80, &v.to_be_bytes())),
            Self::LijParameters(v) => (id::LIJ_PARAMETERS, smallvec![*v]),
            Self::LeafSequence(v) => (id::LEAF_SEQUENCE, Contents::from_slice(&v.to_be_bytes())),
            Self::ConnectionScope { kind, scope } => {
                (id::CONNECTION_SCOPE, smallvec![kind | 0x80, *scope])
            }
            Self::ExtendedQos { origin, fields } => (
                id::EXTENDED_QOS,
                list(&[*origin], fields, fields::EXTENDED_QOS),
            ),
            Self::MinimumCellRate { origin, fields } => (
                id::MINIMUM_CELL_RATE,
                list(&[*origin], fields, fields::MINIMUM_RATE),
            ),
        };
        let mut element = Element::new(id, contents);
        match self {
            Self::Cause(v) if v.coding == 3 => element.instruction = Instruction::FORUM,
            Self::Qos(v) if v.forum => element.instruction = Instruction::FORUM,
            Self::TransitDelay { forum: true, .. } => element.instruction = Instruction::FORUM,
            _ => {}
        }
        element
    }
}

fn tagged(first: u8, rest: &[u8]) -> Contents {
    let mut out: Contents = smallvec![first];
    out.extend_from_slice(rest);
    out
}

fn list(head: &[u8], fields: &Fields, widths: fields::Widths) -> Contents {
    let mut out = Contents::from_slice(head);
    fields.encode_into(&mut out, widths);
    out
}

fn encode_aal(aal: &Aal) -> Contents {
    match aal {
        Aal::Aal1(f) => list(&[1], f, fields::AAL1),
        Aal::Aal34(f) => list(&[3], f, fields::AAL34),
        Aal::Aal5(f) => list(&[5], f, fields::AAL5),
        Aal::Other(kind, octets) => tagged(*kind, octets),
    }
}
