//! Variables of clients and servers: defaults and ranges of the standard.

use crate::Duration;
use aerostat_wire::lane::{Tlv, TlvType};

/// Variables of a LEC. Source: LUNI 2.0 §5.1, with its C numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LecParams {
    /// C7, control time-out: total time for one request, 10..=300 s.
    pub control_timeout: Duration,
    /// C7i, initial control time-out: time to the first repetition, 1..=10 s.
    pub initial_control_timeout: Duration,
    /// C7x, factor from one repetition to the next, 2..=5.
    pub control_backoff: u32,
    /// C10, largest number of frames within C11 for one unresolved destination, 1..=20.
    pub max_unknown_count: u16,
    /// C11, 1..=60 s.
    pub max_unknown_time: Duration,
    /// C12, idle time after which a data direct connection is released; zero: never.
    pub vcc_timeout: Duration,
    /// C13, repetitions of LE_ARP, 0..=2.
    pub max_retry_count: u16,
    /// C17, ageing time, 10..=300 s.
    pub aging_time: Duration,
    /// C18, ageing time of remote entries during a topology change, 4..=30 s.
    pub forward_delay: Duration,
    /// C20, expected LE_ARP response time, 1..=30 s.
    pub expected_arp_time: Duration,
    /// C21, flush time-out, 1..=4 s.
    pub flush_timeout: Duration,
    /// C22, path switching delay, 1..=8 s.
    pub path_switching_delay: Duration,
    /// C28, connection completion timer, 1..=10 s.
    pub connection_completion: Duration,
    /// C33, forward disconnect time-out, 10..=300 s.
    pub forward_disconnect: Duration,
    /// C37, least reconfigure delay, 1..=10000 ms. The delay after a failure that may pass by itself is short at first
    /// and doubles up to C38.
    pub min_reconfigure_delay: Duration,
    /// C38, greatest reconfigure delay, 1..=10000 ms.
    pub max_reconfigure_delay: Duration,
    /// C39, repetitions of the BUS connection, 0..=2.
    pub max_bus_retries: u32,
    /// Longest time before a refused data direct call is tried again; the wait is short at first after a cause that may
    /// pass by itself. Not a variable of the standard.
    pub call_retry: Duration,
}

impl Default for LecParams {
    /// Defaults of LUNI 2.0.
    fn default() -> Self {
        Self {
            control_timeout: Duration::from_secs(30),
            initial_control_timeout: Duration::from_secs(5),
            control_backoff: 2,
            max_unknown_count: 10,
            max_unknown_time: Duration::from_secs(1),
            vcc_timeout: Duration::from_secs(1200),
            max_retry_count: 1,
            aging_time: Duration::from_secs(300),
            forward_delay: Duration::from_secs(15),
            expected_arp_time: Duration::from_secs(1),
            flush_timeout: Duration::from_secs(4),
            path_switching_delay: Duration::from_secs(6),
            connection_completion: Duration::from_secs(4),
            forward_disconnect: Duration::from_secs(60),
            min_reconfigure_delay: Duration::from_millis(1),
            max_reconfigure_delay: Duration::from_millis(5000),
            max_bus_retries: 1,
            call_retry: Duration::from_secs(5),
        }
    }
}

