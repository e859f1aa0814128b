//! TCP streams between kernel hosts of a running lab, from memory to memory, made by another process.
//!
//! A thread of that process enters a host's network namespace and makes a socket there. The socket stays in the
//! namespace, whichever thread uses it. So no program runs inside the lab, and a stream ends with its process.
//!
//! **Windows.** No setting of a kernel is a window in octets: a receive buffer counts the kernel's own bookkeeping, and
//! the window follows from it by an estimate that changes with the segments (tcp_rmem in ip-sysctl). What a kernel does
//! hold exactly is the largest congestion window of a route (`cwnd lock` of ip-route(8)), in segments. So the sender
//! is limited to the segments of the window of both hosts. The kernel reads that limit from its record of the peer,
//! which it makes at the end of a connection: [`Host::meet`] has one.

use crate::kernel::tcp;
use crate::namespace::{NetNs, ip, ip_says};
use crate::threads::spawn_in;
use rustix::fd::OwnedFd;
use rustix::net::sockopt::set_socket_linger;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Longest time for the set-up of a connection.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time after which a thread that waits for the network looks whether it has to end.
const LOOK: Duration = Duration::from_millis(50);
/// Octets that a program writes or reads at a time.
const CHUNK: usize = 64 << 10;

/// A kernel host of a running lab.
#[derive(Debug)]
pub struct Host {
    namespace: NetNs,
    /// Its address in the lab.
    pub address: Ipv4Addr,
}

/// Counters of a kernel since its host exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Segments that were sent again (`RetransSegs` of RFC 2012).
    pub retransmitted: u64,
    /// Expirations of the retransmission timer (`TCPTimeouts`).
    pub timeouts: u64,
}

/// A stream, which sends as fast as its TCP lets it.
#[derive(Clone, Copy, Debug)]
pub struct Stream<'a> {
    /// The sender.
    pub from: &'a Host,
    /// The receiver.
    pub to: &'a Host,
    /// How long it sends.
    pub duration: Duration,
}

impl Host {
    /// The host in this network namespace.
    #[must_use]
    pub fn new(namespace: OwnedFd, address: Ipv4Addr) -> Self {
        let namespace = NetNs::from(namespace);
        Self { namespace, address }
    }

    /// The setting `net.ipv4.NAME`.
    ///
    /// # Errors
    /// The kernel has no such setting of namespaces.
    pub fn setting(&self, name: &str) -> io::Result<String> {
        self.namespace.run(|| tcp::get(name))
    }

    /// Writes the setting `net.ipv4.NAME`, and reads it back.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn set(&self, name: &str, value: &str) -> io::Result<String> {
        self.namespace.run(|| tcp::set(name, value))
    }

    /// Makes a route to `peer` with at most `window` segments under way, if that is given, beside the attributes of
    /// the route that the host has. The interface gets one frame for each segment, as from adapters without
    /// segmentation. Returns the route as the kernel has it.
    ///
    /// # Errors
    /// What the kernel or `ip` refuses.
    pub fn limit(&self, peer: &Self, window: Option<u32>) -> io::Result<String> {
        let to = peer.address.to_string();
        self.namespace.run(|| {
            let routes = ip_says(&["-4", "route", "show", "match", &to])?;
            let best = best_route(&routes);
            let (dev, words) = best.ok_or_else(|| {
                io::Error::new(ErrorKind::NotFound, format!("no route to {to}: {routes}"))
            })?;
            ip(&["link", "set", "dev", dev, "gso_max_segs", "1"])?;
            let window = window.map(|segments| segments.to_string());
            let mut change = vec!["-4", "route", "replace", &to];
            change.extend(words);
            if let Some(window) = &window {
                change.extend(["cwnd", "lock", window]);
            }
            ip(&change)?;
            Ok(ip_says(&["-4", "route", "show", &to])?.trim().to_owned())
        })
    }

    /// Exchanges datagrams with `peer` for `time`, which fills the caches on the path, and then has a short connection
    /// with it, of which the kernel keeps the limits of the route.
    ///
    /// # Errors
    /// Of the sockets; the peer does not answer.
    pub fn meet(&self, peer: &Self, time: Duration) -> io::Result<()> {
        const DATAGRAMS: u32 = 20;
        let made = |host: &Self| {
            let address = SocketAddr::from((host.address, 0));
            host.namespace.run(|| UdpSocket::bind(address))
        };
        let (own, others) = (made(self)?, made(peer)?);
        let (here, there) = (own.local_addr()?, others.local_addr()?);
        for _ in 0..DATAGRAMS {
            // What is lost here is lost: the connection tells whether the path works.
            let _ = own.send_to(&[0; 64], there);
            let _ = others.send_to(&[0; 64], here);
            thread::sleep(time / DATAGRAMS);
        }
        self.set("tcp_no_metrics_save", "0")?;
        let (mut one, mut other) = connected(self, peer)?;
        one.write_all(&[0])?;
        other.set_read_timeout(Some(PATIENCE))?;
        other.read_exact(&mut [0])?;
        drop((one, other));
        // The end of the connection is the peer's, too: it takes a round trip.
        thread::sleep(time / DATAGRAMS);
        self.set("tcp_no_metrics_save", "1").map(drop)
    }

    /// Counters of the host's kernel.
    ///
    /// # Errors
    /// The kernel has no such counters.
    pub fn counters(&self) -> io::Result<Counters> {
        self.namespace.run(|| {
            let read = |file: &str, row: &str, column: &str| {
                let text = std::fs::read_to_string(format!("/proc/thread-self/net/{file}"))?;
                let absent = || io::Error::other(format!("no {row} {column} in /proc/net/{file}"));
                counter(&text, row, column).ok_or_else(absent)
            };
            Ok(Counters {
                retransmitted: read("snmp", "Tcp:", "RetransSegs")?,
                timeouts: read("netstat", "TcpExt:", "TCPTimeouts")?,
            })
        })
    }
}

