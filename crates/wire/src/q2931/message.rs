//! A complete message: header and elements, with the verdict on each element.

use core::fmt;

use super::table::{MessageType, id};
use super::{Contents, Element, Ie, Verdict, ie, table};
use crate::{DecodeError, Reader};

/// Protocol discriminator of UNI signalling. Source: Q.2931 §4.2.
pub const PROTOCOL: u8 = 0x09;

/// Octets of the message header.
pub const HEADER: usize = 9;

/// A call reference: a 23-bit value, and a flag that tells which side chose it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallRef {
    /// False in messages of the side that chose the value, true in those sent to it.
    pub flag: bool,
    /// 0..=0x7f_ffff.
    pub value: u32,
}

impl CallRef {
    /// The global call reference (RESTART), as sent by the side that starts the procedure.
    pub const GLOBAL: u32 = 0;
    /// The dummy call reference (leaf initiated join).
    pub const DUMMY: u32 = 0x7f_ffff;
    /// Largest value for a call.
    pub const MAX: u32 = 0x7f_fffe;

    /// The reference that an answer carries.
    #[must_use]
    pub const fn answer(self) -> Self {
        Self {
            flag: !self.flag,
            ..self
        }
    }
}

impl fmt::Debug for CallRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.flag { "~" } else { "" }, self.value)
    }
}

impl fmt::Display for CallRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A message.
///
/// ```text
/// | 09 | 03 | flag(1) call reference(23) | type | 1 flag action | length (16) | elements .. |
/// ```
/// Source: Q.2931 §4.1–4.4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Call reference with its flag.
    pub call: CallRef,
    /// Message type.
    pub kind: MessageType,
    /// Octet 7: 0x80, flag 0x10, action in the two lowest bits.
    pub instruction: u8,
    /// The elements in order.
    pub elements: Vec<Element>,
}

/// A message from a peer, with the receiver's verdicts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The message. `elements` and `verdicts` have the same length.
    pub message: Message,
    /// One verdict per element.
    pub verdicts: Vec<Verdict>,
    /// Octets at the end that are less than an element header.
    pub tail: Vec<u8>,
    /// The length field disagrees with the octets that came.
    pub length_error: bool,
}

impl Message {
    /// A message without elements.
    #[must_use]
    pub const fn new(call: CallRef, kind: MessageType) -> Self {
        Self {
            call,
            kind,
            instruction: 0x80,
            elements: Vec::new(),
        }
    }
    /// The message with one more element.
    #[must_use]
    pub fn with(mut self, ie: &Ie) -> Self {
        self.elements.push(ie.encode());
        self
    }
    /// The message with these elements appended unchanged.
    #[must_use]
    pub fn with_elements(mut self, elements: impl IntoIterator<Item = Element>) -> Self {
        self.elements.extend(elements);
        self
    }
    /// The requested action if the message type is unknown: 0 clear, 1 discard, 2 discard and report STATUS; `None` if
    /// the flag is not set.
    #[must_use]
    pub const fn action(&self) -> Option<u8> {
        if self.instruction & 0x10 == 0 {
            None
        } else {
            Some(self.instruction & 3)
        }
    }
    /// The octets.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let octets = self
            .elements
            .iter()
            .map(|e| Element::HEADER + e.contents.len());
        let mut out = Vec::with_capacity(HEADER + octets.sum::<usize>());
        out.extend([PROTOCOL, 3]);
        let flag = if self.call.flag { 0x80_0000 } else { 0 };
        let reference = self.call.value & 0x7f_ffff | flag;
        out.extend(reference.to_be_bytes().get(1..).unwrap_or_default());
        out.extend([self.kind.0, self.instruction, 0, 0]);
        for element in &self.elements {
            element.encode_into(&mut out);
        }
        let len = u16::try_from(out.len() - HEADER).unwrap_or(u16::MAX);
        if let Some(field) = out.get_mut(7..HEADER) {
            field.copy_from_slice(&len.to_be_bytes());
        }
        out
    }

    /// Takes a message apart. Elements never make it fail: each gets its verdict.
    ///
    /// # Errors
    /// Only for messages that Q.2931 §5.6.1–5.6.3 wants ignored: too short, other protocol, odd call reference.
    pub fn decode(octets: &[u8]) -> Result<Decoded, DecodeError> {
        let mut r = Reader::new(octets);
        let protocol = r.u8("protocol discriminator")?;
        if protocol != PROTOCOL {
            let value = u32::from(protocol);
            return Err(DecodeError::value("protocol discriminator", 0, value));
        }
        let len = r.u8("length of call reference")?;
        if len != 3 {
            return Err(DecodeError::value(
                "length of call reference",
                1,
                len.into(),
            ));
        }
        let reference = r.u24("call reference")?;
        let call = CallRef {
            flag: reference & 0x80_0000 != 0,
            value: reference & 0x7f_ffff,
        };
        let kind = MessageType(r.u8("message type")?);
        let instruction = r.u8("message instruction")?;
        let declared = usize::from(r.u16("message length")?);
        let mut body = r.rest();
        let length_error = body.len() != declared;
        body = body.get(..declared).unwrap_or(body);
        let message = Self {
            call,
            kind,
            instruction,
            elements: Vec::new(),
        };
        Ok(decode_elements(message, body, length_error))
    }

    /// The type in the header of a message, without a look at anything else; `None` for other octets.
    #[must_use]
    pub const fn kind_in(octets: &[u8]) -> Option<MessageType> {
        match octets {
            [PROTOCOL, 3, _, _, _, kind, ..] => Some(MessageType(*kind)),
            _ => None,
        }
    }
    /// The first element with this identifier.
    #[must_use]
    pub fn find(&self, id: u8) -> Option<&Element> {
        self.elements.iter().find(|e| e.id == id)
    }
}

