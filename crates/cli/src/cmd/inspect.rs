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
    let request = Request::Inspect {
        node: node.cloned(),
        what: what.clone(),
    };
    let schema = format!("aerostat.inspect.{what}.v1");
    let mut client = client::connect(&args.which)?;
    loop {
        let answer = client::ask(&mut client, &request)?;
        let tables: Vec<Rows> = serde_json::from_value(answer).map_err(|error| {
            Failure::failed(format!("the lab's answer is not understood: {error}"))
        })?;
        let redraw = args.output.output == Format::Table && std::io::stdout().is_terminal();
        if args.watch && redraw {
            let mut out = std::io::stdout().lock();
            // Home, and clear to the end of the screen.
            out.write_all(b"\x1b[H\x1b[2J")?;
        }
        output::write(args.output.output, &schema, &tables)?;
        if !args.watch {
            return Ok(Exit::Ok);
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}
