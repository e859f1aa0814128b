//! `aerostat atmarp`, `atmaddr`, `atmdiag`: the commands of linux-atm for a running lab.

use super::inspect::understood;
use crate::args::{AtmaddrArgs, AtmarpArgs, AtmdiagArgs, ToolArgs, ToolFormat};
use crate::client;
use crate::exit::{Exit, Failure, Outcome};
use crate::linux_text;
use crate::output::{self, Form, Format, Rows};
use aerostat_live::charset;
use aerostat_live::control::Request;
use aerostat_node::inspect::StateKind;
use std::io::Write as _;

/// The ATMARP table, as `atmarpd` writes it for `atmarp -a`.
pub(crate) fn atmarp(args: &AtmarpArgs) -> Outcome {
    debug_assert!(args.all, "clap requires it");
    show(StateKind::Atmarp, &args.tool, linux_text::atmarp)
}

/// The addresses of the ATM interface.
pub(crate) fn atmaddr(args: &AtmaddrArgs) -> Outcome {
    // Addresses are always numeric, with or without -n.
    let _ = args.numeric;
    show(StateKind::Atmaddr, &args.tool, linux_text::atmaddr)
}

/// PDUs by AAL.
pub(crate) fn atmdiag(args: &AtmdiagArgs) -> Outcome {
    show(StateKind::Atmdiag, &args.tool, linux_text::atmdiag)
}

/// Text for the tables of one node.
type Text = fn(&[Rows]) -> Result<String, Failure>;

fn show(what: StateKind, args: &ToolArgs, text: Text) -> Outcome {
    let format = match args.output {
        ToolFormat::Text => None,
        ToolFormat::Json => Some(Format::Json),
        ToolFormat::Jsonl => Some(Format::Jsonl),
        ToolFormat::Csv => Some(Format::Csv),
    };
    output::check(&args.tables, format)?;
    let mut client = client::connect(&args.which)?;
    let request = Request::Inspect {
        node: args.node.clone(),
        what,
    };
    let tables: Vec<Rows> = understood(client::ask(&mut client, &request)?)?;
    let Some(format) = format else {
        return in_words(&tables, text);
    };
    let form = (Form::new(format, false), &args.tables);
    output::write_chosen(form, &format!("aerostat.{what}.v1"), tables)?;
    Ok(Exit::Ok)
}

/// A single node is shown alone; several nodes are shown under their names.
fn in_words(tables: &[Rows], text: Text) -> Outcome {
    let nodes: Vec<&[Rows]> = tables.chunk_by(|a, b| a.node == b.node).collect();
    let mut out = charset::stdout();
    for tables in &nodes {
        if let [first, ..] = tables
            && nodes.len() > 1
        {
            writeln!(out, "==> {} <==", first.node)?;
        }
        out.write_all(text(tables)?.as_bytes())?;
    }
    out.flush()?;
    Ok(Exit::Ok)
}
