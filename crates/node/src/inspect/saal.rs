//! Rows of `inspect saal`: links of signalling, at hosts and at ports of switches.

use aerostat_proto::interface::Interface;
use aerostat_proto::saal::{self, State};
use aerostat_proto::sigd::LinkInfo;
use aerostat_proto::sscop::Mode;

crate::rows! {
    /// Tables about links of signalling.
    pub const TABLES;

    /// One row for each SSCOP error code that occurred on a signalling link.
    pub struct ErrorCode: "saal.error codes" for (port: &str, code: char, count: u64) {
        /// The port.
        pub port: String = port.to_owned(),
        /// The code, Q.2110 Annex A.
        pub code: String = code.to_string(),
        /// Meaning of the code.
        pub meaning: String = saal::code_meaning(code).to_owned(),
        /// How often.
        pub count: u64 = count,
    }

    /// One row for each signalling link.
    pub struct Link: "saal.signalling links" for (port: &str, link: &LinkInfo, edition: Mode) {
        /// The port, or the interface of an end system.
        pub port: String = port.to_owned(),
        /// State of the link: SSCOP.
        pub state: State = link.state,
        /// Edition of the protocol.
        pub edition: Mode = edition,
        /// Messages not acknowledged yet.
        pub outstanding_messages: u64 = link.outstanding,
        /// Connections established.
        pub established: u64 = link.established,
        /// Connections lost.
        pub released: u64 = link.released,
        /// Messages sent again.
        pub retransmitted: u64 = link.retransmitted,
        /// Errors that SSCOP reported.
        pub errors: u64 = link.errors,
    }
}

impl Link {
    /// The link of an interface of a switch.
    pub(crate) fn of_interface(port: &str, interface: &Interface) -> Self {
        Self::of(port, &LinkInfo::of(interface.saal()), interface.mode())
    }
}

impl ErrorCode {
    /// The error codes that have occurred there.
    pub(crate) fn of_interface(port: &str, interface: &Interface) -> Vec<Self> {
        let counters = interface.saal().counters();
        let codes = counters.by_code();
        codes
            .map(|(code, count)| Self::of(port, code, count))
            .collect()
    }
}
