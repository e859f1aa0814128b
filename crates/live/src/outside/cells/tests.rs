use super::*;
use crate::assembly::sdus;
use aerostat_node::atm::{CellRate, Pdu};
use aerostat_proto::Duration;
use aerostat_wire::cell::Pti;
use proptest::prelude::*;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// Receives a single cell on a line without limit; gives the run that it ends.
fn push(receiver: &mut Receiver, cell: [u8; CELL_LEN], now: Instant) -> Option<CellRun> {
    let (mut told, mut bucket) = (Vec::new(), Bucket::new(CellRate::of_cells(u32::MAX)));
    let policed = receiver.packet(&[cell], |header| header, (&mut bucket, now), &mut told);
    assert!(policed == 0 && told.len() <= 1);
    told.into_iter().find_map(|event| match event {
        Event::Cells(run) => Some(run),
        _ => None,
    })
}

/// Receives a single cell.
fn receive(receiver: &mut Receiver, cell: [u8; CELL_LEN]) -> Option<CellRun> {
    assert!(push(receiver, cell, at(0)).is_none());
    end(receiver).pop()
}

/// The runs that are open.
fn end(receiver: &mut Receiver) -> Vec<CellRun> {
    let mut told = Vec::new();
    receiver.end(&mut told);
    runs(told)
}

fn runs(told: Vec<Event>) -> Vec<CellRun> {
    let run = |event| match event {
        Event::Cells(run) => run,
        _ => panic!("an event without cells"),
    };
    told.into_iter().map(run).collect()
}

/// A cell as Dynamips sends it: VPI 0, VCI 100, last cell of its PDU. The HEC was computed by hand: CRC-8 of 00 00 06
/// 42 with x^8+x^2+x+1, XOR 55.
#[test]
fn the_header_of_a_cell() {
    let run = CellRun::whole(Pdu::new(vec![9; 40]), Vc::new(0, 100));
    let cells: Vec<_> = encode(&run).collect();
    assert_eq!(cells.len(), 1);
    assert_eq!(cells[0][..4], [0, 0, 6, 0x42]);
    let mut crc = 0_u8;
    for octet in [0_u8, 0, 6, 0x42] {
        crc ^= octet;
        for _ in 0..8 {
            crc = if crc & 0x80 != 0 {
                crc << 1 ^ 7
            } else {
                crc << 1
            };
        }
    }
    assert_eq!(cells[0][4], crc ^ 0x55);
    let got = receive(&mut Receiver::default(), cells[0]).unwrap();
    assert_eq!(sdus([&got]), [(run.vc, vec![9; 40])]);
    // 12 bits of VPI.
    let wide = CellRun::whole(Pdu::new(vec![9; 40]), Vc::new(0x801, 100));
    let cell = encode(&wide).next().unwrap();
    assert_eq!(receive(&mut Receiver::default(), cell).unwrap().vc, wide.vc);
}

#[test]
fn oam_passes_and_idle_cells_do_not() {
    let mut receiver = Receiver::default();
    let oam = CellRun::raw(Vc::new(0, 5), Pti::OAM_END_TO_END, [0x6a; 48]);
    let got = receive(&mut receiver, encode(&oam).next().unwrap()).unwrap();
    assert_eq!((got.vc, got.header(0).pti), (oam.vc, Pti::OAM_END_TO_END));
    let idle = CellRun::raw(Vc::new(0, 0), Pti::USER, [0x6a; 48]);
    assert!(receive(&mut receiver, encode(&idle).next().unwrap()).is_none());
    let f4 = CellRun::raw(Vc::new(7, 4), Pti::USER, [1; 48]);
    assert!(receive(&mut receiver, encode(&f4).next().unwrap()).is_some());
    assert_eq!((receiver.oam, receiver.idle), (2, 1));
}

#[test]
fn one_wrong_bit_of_a_header_is_put_right() {
    let run = CellRun::whole(Pdu::new(vec![9; 40]), Vc::new(0, 100));
    let mut cell = encode(&run).next().unwrap();
    cell[2] ^= 0x10;
    let mut receiver = Receiver::default();
    assert_eq!(receive(&mut receiver, cell).unwrap().vc, run.vc);
    // The next error is only detected.
    assert!(receive(&mut receiver, cell).is_none());
    assert_eq!((receiver.hec.corrected, receiver.hec.discarded), (1, 1));
}

