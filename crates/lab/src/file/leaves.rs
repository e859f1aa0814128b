//! Single values of a lab file, and how they are written.

use crate::field::{FromText, Leaf, inline_schema, scalar, words};
use crate::ipv6::Ip6Net;
use crate::model::{Congestion, Expect, GivenRate, KERNELS, Side};
use crate::units::{self, IpNet};
use crate::yaml_11;
use aerostat_node::atm::{CellRate, Policing};
use aerostat_node::host::sockets::programs::Answer;
use aerostat_node::ip::tcp;
use aerostat_node::server::Order;
use aerostat_proto::Duration;
use aerostat_proto::atp::Profile;
use aerostat_proto::clip::Per;
use aerostat_proto::lane::lecs::Criterion;
use aerostat_wire::counted;
use aerostat_wire::lane::MaxFrameSize;
use aerostat_wire::line::Encapsulation;
use aerostat_wire::q2931::Version;
use aerostat_wire::qos_text::repeated;
use aerostat_wire::{AtmAddress, Bhli, MacAddr, Qos, Sap, Vc};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

scalar!(
    /// A time with its unit.
    #[derive(PartialOrd)]
    Time(Duration) = "1s", units::duration,
    { "type": ["string", "number"], "description": "a time with its unit", "examples": ["6s", "5us", "1.5ms"] }
);
scalar!(
    /// The rate of a link.
    LinkRate(CellRate), units::link_rate,
    { "type": ["string", "number"], "description": "rate of a link", "examples": ["oc3", "oc12", "ds3", "ds3-hec", "e3", 25.6, "taxi", "10Mbps", "80000cells/s"] }
);
scalar!(
    /// The rate of a flow.
    FlowRate(GivenRate), units::send_rate,
    { "type": "string", "description": "packets per second or bits of payload per second", "examples": ["450pps", "2Mbps"] }
);
scalar!(
    /// A number of frames a second.
    FrameRate(u32), units::frame_rate,
    { "type": "string", "description": "frames per second", "examples": ["1000pps"] }
);
scalar!(
    /// A number of octets.
    #[derive(PartialOrd)]
    Octets(usize), units::octets,
    { "type": ["string", "integer"], "description": "a number of octets", "examples": [1000, "64KiB"] }
);
scalar!(
    /// A probability.
    Probability(f64), units::probability,
    { "type": ["string", "number"], "description": "a probability of 0 to 1", "examples": [0, 0.01, "1e-6", "2%"] }
);
scalar!(
    /// How many frames in what time make a flow.
    FlowDetect((u16, Duration)), units::flow_detect,
    { "type": "string", "pattern": "^[0-9]+ frames? (per|in) .+$", "examples": ["10 frames per 1s"] }
);
scalar!(
    /// An IPv4 address.
    Ip(Ipv4Addr) = "0.0.0.0", |text: &str| text.parse().map_err(|_| "expected an IPv4 address such as 10.1.0.10".to_owned()),
    { "type": "string", "format": "ipv4" }
);
scalar!(
    /// An IPv4 network.
    Net(IpNet), |text: &str| text.parse::<IpNet>(),
    { "type": "string", "pattern": "^[0-9.]+/[0-9]+$", "examples": ["10.1.0.0/24"] }
);
scalar!(
    /// An IPv6 network.
    Net6(Ip6Net), |text: &str| text.parse::<Ip6Net>(),
    { "type": "string", "pattern": "^[0-9a-fA-F:.]+/[0-9]+$", "examples": ["2001:db8:1::/64"] }
);
scalar!(
    /// Maximum frame size of an ELAN.
    Mtu(MaxFrameSize), mtu,
    { "enum": [1516, 1580, 4544, 9234, 18190], "description": "largest LANE frame, octets" }
);
scalar!(
    /// Network prefix of a switch.
    Prefix([u8; 13]); digits, prefix,
    { "type": "string", "description": "13 octets: 26 hex digits, dots anywhere", "examples": ["47.0091.8100.0000.0000.0000.0001"] }
);
scalar!(
    /// Speed of a router.
    ForwardingRate(crate::model::Forwarding), units::forwarding,
    { "type": "string", "description": "wire; bits of IP packets, packets, or cells per second; or a cost per packet and per octet", "examples": ["wire", "35Mbps", "65000pps", "104000cells/s", "15us + 80ns/octet"] }
);
scalar!(
    /// Rate of a program with an ATM socket; nothing if it writes as fast as its adapter takes PDUs.
    ProgramRate(Option<GivenRate>), |text: &str| match text.trim() {
        "line" => Ok(None),
        text => units::send_rate(text)
            .map(Some)
            .map_err(|why| why.replace("450pps or 2Mbps", "450pps or 2Mbps, or line")),
    },
    { "type": "string", "description": "PDUs or bits of payload per second; line: as fast as the adapter takes PDUs", "examples": ["450pps", "2Mbps", "line"] }
);
scalar!(
    /// Cells per second of a contract.
    CellsPerSecond(u64), units::cells_per_second,
    { "type": ["string", "integer"], "description": "cells per second", "examples": [20000, "20000cells/s"] }
);
scalar!(
    /// Cost of a packet.
    CostText(aerostat_node::server::Cost), units::cost,
    { "type": ["string", "integer"], "description": "a time per packet, a time per octet, or both", "examples": ["80us", "78ns/octet", "80.7us + 78ns/octet"] }
);
scalar!(
    /// Speed of an adapter's receive path.
    ReceiveRate(aerostat_node::host::IntakeRate), units::intake_rate,
    { "type": "string", "description": "PDUs or cells per second", "examples": ["400pdus/s", "25000cells/s"] }
);
scalar!(
    /// Error of a frequency in billionths.
    Ppm(i32), units::ppm,
    { "type": ["string", "number"], "description": "millionths, between -1000 and 1000", "examples": [50, -12.5] }
);
scalar!(
    /// A nice value.
    Nice(i8), |text: &str| match text.parse() {
        Ok(nice @ -20..=19) => Ok(nice),
        _ => Err("expected a whole number from -20 (most urgent) to 19".to_owned()),
    },
    { "type": "integer", "minimum": -20, "maximum": 19, "description": "nice value: less is more urgent", "examples": [0, -6] }
);
words!(
    /// Order in which a CPU takes packets.
    CpuService(Order) { "interrupt-first" = Order::Class, "fair" = Order::Arrival }
);
scalar!(
    /// Rate of an Ethernet, bit/s.
    EthernetRate(u64), |text: &str| match units::bit_rate(text) {
        Ok(bits @ (10_000_000 | 100_000_000 | 1_000_000_000)) => Ok(bits),
        _ => Err("expected 10Mbps, 100Mbps or 1Gbps".to_owned()),
    },
    { "type": "string", "description": "10Mbps, 100Mbps or 1Gbps", "examples": ["10Mbps", "100Mbps", "1Gbps"] }
);
scalar!(
    /// True for full duplex.
    Duplex(bool), |text: &str| match text {
        "full" => Ok(true),
        "half" => Ok(false),
        _ => Err("expected full or half".to_owned()),
    },
    { "enum": ["full", "half"] }
);
scalar!(
    /// How much may wait.
    QueueSize(aerostat_node::ip::router::QueueLimit), units::queue,
    { "type": ["string", "integer"], "description": "packets, cells, or octets", "examples": [100, "448cells", "64KiB"] }
);
scalar!(
    /// A TCP, by the host that has it.
    TcpProfile(tcp::Profile), |text: &str| match tcp::Profile::by_name(text) {
        Some(profile) => Ok(profile),
        None => Err(format!("expected one of {}", profiles().join(", "))),
    },
    { "enum": profiles() }
);
scalar!(
    /// Congestion control of TCP.
    TcpCongestion(Congestion), |text: &str| match text {
        "cubic" => Ok(Congestion::Cubic),
        "reno" => Ok(Congestion::Reno),
        "none" => Ok(Congestion::None),
        _ => match KERNELS.into_iter().find(|name| *name == text) {
            Some(name) => Ok(Congestion::Kernel(name)),
            None => Err(format!("expected cubic, reno or none, or for kernel hosts {}", KERNELS.join(", "))),
        },
    },
    { "enum": congestions() }
);
words!(
    /// Kind of traffic.
    TrafficKind(Kind) = "udp" {
        "tcp" = Kind::Tcp, "udp" = Kind::Udp, "ping" = Kind::Ping, "rr" = Kind::Rr, "voice" = Kind::Voice, "load" = Kind::Load
    }
);