impl LecParams {
    /// Defaults of LUNI 1.0, where they differ: C7 is 120 s, C10 is 1.
    #[must_use]
    pub fn v1() -> Self {
        Self {
            control_timeout: Duration::from_secs(120),
            max_unknown_count: 1,
            ..Self::default()
        }
    }
    /// Takes over the values that a LECS sends; each is moved into the range of the standard.
    pub fn apply(&mut self, tlvs: &[Tlv]) {
        for tlv in tlvs {
            let Some(value) = tlv.number() else {
                continue;
            };
            let seconds = |min, max| Duration::from_secs(value.clamp(min, max).into());
            match tlv.kind {
                TlvType::CONTROL_TIMEOUT => self.control_timeout = seconds(10, 300),
                TlvType::MAX_UNKNOWN_COUNT => self.max_unknown_count = value.clamp(1, 20) as u16,
                TlvType::MAX_UNKNOWN_TIME => self.max_unknown_time = seconds(1, 60),
                TlvType::VCC_TIMEOUT => self.vcc_timeout = seconds(0, u32::MAX),
                TlvType::MAX_RETRY_COUNT => self.max_retry_count = value.min(2) as u16,
                TlvType::AGING_TIME => self.aging_time = seconds(10, 300),
                TlvType::FORWARD_DELAY => self.forward_delay = seconds(4, 30),
                TlvType::EXPECTED_ARP_TIME => self.expected_arp_time = seconds(1, 30),
                TlvType::FLUSH_TIMEOUT => self.flush_timeout = seconds(1, 4),
                TlvType::PATH_SWITCHING_DELAY => self.path_switching_delay = seconds(1, 8),
                TlvType::CONNECTION_COMPLETION => self.connection_completion = seconds(1, 10),
                _ => {}
            }
        }
    }
}

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

/// Variables and bounds of the servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerParams {
    /// S4: how long a connection may exist without a join (LES) or stay idle (LECS), 10..=300 s.
    pub control_timeout: Duration,
    /// S5: frames older than this are not to be sent, 1..=4 s. Enforced by the driver that queues frames.
    pub max_frame_age: Duration,
    /// Longest time that a refused leaf of a point-to-multipoint connection waits for the next try.
    pub leaf_retry: Duration,
    /// Tries of a leaf at that distance before a point-to-point copy is set up; with shorter waits there are more tries
    /// in the same time.
    pub leaf_tries: u32,
    /// Largest number of clients, and of connections that have not joined yet.
    pub clients: usize,
    /// Largest number of LAN destinations that one client may register.
    pub registrations: usize,
    /// Largest number of group addresses whose frames the BUS sends to some clients only, 0..=126. Frames for further
    /// groups go to all.
    pub groups: usize,
    /// Broadcast frames that the BUS accepts from one end system, frames a second; a second's quota may come at once.
    /// 0: no limit.
    pub broadcast_rate: u32,
    /// Frames for unknown destinations and flush requests that the BUS accepts, likewise. This rate is above that of
    /// broadcast frames, so that no client can make a router that answers it use up the router's own quota.
    pub unknown_rate: u32,
    /// Multicast frames that the BUS accepts from one end system, frames a second, likewise.
    pub multicast_rate: u32,
    /// Frames that the LES copies to all members (LE_NARP, LE_TOPOLOGY, targetless LE_ARP) and accepts from one end
    /// system, likewise.
    pub announcement_rate: u32,
    /// LE_ARP requests for addresses that no client has registered, which the LES copies to every proxy and accepts
    /// from one end system, likewise.
    pub unregistered_rate: u32,
    /// LE_REGISTER and LE_UNREGISTER requests that the LES accepts from one end system, likewise: each may make the LES
    /// send all addresses of the client to the BUS.
    pub registration_rate: u32,
}

impl Default for ServerParams {
    fn default() -> Self {
        Self {
            control_timeout: Duration::from_secs(120),
            max_frame_age: Duration::from_secs(1),
            leaf_retry: Duration::from_millis(500),
            leaf_tries: 3,
            clients: 1024,
            registrations: 256,
            groups: 64,
            // ARP sends one request a second for each neighbour.
            broadcast_rate: 1000,
            // A client sends 10 frames a second to each unknown destination (C10, C11).
            unknown_rate: 2000,
            // 150 Mb/s of frames of 1500 octets are 12 500.
            multicast_rate: 12_500,
            // A bridge may announce all the 256 addresses that it may register at once.
            announcement_rate: 500,
            // A router that begins to talk to a thousand stations behind bridges, and asks for each once a second (C7).
            unregistered_rate: 1000,
            // A bridge may register all its 256 addresses at once, and again when it joins anew.
            registration_rate: 512,
        }
    }
}
