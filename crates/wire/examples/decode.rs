//! Prints the traffic of a link: reads a pcapng capture of `aerostat run --pcap`, reassembles AAL5 SDUs, decodes them.
//!
//! ```text
//! aerostat run labs/two-hosts.atm.yml --pcap captures            whole SDUs; with --cells, single cells
//! cargo run -p aerostat-wire --example decode -- captures/urku.pcapng
//! ```
//!
//! The same files open in Wireshark. It understands SUNATM (SDUs) and ERF (cells, whole PDUs).

use aerostat_wire::aal5::{Reassembler, decode_pdu};
use aerostat_wire::cell::{CellHeader, HeaderForm};
use aerostat_wire::summary::summary;
use aerostat_wire::{DecodeError, Reader, Vc};
use std::collections::BTreeMap;

const SUNATM: u16 = 123;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
/// Record type of a single cell; other records have a whole AAL5 PDU behind one cell header.
const ERF_CELL: u8 = 3;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: decode FILE.pcapng")?;
    let file = std::fs::read(path)?;
    let mut capture = Capture::default();
    let mut rest = &file[..];
    // A block: type, length, body, length again.
    while let [a, b, c, d, e, f, g, h, ..] = *rest {
        let kind = u32::from_le_bytes([a, b, c, d]);
        let length = u32::from_le_bytes([e, f, g, h]) as usize;
        let body = length.checked_sub(4).and_then(|end| rest.get(8..end));
        let body = body.ok_or("the last block is not complete")?;
        capture.block(kind, body)?;
        rest = &rest[length..];
    }
    Ok(())
}

#[derive(Default)]
struct Capture {
    link_types: Vec<u16>,
    /// The received part of each connection's present PDU, by interface, direction and label.
    reassemblers: BTreeMap<(u32, u8, Vc), Reassembler>,
}

impl Capture {
    fn block(&mut self, kind: u32, body: &[u8]) -> Result<(), DecodeError> {
        let mut body = Reader::new(body);
        match kind {
            INTERFACE => self.link_types.push(body.u16("link type")?.swap_bytes()),
            ENHANCED_PACKET => {
                let mut word = || body.u32("packet header").map(u32::swap_bytes);
                let (interface, high, low) = (word()?, word()?, word()?);
                let (captured, _on_the_wire) = (word()?, word()?);
                let time_ns = u64::from(high) << 32 | u64::from(low);
                let octets = body.take("packet", captured as usize)?;
                self.packet(interface, time_ns, octets)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn packet(&mut self, interface: u32, time_ns: u64, octets: &[u8]) -> Result<(), DecodeError> {
        if self.link_types.get(interface as usize) == Some(&SUNATM) {
            let mut packet = Reader::new(octets);
            let _direction_and_protocol = packet.u8("flags")?;
            let vpi = packet.u8("VPI")?;
            let vc = Vc::new(vpi.into(), packet.u16("VCI")?);
            show(time_ns, vc, packet.take("SDU", packet.remaining())?);
            return Ok(());
        }
        let mut record = Reader::new(octets);
        let erf = record.array::<16>("ERF header")?;
        let (kind, direction) = (erf[8], erf[9] & 3);
        let header = CellHeader::from_word(record.u32("cell header")?, HeaderForm::Nni);
        let payload = record.take("payload", record.remaining())?;
        let done = match (kind, payload.try_into()) {
            (ERF_CELL, Ok(payload)) => {
                let key = (interface, direction, header.vc);
                let of_vc = self.reassemblers.entry(key);
                let of_vc = of_vc.or_insert_with(|| Reassembler::new(0));
                let done = of_vc.push(payload, header.pti, header.clp);
                done.map(|result| result.map(|whole| whole.sdu))
            }
            _ => Some(decode_pdu(payload).map(|(sdu, _)| sdu.to_vec())),
        };
        match done {
            None => {}
            Some(Ok(sdu)) => show(time_ns, header.vc, &sdu),
            Some(Err(error)) => println!("{} {} bad: {error}", seconds(time_ns), header.vc),
        }
        Ok(())
    }
}

fn show(time_ns: u64, vc: Vc, sdu: &[u8]) {
    let summary = summary(vc, sdu);
    let (protocol, text) = (summary.protocol, summary.text);
    println!(
        "{} {:<6} {protocol:<9} {text}",
        seconds(time_ns),
        vc.to_string()
    );
}

fn seconds(time_ns: u64) -> String {
    format!(
        "{}.{:06}",
        time_ns / 1_000_000_000,
        time_ns / 1000 % 1_000_000
    )
}
