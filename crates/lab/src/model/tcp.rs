//! TCP of a host: the keys of its section `tcp`, and what follows them.
//!
//! An embedded host follows a key by an option of its stack ([`aerostat_node::ip::tcp`]), a host that is a Linux kernel
//! by a setting of its network namespace or of its routes. [`KEYS`] says of each key who follows it. `validate` and both
//! drivers read this one table.

use super::{Flow, FlowKind, Lab, NodeId, NodeKind};
use aerostat_node::ip::tcp::{self, AckDelay, TcpOptions};
use aerostat_proto::parameters::{Octets, Parameters as _, Value};
use aerostat_proto::{Duration, parameters};

parameters! {
    /// Parameters of a host's TCP.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct TcpParams, TcpRanges {
        /// Send buffer of a connection.
        send_buffer: Octets = Octets(64 << 10), Octets(2 << 10)..=Octets(64 << 20);
        /// Receive buffer of a connection; above 65535 octets the window is scaled.
        receive_buffer: Octets = Octets(64 << 10), Octets(2 << 10)..=Octets(64 << 20);
        /// Largest segment that the host announces, octets; an embedded host sends no larger ones either.
        mss: u16 = 65_481, 64..=65_481;
        /// Nagle's algorithm: no small segment while data are unacknowledged.
        nagle: bool = true, false..=true;
        /// Segments that are acknowledged together: 1, at once; 2, the second one at once and a single one after a delay.
        ack_every: u8 = 2, 1..=2;
        /// How long the acknowledgement of a single segment is delayed.
        delayed_ack: Duration = Duration::from_millis(10), Duration::from_millis(1)..=Duration::from_millis(500);
        /// Instead: such acknowledgements are sent at ticks of a clock of the whole host, with this interval.
        ack_tick: Duration = Duration::from_millis(200), Duration::from_millis(1)..=Duration::from_millis(500);
        /// Time stamps, 12 octets of each segment, if both hosts want them.
        timestamps: bool = false, false..=true;
        /// Windows above 65535 octets, if both hosts want them.
        window_scaling: bool = true, false..=true;
        /// Selective acknowledgements, if both hosts want them.
        sack: bool = true, false..=true;
        /// Congestion window at the start, segments.
        initial_window: u8 = 10, 1..=255;
        /// Shortest time before an unacknowledged segment is sent again.
        min_rto: Duration = Duration::from_secs(1), Duration::from_millis(1)..=Duration::from_secs(60);
    }
}

/// TCP settings of a host.
#[derive(Clone, Debug, PartialEq)]
pub struct Tcp {
    /// Congestion control.
    pub congestion: Congestion,
    /// Default of both buffers of a connection, octets.
    pub buffer: usize,
    /// The parameters: values of the file, or defaults.
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
    /// Not at all, for this reason.
    Never(&'static str),
}

/// A key, and who follows it.
#[derive(Clone, Copy, Debug)]
pub struct Follows {
    /// The key.
    pub key: &'static str,
    /// How a kernel host follows it.
    pub kernel: ByKernel,
    /// Why an embedded host does not, if it does not.
    pub embedded: Option<&'static str>,
}

const fn both(key: &'static str, kernel: ByKernel) -> Follows {
    Follows {
        key,
        kernel,
        embedded: None,
    }
}

const fn kernels(key: &'static str, kernel: ByKernel, why: &'static str) -> Follows {
    Follows {
        key,
        kernel,
        embedded: Some(why),
    }
}

/// All keys of the section but `buffer`, which is a default of two others.
pub const KEYS: [Follows; 13] = [
    both("congestion", ByKernel::Setting("tcp_congestion_control")),
    both("send_buffer", ByKernel::Setting("tcp_wmem")),
    both("receive_buffer", ByKernel::Setting("tcp_rmem")),
    both("mss", ByKernel::Route("advmss")),
    both(
        "nagle",
        ByKernel::Never("a program in a kernel decides by TCP_NODELAY"),
    ),
    both("ack_every", ByKernel::Route("quickack")),
    both(
        "delayed_ack",
        ByKernel::Never("a kernel delays for 40 to 200 ms by its own estimate"),
    ),
    both(
        "ack_tick",
        ByKernel::Never("a kernel delays for 40 to 200 ms by its own estimate"),
    ),
    both("timestamps", ByKernel::Setting("tcp_timestamps")),
    both("window_scaling", ByKernel::Setting("tcp_window_scaling")),
    kernels(
        "sack",
        ByKernel::Setting("tcp_sack"),
        "a sender uses no selective acknowledgements",
    ),
    kernels(
        "initial_window",
        ByKernel::Route("initcwnd"),
        "the initial window is 2048 octets",
    ),
    kernels(
        "min_rto",
        ByKernel::Route("rto_min"),
        "the shortest retransmission timeout is 1 s",
    ),
];

impl Tcp {
    /// The settings of a host without the section.
    pub const USUAL: Self = Self {
        congestion: Congestion::Cubic,
        buffer: 64 << 10,
        params: TcpParams::DEFAULT,
        given: Vec::new(),
    };

