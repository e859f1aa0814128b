//! Variables of clients and servers: defaults and ranges of the standard.

use crate::Duration;
use crate::parameters::PerSecond;
use crate::time::{ms, s};
use aerostat_wire::lane::{Tlv, TlvType};
use core::ops::RangeInclusive;

crate::parameters! {
    /// Variables of a LEC. Source: LUNI 2.0 §5.1, with its C numbers.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct LecParams, LecRanges, split {
        /// C7: total time for a request to the servers.
        control_timeout: Duration = s(30), s(10)..=s(300);
        /// C7i: time to the first repetition of such a request.
        initial_control_timeout: Duration = s(5), s(1)..=s(10);
        /// C7x: factor from one repetition of such a request to the next.
        control_backoff: u32 = 2, 2..=5;
        /// C10: frames to an unknown destination within C11.
        max_unknown_count: u16 = 10, 1..=20;
        /// C11: see C10.
        max_unknown_time: Duration = s(1), s(1)..=s(60);
        /// C12: idle time after which a data direct connection is released (0s: never).
        vcc_timeout: Duration = s(1200), s(0)..=s(86_400);
        /// C13: repetitions of LE_ARP.
        max_retry_count: u16 = 1, 0..=2;
        /// C17: how long an entry of the LE_ARP cache holds.
        aging_time: Duration = s(300), s(10)..=s(300);
        /// C18: the same for remote entries during a topology change.
        forward_delay: Duration = s(15), s(4)..=s(30);
        /// C20: expected time to the answer of LE_ARP.
        expected_arp_time: Duration = s(1), s(1)..=s(30);
        /// C21: wait for the answer to a flush.
        flush_timeout: Duration = s(4), s(1)..=s(4);
        /// C22: wait before another path is used without a flush.
        path_switching_delay: Duration = s(6), s(1)..=s(8);
        /// C28: wait for READY_IND.
        connection_completion: Duration = s(4), s(1)..=s(10);
        /// C33: wait for the BUS to come back.
        forward_disconnect: Duration = s(60), s(10)..=s(300);
        /// C37: least wait before a client that has lost its servers joins again.
        ///
        /// The delay after a failure that may pass by itself is short at first and doubles up to C38.
        min_reconfigure_delay: Duration = ms(1), ms(1)..=s(10);
        /// C38: greatest such wait (not less than C37).
        max_reconfigure_delay: Duration = s(5), ms(1)..=s(10);
        /// C39: repetitions of a connection to the BUS that fails.
        max_bus_retries: u32 = 1, 0..=2;
        /// Longest wait before a refused data direct call is tried again.
        ///
        /// The wait is short at first after a cause that may pass by itself. Not a variable of the standard.
        call_retry: Duration = s(5), ms(100)..=s(300);
    }
}

impl LecParams {
    /// Defaults of LUNI 1.0, where they differ: C7 is 120 s, C10 is 1.
    pub const V1: Self = Self {
        control_timeout: s(120),
        max_unknown_count: 1,
        ..Self::DEFAULT
    };

    /// Takes over the values that a LECS sends; each is moved into the range of the standard. The idle time (C12) has
    /// no upper bound there.
    pub fn apply(&mut self, tlvs: &[Tlv]) {
        const OF: LecRanges = LecParams::RANGES;
        for tlv in tlvs {
            let Some(value) = tlv.number() else {
                continue;
            };
            let time = s(value.into());
            let count = u16::try_from(value).unwrap_or(u16::MAX);
            let (slot, range) = match tlv.kind {
                TlvType::MAX_UNKNOWN_COUNT => {
                    self.max_unknown_count = OF.max_unknown_count.nearest(count);
                    continue;
                }
                TlvType::MAX_RETRY_COUNT => {
                    self.max_retry_count = OF.max_retry_count.nearest(count);
                    continue;
                }
                TlvType::VCC_TIMEOUT => {
                    self.vcc_timeout = time;
                    continue;
                }
                TlvType::CONTROL_TIMEOUT => (&mut self.control_timeout, OF.control_timeout),
                TlvType::MAX_UNKNOWN_TIME => (&mut self.max_unknown_time, OF.max_unknown_time),
                TlvType::AGING_TIME => (&mut self.aging_time, OF.aging_time),
                TlvType::FORWARD_DELAY => (&mut self.forward_delay, OF.forward_delay),
                TlvType::EXPECTED_ARP_TIME => (&mut self.expected_arp_time, OF.expected_arp_time),
                TlvType::FLUSH_TIMEOUT => (&mut self.flush_timeout, OF.flush_timeout),
                TlvType::PATH_SWITCHING_DELAY => {
                    (&mut self.path_switching_delay, OF.path_switching_delay)
                }
                TlvType::CONNECTION_COMPLETION => {
                    (&mut self.connection_completion, OF.connection_completion)
                }
                _ => continue,
            };
            *slot = range.nearest(time);
        }
    }
}

