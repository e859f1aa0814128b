use super::*;
use crate::assembly::sdus;
use crate::outside::cells;
use crate::outside::concat::{Packer, Shim};
use crate::outside::filling::QUEUE;
use aerostat_node::atm::Pdu;
use aerostat_proto::Duration;
use aerostat_wire::Vc;
use mio::{Events, Poll};
use std::net::UdpSocket as StdSocket;

struct Bench {
    link: Link,
    peer: StdSocket,
    poll: Poll,
}

impl Bench {
    fn new() -> Self {
        Self::with(Packing::One, CellRate::OC3)
    }
    fn with(packing: Packing, rate: CellRate) -> Self {
        let peer = StdSocket::bind("127.0.0.1:0").unwrap();
        peer.set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let poll = Poll::new().unwrap();
        let local = "127.0.0.1:0".parse().unwrap();
        let to = peer.local_addr().unwrap();
        let link = Link::new((local, to), packing, rate, poll.registry(), Token(0)).unwrap();
        Self { link, peer, poll }
    }
    fn to_link(&self, from: &StdSocket, octets: &[u8]) {
        let at = self.link.socket.local_addr().unwrap();
        from.send_to(octets, at).unwrap();
    }
    /// Receives datagrams until `count` have arrived.
    fn take(&mut self, count: u64) -> Vec<Event> {
        let mut told = Vec::new();
        let mut events = Events::with_capacity(4);
        for _ in 0..1000 {
            self.link.turn(Instant::ZERO, &mut told);
            if self.link.counters.datagrams_in >= count {
                return told;
            }
            self.poll
                .poll(&mut events, Some(Duration::from_millis(10)))
                .unwrap();
            self.link.ready();
        }
        panic!("too slow: {:?}", self.link.counters);
    }
}

#[test]
fn cells_go_out_and_come_in_one_by_one() {
    let mut bench = Bench::new();
    let run = CellRun::whole(Pdu::new((0..200).collect()), Vc::new(0, 5));
    bench.link.send(&run);
    bench.link.flush(Instant::ZERO);
    let mut octets = [0; 100];
    let mut cells = Vec::new();
    for _ in 0..run.count {
        let (count, _) = bench.peer.recv_from(&mut octets).unwrap();
        cells.push(octets[..count].to_vec());
    }
    let expected: Vec<_> = cells::encode(&run).map(|cell| cell.to_vec()).collect();
    assert_eq!(cells, expected);
    for cell in &cells {
        bench.to_link(&bench.peer, cell);
    }
    let told = bench.take(cells.len() as u64);
    let [Event::Up, Event::Cells(got)] = &told[..] else {
        panic!("{told:?}");
    };
    assert_eq!(sdus([got]), sdus([&run]));
}

#[test]
fn strangers_and_garbage_are_counted_and_dropped() {
    let mut bench = Bench::new();
    let stranger = StdSocket::bind("127.0.0.1:0").unwrap();
    let run = CellRun::whole(Pdu::new(vec![1; 10]), Vc::new(0, 5));
    let cell = cells::encode(&run).next().unwrap();
    bench.to_link(&stranger, &cell);
    bench.to_link(&bench.peer, &cell[..52]);
    bench.to_link(&bench.peer, &[0; 1000]);
    bench.to_link(&bench.peer, &[]);
    bench.to_link(&bench.peer, &[0xff; CELL_LEN]);
    bench.to_link(&bench.peer, &cell);
    let told = bench.take(6);
    let counters = bench.link.counters;
    assert_eq!((counters.strangers, counters.bad_length), (1, 3));
    assert!(matches!(told[..], [Event::Up, Event::Cells(_)]), "{told:?}");
}

#[test]
fn what_the_system_does_not_take_is_bounded() {
    let mut bench = Bench::new();
    let run = CellRun::whole(Pdu::new(vec![1; 65_535]), Vc::new(0, 40));
    for _ in 0..20 {
        bench.link.send(&run);
    }
    let fit = QUEUE / usize::from(run.count);
    assert_eq!(bench.link.filling.len(), fit * usize::from(run.count));
    let lost = (20 - fit) as u64 * u64::from(run.count);
    assert_eq!(bench.link.filling.dropped, lost);
}

