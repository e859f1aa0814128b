//! A run of cells of a train is the run of the cells of its PDUs.

use super::super::pdu_train::PduTrain;
use super::super::*;
use crate::offload::{GsoType, SuperFrame, VnetHeader};
use aerostat_proto::{Duration, Instant};
use aerostat_wire::cell::Cell;
use aerostat_wire::{TrafficParams, Vc};
use proptest::prelude::*;

const VC: Vc = Vc::new(0, 100);
/// A cell takes 100 ns.
const LINE: CellRate = CellRate::of_cells(10_000_000);

/// A train of the segments of `octets` octets of TCP, or of so many octets that a program has written.
fn train(octets: usize, size: u16, written: bool) -> PduTrain {
    if written {
        let octets = (0..octets).map(|n| n as u8).collect();
        return PduTrain::new(Sdus::new(octets, size.into())).unwrap();
    }
    let total = ((40 + octets) as u16).to_be_bytes();
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0, total[0], total[1], 0, 7, 0, 0, 64, 6, 0, 0]);
    frame.extend([10, 1, 0, 1, 10, 1, 0, 2]);
    frame.extend([1; 12]);
    frame.extend([0x50, 0x18, 1, 0, 0, 0, 0, 0]);
    frame.extend((0..octets).map(|n| n as u8));
    let header = VnetHeader {
        gso_type: GsoType::TcpV4,
        gso_size: size,
        ..VnetHeader::default()
    };
    PduTrain::new(SuperFrame::new(&header, frame, 0).unwrap()).unwrap()
}

/// The same cells, as one run for each PDU.
fn singles(train: &PduTrain) -> Vec<CellRun> {
    let pdus = (0..train.count()).map(|index| train.pdu(index));
    pdus.map(|pdu| CellRun::whole(pdu, VC)).collect()
}

fn cells(runs: &[CellRun]) -> Vec<Cell> {
    runs.iter().flat_map(CellRun::to_cells).collect()
}

proptest! {
    #[test]
    fn any_part_of_a_train_has_the_cells_and_ends_of_its_pdus(
        octets in 1_usize..9000, size in 60_u16..2000, at in any::<u16>(), turn in any::<u16>(),
        written in any::<bool>(),
    ) {
        let train = train(octets, size, written);
        let all = cells(&singles(&train));
        let mut rest = CellRun::of_train(train.clone(), VC);
        prop_assert_eq!(usize::from(rest.count), all.len());
        prop_assert_eq!(rest.ends(), train.count());
        let front = rest.split_off_front(at % rest.count);
        let front = front.filter(|front| front.count > 0);
        let parts: Vec<CellRun> = front.into_iter().chain([rest]).collect();
        prop_assert_eq!(&cells(&parts), &all);
        for part in &parts {
            let own = part.to_cells();
            let ends = own.iter().filter(|cell| cell.is_end()).count();
            prop_assert_eq!(usize::from(part.ends()), ends);
            let tail = own.iter().rev().take_while(|cell| !cell.is_end()).count();
            prop_assert_eq!(usize::from(part.tail()), tail);
            prop_assert_eq!(part.ends_pdu(), own.last().unwrap().is_end());
            let split: Vec<CellRun> = part.clone().singles().collect();
            prop_assert_eq!(cells(&split), own);
            prop_assert!(split.iter().all(|run| run.train().is_none() && run.ends() <= 1));
            let taken = train.turn(part.first(), turn);
            prop_assert!(taken >= 1 && part.first() + taken <= train.cells());
        }
    }

    /// Whatever parts arrive, the receiver gets the PDUs whose cells arrived, and the rest as errors.
    #[test]
    fn a_receiver_gets_the_same_from_parts_of_a_train(
        octets in 1_usize..9000, size in 60_u16..2000, written in any::<bool>(),
        cuts in proptest::collection::vec((1_u16..200, any::<bool>()), 1..8),
    ) {
        let train = train(octets, size, written);
        let mut parts = Vec::new();
        let mut rest = CellRun::of_train(train, VC);
        for (length, lost) in cuts {
            if let Some(front) = rest.split_off_front(length) {
                parts.extend((!lost).then_some(front));
            }
        }
        parts.push(rest);
        let mut together = RunReassembler::new(0);
        let mut got = Vec::new();
        for part in parts.clone() {
            let mut rest = Some(part);
            while rest.is_some() {
                if let Some(part) = together.take_train(&mut rest) {
                    got.extend(part.pdus().map(|pdu| pdu.sdu().to_vec()));
                } else if let Some(run) = CellRun::next_single(&mut rest)
                    && let Some(Ok(received)) = together.push(run)
                {
                    got.push(received.pdu.sdu().to_vec());
                }
            }
        }
        let mut alone = RunReassembler::new(0);
        let runs = parts.into_iter().flat_map(CellRun::singles);
        let want: Vec<Vec<u8>> = runs
            .filter_map(|run| Some(alone.push(run)?.ok()?.pdu.sdu().to_vec()))
            .collect();
        prop_assert_eq!(got, want);
        prop_assert_eq!(together.counters, alone.counters);
    }
}

