//! One UNI interface: the calls of Q.2931 and Q.2971 between a user and a network side.

pub mod api;

pub use aerostat_wire::q2931::Version;
pub use api::{CallId, ConnectInfo, Indication, Input, Output, Request, Restart, SetupInfo};

/// Which side of the interface this end plays. Between two switches (IISP) one plays the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The user side: it is told the labels.
    User,
    /// The network side: it chooses the labels.
    Network,
}
