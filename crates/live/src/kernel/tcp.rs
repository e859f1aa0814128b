//! TCP of hosts that are Linux kernels: the keys `tcp` of the lab file as settings of the host's network namespace and
//! as attributes of its routes. The table of keys is [`KEYS`](aerostat_lab::model::KEYS).
//!
//! A kernel's buffers count its own bookkeeping beside the data, so a buffer is set to twice the octets of the key, as
//! `setsockopt` does (socket(7)). What the kernel refuses is an error with the place of the key; every setting is read
//! back. Attributes of routes are set on all routes that the host has when the lab starts.
//!
//! Sources: ip-sysctl of the kernel's documentation, ip-route(8).

use crate::namespace::{NetNs, ip, ip_says};
use aerostat_lab::model::{ByKernel, Tcp};
use aerostat_node::inspect::Table;
use aerostat_proto::parameters::{Octets, Value};
use aerostat_wire::some_of;
use std::collections::BTreeMap;
use std::io;

/// A key that a kernel follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Followed {
    /// The key.
    pub(crate) key: &'static str,
    /// The setting, `net.ipv4.NAME`, or the attribute of routes.
    pub(crate) by: String,
    /// Its value, as read back.
    pub(crate) value: String,
}

aerostat_node::rows! {
    /// One row for each key of `tcp:` that a host follows.
    pub(crate) struct TcpRow: "tcp.keys" {
        /// The key of the lab file.
        key: String,
        /// Place that follows it: a setting of the host's kernel, an attribute of its routes (`route NAME`); at an
        /// embedded host the lab file, or the profile that has the value.
        by: String,
        /// Its value there.
        value: String,
    }
}

/// The keys of the host: `followed` are those of a kernel.
pub(crate) fn table(tcp: &Tcp, followed: Option<&[Followed]>) -> Table {
    let row = |key: &str, by: &str, value: &str| TcpRow {
        key: key.into(),
        by: by.into(),
        value: value.into(),
    };
    let rows: Vec<TcpRow> = match followed {
        Some(all) => (all.iter())
            .map(|one| row(one.key, &one.by, &one.value))
            .collect(),
        None => (tcp.in_force().iter())
            .map(|one| row(one.key, &one.by, &one.value))
            .collect(),
    };
    Table::of(rows)
}

/// Notes of `up` about the settings of kernels: hosts with the same settings together.
pub(crate) fn notes<'a>(hosts: impl Iterator<Item = (&'a str, &'a [Followed])>) -> Vec<String> {
    let mut alike: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, all) in hosts.filter(|(_, all)| !all.is_empty()) {
        let words: Vec<String> = (all.iter())
            .map(|one| format!("{}={}", one.by, one.value))
            .collect();
        alike
            .entry(words.join(", "))
            .or_default()
            .push(name.to_owned());
    }
    let note = |(words, names): (String, Vec<String>)| {
        format!("TCP of the kernel of {}: {words}", some_of(&names))
    };
    alike.into_iter().map(note).collect()
}

/// Makes the kernel of a namespace follow the keys. Call it when the host has its addresses and routes.
///
/// # Errors
/// What the kernel or `ip` refuses, with the place of the key.
pub(crate) fn follow(namespace: &NetNs, tcp: &Tcp) -> io::Result<Vec<Followed>> {
    if tcp.given.is_empty() {
        return Ok(Vec::new());
    }
    namespace.run(|| {
        let mut all = Vec::new();
        let mut attributes = Vec::new();
        for (follows, value) in tcp.values() {
            let key = follows.key;
            let at = located(tcp, key);
            let (by_setting, by_route) = match follows.kernel {
                ByKernel::Setting(name) => (Some(name), None),
                ByKernel::Route(name) => (None, Some(name)),
                ByKernel::Bounded(name, bound) => (Some(name), Some(bound)),
                ByKernel::Never(_) => (None, None),
            };
            if let Some(name) = by_setting {
                let value = set(name, &setting(tcp, value)).map_err(at)?;
                let by = format!("net.ipv4.{name}");
                all.push(Followed { key, by, value });
            }
            if let Some(name) = by_route {
                attributes.push((key, name, attribute(key, value)));
            }
        }
        let mut words: Vec<String> = Vec::new();
        for (key, name, value) in attributes {
            // `ip route change` replaces all attributes, so each is set together with those before it.
            words.extend([name.to_owned(), value.clone()]);
            for family in ["-4", "-6"] {
                routes(family, &words).map_err(located(tcp, key))?;
            }
            let by = format!("route {name}");
            all.push(Followed { key, by, value });
        }
        Ok(all)
    })
}

