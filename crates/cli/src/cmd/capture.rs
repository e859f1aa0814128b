//! `aerostat capture`: pcapng from links of a running lab.

use crate::args::CaptureArgs;
use crate::client;
use crate::exit::{Exit, Failure, Outcome, say};
use aerostat_live::control::Request;
use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::path::Path;

/// Copies the stream until the lab ends or the reader has enough.
pub(crate) fn run(args: CaptureArgs) -> Outcome {
    let to_stdout = args.write == Path::new("-");
    if to_stdout && io::stdout().is_terminal() {
        return Err(Failure::usage("a capture on a terminal is no use")
            .hint("give -w FILE, or pipe it: aerostat capture -w - | wireshark -k -i -"));
    }
    let mut client = client::connect(&args.which)?;
    client::ask(&mut client, &Request::Capture { links: args.links })?;
    let (mut stream, interrupted) = client.into_stream_until_signal()?;
    let mut out: Box<dyn Write> = if to_stdout {
        Box::new(io::stdout().lock())
    } else {
        let file = File::create(&args.write)
            .map_err(|e| Failure::failed(format!("{}: {e}", args.write.display())))?;
        say(format_args!(
            "writing {} until Ctrl-C",
            args.write.display()
        ));
        Box::new(file)
    };
    let octets = io::copy(&mut stream, &mut out)?;
    if interrupted.is_set() {
        say(format_args!("{octets} octets"));
    } else {
        say(format_args!("{octets} octets; the lab has ended"));
    }
    Ok(Exit::Ok)
}
