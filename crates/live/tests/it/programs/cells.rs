//! Single cells (AAL0) of programs.

use super::*;

/// Single cells: as many SDUs as cells, with payload type and priority, past an adapter that is full; what is no cell
/// ends the connection.
#[test]
fn a_permanent_connection_carries_single_cells() {
    let mut net = Net::of(lab());
    let (x, y) = (net.node("x"), net.node("y"));
    let mut ends = Vec::new();
    for (node, label) in [(x, "0.100"), (y, "0.101")] {
        let (socket, qos) = net.permanent(node, 1, label, "aal0,ubr:pcr=20000");
        assert_eq!(qos, "ubr,aal0:max_pcr=20000,sdu=52");
        ends.push(socket);
    }
    let cell = |number: u32| {
        let mut payload = [0; 48];
        payload[..4].copy_from_slice(&number.to_be_bytes());
        let (pti, clp) = (Pti::new(number as u8 & 1), number & 2 != 0);
        UserCell { pti, clp, payload }
    };
    let (mut written, mut held) = (0, 0);
    while written < 6000 {
        if net.world.asks_to_write(x, ends[0]) {
            let sdu = cell(written).encode(Vc::new(0, 0)).to_vec();
            let socket = ends[0];
            net.write(x, socket, sdu);
            written += 1;
            continue;
        }
        held += 1;
        net.until_room(x, ends[0]);
    }
    assert!(held > 0, "the adapter never was full");
    net.until(net.now + Duration::from_secs(1));
    let got = net.told.iter().filter_map(|(_, node, what)| match what {
        ToPrograms::Deliver { sdus, .. } if *node == y => Some(sdus.clone().into_vec()),
        _ => None,
    });
    let expected = (0..6000).map(|number| cell(number).encode(Vc::new(0, 101)).to_vec());
    assert!(got.eq(expected));
    let status = net.status(x, 3, ends[0]);
    assert_eq!((status.sent, status.unsent), ((6000, 6000 * 52), 0));
    // An SDU that is no cell of user data.
    let (socket, mut sdu) = (ends[0], cell(0).encode(Vc::new(0, 0)).to_vec());
    sdu[..4].copy_from_slice(&8_u32.to_ne_bytes());
    net.write(x, socket, sdu);
    net.until(net.now + Duration::from_secs(1));
    let status = net.status(x, 4, socket);
    assert_eq!(
        (status.refused, status.cause, status.state.as_str()),
        (1, 111, "ended")
    );
    // An SDU has 52 octets.
    let socket = net.open(x, 5);
    let open = |qos: &str| Request::OpenPermanent {
        socket,
        label: "0.100".into(),
        qos: qos.into(),
    };
    let refused = net.done(x, 7, open("aal0,ubr:sdu=48"));
    assert!(
        matches!(&refused, Answer::Failed(f) if (&*f.field, f.offset) == ("qos", 0)),
        "{refused:?}"
    );
    // The label is free again, and carries PDUs now.
    let answer = net.done(x, 8, open("ubr"));
    assert!(matches!(answer, Answer::Connected { .. }), "{answer:?}");
}
