//! `aerostat overhead`: what cells cost a packet, by the encapsulation of a line.

use crate::args::OverheadArgs;
use crate::exit::{Exit, Outcome};
use crate::output::{self, Rows};
use aerostat_wire::aal5;
use aerostat_wire::cell::PAYLOAD_LEN;
use aerostat_wire::line::Encapsulation;
use serde_json::{Value, json};

/// Name and version of the document.
const SCHEMA: &str = "aerostat.overhead.v1";
/// Sizes that are shown without others: an acknowledgement, voice, and those of old and new paths.
const SIZES: [u16; 7] = [40, 64, 200, 576, 1280, 1454, 1492];
/// Octets of a cell on the line.
const CELL: usize = 53;

/// Prints one table.
pub(crate) fn run(args: &OverheadArgs) -> Outcome {
    let rows = match args.encapsulation {
        None => all(),
        Some(one) => {
            let usual = || SIZES.into_iter().chain([one.mtu() as u16]);
            let mut sizes: Vec<u16> = match &args.sizes[..] {
                [] => usual().collect(),
                given => given.to_vec(),
            };
            sizes.dedup();
            of_sizes(one, &sizes, args.rate)
        }
    };
    output::write(args.output.form(), SCHEMA, &[rows])?;
    Ok(Exit::Ok)
}

/// The words of `cake` for eight of the encapsulations; a number for the others.
fn of_cake(one: Encapsulation) -> String {
    let keyword = !one.has_fcs() && !matches!(one, Encapsulation::Lane | Encapsulation::MpoaTagged);
    match keyword {
        true => one.name().to_owned(),
        false => format!("atm overhead {}", one.overhead()),
    }
}

/// Octets of the Ethernet header, which `tc stab … linklayer atm` counts on an Ethernet interface.
const ETHERNET: i64 = 14;

fn all() -> Rows {
    let mut rows = Rows::new(&[
        "encapsulation",
        "overhead_octets",
        "cake",
        "stab_octets",
        "mpu_octets",
        "mtu_octets",
        "cells",
        "efficiency",
    ]);
    for one in Encapsulation::ALL {
        let mtu = one.mtu();
        let cells = cells(one, mtu);
        rows.push(vec![
            one.name().into(),
            one.overhead().into(),
            of_cake(one).into(),
            (one.overhead() as i64 - ETHERNET).into(),
            match one.least() {
                0 => Value::Null,
                least => (least + one.overhead()).into(),
            },
            mtu.into(),
            cells.into(),
            efficiency(mtu, cells),
        ]);
    }
    rows
}

fn of_sizes(one: Encapsulation, sizes: &[u16], rate: Option<u64>) -> Rows {
    let mut columns = vec![
        "packet_octets",
        "sdu_octets",
        "padding_octets",
        "cells",
        "line_octets",
        "efficiency",
        "fits_octets",
    ];
    // A narrow table leaves out its last columns, and these were asked for.
    if rate.is_some() {
        columns.splice(4..4, ["packets_per_second", "ip_kbps"]);
    }
    let mut rows = Rows::new(&columns);
    for size in sizes.iter().map(|size| usize::from(*size)) {
        let sdu = one.sdu(&vec![0; size]).len();
        let cells = cells(one, size);
        let fits = cells * PAYLOAD_LEN - one.overhead();
        let mut row = vec![
            size.into(),
            sdu.into(),
            aal5::pad_for(sdu).into(),
            cells.into(),
            (cells * CELL).into(),
            efficiency(size, cells),
            fits.into(),
        ];
        if let Some(rate) = rate {
            row.splice(4..4, carried(rate, size, cells));
        }
        rows.push(row);
    }
    rows
}

/// Packets per second of a line of `rate` bit/s of cells, and their kbit/s of IP, with two decimals.
fn carried(rate: u64, size: usize, cells: usize) -> [Value; 2] {
    let packets = rate as f64 / (cells * CELL * 8) as f64;
    [packets, packets * (size * 8) as f64 / 1e3].map(|value| json!((value * 100.0).round() / 100.0))
}

fn cells(one: Encapsulation, size: usize) -> usize {
    aal5::cells_for(one.sdu(&vec![0; size]).len())
}

/// Octets of the packet for each octet of the line, with four decimals.
fn efficiency(size: usize, cells: usize) -> Value {
    let share = size as f64 / (cells * CELL) as f64;
    json!((share * 1e4).round() / 1e4)
}