words!(
    /// The failure that a flow is there to show.
    ExpectText(Expect) { "loss" = Expect::Loss, "nothing" = Expect::Nothing }
);
scalar!(
    /// Where a LECS outside the lab is; `None` is the well-known address.
    LecsAddress(Option<AtmAddress>); digits, |text: &str| match text {
        "well-known" => Ok(None),
        _ => text.parse::<AtmAddress>().map(Some).map_err(|error| format!("expected well-known or an ATM address: {error}")),
    },
    { "type": "string", "description": "well-known, or 20 octets: 40 hex digits, dots anywhere", "examples": ["well-known"] }
);
scalar!(
    /// Version of LAN emulation: true is 2.
    LaneVersion(bool), |text: &str| match text {
        "1" => Ok(false),
        "2" => Ok(true),
        _ => Err("expected 1 or 2".to_owned()),
    },
    { "enum": [1, 2, "1", "2"] }
);
words!(
    /// Criterion that ties a LANE client to an ELAN.
    CriterionText(Criterion) {
        "name" = Criterion::Name, "address" = Criterion::Address, "mac" = Criterion::Mac,
        "type" = Criterion::LanType, "size" = Criterion::FrameSize
    }
);
scalar!(
    /// A label.
    Label(Vc); digits, crate::resolve::label,
    { "type": "string", "description": "VPI.VCI", "examples": ["0.100"] }
);
scalar!(
    /// An ATM address.
    Atm(AtmAddress); digits, |text: &str| text.parse::<AtmAddress>().map_err(|error| error.to_string()),
    { "type": "string", "description": "20 octets: 40 hex digits, dots anywhere", "examples": ["47.0091.8100.0000.0000.0000.0001.0200a7000001.00"] }
);
scalar!(
    /// An IP address and a port.
    Socket(SocketAddr), |text: &str| text.parse::<SocketAddr>().map_err(|_| "expected ADDRESS:PORT, such as 127.0.0.1:2812".to_owned()),
    { "type": "string", "examples": ["127.0.0.1:2812"] }
);
scalar!(
    /// An IP address of either version.
    AnyIp(IpAddr), |text: &str| text.parse::<IpAddr>().map_err(|_| "expected an IP address such as 10.0.2.2".to_owned()),
    { "type": "string", "examples": ["127.0.0.1"] }
);
scalar!(
    /// Version of the UNI.
    UniVersion(Version), |text: &str| match text {
        "3.0" => Ok(Version::Uni30),
        "3.1" => Ok(Version::Uni31),
        "4.0" => Ok(Version::Uni40),
        _ => Err("expected 3.0, 3.1 or 4.0".to_owned()),
    },
    { "enum": ["3.0", "3.1", "4.0", 3.0, 3.1, 4.0] }
);
scalar!(
    /// A MAC address.
    Mac(MacAddr); digits, |text: &str| text.parse::<MacAddr>().map_err(|_| "expected a MAC address such as 02:00:00:00:00:01".to_owned()),
    { "type": "string", "examples": ["02:00:00:00:00:01"] }
);
scalar!(
    /// A group address.
    Group(MacAddr); digits, group,
    { "type": "string", "description": "IPv4 or MAC address of a group", "examples": ["239.1.1.1", "33:33:00:00:00:fb"] }
);
scalar!(
    /// Side of a switch on a trunk; none if it finds out.
    TrunkSide(Option<Side>), |text: &str| match text {
        "network" => Ok(Some(Side::Network)),
        "user" => Ok(Some(Side::User)),
        "auto" => Ok(None),
        _ => Err("expected network, user or auto".to_owned()),
    },
    { "enum": ["network", "user", "auto"] }
);
scalar!(
    /// Leading octets of ATM addresses, and their number.
    CallPrefix(([u8; 19], usize)); digits, call_prefix,
    { "type": "string", "description": "1 to 19 octets: hex digits, dots anywhere", "examples": ["47.0091.8100.0000.02a7.10"] }
);

