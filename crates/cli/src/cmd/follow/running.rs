//! Ways of packets through a running lab.
//!
//! The lab tells each step of the packets that it has marked. A way ends where the packet goes, where it leaves the
//! lab, where it is dropped, or where nothing is seen of it for [`SILENCE`], by the clock of the lab: a command that is
//! slow to read has the same ways.

use super::micros;
use crate::args::{FollowArgs, RunningLab};
use crate::client;
use crate::exit::{Exit, Failure, Outcome, say};
use crate::output::{self, Format, Rows};
use aerostat_lab::picture::Kind;
use aerostat_lab::way::{Act, MOST_MARKED, MOST_WAITING, SILENCE, Step};
use aerostat_live::control::{Client, Request};
use aerostat_wire::counted;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// Name and version of the JSON document.
const SCHEMA: &str = "aerostat.ways.v1";
/// Time between two looks at packets of which nothing is heard.
const LOOK: Duration = Duration::from_millis(100);
/// Most steps of a packet that are kept: a BUS may send copies to many.
const MOST_STEPS: usize = 4096;
/// Steps that are read ahead. The lab leaves packets out for a client that does not read on.
const AHEAD: usize = 4096;

/// A part of a way: at a node, or over a link.
struct Stage<'a> {
    /// Its beginning, ns.
    at: u64,
    /// Its time, ns.
    takes: u64,
    node: &'a str,
    text: String,
}

impl<'a> Stage<'a> {
    fn of(at: u64, takes: u64, step: &'a Step, text: String) -> Self {
        let node = &step.node;
        Self {
            at,
            takes,
            node,
            text,
        }
    }
}

/// A packet and its steps so far.
struct Way {
    steps: Vec<Step>,
    /// Steps beyond the limit.
    left: u64,
}

/// The clock of the lab, as far as its steps tell it.
struct Clock {
    /// Time of the latest step, ns.
    lab: u64,
    /// When it was read.
    read: Instant,
}

aerostat_wire::named! {
    /// The end of a way.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum End {
        Delivered = "delivered",
        Left = "left",
        Dropped = "dropped",
        /// Nothing was seen of it any more.
        Unseen = "unseen",
    }
}

/// Follows packets until there are enough, the lab ends, or Ctrl-C.
pub(super) fn run(args: &FollowArgs, lab: &str) -> Outcome {
    let mut client = client::connect(&RunningLab {
        lab: Some(lab.to_owned()),
    })?;
    let request = Request::Ways {
        from: args.from.clone(),
        to: args.to.clone(),
        one_in: args.one_in,
    };
    client::ask(&mut client, &request)?;
    let mut shown = Shown {
        args,
        lab,
        all: Vec::new(),
        count: 0,
        left_out: 0,
        missed: 0,
    };
    follow(args, client, &mut shown)?;
    shown.end()
}

/// Passes each way on when it has ended.
fn follow(args: &FollowArgs, client: Client, shown: &mut Shown<'_>) -> Result<(), Failure> {
    let (stream, interrupted) = client.into_stream_until_signal()?;
    let (steps, received) = sync_channel(AHEAD);
    // The thread ends with the stream, or with the command.
    aerostat_live::threads::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if steps.send(line).is_err() {
                return;
            }
        }
    })?;
    let mut under_way: BTreeMap<u64, Way> = BTreeMap::new();
    let mut clock: Option<Clock> = None;
    loop {
        let ended = match received.recv_timeout(LOOK) {
            Ok(line) => {
                let step: Step = serde_json::from_str(&line).map_err(|error| {
                    Failure::failed(format!("the lab answers in another way: {error}"))
                })?;
                let (lab, read) = (step.t, Instant::now());
                clock = Some(Clock { lab, read });
                shown.missed = shown.missed.max(step.missed);
                heard(&mut under_way, step, args.count)
            }
            Err(RecvTimeoutError::Timeout) => {
                let clock = clock.as_mut();
                clock.into_iter().for_each(Clock::goes_on);
                None
            }
            Err(RecvTimeoutError::Disconnected) => {
                for way in std::mem::take(&mut under_way).into_values() {
                    shown.way(way)?;
                }
                if !interrupted.is_set() {
                    say(format_args!("the lab has ended"));
                }
                return Ok(());
            }
        };
        let now = clock.as_ref().map_or(0, |clock| clock.lab);
        for way in ended.into_iter().chain(silent(&mut under_way, now)) {
            shown.way(way)?;
        }
        if shown.count >= args.count {
            return Ok(());
        }
    }
}

