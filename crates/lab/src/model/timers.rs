//! Timers of protocols with other values than those of the standards.

use aerostat_node::ip::router::ArpParams;
use aerostat_proto::Duration;
use aerostat_proto::lane::LecParams;
use aerostat_proto::parameters::Value;
use aerostat_proto::sscop;
use aerostat_proto::uni::TimerValues;

/// Timers given in the file; all others have the standards' values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timers {
    /// LANE clients.
    pub lec: LecTimers,
    /// LES: limit of the time that a connection may exist without a joined client (S4), 10..=300 s.
    pub les_control: Option<Duration>,
    /// ARP of embedded hosts and routers.
    pub arp: ArpTimers,
    /// Signalling links, at both ends.
    pub sscop: SscopTimers,
    /// Call control, at both ends.
    pub uni: UniTimers,
}

macro_rules! given {
    ($(#[$doc:meta])* $name:ident of $target:ty { $($field:ident: $kind:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $(
                #[doc = concat!("See [`", stringify!($target), "`].")]
                pub $field: Option<$kind>,
            )*
        }
        impl $name {
            /// Replaces the defaults that the file overrides.
            pub fn apply(&self, to: &mut $target) {
                $(
                    if let Some(value) = self.$field {
                        to.$field = value;
                    }
                )*
            }
            /// The values that are used where `base` has the defaults, by name.
            pub(crate) fn effective(
                &self,
                mut base: $target,
            ) -> impl Iterator<Item = (&'static str, Value)> + use<> {
                self.apply(&mut base);
                [ $( (stringify!($field), base.$field.into()), )* ].into_iter()
            }
        }
    };
}

given! {
    /// Variables of a LANE client.
    LecTimers of LecParams {
        control_timeout: Duration,
        initial_control_timeout: Duration,
        control_backoff: u32,
        max_unknown_count: u16,
        max_unknown_time: Duration,
        vcc_timeout: Duration,
        max_retry_count: u16,
        aging_time: Duration,
        forward_delay: Duration,
        expected_arp_time: Duration,
        flush_timeout: Duration,
        path_switching_delay: Duration,
        connection_completion: Duration,
        forward_disconnect: Duration,
        min_reconfigure_delay: Duration,
        max_reconfigure_delay: Duration,
        max_bus_retries: u32,
    }
}
given! {
    /// Timers of ARP.
    ArpTimers of ArpParams {
        retry: Duration,
        attempts: u32,
        ageing: Duration,
    }
}
given! {
    /// Timers of SSCOP.
    SscopTimers of sscop::Params {
        timer_cc: Duration,
        timer_poll: Duration,
        timer_keep_alive: Duration,
        timer_no_response: Duration,
        timer_idle: Duration,
        max_cc: u32,
    }
}
given! {
    /// Timers of UNI signalling.
    UniTimers of TimerValues {
        t303: Duration,
        t308: Duration,
        t309: Duration,
        t310: Duration,
        t313: Duration,
        t316: Duration,
        t322: Duration,
        t398: Duration,
        t399: Duration,
    }
}
