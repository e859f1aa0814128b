//! The lab file: parse, check, resolve.
//!
//! A lab `NAME.atm.yml` names nodes, links and traffic. [`model::Lab`] is what the drivers build from.

pub mod model;
pub mod plan;
pub mod units;

pub use model::{ElanId, Lab, LinkId, NodeId};
