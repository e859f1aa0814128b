//! Messages of any length over ATM, by ATP. Without arguments: the receiver, which prints its address, and answers each
//! message of each connection with its length. With an address and lengths: the sender of messages of so many octets.
//!
//! ```text
//! aerostat exec sello -- target/debug/examples/atp
//! aerostat exec urku  -- target/debug/examples/atp ADDRESS 1 1000 1000000
//! ```

use aerostat_socket::atp::{Connection, Listener, Options, pattern};
use aerostat_socket::{Error, Service};

fn main() -> Result<(), Error> {
    let service = Service::from_env()?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        None => serve(&service),
        Some((called, lengths)) => send(&service, called, lengths),
    }
}

fn serve(service: &Service) -> Result<(), Error> {
    let listener = Listener::bind(service, "", 16, &Options::adaptive())?;
    println!("listening at {}", listener.address()?);
    loop {
        let connection = listener.accept()?;
        std::thread::spawn(move || match answer(&connection) {
            Ok(messages) => println!("{messages} messages"),
            Err(error) => println!("{error}"),
        });
    }
}

fn answer(connection: &Connection) -> Result<u64, Error> {
    let mut messages = 0;
    while let Some(message) = connection.recv()? {
        messages += 1;
        connection.send(message.len().to_string().as_bytes())?;
    }
    Ok(messages)
}

fn send(service: &Service, called: &str, lengths: &[String]) -> Result<(), Error> {
    let connection = Connection::connect(service, called, &Options::adaptive())?;
    for length in lengths {
        let message: Vec<u8> = pattern(length.parse().unwrap_or(0)).collect();
        // Returns at once; the answers come while the next messages are under way.
        connection.send(&message)?;
    }
    for _ in lengths {
        let answer = connection.recv()?.unwrap_or_default();
        println!("{} octets arrived", String::from_utf8_lossy(&answer));
    }
    let seen = connection.stats();
    println!(
        "{} packets, {} sent again, round trip {:?}",
        seen.counters.packets_sent, seen.counters.packets_repeated, seen.snapshot.round_trip
    );
    connection.close()
}
