//! Recordings of cells: every cell on a link, in virtual time; OAM cells, checked by tshark, in real time.

use crate::captures::LAB;
use crate::live::{Runtime, signal, wait_for, wait_for_end};
use crate::wireshark::tshark;
use crate::{json, lab_file, run};
use aerostat_node::atm::fabric::loopback_request;
use aerostat_wire::Vc;
use aerostat_wire::cell::{Cell, HeaderForm};
use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// Packets of a pcapng file by interface number, and by length. Source: draft-ietf-opsawg-pcapng.
fn packets(file: &Path) -> (BTreeMap<u32, u64>, BTreeMap<u32, u64>) {
    let file = std::fs::read(file).unwrap();
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let (mut by_interface, mut by_length) = (BTreeMap::new(), BTreeMap::new());
    let mut at = 0;
    while at < file.len() {
        if word(at) == 6 {
            *by_interface.entry(word(at + 8)).or_default() += 1;
            *by_length.entry(word(at + 20)).or_default() += 1;
        }
        at += word(at + 4) as usize;
    }
    (by_interface, by_length)
}

#[test]
fn a_run_records_every_cell_that_its_links_counted() {
    let directory = std::env::temp_dir().join(format!("aerostat-cells-{}", std::process::id()));
    let lab = lab_file("cells.atm.yml", LAB);
    let into = directory.to_str().unwrap();
    let results = json(&["run", "-q", &lab, "--cells", "--pcap", into, "-o", "json"]);
    let sent = |link: &str| {
        let rows = results["links"].as_array().unwrap().iter();
        let rows = rows.filter(|row| row["link"] == link);
        rows.map(|row| row["cells_sent"].as_u64().unwrap())
            .sum::<u64>()
    };
    // The links of the lab file: each cell once. A record has 16 octets of ERF, 4 of the header and 48 of payload.
    let recorded = directory.join("cells.pcapng");
    let (by_interface, lengths) = packets(&recorded);
    assert_eq!(
        by_interface,
        BTreeMap::from([(0, sent("h1-s")), (1, sent("h2-s"))])
    );
    assert_eq!(lengths.into_keys().collect::<Vec<_>>(), [68]);
    // A node's file has the cells that it sends and receives.
    let (of_host, _) = packets(&directory.join("h1.pcapng"));
    assert_eq!(of_host, BTreeMap::from([(0, sent("h1-s"))]));
    if let Some(lines) = tshark(&recorded, &["-T", "fields", "-e", "atm.vci"]) {
        assert_eq!(lines.len() as u64, sent("h1-s") + sent("h2-s"));
        assert!(lines.iter().any(|vci| vci == "5"), "signalling");
    }
    std::fs::remove_dir_all(&directory).unwrap();
    let text = LAB.replace("capture: [h1-s, h2-s]\n", "");
    let nothing = run(&["run", "-q", &lab_file("no-cells.atm.yml", &text), "--cells"]);
    nothing.ends(2, "no link is recorded");
}

const OUTSIDE: &str = "
switches: { s: {} }
links: [[s, { name: peer, rate: oc3, udp: { local: 'LAB', peer: 'PEER' } }]]
clip: { w: { subnet: 10.0.0.0/24, server: b } }
hosts: { b: { on: s, elan: w, ip: 10.0.0.2, sockets: [{ name: sink, vc: 0.100, listen: sink }] } }
pvcs: [{ from: peer, vc: 0.100, to: b }]
";

#[test]
fn loopback_cells_of_a_peer_and_their_answers_stand_in_a_capture_of_cells() {
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let free = UdpSocket::bind("127.0.0.1:0").unwrap();
    let there = free.local_addr().unwrap();
    drop(free);
    let text = OUTSIDE.replace("LAB", &there.to_string());
    let text = text.replace("PEER", &peer.local_addr().unwrap().to_string());
    let runtime = Runtime::new("oam");
    runtime.ok(&[
        "up",
        "-d",
        "-q",
        "--embedded",
        &lab_file("oam.atm.yml", &text),
    ]);
    let file = runtime.directory.join("oam.pcapng");
    let mut capture = runtime
        .command(&["capture", "--cells", "-w", file.to_str().unwrap()])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("the capture", || file.exists());
    // To the far end of the connection, and to the end of its first segment, which is the switch. Datagrams may be
    // lost.
    let mut answers = 0;
    for (segment, tag) in [(false, 0x11), (true, 0x22)] {
        let [request] = &loopback_request(Vc::new(0, 100), segment, tag).to_cells()[..] else {
            panic!("a loopback cell is one cell");
        };
        let mut octets = [0; 4096];
        for _ in 0..20 {
            peer.send_to(&request.encode(HeaderForm::Nni), there)
                .unwrap();
            let answered = peer.recv(&mut octets).is_ok_and(|length| {
                let cells = octets[..length].chunks_exact(53);
                let cells = cells.filter_map(|cell| {
                    Cell::decode(cell.try_into().unwrap(), HeaderForm::Nni).ok()
                });
                cells
                    .into_iter()
                    .any(|cell| cell.header.pti == request.header.pti)
            });
            if answered {
                answers += 1;
                break;
            }
        }
    }
    assert_eq!(answers, 2, "both ends answer");
    signal(&capture.id().to_string(), "INT");
    wait_for_end(&mut capture);
    let columns = [
        "-e",
        "atm.vci",
        "-e",
        "atm.aal_oamcell.type",
        "-e",
        "atm.aal_oamcell.type.fm",
    ];
    let words = [
        &["-Y", "atm.aal_oamcell.type", "-T", "fields"][..],
        &columns,
    ]
    .concat();
    if let Some(lines) = tshark(&file, &words) {
        // Requests and answers: four between peer and switch, of which two go on to the host and back. Fault
        // management, loopback.
        assert!(lines.len() >= 6, "{lines:#?}");
        assert!(lines.iter().all(|line| line == "100\t1\t8"), "{lines:#?}");
        let bad = tshark(
            &file,
            &["-Y", "_ws.malformed || _ws.expert.severity >= 0x800000"],
        );
        assert_eq!(bad, Some(Vec::new()));
    }
    runtime.down_with_warnings();
}
