//! An echo over ATM. Without arguments: the server, which shows its address and vets its callers. With an address (or
//! the name of a host): the client, which sends lines of its input.
//!
//! ```text
//! aerostat exec sello -- target/debug/examples/echo
//! aerostat exec urku  -- target/debug/examples/echo sello/e1
//! ```

use aerostat_socket::{Listener, REJECTED, Service};
use std::io::{BufRead as _, stdin};

fn main() -> Result<(), aerostat_socket::Error> {
    let service = Service::from_env()?;
    match std::env::args().nth(1) {
        None => serve(&service),
        Some(called) => call(&service, &called),
    }
}

fn serve(service: &Service) -> Result<(), aerostat_socket::Error> {
    let listener: Listener = service.listen("")?;
    println!("listening at {}", listener.address()?);
    loop {
        let offer = listener.offer()?;
        // This server takes best effort only.
        if !offer.qos().starts_with("ubr") {
            println!("refused {} from {}", offer.qos(), offer.caller());
            offer.refuse(REJECTED)?;
            continue;
        }
        println!("call from {}", offer.caller());
        let Ok(socket) = offer.accept() else {
            continue;
        };
        std::thread::spawn(move || {
            let mut pdu = vec![0; 65_535];
            while let Ok(octets @ 1..) = socket.recv(&mut pdu) {
                if socket.send(&pdu[..octets]).is_err() {
                    break;
                }
            }
        });
    }
}

fn call(service: &Service, called: &str) -> Result<(), aerostat_socket::Error> {
    let socket = service.call(called, "", "ubr:sdu=9180")?;
    let mut pdu = vec![0; 9180];
    for line in stdin().lock().lines() {
        let line = line?;
        if line.is_empty() {
            continue;
        }
        socket.send(line.as_bytes())?;
        let octets = socket.recv(&mut pdu)?;
        if octets == 0 {
            println!("{}", socket.status()?.why);
            break;
        }
        println!("{}", String::from_utf8_lossy(&pdu[..octets]));
    }
    Ok(())
}
