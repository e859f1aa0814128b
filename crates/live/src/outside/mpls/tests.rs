use super::super::cable::tests::{A, B, C, in_namespace};
use super::*;
use crate::assembly::{Assembled, Assembly};
use crate::namespace::ip;
use crate::outside::tests::bench::Bench;
use aerostat_lab::model::{Gathering, SduWire};
use aerostat_node::atm::Pdu;
use aerostat_node::inspect::Value;
use aerostat_proto::Duration;
use aerostat_wire::cell::Pti;
use aerostat_wire::{MacAddr, Vc};

const TRUNK: Vc = Vc::new(0, 40);
const PVC: Vc = Vc::new(3, 100);

fn labels(outgoing: &[u32], incoming: u32) -> Labels {
    Labels {
        outgoing: outgoing.to_vec(),
        incoming,
    }
}

/// A link with a pseudowire of cells and one of SDUs; the other end has the labels exchanged.
fn model(interface: &str, peer: MacAddr, [a, b, c, d]: [u32; 4], word: bool) -> Mpls {
    Mpls {
        interface: interface.into(),
        peer,
        cells: Some(CellWire {
            labels: labels(&[a], b),
            scope: Scope::Port,
            gathering: Gathering {
                cells: 28,
                wait: Duration::from_micros(100),
            },
            word,
            sequence: word,
        }),
        sdus: vec![SduWire {
            vc: PVC,
            labels: labels(&[c], d),
            sequence: true,
        }],
    }
}

const WEST: [u32; 4] = [1000, 2000, 1001, 2001];
const EAST: [u32; 4] = [2000, 1000, 2001, 1001];

/// Two links on a cable.
type Pair = Bench<Link>;

impl Pair {
    fn opened(west: &Mpls, east: &Mpls) -> Self {
        let open = |model: &&Mpls, registry: &Registry, token| {
            Link::new(model, CellRate::OC3, registry, token)
        };
        Self::of(&[west, east], open).unwrap()
    }
    fn new(west: &Mpls, east: &Mpls) -> Self {
        let mut pair = Self::opened(west, east);
        pair.until(|pair| pair.links.iter().all(|link| link.cable.own().is_some()));
        // An interface that has just come up may lose the first frames.
        let mut turns = 0_u32;
        pair.until(|pair| {
            if turns.is_multiple_of(50) {
                pair.links[0].send(&CellRun::whole(Pdu::new(vec![1]), TRUNK));
                pair.links[1].send(&CellRun::whole(Pdu::new(vec![1]), TRUNK));
            }
            turns += 1;
            (0..2).all(|end| !pair.runs(end).is_empty())
        });
        pair.settle();
        pair
    }
    /// Lets what is under way arrive, and forgets it.
    fn settle(&mut self) {
        let at = self.clock.now() + Duration::from_millis(60);
        self.until(|pair| pair.clock.now() >= at);
        self.told.iter_mut().for_each(Vec::clear);
    }
    /// Sends from west and returns what comes out in the east.
    fn cross(&mut self, run: &CellRun) -> CellRun {
        self.told[1].clear();
        self.links[0].send(run);
        self.until(|pair| !pair.runs(1).is_empty());
        self.runs(1)[0].clone()
    }
    /// Sends a PDU from west and returns its connection, and what a receiver in the east gets; the note is the
    /// congestion bit.
    fn cross_pdu(&mut self, run: &CellRun) -> (Vc, Assembled<bool>) {
        self.told[1].clear();
        self.links[0].send(run);
        let receive = |pair: &Self| {
            let mut assembly = Assembly::default();
            let mut runs = pair.runs(1).into_iter();
            runs.find_map(|run| {
                let note = |congested: &mut bool| *congested = run.congested;
                let done = assembly.take(run.vc, run, |_| true, note)?;
                Some((run.vc, done))
            })
        };
        self.until(|pair| receive(pair).is_some());
        receive(self).unwrap()
    }
    /// Sends a packet as it is from the west's interface.
    fn raw(&self, to: MacAddr, from: MacAddr, packet: &[u8]) {
        let frame = [&to.0[..], &from.0, &[0x88, 0x47], packet].concat();
        self.links[0].cable.send_raw(&frame).unwrap();
    }
    fn column(&self, end: usize, table: usize, row: usize, column: &str) -> u64 {
        let tables = self.links[end].tables();
        let place = tables[table]
            .columns
            .iter()
            .position(|name| *name == column);
        let cell = &tables[table].rows[row][place.unwrap_or_else(|| panic!("no column {column}"))];
        match cell {
            Value::Number(number) => *number,
            other => panic!("{column}: {other:?}"),
        }
    }
}

