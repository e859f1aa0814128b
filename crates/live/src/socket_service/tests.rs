//! Packets of sockets in batches.

use super::packets::{self, Batch, Read, Sent, SocketId};
use aerostat_node::atm::Sdus;
use proptest::prelude::*;
use std::collections::VecDeque;

/// Reads until there is nothing, and returns each packet, the numbers of those that came together, and the end.
fn read_all(ours: &rustix::fd::OwnedFd, most: usize) -> (Vec<Vec<u8>>, Vec<usize>, Read) {
    let (mut batch, mut to) = (Batch::new(), VecDeque::new());
    let (mut packets, mut together) = (Vec::new(), Vec::new());
    loop {
        let read = batch.read(ours, most, &mut to);
        for sdus in to.drain(..) {
            together.push(sdus.count());
            packets.extend(sdus.iter().map(<[u8]>::to_vec));
        }
        if !matches!(read, Read::Packets) {
            return (packets, together, read);
        }
    }
}

#[test]
fn packets_of_one_length_come_together() {
    let (ours, theirs) = packets::pair().unwrap();
    let lengths = [48, 48, 48, 20, 48, 0, 0, 100, 100, 200];
    for length in lengths {
        assert_eq!(
            packets::write(&theirs, &vec![length as u8; length]),
            Sent::Gone
        );
    }
    let (got, together, read) = read_all(&ours, 32);
    assert!(matches!(read, Read::Nothing), "{read:?}");
    assert_eq!(got.iter().map(Vec::len).collect::<Vec<_>>(), lengths);
    // A shorter packet ends those of one length, and a packet without octets stands alone.
    assert_eq!(together, [4, 1, 1, 1, 2, 1]);
}

/// A packet without octets at the end is not the end, unless the program has closed.
#[test]
fn a_process_with_many_sessions_makes_room_for_others() {
    use super::session::makes_room;
    let all: Vec<_> = (0..6).map(|at| (at, 7, 100 - at as u64, at == 5)).collect();
    // The longest idle one, but not the one that waits for an answer.
    assert_eq!(makes_room(&all, 8), Some(4));
    assert_eq!(makes_room(&all, 7), None, "its own sessions are the limit");
    let fair = [
        (0, 1, 0, false),
        (1, 2, 0, false),
        (2, 3, 0, false),
        (3, 3, 0, false),
    ];
    assert_eq!(makes_room(&fair, 9), Some(2));
    assert_eq!(makes_room(&fair, 1), None, "two are one more than one");
    assert_eq!(makes_room(&fair[..3], 9), None, "each has only one");
}

#[test]
fn a_file_with_the_number_of_a_socket_is_not_this_socket() {
    let (ours, theirs) = packets::pair().unwrap();
    let copy = theirs.try_clone().unwrap();
    let id = SocketId::of(&theirs);
    assert!(id.is_some() && id == SocketId::of(&copy) && id != SocketId::of(&ours));
    let file = std::fs::File::open("/").unwrap();
    let other = rustix::fs::fstat(&file).unwrap();
    let socket = rustix::fs::fstat(&theirs).unwrap();
    assert_ne!(
        other.st_dev, socket.st_dev,
        "sockets have a file system of their own"
    );
}

#[test]
fn the_end_comes_behind_what_was_written() {
    for (with_empty, most) in [(false, 1), (false, 32), (true, 1), (true, 32)] {
        let (ours, theirs) = packets::pair().unwrap();
        for _ in 0..3 {
            packets::write(&theirs, b"octets");
        }
        if with_empty {
            packets::write(&theirs, b"");
            packets::write(&theirs, b"last");
        }
        drop(theirs);
        let (got, _, read) = read_all(&ours, most);
        assert!(matches!(read, Read::End), "{read:?}");
        let octets: Vec<_> = got.iter().filter(|packet| !packet.is_empty()).collect();
        assert_eq!(
            octets.len(),
            3 + usize::from(with_empty),
            "{with_empty} {most}"
        );
    }
}

#[test]
fn a_packet_that_is_too_long_has_its_length() {
    let (ours, theirs) = packets::pair().unwrap();
    packets::write(&theirs, &[1; 9000]);
    packets::write(&theirs, &[2; 10]);
    // With 32 packets at once no contract allows more than 4096 octets.
    let (got, _, _) = read_all(&ours, 32);
    assert_eq!(got.iter().map(Vec::len).collect::<Vec<_>>(), [9000, 10]);
    assert_eq!((got[0][0], got[1][0]), (0, 2));
}

#[test]
fn a_full_descriptor_takes_a_part_and_a_closed_one_nothing() {
    let (ours, theirs) = packets::pair().unwrap();
    let mut batch = Batch::new();
    let sdus = Sdus::new(vec![7; 4000 * 1000], 4000);
    let (gone, next) = batch.write(&ours, &sdus);
    assert!(
        gone > 0 && gone < 1000 && next == Sent::Full,
        "{gone} {next:?}"
    );
    drop(theirs);
    assert_eq!(batch.write(&ours, &sdus), (0, Sent::Closed));
}

proptest! {
    #[test]
    fn what_is_written_is_read(lengths in proptest::collection::vec(0_usize..300, 0..40), most in 1_usize..40) {
        let (ours, theirs) = packets::pair().unwrap();
        let sent: Vec<Vec<u8>> = (0..).zip(lengths).map(|(number, length)| vec![number; length]).collect();
        for packet in &sent {
            prop_assert_eq!(packets::write(&theirs, packet), Sent::Gone);
        }
        let (got, _, _) = read_all(&ours, most);
        prop_assert_eq!(got, sent);
    }
}
