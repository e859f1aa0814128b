//! TCP of a host: the keys of its section `tcp`, and what follows them.
//!
//! An embedded host has the TCP of a profile ([`aerostat_node::ip::tcp`]), which keys change one by one; a host that is
//! a Linux kernel follows a key by a setting of its network namespace or of its routes. [`KEYS`] says how. `validate`
//! and both drivers read this one table.

use super::{Flow, FlowKind, Lab, NodeId, NodeKind};
use aerostat_node::ip::tcp::{
    AckDelay, AckPush, Floor, Growth, InitialWindow, Profile, ReceiveParams, Recovery, TcpOptions,
};
use aerostat_proto::parameters::{Octets, Parameters as _, Value};
use aerostat_proto::{Duration, parameters};

parameters! {
    /// Parameters of a host's TCP that change its profile; the defaults are about those of the profile `linux`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct TcpParams, TcpRanges {
        /// Send buffer of a connection, which does not grow then.
        send_buffer: Octets = Octets(85 << 10), Octets(2 << 10)..=Octets(64 << 20);
        /// Receive buffer of a connection, which does not grow then; above 65535 octets the window is scaled.
        receive_buffer: Octets = Octets(64 << 10), Octets(2 << 10)..=Octets(64 << 20);
        /// Largest segment that the host announces, octets; an embedded host sends no larger ones either.
        mss: u16 = 65_481, 64..=65_481;
        /// Nagle's algorithm: no small segment while data are unacknowledged.
        nagle: bool = true, false..=true;
        /// Segments that are acknowledged together: 1, at once; 2, the second one at once and a single one after a
        /// delay.
        ack_every: u8 = 2, 1..=2;
        /// How long the acknowledgement of a single segment is delayed.
        delayed_ack: Duration = Duration::from_millis(40), Duration::from_millis(1)..=Duration::from_millis(500);
        /// Instead: such acknowledgements are sent at ticks of a clock of the whole host, with this interval.
        ack_tick: Duration = Duration::from_millis(200), Duration::from_millis(1)..=Duration::from_millis(500);
        /// Time stamps, 12 octets of each segment, if both hosts want them.
        timestamps: bool = true, false..=true;
        /// Windows above 65535 octets, if both hosts want them.
        window_scaling: bool = true, false..=true;
        /// Selective acknowledgements, if both hosts want them.
        sack: bool = true, false..=true;
        /// Congestion is told by marks instead of losses, if both hosts want it (ECN): cells with EFCI mark their
        /// packet.
        ecn: bool = false, false..=true;
        /// Congestion window at the start, segments.
        initial_window: u8 = 10, 1..=255;
        /// Shortest time before an unacknowledged segment is sent again.
        min_rto: Duration = Duration::from_millis(200), Duration::from_millis(1)..=Duration::from_secs(60);
    }
}

/// TCP settings of a host.
#[derive(Clone, Debug, PartialEq)]
pub struct Tcp {
    /// The TCP that the keys change.
    pub profile: Profile,
    /// Congestion control; `None`: that of the profile.
    pub congestion: Option<Congestion>,
    /// The parameters: values of the file; without one, they say nothing ([`Tcp::has`]).
    pub params: TcpParams,
    /// The keys that the file has.
    pub given: Vec<GivenKey>,
}

/// A key of the file.
#[derive(Clone, Debug)]
pub struct GivenKey {
    /// Its name.
    pub name: &'static str,
    /// Where its value stands: `FILE:LINE:COLUMN`.
    pub place: String,
}

impl PartialEq for GivenKey {
    /// The place of a key changes nothing in a lab.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// Congestion control of TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// RFC 9438.
    Cubic,
    /// RFC 5681.
    Reno,
    /// Only the receiver's window limits the sender.
    None,
    /// An algorithm that only kernels have, by its name there: one of [`KERNELS`].
    Kernel(&'static str),
}

/// Names of further algorithms of Linux kernels, most of them modules.
pub const KERNELS: [&str; 15] = [
    "bbr",
    "bic",
    "cdg",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "nv",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
];

impl Congestion {
    /// Its name in a lab file, and in a kernel.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Reno => "reno",
            Self::None => "none",
            Self::Kernel(name) => name,
        }
    }
}

