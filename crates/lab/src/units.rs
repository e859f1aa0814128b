//! Quantities with units in the syntax of the lab file: `5us`, `35Mbps`, `oc3`, `64KiB`, `1e-6`.

use aerostat_node::atm::CellRate;
use aerostat_node::host::IntakeRate;
use aerostat_node::ip::clock::Clock;
use aerostat_node::ip::router::{Forwarding, QueueLimit};
use aerostat_node::rate::PacketRate;
use aerostat_node::server::Cost;
use aerostat_proto::Duration;
use aerostat_proto::mpoa::params::{MpcParams, MpcRanges};
use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// An IPv4 network or an address with its mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IpNet {
    /// Network address: host bits are zero.
    pub network: Ipv4Addr,
    /// Length of the mask, 0..=32.
    pub length: u8,
}

impl IpNet {
    /// The network that contains all addresses.
    pub const ALL: Self = Self {
        network: Ipv4Addr::UNSPECIFIED,
        length: 0,
    };
    /// A network that no host is on.
    pub(crate) const NONE: Self = Self {
        network: Ipv4Addr::UNSPECIFIED,
        length: 32,
    };
    /// The mask as a number.
    #[must_use]
    pub const fn mask(self) -> u32 {
        if self.length == 0 {
            0
        } else {
            u32::MAX << (32 - self.length)
        }
    }
    /// True if `ip` is in this network.
    #[must_use]
    pub const fn contains(self, ip: Ipv4Addr) -> bool {
        ip.to_bits() & self.mask() == self.network.to_bits()
    }
    /// The broadcast address of the network.
    #[must_use]
    pub const fn broadcast(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.network.to_bits() | !self.mask())
    }
    /// True if the two networks have a common address.
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        self.contains(other.network) || other.contains(self.network)
    }
}

impl fmt::Display for IpNet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.length)
    }
}

impl FromStr for IpNet {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (ip, length) = text
            .split_once('/')
            .ok_or("expected a network such as 10.1.0.0/24")?;
        let ip: Ipv4Addr = ip
            .parse()
            .map_err(|_| format!("'{ip}' is no IPv4 address"))?;
        let length: u8 = length
            .parse()
            .ok()
            .filter(|length| *length <= 32)
            .ok_or(format!("'/{length}' is no prefix length of 0 to 32"))?;
        let net = Self {
            network: ip,
            length,
        };
        let network = Ipv4Addr::from_bits(ip.to_bits() & net.mask());
        if network != ip {
            return Err(format!(
                "{text} has host bits; the network is {network}/{length}"
            ));
        }
        Ok(net)
    }
}

/// Splits `12.5ms` into 12.5 and `ms`.
fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    // The unit starts at the first letter that does not continue the number: in 1e-6 the e does.
    let mut end = 0;
    for (at, c) in text.char_indices() {
        let exponent = matches!(c, 'e' | 'E')
            && at > 0
            && text[at + 1..].starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+');
        let sign = matches!(c, '-' | '+') && (at == 0 || text[..at].ends_with(['e', 'E']));
        if !(c.is_ascii_digit() || c == '.' || exponent || sign) {
            break;
        }
        end = at + c.len_utf8();
    }
    let number = text[..end].parse::<f64>().ok().filter(|n| n.is_finite())?;
    Some((number, text[end..].trim()))
}

/// A duration: `6s`, `5us`, `1.5ms`, `2min`.
///
/// # Errors
/// A sentence without the value itself.
pub fn duration(text: &str) -> Result<Duration, String> {
    const EXPECTED: &str = "expected a time such as 6s, 20ms or 5us";
    let (number, unit) = number_and_unit(text).ok_or(EXPECTED)?;
    let nanos = match unit {
        "ns" => 1.0,
        "us" | "µs" | "μs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "min" => 60e9,
        "h" => 3600e9,
        "" if number == 0.0 => 1.0,
        "" => {
            let number = text.trim();
            return Err(format!(
                "a time needs a unit: {number}s, {number}ms or {number}us?"
            ));
        }
        _ => {
            return Err(format!(
                "'{unit}' is no unit of time; use ns, us, ms, s, min or h"
            ));
        }
    };
    if number < 0.0 {
        return Err("a time cannot be negative".into());
    }
    let nanos = (number * nanos).round();
    // 100 years; everything in a run is counted in 64 bits of nanoseconds.
    if nanos > 3.2e18 {
        return Err("too long: at most 100 years".into());
    }
    Ok(Duration::from_nanos(nanos as u64))
}

/// A duration as in lab files, in one unit: `5us`, `1.5ms`.
pub(crate) fn time_text(time: Duration) -> String {
    format!("{time:?}").replace('µ', "u")
}