/// Cells that pass a fabric with this contract, and the counters of the connection.
fn passes(runs: Vec<CellRun>, traffic: TrafficParams, police: bool) -> (Vec<Cell>, String) {
    let mut fabric = Fabric::new([0; 16]);
    for _ in 0..2 {
        fabric.add_port(LINE, PortLimits::SWITCH);
    }
    let (from, to) = (PortVc::new(0, VC), PortVc::new(1, VC));
    fabric
        .apply(FabricOp::Connect {
            from,
            to,
            traffic,
            police: police.into(),
        })
        .unwrap();
    let now = Instant::from_secs(1);
    for run in runs {
        fabric.receive(0, run, now, |_| {});
    }
    let mut left = Vec::new();
    let later = now + Duration::from_secs(10);
    let output = fabric.output_mut(1).unwrap();
    while let Some(departure) = output.pop(later, u16::MAX) {
        left.extend(departure.run.to_cells());
    }
    let totals = fabric.output(1).unwrap().totals();
    let known = fabric.connections().next().unwrap().counters;
    (left, format!("{totals:?} {known:?}"))
}

#[test]
fn a_policer_cuts_a_train_where_it_cuts_its_pdus() {
    let train = train(20_000, 1448, false);
    let begin = Timing::even(Instant::from_secs(1), 0, LINE);
    let mut first = 0;
    let timed = singles(&train).into_iter().map(|run| {
        let timing = begin.from_cell(first);
        first += run.count;
        run.timed(timing)
    });
    let traffic = TrafficParams {
        max_cdv: Duration::from_micros(1),
        ..TrafficParams::cbr(5_000_000, 0)
    };
    let alone = passes(timed.collect(), traffic, true);
    let together = passes(vec![CellRun::of_train(train, VC)], traffic, true);
    assert!(together.0.len() > 200 && together.0.len() < 300);
    assert_eq!(together.0.len(), alone.0.len());
    assert_eq!(together.1, alone.1);
}

/// A train of more cells than the queue takes loses the PDUs that find no room, and no others.
#[test]
fn a_train_that_is_larger_than_a_queue_is_not_dropped_whole() {
    let ubr = TrafficParams::ubr(0);
    let trains: Vec<PduTrain> = (0..5).map(|_| train(60_000, 1448, false)).collect();
    let together = trains.iter().cloned();
    let together = together.map(|train| CellRun::of_train(train, VC)).collect();
    let together = passes(together, ubr, false);
    let alone = passes(trains.iter().flat_map(singles).collect(), ubr, false);
    assert!(together.0.len() > 3000 && together.0.len() < 5 * 1300);
    assert_eq!(together, alone);
}

/// Departures of a port with trains in time: the times of the cells that matter, all cells, and the port's counters.
fn sends(runs: Vec<CellRun>) -> (Vec<u64>, Vec<Cell>, String) {
    let mut port = OutputPort::new(LINE, PortLimits::SWITCH);
    let config = QueueConfig::switch(TrafficParams::ubr(0));
    let queue = port.open(VC, config).unwrap();
    for run in runs {
        port.enqueue(queue, run, Instant::ZERO);
    }
    let mut trains = Trains::default();
    trains.add_line(0, Duration::ZERO, true, true);
    trains.set_single(0, false);
    let left = port.run(&mut trains, 0, (1_000_000_000, u32::MAX));
    let (mut times, mut sent) = (Vec::new(), Vec::new());
    while let Some((at, id)) = trains.due(0) {
        trains.pop_due(0);
        times.push(at);
        while let Some(run) = trains.take(id, (at, u32::MAX), 1) {
            sent.extend(run.to_cells());
        }
    }
    assert_eq!(left, sent.len() as u64);
    (times, sent, format!("{:?}", port.totals()))
}

/// Cells of a train of PDUs are never a train in time: each of them matters. They are counted as those of their PDUs.
#[test]
fn a_train_of_pdus_is_sent_cell_by_cell_among_trains_in_time() {
    let train = train(5000, 1448, false);
    let (times, cells, totals) = sends(vec![CellRun::of_train(train.clone(), VC)]);
    let all = 1..=u64::from(train.cells());
    assert_eq!(times, all.map(|cell| cell * 100).collect::<Vec<_>>());
    let (ends, same, counted) = sends(singles(&train));
    assert_eq!((cells, totals), (same, counted));
    assert_eq!(ends.len(), usize::from(train.count()));
}
