//! Messages of UNI signalling: Q.2931 (point to point), Q.2971 (point to multipoint), ATM Forum UNI 3.0, 3.1
//! and 4.0.
//!
//! # Shape
//! A [`Message`] is a header and [`Element`]s. Elements stay octets, so that a switch relays unknown elements, and
//! decoding then encoding gives the same octets. [`Message::decode`] judges every element ([`Verdict`]) instead of
//! failing, because Q.2931 wants an answer about the bad ones. [`ie::decode`] and [`Ie::encode`] convert between an
//! element and its value. [`convert`] converts between a [`crate::Qos`] and the elements that carry it; [`Version`] has
//! the differences between the versions of the UNI.
//!
//! The tables of [`table`] define every element (name, largest length, coding) and every message (mandatory and
//! optional elements, how often each may occur).
//!
//! # Standards
//! ITU-T Q.2931 (02/95) §3–4, Q.2971 (10/95) §8, ATM Forum UNI 3.0/3.1 §5.3–5.4, UNI Signalling 4.0 §2–9,
//! PNNI 1.0 §6.4 (identifiers and lengths only).
//!
//! # Not implemented
//! Codeset shifts (an element in another codeset is judged by its identifier alone); contents of facility,
//! GIT, OAM traffic, DTL, crankback and soft PVC elements (kept as octets).

pub mod bearer;
pub mod convert;
pub mod element;
pub mod fields;
pub mod ie;
pub mod message;
pub mod number;
pub mod table;
pub mod user;
pub mod version;

pub use bearer::{Bearer, CauseIe, ConnectionId, QosClass};
pub use element::{Action, Contents, Element, Instruction, Verdict};
pub use fields::Fields;
pub use ie::{Aal, Ie, RestartClass};
pub use message::{CallRef, Decoded, Message};
pub use number::{Number, Screening, Subaddress};
pub use table::{MessageType, id};
pub use user::UserData;
pub use version::Version;
