//! The path of cells from one link to another, through a switch, driven by hand.

pub(super) mod bench;
mod first;

use super::*;
use crate::clock::Clock;
use crate::outside::cells;
use crate::world::{Output, World};
use aerostat_lab::build::{Builder, Flavour};
use aerostat_proto::Duration;
use aerostat_wire::Vc;
use aerostat_wire::cell::Pti;
use mio::Poll;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU8, Ordering};

/// A switch with two links over UDP, and a permanent connection between them.
struct Path {
    world: World,
    links: Vec<Link>,
    poll: Poll,
    clock: Clock,
    inbox: Inbox,
    told: Vec<Event>,
    here: UdpSocket,
    there: UdpSocket,
    to: SocketAddr,
}

/// Free addresses of UDP on the loopback interface: their IP address belongs to this process and call. To ask the
/// kernel for free ports and close the sockets again would not do, because a test that forks keeps copies of them for a
/// moment.
pub(super) fn free_addresses<const N: usize>() -> [SocketAddr; N] {
    static CALLS: AtomicU8 = AtomicU8::new(1);
    let [_, _, a, b] = std::process::id().to_be_bytes();
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let ip = Ipv4Addr::new(127, a | 0x80, b, call);
    std::array::from_fn(|n| SocketAddr::from((ip, 4000 + n as u16)))
}

impl Path {
    fn new(many: &str) -> Self {
        let [from, west, east, to] = free_addresses();
        let [here, there] = [from, to].map(|address| UdpSocket::bind(address).unwrap());
        let text = format!(
            "switches: {{ s: {{}} }}\n\
             links:\n\
             - [s, {{ name: w, rate: 10Gbps, udp: {{ local: '{west}', peer: '{from}' {many} }} }}]\n\
             - [s, {{ name: e, rate: 10Gbps, udp: {{ local: '{east}', peer: '{to}' {many} }} }}]\n\
             pvcs: [{{ from: w, vc: 0.100, to: e, to_vc: 0.200 }}]\n"
        );
        let lab = aerostat_lab::parse("t.atm.yml", &text, &[]).unwrap().lab;
        let builder = Builder::new(&lab, 1, Flavour::Embedded);
        let poll = Poll::new().unwrap();
        let links = lab.outside().zip(0..).map(|((node, _, model), n)| {
            let rate = lab.link(model.attachment.link).lines[0].rate;
            Link::new(node, &model.way, rate, poll.registry(), Token(2 * n)).unwrap()
        });
        let links = links.collect();
        let clock = Clock::start();
        let mut world = World::new(&builder, clock.now());
        world.start(&builder, clock.now());
        there.set_nonblocking(true).unwrap();
        let mut path = Self {
            world,
            links,
            poll,
            clock,
            inbox: Inbox::new(Clock::start()),
            told: Vec::new(),
            here,
            there,
            to: west,
        };
        // Both links come up.
        path.turn();
        path
    }

    /// One turn of the loop.
    fn turn(&mut self) {
        let now = self.clock.now();
        self.world.step(now, 10_000);
        for link in &mut self.links {
            // This test knows that the sockets may be readable.
            link.ready(0);
            link.turn(self.poll.registry(), now, &mut self.inbox, &mut self.told);
            for event in self.told.drain(..) {
                match event {
                    Event::Up => self.world.outside_link(link.node, true, now),
                    Event::Cells(run) => self.world.outside_cells(link.node, run, now),
                    _ => {}
                }
            }
        }
        self.world.step(now, 10_000);
        while let Some(output) = self.world.poll_output() {
            if let Output::Outside(node, run) = output
                && let Some(link) = self.links.iter_mut().find(|link| link.node == node)
            {
                link.send(&run);
            }
        }
        for link in &mut self.links {
            link.flush(self.poll.registry(), now, &mut self.told);
        }
    }

    /// Sends datagrams, and lets them pass until `cells` cells have come out.
    fn pass(&mut self, datagrams: &[Vec<u8>], cells: usize) -> Vec<[u8; 53]> {
        for datagram in datagrams {
            self.here.send_to(datagram, self.to).unwrap();
        }
        let (mut got, mut octets) = (Vec::with_capacity(cells), [0; 2000]);
        let end = self.clock.now() + Duration::from_secs(10);
        while got.len() < cells {
            assert!(self.clock.now() < end, "{} of {cells} cells", got.len());
            self.turn();
            while let Ok(length) = self.there.recv(&mut octets) {
                let datagram = &octets[..length];
                match <[u8; 53]>::try_from(datagram) {
                    // The switch has messages of its own for the peer.
                    Ok(cell) if cell[2..4] != [0x0c, 0x80] => {}
                    Ok(cell) => got.push(cell),
                    Err(_) => got.extend(datagram.chunks(52).filter_map(|cell| {
                        let (header, payload) = cell.split_first_chunk::<4>()?;
                        let mut whole = [0; 53];
                        whole[..4].copy_from_slice(header);
                        whole[5..].copy_from_slice(payload);
                        (whole[2..4] == [0x0c, 0x80]).then_some(whole)
                    })),
                }
            }
        }
        got
    }
}

/// `count` cells of 0.100 that end no PDU.
fn some(count: u8) -> Vec<[u8; 53]> {
    let cell = |n| CellRun::raw(Vc::new(0, 100), Pti::USER, [n; 48]);
    (0..count)
        .flat_map(|n| cells::encode(&cell(n)).collect::<Vec<_>>())
        .collect()
}

/// The path of a run takes no memory from the system once its buffers have grown: read, cells to a run, queue, line,
/// run to cells, sent.
#[test]
fn forwarding_from_link_to_link_allocates_nothing() {
    let sent = some(64);
    let singles: Vec<Vec<u8>> = sent.iter().map(|cell| cell.to_vec()).collect();
    let packed: Vec<Vec<u8>> = sent
        .chunks(16)
        .map(|cells| concat::Packer::new(concat::Shim::None).datagram(cells.iter()))
        .collect();
    for (many, datagrams) in [("", &singles), (", cells: 16", &packed)] {
        let mut path = Path::new(many);
        let pass = |path: &mut Path| {
            let got = path.pass(datagrams, sent.len());
            let payloads = got.iter().zip(&sent).all(|(a, b)| a[5..] == b[5..]);
            assert!(payloads && got.len() == sent.len());
        };
        // The signalling of the switch begins, buffers grow.
        (0..40).for_each(|_| pass(&mut path));
        let mut counts: Vec<u64> = (0..21)
            .map(|_| allocation_counter::measure(|| pass(&mut path)).count_total)
            .collect();
        counts.sort_unstable();
        // The list of cells that came back is the test's own; timers of the switch's signalling make rounds differ.
        assert_eq!(counts[10], 1, "datagrams with {many:?}: {counts:?}");
    }
}
