//! One connection for both directions: the way back over a guaranteed connection of the other end, and which of two
//! connections stays if both ends call.

use super::qos::{App, calls};
use super::*;
use crate::Cause;
use aerostat_wire::ipv4::{ICMP, TCP, UDP};
use aerostat_wire::mpoa::{FlowFilter, QosEntry, Tag};
use aerostat_wire::{ServiceCategory, TrafficParams};

/// Data address of another client, smaller than [`DATA`]; [`PEER`] is larger.
const LOW: AtmAddress = address(0x02, 0x51);
const VOICE: App = (TARGET, UDP, 5004);
const WEB: App = (TARGET, TCP, 80);

/// A client with a control connection and an egress entry for packets of `peer`.
struct Pair {
    rig: Rig,
    control: ConnId,
    tag: u32,
    peer: AtmAddress,
}

impl Deref for Pair {
    type Target = Rig;
    fn deref(&self) -> &Rig {
        &self.rig
    }
}
impl DerefMut for Pair {
    fn deref_mut(&mut self) -> &mut Rig {
        &mut self.rig
    }
}

impl Pair {
    fn with(peer: AtmAddress) -> Self {
        let mut rig = Rig::ready();
        let control = rig.call_in(1, MPS, CONTROL);
        let wish = Imposition {
            ingress_data: peer,
            ..imposition(5, 6000)
        };
        let reply = control_packets(&rig.control(control, &wish.packet()));
        let Ok(Some(Tag::Value(tag))) = Tag::of(&reply[0].1) else {
            panic!("no tag")
        };
        rig.control(control, &mpoa::keep_alive(1, MPS, 6000));
        Self {
            rig,
            control,
            tag,
            peer,
        }
    }
    /// The other end calls; the call is accepted and up. Returns what the client does then.
    fn called(&mut self, id: u32, qos: Qos) -> (ConnId, Vec<Output>) {
        let conn = ConnId(ConnId::INCOMING + id);
        let (calling, called, sap) = (Some(self.peer), DATA, Sap::LLC);
        let offer = AtmEvent::Incoming {
            conn,
            calling,
            called,
            sap,
            qos,
            multipoint: false,
        };
        self.rig.atm(offer);
        (conn, self.rig.connected(conn, 100 + id as u16))
    }
    /// A packet of the flow that `back` answers arrives.
    fn arrives(&mut self, conn: ConnId, back: App) -> Vec<Output> {
        let mut packet = packet(back.0, OWN, 63, 100);
        packet[9] = back.1;
        let [high, low] = back.2.to_be_bytes();
        packet[20..24].copy_from_slice(&[high, low, 0x30, 0x39]);
        packet[10..12].fill(0);
        let sum = aerostat_wire::nhrp::internet_checksum(&packet[..20]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        let sdu = mpoa::shortcut_sdu(Some(self.tag), &packet);
        self.rig.atm(AtmEvent::Received { conn, sdu: &sdu })
    }
    /// A flow is detected and resolved. Returns the resulting calls.
    fn resolved(&mut self, app: App) -> Vec<(ConnId, Qos)> {
        let out = self.rig.app_flow(app);
        let request = control_packets(&out)[0].1.clone();
        let reply = answer(&request, self.peer, 6000, Some(TAG));
        calls(&self.rig.control(self.control, &reply))
    }
    /// Connections that are released until this second.
    fn released_until(&mut self, second: u64) -> Vec<(u64, ConnId)> {
        let all = self.rig.until(second);
        let of = |(at, output): &(u64, Output)| {
            let gone = releases(std::slice::from_ref(output));
            gone.first().map(|conn| (*at, *conn))
        };
        all.iter().filter_map(of).collect()
    }
}

/// The way back of the thesis' Figure 6.1, with this end's best effort call open, under way, or still to come.
#[test]
fn the_way_back_takes_the_guaranteed_connection_and_best_effort_is_released() {
    for peer in [LOW, PEER] {
        // Open, and in use.
        let mut pair = Pair::with(peer);
        let made = pair.resolved(WEB);
        pair.connected(made[0].0, 60);
        assert_eq!(pair.way(WEB), Some(made[0].0));
        pair.until(10);
        let (cbr, _) = pair.called(2, Qos::cbr(80_000, 1600));
        assert_eq!(pair.way(WEB), Some(made[0].0), "nothing has arrived yet");
        pair.until(13);
        pair.arrives(cbr, WEB);
        assert_eq!(pair.way(WEB), Some(cbr));
        assert_eq!(pair.released_until(20), [(14, made[0].0)]);
        let other = (TARGET, UDP, 9);
        assert_eq!(
            pair.way(other),
            Some(cbr),
            "all of its packets arrive there"
        );
        let row = pair.mpc.snapshot(pair.now).ingress[0].clone();
        assert_eq!(
            row.vc.map(|vc| vc.vci),
            Some(102),
            "the label of Figure 6.1"
        );

        // Under way: it comes up after the other one.
        let mut pair = Pair::with(peer);
        let made = pair.resolved(WEB);
        let (cbr, _) = pair.called(2, Qos::cbr(80_000, 1600));
        pair.connected(made[0].0, 60);
        pair.arrives(cbr, WEB);
        assert_eq!(pair.way(WEB), Some(cbr));
        assert_eq!(pair.released_until(5), [(1, made[0].0)]);

        // Still to come: it is not made.
        let mut pair = Pair::with(peer);
        let (cbr, _) = pair.called(2, Qos::cbr(80_000, 1600));
        assert_eq!(pair.resolved(WEB), []);
        assert_eq!(pair.way(WEB), None, "a moment of patience, over LANE");
        pair.arrives(cbr, WEB);
        assert_eq!(pair.way(WEB), Some(cbr));
        // If nothing arrives, best effort is called for.
        let mut pair = Pair::with(peer);
        pair.called(2, Qos::cbr(80_000, 1600));
        assert_eq!(pair.resolved(WEB), []);
        pair.until(1);
        assert_eq!(calls(&pair.app(WEB))[0].1, Qos::ubr(1536));
    }
}

#[test]
fn other_flows_of_the_pair_stay_off() {
    let mut pair = Pair::with(PEER);
    let (cbr, _) = pair.called(2, Qos::cbr(200, 300));
    let (plain, _) = pair.called(3, Qos::ubr(1536));
    pair.arrives(cbr, VOICE);
    pair.arrives(plain, WEB);
    assert_eq!(pair.resolved(WEB), []);
    let ways = [VOICE, WEB, (TARGET, ICMP, 0x0800)].map(|app| pair.way(app));
    assert_eq!(ways, [Some(cbr), Some(plain), Some(plain)]);
    // As long as they go on, and for 20 s after.
    for second in [5, 15, 25, 35] {
        assert_eq!(pair.released_until(second), []);
        pair.arrives(plain, WEB);
        pair.arrives(cbr, VOICE);
    }
    assert_eq!(pair.way((TARGET, ICMP, 0x0800)), Some(plain));
    pair.until(60);
    assert_eq!(pair.way((TARGET, ICMP, 0x0800)), Some(cbr));
    // A packet that the contract has no room for goes by LANE.
    assert_eq!(
        to_lane(
            &pair
                .rig
                .outbound(0, ethernet(MPS_MAC, &packet(OWN, TARGET, 64, 280)))
        ),
        1
    );
    // Another destination behind the same client.
    let other = (IpAddr::V4(Ipv4Addr::new(10, 2, 0, 21)), UDP, 5004);
    assert_eq!(pair.resolved(other), []);
    assert_eq!(pair.way(other), Some(plain));
}

#[test]
fn a_flow_with_an_entry_of_its_own_stays_off() {
    let mut pair = Pair::with(PEER);
    let entry = |pair: &mut Pair, text: &str| {
        let QosEntry { filter, qos } = text.parse().expect(text);
        let qos = Some(qos);
        pair.input(Input::SetQos { filter, qos });
    };
    entry(&mut pair, "10.2.0.20:5004 udp tx=400,0,300 rx=tx");
    let (cbr, _) = pair.called(2, Qos::cbr(200, 300));
    pair.arrives(cbr, VOICE);
    let made = pair.resolved(VOICE);
    assert_eq!(made[0].1, Qos::cbr(400, 300), "another contract");
    pair.connected(made[0].0, 61);
    assert_eq!(pair.way(VOICE), Some(made[0].0));
    assert_eq!(pair.released_until(50), []);
    // An entry for best effort is an exception by the user's wish.
    let filter: FlowFilter = "10.2.0.20:80 tcp".parse().unwrap();
    let qos = Some(Qos::ubr(1536));
    pair.input(Input::SetQos { filter, qos });
    pair.arrives(cbr, WEB);
    let made = pair.resolved(WEB);
    pair.connected(made[0].0, 62);
    assert_eq!(pair.way(WEB), Some(made[0].0));
}

/// Only a contract that guarantees something in this direction leads back; the connection is not for everybody, either.
#[test]
fn a_contract_with_nothing_backward_does_not_lead_back() {
    let cbr = TrafficParams::cbr(200, 1600);
    for tx in [TrafficParams::none(), TrafficParams::ubr(1600)] {
        let mut pair = Pair::with(PEER);
        let (there, _) = pair.called(2, Qos { tx, rx: cbr });
        pair.arrives(there, WEB);
        let made = pair.resolved(WEB);
        assert_eq!(made[0].1, Qos::ubr(1536), "{tx:?}");
        pair.connected(made[0].0, 60);
        assert_eq!(pair.way(WEB), Some(made[0].0));
        assert_eq!(pair.released_until(60), []);
    }
    let vbr = TrafficParams {
        category: Some(ServiceCategory::NrtVbr),
        scr: 100,
        mbs: 10,
        ..cbr
    };
    let mut pair = Pair::with(PEER);
    let (there, _) = pair.called(2, Qos { tx: vbr, rx: cbr });
    pair.arrives(there, WEB);
    assert_eq!((pair.resolved(WEB), pair.way(WEB)), (vec![], Some(there)));
}

/// The end of the connection, or of the client at its other end, costs no packet: best effort is called for.
#[test]
fn the_end_of_the_connection_gives_the_flow_back_to_best_effort() {
    let mut pair = Pair::with(PEER);
    let (cbr, _) = pair.called(2, Qos::cbr(80_000, 1600));
    pair.arrives(cbr, WEB);
    pair.resolved(WEB);
    assert_eq!(pair.way(WEB), Some(cbr));
    for cause in [Cause::NORMAL, Cause::TEMPORARY] {
        pair.atm(AtmEvent::Released { conn: cbr, cause });
        let out = pair.app(WEB);
        let made = calls(&out);
        assert_eq!((to_lane(&out), made[0].1), (1, Qos::ubr(1536)));
        pair.connected(made[0].0, 60);
        assert_eq!(pair.way(WEB), Some(made[0].0));
        // The other end calls again, and the way back moves again.
        let (again, _) = pair.called(2, Qos::cbr(80_000, 1600));
        assert_eq!(again, cbr);
        pair.arrives(cbr, WEB);
        assert_eq!(pair.way(WEB), Some(cbr));
        let second = pair.now.as_nanos() / 1_000_000_000;
        assert_eq!(pair.released_until(second + 3), [(second + 1, made[0].0)]);
    }
}

/// The end that called with a guarantee releases its best effort, too, if the other end uses the guaranteed connection.
#[test]
fn the_caller_releases_best_effort_that_nobody_needs() {
    let mut pair = Pair::with(PEER);
    let made = pair.resolved(WEB);
    let plain = made[0].0;
    pair.connected(plain, 60);
    pair.arrives(plain, WEB);
    let QosEntry { filter, qos } = "10.2.0.20 tx=80000,0,1600 rx=tx".parse().unwrap();
    let qos = Some(qos);
    pair.input(Input::SetQos { filter, qos });
    let made = pair.resolved(WEB);
    pair.connected(made[0].0, 61);
    assert_eq!(pair.released_until(5), [], "the other end still uses it");
    pair.arrives(plain, WEB);
    pair.arrives(made[0].0, WEB);
    assert_eq!(pair.released_until(10), [(6, plain)]);
    assert_eq!(pair.way(WEB), Some(made[0].0));
}

/// Both ends call for the same traffic at once: the call of the smaller address stays, whichever is up first.
#[test]
fn of_two_calls_that_cross_that_of_the_smaller_address_stays() {
    let kinds = [None, Some(Qos::cbr(200, 300))];
    for (peer, first, qos) in [LOW, PEER]
        .into_iter()
        .flat_map(|peer| [true, false].map(|first| (peer, first)))
        .flat_map(|(peer, first)| kinds.map(|qos| (peer, first, qos)))
    {
        let case = format!("{peer} {first} {qos:?}");
        let mut pair = Pair::with(peer);
        if let Some(qos) = qos {
            let filter: FlowFilter = "10.2.0.20".parse().unwrap();
            let qos = Some(qos);
            pair.input(Input::SetQos { filter, qos });
        }
        let ours = pair.resolved(WEB)[0].0;
        let theirs = if first {
            pair.connected(ours, 60);
            pair.called(2, qos.unwrap_or(Qos::ubr(1536))).0
        } else {
            let theirs = pair.called(2, qos.unwrap_or(Qos::ubr(1536))).0;
            // The end whose call stays waits for it.
            let way = (peer == LOW).then_some(theirs);
            assert_eq!(pair.way(WEB), way, "{case}");
            pair.connected(ours, 60);
            theirs
        };
        let (stays, goes) = match peer == LOW {
            true => (theirs, vec![(1, ours)]),
            false => (ours, vec![]),
        };
        assert_eq!(pair.way(WEB), Some(stays), "{case}");
        pair.arrives(stays, WEB);
        assert_eq!(pair.released_until(15), goes, "{case}");
        assert_eq!(pair.way(WEB), Some(stays), "{case}");
        // The connection of the smaller address fails: the other end's serves, if it is still there.
        if peer == PEER {
            let cause = Cause::TEMPORARY;
            pair.atm(AtmEvent::Released { conn: ours, cause });
            assert_eq!(pair.way(WEB), Some(theirs), "{case}");
        }
    }
}

/// Another implementation does not know the rule and sends on: its connection stays.
#[test]
fn a_connection_on_which_packets_arrive_is_not_released() {
    let mut pair = Pair::with(LOW);
    let ours = pair.resolved(WEB)[0].0;
    pair.connected(ours, 60);
    let (theirs, _) = pair.called(2, Qos::ubr(1536));
    assert_eq!(pair.way(WEB), Some(theirs));
    pair.rig.now += Duration::from_millis(500);
    pair.arrives(ours, WEB);
    assert_eq!(pair.released_until(60), []);
    assert_eq!(pair.way(WEB), Some(theirs));
}

/// A call of the smaller address that fails does not leave its flow on LANE while the other end's connection is up.
#[test]
fn a_call_that_fails_gives_way_to_that_of_the_other_end() {
    let mut pair = Pair::with(PEER);
    let ours = pair.resolved(WEB)[0].0;
    let (theirs, _) = pair.called(2, Qos::ubr(1536));
    assert_eq!(pair.way(WEB), None);
    let cause = Cause::RESOURCES;
    pair.atm(AtmEvent::Released { conn: ours, cause });
    assert_eq!(pair.way(WEB), Some(theirs));
}

#[test]
fn the_same_with_the_daemon_in_a_process_of_its_own() {
    across_a_boundary(&[
        the_way_back_takes_the_guaranteed_connection_and_best_effort_is_released,
        other_flows_of_the_pair_stay_off,
        a_flow_with_an_entry_of_its_own_stays_off,
        a_contract_with_nothing_backward_does_not_lead_back,
        the_end_of_the_connection_gives_the_flow_back_to_best_effort,
        the_caller_releases_best_effort_that_nobody_needs,
        of_two_calls_that_cross_that_of_the_smaller_address_stays,
        a_connection_on_which_packets_arrive_is_not_released,
        a_call_that_fails_gives_way_to_that_of_the_other_end,
    ]);
}
