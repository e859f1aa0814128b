//! Scripts for a TCP in the manner of packetdrill: what its program does, what a peer sends, and what it has to answer.
//!
//! ```text
//! # A comment. Empty lines count for nothing.
//! peer mss=1000 sack          options of the peer's SYN: mss, sack, scale
//! listen | connect            how the connection begins
//! < S 0                       a segment of the peer: flags as of tcpdump, number (or FIRST:END for data)
//! < . 1 ack 1 win 500         ... acknowledgement (of the stack's numbers), window (65535 without)
//! < . 1 ack 1 sack 1001:2001  ... blocks
//! > S. 0 ack 1                a segment that the stack sends now: within 30 ms, as in real time it may be late
//! > . 1:1001 ack 1 in 200ms..400ms    ... or within these times after the last line
//! > . 1 ack 1 win 0           ... with this window; `win >0`: with any but 0
//! nothing 100ms               the stack sends nothing for so long
//! write 5000                  the program writes octets
//! read 5000                   the program reads so many octets, which are there
//! close | abort               the program ends its direction, or the connection
//! [machine] > . 1 ack 1       a line for one kind of stack only: an explained difference
//! ```
//!
//! Numbers count from the first number of each side, so SYN is 0 and the first octet 1. PSH of the stack's segments is
//! not compared, and neither are options but blocks.

use aerostat_proto::Duration;
use aerostat_wire::tcp::{Blocks, Flags, Segment};
use std::fmt::Write as _;

/// First number of the peer: numbers wrap in each longer script.
const PEER_FIRST: u32 = u32::MAX - 2000;
/// Ports of the stack and of the peer.
pub const PORTS: (u16, u16) = (5001, 40_000);
/// Time within which the stack has to answer.
const NOW: Duration = Duration::from_millis(30);

/// A TCP under test, and its program.
pub trait Stack {
    /// The word in brackets that begins lines for this kind only.
    fn kind(&self) -> &'static str;
    /// Waits for the peer, or connects to it.
    fn open(&mut self, listens: bool);
    /// A segment from the peer.
    fn inject(&mut self, segment: &Segment, data: &[u8]);
    /// The next segment to the peer, and the time until it; `None` if no segment came for so long.
    fn next(&mut self, wait: Duration) -> Option<(Segment, Vec<u8>, Duration)>;
    /// The program writes octets.
    fn write(&mut self, octets: usize);
    /// The program reads; the result is the number of octets.
    fn read(&mut self, most: usize) -> usize;
    /// The program ends its direction.
    fn close(&mut self);
    /// The program ends the connection.
    fn abort(&mut self);
}

/// A segment of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Line {
    flags: u8,
    start: u32,
    end: u32,
    ack: u32,
    window: Option<u16>,
    any_window: bool,
    sack: Vec<(u32, u32)>,
    least: Duration,
    most: Option<Duration>,
}

fn time(text: &str) -> Result<Duration, String> {
    let ms = text
        .strip_suffix("ms")
        .and_then(|number| number.parse().ok());
    ms.map(Duration::from_millis)
        .ok_or(format!("no time in ms: {text}"))
}

fn number<N: std::str::FromStr>(text: Option<&str>) -> Result<N, String> {
    let text = text.unwrap_or_default();
    text.parse().map_err(|_| format!("no number: '{text}'"))
}

fn range(text: &str) -> Result<(u32, u32), String> {
    match text.split_once(':') {
        Some((start, end)) => Ok((number(Some(start))?, number(Some(end))?)),
        None => number(Some(text)).map(|start| (start, start)),
    }
}

impl Line {
    fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let mut line = Self::default();
        for letter in words.next().unwrap_or_default().chars() {
            let flag = match letter {
                'S' => Flags::SYN,
                'F' => Flags::FIN,
                'R' => Flags::RST,
                'P' => Flags::PSH,
                'U' => Flags::URG,
                '.' => Flags::ACK,
                _ => return Err(format!("no flag: {letter}")),
            };
            line.flags |= flag.0;
        }
        (line.start, line.end) = range(words.next().unwrap_or_default())?;
        while let Some(word) = words.next() {
            match word {
                "ack" => line.ack = number(words.next())?,
                "win" => match words.next() {
                    Some(">0") => line.any_window = true,
                    window => line.window = Some(number(window)?),
                },
                "sack" => line.sack.push(range(words.next().unwrap_or_default())?),
                "in" => {
                    let (least, most) = words
                        .next()
                        .and_then(|word| word.split_once(".."))
                        .ok_or("no times")?;
                    line.least = time(least)?;
                    line.most = Some(time(most)?);
                }
                _ => return Err(format!("no word: {word}")),
            }
        }
        Ok(line)
    }
}

/// A run of a script.
struct Run<'a> {
    stack: &'a mut dyn Stack,
    first: Option<u32>,
    options: aerostat_wire::tcp::Options,
}

