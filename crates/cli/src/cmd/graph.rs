//! `aerostat graph`: the network of a lab file, as text or for Graphviz.

use crate::args::{Drawing, GraphArgs};
use crate::exit::Outcome;
use crate::labs;
use aerostat_lab::model::{Lab, Link, Node, NodeId, NodeKind};
use std::fmt::Write as _;
use std::io::Write as _;

/// Draws it.
pub(crate) fn run(args: &GraphArgs) -> Outcome {
    let checked = labs::read(&args.lab)?;
    let drawing = match args.format {
        Drawing::Text => text(&checked.lab),
        Drawing::Dot => dot(&checked.lab),
    };
    std::io::stdout().lock().write_all(drawing.as_bytes())?;
    Ok(labs::done(&checked))
}

/// Addresses of a node with their ELANs: `10.1.0.1 (a), 10.2.0.1 (b)`.
fn addresses(lab: &Lab, node: &Node) -> String {
    let parts: Vec<String> = node
        .lecs()
        .iter()
        .map(|lec| format!("{} ({})", lec.ip, lab.elan(lec.elan).name))
        .collect();
    parts.join(", ")
}

fn kind(node: &Node) -> &'static str {
    match node.kind {
        NodeKind::Switch(_) => "switch",
        NodeKind::LaneServer(_) => "LANE server",
        NodeKind::Router(_) => "router",
        NodeKind::Host(_) => "host",
        NodeKind::Outside(_) => "outside",
    }
}

fn describe(link: &Link) -> String {
    let mut text = format!("{}, {:?}", link.rate, link.delay);
    if link.loss > 0.0 {
        let _ = write!(text, ", loss {}", link.loss);
    }
    if link.bit_errors > 0.0 {
        let _ = write!(text, ", bit errors {}", link.bit_errors);
    }
    text
}

/// Every switch with what is plugged into it, over which link; then the ELANs.
fn text(lab: &Lab) -> String {
    let mut out = format!("{}\n", lab.name);
    for (_, node, switch) in lab.switches() {
        let _ = writeln!(out, "\nswitch {}", node.name);
        for (number, port) in switch.ports.iter().enumerate() {
            let peer = lab.node(port.peer);
            let link = lab.link(port.link);
            let line = format!(
                "  port {number:<2} {:<11} {:<12} {:<20} {:<12} {}",
                kind(peer),
                peer.name,
                link.name,
                describe(link),
                addresses(lab, peer),
            );
            let _ = writeln!(out, "{}", line.trim_end());
            if let Some(address) = port.station {
                let _ = writeln!(out, "{:33}{address}", "");
            }
        }
    }
    out.push('\n');
    for elan in &lab.elans {
        let members: Vec<&str> = lab
            .nodes
            .iter()
            .filter(|node| node.lecs().iter().any(|lec| lab.elan(lec.elan) == elan))
            .map(|node| node.name.as_str())
            .collect();
        let _ = writeln!(
            out,
            "{} {:<10} {:<18} {:<22} {}",
            if elan.clip.is_some() { "LIS " } else { "ELAN" },
            elan.name,
            elan.subnet.to_string(),
            match (&elan.clip, &elan.foreign) {
                (Some(lis), _) => format!("packets of {}", lis.mtu),
                (None, Some(_)) => "served outside".to_owned(),
                (None, None) => format!("frames of {}", elan.max_frame),
            },
            members.join(", "),
        );
    }
    out
}

fn dot(lab: &Lab) -> String {
    let mut out = format!(
        "graph \"{}\" {{\n  node [fontname=\"sans-serif\"];\n",
        lab.name
    );
    for node in &lab.nodes {
        let shape = match node.kind {
            NodeKind::Switch(_) => "box3d",
            NodeKind::LaneServer(_) => "cylinder",
            NodeKind::Router(_) => "diamond",
            NodeKind::Host(_) => "box",
            NodeKind::Outside(_) => "cds",
        };
        let mut label = node.name.clone();
        for lec in node.lecs() {
            let _ = write!(label, "\\n{} ({})", lec.ip, lab.elan(lec.elan).name);
        }
        let _ = writeln!(
            out,
            "  \"{}\" [shape={shape}, label=\"{label}\"];",
            node.name
        );
    }
    for link in &lab.links {
        let name = |id: NodeId| lab.node(id).name.as_str();
        let [a, b] = link.ends.map(|end| name(end.node));
        let _ = writeln!(out, "  \"{a}\" -- \"{b}\" [label=\"{}\"];", describe(link));
    }
    out.push_str("}\n");
    out
}
