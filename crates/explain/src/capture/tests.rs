//! Files that are made octet by octet.

use super::*;

/// Times and octets of packets.
type Packets = Vec<(i128, Vec<u8>)>;

fn all(file: &[u8]) -> Result<(Packets, Contents), Unreadable> {
    let mut packets = Vec::new();
    let read = read(
        file,
        &Limits::default(),
        &mut Met::default(),
        &mut |_, packet| packets.push((packet.time_ns, packet.octets.to_vec())),
    )?;
    Ok((packets, read))
}

fn pcap(magic: u32, big: bool, packets: &[&[u8]]) -> Vec<u8> {
    let word = |value: u32| match big {
        true => value.to_be_bytes(),
        false => value.to_le_bytes(),
    };
    let half = |value: u16| match big {
        true => value.to_be_bytes(),
        false => value.to_le_bytes(),
    };
    let mut file = word(magic).to_vec();
    file.extend(half(2));
    file.extend(half(4));
    for value in [0, 0, 65535, 100] {
        file.extend(word(value));
    }
    for (number, packet) in (1..).zip(packets) {
        for value in [number, 5, packet.len() as u32, packet.len() as u32] {
            file.extend(word(value));
        }
        file.extend_from_slice(packet);
    }
    file
}

#[test]
fn pcap_of_both_orders_and_resolutions() {
    for big in [false, true] {
        for (magic, fraction) in [(0xa1b2_c3d4, 5000), (0xa1b2_3c4d, 5)] {
            let file = pcap(magic, big, &[&[1, 2, 3], &[]]);
            let (packets, read) = all(&file).unwrap();
            let second = 1_000_000_000;
            assert_eq!(packets[0], (second + fraction, vec![1, 2, 3]), "{big}");
            assert_eq!(packets[1], (2 * second + fraction, vec![]));
            assert_eq!((read.read, read.cut), (file.len() as u64, false));
        }
    }
}

#[test]
fn the_end_inside_a_packet_is_told() {
    let file = pcap(0xa1b2_c3d4, false, &[&[1; 40], &[2; 40]]);
    let (packets, read) = all(&file[..file.len() - 1]).unwrap();
    assert_eq!(packets.len(), 1);
    assert_eq!((read.read, read.cut), (24 + 16 + 40, true));
}

#[test]
fn what_is_no_capture_is_refused_with_its_place() {
    let at = |file: &[u8]| all(file).unwrap_err().to_string();
    assert_eq!(at(b""), "an empty file at offset 0");
    assert_eq!(
        at(b"name: a\nhosts: {}\n--------------------"),
        "no pcap and no pcapng at offset 0"
    );
    let mut file = aerostat_wire::pcapng::PcapNg::new(Vec::new(), "")
        .unwrap()
        .into_inner();
    let start = file.len();
    // An enhanced packet without an interface.
    file.extend(
        [6_u32, 32, 0, 0, 0, 0, 0, 32]
            .iter()
            .flat_map(|word| word.to_le_bytes()),
    );
    let text = format!("a packet of interface 0, which no block describes at offset {start}");
    assert_eq!(at(&file), text);
}

#[test]
fn a_block_beyond_the_limit_is_an_error_with_the_number() {
    let file = pcap(0xa1b2_c3d4, false, &[&vec![0; 100_000]]);
    let limits = Limits {
        block: 1 << 16,
        ..Limits::default()
    };
    let error = read(&file[..], &limits, &mut Met::default(), &mut |_, _| {}).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a block that is longer than 65536 octets at offset 24"
    );
    assert_eq!(all(&file).unwrap().0.len(), 1);
}

/// Blocks of pcapng in little endian: an interface, and what follows.
fn pcapng(blocks: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut file = aerostat_wire::pcapng::PcapNg::new(Vec::new(), "")
        .unwrap()
        .into_inner();
    let interface = (
        1,
        [100_u16, 0, 0, 0]
            .iter()
            .flat_map(|half| half.to_le_bytes())
            .collect(),
    );
    for (kind, body) in [&[interface][..], blocks].concat() {
        let length = (body.len() as u32 + 12).to_le_bytes();
        file.extend(kind.to_le_bytes());
        file.extend(length);
        file.extend(body);
        file.extend(length);
    }
    file
}

/// An enhanced packet that says it has `captured` octets.
fn enhanced(captured: u32, octets: &[u8]) -> (u32, Vec<u8>) {
    let words = [0, 0, 1, captured, captured];
    let mut body: Vec<u8> = words
        .iter()
        .flat_map(|word: &u32| word.to_le_bytes())
        .collect();
    body.extend_from_slice(octets);
    (6, body)
}

#[test]
fn a_packet_that_is_longer_than_its_block_is_an_error_at_its_place() {
    let start = pcapng(&[]).len();
    let wanted = format!("octets that are no block of a capture at offset {start}");
    let good = enhanced(40, &[7; 40]);
    assert_eq!(
        all(&pcapng(std::slice::from_ref(&good))).unwrap().0.len(),
        1
    );
    for behind in [0, 10_000] {
        let mut blocks = vec![enhanced(400, &[7; 40])];
        blocks.extend(std::iter::repeat_n(good.clone(), behind));
        assert_eq!(all(&pcapng(&blocks)).unwrap_err().to_string(), wanted);
    }
    // A block without its end is the end of the file.
    let long = pcapng(&[enhanced(65_504, &[7; 65_504])]);
    for there in [256, 300, 65_535] {
        let (_, read) = all(&long[..start + there]).unwrap();
        assert_eq!((read.read, read.cut), (start as u64, true), "{there}");
    }
}

#[test]
fn interfaces_beyond_the_limit_are_an_error_with_the_number() {
    let interface = (1, vec![100, 0, 0, 0, 0, 0, 0, 0]);
    let most = Limits::default().interfaces;
    assert!(all(&pcapng(&vec![interface.clone(); most - 1])).is_ok());
    let error = all(&pcapng(&vec![interface; most])).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("more than 4096 interfaces at offset ")
    );
}

#[test]
fn an_error_of_the_reader_is_told_and_is_no_error_of_the_format() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the line is cut"))
        }
    }
    let file = pcap(0xa1b2_c3d4, false, &[&[1; 40]]);
    let start = file.len() as u64;
    for (input, offset) in [(&file[..0], 0), (&file[..], start)] {
        let limits = Limits::default();
        let broken = input.chain(Broken);
        let error = read(broken, &limits, &mut Met::default(), &mut |_, _| {}).unwrap_err();
        assert_eq!(error.what, "no octets (the line is cut)");
        assert!(!error.is_of_format && error.offset <= offset);
    }
}
