//! `aerostat explain`: what a capture says, and which rules it breaks.

use crate::args::ExplainArgs;
use crate::exit::{Exit, Failure, Outcome, say};
use crate::output::{self, Format, Rows};
use aerostat_explain::{Finding, Limits, Repair, Report, Rule, explain};
use aerostat_lab::files::{Named, NewFile};
use aerostat_lab::{ladder, printable};
use aerostat_live::charset;
use aerostat_wire::counted;
use aerostat_wire::pcapng::{CapturedCell, CapturedSdu, Direction, LinkType, PcapNg};
use serde_json::{Value, json};
use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Name and version of the document.
const SCHEMA: &str = "aerostat.explain.v1";
/// Name and version of the list of rules.
const RULES_SCHEMA: &str = "aerostat.explain.rules.v1";
/// Nanoseconds of a second.
const SECOND: f64 = 1e9;

/// Explains one file, or lists the rules.
pub(crate) fn run(args: &ExplainArgs) -> Outcome {
    let Some(file) = &args.file else {
        output::write(args.output.form(), RULES_SCHEMA, &[rules()])?;
        return Ok(Exit::Ok);
    };
    let limits = Limits {
        messages: args.messages,
        ..Limits::default()
    };
    let report = match &args.repair {
        None => read(file, open(file)?.0, limits, None)?,
        Some(out) => repaired(file, limits, out)?,
    };
    match args.output.output {
        Format::Json => {
            let document = document(file, &report);
            writeln!(io::stdout().lock(), "{document:#}")?;
        }
        Format::Jsonl | Format::Csv => {
            output::write(args.output.form(), SCHEMA, &[findings(&report)])?;
        }
        Format::Table => page(&mut charset::stdout(), &report)?,
    }
    Ok(exit_of(&report))
}

fn exit_of(report: &Report) -> Exit {
    match report.broken.is_empty() {
        false => Exit::Failed,
        true => Exit::Ok.with_warnings(report.cut || report.met.has_loss()),
    }
}

/// Opens the capture; gives its metadata if it is a file.
fn open(path: &Path) -> Result<(Box<dyn Read + Send>, Option<Metadata>), Failure> {
    if path == Path::new("-") {
        return Ok((Box::new(io::stdin()), None));
    }
    let failed = |error: io::Error| Failure::usage(format!("{}: {error}", path.display()));
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    Ok((Box::new(file), Some(metadata)))
}

fn read(
    path: &Path,
    input: impl Read + Send,
    limits: Limits,
    repairs: aerostat_explain::Repairs<'_>,
) -> Result<Report, Failure> {
    explain(input, limits, repairs).map_err(|error| {
        let failure = Failure::usage(format!("{}: {error}", path.display()));
        match error.is_of_format {
            true => failure
                .hint("explain reads pcap and pcapng; editcap of Wireshark converts other files"),
            false => failure,
        }
    })
}

/// Reads a file, and writes the PDUs of its raw cells. The new file gets its name once all is well.
fn repaired(path: &Path, limits: Limits, out: &Path) -> Result<Report, Failure> {
    let failed = |error: io::Error| Failure::failed(format!("{}: {error}", out.display()));
    let (input, metadata) = open(path)?;
    let there = fs::symlink_metadata(out).ok();
    if let (Some(input), Some(there)) = (metadata, there)
        && (input.dev(), input.ino()) == (there.dev(), there.ino())
    {
        let text = format!("--repair {}: this is the capture itself", out.display());
        return Err(Failure::usage(text).hint("give the repaired file another name"));
    }
    let file = NewFile::new(out, Named::ByUser).map_err(failed)?;
    let comment = format!("repaired by aerostat explain from {}", path.display());
    let mut writer = Writer::new(BufWriter::new(file.file()), &comment).map_err(failed)?;
    let mut problem = None;
    let report = read(
        path,
        input,
        limits,
        Some(&mut |repair| {
            if let Err(error) = writer.write(&repair) {
                problem.get_or_insert(error);
            }
        }),
    )?;
    problem
        .map_or_else(|| writer.file.flush(), Err)
        .map_err(failed)?;
    drop(writer);
    file.keep().map_err(failed)?;
    let pdus = counted(report.repaired.sdus, "PDU", "PDUs");
    match report.mislabelled {
        Some(_) => say(format_args!("{}: {pdus}", out.display())),
        None => say(format_args!(
            "note: no raw cells under a wrong link type; {} is empty",
            out.display()
        )),
    }
    Ok(report)
}