crate::split_record! {
    /// Bounds of the state that peers and users can make a LEC hold.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LecLimits {
        /// Entries of the LE_ARP cache, and destinations of the data plane.
        pub cache: usize,
        /// Of these, the MPOA servers that announced themselves.
        pub servers: usize,
        /// Frames that wait for one destination.
        pub queue: usize,
        /// Data direct connections.
        pub vccs: usize,
        /// Group addresses wanted (C15).
        pub groups: usize,
    }
}

impl Default for LecLimits {
    fn default() -> Self {
        Self {
            cache: 8192,
            servers: 64,
            queue: 32,
            vccs: 8192,
            groups: 64,
        }
    }
}

crate::parameters! {
    /// Frames a second that a BUS, or a LES, accepts from one end system; a second's quota may come at once. 0 is no
    /// limit.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Quotas, QuotaRanges, split {
        /// Broadcast frames.
        ///
        /// ARP sends one request a second for each neighbour.
        broadcast: PerSecond = PerSecond(1000), RATES;
        /// Frames for unknown destinations, and flush requests.
        ///
        /// A client sends 10 frames a second to each unknown destination (C10, C11). This rate is above that of
        /// broadcast frames, so that no client can make a router that answers it use up the router's own quota.
        unknown: PerSecond = PerSecond(2000), RATES;
        /// Multicast frames.
        ///
        /// 150 Mb/s of frames of 1500 octets are 12 500.
        multicast: PerSecond = PerSecond(12_500), RATES;
        /// Frames that a LES copies to all members: LE_NARP, LE_TOPOLOGY and LE_ARP without a target.
        ///
        /// A bridge may announce all the 256 addresses that it may register at once.
        announcements: PerSecond = PerSecond(500), RATES;
        /// LE_ARP requests for addresses that no client has registered, which a LES copies to all proxies.
        ///
        /// A router that begins to talk to a thousand stations behind bridges, and asks for each once a second (C7).
        unregistered: PerSecond = PerSecond(1000), RATES;
        /// LE_REGISTER and LE_UNREGISTER requests, after which a LES sends all addresses of the client to the BUS.
        ///
        /// A bridge may register all its 256 addresses at once, and again when it joins anew.
        registrations: PerSecond = PerSecond(512), RATES;
    }
}

const RATES: RangeInclusive<PerSecond> = PerSecond(1)..=PerSecond(1_000_000);

crate::parameters! {
    /// Variables and bounds of the servers.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ServerParams, ServerRanges, split {
        /// S4: how long a connection may be there without a client that has joined.
        ///
        /// At a LECS: how long it may stay idle.
        control_timeout: Duration = s(120), s(10)..=s(300);
        /// S5: frames older than this are not to be sent, 1..=4 s. No queue enforces it.
        max_frame_age: Duration = s(1);
        /// Longest wait before a refused leaf of a point-to-multipoint connection is tried again.
        leaf_retry: Duration = ms(500), ms(20)..=s(60);
        /// Tries of a leaf at that distance, before its client is called point-to-point.
        ///
        /// With shorter waits there are more tries in the same time.
        leaf_tries: u32 = 3, 1..=100;
        /// Largest number of clients, and of connections that have not joined yet.
        clients: usize = 1024;
        /// Largest number of LAN destinations that one client may register.
        registrations: usize = 256;
        /// Largest number of group addresses whose frames the BUS sends to some clients only, 0..=126. Frames for
        /// further groups go to all.
        groups: usize = 64;
        /// Quotas of one end system for frames to all members.
        quota: Quotas = Quotas::DEFAULT;
    }
}
