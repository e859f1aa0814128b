//! `aerostat follow`: the way of one packet, with all its times.

mod running;

use crate::args::FollowArgs;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::labs;
use crate::output::{self, Format, Rows};
use crate::progress;
use aerostat_lab::diag::nearest;
use aerostat_lab::stream::{Line, Packet, Stage};
use aerostat_lab::{Event, Lab, Override};
use aerostat_node::ip::meter::FlowId;
use aerostat_proto::Instant;
use aerostat_sim::follow::document::{self, BehindRow, Document, FateWord, StageRow, WhatRow};
use aerostat_sim::follow::{self, Followed, Found, PacketId};
use aerostat_sim::run::Watcher;
use aerostat_wire::{counted, names_of};
use indicatif::ProgressBar;
use serde_json::{Value, json};
use std::io::Write as _;

/// Finds the packet and shows its way, or prints the schema.
pub(crate) fn run(args: &FollowArgs) -> Outcome {
    if let Some(lab) = &args.lab {
        return running::run(args, lab);
    }
    let (Some(path), Some(word)) = (&args.file, &args.packet) else {
        writeln!(
            std::io::stdout().lock(),
            "{:#}",
            document::schema().to_value()
        )?;
        return Ok(Exit::Ok);
    };
    let mut changes = args.set.clone();
    let seed = args.seed.map(|seed| format!("seed={seed}"));
    changes.extend(seed.map(|seed| Override::new("--seed", seed)));
    let checked = labs::read_for_run(path, &changes)?;
    let lab = &checked.lab;
    super::run::refuse_outside(lab)?;
    let packet = packet_of(lab, word)?;
    let mut watching = Watching {
        interrupt: Interrupt::catch()?,
        bar: progress::with_message(args.quiet),
    };
    let found = found(lab, packet, &mut watching);
    watching.bar.finish_and_clear();
    let document = Document::new(lab, &found?);
    match args.output.output {
        Format::Json => {
            let document = serde_json::to_value(&document).unwrap_or_default();
            writeln!(std::io::stdout().lock(), "{document:#}")?;
        }
        Format::Jsonl => {
            let mut out = std::io::stdout().lock();
            for stage in &document.stages {
                let stage = serde_json::to_value(stage).unwrap_or_default();
                writeln!(out, "{stage}")?;
            }
        }
        Format::Table | Format::Csv => {
            output::write(args.output.form(), document::SCHEMA, &[table(&document)])?;
        }
    }
    Ok(labs::done(&checked))
}

/// The ways of packets as lines of the stream of events.
pub(super) fn lines(
    lab: &Lab,
    words: &[String],
    watcher: &mut dyn Watcher,
) -> Result<Vec<Line>, Failure> {
    let mut lines = Vec::new();
    for word in words {
        let packet = packet_of(lab, word)?;
        let document = Document::new(lab, &found(lab, packet, watcher)?);
        let stages = joined(&document)
            .into_iter()
            .map(|(stage, takes, next)| Stage {
                t: stage.at_ns,
                takes,
                node: stage.node.clone(),
                link: match &stage.what {
                    WhatRow::Transmission { link, .. } | WhatRow::Propagation { link, .. } => {
                        Some(link.clone())
                    }
                    _ => None,
                },
                text: sentence(stage, next),
            });
        lines.push(Line::Packet(Packet {
            name: format!("{}:{}", document.flow, document.packet),
            text: title(&document),
            stages: stages.collect(),
        }));
    }
    Ok(lines)
}

/// Checks that a lab has the flows of these packets.
pub(super) fn check(lab: &Lab, words: &[String]) -> Result<(), Failure> {
    words
        .iter()
        .try_for_each(|word| packet_of(lab, word).map(drop))
}

/// Runs the lab, and gives the way of the packet.
fn found(lab: &Lab, packet: PacketId, watcher: &mut dyn Watcher) -> Result<Followed, Failure> {
    match follow::packet(lab, packet, watcher) {
        Found::Way(way) => Ok(*way),
        Found::TooFew(packets) => Err(too_few(lab, packet, packets)),
        Found::Interrupted => {
            let text = "interrupted before the packet had ended";
            Err(Failure::new(Exit::Warnings, text))
        }
    }
}

