//! The texts of linux-atm's tools, made from the rows of a running lab ([`aerostat_node::inspect::linux`]).
//!
//! Source: `atmarp(8)`, `atmaddr(8)`, `atmdiag(8)`, `qos(7)`, and the output of Debian's atm-tools 2.5.1 in a virtual
//! machine, parts of which are in the tests.

use crate::exit::Failure;
use crate::output::Rows;
use aerostat_node::inspect::Row;
use aerostat_node::inspect::linux::{
    ArpConnection, ArpEntry, ArpInterface, Diag, FLAGS, LocalAddress,
};
use aerostat_node::inspect::words::AtmarpEnd;
use aerostat_wire::{AtmAddress, Qos, TrafficParams};
use serde::de::DeserializeOwned;
use std::fmt::Write as _;
use std::net::Ipv4Addr;

/// The rows of this kind, of which there may be several tables.
fn rows<R: Row + DeserializeOwned>(tables: &[Rows]) -> Result<Vec<R>, Failure> {
    let tables = tables
        .iter()
        .filter(|table| table.title == R::TABLE.title());
    let rows = tables.flat_map(Rows::objects).map(serde_json::from_value);
    let rows: Result<_, serde_json::Error> = rows.collect();
    rows.map_err(|error| Failure::failed(format!("the lab's answer is not understood: {error}")))
}

/// The output of `atmarp -a`.
pub(crate) fn atmarp(tables: &[Rows]) -> Result<String, Failure> {
    let interfaces: Vec<ArpInterface> = rows(tables)?;
    let entries: Vec<ArpEntry> = rows(tables)?;
    let conns: Vec<ArpConnection> = rows(tables)?;
    // Writing to a String cannot fail.
    let mut text = String::new();
    for interface in &interfaces {
        let (itf, ip) = (interface.itf, interface.ip);
        let mask = u32::MAX
            .checked_shl(32 - u32::from(interface.prefix).min(32))
            .unwrap_or(0);
        let mask = Ipv4Addr::from(mask);
        let _ = writeln!(text, "----- Itf {itf} ({ip}, netmask {mask}) -----");
        let _ = writeln!(text, "Default QOS: {}", qos_text(interface.qos));
        for entry in entries.iter().filter(|entry| entry.itf == itf) {
            entry_text(&mut text, entry);
            let own = |conn: &&ArpConnection| conn.itf == itf && conn.ip == Some(entry.ip);
            for conn in conns.iter().filter(own) {
                connection_text(&mut text, conn, Some(interface.qos));
            }
        }
    }
    text.push_str("----- Unknown incoming connections -----\n");
    let unknown = |conn: &&ArpConnection| conn.ip.is_none() && conn.end == AtmarpEnd::Passive;
    for conn in conns.iter().filter(unknown) {
        let usual = interfaces.iter().find(|itf| itf.itf == conn.itf);
        connection_text(&mut text, conn, usual.map(|itf| itf.qos));
    }
    // A caller that cannot answer InATMARP is not a member of a subnet here: such callers are refused.
    text.push_str("----- Incoming unidirectional connections -----\n----- End of dump -----\n");
    Ok(text)
}

fn entry_text(text: &mut String, entry: &ArpEntry) {
    let names = FLAGS.iter().filter(|(bit, _)| entry.flags & bit != 0);
    let names: Vec<&str> = names.map(|(_, name)| *name).collect();
    let _ = writeln!(
        text,
        "IP {}, state {}, addr {}, flags {:#x}<{}>",
        entry.ip,
        entry.state.name(),
        entry.address.map_or("<none>".into(), address_text),
        entry.flags,
        names.join(","),
    );
    if let Some(qos) = entry.qos {
        let _ = writeln!(text, "  QOS: {}", qos_text(qos));
    }
}

/// `usual` is the contract of connections that have no other; it is not told.
fn connection_text(text: &mut String, conn: &ArpConnection, usual: Option<Qos>) {
    let peer = conn.peer.map_or("<none>".to_owned(), address_text);
    let (name, side) = match (conn.end, conn.open) {
        (AtmarpEnd::Permanent, _) => {
            let vc = conn.vc.map_or("<none>".to_owned(), |vc| vc.to_string());
            (format!("0.{vc}"), String::new())
        }
        (_, false) => (peer, ", connecting".to_owned()),
        (end, true) => (peer, format!(" ({end})")),
    };
    let _ = writeln!(text, "  {name}{side}");
    if Some(conn.qos) != usual {
        let _ = writeln!(text, "    QOS: {}", qos_text(conn.qos));
    }
    let _ = writeln!(text, "    Send buffer: {}", conn.send_buffer);
}

