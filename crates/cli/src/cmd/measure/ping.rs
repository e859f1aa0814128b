//! `aerostat ping` and `pingall`.

use super::kernel::{self, Inside};
use super::{Host, LAST_WORDS, find, hosts, interrupted, runner, understood};
use crate::args::{PingArgs, PingHow, PingallArgs};
use crate::client;
use crate::exit::{Exit, Failure, Outcome, say};
use crate::interrupt::Interrupt;
use crate::output::{self, Form, Rows};
use aerostat_live::control::{Client, Request};
use aerostat_live::programs::Program;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// Limit of pairs that are pinged at a time.
const AT_ONCE: usize = 64;
/// Limit of pairs of `pingall`.
const MOST_PAIRS: usize = 10_000;
/// Interval for checking running pings.
const LOOK: Duration = Duration::from_millis(20);
/// How long to wait for answers after the last request, in kernel hosts.
const LAST_WAIT: Duration = Duration::from_secs(2);
/// Time allowed for starting a program.
const SLACK: Duration = Duration::from_secs(10);

/// How echo requests are sent.
#[derive(Clone, Copy, Debug)]
struct How {
    count: u32,
    /// Seconds between requests.
    interval: f64,
    size: u16,
    /// Answers after which no more requests are sent, if they come within this many seconds; `None`: all requests are
    /// sent.
    enough: Option<(u64, f64)>,
}

impl From<&PingHow> for How {
    fn from(how: &PingHow) -> Self {
        Self {
            count: how.count,
            interval: how.interval,
            size: how.size,
            enough: None,
        }
    }
}

/// A question of a check: whether one host answers the other.
pub(crate) struct Question {
    pub(crate) from: String,
    pub(crate) to: String,
    /// Time for the answers.
    pub(crate) within: Duration,
    /// Answers that are enough; `None`: those to one request a second for the whole time count.
    pub(crate) enough: Option<u64>,
}

/// Number of answers to each question, or why it cannot be asked. All are asked at the same time.
pub(crate) fn answers(
    client: &mut Client,
    lab: &str,
    questions: &[Question],
    interrupt: &Interrupt,
) -> Result<Vec<Result<u64, String>>, Failure> {
    let hosts = hosts(client)?;
    let mut found: Vec<Result<u64, String>> = Vec::new();
    let mut asked = Vec::new();
    for (place, question) in questions.iter().enumerate() {
        let ends =
            runner(&hosts, &question.from).and_then(|from| Ok((from, find(&hosts, &question.to)?)));
        match ends {
            Err(failure) => found.push(Err(failure.to_string())),
            Ok((from, to)) => {
                let pair = Pair {
                    from: from.clone(),
                    to: to.name.clone(),
                    address: to.address,
                };
                let seconds = question.within.as_secs_f64();
                let how = How {
                    count: seconds.ceil().max(1.0) as u32,
                    interval: 1.0,
                    size: 56,
                    enough: Some((question.enough.unwrap_or(u64::MAX), seconds)),
                };
                asked.push((place, pair, how));
                found.push(Ok(0));
            }
        }
    }
    let places: Vec<usize> = asked.iter().map(|(place, ..)| *place).collect();
    let pairs = asked
        .into_iter()
        .map(|(_, pair, how)| (pair, how))
        .collect();
    for (place, one) in ask(client, lab, pairs, interrupt)? {
        found[places[place]] = Ok(one.received);
    }
    Ok(found)
}

/// A pair of hosts.
struct Pair {
    from: Host,
    to: String,
    address: Ipv4Addr,
}

/// The result of one pair.
struct Found {
    pair: Pair,
    sent: u64,
    received: u64,
    /// Minimum, mean and maximum, ms.
    rtt: Option<[f64; 3]>,
}

/// Pings one host from another.
pub(crate) fn ping(args: &PingArgs) -> Outcome {
    let lab = client::choose(&args.which)?.name;
    let mut client = client::connect(&args.which)?;
    let hosts = hosts(&mut client)?;
    let from = runner(&hosts, &args.from)?.clone();
    let address = match args.to.parse() {
        Ok(address) => address,
        Err(_) => find(&hosts, &args.to)?.address,
    };
    let to = args.to.clone();
    let pair = Pair { from, to, address };
    ask_and_tell(
        &mut client,
        &lab,
        vec![pair],
        (&args.how, args.output.form()),
    )
}

