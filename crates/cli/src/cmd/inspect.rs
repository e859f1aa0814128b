//! `aerostat inspect`: state of a running lab.

use crate::args::{INSPECT, InspectArgs};
use crate::client;
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{self, Format, Rows};
use aerostat_live::control::Request;
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

/// Asks the lab and shows the tables of its answer.
pub(crate) fn run(args: &InspectArgs) -> Outcome {
    let (node, what) = match &args.node_and_what[..] {
        [what] => (None, what),
        [node, what] => (Some(node), what),
        _ => return Err(Failure::usage("expected [NODE] WHAT")),
    };
    if !INSPECT.contains(&what.as_str()) {
        return Err(Failure::usage(format!("there is no state '{what}'"))
            .hint(format!("one of: {}", INSPECT.join(", "))));
    }
    if args.why.is_some() && (what != "nhrp" || args.output.of_tables().is_none()) {
        return Err(Failure::usage("--why is for the tables of nhrp"));
    }
    let (node, what) = (node.cloned(), what.clone());
    let mut client = client::connect(&args.which)?;
    let Some(format) = args.output.of_tables() else {
        if what != "mpc" && what != "lec" {
            return Err(Failure::usage(format!("Linux has no file for '{what}'"))
                .hint("-o proc is for lec and mpc: /proc/net/atm/lec and mpc"));
        }
        let request = Request::Proc { node, what };
        return repeat(args.watch, true, || {
            let texts: Vec<ProcText> = understood(client::ask(&mut client, &request)?)?;
            show_texts(&texts)
        });
    };
    let (schema, request) = match args.why {
        None => (
            format!("aerostat.inspect.{what}.v1"),
            Request::Inspect { node, what },
        ),
        Some(address) => (
            "aerostat.inspect.why.v1".to_owned(),
            Request::Why { node, address },
        ),
    };
    repeat(args.watch, format == Format::Table, || {
        let tables: Vec<Rows> = understood(client::ask(&mut client, &request)?)?;
        output::write(format, &schema, &tables)
    })
}

/// The text of a file under /proc, of one node.
#[derive(serde::Deserialize)]
struct ProcText {
    node: String,
    text: String,
}

pub(super) fn understood<T: serde::de::DeserializeOwned>(
    answer: serde_json::Value,
) -> Result<T, Failure> {
    serde_json::from_value(answer)
        .map_err(|error| Failure::failed(format!("the lab's answer is not understood: {error}")))
}

/// One text stands as it is; several stand under the names of their nodes.
fn show_texts(texts: &[ProcText]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    for text in texts {
        if texts.len() > 1 {
            writeln!(out, "==> {} <==", text.node)?;
        }
        out.write_all(text.text.as_bytes())?;
    }
    out.flush()?;
    Ok(())
}

/// Shows once; or, to `watch`, every second, on a clear screen if it is meant for people and there is a terminal.
fn repeat(watch: bool, people: bool, mut show: impl FnMut() -> Result<(), Failure>) -> Outcome {
    loop {
        if watch && people && std::io::stdout().is_terminal() {
            // Home, and clear to the end of the screen.
            std::io::stdout().lock().write_all(b"\x1b[H\x1b[2J")?;
        }
        show()?;
        if !watch {
            return Ok(Exit::Ok);
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}
