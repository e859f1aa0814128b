//! Files that are made octet by octet.

use super::*;

/// Times and octets of packets.
type Packets = Vec<(i128, Vec<u8>)>;

fn all(file: &[u8]) -> Result<(Packets, Octets), Unreadable> {
    let mut packets = Vec::new();
    let (read, _) = read(
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