/// The packet that `FLOW` or `FLOW:N` names.
fn packet_of(lab: &Lab, word: &str) -> Result<PacketId, Failure> {
    let flow_of = |name: &str| lab.traffic.iter().position(|flow| flow.name == name);
    if let Some(flow) = flow_of(word) {
        return Ok((FlowId(flow), 0));
    }
    let (name, number) = word.rsplit_once(':').unwrap_or((word, "1"));
    let Some(flow) = flow_of(name) else {
        return Err(no_flow(lab, name));
    };
    let number = number.parse::<u64>().ok().and_then(|n| n.checked_sub(1));
    let number = number.ok_or_else(|| {
        Failure::usage(format!("'{word}': packets have numbers from 1 on"))
            .hint(format!("{name}:1 is the first packet of the flow {name}"))
    })?;
    Ok((FlowId(flow), number))
}

fn no_flow(lab: &Lab, name: &str) -> Failure {
    let is_program = lab
        .hosts()
        .any(|(_, _, host)| host.sockets.iter().any(|program| program.name == name));
    if is_program {
        let text = format!("'{name}' is a program with an ATM socket, whose PDUs are not followed");
        return Failure::usage(text).hint("packets of the flows under 'traffic:' are followed");
    }
    let names: Vec<&str> = lab.traffic.iter().map(|flow| &*flow.name).collect();
    let failure = Failure::usage(format!("the lab has no flow '{name}'"));
    failure.hint(match nearest(name, &names) {
        Some(near) => format!("did you mean '{near}'?"),
        None if names.is_empty() => "it has no 'traffic:' at all".to_owned(),
        None => format!("its flows are {}", names_of(&names)),
    })
}

fn too_few(lab: &Lab, (flow, number): PacketId, packets: u64) -> Failure {
    let name = lab.traffic.get(flow.0).map_or("?", |flow| &*flow.name);
    let packets = counted(packets, "packet", "packets");
    let text = format!(
        "the flow '{name}' has sent {packets} when the run ends: there is no number {}",
        number + 1
    );
    Failure::usage(text).hint("--set until=TIME ends the run later")
}

/// Waits for the runs.
struct Watching {
    interrupt: Interrupt,
    bar: ProgressBar,
}

impl Watcher for Watching {
    fn event(&mut self, _event: &Event) {}
    fn interrupted(&self) -> bool {
        self.interrupt.has_come()
    }
    fn progress(&mut self, now: Instant, end: Instant) {
        self.bar.set_length(end.as_nanos() / 1_000_000);
        self.bar.set_position(now.as_nanos() / 1_000_000);
    }
}

/// The stages with their times, ns; what a link does with a cell is one of them, and has its second part.
fn joined(document: &Document) -> Vec<(&StageRow, u64, Option<&StageRow>)> {
    let mut joined = Vec::new();
    let mut stages = document.stages.iter().peekable();
    while let Some(stage) = stages.next() {
        let next = stages.next_if(|next| {
            let travels = matches!(next.what, WhatRow::Propagation { .. });
            travels && matches!(stage.what, WhatRow::Transmission { .. })
        });
        let takes = stage.takes_ns + next.map_or(0, |next| next.takes_ns);
        joined.push((stage, takes, next));
    }
    joined
}

/// The stages for people.
fn table(document: &Document) -> Rows {
    let mut rows = Rows::new(&["at_us", "takes_us", "node", "what"]);
    rows.title = title(document);
    rows.name = "stages".to_owned();
    let start = document.sent_ns.or(document.offered_ns).unwrap_or_default();
    for (stage, takes, next) in joined(document) {
        let at = stage.at_ns as i128 - i128::from(start);
        rows.push(vec![
            micros(at),
            micros(takes.into()),
            stage.node.clone().into(),
            sentence(stage, next).into(),
        ]);
    }
    rows
}

/// Microseconds with three decimals, of nanoseconds.
fn micros(ns: i128) -> Value {
    json!(ns as f64 / 1e3)
}

