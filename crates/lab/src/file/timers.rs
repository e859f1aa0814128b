//! `timers:` in a lab file.

use super::keys;
use crate::field::section;

section! {
    /// Timers of protocols, on all nodes of the lab; what is left out has the standard's value.
    TimersFile {
        /// LANE clients.
        lec: Option<LecTimersFile>;
        /// LAN emulation servers.
        les: Option<LesTimersFile>;
        /// ARP of embedded hosts and routers.
        arp: Option<ArpTimersFile>;
        /// Signalling links, at both ends.
        sscop: Option<SscopTimersFile>;
        /// Call control, at both ends.
        uni: Option<UniTimersFile>;
    }
}
section! {
    /// Variables of LANE clients.
    LecTimersFile (keys::lec()) {}
}
section! {
    /// Variables of LAN emulation servers.
    LesTimersFile (keys::les()) {}
}
section! {
    /// ARP of embedded hosts and routers; kernel hosts do as Linux does.
    ArpTimersFile (keys::arp()) {}
}
section! {
    /// SSCOP (Q.2110), with the defaults of Q.2130.
    SscopTimersFile (keys::sscop()) {}
}
section! {
    /// Timers of UNI signalling (Q.2931, Q.2971).
    UniTimersFile (keys::uni()) {}
}
