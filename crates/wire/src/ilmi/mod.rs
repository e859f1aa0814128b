//! Messages of the Integrated Local Management Interface: SNMPv1 in single AAL5 SDUs on VPI 0 VCI 16.
//!
//! **Format.** `SEQUENCE { version 0, community "ILMI", PDU }`, encoded with the Basic Encoding Rules, definite lengths
//! only (`ber.rs`). A PDU is GetRequest, GetNextRequest, GetResponse, SetRequest or Trap; all except the trap have one
//! shape ([`Request`]). A variable is an object identifier ([`Oid`]) and a [`Value`]; values of types that ILMI does
//! not use are kept as octets. The objects are named in [`mib`].
//!
//! **Bounds.** The standard limits a message to [`MAX_MESSAGE`] octets. The decoder also takes longer messages, with up
//! to [`MAX_BINDINGS`] variables and identifiers of at most [`Oid::MAX`] arcs.
//!
//! **Encoding.** Lengths and integers are written in the shortest form. Longer forms from peers are accepted.
//!
//! **Standards**: RFC 1157; ATM Forum af-ilmi-0065.000 (ILMI 4.0).
//!
//! **Not implemented**: SNMPv2 types and PDUs.

mod ber;
pub mod mib;
mod oid;
#[cfg(test)]
mod tests;

pub use oid::Oid;

use crate::{DecodeError, Reader};
use ber::{Tag, Writer};

/// Octets of the largest message. Source: ILMI 4.0 clause 6.
pub const MAX_MESSAGE: usize = 484;
/// The community of all messages.
pub const COMMUNITY: &[u8] = b"ILMI";
/// Most variables in a message that is accepted.
pub const MAX_BINDINGS: usize = 64;

/// The value of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// INTEGER.
    Integer(i32),
    /// OCTET STRING.
    Octets(Vec<u8>),
    /// NULL: no value, in requests.
    Null,
    /// OBJECT IDENTIFIER.
    Oid(Oid),
    /// IpAddress.
    IpAddress([u8; 4]),
    /// Counter.
    Counter(u32),
    /// Gauge.
    Gauge(u32),
    /// TimeTicks: hundredths of a second.
    TimeTicks(u32),
    /// Another type: its identifier octet and its content.
    Other(u8, Vec<u8>),
}

impl Value {
    /// The number, if it is an INTEGER.
    #[must_use]
    pub const fn integer(&self) -> Option<i32> {
        match self {
            Self::Integer(value) => Some(*value),
            _ => None,
        }
    }
    /// The octets, if it is an OCTET STRING.
    #[must_use]
    pub fn octets(&self) -> Option<&[u8]> {
        match self {
            Self::Octets(octets) => Some(octets),
            _ => None,
        }
    }
}

/// A variable: its name and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Name of the instance.
    pub name: Oid,
    /// Its value; of no meaning in Get and GetNext requests.
    pub value: Value,
}

impl Binding {
    /// A variable with a value.
    #[must_use]
    pub const fn new(name: Oid, value: Value) -> Self {
        Self { name, value }
    }
}

crate::named! {
    /// The kind of a request, or the response.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Kind {
        /// GetRequest: asks for the values of these variables.
        Get = "GetRequest",
        /// GetNextRequest: asks for the variables that follow these names.
        GetNext = "GetNextRequest",
        /// GetResponse: the response to any request.
        Response = "GetResponse",
        /// SetRequest: sets these variables to these values.
        Set = "SetRequest",
    }
}

/// The outcome of a request. Source: RFC 1157 §4.1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ErrorStatus(pub i32);

impl ErrorStatus {
    /// No error.
    pub const NO_ERROR: Self = Self(0);
    /// The answer does not fit into a message.
    pub const TOO_BIG: Self = Self(1);
    /// A variable does not exist.
    pub const NO_SUCH_NAME: Self = Self(2);
    /// The variable cannot have this value.
    pub const BAD_VALUE: Self = Self(3);
    /// The variable cannot be set.
    pub const READ_ONLY: Self = Self(4);
    /// Any other error.
    pub const GENERAL: Self = Self(5);
}

impl core::fmt::Display for ErrorStatus {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let names = [
            "noError",
            "tooBig",
            "noSuchName",
            "badValue",
            "readOnly",
            "genErr",
        ];
        match usize::try_from(self.0).ok().and_then(|n| names.get(n)) {
            Some(name) => f.write_str(name),
            None => write!(f, "error {}", self.0),
        }
    }
}

