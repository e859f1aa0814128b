//! Rows of `inspect saal`: links of signalling, at hosts and at ports of switches.

use aerostat_proto::saal::{self, State};
use aerostat_proto::sscop::Mode;

crate::rows! {
    /// Tables about links of signalling.
    pub const TABLES;

    /// One row for each SSCOP error code that occurred on a signalling link.
    pub struct ErrorCode: "saal.error codes" {
        /// The port.
        pub port: String,
        /// The code, Q.2110 Annex A.
        pub code: String,
        /// What it says.
        pub meaning: String,
        /// How often.
        pub count: u64,
    }

    /// One row for each signalling link.
    pub struct Link: "saal.signalling links" {
        /// The port, or the interface of an end system.
        pub port: String,
        /// State of the link: SSCOP.
        pub state: State,
        /// Edition of the protocol.
        pub edition: Mode,
        /// Messages not acknowledged yet.
        pub outstanding_messages: u64,
        /// Connections established.
        pub established: u64,
        /// Connections lost.
        pub released: u64,
        /// Messages sent again.
        pub retransmitted: u64,
        /// Errors that SSCOP reported.
        pub errors: u64,
    }
}

impl ErrorCode {
    /// An error code that occurred.
    pub(crate) fn of(port: &str, code: char, count: u64) -> Self {
        Self {
            port: port.to_owned(),
            code: code.to_string(),
            meaning: saal::code_meaning(code).to_owned(),
            count,
        }
    }
}