#[test]
fn cells_and_sdus_cross_in_pseudowires_of_their_own() {
    in_namespace(|| {
        let mut pair = Pair::new(&model("a", B, WEST, true), &model("b", A, EAST, true));
        for length in [1, 40, 1400] {
            let sdu: Vec<u8> = (0..length).map(|n| n as u8).collect();
            for (vc, uu) in [(TRUNK, 0x42), (PVC, 1)] {
                let mut run = CellRun::whole(Pdu::with(sdu.clone(), uu, true), vc);
                run.congested = true;
                let (label, got) = pair.cross_pdu(&run);
                assert_eq!((label, got.pdu.sdu(), got.pdu.uu()), (vc, &sdu[..], uu));
                assert_eq!((got.clp, got.note), (true, true), "{vc}");
            }
        }
        // OAM cells, in both modes.
        for vc in [TRUNK, PVC] {
            let got = pair.cross(&CellRun::raw(vc, Pti::OAM_END_TO_END, [0x18; 48]));
            let cell = &got.to_cells()[0];
            assert_eq!(
                (cell.header.vc, cell.header.pti, cell.payload),
                (vc, Pti::OAM_END_TO_END, [0x18; 48])
            );
        }
        // SDUs of the one pseudowire did not go by the other one.
        assert_eq!(pair.column(0, 1, 1, "packets_out"), 4);
        assert_eq!(pair.column(1, 1, 1, "packets_in"), 4);
        for column in ["bad_length", "bad_word", "missing", "late", "policed"] {
            for row in 0..2 {
                assert_eq!(pair.column(1, 1, row, column), 0, "{column}");
            }
        }
        // An SDU that is longer than the interface allows is lost alone.
        pair.links[0].send(&CellRun::whole(Pdu::new(vec![7; 9000]), PVC));
        pair.cross(&CellRun::whole(Pdu::new(vec![7; 9]), PVC));
        assert_eq!(pair.column(0, 1, 1, "too_long_out"), 1);
        // When the line is down nothing waits.
        ip(&["link", "set", "dev", "a", "down"])?;
        pair.until(|pair| pair.links[0].cable.own().is_none());
        pair.links[0].send(&CellRun::whole(Pdu::new(vec![7; 9]), PVC));
        assert_eq!(pair.column(0, 1, 1, "dropped_out"), 1);
        assert_eq!(pair.column(0, 1, 1, "unsent"), 0);
        Ok(())
    });
}

