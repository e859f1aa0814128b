//! A station with a codec of its own (`interop/pseudowire`) at the far end of pseudowires, over MPLS and over L2TPv3,
//! and Wireshark's view of the frames of MPLS.
//!
//! No router and no kernel was available as another end: the station is written from the RFCs. Frames of MPLS, and
//! L2TPv3 over IP, need raw sockets and a cable between two network namespaces; where these cannot be made, the tests
//! are skipped with a message.

use crate::joined::{Namespace, WEST_MAC, cable};
use crate::live::{Runtime, has};
use crate::root;
use crate::wireshark::tshark;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Output};

const LAB: &str = "interop/labs/pseudowire.atm.yml";

/// The station, with these arguments.
fn station(arguments: &[&str]) -> Command {
    let mut station = Command::new("python3");
    station.arg(root().join("interop/pseudowire"));
    station.args(arguments);
    station
}

/// The station's output; each of its requests must have been answered, and nothing may have been against an RFC.
fn all_answered(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{errors}");
    for fault in [
        "bad_stack",
        "bad_word",
        "bad_length",
        "bad_sequence",
        "bad_cookie",
        "bad_pdu",
        "bad_hec",
    ] {
        assert!(said.contains(&format!("{fault}=0")), "{fault}: {said}");
    }
    said
}

/// Dissections in which the last label of a frame stands for this pseudowire.
fn read_as(file: &Path, label: u32, kind: &str, arguments: &[&str]) -> Option<Vec<String>> {
    let decode = format!("mpls.label=={label},{kind}");
    let filter = format!("mpls.label == {label}");
    let both = ["-d", &decode, "-Y", &filter, "-T", "fields"];
    tshark(file, &[&both[..], arguments].concat())
}

/// A field of each packet, several values of a packet after one another.
fn values(lines: &[String]) -> Vec<&str> {
    let values = lines.iter().flat_map(|line| line.split(','));
    values.filter(|value| !value.is_empty()).collect()
}

#[test]
fn a_station_behind_pseudowires_over_mpls_reaches_hosts_and_wireshark_reads_its_frames() {
    if !has("python3") {
        return;
    }
    let (Some(west), Some(east)) = (Namespace::new(75), Namespace::new(76)) else {
        return;
    };
    if !cable(&west, &east) {
        return;
    }
    let lab = Runtime::new("pseudowire");
    let up = |more: &[&str]| {
        let common = ["up", "-d", "-q", "--embedded", LAB];
        let interface = ["--set", "links.0.1.mpls.interface=cells"];
        let command = lab.command(&[&common[..], &interface, more].concat());
        let output = west.command(&command).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{errors}");
    };
    let end = ["--mpls", "cells", "--mac", WEST_MAC];
    let ping = |vc: &str, ip: &str, to: &str, labels: [&str; 2], more: &[&str]| {
        let of_wire = ["--out", labels[0], "--in", labels[1], "--vc", vc];
        let of_ip = ["--ip", ip, "--ping", to];
        let all = [&end[..], &of_wire, &of_ip, more].concat();
        all_answered(&east.command(&station(&all)).output().unwrap())
    };
    up(&[]);
    let captures = ["sdus", "cells", "bare"].map(|name| lab.directory.join(format!("{name}.pcap")));
    let [sdus, cells, bare] = &captures;
    // 1452 octets of ICMP data fill the MTU of 1480.
    let sizes = [
        "--sequence",
        "--size",
        "0,56,1452",
        "--count",
        "6",
        "--pcap",
    ];
    let more = [&["--mode", "aal5"], &sizes[..], &[sdus.to_str().unwrap()]].concat();
    let said = ping("1.100", "10.20.0.9", "10.20.0.10", ["2001", "1001"], &more);
    assert!(said.contains("the other end is 10.20.0.10"), "{said}");
    let more = [&sizes[..], &[cells.to_str().unwrap()]].concat();
    ping("1.101", "10.21.0.9", "10.21.0.10", ["2000", "1000"], &more);
    lab.ok(&["down"]);
    // Without a control word.
    let set = ["word=false", "sequence=false"].map(|key| format!("links.0.1.mpls.{key}"));
    up(&["--set", &set[0], "--set", &set[1]]);
    let more = ["--mode", "bare", "--pcap", bare.to_str().unwrap()];
    ping("1.101", "10.21.0.9", "10.21.0.10", ["2000", "1000"], &more);
    lab.ok(&["down"]);
    for label in [1001, 2001] {
        let kind = "mplspwatmaal5sdu";
        let fields = ["-e", "frame.protocols", "-e", "pw.type.atm.aal5sdu"];
        let Some(lines) = read_as(sdus, label, kind, &fields) else {
            return;
        };
        let pings = lines.iter().filter(|line| line.contains(":ip:icmp"));
        assert!(pings.count() >= 5, "{lines:#?}");
    }
    for (file, label, kind, count) in [
        (cells, 1000, "mplspwatmn1cw", "pw.atm.n1_cw.cells"),
        (bare, 1000, "mplspwatmn1nocw", "pw.atm.n1_nocw.cells"),
    ] {
        let of = |field: &str| read_as(file, label, kind, &["-e", field]);
        let (Some(vpis), Some(vcis), Some(counts)) = (of("atm.vpi"), of("atm.vci"), of(count))
        else {
            return;
        };
        let cells: usize = values(&counts)
            .iter()
            .map(|n| n.parse::<usize>().unwrap())
            .sum();
        let (vpis, vcis) = (values(&vpis), values(&vcis));
        assert_eq!((vpis.len(), vcis.len()), (cells, cells));
        // Cells of the connection, and of the signalling of the port.
        let ours = vpis
            .iter()
            .zip(&vcis)
            .filter(|pair| (*pair.0, *pair.1) == ("1", "101"));
        assert!(ours.count() >= 10, "{vpis:?} {vcis:?}");
    }
    for (file, labels) in [
        (sdus, "1001,mplspwatmaal5sdu"),
        (cells, "1000,mplspwatmn1cw"),
        (bare, "1000,mplspwatmn1nocw"),
    ] {
        let decode = format!("mpls.label=={labels}");
        // The station's own frames have labels that are read as nothing.
        let filter = format!(
            "_ws.malformed && eth.src == {WEST_MAC} && mpls.label == {}",
            &labels[..4]
        );
        let malformed = tshark(file, &["-d", &decode, "-Y", &filter]);
        assert_eq!(malformed, Some(vec![]), "{labels}");
    }
    drop((west, east));
}