/// A repaired file: an interface of SDUs, and an interface of other cells.
struct Writer<W: Write> {
    file: PcapNg<W>,
    sdus: aerostat_wire::pcapng::InterfaceId,
    cells: aerostat_wire::pcapng::InterfaceId,
}

impl<W: Write> Writer<W> {
    fn new(out: W, comment: &str) -> io::Result<Self> {
        let mut file = PcapNg::new(out, comment)?;
        let sdus = file.interface(LinkType::SunAtm, "PDUs", "AAL5 of the raw cells")?;
        let cells = file.interface(LinkType::ErfCells, "cells", "OAM and resource management")?;
        Ok(Self { file, sdus, cells })
    }
    fn write(&mut self, repair: &Repair<'_>) -> io::Result<()> {
        // The directions of the cells are not in the file.
        let direction = Direction::Received;
        match *repair {
            Repair::Sdu {
                time_ns,
                vc,
                clp,
                uu,
                sdu,
            } => self.file.sdu(&CapturedSdu {
                interface: self.sdus,
                time_ns,
                direction,
                vc,
                clp,
                uu,
                sdu,
                dropped: None,
            }),
            Repair::Cell { time_ns, ref cell } => self.file.cell(&CapturedCell {
                interface: self.cells,
                time_ns,
                direction,
                cell,
                dropped: None,
            }),
        }
    }
}

fn rules() -> Rows {
    let mut rows = Rows::new(&["rule", "protocol", "clause", "sentence"]);
    for rule in Rule::ALL {
        let cells = [rule.id(), rule.protocol(), rule.clause(), rule.sentence()];
        rows.push(cells.map(Value::from).to_vec());
    }
    rows
}

fn seconds(time_ns: i128) -> f64 {
    time_ns as f64 / SECOND
}

/// The findings with their rules, as rows.
fn findings(report: &Report) -> Rows {
    let columns = [
        "packet", "time", "rule", "protocol", "clause", "from", "to", "text", "sentence",
    ];
    let mut rows = Rows::new(&columns);
    for finding in &report.findings {
        let Finding {
            rule,
            packet,
            from,
            to,
            text,
            ..
        } = finding;
        rows.push(vec![
            (*packet).into(),
            seconds(finding.time_ns).into(),
            rule.id().into(),
            rule.protocol().into(),
            rule.clause().into(),
            from.as_str().into(),
            to.as_str().into(),
            text.as_str().into(),
            rule.sentence().into(),
        ]);
    }
    rows
}

fn document(file: &Path, report: &Report) -> Value {
    let interfaces = report.interfaces.iter().map(|interface| {
        json!({
            "name": interface.name,
            "link_type": interface.link_type,
            "link": interface.link_name(),
        })
    });
    let messages = report.messages.iter().map(|message| {
        let mut value = serde_json::to_value(rung(message)).unwrap_or_default();
        if let Some(object) = value.as_object_mut() {
            object.remove("link");
            object.insert("packet".into(), message.packet.into());
        }
        value
    });
    let story = report.story.iter().map(|sentence| {
        json!({
            "packet": sentence.packet,
            "time": seconds(sentence.time_ns),
            "text": sentence.text,
        })
    });
    let broken = report
        .broken
        .iter()
        .map(|(rule, count)| json!({ "rule": rule.id(), "clause": rule.clause(), "count": count }));
    let notes = report
        .notes
        .iter()
        .map(|(text, count)| json!({ "text": text, "count": count }));
    let limits = report.met.iter().map(
        |(limit, count)| json!({ "what": limit.name(), "count": count, "loss": limit.is_loss() }),
    );
    json!({
        "schema": SCHEMA,
        "file": file.display().to_string(),
        "packets": report.packets,
        "octets": report.octets,
        "seconds": seconds(report.span_ns),
        "cut_off": report.cut,
        "interfaces": interfaces.collect::<Vec<_>>(),
        "raw_cells": report.repaired.cells,
        "raw_cells_link_type": report.mislabelled,
        "raw_cells_sdus": report.repaired.sdus,
        "messages": messages.collect::<Vec<_>>(),
        "story": story.collect::<Vec<_>>(),
        "findings": findings(report).objects().collect::<Vec<_>>(),
        "broken": broken.collect::<Vec<_>>(),
        "notes": notes.collect::<Vec<_>>(),
        "limits": limits.collect::<Vec<_>>(),
    })
}

