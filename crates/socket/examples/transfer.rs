//! A file over ATM. With the name of a file: the receiver, which writes it and says whether it is whole. With an
//! address (or the name of a host), a file, and a rate in cells a second: the sender.
//!
//! ATM does not repeat what is lost, and does not wait for a slow reader: the sender has a rate, and its last PDU tells
//! how much it has sent.
//!
//! ```text
//! aerostat exec sello -- target/debug/examples/transfer copy
//! aerostat exec urku  -- target/debug/examples/transfer sello/e0 original 50000
//! ```

use aerostat_socket::{Error, Service};
use std::fs::File;
use std::io::{Read as _, Write as _};

const SDU: usize = 8192;
/// The first octet of a PDU: a part of the file follows, or the number of its octets.
const PART: u8 = 0;
const END: u8 = 1;

fn main() -> Result<(), Error> {
    let service = Service::from_env()?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [to] => receive(&service, to),
        [called, from, rate] => send(&service, called, from, rate),
        _ => {
            eprintln!("usage: transfer FILE | transfer ADDRESS FILE CELLS_PER_SECOND");
            std::process::exit(2);
        }
    }
}

fn receive(service: &Service, to: &str) -> Result<(), Error> {
    let mut file = File::create(to)?;
    let listener = service.listen("")?;
    println!("listening at {}", listener.address()?);
    let socket = listener.accept()?;
    let mut pdu = vec![0; SDU];
    let mut octets = 0;
    while let length @ 1.. = socket.recv(&mut pdu)? {
        match pdu[..length].split_first() {
            Some((&PART, part)) => {
                file.write_all(part)?;
                octets += part.len() as u64;
            }
            Some((&END, sent)) => {
                let sent = sent.try_into().map(u64::from_be_bytes).unwrap_or_default();
                let whole = if sent == octets { "whole" } else { "not whole" };
                println!("{octets} of {sent} octets: {whole}");
                return Ok(());
            }
            _ => eprintln!("a PDU of another program"),
        }
    }
    println!("{octets} octets, and no end: {}", socket.status()?.why);
    Ok(())
}

fn send(service: &Service, called: &str, from: &str, rate: &str) -> Result<(), Error> {
    let mut file = File::open(from)?;
    let socket = service.call(
        called,
        "",
        &format!("cbr:sdu={SDU},tx:max_pcr={rate},rx:none"),
    )?;
    let mut pdu = vec![PART; SDU];
    let mut octets = 0_u64;
    loop {
        let length = file.read(&mut pdu[1..])?;
        if length == 0 {
            break;
        }
        octets += length as u64;
        socket.send(&pdu[..=length])?;
    }
    let end = [&[END][..], &octets.to_be_bytes()].concat();
    socket.send(&end)?;
    println!("{octets} octets sent");
    Ok(())
}