/// Factor of a bit rate unit.
fn bits_factor(unit: &str) -> Option<f64> {
    let unit = unit
        .strip_suffix("bps")
        .or_else(|| unit.strip_suffix("bit/s"))?;
    Some(match unit {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        _ => return None,
    })
}

/// Bits per second: `35Mbps`, `64kbps`.
///
/// # Errors
/// A sentence without the value itself.
pub fn bit_rate(text: &str) -> Result<u64, String> {
    let (number, unit) = number_and_unit(text).ok_or("expected a rate such as 35Mbps or 64kbps")?;
    let factor = bits_factor(unit)
        .ok_or_else(|| format!("'{unit}' is no unit of a bit rate; use bps, kbps, Mbps or Gbps"))?;
    let exact = number * factor;
    let bits = exact.round();
    if !(1.0..=1e15).contains(&bits) {
        return Err("a bit rate is 1bps to 1000000Gbps".into());
    }
    // 1.1 Mbps misses a whole number only because of binary fractions.
    if (exact - bits).abs() > exact * 1e-12 {
        return Err("a bit rate is a whole number of bits per second".into());
    }
    Ok(bits as u64)
}

/// Rate of a link: `oc3`, `oc12`, `ds3`, `25.6`, `155Mbps` (of cells), `80000cells/s`.
///
/// # Errors
/// A sentence without the value itself.
pub fn link_rate(text: &str) -> Result<CellRate, String> {
    let expected = || {
        let names: Vec<&str> = CellRate::names().collect();
        let names = names.join(", ");
        format!("expected a rate such as 10Mbps or 80000cells/s, or one of {names}")
    };
    if let Some(rate) = CellRate::named(text.trim()) {
        return Ok(rate);
    }
    let (number, unit) = number_and_unit(text).ok_or_else(expected)?;
    if unit == "cells/s" {
        return if (1.0..=1e9).contains(&number) && number.fract() == 0.0 {
            Ok(CellRate::of_cells(number as u32))
        } else {
            Err("a cell rate is a whole number of 1 to 1000000000 cells/s".into())
        };
    }
    if bits_factor(unit).is_none() {
        return Err(expected());
    }
    let bits = bit_rate(text)?;
    if bits < 424 {
        return Err("less than one cell (424 bits) per second".into());
    }
    Ok(CellRate::of_bits(bits))
}

/// Cells per second: `20000`, `20000cells/s`.
///
/// # Errors
/// A sentence without the value itself.
pub fn cells_per_second(text: &str) -> Result<u64, String> {
    let digits = text.trim().trim_end_matches("cells/s").trim_end();
    let expected = || "expected cells per second, such as 20000 or 20000cells/s".to_owned();
    digits.parse().map_err(|_| expected())
}

/// A cost: a time per packet, a time per octet, or both: `80us`, `78ns/octet`, `80.7us + 78ns/octet`.
///
/// # Errors
/// A sentence without the value itself.
pub fn cost(text: &str) -> Result<Cost, String> {
    const EXPECTED: &str = "expected a time per packet, a time per octet, or both, such as 80us, 78ns/octet or \
                            80.7us + 78ns/octet";
    let mut cost = Cost::NOTHING;
    let mut given = [false; 2];
    for part in text.split('+') {
        let (time, per_octet) = match part.trim().split_once('/') {
            None => (part, false),
            Some((time, unit)) if unit.trim() == "octet" => (time, true),
            Some(_) => return Err(EXPECTED.into()),
        };
        let (number, unit) = number_and_unit(time).ok_or(EXPECTED)?;
        let picos = match unit {
            "ps" => 1.0,
            "ns" => 1e3,
            "us" | "µs" | "μs" => 1e6,
            "ms" => 1e9,
            "s" => 1e12,
            "" if number == 0.0 => 1.0,
            _ => return Err(EXPECTED.into()),
        };
        let picos = (number * picos).round();
        if !(0.0..=Cost::MOST as f64).contains(&picos) {
            return Err("a cost is 0 to 10s".into());
        }
        if std::mem::replace(&mut given[usize::from(per_octet)], true) {
            return Err(EXPECTED.into());
        }
        let place = if per_octet {
            &mut cost.octet
        } else {
            &mut cost.packet
        };
        *place = picos as u64;
    }
    Ok(cost)
}

