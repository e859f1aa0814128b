//! Packets of `SOCK_SEQPACKET` descriptors: what sends them, what counts them, and the least that a process between the
//! two can do. The descriptors are inherited, so that the same sender and the same receiver stand at both ends of a lab
//! and of the relay.

use crate::sys;
use clap::{Args, Subcommand};
use std::io;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

/// Largest packet: an SDU of AAL5.
const LARGEST: usize = 65_535;
/// The clock is read once for this many packets.
const BLOCK: u64 = 32;

/// Options of the work with packets.
#[derive(Args, Debug)]
pub(crate) struct Options {
    #[command(subcommand)]
    role: Role,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// Write packets until the other end closes
    Send {
        /// An inherited descriptor
        fd: RawFd,
        /// Octets of each packet
        #[arg(long)]
        octets: usize,
    },
    /// Count packets, then end
    Receive {
        /// An inherited descriptor
        fd: RawFd,
        /// How long packets are counted, from the first one that comes after the settling time
        #[arg(long)]
        seconds: f64,
        /// How long packets are read without being counted
        #[arg(long, default_value_t = 0.2)]
        settle: f64,
    },
    /// Read packets from a descriptor and write them to another one
    Relay {
        /// An inherited descriptor to read from
        from: RawFd,
        /// An inherited descriptor to write to
        to: RawFd,
    },
}

/// Sends, counts or relays.
pub(crate) fn run(options: &Options) -> io::Result<()> {
    match options.role {
        Role::Send { fd, octets } => send(fd, octets),
        Role::Receive {
            fd,
            seconds,
            settle,
        } => receive(
            fd,
            Duration::from_secs_f64(settle),
            Duration::from_secs_f64(seconds),
        ),
        Role::Relay { from, to } => relay(from, to),
    }
}

fn send(fd: RawFd, octets: usize) -> io::Result<()> {
    let socket = sys::inherited(fd)?;
    let packet = vec![0x5a; octets.min(LARGEST)];
    let mut sent = 0_u64;
    while sys::write(&socket, &packet).is_ok() {
        sent += 1;
    }
    println!("{{\"sent\": {sent}}}");
    Ok(())
}

fn receive(fd: RawFd, settle: Duration, during: Duration) -> io::Result<()> {
    let socket = sys::inherited(fd)?;
    let mut buffer = vec![0; LARGEST];
    let begun = Instant::now();
    while begun.elapsed() < settle {
        if sys::read(&socket, &mut buffer)? == 0 {
            return Err(io::Error::other("the other end closed while it settled"));
        }
    }
    let (start, mut packets, mut octets) = (Instant::now(), 0_u64, 0_u64);
    while packets % BLOCK != 0 || start.elapsed() < during {
        match sys::read(&socket, &mut buffer)? {
            0 => break,
            length => octets += length as u64,
        }
        packets += 1;
    }
    let seconds = start.elapsed().as_secs_f64();
    let rate = packets as f64 / seconds;
    println!(
        "{{\"packets\": {packets}, \"octets\": {octets}, \"seconds\": {seconds:.6}, \"packets_per_second\": {rate:.1}}}"
    );
    Ok(())
}

fn relay(from: RawFd, to: RawFd) -> io::Result<()> {
    let (from, to) = (sys::inherited(from)?, sys::inherited(to)?);
    let mut buffer = vec![0; LARGEST];
    loop {
        match sys::read(&from, &mut buffer) {
            Ok(0) | Err(_) => return Ok(()),
            Ok(length) if sys::write(&to, &buffer[..length]).is_err() => return Ok(()),
            Ok(_) => {}
        }
    }
}
