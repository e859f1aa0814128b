//! Programs of the machine and of the lab file at one host, and at each other's calls.

use super::*;
use aerostat_node::host::sockets::programs::Record;
use aerostat_proto::Cause;
use aerostat_wire::{Bhli, Sap};

const LAB: &str = "
switches: { s: {} }
clip:
  a: { subnet: 10.5.0.0/24, server: hub }
routers:
  hub: { on: s, elans: { a: 10.5.0.1 } }
hosts:
  x:
    on: s
    elan: a
    ip: 10.5.0.10
    uni: 4.0
    sockets:
      - { name: back, listen: echo, max_sdu: 1000, calls: 2 }
      - { name: out, call: x/f0, sap: ttcp, start: 3s, pdus: 100, size: 1000, rate: line, hold: 10ms }
      - { name: loop, call: x, qos: 'ubr,aal5:sdu=1000', start: 2500ms, pdus: 4, size: 500, rate: 100pps }
  y:
    on: s
    elan: a
    ip: 10.5.0.20
    uni: 4.0
    sockets: [{ name: leaf, listen: sink }]
";

fn with(test: impl FnOnce(&mut Net<'_>, NodeId, NodeId)) {
    let mut net = Net::of(aerostat_lab::parse("b.atm.yml", LAB, &[]).unwrap().lab);
    let (x, y) = (net.node("x"), net.node("y"));
    test(&mut net, x, y);
}

/// A value of the last connection that the program of the lab file with this name has.
fn last<T>(net: &Net<'_>, node: NodeId, name: &str, of: impl Fn(&Record<'_>) -> T) -> T {
    let layer = net.layer(node).unwrap();
    let is = |record: &Record<'_>| layer.programs()[record.program].name == name;
    let record = layer.calls().filter(is).last();
    of(&record.unwrap_or_else(|| panic!("{name} has no connection")))
}

fn connected(net: &mut Net<'_>, node: NodeId, number: u16) -> (String, UserData) {
    net.until(net.now + Duration::from_millis(200));
    match net.answer(node, number) {
        Some(Answer::Connected {
            label, user_data, ..
        }) => (label.clone(), user_data.clone()),
        other => panic!("{other:?}"),
    }
}

fn octets(net: &Net<'_>, node: NodeId, of: SocketRef) -> usize {
    let delivered = net.told.iter().filter_map(|(_, at, what)| match what {
        ToPrograms::Deliver { socket, sdus, .. } if (*at, *socket) == (node, of) => {
            Some(sdus.octets())
        }
        _ => None,
    });
    delivered.sum()
}

/// A program of the machine calls an echo of the lab file at its own host: by its name, and by the host's IP address.
#[test]
fn an_echo_of_the_lab_file_is_reached_inside_the_host_by_name_and_by_ip_address() {
    with(|net, x, _| {
        for (number, called) in [(1, "x"), (2, "10.5.0.10")] {
            let caller = net.connect(x, number, called, "ubr:sdu=1000");
            assert_eq!(connected(net, x, number).0, "local", "{called}");
            net.write(x, caller, vec![7; 1000]);
            assert_eq!(octets(net, x, caller), 1000, "it is back at once");
            let counts = |record: &Record<'_>| {
                (
                    record.socket.received.pdus,
                    record.socket.sent.pdus,
                    record.socket.vc,
                )
            };
            assert_eq!(last(net, x, "back", counts), (1, 1, None));
            net.give(x, Input::Closed { socket: caller });
            let end = |record: &Record<'_>| (record.socket.state(), record.socket.cause);
            assert_eq!(
                last(net, x, "back", end),
                (State::Ended, Some(Cause::NORMAL))
            );
        }
    });
}

/// The echo writes no more than a program of the machine reads, keeps what it has to send back, and loses nothing.
#[test]
fn a_program_of_the_lab_file_waits_for_a_reader_of_the_machine() {
    with(|net, x, _| {
        let caller = net.connect(x, 1, "x", "ubr:sdu=1000");
        connected(net, x, 1);
        for _ in 0..100 {
            assert!(net.world.asks_to_write(x, caller), "an echo takes all");
            net.write(x, caller, vec![7; 1000]);
        }
        let waiting = |record: &Record<'_>| {
            (
                record.socket.received.pdus,
                record.socket.sent.pdus,
                record.waiting(),
            )
        };
        assert_eq!(last(net, x, "back", waiting), (100, 32, 68));
        while last(net, x, "back", |record| record.waiting()) > 0 {
            net.taken(x, caller, 10, 10_000);
            net.until(net.now + Duration::from_micros(2));
        }
        assert_eq!(octets(net, x, caller), 100_000);
        assert_eq!(last(net, x, "back", waiting), (100, 100, 0));
    });
}

/// A caller of the lab file calls a listener of the machine at its own host, and sends as fast as that reads.
#[test]
fn a_caller_of_the_lab_file_stays_inside_the_host() {
    with(|net, x, _| {
        let socket = net.open(x, 1);
        let bind = bind(socket, "x/f0", &Sap::high(Bhli::TTCP).to_string());
        assert!(matches!(net.done(x, 2, bind), Answer::Bound { .. }));
        assert_eq!(net.done(x, 3, listen(socket, 1)), Answer::Done);
        net.until(Instant::from_millis(3100));
        let offer = net.offer(x).expect("the call has come");
        let accept = accept(socket, offer, "", silent());
        let Answer::Opened { socket } = net.done(x, 4, accept) else {
            panic!("not accepted");
        };
        net.until(net.now + Duration::from_millis(50));
        let state = |record: &Record<'_>| {
            (
                record.socket.state(),
                record.socket.sent.pdus,
                record.socket.vc,
            )
        };
        assert_eq!(
            last(net, x, "out", state),
            (State::Connected, 32, None),
            "the reader takes nothing"
        );
        for _ in 0..7 {
            net.taken(x, socket, 16, 16_000);
            net.until(net.now + Duration::from_millis(1));
        }
        net.until(net.now + Duration::from_millis(50));
        assert_eq!(octets(net, x, socket), 100_000);
        let end = |record: &Record<'_>| {
            (
                record.socket.state(),
                record.socket.sent.pdus,
                record.socket.by_us,
                record.own.late,
            )
        };
        assert_eq!(last(net, x, "out", end), (State::Ended, 100, true, 0));
        assert!(net.ended(x, socket).is_some());
    });
}