/// Cells of any AAL: none of them says where a PDU ends.
#[test]
fn cells_pass_in_their_order_as_long_as_they_follow_each_other_on_a_vc() {
    let mut receiver = Receiver::default();
    receiver.keep_order(true);
    let cell = |vci, pti, fill: u8| {
        let run = CellRun::raw(Vc::new(0, vci), pti, [fill; PAYLOAD_LEN]);
        encode(&run).next().unwrap()
    };
    let (voice, data) = (|fill| cell(40, Pti::USER, fill), |pti| cell(41, pti, 9));
    let cells = [
        voice(1),
        voice(2),
        data(Pti::USER_END),
        data(Pti::USER),
        voice(3),
        voice(4),
    ];
    let mut runs = Vec::new();
    for (n, cell) in cells.into_iter().enumerate() {
        runs.extend(push(&mut receiver, cell, at(n as u64)));
    }
    runs.extend(end(&mut receiver));
    let told: Vec<_> = runs
        .iter()
        .map(|run| (run.vc.vci, run.count, run.ends_pdu()))
        .collect();
    // The next PDU comes long after the first one, so it is a run of its own.
    let expected = [
        (40, 2, false),
        (41, 1, true),
        (41, 1, false),
        (40, 2, false),
    ];
    assert_eq!(told, expected);
    let payloads: Vec<u8> = runs[3]
        .to_cells()
        .iter()
        .map(|cell| cell.payload[0])
        .collect();
    assert_eq!(payloads, [3, 4]);
    // Each cell has the time of its arrival.
    let times = runs[3].times().unwrap();
    assert_eq!((times.of(0), times.of(1)), (at(4), at(5)));
    assert_eq!((receiver.user, receiver.ends), (6, 1));
}

#[test]
fn pdus_that_follow_each_other_are_one_run() {
    let mut receiver = Receiver::default();
    let cell = |end| {
        let run = CellRun::raw(Vc::new(0, 41), Pti::user(end), [7; PAYLOAD_LEN]);
        encode(&run).next().unwrap()
    };
    let (mut told, mut bucket) = (Vec::new(), Bucket::new(CellRate::OC3));
    let packet = [true, false, true, true, false].map(cell);
    for micros in [0, 20, 40, 60, 80] {
        let now = Instant::ZERO + Duration::from_micros(micros);
        receiver.packet(&packet, |header| header, (&mut bucket, now), &mut told);
    }
    receiver.end(&mut told);
    let runs = runs(told);
    let runs: Vec<_> = (runs.iter())
        .map(|run| (run.count, run.ends(), run.tail()))
        .collect();
    // A PDU that has begun is not divided. The next one after 64 µs begins a run.
    assert_eq!(runs, [(18, 11, 0), (7, 4, 1)]);
    assert_eq!((receiver.user, receiver.ends), (25, 15));
}

/// Cells of VCs that alternate: one run for each VC, in which its cells have their order.
#[test]
fn cells_of_one_vc_are_one_run_between_cells_of_others() {
    let cells: Vec<_> = (0..160_u16)
        .map(|n| {
            // VCI 41 and VCI 1065 have one place, so they end each other's runs.
            let vci = [40, 41, 42, 41 + 1024][usize::from(n % 4)];
            let pti = Pti::user(n % 3 == 0);
            let run = CellRun::raw(Vc::new(0, vci), pti, [n as u8; PAYLOAD_LEN]);
            encode(&run).next().unwrap()
        })
        .collect();
    let take = |order: bool| {
        let (mut receiver, mut told) = (Receiver::default(), Vec::new());
        receiver.keep_order(order);
        let mut bucket = Bucket::new(CellRate::of_cells(u32::MAX));
        for packet in cells.chunks(27) {
            receiver.packet(packet, |header| header, (&mut bucket, at(0)), &mut told);
        }
        receiver.end(&mut told);
        runs(told)
    };
    let (gathered, in_order) = (take(false), take(true));
    assert_eq!((in_order.len(), gathered.len()), (160, 2 + 80));
    let of = |all: &[CellRun], vci: u16| {
        let own = all.iter().filter(|run| run.vc.vci == vci);
        own.flat_map(encode).collect::<Vec<_>>()
    };
    for vci in [40, 41, 42, 41 + 1024] {
        assert_eq!(of(&gathered, vci).len(), 40);
        assert!(of(&gathered, vci) == of(&in_order, vci));
    }
    let line: Vec<_> = in_order.iter().flat_map(encode).collect();
    assert!(line == cells);
}

#[test]
fn a_run_of_cells_without_an_end_has_a_limit() {
    let mut receiver = Receiver::default();
    let run = CellRun::raw(Vc::new(0, 40), Pti::USER, [0; PAYLOAD_LEN]);
    let cell = encode(&run).next().unwrap();
    let runs: Vec<_> = (0..1000)
        .filter_map(|_| push(&mut receiver, cell, at(0)))
        .collect();
    let most = aerostat_node::atm::RawCells::MOST as u16;
    assert!(runs.len() == 5 && runs.iter().all(|run| run.count == most));
}

