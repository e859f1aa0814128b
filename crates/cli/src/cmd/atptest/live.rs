//! The tests in real time, between two hosts of a running lab.
//!
//! The sender makes a connection for each transfer. Its first message says what follows, and waits for the receiver to
//! be ready; then come short messages there and back, which tell the round trip; then come the messages, and the
//! receiver's last message is what it has measured. The access point of the call tells the profile, so one receiver
//! serves both.
//!
//! **Times.** A program of a busy machine runs late. If the receiver takes its first packet late and finds others
//! behind it, the time between its first and its last packet is too short, and the rate above that of the line.
//! Therefore the sender has a second time: from the first message given to the receiver's report, less the shortest
//! round trip. The longer one counts. A latency is the median of several messages there and back, one after the other.

use super::{AtptestProfile, AtptestTest, Found, Task};
use crate::args::AtptestArgs;
use crate::client;
use crate::exit::{self, Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use aerostat_live::{runtime_dir, threads};
use aerostat_proto::atp::{Amount, Counters, pattern};
use aerostat_socket::atp::{Connection, Listener, Options};
use aerostat_socket::{Error, Service};
use aerostat_wire::counted;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Calls that wait to be accepted.
const BACKLOG: u16 = 16;
/// How long a caller may take to announce a transfer, and afterwards to release the call.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time between two looks at an interrupt.
const LOOK: Duration = Duration::from_millis(100);
/// Octets of a message, if a transfer has more: as in virtual time.
const MESSAGE: u64 = 1 << 20;
/// Longest announcement of a transfer that a receiver takes.
const MOST_OCTETS: u64 = 1 << 32;
/// EAGAIN of Linux.
const AGAIN: i32 = 11;

/// Short messages there and back before a transfer.
const TURNS: usize = 4;
/// Messages there and back of which the latency is the median.
const LATENCIES: u64 = 5;

/// Answer of a receiver that takes the announced transfer.
const READY: &[u8] = b"ready";

/// Announcement of a sender.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Announced {
    octets: u64,
    message: u64,
    /// True if the receiver sends all messages back.
    echo: bool,
}

impl Announced {
    /// Octets of each message.
    fn messages(self) -> impl Iterator<Item = usize> {
        let (all, each) = (self.octets, self.message.max(1));
        let starts = (0..all.div_ceil(each)).map(move |number| number * each);
        starts.map(move |start| usize::try_from(each.min(all - start)).unwrap_or(usize::MAX))
    }
}

/// Measurements of a receiver.
#[derive(Debug, Serialize, Deserialize)]
struct Report {
    /// Octets of messages, without the announcement, and of their first packet.
    octets: u64,
    before: u64,
    /// From the first packet of the messages to the last one.
    nanos: u64,
    wrong: u64,
    packets_sent: u64,
    packets_repeated: u64,
    naks_sent: u64,
    timeouts: u64,
}

impl AtptestProfile {
    /// The access point of a receiver with these rules: a layer 3 of the users' own.
    const fn sap(self) -> &'static str {
        match self {
            Self::Report => "blli:l3=user,info=1",
            Self::Adaptive => "blli:l3=user,info=2",
        }
    }
    fn options(self) -> Options {
        let mut options = Options::default();
        options.params.profile = self.rules();
        self.sap().clone_into(&mut options.sap);
        options
    }
}

fn failed(error: &Error) -> Failure {
    Failure::failed(error.to_string())
}

/// The listeners for both profiles, at one address (empty: a free one), which is returned.
fn listeners(service: &Service, address: &str) -> Result<([Listener; 2], String), Error> {
    let of = |profile: AtptestProfile, at: &str| {
        let mut options = profile.options();
        // The caller's MTU counts.
        options.params.mtu = aerostat_socket::LARGEST_SDU;
        Listener::bind(service, at, BACKLOG, &options)
    };
    let report = of(AtptestProfile::Report, address)?;
    let address = report.address()?;
    let adaptive = of(AtptestProfile::Adaptive, &address)?;
    Ok(([report, adaptive], address))
}

