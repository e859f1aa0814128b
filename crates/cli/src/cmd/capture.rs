//! `aerostat capture`: pcapng from links of a running lab.

use crate::args::CaptureArgs;
use crate::client;
use crate::exit::{Exit, Failure, Outcome, say};
use aerostat_lab::files::{self, Named};
use aerostat_lab::growth::{Growth, size};
use aerostat_live::control::Request;
use aerostat_wire::counted;
use std::io::{self, BufReader, ErrorKind, IsTerminal as _, Read, Write};
use std::path::Path;

/// Copies the stream until the lab ends or the reader closes it, and says what it does.
pub(crate) fn run(args: CaptureArgs) -> Outcome {
    record(args, &|text| say(text))
}

/// The same for a reader that shows what a program says as an error.
pub(crate) fn quietly(args: CaptureArgs) -> Outcome {
    record(args, &|_| ())
}

fn record(args: CaptureArgs, tell: &dyn Fn(std::fmt::Arguments<'_>)) -> Outcome {
    let to_stdout = args.write == Path::new("-");
    if to_stdout && io::stdout().is_terminal() {
        return Err(Failure::usage("a capture on a terminal is no use")
            .hint("give -w FILE, or pipe it: aerostat capture -w - | wireshark -k -i -"));
    }
    let mut client = client::connect(&args.which)?;
    let failed = |error: io::Error| Failure::failed(format!("{}: {error}", args.write.display()));
    let request = Request::Capture {
        links: args.links,
        both_ends: args.both_ends,
        cells: args.cells,
    };
    client::ask(&mut client, &request)?;
    // The wait for the reader of a named pipe is here, where signals end the command.
    let mut out: Box<dyn Write> = if to_stdout {
        Box::new(io::stdout().lock())
    } else {
        let file = files::begin(&args.write, Named::ByUser).map_err(failed)?;
        tell(format_args!(
            "writing {} until Ctrl-C",
            args.write.display()
        ));
        Box::new(file)
    };
    let (mut stream, interrupted) = client.into_stream_until_signal()?;
    let mut growth = Growth::default();
    let seen = copy(&mut stream, &mut out, &mut |octets| {
        if growth.reached(octets) {
            tell(format_args!("note: {} so far", size(octets)));
        }
    });
    let seen = seen.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => error.into(),
        _ => failed(error),
    })?;
    let (one, what) = match args.cells {
        true => ("cell", "cells"),
        false => ("PDU", "PDUs"),
    };
    let end = if interrupted.is_set() {
        ""
    } else {
        "; the lab has ended"
    };
    tell(format_args!(
        "{}, {}{end}",
        counted(seen.packets, one, what),
        size(seen.octets)
    ));
    if seen.missing > 0 {
        say(format_args!(
            "warning: {} {what} are missing, because they came faster than they could be written",
            seen.missing
        ));
        return Ok(Exit::Warnings);
    }
    Ok(Exit::Ok)
}

/// Contents of a stream.
#[derive(Default)]
struct Seen {
    octets: u64,
    packets: u64,
    /// Packets that the lab could not deliver.
    missing: u64,
}

/// Blocks of pcapng. Source: draft-ietf-opsawg-pcapng.
const ENHANCED_PACKET: u32 = 6;
const INTERFACE_STATISTICS: u32 = 5;
/// Longest block that the lab writes: an SDU of 65535 octets with its options.
const MAX_BLOCK: usize = 1 << 20;

/// Copies whole blocks until the stream ends, and counts them; `grows` hears the octets so far.
fn copy(
    stream: &mut impl Read,
    out: &mut impl Write,
    grows: &mut dyn FnMut(u64),
) -> io::Result<Seen> {
    let (mut stream, mut seen) = (BufReader::new(stream), Seen::default());
    let mut block = Vec::new();
    loop {
        let mut head = [0; 8];
        match stream.read_exact(&mut head) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
            other => other?,
        }
        let [kind, length] = [
            [head[0], head[1], head[2], head[3]],
            [head[4], head[5], head[6], head[7]],
        ]
        .map(u32::from_le_bytes);
        let length = length as usize;
        if !(12..=MAX_BLOCK).contains(&length) {
            return Err(io::Error::other(format!("a block of {length} octets")));
        }
        block.clear();
        block.extend(head);
        block.resize(length, 0);
        match stream.read_exact(&mut block[8..]) {
            // An incomplete block would make the file unreadable.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
            other => other?,
        }
        out.write_all(&block)?;
        out.flush()?;
        seen.octets += length as u64;
        grows(seen.octets);
        match kind {
            ENHANCED_PACKET => seen.packets += 1,
            // The only option is the number of packets that are missing so far.
            INTERFACE_STATISTICS => {
                let told = block.get(24..32).and_then(|told| told.try_into().ok());
                seen.missing = told.map_or(seen.missing, u64::from_le_bytes);
            }
            _ => {}
        }
    }
    Ok(seen)
}
