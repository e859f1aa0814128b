//! Calls in a shaped path of the link between two switches, and what the queues of calls have by class.

use aerostat_proto::PartyId;
use aerostat_proto::uni::{CallId, Request, SetupInfo, Version};
use aerostat_wire::{Qos, ServiceCategory, Vc};

use aerostat_node::atm::{Discipline, PathConfig};
use aerostat_node::switch::{ConnectionQueue, Input, PortConfig, PortNo};
use aerostat_proto::{Duration, Machine};
use aerostat_testing::switch::bare::Bare;

const V4: Version = Version::Uni40;
/// VPI and peak rate of the path.
const PATH: (u16, u32) = (7, 20_000);
const CDVT: Duration = Duration::from_micros(250);

/// Two switches, hosts 0 and 1 at the first and host 2 at the second. Calls between the switches are in the path.
fn net(change: impl Fn(usize, &mut PortConfig)) -> Bare {
    Bare::configured(2, V4, &[(0, V4), (0, V4), (1, V4)], |switch, config| {
        if (switch, &config.name[..]) == (0, "after") || (switch, &config.name[..]) == (1, "before")
        {
            let (vpi, pcr) = PATH;
            let cdvt = CDVT;
            config.paths = vec![PathConfig { vpi, pcr, cdvt }];
            config.call_vpi = vpi;
        }
        change(switch, config);
    })
}

/// Reservations of connections in the path: at the first switch towards the second one and back, and at the second one.
fn inside(net: &Bare) -> [(u64, u64); 2] {
    [(0, 1), (1, 0)].map(|(switch, port)| {
        let port = net.switches[switch].port_infos().nth(port).unwrap();
        assert_eq!(
            port.reserved,
            (20_000, 20_000),
            "the link has reserved the path"
        );
        port.tunnels[&PATH.0].1
    })
}

/// A call is set up and accepted.
fn talk(net: &mut Bare, from: usize, call: u32, to: usize, qos: Qos) {
    net.set_up(from, call, net.info(from, to, qos));
    net.run_ms(20);
    net.accept(to);
    net.run_ms(20);
    net.hosts[to].heard.clear();
}

fn finish(mut net: Bare, calls: &[(usize, u32)]) {
    for (host, call) in calls {
        net.release(*host, CallId(*call));
    }
    net.run_ms(100);
    net.assert_clean();
}

#[test]
fn calls_reserve_the_path_and_not_the_link_and_the_call_too_many_passes_later() {
    let mut net = net(|_, _| {});
    talk(&mut net, 0, 1, 2, Qos::cbr(8000, 1500));
    // This one begins at the user side of the trunk, which learns the label from the other end.
    talk(&mut net, 2, 2, 1, Qos::cbr(9000, 1500));
    assert_eq!(inside(&net), [(17_000, 17_000); 2]);
    for switch in &net.switches {
        let connections = switch.fabric().connections().filter(|c| !c.local);
        let labels = connections.flat_map(|c| [vec![c.from], c.to].concat());
        let (path, other): (Vec<_>, Vec<_>) = labels.map(|at| at.vc.vpi).partition(|vpi| *vpi == 7);
        assert_eq!((path.len(), other.len()), (4, 4));
        assert!(other.iter().all(|vpi| *vpi == 0));
    }
    for (from, to) in [(0, 2), (2, 0)] {
        net.hosts[from].heard.clear();
        net.set_up(from, 7, net.info(from, to, Qos::cbr(3001, 1500)));
        net.run_ms(20);
        assert_eq!(net.hosts[from].released(), [37]);
    }
    assert_eq!(
        inside(&net),
        [(17_000, 17_000); 2],
        "a refused call holds nothing"
    );
    // Best effort without a minimum is always admitted, and a call within the first switch has the link of its hosts.
    talk(&mut net, 0, 3, 2, Qos::ubr(1500));
    talk(&mut net, 0, 4, 1, Qos::cbr(100_000, 1500));
    net.release(0, CallId(1));
    net.run_ms(100);
    assert_eq!(inside(&net), [(9000, 9000); 2]);
    talk(&mut net, 0, 8, 2, Qos::cbr(11_000, 1500));
    assert_eq!(inside(&net), [(20_000, 20_000); 2]);
    finish(net, &[(2, 2), (0, 3), (0, 4), (0, 8)]);
}

#[test]
fn a_label_outside_the_path_is_refused_by_the_end_that_has_it() {
    // The other end puts its calls into no path, or into another one.
    for (broken, vpi) in [(0, 0), (0, 8), (1, 0), (1, 8)] {
        let mut net = net(|switch, config| {
            if switch == broken && config.call_vpi == 7 {
                config.call_vpi = vpi;
            }
        });
        for (from, to) in [(0, 2), (2, 0)] {
            net.set_up(from, 1, net.info(from, to, Qos::cbr(100, 1500)));
            net.run_ms(50);
            assert_eq!(
                net.hosts[from].released(),
                [35],
                "{broken} {vpi}: from {from}"
            );
        }
        net.assert_clean();
    }
}