/// Notes a step; returns the way if it has ended with it.
fn heard(under_way: &mut BTreeMap<u64, Way>, step: Step, count: u64) -> Option<Way> {
    let number = step.packet;
    // Later packets are not shown.
    if number > count {
        return None;
    }
    if step.text.is_none() && !under_way.contains_key(&number) {
        // A copy of a packet whose way has ended.
        return None;
    }
    let way = under_way.entry(number).or_insert_with(|| Way {
        steps: Vec::new(),
        left: 0,
    });
    let last = step.last;
    match way.steps.len() < MOST_STEPS {
        true => way.steps.push(step),
        false => way.left += 1,
    }
    last.then(|| under_way.remove(&number)).flatten()
}

/// A way of which nothing was heard for some time, at `now` by the clock of the lab.
fn silent(under_way: &mut BTreeMap<u64, Way>, now: u64) -> Option<Way> {
    // Later packets are not much older than the first one.
    let (&number, first) = under_way.first_key_value()?;
    let heard = first.steps.last().map_or(now, |step| step.t);
    let over = now.saturating_sub(heard) > SILENCE;
    over.then(|| under_way.remove(&number)).flatten()
}

impl Clock {
    /// No step comes, so that the time of this machine goes on for that of the lab.
    fn goes_on(&mut self) {
        let passed = u64::try_from(self.read.elapsed().as_nanos());
        self.lab = self.lab.saturating_add(passed.unwrap_or(u64::MAX));
        self.read = Instant::now();
    }
}

impl Way {
    fn end(&self) -> End {
        match self.steps.last() {
            Some(step) if step.last && step.act == Act::Received => End::Delivered,
            Some(step) if step.last => End::Left,
            Some(step) if step.act == Act::Dropped => End::Dropped,
            _ => End::Unseen,
        }
    }

    /// Packets that were left out since the way before.
    fn left_out(&self) -> u64 {
        self.steps.first().map_or(0, |step| step.left_out)
    }

    /// Number of the packet among the marked ones.
    fn number(&self) -> u64 {
        self.steps.first().map_or(0, |step| step.packet)
    }

    /// Times between the first and the last step, ns.
    fn takes(&self) -> u64 {
        let ends = self.steps.first().zip(self.steps.last());
        ends.map_or(0, |(first, last)| last.t.saturating_sub(first.t))
    }

    fn title(&self) -> String {
        let Some(first) = self.steps.first() else {
            return String::new();
        };
        let text = first.text.as_deref().unwrap_or("a packet");
        let seconds = first.t as f64 / 1e9;
        let takes = self.takes() as f64 / 1e3;
        let last = self.steps.last().map_or("", |step| &step.node);
        let end = match self.end() {
            End::Delivered => format!("at {last} after {takes} us"),
            End::Left => format!("left the lab behind {last} after {takes} us"),
            End::Dropped => format!("lost at {last} after {takes} us"),
            End::Unseen => match self.steps.last() {
                Some(step) if step.act == Act::Sent => {
                    format!("{} did not bring it to {}", step.link, step.peer)
                }
                _ => format!("last seen at {last} after {takes} us"),
            },
        };
        let more = match self.left {
            0 => String::new(),
            left => format!(" (and {} more)", counted(left, "step", "steps")),
        };
        format!("{}: {text}, from {seconds} s: {end}{more}", first.packet)
    }

