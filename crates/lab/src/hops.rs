//! Files with next hops of a Classical IP subnet, which are read again when they change.
//!
//! A line has two or three fields, separated by blanks: an IP address, or a prefix such as `10.2.0.0/16`; an ATM
//! address, or the name of a node of the lab on this subnet; and the traffic of connections to it in the words of
//! linux-atm's qos(7). Empty lines and what follows `#` do not count. `0.0.0.0/0` is the default next hop. An address
//! is called without a question. A prefix takes what has no known address of its own, until ATMARP tells a better way.
//!
//! ```text
//! # the router first
//! 0.0.0.0/0     hub
//! 10.5.0.9      47.0005.80FFE1000000F21A26D8.0020EA0000B0.00
//! 10.5.0.2      two          cbr,aal5:max_pcr=2000
//! ```
//!
//! **Bounds.** [`MAX_OCTETS`] octets and [`MAX_LINES`] next hops of a file. A mistake is told with its line and column;
//! then nothing of the file counts.

use crate::model::{ElanId, Lab, Lec, MapFile, NextHop, NodeId};
use aerostat_proto::clip;
use aerostat_wire::{AtmAddress, Qos};
use std::collections::BTreeSet;
use std::fmt;
use std::net::Ipv4Addr;
use std::path::Path;

/// Largest file, octets.
pub const MAX_OCTETS: u64 = 1 << 20;
/// Most next hops of a file.
pub const MAX_LINES: usize = 1000;

/// A mistake in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Its line, from 1.
    pub line: usize,
    /// The column where it begins, in characters from 1.
    pub column: usize,
    /// Description of the mistake.
    pub text: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, text } = self;
        write!(f, "line {line}, column {column}: {text}")
    }
}

/// The next hops of a member: its own before those of its subnet, and never itself.
#[must_use]
pub fn of_member(lab: &Lab, lec: &Lec) -> clip::NextHops {
    with(lab, lec, None, None)
}

/// The same with other next hops of its own, or of its subnet, than the lab has.
#[must_use]
pub fn with(
    lab: &Lab,
    lec: &Lec,
    own: Option<&Vec<NextHop>>,
    shared: Option<&Vec<NextHop>>,
) -> clip::NextHops {
    let mut hops = clip::NextHops::default();
    let Some(lis) = &lab.elan(lec.elan).clip else {
        return hops;
    };
    let given = lec.member.as_ref().map(|member| &member.next_hops);
    let own = own.or(given).into_iter().flatten();
    let mut seen = BTreeSet::new();
    for hop in own.chain(shared.unwrap_or(&lis.next_hops)) {
        if !seen.insert((hop.ip, hop.length)) || Some(hop.ip) == lec.ip {
            continue;
        }
        match (hop.length, hop.address) {
            (32, address) => {
                hops.fixed.extend(address.map(|atm| (hop.ip, atm)));
                hops.qos.extend(hop.qos.map(|qos| (hop.ip, qos)));
            }
            // A default next hop does not send to itself.
            (_, Some(address)) if address != lec.address => hops.defaults.push(clip::DefaultHop {
                network: hop.ip,
                prefix_len: hop.length,
                address,
                qos: hop.qos,
            }),
            _ => {}
        }
    }
    hops
}

/// The users of a file with next hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Users {
    /// The subnet.
    pub elan: ElanId,
    /// Node and interface of the only member that uses it; `None`: all members of the subnet.
    pub member: Option<(NodeId, usize)>,
}

/// The files with next hops that the members of a lab use.
pub fn files(lab: &Lab) -> impl Iterator<Item = (Users, &MapFile)> {
    let subnets = lab.elans.iter().enumerate().filter_map(|(at, elan)| {
        let map = elan.clip.as_ref()?.map.as_ref()?;
        let (elan, member) = (ElanId(at), None);
        Some((Users { elan, member }, map))
    });
    let members = lab.nodes().flat_map(|(id, node)| {
        let lecs = node.lecs().iter().enumerate();
        lecs.filter_map(move |(itf, lec)| {
            let map = lec.member.as_ref()?.map.as_ref()?;
            let (elan, member) = (lec.elan, Some((id, itf)));
            Some((Users { elan, member }, map))
        })
    });
    subnets.chain(members)
}