/// A program of the lab file calls another one of its host.
#[test]
fn two_programs_of_the_lab_file_in_one_host() {
    with(|net, x, _| {
        net.until(Instant::from_secs(6));
        for name in ["loop", "back"] {
            let counts = |record: &Record<'_>| {
                (record.socket.sent, record.socket.received, record.socket.vc)
            };
            let (sent, received, vc) = last(net, x, name, counts);
            assert_eq!((sent.pdus, sent.octets, vc), (4, 2000, None), "{name}");
            assert_eq!(sent, received, "an echo has the same octets");
            assert_ne!(sent.crc32, 0);
        }
    });
}

/// The address of a listener of the lab file is taken, with the same error as that of a program of the machine.
#[test]
fn the_address_of_a_listener_of_the_lab_file_is_in_use() {
    with(|net, x, y| {
        let ttcp = Sap::high(Bhli::TTCP).to_string();
        for (node, sap, is_taken) in [(x, "", true), (y, "", true), (y, &*ttcp, false)] {
            net.told.clear();
            let socket = net.open(node, 1);
            let name = if node == x { "x" } else { "y" };
            let address = format!("{name}/e0");
            net.ask(node, 2, bind(socket, &address, sap));
            let errno = net.failure(node, 2).map(|(failure, _)| failure.errno);
            assert_eq!(errno, is_taken.then_some(98), "{name}");
        }
        // The listener has all of its calls: the next one finds it busy, from inside as from outside.
        for number in 1..4 {
            net.connect(x, 10 + number, "x", "ubr:sdu=1000");
        }
        net.until(net.now + Duration::from_millis(100));
        let cause = net.failure(x, 13).map(|(failure, _)| failure.cause);
        assert_eq!(cause, Some(17));
        // A session of the machine cannot use a socket of the lab file.
        let layer = net.layer(x).unwrap();
        let own: Vec<SocketRef> = layer.sockets().map(|(at, _)| at).collect();
        let other = (0..20).map(|index| SocketRef::of(index, 1));
        for socket in other.filter(|at| !own.contains(at)).collect::<Vec<_>>() {
            let closed = Request::Status { socket };
            net.told.clear();
            net.ask(x, 30, closed);
            let errno = net.failure(x, 30).map(|(failure, _)| failure.errno);
            assert_eq!(errno, Some(9), "{socket:?}");
        }
    });
}

/// User data of a caller come to a program of the lab file, which keeps them as every socket does.
#[test]
fn a_program_of_the_lab_file_hears_user_data() {
    with(|net, x, y| {
        let socket = net.open(x, 1);
        let said = UserData::new(b"good day".to_vec()).unwrap();
        let request = connect(socket, "y", "ubr:sdu=1000", said.clone());
        net.ask(x, 2, request);
        connected(net, x, 2);
        assert_eq!(
            last(net, y, "leaf", |record| record.socket.heard.clone()),
            said
        );
    });
}

/// A listener of the lab file that only reads is a leaf of a tree; one that answers cannot be.
#[test]
fn a_program_of_the_lab_file_is_a_leaf_of_a_tree() {
    with(|net, x, y| {
        let root = net.open(x, 1);
        net.ask(x, 2, first_leaf(root, "y", "ubr:sdu=1000", false, silent()));
        connected(net, x, 2);
        let party = add_party(root, "x", silent());
        net.ask(x, 3, party);
        for _ in 0..5 {
            net.write(x, root, vec![1; 700]);
            net.until(net.now + Duration::from_millis(10));
        }
        net.until(net.now + Duration::from_millis(500));
        let echo = net.failure(x, 3).map(|(failure, _)| failure.cause);
        assert_eq!(echo, Some(88), "an echo answers");
        let received =
            |record: &Record<'_>| (record.socket.received.pdus, record.socket.received.octets);
        assert_eq!(last(net, y, "leaf", received), (5, 3500));
    });
}

/// At an address that a program of the machine has added, other programs of the host reach what listens there; a
/// program of the lab file keeps its own.
#[test]
fn addresses_that_programs_add_are_those_of_all_sockets_of_the_host() {
    use aerostat_proto::socket::Change;
    with(|net, x, _| {
        let added = "47000580ffe1000000f21a26d80020480d000100";
        let (change, address) = (Change::Add, added.to_owned());
        let add = Request::Addresses { change, address };
        assert_eq!(net.done(x, 1, add), Answer::Done);
        let Answer::Interface(shown) = net.done(
            x,
            2,
            Request::Interface {
                zero_pdus: false,
                zero_cells: false,
            },
        ) else {
            panic!("no interface");
        };
        let echo = net.layer(x).unwrap().programs()[0].local;
        let listed = |address: &str| shown.addresses.iter().any(|one| one == address);
        assert!(listed(added), "{:?}", shown.addresses);
        assert!(listed(&format!("{:x}", echo.with_selector(0))));
    });
}
