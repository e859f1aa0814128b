use super::*;
use crate::outside::tests::bench::Bench;
use crate::outside::tests::free_addresses;
use aerostat_lab::model::{Gathering, Scope};
use aerostat_node::atm::Pdu;
use aerostat_proto::Duration;
use aerostat_wire::Vc;
use aerostat_wire::l2tp::Cookie;
use mio::Poll;
use std::net::UdpSocket as Std;

const VC: Vc = Vc::new(0, 100);

fn model(ends: L2tpEnds, sublayer: Sublayer, west: bool) -> L2tp {
    let cookies = [
        Cookie::new(&[1, 2, 3, 4, 5, 6, 7, 8]).unwrap(),
        Cookie::new(&[9, 9, 9, 9]).unwrap(),
    ];
    let (own, other) = if west { (0, 1) } else { (1, 0) };
    L2tp {
        ends,
        session: 10 + own as u32,
        peer_session: 10 + other as u32,
        cookie: cookies[own],
        peer_cookie: cookies[other],
        sublayer,
        sequence: sublayer != Sublayer::None,
        scope: Scope::Port,
        gathering: Gathering {
            cells: 27,
            wait: Duration::from_micros(100),
        },
    }
}

impl Bench<Link> {
    fn new(models: &[L2tp]) -> io::Result<Self> {
        Self::of(models, |model, registry, token| {
            Link::new(model, CellRate::OC3, registry, token)
        })
    }
    /// SDUs of many sizes cross both ways, in order.
    fn exchange(&mut self) {
        let sdus: Vec<Vec<u8>> = [1, 40, 41, 1500, 9180]
            .map(|length| vec![length as u8; length])
            .into();
        for sdu in &sdus {
            for link in &mut self.links {
                link.send(&CellRun::whole(Pdu::new(sdu.clone()), VC));
            }
        }
        self.until(|bench| (0..2).all(|end| bench.sdus(end).len() == 5));
        for end in 0..2 {
            assert_eq!(self.sdus(end), sdus);
            let counters = &self.links[end].counters;
            let wrong = [
                counters.bad_header,
                counters.control,
                counters.wrong_session,
                counters.wrong_cookie,
                counters.policed,
            ];
            assert_eq!(wrong, [0; 5]);
            let unpacker = &self.links[end].unpacker;
            assert_eq!(
                (unpacker.bad_length, unpacker.missing(), unpacker.late()),
                (0, 0, 0)
            );
            assert_eq!(counters.cells_out, 1 + 1 + 2 + 32 + 192);
        }
    }
}

#[test]
fn cells_cross_over_udp_with_every_sublayer() {
    for sublayer in [Sublayer::None, Sublayer::Default, Sublayer::Atm] {
        let [here, there] = free_addresses();
        let models = [
            model(L2tpEnds::Udp(here, there), sublayer, true),
            model(L2tpEnds::Udp(there, here), sublayer, false),
        ];
        Bench::new(&models).unwrap().exchange();
    }
}

#[test]
fn cells_cross_over_ip_of_both_versions() {
    for (here, there) in [("127.0.0.1", "127.0.0.2"), ("::1", "::1")] {
        let (here, there) = (here.parse().unwrap(), there.parse().unwrap());
        // Over IPv6 both ends have the one loopback address, so each hears itself, too.
        if here == there {
            let ends = L2tpEnds::Ip(here, there);
            let mut west = model(ends, Sublayer::Atm, true);
            (west.peer_session, west.peer_cookie) = (west.session, west.cookie);
            match Bench::new(&[west]) {
                Ok(mut bench) => {
                    bench.links[0].send(&CellRun::whole(Pdu::new(vec![6; 600]), VC));
                    bench.until(|bench| bench.sdus(0) == [[6; 600]]);
                }
                Err(error) => println!("skipped: {error}"),
            }
            continue;
        }
        let models = [
            model(L2tpEnds::Ip(here, there), Sublayer::Atm, true),
            model(L2tpEnds::Ip(there, here), Sublayer::Atm, false),
        ];
        match Bench::new(&models) {
            Ok(mut bench) => bench.exchange(),
            Err(error) => println!("skipped: {error}"),
        }
    }
}

