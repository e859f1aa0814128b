//! QoS entries of an MPOA client: the packets that get a shortcut with guaranteed traffic, and the text form of an
//! entry.
//!
//! ```text
//! entry    := filter tx=rates rx=rates|rx=tx
//! filter   := [source[:port]] destination[:port] [protocol]
//! protocol := udp | tcp | icmp | any | number            any and 0: any protocol
//! rates    := pcr,sdu | pcr,max_cdv,sdu | contract        cells/s, microseconds (0.5), octets
//! contract := class:param{,param}                         as in qos(7): cbr, rt-vbr or nrt-vbr, with max_pcr and sdu
//! ```
//!
//! The address 0.0.0.0 and the port 0 match any value. Numbers alone are CBR; contracts are our extension. Sources: the
//! Linux kernel's `/proc/net/atm/mpc` (rates with and without CDV); "Implementation and testing of Multi-Protocol Over
//! ATM client on Linux" (Tampere thesis, 1999), Figures 6.1 to 6.3, for the order of the fields.

use crate::ipv4::{self, Ipv4View};
use crate::qos_text::{QosError, error, micros, micros_text};
use crate::{Qos, ServiceCategory, TrafficParams};
use core::fmt;
use core::net::Ipv4Addr;
use core::str::FromStr;

/// Largest peak cell rate that signalling can carry, cells/s.
const MOST_CELLS: u32 = 0x00ff_ffff;

/// A filter on packets. A field of value 0 matches any packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowFilter {
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Destination port of TCP or UDP.
    pub destination_port: u16,
    /// IP protocol number.
    pub protocol: u8,
    /// Source address.
    pub source: Ipv4Addr,
    /// Source port of TCP or UDP.
    pub source_port: u16,
}

impl FlowFilter {
    /// Every packet.
    pub const ANY: Self = Self {
        destination: Ipv4Addr::UNSPECIFIED,
        destination_port: 0,
        protocol: 0,
        source: Ipv4Addr::UNSPECIFIED,
        source_port: 0,
    };

    /// A filter on one destination address: an entry of layer 3.
    #[must_use]
    pub const fn to(destination: Ipv4Addr) -> Self {
        Self {
            destination,
            ..Self::ANY
        }
    }
    /// The filter that exactly describes the flow of a packet. Fragments of a datagram have no ports here, so that all
    /// fragments take the same path.
    #[must_use]
    pub fn of(packet: &Ipv4View<'_>) -> Self {
        let whole = !packet.more_fragments();
        let ports = packet.ports().filter(|_| whole);
        let (source_port, destination_port) = ports.unwrap_or((0, 0));
        Self {
            destination: packet.destination(),
            destination_port,
            protocol: packet.protocol(),
            source: packet.source(),
            source_port,
        }
    }
    /// True if the filter has more than a destination address.
    #[must_use]
    pub fn is_layer_4(&self) -> bool {
        *self != Self::to(self.destination)
    }
    /// The fields that the filter uses, one bit each. A filter with more bits is more specific; of two with equally
    /// many bits, the one with the larger value comes first.
    #[must_use]
    pub fn shape(&self) -> u8 {
        let given = [
            !self.destination.is_unspecified(),
            self.destination_port != 0,
            self.protocol != 0,
            !self.source.is_unspecified(),
            self.source_port != 0,
        ];
        given.iter().fold(0, |bits, bit| bits << 1 | u8::from(*bit))
    }
    /// The filter with only the fields of `shape`, see [`Self::shape`].
    #[must_use]
    pub const fn only(self, shape: u8) -> Self {
        let mut cut = Self::ANY;
        if shape & 16 != 0 {
            cut.destination = self.destination;
        }
        if shape & 8 != 0 {
            cut.destination_port = self.destination_port;
        }
        if shape & 4 != 0 {
            cut.protocol = self.protocol;
        }
        if shape & 2 != 0 {
            cut.source = self.source;
        }
        if shape & 1 != 0 {
            cut.source_port = self.source_port;
        }
        cut
    }
    /// The protocol in a word.
    #[must_use]
    pub fn protocol_name(&self) -> String {
        match self.protocol {
            0 => "any".into(),
            ipv4::UDP => "udp".into(),
            ipv4::TCP => "tcp".into(),
            ipv4::ICMP => "icmp".into(),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for FlowFilter {
    /// `130.230.54.146`, or `0.0.0.0:0 130.230.54.209:23 tcp`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_layer_4() {
            return write!(f, "{}", self.destination);
        }
        write!(
            f,
            "{}:{} {}:{} {}",
            self.source,
            self.source_port,
            self.destination,
            self.destination_port,
            self.protocol_name()
        )
    }
}

/// An entry: packets that match the filter get a shortcut with this traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QosEntry {
    /// The packets.
    pub filter: FlowFilter,
    /// Traffic of the shortcut.
    pub qos: Qos,
}

