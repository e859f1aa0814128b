//! The Ethernet behind a host that bridges: one cable, or ports with cables of their own.

use super::vlans;
use crate::diag::Diagnostics;
use crate::field::{At, Optional as _};
use crate::file::{HostFile, Name, PortFile};
use crate::model::{Cable, EthernetPort, PortVlans};

/// Limit of ports of a host.
const MAX_PORTS: usize = 64;

/// The cable of the segment behind a host.
pub(super) fn cable(host: &HostFile, d: &mut Diagnostics) -> Cable {
    let Some(given) = &host.ethernet else {
        return Cable::TEN;
    };
    if host.bridge.is_none() {
        d.error(given.place, "there is no Ethernet segment behind this host")
            .hint("for example: bridge: { phone: 10.1.0.11 }");
    }
    Cable {
        rate: given.rate.get(),
        tagged: given.tag.get(),
    }
}

/// The ports of the bridge, if the file gives any.
pub(super) fn ports(host: &HostFile, d: &mut Diagnostics) -> Vec<EthernetPort> {
    let Some(given) = &host.ethernet else {
        return Vec::new();
    };
    let (Some(table), Some(stations)) = (&given.ports, &host.bridge) else {
        return Vec::new();
    };
    let usual = cable(host, &mut d.empty());
    if let Some((name, _)) = table.0.get(MAX_PORTS) {
        d.error(
            name.at,
            format!("more than {MAX_PORTS} Ethernet ports on one host"),
        );
    }
    let names: Vec<&str> = stations.0.iter().map(|(name, _)| &*name.value.0).collect();
    let mut taken: Vec<Option<&str>> = vec![None; names.len()];
    let listed = |name: &str| {
        let mut all = table.0.iter().flat_map(|(_, port)| &port.stations);
        all.any(|station| station.value == name)
    };
    // A station on no port may be the one that a wrong name stands for.
    let (mut ports, mut sure) = (Vec::new(), true);
    for (name, port) in table.0.iter().take(MAX_PORTS) {
        let mut on_it = Vec::new();
        for station in &port.stations {
            let Some(index) = names.iter().position(|known| *known == station.value) else {
                sure = false;
                let mut free = names.iter().filter(|name| !listed(name));
                let sample = free.next().map(|name| (*name).to_owned());
                let text = format!("there is no '{}' in 'bridge' of this host", station.value);
                let found = d.error(station.at, text);
                found.sample = sample;
                found
                    .suggest(&station.value, names.iter().copied())
                    .rests_in(host.place, ["bridge"]);
                continue;
            };
            if let Some(other) = taken[index].replace(&name.value.0) {
                let text = format!("{} is on port {other} already", station.value);
                d.error(station.at, text).hint("a station has one cable");
                continue;
            }
            on_it.push(index);
        }
        let vlans = vlans::of_port(host, port, d);
        ports.push(EthernetPort {
            vlans,
            ..one(name, port, usual, on_it, d)
        });
    }
    for ((name, _), on) in stations.0.iter().zip(taken) {
        if on.is_none() && sure {
            let text = format!("{} is on none of the Ethernet ports", name.value.0);
            d.error(name.at, text)
                .hint("name it in 'stations' of a port")
                .rests_in(given.place, ["ports"]);
        }
    }
    ports
}

fn one(
    name: &At<Name>,
    port: &PortFile,
    usual: Cable,
    stations: Vec<usize>,
    d: &mut Diagnostics,
) -> EthernetPort {
    let single = stations.len() <= 1;
    let full_duplex = port.duplex.plain().unwrap_or(single);
    if let Some(given) = port.duplex.as_ref().filter(|_| full_duplex && !single) {
        d.error(
            given.at,
            "a cable that several stations share is half duplex",
        )
        .hint("give each station a port of its own")
        .rests_in(port.place, ["stations"]);
    }
    EthernetPort {
        name: name.value.0.clone(),
        cable: Cable {
            rate: port.rate.plain().unwrap_or(usual.rate),
            tagged: port.tag.plain().unwrap_or(usual.tagged),
        },
        full_duplex,
        queue: port.queue.get() as usize,
        stations,
        vlans: PortVlans::default(),
    }
}

#[cfg(test)]
mod tests {
    use crate::model::{Cable, NodeKind};
    use crate::resolve::tests::{SMALL, lab};

    fn with(ethernet: &str) -> String {
        let more = format!(
            "ip: 10.1.0.10, bridge: {{ p: 10.1.0.20, q: 10.1.0.21 }}, ethernet: {{ {ethernet} }}"
        );
        SMALL.replace("ip: 10.1.0.10", &more)
    }

    #[test]
    fn ports_have_cables_and_stations_of_their_own() {
        let lab = lab(&with(
            "rate: 100Mbps, ports: { e1: { stations: [q], rate: 10Mbps, queue: 7 }, up: { stations: [p], tag: true, duplex: half } }",
        ));
        let NodeKind::Host(host) = &lab.node(lab.find("x").expect("a host")).kind else {
            panic!("a host");
        };
        let [one, up] = &host.ports[..] else {
            panic!("{:?}", host.ports);
        };
        assert_eq!(
            (one.cable, one.queue, one.full_duplex),
            (Cable::TEN, 7, true)
        );
        assert_eq!((&one.stations[..], &up.stations[..]), (&[1][..], &[0][..]));
        let fast = Cable {
            rate: 100_000_000,
            tagged: true,
        };
        assert_eq!((up.cable, up.queue, up.full_duplex), (fast, 512, false));
    }

    #[test]
    fn mistakes() {
        for (ethernet, says) in [
            (
                "ports: { e1: { stations: [p, x] } }",
                "there is no 'x' in 'bridge' of this host",
            ),
            (
                "ports: { e1: { stations: [p] } }",
                "q is on none of the Ethernet ports",
            ),
            (
                "ports: { e1: { stations: [p, q] }, e2: { stations: [p] } }",
                "p is on port e1 already",
            ),
            (
                "ports: { e1: { stations: [p, q], duplex: full } }",
                "a cable that several stations share is half duplex",
            ),
            (
                "ports: { e1: { stations: [p, q], duplex: both } }",
                "expected full or half",
            ),
            (
                "ports: { e1: { stations: [p, q], queue: 0 } }",
                "queue is 1 to 65536",
            ),
            (
                "ports: { e1: { stations: [p, q], rate: 40Mbps } }",
                "expected 10Mbps, 100Mbps or 1Gbps",
            ),
        ] {
            let found = crate::parse("t.atm.yml", &with(ethernet), &[]);
            let said = found.expect_err(ethernet).to_string();
            assert!(said.contains(says), "{ethernet}: {said}");
        }
    }
}
