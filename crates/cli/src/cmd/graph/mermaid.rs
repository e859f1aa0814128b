//! A network as a Mermaid flowchart, for Markdown.

use aerostat_lab::picture::{Kind, Machine, Picture};
use aerostat_view::signs;
use std::fmt::Write as _;

pub(super) fn draw(picture: &Picture) -> String {
    let mut out = format!("---\ntitle: {}\n---\nflowchart LR\n", picture.lab);
    for (number, machine) in picture.machines.iter().enumerate() {
        node(picture, number, machine, &mut out);
    }
    for cable in &picture.cables {
        let [a, b] = cable.ends;
        let cut = if cable.down { "<br>cut" } else { "" };
        let label = format!("{}<br>{}{cut}", escaped(&cable.name), escaped(&cable.what));
        let _ = writeln!(out, "  n{a} ---|\"{label}\"| n{b}");
    }
    for (number, machine) in picture.machines.iter().enumerate() {
        if let Some(host) = machine.behind {
            let _ = writeln!(out, "  n{host} ---|\"Ethernet\"| n{number}");
        }
    }
    connections(picture, &mut out);
    for network in 0..picture.networks.len() {
        let fill = signs::colour(network);
        let _ = writeln!(
            out,
            "  classDef net{network} fill:{fill},stroke:#000,color:#000"
        );
    }
    out
}

fn connections(picture: &Picture, out: &mut String) {
    for (pvc, label) in picture.pvcs.iter().zip(picture.pvc_labels()) {
        let ([a, b], label) = (pvc.ends, escaped(&label));
        let _ = writeln!(out, "  n{a} -. \"{label}\" .- n{b}");
    }
    for calls in &picture.calls {
        let [a, b] = calls.ends;
        let label = format!("{} {}", calls.count, escaped(&calls.what));
        let _ = writeln!(out, "  n{a} -. \"{label}\" .- n{b}");
    }
    for (shortcut, label) in picture.shortcuts.iter().zip(picture.shortcut_labels()) {
        let ([a, b], label) = (shortcut.ends, escaped(&label));
        let _ = writeln!(out, "  n{a} == \"{label}\" ==> n{b}");
    }
}

fn node(picture: &Picture, number: usize, machine: &Machine, out: &mut String) {
    let mut lines = vec![escaped(&machine.name)];
    let addresses = picture.addresses(machine);
    lines.extend(addresses.iter().map(|address| escaped(address)));
    if machine.down {
        lines.push("down".to_owned());
    }
    let label = lines.join("<br>");
    let (open, close) = match machine.kind {
        Kind::Switch => ("[[", "]]"),
        Kind::LaneServer => ("[(", ")]"),
        Kind::Router => ("{{", "}}"),
        Kind::Host => ("[", "]"),
        Kind::Outside => (">", "]"),
        Kind::Station => ("(", ")"),
    };
    let _ = write!(out, "  n{number}{open}\"{label}\"{close}");
    // A router with several networks has none of their colours.
    if let [(_, network)] = machine.addresses[..] {
        let _ = write!(out, ":::net{network}");
    }
    out.push('\n');
}

/// Text in quotation marks: Mermaid accepts HTML entities.
fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('"', "&quot;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}