/// Adds the place of a key to an error.
fn located<'a>(tcp: &'a Tcp, key: &'a str) -> impl Fn(io::Error) -> io::Error + 'a {
    move |error| {
        let place = tcp.place(key);
        io::Error::new(error.kind(), format!("{place}: tcp.{key}: {error}"))
    }
}

/// The text of a value for a setting.
fn setting(tcp: &Tcp, value: Option<Value>) -> String {
    /// Least memory of a socket under pressure, which is the kernel's default, too.
    const LEAST: usize = 4096;
    match value {
        None => tcp.name_of("congestion").to_owned(),
        Some(Value::Octets(Octets(octets))) => format!("{LEAST} {0} {0}", 2 * octets),
        Some(Value::Flag(on)) => u8::from(on).to_string(),
        Some(other) => other.to_string(),
    }
}

/// The text of a value for an attribute of routes.
fn attribute(key: &str, value: Option<Value>) -> String {
    match value {
        Some(Value::Count(every)) if key == "ack_every" => u8::from(every == 1).to_string(),
        Some(Value::Time(time)) => format!("{}ms", time.as_millis()),
        Some(Value::Octets(Octets(octets))) => octets.to_string(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

/// Reads the setting `net.ipv4.NAME` of the calling thread's network namespace.
///
/// # Errors
/// The kernel has no such setting.
pub(crate) fn get(name: &str) -> io::Result<String> {
    let absent =
        |error: io::Error| io::Error::new(error.kind(), format!("net.ipv4.{name}: {error}"));
    let text = std::fs::read_to_string(path(name)).map_err(absent)?;
    Ok(words(&text))
}

/// The file of a setting.
fn path(name: &str) -> String {
    format!("/proc/sys/net/ipv4/{name}")
}

/// The words of a value, with one blank between them.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Writes a setting of the calling thread's network namespace, and reads it back.
///
/// # Errors
/// What the kernel refuses.
pub(crate) fn set(name: &str, value: &str) -> io::Result<String> {
    std::fs::write(path(name), value).map_err(|error| {
        let text = match name {
            "tcp_congestion_control" => no_such_control(value, &error),
            _ => format!("the kernel refuses net.ipv4.{name}={value}: {error}"),
        };
        io::Error::new(error.kind(), text)
    })?;
    let read = get(name)?;
    if read != words(value) {
        let text = format!("the kernel has net.ipv4.{name}={read} instead of {value}");
        return Err(io::Error::other(text));
    }
    Ok(read)
}

fn no_such_control(name: &str, error: &io::Error) -> String {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let known = std::fs::read_to_string(path).unwrap_or_default();
    format!(
        "the kernel refuses the congestion control {name} ({error}); it has {}, and 'modprobe tcp_{name}' may add it",
        known.trim()
    )
}

/// Sets attributes of all routes of a family.
fn routes(family: &str, attributes: &[String]) -> io::Result<()> {
    /// Attributes of a route that `ip route change` takes as words that `ip route show` prints.
    const KEPT: [&str; 8] = [
        "dev", "via", "proto", "scope", "src", "metric", "table", "onlink",
    ];
    let all = ip_says(&[family, "route", "show"])?;
    for line in all.lines().filter(|line| !line.trim().is_empty()) {
        let mut words = line.split_whitespace();
        let Some(to) = words.next() else { continue };
        let mut change: Vec<&str> = vec![family, "route", "change", to];
        while let Some(word) = words.next() {
            if KEPT.contains(&word) {
                change.push(word);
                if word != "onlink" {
                    change.extend(words.next());
                }
            }
        }
        change.extend(attributes.iter().map(String::as_str));
        ip(&change)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use aerostat_lab::model::NodeKind;

    /// The keys of host `x`.
    fn tcp(section: &str) -> Tcp {
        let text = format!(
            "switches: {{ s: {{}} }}\n\
             lane: {{ on: s, elans: {{ a: {{ subnet: 10.1.0.0/24 }} }} }}\n\
             hosts:\n  x: {{ on: s, elan: a, ip: 10.1.0.10, kernel: true, tcp: {{ {section} }} }}\n"
        );
        let lab = aerostat_lab::parse("k.atm.yml", &text, &[])
            .unwrap_or_else(|d| panic!("{d}"))
            .lab;
        let id = lab.find("x").expect("x");
        match &lab.node(id).kind {
            NodeKind::Host(host) => Tcp::clone(&host.tcp),
            other => panic!("{other:?}"),
        }
    }

    fn namespace() -> Option<NetNs> {
        let made = NetNs::create().ok();
        if made.is_none() {
            println!("skipped: no privilege for network namespaces");
        }
        made
    }

    #[test]
    fn a_kernel_has_the_values_of_the_file_and_its_routes_their_attributes() {
        let Some(ns) = namespace() else { return };
        ns.run(|| {
            ip(&["link", "set", "lo", "up"])?;
            ip(&["address", "add", "10.1.0.10/24", "dev", "lo"])?;
            ip(&["route", "add", "10.1.0.0/24", "dev", "lo"])?;
            ip(&["route", "add", "10.2.0.0/24", "via", "10.1.0.1"])
        })
        .expect("routes");
        let keys = "congestion: reno, send_buffer: 32KiB, receive_buffer: 27408, mss: 1024, ack_every: 1, \
            timestamps: false, window_scaling: false, sack: false, ecn: true, initial_window: 2, min_rto: 1s";
        let all = follow(&ns, &tcp(keys)).expect("followed");
        let told: Vec<String> = all
            .iter()
            .map(|one| format!("{}={}", one.by, one.value))
            .collect();
        assert_eq!(
            told,
            [
                "net.ipv4.tcp_congestion_control=reno",
                "net.ipv4.tcp_wmem=4096 65536 65536",
                "net.ipv4.tcp_rmem=4096 54816 54816",
                "net.ipv4.tcp_timestamps=0",
                "net.ipv4.tcp_window_scaling=0",
                "net.ipv4.tcp_sack=0",
                "net.ipv4.tcp_ecn=1",
                "route window=27408",
                "route advmss=1024",
                "route quickack=1",
                "route initcwnd=2",
                "route rto_min=1000ms",
            ]
        );
        let shown = ns.run(|| ip_says(&["route", "show"])).expect("routes");
        assert_eq!(shown.lines().count(), 2, "{shown}");
        for line in shown.lines() {
            for part in [
                "window 27408",
                "advmss 1024",
                "quickack 1",
                "initcwnd 2",
                "rto_min lock 1s",
            ] {
                assert!(line.contains(part), "{part}: {shown}");
            }
        }
        assert_eq!(follow(&ns, &Tcp::USUAL).expect("nothing"), []);
    }

    #[test]
    fn what_the_kernel_refuses_has_the_place_of_its_key() {
        let Some(ns) = namespace() else { return };
        let available = ns
            .run(|| std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control"))
            .expect("a list");
        let absent = aerostat_lab::model::KERNELS
            .into_iter()
            .find(|name| !available.split_whitespace().any(|known| known == *name));
        let Some(absent) = absent else { return };
        let module = std::process::Command::new("modinfo")
            .arg(format!("tcp_{absent}"))
            .output();
        if module.is_ok_and(|out| out.status.success()) {
            println!("skipped: this kernel loads the module by itself");
            return;
        }
        let error = follow(&ns, &tcp(&format!("congestion: {absent}"))).expect_err("refused");
        let said = error.to_string();
        let start = "k.atm.yml:4:72: tcp.congestion: the kernel refuses the congestion control";
        assert!(said.starts_with(start), "{said}");
        assert!(said.contains("cubic"), "{said}");
    }
}
