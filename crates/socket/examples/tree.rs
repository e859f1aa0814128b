//! A multicast tree over ATM. Without arguments: a leaf, which shows its address and what it receives from one root.
//! With addresses (or names of hosts): the root, which sends lines of its input to all of them.
//!
//! ```text
//! aerostat exec sello -- target/debug/examples/tree
//! aerostat exec basso -- target/debug/examples/tree
//! aerostat exec urku  -- target/debug/examples/tree sello/e0 basso/e0
//! ```

use aerostat_socket::{Call, Error, Service};
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{BufRead as _, stdin};
use std::os::fd::AsFd as _;
use std::time::Duration;

const SDU: usize = 1000;

fn main() -> Result<(), Error> {
    let service = Service::from_env()?;
    let leaves: Vec<String> = std::env::args().skip(1).collect();
    match leaves.split_first() {
        None => leaf(&service),
        Some((first, others)) => root(&service, first, others),
    }
}

fn leaf(service: &Service) -> Result<(), Error> {
    let listener = service.listen("")?;
    println!("listening at {}", listener.address()?);
    let offer = listener.offer()?;
    println!("call from {}", offer.caller());
    let socket = offer.accept()?;
    let mut pdu = [0; SDU];
    while let octets @ 1.. = socket.recv(&mut pdu)? {
        println!("{}", String::from_utf8_lossy(&pdu[..octets]));
    }
    println!("{}", socket.status()?.why);
    Ok(())
}

fn root(service: &Service, first: &str, others: &[String]) -> Result<(), Error> {
    let socket = service.socket()?;
    let qos = format!("ubr:sdu={SDU}");
    socket.make(&Call {
        qos: &qos,
        multipoint: true,
        reports: true,
        ..Call::to(first)
    })?;
    for called in others {
        match socket.add_party(called) {
            Ok(party) => println!("{called} is leaf {party}"),
            Err(error) => eprintln!("{called}: {error}"),
        }
    }
    for line in stdin().lock().lines() {
        let line = line?;
        let octets = line.as_bytes();
        socket.send(octets.get(..SDU).unwrap_or(octets))?;
        // Leaves that have left meanwhile.
        while readable(&socket) {
            match socket.left()? {
                Some(left) => println!("leaf {} has left (cause {})", left.party, left.cause),
                None => {
                    println!("all leaves have left");
                    return Ok(());
                }
            }
        }
    }
    // The release of a call may overtake cells that wait in a switch, and leaves cannot tell what they have got.
    std::thread::sleep(Duration::from_millis(200));
    Ok(())
}

fn readable(socket: &aerostat_socket::Socket) -> bool {
    let mut asked = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)];
    matches!(
        poll(&mut asked, Some(&rustix::event::Timespec::default())),
        Ok(1)
    )
}
