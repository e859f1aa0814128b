//! One information element: its header, its contents as octets, and the receiver's verdict.

use crate::Reader;

use super::table;
use smallvec::SmallVec;

/// The contents of an element. Those of the elements of a usual SETUP and CONNECT need no memory of their own.
pub type Contents = SmallVec<[u8; 24]>;

/// One information element, kept as octets so that a switch relays it unchanged.
///
/// ```text
/// | identifier | 1 coding(2) flag(1) pass-along(1) action(3) | length (16) | contents |
/// ```
/// Source: Q.2931 §4.5.1; UNI 3.1 §5.4.5.1.
#[derive(Debug, PartialEq, Eq)]
pub struct Element {
    /// Identifier, see [`super::id`].
    pub id: u8,
    /// Second octet: coding standard, flag and action, see [`Instruction`].
    pub instruction: Instruction,
    /// Octets behind the 4-octet header.
    pub contents: Contents,
}

impl Clone for Element {
    fn clone(&self) -> Self {
        Self {
            id: self.id,
            instruction: self.instruction,
            // The clone of a `SmallVec` goes octet by octet.
            contents: Contents::from_slice(&self.contents),
        }
    }
}

impl Element {
    /// Octets of the element header.
    pub const HEADER: usize = 4;

    /// An element with the coding standard that its identifier calls for and no explicit action.
    #[must_use]
    pub fn new(id: u8, contents: impl Into<Contents>) -> Self {
        let forum = table::definition(id).is_some_and(|d| d.coding == table::Coding::Forum);
        Self {
            id,
            instruction: if forum {
                Instruction::FORUM
            } else {
                Instruction::ITU
            },
            contents: contents.into(),
        }
    }
    /// Appends the element to a message; its length field is the length of the contents.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        // Contents come from a message, whose length has 16 bits, so they are never truncated here.
        let len = u16::try_from(self.contents.len()).unwrap_or(u16::MAX);
        out.extend([self.id, self.instruction.0]);
        out.extend(len.to_be_bytes());
        out.extend_from_slice(self.contents.get(..len.into()).unwrap_or_default());
    }
    /// A cursor over the contents.
    #[must_use]
    pub fn reader(&self) -> Reader<'_> {
        Reader::new(&self.contents)
    }
}

/// Second octet of an element: coding standard and what to do if the receiver cannot use the element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction(pub u8);

impl Instruction {
    /// ITU coding, no explicit action.
    pub const ITU: Self = Self(0x80);
    /// ATM Forum (network specific) coding, no explicit action.
    pub const FORUM: Self = Self(0xe0);

    /// Coding standard: 0 ITU, 1 ISO, 2 national, 3 network specific (ATM Forum).
    #[must_use]
    pub const fn coding(self) -> u8 {
        self.0 >> 5 & 3
    }
    /// The explicit action, if the flag asks for one. An undefined action value is the default one.
    #[must_use]
    pub const fn action(self) -> Option<Action> {
        if self.0 & 0x10 == 0 {
            return None;
        }
        match self.0 & 7 {
            0 => Some(Action::ClearCall),
            1 => Some(Action::DiscardElement),
            2 => Some(Action::DiscardElementReport),
            5 => Some(Action::DiscardMessage),
            6 => Some(Action::DiscardMessageReport),
            _ => None,
        }
    }
    /// True if a receiver that does not know the element is to forward it unchanged. Source: PNNI 1.0 §6.4.5.1.
    #[must_use]
    pub const fn pass_along(self) -> bool {
        self.0 & 0x08 != 0
    }
    /// The same with the pass-along request set.
    #[must_use]
    pub const fn with_pass_along(self) -> Self {
        Self(self.0 | 0x08)
    }
    /// The same coding with an explicit action.
    #[must_use]
    pub const fn with_action(self, action: Action) -> Self {
        Self(self.0 & 0xe8 | 0x10 | action as u8)
    }
}

/// The action that the sender of an element requests if the receiver does not understand it. Source: Q.2931 §4.5.1,
/// §5.7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// Clear the call.
    ClearCall = 0,
    /// Discard the element and go on.
    DiscardElement = 1,
    /// Discard the element, go on, and report STATUS.
    DiscardElementReport = 2,
    /// Ignore the message.
    DiscardMessage = 5,
    /// Ignore the message and report STATUS.
    DiscardMessageReport = 6,
}

/// The receiver's verdict on an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Understood.
    Good,
    /// Known, but its contents are not valid.
    BadContent,
    /// Known, but longer than its standard allows.
    TooLong,
    /// The message ends before the element does; `declared` is the length that it announced.
    Truncated {
        /// The length field.
        declared: u16,
    },
    /// The identifier is unknown.
    Unknown,
    /// Known, but not allowed in this message.
    Unexpected,
    /// Known and valid, but a repetition: only the first such element counts.
    Duplicate,
}