/// The interface of the most specific of these routes, and its words for `ip route replace`.
fn best_route(routes: &str) -> Option<(&str, Vec<&str>)> {
    let length = |line: &&str| {
        let to = line.split_whitespace().next().unwrap_or_default();
        match to.split_once('/') {
            Some((_, length)) => length.parse().unwrap_or(32),
            None if to == "default" => 0,
            None => 32,
        }
    };
    let best = routes.lines().filter(|line| !line.trim().is_empty());
    let best = best.max_by_key(length)?;
    let mut words: Vec<&str> = Vec::new();
    let mut all = best.split_whitespace().skip(1);
    while let Some(word) = all.next() {
        match word {
            // The new route is no route of the kernel's own.
            "proto" => drop(all.next()),
            // `rto_min` is always locked, and `ip` takes no such word there.
            "lock" if words.last() == Some(&"rto_min") => {}
            word => words.push(word),
        }
    }
    let at = words.iter().position(|word| *word == "dev")?;
    Some((words.get(at + 1)?, words))
}

/// A counter of the files `snmp` and `netstat`: a line of names and a line of values, both behind the name of the row.
fn counter(text: &str, row: &str, column: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with(row));
    let (names, values) = (lines.next()?, lines.next()?);
    let at = names.split_whitespace().position(|name| name == column)?;
    values.split_whitespace().nth(at)?.parse().ok()
}

/// Both ends of a new connection.
fn connected(from: &Host, to: &Host) -> io::Result<(TcpStream, TcpStream)> {
    let listener = (to.namespace).run(|| TcpListener::bind(SocketAddr::from((to.address, 0))))?;
    let address = listener.local_addr()?;
    let sender = (from.namespace).run(|| TcpStream::connect_timeout(&address, PATIENCE))?;
    listener.set_nonblocking(true)?;
    let until = Instant::now() + PATIENCE;
    let receiver = loop {
        match listener.accept() {
            Ok((receiver, _)) => break receiver,
            Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < until => {
                thread::sleep(Duration::from_millis(1));
            }
            Err(error) => return Err(error),
        }
    };
    receiver.set_nonblocking(false)?;
    Ok((sender, receiver))
}

/// Gives this thread, its later threads and its later processes processors before those of other programs, or ends
/// that; false if the system does not give this user the right. A network in real time is as exact as its turns are.
pub fn first_in_line(on: bool) -> bool {
    rustix::process::setpriority_process(None, if on { -20 } else { 0 }).is_ok()
}