    /// True if the file has a value for the key.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.given.iter().any(|given| given.name == key)
    }

    /// The values of the file by key, in the order of [`KEYS`]. A buffer that only `buffer` gives counts as given.
    pub fn values(&self) -> impl Iterator<Item = (&'static Follows, Option<Value>)> {
        let params = self.params.with_ranges();
        let with_buffer = self.has("buffer");
        KEYS.iter().filter_map(move |follows| {
            let key = follows.key;
            let buffer = with_buffer && matches!(key, "send_buffer" | "receive_buffer");
            let value = params.iter().find(|param| param.name == key);
            (self.has(key) || buffer).then(|| (follows, value.map(|param| param.value)))
        })
    }

    /// Where a key's value stands in the file.
    #[must_use]
    pub fn place(&self, key: &str) -> &str {
        let of = |key: &str| self.given.iter().find(|given| given.name == key);
        of(key)
            .or_else(|| of("buffer"))
            .map_or("", |given| &given.place)
    }

    /// The options of an embedded host.
    #[must_use]
    pub fn options(&self) -> TcpOptions {
        let params = &self.params;
        TcpOptions {
            congestion: match self.congestion {
                Congestion::Reno => tcp::Congestion::Reno,
                Congestion::None => tcp::Congestion::None,
                // An algorithm that an embedded host does not have: `validate` has said so.
                Congestion::Cubic | Congestion::Kernel(_) => tcp::Congestion::Cubic,
            },
            receive_buffer: params.receive_buffer.0,
            send_buffer: params.send_buffer.0,
            mss: self.has("mss").then_some(params.mss),
            nagle: self.has("nagle").then_some(params.nagle),
            ack_delay: match (params.ack_every, self.has("ack_tick")) {
                (1, _) => AckDelay::Never,
                (_, true) => AckDelay::Tick(params.ack_tick),
                _ => AckDelay::After(params.delayed_ack),
            },
            timestamps: params.timestamps,
            window_scaling: params.window_scaling,
            sack: params.sack,
        }
    }

    /// The implementation and its congestion control, as results name it: `smoltcp 0.14 reno`.
    #[must_use]
    pub fn embedded_name(&self) -> String {
        let name = match self.options().congestion {
            tcp::Congestion::Cubic => "cubic",
            tcp::Congestion::Reno => "reno",
            tcp::Congestion::None => "none",
        };
        format!("{} {name}", tcp::STACK)
    }
}

impl Lab {
    /// The TCP of the sender of a TCP flow, as results name it; `None` for other flows, and for flows that set nothing
    /// of TCP.
    #[must_use]
    pub fn tcp_of(&self, flow: &Flow) -> Option<String> {
        let tcp = matches!(flow.kind, FlowKind::Tcp | FlowKind::Rr { .. });
        let [from, to] = [(flow.from, flow.segment[0]), (flow.to, flow.segment[1])]
            .map(|(id, behind)| self.host_tcp(id, behind));
        let set =
            flow.write.is_some() || [from, to].iter().flatten().any(|tcp| !tcp.given.is_empty());
        (tcp && set).then(|| from.unwrap_or(&Tcp::USUAL).embedded_name())
    }

    /// TCP of a host that is no station on an Ethernet segment behind it.
    fn host_tcp(&self, id: NodeId, behind: Option<usize>) -> Option<&Tcp> {
        match &self.node(id).kind {
            NodeKind::Host(host) if behind.is_none() => Some(&host.tcp),
            _ => None,
        }
    }
}
