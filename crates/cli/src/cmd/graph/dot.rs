//! A network in Graphviz format.

use aerostat_lab::picture::{Kind, Machine, Picture};
use aerostat_view::signs;
use std::fmt::Write as _;

pub(super) fn draw(picture: &Picture) -> String {
    let mut out = format!(
        "graph \"{}\" {{\n  node [fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\", fontsize=10];\n",
        quoted(&picture.lab)
    );
    for machine in &picture.machines {
        node(picture, machine, &mut out);
    }
    let name = |number: usize| quoted(&picture.machines[number].name);
    for cable in &picture.cables {
        let [a, b] = cable.ends.map(name);
        let cut = if cable.down {
            format!(", style=dotted, color=\"{}\"", signs::shade("fault"))
        } else {
            String::new()
        };
        let label = format!("{}\\n{}", quoted(&cable.name), cable.what);
        let _ = writeln!(out, "  \"{a}\" -- \"{b}\" [label=\"{label}\"{cut}];");
    }
    for (number, machine) in picture.machines.iter().enumerate() {
        if let Some(host) = machine.behind {
            let (a, b) = (name(host), name(number));
            let _ = writeln!(out, "  \"{a}\" -- \"{b}\" [label=\"Ethernet\"];");
        }
    }
    connections(picture, &mut out);
    out.push_str("}\n");
    out
}

/// Lines other than links have no influence on the layout.
fn connections(picture: &Picture, out: &mut String) {
    let name = |number: usize| quoted(&picture.machines[number].name);
    let mut line = |ends: [usize; 2], label: &str, style: &str| {
        let [a, b] = ends.map(name);
        let _ = writeln!(
            out,
            "  \"{a}\" -- \"{b}\" [label=\"{label}\", constraint=false, {style}];"
        );
    };
    for (pvc, label) in picture.pvcs.iter().zip(picture.pvc_labels()) {
        line(pvc.ends, &quoted(&label), "style=dashed");
    }
    for calls in &picture.calls {
        let label = format!("{} {}", calls.count, quoted(&calls.what));
        line(calls.ends, &label, "style=dotted");
    }
    for (shortcut, label) in picture.shortcuts.iter().zip(picture.shortcut_labels()) {
        line(shortcut.ends, &quoted(&label), "style=bold, dir=forward");
    }
}

fn node(picture: &Picture, machine: &Machine, out: &mut String) {
    let shape = match machine.kind {
        Kind::Switch => "box3d",
        Kind::LaneServer => "cylinder",
        Kind::Router => "diamond",
        Kind::Host => "box",
        Kind::Outside => "cds",
        Kind::Station => "ellipse",
    };
    let mut label = quoted(&machine.name);
    for address in picture.addresses(machine) {
        let _ = write!(label, "\\n{}", quoted(&address));
    }
    if machine.down {
        label.push_str("\\n(down)");
    }
    let networks = machine.addresses.iter();
    let fills: Vec<&str> = networks
        .map(|(_, network)| signs::colour(*network))
        .collect();
    let fill = match fills.len() {
        0 => signs::NEUTRAL.to_owned(),
        // A diamond shows at most two colours.
        _ => fills[..fills.len().min(2)].join(":"),
    };
    let _ = writeln!(
        out,
        "  \"{}\" [shape={shape}, style=filled, fillcolor=\"{fill}\", label=\"{label}\"];",
        quoted(&machine.name)
    );
}

/// Text in quotation marks.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}
