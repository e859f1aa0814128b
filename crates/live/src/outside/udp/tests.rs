use super::*;
use crate::assembly::sdus;
use crate::clock::Clock;
use crate::outside::cells;
use crate::outside::concat::{Packer, Shim};
use crate::outside::filling::QUEUE;
use crate::outside::tests::free_addresses;
use aerostat_node::atm::Pdu;
use aerostat_proto::Duration;
use aerostat_wire::Vc;
use mio::{Events, Poll};
use std::net::UdpSocket as StdSocket;

struct Bench {
    link: Link,
    peer: StdSocket,
    poll: Poll,
    inbox: Inbox,
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
        let link = Link::new(local, to, packing, rate, poll.registry(), Token(0)).unwrap();
        Self {
            link,
            peer,
            poll,
            inbox: Inbox::new(Clock::start()),
        }
    }
    fn flush(&mut self, now: Instant) {
        self.link.flush(self.poll.registry(), now, &mut Vec::new());
    }
    fn to_link(&self, from: &StdSocket, octets: &[u8]) {
        let at = self.link.socket.local().unwrap();
        from.send_to(octets, at).unwrap();
    }
    /// Receives datagrams until `count` have arrived.
    fn take(&mut self, count: u64) -> Vec<Event> {
        let mut told = Vec::new();
        let mut events = Events::with_capacity(4);
        for _ in 0..1000 {
            self.link.turn(
                self.poll.registry(),
                Instant::ZERO,
                &mut self.inbox,
                &mut told,
            );
            if self.link.counters.datagrams_in >= count {
                return told;
            }
            self.poll
                .poll(&mut events, Some(Duration::from_millis(10)))
                .unwrap();
            self.link.ready(0);
        }
        panic!("too slow: {:?}", self.link.counters);
    }
}

#[test]
fn cells_go_out_and_come_in_one_by_one() {
    let mut bench = Bench::new();
    let run = CellRun::whole(Pdu::new((0..200).collect()), Vc::new(0, 5));
    bench.link.send(&run);
    bench.flush(Instant::ZERO);
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
    let told = bench.take(5);
    let counters = bench.link.counters;
    assert_eq!((bench.link.socket.strangers, counters.bad_length), (1, 3));
    let from = stranger.local_addr().unwrap();
    assert_eq!(bench.link.socket.last_stranger, Some(from));
    let shown = format!("{:?}", bench.link.tables());
    assert!(shown.contains(&from.to_string()), "{shown}");
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
    bench.link.turn(
        bench.poll.registry(),
        Instant::ZERO,
        &mut bench.inbox,
        &mut Vec::new(),
    );
    bench.flush(now);
    assert_eq!(bench.link.counters.cells_out, 28);
    let due = now + Duration::from_micros(100);
    assert_eq!(bench.link.poll_timeout(), Some(due));
    // The cells of another PDU join them, and do not delay them.
    let other = CellRun::whole(Pdu::new(vec![8; 40]), Vc::new(0, 41));
    bench.link.send(&other);
    bench.flush(now + Duration::from_micros(50));
    assert_eq!(bench.link.counters.datagrams_out, 1);
    bench.flush(due);
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
    let told = bench.take(5);
    assert!(matches!(told[..], [Event::Up, Event::Cells(_)]), "{told:?}");
    let unpacker = bench.link.unpacker.as_ref().unwrap();
    assert_eq!((bench.link.socket.strangers, unpacker.bad_length), (1, 4));
}

#[test]
fn a_flood_is_policed_to_the_rate_of_the_link() {
    let rate = CellRate::of_cells(1000);
    let mut bench = Bench::with(many(28, false), rate);
    let run = CellRun::whole(Pdu::new(vec![1; 100 * 48 - 8]), Vc::new(0, 40));
    let cells: Vec<_> = cells::encode(&run).collect();
    let datagram = Packer::new(Shim::None).datagram(cells.iter());
    // A few datagrams at a time, so that the sockets hold them.
    let begin = std::time::Instant::now();
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
    // The burst, and the cells of the time that this has taken.
    let burst = 4096 + 250;
    let meanwhile = begin.elapsed().as_millis() as usize + 1;
    assert!((burst..=burst + meanwhile).contains(&passed), "{passed}");
    assert_eq!(bench.link.counters.policed as usize, 10_000 - passed);
}

/// Two links to each other.
struct Pair {
    links: [Link; 2],
    inbox: Inbox,
    poll: Poll,
}