/// Source of the mapping: RFC 1112 §6.4.
fn group(text: &str) -> Result<MacAddr, String> {
    if let Ok(ip) = text.parse::<Ipv4Addr>()
        && ip.is_multicast()
    {
        let [_, b, c, d] = ip.octets();
        return Ok(MacAddr([0x01, 0x00, 0x5e, b & 0x7f, c, d]));
    }
    let mac = text.parse::<MacAddr>().ok().filter(MacAddr::is_group);
    mac.ok_or_else(|| {
        "expected the address of a group, such as 239.1.1.1 or 33:33:00:00:00:fb".to_owned()
    })
}

impl CallPrefix {
    /// The octets.
    pub(crate) fn octets(&self) -> &[u8] {
        self.0.0.get(..self.0.1).unwrap_or_default()
    }
}

words!(
    /// Treatment of PDUs by a listener.
    Listen(Answer) { "sink" = Answer::Sink, "echo" = Answer::Echo, "read" = Answer::Read }
);
words!(
    /// Rules of ATP.
    AtpProfile(Profile) { "report" = Profile::Report, "adaptive" = Profile::Adaptive }
);
scalar!(
    /// Selector of a socket's address.
    Selector(u8); digits, |text: &str| u8::from_str_radix(text, 16)
        .ok()
        .filter(|selector| *selector >= crate::plan::SELECTOR_SOCKET && text.len() == 2)
        .ok_or_else(|| "expected two hex digits, e0 to ff".to_owned()),
    { "type": ["string", "integer"], "description": "two hex digits, e0 to ff", "examples": ["e0"] }
);
scalar!(
    /// Protocol of a call.
    SapText(Sap), sap,
    { "type": "string", "description": "any, ttcp, svc, llc, or as in linux-atm's sap(7)", "examples": ["any", "ttcp", "bhli:user=0x0102,blli:l2=iso8802"] }
);
scalar!(
    /// Scope of a policer.
    PoliceText(Policing), |text: &str| match text {
        "false" => Ok(Policing::Off),
        "true" => Ok(Policing::Guaranteed),
        "all" => Ok(Policing::All),
        _ => Err("expected true, false or all".to_owned()),
    },
    { "enum": [true, false, "all"] }
);
scalar!(
    /// Quality of service.
    QosText(Qos) ? repeated, |text: &str| Qos::from_request(text).map_err(|error| error.to_string()),
    { "type": "string", "description": "as in linux-atm's qos(7)", "examples": ["ubr,aal5:sdu=9180", "cbr,aal5:pcr=1000,sdu=4096"] }
);

