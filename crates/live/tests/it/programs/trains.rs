//! PDUs that programs write several at a time: trains in the network, and the same PDUs at the other program.

use super::*;
use aerostat_node::atm::Sdus;
use proptest::prelude::*;

/// The trunk loses cells if `loss` says so.
fn lab_with(loss: &str) -> Lab {
    let text = format!(
        "
lane: {{ on: s, elans: {{ a: {{ subnet: 10.1.0.0/24 }} }} }}
switches: {{ s: {{}}, t: {{}} }}
links: [ [s, t, {{ rate: oc3{loss} }}] ]
hosts:
  x: {{ on: s, elan: a, ip: 10.1.0.1 }}
  y: {{ on: t, elan: a, ip: 10.1.0.2 }}
pvcs:
  - {{ from: x, vc: 0.100, to: y, to_vc: 0.101 }}
"
    );
    aerostat_lab::parse("p.atm.yml", &text, &[]).unwrap().lab
}

/// SDUs by number, length, and length of the last one. Each begins with its number.
fn written(bursts: &[(usize, usize, usize)]) -> Vec<Sdus> {
    let mut number = 0_u32;
    let mut sdu = |length: usize| {
        number += 1;
        let mut sdu = number.to_be_bytes().to_vec();
        sdu.resize(length, number as u8);
        sdu
    };
    let of = |&(count, length, last): &(usize, usize, usize)| {
        let mut octets: Vec<u8> = (1..count).flat_map(|_| sdu(length)).collect();
        octets.extend(sdu(last.min(length)));
        Sdus::new(octets, length)
    };
    bursts.iter().map(of).collect()
}

/// Opens the permanent connection at both ends, writes, and returns what came, with the counts of both ends.
fn carried(lab: &Lab, qos: &str, bursts: &[Sdus]) -> (Vec<Vec<u8>>, [Status; 2]) {
    let builder = Builder::new(lab, 1, Flavour::Embedded).with_programs();
    let mut net = Net::new(&builder);
    let (x, y) = (net.node("x"), net.node("y"));
    let ends = [(x, "0.100"), (y, "0.101")].map(|(node, label)| {
        let (socket, _) = net.permanent(node, 1, label, qos);
        (node, socket)
    });
    let (node, socket) = ends[0];
    for sdus in bursts {
        assert!(sdus.count() <= net.layer(node).unwrap().most(socket));
        if !net.world.asks_to_write(node, socket) {
            net.until_room(node, socket);
        }
        net.write(node, socket, sdus.clone());
    }
    net.until(net.now + Duration::from_secs(20));
    let got = net.told.iter().filter_map(|(_, node, what)| match what {
        ToPrograms::Deliver { sdus, .. } if *node == y => Some(sdus.iter().map(<[u8]>::to_vec)),
        _ => None,
    });
    let got = got.flatten().collect();
    (got, ends.map(|(node, socket)| net.status(node, 3, socket)))
}

fn bursts() -> impl Strategy<Value = Vec<(usize, usize, usize)>> {
    proptest::collection::vec((1_usize..=32, 4_usize..=4096, 4_usize..=4096), 1..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    /// All PDUs arrive as they were written, past an adapter that was full in between, and both ends count them; also
    /// under a contract that shapes and polices each cell.
    #[test]
    fn pdus_that_are_written_together_arrive_one_by_one(bursts in bursts(), shaped in any::<bool>()) {
        let sent = written(&bursts);
        let qos = if shaped { "cbr:pcr=100000,sdu=4096" } else { "ubr:sdu=4096" };
        let (got, [near, far]) = carried(&lab_with(""), qos, &sent);
        let want: Vec<Vec<u8>> =
            sent.iter().flat_map(|sdus| sdus.iter().map(<[u8]>::to_vec)).collect();
        let octets: usize = want.iter().map(Vec::len).sum();
        let total = (want.len() as u64, octets as u64);
        prop_assert_eq!(got, want);
        prop_assert_eq!((near.sent, near.refused, far.received), (total, 0, total));
    }

    /// Where cells are lost, PDUs are lost, and no others come; the receiver counts those that came.
    #[test]
    fn lost_cells_lose_their_pdus(bursts in bursts()) {
        let sent = written(&bursts);
        let (got, [near, far]) = carried(&lab_with(", loss: 0.002"), "ubr:sdu=4096", &sent);
        let want: Vec<&[u8]> = sent.iter().flat_map(Sdus::iter).collect();
        let mut rest = want.iter();
        for sdu in &got {
            prop_assert!(rest.any(|other| *other == &sdu[..]), "not written, or out of order");
        }
        prop_assert_eq!(near.sent.0, want.len() as u64);
        prop_assert_eq!(far.received.0, got.len() as u64);
    }
}
