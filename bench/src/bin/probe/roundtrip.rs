//! Round trips of UDP datagrams, one at a time.

use clap::Args;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Options of the end that answers.
#[derive(Args, Debug)]
pub(crate) struct Echo {
    /// Own address
    local: SocketAddr,
}

/// Options of the end that asks.
#[derive(Args, Debug)]
pub(crate) struct RoundTrip {
    /// Address of the end that answers
    peer: SocketAddr,
    /// For how long
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Octets of a datagram
    #[arg(long, default_value_t = 56)]
    size: usize,
}

/// Answers until it is killed.
pub(crate) fn echo(options: &Echo) -> io::Result<()> {
    let socket = UdpSocket::bind(options.local)?;
    println!("ready");
    let mut buffer = [0; 65_536];
    loop {
        if let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let _ = socket.send_to(&buffer[..length], from);
        }
    }
}

/// Asks again and again, and prints one JSON object. The first tenth of the time is for ARP and for warming up.
pub(crate) fn run(options: &RoundTrip) -> io::Result<()> {
    let any: SocketAddr = match options.peer {
        SocketAddr::V4(_) => ([0; 4], 0).into(),
        SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(options.peer)?;
    socket.set_read_timeout(Some(Duration::from_millis(200)))?;
    let out = vec![0x6a; options.size.clamp(1, 65_507)];
    let mut back = vec![0; 65_536];
    let (mut times, mut lost) = (Vec::new(), 0_u64);
    let time = Duration::from_secs_f64(options.seconds);
    let start = Instant::now();
    while start.elapsed() < time {
        let sent = Instant::now();
        let came = socket.send(&out).and_then(|_| socket.recv(&mut back));
        if start.elapsed() < time / 10 {
            continue;
        }
        match came {
            Ok(_) => times.push(sent.elapsed().as_nanos() as u64),
            Err(_) => lost += 1,
        }
    }
    let more = crate::percentiles(&mut times);
    println!("{{\"trips\": {}, \"lost\": {lost}{more}}}", times.len());
    Ok(())
}