scalar!(
    /// Encapsulation of an ATM line.
    EncapsulationText(Encapsulation), |text: &str| Encapsulation::lines()
        .find(|one| one.name() == text)
        .ok_or_else(|| format!("expected one of {}", Encapsulation::lines().map(Encapsulation::name).collect::<Vec<_>>().join(", "))),
    { "enum": Encapsulation::lines().map(Encapsulation::name).collect::<Vec<_>>() }
);

words!(
    /// Unit that has a connection of its own.
    PerText(Per) { "destination" = Per::Destination, "session" = Per::Session }
);
scalar!(
    /// A protocol, if one is given, and its ports.
    PortsText((Option<u8>, u16, u16)), ports_of,
    { "type": ["string", "integer"], "description": "a port or ports, after tcp or udp or neither", "examples": ["tcp 80", "udp 5000-5010", "7"] }
);

fn ports_of(text: &str) -> Result<(Option<u8>, u16, u16), String> {
    let (protocol, ports) = match text.split_once(' ') {
        Some(("tcp", ports)) => (Some(aerostat_wire::ipv4::TCP), ports),
        Some(("udp", ports)) => (Some(aerostat_wire::ipv4::UDP), ports),
        Some(_) => return Err("expected tcp or udp before the ports".to_owned()),
        None => (None, text),
    };
    let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
    match (first.trim().parse(), last.trim().parse()) {
        (Ok(first), Ok(last)) if first > 0 && first <= last => Ok((protocol, first, last)),
        _ => Err("expected a port of 1 to 65535, or two such as 5000-5010".to_owned()),
    }
}

/// Kinds of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A bulk transfer.
    Tcp,
    /// Datagrams.
    Udp,
    /// Echo requests.
    Ping,
    /// Request and response.
    Rr,
    /// One direction of a telephone call.
    Voice,
    /// Load in per cent of a link.
    Load,
}

/// The names of TCPs.
fn profiles() -> Vec<&'static str> {
    tcp::Profile::ALL.map(tcp::Profile::name).to_vec()
}

/// The names of algorithms for congestion control.
fn congestions() -> Vec<&'static str> {
    let own = [Congestion::Cubic, Congestion::Reno, Congestion::None];
    own.map(Congestion::name)
        .into_iter()
        .chain(KERNELS)
        .collect()
}