/// Speed of a router: `wire`, `35Mbps` (of IP packets), `65000pps`, `104000cells/s`, or a [`cost`].
///
/// # Errors
/// A sentence without the value itself.
pub fn forwarding(text: &str) -> Result<Forwarding, String> {
    const EXPECTED: &str = "expected wire, a rate such as 35Mbps, 65000pps or 104000cells/s, or a cost such as \
                            15us or 12us + 80ns/octet";
    if text.trim() == "wire" {
        return Ok(Forwarding::Wire);
    }
    let (number, unit) = number_and_unit(text).ok_or(EXPECTED)?;
    let whole = || {
        ((1.0..=1e9).contains(&number) && number.fract() == 0.0)
            .then_some(number as u64)
            .ok_or_else(|| format!("a rate of {unit} is a whole number of 1 to 1000000000"))
    };
    match unit {
        "pps" => whole().map(Forwarding::PacketsPerSecond),
        "cells/s" => whole().map(Forwarding::CellsPerSecond),
        _ if bits_factor(unit).is_some() => bit_rate(text).map(Forwarding::BitsPerSecond),
        _ => match cost(text) {
            Ok(cost) if cost.is_nothing() => Err("a cost of 0 is wire".into()),
            Ok(cost) => Ok(Forwarding::Cost(cost)),
            Err(_) => Err(EXPECTED.into()),
        },
    }
}

/// The error of a frequency in millionths: `50`, `-12.5`. Returns billionths.
///
/// # Errors
/// A sentence without the value itself.
pub fn ppm(text: &str) -> Result<i32, String> {
    let ppm = text.trim().parse::<f64>().ok();
    let ppb = ppm.map(|ppm| ppm * 1000.0);
    let ppb = ppb.filter(|ppb| ppb.abs() <= f64::from(Clock::MOST) && ppb.fract() == 0.0);
    ppb.map(|ppb| ppb as i32).ok_or_else(|| {
        "expected millionths between -1000 and 1000, with at most three decimals".to_owned()
    })
}

/// Speed of an adapter's receive path: `400pdus/s`, `25000cells/s`.
///
/// # Errors
/// A sentence without the value itself.
pub fn intake_rate(text: &str) -> Result<IntakeRate, String> {
    const EXPECTED: &str =
        "expected a whole number with its unit, such as 400pdus/s or 25000cells/s";
    let (number, unit) = number_and_unit(text).ok_or(EXPECTED)?;
    if !(1.0..=1e9).contains(&number) || number.fract() != 0.0 {
        return Err(format!("{EXPECTED}, at most 1000000000"));
    }
    match unit {
        "pdus/s" => Ok(IntakeRate::Pdus(number as u64)),
        "cells/s" => Ok(IntakeRate::Cells(number as u64)),
        _ => Err(EXPECTED.into()),
    }
}

/// Size of a queue: `100` (packets), `448cells`, `64KiB`.
///
/// # Errors
/// A sentence without the value itself.
pub fn queue(text: &str) -> Result<QueueLimit, String> {
    const EXPECTED: &str =
        "expected a number of packets, or a size such as 448cells, 20000B or 64KiB";
    const RANGE: &str =
        "a queue holds 1 to 1000000 frames, 1 to 1000000000 cells or 1 to 1000000000 octets";
    let (number, unit) = number_and_unit(text).ok_or(EXPECTED)?;
    let within = |number: f64, most: f64| {
        ((1.0..=most).contains(&number) && number.fract() == 0.0).then_some(number as u64)
    };
    match unit {
        "" | "packets" | "frames" => within(number, 1e6)
            .and_then(|packets| usize::try_from(packets).ok())
            .map(QueueLimit::Packets)
            .ok_or_else(|| RANGE.into()),
        "cells" => within(number, 1e9)
            .map(QueueLimit::Cells)
            .ok_or_else(|| RANGE.into()),
        _ => within(octets(text)? as f64, 1e9)
            .map(QueueLimit::Octets)
            .ok_or_else(|| RANGE.into()),
    }
}

/// Octets: `64KiB`, `1MB`, `1500`.
///
/// # Errors
/// A sentence without the value itself.
pub fn octets(text: &str) -> Result<usize, String> {
    let (number, unit) =
        number_and_unit(text).ok_or("expected a number of octets such as 1000 or 64KiB")?;
    let factor = match unit {
        "" | "B" => 1.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GB" => 1e9,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        _ => {
            return Err(format!(
                "'{unit}' is no unit of size; use B, kB, KiB, MB, MiB, GB or GiB"
            ));
        }
    };
    let octets = number * factor;
    if octets.fract() != 0.0 || octets < 0.0 {
        return Err("expected a whole number of octets".into());
    }
    // In a browser's tab a size has 32 bits. What does not fit would be another number there.
    if octets > usize::MAX as f64 {
        return Err(format!("here at most {} octets are possible", usize::MAX));
    }
    Ok(octets as usize)
}