fn title(document: &Document) -> String {
    let Document {
        flow,
        packet,
        from,
        to,
        ..
    } = document;
    let path = document.path.as_ref();
    let path = path.map_or_else(String::new, |path| format!(", {path}"));
    let end = match (document.fate, document.delay_us) {
        (FateWord::Delivered, Some(delay)) => format!("delay {delay} us, the sum of all"),
        (FateWord::Lost, _) => "lost".to_owned(),
        _ => "still under way at the end of the run".to_owned(),
    };
    let at = document.sent_ns.or(document.offered_ns).unwrap_or_default();
    let seconds = at as f64 / 1e9;
    let doubt = match document.ambiguous {
        true => " (another packet with the same headers was under way, too)",
        false => "",
    };
    format!("{flow}:{packet}, {from} to {to}{path}, from {seconds} s: {end}{doubt}")
}

fn sentence(stage: &StageRow, next: Option<&StageRow>) -> String {
    match &stage.what {
        WhatRow::Stack => "waits in the stack, before the delay begins".to_owned(),
        WhatRow::Leaves { path, why } => match why {
            Some(why) => format!("leaves the stack, {path} ({why})"),
            None => format!("leaves the stack, {path}"),
        },
        WhatRow::Sender => "waits for an address or a connection".to_owned(),
        WhatRow::Router => "the router forwards it".to_owned(),
        WhatRow::Relay => "is sent on from here".to_owned(),
        WhatRow::Receiver => "on its way to the stack of the receiver".to_owned(),
        WhatRow::Cpu { sends: true } => "the CPU sends it".to_owned(),
        WhatRow::Cpu { sends: false } => "the CPU receives it".to_owned(),
        WhatRow::Intake => "the receive path of the adapter takes it".to_owned(),
        WhatRow::Queue { .. } => waiting(&stage.what),
        WhatRow::Transmission { link, vc } => {
            let to = next.and_then(|next| match &next.what {
                WhatRow::Propagation { to, .. } => Some(to),
                _ => None,
            });
            let to = to.map_or_else(String::new, |to| format!(" to {to}"));
            format!("the last cell crosses {link}{to} as {vc}")
        }
        WhatRow::Propagation { link, to } => format!("the last cell crosses {link} to {to}"),
        WhatRow::Switch {
            in_port,
            in_vc,
            out_port,
            out_vc,
            policer,
        } => {
            let policer = match policer {
                None => "",
                Some(document::VerdictWord::Conforms) => "; the policer lets it pass",
                Some(document::VerdictWord::Tagged) => "; the policer tags it (CLP 1)",
            };
            format!("{in_vc} at port {in_port} becomes {out_vc} at port {out_port}{policer}")
        }
        WhatRow::Reassembly { cells, vc } => {
            let cells = counted(u64::from(*cells), "cell", "cells");
            format!("the PDU is there: {cells} on {vc}")
        }
        WhatRow::Unseen => "in fragments".to_owned(),
        WhatRow::Lost { place } => format!("lost: {place}"),
    }
}

/// Connections that the last cell waits for at a port.
fn waiting(what: &WhatRow) -> String {
    let WhatRow::Queue {
        link,
        vc,
        cells,
        user,
        own,
        others,
        idle_ns,
        complete,
    } = what
    else {
        return String::new();
    };
    let of = user
        .as_ref()
        .map_or_else(String::new, |user| format!(" ({user})"));
    let whole = counted(u64::from(*cells), "cell", "cells");
    let mut text = match user {
        Some(_) => format!("{whole} in the queue of {vc} on {link}{of}"),
        None => format!("in the queue of {vc} on {link}"),
    };
    let us = |ns: u64| format!("{} us", ns as f64 / 1e3);
    let mut parts = Vec::new();
    let part = |behind: &BehindRow, of: &str| {
        let cells = counted(behind.cells, "cell", "cells");
        format!("{cells} of {of} ({})", us(behind.ns))
    };
    if own.cells > 0 {
        parts.push(part(own, "its own"));
    }
    for other in others {
        parts.push(part(other, other.vc.as_deref().unwrap_or("?")));
    }
    if *idle_ns > 0 {
        parts.push(format!("the idle line ({})", us(*idle_ns)));
    }
    if !parts.is_empty() {
        text = format!("{text}, behind {}", parts.join(", "));
    }
    if !complete {
        text.push_str(", and more cells than a port remembers");
    }
    text
}