/// The output of `atmaddr -n`.
pub(crate) fn atmaddr(tables: &[Rows]) -> Result<String, Failure> {
    let all: Vec<LocalAddress> = rows(tables)?;
    let lines = all.iter().map(|local| address_text(local.address) + "\n");
    Ok(lines.collect())
}

/// The output of `atmdiag`.
pub(crate) fn atmdiag(tables: &[Rows]) -> Result<String, Failure> {
    let all: Vec<Diag> = rows(tables)?;
    let mut text = String::from("Itf       TX_okay   TX_err    RX_okay   RX_err    RX_drop\n");
    let mut last = None;
    for row in &all {
        // The number of an interface is shown once.
        let itf = if last.replace(row.itf) == Some(row.itf) {
            String::new()
        } else {
            row.itf.to_string()
        };
        let _ = writeln!(
            text,
            "{itf:>3} {}  {:>8}  {:>8}  {:>8}  {:>8}  {:>8}",
            row.aal.name(),
            row.tx_okay,
            row.tx_err,
            row.rx_okay,
            row.rx_err,
            row.rx_drop
        );
    }
    Ok(text)
}

/// An address as linux-atm prints it.
fn address_text(AtmAddress(octets): AtmAddress) -> String {
    let hex = |octets: &[u8]| -> String { octets.iter().map(|o| format!("{o:02X}")).collect() };
    if octets[0] == 0x45 {
        return e164_text(&octets);
    }
    // ICD and DCC: authority, code, the rest of the prefix, ESI, selector. Other addresses have no code.
    let first: &[usize] = match octets[0] {
        0x39 | 0x47 | 0xbd | 0xc5 => &[1, 2, 10],
        _ => &[1, 12],
    };
    let mut left = &octets[..];
    let parts = first.iter().chain(&[6, 1]).map(|len| {
        let (part, rest) = left.split_at(*len);
        left = rest;
        hex(part)
    });
    parts.collect::<Vec<_>>().join(".")
}

/// `1234567890:01234567.020304050607.08`: the E.164 number, which has 8 octets, and the rest.
fn e164_text(octets: &[u8; 20]) -> String {
    let hex = |octets: &[u8]| -> String { octets.iter().map(|o| format!("{o:02X}")).collect() };
    let digits = hex(&octets[1..9]);
    let number = digits.trim_start_matches('0').trim_end_matches('F');
    if number.is_empty() || !number.bytes().all(|digit| digit.is_ascii_digit()) {
        return hex(octets);
    }
    let (rest, esi, selector) = (
        hex(&octets[9..13]),
        hex(&octets[13..19]),
        hex(&octets[19..]),
    );
    format!("{number}:{rest}.{esi}.{selector}")
}

