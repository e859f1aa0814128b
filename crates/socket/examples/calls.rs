//! Measures calls between programs: `calls serve` accepts every call; `calls ADDRESS COUNT [RATE|hold]` makes calls one
//! after the other and releases each at once, as fast as it can or at a rate in calls/s, or keeps all of them open
//! until its input ends.
//!
//! ```text
//! AEROSTAT_ATM=.../sello.sock calls serve
//! AEROSTAT_ATM=.../urku.sock  calls sello 10000
//! AEROSTAT_ATM=.../urku.sock  calls sello 60000 1000
//! ```

use aerostat_socket::{Error, Service, Socket};
use std::collections::VecDeque;
use std::io::{Read as _, stdin};
use std::thread::sleep;
use std::time::{Duration, Instant};

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let service = Service::from_env()?;
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve"] => serve(&service),
        [called, count] => call(&service, called, count, Duration::ZERO, false),
        [called, count, "hold"] => call(&service, called, count, Duration::ZERO, true),
        [called, count, rate] => {
            let rate: u32 = rate.parse().unwrap_or(1).max(1);
            call(
                &service,
                called,
                count,
                Duration::from_secs(1) / rate,
                false,
            )
        }
        _ => Err(Error::from(std::io::Error::other(
            "usage: calls serve | calls ADDRESS COUNT [RATE|hold]",
        ))),
    }
}

fn serve(service: &Service) -> Result<(), Error> {
    let listener = service.listen("")?;
    println!("{}", listener.address()?);
    let mut open: VecDeque<Socket> = VecDeque::new();
    let mut octet = [0; 1];
    loop {
        open.push_back(listener.accept()?);
        // Calls that have ended are closed, from the oldest on.
        while let Some(first) = open.front() {
            first.set_nonblocking(true)?;
            match first.recv(&mut octet) {
                Ok(0) => drop(open.pop_front()),
                _ => break,
            }
        }
    }
}

fn call(
    service: &Service,
    called: &str,
    count: &str,
    every: Duration,
    hold: bool,
) -> Result<(), Error> {
    let count: usize = count.parse().unwrap_or(1);
    let (mut setups, mut releases, mut open) = (Vec::new(), Vec::new(), Vec::new());
    let begun = Instant::now();
    for number in 0..count as u32 {
        sleep((every * number).saturating_sub(begun.elapsed()));
        let start = Instant::now();
        let socket = service.call(called, "", "ubr:sdu=9180")?;
        setups.push(start.elapsed());
        if hold {
            open.push(socket);
            continue;
        }
        let start = Instant::now();
        socket.release(16)?;
        // The end of file says that the call has ended here.
        socket.recv(&mut [0])?;
        releases.push(start.elapsed());
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{count} calls in {seconds:.3} s, {:.0} calls/s",
        count as f64 / seconds
    );
    println!("set-up: {}", percentiles(setups));
    println!("release: {}", percentiles(releases));
    if hold {
        println!("{} calls are open", open.len());
        stdin().read_to_end(&mut Vec::new())?;
    }
    Ok(())
}

fn percentiles(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |part: usize| {
        times
            .get(times.len() * part / 100)
            .map_or(0, Duration::as_micros)
    };
    format!("p50 {} us, p99 {} us", at(50), at(99))
}