fn many(cells: u16, word: bool) -> Packing {
    let wait = Duration::from_micros(100);
    Packing::Many { cells, wait, word }
}

#[test]
fn datagrams_are_filled_or_leave_in_time() {
    let mut bench = Bench::with(many(28, true), CellRate::OC3);
    // 30 cells: one full datagram, and two cells that wait.
    let run = CellRun::whole(Pdu::new(vec![7; 30 * 48 - 8]), Vc::new(0, 40));
    bench.link.send(&run);
    let now = Instant::ZERO + Duration::from_secs(1);
    bench.link.turn(now, &mut Vec::new());
    bench.link.flush(now);
    assert_eq!(bench.link.counters.cells_out, 28);
    let due = now + Duration::from_micros(100);
    assert_eq!(bench.link.poll_timeout(), Some(due));
    // The cells of another PDU join them, and do not delay them.
    let other = CellRun::whole(Pdu::new(vec![8; 40]), Vc::new(0, 41));
    bench.link.send(&other);
    bench.link.flush(now + Duration::from_micros(50));
    assert_eq!(bench.link.counters.datagrams_out, 1);
    bench.link.flush(due);
    let counters = bench.link.counters;
    assert_eq!((counters.datagrams_out, counters.cells_out), (2, 31));
    assert_eq!(bench.link.poll_timeout(), None);
    // The received datagrams contain the cells that were sent.
    let mut octets = [0; 2000];
    for length in [4 + 28 * 52, 4 + 3 * 52] {
        let (count, _) = bench.peer.recv_from(&mut octets).unwrap();
        assert_eq!(count, length);
        bench.to_link(&bench.peer, &octets[..count]);
    }
    let told = bench.take(2);
    let [Event::Cells(first), Event::Cells(second)] = &told[..] else {
        panic!("{told:?}");
    };
    assert_eq!(sdus([first, second]), sdus([&run, &other]));
}

#[test]
fn many_cells_from_strangers_and_of_wrong_length_are_dropped() {
    let mut bench = Bench::with(many(4, false), CellRate::OC3);
    let stranger = StdSocket::bind("127.0.0.1:0").unwrap();
    let run = CellRun::whole(Pdu::new(vec![1; 400]), Vc::new(0, 5));
    let cells: Vec<_> = cells::encode(&run).collect();
    // Datagrams with more cells than this end would send are accepted, too.
    let datagram = Packer::new(Shim::None).datagram(cells.iter());
    bench.to_link(&stranger, &datagram);
    bench.to_link(&bench.peer, &datagram[1..]);
    bench.to_link(&bench.peer, &[]);
    bench.to_link(&bench.peer, &[0; 20_000]);
    bench.to_link(&bench.peer, &cells[0]);
    bench.to_link(&bench.peer, &datagram);
    let told = bench.take(6);
    assert!(matches!(told[..], [Event::Up, Event::Cells(_)]), "{told:?}");
    let unpacker = bench.link.unpacker.as_ref().unwrap();
    assert_eq!((bench.link.counters.strangers, unpacker.bad_length), (1, 4));
}

#[test]
fn a_flood_is_policed_to_the_rate_of_the_link() {
    let rate = CellRate::of_cells(1000);
    let mut bench = Bench::with(many(28, false), rate);
    let run = CellRun::whole(Pdu::new(vec![1; 100 * 48 - 8]), Vc::new(0, 40));
    let cells: Vec<_> = cells::encode(&run).collect();
    let datagram = Packer::new(Shim::None).datagram(cells.iter());
    // All at one instant, a few datagrams at a time so that the sockets hold them.
    let mut passed = 0;
    for n in 1..=100 {
        bench.to_link(&bench.peer, &datagram);
        let told = bench.take(n);
        let cells = |event: &Event| match event {
            Event::Cells(run) => usize::from(run.count),
            _ => 0,
        };
        passed += told.iter().map(cells).sum::<usize>();
    }
    let burst = 4096 + 250;
    assert!((burst..=burst + 1).contains(&passed), "{passed}");
    let policed = bench.link.counters.policed as usize;
    assert!(
        (10_000 - burst - 1..=10_000 - burst).contains(&policed),
        "{policed}"
    );
}
