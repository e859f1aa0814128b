//! `timers:` in a lab file.

use super::Time;
use crate::field::{At, section};
use aerostat_node::ip::router::{ArpParams, ArpRanges};
use aerostat_proto::sscop::{ParamRanges, Params};

const ARP: ArpRanges = ArpParams::RANGES;
const SSCOP: ParamRanges = Params::RANGES;

section! {
    /// Timers of protocols, on all nodes of the lab; what is left out has the standard's value.
    TimersFile {
        /// LANE clients.
        lec: Option<LecTimersFile>,
        /// LAN emulation servers.
        les: Option<LesTimersFile>,
        /// ARP of embedded hosts and routers.
        arp: Option<ArpTimersFile>,
        /// Signalling links, at both ends.
        sscop: Option<SscopTimersFile>,
        /// Call control, at both ends.
        uni: Option<UniTimersFile>,
    }
}
section! {
    /// Variables of LANE clients.
    LecTimersFile {
        /// C7: total time for a request to the servers, 10s to 300s; default 30s, with LANE version 1 120s.
        control_timeout: Option<At<Time>>,
        /// C7i: time to the first repetition of such a request, 1s to 10s; default 5s.
        initial_control_timeout: Option<At<Time>>,
        /// C7x: factor from one repetition of such a request to the next, 2 to 5; default 2.
        control_backoff: Option<At<u64>>,
        /// C10: frames to an unknown destination within C11, 1 to 20; default 10, with LANE version 1 1.
        max_unknown_count: Option<At<u64>>,
        /// C11: see C10, 1s to 60s; default 1s.
        max_unknown_time: Option<At<Time>>,
        /// C12: idle time after which a data direct connection is released, 0s (never) to 24h; default 20min.
        vcc_timeout: Option<At<Time>>,
        /// C13: repetitions of LE_ARP, 0 to 2; default 1.
        max_retry_count: Option<At<u64>>,
        /// C17: how long an entry of the LE_ARP cache holds, 10s to 300s; default 300s.
        aging_time: Option<At<Time>>,
        /// C18: the same for remote entries during a topology change, 4s to 30s; default 15s.
        forward_delay: Option<At<Time>>,
        /// C20: expected time to the answer of LE_ARP, 1s to 30s; default 1s.
        expected_arp_time: Option<At<Time>>,
        /// C21: wait for the answer to a flush, 1s to 4s; default 4s.
        flush_timeout: Option<At<Time>>,
        /// C22: wait before another path is used without a flush, 1s to 8s; default 6s.
        path_switching_delay: Option<At<Time>>,
        /// C28: wait for READY_IND, 1s to 10s; default 4s.
        connection_completion: Option<At<Time>>,
        /// C33: wait for the BUS to come back, 10s to 300s; default 60s.
        forward_disconnect: Option<At<Time>>,
        /// C37: least wait before a client that has lost its servers joins again, 1ms to 10s; default 1ms.
        min_reconfigure_delay: Option<At<Time>>,
        /// C38: greatest such wait, 1ms to 10s, not less than C37; default 5s.
        max_reconfigure_delay: Option<At<Time>>,
        /// C39: repetitions of a connection to the BUS that fails, 0 to 2; default 1.
        max_bus_retries: Option<At<u64>>,
    }
}
section! {
    /// Variables of LAN emulation servers.
    LesTimersFile {
        /// S4: how long a connection may be there without a client that has joined, 10s to 300s; default 120s.
        control_timeout: Option<At<Time>>,
    }
}
section! {
    /// ARP of embedded hosts and routers; kernel hosts do as Linux does.
    ArpTimersFile {
        /// Time between requests, {range}; default {default}.
        retry: Option<At<Time>> = ARP.retry,
        /// Requests before a neighbour counts as unreachable, {range}; default {default}.
        attempts: Option<At<u64>> = ARP.attempts,
        /// How long a neighbour is known after it was last heard, {range}; default {default}.
        ageing: Option<At<Time>> = ARP.ageing,
    }
}
section! {
    /// SSCOP (Q.2110), with the defaults of Q.2130.
    SscopTimersFile {
        /// Time between repetitions of BGN, END, RS and ER, {range}; default {default}.
        timer_cc: Option<At<Time>> = SSCOP.timer_cc,
        /// Time between POLLs while data are outstanding, {range}; default {default}.
        timer_poll: Option<At<Time>> = SSCOP.timer_poll,
        /// Time between POLLs while nothing is outstanding, {range}; default {default}.
        timer_keep_alive: Option<At<Time>> = SSCOP.timer_keep_alive,
        /// Longest time without a STAT, {range}, longer than the two before; default {default}.
        timer_no_response: Option<At<Time>> = SSCOP.timer_no_response,
        /// Time without POLLs, {range}; default {default}.
        timer_idle: Option<At<Time>> = SSCOP.timer_idle,
        /// Transmissions of BGN, END, RS and ER, {range}; default {default}.
        max_cc: Option<At<u64>> = SSCOP.max_cc,
    }
}
section! {
    /// Timers of UNI signalling (Q.2931, Q.2971).
    UniTimersFile {
        /// SETUP until any answer, 100ms to 60s; default 4s.
        t303: Option<At<Time>>,
        /// RELEASE until its answer, 100ms to 10min; default 30s.
        t308: Option<At<Time>>,
        /// How long calls outlive a lost signalling link, 100ms to 10min; default 10s.
        t309: Option<At<Time>>,
        /// CALL PROCEEDING until the next answer, 100ms to 10min; default 10s, for users of UNI 4.0 30s.
        t310: Option<At<Time>>,
        /// CONNECT until CONNECT ACKNOWLEDGE, 100ms to 60s; default 4s.
        t313: Option<At<Time>>,
        /// RESTART until its answer, 1s to 10min; default 120s.
        t316: Option<At<Time>>,
        /// STATUS ENQUIRY until its answer, 100ms to 60s; default 4s.
        t322: Option<At<Time>>,
        /// DROP PARTY until its answer, 100ms to 60s; default 4s.
        t398: Option<At<Time>>,
        /// ADD PARTY until any answer, 100ms to 10min; default 14s at the network, 34s at a user.
        t399: Option<At<Time>>,
    }
}
