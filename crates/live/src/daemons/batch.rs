//! Several frames in one packet of the socket.
//!
//! A set-up makes a daemon say several things at once: a trace, an SDU for the network, a message for its data half.
//! Each packet costs its sender a system call and wakes its receiver, which on a busy machine takes the processor from
//! the sender. So all frames that wait go together, up to [`ROOM`] octets and [`MOST`] frames. A frame that is alone
//! goes as it is.

/// First octets of a packet with frames that each have their length in front, in four octets. No frame begins with
/// them: there is no daemon with this number, and no greeting of this type.
const MARK: [u8; 2] = [0xff, 0xff];
/// Octets of a packet with several frames.
const ROOM: usize = 8192;
/// Frames of a packet: a receiver takes all of them in one turn.
pub(super) const MOST: usize = 64;

/// Fills `packet` with as many of the first frames as go together; returns their number, 0 if there is no frame.
pub(super) fn pack<'a>(
    packet: &mut Vec<u8>,
    frames: impl IntoIterator<Item = &'a Vec<u8>>,
) -> usize {
    packet.clear();
    packet.extend_from_slice(&MARK);
    let mut count = 0;
    for frame in frames.into_iter().take(MOST) {
        if count > 0 && packet.len() + 4 + frame.len() > ROOM {
            break;
        }
        packet.extend_from_slice(&(frame.len() as u32).to_be_bytes());
        packet.extend_from_slice(frame);
        count += 1;
    }
    if count == 1 {
        packet.drain(..MARK.len() + 4);
    }
    count
}

/// True for a packet with several frames.
pub(super) fn is_batch(packet: &[u8]) -> bool {
    packet.starts_with(&MARK)
}

/// The frames of a packet. The last item is `None` if the packet is invalid.
pub(super) fn frames(packet: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let mut rest = packet;
    let mut count = 0;
    let batch = is_batch(packet);
    if batch {
        rest = &packet[MARK.len()..];
    }
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        count += 1;
        if !batch {
            return Some(Some(std::mem::take(&mut rest)));
        }
        let found = rest.split_first_chunk::<4>().and_then(|(length, after)| {
            let length = u32::from_be_bytes(*length) as usize;
            after.split_at_checked(length).filter(|_| length > 0)
        });
        let Some((frame, after)) = found.filter(|_| count <= MOST) else {
            rest = &[];
            return Some(None);
        };
        rest = after;
        Some(Some(frame))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(packet: &[u8]) -> Vec<Option<&[u8]>> {
        frames(packet).collect()
    }

    #[test]
    fn frames_come_out_as_they_went_in_and_a_lone_frame_has_no_header() {
        let all: Vec<Vec<u8>> = (1..=70_u8).map(|n| vec![n; usize::from(n)]).collect();
        let mut packet = Vec::new();
        let count = pack(&mut packet, &all);
        assert_eq!(count, MOST);
        let expected: Vec<_> = all[..MOST].iter().map(|f| Some(f.as_slice())).collect();
        assert_eq!(unpacked(&packet), expected);
        assert_eq!(pack(&mut packet, &all[5..6]), 1);
        assert_eq!(packet, all[5]);
        assert_eq!(unpacked(&packet), [Some(all[5].as_slice())]);
        assert_eq!(pack(&mut packet, &[]), 0);
    }

    #[test]
    fn a_long_frame_goes_alone_and_a_batch_has_its_room() {
        let long = vec![7; 65_000];
        let short = vec![1; 100];
        let mut packet = Vec::new();
        assert_eq!(pack(&mut packet, &[long.clone(), short.clone()]), 1);
        assert_eq!(packet, long);
        let many = vec![vec![3; 1000]; 20];
        assert_eq!(pack(&mut packet, &many), 8);
        assert!(packet.len() <= ROOM);
        assert_eq!(pack(&mut packet, &[short, long]), 1);
    }

    #[test]
    fn a_batch_that_lies_about_its_frames_is_invalid() {
        fn end(packet: &[u8]) -> Option<&[u8]> {
            *unpacked(packet).last().unwrap()
        }
        assert_eq!(end(&[0xff, 0xff, 0, 0, 0]), None, "no length");
        assert_eq!(end(&[0xff, 0xff, 0, 0, 0, 2, 1]), None, "too short");
        assert_eq!(
            end(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
            None,
            "too long"
        );
        assert_eq!(end(&[0xff, 0xff, 0, 0, 0, 0]), None, "an empty frame");
        let mut many = MARK.to_vec();
        for _ in 0..=MOST {
            many.extend_from_slice(&[0, 0, 0, 1, 9]);
        }
        assert_eq!(unpacked(&many).len(), MOST + 1);
        assert_eq!(end(&many), None, "too many frames");
        assert!(unpacked(&MARK).is_empty(), "no frame is no message");
    }
}