/// A message of the report in the form of a lab's messages.
fn rung(message: &aerostat_explain::Message) -> ladder::Message {
    ladder::Message {
        time: seconds(message.time_ns),
        link: String::new(),
        from: message.from.clone(),
        to: message.to.clone(),
        vc: message.vc.clone(),
        protocol: message.protocol.to_owned(),
        text: message.text.clone(),
        dropped: message.dropped.clone(),
    }
}

/// The report for people.
fn page(out: &mut impl Write, report: &Report) -> io::Result<()> {
    // Names and texts come from the file, and may have any characters.
    let mut line = |text: &str| writeln!(out, "{}", printable::lines(text));
    let names = report.messages.iter().flat_map(|one| [&one.from, &one.to]);
    let width = names
        .map(|name| name.chars().count())
        .max()
        .unwrap_or_default();
    for message in &report.messages {
        line(&rung(message).rung(width))?;
    }
    section(
        &mut line,
        "The story",
        report
            .story
            .iter()
            .map(|sentence| format!("{:>12.6}  {}", seconds(sentence.time_ns), sentence.text)),
    )?;
    section(
        &mut line,
        "Rules that are broken",
        broken(report).into_iter(),
    )?;
    section(&mut line, "Notes", notes(report).into_iter())?;
    line("")?;
    line(&verdict(report))
}

fn section(
    line: &mut impl FnMut(&str) -> io::Result<()>,
    heading: &str,
    mut lines: impl Iterator<Item = String>,
) -> io::Result<()> {
    let Some(first) = lines.next() else {
        return Ok(());
    };
    line("")?;
    line(&format!("{heading}:"))?;
    line(&first)?;
    lines.try_for_each(|text| line(&text))
}

/// Each rule with its clause, and below it the places.
fn broken(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    for (rule, count) in &report.broken {
        let times = counted(*count, "time", "times");
        lines.push(format!(
            "  {} ({}; {times}): {}",
            rule.id(),
            rule.clause(),
            rule.sentence()
        ));
        let places: Vec<_> = report
            .findings
            .iter()
            .filter(|one| one.rule == *rule)
            .collect();
        for finding in &places {
            let Finding {
                packet,
                from,
                to,
                text,
                ..
            } = finding;
            let ends = match from.as_str() {
                "-" => String::new(),
                _ => format!(" {from} ──► {to}:"),
            };
            let time = seconds(finding.time_ns);
            lines.push(format!("    packet {packet} at {time:.6}:{ends} {text}"));
        }
        let more = count.saturating_sub(places.len() as u64);
        if more > 0 {
            lines.push(format!(
                "    and {}",
                counted(more, "more place", "more places")
            ));
        }
    }
    lines
}

fn notes(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(link_type) = report.mislabelled {
        let cells = counted(report.repaired.cells, "raw cell", "raw cells");
        let pdus = counted(report.repaired.sdus, "PDU", "PDUs");
        lines.push(format!(
            "  {cells} under link type {link_type}, as GNS3 writes them: {pdus} (--repair writes what Wireshark reads)"
        ));
    }
    lines.extend(report.notes.iter().map(|(text, count)| match count {
        1 => format!("  {text}"),
        _ => format!("  {text} ({count} times)"),
    }));
    if report.cut {
        let at = report.octets;
        lines.push(format!(
            "  the file ends inside a packet, behind offset {at}"
        ));
    }
    lines.extend(
        report
            .met
            .iter()
            .map(|(limit, count)| format!("  {count} {limit}")),
    );
    lines
}

fn verdict(report: &Report) -> String {
    let packets = counted(report.packets, "packet", "packets");
    let links: std::collections::BTreeSet<_> = report
        .interfaces
        .iter()
        .map(|one| one.link_name())
        .collect();
    let links: Vec<_> = links.into_iter().collect();
    let broken = match report.broken.len() {
        0 => "no rule is broken".to_owned(),
        rules => counted(rules, "rule is broken", "rules are broken").to_string(),
    };
    format!(
        "{packets} in {:.6} s ({}): {broken}",
        seconds(report.span_ns),
        links.join(", ")
    )
}
