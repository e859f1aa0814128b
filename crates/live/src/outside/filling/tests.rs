use super::*;
use aerostat_node::atm::Pdu;
use aerostat_wire::Vc;
use aerostat_wire::cell::Pti;
use proptest::prelude::*;

const NOW: Instant = Instant::ZERO;
const LATER: Duration = Duration::from_micros(100);

/// A run whose cells all differ: of a PDU, or raw cells.
fn run(number: u8, kind: u8, length: usize) -> CellRun {
    let vc = Vc::new(u16::from(number), 32 + u16::from(kind));
    match kind {
        0 => CellRun::raw(vc, Pti::OAM_SEGMENT, [number; 48]),
        1 => {
            let mut run = CellRun::raw(vc, Pti::USER_END, [number; 48]);
            (run.clp, run.congested) = (true, true);
            run
        }
        _ => CellRun::whole(Pdu::with(vec![number; length], number, kind == 3), vc),
    }
}

/// The packet with these cells.
fn expected(packing: &Option<Packer>, prefix: &[u8], cells: &[[u8; CELL_LEN]]) -> Vec<u8> {
    let rest = match packing {
        None => cells.as_flattened().to_vec(),
        Some(packer) => packer.datagram(cells.iter()),
    };
    [prefix, &rest].concat()
}

proptest! {
    /// However many packets the system takes at a time, each one has its own cells, in order, and the next number.
    #[test]
    fn packets_have_all_cells_in_order_and_their_numbers(
        each in 0..30_u16,
        word in any::<bool>(),
        prefix in prop::collection::vec(any::<u8>(), 0..20),
        steps in prop::collection::vec((0..4_u8, 1..3000_usize, 0..6_usize, any::<bool>()), 1..40),
    ) {
        // 0 stands for a cell with its HEC as a packet.
        let packing = match each {
            0 => Packing::One,
            cells => Packing::Many { cells, wait: LATER, word },
        };
        let prefix = if each == 0 { &[][..] } else { &prefix };
        let mut filling = Filling::new(packing);
        let mut packer = (each > 0).then(|| Packer::new(Shim::numbered(word)));
        let full = usize::from(each).max(1);
        let mut waiting: Vec<[u8; CELL_LEN]> = Vec::new();
        for (number, (kind, length, most, due)) in (0..).zip(steps) {
            let run = run(number, kind, length);
            filling.push(&run, prefix);
            waiting.extend(cells::encode(&run));
            prop_assert_eq!(filling.len(), waiting.len());
            // The first call sets the time at which a packet leaves that is not full.
            let _ = filling.batch(NOW, |_| most);
            let now = if due { NOW + LATER } else { NOW };
            let complete = waiting.len() / full;
            let Some(batch) = filling.batch(now, |_| most) else {
                prop_assert!(complete == 0 && !due);
                continue;
            };
            let packets = batch.packets;
            prop_assert_eq!(packets, complete.min(most.max(1)).max(1));
            prop_assert!(complete > 0 || due);
            // The system may take fewer of them.
            let taken = packets.min(1 + length % packets);
            let got: Vec<Vec<u8>> = batch.octets.chunks(batch.length).map(<[u8]>::to_vec).collect();
            prop_assert_eq!(got.len(), packets);
            for packet in got.into_iter().take(taken) {
                let rest = waiting.split_off(full.min(waiting.len()));
                prop_assert_eq!(packet, expected(&packer, prefix, &waiting));
                waiting = rest;
                if let Some(packer) = &mut packer {
                    packer.sent(1);
                }
            }
            filling.sent(taken);
            prop_assert_eq!(filling.len(), waiting.len());
        }
    }
}

/// While packets leave as fast as cells come, the memory does not grow, although the queue is never empty.
#[test]
fn octets_that_were_sent_do_not_pile_up() {
    let mut filling = Filling::new(Packing::One);
    let run = CellRun::whole(Pdu::new(vec![1; 9180]), Vc::new(0, 40));
    filling.push(&run, &[]);
    for _ in 0..10_000 {
        filling.push(&run, &[]);
        let batch = filling.batch(NOW, |_| 64).map(|batch| batch.packets);
        assert_eq!(batch, Some(64));
        filling.sent(64);
        let batch = filling.batch(NOW, |_| 128).map(|batch| batch.packets);
        assert_eq!(batch, Some(128));
        filling.sent(128);
        assert_eq!(filling.len(), usize::from(run.count));
    }
    assert!(
        filling.octets.capacity() < 8 * SENT,
        "{}",
        filling.octets.capacity()
    );
}

/// The line came back with another header: nothing of the old one goes out.
#[test]
fn cells_of_a_line_with_another_header_are_dropped() {
    let mut filling = Filling::gathering(
        Gathering {
            cells: 4,
            wait: LATER,
        },
        Shim::None,
    );
    let run = CellRun::whole(Pdu::new(vec![1; 100]), Vc::new(0, 40));
    filling.push(&run, &[1; 14]);
    filling.push(&run, &[2; 18]);
    assert_eq!(
        (filling.dropped, filling.len()),
        (u64::from(run.count), usize::from(run.count))
    );
    let batch = filling.batch(NOW + LATER, |_| 8);
    assert!(batch.is_none());
    let batch = filling.batch(NOW + LATER + LATER, |_| 8).unwrap();
    assert_eq!(batch.octets[..18], [2; 18]);
}