/// A request or a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The kind.
    pub kind: Kind,
    /// Chosen by the requester; the response has the same id.
    pub id: i32,
    /// The outcome, in a response.
    pub status: ErrorStatus,
    /// In a response with an error: the number of the faulty variable, counted from 1; 0 if no variable is at fault.
    pub index: i32,
    /// The variables.
    pub bindings: Vec<Binding>,
}

impl Request {
    /// A request.
    #[must_use]
    pub const fn new(kind: Kind, id: i32, bindings: Vec<Binding>) -> Self {
        Self {
            kind,
            id,
            status: ErrorStatus::NO_ERROR,
            index: 0,
            bindings,
        }
    }
}

/// An unsolicited notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trap {
    /// The kind of device that sends the trap.
    pub enterprise: Oid,
    /// IP address of the sender; 0.0.0.0 on an ILMI channel.
    pub agent: [u8; 4],
    /// The event, for example [`Trap::COLD_START`].
    pub generic: i32,
    /// The event, if `generic` is 6.
    pub specific: i32,
    /// Time of the event, in hundredths of a second since the sender started.
    pub time: u32,
    /// Variables that describe the event.
    pub bindings: Vec<Binding>,
}

impl Trap {
    /// The sender has restarted.
    pub const COLD_START: i32 = 0;
    /// Value of `generic` by which `specific` names the event.
    pub const ENTERPRISE: i32 = 6;
    /// `atmfVpcChange`: a permanent path has been added, removed or changed.
    pub const VPC_CHANGE: i32 = 1;
    /// `atmfVccChange`: a permanent channel has been added, removed or changed.
    pub const VCC_CHANGE: i32 = 2;

    /// A cold start.
    #[must_use]
    pub fn cold_start(time: u32) -> Self {
        Self {
            enterprise: mib::uni(&[]),
            agent: [0; 4],
            generic: Self::COLD_START,
            specific: 0,
            time,
            bindings: Vec::new(),
        }
    }
}

/// Content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pdu {
    /// A request of any kind, or a response.
    Request(Request),
    /// A trap.
    Trap(Trap),
}

/// A message of the community [`COMMUNITY`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message(pub Pdu);

impl Message {
    /// The octets of the message. There may be more than [`MAX_MESSAGE`]: then the sender has to split the request, or
    /// to answer `tooBig`.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        match &self.0 {
            Pdu::Request(request) => {
                put_bindings(&mut out, &request.bindings);
                out.integer(Tag::INTEGER, request.index.into());
                out.integer(Tag::INTEGER, request.status.0.into());
                out.integer(Tag::INTEGER, request.id.into());
                out.wrap(match request.kind {
                    Kind::Get => Tag::GET,
                    Kind::GetNext => Tag::GET_NEXT,
                    Kind::Response => Tag::RESPONSE,
                    Kind::Set => Tag::SET,
                });
            }
            Pdu::Trap(trap) => {
                put_bindings(&mut out, &trap.bindings);
                out.integer(Tag::TIME_TICKS, trap.time.into());
                out.integer(Tag::INTEGER, trap.specific.into());
                out.integer(Tag::INTEGER, trap.generic.into());
                out.octets(Tag::IP_ADDRESS, &trap.agent);
                out.oid(&trap.enterprise);
                out.wrap(Tag::TRAP);
            }
        }
        out.octets(Tag::OCTET_STRING, COMMUNITY);
        out.integer(Tag::INTEGER, 0);
        out.wrap(Tag::SEQUENCE);
        out.finish()
    }

    /// Decodes one SDU.
    ///
    /// # Errors
    /// The field that is wrong: `version`, `community`, `PDU` or a field inside the PDU.
    pub fn decode(sdu: &[u8]) -> Result<Self, DecodeError> {
        let mut outer = Reader::new(sdu);
        let mut message = ber::constructed(&mut outer, "message", Tag::SEQUENCE)?;
        outer.finish("message")?;
        let at = message.offset();
        let version = ber::integer(&mut message, "version")?;
        if version != 0 {
            return Err(DecodeError::value("version", at, version as u32));
        }
        let at = message.offset();
        let (tag, community) = ber::primitive(&mut message, "community")?;
        if tag != Tag::OCTET_STRING || community != COMMUNITY {
            return Err(DecodeError::value("community", at, tag.0.into()));
        }
        let at = message.offset();
        let (tag, mut body) = ber::any(&mut message, "PDU")?;
        message.finish("PDU")?;
        let kind = match tag {
            Tag::GET => Kind::Get,
            Tag::GET_NEXT => Kind::GetNext,
            Tag::RESPONSE => Kind::Response,
            Tag::SET => Kind::Set,
            Tag::TRAP => return trap(body).map(|trap| Self(Pdu::Trap(trap))),
            Tag(other) => return Err(DecodeError::value("PDU", at, other.into())),
        };
        let id = ber::integer(&mut body, "request-id")?;
        let status = ErrorStatus(ber::integer(&mut body, "error-status")?);
        let index = ber::integer(&mut body, "error-index")?;
        let bindings = bindings(&mut body)?;
        Ok(Self(Pdu::Request(Request {
            kind,
            id,
            status,
            index,
            bindings,
        })))
    }
}