impl Pair {
    fn new(addresses: [SocketAddr; 2], packing: Packing) -> Self {
        let poll = Poll::new().unwrap();
        let [a, b] = addresses;
        let link = |own, far, token| {
            let rate = CellRate::of_bits(10_000_000_000);
            Link::new(own, far, packing, rate, poll.registry(), Token(token)).unwrap()
        };
        Self {
            links: [link(a, b, 0), link(b, a, 1)],
            inbox: Inbox::new(Clock::start()),
            poll,
        }
    }
    /// Links that keep the order of the line between VCs, too.
    fn on_loopback(packing: Packing) -> Self {
        let mut pair = Self::new(free_addresses(), packing);
        for link in &mut pair.links {
            link.receiver.keep_order(true);
        }
        pair
    }
    /// Sends runs from the first link to the second, and returns what arrives.
    fn cross(&mut self, runs: &[CellRun]) -> Vec<CellRun> {
        let now = Instant::ZERO + Duration::from_secs(1);
        runs.iter().for_each(|run| self.links[0].send(run));
        self.links[0].flush(self.poll.registry(), now, &mut Vec::new());
        self.links[0].flush(
            self.poll.registry(),
            now + Duration::from_secs(1),
            &mut Vec::new(),
        );
        let cells: u64 = runs.iter().map(|run| u64::from(run.count)).sum();
        let (mut told, mut events) = (Vec::new(), Events::with_capacity(4));
        let mut got = Vec::new();
        for _ in 0..1000 {
            self.links[1].turn(
                self.poll.registry(),
                Instant::ZERO,
                &mut self.inbox,
                &mut told,
            );
            got.extend(told.drain(..).filter_map(|event| match event {
                Event::Cells(run) => Some(run),
                _ => None,
            }));
            let come: u64 = got.iter().map(|run: &CellRun| u64::from(run.count)).sum();
            if come >= cells {
                return got;
            }
            let wait = Some(Duration::from_millis(10));
            self.poll.poll(&mut events, wait).unwrap();
            self.links[1].ready(0);
        }
        panic!("too slow: {:?}", self.links[1].counters);
    }
}

/// Interleaved cells of two connections, and whole PDUs.
fn mixed() -> Vec<CellRun> {
    let mut runs = Vec::new();
    for n in 0..100_u8 {
        let vc = Vc::new(0, 40 + u16::from(n % 2));
        runs.push(CellRun::raw(vc, aerostat_wire::cell::Pti::USER, [n; 48]));
    }
    let pdu = |length: usize| Pdu::new((0..length).map(|n| n as u8).collect());
    runs.extend([1, 40, 9180, 65_535].map(|length| CellRun::whole(pdu(length), Vc::new(3, 50))));
    runs
}

fn all_cells(runs: &[CellRun]) -> Vec<[u8; CELL_LEN]> {
    runs.iter().flat_map(cells::encode).collect()
}

#[test]
fn batches_keep_every_cell_and_the_order_of_all() {
    for packing in [
        Packing::One,
        many(1, false),
        many(27, true),
        many(172, true),
    ] {
        let mut pair = Pair::on_loopback(packing);
        let sent = mixed();
        let got = pair.cross(&sent);
        assert!(all_cells(&got) == all_cells(&sent), "{packing:?}");
        let (out, come) = (&pair.links[0], &pair.links[1]);
        assert_eq!(out.counters.datagrams_out, come.counters.datagrams_in);
        if out.socket.sending() == "gso" {
            assert!(out.socket.batches_out > 0, "{packing:?}");
        }
        assert_eq!(come.unpacker.as_ref().map_or(0, Unpacker::missing), 0);
    }
}

#[test]
fn without_offload_each_datagram_goes_alone_and_the_link_shows_it() {
    let mut pair = Pair::on_loopback(Packing::One);
    pair.links[0].socket.without_offload();
    let sent = mixed();
    let got = pair.cross(&sent);
    assert!(all_cells(&got) == all_cells(&sent));
    assert_eq!(pair.links[0].socket.sending(), "single");
    assert_eq!(pair.links[0].socket.batches_out, 0);
}

/// Packets longer than the interface allows leave as IP fragments, which the kernel refuses to cut out of a batch.
#[test]
fn a_refused_batch_goes_out_as_single_datagrams_with_fragments() {
    use crate::namespace::ip;
    use crate::outside::cable::tests::in_namespace;
    in_namespace(|| {
        ip(&["address", "add", "198.18.0.1/24", "dev", "a"])?;
        ip(&["link", "set", "dev", "lo", "up"])?;
        // The peer at the far end does not exist; its address resolves, so the datagrams leave.
        ip(&[
            "neigh",
            "add",
            "198.18.0.2",
            "lladdr",
            "02:00:00:00:00:0b",
            "dev",
            "a",
        ])?;
        let addresses = ["198.18.0.1:5000", "198.18.0.2:5000"].map(|at| at.parse().unwrap());
        let poll = Poll::new()?;
        let ([local, peer], packing) = (addresses, many(172, false));
        let mut link = Link::new(
            local,
            peer,
            packing,
            CellRate::OC3,
            poll.registry(),
            Token(0),
        )?;
        if link.socket.sending() != "gso" {
            println!("skipped: no GSO here");
            return Ok(());
        }
        let pdu = Pdu::new(vec![1; 65_535]);
        link.send(&CellRun::whole(pdu, Vc::new(0, 40)));
        link.flush(poll.registry(), Instant::ZERO, &mut Vec::new());
        let counters = link.counters;
        assert_eq!((counters.datagrams_out, counters.errors_out), (7, 0));
        let sending = |link: &Link| (link.socket.sending(), link.socket.batches_out);
        assert_eq!(sending(&link), ("single", 0));
        // A while later the cable takes longer packets.
        for end in ["a", "b"] {
            ip(&["link", "set", "dev", end, "mtu", "9216"])?;
        }
        let run = CellRun::whole(Pdu::new(vec![1; 65_535]), Vc::new(0, 40));
        link.send(&run);
        link.flush(
            poll.registry(),
            Instant::ZERO + Duration::from_millis(900),
            &mut Vec::new(),
        );
        assert_eq!(sending(&link), ("single", 0));
        link.send(&run);
        link.flush(
            poll.registry(),
            Instant::ZERO + Duration::from_secs(1),
            &mut Vec::new(),
        );
        assert_eq!((sending(&link).0, sending(&link).1 > 0), ("gso", true));
        assert_eq!(link.counters.errors_out, 0);
        Ok(())
    });
}