fn decode_elements(message: Message, body: &[u8], length_error: bool) -> Decoded {
    let mut decoded = Decoded {
        message,
        verdicts: Vec::new(),
        tail: Vec::new(),
        length_error,
    };
    let count = count_elements(body);
    decoded.message.elements.reserve_exact(count);
    decoded.verdicts.reserve_exact(count);
    let mut r = Reader::new(body);
    while r.remaining() >= Element::HEADER {
        // The loop condition guarantees these four octets.
        let Ok([id, instruction, high, low]) = r.array::<4>("element header") else {
            break;
        };
        let declared = u16::from_be_bytes([high, low]);
        let truncated = r.remaining() < usize::from(declared);
        let contents = if truncated {
            r.rest()
        } else {
            r.take("element", usize::from(declared)).unwrap_or_default()
        };
        let element = Element {
            id,
            instruction: super::Instruction(instruction),
            contents: Contents::from_slice(contents),
        };
        let verdict = if truncated {
            Verdict::Truncated { declared }
        } else {
            judge(&decoded, &element)
        };
        decoded.message.elements.push(element);
        decoded.verdicts.push(verdict);
    }
    decoded.tail = r.rest().to_vec();
    decoded
}

/// Number of elements, at most 16: room for more is made as they come.
fn count_elements(mut body: &[u8]) -> usize {
    let mut count = 0;
    while let ([_, _, high, low, rest @ ..], 0..16) = (body, count) {
        count += 1;
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        body = rest.get(length..).unwrap_or_default();
    }
    count
}

fn judge(so_far: &Decoded, element: &Element) -> Verdict {
    let Some(definition) = table::definition(element.id) else {
        return Verdict::Unknown;
    };
    if let Some(message) = so_far.message.kind.definition() {
        let most = usize::from(message.most(element.id));
        if most == 0 {
            return Verdict::Unexpected;
        }
        let earlier = so_far.message.elements.iter();
        if earlier.filter(|e| e.id == element.id).count() >= most {
            return Verdict::Duplicate;
        }
    }
    if Element::HEADER + element.contents.len() > definition.max {
        return Verdict::TooLong;
    }
    if ie::decode(element).is_err() {
        return Verdict::BadContent;
    }
    Verdict::Good
}

impl Decoded {
    /// Elements that are present but cannot be used, with their verdicts. Duplicates are not included.
    pub fn faults(&self) -> impl Iterator<Item = (&Element, Verdict)> {
        let pairs = self.message.elements.iter().zip(&self.verdicts);
        pairs.filter_map(|(element, verdict)| match verdict {
            Verdict::Good | Verdict::Duplicate => None,
            other => Some((element, *other)),
        })
    }
    /// Marks unknown elements as good if their sender set the pass-along request.
    ///
    /// Returns the number of those elements. Source: PNNI 1.0 §6.4.5.1.
    pub fn pass_along(&mut self) -> usize {
        let mut passed = 0;
        for (element, verdict) in self.message.elements.iter().zip(&mut self.verdicts) {
            if *verdict == Verdict::Unknown && element.instruction.pass_along() {
                *verdict = Verdict::Good;
                passed += 1;
            }
        }
        passed
    }
    /// The good elements in order.
    pub fn good(&self) -> impl Iterator<Item = &Element> {
        let pairs = self.message.elements.iter().zip(&self.verdicts);
        pairs.filter_map(|(element, verdict)| (*verdict == Verdict::Good).then_some(element))
    }
    /// The first good element with this identifier, decoded.
    #[must_use]
    pub fn ie(&self, id: u8) -> Option<Ie> {
        let element = self.good().find(|e| e.id == id)?;
        ie::decode(element).ok()
    }
    /// Identifiers of mandatory elements that are absent, even in a form that cannot be used.
    #[must_use]
    pub fn missing(&self) -> Vec<u8> {
        let Some(definition) = self.message.kind.definition() else {
            return Vec::new();
        };
        let none = |wanted| self.message.find(wanted).is_none();
        let mandatory = definition.mandatory.iter().copied();
        let mut missing: Vec<u8> = mandatory.filter(|id| none(*id)).collect();
        if definition.kind == MessageType::SETUP
            && none(id::QOS_PARAMETER)
            && none(id::EXTENDED_QOS)
        {
            missing.push(id::QOS_PARAMETER);
        }
        missing
    }
    /// The octets of the message. They are those that were received if `length_error` is false.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.message.encode();
        if let Some(Verdict::Truncated { declared }) = self.verdicts.last() {
            let contents = self.message.elements.last().map_or(0, |e| e.contents.len());
            let at = out.len() - contents - 2;
            if let Some(field) = out.get_mut(at..at + 2) {
                field.copy_from_slice(&declared.to_be_bytes());
            }
        }
        out.extend(&self.tail);
        let len = u16::try_from(out.len() - HEADER).unwrap_or(u16::MAX);
        if let Some(field) = out.get_mut(7..HEADER) {
            field.copy_from_slice(&len.to_be_bytes());
        }
        out
    }
}