/// A probability: `0`, `0.01`, `1e-6`, `2%`.
///
/// # Errors
/// A sentence without the value itself.
pub fn probability(text: &str) -> Result<f64, String> {
    const EXPECTED: &str = "expected a probability of 0 to 1 such as 1e-6, or 2%";
    let (number, unit) = number_and_unit(text).ok_or(EXPECTED)?;
    let value = match unit {
        "" => number,
        "%" => number / 100.0,
        _ => return Err(EXPECTED.into()),
    };
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        Err(EXPECTED.into())
    }
}

/// Sending rate of a flow: packets per second (`450pps`) or bits of payload per second (`2Mbps`).
///
/// # Errors
/// A sentence without the value itself.
pub fn send_rate(text: &str) -> Result<crate::model::GivenRate, String> {
    const EXPECTED: &str = "expected a rate such as 450pps or 2Mbps";
    let (number, unit) = number_and_unit(text).ok_or(EXPECTED)?;
    if unit == "pps" {
        return if PacketRate::per_second(number).is_some() {
            Ok(crate::model::GivenRate::Packets(number))
        } else {
            Err(format!(
                "a packet rate is {:.6}pps to {}pps",
                PacketRate::LEAST,
                PacketRate::MOST
            ))
        };
    }
    if bits_factor(unit).is_none() {
        return Err(EXPECTED.into());
    }
    bit_rate(text).map(crate::model::GivenRate::Bits)
}

/// Frames per second: `1000pps`.
///
/// # Errors
/// A sentence without the value itself.
pub fn frame_rate(text: &str) -> Result<u32, String> {
    const EXPECTED: &str = "expected whole frames a second, such as 1000pps";
    let number = text.strip_suffix("pps").map(str::trim);
    let number = number.and_then(|number| number.parse::<u32>().ok());
    number.ok_or_else(|| EXPECTED.into())
}

