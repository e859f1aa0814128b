//! Set-up of calls, as a caller outside a lab sees it.

use aerostat_bench::soak;
use aerostat_wire::AtmAddress;
use clap::Args;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Options of the caller.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Where a switch of the lab listens for ATM over TCP
    to: SocketAddr,
    /// ATM address that is called
    called: AtmAddress,
    /// For how long
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
}

/// Calls, and prints one JSON object.
pub(crate) fn run(options: &Options) -> io::Result<()> {
    let time = Duration::from_secs_f64(options.seconds);
    let (mut times, failed) = soak::one_by_one(options.to, options.called, time)?;
    let more = crate::percentiles(&mut times);
    println!("{{\"calls\": {}, \"failed\": {failed}{more}}}", times.len());
    Ok(())
}
