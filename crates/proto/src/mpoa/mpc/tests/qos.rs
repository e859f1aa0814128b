//! QoS entries: which flow takes which shortcut, what happens when there is no bandwidth, and the end of such flows.

use super::*;
use crate::Cause;
use aerostat_wire::ipv4::{ICMP, TCP, UDP};
use aerostat_wire::mpoa::{FlowFilter, QosEntry, Tag};

const ULTRA: IpAddr = IpAddr::V4(Ipv4Addr::new(130, 230, 54, 209));
const PHONE: &str = "10.2.0.20:5004 udp tx=200,0,300 rx=tx";

/// A packet of an application; `port` is its destination port.
fn app(to: IpAddr, protocol: u8, port: u16) -> Vec<u8> {
    let mut packet = packet(OWN, to, 64, 100);
    packet[9] = protocol;
    packet[20..24].copy_from_slice(&[0x30, 0x39, (port >> 8) as u8, port as u8]);
    checksummed(packet)
}

fn checksummed(mut packet: Vec<u8>) -> Vec<u8> {
    packet[10..12].fill(0);
    let sum = aerostat_wire::nhrp::internet_checksum(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

impl Rig {
    pub(super) fn entry(&mut self, text: &str) -> Vec<Output> {
        let QosEntry { filter, qos } = text.parse().expect(text);
        self.input(Input::SetQos {
            filter,
            qos: Some(qos),
        })
    }
    fn no_entry(&mut self, text: &str) -> Vec<Output> {
        let filter = text.parse().expect(text);
        self.input(Input::SetQos { filter, qos: None })
    }
    pub(super) fn app(&mut self, (to, protocol, port): App) -> Sent {
        let frame = ethernet(MPS_MAC, &app(to, protocol, port));
        self.outbound(0, frame)
    }
    pub(super) fn app_flow(&mut self, app: App) -> Sent {
        (0..10).map(|_| self.app(app)).collect()
    }
    /// The connection that the next packet takes, or `None` for LANE.
    pub(super) fn way(&mut self, app: App) -> Option<ConnId> {
        let out = self.app(app);
        assert_eq!(sdus(&out).len() + to_lane(&out), 1);
        sdus(&out).first().map(|(conn, _)| *conn)
    }
    /// A flow is detected and resolved. Returns the resulting calls.
    pub(super) fn resolve(
        &mut self,
        control: Option<ConnId>,
        app: App,
    ) -> (ConnId, Vec<(ConnId, Qos)>) {
        let out = self.app_flow(app);
        let (control, request) = match control {
            Some(control) => (control, control_packets(&out)[0].1.clone()),
            None => {
                let conn = connects(&out)[0].0;
                (
                    conn,
                    control_packets(&self.connected(conn, 50))[0].1.clone(),
                )
            }
        };
        let out = self.control(control, &answer(&request, PEER, 1200, Some(TAG)));
        (control, calls(&out))
    }
    fn refused(&mut self, conn: ConnId) -> Vec<Output> {
        let cause = Cause::RATE_UNAVAILABLE;
        self.atm(AtmEvent::Released { conn, cause })
    }
    fn line(&self, app: App) -> IngressRow {
        let rows = self.mpc.snapshot(self.now).ingress;
        let fits = |row: &IngressRow| {
            let filter = row.filter.unwrap_or(FlowFilter::ANY);
            row.destination == app.0 && (filter.protocol, filter.destination_port) == (app.1, app.2)
        };
        rows.into_iter().find(fits).expect("an entry")
    }
}

pub(super) type App = (IpAddr, u8, u16);

/// Calls made, with the requested traffic.
pub(super) fn calls(out: &[Output]) -> Vec<(ConnId, Qos)> {
    out.iter()
        .filter_map(|output| match output {
            Output::Atm(AtmRequest::Connect { conn, qos, .. }) => Some((*conn, *qos)),
            _ => None,
        })
        .collect()
}

/// The table of Figure 6.3: UDP anywhere; telnet to one host; any other TCP to that host; ICMP anywhere.
#[test]
fn the_four_requirements_of_figure_6_3() {
    let mut rig = Rig::ready();
    for entry in [
        "0.0.0.0:0 0.0.0.0:0 udp tx=40000,0,1600 rx=tx",
        "0.0.0.0:0 130.230.54.209:23 tcp tx=20000,0,1600 rx=tx",
        "0.0.0.0:0 130.230.54.209:0 tcp tx=50000,0,1600 rx=tx",
        "0.0.0.0:0 0.0.0.0:0 icmp tx=10000,0,1600 rx=tx",
    ] {
        rig.entry(entry);
    }
    let (telnet, web) = ((ULTRA, TCP, 23), (ULTRA, TCP, 80));
    let (udp, ping) = ((ULTRA, UDP, 5004), (ULTRA, ICMP, 0x0800));
    let (mut control, mut conns) = (None, Vec::new());
    for (app, pcr, vci) in [
        (udp, 40_000, 133),
        (web, 50_000, 134),
        (ping, 10_000, 135),
        (telnet, 20_000, 136),
    ] {
        let (known, made) = rig.resolve(control, app);
        control = Some(known);
        assert_eq!(made.len(), 1, "each flow has its own connection");
        assert_eq!(made[0].1, Qos::cbr(pcr, 1600));
        rig.connected(made[0].0, vci);
        conns.push((app, made[0].0));
    }
    let sent = rig.counters().resolution_requests_sent;
    assert_eq!(sent, 4, "one resolution for each flow");
    for ((app, conn), packets) in conns.into_iter().zip([12, 11, 6, 14]) {
        for _ in 0..packets {
            assert_eq!(rig.way(app), Some(conn));
        }
    }
    // Another destination port is the same flow if the entry names no port; another source port always is.
    assert_eq!(rig.line((ULTRA, UDP, 0)).packets, 12);
    rig.app((IpAddr::V4(Ipv4Addr::new(130, 230, 4, 5)), UDP, 53));

    let call = rig.call_in(32, PEER, DATA);
    let reply = control_packets(&rig.control(control.unwrap(), &imposition(5, 1200).packet()));
    let Ok(Some(Tag::Value(tag))) = Tag::of(&reply[0].1) else {
        panic!("no tag")
    };
    for _ in 0..175 {
        let sdu = mpoa::shortcut_sdu(Some(tag), &packet(ULTRA, OWN, 63, 10));
        rig.atm(AtmEvent::Received {
            conn: call,
            sdu: &sdu,
        });
    }
    let text = rig.mpc.snapshot(rig.now).proc_text();
    let peer: String = PEER.0.iter().map(|octet| format!("{octet:02x}")).collect();
    // The lines of the figure; the kernel's are in the order of their addition, ours in the order of matching.
    let expected = format!(
        "QoS entries for shortcuts:\n\
         Src IP address:port  Dst IP address:port  Protocol\n  \
           TX:max_pcr pcr     min_pcr max_cdv max_sdu\n  \
           RX:max_pcr pcr     min_pcr max_cdv max_sdu\n\
         0.0.0.0:0            130.230.54.209:23    tcp\n     \
              20000   0       0       0       1600   \n     \
              20000   0       0       0       1600   \n\
         0.0.0.0:0            130.230.54.209:0     tcp\n     \
              50000   0       0       0       1600   \n     \
              50000   0       0       0       1600   \n\
         0.0.0.0:0            0.0.0.0:0            icmp\n     \
              10000   0       0       0       1600   \n     \
              10000   0       0       0       1600   \n\
         0.0.0.0:0            0.0.0.0:0            udp\n     \
              40000   0       0       0       1600   \n     \
              40000   0       0       0       1600   \n\
         \n\
         Interface 0:\n\
         \n\
         Ingress Entries:\n\
         IP address      Proto Port  State      Holding time  Packets fwded  VPI  VCI\n\
         130.230.4.5     udp   0     invalid    1200          0           \n\
         130.230.54.209  icmp  0     resolved   1200          6              0    135\n\
         130.230.54.209  udp   0     resolved   1200          12             0    133\n\
         130.230.54.209  tcp   0     resolved   1200          11             0    134\n\
         130.230.54.209  tcp   23    resolved   1200          14             0    136\n\
         \n\
         Egress Entries:\n\
         Ingress MPC ATM addr\n\
         Cache-id        State      Holding time  Packets recvd  Latest IP addr   VPI VCI\n\
         {peer}\n\
         5               resolved   1200          175            130.230.54.209   0   132\n"
    );
    assert_eq!(text, expected);
}

#[test]
fn a_full_link_means_best_effort_and_says_so() {
    let mut rig = Rig::ready();
    rig.entry(PHONE);
    let voice = (TARGET, UDP, 5004);
    let (control, made) = rig.resolve(None, voice);
    let out = rig.refused(made[0].0);
    assert_eq!(story(&out), ["mpc.qos.fallback"]);
    let plain = calls(&out);
    assert_eq!((plain.len(), plain[0].1), (1, Qos::ubr(1536)));
    assert_eq!(rig.way(voice), None, "nothing is up yet");
    rig.connected(plain[0].0, 60);
    assert_eq!(rig.way(voice), Some(plain[0].0));
    let row = rig.line(voice);
    assert!(row.fallback && row.last_cause == Some(Cause::RATE_UNAVAILABLE));
    assert_eq!(rig.counters().qos_fallbacks, 1);
    let why = &rig.mpc.why(TARGET, rig.now)[0].text;
    assert!(why.contains("best effort, as cbr:max_pcr=200"), "{why}");

    // After p6 the flow asks again, keeps its current connection, and reports again if there is still no bandwidth.
    rig.control(control, &mpoa::keep_alive(1, MPS, 1000));
    rig.until(159);
    assert_eq!(calls(&rig.app(voice)), []);
    rig.until(161);
    let again = rig.app(voice);
    assert_eq!(calls(&again)[0].1, Qos::cbr(200, 300));
    assert_eq!(sdus(&again)[0].0, plain[0].0);
    assert_eq!(
        story(&rig.refused(calls(&again)[0].0)),
        ["mpc.qos.fallback"]
    );
    assert_eq!(rig.way(voice), Some(plain[0].0));
    rig.until(322);
    let again = calls(&rig.app(voice));
    let out = rig.connected(again[0].0, 61);
    assert_eq!(releases(&out), [plain[0].0], "nobody needs it any more");
    assert_eq!(rig.way(voice), Some(again[0].0));
    assert!(!rig.line(voice).fallback);
    assert_eq!(rig.counters().qos_fallbacks, 2);
}

#[test]
fn best_effort_that_is_there_serves_a_flow_without_bandwidth() {
    let mut rig = Rig::ready();
    rig.entry(PHONE);
    let (control, made) = rig.resolve(None, (TARGET, TCP, 80));
    rig.connected(made[0].0, 60);
    let voice = (TARGET, UDP, 5004);
    let (_, wanted) = rig.resolve(Some(control), voice);
    assert_eq!(rig.way(voice), None, "the call may still succeed");
    assert_eq!(calls(&rig.refused(wanted[0].0)), []);
    assert_eq!(rig.way(voice), Some(made[0].0));
    // If best effort is refused, too, packets go by LANE.
    let cause = Cause::NORMAL;
    let conn = made[0].0;
    rig.atm(AtmEvent::Released { conn, cause });
    assert_eq!(rig.way(voice), None);
    rig.until(6);
    let again = calls(&rig.app(voice));
    assert_eq!(again[0].1, Qos::ubr(1536));
    let out = rig.refused(again[0].0);
    assert_eq!(
        (story(&out), calls(&out)),
        (vec!["mpc.shortcut.failed"], vec![])
    );
    assert_eq!(calls(&rig.app(voice)), []);
}

#[test]
fn a_table_of_connections_that_is_full_is_no_loop() {
    let mut config = MpcConfig::new(CONTROL, DATA);
    config.limits.shortcuts = 0;
    let mut rig = Rig::ready_with(config);
    rig.entry(PHONE);
    let (_, made) = rig.resolve(None, (TARGET, UDP, 5004));
    assert_eq!((made, rig.counters().connection_limit), (vec![], 2));
    assert_eq!(rig.counters().qos_fallbacks, 1);
    assert_eq!(rig.way((TARGET, UDP, 5004)), None);
}

#[test]
fn an_egress_that_takes_best_effort_only() {
    let mut rig = Rig::ready();
    rig.entry(PHONE);
    let voice = (TARGET, UDP, 5004);
    let out = rig.app_flow(voice);
    let control = connects(&out)[0].0;
    let mut request = control_packets(&rig.connected(control, 50))[0].1.clone();
    let asked = mpoa::service_category(&request);
    assert_eq!(asked, Ok(Some(mpoa::category::CBR)));
    let ours = mpoa::service_category_extension(mpoa::category::CBR);
    request.extensions.as_mut().unwrap().retain(|e| *e != ours);
    let reply = answer(&request, PEER, 1200, Some(TAG));
    let reply = reply.with(mpoa::service_category_extension(mpoa::category::ABR));
    let out = rig.control(control, &reply);
    assert_eq!(calls(&out)[0].1, Qos::ubr(1536));
    assert!(story(&out).contains(&"mpc.qos.fallback"));
    assert_eq!(rig.counters().qos_fallbacks, 1);
    rig.connected(calls(&out)[0].0, 60);
    assert_eq!(rig.way(voice), Some(calls(&out)[0].0));
}

#[test]
fn the_connection_of_a_flow_goes_alone() {
    let mut rig = Rig::ready();
    rig.entry("10.2.0.20:5004 udp tx=200,0,300 rx=tx");
    rig.entry("10.2.0.20:5006 udp tx=200,0,300 rx=tx");
    let (one, two, rest) = ((TARGET, UDP, 5004), (TARGET, UDP, 5006), (TARGET, TCP, 80));
    let (control, made) = rig.resolve(None, one);
    let first = made[0].0;
    rig.connected(first, 60);
    let (_, made) = rig.resolve(Some(control), two);
    let second = made[0].0;
    rig.connected(second, 61);
    let (_, made) = rig.resolve(Some(control), rest);
    let plain = made[0].0;
    assert_eq!(made[0].1, Qos::ubr(1536), "no room on those of others");
    rig.connected(plain, 62);
    rig.control(control, &mpoa::keep_alive(1, MPS, 3000));

    // The network releases one connection: only its flow is without one until it calls again.
    let cause = Cause::TEMPORARY;
    let conn = second;
    assert_eq!(releases(&rig.atm(AtmEvent::Released { conn, cause })), []);
    assert_eq!((rig.way(one), rig.way(two)), (Some(first), None));
    rig.until(6);
    let third = calls(&rig.app(two))[0].0;
    rig.connected(third, 63);
    assert_eq!((rig.way(two), rig.way(rest)), (Some(third), Some(plain)));

    // Two flows continue, one is silent until its holding time is over.
    rig.until(900);
    let mut ends = Vec::new();
    for at in [900, 1300] {
        ends.extend(rig.until(at).into_iter().map(|(_, out)| out));
        for app in [one, rest] {
            for (_, request) in control_packets(&rig.app_flow(app)) {
                rig.control(control, &answer(&request, PEER, 1200, Some(TAG)));
            }
        }
    }
    assert_eq!(releases(&ends), [third]);
    assert_eq!((rig.way(one), rig.way(rest)), (Some(first), Some(plain)));
}

#[test]
fn entries_deleted_and_changed_while_in_use() {
    let mut rig = Rig::ready();
    rig.entry(PHONE);
    let voice = (TARGET, UDP, 5004);
    let (control, made) = rig.resolve(None, voice);
    rig.connected(made[0].0, 60);
    assert_eq!(rig.entry(PHONE), [], "no change");
    assert_eq!(rig.way(voice), Some(made[0].0));
    let out = rig.no_entry("10.2.0.20:5004 udp");
    assert_eq!(releases(&out), [made[0].0], "its bandwidth is given back");
    assert_eq!(rig.way(voice), None);
    let (_, made) = rig.resolve(Some(control), voice);
    assert_eq!(made[0].1, Qos::ubr(1536), "now as any other flow");
    rig.connected(made[0].0, 61);

    // A new entry removes its packets from the flow to which they belonged; the entry is removed while its call is
    // being made.
    rig.entry(PHONE);
    assert_eq!(rig.way(voice), None);
    let (_, wanted) = rig.resolve(Some(control), voice);
    rig.no_entry("10.2.0.20:5004 udp");
    assert_eq!(rig.way(voice), Some(made[0].0));
    let late = rig.connected(wanted[0].0, 62);
    assert_eq!(releases(&late), [wanted[0].0]);

    // A late answer finds no entry, either.
    rig.entry(PHONE);
    let request = control_packets(&rig.app_flow(voice))[0].1.clone();
    rig.no_entry("10.2.0.20:5004 udp");
    let out = rig.control(control, &answer(&request, PEER, 1200, Some(TAG)));
    assert_eq!((calls(&out), rig.counters().unsolicited), (vec![], 1));

    // Another rate is another flow, and the call of the old flow is not used for it.
    rig.entry(PHONE);
    let (_, slow) = rig.resolve(Some(control), voice);
    rig.entry("10.2.0.20:5004 udp tx=400,0,300 rx=tx");
    let (_, fast) = rig.resolve(Some(control), voice);
    assert_eq!(fast[0].1, Qos::cbr(400, 300));
    assert_eq!(releases(&rig.connected(slow[0].0, 63)), [slow[0].0]);
    rig.connected(fast[0].0, 64);
    assert_eq!(rig.way(voice), Some(fast[0].0));
}

#[test]
fn no_more_entries_than_the_limit() {
    let mut rig = Rig::ready();
    let to = |n: u32| FlowFilter::to(Ipv4Addr::from_bits(0x0a03_0000 + n));
    let qos = Some(Qos::cbr(100, 1600));
    for n in 1..=1000 {
        rig.input(Input::SetQos { filter: to(n), qos });
    }
    let one_more = Input::SetQos {
        filter: to(1001),
        qos,
    };
    assert!(rig.mpc.handle_input(one_more.clone(), rig.now).is_err());
    assert_eq!(rig.mpc.snapshot(rig.now).qos.len(), 1000);
    rig.input(Input::SetQos {
        filter: to(1000),
        qos: None,
    });
    rig.input(one_more);
    let (_, made) = rig.resolve(None, (to(1001).destination.into(), TCP, 80));
    assert_eq!(made[0].1, Qos::cbr(100, 1600));
}

#[test]
fn configured_entries_hold_from_the_start_and_survive_the_daemon() {
    let mut config = MpcConfig::new(CONTROL, DATA);
    config.qos = vec![PHONE.parse().unwrap()];
    let mut rig = Rig::ready_with(config);
    let voice = (TARGET, UDP, 5004);
    assert_eq!(rig.resolve(None, voice).1[0].1, Qos::cbr(200, 300));
    rig.input(Input::Mpcd(ProcessEvent::Gone));
    rig.input(Input::Mpcd(ProcessEvent::Came));
    // The next daemon finds the binding, and calls again for what the entry wants.
    assert_eq!(calls(&rig.app(voice))[0].1, Qos::cbr(200, 300));
}

#[test]
fn the_way_back_uses_the_connection_of_the_other_end() {
    let offer = |rig: &mut Rig, id: u32, qos: Qos| {
        let conn = ConnId(ConnId::INCOMING + id);
        let (calling, called, sap) = (Some(PEER), DATA, Sap::LLC);
        rig.atm(AtmEvent::Incoming {
            conn,
            calling,
            called,
            sap,
            qos,
            multipoint: false,
        });
        rig.connected(conn, 100 + id as u16);
        conn
    };
    let receive = |rig: &mut Rig, conn: ConnId, tag: u32, from: IpAddr| {
        let sdu = mpoa::shortcut_sdu(Some(tag), &packet(from, OWN, 63, 10));
        rig.atm(AtmEvent::Received { conn, sdu: &sdu });
    };
    let other = IpAddr::V4(Ipv4Addr::new(10, 2, 0, 21));
    let mut rig = Rig::ready();
    let control = rig.call_in(1, MPS, CONTROL);
    let reply = control_packets(&rig.control(control, &imposition(5, 1200).packet()));
    let Ok(Some(Tag::Value(tag))) = Tag::of(&reply[0].1) else {
        panic!("no tag")
    };
    // Figure 6.1: one connection for both directions, although this end has no entry.
    let conn = offer(&mut rig, 2, Qos::cbr(80_000, 1600));
    receive(&mut rig, conn, tag, TARGET);
    let (_, made) = rig.resolve(Some(control), (TARGET, UDP, 9));
    assert_eq!((made, rig.way((TARGET, UDP, 9))), (vec![], Some(conn)));
    let (_, made) = rig.resolve(Some(control), (other, UDP, 9));
    assert_eq!(made, [], "the next packet decides");
    let made = calls(&rig.app((other, UDP, 9)));
    assert_eq!(made[0].1, Qos::ubr(1536), "not for what goes elsewhere");

    // With an entry for the same traffic the connection serves one flow; the next flow gets its own.
    rig.entry("10.2.0.0:0 udp tx=200,0,300 rx=tx");
    rig.entry("10.2.0.22 tx=200,0,300 rx=tx");
    rig.entry("10.2.0.23 tx=200,0,300 rx=tx");
    let voice = offer(&mut rig, 3, Qos::cbr(200, 300));
    let [a, b] = [22, 23].map(|host| (IpAddr::V4(Ipv4Addr::new(10, 2, 0, host)), UDP, 9));
    let (_, made) = rig.resolve(Some(control), a);
    assert_eq!((made, rig.way(a)), (vec![], Some(voice)));
    let (_, made) = rig.resolve(Some(control), b);
    assert_eq!(made[0].1, Qos::cbr(200, 300));
    rig.connected(made[0].0, 70);
    assert_eq!((rig.way(a), rig.way(b)), (Some(voice), Some(made[0].0)));
    // The other end releases the connection.
    let (cause, gone) = (Cause::NORMAL, voice);
    rig.atm(AtmEvent::Released { conn: gone, cause });
    assert_eq!((rig.way(a), rig.way(b)), (None, Some(made[0].0)));
}

#[test]
fn packets_too_long_for_the_contract_and_fragments() {
    let mut rig = Rig::ready();
    rig.entry(PHONE);
    let voice = (TARGET, UDP, 5004);
    let (_, made) = rig.resolve(None, voice);
    rig.connected(made[0].0, 60);
    let long = |len: usize| {
        let mut packet = packet(OWN, TARGET, 64, len);
        packet[20..24].copy_from_slice(&[0, 9, 0x13, 0x8c]);
        ethernet(MPS_MAC, &packet)
    };
    let frame = long(300 - 12 - 20);
    assert_eq!(sdus(&rig.outbound(0, frame)).len(), 1);
    let frame = long(300 - 12 - 20 + 1);
    assert_eq!(to_lane(&rig.outbound(0, frame)), 1);
    // The first fragment has the ports of the flow, but must not overtake the others.
    for fragment in [0x2000_u16, 0x2005, 0x0009] {
        let mut packet = app(TARGET, UDP, 5004);
        packet[6..8].copy_from_slice(&fragment.to_be_bytes());
        let frame = ethernet(MPS_MAC, &checksummed(packet));
        assert_eq!(to_lane(&rig.outbound(0, frame)), 1);
    }
    assert_eq!(rig.mpc.snapshot(rig.now).ingress.len(), 2);
}

#[test]
fn a_trigger_asks_with_the_entry_of_its_destination() {
    let mut rig = Rig::ready();
    rig.entry("10.2.0.20 tx=100,1600 rx=tx");
    rig.entry(PHONE);
    let control = rig.call_in(1, MPS, CONTROL);
    let out = rig.control(control, &mpoa::trigger(MPS, MPS_IP, TARGET));
    let request = control_packets(&out)[0].1.clone();
    let out = rig.control(control, &answer(&request, PEER, 1200, Some(TAG)));
    assert_eq!(calls(&out)[0].1, Qos::cbr(100, 1600));
}

#[test]
fn the_same_with_the_daemon_in_a_process_of_its_own() {
    across_a_boundary(&[
        the_four_requirements_of_figure_6_3,
        a_full_link_means_best_effort_and_says_so,
        best_effort_that_is_there_serves_a_flow_without_bandwidth,
        a_table_of_connections_that_is_full_is_no_loop,
        an_egress_that_takes_best_effort_only,
        the_connection_of_a_flow_goes_alone,
        entries_deleted_and_changed_while_in_use,
        no_more_entries_than_the_limit,
        configured_entries_hold_from_the_start_and_survive_the_daemon,
        the_way_back_uses_the_connection_of_the_other_end,
        packets_too_long_for_the_contract_and_fragments,
        a_trigger_asks_with_the_entry_of_its_destination,
    ]);
}