#[test]
fn wrong_sessions_cookies_and_headers_are_counted_and_harm_nobody() {
    let [here, there] = free_addresses();
    let peer = Std::bind(there).unwrap();
    let ends = L2tpEnds::Udp(here, there);
    let mut bench = Bench::new(&[model(ends, Sublayer::Default, true)]).unwrap();
    let cell = [
        &[0, 0, 6, 0x42][..],
        &aerostat_wire::aal5::encode_pdu(&[5; 10], 0),
    ]
    .concat();
    let packet = |head: [u8; 4], session: u32, cookie: &[u8], word: &[u8]| {
        [&head[..], &session.to_be_bytes(), cookie, word, &cell].concat()
    };
    let (data, cookie) = ([0, 3, 0, 0], [1, 2, 3, 4, 5, 6, 7, 8]);
    let number = |n: u8| [0x40, 0, 0, n];
    let good = packet(data, 10, &cookie, &number(9));
    for octets in [
        // Headers: too short, of L2TPv2, of a control message.
        vec![],
        good[..7].to_vec(),
        packet([0, 2, 0, 0], 10, &cookie, &number(0)),
        packet([0xc8, 3, 0, 0], 10, &cookie, &number(0)),
        // Sessions: ours of the other direction, none.
        packet(data, 11, &cookie, &number(0)),
        packet(data, 0, &cookie, &number(0)),
        // Cookies: another one, a short one, the end of the packet in it.
        packet(data, 10, &[1, 2, 3, 4, 5, 6, 7, 9], &number(0)),
        packet(data, 10, &[9, 9, 9, 9], &number(0)),
        good[..12].to_vec(),
        // Lengths: no sublayer, no cell, no whole cell.
        good[..18].to_vec(),
        good[..20].to_vec(),
        good[..good.len() - 1].to_vec(),
        // Valid; then one that is late, one without a number, and one behind a gap.
        good.clone(),
        packet(data, 10, &cookie, &number(8)),
        packet(data, 10, &cookie, &[0, 0, 0, 1]),
        packet(data, 10, &cookie, &number(12)),
    ] {
        peer.send_to(&octets, here).unwrap();
    }
    let stranger = Std::bind("127.0.0.1:0").unwrap();
    stranger.send_to(&good, here).unwrap();
    bench.until(|bench| bench.links[0].socket.strangers() == 1 && bench.sdus(0).len() == 3);
    let link = &bench.links[0];
    let counters = &link.counters;
    assert_eq!((counters.bad_header, counters.control), (3, 1));
    assert_eq!((counters.wrong_session, counters.wrong_cookie), (2, 3));
    let unpacker = &link.unpacker;
    assert_eq!(
        (unpacker.bad_length, unpacker.missing(), unpacker.late()),
        (3, 2, 1)
    );
    assert_eq!(counters.packets_in, 16);
    // Cells that the session does not carry stay here.
    bench.links[0].model.scope = Scope::Path(5);
    bench.links[0].send(&CellRun::whole(Pdu::new(vec![0; 10]), VC));
    assert_eq!(bench.links[0].counters.uncarried, 1);
}

/// Ten times the rate of the link for a while: what is above is dropped, and the memory is bounded.
#[test]
fn a_flood_is_held_to_the_rate_of_the_link() {
    let [here, there] = free_addresses();
    let poll = Poll::new().unwrap();
    let model = model(L2tpEnds::Udp(here, there), Sublayer::None, true);
    let rate = CellRate::of_cells(1000);
    let mut link = Link::new(&model, rate, poll.registry(), Token(0)).unwrap();
    let cells: Vec<u8> = (0..27_u32)
        .flat_map(|n| [&(n << 4).to_be_bytes()[..], &[0; 48]].concat())
        .collect();
    let packet = [
        &[0, 3, 0, 0, 0, 0, 0, 10, 1, 2, 3, 4, 5, 6, 7, 8][..],
        &cells,
    ]
    .concat();
    let mut told = Vec::new();
    let mut taken = 0;
    for ms in 0..1000 {
        let now = Instant::ZERO + Duration::from_millis(ms);
        link.packet(Some(&packet), now, &mut told);
        taken += 27;
    }
    let passed = taken - link.counters.policed;
    // The burst of `bucket.rs`, and the cells of a second.
    assert!(
        (4096 + 250..4096 + 250 + 1000 + 27).contains(&passed),
        "{passed}"
    );
}
