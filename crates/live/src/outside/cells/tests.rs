use super::*;
use aerostat_wire::cell::Pti;
use proptest::prelude::*;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn sdu(run: &CellRun) -> &[u8] {
    run.whole_pdu().unwrap().sdu()
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
    let got = Receiver::default().push(cells[0], at(0)).unwrap();
    assert_eq!((got.vc, sdu(&got)), (run.vc, &[9; 40][..]));
    // 12 bits of VPI.
    let wide = CellRun::whole(Pdu::new(vec![9; 40]), Vc::new(0x801, 100));
    let cell = encode(&wide).next().unwrap();
    assert_eq!(Receiver::default().push(cell, at(0)).unwrap().vc, wide.vc);
}

#[test]
fn oam_passes_and_idle_cells_do_not() {
    let mut receiver = Receiver::default();
    let oam = CellRun::raw(Vc::new(0, 5), Pti::OAM_END_TO_END, [0x6a; 48]);
    let got = receiver.push(encode(&oam).next().unwrap(), at(0)).unwrap();
    assert_eq!(
        (got.vc, got.content_pti()),
        (oam.vc, Some(Pti::OAM_END_TO_END))
    );
    let idle = CellRun::raw(Vc::new(0, 0), Pti::USER, [0x6a; 48]);
    assert!(
        receiver
            .push(encode(&idle).next().unwrap(), at(0))
            .is_none()
    );
    let f4 = CellRun::raw(Vc::new(7, 4), Pti::USER, [1; 48]);
    assert!(receiver.push(encode(&f4).next().unwrap(), at(0)).is_some());
    assert_eq!((receiver.oam, receiver.idle), (2, 1));
}

trait ContentPti {
    fn content_pti(&self) -> Option<Pti>;
}

impl ContentPti for CellRun {
    fn content_pti(&self) -> Option<Pti> {
        Some(self.header(0).pti)
    }
}

#[test]
fn one_wrong_bit_of_a_header_is_put_right() {
    let run = CellRun::whole(Pdu::new(vec![9; 40]), Vc::new(0, 100));
    let mut cell = encode(&run).next().unwrap();
    cell[2] ^= 0x10;
    let mut receiver = Receiver::default();
    assert_eq!(receiver.push(cell, at(0)).unwrap().vc, run.vc);
    // The next error is only detected.
    assert!(receiver.push(cell, at(0)).is_none());
    assert_eq!((receiver.hec.corrected, receiver.hec.discarded), (1, 1));
}

#[test]
fn half_a_pdu_times_out_and_does_not_spoil_the_next() {
    let run = CellRun::whole(Pdu::new(vec![9; 400]), Vc::new(0, 100));
    let cells: Vec<_> = encode(&run).collect();
    let mut receiver = Receiver::default();
    for cell in &cells[..3] {
        assert!(receiver.push(*cell, at(0)).is_none());
    }
    let got: Vec<_> = cells
        .iter()
        .filter_map(|cell| receiver.push(*cell, at(5000)))
        .collect();
    assert_eq!(got.len(), 1);
    assert_eq!((receiver.timeouts, receiver.vcs.len()), (1, 0));
}

#[test]
fn vcs_in_the_middle_of_a_pdu_are_limited() {
    let mut receiver = Receiver::default();
    let begin = |vci: u16| {
        let run = CellRun::whole(Pdu::new(vec![9; 400]), Vc::new(0, vci));
        encode(&run).next().unwrap()
    };
    for vci in 32..1032 {
        assert!(receiver.push(begin(vci), at(0)).is_none());
    }
    assert_eq!(receiver.vcs.len(), MAX_VCS);
    assert_eq!(receiver.no_room, 1000 - MAX_VCS as u64);
    // Later there is room again.
    receiver.push(begin(2000), at(5000));
    assert_eq!((receiver.vcs.len(), receiver.timeouts), (1, MAX_VCS as u64));
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
                        got.extend(receiver.push(noise, at(1)));
                    }
                    _ => {}
                }
                got.extend(receiver.push(cell, at(1)));
            }
        }
        let got: Vec<_> = got
            .iter()
            .filter_map(|run| Some((run.vc, run.whole_pdu()?.sdu().to_vec())))
            .collect();
        for pair in &got {
            // A header whose damage looks like a single wrong bit can move a one-cell PDU to another VC.
            prop_assert!(sent.iter().any(|sent| sent.1 == pair.1));
        }
        if intact {
            prop_assert_eq!(got, sent);
        }
    }
}
