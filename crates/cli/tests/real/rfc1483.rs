//! An IP station with a codec of its own (`interop/rfc1483`) at the far end of a link of cells over UDP, and between
//! the two the ATM switch of Dynamips where it is available.

use crate::live::{Killed, Runtime, can_run, has};
use crate::root;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const LAB: &str = "interop/labs/rfc1483.atm.yml";
/// Longest ICMP data in one piece: MTU 4470 of the lab less the headers of IP and ICMP.
const LONGEST: &str = "4442";

/// Free loopback addresses, all different.
fn free_ports<const N: usize>() -> [String; N] {
    let sockets = [(); N].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    sockets.map(|socket| socket.local_addr().unwrap().to_string())
}

/// The lab, with its link between these addresses.
fn up(lab: &Runtime, [local, peer]: [&str; 2], more: &[&str]) {
    let link = format!("links.0.1.udp={{ local: '{local}', peer: '{peer}' }}");
    lab.ok(&[&["up", "-d", "-q", LAB, "--set", &link], more].concat());
}

/// The station, with these arguments.
fn station([local, peer]: [&str; 2], vc: &str, more: &[&str]) -> Command {
    let mut station = Command::new("python3");
    station
        .arg(root().join("interop/rfc1483"))
        .args(["--local", local, "--peer", peer, "--vc", vc])
        .args(["--ip", "10.20.0.9"])
        .args(more);
    station
}

/// The station's output; each of its requests must have been answered.
fn all_answered(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{errors}");
    for fault in ["bad_length=0", "bad_hec=0", "oam=0", "bad_pdu=0"] {
        assert!(said.contains(fault), "{said}");
    }
    said
}

#[test]
fn a_station_of_rfc_1483_behind_cells_over_udp_reaches_a_host() {
    if !has("python3") {
        return;
    }
    let lab = Runtime::new("rfc1483");
    let [here, there] = free_ports();
    let (ours, theirs) = ([&*here, &*there], [&*there, &*here]);
    up(&lab, ours, &["--embedded"]);
    for size in ["0", "56", LONGEST] {
        let pings = ["--ping", "10.20.0.10", "--size", size, "--interval", "0.05"];
        let said = all_answered(&station(theirs, "1.100", &pings).output().unwrap());
        assert!(said.contains("the other end is 10.20.0.10"), "{said}");
        assert!(said.contains("5 requests, 5 answers"), "{said}");
    }
    lab.ok(&["down"]);
    // Bare packets on the connection.
    up(&lab, ours, &["--embedded", "--set", "pvcs.0.mux=true"]);
    let pings = ["--mux", "--ping", "10.20.0.10", "--size", LONGEST];
    all_answered(&station(theirs, "1.100", &pings).output().unwrap());
    lab.ok(&["down"]);
}

#[test]
fn a_kernel_host_pings_a_station_of_rfc_1483() {
    if !has("python3") || !has("ping") || !can_run() {
        return;
    }
    let lab = Runtime::new("rfc1483-kernel");
    let [here, there] = free_ports();
    up(&lab, [&here, &there], &[]);
    let mut listening = station([&there, &here], "1.100", &["--for", "60"]);
    let mut listening = Killed(listening.stdout(Stdio::piped()).spawn().unwrap());
    let mut said = BufReader::new(listening.0.stdout.take().unwrap()).lines();
    assert_eq!(said.next().unwrap().unwrap(), "ready");
    for size in ["56", LONGEST] {
        let words = ["-c", "5", "-i", "0.1", "-s", size, "-M", "do", "10.20.0.9"];
        lab.pings(&["h1"], &words);
    }
    lab.ok(&["down"]);
}