impl fmt::Display for QosEntry {
    /// `130.230.54.146 tx=80000,0,1600 rx=tx`, or `10.2.0.10 tx=nrt-vbr:max_pcr=500,scr=240,mbs=20,sdu=300 rx=tx`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rates = |t: &TrafficParams| {
            let pcr = t.max_pcr.unwrap_or(0);
            let plain = TrafficParams {
                max_cdv: t.max_cdv,
                ..TrafficParams::cbr(pcr, t.max_sdu)
            };
            match *t == plain {
                true => format!("{pcr},{},{}", micros_text(t.max_cdv), t.max_sdu),
                false => t.to_string(),
            }
        };
        let (tx, rx) = (rates(&self.qos.tx), rates(&self.qos.rx));
        let rx = if tx == rx { "tx" } else { &rx };
        write!(f, "{} tx={tx} rx={rx}", self.filter)
    }
}

/// A word of the text with its offset.
type Word<'a> = (usize, &'a str);

fn words(text: &str) -> Vec<Word<'_>> {
    let offset = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
    text.split_ascii_whitespace()
        .map(|word| (offset(word), word))
        .collect()
}

impl FromStr for FlowFilter {
    type Err = QosError;
    fn from_str(text: &str) -> Result<Self, QosError> {
        filter(&words(text), text.len())
    }
}

impl FromStr for QosEntry {
    type Err = QosError;
    fn from_str(text: &str) -> Result<Self, QosError> {
        let words = words(text);
        let place = |key: &str| words.iter().position(|(_, word)| word.starts_with(key));
        let value = |at: usize| (words[at].0 + 3, &words[at].1[3..]);
        let (tx, rx) = match (place("tx="), place("rx=")) {
            (Some(tx), Some(rx)) if rx < tx => {
                return error(words[rx].0, "rx= comes after tx=");
            }
            (Some(tx), Some(rx)) => (tx, rx),
            (None, _) => {
                return error(
                    text.len(),
                    "tx= is missing: tx=PCR,SDU, or tx= and a contract",
                );
            }
            (Some(_), None) => {
                let missing = "rx= is missing: rx=tx for the same traffic back, or rx=PCR,SDU";
                return error(text.len(), missing);
            }
        };
        let mut strangers = words[tx + 1..rx].iter().chain(&words[rx + 1..]);
        if let Some((at, word)) = strangers.next() {
            return error(*at, format!("'{word}' is not expected here"));
        }
        let filter = filter(&words[..tx], words[tx].0)?;
        let tx = rates(value(tx))?;
        let rx = match value(rx) {
            (_, "tx") => tx,
            list => rates(list)?,
        };
        let qos = Qos { tx, rx };
        Ok(Self { filter, qos })
    }
}