proptest! {
    /// Whatever is lost, damaged or invented: only SDUs that were sent come out, each on its VC.
    #[test]
    fn never_a_wrong_sdu(
        sdus in prop::collection::vec((32..35_u16, 1..300_usize), 1..12),
        fates in prop::collection::vec((0..12_u8, any::<prop::sample::Index>(), any::<u8>()), 1..60),
        noise in prop::collection::vec(any::<u8>(), CELL_LEN),
    ) {
        let mut receiver = Receiver::default();
        let mut fates = fates.into_iter().cycle();
        let noise: [u8; CELL_LEN] = noise.try_into().unwrap();
        let (mut sent, mut intact) = (Vec::new(), true);
        let mut got = Vec::new();
        for (n, (vci, length)) in sdus.into_iter().enumerate() {
            let sdu: Vec<u8> = (0..length).map(|i| (i * 7 + n) as u8).collect();
            let run = CellRun::whole(Pdu::new(sdu.clone()), Vc::new(0, vci));
            sent.push((run.vc, sdu));
            for mut cell in encode(&run) {
                let (fate, place, mask) = fates.next().unwrap();
                match fate {
                    0 => {
                        intact = false;
                        continue;
                    }
                    1 => {
                        intact = false;
                        cell[place.index(CELL_LEN)] ^= mask;
                    }
                    2 => {
                        intact = false;
                        got.extend(push(&mut receiver, noise, at(1)));
                    }
                    _ => {}
                }
                got.extend(push(&mut receiver, cell, at(1)));
            }
        }
        got.extend(end(&mut receiver));
        let mut got = crate::assembly::sdus(&got);
        for pair in &got {
            // A header whose damage looks like a single wrong bit can move a one-cell PDU to another VC.
            prop_assert!(sent.iter().any(|sent| sent.1 == pair.1));
        }
        if intact {
            // The order is that of each VC.
            got.sort_by_key(|pair| pair.0.vci);
            sent.sort_by_key(|pair| pair.0.vci);
            prop_assert_eq!(got, sent);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// Cells of packets are taken together, and give the same runs, times and counters as one by one, also above the
    /// rate of the link and with headers that are wrong.
    #[test]
    fn cells_that_are_taken_together_count_as_one_by_one(
        spans in prop::collection::vec((0..5_u16, 0..8_u8, 1..200_usize, any::<u8>()), 1..20),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0..5_usize, 1..255_u8), 0..8),
        rate in prop::sample::select(vec![1000, 400_000]),
        in_order in any::<bool>(),
    ) {
        let mut cells = Vec::new();
        for (vci, pti, count, fill) in spans {
            // VC 0.0 are idle cells, 0.3 is F4 OAM.
            let mut run = CellRun::raw(Vc::new(0, vci), Pti::new(pti), [fill; PAYLOAD_LEN]);
            run.clp = fill.is_multiple_of(2);
            let cell = encode(&run).next().unwrap();
            cells.extend(std::iter::repeat_n(cell, count));
        }
        // Twice over the burst of the slow rate.
        let cells = cells.repeat(1 + 9000 / cells.len());
        let mut cells = cells;
        for (place, octet, mask) in damage {
            let place = place.index(cells.len());
            cells[place][octet] ^= mask;
        }
        let take = |step: usize| {
            let (mut receiver, mut told) = (Receiver::default(), Vec::new());
            receiver.keep_order(in_order);
            let mut bucket = Bucket::new(CellRate::of_cells(rate));
            let mut policed = 0;
            for part in cells.chunks(step) {
                let rest = (&mut bucket, at(7));
                policed += receiver.packet(part, |header| header, rest, &mut told);
            }
            receiver.end(&mut told);
            let runs: Vec<_> = runs(told).into_iter().map(|run| {
                let times = run.times().unwrap();
                // Both ends are exact; between them lies rounding.
                let ends = (times.of(0), times.of(run.count - 1));
                (run.vc, run.clp, run.count, encode(&run).collect::<Vec<_>>(), ends)
            }).collect();
            let counters = (receiver.idle, receiver.oam, receiver.user, receiver.ends, policed);
            let hec = (receiver.hec.good, receiver.hec.corrected, receiver.hec.discarded);
            (runs, counters, hec)
        };
        let (one, many) = (take(1), take(700));
        prop_assert_eq!(one.1, many.1);
        prop_assert_eq!(one.2, many.2);
        prop_assert_eq!(one.0.len(), many.0.len());
        for (one, many) in one.0.iter().zip(&many.0) {
            prop_assert_eq!((one.0, one.1, one.2), (many.0, many.1, many.2));
            prop_assert!(one.3 == many.3);
            let near = |a: Instant, b: Instant| a.since(b).max(b.since(a)) <= Duration::from_nanos(2);
            prop_assert!(near(one.4.0, many.4.0) && near(one.4.1, many.4.1));
        }
    }
}