/// Reads the next hops of a file for members of this subnet.
///
/// # Errors
/// A sentence: the file cannot be read, is too large, or has a mistake.
pub fn read(path: &Path, lab: &Lab, elan: ElanId) -> Result<Vec<NextHop>, String> {
    let text = crate::files::text(path, MAX_OCTETS, "a file of next hops")?;
    parse(&text, lab, elan).map_err(|mistake| mistake.to_string())
}

/// The next hops of a text for members of this subnet.
///
/// # Errors
/// The first mistake.
pub fn parse(text: &str, lab: &Lab, elan: ElanId) -> Result<Vec<NextHop>, Mistake> {
    let mut hops: Vec<NextHop> = Vec::new();
    let mut seen = BTreeSet::new();
    for (line, number) in text.lines().zip(1_usize..) {
        let words = fields(line);
        let Some(first) = words.first() else {
            continue;
        };
        let wrong = |column: usize, text: String| Mistake {
            line: number,
            column,
            text,
        };
        let hop = hop(&words, lab, elan).map_err(|(column, text)| wrong(column, text))?;
        if !seen.insert((hop.ip, hop.length)) {
            return Err(wrong(first.0, format!("{} stands here twice", first.1)));
        }
        if hops.len() >= MAX_LINES {
            return Err(wrong(1, format!("more than {MAX_LINES} next hops")));
        }
        hops.push(hop);
    }
    Ok(hops)
}

/// The fields of a line with their columns.
fn fields(line: &str) -> Vec<(usize, &str)> {
    let line = line.split('#').next().unwrap_or_default();
    let mut all = Vec::new();
    let mut rest = line;
    loop {
        let trimmed = rest.trim_start();
        let end = trimmed.find(char::is_whitespace).unwrap_or(trimmed.len());
        let (word, behind) = trimmed.split_at(end);
        if word.is_empty() {
            return all;
        }
        let before = line.len() - trimmed.len();
        let column = line.get(..before).map_or(0, |text| text.chars().count()) + 1;
        all.push((column, word));
        rest = behind;
    }
}

/// The next hop of a line; the error has a column.
fn hop(words: &[(usize, &str)], lab: &Lab, elan: ElanId) -> Result<NextHop, (usize, String)> {
    let (at, prefix) = *words.first().ok_or((1, String::new()))?;
    let (ip, length) = prefix_of(prefix).ok_or_else(|| {
        (
            at,
            "expected an IPv4 address, or a prefix such as 10.2.0.0/16".to_owned(),
        )
    })?;
    let (at, target) = *words.get(1).ok_or_else(|| {
        let column = at + prefix.chars().count();
        (
            column,
            "an ATM address or the name of a node is missing".to_owned(),
        )
    })?;
    let address = address_of(target, lab, elan).map_err(|text| (at, text))?;
    let qos = match words.get(2) {
        Some((at, text)) => Some(contract(text).map_err(|text| (*at, text))?),
        None => None,
    };
    if let Some((at, _)) = words.get(3) {
        return Err((*at, "a line has at most three fields".to_owned()));
    }
    Ok(NextHop {
        ip,
        length,
        address: Some(address),
        qos,
    })
}

fn prefix_of(text: &str) -> Option<(Ipv4Addr, u8)> {
    let (ip, length) = match text.split_once('/') {
        Some((ip, length)) => (ip, length.parse().ok().filter(|length| *length <= 32)?),
        None => (text, 32),
    };
    let ip: Ipv4Addr = ip.parse().ok()?;
    let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
    let host = length < 32 || !(ip.octets()[0] == 0 || ip.is_multicast() || ip.is_broadcast());
    host.then_some((Ipv4Addr::from(u32::from(ip) & mask), length))
}

fn address_of(text: &str, lab: &Lab, elan: ElanId) -> Result<AtmAddress, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let subnet = &lab.elan(elan).name;
    let Some(id) = lab.find(text) else {
        let digits = text.bytes().filter(u8::is_ascii_hexdigit).count();
        return Err(match text.parse::<AtmAddress>() {
            Err(error) if text.contains('.') || digits >= 38 => error.to_string(),
            _ => "neither an ATM address nor a node of the lab".to_owned(),
        });
    };
    let mut lecs = lab.node(id).lecs().iter();
    let there = lecs.find(|lec| lec.elan == elan).map(|lec| lec.address);
    there.ok_or_else(|| format!("{text} is not on {subnet}"))
}

