//! Networks of switches in virtual time: a chain of switches with hosts, a row whose hosts are only call control, and
//! sequences of events that octets choose.

pub mod bare;
mod net;
pub mod sequences;

pub use net::{Net, USER, prefix};