impl Run<'_> {
    fn peer(&mut self, text: &str) -> Result<(), String> {
        for word in text.split_whitespace() {
            match word.split_once('=') {
                Some(("mss", value)) => self.options.mss = Some(number(Some(value))?),
                Some(("scale", value)) => self.options.window_scale = Some(number(Some(value))?),
                None if word == "sack" => self.options.sack_permitted = true,
                _ => return Err(format!("no option: {word}")),
            }
        }
        Ok(())
    }

    fn inject(&mut self, line: &Line) {
        let theirs = |number: u32| self.first.unwrap_or_default().wrapping_add(number);
        let mut segment = Segment {
            source: PORTS.1,
            destination: PORTS.0,
            seq: PEER_FIRST.wrapping_add(line.start),
            ack: theirs(line.ack),
            flags: Flags(line.flags),
            window: line.window.unwrap_or(65_535),
            ..Segment::default()
        };
        if segment.flags.has(Flags::SYN) {
            segment.options = self.options;
        }
        if !segment.flags.has(Flags::ACK) {
            segment.ack = 0;
        }
        for (left, right) in &line.sack {
            segment.options.sack.push(theirs(*left), theirs(*right));
        }
        let data: Vec<u8> = (line.start..line.end).map(|at| at as u8).collect();
        self.stack.inject(&segment, &data);
    }

    fn expect(&mut self, line: &Line) -> Result<(), String> {
        let most = line.most.unwrap_or(NOW);
        let Some((segment, data, after)) = self.stack.next(most) else {
            return Err(format!("nothing within {most:?}"));
        };
        let first = *self
            .first
            .get_or_insert(match segment.flags.has(Flags::RST) {
                true => segment.seq.wrapping_sub(line.start),
                false => segment.seq,
            });
        let start = segment.seq.wrapping_sub(first);
        let is = |flag| segment.flags.has(flag);
        let mut blocks = Blocks::default();
        for (left, right) in &line.sack {
            blocks.push(
                PEER_FIRST.wrapping_add(*left),
                PEER_FIRST.wrapping_add(*right),
            );
        }
        let ack = if is(Flags::ACK) {
            segment.ack.wrapping_sub(PEER_FIRST)
        } else {
            0
        };
        let mut wrong = String::new();
        if segment.flags.without(Flags::PSH).0 != line.flags & !Flags::PSH.0 {
            let _ = write!(wrong, "flags; ");
        }
        if (start, start.wrapping_add(data.len() as u32)) != (line.start, line.end) {
            let _ = write!(wrong, "numbers; ");
        }
        if ack != line.ack {
            let _ = write!(wrong, "acknowledgement; ");
        }
        if line.window.is_some_and(|window| window != segment.window)
            || (line.any_window && segment.window == 0)
        {
            let _ = write!(wrong, "window; ");
        }
        if segment.options.sack != blocks {
            let _ = write!(wrong, "blocks; ");
        }
        if after < line.least {
            let _ = write!(wrong, "too early; ");
        }
        if wrong.is_empty() {
            return Ok(());
        }
        let end = start.wrapping_add(data.len() as u32);
        let sack = segment.options.sack.as_slice().iter().map(|(left, right)| {
            format!(
                " sack {}:{}",
                left.wrapping_sub(PEER_FIRST),
                right.wrapping_sub(PEER_FIRST)
            )
        });
        let sack: String = sack.collect();
        Err(format!(
            "{wrong}the stack sends {} {start}:{end} ack {ack} win {}{sack} after {after:?}",
            segment.flags, segment.window
        ))
    }

    fn line(&mut self, text: &str) -> Result<(), String> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        match word {
            "peer" => self.peer(rest)?,
            "listen" => self.stack.open(true),
            "connect" => self.stack.open(false),
            "<" => self.inject(&Line::parse(rest)?),
            ">" => self.expect(&Line::parse(rest)?)?,
            "nothing" => {
                if let Some((segment, data, after)) = self.stack.next(time(rest)?) {
                    return Err(format!(
                        "the stack sends {segment} ({}) after {after:?}",
                        data.len()
                    ));
                }
            }
            "write" => self.stack.write(number(Some(rest))?),
            "read" => {
                let wanted = number(Some(rest))?;
                let read = self.stack.read(wanted);
                if read != wanted {
                    return Err(format!("{read} octets are there"));
                }
            }
            "close" => self.stack.close(),
            "abort" => self.stack.abort(),
            _ => return Err(format!("no word of scripts: {word}")),
        }
        Ok(())
    }
}

/// Runs a script.
///
/// # Errors
/// The line at which the stack does something else, or that is no line of a script.
pub fn run(script: &str, stack: &mut dyn Stack) -> Result<(), String> {
    let kind = stack.kind();
    let mut run = Run {
        stack,
        first: None,
        options: aerostat_wire::tcp::Options::default(),
    };
    for (at, text) in script.lines().enumerate() {
        let text = text.split('#').next().unwrap_or_default().trim();
        let text = match text
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("] "))
        {
            Some((only, rest)) if only == kind => rest,
            Some(_) => continue,
            None => text,
        };
        if !text.is_empty() {
            let told = run.line(text);
            told.map_err(|error| format!("line {}, '{text}': {error}", at + 1))?;
        }
    }
    Ok(())
}