#[test]
fn glare_over_the_last_label_of_the_path() {
    let mut net = net(|_, config| {
        if config.name == "after" {
            config.max_vci = 32;
        }
    });
    for round in 0..4 {
        net.set_up(0, 1, net.info(0, 2, Qos::cbr(100, 1500)));
        net.set_up(2, 1, net.info(2, 0, Qos::cbr(100, 1500)));
        net.run_ms(20);
        let losers: Vec<_> = [0, 2]
            .into_iter()
            .filter(|host| net.hosts[*host].released() == [45])
            .collect();
        let &[loser] = &losers[..] else {
            panic!("round {round}: {losers:?}")
        };
        net.accept(loser);
        net.run_ms(20);
        assert_eq!(inside(&net), [(100, 100); 2]);
        net.release(2 - loser, CallId(1));
        net.run_ms(50);
        net.forget();
        net.assert_clean();
    }
}

#[test]
fn many_calls_from_both_ends_have_labels_of_their_own() {
    let mut net = net(|_, _| {});
    for call in 1..=20 {
        net.set_up(0, call, net.info(0, 2, Qos::cbr(100, 1500)));
        net.set_up(2, call, net.info(2, 0, Qos::cbr(100, 1500)));
    }
    net.run_ms(50);
    for host in [0, 2] {
        for call in 0..20 {
            let call = CallId(CallId::INCOMING + call);
            let (info, vc) = (Default::default(), None);
            net.ask(host, Request::Accept { call, info, vc }).unwrap();
        }
    }
    net.run_ms(50);
    assert_eq!(inside(&net), [(4000, 4000); 2]);
    let connections = net.switches[0].fabric().connections();
    let mut labels: Vec<Vc> = connections
        .filter(|c| c.from.vc.vpi == 7)
        .map(|c| c.from.vc)
        .collect();
    labels.sort_unstable();
    labels.dedup();
    assert_eq!(labels.len(), 40);
    let own = |host| (1..=20).map(move |call| (host, call));
    finish(net, &own(0).chain(own(2)).collect::<Vec<_>>());
}

#[test]
fn a_dead_link_gives_back_what_its_calls_held() {
    let mut net = net(|_, _| {});
    talk(&mut net, 0, 1, 2, Qos::cbr(8000, 1500));
    talk(&mut net, 2, 2, 1, Qos::cbr(9000, 1500));
    for (switch, port) in [(0, PortNo(1)), (1, PortNo(0))] {
        let now = net.now;
        net.switches[switch]
            .handle_input(Input::Link(port, false), now)
            .unwrap();
    }
    net.run_ms(60_000);
    assert_eq!(inside(&net), [(0, 0); 2]);
    net.assert_clean();
    for (switch, port) in [(0, PortNo(1)), (1, PortNo(0))] {
        let now = net.now;
        net.switches[switch]
            .handle_input(Input::Link(port, true), now)
            .unwrap();
    }
    net.run_ms(30_000);
    net.forget();
    talk(&mut net, 0, 3, 2, Qos::cbr(20_000, 1500));
    finish(net, &[(0, 3)]);
}

/// Weights of the queues of a switch, by port.
fn weights(net: &Bare, switch: usize) -> Vec<(u16, u16)> {
    let fabric = net.switches[switch].fabric();
    let ports = (0..fabric.ports()).filter_map(|port| Some((port, fabric.output(port)?)));
    let queues = ports.flat_map(|(port, output)| output.views().map(move |view| (port, view)));
    let of_users = queues.filter(|(_, view)| view.vc.vci >= Vc::FIRST_USER_VCI);
    let mut all: Vec<_> = of_users
        .map(|(port, view)| (port, view.weight.unwrap()))
        .collect();
    all.sort_unstable();
    all
}

#[test]
fn a_leaf_has_what_its_own_port_says_of_the_class_of_the_call() {
    let mut net = net(|_, config| {
        config.discipline = Discipline::Weighted;
        let mut set = |category, weight| {
            let queue = ConnectionQueue {
                weight,
                ..ConnectionQueue::DEFAULT
            };
            config.calls.set(category, queue);
        };
        match &config.name[..] {
            "h1" => set(ServiceCategory::Ubr, 3),
            "after" => set(ServiceCategory::Ubr, 5),
            "h2" => {
                set(ServiceCategory::Ubr, 7);
                set(ServiceCategory::Abr, 9);
            }
            _ => {}
        }
    });
    // Ports of the first switch: before, after, h0, h1; of the second one: before, after, h2.
    let multipoint = |net: &Bare, to| SetupInfo {
        multipoint: true,
        ..net.info(0, to, Qos::ubr_multipoint(1536))
    };
    net.set_up(0, 1, multipoint(&net, 1));
    net.run_ms(20);
    net.accept(1);
    net.run_ms(20);
    let (call, party, info) = (CallId(1), PartyId(5), multipoint(&net, 2));
    net.ask(0, Request::AddParty { call, party, info }).unwrap();
    net.run_ms(20);
    net.accept(2);
    net.run_ms(20);
    assert_eq!(weights(&net, 0), [(1, 5), (3, 3)]);
    assert_eq!(weights(&net, 1), [(2, 7)]);
    // Both directions of a call count.
    talk(&mut net, 1, 2, 0, Qos::ubr(1500));
    assert_eq!(weights(&net, 0), [(1, 5), (2, 1), (3, 3), (3, 3)]);
    finish(net, &[(0, 1), (1, 2)]);
}