/// A name that is fit for a host and a network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name(pub(crate) String);

impl Leaf for Name {
    type Plain = String;
    fn plain(&self) -> String {
        self.0.clone()
    }
}

impl FromText for Name {
    fn key_doubt(text: &str) -> Option<(String, &'static str)> {
        let what = yaml_11::taken_for(text)?;
        let doubt = format!("tools for YAML take the name '{text}' for {what}");
        Some((
            doubt,
            "put it in quotes wherever it stands, or choose another name",
        ))
    }
    fn from_text(text: &str) -> Result<Self, String> {
        let ok = text.len() <= 32
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text
                .bytes()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_'));
        if ok {
            Ok(Self(text.to_owned()))
        } else {
            Err(
                "a name has at most 32 letters, digits, '-' and '_' and starts with a letter or digit"
                    .into(),
            )
        }
    }
}

inline_schema!(Name, { "type": ["string", "integer"], "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$" });

/// A lab's name: part of the paths of its sockets when it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LabName(pub(crate) String);

impl LabName {
    /// Longest name, octets. A socket's path has at most 107 octets; the directory of running labs and the socket's own
    /// name are part of it.
    pub(crate) const MAX: usize = 64;
}

impl FromText for LabName {
    fn from_text(text: &str) -> Result<Self, String> {
        let max = Self::MAX;
        if text.len() > max {
            let length = text.len();
            return Err(format!(
                "{length} octets: a lab's name has at most {max}, since it is part of a socket's path"
            ));
        }
        let ok = text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text
                .bytes()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.'));
        if ok {
            return Ok(Self(text.to_owned()));
        }
        Err(format!(
            "a lab's name has 1 to {max} letters, digits, '-', '_' and '.', and starts with a letter or digit"
        ))
    }
}

inline_schema!(LabName, { "type": ["string", "integer"], "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$" });

/// The version of the format of lab files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FormatVersion;

impl FromText for FormatVersion {
    fn from_text(text: &str) -> Result<Self, String> {
        if text == crate::SCHEMA {
            return Ok(Self);
        }
        Err(format!("this version reads {}", crate::SCHEMA))
    }
}

inline_schema!(FormatVersion, { "enum": [crate::SCHEMA] });

fn mtu(text: &str) -> Result<MaxFrameSize, String> {
    text.parse()
        .ok()
        .and_then(MaxFrameSize::from_octets)
        .ok_or_else(|| "LANE knows the frame sizes 1516, 1580, 4544, 9234 and 18190".to_owned())
}

fn hex_digits(text: &str) -> Result<Vec<u8>, String> {
    let digits = text.chars().filter(|c| !matches!(c, '.' | ':' | '-'));
    let value = |c: char| c.to_digit(16).ok_or(c).map(|digit| digit as u8);
    let digits: Result<Vec<u8>, char> = digits.map(value).collect();
    digits.map_err(|wrong| format!("'{wrong}' is no hex digit"))
}

fn sap(text: &str) -> Result<Sap, String> {
    match text {
        "any" => Ok(Sap::ANY),
        "ttcp" => Ok(Bhli::TTCP.into()),
        "svc" => Ok(Bhli::SVC.into()),
        "llc" => Ok(Sap::LLC),
        _ => text
            .parse::<Sap>()
            .map_err(|error| format!("expected any, ttcp, svc, llc, or sap(7) text: {error}")),
    }
}

fn prefix(text: &str) -> Result<[u8; 13], String> {
    let digits = hex_digits(text)?;
    let octets: Vec<u8> = digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[pair.len() - 1])
        .collect();
    octets
        .try_into()
        .ok()
        .filter(|_| digits.len() == 26)
        .ok_or_else(|| {
            let count = counted(digits.len(), "hex digit", "hex digits");
            format!("{count} where a network prefix has 26 (13 octets)")
        })
}

fn call_prefix(text: &str) -> Result<([u8; 19], usize), String> {
    let digits = hex_digits(text)?;
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() || !(1..=19).contains(&pairs.len()) {
        let count = counted(digits.len(), "hex digit", "hex digits");
        return Err(format!(
            "{count} where a route has 2 to 38 (1 to 19 octets)"
        ));
    }
    let mut octets = [0; 19];
    for (octet, [high, low]) in octets.iter_mut().zip(pairs) {
        *octet = high << 4 | low;
    }
    Ok((octets, pairs.len()))
}
