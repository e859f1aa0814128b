//! The scripts, with the kernel.

use super::{Bench, KERNEL, OURS, control};
use aerostat_proto::Duration;
use aerostat_testing::tcp_script::{PORTS, Stack, run};
use aerostat_wire::tcp::Segment;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, accept_with, bind,
    connect, listen, recv, send, shutdown, socket_with, sockopt,
};
use std::collections::VecDeque;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::time::Instant;

/// The kernel, and a socket in its namespace.
struct Kernel {
    bench: Bench,
    listener: Option<OwnedFd>,
    stream: Option<OwnedFd>,
    segments: VecDeque<(Segment, Vec<u8>, Instant)>,
    /// The time of the last line.
    last: Instant,
}

impl Kernel {
    fn new() -> Option<Self> {
        Some(Self {
            bench: Bench::new()?,
            listener: None,
            stream: None,
            segments: VecDeque::new(),
            last: Instant::now(),
        })
    }
    fn collect(&mut self, wait: Duration) {
        let segments = self.bench.receive(wait).expect("the TAP can be read");
        let now = Instant::now();
        self.segments.extend(
            segments
                .into_iter()
                .map(|(segment, data)| (segment, data, now)),
        );
    }
    fn stream(&mut self) -> &OwnedFd {
        if self.stream.is_none() {
            let listener = self.listener.as_ref().expect("the script has opened");
            let accepted = accept_with(listener, SocketFlags::NONBLOCK);
            self.stream = Some(accepted.expect("a connection is there"));
        }
        self.stream.as_ref().expect("a connection")
    }
}

impl Stack for Kernel {
    fn kind(&self) -> &'static str {
        "kernel"
    }
    fn open(&mut self, listens: bool) {
        let made = self.bench.namespace.run(|| {
            let socket = socket_with(
                AddressFamily::INET,
                SocketType::STREAM,
                SocketFlags::NONBLOCK,
                None,
            )?;
            control(&socket, "cubic")?;
            bind(&socket, &SocketAddrV4::new(KERNEL, PORTS.0))?;
            if listens {
                listen(&socket, 1)?;
            } else {
                match connect(&socket, &SocketAddrV4::new(OURS, PORTS.1)) {
                    Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(socket)
        });
        let made = made.expect("a socket");
        *(if listens {
            &mut self.listener
        } else {
            &mut self.stream
        }) = Some(made);
        self.last = Instant::now();
    }
    fn inject(&mut self, segment: &Segment, data: &[u8]) {
        self.bench
            .send(segment, data)
            .expect("the TAP can be written");
        self.last = Instant::now();
    }
    fn next(&mut self, wait: Duration) -> Option<(Segment, Vec<u8>, Duration)> {
        // The machine is shared: it may be late by this.
        let until = self.last + wait + Duration::from_millis(20);
        loop {
            if let Some((segment, data, at)) = self.segments.pop_front() {
                let after = at.saturating_duration_since(self.last);
                self.last = at.max(self.last);
                return Some((segment, data, after));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.last += wait;
                return None;
            }
            self.collect(left);
        }
    }
    fn write(&mut self, octets: usize) {
        let sent = send(self.stream(), &vec![7; octets], SendFlags::NOSIGNAL);
        assert_eq!(sent, Ok(octets));
        self.last = Instant::now();
    }
    fn read(&mut self, most: usize) -> usize {
        let mut buffer = vec![0; most];
        recv(self.stream(), &mut buffer[..], RecvFlags::empty()).map_or(0, |(count, _)| count)
    }
    fn close(&mut self) {
        shutdown(self.stream(), Shutdown::Write).expect("shut down");
        self.last = Instant::now();
    }
    fn abort(&mut self) {
        sockopt::set_socket_linger(self.stream(), Some(Duration::ZERO)).expect("an option");
        self.stream = None;
        self.last = Instant::now();
    }
}

#[test]
fn the_kernel_answers_as_the_scripts_say() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto/tests/tcp");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("scripts")
        .map(|file| file.expect("a file").path())
        .collect();
    files.sort();
    let mut wrong = Vec::new();
    for file in files {
        let script = std::fs::read_to_string(&file).expect("a script");
        // A machine that is busy may be late: a script that holds once holds.
        let mut told = Ok(());
        for _ in 0..3 {
            let Some(mut kernel) = Kernel::new() else {
                return;
            };
            told = run(&script, &mut kernel);
            if told.is_ok() {
                break;
            }
        }
        if let Err(error) = told {
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            wrong.push(format!("{name}: {error}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