/// Pings every host from every other one.
pub(crate) fn pingall(args: &PingallArgs) -> Outcome {
    let lab = client::choose(&args.which)?.name;
    let mut client = client::connect(&args.which)?;
    let hosts = hosts(&mut client)?;
    let hosts: Vec<Host> = hosts
        .into_iter()
        .filter(|host| host.what == "host")
        .collect();
    let count = hosts.len() * hosts.len().saturating_sub(1);
    if count > MOST_PAIRS {
        let text = format!(
            "{} hosts are {count} pairs: more than {MOST_PAIRS}",
            hosts.len()
        );
        return Err(Failure::failed(text).hint("'aerostat ping A B' asks one"));
    }
    let mut pairs = Vec::new();
    for from in &hosts {
        for to in hosts.iter().filter(|to| to.name != from.name) {
            let (from, address, to) = (from.clone(), to.address, to.name.clone());
            pairs.push(Pair { from, to, address });
        }
    }
    ask_and_tell(&mut client, &lab, pairs, (&args.how, args.output.form()))
}

fn ask_and_tell(
    client: &mut Client,
    lab: &str,
    pairs: Vec<Pair>,
    (how, form): (&PingHow, Form),
) -> Outcome {
    let interrupt = Interrupt::catch()?;
    let all = pairs.len();
    let how = How::from(how);
    let pairs = pairs.into_iter().map(|pair| (pair, how)).collect();
    let found: Vec<Found> = ask(client, lab, pairs, &interrupt)?.into_values().collect();
    let end = tell(&found, form)?;
    Ok(match interrupt.has_come() {
        true => interrupted(all - found.len()),
        false => end,
    })
}

/// A running ping.
enum Running {
    Kernel(Inside),
    Embedded {
        id: u32,
        deadline: Instant,
        /// Answers after which it may end.
        enough: u64,
    },
}

impl Running {
    /// Asks the ping to end with its results so far.
    fn interrupt(&mut self) {
        match self {
            Self::Kernel(inside) => inside.interrupt(LAST_WORDS),
            Self::Embedded { deadline, .. } => *deadline = Instant::now(),
        }
    }
}

fn ask(
    client: &mut Client,
    lab: &str,
    pairs: Vec<(Pair, How)>,
    interrupt: &Interrupt,
) -> Result<BTreeMap<usize, Found>, Failure> {
    if pairs.iter().any(|(pair, _)| pair.from.is_kernel()) {
        kernel::need("ping", "iputils-ping")?;
    }
    let mut waiting: VecDeque<(usize, (Pair, How))> = pairs.into_iter().enumerate().collect();
    let mut running: VecDeque<(usize, Pair, Running)> = VecDeque::new();
    let mut found = BTreeMap::new();
    let mut told_to_end = false;
    while !waiting.is_empty() || !running.is_empty() {
        while running.len() < AT_ONCE
            && let Some((place, (pair, how))) = waiting.pop_front()
        {
            let began = begin(client, lab, &pair, how)?;
            running.push_back((place, pair, began));
        }
        std::thread::sleep(LOOK);
        if interrupt.has_come() && !std::mem::replace(&mut told_to_end, true) {
            waiting.clear();
            for (_, _, ping) in &mut running {
                ping.interrupt();
            }
        }
        for _ in 0..running.len() {
            let Some((place, pair, mut ping)) = running.pop_front() else {
                break;
            };
            match look(client, &pair, &mut ping)? {
                Some((sent, received, rtt)) => {
                    let one = Found {
                        pair,
                        sent,
                        received,
                        rtt,
                    };
                    found.insert(place, one);
                }
                None => running.push_back((place, pair, ping)),
            }
        }
    }
    Ok(found)
}

fn begin(client: &mut Client, lab: &str, pair: &Pair, how: How) -> Result<Running, Failure> {
    let sending = Duration::from_secs_f64(f64::from(how.count) * how.interval);
    if pair.from.is_kernel() {
        // With a time limit, the count is one of answers.
        let (count, limit) = match how.enough {
            None => (how.count.into(), format!("-W{}", LAST_WAIT.as_secs())),
            Some((enough, within)) => {
                let count = enough.clamp(1, how.count.into());
                (count, format!("-w{}", within.ceil()))
            }
        };
        let argv = [
            "ping".to_owned(),
            "-n".to_owned(),
            format!("-c{count}"),
            format!("-i{}", how.interval),
            format!("-s{}", how.size),
            limit,
            pair.address.to_string(),
        ];
        let longest = sending + LAST_WAIT + SLACK;
        let inside = Inside::start(lab, &pair.from.name, &argv, longest)?;
        return Ok(Running::Kernel(inside));
    }
    #[derive(Deserialize)]
    struct Began {
        id: u32,
    }
    let program = Program::Ping {
        to: pair.address,
        count: how.count,
        interval_ms: (how.interval * 1000.0).round() as u64,
        size: how.size.into(),
    };
    let node = pair.from.name.clone();
    let began = client::ask(client, &Request::ProgramStart { node, program })?;
    let Began { id } = understood(began)?;
    let (enough, longest) = match how.enough {
        None => (u64::MAX, sending + SLACK),
        Some((enough, within)) => (enough, Duration::from_secs_f64(within)),
    };
    Ok(Running::Embedded {
        id,
        deadline: Instant::now() + longest,
        enough,
    })
}

