use super::*;
use crate::clock::Clock;
use crate::namespace::ip;
use crate::outside::cable::tests::{A, B, C, cable, in_namespace};
use crate::outside::tests::bench::Bench;
use aerostat_node::atm::Pdu;
use aerostat_proto::Duration;
use aerostat_wire::Vc;
use mio::Poll;

const MANY: Packing = Packing::Many {
    cells: 28,
    wait: Duration::from_micros(100),
    word: true,
};

impl Bench<Link> {
    fn new(ends: &[(&str, MacAddr)]) -> Self {
        let open = |end: &(&str, MacAddr), registry: &Registry, token| {
            Link::new(*end, MANY, CellRate::OC3, registry, token)
        };
        Self::of(ends, open).unwrap()
    }
    /// Sends until a frame has arrived: an interface that has just come up may lose the first frames.
    fn cross(&mut self, from: usize, to: usize, run: &CellRun) {
        let mut turns = 0_u32;
        self.until(|bench| {
            if turns.is_multiple_of(50) {
                bench.links[from].send(run);
            }
            turns += 1;
            !bench.sdus(to).is_empty()
        });
    }
    /// Sends cells from the first link to the second until they have arrived, and forgets them.
    fn cross_cells(&mut self, run: &CellRun) {
        self.until(|bench| {
            bench.links[0].send(run);
            bench.count(1, |event| matches!(event, Event::Cells(_))) > 0
        });
        let mut turns = 0;
        self.until(|_| {
            turns += 1;
            turns > 20
        });
        self.told[1].clear();
    }
    fn count(&self, link: usize, wanted: fn(&Event) -> bool) -> usize {
        self.told[link].iter().filter(|event| wanted(event)).count()
    }
}

fn up(event: &Event) -> bool {
    matches!(event, Event::Up)
}

fn down(event: &Event) -> bool {
    matches!(event, Event::Down)
}

#[test]
fn cells_cross_a_cable_whose_ends_go_and_come() {
    in_namespace(|| {
        let mut bench = Bench::new(&[("a", B), ("b", A)]);
        bench.until(|bench| bench.count(0, up) == 1 && bench.count(1, up) == 1);
        let sdu: Vec<u8> = (0..5000).map(|n| n as u8).collect();
        let run = CellRun::whole(Pdu::new(sdu.clone()), Vc::new(0, 40));
        bench.cross(0, 1, &run);
        assert_eq!(bench.sdus(1)[0], sdu);
        let counters = bench.links[0].counters;
        // 105 cells: three full frames and one more.
        assert_eq!(counters.frames_out * 105, counters.cells_out * 4);
        // The interface goes down and comes up.
        ip(&["link", "set", "dev", "a", "down"])?;
        bench.until(|bench| bench.count(0, down) == 1);
        let trouble = |bench: &Bench<Link>| bench.links[0].cable.trouble();
        let told = |why: &str| Some(format!("the interface a {why}"));
        assert_eq!(trouble(&bench), told("is down"));
        let before = bench.links[0].filling.dropped;
        bench.links[0].send(&run);
        assert_eq!(bench.links[0].filling.dropped, before + 105);
        // It stays down: the next look does not take it for up.
        let later = bench.clock.now() + Duration::from_millis(600);
        bench.until(|bench| bench.clock.now() >= later);
        assert_eq!(bench.count(0, up), 1);
        ip(&["link", "set", "dev", "a", "up"])?;
        bench.until(|bench| bench.count(0, up) == 2);
        // The interface is removed, and another one with the same name takes its place.
        ip(&["link", "delete", "dev", "a"])?;
        bench.until(|bench| bench.count(0, down) == 2 && bench.count(1, down) >= 1);
        let gone = Some("there is no interface a".to_owned());
        bench.until(|bench| trouble(bench) == gone);
        let before = bench.count(1, up);
        cable()?;
        bench.until(|bench| bench.count(0, up) == 3 && bench.count(1, up) > before);
        bench.cross(1, 0, &run);
        assert_eq!(bench.sdus(0)[0], sdu);
        Ok(())
    });
}

