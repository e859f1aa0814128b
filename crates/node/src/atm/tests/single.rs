//! Connections of single cells (AAL0) at an adapter.

use super::*;
use aerostat_wire::AalType;
use aerostat_wire::aal0::UserCell;
use aerostat_wire::cell::PAYLOAD_LEN;

fn adapter(vci: u16, traffic: TrafficParams) -> Nic {
    let mut nic = Nic::new(CellRate::OC3);
    assert!(nic.open_as(vc(vci), traffic, (AalType::Aal0, 0), None));
    nic
}

fn cell(number: u8) -> UserCell {
    UserCell {
        pti: Pti::new(number & 3),
        clp: number & 4 != 0,
        payload: [number; PAYLOAD_LEN],
    }
}

/// Every payload type of user data and both priorities arrive as they were sent, each cell by itself.
#[test]
fn cells_keep_payload_type_priority_and_payload() {
    let mut near = adapter(60, TrafficParams::ubr(0));
    let mut far = adapter(70, TrafficParams::ubr(0));
    let mut f = fabric(2);
    f.apply(connect(PortVc::new(0, vc(60)), PortVc::new(1, vc(70))))
        .unwrap();
    for number in 0..8 {
        // The label that a program writes does not count.
        let sdu = cell(number).encode(vc(999)).to_vec();
        assert_eq!(near.write(vc(60), sdu, None, Instant::ZERO), Written::Taken);
    }
    assert_eq!(near.unsent(vc(60), Instant::ZERO), 8);
    let mut got = Vec::new();
    while let Some(sent) = near.output_mut().pop(FOREVER, 1) {
        f.receive(0, sent.run, FOREVER, |_| {});
        let run = f
            .output_mut(1)
            .unwrap()
            .pop(FOREVER + Duration::from_secs(1), 1);
        let mut rest = run.map(|departure| departure.run);
        assert!(far.is_single(rest.as_ref().unwrap().vc));
        match far.receive_next(&mut rest, FOREVER) {
            NicEvent::Cells { run } => got.extend(run.to_cells()),
            other => panic!("{other:?}"),
        }
        assert!(rest.is_none());
    }
    for (number, got) in (0..8).zip(&got) {
        let (pti, clp, payload) = (got.header.pti, got.header.clp, got.payload);
        assert_eq!(UserCell { pti, clp, payload }, cell(number));
        assert_eq!(got.header.vc, vc(70));
    }
    assert_eq!(
        (got.len(), near.single.sent, far.single.received),
        (8, 8, 8)
    );
    assert_eq!((far.counters.pdus_out, far.pdus_bad), (0, 0));
    let received = far.vcs().find(|view| view.vc == vc(70)).unwrap().received;
    assert_eq!(
        (received.cells, received.sdus, received.errors()),
        (8, 8, 0)
    );
}

#[test]
fn what_is_no_cell_of_user_data_is_refused() {
    let mut nic = adapter(60, TrafficParams::ubr(0));
    let good = cell(0).encode(vc(60)).to_vec();
    // The header has the order of the machine.
    let mut oam = good.clone();
    let header = u32::from_ne_bytes(good[..4].try_into().unwrap());
    oam[..4].copy_from_slice(&(header | 4 << 1).to_ne_bytes());
    for bad in [
        good[..51].to_vec(),
        [&good[..], &[0]].concat(),
        Vec::new(),
        oam,
    ] {
        assert_eq!(
            nic.write(vc(60), bad, None, Instant::ZERO),
            Written::Refused
        );
    }
    assert_eq!((nic.queued(vc(60)), nic.single.sent), (0, 0));
    // A closed VC takes nothing, and its label can carry PDUs afterwards.
    assert!(nic.close(vc(60)) && !nic.is_single(vc(60)));
    assert_eq!(
        nic.write(vc(60), good.clone(), None, Instant::ZERO),
        Written::Refused
    );
    assert!(nic.open(vc(60), TrafficParams::ubr(0), 0));
    assert_eq!(nic.write(vc(60), good, None, Instant::ZERO), Written::Taken);
    assert_eq!((nic.queued(vc(60)), nic.aal(vc(60))), (2, AalType::Aal5));
}

/// The room of a writer is counted in cells, and the shaper spaces them as its contract says.
#[test]
fn a_writer_fills_the_buffer_and_the_shaper_spaces_its_cells() {
    let mut nic = adapter(60, TrafficParams::cbr(10_000, 0));
    let sdu = || cell(0).encode(vc(60)).to_vec();
    let mut taken = 0;
    let back = loop {
        match nic.write(vc(60), sdu(), None, Instant::ZERO) {
            Written::Taken => taken += 1,
            other => break other,
        }
        assert!(taken < 10_000, "no bound");
    };
    assert_eq!(back, Written::Full(sdu().into()));
    // As many as a buffer of AAL5 has cells, and the cell that is on its way.
    assert!((4096..=4097).contains(&taken), "{taken}");
    let again = nic.room_at(vc(60), Instant::ZERO).unwrap();
    assert!(again > Instant::ZERO);
    let mut cells = drain(nic.output_mut(), again);
    assert_eq!(nic.write(vc(60), sdu(), None, again), Written::Taken);
    cells.extend(drain(nic.output_mut(), FOREVER));
    let times: Vec<_> = cells.into_iter().map(|(at, ..)| at).collect();
    assert_eq!(times.len(), taken + 1);
    for (number, at) in times.iter().enumerate() {
        let exact = number as u64 * 100_000;
        let early = exact.saturating_sub(3000);
        assert!(
            (early..=exact + 3000).contains(&at.as_nanos()),
            "{number}: {at:?}"
        );
    }
}

/// AAL5 at one end and single cells at the other: the cells of a PDU arrive one by one.
#[test]
fn cells_of_a_pdu_arrive_one_by_one() {
    let mut far = adapter(70, TrafficParams::ubr(0));
    let mut rest = Some(CellRun::whole(pdu(100), vc(70)));
    let mut cells = Vec::new();
    while rest.is_some() {
        match far.receive_next(&mut rest, Instant::ZERO) {
            NicEvent::Cells { run } => cells.extend(run.to_cells()),
            other => panic!("{other:?}"),
        }
    }
    let ends: Vec<_> = cells.iter().map(|cell| cell.header.pti.value()).collect();
    assert_eq!(ends, [0, 0, 1]);
}

/// OAM cells are not the program's: the adapter answers a loopback request.
#[test]
fn the_adapter_answers_loopbacks() {
    let mut near = adapter(60, TrafficParams::ubr(0));
    let mut far = adapter(60, TrafficParams::ubr(0));
    near.ping(vc(60), false, 7, Instant::ZERO).unwrap();
    let request = near.output_mut().pop(FOREVER, 1).unwrap().run;
    assert!(matches!(far.receive(request, FOREVER), NicEvent::Answered));
    assert_eq!(far.single.received, 0);
}
