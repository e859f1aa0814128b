//! Messages of UNI signalling: Q.2931 (point to point), Q.2971 (point to multipoint), ATM Forum UNI 3.0, 3.1 and 4.0.

pub mod element;
pub mod ie;
pub mod table;
pub mod version;

pub use element::{Action, Element, Instruction, Verdict};
pub use ie::RestartClass;
pub use table::{MessageType, id};
pub use version::Version;