/// A contract in linux-atm's order: parameters common to both directions come first. Contracts beyond `qos(7)` are
/// in the order of a lab file.
fn qos_text(qos: Qos) -> String {
    let Qos { tx, rx } = qos;
    let simple = |t: &TrafficParams| {
        [t.scr, t.mbs, t.pcr0] == [0; 3] && t.tightest_cdv().is_zero() && !t.tagging
    };
    let class = match (tx.category, rx.category) {
        (Some(tx), Some(rx)) if tx != rx => return qos.to_string(),
        (Some(class), _) | (None, Some(class)) => class,
        (None, None) => return qos.to_string(),
    };
    if !simple(&tx) || !simple(&rx) {
        return qos.to_string();
    }
    let list = |t: &TrafficParams| -> Vec<String> {
        let params = [
            ("max_pcr", t.max_pcr),
            ("min_pcr", Some(t.min_pcr).filter(|rate| *rate > 0)),
            ("max_sdu", Some(t.max_sdu.into()).filter(|size| *size > 0)),
        ];
        let params = params.iter();
        let given = params.filter_map(|(name, value)| Some(format!("{name}={}", (*value)?)));
        given.collect()
    };
    let (tx_list, rx_list) = (list(&tx), list(&rx));
    let both = tx.category.is_some() && rx.category.is_some();
    let shared = |param: &&String| both && tx_list.contains(param) && rx_list.contains(param);
    let mut lists: Vec<String> = tx_list.iter().filter(shared).cloned().collect();
    for (name, of, own) in [("tx", &tx, &tx_list), ("rx", &rx, &rx_list)] {
        let own: Vec<&str> = own
            .iter()
            .filter(|param| !shared(param))
            .map(String::as_str)
            .collect();
        if of.category.is_none() {
            lists.push(format!("{name}:none"));
        } else if !own.is_empty() {
            lists.push(format!("{name}:{}", own.join(",")));
        }
    }
    match lists.is_empty() {
        true => format!("{class},aal5"),
        false => format!("{class},aal5:{}", lists.join(",")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// The texts that `atm2text` of libatm 2.5.1 makes of them.
    #[test]
    fn addresses() {
        for (octets, text) in [
            (
                "47000580FFE1000000F21A26D80020EA0000B000",
                "47.0005.80FFE1000000F21A26D8.0020EA0000B0.00",
            ),
            (
                "39abcd00ffe1000000f21a26d80020ea0000b0ff",
                "39.ABCD.00FFE1000000F21A26D8.0020EA0000B0.FF",
            ),
            (
                "C500790000000000000000000000A03E00000100",
                "C5.0079.00000000000000000000.00A03E000001.00",
            ),
            (
                "49000580FFE1000000F21A26D80020EA0000B000",
                "49.000580FFE1000000F21A26D8.0020EA0000B0.00",
            ),
            (
                "45000001234567890f0123456702030405060708",
                "1234567890:01234567.020304050607.08",
            ),
        ] {
            assert_eq!(address_text(octets.parse().unwrap()), text);
        }
    }

    /// The texts that `qos2text` of libatm 2.5.1 makes of contracts read by `text2qos`.
    #[test]
    fn contracts() {
        for (given, text) in [
            ("ubr,aal5:sdu=9188", "ubr,aal5:max_sdu=9188"),
            (
                "cbr,aal5:tx:max_pcr=1000,sdu=9188,rx:max_pcr=5,sdu=9188",
                "cbr,aal5:max_sdu=9188,tx:max_pcr=1000,rx:max_pcr=5",
            ),
            (
                "ubr:tx:sdu=5,rx:sdu=7",
                "ubr,aal5:tx:max_sdu=5,rx:max_sdu=7",
            ),
            (
                "abr,aal5:max_pcr=100,min_pcr=5",
                "abr,aal5:max_pcr=100,min_pcr=5",
            ),
            (
                "cbr:tx:pcr=30000,rx:none",
                "cbr,aal5:tx:max_pcr=30000,rx:none",
            ),
            ("aal5,ubr:tx:none", "ubr,aal5:tx:none"),
            ("cbr", "cbr,aal5"),
            // Contracts beyond qos(7).
            (
                "cbr,aal5:tx:max_pcr=80000,rx:ubr",
                "cbr,aal5:tx:max_pcr=80000,rx:ubr",
            ),
        ] {
            assert_eq!(qos_text(given.parse().unwrap()), text);
        }
    }

    fn table(title: &str, columns: &[&str], rows: Vec<Vec<Value>>) -> Rows {
        let mut table = Rows::new(columns);
        title.clone_into(&mut table.title);
        rows.into_iter().for_each(|row| table.push(row));
        table
    }

    /// The table of a Linux host as printed by Debian's `atmarp -a`, except for the order of its interfaces and
    /// entries.
    #[test]
    fn the_table_of_a_linux_host() {
        let (usual, fast) = (
            json!("ubr,aal5:sdu=9188"),
            json!("cbr,aal5:max_pcr=1000,sdu=9188"),
        );
        let peer = |n: u8| {
            json!(format!(
                "47.0091.81.000000.02a7.0000.0200.02a70300{n:02x}00.00"
            ))
        };
        let null = Value::Null;
        let tables = [
            table(
                "interface",
                &["itf", "ip", "prefix", "qos"],
                vec![
                    vec![0.into(), "10.5.0.2".into(), 24.into(), usual.clone()],
                    vec![2.into(), "10.7.0.2".into(), 24.into(), usual.clone()],
                ],
            ),
            table(
                "entry",
                &["itf", "ip", "state", "address", "flags", "qos"],
                vec![
                    vec![
                        2.into(),
                        "10.7.0.10".into(),
                        "VALID".into(),
                        null.clone(),
                        12.into(),
                        fast.clone(),
                    ],
                    vec![
                        2.into(),
                        "10.7.0.9".into(),
                        "VALID".into(),
                        null.clone(),
                        0x1004.into(),
                        null.clone(),
                    ],
                    vec![
                        2.into(),
                        "10.7.0.11".into(),
                        "VALID".into(),
                        null.clone(),
                        0.into(),
                        null.clone(),
                    ],
                    vec![
                        0.into(),
                        "10.5.0.1".into(),
                        "VALID".into(),
                        peer(1),
                        0x2004.into(),
                        null.clone(),
                    ],
                    vec![
                        0.into(),
                        "10.5.0.3".into(),
                        "VALID".into(),
                        peer(2),
                        8.into(),
                        null.clone(),
                    ],
                ],
            ),
            table(
                "connection",
                &[
                    "itf",
                    "ip",
                    "peer",
                    "vc",
                    "end",
                    "open",
                    "qos",
                    "send_buffer",
                ],
                vec![
                    vec![
                        2.into(),
                        "10.7.0.10".into(),
                        null.clone(),
                        "0.123".into(),
                        "permanent".into(),
                        "yes".into(),
                        fast,
                        212_992.into(),
                    ],
                    vec![
                        2.into(),
                        "10.7.0.9".into(),
                        null.clone(),
                        "0.121".into(),
                        "permanent".into(),
                        "yes".into(),
                        usual.clone(),
                        212_992.into(),
                    ],
                    vec![
                        0.into(),
                        "10.5.0.3".into(),
                        peer(2),
                        "0.34".into(),
                        "active".into(),
                        "yes".into(),
                        usual,
                        212_992.into(),
                    ],
                    vec![
                        0.into(),
                        "10.5.0.1".into(),
                        peer(1),
                        "0.33".into(),
                        "passive".into(),
                        "yes".into(),
                        "ubr,aal5:max_pcr=353207,sdu=9188".into(),
                        4608.into(),
                    ],
                    vec![
                        0.into(),
                        null.clone(),
                        peer(7),
                        "0.35".into(),
                        "passive".into(),
                        "no".into(),
                        "ubr,aal5:sdu=9188".into(),
                        0.into(),
                    ],
                ],
            ),
        ];
        let printed = "\
----- Itf 0 (10.5.0.2, netmask 255.255.255.0) -----
Default QOS: ubr,aal5:max_sdu=9188
IP 10.5.0.1, state VALID, addr 47.0091.8100000002A700000200.02A703000100.00, flags 0x2004<PERM,ARPSRV>
  47.0091.8100000002A700000200.02A703000100.00 (passive)
    QOS: ubr,aal5:max_pcr=353207,max_sdu=9188
    Send buffer: 4608
IP 10.5.0.3, state VALID, addr 47.0091.8100000002A700000200.02A703000200.00, flags 0x8<PUBL>
  47.0091.8100000002A700000200.02A703000200.00 (active)
    Send buffer: 212992
----- Itf 2 (10.7.0.2, netmask 255.255.255.0) -----
Default QOS: ubr,aal5:max_sdu=9188
IP 10.7.0.10, state VALID, addr <none>, flags 0xc<PERM,PUBL>
  QOS: cbr,aal5:max_pcr=1000,max_sdu=9188
  0.0.123
    QOS: cbr,aal5:max_pcr=1000,max_sdu=9188
    Send buffer: 212992
IP 10.7.0.9, state VALID, addr <none>, flags 0x1004<PERM,NULL>
  0.0.121
    Send buffer: 212992
IP 10.7.0.11, state VALID, addr <none>, flags 0x0<>
----- Unknown incoming connections -----
  47.0091.8100000002A700000200.02A703000700.00, connecting
    Send buffer: 0
----- Incoming unidirectional connections -----
----- End of dump -----
";
        assert_eq!(atmarp(&tables).unwrap(), printed);
    }

    /// The output of Debian's `atmdiag` and `atmaddr -n`.
    #[test]
    fn counters_and_addresses_of_a_linux_host() {
        let columns = &[
            "itf", "aal", "tx_okay", "tx_err", "rx_okay", "rx_err", "rx_drop",
        ];
        let row = |aal: &str, counts: [u64; 5]| {
            let mut row: Vec<Value> = vec![0.into(), aal.into()];
            row.extend(counts.map(Value::from));
            row
        };
        let counts = vec![row("AAL0", [0; 5]), row("AAL5", [72, 0, 82, 0, 0])];
        assert_eq!(
            atmdiag(&[table("", columns, counts)]).unwrap(),
            "\
Itf       TX_okay   TX_err    RX_okay   RX_err    RX_drop
  0 AAL0         0         0         0         0         0
    AAL5        72         0        82         0         0
"
        );
        let own = "47.0005.80.ffe100.0000.f21a.26d8.0020ea0000b0.00";
        let own = table("", &["itf", "address"], vec![vec![0.into(), own.into()]]);
        assert_eq!(
            atmaddr(&[own]).unwrap(),
            "47.0005.80FFE1000000F21A26D8.0020EA0000B0.00\n"
        );
    }

    #[test]
    fn masks() {
        for (prefix, mask) in [
            (0, "0.0.0.0"),
            (20, "255.255.240.0"),
            (32, "255.255.255.255"),
        ] {
            let row = vec![0.into(), "10.5.0.2".into(), prefix.into(), "ubr".into()];
            let itf = table("interface", &["itf", "ip", "prefix", "qos"], vec![row]);
            let text = atmarp(&[itf]).unwrap();
            assert!(text.contains(&format!("netmask {mask})")), "{text}");
        }
    }
}