/// A contract for connections of Classical IP.
pub(crate) fn contract(text: &str) -> Result<Qos, String> {
    let qos = Qos::from_request(text).map_err(|error| error.to_string())?;
    check(&qos).map(|()| qos)
}

/// Checks a contract of Classical IP.
pub(crate) fn check(qos: &Qos) -> Result<(), String> {
    if qos.tx.category.is_none() || qos.rx.category.is_none() {
        return Err("Classical IP needs both directions".to_owned());
    }
    if qos.tx.max_sdu != 0 || qos.rx.max_sdu != 0 {
        return Err("the size of SDUs follows from the subnet's 'mtu:'".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lab() -> Lab {
        let text = "
switches: { s: {} }
clip: { wan: { subnet: 10.5.0.0/24, server: one }, other: { subnet: 10.6.0.0/24, server: far } }
hosts:
  one: { on: s, elan: wan, ip: 10.5.0.1 }
  two: { on: s, elan: wan, ip: 10.5.0.2 }
  far: { on: s, elan: other, ip: 10.6.0.1 }
";
        crate::parse("t.atm.yml", text, &[])
            .expect("a good lab")
            .lab
    }

    #[test]
    fn lines() {
        let lab = lab();
        let text = "# the router first\n0.0.0.0/0 one\n\n  10.5.0.2\ttwo  cbr,aal5:max_pcr=2000 # fast\n\
             10.9.1.1/16 47.0005.80FFE1000000F21A26D8.0020EA0000B0.00\n";
        let hops = parse(text, &lab, ElanId(0)).expect("good");
        let told: Vec<_> = hops
            .iter()
            .map(|hop| (hop.ip.to_string(), hop.length))
            .collect();
        let known = [("0.0.0.0", 0), ("10.5.0.2", 32), ("10.9.0.0", 16)];
        assert_eq!(told, known.map(|(ip, length)| (ip.to_owned(), length)));
        let one = lab.node(lab.find("one").expect("a node")).lecs()[0].address;
        assert_eq!(hops[0].address, Some(one));
        assert_eq!(hops[1].qos.map(|qos| qos.tx.max_pcr), Some(Some(2000)));
    }

    #[test]
    fn mistakes_are_located() {
        let lab = lab();
        for (text, told) in [
            ("10.5.0.x two", "line 1, column 1: expected an IPv4 address"),
            (
                "\n  10.5.0.2",
                "line 2, column 11: an ATM address or the name",
            ),
            (
                "10.5.0.2 tow",
                "line 1, column 10: neither an ATM address nor a node",
            ),
            ("10.5.0.2 far", "line 1, column 10: far is not on wan"),
            ("10.5.0.2 47.0005.80", "line 1, column 10: "),
            ("10.5.0.2 two fast", "line 1, column 14: "),
            (
                "10.5.0.2 two cbr:tx:max_pcr=5,rx:none",
                "line 1, column 14: Classical IP needs both",
            ),
            (
                "10.5.0.2 two ubr x",
                "line 1, column 18: a line has at most three",
            ),
            (
                "10.5.0.2 two\n10.5.0.2/32 two",
                "line 2, column 1: 10.5.0.2/32 stands here twice",
            ),
            (
                "10.5.0.0/33 two",
                "line 1, column 1: expected an IPv4 address",
            ),
        ] {
            let found = parse(text, &lab, ElanId(0)).expect_err(text).to_string();
            assert!(found.starts_with(told), "{text:?}: {found}");
        }
        let many: String = (0..=MAX_LINES)
            .map(|n| format!("10.{}.{}.0/24 two\n", n / 200, n % 200))
            .collect();
        let found = parse(&many, &lab, ElanId(0)).expect_err("too many");
        assert_eq!(found.line, MAX_LINES + 1);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[0-9a-f./ \\t\\n#a-z:=,é]{0,200}") {
            let lab = lab();
            if let Err(mistake) = parse(&text, &lab, ElanId(0)) {
                let line = text.lines().nth(mistake.line - 1).expect("a line of the text");
                prop_assert!(mistake.column <= line.chars().count() + 1, "{}", mistake);
            }
        }
    }
}