fn trap(mut body: Reader<'_>) -> Result<Trap, DecodeError> {
    let enterprise = ber::oid(&mut body, "enterprise")?;
    let at = body.offset();
    let (_, agent) = ber::primitive(&mut body, "agent-addr")?;
    let agent = agent
        .try_into()
        .map_err(|_| DecodeError::short("agent-addr", at))?;
    let generic = ber::integer(&mut body, "generic-trap")?;
    let specific = ber::integer(&mut body, "specific-trap")?;
    let at = body.offset();
    let (_, time) = ber::primitive(&mut body, "time-stamp")?;
    let time = ber::unsigned(time).ok_or(DecodeError::short("time-stamp", at))?;
    Ok(Trap {
        enterprise,
        agent,
        generic,
        specific,
        time,
        bindings: bindings(&mut body)?,
    })
}

fn bindings(body: &mut Reader<'_>) -> Result<Vec<Binding>, DecodeError> {
    let mut list = ber::constructed(body, "variable-bindings", Tag::SEQUENCE)?;
    body.finish("PDU")?;
    let mut bindings = Vec::new();
    while !list.is_empty() {
        let at = list.offset();
        if bindings.len() == MAX_BINDINGS {
            return Err(DecodeError::value(
                "variable-bindings",
                at,
                MAX_BINDINGS as u32,
            ));
        }
        let mut one = ber::constructed(&mut list, "variable", Tag::SEQUENCE)?;
        let name = ber::oid(&mut one, "name")?;
        let value = value(&mut one)?;
        one.finish("variable")?;
        bindings.push(Binding { name, value });
    }
    Ok(bindings)
}

fn value(one: &mut Reader<'_>) -> Result<Value, DecodeError> {
    let at = one.offset();
    let short = DecodeError::short("value", at);
    let (tag, octets) = ber::primitive(one, "value")?;
    Ok(match tag {
        Tag::INTEGER => Value::Integer(ber::signed(octets).ok_or(short)?),
        Tag::OCTET_STRING => Value::Octets(octets.to_vec()),
        Tag::NULL if octets.is_empty() => Value::Null,
        Tag::OID => Value::Oid(Oid::from_ber(octets).ok_or(short)?),
        Tag::IP_ADDRESS => Value::IpAddress(octets.try_into().map_err(|_| short)?),
        Tag::COUNTER => Value::Counter(ber::unsigned(octets).ok_or(short)?),
        Tag::GAUGE => Value::Gauge(ber::unsigned(octets).ok_or(short)?),
        Tag::TIME_TICKS => Value::TimeTicks(ber::unsigned(octets).ok_or(short)?),
        Tag(other) => Value::Other(other, octets.to_vec()),
    })
}

/// Writes the list back to front, like all of [`Writer`].
fn put_bindings(out: &mut Writer, bindings: &[Binding]) {
    let end = out.mark();
    for binding in bindings.iter().rev() {
        let end = out.mark();
        match &binding.value {
            Value::Integer(value) => out.integer(Tag::INTEGER, (*value).into()),
            Value::Octets(octets) => out.octets(Tag::OCTET_STRING, octets),
            Value::Null => out.octets(Tag::NULL, &[]),
            Value::Oid(oid) => out.oid(oid),
            Value::IpAddress(address) => out.octets(Tag::IP_ADDRESS, address),
            Value::Counter(value) => out.integer(Tag::COUNTER, (*value).into()),
            Value::Gauge(value) => out.integer(Tag::GAUGE, (*value).into()),
            Value::TimeTicks(value) => out.integer(Tag::TIME_TICKS, (*value).into()),
            Value::Other(tag, octets) => out.octets(Tag(*tag), octets),
        }
        out.oid(&binding.name);
        out.wrap_from(end, Tag::SEQUENCE);
    }
    out.wrap_from(end, Tag::SEQUENCE);
}
