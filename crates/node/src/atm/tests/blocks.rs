//! Runs of cells with their own octets that go across the ends of PDUs: what becomes of them is what becomes of their
//! PDUs one by one, and of their cells one by one.

use super::*;
use std::sync::Arc;

/// Division of the cells that come together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// As long as they can be.
    Whole,
    /// A run for each PDU.
    Pdus,
    /// A run for each cell.
    Cells,
}

/// Cells that come together on one VC.
#[derive(Clone, Debug)]
struct Batch {
    gap: Duration,
    vci: u16,
    clp: bool,
    /// By cell, whether it ends a PDU.
    ends: Vec<bool>,
    /// Distance of the cells at their source.
    distance: Duration,
}

fn batches() -> impl Strategy<Value = Vec<Batch>> {
    let ends = prop_oneof![
        proptest::collection::vec(any::<bool>(), 1..60),
        proptest::collection::vec(Just(true), 1..60),
        proptest::collection::vec(proptest::bool::weighted(0.05), 1..172),
    ];
    let batch = (0_u64..200, 1_u16..4, any::<bool>(), ends, 0_u64..8);
    let batch = batch.prop_map(|(gap, vci, clp, ends, distance)| Batch {
        gap: Duration::from_micros(gap),
        vci,
        clp,
        ends,
        distance: Duration::from_micros(distance),
    });
    proptest::collection::vec(batch, 1..40)
}

/// A cell that left: its VCI, number, priority, congestion and payload type.
type Gone = (u16, u8, bool, bool, u8);

/// Everything that cells can change.
#[derive(Debug, PartialEq)]
struct Outcome {
    /// The cells that left, by VC, in their order.
    gone: BTreeMap<u16, Vec<Gone>>,
    queues: Vec<QueueView>,
    connections: Vec<(CellCounters, UpcCounters)>,
    inputs: CellCounters,
}

fn outcome(
    batches: &[Batch],
    (traffic, police): (&TrafficParams, Policing),
    (limits, turns, timed): (PortLimits, bool, bool),
    form: Form,
) -> Outcome {
    let mut fabric = Fabric::new([9; 16]);
    for _ in 0..2 {
        fabric.add_port(CellRate::OC3, limits);
    }
    for vci in 1..4 {
        let [from, to] = [0, 1].map(|port| PortVc::new(port, vc(vci)));
        let connect = FabricOp::Connect {
            from,
            to,
            traffic: *traffic,
            police,
        };
        fabric.apply(connect).unwrap();
    }
    let mut gone: BTreeMap<u16, Vec<Gone>> = BTreeMap::new();
    let mut leave = |fabric: &mut Fabric, until: Instant| {
        let port = fabric.output_mut(1).unwrap();
        while let Some(at) = port.next_departure().filter(|at| *at <= until) {
            let departure = match turns {
                true => port.pop_turn(at, false),
                false => port.pop(at, 1),
            };
            for cell in departure.expect("a due departure").run.to_cells() {
                let header = cell.header;
                let own = gone.entry(header.vc.vci).or_default();
                let (clp, pti) = (header.clp, header.pti);
                own.push((
                    header.vc.vci,
                    cell.payload[0],
                    clp,
                    pti.congested(),
                    pti.value(),
                ));
            }
        }
    };
    let (mut now, mut number) = (Instant::from_secs(1), 0_u8);
    for batch in batches {
        now += batch.gap;
        leave(&mut fabric, now);
        let mut block = RawCells::default();
        for end in &batch.ends {
            assert!(block.takes(Pti::user(*end)));
            block.push(Pti::user(*end), &[number; 48]);
            number = number.wrapping_add(1);
        }
        if timed {
            let span = batch.distance * (batch.ends.len() as u32 - 1);
            block.set_timing(Timing::spread(now, now + span, batch.ends.len() as u16));
        }
        let run = CellRun::of_raw(vc(batch.vci), batch.clp, Arc::new(block)).unwrap();
        let number = batch.ends.iter().filter(|end| **end).count();
        assert_eq!(usize::from(run.ends()), number);
        let mut feed = |run: CellRun| fabric.receive(0, run, now, |_| {});
        match form {
            Form::Whole => drop(feed(run)),
            Form::Pdus => run.singles().for_each(|run| drop(feed(run))),
            Form::Cells => {
                let mut rest = run;
                while let Some(cell) = rest.split_off_front(1) {
                    feed(cell);
                }
                feed(rest);
            }
        }
    }
    leave(&mut fabric, FOREVER);
    Outcome {
        gone,
        queues: fabric.output(1).unwrap().views().collect(),
        connections: (fabric.connections())
            .map(|one| (one.counters, one.upc))
            .collect(),
        inputs: fabric.input_counters(0).unwrap(),
    }
}

fn small(frames: u32) -> PortLimits {
    let mut own = Limits::of(frames);
    own.mark = frames / 3;
    PortLimits {
        best_effort: Limits::of(2 * frames),
        best_effort_vc: own,
        ..PortLimits::SWITCH
    }
}

proptest! {
    /// Queues see the PDUs inside a run: early and partial discard, low priority, marks and all counters are those of
    /// single cells, in small buffers and in large ones.
    #[test]
    fn queues_treat_a_run_as_its_cells(
        batches in batches(),
        frames in prop_oneof![4_u32..200, Just(4000)],
        discards in any::<bool>(),
    ) {
        let traffic = TrafficParams { frame_discard: Some(discards), ..TrafficParams::ubr(0) };
        let contract = (&traffic, Policing::Off);
        let of = |form| outcome(&batches, contract, (small(frames), false, false), form);
        let cells = of(Form::Cells);
        prop_assert_eq!(&of(Form::Whole), &cells);
        prop_assert_eq!(&of(Form::Pdus), &cells);
    }

    /// Cells that come one by one, though they are handed over at once, are policed each at its own time. With them a
    /// run is its PDUs one by one, also in small buffers, and where no buffer fills, its cells one by one.
    #[test]
    fn policers_treat_a_run_as_its_cells(
        batches in batches(),
        frames in prop_oneof![4_u32..200, Just(8000)],
        tags in any::<bool>(),
    ) {
        let category = Some(ServiceCategory::NrtVbr);
        let vbr = TrafficParams { category, scr: 50_000, mbs: 20, clp0: tags, tagging: tags, ..TrafficParams::cbr(200_000, 0) };
        let ubr = TrafficParams { frame_discard: Some(true), max_pcr: Some(100_000), ..TrafficParams::ubr(0) };
        for traffic in [vbr, ubr] {
            let of = |form, limits| outcome(&batches, (&traffic, Policing::All), (limits, false, true), form);
            prop_assert_eq!(&of(Form::Whole, small(frames)), &of(Form::Pdus, small(frames)));
            let large = PortLimits { guaranteed: Limits::plain(8000), guaranteed_vc: Limits::plain(8000), ..small(8000) };
            prop_assert_eq!(&of(Form::Whole, large), &of(Form::Cells, large));
        }
    }

    /// A driver that takes turns moves the same cells, in the same order within each VC.
    #[test]
    fn turns_move_the_cells_of_a_run_in_order(batches in batches()) {
        let traffic = TrafficParams::ubr(0);
        let contract = (&traffic, Policing::Off);
        let of = |form, turns| outcome(&batches, contract, (small(8000), turns, true), form);
        let (turns, cells) = (of(Form::Whole, true), of(Form::Cells, false));
        prop_assert_eq!(turns.gone, cells.gone);
        prop_assert_eq!(turns.connections, cells.connections);
    }
}