/// Serves the calls of a listener until the service ends; counts the transfers.
fn answer_calls(listener: &Listener, served: &Arc<AtomicU64>) -> Error {
    loop {
        let offer = match listener.offer() {
            Ok(offer) => offer,
            Err(error) => return error,
        };
        match listener.take(offer) {
            Ok(connection) => {
                let served = Arc::clone(served);
                let served = threads::spawn(move || {
                    match receive(&connection) {
                        Ok(done) => drop(served.fetch_add(done.into(), Ordering::Relaxed)),
                        Err(error) => {
                            exit::say(format_args!("warning: a transfer ended early: {error}"));
                        }
                    }
                    drop(connection.close());
                });
                if let Err(error) = served {
                    exit::say(format_args!("warning: a call was not served: {error}"));
                }
            }
            // A caller that has gone is no reason to end.
            Err(error) => exit::say(format_args!("warning: a call was not accepted: {error}")),
        }
    }
}

/// `--serve`, until a listener ends, or Ctrl-C.
pub(super) fn serve(address: &str) -> Outcome {
    let service = Service::from_env().map_err(|error| failed(&error))?;
    let (listeners, address) = listeners(&service, address).map_err(|error| failed(&error))?;
    let interrupt = Interrupt::catch()?;
    println!("{address}");
    exit::say(format_args!(
        "host {}: waits for 'aerostat atptest --connect {address}'",
        service.host()
    ));
    let served = Arc::new(AtomicU64::new(0));
    let (ended, ends) = channel();
    for listener in listeners {
        let (served, ended) = (Arc::clone(&served), ended.clone());
        threads::spawn(move || ended.send(answer_calls(&listener, &served)))?;
    }
    loop {
        match ends.recv_timeout(LOOK) {
            Ok(error) => return Err(failed(&error)),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::failed("both listeners have ended"));
            }
            Err(RecvTimeoutError::Timeout) if interrupt.has_come() => {
                let count = served.load(Ordering::Relaxed);
                let served = counted(count, "transfer was served", "transfers were served");
                exit::say(format_args!("interrupted: {served}"));
                return Ok(Exit::Warnings);
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// One transfer at the receiver; false if the caller announced nothing, or went away.
fn receive(connection: &Connection) -> Result<bool, Error> {
    // A caller that does not speak ATP, or has nothing to announce, does not keep its call.
    let Some(first) = connection.recv_within(PATIENCE)? else {
        return Ok(false);
    };
    let announced = serde_json::from_slice::<Announced>(&first).ok();
    let announced = announced.filter(|of| (1..=MOST_OCTETS).contains(&of.octets));
    let Some(announced) = announced else {
        connection.send(b"what is announced is no transfer of atptest")?;
        return Ok(false);
    };
    connection.send(READY)?;
    for turn in 1..=TURNS {
        let Some(message) = connection.recv()? else {
            return Ok(false);
        };
        // Both ends measure what comes now. What waited for this program to accept the call is no part of it.
        if turn == TURNS {
            connection.measure_anew();
        }
        connection.send(&message)?;
    }
    let mut wrong = 0;
    for length in announced.messages() {
        let Some(message) = connection.recv()? else {
            return Ok(false);
        };
        let right = message.len() == length && message.iter().copied().eq(pattern(length));
        wrong += u64::from(!right);
        if announced.echo {
            connection.send(&message)?;
        }
    }
    let stats = connection.stats();
    let counters = stats.counters;
    let report = Report {
        octets: stats.received.octets,
        before: stats.received.before,
        nanos: u64::try_from(stats.received.time.as_nanos()).unwrap_or(u64::MAX),
        wrong,
        packets_sent: counters.packets_sent,
        packets_repeated: counters.packets_repeated,
        naks_sent: counters.naks_sent,
        timeouts: counters.timeouts,
    };
    let text = serde_json::to_vec(&report).unwrap_or_default();
    connection.send(&text)?;
    // The other end releases the call.
    while connection.recv_within(PATIENCE)?.is_some() {}
    Ok(true)
}

/// The sending host, and whom it calls.
pub(super) struct Sender {
    service: Service,
    address: String,
}

/// The sender for `--between` or `--connect`; `None`: the tests run in virtual time.
pub(super) fn sender(args: &AtptestArgs) -> Result<Option<Sender>, Failure> {
    if let Some(address) = &args.connect {
        let service = Service::from_env().map_err(|error| failed(&error))?;
        let address = address.clone();
        return Ok(Some(Sender { service, address }));
    }
    let [from, to] = match &args.between[..] {
        [] => return Ok(None),
        [from, to] => [from, to],
        other => {
            let text = format!("--between has {} hosts, not two", other.len());
            return Err(Failure::usage(text).hint("for example: --between urku,sello"));
        }
    };
    let lab = client::choose(&args.which)?.name;
    let of = |host: &str| {
        let path = runtime_dir::atm_socket_of(&lab, host);
        if let Some(hosts) = runtime_dir::atm_hosts_of(&lab)
            && !hosts.iter().any(|known| known == host)
        {
            let failure = Failure::failed(format!("lab '{lab}' has no host '{host}'"));
            return Err(failure.hint(format!("its hosts are {}", hosts.join(", "))));
        }
        Service::connect(&path).map_err(|error| failed(&error))
    };
    let (listeners, address) = listeners(&of(to)?, "").map_err(|error| failed(&error))?;
    for listener in listeners {
        threads::spawn(move || answer_calls(&listener, &Arc::default()))?;
    }
    let service = of(from)?;
    Ok(Some(Sender { service, address }))
}

/// The next message; `None`: interrupted.
fn next(connection: &Connection, interrupt: &Interrupt) -> Result<Option<Vec<u8>>, Failure> {
    while !interrupt.has_come() {
        match connection.recv_within(LOOK) {
            Ok(Some(message)) => return Ok(Some(message)),
            Ok(None) => return Err(Failure::failed("the receiver has ended the connection")),
            Err(error) if error.errno() == AGAIN => {}
            Err(error) => return Err(failed(&error)),
        }
    }
    Ok(None)
}

fn unexpected(said: &[u8]) -> Failure {
    let said = String::from_utf8_lossy(said).into_owned();
    Failure::failed(format!("the receiver said: {said}"))
}

/// Sends all messages. If they are echoed, each waits for the one before: returns the times there and back, and true if
/// they came back as they were. `None`: interrupted.
fn exchange(
    connection: &Connection,
    (announced, all): (Announced, &[u8]),
    interrupt: &Interrupt,
) -> Result<Option<(Vec<Duration>, bool)>, Failure> {
    let (mut times, mut correct) = (Vec::new(), true);
    for length in announced.messages() {
        let begun = Instant::now();
        let sent = connection.send(&all[..length]);
        sent.map_err(|error| failed(&error))?;
        if announced.echo {
            let Some(message) = next(connection, interrupt)? else {
                return Ok(None);
            };
            times.push(begun.elapsed());
            correct &= message == all[..length];
        }
    }
    times.sort_unstable();
    Ok(Some((times, correct)))
}

/// The shortest round trip of some short messages. `None`: interrupted.
fn round_trip(connection: &Connection, interrupt: &Interrupt) -> Result<Option<Duration>, Failure> {
    let turn = Announced {
        octets: TURNS as u64,
        message: 1,
        echo: true,
    };
    let turns = exchange(connection, (turn, b" "), interrupt)?;
    Ok(turns.and_then(|(times, _)| times.first().copied()))
}

impl Sender {
    /// One transfer; `None`: interrupted.
    pub(super) fn run(&self, task: &Task, interrupt: &Interrupt) -> Result<Option<Found>, Failure> {
        if interrupt.has_come() {
            return Ok(None);
        }
        let mut options = task.profile.options();
        options.params.mtu = task.transfer.mtu;
        let connected = Connection::connect(&self.service, &self.address, &options);
        let connection = connected.map_err(|error| failed(&error))?;
        let octets = task.transfer.octets;
        let echo = task.test == AtptestTest::Latency;
        let announced = Announced {
            octets: octets * if echo { LATENCIES } else { 1 },
            message: octets.min(MESSAGE),
            echo,
        };
        let send = |message: &[u8]| connection.send(message).map_err(|error| failed(&error));
        send(&serde_json::to_vec(&announced).unwrap_or_default())?;
        let all: Vec<u8> = pattern(announced.messages().next().unwrap_or_default()).collect();
        match next(&connection, interrupt)?.as_deref() {
            Some(READY) => {}
            Some(said) => return Err(unexpected(said)),
            None => return Ok(None),
        }
        let Some(round_trip) = round_trip(&connection, interrupt)? else {
            return Ok(None);
        };
        let begun = Instant::now();
        let Some((turns, correct)) = exchange(&connection, (announced, &all), interrupt)? else {
            return Ok(None);
        };
        let Some(report) = next(&connection, interrupt)? else {
            return Ok(None);
        };
        let whole = begun.elapsed().saturating_sub(round_trip);
        let turn = turns.get(turns.len() / 2).copied().unwrap_or_default();
        let near = connection.stats().counters;
        let Ok(report) = serde_json::from_slice::<Report>(&report) else {
            return Err(unexpected(&report));
        };
        connection.close().map_err(|error| failed(&error))?;
        let sent = (announced.octets, whole);
        Ok(Some(report.found(near, sent, turn, correct)))
    }
}

impl Report {
    /// Findings of both ends; `sent` are the octets of all messages, and their time by the sender's clock.
    fn found(&self, near: Counters, sent: (u64, Duration), turn: Duration, correct: bool) -> Found {
        Found {
            near,
            far: Counters {
                packets_sent: self.packets_sent,
                packets_repeated: self.packets_repeated,
                naks_sent: self.naks_sent,
                timeouts: self.timeouts,
                ..Counters::default()
            },
            received: self.received(sent.1),
            turn,
            correct: correct && self.wrong == 0 && self.octets == sent.0,
        }
    }

    /// The received amount, over the longer of the receiver's and the sender's time. The receiver's time begins behind
    /// the first packet.
    fn received(&self, whole: Duration) -> Amount {
        let far = Amount {
            messages: 0,
            octets: self.octets,
            time: Duration::from_nanos(self.nanos),
            before: self.before,
        };
        let near = Amount {
            time: whole,
            before: 0,
            ..far
        };
        match far.mbps().zip(near.mbps()) {
            Some((by_receiver, by_sender)) if by_sender < by_receiver => near,
            _ => far,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_that_took_its_first_packet_late_has_no_rate_above_the_line() {
        // 1 MiB in packets of 9180 octets, 9164 of them data, at 135.04 Mbit/s take 62.1 ms.
        let report = |nanos| Report {
            octets: 1 << 20,
            before: 9164,
            nanos,
            wrong: 0,
            packets_sent: 0,
            packets_repeated: 0,
            naks_sent: 0,
            timeouts: 0,
        };
        let line = (1 << 20) as f64 * 8.0 / 135.04;
        let whole = Duration::from_nanos((line * 1e3) as u64);
        let rate = |nanos| report(nanos).received(whole).mbps().expect("a rate");
        assert!(rate(60_000_000) <= 135.05, "late by two milliseconds");
        // In time: the receiver's clock counts, as in virtual time.
        assert!((rate(70_000_000) - (((1 << 20) - 9164) * 8) as f64 / 70e3).abs() < 1e-6);
    }
}
