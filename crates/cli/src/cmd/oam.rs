//! `aerostat oam`: loopback cells on connections of a running lab.

use crate::args::{OamArgs, OamCommand, OamPingArgs};
use crate::client;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output::{self, Rows};
use aerostat_live::control::{Client, Request};
use aerostat_wire::counted;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Name and version of the document.
const SCHEMA: &str = "aerostat.oam.v1";
/// Time between two looks for an answer. The lab measures the round trip itself.
const LOOK: Duration = Duration::from_millis(5);

/// Runs the function.
pub(crate) fn run(args: &OamArgs) -> Outcome {
    let OamCommand::Ping(args) = &args.command;
    let mut client = client::connect(&args.which)?;
    let interrupt = Interrupt::catch()?;
    let mut rows = Rows::new(&["cell", "rtt_us"]);
    let (begun, mut sent, mut lost) = (Instant::now(), 0_u32, 0_u32);
    for cell in 1..=args.count {
        wait(
            begun + Duration::from_secs_f64(args.interval) * (cell - 1),
            &interrupt,
        );
        if interrupt.has_come() {
            break;
        }
        let ns = ping(&mut client, args, &interrupt)?;
        sent += 1;
        lost += u32::from(ns.is_none());
        let rtt = ns.map_or(Value::Null, |ns| (ns as f64 / 1000.0).into());
        rows.push(vec![cell.into(), rtt]);
    }
    output::write(args.output.form(), SCHEMA, &[rows])?;
    if lost == sent && sent > 0 {
        let text = format!("no cell came back: {}", counted(lost, "cell", "cells"));
        return Err(Failure::failed(text).hint(
            "a link is cut, a switch has no such connection, or nothing uses the label at the other end",
        ));
    }
    Ok(if lost == 0 { Exit::Ok } else { Exit::Warnings })
}

/// Sends one cell, and waits for its answer: the time in ns.
fn ping(
    client: &mut Client,
    args: &OamPingArgs,
    interrupt: &Interrupt,
) -> Result<Option<u64>, Failure> {
    let node = || args.host.clone();
    let request = Request::Loopback {
        node: node(),
        vpi: args.vc.vpi,
        vci: args.vc.vci,
        segment: args.segment,
    };
    let sent = client::ask(client, &request)?;
    let tag = sent["tag"].as_u64().unwrap_or_default() as u32;
    let deadline = Instant::now() + Duration::from_secs_f64(args.timeout);
    loop {
        let request = Request::LoopbackTime { node: node(), tag };
        if let Some(ns) = client::ask(client, &request)?["ns"].as_u64() {
            return Ok(Some(ns));
        }
        if Instant::now() >= deadline || interrupt.has_come() {
            return Ok(None);
        }
        std::thread::sleep(LOOK);
    }
}

fn wait(until: Instant, interrupt: &Interrupt) {
    while let Some(left) = until.checked_duration_since(Instant::now())
        && !left.is_zero()
        && !interrupt.has_come()
    {
        std::thread::sleep(left.min(LOOK));
    }
}
