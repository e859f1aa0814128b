//! `aerostat iperf`.

use super::kernel::{self, Ended, Inside};
use super::{Host, LAST_WORDS, hosts, interrupted, runner, understood};
use crate::args::IperfArgs;
use crate::client;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output::{self, Rows};
use aerostat_live::control::{Client, Request};
use aerostat_live::programs::Program;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Interval for checking a running measurement.
const LOOK: Duration = Duration::from_millis(50);
/// How long a connection may take to open, and to close.
const SLACK: Duration = Duration::from_secs(10);

/// The result of a transfer.
struct Transfer {
    octets: u64,
    seconds: f64,
    mbps: f64,
    retransmits: Option<u64>,
}

/// Sends from one host to another.
pub(crate) fn iperf(args: &IperfArgs) -> Outcome {
    let lab = client::choose(&args.which)?.name;
    let mut client = client::connect(&args.which)?;
    let hosts = hosts(&mut client)?;
    let (from, to) = (runner(&hosts, &args.from)?, runner(&hosts, &args.to)?);
    if from.name == to.name {
        return Err(Failure::usage(format!("{} to itself", from.name)).hint("name two hosts"));
    }
    let interrupt = Interrupt::catch()?;
    let done = match (from.is_kernel(), to.is_kernel()) {
        (true, true) => by_kernel(&lab, (from, to), args, &interrupt)?,
        (false, false) => by_programs(&mut client, (from, to), args, &interrupt)?,
        _ => {
            let text = format!(
                "{} is a host of kind {}, {} of kind {}: their programs do not understand each other",
                from.name, from.kind, to.name, to.kind
            );
            return Err(Failure::failed(text).hint("name two kernel hosts, or two embedded ones"));
        }
    };
    let columns = [
        "from",
        "to",
        "seconds",
        "octets",
        "throughput_mbps",
        "retransmits",
    ];
    let mut rows = Rows::new(&columns);
    let rounded = |value: f64| json!((value * 1000.0).round() / 1000.0);
    rows.push(vec![
        json!(from.name),
        json!(to.name),
        rounded(done.seconds),
        json!(done.octets),
        rounded(done.mbps),
        done.retransmits.map_or(Value::Null, |count| json!(count)),
    ]);
    output::write(args.output.form(), "aerostat.iperf.v1", &[rows])?;
    Ok(match interrupt.has_come() {
        true => interrupted(0),
        false => Exit::Ok,
    })
}