/// Runs the streams at the same time, and returns the octets that each receiver has read within its duration.
///
/// `goes_on` is asked about every 50 ms, with the time since the start, and ends all streams with `false`. Nothing of
/// a stream is under way in a host when this function returns: its connection is reset.
///
/// # Errors
/// Of the sockets, and [`ErrorKind::Interrupted`] after `goes_on` said so.
pub fn carry(
    streams: &[Stream<'_>],
    goes_on: &mut dyn FnMut(Duration) -> bool,
) -> io::Result<Vec<u64>> {
    let mut connections = Vec::new();
    for stream in streams {
        let (sender, receiver) = connected(stream.from, stream.to)?;
        for end in [&sender, &receiver] {
            set_socket_linger(end, Some(Duration::ZERO))?;
        }
        sender.set_write_timeout(Some(LOOK))?;
        receiver.set_read_timeout(Some(LOOK))?;
        connections.push((sender, receiver, stream.duration));
    }
    let stop = AtomicBool::new(false);
    let begin = Instant::now();
    let received = thread::scope(|scope| {
        let mut threads = Vec::new();
        for (sender, receiver, duration) in &connections {
            let run = Run {
                until: begin + *duration,
                stop: &stop,
            };
            let sends = spawn_in(scope, move || run.send(sender));
            let both = sends
                .and_then(|sends| Ok((sends, spawn_in(scope, move || run.receive(receiver))?)));
            // Those that run already end soon.
            threads.push(both.inspect_err(|_| stop.store(true, Ordering::Relaxed))?);
        }
        while threads.iter().any(|(_, receives)| !receives.is_finished()) {
            if !goes_on(begin.elapsed()) {
                stop.store(true, Ordering::Relaxed);
                break;
            }
            thread::sleep(LOOK);
        }
        let ended = threads.into_iter().map(|(sends, receives)| {
            joined(sends.join())?;
            joined(receives.join())
        });
        ended.collect::<io::Result<Vec<u64>>>()
    })?;
    match stop.into_inner() {
        true => Err(ErrorKind::Interrupted.into()),
        false => Ok(received),
    }
}

fn joined<T>(ended: thread::Result<io::Result<T>>) -> io::Result<T> {
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// One end of a stream.
#[derive(Clone, Copy)]
struct Run<'a> {
    until: Instant,
    stop: &'a AtomicBool,
}

impl Run<'_> {
    fn is_over(self) -> bool {
        Instant::now() >= self.until || self.stop.load(Ordering::Relaxed)
    }

    fn send(self, mut socket: &TcpStream) -> io::Result<()> {
        let octets = vec![0; CHUNK];
        while !self.is_over() {
            match socket.write(&octets) {
                Ok(_) => {}
                Err(error) if is_wait(&error) => {}
                // The receiver has ended first.
                Err(_) if self.is_over() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn receive(self, mut socket: &TcpStream) -> io::Result<u64> {
        let (mut octets, mut received) = (vec![0; CHUNK], 0);
        loop {
            let read = match socket.read(&mut octets) {
                Ok(read) => read,
                Err(error) if is_wait(&error) => 0,
                Err(error) => return Err(error),
            };
            // What comes after the end does not count.
            if self.is_over() {
                return Ok(received);
            }
            received += read as u64;
        }
    }
}

/// True for an error that says only that nothing has come yet, of a socket with a time-out.
#[must_use]
pub fn is_wait(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_route_keeps_its_attributes() {
        let routes = "default via 10.1.0.1 dev lec0 initcwnd 2 \n\
                      10.4.0.0/16 via 10.1.0.2 dev lec0 proto static rto_min lock 1s initcwnd 2 \n";
        let (dev, words) = best_route(routes).unwrap();
        assert_eq!(dev, "lec0");
        assert_eq!(
            words.join(" "),
            "via 10.1.0.2 dev lec0 rto_min 1s initcwnd 2"
        );
        let one = "10.1.0.0/24 dev lec0 proto kernel scope link src 10.1.0.10";
        let (_, words) = best_route(one).unwrap();
        assert_eq!(words.join(" "), "dev lec0 scope link src 10.1.0.10");
        assert_eq!(best_route("\n"), None);
        assert_eq!(best_route("10.1.0.0/24 via 10.1.0.1"), None);
    }

    #[test]
    fn counters_have_the_column_of_their_name() {
        let text = "Ip: A B\nIp: 1 2\nTcp: InSegs RetransSegs\nTcp: 17 4\n";
        assert_eq!(counter(text, "Tcp:", "RetransSegs"), Some(4));
        assert_eq!(counter(text, "Tcp:", "OutSegs"), None);
        assert_eq!(counter(text, "TcpExt:", "TCPTimeouts"), None);
    }

    /// Two hosts, which are two addresses of one namespace.
    fn hosts() -> Option<[Host; 2]> {
        let Ok(ns) = NetNs::create() else {
            println!("skipped: no privilege for network namespaces");
            return None;
        };
        let fd = || -> io::Result<OwnedFd> {
            Ok(std::fs::File::open("/proc/thread-self/ns/net")?.into())
        };
        let [one, other] = [1, 2].map(|last| {
            let address = Ipv4Addr::new(127, 0, 0, last);
            Host::new(ns.run(fd).unwrap(), address)
        });
        Some([one, other])
    }

    #[test]
    fn a_stream_carries_octets_for_its_time_and_can_be_stopped() {
        let Some([from, to]) = hosts() else { return };
        let stream = |ms| Stream {
            from: &from,
            to: &to,
            duration: Duration::from_millis(ms),
        };
        from.meet(&to, Duration::from_millis(20)).unwrap();
        let begin = Instant::now();
        let octets = carry(&[stream(200), stream(100)], &mut |_| true).unwrap();
        assert!(octets.iter().all(|octets| *octets > 0), "{octets:?}");
        assert!(begin.elapsed() >= Duration::from_millis(200));
        let stopped = carry(&[stream(60_000)], &mut |time| {
            time < Duration::from_millis(20)
        });
        assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Interrupted);
        assert_eq!(from.counters().unwrap().timeouts, 0);
    }

    #[test]
    fn settings_are_those_of_the_namespace() {
        let Some([host, _]) = hosts() else { return };
        assert_eq!(host.set("tcp_sack", "0").unwrap(), "0");
        assert_eq!(host.setting("tcp_sack").unwrap(), "0");
        let said = host.set("tcp_nonsense", "1").unwrap_err().to_string();
        assert!(said.contains("net.ipv4.tcp_nonsense"), "{said}");
    }
}