type Result3 = (u64, u64, Option<[f64; 3]>);

fn look(client: &mut Client, pair: &Pair, ping: &mut Running) -> Result<Option<Result3>, Failure> {
    match ping {
        Running::Kernel(inside) => {
            let Some(ended) = inside.poll()? else {
                return Ok(None);
            };
            let seen = summary(&ended.out).unwrap_or_else(|| {
                // For example, there is no route. The other pairs continue.
                let (from, to) = (&pair.from.name, &pair.to);
                say(format_args!("ping at {from} to {to}: {}", ended.err.trim()));
                (0, 0, None)
            });
            Ok(Some(seen))
        }
        Running::Embedded {
            id,
            deadline,
            enough,
        } => {
            #[derive(Deserialize)]
            struct Report {
                over: bool,
                sent: u64,
                received: u64,
                rtt_min_us: f64,
                rtt_mean_us: f64,
                rtt_max_us: f64,
            }
            let forget = Instant::now() >= *deadline;
            let mut report = |forget| -> Result<Report, Failure> {
                let (node, id) = (pair.from.name.clone(), *id);
                let request = Request::ProgramReport { node, id, forget };
                understood(client::ask(client, &request)?)
            };
            let seen = report(forget)?;
            if !seen.over && !forget && seen.received < *enough {
                return Ok(None);
            }
            if !forget {
                report(true)?;
            }
            let rtt = [seen.rtt_min_us, seen.rtt_mean_us, seen.rtt_max_us].map(|us| us / 1000.0);
            let rtt = (seen.received > 0).then_some(rtt);
            Ok(Some((seen.sent, seen.received, rtt)))
        }
    }
}

/// The summary that the system's ping prints at its end.
fn summary(text: &str) -> Option<Result3> {
    let line = text
        .lines()
        .find(|line| line.contains("packets transmitted"))?;
    let mut numbers = line
        .split(|c: char| !c.is_ascii_digit())
        .filter(|word| !word.is_empty());
    let sent = numbers.next()?.parse().ok()?;
    let received = numbers.next()?.parse().ok()?;
    let times = text
        .lines()
        .find_map(|line| line.strip_prefix("rtt min/avg/max/mdev = "));
    let rtt = times.and_then(|times| {
        let mut times = times.split(['/', ' ']).map(str::parse);
        Some([
            times.next()?.ok()?,
            times.next()?.ok()?,
            times.next()?.ok()?,
        ])
    });
    Some((sent, received, rtt))
}

fn tell(found: &[Found], form: Form) -> Outcome {
    let mut rows = Rows::new(&[
        "from",
        "to",
        "sent",
        "received",
        "lost",
        "rtt_min_ms",
        "rtt_mean_ms",
        "rtt_max_ms",
    ]);
    let ms = |value: f64| json!((value * 1000.0).round() / 1000.0);
    for one in found {
        let rtt = one
            .rtt
            .map_or([Value::Null, Value::Null, Value::Null], |rtt| rtt.map(ms));
        let [min, mean, max] = rtt;
        rows.push(vec![
            json!(one.pair.from.name),
            json!(one.pair.to),
            json!(one.sent),
            json!(one.received),
            json!(one.sent.saturating_sub(one.received)),
            min,
            mean,
            max,
        ]);
    }
    output::write(form, "aerostat.ping.v1", &[rows])?;
    if found.iter().any(|one| one.received == 0) {
        return Ok(Exit::Failed);
    }
    let whole = found.iter().all(|one| one.received == one.sent);
    Ok(if whole { Exit::Ok } else { Exit::Warnings })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_iputils_ping_says_is_understood() {
        let good = "PING 10.1.0.20 (10.1.0.20) 56(84) bytes of data.\n\n--- 10.1.0.20 ping statistics ---\n\
            3 packets transmitted, 2 received, 33.3333% packet loss, time 402ms\n\
            rtt min/avg/max/mdev = 0.101/0.202/0.303/0.040 ms\n";
        assert_eq!(summary(good), Some((3, 2, Some([0.101, 0.202, 0.303]))));
        let dead = "--- 10.1.0.77 ping statistics ---\n\
            3 packets transmitted, 0 received, +3 errors, 100% packet loss, time 2030ms\npipe 3\n";
        assert_eq!(summary(dead), Some((3, 0, None)));
        assert_eq!(summary("ping: connect: Network is unreachable\n"), None);
    }
}