fn argv(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// The measurement with iperf3 at both ends.
fn by_kernel(
    lab: &str,
    (from, to): (&Host, &Host),
    args: &IperfArgs,
    interrupt: &Interrupt,
) -> Result<Transfer, Failure> {
    kernel::need("iperf3", "iperf3")?;
    let time = Duration::from_secs(args.time);
    let longest = time + 2 * SLACK;
    let (port, seconds) = (args.port.to_string(), args.time.to_string());
    // A server that is never reached ends by itself.
    let end = longest.as_secs().to_string();
    let server = argv(&["timeout", &end, "iperf3", "-s", "-1", "-p", &port]);
    let mut server = Inside::start(lab, &to.name, &server, longest + SLACK)?;
    let address = to.address.to_string();
    let client = ["iperf3", "-J", "-c", &address, "-p", &port, "-t", &seconds];
    let client = argv(&[&client[..], &["--connect-timeout", "5000"]].concat());
    let until = Instant::now() + SLACK;
    loop {
        let mut sender = Inside::start(lab, &from.name, &client, longest)?;
        let mut told_to_end = false;
        let ended = loop {
            std::thread::sleep(LOOK);
            if interrupt.has_come() && !std::mem::replace(&mut told_to_end, true) {
                sender.interrupt(LAST_WORDS);
            }
            if let Some(ended) = sender.poll()? {
                break ended;
            }
        };
        match transfer(&ended) {
            Ok(done) => return Ok(done),
            // The server does not listen yet.
            Err(said)
                if said.contains("refused") && Instant::now() < until && !interrupt.has_come() =>
            {
                if let Some(server) = server.poll()? {
                    let said = format!("iperf3 at {}: {}", to.name, server.err.trim());
                    return Err(Failure::failed(said));
                }
            }
            Err(said) => return Err(Failure::failed(format!("iperf3 at {}: {said}", from.name))),
        }
    }
}

/// The result of `iperf3 -J`, or its error.
fn transfer(ended: &Ended) -> Result<Transfer, String> {
    let Ok(said) = serde_json::from_str::<Value>(&ended.out) else {
        let code = match ended.code {
            Ok(code) => format!("exit code {code}"),
            Err(end) => format!("ended by {end}"),
        };
        return Err(format!("{code} {}", ended.err.trim()).trim().to_owned());
    };
    let sums = [&said["end"]["sum_sent"], &said["end"]["sum_received"]];
    let [sent, mut received] = sums;
    if let Some(error) = said["error"].as_str() {
        // An interrupted client tells what it has sent; it could not ask how much arrived.
        if !(error.starts_with("interrupt") && sent["seconds"].as_f64() > Some(0.0)) {
            return Err(error.to_owned());
        }
        received = sent;
    }
    let number = |value: &Value| value.as_f64().ok_or_else(|| "no result".to_owned());
    Ok(Transfer {
        octets: received["bytes"].as_u64().ok_or("no result")?,
        seconds: number(&received["seconds"])?,
        mbps: number(&received["bits_per_second"])? / 1e6,
        retransmits: sent["retransmits"].as_u64(),
    })
}

/// The measurement with the embedded hosts' own programs.
fn by_programs(
    client: &mut Client,
    (from, to): (&Host, &Host),
    args: &IperfArgs,
    interrupt: &Interrupt,
) -> Result<Transfer, Failure> {
    let (port, seconds) = (args.port, args.time);
    let slack = SLACK.as_secs();
    let sink = Program::TcpSink {
        port,
        seconds: (seconds + 2 * slack).min(3600),
    };
    let sink = start(client, to, sink)?;
    let source = Program::TcpSource {
        to: to.address,
        port,
        seconds,
    };
    let source = start(client, from, source)?;
    let deadline = Instant::now() + Duration::from_secs(seconds) + SLACK;
    let seen = loop {
        std::thread::sleep(LOOK);
        let late = Instant::now() > deadline || interrupt.has_come();
        let seen = report(client, from, source, late)?;
        if seen.over || late {
            if !late {
                report(client, from, source, true)?;
            }
            break seen;
        }
    };
    report(client, to, sink, true)?;
    if seen.failed || seen.octets == 0 {
        let text = format!("{} has no connection with {}", from.name, to.name);
        return Err(
            Failure::failed(text).hint(format!("try 'aerostat ping {} {}'", from.name, to.name))
        );
    }
    Ok(Transfer {
        octets: seen.octets,
        seconds: seen.seconds,
        mbps: seen.throughput_mbps,
        retransmits: None,
    })
}

#[derive(Deserialize)]
struct Report {
    over: bool,
    octets: u64,
    #[serde(default)]
    seconds: f64,
    #[serde(default)]
    throughput_mbps: f64,
    #[serde(default)]
    failed: bool,
}

fn start(client: &mut Client, host: &Host, program: Program) -> Result<u32, Failure> {
    let node = host.name.clone();
    let began = client::ask(client, &Request::ProgramStart { node, program })?;
    let id = began["id"].as_u64().and_then(|id| u32::try_from(id).ok());
    id.ok_or_else(|| Failure::failed("the lab's answer makes no sense"))
}

fn report(client: &mut Client, host: &Host, id: u32, forget: bool) -> Result<Report, Failure> {
    let node = host.name.clone();
    let request = Request::ProgramReport { node, id, forget };
    understood(client::ask(client, &request)?)
}
