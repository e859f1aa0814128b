use super::*;
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
        let peer = StdSocket::bind("127.0.0.1:0").unwrap();
        peer.set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let poll = Poll::new().unwrap();
        let local = "127.0.0.1:0".parse().unwrap();
        let to = peer.local_addr().unwrap();
        let link = Link::new(local, to, poll.registry(), Token(0)).unwrap();
        Self { link, peer, poll }
    }
    fn to_link(&self, from: &StdSocket, octets: &[u8]) {
        let at = self.link.socket.local_addr().unwrap();
        from.send_to(octets, at).unwrap();
    }
    /// Takes datagrams until `count` have come.
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
    bench.link.flush();
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
    assert_eq!(
        (got.vc, got.whole_pdu().unwrap().sdu()),
        (run.vc, run.whole_pdu().unwrap().sdu())
    );
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
    assert_eq!(bench.link.unsent.len(), fit * usize::from(run.count));
    let lost = (20 - fit) as u64 * u64::from(run.count);
    assert_eq!(bench.link.counters.dropped_out, lost);
}