/// The lab of the station of RFC 1483, with its link as a session of L2TPv3 between these ends.
fn l2tp_up(lab: &Runtime, ends: [&str; 2], more: &str, inside: Option<&Namespace>) {
    let link = format!(
        "links.0.1.l2tp={{ local: '{}', peer: '{}', session: 2, peer_session: 1, {more} }}",
        ends[0], ends[1]
    );
    let arguments = [
        "up",
        "-d",
        "-q",
        "--embedded",
        "interop/labs/rfc1483.atm.yml",
    ];
    let set = [
        "--set",
        "links.0.1.udp=null",
        "--set",
        &link,
        "--set",
        "clip.wan.mtu=1480",
    ];
    let mut command = lab.command(&[&arguments[..], &set].concat());
    if let Some(namespace) = inside {
        command = namespace.command(&command);
    }
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
}

/// Pings of a few sizes from a station at the other end of the session.
fn l2tp_pings(ends: [&str; 2], more: &[&str], inside: Option<&Namespace>) {
    let session = [
        "--l2tp", ends[1], "--peer", ends[0], "--out", "2", "--in", "1",
    ];
    let of_ip = ["--vc", "1.100", "--ip", "10.20.0.9", "--ping", "10.20.0.10"];
    let sizes = ["--size", "0,56,1452", "--count", "6"];
    let mut command = station(&[&session[..], &of_ip, &sizes, more].concat());
    if let Some(namespace) = inside {
        command = namespace.command(&command);
    }
    let said = all_answered(&command.output().unwrap());
    assert!(said.contains("other_label=0"), "{said}");
}

#[test]
fn a_station_behind_sessions_of_l2tp_over_udp_reaches_a_host() {
    if !has("python3") {
        return;
    }
    let lab = Runtime::new("l2tp");
    for (keys, more) in [
        ("", &[][..]),
        (
            "cookie: 0123456789abcdef, peer_cookie: 01234567, sublayer: default, sequence: true",
            &[
                "--cookie-out",
                "0123456789abcdef",
                "--cookie-in",
                "01234567",
                "--sublayer",
                "default",
                "--sequence",
            ],
        ),
        ("sublayer: atm, vc: 1.100", &["--sublayer", "atm"]),
    ] {
        let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let ports = sockets.map(|socket| socket.local_addr().unwrap().to_string());
        let ends = [&*ports[0], &*ports[1]];
        l2tp_up(&lab, ends, keys, None);
        l2tp_pings(ends, more, None);
        lab.ok(&["down"]);
    }
}

#[test]
fn a_station_behind_a_session_of_l2tp_over_ip_reaches_a_host() {
    if !has("python3") {
        return;
    }
    let Some(west) = Namespace::new(79) else {
        return;
    };
    let lab = Runtime::new("l2tp-ip");
    let ends = ["127.0.0.1", "127.0.0.2"];
    let keys = "peer_cookie: 89abcdef, sublayer: atm, sequence: true";
    l2tp_up(&lab, ends, keys, Some(&west));
    let more = ["--cookie-in", "89abcdef", "--sublayer", "atm", "--sequence"];
    l2tp_pings(ends, &more, Some(&west));
    lab.ok(&["down"]);
}
