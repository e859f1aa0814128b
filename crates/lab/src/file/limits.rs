//! `limits:` in a lab file.

use super::keys;
use crate::field::section;

section! {
    /// Limits, on all nodes of the lab. What exceeds a limit is refused or dropped, and counted.
    LimitsFile {
        /// Ports of switches. A limit that is not given grows with the lab.
        port: Option<PortLimitsFile>;
        /// MPOA servers.
        mps: Option<MpsLimitsFile>;
        /// NHRP clients.
        nhrp: Option<NhrpLimitsFile>;
    }
}
section! {
    /// Limits of the ports of switches.
    PortLimitsFile (keys::port_limits()) {}
}
section! {
    /// Limits of MPOA servers, which are NHRP servers, too.
    MpsLimitsFile (keys::mps_limits()) {}
}
section! {
    /// Limits of NHRP clients on Classical IP subnets.
    NhrpLimitsFile (keys::nhrp_limits()) {}
}