/// The peer's program has ended, and comes back: its system says that the port is closed, which costs no later cell.
#[test]
fn a_closed_port_of_the_peer_is_counted_and_the_link_goes_on() {
    let mut bench = Bench::new();
    let (at, run) = (bench.peer.local_addr().unwrap(), mixed().remove(0));
    let other = StdSocket::bind("127.0.0.1:0").unwrap();
    let mut now = Instant::ZERO;
    let mut send = |bench: &mut Bench, times: usize| {
        for _ in 0..times {
            now += Duration::from_millis(1);
            bench.link.send(&run);
            bench.flush(now);
        }
    };
    drop(std::mem::replace(&mut bench.peer, other));
    send(&mut bench, 10);
    let mut events = Events::with_capacity(4);
    for _ in 0..1000 {
        bench.link.turn(
            bench.poll.registry(),
            Instant::ZERO,
            &mut bench.inbox,
            &mut Vec::new(),
        );
        if bench.link.socket.unreachable >= 10 {
            break;
        }
        let wait = Some(Duration::from_millis(10));
        bench.poll.poll(&mut events, wait).unwrap();
        bench.link.ready(0);
    }
    let counters = bench.link.counters;
    assert_eq!(bench.link.socket.unreachable, 10);
    assert_eq!((counters.cells_out, counters.errors_out), (10, 0));
    assert_eq!(
        (bench.link.socket.errors_in, bench.link.socket.sending()),
        (0, "gso")
    );
    // What goes out next is not lost with the report about what went out before.
    send(&mut bench, 1);
    bench.peer = StdSocket::bind(at).unwrap();
    send(&mut bench, 5);
    bench
        .peer
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let mut octets = [0; 100];
    for _ in 0..5 {
        assert_eq!(bench.peer.recv(&mut octets).unwrap(), CELL_LEN);
    }
    let counters = bench.link.counters;
    assert_eq!((counters.cells_out, counters.errors_out), (16, 0));
}

/// A flood on a link ends a turn, not the loop; the rest comes in later turns, and the turns are counted.
#[test]
fn a_turn_takes_a_bounded_number_of_datagrams() {
    let mut bench = Bench::with(Packing::One, CellRate::of_bits(10_000_000_000));
    let run = CellRun::whole(Pdu::new(vec![1; 10]), Vc::new(0, 5));
    let cell = cells::encode(&run).next().unwrap();
    for _ in 0..200 {
        bench.to_link(&bench.peer, &cell);
    }
    let mut turns = 0;
    while bench.link.counters.datagrams_in < 200 {
        let more = bench.link.turn(
            bench.poll.registry(),
            Instant::ZERO,
            &mut bench.inbox,
            &mut Vec::new(),
        );
        turns += 1;
        assert!(bench.link.counters.datagrams_in <= turns * 64);
        assert_eq!(more, bench.link.counters.datagrams_in == turns * 64);
    }
    assert_eq!((turns, bench.link.turns.cut), (4, 3));
}

/// A loop that comes late takes cells that came evenly for cells that came evenly, not for a burst at the link's rate.
#[test]
fn cells_count_at_their_arrival_although_the_loop_is_late() {
    let mut bench = Bench::new();
    let cell = CellRun::raw(Vc::new(0, 40), aerostat_wire::cell::Pti::USER, [1; 48]);
    let cell = cells::encode(&cell).next().unwrap();
    // The kernel begins to stamp all datagrams a while after the first socket has asked for it.
    let rounds = (1..=100).find(|round| {
        let begin = std::time::Instant::now();
        for _ in 0..20 {
            bench.to_link(&bench.peer, &cell);
            std::thread::sleep(Duration::from_millis(2));
        }
        let sending = begin.elapsed();
        let told = bench.take(round * 20);
        let mut runs = told.iter().filter_map(|event| match event {
            Event::Cells(run) => Some(run),
            _ => None,
        });
        let times = runs.next().and_then(CellRun::times).unwrap();
        let span = times.of(19).since(times.of(0));
        assert!(span <= sending, "{span:?} of {sending:?}");
        span >= Duration::from_millis(38)
    });
    assert!(rounds.is_some());
}
