//! Costs of many members for each member: rows of its cache, and frames received.

use super::*;
use aerostat_wire::lane::Tlv;

/// Costs of `n` MPOA clients and a router on one ELAN at `until`: the rows of each client, and the largest number of
/// control frames that one of them received.
fn cost(n: u8, until: Duration) -> (Vec<usize>, u64) {
    let device = |n: u8, tlv: Tlv| LecConfig {
        tlvs: vec![tlv],
        ..lec_config(n)
    };
    let mut configs = vec![device(0, mps(0).to_tlv())];
    configs.extend((1..=n).map(|n| {
        let control = address(n + 1);
        device(n, DeviceType::Mpc { control }.to_tlv())
    }));
    let mut w = world(configs);
    let all = LEC0..=LEC0 + usize::from(n);
    for who in all.clone() {
        start(&mut w, who);
    }
    w.run_for(until);
    let clients: Vec<_> = all.map(|who| lec_of(&w, who).snapshot()).collect();
    assert!(
        clients
            .iter()
            .all(|c| c.state == lec::LecState::Operational)
    );
    // The router answered no question, so it knows no client; the clients know the router.
    assert_eq!(clients[0].cache.len(), 0);
    let rows = clients[1..].iter().map(|c| c.cache.len()).collect();
    let heard = clients.iter().map(|c| c.control.received).max();
    finish(w);
    (rows, heard.unwrap_or_default())
}

/// Each client remembers the router and not the other clients, for as long as it ages, and receives as many control
/// frames among a hundred clients as among ten.
#[test]
fn rows_and_control_frames_of_a_member_do_not_grow_with_the_members() {
    let until = Duration::from_secs(700);
    let (few, heard_by_few) = cost(10, until);
    let (many, heard_by_many) = cost(100, until);
    assert_eq!(few, [1; 10]);
    assert_eq!(many, [1; 100]);
    assert!(
        heard_by_many <= heard_by_few + 2,
        "{heard_by_few} frames among ten, {heard_by_many} among a hundred"
    );
}

/// A router that asks for a client learns its device type from the LES although the client has announced nothing; this
/// holds also if the client had another type before.
#[test]
fn what_is_not_announced_can_be_asked_for() {
    let control = address(2);
    let device = DeviceType::Mpc { control };
    // The client has a TLV from the beginning, which does not tell its device type.
    let plain = LecConfig {
        llc_mux: true,
        ..lec_config(1)
    };
    let mut w = world(vec![lec_config(0), plain]);
    for who in [LEC0, LEC0 + 1] {
        start(&mut w, who);
    }
    w.run_for(Duration::from_secs(1));
    let ask = |w: &mut World<Node>| {
        w.take_notes();
        tell(w, LEC0, lec::Input::Resolve { mac: mac(2) });
        w.run_for(Duration::from_millis(100));
        let mut notes = w.take_notes().into_iter();
        let owner = notes.find_map(|(_, who, note)| match note {
            Note::Lec(lec::Output::News(lec::News::Resolved { owner, .. })) if who == LEC0 => {
                Some(owner)
            }
            _ => None,
        });
        owner.flatten().expect("it is there").1
    };
    let device_of = |tlvs: &[Tlv]| DeviceType::find(tlvs).and_then(Result::ok);
    assert_eq!(device_of(&ask(&mut w)), None);
    // The client leaves, and comes back as an MPOA client; only its join says so.
    stop(&mut w, LEC0 + 1);
    w.run_for(Duration::from_secs(2));
    w.with(LEC0 + 1, |node, now| {
        let config = LecConfig {
            tlvs: vec![device.to_tlv()],
            llc_mux: true,
            ..lec_config(1)
        };
        *node = Node::Lec(Box::new(Lec::new(config)));
        let Node::Lec(client) = node else { return };
        client.handle_input(lec::Input::Start, now).unwrap();
    });
    w.run_for(Duration::from_secs(2));
    assert_eq!(device_of(&ask(&mut w)), Some(device));
    finish(w);
}
