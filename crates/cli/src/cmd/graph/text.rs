//! A network as text: every switch with the machines at its ports, then networks and connections.

use aerostat_lab::picture::{Cable, Kind, Picture};
use std::fmt::Write as _;

pub(super) fn draw(picture: &Picture) -> String {
    let mut out = format!("{}\n", picture.lab);
    for (number, switch) in picture.machines.iter().enumerate() {
        if switch.kind == Kind::Switch {
            let _ = writeln!(out, "\nswitch {}{}", switch.name, down(switch.down));
            ports(picture, number, &mut out);
        }
    }
    out.push('\n');
    networks(picture, &mut out);
    connections(picture, &mut out);
    out
}

fn down(down: bool) -> &'static str {
    if down { " (down)" } else { "" }
}

/// The ports of a switch, by number.
fn ports(picture: &Picture, switch: usize, out: &mut String) {
    let mut ports: Vec<(usize, usize, &Cable)> = Vec::new();
    for cable in &picture.cables {
        for (here, there) in [(0, 1), (1, 0)] {
            if cable.ends[here] == switch {
                ports.push((cable.ports[here], cable.ends[there], cable));
            }
        }
    }
    ports.sort_by_key(|(port, ..)| *port);
    for (port, peer, cable) in ports {
        let machine = &picture.machines[peer];
        let line = format!(
            "  port {port:<2} {:<11} {:<12} {:<20} {:<12} {}{}{}",
            machine.kind.name(),
            machine.name,
            cable.name,
            cable.what,
            picture.addresses(machine).join(", "),
            down(machine.down),
            if cable.down { " (link is cut)" } else { "" },
        );
        let _ = writeln!(out, "{}", line.trim_end());
        if let Some(address) = &machine.atm {
            let _ = writeln!(out, "{:33}{address}", "");
        }
        for station in &picture.machines {
            if station.behind == Some(peer) {
                let at = picture.addresses(station).join(", ");
                let _ = writeln!(
                    out,
                    "{:10}station     {:<12} behind {}, {at}",
                    "", station.name, machine.name
                );
            }
        }
    }
}

fn networks(picture: &Picture, out: &mut String) {
    for (number, network) in picture.networks.iter().enumerate() {
        let members = picture.members(number);
        let members: Vec<_> = members.map(|m| picture.machines[m].name.as_str()).collect();
        let _ = writeln!(
            out,
            "{:<4} {:<10} {:<18} {:<22} {}",
            network.word(),
            network.name,
            network.subnet,
            network.what,
            members.join(", "),
        );
    }
}

fn connections(picture: &Picture, out: &mut String) {
    let name = |number: usize| picture.machines[number].name.as_str();
    let line = |out: &mut String, what: &str, [a, b]: [String; 2], how: &str| {
        let line = format!("{what:<9} {a:<20} {b:<20} {how}");
        let _ = writeln!(out, "{}", line.trim_end());
    };
    for pvc in &picture.pvcs {
        let ends = [0, 1].map(|end| format!("{} {}", name(pvc.ends[end]), pvc.labels[end]));
        line(out, "PVC", ends, &pvc.qos);
    }
    for calls in &picture.calls {
        let how = format!("{} {}", calls.count, calls.what);
        line(out, "VCs", calls.ends.map(|end| name(end).to_owned()), &how);
    }
    for shortcut in &picture.shortcuts {
        let ends = shortcut.ends.map(|end| name(end).to_owned());
        let how = format!("to {} on {}", shortcut.to, shortcut.vc);
        line(out, "shortcut", ends, &how);
    }
}