#[test]
fn wrong_labels_stacks_words_and_numbers_are_counted_and_harm_nobody() {
    in_namespace(|| {
        let mut pair = Pair::new(&model("a", B, WEST, true), &model("b", A, EAST, true));
        let entry =
            |label: u32, last: bool| (label << 12 | u32::from(last) << 8 | 64).to_be_bytes();
        let cell = [
            &[0, 0, 2, 0x82][..],
            &aerostat_wire::aal5::encode_pdu(&[5; 10], 0),
        ]
        .concat();
        let cells = |word: [u8; 4]| [&entry(1000, true)[..], &word, &cell].concat();
        let sdu = |word: [u8; 4], payload: &[u8]| [&entry(1001, true)[..], &word, payload].concat();
        let before = pair.column(1, 1, 0, "missing");
        for packet in [
            // Stacks: none, one without an end, one that is too deep.
            vec![],
            entry(1000, false).to_vec(),
            [entry(1000, false).repeat(8), entry(1000, true).to_vec()].concat(),
            // Labels: an unknown one, one above ours, one of the other direction.
            [&entry(77, true)[..], &[0; 56]].concat(),
            [&entry(77, false)[..], &cells([0; 4])].concat(),
            [&entry(2000, true)[..], &[0; 56]].concat(),
            // Cells: too short, of another first nibble, of the associated channel.
            entry(1000, true).to_vec(),
            [&cells([0; 4])[..], &[0]].concat(),
            cells([0x45, 0, 0, 0]),
            cells([0x10, 0, 0, 7]),
            // SDUs: without a payload, shorter than they say, of another nibble, a user cell with T.
            sdu([0, 0, 0, 0], &[]),
            sdu([0, 60, 0, 0], &[1; 20]),
            sdu([0x60, 0, 0, 0], &[1; 20]),
            sdu([8, 0, 0, 0], &cell),
        ] {
            pair.raw(B, A, &packet);
        }
        // Strangers, in the sense of MAC addresses.
        pair.raw(B, C, &cells([0; 4]));
        pair.raw(C, A, &cells([0; 4]));
        // A number far ahead, then an old one.
        pair.raw(B, A, &sdu([0, 25, 0x10, 0], &[1; 21]));
        pair.raw(B, A, &sdu([0, 25, 0x0f, 0], &[1; 21]));
        // What is valid still passes, also behind explicit null.
        pair.told[1].clear();
        pair.raw(B, A, &[&entry(0, false)[..], &cells([0; 4])].concat());
        pair.until(|pair| {
            pair.column(1, 2, 0, "ends_of_pdus") >= 1
                && !pair.runs(1).is_empty()
                && pair.runs(1).iter().any(|run| run.vc == TRUNK)
        });
        let count = |table, row, column| pair.column(1, table, row, column);
        // An Ethernet pads the empty packet: its stack has no end.
        assert_eq!(count(0, 0, "bad_stack"), 3);
        assert_eq!(count(0, 0, "unknown_label"), 3);
        assert_eq!(count(0, 0, "strangers"), 2);
        assert_eq!(
            (
                count(1, 0, "bad_length"),
                count(1, 0, "bad_word"),
                count(1, 0, "channel")
            ),
            (2, 1, 1)
        );
        assert_eq!((count(1, 1, "bad_length"), count(1, 1, "bad_word")), (2, 2));
        assert_eq!((count(1, 1, "late"), count(1, 0, "missing")), (1, before));
        let sdus = pair.runs(1).iter().filter(|run| run.vc == PVC).count();
        assert_eq!(sdus, 1, "the packet far ahead");
        Ok(())
    });
}

#[test]
fn a_channel_keeps_its_own_label_at_both_ends_and_others_are_counted() {
    in_namespace(|| {
        let mut west = model("a", B, WEST, false);
        let mut east = model("b", A, EAST, false);
        (west.sdus, east.sdus) = (Vec::new(), Vec::new());
        let scope = |mpls: &mut Mpls, scope| mpls.cells.as_mut().unwrap().scope = scope;
        scope(&mut west, Scope::Channel(TRUNK));
        scope(&mut east, Scope::Channel(Vc::new(7, 70)));
        let mut pair = Pair::opened(&west, &east);
        let mut turns = 0_u32;
        pair.until(|pair| {
            if turns.is_multiple_of(50) {
                pair.links[0].send(&CellRun::whole(Pdu::new(vec![3; 100]), TRUNK));
            }
            turns += 1;
            !pair.runs(1).is_empty()
        });
        assert_eq!(pair.runs(1)[0].vc, Vc::new(7, 70));
        pair.links[0].send(&CellRun::whole(Pdu::new(vec![3; 100]), Vc::SIGNALLING));
        assert_eq!(pair.column(0, 0, 0, "uncarried_out"), 3);
        Ok(())
    });
}

#[test]
fn labels_have_their_ttl_and_the_last_one_ends_the_stack() {
    assert_eq!(
        stack(&labels(&[16, 1000], 5)),
        [0, 1, 0, 255, 0, 0x3e, 0x81, 2]
    );
}