/// `10 frames per 1s`: number of frames and time that make a flow.
///
/// # Errors
/// A sentence without the value itself.
pub fn flow_detect(text: &str) -> Result<(u16, Duration), String> {
    const EXPECTED: &str = "expected a rule such as '10 frames per 1s'";
    let MpcRanges {
        flow_frames,
        flow_time,
        ..
    } = MpcParams::RANGES;
    let words: Vec<&str> = text.split_whitespace().collect();
    let [count, "frame" | "frames", "per" | "in", time] = words[..] else {
        return Err(EXPECTED.into());
    };
    let count = count.parse::<u16>().ok();
    let count = count.filter(|count| flow_frames.contains(*count));
    let count = count.ok_or_else(|| format!("a flow takes {flow_frames} frames"))?;
    let time = duration(time)?;
    if !flow_time.contains(time) {
        return Err(format!("the time of flow detection is {flow_time}"));
    }
    Ok((count, time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(duration("5us"), Ok(Duration::from_micros(5)));
        assert_eq!(duration("1.5 ms"), Ok(Duration::from_micros(1500)));
        assert_eq!(duration("1e-3s"), Ok(Duration::from_millis(1)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        assert_eq!(duration("2min"), Ok(Duration::from_secs(120)));
        for bad in ["6", "6x", "s", "", "-1s", "1e30s", "6 seconds"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_written_in_the_units_of_lab_files_is_read_as_the_same() {
        for text in ["0ns", "5us", "1.5ms", "12.345678901s", "999ns", "7200s"] {
            let time = duration(text).unwrap();
            assert_eq!(time_text(time), text);
        }
        for text in [
            "oc3",
            "25.6",
            "ds3-hec",
            "155Mbps",
            "155.52Mbps",
            "424kbps",
            "999bps",
            "2.488Gbps",
            "81000cells/s",
        ] {
            assert_eq!(link_rate(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn rates() {
        assert_eq!(link_rate("oc3"), Ok(CellRate::OC3));
        assert_eq!(link_rate("25.6"), Ok(CellRate::ATM25));
        assert_eq!(link_rate("424kbps").unwrap().cells_per_second(), 1000);
        assert_eq!(
            link_rate("80000cells/s").unwrap().cells_per_second(),
            80_000
        );
        for (text, says) in [
            ("1e308pps", "0.000001pps to 1000000000pps"),
            ("0pps", "0.000001pps to 1000000000pps"),
            ("1e-7pps", "0.000001pps to 1000000000pps"),
            ("2e6Gbps", "1bps to 1000000Gbps"),
            ("0.4bps", "1bps to 1000000Gbps"),
            ("2.5bps", "whole number of bits"),
        ] {
            let said = send_rate(text).expect_err(text);
            assert!(said.contains(says), "{text}: {said}");
        }
        assert_eq!(bit_rate("1.1Mbps"), Ok(1_100_000));
        assert_eq!(bit_rate("0.4kbps"), Ok(400));
        for bad in ["oc48", "0Mbps", "-1Mbps", "100bps", "1.5cells/s", "35"] {
            assert!(link_rate(bad).is_err(), "{bad}");
        }
        assert_eq!(bit_rate("35Mbps"), Ok(35_000_000));
        assert_eq!(
            send_rate("450pps"),
            Ok(crate::model::GivenRate::Packets(450.0))
        );
        assert!(send_rate("450").is_err());
    }

    #[test]
    fn costs_and_speeds_and_queues() {
        let both = Cost {
            packet: 80_700_000,
            octet: 78_500,
        };
        assert_eq!(cost("80.7us + 78.5ns/octet"), Ok(both));
        assert_eq!(cost("78.5 ns/octet+80.7us"), Ok(both));
        assert_eq!(cost("0"), Ok(Cost::NOTHING));
        for bad in [
            "",
            "5",
            "-1us",
            "11s",
            "1us + 2us",
            "1ns/bit",
            "1us +",
            "1min",
        ] {
            assert!(cost(bad).is_err(), "{bad}");
        }
        assert_eq!(
            forwarding("35Mbps"),
            Ok(Forwarding::BitsPerSecond(35_000_000))
        );
        assert_eq!(
            forwarding("65000pps"),
            Ok(Forwarding::PacketsPerSecond(65_000))
        );
        assert_eq!(
            forwarding("104000cells/s"),
            Ok(Forwarding::CellsPerSecond(104_000))
        );
        assert_eq!(
            forwarding("80.7us + 78.5ns/octet"),
            Ok(Forwarding::Cost(both))
        );
        for bad in ["fast", "0pps", "1.5pps", "2e9cells/s", "0us", "0Mbps", "7"] {
            assert!(forwarding(bad).is_err(), "{bad}");
        }
        assert_eq!((ppm("50"), ppm("-12.5")), (Ok(50_000), Ok(-12_500)));
        for bad in ["", "1001", "-1000.1", "0.0001", "nan", "inf", "5ppm"] {
            assert!(ppm(bad).is_err(), "{bad}");
        }
        assert_eq!(intake_rate("400pdus/s"), Ok(IntakeRate::Pdus(400)));
        assert_eq!(intake_rate("25000cells/s"), Ok(IntakeRate::Cells(25_000)));
        for bad in [
            "",
            "7",
            "0pdus/s",
            "1.5pdus/s",
            "-1cells/s",
            "2e9cells/s",
            "5pps",
        ] {
            assert!(intake_rate(bad).is_err(), "{bad}");
        }
        assert_eq!(queue("100"), Ok(QueueLimit::Packets(100)));
        assert_eq!(queue("448cells"), Ok(QueueLimit::Cells(448)));
        assert_eq!(queue("64KiB"), Ok(QueueLimit::Octets(65_536)));
        for bad in [
            "0", "1000001", "0cells", "2GB", "2e9cells", "0B", "full", "1.5",
        ] {
            assert!(queue(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_probabilities_rules() {
        assert_eq!(octets("64KiB"), Ok(65_536));
        assert_eq!(octets("1.5GB"), Ok(1_500_000_000));
        assert_eq!(octets("2GiB"), octets("2048MiB"));
        assert!(octets("1.5").is_err());
        assert!(octets("1TiB").is_err());
        assert_eq!(probability("2%"), Ok(0.02));
        assert_eq!(probability("1e-6"), Ok(1e-6));
        assert!(probability("1.1").is_err());
        assert_eq!(
            flow_detect("10 frames per 1s"),
            Ok((10, Duration::from_secs(1)))
        );
        assert!(flow_detect("10 per 1s").is_err());
        assert!(flow_detect("0 frames per 1s").is_err());
    }

    #[test]
    fn networks() {
        let net: IpNet = "10.1.0.0/24".parse().unwrap();
        assert!(net.contains(Ipv4Addr::new(10, 1, 0, 255)));
        assert!(!net.contains(Ipv4Addr::new(10, 1, 1, 0)));
        assert_eq!(net.broadcast(), Ipv4Addr::new(10, 1, 0, 255));
        assert!(IpNet::ALL.contains(Ipv4Addr::BROADCAST));
        for bad in ["10.1.0.1/24", "10.1.0.0", "10.1.0.0/33", "10.1/16"] {
            assert!(bad.parse::<IpNet>().is_err(), "{bad}");
        }
    }
}
