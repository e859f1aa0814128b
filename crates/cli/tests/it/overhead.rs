//! `aerostat overhead`: its figures beside those of shapers, and its PDUs as Wireshark reads them.

use crate::{json, run};
use aerostat_testing::command::scratch;
use aerostat_testing::wireshark::tshark;
use aerostat_wire::Vc;
use aerostat_wire::line::Encapsulation;
use aerostat_wire::pcapng::{CapturedSdu, Direction, LinkType, PcapNg};
use serde_json::Value;

/// Rows of `aerostat overhead -o json` with these arguments.
pub(crate) fn rows(args: &[&str]) -> Vec<Value> {
    let json = json(&[&["overhead", "-o", "json"], args].concat());
    json["rows"].as_array().unwrap().clone()
}

/// Source: the keywords of tc-cake(8), which count from the IP header; `stab` counts the Ethernet header itself.
#[test]
fn the_table_has_the_words_of_shapers() {
    let keywords = [
        ("ipoa-vcmux", 8),
        ("ipoa-llcsnap", 16),
        ("bridged-vcmux", 24),
        ("bridged-llcsnap", 32),
        ("pppoa-vcmux", 10),
        ("pppoa-llc", 14),
        ("pppoe-vcmux", 32),
        ("pppoe-llcsnap", 40),
    ];
    let all = rows(&[]);
    for (word, octets) in keywords {
        let row = all.iter().find(|row| row["cake"] == word).unwrap();
        assert_eq!(row["overhead_octets"], octets, "{word}");
        assert_eq!(row["stab_octets"], octets - 14, "{word}");
    }
    assert_eq!(all.len(), Encapsulation::ALL.len());
}

/// The staircase by arithmetic: cells of 48 octets, the trailer of 8 in the last one.
#[test]
fn each_size_has_its_cells_and_the_largest_packet_that_fits_them() {
    for one in Encapsulation::ALL {
        let sizes: Vec<String> = (46..=1492)
            .step_by(7)
            .map(|size| size.to_string())
            .collect();
        let args: Vec<&str> = [one.name()]
            .into_iter()
            .chain(sizes.iter().map(String::as_str))
            .collect();
        for row in rows(&args) {
            let number = |name: &str| row[name].as_u64().unwrap();
            let size = number("packet_octets");
            let beyond = one.overhead() as u64;
            let cells = (size + beyond).div_ceil(48);
            assert_eq!(number("cells"), cells, "{one} {size}");
            assert_eq!(number("line_octets"), 53 * cells);
            assert_eq!(
                number("sdu_octets") + number("padding_octets") + 8,
                48 * cells
            );
            assert_eq!(number("fits_octets"), 48 * cells - beyond);
        }
    }
    // A known line: PPPoE with LLC, and packets of 1492 octets; one octet more than 1448 needs the 32nd cell.
    let known = rows(&["pppoe-llcsnap", "1448", "1449", "1492"]);
    let cells: Vec<_> = known
        .iter()
        .map(|row| row["cells"].as_u64().unwrap())
        .collect();
    assert_eq!(cells, [31, 32, 32]);
}

#[test]
fn mistakes_are_named() {
    for (args, says) in [
        (["overhead", "pppoe", "40"], "expected one of ipoa-vcmux"),
        (["overhead", "pppoa-llc", "19"], "19 is not in 20..=9180"),
        (
            ["overhead", "pppoa-llc", "--rate=fast"],
            "expected a rate such as 35Mbps",
        ),
        (["overhead", "--rate", "1Mbps"], "<ENCAPSULATION>"),
    ] {
        let ran = run(&args);
        ran.ends(2, says);
    }
}

/// An IPv4 packet with a UDP datagram of this payload.
fn packet(payload: usize) -> Vec<u8> {
    let length = (28 + payload) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([0, 1, 0, 0, 64, 17, 0, 0, 10, 1, 0, 1, 10, 1, 0, 2]);
    let words = packet
        .chunks(2)
        .map(|two| u32::from(u16::from_be_bytes([two[0], two[1]])));
    let sum: u32 = words.sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend([0x13, 0x89, 0x13, 0x8a]);
    packet.extend((8 + payload as u16).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(vec![5; payload]);
    packet
}

/// Wireshark reads each PDU with LLC down to UDP, and checks the FCS of those that have it.
#[test]
fn wireshark_reads_the_pdus_of_lines() {
    let named: Vec<Encapsulation> = Encapsulation::ALL
        .into_iter()
        .filter(|one| one.name().contains("llc"))
        .collect();
    let file = scratch().join("overhead.pcapng");
    let mut out = PcapNg::new(std::fs::File::create(&file).unwrap(), "").unwrap();
    let interface = out.interface(LinkType::SunAtm, "line", "").unwrap();
    for (number, one) in named.iter().enumerate() {
        for payload in [4, 100, 1400] {
            out.sdu(&CapturedSdu {
                interface,
                time_ns: number as u64,
                direction: Direction::Sent,
                vc: Vc { vpi: 8, vci: 35 },
                sdu: &one.sdu(&packet(payload)),
                clp: false,
                uu: 0,
                dropped: None,
            })
            .unwrap();
        }
    }
    out.flush().unwrap();
    let fields = [
        "-T",
        "fields",
        "-e",
        "ip.src",
        "-e",
        "udp.length",
        "-e",
        "ip.checksum.status",
        "-e",
        "eth.fcs.status",
    ];
    let check = ["-o", "ip.check_checksum:TRUE", "-o", "eth.check_fcs:TRUE"];
    let Some(lines) = tshark(&file, &[&check[..], &fields].concat()) else {
        return;
    };
    assert_eq!(lines.len(), 3 * named.len());
    for (number, line) in lines.iter().enumerate() {
        let one = named[number / 3];
        let length = [12, 108, 1408][number % 3];
        let fcs = if one.has_fcs() { "1" } else { "" };
        let expected = format!("10.1.0.1\t{length}\t1\t{fcs}");
        assert_eq!(line.trim_end(), expected.trim_end(), "{one}");
    }
    let malformed = tshark(&file, &["-Y", "_ws.malformed"]).unwrap();
    assert_eq!(malformed.len(), 0, "{malformed:?}");
}