#[test]
fn only_the_peer_is_heard_and_garbage_is_counted() {
    in_namespace(|| {
        let mut bench = Bench::new(&[("a", B), ("b", A)]);
        bench.until(|bench| bench.count(0, up) == 1 && bench.count(1, up) == 1);
        let frame = |to: MacAddr, from: MacAddr, cells: &[u8]| {
            [&to.0[..], &from.0, &KIND.ethertype.to_be_bytes(), cells].concat()
        };
        let run = CellRun::whole(Pdu::new(vec![1; 10]), Vc::new(0, 5));
        let cell: Vec<[u8; 53]> = super::super::cells::encode(&run).collect();
        let mut good =
            super::super::concat::Packer::new(Shim::numbered(true)).datagram(cell.iter());
        // The number is 0, because the peer's own numbers have advanced.
        good[3] = 0;
        bench.cross(1, 0, &run);
        let heard = bench.sdus(0).len();
        let raw = &bench.links[1].cable;
        for octets in [
            frame(A, C, &good),
            frame(MacAddr([0xff; 6]), B, &good),
            frame(A, B, &good[1..]),
            frame(A, B, &[0x77; 56]),
            frame(A, B, &[0; 1400]),
            frame(A, B, &[]),
            frame(A, B, &good),
        ] {
            raw.send_raw(&octets)?;
        }
        // The valid frame comes last; each of the others is counted once.
        bench.until(|bench| {
            let link = &bench.links[0];
            let wrong = (link.unpacker.bad_length, link.unpacker.bad_word);
            bench.sdus(0).len() > heard && (link.cable.strangers, wrong) == (2, (3, 1))
        });
        Ok(())
    });
}

/// Frames that came evenly, and which a late loop reads together, are no burst at the rate of the link.
#[test]
fn cells_count_at_the_arrival_of_their_frame_although_the_loop_is_late() {
    in_namespace(|| {
        let mut bench = Bench::new(&[("a", B), ("b", A)]);
        bench.until(|bench| bench.count(0, up) == 1 && bench.count(1, up) == 1);
        // A frame of cells of which none ends the PDU.
        let mut run = CellRun::whole(Pdu::new(vec![1; 5000]), Vc::new(0, 40));
        let Some(run) = run.split_off_front(28) else {
            return Ok(());
        };
        bench.cross_cells(&run);
        // The kernel begins to stamp all packets a while after the first socket has asked for it.
        let even = (0..100).any(|_| {
            let begin = std::time::Instant::now();
            for _ in 0..10 {
                bench.links[0].send(&run);
                let now = bench.clock.now();
                bench.links[0].flush(bench.poll.registry(), now, &mut Vec::new());
                std::thread::sleep(Duration::from_millis(2));
            }
            let (sending, now) = (begin.elapsed(), bench.clock.now());
            let mut told = Vec::new();
            bench.links[1].ready(0);
            bench.links[1].turn(bench.poll.registry(), now, &mut bench.inbox, &mut told);
            let times: Vec<_> = told
                .iter()
                .filter_map(|event| match event {
                    Event::Cells(run) => Some((run.times()?, run.count)),
                    _ => None,
                })
                .collect();
            assert_eq!(times.iter().map(|(_, count)| count).sum::<u16>(), 280);
            let (first, (last, count)) = (times[0].0, times[times.len() - 1]);
            let span = last.of(count - 1).since(first.of(0));
            // The last frame has 28 cells at the rate of the link.
            assert!(
                span <= sending + Duration::from_millis(1),
                "{span:?} of {sending:?}"
            );
            span >= Duration::from_millis(18)
        });
        assert!(even);
        Ok(())
    });
}

#[test]
fn an_interface_that_is_not_there_is_looked_for_less_and_less_often() {
    let poll = Poll::new().unwrap();
    let made = Link::new(("none0", B), MANY, CellRate::OC3, poll.registry(), Token(0));
    let Ok(mut link) = made else {
        return println!("skipped: {}", made.err().unwrap());
    };
    let (mut now, mut told) = (Instant::ZERO, Vec::new());
    for pause in [250, 500, 1000, 2000, 4000, 8000, 8000] {
        assert_eq!(link.poll_timeout(), Some(now));
        let inbox = &mut Inbox::new(Clock::start());
        assert!(!link.turn(poll.registry(), now, inbox, &mut told));
        now += Duration::from_millis(pause);
    }
    assert!(told.is_empty(), "{told:?}");
}