/// Addresses and protocol; `end` is the offset at which an error reports missing words.
fn filter(words: &[Word<'_>], end: usize) -> Result<FlowFilter, QosError> {
    let is_address = |(_, word): &&Word<'_>| word.contains('.');
    let addresses = words.iter().take_while(is_address).count();
    let (addresses, rest) = words.split_at(addresses);
    let mut filter = match addresses {
        [to] => {
            let (destination, destination_port) = address(*to)?;
            FlowFilter {
                destination_port,
                ..FlowFilter::to(destination)
            }
        }
        [from, to] => {
            let (source, source_port) = address(*from)?;
            let (destination, destination_port) = address(*to)?;
            FlowFilter {
                destination,
                destination_port,
                protocol: 0,
                source,
                source_port,
            }
        }
        [] => return error(words.first().map_or(end, |w| w.0), "expected an address"),
        [.., (at, word)] => return error(*at, format!("'{word}': one address too many")),
    };
    match rest {
        [] => {}
        [(at, word)] => filter.protocol = protocol((*at, word))?,
        [_, (at, word), ..] => return error(*at, format!("'{word}' is not expected here")),
    }
    let portless = !matches!(filter.protocol, 0 | ipv4::TCP | ipv4::UDP);
    if portless && (filter.source_port, filter.destination_port) != (0, 0) {
        let at = addresses.first().map_or(0, |w| w.0);
        return error(at, "only udp and tcp have ports");
    }
    Ok(filter)
}

fn address((at, word): Word<'_>) -> Result<(Ipv4Addr, u16), QosError> {
    let (address, port) = word.split_once(':').unwrap_or((word, "0"));
    let Ok(ip) = address.parse::<Ipv4Addr>() else {
        return error(at, format!("'{address}' is no IPv4 address"));
    };
    if ip.is_multicast() || ip.is_broadcast() {
        return error(at, format!("no shortcut leads to the group {ip}"));
    }
    let port = number((at + address.len() + 1, port), 65535, "port")?;
    Ok((ip, port as u16))
}

fn protocol((at, word): Word<'_>) -> Result<u8, QosError> {
    Ok(match word.to_ascii_lowercase().as_str() {
        "any" => 0,
        "udp" => ipv4::UDP,
        "tcp" => ipv4::TCP,
        "icmp" => ipv4::ICMP,
        other if other.starts_with(|c: char| c.is_ascii_digit()) => {
            number((at, word), 255, "IP protocol")? as u8
        }
        _ => {
            return error(
                at,
                format!("'{word}' is no protocol: udp, tcp, icmp, any or a number"),
            );
        }
    })
}

/// `pcr,sdu`, `pcr,max_cdv,sdu`, or a contract.
fn rates((at, list): Word<'_>) -> Result<TrafficParams, QosError> {
    if list.contains(':') {
        return contract((at, list));
    }
    let mut parts = Vec::new();
    let mut next = at;
    for part in list.split(',') {
        parts.push((next, part));
        next += part.len() + 1;
    }
    let (pcr, cdv, sdu) = match parts[..] {
        [pcr, sdu] => (pcr, (at, "0"), sdu),
        [pcr, cdv, sdu] => (pcr, cdv, sdu),
        _ => {
            let what = "expected PCR,SDU or PCR,CDV,SDU, or a contract such as cbr:pcr=240,sdu=300";
            return error(at, format!("'{list}': {what}"));
        }
    };
    let (pcr_at, sdu_at) = (pcr.0, sdu.0);
    let (pcr, cdv) = (
        number(pcr, MOST_CELLS, "rate in cells/s")?,
        micros(cdv.0, cdv.1)?,
    );
    let sdu = number(sdu, 65535, "number of octets")?;
    if pcr == 0 {
        return error(pcr_at, "no traffic at 0 cells/s");
    }
    if sdu == 0 {
        return error(sdu_at, "no packet fits into an SDU of 0 octets");
    }
    Ok(TrafficParams {
        max_cdv: cdv,
        ..TrafficParams::cbr(pcr, sdu as u16)
    })
}

/// A contract with a guarantee: a shortcut without one needs no entry.
fn contract((at, text): Word<'_>) -> Result<TrafficParams, QosError> {
    let found = TrafficParams::from_request(text).map_err(|error| QosError {
        at: at + error.at,
        text: error.text,
    })?;
    let guaranteed = matches!(
        found.category,
        Some(ServiceCategory::Cbr | ServiceCategory::RtVbr | ServiceCategory::NrtVbr)
    );
    if !guaranteed {
        return error(at, "a shortcut of its own is for cbr, rt-vbr or nrt-vbr");
    }
    match found.max_pcr {
        Some(1..=MOST_CELLS) => {}
        _ => return error(at, format!("max_pcr is missing, or above {MOST_CELLS}")),
    }
    if found.max_sdu == 0 {
        return error(at, "sdu is missing: no packet fits into an SDU of 0 octets");
    }
    Ok(found)
}

fn number((at, word): Word<'_>, most: u32, what: &str) -> Result<u32, QosError> {
    match word.parse::<u32>() {
        Ok(value) if value <= most && word.bytes().all(|c| c.is_ascii_digit()) => Ok(value),
        _ => error(at, format!("'{word}' is no {what} of at most {most}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;
    use proptest::prelude::*;

    fn entry(text: &str) -> QosEntry {
        text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    #[test]
    fn text_of_figure_6_1_and_of_newer_kernels() {
        let old = entry("130.230.54.146 tx=80000,0,1600 rx=tx");
        let new = entry("130.230.54.146 tx=80000,1600 rx=80000,1600");
        assert_eq!(old, new);
        assert_eq!(old.filter, FlowFilter::to(Ipv4Addr::new(130, 230, 54, 146)));
        assert_eq!(old.qos, Qos::cbr(80_000, 1600));
        assert_eq!(old.to_string(), "130.230.54.146 tx=80000,0,1600 rx=tx");
        let uneven = entry("10.0.0.9 tx=100,50,1600 rx=200,9192");
        assert_eq!(
            (uneven.qos.tx.max_cdv, uneven.qos.rx.max_cdv),
            (Duration::from_micros(50), Duration::ZERO)
        );
        assert_eq!(uneven.to_string(), "10.0.0.9 tx=100,50,1600 rx=200,0,9192");
    }

    #[test]
    fn contracts_of_variable_rate() {
        let text = "10.2.0.10 tx=nrt-vbr:max_pcr=500,scr=240,mbs=20,sdu=300 rx=tx";
        let vbr = entry(text);
        assert_eq!(vbr.qos.tx, vbr.qos.rx);
        assert_eq!((vbr.qos.tx.scr, vbr.qos.tx.mbs), (240, 20));
        assert_eq!(vbr.to_string(), text);
        let same = entry("10.2.0.10 tx=cbr:pcr=500,sdu=300 rx=500,300");
        assert_eq!(same.to_string(), "10.2.0.10 tx=500,0,300 rx=tx");
        let uneven = "0.0.0.0:0 10.2.0.10:5004 udp tx=rt-vbr:max_pcr=500,scr0=240,mbs=20,sdu=300,tagging=true \
            rx=500,0,300";
        assert_eq!(entry(uneven).to_string(), uneven);
        for (wrong, at, says) in [
            ("10.0.0.1 tx=ubr:pcr=5,sdu=9 rx=tx", 12, "is for cbr"),
            ("10.0.0.1 tx=cbr:sdu=9 rx=tx", 12, "max_pcr is missing"),
            ("10.0.0.1 tx=cbr:pcr=9 rx=tx", 12, "sdu is missing"),
            (
                "10.0.0.1 tx=9,9 rx=vbr:pcr=9,scr=10,mbs=2,sdu=9",
                29,
                "above the peak rate",
            ),
            ("10.0.0.1 tx=vbr:pcr=9,scr=x,sdu=9 rx=tx", 26, "no rate"),
        ] {
            let error = wrong.parse::<QosEntry>().expect_err(wrong);
            assert_eq!(error.at, at, "{wrong}: {error}");
            assert!(error.text.contains(says), "{wrong}: {error}");
        }
    }

    #[test]
    fn layer_4() {
        let telnet = entry("130.230.54.209:23 TCP tx=20000,1600 rx=tx").filter;
        let text = "0.0.0.0:0 130.230.54.209:23 tcp";
        assert_eq!(
            (telnet.to_string().as_str(), telnet.shape()),
            (text, 0b11100)
        );
        assert_eq!(text.parse(), Ok(telnet));
        let ospf: FlowFilter = "10.0.0.1 0.0.0.0 89".parse().unwrap();
        assert_eq!((ospf.protocol, ospf.shape()), (89, 0b00110));
        assert_eq!(ospf.to_string(), "10.0.0.1:0 0.0.0.0:0 89");
        assert_eq!("0.0.0.0".parse(), Ok(FlowFilter::ANY));
    }

    #[test]
    fn mistakes_and_where_they_are() {
        let at = |text: &str| text.parse::<QosEntry>().expect_err(text).at;
        for (text, place) in [
            ("", 0),
            ("10.0.0.1", 8),
            ("tx=1,2 rx=tx", 0),
            ("10.0.0.1 rx=tx", 14),
            ("10.0.0.1 tx=1,2", 15),
            ("10.0.0.1 tx=1,2 udp rx=tx", 16),
            ("10.0.0.1 tx=1,2 rx=tx udp", 22),
            ("10.0.0.1 tx=abc rx=tx", 12),
            ("10.0.0.1 rx=tx tx=1,2", 9),
            ("10.0.0.1 tx=0,1600 rx=tx", 12),
            ("10.0.0.1 tx=16777216,1600 rx=tx", 12),
            ("10.0.0.1 tx=1,+5 rx=tx", 14),
            ("10.0.0.1 tx=1,65536 rx=tx", 14),
            ("10.0.0.1 tx=1,0 rx=tx", 14),
            ("10.0.0.1 tx=1 rx=tx", 12),
            ("10.0.0.1 tx=1,2 rx=rx", 19),
            ("10.0.0.256 tx=1,2 rx=tx", 0),
            ("10.0.0.1:65536 udp tx=1,2 rx=tx", 9),
            ("10.0.0.1 10.0.0.2 10.0.0.3 tx=1,2 rx=tx", 18),
            ("10.0.0.1 udp tcp tx=1,2 rx=tx", 13),
            ("10.0.0.1 sctp tx=1,2 rx=tx", 9),
            ("10.0.0.1 256 tx=1,2 rx=tx", 9),
            ("10.0.0.1:7 icmp tx=1,2 rx=tx", 0),
            ("224.0.0.5 tx=1,2 rx=tx", 0),
        ] {
            assert_eq!(at(text), place, "{text}");
        }
    }

    fn any_filter() -> impl Strategy<Value = FlowFilter> {
        let ip = |n: u8| {
            if n == 0 {
                0
            } else {
                0x0a00_0000 + u32::from(n)
            }
        };
        (
            any::<u8>(),
            any::<u16>(),
            0..5_usize,
            any::<u8>(),
            any::<u16>(),
        )
            .prop_map(move |(to, to_port, protocol, from, from_port)| {
                let protocol = [0, 6, 17, 1, 89][protocol];
                let ports = matches!(protocol, 0 | 6 | 17);
                FlowFilter {
                    destination: ip(to).into(),
                    destination_port: if ports { to_port } else { 0 },
                    protocol,
                    source: ip(from).into(),
                    source_port: if ports { from_port } else { 0 },
                }
            })
    }

    proptest! {
        #[test]
        fn round_trip(
            filter in any_filter(),
            pcr in 1..=MOST_CELLS,
            cdv in 0..u64::from(u32::MAX) * 1000,
            sdu in 1..=u16::MAX,
            even: bool,
        ) {
            let tx = TrafficParams { max_cdv: Duration::from_nanos(cdv), ..TrafficParams::cbr(pcr, sdu) };
            let rx = if even { tx } else { TrafficParams::cbr(1, 48) };
            let entry = QosEntry { filter, qos: Qos { tx, rx } };
            prop_assert_eq!(entry.to_string().parse(), Ok(entry));
            prop_assert_eq!(filter.only(filter.shape()), filter);
        }

        #[test]
        fn never_panics(text in "[ -~]{0,60}", words in "([0-9.:]{1,8} ){0,4}(tx=[0-9,]{0,9} )?(rx=[a-z0-9,]{0,9})?") {
            let _ = text.parse::<QosEntry>();
            let _ = words.parse::<QosEntry>();
            let _ = words.parse::<FlowFilter>();
        }
    }
}