/// How a Linux kernel follows a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByKernel {
    /// A setting of the network namespace, below `/proc/sys/net/ipv4`.
    Setting(&'static str),
    /// An attribute of all routes of the host, as `ip route` names it.
    Route(&'static str),
    /// A setting that counts more than the key does, and an attribute of routes that bounds what follows from it.
    Bounded(&'static str, &'static str),
    /// Not at all, for this reason.
    Never(&'static str),
}

/// A value that an embedded host has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InForce {
    /// The key of the section.
    pub key: &'static str,
    /// Its value, for people.
    pub value: String,
    /// Where it comes from: `lab file`, or `profile NAME`.
    pub by: String,
}

/// A key, and who follows it.
#[derive(Clone, Copy, Debug)]
pub struct Follows {
    /// The key.
    pub key: &'static str,
    /// How a kernel host follows it.
    pub kernel: ByKernel,
}

const fn key(key: &'static str, kernel: ByKernel) -> Follows {
    Follows { key, kernel }
}

/// All keys of the section except `buffer`, which is a default of two others.
pub const KEYS: [Follows; 15] = [
    key("profile", ByKernel::Never("a kernel has its own TCP")),
    key("congestion", ByKernel::Setting("tcp_congestion_control")),
    key("send_buffer", ByKernel::Setting("tcp_wmem")),
    key("receive_buffer", ByKernel::Bounded("tcp_rmem", "window")),
    key("mss", ByKernel::Route("advmss")),
    key(
        "nagle",
        ByKernel::Never("a program in a kernel decides by TCP_NODELAY"),
    ),
    key("ack_every", ByKernel::Route("quickack")),
    key(
        "delayed_ack",
        ByKernel::Never("a kernel delays for 40 to 200 ms by its own estimate"),
    ),
    key(
        "ack_tick",
        ByKernel::Never("a kernel delays for 40 to 200 ms by its own estimate"),
    ),
    key("timestamps", ByKernel::Setting("tcp_timestamps")),
    key("window_scaling", ByKernel::Setting("tcp_window_scaling")),
    key("sack", ByKernel::Setting("tcp_sack")),
    key("ecn", ByKernel::Setting("tcp_ecn")),
    key("initial_window", ByKernel::Route("initcwnd")),
    key("min_rto", ByKernel::Route("rto_min")),
];

impl Tcp {
    /// The settings of a host without the section.
    pub const USUAL: Self = Self {
        profile: Profile::Linux,
        congestion: None,
        params: TcpParams::DEFAULT,
        given: Vec::new(),
    };

    /// True if the file has a value for the key.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.given.iter().any(|given| given.name == key)
    }

    /// The values of the file by key, in the order of [`KEYS`]. A buffer that only `buffer` gives counts as given.
    /// Profile and congestion control have no [`Value`]: their names are [`Self::name_of`].
    pub fn values(&self) -> impl Iterator<Item = (&'static Follows, Option<Value>)> {
        let params = self.params.with_ranges();
        KEYS.iter().filter_map(move |follows| {
            let key = follows.key;
            let value = params.iter().find(|param| param.name == key);
            (self.has(key) || self.has_buffer(key))
                .then(|| (follows, value.map(|param| param.value)))
        })
    }

    /// True if the file gives this buffer by `buffer`.
    fn has_buffer(&self, key: &str) -> bool {
        self.has("buffer") && matches!(key, "send_buffer" | "receive_buffer")
    }

    /// The name that `profile` or `congestion` has.
    #[must_use]
    pub fn name_of(&self, key: &str) -> &'static str {
        match key {
            "profile" => self.profile.name(),
            _ => self.growth(),
        }
    }

    /// The name of the congestion control in force.
    fn growth(&self) -> &'static str {
        match self.congestion {
            Some(congestion) => congestion.name(),
            None => match self.profile.params().congestion.growth {
                Growth::Cubic { .. } => "cubic",
                Growth::Reno => "reno",
                Growth::Off => "none",
            },
        }
    }

    /// Where a key's value stands in the file.
    #[must_use]
    pub fn place(&self, key: &str) -> &str {
        let of = |key: &str| self.given.iter().find(|given| given.name == key);
        of(key)
            .or_else(|| of("buffer"))
            .map_or("", |given| &given.place)
    }

    /// The TCP of an embedded host: that of the profile, changed by the keys of the file.
    #[must_use]
    pub fn options(&self) -> TcpOptions {
        let mut options = TcpOptions::of(self.profile);
        let given = |key: &str| self.has(key) || self.has_buffer(key);
        let of = &self.params;
        if given("send_buffer") {
            options = options.with_send_buffer(of.send_buffer.0);
        }
        if given("receive_buffer") {
            // The key counts octets of the window, as at kernel hosts.
            let share = options.params.receive.share as usize;
            options = options.with_receive_buffer(of.receive_buffer.0 * share);
        }
        options.nagle = given("nagle").then_some(of.nagle);
        let params = &mut options.params;
        let set = |key: &str, place: &mut bool, value: bool| {
            if self.has(key) {
                *place = value;
            }
        };
        set("timestamps", &mut params.timestamps, of.timestamps);
        set(
            "window_scaling",
            &mut params.window_scaling,
            of.window_scaling,
        );
        set("sack", &mut params.sack, of.sack);
        set("ecn", &mut params.ecn, of.ecn);
        // A host that is given selective acknowledgements also repairs by them; Tahoe sends all again whatever they
        // say.
        let repair = &mut params.congestion.recovery;
        if self.has("sack") && of.sack && matches!(repair, Recovery::Reno | Recovery::NewReno) {
            *repair = Recovery::Sack;
        }
        if given("mss") {
            params.mss = of.mss;
        }
        if given("initial_window") {
            params.congestion.initial_window = InitialWindow::Segments(of.initial_window.into());
        }
        if given("min_rto") {
            params.timers.floor = params.timers.floor.with(of.min_rto);
        }
        self.set_acknowledgements(&mut params.receive);
        params.congestion.growth = match self.congestion {
            Some(Congestion::Cubic) => Growth::CUBIC_OF_LINUX,
            Some(Congestion::Reno) => Growth::Reno,
            Some(Congestion::None) => Growth::Off,
            // An algorithm that an embedded host does not have: `validate` has said so.
            Some(Congestion::Kernel(_)) | None => params.congestion.growth,
        };
        options
    }

    /// Takes the keys that say when a receiver acknowledges.
    fn set_acknowledgements(&self, receive: &mut ReceiveParams) {
        let of = &self.params;
        let [every, delayed, tick] =
            ["ack_every", "delayed_ack", "ack_tick"].map(|key| self.has(key));
        if every {
            receive.ack_every = of.ack_every;
        }
        let delay = match (every, delayed, tick) {
            (true, false, false) if of.ack_every == 1 => Some(AckDelay::Never),
            (_, true, _) => Some(AckDelay::After(of.delayed_ack)),
            (_, _, true) => Some(AckDelay::Tick(of.ack_tick)),
            _ => None,
        };
        if let Some(delay) = delay {
            // The key says when a single segment is acknowledged, also at the start, and with PSH.
            receive.quick_acks = 0;
            receive.ack_push = AckPush::Never;
            receive.ack_delay = delay;
        }
    }

    /// The values in force at an embedded host, in the order of [`KEYS`].
    #[must_use]
    pub fn in_force(&self) -> Vec<InForce> {
        let options = self.options();
        let one = |follows: &Follows| InForce {
            key: follows.key,
            value: self.value_in_force(follows.key, &options),
            by: match self.has(follows.key) || self.has_buffer(follows.key) {
                true => "lab file".to_owned(),
                false => format!("profile {}", self.profile),
            },
        };
        KEYS.iter().map(one).collect()
    }

    /// The value of a key for people.
    fn value_in_force(&self, key: &str, options: &TcpOptions) -> String {
        let params = &options.params;
        let octets = |octets: usize| Value::Octets(Octets(octets));
        let grows = |(least, most): (usize, usize)| match least == most {
            true => octets(least).to_string(),
            false => format!("{} to {}", octets(least), octets(most)),
        };
        match key {
            "profile" | "congestion" => self.name_of(key).to_owned(),
            "send_buffer" => grows((params.send.buffer, params.send.most)),
            "receive_buffer" => {
                let share = params.receive.share.max(1) as usize;
                grows((params.receive.buffer / share, params.receive.most / share))
            }
            "mss" if params.mss == u16::MAX => "as the MTU allows".to_owned(),
            "mss" => params.mss.to_string(),
            "nagle" => match options.nagle {
                Some(on) => on.to_string(),
                None => "as the program asks".to_owned(),
            },
            "ack_every" if params.receive.ack_every == 0 => "as the program reads".to_owned(),
            "ack_every" => params.receive.ack_every.to_string(),
            "delayed_ack" => match params.receive.ack_delay {
                AckDelay::Never => "none".to_owned(),
                AckDelay::After(time) => format!("{time:?}"),
                AckDelay::Tick(_) => "as the tick".to_owned(),
                AckDelay::Adaptive { least, most, .. } => format!("{least:?} to {most:?}"),
            },
            "ack_tick" => match params.receive.ack_delay {
                AckDelay::Tick(time) => format!("{time:?}"),
                AckDelay::Never | AckDelay::After(_) | AckDelay::Adaptive { .. } => {
                    "none".to_owned()
                }
            },
            "timestamps" => params.timestamps.to_string(),
            "ecn" => params.ecn.to_string(),
            "window_scaling" => params.window_scaling.to_string(),
            "sack" => params.sack.to_string(),
            "initial_window" => match params.congestion.initial_window {
                InitialWindow::Segments(segments) => segments.to_string(),
                InitialWindow::Rfc3390 => "RFC 3390".to_owned(),
            },
            _ => match params.timers.floor {
                Floor::Timer(time) => format!("{time:?}"),
                Floor::Variance(time) | Floor::Largest(time) => {
                    format!("{time:?} beyond the round trip")
                }
            },
        }
    }

    /// The profile and its congestion control, as results name them: `linux cubic`, `reno`. A profile of which more
    /// than half is assumed says so.
    #[must_use]
    pub fn embedded_name(&self) -> String {
        let assumed = if self.profile.is_mostly_assumed() {
            " (mostly assumed)"
        } else {
            ""
        };
        let growth = match self.congestion {
            Some(Congestion::Kernel(_)) => "cubic",
            _ => self.growth(),
        };
        match self.profile.to_string() {
            profile if profile == growth => format!("{profile}{assumed}"),
            profile => format!("{profile} {growth}{assumed}"),
        }
    }
}

impl Lab {
    /// The TCP of the sender of a TCP flow, as results name it; `None` for other flows.
    #[must_use]
    pub fn tcp_of(&self, flow: &Flow) -> Option<String> {
        let tcp = matches!(flow.kind, FlowKind::Tcp | FlowKind::Rr { .. });
        let own = self.host_tcp(flow.from, flow.segment[0]);
        tcp.then(|| own.unwrap_or(&Tcp::USUAL).embedded_name())
    }

    /// TCP of a host that is no station on an Ethernet segment behind it.
    fn host_tcp(&self, id: NodeId, behind: Option<usize>) -> Option<&Tcp> {
        match &self.node(id).kind {
            NodeKind::Host(host) if behind.is_none() => Some(&host.tcp),
            _ => None,
        }
    }
}
