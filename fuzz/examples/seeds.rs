//! Writes the seeds: recorded and worked PDUs for `decode`, a few short scripts for the machines.
//!
//! `cargo run --example seeds` in this directory; the result is committed. A file of an earlier run that is not written
//! again goes away: it has the name of a written one with other numbers at its end. All other files stay, because they
//! were made by hand or found by a run.

use aerostat_fuzz::decode::DECODERS;
use aerostat_testing::recording::{self, unhex};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Mutex;

const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/wire/tests/vectors");
const SEEDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/seeds");

fn read(name: &str) -> String {
    let path = Path::new(VECTORS).join(name);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[derive(Default)]
struct Seeds(BTreeMap<(String, Vec<u8>), ()>);

impl Seeds {
    fn add(&mut self, decoder: &str, octets: &[u8]) {
        let at = DECODERS
            .iter()
            .position(|(name, _)| *name == decoder)
            .expect("a decoder");
        if !octets.is_empty() && octets.len() <= 400 {
            let seed = [&[at as u8], octets].concat();
            self.0.insert((decoder.to_owned(), seed), ());
        }
    }
    /// A recorded SDU, for all decoders that it may be meant for.
    fn sdu(&mut self, vci: u16, sdu: &[u8]) {
        if vci == 5 {
            self.add("sscop", sdu);
            // The message of an SD begins the PDU.
            if let Some(len) = sdu
                .get(7..9)
                .map(|n| usize::from(n[0]) << 8 | usize::from(n[1]))
                && sdu.starts_with(&[9, 3])
                && let Some(message) = sdu.get(..9 + len)
            {
                self.add("q2931", message);
            }
            return;
        }
        match sdu {
            [0xff, 0, ..] => {
                self.add("control", sdu);
                if let (Some(n), Some(tlvs)) = (sdu.get(70), sdu.get(108..)) {
                    self.add("tlv", &[&[*n], tlvs].concat());
                }
            }
            [0xaa, 0xaa, 3, 0, 0, 0x5e, 0, 3, packet @ ..] => self.add("nhrp", packet),
            [0xaa, 0xaa, 3, ..] => self.add("llc", sdu),
            [_, _, frame @ ..] => {
                self.add("data", sdu);
                if let Some(packet) = frame.get(14..).filter(|p| p.first() == Some(&0x45)) {
                    self.add("ipv4", packet);
                }
            }
            _ => {}
        }
    }
    /// At most `most` of each decoder, the shortest first, into the seeds of `decode`.
    fn write(self, most: usize) {
        let mut lists: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
        for ((name, seed), ()) in self.0 {
            lists.entry(name).or_default().push(seed);
        }
        for (name, mut list) in lists {
            list.sort_by_key(|seed| (seed.len(), seed.clone()));
            // One of each length first: the same message with other numbers teaches nothing.
            list.dedup_by_key(|seed| seed.len());
            for (n, seed) in list.iter().take(most).enumerate() {
                put("decode", &format!("{name}-{n:02}"), seed);
            }
        }
    }
}

/// Files that this run has written: target and name.
static WRITTEN: Mutex<BTreeSet<(String, String)>> = Mutex::new(BTreeSet::new());

fn put(target: &str, name: &str, seed: &[u8]) {
    let folder = Path::new(SEEDS).join(target);
    fs::create_dir_all(&folder).expect("the folder of the seeds");
    fs::write(folder.join(name), seed).expect("a seed");
    let mut written = WRITTEN.lock().expect("no thread panicked");
    written.insert((target.to_owned(), name.to_owned()));
}

/// A name without the numbers at its end: `mixed` of `mixed-3-1`.
fn stem(mut name: &str) -> &str {
    while let Some((rest, number)) = name.rsplit_once('-')
        && number.bytes().all(|digit| digit.is_ascii_digit())
    {
        name = rest;
    }
    name
}

/// Removes what an earlier run has written and this one has not.
fn remove_old() {
    let written = WRITTEN.lock().expect("no thread panicked");
    let stems: BTreeSet<(&str, &str)> =
        written.iter().map(|(t, name)| (&**t, stem(name))).collect();
    let targets: BTreeSet<&str> = stems.iter().map(|(target, _)| *target).collect();
    for target in targets {
        let folder = Path::new(SEEDS).join(target);
        for entry in fs::read_dir(&folder).expect("the folder of the seeds") {
            let name = entry.expect("a seed").file_name();
            let name = name.to_str().expect("names of seeds are ASCII");
            let again = written.contains(&(target.to_owned(), name.to_owned()));
            if !again && stems.contains(&(target, stem(name))) {
                fs::remove_file(folder.join(name)).expect("an old seed");
            }
        }
    }
}

fn decode() {
    let mut seeds = Seeds::default();
    for name in recording::ALL {
        for record in recording::sdus(name) {
            seeds.sdu(record.vci, &record.sdu);
        }
    }
    for block in read("lane/control.hex").split('[').skip(1) {
        let (_, hex) = block.split_once(']').unwrap_or_default();
        seeds.sdu(0, &unhex(hex));
    }
    for name in ["mpoa/worked-sequence.hex", "nhrp/samples.hex"] {
        for line in read(name).lines().filter(|line| !line.starts_with('#')) {
            seeds.add("nhrp", &unhex(line));
        }
    }
    let header = [0, 0, 2, 0, 0];
    let cell = [
        &header[..4],
        &[aerostat_wire::cell::hec([0, 0, 2, 0])],
        &[0x6a; 48],
    ]
    .concat();
    seeds.add("cell", &cell);
    seeds.add(
        "oam",
        &[&[0x18, 1, 0, 0, 0, 7][..], &[0xff; 16], &[0x6a; 24]].concat(),
    );
    for first in [0x10, 0x11, 0x14] {
        seeds.add("oam", &[first, 0x6a, 0x6a]);
    }
    let pdu = aerostat_wire::aal5::encode_pdu(&[7; 90], 1);
    let mut cells = vec![4, 0];
    for (n, payload) in pdu.chunks(48).enumerate() {
        cells.push(u8::from(n == pdu.len() / 48 - 1));
        cells.extend(payload);
    }
    seeds.add("cells", &cells);
    // A limit; SDUs of three cells and of one; one cell lost, one damaged, one doubled.
    seeds.add(
        "segments",
        &[
            0, 200, 99, 0, 0, 0, 9, 0, 120, 0, 13, 0, 120, 0, 15, 3, 3, 0, 20, 14,
        ],
    );
    for octets in [
        &[0x5a, 0x80, 1, 3, 2][..],
        &[0x58, 0x80, 0x05, 0x8c, 5, 0xec],
        &[0x59, 0x80, 0x84, 0xb0],
    ] {
        seeds.add("element", octets);
    }
    pseudowires(&mut seeds);
    for text in [
        "ubr:sdu=9180",
        "cbr:pcr=353207,sdu=1516",
        "ubr,aal5:sdu=1516,pcr=max",
        "cbr,aal5:tx:pcr=2kbps,rx:none",
        "47.0005.80.ffde00.0000.0000.0101.020000000031.00",
        "02:00:00:00:00:31",
    ] {
        seeds.add("text", text.as_bytes());
    }
    seeds.write(16);
}

/// Packets of pseudowires in each mode, behind labels and behind headers of L2TPv3; PDUs of ATP; tagged frames.
fn pseudowires(seeds: &mut Seeds) {
    let cell = [&[0, 0, 6, 0x42][..], &[0x6a; 48]].concat();
    let short = [&[5, 9, 0, 7][..], b"Hello"].concat();
    let cells = [&[0, 0, 0, 1][..], &cell, &cell].concat();
    let admin = [&[8, 56, 0, 1][..], &cell].concat();
    for packet in [short, cells, admin] {
        seeds.add("pseudowire", &packet);
        seeds.add(
            "mpls",
            &[&[0, 1, 0, 255, 0, 0x3e, 0x81, 2][..], &packet].concat(),
        );
    }
    // The choice of carrier, sublayer and cookie; the header; a cell.
    for header in [
        &[0, 0xde, 0xad, 0xbe, 0xef][..],
        &[
            0x25, 0, 3, 0, 0, 0, 0, 0, 1, 0x55, 0x55, 0x55, 0x55, 0x48, 0, 0, 0,
        ],
    ] {
        seeds.add("l2tp", &[header, &cell].concat());
    }
    for pdu in [&[0x80, 0, 0, 5, 7][..], &[0x40, 0, 0, 5]] {
        seeds.add("atp", pdu);
    }
    // A tag, a priority tag in front of another tag, and a reserved VID.
    for rest in [
        &[0x81, 0, 0xb0, 0x14, 8, 0, 7][..],
        &[0x81, 0, 0x60, 0, 0x81, 0, 0, 0x14, 8, 0],
        &[0x81, 0, 0x0f, 0xff, 8, 0],
    ] {
        seeds.add("vlan", &[&[0xff; 12][..], rest].concat());
    }
}

/// Scripts that bring a machine to where things get interesting; see the targets for what the octets mean.
fn machines() {
    for mode in 0..8 {
        let head = [mode, 20, 11, 4, 1, 2, 3, 4];
        let calm = [
            0x00, 0x0b, 0x03, 9, 0x83, 7, 0x0c, 100, 0x0e, 0, 0x02, 1, 0x0d, 20,
        ];
        let rough = [
            0x00, 0x0b, 9, 90, 0x03, 19, 0x83, 15, 0x0d, 30, 0x82, 3, 0x03, 9, 0x0e, 3, 10, 0x0d,
            90,
        ];
        put(
            "machine_sscop",
            &format!("calm-{mode}"),
            &[&head[..], &calm].concat(),
        );
        put(
            "machine_sscop",
            &format!("rough-{mode}"),
            &[&head[..], &rough].concat(),
        );
    }
    for scenario in [0, 1, 3, 16] {
        for version in 0..3 {
            let mut seed = vec![scenario, version];
            for n in 0..120_u8 {
                seed.push(n.wrapping_mul(73).wrapping_add(scenario * 5 + version));
            }
            put("machine_uni", &format!("mixed-{scenario}-{version}"), &seed);
        }
    }
    for mode in 0..4_u8 {
        let mut seed = vec![mode];
        for n in 0..200_u8 {
            seed.push(n.wrapping_mul(41).wrapping_add(mode * 9));
        }
        put("machine_lane", &format!("mixed-{mode}"), &seed);
        put("machine_mpoa", &format!("mixed-{mode}"), &seed);
        put("machine_nhrp", &format!("mixed-{mode}"), &seed);
        put("split", &format!("mixed-{mode}"), &seed);
        // The scripts of the two halves of ILMI at either side.
        if mode < 2 {
            seed[0] = 0x40 | mode << 7;
            put("split", &format!("ilmi-{mode}"), &seed);
        }
        let calls = [
            mode, 5, 3, 2, 1, 80, 6, 4, 1, 2, 40, 15, 0, 200, 14, 0, 9, 5, 3, 1, 2, 90, 14, 0, 60,
        ];
        put("machine_lane", &format!("traffic-{mode}"), &calls);
    }
    transport();
}

/// Messages both ways over ATP, calm, with loss and disorder, and with forged PDUs.
fn transport() {
    for mode in 0..8_u8 {
        // The MTU less 5, the window less 1, the random number; then steps.
        let head = [mode, 99, 9, 1, 2, 3, 4];
        let calm = [0, 200, 0x81, 90, 3, 12, 10, 5, 15, 10, 200, 12, 0, 11, 250];
        let rough = [
            7, 0, 60, 7, 1, 20, 7, 2, 30, 0, 255, 0x80, 255, 3, 19, 11, 200, 9, 0, 0, 255, 11, 20,
            9, 1, 14, 0, 0, 250, 11, 9, 0x8c, 0, 11, 90,
        ];
        let forged = [
            0, 255, 10, 1, 4, 0, 130, 0, 0, 4, 0, 131, 2, 0, 4, 2, 90, 6, 5, 1, 2, 3, 4, 5, 0,
            0x84, 3, 140, 7, 2, 8, 9, 0, 10, 90, 13, 0, 0x80, 99, 10, 200,
        ];
        for (name, steps) in [("calm", &calm[..]), ("rough", &rough), ("forged", &forged)] {
            let seed = [&head[..], steps].concat();
            put("machine_atp", &format!("{name}-{mode}"), &seed);
        }
    }
}

fn main() {
    decode();
    machines();
    remove_old();
}
