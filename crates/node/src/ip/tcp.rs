//! TCP of an embedded host: a profile of [`aerostat_proto::tcp`], and what the host has otherwise.
//!
//! Hosts of the 1990s differed in their TCP, and measurements of that time show these differences. [`TcpOptions`]
//! describes the TCP of one host; `docs/tcp.md` has what each profile does.

use aerostat_proto::Duration;
pub use aerostat_proto::tcp::params::{
    AckDelay, AckPush, Floor, Growth, InitialWindow, Nagle, Params, ReceiveParams, Recovery,
};
pub use aerostat_proto::tcp::{Counters, Profile, Snapshot, State};

/// Octets of the headers of IP and TCP without options. Source: RFC 6691.
const HEADERS: usize = 40;
/// Probes of an idle connection: after how long, how far apart, and how many without an answer end it. The host of a
/// peer that restarted answers with a reset, and then the connection ends. Source: RFC 9293 §3.8.4.
const KEEP_ALIVE: (Duration, Duration, u32) =
    (Duration::from_secs(10), Duration::from_secs(10), 30);

/// The TCP of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpOptions {
    /// Parameters. The MTU towards a peer limits `mss` further.
    pub params: Params,
    /// Nagle's algorithm; `None`: the program decides.
    pub nagle: Option<bool>,
}

impl TcpOptions {
    /// The TCP of a profile, with segments as large as the MTU allows.
    #[must_use]
    pub const fn of(profile: Profile) -> Self {
        let mut params = profile.params();
        params.mss = u16::MAX;
        Self {
            params,
            nagle: None,
        }
    }

    /// The same with a receive buffer that does not grow, octets.
    #[must_use]
    pub const fn with_receive_buffer(mut self, octets: usize) -> Self {
        self.params.receive.buffer = octets;
        self.params.receive.most = octets;
        self.params.receive.first_segments = 0;
        self
    }

    /// The same with a send buffer that does not grow, octets.
    #[must_use]
    pub const fn with_send_buffer(mut self, octets: usize) -> Self {
        self.params.send.buffer = octets;
        self.params.send.most = octets;
        self
    }

    /// The parameters of a connection over a path with this MTU, for a program that would have Nagle's algorithm so.
    pub(super) fn of_connection(&self, mtu: usize, usual_nagle: bool) -> Params {
        let mut params = self.params;
        let fits = u16::try_from(mtu.saturating_sub(HEADERS)).unwrap_or(u16::MAX);
        params.mss = params.mss.min(fits);
        params.send.nagle = match (self.nagle.unwrap_or(usual_nagle), params.send.nagle) {
            (false, _) => Nagle::Off,
            (true, Nagle::Off) => Nagle::Rfc896,
            (true, form) => form,
        };
        params.timers.keep_alive = Some(KEEP_ALIVE);
        params
    }
}

impl Default for TcpOptions {
    fn default() -> Self {
        Self::of(Profile::default())
    }
}