    /// The stages, in the order of their steps.
    fn stages(&self) -> Vec<Stage<'_>> {
        let mut stages = Vec::new();
        for (place, step) in self.steps.iter().enumerate() {
            match step.act {
                Act::Sent => {
                    // The same packet may have come in before.
                    let came = self.steps[..place].iter().rev();
                    let mut came = came.filter(|one| one.act == Act::Received);
                    if let Some(came) = came.find(|one| one.node == step.node) {
                        let does = match step.kind {
                            Kind::Switch => "switches it",
                            Kind::Router => "routes it",
                            Kind::LaneServer => "relays it",
                            Kind::Host | Kind::Outside | Kind::Station => "sends it on",
                        };
                        let [from, to] =
                            [came, step].map(|one| format!("{} of {}", one.vc, one.link));
                        let text = format!("{does}, {from} to {to}");
                        let takes = step.t.saturating_sub(came.t);
                        stages.push(Stage::of(came.t, takes, step, text));
                    }
                    let mut then = self.steps[place..].iter();
                    let arrives = then.find(|one| {
                        one.act != Act::Sent && one.node == step.peer && one.link == step.link
                    });
                    let takes = arrives.map_or(0, |one| one.t.saturating_sub(step.t));
                    let text = format!("crosses {} to {} as {}", step.link, step.peer, step.vc);
                    stages.push(Stage::of(step.t, takes, step, text));
                }
                Act::Dropped => {
                    let why = step.why.as_deref().unwrap_or("dropped");
                    let text = format!("lost: {why}, {}", step.link);
                    stages.push(Stage::of(step.t, 0, step, text));
                }
                Act::Received => {}
            }
        }
        stages
    }

    fn json(&self) -> Value {
        json!({
            "packet": self.number(),
            "text": self.steps.first().and_then(|step| step.text.clone()),
            "from": self.steps.first().map(|step| &step.node),
            "to": self.steps.last().map(|step| &step.node),
            "end": self.end().name(),
            "takes_ns": self.takes(),
            "steps": self.steps,
            "left_out": self.left,
            "packets_left_out": self.left_out(),
        })
    }

    fn table(&self) -> Rows {
        let mut rows = Rows::new(&["packet", "at_us", "takes_us", "node", "what"]);
        rows.title = self.title();
        rows.name = "ways".to_owned();
        let start = self.steps.first().map_or(0, |step| step.t);
        for Stage {
            at,
            takes,
            node,
            text,
        } in self.stages()
        {
            rows.push(vec![
                self.number().into(),
                micros(i128::from(at) - i128::from(start)),
                micros(takes.into()),
                node.into(),
                text.into(),
            ]);
        }
        rows
    }
}

/// Ways on their way to the user.
struct Shown<'a> {
    args: &'a FollowArgs,
    lab: &'a str,
    /// Ways that are shown together.
    all: Vec<Way>,
    /// Number of ways so far.
    count: u64,
    /// Packets whose turn it was, and that the lab has not marked.
    left_out: u64,
    /// Steps that the lab could not tell.
    missed: u64,
}

impl Shown<'_> {
    fn way(&mut self, way: Way) -> Result<(), Failure> {
        self.count += 1;
        self.left_out += way.left_out();
        match self.args.output.output {
            Format::Json | Format::Csv => self.all.push(way),
            Format::Jsonl => writeln!(std::io::stdout().lock(), "{}", way.json())?,
            Format::Table => {
                output::write(self.args.output.form(), SCHEMA, &[way.table()])?;
            }
        }
        Ok(())
    }

    fn end(self) -> Outcome {
        match self.args.output.output {
            Format::Json => {
                let ways: Vec<Value> = self.all.iter().map(Way::json).collect();
                let document = json!({
                    "schema": SCHEMA,
                    "lab": self.lab,
                    "ways": ways,
                    "packets_left_out": self.left_out,
                    "steps_missed": self.missed,
                });
                writeln!(std::io::stdout().lock(), "{document:#}")?;
            }
            Format::Csv => {
                let mut rows = self.all.iter().map(Way::table);
                let mut first = rows.next().unwrap_or_else(|| Rows::new(&["packet"]));
                first.rows.extend(rows.flat_map(|table| table.rows));
                output::write(self.args.output.form(), SCHEMA, &[first])?;
            }
            Format::Jsonl | Format::Table => {}
        }
        let mut warnings = Vec::new();
        if self.count < self.args.count {
            let packets = counted(self.count, "packet was", "packets were");
            warnings.push(format!("{packets} followed, of {}", self.args.count));
        }
        if self.left_out > 0 {
            let packets = counted(self.left_out, "packet was", "packets were");
            warnings.push(format!(
                "{packets} left out between those that are shown: at most {MOST_MARKED} are under way at a time, and a \
                 lab marks none while this command has lines to read; a larger --one-in leaves out fewer"
            ));
        }
        if self.missed > 0 {
            let steps = counted(self.missed, "step is", "steps are");
            warnings.push(format!(
                "{steps} missing: a lab keeps {MOST_WAITING} of them for a command that is slow to read"
            ));
        }
        let short = warnings.iter();
        short.for_each(|warning| say(format_args!("warning: {warning}")));
        Ok(match warnings.is_empty() {
            true => Exit::Ok,
            false => Exit::Warnings,
        })
    }
}