/// Dynamips as a hypervisor, with commands over TCP; `None`, with the reason printed, if it is not available.
fn dynamips() -> Option<(Killed, BufReader<TcpStream>)> {
    let program = std::env::var("AEROSTAT_DYNAMIPS").unwrap_or_else(|_| "dynamips".into());
    if !has(&program) {
        return None;
    }
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = free.local_addr().unwrap();
    drop(free);
    let mut dynamips = Command::new(program);
    let (out, err) = (Stdio::null(), Stdio::null());
    dynamips.args(["-H", &place.to_string()]);
    dynamips.current_dir(std::env::temp_dir());
    let child = dynamips.stdin(Stdio::null()).stdout(out).stderr(err);
    let mut running = Killed(child.spawn().unwrap());
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        if let Ok(stream) = TcpStream::connect(place) {
            return Some((running, BufReader::new(stream)));
        }
        assert!(running.0.try_wait().unwrap().is_none(), "dynamips ended");
        assert!(Instant::now() < until, "dynamips does not listen");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Commands to the hypervisor, each of which it must carry out.
fn tell(hypervisor: &mut BufReader<TcpStream>, commands: &[&str]) {
    for command in commands {
        writeln!(hypervisor.get_mut(), "{command}").unwrap();
        let mut answer = String::new();
        hypervisor.read_line(&mut answer).unwrap();
        assert!(answer.starts_with("100-"), "{command}: {answer}");
    }
}

/// The command that makes an interface of Dynamips, over UDP on loopback.
fn nio(name: &str, local: &str, peer: &str) -> String {
    let port = |place: &str| place.rsplit(':').next().unwrap().to_owned();
    let (local, peer) = (port(local), port(peer));
    format!("nio create_udp {name} {local} 127.0.0.1 {peer}")
}

#[test]
fn the_switch_of_dynamips_carries_cells_between_both() {
    if !has("python3") {
        return;
    }
    let Some((_running, mut hypervisor)) = dynamips() else {
        return;
    };
    let [lab_end, switch_lab, switch_far, far_end] = free_ports();
    tell(
        &mut hypervisor,
        &[
            &nio("lab", &switch_lab, &lab_end),
            &nio("far", &switch_far, &far_end),
            "atmsw create S",
            "atmsw create_vcc S lab 1 100 far 0 32",
            "atmsw create_vcc S far 0 32 lab 1 100",
        ],
    );
    let lab = Runtime::new("dynamips");
    up(&lab, [&lab_end, &switch_lab], &["--embedded"]);
    for size in ["56", LONGEST] {
        let pings = ["--ping", "10.20.0.10", "--size", size];
        all_answered(
            &station([&far_end, &switch_far], "0.32", &pings)
                .output()
                .unwrap(),
        );
    }
    lab.ok(&["down"]);
}

/// A station on an Ethernet of frames over UDP, written by hand.
struct Station {
    socket: UdpSocket,
    ip: [u8; 4],
    mac: [u8; 6],
}

impl Station {
    /// An Ethernet frame to `to`.
    fn frame(&self, to: [u8; 6], kind: [u8; 2], payload: &[u8]) -> Vec<u8> {
        [&to[..], &self.mac, &kind, payload].concat()
    }
    /// Sends a frame until one that `wanted` takes comes back; the answer of `wanted`.
    fn ask<T>(&self, frame: &[u8], wanted: impl Fn(&[u8]) -> Option<T>) -> T {
        let mut got = [0; 2000];
        for _ in 0..50 {
            self.socket.send(frame).unwrap();
            while let Ok(length) = self.socket.recv(&mut got) {
                if let Some(answer) = wanted(&got[..length]) {
                    return answer;
                }
            }
        }
        panic!("no answer");
    }
    /// The MAC address of an IPv4 address. Source: RFC 826.
    fn resolve(&self, ip: [u8; 4]) -> [u8; 6] {
        let fixed = [0, 1, 8, 0, 6, 4, 0, 1];
        let arp = [&fixed[..], &self.mac, &self.ip, &[0; 6], &ip].concat();
        self.ask(&self.frame([0xff; 6], [8, 6], &arp), |got| {
            let reply = got.get(12..22)? == [8, 6, 0, 1, 8, 0, 6, 4, 0, 2];
            (reply && got.get(28..32)? == ip).then(|| got[22..28].try_into().unwrap())
        })
    }
    /// An echo request with so many octets of data, which must come back whole. Source: RFC 791, RFC 792.
    fn ping(&self, (to, ip): ([u8; 6], [u8; 4]), octets: usize) {
        let data: Vec<u8> = (0..octets).map(|n| n as u8).collect();
        let message = |kind: u8| {
            let mut icmp = [&[kind, 0, 0, 0, 0, 1, 0, 1][..], &data].concat();
            let sum = checksum(&icmp);
            icmp[2..4].copy_from_slice(&sum.to_be_bytes());
            icmp
        };
        let length = (20 + 8 + octets) as u16;
        let mut header = [0x45, 0, 0, 0, 0, 0, 0, 0, 64, 1, 0, 0].to_vec();
        header[2..4].copy_from_slice(&length.to_be_bytes());
        header.extend([self.ip, ip].concat());
        let sum = checksum(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        let frame = self.frame(to, [8, 0], &[header, message(8)].concat());
        let reply = message(0);
        self.ask(&frame, |got| {
            (got.get(34..34 + reply.len())? == reply).then_some(())
        });
    }
}

/// The Internet checksum. Source: RFC 1071.
fn checksum(octets: &[u8]) -> u16 {
    let words = octets.chunks(2);
    let words = words.map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

/// The "ATM bridge" of Dynamips and GNS3 is the other end of a bridged line; a station of this test is on its Ethernet.
#[test]
fn the_atm_bridge_of_dynamips_is_the_other_end_of_a_bridged_line() {
    let Some((_running, mut hypervisor)) = dynamips() else {
        return;
    };
    let [lab_end, bridge_atm, bridge_ethernet, station] = free_ports();
    tell(
        &mut hypervisor,
        &[
            &nio("atm", &bridge_atm, &lab_end),
            &nio("ethernet", &bridge_ethernet, &station),
            "atm_bridge create B",
            "atm_bridge configure B ethernet atm 8 35",
        ],
    );
    let lab = Runtime::new("dynamips-bridge");
    let link = format!("links.0.1.udp={{ local: '{lab_end}', peer: '{bridge_atm}' }}");
    lab.ok(&[
        "up",
        "-d",
        "-q",
        "--embedded",
        "labs/host/dslam.atm.yml",
        "--set",
        &link,
    ]);
    let socket = UdpSocket::bind(&station).unwrap();
    socket.connect(&bridge_ethernet).unwrap();
    let patience = Some(Duration::from_millis(200));
    socket.set_read_timeout(patience).unwrap();
    let (ip, mac) = ([10, 8, 0, 2], [2, 0, 0, 0, 9, 9]);
    let station = Station { socket, ip, mac };
    let bras = [10, 8, 0, 1];
    let to = station.resolve(bras);
    for octets in [0, 18, 56, 1000, 1472] {
        station.ping((to, bras), octets);
    }
    let line = lab.ok(&["inspect", "bras", "line"]);
    assert!(
        !line.contains("other_") && !line.contains("errors"),
        "{line}"
    );
    lab.ok(&["down"]);
}
