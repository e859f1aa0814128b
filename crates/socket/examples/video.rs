//! A source of video over ATM: frames of 1 to 8 kB, 25 a second, in a contract of constant rate. Without arguments: the
//! receiver. With an address (or the name of a host), and a number of frames: the source.
//!
//! ```text
//! aerostat exec sello -- target/debug/examples/video
//! aerostat exec urku  -- target/debug/examples/video sello/e0 250
//! ```

use aerostat_socket::{Error, REJECTED, Service};
use std::thread::sleep;
use std::time::{Duration, Instant};

const FRAME: Duration = Duration::from_millis(40);
const LARGEST: usize = 8192;
/// The largest frame has 171 cells, and 25 of them a second are 4275 cells; the mean is about half of that.
const CONTRACT: &str = "cbr:sdu=8192,tx:max_pcr=4500,rx:none";

fn main() -> Result<(), Error> {
    let service = Service::from_env()?;
    let mut arguments = std::env::args().skip(1);
    match (arguments.next(), arguments.next()) {
        (None, _) => receive(&service),
        (Some(called), count) => {
            let count = count.and_then(|count| count.parse().ok()).unwrap_or(250);
            send(&service, &called, count)
        }
    }
}

fn receive(service: &Service) -> Result<(), Error> {
    let listener = service.listen("")?;
    println!("listening at {}", listener.address()?);
    let socket = loop {
        let offer = listener.offer()?;
        // A stream needs its rate: what is offered without one is refused.
        if offer.qos().starts_with("cbr") {
            break offer.accept()?;
        }
        offer.refuse(REJECTED)?;
    };
    let mut pdu = vec![0; LARGEST];
    let (mut frames, mut lost, mut next, mut latest) = (0_u32, 0, 0, Duration::ZERO);
    let mut last: Option<Instant> = None;
    while let octets @ 8.. = socket.recv(&mut pdu)? {
        let number = u32::from_be_bytes(pdu[..4].try_into().expect("four octets"));
        let length = u32::from_be_bytes(pdu[4..8].try_into().expect("four octets"));
        assert_eq!(length as usize, octets, "a frame is one PDU");
        lost += number - next;
        next = number + 1;
        frames += 1;
        let now = Instant::now();
        let gap = last.map_or(Duration::ZERO, |last| now - last);
        latest = latest.max(gap.saturating_sub(FRAME));
        last = Some(now);
    }
    println!(
        "{frames} frames, {lost} lost, at most {} ms late",
        latest.as_millis()
    );
    Ok(())
}

fn send(service: &Service, called: &str, count: u32) -> Result<(), Error> {
    let socket = service.call(called, "", CONTRACT)?;
    let begin = Instant::now();
    for number in 0..count {
        // Sizes that change as those of pictures do, and are the same in each run.
        let length = 1024 + (number as usize * 2_654_435_761 % (LARGEST - 1024));
        let mut frame = vec![0; length];
        frame[..4].copy_from_slice(&number.to_be_bytes());
        frame[4..8].copy_from_slice(&(length as u32).to_be_bytes());
        socket.send(&frame)?;
        sleep((begin + FRAME * (number + 1)).saturating_duration_since(Instant::now()));
    }
    println!("{count} frames sent");
    Ok(())
}
